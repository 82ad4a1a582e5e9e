//! From a logical plan to operators: which index, which order of joins, which join method.
//!
//! ```text
//!   LogicalPlan --optimize_logical--> LogicalPlan --plan_physical--> operators + EXPLAIN rows
//!                 logical/                           physical/
//!                  |- rules and their passes          |- join/      in which order, by keyed or hash join
//!                  '- join_graph  what is joined,     |- access/    how each table is read: ranges, jumps, paths
//!                     by what                         |- estimate/  how many rows pass, join, and are groups
//!                                                     |- cost/      what reading and computing costs
//!                                                     |- adaptive/  what if an estimate was wrong
//!                                                     |- hints.rs   what the statement says about all of this
//!                                                     |- row_width.rs  how wide its rows are in a batch
//!                                                     |- advisor/   which index a statement could use
//!                                                     |- trace/     what was considered, and why it lost
//!                                                     '- explain/   MySQL's table, JSON and tree
//! ```
//!
//! Everything here is synchronous and runs on the connection's thread.

mod access;
mod adaptive;
pub mod advisor;
pub mod cost;
mod estimate;
mod explain;
mod hints;
mod join;
pub mod json;
mod logical;
mod physical;
mod planned;
mod row_width;
mod settings;
#[cfg(test)]
mod tests;
mod trace;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::empty::EmptyExec;
use sheaf_access::{CancelFlag, SessionCounters};
use sheaf_exec::SheafTableSource;
use sheaf_exec::operator::measuring_exec::measure;
use sheaf_storage::ReadView;

use explain::notes::NodeNotes;
use explain::tree::Shown;

pub use access::bound_scan::Places;
pub use access::disjoint::disjoint;
pub use cost::CostConstants;
pub use estimate::risk::Expectation;
pub use explain::explanation::Explanation;
pub use explain::plan_node::PlanNode;
pub use explain::reads::Reads;
pub use explain::{ExplainRow, ExtraNote, RowConditions, access_words};
pub use logical::optimize_logical;
pub use physical::common_tables::CommonTables;
pub use physical::planner::plan_physical;
pub use row_width::{longest_row_bytes, rows_of_batch};
pub use settings::{NOT_IN_DIRECT_PLANS, OptimizerSwitch, PlannerSettings};
pub use sheaf_exec::operator::node_id::NodeId;
pub use trace::{OpenStep, RecordedTrace, Trace};

/// What planning a statement needs to know of its session.
#[derive(Clone)]
pub struct PlannerContext {
    pub settings: PlannerSettings,
    /// Counters that the statement's access methods will add to.
    pub counters: Arc<SessionCounters>,
    /// What the statement sees of the tables' rows.
    pub view: ReadView,
    /// What it sees of tables [beside its locks](SheafTableSource::is_beside_locks), if that is something else.
    pub view_beside_locks: Option<ReadView>,
    /// Set by KILL; scans look at it.
    pub cancel: CancelFlag,
    /// Configuration, memory pool and spill files; the plan runs under the same one.
    pub task: Arc<TaskContext>,
    /// Where the planner writes down what it considers; off as a rule.
    pub trace: Trace,
    /// What is expected of estimates that may be wrong by any factor.
    pub expectation: Expectation,
    /// Common table expressions that the statement names several times, as far as they are planned.
    pub common_tables: CommonTables,
    /// Places of the plan for values that each of its runs has of its own.
    pub places: Option<Places>,
}

impl PlannerContext {
    /// What the statement sees of a table's rows.
    pub(crate) fn view_of(&self, source: &SheafTableSource) -> ReadView {
        match &self.view_beside_locks {
            Some(view) if source.is_beside_locks => view.clone(),
            _ => self.view.clone(),
        }
    }
}

/// A plan that is ready to run, once.
pub struct PhysicalQuery {
    pub plan: Arc<dyn ExecutionPlan>,
    /// It costs little, and comes in one stream: to start it on another thread would take longer than the plan.
    pub is_small: bool,
    /// Estimated rows of the result.
    pub rows: f64,
    /// MySQL's EXPLAIN of exactly this plan.
    pub explain: Vec<ExplainRow>,
    /// Hints on the order of joins that no order can obey, as warnings call them.
    pub conflicting_hints: Vec<String>,
    /// Estimated cost, in microseconds.
    pub cost_us: f64,
    /// Estimated rows that one sort keeps, or groups of one aggregate, at the most.
    pub most_kept: f64,
    notes: NodeNotes,
}

impl PhysicalQuery {
    /// A plan without rows that keeps the place of one that is dropped, with what its operators have, until another one
    /// is there.
    pub fn empty(schema: SchemaRef) -> PhysicalQuery {
        let plan: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(schema));
        PhysicalQuery {
            plan,
            notes: NodeNotes::default(),
            is_small: true,
            rows: 0.0,
            explain: Vec::new(),
            conflicting_hints: Vec::new(),
            cost_us: 0.0,
            most_kept: 0.0,
        }
    }

    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// What EXPLAIN shows of it.
    pub fn explanation(&self) -> Explanation {
        self.shown(Shown::Plan)
    }

    /// Has each operator measured when the plan runs.
    pub fn measure(&mut self) -> Result<()> {
        self.plan = measure(Arc::clone(&self.plan), explain::tree::has_line)?;
        Ok(())
    }

    /// EXPLAIN ANALYZE of a plan that was measured while it ran.
    pub fn explain_run(&self) -> Explanation {
        self.shown(Shown::Run)
    }

    /// EXPLAIN of a plan that is running, with what its operators have done so far.
    pub fn explain_progress(&self) -> Explanation {
        self.shown(Shown::Progress)
    }

    fn shown(&self, shown: Shown) -> Explanation {
        let mut tree = explain::tree::plan_tree(&self.plan, &self.notes, shown);
        tree.add_tables(&self.explain);
        Explanation::new(tree, Some(self.cost_us))
    }
}
