//! LOCK TABLES, FLUSH TABLES WITH READ LOCK, UNLOCK TABLES: which session waits for which, what a session
//! may do that has locked tables, and what ends the locks.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::clients::{installed, mariadb};
use crate::harness::{TestServer, query_text, wait_until};
use crate::transactions::{error_of, run};

pub const TABLE_LOCK: &str = "Waiting for table metadata lock";
const GLOBAL_LOCK: &str = "Waiting for global read lock";
const COMMIT_LOCK: &str = "Waiting for commit lock";

/// Two sessions on tables `t` and `u (a INT PRIMARY KEY, b INT)`, with a row (1, 10) in each.
pub fn two_sessions(server: &TestServer) -> (Conn, Conn) {
    let mut one = server.connect_to_new("d");
    for table in ["t", "u"] {
        run(
            &mut one,
            &format!("create table {table} (a int primary key, b int)"),
        );
        run(&mut one, &format!("insert into {table} values (1, 10)"));
    }
    (one, another(server))
}

pub fn another(server: &TestServer) -> Conn {
    let mut connection = server.connect();
    run(&mut connection, "use d");
    connection
}

pub fn id_of(connection: &Conn) -> u32 {
    connection.connection_id()
}

pub fn state_of(watcher: &mut Conn, id: u32) -> Vec<String> {
    let state = format!("select state from information_schema.processlist where id = {id}");
    query_text(watcher, &state)
}

pub fn set_wait(connection: &mut Conn, seconds: u32) {
    let waits = ["lock_wait_timeout", "innodb_lock_wait_timeout"];
    for variable in waits {
        run(connection, &format!("set {variable} = {seconds}"));
    }
}

/// Runs a statement that has to wait in this state until `release` has run, and then succeeds.
pub fn waits(
    server: &TestServer,
    waiting: &mut Conn,
    sql: &str,
    state: &str,
    release: impl FnOnce(),
) {
    set_wait(waiting, 60);
    let mut watcher = server.connect();
    let id = id_of(waiting);
    std::thread::scope(|scope| {
        let statement = scope.spawn(|| run(waiting, sql));
        wait_until(&format!("{sql} to wait"), || {
            state_of(&mut watcher, id) == [state]
        });
        assert!(!statement.is_finished(), "{sql}");
        release();
        statement.join().expect(sql);
    });
}

/// Asserts that a statement does not wait.
pub fn goes_on(connection: &mut Conn, sql: &str) {
    set_wait(connection, 1);
    run(connection, sql);
    set_wait(connection, 60);
}

/// Asserts that a statement waits for something that does not come.
pub fn times_out(connection: &mut Conn, sql: &str) {
    set_wait(connection, 1);
    assert_eq!(error_of(connection, sql), 1205, "{sql}");
    set_wait(connection, 60);
}

/// Tells other threads to stop, also when a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn others_read_beside_a_read_lock_and_wait_to_write() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "lock tables t read local");
    assert_eq!(query_text(&mut two, "select b from t where a = 1"), ["10"]);
    assert_eq!(query_text(&mut two, "select sum(b) from t"), ["10"]);
    assert_eq!(query_text(&mut one, "select b from t"), ["10"]);
    goes_on(&mut two, "update u set b = 11");
    // Another READ goes with it, and WRITE does not.
    goes_on(&mut two, "lock tables t read, u write");
    run(&mut two, "unlock tables");
    goes_on(&mut two, "select * from t where a = 1 for share");
    goes_on(
        &mut two,
        "select t.a from t join u on u.a = t.a for update of u",
    );
    goes_on(&mut two, "analyze table t");
    for statement in [
        "insert into t values (2, 20)",
        "insert into t select a + 1, b from u",
        "update t set b = 12 where a = 1",
        "update t join u on u.a = t.a set t.b = 12",
        "delete from t",
        "select * from t where a = 1 for update",
        "select t.a from t join u on u.a = t.a for update",
        "select * from t where a = 1 for update skip locked",
        "truncate table t",
        "alter table t add c int",
        "drop table t",
        "lock tables u write, t write",
    ] {
        times_out(&mut two, statement);
    }
    waits(
        &server,
        &mut two,
        "update t set b = 12 where a = 1",
        TABLE_LOCK,
        || run(&mut one, "unlock tables"),
    );
    assert_eq!(query_text(&mut one, "select b from t"), ["12"]);
}

#[test]
fn others_wait_for_a_write_lock() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "lock tables t write");
    run(&mut one, "insert into t values (2, 20)");
    for statement in [
        "select b from t where a = 1",
        "select sum(b) from t",
        "select t.b from t join u on u.a = t.a",
        "insert into t values (3, 30)",
        "delete from t",
        "lock tables t read",
        "alter table t add c int",
    ] {
        times_out(&mut two, statement);
    }
    goes_on(&mut two, "select * from u");
    waits(
        &server,
        &mut two,
        "insert into t values (3, 30)",
        TABLE_LOCK,
        || {
            run(&mut one, "update t set b = b + 1 where a = 2");
            run(&mut one, "unlock tables");
        },
    );
    assert_eq!(
        query_text(&mut two, "select * from t"),
        ["1\t10", "2\t21", "3\t30"]
    );
}

#[test]
fn a_session_uses_only_what_it_has_locked_and_as_it_has_locked_it() {
    let server = TestServer::start();
    let (mut one, _) = two_sessions(&server);
    run(&mut one, "create table w (a int)");
    run(&mut one, "lock tables t read, t as x read, u as y write");
    for statement in [
        "select * from t",
        "select * from t where a = 1",
        "select * from t join t as x on x.b = t.b",
        "select * from d.t, t x, u y",
        "select * from t where exists (select * from u y where y.a = t.a)",
        "with t as (select a from u as y) select * from t, t as q",
        "update u as y set b = 1",
        "update u as y join t on t.a = y.a set y.b = t.b",
        "delete y from u as y join t on t.a = y.a where t.b = 99",
        "select count(*) from information_schema.tables",
        "select 1 from dual",
        "show create table u",
        "show tables",
        "do (select b from t where a = 1)",
        "explain select * from t",
    ] {
        run(&mut one, statement);
    }
    for (statement, expected) in [
        ("select * from u", 1100),
        ("select * from u where a = 1", 1100),
        ("select * from t as q", 1100),
        ("select * from t, t as x, t as z", 1100),
        ("select * from t where a in (select a from t)", 1100),
        ("select * from t union select * from t", 1100),
        (
            "select * from t where exists (select * from u where u.a = t.a)",
            1100,
        ),
        ("insert into u select * from t", 1100),
        ("insert into u values (5, 5)", 1100),
        ("update t set b = (select max(b) from u)", 1100),
        ("update u set b = 1", 1100),
        ("delete from u where a = 1", 1100),
        ("do (select b from u where a = 1)", 1100),
        ("set @b = (select a from w)", 1100),
        ("explain select * from u", 1100),
        ("analyze table u", 1100),
        ("insert into t values (5, 5)", 1099),
        ("insert into t select a, b from u as y", 1099),
        ("update t set b = 1 where a = 1", 1099),
        ("update u as y join t on t.a = y.a set t.b = 5", 1099),
        ("delete from t", 1099),
        ("delete t from t join u as y on t.a = y.a", 1099),
        ("replace into t values (1, 1)", 1099),
        ("select * from t for update", 1099),
        ("truncate table t", 1099),
    ] {
        assert_eq!(error_of(&mut one, statement), expected, "{statement}");
    }
    let message = one
        .query_drop("select * from u as v")
        .expect_err("it is not locked");
    assert!(
        message
            .to_string()
            .contains("Table 'v' was not locked with LOCK TABLES"),
        "{message}"
    );
    run(&mut one, "select * from t for share");
    // Prepared statements obey, too.
    run(&mut one, "unlock tables");
    let prepared = one
        .prep("select b from t where a = ?")
        .expect("a statement");
    let b: Option<i32> = one.exec_first(&prepared, (1,)).expect("a row");
    assert!(b.is_some());
    run(&mut one, "lock tables u write");
    let refused = one.exec_drop(&prepared, (1,));
    assert_eq!(crate::harness::error_of(refused).0, 1100);
    let change = one
        .prep("update u set b = ? where a = 1")
        .expect("a statement");
    one.exec_drop(&change, (7,)).expect("it is locked");
    run(&mut one, "unlock tables");
    let b: Option<i32> = one.exec_first(&prepared, (1,)).expect("a row");
    assert!(b.is_some());
}

#[test]
fn what_cannot_be_locked_is_refused_and_nothing_is_locked() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "lock tables t write");
    for (statement, expected) in [
        ("lock tables u write, absent read", 1146),
        ("lock tables t read, t write", 1066),
        ("lock tables t as x read, u as x read", 1066),
        ("lock tables t", 1064),
        ("lock tables t reading", 1064),
    ] {
        assert_eq!(error_of(&mut one, statement), expected, "{statement}");
    }
    goes_on(&mut two, "update t set b = 11");
    goes_on(&mut two, "update u set b = 11");
    run(&mut one, "select * from t, u");
    run(
        &mut one,
        "lock tables information_schema.tables read, mysql.user read",
    );
    assert_eq!(error_of(&mut one, "select * from t"), 1100);
    run(&mut one, "unlock tables");
}

#[test]
fn locks_end_with_unlock_a_transaction_other_locks_a_reset_and_the_session() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    for end in [
        "unlock tables",
        "unlock table",
        "start transaction",
        "begin",
        "lock tables u read",
    ] {
        run(&mut one, "lock tables t write");
        times_out(&mut two, "select * from t");
        run(&mut one, end);
        goes_on(&mut two, "update t set b = b + 1");
        run(&mut one, "unlock tables");
        run(&mut one, "rollback");
    }
    // These end no locks.
    run(&mut one, "lock tables t write");
    for other in [
        "commit",
        "rollback",
        "insert into t values (9, 9)",
        "set autocommit = 1",
    ] {
        run(&mut one, other);
        times_out(&mut two, "select * from t");
    }
    one.reset().expect("a reset");
    goes_on(&mut two, "update t set b = b + 1");
    run(&mut one, "use d");
    run(&mut one, "lock tables t write");
    times_out(&mut two, "select * from t");
    drop(one);
    waits_not_for_the_dead(&mut two);
}

/// A connection that was closed may take the server a moment to notice.
fn waits_not_for_the_dead(connection: &mut Conn) {
    run(connection, "select count(*) from t");
    goes_on(connection, "update t set b = b + 1");
}

#[test]
fn a_killed_session_leaves_no_locks() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "lock tables t write");
    let id = id_of(&one);
    run(&mut two, &format!("kill {id}"));
    waits_not_for_the_dead(&mut two);
    let mut one = another(&server);
    run(&mut one, "flush tables with read lock");
    let id = id_of(&one);
    run(&mut two, &format!("kill {id}"));
    run(&mut two, "update t set b = b + 1");
}

#[test]
fn locking_commits_and_unlocking_does_if_tables_were_locked() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "begin");
    run(&mut one, "update t set b = 11");
    run(&mut one, "lock tables u read");
    run(&mut one, "rollback");
    assert_eq!(query_text(&mut two, "select b from t"), ["11"]);
    run(&mut one, "unlock tables");
    // Without locks it is no end of a transaction.
    run(&mut one, "begin");
    run(&mut one, "update t set b = 12");
    run(&mut one, "unlock tables");
    run(&mut one, "rollback");
    assert_eq!(query_text(&mut two, "select b from t"), ["11"]);
    // Transactions go on under the locks.
    run(&mut one, "set autocommit = 0");
    run(&mut one, "lock tables t write");
    run(&mut one, "update t set b = 13");
    run(&mut one, "rollback");
    assert_eq!(query_text(&mut one, "select b from t"), ["11"]);
    run(&mut one, "update t set b = 14");
    run(&mut one, "commit");
    run(&mut one, "update t set b = b + 1");
    run(&mut one, "unlock tables");
    run(&mut one, "rollback");
    assert_eq!(query_text(&mut two, "select b from t"), ["15"]);
}

#[test]
fn locking_waits_for_transactions_and_can_be_ended() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "begin");
    run(&mut one, "update t set b = 11");
    times_out(&mut two, "lock tables t read");
    times_out(&mut two, "lock tables u write, t write");
    // Nothing is left of what was waited for, and nothing was held meanwhile.
    goes_on(&mut one, "update u set b = 11");
    waits(&server, &mut two, "lock tables t read", TABLE_LOCK, || {
        run(&mut one, "update t set b = 12");
        run(&mut one, "commit");
    });
    assert_eq!(query_text(&mut two, "select b from t"), ["12"]);
    run(&mut two, "unlock tables");
    // A transaction that has read makes WRITE wait, and a change of the definition, but not READ.
    run(&mut one, "begin");
    run(&mut one, "select * from t");
    goes_on(&mut two, "lock tables t read");
    run(&mut two, "unlock tables");
    let (id, mut three) = (id_of(&two), another(&server));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| error_of(&mut two, "lock tables u read, t write"));
        wait_until("it waits", || state_of(&mut three, id) == [TABLE_LOCK]);
        // It holds nothing while it waits, and a transaction that holds something goes on.
        goes_on(&mut one, "select * from t, u");
        run(&mut three, &format!("kill query {id}"));
        assert_eq!(waiting.join().expect("an error"), 1317);
    });
    goes_on(&mut one, "update t set b = 13");
    run(&mut one, "commit");
    goes_on(&mut two, "lock tables u write, t write");
    run(&mut two, "unlock tables");
    run(&mut one, "begin");
    run(&mut one, "select * from t where a = 1 for update");
    waits(&server, &mut two, "lock tables t read", TABLE_LOCK, || {
        run(&mut one, "commit");
    });
}

#[test]
fn a_statement_may_say_itself_how_long_it_waits() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "create index i on t (b) wait 3");
    run(&mut one, "optimize table t nowait");
    run(&mut one, "lock tables t write concurrent wait 5");
    set_wait(&mut two, 60);
    for statement in [
        "lock tables t read nowait",
        "lock tables u read, t as x write wait 1",
        "lock table t write concurrent nowait",
        "alter table t nowait add c int",
        "alter table t wait 1 comment 'altered'",
        "create index j on t (b) nowait",
        "drop index i on t wait 0",
        "truncate table t nowait",
        "rename table t nowait to v",
        "drop table t nowait",
    ] {
        assert_eq!(error_of(&mut two, statement), 1205, "{statement}");
    }
    let limits = "select @@lock_wait_timeout, @@innodb_lock_wait_timeout";
    assert_eq!(query_text(&mut two, limits), ["60\t60"]);
    for wrong in ["lock tables t read wait", "lock tables t read wait -1"] {
        assert_eq!(error_of(&mut two, wrong), 1064, "{wrong}");
    }
    run(&mut one, "unlock tables");
    run(&mut two, "lock tables t read, u write nowait");
}

#[test]
fn tables_that_others_write_all_the_time_can_be_locked() {
    let server = TestServer::start();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Unlocks what writers wait for if something fails.
        let (mut one, _) = two_sessions(&server);
        for writer in 0..4 {
            let (done, mut connection) = (&done, another(&server));
            scope.spawn(move || {
                run(
                    &mut connection,
                    &format!("insert into t values ({}, 0)", 100 + writer),
                );
                run(
                    &mut connection,
                    &format!("insert into u values ({}, 0)", 100 + writer),
                );
                while !done.load(Ordering::Relaxed) {
                    for table in ["t", "u"] {
                        run(&mut connection, "begin");
                        run(
                            &mut connection,
                            &format!("update {table} set b = b + 1 where a = {}", 100 + writer),
                        );
                        run(&mut connection, "commit");
                        run(
                            &mut connection,
                            &format!("update {table} set b = b + 1 where a = {}", 100 + writer),
                        );
                    }
                }
            });
        }
        let _stop = Stop(&done);
        for lock in [
            "lock tables t read, u read",
            "lock tables t write, u read",
            "flush tables with read lock",
        ] {
            for _ in 0..5 {
                run(&mut one, lock);
                let sums = "select (select sum(b) from t), (select sum(b) from u)";
                let before = query_text(&mut one, sums);
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert_eq!(query_text(&mut one, sums), before, "{lock}");
                run(&mut one, "unlock tables");
            }
        }
    });
}

#[test]
fn definitions_of_tables_that_are_locked_for_write_change() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "lock tables t write, u read");
    for (statement, expected) in [
        ("alter table u add c int", 1099),
        ("drop table u", 1099),
        ("drop table t, u", 1099),
        ("create index i on u (b)", 1099),
        ("drop table absent", 1100),
        ("create table v (a int)", 1100),
        ("create table v as select * from t", 1100),
        ("create table t (a int)", 1050),
        ("alter table t add foreign key (b) references w (a)", 1100),
        ("rename table u to v", 1099),
        ("rename table t to v, w to t", 1100),
        ("alter table u rename to v", 1099),
        ("create database e", 1192),
        ("alter database d collate utf8mb4_bin", 1192),
        ("drop database d", 1192),
        ("flush tables with read lock", 1192),
        ("flush tables t with read lock", 1192),
    ] {
        assert_eq!(error_of(&mut one, statement), expected, "{statement}");
    }
    for statement in [
        "create table if not exists t (a int)",
        "alter table t disable keys",
        "insert into t values (2, 20), (3, 30)",
        "alter table t enable keys",
        "create index i on t (b)",
        "alter table t add c int default 5",
        "insert into t values (4, 40, 4)",
        "analyze table t",
        "alter table t modify b bigint",
    ] {
        run(&mut one, statement);
        times_out(&mut two, "select * from t");
    }
    assert_eq!(
        query_text(&mut one, "select sum(b), sum(c) from t"),
        ["100\t19"]
    );
    run(&mut one, "truncate table t");
    times_out(&mut two, "insert into t values (1, 1, 1)");
    run(&mut one, "insert into t values (7, 70, 7)");
    waits(
        &server,
        &mut two,
        "update t set b = b + 1",
        TABLE_LOCK,
        || {
            run(&mut one, "unlock tables");
        },
    );
    assert_eq!(query_text(&mut one, "select * from t"), ["7\t71\t7"]);
    run(&mut one, "lock tables t write");
    run(&mut one, "drop table t");
    assert_eq!(error_of(&mut one, "select * from t"), 1146);
    run(&mut one, "unlock tables");
    assert_eq!(error_of(&mut two, "select * from t"), 1146);
}

#[test]
fn tables_that_are_locked_for_write_are_renamed_and_stay_locked() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "update u set b = 20");
    run(&mut one, "lock tables t write, t as x read, u write");
    run(&mut one, "rename table t to v");
    assert_eq!(error_of(&mut one, "select * from t"), 1100);
    assert_eq!(
        query_text(&mut one, "select v.b, x.b from v join v as x on x.a = v.a"),
        ["10\t10"]
    );
    times_out(&mut two, "select * from v");
    assert_eq!(error_of(&mut two, "select * from t"), 1146);
    run(&mut one, "rename table v to w, u to v, w to u");
    assert_eq!(query_text(&mut one, "select b from v"), ["20"]);
    assert_eq!(query_text(&mut one, "select b from u"), ["10"]);
    times_out(&mut two, "select * from u");
    run(&mut one, "alter table v rename to t");
    run(&mut one, "update t set b = 21");
    times_out(&mut two, "select * from t");
    run(&mut one, "drop table t");
    waits(&server, &mut two, "select * from u", TABLE_LOCK, || {
        run(&mut one, "unlock tables");
    });
}

#[test]
fn tables_that_foreign_keys_connect_are_locked_besides() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(
        &mut one,
        "create table child (a int primary key, t int, foreign key (t) references t (a) on delete cascade)",
    );
    run(&mut one, "lock tables child write");
    run(&mut one, "insert into child values (1, 1)");
    assert_eq!(error_of(&mut one, "insert into child values (2, 2)"), 1452);
    // The parent is looked at, and may be named by others only.
    assert_eq!(error_of(&mut one, "select * from t"), 1100);
    goes_on(&mut two, "select * from t");
    times_out(&mut two, "delete from t");
    // Another one that looks at it is not in the way.
    goes_on(&mut two, "lock tables t read");
    run(&mut one, "update child set t = null");
    run(&mut one, "update child set t = 1");
    run(&mut two, "unlock tables");
    run(&mut one, "lock tables t write");
    times_out(&mut two, "select * from child");
    run(&mut one, "delete from t where a = 1");
    run(&mut one, "unlock tables");
    assert_eq!(query_text(&mut two, "select count(*) from child"), ["0"]);
}

#[test]
fn the_global_read_lock_keeps_everything_as_it_is() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "flush tables with read lock");
    for statement in [
        "insert into t values (2, 20)",
        "update t set b = 11 where a = 1",
        "update t set b = b + 1 where b > (select min(b) from u)",
        "delete from t",
        "select * from t where a = 1 for update",
        "select t.a from t join u on u.a = t.a for update",
        "analyze table t",
        "optimize table t",
        "analyze table t update histogram on b",
        "truncate table t",
        "alter table t add c int",
        "create table v (a int)",
        "drop table t",
        "create database e",
        "create user bob",
        "lock tables t write",
    ] {
        times_out(&mut two, statement);
        assert_eq!(error_of(&mut one, statement), 1223, "{statement}");
    }
    goes_on(&mut two, "select * from t, u");
    goes_on(&mut two, "select * from t for share");
    goes_on(&mut two, "check table t");
    goes_on(&mut two, "lock tables t read");
    run(&mut two, "unlock tables");
    run(&mut one, "select * from t, u");
    // A second session has it, too; it lasts until both have given it back.
    let mut three = another(&server);
    goes_on(&mut three, "flush tables with read lock");
    run(&mut one, "unlock tables");
    waits(
        &server,
        &mut two,
        "update t set b = 11",
        GLOBAL_LOCK,
        || {
            run(&mut three, "unlock tables");
        },
    );
    // It lasts beyond START TRANSACTION, and its end does not commit: so snapshots are taken at a known place.
    run(&mut one, "flush tables with read lock");
    run(&mut one, "start transaction with consistent snapshot");
    waits(
        &server,
        &mut two,
        "update t set b = 12",
        GLOBAL_LOCK,
        || {
            run(&mut one, "unlock tables");
        },
    );
    assert_eq!(query_text(&mut one, "select b from t"), ["11"]);
    run(&mut one, "commit");
    assert_eq!(query_text(&mut one, "select b from t"), ["12"]);
    run(&mut one, "flush tables with read lock");
    one.reset().expect("a reset");
    goes_on(&mut two, "update t set b = 13");
}

#[test]
fn transactions_neither_change_nor_commit_under_the_global_read_lock() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut two, "begin");
    run(&mut two, "update t set b = 11");
    // It waits for statements, not for transactions.
    goes_on(&mut one, "flush tables with read lock");
    assert_eq!(query_text(&mut one, "select b from t"), ["10"]);
    times_out(&mut two, "update u set b = 11");
    waits(&server, &mut two, "commit", COMMIT_LOCK, || {
        run(&mut one, "unlock tables");
    });
    assert_eq!(query_text(&mut one, "select b from t"), ["11"]);
    // A transaction that has changed nothing commits, and one that has may roll back.
    run(&mut two, "begin");
    run(&mut two, "select * from t");
    let mut three = another(&server);
    run(&mut three, "begin");
    run(&mut three, "update t set b = 12");
    run(&mut one, "flush tables with read lock");
    goes_on(&mut two, "commit");
    run(&mut three, "rollback");
    run(&mut one, "unlock tables");
    // A statement that waits for a row is waited for, and the row's owner commits meanwhile.
    run(&mut three, "begin");
    run(&mut three, "update t set b = 13");
    let mut watcher = another(&server);
    let (writer, locker) = (id_of(&two), id_of(&one));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&mut two, "update t set b = b + 1"));
        let running = format!(
            "select count(*) from information_schema.processlist where id = {writer} and info like 'update%'"
        );
        wait_until("the update waits", || {
            query_text(&mut watcher, &running) == ["1"]
        });
        std::thread::sleep(std::time::Duration::from_millis(100));
        let locking = scope.spawn(|| run(&mut one, "flush tables with read lock"));
        wait_until("the lock waits", || {
            state_of(&mut watcher, locker) == [GLOBAL_LOCK]
        });
        run(&mut three, "commit");
        waiting.join().expect("the update");
        locking.join().expect("the lock");
    });
    assert_eq!(query_text(&mut one, "select b from t"), ["14"]);
    run(&mut one, "unlock tables");
    // Tables that are locked for WRITE are waited for as long as they are.
    run(&mut two, "lock tables t write");
    waits(
        &server,
        &mut one,
        "flush tables with read lock",
        GLOBAL_LOCK,
        || {
            run(&mut two, "update t set b = 15");
            run(&mut two, "unlock tables");
        },
    );
}

#[test]
fn flush_of_some_tables_with_read_lock_locks_them() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "flush local tables");
    run(&mut one, "flush tables t, u with read lock");
    assert_eq!(error_of(&mut one, "update t set b = 1"), 1099);
    times_out(&mut two, "update t set b = 1");
    goes_on(&mut two, "select * from t");
    run(&mut one, "unlock tables");
    goes_on(&mut two, "update t set b = 1");
    assert_eq!(
        error_of(&mut one, "flush tables absent with read lock"),
        1146
    );
}

#[test]
fn locks_need_privileges() {
    let server = TestServer::start();
    let (mut root, _) = two_sessions(&server);
    run(&mut root, "create user bob");
    run(&mut root, "grant select on d.* to bob");
    let options = server.options().user(Some("bob")).db_name(Some("d"));
    let mut bob = Conn::new(options).expect("bob has no password");
    assert_eq!(error_of(&mut bob, "lock tables t read"), 1044);
    assert_eq!(error_of(&mut bob, "flush tables with read lock"), 1227);
    run(&mut root, "grant lock tables on d.* to bob");
    run(&mut bob, "lock tables t read, u write");
    assert_eq!(error_of(&mut bob, "update u set b = 1"), 1142);
    run(&mut bob, "unlock tables");
    assert_eq!(error_of(&mut bob, "flush tables t with read lock"), 1227);
    run(&mut root, "grant reload on *.* to bob");
    run(&mut bob, "flush tables t with read lock");
    run(&mut bob, "unlock tables");
    run(&mut bob, "flush tables with read lock");
    run(&mut bob, "unlock tables");
}

#[test]
fn dumps_lock_what_they_read_and_are_read_again() {
    if !installed("mariadb-dump", &["mariadb-dump", "--version"])
        || !installed("the mariadb client", &["mariadb", "--version"])
    {
        return;
    }
    let server = TestServer::start();
    let (mut one, _) = two_sessions(&server);
    run(
        &mut one,
        "create table child (a int primary key, t int, foreign key (t) references t (a))",
    );
    run(&mut one, "insert into child values (1, 1)");
    let port = format!("-P{}", server.port());
    for (n, options) in [
        &["--opt"][..],
        &["--lock-tables", "--skip-add-locks"],
        &["--lock-all-tables"],
        &["--single-transaction"],
    ]
    .into_iter()
    .enumerate()
    {
        let dump = Command::new("mariadb-dump")
            .args(["--no-defaults", "-h", "127.0.0.1", "-u", "root", &port])
            .args(options)
            .arg("d")
            .stdin(Stdio::null())
            .output()
            .expect("mariadb-dump runs");
        let errors = String::from_utf8_lossy(&dump.stderr);
        assert!(dump.status.success(), "{options:?}: {errors}");
        let file = server.directory().path().join(format!("dump{n}.sql"));
        std::fs::write(&file, &dump.stdout).expect("a file");
        run(&mut one, &format!("create database copy{n}"));
        let source = format!("source {}", file.display());
        let read = mariadb(server.port(), &[&format!("copy{n}"), "-e", &source]);
        let errors = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success(), "{options:?}: {errors}");
        for table in ["t", "u", "child"] {
            let rows = |connection: &mut Conn, database: &str| {
                query_text(connection, &format!("select * from {database}.{table}"))
            };
            let copied = rows(&mut one, &format!("copy{n}"));
            assert_eq!(copied, rows(&mut one, "d"), "{table} with {options:?}");
            assert_eq!(copied.len(), 1);
        }
    }
}

#[test]
fn locks_end_with_the_last_table_that_is_dropped() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "lock tables t write, u write");
    run(&mut one, "drop table t");
    assert_eq!(
        error_of(&mut one, "create table t (a int primary key)"),
        1100
    );
    run(&mut one, "drop table u");
    run(&mut one, "create table t (a int primary key)");
    run(&mut one, "insert into t values (1)");
    // Nothing is left that keeps others waiting.
    goes_on(&mut two, "flush tables with read lock");
    run(&mut two, "unlock tables");
}
