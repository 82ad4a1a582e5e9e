//! `sys`: what `performance_schema` tells, put together for people. A few of MySQL's views, with its columns.
//!
//! Those with `x$` in front of their names are for tools, which want statements whole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::{ShownLock, TransactionId};
use sheaf_types::text::quoting::quoted_name;

use crate::catalog_views::performance_schema::locks::{LockView, id_of, mode_of, rows_locked};
use crate::catalog_views::performance_schema::table_io::for_each_table;
use crate::catalog_views::virtual_table::{Columns, VirtualTable, owned};
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::{Session, SessionHandle};
pub(crate) use crate::virtual_database::SYS as NAME;

const NUMBER: Cells = Cells::Unsigned;
const TEXT: Cells = Cells::Text(64);
/// Characters of a statement that people are shown (`statement_truncate_len`).
const SHOWN_CHARACTERS: usize = 64;
/// The database whose indexes are the server's own business.
const SYSTEM: &str = "mysql";

pub(crate) const TABLES: [VirtualTable; 3] = [
    VirtualTable {
        name: "innodb_lock_waits",
        columns: lock_wait_columns,
        fill: shortened_lock_waits,
    },
    VirtualTable {
        name: "schema_unused_indexes",
        columns: unused_columns,
        fill: unused_indexes,
    },
    VirtualTable {
        name: "x$innodb_lock_waits",
        columns: lock_wait_columns,
        fill: whole_lock_waits,
    },
];

fn unused_columns() -> Columns {
    owned(&[
        ("object_schema", Cells::Name),
        ("object_name", Cells::Name),
        ("index_name", Cells::Name),
    ])
}

/// Indexes through which nothing was read since the start. Not those that keep values different.
fn unused_indexes(session: &Session, rows: &mut Rows) -> Result<()> {
    for_each_table(session, |table, uses| {
        let definition = &table.definition;
        if definition.database == SYSTEM {
            return;
        }
        for index in definition.secondary.iter().filter(|index| !index.unique) {
            let is_it = |name: &Option<String>| name.as_deref() == Some(index.name.as_str());
            let used = uses.iter().find(|(name, _)| is_it(name));
            if used.is_none_or(|(_, used)| used.fetched == 0) {
                rows.push(vec![
                    definition.database.clone().into(),
                    definition.name.clone().into(),
                    index.name.clone().into(),
                ]);
            }
        }
    })
}

fn lock_wait_columns() -> Columns {
    owned(&[
        ("wait_started", Cells::Moment),
        ("wait_age", TEXT),
        ("wait_age_secs", Cells::Signed),
        ("locked_table", Cells::Text(256)),
        ("locked_table_schema", Cells::Name),
        ("locked_table_name", Cells::Name),
        ("locked_table_partition", Cells::Name),
        ("locked_table_subpartition", Cells::Name),
        ("locked_index", Cells::Name),
        ("locked_type", Cells::Text(32)),
        ("waiting_trx_id", NUMBER),
        ("waiting_trx_started", Cells::Moment),
        ("waiting_trx_age", TEXT),
        ("waiting_trx_rows_locked", NUMBER),
        ("waiting_trx_rows_modified", NUMBER),
        ("waiting_pid", NUMBER),
        ("waiting_query", Cells::Text(u32::MAX)),
        ("waiting_lock_id", Cells::Text(128)),
        ("waiting_lock_mode", Cells::Text(32)),
        ("blocking_trx_id", NUMBER),
        ("blocking_pid", NUMBER),
        ("blocking_query", Cells::Text(u32::MAX)),
        ("blocking_lock_id", Cells::Text(128)),
        ("blocking_lock_mode", Cells::Text(32)),
        ("blocking_trx_started", Cells::Moment),
        ("blocking_trx_age", TEXT),
        ("blocking_trx_rows_locked", NUMBER),
        ("blocking_trx_rows_modified", NUMBER),
        ("sql_kill_blocking_query", Cells::Text(33)),
        ("sql_kill_blocking_connection", Cells::Text(27)),
    ])
}

fn shortened_lock_waits(session: &Session, rows: &mut Rows) -> Result<()> {
    lock_waits(session, rows, SHOWN_CHARACTERS)
}

fn whole_lock_waits(session: &Session, rows: &mut Rows) -> Result<()> {
    lock_waits(session, rows, usize::MAX)
}

/// A time as MySQL prints it.
fn clock(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60 % 60, seconds / 3600);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

/// The session that has a lock, or waits for it.
struct Party {
    handle: Option<Arc<SessionHandle>>,
    began_micros: Option<i64>,
    locks: u64,
    modified: u64,
    query: Option<String>,
}

fn lock_waits(session: &Session, rows: &mut Rows, longest: usize) -> Result<()> {
    let view = LockView::of(session);
    let sessions: BTreeMap<u64, Arc<SessionHandle>> = session
        .engine
        .sessions()
        .into_iter()
        .map(|handle| (handle.id(), handle))
        .collect();
    let locks_of = |transaction: TransactionId| view.shown.counts.get(&transaction).copied();
    let party = |lock: &ShownLock| {
        let handle = view.session_of(lock).and_then(|id| sessions.get(&id));
        let open = handle.and_then(|handle| handle.open_transaction());
        let query = handle.and_then(|handle| handle.activity().statement);
        let shown = |query: String| match query.chars().count() > longest {
            true => query.chars().take(longest).chain("...".chars()).collect(),
            false => query,
        };
        Party {
            handle: handle.cloned(),
            began_micros: open.map(|(_, began)| began),
            modified: handle.map_or(0, |handle| handle.changed_rows()),
            locks: locks_of(lock.transaction).unwrap_or_default() as u64,
            query: query.map(shown),
        }
    };
    let now = view.seen_micros;
    let zone = session.variables.time_zone();
    let moment = |micros: i64| Cell::Signed(zone.local(micros));
    let age = |began: Option<i64>| began.map(|began| clock((now - began) / 1_000_000));
    for (requested, blocking) in &view.shown.waits {
        let (wanted, held) = (&view.shown.locks[*requested], &view.shown.locks[*blocking]);
        let (waiter, blocker) = (party(wanted), party(held));
        let waited = view.shown.waiting.get(&wanted.transaction);
        let waited = waited.copied().unwrap_or(Duration::ZERO);
        let seconds = i64::try_from(waited.as_secs()).unwrap_or(i64::MAX);
        let began = now - i64::try_from(waited.as_micros()).unwrap_or(0);
        let [database, table, index] = view.names_of(wanted);
        let quoted = |name: &Option<String>| quoted_name(name.as_deref().unwrap_or_default());
        let locked = format!("{}.{}", quoted(&database), quoted(&table));
        let id = blocker.handle.as_ref().map(|handle| handle.id());
        rows.push(vec![
            moment(began),
            clock(seconds).into(),
            seconds.into(),
            locked.into(),
            database.into(),
            table.into(),
            Cell::Null,
            Cell::Null,
            index.into(),
            "RECORD".into(),
            wanted.transaction.0.into(),
            waiter.began_micros.map_or(Cell::Null, moment),
            age(waiter.began_micros).into(),
            rows_locked(waiter.locks, waiter.modified).into(),
            waiter.modified.into(),
            waiter.handle.map(|handle| handle.id()).into(),
            waiter.query.into(),
            id_of(wanted).into(),
            mode_of(wanted).into(),
            held.transaction.0.into(),
            id.into(),
            blocker.query.into(),
            id_of(held).into(),
            mode_of(held).into(),
            blocker.began_micros.map_or(Cell::Null, moment),
            age(blocker.began_micros).into(),
            rows_locked(blocker.locks, blocker.modified).into(),
            blocker.modified.into(),
            id.map(|id| format!("KILL QUERY {id}")).into(),
            id.map(|id| format!("KILL {id}")).into(),
        ]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_clocks() {
        assert_eq!(clock(3_725), "01:02:05");
        assert_eq!(clock(-1), "00:00:00");
    }
}
