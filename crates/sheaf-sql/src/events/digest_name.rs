//! A digest in a schema: what statements are counted by.

use std::cmp::Ordering;

use sheaf_frontend::digest::Digest;

/// A digest in a schema.
#[derive(Debug, PartialEq, Eq)]
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
}

impl Ord for DigestName {
    fn cmp(&self, other: &DigestName) -> Ordering {
        let texts = self.digest.text.cmp(&other.digest.text);
        texts.then_with(|| self.schema.cmp(&other.schema))
    }
}

impl PartialOrd for DigestName {
    fn partial_cmp(&self, other: &DigestName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
