//! What a server tells of the statements that it has run: `performance_schema`, the slow query log, and metrics.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_server::MetricsServer;
use sheaf_sql::EngineOptions;

use crate::harness::{TestServer, code, query_text, run};

const BY_DIGEST: &str = "performance_schema.events_statements_summary_by_digest";

/// A server with a table of three rows, and a connection that has counted nothing yet.
fn server() -> (TestServer, Conn) {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("shop");
    run(
        &mut connection,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY (a))",
            "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
            "TRUNCATE TABLE performance_schema.events_statements_summary_by_digest",
        ],
    );
    (server, connection)
}

#[test]
fn statements_are_counted_by_digest_however_they_are_sent() {
    let (server, mut connection) = server();
    for id in 1..=5 {
        run(
            &mut connection,
            &[&format!("SELECT a FROM t WHERE id = {id} /* page {id} */")],
        );
    }
    let prepared = connection
        .prep("select a from t where id = ?")
        .expect("a statement");
    for id in 1..=4 {
        connection
            .exec_drop(&prepared, (id,))
            .expect("an execution");
    }
    let mut other = server.connect();
    run(&mut other, &["USE shop", "SELECT a FROM t  WHERE id = -1"]);
    drop(other);
    let counted = format!(
        "SELECT SCHEMA_NAME, DIGEST_TEXT, COUNT_STAR, SUM_ROWS_SENT, SUM_ERRORS FROM {BY_DIGEST} \
         WHERE DIGEST_TEXT LIKE 'SELECT `a`%'"
    );
    let rows = || query_text(&mut server.connect(), &counted);
    crate::harness::wait_until("the other session has ended", || {
        rows() == ["shop\tSELECT `a` FROM `t` WHERE `id` = ?\t10\t6\t0"]
    });
    // A sample has its values.
    let sample = format!(
        "SELECT QUERY_SAMPLE_TEXT NOT LIKE '%?%', DIGEST = STATEMENT_DIGEST('select a from t where id = 1'), \
         MIN_TIMER_WAIT > 0 AND MIN_TIMER_WAIT <= AVG_TIMER_WAIT AND AVG_TIMER_WAIT <= MAX_TIMER_WAIT \
         AND QUANTILE_95 <= QUANTILE_999 AND FIRST_SEEN <= LAST_SEEN \
         FROM {BY_DIGEST} WHERE DIGEST_TEXT LIKE 'SELECT `a`%'"
    );
    assert_eq!(query_text(&mut connection, &sample), ["1\t1\t1"]);
}

#[test]
fn statements_by_name_are_counted_as_what_they_are() {
    let (_server, mut connection) = server();
    run(
        &mut connection,
        &[
            "PREPARE one FROM 'select a from t where id = ?'",
            "PREPARE other FROM 'SELECT a FROM t WHERE id = ?'",
            "SET @id = 2",
            "EXECUTE one USING @id",
            "EXECUTE other USING @id",
        ],
    );
    let counted = format!(
        "SELECT DIGEST_TEXT, COUNT_STAR, SUM_ROWS_SENT FROM {BY_DIGEST} WHERE DIGEST_TEXT LIKE '%`a` FROM%' ORDER BY 1"
    );
    assert_eq!(
        query_text(&mut connection, &counted),
        [
            "EXECUTE SELECT `a` FROM `t` WHERE `id` = ?\t2\t2",
            "PREPARE SELECT `a` FROM `t` WHERE `id` = ?\t2\t0",
        ]
    );
}

#[test]
fn rows_errors_and_scans_are_counted() {
    let (_server, mut connection) = server();
    run(
        &mut connection,
        &[
            "UPDATE t SET a = a + 1 WHERE id < 3",
            "SELECT * FROM t IGNORE INDEX (a) WHERE a > 0",
            "INSERT INTO t VALUES (7, 1), (8, 2)",
        ],
    );
    assert_eq!(code(&mut connection, "INSERT INTO t VALUES (1, 1)"), 1062);
    assert_eq!(code(&mut connection, "SELECT missing FROM t"), 1054);
    let counted = format!(
        "SELECT DIGEST_TEXT, COUNT_STAR, SUM_ERRORS, SUM_ROWS_AFFECTED, SUM_ROWS_SENT, SUM_NO_INDEX_USED \
         FROM {BY_DIGEST} WHERE SCHEMA_NAME = 'shop' AND DIGEST_TEXT NOT LIKE '%performance%' ORDER BY 1"
    );
    assert_eq!(
        query_text(&mut connection, &counted),
        [
            "INSERT INTO `t` VALUES (...)\t1\t1\t0\t0\t0",
            "INSERT INTO `t` VALUES (...) /* , ... */\t1\t0\t2\t0\t0",
            "SELECT * FROM `t` IGNORE INDEX ( `a` ) WHERE `a` > ?\t1\t0\t0\t3\t1",
            "SELECT `missing` FROM `t`\t1\t1\t0\t0\t0",
            "UPDATE `t` SET `a` = `a` + ? WHERE `id` < ?\t1\t0\t2\t0\t0",
        ]
    );
}

#[test]
fn digests_are_forgotten_on_demand_and_have_a_limit() {
    let server = TestServer::start_with(
        EngineOptions {
            digests: 2,
            ..EngineOptions::default()
        },
        |_, _| {},
    );
    let mut connection = server.connect();
    run(
        &mut connection,
        &["TRUNCATE performance_schema.events_statements_summary_by_digest"],
    );
    run(
        &mut connection,
        &["DO 1", "DO 1, 2", "DO (1)", "DO NOW()", "DO PI()"],
    );
    let rows = format!("SELECT SUM(COUNT_STAR), SUM(DIGEST IS NULL) FROM {BY_DIGEST}");
    // TRUNCATE itself was counted when it had ended.
    assert_eq!(query_text(&mut connection, &rows), ["6\t1"]);
    let off = TestServer::start_with(
        EngineOptions {
            digests: 0,
            ..EngineOptions::default()
        },
        |_, _| {},
    );
    let mut connection = off.connect();
    run(&mut connection, &["DO 1"]);
    assert_eq!(query_text(&mut connection, &rows), ["NULL\tNULL"]);
}

#[test]
fn the_servers_own_statements_are_not_counted() {
    let server = TestServer::start();
    server.engine().create_cost_tables().expect("the tables");
    let mut connection = server.connect();
    let counted = format!("SELECT DIGEST_TEXT FROM {BY_DIGEST} WHERE DIGEST_TEXT LIKE '%cost%'");
    assert_eq!(query_text(&mut connection, &counted), [""; 0]);
}

#[test]
fn who_has_no_privilege_sees_no_statements() {
    let (server, mut root) = server();
    run(
        &mut root,
        &[
            "CREATE USER app IDENTIFIED BY 'geheim'",
            "CREATE USER monitor IDENTIFIED BY 'geheim'",
            "GRANT SELECT ON performance_schema.* TO monitor",
        ],
    );
    let login = |user: &str| {
        let options = server.options().user(Some(user)).pass(Some("geheim"));
        Conn::new(options).expect("a connection")
    };
    let read = format!("SELECT COUNT(*) > 0 FROM {BY_DIGEST}");
    let mut app = login("app");
    assert_eq!(code(&mut app, &read), 1142);
    for statement in ["SHOW COLUMNS FROM", "DESCRIBE", "SHOW FULL COLUMNS FROM"] {
        let statement = format!("{statement} {BY_DIGEST}");
        assert_eq!(code(&mut app, &statement), 1142, "{statement}");
    }
    assert_eq!(code(&mut app, "DESCRIBE mysql.user"), 1142);
    assert_eq!(
        query_text(&mut app, "DESCRIBE performance_schema.global_status").len(),
        2
    );
    assert_eq!(code(&mut app, "USE performance_schema"), 1044);
    assert_eq!(
        query_text(&mut app, "SHOW DATABASES"),
        ["information_schema"]
    );
    let anybody = "SELECT COUNT(*) > 0 FROM performance_schema.global_status";
    assert_eq!(query_text(&mut app, anybody), ["1"]);
    for (statement, expected) in [
        ("GRANT SELECT ON performance_schema.absent TO app", 1146),
        ("GRANT SELECT ON information_schema.tables TO app", 1044),
        (
            "GRANT SELECT (NAME) ON performance_schema.threads TO app",
            1235,
        ),
    ] {
        assert_eq!(code(&mut root, statement), expected, "{statement}");
    }
    let threads = "SELECT COUNT(*) > 0 FROM performance_schema.threads";
    assert_eq!(code(&mut app, threads), 1142);
    run(
        &mut root,
        &["GRANT SELECT ON performance_schema.threads TO app"],
    );
    assert_eq!(query_text(&mut app, threads), ["1"]);
    assert_eq!(code(&mut app, &read), 1142);
    run(
        &mut root,
        &["REVOKE SELECT ON performance_schema.threads FROM app"],
    );
    let mut monitor = login("monitor");
    assert_eq!(query_text(&mut monitor, &read), ["1"]);
    assert_eq!(
        code(&mut monitor, &format!("TRUNCATE TABLE {BY_DIGEST}")),
        1142
    );
    run(&mut monitor, &["USE performance_schema"]);
    assert_eq!(
        query_text(
            &mut monitor,
            "SHOW TABLES LIKE 'events\\_statements\\_summary%'"
        )
        .len(),
        1
    );
    // Nobody reads passwords there.
    let shown = format!(
        "SELECT COUNT(*) FROM {BY_DIGEST} WHERE QUERY_SAMPLE_TEXT LIKE '%geh%' AND DIGEST_TEXT LIKE 'CREATE%'"
    );
    assert_eq!(query_text(&mut root, &shown), ["0"]);
    assert_eq!(
        code(&mut root, "SELECT * FROM performance_schema.absent"),
        1146
    );
    assert_eq!(
        code(&mut root, "CREATE TABLE performance_schema.t (a INT)"),
        1044
    );
    assert_eq!(code(&mut root, "DROP DATABASE performance_schema"), 1044);
    assert_eq!(code(&mut root, &format!("DELETE FROM {BY_DIGEST}")), 1288);
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn slow_statements_are_logged() {
    let (server, mut connection) = server();
    let log = server.directory().path().join("data").join("test-slow.log");
    run(
        &mut connection,
        &[
            "SET GLOBAL slow_query_log_file = 'test-slow.log', slow_query_log = ON",
            "SET long_query_time = 0",
            "SELECT a FROM t WHERE id = 2",
        ],
    );
    let prepared = connection
        .prep("SELECT a FROM t WHERE id = ?")
        .expect("a statement");
    connection.exec_drop(&prepared, (3,)).expect("an execution");
    assert_eq!(code(&mut connection, "SELECT missing FROM t"), 1054);
    run(
        &mut connection,
        &[
            "CREATE USER u IDENTIFIED BY 'geheim'",
            "ALTER TABLE t COMMENT = 'not logged'",
            "SET min_examined_row_limit = 1",
            "SELECT 'examines none'",
            "SET min_examined_row_limit = 0, long_query_time = 100",
            "SELECT 'is fast'",
            "FLUSH SLOW LOGS",
        ],
    );
    let text = read(&log);
    for wanted in [
        "# User@Host: root[root] @ ",
        "# Schema: shop  Last_errno: 0  Killed: 0\n",
        "  Rows_sent: 1  Rows_examined: 1  Rows_affected: 0  Bytes_sent: ",
        "use shop;\nSET timestamp=",
        ";\nSELECT a FROM t WHERE id = 2;\n",
        ";\nSELECT a FROM t WHERE id = 3;\n",
        "Last_errno: 1054",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    for unwanted in ["geheim", "not logged", "examines none", "is fast"] {
        assert!(!text.contains(unwanted), "{unwanted} in {text}");
    }
    // It may be moved away.
    let moved = log.with_file_name("moved-slow.log");
    std::fs::rename(&log, &moved).expect("a move");
    run(
        &mut connection,
        &[
            "FLUSH SLOW LOGS",
            "SET GLOBAL log_queries_not_using_indexes = ON",
            "SELECT id FROM t IGNORE INDEX (a) WHERE a > 5",
            "FLUSH SLOW LOGS",
            "SET GLOBAL slow_query_log = OFF",
            "SET long_query_time = 0",
            "SELECT 'after the end'",
        ],
    );
    let text = read(&log);
    assert!(text.contains("# Full_scan: Yes "), "{text}");
    assert!(!text.contains("after the end"), "{text}");
}

#[test]
fn files_of_the_database_are_no_logs() {
    let (_server, mut connection) = server();
    for name in ["sheaf.log", "sheaf.data", "absent/a-slow.log", "/etc/a.cnf"] {
        let statement = format!("SET GLOBAL slow_query_log_file = '{name}'");
        assert_eq!(code(&mut connection, &statement), 1231, "{name}");
    }
    assert_eq!(
        code(&mut connection, "SET GLOBAL log_output = 'TABLE'"),
        1235
    );
}

/// What a server of metrics answers to a request.
fn answer(metrics: &MetricsServer, request: &str) -> String {
    let mut stream = TcpStream::connect(metrics.address()).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn metrics_are_told_over_http() {
    let (server, mut connection) = server();
    let metrics = MetricsServer::start(server.engine(), ([127, 0, 0, 1], 0).into());
    let metrics = metrics.expect("a free port");
    run(&mut connection, &["SELECT a FROM t WHERE id = 1"]);
    let get = |path: &str| answer(&metrics, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let text = get("/metrics");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    for wanted in [
        "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n",
        "\n# TYPE sheaf_questions counter\n# HELP sheaf_questions ",
        "\nsheaf_commands_total{command=\"select\"} ",
        "\nsheaf_threads_connected 1\n",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    // Each family once.
    let families: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("# TYPE"))
        .collect();
    let mut once = families.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), families.len());
    assert!(get("/health").ends_with("\r\n\r\nok\n"));
    assert!(get("/ready").ends_with("\r\n\r\nready\n"));
    assert!(get("/").starts_with("HTTP/1.1 404 "));
    assert!(answer(&metrics, "PUT / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let long = format!("GET / HTTP/1.1\r\na: {}", "x".repeat(10_000));
    assert!(answer(&metrics, &long).starts_with("HTTP/1.1 431 "));
    server.engine().begin_shutdown();
    assert!(get("/ready").starts_with("HTTP/1.1 503 "));
    assert!(get("/health").starts_with("HTTP/1.1 200 "));
}

#[test]
fn clients_that_say_nothing_keep_nobody_out() {
    let (server, _connection) = server();
    let metrics = MetricsServer::start(server.engine(), ([127, 0, 0, 1], 0).into());
    let metrics = metrics.expect("a free port");
    let silent: Vec<TcpStream> = (0..64)
        .map(|_| TcpStream::connect(metrics.address()).expect("a connection"))
        .collect();
    // While those that were pushed out are about to end, a client is told to come again.
    crate::harness::wait_until("the endpoint answers", || {
        let mut stream = TcpStream::connect(metrics.address()).expect("a connection");
        let mut answer = String::new();
        let _ = stream.write_all(b"GET /health HTTP/1.1\r\n\r\n");
        let _ = stream.read_to_string(&mut answer);
        answer.ends_with("\r\n\r\nok\n")
    });
    drop(silent);
}

#[test]
fn what_statements_sort_and_keep_is_counted() {
    let (_server, mut connection) = server();
    run(
        &mut connection,
        &[
            "SELECT a FROM t IGNORE INDEX (a) ORDER BY a",
            "SELECT COUNT(*), a % 2 FROM t GROUP BY a % 2",
            "SELECT id FROM t WHERE id = 1",
        ],
    );
    let counted = format!(
        "SELECT SUM_SORT_ROWS, SUM_SORT_SCAN, SUM_SORT_RANGE, SUM_CREATED_TMP_TABLES, SUM_NO_INDEX_USED \
         FROM {BY_DIGEST} WHERE SCHEMA_NAME = 'shop' AND DIGEST_TEXT LIKE 'SELECT %FROM `t`%' ORDER BY DIGEST_TEXT"
    );
    assert_eq!(
        query_text(&mut connection, &counted),
        [
            "3\t1\t0\t0\t1", // a
            "0\t0\t0\t0\t0", // id
            "0\t0\t0\t1\t1", // COUNT
        ]
    );
    let status = "SELECT VARIABLE_VALUE >= 3 FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Sort_rows'";
    assert_eq!(query_text(&mut connection, status), ["1"]);
    // Of an order with a LIMIT its first rows are counted.
    let sorted = "SHOW SESSION STATUS WHERE VARIABLE_NAME IN ('Sort_rows', 'Sort_scan')";
    for direct in ["on", "off"] {
        run(
            &mut connection,
            &[&format!("SET optimizer_switch = 'direct={direct}'")],
        );
        for columns in ["id", "CONCAT('x', id)"] {
            run(
                &mut connection,
                &[
                    "FLUSH STATUS",
                    &format!(
                        "SELECT {columns} FROM t IGNORE INDEX (a) ORDER BY a DESC, id LIMIT 2"
                    ),
                ],
            );
            let expected = ["Sort_rows\t2", "Sort_scan\t1"];
            let found = query_text(&mut connection, sorted);
            assert_eq!(found, expected, "{columns}, direct={direct}");
        }
        // What is changed may be sorted, too.
        run(
            &mut connection,
            &[
                "DROP TABLE IF EXISTS changed",
                "CREATE TABLE changed (id INT PRIMARY KEY, k INT, v INT, KEY (k))",
                "INSERT INTO changed VALUES (1, 1, 1), (2, 2, 2), (3, 1, 3), (4, 1, 0)",
                "FLUSH STATUS",
                "UPDATE changed SET v = v + 1 WHERE k = 1 ORDER BY v LIMIT 1",
            ],
        );
        let found = query_text(&mut connection, "SHOW SESSION STATUS LIKE 'Sort_rows'");
        assert_eq!(found, ["Sort_rows\t1"], "UPDATE, direct={direct}");
    }
}

#[test]
fn waits_for_locks_are_measured_and_shown() {
    let (server, mut connection) = server();
    run(
        &mut connection,
        &["BEGIN", "UPDATE t SET a = 11 WHERE id = 1"],
    );
    let mut waiter = server.connect();
    run(&mut waiter, &["USE shop"]);
    let waiting = std::thread::spawn(move || {
        run(&mut waiter, &["UPDATE t SET a = 12 WHERE id = 1"]);
        waiter
    });
    let waits = "SELECT locked_table, locked_index, waiting_query, waiting_lock_mode, \
         blocking_pid = CONNECTION_ID(), sql_kill_blocking_query = CONCAT('KILL QUERY ', CONNECTION_ID()) \
         FROM sys.innodb_lock_waits";
    let expected = ["`shop`.`t`\tPRIMARY\tUPDATE t SET a = 12 WHERE id = 1\tX,REC_NOT_GAP\t1\t1"];
    crate::harness::wait_until("a session waits", || {
        query_text(&mut connection, waits) == expected
    });
    let locks = "SELECT OBJECT_NAME, INDEX_NAME, LOCK_MODE, LOCK_STATUS, LOCK_DATA, THREAD_ID = CONNECTION_ID() \
         FROM performance_schema.data_locks ORDER BY LOCK_STATUS";
    assert_eq!(
        query_text(&mut connection, locks),
        [
            "t\tPRIMARY\tX,REC_NOT_GAP\tGRANTED\t1\t1",
            "t\tPRIMARY\tX,REC_NOT_GAP\tWAITING\t1\t0",
        ]
    );
    let pairs = "SELECT COUNT(*) FROM performance_schema.data_lock_waits w \
         JOIN performance_schema.data_locks r ON r.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID \
         JOIN performance_schema.data_locks b ON b.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID";
    assert_eq!(query_text(&mut connection, pairs), ["1"]);
    let states = "SELECT trx_state, trx_requested_lock_id IS NULL, trx_rows_modified, trx_rows_locked \
         FROM information_schema.innodb_trx ORDER BY trx_state";
    assert_eq!(
        query_text(&mut connection, states),
        ["LOCK WAIT\t0\t0\t1", "RUNNING\t1\t1\t1"]
    );
    // What is undone is not counted, a row that is changed twice counts twice.
    run(
        &mut connection,
        &[
            "SAVEPOINT s",
            "UPDATE t SET a = 13 WHERE id = 1",
            "INSERT INTO t (id, a) VALUES (100, 1), (101, 1)",
            "DELETE FROM t WHERE id = 101",
        ],
    );
    let modified =
        "SELECT blocking_trx_rows_modified, waiting_trx_rows_modified FROM sys.innodb_lock_waits";
    assert_eq!(query_text(&mut connection, modified), ["5\t0"]);
    run(&mut connection, &["ROLLBACK TO s"]);
    // The waiter looks again, since changes were taken back: it does not wait for a moment.
    crate::harness::wait_until("the session waits again", || {
        query_text(&mut connection, modified) == ["1\t0"]
    });
    let current = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'";
    assert_eq!(
        query_text(&mut connection, current),
        ["Innodb_row_lock_current_waits\t1"]
    );
    let all = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'";
    assert_eq!(
        query_text(&mut connection, all),
        ["Innodb_row_lock_waits\t1"]
    );
    let status = query_text(&mut connection, "SHOW ENGINE INNODB STATUS");
    assert!(status[0].contains("LOCK WAIT"), "{status:?}");
    run(&mut connection, &["COMMIT"]);
    let mut waiter = waiting.join().expect("it is answered");
    let waited = format!(
        "SELECT SUM_LOCK_TIME > 0, SUM_LOCK_TIME <= SUM_TIMER_WAIT FROM {BY_DIGEST} \
         WHERE DIGEST_TEXT LIKE 'UPDATE%' AND SUM_LOCK_TIME > 0"
    );
    assert_eq!(query_text(&mut waiter, &waited), ["1\t1"]);
    assert_eq!(query_text(&mut waiter, waits), [""; 0]);
}

#[test]
fn uses_of_indexes_are_counted() {
    const BY_INDEX: &str = "performance_schema.table_io_waits_summary_by_index_usage";
    let (server, mut connection) = server();
    run(
        &mut connection,
        &[
            "ALTER TABLE t ADD b INT DEFAULT 1, ADD KEY unused (b)",
            &format!("TRUNCATE TABLE {BY_INDEX}"),
            "SELECT a FROM t WHERE id = 2",
            "SELECT id FROM t WHERE a = 20",
            "INSERT INTO t (id, a) VALUES (4, 40), (5, 50)",
            "UPDATE t SET b = 2 WHERE id = 4",
            "DELETE FROM t WHERE id IN (4, 5)",
        ],
    );
    let mut other = server.connect();
    run(&mut other, &["SELECT a FROM shop.t WHERE id = 3"]);
    drop(other);
    let counted = format!(
        "SELECT INDEX_NAME, COUNT_READ > 0, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE FROM {BY_INDEX} \
         WHERE OBJECT_SCHEMA = 'shop' AND OBJECT_NAME = 't' ORDER BY INDEX_NAME"
    );
    assert_eq!(
        query_text(&mut connection, &counted),
        [
            "NULL\t0\t2\t0\t0",
            "PRIMARY\t1\t0\t1\t2",
            "a\t1\t0\t0\t0",
            "unused\t0\t0\t0\t0",
        ]
    );
    let unused = "SELECT * FROM sys.schema_unused_indexes WHERE object_schema = 'shop'";
    assert_eq!(query_text(&mut connection, unused), ["shop\tt\tunused"]);
    let sums = "SELECT COUNT_INSERT, COUNT_WRITE FROM performance_schema.table_io_waits_summary_by_table \
         WHERE OBJECT_NAME = 't'";
    assert_eq!(query_text(&mut connection, sums), ["2\t5"]);
    // Plans of operators count as direct ones do.
    run(
        &mut connection,
        &[
            "SET optimizer_switch = 'direct=off'",
            &format!("TRUNCATE TABLE {BY_INDEX}"),
            "SELECT id FROM t WHERE b = 1",
            "DELETE FROM t WHERE b = 1 AND a > 25",
        ],
    );
    assert_eq!(query_text(&mut connection, unused), ["shop\tt\ta"]);
    // Scans of the table use no index.
    for switch in ["direct=on", "direct=off"] {
        run(
            &mut connection,
            &[
                &format!("SET optimizer_switch = '{switch}'"),
                "CREATE OR REPLACE TABLE plain (id INT PRIMARY KEY, a INT)",
                "INSERT INTO plain VALUES (1, 1), (2, 2)",
                "SELECT a FROM plain",
            ],
        );
        let scanned = format!(
            "SELECT INDEX_NAME, COUNT_FETCH FROM {BY_INDEX} WHERE OBJECT_NAME = 'plain' ORDER BY 1"
        );
        assert_eq!(
            query_text(&mut connection, &scanned),
            ["NULL\t2", "PRIMARY\t0"],
            "{switch}"
        );
    }
}

/// However a statement runs, and as MySQL counts.
#[test]
fn selects_are_counted_by_how_they_read_their_tables() {
    let (_server, mut connection) = server();
    run(
        &mut connection,
        &[
            "CREATE TABLE u (id INT PRIMARY KEY, b INT)",
            "INSERT INTO u VALUES (1, 10), (2, 20), (3, 30)",
        ],
    );
    for switch in ["direct=on", "direct=off"] {
        for (statement, expected) in [
            ("SELECT a FROM t WHERE id = 2", ""),
            ("SELECT id FROM t WHERE a = 20", ""),
            (
                "SELECT id FROM t FORCE INDEX (a) WHERE a BETWEEN 10 AND 20",
                "Select_range 1",
            ),
            ("SELECT b FROM u", "Select_scan 1"),
            (
                "SELECT COUNT(*) FROM u x JOIN u y ON x.b < y.b",
                "Select_full_join 1, Select_scan 1",
            ),
            ("SELECT b FROM u UNION ALL SELECT b FROM u", "Select_scan 2"),
            ("UPDATE u SET b = b + 1", ""),
        ] {
            run(
                &mut connection,
                &[
                    &format!("SET optimizer_switch = '{switch}'"),
                    "FLUSH STATUS",
                    statement,
                ],
            );
            let mut found = query_text(&mut connection, "SHOW SESSION STATUS LIKE 'Select%'");
            found.retain(|row| !row.ends_with("\t0"));
            found
                .iter_mut()
                .for_each(|row| *row = row.replace('\t', " "));
            assert_eq!(found.join(", "), expected, "{statement} with {switch}");
        }
    }
}

#[test]
fn lookups_that_find_nothing_and_those_of_foreign_keys_use_an_index() {
    const BY_INDEX: &str = "performance_schema.table_io_waits_summary_by_index_usage";
    let (_server, mut connection) = server();
    run(
        &mut connection,
        &[
            "CREATE TABLE parent (id INT PRIMARY KEY, a INT, b INT, c INT, UNIQUE a (a), KEY b (b), KEY c (c))",
            "CREATE TABLE child (id INT PRIMARY KEY, p INT, KEY p (p), FOREIGN KEY (p) REFERENCES parent (a))",
            "INSERT INTO parent VALUES (1, 10, 1, 1), (2, 20, 2, 2)",
            &format!("TRUNCATE TABLE {BY_INDEX}"),
            "INSERT INTO child VALUES (1, 10)",
            "DELETE FROM parent WHERE id = 2",
            "SELECT * FROM parent WHERE b = 77",
        ],
    );
    let fetched = format!(
        "SELECT OBJECT_NAME, INDEX_NAME, COUNT_FETCH FROM {BY_INDEX} WHERE OBJECT_SCHEMA = 'shop' \
         AND OBJECT_NAME IN ('child', 'parent') AND INDEX_NAME <> 'PRIMARY' ORDER BY OBJECT_NAME, INDEX_NAME"
    );
    let count = |connection: &mut Conn| query_text(connection, &fetched);
    // The parent's key was looked up for the child, and before its row goes to see whether another row has it.
    let found = count(&mut connection);
    assert_eq!(found[0], "child\tp\t1");
    assert!(
        found[1].starts_with("parent\ta\t") && found[1] != "parent\ta\t0",
        "{found:?}"
    );
    assert_eq!(found[2..], ["parent\tb\t1", "parent\tc\t0"]);
    run(
        &mut connection,
        &[
            "SET optimizer_switch = 'direct=off'",
            "SELECT * FROM parent WHERE c BETWEEN 50 AND 60",
        ],
    );
    assert_eq!(count(&mut connection)[3], "parent\tc\t1");
}

#[test]
fn histograms_have_the_buckets_of_mysql() {
    let (_server, mut connection) = server();
    run(&mut connection, &["DO 1", "DO 2"]);
    let buckets = "SELECT SUM(COUNT_BUCKET), MAX(BUCKET_QUANTILE) \
         FROM performance_schema.events_statements_histogram_by_digest h \
         JOIN performance_schema.events_statements_summary_by_digest d USING (SCHEMA_NAME, DIGEST) \
         WHERE DIGEST_TEXT = 'DO ?'";
    assert_eq!(query_text(&mut connection, buckets), ["2\t1"]);
    let all = "SELECT COUNT(*), MIN(BUCKET_TIMER_HIGH), MAX(BUCKET_TIMER_HIGH), MAX(COUNT_BUCKET_AND_LOWER) > 1 \
         FROM performance_schema.events_statements_histogram_global";
    assert_eq!(
        query_text(&mut connection, all),
        ["450\t10000000\t18446744073709551615\t1"]
    );
    run(
        &mut connection,
        &["TRUNCATE TABLE performance_schema.events_statements_histogram_by_digest"],
    );
    assert_eq!(query_text(&mut connection, buckets), ["NULL\tNULL"]);
    let counted = format!("SELECT COUNT_STAR FROM {BY_DIGEST} WHERE DIGEST_TEXT = 'DO ?'");
    assert_eq!(query_text(&mut connection, &counted), ["2"]);
}

#[test]
fn sessions_that_hold_tables_and_wait_for_them_are_shown() {
    let (server, mut connection) = server();
    let mut reader = server.connect();
    run(&mut reader, &["USE shop", "BEGIN", "SELECT * FROM t"]);
    let mut writer = server.connect();
    run(
        &mut writer,
        &["USE shop", "BEGIN", "UPDATE t SET a = 11 WHERE id = 1"],
    );
    let id = |c: &mut Conn| query_text(c, "SELECT CONNECTION_ID()").remove(0);
    let (reading, writing) = (id(&mut reader), id(&mut writer));
    let of = |id: &str| {
        format!(
            "SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE, LOCK_DURATION, LOCK_STATUS \
             FROM performance_schema.metadata_locks WHERE OWNER_THREAD_ID = {id} ORDER BY LOCK_TYPE"
        )
    };
    let held = |word: &str| [format!("TABLE\tshop\tt\t{word}\tTRANSACTION\tGRANTED")];
    assert_eq!(
        query_text(&mut connection, &of(&reading)),
        held("SHARED_READ")
    );
    assert_eq!(
        query_text(&mut connection, &of(&writing)),
        held("SHARED_WRITE")
    );
    let mut definer = server.connect();
    run(&mut definer, &["USE shop"]);
    let defining = id(&mut definer);
    let waiting = std::thread::spawn(move || run(&mut definer, &["ALTER TABLE t ADD z INT"]));
    let waits = format!(
        "SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE OWNER_THREAD_ID = {defining} \
         AND LOCK_TYPE = 'EXCLUSIVE' AND LOCK_STATUS = 'PENDING'"
    );
    crate::harness::wait_until("the change is seen to wait", || {
        query_text(&mut connection, &waits) == ["1"]
    });
    run(&mut reader, &["COMMIT"]);
    run(&mut writer, &["COMMIT"]);
    waiting.join().expect("the table is changed");
    assert_eq!(query_text(&mut connection, &of(&reading)), [""; 0]);
    run(&mut reader, &["LOCK TABLES t WRITE"]);
    let locked = held("SHARED_NO_READ_WRITE");
    assert_eq!(query_text(&mut connection, &of(&reading)), locked);
    run(&mut reader, &["LOCK TABLES t READ"]);
    assert_eq!(
        query_text(&mut connection, &of(&reading)),
        held("SHARED_READ_ONLY")
    );
}
