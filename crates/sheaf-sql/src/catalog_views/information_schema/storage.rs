//! The storage by InnoDB's tables: transactions, metrics, the space that tables take, and compressed pages, of which
//! there are none.

use sheaf_storage::PAGE_SIZE;

use super::{AskedTables, LONG_TEXT, NUMBER, TEXT, for_each_table};
use crate::catalog_views::performance_schema::locks::{LockView, id_of, rows_locked};
use crate::engine::Engine;
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;

const SIGNED: Cells = Cells::Signed;
const MOMENT: Cells = Cells::Moment;

/// `INNODB_CMP`
pub(super) fn compressed_pages() -> Rows {
    Rows::new([
        ("page_size", SIGNED),
        ("compress_ops", SIGNED),
        ("compress_ops_ok", SIGNED),
        ("compress_time", SIGNED),
        ("uncompress_ops", SIGNED),
        ("uncompress_time", SIGNED),
    ])
}

/// `INNODB_CMPMEM`
pub(super) fn compressed_pages_in_memory() -> Rows {
    Rows::new([
        ("page_size", SIGNED),
        ("buffer_pool_instance", SIGNED),
        ("pages_used", SIGNED),
        ("pages_free", SIGNED),
        ("relocation_ops", SIGNED),
        ("relocation_time", SIGNED),
    ])
}

/// `INNODB_METRICS`: the status variables of the server that are numbers.
pub(super) fn metrics(engine: &Engine) -> Rows {
    let mut rows = Rows::new([
        ("NAME", Cells::Text(193)),
        ("SUBSYSTEM", Cells::Text(193)),
        ("COUNT", SIGNED),
        ("MAX_COUNT", SIGNED),
        ("MIN_COUNT", SIGNED),
        ("AVG_COUNT", Cells::Double),
        ("COUNT_RESET", SIGNED),
        ("MAX_COUNT_RESET", SIGNED),
        ("MIN_COUNT_RESET", SIGNED),
        ("AVG_COUNT_RESET", Cells::Double),
        ("TIME_ENABLED", MOMENT),
        ("TIME_DISABLED", MOMENT),
        ("TIME_ELAPSED", SIGNED),
        ("TIME_RESET", MOMENT),
        ("STATUS", Cells::Text(193)),
        ("TYPE", Cells::Text(193)),
        ("COMMENT", Cells::Text(193)),
    ]);
    for metric in engine.metrics() {
        let name = metric.name.to_ascii_lowercase();
        let Some(name) = name.strip_prefix("innodb_") else {
            continue;
        };
        // As MySQL has them here.
        let name = match name == "deadlocks" || name.starts_with("row_lock_") {
            true => format!("lock_{name}"),
            false => name.to_string(),
        };
        let subsystem = name.split('_').next().unwrap_or(&name).to_string();
        let count = Cell::Signed(i64::try_from(metric.value).unwrap_or(i64::MAX));
        let kind = match metric.is_counter {
            true => "counter",
            false => "value",
        };
        let mut row: Vec<Cell> = vec![name.into(), subsystem.into(), count.clone()];
        row.extend([Cell::Null, Cell::Null, Cell::Null, count]);
        row.extend((0..7).map(|_| Cell::Null));
        row.extend(["enabled".into(), kind.into(), metric.meaning.into()]);
        rows.push(row);
    }
    rows
}

/// `INNODB_TABLESPACES`: each table as if it had a space of its own. All of them lie in one file.
pub(super) fn spaces(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("SPACE", NUMBER),
        ("NAME", Cells::Text(655)),
        ("FLAG", NUMBER),
        ("ROW_FORMAT", TEXT),
        ("PAGE_SIZE", NUMBER),
        ("ZIP_PAGE_SIZE", NUMBER),
        ("SPACE_TYPE", TEXT),
        ("FS_BLOCK_SIZE", NUMBER),
        ("FILE_SIZE", NUMBER),
        ("ALLOCATED_SIZE", NUMBER),
        ("AUTOEXTEND_SIZE", NUMBER),
        ("SERVER_VERSION", TEXT),
        ("SPACE_VERSION", NUMBER),
        ("ENCRYPTION", TEXT),
        ("STATE", TEXT),
    ]);
    let page_bytes = PAGE_SIZE as u64;
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        let trees = table.secondary.iter().chain([&table.clustered]);
        let bytes: u64 = trees.map(|tree| tree.statistics().bytes).sum();
        rows.push(vec![
            table.clustered.id().0.into(),
            format!("{}/{}", definition.database, definition.name).into(),
            Cell::Unsigned(0),
            "Dynamic".into(),
            page_bytes.into(),
            Cell::Unsigned(0),
            "Single".into(),
            Cell::Unsigned(0),
            bytes.into(),
            bytes.into(),
            Cell::Unsigned(0),
            "".into(),
            Cell::Unsigned(0),
            "N".into(),
            "normal".into(),
        ]);
        Ok(())
    })?;
    Ok(rows)
}

/// `INNODB_TRX`
pub(super) fn transactions(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("trx_id", NUMBER),
        ("trx_state", TEXT),
        ("trx_started", MOMENT),
        ("trx_requested_lock_id", Cells::Text(126)),
        ("trx_wait_started", MOMENT),
        ("trx_weight", NUMBER),
        ("trx_mysql_thread_id", NUMBER),
        ("trx_query", LONG_TEXT),
        ("trx_operation_state", TEXT),
        ("trx_tables_in_use", NUMBER),
        ("trx_tables_locked", NUMBER),
        ("trx_lock_structs", NUMBER),
        ("trx_lock_memory_bytes", NUMBER),
        ("trx_rows_locked", NUMBER),
        ("trx_rows_modified", NUMBER),
        ("trx_concurrency_tickets", NUMBER),
        ("trx_isolation_level", TEXT),
        ("trx_unique_checks", SIGNED),
        ("trx_foreign_key_checks", SIGNED),
        ("trx_last_foreign_key_error", Cells::Text(256)),
        ("trx_adaptive_hash_latched", SIGNED),
        ("trx_adaptive_hash_timeout", NUMBER),
        ("trx_is_read_only", SIGNED),
        ("trx_autocommit_non_locking", SIGNED),
        ("trx_schedule_weight", NUMBER),
    ]);
    let view = LockView::of(session);
    let zone = session.variables.time_zone();
    let moment = |micros: i64| Cell::Signed(zone.local(micros));
    let now = view.seen_micros;
    for other in session.engine.sessions() {
        let Some((transaction, began)) = other.open_transaction() else {
            continue;
        };
        let activity = other.activity();
        if !session.client.sees_sessions_of(&activity.user) {
            continue;
        }
        let waited = view.shown.waiting.get(&transaction);
        let wait_began = waited.map(|waited| now - i64::try_from(waited.as_micros()).unwrap_or(0));
        let mut locks = view.shown.locks.iter();
        let requested = locks.find(|lock| lock.transaction == transaction && !lock.is_granted);
        let locked = view.shown.counts.get(&transaction).copied();
        let locks = locked.unwrap_or_default() as u64;
        let modified = other.changed_rows();
        let rows_locked = rows_locked(locks, modified);
        let unknown = || Cell::Unsigned(0);
        rows.push(vec![
            transaction.0.into(),
            if waited.is_some() {
                "LOCK WAIT"
            } else {
                "RUNNING"
            }
            .into(),
            moment(began),
            requested.map(id_of).into(),
            wait_began.map_or(Cell::Null, moment),
            Cell::Unsigned(locks.saturating_add(modified)),
            other.id().into(),
            activity.statement.into(),
            activity.state.into(),
            unknown(),
            unknown(),
            Cell::Unsigned(locks),
            unknown(),
            Cell::Unsigned(rows_locked),
            Cell::Unsigned(modified),
            unknown(),
            Cell::Null,
            Cell::Signed(1),
            Cell::Signed(1),
            Cell::Null,
            Cell::Signed(0),
            unknown(),
            Cell::Signed(0),
            Cell::Signed(0),
            Cell::Null,
        ]);
    }
    rows
}
