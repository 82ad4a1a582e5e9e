//! A path from its text. An error has the position where MySQL's reader stops, in bytes.

use super::{Index, Leg};
use crate::json::JsonError;
use crate::json::text::read::read_string;

/// Legs of a path, at most. MySQL has no limit but the length of a text.
const MAX_LEGS: usize = 10_000;

pub(super) fn parse(text: &str) -> Result<Vec<Leg>, JsonError> {
    let mut reader = Reader { text, at: 0 };
    match reader.path() {
        Some(legs) => Ok(legs),
        None => Err(JsonError::Path {
            position: reader.at,
        }),
    }
}

/// Where the text is read. `None` from its functions is an error at the present position.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    /// Steps over the next byte. `None` if it is another one, which is stepped over as well.
    fn expect(&mut self, byte: u8) -> Option<()> {
        let next = self.peek()?;
        self.at += 1;
        (next == byte).then_some(())
    }

    fn skip_spaces(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        self.at > start
    }

    fn path(&mut self) -> Option<Vec<Leg>> {
        self.skip_spaces();
        self.expect(b'$')?;
        let mut legs = Vec::new();
        loop {
            self.skip_spaces();
            let leg = match self.peek() {
                None if legs.last() == Some(&Leg::Ellipsis) => return None,
                None => return Some(legs),
                Some(b'.') => self.member()?,
                Some(b'[') => self.cell()?,
                Some(b'*') => self.ellipsis()?,
                Some(_) => return None,
            };
            if legs.len() == MAX_LEGS {
                return None;
            }
            legs.push(leg);
        }
    }

    fn ellipsis(&mut self) -> Option<Leg> {
        self.at += 1;
        self.expect(b'*')?;
        let follows = self.peek()?;
        (follows != b'*').then_some(Leg::Ellipsis)
    }

    fn member(&mut self) -> Option<Leg> {
        self.at += 1;
        self.skip_spaces();
        match self.peek()? {
            b'*' => {
                self.at += 1;
                Some(Leg::AnyMember)
            }
            b'"' => {
                let start = self.at;
                self.at += self.quoted_bytes();
                read_string(&self.text[start..self.at]).map(Leg::Member)
            }
            _ => {
                let is_end = |&byte: &u8| is_space(byte) || matches!(byte, b'.' | b'[' | b'*');
                let rest = self.rest();
                let length = rest.iter().position(is_end).unwrap_or(rest.len());
                let name = &self.text[self.at..self.at + length];
                self.at += length;
                let key = match name.contains('\\') {
                    true => read_string(&format!("\"{name}\""))?,
                    false => name.to_string(),
                };
                is_identifier(&key).then_some(Leg::Member(key))
            }
        }
    }

    /// Bytes of a string with its quotes, or of all the rest if it does not end.
    fn quoted_bytes(&self) -> usize {
        let rest = self.rest();
        let mut at = 1;
        while let Some(&byte) = rest.get(at) {
            match byte {
                b'"' => return at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        rest.len()
    }

    fn cell(&mut self) -> Option<Leg> {
        self.at += 1;
        self.skip_spaces();
        let leg = match self.peek()? {
            b'*' => {
                self.at += 1;
                Leg::AnyCell
            }
            _ => {
                let from = self.index()?;
                let is_spaced = self.skip_spaces();
                let is_range =
                    is_spaced && matches!(self.rest(), [b't', b'o', after, ..] if is_space(*after));
                match is_range {
                    false => Leg::Cell(from),
                    true => {
                        self.at += 2;
                        self.skip_spaces();
                        let to = self.index()?;
                        Some(to).filter(|to| !is_backwards(from, *to))?;
                        Leg::Range(from, to)
                    }
                }
            }
        };
        self.skip_spaces();
        self.expect(b']')?;
        Some(leg)
    }

    fn index(&mut self) -> Option<Index> {
        if !self.rest().starts_with(b"last") {
            return self.number().map(Index::FromStart);
        }
        self.at += b"last".len();
        let end = self.at;
        self.skip_spaces();
        if self.peek() != Some(b'-') {
            // Spaces before `to` belong to the range.
            self.at = end;
            return Some(Index::FromEnd(0));
        }
        self.at += 1;
        self.skip_spaces();
        self.number().map(Index::FromEnd)
    }

    fn number(&mut self) -> Option<u32> {
        let rest = self.rest();
        let is_end = |byte: &u8| !byte.is_ascii_digit();
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        let number = self.text[self.at..self.at + length].parse().ok()?;
        self.at += length;
        Some(number)
    }
}

/// A range that no array has an element in.
fn is_backwards(from: Index, to: Index) -> bool {
    match (from, to) {
        (Index::FromStart(from), Index::FromStart(to)) => from > to,
        (Index::FromEnd(from), Index::FromEnd(to)) => from < to,
        _ => false,
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a key needs no quotes: MySQL takes it for an identifier of ECMAScript.
///
/// Of a character beyond ASCII, MySQL looks at the last byte of the code point only. So it refuses some letters and
/// takes some characters that are none. Paths that MySQL shows must be read here, and the other way round.
pub(super) fn is_identifier(key: &str) -> bool {
    let mut characters = key.chars();
    characters.next().is_some_and(starts_identifier)
        && characters.all(|character| {
            let last_byte = character as u32 as u8;
            starts_identifier(character)
                || last_byte.is_ascii_digit()
                || is_combining(character)
                || matches!(
                    character,
                    '\u{200C}' | '\u{200D}' | '\u{203F}' | '\u{2040}' | '\u{FF3F}'
                )
        })
}

fn starts_identifier(character: char) -> bool {
    let last_byte = character as u32 as u8;
    let is_letter = last_byte.is_ascii_alphabetic() || (0x80..=0xFE).contains(&last_byte);
    matches!(character, '$' | '_') || is_letter && !is_combining(character)
}

/// Marks that change the character before them.
fn is_combining(character: char) -> bool {
    ('\u{300}'..='\u{36F}').contains(&character)
}
