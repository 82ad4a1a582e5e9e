//! The undo stack: the changes of a transaction that were not taken back, the newest on top.
//!
//! Records lie back to back in chunks that double in size, so that a short transaction takes little memory and a long
//! one few allocations. A record names the tree, the key and the value before:
//!
//! ```text
//!  0        4      12       13           15             17
//!  | record | tree | change | key length | value length | key | value before |
//!  | before |
//! ```

use crate::page::TreeId;
use crate::transaction::Change;

/// Chunks double in size from the first one to this.
const FIRST_CHUNK_BYTES: usize = 1 << 10;
const LARGEST_CHUNK_BYTES: usize = 256 << 10;

/// Bytes of a record before its key.
const RECORD_HEADER_BYTES: usize = 17;

/// A chunk's first record has no other before it.
const NO_RECORD: u32 = u32::MAX;

struct Chunk {
    bytes: Vec<u8>,
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

impl UndoRecord<'_> {
    /// Bytes that a record of this key and value takes.
    pub(crate) fn bytes(key: &[u8], before: &[u8]) -> usize {
        RECORD_HEADER_BYTES + key.len() + before.len()
    }
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct UndoStack {
    chunks: Vec<Chunk>,
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
            self.chunks.push(Chunk {
                bytes: Vec::with_capacity(capacity),
                last_record: NO_RECORD,
            });
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
    }

    /// The newest record.
    pub(crate) fn last(&self) -> Option<UndoRecord<'_>> {
        let chunk = self.chunks.last()?;
        Some(read(&chunk.bytes[chunk.last_record as usize..]))
    }

    /// Takes the newest record off.
    pub(crate) fn pop(&mut self) {
        let Some(chunk) = self.chunks.last_mut() else {
            return;
        };
        let start = chunk.last_record as usize;
        chunk.last_record = u32::from_le_bytes(array(&chunk.bytes[start..]));
        self.bytes -= chunk.bytes.len() - start;
        self.records -= 1;
        chunk.bytes.truncate(start);
        if start == 0 {
            self.chunks.pop();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = UndoStack::default();
    }

    /// All records, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = UndoRecord<'_>> {
        self.chunks.iter().flat_map(|chunk| {
            let mut rest = chunk.bytes.as_slice();
            std::iter::from_fn(move || {
                if rest.is_empty() {
                    return None;
                }
                let record = read(rest);
                rest = &rest[UndoRecord::bytes(record.key, record.before)..];
                Some(record)
            })
        })
    }
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
}
