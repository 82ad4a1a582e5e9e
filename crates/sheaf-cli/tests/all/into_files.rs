//! SELECT ... INTO OUTFILE and DUMPFILE: what is in the files, which files may be made, and that LOAD DATA reads them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_sql::EngineOptions;
use tempfile::TempDir;

use crate::harness::{TestServer, error_of, query_text};

/// A server whose statements may make files in a directory.
fn server_with_files() -> (TempDir, TestServer) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = EngineOptions {
        secure_file_priv: Some(directory.path().to_path_buf()),
        ..EngineOptions::default()
    };
    let server = TestServer::start_with(options, |_, _| {});
    (directory, server)
}

fn run(connection: &mut Conn, sql: &str) {
    connection.query_drop(sql).expect(sql);
}

fn code_of(connection: &mut Conn, sql: &str) -> u16 {
    error_of(connection.query_drop(sql)).0
}

fn written(directory: &Path, name: &str) -> Vec<u8> {
    fs::read(directory.join(name)).expect("the file is there")
}

const VALUES: &str = "CREATE TABLE v (id INT PRIMARY KEY, i BIGINT UNSIGNED, n DECIMAL(10, 2), f FLOAT, d DOUBLE, \
    s VARCHAR(40), c CHAR(5), b BLOB, e ENUM('x', 'y,z'), a DATE, m DATETIME(3), t TIME(2), y YEAR)";

#[test]
fn load_data_reads_what_was_written() {
    let (directory, server) = server_with_files();
    let mut connection = server.connect_to_new("files");
    run(&mut connection, VALUES);
    run(
        &mut connection,
        "INSERT INTO v VALUES \
         (1, 18446744073709551615, -1.50, 0.1, 1e300, 'a\\tb\\\\c\\nd\"e,f', 'ab', X'00FF0A095C4E22', 'y,z', \
          '2024-02-29', '2024-02-29 01:02:03.456', '-12:00:01.25', 2024), \
         (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
         (3, 0, 0, -0.5, 0.1, '', '', '', 'x', '1000-01-01', '1000-01-01', '00:00:00', 1901), \
         (4, 1, 1, 1, 1, 'NULL', '\\\\N', '\\\\N', 'x', '2024-01-01', '2024-01-01', '01:00:00', 2000), \
         (5, 1, 1, 1, 1, 'täst €', '中', 'ntr0bZN', 'x', '2024-01-01', '2024-01-01', '01:00:00', 2000)",
    );
    run(&mut connection, "CREATE TABLE w LIKE v");
    for (number, format) in [
        "",
        "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'",
        "COLUMNS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '\\\\' LINES TERMINATED BY '\\r\\n'",
        "FIELDS TERMINATED BY '||' ESCAPED BY '!' LINES STARTING BY '> ' TERMINATED BY '\\n'",
        "CHARACTER SET utf8mb4 FIELDS TERMINATED BY ';' ENCLOSED BY '\\''",
        "FIELDS TERMINATED BY '.'",
        "FIELDS TERMINATED BY 'n' ENCLOSED BY '\"' LINES TERMINATED BY ';'",
        "FIELDS TERMINATED BY 0x2c ENCLOSED BY X'22' ESCAPED BY b'100001' LINES STARTING BY 0x3E20 TERMINATED BY 0x0D0A",
    ]
    .into_iter()
    .enumerate()
    {
        let select = format!("SELECT * FROM v ORDER BY id INTO OUTFILE 'v{number}' {format}");
        run(&mut connection, &select);
        assert_eq!(connection.affected_rows(), 5, "{format}");
        let path = directory.path().join(format!("v{number}"));
        let load = format!("LOAD DATA INFILE '{}' INTO TABLE w {format}", path.display());
        run(&mut connection, &load);
        let rows = |connection: &mut Conn, table: &str| {
            let sql = format!(
                "SELECT id, i, n, f, d, HEX(s), HEX(c), HEX(b), e, a, m, t, y FROM {table} ORDER BY id"
            );
            query_text(connection, &sql)
        };
        let (before, after) = (rows(&mut connection, "v"), rows(&mut connection, "w"));
        assert_eq!(before, after, "{format}");
        run(&mut connection, "TRUNCATE TABLE w");
        let mode = fs::metadata(&path).expect("the file is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o640);
    }
}

/// Second bytes of characters may be those of an escape character or a separator. Bytes come back as they were, too.
#[test]
fn load_data_reads_what_was_written_in_sets_of_several_bytes() {
    let (directory, server) = server_with_files();
    let mut connection = server.connect_to_new("files");
    run(
        &mut connection,
        "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(40), b VARBINARY(40))",
    );
    run(&mut connection, "CREATE TABLE u LIKE t");
    for (set, text) in [
        ("sjis", "ソ表ポミｱ中"),
        ("cp932", "ソ表ポミｱ中①"),
        ("big5", "功許蓋中文"),
        ("gbk", "中文誠亅乗"),
        ("gb2312", "中文"),
        ("gb18030", "中文誠😀ẁ"),
        ("euckr", "한국어"),
        ("ujis", "中文ソｱ"),
        ("eucjpms", "中文ソｱ"),
    ] {
        let insert = format!(
            "REPLACE INTO t VALUES (1, '{text}', X'835C837C83'), (2, '\\t{text}\\n', X'5C830983'), \
             (3, CONCAT('|', '{text}', '|'), X'81308436'), (4, 'a', X'81308409FE'), (5, '', '')"
        );
        run(&mut connection, &insert);
        for (number, format) in [
            "",
            "FIELDS TERMINATED BY '|' ENCLOSED BY '\"'",
            "FIELDS TERMINATED BY '|' OPTIONALLY ENCLOSED BY '@' LINES TERMINATED BY '|\\n'",
        ]
        .into_iter()
        .enumerate()
        {
            let file = format!("{set}{number}");
            run(
                &mut connection,
                &format!("TABLE t ORDER BY id INTO OUTFILE '{file}' CHARACTER SET {set} {format}"),
            );
            let path = directory.path().join(&file);
            run(&mut connection, "TRUNCATE TABLE u");
            let load = format!(
                "LOAD DATA INFILE '{}' INTO TABLE u CHARACTER SET {set} {format}",
                path.display()
            );
            run(&mut connection, &load);
            let rows = |connection: &mut Conn, table: &str| {
                let sql = format!("SELECT id, HEX(s), HEX(b) FROM {table} ORDER BY id");
                query_text(connection, &sql)
            };
            let (before, after) = (rows(&mut connection, "t"), rows(&mut connection, "u"));
            assert_eq!(before, after, "{set} {format}");
        }
    }
    let written_in = |connection: &mut Conn, name: &str, text: &str, format: &str| {
        run(
            connection,
            &format!("SELECT {text} INTO OUTFILE '{name}' {format}"),
        );
        written(directory.path(), name)
    };
    // As MySQL 9.7 writes them.
    let bars = "CHARACTER SET big5 FIELDS TERMINATED BY '|'";
    assert_eq!(
        written_in(&mut connection, "b", "'中\\\\文\\t中', '功能許|'", bars),
        b"\xA4\xA4\\\\\xA4\xE5\t\xA4\xA4|\xA5\\\xAF\xE0\xB3\\\\|\n"
    );
    let sjis = "CHARACTER SET sjis";
    assert_eq!(
        written_in(&mut connection, "s", "'ソｱ\\t中', 'ポ|'", sjis),
        b"\x83\\\xB1\\\t\x92\x86\t\x83||\n"
    );
}

#[test]
fn files_have_the_bytes_that_mysql_writes() {
    let (directory, server) = server_with_files();
    let mut connection = server.connect_to_new("files");
    run(
        &mut connection,
        "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), n DECIMAL(5, 2))",
    );
    run(
        &mut connection,
        "INSERT INTO t VALUES (1, 'a', 1.5), (2, NULL, NULL), (3, 'é\\t\\\\', 0)",
    );
    for (sql, bytes) in [
        (
            "SELECT * INTO OUTFILE 'a' FROM t ORDER BY id",
            &b"1\ta\t1.50\n2\t\\N\t\\N\n3\t\xC3\xA9\\\t\\\\\t0.00\n"[..],
        ),
        (
            "SELECT s, n FROM t WHERE id < 3 ORDER BY id LIMIT 2 INTO OUTFILE 'b' FIELDS TERMINATED BY ',' \
             OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\\r\\n'",
            &b"\"a\",1.50\r\nNULL,NULL\r\n"[..],
        ),
        (
            "SELECT s FROM t WHERE id = 3 INTO OUTFILE 'c' CHARACTER SET latin1",
            &b"\xE9\\\t\\\\\n"[..],
        ),
        (
            "(SELECT id FROM t) UNION ALL SELECT 4 ORDER BY 1 DESC LIMIT 2 INTO OUTFILE 'd'",
            &b"4\n3\n"[..],
        ),
        ("SELECT * FROM t WHERE id > 5 INTO OUTFILE 'e'", &b""[..]),
        ("TABLE t LIMIT 1 INTO OUTFILE 'f'", &b"1\ta\t1.50\n"[..]),
        (
            "SELECT X'00FF0A', 5, 'x' INTO DUMPFILE 'g'",
            &b"\x00\xFF\x0A5x"[..],
        ),
        (
            "SELECT id FROM t WHERE id = 1 INTO OUTFILE 'h' FOR UPDATE",
            &b"1\n"[..],
        ),
    ] {
        run(&mut connection, sql);
        let (_, name) = sql.split_once("FILE '").expect("a name");
        assert_eq!(written(directory.path(), &name[..1]), bytes, "{sql}");
    }
    // A prepared statement makes a file each time.
    let statement = connection
        .prep("SELECT s FROM t WHERE id = ? INTO OUTFILE 'p'")
        .expect("it is prepared");
    connection.exec_drop(&statement, (1,)).expect("it runs");
    assert_eq!(written(directory.path(), "p"), b"a\n");
    assert_eq!(error_of(connection.exec_drop(&statement, (1,))).0, 1086);
}

#[test]
fn only_new_files_in_the_directory_are_made() {
    let (directory, server) = server_with_files();
    let mut connection = server.connect_to_new("files");
    run(&mut connection, "CREATE TABLE t (id INT PRIMARY KEY)");
    run(&mut connection, "INSERT INTO t VALUES (1), (2)");
    let outside = tempfile::tempdir().expect("a temporary directory");
    symlink(outside.path(), directory.path().join("out")).expect("the directory is ours");
    symlink(outside.path().join("new"), directory.path().join("link"))
        .expect("the directory is ours");
    fs::create_dir(directory.path().join("in")).expect("the directory is ours");
    fs::write(directory.path().join("old"), "old").expect("the directory is ours");
    let absolute = outside.path().join("new");
    for (name, code) in [
        ("old", 1086),
        ("link", 1086),
        ("in", 1086),
        ("nowhere/new", 1),
        ("out/new", 1290),
        ("in/../../new", 1290),
        ("", 1290),
        (absolute.to_str().expect("a name in UTF-8"), 1290),
    ] {
        for form in ["OUTFILE", "DUMPFILE"] {
            let sql = format!("SELECT 1 INTO {form} '{name}'");
            assert_eq!(code_of(&mut connection, &sql), code, "{sql}");
        }
    }
    assert_eq!(written(directory.path(), "old"), b"old");
    assert!(!absolute.exists());
    run(&mut connection, "SELECT 1 INTO OUTFILE 'in/new'");
    assert_eq!(written(directory.path(), "in/new"), b"1\n");

    // What has failed leaves no file.
    for (sql, code) in [
        ("SELECT id FROM t INTO DUMPFILE 'x'", 1172),
        ("SELECT id FROM nothing INTO OUTFILE 'x'", 1146),
        ("SELECT (SELECT id FROM t) INTO OUTFILE 'x'", 1242),
        (
            "SELECT id FROM t INTO OUTFILE 'x' FIELDS TERMINATED BY ''",
            1235,
        ),
        (
            "SELECT id FROM t INTO OUTFILE 'x' FIELDS ENCLOSED BY 'ab'",
            1083,
        ),
        (
            "SELECT id FROM t INTO OUTFILE 'x' CHARACTER SET nothing",
            1115,
        ),
        ("SELECT id FROM (SELECT id FROM t INTO OUTFILE 'x') d", 1064),
        ("SELECT id FROM (SELECT 1 AS id INTO OUTFILE 'x') d", 3954),
        ("SELECT id INTO OUTFILE 'x' FROM t UNION SELECT 1", 3954),
        ("SELECT id FROM t INTO OUTFILE x", 1064),
    ] {
        assert_eq!(code_of(&mut connection, sql), code, "{sql}");
        assert!(!directory.path().join("x").exists(), "{sql}");
    }
    run(&mut connection, "CREATE USER writer@localhost");
    run(
        &mut connection,
        "GRANT SELECT ON files.* TO writer@localhost",
    );
    let as_writer = || Conn::new(server.options().user(Some("writer"))).expect("no password");
    let mut writer = as_writer();
    let select = "SELECT id FROM files.t INTO OUTFILE 'x'";
    assert_eq!(code_of(&mut writer, select), 1227);
    run(&mut connection, "GRANT FILE ON *.* TO writer@localhost");
    run(
        &mut connection,
        "REVOKE SELECT ON files.* FROM writer@localhost",
    );
    let mut writer = as_writer();
    assert_eq!(code_of(&mut writer, select), 1142);
    assert!(!directory.path().join("x").exists());
    run(&mut writer, "SELECT 1 INTO OUTFILE 'x'");

    let server = TestServer::start();
    let mut connection = server.connect_to_new("files");
    assert_eq!(
        code_of(&mut connection, "SELECT 1 INTO OUTFILE '/tmp/x'"),
        1290
    );
}
