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
    (b"select hex(_latin1'\xe9')", "E9"),
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
    (b"select _swe7'\x81\x40'", 1115),
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
for charset, text in [("cp1251", "\u0436\u20ac"), ("koi8r", "\u0436"), ("latin2", "\u0105"), ("greek", "\u03b1")]:
    cursor = connect(charset).cursor()
    cursor.execute("select '" + text + "' as `" + text + "`, concat('" + text + "', _utf8mb4 x'E4B8AD')")
    assert cursor.description[0][0] == text, charset
    assert cursor.fetchall() == ((text, text + "?"),), charset
# The second byte of some of these is a backslash.
for charset, codec, text in [
    ("gbk", "gbk", "\u8aa0"), ("sjis", "shift_jis", "\u8868"), ("big5", "big5", "\u529f"), ("ujis", "euc_jp", "\u65e5"),
    ("euckr", "euc_kr", "\ud55c"), ("gb18030", "gb18030", "\U0001F600"),
]:
    cursor = connect(charset).cursor()
    cursor.execute("select '" + text + "' as `" + text + "`, concat('" + text + "\\'', _utf8mb4 x'C3BF')")
    assert cursor.description[0][0] == text, charset
    last = "\u00ff" if charset in ("gb18030", "ujis") else "?"
    assert cursor.fetchall() == ((text, text + "'" + last),), charset
    cursor.execute("create database w_" + charset)
    cursor.execute("create table w_" + charset + ".t (s varchar(9), b varbinary(9))")
    cursor.execute("insert into w_" + charset + ".t values ('" + text + "\\'', '" + text + "')")
    new.execute("select s, b from w_" + charset + ".t")
    assert new.fetchall() == ((text + "'", text.encode(codec)),), charset
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

/// Dumps a database of one server into another one, and compares the rows.
#[test]
fn a_dump_brings_every_value_to_another_server() {
    let has_dump = installed("mariadb-dump", &["mariadb-dump", "--version"]);
    if !has_dump || !installed("the mariadb client", &["mariadb", "--version"]) {
        return;
    }
    let (from, into) = (TestServer::start(), TestServer::start());
    let mut source = from.connect_to_new("shop");
    for sql in [
        "CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL DEFAULT 'it''s', UNIQUE KEY (name))",
        "INSERT INTO parent (name) VALUES ('a'), ('b\\'c'), ('Ωß€😀')",
        "DELETE FROM parent WHERE id = 2",
        "CREATE TABLE everything (id BIGINT UNSIGNED PRIMARY KEY, p INT, d DECIMAL(30,10), f FLOAT, g DOUBLE, \
         y YEAR, da DATE, dt DATETIME(6), ti TIME(3), ts TIMESTAMP NULL, e ENUM('x','y''z'), c CHAR(5), \
         bi BINARY(4), vb VARBINARY(300), lb LONGBLOB, t TEXT, KEY (dt, e), CHECK (id > 0), \
         FOREIGN KEY (p) REFERENCES parent (id))",
        "INSERT INTO everything VALUES (18446744073709551615, 1, -12345678901234567890.0123456789, 1.5e-10, 0.1, \
         2024, '2024-02-29', '2024-02-29 12:30:45.123456', '-838:59:59.000', '2024-02-29 12:30:45', 'y''z', 'x ', \
         0x00FF, 0x00271A225C, NULL, 'a\\0\\Z\\\\\\'\"\\n\\r\\t'), (1, NULL, 0, 0, 1.7976931348623157e308, 1901, \
         '1000-01-01', '9999-12-31 23:59:59.999999', '00:00:00.001', NULL, 'x', '', '', '', '', '')",
        "CREATE TABLE indexed (id INT PRIMARY KEY, a INT, name VARCHAR(20), UNIQUE KEY u ((a * 2 + 1)), \
         KEY i ((LOWER(name)) DESC, a, (CASE WHEN a > 1 THEN 'it''s' END)))",
        "INSERT INTO indexed VALUES (1, 5, 'A'), (2, NULL, NULL), (3, -7, 'b')",
        "CREATE TABLE blobs (id INT PRIMARY KEY, b LONGBLOB)",
    ] {
        source.query_drop(sql).expect(sql);
    }
    let mut state = 11_u64;
    for id in 0..40_usize {
        let length = if id == 39 { 1 << 20 } else { id * id * 7 };
        let byte = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        let bytes: Vec<u8> = (0..length).map(byte).collect();
        source
            .exec_drop("INSERT INTO blobs VALUES (?, ?)", (id, bytes))
            .expect("it fits");
    }
    let mut target = into.connect();
    for options in [
        &[][..],
        &["--hex-blob"],
        &[
            "--single-transaction",
            "--complete-insert",
            "--skip-extended-insert",
        ],
        &["--compact", "--no-autocommit", "--order-by-primary"],
    ] {
        target
            .query_drop("DROP DATABASE IF EXISTS shop")
            .expect("it goes");
        let mut dumping = Command::new("mariadb-dump")
            .args(["--no-defaults", "-h", "127.0.0.1", "-u", "root"])
            .arg(format!("-P{}", from.port()))
            .args(options)
            .args(["--databases", "shop"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("mariadb-dump runs");
        let text = dumping.stdout.take().expect("it is piped");
        // A dump that is compact does not say that parents may come after their children.
        let loading = Command::new("mariadb")
            .args([
                "--no-defaults",
                "-h",
                "127.0.0.1",
                "-u",
                "root",
                "--binary-mode",
            ])
            .args(["--init-command=SET foreign_key_checks=0"])
            .arg(format!("-P{}", into.port()))
            .stdin(text)
            .output()
            .expect("mariadb runs");
        stdout_of(&loading);
        assert!(dumping.wait().expect("it ends").success(), "{options:?}");
        for table in ["parent", "everything", "indexed", "blobs"] {
            for sql in [
                format!("SELECT * FROM shop.{table} ORDER BY id"),
                format!("SHOW CREATE TABLE shop.{table}"),
            ] {
                let rows = |connection: &mut mysql::Conn| -> Vec<Vec<mysql::Value>> {
                    let rows: Vec<mysql::Row> = connection.exec(&sql, ()).expect("rows");
                    rows.into_iter().map(mysql::Row::unwrap).collect()
                };
                assert!(
                    rows(&mut source) == rows(&mut target),
                    "{sql} of {options:?}"
                );
            }
        }
    }
}

/// The extension module over the C library: statements with bytes between quotes, and the client's own conversions.
const MYSQLCLIENT_SCRIPT: &str = r#"
import sys, datetime, decimal, MySQLdb
connection = MySQLdb.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
cursor = connection.cursor()
cursor.execute("create database c")
connection.select_db("c")
cursor.execute("create table t (a bigint unsigned primary key, b varchar(20), c decimal(8,2), d datetime(6), e time, f double, g blob)")
all_bytes = bytes(range(256))
first = (18446744073709551615, "na\u00efve 'quoted' \u20ac", decimal.Decimal("1.50"), datetime.datetime(2024, 2, 29, 12, 0, 0, 5),
         datetime.timedelta(hours=30, minutes=5), 0.1, all_bytes)
rows = [first, (2, None, None, None, None, None, None), (3, "", decimal.Decimal("0.00"), datetime.datetime(1000, 1, 1), datetime.timedelta(0), -1e300, b"")]
count = cursor.executemany("insert into t values (%s, %s, %s, %s, %s, %s, %s)", rows)
assert count == 3, count
connection.commit()
cursor.execute("select * from t order by a desc")
found = cursor.fetchall()
assert found == (first, rows[2], rows[1]), found
cursor.execute("select a from t where g = %s and a = %s and d = %s", (all_bytes, first[0], first[3]))
assert cursor.fetchall() == ((first[0],),)
# As drivers do that quote every parameter.
cursor.execute("delete from t where a = %s", ("18446744073709551614",))
assert cursor.rowcount == 0, cursor.rowcount
cursor.execute("update t set b = %s where a = %s", ("x", "18446744073709551615"))
assert cursor.rowcount == 1, cursor.rowcount
try:
    cursor.execute("insert into t (a) values (2)")
    raise AssertionError("a duplicate was accepted")
except MySQLdb.IntegrityError as error:
    assert error.args[0] == 1062, error
streamed = connection.cursor(MySQLdb.cursors.SSCursor)
streamed.execute("select x.a from t x, t y, t z order by 1")
assert len(list(streamed)) == 27
streamed.close()
connection.rollback()
connection.ping()
print("ok")
"#;

#[test]
fn mysqlclient_works() {
    // A distribution's package is for its own Python, which need not be the first one in the path.
    let of_distribution = "/usr/bin/python3";
    let imports = ["-c", "import MySQLdb.cursors"];
    let has_it = Command::new(of_distribution).args(imports).output();
    let python = match has_it.is_ok_and(|output| output.status.success()) {
        true => of_distribution,
        false => "python3",
    };
    if !installed("mysqlclient", &[python, imports[0], imports[1]]) {
        return;
    }
    let server = TestServer::start();
    let script = format!("import MySQLdb.cursors\n{MYSQLCLIENT_SCRIPT}");
    let output = Command::new(python)
        .args(["-c", &script, &server.port().to_string()])
        .output()
        .expect("python3 runs");
    assert_eq!(stdout_of(&output), "ok\n");
}

/// With emulated prepares the text of a statement has all parameters between quotes; then the same with real ones.
const PDO_SCRIPT: &str = r#"
function same($expected, $found) {
    if ($expected !== $found) {
        throw new Exception(var_export($expected, true) . " is not " . var_export($found, true));
    }
}
$bytes = '';
for ($i = 0; $i < 256; $i++) $bytes .= chr($i);
foreach ([true, false] as $emulates) {
    $pdo = new PDO("mysql:host=127.0.0.1;port={$argv[1]};charset=utf8mb4", "root", "",
        [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => $emulates]);
    $pdo->exec("drop database if exists p");
    $pdo->exec("create database p");
    $pdo->exec("use p");
    $pdo->exec("create table t (a bigint primary key, b varchar(20), c decimal(8,2), d datetime, g blob, n int)");
    $insert = $pdo->prepare("insert into t values (:a, :b, :c, :d, :g, :n)");
    $insert->execute(['a' => '97716021308405775', 'b' => "it's \u{20ac}", 'c' => '1.50', 'd' => '2024-02-29 12:00:00', 'g' => $bytes, 'n' => null]);
    $insert->bindValue('a', 97716021308405776, PDO::PARAM_INT);
    $insert->bindValue('b', null, PDO::PARAM_NULL);
    $insert->bindValue('c', '2.25');
    $insert->bindValue('d', null);
    $insert->bindValue('g', "\xff\\'\0", PDO::PARAM_LOB);
    $insert->bindValue('n', true, PDO::PARAM_BOOL);
    $insert->execute();
    $select = $pdo->prepare("select * from t where a = ? and g = ?");
    $select->execute(['97716021308405775', $bytes]);
    $row = $select->fetch(PDO::FETCH_ASSOC);
    same("it's \u{20ac}", $row['b']);
    same('1.50', $row['c']);
    same('2024-02-29 12:00:00', $row['d']);
    same($bytes, $row['g']);
    same(null, $row['n']);
    same(false, $select->fetch());
    $limited = $pdo->prepare("select a from t where a in (?, ?, ?) order by a limit ? offset ?");
    foreach (['97716021308405776', '97716021308405775', '1'] as $at => $value) $limited->bindValue($at + 1, $value);
    $limited->bindValue(4, 1, PDO::PARAM_INT);
    $limited->bindValue(5, 1, PDO::PARAM_INT);
    $limited->execute();
    same([97716021308405776], array_map('intval', $limited->fetchAll(PDO::FETCH_COLUMN)));
    $update = $pdo->prepare("update t set n = ? where a = ?");
    $update->execute(['7', '97716021308405776']);
    same(1, $update->rowCount());
    $delete = $pdo->prepare("delete from t where a = ?");
    $delete->execute(['97716021308405777']);
    same(0, $delete->rowCount());
    try {
        $insert->execute(['a' => '97716021308405775', 'b' => '', 'c' => 0, 'd' => null, 'g' => '', 'n' => 0]);
        throw new Exception("a duplicate was accepted");
    } catch (PDOException $error) {
        same(1062, $error->errorInfo[1]);
    }
    $pdo->beginTransaction();
    $pdo->exec("delete from t");
    $pdo->rollBack();
    same(2, (int) $pdo->query("select count(*) from t")->fetchColumn());
    $pdo->exec("create table counted (id int primary key auto_increment)");
    $pdo->exec("insert into counted values ()");
    same('1', $pdo->lastInsertId());
}
echo "ok\n";
"#;

const MYSQLI_SCRIPT: &str = r#"
function same($expected, $found) {
    if ($expected !== $found) {
        throw new Exception(var_export($expected, true) . " is not " . var_export($found, true));
    }
}
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$db = new mysqli("127.0.0.1", "root", "", "", (int) $argv[1]);
$db->set_charset("utf8mb4");
$db->query("create database m");
$db->select_db("m");
$db->query("create table t (a bigint primary key auto_increment, b varchar(20), g longblob, f double, d date)");
$bytes = '';
for ($i = 0; $i < 256; $i++) $bytes .= chr($i);
$db->query("insert into t values (97716021308405775, '" . $db->real_escape_string("it's \u{20ac}") . "', '" . $db->real_escape_string($bytes) . "', 0.1, '2024-02-29')");
$insert = $db->prepare("insert into t (b, g, f, d) values (?, ?, ?, ?)");
[$b, $g, $f, $d] = [null, null, 1.5, '2001-01-01'];
$insert->bind_param("sbds", $b, $g, $f, $d);
$insert->send_long_data(1, str_repeat($bytes, 1000));
$insert->send_long_data(1, "end");
$insert->execute();
same(97716021308405776, $insert->insert_id);
$rows = $db->query("select * from t order by a")->fetch_all(MYSQLI_ASSOC);
same(2, count($rows));
same("it's \u{20ac}", $rows[0]['b']);
same($bytes, $rows[0]['g']);
same(str_repeat($bytes, 1000) . "end", $rows[1]['g']);
$select = $db->prepare("select a, f, d from t where a = ? and d > ?");
[$a, $d] = ['97716021308405775', '2024-01-01'];
$select->bind_param("ss", $a, $d);
$select->execute();
same([[97716021308405775, 0.1, '2024-02-29']], $select->get_result()->fetch_all());
same([['1', '2']], $db->query("select '1', '2'")->fetch_all());
$db->multi_query("select 1; insert into t (b) values ('x'); select 2");
$found = [];
do {
    if ($result = $db->store_result()) $found[] = $result->fetch_row()[0];
} while ($db->more_results() && $db->next_result());
same(['1', '2'], $found);
try {
    $db->query("insert into t (a) values ('97716021308405775')");
    throw new Exception("a duplicate was accepted");
} catch (mysqli_sql_exception $error) {
    same(1062, $error->getCode());
}
$db->query("delete from t where a = '97716021308405770'");
same(0, $db->affected_rows);
echo "ok\n";
"#;

fn php(script: &str, extension: &str) {
    let probe = format!("exit(extension_loaded('{extension}') ? 0 : 1);");
    if !installed(&format!("PHP with {extension}"), &["php", "-r", &probe]) {
        return;
    }
    let server = TestServer::start();
    let output = Command::new("php")
        .args([
            "-d",
            "display_errors=stderr",
            "-r",
            script,
            "--",
            &server.port().to_string(),
        ])
        .output()
        .expect("php runs");
    assert_eq!(stdout_of(&output), "ok\n");
}

#[test]
fn php_pdo_works() {
    php(PDO_SCRIPT, "pdo_mysql");
}

#[test]
fn php_mysqli_works() {
    php(MYSQLI_SCRIPT, "mysqli");
}

/// MariaDB's Connector/J, with parameters in the text and with prepared statements of the server.
const JAVA_PROGRAM: &str = r#"
import java.sql.*;
import java.util.*;

public class Client {
    static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) throw new RuntimeException(expected + " is not " + found);
    }

    public static void main(String[] arguments) throws Exception {
        byte[] bytes = new byte[256];
        for (int i = 0; i < 256; i++) bytes[i] = (byte) i;
        for (String options : List.of("", "useServerPrepStmts=true", "rewriteBatchedStatements=true", "useCompression=true")) {
            String url = "jdbc:mariadb://127.0.0.1:" + arguments[0] + "/?user=root&" + options;
            try (Connection c = DriverManager.getConnection(url); Statement s = c.createStatement()) {
                s.execute("drop database if exists j");
                s.execute("create database j");
                c.setCatalog("j");
                s.execute("create table p (id int primary key, name varchar(20), unique key (name))");
                s.execute("create table t (a bigint primary key auto_increment, b varchar(20), c decimal(8,2), d datetime(3), g longblob, "
                    + "n int, f boolean, p int, foreign key (p) references p (id))");
                PreparedStatement insert = c.prepareStatement("insert into t (a, b, c, d, g, n, f) values (?, ?, ?, ?, ?, ?, ?)",
                    Statement.RETURN_GENERATED_KEYS);
                Timestamp time = Timestamp.valueOf("2024-02-29 12:30:45.123");
                insert.setString(1, "97716021308405775");
                insert.setString(2, "it's \u20ac\\");
                insert.setBigDecimal(3, new java.math.BigDecimal("1.50"));
                insert.setTimestamp(4, time);
                insert.setBytes(5, bytes);
                insert.setNull(6, Types.INTEGER);
                insert.setBoolean(7, true);
                same(1, insert.executeUpdate());
                for (int i = 0; i < 3; i++) {
                    insert.setNull(1, Types.BIGINT);
                    insert.setString(2, "row " + i);
                    insert.setInt(6, i);
                    insert.addBatch();
                }
                same(3, insert.executeBatch().length);
                PreparedStatement select = c.prepareStatement("select * from t where a = ? and g = ?");
                select.setString(1, "97716021308405775");
                select.setBytes(2, bytes);
                ResultSet row = select.executeQuery();
                same(true, row.next());
                same("it's \u20ac\\", row.getString("b"));
                same(Types.VARCHAR, row.getMetaData().getColumnType(2));
                same("1.50", row.getBigDecimal("c").toString());
                same(time, row.getTimestamp("d"));
                same(true, Arrays.equals(bytes, row.getBytes("g")));
                same(0, row.getInt("n"));
                same(true, row.wasNull());
                same(true, row.getBoolean("f"));
                same(false, row.next());
                PreparedStatement delete = c.prepareStatement("delete from t where a = ?");
                delete.setString(1, "97716021308405774");
                same(0, delete.executeUpdate());
                c.setAutoCommit(false);
                same(4, s.executeUpdate("delete from t"));
                c.rollback();
                c.setAutoCommit(true);
                ResultSet count = s.executeQuery("select count(*), concat(min(b), '') from t");
                count.next();
                same(4, count.getInt(1));
                same(Types.VARCHAR, count.getMetaData().getColumnType(2));
                try {
                    s.execute("insert into t (a) values (97716021308405775)");
                    throw new RuntimeException("a duplicate was accepted");
                } catch (SQLException error) {
                    same(1062, error.getErrorCode());
                }
                DatabaseMetaData about = c.getMetaData();
                List<String> columns = new ArrayList<>();
                ResultSet found = about.getColumns("j", null, "t", null);
                while (found.next()) columns.add(found.getString("COLUMN_NAME"));
                same(List.of("a", "b", "c", "d", "g", "n", "f", "p"), columns);
                ResultSet keys = about.getPrimaryKeys("j", null, "t");
                same(true, keys.next());
                same("a", keys.getString("COLUMN_NAME"));
                int exported = 0;
                ResultSet children = about.getExportedKeys("j", null, "p");
                while (children.next()) exported++;
                same(1, exported);
                Statement streamed = c.createStatement();
                streamed.setFetchSize(2);
                ResultSet many = streamed.executeQuery("select x.a from t x, t y, t z");
                int rows = 0;
                while (many.next()) rows++;
                same(64, rows);
            }
        }
        System.out.println("ok");
    }
}
"#;

#[test]
fn mariadb_connector_j_works() {
    let driver = "/usr/share/java/mariadb-java-client.jar";
    // A file of source is run by the compiler, which a runtime alone lacks.
    let has_compiler = installed("a Java compiler", &["javac", "-version"]);
    if !has_compiler || !installed("MariaDB Connector/J", &["test", "-e", driver]) {
        return;
    }
    let server = TestServer::start();
    let file = server.directory().path().join("Client.java");
    std::fs::write(&file, JAVA_PROGRAM).expect("the directory is ours");
    let output = Command::new("java")
        .args(["-Dfile.encoding=UTF-8", "-cp", driver])
        .arg(&file)
        .arg(server.port().to_string())
        .output()
        .expect("java runs");
    assert_eq!(stdout_of(&output), "ok\n");
}
