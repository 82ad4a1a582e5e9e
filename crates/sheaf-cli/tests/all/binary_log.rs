//! The binary log: its files, what stands in them, and what is there after a crash.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread;

use mysql::Conn;
use mysql::prelude::Queryable;
use tempfile::TempDir;

use crate::command_line::{connect, serve_with, stop};
use crate::harness::{TestServer, code, query_text, run};
use crate::raw_client::{COM_QUERY, RawClient};

pub const LOG_BIN: &[&str] = &["--log-bin"];

/// A server with a binary log and data of its own, and a connection to it: its directory, its process, its port.
pub fn serve_with_log() -> (TempDir, Child, u16, Conn) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (server, port) = serve_with(directory.path(), LOG_BIN);
    let connection = connect(port);
    (directory, server, port, connection)
}

/// The events of all files but those that each file begins with: types, and what they say without numbers of tables.
pub fn events(connection: &mut Conn) -> Vec<String> {
    let mut all = Vec::new();
    for line in query_text(connection, "SHOW BINARY LOGS") {
        let file = line.split('\t').next().unwrap_or_default();
        let shown = format!("SHOW BINLOG EVENTS IN '{file}'");
        for event in query_text(connection, &shown) {
            let cells: Vec<&str> = event.split('\t').collect();
            let (name, info) = (cells[2], cells[5]);
            if matches!(name, "Format_desc" | "Previous_gtids") {
                continue;
            }
            let info = match info.strip_prefix("table_id: ") {
                Some(rest) => rest.trim_start_matches(|digit: char| digit.is_ascii_digit()),
                None => info,
            };
            all.push(format!("{name} {}", info.trim()).trim().to_string());
        }
    }
    all
}

/// The numbers of the transactions of all files, in order.
fn numbers(connection: &mut Conn) -> Vec<u64> {
    let number = |event: &String| {
        let gtid = event.strip_prefix("Gtid ")?;
        gtid.trim_end_matches('\'').rsplit(':').next()?.parse().ok()
    };
    events(connection).iter().filter_map(number).collect()
}

#[test]
fn the_log_has_what_committed_in_the_words_and_the_rows_of_the_user() {
    let (directory, server, _, mut connection) = serve_with_log();
    run(
        &mut connection,
        &[
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), note TEXT, KEY (name))",
            "INSERT INTO t VALUES (1, 'one', REPEAT('long', 5000)), (2, 'two', 'short')",
            "BEGIN",
            "UPDATE t SET name = 'deux' WHERE id = 2",
            "SAVEPOINT a",
            "DELETE FROM t WHERE id = 1",
            "ROLLBACK TO a",
            "INSERT INTO t VALUES (3, 'three', NULL)",
            "COMMIT",
            "BEGIN",
            "INSERT INTO t VALUES (4, 'four', NULL)",
            "ROLLBACK",
            "UPDATE t SET name = 'un' WHERE id = 1",
            "UPDATE t SET id = 9 WHERE id = 1",
            "DELETE FROM t WHERE id = 9",
            "CREATE TEMPORARY TABLE mine (a INT)",
            "INSERT INTO mine VALUES (1)",
            "SET sql_log_bin = 0",
            "INSERT INTO t VALUES (5, 'five', NULL)",
            "CREATE TABLE unseen (a INT)",
            "CREATE TABLE unseen_rows SELECT * FROM t",
            "INSERT INTO unseen SELECT id FROM t",
            "SET sql_log_bin = 1",
            "ALTER TABLE t ADD COLUMN more INT DEFAULT 7",
            "UPDATE t SET more = 8 WHERE id = 3",
            "CREATE TABLE IF NOT EXISTS t (a INT)",
            "TRUNCATE TABLE t",
        ],
    );
    let uuid = &query_text(&mut connection, "SELECT @@server_uuid")[0];
    let mut expected = Vec::new();
    let statement = |text: &str| vec![format!("Query {text}")];
    let rows = |events: &[&str]| {
        let mut all = vec!["Query BEGIN".to_string()];
        for event in events {
            all.push("Table_map (shop.t)".to_string());
            all.push(format!("{event} flags: STMT_END_F"));
        }
        all.push("Xid".to_string());
        all
    };
    for (number, transaction) in [
        statement("CREATE DATABASE shop"),
        statement(
            "use `shop`; CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), note TEXT, KEY (name))",
        ),
        // A row that is longer than an event should be has its own.
        [
            "Query BEGIN",
            "Table_map (shop.t)",
            "Write_rows",
            "Write_rows flags: STMT_END_F",
            "Xid",
        ]
        .map(String::from)
        .to_vec(),
        rows(&["Update_rows", "Write_rows"]),
        rows(&["Update_rows"]),
        // The row is the same under another key.
        rows(&["Update_rows"]),
        rows(&["Delete_rows"]),
        statement("use `shop`; ALTER TABLE t ADD COLUMN more INT DEFAULT 7"),
        rows(&["Update_rows"]),
        statement("use `shop`; TRUNCATE TABLE t"),
    ]
    .into_iter()
    .enumerate()
    {
        let gtid = format!("{uuid}:{}", number + 1);
        expected.push(format!("Gtid SET @@SESSION.GTID_NEXT= '{gtid}'"));
        expected.extend(transaction);
    }
    let found: Vec<String> = events(&mut connection)
        .into_iter()
        .map(|event| match event.starts_with("Xid") {
            true => "Xid".to_string(),
            false => event,
        })
        .collect();
    assert_eq!(found, expected);
    let executed = &query_text(&mut connection, "SELECT @@gtid_executed")[0];
    assert_eq!(*executed, format!("{uuid}:1-10"));
    run(&mut connection, &["BEGIN"]);
    assert_eq!(code(&mut connection, "SET sql_log_bin = 0"), 1694);
    assert_eq!(
        code(&mut connection, "SET GLOBAL binlog_format = 'MIXED'"),
        1235
    );
    stop(server);
    check_with_mysqlbinlog(directory.path());
}

/// Programs that read binary logs find nothing wrong with the files.
fn check_with_mysqlbinlog(data: &Path) {
    let list = std::fs::read_to_string(data.join("binlog.index")).expect("there is a list");
    let files: Vec<_> = list.lines().map(|name| data.join(name)).collect();
    for program in ["mysqlbinlog", "mariadb-binlog"] {
        let read: std::io::Result<Output> = Command::new(program)
            .args(["--no-defaults", "--verify-binlog-checksum", "-vv"])
            .args(&files)
            .output();
        match read {
            Ok(output) => assert!(
                output.status.success(),
                "{program}: {}",
                String::from_utf8_lossy(&output.stderr)
            ),
            // Past the capture of the test's output: it is to be seen that nothing was tested.
            Err(_) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED: {program} is not installed");
            }
        }
    }
}

#[test]
fn files_are_begun_listed_and_removed() {
    let (directory, server, _, mut connection) = serve_with_log();
    let names = |connection: &mut Conn| -> Vec<String> {
        let lines = query_text(connection, "SHOW BINARY LOGS");
        let name = |line: &String| line.split('\t').next().unwrap_or_default().to_string();
        lines.iter().map(name).collect()
    };
    run(
        &mut connection,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY)",
            "FLUSH BINARY LOGS",
            "INSERT INTO shop.t VALUES (1)",
            "FLUSH LOGS",
        ],
    );
    let three = ["binlog.000001", "binlog.000002", "binlog.000003"];
    assert_eq!(names(&mut connection), three);
    let uuid = query_text(&mut connection, "SELECT @@server_uuid").remove(0);
    let status = query_text(&mut connection, "SHOW BINARY LOG STATUS").remove(0);
    assert!(status.starts_with("binlog.000003\t"), "{status}");
    assert!(status.ends_with(&format!("\t{uuid}:1-3")), "{status}");
    let wrong = "PURGE BINARY LOGS TO 'binlog.000009'";
    assert_eq!(code(&mut connection, wrong), 1373);
    let wrong = "SHOW BINLOG EVENTS IN 'binlog.000009'";
    assert_eq!(code(&mut connection, wrong), 1220);
    let wrong = "SHOW BINLOG EVENTS IN 'binlog.000001' FROM 5";
    assert_eq!(code(&mut connection, wrong), 1220);
    let shown = "SHOW BINLOG EVENTS IN 'binlog.000002' FROM 4 LIMIT 2, 2";
    let shown = query_text(&mut connection, shown);
    assert_eq!(shown.len(), 2);
    assert!(
        shown[0].contains("\tGtid\t") && shown[1].ends_with("\tBEGIN"),
        "{shown:?}"
    );
    run(&mut connection, &["PURGE BINARY LOGS TO 'binlog.000002'"]);
    assert_eq!(names(&mut connection), three[1..]);
    let purged = query_text(&mut connection, "SELECT @@global.gtid_purged").remove(0);
    assert_eq!(purged, format!("{uuid}:1-2"));
    run(
        &mut connection,
        &[
            "PURGE BINARY LOGS BEFORE '2001-01-01'",
            "SET GLOBAL max_binlog_size = 4096",
        ],
    );
    assert_eq!(names(&mut connection), three[1..]);
    for id in 2..60 {
        run(
            &mut connection,
            &[&format!("INSERT INTO shop.t VALUES ({id})")],
        );
    }
    assert!(names(&mut connection).len() > 3);
    run(&mut connection, &["PURGE MASTER LOGS BEFORE '2100-01-01'"]);
    assert_eq!(names(&mut connection).len(), 1);
    run(
        &mut connection,
        &[
            "RESET BINARY LOGS AND GTIDS",
            "INSERT INTO shop.t VALUES (60)",
        ],
    );
    assert_eq!(names(&mut connection), three[..1]);
    assert_eq!(numbers(&mut connection), [1]);
    stop(server);
    // Numbers go on, and so do files.
    let (server, port) = serve_with(directory.path(), LOG_BIN);
    let mut connection = connect(port);
    run(&mut connection, &["INSERT INTO shop.t VALUES (61)"]);
    assert_eq!(names(&mut connection), three[..2]);
    assert_eq!(numbers(&mut connection), [1, 2]);
    stop(server);
}

#[test]
fn a_long_transaction_is_several_statements_to_followers() {
    let (directory, mut server, _, mut connection) = serve_with_log();
    run(
        &mut connection,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(1000))",
            "SET cte_max_recursion_depth = 10000",
            "INSERT INTO shop.t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
             SELECT i, REPEAT('x', 500) FROM n",
            "DELETE FROM shop.t WHERE id % 2 = 0",
        ],
    );
    let found = events(&mut connection);
    let count = |event: &str| found.iter().filter(|found| *found == event).count();
    let statements = count("Write_rows flags: STMT_END_F") + count("Delete_rows flags: STMT_END_F");
    assert!(statements >= 4, "{statements}");
    assert_eq!(count("Table_map (shop.t)"), statements);
    assert_eq!(
        (count("Query BEGIN"), numbers(&mut connection).len()),
        (2, 4)
    );
    server.kill().expect("the process is ours");
    server.wait().expect("the process is ours");
    let (server, port) = serve_with(directory.path(), LOG_BIN);
    assert_eq!(numbers(&mut connect(port)), [1, 2, 3, 4]);
    stop(server);
    check_with_mysqlbinlog(directory.path());
}

/// Each of several clients adds rows of its own until the server dies.
fn write_until_killed(port: u16, client: u64, first: u64) {
    let mut connection = connect(port);
    for number in first.. {
        let row = client * 1_000_000 + number;
        let sql = format!(
            "INSERT INTO shop.t VALUES ({row}, REPEAT('x', {}))",
            row % 300
        );
        if connection.query_drop(sql).is_err() {
            return;
        }
    }
}

#[test]
fn crashes_leave_each_transaction_once_and_in_order() {
    const CRASHES: u64 = 6;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut server, port) = serve_with(directory.path(), LOG_BIN);
    run(
        &mut connect(port),
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(300))",
            "SET PERSIST max_binlog_size = 65536",
        ],
    );
    let mut port = port;
    for crash in 0..CRASHES {
        thread::scope(|scope| {
            for client in 1..4 {
                scope.spawn(move || write_until_killed(port, client, crash * 100_000));
            }
            let mut watcher = connect(port);
            let wanted = 200 * (crash + 1);
            loop {
                let rows = query_text(&mut watcher, "SELECT COUNT(*) FROM shop.t");
                if rows[0].parse::<u64>().expect("a number") >= wanted {
                    break;
                }
            }
            server.kill().expect("the process is ours");
            server.wait().expect("the process is ours");
        });
        (server, port) = serve_with(directory.path(), LOG_BIN);
        let mut connection = connect(port);
        let found = numbers(&mut connection);
        let all: Vec<u64> = (1..=found.len() as u64).collect();
        assert!(found == all, "crash {crash}: {found:?}");
        let rows = query_text(&mut connection, "SELECT COUNT(*) FROM shop.t");
        // The first two have made the table.
        assert_eq!(rows, [(found.len() - 2).to_string()]);
    }
    stop(server);
    check_with_mysqlbinlog(directory.path());
}

#[test]
fn without_a_binary_log_there_is_nothing_to_see() {
    let server = TestServer::start();
    let mut connection = server.connect();
    for list in [
        "SHOW BINARY LOGS",
        "SHOW BINARY LOG STATUS",
        "SHOW MASTER STATUS",
    ] {
        assert!(query_text(&mut connection, list).is_empty(), "{list}");
    }
    let variables = "SELECT @@log_bin, @@gtid_mode, @@gtid_executed, @@binlog_format";
    assert_eq!(query_text(&mut connection, variables), ["0\tOFF\t\tROW"]);
    run(
        &mut connection,
        &[
            "FLUSH BINARY LOGS",
            "PURGE BINARY LOGS TO 'binlog.000001'",
            "PURGE BINARY LOGS BEFORE NOW()",
            "RESET MASTER",
        ],
    );
    for (statement, expected) in [
        ("PURGE BINARY LOGS", 1064),
        ("PURGE LOGS TO 'a'", 1064),
        ("PURGE BINARY LOGS BEFORE 'soon'", 1210),
        ("RESET BINARY LOGS AND GTIDS TO 7", 1235),
        ("SET binlog_format = 'STATEMENT'", 1235),
        ("SET GLOBAL binlog_row_metadata = 'MINIMAL'", 1235),
        ("SET GLOBAL binlog_checksum = 'NONE'", 1235),
    ] {
        assert_eq!(code(&mut connection, statement), expected, "{statement}");
    }
    assert!(!server.directory().path().join("binlog.index").exists());
}

const COM_REGISTER_SLAVE: u8 = 0x15;
const COM_BINLOG_DUMP: u8 = 0x12;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;
const HEARTBEAT: u8 = 27;

/// The body of COM_BINLOG_DUMP_GTID of a follower that has the first `count` transactions of a server.
fn behind(server: &str, count: u64) -> Vec<u8> {
    let digits: String = server.chars().filter(|it| *it != '-').collect();
    let pairs = (0..16).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16));
    let uuid: Vec<u8> = pairs.map(|byte| byte.expect("digits")).collect();
    let mut set = u64::from(count > 0).to_le_bytes().to_vec();
    if count > 0 {
        set.extend(uuid);
        set.extend([1, 1, count + 1].map(u64::to_le_bytes).concat());
    }
    let mut body = vec![0, 0];
    body.extend(7_u32.to_le_bytes());
    body.extend(0_u32.to_le_bytes());
    body.extend(4_u64.to_le_bytes());
    body.extend((set.len() as u32).to_le_bytes());
    body.extend(set);
    body
}

/// The types of events that come before the next heartbeat.
fn received(client: &mut RawClient) -> Vec<u8> {
    let mut types = Vec::new();
    loop {
        let event = client.receive_payload();
        assert_eq!(event[0], 0, "an event, not {event:02X?}");
        match event[5] {
            HEARTBEAT if types.is_empty() => {}
            HEARTBEAT => return types,
            other => types.push(other),
        }
    }
}

#[test]
fn a_follower_is_sent_what_it_does_not_have_and_then_what_comes() {
    let (_directory, server, port, mut connection) = serve_with_log();
    run(
        &mut connection,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY)",
            "INSERT INTO shop.t VALUES (1)",
            "FLUSH BINARY LOGS",
            "INSERT INTO shop.t VALUES (2)",
        ],
    );
    let uuid = query_text(&mut connection, "SELECT @@server_uuid").remove(0);
    let address = format!("127.0.0.1:{port}").parse().expect("an address");
    let mut client = RawClient::connect(address, 0);
    let dump = |client: &mut RawClient, has: u64| {
        let sent = client.send_command(COM_BINLOG_DUMP_GTID, &behind(&uuid, has));
        sent.expect("the server reads");
    };
    // It has not said which checksums it expects.
    dump(&mut client, 0);
    assert_eq!(client.receive_error().code, 1236);
    client.succeed(COM_QUERY, b"SET @source_binlog_checksum = 'CRC64'");
    dump(&mut client, 0);
    assert_eq!(client.receive_error().code, 1236);
    client.succeed(
        COM_QUERY,
        b"SET @source_binlog_checksum = @@global.binlog_checksum, @source_heartbeat_period = 1000000",
    );
    client.succeed(
        COM_REGISTER_SLAVE,
        &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    );
    // It has what nobody has made.
    dump(&mut client, 9);
    assert_eq!(client.receive_error().code, 1236);
    let nowhere = [&[4, 0, 0, 0, 0, 0, 7, 0, 0, 0][..], b"binlog.000009"].concat();
    let sent = client.send_command(COM_BINLOG_DUMP, &nowhere);
    sent.expect("the server reads");
    assert_eq!(client.receive_error().code, 1236);
    dump(&mut client, 2);
    let (begin, rows) = ([4, 15, 35], [33, 2, 19, 30, 16]);
    let expected = [&begin[..], &rows, &[4], &begin, &rows].concat();
    assert_eq!(received(&mut client), expected);
    run(&mut connection, &["INSERT INTO shop.t VALUES (3)"]);
    assert_eq!(received(&mut client), rows);
    let shown = "SELECT command FROM information_schema.processlist WHERE command LIKE 'Binlog%'";
    assert_eq!(query_text(&mut connection, shown), ["Binlog Dump GTID"]);
    run(&mut connection, &["DROP TABLE shop.t"]);
    assert_eq!(received(&mut client), [33, 2]);
    stop(server);
}

/// MySQL's mysqlbinlog says that it expects no checksums, and learns from the description of the file that there are
/// some.
#[test]
fn a_follower_may_expect_no_checksums() {
    let (_directory, server, port, mut connection) = serve_with_log();
    run(&mut connection, &["CREATE DATABASE shop"]);
    let address = format!("127.0.0.1:{port}").parse().expect("an address");
    let first = |checksum: &str| {
        let mut client = RawClient::connect(address, 0);
        let said = format!(
            "SET @master_binlog_checksum = '{checksum}', @source_binlog_checksum = '{checksum}'"
        );
        client.succeed(COM_QUERY, said.as_bytes());
        let place = [&[4, 0, 0, 0, 0, 0, 7, 0, 0, 0][..], b"binlog.000001"].concat();
        let sent = client.send_command(COM_BINLOG_DUMP, &place);
        sent.expect("the server reads");
        [(); 4].map(|()| client.receive_payload())
    };
    let ([rotate, description, ..], expected) = (first("none"), first("CRC32"));
    let length = |event: &[u8]| u32::from_le_bytes([event[10], event[11], event[12], event[13]]);
    assert_eq!(rotate.len(), expected[0].len() - 4);
    assert_eq!(length(&rotate) as usize, rotate.len() - 1);
    assert_eq!(rotate[14..], expected[0][14..rotate.len()]);
    assert_eq!(description, expected[1]);
    assert_eq!(first("NONE")[2..], expected[2..]);
    stop(server);
}
