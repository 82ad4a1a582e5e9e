//! Backup, archive and restore as an operator uses them: with the `sheaf` command, beside clients that write.

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::Utc;
use mysql::prelude::Queryable;

use crate::clients::{installed, mariadb};
use crate::command_line::{check, connect, serve_logged, serve_with, sheaf, stdout_of, terminate};
use crate::harness::{error_of, query_text, wait_until};

const ACCOUNTS: u64 = 3_000;

fn run(arguments: &[&str], paths: &[(&str, &Path)]) -> Output {
    let mut command = sheaf();
    command.args(arguments);
    for (name, path) in paths {
        command.arg(name).arg(path);
    }
    command.output().expect("sheaf runs")
}

/// The time by this machine's clock, which is also the server's, as an argument.
fn now() -> String {
    Utc::now().format("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

/// What is in a directory, by a server on it.
fn ask(data: &Path, sql: &str) -> Vec<String> {
    let (mut server, port) = serve_with(data, &[]);
    let found = query_text(&mut connect(port), sql);
    terminate(&server);
    server.wait().expect("the process is ours");
    found
}

#[test]
fn a_server_is_backed_up_while_it_serves_and_restored_to_a_moment() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let archive = at("archive");
    let archive_to = ["--archive-to", archive.to_str().expect("a plain path")];
    let (mut server, port) = serve_with(&at("data"), &archive_to);
    let mut connection = connect(port);
    for sql in [
        "CREATE DATABASE bank",
        "USE bank",
        "CREATE TABLE account (id INT PRIMARY KEY, amount INT, note VARCHAR(200), KEY (amount))",
        "CREATE TABLE word (text VARCHAR(20) PRIMARY KEY)",
    ] {
        connection
            .query_drop(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for first in (0..ACCOUNTS).step_by(500) {
        let rows: Vec<String> = (first..first + 500)
            .map(|id| format!("({id}, 100, REPEAT('x', 150))"))
            .collect();
        let sql = format!("INSERT INTO account VALUES {}", rows.join(", "));
        connection.query_drop(sql).expect("the rows are new");
    }

    // The backup is made while money moves.
    let is_over = AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut mover = connect(port);
            let mut turn = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                turn += 1;
                let (from, to) = (turn * 7 % ACCOUNTS, turn * 13 % ACCOUNTS);
                for sql in [
                    "BEGIN".to_string(),
                    format!("UPDATE bank.account SET amount = amount - 1 WHERE id = {from}"),
                    format!("UPDATE bank.account SET amount = amount + 1 WHERE id = {to}"),
                    "COMMIT".to_string(),
                ] {
                    mover.query_drop(sql).expect("nobody else writes");
                }
            }
        });
        let address = format!("127.0.0.1:{port}");
        let output = run(
            &["backup", "--server", &address],
            &[("--to", &at("backup"))],
        );
        is_over.store(true, Ordering::Relaxed);
        stdout_of(&output)
    });
    assert!(said.contains("of data,"), "{said}");
    let again = connection.query_drop(format!("BACKUP TO '{}'", at("backup").display()));
    assert_eq!(error_of(again).0, 1030, "the folder is not empty");
    let relative = connection.query_drop("BACKUP TO 'backup'");
    assert_eq!(error_of(relative).0, 1210);

    // A history with moments.
    for word in ["one", "two", "three"] {
        connection
            .query_drop(format!("INSERT INTO word VALUES ('{word}')"))
            .expect("it is new");
    }
    let before_the_accident = now();
    connection
        .query_drop("DROP TABLE word")
        .expect("it is there");
    connection
        .query_drop("DELETE FROM account")
        .expect("it is there");
    terminate(&server);
    assert!(server.wait().expect("the process is ours").success());

    // The moment before, and the end.
    let restored = run(
        &["restore", "--until", &before_the_accident],
        &[
            ("--from", &at("backup")),
            ("--archive", &archive),
            ("--data-dir", &at("restored")),
        ],
    );
    let said = stdout_of(&restored);
    assert!(
        said.contains("The first one that is not in was committed at"),
        "{said}"
    );
    let said = stdout_of(&check(&at("restored")));
    assert!(said.ends_with("no problem found\n"), "{said}");
    let sums = "SELECT (SELECT SUM(amount) FROM bank.account), (SELECT COUNT(*) FROM bank.account)";
    let all = format!("{}\t{ACCOUNTS}", ACCOUNTS * 100);
    assert_eq!(ask(&at("restored"), sums), [all.as_str()]);
    let words = "SELECT text FROM bank.word ORDER BY text";
    assert_eq!(ask(&at("restored"), words), ["one", "three", "two"]);

    stdout_of(&run(
        &["restore"],
        &[
            ("--from", &at("backup")),
            ("--archive", &archive),
            ("--data-dir", &at("end")),
        ],
    ));
    assert_eq!(ask(&at("end"), "SHOW TABLES FROM bank"), ["account"]);
    assert_eq!(ask(&at("end"), "SELECT COUNT(*) FROM bank.account"), ["0"]);

    // The backup itself is a database, too.
    assert_eq!(ask(&at("backup"), sums), [all.as_str()]);
    let said = stdout_of(&check(&at("backup")));
    assert!(said.ends_with("no problem found\n"), "{said}");
    let opened = run(
        &["restore"],
        &[("--from", &at("backup")), ("--data-dir", &at("too late"))],
    );
    assert!(!opened.status.success());
    assert!(String::from_utf8_lossy(&opened.stderr).contains("was opened"));
}

/// The whole way with nothing but commands, and an accident that the server does not survive.
#[test]
fn a_moment_of_the_servers_clock_is_restored_after_it_was_killed() {
    if !installed("the mariadb client", &["mariadb", "--version"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let archive = at("archive");
    let archive_to = [
        "--archive-interval",
        "0.1",
        "--archive-to",
        archive.to_str().expect("a plain path"),
    ];
    let (mut server, port) = serve_with(&at("data"), &archive_to);
    let say = |sql: &str| stdout_of(&mariadb(port, &["-N", "-e", sql]));
    say("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, total DECIMAL(9,2))");
    say("INSERT INTO shop.orders VALUES (1, 10.50), (2, 20)");
    let archive_has_all = || {
        wait_until("the archive has all", || {
            say("SHOW STATUS LIKE 'Archive_waiting_bytes'").trim() == "Archive_waiting_bytes\t0"
        });
    };
    archive_has_all();
    let before_backup = say("SELECT UTC_TIMESTAMP(6)");
    let backup = at("backup");
    let made = say(&format!("BACKUP TO '{}'", backup.display()));
    assert!(
        made.starts_with(backup.to_str().expect("a plain path")),
        "{made}"
    );
    // A load, whose pages are in the archive and not in the backup.
    let rows: Vec<String> = (10..5_000).map(|id| format!("({id}, {id}.25)")).collect();
    say(&format!(
        "INSERT INTO shop.orders VALUES {}",
        rows.join(", ")
    ));
    say("CREATE INDEX by_total ON shop.orders (total)");
    let moment = say("SELECT UTC_TIMESTAMP(6)");
    say("UPDATE shop.orders SET total = 0");
    archive_has_all();
    server.kill().expect("the process is ours");
    server.wait().expect("the process is ours");

    let restored = |until: &str, to: &Path| {
        run(
            &["restore", "--until", until],
            &[
                ("--from", &backup),
                ("--archive", &archive),
                ("--data-dir", to),
            ],
        )
    };
    stdout_of(&restored(moment.trim(), &at("restored")));
    let sums = "SELECT COUNT(*), SUM(total) FROM shop.orders FORCE INDEX (by_total)";
    let expected = (10..5_000).sum::<u64>() as f64 + 0.25 * 4_990.0 + 30.5;
    let expected = format!("4992\t{expected:.2}");
    assert_eq!(ask(&at("restored"), sums), [expected]);
    let said = stdout_of(&check(&at("restored")));
    assert!(said.ends_with("no problem found\n"), "{said}");

    // What only older backups need is not needed for that.
    let pruned = run(
        &["prune"],
        &[("--archive", &archive), ("--oldest-backup", &backup)],
    );
    let said = stdout_of(&pruned);
    assert!(
        said.contains("removed") && !said.contains(" 0 objects"),
        "{said}"
    );
    stdout_of(&restored(moment.trim(), &at("again")));

    let refused = restored(before_backup.trim(), &at("too early"));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("take an older backup"),
        "{said}"
    );
}

/// A share that is gone, as a full disk, is no reason to stop: the server says so, and goes on as long as it may.
#[test]
fn an_archive_that_is_gone_is_complained_about_and_stops_changes_only_at_the_limit() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let archive = at("archive");
    let arguments = [
        "--archive-interval",
        "0.1",
        "--archive-lag-limit",
        "1M",
        "--archive-to",
        archive.to_str().expect("a plain path"),
    ];
    let log = std::fs::File::create(at("log")).expect("the folder is ours");
    let (mut server, port) = serve_logged(&at("data"), &arguments, log.into());
    let mut connection = connect(port);
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY, b TEXT)",
    ] {
        connection.query_drop(sql).expect("it is new");
    }
    std::fs::rename(&archive, at("elsewhere")).expect("both names are ours");
    let mut insert = |key: u64| {
        connection.query_drop(format!(
            "INSERT INTO d.t VALUES ({key}, REPEAT(HEX({key}), 2000))"
        ))
    };
    insert(0).expect("the server goes on");
    wait_until("the server says so", || {
        let said = std::fs::read_to_string(at("log")).expect("the server writes it");
        said.contains("the log is not archived") && said.contains("search of")
    });
    let refused = (1..10_000).find_map(|key| insert(key).err());
    let refused = refused.expect("the limit is one megabyte");
    let said = refused.to_string();
    assert!(said.contains("archive_lag_limit_bytes"), "{said}");
    assert_eq!(error_of::<()>(Err(refused)).0, 1021);
    let count = query_text(&mut connect(port), "SELECT COUNT(*) > 1 FROM d.t");
    assert_eq!(count, ["1"], "reading goes on");
    std::fs::rename(at("elsewhere"), &archive).expect("both names are ours");
    wait_until("changes go on", || insert(20_000).is_ok());
    terminate(&server);
    assert!(server.wait().expect("the process is ours").success());
}

#[test]
fn a_password_need_not_be_in_the_list_of_processes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let (mut server, port) = serve_with(&at("data"), &[]);
    let mut connection = connect(port);
    connection
        .query_drop("ALTER USER root@localhost IDENTIFIED BY 'open sesame'")
        .expect("root may");
    std::fs::write(at("password"), "open sesame\nnot this\n").expect("the directory is ours");
    let address = format!("127.0.0.1:{port}");
    let backup = |to: &str| {
        let mut command = sheaf();
        command
            .args(["backup", "--server", &address, "--to"])
            .arg(at(to));
        command.env_remove("MYSQL_PWD");
        command
    };
    let mut by_file = backup("by file");
    let by_file = by_file.arg("--password-file").arg(at("password"));
    stdout_of(&by_file.output().expect("sheaf runs"));
    let mut by_environment = backup("by environment");
    let by_environment = by_environment.env("MYSQL_PWD", "open sesame");
    stdout_of(&by_environment.output().expect("sheaf runs"));
    let refused = backup("without").output().expect("sheaf runs");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("1045"));
    let mut absent = backup("absent");
    let absent = absent.arg("--password-file").arg(at("no such file"));
    let absent = absent.output().expect("sheaf runs");
    assert!(String::from_utf8_lossy(&absent.stderr).contains("no such file"));
    drop(connection);
    terminate(&server);
    assert!(server.wait().expect("the process is ours").success());
}

#[test]
fn a_directory_without_a_server_can_be_backed_up() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (data, copy) = (directory.path().join("data"), directory.path().join("copy"));
    let sql =
        "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); INSERT INTO d.t VALUES (1), (2)";
    stdout_of(&run(&["sql", "-e", sql], &[("--data-dir", &data)]));
    let absent = directory.path().join("absent");
    let failed = run(&["backup"], &[("--to", &copy), ("--data-dir", &absent)]);
    assert!(!failed.status.success());
    stdout_of(&run(&["backup"], &[("--to", &copy), ("--data-dir", &data)]));
    assert_eq!(ask(&copy, "SELECT COUNT(*) FROM d.t"), ["2"]);
}

#[test]
fn what_is_persisted_is_in_a_backup_and_comes_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let (mut server, port) = serve_with(&at("data"), &[]);
    let mut connection = connect(port);
    let statements = [
        "SET PERSIST lock_wait_timeout = 77".to_string(),
        format!("BACKUP TO '{}'", at("online").display()),
        "SET PERSIST lock_wait_timeout = 78".to_string(),
    ];
    for statement in &statements {
        connection.query_drop(statement).expect("root may");
    }
    drop(connection);
    terminate(&server);
    assert!(server.wait().expect("the process is ours").success());
    let offline = [("--to", &*at("offline")), ("--data-dir", &*at("data"))];
    stdout_of(&run(&["backup"], &offline));
    let restored = [("--from", &*at("online")), ("--data-dir", &*at("restored"))];
    stdout_of(&run(&["restore"], &restored));
    for (folder, expected) in [("restored", "77"), ("online", "77"), ("offline", "78")] {
        let found = ask(&at(folder), "SELECT @@GLOBAL.lock_wait_timeout");
        assert_eq!(found, [expected], "{folder}");
    }
}

#[test]
fn durability_can_be_chosen_and_changed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut server, port) = serve_with(directory.path(), &["--sync-log", "interval"]);
    let mut connection = connect(port);
    let both = "SELECT @@sync_log, @@innodb_flush_log_at_trx_commit";
    assert_eq!(query_text(&mut connection, both), ["INTERVAL\t2"]);
    connection
        .query_drop("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
        .expect("it may be set");
    assert_eq!(query_text(&mut connection, both), ["ON\t1"]);
    connection
        .query_drop("SET GLOBAL sync_log = 'off'")
        .expect("it may be set");
    assert_eq!(query_text(&mut connection, both), ["OFF\t0"]);
    assert_eq!(
        error_of(connection.query_drop("SET GLOBAL sync_log = 'maybe'")).0,
        1231
    );
    terminate(&server);
    assert!(server.wait().expect("the process is ours").success());
}

#[test]
fn a_moment_that_is_none_is_refused() {
    let output = run(
        &[
            "restore",
            "--until",
            "tomorrow",
            "--archive",
            "/a",
            "--from",
            "/b",
            "--data-dir",
            "/c",
        ],
        &[],
    );
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a time"));
}
