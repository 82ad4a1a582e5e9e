//! Keys that are compared for being equal only, of which a digest does as well as the whole.

use sha2::{Digest, Sha256};

/// Bytes of a digest. Keys that are as long, or longer, are kept as theirs.
const DIGEST_BYTES: usize = 32;

/// A distinct key in no more than 32 bytes. Those of different keys differ: nobody can make two texts of one digest.
pub(crate) fn short_key(key: &[u8]) -> Box<[u8]> {
    match key.len() < DIGEST_BYTES {
        true => key.into(),
        false => Sha256::digest(key).as_slice().into(),
    }
}
