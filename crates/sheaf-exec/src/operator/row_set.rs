//! A set of rows that may be larger than memory.
//!
//! Rows are byte strings (Arrow's format for rows). New ones are in a table in memory. When there is no memory for it,
//! it goes to a file, in the order of the rows' hashes, and a new table begins:
//!
//! ```text
//!   memory   table of new rows      for each run: filter of its hashes, hash and place of each block's first row
//!   file     run 1 | run 2 | ...    each: blocks of rows, in the order of their hashes
//! ```
//!
//! A row is looked for in the table, then in the runs whose filter holds its hash: in one block of each.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::row::{RowConverter, SortField};
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use sheaf_storage::{TempFile, TempSpace};

use crate::blocking::blocking;
use crate::error::temp_file_error;

/// Bytes of a block, about: what is read to look for a row.
const BLOCK_BYTES: usize = 4 << 10;
/// Bytes that are written at a time, about.
const WRITE_BYTES: usize = 256 << 10;
/// What a row takes in the table besides its bytes.
const ENTRY_BYTES: usize = 64;
/// Memory is reserved in steps of this size.
const RESERVE_BYTES: usize = 64 << 10;
/// The table may have so much although there is no memory: smaller runs would be too many.
const LEAST_BYTES: usize = 128 << 10;
/// A filter has so many bits for each row, and each row sets two of them: one of fifty others seems to be there.
const FILTER_BITS: usize = 12;

/// See the module's comment.
pub(crate) struct RowSet {
    converter: RowConverter,
    hasher: RandomState,
    table: HashSet<Box<[u8]>>,
    table_bytes: usize,
    runs: Vec<Run>,
    file: Option<TempFile>,
    space: Arc<TempSpace>,
    /// For the table, which can go to the file, and for what is left of it in memory then.
    for_table: MemoryReservation,
    for_runs: MemoryReservation,
}

struct Run {
    filter: Vec<u64>,
    /// The hash of the first row of each block, and where the block begins.
    blocks: Vec<(u64, u64)>,
    end: u64,
}

impl RowSet {
    /// An empty set of rows of these types; `name` is the consumer of its memory.
    pub(crate) fn new(fields: Vec<SortField>, name: &str, context: &TaskContext) -> Result<RowSet> {
        let space = context.session_config().get_extension::<TempSpace>();
        let space = space.ok_or_else(|| internal_datafusion_err!("no space for files"))?;
        let consumer = MemoryConsumer::new(name);
        let pool = context.memory_pool();
        Ok(RowSet {
            converter: RowConverter::new(fields)?,
            hasher: RandomState::new(),
            table: HashSet::new(),
            table_bytes: 0,
            runs: Vec::new(),
            file: None,
            space,
            for_table: consumer
                .clone_with_new_id()
                .with_can_spill(true)
                .register(pool),
            for_runs: consumer.register(pool),
        })
    }

    /// Adds rows. Says of each whether it is new.
    pub(crate) fn add(&mut self, columns: &[ArrayRef]) -> Result<BooleanArray> {
        let rows = self.converter.convert_columns(columns)?;
        let mut is_new = Vec::with_capacity(rows.num_rows());
        for row in &rows {
            is_new.push(self.add_row(row.as_ref())?);
        }
        Ok(BooleanArray::from(is_new))
    }

    fn add_row(&mut self, row: &[u8]) -> Result<bool> {
        if self.table.contains(row) || self.is_in_runs(row)? {
            return Ok(false);
        }
        self.table_bytes += row.len() + ENTRY_BYTES;
        let missing = self.table_bytes.saturating_sub(self.for_table.size());
        if missing > 0 && self.for_table.try_grow(missing + RESERVE_BYTES).is_err() {
            if self.table_bytes > LEAST_BYTES {
                self.spill()?;
                self.table_bytes = row.len() + ENTRY_BYTES;
            }
            let missing = self.table_bytes.saturating_sub(self.for_table.size());
            self.for_table.grow(missing);
        }
        self.table.insert(row.into());
        Ok(true)
    }

    fn is_in_runs(&self, row: &[u8]) -> Result<bool> {
        if self.runs.is_empty() {
            return Ok(false);
        }
        let hash = self.hasher.hash_one(row);
        for run in self.runs.iter().filter(|run| run.may_hold(hash)) {
            if self.is_in(run, row, hash)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_in(&self, run: &Run, row: &[u8], hash: u64) -> Result<bool> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        // Rows of one hash may lie in several blocks.
        let first = run.blocks.partition_point(|(first, _)| *first < hash);
        let mut bytes = Vec::new();
        let blocks = run.blocks.iter().enumerate();
        for (at, (lowest, start)) in blocks.skip(first.saturating_sub(1)) {
            if *lowest > hash {
                break;
            }
            let end = run.blocks.get(at + 1).map_or(run.end, |(_, start)| *start);
            bytes.resize((end - start) as usize, 0);
            blocking(|| file.read_exact_at(&mut bytes, *start)).map_err(temp_file_error)?;
            if holds(&bytes, row) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts the table into the file, as a run.
    fn spill(&mut self) -> Result<()> {
        let hasher = &self.hasher;
        let table = std::mem::take(&mut self.table);
        let mut rows: Vec<(u64, Box<[u8]>)> = table
            .into_iter()
            .map(|row| (hasher.hash_one(&*row), row))
            .collect();
        rows.sort_unstable();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.space.create("rows").map_err(temp_file_error)?),
        };
        let mut run = Run::new(rows.len());
        let (mut bytes, mut start) = (Vec::new(), file.length());
        let mut block_end = 0;
        for (hash, row) in &rows {
            if run.blocks.is_empty() || bytes.len() >= block_end {
                run.blocks.push((*hash, start + bytes.len() as u64));
                block_end = bytes.len() + BLOCK_BYTES;
            }
            run.note(*hash);
            bytes.extend_from_slice(&(row.len() as u32).to_le_bytes());
            bytes.extend_from_slice(row);
            if bytes.len() >= WRITE_BYTES {
                blocking(|| file.append(&bytes)).map_err(temp_file_error)?;
                start += bytes.len() as u64;
                block_end -= bytes.len().min(block_end);
                bytes.clear();
            }
        }
        blocking(|| file.append(&bytes)).map_err(temp_file_error)?;
        run.end = file.length();
        drop(rows);
        self.table_bytes = 0;
        self.for_table.free();
        self.for_runs.try_grow(run.memory_bytes())?;
        self.runs.push(run);
        Ok(())
    }
}

impl Run {
    fn new(rows: usize) -> Run {
        Run {
            filter: vec![0; (rows * FILTER_BITS).div_ceil(64).max(1)],
            blocks: Vec::new(),
            end: 0,
        }
    }

    /// The two bits of a hash.
    fn bits(&self, hash: u64) -> [usize; 2] {
        let bits = self.filter.len() * 64;
        [hash as u32, (hash >> 32) as u32].map(|half| half as usize % bits)
    }

    fn note(&mut self, hash: u64) {
        for bit in self.bits(hash) {
            self.filter[bit / 64] |= 1 << (bit % 64);
        }
    }

    fn may_hold(&self, hash: u64) -> bool {
        let mut bits = self.bits(hash).into_iter();
        bits.all(|bit| self.filter[bit / 64] >> (bit % 64) & 1 == 1)
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.filter) + size_of_val(&*self.blocks)
    }
}

/// Whether a block holds a row.
fn holds(mut block: &[u8], row: &[u8]) -> bool {
    while let Some((length, rest)) = block.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some((found, rest)) = rest.split_at_checked(length) else {
            return false;
        };
        if found == row {
            return true;
        }
        block = rest;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringViewArray};
    use arrow::datatypes::DataType;
    use datafusion_execution::config::SessionConfig;
    use datafusion_execution::memory_pool::GreedyMemoryPool;
    use datafusion_execution::runtime_env::RuntimeEnv;

    use super::*;

    /// Adds rows of which some come again, and compares.
    fn check(rows: i64, memory: usize) -> usize {
        let directory = tempfile::tempdir().expect("a directory");
        let space = TempSpace::new(directory.path(), 64 << 20);
        let config = SessionConfig::new().with_extension(Arc::clone(&space));
        let environment = RuntimeEnv {
            memory_pool: Arc::new(GreedyMemoryPool::new(memory)),
            ..RuntimeEnv::default()
        };
        let context = TaskContext::default()
            .with_session_config(config)
            .with_runtime(Arc::new(environment));
        let fields = vec![
            SortField::new(DataType::Int64),
            SortField::new(DataType::Utf8View),
        ];
        let mut set = RowSet::new(fields, "rows", &context).expect("an empty set");
        let mut seen = HashSet::new();
        for start in (0..rows).step_by(1000) {
            let numbers = (start..start + 1000).map(|row| row * 7919 % (rows / 3));
            let numbers: Vec<i64> = numbers.collect();
            let texts = numbers
                .iter()
                .map(|number| "x".repeat(*number as usize % 100));
            let columns: [ArrayRef; 2] = [
                Arc::new(Int64Array::from(numbers.clone())),
                Arc::new(StringViewArray::from_iter_values(texts)),
            ];
            let found = set.add(&columns).expect("an answer");
            for (row, number) in numbers.iter().enumerate() {
                assert_eq!(found.value(row), seen.insert(*number), "row {number}");
            }
        }
        let runs = set.runs.len();
        drop(set);
        assert_eq!(space.used_bytes(), 0);
        assert_eq!(context.memory_pool().reserved(), 0);
        runs
    }

    #[test]
    fn rows_are_known_again_in_memory_and_in_files() {
        assert_eq!(check(30_000, 64 << 20), 0);
        assert!(check(60_000, 600 << 10) > 3);
    }
}
