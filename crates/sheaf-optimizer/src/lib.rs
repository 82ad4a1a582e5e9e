//! From a logical plan to operators: which index, which order of joins, which join method.
//!
//! ```text
//!   LogicalPlan --optimize_logical--> LogicalPlan --plan_physical--> operators + EXPLAIN rows
//!                 [logical]                          [physical_planner]
//!                                                     |- [join_graph]   which relations are joined, by what
//!                                                     |- [join_order]   in which order, by keyed or hash join
//!                                                     |- [hints]        what the statement says about all of this
//!                                                     |- [access_path]  how each table is read
//!                                                     |    |- [ranges]  filters -> key ranges of an index
//!                                                     |- [physical_rules] DataFusion's physical rules that we keep
//!                                                     '- [explain]      MySQL's table
//! ```
//!
//! Everything here is synchronous and runs on the connection's thread.

mod access_path;
mod aggregate;
mod column_set;
mod condition;
mod explain;
mod hints;
mod join_graph;
mod join_order;
mod join_plan;
mod key_bounds;
mod keyed_access;
mod literal;
mod logical;
mod physical_planner;
mod physical_rules;
mod ranges;
mod semantics;
mod settings;
mod statistics;
#[cfg(test)]
mod tests;
mod window;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use sheaf_access::{CancelFlag, SessionCounters};
use sheaf_storage::ReadView;

pub use explain::ExplainRow;
pub use logical::optimize_logical;
pub use physical_planner::plan_physical;
pub use ranges::disjoint;
pub use settings::{OptimizerSwitch, PlannerSettings};

/// What planning a statement needs to know of its session.
#[derive(Clone)]
pub struct PlannerContext {
    pub settings: PlannerSettings,
    /// Counters that the statement's access methods will add to.
    pub counters: Arc<SessionCounters>,
    /// What the statement sees of the tables' rows.
    pub view: ReadView,
    /// Set by KILL; scans look at it.
    pub cancel: CancelFlag,
    /// Configuration, memory pool and spill files; the plan runs under the same one.
    pub task: Arc<TaskContext>,
}

/// A plan that is ready to run, once.
pub struct PhysicalQuery {
    pub plan: Arc<dyn ExecutionPlan>,
    /// MySQL's EXPLAIN of exactly this plan.
    pub explain: Vec<ExplainRow>,
    /// Hints on the order of joins that no order can obey, as warnings call them.
    pub conflicting_hints: Vec<String>,
}

impl PhysicalQuery {
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }
}
