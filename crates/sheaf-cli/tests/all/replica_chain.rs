//! Replicas that write what they apply to their own binary log: a chain of servers, and one that takes another's place.

use std::process::Child;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::command_line::{connect, serve_with};
use crate::harness::{code, query_text, run, wait_until};

/// A server of the chain.
struct Server {
    process: Child,
    directory: tempfile::TempDir,
    number: usize,
    port: u16,
    connection: Conn,
}

impl Server {
    fn new(number: usize) -> Server {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (process, port) = serve_with(directory.path(), &options(number));
        Server {
            process,
            directory,
            number,
            port,
            connection: connect(port),
        }
    }

    fn follow(&mut self, port: u16) {
        let change = format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'root', \
             SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 0, SOURCE_AUTO_POSITION = 1"
        );
        run(
            &mut self.connection,
            &["STOP REPLICA", &change, "START REPLICA"],
        );
    }

    /// Kills it and starts it again, on another port.
    fn crash(&mut self) {
        self.crash_and_start(&options(self.number));
    }

    fn crash_and_start(&mut self, options: &[&str]) {
        self.process.kill().expect("the process is ours");
        self.process.wait().expect("the process is ours");
        let (process, port) = serve_with(self.directory.path(), options);
        (self.process, self.port) = (process, port);
        self.connection = connect(port);
    }

    fn executed(&mut self) -> String {
        query_text(
            &mut self.connection,
            "SELECT REPLACE(@@gtid_executed, '\\n', '')",
        )[0]
        .clone()
    }

    fn uuid(&mut self) -> String {
        query_text(&mut self.connection, "SELECT @@server_uuid")[0].clone()
    }

    fn catch_up_with(&mut self, source: &mut Server) {
        let done = format!(
            "SELECT GTID_SUBSET('{}', @@gtid_executed)",
            source.executed()
        );
        let connection = &mut self.connection;
        wait_until("the replica", || {
            let row: Option<mysql::Row> = connection
                .query_first("SHOW REPLICA STATUS")
                .expect("the status of the replica");
            let error: Option<String> = row
                .expect("it is a replica")
                .get("Last_SQL_Error")
                .flatten();
            assert_eq!(error.as_deref(), Some(""), "the replica has stopped");
            query_text(connection, &done) == ["1"]
        });
    }
}

impl Server {
    /// Waits until a field of SHOW REPLICA STATUS has these words.
    fn await_error(&mut self, field: &str, words: &str) {
        let connection = &mut self.connection;
        wait_until(words, || {
            let status: Option<mysql::Row> = connection
                .query_first("SHOW REPLICA STATUS")
                .expect("the status of the replica");
            let error: Option<String> = status.expect("it is a replica").get(field).flatten();
            error.is_some_and(|error| error.contains(words))
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn options(number: usize) -> [&'static str; 3] {
    let set = ["server_id=1", "server_id=2", "server_id=3"][number];
    ["--log-bin", "--set", set]
}

#[test]
fn a_chain_of_servers_has_the_gtids_of_the_first_and_any_of_them_may_be_followed() {
    let [mut a, mut b, mut c] = [0, 1, 2].map(Server::new);
    let (uuid_a, uuid_b) = (a.uuid(), b.uuid());
    b.follow(a.port);
    c.follow(b.port);
    run(
        &mut a.connection,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(9))",
            "INSERT INTO shop.t VALUES (1, 'one'), (2, 'two')",
            "CREATE TABLE shop.copied SELECT * FROM shop.t",
            "CREATE TABLE shop.empty SELECT * FROM shop.t WHERE FALSE",
            "CREATE USER plain IDENTIFIED BY 'secret'",
            "ANALYZE TABLE shop.t",
            "UPDATE shop.t SET v = 'due' WHERE id = 2",
        ],
    );
    b.catch_up_with(&mut a);
    c.catch_up_with(&mut b);
    let executed = a.executed();
    assert_eq!([b.executed(), c.executed()], [executed.clone(), executed]);
    // Its own changes have numbers without gaps.
    run(
        &mut b.connection,
        &[
            "CREATE TABLE shop.own (id INT PRIMARY KEY)",
            "INSERT INTO shop.own VALUES (1)",
        ],
    );
    run(
        &mut a.connection,
        &["INSERT INTO shop.t VALUES (3, 'three')"],
    );
    b.catch_up_with(&mut a);
    b.crash();
    run(&mut b.connection, &["INSERT INTO shop.own VALUES (2)"]);
    assert!(
        b.executed().contains(&format!("{uuid_b}:1-3")),
        "{}",
        b.executed()
    );
    c.follow(b.port);
    c.catch_up_with(&mut b);
    assert_eq!(c.executed(), b.executed());
    let rows = ["1\tone", "2\tdue", "3\tthree"];
    assert_eq!(
        query_text(&mut c.connection, "SELECT * FROM shop.t ORDER BY id"),
        rows
    );
    let copied = "SELECT * FROM shop.copied ORDER BY id";
    assert_eq!(query_text(&mut c.connection, copied), ["1\tone", "2\ttwo"]);
    assert_eq!(
        query_text(&mut c.connection, "SELECT COUNT(*) FROM shop.own"),
        ["2"]
    );
    // The password as a MySQL 9 takes it is passed on.
    let log = query_text(&mut c.connection, "SHOW BINLOG EVENTS IN 'binlog.000001'");
    assert!(
        log.iter().any(|event| event.contains("CREATE USER `plain`")
            && event.contains("caching_sha2_password")),
        "{log:?}"
    );
    // Events have the number of the server that made them.
    let events: Vec<mysql::Row> = (c.connection)
        .query("SHOW BINLOG EVENTS IN 'binlog.000001'")
        .expect("the events of the file");
    let servers: Vec<u32> = events
        .iter()
        .filter_map(|event| event.get("Server_id"))
        .collect();
    assert!(
        [1, 2].iter().all(|server| servers.contains(server)),
        "{servers:?}"
    );
    // The first server goes, and comes back behind the second.
    c.follow(a.port);
    run(
        &mut a.connection,
        &["INSERT INTO shop.t VALUES (4, 'four')"],
    );
    c.catch_up_with(&mut a);
    assert!(c.executed().contains(&uuid_a));
    let count = "SELECT COUNT(*), SUM(id) FROM shop.t";
    assert_eq!(query_text(&mut c.connection, count), ["4\t10"]);
    a.follow(b.port);
    a.catch_up_with(&mut b);
    assert_eq!(
        query_text(&mut a.connection, "SELECT COUNT(*) FROM shop.own"),
        ["2"]
    );
}

/// No file of the server has them, so a follower that lacks them cannot get them from it.
#[test]
fn transactions_that_were_applied_without_a_log_are_purged() {
    let [mut a, mut b, mut c] = [0, 1, 2].map(Server::new);
    let uuid = a.uuid();
    b.follow(a.port);
    let define = [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
    ];
    run(&mut a.connection, &define);
    b.catch_up_with(&mut a);
    let with_log = options(1);
    b.crash_and_start(&with_log[1..]);
    run(&mut a.connection, &["INSERT INTO shop.t VALUES (1)"]);
    b.catch_up_with(&mut a);
    b.crash_and_start(&with_log);
    run(&mut a.connection, &["INSERT INTO shop.t VALUES (2)"]);
    b.catch_up_with(&mut a);
    let purged = query_text(&mut b.connection, "SELECT @@gtid_purged");
    assert_eq!(purged, [format!("{uuid}:3")]);
    c.follow(b.port);
    c.await_error("Last_IO_Error", "purged required binary logs");
}

#[test]
fn an_empty_transaction_takes_the_place_of_one_that_cannot_be_applied() {
    let [mut a, mut b, mut c] = [0, 1, 2].map(Server::new);
    let uuid = a.uuid();
    run(
        &mut a.connection,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        ],
    );
    b.follow(a.port);
    b.catch_up_with(&mut a);
    run(
        &mut b.connection,
        &[
            "SET sql_log_bin = 0",
            "INSERT INTO shop.t VALUES (1)",
            "SET sql_log_bin = 1",
        ],
    );
    run(
        &mut a.connection,
        &[
            "INSERT INTO shop.t VALUES (1)",
            "INSERT INTO shop.t VALUES (2)",
        ],
    );
    b.await_error("Last_SQL_Error", "Duplicate entry");
    let skip = format!("SET gtid_next = '{uuid}:3'");
    run(&mut b.connection, &[&skip, "BEGIN", "COMMIT"]);
    assert_eq!(
        query_text(&mut b.connection, "SELECT @@gtid_next, @@gtid_owned"),
        [format!("{uuid}:3\t")]
    );
    run(
        &mut b.connection,
        &["SET gtid_next = AUTOMATIC", "START REPLICA SQL_THREAD"],
    );
    b.catch_up_with(&mut a);
    // It is in the binary log, for followers, and there after a crash.
    b.crash();
    assert_eq!(b.executed(), a.executed());
    assert_eq!(query_text(&mut b.connection, "SELECT @@gtid_purged"), [""]);
    c.follow(b.port);
    c.catch_up_with(&mut b);
    assert_eq!(
        query_text(&mut c.connection, "SELECT id FROM shop.t"),
        ["2"]
    );
    // The session has none: it is in no file.
    let hidden = "3e11fa47-71ca-11e1-9e33-c80aa9429562:8";
    let skip = format!("SET gtid_next = '{hidden}'");
    run(
        &mut c.connection,
        &["STOP REPLICA", "SET sql_log_bin = 0", &skip, "COMMIT"],
    );
    for _ in 0..2 {
        assert!(c.executed().contains(hidden));
        assert_eq!(
            query_text(&mut c.connection, "SELECT @@gtid_purged"),
            [hidden]
        );
        c.crash();
    }
}

/// As `mysqldump` does it: rows, and the GTIDs of the transactions that they come from.
#[test]
fn a_server_that_was_filled_from_a_dump_follows_from_there_on() {
    let [mut a, mut b, mut c] = [0, 1, 2].map(Server::new);
    let rows = [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        "INSERT INTO shop.t VALUES (1)",
    ];
    run(&mut a.connection, &rows);
    let dumped = a.executed();
    run(&mut b.connection, &["SET sql_log_bin = 0"]);
    run(&mut b.connection, &rows);
    let purge = format!("SET @@GLOBAL.gtid_purged = /*!80000 '+'*/ '{dumped}'");
    run(&mut b.connection, &[&purge]);
    for _ in 0..2 {
        let gtids = "SELECT @@gtid_executed, @@gtid_purged";
        assert_eq!(
            query_text(&mut b.connection, gtids),
            [format!("{dumped}\t{dumped}")]
        );
        b.crash();
    }
    b.follow(a.port);
    run(&mut a.connection, &["INSERT INTO shop.t VALUES (2)"]);
    // Its own writes, read at the replica.
    let wait = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{}', 60)", a.executed());
    assert_eq!(query_text(&mut b.connection, &wait), ["0"]);
    assert_eq!(
        query_text(&mut b.connection, "SELECT id FROM shop.t ORDER BY id"),
        ["1", "2"]
    );
    c.follow(b.port);
    c.await_error("Last_IO_Error", "purged required binary logs");
    run(
        &mut b.connection,
        &["STOP REPLICA", "RESET BINARY LOGS AND GTIDS"],
    );
    assert_eq!(b.executed(), "");
}

#[test]
fn gtids_that_cannot_be_set_are_refused() {
    let mut server = Server::new(0);
    let (own, root) = (server.uuid(), &mut server.connection);
    // Sets list servers in the order of their uuids.
    let other = "00000000-71ca-11e1-9e33-c80aa9429562";
    run(
        root,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        ],
    );
    let set_next = |gtid: &str| format!("SET gtid_next = '{gtid}'");
    let set_purged = |set: &str| format!("SET GLOBAL gtid_purged = '{set}'");
    for (statement, wanted) in [
        (set_next(other), 1774),
        (set_next("ANONYMOUS"), 1782),
        (set_next(&format!("{own}:7")), 1235),
        (set_next(&format!("{other}:tag:7")), 1235),
        ("SET GLOBAL gtid_next = AUTOMATIC".to_string(), 1228),
        ("SELECT @@global.gtid_next".to_string(), 1238),
        ("SET GLOBAL gtid_executed = ''".to_string(), 1238),
        ("SET gtid_purged = ''".to_string(), 1229),
        ("SET PERSIST gtid_purged = '+'".to_string(), 1238),
        ("SET PERSIST_ONLY gtid_purged = '+'".to_string(), 1238),
        (set_purged("x"), 1231),
        (set_purged(&format!("{own}:1")), 3546),
        (set_purged(&format!("+{own}:9")), 1235),
    ] {
        assert_eq!(code(root, &statement), wanted, "{statement}");
    }
    // A GTID is owned until COMMIT or ROLLBACK, and nothing is changed under it.
    run(root, &[&set_next(&format!("{other}:7")), "BEGIN"]);
    assert_eq!(
        query_text(root, "SELECT @@gtid_owned"),
        [format!("{other}:7")]
    );
    for (statement, wanted) in [
        ("SET gtid_next = AUTOMATIC", 1766),
        ("INSERT INTO shop.t VALUES (1)", 1235),
        ("DROP TABLE shop.t", 1235),
        ("SET GLOBAL gtid_purged = '+'", 1766),
    ] {
        assert_eq!(code(root, statement), wanted, "{statement}");
    }
    run(root, &["ROLLBACK", "BEGIN", "COMMIT"]);
    for change in [
        "INSERT INTO shop.t VALUES (1)",
        "CREATE TABLE shop.u (id INT)",
    ] {
        assert_eq!(code(root, change), 1837, "{change}");
    }
    run(root, &[&set_next(&format!("{other}:8"))]);
    assert_eq!(code(root, "SET gtid_next = AUTOMATIC"), 1790);
    run(root, &["COMMIT", &set_next(&format!("{other}:8")), "BEGIN"]);
    assert_eq!(code(root, "INSERT INTO shop.t VALUES (1)"), 1235);
    run(
        root,
        &[
            "COMMIT",
            "SET gtid_next = DEFAULT",
            "INSERT INTO shop.t VALUES (1)",
        ],
    );
    assert_eq!(
        query_text(root, "SELECT REPLACE(@@gtid_executed, '\n', '')"),
        [format!("{other}:8,{own}:1-3")]
    );
    run(root, &[&set_purged(&format!("{other}:1-5"))]);
    for (set, wanted) in [("1-4", 3546), ("1-8", 3546)] {
        assert_eq!(
            code(root, &set_purged(&format!("{other}:{set}"))),
            wanted,
            "{set}"
        );
    }
    run(
        root,
        &[
            &set_purged(&format!("{other}:1-6")),
            &set_purged(&format!("+{other}:9")),
        ],
    );
    let gtids = "SELECT REPLACE(@@gtid_executed, '\n', ''), @@gtid_purged";
    let shown = format!("{other}:1-6:8-9,{own}:1-3\t{other}:1-6:9");
    assert_eq!(query_text(root, gtids), [shown]);
    for (call, wanted) in [
        (format!("'{other}:1-6', 1"), "0"),
        (format!("'{other}:7', 0.01"), "1"),
        ("''".to_string(), "0"),
    ] {
        let query = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET({call})");
        assert_eq!(query_text(root, &query), [wanted], "{call}");
    }
    run(root, &[&set_next(&format!("{other}:7"))]);
    for (call, wanted) in [
        (format!("'{other}:7', 1"), 3173),
        ("'', -1".to_string(), 1210),
        ("'', NULL".to_string(), 1210),
        ("'x'".to_string(), 1772),
        ("NULL".to_string(), 1772),
        (String::new(), 1582),
    ] {
        let query = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET({call})");
        assert_eq!(code(root, &query), wanted, "{call}");
    }
    run(root, &["ROLLBACK", "SET gtid_next = AUTOMATIC"]);
    assert_eq!(code(root, "SET session_track_gtids = OWN_GTID"), 1235);
    // A wait ends with the time of its statement.
    let waits =
        format!("SELECT /*+ MAX_EXECUTION_TIME(50) */ WAIT_FOR_EXECUTED_GTID_SET('{other}:7')");
    assert_eq!(code(root, &waits), 3024);
    run(root, &["CREATE USER u"]);
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(server.port)
        .user(Some("u"));
    let mut user = Conn::new(options).expect("a user without a password");
    assert_eq!(code(&mut user, "SET gtid_next = AUTOMATIC"), 1227);
}
