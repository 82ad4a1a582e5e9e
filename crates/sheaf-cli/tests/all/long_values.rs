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
