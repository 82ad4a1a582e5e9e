//! [`LateColumns`]: columns of rows whose clustered keys are known.
//!
//! A plan that sorts many rows and keeps few of them does not read the long values of all: it sorts without them, and
//! reads those of the rows that are left.

use std::sync::Arc;

use arrow::array::ArrayRef;
use sheaf_storage::{PointReader, ReadView};
use sheaf_table::{RowRun, Table};

use crate::batch::materialize::ColumnBuilder;
use crate::condition::columns::{ColumnSource, Source};
use crate::error::{AccessError, Result};
use crate::keys::table_snapshot::TableSnapshot;

/// Rows that a builder is made for; there may be more.
const LIKELY_ROWS: usize = 64;

/// See the module's comment.
pub struct LateColumns {
    table: TableSnapshot,
    rows: PointReader,
    builders: Vec<ColumnBuilder>,
    /// Bytes of strings at which a batch is delivered.
    string_bytes: usize,
}

impl LateColumns {
    /// Columns of a table's rows, by their positions in its definition, as a view sees them.
    pub fn new(
        (table, view): (&Arc<Table>, &ReadView),
        columns: &[usize],
        string_bytes: usize,
    ) -> Result<LateColumns> {
        let table = TableSnapshot::new(table, view)?;
        let builder = |&column: &usize| {
            let source = ColumnSource::new(&table, Source::Rows, column)?;
            Ok(ColumnBuilder::new(source, LIKELY_ROWS))
        };
        Ok(LateColumns {
            builders: columns.iter().map(builder).collect::<Result<_>>()?,
            rows: table.row_reader(),
            table,
            string_bytes,
        })
    }

    /// The columns of the rows with these encoded clustered keys, in their order: of the first ones, if all would have
    /// too many bytes for a batch. The number of rows comes with them.
    ///
    /// # Errors
    /// `Unsupported` if the view sees no row under one of the keys.
    pub fn read<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<(usize, Vec<ArrayRef>)> {
        let mut count = 0;
        for key in keys {
            let Some(row) = self.rows.get(key)? else {
                let table = &self.table.definition.name;
                let missing = format!("a row of {table} that was read is not there any more");
                return Err(AccessError::Unsupported(missing));
            };
            let mut run = RowRun::with_capacity(&self.table.row_layout, 1);
            run.push(row)?;
            for builder in &mut self.builders {
                builder.append_rows(&self.table, &run)?;
            }
            count += 1;
            let bytes = self.builders.iter().map(ColumnBuilder::string_bytes);
            if bytes.sum::<usize>() >= self.string_bytes {
                break;
            }
        }
        let columns = self.builders.iter_mut().map(ColumnBuilder::finish);
        Ok((count, columns.collect::<Result<_>>()?))
    }
}
