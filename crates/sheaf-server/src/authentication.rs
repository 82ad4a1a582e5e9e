//! Authentication: does the client know the password of the account that it says it is?
//!
//! ```text
//!   the client's method is the account's:   proof -> right or wrong
//!   it is another one:                      switch, with a new challenge -> proof -> right or wrong
//!   caching_sha2_password, proof unknown:   "send the password" -> password -> right or wrong
//! ```
//!
//! The last is asked only on connections that cannot be listened to: TLS and Unix sockets. (MySQL also takes the
//! password encrypted with a public key that it sends itself, which a server in the middle can replace by its own.)
//!
//! An unknown user is asked like a known one, and refused with the same words.

use std::net::IpAddr;
use std::sync::Arc;

use mysql_common::packets::AuthSwitchRequest;
use mysql_common::proto::MySerialize;
use sheaf_sql::accounts::password::native_proof_is_right;
use sheaf_sql::{Engine, SqlError};
use sheaf_table::{Account, AuthenticationMethod};
use sheaf_types::error::codes;

use crate::packet::{PacketStream, ReadError, Transport};

pub const CHALLENGE_BYTES: usize = 20;
pub type Challenge = [u8; CHALLENGE_BYTES];

/// The method that the greeting names.
pub const FIRST_METHOD: AuthenticationMethod = AuthenticationMethod::NativePassword;

/// What caching_sha2_password says besides: a packet that begins with this byte, and one of the two.
const MORE_DATA: u8 = 0x01;
const FAST_PROOF_IS_RIGHT: u8 = 0x03;
const SEND_PASSWORD: u8 = 0x04;

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

pub(crate) fn bad_handshake() -> SqlError {
    SqlError::new(codes::HANDSHAKE_ERROR, "Bad handshake")
}

/// The names of a peer: what accounts call it, and what messages do.
#[derive(Clone, Debug)]
pub struct Origin {
    /// `localhost` for this machine, otherwise the address.
    pub host: String,
    /// The address, where it is not the name.
    address: Option<String>,
    /// It cannot be listened to although nothing is encrypted.
    is_unix_socket: bool,
}

impl Origin {
    pub fn unix_socket() -> Origin {
        Origin {
            host: "localhost".to_string(),
            address: None,
            is_unix_socket: true,
        }
    }

    pub fn network(address: IpAddr) -> Origin {
        let address = address.to_canonical();
        let (host, other) = match address.is_loopback() {
            true => ("localhost".to_string(), Some(address.to_string())),
            false => (address.to_string(), None),
        };
        Origin {
            host,
            address: other,
            is_unix_socket: false,
        }
    }

    pub fn names(&self) -> Vec<&str> {
        let address = self.address.as_deref();
        std::iter::once(self.host.as_str()).chain(address).collect()
    }

    pub fn is_secure(&self, has_tls: bool) -> bool {
        self.is_unix_socket || has_tls
    }
}

/// The user that a client says that it is, and how it proves that.
pub struct Claim<'a> {
    pub user: &'a str,
    pub origin: &'a Origin,
    /// The connection is encrypted.
    pub has_tls: bool,
    /// The method that the client begins with, by name, and its answer to the challenge.
    pub method: &'a [u8],
    pub proof: Vec<u8>,
    /// The client understands that it shall use another method.
    pub can_switch: bool,
}

impl Claim<'_> {
    fn denied(&self, proof: &[u8]) -> HandshakeError {
        let has_password = !is_empty_proof(proof);
        SqlError::access_denied(self.user, &self.origin.host, has_password).into()
    }
}

/// An empty password has an empty proof, whatever the challenge was. Some clients send the zero that ends it.
fn is_empty_proof(proof: &[u8]) -> bool {
    matches!(proof, [] | [0])
}

/// The account that the client is and has proved to be. `challenge` is what it answered to, and what it may answer to
/// when it changes its user.
///
/// # Errors
/// 1045, 3118 for an account that is locked, 1251 and 3159 if the proof cannot be asked for.
pub fn authenticate<T: Transport>(
    packets: &mut PacketStream<T>,
    engine: &Engine,
    claim: &Claim<'_>,
    challenge: &mut Challenge,
) -> Result<Arc<Account>, HandshakeError> {
    let account = engine.account_of(claim.user, &claim.origin.names());
    let method = account.as_ref().map_or(FIRST_METHOD, |found| found.method);
    let mut proof = claim.proof.clone();
    let has_password = account
        .as_ref()
        .is_none_or(|account| !account.verifier.is_empty());
    let is_other_method = claim.method != method.name().as_bytes();
    if is_other_method && (has_password || !is_empty_proof(&proof)) {
        proof = switch_method(packets, claim, method, challenge)?;
    }
    let account = account.ok_or_else(|| claim.denied(&proof))?;
    let is_right = match (has_password, method) {
        (false, _) => is_empty_proof(&proof),
        (true, _) if is_empty_proof(&proof) => false,
        (true, AuthenticationMethod::NativePassword) => {
            native_proof_is_right(&account.verifier, challenge, &proof)
        }
        (true, AuthenticationMethod::CachingSha2Password) => {
            prove_by_sha2(packets, engine, claim, &account, (challenge, &proof))?
        }
    };
    if !is_right || (account.require_tls && !claim.has_tls) {
        return Err(claim.denied(&proof));
    }
    check_unlocked(&account, claim.user, claim.origin)?;
    Ok(account)
}

fn check_unlocked(account: &Account, user: &str, origin: &Origin) -> Result<(), SqlError> {
    match account.locked {
        true => Err(SqlError::new(
            codes::ACCOUNT_HAS_BEEN_LOCKED,
            format!(
                "Access denied for user '{user}'@'{}'. Account is locked.",
                origin.host
            ),
        )),
        false => Ok(()),
    }
}

/// The account of a client that says its password itself, on a connection without TLS.
///
/// # Errors
/// 1045, 3118 for an account that is locked, 3159 where connections have to be secure.
pub fn authenticate_by_password(
    engine: &Engine,
    (user, password): (&str, &str),
    origin: &Origin,
) -> Result<Arc<Account>, SqlError> {
    if engine.requires_secure_transport() {
        return Err(SqlError::insecure_transport());
    }
    let found = engine.account_of(user, &origin.names());
    let right = found.filter(|account| {
        engine.is_password_right(account, password.as_bytes()) && !account.require_tls
    });
    let account =
        right.ok_or_else(|| SqlError::access_denied(user, &origin.host, !password.is_empty()))?;
    check_unlocked(&account, user, origin)?;
    Ok(account)
}

/// Asks for a proof by another method.
fn switch_method<T: Transport>(
    packets: &mut PacketStream<T>,
    claim: &Claim<'_>,
    method: AuthenticationMethod,
    challenge: &mut Challenge,
) -> Result<Vec<u8>, HandshakeError> {
    if !claim.can_switch {
        return Err(unsupported_by_client().into());
    }
    *challenge = new_challenge()?;
    let data = [&challenge[..], &[0]].concat();
    packets.write_packet(|out| {
        AuthSwitchRequest::new(method.name().as_bytes(), data).serialize(out);
        Ok(())
    })?;
    packets.flush()?;
    let mut proof = Vec::new();
    packets.read_packet(&mut proof)?;
    Ok(proof)
}

fn prove_by_sha2<T: Transport>(
    packets: &mut PacketStream<T>,
    engine: &Engine,
    claim: &Claim<'_>,
    account: &Account,
    (challenge, proof): (&Challenge, &[u8]),
) -> Result<bool, HandshakeError> {
    let is_secure = claim.origin.is_secure(claim.has_tls);
    match engine.is_sha2_proof_right(account, challenge, proof) {
        Some(true) => {
            write_more_data(packets, FAST_PROOF_IS_RIGHT)?;
            return Ok(true);
        }
        Some(false) if !is_secure => return Ok(false),
        None if !is_secure => {
            return Err(SqlError::new(
                codes::SECURE_TRANSPORT_REQUIRED,
                format!(
                    "Authentication of '{}' by caching_sha2_password requires a secure connection: connect once with TLS \
                     or through the Unix socket after each start of the server, or use mysql_native_password",
                    claim.user
                ),
            )
            .into());
        }
        _ => {}
    }
    write_more_data(packets, SEND_PASSWORD)?;
    packets.flush()?;
    let mut password = Vec::new();
    packets.read_packet(&mut password)?;
    if password.last() == Some(&0) {
        password.pop();
    }
    Ok(engine.is_sha2_password_right(account, &password))
}

fn write_more_data<T: Transport>(packets: &mut PacketStream<T>, what: u8) -> Result<(), SqlError> {
    packets.write_packet(|out| {
        out.extend_from_slice(&[MORE_DATA, what]);
        Ok(())
    })
}

pub fn unsupported_by_client() -> SqlError {
    SqlError::new(
        codes::NOT_SUPPORTED_AUTH_MODE,
        "Client does not support authentication protocol requested by server; consider upgrading MySQL client",
    )
}

/// Random bytes, none of them zero because clients take the challenge as a string that ends with one.
pub fn new_challenge() -> Result<Challenge, SqlError> {
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

    #[test]
    fn the_same_machine_has_many_addresses() {
        for (address, names) in [
            ("127.0.0.1", &["localhost", "127.0.0.1"][..]),
            ("127.8.9.10", &["localhost", "127.8.9.10"]),
            ("::1", &["localhost", "::1"]),
            ("::ffff:127.0.0.1", &["localhost", "127.0.0.1"]),
            ("10.0.0.7", &["10.0.0.7"]),
            ("::ffff:10.0.0.7", &["10.0.0.7"]),
        ] {
            let origin = Origin::network(address.parse().expect("an address"));
            assert_eq!(origin.names(), names, "{address}");
            assert!(!origin.is_secure(false) && origin.is_secure(true));
        }
        assert!(Origin::unix_socket().is_secure(false));
    }
}
