//! SHOW ENGINE INNODB STATUS: what the storage does, as one text with InnoDB's headings.

use std::fmt::{self, Write};

use sheaf_table::Privileges;
use sheaf_types::error::codes;
use sheaf_types::temporal::push_datetime;

use crate::catalog_views::performance_schema::locks::LockView;
use crate::error::{Result, SqlError};
use crate::query::rows::{Cells, Rows};
use crate::session::Session;

const TEXT: Cells = Cells::Text(64);
/// Engines without a status of their own, which tables may name.
const OTHERS: [&str; 7] = [
    "ARCHIVE",
    "ARIA",
    "CSV",
    "HEAP",
    "MEMORY",
    "MYISAM",
    "PERFORMANCE_SCHEMA",
];

/// # Errors
/// 1227 without PROCESS, 1286 for an unknown engine.
pub(super) fn engine_status(session: &Session, engine: &str) -> Result<Rows> {
    session.client.check_one_of(Privileges::PROCESS)?;
    let mut rows = Rows::new([
        ("Type", TEXT),
        ("Name", Cells::Text(512)),
        ("Status", Cells::Text(u32::MAX)),
    ]);
    let is = |name: &str| name.eq_ignore_ascii_case(engine);
    if is("INNODB") || is("SHEAF") {
        let mut text = String::new();
        // A text takes whatever is written to it.
        let _ = write_status(session, &mut text);
        rows.push(vec!["InnoDB".into(), "".into(), text.into()]);
    } else if !OTHERS.iter().any(|name| is(name)) {
        return Err(SqlError::new(
            codes::UNKNOWN_STORAGE_ENGINE,
            format!("Unknown storage engine '{engine}'"),
        ));
    }
    Ok(rows)
}

fn write_status(session: &Session, text: &mut String) -> fmt::Result {
    let now = session.statement.start_micros;
    let mut date = String::new();
    push_datetime(session.variables.time_zone().local(now), 0, &mut date);
    writeln!(text, "\n{}", "=".repeat(37))?;
    writeln!(text, "{date} INNODB MONITOR OUTPUT\n{}", "=".repeat(37))?;
    write_transactions(session, text, now)?;
    let pool = session.engine.storage().pool_counters();
    let gauges = session.engine.gauges();
    heading(text, "FILE I/O")?;
    writeln!(
        text,
        "{} OS file reads, {} OS file writes, {} OS fsyncs",
        pool.data_reads, pool.write_requests, pool.syncs
    )?;
    heading(text, "LOG")?;
    writeln!(text, "Log sequence number {}", gauges.log.end)?;
    writeln!(text, "{} log i/o's done", gauges.log.flushes)?;
    heading(text, "BUFFER POOL AND MEMORY")?;
    let data = pool.pages_total - pool.pages_free;
    writeln!(text, "Buffer pool size   {}", pool.pages_total)?;
    writeln!(text, "Free buffers       {}", pool.pages_free)?;
    writeln!(text, "Database pages     {data}")?;
    writeln!(text, "Modified db pages  {}", pool.pages_dirty)?;
    writeln!(
        text,
        "Pages read {}, written {}",
        pool.pages_read, pool.pages_written
    )?;
    heading(text, "ROW OPERATIONS")?;
    let running = gauges.threads_running;
    writeln!(text, "{running} queries inside InnoDB, 0 queries in queue")?;
    let (handler, _) = session.engine.global_counters();
    writeln!(
        text,
        "Number of rows inserted {}, updated {}, deleted {}, read {}",
        handler.handler_write.get(),
        handler.handler_update.get(),
        handler.handler_delete.get(),
        handler.rows_read.get()
    )?;
    writeln!(text, "{}", "-".repeat(28))?;
    writeln!(text, "END OF INNODB MONITOR OUTPUT\n{}", "=".repeat(28))
}

fn write_transactions(session: &Session, text: &mut String, now: i64) -> fmt::Result {
    let view = LockView::of(session);
    heading(text, "TRANSACTIONS")?;
    let versions = session.engine.gauges().leaves_with_versions;
    writeln!(text, "Leaves with old versions of rows {versions}")?;
    writeln!(text, "LIST OF TRANSACTIONS FOR EACH SESSION:")?;
    for other in session.engine.sessions() {
        let Some((transaction, began)) = other.open_transaction() else {
            continue;
        };
        let seconds = (now - began).max(0) / 1_000_000;
        writeln!(text, "---TRANSACTION {transaction}, ACTIVE {seconds} sec")?;
        let locks = view.shown.counts.get(&transaction).copied();
        if let Some(waited) = view.shown.waiting.get(&transaction) {
            writeln!(
                text,
                "LOCK WAIT {} lock struct(s), waiting for {} sec",
                locks.unwrap_or_default(),
                waited.as_secs()
            )?;
        } else if let Some(locks) = locks {
            writeln!(text, "{locks} lock struct(s)")?;
        }
        let changed = other.changed_rows();
        if changed > 0 {
            writeln!(text, "undo log entries {changed}")?;
        }
        let activity = other.activity();
        writeln!(
            text,
            "MySQL thread id {}, {} {} {}",
            other.id(),
            activity.host,
            activity.user,
            activity.state
        )?;
        if let Some(statement) = activity.statement {
            writeln!(text, "{statement}")?;
        }
    }
    Ok(())
}

fn heading(text: &mut String, name: &str) -> fmt::Result {
    let line = "-".repeat(name.len());
    writeln!(text, "{line}\n{name}\n{line}")
}
