//! The clients that people use, where they are installed.
//!
//! A client that is missing is named on the output; `SHEAF_REQUIRE_CLIENTS=1` makes that a failure instead.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use mysql::prelude::Queryable;

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

/// Every byte and every escape, in text and in columns of bytes, as statements and as rows.
const BYTES_SCRIPT: &str = r#"
import sys
import pymysql
values = [bytes(range(256)), b"\\", b"'", b"\\'\"\0\n\r\x1a%_\xff", b"", b"\xff\\", b"\xc3", b"\xe2\x82"]
connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
cursor = connection.cursor()
cursor.execute("create database bytes")
connection.select_db("bytes")
cursor.execute("create table t (id int primary key, b blob, v varbinary(300), s varchar(20))")
text = "\u00e9\u20ac\U0001F600'\\"
for id, value in enumerate(values):
    cursor.execute("insert into t values (%s, %s, %s, %s)", (id, value, value, text))
connection.commit()
cursor.execute("select b, v, s from t order by id")
assert list(cursor.fetchall()) == [(value, value, text) for value in values]
for id, value in enumerate(values):
    cursor.execute("select id from t where b = %s and v = %s", (value, value))
    assert cursor.fetchall() == ((id,),), value
# Without an introducer, as drivers of C send it, and with the end of the string.
for sql, expected in [
    (b"select hex('a\x80' 'b\\n')", "6180620A"),
    (b"select hex(_binary 'a\xff')\0", "61FF"),
    (b"select hex(_latin1'\xe9')", "C3A9"),
    (b"select 'b' /* \xff */", "b"),
    (b"update t set s = 'x' where b = '\xc3';\0", None),
]:
    connection._execute_command(3, sql)
    connection._read_query_result()
    rows = connection._result.rows
    assert (rows and rows[0][0]) == expected, (sql, rows)
for sql, code in [
    (b"insert into t values (90, 'a\xff', '', 'a\xff')", 1366),
    (b"insert into t values (90, 'a\xff', '', _binary 'a\xff')", 1366),
    (b"select 1 as `a\xff`", 1300),
    (b"select 'a\xff", 1064),
    (b"select _gbk'\x81\x40'", 1115),
]:
    try:
        connection._execute_command(3, sql)
        connection._read_query_result()
        raise AssertionError(sql)
    except pymysql.err.Error as error:
        assert error.args[0] == code, (sql, error)
print("ok")
"#;

#[test]
fn pymysql_sends_bytes() {
    if !installed("PyMySQL", &["python3", "-c", "import pymysql"]) {
        return;
    }
    let server = TestServer::start();
    let output = Command::new("python3")
        .args(["-c", BYTES_SCRIPT, &server.port().to_string()])
        .output()
        .expect("python3 runs");
    assert_eq!(stdout_of(&output), "ok\n");
}

/// A client of latin1 sends and gets latin1; what is kept is the same text for all.
const LATIN1_SCRIPT: &str = r#"
import sys
import pymysql
def connect(charset):
    return pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset=charset, autocommit=True)
latin1, utf8 = connect("latin1"), connect("utf8mb4")
old, new = latin1.cursor(), utf8.cursor()
old.execute("create database `w\u00f6rter`")
for connection in (latin1, utf8):
    connection.select_db("w\u00f6rter")
old.execute("create table t (id int primary key, s varchar(20) default '\u00e9', b blob, e enum('\u00e9', 'z\u00e8'))")
old.execute("insert into t values (1, '\u00e9\u20ac', '\u00e9', 'z\u00e8')")
old.execute("insert into t (id, b) values (2, %s)", (b"\x00\xe9\xff",))
old.execute("update t set e = '\u00e9' where s = '\u00e9'")
new.execute("insert into t values (3, '\u4e2d', '\u00e9', null)")
new.execute("select id, s, hex(b), e from t order by id")
assert list(new.fetchall()) == [
    (1, "\u00e9\u20ac", "E9", "z\u00e8"), (2, "\u00e9", "00E9FF", "\u00e9"), (3, "\u4e2d", "C3A9", None)
], "utf8mb4"
old.execute("select id, s, hex(b), e as `gr\u00f6\u00dfe` from t order by id")
assert old.description[3][0] == "gr\u00f6\u00dfe"
assert list(old.fetchall()) == [
    (1, "\u00e9\u20ac", "E9", "z\u00e8"), (2, "\u00e9", "00E9FF", "\u00e9"), (3, "?", "C3A9", None)
], "latin1"
old.execute("select s from t where id = 1")
assert old.fetchall() == (("\u00e9\u20ac",),)
try:
    connect("gbk")
    raise AssertionError("gbk")
except pymysql.err.Error as error:
    assert error.args[0] == 1115, error
print("ok")
"#;

#[test]
fn a_client_of_latin1_is_understood() {
    if !installed("PyMySQL", &["python3", "-c", "import pymysql"]) {
        return;
    }
    let server = TestServer::start();
    let output = Command::new("python3")
        .args(["-c", LATIN1_SCRIPT, &server.port().to_string()])
        .output()
        .expect("python3 runs");
    assert_eq!(stdout_of(&output), "ok\n");
}

/// The output of mariadb-dump without comments, which name databases and times.
fn dump(port: u16, database: &str) -> Vec<u8> {
    let output = Command::new("mariadb-dump")
        .args([
            "--no-defaults",
            "-h",
            "127.0.0.1",
            "-u",
            "root",
            "--skip-comments",
        ])
        .arg(format!("-P{port}"))
        .arg(database)
        .output()
        .expect("mariadb-dump runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

#[test]
fn a_dump_of_bytes_is_what_it_was_loaded_from() {
    let has_dump = installed("mariadb-dump", &["mariadb-dump", "--version"]);
    if !has_dump || !installed("the mariadb client", &["mariadb", "--version"]) {
        return;
    }
    let server = TestServer::start();
    let mut root = server.connect_to_new("first");
    root.query_drop("CREATE DATABASE second")
        .expect("it is new");
    root.query_drop("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, k BINARY(8), s VARCHAR(60))")
        .expect("it is new");
    let mut state = 7_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize
    };
    for id in 0..200_usize {
        let length = random() % 2_000;
        let bytes: Vec<u8> = (0..length).map(|_| random() as u8).collect();
        let key: Vec<u8> = (0..8).map(|_| random() as u8).collect();
        let characters = [
            'a',
            '\u{e9}',
            '\u{20ac}',
            '\u{1f600}',
            '\'',
            '\\',
            '"',
            '\n',
            '\0',
            '%',
        ];
        let text: String = (0..random() % 60)
            .map(|_| characters[random() % 10])
            .collect();
        root.exec_drop("INSERT INTO t VALUES (?, ?, ?, ?)", (id, bytes, key, text))
            .expect("it fits");
    }
    let first = dump(server.port(), "first");
    assert!(std::str::from_utf8(&first).is_err(), "bytes between quotes");
    let mut client = Command::new("mariadb")
        .args(["--no-defaults", "-h", "127.0.0.1", "-u", "root"])
        .arg(format!("-P{}", server.port()))
        .arg("second")
        .stdin(Stdio::piped())
        .spawn()
        .expect("mariadb runs");
    let mut input = client.stdin.take().expect("it is piped");
    input.write_all(&first).expect("mariadb reads");
    drop(input);
    assert!(client.wait().expect("it ends").success());
    assert!(dump(server.port(), "second") == first, "the dumps differ");
}
