//! Replicas that write what they apply to their own binary log: a chain of servers, and one that takes another's place.

use std::process::Child;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::command_line::{connect, serve_with};
use crate::harness::{query_text, run, wait_until};

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
    let connection = &mut c.connection;
    wait_until("the error", || {
        let status: Option<mysql::Row> = connection
            .query_first("SHOW REPLICA STATUS")
            .expect("the status of the replica");
        let error: Option<String> = status
            .expect("it is a replica")
            .get("Last_IO_Error")
            .flatten();
        error.is_some_and(|error| error.contains("purged required binary logs"))
    });
}
