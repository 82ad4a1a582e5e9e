//! What connections cost while their clients have nothing to say.

use std::fs;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::command_line::{connect, serve_with, terminate};
use crate::harness::{PATIENCE, query_text};

/// Few enough for a process that may have 1,024 files open.
const CONNECTIONS: usize = 400;
/// A thousand idle connections are to cost less than 64 MiB.
const MAX_KIB_PER_CONNECTION: usize = 64;

/// Memory of a process, in KiB.
fn resident_kib(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).expect("KiB")
}

/// Statements with direct and with vectorised plans, that read and that write, as text and prepared.
fn work(connection: &mut Conn, number: usize) {
    let id = number % 1000;
    let found: Option<i32> = connection
        .exec_first("select b from shop.t where id = ?", (id,))
        .expect("a row");
    assert_eq!(found, Some(id as i32 % 10));
    let sql = format!(
        "update shop.t set c = repeat('{}', 50) where id = {id}",
        number % 10
    );
    connection.query_drop(sql).expect("nobody else has the row");
    let sql = "select b, count(*) from shop.t where id < 200 group by b order by 2, 1";
    assert_eq!(query_text(connection, sql).len(), 10);
    let sql = "select id, c from shop.t where b = 3 order by c";
    assert_eq!(query_text(connection, sql).len(), 100);
}

#[test]
fn idle_connections_give_back_what_they_do_not_need() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let limit = (CONNECTIONS + 50).to_string();
    let (mut child, port) = serve_with(directory.path(), &["--max-connections", &limit]);
    let mut first = connect(port);
    for sql in [
        "create database shop",
        "create table shop.t (id int primary key, b int, c varchar(100), key (b))",
    ] {
        first.query_drop(sql).expect("the name is free");
    }
    let rows: Vec<String> = (0..1000)
        .map(|id| format!("({id}, {}, 'row')", id % 10))
        .collect();
    first
        .query_drop(format!("insert into shop.t values {}", rows.join(", ")))
        .expect("new keys");
    // What the first statements need once is not theirs.
    let mut some: Vec<Conn> = (0..20).map(|_| connect(port)).collect();
    for (number, connection) in some.iter_mut().enumerate() {
        work(connection, number);
    }
    let before = resident_kib(child.id());
    let mut connections: Vec<Conn> = (0..CONNECTIONS).map(|_| connect(port)).collect();
    for (number, connection) in connections.iter_mut().enumerate() {
        work(connection, number);
    }
    let most = before + CONNECTIONS * MAX_KIB_PER_CONNECTION;
    let patience = Instant::now() + PATIENCE;
    loop {
        let now = resident_kib(child.id());
        if now < most {
            let each = now.saturating_sub(before) / CONNECTIONS;
            println!("{each} KiB for each idle connection");
            break;
        }
        assert!(
            Instant::now() < patience,
            "{CONNECTIONS} idle connections cost {} KiB",
            now - before
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    // They go on as if nothing had happened.
    for (number, connection) in connections.iter_mut().enumerate().step_by(7) {
        work(connection, number);
    }
    drop((connections, some, first));
    terminate(&child);
    assert!(child.wait().expect("it was started").success());
}
