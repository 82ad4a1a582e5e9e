//! What an ALTER TABLE is told, and what it tells.

use std::sync::Arc;

use sheaf_types::assignment::Mode;
use sheaf_types::error::ColumnIssue;

use crate::build::altered_definition::AlterWork;
use crate::definition::check_constraint::RowTest;
use crate::definition::convert::RowFill;
use crate::table::Table;
use crate::table::auto_increment::AutoIncrementSeries;

/// How an ALTER TABLE goes about it.
#[derive(Debug, Clone)]
pub struct AlterOptions {
    /// Memory for sorting and merging, in bytes.
    pub memory_bytes: usize,
    /// Threads that write trees, 1 or more.
    pub threads: usize,
    /// Whether a value that a changed column cannot hold is an error.
    pub mode: Mode,
    /// 0 stays 0 in a column that becomes AUTO_INCREMENT.
    pub keeps_zero: bool,
    /// What a column that becomes AUTO_INCREMENT is given.
    pub series: AutoIncrementSeries,
    /// A source of this replica added the column in place: its first number is InnoDB's, one increment later.
    pub numbers_in_place: bool,
    /// What CURRENT_TIMESTAMP stands for: as the default of a new column, and for NULL in a TIMESTAMP that is to take
    /// none.
    pub now_micros: i64,
    /// Computes what new columns hold whose defaults are expressions.
    pub row_fill: Option<RowFill>,
    /// Types of columns that foreign keys compare stay (the variable `foreign_key_checks`).
    pub check_foreign_keys: bool,
    /// What the changes were made for; `None`: whatever there is.
    pub version: Option<Arc<Table>>,
    /// What the rows must pass that are there, in the shape of the new definition; an error of it ends the statement.
    pub row_test: Option<RowTest>,
    /// Others change rows meanwhile, where that [is possible](crate::catalog::Catalog::admits_writers).
    pub beside_writers: bool,
    /// Bytes of keys of rows that others change meanwhile; beyond them the statement fails.
    pub online_log_bytes: u64,
    /// Others do not even read the table meanwhile.
    pub excludes_readers: bool,
}

impl Default for AlterOptions {
    fn default() -> Self {
        AlterOptions {
            memory_bytes: 1 << 20,
            threads: 1,
            mode: Mode::STRICT,
            keeps_zero: false,
            series: AutoIncrementSeries::default(),
            numbers_in_place: false,
            now_micros: 0,
            row_fill: None,
            check_foreign_keys: true,
            version: None,
            row_test: None,
            beside_writers: false,
            online_log_bytes: u64::MAX,
            excludes_readers: false,
        }
    }
}

/// What an ALTER TABLE has done.
#[derive(Debug, Clone)]
pub struct Altered {
    pub work: AlterWork,
    /// Rows that were copied, or tested for a CHECK or a foreign key.
    pub rows: u64,
    /// Values that were not quite kept.
    pub issues: Vec<ColumnIssue>,
    /// How many more such values there were.
    pub more_issues: u64,
}
