//! Rows that a join finds more than once: an UPDATE of several tables changes each of them once.
//!
//! While the query's rows are collected, the keys of rows to change are noted with their numbers. What remains at the
//! end is a bit for each of them, set where the row was found before. The keys are in memory while there is room. Then
//! they go to files, divided by a hash, and each file is looked at alone:
//!
//! ```text
//!   note(key) -> memory ... full -> P0 P1 .. P63     end: keys of P0 in memory, those of P1, ...  -> bits
//! ```

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufReader, Read};
use std::sync::Arc;

use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use sheaf_access::CancelFlag;
use sheaf_exec::memory_pool::without_waiting;
use sheaf_storage::{TempFile, TempSpace};
use sheaf_table::TableError;

use crate::error::{Result, SqlError};
use crate::query::record_spool::damaged;
use crate::session::Session;

/// Files that keys are divided between.
const PARTS: usize = 64;
/// Bytes of a part that are written at a time.
const WRITE_BYTES: usize = 8 << 10;
/// What an entry takes besides its key, in a table that may be half empty.
const ENTRY_BYTES: usize = 96;
const RESERVE_BYTES: usize = 256 << 10;
/// How many keys of a file are read between two looks at KILL.
const KEYS_PER_CANCEL_CHECK: u64 = 1024;

/// See the module's comment.
pub(crate) struct FirstFinds {
    /// Keys with their tables, and the number of the find.
    found: HashMap<Vec<u8>, u64>,
    found_bytes: usize,
    reservation: MemoryReservation,
    /// None until memory is full.
    parts: Vec<Part>,
    hasher: RandomState,
    space: Arc<TempSpace>,
    cancel: CancelFlag,
    finds: u64,
    again: Vec<u64>,
}

/// Records of a part: length of the key (u32), number of the find (u64), key.
#[derive(Default)]
struct Part {
    buffer: Vec<u8>,
    file: Option<TempFile>,
}

/// Says of each find, in their order, whether it is the first one of its row.
pub(crate) struct Finds {
    again: Vec<u64>,
    at: u64,
}

impl Finds {
    /// For rows that are found once.
    pub(crate) fn all_first() -> Finds {
        Finds {
            again: Vec::new(),
            at: 0,
        }
    }

    /// Whether the next find is the first one of its row.
    pub(crate) fn next_is_first(&mut self) -> bool {
        let (word, bit) = (self.at / 64, self.at % 64);
        self.at += 1;
        let word = self.again.get(word as usize);
        word.is_none_or(|word| word >> bit & 1 == 0)
    }
}

fn entry_of(table: usize, key: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(2 + key.len());
    entry.extend_from_slice(&(table as u16).to_le_bytes());
    entry.extend_from_slice(key);
    entry
}

impl FirstFinds {
    pub(crate) fn new(session: &mut Session) -> FirstFinds {
        let pool = Arc::clone(&session.task_context().runtime_env().memory_pool);
        let space = Arc::clone(session.engine.storage().temp_space());
        FirstFinds::within(&pool, space, session.handle().cancel_flag().clone())
    }

    fn within(pool: &Arc<dyn MemoryPool>, space: Arc<TempSpace>, cancel: CancelFlag) -> FirstFinds {
        FirstFinds {
            found: HashMap::new(),
            found_bytes: 0,
            reservation: MemoryConsumer::new("keys of changed rows").register(pool),
            parts: Vec::new(),
            hasher: RandomState::new(),
            space,
            cancel,
            finds: 0,
            again: Vec::new(),
        }
    }

    /// Whether a row of this table is known to have been found, without looking at files.
    pub(crate) fn has(&self, table: usize, key: &[u8]) -> bool {
        self.found.contains_key(&entry_of(table, key))
    }

    /// A row of this table was found.
    ///
    /// # Errors
    /// 1021 and 1026 if a temporary file cannot be written.
    pub(crate) fn note(&mut self, table: usize, key: &[u8]) -> Result<()> {
        let number = self.finds;
        self.finds += 1;
        let entry = entry_of(table, key);
        if !self.parts.is_empty() {
            return self.write(&entry, number);
        }
        let bytes = entry.len() + ENTRY_BYTES;
        match self.found.entry(entry) {
            Entry::Occupied(_) => {
                set(&mut self.again, number);
                return Ok(());
            }
            Entry::Vacant(vacant) => vacant.insert(number),
        };
        self.found_bytes += bytes;
        match self.reserve(self.found_bytes) {
            true => Ok(()),
            false => self.spill(),
        }
    }

    fn reserve(&mut self, bytes: usize) -> bool {
        let reserved = self.reservation.size();
        if bytes <= reserved {
            return true;
        }
        let more = (bytes - reserved).max(RESERVE_BYTES);
        without_waiting(|| self.reservation.try_grow(more)).is_ok()
    }

    fn spill(&mut self) -> Result<()> {
        self.parts.resize_with(PARTS, Part::default);
        for (entry, number) in std::mem::take(&mut self.found) {
            self.write(&entry, number)?;
        }
        self.found_bytes = 0;
        self.reservation.free();
        // The buffers.
        self.reservation.grow(PARTS * WRITE_BYTES);
        Ok(())
    }

    fn write(&mut self, entry: &[u8], number: u64) -> Result<()> {
        let part = &mut self.parts[self.hasher.hash_one(entry) as usize % PARTS];
        part.buffer
            .extend_from_slice(&(entry.len() as u32).to_le_bytes());
        part.buffer.extend_from_slice(&number.to_le_bytes());
        part.buffer.extend_from_slice(entry);
        match part.buffer.len() >= WRITE_BYTES {
            true => part.write(&self.space),
            false => Ok(()),
        }
    }

    /// All rows were found.
    ///
    /// # Errors
    /// 1041 if the keys of one file are too many for the memory, 1317 if the statement shall stop.
    pub(crate) fn end(mut self) -> Result<Finds> {
        self.found = HashMap::new();
        for mut part in std::mem::take(&mut self.parts) {
            part.write(&self.space)?;
            if let Some(file) = part.file {
                self.look_at(file)?;
            }
        }
        Ok(Finds {
            again: self.again,
            at: 0,
        })
    }

    fn look_at(&mut self, file: TempFile) -> Result<()> {
        let mut left = file.length();
        let mut reader = BufReader::new(file.into_reader());
        let mut found = HashSet::new();
        let (mut bytes, mut keys) = (0, 0u64);
        while left > 0 {
            if keys.is_multiple_of(KEYS_PER_CANCEL_CHECK) {
                self.cancel.check()?;
            }
            keys += 1;
            let (mut length, mut number) = ([0; 4], [0; 8]);
            let mut read = |bytes: &mut [u8]| reader.read_exact(bytes).map_err(|_| damaged());
            read(&mut length)?;
            read(&mut number)?;
            let mut entry = vec![0; u32::from_le_bytes(length) as usize];
            read(&mut entry)?;
            left = left.saturating_sub(12 + entry.len() as u64);
            let entry_bytes = entry.len() + ENTRY_BYTES;
            if !found.insert(entry) {
                set(&mut self.again, u64::from_le_bytes(number));
                continue;
            }
            bytes += entry_bytes;
            if !self.reserve(bytes) && self.reservation.try_grow(RESERVE_BYTES).is_err() {
                return Err(SqlError::out_of_memory(
                    "an UPDATE of joined tables keeps the keys of changed rows in memory; update in parts or raise --memory",
                ));
            }
        }
        Ok(())
    }
}

impl Part {
    fn write(&mut self, space: &Arc<TempSpace>) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(space.create("keys").map_err(TableError::from)?),
        };
        file.append(&self.buffer).map_err(TableError::from)?;
        self.buffer.clear();
        Ok(())
    }
}

fn set(bits: &mut Vec<u64>, number: u64) {
    let word = (number / 64) as usize;
    if bits.len() <= word {
        bits.resize(word + 1, 0);
    }
    bits[word] |= 1 << (number % 64);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion_execution::memory_pool::GreedyMemoryPool;

    use super::*;

    /// Notes rows with some found again, and compares.
    fn check(finds: u64, memory: usize) -> bool {
        let directory = tempfile::tempdir().expect("a directory");
        let space = TempSpace::new(directory.path(), 64 << 20);
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(memory));
        let mut noted = FirstFinds::within(&pool, Arc::clone(&space), CancelFlag::new());
        let mut seen = BTreeSet::new();
        let mut expected = Vec::new();
        for number in 0..finds {
            let (table, key) = ((number % 3) as usize, number * 7919 % (finds / 2 + 1));
            expected.push(seen.insert((table, key)));
            noted.note(table, &key.to_be_bytes()).expect("a place");
        }
        let has_spilled = !noted.parts.is_empty();
        let mut found = noted.end().expect("memory for each part");
        for (number, is_first) in expected.iter().enumerate() {
            assert_eq!(found.next_is_first(), *is_first, "find {number}");
        }
        assert_eq!(space.used_bytes(), 0);
        assert_eq!(pool.reserved(), 0);
        has_spilled
    }

    #[test]
    fn the_first_find_of_each_row_is_known_from_memory_and_from_files() {
        assert!(!check(1_000, 1 << 30));
        assert!(check(60_000, 1 << 20));
    }

    #[test]
    fn rows_that_are_found_once_need_no_note() {
        let mut finds = Finds::all_first();
        assert!((0..1_000).all(|_| finds.next_is_first()));
    }
}
