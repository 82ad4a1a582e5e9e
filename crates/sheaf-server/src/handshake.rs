//! The handshake: which user is it, and what can its client do?
//!
//! ```text
//!   server: greeting (version, connection id, challenge, capabilities, authentication method)
//!  [client: request for TLS -> both: TLS handshake]
//!   client: response (capabilities, user, proof, database, method, attributes)
//!   server: OK | ERR | switch to another method -> client: proof -> server: OK | ERR
//! ```
//!
//! The proof is checked in `authentication.rs`.

use mysql_common::constants::{CapabilityFlags, StatusFlags};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse};
use mysql_common::proto::MySerialize;
use sheaf_sql::{Engine, SERVER_VERSION, SessionInfo, SqlError};
use sheaf_types::error::codes;

use crate::authentication::{
    Challenge, Claim, FIRST_METHOD, HandshakeError, Origin, authenticate, bad_handshake,
    new_challenge, unsupported_by_client,
};
use crate::packet::{PacketStream, ReadError, Transport};
use crate::parameters::malformed_packet;

/// The longest handshake response: clients send up to 64 KiB of attributes.
pub const MAX_HANDSHAKE_BYTES: usize = 128 << 10;
const PROTOCOL_VERSION: u8 = 10;
/// utf8mb4_0900_ai_ci, the collation of a client that does not ask for another.
const DEFAULT_COLLATION_ID: u8 = 255;
/// Capabilities, packet size, collation, and what is reserved.
const TLS_REQUEST_BYTES: usize = 32;
/// The greeting has the first bytes of the challenge apart from the others.
const CHALLENGE_HEAD_BYTES: usize = 8;

/// What this server can do, TLS aside, which it may have no certificate for. Not CLIENT_SESSION_TRACK, which changes OK
/// packets.
const SERVER_CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_COMPRESS)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_IGNORE_SPACE)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_INTERACTIVE)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// A client that was let in.
pub struct Client {
    /// What both sides can do.
    pub capabilities: CapabilityFlags,
    /// What it has answered to.
    pub challenge: Challenge,
}

pub fn host_not_allowed(origin: &Origin) -> SqlError {
    SqlError::new(
        codes::HOST_NOT_PRIVILEGED,
        format!(
            "Host '{}' is not allowed to connect to this MySQL server",
            origin.host
        ),
    )
}

/// Whether a client asks for TLS: it sends the beginning of its response, and the whole of it when the connection is
/// encrypted.
fn is_tls_request(payload: &[u8]) -> bool {
    let capabilities = payload.first_chunk().copied().map(u32::from_le_bytes);
    let capabilities = CapabilityFlags::from_bits_truncate(capabilities.unwrap_or_default());
    payload.len() == TLS_REQUEST_BYTES && capabilities.contains(CapabilityFlags::CLIENT_SSL)
}

/// Greets a client and lets it in or not.
pub fn greet<T: Transport>(
    packets: &mut PacketStream<T>,
    engine: &Engine,
    connection_id: u32,
    origin: &Origin,
) -> Result<(Client, SessionInfo), HandshakeError> {
    let offered = match packets.offers_tls() {
        true => SERVER_CAPABILITIES | CapabilityFlags::CLIENT_SSL,
        false => SERVER_CAPABILITIES,
    };
    let mut challenge = new_challenge()?;
    let (head, tail) = challenge.split_at(CHALLENGE_HEAD_BYTES);
    let mut head_bytes = [0; CHALLENGE_HEAD_BYTES];
    head_bytes.copy_from_slice(head);
    packets.write_packet(|out| {
        HandshakePacket::new(
            PROTOCOL_VERSION,
            SERVER_VERSION.as_bytes(),
            connection_id,
            head_bytes,
            Some([tail, &[0]].concat()),
            offered,
            DEFAULT_COLLATION_ID,
            StatusFlags::SERVER_STATUS_AUTOCOMMIT,
            Some(FIRST_METHOD.name().as_bytes()),
        )
        .serialize(out);
        Ok(())
    })?;
    packets.flush()?;

    let mut payload = Vec::new();
    packets.read_packet(&mut payload)?;
    let mut encryption = None;
    if packets.offers_tls() && is_tls_request(&payload) {
        // A client that fails here is not told in a packet: TLS has its own way to say it.
        let agreed = packets.start_tls().map_err(ReadError::Io)?;
        encryption = Some(agreed.ok_or_else(bad_handshake)?);
        packets.read_packet(&mut payload)?;
    }
    let response: HandshakeResponse<'_> =
        ParseBuf(&payload).parse(()).map_err(|_| bad_handshake())?;
    let capabilities = response.capabilities() & SERVER_CAPABILITIES;
    if !capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
        return Err(unsupported_by_client().into());
    }
    let has_tls = encryption.is_some();
    let wants_tls = response
        .capabilities()
        .contains(CapabilityFlags::CLIENT_SSL);
    if wants_tls && !has_tls {
        return Err(bad_handshake().into());
    }
    if engine.requires_secure_transport() && !origin.is_secure(has_tls) {
        return Err(SqlError::insecure_transport().into());
    }
    let user = String::from_utf8_lossy(response.user()).into_owned();
    let method = response.auth_plugin().map(AuthPlugin::as_bytes);
    let claim = Claim {
        user: &user,
        origin,
        has_tls,
        method: method.unwrap_or(FIRST_METHOD.name().as_bytes()),
        proof: response.scramble_buf().to_vec(),
        can_switch: capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH),
    };
    let account = authenticate(packets, engine, &claim, &mut challenge)?;
    let session = SessionInfo {
        account: Some(account.name.clone()),
        host: origin.host.clone(),
        database: response
            .db_name()
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8_lossy(name).into_owned()),
        multi_statements: capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
        local_infile: capabilities.contains(CapabilityFlags::CLIENT_LOCAL_FILES),
        found_rows: capabilities.contains(CapabilityFlags::CLIENT_FOUND_ROWS),
        ignore_space: capabilities.contains(CapabilityFlags::CLIENT_IGNORE_SPACE),
        collation_id: response.collation().into(),
        compressed: capabilities.contains(CapabilityFlags::CLIENT_COMPRESS),
        encryption,
        user,
    };
    let client = Client {
        capabilities,
        challenge,
    };
    Ok((client, session))
}

/// What COM_CHANGE_USER asks for.
pub struct UserChange {
    user: String,
    proof: Vec<u8>,
    database: Option<String>,
    collation_id: Option<u16>,
    method: Option<Vec<u8>>,
}

impl UserChange {
    /// Reads the packet, without the command byte. Error 1835 if it is not as the protocol has it.
    pub fn parse(body: &[u8]) -> Result<UserChange, SqlError> {
        let mut body = ParseBuf(body);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let user = text(body.eat_null_str());
        let proof = body.checked_eat_u8_str().ok_or_else(malformed_packet)?;
        let proof = proof.to_vec();
        let database = text(body.eat_null_str());
        let collation_id = body.checked_eat_u16_le();
        let method = body.eat_null_str().to_vec();
        Ok(UserChange {
            user,
            proof,
            database: (!database.is_empty()).then_some(database),
            collation_id,
            method: (!method.is_empty()).then_some(method),
        })
    }

    /// Has the client prove that it is the user that it wants to be. The capabilities stay as they were.
    pub fn authenticate<T: Transport>(
        self,
        packets: &mut PacketStream<T>,
        engine: &Engine,
        (client, origin): (&mut Client, &Origin),
        previous: &SessionInfo,
    ) -> Result<SessionInfo, HandshakeError> {
        let capabilities = client.capabilities;
        let claim = Claim {
            user: &self.user,
            origin,
            has_tls: previous.encryption.is_some(),
            method: self
                .method
                .as_deref()
                .unwrap_or(FIRST_METHOD.name().as_bytes()),
            proof: self.proof,
            can_switch: capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH),
        };
        let account = authenticate(packets, engine, &claim, &mut client.challenge)?;
        Ok(SessionInfo {
            user: self.user,
            account: Some(account.name.clone()),
            database: self.database,
            multi_statements: capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
            collation_id: self.collation_id.unwrap_or(previous.collation_id),
            ..previous.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use sheaf_sql::EngineOptions;

    use super::*;
    use crate::packet::tests::stream;

    fn response(
        capabilities: CapabilityFlags,
        user: &str,
        proof: &[u8],
        plugin: AuthPlugin<'static>,
    ) -> Vec<u8> {
        let mut payload = Vec::new();
        HandshakeResponse::new(
            Some(proof.to_vec()),
            (8, 0, 0),
            Some(user.as_bytes().to_vec()),
            Some(b"shop".to_vec()),
            Some(plugin),
            capabilities,
            None,
            16 << 20,
        )
        .serialize(&mut payload);
        payload
    }

    fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        frame.push(sequence);
        frame.extend_from_slice(payload);
        frame
    }

    /// A database that has only root, without a password.
    struct Fixture {
        engine: Arc<Engine>,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Fixture {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let engine = Engine::open(directory.path(), EngineOptions::default());
            Fixture {
                engine: engine.expect("an empty database"),
                _directory: directory,
            }
        }

        fn greet(&self, incoming: Vec<u8>) -> Result<SessionInfo, HandshakeError> {
            let origin = Origin::network(IpAddr::from([127, 0, 0, 1]));
            greet(&mut stream(incoming), &self.engine, 7, &origin).map(|(_, session)| session)
        }

        fn refusal(&self, incoming: Vec<u8>) -> SqlError {
            match self.greet(incoming) {
                Err(HandshakeError::Refused(error)) => error,
                Err(HandshakeError::Read(error)) => panic!("{error}"),
                Ok(_) => panic!("the client was let in"),
            }
        }
    }

    const PLAIN: CapabilityFlags =
        CapabilityFlags::CLIENT_PROTOCOL_41.union(CapabilityFlags::CLIENT_SECURE_CONNECTION);

    #[test]
    fn root_is_let_in_with_an_empty_password_in_either_method() {
        let fixture = Fixture::new();
        for (plugin, proof) in [
            (AuthPlugin::MysqlNativePassword, &b""[..]),
            (AuthPlugin::CachingSha2Password, b""),
            (AuthPlugin::CachingSha2Password, b"\0"),
        ] {
            let Ok(session) = fixture.greet(frame(1, &response(PLAIN, "root", proof, plugin)))
            else {
                panic!("root was refused")
            };
            assert_eq!(session.database.as_deref(), Some("shop"));
            assert!(!session.multi_statements);
        }
    }

    #[test]
    fn another_method_is_switched() {
        let with_methods = PLAIN | CapabilityFlags::CLIENT_PLUGIN_AUTH;
        let first = response(with_methods, "root", b"signature", AuthPlugin::Ed25519);
        let fixture = Fixture::new();
        assert!(
            fixture
                .greet([frame(1, &first), frame(3, b"")].concat())
                .is_ok()
        );
    }

    #[test]
    fn others_are_refused_and_told_why() {
        let fixture = Fixture::new();
        let native = AuthPlugin::MysqlNativePassword;
        let error = fixture.refusal(frame(1, &response(PLAIN, "alice", b"", native.clone())));
        assert_eq!(
            error.to_string(),
            "ERROR 1045 (28000): Access denied for user 'alice'@'localhost' (using password: NO)"
        );
        let error = fixture.refusal(frame(
            1,
            &response(PLAIN, "root", b"secret", native.clone()),
        ));
        assert_eq!(
            (error.code, error.message.ends_with("(using password: YES)")),
            (1045, true)
        );
        let old = response(CapabilityFlags::empty(), "root", b"", native);
        assert_eq!(fixture.refusal(frame(1, &old)).code, 1251);
    }

    /// Packets that were right, with bytes changed, lost and added: whatever is read from them, reading ends.
    #[test]
    fn damaged_packets_are_read_or_refused() {
        let fixture = Fixture::new();
        let with_all = SERVER_CAPABILITIES | CapabilityFlags::CLIENT_CONNECT_WITH_DB;
        let whole = response(with_all, "root", &[7; 20], AuthPlugin::CachingSha2Password);
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..3_000 {
            let mut damaged = whole.clone();
            for _ in 0..=random(4) {
                let at = random(damaged.len());
                match random(4) {
                    0 => damaged[at] ^= 1 << random(8),
                    1 => damaged[at] = random(256) as u8,
                    2 => damaged.truncate(at.max(1)),
                    _ => damaged.insert(at, random(256) as u8),
                }
            }
            // The damage may have made the proof empty, which is root's.
            if let Ok(session) = fixture.greet(frame(1, &damaged)) {
                assert_eq!(session.user, "root");
            }
            let _ = UserChange::parse(&damaged);
        }
    }

    #[test]
    fn garbage_is_a_bad_handshake() {
        let fixture = Fixture::new();
        assert_eq!(
            fixture
                .refusal(b"GET / HTTP/1.1\r\nHost: database\r\n\r\n".to_vec())
                .code,
            1043
        );
        assert_eq!(fixture.refusal(frame(1, b"")).code, 1043);
        assert_eq!(fixture.refusal(frame(1, &[0xFF; 300])).code, 1043);
        let whole = response(
            SERVER_CAPABILITIES,
            "root",
            b"",
            AuthPlugin::MysqlNativePassword,
        );
        for cut in 0..36 {
            assert_eq!(
                fixture.refusal(frame(1, &whole[..cut])).code,
                1043,
                "cut at {cut}"
            );
        }
    }
}
