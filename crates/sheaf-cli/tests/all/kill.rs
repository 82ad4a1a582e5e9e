//! A server process is killed in the middle of its work, again and again, and nothing that it acknowledged is lost.
//!
//! Clients write and keep a ledger: which statements were acknowledged, and the one that was under way. After each kill
//! the database is checked, opened again, and compared with the ledgers: an acknowledged statement is there in full,
//! one that was under way in full or not at all. The same with so many connections that they share threads.

use std::collections::BTreeMap;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::command_line::{check, connect, serve, stdout_of};

const WORKERS: u64 = 4;
const ROUNDS: u64 = 6;
/// Statements that are acknowledged in a round before the server is killed; the rounds differ.
const STATEMENTS_PER_ROUND: u64 = 150;
/// With more connections than this, they share threads.
const OWN_THREADS: usize = 64;
/// Rows of a statement, at most.
const ROWS_PER_STATEMENT: u64 = 7;

/// What one client knows: for each of its statements, by number, the rows it wrote. The last may not be acknowledged.
#[derive(Default)]
struct Ledger {
    acknowledged: BTreeMap<u64, u64>,
    under_way: Option<(u64, u64)>,
    next: u64,
}

impl Ledger {
    /// Inserts rows until the connection breaks. `done` counts what all clients were told.
    fn write(&mut self, worker: u64, connection: &mut Conn, done: &AtomicUsize) {
        loop {
            let statement = self.next;
            self.next += 1;
            let rows = 1 + (statement * 5 + worker) % ROWS_PER_STATEMENT;
            let values: Vec<String> = (0..rows)
                .map(|row| {
                    let id = (worker * 1_000_000 + statement) * ROWS_PER_STATEMENT + row;
                    format!("({id}, {worker}, {statement}, REPEAT('{}', 100))", row % 10)
                })
                .collect();
            self.under_way = Some((statement, rows));
            let sql = format!("INSERT INTO shop.ledger VALUES {}", values.join(", "));
            if connection.query_drop(sql).is_err() {
                return;
            }
            self.under_way = None;
            self.acknowledged.insert(statement, rows);
            done.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Compares the ledger with what the database has, and takes over what became of the statement under way.
    fn compare(&mut self, worker: u64, connection: &mut Conn) {
        for index in ["PRIMARY", "by_worker"] {
            let found: Vec<(u64, u64)> = connection
                .query(format!(
                    "SELECT statement, COUNT(*) FROM shop.ledger FORCE INDEX ({index}) \
                     WHERE worker = {worker} GROUP BY statement ORDER BY statement"
                ))
                .expect("the table is readable");
            let found = BTreeMap::from_iter(found);
            if let Some((statement, rows)) = self.under_way.take()
                && found.contains_key(&statement)
            {
                self.acknowledged.insert(statement, rows);
            }
            assert_eq!(found, self.acknowledged, "worker {worker} through {index}");
        }
    }
}

fn kill(mut server: Child) {
    server.kill().expect("the process is ours");
    server.wait().expect("it ends");
}

#[test]
fn a_killed_server_loses_nothing_that_it_acknowledged() {
    kill_again_and_again(0);
}

#[test]
fn a_killed_server_of_many_connections_loses_nothing_that_it_acknowledged() {
    kill_again_and_again(OWN_THREADS);
}

/// `idle`: connections that do nothing.
fn kill_again_and_again(idle: usize) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut ledgers: Vec<Ledger> = (0..WORKERS).map(|_| Ledger::default()).collect();
    let (server, port) = serve(&directory);
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.ledger (id BIGINT PRIMARY KEY, worker INT, statement BIGINT, note VARCHAR(100), \
         KEY by_worker (worker, statement))",
    ] {
        connect(port)
            .query_drop(sql)
            .expect("the database is empty");
    }
    let mut running = Some((server, port));
    for round in 0..ROUNDS {
        let (server, port) = running.take().unwrap_or_else(|| serve(&directory));
        for (worker, ledger) in (0u64..).zip(&mut ledgers) {
            ledger.compare(worker, &mut connect(port));
        }
        let idle: Vec<Conn> = (0..idle).map(|_| connect(port)).collect();
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for (worker, ledger) in (0u64..).zip(&mut ledgers) {
                let done = &done;
                // Before the others have done enough to be killed.
                let mut connection = connect(port);
                scope.spawn(move || ledger.write(worker, &mut connection, done));
            }
            let enough = STATEMENTS_PER_ROUND + round * 37;
            while (done.load(Ordering::Relaxed) as u64) < enough {
                std::thread::yield_now();
            }
            kill(server);
        });
        drop(idle);
        // Every second time the check is what recovers the database.
        if round % 2 == 1 {
            let said = stdout_of(&check(directory.path()));
            assert!(said.ends_with("no problem found\n"), "{said}");
        }
    }
    let (server, port) = serve(&directory);
    for (worker, ledger) in (0u64..).zip(&mut ledgers) {
        ledger.compare(worker, &mut connect(port));
    }
    kill(server);
}
