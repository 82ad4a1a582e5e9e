//! JSON_TABLE: rows from a document.
//!
//! A level of columns has a path. Each value that the path leads to makes a row. Nested levels make rows of their own
//! below each row of their parent:
//!
//! ```text
//!   '$[*]' COLUMNS (i FOR ORDINALITY,                         [{"b": [7, 8], "c": [9]}, {}]
//!                   NESTED PATH '$.b[*]' COLUMNS (x ...),
//!                   NESTED PATH '$.c[*]' COLUMNS (y ...))        i  x     y
//!                                                                1  7     NULL
//!                                                                1  8     NULL
//!                                                                1  NULL  9
//!                                                                2  NULL  NULL
//! ```
//!
//! Levels side by side do not multiply: while one makes rows, the cells of the other are NULL. A row below which no
//! level makes any stands alone.
//!
//! The cells are values of documents. The caller converts them to the types of its columns, and acts on ON ERROR where
//! that fails.

use std::borrow::Cow;

use crate::json::JsonError;
use crate::json::document::{Document, Json};
use crate::json::functions::extract::array_of;
use crate::json::path::Path;

/// A path and the columns of its rows.
#[derive(Debug, Clone)]
pub struct Level {
    pub path: Path,
    pub columns: Vec<Column>,
}

/// A column, or a level of more of them.
#[derive(Debug, Clone)]
pub enum Column {
    /// FOR ORDINALITY: the number of the row at its level, from 1.
    Ordinality,
    /// EXISTS PATH
    Exists(Path),
    /// PATH
    Value(ValueColumn),
    /// NESTED PATH
    Nested(Level),
}

/// A column of the values that a path leads to.
#[derive(Debug, Clone)]
pub struct ValueColumn {
    pub name: String,
    pub path: Path,
    /// Of type JSON: containers are values, and several values make an array.
    pub is_json: bool,
    pub on_empty: Otherwise,
    pub on_error: Otherwise,
}

/// What a cell is where there is no value for it.
#[derive(Debug, Clone)]
pub enum Otherwise {
    Null,
    Error,
    Default(Document),
}

/// A cell of a row.
#[derive(Debug, Clone)]
pub enum Cell<'a> {
    Null,
    /// Of FOR ORDINALITY.
    Ordinal(u64),
    /// Of EXISTS PATH.
    Exists(bool),
    /// The null literal is not among them: it is NULL.
    Value(Json<'a>),
    /// An array of several values, or a default.
    Made(Cow<'a, Document>),
    /// The column asks for an error. The first one of a row counts, among those of converting values.
    Wrong(JsonError),
}

impl Level {
    /// Cells of a row: columns of nested levels stand where the level does.
    pub fn width(&self) -> usize {
        self.columns.iter().map(Column::width).sum()
    }

    /// Calls `row` for each row of the document. Its error ends the table.
    ///
    /// # Errors
    /// Those of `row`.
    pub fn for_each_row<'a, E>(
        &'a self,
        json: Json<'a>,
        row: &mut dyn FnMut(&[Cell<'a>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut cells = vec![Cell::Null; self.width()];
        self.rows(json, 0, &mut cells, row).map(drop)
    }

    /// The rows below one value, whose cells begin at `first`. Gives whether there are any.
    fn rows<'a, E>(
        &'a self,
        json: Json<'a>,
        first: usize,
        cells: &mut Vec<Cell<'a>>,
        row: &mut dyn FnMut(&[Cell<'a>]) -> Result<(), E>,
    ) -> Result<bool, E> {
        let values = self.path.find(json);
        for (position, &value) in values.iter().enumerate() {
            let mut at = first;
            for column in &self.columns {
                if !matches!(column, Column::Nested(_)) {
                    cells[at] = column.cell(value, position as u64 + 1);
                }
                at += column.width();
            }
            let mut at = first;
            let mut has_rows = false;
            for column in &self.columns {
                let width = column.width();
                if let Column::Nested(level) = column {
                    has_rows |= level.rows(value, at, cells, row)?;
                    cells[at..at + width].fill(Cell::Null);
                }
                at += width;
            }
            if !has_rows {
                row(cells)?;
            }
        }
        Ok(!values.is_empty())
    }
}

impl Column {
    fn width(&self) -> usize {
        match self {
            Column::Nested(level) => level.width(),
            _ => 1,
        }
    }

    /// The cell of a row's value. A nested level has none of its own.
    fn cell<'a>(&'a self, value: Json<'a>, ordinal: u64) -> Cell<'a> {
        match self {
            Column::Ordinality => Cell::Ordinal(ordinal),
            Column::Exists(path) => Cell::Exists(path.find_one(value).is_some()),
            Column::Value(column) => column.cell(value),
            Column::Nested(_) => Cell::Null,
        }
    }
}

impl ValueColumn {
    fn cell<'a>(&'a self, value: Json<'a>) -> Cell<'a> {
        match self.path.find(value)[..] {
            [] => self.on_empty.cell(|| JsonError::MissingTableValue {
                column: self.name.clone(),
            }),
            [value] if value.is_null() => Cell::Null,
            [value] if self.is_json || value.nesting() == 0 => Cell::Value(value),
            ref values if self.is_json => match array_of(values.iter().copied()) {
                Ok(array) => Cell::Made(Cow::Owned(array)),
                Err(error) => Cell::Wrong(error),
            },
            _ => self.on_error.cell(|| JsonError::WrongTableValue {
                column: self.name.clone(),
            }),
        }
    }
}

impl Otherwise {
    /// The cell in place of a value: `error`, if the column asks for it.
    fn cell(&self, error: impl FnOnce() -> JsonError) -> Cell<'_> {
        match self {
            Otherwise::Null => Cell::Null,
            Otherwise::Error => Cell::Wrong(error()),
            Otherwise::Default(document) => Cell::Made(Cow::Borrowed(document)),
        }
    }
}
