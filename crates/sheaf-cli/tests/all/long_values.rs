//! Values that are a sixth of all memory: they are read one by one, and wait in files when nobody reads them.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;

use crate::command_line::connect;
use crate::harness::query_text;
use crate::memory::{filled, within_memory};
use crate::raw_client::RawClient;
use crate::slow_clients::{ask, error_code};

const ROWS: usize = 6;
const BYTES: usize = 10_000_000;
const CLIENTS: usize = 30;

/// The value of a row: bytes that tell where they stand.
fn value(row: usize) -> String {
    let pattern = format!("{row:08}");
    pattern.repeat(BYTES / pattern.len())
}

/// The first value of the next row of an answer. `None`: an error comes in its place.
fn read_value(client: &mut RawClient) -> Option<Vec<u8>> {
    let columns = client.receive_payload();
    if error_code(&columns).is_some() {
        return None;
    }
    for _ in 0..=columns[0] {
        client.receive_payload();
    }
    let row = client.receive_payload();
    if error_code(&row).is_some() {
        return None;
    }
    // A length of three bytes.
    assert_eq!(row[0], 0xFD);
    Some(row[4..].to_vec())
}

#[test]
fn values_that_are_a_sixth_of_the_memory_are_read_one_by_one() {
    let filled = filled();
    let mut root = connect(filled.port);
    root.query_drop("SET GLOBAL max_allowed_packet = 67108864, GLOBAL net_write_timeout = 3600")
        .expect("variables");
    let mut root = connect(filled.port);
    root.query_drop(
        "CREATE TABLE d.w (id INT PRIMARY KEY, g INT, b LONGBLOB, t LONGTEXT, KEY (g))",
    )
    .expect("a table");
    for row in 0..ROWS {
        let column = if row % 2 == 0 { "b" } else { "t" };
        let sql = format!(
            "INSERT INTO d.w (id, g, {column}) VALUES ({row}, {}, '{}')",
            row % 2,
            value(row)
        );
        root.query_drop(sql).expect("a row");
    }
    within_memory(filled.child.id(), || {
        // A scan, rows by an index, and rows by a multi-range read.
        for sql in [
            "SELECT id, LENGTH(b), LENGTH(t) FROM d.w ORDER BY id",
            "SELECT id, LENGTH(b), LENGTH(t) FROM d.w FORCE INDEX (g) WHERE g IN (0, 1) ORDER BY id",
            "SELECT id, LENGTH(b), LENGTH(t) FROM d.w WHERE id IN (0, 1, 2, 3, 4, 5) ORDER BY id",
        ] {
            let rows = query_text(&mut root, sql);
            assert_eq!(rows.len(), ROWS, "{sql}");
            for (number, row) in rows.iter().enumerate() {
                assert!(row.contains(&BYTES.to_string()), "{sql}: {number} {row}");
            }
        }
    });
    for sql in [
        "SELECT b FROM d.w WHERE id = 4",
        "SELECT CONCAT(b, '') FROM d.w WHERE id = 4",
        "SELECT t FROM d.w WHERE id = 3",
    ] {
        let expected = value(if sql.contains("= 4") { 4 } else { 3 });
        let mut outcomes = HashSet::new();
        within_memory(filled.child.id(), || {
            let mut clients: Vec<RawClient> = (0..CLIENTS).map(|_| ask(filled.port, sql)).collect();
            // Until then, nobody reads.
            thread::sleep(Duration::from_secs(2));
            for client in &mut clients {
                let read = read_value(client);
                outcomes.insert(read.is_some());
                if let Some(read) = read {
                    assert!(read == expected.as_bytes(), "{sql}: other bytes");
                }
            }
        });
        assert!(outcomes.contains(&true), "{sql}: nobody has got the value");
    }
}

/// A batch of rows that have the one long value of the build side is more than the memory.
#[test]
fn a_hash_join_copies_few_long_values_at_a_time() {
    let filled = filled();
    let mut root = connect(filled.port);
    for sql in [
        "CREATE TABLE d.v (id INT PRIMARY KEY, g INT, b LONGBLOB)",
        "INSERT INTO d.v SELECT id, id, REPEAT('x', 100) FROM d.a WHERE id <= 400",
        "UPDATE d.v SET b = REPEAT('y', 2000000) WHERE id = 7",
    ] {
        root.query_drop(sql).expect(sql);
    }
    let matches = "FROM d.a WHERE k % 800 = 7 AND id <= 100000";
    let count: usize = query_text(&mut root, &format!("SELECT COUNT(*) {matches}"))[0]
        .parse()
        .expect("a number");
    assert!(count > 100);
    within_memory(filled.child.id(), || {
        let sql =
            format!("SELECT RIGHT(v.b, 1) FROM (SELECT k {matches}) a JOIN d.v ON a.k % 400 = v.g");
        assert_eq!(query_text(&mut root, &sql), vec!["y"; count]);
    });
}

/// Sorts, groups and windows have batches of as many rows as fit, and go to files.
#[test]
fn rows_with_long_values_are_sorted_and_grouped_in_files() {
    const ROWS: usize = 3000;
    let filled = filled();
    let mut root = connect(filled.port);
    for sql in [
        "CREATE TABLE d.l (id INT PRIMARY KEY, g INT, b LONGTEXT, c LONGBLOB)",
        "INSERT INTO d.l SELECT id, id * 7919 % 3001, REPEAT(CHAR(65 + id % 26), 20000 + id % 100), \
         REPEAT(CHAR(65 + id % 26), 10000) FROM d.a WHERE id <= 3000",
    ] {
        root.query_drop(sql).expect(sql);
    }
    let mut by_g: Vec<usize> = (1..=ROWS).collect();
    by_g.sort_by_key(|id| id * 7919 % 3001);
    within_memory(filled.child.id(), || {
        for sql in [
            "SELECT id, b, c FROM d.l ORDER BY g",
            "SELECT id, b, c, ROW_NUMBER() OVER (ORDER BY g) FROM d.l ORDER BY g",
            "SELECT id, b, c FROM d.l ORDER BY g, b DESC LIMIT 2999, 1",
        ] {
            let ids = root
                .query_map(sql, |row: mysql::Row| {
                    let id: usize = row.get(0).expect("a number");
                    let lengths = [1, 2].map(|at| row.get::<Vec<u8>, _>(at).map(|b| b.len()));
                    assert_eq!(lengths, [Some(20_000 + id % 100), Some(10_000)], "{sql}");
                    id
                })
                .expect(sql);
            match ids.as_slice() {
                [last] => assert_eq!(*last, by_g[ROWS - 1], "{sql}"),
                ids => assert_eq!(ids, by_g, "{sql}"),
            }
        }
        for (sql, expected) in [
            (
                "SELECT COUNT(*) FROM (SELECT DISTINCT b, g FROM d.l) x",
                ROWS,
            ),
            ("SELECT COUNT(DISTINCT b) FROM d.l", 1300),
        ] {
            assert_eq!(query_text(&mut root, sql), [expected.to_string()], "{sql}");
        }
        // Few rows of several hundred KB.
        for sql in [
            "CREATE TABLE d.m (id INT PRIMARY KEY, n INT, t LONGTEXT, KEY (n))",
            "INSERT INTO d.m SELECT id, id, CONCAT(id, REPEAT('x', 400000)) FROM d.a WHERE id <= 60",
        ] {
            root.query_drop(sql).expect(sql);
        }
        for sql in [
            "SELECT id, t FROM d.m ORDER BY t",
            "SELECT id, t FROM d.m ORDER BY n DESC",
            "SELECT id, t FROM d.m WHERE id <= 60 ORDER BY n + 0",
        ] {
            assert_eq!(root.query_iter(sql).expect(sql).count(), 60, "{sql}");
        }
        let sql = "SELECT DISTINCT b, g FROM d.l";
        assert_eq!(root.query_iter(sql).expect(sql).count(), ROWS);
    });
}

/// They make texts of their arguments, and compile patterns, for all rows of a batch.
#[test]
fn functions_of_many_arguments_and_patterns_stay_within_the_memory() {
    let filled = filled();
    let mut root = connect(filled.port);
    let arguments = vec!["id"; 3000].join(", ");
    within_memory(filled.child.id(), || {
        for (sql, expected) in [
            (
                format!("SELECT COUNT(ELT(id, {arguments})) FROM d.a WHERE id <= 4000"),
                "3000",
            ),
            (
                format!(
                    "SELECT MAX(LENGTH(CONCAT_WS(',', {arguments}))) FROM d.a WHERE id <= 3000"
                ),
                "14999",
            ),
            (
                "SELECT LENGTH(EXPORT_SET(-1, REPEAT('a', 900000), REPEAT('b', 900000), '', 64))"
                    .to_owned(),
                "NULL",
            ),
            (
                "SELECT COUNT(*) FROM d.a x, d.a y WHERE x.id <= 60 AND y.id <= 60 \
                 AND REGEXP_LIKE(CONCAT(x.s, y.s), CONCAT('^(', x.s, '|', y.s, ')*$'))"
                    .to_owned(),
                "3600",
            ),
        ] {
            let head = &sql[..40];
            assert_eq!(query_text(&mut root, &sql), [expected], "{head}");
        }
    });
}

#[test]
fn kill_ends_a_change_of_long_values() {
    let filled = filled();
    let mut root = connect(filled.port);
    for sql in [
        "CREATE TABLE d.k (id INT PRIMARY KEY, b LONGBLOB)",
        "INSERT INTO d.k SELECT id, REPEAT('a', 100000) FROM d.a WHERE id <= 200",
    ] {
        root.query_drop(sql).expect(sql);
    }
    for (wait, sql) in [
        (300, "UPDATE d.k SET b = REPEAT('b', 1000000)"),
        (1500, "UPDATE d.k SET b = REPEAT('b', 1000000)"),
        (
            700,
            "INSERT INTO d.k SELECT id + 1000, REPEAT('b', 1000000) FROM d.k",
        ),
        (300, "DELETE FROM d.k"),
    ] {
        let mut other = connect(filled.port);
        let id = other.connection_id();
        let changes = thread::spawn(move || other.query_drop(sql));
        // Whether it is in the middle of its work then is up to the machine.
        thread::sleep(Duration::from_millis(wait));
        // It may have ended, and be gone.
        let _ = root.query_drop(format!("KILL QUERY {id}"));
        let outcome = changes.join().expect("no panic");
        let state = "SELECT COUNT(*), MIN(LEFT(b, 1)), MAX(LENGTH(b)) FROM d.k";
        let state = query_text(&mut root, state);
        match &outcome {
            Ok(()) => {
                for sql in [
                    "DELETE FROM d.k",
                    "INSERT INTO d.k SELECT id, REPEAT('a', 100000) FROM d.a WHERE id <= 200",
                ] {
                    root.query_drop(sql).expect(sql);
                }
            }
            Err(_) => assert_eq!(state, ["200\ta\t100000"], "{sql}"),
        }
        assert!(outcome_is_known(outcome), "{sql}");
    }
}

/// A statement has ended, or was killed.
fn outcome_is_known(outcome: mysql::Result<()>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(mysql::Error::MySqlError(error)) => error.code == 1317,
        Err(_) => false,
    }
}

/// A thousand rows have one key of 12 KB, which no division of a hash join tells apart.
#[test]
fn joins_by_long_texts_that_are_equal_are_sorted_and_grouped_within_the_memory() {
    let filled = filled();
    let mut root = connect(filled.port);
    for sql in [
        "CREATE TABLE d.j (id INT PRIMARY KEY, t LONGTEXT)",
        "INSERT INTO d.j SELECT id, RPAD(CONCAT(REPEAT('p', 6000), IF(id % 2, id, 'same')), 12000, 'x') \
         FROM d.a WHERE id <= 2000",
    ] {
        root.query_drop(sql).expect(sql);
    }
    let pairs = "FROM d.j x JOIN d.j y ON x.t = y.t AND x.id < y.id";
    within_memory(filled.child.id(), || {
        let sql = format!("SELECT x.id, y.id {pairs} ORDER BY 1, 2");
        let mut last = (0, 0);
        let rows = root.query_iter(&sql).expect("rows").map(|row| {
            let pair = mysql::from_row(row.expect("a row"));
            assert!(last < pair);
            last = pair;
        });
        assert_eq!(rows.count(), 499_500);
        for (sql, expected) in [
            (format!("SELECT COUNT(DISTINCT x.id) {pairs}"), "999"),
            (
                format!(
                    "SELECT COUNT(*), MAX(n) FROM (SELECT x.id, COUNT(*) AS n {pairs} GROUP BY x.id) g"
                ),
                "999\t999",
            ),
            (
                format!(
                    "SELECT MAX(n) FROM (SELECT ROW_NUMBER() OVER (ORDER BY y.id) AS n {pairs}) w"
                ),
                "499500",
            ),
        ] {
            assert_eq!(query_text(&mut root, &sql), [expected], "{sql}");
        }
    });
}
