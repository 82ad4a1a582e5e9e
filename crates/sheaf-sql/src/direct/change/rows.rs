//! Which rows an UPDATE or a DELETE changes: an index finds them, in the order that the statement wants, or a small
//! table is read from end to end.

use std::sync::Arc;

use sheaf_storage::Direction;
use sheaf_table::Table;
use sheaf_types::Value;
use sqlparser::ast;

use crate::direct::access::Access;
use crate::direct::join::rows_if_small;
use crate::direct::may_divide;
use crate::direct::operands::operand::Operand;
use crate::direct::read::{condition, index_order, row_count};
use crate::direct::rows::order::{OrderItem, descends};
use crate::direct::syntax::names::{ColumnNames, Names};
use crate::session::Session;

/// Which rows a statement changes, and in which order.
#[derive(Debug)]
pub(in crate::direct) struct Rows {
    /// What the statement calls the table.
    pub(in crate::direct) alias: String,
    pub(in crate::direct) access: Access,
    pub(in crate::direct) direction: Direction,
    /// What is left over where more are found; without an order it may be any.
    pub(in crate::direct) limit: Option<Operand>,
}

impl Rows {
    /// With their table; `None` if an index does not give them in the wanted order.
    pub(super) fn of(
        session: &Session,
        (tables, selection): (&[ast::TableWithJoins], Option<&ast::Expr>),
        order_by: &[ast::OrderByExpr],
        limit: Option<&ast::Expr>,
    ) -> Option<(Rows, Arc<Table>)> {
        let names = Names::of(session, tables)?;
        let table = names.table()?;
        let selection = selection?;
        // A division by 0 in the condition may be an error, which the vectorised path watches for.
        if may_divide(selection) {
            return None;
        }
        let (comparisons, filter) = condition(Some(selection), &names)?;
        let pushes = session.variables.pushes_index_conditions();
        let item = |item: &ast::OrderByExpr| {
            let descending = descends(item)?;
            let column = names.column(&item.expr)?;
            Some(OrderItem { column, descending })
        };
        let wanted = order_by.iter().map(item).collect::<Option<Vec<_>>>()?;
        let has_order = |access: &Access| index_order(table, access, &wanted).is_some();
        // Rows that are changed are looked up.
        let access = Access::choose_in_order(
            table,
            &comparisons,
            pushes,
            None,
            (&has_order, limit.is_some()),
        );
        let mut access = match access {
            Some(access) => access,
            // What an expression says of other rows than those that are found may be an error.
            None if filter.is_some() || Access::binds_any(table, &comparisons) => return None,
            None => {
                let _guard = session.borrow_for_read(table, false).ok()??;
                rows_if_small(table).ok()??;
                Access::scan(&comparisons)
            }
        };
        let direction = index_order(table, &access, &wanted)?;
        // Rows in the order of the table's own index are read along it.
        access.is_scan &= wanted.is_empty();
        let limit = match limit {
            None => None,
            Some(limit) => Some(Operand::of(limit)?),
        };
        let rows = Rows {
            alias: names.alias.to_string(),
            access: access.filtered_by(filter),
            direction,
            limit,
        };
        Some((rows, Arc::clone(table)))
    }

    /// Whether the number of rows still is what the plan was made for.
    pub(in crate::direct) fn is_current(&self, table: &Table) -> bool {
        !self.access.is_whole() || matches!(rows_if_small(table), Ok(Some(_)))
    }

    /// The most that are changed; `None`: none, or the operand is no number of rows.
    pub(super) fn most(&self, parameters: &[Value]) -> Option<u64> {
        row_count(self.limit.as_ref(), parameters, u64::MAX).filter(|rows| *rows > 0)
    }
}
