//! What a statement plans with that is not there, for ADVISE INDEXES.

use std::sync::Arc;

use datafusion_expr::LogicalPlan;
use sheaf_optimizer::PlannerContext;
use sheaf_optimizer::advisor::TableNeed;
use sheaf_table::Table;

/// What the running statement supposes, and what is noted of its plans. Of other statements: nothing.
#[derive(Default)]
pub(crate) struct Hypothesis {
    /// Tables with indexes that are only thought of. Each stands for the one of its version.
    pub(crate) tables: Vec<Arc<Table>>,
    /// Where plans write down what advice needs, if they shall.
    pub(crate) notes: Option<PlanNotes>,
}

/// What plans write down.
#[derive(Default)]
pub(crate) struct PlanNotes {
    /// What they could use of tables.
    pub(crate) needs: Vec<TableNeed>,
    /// The queries that were planned.
    pub(crate) queries: Vec<OptimizedQuery>,
}

/// A query from which operators are planned.
pub(crate) struct OptimizedQuery {
    pub(crate) plan: LogicalPlan,
    pub(crate) context: PlannerContext,
    /// The tables that it reads.
    pub(crate) tables: Vec<Arc<Table>>,
}
