//! Queries that are bound to the algebra against the same queries that are lowered (`sheaf-frontend/src/bind/`).
//!
//! All queries of the .slt files run both ways, one after the other in one session: rows, column descriptions, warnings
//! and errors have to be the same. What the binder does not know yet is told by error 1235. How many queries it takes
//! is printed, and may not become a smaller share than [`LEAST_BOUND`].
//!
//! `SHEAF_BIND_FILE=joins` runs one file. `SHEAF_BIND_REFUSED=1` prints what was refused.

use std::collections::BTreeMap;
use std::fs;

use mysql::consts::{ColumnFlags, ColumnType};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};
use sqllogictest::{DefaultColumnType, Record};

use crate::harness::{TestServer, query_text, tests_folder};

/// Of a hundred queries of the files so many are bound, at least. To be raised with each step of the binder.
const LEAST_BOUND: usize = 99;

/// What a client sees of a query.
#[derive(Debug, PartialEq)]
struct Answer {
    columns: Vec<Told>,
    rows: Vec<Vec<Value>>,
    warnings: Vec<String>,
    error: Option<(u16, String)>,
}

/// What a client is told of a column.
#[derive(Debug, PartialEq)]
struct Told {
    name: String,
    /// Of a column of a table: database, table, name, alias of the table, and the flags that these have.
    origin: Option<(String, ColumnFlags)>,
    shape: String,
    /// Of a text.
    length: Option<u32>,
}

fn describe(column: &mysql::Column) -> Told {
    let origin = format!(
        "{}.{}.{} as {}",
        column.schema_str(),
        column.org_table_str(),
        // A derived table's column is spelled as somebody spelled it.
        column.org_name_str().to_lowercase(),
        column.table_str(),
    );
    let has_origin = !column.org_name_str().is_empty();
    Told {
        name: column.name_str().into_owned(),
        origin: has_origin.then(|| (origin, column.flags())),
        shape: format!(
            "{:?} decimals {} charset {}",
            column.column_type(),
            column.decimals(),
            column.character_set()
        ),
        length: (column.column_type() == ColumnType::MYSQL_TYPE_VAR_STRING)
            .then(|| column.column_length()),
    }
}

/// A column that a group carries has lost its origin where it was lowered. One of a set operation has kept it there.
/// And rules may know that a column is never NULL, of an outer join that is none.
fn are_told_alike(lowered: &[Told], bound: &[Told]) -> bool {
    let is_alike = |(lowered, bound): (&Told, &Told)| {
        lowered.name == bound.name
            && lowered.shape == bound.shape
            && match (&lowered.origin, &bound.origin) {
                (Some((one, lowered_flags)), Some((other, flags))) => {
                    let known = ColumnFlags::NOT_NULL_FLAG;
                    one == other
                        && *lowered_flags - known == *flags - known
                        && lowered.length == bound.length
                }
                // A computed text is announced with the longest that is known of it.
                _ => true,
            }
    };
    lowered.len() == bound.len() && lowered.iter().zip(bound).all(is_alike)
}

fn ask(connection: &mut Conn, switch: &str, sql: &str) -> Answer {
    connection
        .query_drop(format!("set optimizer_switch = '{switch}'"))
        .expect("a switch");
    let mut answer = Answer {
        columns: Vec::new(),
        rows: Vec::new(),
        warnings: Vec::new(),
        error: None,
    };
    let told = |error: mysql::Error| match error {
        mysql::Error::MySqlError(error) => Some((error.code, error.message)),
        other => panic!("{sql}: {other}"),
    };
    match connection.query_iter(sql) {
        Ok(mut result) => {
            answer.columns = result.columns().as_ref().iter().map(describe).collect();
            for row in result.by_ref() {
                match row {
                    Ok(row) => answer.rows.push(row.unwrap()),
                    Err(error) => {
                        answer.error = told(error);
                        break;
                    }
                }
            }
        }
        Err(error) => answer.error = told(error),
    }
    if answer.error.is_none() && connection.warnings() > 0 {
        answer.warnings = query_text(connection, "show warnings");
    }
    connection
        .query_drop("set optimizer_switch = 'default'")
        .expect("a switch");
    answer
}

fn is_query(sql: &str) -> bool {
    let start = sql.trim_start().trim_start_matches('(').trim_start();
    let word: String = start
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    // It is about the query before.
    if sql.to_lowercase().contains("found_rows()") {
        return false;
    }
    ["select", "with", "values"]
        .iter()
        .any(|first| word.eq_ignore_ascii_case(first))
}

/// What a difference is, if there is one. Rows may come in any order, but for those that the query orders.
fn difference(lowered: &Answer, bound: &Answer) -> Option<String> {
    match (&lowered.error, &bound.error) {
        // There is nothing to compare with.
        (Some((1235, _)), _) => return None,
        (Some((one, _)), Some((other, _))) if one == other => return None,
        (None, None) => {}
        _ => {
            return Some(format!(
                "lowered: {:?}\n  bound:   {:?}",
                lowered.error, bound.error
            ));
        }
    }
    if !are_told_alike(&lowered.columns, &bound.columns) {
        return Some(format!(
            "lowered: {:#?}\n  bound:   {:#?}",
            lowered.columns, bound.columns
        ));
    }
    let sorted = |rows: &Vec<Vec<Value>>| {
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        rows.sort();
        rows
    };
    if sorted(&lowered.rows) != sorted(&bound.rows) {
        return Some(format!(
            "lowered: {:?}\n  bound:   {:?}",
            lowered.rows, bound.rows
        ));
    }
    if lowered.warnings != bound.warnings {
        return Some(format!(
            "lowered: {:?}\n  bound:   {:?}",
            lowered.warnings, bound.warnings
        ));
    }
    None
}

#[test]
fn bound_queries_are_as_lowered_ones() {
    let server = TestServer::start();
    let only = std::env::var("SHEAF_BIND_FILE").ok();
    let mut files: Vec<_> = fs::read_dir(tests_folder("sqllogic"))
        .expect("tests/sqllogic can be listed")
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    files.sort();
    let (mut taken, mut refused) = (0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut differences = Vec::new();
    for file in files {
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let database = format!("bind_{name}");
        drop(server.connect_to_new(&database));
        let options = OptsBuilder::from_opts(server.options()).db_name(Some(&database));
        let mut connection = Conn::new(options).expect("a connection");
        let records =
            sqllogictest::parse_file::<DefaultColumnType>(&file).expect("the file parses");
        for record in records {
            let (sql, location) = match record {
                Record::Statement { sql, loc, .. } | Record::Query { sql, loc, .. } => (sql, loc),
                _ => continue,
            };
            if !is_query(&sql) {
                // Statements that are meant to fail do.
                let _ = connection.query_drop(&sql);
                continue;
            }
            let lowered = ask(&mut connection, "direct=off,bind=off", &sql);
            let bound = ask(&mut connection, "direct=off,bind_only=on", &sql);
            if let Some((1235, message)) = &bound.error
                && message.contains("'binding ")
            {
                refused += 1;
                if std::env::var_os("SHEAF_BIND_REFUSED").is_some() {
                    println!("{message}\n    {sql}");
                }
                let reason: String = message.chars().take(110).collect();
                *reasons.entry(reason).or_default() += 1;
                continue;
            }
            taken += 1;
            if let Some(difference) = difference(&lowered, &bound) {
                differences.push(format!("{location}\n  {sql}\n  {difference}"));
            }
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (reason, count) in reasons.iter().take(60) {
        println!("{count:5} {reason}");
    }
    println!("{taken} queries were bound, {refused} were not");
    assert!(
        differences.is_empty(),
        "{} of {taken} differ:\n{}",
        differences.len(),
        differences.join("\n\n")
    );
    let all = taken + refused;
    assert!(
        only.is_some() || 100 * taken >= LEAST_BOUND * all,
        "{refused} of {all} queries were not bound"
    );
}
