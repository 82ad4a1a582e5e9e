//! A server that is the replica of another one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;
use std::thread;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::command_line::{connect, serve_with, terminate};
use crate::harness::{code, query_text, run, wait_until};

const SOURCE: &[&str] = &["--log-bin"];
const REPLICA: &[&str] = &["--set", "server_id=2"];

/// A source and a replica, each with a connection.
struct Pair {
    servers: [Child; 2],
    directories: [tempfile::TempDir; 2],
    source_port: u16,
    source: Conn,
    replica: Conn,
}

impl Pair {
    fn new() -> Pair {
        let directories = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
        let (source, source_port) = serve_with(directories[0].path(), SOURCE);
        let (replica, replica_port) = serve_with(directories[1].path(), REPLICA);
        Pair {
            servers: [source, replica],
            directories,
            source_port,
            source: connect(source_port),
            replica: connect(replica_port),
        }
    }

    /// Has the replica follow, with more options of its own.
    fn follow(&mut self, options: &str) {
        let port = self.source_port;
        let change = format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'root', \
             SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 0{options}"
        );
        run(&mut self.replica, &[&change, "START REPLICA"]);
    }

    /// Kills the replica and starts it again, on another port.
    fn crash_replica(&mut self) {
        self.servers[1].kill().expect("the process is ours");
        self.servers[1].wait().expect("the process is ours");
        let (server, port) = serve_with(self.directories[1].path(), REPLICA);
        self.servers[1] = server;
        self.replica = connect(port);
    }

    /// Waits until the replica has all that the source has by now.
    fn catch_up(&mut self) {
        let wanted = query_text(&mut self.source, "SELECT @@gtid_executed")[0].clone();
        let done = format!("SELECT GTID_SUBSET('{wanted}', @@gtid_executed)");
        let replica = &mut self.replica;
        wait_until("the replica", || {
            let error = field(replica, "Last_SQL_Error");
            assert_eq!(error, "", "the replica has stopped");
            query_text(replica, &done) == ["1"]
        });
    }

    fn check_same(&mut self, queries: &[&str]) {
        for query in queries {
            let (ours, theirs) = (
                query_text(&mut self.source, query),
                query_text(&mut self.replica, query),
            );
            assert_eq!(theirs, ours, "{query}");
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// A field of SHOW REPLICA STATUS.
fn field(replica: &mut Conn, name: &str) -> String {
    let row: Option<mysql::Row> = replica
        .query_first("SHOW REPLICA STATUS")
        .expect("the status of the replica");
    let row = row.expect("the server is a replica");
    let value: Option<String> = row.get(name).expect("a field of that name");
    value.unwrap_or_else(|| "NULL".to_string())
}

const TYPES: &str = "CREATE TABLE shop.types (id INT PRIMARY KEY, ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, \
    mi MEDIUMINT, mu MEDIUMINT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED, de DECIMAL(20, 7), df DECIMAL(38, 0), \
    fl FLOAT, dd DOUBLE, b1 BIT(1), b17 BIT(17), b64 BIT(64), da DATE, t0 TIME, t3 TIME(3), t6 TIME(6), \
    d0 DATETIME, d2 DATETIME(2), d6 DATETIME(6), s0 TIMESTAMP NULL, s4 TIMESTAMP(4) NULL, y YEAR, ch CHAR(10), \
    vc VARCHAR(100), vl VARCHAR(1000), bn BINARY(5), vb VARBINARY(20), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, \
    bl BLOB, lb LONGBLOB, en ENUM('a', 'b', 'c'), se SET('x', 'y', 'z'), js JSON, \
    ge INT AS (ti + 1) VIRTUAL, gs INT AS (si * 2) STORED, KEY ((ti + si)))";

const TYPES_ROWS: [&str; 4] = [
    "INSERT INTO shop.types (id) VALUES (1)",
    "INSERT INTO shop.types VALUES (2, -128, 255, -32768, -8388608, 16777215, -9223372036854775808, \
     18446744073709551615, -1234567890123.1234567, -99999999999999999999999999999999999999, -1.5, 1e300, b'1', \
     b'10101010101010101', b'1', '9999-12-31', '-838:59:59', '-01:02:03.004', '12:34:56.789012', \
     '0001-01-01 00:00:00', '2024-02-29 23:59:59.99', '2024-02-29 23:59:59.123456', '1970-01-01 00:00:01', \
     '2024-07-01 12:00:00.1234', 2155, 'end', 'ümläut', REPEAT('y', 700), 'ab', X'00FF', 'tiny', 'text', \
     REPEAT('long', 30000), X'0001', REPEAT(X'AB', 70000), 'c', 'x,z', \
     '{\"a\": [1, -70000, 1.5, null, true], \"b\": {\"c\": \"d\"}, \"n\": 18446744073709551615}', DEFAULT, DEFAULT)",
    "INSERT INTO shop.types (id, ti, js, en, se, tx) VALUES (3, 1, CAST(CAST('2024-02-29' AS DATE) AS JSON), 1, 0, '')",
    "INSERT INTO shop.types (id, ti, si, vc) SELECT id + 10, id, id * 2, CONCAT('v', id) FROM shop.types",
];

#[test]
fn rows_of_all_types_and_definitions_arrive() {
    let mut pair = Pair::new();
    run(
        &mut pair.source,
        &["CREATE DATABASE shop", TYPES, TYPES_ROWS[0], TYPES_ROWS[1]],
    );
    pair.follow(", SOURCE_AUTO_POSITION = 1");
    run(
        &mut pair.source,
        &[
            TYPES_ROWS[2],
            TYPES_ROWS[3],
            "UPDATE shop.types SET vc = 'other', de = 7, js = JSON_OBJECT('k', id) WHERE id > 1",
            "UPDATE shop.types SET id = 100 WHERE id = 3",
            "DELETE FROM shop.types WHERE id = 11",
            // Without a key, and with one that is not primary.
            "CREATE TABLE shop.bag (a INT, b VARCHAR(10))",
            "INSERT INTO shop.bag VALUES (1, 'x'), (1, 'x'), (2, NULL), (3, 'z')",
            "BEGIN",
            "UPDATE shop.bag SET a = a + 1 WHERE b = 'x' LIMIT 1",
            "UPDATE shop.bag SET a = a + 1 WHERE b = 'x' AND a = 2",
            "DELETE FROM shop.bag WHERE b IS NULL",
            "COMMIT",
            "CREATE TABLE shop.u (a INT NOT NULL, b INT, UNIQUE (a))",
            "INSERT INTO shop.u VALUES (1, 1), (2, 2)",
            "UPDATE shop.u SET b = 3 WHERE a = 2",
            "CREATE TABLE shop.parent (id INT PRIMARY KEY)",
            "CREATE TABLE shop.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES shop.parent (id) ON DELETE CASCADE)",
            "INSERT INTO shop.parent VALUES (1), (2)",
            "INSERT INTO shop.child VALUES (1, 1), (2, 1), (3, 2)",
            "DELETE FROM shop.parent WHERE id = 1",
            "CREATE VIEW shop.v AS SELECT id, ti FROM shop.types",
            "ALTER TABLE shop.types ADD COLUMN more INT DEFAULT 7, ADD KEY (more)",
            "UPDATE shop.types SET more = 8 WHERE id = 2",
            "CREATE TABLE shop.numbered (id INT PRIMARY KEY AUTO_INCREMENT, v INT)",
            "INSERT INTO shop.numbered (v) VALUES (1), (2)",
            "CREATE TABLE shop.gone (a INT)",
            "RENAME TABLE shop.gone TO shop.went",
            "DROP TABLE shop.went",
        ],
    );
    pair.catch_up();
    pair.check_same(&[
        "SHOW CREATE TABLE shop.types",
        "SELECT * FROM shop.types ORDER BY id",
        "SELECT id FROM shop.types FORCE INDEX (more) ORDER BY more, id",
        "SELECT id FROM shop.types WHERE ti + si = 6",
        "SELECT * FROM shop.bag ORDER BY a, b",
        "SELECT * FROM shop.u ORDER BY a",
        "SELECT * FROM shop.parent",
        "SELECT * FROM shop.child",
        "SELECT * FROM shop.v ORDER BY id",
        "SHOW TABLES FROM shop",
        "CHECK TABLE shop.types, shop.bag, shop.u, shop.child",
    ]);
    for (name, value) in [
        ("Replica_IO_Running", "Yes"),
        ("Replica_SQL_Running", "Yes"),
        ("Source_Server_Id", "1"),
        ("Auto_Position", "1"),
        ("Seconds_Behind_Source", "0"),
        ("Last_IO_Errno", "0"),
    ] {
        wait_until(name, || field(&mut pair.replica, name) == value);
    }
    let rows = query_text(
        &mut pair.replica,
        "SELECT HOST, AUTO_POSITION FROM performance_schema.replication_connection_configuration",
    );
    assert_eq!(rows, ["127.0.0.1\t1"]);
    let states = query_text(
        &mut pair.replica,
        "SELECT c.SERVICE_STATE, a.SERVICE_STATE, w.LAST_ERROR_NUMBER FROM \
         performance_schema.replication_connection_status c, performance_schema.replication_applier_status a, \
         performance_schema.replication_applier_status_by_worker w",
    );
    assert_eq!(states, ["ON\tON\t0"]);
    // A value that is inserted here does not collide with one of the source.
    run(
        &mut pair.replica,
        &["INSERT INTO shop.numbered (v) VALUES (3)"],
    );
    let rows = query_text(&mut pair.replica, "SELECT MAX(id) FROM shop.numbered");
    assert_eq!(rows, ["3"]);
}

/// Changes of three clients, with definitions in between, until there are so many.
fn write(port: u16, client: u64, rounds: u64) {
    let mut connection = connect(port);
    for round in 0..rounds {
        let row = client * 1_000_000 + round;
        let table = format!("shop.c{client}_{}", round % 7);
        let statements = [
            format!("CREATE TABLE IF NOT EXISTS {table} (id BIGINT PRIMARY KEY)"),
            "BEGIN".to_string(),
            format!(
                "INSERT INTO shop.t VALUES ({row}, REPEAT('x', {})), ({row} + 500000, '')",
                row % 300
            ),
            format!("UPDATE shop.sums SET n = n + 1, s = s + {row} WHERE client = {client}"),
            format!("INSERT INTO {table} VALUES ({row})"),
            format!("DELETE FROM shop.t WHERE id = {row} + 499990"),
            "COMMIT".to_string(),
            match round % 7 {
                6 => format!("DROP TABLE {table}"),
                _ => format!("ALTER TABLE {table} COMMENT = 'round {round}'"),
            },
        ];
        for statement in &statements {
            connection.query_drop(statement).expect(statement);
        }
    }
}

fn check_crashes(options: &str) {
    const CRASHES: u64 = 5;
    const ROUNDS: u64 = 60;
    let mut pair = Pair::new();
    run(
        &mut pair.source,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(300), KEY (v))",
            "CREATE TABLE shop.sums (client INT PRIMARY KEY, n INT, s BIGINT)",
            "INSERT INTO shop.sums VALUES (1, 0, 0), (2, 0, 0), (3, 0, 0)",
            "SET PERSIST max_binlog_size = 65536",
        ],
    );
    pair.follow(options);
    let port = pair.source_port;
    thread::scope(|scope| {
        for client in 1..4 {
            scope.spawn(move || write(port, client, ROUNDS));
        }
        for crash in 0..CRASHES {
            // At another place each time.
            let wanted = 20 * crash;
            wait_until("some rounds", || {
                let error = field(&mut pair.replica, "Last_SQL_Error");
                assert_eq!(error, "", "crash {crash}");
                let sum = pair
                    .replica
                    .query_first::<u64, _>("SELECT COALESCE(SUM(n), 0) FROM shop.sums");
                sum.ok().flatten().unwrap_or(0) >= wanted
            });
            pair.crash_replica();
        }
    });
    pair.catch_up();
    pair.check_same(&[
        "SELECT * FROM shop.t ORDER BY id",
        "SELECT * FROM shop.sums ORDER BY client",
        "SHOW TABLES FROM shop",
        "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = 'shop' ORDER BY 1",
        "CHECK TABLE shop.t",
    ]);
    let sums = query_text(&mut pair.replica, "SELECT n FROM shop.sums");
    assert_eq!(
        sums,
        [ROUNDS.to_string(), ROUNDS.to_string(), ROUNDS.to_string()]
    );
}

#[test]
fn a_replica_by_gtids_that_is_killed_loses_nothing_and_doubles_nothing() {
    check_crashes(", SOURCE_AUTO_POSITION = 1");
}

#[test]
fn a_replica_by_file_and_position_that_is_killed_loses_nothing_and_doubles_nothing() {
    check_crashes(", SOURCE_LOG_FILE = 'binlog.000001', SOURCE_LOG_POS = 4");
}

#[test]
fn what_cannot_be_applied_stops_the_applier_and_can_be_left_out() {
    let mut pair = Pair::new();
    run(
        &mut pair.source,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO shop.t VALUES (1, 1), (2, 2), (3, 3)",
        ],
    );
    pair.follow("");
    pair.catch_up();
    run(
        &mut pair.replica,
        &[
            "INSERT INTO shop.t VALUES (4, 0)",
            "DELETE FROM shop.t WHERE id = 1",
        ],
    );
    for (change, code) in [
        ("INSERT INTO shop.t VALUES (5, 5), (4, 4)", "1062"),
        ("UPDATE shop.t SET v = 9 WHERE id = 1", "1032"),
        ("DELETE FROM shop.t WHERE id = 1", "1032"),
    ] {
        run(&mut pair.source, &[change]);
        let replica = &mut pair.replica;
        wait_until(change, || field(replica, "Replica_SQL_Running") == "No");
        assert_eq!(field(replica, "Last_SQL_Errno"), code);
        assert!(field(replica, "Last_SQL_Error").contains("table shop.t; "));
        assert_eq!(field(replica, "Replica_IO_Running"), "Yes");
        // Nothing of the transaction is there, and it fails again.
        let rows = query_text(replica, "SELECT id FROM shop.t WHERE id = 5");
        assert!(rows.is_empty());
        run(
            replica,
            &[
                "SET GLOBAL sql_replica_skip_counter = 1",
                "START REPLICA SQL_THREAD",
            ],
        );
        wait_until("the counter", || field(replica, "Skip_Counter") == "0");
    }
    run(&mut pair.source, &["INSERT INTO shop.t VALUES (6, 6)"]);
    pair.catch_up();
    let rows = query_text(&mut pair.replica, "SELECT id FROM shop.t ORDER BY id");
    assert_eq!(rows, ["2", "3", "4", "6"]);
}

#[test]
fn users_of_a_replica_that_is_read_only_change_nothing_and_its_source_does() {
    let mut pair = Pair::new();
    run(&mut pair.replica, &["SET GLOBAL super_read_only = 1"]);
    run(
        &mut pair.source,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        ],
    );
    pair.follow(", SOURCE_AUTO_POSITION = 1");
    run(&mut pair.source, &["INSERT INTO shop.t VALUES (1)"]);
    pair.catch_up();
    assert_eq!(
        code(&mut pair.replica, "INSERT INTO shop.t VALUES (2)"),
        1290
    );
    // The source goes and comes back.
    let directory = pair.directories[0].path().to_path_buf();
    terminate(&pair.servers[0]);
    pair.servers[0].wait().expect("the process is ours");
    let replica = &mut pair.replica;
    wait_until("the end of the connection", || {
        field(replica, "Replica_IO_Running") == "Connecting"
    });
    assert_eq!(field(replica, "Replica_SQL_Running"), "Yes");
    let (server, port) = serve_with(&directory, SOURCE);
    pair.servers[0] = server;
    pair.source_port = port;
    pair.source = connect(port);
    run(&mut pair.replica, &["STOP REPLICA"]);
    pair.follow("");
    run(&mut pair.source, &["INSERT INTO shop.t VALUES (3)"]);
    pair.catch_up();
    pair.check_same(&["SELECT * FROM shop.t ORDER BY id"]);
}

/// Whether a file of the directory or below has these bytes.
fn has_bytes(directory: &Path, wanted: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(has_bytes(&path, wanted)),
            false => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                if bytes.windows(wanted.len()).any(|window| window == wanted) {
                    let name = path.file_name().unwrap_or_default();
                    found.push(name.to_string_lossy().into_owned());
                }
            }
        }
    }
    found
}

#[test]
fn statements_about_the_replica_say_what_is_wrong_with_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut server, port) = serve_with(directory.path(), REPLICA);
    let mut root = connect(port);
    assert_eq!(code(&mut root, "START REPLICA"), 1200);
    assert!(query_text(&mut root, "SHOW REPLICA STATUS").is_empty());
    for (statement, wanted) in [
        (
            "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1, SOURCE_LOG_POS = 4",
            1776,
        ),
        ("CHANGE REPLICATION SOURCE TO SOURCE_SSL_CRL = 'a'", 1235),
        ("CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 5", 1235),
        (
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'a' FOR CHANNEL 'b'",
            1235,
        ),
        ("CHANGE REPLICATION SOURCE TO SOURCE_NOTHING = 1", 1064),
        ("CHANGE REPLICATION SOURCE TO SOURCE_HOST = ''", 1210),
        ("START REPLICA UNTIL SQL_AFTER_GTIDS = ''", 1200),
        ("START REPLICA UNTIL SQL_AFTER_GTIDS = 'x'", 1772),
        ("START REPLICA UNTIL SOURCE_LOG_FILE = 'a'", 1277),
        (
            "START REPLICA IO_THREAD UNTIL SOURCE_LOG_FILE = 'a', SOURCE_LOG_POS = 4",
            1277,
        ),
        (
            "START REPLICA UNTIL RELAY_LOG_FILE = 'a', RELAY_LOG_POS = 4",
            1235,
        ),
        ("START REPLICA IO_THREAD,", 1064),
    ] {
        assert_eq!(code(&mut root, statement), wanted, "{statement}");
    }
    run(
        &mut root,
        &[
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'r', \
             MASTER_PASSWORD = 'sec-ret', MASTER_CONNECT_RETRY = 1, MASTER_HEARTBEAT_PERIOD = 2.5",
            "STOP SLAVE",
            "CREATE USER ann",
        ],
    );
    let file = directory.path().join("replica.password");
    let mode = std::fs::metadata(&file)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut ann = Conn::new(
        mysql::OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .user(Some("ann"))
            .prefer_socket(false),
    )
    .expect("ann may connect");
    for statement in [
        "START REPLICA",
        "STOP REPLICA",
        "RESET REPLICA",
        "SHOW REPLICA STATUS",
    ] {
        assert_eq!(code(&mut ann, statement), 1227, "{statement}");
    }
    run(&mut root, &["GRANT REPLICATION_SLAVE_ADMIN ON *.* TO ann"]);
    run(&mut ann, &["START REPLICA IO_THREAD"]);
    wait_until("an attempt", || field(&mut root, "Last_IO_Errno") == "2003");
    assert_eq!(field(&mut root, "Replica_SQL_Running"), "No");
    assert_eq!(
        code(&mut root, "CHANGE REPLICATION SOURCE TO SOURCE_PORT = 2"),
        3081
    );
    assert_eq!(code(&mut root, "RESET REPLICA"), 3081);
    run(&mut root, &["STOP REPLICA"]);
    let shown = query_text(&mut root, "SHOW SLAVE STATUS").join(" ");
    assert!(!shown.contains("sec-ret"));
    terminate(&server);
    server.wait().expect("the process is ours");
    assert_eq!(
        has_bytes(directory.path(), b"sec-ret"),
        ["replica.password"]
    );
    let (mut server, port) = serve_with(directory.path(), REPLICA);
    let mut root = connect(port);
    assert_eq!(field(&mut root, "Source_Port"), "1");
    assert_eq!(
        field(&mut root, "Replica_IO_Running"),
        "No",
        "it was stopped"
    );
    run(&mut root, &["RESET REPLICA ALL"]);
    assert!(query_text(&mut root, "SHOW REPLICA STATUS").is_empty());
    assert!(!file.exists());
    terminate(&server);
    server.wait().expect("the process is ours");
}

#[test]
fn a_filter_leaves_out_databases_and_tables_and_holds_after_a_start() {
    let mut pair = Pair::new();
    for (statement, wanted) in [
        ("CHANGE REPLICATION FILTER REPLICATE_DO_TABLE = (b)", 1064),
        (
            "CHANGE REPLICATION FILTER REPLICATE_WILD_DO_TABLE = ('b')",
            3067,
        ),
        (
            "CHANGE REPLICATION FILTER REPLICATE_REWRITE_DB = ((a, b))",
            1235,
        ),
    ] {
        assert_eq!(code(&mut pair.replica, statement), wanted, "{statement}");
    }
    run(
        &mut pair.replica,
        &[
            "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (other), REPLICATE_IGNORE_TABLE = (shop.a, `shop`.`b`), \
           REPLICATE_WILD_IGNORE_TABLE = ('shop.tmp\\_%')",
        ],
    );
    pair.follow(", SOURCE_AUTO_POSITION = 1");
    run(
        &mut pair.source,
        &[
            "CREATE DATABASE shop",
            "CREATE DATABASE other",
            "USE shop",
            "CREATE TABLE a (id INT PRIMARY KEY)",
            "CREATE TABLE tmp_1 AS SELECT 1 AS one",
            "CREATE TABLE tmpx (id INT PRIMARY KEY)",
            "CREATE TABLE kept (id INT PRIMARY KEY)",
            "BEGIN",
            "INSERT INTO a VALUES (1)",
            "INSERT INTO kept VALUES (1)",
            "COMMIT",
            "INSERT INTO a VALUES (2)",
            "ALTER TABLE a ADD b INT",
            "USE other",
            "CREATE TABLE u (a INT)",
            "INSERT INTO u VALUES (1)",
            "INSERT INTO shop.kept VALUES (2)",
        ],
    );
    assert_eq!(
        code(
            &mut pair.replica,
            "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = ()"
        ),
        3081
    );
    pair.catch_up();
    pair.crash_replica();
    run(
        &mut pair.source,
        &["DROP TABLE shop.a", "INSERT INTO shop.kept VALUES (3)"],
    );
    pair.catch_up();
    pair.check_same(&["SELECT * FROM shop.kept ORDER BY id"]);
    assert_eq!(
        query_text(&mut pair.replica, "SHOW TABLES FROM shop"),
        ["kept", "tmpx"]
    );
    assert_eq!(code(&mut pair.replica, "USE other"), 1049);
    for (name, value) in [
        ("Replicate_Ignore_DB", "other"),
        ("Replicate_Ignore_Table", "shop.a,shop.b"),
        ("Replicate_Wild_Ignore_Table", "shop.tmp\\_%"),
        ("Replicate_Do_DB", ""),
    ] {
        assert_eq!(field(&mut pair.replica, name), value);
    }
    run(
        &mut pair.replica,
        &[
            "STOP REPLICA",
            "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = ()",
        ],
    );
    assert_eq!(field(&mut pair.replica, "Replicate_Ignore_DB"), "");
}

#[test]
fn an_applier_stops_where_it_is_told_to_and_its_position_stays() {
    let mut pair = Pair::new();
    run(
        &mut pair.source,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.a (id INT PRIMARY KEY)",
        ],
    );
    pair.follow(", SOURCE_AUTO_POSITION = 1");
    pair.catch_up();
    let uuid = query_text(&mut pair.source, "SELECT @@server_uuid")[0].clone();
    // Transactions 3 to 8, and the position behind the sixth.
    let mut position = String::new();
    run(&mut pair.replica, &["STOP REPLICA"]);
    for id in 3..9 {
        run(
            &mut pair.source,
            &[&format!("INSERT INTO shop.a VALUES ({id})")],
        );
        if id == 6 {
            let row: Option<mysql::Row> =
                pair.source.query_first("SHOW BINARY LOG STATUS").unwrap();
            let row = row.expect("there is a log");
            let (file, place): (String, u64) = (row.get(0).unwrap(), row.get(1).unwrap());
            position = format!("SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {place}");
        }
    }
    for (until, condition, last) in [
        (
            format!("SQL_AFTER_GTIDS = '{uuid}:3-4'"),
            "SQL_AFTER_GTIDS",
            "4",
        ),
        (
            format!("SQL_AFTER_GTIDS = '{uuid}:3-4'"),
            "SQL_AFTER_GTIDS",
            "4",
        ),
        (
            format!("SQL_BEFORE_GTIDS = '{uuid}:6'"),
            "SQL_BEFORE_GTIDS",
            "5",
        ),
        (position, "Source", "6"),
    ] {
        run(
            &mut pair.replica,
            &[&format!("START REPLICA UNTIL {until}")],
        );
        wait_until(&until, || {
            field(&mut pair.replica, "Replica_SQL_Running") == "No"
        });
        assert_eq!(field(&mut pair.replica, "Last_SQL_Error"), "");
        assert_eq!(field(&mut pair.replica, "Until_Condition"), condition);
        assert_eq!(
            query_text(&mut pair.replica, "SELECT MAX(id) FROM shop.a"),
            [last],
            "{until}"
        );
        wait_until("the receiver", || {
            field(&mut pair.replica, "Replica_IO_Running") == "Yes"
        });
        run(&mut pair.replica, &["STOP REPLICA"]);
    }
    run(&mut pair.replica, &["START REPLICA"]);
    pair.catch_up();
    assert_eq!(field(&mut pair.replica, "Until_Condition"), "None");
    // The source begins with its file, and has nothing new.
    let applied = field(&mut pair.replica, "Exec_Source_Log_Pos");
    pair.crash_replica();
    wait_until("the source", || {
        field(&mut pair.replica, "Replica_IO_Running") == "Yes"
    });
    wait_until("the applier", || {
        field(&mut pair.replica, "Replica_SQL_Running_State").starts_with("Replica has read")
    });
    assert_eq!(field(&mut pair.replica, "Exec_Source_Log_Pos"), applied);
}

#[test]
fn a_source_is_followed_over_tls_if_its_certificate_is_trusted() {
    let mut pair = Pair::new();
    let file = |place: usize| {
        pair.directories[place]
            .path()
            .join("server-cert.pem")
            .display()
            .to_string()
    };
    let (own, other) = (file(0), file(1));
    run(
        &mut pair.source,
        &[
            "CREATE USER repl IDENTIFIED WITH caching_sha2_password BY 'sec-ret' REQUIRE SSL",
            "GRANT REPLICATION SLAVE ON *.* TO repl",
            "CREATE DATABASE shop",
        ],
    );
    let repl = "SOURCE_USER = 'repl', SOURCE_PASSWORD = 'sec-ret'";
    pair.follow(&format!(", {repl}, SOURCE_AUTO_POSITION = 1"));
    let mut fails = |options: &str, wanted: &str, text: &str| {
        if !options.is_empty() {
            let change = format!("CHANGE REPLICATION SOURCE TO {options}");
            run(
                &mut pair.replica,
                &["STOP REPLICA", &change, "START REPLICA"],
            );
        }
        wait_until(options, || {
            field(&mut pair.replica, "Last_IO_Errno") == wanted
        });
        let error = field(&mut pair.replica, "Last_IO_Error");
        assert!(error.contains(text), "{error}");
    };
    // A password is not sent as it is, and the account wants TLS.
    fails("", "3159", "secure connection");
    let untrusted = format!("SOURCE_SSL = 1, SOURCE_SSL_CA = '{other}'");
    fails(&untrusted, "2026", "certificate");
    fails("SOURCE_SSL_CA = '/absent.pem'", "2026", "/absent.pem");
    let named = "SOURCE_SSL_CA = '', SOURCE_SSL_VERIFY_SERVER_CERT = 1";
    fails(named, "2026", "needs SOURCE_SSL_CA");
    // The certificate is for 127.0.0.1, too.
    let trusted = format!("CHANGE REPLICATION SOURCE TO SOURCE_SSL_CA = '{own}'");
    run(
        &mut pair.replica,
        &["STOP REPLICA", &trusted, "START REPLICA"],
    );
    run(
        &mut pair.source,
        &["CREATE TABLE shop.a (id INT PRIMARY KEY)"],
    );
    pair.catch_up();
    // The threads that run begin with the server.
    pair.crash_replica();
    run(&mut pair.source, &["INSERT INTO shop.a VALUES (1)"]);
    pair.catch_up();
    pair.check_same(&["SELECT * FROM shop.a"]);
    let shown = [
        ("Source_SSL_Allowed", "Yes"),
        ("Source_SSL_CA_File", own.as_str()),
        ("Source_SSL_Verify_Server_Cert", "Yes"),
        ("Source_SSL_Key", ""),
    ];
    for (name, value) in shown {
        assert_eq!(field(&mut pair.replica, name), value);
    }
    let configured = "SELECT SSL_ALLOWED, SSL_CA_FILE = '', SSL_VERIFY_SERVER_CERTIFICATE FROM \
                      performance_schema.replication_connection_configuration";
    assert_eq!(query_text(&mut pair.replica, configured), ["YES\t0\tYES"]);
}

#[test]
fn a_source_that_never_answers_keeps_nobody_waiting() {
    let mut pair = Pair::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    pair.source_port = silent.local_addr().expect("an address").port();
    pair.follow("");
    let (_accepted, _) = silent.accept().expect("the replica connects");
    let replica = &mut pair.replica;
    assert_eq!(field(replica, "Replica_IO_Running"), "Connecting");
    run(replica, &["STOP REPLICA"]);
    assert_eq!(field(replica, "Replica_IO_Running"), "No");
    run(
        replica,
        &[
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'nowhere.invalid'",
            "START REPLICA",
        ],
    );
    wait_until("the error", || field(replica, "Last_IO_Errno") == "2003");
    assert_eq!(field(replica, "Replica_IO_Running"), "Connecting");
    run(replica, &["STOP REPLICA"]);
}

#[test]
fn what_an_event_says_of_its_session_holds_for_it_alone() {
    let mut pair = Pair::new();
    run(
        &mut pair.replica,
        &[
            "SET GLOBAL auto_increment_increment = 10",
            "SET GLOBAL auto_increment_offset = 4",
        ],
    );
    pair.follow(", SOURCE_AUTO_POSITION = 1");
    run(
        &mut connect(pair.source_port),
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.b (x INT)",
            "INSERT INTO shop.b VALUES (1), (2), (3)",
            "CREATE TABLE shop.c LIKE shop.b",
            "INSERT INTO shop.c SELECT * FROM shop.b",
            "SET auto_increment_increment = 7, auto_increment_offset = 3, lc_time_names = 'de_DE'",
            "ALTER TABLE shop.c ADD id INT AUTO_INCREMENT PRIMARY KEY",
            "ALTER TABLE shop.c ADD m VARCHAR(40) DEFAULT (DATE_FORMAT('2020-03-01', '%M'))",
            "ALTER TABLE shop.c ADD c BIGINT DEFAULT (CONNECTION_ID())",
        ],
    );
    run(
        &mut pair.source,
        &[
            "ALTER TABLE shop.b ADD id INT AUTO_INCREMENT PRIMARY KEY",
            "ALTER TABLE shop.b ADD m VARCHAR(40) DEFAULT (DATE_FORMAT('2020-03-01', '%M'))",
        ],
    );
    pair.catch_up();
    let numbers = "SELECT GROUP_CONCAT(id ORDER BY id), MIN(m) FROM";
    assert_eq!(
        query_text(&mut pair.replica, &format!("{numbers} shop.b")),
        ["1,2,3\tMarch"]
    );
    let connection = "SELECT MIN(c) FROM shop.c";
    pair.check_same(&[
        &format!("{numbers} shop.b"),
        &format!("{numbers} shop.c"),
        connection,
    ]);
}

#[test]
fn a_replica_forgets_what_was_executed_when_it_is_told_to() {
    let mut pair = Pair::new();
    pair.follow(", SOURCE_AUTO_POSITION = 1");
    run(&mut pair.source, &["CREATE DATABASE shop"]);
    pair.catch_up();
    let reset = "RESET BINARY LOGS AND GTIDS";
    assert_eq!(code(&mut pair.replica, reset), 3081);
    run(&mut pair.replica, &["STOP REPLICA", reset]);
    let executed = "SELECT @@gtid_executed = ''";
    assert_eq!(query_text(&mut pair.replica, executed), ["1"]);
    pair.crash_replica();
    assert_eq!(query_text(&mut pair.replica, executed), ["1"]);
}

#[test]
fn the_number_of_a_replica_is_the_one_that_it_has_now() {
    let mut pair = Pair::new();
    run(
        &mut pair.source,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.items (id INT PRIMARY KEY)",
            "INSERT INTO shop.items VALUES (1)",
        ],
    );
    run(&mut pair.replica, &["SET GLOBAL server_id = 1"]);
    pair.follow("");
    let replica = &mut pair.replica;
    wait_until("the error", || field(replica, "Last_IO_Errno") == "13117");
    // The applier has begun with the number of the source, and leaves none of its changes out any more.
    run(replica, &["SET GLOBAL server_id = 2", "START REPLICA"]);
    pair.catch_up();
    pair.check_same(&["SELECT id FROM shop.items"]);
}
