//! A text cut into blanks, quoted things, words and symbols, before tokens exist.
//!
//! ```text
//!   SELECT 'it''s' /* c */ , a1
//!   word   quoted  blank   symbol word
//! ```
//!
//! It is the walk that tells code from strings and comments. [`super::scan`], the bytes of requests and digests of
//! statements go this way.

use std::ops::Range;

/// A stretch of the text, by what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// White space and comments.
    Blank,
    /// A string or a quoted identifier, with its quotes.
    Quoted,
    /// A keyword, identifier or number.
    Word,
    /// One byte of anything else.
    Symbol(u8),
    /// `/*!`, with the version if there is one: the start of a comment that is code if the version fits.
    ExecutableStart(Option<u32>),
}

/// Cuts a text into pieces. Never fails: what is not closed runs to the end, and the tokeniser says so later. The text
/// may be bytes that are not UTF-8 (see [`super::statement_bytes`]); then pieces end at ASCII characters all the same.
#[derive(Clone)]
pub(crate) struct Pieces<'a> {
    bytes: &'a [u8],
    pub(crate) position: usize,
    /// Whether a backslash in a string is an escape.
    pub(crate) has_escapes: bool,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(text: &'a (impl AsRef<[u8]> + ?Sized)) -> Pieces<'a> {
        Pieces {
            bytes: text.as_ref(),
            position: 0,
            has_escapes: true,
        }
    }

    /// Leaves out what is in front of this byte, which begins a piece.
    pub(crate) fn skip_to(&mut self, position: usize) {
        self.position = position;
    }

    pub(crate) fn end_of_comment(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let end = rest.windows(2).position(|pair| pair == b"*/");
        end.map_or(self.bytes.len(), |at| from + at + 2)
    }

    fn end_of_line(&self, from: usize) -> usize {
        let end = self.bytes[from..].iter().position(|byte| *byte == b'\n');
        end.map_or(self.bytes.len(), |at| from + at + 1)
    }

    fn end_of_quoted(&self, from: usize, quote: u8) -> usize {
        let bytes = self.bytes;
        let mut at = from + 1;
        while at < bytes.len() {
            if bytes[at] == b'\\' && quote != b'`' && self.has_escapes {
                at += 2;
            } else if bytes[at] == quote {
                if bytes.get(at + 1) == Some(&quote) {
                    at += 2;
                } else {
                    return at + 1;
                }
            } else {
                at += 1;
            }
        }
        bytes.len()
    }
}

pub(crate) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@') || byte >= 0x80
}

impl Iterator for Pieces<'_> {
    type Item = (Piece, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.bytes;
        let start = self.position;
        let first = *bytes.get(start)?;
        let second = bytes.get(start + 1).copied();
        let (piece, end) = match (first, second) {
            (b'/', Some(b'*')) => {
                let marker = match bytes.get(start + 2) {
                    Some(b'!') => Some(start + 3),
                    // MariaDB's own executable comments are comments here.
                    _ => None,
                };
                match marker {
                    Some(version_start) => {
                        let digits = bytes[version_start..]
                            .iter()
                            .take(6)
                            .take_while(|b| b.is_ascii_digit())
                            .count();
                        let digits = if digits >= 5 { digits } else { 0 };
                        let end = version_start + digits;
                        let version = std::str::from_utf8(&bytes[version_start..end]);
                        let version = version.ok().and_then(|digits| digits.parse().ok());
                        (Piece::ExecutableStart(version), end)
                    }
                    // An optimizer hint is no blank: statements keep it.
                    None if bytes.get(start + 2) == Some(&b'+') => {
                        (Piece::Quoted, self.end_of_comment(start + 2))
                    }
                    None => {
                        let end = self.end_of_comment(start + 2);
                        // What is not closed is part of the statement, and an error.
                        let is_closed = end >= start + 4 && bytes[..end].ends_with(b"*/");
                        let piece = if is_closed {
                            Piece::Blank
                        } else {
                            Piece::Quoted
                        };
                        (piece, end)
                    }
                }
            }
            (b'#', _) => (Piece::Blank, self.end_of_line(start)),
            (b'-', Some(b'-'))
                if bytes
                    .get(start + 2)
                    .is_none_or(|b| b.is_ascii_whitespace() || b.is_ascii_control()) =>
            {
                (Piece::Blank, self.end_of_line(start))
            }
            (b'\'' | b'"' | b'`', _) => (Piece::Quoted, self.end_of_quoted(start, first)),
            (byte, _) if byte.is_ascii_whitespace() => {
                let length = bytes[start..]
                    .iter()
                    .take_while(|b| b.is_ascii_whitespace())
                    .count();
                (Piece::Blank, start + length)
            }
            (byte, _) if is_word_byte(byte) => {
                let length = bytes[start..]
                    .iter()
                    .take_while(|b| is_word_byte(**b))
                    .count();
                (Piece::Word, start + length)
            }
            (byte, _) => (Piece::Symbol(byte), start + 1),
        };
        let end = end.min(bytes.len());
        self.position = end;
        Some((piece, start..end))
    }
}
