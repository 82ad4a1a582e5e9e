//! Plans and counters as golden transcripts: `tests/transcripts/*.txt`, over TPC-H at scale 0.01, all in memory.
//!
//! A transcript is a list of commands and what they print. A line `> sql` runs a statement and shows its rows, columns
//! separated by ` | `; a line `> counters sql` runs a statement and shows how many rows it returned and the Handler
//! counters that it moved. Lines with `#` say what to look at.
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
fn replay(session: &mut Conn, transcript: &str) -> String {
    let mut output = String::new();
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            let _ = writeln!(output, "{line}");
            let printed = match command.strip_prefix("counters ") {
                Some(sql) => counters(session, sql),
                None => query_text(session, command),
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
    let server = TestServer::start_with(
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
        let mut session = server.connect();
        session.query_drop("use tpch").expect("it was just loaded");
        let actual = replay(&mut session, &recorded);
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
