//! What planning a node gives: its operator, an estimate, and the EXPLAIN rows of the tables below it. And the query
//! block in which it is planned.

use std::sync::Arc;

use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_physical_plan::ExecutionPlan;

use crate::estimate::risk::Risk;
use crate::explain::outline::Made;
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
    /// What EXPLAIN is told of the operator.
    pub(crate) fn made(&self) -> Made<'_> {
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
    /// EXPLAIN's row of a table in it.
    pub(crate) fn row(&self, table: &str, type_: &str) -> ExplainRow {
        ExplainRow::table(self.id, self.select_type, table, type_)
    }
}
