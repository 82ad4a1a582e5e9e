//! Long values outside of their rows.
//!
//! A row must fit a quarter of a page. What makes it longer, the longest strings first, moves to the table's overflow
//! tree, cut into chunks under the key (value number, chunk number), both big-endian. The row keeps a reference of 20
//! bytes: the value's number (8), its length (8) and the length of a chunk (4), little-endian. Value numbers are never
//! used twice while the table is open.

use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, MAX_ENTRY_BYTES, ReadAhead, ReadView, Transaction, Tree};

use crate::error::{Result, TableError};

/// Bytes of a reference to a long value.
pub(crate) const OVERFLOW_REFERENCE_BYTES: usize = 20;
/// Bytes of a chunk's key.
const KEY_BYTES: usize = 12;
/// Bytes of a chunk: four fill a page.
const CHUNK_BYTES: usize = MAX_ENTRY_BYTES - KEY_BYTES;
/// So many chunks are looked up one by one. Longer values are read leaf by leaf: what has left memory of the versions
/// of a leaf is then read once.
const CHUNKS_OF_LOOKUPS: u64 = 2;
/// The leaves of a value that is not in memory.
const READ_AHEAD: ReadAhead = ReadAhead::AfterMiss(16);
/// A change of a long value asks so often whether its statement shall stop.
const CHUNKS_BETWEEN_LOOKS: usize = 16;

/// A reference to a long value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverflowReference {
    number: u64,
    length: u64,
    chunk_bytes: u32,
}

impl OverflowReference {
    pub(crate) fn new(number: u64, value: &[u8]) -> OverflowReference {
        let (length, chunk_bytes) = (value.len() as u64, CHUNK_BYTES as u32);
        OverflowReference {
            number,
            length,
            chunk_bytes,
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; OVERFLOW_REFERENCE_BYTES] {
        let mut bytes = [0; OVERFLOW_REFERENCE_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..].copy_from_slice(&self.chunk_bytes.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<OverflowReference> {
        let bad = || {
            TableError::corrupt(
                "?",
                "a row refers to a long value in a way that cannot be read",
            )
        };
        let bytes: &[u8; OVERFLOW_REFERENCE_BYTES] = bytes.try_into().map_err(|_| bad())?;
        let (number, rest) = bytes.split_first_chunk::<8>().ok_or_else(bad)?;
        let (length, rest) = rest.split_first_chunk::<8>().ok_or_else(bad)?;
        let (chunk_bytes, _) = rest.split_first_chunk::<4>().ok_or_else(bad)?;
        let reference = OverflowReference {
            number: u64::from_le_bytes(*number),
            length: u64::from_le_bytes(*length),
            chunk_bytes: u32::from_le_bytes(*chunk_bytes),
        };
        if reference.chunk_bytes == 0 {
            Err(bad())
        } else {
            Ok(reference)
        }
    }

    fn chunks(self) -> u64 {
        self.length.div_ceil(u64::from(self.chunk_bytes))
    }

    fn key(self, chunk: u64) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&self.number.to_be_bytes());
        key[8..].copy_from_slice(&(chunk as u32).to_be_bytes());
        key
    }
}

/// The chunks of a value with their keys, in key order.
pub(crate) fn chunks(
    reference: OverflowReference,
    value: &[u8],
) -> impl Iterator<Item = ([u8; KEY_BYTES], &[u8])> {
    value
        .chunks(CHUNK_BYTES)
        .enumerate()
        .map(move |(i, chunk)| (reference.key(i as u64), chunk))
}

/// Stores a long value.
///
/// # Errors
/// Those of a change. The transaction is asked now and then whether it shall stop.
pub(crate) fn write(
    tree: &Tree,
    transaction: &mut Transaction,
    number: u64,
    value: &[u8],
) -> Result<OverflowReference> {
    let reference = OverflowReference::new(number, value);
    for (number, (key, chunk)) in chunks(reference, value).enumerate() {
        if number % CHUNKS_BETWEEN_LOOKS == 0 {
            transaction.check_interrupt()?;
            // The log of it is in memory for a while.
            if !sheaf_memory::may_go_on() {
                return Err(TableError::Interrupted);
            }
        }
        tree.insert(transaction, &key, chunk)?;
    }
    Ok(reference)
}

/// Appends the value that is referred to, as the view sees it.
///
/// # Errors
/// [`TableError::Interrupted`]: the process has no room for it, and the statement shall stop.
pub(crate) fn append(
    tree: &Arc<Tree>,
    view: &ReadView,
    reference: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let reference = OverflowReference::from_bytes(reference)?;
    let length = reference.length as usize;
    if !sheaf_memory::has_room_for_value(length) {
        return Err(TableError::Interrupted);
    }
    let is_long = length >= sheaf_memory::LONG_VALUE_BYTES;
    // A length that is damaged may be any.
    if is_long && out.try_reserve_exact(length).is_err() {
        return Err(TableError::corrupt(
            "?",
            "a long value is longer than the memory",
        ));
    }
    let start = out.len();
    let mut filling = is_long.then(sheaf_memory::Filling::begin);
    each_chunk(tree, view, reference, |chunk| {
        out.extend_from_slice(chunk);
        if let Some(filling) = &mut filling {
            filling.filled(chunk.len());
        }
    })?;
    if (out.len() - start) as u64 == reference.length {
        Ok(())
    } else {
        Err(TableError::corrupt(
            "?",
            "a long value does not have the length that its row says",
        ))
    }
}

/// Gives the chunks of a value to `each`, in their order.
fn each_chunk(
    tree: &Arc<Tree>,
    view: &ReadView,
    reference: OverflowReference,
    mut each: impl FnMut(&[u8]),
) -> Result<()> {
    let missing = || TableError::corrupt("?", "a part of a long value is missing");
    let chunks = reference.chunks();
    let mut key = Vec::new();
    if chunks <= CHUNKS_OF_LOOKUPS {
        let mut chunk = key;
        for number in 0..chunks {
            if !tree.get_at(view, &reference.key(number), &mut chunk)? {
                return Err(missing());
            }
            each(&chunk);
        }
        return Ok(());
    }
    let range = KeyRange::prefix(&reference.number.to_be_bytes());
    let mut cursor = tree.scan_at(view.clone(), range, Direction::Forward, READ_AHEAD);
    let mut next = 0;
    while next < chunks {
        let leaf = cursor.next_leaf()?.ok_or_else(missing)?;
        for entry in 0..leaf.len() {
            leaf.key_into(entry, &mut key);
            if key != reference.key(next) {
                return Err(missing());
            }
            each(leaf.value(entry));
            next += 1;
        }
    }
    Ok(())
}

/// The number and the length in bytes of the value that is referred to.
pub(crate) fn number_and_length(reference: &[u8]) -> Result<(u64, u64)> {
    let reference = OverflowReference::from_bytes(reference)?;
    Ok((reference.number, reference.length))
}

/// Bytes of the value that is referred to.
pub(crate) fn length(reference: &[u8]) -> Result<u64> {
    OverflowReference::from_bytes(reference).map(|reference| reference.length)
}

/// Removes a long value.
///
/// # Errors
/// As [`write()`].
pub(crate) fn delete(tree: &Tree, transaction: &mut Transaction, reference: &[u8]) -> Result<()> {
    let reference = OverflowReference::from_bytes(reference)?;
    for chunk in 0..reference.chunks() {
        if chunk % CHUNKS_BETWEEN_LOOKS as u64 == 0 {
            transaction.check_interrupt()?;
        }
        tree.delete(transaction, &reference.key(chunk))?;
    }
    Ok(())
}

/// The value number in a chunk's key.
pub(crate) fn number_of_key(key: &[u8]) -> Option<u64> {
    key.first_chunk::<8>()
        .map(|number| u64::from_be_bytes(*number))
}
