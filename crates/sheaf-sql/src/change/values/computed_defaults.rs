//! Defaults that are expressions, computed for each row.
//!
//! A default that is the same for all rows, statements and sessions is a constant of its column
//! ([`sheaf_table::DefaultValue`]). Any other is computed when a row has the values that it was given, from left to
//! right, so that it may name the columns in front of it:
//!
//! ```text
//!   (id int, n int default (id + 1), at date default (curdate()))
//!   INSERT (id) VALUES (4)     ->     (4, 5, today)
//! ```
//!
//! Like CHECKs, the expressions of a table are one list over its columns (`query/row_evaluator.rs`). Direct plans leave
//! tables that have some to the vectorised way.

use sheaf_frontend::column_default::default_expression;
use sheaf_table::schema::same_name;
use sheaf_table::{Column, TableDefinition, TableError};
use sheaf_types::Value;
use sqlparser::ast;

use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::query::row_evaluator::{RowEvaluator, RowKind};
use crate::query::values::shown_in;
use crate::session::Session;
use crate::session::result::Origin;

/// The defaults of a table that are computed.
pub(crate) struct ComputedDefaults {
    /// The positions of their columns, in the order of the items.
    positions: Vec<usize>,
    evaluator: RowEvaluator,
    columns: Vec<Column>,
}

impl ComputedDefaults {
    /// The default of the column at this position, in a row whose other values are known.
    pub(crate) fn value(&self, position: usize, row: &[Value]) -> Result<Value> {
        let item = self.positions.iter().position(|known| *known == position);
        let item = item.ok_or_else(|| SqlError::unknown("a default that is not computed"))?;
        let value = self.evaluator.value(item, row.iter())?;
        let origin = Origin::from(&self.evaluator.metas[item]);
        Ok(shown_in(&value, &origin, &self.columns[position].ty).into_owned())
    }
}

impl Session {
    /// The defaults of a table that are computed for each row; `None` if there is none.
    pub(crate) fn computed_defaults(
        &self,
        definition: &TableDefinition,
    ) -> Result<Option<ComputedDefaults>> {
        self.defaults_of(&definition.name, &definition.columns)
    }

    fn defaults_of(&self, table: &str, columns: &[Column]) -> Result<Option<ComputedDefaults>> {
        let is_computed = |at: &usize| columns[*at].default_expression().is_some();
        let positions: Vec<usize> = (0..columns.len()).filter(is_computed).collect();
        if positions.is_empty() {
            return Ok(None);
        }
        let items = positions.iter().map(|position| {
            Ok(ast::SelectItem::ExprWithAlias {
                expr: default_expression(&columns[*position])?,
                alias: ast::Ident::with_quote('`', format!("default {position}")),
            })
        });
        let items = items.collect::<Result<Vec<_>>>()?;
        // While a row is made, any column may lack its value.
        let columns = columns.iter().map(|column| Column {
            nullable: true,
            ..column.clone()
        });
        let columns: Vec<Column> = columns.collect();
        let kind = RowKind {
            name: table,
            columns: &columns,
        };
        let evaluator = self.row_evaluator(Parsed::new(items, ""), &[kind])?;
        Ok(Some(ComputedDefaults {
            positions,
            evaluator,
            columns,
        }))
    }

    /// Whether the computed defaults of a table that is being defined can be computed.
    ///
    /// # Errors
    /// 3767 for one that names a column behind it whose default is computed, too; 3768 for one that names a column
    /// whose values the server gives out; others as for a query.
    pub(crate) fn try_defaults(&self, table: &str, columns: &[Column]) -> Result<()> {
        for (at, column) in columns.iter().enumerate() {
            let Some(default) = column.default_expression() else {
                continue;
            };
            let names = |other: &Column| {
                let mut named = default.columns.iter();
                named.any(|name| same_name(name, &other.name))
            };
            let column = column.name.clone();
            if columns
                .iter()
                .any(|other| other.auto_increment && names(other))
            {
                return Err(TableError::DefaultOfAutoIncrement { column }.into());
            }
            let mut behind = columns[at..].iter();
            let is_computed =
                |other: &Column| other.default_expression().is_some() || other.generated.is_some();
            if behind.any(|other| is_computed(other) && names(other)) {
                return Err(TableError::DefaultOfLaterColumn { column }.into());
            }
            // Defaults are computed before generated columns.
            let mut others = columns.iter();
            if others.any(|other| other.generated.is_some() && names(other)) {
                return Err(SqlError::not_supported_yet(
                    "a default that names a generated column",
                ));
            }
        }
        self.defaults_of(table, columns)?;
        Ok(())
    }
}
