//! Files and memory of the whole server. How long anything took is not measured.

use sheaf_storage::DATA_FILE;

use crate::catalog_views::virtual_table::Columns;
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;

const NUMBER: Cells = Cells::Unsigned;
/// The log, in the data directory.
const LOG_FILE: &str = "sheaf.log";

/// What a file was used for.
struct FileUse {
    name: &'static str,
    event: &'static str,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    syncs: u64,
}

fn files(session: &Session) -> [FileUse; 2] {
    let pool = session.engine.storage().pool_counters();
    let log = session.engine.gauges().log;
    [
        FileUse {
            name: DATA_FILE,
            event: "wait/io/file/innodb/innodb_data_file",
            reads: pool.data_reads,
            read_bytes: pool.data_read,
            writes: pool.write_requests,
            written_bytes: pool.data_written,
            syncs: pool.syncs,
        },
        FileUse {
            name: LOG_FILE,
            event: "wait/io/file/innodb/innodb_log_file",
            reads: 0,
            read_bytes: 0,
            writes: log.flushes,
            written_bytes: log.written_bytes,
            syncs: log.flushes,
        },
    ]
}

/// A count with the four times that are not measured.
fn timed(columns: &mut Columns, count: &str, timer: &str) {
    columns.push((format!("COUNT_{count}"), NUMBER));
    for what in ["SUM", "MIN", "AVG", "MAX"] {
        columns.push((format!("{what}_TIMER_{timer}"), NUMBER));
    }
}

fn use_columns(names: &[(&str, Cells)]) -> Columns {
    let names = names.iter();
    let mut columns: Columns = names
        .map(|(name, cells)| (name.to_string(), *cells))
        .collect();
    timed(&mut columns, "STAR", "WAIT");
    for kind in ["READ", "WRITE"] {
        timed(&mut columns, kind, kind);
        columns.push((format!("SUM_NUMBER_OF_BYTES_{kind}"), Cells::Signed));
    }
    timed(&mut columns, "MISC", "MISC");
    columns
}

fn use_cells(file: &FileUse) -> Vec<Cell> {
    let mut cells = Vec::new();
    let timed = |cells: &mut Vec<Cell>, count: u64| {
        cells.push(count.into());
        cells.extend((0..4).map(|_| Cell::Unsigned(0)));
    };
    let bytes = |bytes: u64| Cell::Signed(i64::try_from(bytes).unwrap_or(i64::MAX));
    timed(&mut cells, file.reads + file.writes + file.syncs);
    timed(&mut cells, file.reads);
    cells.push(bytes(file.read_bytes));
    timed(&mut cells, file.writes);
    cells.push(bytes(file.written_bytes));
    timed(&mut cells, file.syncs);
    cells
}

pub(super) fn event_columns() -> Columns {
    use_columns(&[("EVENT_NAME", Cells::Text(128))])
}

/// `file_summary_by_event_name`.
pub(super) fn files_by_event(session: &Session, rows: &mut Rows) -> Result<()> {
    for file in files(session) {
        let mut row = vec![file.event.into()];
        row.extend(use_cells(&file));
        rows.push(row);
    }
    Ok(())
}

pub(super) fn file_columns() -> Columns {
    use_columns(&[
        ("FILE_NAME", Cells::Text(512)),
        ("EVENT_NAME", Cells::Text(128)),
        ("OBJECT_INSTANCE_BEGIN", NUMBER),
    ])
}

/// `file_summary_by_instance`.
pub(super) fn files_by_name(session: &Session, rows: &mut Rows) -> Result<()> {
    for file in files(session) {
        let path = session.engine.directory().join(file.name);
        let mut row = vec![
            path.display().to_string().into(),
            file.event.into(),
            Cell::Unsigned(0),
        ];
        row.extend(use_cells(&file));
        rows.push(row);
    }
    Ok(())
}

pub(super) fn memory_columns() -> Columns {
    let counts = ["COUNT_ALLOC", "COUNT_FREE"];
    let sums = ["SUM_NUMBER_OF_BYTES_ALLOC", "SUM_NUMBER_OF_BYTES_FREE"];
    let gauges = [
        "LOW_COUNT_USED",
        "CURRENT_COUNT_USED",
        "HIGH_COUNT_USED",
        "LOW_NUMBER_OF_BYTES_USED",
        "CURRENT_NUMBER_OF_BYTES_USED",
        "HIGH_NUMBER_OF_BYTES_USED",
    ];
    let name = ("EVENT_NAME".to_string(), Cells::Text(128));
    let numbers = counts.into_iter().chain(sums);
    let numbers = numbers.map(|name| (name.to_string(), NUMBER));
    let gauges = gauges.map(|name| (name.to_string(), Cells::Signed));
    [name].into_iter().chain(numbers).chain(gauges).collect()
}

/// `memory_summary_global_by_event_name`: what is in use now.
pub(super) fn memory(session: &Session, rows: &mut Rows) -> Result<()> {
    let gauges = session.engine.gauges();
    let pool_bytes = session.engine.memory().pool_bytes as u64;
    let used = [
        ("memory/innodb/buf_buf_pool", pool_bytes),
        ("memory/sheaf/old_row_versions", gauges.version_bytes),
        ("memory/sheaf/query_memory", gauges.query_memory_bytes),
        ("memory/sheaf/statement_cache", gauges.statement_cache.bytes),
    ];
    for (name, bytes) in used {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut row: Vec<Cell> = vec![name.into()];
        row.extend((0..4).map(|_| Cell::Unsigned(0)));
        row.extend([0, 0, 0, 0, bytes, bytes].map(Cell::Signed));
        rows.push(row);
    }
    Ok(())
}
