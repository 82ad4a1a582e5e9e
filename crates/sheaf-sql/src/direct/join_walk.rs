//! Going through the tables of a join, from row to row, and running one.

use std::ops::ControlFlow;

use sheaf_storage::{Direction, ReadView};
use sheaf_table::{BorrowedReadGuard, RowView};
use sheaf_types::Value;

use super::access::{Access, BoundAccess};
use super::join::{Join, Joined};
use super::joined_result::{Found, FoundRow, Shown, Window};
use super::read::row_count;
use super::row::{RowReader, long_value};
use crate::error::Result;
use crate::session::Session;
use crate::session::result::ResultSink;

/// Rows of all tables that a join looks at, and those of its first table by estimate. Beyond that, workers and batches
/// pay for themselves.
const MAX_JOINED_ROWS: u64 = 2_000;

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
    view: &'j ReadView,
    found: Found<'j>,
    /// The statement's parameters, and behind them what the tables give each other.
    parameters: Vec<Value>,
    /// The rows that the tables stand at, by place.
    rows: Vec<Vec<u8>>,
    /// Joined rows found, and those wanted.
    number: u64,
    wanted: u64,
    /// Rows of all tables that were looked at.
    examined: u64,
    /// Tables whose operands were looked at.
    bound: usize,
}

impl Walk<'_, '_> {
    fn read(&mut self, place: usize) -> Result<Progress> {
        let join = self.join;
        let Some(joined) = join.tables.get(place) else {
            return self.take();
        };
        self.bound = self.bound.max(place + 1);
        let Some((access, bound)) = joined.best(&self.parameters)? else {
            return Ok(Progress::NotDirect);
        };
        let reader = RowReader {
            table: &joined.table,
            view: self.view,
            access,
            handle: &self.session.handle,
            counters: &self.session.handle.counters,
            wanted: u64::MAX,
        };
        let mut progress = Progress::GoOn;
        let mut is_missing = joined.is_outer;
        reader.for_each(&bound, Direction::Forward, |_, row| {
            self.examined += 1;
            is_missing = false;
            progress = match self.examined > MAX_JOINED_ROWS {
                true => Progress::NotDirect,
                false => self.descend(place, joined, &row)?,
            };
            Ok(match progress {
                Progress::GoOn => ControlFlow::Continue(()),
                Progress::Enough | Progress::NotDirect => ControlFlow::Break(()),
            })
        })?;
        match is_missing {
            true => self.descend_without(place, joined),
            false => Ok(progress),
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
pub(super) struct OpenTables<'t> {
    pub(super) view: ReadView,
    _guards: Vec<BorrowedReadGuard<'t>>,
}

impl Session {
    /// `None`: a table is not what the plan was made for, or the read takes locks.
    pub(super) fn open_to_join<'j>(&mut self, join: &'j Join) -> Result<Option<OpenTables<'j>>> {
        if self.transactions.reads_lock() {
            return Ok(None);
        }
        let is_free = self.holds_no_table() && self.statement.view.is_none();
        let mut guards = Vec::with_capacity(join.tables.len());
        for joined in &join.tables {
            self.keep_definition(&joined.table)?;
            match self.borrow_for_read(&joined.table, is_free && guards.is_empty())? {
                Some(guard) => guards.push(guard),
                None => return Ok(None),
            }
        }
        let view = self.read_view()?;
        for joined in &join.tables {
            joined.table.check_view(&view)?;
        }
        Ok(Some(OpenTables {
            view,
            _guards: guards,
        }))
    }

    /// Goes through the tables until so many joined rows are found. `None`: the vectorised path has to do it.
    pub(super) fn walk_join<'j>(
        &self,
        join: &'j Join,
        view: &'j ReadView,
        parameters: &[Value],
        wanted: u64,
    ) -> Result<Option<Found<'j>>> {
        let slots: usize = join.tables.iter().map(|joined| joined.gives.len()).sum();
        let mut all = parameters.to_vec();
        all.resize(parameters.len() + slots, Value::Null);
        let mut walk = Walk {
            join,
            session: self,
            view,
            found: Found::nothing(&join.shown),
            parameters: all,
            rows: vec![Vec::new(); join.tables.len()],
            number: 0,
            wanted,
            examined: 0,
            bound: 0,
        };
        if walk.wanted > 0 && walk.read(0)? == Progress::NotDirect {
            return Ok(None);
        }
        // A constant that is none of its column's type is an error, also where no row has led to the table.
        let mut unread = join.tables[walk.bound..].iter();
        let is_bound = unread.all(|joined| {
            joined
                .access
                .bind(&joined.table, &walk.parameters)
                .is_some()
        });
        Ok(is_bound.then_some(walk.found))
    }

    /// False: the vectorised path has to do it.
    pub(super) fn run_direct_join(
        &mut self,
        join: &Join,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        if !sink.takes_rows() {
            return Ok(false);
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
        let Some(open) = self.open_to_join(join)? else {
            return Ok(false);
        };
        let wanted = match (&join.shown, &join.order) {
            (Shown::Columns(_), None) => limit.saturating_add(offset),
            _ => u64::MAX,
        };
        let view = &open.view;
        let Some(found) = self.walk_join(join, view, parameters, wanted)? else {
            return Ok(false);
        };
        let sent = join.send(found, view, Window { limit, offset }, sink)?;
        self.end_direct_read(sent, sink)
    }
}

impl Joined {
    /// What reads fewest rows by estimate; `None` if these are many, or an operand has no place among a column's
    /// values.
    fn best(&self, parameters: &[Value]) -> Result<Option<(&Access, BoundAccess)>> {
        let (mut best, mut fewest) = (None, MAX_JOINED_ROWS);
        for access in std::iter::once(&self.access).chain(&self.others) {
            let Some(bound) = access.bind(&self.table, parameters) else {
                return Ok(None);
            };
            let rows = bound.keys.estimated_rows(&self.table, access.index)?;
            if rows <= fewest {
                (best, fewest) = (Some((access, bound)), rows);
            }
        }
        Ok(best)
    }
}

impl Join {
    /// Whether a plan without parameters would run, as far as the rows of its first table tell.
    pub(super) fn would_run(&self, session: &Session, parameters: &[Value]) -> Result<bool> {
        let Some(first) = self.tables.first() else {
            return Ok(false);
        };
        let Some(_guard) = session.borrow_for_read(&first.table, false)? else {
            return Ok(false);
        };
        Ok(first.best(parameters)?.is_some() && !session.transactions.reads_lock())
    }
}
