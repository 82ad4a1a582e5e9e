//! A timing client over the MySQL protocol, for Sheaf and MariaDB alike.

use std::path::Path;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler, OptsBuilder, Value};
use sheaf_cli::tpch::{TABLES, schema_statements};

use super::{TextRows, Timed};
use crate::error::BenchError;

/// Counters worth showing beside a time.
const COUNTERS: [&str; 10] = [
    "Handler_read_key",
    "Handler_read_next",
    "Handler_read_prev",
    "Handler_read_rnd",
    "Handler_read_rnd_next",
    "Handler_mrr_init",
    "Handler_mrr_rowid_refills",
    "Handler_icp_attempts",
    "Handler_icp_match",
    "Innodb_buffer_pool_read_requests",
];

/// Opens a session as root on the loopback interface.
pub fn connect(
    server: &'static str,
    port: u16,
    database: Option<&str>,
) -> Result<Conn, BenchError> {
    connect_for(server, port, database, None)
}

/// As [`connect`]; a server that sends nothing for so long is taken to hang.
pub fn connect_for(
    server: &'static str,
    port: u16,
    database: Option<&str>,
    patience: Option<Duration>,
) -> Result<Conn, BenchError> {
    let options = OptsBuilder::new()
        .read_timeout(patience)
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("root"))
        .db_name(database)
        .prefer_socket(false)
        .max_allowed_packet(Some(64 * 1024 * 1024));
    Conn::new(options).map_err(|error| BenchError::server(server, error))
}

/// Rows of an INSERT while a table is filled.
const ROWS_OF_INSERT: u64 = 1_000;

/// Fills the table `t` with so many rows, numbered from 0. `row` writes one with its parentheses.
pub fn fill(
    session: &mut Conn,
    server: &'static str,
    rows: u64,
    row: impl Fn(u64) -> String,
) -> Result<(), BenchError> {
    for first in (0..rows).step_by(ROWS_OF_INSERT as usize) {
        let inserted: Vec<String> = (first..(first + ROWS_OF_INSERT).min(rows))
            .map(&row)
            .collect();
        let sql = format!("insert into t values {}", inserted.join(","));
        let done = session.query_drop(sql);
        done.map_err(|error| BenchError::server(server, error))?;
    }
    Ok(())
}

/// Runs one statement in a fresh session and returns its time, rows and counters.
pub fn run(
    server: &'static str,
    port: u16,
    sql: &str,
    settings: &[&str],
) -> Result<(Timed, Vec<(String, u64)>), BenchError> {
    let failed = |error: mysql::Error| BenchError::server(server, error);
    let mut session = connect(server, port, Some(DATABASE))?;
    for setting in settings {
        session.query_drop(setting).map_err(failed)?;
    }
    session.query_drop("flush status").map_err(failed)?;
    let start = Instant::now();
    let rows: Vec<mysql::Row> = session
        .query(sql)
        .map_err(|error| BenchError::of_statement(server, error))?;
    let elapsed = start.elapsed();
    let status: Vec<(String, String)> = session
        .query("show session status like 'Handler%'")
        .map_err(failed)?;
    let counters = status
        .into_iter()
        .filter(|(name, _)| COUNTERS.contains(&name.as_str()))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .filter(|(_, value)| *value > 0)
        .collect();
    Ok((
        Timed {
            elapsed,
            rows: as_text(rows),
        },
        counters,
    ))
}

/// Rows as text. Over the text protocol every value that is not NULL arrives as its text.
pub fn as_text(rows: Vec<mysql::Row>) -> TextRows {
    rows.into_iter()
        .map(|row| {
            row.unwrap()
                .into_iter()
                .map(|value| match value {
                    Value::NULL => None,
                    Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
                    other => Some(other.as_sql(true)),
                })
                .collect()
        })
        .collect()
}

/// The database that holds the TPC-H tables.
pub const DATABASE: &str = "tpch";

/// Creates the TPC-H tables with all their indexes and loads them with LOAD DATA LOCAL INFILE.
pub fn load(server: &'static str, port: u16, folder: &Path) -> Result<(), BenchError> {
    let failed = |error: mysql::Error| BenchError::server(server, error);
    let mut session = connect(server, port, None)?;
    let folder = folder.to_owned();
    session.set_local_infile_handler(Some(LocalInfileHandler::new(move |name, out| {
        let name = String::from_utf8_lossy(name).into_owned();
        let mut file = std::fs::File::open(folder.join(name))?;
        std::io::copy(&mut file, out)?;
        Ok(())
    })));
    // What a load that was interrupted has left.
    session
        .query_drop(format!("drop database if exists {DATABASE}"))
        .map_err(failed)?;
    session
        .query_drop(format!("create database {DATABASE}"))
        .map_err(failed)?;
    session
        .query_drop(format!("use {DATABASE}"))
        .map_err(failed)?;
    for statement in schema_statements() {
        session.query_drop(statement).map_err(failed)?;
    }
    session
        .query_drop("set unique_checks=0, foreign_key_checks=0")
        .map_err(failed)?;
    for table in TABLES {
        session
            .query_drop(format!(
                "load data local infile '{table}.tbl' into table {table} fields terminated by '|'"
            ))
            .map_err(failed)?;
    }
    session
        .query_drop(format!("analyze table {}", TABLES.join(", ")))
        .map_err(failed)?;
    Ok(())
}
