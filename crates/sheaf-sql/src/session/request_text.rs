//! The text of what a client has sent, as the parser reads it.
//!
//! It comes in the client's character set, and `sql_mode` may say that a backslash in a string is a character. Here it
//! becomes text in which a backslash is an escape.

use std::borrow::Cow;

use crate::error::Result;
use crate::parser::scan;
use crate::parser::statement_bytes::statement_text;
use crate::session::Session;

impl Session {
    /// The text of a request in `character_set_client`. Error 1300 if it has bytes that are no text outside of
    /// literals.
    pub fn statement_text<'r>(&self, request: &'r [u8]) -> Result<Cow<'r, str>> {
        let mode = self.variables.sql_mode();
        let has_ansi_quotes = || mode.contains("ANSI_QUOTES");
        let encoding = self.variables.client_encoding();
        if !mode.contains("NO_BACKSLASH_ESCAPES") {
            return statement_text(request, encoding, has_ansi_quotes);
        }
        let escaped = scan::with_escaped_backslashes(request, has_ansi_quotes());
        let text = statement_text(&escaped, encoding, has_ansi_quotes)?;
        Ok(Cow::Owned(text.into_owned()))
    }

    /// A text of a client with escapes in its strings, whatever `sql_mode` says of backslashes.
    pub fn text_by_mode<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mode = self.variables.sql_mode();
        if !mode.contains("NO_BACKSLASH_ESCAPES") {
            return Cow::Borrowed(text);
        }
        let has_ansi_quotes = mode.contains("ANSI_QUOTES");
        match scan::with_escaped_backslashes(text.as_bytes(), has_ansi_quotes) {
            // Only ASCII characters were added.
            Cow::Owned(escaped) => match String::from_utf8(escaped) {
                Ok(escaped) => Cow::Owned(escaped),
                Err(_) => Cow::Borrowed(text),
            },
            Cow::Borrowed(_) => Cow::Borrowed(text),
        }
    }
}
