//! [`RowBlock`]: looked-up rows on their way from a tree to Arrow.

use sheaf_storage::LeafEntries;

use crate::keys::byte_strings::ByteStrings;

/// Rows as bytes, each with the tag of the key that asked for it: the outer row of a join, 0 in a scan.
#[derive(Default)]
pub(crate) struct RowBlock {
    pub(crate) rows: ByteStrings,
    /// Their clustered keys, if the block keeps these.
    pub(crate) keys: ByteStrings,
    keeps_keys: bool,
    pub(crate) tags: Vec<u32>,
}

impl RowBlock {
    /// Rows of a full block: columns are then copied in runs long enough to be cheap, from bytes still in the cache.
    pub(crate) const ROWS: usize = 1024;

    /// Bytes of a full block (one row always fits).
    const BYTES: usize = 128 * 1024;

    /// A block for what an assembler delivers.
    pub(crate) fn new(keeps_keys: bool) -> Self {
        Self {
            keeps_keys,
            ..Self::default()
        }
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.keys.clear();
        self.tags.clear();
    }

    pub(crate) fn push(&mut self, key: &[u8], row: &[u8], tag: u32) {
        if self.keeps_keys {
            self.keys.push(key);
        }
        self.rows.push(row);
        self.tags.push(tag);
    }

    /// Pushes a row of a leaf.
    pub(crate) fn push_from(&mut self, leaf: &LeafEntries, row: usize, tag: u32) {
        if self.keeps_keys {
            self.keys.push_pieces([leaf.prefix(), leaf.suffix(row)]);
        }
        self.rows.push(leaf.value(row));
        self.tags.push(tag);
    }

    /// Whether the block should be worked off before more rows come, of which `wanted` are enough.
    pub(crate) fn is_full(&self, wanted: usize) -> bool {
        self.rows.len() >= wanted.min(Self::ROWS) || self.rows.total_bytes() >= Self::BYTES
    }
}
