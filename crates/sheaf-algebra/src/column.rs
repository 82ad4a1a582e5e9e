//! The columns of a statement: a number each, and what is known of it wherever it is used.
//!
//! Names are here for people alone: EXPLAIN, messages, headers. No rule looks at them.

use std::fmt;

use arrow::datatypes::FieldRef;

/// A column of a statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u32);

impl fmt::Display for ColumnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Debug for ColumnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is known of a column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its type: an Arrow type, and the SQL type in the metadata. It says whether the column may be NULL where it is
    /// made; above an outer join it may be NULL all the same.
    pub field: FieldRef,
    /// What messages and plans show.
    pub name: String,
    /// Of a column of a stored table.
    pub origin: Option<Origin>,
}

/// The place of a column in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The number of the reference to the table in the statement.
    pub reference: u32,
    /// The position of the column in the reference's schema.
    pub position: u32,
}

/// All columns of a statement, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Columns(Vec<Column>);

impl Columns {
    /// A new column, unlike all others.
    pub fn add(&mut self, column: Column) -> ColumnId {
        let id = ColumnId(self.0.len() as u32);
        self.0.push(column);
        id
    }

    /// A new column that is computed.
    pub fn add_computed(&mut self, name: impl Into<String>, field: FieldRef) -> ColumnId {
        self.add(Column {
            field,
            name: name.into(),
            origin: None,
        })
    }

    /// What plans show of a column that is computed.
    pub fn rename(&mut self, id: ColumnId, name: &str) {
        let column = &mut self.0[id.0 as usize];
        if column.origin.is_none() {
            column.name = name.to_string();
        }
    }

    /// All of them, the last one first.
    pub fn newest_first(&self) -> impl Iterator<Item = (ColumnId, &Column)> {
        let columns = self.0.iter().enumerate().rev();
        columns.map(|(at, column)| (ColumnId(at as u32), column))
    }

    pub fn get(&self, id: ColumnId) -> &Column {
        &self.0[id.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
