//! How a plan runs: its table is opened, and its rows go to the client, to a sort or to the aggregates.

use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_access::SessionCounters;
use sheaf_storage::ReadView;
use sheaf_table::{BorrowedReadGuard, Table};
use sheaf_types::Value;

use super::send::{Output, Shape, end_direct_read, send_sorted};
use super::{MAX_WALKED_ROWS, Read, Ready, Shown, Way};
use crate::direct::access::add_filter;
use crate::direct::expression::evaluator_of_list;
use crate::direct::rows::order::Sorter;
use crate::direct::shown::aggregate::Totals;
use crate::direct::shown::row::{RowReader, cells_of_old_rows};
use crate::direct::syntax::headers::Spelled;
use crate::error::Result;
use crate::session::result::ResultSink;
use crate::session::searched::{DirectSearch, Searched};
use crate::session::{Session, SessionHandle};
use crate::variables::Variables;

/// A table opened to be read.
struct OpenTable<'t> {
    view: ReadView,
    _guard: BorrowedReadGuard<'t>,
}

/// `None`: the table is not what the plan was made for, or the read takes locks.
fn open_to_read<'t>(session: &mut Session, table: &'t Table) -> Result<Option<OpenTable<'t>>> {
    if session.transactions.reads_lock() {
        return Ok(None);
    }
    session.keep_definition(table)?;
    let is_first = session.holds_no_table() && session.statement.view.is_none();
    let Some(guard) = session.borrow_for_read(table, is_first)? else {
        return Ok(None);
    };
    let view = session.read_view()?;
    table.check_view(&view)?;
    Ok(Some(OpenTable {
        view,
        _guard: guard,
    }))
}

/// A read whose operands are known, with what a client is told of its columns. `None`: the vectorised path has to
/// do it.
pub(in crate::direct) fn ready_to_read<'r>(
    session: &mut Session,
    read: &'r Read,
    table: &Table,
    (parameters, spelled): (&[Value], Spelled<'_>),
) -> Result<Option<(Ready, Shape<'r>)>> {
    let most = session.variables.sql_select_limit();
    let Some(mut ready) = read.prepare(most, table, parameters)? else {
        return Ok(None);
    };
    let Some(shape) = shape_of(session, read, parameters, spelled) else {
        return Ok(None);
    };
    let filtered = add_filter(session, &read.access, &mut ready.bound, parameters);
    Ok(filtered.map(|()| (ready, shape)))
}

/// How the columns of a result are described, and what computes some of them. `None`: the vectorised path has to
/// do it.
fn shape_of<'r>(
    session: &mut Session,
    read: &'r Read,
    parameters: &[Value],
    spelled: Spelled<'_>,
) -> Option<Shape<'r>> {
    let Some(computed) = &read.computed else {
        return Some(Shape::Plain(&read.columns, &read.schema));
    };
    let made = (&computed.expressions, &computed.headers);
    let list = (read.columns.as_slice(), &read.schema);
    let (evaluator, shown) = evaluator_of_list(session, made, list, parameters, spelled)?;
    Some(Shape::Computed(evaluator, shown))
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_read(
    session: &mut Session,
    read: &Read,
    table: &Arc<Table>,
    (parameters, spelled): (&[Value], Spelled<'_>),
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    if !sink.takes_rows() || !read.is_allowed(&session.variables) {
        return Ok(false);
    }
    // First of all: without it the table's trees may be dropped while they are asked how many rows there are.
    let Some(open) = open_to_read(session, table)? else {
        return Ok(false);
    };
    let Some((ready, shape)) = ready_to_read(session, read, table, (parameters, spelled))? else {
        return Ok(false);
    };
    if ready.way != Way::Through {
        // What it has come to is not known before it ends.
        if session.statement.searched.is_some() {
            return Ok(false);
        }
        let (seen, counters) = ((table, &open.view), &session.handle.counters);
        let Some(mut rows) = walk_for_a_while(&session.handle, read, seen, &ready, counters)?
        else {
            return Ok(false);
        };
        let window = (ready.limit, ready.offset);
        return send_sorted(session, (read, &shape), seen, &mut rows, window, sink);
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
        && let Some(searched) = &mut session.statement.searched
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
    let mut last = session.statement.searched.is_some().then(Vec::new);
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
        handle: &session.handle,
        counters: &session.handle.counters,
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
            session.statement.searched_to(last);
            sink.row_columns(&read.columns, &read.schema)?;
            let sent = limit.min(1);
            if sent > 0 {
                sink.row(&read.columns, &totals)?;
            }
            return end_direct_read(session, sent, sink);
        }
    };
    if read.sorts() && limit > 0 {
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
        return send_sorted(
            session,
            (read, &shape),
            from,
            &mut sorter,
            (limit, offset),
            sink,
        );
    }
    let mut output = Output {
        shape: &shape,
        items,
        old: cells_of_old_rows(table, items),
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
    session.statement.searched_to(last);
    end_direct_read(session, sent, sink)
}

/// How a plan without parameters would run; `None`: it would not.
pub(in crate::direct) fn would_read(
    session: &Session,
    read: &Read,
    table: &Arc<Table>,
    parameters: &[Value],
) -> Result<Option<Way>> {
    let Some(_guard) = session.borrow_for_read(table, false)? else {
        return Ok(None);
    };
    if session.transactions.reads_lock() || !read.is_allowed(&session.variables) {
        return Ok(None);
    }
    let ready = read.prepare(session.variables.sql_select_limit(), table, parameters)?;
    let Some(ready) = ready else {
        return Ok(None);
    };
    if ready.way != Way::Through {
        // Whether it ends soon is told by trying, which counts as nothing.
        let view = session
            .transactions
            .current_view(session.engine.storage())?;
        table.check_view(&view)?;
        let counters = SessionCounters::default();
        let rows = walk_for_a_while(&session.handle, read, (table, &view), &ready, &counters)?;
        return Ok(rows.map(|_| ready.way));
    }
    Ok(Some(ready.way))
}

/// The rows that a LIMIT wants, if they are found soon.
fn walk_for_a_while(
    handle: &SessionHandle,
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
        handle,
        counters,
        wanted: left,
    };
    let mut rows = Sorter::default();
    let mut fits = true;
    if left == 0 {
        return Ok(Some(rows));
    }
    // Without keys a condition is evaluated in vain for all of them where no row passes.
    let most = match access.is_whole() {
        true => MAX_WALKED_ROWS.min(read.access.most_rows()),
        false => MAX_WALKED_ROWS,
    };
    let is_complete = reader.for_each_of(most, &ready.bound, direction, |_, row| {
        fits = rows.push((None, None), (table, view), &row)?;
        left -= 1;
        Ok(match fits && left > 0 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok((is_complete && fits).then_some(rows))
}

impl Read {
    /// Whether no variable limits how many rows it may look at, if it looks at all.
    pub(in crate::direct) fn is_allowed(&self, variables: &Variables) -> bool {
        !self.reads_whole || variables.max_join_size() == u64::MAX
    }
}
