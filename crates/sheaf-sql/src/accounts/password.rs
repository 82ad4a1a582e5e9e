//! Passwords: what is kept of them, and how a client proves that it knows one.
//!
//! ```text
//!   mysql_native_password   kept   SHA1(SHA1(password))
//!                           proof  SHA1(password) xor SHA1(challenge, SHA1(SHA1(password)))
//!   caching_sha2_password   kept   salt, SHA-crypt(password, salt, 5,000 rounds)
//!                           proof  SHA256(password) xor SHA256(SHA256(SHA256(password)), challenge)
//! ```
//!
//! The second method's proof can only be checked with SHA256(SHA256(password)), which is not kept. So after a start of
//! the server each user's first connection sends the password itself, on a connection that cannot be listened to. The
//! digest stays in memory for those that follow. Both are described in the MySQL Source Code Documentation,
//! "Authentication Methods".

use sha1::Sha1;
use sha2::{Digest, Sha256};
use sheaf_table::AuthenticationMethod;
use sheaf_types::error::codes;
use sheaf_types::text::hexadecimal::digits_of;

use super::sha256_crypt::{ALPHABET, DIGEST_CHARACTERS, sha256_crypt};
use crate::error::{Result, SqlError};

/// The longest password, in bytes.
pub const MAX_PASSWORD_BYTES: usize = 256;

const SHA1_BYTES: usize = 20;
const SHA256_BYTES: usize = 32;
const SALT_BYTES: usize = 20;
/// Verifiers write their rounds in thousands.
const ROUNDS_UNIT: usize = 1_000;
const ROUNDS: usize = 5 * ROUNDS_UNIT;
/// What a verifier that was given as text may ask for.
const MAX_ROUNDS: usize = 100 * ROUNDS_UNIT;

/// SHA256(SHA256(password))
pub type FastDigest = [u8; SHA256_BYTES];

/// What is kept of a password; of none nothing.
///
/// # Errors
/// 1819 if it is too long, 1105 if the system gives no random numbers.
pub fn verifier(method: AuthenticationMethod, password: &str) -> Result<String> {
    if password.len() > MAX_PASSWORD_BYTES {
        return Err(SqlError::new(
            codes::NOT_VALID_PASSWORD,
            format!(
                "Your password does not satisfy the current policy requirements: it is longer than {MAX_PASSWORD_BYTES} bytes"
            ),
        ));
    }
    if password.is_empty() {
        return Ok(String::new());
    }
    Ok(match method {
        AuthenticationMethod::NativePassword => native_verifier(password.as_bytes()),
        AuthenticationMethod::CachingSha2Password => {
            let mut salt = [0; SALT_BYTES];
            getrandom::fill(&mut salt).map_err(|error| {
                SqlError::unknown(format!("the system gives no random numbers: {error}"))
            })?;
            let salt: String = salt
                .iter()
                .map(|byte| char::from(ALPHABET[usize::from(byte % 64)]))
                .collect();
            sha2_verifier(password.as_bytes(), &salt, ROUNDS)
        }
    })
}

fn native_verifier(password: &[u8]) -> String {
    let digest = Sha1::digest(Sha1::digest(password));
    format!("*{}", digits_of(&digest))
}

fn sha2_verifier(password: &[u8], salt: &str, rounds: usize) -> String {
    let digest = sha256_crypt(password, salt.as_bytes(), rounds);
    format!("$A${:03X}${salt}{digest}", rounds / ROUNDS_UNIT)
}

/// The digest that a native verifier has.
fn native_digest(verifier: &str) -> Option<[u8; SHA1_BYTES]> {
    let hex = verifier.strip_prefix('*')?;
    let mut digest = [0; SHA1_BYTES];
    if hex.len() != 2 * SHA1_BYTES || !hex.is_ascii() {
        return None;
    }
    for (byte, at) in digest.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
    }
    Some(digest)
}

/// Salt, rounds and digest of a SHA-2 verifier.
fn sha2_parts(verifier: &str) -> Option<(&str, usize, &str)> {
    let (rounds, rest) = verifier.strip_prefix("$A$")?.split_once('$')?;
    let rounds = usize::from_str_radix(rounds, 16).ok()? * ROUNDS_UNIT;
    if rest.len() != SALT_BYTES + DIGEST_CHARACTERS || !(1..=MAX_ROUNDS).contains(&rounds) {
        return None;
    }
    let (salt, digest) = rest.split_at_checked(SALT_BYTES)?;
    Some((salt, rounds, digest))
}

/// Whether a text is a verifier of the method, as IDENTIFIED WITH … AS takes it.
pub fn is_verifier(method: AuthenticationMethod, verifier: &str) -> bool {
    verifier.is_empty()
        || match method {
            AuthenticationMethod::NativePassword => native_digest(verifier).is_some(),
            AuthenticationMethod::CachingSha2Password => sha2_parts(verifier).is_some(),
        }
}

/// Whether a client's answer to a challenge proves that it knows the password of a native verifier.
pub fn native_proof_is_right(verifier: &str, challenge: &[u8], proof: &[u8]) -> bool {
    let Some(digest) = native_digest(verifier) else {
        return false;
    };
    let mask = Sha1::new()
        .chain_update(challenge)
        .chain_update(digest)
        .finalize();
    proof.len() == SHA1_BYTES && is_same(&Sha1::digest(xor(proof, &mask)), &digest)
}

/// Whether a password is that of a native verifier.
pub fn is_native_password(verifier: &str, password: &[u8]) -> bool {
    let digest = Sha1::digest(Sha1::digest(password));
    native_digest(verifier).is_some_and(|own| is_same(&own, &digest))
}

/// The same for caching_sha2_password.
pub fn sha2_proof_is_right(digest: &FastDigest, challenge: &[u8], proof: &[u8]) -> bool {
    let mask = Sha256::new()
        .chain_update(digest)
        .chain_update(challenge)
        .finalize();
    proof.len() == SHA256_BYTES && is_same(&Sha256::digest(xor(proof, &mask)), digest)
}

/// Whether a password is that of a SHA-2 verifier. This takes milliseconds, as it should.
pub fn is_sha2_password(verifier: &str, password: &[u8]) -> bool {
    let Some((salt, rounds, digest)) = sha2_parts(verifier) else {
        return false;
    };
    password.len() <= MAX_PASSWORD_BYTES
        && is_same(
            sha256_crypt(password, salt.as_bytes(), rounds).as_bytes(),
            digest.as_bytes(),
        )
}

/// What the proofs of caching_sha2_password are checked with.
pub fn fast_digest(password: &[u8]) -> FastDigest {
    Sha256::digest(Sha256::digest(password)).into()
}

fn xor(bytes: &[u8], mask: &[u8]) -> Vec<u8> {
    bytes.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// Compares secrets in a time that does not depend on where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |seen, (a, b)| seen | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_by_what_is_kept_of_it() {
        let kept = native_verifier(b"geheim");
        assert!(is_native_password(&kept, b"geheim"));
        assert!(!is_native_password(&kept, b"Geheim"));
        assert!(!is_native_password("", b""));
    }

    const CHALLENGE: &[u8; 20] = b"ABCDEFGHIJKLMNOPQRST";

    #[test]
    fn a_native_verifier_is_that_of_mysql() {
        // SELECT PASSWORD('password')
        let verifier = native_verifier(b"password");
        assert_eq!(verifier, "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        let stage = Sha1::digest(b"password");
        let mask = Sha1::new()
            .chain_update(CHALLENGE)
            .chain_update(Sha1::digest(stage))
            .finalize();
        let mut proof = xor(&stage, &mask);
        assert!(native_proof_is_right(&verifier, CHALLENGE, &proof));
        assert!(!native_proof_is_right(
            &verifier,
            b"another challenge...",
            &proof
        ));
        assert!(!native_proof_is_right(&verifier, CHALLENGE, &proof[1..]));
        proof[7] ^= 1;
        assert!(!native_proof_is_right(&verifier, CHALLENGE, &proof));
        assert!(!native_proof_is_right("*ABC", CHALLENGE, &proof));
        assert!(!native_proof_is_right("", CHALLENGE, &[]));
    }

    #[test]
    fn a_sha2_verifier_knows_its_password() {
        let method = AuthenticationMethod::CachingSha2Password;
        let kept = verifier(method, "sesame").expect("random numbers");
        assert!(kept.starts_with("$A$005$"), "{kept}");
        assert!(is_verifier(method, &kept));
        assert!(is_sha2_password(&kept, b"sesame"));
        assert!(!is_sha2_password(&kept, b"Sesame"));
        assert_ne!(verifier(method, "sesame").expect("random numbers"), kept);

        let stage: [u8; 32] = Sha256::digest(b"sesame").into();
        let mask = Sha256::new()
            .chain_update(Sha256::digest(stage))
            .chain_update(CHALLENGE)
            .finalize();
        let proof = xor(&stage, &mask);
        assert!(sha2_proof_is_right(
            &fast_digest(b"sesame"),
            CHALLENGE,
            &proof
        ));
        assert!(!sha2_proof_is_right(
            &fast_digest(b"open"),
            CHALLENGE,
            &proof
        ));
    }

    #[test]
    fn what_is_no_verifier_is_refused() {
        for (method, texts) in [
            (
                AuthenticationMethod::NativePassword,
                [
                    "2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19",
                    "*",
                    "*é470C0C06DEE42FD1618BB99005ADCA2EC9D1E19",
                ],
            ),
            (
                AuthenticationMethod::CachingSha2Password,
                [
                    "$A$005$",
                    "$A$FFF$0123456789012345678901234567890123456789012345678901234567890123",
                    "$B$005$",
                ],
            ),
        ] {
            for text in texts {
                assert!(!is_verifier(method, text), "{text}");
            }
        }
        let long = "x".repeat(MAX_PASSWORD_BYTES + 1);
        let method = AuthenticationMethod::CachingSha2Password;
        assert_eq!(
            verifier(method, &long).map_err(|error| error.code),
            Err(1819)
        );
    }
}
