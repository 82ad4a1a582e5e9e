//! LOAD DATA of files of the client and of the server.

use std::path::PathBuf;

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};
use sheaf_sql::EngineOptions;
use tempfile::TempDir;

use crate::harness::{TestServer, error_of, query_text};
use crate::raw_client::{CLIENT_LOCAL_FILES, COM_QUERY, RawClient};

/// A connection whose client sends this text whatever file is asked for.
fn with_file(server: &TestServer, text: &'static str) -> Conn {
    let handler = LocalInfileHandler::new(move |_name, stream| {
        use std::io::Write;
        stream.write_all(text.as_bytes())
    });
    Conn::new(server.options().local_infile_handler(Some(handler))).expect("root may connect")
}

/// A server that reads files of a folder.
struct FilesOfServer {
    /// One of them, which is not there yet.
    file: PathBuf,
    connection: Conn,
    _server: TestServer,
    _directory: TempDir,
}

impl FilesOfServer {
    /// Connected to the database `files`, which has the table that the statement makes.
    fn with_table(create: &str) -> FilesOfServer {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let options = EngineOptions {
            secure_file_priv: Some(directory.path().to_path_buf()),
            ..EngineOptions::default()
        };
        let server = TestServer::start_with(options, |_, _| {});
        let mut connection = server.connect_to_new("files");
        connection
            .query_drop(create)
            .expect("the database is empty");
        FilesOfServer {
            file: directory.path().join("rows.csv"),
            connection,
            _server: server,
            _directory: directory,
        }
    }
}

#[test]
fn a_file_of_the_client_is_loaded() {
    let server = TestServer::start();
    server
        .connect_to_new("files")
        .query_drop("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20), KEY (b))")
        .expect("the database is empty");
    let mut connection = with_file(&server, "1|one|\n2|two|\n3|\\N|\n");
    connection
        .query_drop("USE files")
        .expect("the database exists");
    connection
        .query_drop("LOAD DATA LOCAL INFILE 'any' INTO TABLE t FIELDS TERMINATED BY '|' LINES TERMINATED BY '|\\n'")
        .expect("the file fits the table");
    assert_eq!(connection.affected_rows(), 3);
    assert_eq!(
        connection.info_str(),
        "Records: 3  Deleted: 0  Skipped: 0  Warnings: 0"
    );
    assert_eq!(
        query_text(&mut connection, "SELECT * FROM t"),
        ["1\tone", "2\ttwo", "3\tNULL"]
    );
}

#[test]
fn a_file_of_the_client_is_taken_as_far_as_it_fits() {
    let server = TestServer::start();
    server
        .connect_to_new("files")
        .query_drop("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20) NOT NULL)")
        .expect("the database is empty");
    let mut connection = with_file(&server, "1,one\n2\n3,three\n");
    connection
        .query_drop("USE files")
        .expect("the database exists");
    let load = "LOAD DATA LOCAL INFILE 'any' INTO TABLE t FIELDS TERMINATED BY ','";
    connection.query_drop(load).expect("LOCAL is lenient");
    assert_eq!(
        connection.info_str(),
        "Records: 3  Deleted: 0  Skipped: 0  Warnings: 1"
    );
    assert_eq!(query_text(&mut connection, "SHOW WARNINGS").len(), 1);
    assert_eq!(
        query_text(&mut connection, "SELECT * FROM t"),
        ["1\tone", "2\t", "3\tthree"]
    );
    let load = "LOAD DATA LOCAL INFILE 'any' INTO TABLE missing";
    assert_eq!(
        error_of(connection.query_drop(load)),
        (1146, "42S02".into())
    );
    connection
        .ping()
        .expect("nothing of the file is left on the wire");
}

#[test]
fn a_file_of_the_client_that_replaces_rows_has_to_fit() {
    let server = TestServer::start();
    server
        .connect_to_new("files")
        .query_drop("CREATE TABLE t (a INT PRIMARY KEY, b INT)")
        .expect("the database is empty");
    let mut connection = with_file(&server, "1,5\n2,abc\n3,99999999999\n");
    connection
        .query_drop("USE files")
        .expect("the database exists");
    let load = "LOAD DATA LOCAL INFILE 'any' REPLACE INTO TABLE t FIELDS TERMINATED BY ','";
    assert_eq!(
        error_of(connection.query_drop(load)),
        (1366, "HY000".into())
    );
    connection
        .ping()
        .expect("nothing of the file is left on the wire");
    assert_eq!(query_text(&mut connection, "SELECT COUNT(*) FROM t"), ["0"]);
    let load = "LOAD DATA LOCAL INFILE 'any' IGNORE INTO TABLE t FIELDS TERMINATED BY ','";
    connection.query_drop(load).expect("IGNORE is lenient");
    assert_eq!(
        query_text(&mut connection, "SELECT * FROM t"),
        ["1\t5", "2\t0", "3\t2147483647"]
    );
}

#[test]
fn a_file_of_latin1_is_one_of_cp1252() {
    let mut server = FilesOfServer::with_table("CREATE TABLE t (a VARCHAR(20), b VARBINARY(20))");
    let (file, connection) = (&server.file, &mut server.connection);
    std::fs::write(file, b"\x80\x9F\xE4,\x80\x9F\xE4\n").expect("the directory is ours");
    let load = format!(
        "LOAD DATA INFILE '{}' INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY ',' (t.a, files.t.b)",
        file.display()
    );
    connection.query_drop(load).expect("the file fits");
    assert_eq!(
        query_text(connection, "SELECT a, HEX(b) FROM t"),
        ["€Ÿä\t809FE4"]
    );
}

/// The second byte of some characters of sjis is a backslash or a bar. What is read is what MySQL 9.7 reads.
#[test]
fn a_file_of_several_bytes_a_character_is_loaded() {
    let mut server = FilesOfServer::with_table(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(20), n VARBINARY(20))",
    );
    let (file, connection) = (&server.file, &mut server.connection);
    let text =
        b"\x83\x5C\t1\n\x83\x5C\\\\\tabc\n\xB1\\\tx\tn\n\x83\x7C|\t\x81\x5C\n\x83\x5C\\\n\t\x83\x5C";
    std::fs::write(file, text).expect("the directory is ours");
    let mut loaded = |format: &str| {
        let load = format!(
            "LOAD DATA INFILE '{}' IGNORE INTO TABLE t CHARACTER SET sjis {format} (s, n)",
            file.display()
        );
        connection.query_drop("TRUNCATE TABLE t").expect("empty");
        connection.query_drop(load).expect("the file fits");
        query_text(connection, "SELECT id, HEX(s), HEX(n) FROM t ORDER BY id")
    };
    assert_eq!(
        loaded(""),
        [
            "1\tE382BD\t31",
            "2\tE382BD5C\t616263",
            "3\tEFBDB10978\t6E",
            "4\tE3839D7C\t815C",
            "5\tE382BD0A\t835C"
        ]
    );
    assert_eq!(
        loaded("FIELDS TERMINATED BY '|' LINES TERMINATED BY '\\t'"),
        [
            "1\tE382BD\tNULL",
            "2\t310AE382BD5C\tNULL",
            "3\t6162630AEFBDB10978\tNULL",
            "4\t6E0AE3839D\t",
            "5\tE280950AE382BD0A\tNULL",
            "6\tE382BD\tNULL"
        ]
    );
}

#[test]
fn a_byte_of_a_file_that_is_no_character_is_told() {
    let mut server = FilesOfServer::with_table("CREATE TABLE t (a VARCHAR(20), b VARBINARY(20))");
    let (file, connection) = (&server.file, &mut server.connection);
    std::fs::write(file, b"\xE0\x98b,\xE0\x98\n").expect("the directory is ours");
    let load = |ignore: &str| {
        format!(
            "LOAD DATA INFILE '{}' {ignore} INTO TABLE t CHARACTER SET cp1251 FIELDS TERMINATED BY ','",
            file.display()
        )
    };
    let error = error_of(connection.query_drop(load("")));
    assert_eq!(error, (1366, "HY000".into()));
    connection
        .query_drop(load("IGNORE"))
        .expect("IGNORE is lenient");
    assert_eq!(
        query_text(connection, "SHOW WARNINGS"),
        ["Warning\t1366\tIncorrect string value: '\\x98b' for column 'a' at row 1"]
    );
    assert_eq!(
        query_text(connection, "SELECT a, HEX(b) FROM t"),
        ["а?b\tE098"]
    );
}

#[test]
fn a_file_of_the_server_that_does_not_fit_leaves_no_rows() {
    let mut server = FilesOfServer::with_table(
        "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20) NOT NULL, KEY (b))",
    );
    let (file, connection) = (&server.file, &mut server.connection);
    let load = format!(
        "LOAD DATA INFILE '{}' INTO TABLE t FIELDS TERMINATED BY ','",
        file.display()
    );
    for (text, code, state) in [
        ("1,one\n2\n3,three\n", 1261, "01000"),
        ("1,one\n2,two,too\n", 1262, "01000"),
        ("1,one\n1,two\n", 1062, "23000"),
        ("1,one\nx,two\n", 1366, "HY000"),
    ] {
        std::fs::write(file, text).expect("the directory is ours");
        assert_eq!(
            error_of(connection.query_drop(&load)),
            (code, state.into()),
            "{text}"
        );
        assert_eq!(
            query_text(connection, "SELECT COUNT(*) FROM t"),
            ["0"],
            "{text}"
        );
    }
    std::fs::write(file, "1,one\n2,two\n").expect("the directory is ours");
    connection.query_drop(&load).expect("now it fits");
    assert_eq!(
        query_text(connection, "SELECT a FROM t WHERE b = 'two'"),
        ["2"]
    );
}

#[test]
fn a_client_that_cannot_send_files_is_not_asked_to() {
    let server = TestServer::start();
    server
        .connect_to_new("files")
        .query_drop("CREATE TABLE t (a INT)")
        .expect("the database is empty");
    let load = b"LOAD DATA LOCAL INFILE 'any' INTO TABLE files.t";
    let mut client = RawClient::connect(server.address(), 0);
    assert_eq!(client.fail(COM_QUERY, load).code, 3948);

    // This one can, and disappears in the middle of the file.
    let mut client = RawClient::connect(server.address(), CLIENT_LOCAL_FILES);
    client
        .send_command(COM_QUERY, load)
        .expect("the server reads");
    assert_eq!(client.receive_payload(), b"\xFBany");
    client.send_frame(2, b"1\n2\n").expect("the server reads");
    drop(client);
    let mut connection = server.connect();
    server.wait_for_connections(2);
    assert_eq!(
        query_text(&mut connection, "SELECT COUNT(*) FROM files.t"),
        ["0"]
    );
}
