//! Rows that wait: collected from a query until its last row is there, then read back in their order.
//!
//! A statement that changes rows first collects which ones, and only then changes the first. Otherwise an index scan
//! could meet again what the statement itself has moved ahead of it (the Halloween problem), and subqueries would
//! see half of the change. The rows take query memory; when that is used up they go on in a temporary file, which
//! is deleted when it is made and lives on without a name.
//!
//! ```text
//!   push push push ...  ->  [ file: older rows ][ memory: newer rows ]  ->  next next next ...
//!   row:    | length of the rest (u32) | value | value | ...
//!   value:  | tag (u8) | bytes, those of texts and byte strings behind their length (u32) |
//! ```

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use sheaf_table::{TableError, Value};

use crate::error::{Result, SqlError};
use crate::rows::value_at;
use crate::run_query::PlannedQuery;
use crate::session::Session;

/// Memory is reserved in steps of this size.
const RESERVE_BYTES: usize = 256 << 10;
/// The part of the query memory that one spool may take.
const MEMORY_SHARE: usize = 4;

/// See the module's comment.
pub(crate) struct RowSpool {
    reservation: MemoryReservation,
    limit_bytes: usize,
    directory: PathBuf,
    memory: Vec<u8>,
    file: Option<(File, PathBuf)>,
    rows: u64,
}

impl Session {
    /// An empty spool within the session's query memory.
    pub(crate) fn row_spool(&mut self) -> RowSpool {
        let pool = &self.task_context().runtime_env().memory_pool;
        RowSpool {
            reservation: MemoryConsumer::new("rows to change").register(pool),
            limit_bytes: self.engine.memory().query_bytes / MEMORY_SHARE,
            directory: self.engine.storage().temp_dir(),
            memory: Vec::new(),
            file: None,
            rows: 0,
        }
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
        spool.read()
    }
}

impl RowSpool {
    /// Adds a row.
    ///
    /// # Errors
    /// 1021 and 1026 if the temporary file cannot be written.
    pub(crate) fn push(&mut self, row: impl Iterator<Item = Result<Value>>) -> Result<()> {
        let start = self.memory.len();
        self.memory.extend_from_slice(&[0; 4]);
        for value in row {
            push_value(&mut self.memory, &value?);
        }
        let length = u32::try_from(self.memory.len() - start - 4)
            .map_err(|_| SqlError::out_of_memory("a row of more than 4 GiB"))?;
        self.memory[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.rows += 1;
        let reserved = self.reservation.size();
        if self.memory.len() > reserved {
            let more = (self.memory.len() - reserved).max(RESERVE_BYTES);
            if reserved + more > self.limit_bytes || self.reservation.try_grow(more).is_err() {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let (file, path) = match &mut self.file {
            Some(file) => file,
            none => none.insert(create_unnamed(&self.directory)?),
        };
        file.write_all(&self.memory)
            .map_err(|error| failed(path, error))?;
        self.memory.clear();
        Ok(())
    }

    /// Ends the input; the rows are read from the first one.
    pub(crate) fn read(self) -> Result<SpooledRows> {
        let file = match self.file {
            Some((mut file, path)) => {
                file.seek(SeekFrom::Start(0))
                    .map_err(|error| failed(&path, error))?;
                Some((BufReader::new(file), path))
            }
            None => None,
        };
        Ok(SpooledRows {
            file,
            memory: self.memory,
            at: 0,
            left: self.rows,
            scratch: Vec::new(),
            _reservation: self.reservation,
        })
    }
}

/// The rows of a spool on their way out.
pub(crate) struct SpooledRows {
    file: Option<(BufReader<File>, PathBuf)>,
    memory: Vec<u8>,
    at: usize,
    left: u64,
    scratch: Vec<u8>,
    _reservation: MemoryReservation,
}

impl SpooledRows {
    /// Puts the next row into `row`; false: there is none, and the last one stays there.
    pub(crate) fn next(&mut self, row: &mut Vec<Value>) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        row.clear();
        self.left -= 1;
        if let Some((file, path)) = &mut self.file {
            if read_row(file, &mut self.scratch).map_err(|error| failed(path, error))? {
                take_values(&self.scratch, row)?;
                return Ok(true);
            }
            self.file = None;
        }
        let rest = self.memory.get(self.at..).unwrap_or_default();
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        let length = u32::from_le_bytes(*length) as usize;
        take_values(rest.get(..length).ok_or_else(damaged)?, row)?;
        self.at += 4 + length;
        Ok(true)
    }
}

/// Reads one row; false at the end of the file.
fn read_row(file: &mut impl Read, row: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut length = [0; 4];
    match file.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
        Err(error) => return Err(error),
    }
    row.resize(u32::from_le_bytes(length) as usize, 0);
    file.read_exact(row)?;
    Ok(true)
}

fn create_unnamed(directory: &Path) -> Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("rows-{}-{number}", std::process::id()));
    let open = || {
        std::fs::create_dir_all(directory)?;
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    };
    match open() {
        Ok(file) => Ok((file, path)),
        Err(error) => Err(failed(&path, error)),
    }
}

fn failed(path: &Path, source: std::io::Error) -> SqlError {
    TableError::TemporaryFile {
        path: path.display().to_string(),
        source,
    }
    .into()
}

fn damaged() -> SqlError {
    SqlError::unknown("a temporary file does not hold what was written to it")
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
        Value::Float(v) => put(4, &v.to_le_bytes()),
        Value::Double(v) => put(5, &v.to_le_bytes()),
        Value::Text(v) => push_string(bytes, 6, v.as_bytes()),
        Value::Bytes(v) => push_string(bytes, 7, v),
        Value::Date(v) => put(8, &v.to_le_bytes()),
        Value::Time(v) => put(9, &v.to_le_bytes()),
        Value::DateTime(v) => put(10, &v.to_le_bytes()),
        Value::Timestamp(v) => put(11, &v.to_le_bytes()),
        Value::Year(v) => put(12, &v.to_le_bytes()),
        Value::Enum(v) => put(13, &v.to_le_bytes()),
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
        4 => Value::Float(f32::from_le_bytes(take(bytes)?)),
        5 => Value::Double(f64::from_le_bytes(take(bytes)?)),
        6 => Value::Text(String::from_utf8(string(bytes)?).ok()?),
        7 => Value::Bytes(string(bytes)?),
        8 => Value::Date(i32::from_le_bytes(take(bytes)?)),
        9 => Value::Time(i64::from_le_bytes(take(bytes)?)),
        10 => Value::DateTime(i64::from_le_bytes(take(bytes)?)),
        11 => Value::Timestamp(i64::from_le_bytes(take(bytes)?)),
        12 => Value::Year(u16::from_le_bytes(take(bytes)?)),
        13 => Value::Enum(u16::from_le_bytes(take(bytes)?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryPool};

    use super::*;

    fn spool(directory: &Path, limit_bytes: usize) -> RowSpool {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
        RowSpool {
            reservation: MemoryConsumer::new("test").register(&pool),
            limit_bytes,
            directory: directory.to_path_buf(),
            memory: Vec::new(),
            file: None,
            rows: 0,
        }
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
            Value::Date(-number as i32),
            Value::Time(-number),
            Value::DateTime(number),
            Value::Timestamp(number),
            Value::Year(number as u16),
            Value::Enum(7),
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
        let spilled = spool.file.is_some();
        let mut reader = spool.read().expect("a reader");
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
}
