//! Records that wait: written one after the other, then read back in their order.
//!
//! They take query memory; when that is used up they go to a temporary file, which is deleted when it is made and lives
//! on without a name. From then on they take no more memory than writing in large pieces needs.
//!
//! ```text
//!   push push push ...  ->  [ file: older records ][ memory: newer records ]  ->  next next next ...
//!   record: | length of the rest (u32) | bytes |
//! ```

use std::io::{BufReader, Read};
use std::sync::Arc;

use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use sheaf_exec::memory_pool::without_waiting;
use sheaf_storage::{TempFile, TempFileReader, TempSpace};
use sheaf_table::TableError;

use crate::error::{Result, SqlError};
use crate::session::Session;

/// Memory is reserved in steps of this size.
const RESERVE_BYTES: usize = 256 << 10;
/// Or of this part of what is reserved already, so that few steps copy what there is.
const RESERVE_SHARE: usize = 4;
/// What a spool without query memory has, to write in pieces of this size.
const WRITE_BYTES: usize = 64 << 10;
/// The part of the query memory that one spool may take. A statement with two of them is a small one still: it has them
/// while it changes rows, which may take long, and others wait for what is big.
const MEMORY_SHARE: usize = 32;

/// See the module's comment.
pub struct RecordSpool {
    reservation: MemoryReservation,
    limit_bytes: usize,
    space: Arc<TempSpace>,
    memory: Vec<u8>,
    file: Option<TempFile>,
    records: u64,
}

impl RecordSpool {
    /// An empty spool within the session's query memory; `purpose` is how errors call it.
    pub fn new(session: &mut Session, purpose: &str) -> RecordSpool {
        let pool = &session.task_context().runtime_env().memory_pool;
        RecordSpool {
            reservation: MemoryConsumer::new(purpose).register(pool),
            limit_bytes: session.engine.memory().query_bytes / MEMORY_SHARE,
            space: Arc::clone(session.engine.storage().temp_space()),
            memory: Vec::new(),
            file: None,
            records: 0,
        }
    }

    /// Adds a record, whose bytes `fill` appends. If `fill` fails there is nothing of it.
    ///
    /// # Errors
    /// What `fill` reports; 1021 and 1026 if the temporary file cannot be written.
    pub fn push(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        let start = self.memory.len();
        self.memory.extend_from_slice(&[0; 4]);
        if let Err(error) = fill(&mut self.memory) {
            self.memory.truncate(start);
            return Err(error);
        }
        let length = u32::try_from(self.memory.len() - start - 4)
            .map_err(|_| SqlError::out_of_memory("a row of more than 4 GiB"))?;
        self.memory[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
        let reserved = self.reservation.size();
        let room = match reserved {
            0 => self.limit_bytes.min(WRITE_BYTES),
            // The next record finds room as well: by themselves blocks of memory double.
            reserved => reserved.saturating_sub(WRITE_BYTES),
        };
        if self.memory.len() <= room {
            return Ok(());
        }
        let more = self.memory.len().saturating_sub(reserved) + RESERVE_BYTES;
        let more = more.max(reserved / RESERVE_SHARE);
        if reserved + more > self.limit_bytes
            || without_waiting(|| self.reservation.try_grow(more)).is_err()
        {
            return self.spill();
        }
        let room = self.reservation.size().saturating_sub(self.memory.len());
        self.memory.reserve_exact(room);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let create = || self.space.create("rows").map_err(TableError::from);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(create()?),
        };
        file.append(&self.memory).map_err(TableError::from)?;
        self.memory.clear();
        self.limit_bytes = self.limit_bytes.min(WRITE_BYTES);
        self.memory.shrink_to(self.limit_bytes);
        self.reservation.free();
        Ok(())
    }

    /// Ends the input; the records are read from the first one.
    pub fn read(self) -> SpooledRecords {
        SpooledRecords {
            file: self.file.map(|file| BufReader::new(file.into_reader())),
            memory: self.memory,
            at: 0,
            left: self.records,
            scratch: Vec::new(),
            _reservation: self.reservation,
        }
    }
}

/// The records of a spool on their way out.
pub struct SpooledRecords {
    file: Option<BufReader<TempFileReader>>,
    memory: Vec<u8>,
    at: usize,
    left: u64,
    scratch: Vec<u8>,
    _reservation: MemoryReservation,
}

impl SpooledRecords {
    /// The next record; `None` behind the last.
    ///
    /// # Errors
    /// 1026 if the temporary file cannot be read, 1105 if it does not hold what was written to it.
    pub fn next_record(&mut self) -> Result<Option<&[u8]>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if let Some(file) = &mut self.file {
            let read = read_record(file, &mut self.scratch);
            if read.map_err(|error| TableError::from(file.get_ref().failed(error)))? {
                return Ok(Some(&self.scratch));
            }
            self.file = None;
        }
        let rest = self.memory.get(self.at..).unwrap_or_default();
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        let length = u32::from_le_bytes(*length) as usize;
        self.at += 4 + length;
        rest.get(..length).ok_or_else(damaged).map(Some)
    }
}

/// Reads one record; false at the end of the file.
fn read_record(file: &mut impl Read, record: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut length = [0; 4];
    match file.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
        Err(error) => return Err(error),
    }
    record.resize(u32::from_le_bytes(length) as usize, 0);
    file.read_exact(record)?;
    Ok(true)
}

pub(crate) fn damaged() -> SqlError {
    SqlError::unknown("a temporary file does not hold what was written to it")
}

/// Limit of what spools of tests write to their directories.
#[cfg(test)]
pub(crate) const MAX_TEST_FILE_BYTES: u64 = 8 << 20;

#[cfg(test)]
impl RecordSpool {
    /// A spool that no session has.
    pub(crate) fn alone(directory: &std::path::Path, limit_bytes: usize) -> RecordSpool {
        use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryPool};
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
        RecordSpool {
            reservation: MemoryConsumer::new("test").register(&pool),
            limit_bytes,
            space: TempSpace::new(directory, MAX_TEST_FILE_BYTES),
            memory: Vec::new(),
            file: None,
            records: 0,
        }
    }

    pub(crate) fn has_spilled(&self) -> bool {
        self.file.is_some()
    }
}
