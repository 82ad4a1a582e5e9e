//! Common table expressions that a statement names several times run once.
//!
//! ```text
//!   WITH c AS (q) SELECT .. FROM c AS a JOIN c AS b ..
//!
//!   CommonTablesExec
//!     |- HashJoinExec
//!     |    |- CommonTableReadExec c  <---+
//!     |    '- CommonTableReadExec c  <---+   rows, kept in memory or in a file
//!     '- operators of q  ----------------+
//! ```
//!
//! The first reader starts the run. All rows are kept before any reader gets one, so no reader waits for another one,
//! and each reads at its own speed, or ends early. A table that nobody reads is not computed. Those that a table reads
//! run before it, one after the other: a long chain of them needs no deep stack.
//!
//! Rows are kept in memory up to a limit, [`MAX_KEPT_BYTES`] at most, and as long as the statement's memory suffices.
//! Then all of them go to a file. They are there until the statement ends.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result, internal_datafusion_err, internal_err};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::{Distribution, EquivalenceProperties};
use datafusion_physical_plan::coop::make_cooperative;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use futures::future::{BoxFuture, Shared};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use sheaf_access::CancelFlag;

use crate::operator::plan_members::{leaf, no_expressions};
use crate::operator::row_file::{EndedRowFile, RowFile};
use crate::operator::scan_exec::{access_error, with_schema};
use crate::operator::shared_exec::MAX_KEPT_BYTES;

/// The name of the consumer that keeps rows, see `memory_consumers.rs`.
const CONSUMER: &str = "CommonTable";

/// All rows of a table.
enum Rows {
    Memory {
        batches: Vec<RecordBatch>,
        /// Accounts for them as long as they are there.
        _reservation: MemoryReservation,
    },
    File(EndedRowFile),
}

/// A run that several wait for.
type Run = Shared<BoxFuture<'static, Result<Arc<Rows>, Arc<DataFusionError>>>>;

/// A common table expression while its statement runs.
pub struct CommonTable {
    /// Tells those of a statement apart. One that reads another has the greater number.
    pub number: u32,
    pub name: String,
    /// The tables that its query reads.
    reads: Vec<Arc<CommonTable>>,
    /// Rows that take more go to a file.
    kept_bytes: usize,
    cancel: CancelFlag,
    /// Known once the statement runs.
    operators: Mutex<Option<Arc<dyn ExecutionPlan>>>,
    /// Once it was started.
    run: Mutex<Option<Run>>,
}

impl fmt::Debug for CommonTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommonTable {} {}", self.number, self.name)
    }
}

/// A value that is right after each change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CommonTable {
    /// `reads`: the tables that its query reads, whose numbers are smaller.
    pub fn new(
        number: u32,
        name: String,
        reads: Vec<Arc<CommonTable>>,
        kept_bytes: usize,
        cancel: CancelFlag,
    ) -> CommonTable {
        CommonTable {
            number,
            name,
            reads,
            kept_bytes: kept_bytes.min(MAX_KEPT_BYTES),
            cancel,
            operators: Mutex::new(None),
            run: Mutex::new(None),
        }
    }

    /// The run, which begins now unless it has begun.
    fn run(&self, context: &Arc<TaskContext>) -> Result<Run> {
        let mut run = lock(&self.run);
        if let Some(run) = &*run {
            return Ok(run.clone());
        }
        let Some(operators) = lock(&self.operators).clone() else {
            return internal_err!("the operators of {self:?} are not known yet");
        };
        let rows = keep(
            operators,
            self.kept_bytes,
            self.cancel.clone(),
            Arc::clone(context),
        );
        let begun = rows.map(|rows| rows.map(Arc::new).map_err(Arc::new));
        Ok(run.insert(begun.boxed().shared()).clone())
    }

    /// All that it reads, directly or not, those first that others read.
    fn all_reads(&self) -> Vec<Arc<CommonTable>> {
        let mut found: BTreeMap<u32, Arc<CommonTable>> = BTreeMap::new();
        let mut next: Vec<&Arc<CommonTable>> = self.reads.iter().collect();
        while let Some(table) = next.pop() {
            if found.insert(table.number, Arc::clone(table)).is_none() {
                next.extend(&table.reads);
            }
        }
        found.into_values().collect()
    }

    async fn rows(&self, context: &Arc<TaskContext>) -> Result<Arc<Rows>> {
        let has_begun = lock(&self.run).is_some();
        if !has_begun {
            for table in self.all_reads() {
                let run = table.run(context)?;
                run.await.map_err(DataFusionError::Shared)?;
            }
        }
        self.run(context)?.await.map_err(DataFusionError::Shared)
    }
}

/// Runs `plan`, which is one stream, and keeps its rows, in batches that are full.
async fn keep(
    plan: Arc<dyn ExecutionPlan>,
    kept_bytes: usize,
    cancel: CancelFlag,
    context: Arc<TaskContext>,
) -> Result<Rows> {
    let mut keeper = Keeper::new(plan.schema(), kept_bytes, Arc::clone(&context));
    let batch_rows = context.session_config().batch_size();
    let mut full = BatchCoalescer::new(plan.schema(), batch_rows);
    let mut rows = plan.execute(0, context)?;
    while let Some(batch) = rows.try_next().await? {
        cancel.check().map_err(access_error)?;
        full.push_batch(batch)?;
        while let Some(batch) = full.next_completed_batch() {
            keeper.add(batch)?;
        }
    }
    full.finish_buffered_batch()?;
    while let Some(batch) = full.next_completed_batch() {
        keeper.add(batch)?;
    }
    keeper.rows()
}

/// Rows while they come.
struct Keeper {
    schema: SchemaRef,
    kept_bytes: usize,
    context: Arc<TaskContext>,
    reservation: MemoryReservation,
    batches: Vec<RecordBatch>,
    /// Once they are too many.
    file: Option<RowFile>,
}

impl Keeper {
    fn new(schema: SchemaRef, kept_bytes: usize, context: Arc<TaskContext>) -> Keeper {
        let consumer = MemoryConsumer::new(CONSUMER).with_can_spill(true);
        Keeper {
            schema,
            kept_bytes,
            reservation: consumer.register(context.memory_pool()),
            context,
            batches: Vec::new(),
            file: None,
        }
    }

    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        if let Some(file) = &mut self.file {
            return file.append(&batch);
        }
        let bytes = batch.get_array_memory_size();
        self.batches.push(batch);
        if self.reservation.size() + bytes <= self.kept_bytes
            && self.reservation.try_grow(bytes).is_ok()
        {
            return Ok(());
        }
        let mut file = RowFile::new(Arc::clone(&self.schema), CONSUMER, &self.context)?;
        for batch in self.batches.drain(..) {
            file.append(&batch)?;
        }
        self.reservation.free();
        self.file = Some(file);
        Ok(())
    }

    fn rows(self) -> Result<Rows> {
        Ok(match self.file {
            Some(file) => Rows::File(file.ended()?),
            None => Rows::Memory {
                batches: self.batches,
                _reservation: self.reservation,
            },
        })
    }
}

/// Runs a plan that reads tables. Its children are that plan and the operators of the tables.
#[derive(Debug)]
pub struct CommonTablesExec {
    input: Arc<dyn ExecutionPlan>,
    tables: Vec<(Arc<CommonTable>, Arc<dyn ExecutionPlan>)>,
    ends: Arc<Ends>,
}

/// Forgets what tables know of their runs when the last plan that has them is gone. Operators may know the table that
/// they are of: a subquery that runs for each row is planned with all tables of the statement at hand. So neither would
/// end, nor would the memory of its rows.
#[derive(Debug)]
struct Ends(Vec<Arc<CommonTable>>);

impl Drop for Ends {
    fn drop(&mut self) {
        for table in &self.0 {
            // They are dropped when nothing is locked.
            let operators = lock(&table.operators).take();
            let run = lock(&table.run).take();
            drop((operators, run));
        }
    }
}

impl CommonTablesExec {
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        tables: Vec<(Arc<CommonTable>, Arc<dyn ExecutionPlan>)>,
    ) -> CommonTablesExec {
        let ends = tables.iter().map(|(table, _)| Arc::clone(table));
        CommonTablesExec {
            ends: Arc::new(Ends(ends.collect())),
            input,
            tables,
        }
    }

    /// The plan that reads the tables.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// The tables, each with its operators.
    pub fn tables(&self) -> &[(Arc<CommonTable>, Arc<dyn ExecutionPlan>)] {
        &self.tables
    }

    fn of_each_child<T>(&self, of_input: T, of_tables: impl Fn() -> T) -> Vec<T> {
        let of_tables = self.tables.iter().map(|_| of_tables());
        std::iter::once(of_input).chain(of_tables).collect()
    }
}

impl DisplayAs for CommonTablesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "CommonTablesExec:")?;
        for (table, _) in &self.tables {
            write!(f, " {}", table.name)?;
        }
        Ok(())
    }
}

impl ExecutionPlan for CommonTablesExec {
    fn name(&self) -> &'static str {
        "CommonTablesExec"
    }

    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        let tables = self.tables.iter().map(|(_, operators)| operators);
        std::iter::once(&self.input).chain(tables).collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.of_each_child(true, || false)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.of_each_child(false, || false)
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.of_each_child(Distribution::UnspecifiedDistribution, || {
            Distribution::SinglePartition
        })
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut children = children.into_iter();
        let Some(input) = children.next() else {
            return internal_err!("common tables without the plan that reads them");
        };
        let tables = self.tables.iter().map(|(table, _)| Arc::clone(table));
        let tables = tables.zip(children).collect();
        let ends = Arc::clone(&self.ends);
        Ok(Arc::new(CommonTablesExec {
            input,
            tables,
            ends,
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        for (table, operators) in &self.tables {
            *lock(&table.operators) = Some(Arc::clone(operators));
        }
        self.input.execute(partition, context)
    }
}

/// Reads the rows of a table.
#[derive(Debug)]
pub struct CommonTableReadExec {
    table: Arc<CommonTable>,
    /// The positions of its columns among those that the table keeps.
    columns: Vec<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl CommonTableReadExec {
    /// `schema`: that of the columns.
    pub fn new(
        table: Arc<CommonTable>,
        columns: Vec<usize>,
        schema: SchemaRef,
    ) -> CommonTableReadExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        CommonTableReadExec {
            table,
            columns,
            schema,
            properties: Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative)),
        }
    }

    pub fn table(&self) -> &Arc<CommonTable> {
        &self.table
    }
}

impl DisplayAs for CommonTableReadExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "CommonTableReadExec: {}", self.table.name)
    }
}

impl ExecutionPlan for CommonTableReadExec {
    fn name(&self) -> &'static str {
        "CommonTableReadExec"
    }

    leaf!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return Err(internal_datafusion_err!("{:?} is one stream", self.table));
        }
        let schema = Arc::clone(&self.schema);
        let (columns, cancel) = (self.columns.clone(), self.table.cancel.clone());
        let shown = move |batch: RecordBatch| {
            cancel.check().map_err(access_error)?;
            with_schema(batch.project(&columns)?, &schema)
        };
        let rows = futures::stream::once(kept_rows(Arc::clone(&self.table), context));
        let rows = rows.try_flatten().map(move |batch| shown(batch?));
        let rows = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows);
        Ok(make_cooperative(Box::pin(rows)))
    }
}

async fn kept_rows(
    table: Arc<CommonTable>,
    context: Arc<TaskContext>,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let rows = table.rows(&context).await?;
    Ok(match rows.as_ref() {
        Rows::Memory { batches, .. } => futures::stream::iter(batches.clone()).map(Ok).boxed(),
        Rows::File(file) => file.read()?.boxed(),
    })
}
