//! What the OK of a statement that changes rows says: affected rows, the given-out id, the text.

use std::time::Duration;

use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::harness::{TestServer, error_of, query_text};

/// Affected rows, id, warnings and text of the OK.
fn run(connection: &mut Conn, sql: &str) -> (u64, u64, u16, String) {
    connection.query_drop(sql).expect(sql);
    (
        connection.affected_rows(),
        connection.last_insert_id(),
        connection.warnings(),
        connection.info_str().into_owned(),
    )
}

fn text(affected: u64, id: u64, warnings: u16, info: &str) -> (u64, u64, u16, String) {
    (affected, id, warnings, info.to_string())
}

#[test]
fn ok_packets_count_as_mysql_counts() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("changes");
    c.query_drop("create table t (id int auto_increment primary key, k int unique, n int)")
        .expect("a table");
    let steps = [
        ("insert into t (k, n) values (1, 1)", text(1, 1, 0, "")),
        (
            "insert into t (k, n) values (2, 2), (3, 3)",
            text(2, 2, 0, "Records: 2  Duplicates: 0  Warnings: 0"),
        ),
        ("insert into t values (10, 10, 10)", text(1, 10, 0, "")),
        (
            "insert ignore into t (k) values (1), (11)",
            text(1, 11, 1, "Records: 2  Duplicates: 1  Warnings: 1"),
        ),
        (
            "insert into t (k) values (1), (20) on duplicate key update n = 100",
            text(3, 13, 0, "Records: 2  Duplicates: 1  Warnings: 0"),
        ),
        (
            "insert into t (k) values (10) on duplicate key update n = 101",
            text(2, 10, 0, ""),
        ),
        (
            "insert into t (k) values (10) on duplicate key update n = 101",
            text(0, 0, 0, ""),
        ),
        (
            "replace into t values (1, 1, 1), (2, 2, 5)",
            text(4, 2, 0, "Records: 2  Duplicates: 2  Warnings: 0"),
        ),
        (
            "update t set n = 5 where id <= 2",
            text(1, 0, 0, "Rows matched: 2  Changed: 1  Warnings: 0"),
        ),
        (
            "update t set n = last_insert_id(n + 70) where id = 2",
            text(1, 75, 0, "Rows matched: 1  Changed: 1  Warnings: 0"),
        ),
        (
            "update ignore t set n = 'nine' where id = 2",
            text(1, 0, 1, "Rows matched: 1  Changed: 1  Warnings: 1"),
        ),
        ("delete from t where id <= 2", text(2, 0, 0, "")),
    ];
    for (sql, expected) in steps {
        assert_eq!(run(&mut c, sql), expected, "{sql}");
    }
}

#[test]
fn clients_may_ask_for_the_rows_found() {
    let server = TestServer::start();
    drop(server.connect_to_new("found"));
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(server.port())
        .user(Some("root"))
        .db_name(Some("found"))
        .prefer_socket(false)
        .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS);
    let mut c = Conn::new(options).expect("a connection");
    c.query_drop("create table t (id int primary key, n int)")
        .expect("a table");
    for (sql, affected) in [
        ("insert into t values (1, 1), (2, 2)", 2),
        ("update t set n = 1", 2),
        ("update t set n = 1", 2),
        (
            "insert into t values (1, 1) on duplicate key update n = 1",
            1,
        ),
        (
            "insert into t values (1, 1) on duplicate key update n = 7",
            2,
        ),
        ("delete from t", 2),
    ] {
        assert_eq!(run(&mut c, sql).0, affected, "{sql}");
    }
}

/// The row alias of MySQL 8.0.19, which MariaDB does not have.
#[test]
fn a_row_alias_names_the_row_that_was_to_be_inserted() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("aliases");
    c.query_drop("create table t (a int primary key, b int, c int)")
        .expect("a table");
    for (sql, affected) in [
        ("insert into t values (1, 2, 3)", 1),
        (
            "insert into t values (1, 5, 6) as new on duplicate key update c = new.b + b, b = new.c",
            2,
        ),
        (
            "insert into t (c, a) values (4, 1) as new(m, n) on duplicate key update b = m * 10 + n + c",
            2,
        ),
    ] {
        assert_eq!(run(&mut c, sql).0, affected, "{sql}");
    }
    let rows: Vec<(i64, i64, i64)> = c.query("select a, b, c from t").expect("rows");
    assert_eq!(rows, [(1, 48, 7)]);
}

#[test]
fn a_failed_statement_takes_back_all_of_its_changes() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("atomic");
    c.query_drop("create table t (id int primary key, k int unique, s varchar(8), key (s))")
        .expect("a table");
    c.query_drop("insert into t values (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')")
        .expect("rows");
    let before: Vec<(i64, i64, String)> = c.query("select * from t").expect("rows");
    for sql in [
        "update t set k = k + 1, s = 'moved' order by id",
        "update t set id = id + 10, s = repeat('x', id * 3)",
        "replace into t values (1, 2, 'x'), (5, 5, 'too long a text')",
        "insert into t values (9, 9, 'x'), (1, 9, 'x') on duplicate key update k = 3",
        "insert into t select id + 5, k, s from t",
    ] {
        assert!(c.query_drop(sql).is_err(), "{sql}");
        let after: Vec<(i64, i64, String)> = c.query("select * from t").expect("rows");
        assert_eq!(after, before, "{sql}");
        let by_index: Vec<i64> = c
            .query("select id from t force index (s) where s >= 'a' order by s")
            .expect("rows");
        assert_eq!(by_index, [1, 2, 3], "{sql}");
    }
}

/// What is stored is not computed from texts that are no numbers, unless the mode allows it.
#[test]
fn texts_that_are_no_numbers_are_errors_where_rows_are_written() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("texts");
    c.query_drop("create table t (id int primary key, i int, s varchar(20))")
        .expect("a table");
    c.query_drop("insert into t values (1, 10, '5'), (2, 20, 'abc')")
        .expect("rows");
    for sql in [
        "update t set i = i + 'abc'",
        "update t set i = i + s",
        "update t set i = i | s",
        "update t set i = -s",
        "update t set i = i div s",
        "insert into t values (3, 'abc' + 1, '')",
        "insert into t select id + 10, i * s, s from t",
        "insert into t values (1, 0, '') on duplicate key update i = i + 'abc'",
    ] {
        assert_eq!(error_of(c.query_drop(sql)), (1292, "22007".into()), "{sql}");
        let rows = query_text(&mut c, "select * from t order by id");
        assert_eq!(rows, ["1\t10\t5", "2\t20\tabc"], "{sql}");
    }
    let message = "Warning\t1292\tTruncated incorrect DOUBLE value: 'abc'";
    let steps = [
        (
            "update t set i = i + s where id = 1",
            text(1, 0, 0, "Rows matched: 1  Changed: 1  Warnings: 0"),
        ),
        (
            "update ignore t set i = i + s where id = 2",
            text(0, 0, 1, "Rows matched: 1  Changed: 0  Warnings: 1"),
        ),
        (
            "insert ignore into t select id + 10, i * s, s from t",
            text(2, 0, 1, "Records: 2  Duplicates: 0  Warnings: 1"),
        ),
        ("select i - s from t where id = 12", text(0, 0, 1, "")),
        ("set @x = 'abc' + 1", text(0, 0, 1, "")),
    ];
    for (sql, expected) in steps {
        assert_eq!(run(&mut c, sql), expected, "{sql}");
        let warnings = query_text(&mut c, "show warnings");
        assert_eq!(warnings, vec![message; usize::from(expected.2)], "{sql}");
    }
    let rows = query_text(&mut c, "select i from t order by id");
    assert_eq!(rows, ["15", "20", "75", "0"]);
}

/// Rows to change that do not fit into memory wait in a file.
#[test]
fn an_update_larger_than_the_memory_changes_every_row_once() {
    let server = TestServer::start_with_pool(24 << 20, 4 << 20);
    let mut c = server.connect_to_new("large");
    c.query_drop(
        "create table t (id int auto_increment primary key, n int, s varchar(200), key (n))",
    )
    .expect("a table");
    c.query_drop("insert into t (n, s) values (1, repeat('a', 200))")
        .expect("a row");
    for _ in 0..14 {
        c.query_drop("insert into t (n, s) select n, s from t")
            .expect("twice as many rows");
    }
    let rows = 1u64 << 14;
    c.query_drop("update t set n = n + 1, s = concat('b', left(s, 150)) where n > 0")
        .expect("an update");
    assert_eq!(c.affected_rows(), rows);
    let sums: Vec<(u64, u64, u64)> = c
        .query("select count(*), sum(n), sum(length(s)) from t")
        .expect("sums");
    assert_eq!(sums, [(rows, 2 * rows, 151 * rows)]);
    c.query_drop("delete from t where n = 2 order by id desc limit 10000")
        .expect("a delete");
    assert_eq!(c.affected_rows(), 10_000);
    let left: Vec<(u64, u64)> = c.query("select count(*), max(n) from t").expect("rows");
    assert_eq!(left, [(rows - 10_000, 2)]);
}

/// Expressions of VALUES are kept once, and no longer than until they have their values.
#[test]
fn an_insert_of_many_computed_rows_takes_little_memory() {
    const ROWS: usize = 5_000;
    let server = TestServer::start_with_pool(64 << 20, 16 << 20);
    let mut c = server.connect_to_new("computed");
    c.query_drop("create table t (id int primary key, s varchar(20))")
        .expect("a table");
    let rows: Vec<String> = (0..ROWS)
        .map(|id| format!("({id}, concat(upper('x{id}'), 'z'))"))
        .collect();
    c.query_drop(format!("insert into t values {}", rows.join(",")))
        .expect("rows");
    assert_eq!(c.affected_rows(), ROWS as u64);
    let last: Option<String> = c
        .query_first("select s from t where id = 4999")
        .expect("a row");
    assert_eq!(last.as_deref(), Some("X4999z"));
}

/// A row that is moved to a key that the statement names, too, is not met there again.
#[test]
fn an_update_of_keys_changes_each_row_once() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("moved");
    for direct in ["on", "off"] {
        c.query_drop(format!("set optimizer_switch = 'direct={direct}'"))
            .expect("a switch");
        c.query_drop("create table t (id int primary key, n int)")
            .expect("a table");
        c.query_drop("insert into t values (1, 1), (7, 7)")
            .expect("rows");
        let info = "Rows matched: 1  Changed: 1  Warnings: 0";
        for (sql, id) in [
            ("update t set id = id + 1 where id in (1, 2, 3)", 2),
            ("update t set id = 5 where id in (2, 5)", 5),
        ] {
            assert_eq!(run(&mut c, sql), text(1, 0, 0, info), "{sql}");
            let ids: Vec<i64> = c.query("select id from t order by id").expect("rows");
            assert_eq!(ids, [id, 7], "{sql}");
        }
        c.query_drop("drop table t").expect("it is there");
    }
}

/// Others never find that the table is not there.
#[test]
fn a_table_that_is_truncated_is_there_all_the_time() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("emptied");
    c.query_drop("create table t (id int auto_increment primary key, n int, key (n))")
        .expect("a table");
    let mut other = server.connect();
    std::thread::scope(|scope| {
        let truncating = scope.spawn(|| {
            for _ in 0..30 {
                c.query_drop("insert into t (n) values (1), (2)")
                    .expect("rows");
                assert_eq!(c.last_insert_id(), 1);
                c.query_drop("truncate table t").expect("it is there");
            }
        });
        while !truncating.is_finished() {
            match other.query_drop("select count(*) from emptied.t") {
                Ok(()) => {}
                // It has changed again and again while it was planned.
                Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1412, "{error}"),
                Err(error) => panic!("{error}"),
            }
        }
    });
}

/// Rows are copied while others read and write: readers find all rows, writers lose none.
#[test]
fn columns_change_while_others_read_and_write() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("changing");
    c.query_drop("create table t (id int auto_increment primary key, n int, key n (n))")
        .expect("a table");
    let values: Vec<String> = (1..=1000).map(|n| format!("({n})")).collect();
    c.query_drop(format!("insert into t (n) values {}", values.join(", ")))
        .expect("rows");
    let mut other = server.connect();
    // It may have changed again and again while it was planned.
    let is_fine = |result: Result<(), mysql::Error>| match result {
        Ok(()) => true,
        Err(mysql::Error::MySqlError(error)) if error.code == 1412 => false,
        Err(error) => panic!("{error}"),
    };
    let written = std::thread::scope(|scope| {
        let altering = scope.spawn(|| {
            for round in 0..15 {
                for change in [
                    format!("add column c{round} int not null default {round} first"),
                    format!("modify n {}", ["bigint", "int"][round % 2]),
                    format!("rename key n to m, rename column c{round} to d"),
                    "drop column d, rename key m to n".to_string(),
                ] {
                    c.query_drop(format!("alter table t {change}"))
                        .unwrap_or_else(|error| panic!("{change}: {error}"));
                }
            }
        });
        let mut written = 0;
        while !altering.is_finished() {
            let insert = "insert into changing.t (n) values (5000)";
            written += u64::from(is_fine(other.query_drop(insert)));
            let found = other.query_first::<u64, _>("select count(*) from changing.t");
            match found {
                Ok(found) => assert_eq!(found, Some(1000 + written)),
                Err(error) => assert!(!is_fine(Err(error))),
            }
        }
        written
    });
    let mut c = server.connect();
    for index in ["primary", "n"] {
        let sql = format!("select count(n), sum(n = 5000) from changing.t force index ({index})");
        let found: Vec<(u64, u64)> = c.query(sql).expect("counts");
        assert_eq!(found, [(1000 + written, written)]);
    }
}

/// Runs a statement while ALTER TABLE has copied `t` and waits for a reader of it; `Err`: the error's code.
fn run_behind(server: &TestServer, database: &str, alter: &str, sql: &str) -> Result<(), u16> {
    let connect = || {
        let mut c = server.connect();
        c.query_drop(format!("use {database}")).expect("a database");
        c
    };
    let [mut reader, mut altering, mut other] = [connect(), connect(), connect()];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let slow = "select sleep(1) from t limit 1";
            reader.query_drop(slow).expect("a reader");
        });
        std::thread::sleep(Duration::from_millis(200));
        scope.spawn(move || altering.query_drop(alter).expect(alter));
        std::thread::sleep(Duration::from_millis(300));
        match other.query_drop(sql) {
            Ok(()) => Ok(()),
            Err(mysql::Error::MySqlError(error)) => Err(error.code),
            Err(error) => panic!("{error}"),
        }
    })
}

/// A statement that waits for ALTER TABLE finds the columns that there are then.
#[test]
fn what_waits_for_a_change_of_columns_keeps_to_the_new_ones() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("behind");
    c.query_drop("create table s (a int, b int)")
        .expect("a table");
    c.query_drop("insert into s values (10, 20)")
        .expect("a row");
    for (sql, outcome, left) in [
        ("truncate table t", Ok(()), ""),
        ("insert into t (a, b) select * from s", Ok(()), "312,31020"),
        ("insert into t select * from s", Err(1136), "312"),
        ("insert into t (a, b) values (10, 20)", Ok(()), "312,31020"),
        ("insert into t values (10, 20)", Err(1136), "312"),
        ("update t set a = b", Ok(()), "322"),
    ] {
        c.query_drop("create table t (a int, b int)")
            .expect("a table");
        c.query_drop("insert into t values (1, 2)").expect("a row");
        let alter = "alter table t add column c int default 3 first, algorithm=copy";
        assert_eq!(run_behind(&server, "behind", alter, sql), outcome, "{sql}");
        let rows: Option<Option<String>> = c
            .query_first("select group_concat(c, a, b order by a) from t")
            .expect("the column that was added");
        assert_eq!(rows.flatten().unwrap_or_default(), left, "{sql}");
        c.query_drop("drop table t").expect("it is there");
    }
}

/// A table that comes while its parent is altered refers to the columns that the parent has then.
#[test]
fn a_child_of_a_table_that_changes_waits_for_it() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("parents");
    c.query_drop("create table t (a int, b int, key (b))")
        .expect("a table");
    c.query_drop("insert into t values (1, 2)").expect("a row");
    let alter = "alter table t drop column b, algorithm=copy";
    let child = "create table c (b int, foreign key (b) references t (b))";
    assert_eq!(run_behind(&server, "parents", alter, child), Err(3734));
}

/// Rows that come and go while the entries of indexes are counted are nothing wrong.
#[test]
fn a_table_is_checked_while_others_write() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("checked");
    c.query_drop("create table t (id int auto_increment primary key, n int, key (n))")
        .expect("a table");
    let values: Vec<String> = (1..=5000).map(|n| format!("({n})")).collect();
    c.query_drop(format!("insert into t (n) values {}", values.join(", ")))
        .expect("rows");
    let mut other = server.connect();
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            for n in 0..300 {
                let insert = format!("insert into checked.t (n) values ({n}), ({n}), ({n})");
                other.query_drop(insert).expect("rows");
            }
        });
        while !writing.is_finished() {
            let found: Vec<(String, String, String, String)> =
                c.query("check table t").expect("a check");
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].3, "OK");
        }
    });
}

/// A snapshot from before a change of columns cannot be told what it should see.
#[test]
fn old_snapshots_do_not_see_changed_columns() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("snapshots");
    for sql in [
        "create table t (id int primary key)",
        "create table s (id int primary key)",
        "insert into t values (1)",
    ] {
        c.query_drop(sql).expect(sql);
    }
    let mut other = server.connect();
    for sql in ["start transaction", "select * from snapshots.s"] {
        other.query_drop(sql).expect(sql);
    }
    c.query_drop("alter table t add n int default 5")
        .expect("nobody uses it");
    let refused = error_of(other.query_drop("select * from snapshots.t"));
    assert_eq!(refused.0, 1412);
    other.query_drop("rollback").expect("the end");
    assert_eq!(
        query_text(&mut other, "select * from snapshots.t"),
        ["1\t5"]
    );
}

/// Clients count on from `LAST_INSERT_ID()`, whatever other sessions insert meanwhile.
#[test]
fn rows_of_one_insert_get_values_one_behind_another() {
    let server = TestServer::start();
    server
        .connect_to_new("runs")
        .query_drop("create table t (id int auto_increment primary key, tag int, pad varchar(300), key (tag))")
        .expect("a table");
    std::thread::scope(|scope| {
        for session in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut c = server.connect();
                c.query_drop("use runs").expect("a database");
                for n in 0..60u64 {
                    let tag = session * 1_000 + n;
                    // As a direct plan, by value lists, with a value that the vectorised path has to compute.
                    let row = match n % 3 {
                        0 => format!("({tag}, 'a')"),
                        1 => format!("({tag}, '{}')", "b".repeat(300)),
                        _ => format!("({tag}, (select repeat('c', 3)))"),
                    };
                    let rows = vec![row; 5].join(", ");
                    c.query_drop(format!("insert into t (tag, pad) values {rows}"))
                        .expect("rows");
                    let first = c.last_insert_id();
                    let found =
                        format!("select min(id), max(id), count(*) from t where tag = {tag}");
                    let found: Vec<(u64, u64, u64)> = c.query(found).expect("rows");
                    assert_eq!(found, [(first, first + 4, 5)]);
                }
            });
        }
    });
}
