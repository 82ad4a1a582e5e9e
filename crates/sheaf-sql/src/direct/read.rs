//! SELECT of columns of one table, or of aggregates over them.
//!
//! Rows go from the leaf to the client's buffer as they are found. Only ORDER BY against the order of the index, and
//! DISTINCT, hold them in memory first. Where no index finds the rows by few keys, but one has the order of a LIMIT, a
//! plan walks along it for a while and sees whether it meets rows enough. Until a plan has sent its first byte it may
//! still find that its operands or the number of rows do not suit it, and leave the statement to the vectorised path.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Schema, SchemaRef};
use sheaf_access::SessionCounters;
use sheaf_storage::{Direction, ReadView};
use sheaf_table::{BorrowedReadGuard, RowView, Table, TableDefinition};
use sheaf_types::Value;
use sqlparser::ast;

use super::access::{
    Access, BoundAccess, Comparison, Keys, MAX_ROWS, conditions, filter_of, indexes,
};
use super::aggregate::{Aggregate, Totals};
use super::expression::{Evaluator, Expressions};
use super::locking::{Locking, locking};
use super::names::{ColumnNames, Names};
use super::operand::Operand;
use super::order::{OrderItem, SortKey, Sorter, descends};
use super::row::{Item, ResultRow, RowReader, value_of};
use super::select_list::{self, Computed, SelectList, ShownColumns, Spelled, is_aggregate};
use crate::error::Result;
use crate::session::Session;
use crate::session::result::{ColumnMeta, ResultSink};
use crate::session::searched::{DirectSearch, Searched};

/// Rows that a LIMIT lets a direct plan walk to, whatever the estimate, besides those that OFFSET passes over.
pub(super) const MAX_LIMITED_ROWS: u64 = 1_000;

/// Rows that a walk looks at in the hope that a LIMIT ends it.
pub(super) const MAX_WALKED_ROWS: u64 = 1_000;

/// See the module's comment.
#[derive(Debug)]
pub(super) struct Read {
    /// What the statement calls the table.
    pub(super) alias: String,
    pub(super) columns: Vec<ColumnMeta>,
    /// The result's columns as Arrow has them.
    schema: SchemaRef,
    pub(super) shown: Shown,
    /// Of the columns that are shown.
    computed: Option<Computed>,
    pub(super) access: Access,
    pub(super) direction: Direction,
    /// The index does not give the order.
    order: Option<SortKey>,
    distinct: Option<SortKey>,
    pub(super) limit: Option<Operand>,
    pub(super) offset: Option<Operand>,
    pub(super) locking: Option<Locking>,
    /// All rows in the wanted order, of a LIMIT.
    walk: Option<Walk>,
}

/// Rows in the order of an index.
#[derive(Debug)]
struct Walk {
    access: Access,
    direction: Direction,
}

/// What the select list consists of.
#[derive(Debug)]
pub(super) enum Shown {
    Columns(Vec<Item>),
    Aggregates {
        aggregates: Vec<Aggregate>,
        /// Entries are counted, and their rows are not looked at.
        counts_entries: bool,
        /// It is the least or greatest value of the column that rows come in the order of: the first one is it.
        ends_at_first: bool,
    },
}

impl Read {
    /// The plan of a query, and its table; `None` if it is not one of a few rows of one table. `text` is what was
    /// parsed.
    pub(super) fn compile(
        session: &Session,
        query: &ast::Query,
        text: &str,
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
            return is_plain
                .then(|| Read::of_aggregates(session, (select, selection), names, text))?;
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
            Some(_) if !distinct && locking.is_none() && filter.is_none() => {
                Walk::in_order(table, &comparisons, &wanted)
            }
            _ => None,
        };
        if let Some(walk) = &mut walk {
            walk.access.use_entries(table, pushes, Some(&read));
        }
        // Rows that are locked are looked up.
        let looked_at = locking.is_none().then_some(read.as_slice());
        let access = match Access::choose(table, &comparisons, pushes, looked_at) {
            Some(access) => access,
            None if Access::binds_any(table, &comparisons) => return None,
            None => walk.take()?.access,
        };
        let access = access.filtered_by(filter);
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
        let (direction, order) = match in_order {
            Some(direction) => (direction, None),
            None => (Direction::Forward, Some(SortKey::new(definition, wanted)?)),
        };
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
            order,
            distinct,
            limit,
            offset,
            locking,
            walk,
        };
        Some((read, Arc::clone(table)))
    }

    /// The plan of a query whose select list has nothing but aggregates.
    fn of_aggregates(
        session: &Session,
        (select, selection): (&ast::Select, Option<&ast::Expr>),
        names: Names<'_>,
        text: &str,
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
        let access = match Access::choose(table, &comparisons, pushes, Some(&read)) {
            Some(access) => access,
            None if Access::binds_any(table, &comparisons) || filter.is_some() => {
                return None;
            }
            None => {
                let mut access = Walk::in_order(table, &comparisons, &[order?])?.access;
                access.use_entries(table, pushes, Some(&read));
                access
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
            order: None,
            distinct: None,
            limit: None,
            offset: None,
            locking: None,
            walk: None,
        };
        Some((read, Arc::clone(table)))
    }

    pub(super) fn result_columns(&self) -> usize {
        self.columns.len()
    }

    /// `None`: the operands or the number of rows do not suit. `most`: rows that the session lets a query send.
    pub(super) fn prepare(
        &self,
        most: u64,
        table: &Table,
        parameters: &[Value],
    ) -> Result<Option<Ready>> {
        let (Some(bound), Some(limit), Some(offset)) = (
            self.access.bind(table, parameters),
            row_count(self.limit.as_ref(), parameters, u64::MAX),
            row_count(self.offset.as_ref(), parameters, 0),
        ) else {
            return Ok(None);
        };
        // A LIMIT of the statement's own comes before the session's.
        let limit = match self.limit {
            Some(_) => limit,
            None => most,
        };
        let ready = |bound, way| Ready {
            bound,
            limit,
            offset,
            way,
        };
        let wanted = limit.saturating_add(offset);
        if !self.is_long(table, &bound, (limit, offset))? {
            return Ok(Some(ready(bound, Way::Through)));
        }
        let may_end_early = self.limit.is_some()
            && wanted <= MAX_LIMITED_ROWS
            && self.locking.is_none()
            && self.distinct.is_none();
        Ok(match &self.walk {
            _ if !may_end_early => None,
            _ if self.order.is_none() => Some(ready(bound, Way::ForAWhile)),
            Some(walk) => {
                let bound = walk.access.bind(table, parameters);
                bound.map(|bound| ready(bound, Way::InOrder))
            }
            None => None,
        })
    }

    /// How rows are read, and from which end.
    pub(super) fn access_of(&self, way: Way) -> (&Access, Direction) {
        match (way, &self.walk) {
            (Way::InOrder, Some(walk)) => (&walk.access, walk.direction),
            _ => (&self.access, self.direction),
        }
    }

    /// Whether so many rows may lie under the keys that the vectorised path is better.
    fn is_long(
        &self,
        table: &Table,
        bound: &BoundAccess,
        (limit, offset): (u64, u64),
    ) -> Result<bool> {
        let is_short = matches!(bound.keys, Keys::Points(_))
            || matches!(self.shown, Shown::Aggregates { ends_at_first, .. } if ends_at_first);
        if is_short {
            return Ok(false);
        }
        let sends_all = matches!(self.shown, Shown::Columns(_))
            && self.order.is_none()
            && self.distinct.is_none();
        // Of the rows that are passed over nothing is shown.
        let is_limited = limit <= MAX_LIMITED_ROWS && limit.saturating_add(offset) <= MAX_ROWS;
        if sends_all && !self.access.has_tests() && is_limited {
            return Ok(false);
        }
        if self.access.is_whole() {
            return Ok(true);
        }
        Ok(bound.keys.estimated_rows(table, self.access.index)? > self.access.most_rows())
    }

    /// Whether rows wait in memory until all are found.
    pub(super) fn sorts(&self) -> bool {
        self.order.is_some() || self.distinct.is_some()
    }

    /// The keys of ORDER BY and of DISTINCT.
    pub(super) fn sort_keys(&self) -> (Option<&SortKey>, Option<&SortKey>) {
        (self.order.as_ref(), self.distinct.as_ref())
    }
}

/// What a WHERE says: comparisons of columns with operands, and the rest. `None` if a row alone does not decide.
pub(super) fn condition(
    selection: Option<&ast::Expr>,
    names: &Names<'_>,
) -> Option<(Vec<Comparison>, Option<Arc<Expressions>>)> {
    let Some(selection) = selection else {
        return Some((Vec::new(), None));
    };
    let (comparisons, others) = conditions(selection, names);
    Some((comparisons, filter_of(names, &others)?))
}

/// Columns that are read, with those of a filter.
fn with_columns_of(filter: &Option<Arc<Expressions>>, mut read: Vec<usize>) -> Vec<usize> {
    if let Some(filter) = filter {
        read.extend(filter.columns());
    }
    read
}

/// A query that is one SELECT, with its order, its limit and its locks.
pub(super) struct PlainQuery<'a> {
    pub(super) select: &'a ast::Select,
    pub(super) order_by: Option<&'a ast::OrderBy>,
    pub(super) limit_clause: Option<&'a ast::LimitClause>,
    pub(super) locks: &'a [ast::LockClause],
}

/// `None` if there is more to a query.
pub(super) fn plain_query(query: &ast::Query) -> Option<PlainQuery<'_>> {
    let ast::Query {
        with: None,
        body,
        order_by,
        limit_clause,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return None;
    };
    let ast::SetExpr::Select(select) = body.as_ref() else {
        return None;
    };
    pipe_operators.is_empty().then_some(PlainQuery {
        select,
        order_by: order_by.as_ref(),
        limit_clause: limit_clause.as_ref(),
        locks,
    })
}

/// A SELECT that has nothing but a list, FROM, WHERE and GROUP BY.
pub(super) struct PlainSelect<'a> {
    pub(super) distinct: bool,
    pub(super) selection: Option<&'a ast::Expr>,
    pub(super) group_by: &'a [ast::Expr],
}

/// `None` if there is more to a SELECT.
pub(super) fn plain_select(select: &ast::Select) -> Option<PlainSelect<'_>> {
    match select.having {
        None => plain_select_of_groups(select),
        Some(_) => None,
    }
}

/// The same where HAVING may be there, too.
pub(super) fn plain_select_of_groups(select: &ast::Select) -> Option<PlainSelect<'_>> {
    let ast::Select {
        select_token: _,
        optimizer_hints,
        distinct,
        select_modifiers: None,
        top: None,
        top_before_distinct: _,
        projection: _,
        exclude: None,
        into: None,
        from: _,
        lateral_views,
        prewhere: None,
        selection,
        connect_by,
        group_by: ast::GroupByExpr::Expressions(group_by, group_by_modifiers),
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify: None,
        window_before_qualify: _,
        value_table_mode: None,
        flavor: ast::SelectFlavor::Standard,
    } = select
    else {
        return None;
    };
    let is_plain = optimizer_hints.is_empty()
        && lateral_views.is_empty()
        && connect_by.is_empty()
        && group_by_modifiers.is_empty()
        && cluster_by.is_empty()
        && distribute_by.is_empty()
        && sort_by.is_empty()
        && named_window.is_empty();
    let distinct = match distinct {
        None | Some(ast::Distinct::All) => false,
        Some(ast::Distinct::Distinct) => true,
        Some(ast::Distinct::On(_)) => return None,
    };
    is_plain.then_some(PlainSelect {
        distinct,
        selection: selection.as_ref(),
        group_by,
    })
}

/// The key of DISTINCT: what is shown beyond the columns that rows are ordered by, which tell rows apart as well.
fn distinct_key(
    definition: &TableDefinition,
    items: &[Item],
    wanted: &[OrderItem],
) -> Option<SortKey> {
    // MySQL orders a DISTINCT by what it shows.
    let columns = items.iter().filter_map(Item::stored);
    let is_shown = |wanted: &OrderItem| columns.clone().any(|column| column == wanted.column);
    if !wanted.iter().all(is_shown) {
        return None;
    }
    let is_ordered = |column: &usize| wanted.iter().any(|wanted| wanted.column == *column);
    let rest = columns.filter(|column| !is_ordered(column));
    let rest = rest.map(|column| OrderItem {
        column,
        descending: false,
    });
    SortKey::new(definition, rest.collect())
}

fn order_items(
    order_by: &ast::OrderBy,
    select: &ast::Select,
    names: &Names<'_>,
) -> Option<Vec<OrderItem>> {
    let has_alias = select
        .projection
        .iter()
        .any(|item| matches!(item, ast::SelectItem::ExprWithAlias { .. }));
    let ast::OrderByKind::Expressions(items) = &order_by.kind else {
        return None;
    };
    // An alias hides a column.
    if has_alias || order_by.interpolate.is_some() {
        return None;
    }
    let item = |item: &ast::OrderByExpr| {
        let descending = descends(item)?;
        let column = names.column(&item.expr)?;
        Some(OrderItem { column, descending })
    };
    items.iter().map(item).collect()
}

impl Walk {
    /// `None` if no index has the order.
    fn in_order(table: &Table, comparisons: &[Comparison], wanted: &[OrderItem]) -> Option<Walk> {
        indexes(table).find_map(|index| {
            let access = Access::whole(index, comparisons);
            let direction = index_order(table, &access, wanted)?;
            Some(Walk { access, direction })
        })
    }
}

/// The direction in which the index gives the wanted order; `None` if it does not.
pub(super) fn index_order(
    table: &Table,
    access: &Access,
    wanted: &[OrderItem],
) -> Option<Direction> {
    let constant: Vec<usize> = access.constant_columns().collect();
    let mut wanted = wanted
        .iter()
        .filter(|item| !constant.contains(&item.column))
        .peekable();
    if access.is_single() || wanted.peek().is_none() {
        return Some(Direction::Forward);
    }
    // Keys of an IN list are ascending, but each of an index that is not unique stands for several entries of any order
    // behind it.
    if !access.is_one_range() && !access.is_unique {
        return None;
    }
    let descending = wanted.peek().is_some_and(|item| item.descending);
    let layout = access.layout(table);
    let mut parts = layout
        .parts
        .iter()
        .filter(|part| part.column.is_none_or(|column| !constant.contains(&column)));
    for item in wanted {
        let part = parts.next()?;
        let is_it = part.column == Some(item.column)
            && part.prefix_length.is_none()
            && item.descending == descending;
        if !is_it {
            return None;
        }
    }
    Some(match descending {
        true => Direction::Backward,
        false => Direction::Forward,
    })
}

pub(super) fn limit_and_offset(
    clause: &ast::LimitClause,
) -> Option<(Option<Operand>, Option<Operand>)> {
    match clause {
        ast::LimitClause::LimitOffset {
            limit: Some(limit),
            offset,
            limit_by,
        } if limit_by.is_empty() => {
            let offset = match offset {
                Some(offset) => Some(Operand::of(&offset.value)?),
                None => None,
            };
            Some((Some(Operand::of(limit)?), offset))
        }
        ast::LimitClause::OffsetCommaLimit { offset, limit } => {
            Some((Some(Operand::of(limit)?), Some(Operand::of(offset)?)))
        }
        _ => None,
    }
}

/// A number of rows; `None` if it is none.
pub(super) fn row_count(
    operand: Option<&Operand>,
    parameters: &[Value],
    default: u64,
) -> Option<u64> {
    let Some(operand) = operand else {
        return Some(default);
    };
    match operand.value(parameters) {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::UInt(number) => Some(*number),
        _ => None,
    }
}

/// A plan with its parameters.
pub(super) struct Ready {
    pub(super) bound: BoundAccess,
    pub(super) limit: u64,
    pub(super) offset: u64,
    pub(super) way: Way,
}

impl Ready {
    /// Rows that are looked for, at most: a sort needs all of them.
    pub(super) fn wanted(&self, read: &Read) -> u64 {
        match read.sorts() {
            true => u64::MAX,
            false => self.limit.saturating_add(self.offset),
        }
    }
}

/// How the rows of a plan are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Those under the keys, to the end or to the LIMIT.
    Through,
    /// The same, but it is abandoned if it takes too long.
    ForAWhile,
    /// All in the wanted order, until there are enough or it takes too long.
    InOrder,
}

/// A table opened to be read.
struct OpenTable<'t> {
    view: ReadView,
    _guard: BorrowedReadGuard<'t>,
}

impl Session {
    /// `None`: the table is not what the plan was made for, or the read takes locks.
    fn open_to_read<'t>(&mut self, table: &'t Table) -> Result<Option<OpenTable<'t>>> {
        if self.transactions.reads_lock() {
            return Ok(None);
        }
        self.keep_definition(table)?;
        let is_first = self.holds_no_table() && self.statement.view.is_none();
        let Some(guard) = self.borrow_for_read(table, is_first)? else {
            return Ok(None);
        };
        let view = self.read_view()?;
        table.check_view(&view)?;
        Ok(Some(OpenTable {
            view,
            _guard: guard,
        }))
    }

    /// A read whose operands are known, with what a client is told of its columns. `None`: the vectorised path has to
    /// do it.
    pub(super) fn ready_to_read<'r>(
        &mut self,
        read: &'r Read,
        table: &Table,
        (parameters, spelled): (&[Value], Spelled<'_>),
    ) -> Result<Option<(Ready, Shape<'r>)>> {
        let most = self.variables.sql_select_limit();
        let Some(mut ready) = read.prepare(most, table, parameters)? else {
            return Ok(None);
        };
        let Some(shape) = self.shape_of(read, parameters, spelled) else {
            return Ok(None);
        };
        let filtered = self.add_filter(&read.access, &mut ready.bound, parameters);
        Ok(filtered.map(|()| (ready, shape)))
    }

    /// How the columns of a result are described, and what computes some of them. `None`: the vectorised path has to
    /// do it.
    fn shape_of<'r>(
        &mut self,
        read: &'r Read,
        parameters: &[Value],
        spelled: Spelled<'_>,
    ) -> Option<Shape<'r>> {
        let Some(computed) = &read.computed else {
            return Some(Shape::Plain(&read.columns, &read.schema));
        };
        let list = (computed, (read.columns.as_slice(), &read.schema));
        let (evaluator, shown) = self.evaluator_of_list(list, parameters, spelled)?;
        Some(Shape::Computed(evaluator, shown))
    }

    /// False: the vectorised path has to do it.
    pub(super) fn run_direct_read(
        &mut self,
        read: &Read,
        table: &Arc<Table>,
        (parameters, spelled): (&[Value], Spelled<'_>),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        if !sink.takes_rows() {
            return Ok(false);
        }
        // First of all: without it the table's trees may be dropped while they are asked how many rows there are.
        let Some(open) = self.open_to_read(table)? else {
            return Ok(false);
        };
        let Some((ready, shape)) = self.ready_to_read(read, table, (parameters, spelled))? else {
            return Ok(false);
        };
        if ready.way != Way::Through {
            // What it has come to is not known before it ends.
            if self.statement.searched.is_some() {
                return Ok(false);
            }
            let (seen, counters) = ((table, &open.view), &self.handle.counters);
            let Some(mut rows) = self.walk_for_a_while(read, seen, &ready, counters)? else {
                return Ok(false);
            };
            let window = (ready.limit, ready.offset);
            return self.send_sorted((read, &shape), seen, &mut rows, window, sink);
        }
        let Ready {
            bound,
            limit,
            offset,
            ..
        } = ready;
        let wanted = match &read.shown {
            Shown::Aggregates { ends_at_first, .. } if *ends_at_first => 1,
            Shown::Columns(_) if !read.sorts() => limit.saturating_add(offset),
            _ => u64::MAX,
        };
        if wanted > 0
            && let Some(searched) = &mut self.statement.searched
        {
            searched.push(Searched {
                table: Arc::clone(table),
                search: DirectSearch {
                    index: read.access.index,
                    reads_rows: !read.access.entry.is_covering(),
                    is_filtered: bound.is_filtered() || !matches!(read.shown, Shown::Columns(_)),
                    limit: usize::try_from(wanted).ok().filter(|_| wanted < u64::MAX),
                    direction: read.direction,
                },
                ranges: bound.keys.ranges(),
                last: None,
            });
        }
        // The key of the row at which the read stops early, if somebody has to know.
        let mut last = self.statement.searched.is_some().then(Vec::new);
        let mut note_end = |key: &[u8], flow: ControlFlow<()>| {
            if let Some(last) = last.as_mut().filter(|_| flow.is_break()) {
                last.extend_from_slice(key);
            }
            flow
        };
        let reader = RowReader {
            table,
            view: &open.view,
            access: &read.access,
            handle: &self.handle,
            counters: &self.handle.counters,
            wanted,
        };
        let items = match &read.shown {
            Shown::Columns(items) => items,
            Shown::Aggregates {
                aggregates,
                counts_entries,
                ends_at_first,
            } => {
                let mut totals = Totals::new(aggregates);
                if *counts_entries {
                    totals.add_count(reader.count(&bound)?);
                } else {
                    // Rows that do not pass, and NULLs, may come before the first one.
                    let most = match ends_at_first {
                        true => MAX_WALKED_ROWS,
                        false => u64::MAX,
                    };
                    let is_complete =
                        reader.for_each_of(most, &bound, read.direction, |key, row| {
                            totals.add(&row)?;
                            let flow = match *ends_at_first && totals.has_value() {
                                true => ControlFlow::Break(()),
                                false => ControlFlow::Continue(()),
                            };
                            Ok(note_end(key, flow))
                        })?;
                    if !is_complete {
                        return Ok(false);
                    }
                    totals.check()?;
                }
                self.searched_to(last);
                sink.row_columns(&read.columns, &read.schema)?;
                let sent = limit.min(1);
                if sent > 0 {
                    sink.row(&read.columns, &totals)?;
                }
                return self.end_direct_read(sent, sink);
            }
        };
        if read.sorts() {
            let keys = read.sort_keys();
            let mut sorter = Sorter::default();
            let mut fits = true;
            reader.for_each(&bound, read.direction, |_, row| {
                fits = sorter.push(keys, (table, &open.view), &row)?;
                Ok(match fits {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })?;
            if !fits {
                return Ok(false);
            }
            let from = (table, &open.view);
            return self.send_sorted((read, &shape), from, &mut sorter, (limit, offset), sink);
        }
        let mut output = Output {
            shape: &shape,
            items,
            table,
            view: &open.view,
            sink: &mut *sink,
            long: Vec::new(),
            computed: Vec::new(),
            skip: offset,
            left: limit,
            sent: 0,
        };
        output.begin()?;
        if output.left > 0 {
            reader.for_each(&bound, read.direction, |key, row| {
                Ok(note_end(key, output.row(row)?))
            })?;
        }
        let sent = output.sent;
        self.searched_to(last);
        self.end_direct_read(sent, sink)
    }

    /// The search that was noted last has stopped at the row with this clustered key. None or an empty one: it has not.
    fn searched_to(&mut self, last: Option<Vec<u8>>) {
        let searched = self.statement.searched.as_mut();
        if let Some(searched) = searched.and_then(|searched| searched.last_mut()) {
            searched.last = last.filter(|last| !last.is_empty());
        }
    }

    /// The rows that a LIMIT wants, if they are found soon.
    fn walk_for_a_while(
        &self,
        read: &Read,
        (table, view): (&Arc<Table>, &ReadView),
        ready: &Ready,
        counters: &SessionCounters,
    ) -> Result<Option<Sorter>> {
        let (access, direction) = read.access_of(ready.way);
        let mut left = ready.limit.saturating_add(ready.offset);
        let reader = RowReader {
            table,
            view,
            access,
            handle: &self.handle,
            counters,
            wanted: left,
        };
        let mut rows = Sorter::default();
        let mut fits = true;
        if left == 0 {
            return Ok(Some(rows));
        }
        let is_complete =
            reader.for_each_of(MAX_WALKED_ROWS, &ready.bound, direction, |_, row| {
                fits = rows.push((None, None), (table, view), &row)?;
                left -= 1;
                Ok(match fits && left > 0 {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })?;
        Ok((is_complete && fits).then_some(rows))
    }

    /// How a plan without parameters would run; `None`: it would not.
    pub(super) fn would_read(
        &self,
        read: &Read,
        table: &Arc<Table>,
        parameters: &[Value],
    ) -> Result<Option<Way>> {
        let Some(_guard) = self.borrow_for_read(table, false)? else {
            return Ok(None);
        };
        if self.transactions.reads_lock() {
            return Ok(None);
        }
        let ready = read.prepare(self.variables.sql_select_limit(), table, parameters)?;
        let Some(ready) = ready else {
            return Ok(None);
        };
        if ready.way != Way::Through {
            // Whether it ends soon is told by trying, which counts as nothing.
            let view = self.transactions.current_view(self.engine.storage())?;
            table.check_view(&view)?;
            let counters = SessionCounters::default();
            let rows = self.walk_for_a_while(read, (table, &view), &ready, &counters)?;
            return Ok(rows.map(|_| ready.way));
        }
        Ok(Some(ready.way))
    }

    /// Sends rows that have waited in memory, in the order that the read wants.
    pub(super) fn send_sorted(
        &mut self,
        (read, shape): (&Read, &Shape<'_>),
        (table, view): (&Arc<Table>, &ReadView),
        rows: &mut Sorter,
        (limit, offset): (u64, u64),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let Shown::Columns(items) = &read.shown else {
            return Ok(false);
        };
        if read.sorts() {
            rows.sort(read.distinct.is_some());
        }
        let mut output = Output {
            shape,
            items,
            table,
            view,
            sink: &mut *sink,
            long: Vec::new(),
            computed: Vec::new(),
            skip: offset,
            left: limit,
            sent: 0,
        };
        output.begin()?;
        for row in rows.rows() {
            if output.left == 0 || output.row(table.view(row)?)?.is_break() {
                break;
            }
        }
        let sent = output.sent;
        self.end_direct_read(sent, sink)
    }

    pub(super) fn end_direct_read(&mut self, sent: u64, sink: &mut dyn ResultSink) -> Result<bool> {
        self.outcome.found_rows = sent;
        self.outcome.row_count = -1;
        self.findings.warn(&mut self.warnings);
        sink.end_of_rows(self.end_of_rows())?;
        Ok(true)
    }
}

/// The columns of a result.
pub(super) enum Shape<'r> {
    Plain(&'r [ColumnMeta], &'r SchemaRef),
    Computed(Evaluator, Arc<ShownColumns>),
}

impl Shape<'_> {
    fn columns(&self) -> &[ColumnMeta] {
        match self {
            Shape::Plain(columns, _) => columns,
            Shape::Computed(_, shown) => &shown.columns,
        }
    }

    fn schema(&self) -> &SchemaRef {
        match self {
            Shape::Plain(_, schema) => schema,
            Shape::Computed(_, shown) => &shown.schema,
        }
    }

    /// What is computed of a row.
    fn compute(
        &self,
        from: (&Table, &ReadView),
        row: &RowView<'_>,
        computed: &mut Vec<ArrayRef>,
    ) -> Result<()> {
        let Shape::Computed(evaluator, _) = self else {
            return Ok(());
        };
        computed.clear();
        let batch = evaluator.row(|_, column| value_of(from, row, column))?;
        for item in 0..evaluator.len() {
            computed.push(evaluator.array(item, &batch)?);
        }
        Ok(())
    }
}

/// Rows on their way to the sink.
struct Output<'a> {
    shape: &'a Shape<'a>,
    items: &'a [Item],
    table: &'a Arc<Table>,
    view: &'a ReadView,
    sink: &'a mut dyn ResultSink,
    long: Vec<Option<Vec<u8>>>,
    computed: Vec<ArrayRef>,
    /// OFFSET: rows still to be passed over.
    skip: u64,
    /// LIMIT: rows still to be sent.
    left: u64,
    sent: u64,
}

impl Output<'_> {
    fn begin(&mut self) -> Result<()> {
        self.sink
            .row_columns(self.shape.columns(), self.shape.schema())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<ControlFlow<()>> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        let from = (self.table.as_ref(), self.view);
        self.shape.compute(from, &row, &mut self.computed)?;
        let row = ResultRow::new(from, row, self.items, &mut self.long, &self.computed)?;
        self.sink.row(self.shape.columns(), &row)?;
        self.sent += 1;
        self.left -= 1;
        Ok(match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    }
}
