//! Recursive queries: rows, and what follows from them, round by round until a round finds nothing.
//!
//! ```text
//!   WITH RECURSIVE c AS (A UNION ALL B UNION ALL C)      B and C name c
//!
//!   RecursiveExec
//!     |- A                       the rows to begin with
//!     '- UnionExec               a round: what follows from the rows of the round before
//!          |- B - RoundRowsExec    these rows
//!          '- C - RoundRowsExec    the same rows
//! ```
//!
//! With UNION DISTINCT a round keeps the rows that were not there before. All of them are in a
//! [set](crate::operator::row_set) that goes to a file. What makes rows equal are keys of their columns: of texts those
//! of their collations.
//!
//! Many recursions have a row in each of a thousand rounds. To run a plan takes longer than to compute its row, so a
//! round that only selects and projects is computed without ([`Step`]). The rows that are found go on in batches that
//! double, so that a few are seen early and many are not seen one by one.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::SortField;
use datafusion_common::cast::as_boolean_array;
use datafusion_common::{Result, internal_err};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::{Distribution, EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion_physical_plan::coop::make_cooperative;
use datafusion_physical_plan::execution_plan::{
    Boundedness, EmissionType, SchedulingType, reset_plan_states,
};
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::memory::MemoryStream;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, stream};
use sheaf_access::CancelFlag;

use crate::functions::EvaluationError;
use crate::operator::compacted_exec::detached;
use crate::operator::plan_members::{leaf, no_expressions};
use crate::operator::row_set::RowSet;
use crate::operator::scan_exec::access_error;

/// How the rows' memory is called in errors, see `memory_consumers.rs`.
const CONSUMER: &str = "RecursiveQuery rows";
/// Rows go on in batches of at most so many, and of at most so many bytes, about.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 64 << 10;

/// The rows of the round before, while a round runs.
#[derive(Default)]
pub struct RoundRows(Mutex<Option<Kept>>);

struct Kept {
    batches: Vec<RecordBatch>,
    /// Accounts for them as long as they are there.
    _reservation: MemoryReservation,
}

impl fmt::Debug for RoundRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoundRows")
    }
}

impl RoundRows {
    fn set(&self, rows: Option<Kept>) {
        // Rows that were left behind by a panic are not read again.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = rows;
    }

    fn batches(&self) -> Result<Vec<RecordBatch>> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*rows {
            Some(rows) => Ok(rows.batches.clone()),
            None => internal_err!("rows of a round that does not run"),
        }
    }
}

/// How a recursion goes.
#[derive(Clone, Debug)]
pub struct RecursionRules {
    /// UNION DISTINCT: what rows are told apart by.
    pub distinct_by: Option<Arc<[Arc<dyn PhysicalExpr>]>>,
    /// At most so many rounds have rows to begin with, or it is error 3636. MySQL counts the same.
    pub max_rounds: u64,
    pub cancel: CancelFlag,
}

/// See the [module](self).
#[derive(Debug)]
pub struct RecursiveExec {
    name: String,
    first: Arc<dyn ExecutionPlan>,
    round: Arc<dyn ExecutionPlan>,
    rows: Arc<RoundRows>,
    rules: RecursionRules,
    properties: Arc<PlanProperties>,
}

impl RecursiveExec {
    /// `rows`: those that [`RoundRowsExec`]s in `round` read.
    pub fn new(
        name: String,
        schema: SchemaRef,
        (first, round): (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
        rows: Arc<RoundRows>,
        rules: RecursionRules,
    ) -> RecursiveExec {
        RecursiveExec {
            name,
            first,
            round,
            rows,
            rules,
            properties: one_stream_of(schema),
        }
    }
}

/// Rows in no order, in one stream.
fn one_stream_of(schema: SchemaRef) -> Arc<PlanProperties> {
    let properties = PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    );
    Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative))
}

impl DisplayAs for RecursiveExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let rounds = self.rules.max_rounds;
        let is_distinct = self.rules.distinct_by.is_some();
        write!(
            f,
            "RecursiveExec: name={}, rounds={rounds}, distinct={is_distinct}",
            self.name
        )
    }
}

impl ExecutionPlan for RecursiveExec {
    fn name(&self) -> &'static str {
        "RecursiveExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.first, &self.round]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition, Distribution::SinglePartition]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([first, round]) = <[Arc<dyn ExecutionPlan>; 2]>::try_from(children) else {
            return internal_err!("a recursion has two inputs");
        };
        Ok(Arc::new(RecursiveExec {
            name: self.name.clone(),
            first,
            round,
            rows: Arc::clone(&self.rows),
            rules: self.rules.clone(),
            properties: Arc::clone(&self.properties),
        }))
    }

    no_expressions!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("a recursion has one stream");
        }
        let schema = self.schema();
        let seen = match &self.rules.distinct_by {
            Some(keys) => Some(Seen::new(keys, &schema, &context)?),
            None => None,
        };
        let consumer = MemoryConsumer::new(CONSUMER);
        let recursion = Recursion {
            source: Source::Plan(self.first.execute(0, Arc::clone(&context))?),
            round: Round::of(&self.round, &self.rows),
            rows: Arc::clone(&self.rows),
            rounds: 0,
            max_rounds: self.rules.max_rounds,
            cancel: self.rules.cancel.clone(),
            seen,
            found: Vec::new(),
            reservation: consumer.register(context.memory_pool()),
            unshown: Unshown::new(Arc::clone(&schema)),
            context,
        };
        let batches = stream::try_unfold(recursion, |mut recursion| async move {
            let batch = recursion.next().await?;
            Ok(batch.map(|batch| (batch, recursion)))
        });
        let batches = RecordBatchStreamAdapter::new(schema, batches);
        Ok(make_cooperative(Box::pin(batches)))
    }
}

/// All rows so far, to tell the new ones from.
struct Seen {
    keys: Arc<[Arc<dyn PhysicalExpr>]>,
    rows: RowSet,
}

impl Seen {
    fn new(
        keys: &Arc<[Arc<dyn PhysicalExpr>]>,
        schema: &SchemaRef,
        context: &TaskContext,
    ) -> Result<Seen> {
        let types = keys.iter().map(|key| key.data_type(schema));
        let types = types.collect::<Result<Vec<_>>>()?;
        let fields = types.into_iter().map(SortField::new).collect();
        Ok(Seen {
            keys: Arc::clone(keys),
            rows: RowSet::new(fields, CONSUMER, context)?,
        })
    }

    /// The rows that were not there before.
    fn new_rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let keys = self.keys.iter().map(|key| {
            let key = key.evaluate(batch)?;
            key.into_array(batch.num_rows())
        });
        let keys = keys.collect::<Result<Vec<ArrayRef>>>()?;
        let is_new = self.rows.add(&keys)?;
        // Few rows of a batch must not keep all of its texts until the next round.
        detached(filter_record_batch(batch, &is_new)?)
    }
}

/// A selection or a projection of a round, computed for a batch.
enum Step {
    Columns(Vec<usize>),
    Filter(Arc<dyn PhysicalExpr>, Option<Vec<usize>>),
    List(Vec<Arc<dyn PhysicalExpr>>, SchemaRef),
}

impl Step {
    fn of(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        match self {
            Step::Columns(columns) => Ok(batch.project(columns)?),
            Step::Filter(condition, columns) => {
                let chosen = condition.evaluate(batch)?.into_array(batch.num_rows())?;
                let rows = filter_record_batch(batch, as_boolean_array(&chosen)?)?;
                match columns {
                    Some(columns) => Ok(rows.project(columns)?),
                    None => Ok(rows),
                }
            }
            Step::List(list, schema) => {
                let count = batch.num_rows();
                let columns = list
                    .iter()
                    .map(|item| item.evaluate(batch)?.into_array(count));
                let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
                let options = RecordBatchOptions::new().with_row_count(Some(count));
                let schema = Arc::clone(schema);
                Ok(RecordBatch::try_new_with_options(
                    schema, columns, &options,
                )?)
            }
        }
    }
}

/// How a round runs.
enum Round {
    /// Of each batch of the round before.
    Steps(Arc<[Step]>),
    Plan(Arc<dyn ExecutionPlan>),
}

impl Round {
    fn of(plan: &Arc<dyn ExecutionPlan>, rows: &Arc<RoundRows>) -> Round {
        let mut steps = Vec::new();
        let mut below = plan;
        loop {
            if let Some(projection) = below.downcast_ref::<ProjectionExec>() {
                let list = projection.expr().iter();
                let list = list.map(|item| Arc::clone(&item.expr)).collect();
                steps.push(Step::List(list, projection.schema()));
                below = projection.input();
            } else if let Some(filter) = below
                .downcast_ref::<FilterExec>()
                .filter(|filter| filter.fetch().is_none())
            {
                let columns = filter.projection().as_ref();
                let columns = columns.map(|columns| columns.iter().copied().collect());
                steps.push(Step::Filter(Arc::clone(filter.predicate()), columns));
                below = filter.input();
            } else {
                break;
            }
        }
        match below.downcast_ref::<RoundRowsExec>() {
            Some(leaf) if Arc::ptr_eq(&leaf.rows, rows) => {
                steps.extend(leaf.projection.clone().map(Step::Columns));
                steps.reverse();
                Round::Steps(steps.into())
            }
            _ => Round::Plan(Arc::clone(plan)),
        }
    }
}

/// Where rows come from: the first ones, and those of a round.
enum Source {
    Plan(SendableRecordBatchStream),
    Steps {
        steps: Arc<[Step]>,
        batches: vec::IntoIter<RecordBatch>,
        /// Accounts for these.
        _reservation: MemoryReservation,
    },
    Ended,
}

impl Source {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Source::Plan(stream) => stream.next().await.transpose(),
            Source::Steps { steps, batches, .. } => {
                let Some(mut batch) = batches.next() else {
                    return Ok(None);
                };
                for step in steps.iter() {
                    if batch.num_rows() == 0 {
                        break;
                    }
                    batch = step.of(&batch)?;
                }
                Ok(Some(batch))
            }
            Source::Ended => Ok(None),
        }
    }
}

/// Rows that are to go on, together with others.
struct Unshown {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// Rows that have gone on.
    shown: usize,
}

impl Unshown {
    fn new(schema: SchemaRef) -> Unshown {
        Unshown {
            schema,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            shown: 0,
        }
    }

    fn add(&mut self, batch: RecordBatch, bytes: usize) {
        self.rows += batch.num_rows();
        self.bytes += bytes;
        self.batches.push(batch);
    }

    fn is_full(&self) -> bool {
        self.rows >= self.shown.clamp(1, BATCH_ROWS) || self.bytes >= BATCH_BYTES
    }

    fn take(&mut self) -> Result<Option<RecordBatch>> {
        self.shown += mem::take(&mut self.rows);
        self.bytes = 0;
        let batches = mem::take(&mut self.batches);
        Ok(match batches.as_slice() {
            [] => None,
            [batch] => Some(batch.clone()),
            batches => Some(concat_batches(&self.schema, batches)?),
        })
    }
}

/// A recursion while it runs.
struct Recursion {
    source: Source,
    round: Round,
    rows: Arc<RoundRows>,
    rounds: u64,
    max_rounds: u64,
    cancel: CancelFlag,
    seen: Option<Seen>,
    /// The rows of this round.
    found: Vec<RecordBatch>,
    reservation: MemoryReservation,
    unshown: Unshown,
    context: Arc<TaskContext>,
}

impl Drop for Recursion {
    fn drop(&mut self) {
        self.rows.set(None);
    }
}

impl Recursion {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.cancel.check().map_err(access_error)?;
            let Some(batch) = self.source.next().await? else {
                match self.begin_round()? {
                    true => continue,
                    false => return self.unshown.take(),
                }
            };
            let batch = match &mut self.seen {
                Some(seen) => seen.new_rows(&batch)?,
                None => batch,
            };
            if batch.num_rows() == 0 {
                continue;
            }
            let bytes = batch.get_array_memory_size();
            self.reservation.try_grow(bytes)?;
            self.found.push(batch.clone());
            self.unshown.add(batch, bytes);
            if self.unshown.is_full() {
                return self.unshown.take();
            }
        }
    }

    /// `false`: the round before has found nothing, so the recursion ends.
    fn begin_round(&mut self) -> Result<bool> {
        self.source = Source::Ended;
        self.rows.set(None);
        let batches = mem::take(&mut self.found);
        let reservation = self.reservation.take();
        if batches.is_empty() {
            return Ok(false);
        }
        if self.rounds >= self.max_rounds {
            return Err(EvaluationError::recursion_too_deep(self.max_rounds).into());
        }
        self.rounds += 1;
        self.source = match &self.round {
            Round::Steps(steps) => Source::Steps {
                steps: Arc::clone(steps),
                batches: batches.into_iter(),
                _reservation: reservation,
            },
            Round::Plan(plan) => {
                self.rows.set(Some(Kept {
                    batches,
                    _reservation: reservation,
                }));
                let plan = reset_plan_states(Arc::clone(plan))?;
                Source::Plan(plan.execute(0, Arc::clone(&self.context))?)
            }
        };
        Ok(true)
    }
}

/// The rows of the round before, for one of their readers.
#[derive(Debug)]
pub struct RoundRowsExec {
    name: String,
    schema: SchemaRef,
    projection: Option<Vec<usize>>,
    rows: Arc<RoundRows>,
    properties: Arc<PlanProperties>,
}

impl RoundRowsExec {
    /// The columns of `projection`, of those of `schema`; all, if there is none.
    ///
    /// # Errors
    /// If it names columns that are not there.
    pub fn new(
        name: String,
        schema: &SchemaRef,
        projection: Option<Vec<usize>>,
        rows: Arc<RoundRows>,
    ) -> Result<RoundRowsExec> {
        let schema = match &projection {
            Some(projection) => Arc::new(schema.project(projection)?),
            None => Arc::clone(schema),
        };
        Ok(RoundRowsExec {
            name,
            projection,
            rows,
            properties: one_stream_of(Arc::clone(&schema)),
            schema,
        })
    }
}

impl DisplayAs for RoundRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "RoundRowsExec: name={}", self.name)
    }
}

impl ExecutionPlan for RoundRowsExec {
    fn name(&self) -> &'static str {
        "RoundRowsExec"
    }

    leaf!();

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = self.rows.batches()?.into_iter();
        let shown = batches.map(|batch| match &self.projection {
            Some(projection) => Ok(batch.project(projection)?),
            None => Ok(batch),
        });
        let shown = shown.collect::<Result<Vec<_>>>()?;
        let rows = MemoryStream::try_new(shown, Arc::clone(&self.schema), None)?;
        Ok(make_cooperative(Box::pin(rows)))
    }
}
