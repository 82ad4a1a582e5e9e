//! A plan as EXPLAIN shows it: a tree of nodes, which all formats print.
//!
//! ```text
//!   plan of operators --.                     .-- MySQL's table: the rows of all nodes
//!                        >--- Explanation ---<--- the trace: the same rows
//!   direct plan --------'                     |-- FORMAT=JSON: the same rows as MySQL nests them
//!                                             '-- FORMAT=TREE and EXPLAIN ANALYZE: a line for each node
//! ```
//!
//! A direct plan describes itself, without costs. It takes the optimizer's estimates of what operators read the same
//! way.

use crate::explain::hidden_names::HiddenNames;
use crate::explain::nested_json::explain_json;
use crate::explain::plan_node::PlanNode;
use crate::explain::tree_text::{tree_json, tree_text};
use crate::explain::{ExplainRow, ExtraNote};
use crate::json::{Json, Object};

/// See the module's comment.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// What is done, one operator a node, and the tables that are read or changed; `None` if the statement reads
    /// nothing.
    pub tree: Option<PlanNode>,
    /// Estimated cost, in microseconds.
    pub cost_us: Option<f64>,
    /// It runs without operators.
    is_direct: bool,
}

impl Explanation {
    pub fn new(mut tree: PlanNode, cost_us: Option<f64>) -> Explanation {
        HiddenNames::of(tree.tables()).show_in_tree(&mut tree);
        Explanation {
            tree: Some(tree),
            cost_us,
            is_direct: false,
        }
    }

    /// EXPLAIN's table.
    pub fn tables(&self) -> Vec<&ExplainRow> {
        self.tree.as_ref().map_or_else(Vec::new, PlanNode::tables)
    }

    fn for_each_table(&mut self, mut visit: impl FnMut(&mut ExplainRow)) {
        if let Some(tree) = &mut self.tree {
            tree.for_each(&mut |node| node.tables.iter_mut().for_each(&mut visit));
        }
    }

    /// Takes over what the optimizer estimates of tables that `operators`, a plan of the same statement, reads the
    /// same way.
    pub fn take_estimates(&mut self, operators: &Explanation) {
        let others = operators.tables();
        let mut are_all_known = true;
        if let Some(tree) = &mut self.tree {
            tree.for_each(&mut |node| {
                for row in &mut node.tables {
                    match others.iter().find(|other| other.is_read_as(row)) {
                        Some(same) => row.take_estimates(same),
                        None => are_all_known = false,
                    }
                    node.rows = row.rows.map(|rows| rows as f64);
                    node.cost_us = row.cost_us;
                }
            });
        }
        if are_all_known {
            self.cost_us = operators.cost_us;
        }
    }

    /// Names the keys, too, that `operators`, a plan of the same statement, could use.
    pub fn name_keys_of(&mut self, operators: &Explanation) {
        let others = operators.tables();
        self.for_each_table(|row| {
            let is_same = |other: &&&ExplainRow| (other.id, &other.table) == (row.id, &row.table);
            if let Some(same) = others.iter().find(is_same) {
                row.name_keys_of(same);
            }
        });
    }

    /// The statement changes `tables`; `line` says how. `kind` is what MySQL calls the change: the `select_type` of
    /// their rows.
    pub fn with_change(mut self, kind: &str, tables: &[String], line: String) -> Explanation {
        let inserted = match kind {
            "INSERT" | "REPLACE" => {
                let inserted = tables.iter();
                let inserted = inserted.map(|table| ExplainRow::inserted(kind, table));
                inserted.collect()
            }
            _ => {
                // Tables of other query blocks may have the same name.
                let first = self.tables().iter().filter_map(|row| row.id).min();
                self.for_each_table(|row| {
                    let name = row.table.as_ref();
                    if row.id == first && name.is_some_and(|table| tables.contains(table)) {
                        row.select_type = kind.to_string();
                    }
                });
                Vec::new()
            }
        };
        let mut change = PlanNode::line(line, self.tree);
        change.tables = inserted;
        self.tree = Some(change);
        self
    }

    /// The same below a line.
    pub fn below(self, line: &str) -> Explanation {
        Explanation {
            tree: Some(PlanNode::line(line, self.tree)),
            ..self
        }
    }

    /// The statement runs without operators.
    pub fn as_direct(self) -> Explanation {
        let mut direct = self.below("Direct (without operators)");
        direct.for_each_table(|row| row.add(ExtraNote::Direct));
        direct.is_direct = true;
        direct
    }

    /// FORMAT=TREE, or EXPLAIN ANALYZE of a plan that was measured.
    pub fn text(&self) -> String {
        self.tree.as_ref().map_or_else(String::new, tree_text)
    }

    /// FORMAT=JSON of EXPLAIN ANALYZE.
    pub fn run_json(&self) -> Json {
        self.tree.as_ref().map_or(Json::Null, tree_json)
    }

    /// The plan in the optimizer trace: what EXPLAIN's table says of each table.
    pub(crate) fn summary(&self) -> Json {
        let tables = self.tables().into_iter().map(|row| {
            Object::new()
                .with_some("select#", row.id)
                .with_some("table", row.table.as_deref())
                .with_some("access_type", row.type_.as_deref())
                .with_some("key", row.key.as_deref())
                .with_some("rows", row.rows)
                .with_some("extra", row.extra.as_deref())
        });
        tables.collect::<Vec<_>>().into()
    }
}

/// MySQL's document of FORMAT=JSON.
impl From<&Explanation> for Json {
    fn from(explanation: &Explanation) -> Json {
        let tables = explanation.tables();
        let mut json = explain_json(&tables, explanation.cost_us);
        HiddenNames::of(tables).show_in_document(&mut json);
        if let (Json::Object(document), true) = (&mut json, explanation.is_direct) {
            document.add("direct", true);
        }
        json
    }
}
