//! B+trees: ordered maps from byte keys to byte values.

mod bulk_build;
mod cursor;
mod point_reader;
mod range;

use std::sync::Arc;

use crate::error::Result;
use crate::page::TreeId;
use crate::prefetch::PrefetchSummary;
use crate::undo::StatementUndo;

pub use bulk_build::BulkBuilder;
pub use cursor::{LeafCursor, LeafEntries};
pub use point_reader::PointReader;
pub use range::{KeyRange, prefix_successor};

/// Longest key of an entry, in bytes.
pub const MAX_KEY_BYTES: usize = 3072;

/// Longest entry (key and value together), in bytes: a page always has room for four of them.
pub const MAX_ENTRY_BYTES: usize = 4000;

/// Order in which a cursor visits leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// How far ahead of a cursor leaves are requested from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    Off,
    /// At most this many leaves beyond the current one.
    Pages(usize),
}

/// Size and shape of a tree. Entries are approximate after an unclean stop, everything else is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStatistics {
    /// Live entries.
    pub entries: u64,
    pub leaf_pages: u64,
    pub inner_pages: u64,
    /// Levels: 1 is a tree that is a single leaf.
    pub height: u32,
    /// Bytes of the tree's pages on disk.
    pub bytes: u64,
}

/// One B+tree.
pub struct Tree {
    id: TreeId,
}

impl Tree {
    pub fn id(&self) -> TreeId {
        self.id
    }

    /// Looks up `key`. `value` is cleared, and filled if the key is there.
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let _ = (key, value);
        unimplemented!()
    }

    /// The first live key that starts with `prefix`, as unique checks need it.
    pub fn contains_prefix(&self, prefix: &[u8]) -> Result<Option<Vec<u8>>> {
        let _ = prefix;
        unimplemented!()
    }

    /// Adds an entry; [`StorageError::DuplicateKey`](crate::StorageError::DuplicateKey) if the key is live.
    pub fn insert(&self, undo: &mut StatementUndo, key: &[u8], value: &[u8]) -> Result<()> {
        let _ = (undo, key, value);
        unimplemented!()
    }

    /// Replaces the value of a live key; false if there is none.
    pub fn update(&self, undo: &mut StatementUndo, key: &[u8], value: &[u8]) -> Result<bool> {
        let _ = (undo, key, value);
        unimplemented!()
    }

    /// Turns a live entry into a ghost; false if there is none.
    pub fn delete(&self, undo: &mut StatementUndo, key: &[u8]) -> Result<bool> {
        let _ = (undo, key);
        unimplemented!()
    }

    /// A cursor over the entries of `range`.
    pub fn scan(
        self: &Arc<Self>,
        range: KeyRange,
        direction: Direction,
        read_ahead: ReadAhead,
    ) -> LeafCursor {
        let _ = (range, direction, read_ahead);
        unimplemented!()
    }

    /// A reader for many point lookups, cheap when the next key lies on the same leaf.
    pub fn point_reader(self: &Arc<Self>) -> PointReader {
        unimplemented!()
    }

    /// Starts reading the leaves of these keys (sorted ascending) without waiting for them.
    pub fn prefetch_keys(
        &self,
        sorted_keys: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<PrefetchSummary> {
        let _ = sorted_keys;
        unimplemented!()
    }

    /// How many of the leaves of these keys (sorted ascending) are in the buffer pool: (resident, distinct leaves).
    pub fn resident_keys(
        &self,
        sorted_keys: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(usize, usize)> {
        let _ = sorted_keys;
        unimplemented!()
    }

    /// Estimated number of entries in `range`, by an index dive.
    pub fn estimate_entries(&self, range: &KeyRange) -> Result<u64> {
        let _ = range;
        unimplemented!()
    }

    pub fn statistics(&self) -> TreeStatistics {
        unimplemented!()
    }

    /// Share (0 to 1) of the leaves of `range` that are in the buffer pool.
    pub fn resident_share(&self, range: &KeyRange) -> Result<f64> {
        let _ = range;
        unimplemented!()
    }

    /// At most `parts - 1` keys that cut `range` into pieces with about the same number of leaves.
    pub fn split_points(&self, range: &KeyRange, parts: usize) -> Result<Vec<Vec<u8>>> {
        let _ = (range, parts);
        unimplemented!()
    }
}
