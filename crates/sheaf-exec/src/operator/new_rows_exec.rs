//! The rows of a recursive query that were not there before, for UNION DISTINCT.
//!
//! DataFusion keeps the rows that it has seen in a table that must fit in memory. Here they are in a
//! [set](crate::operator::row_set) that goes to a file. This operator goes above both halves of the recursion, and once
//! above the recursion, where the set begins and ends. What makes rows equal are keys of their columns: of texts those
//! of their collations.
//!
//! ```text
//!   NewRowsExec (the set)
//!     RecursiveQueryExec
//!       |- NewRowsExec (adds to it)     the rows to begin with
//!       '- NewRowsExec (adds to it)     the rows that follow from those of the round before
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::row::SortField;
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt, future};

use crate::operator::compacted_exec::detached;
use crate::operator::plan_members::{input_handed_on, with_input};
use crate::operator::row_set::RowSet;

/// How the set's memory is called in errors, see `memory_consumers.rs`.
const CONSUMER: &str = "RecursiveQuery rows";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Whole,
    Half,
}

/// The set while the recursion runs.
#[derive(Default)]
struct Seen(Mutex<Option<RowSet>>);

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seen")
    }
}

impl Seen {
    fn set(&self, rows: Option<RowSet>) {
        // A set that was left behind by a panic is not used again.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = rows;
    }
}

/// Ends the set with the recursion.
struct Ends(Arc<Seen>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// The operators of one recursion, to be put in their places.
#[derive(Debug)]
pub struct NewRows {
    keys: Arc<[Arc<dyn PhysicalExpr>]>,
    seen: Arc<Seen>,
}

impl NewRows {
    /// Rows are equal where all `keys` are.
    pub fn new(keys: Vec<Arc<dyn PhysicalExpr>>) -> NewRows {
        NewRows {
            keys: keys.into(),
            seen: Arc::default(),
        }
    }

    /// Above a half of the recursion, which must be one stream.
    pub fn above_half(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        self.above(input, Place::Half)
    }

    /// Above the recursion.
    pub fn above_whole(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        self.above(input, Place::Whole)
    }

    fn above(&self, input: Arc<dyn ExecutionPlan>, place: Place) -> Arc<dyn ExecutionPlan> {
        Arc::new(NewRowsExec {
            input,
            place,
            keys: Arc::clone(&self.keys),
            seen: Arc::clone(&self.seen),
        })
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct NewRowsExec {
    input: Arc<dyn ExecutionPlan>,
    place: Place,
    keys: Arc<[Arc<dyn PhysicalExpr>]>,
    seen: Arc<Seen>,
}

impl NewRowsExec {
    fn empty_set(&self, context: &TaskContext) -> Result<RowSet> {
        let schema = self.schema();
        let types = self.keys.iter().map(|key| key.data_type(&schema));
        let types = types.collect::<Result<Vec<_>>>()?;
        let fields = types.into_iter().map(SortField::new).collect();
        RowSet::new(fields, CONSUMER, context)
    }
}

impl DisplayAs for NewRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "NewRowsExec")
    }
}

impl ExecutionPlan for NewRowsExec {
    fn name(&self) -> &'static str {
        "NewRowsExec"
    }

    input_handed_on!();

    // The set stays: the plan of each round is one that was made anew from the one before.
    with_input!(|plan, input| NewRowsExec {
        input,
        place: plan.place,
        keys: Arc::clone(&plan.keys),
        seen: Arc::clone(&plan.seen),
    });

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema: SchemaRef = self.schema();
        let seen = Arc::clone(&self.seen);
        if self.place == Place::Whole {
            seen.set(Some(self.empty_set(&context)?));
            let ends = Ends(seen);
            let rows = self.input.execute(partition, context)?.map(move |batch| {
                // The set is there as long as the rows are read.
                let _ = &ends;
                batch
            });
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)));
        }
        let keys = Arc::clone(&self.keys);
        let new_rows = move |batch: RecordBatch| {
            let keys = keys.iter().map(|key| {
                let key = key.evaluate(&batch)?;
                key.into_array(batch.num_rows())
            });
            let keys = keys.collect::<Result<Vec<ArrayRef>>>()?;
            let mut seen = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(set) = &mut *seen else {
                return Err(internal_datafusion_err!("a half of no recursion"));
            };
            let is_new = set.add(&keys)?;
            // Few rows of a batch must not keep all of its texts until the next round.
            detached(filter_record_batch(&batch, &is_new)?)
        };
        let rows = self.input.execute(partition, context)?;
        let rows = rows.map(move |batch| new_rows(batch?));
        // Nor do batches without rows wait for it.
        let rows = rows.try_filter(|batch| future::ready(batch.num_rows() > 0));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
