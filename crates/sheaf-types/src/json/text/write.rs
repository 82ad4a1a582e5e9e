//! A value as MySQL shows it: `{"a": [1, 2.0]}`, and the form of JSON_PRETTY.
//!
//! A double always shows that it is one, by a point or an exponent. Dates and times are strings, with six digits of a
//! second's fraction. Bytes are a string of base64 behind the number of their type.

use crate::number::{push_decimal, push_double, push_signed, push_unsigned, push_wide_decimal};
use crate::temporal::{push_date, push_datetime, push_time};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::json::document::{Json, MAX_NESTING, View};
use crate::json::error::JsonError;
use crate::json::room::{Turns, make_text_room};

/// Digits of a second's fraction.
const FRACTION_DIGITS: u8 = 6;
/// Bytes of a line of base64.
const BASE64_LINE_BYTES: usize = 57;
/// Spaces for each level of JSON_PRETTY.
const INDENT: usize = 2;
/// Bytes of a character with an escape, and of a number with what stands before it.
const MAX_ESCAPE_BYTES: usize = 6;
const MAX_NUMBER_BYTES: usize = 80;

/// The value on one line.
pub fn to_text(value: Json<'_>) -> String {
    let mut out = String::new();
    push_compact(value, &mut out);
    out
}

/// The value as JSON_PRETTY shows it.
pub fn to_pretty(value: Json<'_>) -> String {
    let mut out = String::new();
    push_pretty(value, &mut out);
    out
}

/// Appends the value on one line. Where its statement has no room for that, it ends somewhere.
pub fn push_compact(value: Json<'_>, out: &mut String) {
    push(value, None, out);
}

/// Appends the value with each member on a line of its own. It ends as [`push_compact`] does.
pub fn push_pretty(value: Json<'_>, out: &mut String) {
    push(value, Some(INDENT), out);
}

fn push(value: Json<'_>, indent: Option<usize>, out: &mut String) {
    let turns = Turns::default();
    let mut writer = Writer { out, indent, turns };
    // The statement has been told to stop then.
    let _ = writer.push(value, 0);
}

/// How a text is written.
struct Writer<'o> {
    out: &'o mut String,
    /// Spaces of a level, if members are on lines of their own.
    indent: Option<usize>,
    turns: Turns,
}

impl Writer<'_> {
    /// Deeper values than documents have are damaged.
    ///
    /// # Errors
    /// `Stopped`: the text ends somewhere.
    fn push(&mut self, value: Json<'_>, level: usize) -> Result<(), JsonError> {
        match value.view() {
            View::Array(_) | View::Object(_) if level >= MAX_NESTING => self.put("null"),
            View::Array(array) => {
                self.put("[")?;
                for (position, element) in array.iter().enumerate() {
                    self.separate(position, level)?;
                    self.push(element, level + 1)?;
                }
                if !array.is_empty() {
                    self.new_line(level)?;
                }
                self.put("]")
            }
            View::Object(object) => {
                self.put("{")?;
                for (position, (key, member)) in object.iter().enumerate() {
                    self.separate(position, level)?;
                    put_quoted(key, self.out)?;
                    self.put(": ")?;
                    self.push(member, level + 1)?;
                }
                if !object.is_empty() {
                    self.new_line(level)?;
                }
                self.put("}")
            }
            View::String(text) => put_quoted(text, self.out),
            scalar => {
                let is_string = matches!(
                    scalar,
                    View::Date(_)
                        | View::Time(_)
                        | View::DateTime(_)
                        | View::Timestamp(_)
                        | View::Opaque { .. }
                );
                if !is_string {
                    push_scalar(scalar, self.out);
                    return Ok(());
                }
                let mut text = String::new();
                push_scalar(scalar, &mut text);
                put_quoted(&text, self.out)
            }
        }
    }

    fn separate(&mut self, position: usize, level: usize) -> Result<(), JsonError> {
        self.turns.next()?;
        // For a number, too.
        make_text_room(self.out, MAX_NUMBER_BYTES)?;
        if position > 0 {
            self.put(if self.indent.is_some() { "," } else { ", " })?;
        }
        self.new_line(level + 1)
    }

    fn new_line(&mut self, level: usize) -> Result<(), JsonError> {
        if let Some(indent) = self.indent {
            make_text_room(self.out, 1 + indent * level)?;
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', indent * level));
        }
        Ok(())
    }

    fn put(&mut self, text: &str) -> Result<(), JsonError> {
        put(text, self.out)
    }
}

fn put(text: &str, out: &mut String) -> Result<(), JsonError> {
    make_text_room(out, text.len())?;
    out.push_str(text);
    Ok(())
}

/// Appends a scalar without quotes. Containers are none.
pub(crate) fn push_scalar(scalar: View<'_>, out: &mut String) {
    match scalar {
        View::Null => out.push_str("null"),
        View::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        View::Int(value) => push_signed(value, out),
        View::UInt(value) => push_unsigned(value, out),
        View::Double(value) => {
            let start = out.len();
            push_double(value, out);
            if !out[start..].contains(['.', 'e']) {
                out.push_str(".0");
            }
        }
        View::Decimal { unscaled, scale } => push_decimal(unscaled, scale, out),
        View::WideDecimal { unscaled, scale } => push_wide_decimal(unscaled.into(), scale, out),
        View::String(text) => out.push_str(text),
        View::Date(days) => push_date(days, out),
        View::Time(micros) => push_time(micros, FRACTION_DIGITS, out),
        View::DateTime(micros) | View::Timestamp(micros) => {
            push_datetime(micros, FRACTION_DIGITS, out);
        }
        View::Opaque { field_type, bytes } => push_opaque(field_type, bytes, out),
        View::Array(_) | View::Object(_) => {}
    }
}

/// Appends bytes that are no text of JSON, with the number of their type in MySQL's protocol: `base64:type254:Zm9v`.
pub fn push_opaque(field_type: u8, bytes: &[u8], out: &mut String) {
    out.push_str("base64:type");
    push_unsigned(field_type.into(), out);
    out.push(':');
    push_base64(bytes, out);
}

/// Appends base64 in lines of 76 characters, as mail has them.
fn push_base64(bytes: &[u8], out: &mut String) {
    for (line, bytes) in bytes.chunks(BASE64_LINE_BYTES).enumerate() {
        if line > 0 {
            out.push('\n');
        }
        STANDARD.encode_string(bytes, out);
    }
}

/// Appends a text as a JSON string. Where its statement has no room for that, it ends somewhere.
pub fn push_quoted(text: &str, out: &mut String) {
    // The statement has been told to stop then.
    let _ = put_quoted(text, out);
}

fn put_quoted(text: &str, out: &mut String) -> Result<(), JsonError> {
    put("\"", out)?;
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        make_text_room(out, at - plain + MAX_ESCAPE_BYTES)?;
        out.push_str(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\u00");
                out.push(DIGITS[usize::from(control >> 4)].into());
                out.push(DIGITS[usize::from(control & 0xF)].into());
            }
        }
    }
    put(&text[plain..], out)?;
    put("\"", out)
}
