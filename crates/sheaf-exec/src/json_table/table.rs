//! The rows that a document has, with the types of their columns.

use std::hash::{Hash, Hasher};

use arrow::datatypes::Field;
use sheaf_access::{TYPE_KEY, arrow_type};
use sheaf_types::ColumnType;
use sheaf_types::json::table::{Level, Otherwise};

/// JSON_TABLE's second argument: the rows that a document has.
#[derive(Debug)]
pub struct JsonTable {
    /// Its alias.
    pub name: String,
    pub rows: Level,
    /// Of each cell of a row, in their order.
    pub columns: Vec<JsonTableColumn>,
    /// As the statement writes it: two tables with one text are the same.
    pub text: String,
}

#[derive(Debug)]
pub struct JsonTableColumn {
    pub name: String,
    pub ty: ColumnType,
    /// What becomes of a value that the type does not hold.
    pub on_error: Otherwise,
}

impl JsonTableColumn {
    /// Any value may be missing.
    pub fn field(&self) -> Field {
        let types = [(TYPE_KEY.to_string(), self.ty.descriptor())];
        Field::new(&self.name, arrow_type(&self.ty), true).with_metadata(types.into())
    }
}

impl PartialEq for JsonTable {
    fn eq(&self, other: &JsonTable) -> bool {
        self.name == other.name && self.text == other.text
    }
}

impl Eq for JsonTable {}

impl Hash for JsonTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, &self.text).hash(state);
    }
}
