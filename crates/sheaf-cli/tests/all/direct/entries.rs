//! Direct reads by entries of an index: tested before their rows are looked up, and read as a snapshot has them.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, query_text};

#[test]
fn rows_that_are_not_in_memory_are_asked_for_ahead() {
    let mut server = TestServer::start();
    let mut connection = server.connect_to_new("ahead");
    connection
        .query_drop("create table t (id int primary key, k int, filler varchar(1000), key (k))")
        .expect("a table");
    for batch in 0..8 {
        let rows: Vec<String> = (0..250)
            .map(|row| batch * 250 + row)
            .map(|id| format!("({id}, {}, '{}')", id % 10, "x".repeat(1000)))
            .collect();
        connection
            .query_drop(format!("insert into t values {}", rows.join(", ")))
            .expect("rows");
    }
    drop(connection);
    server.restart();
    let mut connection = server.connect();
    connection.query_drop("use ahead").expect("the database");
    let pages = |connection: &mut Conn| -> (u64, u64) {
        let mut value = |name: &str| {
            let row: Option<(String, u64)> = connection
                .query_first(format!(
                    "show global status like 'Innodb_buffer_pool_{name}'"
                ))
                .expect("a status variable");
            row.map_or(0, |(_, value)| value)
        };
        (value("reads"), value("read_ahead"))
    };
    // 200 rows on as many leaves, in the order of the index, then in no order.
    for (sql, waits) in [
        ("select id, filler from t where k = 3 and filler > 'a'", 20),
        (
            "select id, filler from t where k = 3 order by filler, id limit 3",
            0,
        ),
    ] {
        let explained = query_text(&mut connection, &format!("explain {sql}"));
        assert!(explained[0].contains("Direct"), "{explained:?}");
        let before = pages(&mut connection);
        query_text(&mut connection, sql);
        let after = pages(&mut connection);
        let (waited, ahead) = (after.0 - before.0, after.1 - before.1);
        assert!(waited <= waits, "{sql}: {waited} pages waited for");
        assert_eq!(ahead > 80, waits > 0, "{sql}: {ahead} pages asked for");
    }
}

/// Entries decide about what the index holds, and stand for their rows where it holds all that is read.
#[test]
fn entries_are_tested_before_their_rows_are_looked_up() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("entries");
    for sql in [
        "create table t (id int primary key, a int, b varchar(20), c decimal(8,2) not null, d int, key a_b_c (a, b, c))",
        "insert into t values (1, 1, 'x', 1.5, 10), (2, 1, 'Y', 2.5, 20), (3, 2, 'y', 3.5, 30), (4, 2, null, 4.5, 40),
         (5, 3, 'y', 5.5, 50), (6, 3, 'z', 6.5, 60), (7, 4, 'y', 7.5, 70)",
        "analyze table t",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let icp = |connection: &mut Conn, sql: &str| {
        connection.query_drop("flush status").expect("a reset");
        let rows = query_text(connection, sql);
        let counts = query_text(connection, "show session status like 'Handler_icp%'");
        let counts: Vec<String> = counts
            .iter()
            .filter_map(|line| line.split('\t').next_back())
            .map(str::to_string)
            .collect();
        let explained = query_text(connection, &format!("explain {sql}"));
        let extra = explained[0].rsplit('\t').next().unwrap_or_default();
        (rows, counts.join(" of "), extra.to_string())
    };
    let text = |texts: &[&str]| -> Vec<String> { texts.iter().map(ToString::to_string).collect() };
    // Six entries are looked at, two of them lead to rows.
    let (rows, counts, extra) = icp(
        &mut connection,
        "select d from t where a between 1 and 3 and b = 'y' and c >= 3 order by a",
    );
    assert_eq!(rows, text(&["30", "50"]));
    assert_eq!(counts, "6 of 2");
    assert!(extra.starts_with("Using index condition"), "{extra}");
    assert!(extra.ends_with("Direct"), "{extra}");
    // The index has all of it, the values as they were written and the primary key too.
    let (rows, counts, extra) = icp(
        &mut connection,
        "select id, b, c from t where a between 1 and 3 and b = 'Y' order by a desc, b desc",
    );
    assert_eq!(rows, text(&["5\ty\t5.50", "3\ty\t3.50", "2\tY\t2.50"]));
    assert_eq!(counts, "0 of 0");
    assert!(extra.contains("Using index;"), "{extra}");
    assert!(extra.ends_with("Direct"), "{extra}");
    let (rows, ..) = icp(
        &mut connection,
        "select count(*), count(b), sum(c), max(id) from t where a between 1 and 2",
    );
    assert_eq!(rows, text(&["4\t3\t12.00\t4"]));
    let (rows, ..) = icp(
        &mut connection,
        "select distinct b from t where a between 1 and 2 order by b",
    );
    assert_eq!(rows, text(&["NULL", "x", "Y"]));
    for (sql, value) in [
        ("select max(a) from t", "4"),
        ("select min(a) from t where b = 'Y'", "1"),
        ("select max(a) from t where b = 'x'", "1"),
        ("select min(d) from t where id > 3", "40"),
        ("select min(id) from t where id > 3 and d > 55", "6"),
        ("select max(id) from t where id < 3 and d > 55", "NULL"),
        ("select max(a) from t where a < 1", "NULL"),
        ("select max(b) from t where a = 2", "y"),
        ("select min(c) from t where a = 2 and b = 'y'", "3.50"),
    ] {
        assert_eq!(icp(&mut connection, sql).0, [value], "{sql}");
    }
    // Of two indexes with the same range, the one whose entries say more.
    for sql in [
        "create table two (id int primary key, a int, b int, c int, d int, key a_c (a, c), key a_b (a, b))",
        "insert into two values (1, 1, 1, 1, 1), (2, 1, 2, 2, 2), (3, 2, 2, 3, 3)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    for (sql, key) in [
        (
            "select d from two where a between 1 and 2 and b = 2",
            "a_b Using index condition; Direct",
        ),
        (
            "select c from two where a between 1 and 2",
            "a_c Using index; Direct",
        ),
    ] {
        let explained = query_text(&mut connection, &format!("explain {sql}"));
        let columns: Vec<_> = explained[0].split('\t').collect();
        assert_eq!(format!("{} {}", columns[6], columns[11]), key, "{sql}");
    }
    let (rows, ..) = icp(
        &mut connection,
        "select one.d, other.b, other.c from t one, t other where one.id = 1 and other.a = one.a",
    );
    assert_eq!(rows, text(&["10\tx\t1.50", "10\tY\t2.50"]));
    connection
        .query_drop("set optimizer_switch = 'index_condition_pushdown=off'")
        .expect("a switch");
    connection.query_drop("flush status").expect("a reset");
    let rows = query_text(
        &mut connection,
        "select d from t where a between 1 and 3 and b = 'y' and c >= 3 order by a",
    );
    assert_eq!(rows, text(&["30", "50"]));
    let counts = query_text(&mut connection, "show session status like 'Handler_icp%'");
    assert_eq!(
        counts,
        text(&["Handler_icp_attempts\t0", "Handler_icp_match\t0"])
    );
}

/// Entries, and what completes them, are those of the snapshot; locking reads test what is there now.
#[test]
fn entries_are_read_as_their_rows_are() {
    let server = TestServer::start();
    let mut reader = server.connect_to_new("snapshots");
    let mut writer = server.connect();
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    run(&mut writer, "use snapshots");
    let all = "select id, b from t where a between 1 and 2 order by id";
    let tested = "select c from t where a between 1 and 2 and b = 'y' order by c";
    for direct in ["on", "off"] {
        run(&mut writer, "drop table if exists t");
        run(
            &mut writer,
            "create table t (id int primary key, a int, b varchar(20), c int, key a_b (a, b))",
        );
        run(
            &mut writer,
            "insert into t values (1, 1, 'x', 10), (2, 1, 'y', 20), (3, 2, 'y', 30)",
        );
        let switch = format!("set optimizer_switch = 'direct={direct}'");
        run(&mut reader, &switch);
        run(&mut reader, "begin");
        assert_eq!(query_text(&mut reader, all), ["1\tx", "2\ty", "3\ty"]);
        for sql in [
            // The same sort key.
            "update t set b = 'X' where id = 1",
            "update t set b = 'z' where id = 2",
            "delete from t where id = 3",
            "insert into t values (4, 1, 'Y', 40)",
        ] {
            run(&mut writer, sql);
        }
        let count = "select count(*), min(id), max(id) from t where a between 1 and 2";
        assert_eq!(
            query_text(&mut reader, all),
            ["1\tx", "2\ty", "3\ty"],
            "{direct}"
        );
        assert_eq!(query_text(&mut reader, tested), ["20", "30"], "{direct}");
        assert_eq!(query_text(&mut reader, count), ["3\t1\t3"], "{direct}");
        let locking = format!("{tested} for update");
        assert_eq!(query_text(&mut reader, &locking), ["40"], "{direct}");
        run(&mut reader, "update t set b = 'w' where id = 2");
        assert_eq!(
            query_text(&mut reader, all),
            ["1\tx", "2\tw", "3\ty"],
            "{direct}"
        );
        assert_eq!(query_text(&mut reader, tested), ["30"], "{direct}");
        run(&mut reader, "commit");
        assert_eq!(
            query_text(&mut reader, all),
            ["1\tX", "2\tw", "4\tY"],
            "{direct}"
        );
        assert_eq!(query_text(&mut reader, tested), ["40"], "{direct}");
    }
}

/// Others have changed the rows since the snapshot, and the transaction changes them again. Each row is seen once, by
/// every index as it is by the primary key.
#[test]
fn own_changes_hide_what_the_snapshot_has_of_the_row() {
    let server = TestServer::start();
    let mut reader = server.connect_to_new("own");
    let mut writer = server.connect();
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    run(&mut writer, "use own");
    for direct in ["on", "off"] {
        run(&mut writer, "drop table if exists t");
        run(
            &mut writer,
            "create table t (id int primary key, b varchar(20), c int, unique key by_b (b, id), key by_c (c))",
        );
        run(
            &mut writer,
            "insert into t values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4), (5, 'e', 5)",
        );
        let switch = format!("set optimizer_switch = 'direct={direct}'");
        run(&mut reader, &switch);
        run(&mut reader, "begin");
        let by_key = "select id, b, c from t where id between 1 and 9 order by id";
        let snapshot = query_text(&mut reader, by_key);
        for sql in [
            "update t set b = concat(b, b) where id in (1, 2, 3)",
            "delete from t where id = 4",
            "update t set id = 6, c = 6 where id = 5",
        ] {
            run(&mut writer, sql);
        }
        assert_eq!(query_text(&mut reader, by_key), snapshot, "{direct}");
        for sql in [
            // What an index has, what only the row has, the row itself, a row of the same key, another row's key.
            "update t set b = 'own' where id = 1",
            "update t set c = 20 where id = 2",
            "delete from t where id = 3",
            "insert into t values (4, 'new', 40)",
            "update t set id = 5 where id = 6",
        ] {
            run(&mut reader, sql);
        }
        let own = ["1\town\t1", "2\tbb\t20", "4\tnew\t40", "5\te\t6"];
        for when in ["before", "after a savepoint"] {
            assert_eq!(query_text(&mut reader, by_key), own, "{direct}, {when}");
            for index in ["by_b", "by_c"] {
                let column = &index[3..];
                let forced = format!("from t force index ({index}) where {column} > ''");
                let forced = match index {
                    "by_c" => forced.replace("''", "0"),
                    _ => forced,
                };
                let rows = format!("select id, b, c {forced} order by id");
                assert_eq!(
                    query_text(&mut reader, &rows),
                    own,
                    "{direct}, {index}, {when}"
                );
                let ids = format!("select id {forced} order by id");
                assert_eq!(
                    query_text(&mut reader, &ids),
                    ["1", "2", "4", "5"],
                    "{direct}, {index} alone, {when}"
                );
            }
            run(&mut reader, "savepoint s");
            run(&mut reader, "update t set b = 'later', c = c + 1");
            run(&mut reader, "rollback to s");
        }
        run(&mut reader, "commit");
        assert_eq!(query_text(&mut writer, by_key), own, "{direct}");
    }
}
