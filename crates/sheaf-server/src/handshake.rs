//! The handshake: who is it, and what can it do?
//!
//! ```text
//!   server: greeting (version, connection id, challenge, capabilities, authentication method)
//!   client: response (capabilities, user, proof, database, method, attributes)
//!   server: OK | ERR | switch to another method -> client: proof -> server: OK | ERR
//! ```
//!
//! There are no users yet. `root` has an empty password and may connect from this machine only, which the
//! connection checks before it greets. An empty password has an empty proof in both methods that clients use
//! (`mysql_native_password`; `caching_sha2_password` also sends a single zero byte), so either is taken as the
//! client offers it, and a client that begins with another method is asked for the first.

use std::net::IpAddr;

use mysql_common::constants::{CapabilityFlags, StatusFlags};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse};
use mysql_common::proto::MySerialize;
use sheaf_sql::{SERVER_VERSION, SessionInfo, SqlError};

use crate::packet::{PacketStream, ReadError, Transport};
use crate::parameters::malformed_packet;

/// The longest handshake response: clients send up to 64 KiB of attributes.
pub const MAX_HANDSHAKE_BYTES: usize = 128 << 10;
const PROTOCOL_VERSION: u8 = 10;
/// utf8mb4_0900_ai_ci, the collation of a client that does not ask for another.
const DEFAULT_COLLATION_ID: u8 = 255;
const CHALLENGE_BYTES: usize = 20;
/// The greeting has the first bytes of the challenge apart from the others.
const CHALLENGE_HEAD_BYTES: usize = 8;
const ROOT: &str = "root";

/// What this server can do. Not compression and TLS, and not CLIENT_SESSION_TRACK, which changes OK packets.
const SERVER_CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
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
    pub session: SessionInfo,
}

/// Why a client was not let in.
pub enum HandshakeError {
    /// The client is to be told.
    Refused(SqlError),
    Read(ReadError),
}

impl From<SqlError> for HandshakeError {
    fn from(error: SqlError) -> Self {
        HandshakeError::Refused(error)
    }
}

impl From<ReadError> for HandshakeError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::OutOfOrder { .. } | ReadError::TooLarge { .. } => {
                HandshakeError::Refused(bad_handshake())
            }
            other => HandshakeError::Read(other),
        }
    }
}

/// A peer's name in error messages and in SHOW PROCESSLIST; `None` if it may not connect.
pub fn host_of(address: IpAddr) -> Option<&'static str> {
    address.to_canonical().is_loopback().then_some("localhost")
}

pub fn host_not_allowed(address: IpAddr) -> SqlError {
    SqlError::new(
        1130,
        "HY000",
        format!(
            "Host '{}' is not allowed to connect to this MySQL server",
            address.to_canonical()
        ),
    )
}

fn bad_handshake() -> SqlError {
    SqlError::new(1043, "08S01", "Bad handshake")
}

/// Greets a client and lets it in or not. `host` is its name, see [`host_of`].
pub fn greet<T: Transport>(
    packets: &mut PacketStream<T>,
    connection_id: u32,
    host: &str,
) -> Result<Client, HandshakeError> {
    let challenge = new_challenge()?;
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
            SERVER_CAPABILITIES,
            DEFAULT_COLLATION_ID,
            StatusFlags::SERVER_STATUS_AUTOCOMMIT,
            Some(AuthPlugin::MysqlNativePassword.as_bytes()),
        )
        .serialize(out);
        Ok(())
    })?;
    packets.flush()?;

    let mut payload = Vec::new();
    packets.read_packet(&mut payload)?;
    let response: HandshakeResponse<'_> =
        ParseBuf(&payload).parse(()).map_err(|_| bad_handshake())?;
    let capabilities = response.capabilities() & SERVER_CAPABILITIES;
    if !capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
        return Err(HandshakeError::Refused(SqlError::new(
            1251,
            "08004",
            "Client does not support authentication protocol requested by server; consider upgrading MySQL client",
        )));
    }
    if response
        .capabilities()
        .contains(CapabilityFlags::CLIENT_SSL)
    {
        return Err(HandshakeError::Refused(bad_handshake()));
    }
    let user = String::from_utf8_lossy(response.user()).into_owned();
    let mut proof = response.scramble_buf().to_vec();
    let known = matches!(
        response.auth_plugin(),
        None | Some(AuthPlugin::MysqlNativePassword | AuthPlugin::CachingSha2Password)
    );
    if !known {
        packets.write_packet(|out| {
            let challenge = [&challenge[..], &[0]].concat();
            AuthSwitchRequest::new(AuthPlugin::MysqlNativePassword.as_bytes(), challenge)
                .serialize(out);
            Ok(())
        })?;
        packets.flush()?;
        packets.read_packet(&mut proof)?;
    }
    check_password(&user, host, &proof)?;
    let session = SessionInfo {
        user,
        host: host.to_string(),
        database: response
            .db_name()
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8_lossy(name).into_owned()),
        multi_statements: capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
        local_infile: capabilities.contains(CapabilityFlags::CLIENT_LOCAL_FILES),
        found_rows: capabilities.contains(CapabilityFlags::CLIENT_FOUND_ROWS),
        collation_id: response.collation().into(),
    };
    Ok(Client {
        capabilities,
        session,
    })
}

/// What COM_CHANGE_USER asks for, from its packet without the command byte. The capabilities stay as they were.
pub fn change_user(
    body: &[u8],
    capabilities: CapabilityFlags,
    previous: &SessionInfo,
) -> Result<SessionInfo, SqlError> {
    let mut body = ParseBuf(body);
    let user = String::from_utf8_lossy(body.eat_null_str()).into_owned();
    let proof = body.checked_eat_u8_str().ok_or_else(malformed_packet)?;
    let database = String::from_utf8_lossy(body.eat_null_str()).into_owned();
    check_password(&user, &previous.host, proof)?;
    Ok(SessionInfo {
        user,
        host: previous.host.clone(),
        database: (!database.is_empty()).then_some(database),
        multi_statements: capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
        local_infile: previous.local_infile,
        found_rows: previous.found_rows,
        collation_id: body.checked_eat_u16_le().unwrap_or(previous.collation_id),
    })
}

/// The proof of an empty password is empty, whatever the challenge was.
fn check_password(user: &str, host: &str, proof: &[u8]) -> Result<(), SqlError> {
    let empty_password = matches!(proof, [] | [0]);
    if user == ROOT && empty_password {
        return Ok(());
    }
    Err(SqlError::access_denied(user, host, !empty_password))
}

/// Random bytes, none of them zero because clients take the challenge as a string that ends with one.
fn new_challenge() -> Result<[u8; CHALLENGE_BYTES], SqlError> {
    let mut challenge = [0; CHALLENGE_BYTES];
    getrandom::fill(&mut challenge).map_err(|error| {
        SqlError::unknown(format!("the system gives no random numbers: {error}"))
    })?;
    for byte in &mut challenge {
        *byte = 1 + *byte % 127;
    }
    Ok(challenge)
}

#[cfg(test)]
mod tests {
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

    fn refusal(incoming: Vec<u8>) -> SqlError {
        match greet(&mut stream(incoming), 1, "localhost") {
            Err(HandshakeError::Refused(error)) => error,
            Err(HandshakeError::Read(error)) => panic!("{error}"),
            Ok(_) => panic!("the client was let in"),
        }
    }

    #[test]
    fn root_is_let_in_with_an_empty_password_in_either_method() {
        let plain = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION;
        for (plugin, proof) in [
            (AuthPlugin::MysqlNativePassword, &b""[..]),
            (AuthPlugin::CachingSha2Password, b""),
            (AuthPlugin::CachingSha2Password, b"\0"),
        ] {
            let mut packets = stream(frame(1, &response(plain, "root", proof, plugin)));
            let Ok(client) = greet(&mut packets, 7, "localhost") else {
                panic!("root was refused")
            };
            assert_eq!(client.session.database.as_deref(), Some("shop"));
            assert!(!client.session.multi_statements);
        }
    }

    #[test]
    fn another_method_is_switched() {
        let plain = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION;
        let first = response(plain, "root", b"signature", AuthPlugin::Ed25519);
        let mut packets = stream([frame(1, &first), frame(3, b"")].concat());
        assert!(greet(&mut packets, 7, "localhost").is_ok());
    }

    #[test]
    fn others_are_refused_and_told_why() {
        let plain = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION;
        let error = refusal(frame(
            1,
            &response(plain, "alice", b"", AuthPlugin::MysqlNativePassword),
        ));
        assert_eq!(
            error.to_string(),
            "ERROR 1045 (28000): Access denied for user 'alice'@'localhost' (using password: NO)"
        );
        let error = refusal(frame(
            1,
            &response(plain, "root", b"secret", AuthPlugin::MysqlNativePassword),
        ));
        assert_eq!(
            (error.code, error.message.ends_with("(using password: YES)")),
            (1045, true)
        );
        let old = response(
            CapabilityFlags::empty(),
            "root",
            b"",
            AuthPlugin::MysqlNativePassword,
        );
        assert_eq!(refusal(frame(1, &old)).code, 1251);
    }

    #[test]
    fn garbage_is_a_bad_handshake() {
        assert_eq!(
            refusal(b"GET / HTTP/1.1\r\nHost: database\r\n\r\n".to_vec()).code,
            1043
        );
        assert_eq!(refusal(frame(1, b"")).code, 1043);
        assert_eq!(refusal(frame(1, &[0xFF; 300])).code, 1043);
        let whole = response(
            SERVER_CAPABILITIES,
            "root",
            b"",
            AuthPlugin::MysqlNativePassword,
        );
        for cut in 0..36 {
            assert_eq!(refusal(frame(1, &whole[..cut])).code, 1043, "cut at {cut}");
        }
    }

    #[test]
    fn the_same_machine_has_many_addresses() {
        for address in ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(
                host_of(address.parse().expect("an address")),
                Some("localhost")
            );
        }
        let outside: IpAddr = "10.0.0.7".parse().expect("an address");
        assert_eq!(host_of(outside), None);
        assert!(host_not_allowed(outside).message.contains("'10.0.0.7'"));
    }
}
