//! `performance_schema`: what statements did and what they cost, by tables that monitoring tools read.
//!
//! Columns are those of MySQL 8. What is not measured is 0, which docs/compatibility.md lists.
//!
//! | file | tables |
//! |---|---|
//! | [`statements`] | statements by digest |
//! | [`threads`] | sessions |
//! | [`locks`] | locks of rows, and which transaction waits for which |
//! | [`metadata_locks`] | which sessions hold a table, and which wait for it |
//! | [`resources`] | files and memory |
//! | [`absent`] | what Sheaf does not have or does not measure: empty |
//! | [`table_io`] | what was read through indexes and changed in tables |
//! | [`replication`] | the server as a replica |
//! | [`persisted`] | system variables that SET PERSIST has kept |
//!
//! Status counters and variables have their tables here, too, as MySQL 8 has. Reading them takes no privilege. For all
//! others that is SELECT.

mod absent;
pub(super) mod locks;
mod metadata_locks;
mod persisted;
mod replication;
mod resources;
mod statements;
pub(crate) mod table_io;
mod threads;

use crate::catalog_views::server_rows::status_entries;
use crate::catalog_views::virtual_table::{VirtualTable, nothing};
use crate::error::{Result, SqlError};
use crate::parser::statement::TableName;
use crate::query::rows::{Cells, Rows};
use crate::rights::Client;
use crate::session::Session;
use crate::session::result::ResultSink;
pub(crate) use crate::virtual_database::PERFORMANCE_SCHEMA as NAME;
use crate::virtual_database::{FOR_EVERYBODY, is_for_everybody};

const DIGESTS: &str = "events_statements_summary_by_digest";
const HISTOGRAMS: &str = "events_statements_histogram_by_digest";
const HISTOGRAM: &str = "events_statements_histogram_global";
const BY_INDEX: &str = "table_io_waits_summary_by_index_usage";
const BY_TABLE: &str = "table_io_waits_summary_by_table";

/// The tables that take a privilege.
pub(crate) const TABLES: [VirtualTable; 22] = [
    VirtualTable {
        name: "data_lock_waits",
        columns: locks::wait_columns,
        fill: locks::waits,
    },
    VirtualTable {
        name: "data_locks",
        columns: locks::lock_columns,
        fill: locks::locks,
    },
    VirtualTable {
        name: HISTOGRAMS,
        columns: statements::histogram_columns_by_digest,
        fill: statements::histograms_by_digest,
    },
    VirtualTable {
        name: HISTOGRAM,
        columns: statements::histogram_columns,
        fill: statements::histogram_of_all,
    },
    VirtualTable {
        name: DIGESTS,
        columns: statements::digest_columns,
        fill: statements::by_digest,
    },
    VirtualTable {
        name: "events_waits_summary_global_by_event_name",
        columns: absent::waits,
        fill: nothing,
    },
    VirtualTable {
        name: "file_summary_by_event_name",
        columns: resources::event_columns,
        fill: resources::files_by_event,
    },
    VirtualTable {
        name: "file_summary_by_instance",
        columns: resources::file_columns,
        fill: resources::files_by_name,
    },
    VirtualTable {
        name: "memory_summary_global_by_event_name",
        columns: resources::memory_columns,
        fill: resources::memory,
    },
    VirtualTable {
        name: "metadata_locks",
        columns: metadata_locks::columns,
        fill: metadata_locks::locks,
    },
    VirtualTable {
        name: "persisted_variables",
        columns: persisted::columns,
        fill: persisted::variables,
    },
    VirtualTable {
        name: "replication_applier_status",
        columns: replication::applier_columns,
        fill: replication::applier,
    },
    VirtualTable {
        name: "replication_applier_status_by_coordinator",
        columns: replication::coordinator_columns,
        fill: nothing,
    },
    VirtualTable {
        name: "replication_applier_status_by_worker",
        columns: replication::worker_columns,
        fill: replication::worker,
    },
    VirtualTable {
        name: "replication_connection_configuration",
        columns: replication::configuration_columns,
        fill: replication::configuration,
    },
    VirtualTable {
        name: "replication_connection_status",
        columns: replication::connection_columns,
        fill: replication::connection,
    },
    VirtualTable {
        name: "replication_group_member_stats",
        columns: absent::group_member_statistics,
        fill: nothing,
    },
    VirtualTable {
        name: "replication_group_members",
        columns: absent::group_members,
        fill: nothing,
    },
    VirtualTable {
        name: BY_INDEX,
        columns: table_io::index_columns,
        fill: table_io::by_index,
    },
    VirtualTable {
        name: BY_TABLE,
        columns: table_io::table_columns,
        fill: table_io::by_table,
    },
    VirtualTable {
        name: "table_lock_waits_summary_by_table",
        columns: absent::table_locks,
        fill: nothing,
    },
    VirtualTable {
        name: "threads",
        columns: threads::columns,
        fill: threads::threads,
    },
];

/// The names of all tables, sorted.
pub(crate) fn table_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    names.extend(FOR_EVERYBODY);
    names.sort_unstable();
    names
}

/// The columns of a table, as it is without rows.
///
/// # Errors
/// 1146 for an unknown table.
pub(crate) fn shape_of(table: &str) -> Result<Rows> {
    let is_for_everybody = FOR_EVERYBODY
        .iter()
        .any(|name| name.eq_ignore_ascii_case(table));
    match VirtualTable::named(&TABLES, table) {
        Some(found) => Ok(found.shape()),
        None if is_for_everybody => Ok(name_values(Vec::new())),
        None => Err(SqlError::no_such_table(NAME, table)),
    }
}

/// The rows of a table as of now.
///
/// # Errors
/// 1146 for an unknown table.
pub(crate) fn rows_of(table: &str, session: &Session) -> Result<Rows> {
    if let Some(found) = VirtualTable::named(&TABLES, table) {
        return found.rows(session);
    }
    let globals = || {
        session.engine.show_gtids();
        session.engine.globals().all(true)
    };
    Ok(match table.to_ascii_lowercase().as_str() {
        "global_status" => name_values(status_entries(session, true)),
        "global_variables" => name_values(globals()),
        "session_status" => name_values(status_entries(session, false)),
        "session_variables" => {
            session.engine.show_gtids();
            name_values(session.shown_variables())
        }
        _ => return Err(SqlError::no_such_table(NAME, table)),
    })
}

fn name_values(entries: Vec<(&'static str, String)>) -> Rows {
    let mut rows = Rows::new([
        ("VARIABLE_NAME", Cells::Text(64)),
        ("VARIABLE_VALUE", Cells::Text(1024)),
    ]);
    for (name, value) in entries {
        rows.push(vec![name.into(), value.into()]);
    }
    rows
}

/// TRUNCATE TABLE of a table here: what was counted is forgotten. False: it is a table of another database.
///
/// # Errors
/// 1142 for a table that is not truncated, and 1146.
pub(crate) fn truncate_counted(
    session: &mut Session,
    name: &TableName,
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let (database, table) = session.resolve(name)?;
    if !database.eq_ignore_ascii_case(NAME) {
        return Ok(false);
    }
    let lower = table.to_ascii_lowercase();
    match lower.as_str() {
        DIGESTS => session.engine.clear_digests(),
        HISTOGRAMS | HISTOGRAM => session.engine.clear_histograms(),
        BY_INDEX | BY_TABLE => session.engine.clear_index_uses(),
        _ => return Err(no_truncation(&session.client, &database, &table)),
    }
    session.ok(sink, 0, String::new()).map(|()| true)
}

fn no_truncation(client: &Client, database: &str, table: &str) -> SqlError {
    let is_known = VirtualTable::named(&TABLES, table).is_some();
    match is_known || is_for_everybody(database, table) {
        true => client.denied_table(table, "DROP"),
        false => SqlError::no_such_table(NAME, table),
    }
}
