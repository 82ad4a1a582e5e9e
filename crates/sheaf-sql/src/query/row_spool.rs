//! Rows that wait: collected from a query until its last row is there, then read back in their order.
//!
//! A statement that changes rows first collects which ones, and only then changes the first. Otherwise an index scan
//! could meet again what the statement itself has moved ahead of it (the Halloween problem), and subqueries would
//! see half of the change. The rows are [records](crate::query::record_spool) of values:
//!
//! ```text
//!   row:    | value | value | ...
//!   value:  | tag (u8) | bytes, those of texts and byte strings behind their length (u32) |
//! ```

use sheaf_types::Value;
use sheaf_types::number::Wide;

use crate::error::Result;
use crate::query::batch_spool::WaitingResult;
use crate::query::record_spool::{RecordSpool, SpooledRecords, damaged};
use crate::query::rows::value_at;
use crate::query::run::PlannedQuery;
use crate::session::Session;

/// See the module's comment.
pub(crate) struct RowSpool(RecordSpool);

impl Session {
    /// An empty spool within the session's query memory.
    pub(crate) fn row_spool(&mut self) -> RowSpool {
        RowSpool(self.record_spool("rows to change"))
    }

    /// Runs a query to its end and keeps its rows.
    pub(crate) fn collect_rows(&mut self, planned: PlannedQuery) -> Result<SpooledRows> {
        let mut spool = self.row_spool();
        self.run_planned(planned, |batch| {
            for row in 0..batch.num_rows() {
                let values = batch.columns().iter();
                spool.push(values.map(|column| value_at(column.as_ref(), row)))?;
            }
            Ok(())
        })?;
        Ok(spool.read())
    }

    /// Runs a query to its end. Its first columns are rows of keys, the others what is shown of the rows.
    pub(crate) fn collect_keys_and_result(
        &mut self,
        planned: PlannedQuery,
        keys: usize,
    ) -> Result<(SpooledRows, WaitingResult)> {
        let columns = planned.columns[keys..].to_vec();
        let shown: Vec<usize> = (keys..planned.schema().fields().len()).collect();
        let mut batches = self.batch_spool("rows to show");
        let mut spool = self.row_spool();
        self.run_planned(planned, |batch| {
            for row in 0..batch.num_rows() {
                let values = batch.columns().iter().take(keys);
                spool.push(values.map(|column| value_at(column.as_ref(), row)))?;
            }
            batches.push(batch.project(&shown)?)
        })?;
        let batches = batches.read();
        Ok((spool.read(), WaitingResult { columns, batches }))
    }
}

impl RowSpool {
    /// Adds a row.
    ///
    /// # Errors
    /// 1021 and 1026 if the temporary file cannot be written.
    pub(crate) fn push(&mut self, mut row: impl Iterator<Item = Result<Value>>) -> Result<()> {
        self.0.push(|bytes| {
            row.try_for_each(|value| {
                push_value(bytes, &value?);
                Ok(())
            })
        })
    }

    /// Ends the input; the rows are read from the first one.
    pub(crate) fn read(self) -> SpooledRows {
        SpooledRows(self.0.read())
    }
}

/// The rows of a spool on their way out.
pub(crate) struct SpooledRows(SpooledRecords);

impl SpooledRows {
    /// Puts the next row into `row`; false: there is none, and the last one stays there.
    pub(crate) fn next(&mut self, row: &mut Vec<Value>) -> Result<bool> {
        let Some(bytes) = self.0.next_record()? else {
            return Ok(false);
        };
        row.clear();
        take_values(bytes, row)?;
        Ok(true)
    }

    /// The next rows: at most so many, and none behind one with which they have more than so many bytes. Empty: there
    /// are none.
    pub(crate) fn next_rows(
        &mut self,
        most_rows: usize,
        most_bytes: usize,
    ) -> Result<Vec<Vec<Value>>> {
        let (mut rows, mut taken) = (Vec::new(), 0);
        while rows.len() < most_rows
            && taken <= most_bytes
            && let Some(bytes) = self.0.next_record()?
        {
            taken += bytes.len();
            let mut row = Vec::new();
            take_values(bytes, &mut row)?;
            rows.push(row);
        }
        Ok(rows)
    }
}

fn push_value(bytes: &mut Vec<u8>, value: &Value) {
    let mut put = |tag: u8, content: &[u8]| {
        bytes.push(tag);
        bytes.extend_from_slice(content);
    };
    match value {
        Value::Null => put(0, &[]),
        Value::Int(v) => put(1, &v.to_le_bytes()),
        Value::UInt(v) => put(2, &v.to_le_bytes()),
        Value::Decimal { unscaled, scale } => {
            put(3, &unscaled.to_le_bytes());
            bytes.push(*scale);
        }
        Value::WideDecimal { unscaled, scale } => {
            put(16, unscaled.bytes());
            bytes.push(*scale);
        }
        Value::Float(v) => put(4, &v.to_le_bytes()),
        Value::Double(v) => put(5, &v.to_le_bytes()),
        Value::Text(v) => push_string(bytes, 6, v.as_bytes()),
        Value::Bytes(v) => push_string(bytes, 7, v),
        Value::Json(v) => push_string(bytes, 15, v),
        Value::Date(v) => put(8, &v.to_le_bytes()),
        Value::Time(v) => put(9, &v.to_le_bytes()),
        Value::DateTime(v) => put(10, &v.to_le_bytes()),
        Value::Timestamp(v) => put(11, &v.to_le_bytes()),
        Value::Year(v) => put(12, &v.to_le_bytes()),
        Value::Enum(v) => put(13, &v.to_le_bytes()),
        Value::Set(v) => put(14, &v.to_le_bytes()),
    }
}

fn push_string(bytes: &mut Vec<u8>, tag: u8, string: &[u8]) {
    bytes.push(tag);
    bytes.extend_from_slice(&(string.len() as u32).to_le_bytes());
    bytes.extend_from_slice(string);
}

fn take_values(mut bytes: &[u8], row: &mut Vec<Value>) -> Result<()> {
    while let Some((tag, rest)) = bytes.split_first() {
        bytes = rest;
        let value = take_value(*tag, &mut bytes).ok_or_else(damaged)?;
        row.push(value);
    }
    Ok(())
}

fn take_value(tag: u8, bytes: &mut &[u8]) -> Option<Value> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (taken, rest) = bytes.split_first_chunk::<N>()?;
        *bytes = rest;
        Some(*taken)
    }
    fn string(bytes: &mut &[u8]) -> Option<Vec<u8>> {
        let length = u32::from_le_bytes(take(bytes)?) as usize;
        let (taken, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(taken.to_vec())
    }
    Some(match tag {
        0 => Value::Null,
        1 => Value::Int(i64::from_le_bytes(take(bytes)?)),
        2 => Value::UInt(u64::from_le_bytes(take(bytes)?)),
        3 => Value::Decimal {
            unscaled: i128::from_le_bytes(take(bytes)?),
            scale: take::<1>(bytes)?[0],
        },
        16 => Value::WideDecimal {
            unscaled: Wide::of_bytes(take(bytes)?),
            scale: take::<1>(bytes)?[0],
        },
        4 => Value::Float(f32::from_le_bytes(take(bytes)?)),
        5 => Value::Double(f64::from_le_bytes(take(bytes)?)),
        6 => Value::Text(String::from_utf8(string(bytes)?).ok()?),
        7 => Value::Bytes(string(bytes)?),
        15 => Value::Json(string(bytes)?),
        8 => Value::Date(i32::from_le_bytes(take(bytes)?)),
        9 => Value::Time(i64::from_le_bytes(take(bytes)?)),
        10 => Value::DateTime(i64::from_le_bytes(take(bytes)?)),
        11 => Value::Timestamp(i64::from_le_bytes(take(bytes)?)),
        12 => Value::Year(u16::from_le_bytes(take(bytes)?)),
        13 => Value::Enum(u16::from_le_bytes(take(bytes)?)),
        14 => Value::Set(u64::from_le_bytes(take(bytes)?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn spool(directory: &Path, limit_bytes: usize) -> RowSpool {
        RowSpool(RecordSpool::alone(directory, limit_bytes))
    }

    fn row(number: i64) -> Vec<Value> {
        vec![
            Value::Int(number),
            Value::Null,
            Value::Text(format!("row {number}")),
            Value::Bytes(vec![number as u8; 300]),
            Value::Decimal {
                unscaled: i128::from(number) << 70,
                scale: 3,
            },
            Value::WideDecimal {
                unscaled: Wide::from(i128::from(-number) << 90),
                scale: 30,
            },
            Value::Date(-number as i32),
            Value::Time(-number),
            Value::DateTime(number),
            Value::Timestamp(number),
            Value::Year(number as u16),
            Value::Enum(7),
            Value::Set(1 << 63),
            Value::Float(0.5),
            Value::Double(number as f64),
            Value::UInt(u64::MAX),
        ]
    }

    fn check(rows: i64, limit_bytes: usize) -> bool {
        let directory = tempfile::tempdir().expect("a directory");
        let mut spool = spool(directory.path(), limit_bytes);
        for number in 0..rows {
            spool.push(row(number).into_iter().map(Ok)).expect("a push");
        }
        let spilled = spool.0.has_spilled();
        let mut reader = spool.read();
        let mut read = Vec::new();
        for number in 0..rows {
            assert!(reader.next(&mut read).expect("a row"));
            assert_eq!(read, row(number));
        }
        assert!(!reader.next(&mut read).expect("the end"));
        let left_behind = std::fs::read_dir(directory.path())
            .expect("a listing")
            .count();
        assert_eq!(left_behind, 0);
        spilled
    }

    #[test]
    fn rows_come_back_in_their_order_from_memory_and_from_the_file() {
        assert!(!check(10, 1 << 20));
        assert!(check(5_000, 300 << 10));
        // Every row goes to the file.
        assert!(check(50, 0));
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        std::fs::write(&file, b"").expect("a file");
        let mut spool = spool(&file, 0);
        let pushed = spool.push(row(1).into_iter().map(Ok));
        assert_eq!(pushed.map_err(|error| error.code), Err(1026));
    }

    #[test]
    fn files_beyond_their_limit_are_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut spool = spool(directory.path(), 0);
        let pushed = (0..).try_for_each(|number| spool.push(row(number).into_iter().map(Ok)));
        let error = pushed.expect_err("a limit");
        assert_eq!(error.code, 1021);
        assert!(
            error.message.contains("max_temp_bytes"),
            "{}",
            error.message
        );
    }
}
