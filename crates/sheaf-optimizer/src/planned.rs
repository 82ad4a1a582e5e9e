//! What planning a node gives: its operator, an estimate, and the EXPLAIN rows of the tables below it. And the query
//! block in which it is planned.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::LogicalPlan;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_physical_plan::ExecutionPlan;

use crate::estimate::risk::Risk;
use crate::explain::notes::{Made, Notes};
use crate::explain::{ExplainRow, ExtraNote};

/// An operator and what the planner thinks of it.
pub(crate) struct Planned {
    pub plan: Arc<dyn ExecutionPlan>,
    /// Estimated rows.
    pub rows: f64,
    /// Estimated cost, in microseconds.
    pub cost_us: f64,
    /// What it may cost.
    pub risk: Risk,
    /// Tables below, in the order they are joined.
    pub explain: Vec<ExplainRow>,
}

impl Planned {
    /// Notes for EXPLAIN that it is what became of a node of the logical plan.
    pub(crate) fn noted(mut self, notes: &Notes, node: &LogicalPlan) -> Result<Planned> {
        if matches!(node, LogicalPlan::TableScan(_)) {
            return self.noted_as_table(notes);
        }
        let (_, plan) = notes.add_node(node, self.made())?;
        self.plan = plan;
        Ok(self)
    }

    /// The same of a table that is read.
    pub(crate) fn noted_as_table(mut self, notes: &Notes) -> Result<Planned> {
        let (id, plan) = notes.add_table(self.made())?;
        self.plan = plan;
        if let Some(row) = self.explain.last_mut() {
            row.node = Some(id);
        }
        Ok(self)
    }

    fn made(&self) -> Made<'_> {
        Made {
            plan: &self.plan,
            rows: self.rows,
            cost_us: self.cost_us,
            table: self.explain.last(),
        }
    }

    /// The same tables and row count under another operator.
    pub(crate) fn wrap(self, plan: impl ExecutionPlan + 'static) -> Planned {
        Planned {
            plan: Arc::new(plan),
            ..self
        }
    }

    /// Adds a note on what happens to the rows of this block to the first table, where MySQL shows it.
    pub(crate) fn note(mut self, note: ExtraNote) -> Planned {
        if let Some(row) = self.explain.first_mut() {
            row.add(note);
        }
        self
    }
}

/// A query block that is being planned.
#[derive(Clone)]
pub(crate) struct Block {
    /// EXPLAIN's `id`.
    pub id: u64,
    pub select_type: &'static str,
    /// Slots of the block's scalar subqueries.
    pub slots: PhysicalPlanningContext,
}

impl Block {
    /// EXPLAIN's row of a derived table in it: another block.
    pub(crate) fn derived_row(&self, block: u64) -> ExplainRow {
        ExplainRow::derived(self.id, self.select_type, block, "ALL")
    }

    /// EXPLAIN's row of a table in it.
    pub(crate) fn row(&self, table: &str, type_: &str) -> ExplainRow {
        ExplainRow::table(self.id, self.select_type, table, type_)
    }
}
