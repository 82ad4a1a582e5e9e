//! What the planner asks for: plain data, shared by all workers of one scan.
//!
//! ```text
//!   ScanSpec          one index of one table, by ranges            -> Scan
//!     key_filter        what is jumped over inside of the ranges
//!     first_of          a loose scan: one entry of each group
//!     merge             several indexes in place of one
//!     fetch             how rows are read for entries
//!   KeyedLookupSpec   the inner side of a join, by keys            -> KeyedLookup
//! ```
//!
//! A specification says all that a read depends on. Two that are equal deliver the same rows
//! ([`ScanSpec::reads_the_same`]), and what a read searches follows from its specification ([`ScanSpec::searches`]).

use std::fmt;
use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, ReadView, Tree};
use sheaf_table::{Index, Search, Table};

use crate::condition::Condition;
use crate::keys::key_filter::KeyFilter;

/// Rows in one output batch unless the planner says otherwise. An access method finishes the leaf it is in, so a
/// batch may hold one leaf's entries more.
pub const DEFAULT_BATCH_ROWS: usize = 8192;

/// Bytes of strings after which a batch is delivered although more rows would fit, where there is memory enough.
pub const DEFAULT_BATCH_STRING_BYTES: usize = 8 << 20;

/// How large batches are to be. Whichever of the two comes first ends one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    /// Rows to aim at; see [`DEFAULT_BATCH_ROWS`].
    pub rows: usize,
    /// Bounds the memory of a batch of long values to this and one run of rows.
    pub string_bytes: usize,
}

impl BatchSize {
    pub fn of_rows(rows: usize) -> BatchSize {
        BatchSize {
            rows,
            ..BatchSize::default()
        }
    }
}

impl Default for BatchSize {
    fn default() -> BatchSize {
        BatchSize {
            rows: DEFAULT_BATCH_ROWS,
            string_bytes: DEFAULT_BATCH_STRING_BYTES,
        }
    }
}

/// Leaves that a range scan reads ahead unless the planner says otherwise (1 MiB: one extent).
pub const DEFAULT_READ_AHEAD_PAGES: usize = 64;

/// Which index of a table is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexRef {
    /// The clustered index: the rows themselves, in primary key order.
    Clustered,
    /// The secondary index at this position of `TableDefinition::secondary`.
    Secondary(usize),
}

impl IndexRef {
    /// The definition of this index in `table`.
    ///
    /// # Panics
    /// When the position is not one of the table's secondary indexes.
    pub fn definition(self, table: &Table) -> &Index {
        match self {
            IndexRef::Clustered => &table.definition.primary,
            IndexRef::Secondary(position) => &table.definition.secondary[position],
        }
    }

    /// Its position among the secondary indexes; `None`: the clustered one.
    pub fn secondary(self) -> Option<usize> {
        match self {
            IndexRef::Clustered => None,
            IndexRef::Secondary(position) => Some(position),
        }
    }

    /// The tree of this index.
    pub fn tree(self, table: &Table) -> &Arc<Tree> {
        match self {
            IndexRef::Clustered => &table.clustered,
            IndexRef::Secondary(position) => &table.secondary[position],
        }
    }
}

/// Whether a multi-range read sorts its primary keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKeys {
    /// Sort unless the pages to be read are in the buffer pool already (seen on a sample of the keys, each time the
    /// buffer is full): in memory the sort buys nothing. The default.
    Auto,
    /// Sort always: rows come in primary key order within each buffer.
    Always,
}

/// How a scan of a secondary index gets at the columns it must deliver. A clustered scan ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// All columns are in the index entry (`Using index`). Rows come in index order.
    Covering,
    /// Each entry's row is looked up as the entry comes, without reading ahead. Rows come in index order.
    Lookup,
    /// Multi-range read (`Using MRR`): primary keys are collected, sorted, and read in primary key order, pages
    /// requested ahead. The order of the rows is not the index's.
    MultiRange {
        /// N: bytes of primary keys that are collected before they are read. At least one key always fits.
        buffer_bytes: usize,
        /// When to sort them.
        sort: SortKeys,
    },
}

/// Groups of index entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstOf {
    /// Entries that have so many leading parts in common are one group.
    pub parts: usize,
    /// Entries whose next part is NULL are a group apart: MIN of that part ignores them.
    pub nulls_apart: bool,
}

/// What is done with the primary keys of several indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeKind {
    /// Rows that any of the indexes leads to.
    Union,
    /// Rows that all of them lead to.
    Intersection,
}

/// One index of a merge.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeInput {
    /// The index to walk.
    pub index: IndexRef,
    /// Ranges of its keys, ascending and disjoint.
    pub ranges: Vec<KeyRange>,
    /// See [`ScanSpec::key_filter`].
    pub key_filter: Option<Arc<KeyFilter>>,
    /// Tested on its entries; `None` on the clustered index.
    pub index_condition: Option<Condition>,
}

/// How several indexes are merged.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeSpec {
    /// What is done with their primary keys.
    pub kind: MergeKind,
    /// The indexes.
    pub inputs: Vec<MergeInput>,
    /// Bytes of primary keys that are held at a time.
    pub buffer_bytes: usize,
    /// Bytes of those whose rows are read together.
    pub read_buffer_bytes: usize,
}

/// One read of one index of one table.
///
/// Order of the rows: the index's order in `direction`, range after range (from the last range when backward);
/// except with [`Fetch::MultiRange`], which promises no order.
#[derive(Clone)]
pub struct ScanSpec {
    /// The table. Its metadata lock is the caller's business.
    pub table: Arc<Table>,
    /// What of the table's changes the read sees. All parts of one statement take clones of one view.
    pub view: ReadView,
    /// The index to walk.
    pub index: IndexRef,
    /// Ranges of encoded keys of that index, ascending and disjoint, whatever the direction. `KeyRange::all()` alone
    /// is a full scan.
    pub ranges: Vec<KeyRange>,
    /// What the parts of the keys must be like, beyond the ranges: what does not match is jumped over. Conditions that
    /// it says completely need not be tested again.
    pub key_filter: Option<Arc<KeyFilter>>,
    /// A loose index scan: of each group of entries only the first in scan direction that the key filter lets in.
    /// Conditions beyond ranges and filter are tested on these alone.
    pub first_of: Option<FirstOf>,
    /// An index merge: it finds the primary keys of the rows, in place of `ranges` of `index`, which are all of the
    /// clustered one then. Rows come in primary key order; `direction` is forward.
    pub merge: Option<Arc<MergeSpec>>,
    /// Walk forward or backward.
    pub direction: Direction,
    /// Tested on the index entry before the row is fetched (index condition pushdown). Its columns must be in the
    /// entry. `None` on the clustered index and on covering scans, where `row_condition` does the same.
    pub index_condition: Option<Condition>,
    /// Tested on the row, or on the entry of a covering scan.
    pub row_condition: Option<Condition>,
    /// Columns to deliver, as positions in `TableDefinition::columns`, in output order;
    /// [`clustered_key_position`](crate::clustered_key_position) stands for the row's encoded clustered key. May be
    /// empty: the batches then have only a row count.
    pub projection: Vec<usize>,
    /// How to get from entry to row.
    pub fetch: Fetch,
    /// Stop after this many rows that passed all conditions.
    pub limit: Option<usize>,
    pub batch: BatchSize,
    /// Leaves to read ahead of the scan; 0 for none. See [`DEFAULT_READ_AHEAD_PAGES`].
    pub read_ahead_pages: usize,
}

impl ScanSpec {
    /// A full forward scan of the clustered index, as it is now, that delivers `projection`.
    pub fn full(table: Arc<Table>, projection: Vec<usize>) -> Self {
        Self {
            table,
            view: ReadView::newest(),
            index: IndexRef::Clustered,
            ranges: vec![KeyRange::all()],
            key_filter: None,
            first_of: None,
            merge: None,
            direction: Direction::Forward,
            index_condition: None,
            row_condition: None,
            projection,
            fetch: Fetch::Covering,
            limit: None,
            batch: BatchSize::default(),
            read_ahead_pages: DEFAULT_READ_AHEAD_PAGES,
        }
    }
}

impl ScanSpec {
    /// Whether two reads are sure to deliver the same rows in the same order, so that a statement can do with one of
    /// them.
    pub fn reads_the_same(&self, other: &Self) -> bool {
        let Self {
            table,
            view,
            index,
            ranges,
            key_filter,
            first_of,
            merge,
            direction,
            index_condition,
            row_condition,
            projection,
            fetch,
            limit,
            batch: _,
            read_ahead_pages: _,
        } = self;
        Arc::ptr_eq(table, &other.table)
            && view.is_same(&other.view)
            && *index == other.index
            && *ranges == other.ranges
            && *key_filter == other.key_filter
            && *first_of == other.first_of
            && *merge == other.merge
            && *direction == other.direction
            && *index_condition == other.index_condition
            && *row_condition == other.row_condition
            && *projection == other.projection
            && *fetch == other.fetch
            && *limit == other.limit
    }
}

impl ScanSpec {
    /// Whether the rows come along one index, so that a place in it says how far the read has come.
    pub fn is_along_one_index(&self) -> bool {
        self.searched().merge.is_none()
    }

    /// Each field is named: an access method that adds one does not compile before it is decided here what it searches,
    /// and whether along one index.
    fn searched(&self) -> Searched<'_> {
        let Self {
            table,
            index,
            ranges,
            merge,
            fetch,
            // What they leave out is searched all the same.
            key_filter: _,
            first_of: _,
            index_condition: _,
            row_condition: _,
            limit: _,
            // How the same is read and delivered.
            view: _,
            direction: _,
            projection: _,
            batch: _,
            read_ahead_pages: _,
        } = self;
        Searched {
            table,
            index: *index,
            ranges,
            merge: merge.as_deref(),
            fetches: *fetch != Fetch::Covering,
        }
    }

    /// What the read searches. Locks keep just this as it is (`locking/statement_locks.rs` of sheaf-sql).
    pub fn searches(&self) -> Vec<Search> {
        let Searched {
            table,
            index,
            ranges,
            merge,
            fetches,
        } = self.searched();
        let search = |index: IndexRef, ranges: &[KeyRange], fetches: bool| {
            let index = index.secondary();
            Search {
                table: Arc::clone(table),
                index,
                ranges: ranges.to_vec(),
                reads_rows: index.is_some() && fetches,
            }
        };
        let Some(merge) = merge else {
            return vec![search(index, ranges, fetches)];
        };
        // What would come into an intersection would come into each of its indexes.
        let searched = match merge.kind {
            MergeKind::Union => merge.inputs.len(),
            MergeKind::Intersection => 1,
        };
        let inputs = merge.inputs.iter().take(searched);
        inputs
            .map(|input| search(input.index, &input.ranges, true))
            .collect()
    }

    /// Whether something besides the searched ranges decides which rows are found.
    pub fn is_filtered(&self) -> bool {
        self.merge.is_some() || self.index_condition.is_some() || self.row_condition.is_some()
    }

    /// Whether it reads nothing behind the first entry that it finds: all entries of its one range are one group, of
    /// which it wants the first. So it is with MIN and MAX of a whole index.
    pub fn ends_at_first_entry(&self) -> bool {
        let layout = match self.index {
            IndexRef::Clustered => &self.table.clustered_layout,
            IndexRef::Secondary(position) => &self.table.secondary_layouts[position],
        };
        let has_nulls = layout.parts.first().is_none_or(|part| part.nullable);
        let first = self.first_of.filter(|first| first.parts == 0);
        self.ranges.len() == 1 && first.is_some_and(|first| !(first.nulls_apart && has_nulls))
    }

    /// Whether rows come in the order of the entries that are searched: a read that ends at its limit has searched
    /// nothing behind the last of them.
    pub fn is_in_order(&self) -> bool {
        let sorts =
            self.index != IndexRef::Clustered && matches!(self.fetch, Fetch::MultiRange { .. });
        self.merge.is_none() && self.first_of.is_none() && !sorts
    }
}

/// What of a specification says which entries are searched.
struct Searched<'s> {
    table: &'s Arc<Table>,
    index: IndexRef,
    ranges: &'s [KeyRange],
    merge: Option<&'s MergeSpec>,
    /// Rows are read for the entries of a secondary index.
    fetches: bool,
}

impl fmt::Debug for ScanSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanSpec")
            .field("table", &self.table.definition.name)
            .field("view", &self.view)
            .field("index", &self.index.definition(&self.table).name)
            .field("ranges", &self.ranges)
            .field("key_filter", &self.key_filter)
            .field("first_of", &self.first_of)
            .field("merge", &self.merge)
            .field("direction", &self.direction)
            .field("index_condition", &self.index_condition)
            .field("row_condition", &self.row_condition)
            .field("projection", &self.projection)
            .field("fetch", &self.fetch)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// The inner side of a keyed join: for each outer row's key, the rows of one table that match it.
#[derive(Clone)]
pub struct KeyedLookupSpec {
    /// The inner table.
    pub table: Arc<Table>,
    /// What of the table's changes the read sees. All parts of one statement take clones of one view.
    pub view: ReadView,
    /// The index that is looked up. On the clustered index there is no second step.
    pub index: IndexRef,
    /// How many leading parts of the index the keys hold.
    pub key_parts: usize,
    /// The keys are followed by bounds of the next part: ranges are looked up, by
    /// [`push_range`](crate::KeyedLookup::push_range).
    pub ranged: bool,
    /// Tested on the entries of a secondary index before the row is fetched.
    pub index_condition: Option<Condition>,
    /// Tested on the inner row (or on the entry, with [`Fetch::Covering`]).
    pub row_condition: Option<Condition>,
    /// Columns of the inner table to deliver, in output order.
    pub projection: Vec<usize>,
    /// How to get from entry to row.
    pub fetch: Fetch,
    /// Batched Key Access: keys are collected up to `buffer_bytes` and read together, pages requested ahead. When
    /// false, each key is looked up by itself in the order of arrival.
    pub batched: bool,
    /// Sort the keys before the index is read (`mrr_sort_keys`). Only with `batched`.
    pub sort_keys: bool,
    /// Bytes of keys collected per run (`join_buffer_size`). At least one key always fits.
    pub buffer_bytes: usize,
    pub batch: BatchSize,
}

impl KeyedLookupSpec {
    /// Whether two lookups are sure to find the same rows for the same keys, in the same order.
    pub fn looks_up_the_same(&self, other: &Self) -> bool {
        let Self {
            table,
            view,
            index,
            key_parts,
            ranged,
            index_condition,
            row_condition,
            projection,
            fetch,
            batched,
            sort_keys,
            buffer_bytes,
            batch: _,
        } = self;
        Arc::ptr_eq(table, &other.table)
            && view.is_same(&other.view)
            && *index == other.index
            && *key_parts == other.key_parts
            && *ranged == other.ranged
            && *index_condition == other.index_condition
            && *row_condition == other.row_condition
            && *projection == other.projection
            && *fetch == other.fetch
            && *batched == other.batched
            && *sort_keys == other.sort_keys
            && *buffer_bytes == other.buffer_bytes
    }
}

impl fmt::Debug for KeyedLookupSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLookupSpec")
            .field("table", &self.table.definition.name)
            .field("view", &self.view)
            .field("index", &self.index.definition(&self.table).name)
            .field("key_parts", &self.key_parts)
            .field("ranged", &self.ranged)
            .field("index_condition", &self.index_condition)
            .field("row_condition", &self.row_condition)
            .field("projection", &self.projection)
            .field("fetch", &self.fetch)
            .field("batched", &self.batched)
            .field("sort_keys", &self.sort_keys)
            .field("buffer_bytes", &self.buffer_bytes)
            .finish_non_exhaustive()
    }
}
