//! The `sheaf` command, as a process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use sheaf::Value;
use sheaf_storage::{Storage, StorageOptions};
use sheaf_table::Catalog;

use crate::clients::installed;
use crate::harness::{error_of, query_text, wait_until};

pub fn sheaf() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sheaf"))
}

fn sql(directory: &tempfile::TempDir, arguments: &[&str], input: &str) -> Output {
    let mut child = sheaf()
        .args(["sql", "--memory", "64M", "--data-dir"])
        .arg(directory.path())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sheaf runs");
    child
        .stdin
        .take()
        .expect("it is piped")
        .write_all(input.as_bytes())
        .expect("sheaf reads");
    child.wait_with_output().expect("sheaf ends")
}

pub fn stdout_of(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs `sheaf check`.
pub fn check(folder: &std::path::Path) -> Output {
    sheaf()
        .args(["check", "--memory", "64M", "--data-dir"])
        .arg(folder)
        .output()
        .expect("sheaf runs")
}

#[test]
fn check_says_what_it_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = "CREATE DATABASE shop; USE shop;\n\
                  CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20), KEY (b));\n\
                  INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, 'three');\n";
    stdout_of(&sql(&directory, &[], script));
    let said = stdout_of(&check(directory.path()));
    assert!(
        said.starts_with("1 tables, 3 rows, 3 index entries in ")
            && said.ends_with("no problem found\n"),
        "{said}"
    );
    let absent = check(&directory.path().join("absent"));
    assert!(!absent.status.success());
    assert!(String::from_utf8_lossy(&absent.stderr).contains("no such directory"));
}

/// A row whose generated column holds something else, as one of a program that computed it otherwise.
#[test]
fn check_computes_generated_columns() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = "CREATE DATABASE shop; USE shop;\n\
                  CREATE TABLE t (a INT PRIMARY KEY, b INT AS (a + 1));\n\
                  INSERT INTO t (a) VALUES (1), (2);\n";
    stdout_of(&sql(&directory, &[], script));
    let said = stdout_of(&check(directory.path()));
    assert!(said.ends_with("no problem found\n"), "{said}");
    let storage = Storage::open(directory.path(), StorageOptions::default()).expect("a storage");
    let catalog = Catalog::open(storage.clone()).expect("a catalog");
    let table = catalog
        .open_for_write("shop", "t", Duration::ZERO)
        .expect("the table");
    let mut transaction = storage.begin_transaction();
    table
        .insert(&mut transaction, &[Value::Int(3), Value::Int(33)])
        .expect("a row");
    transaction.commit().expect("a commit");
    drop((table, catalog));
    storage.close().expect("it closes");
    drop(storage);
    let output = check(directory.path());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{said}");
    let expected =
        "shop.t: Generated column 'b' holds '33' in row '3', and its expression gives '4'";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.ends_with("1 problem\n"), "{said}");
}

#[test]
fn the_shell_runs_statements_and_keeps_what_they_did() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = "CREATE DATABASE shop; USE shop;\n\
                  CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20)); -- a comment; with a semicolon\n\
                  INSERT INTO t VALUES (1, 'semi;colon'),\n (2, NULL);\n";
    assert_eq!(stdout_of(&sql(&directory, &[], script)), "");
    let output = sql(
        &directory,
        &["-D", "shop", "-e", "SELECT * FROM t ORDER BY a"],
        "",
    );
    assert_eq!(stdout_of(&output), "a\tb\n1\tsemi;colon\n2\tNULL\n");
    let output = sql(
        &directory,
        &["-t", "-D", "shop", "-e", "SELECT * FROM t WHERE a = 2 \\G"],
        "",
    );
    assert!(
        stdout_of(&output).contains("*\na: 2\nb: NULL\n1 row in set ("),
        "{output:?}"
    );
    let output = sql(
        &directory,
        &["-t", "-e", "SELECT a FROM shop.t WHERE a > 1"],
        "",
    );
    assert!(
        stdout_of(&output).starts_with("+---+\n| a |\n+---+\n| 2 |\n+---+\n1 row in set ("),
        "{output:?}"
    );
}

#[test]
fn the_shell_stops_at_the_first_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = sql(
        &directory,
        &["-e", "SELECT 1; SELECT * FROM nowhere.t; SELECT 2"],
        "",
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n1\n");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.starts_with("ERROR 1146 (42S02): ") || error.starts_with("ERROR 1049 (42000): "),
        "{error}"
    );
}

#[test]
fn sizes_must_be_sizes() {
    let output = sheaf()
        .args(["sql", "--data-dir", "/nonexistent", "--memory", "lots"])
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a size"));
}

/// Starts a server process and waits until it is ready.
pub fn serve(directory: &tempfile::TempDir) -> (Child, u16) {
    serve_with(directory.path(), &[])
}

/// As [`serve`], with more arguments.
pub fn serve_with(directory: &std::path::Path, arguments: &[&str]) -> (Child, u16) {
    serve_logged(directory, arguments, Stdio::null())
}

/// As [`serve_with`]; what the server says goes to `log`.
pub fn serve_logged(directory: &std::path::Path, arguments: &[&str], log: Stdio) -> (Child, u16) {
    serve_by(sheaf(), directory, arguments, log)
}

/// As [`serve_with`], with the server in a control group.
pub fn serve_in(group: &std::path::Path, directory: &std::path::Path) -> (Child, u16) {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""])
        .arg(group)
        .arg(sheaf().get_program());
    serve_by(shell, directory, &[], Stdio::null())
}

pub fn serve_by(
    mut sheaf: Command,
    directory: &std::path::Path,
    arguments: &[&str],
    log: Stdio,
) -> (Child, u16) {
    let mut child = sheaf
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--memory",
            "64M",
            "--data-dir",
        ])
        .arg(directory)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("sheaf runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped"))
        .read_line(&mut line)
        .expect("sheaf says when");
    let port = line
        .trim()
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok());
    (
        child,
        port.unwrap_or_else(|| panic!("the port is missing in {line:?}")),
    )
}

pub fn connect(port: u16) -> Conn {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("root"))
        .prefer_socket(false);
    Conn::new(options).expect("root may connect")
}

/// Ends a server that closes its data.
pub fn stop(mut server: Child) {
    terminate(&server);
    server.wait().expect("the process is ours");
}

pub fn terminate(child: &Child) {
    let status = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .expect("kill runs");
    assert!(status.success());
}

#[test]
fn a_server_that_is_told_to_end_closes_cleanly_and_keeps_everything() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut child, port) = serve(&directory);
    let mut connection = connect(port);
    for sql in [
        "CREATE DATABASE shop",
        "USE shop",
        "CREATE TABLE t (a INT PRIMARY KEY)",
        "INSERT INTO t VALUES (7)",
    ] {
        connection
            .query_drop(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    // The connection is idle, so there is nothing to wait for.
    terminate(&child);
    let mut status = None;
    wait_until("the server to end", || {
        status = child.try_wait().expect("the process is ours");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    assert!(connection.ping().is_err(), "the connection is closed");

    let (mut child, port) = serve(&directory);
    assert_eq!(
        query_text(&mut connect(port), "SELECT a FROM shop.t"),
        ["7"]
    );
    terminate(&child);
    assert!(child.wait().expect("the process is ours").success());
}

#[test]
fn a_client_may_end_a_server() {
    if !installed("mariadb-admin", &["mariadb-admin", "--version"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let admin = |port: u16, command: &str| {
        let output = Command::new("mariadb-admin")
            .args(["-h127.0.0.1", "-uroot", &format!("-P{port}"), command])
            .output()
            .expect("mariadb-admin runs");
        stdout_of(&output)
    };
    let (mut child, port) = serve(&directory);
    admin(port, "refresh");
    admin(port, "flush-status");
    let mut connection = connect(port);
    for sql in ["CREATE DATABASE shop", "CREATE USER reader"] {
        connection.query_drop(sql).expect("root may");
    }
    let reader = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("reader"))
        .prefer_socket(false);
    let mut reader = Conn::new(reader).expect("it may connect");
    assert_eq!(
        error_of(reader.query_drop("SHUTDOWN")),
        (1227, "42000".into())
    );
    admin(port, "shutdown");
    assert!(child.wait().expect("the process is ours").success());

    let (mut child, port) = serve(&directory);
    let mut connection = connect(port);
    connection.query_drop("USE shop").expect("it was kept");
    connection.query_drop("SHUTDOWN").expect("root may");
    assert!(child.wait().expect("the process is ours").success());
}

#[test]
fn a_server_reads_files_of_one_directory_if_it_is_told_which() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir(at("in")).expect("the directory is ours");
    std::fs::write(at("in").join("rows"), "1\n2\n").expect("the directory is ours");
    std::fs::write(at("outside"), "3\n").expect("the directory is ours");
    let load = |file: &str| format!("LOAD DATA INFILE '{file}' INTO TABLE shop.t");

    let (mut child, port) = serve_with(&at("data"), &[]);
    let mut connection = connect(port);
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (a INT PRIMARY KEY)",
    ] {
        connection.query_drop(sql).expect("the database is new");
    }
    assert_eq!(error_of(connection.query_drop(load("rows"))).0, 1290);
    drop(connection);
    terminate(&child);
    assert!(child.wait().expect("the process is ours").success());

    let folder = at("in");
    let allowed = ["--secure-file-priv", folder.to_str().expect("a plain path")];
    let (mut child, port) = serve_with(&at("data"), &allowed);
    let mut connection = connect(port);
    connection
        .query_drop(load("rows"))
        .expect("the file is there");
    let outside = at("outside");
    for file in ["../outside", outside.to_str().expect("a plain path")] {
        assert_eq!(
            error_of(connection.query_drop(load(file))).0,
            1290,
            "{file}"
        );
    }
    assert_eq!(
        query_text(&mut connection, "SELECT SUM(a) FROM shop.t"),
        ["3"]
    );
    drop(connection);
    terminate(&child);
    assert!(child.wait().expect("the process is ours").success());

    let output = sheaf()
        .args(["serve", "--secure-file-priv", "/nonexistent", "--data-dir"])
        .arg(at("data"))
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent"));
}
