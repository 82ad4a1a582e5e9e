//! Where the rows of an INSERT go.

use std::sync::Arc;

use sheaf_table::Table;
use sheaf_types::error::codes;
use sqlparser::ast;

use super::table_writer::{WriteOptions, target_columns};
use crate::change::find::through_view::ChangedView;
use crate::error::{Result, SqlError};

/// Where rows go and what is done about those that do not fit.
pub(crate) struct Destination {
    pub(crate) database: String,
    pub(crate) table: String,
    /// As the statement names them; empty: all.
    pub(crate) columns: Vec<String>,
    pub(crate) options: WriteOptions,
    /// ON DUPLICATE KEY UPDATE.
    pub(crate) assignments: Vec<ast::Assignment>,
    pub(crate) alias: Option<ast::InsertAliases>,
    pub(crate) returning: Option<Vec<ast::SelectItem>>,
    /// The view that the statement names, if it is one.
    pub(crate) view: Option<Arc<ChangedView>>,
}

impl Destination {
    /// What came of an INSERT. Error 1423 for 1364 of a column that the view does not have.
    pub(in crate::change) fn done<T>(&self, inserted: Result<T>) -> Result<T> {
        match (inserted, &self.view) {
            (Err(error), Some(view)) if error.code == codes::NO_DEFAULT_FOR_FIELD.number() => {
                Err(SqlError::new(
                    codes::NO_DEFAULT_FOR_VIEW_FIELD,
                    format!(
                        "Field of view '{}.{}' underlying table doesn't have a default value",
                        view.database, view.name
                    ),
                ))
            }
            (inserted, _) => inserted,
        }
    }

    /// The positions of the columns that the statement gives values to.
    pub(crate) fn target_columns(&self, table: &Table) -> Result<Vec<usize>> {
        let Some(view) = &self.view else {
            return target_columns(table, &self.columns);
        };
        let all = view.insertable(&self.columns)?;
        if self.columns.is_empty() {
            return Ok(all);
        }
        let mut targets = Vec::with_capacity(self.columns.len());
        for name in &self.columns {
            let position = view.column(name)?;
            let position = position.ok_or_else(|| SqlError::bad_field(name, "field list"))?;
            if targets.contains(&position) {
                return Err(SqlError::field_specified_twice(name));
            }
            targets.push(position);
        }
        Ok(targets)
    }
}
