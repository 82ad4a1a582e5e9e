//! The clients that people use, where they are installed.
//!
//! A client that is missing is named on the output; `SHEAF_REQUIRE_CLIENTS=1` makes that a failure instead.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::harness::TestServer;

/// Is the client there? The first word of `probe` is its program.
pub fn installed(client: &str, probe: &[&str]) -> bool {
    let found = Command::new(probe[0])
        .args(&probe[1..])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        assert!(
            std::env::var_os("SHEAF_REQUIRE_CLIENTS").is_none_or(|value| value != "1"),
            "{client} is required and not installed"
        );
        // Not the captured standard output: this must be seen.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {client} is not installed");
    }
    found
}

pub fn mariadb(port: u16, arguments: &[&str]) -> Output {
    Command::new("mariadb")
        .args([
            "--no-defaults",
            "-h",
            "127.0.0.1",
            "-u",
            "root",
            "--local-infile=1",
        ])
        .arg(format!("-P{port}"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("mariadb runs")
}

fn stdout_of(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_mariadb_client_works() {
    if !installed("the mariadb client", &["mariadb", "--version"]) {
        return;
    }
    let server = TestServer::start();
    stdout_of(&mariadb(
        server.port(),
        &[
            "-e",
            "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(20), \
             price DECIMAL(8,2)); INSERT INTO orders VALUES (1, 'sheaf', 9.5), (2, NULL, 0)",
        ],
    ));
    // Without -A the client reads the names of all columns first.
    let output = mariadb(
        server.port(),
        &["-t", "shop", "-e", "SELECT * FROM orders ORDER BY id"],
    );
    assert_eq!(
        stdout_of(&output),
        "+----+-------+-------+\n\
         | id | item  | price |\n\
         +----+-------+-------+\n\
         |  1 | sheaf |  9.50 |\n\
         |  2 | NULL  |  0.00 |\n\
         +----+-------+-------+\n"
    );
    let output = mariadb(server.port(), &["shop", "-e", "SELECT nothing FROM orders"]);
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("ERROR 1054 (42S22) at line 1: Unknown column 'nothing'"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_mariadb_client_sends_a_file() {
    if !installed("the mariadb client", &["mariadb", "--version"]) {
        return;
    }
    let server = TestServer::start();
    let file = server.directory().path().join("orders.csv");
    let lines: String = (0..5000)
        .map(|i| format!("{i},\"item {i}\",{i}.25\n"))
        .collect();
    std::fs::write(&file, lines).expect("the directory is ours");
    let sql = format!(
        "CREATE DATABASE shop; USE shop;
         CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(20), price DECIMAL(8,2), KEY (item));
         LOAD DATA LOCAL INFILE '{}' INTO TABLE orders FIELDS TERMINATED BY ',' ENCLOSED BY '\"';
         SELECT COUNT(*), SUM(price) FROM orders; SELECT id FROM orders WHERE item = 'item 4321'",
        file.display()
    );
    let output = mariadb(server.port(), &["-N", "-e", &sql]);
    assert_eq!(stdout_of(&output), "5000\t12498750.00\n4321\n");
}

const PYMYSQL_SCRIPT: &str = r#"
import sys, datetime, decimal, pymysql
connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
cursor = connection.cursor()
cursor.execute("CREATE DATABASE python")
cursor.execute("USE python")
cursor.execute("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20), c DECIMAL(8,2), d DATETIME, e TIME, f DOUBLE)")
count = cursor.executemany(
    "INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s)",
    [(1, "naïve 'quoted'", decimal.Decimal("1.50"), datetime.datetime(2024, 2, 29, 12, 0), datetime.timedelta(hours=-30), 0.1),
     (2, None, None, None, None, None)])
assert count == 2, count
cursor.execute("SELECT * FROM t ORDER BY a")
rows = cursor.fetchall()
assert rows == (
    (1, "naïve 'quoted'", decimal.Decimal("1.50"), datetime.datetime(2024, 2, 29, 12, 0), datetime.timedelta(hours=-30), 0.1),
    (2, None, None, None, None, None)), rows
try:
    cursor.execute("INSERT INTO t (a) VALUES (1)")
    raise AssertionError("a duplicate was accepted")
except pymysql.err.IntegrityError as error:
    assert error.args[0] == 1062, error
connection.ping()
connection.select_db("python")
print("ok")
"#;

#[test]
fn pymysql_works() {
    if !installed("PyMySQL", &["python3", "-c", "import pymysql"]) {
        return;
    }
    let server = TestServer::start();
    let output = Command::new("python3")
        .args(["-c", PYMYSQL_SCRIPT, &server.port().to_string()])
        .output()
        .expect("python3 runs");
    assert_eq!(stdout_of(&output), "ok\n");
}
