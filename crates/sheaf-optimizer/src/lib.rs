//! From a logical plan to operators: which index, which order of joins, which join method.
//!
//! ```text
//!   LogicalPlan --optimize_logical--> LogicalPlan --plan_physical--> operators + EXPLAIN rows
//!                 [logical]                          [physical_planner]
//!                                                     |- [join_graph]   which relations are joined, by what
//!                                                     |- [join_order]   in which order, by keyed or hash join
//!                                                     |- [access_path]  how each table is read
//!                                                     |    |- [ranges]  filters -> key ranges of an index
//!                                                     |- [physical_rules] DataFusion's physical rules that we keep
//!                                                     '- [explain]      MySQL's table, read off the finished plan
//! ```
//!
//! Everything here is synchronous and runs on the connection's thread.

pub mod explain;
pub mod settings;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::TaskContext;
use datafusion_expr::LogicalPlan;
use datafusion_physical_plan::ExecutionPlan;
use sheaf_access::{CancelFlag, SessionCounters};

pub use explain::ExplainRow;
pub use settings::{OptimizerSwitch, PlannerSettings};

/// What planning a statement needs to know of its session.
#[derive(Clone)]
pub struct PlannerContext {
    pub settings: PlannerSettings,
    /// Counters that the statement's access methods will add to.
    pub counters: Arc<SessionCounters>,
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
}

impl PhysicalQuery {
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }
}

/// Rewrites a typed logical plan: types of function arguments, decorrelation, pushdown of filters, limits and
/// projections. The typing rule of the MySQL semantics has run before.
pub fn optimize_logical(plan: LogicalPlan, context: &PlannerContext) -> Result<LogicalPlan> {
    let _ = context;
    Ok(plan)
}

/// Chooses access paths, join order and join methods, and builds the operators.
pub fn plan_physical(plan: &LogicalPlan, context: &PlannerContext) -> Result<PhysicalQuery> {
    let _ = (plan, context);
    unimplemented!("the physical planner")
}
