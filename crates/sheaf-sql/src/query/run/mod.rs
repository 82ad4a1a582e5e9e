//! Queries: from the syntax tree to batches.
//!
//! ```text
//!   syntax tree -> bind::logical_plan -> optimizer -> operators -> worker threads -> batches -> sink
//!                        |                                                               ^
//!                        '- tables of the plan: metadata locks until the last batch -----'
//! ```
//!
//! Planning takes no lock on the tables it looks at. Once the plan is known its tables are locked against changes of
//! their definition, and if one changed in between, the statement is planned again.
//!
//! | file | what it holds |
//! |---|---|
//! | `bind.rs` | from the syntax tree to a logical plan, and what a client is told of its columns |
//! | `plan.rs` | from the logical plan to operators, with the locks that it needs |
//! | `limits.rs` | how much memory and time plans and their batches may take |
//! | `plan_work.rs` | what a plan had to sort and to keep |
//! | `runner.rs` | runs a plan, and another one if memory is short |
//!
//! `select/` runs SELECT for the client.

mod bind;
mod limits;
mod plan;
mod plan_work;
mod runner;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_execution::TaskContext;
use datafusion_expr::LogicalPlan;
use sheaf_memory::planning::PlanBytes;
use sheaf_optimizer::{PhysicalQuery, PlannerContext, Reads};
use sheaf_storage::{LockMode, ReadView};
use sheaf_table::{ReadGuard, Table};

use crate::error::Result;
use crate::session::result::{ColumnMeta, Origin};

pub(crate) use plan::tables_of;
pub(crate) use runner::Runner;

/// How often a statement is planned again because a table changed under it. Each time it has waited for the change.
pub(crate) const MAX_REPLANS: usize = 100;

/// A planned query with the locks that keep its plan valid.
pub(crate) struct PlannedQuery {
    /// Other sessions may look at it while it runs.
    pub(crate) physical: Arc<PhysicalQuery>,
    pub(crate) columns: Vec<ColumnMeta>,
    /// Tables that the query reads.
    pub(crate) tables: Vec<Arc<Table>>,
    /// How it reads them, if it is counted.
    reads: Reads,
    pub(crate) task: Arc<TaskContext>,
    /// The view that it reads through, if it is of SERIALIZABLE and what it reads is still to be locked.
    pub(crate) to_lock: Option<ReadView>,
    /// What queries inside of it lock (FOR UPDATE, FOR SHARE), where the caller locks what it finds.
    pub(crate) asked: Vec<Asked>,
    /// How the statement goes on if there is too little memory for this plan.
    thrifty: Option<Box<ThriftyPlan>>,
    _guards: Vec<ReadGuard>,
    /// Of all that.
    bytes: PlanBytes,
}

/// What a query inside of a statement locks.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) table: Arc<Table>,
    pub(crate) mode: LockMode,
    /// Without NOWAIT.
    pub(crate) waits: bool,
}

/// A query that may be planned once more, with small batches and sorts of all rows where the first ones are wanted.
/// Estimates of what operators keep are often low.
struct ThriftyPlan {
    query: LogicalPlan,
    context: PlannerContext,
    /// For EXPLAIN ANALYZE.
    is_measured: bool,
}

impl PlannedQuery {
    /// How queries inside lock this table, if one does.
    pub(crate) fn asked_of(&self, table: &Arc<Table>) -> Option<Asked> {
        let mut asked = self
            .asked
            .iter()
            .filter(|asked| Arc::ptr_eq(&asked.table, table));
        let mut all = asked.next()?.clone();
        for other in asked {
            all.waits &= other.waits;
            if other.mode == LockMode::Exclusive {
                all.mode = other.mode;
            }
        }
        Some(all)
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.physical.schema()
    }

    /// Where the values of each column come from.
    pub(crate) fn origins(&self) -> Vec<Origin> {
        self.columns.iter().map(Origin::from).collect()
    }

    /// Prepares the plan for EXPLAIN ANALYZE, which shows the plan that has run to its end.
    pub(crate) fn measure(&mut self) -> Result<()> {
        if let Some(thrifty) = &mut self.thrifty {
            thrifty.is_measured = true;
        }
        if let Some(physical) = Arc::get_mut(&mut self.physical) {
            physical.measure()?;
        }
        Ok(())
    }
}
