//! The plans that a query can be forced into: what EXPLAIN names, turned into hints and switches.

use std::fmt::Write as _;

/// Columns of EXPLAIN.
const TABLE: usize = 2;
const POSSIBLE_KEYS: usize = 5;
const KEY: usize = 6;
const ROWS: usize = 9;
const FILTERED: usize = 10;
const EXTRA: usize = 11;

/// EXPLAIN's rows.
pub type Explained = Vec<Vec<Option<String>>>;

/// A way to force a plan.
pub struct Force {
    pub label: String,
    pub settings: Vec<String>,
    /// For a comment after each SELECT.
    hint: Option<String>,
}

impl Force {
    /// No force at all.
    pub fn free() -> Force {
        Force {
            label: "free choice".to_string(),
            settings: Vec::new(),
            hint: None,
        }
    }

    /// The query with the hint behind each SELECT: names that a block does not have are warnings.
    pub fn hinted(&self, sql: &str) -> String {
        let Some(hint) = &self.hint else {
            return sql.to_string();
        };
        let lower = sql.to_ascii_lowercase();
        let mut hinted = String::with_capacity(sql.len());
        let mut copied = 0;
        for (start, keyword) in lower.match_indices("select") {
            let end = start + keyword.len();
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let before = start.checked_sub(1).and_then(|at| lower.as_bytes().get(at));
            let after = lower.as_bytes().get(end);
            if !before.is_some_and(is_name) && !after.is_some_and(is_name) {
                hinted.push_str(&sql[copied..end]);
                let _ = write!(hinted, " /*+ {hint} */");
                copied = end;
            }
        }
        hinted.push_str(&sql[copied..]);
        hinted
    }
}

/// A plan without its estimates.
pub fn shape(rows: &Explained) -> String {
    let mut text = String::new();
    for row in rows {
        for (column, value) in row.iter().enumerate() {
            if ![POSSIBLE_KEYS, ROWS, FILTERED].contains(&column) {
                let _ = write!(text, "{}|", value.as_deref().unwrap_or("-"));
            }
        }
        text.push('\n');
    }
    text
}

/// A plan in a few words: each table with its index, and whether it is read by multi-range read.
pub fn in_words(rows: &Explained) -> String {
    let words = rows.iter().filter_map(|row| {
        let table = cell(row, TABLE)?;
        let mut word = table.to_string();
        if let Some(key) = cell(row, KEY) {
            let _ = write!(word, ".{key}");
        }
        let extra = cell(row, EXTRA).unwrap_or_default();
        for (note, short) in [("MRR", "+mrr"), ("hash join", "+hash")] {
            if extra.contains(note) {
                word.push_str(short);
            }
        }
        Some(word)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a plan reads by multi-range read.
pub fn uses_mrr(rows: &Explained) -> bool {
    rows.iter()
        .any(|row| cell(row, EXTRA).is_some_and(|extra| extra.contains("MRR")))
}

/// Everything that the plan could be forced into otherwise.
pub fn forces(rows: &Explained) -> Vec<Force> {
    let switch = |flag: &str| Force {
        label: flag.to_string(),
        settings: vec![format!("set optimizer_switch = '{flag}'")],
        hint: None,
    };
    let mut forces: Vec<Force> = [
        "mrr=off",
        "mrr_cost_based=off",
        "index_condition_pushdown=off",
        "batched_key_access=off",
        "hash_join=off",
    ]
    .into_iter()
    .map(switch)
    .collect();
    // Derived tables have no hints of their own.
    let is_stored = |table: &&str| !table.starts_with('<');
    let tables: Vec<(&str, &[Option<String>])> = rows
        .iter()
        .filter_map(|row| Some((cell(row, TABLE).filter(is_stored)?, row.as_slice())))
        .collect();
    let mut hint = |hint: String| {
        forces.push(Force {
            label: hint.clone(),
            settings: Vec::new(),
            hint: Some(hint),
        });
    };
    for (table, row) in &tables {
        let keys = cell(row, POSSIBLE_KEYS).unwrap_or_default();
        for key in keys.split(',').filter(|key| !key.is_empty()) {
            hint(format!("INDEX({table} {key})"));
            hint(format!("INDEX({table} {key}) NO_MRR({table})"));
        }
        if !keys.is_empty() {
            hint(format!("NO_INDEX({table})"));
        }
        if tables.len() > 1 {
            hint(format!("JOIN_PREFIX({table})"));
            hint(format!("NO_HASH_JOIN({table})"));
            hint(format!("HASH_JOIN({table})"));
            hint(format!("NO_BKA({table})"));
        }
    }
    if let [(one, _), (other, _)] = tables.as_slice() {
        for (first, second) in [(one, other), (other, one)] {
            hint(format!("JOIN_PREFIX({first}) HASH_JOIN({second})"));
            hint(format!("JOIN_PREFIX({first}) NO_HASH_JOIN({second})"));
        }
    }
    forces
}

fn cell(row: &[Option<String>], column: usize) -> Option<&str> {
    row.get(column)?.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_block_gets_the_hint() {
        let force = Force {
            label: String::new(),
            settings: Vec::new(),
            hint: Some("NO_MRR(t)".to_string()),
        };
        assert_eq!(
            force.hinted("select a from (SELECT selected from t) as select_1"),
            "select /*+ NO_MRR(t) */ a from (SELECT /*+ NO_MRR(t) */ selected from t) as select_1"
        );
    }
}
