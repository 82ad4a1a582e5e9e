//! SELECT and what is built on it.

use sheaf_types::Value;

use super::{Bench, Collected};
use crate::MysqlColumnType;

fn filled() -> Bench {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c DECIMAL(8,2), KEY i (b))");
    bench.ok("INSERT INTO t VALUES (1,'x',1.50),(2,'Y',NULL),(3,'x',-2)");
    bench
}

#[test]
fn rows_come_with_their_description() {
    let mut bench = filled();
    let result = bench.ok("SELECT a, b AS name, c FROM t AS u WHERE b = 'X' ORDER BY a DESC");
    assert_eq!(result.rows, ["3|x|-2.00", "1|x|1.50"]);
    let names: Vec<(&str, &str)> = result
        .columns
        .iter()
        .map(|column| (column.name.as_str(), column.org_table.as_str()))
        .collect();
    assert_eq!(names, [("a", "t"), ("name", "t"), ("c", "t")]);
    assert_eq!(result.columns[2].type_, MysqlColumnType::NewDecimal);
    assert_eq!(result.columns[2].decimals, 2);
    let empty = bench.ok("SELECT a FROM t WHERE a = 99");
    assert_eq!((empty.rows.len(), empty.columns.len()), (0, 1));
}

#[test]
fn mysqls_errors_come_through() {
    let mut bench = filled();
    for (sql, code) in [
        ("SELECT d FROM t", 1054),
        ("SELECT a FROM u", 1146),
        ("SELECT a FROM nowhere.t", 1049),
        ("SELECT a FROM t, t AS u", 1052),
        ("SELECT no_such_function(1)", 1305),
        ("SELECT @@no_such_variable", 1193),
        ("SELECT 1 FROM information_schema.nothing", 1109),
    ] {
        assert_eq!(bench.error(sql), code, "{sql}");
    }
    assert_eq!(
        bench.rows("SELECT COUNT(*) FROM t"),
        ["3"],
        "the session goes on"
    );
}

#[test]
fn session_functions_and_variables() {
    let mut bench = filled();
    bench.ok("SET @n = 40 + 2, @t = CONCAT('a', 'b')");
    assert_eq!(
        bench.rows("SELECT @n, @t, DATABASE(), @@autocommit"),
        ["42|ab|test|1"]
    );
    bench.ok("SELECT a FROM t");
    assert_eq!(bench.rows("SELECT FOUND_ROWS()"), ["3"]);
    bench.ok("INSERT INTO t VALUES (4,'z',0),(5,'z',0)");
    assert_eq!(bench.rows("SELECT ROW_COUNT()"), ["2"]);
    assert!(bench.rows("SELECT VERSION()")[0].contains("Sheaf"));
}

#[test]
fn insert_select_and_create_select() {
    let mut bench = filled();
    bench.ok("CREATE TABLE u (a INT PRIMARY KEY, b VARCHAR(10))");
    let ok = bench.ok("INSERT INTO u SELECT a, b FROM t WHERE a < 3").ok;
    assert_eq!(ok.info, "Records: 2  Duplicates: 0  Warnings: 0");
    assert_eq!(bench.error("INSERT INTO u SELECT a, b FROM t"), 1062);
    assert_eq!(bench.table_rows("u"), ["1|x", "2|Y"]);
    bench.ok("INSERT INTO u SELECT a + 10, b FROM u");
    assert_eq!(bench.table_rows("u").len(), 4);
    assert_eq!(bench.error("INSERT INTO u SELECT a FROM t"), 1136);
    bench.ok("CREATE TABLE v SELECT a, c FROM t");
    assert_eq!(
        bench.rows("SELECT c FROM v ORDER BY a"),
        ["1.50", "NULL", "-2.00"]
    );
}

#[test]
fn show_where_and_information_schema() {
    let mut bench = filled();
    assert_eq!(
        bench.rows("SHOW VARIABLES WHERE Variable_name = 'autocommit' OR Variable_name = 'port'"),
        ["autocommit|ON", "port|0"]
    );
    assert_eq!(
        bench.rows("SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE table_schema = 'test'"),
        ["t|BASE TABLE"]
    );
    assert_eq!(
        bench.rows("SELECT column_name, column_key FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position"),
        ["a|PRI", "b|MUL", "c|"]
    );
    assert_eq!(
        bench.rows("SELECT index_name, seq_in_index FROM information_schema.statistics WHERE table_schema = 'test' ORDER BY 1"),
        ["i|1", "PRIMARY|1"]
    );
}

#[test]
fn explain_has_mysqls_columns() {
    let mut bench = filled();
    let explained = bench.ok("EXPLAIN SELECT * FROM t WHERE a = 2");
    let names: Vec<&str> = explained
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "id",
            "select_type",
            "table",
            "partitions",
            "type",
            "possible_keys",
            "key",
            "key_len",
            "ref",
            "rows",
            "filtered",
            "Extra"
        ]
    );
    assert!(
        explained.rows[0].starts_with("1|SIMPLE|t|NULL|"),
        "{:?}",
        explained.rows
    );
    assert!(
        explained.rows[0].contains("|PRIMARY|"),
        "{:?}",
        explained.rows
    );
    assert!(bench.rows("EXPLAIN ANALYZE SELECT * FROM t")[0].contains("rows"));
    assert_eq!(
        bench.rows("EXPLAIN INSERT INTO t VALUES (9,'',0)")[0]
            .split('|')
            .nth(1),
        Some("INSERT")
    );
}

#[test]
fn a_prepared_query_has_columns_and_runs_with_values() {
    let mut bench = filled();
    let prepared = bench
        .session
        .prepare("SELECT a, b FROM t WHERE a > ? ORDER BY a LIMIT ?")
        .expect("prepared");
    assert_eq!((prepared.parameters.len(), prepared.columns.len()), (2, 2));
    for (above, limit, expected) in [(0, 1, vec!["1|x"]), (1, 5, vec!["2|Y", "3|x"])] {
        let mut sink = Collected::default();
        let values = [Value::Int(above), Value::Int(limit)];
        bench
            .session
            .execute_prepared(prepared.id, &values, &mut sink)
            .expect("it runs");
        assert_eq!(sink.rows, expected);
    }
    // Many clients send all their values as texts.
    for (limit, offset, expected) in [("1", "1", vec!["2|Y"]), ("5", "2", vec!["3|x"])] {
        let prepared = bench
            .session
            .prepare("SELECT a, b FROM t WHERE a >= 1 ORDER BY a, b LIMIT ? OFFSET ?")
            .expect("prepared");
        let mut sink = Collected::default();
        let values = [limit, offset].map(|text| Value::Text(text.into()));
        bench
            .session
            .execute_prepared(prepared.id, &values, &mut sink)
            .expect("it runs");
        assert_eq!(sink.rows, expected);
    }
    assert_eq!(
        bench
            .session
            .prepare("SELECT nothing FROM t")
            .map(|_| ())
            .map_err(|error| error.code),
        Err(1054)
    );
}

#[test]
fn a_killed_or_timed_out_query_ends() {
    let mut bench = filled();
    bench.ok("SET max_execution_time = 1");
    let slow = "SELECT COUNT(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k, t l, t m, t n, t o, t p";
    assert_eq!(bench.error(slow), 3024);
    bench.ok("SET max_execution_time = 0");
    let handle = bench.session.handle();
    let killer = std::thread::spawn(move || {
        while handle.activity().command != "Query" {
            std::thread::yield_now();
        }
        handle.cancel();
    });
    assert_eq!(bench.error(slow), 1317);
    killer.join().expect("no panic");
    assert_eq!(bench.rows("SELECT 1"), ["1"]);
}

#[test]
fn a_sleep_can_be_ended() {
    let mut bench = filled();
    assert_eq!(
        bench.rows("SELECT SLEEP(0), a FROM t WHERE SLEEP(0.0) = 0 AND a < 3 ORDER BY a"),
        ["0|1", "0|2"]
    );
    for (sql, code) in [
        ("SELECT SLEEP()", 1582),
        ("SELECT SLEEP(NULL)", 1210),
        ("SELECT SLEEP(-1)", 1210),
    ] {
        assert_eq!(bench.error(sql), code, "{sql}");
    }
    bench.ok("SET max_execution_time = 1");
    assert_eq!(bench.error("SELECT SLEEP(1000)"), 3024);
    // Only queries are limited; this one is killed, by another session that needs a worker for it.
    let id = bench.session.id();
    let mut other = bench
        .engine
        .session(crate::SessionInfo::default())
        .expect("a session");
    let handle = bench.session.handle();
    let killer = std::thread::spawn(move || {
        while handle.activity().statement.as_deref() != Some("DO SLEEP(1e300)") {
            std::thread::yield_now();
        }
        super::run(&mut other, &format!("KILL QUERY {id}")).expect("the session is there");
    });
    assert_eq!(bench.error("DO SLEEP(1e300)"), 1317);
    killer.join().expect("no panic");
}
