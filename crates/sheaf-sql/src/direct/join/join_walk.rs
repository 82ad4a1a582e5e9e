//! Going through the tables of a join, from row to row, and running one.
//!
//! ```text
//!   read(0)   for each row of the first table
//!     read(1)   bind its keys by the rows so far, look them up, for each row that passes
//!       read(2)   ..
//!         take      a row of all tables: it is shown, counted, grouped or collected
//! ```
//!
//! The walk ends early when there are rows enough. After [`MAX_JOINED_ROWS`] rows it gives the statement to the
//! operators, whose workers and batches pay for themselves by then. Nothing has been sent until it is certain that the
//! walk comes to its end.

use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_access::{IndexRef, SessionCounters};
use sheaf_storage::{Direction, ReadView};
use sheaf_table::{BorrowedReadGuard, RowView, Table};
use sheaf_types::Value;

use super::joined_result::{Found, FoundRow, Window};
use crate::direct::access::{Access, BoundAccess, MAX_LIST};
use crate::direct::join::{Join, Joined, JoinedWay, MAX_JOINED_ROWS, rows_if_small};
use crate::direct::read::{MAX_LIMITED_ROWS, MAX_WALKED_ROWS, end_direct_read, row_count};
use crate::direct::rows::derived_rows::{DerivedRows, Lookup};
use crate::direct::rows::row_source::RowSource;
use crate::direct::shown::joined_list::Shown;
use crate::direct::shown::row::{MAX_WAITS, RowReader};
use crate::error::Result;
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session::searched::{DirectSearch, Searched};
use crate::variables::Variables;

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
struct Walk<'s, 'j> {
    join: &'j Join,
    session: &'s Session,
    counters: &'s SessionCounters,
    view: &'j ReadView,
    found: Found<'j>,
    /// The statement's parameters, and behind them what the tables give each other.
    parameters: Vec<Value>,
    /// The rows that the tables stand at, by place.
    rows: Vec<Vec<u8>>,
    /// Those of queries, in the order of their places. They are taken out while they are gone through.
    derived: Vec<Option<DerivedRows>>,
    /// Joined rows found, and those wanted.
    number: u64,
    wanted: u64,
    /// Rows of all tables that were looked at.
    examined: u64,
    /// Tables whose operands were looked at.
    bound: usize,
    /// Pages that the thread had read before, if the join is not to wait for many.
    reads_before: Option<u64>,
    /// Nothing is joined beyond this place: what the query there is asked for is collected.
    asked: Option<(usize, Vec<Value>)>,
    /// The searches of tables, if they are to be locked.
    searched: Option<Vec<Searched>>,
}

impl Walk<'_, '_> {
    fn read(&mut self, place: usize) -> Result<Progress> {
        let join = self.join;
        let Some(joined) = join.tables.get(place) else {
            return self.take();
        };
        if self.asked.as_ref().is_some_and(|(at, _)| *at == place) {
            return Ok(self.ask(joined));
        }
        self.bound = self.bound.max(place + 1);
        match &joined.way {
            JoinedWay::Keys(table, accesses) => {
                let Some((access, bound)) =
                    best((joined, table.as_ref()), accesses, &self.parameters)?
                else {
                    return Ok(Progress::NotDirect);
                };
                self.read_through(place, (joined, table), (access, &bound))
            }
            JoinedWay::Small(table, access) => {
                let rows = rows_if_small(table)?;
                let most = join.most_of_small_table();
                match access.bind(table, &self.parameters) {
                    Some(bound) if rows.is_some_and(|rows| rows <= most) => {
                        self.read_through(place, (joined, table), (access, &bound))
                    }
                    _ => Ok(Progress::NotDirect),
                }
            }
            // What it has come to is not known before it ends.
            JoinedWay::Walk(..) | JoinedWay::First(..) if self.searched.is_some() => {
                Ok(Progress::NotDirect)
            }
            JoinedWay::Walk(table, access, direction) => {
                let Some(bound) = access.bind(table, &self.parameters) else {
                    return Ok(Progress::NotDirect);
                };
                let way = (access, &bound, *direction);
                self.read_table(place, (joined, table), way, MAX_WALKED_ROWS)
            }
            JoinedWay::First(table, access, (direction, parts)) => {
                self.read_first(place, (joined, table), access, (*direction, *parts))
            }
            JoinedWay::Rows(lookup) => self.read_rows(place, joined, lookup),
        }
    }

    /// Reads all rows of a table that its access finds.
    fn read_through(
        &mut self,
        place: usize,
        (joined, table): (&Joined, &Arc<Table>),
        (access, bound): (&Access, &BoundAccess),
    ) -> Result<Progress> {
        if let Some(searched) = &mut self.searched {
            searched.push(Searched {
                table: Arc::clone(table),
                search: DirectSearch {
                    index: access.index,
                    reads_rows: !access.entry.is_covering(),
                    is_filtered: true,
                    limit: None,
                    direction: Direction::Forward,
                },
                ranges: bound.keys.ranges(),
                last: None,
            });
        }
        let way = (access, bound, Direction::Forward);
        self.read_table(place, (joined, table), way, u64::MAX)
    }

    /// Reads a table of which so many entries may be looked at.
    fn read_table(
        &mut self,
        place: usize,
        (joined, table): (&Joined, &Arc<Table>),
        (access, bound, direction): (&Access, &BoundAccess, Direction),
        most: u64,
    ) -> Result<Progress> {
        let reader = RowReader {
            table,
            view: self.view,
            access,
            handle: &self.session.handle,
            counters: self.counters,
            wanted: match most {
                u64::MAX => u64::MAX,
                _ => self.wanted,
            },
        };
        let mut progress = Progress::GoOn;
        let mut is_missing = joined.is_outer;
        let is_complete = reader.for_each_of(most, bound, direction, |_, row| {
            is_missing = false;
            progress = self.come_to(place, joined, &row)?;
            Ok(match progress {
                Progress::GoOn => ControlFlow::Continue(()),
                Progress::Enough | Progress::NotDirect => ControlFlow::Break(()),
            })
        })?;
        match is_missing {
            _ if !is_complete => Ok(Progress::NotDirect),
            true => self.descend_without(place, joined),
            false => Ok(progress),
        }
    }

    /// Reads the first row of each group.
    fn read_first(
        &mut self,
        place: usize,
        (joined, table): (&Joined, &Arc<Table>),
        access: &Access,
        (direction, parts): (Direction, usize),
    ) -> Result<Progress> {
        let index = match access.index {
            IndexRef::Clustered => None,
            IndexRef::Secondary(position) => Some(position),
        };
        let groups = table.distinct_prefixes(index);
        let groups = groups.and_then(|groups| groups.get(parts - 1).copied());
        if groups.is_some_and(|groups| groups > MAX_JOINED_ROWS) {
            return Ok(Progress::NotDirect);
        }
        let reader = RowReader {
            table,
            view: self.view,
            access,
            handle: &self.session.handle,
            counters: self.counters,
            wanted: u64::MAX,
        };
        let mut progress = Progress::GoOn;
        let is_complete = reader.for_each_first((parts, MAX_JOINED_ROWS), direction, |row| {
            progress = self.come_to(place, joined, &row)?;
            Ok(match progress {
                Progress::GoOn => ControlFlow::Continue(()),
                Progress::Enough | Progress::NotDirect => ControlFlow::Break(()),
            })
        })?;
        Ok(match is_complete {
            true => progress,
            false => Progress::NotDirect,
        })
    }

    /// Goes through the rows of a query.
    fn read_rows(&mut self, place: usize, joined: &Joined, lookup: &Lookup) -> Result<Progress> {
        let before = self.join.tables[..place].iter();
        let number = before
            .filter(|joined| matches!(joined.way, JoinedWay::Rows(_)))
            .count();
        let Some(mut rows) = self.derived.get_mut(number).and_then(Option::take) else {
            return Ok(Progress::NotDirect);
        };
        let progress = self.read_found(place, joined, (lookup, &mut rows));
        self.derived[number] = Some(rows);
        progress
    }

    fn read_found(
        &mut self,
        place: usize,
        joined: &Joined,
        (lookup, rows): (&Lookup, &mut DerivedRows),
    ) -> Result<Progress> {
        let Some(found) = lookup.find(rows, &self.parameters)? else {
            return Ok(Progress::NotDirect);
        };
        if found.is_empty() && joined.is_outer {
            return self.descend_without(place, joined);
        }
        for position in found {
            let progress = self.come_to(place, joined, &lookup.row(rows, position)?)?;
            if progress != Progress::GoOn {
                return Ok(progress);
            }
        }
        Ok(Progress::GoOn)
    }

    /// Comes to a row of the table at `place`.
    fn come_to(&mut self, place: usize, joined: &Joined, row: &RowView<'_>) -> Result<Progress> {
        self.examined += 1;
        let has_waited = self.reads_before.is_some_and(|before| {
            let reads = self.join.pages_read();
            reads.saturating_sub(before) > MAX_WAITS
        });
        match self.examined > MAX_JOINED_ROWS || has_waited {
            true => Ok(Progress::NotDirect),
            false => self.descend(place, joined, row),
        }
    }

    /// Goes on without a row of the table at `place`.
    fn descend_without(&mut self, place: usize, joined: &Joined) -> Result<Progress> {
        let end = self.parameters.len();
        for (_, slot) in &joined.gives {
            self.parameters[end - 1 - slot] = Value::Null;
        }
        self.rows[place].clear();
        self.read(place + 1)
    }

    /// Reads what belongs to a row of the table at `place`.
    fn descend(&mut self, place: usize, joined: &Joined, row: &RowView<'_>) -> Result<Progress> {
        let end = self.parameters.len();
        for (column, slot) in &joined.gives {
            let ty = &joined.source.definition().columns[*column].ty;
            self.parameters[end - 1 - slot] =
                match joined.source.long_value(self.view, row, *column)? {
                    Some(bytes) => sheaf_table::ValueRef::Bytes(&bytes).to_value(ty),
                    None => row.value(*column, ty),
                };
        }
        let kept = &mut self.rows[place];
        kept.clear();
        kept.extend_from_slice(row.bytes());
        self.read(place + 1)
    }

    /// Collects what a query is asked for.
    fn ask(&mut self, joined: &Joined) -> Progress {
        let JoinedWay::Rows(lookup) = &joined.way else {
            return Progress::NotDirect;
        };
        let (Some(operand), Some((_, asked))) = (lookup.asked(), &mut self.asked) else {
            return Progress::NotDirect;
        };
        let Some(value) = operand.value(&self.parameters) else {
            return Progress::NotDirect;
        };
        asked.push(value.into_owned());
        self.number += 1;
        match self.number < self.wanted {
            true => Progress::GoOn,
            false => Progress::Enough,
        }
    }

    /// Takes a joined row.
    fn take(&mut self) -> Result<Progress> {
        self.number += 1;
        let row = FoundRow {
            join: self.join,
            view: self.view,
            rows: &self.rows,
        };
        Ok(match self.found.take(row)? {
            false => Progress::NotDirect,
            true if self.number < self.wanted => Progress::GoOn,
            true => Progress::Enough,
        })
    }
}

/// The tables of a join, opened to be read.
pub(in crate::direct) struct OpenTables<'t> {
    pub(in crate::direct) view: ReadView,
    _guards: Vec<BorrowedReadGuard<'t>>,
}

/// The rows of queries that a join reads, with these parameters, where so many joined rows are wanted. `None`: the
/// vectorised path has to do it.
pub(in crate::direct) fn derived_rows(
    session: &mut Session,
    join: &Join,
    parameters: &[Value],
    wanted: u64,
) -> Result<Option<Vec<DerivedRows>>> {
    let mut all = Vec::new();
    for (place, joined) in join.tables.iter().enumerate() {
        let RowSource::Query(derived) = &joined.source else {
            continue;
        };
        let rows = match derived.asked() {
            None if let (Some(table), JoinedWay::Rows(lookup)) =
                (&derived.of_definitions, &joined.way) =>
            {
                let given = (lookup.equal.as_slice(), parameters);
                derived.rows_of_definitions(session, table, given)
            }
            None => derived.rows(session, parameters),
            Some(_) => match asked_of(session, join, place, &mut all, (parameters, wanted))? {
                Some(list) => derived.rows_of(session, parameters, list),
                None => Ok(None),
            },
        };
        match rows {
            Ok(Some(rows)) => all.push(rows),
            Ok(None) => return Ok(None),
            // Whether the query is run at all is for the vectorised path to decide: where another table has no
            // row, nothing is wrong with it.
            Err(error) => {
                session.handle.cancel_flag().check()?;
                tracing::debug!(%error, "a query in a FROM has failed");
                return Ok(None);
            }
        }
    }
    Ok(Some(all))
}

/// The values that the query at a place is asked for by the rows of the tables before it, each once.
fn asked_of(
    session: &mut Session,
    join: &Join,
    place: usize,
    derived: &mut Vec<DerivedRows>,
    (parameters, wanted): (&[Value], u64),
) -> Result<Option<Vec<Value>>> {
    let Some(open) = open_to_join(session, join)? else {
        return Ok(None);
    };
    let known = std::mem::take(derived);
    let asked = walk_to(
        session,
        (join, known),
        &open.view,
        parameters,
        (place, wanted),
    )?;
    let Some((mut list, known)) = asked else {
        return Ok(None);
    };
    *derived = known;
    // NULL is equal to nothing.
    list.retain(|value| matches!(value, Value::Int(_) | Value::UInt(_)));
    list.sort_unstable_by_key(Value::as_i128);
    list.dedup();
    Ok((list.len() <= MAX_LIST).then_some(list))
}

/// `None`: a table is not what the plan was made for, or the read takes locks.
pub(in crate::direct) fn open_to_join<'j>(
    session: &mut Session,
    join: &'j Join,
) -> Result<Option<OpenTables<'j>>> {
    if session.transactions.reads_lock() {
        return Ok(None);
    }
    let is_free = session.holds_no_table() && session.statement.view.is_none();
    let mut guards = Vec::with_capacity(join.tables.len());
    for table in join.tables() {
        session.keep_definition(table)?;
        match session.borrow_for_read(table, is_free && guards.is_empty())? {
            Some(guard) => guards.push(guard),
            None => return Ok(None),
        }
    }
    let view = session.read_view()?;
    for table in join.tables() {
        table.check_view(&view)?;
    }
    Ok(Some(OpenTables {
        view,
        _guards: guards,
    }))
}

fn begin_walk<'s, 'j>(
    session: &'s Session,
    (join, derived): (&'j Join, Vec<DerivedRows>),
    view: &'j ReadView,
    parameters: &[Value],
    wanted: u64,
) -> Walk<'s, 'j> {
    let slots: usize = join.tables.iter().map(|joined| joined.gives.len()).sum();
    let mut all = parameters.to_vec();
    all.resize(parameters.len() + slots, Value::Null);
    Walk {
        join,
        session,
        counters: &session.handle.counters,
        view,
        found: Found::nothing(&join.shown),
        parameters: all,
        rows: vec![Vec::new(); join.tables.len()],
        derived: derived.into_iter().map(Some).collect(),
        number: 0,
        wanted,
        examined: 0,
        bound: 0,
        reads_before: join.is_walk().then(|| join.pages_read()),
        asked: None,
        searched: session.statement.searched.as_ref().map(|_| Vec::new()),
    }
}

/// What the query at a place is asked for by the rows of the tables before it, and the rows of the queries there.
/// `None`: the vectorised path has to do it. `wanted`: joined rows.
pub(in crate::direct) fn walk_to(
    session: &Session,
    (join, derived): (&Join, Vec<DerivedRows>),
    view: &ReadView,
    parameters: &[Value],
    (place, wanted): (usize, u64),
) -> Result<Option<(Vec<Value>, Vec<DerivedRows>)>> {
    // Each row before it is a joined row, or more than one, if no table from here on leaves one out.
    let leaves_none_out = join.tables[place..].iter().all(|joined| joined.is_outer);
    let wanted = match leaves_none_out {
        true => wanted,
        false => u64::MAX,
    };
    let mut walk = begin_walk(session, (join, derived), view, parameters, wanted);
    walk.asked = Some((place, Vec::new()));
    if wanted > 0 && walk.read(0)? == Progress::NotDirect {
        return Ok(None);
    }
    let known = walk.derived.into_iter().flatten().collect();
    Ok(walk.asked.map(|(_, asked)| (asked, known)))
}

/// Goes through the tables until so many joined rows are found. `None`: the vectorised path has to do it.
pub(in crate::direct) fn walk_join<'j>(
    session: &mut Session,
    (join, derived): (&'j Join, Vec<DerivedRows>),
    view: &'j ReadView,
    parameters: &[Value],
    wanted: u64,
) -> Result<Option<Found<'j>>> {
    let mut walk = begin_walk(session, (join, derived), view, parameters, wanted);
    if walk.wanted > 0 && walk.read(0)? == Progress::NotDirect {
        return Ok(None);
    }
    // A constant that is none of its column's type is an error, also where no row has led to the table.
    let mut unread = join.tables[walk.bound..].iter();
    let is_bound = unread.all(|joined| match &joined.way {
        JoinedWay::Keys(table, accesses) => accesses
            .first()
            .is_some_and(|access| access.bind(table, &walk.parameters).is_some()),
        JoinedWay::Walk(table, access, _) | JoinedWay::Small(table, access) => {
            access.bind(table, &walk.parameters).is_some()
        }
        JoinedWay::First(..) | JoinedWay::Rows(_) => true,
    });
    let Walk {
        found, searched, ..
    } = walk;
    if let (Some(all), Some(mut searched)) = (&mut session.statement.searched, searched) {
        all.append(&mut searched);
    }
    Ok(is_bound.then_some(found))
}

/// Whether a walk ends soon is told by trying, which counts as nothing.
fn would_walk(session: &Session, join: &Join, parameters: &[Value], wanted: u64) -> Result<bool> {
    let mut guards = Vec::with_capacity(join.tables.len());
    for table in join.tables() {
        match session.borrow_for_read(table, false)? {
            Some(guard) => guards.push(guard),
            None => return Ok(false),
        }
    }
    let view = session
        .transactions
        .current_view(session.engine.storage())?;
    for table in join.tables() {
        table.check_view(&view)?;
    }
    let counters = SessionCounters::default();
    let walk = begin_walk(session, (join, Vec::new()), &view, parameters, wanted);
    let mut walk = Walk {
        counters: &counters,
        ..walk
    };
    Ok(wanted == 0 || walk.read(0)? != Progress::NotDirect)
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_join(
    session: &mut Session,
    join: &Join,
    parameters: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let is_done = run_one_join(session, join, parameters, sink)?;
    match &join.otherwise {
        Some(otherwise) if !is_done => run_one_join(session, otherwise, parameters, sink),
        _ => Ok(is_done),
    }
}

fn run_one_join(
    session: &mut Session,
    join: &Join,
    parameters: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    if !sink.takes_rows() {
        return Ok(false);
    }
    let Some((window, wanted)) = join.window(&session.variables, parameters) else {
        return Ok(false);
    };
    let Some(derived) = derived_rows(session, join, parameters, wanted)? else {
        return Ok(false);
    };
    let Some(open) = open_to_join(session, join)? else {
        return Ok(false);
    };
    let view = &open.view;
    let Some(found) = walk_join(session, (join, derived), view, parameters, wanted)? else {
        return Ok(false);
    };
    let sent = join.send(found, view, window, sink)?;
    end_direct_read(session, sent, sink)
}

/// What reads fewest rows by estimate; `None` if these are many, or an operand has no place among a column's values.
fn best<'a>(
    (joined, table): (&Joined, &Table),
    accesses: &'a [Access],
    parameters: &[Value],
) -> Result<Option<(&'a Access, BoundAccess)>> {
    let (mut best, mut fewest) = (None, joined.most_rows);
    for access in accesses {
        let Some(bound) = access.bind(table, parameters) else {
            return Ok(None);
        };
        let rows = bound.keys.estimated_rows(table, access.index)?;
        if rows <= fewest {
            (best, fewest) = (Some((access, bound)), rows);
        }
    }
    Ok(best)
}

impl Join {
    /// What is sent of the rows or groups that are found, and how many joined rows are wanted. `None`: the operands do
    /// not suit.
    fn window(&self, variables: &Variables, parameters: &[Value]) -> Option<(Window, u64)> {
        let most = variables.sql_select_limit();
        let limit = row_count(self.limit.as_ref(), parameters, most)?;
        let offset = row_count(self.offset.as_ref(), parameters, 0)?;
        let wanted = match (&self.shown, &self.order) {
            (Shown::Columns(_), None) => limit.saturating_add(offset),
            _ => u64::MAX,
        };
        let is_too_long = self.is_walk() && wanted > MAX_LIMITED_ROWS;
        (!is_too_long).then_some((Window { limit, offset }, wanted))
    }

    /// Pages that the thread has read so far.
    fn pages_read(&self) -> u64 {
        let mut tables = self.tables();
        let first = tables.next();
        first.map_or(0, |table| table.clustered.thread_page_work().reads)
    }

    /// The join that a plan without parameters would run: this one, or the one that walks in its place. As far as the
    /// rows of its first table tell.
    pub(in crate::direct) fn that_would_run(
        &self,
        session: &Session,
        parameters: &[Value],
    ) -> Result<Option<&Join>> {
        let ways = std::iter::once(self).chain(self.otherwise.as_deref());
        for join in ways {
            let Some((_, wanted)) = join.window(&session.variables, parameters) else {
                continue;
            };
            if join.would_run(session, parameters, wanted)? {
                return Ok(Some(join));
            }
        }
        Ok(None)
    }

    /// Whether it would run until so many joined rows are found.
    pub(in crate::direct) fn would_run(
        &self,
        session: &Session,
        parameters: &[Value],
        wanted: u64,
    ) -> Result<bool> {
        let Some(first) = self.tables.first() else {
            return Ok(false);
        };
        if session.transactions.reads_lock() {
            return Ok(false);
        }
        match &first.way {
            JoinedWay::Keys(table, accesses) => {
                let Some(_guard) = session.borrow_for_read(table, false)? else {
                    return Ok(false);
                };
                Ok(best((first, table.as_ref()), accesses, parameters)?.is_some())
            }
            JoinedWay::Small(table, _) => {
                let Some(_guard) = session.borrow_for_read(table, false)? else {
                    return Ok(false);
                };
                let rows = rows_if_small(table)?;
                Ok(rows.is_some_and(|rows| rows <= self.most_of_small_table()))
            }
            JoinedWay::Walk(..) | JoinedWay::First(..) => {
                would_walk(session, self, parameters, wanted)
            }
            JoinedWay::Rows(_) => Ok(false),
        }
    }

    /// Rows that a small table may have that is read from end to end.
    fn most_of_small_table(&self) -> u64 {
        MAX_JOINED_ROWS / self.tables.len() as u64
    }
}
