//! Generated columns where one session and one statement do not tell: restarts and kills, prepared statements, files,
//! and many rows at once. What single statements do is in `sqllogic/generated_columns.slt`.

use std::fs;

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_sql::EngineOptions;

use crate::command_line::{check, connect, serve, stdout_of};
use crate::harness::{TestServer, error_of, query_text};

const TABLE: &str = "CREATE TABLE t (a INT, b INT AS (a + 1) STORED NOT NULL UNIQUE, \
    c VARCHAR(20) AS (concat('c', b)) COMMENT 'text', KEY (c))";

fn run(connection: &mut Conn, sql: &str) {
    connection.query_drop(sql).expect(sql);
}

fn code_of(connection: &mut Conn, sql: &str) -> u16 {
    error_of(connection.query_drop(sql)).0
}

/// Rows whose generated columns are not what their expressions say.
fn wrong_rows(connection: &mut Conn) -> Vec<String> {
    query_text(
        connection,
        "SELECT * FROM t WHERE NOT (b <=> a + 1 AND c <=> concat('c', a + 1))",
    )
}

#[test]
fn definitions_and_values_outlive_a_restart() {
    let mut server = TestServer::start();
    let mut connection = server.connect_to_new("shop");
    run(&mut connection, TABLE);
    run(&mut connection, "INSERT INTO t (a) VALUES (1), (2)");
    let shown = query_text(&mut connection, "SHOW CREATE TABLE t");
    assert_eq!(
        shown,
        ["t\tCREATE TABLE `t` (\n  \
          `a` int DEFAULT NULL,\n  \
          `b` int GENERATED ALWAYS AS ((`a` + 1)) STORED NOT NULL,\n  \
          `c` varchar(20) GENERATED ALWAYS AS (concat('c', `b`)) VIRTUAL COMMENT 'text',\n  \
          UNIQUE KEY `b` (`b`),\n  \
          KEY `c` (`c`)\n\
          ) ENGINE=Sheaf DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"]
    );
    drop(connection);
    server.restart();
    let mut connection = server.connect();
    run(&mut connection, "USE shop");
    assert_eq!(query_text(&mut connection, "SHOW CREATE TABLE t"), shown);
    run(&mut connection, "INSERT INTO t (a) VALUES (3)");
    run(&mut connection, "UPDATE t SET a = 10 WHERE c = 'c2'");
    assert_eq!(
        query_text(&mut connection, "SELECT * FROM t ORDER BY a"),
        ["2\t3\tc3", "3\t4\tc4", "10\t11\tc11"]
    );
    assert_eq!(
        code_of(&mut connection, "ALTER TABLE t DROP COLUMN a"),
        3108
    );
    // What was shown makes the same table.
    let statement = shown[0].replacen("t\tCREATE TABLE `t`", "CREATE TABLE `u`", 1);
    run(&mut connection, &statement);
    assert_eq!(
        query_text(&mut connection, "SHOW CREATE TABLE u")[0].replace("`u`", "`t`"),
        shown[0].replacen("t\t", "u\t", 1)
    );
}

#[test]
fn rows_are_whole_after_a_kill() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut server, port) = serve(&directory);
    let mut connection = connect(port);
    run(&mut connection, "CREATE DATABASE shop");
    run(&mut connection, "USE shop");
    run(&mut connection, TABLE);
    let values: Vec<String> = (0..1000).map(|a| format!("({a})")).collect();
    let insert = format!("INSERT INTO t (a) VALUES {}", values.join(", "));
    run(&mut connection, &insert);
    run(&mut connection, "UPDATE t SET a = a + 5000 WHERE b < 500");
    run(&mut connection, "BEGIN");
    run(&mut connection, "UPDATE t SET a = a + 50000");
    server.kill().expect("the process is ours");
    server.wait().expect("it ends");
    let said = stdout_of(&check(directory.path()));
    assert!(said.ends_with("no problem found\n"), "{said}");
    let (mut server, port) = serve(&directory);
    let mut connection = connect(port);
    run(&mut connection, "USE shop");
    assert_eq!(wrong_rows(&mut connection), [""; 0]);
    let through_index = "SELECT COUNT(*), MAX(b) FROM t FORCE INDEX (b)";
    assert_eq!(query_text(&mut connection, through_index), ["1000\t5499"]);
    assert_eq!(
        code_of(&mut connection, "INSERT INTO t VALUES (1, 2, 'c')"),
        3105
    );
    server.kill().expect("the process is ours");
    server.wait().expect("it ends");
}

#[test]
fn prepared_statements_compute_them_for_each_run() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("shop");
    run(&mut connection, TABLE);
    let insert = connection
        .prep("INSERT INTO t (a, b) VALUES (?, DEFAULT)")
        .expect("it is right");
    for a in 1..4 {
        connection.exec_drop(&insert, (a,)).expect("a row");
    }
    let update = connection
        .prep("UPDATE t SET a = ? WHERE b = ?")
        .expect("it is right");
    for (a, b) in [(10, 2), (20, 3), (30, 99)] {
        connection
            .exec_drop(&update, (a, b))
            .expect("a row, or none");
    }
    let upsert = "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = VALUES(b) + ?";
    connection
        .exec_drop(upsert, (10, 100))
        .expect("it conflicts");
    connection
        .exec_drop(upsert, (10, 100))
        .expect("it does not");
    assert_eq!(
        query_text(&mut connection, "SELECT * FROM t ORDER BY a"),
        ["3\t4\tc4", "10\t11\tc11", "20\t21\tc21", "111\t112\tc112"]
    );
    let given = connection.exec_drop("INSERT INTO t (a, b) VALUES (?, ?)", (1, 1));
    assert_eq!(error_of(given).0, 3105);
    let given = connection.exec_drop("UPDATE t SET b = ?", (1,));
    assert_eq!(error_of(given).0, 3105);
}

#[test]
fn sessions_that_share_a_plan_compute_by_their_own_modes() {
    let server = TestServer::start();
    let mut strict = server.connect_to_new("shop");
    run(
        &mut strict,
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TINYINT AS (a * 100), c INT AS (7 / a))",
    );
    run(&mut strict, "INSERT INTO t (id, a) VALUES (1, 1)");
    let mut lenient = server.connect();
    run(&mut lenient, "USE shop");
    run(&mut lenient, "SET sql_mode = ''");
    let update = |a: u8| format!("UPDATE t SET a = {a} WHERE id = 1");
    let row = |connection: &mut Conn| query_text(connection, "SELECT a, b, c FROM t");
    for _ in 0..2 {
        assert_eq!(code_of(&mut strict, &update(2)), 1264);
        assert_eq!(code_of(&mut strict, &update(0)), 1365);
        assert_eq!(row(&mut strict), ["1\t100\t7"]);
        run(&mut lenient, &update(2));
        assert_eq!(row(&mut strict), ["2\t127\t4"]);
        run(&mut lenient, &update(0));
        assert_eq!(row(&mut strict), ["0\t0\tNULL"]);
        run(&mut strict, &update(1));
    }
}

#[test]
fn many_rows_fail_at_the_first_that_does() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("shop");
    run(&mut connection, TABLE);
    let rows = |values: &[i64]| {
        let values: Vec<String> = values.iter().map(|a| format!("({a})")).collect();
        format!("INSERT INTO t (a) VALUES {}", values.join(", "))
    };
    let message = |connection: &mut Conn, sql: &str| match connection.query_drop(sql) {
        Err(mysql::Error::MySqlError(error)) => error.message,
        other => panic!("{other:?}"),
    };
    let mut values: Vec<i64> = (0..3000).collect();
    // The conflict comes before the value that does not fit, and behind it.
    (values[1000], values[1001]) = (999, 2_147_483_647);
    let said = message(&mut connection, &rows(&values));
    assert_eq!(said, "Duplicate entry '1000' for key 't.b'");
    values.swap(1000, 1001);
    let said = message(&mut connection, &rows(&values));
    assert_eq!(said, "Out of range value for column 'b' at row 1001");
    assert_eq!(query_text(&mut connection, "SELECT COUNT(*) FROM t"), ["0"]);
    let values: Vec<i64> = (0..3000).collect();
    run(&mut connection, &rows(&values));
    assert_eq!(wrong_rows(&mut connection), [""; 0]);
    // Of an empty table, a bulk load; of one with rows, row by row.
    for _ in 0..2 {
        run(&mut connection, "CREATE TABLE IF NOT EXISTS u LIKE t");
        run(
            &mut connection,
            "INSERT INTO u (a) SELECT a + (SELECT COUNT(*) FROM u) FROM t",
        );
    }
    assert_eq!(
        query_text(
            &mut connection,
            "SELECT COUNT(*), SUM(b = a + 1 AND c = concat('c', b)) FROM u"
        ),
        ["6000\t6000"]
    );
}

#[test]
fn files_do_not_give_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = EngineOptions {
        secure_file_priv: Some(directory.path().to_path_buf()),
        ..EngineOptions::default()
    };
    let server = TestServer::start_with(options, |_, _| {});
    let mut connection = server.connect_to_new("shop");
    run(&mut connection, TABLE);
    let load = |name: &str, text: &str, rest: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("a file");
        format!("LOAD DATA INFILE '{}' INTO TABLE t {rest}", path.display())
    };
    let all = load("all", "1\t2\tc2\n", "");
    assert_eq!(code_of(&mut connection, &all), 3105);
    let set = load("one", "1\n", "(a) SET b = 5");
    assert_eq!(code_of(&mut connection, &set), 3105);
    for number in 0..2 {
        let text: String = (0..700)
            .map(|a| format!("{}\n", 1000 * number + a))
            .collect();
        let some = load(&format!("some{number}"), &text, "(a)");
        run(&mut connection, &some);
    }
    assert_eq!(
        query_text(&mut connection, "SELECT COUNT(*) FROM t"),
        ["1400"]
    );
    assert_eq!(wrong_rows(&mut connection), [""; 0]);
    let variable = load("variable", "5000\t7\n", "(a, @b)");
    run(&mut connection, &variable);
    assert_eq!(
        query_text(&mut connection, "SELECT * FROM t WHERE a = 5000"),
        ["5000\t5001\tc5001"]
    );
}
