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

    #[cfg(test)]
    pub(crate) fn of_statement(statement: &str) -> DigestName {
        let reading = sheaf_frontend::digest::Reading::default();
        DigestName::new(None, Digest::of(statement, reading, 1024))
    }

    pub(super) fn key(&self) -> Key {
        (self.schema.clone(), self.digest.hash)
    }
}
