//! The rows of a table in memory, found by the keys of an index: what a keyed join goes on with when lookups have cost
//! too much ([`crate::keyed_join::lookup_switch`]).
//!
//! ```text
//!   slots (open addressing)      keys, each once        rows with the key
//!   [ . 1 . . 0 . ]         -->  0: ...ab          -->  row 4 -> row 9
//!                                1: ...ac          -->  row 0
//! ```
//!
//! Keys are the encoded ones, so what is equal here is what the index takes to be equal. Rows of a key come in the
//! order in which they were added. All of it is counted against the statement's memory.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::Result;
use datafusion_common::hash_utils::RandomState;
use datafusion_execution::memory_pool::MemoryReservation;

use crate::keyed_join::key_encoder::KeyEncoder;
use crate::memory_pool::without_waiting;

/// Bytes that a table may take, whatever is allowed: positions are 32 bits.
const MAX_BYTES: usize = 1 << 30;

/// An empty slot, and the end of a list of rows.
const NONE: u32 = u32::MAX;

/// Slots for each key, at least.
const SLOTS_PER_KEY: usize = 2;

/// Numbers distinct keys in the order in which they come.
struct KeyNumbers {
    /// Numbers of keys, a power of two of slots. A key is in the first free slot from its hash on.
    slots: Vec<u32>,
    /// By number.
    hashes: Vec<u32>,
    /// Bytes of all keys, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    state: RandomState,
}

impl KeyNumbers {
    fn new() -> KeyNumbers {
        KeyNumbers {
            slots: vec![NONE; 64],
            hashes: Vec::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            state: RandomState::default(),
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "half of the hash is enough for 2^32 keys"
    )]
    fn hash(&self, key: &[u8]) -> u32 {
        self.state.hash_one(key) as u32
    }

    fn key(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = match number {
            0 => 0,
            _ => self.ends[number - 1] as usize,
        };
        &self.bytes[start..self.ends[number] as usize]
    }

    /// The slot of a key, or the free one where it belongs.
    fn slot(&self, hash: u32, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let number = self.slots[slot];
            let is_key =
                |number: u32| self.hashes[number as usize] == hash && self.key(number) == key;
            if number == NONE || is_key(number) {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        let number = self.slots[self.slot(self.hash(key), key)];
        (number != NONE).then_some(number)
    }

    /// The number of a key, and whether it is new.
    fn number(&mut self, key: &[u8]) -> (u32, bool) {
        let hash = self.hash(key);
        let mut slot = self.slot(hash, key);
        if self.slots[slot] != NONE {
            return (self.slots[slot], false);
        }
        if (self.hashes.len() + 1) * SLOTS_PER_KEY > self.slots.len() {
            self.grow();
            slot = self.slot(hash, key);
        }
        let number = self.hashes.len() as u32;
        self.slots[slot] = number;
        self.hashes.push(hash);
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
        (number, true)
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![NONE; mask + 1];
        for (number, hash) in (0..).zip(&self.hashes) {
            let mut slot = *hash as usize & mask;
            while slots[slot] != NONE {
                slot = (slot + 1) & mask;
            }
            slots[slot] = number;
        }
        self.slots = slots;
    }

    fn memory_bytes(&self) -> usize {
        let words = self.slots.capacity() + self.hashes.capacity() + self.ends.capacity();
        words * size_of::<u32>() + self.bytes.capacity()
    }
}

/// What is kept of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    /// So many of the leading columns of the rows that are added.
    pub columns: usize,
    /// It only matters whether there is a row with a key. There are no columns then.
    pub existence: bool,
    /// More bytes than this are too many.
    pub max_bytes: usize,
}

/// A table that is being filled.
pub(crate) struct HashedTableBuilder {
    kept: Kept,
    schema: SchemaRef,
    encoder: KeyEncoder,
    numbers: KeyNumbers,
    /// By key, its first and last row.
    first: Vec<u32>,
    last: Vec<u32>,
    /// By row, the next one with its key.
    next: Vec<u32>,
    batches: Vec<RecordBatch>,
    batch_bytes: usize,
    reservation: MemoryReservation,
}

impl HashedTableBuilder {
    /// `schema` is that of the columns that are kept; `encoder` makes keys of the rows that are added.
    pub(crate) fn new(
        kept: Kept,
        schema: SchemaRef,
        encoder: KeyEncoder,
        reservation: MemoryReservation,
    ) -> HashedTableBuilder {
        let max_bytes = kept.max_bytes.min(MAX_BYTES);
        HashedTableBuilder {
            kept: Kept { max_bytes, ..kept },
            schema,
            encoder,
            numbers: KeyNumbers::new(),
            first: Vec::new(),
            last: Vec::new(),
            next: Vec::new(),
            batches: Vec::new(),
            batch_bytes: 0,
            reservation,
        }
    }

    /// Adds rows; false if they are too many for the memory that there is.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<bool> {
        let start = self.next.len();
        let (numbers, first, last, next) = (
            &mut self.numbers,
            &mut self.first,
            &mut self.last,
            &mut self.next,
        );
        let existence = self.kept.existence;
        if !existence {
            next.resize(start + batch.num_rows(), NONE);
        }
        self.encoder.encode(batch, |row, key| {
            let row = (start + row) as u32;
            let (number, is_new) = numbers.number(key);
            if is_new {
                first.push(row);
                last.push(row);
            } else if !existence {
                let last = &mut last[number as usize];
                next[*last as usize] = row;
                *last = row;
            }
        })?;
        if !existence {
            let kept: Vec<usize> = (0..self.kept.columns).collect();
            let batch = with_columns(
                &self.schema,
                kept.iter()
                    .map(|at| Arc::clone(batch.column(*at)))
                    .collect(),
                batch.num_rows(),
            )?;
            self.batch_bytes += batch.get_array_memory_size();
            self.batches.push(batch);
        }
        Ok(self.reserve(self.memory_bytes()))
    }

    fn memory_bytes(&self) -> usize {
        let words = self.first.capacity() + self.last.capacity() + self.next.capacity();
        self.numbers.memory_bytes() + words * size_of::<u32>() + self.batch_bytes
    }

    /// Accounts for so many bytes in all, if there are.
    fn reserve(&self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.reservation.size());
        bytes <= self.kept.max_bytes && without_waiting(|| self.reservation.try_grow(more)).is_ok()
    }

    /// The table; `None` if there is no memory to put its rows together.
    pub(crate) fn finish(self) -> Result<Option<HashedTable>> {
        // While the rows are copied they are there twice.
        if without_waiting(|| self.reservation.try_grow(self.batch_bytes)).is_err() {
            return Ok(None);
        }
        let rows = match self.kept.existence {
            true => with_columns(&self.schema, Vec::new(), self.next.len())?,
            false => concat_batches(&self.schema, &self.batches)?,
        };
        let all_bytes = self.memory_bytes() - self.batch_bytes + rows.get_array_memory_size();
        drop(self.batches);
        let reserved = self.reservation.size();
        self.reservation.shrink(reserved.saturating_sub(all_bytes));
        Ok(Some(HashedTable {
            numbers: self.numbers,
            first: self.first,
            next: self.next,
            rows,
            _reservation: self.reservation,
        }))
    }
}

/// See the module's comment.
pub(crate) struct HashedTable {
    numbers: KeyNumbers,
    first: Vec<u32>,
    next: Vec<u32>,
    rows: RecordBatch,
    _reservation: MemoryReservation,
}

impl HashedTable {
    fn first_row(&self, key: &[u8]) -> Option<u32> {
        let number = self.numbers.find(key)?;
        self.first.get(number as usize).copied()
    }

    /// The next row with the key of `row`.
    fn next_row(&self, row: u32) -> Option<u32> {
        let next = self.next.get(row as usize).copied();
        next.filter(|next| *next != NONE)
    }

    fn rows(&self, rows: Vec<u32>) -> Result<RecordBatch> {
        let rows = UInt32Array::from(rows);
        let columns = self.rows.columns().iter();
        let columns = columns.map(|column| Ok(compact(take(column, &rows, None)?)));
        with_columns(
            &self.rows.schema(),
            columns.collect::<Result<_>>()?,
            rows.len(),
        )
    }
}

/// Strings that are taken from the table still refer to all of its bytes, and memory accounting would count those.
fn compact(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}

fn with_columns(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let rows = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &rows,
    )?)
}

/// Finds the rows of a buffer of keys, as a [`KeyedLookup`](sheaf_access::KeyedLookup) does: push until it is full,
/// then take batches until there are none.
pub(crate) struct KeptRows {
    table: Arc<HashedTable>,
    /// Each outer row that has a match, with the match that is next.
    found: Vec<(u32, u32)>,
    pushed: usize,
    /// The outer row that is next.
    position: usize,
    batch_rows: usize,
}

impl KeptRows {
    pub(crate) fn new(table: Arc<HashedTable>, batch_rows: usize) -> KeptRows {
        KeptRows {
            table,
            found: Vec::new(),
            pushed: 0,
            position: 0,
            batch_rows: batch_rows.max(1),
        }
    }

    pub(crate) fn push(&mut self, key: &[u8], outer_row: u32) {
        self.pushed += 1;
        if let Some(row) = self.table.first_row(key) {
            self.found.push((outer_row, row));
        }
    }

    pub(crate) fn full(&self) -> bool {
        self.pushed >= self.batch_rows
    }

    /// The next matches, in the order in which the outer rows came: for each the outer row. `None`: there are no more,
    /// and the buffer is empty again.
    pub(crate) fn next_batch(&mut self) -> Result<Option<(UInt32Array, RecordBatch)>> {
        let (mut outer, mut rows) = (Vec::new(), Vec::new());
        while rows.len() < self.batch_rows
            && let Some((outer_row, row)) = self.found.get_mut(self.position)
        {
            outer.push(*outer_row);
            rows.push(*row);
            match self.table.next_row(*row) {
                Some(next) => *row = next,
                None => self.position += 1,
            }
        }
        if rows.is_empty() {
            self.found.clear();
            (self.pushed, self.position) = (0, 0);
            return Ok(None);
        }
        Ok(Some((UInt32Array::from(outer), self.table.rows(rows)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbered_once_and_found_again() {
        let mut numbers = KeyNumbers::new();
        let key = |n: u32| n.to_be_bytes()[(n % 4) as usize..].to_vec();
        let mut distinct: Vec<Vec<u8>> = Vec::new();
        for n in (0..20_000u32).chain(0..20_000) {
            let key = key(n);
            let known = numbers.find(&key);
            let (number, is_new) = numbers.number(&key);
            assert_eq!(known.is_none(), is_new);
            if is_new {
                assert_eq!(number as usize, distinct.len());
                distinct.push(key.clone());
            }
            assert_eq!(distinct[number as usize], key);
        }
        // Of different lengths, and the empty one.
        assert_eq!(numbers.find(b""), None);
        assert_eq!(numbers.find(b"\0\0\0\0\0"), None);
        let (number, is_new) = numbers.number(b"");
        assert!(is_new && numbers.find(b"") == Some(number));
        assert!(numbers.slots.len() >= numbers.hashes.len() * SLOTS_PER_KEY);
        assert!(numbers.memory_bytes() > distinct.len() * 16);
    }
}
