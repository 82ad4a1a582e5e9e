//! All 22 TPC-H queries at scale 0.01, equal to MariaDB's recorded answers, however they are executed.
//!
//! `cargo run --release -p sheaf-bench -- record-answers` made `tests/tpch/answers`. The pool is 2 MiB, a fraction
//! of the data, so that every access method reads from disk and evicts.

use std::fs;
use std::path::PathBuf;

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};
use sheaf_cli::tpch::{TABLES, TableReader, schema_statements};

use crate::harness::{TestServer, tests_folder, text_rows};

const SCALE: f64 = 0.01;

fn folder(name: &str) -> PathBuf {
    tests_folder("tpch").join(name)
}

pub fn queries() -> Vec<(String, String)> {
    let mut queries: Vec<_> = fs::read_dir(folder("queries"))
        .expect("the queries can be listed")
        .map(|entry| entry.expect("a folder entry").path())
        .map(|path| {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let sql = fs::read_to_string(&path).expect("a query file can be read");
            (name, sql.trim().trim_end_matches(';').to_owned())
        })
        .collect();
    queries.sort();
    assert_eq!(queries.len(), 22);
    queries
}

fn expected(name: &str) -> Vec<String> {
    let path = folder("answers").join(name).with_extension("tsv");
    let text = fs::read_to_string(&path).expect("each query has a recorded answer");
    // The files write NULL as LOAD DATA does.
    text.lines()
        .map(|line| line.replace("\\N", "NULL"))
        .collect()
}

/// Creates and loads the TPC-H tables in a database `tpch`, which the session then uses.
pub fn load(session: &mut Conn, scale: f64) {
    session.set_local_infile_handler(Some(LocalInfileHandler::new(move |name, out| {
        let table = String::from_utf8_lossy(name).into_owned();
        let mut reader = TableReader::new(&table, scale).ok_or(std::io::ErrorKind::NotFound)?;
        std::io::copy(&mut reader, out)?;
        Ok(())
    })));
    session
        .query_drop("create database tpch")
        .expect("a new database");
    session.query_drop("use tpch").expect("the new database");
    for statement in schema_statements() {
        session.query_drop(statement).expect("a TPC-H table");
    }
    for table in TABLES {
        session
            .query_drop(format!(
                "load data local infile '{table}' into table {table} fields terminated by '|'"
            ))
            .unwrap_or_else(|error| panic!("loading {table}: {error}"));
    }
}

/// Runs every query in the session and returns a line for each wrong answer.
fn wrong_answers(session: &mut Conn, rewrite: impl Fn(&str) -> String) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, sql) in queries() {
        match session.query::<mysql::Row, _>(rewrite(&sql)) {
            Ok(rows) => {
                let (actual, expected) = (text_rows(rows), expected(&name));
                if actual != expected {
                    let first = actual.iter().zip(&expected).position(|(a, b)| a != b);
                    wrong.push(format!(
                        "{name}: {} rows instead of {}; first difference {:?}",
                        actual.len(),
                        expected.len(),
                        first.map(|at| (&actual[at], &expected[at]))
                    ));
                }
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    wrong
}

#[test]
fn answers_do_not_depend_on_how_they_are_computed() {
    let server = TestServer::start_with_pool(64 << 20, 2 << 20);
    let mut session = server.connect();
    load(&mut session, SCALE);
    let mut report = Vec::new();
    for (title, settings) in [
        ("defaults", vec![]),
        (
            "icp and mrr off",
            vec![
                "set optimizer_switch='index_condition_pushdown=off,mrr=off,batched_key_access=off'",
            ],
        ),
        (
            "icp, mrr and bka forced",
            vec![
                "set optimizer_switch='index_condition_pushdown=on,mrr=on,mrr_cost_based=off,mrr_sort_keys=on,batched_key_access=on'",
                "set mrr_buffer_size=65536",
            ],
        ),
    ] {
        for setting in settings {
            session.query_drop(setting).expect("a switch can be set");
        }
        for line in wrong_answers(&mut session, str::to_owned) {
            report.push(format!("{title}: {line}"));
        }
    }
    // Secondary indexes forced wherever a query reads these tables by name.
    let forced = wrong_answers(&mut session, |sql| {
        let mut text = String::new();
        for line in sql.lines() {
            text.push_str(&match line.trim() {
                "lineitem" => "lineitem force index (i_l_shipdate)".to_owned(),
                "lineitem," => "lineitem force index (i_l_suppkey_partkey),".to_owned(),
                "orders" => "orders force index (i_o_orderdate)".to_owned(),
                "orders," => "orders force index (i_o_custkey),".to_owned(),
                _ => line.to_owned(),
            });
            text.push('\n');
        }
        text
    });
    report.extend(
        forced
            .into_iter()
            .map(|line| format!("forced indexes: {line}")),
    );
    assert!(report.is_empty(), "{}", report.join("\n"));
}
