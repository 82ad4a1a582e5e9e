//! SELECT from several tables, each row of one leading to few rows of the next by a key; and SELECT with groups, from
//! one table or several.
//!
//! ```text
//!   FROM orders, lines  WHERE o.id = ?  AND l.order = o.id
//!
//!   orders, by its key -> row -> the key of its lines -> rows -> ...       loops in loops, as a clerk would do it
//! ```
//!
//! The first table is read by constants and parameters. What the keys of another take from the tables before it are
//! parameters to it as well. They stand behind those of the statement ([`Operand::Outer`]) and change from row to row.
//! A plan is made where every table but the first can be read so by a complete unique key. If the tables before it are
//! read by unique keys, any key will do.
//!
//! The right side of a LEFT JOIN is read like that, too: where it has no row, the joined row goes on without one. If
//! the WHERE compares one of its columns, which NULL does not pass, it is an inner join.
//!
//! The result waits in memory until it is complete ([`super::joined_result`]): so the plan can still find that it is
//! too large for it, and leave it to the vectorised path. How the tables are gone through is told in
//! [`super::join_walk`].

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use sheaf_table::{Column, Table};
use sqlparser::ast;

use super::access::{Access, Comparison, comparisons};
use super::aggregate::{Aggregate, call_of};
use super::joined_result::{
    GroupItem, JoinedAggregate, JoinedFunction, JoinedKey, KeyColumn, Shown,
};
use super::names::{Names, OneOf, column_of};
use super::operand::{Operand, is_comparable};
use super::order::{OrderItem, SortKey, descends};
use super::read::{PlainQuery, PlainSelect, limit_and_offset, plain_query, plain_select};
use super::select_list::{self, GroupedItem, is_function};
use crate::session::Session;
use crate::session::result::ColumnMeta;

/// Tables of a plan, at most.
const MAX_TABLES: usize = 8;

/// See the module's comment.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) columns: Vec<ColumnMeta>,
    pub(super) schema: SchemaRef,
    pub(super) shown: Shown,
    /// In the order in which they are read.
    pub(super) tables: Vec<Joined>,
    /// ORDER BY, of the rows or groups that are shown.
    pub(super) order: Option<JoinedKey>,
    pub(super) limit: Option<Operand>,
    pub(super) offset: Option<Operand>,
}

/// A table of the join.
#[derive(Debug)]
pub(super) struct Joined {
    /// Its place in the FROM.
    pub(super) from: usize,
    pub(super) table: Arc<Table>,
    pub(super) access: Access,
    /// Uses of other indexes: what reads fewest rows by estimate is taken when it runs.
    pub(super) others: Vec<Access>,
    /// A row without a match here goes on without one.
    pub(super) is_outer: bool,
    /// Columns whose values later tables take, with their places behind the statement's parameters.
    pub(super) gives: Vec<(usize, usize)>,
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

/// Tables of a FROM that can be read by keys, one after the other.
pub(super) struct Source<'a> {
    pub(super) names: Vec<Names<'a>>,
    conditions: Conditions<'a>,
    steps: Vec<(usize, Access)>,
    slots: Vec<(usize, usize)>,
}

/// What a WHERE says, by table of the FROM.
struct Conditions<'a> {
    own: Vec<Vec<Comparison>>,
    links: Vec<Link>,
    /// Conjuncts that no key and no test of a row says.
    rest: Vec<&'a ast::Expr>,
    /// Tables whose rows may be missing.
    outer: Vec<bool>,
}

/// What a FROM consists of.
struct From<'a> {
    names: Vec<Names<'a>>,
    /// Of inner joins.
    conditions: Vec<&'a ast::Expr>,
    /// Of LEFT JOINs, with their right sides.
    outer: Vec<(usize, &'a ast::Expr)>,
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
        let PlainQuery {
            select,
            order_by,
            limit_clause,
            locks,
        } = plain_query(query)?;
        if !locks.is_empty() {
            return None;
        }
        let plain = plain_select(select)?;
        let source = Source::of(session, &select.from, Some(plain.selection?))?;
        if source.names.len() == 1 && plain.group_by.is_empty() || !source.rest().is_empty() {
            return None;
        }
        let Source {
            names, conditions, ..
        } = &source;
        let place = |table: usize| source.place(table);
        let ordered = match order_by {
            Some(order_by) => ordered_columns(order_by, select, names)?,
            None => Vec::new(),
        };
        let list = List::of(session, (select, text), &plain, (names, &ordered), place)?;
        if matches!(list.shown, Shown::Aggregates(_))
            && (limit_clause.is_some() || order_by.is_some())
        {
            return None;
        }
        // The keys of rows have no place for a row that is missing.
        let is_missing = |(table, ..): &KeyColumn| conditions.outer[*table];
        if ordered.iter().any(is_missing)
            || outer_is_needed(&list.shown, |place| {
                source
                    .steps
                    .get(place)
                    .is_some_and(|(table, _)| conditions.outer[*table])
            })
        {
            return None;
        }
        let order = match ordered.as_slice() {
            [] => None,
            columns => Some(JoinedKey::new(columns, names, place)?),
        };
        let (limit, offset) = match limit_clause {
            Some(clause) => limit_and_offset(clause)?,
            None => (None, None),
        };
        let mut read = list.shown.columns();
        read.extend(order.iter().flat_map(JoinedKey::columns));
        let tables = source.into_tables(session, &read);
        Some(Join {
            tables,
            columns: list.columns,
            schema: Arc::new(Schema::new(list.fields)),
            shown: list.shown,
            order,
            limit,
            offset,
        })
    }

    /// The rows alone, with these columns by their tables' places.
    pub(super) fn of_rows(session: &Session, source: Source<'_>, read: &[(usize, usize)]) -> Join {
        Join {
            columns: Vec::new(),
            schema: Arc::new(Schema::empty()),
            shown: Shown::Columns(Vec::new()),
            tables: source.into_tables(session, read),
            order: None,
            limit: None,
            offset: None,
        }
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().map(|joined| joined.table.as_ref())
    }

    /// Whether all tables are what the plan was made for.
    pub(super) fn is_current(&self) -> bool {
        self.tables.iter().all(|joined| joined.table.is_current())
    }
}

impl<'a> Source<'a> {
    /// `None` if its tables cannot be read by keys, one after the other.
    pub(super) fn of(
        session: &Session,
        from: &'a [ast::TableWithJoins],
        selection: Option<&'a ast::Expr>,
    ) -> Option<Source<'a>> {
        let From {
            names,
            conditions: mut conjuncts,
            outer,
        } = tables_of(session, from)?;
        conjuncts.extend(selection);
        let conditions = Conditions::of(&conjuncts, &outer, &names)?;
        let Order { steps, slots } = conditions.order(&names)?;
        Some(Source {
            names,
            conditions,
            steps,
            slots,
        })
    }

    /// One row without columns.
    pub(super) fn of_nothing(selection: Option<&'a ast::Expr>) -> Source<'a> {
        let conditions = Conditions {
            own: Vec::new(),
            links: Vec::new(),
            rest: selection.into_iter().collect(),
            outer: Vec::new(),
        };
        Source {
            names: Vec::new(),
            conditions,
            steps: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// The conjuncts of the WHERE, and of inner joins, that the rows are still to be tested by.
    pub(super) fn rest(&self) -> &[&'a ast::Expr] {
        &self.conditions.rest
    }

    /// Where a table of the FROM is read.
    pub(super) fn place(&self, table: usize) -> Option<usize> {
        self.steps.iter().position(|(step, _)| *step == table)
    }

    /// The tables in the order in which they are read. `read`: the columns that are, by their tables' places.
    fn into_tables(self, session: &Session, read: &[(usize, usize)]) -> Vec<Joined> {
        let pushes = session.variables.pushes_index_conditions();
        let joined = |(place, (table, access)): (usize, (usize, Access))| {
            let slots = self.slots.iter().enumerate();
            let own = slots.filter(|(_, (from, _))| *from == table);
            let mut joined = Joined {
                from: table,
                table: Arc::clone(&self.names[table].table),
                access,
                others: Vec::new(),
                is_outer: self.conditions.outer[table],
                gives: own.map(|(slot, (_, column))| (*column, slot)).collect(),
            };
            let read = read.iter().filter(|(of, _)| *of == place);
            let read = read.map(|(_, column)| *column);
            let given = joined.gives.iter().map(|(column, _)| *column);
            let read: Vec<usize> = read.chain(given).collect();
            match joined.access.again(&joined.table, pushes, &read) {
                Some(again) => joined.access = again,
                None => {
                    let mut all = joined.access.candidates_again(&joined.table, pushes, &read);
                    if let Some(last) = all.pop() {
                        joined.access = last;
                    }
                    joined.others = all;
                }
            }
            joined
        };
        self.steps.into_iter().enumerate().map(joined).collect()
    }
}

/// Whether rows are aggregated or grouped that may be missing: the table at a place `may_miss` them.
fn outer_is_needed(shown: &Shown, may_miss: impl Fn(usize) -> bool) -> bool {
    match shown {
        Shown::Columns(_) => false,
        Shown::Aggregates(aggregates) => {
            let mut aggregates = aggregates.iter();
            aggregates.any(|aggregate| may_miss(aggregate.place))
        }
        // The row that a group shows is one of all tables.
        Shown::Groups { .. } => (0..MAX_TABLES).any(may_miss),
    }
}

/// What a query shows.
struct List {
    shown: Shown,
    columns: Vec<ColumnMeta>,
    fields: Vec<Field>,
}

impl List {
    /// `ordered`: the columns of ORDER BY; `place`: where a table of the FROM is read.
    fn of(
        session: &Session,
        (select, text): (&ast::Select, &str),
        plain: &PlainSelect<'_>,
        (names, ordered): (&[Names<'_>], &[KeyColumn]),
        place: impl Fn(usize) -> Option<usize> + Copy,
    ) -> Option<List> {
        let aggregate = |expr: &ast::Expr| {
            let ((table, function), field) = aggregate_of(expr, names)?;
            let place = place(table)?;
            Some((JoinedAggregate { place, function }, field))
        };
        let has_aggregates = select.projection.iter().any(is_function);
        if !plain.group_by.is_empty() || plain.distinct {
            if plain.distinct && (has_aggregates || !plain.group_by.is_empty()) {
                return None;
            }
            let list = select_list::grouped(session, (select, text), names, aggregate)?;
            let shown = grouped(select, plain, list.items, (names, ordered), place)?;
            return Some(List {
                shown,
                columns: list.columns,
                fields: list.fields,
            });
        }
        if has_aggregates {
            let list = select_list::computed(session, (select, text), aggregate)?;
            return Some(List {
                shown: Shown::Aggregates(list.items),
                columns: list.columns,
                fields: list.fields,
            });
        }
        let list = select_list::columns(session, select, names)?;
        let items = list.items.into_iter();
        let items = items.map(|(table, item)| Some((place(table)?, item)));
        Some(List {
            shown: Shown::Columns(items.collect::<Option<_>>()?),
            columns: list.columns,
            fields: list.fields,
        })
    }
}

/// The groups of a query, or of its DISTINCT.
fn grouped(
    select: &ast::Select,
    plain: &PlainSelect<'_>,
    items: Vec<GroupedItem<JoinedAggregate>>,
    (names, ordered): (&[Names<'_>], &[KeyColumn]),
    place: impl Fn(usize) -> Option<usize>,
) -> Option<Shown> {
    let mut by: Vec<KeyColumn> = Vec::new();
    for expr in plain.group_by {
        let (table, column) = unaliased(expr, select, names)?;
        by.push((table, column, false));
    }
    let (mut shown, mut aggregates) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            GroupedItem::Column((table, item)) => {
                let is_key = |key: &KeyColumn| (key.0, key.1) == (table, item.column);
                match (by.iter().any(is_key), plain.distinct) {
                    (true, _) => {}
                    (false, true) => by.push((table, item.column, false)),
                    (false, false) => return None,
                }
                shown.push(GroupItem::Column(place(table)?, item));
            }
            GroupedItem::Aggregate(aggregate) => {
                shown.push(GroupItem::Aggregate(aggregates.len()));
                aggregates.push(aggregate);
            }
        }
    }
    // What else groups were ordered by would be that of any of their rows.
    let is_key =
        |(table, column, _): &KeyColumn| by.iter().any(|key| (key.0, key.1) == (*table, *column));
    ordered.iter().all(is_key).then_some(())?;
    Some(Shown::Groups {
        by: JoinedKey::new(&by, names, place)?,
        items: shown,
        aggregates,
    })
}

/// The columns of ORDER BY.
fn ordered_columns(
    order_by: &ast::OrderBy,
    select: &ast::Select,
    names: &[Names<'_>],
) -> Option<Vec<KeyColumn>> {
    let ast::OrderByKind::Expressions(items) = &order_by.kind else {
        return None;
    };
    if order_by.interpolate.is_some() {
        return None;
    }
    let item = |item: &ast::OrderByExpr| {
        let descending = descends(item)?;
        let (table, column) = unaliased(&item.expr, select, names)?;
        Some((table, column, descending))
    };
    items.iter().map(item).collect()
}

/// The column that an expression is. An alias of the select list hides columns of the same name.
fn unaliased(
    expr: &ast::Expr,
    select: &ast::Select,
    names: &[Names<'_>],
) -> Option<(usize, usize)> {
    if let ast::Expr::Nested(inner) = expr {
        return unaliased(inner, select, names);
    }
    if let ast::Expr::Identifier(name) = expr {
        let is_hidden = |item: &ast::SelectItem| {
            matches!(item, ast::SelectItem::ExprWithAlias { alias, .. }
                if alias.value.eq_ignore_ascii_case(&name.value))
        };
        if select.projection.iter().any(is_hidden) {
            return None;
        }
    }
    column_of(names, expr)
}

/// The tables of a FROM with inner joins and LEFT JOINs only, and the conditions of the joins.
fn tables_of<'a>(session: &Session, from: &'a [ast::TableWithJoins]) -> Option<From<'a>> {
    let mut names: Vec<Names<'a>> = Vec::new();
    let mut conditions = Vec::new();
    let mut outer = Vec::new();
    for part in from {
        names.push(Names::of_factor(session, &part.relation)?);
        for join in &part.joins {
            match &join.join_operator {
                ast::JoinOperator::Join(ast::JoinConstraint::On(condition))
                | ast::JoinOperator::Inner(ast::JoinConstraint::On(condition)) => {
                    conditions.push(condition);
                }
                ast::JoinOperator::CrossJoin(ast::JoinConstraint::None) => {}
                ast::JoinOperator::Left(ast::JoinConstraint::On(condition))
                | ast::JoinOperator::LeftOuter(ast::JoinConstraint::On(condition)) => {
                    outer.push((names.len(), condition));
                    names.push(Names {
                        is_outer: true,
                        ..Names::of_factor(session, &join.relation)?
                    });
                    continue;
                }
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
    (differ && !names.is_empty()).then_some(From {
        names,
        conditions,
        outer,
    })
}

impl<'a> Conditions<'a> {
    fn of(
        conjuncts: &[&'a ast::Expr],
        outer: &[(usize, &'a ast::Expr)],
        names: &[Names<'_>],
    ) -> Option<Conditions<'a>> {
        let nothing = || Conditions {
            own: vec![Vec::new(); names.len()],
            links: Vec::new(),
            rest: Vec::new(),
            outer: vec![false; names.len()],
        };
        let mut conditions = nothing();
        for conjunct in conjuncts {
            conditions.add(conjunct, names);
        }
        let mut left = Vec::with_capacity(outer.len());
        for (table, condition) in outer {
            let mut own = nothing();
            own.add(condition, names);
            (own.rest.is_empty() && own.is_of(*table)).then_some(())?;
            left.push((*table, own));
        }
        // Nothing that is compared is NULL: a table of which the condition says something has a row.
        while let Some(at) = left
            .iter()
            .position(|(table, _)| conditions.concern(*table))
        {
            let (_, inner) = left.swap_remove(at);
            conditions.take(inner);
        }
        for (table, own) in left {
            conditions.take(own);
            conditions.outer[table] = true;
        }
        Some(conditions)
    }

    /// Whether these are conditions of a LEFT JOIN's right side alone, and of tables before it.
    fn is_of(&self, table: usize) -> bool {
        let mut others = self.own.iter().enumerate();
        let is_before = |link: &Link| link.of(table).is_some_and(|(_, (other, _))| other < table);
        others.all(|(other, own)| other == table || own.is_empty())
            && self.links.iter().all(is_before)
    }

    /// Whether something is said of a table.
    fn concern(&self, table: usize) -> bool {
        !self.own[table].is_empty() || self.links.iter().any(|link| link.of(table).is_some())
    }

    fn take(&mut self, others: Conditions<'a>) {
        for (own, other) in self.own.iter_mut().zip(others.own) {
            own.extend(other);
        }
        self.links.extend(others.links);
        self.rest.extend(others.rest);
    }

    fn add(&mut self, condition: &'a ast::Expr, names: &[Names<'_>]) {
        match condition {
            ast::Expr::Nested(inner) => return self.add(inner, names),
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::And,
                right,
            } => {
                self.add(left, names);
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
                    let is_link = one.0 != other.0 && are_comparable(column(one), column(other));
                    match is_link {
                        true => self.links.push(Link {
                            sides: [one, other],
                        }),
                        false => self.rest.push(condition),
                    }
                    return;
                }
            }
            _ => {}
        }
        let own = (0..names.len()).find_map(|table| {
            let found = comparisons(condition, &OneOf { names, table })?;
            Some((table, found))
        });
        match own {
            Some((table, found)) => self.own[table].extend(found),
            None => self.rest.push(condition),
        }
    }

    /// The first order that needs no optimizer. One that begins with a single row comes before others.
    fn order(&self, names: &[Names<'_>]) -> Option<Order> {
        let first = (0..names.len()).filter(|table| !self.outer[*table]);
        let mut best = None;
        for order in first.filter_map(|first| self.order_from(first, names)) {
            if order.steps[0].1.is_single() {
                return Some(order);
            }
            best.get_or_insert(order);
        }
        best
    }

    /// The order that begins with `first` and goes on to tables that have one row for each row so far. Several rows may
    /// come from one table only, besides those of a list of unique keys.
    fn order_from(&self, first: usize, names: &[Names<'_>]) -> Option<Order> {
        let mut order = Order {
            steps: Vec::new(),
            slots: Vec::new(),
        };
        let (table, own) = (&names[first].table, &self.own[first]);
        let access = best_or_any(table, own)?;
        let mut has_few_rows = access.is_unique;
        order.steps.push((first, access));
        while order.steps.len() < names.len() {
            let is_read =
                |table: usize, order: &Order| order.steps.iter().any(|(step, _)| *step == table);
            let mut next = None;
            for table in (0..names.len()).filter(|table| !is_read(*table, &order)) {
                // What decides whether a row is missing comes first.
                let mut others = self.links.iter().filter_map(|link| link.of(table));
                if self.outer[table]
                    && !others.all(|(_, (other, _))| other > table || is_read(other, &order))
                {
                    continue;
                }
                let mut slots = order.slots.clone();
                let Some(access) = self.access_of(table, &order, &mut slots, names) else {
                    continue;
                };
                let is_single = access.is_single();
                if is_single || has_few_rows && next.is_none() {
                    next = Some((table, access, slots));
                }
                if is_single {
                    break;
                }
            }
            let (table, access, slots) = next?;
            has_few_rows &= access.is_single();
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
            // A LEFT JOIN to another table says nothing of this one.
            let is_others = self.outer[other.0] && other.0 > table;
            if is_others || !order.steps.iter().any(|(step, _)| *step == other.0) {
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
        best_or_any(&names[table].table, &conditions)
    }
}

/// The best use of an index, or one of several: which, is decided when the operands are known.
fn best_or_any(table: &Table, comparisons: &[Comparison]) -> Option<Access> {
    Access::choose(table, comparisons, true, None).or_else(|| {
        let candidates = Access::candidates(table, comparisons, true, None);
        candidates.into_iter().next()
    })
}

/// Whether MySQL compares two columns as either of them is ordered.
pub(super) fn are_comparable(one: &Column, other: &Column) -> bool {
    let (one, other) = (&one.ty, &other.ty);
    let is_same = one == other || one.is_character() && one.collation() == other.collation();
    is_comparable(one)
        && is_comparable(other)
        && (one.is_integer() && other.is_integer()
            || is_same && one.is_character() == other.is_character())
}

/// An aggregate and its table.
fn aggregate_of(expr: &ast::Expr, names: &[Names<'_>]) -> Option<((usize, JoinedFunction), Field)> {
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
            (table, JoinedFunction::CountDistinct { column, key }),
            field,
        ));
    }
    (0..names.len()).find_map(|table| {
        let aggregate = Aggregate::of(expr, &OneOf { names, table })?;
        let field = aggregate.field(names[table].definition());
        Some(((table, JoinedFunction::Plain([aggregate])), field))
    })
}
