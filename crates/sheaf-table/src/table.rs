//! An open table.
use std::sync::Arc;

use sheaf_storage::{StatementUndo, Tree};

use crate::error::Result;
use crate::key_codec::KeyLayout;
use crate::row_codec::RowLayout;
use crate::schema::TableDefinition;
use crate::value::Value;

/// What an insert did besides inserting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InsertOutcome {
    /// The value given out by AUTO_INCREMENT, if it was.
    pub auto_increment: Option<u64>,
}

/// An open table: an immutable definition, its trees and layouts.
pub struct Table {
    pub definition: TableDefinition,
    /// Key: primary key; value: the whole row.
    pub clustered: Arc<Tree>,
    /// In the order of `definition.secondary`.
    pub secondary: Vec<Arc<Tree>>,
    pub row_layout: RowLayout,
    pub clustered_layout: KeyLayout,
    /// In the order of `definition.secondary`.
    pub secondary_layouts: Vec<KeyLayout>,
}

impl Table {
    /// Inserts a row: one value per column, each of the column's type (see [`crate::convert`]). The caller holds the
    /// table's writer lock. On an error nothing of the row remains.
    pub fn insert(&self, undo: &mut StatementUndo, row: &[Value]) -> Result<InsertOutcome> {
        let _ = (undo, row);
        unimplemented!()
    }
    /// Deletes the row with this encoded primary key; false: there is none.
    pub fn delete(&self, undo: &mut StatementUndo, primary_key: &[u8]) -> Result<bool> {
        let _ = (undo, primary_key);
        unimplemented!()
    }
    /// Replaces the row with this encoded primary key; false: there is none. The primary key may change.
    pub fn update(
        &self,
        undo: &mut StatementUndo,
        primary_key: &[u8],
        row: &[Value],
    ) -> Result<bool> {
        let _ = (undo, primary_key, row);
        unimplemented!()
    }
    /// The encoded primary key of a row; not for tables with a hidden row id.
    pub fn encode_primary_key(&self, row: &[Value]) -> Vec<u8> {
        let _ = row;
        unimplemented!()
    }
    /// The whole row of an encoded primary key, long values included.
    pub fn read_row(&self, primary_key: &[u8]) -> Result<Option<Vec<Value>>> {
        let _ = primary_key;
        unimplemented!()
    }
    /// Fills `value` with the long value that a row refers to.
    pub fn read_overflow(&self, reference: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let _ = (reference, value);
        unimplemented!()
    }
    /// About how many rows there are.
    pub fn row_count_estimate(&self) -> u64 {
        unimplemented!()
    }
    /// The next value AUTO_INCREMENT gives out.
    pub fn next_auto_increment(&self) -> Option<u64> {
        unimplemented!()
    }
    /// Distinct values of the first 1, 2, ... declared parts of an index (`None`: the primary key), from ANALYZE TABLE;
    /// `None`: never analyzed.
    pub fn distinct_prefixes(&self, secondary: Option<usize>) -> Option<Vec<u64>> {
        let _ = secondary;
        unimplemented!()
    }
    /// True while this is the table's newest definition; false after DDL: open it again.
    pub fn is_current(&self) -> bool {
        unimplemented!()
    }
}
