//! Splits a data file into records and fields, as LOAD DATA reads it.
//!
//! ```text
//!   input -> buffer -> [find the next byte that matters] -> record: the fields' bytes, one after the other
//! ```
//!
//! Only three bytes matter outside of quotes: the first of the field terminator, the first of the line terminator,
//! and the escape. Everything up to the next of them is copied in one piece. A record's memory is used again
//! for the next, so nothing is allocated per field. Within a character of several bytes of sjis, big5 or the like none
//! of them matters.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use sheaf_access::AccessError;
use sheaf_types::error::codes;
use sheaf_types::text::encoding::SeveralBytes;

use crate::error::{Result, SqlError};
use crate::parser::statement::FileFormat;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// The longest record, in bytes: a wrong terminator must not read the whole file into memory.
pub(crate) const MAX_RECORD_BYTES: usize = 64 << 20;

/// One line of a data file.
#[derive(Debug, Default)]
pub(crate) struct Record {
    bytes: Vec<u8>,
    /// Where each field ends, and whether it is NULL.
    fields: Vec<(usize, bool)>,
}

impl Record {
    fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    /// Number of fields.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// The bytes of a field; `None` for NULL.
    pub(crate) fn field(&self, n: usize) -> Option<&[u8]> {
        self.range(n).map(|range| &self.bytes[range])
    }

    /// Where a field lies in the record's bytes; `None` for NULL.
    pub(crate) fn range(&self, n: usize) -> Option<Range<usize>> {
        let start = if n == 0 { 0 } else { self.fields[n - 1].0 };
        let (end, null) = self.fields[n];
        (!null).then_some(start..end)
    }

    /// The bytes of all fields, one after the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a part of the current field.
    ///
    /// # Errors
    /// The process has no room for a record that is this long.
    fn push(&mut self, part: &[u8]) -> Result<()> {
        let bytes = self.bytes.len() + part.len();
        if bytes > self.bytes.capacity() {
            check_room_for(bytes.max(2 * self.bytes.capacity()))?;
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// The same for a byte.
    fn push_byte(&mut self, byte: u8) -> Result<()> {
        self.push(&[byte])
    }

    fn field_start(&self) -> usize {
        self.fields.last().map_or(0, |(end, _)| *end)
    }

    fn end_field(&mut self, null: bool) -> Result<()> {
        if self.fields.len() == self.fields.capacity() {
            check_room_for(2 * self.fields.capacity() * size_of::<(usize, bool)>())?;
        }
        self.fields.push((self.bytes.len(), null));
        Ok(())
    }
}

/// The error of a statement that shall stop, or for which there is no room for so much.
fn check_room_for(bytes: usize) -> Result<()> {
    match sheaf_memory::has_room_for_value(bytes) {
        true => Ok(()),
        false => Err(AccessError::Cancelled.into()),
    }
}

/// What ended a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Field,
    Line,
    Input,
}

/// The next byte that matters among unread ones, or how many of these are in front of it at least.
enum Next {
    Special(usize),
    Plain(usize),
}

/// Reads records.
pub(crate) struct FieldReader<R> {
    input: R,
    /// The character set of the input, if bytes of its characters may be mistaken for others.
    set: Option<SeveralBytes>,
    buffer: Vec<u8>,
    /// The unread part of the buffer.
    start: usize,
    end: usize,
    at_end: bool,
    format: FileFormat,
}

impl<R: Read> FieldReader<R> {
    pub(crate) fn new(input: R, format: FileFormat, set: Option<SeveralBytes>) -> FieldReader<R> {
        FieldReader {
            input,
            set,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            at_end: false,
            format,
        }
    }

    /// Makes at least `bytes` unread bytes available, fewer only at the end of the input.
    #[inline]
    fn fill(&mut self, bytes: usize) -> Result<usize> {
        let unread = self.end - self.start;
        if unread >= bytes {
            Ok(unread)
        } else {
            self.fill_from_input(bytes)
        }
    }

    fn fill_from_input(&mut self, bytes: usize) -> Result<usize> {
        while self.end - self.start < bytes && !self.at_end {
            if self.buffer.len() - self.start < bytes.max(BUFFER_BYTES / 2) {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if sheaf_memory::shall_stop() {
                return Err(AccessError::Cancelled.into());
            }
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(SqlError::new(
                        codes::EE_READ,
                        format!("Error reading file: {error}"),
                    ));
                }
            }
        }
        Ok(self.end - self.start)
    }

    /// Makes the next character available. The number of unread bytes, 0 at the end of the input.
    #[inline]
    fn fill_character(&mut self) -> Result<usize> {
        self.fill(self.set.map_or(1, |set| set.character_bytes() as usize))
    }

    /// Looks for a byte that matters, none of which is within a character of several bytes.
    #[inline]
    fn next_special(&self, matters: [Option<u8>; 3]) -> Next {
        let unread = &self.buffer[self.start..self.end];
        if let Some(set) = self.set {
            return self.next_beside_characters(set, unread, matters);
        }
        let found = match matters {
            [Some(one), Some(two), Some(three)] => memchr::memchr3(one, two, three, unread),
            [Some(one), Some(two), None] => memchr::memchr2(one, two, unread),
            [Some(one), None, None] => memchr::memchr(one, unread),
            matters => unread
                .iter()
                .position(|byte| matters.contains(&Some(*byte))),
        };
        found.map_or(Next::Plain(unread.len()), Next::Special)
    }

    fn next_beside_characters(
        &self,
        set: SeveralBytes,
        unread: &[u8],
        matters: [Option<u8>; 3],
    ) -> Next {
        let most = set.character_bytes() as usize;
        let mut at = 0;
        while at < unread.len() {
            let byte = unread[at];
            if matters.contains(&Some(byte)) {
                return Next::Special(at);
            }
            if byte.is_ascii() {
                at += 1;
                continue;
            }
            let rest = &unread[at..];
            if rest.len() < most && !self.at_end && at > 0 {
                // The character may go on behind what has been read.
                break;
            }
            at += set.first_length(rest);
        }
        Next::Plain(at)
    }

    /// True if the unread bytes begin with these.
    fn starts_with(&mut self, text: &[u8]) -> Result<bool> {
        Ok(!text.is_empty()
            && self.fill(text.len())? >= text.len()
            && self.buffer[self.start..].starts_with(text))
    }

    fn accept(&mut self, text: &[u8]) -> Result<bool> {
        let found = self.starts_with(text)?;
        if found {
            self.start += text.len();
        }
        Ok(found)
    }

    /// Skips lines, such as a header.
    pub(crate) fn skip_lines(&mut self, lines: u64) -> Result<()> {
        let terminator = self.format.lines_terminated_by.clone();
        for _ in 0..lines {
            while !self.accept(&terminator)? {
                if self.fill_character()? == 0 {
                    return Ok(());
                }
                self.start += match self.next_special([Some(terminator[0]), None, None]) {
                    // The terminator does not begin here.
                    Next::Special(0) => 1,
                    Next::Special(at) | Next::Plain(at) => at,
                };
            }
        }
        Ok(())
    }

    /// Skips to the end of LINES STARTING BY; false if there is none any more.
    fn skip_prefix(&mut self) -> Result<bool> {
        if self.format.lines_starting_by.is_empty() {
            return Ok(self.fill(1)? > 0);
        }
        let prefix = self.format.lines_starting_by.clone();
        loop {
            if self.accept(&prefix)? {
                return Ok(true);
            }
            if self.fill(1)? == 0 {
                return Ok(false);
            }
            self.start += 1;
        }
    }

    /// Reads the next record; false at the end of the input.
    pub(crate) fn next_record(&mut self, record: &mut Record) -> Result<bool> {
        record.clear();
        if !self.skip_prefix()? {
            return Ok(false);
        }
        loop {
            // A terminator at the end of the input has no field behind it.
            if record.len() > 0 && self.fill(1)? == 0 {
                return Ok(true);
            }
            match self.next_field(record)? {
                End::Field => {}
                End::Line => return Ok(true),
                // An empty rest after the last terminator is no record.
                End::Input => return Ok(record.len() > 1 || record.field(0) != Some(b"")),
            }
        }
    }

    fn next_field(&mut self, record: &mut Record) -> Result<End> {
        if let Some(quote) = self.format.enclosed_by
            && self.fill(1)? > 0
            && self.buffer[self.start] == quote
        {
            return self.enclosed_field(record, quote);
        }
        let escape = self.format.escaped_by;
        let field_start = self.format.fields_terminated_by.first().copied();
        let line_start = self.format.lines_terminated_by.first().copied();
        let mut escaped_null = false;
        let end = loop {
            if record.bytes.len() > MAX_RECORD_BYTES {
                return Err(record_too_long());
            }
            if self.fill_character()? == 0 {
                break End::Input;
            }
            let next = self.next_special([field_start, line_start, escape]);
            let (Next::Special(plain) | Next::Plain(plain)) = next;
            let unread = &self.buffer[self.start..self.end];
            record.push(&unread[..plain])?;
            self.start += plain;
            if let Next::Plain(_) = next {
                continue;
            }
            let byte = unread[plain];
            // A terminator may begin with the escape's byte, and the line's with the field's: the line's is tried
            // first.
            if Some(byte) == line_start && self.accept_line_end()? {
                break End::Line;
            }
            if Some(byte) == field_start && self.accept_field_end()? {
                break End::Field;
            }
            self.start += 1;
            if Some(byte) != escape {
                record.push_byte(byte)?;
                continue;
            }
            if self.fill(1)? == 0 {
                record.push_byte(byte)?;
                break End::Input;
            }
            let escaped = self.buffer[self.start];
            self.start += 1;
            if escaped == b'N' && record.bytes.len() == record.field_start() {
                escaped_null = true;
                record.push_byte(b'N')?;
            } else {
                record.push_byte(unescape(escaped))?;
            }
        };
        // \N is NULL only if it is the whole field. So is the word NULL, in a file whose fields may be enclosed.
        let length = record.bytes.len() - record.field_start();
        let word_null =
            self.format.enclosed_by.is_some() && &record.bytes[record.field_start()..] == b"NULL";
        let null = (escaped_null && length == 1) || word_null;
        record.end_field(null)?;
        Ok(end)
    }

    /// Reads a line terminator, whose first byte is the next byte.
    fn accept_line_end(&mut self) -> Result<bool> {
        if self.format.lines_terminated_by.len() == 1 {
            self.start += 1;
            return Ok(true);
        }
        let terminator = std::mem::take(&mut self.format.lines_terminated_by);
        let found = self.accept(&terminator);
        self.format.lines_terminated_by = terminator;
        found
    }

    /// Reads a field terminator, whose first byte is the next byte.
    fn accept_field_end(&mut self) -> Result<bool> {
        if self.format.fields_terminated_by.len() == 1 {
            self.start += 1;
            return Ok(true);
        }
        let terminator = std::mem::take(&mut self.format.fields_terminated_by);
        let found = self.accept(&terminator);
        self.format.fields_terminated_by = terminator;
        found
    }

    /// A field in quotes: it ends at a quote before a terminator; a doubled quote is one. A field that the input ends
    /// in was none in quotes: its quote is a part of it.
    fn enclosed_field(&mut self, record: &mut Record, quote: u8) -> Result<End> {
        self.start += 1;
        let escape = self.format.escaped_by;
        let field_start = record.field_start();
        let mut escaped_null = false;
        loop {
            if record.bytes.len() > MAX_RECORD_BYTES {
                return Err(record_too_long());
            }
            if self.fill_character()? == 0 {
                record.push_byte(quote)?;
                record.bytes[field_start..].rotate_right(1);
                record.end_field(false)?;
                return Ok(End::Input);
            }
            let next = self.next_special([Some(quote), escape, None]);
            let (Next::Special(special) | Next::Plain(special)) = next;
            let unread = &self.buffer[self.start..self.end];
            record.push(&unread[..special])?;
            if let Next::Plain(_) = next {
                self.start += special;
                continue;
            }
            let byte = unread[special];
            self.start += special + 1;
            if byte == quote {
                if self.accept(&[quote])? {
                    record.push_byte(quote)?;
                    continue;
                }
                let end = if self.fill(1)? == 0 {
                    Some(End::Input)
                } else {
                    let next = Some(self.buffer[self.start]);
                    if next == self.format.lines_terminated_by.first().copied()
                        && self.accept_line_end()?
                    {
                        Some(End::Line)
                    } else if next == self.format.fields_terminated_by.first().copied()
                        && self.accept_field_end()?
                    {
                        Some(End::Field)
                    } else {
                        None
                    }
                };
                match end {
                    Some(end) => {
                        let is_one = record.bytes.len() == field_start + 1;
                        record.end_field(escaped_null && is_one)?;
                        return Ok(end);
                    }
                    // A quote inside the field.
                    None => record.push_byte(quote)?,
                }
            } else if self.fill(1)? == 0 {
                record.push_byte(byte)?;
            } else {
                let escaped = self.buffer[self.start];
                self.start += 1;
                escaped_null |= escaped == b'N' && record.bytes.len() == field_start;
                record.push_byte(unescape(escaped))?;
            }
        }
    }
}

/// The byte that an escape sequence stands for.
fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}

fn record_too_long() -> SqlError {
    SqlError::new(
        codes::NET_PACKET_TOO_LARGE,
        format!(
            "A line of the file is longer than {MAX_RECORD_BYTES} bytes; check the terminators"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out a few bytes at a time, so that every boundary falls everywhere.
    struct Dribble<'a>(&'a [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn read(text: &str, format: &FileFormat, skip: u64) -> Vec<Vec<Option<String>>> {
        read_of_set(text.as_bytes(), format, skip, "utf8mb4")
    }

    fn read_of_set(
        bytes: &[u8],
        format: &FileFormat,
        skip: u64,
        set: &str,
    ) -> Vec<Vec<Option<String>>> {
        let set = SeveralBytes::of_name(set);
        let mut results = Vec::new();
        for step in [1, 3, 1 << 20] {
            let mut reader = FieldReader::new(Dribble(bytes, step), format.clone(), set);
            reader.skip_lines(skip).expect("readable");
            let mut record = Record::default();
            let mut records = Vec::new();
            while reader.next_record(&mut record).expect("readable") {
                let field = |n| {
                    record.field(n).map(|bytes| match set {
                        Some(set) => set.decode_lossy(bytes),
                        None => String::from_utf8_lossy(bytes).into_owned(),
                    })
                };
                records.push((0..record.len()).map(field).collect::<Vec<_>>());
            }
            results.push(records);
        }
        assert!(
            results.windows(2).all(|pair| pair[0] == pair[1]),
            "the size of reads does not matter"
        );
        results.swap_remove(0)
    }

    fn some(fields: &[&str]) -> Vec<Option<String>> {
        fields
            .iter()
            .map(|field| Some((*field).to_string()))
            .collect()
    }

    #[test]
    fn the_default_format_has_tabs_and_escapes() {
        let records = read(
            "1\ta\\tb\t\\N\n2\t\\\\N\tx\\Ny\n\n3",
            &FileFormat::default(),
            0,
        );
        assert_eq!(
            records[0],
            vec![Some("1".into()), Some("a\tb".into()), None]
        );
        assert_eq!(records[1], some(&["2", "\\N", "xNy"]));
        assert_eq!(records[2], some(&[""]));
        assert_eq!(records[3], some(&["3"]));
        assert_eq!(records.len(), 4);
    }

    #[test]
    fn a_line_terminator_may_begin_with_the_field_terminator() {
        let format = FileFormat {
            fields_terminated_by: b"|".to_vec(),
            lines_terminated_by: b"|\n".to_vec(),
            ..FileFormat::default()
        };
        assert_eq!(
            read("1|x y|\n2||\n", &format, 0),
            vec![some(&["1", "x y"]), some(&["2", ""])]
        );
    }

    #[test]
    fn quotes_protect_terminators() {
        let format = FileFormat {
            fields_terminated_by: b",".to_vec(),
            enclosed_by: Some(b'"'),
            optionally_enclosed: true,
            lines_terminated_by: b"\r\n".to_vec(),
            ..FileFormat::default()
        };
        let records = read(
            "h1,h2\r\n\"a,\"\"b\"\"\r\n\",2\r\nNULL,\"NULL\"\r\n",
            &format,
            1,
        );
        assert_eq!(
            records,
            vec![some(&["a,\"b\"\r\n", "2"]), vec![None, Some("NULL".into())]]
        );
    }

    /// 0x835C of sjis ends with a backslash, 0x837C with a bar; 0xB1 is a letter of one byte.
    #[test]
    fn nothing_matters_within_a_character_of_several_bytes() {
        let records = read_of_set(
            b"\x83\x5C\t\xB1\x83\x5C\\t\n\x83\x5C\n\x83",
            &FileFormat::default(),
            0,
            "sjis",
        );
        assert_eq!(records[0], some(&["\u{30bd}", "\u{ff71}\u{30bd}\t"]));
        assert_eq!(records[1], some(&["\u{30bd}"]));
        assert_eq!(records[2], some(&["?"]));
        let bars = FileFormat {
            fields_terminated_by: b"|".to_vec(),
            lines_terminated_by: b"|\n".to_vec(),
            enclosed_by: Some(b'"'),
            optionally_enclosed: true,
            ..FileFormat::default()
        };
        let records = read_of_set(
            b"\x83\x7C|\n\"\x83\x5C\"|\x83\x7C\x83\x7C|\nx|\x83\x7C",
            &bars,
            1,
            "sjis",
        );
        assert_eq!(records[0], some(&["\u{30bd}", "\u{30dd}\u{30dd}"]));
        assert_eq!(records[1], some(&["x", "\u{30dd}"]));
        let four = FileFormat {
            fields_terminated_by: b"0".to_vec(),
            ..FileFormat::default()
        };
        let records = read_of_set(b"\x81\x30\x84\x3601\n", &four, 0, "gb18030");
        assert_eq!(records[0].len(), 2);
    }

    #[test]
    fn an_escaped_null_in_quotes_is_null() {
        let format = FileFormat {
            enclosed_by: Some(b'"'),
            ..FileFormat::default()
        };
        assert_eq!(
            read("\"\\N\"\t\"\\Nx\"\t\"N\"\n", &format, 0),
            vec![vec![None, Some("Nx".into()), Some("N".into())]]
        );
    }

    #[test]
    fn a_field_that_the_input_ends_in_keeps_its_quote() {
        let format = FileFormat {
            enclosed_by: Some(b'"'),
            ..FileFormat::default()
        };
        assert_eq!(
            read("1\t\"a\"\"b\tc\n", &format, 0),
            vec![some(&["1", "\"a\"b\tc\n"])]
        );
        assert_eq!(read("1\t\"", &format, 0), vec![some(&["1", "\""])]);
    }

    #[test]
    fn no_field_is_between_a_terminator_and_the_end_of_the_input() {
        let format = FileFormat::default();
        assert_eq!(read("1\t2\t", &format, 0), vec![some(&["1", "2"])]);
        assert_eq!(read("1\t2\t\n", &format, 0), vec![some(&["1", "2", ""])]);
    }

    #[test]
    fn a_line_prefix_is_skipped_with_what_is_before_it() {
        let format = FileFormat {
            lines_starting_by: b"xxx".to_vec(),
            ..FileFormat::default()
        };
        assert_eq!(
            read("xxx1\t2\nsomething xxx3\t4\nno prefix\n", &format, 0),
            vec![some(&["1", "2"]), some(&["3", "4"])]
        );
    }
}
