//! SELECT ... INTO OUTFILE and DUMPFILE: the rows of a query go to a new file of the server.
//!
//! The query runs as one for a client, with its locks. In the place of the client stands [`RowsFile`]. A file that is
//! not whole at the end, because the query has failed, is removed.
//!
//! ```text
//!   a field          what it is in the file, by default
//!   1.50             1.50
//!   NULL             \N
//!   a<tab>b\c        a\<tab>b\\c
//! ```
//!
//! LOAD DATA with the same clauses reads what was written.

use std::borrow::Cow;
use std::fs::{File, remove_file};
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use arrow::array::RecordBatch;
use sheaf_types::error::codes;
use sheaf_types::text::encoding::SeveralBytes;
use sheaf_types::{Collation, ColumnType, Value, column_text};

use super::select_into::more_than_one_row;
use crate::encoding::TextEncoding;
use crate::error::{Result, SqlError};
use crate::parser::ParsedQuery;
use crate::parser::statement::{FileFormat, OutFile};
use crate::query::rows::value_at;
use crate::query::server_files::new_server_file;
use crate::query::values::{shown_as_string, shown_in};
use crate::session::Session;
use crate::session::result::{ColumnMeta, EndOfRows, OkInfo, Origin, ResultSink};
use crate::variables::character_set;

/// Takes the rows of a query.
struct RowsFile {
    name: String,
    path: PathBuf,
    out: BufWriter<File>,
    form: Form,
    columns: Vec<Column>,
    rows: u64,
    /// All has been written.
    is_whole: bool,
}

/// What is written of a row.
enum Form {
    Fields(Box<FieldWriter>),
    /// The bytes of the only row, without anything between or around them.
    Bytes,
}

struct Column {
    origin: Origin,
    is_number: bool,
}

impl RowsFile {
    fn failed(&self, error: &io::Error) -> SqlError {
        SqlError::new(
            codes::ERROR_ON_WRITE,
            format!(
                "Error writing file '{}' (OS errno {} - {})",
                self.name,
                error.raw_os_error().unwrap_or(0),
                error.kind()
            ),
        )
    }

    fn write_row(&mut self, batch: &RecordBatch, row: usize) -> io::Result<Result<()>> {
        // What a client is shown.
        let shown = ColumnType::longtext(Collation::default());
        if let Form::Fields(writer) = &self.form {
            self.out.write_all(&writer.format.lines_starting_by)?;
        }
        for (at, column) in self.columns.iter().enumerate() {
            let value = match value_at(batch.column(at).as_ref(), row) {
                Ok(value) => value,
                Err(error) => return Ok(Err(error)),
            };
            let value = match &column.origin.declared {
                Some(declared) => shown_as_string(declared, &value),
                None => Cow::Borrowed(&value),
            };
            let value = shown_in(&value, &column.origin, &shown);
            let bytes: Option<Cow<'_, [u8]>> = match value.as_ref() {
                Value::Null => None,
                Value::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
                Value::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
                value => Some(Cow::Owned(column_text(&shown, value).into_bytes())),
            };
            match &self.form {
                Form::Bytes => self.out.write_all(bytes.as_deref().unwrap_or(b"\0"))?,
                Form::Fields(writer) => {
                    if at > 0 {
                        self.out.write_all(&writer.format.fields_terminated_by)?;
                    }
                    let is_text = !matches!(value.as_ref(), Value::Bytes(_));
                    writer.write(&mut self.out, bytes.as_deref(), (column.is_number, is_text))?;
                }
            }
        }
        if let Form::Fields(writer) = &self.form {
            self.out.write_all(&writer.format.lines_terminated_by)?;
        }
        Ok(Ok(()))
    }

    /// Ends the file. Until then it is removed with this.
    fn finish(mut self) -> Result<u64> {
        let written = self.out.flush();
        written.map_err(|error| self.failed(&error))?;
        self.is_whole = true;
        Ok(self.rows)
    }
}

impl Drop for RowsFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // Nothing can be done about a file that cannot be removed; the statement has an error of its own.
            let _ = remove_file(&self.path);
        }
    }
}

impl ResultSink for RowsFile {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        let columns = columns.iter().map(|column| Column {
            origin: Origin::from(column),
            is_number: column.type_.is_number(),
        });
        self.columns = columns.collect();
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in 0..batch.num_rows() {
            if matches!(self.form, Form::Bytes) && self.rows == 1 {
                return Err(more_than_one_row());
            }
            let written = self.write_row(batch, row);
            written.map_err(|error| self.failed(&error))??;
            self.rows += 1;
        }
        Ok(())
    }

    fn end_of_rows(&mut self, _end: EndOfRows) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _ok: OkInfo) -> Result<()> {
        Ok(())
    }

    fn local_infile(&mut self, _name: &str) -> Result<Box<dyn Read + '_>> {
        Err(SqlError::unknown("a query reads no file of the client"))
    }
}

/// Writes fields so that LOAD DATA reads them.
struct FieldWriter {
    format: FileFormat,
    encoding: TextEncoding,
    /// Bytes before which the escape character stands. Where fields are enclosed, their terminator needs none.
    in_enclosed: [bool; 256],
    in_others: [bool; 256],
}

/// Letters that mean something behind an escape character: such a character is doubled instead.
const ESCAPED_LETTERS: &[u8] = b"ntrb0ZN";
/// What numbers are written with.
const OF_NUMBERS: &[u8] = b".0123456789e+-";

impl FieldWriter {
    fn new(format: FileFormat, encoding: TextEncoding) -> FieldWriter {
        let escaped = |separator: Option<u8>| {
            let mut escaped = [false; 256];
            if let Some(escape) = format.escaped_by {
                let line = format.lines_terminated_by.first().copied();
                let bytes = [Some(escape), separator, line, Some(0)];
                for byte in bytes.into_iter().flatten() {
                    escaped[usize::from(byte)] = true;
                }
            }
            escaped
        };
        let terminator = format.fields_terminated_by.first().copied();
        FieldWriter {
            in_enclosed: escaped(format.enclosed_by),
            in_others: escaped(terminator),
            format,
            encoding,
        }
    }

    /// Writes a value; `None` is NULL. Texts have another encoding in the file, bytes have not.
    fn write(
        &self,
        out: &mut impl Write,
        value: Option<&[u8]>,
        (is_number, is_text): (bool, bool),
    ) -> io::Result<()> {
        let format = &self.format;
        let Some(value) = value else {
            return match format.escaped_by {
                Some(escape) => out.write_all(&[escape, b'N']),
                None => out.write_all(b"NULL"),
            };
        };
        let value = match is_text {
            true => self.encoding.encode(value),
            false => Cow::Borrowed(value),
        };
        let enclosed = format.enclosed_by;
        let enclosed = enclosed.filter(|_| !(format.optionally_enclosed && is_number));
        let escaped = match enclosed {
            Some(_) => &self.in_enclosed,
            None => &self.in_others,
        };
        let separator = enclosed.or(format.fields_terminated_by.first().copied());
        if let Some(enclosed) = enclosed {
            out.write_all(&[enclosed])?;
        }
        // A number has none of these characters, unless a separator is one of its own.
        let is_safe = is_number && !separator.is_some_and(|byte| OF_NUMBERS.contains(&byte));
        let set = self.encoding.several_bytes();
        let needs_escape = |byte: u8| !is_safe && escaped[usize::from(byte)];
        let mut rest = &value[..];
        while let Some(at) = first_to_escape(rest, set, needs_escape) {
            let byte = rest[at];
            let is_doubled = Some(byte) == separator && ESCAPED_LETTERS.contains(&byte);
            let escape = match is_doubled {
                true => byte,
                false => format.escaped_by.unwrap_or(byte),
            };
            out.write_all(&rest[..at])?;
            out.write_all(&[escape, if byte == 0 { b'0' } else { byte }])?;
            rest = &rest[at + 1..];
        }
        out.write_all(rest)?;
        if let Some(enclosed) = enclosed {
            out.write_all(&[enclosed])?;
        }
        Ok(())
    }
}

/// The first byte that needs an escape character, which none within a character of several bytes of this set does. What
/// begins no character in bytes that are no text must not begin one with the escape character or the separator behind.
fn first_to_escape(
    value: &[u8],
    set: Option<SeveralBytes>,
    needs_escape: impl Fn(u8) -> bool,
) -> Option<usize> {
    let Some(set) = set else {
        return value.iter().position(|byte| needs_escape(*byte));
    };
    let mut at = 0;
    while at < value.len() {
        let rest = &value[at..];
        let length = set.first_length(rest);
        let begins_none = length == 1 && set.valid_up_to(&rest[..1]) == 0;
        let is_before_escape = rest.get(1).is_none_or(|next| needs_escape(*next));
        if length == 1 && needs_escape(rest[0]) || begins_none && is_before_escape {
            return Some(at);
        }
        at += length;
    }
    None
}

impl Session {
    /// # Errors
    /// 1290 for a file outside of the directory of `secure_file_priv`, 1086 for one that is there, 1 for one that
    /// cannot be made, 1026 for one that cannot be written.
    pub(super) fn select_into_outfile(
        &mut self,
        query: ParsedQuery<'_>,
        file: OutFile,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let set = file.character_set.as_deref();
        let set = set.map_or(Ok("utf8mb4"), character_set)?;
        let encoding = TextEncoding::of_character_set(set);
        if !encoding.is_for_files() {
            return Err(SqlError::not_supported_yet(format!("a file in {set}")));
        }
        let writer = FieldWriter::new(file.format, encoding);
        let form = Form::Fields(Box::new(writer));
        self.select_into_file(query, (file.name, form), sink)
    }

    /// # Errors
    /// As [`Self::select_into_outfile`], and 1172 for a second row.
    pub(super) fn select_into_dumpfile(
        &mut self,
        query: ParsedQuery<'_>,
        name: String,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.select_into_file(query, (name, Form::Bytes), sink)
    }

    fn select_into_file(
        &mut self,
        query: ParsedQuery<'_>,
        (name, form): (String, Form),
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (path, file) = new_server_file(&self.engine, &name)?;
        let mut rows = RowsFile {
            name,
            path,
            out: BufWriter::new(file),
            form,
            columns: Vec::new(),
            rows: 0,
            is_whole: false,
        };
        self.query(query, &mut rows)?;
        let rows = rows.finish()?;
        self.ok(sink, rows, String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_escaped_within_a_character_of_several_bytes() {
        let writer = FieldWriter::new(
            FileFormat::default(),
            TextEncoding::of_character_set("sjis"),
        );
        let mut out = Vec::new();
        let value = "\u{30bd}\\\u{ff71}\t\u{4e2d}".as_bytes();
        let written = writer.write(&mut out, Some(value), (false, true));
        written.expect("a vector takes all");
        assert_eq!(out, b"\x83\x5C\\\\\xB1\\\t\x92\x86");
        out.clear();
        let bytes = b"\x83\x5C\x83\t\x83x\x83";
        let written = writer.write(&mut out, Some(bytes), (false, false));
        written.expect("a vector takes all");
        assert_eq!(out, b"\x83\x5C\\\x83\\\t\x83x\\\x83");
    }

    fn written(format: FileFormat, value: Option<&str>, is_number: bool) -> String {
        let writer = FieldWriter::new(format, TextEncoding::Utf8);
        let mut out = Vec::new();
        let value = value.map(str::as_bytes);
        let written = writer.write(&mut out, value, (is_number, true));
        written.expect("a vector takes all");
        String::from_utf8(out).expect("a text")
    }

    #[test]
    fn fields_are_escaped() {
        let plain = FileFormat::default;
        assert_eq!(written(plain(), None, false), "\\N");
        assert_eq!(
            written(plain(), Some("a\tb\\c\nd\0e\"f"), false),
            "a\\\tb\\\\c\\\nd\\0e\"f"
        );
        let quoted = || FileFormat {
            fields_terminated_by: b",".to_vec(),
            enclosed_by: Some(b'"'),
            optionally_enclosed: true,
            ..FileFormat::default()
        };
        assert_eq!(
            written(quoted(), Some("a,\"b\"\\"), false),
            "\"a,\\\"b\\\"\\\\\""
        );
        assert_eq!(written(quoted(), Some("1.5"), true), "1.5");
        assert_eq!(written(quoted(), None, true), "\\N");
        let unescaped = FileFormat {
            escaped_by: None,
            ..quoted()
        };
        assert_eq!(
            written(unescaped.clone(), Some("a\"\\"), false),
            "\"a\"\\\""
        );
        assert_eq!(written(unescaped, None, false), "NULL");
        // A separator that numbers are written with, and one that is a letter behind an escape.
        let point = FileFormat {
            fields_terminated_by: b".".to_vec(),
            ..FileFormat::default()
        };
        assert_eq!(written(point, Some("1.5"), true), "1\\.5");
        let letter = FileFormat {
            fields_terminated_by: b"n".to_vec(),
            ..FileFormat::default()
        };
        assert_eq!(written(letter, Some("ann"), false), "annnn");
    }
}
