//! A part of a plan that is read in several places runs once.
//!
//! Some plans have the same operators twice. Examples are a CTE that is named twice, a subquery that aggregates the
//! table which the query around it reads, and the restricted table that both the join and a grouping below it begin
//! with. In their place stand references to one run of them:
//!
//! ```text
//!      SharedExec 1, first reference               SharedExec 1, another one
//!         |    \__________ rows, kept __________________/
//!      operators                    (no operators: it takes the rows of that run)
//! ```
//!
//! The first reader starts the run, all partitions at once, as a task of its own. The task goes on if that reader stops
//! early, and ends with the plan. No reader gets a row before all are there, so no reader waits for another one.
//!
//! Rows are kept up to a limit, [`MAX_KEPT_BYTES`] at most, and as long as the statement's memory suffices. If they are
//! more, they are dropped and each reference runs a copy of the operators for itself, as if nothing had been shared.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DataFusionError, Result, internal_datafusion_err, internal_err};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion_physical_plan::coop::make_cooperative;
use datafusion_physical_plan::execution_plan::{
    CardinalityEffect, EmissionType, SchedulingType, reset_plan_states,
};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::future::{BoxFuture, Shared};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::task::JoinSet;

use crate::operator::plan_members::no_expressions;
use crate::operator::scan_exec::with_schema;

/// Bytes of rows that are kept, at most.
pub const MAX_KEPT_BYTES: usize = 32 << 20;

/// The rows of a run.
struct KeptRows {
    /// The batches of each partition.
    partitions: Vec<Vec<RecordBatch>>,
    /// Accounts for them as long as they are there.
    _reservation: Arc<MemoryReservation>,
}

/// None if they were too many.
type Kept = Option<Arc<KeptRows>>;
/// A run that several wait for.
type Run = Shared<BoxFuture<'static, Result<Kept, Arc<DataFusionError>>>>;

/// What the references have in common.
struct SharedRows {
    /// The operators; replaced when the first reference gets other ones, before anything runs.
    operators: Mutex<Arc<dyn ExecutionPlan>>,
    /// Rows that take more are not kept.
    kept_bytes: usize,
    /// Once it was started.
    run: Mutex<Option<Run>>,
}

impl fmt::Debug for SharedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRows").finish_non_exhaustive()
    }
}

/// A value that is right after each change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedRows {
    fn operators(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&lock(&self.operators))
    }

    /// The run, which begins now unless it has begun.
    fn run(&self, context: &Arc<TaskContext>) -> Run {
        let begin = || {
            let run = collect(self.operators(), self.kept_bytes, Arc::clone(context));
            run.map(|kept| kept.map_err(Arc::new)).boxed().shared()
        };
        lock(&self.run).get_or_insert_with(begin).clone()
    }
}

/// Runs all partitions of `plan` and keeps their rows.
async fn collect(
    plan: Arc<dyn ExecutionPlan>,
    kept_bytes: usize,
    context: Arc<TaskContext>,
) -> Result<Kept> {
    let reservation = MemoryConsumer::new("SharedExec").register(context.memory_pool());
    let reservation = Arc::new(reservation);
    let mut tasks = JoinSet::new();
    let partitions = plan.output_partitioning().partition_count();
    for partition in 0..partitions {
        let rows = plan.execute(partition, Arc::clone(&context))?;
        let reservation = Arc::clone(&reservation);
        tasks.spawn(async move { (partition, keep(rows, kept_bytes, &reservation).await) });
    }
    let mut kept = vec![Vec::new(); partitions];
    while let Some(ended) = tasks.join_next().await {
        let (partition, batches) =
            ended.map_err(|error| internal_datafusion_err!("a shared subplan: {error}"))?;
        match batches? {
            Some(batches) => kept[partition] = batches,
            // The other partitions are ended with the tasks.
            None => return Ok(None),
        }
    }
    Ok(Some(Arc::new(KeptRows {
        partitions: kept,
        _reservation: reservation,
    })))
}

/// The batches of one partition; none if those of all are too many.
async fn keep(
    mut rows: SendableRecordBatchStream,
    kept_bytes: usize,
    reservation: &MemoryReservation,
) -> Result<Option<Vec<RecordBatch>>> {
    let mut kept = Vec::new();
    while let Some(batch) = rows.try_next().await? {
        let grown = reservation.try_grow(batch.get_array_memory_size());
        if grown.is_err() || reservation.size() > kept_bytes {
            return Ok(None);
        }
        kept.push(batch);
    }
    Ok(Some(kept))
}

/// A reference to rows that several parts of the plan read.
#[derive(Debug, Clone)]
pub struct SharedExec {
    /// Tells shared subplans of a statement apart, for EXPLAIN.
    number: usize,
    shared: Arc<SharedRows>,
    /// The operators, under the first reference alone.
    operators: Option<Arc<dyn ExecutionPlan>>,
    /// What this reference runs for itself when the rows were too many to be kept.
    own: Arc<Mutex<Option<Arc<dyn ExecutionPlan>>>>,
    properties: Arc<PlanProperties>,
}

impl SharedExec {
    /// The first reference to the rows of `operators`, which are kept if they take no more than `kept_bytes`.
    pub fn first(
        number: usize,
        operators: Arc<dyn ExecutionPlan>,
        kept_bytes: usize,
    ) -> SharedExec {
        let shared = SharedRows {
            operators: Mutex::new(Arc::clone(&operators)),
            kept_bytes: kept_bytes.min(MAX_KEPT_BYTES),
            run: Mutex::new(None),
        };
        let properties = properties(&operators);
        SharedExec {
            number,
            shared: Arc::new(shared),
            properties,
            operators: Some(operators),
            own: Arc::default(),
        }
    }

    /// Another reference, in the place of `twin`, which would deliver the same rows in the same partitions and order.
    pub fn another(&self, twin: &Arc<dyn ExecutionPlan>) -> SharedExec {
        SharedExec {
            number: self.number,
            shared: Arc::clone(&self.shared),
            operators: None,
            own: Arc::default(),
            properties: properties(twin),
        }
    }

    /// Tells shared subplans of a statement apart.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Whether the operators stand below this reference.
    pub fn is_first(&self) -> bool {
        self.operators.is_some()
    }
}

/// Whether an expression has the same value whenever it is evaluated over a row of the statement, wherever in its plan.
pub fn is_repeatable(expr: &Arc<dyn PhysicalExpr>) -> bool {
    // The result of a subquery is there only above the operator that runs it.
    let differs = |expr: &Arc<dyn PhysicalExpr>| {
        Ok(expr.is_volatile_node() || expr.is::<ScalarSubqueryExpr>())
    };
    !expr.exists(differs).unwrap_or(true)
}

/// Whether two expressions are the same, whatever their columns are called.
pub fn is_same(one: &Arc<dyn PhysicalExpr>, other: &Arc<dyn PhysicalExpr>) -> bool {
    one.eq(other) || nameless(one).eq(&nameless(other))
}

fn nameless(expr: &Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    let nameless = Arc::clone(expr).transform(|expr| {
        let column = expr.downcast_ref::<Column>().map(Column::index);
        Ok(match column {
            Some(index) => {
                Transformed::yes(Arc::new(Column::new("", index)) as Arc<dyn PhysicalExpr>)
            }
            None => Transformed::no(expr),
        })
    });
    nameless.map_or_else(|_| Arc::clone(expr), |nameless| nameless.data)
}

/// Those of the operators, whose rows come when all of them are there.
fn properties(operators: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
    let mut properties = PlanProperties::clone(operators.properties());
    properties.emission_type = EmissionType::Final;
    Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative))
}

impl DisplayAs for SharedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SharedExec: number={}", self.number)
    }
}

impl ExecutionPlan for SharedExec {
    fn name(&self) -> &'static str {
        "SharedExec"
    }

    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.operators.iter().collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true; self.children().len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (self.is_first(), children.pop()) {
            (false, None) => Ok(self),
            (true, Some(operators)) => {
                *lock(&self.shared.operators) = Arc::clone(&operators);
                Ok(Arc::new(SharedExec {
                    number: self.number,
                    shared: Arc::clone(&self.shared),
                    properties: properties(&operators),
                    operators: Some(operators),
                    own: Arc::default(),
                }))
            }
            _ => internal_err!("only the first reference has the operators"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // The run begins with the first reader that is polled: it is in the runtime then.
        let rows = rows_of(
            Arc::clone(&self.shared),
            Arc::clone(&self.own),
            partition,
            context,
        );
        let schema = self.schema();
        let renamed = move |batch| with_schema(batch, &schema);
        let rows = futures::stream::once(rows)
            .try_flatten()
            .map(move |batch| batch.and_then(&renamed));
        let rows = RecordBatchStreamAdapter::new(self.schema(), rows);
        Ok(make_cooperative(Box::pin(rows)))
    }
}

/// The rows of one partition: those that were kept, or those of a run of its own.
async fn rows_of(
    shared: Arc<SharedRows>,
    own: Arc<Mutex<Option<Arc<dyn ExecutionPlan>>>>,
    partition: usize,
    context: Arc<TaskContext>,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let run = shared.run(&context);
    match run.await.map_err(DataFusionError::Shared)? {
        Some(kept) => {
            let batches = kept.partitions.get(partition).cloned().unwrap_or_default();
            Ok(futures::stream::iter(batches).map(Ok).boxed())
        }
        None => Ok(own_copy(&own, &shared)?.execute(partition, context)?),
    }
}

/// Operators that run for one reference alone, for all of its partitions.
fn own_copy(
    own: &Mutex<Option<Arc<dyn ExecutionPlan>>>,
    shared: &SharedRows,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut own = lock(own);
    if let Some(plan) = own.as_ref() {
        return Ok(Arc::clone(plan));
    }
    let plan = reset_plan_states(shared.operators())?;
    Ok(Arc::clone(own.insert(plan)))
}
