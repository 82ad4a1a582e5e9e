//! A hash join whose build side need not fit in memory: a grace hash join.
//!
//! The build side (left) is collected. As long as there is memory for it and its hash table, DataFusion's
//! [`HashJoinExec`] joins as if this operator were not there. If there is not, both sides go to files, divided by a
//! hash of the keys, and each pair of files is a join of its own:
//!
//! ```text
//!   left  --hash of keys-->  L0 L1 .. L15          L0 joined R0
//!                                           --->   L1 joined R1    one after another, by each worker
//!   right --hash of keys-->  R0 R1 .. R15          ...
//! ```
//!
//! A pair whose build side still does not fit is divided again, with another hash. Where that does not help, because
//! the rows have one key, the build side is joined [in pieces](pairs), each with all rows of the other side.
//!
//! - A hash join has the order of the rows of its right side. Files lose it. Where an operator above relies on it, rows
//!   of the right side are numbered before they are divided, and the joined ones sorted by these numbers.
//! - NULL in a key that is compared by `=` has no match. Such rows are spread over all files.
//! - A null-aware antijoin (NOT IN) asks whether the right side has a NULL or no rows at all. That is known when it is
//!   divided; what is left is a plain antijoin.
//!
//! Where the join only asks whether a side has a key, rows that repeat one are [left out](first_of_keys) before.
//!
//! Idea: Kitsuregawa et al., "Application of Hash to Data Base Machine and Its Architecture" (1983); the pieces are
//! DeWitt's hash loops.

mod build;
mod first_of_keys;
mod pairs;
mod partition;
mod source;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::distribution_requirements::InputDistributionRequirements;
use datafusion_physical_plan::execution_plan::CardinalityEffect;
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::metrics::MetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
    replace_children_if_necessary,
};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, TryStreamExt};

use crate::operator::node_id::in_place_of;
use crate::operator::shared_exec::SharedExec;
use crate::operator::source_exec::SourceExec;
use build::{Build, Held};
use first_of_keys::with_first_of_keys;
use pairs::Pairs;
use source::InContextExec;

/// Has each hash join of a finished plan spill. `order_matters`: what reads the plan relies on the order of its
/// rows.
pub fn spill_hash_joins(
    plan: Arc<dyn ExecutionPlan>,
    order_matters: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let required = plan.required_input_ordering();
    let maintained = plan.maintains_input_order();
    let relies = relies_on_order(&plan);
    let children = plan.children();
    let mut new_children = Vec::with_capacity(children.len());
    let mut is_changed = false;
    for (position, child) in children.into_iter().enumerate() {
        let is_required = required.get(position).is_some_and(Option::is_some);
        let is_maintained = maintained.get(position).copied().unwrap_or(true);
        let matters = is_required || relies || (order_matters && is_maintained);
        let new = spill_hash_joins(Arc::clone(child), matters)?;
        is_changed |= !Arc::ptr_eq(&new, child);
        new_children.push(new);
    }
    let plan = match is_changed {
        true => replace_children_if_necessary(plan, new_children)?,
        false => plan,
    };
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else {
        return Ok(plan);
    };
    if *join.partition_mode() != PartitionMode::CollectLeft {
        return Ok(plan);
    }
    let grace = GraceJoinExec::new(join.builder().build()?, order_matters || relies);
    Ok(in_place_of(&plan, Arc::new(grace)))
}

/// Whether an operator relies on the order of its input without requiring one.
fn relies_on_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    // It takes the first rows, or sorts them: a sort ends early where a prefix of its order is there already. The
    // other references to shared rows may rely on their order.
    plan.fetch().is_some() || plan.is::<SharedExec>()
}

/// A value that is right after each change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the join goes on when its build side has been read.
enum Way {
    /// The build side is in memory.
    Memory(Arc<dyn ExecutionPlan>, Arc<TaskContext>),
    /// Both sides are in files.
    Files(Pairs),
}

/// What all partitions wait for.
type Begun = Shared<BoxFuture<'static, Result<Arc<Way>, Arc<DataFusionError>>>>;

/// See the module's comment.
pub struct GraceJoinExec {
    join: Arc<HashJoinExec>,
    /// An operator above relies on the order of the joined rows.
    in_order: bool,
    /// Once a reader has asked for rows.
    begun: Mutex<Option<Begun>>,
}

impl GraceJoinExec {
    /// `join` collects its left side.
    pub fn new(join: HashJoinExec, order_matters: bool) -> GraceJoinExec {
        let properties = join.properties().equivalence_properties();
        let has_order = !properties.oeq_class().is_empty();
        let keeps_order = join.maintains_input_order().get(1) == Some(&true);
        GraceJoinExec {
            in_order: order_matters && has_order && keeps_order,
            join: Arc::new(join),
            begun: Mutex::new(None),
        }
    }

    /// The join as it is planned.
    pub fn join(&self) -> &HashJoinExec {
        &self.join
    }

    /// Whether both sides are in files, and the joined rows come in another order than the plan says, on which no
    /// operator relies.
    pub fn has_lost_order(&self) -> bool {
        let begun = lock(&self.begun);
        let way = begun.as_ref().and_then(Shared::peek);
        !self.in_order && way.is_some_and(|way| matches!(way.as_deref(), Ok(Way::Files(_))))
    }

    fn begun(&self, context: &Arc<TaskContext>) -> Begun {
        let begin = || {
            let way = begin(Arc::clone(&self.join), self.in_order, Arc::clone(context));
            way.map(|way| way.map(Arc::new).map_err(Arc::new))
                .boxed()
                .shared()
        };
        lock(&self.begun).get_or_insert_with(begin).clone()
    }
}

/// Reads the build side, and both sides if there is no memory for it.
async fn begin(join: Arc<HashJoinExec>, in_order: bool, context: Arc<TaskContext>) -> Result<Way> {
    let join = with_first_of_keys(&join)?;
    let mut left = join.left().execute(0, Arc::clone(&context))?;
    let mut held = Held::new(join.left().schema(), &context);
    while let Some(batch) = left.try_next().await? {
        if held.add(batch)? {
            continue;
        }
        tracing::debug!(bytes = held.bytes(), "a hash join spills");
        let pairs = Pairs::divide(join, in_order, held, left, context).await?;
        return Ok(Way::Files(pairs));
    }
    drop(left);
    let Build { rows, grant } = held.into_build()?;
    let right = InContextExec::new(Arc::clone(join.right()), Arc::clone(&context), &grant);
    let left = SourceExec::new(join.left().schema(), rows);
    let join = join.builder().reset_state();
    let join = join.with_new_children(vec![Arc::new(left), Arc::new(right)])?;
    Ok(Way::Memory(join.build_exec()?, grant.context(&context)))
}

impl fmt::Debug for GraceJoinExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraceJoinExec")
            .field("join", &self.join)
            .field("in_order", &self.in_order)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for GraceJoinExec {
    /// As the join that it runs.
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        self.join.fmt_as(format, f)
    }
}

impl ExecutionPlan for GraceJoinExec {
    /// That of the join.
    fn name(&self) -> &'static str {
        "HashJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.join.children()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.join.input_distribution_requirements()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.join.maintains_input_order()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.join.benefits_from_input_partitioning()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.join.cardinality_effect()
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.join.metrics()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.join.apply_expressions(visit)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let join = self.join.builder().reset_state();
        let join = join.with_new_children(children)?.recompute_properties();
        Ok(Arc::new(GraceJoinExec {
            join: Arc::new(join.build()?),
            in_order: self.in_order,
            begun: Mutex::new(None),
        }))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(GraceJoinExec {
            join: Arc::new(self.join.builder().reset_state().build()?),
            in_order: self.in_order,
            begun: Mutex::new(None),
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition >= self.properties().output_partitioning().partition_count() {
            return internal_err!("a hash join has no partition {partition}");
        }
        // It begins with the first reader that is polled.
        let begun = self.begun(&context);
        let rows = futures::stream::once(async move {
            let way = begun.await.map_err(DataFusionError::Shared)?;
            match way.as_ref() {
                Way::Memory(join, granted) => join.execute(partition, Arc::clone(granted)),
                Way::Files(pairs) => pairs.rows(partition, context),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            rows.try_flatten(),
        )))
    }
}
