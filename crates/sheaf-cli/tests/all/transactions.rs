//! Transactions of several sessions: what each sees of the others, and which waits for which.

use std::sync::mpsc;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf::StorageOptions;
use sheaf_sql::EngineOptions;

use crate::harness::TestServer;
use crate::raw_client::{COM_QUERY, RawClient};

/// Two sessions on a table `t (id, n)` with the rows (1, 10) and (2, 20).
pub fn two_sessions(server: &TestServer, database: &str) -> (Conn, Conn) {
    let mut one = server.connect_to_new(database);
    run(
        &mut one,
        "create table t (id int primary key, n int, key (n))",
    );
    run(&mut one, "insert into t values (1, 10), (2, 20)");
    let mut two = server.connect();
    run(&mut two, &format!("use {database}"));
    (one, two)
}

/// The error of a statement; 0 if it succeeds.
pub fn code_of(connection: &mut Conn, sql: &str) -> u16 {
    match connection.query_drop(sql) {
        Ok(()) => 0,
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(error) => panic!("{sql}: {error}"),
    }
}

pub fn run(connection: &mut Conn, sql: &str) {
    connection.query_drop(sql).expect(sql);
}

pub fn error_of(connection: &mut Conn, sql: &str) -> u16 {
    match connection.query_drop(sql) {
        Err(mysql::Error::MySqlError(error)) => error.code,
        other => panic!("{sql}: {other:?}"),
    }
}

/// The rows as the clustered index and the index on n show them, which must agree.
pub fn rows(connection: &mut Conn) -> Vec<(i64, i64)> {
    let rows: Vec<(i64, i64)> = connection
        .query("select id, n from t force index (primary) order by id")
        .expect("rows");
    let mut by_n: Vec<(i64, i64)> = connection
        .query("select id, n from t force index (n) where n > -1000")
        .expect("rows");
    by_n.sort_unstable();
    assert_eq!(by_n, rows);
    rows
}

/// Waits until at least so many row locks are held or waited for.
fn await_row_locks(connection: &mut Conn, locks: u64) {
    let held = |connection: &mut Conn| {
        let status: Option<(String, u64)> = connection
            .query_first("show global status like 'Row_locks'")
            .expect("a counter");
        status.map_or(0, |(_, held)| held)
    };
    while held(connection) < locks {
        std::thread::yield_now();
    }
}

#[test]
fn nobody_sees_what_is_not_committed() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "dirty");
    run(&mut one, "begin");
    run(&mut one, "update t set n = 11 where id = 1");
    run(&mut one, "delete from t where id = 2");
    run(&mut one, "insert into t values (3, 30)");
    assert_eq!(rows(&mut one), [(1, 11), (3, 30)]);
    assert_eq!(rows(&mut two), [(1, 10), (2, 20)]);
    run(&mut one, "commit");
    assert_eq!(rows(&mut two), [(1, 11), (3, 30)]);
}

#[test]
fn repeatable_read_keeps_the_snapshot_of_its_first_read() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "snapshots");
    run(&mut one, "begin");
    // The snapshot is that of the first read, not of BEGIN.
    run(&mut two, "update t set n = 21 where id = 2");
    assert_eq!(rows(&mut one), [(1, 10), (2, 21)]);
    run(&mut two, "update t set id = 5, n = 50 where id = 1");
    run(&mut two, "insert into t values (3, 30)");
    assert_eq!(rows(&mut one), [(1, 10), (2, 21)]);
    // A change works on what is committed now, and is seen besides the snapshot.
    run(&mut one, "update t set n = n + 1 where id >= 3");
    assert_eq!(one.affected_rows(), 2);
    assert_eq!(rows(&mut one), [(1, 10), (2, 21), (3, 31), (5, 51)]);
    run(&mut one, "commit");
    assert_eq!(rows(&mut one), [(2, 21), (3, 31), (5, 51)]);
    run(&mut one, "start transaction with consistent snapshot");
    run(&mut two, "delete from t");
    assert_eq!(rows(&mut one), [(2, 21), (3, 31), (5, 51)]);
    run(&mut one, "rollback");
    assert_eq!(rows(&mut one), []);
}

#[test]
fn read_committed_sees_each_commit() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "committed");
    run(&mut one, "set transaction isolation level read committed");
    run(&mut one, "begin");
    assert_eq!(rows(&mut one), [(1, 10), (2, 20)]);
    run(&mut two, "begin");
    run(&mut two, "update t set n = 12 where id = 1");
    assert_eq!(rows(&mut one), [(1, 10), (2, 20)]);
    run(&mut two, "commit");
    assert_eq!(rows(&mut one), [(1, 12), (2, 20)]);
    run(&mut one, "commit");
    // It was for one transaction only.
    run(&mut one, "begin");
    assert_eq!(rows(&mut one), [(1, 12), (2, 20)]);
    run(&mut two, "delete from t where id = 1");
    assert_eq!(rows(&mut one), [(1, 12), (2, 20)]);
}

#[test]
fn release_ends_the_connection_after_the_answer() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "released");
    run(&mut one, "begin");
    run(&mut one, "delete from t where id = 1");
    run(&mut one, "commit work and no chain release");
    assert!(one.query_drop("select 1").is_err());
    assert_eq!(rows(&mut two), [(2, 20)]);
    run(&mut two, "begin");
    run(&mut two, "delete from t");
    assert_eq!(error_of(&mut two, "commit and chain release"), 1064);
    run(&mut two, "rollback and chain no release");
    assert_eq!(rows(&mut two), [(2, 20)]);
    run(&mut two, "rollback release");
    assert!(two.query_drop("select 1").is_err());
}

#[test]
fn a_change_of_what_another_changed_waits_for_its_end() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "waits");
    run(&mut two, "set innodb_lock_wait_timeout = 1");
    run(&mut one, "begin");
    run(&mut one, "update t set n = n + 1 where id = 1");
    assert_eq!(
        error_of(&mut two, "update t set n = n + 1 where id = 1"),
        1205
    );
    // A statement that gave up leaves its transaction as it was.
    run(&mut two, "begin");
    assert_eq!(error_of(&mut two, "delete from t where id = 1"), 1205);
    assert_eq!(
        error_of(&mut two, "select * from t where id = 1 for update"),
        1205
    );
    assert_eq!(
        error_of(&mut two, "select * from t where id = 1 for update nowait"),
        3572
    );
    run(&mut two, "commit");
    run(&mut two, "set innodb_lock_wait_timeout = 50");
    let (started, starts) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        started.send(()).expect("the test waits");
        run(&mut two, "update t set n = n * 2 where id = 1");
        two
    });
    starts.recv().expect("the thread runs");
    std::thread::sleep(Duration::from_millis(50));
    run(&mut one, "commit");
    let mut two = waiter.join().expect("the update ends");
    // No update was lost.
    assert_eq!(rows(&mut two), [(1, 22), (2, 20)]);
}

#[test]
fn what_cannot_be_assigned_is_an_error_only_once_the_row_is_locked() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "assigned");
    run(
        &mut one,
        "create table s (id int primary key, q tinyint not null)",
    );
    run(&mut one, "insert into s values (1, 120)");
    run(&mut two, "set innodb_lock_wait_timeout = 1");
    let add = "update s set q = q + 10 where id = 1";
    let lock = "select q from s where id = 1 for update";
    // It waits for a transaction that may be about to make room.
    run(&mut one, "begin");
    run(&mut one, lock);
    assert_eq!(error_of(&mut two, add), 1205);
    run(&mut one, "rollback");
    assert_eq!(error_of(&mut two, add), 1264);
    run(&mut one, "begin");
    run(&mut one, lock);
    run(&mut two, "set innodb_lock_wait_timeout = 50");
    let (started, starts) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        started.send(()).expect("the test waits");
        run(&mut two, add);
        two
    });
    starts.recv().expect("the thread runs");
    run(&mut one, "update s set q = 0 where id = 1");
    run(&mut one, "commit");
    let mut two = waiter.join().expect("the update ends");
    let found: Vec<i64> = two.query("select q from s").expect("rows");
    assert_eq!(found, [10]);
}

/// Each of two transactions reads what the other writes (write skew): one of them must not get through.
#[test]
fn serializable_transactions_do_not_skew_each_other() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "skew");
    for connection in [&mut one, &mut two] {
        run(
            connection,
            "set session transaction isolation level serializable",
        );
        run(connection, "begin");
        let sum: Vec<i64> = connection.query("select sum(n) from t").expect("a sum");
        assert_eq!(sum, [30]);
    }
    let finish = |mut connection: Conn, id: i64| {
        let changed = connection
            .query_drop(format!("update t set n = 0 where id = {id}"))
            .and_then(|()| connection.query_drop("commit"));
        match changed {
            Ok(()) => true,
            Err(mysql::Error::MySqlError(error)) => {
                assert_eq!(error.code, 1213, "{error}");
                false
            }
            Err(error) => panic!("{error}"),
        }
    };
    let other = std::thread::spawn(move || finish(one, 1));
    let through = [finish(two, 2), other.join().expect("an answer")];
    assert_eq!(through.iter().filter(|through| **through).count(), 1);
}

#[test]
fn different_rows_are_changed_side_by_side() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "rows");
    run(&mut two, "set innodb_lock_wait_timeout = 1");
    run(&mut one, "begin");
    run(&mut one, "update t set n = 11 where id = 1");
    run(&mut one, "insert into t values (3, 30)");
    run(&mut two, "begin");
    run(&mut two, "update t set n = 21 where id = 2");
    run(&mut two, "insert into t values (4, 40)");
    // The key that one has inserted may be there, or not: that is waited for.
    assert_eq!(error_of(&mut two, "insert into t values (3, 31)"), 1205);
    run(&mut one, "rollback");
    run(&mut two, "insert into t values (3, 31)");
    run(&mut two, "commit");
    assert_eq!(rows(&mut one), [(1, 10), (2, 21), (3, 31), (4, 40)]);
}

#[test]
fn a_deadlock_is_found_and_one_transaction_is_taken_back() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "deadlock");
    run(&mut one, "begin");
    run(&mut two, "begin");
    run(&mut one, "update t set n = n + 1 where id = 1");
    run(&mut two, "update t set n = n + 1 where id = 2");
    let cross = |mut connection: Conn, id: i64| {
        let outcome = connection.query_drop(format!("update t set n = n + 1 where id = {id}"));
        let victim = match outcome {
            Ok(()) => false,
            Err(mysql::Error::MySqlError(error)) => {
                assert_eq!(error.code, 1213, "{error}");
                true
            }
            Err(error) => panic!("{error}"),
        };
        // For the victim there is nothing left to commit.
        run(&mut connection, "commit");
        victim
    };
    let other = std::thread::spawn(move || cross(one, 2));
    let victims = [cross(two, 1), other.join().expect("an answer")];
    assert_eq!(victims.iter().filter(|victim| **victim).count(), 1);
    let mut c = server.connect();
    run(&mut c, "use deadlock");
    assert_eq!(rows(&mut c), [(1, 11), (2, 21)]);
}

/// The transaction that has changed more closes the cycle, and goes on: the other one has less to lose.
#[test]
fn the_victim_of_a_deadlock_has_done_least() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "least");
    run(&mut one, "insert into t values (3, 30), (4, 40)");
    run(&mut one, "begin");
    run(&mut two, "begin");
    run(&mut one, "update t set n = n + 1 where id in (1, 3, 4)");
    run(&mut two, "update t set n = n + 1 where id = 2");
    let other = std::thread::spawn(move || {
        let code = error_of(&mut two, "update t set n = n + 1 where id = 1");
        (code, two)
    });
    let mut watch = server.connect();
    await_row_locks(&mut watch, 1);
    run(&mut one, "update t set n = n + 1 where id = 2");
    let (code, mut two) = other.join().expect("an answer");
    assert_eq!(code, 1213);
    run(&mut one, "commit");
    assert_eq!(rows(&mut two), [(1, 11), (2, 21), (3, 31), (4, 41)]);
}

/// Every increment finds its row in a snapshot that others make old all the time.
#[test]
fn increments_of_one_row_are_never_lost() {
    const SESSIONS: i64 = 4;
    const INCREMENTS: i64 = 50;
    let server = TestServer::start();
    let (mut one, _two) = two_sessions(&server, "increments");
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let server = &server;
            scope.spawn(move || {
                let mut c = server.connect();
                run(&mut c, "use increments");
                for step in 0..INCREMENTS {
                    match (session + step) % 3 {
                        0 => run(&mut c, "update t set n = n + 1 where id = 1"),
                        1 => run(
                            &mut c,
                            "insert into t values (1, 0) on duplicate key update n = n + 1",
                        ),
                        _ => {
                            run(&mut c, "begin");
                            let n: Vec<i64> = c
                                .query("select n from t where id = 1 for update")
                                .expect("a row");
                            run(
                                &mut c,
                                &format!("update t set n = {} where id = 1", n[0] + 1),
                            );
                            run(&mut c, "commit");
                        }
                    }
                }
            });
        }
    });
    assert_eq!(rows(&mut one), [(1, 10 + SESSIONS * INCREMENTS), (2, 20)]);
}

#[test]
fn a_connection_that_ends_takes_its_transaction_back() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "gone");
    run(&mut one, "begin");
    run(&mut one, "update t set n = n + 1");
    drop(one);
    // The table is free again, and as it was.
    run(&mut two, "update t set n = n + 100 where id = 2");
    assert_eq!(rows(&mut two), [(1, 10), (2, 120)]);
}

#[test]
fn definitions_wait_for_the_transactions_that_use_the_table() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "definitions");
    run(&mut one, "begin");
    assert_eq!(rows(&mut one).len(), 2);
    run(&mut two, "set lock_wait_timeout = 1");
    assert_eq!(error_of(&mut two, "drop table t"), 1205);
    run(&mut one, "commit");
    run(&mut two, "drop table t");
    assert_eq!(error_of(&mut one, "select * from t"), 1146);
}

/// Transfers in several sessions at once; every read of all accounts sees the same sum.
#[test]
fn concurrent_transfers_lose_nothing() {
    const ACCOUNTS: u64 = 20;
    const TRANSFERS: u64 = 60;
    let server = TestServer::start();
    let mut admin = server.connect_to_new("bank");
    run(
        &mut admin,
        "create table account (id int primary key, balance bigint not null)",
    );
    for id in 0..ACCOUNTS {
        run(
            &mut admin,
            &format!("insert into account values ({id}, 1000)"),
        );
    }
    let total = ACCOUNTS as i64 * 1000;
    std::thread::scope(|scope| {
        for worker in 0..4u64 {
            let server = &server;
            scope.spawn(move || {
                let mut c = server.connect();
                run(&mut c, "use bank");
                for step in 0..TRANSFERS {
                    let from = (worker * 7 + step * 3) % ACCOUNTS;
                    let to = (from + 1 + step % (ACCOUNTS - 1)) % ACCOUNTS;
                    let changes = [
                        format!("update account set balance = balance - 7 where id = {from}"),
                        format!("update account set balance = balance + 7 where id = {to}"),
                    ];
                    // The victim of a deadlock tries again.
                    loop {
                        run(&mut c, "begin");
                        let made = changes.iter().try_for_each(|sql| c.query_drop(sql));
                        match made {
                            Ok(()) => break,
                            Err(mysql::Error::MySqlError(error)) => {
                                assert_eq!(error.code, 1213, "{error}");
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    run(&mut c, if step % 5 == 0 { "rollback" } else { "commit" });
                }
            });
        }
        let server = &server;
        scope.spawn(move || {
            let mut c = server.connect();
            run(&mut c, "use bank");
            for _ in 0..100 {
                let sum: Vec<i64> = c
                    .query("select cast(sum(balance) as signed) from account")
                    .expect("a sum");
                assert_eq!(sum, [total]);
            }
        });
    });
    let sum: Vec<i64> = admin
        .query("select cast(sum(balance) as signed) from account")
        .expect("a sum");
    assert_eq!(sum, [total]);
}

/// splitmix64
pub struct Random(pub u64);

impl Random {
    /// A number from 0 to `end`, exclusively.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

/// Random transactions in several sessions that move rows about in all their keys. Afterwards every index agrees
/// with the table, and the counter that each committed transaction raised says how many there were.
#[test]
fn random_transactions_leave_indexes_and_table_in_agreement() {
    const SESSIONS: u64 = 4;
    const TRANSACTIONS: u64 = 60;
    const ROWS: u64 = 40;
    let server = TestServer::start();
    let mut admin = server.connect_to_new("moves");
    run(
        &mut admin,
        "create table t (id int primary key, u int unique, n int, s varchar(40), key (n, s))",
    );
    run(
        &mut admin,
        "create table done (session int primary key, transactions int not null)",
    );
    for session in 0..SESSIONS {
        run(
            &mut admin,
            &format!("insert into done values ({session}, 0)"),
        );
    }
    let committed: Vec<u64> = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let server = &server;
                scope.spawn(move || {
                    let mut c = server.connect();
                    run(&mut c, "use moves");
                    let mut random = Random(session + 1);
                    let mut below = |end| random.below(end);
                    let mut committed = 0;
                    for _ in 0..TRANSACTIONS {
                        let mut statements = vec!["begin".to_string()];
                        for _ in 0..1 + below(4) {
                            let (a, b, n) = (below(ROWS), below(ROWS), below(100));
                            statements.push(match below(8) {
                                0 | 1 => format!("insert ignore into t values ({a}, {b}, {n}, repeat('x', {n} % 40))"),
                                2 => format!("replace into t values ({a}, {b}, {n}, 'r')"),
                                3 => format!("update ignore t set id = {b} where id = {a}"),
                                4 => format!("update t set n = n + {n}, s = concat(left(s, 20), '{a}') where u between {a} and {b}"),
                                5 => format!("delete from t where n < {n} order by n limit 2"),
                                6 => format!(
                                    "insert into t values ({a}, {b}, {n}, 'd') on duplicate key update n = n + 1, u = null"
                                ),
                                _ => format!("update ignore t set u = {b} where id = {a}"),
                            });
                        }
                        statements.push(format!(
                            "update done set transactions = transactions + 1 where session = {session}"
                        ));
                        let outcome = statements.iter().try_for_each(|sql| c.query_drop(sql));
                        match outcome {
                            Ok(()) if below(4) > 0 => {
                                run(&mut c, "commit");
                                committed += 1;
                            }
                            Ok(()) => run(&mut c, "rollback"),
                            Err(mysql::Error::MySqlError(error)) => {
                                assert!([1062, 1213].contains(&error.code), "{error}");
                                run(&mut c, "rollback");
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    committed
                })
            })
            .collect();
        sessions
            .into_iter()
            .map(|session| session.join().expect("a session ends well"))
            .collect()
    });
    let counted: Vec<u64> = admin
        .query("select transactions from done order by session")
        .expect("counters");
    assert_eq!(counted, committed);
    let checked: Vec<(String, String, String, String)> =
        admin.query("check table t").expect("a check");
    assert_eq!(checked[0].3, "OK");
    let all = |admin: &mut Conn, index: &str, condition: &str| -> Vec<(i64, Option<i64>, i64)> {
        let mut rows: Vec<(i64, Option<i64>, i64)> = admin
            .query(format!(
                "select id, u, n from t force index ({index}) where {condition}"
            ))
            .expect("rows");
        rows.sort_unstable();
        rows
    };
    let rows = all(&mut admin, "primary", "id >= 0");
    assert_eq!(all(&mut admin, "n", "n > -1"), rows);
    let with_u: Vec<_> = rows.iter().filter(|row| row.1.is_some()).copied().collect();
    assert_eq!(all(&mut admin, "u", "u >= 0"), with_u);
    let mut unique: Vec<_> = with_u.iter().map(|row| row.1).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), with_u.len());
}

/// What an UPDATE reads is part of the transaction as much as what a SELECT reads.
#[test]
fn serializable_changes_do_not_skew_each_other() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "changes_skew");
    for connection in [&mut one, &mut two] {
        run(
            connection,
            "set session transaction isolation level serializable",
        );
        run(connection, "begin");
    }
    // Each makes of its row the sum that it sees.
    let finish = |mut connection: Conn, id: i64| {
        let changed = connection
            .query_drop(format!(
                "update t set n = (select sum(x.n) from t x) where id = {id}"
            ))
            .and_then(|()| connection.query_drop("commit"));
        match changed {
            Ok(()) => true,
            Err(mysql::Error::MySqlError(error)) => {
                assert_eq!(error.code, 1213, "{error}");
                false
            }
            Err(error) => panic!("{error}"),
        }
    };
    let other = std::thread::spawn(move || finish(one, 1));
    let second = finish(two, 2);
    let first = other.join().expect("an answer");
    let mut c = server.connect();
    run(&mut c, "use changes_skew");
    let found = rows(&mut c);
    // One after the other, in either order, or one of them alone.
    let expected: &[[(i64, i64); 2]] = match (first, second) {
        (true, true) => &[[(1, 30), (2, 50)], [(1, 40), (2, 30)]],
        (true, false) => &[[(1, 30), (2, 20)]],
        (false, true) => &[[(1, 10), (2, 30)]],
        (false, false) => &[],
    };
    assert!(expected.iter().any(|rows| found == rows), "{found:?}");
}

/// A lock that a transaction took before is not given back by a statement that comes to the row later, and neither by
/// taking that statement back.
#[test]
fn a_lock_stays_to_the_end_of_its_transaction() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "kept");
    for statement in [
        "update t set n = 10 where id = 1",
        "update t set n = n + 1 where id = 1",
        "delete from t where id = 1",
        "update t set n = n + 1 where n = 10",
    ] {
        run(&mut one, "begin");
        run(&mut one, "select * from t where id = 1 for update");
        run(&mut one, "savepoint a");
        run(&mut one, statement);
        run(&mut one, "rollback to a");
        run(&mut two, "begin");
        assert_eq!(
            error_of(&mut two, "select * from t where id = 1 for update nowait"),
            3572,
            "{statement}"
        );
        run(&mut two, "rollback");
        run(&mut one, "rollback");
    }
}

/// A statement that begins again queues behind those that waited for the rows that it has changed meanwhile.
#[test]
fn a_statement_that_begins_again_makes_no_deadlock() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "again");
    let mut three = server.connect();
    run(&mut three, "use again");
    run(&mut one, "begin");
    run(&mut one, "update t set n = n + 1 where id = 2");
    let second =
        std::thread::spawn(move || two.query_drop("update t set n = n + 1 where id in (1, 2)"));
    // It has changed the first row and waits for the second.
    await_row_locks(&mut one, 1);
    let third = std::thread::spawn(move || three.query_drop("update t set n = n + 1 where id = 1"));
    await_row_locks(&mut one, 2);
    run(&mut one, "commit");
    second.join().expect("an answer").expect("no deadlock");
    third.join().expect("an answer").expect("no deadlock");
    assert_eq!(rows(&mut one), [(1, 12), (2, 22)]);
}

/// A row that is in the way of an insert and goes while the insert waits for it is in the way no more.
#[test]
fn an_insert_that_would_update_inserts_when_the_row_has_gone() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "gone");
    run(&mut one, "begin");
    run(&mut one, "select * from t where id = 1 for update");
    let waiter = std::thread::spawn(move || {
        run(
            &mut two,
            "insert into t values (1, 5) on duplicate key update n = n + 1",
        );
        two.affected_rows()
    });
    await_row_locks(&mut one, 2);
    run(&mut one, "delete from t where id = 1");
    run(&mut one, "commit");
    assert_eq!(waiter.join().expect("the insert ends"), 1);
    assert_eq!(rows(&mut one), [(1, 5), (2, 20)]);
}

/// KILL reaches a statement that waits for a row.
#[test]
fn a_statement_that_waits_for_a_row_can_be_killed() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "killed");
    let id = two.connection_id();
    run(&mut one, "begin");
    run(&mut one, "update t set n = n + 1 where id = 1");
    run(&mut two, "begin");
    run(&mut two, "update t set n = n + 1 where id = 2");
    let waiter = std::thread::spawn(move || {
        let code = error_of(&mut two, "select * from t where id = 1 for update");
        (two, code)
    });
    // One that comes before the statement does not count.
    while !waiter.is_finished() {
        run(&mut one, &format!("kill query {id}"));
        std::thread::sleep(Duration::from_millis(10));
    }
    let (mut two, code) = waiter.join().expect("an answer");
    assert_eq!(code, 1317);
    // The transaction goes on, with the row that it had.
    run(&mut two, "update t set n = n + 1 where id = 2");
    let waiter = std::thread::spawn(move || two.query_drop("delete from t where id = 1"));
    run(&mut one, &format!("kill connection {id}"));
    assert!(waiter.join().expect("an end").is_err());
    // The client knows before its statement does, which looks for the news 20 times a second; until then it still waits
    // for this session, and must not be waited for.
    let is_there = format!("select count(*) from information_schema.processlist where id = {id}");
    while one.query_first(&is_there).expect("a count") != Some(0) {
        std::thread::yield_now();
    }
    // What the connection had is free, and as it was before.
    run(&mut one, "update t set n = n + 1 where id = 2");
    run(&mut one, "commit");
    assert_eq!(rows(&mut one), [(1, 11), (2, 21)]);
}

/// A client that goes away while its statement waits holds nothing any longer than that takes to notice.
#[test]
fn a_client_that_disappears_while_it_waits_gives_its_locks_back() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "vanished");
    run(&mut two, "set innodb_lock_wait_timeout = 30");
    run(&mut one, "begin");
    run(&mut one, "update t set n = n + 1 where id = 1");
    let mut client = RawClient::connect(server.address(), 0);
    client.succeed(COM_QUERY, b"set innodb_lock_wait_timeout = 1000");
    client.succeed(COM_QUERY, b"begin");
    client.succeed(COM_QUERY, b"update vanished.t set n = 0 where id = 2");
    client
        .send_command(COM_QUERY, b"update vanished.t set n = 0 where id = 1")
        .expect("the server reads");
    drop(client);
    run(&mut two, "update t set n = n + 1 where id = 2");
    run(&mut one, "commit");
    assert_eq!(rows(&mut one), [(1, 11), (2, 21)]);
}

/// What takes a transaction back lies in the log, which is kept for it. One that somebody forgot is ended before that
/// is too much.
#[test]
fn a_forgotten_transaction_is_ended() {
    let server = TestServer::start_with(
        EngineOptions {
            memory_bytes: 256 << 20,
            storage: StorageOptions {
                max_pinned_log_bytes: 1 << 20,
                ..StorageOptions::default()
            },
            ..EngineOptions::default()
        },
        |_, _| {},
    );
    let (mut one, mut two) = two_sessions(&server, "forgotten");
    run(&mut two, "create table long_text (t text)");
    run(&mut one, "begin");
    run(&mut one, "update t set n = n + 100 where id = 1");
    let (id, mut random) = (one.connection_id(), Random(1));
    let is_there = format!("select count(*) from information_schema.processlist where id = {id}");
    while two.query_first(&is_there).expect("a count") == Some(1) {
        let text: String = (0..600)
            .map(|_| format!("{:016x}", random.below(u64::MAX)))
            .collect();
        run(
            &mut two,
            &format!("insert into long_text values ('{text}')"),
        );
    }
    run(&mut two, "update t set n = n + 1 where id = 1");
    assert_eq!(rows(&mut two), [(1, 11), (2, 20)]);
    assert!(one.query_drop("commit").is_err());
}

/// A row that changes beside a long value goes on to refer to it, and so do the versions that others still see.
#[test]
fn long_values_stay_where_they_are_beside_a_change() {
    let server = TestServer::start();
    let mut one = server.connect_to_new("long");
    run(
        &mut one,
        "create table t (id int primary key, n int, s varchar(4000), b longblob, key (n))",
    );
    let blob = |byte: u8| -> Vec<u8> { (0..1 << 20).map(|at| (at % 251) as u8 ^ byte).collect() };
    for id in 1..=4_u8 {
        one.exec_drop("insert into t values (?, ?, 's', ?)", (id, id, blob(id)))
            .expect("it fits");
    }
    let written = |connection: &mut Conn| -> u64 {
        let status: Option<(String, u64)> = connection
            .query_first("show global status like 'Innodb_os_log_written'")
            .expect("a counter");
        status.expect("a counter").1
    };
    let expect = |connection: &mut Conn, expected: &[(u8, i64, usize, Option<u8>)]| {
        let rows: Vec<(u8, i64, usize, Option<Vec<u8>>)> = connection
            .query("select id, n, length(s), b from t order by id")
            .expect("rows");
        let expected: Vec<_> = expected
            .iter()
            .map(|(id, n, length, byte)| (*id, *n, *length, byte.map(blob)))
            .collect();
        assert!(rows == expected, "the rows differ");
    };
    let before = [
        (1, 1, 1, Some(1)),
        (2, 2, 1, Some(2)),
        (3, 3, 1, Some(3)),
        (4, 4, 1, Some(4)),
    ];
    let mut two = server.connect();
    run(&mut two, "use `long`");
    run(&mut two, "start transaction with consistent snapshot");
    let began = written(&mut one);
    for sql in [
        // In the row only, an index, a value of another width, and the key.
        "update t set n = n + 10 where id = 1",
        "update t set n = n + 10 where n = 2",
        "update t set s = repeat('s', 4000) where id = 3",
        "update t x join (select 4 as id) y on x.id = y.id set x.n = 40, x.s = 'long'",
        "update t set id = 5 where id = 4",
    ] {
        run(&mut one, sql);
    }
    assert!(
        written(&mut one) - began < 200_000,
        "long values were written again"
    );
    let after = [
        (1, 11, 1, Some(1)),
        (2, 12, 1, Some(2)),
        (3, 3, 4000, Some(3)),
        (5, 40, 4, Some(4)),
    ];
    expect(&mut one, &after);
    expect(&mut two, &before);
    run(&mut one, "begin");
    run(&mut one, "update t set n = 0, b = null where id = 1");
    run(&mut one, "update t set n = 0");
    run(&mut one, "delete from t where id = 2");
    run(&mut one, "rollback");
    expect(&mut one, &after);
    run(
        &mut one,
        "update t set n = length(b), b = null where id = 1",
    );
    run(&mut one, "update t set n = 7 where b is null");
    run(&mut one, "delete from t where id = 2");
    expect(
        &mut one,
        &[(1, 7, 1, None), (3, 3, 4000, Some(3)), (5, 40, 4, Some(4))],
    );
    expect(&mut two, &before);
    run(&mut two, "commit");
    let checked: Option<(String, String, String, String)> =
        one.query_first("check table t").expect("it runs");
    assert_eq!(checked.expect("a row").3, "OK");
}

/// What a statement inserts is computed of what is committed, not of what its transaction has seen before.
#[test]
fn values_to_insert_are_those_of_now() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "values_of_now");
    run(&mut one, "create table o (id int primary key, a int)");
    run(&mut one, "insert into o values (1, 1)");
    for (n, sql) in [
        "insert into o values (10, (select n from t where id = 1))",
        "insert into o set id = 11, a = (select max(n) from t where id = 1)",
        "replace into o values (1, (select n from t where id = 1))",
        "insert into o values (1, 1) on duplicate key update a = (select n from t where id = 1)",
        "insert into o select 12, n from t where id = 1",
        "update o set a = (select n from t where id = 1) where id = 1",
    ]
    .into_iter()
    .enumerate()
    {
        run(&mut one, "begin");
        run(&mut one, "select * from t");
        run(
            &mut two,
            &format!("update t set n = {} where id = 1", 100 + n),
        );
        run(&mut one, sql);
        let most: Option<i64> = one.query_first("select max(a) from o").expect("it runs");
        assert_eq!(most, Some(100 + n as i64), "{sql}");
        run(&mut one, "rollback");
    }
}
