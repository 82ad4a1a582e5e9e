//! The undo stack: the changes of a transaction that were not undone, the newest on top.
//!
//! Records lie back to back in chunks that double in size, so that a short transaction takes little memory and a long
//! one few allocations. The first chunk is left to the thread's next transaction. A record names the tree, the key and
//! the value before:
//!
//! ```text
//!  0        4      12       13           15             17
//!  | record | tree | change | key length | value length | key | value before |
//!  | before |
//! ```
//!
//! **Spilling.** The chunks of a long transaction but the newest go to the spill file, oldest first, and come back one
//! by one when the changes are undone. So a transaction's undo takes [`MOST_MEMORY_BYTES`], about, however long it is.
//!
//! ```text
//!   bottom                                                            top
//!   | spilled | spilled | spilled | ...    | chunk | chunk | chunk | ->
//! ```

use std::cell::Cell;
use std::sync::Arc;

use crate::error::Result;
use crate::page::TreeId;
use crate::transaction::Change;
use crate::transaction::spill_file::{SpillFile, Spilled};

/// Chunks double in size from the first one to this.
const FIRST_CHUNK_BYTES: usize = 4 << 10;
const LARGEST_CHUNK_BYTES: usize = 256 << 10;

/// Chunks are spilled when those in memory take more than this, and then all but the newest of them are.
pub(crate) const MOST_MEMORY_BYTES: usize = 2 << 20;

/// Bytes of a record before its key.
const RECORD_HEADER_BYTES: usize = 17;

/// A chunk's first record has no other before it.
const NO_RECORD: u32 = u32::MAX;

thread_local! {
    /// Memory for a first chunk, or none. All first chunks are of one size, so nothing depends on whether it is there.
    static FIRST_CHUNK: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

struct Chunk {
    bytes: Vec<u8>,
    last_record: u32,
}

impl Chunk {
    fn new(capacity: usize) -> Chunk {
        let kept = match capacity {
            FIRST_CHUNK_BYTES => FIRST_CHUNK.take(),
            _ => Vec::new(),
        };
        Chunk {
            bytes: match kept.capacity() {
                0 => Vec::with_capacity(capacity),
                _ => kept,
            },
            last_record: NO_RECORD,
        }
    }
}

/// A chunk in the spill file.
struct SpilledChunk {
    bytes: Spilled,
    last_record: u32,
}

/// A change, and what was before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UndoRecord<'a> {
    pub tree: TreeId,
    pub change: Change,
    pub key: &'a [u8],
    pub before: &'a [u8],
}

/// Bytes of a part's place.
const PLACE_BYTES: usize = size_of::<u16>();

/// What a record of [`Change::UpdatePart`] has of the value before: where the part begins in it, and the part.
pub(crate) fn part_before(start: usize, part: &[u8]) -> Vec<u8> {
    let place = u16::try_from(start).unwrap_or(u16::MAX);
    [&place.to_le_bytes()[..], part].concat()
}

impl UndoRecord<'_> {
    /// Makes the value that the change left the one that was before. False: it is not that value.
    pub(crate) fn put_part_back(&self, value: &mut [u8]) -> bool {
        let Some((place, part)) = self.before.split_first_chunk::<PLACE_BYTES>() else {
            return false;
        };
        let start = usize::from(u16::from_le_bytes(*place));
        let found = value.get_mut(start..start + part.len());
        found.is_some_and(|found| {
            found.copy_from_slice(part);
            true
        })
    }

    /// Bytes that a record of this key and value takes.
    pub(crate) fn bytes(key: &[u8], before: &[u8]) -> usize {
        RECORD_HEADER_BYTES + key.len() + before.len()
    }
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct UndoStack {
    /// Older than all chunks in memory.
    spilled: Vec<SpilledChunk>,
    chunks: Vec<Chunk>,
    /// Bytes of the records in memory.
    memory_bytes: usize,
    records: usize,
    bytes: usize,
}

impl UndoStack {
    /// Records on the stack.
    pub(crate) fn len(&self) -> usize {
        self.records
    }

    /// Bytes of all records.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, record: UndoRecord<'_>) {
        let UndoRecord {
            tree,
            change,
            key,
            before,
        } = record;
        let record_bytes = UndoRecord::bytes(key, before);
        let fits = |chunk: &Chunk| chunk.bytes.capacity() - chunk.bytes.len() >= record_bytes;
        if !self.chunks.last().is_some_and(fits) {
            let doubled = self
                .chunks
                .last()
                .map_or(FIRST_CHUNK_BYTES, |chunk| chunk.bytes.capacity() * 2);
            let capacity = doubled.min(LARGEST_CHUNK_BYTES).max(record_bytes);
            self.chunks.push(Chunk::new(capacity));
        }
        let Some(chunk) = self.chunks.last_mut() else {
            return;
        };
        let start = chunk.bytes.len() as u32;
        let bytes = &mut chunk.bytes;
        bytes.extend_from_slice(&chunk.last_record.to_le_bytes());
        bytes.extend_from_slice(&tree.0.to_le_bytes());
        bytes.push(change as u8);
        bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(before.len() as u16).to_le_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(before);
        chunk.last_record = start;
        self.records += 1;
        self.bytes += record_bytes;
        self.memory_bytes += record_bytes;
    }

    /// Whether the stack takes more memory than it should.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.memory_bytes > MOST_MEMORY_BYTES
    }

    /// Whether some records are not in memory.
    pub(crate) fn is_spilled(&self) -> bool {
        !self.spilled.is_empty()
    }

    /// Spills all chunks but the newest. The caller holds no latch.
    ///
    /// # Errors
    /// `SpillFileFull`, `DiskFull`, `Io`; the stack is as it was then.
    pub(crate) fn spill(&mut self, file: &Arc<SpillFile>) -> Result<()> {
        let older = self.chunks.len().saturating_sub(1);
        let chunks = &mut self.chunks[..older];
        let pieces: Vec<_> = chunks
            .iter_mut()
            .map(|chunk| std::mem::take(&mut chunk.bytes))
            .collect();
        let stored = match file.store(&pieces) {
            Ok(stored) => stored,
            Err(error) => {
                for (chunk, bytes) in chunks.iter_mut().zip(pieces) {
                    chunk.bytes = bytes;
                }
                return Err(error);
            }
        };
        for (chunk, bytes) in self.chunks.drain(..older).zip(stored) {
            self.memory_bytes -= bytes.length();
            self.spilled.push(SpilledChunk {
                bytes,
                last_record: chunk.last_record,
            });
        }
        Ok(())
    }

    /// Makes sure that the newest record is in memory. The caller holds no latch.
    ///
    /// # Errors
    /// `Io`.
    #[inline]
    pub(crate) fn bring_back(&mut self) -> Result<()> {
        match self.spilled.last() {
            Some(newest) if self.chunks.is_empty() => {
                let chunk = load(newest)?;
                self.memory_bytes += chunk.bytes.len();
                self.chunks.push(chunk);
                self.spilled.pop();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Calls `visit` with all records, the oldest first.
    ///
    /// # Errors
    /// `Io`, and those of `visit`.
    pub(crate) fn for_each(
        &self,
        mut visit: impl FnMut(UndoRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        for spilled in &self.spilled {
            records(&load(spilled)?.bytes).try_for_each(&mut visit)?;
        }
        self.iter().try_for_each(visit)
    }

    /// The newest record, which must be in memory.
    pub(crate) fn last(&self) -> Option<UndoRecord<'_>> {
        let chunk = self.chunks.last()?;
        Some(read(&chunk.bytes[chunk.last_record as usize..]))
    }

    /// Takes the newest record off, which must be in memory.
    pub(crate) fn pop(&mut self) {
        let Some(chunk) = self.chunks.last_mut() else {
            return;
        };
        let start = chunk.last_record as usize;
        chunk.last_record = u32::from_le_bytes(array(&chunk.bytes[start..]));
        let record_bytes = chunk.bytes.len() - start;
        self.bytes -= record_bytes;
        self.memory_bytes -= record_bytes;
        self.records -= 1;
        chunk.bytes.truncate(start);
        if start == 0 {
            self.chunks.pop();
        }
    }

    pub(crate) fn clear(&mut self) {
        let stack = std::mem::take(self);
        if let Some(Chunk { mut bytes, .. }) = stack.chunks.into_iter().next()
            && bytes.capacity() == FIRST_CHUNK_BYTES
        {
            bytes.clear();
            FIRST_CHUNK.set(bytes);
        }
    }

    /// The records in memory, the oldest first.
    fn iter(&self) -> impl Iterator<Item = UndoRecord<'_>> {
        self.chunks.iter().flat_map(|chunk| records(&chunk.bytes))
    }
}

/// The records of a chunk, the oldest first.
fn records(chunk: &[u8]) -> impl Iterator<Item = UndoRecord<'_>> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let record = read(rest);
        rest = &rest[UndoRecord::bytes(record.key, record.before)..];
        Some(record)
    })
}

fn load(spilled: &SpilledChunk) -> Result<Chunk> {
    let bytes = spilled.bytes.read()?;
    Ok(Chunk {
        bytes: bytes[..spilled.bytes.length()].to_vec(),
        last_record: spilled.last_record,
    })
}

/// The first bytes of what is known to be long enough.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

fn read(bytes: &[u8]) -> UndoRecord<'_> {
    let key_length = usize::from(u16::from_le_bytes(array(&bytes[13..])));
    let value_length = usize::from(u16::from_le_bytes(array(&bytes[15..])));
    let (key, rest) = bytes[RECORD_HEADER_BYTES..].split_at(key_length);
    UndoRecord {
        tree: TreeId(u64::from_le_bytes(array(&bytes[4..]))),
        // Written from a change by `push`, so it is one.
        change: Change::from_byte(bytes[12]).unwrap_or(Change::Delete),
        key,
        before: &rest[..value_length],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_comes_back_in_reverse_order() {
        let mut stack = UndoStack::default();
        let mut pushed = Vec::new();
        for i in 0..5_000u64 {
            let change = Change::from_byte((i % 4) as u8).unwrap();
            pushed.push((i, change, vec![i as u8; i as usize % 300], vec![1; 7]));
        }
        for (tree, change, key, before) in &pushed {
            let (tree, change) = (TreeId(*tree), *change);
            stack.push(UndoRecord {
                tree,
                change,
                key,
                before,
            });
        }
        assert_eq!(stack.len(), pushed.len());
        assert!(stack.iter().map(|record| record.tree.0).eq(0..5_000));
        for (tree, change, key, before) in pushed.iter().rev() {
            let (tree, change) = (TreeId(*tree), *change);
            let expected = UndoRecord {
                tree,
                change,
                key,
                before,
            };
            assert_eq!(stack.last(), Some(expected));
            stack.pop();
        }
        assert_eq!((stack.len(), stack.bytes(), stack.last()), (0, 0, None));
    }

    #[cfg(not(feature = "simulation"))]
    #[test]
    fn a_long_stack_lies_in_the_spill_file_and_comes_back() {
        use crate::disk::simulated::{SimulatedDisk, SimulationOptions};

        let disk = SimulatedDisk::new(SimulationOptions::new(1));
        let file = SpillFile::new(disk.clone(), 1 << 30);
        let mut stack = UndoStack::default();
        let push = |stack: &mut UndoStack, i: u32| {
            let (tree, change) = (TreeId(7), Change::Update);
            let (key, before) = (&i.to_be_bytes()[..], &[i as u8; 300][..]);
            stack.push(UndoRecord {
                tree,
                change,
                key,
                before,
            });
        };
        for i in 0..20_000 {
            push(&mut stack, i);
            if stack.is_large() {
                stack.spill(&file).unwrap();
            }
            assert!(stack.memory_bytes <= MOST_MEMORY_BYTES);
        }
        assert!(stack.is_spilled() && file.used_bytes() > 4 << 20);
        let mut next = 0;
        stack
            .for_each(|record| {
                assert_eq!(record.key, u32::to_be_bytes(next));
                next += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(next, 20_000);
        // A full disk leaves the stack as it is.
        disk.set_capacity(0);
        for i in 20_000..23_000 {
            push(&mut stack, i);
        }
        stack.spill(&file).unwrap_err();
        for i in (0..23_000u32).rev() {
            stack.bring_back().unwrap();
            assert_eq!(stack.last().unwrap().key, i.to_be_bytes());
            stack.pop();
        }
        assert_eq!((stack.len(), stack.bytes(), file.used_bytes()), (0, 0, 0));
    }
}
