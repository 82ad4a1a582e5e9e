//! Sheaf against itself: statements whose answers follow from each other's.

use std::collections::BTreeMap;

use crate::answer::{Answer, Server};
use crate::query::{Generator, Parts};

/// A broken rule: the statements, and what is wrong with their answers.
pub struct Broken {
    pub statements: Vec<String>,
    pub what: String,
}

/// Ternary logic partitioning and NoREC on one random query.
pub fn check(generator: &mut Generator<'_>, sheaf: &mut Server) -> Option<Broken> {
    let parts = generator.parts();
    partitioned(&parts, sheaf).or_else(|| counted(&parts, sheaf))
}

/// Rows for which the condition is true, false and NULL are all rows.
fn partitioned(parts: &Parts, sheaf: &mut Server) -> Option<Broken> {
    let Parts {
        items,
        from,
        condition,
    } = parts;
    let all = format!("select {items}{from}");
    let statements = [
        format!("{all} where {condition}"),
        format!("{all} where not {condition}"),
        format!("{all} where ({condition}) is null"),
    ];
    let mut found: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    count(&mut found, sheaf.ask(&all), 1)?;
    for sql in &statements {
        count(&mut found, sheaf.ask(sql), -1)?;
    }
    let wrong: Vec<String> = found
        .iter()
        .filter(|(_, n)| **n != 0)
        .take(4)
        .map(|(row, n)| format!("{n:+} {}", row.join(" | ")))
        .collect();
    if wrong.is_empty() {
        return None;
    }
    Some(Broken {
        what: format!(
            "rows that all have and the three parts lack: {}",
            wrong.join(" ; ")
        ),
        statements: std::iter::once(all).chain(statements).collect(),
    })
}

/// Adds the rows of an answer; `None` when there are none because it failed.
fn count(found: &mut BTreeMap<Vec<String>, i64>, answer: Answer, times: i64) -> Option<()> {
    let Answer::Rows(rows) = answer else {
        return None;
    };
    for row in rows {
        *found.entry(row).or_default() += times;
    }
    Some(())
}

/// WHERE finds as many rows as the condition is true for in the select list.
fn counted(parts: &Parts, sheaf: &mut Server) -> Option<Broken> {
    let Parts {
        from, condition, ..
    } = parts;
    let served = format!("select count(*){from} where {condition}");
    let tested = format!("select coalesce(sum(({condition}) is true), 0){from}");
    let (one, other) = (sheaf.ask(&served), sheaf.ask(&tested));
    match (&one, &other) {
        (Answer::Rows(rows), Answer::Rows(others)) if rows != others => Some(Broken {
            what: format!("{} against {}", one.summary(), other.summary()),
            statements: vec![served, tested],
        }),
        _ => None,
    }
}
