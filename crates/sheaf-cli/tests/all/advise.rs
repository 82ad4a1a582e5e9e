//! `sheaf advise`: a slow query log, and a server that has the tables.

use mysql::prelude::Queryable;

use crate::command_line::{connect, serve_with, sheaf, stdout_of, terminate};

#[test]
fn a_slow_log_becomes_a_script_of_indexes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut server, port) = serve_with(&directory.path().join("data"), &[]);
    let mut connection = connect(port);
    for sql in [
        "CREATE DATABASE shop",
        "USE shop",
        "CREATE TABLE sale (id INT PRIMARY KEY, customer INT, note VARCHAR(200))",
        "CREATE TABLE one (id INT PRIMARY KEY)",
    ] {
        connection
            .query_drop(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for first in (0..10_000).step_by(1_000) {
        let rows: Vec<String> = (first..first + 1_000)
            .map(|id| format!("({id}, {}, REPEAT('x', 100))", id % 500))
            .collect();
        let insert = format!("INSERT INTO sale VALUES {}", rows.join(", "));
        connection.query_drop(insert).expect("rows");
    }
    let log = directory.path().join("slow.log");
    let entry = |statement: &str| {
        format!(
            "# User@Host: app[app] @  [10.0.0.7]  Id:     8\n\
             # Query_time: 1.500000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 9\n\
             use shop;\n\
             SET timestamp=1795942800;\n\
             {statement};\n"
        )
    };
    let entries = [
        entry("SELECT * FROM sale\nWHERE customer = 7"),
        entry("SELECT * FROM sale WHERE customer = 8"),
        entry("SELECT * FROM dropped WHERE customer = 8"),
    ];
    std::fs::write(&log, entries.concat()).expect("a log");
    let mut command = sheaf();
    command.args(["advise", "--server", &format!("127.0.0.1:{port}")]);
    let script = stdout_of(&command.arg(&log).output().expect("sheaf runs"));
    assert!(
        script.contains("-- shop: 3 statements of 2 kinds"),
        "{script}"
    );
    let index = "CREATE INDEX `idx_customer` ON `shop`.`sale` (`customer`);";
    assert!(script.contains(index), "{script}");
    assert!(script.contains("-- 1 statements were left out"), "{script}");
    connection.query_drop(index).expect("an index");
    let output = command.output().expect("sheaf runs");
    let script = stdout_of(&output);
    assert!(!script.contains("CREATE INDEX"), "{script}");
    terminate(&server);
    server.wait().expect("the process is ours");
}
