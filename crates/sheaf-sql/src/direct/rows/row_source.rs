//! Where the rows of a FROM's part come from: a table, or a query whose rows are in memory.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use sheaf_storage::ReadView;
use sheaf_table::{RowLayout, RowView, Table, TableDefinition};
use sheaf_types::Collation;

use super::order::{OrderItem, SortKey};
use super::stored_value::long_value;
use crate::accounts::TableNeed;
use crate::direct::Action;
use crate::direct::operands::operand::Operand;
use crate::error::Result;
use crate::session::result::ColumnMeta;

/// Where the rows of a FROM's part come from.
#[derive(Clone, Debug)]
pub(in crate::direct) enum RowSource {
    Table(Arc<Table>),
    /// A query, whose rows are in memory.
    Query(Arc<Derived>),
}

impl RowSource {
    pub(in crate::direct) fn definition(&self) -> &TableDefinition {
        match self {
            RowSource::Table(table) => &table.definition,
            RowSource::Query(derived) => &derived.definition,
        }
    }

    /// The table; `None` if it is a query.
    pub(in crate::direct) fn table(&self) -> Option<&Arc<Table>> {
        match self {
            RowSource::Table(table) => Some(table),
            RowSource::Query(_) => None,
        }
    }

    /// Whether the tables are what the plan was made for.
    pub(in crate::direct) fn is_current(&self) -> bool {
        match self {
            RowSource::Table(table) => table.is_current(),
            RowSource::Query(derived) => derived.is_current(),
        }
    }

    /// Reads a row.
    pub(in crate::direct) fn view<'r>(&'r self, bytes: &'r [u8]) -> Result<RowView<'r>> {
        Ok(match self {
            RowSource::Table(table) => table.view(bytes)?,
            RowSource::Query(derived) => derived.layout.view(bytes)?,
        })
    }

    /// A value that the row only refers to. Rows of a query have all their values.
    pub(in crate::direct) fn long_value(
        &self,
        view: &ReadView,
        row: &RowView<'_>,
        column: usize,
    ) -> Result<Option<Vec<u8>>> {
        match self {
            RowSource::Table(table) => long_value(table, view, row, column),
            RowSource::Query(_) => Ok(None),
        }
    }
}

/// A query whose rows come to be in memory.
pub(in crate::direct) struct Derived {
    /// Its columns, as those of a table that nobody has.
    pub(in crate::direct) definition: TableDefinition,
    pub(in crate::direct) layout: RowLayout,
    pub(in crate::direct) columns: Vec<ColumnMeta>,
    pub(in crate::direct) schema: SchemaRef,
    pub(in crate::direct) parts: Vec<Part>,
    /// Of the rows of a UNION.
    pub(in crate::direct) distinct: Option<SortKey>,
    pub(in crate::direct) order: Option<SortKey>,
    pub(in crate::direct) limit: Option<Operand>,
    pub(in crate::direct) offset: Option<Operand>,
    pub(in crate::direct) needs: Vec<TableNeed>,
    /// It is read for a list of values of one column.
    pub(in crate::direct) asked: Option<Asked>,
    /// It is no query, but this table of this database, `information_schema`.
    pub(in crate::direct) of_definitions: Option<(String, String)>,
}

/// What a query is asked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::direct) struct Asked {
    /// The column that the list is of.
    pub(in crate::direct) column: usize,
    /// The parameter that is its length; its members follow.
    pub(in crate::direct) place: usize,
}

/// One SELECT of a UNION, or the only one.
pub(in crate::direct) struct Part {
    pub(in crate::direct) action: Action,
    /// Of rows that are equal, up to here, one stays.
    pub(in crate::direct) is_distinct: bool,
}

impl std::fmt::Debug for Derived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Derived({} parts)", self.parts.len())
    }
}

impl Derived {
    pub(in crate::direct) fn is_of_definitions(&self) -> bool {
        self.of_definitions.is_some()
    }

    /// The column of whose values it is given a list, if it is.
    pub(in crate::direct) fn asked(&self) -> Option<Asked> {
        self.asked
    }

    pub(in crate::direct) fn result_columns(&self) -> usize {
        self.columns.len()
    }

    /// Whether all tables are what the plan was made for.
    pub(in crate::direct) fn is_current(&self) -> bool {
        self.parts.iter().all(|part| part.action.is_current())
    }

    /// What it needs of its tables.
    pub(in crate::direct) fn needs(&self) -> &[TableNeed] {
        &self.needs
    }

    /// How its rows are found by these columns.
    pub(in crate::direct) fn key(&self, columns: &[usize]) -> Option<SortKey> {
        key_of(
            &self.definition,
            columns.iter().map(|column| (*column, false)),
        )
    }

    /// Whether a column's values are told apart and ordered as MySQL does it.
    pub(in crate::direct) fn is_ordered(&self, column: usize) -> bool {
        let ty = &self.definition.columns[column].ty;
        !(ty.is_character() && ty.collation() == Some(Collation::Binary))
    }

    /// The key of a row.
    pub(in crate::direct) fn key_of_row(&self, key: &SortKey, row: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let row = self.layout.view(row)?;
        key.append(None, &ReadView::newest(), &row, &mut bytes)?;
        Ok(bytes)
    }
}

/// A key of columns, each with whether it is downwards. `None` if one of them has no order here.
pub(in crate::direct) fn key_of(
    definition: &TableDefinition,
    columns: impl Iterator<Item = (usize, bool)>,
) -> Option<SortKey> {
    let item = |(column, descending): (usize, bool)| {
        let ty = &definition.columns[column].ty;
        let is_unknown = ty.is_character() && ty.collation() == Some(Collation::Binary);
        (!is_unknown).then_some(OrderItem { column, descending })
    };
    let items = columns.map(item).collect::<Option<Vec<_>>>()?;
    SortKey::new(definition, items)
}
