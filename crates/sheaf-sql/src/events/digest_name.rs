//! A digest in a schema: what statements are counted by.

use sheaf_frontend::digest::Digest;

/// A schema and a hash.
pub(super) type Key = (Option<String>, [u8; 32]);

/// A digest in a schema.
#[derive(Debug)]
pub(crate) struct DigestName {
    pub(crate) schema: Option<String>,
    pub(crate) digest: Digest,
    /// Statements of it may have passwords in them: they are not shown.
    pub(crate) is_secret: bool,
}

impl DigestName {
    pub(super) fn new(schema: Option<&str>, digest: Digest) -> DigestName {
        const SECRETS: [&str; 3] = ["IDENTIFIED", "PASSWORD", "SOURCE_PASSWORD"];
        let is_secret = digest.text.split(' ').any(|word| SECRETS.contains(&word));
        DigestName {
            schema: schema.map(str::to_string),
            digest,
            is_secret,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_passwords_are_known() {
        let is_secret = |statement| DigestName::of_statement(statement).is_secret;
        assert!(is_secret("create user u identified by 'x'"));
        assert!(is_secret("set password = 'x'"));
        assert!(!is_secret("select `password` from t where a = 'PASSWORD'"));
    }
}
