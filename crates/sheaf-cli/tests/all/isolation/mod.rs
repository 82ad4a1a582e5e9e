//! What transactions see of each other over SQL, at each level, and what they lock for it.
//!
//! | file | what it is about |
//! |---|---|
//! | `anomalies.rs` | the anomalies of the literature |
//! | `reads.rs` | what reads of one table lock |
//! | `joins.rs` | what joins lock |
//! | `changes.rs` | what changes lock of what they only read |
//!
//! Nothing here is timed. A statement that must wait runs in a thread; what it comes to in the end says that it waited.

mod anomalies;
mod changes;
mod joins;
mod reads;

use std::thread::JoinHandle;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, query_text, wait_until};

const COMMITTED: &str = "read committed";
const REPEATABLE: &str = "repeatable read";
const SERIALIZABLE: &str = "serializable";
const ALL: [&str; 3] = [COMMITTED, REPEATABLE, SERIALIZABLE];

/// A table `test (id, value)` with the rows (1, 10) and (2, 20), and an index on the values.
struct Scene {
    server: TestServer,
}

impl Scene {
    fn new() -> Scene {
        let server = TestServer::start();
        let mut c = server.connect_to_new("scene");
        run(
            &mut c,
            "create table test (id int primary key, value int not null, key (value))",
        );
        run(&mut c, "insert into test values (1, 10), (2, 20)");
        Scene { server }
    }

    fn session(&self) -> Conn {
        let mut c = self.server.connect();
        run(&mut c, "use scene");
        c
    }

    /// A session in a transaction of this level.
    fn begin(&self, level: &str) -> Conn {
        let mut c = self.session();
        run(
            &mut c,
            &format!("set session transaction isolation level {level}"),
        );
        run(&mut c, "begin");
        c
    }

    fn committed(&self) -> Vec<(i64, i64)> {
        rows(&mut self.session(), "true")
    }
}

fn run(c: &mut Conn, sql: &str) {
    c.query_drop(sql).expect(sql);
}

/// The error of a statement; 0 if it succeeds.
fn code_of(c: &mut Conn, sql: &str) -> u16 {
    match c.query_drop(sql) {
        Ok(()) => 0,
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(error) => panic!("{sql}: {error}"),
    }
}

fn rows(c: &mut Conn, condition: &str) -> Vec<(i64, i64)> {
    let sql = format!("select id, value from test where {condition} order by id");
    c.query(&sql).expect(&sql)
}

fn value(c: &mut Conn, id: i64) -> i64 {
    rows(c, &format!("id = {id}"))[0].1
}

/// Runs statements in a thread, as far as they succeed; gives back the session and the last error code.
fn later(mut c: Conn, statements: &[&str]) -> JoinHandle<(Conn, u16)> {
    let statements: Vec<String> = statements.iter().map(ToString::to_string).collect();
    std::thread::spawn(move || {
        for sql in &statements {
            let code = code_of(&mut c, sql);
            if code != 0 {
                return (c, code);
            }
        }
        (c, 0)
    })
}

/// Returns when a session runs the statement, a little later, so that it will mostly wait for a row by then.
fn await_running(scene: &Scene, statement: &str) {
    let running = "select info from information_schema.processlist where command = 'Query'";
    let mut c = scene.session();
    wait_until(statement, || {
        query_text(&mut c, running).contains(&statement.to_string())
    });
    std::thread::sleep(Duration::from_millis(50));
}

/// Two sessions of which each wants what the other has: one of them is the victim of the deadlock.
fn one_of_two_is_the_victim(first: Conn, second: Conn, statements: [&str; 2]) {
    let threads = [
        later(first, &[statements[0], "commit"]),
        later(second, &[statements[1], "commit"]),
    ];
    let mut codes = threads.map(|thread| thread.join().expect("an answer").1);
    codes.sort_unstable();
    assert_eq!(codes, [0, 1213], "{statements:?}");
}
