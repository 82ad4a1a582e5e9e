//! The rows of a document for each row of the input: JSON_TABLE.
//!
//! The document is computed of the row, so the input is what a table function stands behind in a FROM. Where that takes
//! nothing from there, the input is one row without columns.

use std::sync::Arc;

use sheaf_exec::json_table::JsonTable;

use super::{Operator, Relation};
use crate::column::ColumnId;
use crate::scalar::Scalar;

#[derive(Clone, Debug)]
pub struct Expand {
    pub input: Box<Relation>,
    /// A JSON value.
    pub document: Scalar,
    pub table: Arc<JsonTable>,
    /// Columns of the input that are handed on. Each row of a document has a copy of them.
    pub kept: Vec<ColumnId>,
    /// New ones, those of the table.
    pub columns: Vec<ColumnId>,
    /// A row whose document has no rows comes once, with NULL for the new columns.
    pub keeps_rows: bool,
}

impl Expand {
    pub fn relation(self) -> Relation {
        Operator::Expand(self).into()
    }

    /// The same over another input, all of whose columns are handed on.
    pub fn over(self, input: Relation) -> Expand {
        Expand {
            kept: input.columns().to_vec(),
            input: Box::new(input),
            ..self
        }
    }
}
