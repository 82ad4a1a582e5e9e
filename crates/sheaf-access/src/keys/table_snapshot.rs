//! A table as a view sees it.

use std::ops::Deref;
use std::sync::Arc;

use sheaf_storage::{PointReader, ReadView};
use sheaf_table::Table;

use crate::error::Result;

/// A table, and what a statement may see of its rows: all trees of the table are read by the same view.
#[derive(Clone)]
pub(crate) struct TableSnapshot {
    table: Arc<Table>,
    view: ReadView,
}

impl TableSnapshot {
    /// Error 1412 if the table came to be what it is after the view was taken.
    pub(crate) fn new(table: &Arc<Table>, view: &ReadView) -> Result<TableSnapshot> {
        table.check_view(view)?;
        Ok(TableSnapshot {
            table: Arc::clone(table),
            view: view.clone(),
        })
    }

    /// Looks up rows by primary key.
    pub(crate) fn row_reader(&self) -> PointReader {
        self.table.clustered.point_reader_at(self.view.clone())
    }

    /// Clears `value` and fills it with the long value that a row refers to.
    pub(crate) fn read_long_value(&self, reference: &[u8], value: &mut Vec<u8>) -> Result<()> {
        Ok(self.table.read_overflow_at(&self.view, reference, value)?)
    }

    /// Appends the long value that a row refers to.
    pub(crate) fn append_long_value(&self, reference: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let table = &self.table;
        Ok(table.append_overflow_at(&self.view, reference, out)?)
    }
}

impl Deref for TableSnapshot {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}
