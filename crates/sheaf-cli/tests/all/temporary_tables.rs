//! Temporary tables, as several sessions meet them: which sessions see them, which plans are used for them, what they
//! are rolled back with, and when they go.

use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn};

use crate::command_line::{check, connect, serve, stdout_of};
use crate::harness::{TestServer, code, error_of, query_text, run, wait_until};

/// A server with a table `t` of the rows 1, 2 and 3, and two connections to its database.
fn two_sessions() -> (TestServer, Conn, Conn) {
    let server = TestServer::start();
    let mut one = server.connect_to_new("test");
    run(
        &mut one,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY (n))",
            "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        ],
    );
    let mut two = server.connect();
    run(&mut two, &["USE test"]);
    (server, one, two)
}

/// Pages of the data file that hold something.
fn used_pages(server: &TestServer) -> u64 {
    server.engine().storage().used_pages()
}

#[test]
fn a_temporary_table_hides_another_one_from_its_session_alone() {
    let (_server, mut one, mut two) = two_sessions();
    run(
        &mut one,
        &["CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, n INT, word VARCHAR(10))"],
    );
    run(
        &mut two,
        &[
            "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, n INT)",
            "INSERT INTO t VALUES (7, 7)",
        ],
    );
    run(
        &mut one,
        &["INSERT INTO t VALUES (1, 1, 'own'), (2, 2, 'own')"],
    );
    assert_eq!(
        query_text(&mut one, "SELECT * FROM t"),
        ["1\t1\town", "2\t2\town"]
    );
    assert_eq!(query_text(&mut two, "SELECT * FROM t"), ["7\t7"]);
    run(&mut one, &["DROP TABLE t"]);
    assert_eq!(query_text(&mut one, "SELECT COUNT(*) FROM t"), ["3"]);
    assert_eq!(query_text(&mut two, "SELECT COUNT(*) FROM t"), ["1"]);
    run(&mut two, &["DROP TEMPORARY TABLE t"]);
    assert_eq!(query_text(&mut two, "SELECT SUM(n) FROM t"), ["60"]);
    assert_eq!(code(&mut two, "DROP TEMPORARY TABLE t"), 1051);
}

/// The statements that a client repeats, of each kind of plan: one row, a range, groups, a join, and changes. Each
/// session runs them as texts, which share their plans, and prepared.
#[test]
fn plans_are_never_taken_for_another_table_of_the_name() {
    let (_server, mut one, mut two) = two_sessions();
    let texts = [
        "SELECT n FROM t WHERE id = 1",
        "SELECT SUM(n) FROM t WHERE n BETWEEN 0 AND 100",
        "SELECT COUNT(*) FROM t GROUP BY n HAVING COUNT(*) > 0 LIMIT 1",
        "SELECT a.n FROM t a JOIN t b ON b.id = a.id WHERE a.id = 1",
        "SELECT n FROM t WHERE id IN (SELECT id FROM t WHERE id = 1)",
        "SELECT n FROM (SELECT * FROM t WHERE id = 1) d",
        "WITH c AS (SELECT * FROM t WHERE id = 1) SELECT n FROM c",
        "SELECT n FROM t WHERE id = 1 UNION ALL SELECT n FROM t WHERE id = 1",
    ];
    let base = ["10", "60", "1", "10", "10", "10", "10", "10,10"];
    // No row of the session's own table is between 0 and 100.
    let own = ["-1", "NULL", "1", "-1", "-1", "-1", "-1", "-1,-1"];
    let answers = |connection: &mut Conn| {
        let answers = texts.map(|text| query_text(connection, text).join(","));
        let again = texts.map(|text| query_text(connection, text).join(","));
        assert_eq!(answers, again);
        answers
    };
    let prepare = |connection: &mut Conn| texts.map(|text| connection.prep(text).expect(text));
    let prepared_one = prepare(&mut one);
    let prepared_two = prepare(&mut two);
    let executed = |connection: &mut Conn, prepared: &[mysql::Statement]| -> Vec<String> {
        let run = |statement: &mysql::Statement| {
            let rows: Vec<String> = connection
                .exec_map(statement, (), |n: mysql::Value| {
                    n.as_sql(true).replace('\'', "")
                })
                .expect("a query");
            rows.join(",")
        };
        prepared.iter().map(run).collect()
    };
    for round in 0..3 {
        assert_eq!(answers(&mut one), base, "round {round}");
        assert_eq!(executed(&mut one, &prepared_one), base, "round {round}");
        assert_eq!(answers(&mut two), base, "round {round}");
        run(
            &mut one,
            &[
                "CREATE TEMPORARY TABLE t (n INT, id INT PRIMARY KEY)",
                "INSERT INTO t VALUES (-1, 1)",
            ],
        );
        assert_eq!(answers(&mut one), own, "round {round}");
        assert_eq!(executed(&mut one, &prepared_one), own, "round {round}");
        assert_eq!(answers(&mut two), base, "round {round}");
        assert_eq!(executed(&mut two, &prepared_two), base, "round {round}");
        // A statement that is new to all sessions, while one of them has a table of its own.
        let fresh = format!("SELECT n + {round} * 0 AS round_{round} FROM t WHERE id = 1");
        assert_eq!(query_text(&mut one, &fresh), ["-1"]);
        assert_eq!(query_text(&mut two, &fresh), ["10"]);
        assert_eq!(query_text(&mut one, &fresh), ["-1"]);
        // Another table of the name, with other columns.
        run(
            &mut one,
            &[
                "DROP TEMPORARY TABLE t",
                "CREATE TEMPORARY TABLE t (id BIGINT, n BIGINT, KEY (id))",
                "INSERT INTO t VALUES (1, -1)",
            ],
        );
        assert_eq!(answers(&mut one), own, "round {round}");
        assert_eq!(executed(&mut one, &prepared_one), own, "round {round}");
        run(&mut one, &["DROP TABLE t"]);
        assert_eq!(answers(&mut one), base, "round {round}");
        assert_eq!(executed(&mut one, &prepared_one), base, "round {round}");
        assert_eq!(query_text(&mut one, &fresh), ["10"]);
    }
}

#[test]
fn changes_go_to_the_table_that_the_name_means_now() {
    let (_server, mut one, mut two) = two_sessions();
    let insert = one
        .prep("INSERT INTO t (id, n) VALUES (?, ?)")
        .expect("a table");
    let update = one
        .prep("UPDATE t SET n = n + 1 WHERE id = ?")
        .expect("a table");
    let delete = one.prep("DELETE FROM t WHERE id = ?").expect("a table");
    for round in 0..2 {
        for own in [false, true] {
            if own {
                run(&mut one, &["CREATE TEMPORARY TABLE t LIKE test.u"]);
            } else if round == 0 {
                run(&mut one, &["CREATE TABLE u LIKE t"]);
            }
            one.exec_drop(&insert, (100, 1)).expect("a new row");
            one.exec_drop(&update, (100,)).expect("a row");
            run(
                &mut one,
                &[
                    "INSERT INTO t VALUES (101, 1)",
                    "INSERT INTO t VALUES (102, 1), (103, 1)",
                    "INSERT INTO t VALUES (101, 1) ON DUPLICATE KEY UPDATE n = 5",
                    "REPLACE INTO t VALUES (102, 6)",
                    "UPDATE t SET n = 7 WHERE id = 103",
                    "INSERT INTO t SELECT id + 100, n FROM t WHERE id >= 100",
                    "DELETE FROM t WHERE id = 201",
                ],
            );
            let rows = "SELECT CONCAT(id, ':', n) FROM t WHERE id >= 100 ORDER BY id";
            let expected = [
                "100:2", "101:5", "102:6", "103:7", "200:2", "202:6", "203:7",
            ];
            assert_eq!(query_text(&mut one, rows), expected);
            let seen = query_text(&mut two, rows);
            assert_eq!(seen.len(), if own { 0 } else { expected.len() });
            for id in [100, 101, 102, 103, 200, 202, 203] {
                one.exec_drop(&delete, (id,)).expect("a row");
            }
            assert_eq!(query_text(&mut one, rows), [""; 0]);
            if own {
                run(&mut one, &["DROP TABLE t"]);
            }
        }
    }
    assert_eq!(
        query_text(&mut two, "SELECT SUM(n), COUNT(*) FROM t"),
        ["60\t3"]
    );
}

/// Children of the table that is hidden are no children of the one that hides it.
#[test]
fn foreign_keys_of_a_hidden_table_say_nothing_of_the_one_that_hides_it() {
    let (_server, mut one, mut two) = two_sessions();
    run(
        &mut one,
        &[
            "CREATE TABLE child (id INT PRIMARY KEY, t_id INT, FOREIGN KEY (t_id) REFERENCES t (id) ON DELETE CASCADE)",
            "INSERT INTO child VALUES (1, 1), (2, 2)",
            "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, n INT)",
            "INSERT INTO t VALUES (1, 1), (9, 9)",
            "DELETE FROM t WHERE id = 1",
            "UPDATE t SET id = 10",
        ],
    );
    assert_eq!(query_text(&mut one, "SELECT COUNT(*) FROM child"), ["2"]);
    // The child looks for its parents in the table of all sessions.
    run(&mut one, &["INSERT INTO child VALUES (3, 3)"]);
    assert_eq!(code(&mut one, "INSERT INTO child VALUES (4, 10)"), 1452);
    run(&mut one, &["TRUNCATE TABLE t", "DROP TABLE t"]);
    run(&mut two, &["DELETE FROM t WHERE id = 1"]);
    assert_eq!(query_text(&mut one, "SELECT COUNT(*) FROM child"), ["2"]);
}

#[test]
fn rows_are_rolled_back_and_definitions_stay() {
    let (_server, mut one, _two) = two_sessions();
    run(
        &mut one,
        &[
            "CREATE TEMPORARY TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, n INT, note TEXT, KEY (n))",
            "BEGIN",
            "INSERT INTO t VALUES (4, 40)",
            "INSERT INTO a (n) VALUES (1), (2)",
            "SAVEPOINT s",
            "UPDATE a SET n = n + 10, note = REPEAT('x', 20000)",
            "CREATE TEMPORARY TABLE b SELECT * FROM a",
            "ROLLBACK TO s",
        ],
    );
    assert_eq!(
        query_text(&mut one, "SELECT n, note FROM a"),
        ["1\tNULL", "2\tNULL"]
    );
    assert_eq!(query_text(&mut one, "SELECT COUNT(*) FROM b"), ["0"]);
    run(
        &mut one,
        &[
            "INSERT INTO b VALUES (5, 5, 'five')",
            "DROP TEMPORARY TABLE b",
        ],
    );
    run(&mut one, &["ROLLBACK"]);
    assert_eq!(query_text(&mut one, "SELECT COUNT(*) FROM a"), ["0"]);
    assert_eq!(query_text(&mut one, "SELECT COUNT(*) FROM t"), ["3"]);
    assert_eq!(code(&mut one, "SELECT * FROM b"), 1146);
    // A snapshot that is older than the table sees the session's own rows.
    run(
        &mut one,
        &[
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "CREATE TEMPORARY TABLE late (id INT PRIMARY KEY)",
            "INSERT INTO late VALUES (1), (2)",
        ],
    );
    assert_eq!(query_text(&mut one, "SELECT SUM(id) FROM late"), ["3"]);
    run(&mut one, &["COMMIT"]);
    assert_eq!(query_text(&mut one, "SELECT SUM(id) FROM late"), ["3"]);
    // A failed statement changes nothing, and a failed CREATE leaves nothing.
    assert_eq!(code(&mut one, "INSERT INTO late VALUES (3), (2)"), 1062);
    assert_eq!(query_text(&mut one, "SELECT SUM(id) FROM late"), ["3"]);
    let twice =
        "CREATE TEMPORARY TABLE twice (id INT PRIMARY KEY) SELECT 1 AS id UNION ALL SELECT 1";
    assert_eq!(code(&mut one, twice), 1062);
    assert_eq!(code(&mut one, "SELECT * FROM twice"), 1146);
    run(&mut one, &["BEGIN"]);
    assert_eq!(code(&mut one, twice), 1062);
    assert_eq!(code(&mut one, "SELECT * FROM twice"), 1146);
    run(&mut one, &["COMMIT"]);
}

#[test]
fn temporary_tables_go_with_their_session_and_free_their_pages() {
    let (server, mut one, _two) = two_sessions();
    run(&mut one, &["CREATE TABLE filler (id INT PRIMARY KEY)"]);
    let fill = |connection: &mut Conn| {
        run(
            connection,
            &[
                "USE test",
                "CREATE TEMPORARY TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(500), KEY (s(100)))",
                "INSERT INTO big (s) VALUES (REPEAT('a', 400)), (REPEAT('b', 400))",
            ],
        );
        for _ in 0..11 {
            run(
                connection,
                &["INSERT INTO big (s) SELECT CONCAT(LEFT(s, 390), id) FROM big"],
            );
        }
        run(
            connection,
            &[
                "BEGIN",
                "UPDATE big SET s = CONCAT('c', LEFT(s, 300)) WHERE id < 1000",
            ],
        );
    };
    // The first time also makes what stays.
    let mut first = server.connect();
    fill(&mut first);
    first.reset().expect("a reset");
    assert_eq!(code(&mut first, "SELECT 1 FROM test.big"), 1146);
    let before = used_pages(&server);
    let is_free = |what: &str| {
        wait_until(&format!("the pages, {what}"), || {
            used_pages(&server) <= before
        });
    };
    fill(&mut first);
    assert!(used_pages(&server) > before);
    first.reset().expect("a reset");
    is_free("after a reset");
    fill(&mut first);
    first
        .change_user(ChangeUserOpts::new())
        .expect("the same user");
    is_free("after a change of user");
    assert_eq!(code(&mut first, "SELECT 1 FROM test.big"), 1146);
    fill(&mut first);
    run(&mut first, &["ROLLBACK", "DROP TEMPORARY TABLE big"]);
    is_free("after DROP TABLE");
    fill(&mut first);
    run(&mut first, &["DROP TEMPORARY TABLE big"]);
    run(&mut first, &["ROLLBACK"]);
    is_free("after a transaction that outlived its table");
    fill(&mut first);
    drop(first);
    is_free("when the client has left");
    let mut second = server.connect();
    fill(&mut second);
    let id: u64 = second
        .query_first("SELECT CONNECTION_ID()")
        .expect("an id")
        .expect("a row");
    run(&mut one, &[&format!("KILL {id}")]);
    is_free("after KILL");
}

#[test]
fn no_lock_of_others_keeps_temporary_tables_from_being_changed() {
    let (_server, mut one, mut two) = two_sessions();
    run(&mut one, &["CREATE TEMPORARY TABLE a (id INT PRIMARY KEY)"]);
    run(&mut two, &["FLUSH TABLES WITH READ LOCK"]);
    run(
        &mut one,
        &[
            "SET lock_wait_timeout = 1",
            "INSERT INTO a VALUES (1)",
            "BEGIN",
            "INSERT INTO a VALUES (2)",
            "UPDATE a SET id = id + 10",
            "DELETE FROM a WHERE id = 11",
            "COMMIT",
            "CREATE TEMPORARY TABLE b SELECT * FROM a",
            "ALTER TABLE b ADD n INT",
            "TRUNCATE TABLE b",
            "DROP TABLE b",
        ],
    );
    assert_eq!(query_text(&mut one, "SELECT * FROM a"), ["12"]);
    assert_eq!(code(&mut one, "INSERT INTO t VALUES (9, 9)"), 1205);
    run(&mut two, &["UNLOCK TABLES"]);
    // The session that has the lock itself.
    run(
        &mut one,
        &[
            "FLUSH TABLES WITH READ LOCK",
            "INSERT INTO a VALUES (3)",
            "DELETE FROM a",
            "UNLOCK TABLES",
        ],
    );
    run(
        &mut one,
        &[
            "START TRANSACTION READ ONLY",
            "INSERT INTO a VALUES (4)",
            "UPDATE a SET id = 5",
        ],
    );
    assert_eq!(code(&mut one, "UPDATE t SET n = 1"), 1792);
    assert_eq!(code(&mut one, "CREATE TEMPORARY TABLE c (id INT)"), 1792);
    assert_eq!(code(&mut one, "DROP TEMPORARY TABLE a"), 1792);
    run(&mut one, &["COMMIT"]);
    run(&mut one, &["SET GLOBAL super_read_only = 1"]);
    run(
        &mut one,
        &[
            "INSERT INTO a VALUES (6)",
            "CREATE TEMPORARY TABLE d (id INT)",
        ],
    );
    assert_eq!(code(&mut one, "UPDATE t SET n = 1"), 1290);
    run(&mut one, &["SET GLOBAL read_only = 0"]);
    // LOCK TABLES.
    run(
        &mut one,
        &[
            "LOCK TABLES t READ, a WRITE",
            "INSERT INTO a SELECT id + 100 FROM t",
        ],
    );
    assert_eq!(code(&mut one, "SELECT * FROM test.missing"), 1100);
    run(
        &mut one,
        &[
            "CREATE TEMPORARY TABLE e LIKE t",
            "DROP TEMPORARY TABLE e",
            "ALTER TABLE a ADD n INT",
        ],
    );
    run(&mut one, &["UNLOCK TABLES"]);
    assert_eq!(query_text(&mut one, "SELECT COUNT(*) FROM a"), ["5"]);
}

#[test]
fn privileges_are_asked_for_the_table_that_the_name_means() {
    let (server, mut root, _two) = two_sessions();
    run(
        &mut root,
        &[
            "CREATE TABLE secret (id INT PRIMARY KEY, word VARCHAR(20))",
            "INSERT INTO secret VALUES (1, 'sesame')",
            "CREATE SQL SECURITY INVOKER VIEW asking AS SELECT * FROM secret",
            "CREATE SQL SECURITY INVOKER VIEW changing AS SELECT id, word FROM secret",
            "CREATE USER ann, bob",
            "GRANT CREATE TEMPORARY TABLES ON test.* TO ann",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON test.asking TO ann",
            "GRANT SELECT ON test.t TO bob",
        ],
    );
    assert_eq!(
        query_text(&mut root, "SHOW GRANTS FOR ann")[1],
        "GRANT CREATE TEMPORARY TABLES ON `test`.* TO `ann`@`%`"
    );
    let connect = |user: &str| {
        let mut connection = Conn::new(server.options().user(Some(user))).expect("no password");
        run(&mut connection, &["USE test"]);
        connection
    };
    let (mut ann, mut bob) = (connect("ann"), connect("bob"));
    assert_eq!(code(&mut bob, "CREATE TEMPORARY TABLE a (id INT)"), 1044);
    assert_eq!(
        code(&mut ann, "CREATE TEMPORARY TABLE mysql.a (id INT)"),
        1044
    );
    assert_eq!(code(&mut ann, "CREATE TEMPORARY TABLE a LIKE secret"), 1142);
    assert_eq!(
        code(&mut ann, "CREATE TEMPORARY TABLE a SELECT * FROM secret"),
        1142
    );
    assert_eq!(code(&mut ann, "SELECT * FROM secret"), 1142);
    // Everything with one's own.
    run(
        &mut ann,
        &[
            "CREATE TEMPORARY TABLE secret (id INT PRIMARY KEY, word VARCHAR(20))",
            "INSERT INTO secret VALUES (1, 'own'), (2, 'own')",
            "REPLACE INTO secret VALUES (2, 'two')",
            "INSERT INTO secret VALUES (2, 'x') ON DUPLICATE KEY UPDATE word = CONCAT(word, '!')",
            "UPDATE secret SET word = 'new' WHERE id = 1",
            "UPDATE secret a JOIN secret b USING (id) SET a.word = b.word",
            "DELETE FROM secret WHERE id = 1",
            "DELETE a FROM secret a WHERE a.id = 5",
            "ALTER TABLE secret ADD n INT, ADD INDEX (word)",
            "CREATE INDEX by_n ON secret (n)",
            "DROP INDEX by_n ON secret",
            "ANALYZE TABLE secret",
            "CHECK TABLE secret",
            "LOCK TABLES secret WRITE",
            "UNLOCK TABLES",
            "SHOW CREATE TABLE secret",
            "SHOW INDEX FROM secret",
            "SHOW COLUMNS FROM secret",
            "EXPLAIN SELECT * FROM secret",
        ],
    );
    let read = "SELECT word FROM secret WHERE id = 2";
    assert_eq!(query_text(&mut ann, read), ["two!"]);
    assert_eq!(
        query_text(&mut ann, &format!("{read} FOR UPDATE")),
        ["two!"]
    );
    // Views still read the hidden table, which needs its own privileges.
    for statement in [
        "SELECT * FROM asking",
        "INSERT INTO asking VALUES (5, 'five')",
        "UPDATE asking SET word = 'x'",
        "DELETE FROM asking",
        "SELECT * FROM changing",
    ] {
        let code = code(&mut ann, statement);
        assert!([1142, 1356].contains(&code), "{statement}: {code}");
    }
    assert_eq!(query_text(&mut root, "SELECT word FROM secret"), ["sesame"]);
    assert_eq!(code(&mut ann, "RENAME TABLE secret TO other"), 1142);
    assert_eq!(
        code(&mut ann, "ALTER TABLE secret RENAME TO mysql.other"),
        1044
    );
    run(
        &mut ann,
        &["ALTER TABLE secret RENAME TO other", "TRUNCATE TABLE other"],
    );
    assert_eq!(code(&mut ann, read), 1142);
    assert_eq!(code(&mut ann, "DROP TABLE secret"), 1142);
    assert_eq!(code(&mut ann, "DROP TEMPORARY TABLE secret"), 1051);
    run(&mut ann, &["DROP TABLE other"]);
    // The table of accounts is not read under the name of a temporary one.
    run(
        &mut root,
        &[
            "CREATE DATABASE mysql",
            "GRANT CREATE TEMPORARY TABLES ON mysql.* TO ann",
        ],
    );
    run(&mut ann, &["CREATE TEMPORARY TABLE mysql.user (id INT)"]);
    assert_eq!(
        query_text(&mut ann, "SELECT COUNT(*) FROM mysql.user"),
        ["0"]
    );
}

#[test]
fn a_view_means_the_tables_of_all_sessions() {
    let (_server, mut one, mut two) = two_sessions();
    run(
        &mut one,
        &[
            "CREATE VIEW v AS SELECT id, n FROM t WHERE n > 0 WITH CHECK OPTION",
            "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, word VARCHAR(10))",
            "INSERT INTO t VALUES (1, 'own')",
            "INSERT INTO v VALUES (4, 40)",
            "INSERT INTO v VALUES (4, 40) ON DUPLICATE KEY UPDATE n = n + 1",
            "UPDATE v SET n = n + 1 WHERE id = 1",
            "DELETE FROM v WHERE id = 2",
            "REPLACE INTO v VALUES (3, 33)",
            "UPDATE v JOIN t ON t.id = v.id SET v.n = v.n + 100, t.word = 'both'",
        ],
    );
    assert_eq!(
        query_text(&mut one, "SELECT * FROM v ORDER BY id"),
        ["1\t111", "3\t33", "4\t41"]
    );
    assert_eq!(
        query_text(&mut two, "SELECT * FROM t ORDER BY id"),
        ["1\t111", "3\t33", "4\t41"]
    );
    assert_eq!(query_text(&mut one, "SELECT * FROM t"), ["1\tboth"]);
    assert_eq!(code(&mut one, "CREATE VIEW w AS SELECT * FROM t"), 1352);
    assert_eq!(
        code(
            &mut one,
            "CREATE VIEW w AS SELECT 1 FROM v WHERE EXISTS (SELECT 1 FROM t)"
        ),
        1352
    );
    run(&mut one, &["CREATE VIEW w AS SELECT * FROM v"]);
    assert_eq!(query_text(&mut one, "SELECT COUNT(*) FROM w"), ["3"]);
}

#[test]
fn a_session_has_many_temporary_tables_and_not_too_many() {
    let (_server, mut one, _two) = two_sessions();
    for number in 0..1000 {
        run(
            &mut one,
            &[&format!("CREATE TEMPORARY TABLE many_{number} (id INT)")],
        );
    }
    assert_eq!(
        code(&mut one, "CREATE TEMPORARY TABLE one_more (id INT)"),
        1041
    );
    run(
        &mut one,
        &[
            "DROP TABLE many_0, many_999",
            "CREATE TEMPORARY TABLE one_more (id INT)",
        ],
    );
    assert_eq!(error_of(one.query_drop("SELECT * FROM many_0")).0, 1146);
    one.reset().expect("a reset");
    run(
        &mut one,
        &["USE test", "CREATE TEMPORARY TABLE one_more (id INT)"],
    );
}

/// A process is killed while temporary tables have committed and open changes. Recovery redoes and undoes them, and
/// then nothing of them is left.
#[test]
fn a_killed_server_leaves_no_temporary_table() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut server, port) = serve(&directory);
    let mut one = connect(port);
    run(
        &mut one,
        &[
            "CREATE DATABASE test",
            "USE test",
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(300))",
            "INSERT INTO t (s) VALUES (REPEAT('a', 300)), (REPEAT('b', 300))",
        ],
    );
    for _ in 0..9 {
        run(&mut one, &["INSERT INTO t (s) SELECT s FROM t"]);
    }
    let mut others: Vec<Conn> = (0..4).map(|_| connect(port)).collect();
    for (number, other) in others.iter_mut().enumerate() {
        run(
            other,
            &[
                "USE test",
                // None of them waits for another.
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "CREATE TEMPORARY TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(300), l LONGTEXT, KEY (s))",
                "INSERT INTO big (s) SELECT s FROM t",
                "CREATE TEMPORARY TABLE gone LIKE t",
                "BEGIN",
                "INSERT INTO gone (s) SELECT s FROM t",
                "UPDATE big SET l = REPEAT('l', 20000) WHERE id < 20",
                "DELETE FROM big WHERE id > 500",
                &format!("UPDATE t SET s = 'open' WHERE id = {}", number + 1),
                "DROP TEMPORARY TABLE gone",
            ],
        );
        if number % 2 == 0 {
            run(
                other,
                &[
                    "COMMIT",
                    "ALTER TABLE big DROP COLUMN l",
                    "BEGIN",
                    "DELETE FROM big",
                ],
            );
        }
    }
    // What they did is in the log.
    run(&mut one, &["INSERT INTO t (s) VALUES ('last')"]);
    server.kill().expect("the process is ours");
    server.wait().expect("it ends");
    let said = stdout_of(&check(directory.path()));
    assert!(said.ends_with("no problem found\n"), "{said}");
    let (mut server, port) = serve(&directory);
    let mut one = connect(port);
    assert_eq!(
        query_text(
            &mut one,
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'test'"
        ),
        ["t"]
    );
    assert_eq!(
        query_text(&mut one, "SELECT COUNT(*) FROM test.t"),
        ["1025"]
    );
    server.kill().expect("the process is ours");
    server.wait().expect("it ends");
    let said = stdout_of(&check(directory.path()));
    assert!(said.ends_with("no problem found\n"), "{said}");
}

#[test]
fn a_temporary_table_from_a_query_locks_what_the_query_says() {
    let (_server, mut one, mut two) = two_sessions();
    run(&mut two, &["SET innodb_lock_wait_timeout = 1"]);
    run(
        &mut one,
        &[
            "BEGIN",
            "CREATE TEMPORARY TABLE own SELECT * FROM t WHERE id = 1 FOR UPDATE",
        ],
    );
    let shared = "SELECT n FROM t WHERE id = 1 FOR SHARE NOWAIT";
    assert_eq!(error_of(two.query_drop(shared)).0, 3572);
    run(&mut one, &["COMMIT", "BEGIN"]);
    run(&mut two, &[shared]);
    assert_eq!(query_text(&mut one, "SELECT n FROM t WHERE id = 1"), ["10"]);
    run(&mut two, &["UPDATE t SET n = 11 WHERE id = 1"]);
    // It reads what INSERT .. SELECT would, and keeps that from being changed.
    run(
        &mut one,
        &["CREATE TEMPORARY TABLE newest SELECT * FROM t WHERE id = 1"],
    );
    assert_eq!(query_text(&mut one, "SELECT n FROM newest"), ["11"]);
    assert_eq!(code(&mut two, "UPDATE t SET n = 12 WHERE id = 1"), 1205);
    run(&mut one, &["COMMIT"]);
    run(&mut two, &["UPDATE t SET n = 12 WHERE id = 1"]);
    for kind in ["", "TEMPORARY"] {
        let skips = format!("CREATE {kind} TABLE skips SELECT * FROM t FOR UPDATE SKIP LOCKED");
        assert_eq!(code(&mut one, &skips), 1235);
    }
    // Outside of a transaction, nothing stays locked.
    run(
        &mut one,
        &["CREATE TEMPORARY TABLE free SELECT * FROM t FOR UPDATE"],
    );
    run(&mut two, &["UPDATE t SET n = 13 WHERE id = 1"]);
    assert_eq!(
        query_text(&mut one, "SELECT n FROM free WHERE id = 1"),
        ["12"]
    );
    run(&mut one, &["SET SESSION TRANSACTION READ ONLY"]);
    for statement in [
        "CREATE TEMPORARY TABLE no (id INT)",
        "ALTER TABLE free ADD m INT",
        "TRUNCATE TABLE free",
        "DROP TABLE free",
        "DROP TEMPORARY TABLE free",
    ] {
        assert_eq!(code(&mut one, statement), 1792, "{statement}");
    }
    run(&mut one, &["UPDATE free SET n = 0"]);
}

/// Rules of the rewriter come from the table of all sessions.
#[test]
fn rewrite_rules_are_not_read_from_a_temporary_table() {
    let (server, mut root, _two) = two_sessions();
    run(
        &mut root,
        &[
            "INSTALL PLUGIN rewriter SONAME 'rewriter.so'",
            "CREATE USER ann",
            "GRANT CREATE TEMPORARY TABLES ON query_rewrite.* TO ann",
            "GRANT EXECUTE ON query_rewrite.* TO ann",
        ],
    );
    let mut ann = Conn::new(server.options().user(Some("ann"))).expect("no password");
    run(
        &mut ann,
        &[
            "CREATE TEMPORARY TABLE query_rewrite.rewrite_rules (id INT, pattern VARCHAR(500), pattern_database VARCHAR(20), replacement VARCHAR(500), enabled ENUM('YES', 'NO'), message VARCHAR(1000), pattern_digest VARCHAR(64), normalized_pattern VARCHAR(100))",
            "INSERT INTO query_rewrite.rewrite_rules VALUES (1, 'SELECT ?', NULL, 'SELECT ? + 1', 'YES', NULL, NULL, NULL)",
            "CALL query_rewrite.flush_rewrite_rules()",
        ],
    );
    for connection in [&mut ann, &mut root] {
        assert_eq!(query_text(connection, "SELECT 1"), ["1"]);
    }
    assert_eq!(
        query_text(&mut ann, "SELECT id FROM query_rewrite.rewrite_rules"),
        ["1"]
    );
}
