//! The statements that indexes are to help: those that are given, or the samples of digests.

use std::collections::BTreeMap;

use super::MAX_STATEMENTS;
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::parser::scan;
use crate::parser::text_size::{begins_with, first_word};
use crate::rights::Client;
use crate::session::Session;
use crate::virtual_database::PERFORMANCE_SCHEMA;

/// The table that the digests are read from.
const DIGESTS: &str = "events_statements_summary_by_digest";

/// A statement of the workload.
pub(super) struct WorkloadStatement {
    pub text: String,
    /// Of an INSERT of a digest: what stands in front of its rows, and an empty row. Samples of long ones are cut.
    pub without_rows: Option<String>,
    /// The database that is current for it.
    pub database: Option<String>,
    /// `None`: it is given.
    pub digest: Option<String>,
    /// How often it ran.
    pub executions: f64,
    /// Rows that it has changed each time, if that was counted.
    pub changed_rows: Option<f64>,
}

/// The statements of a text, which semicolons separate. One that is there several times has run as often. Error
/// 1065 if there is none.
pub(super) fn given_statements(session: &Session, text: &str) -> Result<Vec<WorkloadStatement>> {
    let text = session.text_by_mode(text);
    let text = scan::resolve_executable_comments(&text);
    let mut rest: &str = &text;
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    let mut statements: Vec<&str> = Vec::new();
    while let Some((range, next)) = scan::first_statement(rest) {
        let statement = &rest[range];
        let count = counts.entry(statement).or_default();
        if *count == 0.0 {
            statements.push(statement);
        }
        *count += 1.0;
        rest = &rest[next..];
    }
    if statements.is_empty() {
        return Err(SqlError::empty_query());
    }
    if statements.len() > MAX_STATEMENTS {
        return Err(SqlError::not_supported_yet(format!(
            "ADVISE INDEXES of more than {MAX_STATEMENTS} statements"
        )));
    }
    let statements = statements.into_iter().map(|statement| WorkloadStatement {
        text: statement.to_string(),
        without_rows: None,
        database: session.database.clone(),
        digest: None,
        executions: counts.get(statement).copied().unwrap_or(1.0),
        changed_rows: None,
    });
    Ok(statements.collect())
}

/// Samples of the digests that took most time, of one database or of all. Error 1142 for accounts that may not read
/// the digests.
pub(super) fn statements_of_digests(
    client: &Client,
    engine: &Engine,
    schema: Option<&str>,
) -> Result<Vec<WorkloadStatement>> {
    client.check_read(PERFORMANCE_SCHEMA, DIGESTS)?;
    let mut digests = engine.digests_of_statements();
    digests.retain(|(name, sums)| {
        let of = name.as_ref().and_then(|name| name.schema.as_deref());
        name.is_some()
            && !sums.sample.text.is_empty()
            && schema.is_none_or(|schema| of == Some(schema))
            && is_advisable(&sums.sample.text)
    });
    digests.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.sum_nanos));
    digests.truncate(MAX_STATEMENTS);
    let statements = digests.into_iter().map(|(name, sums)| WorkloadStatement {
        text: sums.sample.text,
        without_rows: name
            .as_ref()
            .and_then(|name| without_rows(&name.digest.text)),
        database: name.as_ref().and_then(|name| name.schema.clone()),
        digest: name.map(|name| name.digest.hex()),
        executions: sums.count as f64,
        changed_rows: Some(sums.rows_affected as f64 / sums.count.max(1) as f64),
    });
    Ok(statements.collect())
}

/// An INSERT of one empty row that has the beginning of a digest's text. Names have quotes there.
fn without_rows(digest: &str) -> Option<String> {
    let (beginning, _) = digest.split_once(" VALUES ")?;
    let is_insert = beginning.starts_with("INSERT") || beginning.starts_with("REPLACE");
    is_insert.then(|| format!("{beginning} VALUES ()"))
}

/// Whether a text may be a statement that reads or changes rows.
fn is_advisable(text: &str) -> bool {
    let words = [
        "SELECT", "WITH", "TABLE", "INSERT", "REPLACE", "UPDATE", "DELETE",
    ];
    // A comment with a meaning says nothing.
    first_word(text).is_empty() || begins_with(text, &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_are_cut_in_front_of_their_rows() {
        let cut = without_rows("INSERT INTO `t` ( `a` ) VALUES (...) /* , ... */");
        assert_eq!(cut.as_deref(), Some("INSERT INTO `t` ( `a` ) VALUES ()"));
        assert_eq!(without_rows("SELECT VALUES (?)"), None);
    }

    #[test]
    fn statements_about_rows_are_told_by_their_first_word() {
        for text in [
            "select 1",
            "(SELECT 1)",
            "/* c */ select 1",
            "with a as (select 1) select 1",
        ] {
            assert!(is_advisable(text), "{text}");
        }
        for text in [
            "SET a = 1",
            "SHOW TABLES",
            "CREATE TABLE t (a INT)",
            "selected",
        ] {
            assert!(!is_advisable(text), "{text}");
        }
    }
}
