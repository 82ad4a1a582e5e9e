//! Transactions of several sessions: what each sees of the others, and who waits for whom.

use std::sync::mpsc;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::TestServer;

/// Two sessions on a table `t (id, n)` with the rows (1, 10) and (2, 20).
fn two_sessions(server: &TestServer, database: &str) -> (Conn, Conn) {
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

fn run(connection: &mut Conn, sql: &str) {
    connection.query_drop(sql).expect(sql);
}

fn error_of(connection: &mut Conn, sql: &str) -> u16 {
    match connection.query_drop(sql) {
        Err(mysql::Error::MySqlError(error)) => error.code,
        other => panic!("{sql}: {other:?}"),
    }
}

/// The rows as the clustered index and the index on n show them, which must agree.
fn rows(connection: &mut Conn) -> Vec<(i64, i64)> {
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
fn whoever_changes_what_another_changed_waits_for_its_end() {
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
fn locking_reads_see_the_newest_rows_and_keep_them() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "locking");
    run(&mut one, "begin");
    assert_eq!(rows(&mut one), [(1, 10), (2, 20)]);
    run(&mut two, "update t set n = 15 where id = 1");
    let newest: Vec<i64> = one
        .query("select n from t where id = 1 for update")
        .expect("rows");
    assert_eq!(newest, [15]);
    let shared: Vec<i64> = one
        .query("select n from t where id = 1 lock in share mode")
        .expect("rows");
    assert_eq!(shared, [15]);
    assert_eq!(rows(&mut one), [(1, 10), (2, 20)]);
    run(&mut two, "set innodb_lock_wait_timeout = 1");
    assert_eq!(error_of(&mut two, "update t set n = 16 where id = 1"), 1205);
    run(&mut one, "update t set n = n + 1 where id = 1");
    run(&mut one, "commit");
    assert_eq!(rows(&mut two), [(1, 16), (2, 20)]);
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
