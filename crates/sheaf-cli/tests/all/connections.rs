//! What a connection can be besides plain: encrypted, compressed, with cursors.

use std::process::{Command, Output};

use mysql::prelude::Queryable;
use mysql::{Compression, Conn};
use sheaf_server::TlsOptions;
use sheaf_sql::EngineOptions;

use crate::clients::{installed, mariadb};
use crate::command_line::{connect, serve_with, sheaf, terminate};
use crate::harness::{TestServer, error_of, query_text, tests_folder};
use crate::raw_client::{CLIENT_DEPRECATE_EOF, COM_QUERY, RawClient};

const COM_STMT_PREPARE: u8 = 22;
const COM_STMT_EXECUTE: u8 = 23;
const COM_STMT_RESET: u8 = 26;
const COM_STMT_FETCH: u8 = 28;

const IN_TRANSACTION_OR_AUTOCOMMIT: u16 = 3;
const CURSOR_EXISTS: u16 = 0x40;
const LAST_ROW_SENT: u16 = 0x80;

const CLIENT_SSL: u32 = 0x0800;
const CLIENT_PROTOCOL_41: u32 = 0x0200;

fn server_with_tls() -> TestServer {
    TestServer::start_with(EngineOptions::default(), |options, _| {
        let folder = tests_folder("tls");
        options.tls = Some(TlsOptions {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
        });
    })
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn clients_may_encrypt_and_may_have_to() {
    if !installed("the mariadb client", &["mariadb", "--version"]) {
        return;
    }
    let server = server_with_tls();
    let mut root = server.connect();
    let authority = tests_folder("tls").join("certificate.pem");
    let authority = format!("--ssl-ca={}", authority.display());
    let encrypted = |arguments: &[&str]| {
        let ssl = ["--ssl", &authority, "--ssl-verify-server-cert", "-N"];
        mariadb(server.port(), &[&ssl[..], arguments].concat())
    };
    let shown = [
        "-e",
        "SHOW STATUS WHERE Variable_name IN ('Ssl_version', 'Ssl_cipher')",
    ];
    let (out, error) = text(&encrypted(&shown));
    assert!(out.contains("Ssl_version\tTLSv1.3\n"), "{out}{error}");
    assert!(out.contains("Ssl_cipher\tTLS_"), "{out}");
    // Some builds of the client encrypt whenever the server can.
    let plain = [&["-N", "--skip-ssl"], &shown[..]].concat();
    let (out, _) = text(&mariadb(server.port(), &plain));
    assert_eq!(out, "Ssl_cipher\t\nSsl_version\t\n");

    // More than one record of TLS in either direction, and many statements.
    let long = format!(
        "SELECT LENGTH('{0}'), REPEAT('y', 100000)",
        "x".repeat(50_000)
    );
    let (out, error) = text(&encrypted(&["-e", &long]));
    assert!(out.starts_with("50000\tyyyy"), "{error}");
    assert_eq!(out.trim().len(), 6 + 100_000);
    let many = "SELECT 1;".repeat(500);
    assert_eq!(text(&encrypted(&["-e", &many])).0, "1\n".repeat(500));

    root.query_drop("CREATE USER ann REQUIRE SSL")
        .expect("root may");
    let (out, error) = text(&encrypted(&["-u", "ann", "-e", "SELECT CURRENT_USER()"]));
    assert_eq!(out, "ann@%\n", "{error}");
    assert_eq!(
        error_of(Conn::new(server.options().user(Some("ann")))).0,
        1045
    );

    root.query_drop("SET GLOBAL require_secure_transport = ON")
        .expect("root may");
    assert_eq!(error_of(Conn::new(server.options())).0, 3159);
    let (out, error) = text(&encrypted(&["-e", "SELECT USER()"]));
    assert_eq!(out, "root@localhost\n", "{error}");
}

#[test]
fn a_new_server_has_a_certificate_of_its_own() {
    if !installed("the mariadb client", &["mariadb", "--version"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let authority = directory.path().join("server-cert.pem");
    let authority = format!("--ssl-ca={}", authority.display());
    let encrypted = |port| {
        let shown = ["-N", "-e", "SHOW STATUS LIKE 'Ssl_version'"];
        let ssl = ["--ssl", &authority, "--ssl-verify-server-cert"];
        text(&mariadb(port, &[&ssl[..], &shown].concat()))
    };
    // The second start finds the certificate of the first.
    for _ in 0..2 {
        let (mut server, port) = serve_with(directory.path(), &[]);
        let (out, error) = encrypted(port);
        assert_eq!(out, "Ssl_version\tTLSv1.3\n", "{error}");
        terminate(&server);
        server.wait().expect("it ends");
    }
    let (mut server, port) = serve_with(directory.path(), &["--tls", "off"]);
    let (out, error) = encrypted(port);
    assert_eq!(out, "", "{error}");
    let mut plain = connect(port);
    assert_eq!(query_text(&mut plain, "SELECT @@have_ssl"), ["DISABLED"]);
    terminate(&server);
    server.wait().expect("it ends");
}

#[test]
fn a_secure_transport_is_required_only_where_there_is_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut server, port) = serve_with(directory.path(), &["--tls", "off"]);
    let mut plain = connect(port);
    for scope in ["GLOBAL", "PERSIST", "PERSIST_ONLY"] {
        let set = format!("SET {scope} require_secure_transport = ON");
        assert_eq!(error_of(plain.query_drop(set)).0, 3160, "{scope}");
    }
    let kept = "SELECT COUNT(*) FROM performance_schema.persisted_variables";
    assert_eq!(query_text(&mut plain, kept), ["0"]);
    let off = "SET PERSIST require_secure_transport = OFF";
    plain.query_drop(off).expect("that locks nobody out");
    terminate(&server);
    server.wait().expect("it ends");

    let (mut server, port) = serve_with(directory.path(), &[]);
    let on = "SET PERSIST require_secure_transport = ON";
    connect(port).query_drop(on).expect("there is TLS");
    terminate(&server);
    server.wait().expect("it ends");
    let mut refused = sheaf();
    refused.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--memory",
        "64M",
        "--tls",
        "off",
    ]);
    refused.arg("--data-dir").arg(directory.path());
    let refused = refused.output().expect("sheaf runs");
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("require_secure_transport is on"), "{said}");
}

const PYMYSQL_SCRIPT: &str = r#"
import sys, pymysql
def connect(password, **options):
    return pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="ann", password=password, **options)
def refused(password, **options):
    try:
        connect(password, **options)
    except pymysql.err.OperationalError as error:
        return error.args[0]
tls = {"ssl": {"ca": sys.argv[2]}}
assert refused("simsim", **tls) == 1045
connection = connect("sesame", **tls)
cursor = connection.cursor()
cursor.execute("SHOW STATUS LIKE 'Ssl_version'")
assert cursor.fetchall() == (("Ssl_version", "TLSv1.3"),)
# Its digest is known now: the password itself is not sent any more.
connect("sesame")
assert refused("simsim") == 1045
print("ok")
"#;

#[test]
fn a_password_is_sent_over_tls_only() {
    if !installed("PyMySQL", &["python3", "-c", "import pymysql"]) {
        return;
    }
    let server = server_with_tls();
    server
        .connect()
        .query_drop("CREATE USER ann IDENTIFIED WITH caching_sha2_password BY 'sesame'")
        .expect("root may");
    let authority = tests_folder("tls").join("certificate.pem");
    let output = Command::new("python3")
        .args(["-c", PYMYSQL_SCRIPT, &server.port().to_string()])
        .arg(authority)
        .output()
        .expect("python3 runs");
    let (out, error) = text(&output);
    assert_eq!(out, "ok\n", "{error}");
}

#[test]
fn a_handshake_of_tls_that_fails_ends_the_connection() {
    let request = |capabilities: u32| {
        let mut payload = (capabilities | CLIENT_PROTOCOL_41).to_le_bytes().to_vec();
        payload.resize(32, 0);
        payload
    };
    let server = server_with_tls();
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0x16, 3, 1, 0xFF, 0xFF],
        &[0; 4000],
    ] {
        let mut client = RawClient::dial(server.address());
        client.receive().expect("the greeting");
        client
            .send_frame(1, &request(CLIENT_SSL))
            .expect("the server reads");
        // It may be gone already.
        let _ = client.send_raw(garbage);
        client.hang_up();
    }
    server.wait_for_connections(0);
    // A client that encrypts nothing after all, and one that asks where there is no certificate.
    let plain = TestServer::start();
    let mut client = RawClient::dial(plain.address());
    client.receive().expect("the greeting");
    client
        .send_frame(1, &request(CLIENT_SSL))
        .expect("the server reads");
    assert_eq!(client.receive_error().code, 1043);
    client.assert_closed();
}

#[test]
fn a_certificate_that_cannot_be_used_is_an_error_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = sheaf_sql::Engine::open(directory.path(), EngineOptions::default());
    let engine = engine.expect("an empty database");
    let folder = tests_folder("tls");
    for (certificate, key, what) in [
        ("missing.pem", "key.pem", "certificate"),
        ("certificate.pem", "missing.pem", "key"),
        ("key.pem", "key.pem", "certificate"),
    ] {
        let options = sheaf_server::ServerOptions {
            listen: None,
            tls: Some(TlsOptions {
                certificate: folder.join(certificate),
                key: folder.join(key),
            }),
            ..sheaf_server::ServerOptions::default()
        };
        let error = match sheaf_server::Server::start(engine.clone(), options) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{certificate} {key}"),
        };
        assert!(error.starts_with(&format!("the TLS {what} in ")), "{error}");
    }
    engine.close().expect("it closes");
}

#[test]
fn a_compressed_connection_is_like_any_other() {
    let server = TestServer::start();
    let mut plain = server.connect_to_new("shop");
    let compressed = server.options().compress(Some(Compression::default()));
    let mut connection = Conn::new(compressed.db_name(Some("shop"))).expect("root");
    assert_eq!(
        query_text(&mut connection, "SHOW STATUS LIKE 'Compression'"),
        ["Compression\tON"]
    );
    assert_eq!(
        query_text(&mut plain, "SHOW STATUS LIKE 'Compression'"),
        ["Compression\tOFF"]
    );
    connection
        .query_drop("CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT)")
        .expect("a table");
    for length in [1, 40, 60, 5_000, 700_000] {
        // Half of it is hard to compress.
        let value: String = (0..length)
            .map(|n: u32| match n % 2 {
                0 => 'x',
                _ => char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 26),
            })
            .collect();
        connection
            .exec_drop("INSERT INTO t VALUES (?, ?)", (length, &value))
            .expect("an insert");
        for connection in [&mut connection, &mut plain] {
            let read: Option<String> = connection
                .exec_first("SELECT a FROM t WHERE id = ?", (length,))
                .expect("a query");
            assert_eq!(read.as_deref(), Some(value.as_str()));
        }
    }
    assert_eq!(
        error_of(connection.query_drop("SELECT nothing FROM t")).0,
        1054
    );
    let numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n";
    assert_eq!(query_text(&mut connection, numbers).len(), 900);
    connection.reset().expect("a reset");
    connection.ping().expect("the connection is alive");

    if installed("the mariadb client", &["mariadb", "--version"]) {
        let many = "SELECT REPEAT('z', 1000);".repeat(200);
        let output = mariadb(server.port(), &["-C", "-N", "-e", &many]);
        let (out, error) = text(&output);
        assert_eq!(
            out,
            format!("{}\n", "z".repeat(1000)).repeat(200),
            "{error}"
        );
    }
}

/// An answer of binary rows, up to the packet that ends it.
fn rows(client: &mut RawClient) -> (Vec<Vec<u8>>, u16) {
    let mut rows = Vec::new();
    loop {
        let packet = client.receive_payload();
        match packet[0] {
            0 => rows.push(packet),
            // The status is behind the warnings, or behind two numbers of one byte.
            _ => {
                assert_eq!(packet[0], 0xFE, "{packet:02X?}");
                let status = u16::from_le_bytes([packet[3], packet[4]]);
                return (rows, status & !IN_TRANSACTION_OR_AUTOCOMMIT);
            }
        }
    }
}

#[test]
fn a_cursor_waits_until_its_rows_are_fetched() {
    let server = TestServer::start_with_pool(32 << 20, 4 << 20);
    for capabilities in [0, CLIENT_DEPRECATE_EOF] {
        let mut client = RawClient::connect(server.address(), capabilities);
        let numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
                       SELECT i, REPEAT('x', 30000) FROM n";
        client
            .send_command(COM_STMT_PREPARE, numbers.as_bytes())
            .expect("the server reads");
        let id = u32::from_le_bytes(client.receive_payload()[1..5].try_into().expect("an id"));
        let definitions = 2 + usize::from(capabilities == 0);
        for _ in 0..definitions {
            client.receive_payload();
        }
        let id = id.to_le_bytes();
        let execute = [&id[..], &[1, 1, 0, 0, 0]].concat();
        let fetch = |rows: u32| [&id[..], &rows.to_le_bytes()].concat();
        let open = |client: &mut RawClient| {
            client
                .send_command(COM_STMT_EXECUTE, &execute)
                .expect("the server reads");
            assert_eq!(client.receive_payload(), [2], "two columns");
            for _ in 0..2 {
                client.receive_payload();
            }
            assert_eq!(rows(client), (Vec::new(), CURSOR_EXISTS));
        };

        assert_eq!(client.fail(COM_STMT_FETCH, &fetch(1)).code, 1421);
        assert_eq!(client.fail(COM_STMT_FETCH, &id).code, 1835);
        open(&mut client);
        let mut seen = 0_u32;
        for count in [1, 10, 0, 400, 589] {
            client
                .send_command(COM_STMT_FETCH, &fetch(count))
                .expect("the server reads");
            let (rows, status) = rows(&mut client);
            assert_eq!((rows.len(), status), (count as usize, CURSOR_EXISTS));
            for row in rows {
                seen += 1;
                // NULL bitmap, the number, and the length of a long text.
                let number = u32::from_le_bytes(row[2..6].try_into().expect("four bytes"));
                assert_eq!(number, seen);
            }
            // Others may run in between.
            client.succeed(COM_QUERY, b"SET @a = 1");
        }
        client
            .send_command(COM_STMT_FETCH, &fetch(1))
            .expect("the server reads");
        assert_eq!(rows(&mut client), (Vec::new(), LAST_ROW_SENT));
        assert_eq!(client.fail(COM_STMT_FETCH, &fetch(1)).code, 1421);

        open(&mut client);
        client.succeed(COM_STMT_RESET, &id);
        assert_eq!(client.fail(COM_STMT_FETCH, &fetch(1)).code, 1421);
        // Executed without a cursor, it answers with all rows.
        open(&mut client);
        let all = [&id[..], &[0, 1, 0, 0, 0]].concat();
        client
            .send_command(COM_STMT_EXECUTE, &all)
            .expect("the server reads");
        let header = 3 + usize::from(capabilities == 0);
        for _ in 0..header {
            client.receive_payload();
        }
        assert_eq!(rows(&mut client).0.len(), 1000);
        assert_eq!(client.fail(COM_STMT_FETCH, &fetch(1)).code, 1421);
    }
}

#[test]
fn a_statement_without_rows_needs_no_cursor() {
    let server = TestServer::start();
    let mut client = RawClient::connect(server.address(), 0);
    client
        .send_command(COM_STMT_PREPARE, b"SET @a = 1")
        .expect("the server reads");
    let id = client.receive_payload()[1..5].to_vec();
    client.succeed(COM_STMT_EXECUTE, &[&id[..], &[1, 1, 0, 0, 0]].concat());
    let fetch = [&id[..], &[1, 0, 0, 0]].concat();
    assert_eq!(client.fail(COM_STMT_FETCH, &fetch).code, 1421);
}
