//! What the optimizer expects of a plan, as the advisor compares plans.

use sheaf_optimizer::PhysicalQuery;
use sheaf_optimizer::advisor::{IndexInUse, indexes_in_use};

/// What a plan is expected to cost, and what it reads.
pub(super) struct PlannedCost {
    pub cost_us: f64,
    pub rows: f64,
    pub uses: Vec<IndexInUse>,
}

impl PlannedCost {
    pub(super) fn of(physical: &PhysicalQuery) -> PlannedCost {
        PlannedCost {
            cost_us: physical.cost_us,
            rows: physical.rows,
            uses: indexes_in_use(physical),
        }
    }
}
