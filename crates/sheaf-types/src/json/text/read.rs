//! A text straight into the binary form.
//!
//! Integers that fit 64 bits stay integers, all other numbers are doubles. Of values with equal keys the last one
//! stays. The reader walks token by token, so that what is wrong has MySQL's message and position (those of
//! RapidJSON), and a text of any depth is read without recursion.

use std::borrow::Cow;

use crate::json::document::{Builder, Document};
use crate::json::error::JsonError;
use crate::json::room::make_text_room;
use crate::json::text::problem::TextProblem;

/// Bytes of a character in UTF-8.
const MAX_CHARACTER_BYTES: usize = 4;

const EMPTY: &str = "The document is empty.";
const NOT_SINGULAR: &str = "The document root must not be followed by other values.";
const INVALID_VALUE: &str = "Invalid value.";
const NO_NAME: &str = "Missing a name for object member.";
const NO_COLON: &str = "Missing a colon after a name of object member.";
const NO_OBJECT_END: &str = "Missing a comma or '}' after an object member.";
const NO_ARRAY_END: &str = "Missing a comma or ']' after an array element.";
const BAD_HEX: &str = "Incorrect hex digit after \\u escape in string.";
const BAD_SURROGATE: &str = "The surrogate pair in string is invalid.";
const BAD_ESCAPE: &str = "Invalid escape character in string.";
const NO_QUOTE: &str = "Missing a closing quotation mark in string.";
const BAD_ENCODING: &str = "Invalid encoding in string.";
const TOO_BIG: &str = "Number too big to be stored in double.";
const NO_FRACTION: &str = "Miss fraction part in number.";
const NO_EXPONENT: &str = "Miss exponent in number.";

/// Whether a text is JSON.
///
/// # Errors
/// `TooDeep`, as MySQL's JSON_VALID has it, and `TooBig`.
pub fn is_json(text: &str) -> Result<bool, JsonError> {
    match read(text) {
        Ok(_) | Err(TextProblem::Limit(JsonError::KeyTooLong)) => Ok(true),
        Err(TextProblem::Syntax { .. }) => Ok(false),
        Err(TextProblem::Limit(error)) => Err(error),
    }
}

/// The document that a text spells.
///
/// # Errors
/// The first problem in the text.
pub fn read(text: &str) -> Result<Document, TextProblem> {
    let builder = Builder::with_capacity(text.len())?;
    let mut reader = Reader::new(text, builder);
    reader.document()?;
    Ok(reader.builder.finish()?)
}

/// The text of a JSON string with its quotes; `None`: it is not one string.
pub(crate) fn read_string(quoted: &str) -> Option<String> {
    let mut reader = Reader::new(quoted, Builder::new());
    reader.skip_spaces();
    let is_string = reader.peek() == Some(b'"');
    let text = is_string.then(|| reader.string().ok())??;
    reader.skip_spaces();
    reader.peek().is_none().then(|| text.into_owned())
}

type Read<T = ()> = Result<T, TextProblem>;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    builder: Builder,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, builder: Builder) -> Reader<'a> {
        Reader {
            text,
            at: 0,
            builder,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Steps over this byte if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn fail<T>(&self, message: &'static str) -> Read<T> {
        Err(TextProblem::at(self.at, message))
    }

    fn document(&mut self) -> Read {
        self.skip_spaces();
        if self.peek().is_none() {
            return self.fail(EMPTY);
        }
        // Open containers, the innermost last: whether each is an object.
        let mut open: Vec<bool> = Vec::new();
        loop {
            // A value is next.
            match self.peek() {
                Some(b'[') => {
                    self.at += 1;
                    self.builder.begin_array()?;
                    self.skip_spaces();
                    if !self.take(b']') {
                        open.push(false);
                        continue;
                    }
                    self.builder.end()?;
                }
                Some(b'{') => {
                    self.at += 1;
                    self.builder.begin_object()?;
                    self.skip_spaces();
                    if !self.take(b'}') {
                        self.name()?;
                        open.push(true);
                        continue;
                    }
                    self.builder.end()?;
                }
                _ => self.scalar()?,
            }
            // A value has ended, and perhaps containers with it.
            loop {
                self.skip_spaces();
                let is_object = match open.last() {
                    None if self.peek().is_none() => return Ok(()),
                    None => return self.fail(NOT_SINGULAR),
                    Some(is_object) => *is_object,
                };
                if self.take(b',') {
                    self.skip_spaces();
                    if is_object {
                        self.name()?;
                    }
                    break;
                }
                let (end, missing) = match is_object {
                    true => (b'}', NO_OBJECT_END),
                    false => (b']', NO_ARRAY_END),
                };
                if !self.take(end) {
                    return self.fail(missing);
                }
                self.builder.end()?;
                open.pop();
            }
        }
    }

    /// A key, the colon, and spaces around it.
    fn name(&mut self) -> Read {
        if self.peek() != Some(b'"') {
            return self.fail(NO_NAME);
        }
        let name = self.string()?;
        self.skip_spaces();
        if !self.take(b':') {
            return self.fail(NO_COLON);
        }
        self.builder.key(&name)?;
        self.skip_spaces();
        Ok(())
    }

    fn scalar(&mut self) -> Read {
        match self.peek() {
            Some(b'"') => {
                let text = self.string()?;
                self.builder.string(&text)?;
            }
            Some(b'n') => {
                self.literal("null")?;
                self.builder.null()?;
            }
            Some(b't') => {
                self.literal("true")?;
                self.builder.bool(true)?;
            }
            Some(b'f') => {
                self.literal("false")?;
                self.builder.bool(false)?;
            }
            _ => self.number()?,
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Read {
        match word.bytes().all(|byte| self.take(byte)) {
            true => Ok(()),
            false => self.fail(INVALID_VALUE),
        }
    }

    fn number(&mut self) -> Read {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') && self.skip_digits() == 0 {
            return self.fail(INVALID_VALUE);
        }
        let mut is_integer = true;
        if self.take(b'.') {
            is_integer = false;
            if self.skip_digits() == 0 {
                return self.fail(NO_FRACTION);
            }
        }
        if self.take(b'e') || self.take(b'E') {
            is_integer = false;
            let _ = self.take(b'+') || self.take(b'-');
            if self.skip_digits() == 0 {
                return self.fail(NO_EXPONENT);
            }
        }
        let digits = &self.text[start..self.at];
        if is_integer {
            // MySQL takes what is beyond 32 bits for unsigned.
            let is_signed = |number: &i64| *number <= i64::from(u32::MAX);
            if let Some(number) = digits.parse::<i64>().ok().filter(is_signed) {
                return Ok(self.builder.int(number)?);
            }
            if let Ok(number) = digits.parse::<u64>() {
                return Ok(self.builder.uint(number)?);
            }
        }
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(self.builder.double(number)?),
            _ => Err(TextProblem::at(start, TOO_BIG)),
        }
    }

    /// A string, from its opening quotation mark on.
    fn string(&mut self) -> Read<Cow<'a, str>> {
        self.at += 1;
        // What lies in front of the last escape, without escapes.
        let mut unescaped: Option<String> = None;
        let mut start = self.at;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1F));
            self.at += plain.unwrap_or(rest.len());
            let part = &self.text[start..self.at];
            match self.peek() {
                None | Some(0) => return self.fail(NO_QUOTE),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(match unescaped {
                        Some(mut text) => {
                            make_text_room(&mut text, part.len())?;
                            text.push_str(part);
                            Cow::Owned(text)
                        }
                        None => Cow::Borrowed(part),
                    });
                }
                Some(b'\\') => {
                    let text = unescaped.get_or_insert_default();
                    make_text_room(text, part.len() + MAX_CHARACTER_BYTES)?;
                    text.push_str(part);
                    let escape = self.at;
                    let character = self.escape();
                    let character =
                        character.map_err(|message| TextProblem::at(escape, message))?;
                    unescaped.get_or_insert_default().push(character);
                    start = self.at;
                }
                Some(_) => return self.fail(BAD_ENCODING),
            }
        }
    }

    /// The character that an escape stands for.
    fn escape(&mut self) -> Result<char, &'static str> {
        self.at += 1;
        let escaped = self.peek().ok_or(BAD_ESCAPE)?;
        self.at += 1;
        Ok(match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = self.hex_digits()?;
                if (0xD800..0xDC00).contains(&code) {
                    if !(self.take(b'\\') && self.take(b'u')) {
                        return Err(BAD_SURROGATE);
                    }
                    let low = self.hex_digits()?.wrapping_sub(0xDC00);
                    if low >= 0x400 {
                        return Err(BAD_SURROGATE);
                    }
                    code = 0x10000 + ((code - 0xD800) << 10) + low;
                }
                char::from_u32(code).ok_or(BAD_SURROGATE)?
            }
            _ => return Err(BAD_ESCAPE),
        })
    }

    fn hex_digits(&mut self) -> Result<u32, &'static str> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = std::str::from_utf8(digits.ok_or(BAD_HEX)?).map_err(|_| BAD_HEX)?;
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| BAD_HEX)
    }
}
