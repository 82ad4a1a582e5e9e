//! The leaf of a plan: one access method over one table.
//!
//! The node is plain data (a [`ScanSpec`]: table, index, ranges, conditions, columns). The cursor is made when a
//! partition is executed, and each poll of the stream runs it for one batch. So a scan that is not polled holds nothing
//! but its position.
//!
//! A big scan is split into partitions of neighbouring key ranges. Each partition delivers its rows in index order, and
//! the shares follow each other in key order. So the order that the access method promises holds per partition (a
//! SortPreservingMergeExec above restores it over all).
//!
//! Statistics are never reported as exact: DataFusion would answer COUNT(*) from them.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{RecordBatchStream, TaskContext};
use datafusion_physical_expr::{
    ConstExpr, EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr,
};
use datafusion_physical_plan::coop::make_cooperative;
use datafusion_physical_plan::execution_plan::{
    Boundedness, CardinalityEffect, EmissionType, SchedulingType,
};
use datafusion_physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use futures::Stream;
use sheaf_access::{
    AccessError, Budget, CancelFlag, Fetch, IndexRef, Prices, Scan, ScanMetrics, ScanReach,
    ScanSpec, SessionCounters,
};
use sheaf_storage::{Direction, KeyRange, ThreadPageWork, Tree};

use crate::operator::bound_values::BoundRead;
use crate::operator::noted_rows::NotedRows;
use crate::operator::plan_members::leaf;

/// Turns an error of the access floor into DataFusion's; the SQL floor finds it inside again. An error that the
/// access floor itself got from an expression is unpacked.
pub fn access_error(error: AccessError) -> DataFusionError {
    match error {
        AccessError::Condition(inner) => match inner.downcast::<DataFusionError>() {
            Ok(error) => *error,
            Err(inner) => DataFusionError::External(inner),
        },
        other => DataFusionError::External(Box::new(other)),
    }
}

/// The order in which a scan delivers its rows, in terms of its *output* columns: the columns themselves, or the
/// collation keys of strings.
#[derive(Debug, Clone, Default)]
pub struct ScanOrder {
    /// Expressions by which the rows are sorted, most significant first, in the scan's direction.
    pub sorted: Vec<Arc<dyn PhysicalExpr>>,
    /// Expressions that have one value in all rows.
    pub constant: Vec<Arc<dyn PhysicalExpr>>,
}

/// A scan of one index of one table.
#[derive(Debug)]
pub struct ScanExec {
    spec: Arc<ScanSpec>,
    /// One entry per partition: its share of `spec.ranges`, in key order.
    shares: Vec<Vec<KeyRange>>,
    order: ScanOrder,
    /// Names the table for EXPLAIN.
    alias: String,
    /// Number of the table reference in its statement.
    reference: u32,
    counters: Arc<SessionCounters>,
    cancel: CancelFlag,
    /// What the scan may spend together with others, and what its work costs.
    budget: Option<(Budget, Prices)>,
    /// Perhaps little of it is wanted.
    starts_small: bool,
    /// Where it finds what it reads, if that follows from values that each run has of its own.
    bound: Option<Arc<BoundRead>>,
    /// Where it records how far it comes, if somebody has asked for that.
    reach: OnceLock<Arc<ScanReach>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ScanExec {
    /// A scan whose partitions read `shares`. `schema` is the schema of `spec.projection`, with the field names that
    /// the plan above expects. `order` must be empty if the access method delivers none.
    #[allow(
        clippy::too_many_arguments,
        reason = "a constructor of plain data, called in one place"
    )]
    pub fn new(
        spec: Arc<ScanSpec>,
        shares: Vec<Vec<KeyRange>>,
        schema: SchemaRef,
        order: ScanOrder,
        alias: String,
        reference: u32,
        counters: Arc<SessionCounters>,
        cancel: CancelFlag,
    ) -> ScanExec {
        let properties = PlanProperties::new(
            equivalences(&schema, &order, spec.direction),
            Partitioning::UnknownPartitioning(shares.len().max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        ScanExec {
            spec,
            shares,
            order,
            alias,
            reference,
            counters,
            cancel,
            budget: None,
            starts_small: false,
            bound: None,
            reach: OnceLock::new(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same scan, whose work is paid for from `budget`.
    pub fn with_budget(self, budget: Budget, prices: Prices) -> ScanExec {
        ScanExec {
            budget: Some((budget, prices)),
            ..self
        }
    }

    /// The same scan, whose first batches are small.
    pub fn starting_small(self) -> ScanExec {
        ScanExec {
            starts_small: true,
            ..self
        }
    }

    /// The same scan in one partition, which finds there before each run what it reads.
    pub fn bound_by(self, bound: Arc<BoundRead>) -> ScanExec {
        debug_assert_eq!(self.shares.len(), 1);
        ScanExec {
            bound: Some(bound),
            ..self
        }
    }

    /// As planned: of a scan that is bound, for the values that it was planned with.
    pub fn spec(&self) -> &Arc<ScanSpec> {
        &self.spec
    }

    pub fn alias(&self) -> &str {
        &self.alias
    }

    /// Whether two scans are sure to deliver the same rows, in the same order and partitions, if neither is abandoned.
    pub fn reads_the_same(&self, other: &ScanExec) -> bool {
        let is_bound = self.bound.is_some() || other.bound.is_some();
        !is_bound && self.spec.reads_the_same(&other.spec) && self.shares == other.shares
    }

    /// The order of the rows.
    pub fn order(&self) -> &ScanOrder {
        &self.order
    }

    /// The same scan with other columns in the same places; of those that the order names none is another.
    pub fn with_projection(&self, projection: Vec<usize>, schema: SchemaRef) -> ScanExec {
        let spec = ScanSpec {
            projection,
            ..self.spec.as_ref().clone()
        };
        let scan = ScanExec::new(
            Arc::new(spec),
            self.shares.clone(),
            schema,
            self.order.clone(),
            self.alias.clone(),
            self.reference,
            Arc::clone(&self.counters),
            self.cancel.clone(),
        );
        ScanExec {
            budget: self.budget.clone(),
            starts_small: self.starts_small,
            bound: self.bound.clone(),
            ..scan
        }
    }

    pub fn reference(&self) -> u32 {
        self.reference
    }

    /// Where the scan is going to record how far it comes, if it has not begun to run. `None`: it reads several indexes
    /// to their ends.
    pub fn record_reach(&self) -> Option<Arc<ScanReach>> {
        if !self.spec.is_along_one_index() {
            return None;
        }
        let new = || Arc::new(ScanReach::new(&self.shares, self.spec.direction));
        Some(Arc::clone(self.reach.get_or_init(new)))
    }
}

/// The null order matches the key codec: NULL sorts first, so it comes first going forward and last going backward.
fn equivalences(
    schema: &SchemaRef,
    order: &ScanOrder,
    direction: Direction,
) -> EquivalenceProperties {
    let backward = matches!(direction, Direction::Backward);
    let options = SortOptions {
        descending: backward,
        nulls_first: !backward,
    };
    let mut properties = EquivalenceProperties::new(Arc::clone(schema));
    let sorted = order.sorted.iter().map(|expr| PhysicalSortExpr {
        expr: Arc::clone(expr),
        options,
    });
    if let Some(ordering) = LexOrdering::new(sorted) {
        properties.add_ordering(ordering);
    }
    // Adding constants never fails for plain columns; if it did, a sort would be kept that is not needed.
    let constants = order
        .constant
        .iter()
        .map(|expr| ConstExpr::from(Arc::clone(expr)));
    if let Err(error) = properties.add_constants(constants) {
        tracing::debug!(%error, "constants of a scan are not declared");
    }
    properties
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let spec = &self.spec;
        let index = match spec.index {
            IndexRef::Clustered => "PRIMARY",
            IndexRef::Secondary(_) => spec.index.definition(&spec.table).name.as_str(),
        };
        write!(
            f,
            "ScanExec: table={}, index={index}, ranges={}",
            self.alias,
            spec.ranges.len()
        )?;
        match (spec.index, spec.fetch) {
            (IndexRef::Clustered, _) => {}
            (_, Fetch::Covering) => write!(f, ", covering")?,
            (_, Fetch::Lookup) => write!(f, ", lookup")?,
            (_, Fetch::MultiRange { .. }) => write!(f, ", mrr")?,
        }
        if spec.index_condition.is_some() {
            write!(f, ", index condition")?;
        }
        if spec.row_condition.is_some() {
            write!(f, ", row condition")?;
        }
        if matches!(spec.direction, Direction::Backward) {
            write!(f, ", backward")?;
        }
        if let Some(limit) = spec.limit {
            write!(f, ", limit={limit}")?;
        }
        if self.shares.len() > 1 {
            write!(f, ", partitions={}", self.shares.len())?;
        }
        Ok(())
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "ScanExec"
    }

    leaf!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // A plan of a thousand scans starts all of its operators before it looks at the flag anywhere else.
        self.cancel.check().map_err(access_error)?;
        // No share at all: the conditions contradict each other.
        let (spec, ranges) = match &self.bound {
            None => {
                let ranges = self.shares.get(partition).cloned().unwrap_or_default();
                (Arc::clone(&self.spec), ranges)
            }
            Some(bound) => {
                let spec = Arc::new(bound.spec(&self.spec)?);
                let ranges = spec.ranges.clone();
                (spec, ranges)
            }
        };
        let mut scan = Scan::new(
            spec,
            ranges,
            Arc::clone(&self.counters),
            self.cancel.clone(),
        )
        .map_err(access_error)?;
        if let Some((budget, prices)) = &self.budget {
            scan = scan.with_budget(budget.clone(), *prices);
        }
        if self.starts_small {
            scan = scan.starting_small();
        }
        let reach = self.reach.get().cloned();
        if reach.is_some() {
            scan = scan.noting_reach();
        }
        // It seldom waits for anything, so it gives way to other tasks once in a while.
        Ok(make_cooperative(Box::pin(ScanStream {
            schema: self.schema(),
            scan,
            reach: reach.map(|reach| (reach, partition)),
            noted: NotedRows::new(&context),
            tree: Arc::clone(&self.spec.table.clustered),
            totals: ScanCounts::new(&self.metrics, partition),
            baseline: BaselineMetrics::new(&self.metrics, partition),
            finished: false,
        })))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    /// The limit holds per partition.
    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let spec = ScanSpec {
            limit,
            ..self.spec.as_ref().clone()
        };
        let scan = ScanExec::new(
            Arc::new(spec),
            self.shares.clone(),
            self.schema(),
            self.order.clone(),
            self.alias.clone(),
            self.reference,
            Arc::clone(&self.counters),
            self.cancel.clone(),
        );
        let budget = self.budget.clone();
        Some(Arc::new(ScanExec {
            budget,
            starts_small: self.starts_small,
            bound: self.bound.clone(),
            ..scan
        }))
    }

    fn fetch(&self) -> Option<usize> {
        self.spec.limit
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Unknown
    }
}

/// A running scan as a stream: each poll runs the cursor for one batch, and waits for the disk if it must.
struct ScanStream {
    schema: SchemaRef,
    scan: Scan,
    /// Where it records how far it has come, and its partition.
    reach: Option<(Arc<ScanReach>, usize)>,
    noted: NotedRows,
    /// Knows what its pool is asked for.
    tree: Arc<Tree>,
    totals: ScanCounts,
    baseline: BaselineMetrics,
    finished: bool,
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.finished {
            return Poll::Ready(None);
        }
        let this = &mut *self;
        let timer = this.baseline.elapsed_compute().timer();
        let before = this.tree.thread_page_work();
        let batch = this.scan.next_batch();
        this.totals
            .record_pages(this.tree.thread_page_work().since(before));
        this.totals.record(&this.scan.metrics());
        if let Some((reach, partition)) = &this.reach {
            reach.note(*partition, this.scan.reached());
        }
        drop(timer);
        let item = match batch {
            Ok(Some(batch)) => {
                this.noted.note(&batch);
                Some(with_schema(batch, &this.schema))
            }
            Ok(None) => None,
            Err(error) => Some(Err(access_error(error))),
        };
        this.finished = !matches!(item, Some(Ok(_)));
        this.baseline.record_poll(Poll::Ready(item))
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The same columns under the schema that the plan above expects.
pub(crate) fn with_schema(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        batch.columns().to_vec(),
        &rows,
    )?)
}

/// The access method's own numbers, as metrics of the operator. They are brought up to date with each batch, so that
/// they can be read while the operator runs.
pub(crate) struct ScanCounts {
    /// What of the access method's numbers is in the metrics.
    recorded: ScanMetrics,
    pages: datafusion_physical_plan::metrics::Count,
    pages_read: datafusion_physical_plan::metrics::Count,
    pages_read_ahead: datafusion_physical_plan::metrics::Count,
    read_requests: datafusion_physical_plan::metrics::Count,
    rows_examined: datafusion_physical_plan::metrics::Count,
    index_entries: datafusion_physical_plan::metrics::Count,
    jumps: datafusion_physical_plan::metrics::Count,
    row_lookups: datafusion_physical_plan::metrics::Count,
    icp_attempts: datafusion_physical_plan::metrics::Count,
    icp_match: datafusion_physical_plan::metrics::Count,
    mrr_buffers: datafusion_physical_plan::metrics::Count,
    mrr_sorted_buffers: datafusion_physical_plan::metrics::Count,
}

impl ScanCounts {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> ScanCounts {
        let counter = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        ScanCounts {
            recorded: ScanMetrics::default(),
            pages: counter("pages"),
            pages_read: counter("pages_read"),
            pages_read_ahead: counter("pages_read_ahead"),
            read_requests: counter("read_requests"),
            rows_examined: counter("rows_examined"),
            index_entries: counter("index_entries"),
            jumps: counter("jumps"),
            row_lookups: counter("row_lookups"),
            icp_attempts: counter("icp_attempts"),
            icp_match: counter("icp_match"),
            mrr_buffers: counter("mrr_buffers"),
            mrr_sorted_buffers: counter("mrr_sorted_buffers"),
        }
    }

    /// Brings the metrics up to what the access method has done so far.
    pub(crate) fn record(&mut self, metrics: &ScanMetrics) {
        let before = std::mem::replace(&mut self.recorded, *metrics);
        for (counter, now, before) in [
            (
                &self.rows_examined,
                metrics.rows_examined,
                before.rows_examined,
            ),
            (
                &self.index_entries,
                metrics.index_entries,
                before.index_entries,
            ),
            (&self.jumps, metrics.jumps, before.jumps),
            (&self.row_lookups, metrics.row_lookups, before.row_lookups),
            (
                &self.icp_attempts,
                metrics.icp_attempts,
                before.icp_attempts,
            ),
            (&self.icp_match, metrics.icp_match, before.icp_match),
            (&self.mrr_buffers, metrics.mrr_buffers, before.mrr_buffers),
            (
                &self.mrr_sorted_buffers,
                metrics.mrr_sorted_buffers,
                before.mrr_sorted_buffers,
            ),
        ] {
            add(counter, now - before);
        }
    }

    /// Adds what the access method asked of the buffer pool.
    pub(crate) fn record_pages(&self, work: ThreadPageWork) {
        add(&self.pages, work.accesses);
        add(&self.pages_read, work.reads);
        add(&self.pages_read_ahead, work.read_ahead);
        add(&self.read_requests, work.requests);
    }
}

fn add(counter: &datafusion_physical_plan::metrics::Count, n: u64) {
    if n > 0 {
        counter.add(usize::try_from(n).unwrap_or(usize::MAX));
    }
}
