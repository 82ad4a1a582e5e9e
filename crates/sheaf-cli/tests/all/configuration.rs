//! Options of a server from a file and the environment, and a database made before its first server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::command_line::{connect, serve_by, sheaf, stdout_of};
use crate::harness::wait_until;

fn send(signal: i32, child: &std::process::Child) {
    let status = Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

fn failed(command: &mut Command) -> String {
    let output: Output = command.output().expect("it runs");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("it is written");
}

#[test]
fn a_server_takes_its_options_from_a_file_and_reads_it_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("sheaf.toml");
    write(
        &file,
        "max_connections = 7\n[variables]\nlong_query_time = 3\nsql_mode = \"ANSI\"\n",
    );
    let mut command = sheaf();
    command.env("SHEAF_CONFIG", &file);
    let (mut child, port) = serve_by(
        command,
        &directory.path().join("data"),
        &["--set", "wait_timeout=77"],
        Stdio::null(),
    );
    let mut client = connect(port);
    let shown: Option<(u64, f64, u64, String)> = client
        .query_first(
            "SELECT @@max_connections, @@global.long_query_time, @@global.wait_timeout, @@sql_mode",
        )
        .expect("it answers");
    let (connections, seconds, timeout, mode) = shown.expect("a row");
    assert_eq!((connections, timeout), (7, 77));
    assert!((seconds - 3.0).abs() < f64::EPSILON);
    assert!(mode.contains("ANSI"), "{mode}");

    // A fault keeps all that is there, a file without one is taken.
    for faulty in [
        "[variables]\nlong_query_time = []\n",
        "[variables]\nlong_query_time = 99\nwait_timeout = \"long\"\n",
        "[variables]\nlong_query_time = 99\nport = 7\n",
    ] {
        write(&file, faulty);
        send(SIGHUP, &child);
    }
    write(
        &file,
        "[variables]\nwait_timeout = 9\nlong_query_time = 4\n",
    );
    send(SIGHUP, &child);
    wait_until("the file is read again", || {
        let seconds: Option<f64> = client
            .query_first("SELECT @@global.long_query_time")
            .expect("it answers");
        seconds.is_some_and(|seconds| (seconds - 4.0).abs() < f64::EPSILON)
    });
    // A flag comes before the file.
    let timeout: Option<u64> = client
        .query_first("SELECT @@global.wait_timeout")
        .expect("it answers");
    assert_eq!(timeout, Some(77));
    drop(client);
    send(SIGTERM, &child);
    assert!(child.wait().expect("the process is ours").success());
}

#[test]
fn a_server_does_not_start_with_a_fault_in_its_configuration() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("sheaf.toml");
    write(&file, "memory = \"64M\"\nmemroy = 1\n");
    let data = directory.path().join("data");
    let serve = |file: &Path| {
        let mut command = sheaf();
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command
            .arg("--config")
            .arg(file)
            .arg("--data-dir")
            .arg(&data);
        failed(&mut command)
    };
    let said = serve(&file);
    assert!(
        said.contains("sheaf.toml:2: there is no option memroy"),
        "{said}"
    );
    assert!(!data.exists());
    let said = failed(sheaf().args(["config", "check"]).arg(&file));
    assert!(
        said.contains("sheaf.toml:2: there is no option memroy"),
        "{said}"
    );
    let said = serve(&directory.path().join("absent"));
    assert!(said.contains("absent"), "{said}");
    // What only the server knows is said by name, too.
    write(
        &file,
        "memory = \"64M\"\n[variables]\nno_such_variable = 1\n",
    );
    let said = serve(&file);
    assert!(said.contains("no_such_variable"), "{said}");
}

#[test]
fn config_check_knows_the_limits_of_the_engine() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("sheaf.toml");
    for (text, wanted) in [
        ("fill_factor = 0.2\n", ":1: fill_factor: '0.2' does not lie"),
        ("fill_factor = nan\n", ":1: fill_factor: 'nan' does not lie"),
        ("memory = 1\n", ":1: memory: '1' is less than 16 MiB"),
        ("memory = \"64M\"\npool = \"63M\"\n", "leaves too little"),
        ("max_connections = 0\n", ":1: max_connections: '0' is not"),
        (
            "recovery_time_goal = nan\n",
            ":1: recovery_time_goal: 'nan'",
        ),
        ("archive_interval = -1\n", ":1: archive_interval: '-1'"),
        ("[variables]\nno_such = 1\n", ":2: no_such = 1: "),
        ("[variables]\nautocommit = 7\n", ":2: autocommit = 7: "),
        ("[variables]\nport = 7\n", ":2: port = 7: "),
    ] {
        write(&file, text);
        let said = failed(sheaf().args(["config", "check"]).arg(&file));
        assert!(said.contains(wanted), "{text}: {said}");
        let data = directory.path().join("data");
        let mut serve = sheaf();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        serve.arg(&data).arg("--config").arg(&file);
        failed(&mut serve);
    }
}

#[test]
fn config_check_says_where_each_option_comes_from() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("sheaf.toml");
    write(&file, "memory = \"64M\"\n[variables]\nautocommit = true\n");
    let mut command = sheaf();
    command.args(["config", "check"]).arg(&file);
    command.env("SHEAF_MAX_CONNECTIONS", "9");
    let said = stdout_of(&command.output().expect("it runs"));
    let words: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let place = format!("{}:1", file.display());
    assert!(words.contains(&vec!["memory", "64M", &place]), "{said}");
    assert!(
        words.contains(&vec!["max_connections", "9", "SHEAF_MAX_CONNECTIONS"]),
        "{said}"
    );
    assert!(words.contains(&vec!["sync_log", "on", "default"]), "{said}");
    let place = format!("{}:3", file.display());
    assert!(
        words.contains(&vec!["variables.autocommit", "ON", &place]),
        "{said}"
    );
}

#[test]
fn a_server_without_a_password_listens_to_this_machine_only() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let init = |arguments: &[&str]| {
        let mut command = sheaf();
        command
            .args(["init", "--memory", "64M", "--data-dir"])
            .arg(&data);
        command.args(arguments);
        command
    };
    let said = stdout_of(&init(&[]).output().expect("it runs"));
    assert!(said.contains("root has no password"), "{said}");
    assert!(failed(&mut init(&[])).contains("there is a database"));
    let said = failed(
        sheaf()
            .args([
                "serve",
                "--memory",
                "64M",
                "--listen",
                "0.0.0.0:0",
                "--data-dir",
            ])
            .arg(&data),
    );
    assert!(
        said.contains("'root'@'localhost' administers the server and has no password"),
        "{said}"
    );

    let password = directory.path().join("password");
    write(&password, "it's a \\ secret\n");
    let file = password.to_str().expect("text");
    stdout_of(
        &init(&["--secure", "--password-file", file])
            .output()
            .expect("it runs"),
    );
    let said = stdout_of(&init(&["--secure"]).output().expect("it runs"));
    assert!(said.contains("nothing was changed"), "{said}");
    let (mut child, port) = serve_by(sheaf(), &data, &["--listen", "0.0.0.0:0"], Stdio::null());
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .prefer_socket(false)
        .user(Some("root"));
    assert!(Conn::new(options.clone()).is_err());
    Conn::new(options.pass(Some("it's a \\ secret"))).expect("the password fits");
    send(SIGTERM, &child);
    assert!(child.wait().expect("the process is ours").success());
}
