//! A digest in a schema: what statements are counted by.

use sheaf_frontend::digest::Digest;

/// A schema and a hash.
pub(super) type Key = (Option<String>, [u8; 32]);

/// A digest in a schema.
#[derive(Debug)]
pub(crate) struct DigestName {
    pub(crate) schema: Option<String>,
    pub(crate) digest: Digest,
}

impl DigestName {
    pub(super) fn new(schema: Option<&str>, digest: Digest) -> DigestName {
        DigestName {
            schema: schema.map(str::to_string),
            digest,
        }
    }

    pub(super) fn key(&self) -> Key {
        (self.schema.clone(), self.digest.hash)
    }
}
