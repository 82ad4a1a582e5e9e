//! Bounded regret: a plan that may turn out badly, and the plan that takes its place when it does.
//!
//! `ORDER BY id LIMIT 20` with a filter is answered at once by a walk in the order of `id` if matches are met soon. It
//! is a disaster if they all lie at the far end, which no statistics can rule out. So the walk gets a budget: what the
//! other plan is estimated to cost. If it is spent before the walk has what it looks for, the other plan runs from its
//! beginning:
//!
//! ```text
//!   RegretExec   budget = cost of B
//!     |- A: walk in order, stops at the LIMIT      rows are held back until A has them all; then they go out
//!     '- B: index on the filter, sort              runs only if A's scans have spent the budget; A's rows are dropped
//! ```
//!
//! **What it costs.** At most the budget and B, which is twice B if B's estimate is right, however wrong A's was. (This
//! is the ski rental problem: no rule that does not know the future does better in the worst case.)
//!
//! **Why the rows are right.** Nothing has been delivered when A is abandoned, and B computes the same from the same
//! view: no row comes twice, none is lost. If A stands on an operator that reads all of its input first, a sort or an
//! aggregate, nothing is held back: its first row says that the scans have done their work.
//!
//! Rows are held up to [`MAX_HELD_BYTES`], and as long as the statement's memory suffices. Beyond that they are
//! delivered, and A goes on without a budget: it has found much already. A plan that fails for want of memory before is
//! abandoned like one that has spent its budget.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::memory_pool::without_waiting;
use crate::operator::plan_members::no_expressions;
use arrow::array::RecordBatch;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements,
};
use datafusion_physical_plan::execution_plan::{Boundedness, CardinalityEffect, EmissionType};
use datafusion_physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{Stream, StreamExt, TryStreamExt};
use sheaf_access::{AccessError, Budget, SessionCounters};

/// The metric that counts how often the plan was abandoned.
const SWITCHES: &str = "switches";

/// Bytes of rows that are held back, at most.
pub const MAX_HELD_BYTES: usize = 16 << 20;

/// What the first plan is allowed.
#[derive(Debug, Clone)]
pub struct Allowance {
    /// Its scans pay into this one.
    pub budget: Budget,
    /// What they may spend, in microseconds.
    pub limit_us: f64,
    /// So many rows are all that is wanted. With 0 the first batch shows that the scans have done their work.
    pub held_rows: usize,
}

/// See the module's comment.
#[derive(Debug)]
pub struct RegretExec {
    preferred: Arc<dyn ExecutionPlan>,
    alternative: Arc<dyn ExecutionPlan>,
    allowance: Allowance,
    /// The order in which both deliver their rows.
    order: Option<LexOrdering>,
    counters: Arc<SessionCounters>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RegretExec {
    /// Both plans have the same schema and compute the same rows, in `order` if there is one.
    pub fn new(
        preferred: Arc<dyn ExecutionPlan>,
        alternative: Arc<dyn ExecutionPlan>,
        allowance: Allowance,
        order: Option<LexOrdering>,
        counters: Arc<SessionCounters>,
    ) -> RegretExec {
        // Only what is true of both: which of them runs is not known.
        let schema = preferred.schema();
        let equivalences = EquivalenceProperties::new_with_orderings(schema, order.clone());
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        RegretExec {
            preferred,
            alternative,
            allowance,
            order,
            counters,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The plan that runs first.
    pub fn preferred(&self) -> &Arc<dyn ExecutionPlan> {
        &self.preferred
    }

    /// The plan that takes its place.
    pub fn alternative(&self) -> &Arc<dyn ExecutionPlan> {
        &self.alternative
    }

    /// Whether the alternative has taken the place of the preferred plan, in any run of this one.
    pub fn has_switched(&self) -> bool {
        let metrics = self.metrics.clone_inner();
        metrics
            .sum_by_name(SWITCHES)
            .is_some_and(|switches| switches.as_usize() > 0)
    }
}

impl DisplayAs for RegretExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "RegretExec: held_rows={}", self.allowance.held_rows)
    }
}

impl ExecutionPlan for RegretExec {
    fn name(&self) -> &'static str {
        "RegretExec"
    }

    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.preferred, &self.alternative]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; 2]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let required = self.order.clone().map(OrderingRequirements::from);
        vec![required.clone(), required]
    }

    /// They have the order that is asked of them, and the operator promises no other. DataFusion would take a finer one
    /// that it has given both of them for the operator's.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; 2]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; 2]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([preferred, alternative]) = <[_; 2]>::try_from(children) else {
            return internal_err!("bounded regret is about two plans");
        };
        Ok(Arc::new(RegretExec::new(
            preferred,
            alternative,
            self.allowance.clone(),
            self.order.clone(),
            Arc::clone(&self.counters),
        )))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let count = |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, partition);
        let trial = Trial {
            reservation: MemoryConsumer::new(self.name()).register(context.memory_pool()),
            preferred: Arc::clone(&self.preferred),
            alternative: Arc::clone(&self.alternative),
            allowance: self.allowance.clone(),
            context,
            counters: Arc::clone(&self.counters),
            switches: count(SWITCHES),
            spent_us: count("spent_us"),
            switched_after_us: count("switched_after_us"),
        };
        let rows = futures::stream::once(trial.run()).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// The first plan until it is known which of the two delivers the rows.
struct Trial {
    preferred: Arc<dyn ExecutionPlan>,
    alternative: Arc<dyn ExecutionPlan>,
    allowance: Allowance,
    context: Arc<TaskContext>,
    /// For the rows that are held back.
    reservation: MemoryReservation,
    counters: Arc<SessionCounters>,
    switches: Count,
    /// What the first plan has spent, priced as the budget is.
    spent_us: Count,
    switched_after_us: Count,
}

impl Trial {
    async fn run(self) -> Result<impl Stream<Item = Result<RecordBatch>> + Send> {
        let started = Instant::now();
        let Allowance {
            budget,
            limit_us,
            held_rows,
        } = &self.allowance;
        budget.start(*limit_us);
        let mut rows = self.preferred.execute(0, Arc::clone(&self.context))?;
        let mut held = Vec::new();
        let mut held_count = 0;
        let is_given_up = loop {
            let batch = match rows.next().await {
                None => break false,
                Some(Ok(batch)) => batch,
                Some(Err(error)) if makes_give_up(&error) => break true,
                Some(Err(error)) => return Err(error),
            };
            held_count += batch.num_rows();
            let grown =
                without_waiting(|| self.reservation.try_grow(batch.get_array_memory_size()));
            held.push(batch);
            if *held_rows > 0 && held_count >= *held_rows {
                break false;
            }
            if *held_rows == 0 || grown.is_err() || self.reservation.size() > MAX_HELD_BYTES {
                // The rows are delivered, unless one of several scans has failed and it is not known here yet.
                break !budget.lift();
            }
        };
        add(&self.spent_us, budget.spent_us());
        if is_given_up {
            // What the first plan holds is given back before the other one begins.
            drop(rows);
            held.clear();
            self.reservation.free();
            add(
                &self.switched_after_us,
                started.elapsed().as_secs_f64() * 1e6,
            );
            self.switches.add(1);
            self.counters.sheaf_plan_switches.add(1);
            rows = self.alternative.execute(0, Arc::clone(&self.context))?;
        }
        budget.lift();
        let reservation = self.reservation;
        let held = futures::stream::iter(held).map(move |batch: RecordBatch| {
            // Accounted for until the last of them is out.
            let _held = &reservation;
            Ok(batch)
        });
        Ok(held.chain(rows.fuse()))
    }
}

/// Adds microseconds to a metric.
fn add(count: &Count, us: f64) {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "microseconds of one statement"
    )]
    count.add(us as usize);
}

/// Whether a plan that fails so is abandoned: a scan has found the budget used up, or there is too little memory. A
/// join in order may hold any number of rows.
fn makes_give_up(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(inner) => matches!(
            inner.downcast_ref::<AccessError>(),
            Some(AccessError::BudgetSpent)
        ),
        DataFusionError::ResourcesExhausted(_) => true,
        _ => false,
    }
}
