//! A plan as a tree of nodes: the one model that every format of EXPLAIN prints.
//!
//! ```text
//!   Limit
//!     Nested loop inner join
//!       Index range scan on orders     its row of EXPLAIN's table
//!       Index lookup on lineitem       its row
//! ```
//!
//! A node has the line of FORMAT=TREE, and the rows of EXPLAIN's table that are about it. Both say the same of a
//! table. A derived table has a row of its own at the node that makes its rows.

use std::collections::BTreeMap;

use sheaf_exec::operator::measuring_exec::Measured;
use sheaf_exec::operator::node_id::NodeId;

use crate::explain::ExplainRow;

/// What an operator of a running plan has done so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Rows delivered.
    pub rows: u64,
    /// Of a table or index that is walked: which share of its ranges, by the estimate of their entries.
    pub walked: Option<f64>,
}

/// A node with the nodes below it.
#[derive(Debug, Clone, Default)]
pub struct PlanNode {
    /// The number of the node, which its operators carry. `None`: a rule added the operator, or the line says how it
    /// goes on.
    pub id: Option<NodeId>,
    /// Its line.
    pub text: String,
    /// Its rows of EXPLAIN's table. One that no node is about is the root's.
    pub tables: Vec<ExplainRow>,
    /// Estimated rows, and the cost of the operator and all below it in microseconds.
    pub rows: Option<f64>,
    pub cost_us: Option<f64>,
    /// Of a measured run.
    pub measured: Option<Measured>,
    /// Of a running plan.
    pub progress: Option<Progress>,
    /// What the access method counted, by name; only what is not 0.
    pub counters: Vec<(String, u64)>,
    pub children: Vec<PlanNode>,
}

impl PlanNode {
    /// A line above a tree.
    pub fn line(text: impl Into<String>, below: Option<PlanNode>) -> PlanNode {
        PlanNode {
            text: text.into(),
            children: below.into_iter().collect(),
            ..PlanNode::default()
        }
    }

    /// `Limit: 10 row(s)` above a tree.
    pub fn limit((skip, fetch): (usize, Option<usize>), below: PlanNode) -> PlanNode {
        PlanNode::line(limit_text(skip, fetch), Some(below))
    }

    /// A line of a table, which is a node of its own.
    pub fn of_table(self, row: ExplainRow) -> PlanNode {
        let id = NodeId::fresh();
        PlanNode {
            id: Some(id),
            tables: vec![ExplainRow {
                node: Some(id),
                ..row
            }],
            ..self
        }
    }

    /// Visits the node and all below it, each before those below it.
    pub fn for_each(&mut self, visit: &mut impl FnMut(&mut PlanNode)) {
        visit(self);
        let children = self.children.iter_mut();
        children.for_each(|child| child.for_each(visit));
    }

    /// The first row of EXPLAIN's table, in the order of the lines.
    pub fn first_table(&mut self) -> Option<&mut ExplainRow> {
        match self.tables.is_empty() {
            false => self.tables.first_mut(),
            true => self.children.iter_mut().find_map(PlanNode::first_table),
        }
    }

    /// The row of the table that is read last, of the tables that a nested loop joins.
    pub fn last_table(&mut self) -> Option<&mut ExplainRow> {
        match self.tables.is_empty() {
            false => self.tables.last_mut(),
            true => {
                let mut children = self.children.iter_mut().rev();
                children.find_map(PlanNode::last_table)
            }
        }
    }

    /// EXPLAIN's table: the rows of all nodes, by their query blocks.
    pub(crate) fn tables(&self) -> Vec<&ExplainRow> {
        let mut found = Vec::new();
        self.push_tables(&mut found);
        found.sort_by_key(|row| (row.id.unwrap_or(u64::MAX), row.place));
        found
    }

    /// Adds the rows in the order of the lines.
    fn push_tables<'t>(&'t self, found: &mut Vec<&'t ExplainRow>) {
        found.extend(&self.tables);
        let children = self.children.iter();
        children.for_each(|child| child.push_tables(found));
    }

    /// Gives the rows of a plan of operators to the nodes that they are about.
    pub(crate) fn add_tables(&mut self, rows: &[ExplainRow]) {
        let mut of_nodes: BTreeMap<NodeId, Vec<ExplainRow>> = BTreeMap::new();
        let mut of_none = Vec::new();
        for (place, row) in rows.iter().cloned().enumerate() {
            let rows = match row.node {
                Some(id) => of_nodes.entry(id).or_default(),
                None => &mut of_none,
            };
            rows.push(ExplainRow { place, ..row });
        }
        self.take_tables(&mut of_nodes);
        self.tables.extend(of_none);
        self.tables.extend(of_nodes.into_values().flatten());
    }

    /// Lookups have a line below that of their join, and are of the same node: the rows are theirs.
    fn take_tables(&mut self, left: &mut BTreeMap<NodeId, Vec<ExplainRow>>) {
        let children = self.children.iter_mut();
        children.for_each(|child| child.take_tables(left));
        if let Some(rows) = self.id.and_then(|id| left.remove(&id)) {
            self.tables = rows;
        }
    }
}

/// The line of a LIMIT.
pub(crate) fn limit_text(skip: usize, fetch: Option<usize>) -> String {
    match (skip, fetch) {
        (0, Some(fetch)) => format!("Limit: {fetch} row(s)"),
        (skip, Some(fetch)) => format!("Limit/Offset: {fetch}/{skip} row(s)"),
        (skip, None) => format!("Offset: {skip} row(s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_of_the_nodes_that_they_name() {
        let (join, scan) = (NodeId::fresh(), NodeId::fresh());
        let node = |id, children| PlanNode {
            id,
            children,
            ..PlanNode::default()
        };
        let lines = vec![node(Some(scan), vec![]), node(Some(join), vec![])];
        let mut tree = node(None, vec![node(Some(join), lines)]);
        let row = |name: &str, node| ExplainRow {
            node,
            ..ExplainRow::table(1, "SIMPLE", name, "ALL")
        };
        let rows = [
            row("looked up", Some(join)),
            row("walked", Some(scan)),
            row("derived", Some(scan)),
            row("of no node", None),
            row("of a node without a line", Some(NodeId::fresh())),
        ];
        tree.add_tables(&rows);
        let names = |node: &PlanNode| -> Vec<String> {
            let names = node.tables.iter();
            names.filter_map(|row| row.table.clone()).collect()
        };
        assert_eq!(names(&tree), ["of no node", "of a node without a line"]);
        let joined = &tree.children[0];
        assert!(joined.tables.is_empty());
        assert_eq!(names(&joined.children[0]), ["walked", "derived"]);
        assert_eq!(names(&joined.children[1]), ["looked up"]);
        let found = tree.tables();
        let found = found.into_iter().filter_map(|row| row.table.as_deref());
        let in_order = rows.iter().filter_map(|row| row.table.as_deref());
        assert!(found.eq(in_order));
    }
}
