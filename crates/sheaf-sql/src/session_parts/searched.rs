//! What a direct plan searches, noted while it runs.
//!
//! A direct plan has no operators that could be asked afterwards what they read, as a vectorised plan has. So it says
//! so itself, and a statement that has to lock what it has searched does so when it is through
//! (`locking/statement_locks.rs`).

use std::sync::Arc;

use sheaf_access::IndexRef;
use sheaf_storage::{Direction, KeyRange};
use sheaf_table::Table;

/// A search of a direct plan, which reads ranges of one index of a table, and its rows.
pub(crate) struct DirectSearch {
    pub(crate) index: IndexRef,
    /// It reads rows, and not only the entries of its index.
    pub(crate) reads_rows: bool,
    /// Not all of the rows in the ranges are what it finds.
    pub(crate) is_filtered: bool,
    /// It ends after so many rows.
    pub(crate) limit: Option<usize>,
    pub(crate) direction: Direction,
}

/// A search that a direct plan of a query has made for a statement that changes what it finds.
pub(crate) struct Searched {
    pub(crate) table: Arc<Table>,
    pub(crate) search: DirectSearch,
    pub(crate) ranges: Vec<KeyRange>,
    /// The clustered key of the row at which it has stopped early.
    pub(crate) last: Option<Vec<u8>>,
}
