//! The value of a column, wherever it is: in the row, or on pages that the row refers to.

use sheaf_storage::ReadView;
use sheaf_table::{RowView, Table, ValueRef};
use sheaf_types::Value;

use crate::error::Result;

/// A value that the row only refers to.
pub(in crate::direct) fn long_value(
    table: &Table,
    view: &ReadView,
    row: &RowView<'_>,
    column: usize,
) -> Result<Option<Vec<u8>>> {
    if !row.is_overflow(column) {
        return Ok(None);
    }
    let mut value = Vec::new();
    table.read_overflow_at(view, row.get_bytes(column), &mut value)?;
    Ok(Some(value))
}

/// A column's value, wherever it is.
pub(in crate::direct) fn value_of(
    (table, view): (&Table, &ReadView),
    row: &RowView<'_>,
    column: usize,
) -> Result<Value> {
    let ty = &table.definition.columns[column].ty;
    Ok(match long_value(table, view, row, column)? {
        Some(bytes) => ValueRef::Bytes(&bytes).to_value(ty),
        None => row.value(column, ty),
    })
}
