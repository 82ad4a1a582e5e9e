//! Clients that do not read what they have asked for: their statements wait, hear when they shall stop, and make room
//! for others.

use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;

use crate::command_line::connect;
use crate::harness::{TestServer, query_text, wait_until};
use crate::memory::{ROWS, filled, within_memory};
use crate::raw_client::{COM_QUERY, RawClient};

/// What a client gets of an answer that it reads at last: rows, and the error that ends them.
fn read_answer(client: &mut RawClient) -> (usize, Option<u16>) {
    let first = client.receive_payload();
    read_rest(client, &first)
}

/// The same of an answer of which the first packet has been read.
fn read_rest(client: &mut RawClient, first: &[u8]) -> (usize, Option<u16>) {
    if let Some(code) = error_code(first) {
        return (0, Some(code));
    }
    let columns = first[0];
    assert!(columns < 0xFB, "{first:?}");
    for _ in 0..=columns {
        client.receive_payload();
    }
    let mut rows = 0;
    loop {
        let payload = client.receive_payload();
        match (error_code(&payload), payload[0]) {
            (Some(code), _) => return (rows, Some(code)),
            (None, 0xFE) if payload.len() < 9 => return (rows, None),
            _ => rows += 1,
        }
    }
}

/// The code of the error that a packet is, if it is one.
pub fn error_code(payload: &[u8]) -> Option<u16> {
    (payload[0] == 0xFF).then(|| u16::from_le_bytes([payload[1], payload[2]]))
}

pub fn ask(port: u16, sql: &str) -> RawClient {
    let mut client = RawClient::connect(([127, 0, 0, 1], port).into(), 0);
    client
        .send_command(COM_QUERY, sql.as_bytes())
        .expect("the server reads");
    client
}

/// They get their rows when they read, or are told why there are no more.
#[test]
fn many_that_do_not_read_stay_within_memory_and_keep_nobody_waiting() {
    const CLIENTS: usize = 40;
    let filled = filled();
    let mut root = connect(filled.port);
    root.query_drop("SET GLOBAL net_write_timeout = 3600")
        .expect("a variable");
    let small = "SELECT k % 3, COUNT(*) FROM d.a WHERE id < 20000 GROUP BY 1 ORDER BY 1";
    let expected = query_text(&mut root, small);
    for list in ["id, k, s", "id, REPEAT(s, 20)"] {
        within_memory(filled.child.id(), || {
            let sql = format!("SELECT {list} FROM d.a");
            let mut clients: Vec<RawClient> =
                (0..CLIENTS).map(|_| ask(filled.port, &sql)).collect();
            for _ in 0..5 {
                assert_eq!(query_text(&mut root, small), expected);
            }
            for client in &mut clients[..CLIENTS / 4] {
                match read_answer(client) {
                    (rows, None) => assert_eq!(rows, ROWS),
                    (_, Some(code)) => assert_eq!(code, 1041),
                }
            }
        });
    }
}

/// A transaction that has locked nothing waits for room as others do.
#[test]
fn transactions_that_only_read_stay_within_memory() {
    const CLIENTS: usize = 100;
    let filled = filled();
    let mut root = connect(filled.port);
    root.query_drop("CREATE INDEX k ON d.a (k)")
        .expect("an index");
    for sql in [
        "SELECT x.*, y.*, z.* FROM d.a x JOIN d.a y ON x.id = y.k JOIN d.a z ON z.k = y.k WHERE x.id < 20000",
        "SELECT REPEAT(s, 2000), REPEAT(s, 2000) FROM d.a",
    ] {
        within_memory(filled.child.id(), || {
            let mut clients: Vec<RawClient> =
                (0..CLIENTS).map(|_| ask(filled.port, "BEGIN")).collect();
            for client in &mut clients {
                client.receive_payload();
                client
                    .send_command(COM_QUERY, sql.as_bytes())
                    .expect("the server reads");
            }
            // A statement that runs has taken all that it takes by then.
            thread::sleep(Duration::from_secs(3));
        });
    }
}

/// It has all memory for big statements, and others want it. What it has found goes to a file.
#[test]
fn one_that_does_not_read_makes_room_for_others_and_gets_all_rows() {
    const SQL: &str = "SELECT x.id, x.s a, y.s b FROM d.a x JOIN d.a y ON x.s = y.s AND x.k <= y.k WHERE x.id <= 120000";
    let filled = filled();
    let mut root = connect(filled.port);
    let big = "SELECT COUNT(*) FROM (SELECT s, COUNT(*) FROM d.a GROUP BY s) g";
    let expected = query_text(&mut root, big);
    let all = query_text(&mut root, &format!("SELECT COUNT(*) FROM ({SQL}) q"));
    let mut client = ask(filled.port, SQL);
    wait_until("the statement waits for its client", || {
        let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT x.id%' AND time > 1";
        query_text(&mut root, sql) == ["1"]
    });
    assert_eq!(query_text(&mut root, big), expected);
    match read_answer(&mut client) {
        (rows, None) => assert_eq!([rows.to_string()], all[..]),
        (_, Some(code)) => panic!("error {code}"),
    }
}

#[test]
fn what_waits_for_its_client_hears_kill_and_the_end_of_its_time() {
    let server = TestServer::start();
    let mut root = server.connect_to_new("d");
    root.query_drop("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(1000))")
        .expect("a table");
    root.query_drop(
        "INSERT INTO t WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 900) \
         SELECT n, REPEAT('x', 1000) FROM r",
    )
    .expect("rows");
    // A list of columns is run by a direct plan, a sort by operators.
    let running = "SELECT id FROM information_schema.processlist WHERE command = 'Query' AND info LIKE 'SELECT%JOIN d.t%' AND info NOT LIKE '%processlist%'";
    for (sql, is_killed, expected) in [
        ("SELECT a.s FROM d.t a JOIN d.t b", true, 1317),
        (
            "SELECT a.s FROM d.t a JOIN d.t b WHERE b.id <= 40 ORDER BY a.s, b.id",
            true,
            1317,
        ),
        ("SELECT REPEAT(a.s, 10) FROM d.t a JOIN d.t b", true, 1317),
        (
            "SELECT /*+ MAX_EXECUTION_TIME(1500) */ a.s FROM d.t a JOIN d.t b",
            false,
            3024,
        ),
    ] {
        let mut client = ask(server.port(), sql);
        // It has begun to send what it found. Until its client's socket is full, it does not wait.
        let first = client.receive_payload();
        thread::sleep(Duration::from_millis(300));
        if is_killed {
            let id = query_text(&mut root, running).concat();
            root.query_drop(format!("KILL QUERY {id}"))
                .expect("it is there");
        }
        // What is left is to be sent.
        wait_until("it has ended", || query_text(&mut root, running).is_empty());
        assert_eq!(read_rest(&mut client, &first).1, Some(expected), "{sql}");
        client.succeed(COM_QUERY, b"do 1");
    }
}
