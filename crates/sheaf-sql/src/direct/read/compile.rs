//! From a SELECT to its plan, if it reads one table and an index finds its rows or has their order.

use std::sync::Arc;

use arrow::datatypes::Schema;
use sheaf_storage::{Direction, KeyRange};
use sheaf_table::Table;
use sqlparser::ast;

use super::clauses::{
    condition, distinct_key, index_order, limit_and_offset, order_items, with_columns_of,
};
use super::plain_query::{PlainQuery, PlainSelect, plain_query, plain_select};
use super::{Read, Shown, Walk};
use crate::direct::access::{Access, Comparison, MAX_ROWS, indexes};
use crate::direct::rows::order::{OrderItem, SortKey};
use crate::direct::shown::aggregate::Aggregate;
use crate::direct::shown::row::Item;
use crate::direct::shown::select_list::{self, SelectList, is_aggregate};
use crate::direct::syntax::locking_clause::{Locking, locking};
use crate::direct::syntax::names::Names;
use crate::session::Session;

impl Read {
    /// The plan of a query, and its table; `None` if it is not one of a few rows of one table. `text` is what was
    /// parsed.
    pub(in crate::direct) fn compile(
        session: &Session,
        query: &ast::Query,
        text: &str,
    ) -> Option<(Read, Arc<Table>)> {
        Read::compile_one(session, (query, text), false)
    }

    /// The same of a query that no index serves: it reads its table from end to end, if that [is
    /// small](Self::is_small).
    pub(in crate::direct) fn compile_whole(
        session: &Session,
        query: &ast::Query,
        text: &str,
    ) -> Option<(Read, Arc<Table>)> {
        let (read, table) = Read::compile_one(session, (query, text), true)?;
        let is_small = {
            let _guard = session.borrow_for_read(&table, false).ok()??;
            read.reads_whole && matches!(read.is_small(&table), Ok(true))
        };
        is_small.then_some((read, table))
    }

    /// `may_read_whole`: without an index, too.
    fn compile_one(
        session: &Session,
        (query, text): (&ast::Query, &str),
        may_read_whole: bool,
    ) -> Option<(Read, Arc<Table>)> {
        let PlainQuery {
            select,
            order_by,
            limit_clause,
            locks,
        } = plain_query(query)?;
        let PlainSelect {
            distinct,
            selection,
            group_by: [],
        } = plain_select(select)?
        else {
            return None;
        };
        let names = Names::of(session, &select.from)?;
        let table = names.table()?;
        let locking = locking(locks, names.alias)?;
        if select.projection.iter().any(is_aggregate) {
            let is_plain =
                !distinct && order_by.is_none() && limit_clause.is_none() && locking.is_none();
            let query = (select, selection, text);
            return is_plain.then(|| Read::of_aggregates(session, query, names, may_read_whole))?;
        }
        let (list, computed) =
            select_list::columns_and_expressions(session, (select, text), &names)?;
        let SelectList {
            items,
            columns,
            fields,
        } = list;
        let (comparisons, filter) = condition(selection, &names)?;
        if computed.is_some() && locking.as_ref().is_some_and(Locking::skips) {
            // The vectorised path has no such query, and what is large here is left to it.
            return None;
        }
        let definition = names.definition();
        let wanted = match order_by {
            Some(order_by) => order_items(order_by, select, &names)?,
            None => Vec::new(),
        };
        let shown = items.iter().filter_map(Item::stored);
        let shown = shown.chain(wanted.iter().map(|item| item.column));
        let read: Vec<usize> = match &computed {
            Some(computed) => shown.chain(computed.expressions.columns()).collect(),
            None => shown.collect(),
        };
        let read = with_columns_of(&filter, read);
        let pushes = session.variables.pushes_index_conditions();
        let mut walk = match limit_clause {
            Some(_) if !distinct && locking.is_none() => {
                Walk::in_order(table, &comparisons, &wanted)
            }
            _ => None,
        };
        if let Some(walk) = &mut walk {
            walk.access.use_entries(table, pushes, Some(&read));
        }
        // Rows that are locked are looked up.
        let looked_at = locking.is_none().then_some(read.as_slice());
        let mut reads_whole = false;
        // DISTINCT sorts in any case.
        let is_cut = limit_clause.is_some() && !distinct;
        let has_order = |access: &Access| index_order(table, access, &wanted).is_some();
        let chosen =
            Access::choose_in_order(table, &comparisons, pushes, looked_at, (&has_order, is_cut));
        let access = match chosen {
            Some(access) => access,
            None if Access::binds_any(table, &comparisons) => return None,
            None => match walk.take() {
                Some(walk) => walk.access,
                None if may_read_whole => {
                    reads_whole = true;
                    Access::scan(&comparisons)
                }
                None => return None,
            },
        };
        let mut access = access.filtered_by(filter);
        let distinct = match distinct && !access.is_single() {
            true if computed.is_some() => return None,
            true => Some(distinct_key(definition, &items, &wanted)?),
            false => None,
        };
        let in_order = match distinct {
            None => index_order(table, &access, &wanted),
            // Its rows are sorted anyway.
            Some(_) => None,
        };
        let is_ordered = !wanted.is_empty();
        let (direction, order) = match in_order {
            Some(direction) => (direction, None),
            None => (Direction::Forward, Some(SortKey::new(definition, wanted)?)),
        };
        // Rows in the order of the table's own index are read along it.
        access.is_scan &= !is_ordered || order.is_some();
        let (limit, offset) = match limit_clause {
            Some(clause) => limit_and_offset(clause)?,
            None => (None, None),
        };
        let is_sorted = order.is_some() || distinct.is_some();
        if locking.is_some() && limit.is_some() && is_sorted {
            // Which rows are shown, and so locked, is known when all are sorted.
            return None;
        }
        let read = Read {
            alias: names.alias.to_string(),
            columns,
            schema: Arc::new(Schema::new(fields)),
            shown: Shown::Columns(items),
            computed,
            access,
            direction,
            is_ordered,
            order,
            distinct,
            limit,
            offset,
            locking,
            walk,
            reads_whole,
        };
        Some((read, Arc::clone(table)))
    }

    /// The plan of a query whose select list has nothing but aggregates.
    fn of_aggregates(
        session: &Session,
        (select, selection, text): (&ast::Select, Option<&ast::Expr>, &str),
        names: Names<'_>,
        may_read_whole: bool,
    ) -> Option<(Read, Arc<Table>)> {
        let (comparisons, filter) = condition(selection, &names)?;
        let definition = names.definition();
        let table = names.table()?;
        let list = select_list::computed(session, (select, text), |expr| {
            let aggregate = Aggregate::of(expr, &names)?;
            Some((aggregate, aggregate.field(definition)))
        })?;
        let SelectList {
            items: aggregates,
            columns,
            fields,
        } = list;
        let read: Vec<usize> = aggregates.iter().filter_map(Aggregate::column).collect();
        let read = with_columns_of(&filter, read);
        let pushes = session.variables.pushes_index_conditions();
        let extreme = match aggregates.as_slice() {
            [Aggregate::Extreme { column, wanted, .. }] => Some((*column, *wanted)),
            _ => None,
        };
        let order = extreme.map(|(column, _)| OrderItem {
            column,
            descending: false,
        });
        let mut reads_whole = false;
        let has_order = |access: &Access| {
            order.is_none_or(|order| index_order(table, access, &[order]).is_some())
        };
        let order_of_first = (&has_order as &dyn Fn(&Access) -> bool, order.is_some());
        let chosen =
            Access::choose_in_order(table, &comparisons, pushes, Some(&read), order_of_first);
        let access = match chosen {
            Some(access) => access,
            None if Access::binds_any(table, &comparisons) => return None,
            None => {
                let order = order.filter(|_| filter.is_none());
                let walk = order.and_then(|order| Walk::in_order(table, &comparisons, &[order]));
                match walk {
                    Some(Walk { mut access, .. }) => {
                        access.use_entries(table, pushes, Some(&read));
                        access
                    }
                    None if may_read_whole => {
                        reads_whole = true;
                        Access::scan(&comparisons)
                    }
                    None => return None,
                }
            }
        };
        let access = access.filtered_by(filter);
        let is_in_order = |order| index_order(table, &access, &[order]).is_some();
        let ends_at_first = order.is_some_and(is_in_order);
        let direction = match extreme {
            Some((_, std::cmp::Ordering::Greater)) if ends_at_first => Direction::Backward,
            _ => Direction::Forward,
        };
        let is_never_null =
            |column: usize| !definition.columns[column].nullable || access.binds_column(column);
        let counts = |aggregate: &Aggregate| aggregate.counts_entries(is_never_null);
        let read = Read {
            alias: names.alias.to_string(),
            columns,
            schema: Arc::new(Schema::new(fields)),
            shown: Shown::Aggregates {
                counts_entries: !access.has_tests() && aggregates.iter().all(counts),
                aggregates,
                ends_at_first,
            },
            computed: None,
            access,
            direction,
            is_ordered: ends_at_first,
            order: None,
            distinct: None,
            limit: None,
            offset: None,
            locking: None,
            walk: None,
            reads_whole,
        };
        Some((read, Arc::clone(table)))
    }
}

impl Walk {
    /// `None` if no index has the order.
    fn in_order(table: &Table, comparisons: &[Comparison], wanted: &[OrderItem]) -> Option<Walk> {
        if comparisons.iter().any(Comparison::is_by_rows) {
            return None;
        }
        indexes(table).find_map(|index| {
            let access = Access::whole(index, comparisons);
            let direction = index_order(table, &access, wanted)?;
            Some(Walk { access, direction })
        })
    }
}

/// Whether a query is of one table that has too many rows for any plan that reads it from end to end.
pub(in crate::direct) fn is_of_large_table(session: &Session, query: &ast::Query) -> bool {
    let table_of = || {
        let select = plain_query(query)?.select;
        Names::of(session, &select.from)?.table().cloned()
    };
    let Some(table) = table_of() else {
        return false;
    };
    let Ok(Some(_guard)) = session.borrow_for_read(&table, false) else {
        return false;
    };
    let rows = table.clustered.estimate_entries(&KeyRange::all());
    rows.is_ok_and(|rows| rows > MAX_ROWS)
}
