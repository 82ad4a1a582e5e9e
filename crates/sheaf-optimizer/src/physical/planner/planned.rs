//! What planning a node gives: its operator, an estimate, and the EXPLAIN rows of the tables below it.

use std::sync::Arc;

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
    pub(super) fn note(mut self, note: ExtraNote) -> Planned {
        if let Some(row) = self.explain.first_mut() {
            row.add(note);
        }
        self
    }
}
