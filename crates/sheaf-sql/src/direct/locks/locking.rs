//! SELECT … FOR UPDATE and FOR SHARE of columns of one table.
//!
//! It runs as the vectorised form does (`select/locking_read.rs`): rows are found through a view and locked one by
//! one. If one of them is not what the view shows, the statement begins again with a newer one. What was found waits in
//! memory until its rows are locked. A LIMIT that the index serves ends the search, so rows behind it stay free. A row
//! whose key is known is locked and read in one visit, if no other transaction conflicts.
//!
//! SKIP LOCKED locks rows as it finds them, without waiting, and leaves out those that are locked or have changed since
//! the view. LIMIT and OFFSET count the rows that it could lock. No gaps are locked, so nothing is begun again.

use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_storage::{LockMode, ReadView};
use sheaf_table::Table;
use sheaf_types::Value;

use crate::direct::read::{Read, Ready, ready_to_read, send_sorted};
use crate::direct::rows::order::Sorter;
use crate::direct::shown::row::RowReader;
use crate::direct::syntax::headers::Spelled;
use crate::direct::syntax::locking_clause::Locking;
use crate::error::Result;
use crate::isolation::transaction::StatementTransaction;
use crate::select::locking_read::lock_row_or_skip;
use crate::session::result::ResultSink;
use crate::session::searched::DirectSearch;
use crate::session::{Session, SessionHandle};

/// Rows that are locked, as this view shows them.
struct Locked {
    view: ReadView,
    rows: Sorter,
}

/// How an attempt to lock rows went.
enum Attempt {
    Done(Locked),
    /// A row is not what the view shows.
    RowChanged,
    /// The rows do not fit here.
    TooLarge,
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_locking_read(
    session: &mut Session,
    (read, locking): (&Read, Locking),
    table: &Arc<Table>,
    (parameters, spelled): (&[Value], Spelled<'_>),
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    if !sink.takes_rows()
        || session.transactions.reads_lock()
        || !read.is_allowed(&session.variables)
    {
        return Ok(false);
    }
    if locking.mode() == LockMode::Exclusive && !session.begin_for_update(table)? {
        return Ok(false);
    }
    session.keep_definition(table)?;
    let Some(_guard) = session.borrow_for_read(table, false)? else {
        return Ok(false);
    };
    let Some((ready, shape)) = ready_to_read(session, read, table, (parameters, spelled))? else {
        return Ok(false);
    };
    let mut statement = session.begin_locks(locking.wait);
    let outcome = session.until_stable(&mut statement, |session, statement| {
        let view = statement.changes().view_to_lock()?;
        table.check_view(&view)?;
        let read = (read, locking.mode());
        let attempt = match locking.skips() {
            true => lock_what_is_free(&session.handle, read, (table, view), &ready, statement),
            false => find_and_lock(&session.handle, read, (table, view), &ready, statement),
        };
        Ok(match attempt? {
            Attempt::Done(locked) => Some(Some(locked)),
            Attempt::TooLarge => Some(None),
            Attempt::RowChanged => None,
        })
    });
    if let Ok(None) = outcome {
        session.transactions.abandon_changes(statement)?;
        return Ok(false);
    }
    match session.end_changes(statement, outcome)? {
        Some(mut locked) => {
            let window = (ready.limit, ready.offset);
            let from = (table, &locked.view);
            send_sorted(
                session,
                (read, &shape),
                from,
                &mut locked.rows,
                window,
                sink,
            )?;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Reads so many rows that are to be locked.
fn reader_of<'a>(
    read: &'a Read,
    (table, view): (&'a Arc<Table>, &'a ReadView),
    handle: &'a SessionHandle,
    wanted: u64,
) -> RowReader<'a> {
    RowReader {
        table,
        view,
        access: &read.access,
        handle,
        counters: &handle.counters,
        wanted,
    }
}

/// Finds rows, and locks them and what was searched for them.
fn find_and_lock(
    handle: &SessionHandle,
    (read, mode): (&Read, LockMode),
    (table, view): (&Arc<Table>, ReadView),
    ready: &Ready,
    statement: &mut StatementTransaction,
) -> Result<Attempt> {
    // What it has looked at is locked.
    let wanted = ready.wanted(read);
    let reader = reader_of(read, (table, &view), handle, wanted);
    let (mut keys, mut rows): (Vec<Vec<u8>>, _) = (Vec::new(), Sorter::default());
    let mut fits = true;
    let mut is_locked = false;
    let mut only = None;
    if let Some([key]) = reader.known_keys(&ready.bound)
        && wanted > 0
    {
        let mut row = Vec::new();
        if let Some(is_there) = statement.lock_only_row(&view, table, key, mode, &mut row)? {
            is_locked = true;
            reader.note_points(1, u64::from(is_there));
            if is_there {
                rows = Sorter::of_row(row);
                only = Some(key);
            }
        }
    }
    let mut is_complete = true;
    if wanted > 0 && !is_locked {
        is_complete =
            reader.for_each_of(ready.most(), &ready.bound, read.direction, |key, row| {
                fits = rows.push(read.sort_keys(), (table, &view), &row)?;
                keys.push(key.to_vec());
                Ok(match fits && (keys.len() as u64) < wanted {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })?;
    }
    if !fits || !is_complete {
        return Ok(Attempt::TooLarge);
    }
    let search = DirectSearch {
        index: read.access.index,
        reads_rows: true,
        is_filtered: ready.bound.is_filtered(),
        limit: usize::try_from(wanted).ok(),
        direction: read.direction,
    };
    let ranges = || ready.bound.keys.ranges();
    let mut searches = statement.search_to_lock(table, search, ranges);
    for key in &keys {
        if statement.lock_row(&view, table, key, mode)?.is_none() {
            return Ok(Attempt::RowChanged);
        }
    }
    let last = only.or(keys.last()).map(Vec::as_slice);
    let found = (keys.len() + usize::from(only.is_some()), last);
    Ok(
        match statement.lock_searches(&view, &mut searches, found)? {
            true => Attempt::Done(Locked { view, rows }),
            false => Attempt::RowChanged,
        },
    )
}

/// Finds rows and locks those that can be locked at once and are what the view shows.
fn lock_what_is_free(
    handle: &SessionHandle,
    (read, mode): (&Read, LockMode),
    (table, view): (&Arc<Table>, ReadView),
    ready: &Ready,
    statement: &mut StatementTransaction,
) -> Result<Attempt> {
    let mut left = ready.wanted(read);
    let reader = reader_of(read, (table, &view), handle, left);
    let (mut new, mut rows): (Vec<Vec<u8>>, _) = (Vec::new(), Sorter::default());
    let mut fits = true;
    let mut is_complete = true;
    if left > 0 {
        is_complete =
            reader.for_each_of(ready.most(), &ready.bound, read.direction, |key, row| {
                let Some(is_new) = lock_row_or_skip(statement, &view, table, key, mode)? else {
                    return Ok(ControlFlow::Continue(()));
                };
                if is_new {
                    new.push(key.to_vec());
                }
                fits = rows.push(read.sort_keys(), (table, &view), &row)?;
                left -= 1;
                Ok(match fits && left > 0 {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })?;
    }
    if !fits || !is_complete {
        for key in &new {
            statement.changes().unlock_row(&table.clustered, key);
        }
        return Ok(Attempt::TooLarge);
    }
    Ok(Attempt::Done(Locked { view, rows }))
}
