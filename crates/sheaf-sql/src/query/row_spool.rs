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
use sheaf_types::value::{TaggedContent, ValueRef};

use crate::error::Result;
use crate::query::batch_spool::{BatchSpool, WaitingResult};
use crate::query::record_spool::{RecordSpool, SpooledRecords, damaged};
use crate::query::rows::value_at;
use crate::query::run::PlannedQuery;
use crate::session::Session;

/// See the module's comment.
pub(crate) struct RowSpool(RecordSpool);

/// Runs a query to its end and keeps its rows.
pub(crate) fn collect_rows(session: &mut Session, planned: PlannedQuery) -> Result<SpooledRows> {
    let mut spool = RowSpool::new(session);
    session.run_planned(planned, |batch| {
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
    session: &mut Session,
    planned: PlannedQuery,
    keys: usize,
) -> Result<(SpooledRows, WaitingResult)> {
    let columns = planned.columns[keys..].to_vec();
    let shown: Vec<usize> = (keys..planned.schema().fields().len()).collect();
    let mut batches = BatchSpool::new(session, "rows to show");
    let mut spool = RowSpool::new(session);
    session.run_planned(planned, |batch| {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().take(keys);
            spool.push(values.map(|column| value_at(column.as_ref(), row)))?;
        }
        batches.push(batch.project(&shown)?)
    })?;
    let batches = batches.read();
    Ok((spool.read(), WaitingResult { columns, batches }))
}

impl RowSpool {
    /// An empty spool within the session's query memory.
    pub(crate) fn new(session: &mut Session) -> RowSpool {
        RowSpool(RecordSpool::new(session, "rows to change"))
    }

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
    bytes.push(value.tag());
    match ValueRef::from(value) {
        ValueRef::Null => {}
        ValueRef::Int(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        ValueRef::UInt(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        ValueRef::Decimal(unscaled) => bytes.extend_from_slice(&unscaled.to_le_bytes()),
        ValueRef::WideDecimal(unscaled) => bytes.extend_from_slice(unscaled.bytes()),
        ValueRef::Float(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        ValueRef::Double(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        ValueRef::Bytes(string) => {
            bytes.extend_from_slice(&(string.len() as u32).to_le_bytes());
            bytes.extend_from_slice(string);
        }
    }
    bytes.extend(value.as_decimal().map(|(_, scale)| scale));
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
    let content = TaggedContent::of_tag(tag)?;
    Some(match content {
        TaggedContent::Nothing => Value::Null,
        TaggedContent::Signed => TaggedContent::signed(tag, i64::from_le_bytes(take(bytes)?))?,
        TaggedContent::Unsigned => TaggedContent::unsigned(tag, u64::from_le_bytes(take(bytes)?))?,
        TaggedContent::Decimal => Value::Decimal {
            unscaled: i128::from_le_bytes(take(bytes)?),
            scale: take::<1>(bytes)?[0],
        },
        TaggedContent::WideDecimal => Value::WideDecimal {
            unscaled: Wide::of_bytes(take(bytes)?),
            scale: take::<1>(bytes)?[0],
        },
        TaggedContent::Float => Value::Float(f32::from_le_bytes(take(bytes)?)),
        TaggedContent::Double => Value::Double(f64::from_le_bytes(take(bytes)?)),
        TaggedContent::String => TaggedContent::string(tag, string(bytes)?)?,
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
