//! `LOAD DATA [LOCAL] INFILE`.
//!
//! Fields go from the reader's buffer straight into column values. Into an empty table they are bulk loaded (see
//! `change/insert/table_writer.rs`). As in MySQL a file of the server must fit (strict mode). LOCAL is lenient, because
//! the server cannot stop the client from sending the rest. Its problems are warnings, and duplicates are skipped but
//! for a bulk load's.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;

use sheaf_table::Table;
use sheaf_types::{Value, assignment::Mode};

use super::field_reader::{FieldReader, Record};
use super::pipe_reader::{PipeReader, is_pipe};
use crate::change::insert::row_shape::RowShape;
use crate::change::insert::table_writer::{TableWriter, WriteOptions};
use crate::change::values::assigned::is_default;
use crate::encoding::TextEncoding;
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::statement::{LoadData, LoadTarget, OnDuplicate};
use crate::query::server_files::{directory_of_files, is_inside, outside, path_of};
use crate::session::Session;
use crate::session::result::ResultSink;

/// How a file is read.
struct FilePlan<'a> {
    load: Parsed<'a, &'a LoadData>,
    places: Vec<Place>,
    encoding: TextEncoding,
    mode: Mode,
}

/// Where a field of the file goes.
enum Place {
    Column(usize),
    Variable(String),
}

impl Session {
    pub(crate) fn load_data(
        &mut self,
        load: Parsed<'_, LoadData>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed { ast: load, text } = load;
        let (database, table_name) = self.resolve_for_change(&load.table)?;
        if load.format.lines_terminated_by.is_empty() {
            return Err(SqlError::not_supported_yet(
                "LOAD DATA ... LINES TERMINATED BY ''",
            ));
        }
        let on_duplicate = load.on_duplicate;
        // A client cannot be told to stop in the middle of its file, so LOCAL is IGNORE unless it is REPLACE.
        let lenient = load.local && on_duplicate == OnDuplicate::Error
            || on_duplicate == OnDuplicate::Ignore
            || !self.variables.sql_mode().is_strict();
        let options = WriteOptions {
            mode: Mode {
                strict: !lenient,
                ..self.insert_mode(false)
            },
            on_duplicate: on_duplicate.into(),
            ignore: on_duplicate == OnDuplicate::Ignore,
            bulk: true,
            source_keeps_rows: false,
            keeps_zero: self.variables.keeps_zero(),
        };
        let encoding = file_encoding(load.character_set.as_deref())?;
        let mut writer = self.open_writer(&database, &table_name, options)?;
        // A bulk load finds duplicates at its end, where they are an error. It is not rolled back because of them.
        if load.local && on_duplicate == OnDuplicate::Error {
            writer.skip_duplicates();
        }
        let done = places_of(writer.table(), &load.targets).and_then(|places| {
            let plan = FilePlan {
                load: Parsed::new(&load, text),
                places,
                encoding,
                mode: options.mode,
            };
            if !load.local {
                let input = self.open_server_file(&load.file)?;
                let loaded = self.load_rows(&mut writer, input, &plan);
                // A pipe ends with an error of its own then.
                self.handle.cancel_flag().check()?;
                loaded
            } else if self.client.info.local_infile && self.engine.globals().local_infile() {
                let input = sink.local_infile(&load.file)?;
                self.load_rows(&mut writer, input, &plan)
            } else {
                Err(SqlError::local_infile_disabled())
            }
        });
        let written = self.close_writer(writer, done)?;
        self.findings.warn(&mut self.warnings);
        let info = format!(
            "Records: {}  Deleted: {}  Skipped: {}  Warnings: {}",
            written.records(),
            written.deleted,
            written.duplicates,
            self.warnings.count()
        );
        self.outcome.note_generated(written.first_auto_increment);
        self.ok_with_id(
            sink,
            written.affected(self.client.info.found_rows),
            written.first_auto_increment,
            info,
        )
    }

    /// A file of the server: only from the directory that `secure_file_priv` names. Errors 1290 and 29.
    fn open_server_file(&self, name: &str) -> Result<Box<dyn Read>> {
        let allowed = directory_of_files(&self.engine)?;
        let not_found = |error: std::io::Error| {
            SqlError::file_not_found(
                name,
                error.raw_os_error().unwrap_or(0),
                &error.kind().to_string(),
            )
        };
        // Links and dots are resolved before the check, so that they do not lead out.
        let path = path_of(name, allowed).canonicalize().map_err(not_found)?;
        if !allowed.as_os_str().is_empty() && !is_inside(&path, allowed) {
            return Err(outside());
        }
        if is_pipe(&path) {
            let opened = PipeReader::open(&path, self.handle());
            // Killed rather than not found.
            self.handle.cancel_flag().check()?;
            return Ok(Box::new(opened.map_err(not_found)?));
        }
        Ok(Box::new(File::open(&path).map_err(not_found)?))
    }

    fn load_rows(
        &mut self,
        writer: &mut TableWriter,
        input: impl Read,
        plan: &FilePlan<'_>,
    ) -> Result<()> {
        let FilePlan {
            load,
            places,
            encoding,
            mode,
        } = plan;
        let Parsed { ast: load, text } = *load;
        let (encoding, mode) = (*encoding, *mode);
        let now = self.local_now_micros();
        let columns = &writer.table().definition;
        let set_positions = load
            .set
            .iter()
            .map(|(name, _)| {
                columns
                    .column_position(name)
                    .ok_or_else(|| SqlError::bad_field(name, "field list"))
            })
            .collect::<Result<Vec<_>>>()?;
        let given = places.iter().filter_map(|place| match place {
            Place::Column(position) => Some(*position),
            Place::Variable(_) => None,
        });
        let targets: Vec<usize> = given.chain(set_positions.iter().copied()).collect();
        let (table, options) = (writer.table(), writer.options());
        let defaults = self.computed_defaults(columns)?;
        let shape = RowShape::new(table, &targets, options, now, &mut self.warnings)?;
        let shape = shape.with_defaults(defaults);
        let is_bytes: Vec<bool> = columns
            .columns
            .iter()
            .map(|column| column.ty.takes_bytes())
            .collect();
        let mut reader = FieldReader::new(input, load.format.clone(), encoding.several_bytes());
        reader.skip_lines(load.ignore_lines)?;
        let mut record = Record::default();
        let mut row = shape.new_row();
        while reader.next_record(&mut record)? {
            let number = writer.rows_seen() + 1;
            // Checked once for all fields; a field in it is text where it does not cut a character.
            let text_of_record = std::str::from_utf8(record.bytes()).ok();
            for (n, place) in places.iter().enumerate() {
                let range = if n < record.len() {
                    record.range(n)
                } else {
                    None
                };
                let field = range.map(|range| {
                    let bytes = &record.bytes()[range.clone()];
                    let text = match text_of_record {
                        Some(text) => text.get(range),
                        None => std::str::from_utf8(bytes).ok(),
                    };
                    Field { bytes, text }
                });
                match (place, field) {
                    // Bytes that are no text stay what they are.
                    (Place::Variable(name), field) => {
                        let value = field.map_or(Value::Null, |field| {
                            field.to_value(encoding, field.undefined(encoding).is_some())
                        });
                        self.user_variables.set(name, value)?;
                    }
                    (Place::Column(position), _) if n >= record.len() => {
                        let error = SqlError::warn_too_few_records(number);
                        if mode.strict {
                            return Err(error);
                        }
                        self.warnings.warn(error.code, error.message);
                        shape.put_missing(&mut row, *position, now);
                    }
                    (Place::Column(position), None) => {
                        let null = &Value::Null;
                        shape.put(&mut row, *position, null, number, &mut self.warnings)?;
                    }
                    (Place::Column(position), Some(field)) => {
                        let known_text = if encoding.table_set().is_none() || field.bytes.is_ascii()
                        {
                            field.text
                        } else {
                            None
                        };
                        if let (Some(field), false) = (known_text, is_bytes[*position]) {
                            shape.put_text(
                                &mut row,
                                *position,
                                field,
                                number,
                                &mut self.warnings,
                            )?;
                        } else {
                            let is_bytes = is_bytes[*position];
                            let warnings = &mut self.warnings;
                            if let Some(bytes) = field.undefined(encoding).filter(|_| !is_bytes) {
                                shape.note_no_text(*position, bytes, number, warnings)?;
                            }
                            let value = field.to_value(encoding, is_bytes);
                            shape.put(&mut row, *position, &value, number, &mut self.warnings)?;
                        }
                    }
                }
            }
            if has_more_data(&record, places.len()) {
                let error = SqlError::warn_too_many_records(number);
                if mode.strict {
                    return Err(error);
                }
                self.warnings.warn(error.code, error.message);
            }
            for ((_, expression), position) in load.set.iter().zip(&set_positions) {
                if is_default(expression) {
                    shape.put_default(&mut row, *position, now, &mut self.warnings)?;
                    continue;
                }
                let expression = Parsed::new(expression, text);
                let value = self.value_in_row(writer.table(), (&row, *position), expression)?;
                shape.put(&mut row, *position, &value, number, &mut self.warnings)?;
            }
            shape.complete(&mut row, (number, false), &mut self.warnings)?;
            writer.write(&row, &mut self.warnings)?;
        }
        Ok(())
    }
}

/// A field of a record.
struct Field<'a> {
    bytes: &'a [u8],
    /// The bytes as UTF-8, if they are.
    text: Option<&'a str>,
}

impl Field<'_> {
    fn to_text(&self, encoding: TextEncoding) -> Cow<'_, str> {
        match encoding.table_set() {
            Some(set) => set.decode(self.bytes).into(),
            None => String::from_utf8_lossy(self.bytes),
        }
    }

    /// What begins with the first byte that is no character of the file's character set.
    fn undefined(&self, encoding: TextEncoding) -> Option<&[u8]> {
        let from = encoding.table_set()?.valid_up_to(self.bytes);
        self.bytes.get(from..).filter(|rest| !rest.is_empty())
    }

    /// The value for a column of bytes, or of anything else. What should be text and is not stays bytes: the column's
    /// conversion then says what is wrong with it.
    fn to_value(&self, encoding: TextEncoding, is_bytes: bool) -> Value {
        if !is_bytes && (encoding.table_set().is_some() || self.text.is_some()) {
            Value::Text(self.to_text(encoding).into_owned())
        } else {
            Value::Bytes(self.bytes.to_vec())
        }
    }
}

fn file_encoding(character_set: Option<&str>) -> Result<TextEncoding> {
    let name = character_set.map_or(Ok("utf8mb4"), crate::variables::character_set)?;
    let encoding = TextEncoding::of_character_set(name);
    match encoding.is_for_files() {
        true => Ok(encoding),
        false => Err(SqlError::not_supported_yet(format!("a file in {name}"))),
    }
}

/// True if a record has data behind its last column. A terminator at the very end of the line is no data: dbgen
/// writes one.
fn has_more_data(record: &Record, columns: usize) -> bool {
    record.len() > columns + 1
        || (record.len() == columns + 1 && record.field(columns) != Some(b""))
}

fn places_of(table: &Table, targets: &[LoadTarget]) -> Result<Vec<Place>> {
    if targets.is_empty() {
        let columns = table.definition.visible_columns();
        return Ok(columns.map(Place::Column).collect());
    }
    let mut seen = Vec::new();
    targets
        .iter()
        .map(|target| match target {
            LoadTarget::Variable(name) => Ok(Place::Variable(name.clone())),
            LoadTarget::Column(name) => {
                let position = table
                    .definition
                    .column_position(name)
                    .ok_or_else(|| SqlError::bad_field(name, "field list"))?;
                if seen.contains(&position) {
                    return Err(SqlError::field_specified_twice(name));
                }
                seen.push(position);
                Ok(Place::Column(position))
            }
        })
        .collect()
}
