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
//! read by unique keys, or are small, any key will do.
//!
//! Keys are equal to a column of a table before, or lie above or below it. Where they are whole numbers, they may be
//! computed of such columns, too: `n.id BETWEEN o.a AND o.a + 2`. That leads from o to n, but not from n to o.
//!
//! A first table that no key finds rows of is read whole if it has [few](MAX_SMALL_ROWS).
//!
//! The right side of a LEFT JOIN is read like that, too: where it has no row, the joined row goes on without one. If
//! the WHERE compares one of its columns, which NULL does not pass, it is an inner join.
//!
//! A FROM may have [queries](super::derived), too, whose rows are in memory by then. They are the first table, or are
//! found by the columns that they are joined by.
//!
//! Groups of a whole table that need one entry of an index each are found by jumping from group to group, as
//! `SELECT a, MAX(b) .. GROUP BY a` with an index of a and b.
//!
//! Where no key finds the rows of a first table, but an index has them in the order of a LIMIT, the join walks along it
//! for a while and sees whether it meets rows enough.
//!
//! The result waits in memory until it is complete ([`super::joined_result`]): so the plan can still find that it is
//! too large for it, and leave it to the vectorised path. How the tables are gone through is told in
//! [`super::join_walk`].

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use sheaf_access::IndexRef;
use sheaf_table::{Column, KeyPart, Table};
use sheaf_types::ColumnType;
use sqlparser::ast;

use super::access::{Access, Comparison, Relation, comparisons, indexes};
use super::aggregate::{Aggregate, call_of};
use super::arithmetic::Arithmetic;
use super::derived::{Derived, Lookup, is_in_from, shape_of_select};
use super::joined_result::{
    GroupItem, JoinedAggregate, JoinedFunction, JoinedKey, KeyColumn, Shown,
};
use super::names::{Names, OneOf, RowSource, column_of};
use super::operand::{Compared, Operand, is_comparable};
use super::order::{OrderItem, SortKey, descends};
use super::read::{
    PlainQuery, PlainSelect, index_order, limit_and_offset, plain_query, plain_select,
};
use super::select_list::{self, GroupedItem, is_function};
use crate::error::Result;
use crate::session::Session;
use crate::session::result::ColumnMeta;

/// Tables of a plan, at most.
const MAX_TABLES: usize = 8;

/// Rows of a table that is read whole, at most. Beyond that, workers and batches pay for themselves.
pub(super) const MAX_SMALL_ROWS: u64 = 500;

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
    /// The same along an index in the order of the LIMIT, where keys find too many rows.
    pub(super) otherwise: Option<Box<Join>>,
}

/// A table of the join.
#[derive(Debug)]
pub(super) struct Joined {
    /// Its place in the FROM.
    pub(super) from: usize,
    /// What the statement calls it.
    pub(super) alias: String,
    pub(super) source: RowSource,
    pub(super) way: JoinedWay,
    /// A row without a match here goes on without one.
    pub(super) is_outer: bool,
    /// Columns whose values later tables take, with their places behind the statement's parameters.
    pub(super) gives: Vec<(usize, usize)>,
}

/// How the rows of a table are found.
#[derive(Debug)]
pub(super) enum JoinedWay {
    /// Of several uses of indexes that one is taken when it runs which reads fewest rows by estimate.
    Keys(Arc<Table>, Vec<Access>),
    /// The first table, in the order of an index, until there are enough.
    Walk(Arc<Table>, Access, Direction),
    /// The first table, from end to end: it is small.
    Small(Arc<Table>, Access),
    /// The only table: the first entry of each group of those with so many leading parts in common.
    First(Arc<Table>, Access, (Direction, usize)),
    /// In memory, of a query.
    Rows(Lookup),
}

/// How a row of one table stands to rows of others: `a.column = b.column`, `a.column < b.column + 1`.
struct Link<'a> {
    written: &'a ast::Expr,
    /// Each finds rows of one table by those of the others.
    ways: Vec<LinkWay>,
}

/// See [`Link`].
struct LinkWay {
    /// The column that is compared, and its table.
    column: (usize, usize),
    relation: Relation,
    other: Arithmetic<Term>,
}

/// What a column is compared with.
#[derive(Clone)]
enum Term {
    /// Of another table.
    Column((usize, usize)),
    Operand(Operand),
}

impl Link<'_> {
    /// How rows of a table are found; `None`: by those of others, only theirs are.
    fn way_to(&self, table: usize) -> Option<&LinkWay> {
        self.ways.iter().find(|way| way.column.0 == table)
    }

    fn is_of(&self, table: usize) -> bool {
        let mut tables = self.tables();
        tables.any(|of| of == table)
    }

    /// Its tables but one.
    fn others(&self, table: usize) -> impl Iterator<Item = usize> {
        self.tables().filter(move |other| *other != table)
    }

    /// All its tables, some more than once.
    fn tables(&self) -> impl Iterator<Item = usize> {
        let mut tables = Vec::new();
        if let Some(way) = self.ways.first() {
            tables.push(way.column.0);
            way.other.all(&mut |term| {
                if let Term::Column((table, _)) = term {
                    tables.push(*table);
                }
                true
            });
        }
        tables.into_iter()
    }

    /// The columns that are equal; `None` if it says something else.
    fn equal_columns(&self) -> Option<[(usize, usize); 2]> {
        match self.ways.first()? {
            LinkWay {
                column,
                relation: Relation::Equal,
                other: Arithmetic::Leaf(Term::Column(other)),
            } => Some([*column, *other]),
            _ => None,
        }
    }
}

/// Tables of a FROM that can be read by keys, one after the other.
pub(super) struct Source<'a> {
    pub(super) names: Vec<Names<'a>>,
    conditions: Conditions<'a>,
    steps: Vec<(usize, Step)>,
    slots: Vec<(usize, usize)>,
}

/// How a table is read, in the order in which tables are.
enum Step {
    Keys(Access),
    Walk(Access, Direction),
    Small(Access),
    First(Access, (Direction, usize)),
    /// Of a query, by these columns.
    Rows(Vec<(usize, Compared)>),
}

impl Step {
    /// At most one row.
    fn is_single(&self) -> bool {
        matches!(self, Step::Keys(access) if access.is_single())
    }
}

/// What a WHERE says, by table of the FROM.
struct Conditions<'a> {
    own: Vec<Vec<Comparison>>,
    links: Vec<Link<'a>>,
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
    steps: Vec<(usize, Step)>,
    /// Values that one table takes from another, by place.
    slots: Vec<(usize, usize)>,
}

impl Join {
    /// The plan of a query; `None` if it is not a join of this kind. Of what was parsed it is given the text, and how
    /// many parameters that has.
    pub(super) fn compile(
        session: &Session,
        query: &ast::Query,
        given: (&str, usize),
    ) -> Option<Join> {
        let mut join = Join::compile_one(session, query, given, false)?;
        if join.limit.is_some() && !join.is_walk() {
            let otherwise = Join::compile_one(session, query, given, true);
            join.otherwise = otherwise.map(Box::new);
        }
        Some(join)
    }

    /// `walks`: it is to go along an index, whether or not keys find its rows.
    fn compile_one(
        session: &Session,
        query: &ast::Query,
        (text, parameters): (&str, usize),
        walks: bool,
    ) -> Option<Join> {
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
        let mut source = Source::of(session, &select.from, plain.selection, (text, parameters))?;
        let has_queries = source.derived().next().is_some();
        let has_groups = !plain.group_by.is_empty() || plain.distinct;
        let is_first_of = source.steps.is_empty() && has_groups && source.take_whole();
        let is_plain_read = source.names.len() == 1 && plain.group_by.is_empty() && !has_queries;
        if is_plain_read && !is_first_of || !source.rest().is_empty() {
            return None;
        }
        if source.steps.is_empty() && !walks && (source.names.len() > 1 || is_in_from()) {
            source.take_small(session);
        }
        if source.steps.is_empty() || walks {
            let is_cut = limit_clause.is_some() && !has_groups;
            let ordered = match order_by {
                Some(order_by) => ordered_columns(order_by, select, &source.names)?,
                None => Vec::new(),
            };
            is_cut.then(|| source.walk(&ordered))??;
        }
        let is_walk = source.is_walk() && !is_first_of;
        let Source {
            names, conditions, ..
        } = &source;
        let place = |table: usize| source.place(table);
        let ordered = match order_by {
            Some(order_by) => ordered_columns(order_by, select, names)?,
            None => Vec::new(),
        };
        let mut list = List::of(session, (select, text), &plain, (names, &ordered), place)?;
        if has_queries {
            list.describe_queries(session, (select, text))?;
        }
        if is_walk && !matches!(list.shown, Shown::Columns(_)) {
            return None;
        }
        let first_of = match is_first_of {
            true => Some(first_of(names[0].table()?, &list.shown).or_else(|| {
                let step = source.small_step(session, 0).filter(|_| is_in_from());
                step.map(|(_, step)| step)
            })?),
            false => None,
        };
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
            _ if is_walk => None,
            [] => None,
            columns => Some(JoinedKey::new(columns, names, place)?),
        };
        let (limit, offset) = match limit_clause {
            Some(clause) => limit_and_offset(clause)?,
            None => (None, None),
        };
        let mut read = list.shown.columns();
        read.extend(order.iter().flat_map(JoinedKey::columns));
        if let Some(step) = first_of {
            source.steps = vec![(0, step)];
        }
        let tables = source.into_tables(session, &read)?;
        Some(Join {
            tables,
            columns: list.columns,
            schema: Arc::new(Schema::new(list.fields)),
            shown: list.shown,
            order,
            limit,
            offset,
            otherwise: None,
        })
    }

    /// The rows alone, with these columns by their tables' places, and in an order.
    pub(super) fn of_rows(
        session: &Session,
        source: Source<'_>,
        read: &[(usize, usize)],
        order: Option<JoinedKey>,
    ) -> Option<Join> {
        Some(Join {
            columns: Vec::new(),
            schema: Arc::new(Schema::empty()),
            shown: Shown::Columns(Vec::new()),
            tables: source.into_tables(session, read)?,
            order,
            limit: None,
            offset: None,
            otherwise: None,
        })
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        let tables = self.tables.iter();
        tables.filter_map(|joined| joined.source.table().map(AsRef::as_ref))
    }

    /// Whether it begins with all rows of a small table.
    pub(super) fn reads_small(&self) -> bool {
        let mut tables = self.tables.iter();
        tables.any(|joined| matches!(joined.way, JoinedWay::Small(..)))
    }

    /// The queries among its tables, by place.
    pub(super) fn derived(&self) -> impl Iterator<Item = &Derived> {
        let tables = self.tables.iter();
        tables.filter_map(|joined| match &joined.source {
            RowSource::Query(derived) => Some(derived.as_ref()),
            RowSource::Table(_) => None,
        })
    }

    /// Whether a list that a run brings is among the keys that find the rows of its first table.
    pub(super) fn binds_list(&self) -> bool {
        let first = self.tables.first();
        first.is_some_and(|first| match &first.way {
            JoinedWay::Keys(_, accesses) => accesses.iter().all(Access::binds_list),
            _ => false,
        })
    }

    /// Whether its first table is walked along in the order of an index.
    pub(super) fn is_walk(&self) -> bool {
        let first = self.tables.first();
        first.is_some_and(|first| matches!(first.way, JoinedWay::Walk(..)))
    }

    /// Whether all tables are what the plan was made for.
    pub(super) fn is_current(&self) -> bool {
        let is_current = |joined: &Joined| {
            joined.source.is_current()
                && match &joined.way {
                    JoinedWay::Small(table, _) => matches!(rows_if_small(table), Ok(Some(_))),
                    _ => true,
                }
        };
        self.tables.iter().all(is_current)
    }
}

impl<'a> Source<'a> {
    /// `None` if it has other than tables and queries. Without steps: its tables cannot be read by keys, one after the
    /// other. `given`: the statement's text, and how many parameters it has.
    pub(super) fn of(
        session: &Session,
        from: &'a [ast::TableWithJoins],
        selection: Option<&'a ast::Expr>,
        given: (&str, usize),
    ) -> Option<Source<'a>> {
        let From {
            names,
            conditions: mut conjuncts,
            outer,
        } = tables_of(session, from, given)?;
        conjuncts.extend(selection);
        let mut conditions = Conditions::of(&conjuncts, &outer, &names)?;
        let mut order = conditions.order(&names);
        if order.is_none() && conditions.has_other_links() {
            // They lead the other way, or not to the rows of a query.
            let plainer = Conditions::of(&conjuncts, &outer, &names)?.by_equal_columns();
            if let Some(found) = plainer.order(&names) {
                (conditions, order) = (plainer, Some(found));
            }
        }
        let Order { steps, slots } = order.unwrap_or_else(|| Order {
            steps: Vec::new(),
            slots: Vec::new(),
        });
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

    /// Whether there is a way to read the tables.
    pub(super) fn is_read(&self) -> bool {
        self.names.is_empty() || !self.steps.is_empty()
    }

    /// Whether the first table is walked along in the order of an index.
    pub(super) fn is_walk(&self) -> bool {
        matches!(self.steps.first(), Some((_, Step::Walk(..))))
    }

    /// Whether the rows of a table of the FROM may be missing.
    pub(super) fn is_outer(&self, table: usize) -> bool {
        self.conditions.outer[table]
    }

    /// The queries of the FROM.
    fn derived(&self) -> impl Iterator<Item = &Derived> {
        self.names.iter().filter_map(|names| match &names.source {
            RowSource::Query(derived) => Some(derived.as_ref()),
            RowSource::Table(_) => None,
        })
    }

    /// Reads the tables beginning with all rows of one in this order, which an index has. `None` if none has it.
    pub(super) fn walk(&mut self, ordered: &[KeyColumn]) -> Option<()> {
        let first = match ordered {
            [] => 0,
            [(first, ..), rest @ ..] => {
                let is_same = rest.iter().all(|(table, ..)| table == first);
                is_same.then_some(*first)?
            }
        };
        let table = self.names[first].table()?;
        let wanted = ordered.iter();
        let wanted: Vec<OrderItem> = wanted
            .map(|&(_, column, descending)| OrderItem { column, descending })
            .collect();
        let step = indexes(table).find_map(|index| {
            let access = Access::whole(index, &self.conditions.own[first]);
            let direction = index_order(table, &access, &wanted)?;
            Some(Step::Walk(access, direction))
        })?;
        if self.conditions.outer[first] {
            return None;
        }
        let order = self
            .conditions
            .order_from((first, step), true, &self.names)?;
        (self.steps, self.slots) = (order.steps, order.slots);
        Some(())
    }

    /// Reads the tables beginning with all rows of the smallest one, if it is small.
    pub(super) fn take_small(&mut self, session: &Session) {
        let inner = (0..self.names.len()).filter(|table| !self.conditions.outer[*table]);
        let small = inner.filter_map(|table| {
            let (rows, step) = self.small_step(session, table)?;
            let order = self
                .conditions
                .order_from((table, step), true, &self.names)?;
            Some((rows, order))
        });
        if let Some((_, order)) = small.min_by_key(|(rows, _)| *rows) {
            (self.steps, self.slots) = (order.steps, order.slots);
        }
    }

    /// How a small table is read whole, and how many rows it has; `None` if it is not small.
    fn small_step(&self, session: &Session, table: usize) -> Option<(u64, Step)> {
        let source = self.names[table].table()?;
        // Long values are not in its rows, and may be many times as much.
        if source.definition.overflow.is_some() {
            return None;
        }
        let _guard = session.borrow_for_read(source, false).ok()??;
        let rows = rows_if_small(source).ok()??;
        let access = Access::whole(IndexRef::Clustered, &self.conditions.own[table]);
        Some((rows, Step::Small(access)))
    }

    /// Reads all of the only table, if nothing is said of it. How is [decided](first_of) later.
    fn take_whole(&mut self) -> bool {
        let is_whole = self.conditions.own.iter().all(Vec::is_empty)
            && matches!(self.names.as_slice(), [only] if only.table().is_some());
        if is_whole {
            let access = Access::whole(IndexRef::Clustered, &[]);
            self.steps = vec![(0, Step::Walk(access, Direction::Forward))];
        }
        is_whole
    }

    /// Where a table of the FROM is read.
    pub(super) fn place(&self, table: usize) -> Option<usize> {
        self.steps.iter().position(|(step, _)| *step == table)
    }

    /// The tables in the order in which they are read. `read`: the columns that are, by their tables' places.
    fn into_tables(self, session: &Session, read: &[(usize, usize)]) -> Option<Vec<Joined>> {
        let pushes = session.variables.pushes_index_conditions();
        let joined = |(place, (table, step)): (usize, (usize, Step))| {
            let slots = self.slots.iter().enumerate();
            let own = slots.filter(|(_, (from, _))| *from == table);
            let gives: Vec<(usize, usize)> =
                own.map(|(slot, (_, column))| (*column, slot)).collect();
            let read = read.iter().filter(|(of, _)| *of == place);
            let read = read.map(|(_, column)| *column);
            let given = gives.iter().map(|(column, _)| *column);
            let read: Vec<usize> = read.chain(given).collect();
            let source = self.names[table].source.clone();
            let way = match (step, &source) {
                (Step::Keys(access), RowSource::Table(table)) => {
                    let again = access.again(table, pushes, &read);
                    let accesses = match again {
                        Some(again) => vec![again],
                        None => access.candidates_again(table, pushes, &read),
                    };
                    JoinedWay::Keys(Arc::clone(table), accesses)
                }
                (Step::Walk(mut access, direction), RowSource::Table(table)) => {
                    access.use_entries(table, pushes, Some(&read));
                    JoinedWay::Walk(Arc::clone(table), access, direction)
                }
                (Step::Small(access), RowSource::Table(table)) => {
                    JoinedWay::Small(Arc::clone(table), access)
                }
                (Step::First(mut access, way), RowSource::Table(table)) => {
                    access.use_entries(table, pushes, Some(&read));
                    let is_secondary = access.index != IndexRef::Clustered;
                    if is_secondary && !access.entry.is_covering() {
                        return None;
                    }
                    JoinedWay::First(Arc::clone(table), access, way)
                }
                (Step::Rows(equal), RowSource::Query(derived)) => {
                    JoinedWay::Rows(Lookup::new(derived, equal)?)
                }
                _ => return None,
            };
            Some(Joined {
                from: table,
                alias: self.names[table].alias.to_string(),
                source,
                way,
                is_outer: self.conditions.outer[table],
                gives,
            })
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
    /// Has the vectorised path tell what a client is told, where columns are those of queries. `None`: that is not
    /// known before a run, or not for what is shown.
    fn describe_queries(
        &mut self,
        session: &Session,
        (select, text): (&ast::Select, &str),
    ) -> Option<()> {
        if !matches!(self.shown, Shown::Columns(_)) {
            return None;
        }
        let lowered = session.lower_shape(&shape_of_select(select)?, text).ok()?;
        let fields = lowered.plan.schema().fields();
        let columns = session.columns_of(&lowered);
        let mut own = self.fields.iter().zip(fields);
        let is_same = columns.len() == self.columns.len()
            && own.all(|(own, field)| own.data_type() == field.data_type());
        if !is_same {
            return None;
        }
        let fields = fields.iter().zip(&columns);
        let named = |(field, column): (&Arc<Field>, &ColumnMeta)| {
            field.as_ref().clone().with_name(&column.name)
        };
        self.fields = fields.map(named).collect();
        self.columns = columns;
        Some(())
    }

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
pub(super) fn ordered_columns(
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
        let is_ordered = match &names[table].source {
            RowSource::Query(derived) => derived.is_ordered(column),
            RowSource::Table(_) => true,
        };
        is_ordered.then_some((table, column, descending))
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
fn tables_of<'a>(
    session: &Session,
    from: &'a [ast::TableWithJoins],
    given: (&str, usize),
) -> Option<From<'a>> {
    let mut names: Vec<Names<'a>> = Vec::new();
    let mut conditions = Vec::new();
    let mut outer = Vec::new();
    for part in from {
        names.push(Names::of_part(session, &part.relation, given)?);
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
                        ..Names::of_part(session, &join.relation, given)?
                    });
                    continue;
                }
                _ => return None,
            }
            names.push(Names::of_part(session, &join.relation, given)?);
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
        conditions.tell_definitions(names);
        Some(conditions)
    }

    /// What a column of `information_schema` is equal to, those are, too, that it is joined with. So few rows are made
    /// of each of the tables.
    fn tell_definitions(&mut self, names: &[Names<'_>]) {
        let is_told = |table: usize| names[table].is_of_definitions() && !self.outer[table];
        let mut told = Vec::new();
        for [one, other] in self.links.iter().filter_map(Link::equal_columns) {
            if !is_told(one.0) || !is_told(other.0) {
                continue;
            }
            for (from, to) in [(one, other), (other, one)] {
                let equal = self.own[from.0].iter().filter_map(Comparison::as_equal);
                let mut of_column = equal.filter(|(column, _)| *column == from.1);
                if let Some((_, operand)) = of_column.next() {
                    let equal = Comparison::new(to.1, Relation::Equal, operand.clone());
                    told.push((to.0, equal));
                }
            }
        }
        for (table, comparison) in told {
            self.own[table].push(comparison);
        }
    }

    /// What the columns of a query's rows are equal to.
    fn equal_of(&self, table: usize) -> Vec<(usize, Compared)> {
        let equal = self.own[table].iter().filter_map(Comparison::as_equal);
        equal
            .map(|(column, operand)| (column, operand.clone()))
            .collect()
    }

    /// Whether these are conditions of a LEFT JOIN's right side alone, and of tables before it.
    fn is_of(&self, table: usize) -> bool {
        let mut others = self.own.iter().enumerate();
        let is_before = |link: &Link<'_>| {
            link.way_to(table).is_some() && link.others(table).all(|other| other < table)
        };
        others.all(|(other, own)| other == table || own.is_empty())
            && self.links.iter().all(is_before)
    }

    /// Whether something is said of a table.
    fn concern(&self, table: usize) -> bool {
        !self.own[table].is_empty() || self.links.iter().any(|link| link.is_of(table))
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
            ast::Expr::BinaryOp { left, op, right } if Relation::of(op).is_some() => {
                let sides = (column_of(names, left), column_of(names, right));
                let is_of_columns = sides.0.is_some() && sides.1.is_some();
                match link_of((left, op, right), condition, names) {
                    Some(link) => return self.links.push(link),
                    None if is_of_columns => return self.rest.push(condition),
                    None => {}
                }
            }
            ast::Expr::Between {
                expr,
                negated: false,
                low,
                high,
            } => {
                let bounds = [
                    (ast::BinaryOperator::GtEq, low.as_ref()),
                    (ast::BinaryOperator::LtEq, high.as_ref()),
                ];
                let link = |(op, bound): &(ast::BinaryOperator, &ast::Expr)| {
                    link_of((expr, op, bound), condition, names)
                };
                let links: Vec<Link<'_>> = bounds.iter().filter_map(link).collect();
                if let [_, _] = links.as_slice() {
                    return self.links.extend(links);
                }
            }
            _ => {}
        }
        let own = (0..names.len()).find_map(|table| {
            // Rows of other queries are not found by constants.
            let is_of_definitions = names[table].is_of_definitions();
            if names[table].table().is_none() && !is_of_definitions {
                return None;
            }
            let found = comparisons(condition, &OneOf { names, table })?;
            let all_equal = || found.iter().all(|found| found.as_equal().is_some());
            (!is_of_definitions || all_equal()).then_some((table, found))
        });
        match own {
            Some((table, found)) => self.own[table].extend(found),
            None => self.rest.push(condition),
        }
    }

    /// Whether tables are linked by more than equal columns.
    fn has_other_links(&self) -> bool {
        self.links.iter().any(|link| link.equal_columns().is_none())
    }

    /// The same where joined rows are tested by what is not the equality of two columns.
    fn by_equal_columns(mut self) -> Conditions<'a> {
        let links = std::mem::take(&mut self.links);
        for link in links {
            // Where a row may be missing, the link says whether it is.
            let is_kept =
                link.equal_columns().is_some() || link.tables().any(|table| self.outer[table]);
            // A BETWEEN is two of them.
            let is_known = |known: &&ast::Expr| std::ptr::eq(*known, link.written);
            if is_kept {
                self.links.push(link);
            } else if !self.rest.iter().any(is_known) {
                self.rest.push(link.written);
            }
        }
        self
    }

    /// The first order that needs no optimizer. One that begins with a single row comes before others.
    fn order(&self, names: &[Names<'_>]) -> Option<Order> {
        let first = (0..names.len()).filter(|table| !self.outer[*table]);
        let mut best = None;
        let begun = first.filter_map(|first| {
            let (step, has_few_rows) = match names[first].table() {
                Some(table) => {
                    let access = best_or_any(table, &self.own[first])?;
                    let is_unique = access.is_unique;
                    (Step::Keys(access), is_unique)
                }
                // It has so many as a join looks at, at most.
                None if names[first].asked().is_none() => (Step::Rows(self.equal_of(first)), true),
                None => return None,
            };
            self.order_from((first, step), has_few_rows, names)
        });
        for order in begun {
            if order.steps[0].1.is_single() {
                return Some(order);
            }
            best.get_or_insert(order);
        }
        best
    }

    /// The order that begins with `first` and goes on to tables that have one row for each row so far. Several rows may
    /// come from one table only, besides those of a list of unique keys, and those in memory.
    fn order_from(
        &self,
        first: (usize, Step),
        mut has_few_rows: bool,
        names: &[Names<'_>],
    ) -> Option<Order> {
        let mut order = Order {
            steps: vec![first],
            slots: Vec::new(),
        };
        while order.steps.len() < names.len() {
            let is_read =
                |table: usize, order: &Order| order.steps.iter().any(|(step, _)| *step == table);
            let mut next = None;
            for table in (0..names.len()).filter(|table| !is_read(*table, &order)) {
                // What decides whether a row is missing comes first.
                let mut others = self.links_of(table).flat_map(|link| link.others(table));
                if self.outer[table] && !others.all(|other| other > table || is_read(other, &order))
                {
                    continue;
                }
                let mut slots = order.slots.clone();
                let Some(step) = self.step_of(table, &order, &mut slots, names) else {
                    continue;
                };
                let is_single = step.is_single();
                let is_next = match &step {
                    // What it is joined by comes first, if anything does.
                    Step::Rows(equal) => !equal.is_empty() || has_few_rows,
                    _ => has_few_rows,
                };
                if is_single || is_next && next.is_none() {
                    next = Some((table, step, slots));
                }
                if is_single {
                    break;
                }
            }
            let (table, step, slots) = next?;
            has_few_rows &= step.is_single() || matches!(step, Step::Rows(_));
            order.slots = slots;
            order.steps.push((table, step));
        }
        Some(order)
    }

    /// How a table is read once those of `order` are.
    fn step_of(
        &self,
        table: usize,
        order: &Order,
        slots: &mut Vec<(usize, usize)>,
        names: &[Names<'_>],
    ) -> Option<Step> {
        let mut compared = Vec::new();
        for link in self.links_of(table) {
            // A LEFT JOIN to another table says nothing of this one.
            let is_others = link
                .others(table)
                .any(|other| self.outer[other] && other > table);
            let is_read = |other: usize| order.steps.iter().any(|(step, _)| *step == other);
            if is_others || !link.others(table).all(is_read) {
                continue;
            }
            // Where it leads the other way only, the table has to come before.
            let LinkWay {
                column,
                relation,
                other,
            } = link.way_to(table)?;
            compared.push((column.1, *relation, other.taken(slots)));
        }
        let Some(source) = names[table].table() else {
            let equal = compared.into_iter();
            let equal = equal.map(|(column, relation, compared)| {
                (relation == Relation::Equal).then_some((column, compared))
            });
            let mut equal = equal.collect::<Option<Vec<_>>>()?;
            let is_known = match names[table].asked() {
                Some(asked) => equal.iter().any(|(column, _)| *column == asked.column),
                None => true,
            };
            equal.extend(self.equal_of(table));
            return is_known.then_some(Step::Rows(equal));
        };
        let mut conditions = self.own[table].clone();
        let compared = compared.into_iter();
        conditions.extend(
            compared.map(|(column, relation, other)| Comparison::new(column, relation, other)),
        );
        best_or_any(source, &conditions).map(Step::Keys)
    }

    fn links_of(&self, table: usize) -> impl Iterator<Item = &Link<'a>> {
        self.links.iter().filter(move |link| link.is_of(table))
    }
}

impl Arithmetic<Term> {
    /// What a column is compared with when the rows of the other tables are known, whose values get places in `slots`.
    fn taken(&self, slots: &mut Vec<(usize, usize)>) -> Compared {
        let mut operand = |term: &Term| match term {
            Term::Operand(operand) => operand.clone(),
            Term::Column(column) => {
                let known = slots.iter().position(|slot| slot == column);
                Operand::Outer(known.unwrap_or_else(|| {
                    slots.push(*column);
                    slots.len() - 1
                }))
            }
        };
        match self.map(&mut operand) {
            Arithmetic::Leaf(operand) => Compared::Plain(operand),
            computed => Compared::Whole(computed),
        }
    }
}

/// What a comparison says of rows of several tables; `None`: nothing that finds rows of one of them. `written`: what it
/// is a part of.
fn link_of<'a>(
    (left, op, right): (&ast::Expr, &ast::BinaryOperator, &ast::Expr),
    written: &'a ast::Expr,
    names: &[Names<'_>],
) -> Option<Link<'a>> {
    let relation = Relation::of(op).filter(|relation| *relation != Relation::NotEqual)?;
    let sides = [(left, relation, right), (right, relation.swapped(), left)];
    let ways = sides.iter().filter_map(|(own, relation, other)| {
        let column = column_of(names, own)?;
        let other = other_side(column, other, names)?;
        Some(LinkWay {
            column,
            relation: *relation,
            other,
        })
    });
    let ways: Vec<LinkWay> = ways.collect();
    (!ways.is_empty()).then_some(Link { written, ways })
}

/// What a column is compared with, if that takes something from other tables and nothing from its own.
fn other_side(
    (table, column): (usize, usize),
    expr: &ast::Expr,
    names: &[Names<'_>],
) -> Option<Arithmetic<Term>> {
    let definition = |(table, column): (usize, usize)| &names[table].definition().columns[column];
    let own = definition((table, column));
    if let Some(other) = column_of(names, expr) {
        let is_link = other.0 != table && are_comparable(own, definition(other));
        return is_link.then_some(Arithmetic::Leaf(Term::Column(other)));
    }
    let whole = |other: (usize, usize)| other.0 != table && definition(other).ty.is_integer();
    let mut term = |expr: &ast::Expr| match column_of(names, expr) {
        Some(other) => whole(other).then_some(Term::Column(other)),
        None => Operand::of(expr).map(Term::Operand),
    };
    let other = Arithmetic::of(expr, &mut term).filter(|_| own.ty.is_integer())?;
    let has_columns = !other.all(&mut |term| matches!(term, Term::Operand(_)));
    has_columns.then_some(other)
}

/// How many rows a table has, if they are few.
pub(super) fn rows_if_small(table: &Table) -> Result<Option<u64>> {
    let rows = table.clustered.estimate_entries(&KeyRange::all())?;
    Ok((rows <= MAX_SMALL_ROWS).then_some(rows))
}

/// How the groups of a whole table are found by one entry each; `None` if no index tells them so.
fn first_of(table: &Table, shown: &Shown) -> Option<Step> {
    let Shown::Groups { by, aggregates, .. } = shown else {
        return None;
    };
    let mut extreme = None;
    for aggregate in aggregates {
        let JoinedFunction::Plain([Aggregate::Extreme { column, wanted, .. }]) = aggregate.function
        else {
            return None;
        };
        if extreme.is_some_and(|known| known != (column, wanted)) {
            return None;
        }
        extreme = Some((column, wanted));
    }
    let mut columns: Vec<usize> = by.columns().map(|(_, column)| column).collect();
    columns.sort_unstable();
    columns.dedup();
    indexes(table).find_map(|index| {
        let layout = match index {
            IndexRef::Clustered => &table.clustered_layout,
            IndexRef::Secondary(position) => &table.secondary_layouts[position],
        };
        let is_whole = |part: &KeyPart| part.prefix_length.is_none();
        let leading = layout.parts.get(..columns.len())?.iter();
        let mut held = leading
            .map(|part| part.column.filter(|_| is_whole(part)))
            .collect::<Option<Vec<usize>>>()?;
        held.sort_unstable();
        // Where all parts make a group, each entry is one.
        if held != columns || layout.parts.len() == columns.len() {
            return None;
        }
        let mut direction = Direction::Forward;
        if let Some((column, wanted)) = extreme {
            let part = layout.parts.get(columns.len())?;
            let may_be_null = table.definition.columns[column].nullable;
            // The least one may be behind NULLs.
            let is_known = wanted.is_gt() || !may_be_null;
            if part.column != Some(column) || !is_whole(part) || !is_known {
                return None;
            }
            if wanted.is_gt() {
                direction = Direction::Backward;
            }
        }
        let access = Access::whole(index, &[]);
        Some(Step::First(access, (direction, columns.len())))
    })
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
    if matches!(
        one,
        ColumnType::DateTime { .. } | ColumnType::Timestamp { .. }
    ) {
        return one == other;
    }
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
