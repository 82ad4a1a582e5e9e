//! A plan as EXPLAIN shows it: what all of its formats print.
//!
//! ```text
//!   plan of operators --.                     .-- MySQL's table, one row for each table
//!                        >--- Explanation ---<--- FORMAT=JSON, the same rows as MySQL nests them
//!   direct plan --------'                     '-- FORMAT=TREE and EXPLAIN ANALYZE, the tree
//! ```
//!
//! A direct plan describes itself, without costs. It takes the optimizer's estimates of what operators read the same
//! way.

use crate::explain::hidden_names::HiddenNames;
use crate::explain::nested_json::explain_json;
use crate::explain::tree::PlanNode;
use crate::explain::{ExplainRow, ExtraNote};
use crate::json::Json;

/// See the module's comment.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// What is done, one operator a node; `None` if the statement reads nothing.
    pub tree: Option<PlanNode>,
    /// The tables that are read or changed, in the order in which EXPLAIN's table has them.
    pub tables: Vec<ExplainRow>,
    /// Estimated cost, in microseconds.
    pub cost_us: Option<f64>,
    /// It runs without operators.
    is_direct: bool,
}

impl Explanation {
    /// `tables` are sorted by their query blocks.
    pub fn new(
        mut tree: PlanNode,
        mut tables: Vec<ExplainRow>,
        cost_us: Option<f64>,
    ) -> Explanation {
        tables.sort_by_key(|row| row.id.unwrap_or(u64::MAX));
        let names = HiddenNames::of(&tables);
        names.show_in_tree(&mut tree);
        tables.iter_mut().for_each(|row| names.show_in_row(row));
        Explanation {
            tree: Some(tree),
            tables,
            cost_us,
            is_direct: false,
        }
    }

    /// Takes over what the optimizer estimates of tables that `operators`, a plan of the same statement, reads the
    /// same way.
    pub fn take_estimates(&mut self, operators: &Explanation) {
        let mut are_all_known = true;
        for row in &mut self.tables {
            let mut others = operators.tables.iter();
            match others.find(|other| other.is_read_as(row)) {
                Some(same) => row.take_estimates(same),
                None => are_all_known = false,
            }
        }
        if are_all_known {
            self.cost_us = operators.cost_us;
        }
        if let Some(tree) = &mut self.tree {
            tree.estimate(&self.tables);
        }
    }

    /// Names the keys, too, that `operators`, a plan of the same statement, could use.
    pub fn name_keys_of(&mut self, operators: &Explanation) {
        for row in &mut self.tables {
            let mut others = operators.tables.iter();
            if let Some(same) =
                others.find(|other| (other.id, &other.table) == (row.id, &row.table))
            {
                row.name_keys_of(same);
            }
        }
    }

    /// The statement changes `tables`; `line` says how. `kind` is what MySQL calls the change: the `select_type` of
    /// their rows.
    pub fn with_change(mut self, kind: &str, tables: &[String], line: String) -> Explanation {
        match kind {
            "INSERT" | "REPLACE" => {
                let inserted = tables.iter();
                let inserted = inserted.map(|table| ExplainRow::inserted(kind, table));
                self.tables.splice(0..0, inserted);
            }
            _ => {
                // Tables of other query blocks may have the same name.
                let first = self.tables.iter().filter_map(|row| row.id).min();
                let is_changed = |row: &&mut ExplainRow| {
                    let name = row.table.as_ref();
                    row.id == first && name.is_some_and(|table| tables.contains(table))
                };
                for row in self.tables.iter_mut().filter(is_changed) {
                    row.select_type = kind.to_string();
                }
            }
        }
        self.tree = Some(PlanNode::line(line, self.tree));
        self
    }

    /// The statement runs without operators.
    pub fn as_direct(mut self) -> Explanation {
        self.tree = Some(PlanNode::line("Direct (without operators)", self.tree));
        let tables = self.tables.iter_mut();
        for row in tables.filter(|row| row.table.is_some()) {
            row.add(ExtraNote::Direct);
        }
        self.is_direct = true;
        self
    }

    /// The tree as text.
    pub fn text(&self) -> String {
        self.tree.as_ref().map_or_else(String::new, PlanNode::print)
    }
}

/// MySQL's document of FORMAT=JSON.
impl From<&Explanation> for Json {
    fn from(explanation: &Explanation) -> Json {
        let mut json = explain_json(&explanation.tables, explanation.cost_us);
        HiddenNames::of(&explanation.tables).show_in_document(&mut json);
        if let (Json::Object(document), true) = (&mut json, explanation.is_direct) {
            document.add("direct", true);
        }
        json
    }
}
