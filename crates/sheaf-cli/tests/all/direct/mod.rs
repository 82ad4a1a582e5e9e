//! Direct plans: the same answers as vectorised ones, kept as long as they are right, and used where they should be.

mod both_ways;
mod changes;
mod entries;
mod explained;
mod kept_plans;
mod long_numbers;
mod over_rows;
pub mod random;
mod random_changes;
mod random_queries;
mod random_tables;
mod reads;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::query_text;

/// How many statements of a connection were direct.
fn statements_direct(connection: &mut Conn) -> u64 {
    let count = query_text(connection, "show status like 'Statements_direct'");
    let count = count[0].rsplit('\t').next().expect("a value");
    count.parse().expect("a number")
}

/// A count of the session's, since the last FLUSH STATUS.
fn session_count(c: &mut Conn, name: &str) -> u64 {
    let row: Option<(String, u64)> = c
        .query_first(format!("show session status like '{name}'"))
        .expect("a status variable");
    row.expect("it is listed").1
}
