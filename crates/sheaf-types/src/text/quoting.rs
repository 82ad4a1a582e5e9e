//! Names and strings as a statement writes them.

/// A name in backticks.
pub fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A string literal.
pub fn quoted_string(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_inside_are_doubled() {
        assert_eq!(quoted_name("a`b"), "`a``b`");
        assert_eq!(quoted_string("/b"), "'/b'");
        assert_eq!(quoted_string(r"/it's\here"), r"'/it''s\\here'");
    }
}
