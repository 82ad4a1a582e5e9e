//! What SET does to a server and to others, and what it only seems to do.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, code, error_of, query_text, run, wait_until};

/// The codes of the warnings of a statement.
fn warnings(connection: &mut Conn, statement: &str) -> Vec<String> {
    run(connection, &[statement]);
    let warnings = query_text(connection, "SHOW WARNINGS");
    let code = |line: &String| line.split('\t').take(2).collect::<Vec<_>>().join(" ");
    warnings.iter().map(code).collect()
}

#[test]
fn autocommit_is_switched_off_without_a_word() {
    let server = TestServer::start();
    let mut connection = server.connect();
    assert_eq!(warnings(&mut connection, "SET autocommit = 0"), [""; 0]);
    assert_eq!(
        warnings(&mut connection, "SET GLOBAL autocommit = 1"),
        [""; 0]
    );
}

#[test]
fn a_set_that_fails_changes_nothing_and_leaves_what_others_have_set() {
    let server = TestServer::start();
    let (mut ann, mut bob) = (server.connect(), server.connect());
    // Bob sets a variable in the middle of Ann's statement.
    std::thread::scope(|scope| {
        let failing = scope.spawn(|| {
            code(
                &mut ann,
                "SET GLOBAL long_query_time = 3, SESSION sort_buffer_size = 4096, @a = SLEEP(1), \
                 GLOBAL max_connections = 'many'",
            )
        });
        let running = "SELECT COUNT(*) FROM information_schema.processlist \
                       WHERE info LIKE 'SET GLOBAL long_query_time%'";
        wait_until("the statement runs", || {
            query_text(&mut bob, running) == ["1"]
        });
        run(&mut bob, &["SET GLOBAL join_buffer_size = 1048576"]);
        assert_eq!(failing.join().expect("it does not panic"), 1232);
    });
    let shown = "SELECT @@global.long_query_time, @@sort_buffer_size, @@global.join_buffer_size";
    assert_eq!(query_text(&mut ann, shown), ["10\t262144\t1048576"]);
    // All of it, then.
    run(
        &mut ann,
        &["SET GLOBAL long_query_time = 3, SESSION sort_buffer_size = 4096"],
    );
    assert_eq!(query_text(&mut ann, shown), ["3\t4096\t1048576"]);
    run(
        &mut ann,
        &["SET GLOBAL sync_log = 'OFF', GLOBAL innodb_flush_log_at_trx_commit = 2"],
    );
    assert_eq!(query_text(&mut ann, "SELECT @@sync_log"), ["INTERVAL"]);
    assert_eq!(
        code(
            &mut ann,
            "SET GLOBAL sync_log = 'OFF', GLOBAL max_connections = 'many'"
        ),
        1232
    );
    assert_eq!(
        query_text(
            &mut ann,
            "SELECT @@sync_log, @@innodb_flush_log_at_trx_commit"
        ),
        ["INTERVAL\t2"]
    );
}

#[test]
fn what_is_not_obeyed_is_refused_or_warned_of() {
    let server = TestServer::start();
    let mut connection = server.connect();
    for refused in [
        "SET GLOBAL offline_mode = ON",
        "SET completion_type = CHAIN",
        "SET GLOBAL init_connect = 'SET @a = 1'",
        "SET default_week_format = 1",
        "SET GLOBAL log_output = 'TABLE'",
        "SET lc_time_names = 'vi_VN'",
        "SET resultset_metadata = 'NONE'",
        "SET sql_quote_show_create = 0",
        "SET default_collation_for_utf8mb4 = utf8mb4_general_ci",
    ] {
        assert_eq!(code(&mut connection, refused), 1235, "{refused}");
    }
    for kept in [
        "SET GLOBAL event_scheduler = ON",
        "SET GLOBAL general_log = ON",
        "SET sql_auto_is_null = 1",
    ] {
        assert_eq!(warnings(&mut connection, kept), ["Warning 1235"], "{kept}");
    }
    // What connectors and dumps say.
    for usual in [
        "SET GLOBAL offline_mode = OFF",
        "SET completion_type = 0",
        "SET sql_auto_is_null = 0",
        "SET lc_time_names = 'en_GB'",
        "SET SQL_AUTO_IS_NULL = DEFAULT",
        "SET max_join_size = 1000000",
        "SET max_join_size = DEFAULT",
        "SET sql_quote_show_create = 1",
        "SET net_write_timeout = 600",
        "SET unique_checks = 0, foreign_key_checks = 0",
        "SET sql_safe_updates = 1, sql_select_limit = 1000",
    ] {
        assert_eq!(warnings(&mut connection, usual), [""; 0], "{usual}");
    }
    let absent = "DROP TABLE IF EXISTS test.absent";
    assert_eq!(warnings(&mut connection, absent), ["Note 1051"]);
    run(&mut connection, &["SET sql_notes = 0"]);
    assert_eq!(warnings(&mut connection, absent), [""; 0]);
    let hinted = "SELECT /*+ SET_VAR(auto_increment_increment = 7) */ @@auto_increment_increment";
    assert_eq!(query_text(&mut connection, hinted), ["7"]);
    assert_eq!(
        warnings(
            &mut connection,
            "SELECT /*+ SET_VAR(sql_auto_is_null = 1) */ 1"
        ),
        ["Warning 1235"]
    );
}

/// As root, and as a user without privileges over all.
#[test]
fn a_server_that_is_read_only_is_changed_by_nobody_or_by_administrators() {
    let server = TestServer::start();
    let mut root = server.connect_to_new("shop");
    run(
        &mut root,
        &[
            "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE USER app@localhost",
            "GRANT ALL ON shop.* TO app@localhost",
        ],
    );
    let app = server.options().user(Some("app")).db_name(Some("shop"));
    let mut app = Conn::new(app).expect("app has no password");
    let prepared = app
        .prep("UPDATE t SET b = ? WHERE a = ?")
        .expect("it is right");
    app.exec_drop(&prepared, (2, 1))
        .expect("everybody may write");

    let changes = [
        "INSERT INTO t VALUES (2, 2)",
        "UPDATE t SET b = 3 WHERE a = 1",
        "UPDATE t SET b = b + 1",
        "DELETE FROM t WHERE a = 5",
        "REPLACE INTO t VALUES (1, 5)",
        "CREATE TABLE u (a INT)",
        "CREATE TABLE w SELECT 1 AS one",
        "ALTER TABLE t ADD KEY (b)",
        "TRUNCATE TABLE t",
        "DROP TABLE t",
        "ALTER DATABASE shop COLLATE utf8mb4_bin",
    ];
    run(&mut root, &["SET GLOBAL read_only = ON"]);
    for change in changes {
        assert_eq!(code(&mut app, change), 1290, "{change}");
    }
    let refused = error_of(app.exec_drop(&prepared, (3, 1)));
    assert_eq!(refused, (1290, "HY000".into()));
    // Reading goes on, also with locks, and so do administrators.
    assert_eq!(
        query_text(&mut app, "SELECT b FROM t WHERE a = 1 FOR UPDATE"),
        ["2"]
    );
    assert_eq!(
        query_text(&mut app, "SELECT @@read_only, @@super_read_only"),
        ["1\t0"]
    );
    run(
        &mut root,
        &["UPDATE t SET b = 4 WHERE a = 1", "CREATE TABLE u (a INT)"],
    );

    run(&mut root, &["SET GLOBAL super_read_only = ON"]);
    for change in [
        "UPDATE t SET b = 5 WHERE a = 1",
        "DROP TABLE u",
        "CREATE USER bob",
    ] {
        assert_eq!(code(&mut root, change), 1290, "{change}");
    }
    run(&mut root, &["SET GLOBAL read_only = OFF"]);
    assert_eq!(query_text(&mut root, "SELECT @@super_read_only"), ["0"]);
    app.exec_drop(&prepared, (6, 1))
        .expect("everybody may write");
    run(&mut root, &["DROP TABLE u"]);
    assert_eq!(query_text(&mut app, "SELECT b FROM t"), ["6"]);
}

#[test]
fn safe_updates_use_a_key_or_a_limit() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("safe");
    run(
        &mut connection,
        &[
            "CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT, KEY (b))",
            "CREATE TABLE u (a INT PRIMARY KEY, c INT)",
            "INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
            "INSERT INTO u VALUES (1, 1), (2, 2)",
            "SET sql_safe_updates = 1",
        ],
    );
    for unsafe_one in [
        "UPDATE t SET c = 0",
        "UPDATE t SET c = 0 WHERE c = 1",
        "UPDATE t SET c = 0 WHERE a + 1 = 2",
        "DELETE FROM t",
        "DELETE FROM t WHERE c = 1 OR a = 1",
        "UPDATE t, u SET u.c = 0 WHERE t.c = u.c",
    ] {
        assert_eq!(code(&mut connection, unsafe_one), 1175, "{unsafe_one}");
    }
    run(
        &mut connection,
        &[
            "UPDATE t SET c = 10 WHERE a = 1",
            "UPDATE t SET c = 20 WHERE b > 1 AND c = 2",
            "UPDATE t SET c = c + 1 LIMIT 2",
            "UPDATE t JOIN u ON t.a = u.a SET t.c = t.c + 100 WHERE u.a = 1",
            "DELETE FROM t WHERE c = 3 LIMIT 1",
            "DELETE FROM t WHERE a = 77",
            "BEGIN",
            "DELETE FROM t WHERE b = 2",
            "ROLLBACK",
        ],
    );
    let prepared = connection
        .prep("UPDATE t SET c = 0 WHERE c = ?")
        .expect("it is right");
    assert_eq!(error_of(connection.exec_drop(&prepared, (1,))).0, 1175);
    assert_eq!(
        query_text(&mut connection, "SELECT * FROM t"),
        ["1\t1\t111", "2\t2\t21"]
    );
    run(
        &mut connection,
        &["SET sql_safe_updates = 0", "DELETE FROM t"],
    );
}

#[test]
fn recursion_ends_where_cte_max_recursion_depth_says() {
    let server = TestServer::start();
    let mut connection = server.connect();
    let count = |limit: &str| {
        format!(
            "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c {limit}) SELECT COUNT(*) FROM c"
        )
    };
    // The last of a thousand rounds finds nothing.
    assert_eq!(
        query_text(&mut connection, &count("WHERE n < 1000")),
        ["1000"]
    );
    let endless = error_of(connection.query_drop(count("")));
    assert_eq!(endless, (3636, "HY000".into()));
    assert_eq!(code(&mut connection, &count("WHERE n < 1001")), 3636);
    run(&mut connection, &["SET cte_max_recursion_depth = 5000"]);
    assert_eq!(
        query_text(&mut connection, &count("WHERE n < 5000")),
        ["5000"]
    );
    let hinted = count("WHERE n < 10").replace(
        "SELECT COUNT",
        "SELECT /*+ SET_VAR(cte_max_recursion_depth = 3) */ COUNT",
    );
    assert_eq!(code(&mut connection, &hinted), 3636);
    // Each use of a recursion counts for itself, also within another.
    run(&mut connection, &["SET cte_max_recursion_depth = 4"]);
    let two = "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 4) \
               SELECT COUNT(*) FROM c a JOIN c b ON a.n = b.n";
    assert_eq!(query_text(&mut connection, two), ["4"]);
    let prepared = connection
        .prep("WITH RECURSIVE c AS (SELECT 1 AS n UNION SELECT n + 1 FROM c WHERE n < ?) SELECT COUNT(*) FROM c")
        .expect("it is right");
    for _ in 0..3 {
        let counted: Option<i64> = connection.exec_first(&prepared, (4,)).expect("four rounds");
        assert_eq!(counted, Some(4));
    }
    assert_eq!(error_of(connection.exec_drop(&prepared, (5,))).0, 3636);
}

#[test]
fn a_limit_in_with_recursive_counts() {
    let server = TestServer::start();
    let mut connection = server.connect();
    for (rows, expected) in [
        // A recursion that would not end.
        (
            "SELECT 1 AS n UNION ALL SELECT n + 1 FROM c LIMIT 5",
            "5\t15",
        ),
        (
            "SELECT 1 AS n UNION ALL SELECT n + 1 FROM c LIMIT 2 OFFSET 3",
            "2\t9",
        ),
        (
            "SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 3 LIMIT 5",
            "3\t6",
        ),
        // A union that refers to nothing.
        (
            "SELECT 3 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 ORDER BY n LIMIT 2",
            "2\t3",
        ),
    ] {
        for with in ["c AS", "c (n) AS"] {
            let query = format!("WITH RECURSIVE {with} ({rows}) SELECT COUNT(*), SUM(n) FROM c");
            assert_eq!(query_text(&mut connection, &query), [expected], "{query}");
        }
    }
}

#[test]
fn indexes_are_built_as_algorithm_and_lock_ask_for_or_not_at_all() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("online");
    run(
        &mut connection,
        &["CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT)"],
    );
    for (statement, expected) in [
        ("ALTER TABLE t DROP PRIMARY KEY, LOCK=NONE", 1846),
        ("ALTER TABLE t RENAME COLUMN b TO d, FORCE, LOCK=NONE", 1846),
        (
            "ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES t (a), ALGORITHM=COPY, LOCK=NONE",
            1846,
        ),
        ("ALTER TABLE t ADD KEY (b), ALGORITHM=COPY, LOCK=NONE", 1846),
        ("ALTER TABLE t ADD KEY (b), RENAME TO u, LOCK=NONE", 1846),
        ("ALTER TABLE t ADD KEY (b), ALGORITHM=INSTANT", 1845),
        ("ALTER TABLE t ADD KEY (b), ALGORITHM=QUICKLY", 1800),
        ("ALTER TABLE t ADD KEY (b), LOCK=PERHAPS", 1801),
        (
            "CREATE INDEX i ON t (b) ALGORITHM=INSTANT LOCK=SHARED",
            1221,
        ),
        ("DROP INDEX i ON t ALGORITHM=INSTANT LOCK=NONE", 1221),
    ] {
        assert_eq!(code(&mut connection, statement), expected, "{statement}");
    }
    assert_eq!(
        query_text(
            &mut connection,
            "SHOW INDEX FROM t WHERE Key_name <> 'PRIMARY'"
        ),
        [""; 0]
    );
    run(
        &mut connection,
        &[
            "ALTER TABLE t ADD KEY i (b), ALGORITHM=INPLACE, LOCK=SHARED",
            "CREATE INDEX j ON t (c) ALGORITHM=DEFAULT LOCK=DEFAULT",
            "DROP INDEX j ON t LOCK=NONE",
            "ALTER TABLE t ADD KEY j (b), ADD UNIQUE k (c, b), ALGORITHM=INPLACE, LOCK=NONE",
            "ALTER TABLE t DROP KEY j, ADD KEY j (c), LOCK=NONE",
            "CREATE INDEX l ON t (b) ALGORITHM=INPLACE LOCK=NONE",
            "ALTER TABLE t DROP KEY j, DROP KEY k, DROP KEY l, LOCK=NONE",
            "ALTER TABLE t DROP KEY i, ALGORITHM=INSTANT",
            "ALTER TABLE t ADD KEY m (b), COMMENT 'more', ALTER c SET DEFAULT 3, LOCK=NONE",
            "ALTER TABLE t DROP KEY m, ADD KEY m (c), LOCK = EXCLUSIVE",
            "DROP INDEX m ON t LOCK=EXCLUSIVE",
            "ALTER TABLE t RENAME TO u, ALGORITHM=INPLACE, LOCK=NONE",
            "ALTER TABLE u ADD KEY (b), ALGORITHM=COPY",
        ],
    );
    for (statement, expected) in [
        (
            "ALTER TABLE u ADD d INT DEFAULT (b + 1), ALGORITHM=INSTANT",
            1845,
        ),
        ("ALTER TABLE u DROP PRIMARY KEY, ALGORITHM=INPLACE", 1846),
        ("ALTER TABLE u MODIFY c BIGINT, ALGORITHM=INPLACE", 1846),
        ("ALTER TABLE u MODIFY c BIGINT, ALGORITHM=INSTANT", 1846),
    ] {
        assert_eq!(code(&mut connection, statement), expected, "{statement}");
    }
    run(
        &mut connection,
        &[
            "ALTER TABLE u ADD d INT, ALGORITHM=INPLACE, LOCK=SHARED",
            "ALTER TABLE u MODIFY c BIGINT, ALGORITHM=COPY",
            "ALTER TABLE u MODIFY c INT, LOCK=NONE",
            "ALTER TABLE u ADD KEY g ((b + 1)), ADD h INT, LOCK=NONE",
            "ALTER TABLE u DROP KEY g, DROP h, ALGORITHM=INPLACE, LOCK=NONE",
            "ALTER TABLE u RENAME COLUMN d TO e, RENAME KEY b TO f, ALGORITHM=INSTANT",
            "ALTER TABLE u DROP c, LOCK=EXCLUSIVE",
            "ALTER TABLE u ALTER e SET DEFAULT 5, ALGORITHM=INSTANT",
        ],
    );
}

#[test]
fn a_session_has_a_thousand_user_variables() {
    let server = TestServer::start();
    let mut connection = server.connect();
    let all: Vec<String> = (0..1_000).map(|n| format!("@v{n} = {n}")).collect();
    run(&mut connection, &[&format!("SET {}", all.join(", "))]);
    let error = error_of(connection.query_drop("SET @one_more = 1"));
    assert_eq!(error, (1226, "42000".into()));
    // One that there is may be set.
    run(&mut connection, &["SET @v7 = 'seven'"]);
    assert_eq!(query_text(&mut connection, "SELECT @v7"), ["seven"]);
}

#[test]
fn what_a_session_keeps_has_limits() {
    let server = TestServer::start();
    let mut connection = server.connect();
    run(
        &mut connection,
        &[
            "SET @a = REPEAT('a', 5000000)",
            "SET @d = CONCAT(@a, '')",
            "SET @b = REPEAT('b', 5000000)",
        ],
    );
    assert_eq!(code(&mut connection, "SET @c = REPEAT('c', 5000000)"), 1041);
    run(
        &mut connection,
        &["SET @d = 1", "SET @c = REPEAT('c', 5000000)"],
    );
    assert_eq!(
        query_text(&mut connection, "SELECT LENGTH(@a) + LENGTH(@c)"),
        ["10000000"]
    );

    run(&mut connection, &["BEGIN"]);
    for number in 0..10_000 {
        run(&mut connection, &[&format!("SAVEPOINT s{number}")]);
    }
    assert_eq!(code(&mut connection, "SAVEPOINT one_more"), 1105);
    run(
        &mut connection,
        &[
            "SAVEPOINT s7",
            "RELEASE SAVEPOINT s9000",
            "SAVEPOINT one_more",
        ],
    );
    assert_eq!(
        code(&mut connection, &format!("SAVEPOINT {}", "s".repeat(65))),
        1059
    );
    run(&mut connection, &["ROLLBACK"]);

    let long = format!("SELECT ?, '{}'", "x".repeat(7_000_000));
    let first = connection.prep(&long).expect("there is room");
    let second = connection
        .prep(format!("{long} AS b"))
        .expect("there is room");
    let third = error_of(connection.prep(format!("{long} AS c")));
    assert_eq!(third.0, 1041);
    drop((first, second));
}

#[test]
fn variables_say_what_is_so() {
    let server = TestServer::start();
    let mut connection = server.connect();
    let shown = query_text(
        &mut connection,
        "SELECT @@fill_factor, @@max_spill_bytes, @@max_temp_bytes, @@archive_interval, @@thread_stack, @@innodb_log_buffer_size",
    );
    assert_eq!(
        shown,
        ["0.95\t68719476736\t1099511627776\t10\t8388608\t8388608"]
    );
    assert_eq!(code(&mut connection, "SET GLOBAL fill_factor = 0.5"), 1238);
    let absent = query_text(&mut connection, "SHOW VARIABLES LIKE 'thread_handling'");
    assert_eq!(absent, [""; 0]);
    // A session has no value of its own of what is global.
    run(&mut connection, &["SET GLOBAL read_only = 1"]);
    let shown = query_text(&mut connection, "SHOW VARIABLES LIKE 'read_only'");
    assert_eq!(shown, ["read_only\tON"]);
}

#[test]
fn a_configuration_is_taken_as_a_whole_or_not_at_all() {
    let server = TestServer::start();
    let mut connection = server.connect();
    let shown = "SELECT @@global.long_query_time, @@global.wait_timeout, @@global.slow_query_log";
    let before = query_text(&mut connection, shown);
    let faults = server.engine().set_globals(&[
        ("long_query_time", "99"),
        ("port", "7"),
        ("wait_timeout", "long"),
        ("no_such", "1"),
    ]);
    let faults = faults.expect_err("three faults");
    let names: Vec<&str> = faults
        .iter()
        .filter_map(|fault| fault.split(' ').next())
        .collect();
    assert_eq!(names, ["port", "wait_timeout", "no_such"]);
    // What is tested last, when all values are known.
    let faults = server.engine().set_globals(&[
        ("wait_timeout", "7"),
        ("slow_query_log", "ON"),
        ("slow_query_log_file", "sheaf.log"),
    ]);
    assert!(faults.is_err());
    assert_eq!(query_text(&mut connection, shown), before);
    let warnings = server
        .engine()
        .set_globals(&[("long_query_time", "0.5"), ("wait_timeout", "0")]);
    assert_eq!(warnings.map(|warnings| warnings.len()), Ok(1));
    assert_eq!(query_text(&mut connection, shown), ["0.5\t1\t0"]);
}

#[test]
fn persisted_variables_are_set_again_at_the_next_start() {
    const KEPT: &str = "SELECT * FROM performance_schema.persisted_variables";
    let mut server = TestServer::start();
    let mut connection = server.connect();
    run(
        &mut connection,
        &[
            "SET PERSIST long_query_time = 2.5, sort_buffer_size = 40000",
            "SET PERSIST_ONLY max_connections = 77",
            "SET @@persist.sql_mode = 'ANSI', SESSION sort_buffer_size = 50000",
        ],
    );
    let shown = "SELECT @@global.long_query_time, @@global.sort_buffer_size, @@global.max_connections, \
         @@global.sql_mode LIKE '%ANSI%'";
    assert_eq!(query_text(&mut connection, shown), ["2.5\t40000\t151\t1"]);
    for (statement, expected) in [
        ("SET PERSIST nosuch = 1", 1193),
        ("SET PERSIST timestamp = 1", 1228),
        ("SET PERSIST port = 1", 1238),
        ("SET PERSIST_ONLY port = 1", 1238),
        ("SET PERSIST wait_timeout = 'long'", 1232),
        ("SET PERSIST_ONLY autocommit = 7", 1231),
        ("RESET PERSIST nosuch", 3615),
        // Nothing of it is kept.
        ("SET PERSIST wait_timeout = 7, @@global.port = 1", 1238),
    ] {
        assert_eq!(code(&mut connection, statement), expected, "{statement}");
    }
    drop(connection);
    server.restart();
    let mut connection = server.connect();
    assert_eq!(query_text(&mut connection, shown), ["2.5\t40000\t77\t1"]);
    let names = "SELECT VARIABLE_NAME FROM performance_schema.persisted_variables ORDER BY 1";
    assert_eq!(
        query_text(&mut connection, names),
        [
            "long_query_time",
            "max_connections",
            "sort_buffer_size",
            "sql_mode"
        ]
    );
    // The configuration does not count before it.
    let taken = server.engine().set_globals(&[("long_query_time", "9")]);
    assert_eq!(taken.map(|warnings| warnings.len()), Ok(1));
    assert_eq!(query_text(&mut connection, shown), ["2.5\t40000\t77\t1"]);
    assert_eq!(
        warnings(&mut connection, "RESET PERSIST IF EXISTS nosuch"),
        ["Warning 3615"]
    );
    run(
        &mut connection,
        &[
            "RESET PERSIST sort_buffer_size",
            "RESET PERSIST IF EXISTS sql_mode",
        ],
    );
    assert_eq!(
        query_text(&mut connection, KEPT),
        ["long_query_time\t2.500000", "max_connections\t77"]
    );
    run(&mut connection, &["CREATE USER app", "RESET PERSIST"]);
    assert_eq!(query_text(&mut connection, KEPT), [""; 0]);
    let mut app = mysql::Conn::new(server.options().user(Some("app"))).expect("a connection");
    for statement in ["SET PERSIST wait_timeout = 7", "RESET PERSIST"] {
        assert_eq!(code(&mut app, statement), 1227, "{statement}");
    }
    drop((connection, app));
    server.restart();
    let mut connection = server.connect();
    assert_eq!(
        query_text(
            &mut connection,
            "SELECT @@global.sort_buffer_size, @@max_connections"
        ),
        ["262144\t151"]
    );
}
