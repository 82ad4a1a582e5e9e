//! Keys that AES_ENCRYPT and AES_DECRYPT derive from a password: HKDF (RFC 5869) and PBKDF2 (RFC 8018), both with
//! HMAC of SHA-512, as MySQL has them.
//!
//! A key of AES is at most half as long as what the digest gives, so one block of either is enough.

use sha2::{Digest, Sha512};

/// Of the digest.
const DIGEST_BYTES: usize = 64;

/// What the digest takes at a time.
const DIGEST_BLOCK_BYTES: usize = 128;

pub(super) type DerivedKey = [u8; DIGEST_BYTES];

/// HMAC (RFC 2104) with a key: the states behind its two paddings.
struct Hmac {
    inner: Sha512,
    outer: Sha512,
}

impl Hmac {
    fn new(key: &[u8]) -> Hmac {
        let mut padded = [0; DIGEST_BLOCK_BYTES];
        match padded.get_mut(..key.len()) {
            Some(start) => start.copy_from_slice(key),
            None => padded[..DIGEST_BYTES].copy_from_slice(&Sha512::digest(key)),
        }
        Hmac {
            inner: Sha512::new_with_prefix(padded.map(|byte| byte ^ 0x36)),
            outer: Sha512::new_with_prefix(padded.map(|byte| byte ^ 0x5C)),
        }
    }

    fn of(&self, pieces: &[&[u8]]) -> DerivedKey {
        let mut inner = self.inner.clone();
        pieces.iter().for_each(|piece| inner.update(piece));
        let outer = self.outer.clone().chain_update(inner.finalize());
        outer.finalize().into()
    }
}

/// HKDF: the first block of its output.
pub(super) fn hkdf(password: &[u8], salt: &[u8], info: &[u8]) -> DerivedKey {
    let extracted = Hmac::new(salt).of(&[password]);
    Hmac::new(&extracted).of(&[info, &[1]])
}

/// PBKDF2: the first block of its output.
pub(super) fn pbkdf2(password: &[u8], salt: &[u8], iterations: u32) -> DerivedKey {
    let hmac = Hmac::new(password);
    let mut last = hmac.of(&[salt, &1u32.to_be_bytes()]);
    let mut key = last;
    for _ in 1..iterations {
        last = hmac.of(&[&last]);
        key.iter_mut()
            .zip(last)
            .for_each(|(key, byte)| *key ^= byte);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Of RFC 4231, the first and the sixth test case.
    #[test]
    fn hmac_is_that_of_its_standard() {
        let digest = Hmac::new(&[0x0B; 20]).of(&[b"Hi ", b"There"]);
        assert!(
            hex(&digest).starts_with("87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b305")
        );
        let digest = Hmac::new(&[0xAA; 131])
            .of(&[b"Test Using Larger Than Block-Size Key - Hash Key First"]);
        assert!(
            hex(&digest).starts_with("80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b0137")
        );
    }

    #[test]
    fn pbkdf2_is_that_of_others() {
        let key = pbkdf2(b"password", b"salt", 2);
        assert!(
            hex(&key)
                .starts_with("e1d9c16aa681708a45f5c7c4e215ceb66e011a2e9f0040713f18aefdb866d53c")
        );
    }
}
