//! Statements whose rows do not fit in the query memory have the rows that they have where they fit.
//!
//! A server with 4 MiB of query memory beside one with 96: the same tables, each of about as much as the small one has.
//! After each statement no file and no memory is left.

use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_sql::EngineOptions;
use sheaf_storage::StorageOptions;

use crate::harness::{TestServer, error_of, query_text, wait_until};

const ROWS: usize = 30_000;

fn server(memory_bytes: usize, pool_bytes: usize, max_temp_bytes: u64) -> TestServer {
    let server = TestServer::start_with(
        EngineOptions {
            memory_bytes,
            pool_bytes: Some(pool_bytes),
            threads: Some(2),
            storage: StorageOptions {
                max_temp_bytes,
                ..StorageOptions::default()
            },
            ..EngineOptions::default()
        },
        |_, _| {},
    );
    let mut connection = server.connect_to_new("d");
    for table in ["a", "b"] {
        let create = format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, k INT, g INT, s VARCHAR(100) NOT NULL)"
        );
        connection.query_drop(create).expect("a table");
    }
    for (table, factor) in [("a", 7919), ("b", 104_729)] {
        for first in (0..ROWS).step_by(3_000) {
            let rows = (first..first + 3_000).map(|id| {
                let k = match id % 19 {
                    0 => "NULL".to_string(),
                    _ => (id * factor % 40_009).to_string(),
                };
                let g = if id % 10 < 7 { 1 } else { id % 10 };
                format!(
                    "({id}, {k}, {g}, CONCAT('{}', REPEAT('x', 60)))",
                    id * factor % 20_011
                )
            });
            let rows: Vec<String> = rows.collect();
            let insert = format!("INSERT INTO {table} VALUES {}", rows.join(", "));
            connection.query_drop(insert).expect("rows");
        }
    }
    connection
        .query_drop("ANALYZE TABLE a, b")
        .expect("statistics");
    server
}

fn small(max_temp_bytes: u64) -> TestServer {
    server(32 << 20, 24 << 20, max_temp_bytes)
}

/// Holds that nothing is left of a statement.
fn nothing_is_left(server: &TestServer, sql: &str) {
    let engine = server.engine();
    wait_until(sql, || {
        let files = engine.storage().temp_space().used_bytes();
        (files, engine.runtime().reserved_bytes()) == (0, 0)
    });
}

fn check(statements: &[&str]) {
    let (large, small) = (server(256 << 20, 64 << 20, 1 << 30), small(1 << 30));
    let mut expected: Conn = large.connect();
    let mut found: Conn = small.connect();
    for connection in [&mut expected, &mut found] {
        connection.query_drop("USE d").expect("the database");
    }
    for sql in statements {
        let expected = query_text(&mut expected, sql);
        let found = query_text(&mut found, sql);
        assert!(
            found == expected,
            "{sql}: {} rows of {}, {:?} for {:?}",
            found.len(),
            expected.len(),
            found.first(),
            expected.first()
        );
        nothing_is_left(&small, sql);
    }
}

#[test]
fn rows_are_the_same() {
    check(&[
        "SELECT a.id, b.id, a.s, b.s FROM a JOIN b ON a.k = b.k ORDER BY a.id, b.id",
        "SELECT a.id, b.id, b.s FROM a LEFT JOIN b ON a.k = b.k AND a.g < b.g ORDER BY a.id, b.id",
        "SELECT a.id, b.id FROM a RIGHT JOIN b ON a.s = b.s ORDER BY b.id, a.id",
        "SELECT COUNT(*) FROM a JOIN b ON a.s = b.s",
        "SELECT a.s, b.s FROM a JOIN b ON a.k = b.k ORDER BY b.s, a.s",
        "SELECT a.id, b.s FROM a LEFT JOIN b ON b.k = a.k ORDER BY a.id, b.id",
        "SELECT id, s FROM a WHERE k IN (SELECT k FROM b WHERE g > 1) ORDER BY id",
        "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b) ORDER BY id",
        "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE k IS NOT NULL) ORDER BY id",
        "SELECT COUNT(DISTINCT s), COUNT(*), SUM(id), MAX(id) FROM b",
        "SELECT COUNT(DISTINCT s, id, CONCAT(s, s)), COUNT(k) FROM b",
        "SELECT g, COUNT(DISTINCT s), COUNT(k), SUM(k) FROM b GROUP BY g ORDER BY g",
        "SELECT CONCAT('g', g) AS h, COUNT(DISTINCT s), COUNT(*) FROM b GROUP BY h ORDER BY h",
        "SELECT COUNT(DISTINCT s), COUNT(*), SUM(k), COUNT(k) FROM b WHERE id < 0",
        "SELECT g, COUNT(DISTINCT s), COUNT(*) FROM b WHERE id < 0 GROUP BY g",
    ]);
}

/// The rows of a common table expression that is named several times go to a file, and are read from there.
#[test]
fn rows_of_common_tables_are_the_same() {
    let numbered = "WITH c AS (SELECT id, k, s, ROW_NUMBER() OVER (ORDER BY s, id) AS n FROM a)";
    check(&[
        &format!(
            "{numbered} SELECT COUNT(*), SUM(x.n <> y.n), MAX(x.s), MIN(y.s) FROM c x JOIN c y ON x.id = y.id"
        ),
        &format!(
            "{numbered} SELECT x.id, y.id, x.s FROM c x JOIN c y ON x.n = y.n + 1 ORDER BY x.n LIMIT 5"
        ),
        &format!("{numbered} SELECT 1 FROM c x, c y LIMIT 3"),
        &format!(
            "{numbered} SELECT id, (SELECT MAX(s) FROM c WHERE c.n < b.id) FROM b WHERE id < 20 ORDER BY id"
        ),
        "WITH c AS (SELECT DISTINCT s FROM a), d AS (SELECT s, COUNT(*) AS n FROM c GROUP BY s)          SELECT (SELECT COUNT(*) FROM c), COUNT(*), SUM(x.n) FROM d x JOIN d y USING (s) JOIN c USING (s)",
        "WITH RECURSIVE r (n, s) AS (SELECT 1, REPEAT('y', 200) UNION ALL SELECT n + 1, s FROM r WHERE n < 900),          c AS (SELECT n, CONCAT(s, n) AS t FROM r ORDER BY n LIMIT 800)          SELECT COUNT(*), MAX(x.t), (SELECT COUNT(*) FROM r) FROM c x, c y WHERE x.n + y.n < 30",
    ]);
}

/// The rows of a join in files are not in the order that its plan has of them, where the statement asks for none.
#[test]
fn rows_come_in_any_order_where_none_is_asked_for() {
    let small = small(1 << 30);
    let mut connection = small.connect();
    connection.query_drop("USE d").expect("the database");
    let counted = "SELECT COUNT(*) FROM a JOIN b ON a.k = b.k";
    let rows = query_text(
        &mut connection,
        "SELECT a.id, a.s, b.id, b.s FROM a JOIN b ON a.k = b.k",
    );
    let count = query_text(&mut connection, counted);
    assert_eq!(count, [rows.len().to_string()]);
    nothing_is_left(&small, counted);
}

/// A join of all pairs whose kept side does not fit runs it again, and goes through the other side several times. With
/// two streams of these rows, each left row without a partner came twice.
#[test]
fn rows_of_joins_without_an_equality_are_the_same() {
    let left = "(SELECT id, k, REPEAT(s, 60) AS s FROM a WHERE id < 1500) a";
    let right = "(SELECT id, k, REPEAT(s, 90) AS s FROM b WHERE id < 1500 \
        UNION ALL SELECT id + 90000, k, REPEAT(s, 90) FROM b WHERE id < 1500) b";
    let pairs = "COUNT(*), COUNT(b.id), SUM(a.id), SUM(b.id), SUM(CRC32(a.s)), SUM(CRC32(b.s))";
    let rows = "COUNT(*), SUM(a.id), SUM(CRC32(a.s))";
    let condition = "a.k > b.k + 38000 AND LENGTH(a.s) <> LENGTH(b.s) + 1";
    check(&[
        &format!("SELECT {pairs} FROM {left} JOIN {right} ON {condition}"),
        &format!("SELECT {pairs} FROM {left} LEFT JOIN {right} ON {condition}"),
        &format!("SELECT {pairs} FROM {left} RIGHT JOIN {right} ON {condition}"),
        &format!(
            "SELECT {rows} FROM {left} WHERE EXISTS (SELECT 1 FROM {right} WHERE {condition})"
        ),
        &format!(
            "SELECT {rows} FROM {left} WHERE NOT EXISTS (SELECT 1 FROM {right} WHERE {condition})"
        ),
    ]);
}

/// What is kept by a join of all pairs may come from operators that run once, such as an exchange between workers.
#[test]
fn what_a_join_of_all_pairs_keeps_runs_again() {
    let kept = "SELECT /*+ NO_HASH_JOIN() */ x.id, REPEAT(x.s, 60) AS s FROM a x JOIN a y ON x.k = y.k \
        WHERE x.id < 1500";
    check(&[&format!(
        "SELECT COUNT(*), SUM(j.id), SUM(b.id), SUM(CRC32(j.s)) FROM ({kept}) j \
         JOIN b ON b.id < 900 AND LENGTH(j.s) + j.id < b.id + 4000"
    )]);
}

/// Error 1021 where files may take 256 KiB.
#[test]
fn a_full_disk_and_a_kill_leave_nothing() {
    let small = small(256 << 10);
    let mut killer = small.connect();
    let mut connection = small.connect();
    connection.query_drop("USE d").expect("the database");
    for sql in [
        "SELECT COUNT(*), MAX(a.s), MAX(b.s) FROM a JOIN b ON a.s = b.s",
        "SELECT COUNT(DISTINCT s, id, CONCAT(s, s)), COUNT(k) FROM b",
        "WITH c AS (SELECT s FROM b LIMIT 100000) SELECT COUNT(*) FROM (SELECT s FROM c UNION ALL SELECT s FROM c) d",
    ] {
        let failed = connection.query_drop(sql);
        assert!(failed.is_err(), "it needs no files: {sql}");
        let (code, _) = error_of(failed);
        assert_eq!(code, 1021, "{sql}");
        nothing_is_left(&small, sql);
    }
    let id = connection.connection_id();
    for sql in [
        "SELECT COUNT(*) FROM a JOIN b ON a.g = b.g AND a.s < b.s",
        "WITH c AS (SELECT id FROM b LIMIT 9000) SELECT COUNT(*) FROM c x, c y, c z WHERE x.id < y.id + z.id",
    ] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                killer
                    .query_drop(format!("KILL QUERY {id}"))
                    .expect("it is there");
            });
            // It may have ended before.
            let _ = connection.query_drop(sql);
        });
        nothing_is_left(&small, sql);
    }
}
