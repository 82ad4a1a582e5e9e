//! A UNION that is a statement: its rows, in memory, on their way to the client.

use sheaf_table::RowView;
use sheaf_types::Value;
use sqlparser::ast;

use super::shape::unwrapped;
use crate::direct::read::end_direct_read;
use crate::direct::rows::row_source::Derived;
use crate::direct::shown::row::Item;
use crate::direct::syntax::attempt::Attempt;
use crate::error::Result;
use crate::session::Session;
use crate::session::result::{Cell, CellRow, ResultSink};

/// A UNION that is a statement.
pub(in crate::direct) struct Union {
    pub(in crate::direct) derived: Derived,
    items: Vec<Item>,
}

impl Union {
    /// The plan of a query; `None` if it is no UNION of direct plans. As [`Derived::compile`].
    pub(in crate::direct) fn compile(
        session: &Session,
        query: &ast::Query,
        attempt: Attempt<'_>,
    ) -> Option<Union> {
        let unwrapped = unwrapped(query);
        if !matches!(unwrapped.body.as_ref(), ast::SetExpr::SetOperation { .. }) {
            return None;
        }
        let derived = Derived::compile(session, unwrapped, attempt)?;
        let columns = derived.definition.columns.iter().enumerate();
        let items = columns.map(|(column, own)| Item::new(column, &own.ty));
        Some(Union {
            items: items.collect(),
            derived,
        })
    }
}

/// A row on its way to the client.
struct UnionRow<'a> {
    row: RowView<'a>,
    items: &'a [Item],
}

impl CellRow for UnionRow<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        self.items[column].cell(&self.row)
    }
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_union(
    session: &mut Session,
    union: &Union,
    parameters: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    if !sink.takes_rows() {
        return Ok(false);
    }
    let derived = &union.derived;
    let Some(rows) = derived.rows(session, parameters)? else {
        return Ok(false);
    };
    sink.row_columns(&derived.columns, &derived.schema)?;
    let mut sent = 0;
    for row in rows.rows() {
        let row = UnionRow {
            row: derived.layout.view(row)?,
            items: &union.items,
        };
        sink.row(&derived.columns, &row)?;
        sent += 1;
    }
    end_direct_read(session, sent, sink)
}
