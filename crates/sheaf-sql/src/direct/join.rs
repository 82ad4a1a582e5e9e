//! SELECT from several tables, each row of one leading to few rows of the next by a key.
//!
//! ```text
//!   FROM orders, lines  WHERE o.id = ?  AND l.order = o.id
//!
//!   orders, by its key -> row -> the key of its lines -> rows -> ...       loops in loops, as a clerk would do it
//! ```
//!
//! The first table is read by constants and parameters. What the keys of another take from the tables before it are
//! parameters to it as well, which stand behind those of the statement ([`Operand::Outer`]) and change from row to row. A
//! plan is made where every table but the first can be read so by a complete unique key, or, of the tables before it there
//! being one row, by any.
//!
//! The result waits in memory until it is complete: so the plan can still find that it is too large for it, and leave it to
//! the vectorised path.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use sheaf_storage::{Direction, ReadView};
use sheaf_table::{Column, RowView, Table, Value};
use sqlparser::ast;

use super::access::{Access, Comparison, MAX_ROWS, comparisons};
use super::aggregate::{Aggregate, Totals, call_of};
use super::names::{Names, OneOf, column_of};
use super::operand::{Operand, is_comparable};
use super::order::{MAX_SORTED_BYTES, OrderItem, SortKey};
use super::read::{limit_and_offset, plain_select, row_count};
use super::row::{Item, RowReader, long_value};
use super::select_list::{self, is_function};
use crate::error::Result;
use crate::result::{Cell, CellRow, ColumnMeta, ResultSink};
use crate::session::Session;

/// Tables of a plan, at most.
const MAX_TABLES: usize = 8;

/// See the module's comment.
#[derive(Debug)]
pub(super) struct Join {
    columns: Vec<ColumnMeta>,
    schema: SchemaRef,
    shown: Shown,
    /// In the order in which they are read.
    tables: Vec<Joined>,
    limit: Option<Operand>,
    offset: Option<Operand>,
}

/// What the select list consists of; tables by their places in the order in which they are read.
#[derive(Debug)]
enum Shown {
    Columns(Vec<(usize, Item)>),
    Aggregates(Vec<(usize, JoinedAggregate)>),
}

#[derive(Debug)]
enum JoinedAggregate {
    Plain([Aggregate; 1]),
    /// COUNT(DISTINCT column).
    CountDistinct {
        column: usize,
        key: SortKey,
    },
}

/// A table of the join.
#[derive(Debug)]
struct Joined {
    table: Arc<Table>,
    access: Access,
    /// Columns whose values later tables take, with their places behind the statement's parameters.
    gives: Vec<(usize, usize)>,
}

/// `a.column = b.column`.
#[derive(Clone, Copy)]
struct Link {
    sides: [(usize, usize); 2],
}

impl Link {
    /// The column of `table`, and the other side.
    fn of(&self, table: usize) -> Option<(usize, (usize, usize))> {
        let [one, other] = self.sides;
        if one.0 == table {
            Some((one.1, other))
        } else {
            (other.0 == table).then_some((other.1, one))
        }
    }
}

/// What a WHERE says, by table of the FROM.
struct Conditions {
    own: Vec<Vec<Comparison>>,
    links: Vec<Link>,
}

/// The order in which tables are read, and how.
struct Order {
    steps: Vec<(usize, Access)>,
    /// Values that one table takes from another, by place.
    slots: Vec<(usize, usize)>,
}

impl Join {
    /// The plan of a query; `None` if it is not a join of this kind. `text` is what was parsed.
    pub(super) fn compile(session: &Session, query: &ast::Query, text: &str) -> Option<Join> {
        let ast::Query {
            with: None,
            body,
            order_by: None,
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
        if !locks.is_empty() || !pipe_operators.is_empty() {
            return None;
        }
        let (false, selection) = plain_select(select)? else {
            return None;
        };
        let (names, mut conjuncts) = tables_of(session, &select.from)?;
        conjuncts.push(selection);
        let conditions = Conditions::of(&conjuncts, &names)?;
        let Order { steps, slots } = conditions.order(&names)?;
        let place = |table: usize| steps.iter().position(|(step, _)| *step == table);
        let (shown, columns, fields) = match select.projection.iter().any(is_function) {
            true if limit_clause.is_some() => return None,
            true => {
                let make = |expr: &ast::Expr| aggregate_of(expr, &names);
                let list = select_list::computed(session, (select, text), make)?;
                let items = list.items.into_iter();
                let items = items.map(|(table, item)| Some((place(table)?, item)));
                let shown = Shown::Aggregates(items.collect::<Option<_>>()?);
                (shown, list.columns, list.fields)
            }
            false => {
                let list = select_list::columns(session, select, &names)?;
                let items = list.items.into_iter();
                let items = items.map(|(table, item)| Some((place(table)?, item)));
                let shown = Shown::Columns(items.collect::<Option<_>>()?);
                (shown, list.columns, list.fields)
            }
        };
        let (limit, offset) = match limit_clause {
            Some(clause) => limit_and_offset(clause)?,
            None => (None, None),
        };
        let given = |table: usize| {
            let slots = slots.iter().enumerate();
            let own = slots.filter(move |(_, (from, _))| *from == table);
            own.map(|(slot, (_, column))| (*column, slot)).collect()
        };
        let tables = steps.into_iter().map(|(table, access)| Joined {
            table: Arc::clone(&names[table].table),
            access,
            gives: given(table),
        });
        Some(Join {
            columns,
            schema: Arc::new(Schema::new(fields)),
            shown,
            tables: tables.collect(),
            limit,
            offset,
        })
    }

    /// Whether all tables are what the plan was made for.
    pub(super) fn is_current(&self) -> bool {
        self.tables.iter().all(|joined| joined.table.is_current())
    }
}

/// The tables of a FROM with inner joins only, and the conditions of the joins.
fn tables_of<'a>(
    session: &Session,
    from: &'a [ast::TableWithJoins],
) -> Option<(Vec<Names<'a>>, Vec<&'a ast::Expr>)> {
    let mut names = Vec::new();
    let mut conditions = Vec::new();
    for part in from {
        names.push(Names::of_factor(session, &part.relation)?);
        for join in &part.joins {
            match &join.join_operator {
                ast::JoinOperator::Join(ast::JoinConstraint::On(condition))
                | ast::JoinOperator::Inner(ast::JoinConstraint::On(condition)) => {
                    conditions.push(condition);
                }
                ast::JoinOperator::CrossJoin(ast::JoinConstraint::None) => {}
                _ => return None,
            }
            names.push(Names::of_factor(session, &join.relation)?);
        }
        if names.len() > MAX_TABLES {
            return None;
        }
    }
    let mut aliases = BTreeSet::new();
    let differ = names.iter().all(|names| aliases.insert(names.alias));
    (differ && names.len() > 1).then_some((names, conditions))
}

impl Conditions {
    fn of(conjuncts: &[&ast::Expr], names: &[Names<'_>]) -> Option<Conditions> {
        let mut conditions = Conditions {
            own: vec![Vec::new(); names.len()],
            links: Vec::new(),
        };
        for conjunct in conjuncts {
            conditions.add(conjunct, names)?;
        }
        Some(conditions)
    }

    fn add(&mut self, condition: &ast::Expr, names: &[Names<'_>]) -> Option<()> {
        match condition {
            ast::Expr::Nested(inner) => return self.add(inner, names),
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::And,
                right,
            } => {
                self.add(left, names)?;
                return self.add(right, names);
            }
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::Eq,
                right,
            } => {
                let sides = (column_of(names, left), column_of(names, right));
                if let (Some(one), Some(other)) = sides {
                    let column = |(table, column): (usize, usize)| {
                        &names[table].definition().columns[column]
                    };
                    let sides = [one, other];
                    let is_link = one.0 != other.0 && are_comparable(column(one), column(other));
                    self.links.extend(is_link.then_some(Link { sides }));
                    return is_link.then_some(());
                }
            }
            _ => {}
        }
        let own = (0..names.len()).find_map(|table| {
            let found = comparisons(condition, &OneOf { names, table })?;
            Some((table, found))
        });
        let (table, found) = own?;
        self.own[table].extend(found);
        Some(())
    }

    /// The first order that needs no optimizer.
    fn order(&self, names: &[Names<'_>]) -> Option<Order> {
        (0..names.len()).find_map(|first| self.order_from(first, names))
    }

    /// The order that begins with `first` and goes on to tables that have one row for each row so far; several rows may
    /// come from one table only.
    fn order_from(&self, first: usize, names: &[Names<'_>]) -> Option<Order> {
        let mut order = Order {
            steps: Vec::new(),
            slots: Vec::new(),
        };
        let access = Access::choose(&names[first].table, self.own[first].clone())?;
        let mut has_one_row = access.is_single();
        order.steps.push((first, access));
        while order.steps.len() < names.len() {
            let is_read =
                |table: usize, order: &Order| order.steps.iter().any(|(step, _)| *step == table);
            let mut next = None;
            for table in (0..names.len()).filter(|table| !is_read(*table, &order)) {
                let mut slots = order.slots.clone();
                let Some(access) = self.access_of(table, &order, &mut slots, names) else {
                    continue;
                };
                let is_single = access.is_single();
                if is_single || has_one_row && next.is_none() {
                    next = Some((table, access, slots));
                }
                if is_single {
                    break;
                }
            }
            let (table, access, slots) = next?;
            has_one_row &= access.is_single();
            order.slots = slots;
            order.steps.push((table, access));
        }
        Some(order)
    }

    /// How a table is read once those of `order` are.
    fn access_of(
        &self,
        table: usize,
        order: &Order,
        slots: &mut Vec<(usize, usize)>,
        names: &[Names<'_>],
    ) -> Option<Access> {
        let mut conditions = self.own[table].clone();
        for link in &self.links {
            let Some((column, other)) = link.of(table) else {
                continue;
            };
            if !order.steps.iter().any(|(step, _)| *step == other.0) {
                continue;
            }
            let slot = match slots.iter().position(|slot| *slot == other) {
                Some(slot) => slot,
                None => {
                    slots.push(other);
                    slots.len() - 1
                }
            };
            conditions.push(Comparison::equal(column, Operand::Outer(slot)));
        }
        Access::choose(&names[table].table, conditions)
    }
}

/// Whether MySQL compares two columns as either of them is ordered.
fn are_comparable(one: &Column, other: &Column) -> bool {
    let (one, other) = (&one.ty, &other.ty);
    let is_same = one == other || one.is_character() && one.collation() == other.collation();
    is_comparable(one)
        && is_comparable(other)
        && (one.is_integer() && other.is_integer()
            || is_same && one.is_character() == other.is_character())
}

/// An aggregate and its table.
fn aggregate_of(
    expr: &ast::Expr,
    names: &[Names<'_>],
) -> Option<((usize, JoinedAggregate), Field)> {
    let call = call_of(expr)?;
    if call.is_distinct {
        let ast::FunctionArgExpr::Expr(argument) = call.argument else {
            return None;
        };
        let (table, column) = column_of(names, argument)?;
        let wanted = OrderItem {
            column,
            descending: false,
        };
        let key = SortKey::new(names[table].definition(), vec![wanted])?;
        let is_count = call.function.eq_ignore_ascii_case("count");
        let field = Field::new("", DataType::Int64, false);
        return is_count.then_some((
            (table, JoinedAggregate::CountDistinct { column, key }),
            field,
        ));
    }
    (0..names.len()).find_map(|table| {
        let aggregate = Aggregate::of(expr, &OneOf { names, table })?;
        let field = aggregate.field(names[table].definition());
        Some(((table, JoinedAggregate::Plain([aggregate])), field))
    })
}

/// Joined rows as they are found.
enum Found<'a> {
    Rows {
        bytes: Vec<u8>,
        /// For each row where the rows of its tables end.
        ends: Vec<usize>,
    },
    Totals(Vec<Total<'a>>),
}

enum Total<'a> {
    Plain(Totals<'a>),
    CountDistinct(BTreeSet<Vec<u8>>),
}

/// How the reading went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    GoOn,
    /// There are rows enough.
    Enough,
    /// The vectorised path has to do it.
    NotDirect,
}

/// A join while it is read.
struct Walk<'a> {
    join: &'a Join,
    session: &'a Session,
    view: &'a ReadView,
    found: Found<'a>,
    /// The statement's parameters, and behind them what the tables give each other.
    parameters: Vec<Value>,
    /// The rows that the tables stand at, by place.
    rows: Vec<Vec<u8>>,
    /// Joined rows found, and those wanted.
    number: u64,
    wanted: u64,
    /// Rows of all tables that were looked at.
    examined: u64,
}

impl Walk<'_> {
    fn read(&mut self, place: usize) -> Result<Progress> {
        let join = self.join;
        let Some(joined) = join.tables.get(place) else {
            return self.take();
        };
        let Some(bound) = joined.access.bind(&joined.table, &self.parameters) else {
            return Ok(Progress::NotDirect);
        };
        let is_short = bound
            .keys
            .estimated_rows(&joined.table, joined.access.index)?
            <= MAX_ROWS;
        if !is_short {
            return Ok(Progress::NotDirect);
        }
        let reader = RowReader {
            table: &joined.table,
            view: self.view,
            index: joined.access.index,
            handle: &self.session.handle,
        };
        let mut progress = Progress::GoOn;
        reader.for_each(&bound, Direction::Forward, |_, row| {
            self.examined += 1;
            progress = match self.examined > MAX_ROWS {
                true => Progress::NotDirect,
                false => self.descend(place, joined, &row)?,
            };
            Ok(match progress {
                Progress::GoOn => ControlFlow::Continue(()),
                Progress::Enough | Progress::NotDirect => ControlFlow::Break(()),
            })
        })?;
        Ok(progress)
    }

    /// Reads what belongs to a row of the table at `place`.
    fn descend(&mut self, place: usize, joined: &Joined, row: &RowView<'_>) -> Result<Progress> {
        let end = self.parameters.len();
        for (column, slot) in &joined.gives {
            let ty = &joined.table.definition.columns[*column].ty;
            self.parameters[end - 1 - slot] =
                match long_value(&joined.table, self.view, row, *column)? {
                    Some(bytes) => sheaf_table::ValueRef::Bytes(&bytes).to_value(ty),
                    None => row.value(*column, ty),
                };
        }
        let kept = &mut self.rows[place];
        kept.clear();
        kept.extend_from_slice(row.bytes());
        self.read(place + 1)
    }

    /// Takes a joined row.
    fn take(&mut self) -> Result<Progress> {
        self.number += 1;
        match &mut self.found {
            Found::Rows { bytes, ends } => {
                for row in &self.rows {
                    bytes.extend_from_slice(row);
                    ends.push(bytes.len());
                }
                if bytes.len() + size_of_val(ends.as_slice()) > MAX_SORTED_BYTES {
                    return Ok(Progress::NotDirect);
                }
            }
            Found::Totals(totals) => {
                let Shown::Aggregates(aggregates) = &self.join.shown else {
                    return Ok(Progress::NotDirect);
                };
                for ((place, aggregate), total) in aggregates.iter().zip(totals) {
                    let table = &self.join.tables[*place].table;
                    let row = table.view(&self.rows[*place])?;
                    match (total, aggregate) {
                        (
                            Total::CountDistinct(seen),
                            JoinedAggregate::CountDistinct { column, key },
                        ) if !row.is_null(*column) => {
                            let mut value = Vec::new();
                            key.append(table, self.view, &row, &mut value)?;
                            seen.insert(value);
                        }
                        (Total::Plain(totals), _) => totals.add(&row)?,
                        _ => {}
                    }
                }
            }
        }
        Ok(match self.number < self.wanted {
            true => Progress::GoOn,
            false => Progress::Enough,
        })
    }
}

/// A joined row on its way to the client.
struct JoinedRow<'a> {
    rows: &'a [RowView<'a>],
    items: &'a [(usize, Item)],
    /// For each item its value, if the row only refers to it.
    long: &'a [Option<Vec<u8>>],
}

impl CellRow for JoinedRow<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        match self.long.get(column) {
            Some(Some(bytes)) => Cell::Bytes(bytes),
            _ => {
                let (place, item) = &self.items[column];
                item.cell(&self.rows[*place])
            }
        }
    }
}

impl CellRow for Vec<Total<'_>> {
    fn cell(&self, column: usize) -> Cell<'_> {
        match &self[column] {
            Total::Plain(totals) => totals.cell(0),
            Total::CountDistinct(seen) => Cell::Signed(seen.len() as i64),
        }
    }
}

impl Session {
    /// False: the vectorised path has to do it.
    pub(super) fn run_direct_join(
        &mut self,
        join: &Join,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        if !sink.takes_rows() || self.reads_lock() {
            return Ok(false);
        }
        let mut guards = Vec::with_capacity(join.tables.len());
        for joined in &join.tables {
            self.keep_definition(&joined.table)?;
            match self.borrow_for_read(&joined.table)? {
                Some(guard) => guards.push(guard),
                None => return Ok(false),
            }
        }
        let view = self.read_view()?;
        for joined in &join.tables {
            joined.table.check_view(&view)?;
        }
        let (Some(limit), Some(offset)) = (
            row_count(
                join.limit.as_ref(),
                parameters,
                self.variables.sql_select_limit(),
            ),
            row_count(join.offset.as_ref(), parameters, 0),
        ) else {
            return Ok(false);
        };
        let slots: usize = join.tables.iter().map(|joined| joined.gives.len()).sum();
        let mut all = parameters.to_vec();
        all.resize(parameters.len() + slots, Value::Null);
        let mut walk = Walk {
            join,
            session: self,
            view: &view,
            found: join.nothing_found(),
            parameters: all,
            rows: vec![Vec::new(); join.tables.len()],
            number: 0,
            wanted: match join.shown {
                Shown::Columns(_) => limit.saturating_add(offset),
                Shown::Aggregates(_) => u64::MAX,
            },
            examined: 0,
        };
        if walk.wanted > 0 && walk.read(0)? == Progress::NotDirect {
            return Ok(false);
        }
        let found = walk.found;
        let sent = join.send(&found, &view, (limit, offset), sink)?;
        self.end_direct_read(sent, sink)
    }
}

impl Join {
    fn nothing_found(&self) -> Found<'_> {
        match &self.shown {
            Shown::Columns(_) => Found::Rows {
                bytes: Vec::new(),
                ends: Vec::new(),
            },
            Shown::Aggregates(aggregates) => {
                let totals = aggregates.iter().map(|(_, aggregate)| match aggregate {
                    JoinedAggregate::Plain(aggregate) => Total::Plain(Totals::new(aggregate)),
                    JoinedAggregate::CountDistinct { .. } => Total::CountDistinct(BTreeSet::new()),
                });
                Found::Totals(totals.collect())
            }
        }
    }

    /// Sends what was found; returns the number of rows.
    fn send(
        &self,
        found: &Found<'_>,
        view: &ReadView,
        (limit, offset): (u64, u64),
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        let (bytes, ends) = match found {
            Found::Rows { bytes, ends } => (bytes, ends),
            Found::Totals(totals) => {
                for total in totals {
                    if let Total::Plain(totals) = total {
                        totals.check()?;
                    }
                }
                sink.row_columns(&self.columns, &self.schema)?;
                let sent = limit.min(1);
                if sent > 0 {
                    sink.row(&self.columns, totals)?;
                }
                return Ok(sent);
            }
        };
        let Shown::Columns(items) = &self.shown else {
            return Ok(0);
        };
        sink.row_columns(&self.columns, &self.schema)?;
        let (mut start, mut sent) = (0, 0);
        let mut long: Vec<Option<Vec<u8>>> = Vec::new();
        for (number, ends) in (0u64..).zip(ends.chunks_exact(self.tables.len())) {
            let mut rows = Vec::with_capacity(ends.len());
            for (joined, end) in self.tables.iter().zip(ends) {
                rows.push(joined.table.view(&bytes[start..*end])?);
                start = *end;
            }
            if number < offset {
                continue;
            }
            if sent == limit {
                break;
            }
            long.clear();
            for (place, item) in items {
                let table = &self.tables[*place].table;
                long.push(long_value(table, view, &rows[*place], item.column)?);
            }
            let row = JoinedRow {
                rows: &rows,
                items,
                long: &long,
            };
            sink.row(&self.columns, &row)?;
            sent += 1;
        }
        Ok(sent)
    }
}
