//! The rows of a round of a recursive query that several of its members read.
//!
//! DataFusion hands the rows of the round before to one reader, once. Where several members of a UNION read them, this
//! operator is that reader. It keeps the rows, and each member has them from it:
//!
//! ```text
//!   WITH RECURSIVE c AS (A UNION ALL B UNION ALL C)      B and C name c
//!
//!   RecursiveQueryExec
//!     |- A
//!     '- RoundExec
//!          |- WorkTableExec             the rows of the round before
//!          '- UnionExec
//!               |- B - RoundRowsExec    the same rows
//!               '- C - RoundRowsExec
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::{Distribution, EquivalenceProperties, Partitioning};
use datafusion_physical_plan::coop::make_cooperative;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion_physical_plan::memory::MemoryStream;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::operator::plan_members::{leaf, no_expressions};

/// How the rows' memory is called in errors, see `memory_consumers.rs`.
const CONSUMER: &str = "RecursiveQuery rows";

/// The rows while a round runs.
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

/// Gives the rows back with the end of the round.
struct Ends(Arc<RoundRows>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct RoundExec {
    before: Arc<dyn ExecutionPlan>,
    members: Arc<dyn ExecutionPlan>,
    rows: Arc<RoundRows>,
}

impl RoundExec {
    /// `before`: the rows of the round before. `members`: what is made of them, in one stream.
    pub fn new(
        before: Arc<dyn ExecutionPlan>,
        members: Arc<dyn ExecutionPlan>,
        rows: Arc<RoundRows>,
    ) -> RoundExec {
        RoundExec {
            before,
            members,
            rows,
        }
    }

    pub fn members(&self) -> &Arc<dyn ExecutionPlan> {
        &self.members
    }
}

impl DisplayAs for RoundExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "RoundExec")
    }
}

impl ExecutionPlan for RoundExec {
    fn name(&self) -> &'static str {
        "RoundExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.members.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.before, &self.members]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition, Distribution::SinglePartition]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([before, members]) = <[Arc<dyn ExecutionPlan>; 2]>::try_from(children) else {
            return internal_err!("a round has two inputs");
        };
        let rows = Arc::clone(&self.rows);
        Ok(Arc::new(RoundExec::new(before, members, rows)))
    }

    no_expressions!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("a round has one stream");
        }
        let schema = self.schema();
        let before = self.before.execute(0, Arc::clone(&context))?;
        let (members, rows) = (Arc::clone(&self.members), Arc::clone(&self.rows));
        let round = async move {
            let consumer = MemoryConsumer::new(CONSUMER);
            let reservation = consumer.register(context.memory_pool());
            let batches: Vec<RecordBatch> = before.try_collect().await?;
            let bytes = batches.iter().map(RecordBatch::get_array_memory_size);
            reservation.try_grow(bytes.sum())?;
            rows.set(Some(Kept {
                batches,
                _reservation: reservation,
            }));
            let ends = Ends(rows);
            let made = members.execute(0, context)?;
            Ok::<_, DataFusionError>(made.inspect(move |_| {
                let _ = &ends;
            }))
        };
        let made = stream::once(round).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, made)))
    }
}

/// The rows of the round before, for one of several readers.
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
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(RoundRowsExec {
            name,
            schema,
            projection,
            rows,
            properties: Arc::new(properties),
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
