//! From the bytes of a statement to the text that is parsed.
//!
//! Clients send bytes. Nearly always they are UTF-8, and then they are the text. But a string literal may hold
//! anything: dumps and drivers write BLOBs between quotes, with no more than the quotes and backslashes escaped.
//!
//! ```text
//!   INSERT INTO b VALUES (1, _binary 'a\x80\xFF')    ->    INSERT INTO b VALUES (1, _binary X'6180FF')
//! ```
//!
//! So a statement that is not UTF-8 is walked through once, and literals that are not become hexadecimal ones.
//! Everything else stays as it is: the literals that are UTF-8, and the places of words before the first that was
//! changed.
//!
//! A client of latin1, or of another character set of one byte a character, has all of its statement converted, except
//! what it marks as of another set. A column of bytes must get the bytes that it has sent, and a column of text the
//! text. So the literals of INSERT and UPDATE become `_latin1 X'E9'`, which is either, as the column asks for it.
//!
//! In sets of several bytes a character, such as gbk, the second byte may look like a backslash. So what is a string is
//! found in an outline of the statement, where such characters have no byte of ASCII.

use std::borrow::Cow;
use std::ops::Range;

use sheaf_types::error::codes;
use sheaf_types::text::hexadecimal::{bytes_of, digits_of};
use sqlparser::ast::{Expr, Ident, Value};

use super::pieces::{Piece, Pieces};
use crate::encoding::{TableSet, TextEncoding};
use crate::error::{Result, SqlError};

/// Of the offending bytes, a message shows this many.
const SHOWN_BYTES: usize = 6;
/// Statements whose literals are assigned to columns.
const ASSIGNING: [&[u8]; 3] = [b"INSERT", b"REPLACE", b"UPDATE"];

/// The text of a statement that came in this encoding. `has_ansi_quotes`: what is between double quotes is a name.
///
/// # Errors
/// 1300 for names and strings that are not of the encoding, and for whatever else is no comment.
pub fn statement_text(
    bytes: &[u8],
    encoding: TextEncoding,
    has_ansi_quotes: impl FnOnce() -> bool,
) -> Result<Cow<'_, str>> {
    // Some drivers send the end of the C string, too.
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if let Some(text) = plain_text(bytes, encoding) {
        return Ok(Cow::Borrowed(text));
    }
    let outline = match encoding {
        TextEncoding::SeveralBytes(set) => Cow::Owned(set.outline(bytes)),
        _ => Cow::Borrowed(bytes),
    };
    let mut conversion = Conversion {
        bytes,
        outline: &outline,
        encoding,
        has_ansi_quotes: has_ansi_quotes(),
        is_assigning: None,
        text: String::with_capacity(bytes.len() + bytes.len() / 2),
        word: None,
    };
    conversion.run()?;
    Ok(Cow::Owned(conversion.text))
}

/// Bytes that are text as they are.
fn plain_text(bytes: &[u8], encoding: TextEncoding) -> Option<&str> {
    match encoding {
        _ if encoding.table_set().is_some() && !bytes.is_ascii() => None,
        _ => std::str::from_utf8(bytes).ok(),
    }
}

/// The word that was read last, if nothing but blanks have come since.
struct LastWord {
    /// Its bytes in the statement, and where it begins in the text.
    range: Range<usize>,
    text_start: usize,
}

/// What the word in front of a string says about it.
enum Introducer<'a> {
    None,
    /// `N'text'`
    National,
    /// `x'41'` and `b'01'`
    Digits,
    /// `_latin1'text'`
    CharacterSet(&'a [u8]),
}

struct Conversion<'a> {
    bytes: &'a [u8],
    /// The same, but for characters of several bytes, which are 0x80 each.
    outline: &'a [u8],
    encoding: TextEncoding,
    has_ansi_quotes: bool,
    /// Whether the statement is one of [`ASSIGNING`], once its first word is known.
    is_assigning: Option<bool>,
    text: String,
    word: Option<LastWord>,
}

impl<'a> Conversion<'a> {
    fn run(&mut self) -> Result<()> {
        let bytes = self.bytes;
        let mut pieces = Pieces::new(self.outline);
        while let Some((piece, range)) = pieces.next() {
            match piece {
                Piece::Blank => self.push_lossy(range),
                Piece::Quoted if self.is_string(&range) => self.push_strings(&mut pieces, range)?,
                Piece::Quoted if bytes[range.start] == b'/' => self.push_lossy(range),
                Piece::Word => {
                    let word = LastWord {
                        range: range.clone(),
                        text_start: self.text.len(),
                    };
                    self.note_first_word(&bytes[range.clone()]);
                    self.push_name(range)?;
                    self.word = Some(word);
                }
                Piece::Symbol(b';') => {
                    self.is_assigning = None;
                    self.push_name(range)?;
                }
                _ => self.push_name(range)?,
            }
        }
        Ok(())
    }

    fn note_first_word(&mut self, word: &[u8]) {
        let is_assigning = || ASSIGNING.iter().any(|verb| verb.eq_ignore_ascii_case(word));
        self.is_assigning.get_or_insert_with(is_assigning);
    }

    fn is_string(&self, range: &Range<usize>) -> bool {
        match self.bytes[range.start] {
            b'\'' => true,
            b'"' => !self.has_ansi_quotes,
            _ => false,
        }
    }

    /// Comments and hints. What is not text in them does not matter.
    fn push_lossy(&mut self, range: Range<usize>) {
        let bytes = &self.bytes[range];
        match (plain_text(bytes, self.encoding), self.encoding.table_set()) {
            (Some(text), _) => self.text.push_str(text),
            (None, Some(set)) => self.text.push_str(&set.decode(bytes)),
            (None, _) => self.text.push_str(&String::from_utf8_lossy(bytes)),
        }
    }

    /// What is neither a string nor a comment.
    fn push_name(&mut self, range: Range<usize>) -> Result<()> {
        self.word = None;
        let bytes = &self.bytes[range];
        match (plain_text(bytes, self.encoding), self.encoding.table_set()) {
            (Some(text), _) => self.text.push_str(text),
            // Without quotes, a byte that is no character is the error that a question mark is.
            (None, Some(set)) if !matches!(bytes, [b'`' | b'"', ..]) => {
                self.text.push_str(&set.decode(bytes));
            }
            (None, Some(set)) => {
                let text = set.decode_exact(bytes);
                let text = text.ok_or_else(|| invalid_string_of(set, bytes))?;
                self.text.push_str(&text);
            }
            (None, _) => return Err(invalid_string(bytes)),
        }
        Ok(())
    }

    /// The text of strings with their quotes, in which each byte is of a character.
    fn push_exact(&mut self, set: TableSet, strings: &[u8]) -> Result<()> {
        let text = set.decode_exact(strings);
        let text = text.ok_or_else(|| invalid_string_of(set, strings))?;
        self.text.push_str(&text);
        Ok(())
    }

    fn introducer(&self, string: &Range<usize>) -> Introducer<'a> {
        let Some(word) = &self.word else {
            return Introducer::None;
        };
        let is_adjacent = word.range.end == string.start;
        match &self.bytes[word.range.clone()] {
            b"n" | b"N" if is_adjacent => Introducer::National,
            b"x" | b"X" | b"b" | b"B" if is_adjacent => Introducer::Digits,
            [b'_', name @ ..] if !name.is_empty() => Introducer::CharacterSet(name),
            _ => Introducer::None,
        }
    }

    /// A string and those right behind it, which are one literal together.
    fn push_strings(&mut self, pieces: &mut Pieces<'a>, first: Range<usize>) -> Result<()> {
        let whole = first.start..self.end_of_strings(pieces, first.end);
        let introducer = self.introducer(&first);
        let word = self.word.take();
        let is_plain = plain_text(&self.bytes[whole.clone()], self.encoding).is_some();
        if matches!(introducer, Introducer::Digits) {
            return self.push_name(first);
        }
        if is_plain {
            // All of them, so that none is looked at again.
            pieces.skip_to(whole.end);
            return self.push_name(whole);
        }
        pieces.skip_to(whole.end);
        match (self.encoding.table_set(), introducer) {
            (_, Introducer::CharacterSet(name)) if name.eq_ignore_ascii_case(b"binary") => {
                self.push_hexadecimal(whole);
            }
            (_, Introducer::CharacterSet(name)) if is_written_in_digits(name) => {
                self.push_hexadecimal(whole);
            }
            (Some(set), Introducer::None) => {
                self.push_strings_of(set, whole)?;
            }
            (Some(set), Introducer::National) => {
                self.push_exact(set, &self.bytes[whole])?;
            }
            (_, Introducer::CharacterSet(name)) if !is_unicode(name) => {
                let name = String::from_utf8_lossy(name);
                return Err(SqlError::unknown_character_set(&name));
            }
            (_, introducer) => {
                if !matches!(introducer, Introducer::None) {
                    self.drop_word(word);
                }
                match std::str::from_utf8(&self.bytes[whole.clone()]) {
                    Ok(text) => self.text.push_str(text),
                    Err(_) => {
                        self.text.push_str("_binary");
                        self.push_hexadecimal(whole);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes an introducer out of the text again.
    fn drop_word(&mut self, word: Option<LastWord>) {
        if let Some(word) = word {
            self.text.truncate(word.text_start);
            // What stood on both sides of it does not become one.
            self.text.push(' ');
        }
    }

    /// Strings in the client's character set: their text, or where a column may want their bytes, what is either.
    fn push_strings_of(&mut self, set: TableSet, strings: Range<usize>) -> Result<()> {
        if self.is_assigning != Some(true) {
            return self.push_exact(set, &self.bytes[strings]);
        }
        self.text.push('_');
        self.text.push_str(set.name());
        self.push_hexadecimal(strings);
        Ok(())
    }

    /// Where the last of the strings ends that stand one behind the other.
    fn end_of_strings(&self, pieces: &Pieces<'a>, first_end: usize) -> usize {
        let mut end = first_end;
        for (piece, range) in pieces.clone() {
            match piece {
                Piece::Blank => {}
                Piece::Quoted if self.is_string(&range) => end = range.end,
                _ => break,
            }
        }
        end
    }

    /// Strings as one hexadecimal literal. If the last one is not closed, nor is that.
    fn push_hexadecimal(&mut self, strings: Range<usize>) {
        self.text.push_str(" X'");
        let mut rest = Pieces::new(&self.outline[..strings.end]);
        rest.skip_to(strings.start);
        let mut is_closed = true;
        for (piece, range) in rest {
            if piece == Piece::Quoted {
                let outline = &self.outline[range.clone()];
                is_closed = push_digits(&self.bytes[range], outline, &mut self.text);
            }
        }
        if is_closed {
            self.text.push('\'');
        }
    }
}

/// Whether texts of this character set are written by their bytes, `_koi8r X'C1'`.
fn is_written_in_digits(character_set: &[u8]) -> bool {
    let name = String::from_utf8_lossy(character_set).to_ascii_lowercase();
    let encoding = TextEncoding::of_character_set(&name);
    encoding.table_set().is_some() || matches!(encoding, TextEncoding::Wide(_))
}

fn is_unicode(character_set: &[u8]) -> bool {
    let known: [&[u8]; 4] = [b"utf8mb4", b"utf8", b"utf8mb3", b"ascii"];
    known
        .iter()
        .any(|name| name.eq_ignore_ascii_case(character_set))
}

/// The bytes that a string with its quotes stands for, as hexadecimal digits. False if the string is not closed.
/// `outline`: where characters of several bytes are not of ASCII.
fn push_digits(quoted: &[u8], outline: &[u8], digits: &mut String) -> bool {
    let mut push = |byte: u8| {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        digits.push(char::from(DIGITS[usize::from(byte >> 4)]));
        digits.push(char::from(DIGITS[usize::from(byte & 15)]));
    };
    let quote = quoted[0];
    let mut bytes = quoted.iter().zip(outline).skip(1);
    while let Some((byte, seen)) = bytes.next() {
        match *seen {
            b'\\' => match bytes.next() {
                Some((_, b'0')) => push(0),
                Some((_, b'b')) => push(8),
                Some((_, b't')) => push(b'\t'),
                Some((_, b'n')) => push(b'\n'),
                Some((_, b'r')) => push(b'\r'),
                Some((_, b'Z')) => push(0x1A),
                // They are for LIKE to see.
                Some((escaped, b'%' | b'_')) => {
                    push(b'\\');
                    push(*escaped);
                }
                Some((escaped, _)) => push(*escaped),
                None => push(b'\\'),
            },
            // Inside it is doubled.
            seen if seen == quote => match bytes.next() {
                Some(_) => push(*byte),
                None => return true,
            },
            _ => push(*byte),
        }
    }
    false
}

/// The text of `_latin1 X'E9'`, by its introducer and what stands behind it.
pub fn text_of_set(prefix: &Ident, value: &Expr) -> Option<String> {
    let (encoding, digits) = digits_of_set(prefix, value)?;
    text_of_digits(encoding, digits)
}

/// The digits of `_latin1 X'E9'`, and what they are in. `None` for UTF-8, ASCII and bytes.
pub fn digits_of_set<'e>(prefix: &Ident, value: &'e Expr) -> Option<(TextEncoding, &'e str)> {
    let Expr::Value(value) = value else {
        return None;
    };
    let Value::HexStringLiteral(digits) = &value.value else {
        return None;
    };
    let name = prefix.value.strip_prefix('_')?.to_ascii_lowercase();
    let encoding = TextEncoding::of_character_set(&name);
    let is_other = encoding.table_set().is_some() || matches!(encoding, TextEncoding::Wide(_));
    is_other.then_some((encoding, digits))
}

/// A text whose bytes are these hexadecimal digits; `None` if they are not pairs of digits, or no text.
fn text_of_digits(encoding: TextEncoding, digits: &str) -> Option<String> {
    if digits.len() % 2 == 1 {
        return None;
    }
    encoding.decode(&bytes_of(digits)?)
}

/// 1300 for bytes of which not each is of a character of the set.
fn invalid_string_of(set: TableSet, bytes: &[u8]) -> SqlError {
    // The quote at the end is none of them.
    let bytes = bytes.strip_suffix(b"`").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"'").unwrap_or(bytes);
    let from = set.valid_up_to(bytes);
    let shown = digits_of(&bytes[from..bytes.len().min(from + SHOWN_BYTES)]);
    let name = set.name();
    SqlError::new(
        codes::INVALID_CHARACTER_STRING,
        format!("Invalid {name} character string: '{shown}'"),
    )
}

/// What is no text where only text can stand: error 1300.
pub fn invalid_string(bytes: &[u8]) -> SqlError {
    let from = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let shown: String = bytes[from..]
        .iter()
        .take(SHOWN_BYTES)
        .map(|byte| format!("\\x{byte:02X}"))
        .collect();
    SqlError::new(
        codes::INVALID_CHARACTER_STRING,
        format!("Invalid utf8mb4 character string: '{shown}'"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latin1_encoding() -> TextEncoding {
        TextEncoding::of_character_set("latin1")
    }

    fn utf8(bytes: &[u8]) -> String {
        text(bytes, TextEncoding::Utf8).expect("only literals are bytes")
    }

    fn text(bytes: &[u8], encoding: TextEncoding) -> Result<String> {
        statement_text(bytes, encoding, || false).map(Cow::into_owned)
    }

    #[test]
    fn a_statement_of_utf8_is_the_text() {
        let sql = "insert into b values ('é', _binary'x')";
        let found = statement_text(sql.as_bytes(), TextEncoding::Utf8, || false);
        assert!(matches!(found, Ok(Cow::Borrowed(text)) if text == sql));
        assert_eq!(utf8(b"select 1\0"), "select 1");
        assert_eq!(utf8(b"select 1;\0"), "select 1;");
    }

    #[test]
    fn bytes_that_are_no_characters_stand_in_comments_alone() {
        let cp1251 = TextEncoding::of_character_set("cp1251");
        for (statement, code) in [
            (&b"select 1 as `\x98`"[..], Some(1300)),
            (b"select '\x98'", Some(1300)),
            (b"select N'\x98'", Some(1300)),
            (b"select 1 /* \x98 */", None),
            (b"insert into t values ('\x98')", None),
            (b"select '\xE0', `\xE0`", None),
        ] {
            let error = text(statement, cp1251).err();
            assert_eq!(error.map(|error| error.code), code, "{statement:?}");
        }
    }

    #[test]
    fn literals_that_are_not_become_hexadecimal() {
        for (bytes, text) in [
            (
                &b"values (1,_binary'a\x80\xff')"[..],
                "values (1,_binary X'6180FF')",
            ),
            (
                b"values (_binary 'a\x80', 'b', '\xc3\xa9')",
                "values (_binary  X'6180', 'b', '\u{e9}')",
            ),
            (b"values ('a\xff')", "values (_binary X'61FF')"),
            (b"values (\"a'\xff\"\"\")", "values (_binary X'6127FF22')"),
            (b"values (n'a\xff')", "values ( _binary X'61FF')"),
            (b"values (_utf8mb4'a\xff')", "values ( _binary X'61FF')"),
            (b"values (_latin1'a\xe9')", "values (_latin1 X'61E9')"),
            (
                b"insert into t values (_latin1 'a\xe9')",
                "insert into t values (_latin1  X'61E9')",
            ),
            (
                b"values ('a' /* \xff */ '\xff\\'' , 1)",
                "values (_binary X'61FF27' , 1)",
            ),
            (
                b"values ('\\0\\b\\t\\n\\r\\Z\\\\\\'\\\"\\%\\_\\q\xff''')",
                "values (_binary X'0008090A0D1A5C27225C255C5F71FF27')",
            ),
            (
                b"select /* \xff */ 1 -- \xff",
                "select /* \u{fffd} */ 1 -- \u{fffd}",
            ),
            (b"select x'41', '\xff'", "select x'41', _binary X'FF'"),
        ] {
            assert_eq!(utf8(bytes), text);
        }
    }

    #[test]
    fn an_open_string_stays_open() {
        for bytes in [
            &b"values ('a\xff\\')"[..],
            b"values ('a\xff",
            b"values ('\xff''",
        ] {
            assert!(!utf8(bytes).ends_with(['\'', ')']), "{}", utf8(bytes));
        }
    }

    /// Whatever the bytes are, they become a text or an error; what stays of the statement's strings stays in strings.
    #[test]
    fn any_bytes_are_read_to_their_end() {
        let alphabet = b"'\"\\`/*!+-#nxNX_;, \nab0\x80\xC3\xA9\xFF";
        let mut random = sheaf_storage::Random::new(1);
        for _ in 0..20_000 {
            let length = random.below(30);
            let bytes: Vec<u8> = (0..length)
                .map(|_| alphabet[random.below(alphabet.len() as u64) as usize])
                .collect();
            let gbk = TextEncoding::of_character_set("gbk");
            for encoding in [TextEncoding::Utf8, latin1_encoding(), gbk] {
                let found = text(&bytes, encoding);
                if encoding == TextEncoding::Utf8 && std::str::from_utf8(&bytes).is_ok() {
                    assert_eq!(found.as_deref().map(str::as_bytes), Ok(&bytes[..]));
                }
            }
        }
    }

    #[test]
    fn other_character_sets_are_refused_by_name() {
        let error = text(b"select _swe7'\x81\x40'", TextEncoding::Utf8);
        assert_eq!(error.map_err(|error| error.code), Err(1115));
    }

    #[test]
    fn a_second_byte_is_no_backslash() {
        let gbk = TextEncoding::of_character_set("gbk");
        for (bytes, expected) in [
            (&b"select '\xD5\\' '\\''"[..], "select '誠' '\\''"),
            (b"select `\xD5\\`, '\xD5\\\\n'", "select `誠`, '誠\\n'"),
            (
                b"insert into t values ('\xD5\\', '\xD5\\\\'')",
                "insert into t values (_gbk X'D55C', _gbk X'D55C27')",
            ),
            (b"select _binary'\xD5\\'", "select _binary X'D55C'"),
        ] {
            assert_eq!(text(bytes, gbk).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn names_have_to_be_text() {
        for bytes in [
            &b"select `a\x80`"[..],
            b"select a\x80",
            b"select x'\x80'",
            b"select 1 \xff",
        ] {
            assert_eq!(
                text(bytes, TextEncoding::Utf8).map_err(|error| error.code),
                Err(1300)
            );
        }
        let quoted = statement_text(b"select \"a\x80\"", TextEncoding::Utf8, || true);
        assert_eq!(quoted.map_err(|error| error.code), Err(1300));
    }

    #[test]
    fn latin1_is_converted() {
        let latin1 = |bytes: &[u8]| text(bytes, latin1_encoding()).expect("every byte is text");
        for (bytes, text) in [
            (&b"select 'a'"[..], "select 'a'"),
            (b"select '\xe9' as `\xe9`", "select '\u{e9}' as `\u{e9}`"),
            (b"select _binary'\xe9'", "select _binary X'E9'"),
            (b"select _utf8mb4'\xc3\xa9'", "select  '\u{e9}'"),
            (
                b"insert into t values ('\xe9', 'a')",
                "insert into t values (_latin1 X'E9', 'a')",
            ),
            (
                b" update t set \xe9 = '\x80'; select '\x80'",
                " update t set \u{e9} = _latin1 X'80'; select '\u{20ac}'",
            ),
        ] {
            assert_eq!(latin1(bytes), text);
        }
        let of_digits = |digits| text_of_digits(latin1_encoding(), digits);
        assert_eq!(of_digits("4180"), Some("A\u{20AC}".into()));
        assert_eq!(of_digits("418"), None);
    }
}
