//! [`RowBlock`]: looked-up rows on their way from a tree to Arrow.

use std::sync::Arc;

use sheaf_storage::LeafEntries;
use sheaf_table::{RowView, Table};

use crate::keys::byte_strings::ByteStrings;

/// Rows as bytes, each with the tag of the key that asked for it: the outer row of a join, 0 in a scan.
#[derive(Default)]
pub(crate) struct RowBlock {
    pub(crate) rows: ByteStrings,
    /// Their clustered keys, if the block keeps these.
    pub(crate) keys: ByteStrings,
    keeps_keys: bool,
    pub(crate) tags: Vec<u32>,
    /// `None`: no values outside of the rows are read.
    long: Option<LongColumns>,
    /// Bytes of such values.
    long_bytes: usize,
}

/// Columns whose values may be outside of the rows, and are read when the rows are worked off.
#[derive(Clone)]
pub(crate) struct LongColumns {
    table: Arc<Table>,
    /// Those that all rows have.
    columns: Vec<usize>,
    /// And those that were added later.
    later_columns: Vec<usize>,
    /// A block with so many bytes of them is full.
    pub(crate) most_bytes: usize,
}

impl LongColumns {
    /// `None`: there are none.
    pub(crate) fn new(
        table: &Arc<Table>,
        columns: impl Iterator<Item = usize>,
        most_bytes: usize,
    ) -> Option<LongColumns> {
        table.definition.overflow.as_ref()?;
        let is_of_first = |column: &usize| table.row_layout.segment_of(*column).0 == 0;
        let (columns, later_columns): (Vec<usize>, Vec<usize>) = columns.partition(is_of_first);
        let is_any = !columns.is_empty() || !later_columns.is_empty();
        is_any.then(|| LongColumns {
            table: Arc::clone(table),
            columns,
            later_columns,
            most_bytes,
        })
    }

    /// Bytes of a row's values that are outside of it.
    pub(crate) fn bytes_of(&self, row: &[u8]) -> usize {
        // What is wrong with the row is found when it is read.
        let view = self.table.row_layout.view(row).ok();
        view.map_or(0, |view| {
            let columns = self.of_row(&view);
            columns.map(|column| view.long_bytes(column)).sum()
        })
    }

    /// The columns whose values may be outside of this row. What a row has instead of a later segment is short.
    pub(crate) fn of_row<'s>(&'s self, row: &RowView<'_>) -> impl Iterator<Item = usize> + use<'s> {
        let later: &[usize] = match self.later_columns.is_empty() || row.is_of_first_segment() {
            true => &[],
            false => &self.later_columns,
        };
        self.columns.iter().chain(later).copied()
    }
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

    /// From now on it is full, too, when its rows lead to many bytes.
    pub(crate) fn bound_long_values(mut self, long: Option<LongColumns>) -> Self {
        self.long = long;
        self
    }

    fn count_long_values(&mut self, row: &[u8]) {
        if let Some(long) = &self.long {
            self.long_bytes += long.bytes_of(row);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.long_bytes = 0;
        self.rows.clear();
        self.keys.clear();
        self.tags.clear();
    }

    pub(crate) fn push(&mut self, key: &[u8], row: &[u8], tag: u32) {
        if self.keeps_keys {
            self.keys.push(key);
        }
        self.rows.push(row);
        self.count_long_values(row);
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
        let has_long_values = |long: &LongColumns| self.long_bytes >= long.most_bytes;
        self.rows.len() >= wanted.min(Self::ROWS)
            || self.rows.total_bytes() >= Self::BYTES
            || self.long.as_ref().is_some_and(has_long_values)
    }
}
