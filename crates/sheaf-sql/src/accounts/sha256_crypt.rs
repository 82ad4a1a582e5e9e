//! SHA-crypt with SHA-256: a slow, salted digest of a password (Ulrich Drepper, "Unix crypt using SHA-256 and
//! SHA-512"), which is what caching_sha2_password keeps.

use sha2::{Digest, Sha256};

/// Characters of a digest.
pub const DIGEST_CHARACTERS: usize = 43;
const SHA256_BYTES: usize = 32;

/// The alphabet of crypt's numbers of six bits.
pub const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The digest of a password. It takes `rounds` times the time of SHA-256 over some dozen bytes.
pub fn sha256_crypt(password: &[u8], salt: &[u8], rounds: usize) -> String {
    let alternate = Sha256::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize();
    let mut mixed = Sha256::new().chain_update(password).chain_update(salt);
    mixed.update(repeated(&alternate, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        match bits & 1 {
            1 => mixed.update(alternate),
            _ => mixed.update(password),
        }
        bits >>= 1;
    }
    let mut digest = mixed.finalize();

    let password_digest = Sha256::digest(password.repeat(password.len()));
    let password_bytes = repeated(&password_digest, password.len());
    let salt_digest = Sha256::digest(salt.repeat(16 + usize::from(digest[0])));
    let salt_bytes = repeated(&salt_digest, salt.len());
    for round in 0..rounds {
        let mut next = Sha256::new();
        let is_odd = round % 2 == 1;
        match is_odd {
            true => next.update(&password_bytes),
            false => next.update(digest),
        }
        if round % 3 != 0 {
            next.update(&salt_bytes);
        }
        if round % 7 != 0 {
            next.update(&password_bytes);
        }
        match is_odd {
            true => next.update(digest),
            false => next.update(&password_bytes),
        }
        digest = next.finalize();
    }
    printed(&digest.into())
}

/// The first `length` bytes of a digest that goes on for ever.
fn repeated(digest: &[u8], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

/// Three bytes are four characters; which bytes go together is crypt's.
fn printed(digest: &[u8; SHA256_BYTES]) -> String {
    let mut text = String::with_capacity(DIGEST_CHARACTERS);
    let mut push = |high: u8, middle: u8, low: u8, characters: usize| {
        let mut bits = u32::from_be_bytes([0, high, middle, low]);
        for _ in 0..characters {
            text.push(char::from(ALPHABET[bits as usize & 0x3F]));
            bits >>= 6;
        }
    };
    let mut group = [0, 10, 20];
    for _ in 0..10 {
        let [high, middle, low] = group;
        push(digest[high], digest[middle], digest[low], 4);
        group = [low + 1, high + 1, middle + 1];
    }
    push(0, digest[31], digest[30], 3);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As glibc prints them.
    #[test]
    fn digests_are_those_of_crypt() {
        let seventy = "x".repeat(70);
        for (password, salt, rounds, digest) in [
            (
                "Hello world!",
                "saltstring",
                5_000,
                "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            ),
            (
                "Hello world!",
                "saltstringsaltst",
                10_000,
                "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA",
            ),
            (
                &seventy,
                "q",
                1_000,
                "XLNv.U71Y2Og6WMzVXNuNBOQHzwqxYuXUBYIM.Oai1D",
            ),
            (
                "",
                "abc",
                5_000,
                "bBHLwRRW2Li0XKaX13kz/g2fkDil4Jx46aNvd.48MS8",
            ),
        ] {
            let found = sha256_crypt(password.as_bytes(), salt.as_bytes(), rounds);
            assert_eq!(found, digest, "{password} {salt}");
            assert_eq!(found.len(), DIGEST_CHARACTERS);
        }
    }
}
