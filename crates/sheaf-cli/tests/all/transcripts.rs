//! Plans and counters as golden transcripts: `tests/transcripts/*.txt`, over TPC-H at scale 0.01, all in memory.
//!
//! A transcript is a list of commands and what they print. A line `> sql` runs a statement and shows its rows, columns
//! separated by ` | `; a line `> counters sql` runs a statement and shows how many rows it returned and the Handler
//! counters that it moved. `> tree sql` shows the plan's operators without their estimates, `> trace sql` what the
//! optimizer considered and why it lost, without costs, which depend on the machine. `> cold` opens the database again,
//! so that nothing is in memory. Lines with `#` say what to look at.
//!
//! When a change of plans is wanted, `SHEAF_WRITE_TRANSCRIPTS=1` makes the test write the files anew: the diff is then
//! what has to be understood.

use std::fmt::Write as _;
use std::fs;

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_sql::EngineOptions;

use crate::harness::{TestServer, query_text, tests_folder};
use crate::tpch;

/// Set: files are written, not compared.
const WRITE: &str = "SHEAF_WRITE_TRANSCRIPTS";

/// Runs the commands of a transcript and returns it with what they print now.
fn replay(server: &mut TestServer, transcript: &str) -> String {
    let mut session = connect(server);
    let mut output = String::new();
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            let _ = writeln!(output, "{line}");
            let printed = match command.split_once(' ') {
                _ if command == "cold" => {
                    drop(session);
                    server.restart();
                    session = connect(server);
                    Vec::new()
                }
                Some(("counters", sql)) => counters(&mut session, sql),
                Some(("tree", sql)) => tree(&mut session, sql),
                Some(("trace", sql)) => trace(&mut session, sql),
                _ => query_text(&mut session, command),
            };
            for line in printed {
                let _ = writeln!(output, "{}", line.replace('\t', " | "));
            }
        } else if line.starts_with('#') || line.is_empty() {
            let _ = writeln!(output, "{line}");
        }
    }
    output
}

fn connect(server: &TestServer) -> Conn {
    let mut session = server.connect();
    session.query_drop("use tpch").expect("it was loaded");
    session
}

/// The operators of the plan.
fn tree(session: &mut Conn, sql: &str) -> Vec<String> {
    let tree = query_text(session, &format!("explain format=tree {sql}")).join("\n");
    let operators = tree.lines().map(|line| match line.split_once("  (cost=") {
        Some((operator, _)) => operator.to_string(),
        None => line.to_string(),
    });
    operators.collect()
}

/// For each table and each step of a join the ways that were considered, and why they lost.
fn trace(session: &mut Conn, sql: &str) -> Vec<String> {
    let set = |session: &mut Conn, value: &str| {
        let set = format!("set optimizer_trace='enabled={value}'");
        session.query_drop(set).expect("a flag");
    };
    set(session, "on");
    query_text(session, &format!("explain {sql}"));
    set(session, "off");
    let trace = "select trace from information_schema.optimizer_trace";
    let trace = query_text(session, trace).join("\n");
    let mut lines = Vec::new();
    let (mut prefix, mut way) = (String::new(), Vec::new());
    let mut in_prefix = false;
    for line in trace.lines().map(|line| line.trim().trim_end_matches(',')) {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        let value = value.trim_matches('"');
        match name.trim_matches('"') {
            "plan_prefix" => (prefix, in_prefix) = (String::new(), true),
            "]" => in_prefix = false,
            table if in_prefix => prefix.push_str(&format!("{table}, ")),
            "table" => {
                lines.push(format!("{prefix}{value}"));
                prefix.clear();
                way.clear();
            }
            "access_type" | "index" => way.push(value.to_string()),
            "using_mrr" if value != "false" => way.push("mrr".to_string()),
            "in_memory" => way.push(format!("{value} in memory")),
            "chosen" if value == "true" => {
                lines.push(format!("    {}: chosen", way.join(" ")));
                way.clear();
            }
            "cause" => {
                lines.push(format!("    {}: {value}", way.join(" ")));
                way.clear();
            }
            "chosen_join_order" | "final_plan" => break,
            _ => {}
        }
    }
    lines
}

/// Rows returned, and the counters that are not zero after the statement.
fn counters(session: &mut Conn, sql: &str) -> Vec<String> {
    session.query_drop("flush status").expect("always allowed");
    let rows = query_text(session, sql).len();
    let mut lines = vec![format!("rows returned\t{rows}")];
    lines.extend(
        query_text(session, "show session status like 'Handler%'")
            .into_iter()
            .filter(|line| {
                let (name, value) = line.split_once('\t').unwrap_or_default();
                let is_transaction = ["Handler_commit", "Handler_rollback"].contains(&name);
                value != "0" && !is_transaction
            }),
    );
    lines
}

#[test]
fn plans_and_counters_are_as_recorded() {
    // One worker: the number of descents does not depend on the machine.
    let mut server = TestServer::start_with(
        EngineOptions {
            memory_bytes: 256 << 20,
            threads: Some(1),
            ..EngineOptions::default()
        },
        |_, _| {},
    );
    tpch::load(&mut server.connect(), 0.01);
    let mut files: Vec<_> = fs::read_dir(tests_folder("transcripts"))
        .expect("the folder can be listed")
        .map(|entry| entry.expect("a folder entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there are transcripts");
    let mut report = String::new();
    for file in files {
        let recorded = fs::read_to_string(&file).expect("a transcript can be read");
        let actual = replay(&mut server, &recorded);
        if std::env::var_os(WRITE).is_some() {
            fs::write(&file, &actual).expect("a transcript can be written");
        } else if actual != recorded {
            let _ = writeln!(report, "{}:", file.display());
            for (line, (old, new)) in recorded.lines().zip(actual.lines()).enumerate() {
                if old != new {
                    let _ = writeln!(report, "{}: - {old}\n{0}: + {new}", line + 1);
                }
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}
