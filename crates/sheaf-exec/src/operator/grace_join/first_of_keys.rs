//! The side of a semijoin or an antijoin that is only asked whether it has a key, without most of the rows that repeat
//! one.
//!
//! A hash join follows the chain of all rows with a key, for each row of the other side with that key: a key that
//! each side has 100,000 times costs 10^10 steps. Whether there is a match does not depend on how often a key is there:
//!
//! ```text
//!   b: (7) (7) (3) (7) (3)   -->  (7) (3)   -->  a semijoin b ON a.k = b.k
//! ```
//!
//! The keys that were seen last are remembered, within [limits](SEEN_KEYS); a row whose key is among them is left out.
//! So it need not find all of them, and it does not look where that does not pay. While fewer than half of the rows of
//! a batch are left out, it looks at [one batch of a few](SKIPPED).
//!
//! If the join has a condition besides the keys, any of the rows may be the one that fulfils it: then all are read.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, BooleanBufferBuilder, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{JoinType, Result};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion_physical_plan::aggregates::order::GroupOrdering;
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::memory_pool::without_waiting;
use crate::operator::plan_members::{input_handed_on, with_input};

/// Rows that pass unseen: looking costs more than they do.
const UNSEEN_ROWS: usize = 64;

/// Keys that are remembered, and their bytes; beyond that all are forgotten.
const SEEN_KEYS: usize = 64 << 10;
const SEEN_BYTES: usize = 4 << 20;

/// Batches that pass unseen after one in which keys hardly repeat.
const SKIPPED: usize = 7;

/// The join with the side that is only asked for its keys behind a [`FirstOfKeysExec`], if it has such a side.
pub(super) fn with_first_of_keys(join: &Arc<HashJoinExec>) -> Result<Arc<HashJoinExec>> {
    let asks_left = match join.join_type() {
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => true,
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => false,
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            return Ok(Arc::clone(join));
        }
    };
    if join.filter().is_some() {
        return Ok(Arc::clone(join));
    }
    let (mut left, mut right) = (Arc::clone(join.left()), Arc::clone(join.right()));
    let side = match asks_left {
        true => &mut left,
        false => &mut right,
    };
    let keys = join.on().iter().map(|(left, right)| match asks_left {
        true => Arc::clone(left),
        false => Arc::clone(right),
    });
    let Some(first) = FirstOfKeysExec::new(Arc::clone(side), keys.collect())? else {
        return Ok(Arc::clone(join));
    };
    *side = Arc::new(first);
    let join = join.builder().reset_state();
    Ok(Arc::new(
        join.with_new_children(vec![left, right])?.build()?,
    ))
}

/// See the module's comment.
struct FirstOfKeysExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    /// Of the keys alone.
    schema: SchemaRef,
}

impl FirstOfKeysExec {
    /// `None` if two keys that a join tells apart may be one group: -0 and 0 are.
    fn new(
        input: Arc<dyn ExecutionPlan>,
        keys: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Option<FirstOfKeysExec>> {
        let schema = input.schema();
        let mut fields = Vec::with_capacity(keys.len());
        for key in &keys {
            let ty = key.data_type(&schema)?;
            if ty.is_nested()
                || matches!(
                    ty,
                    DataType::Float16 | DataType::Float32 | DataType::Float64
                )
            {
                return Ok(None);
            }
            fields.push(Field::new("key", ty, true));
        }
        Ok(Some(FirstOfKeysExec {
            input,
            keys,
            schema: Arc::new(Schema::new(fields)),
        }))
    }
}

impl fmt::Debug for FirstOfKeysExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstOfKeysExec")
            .field("input", &self.input)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for FirstOfKeysExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "FirstOfKeysExec")
    }
}

impl ExecutionPlan for FirstOfKeysExec {
    fn name(&self) -> &'static str {
        "FirstOfKeysExec"
    }

    input_handed_on!();

    with_input!(|plan, input| FirstOfKeysExec {
        input,
        keys: plan.keys.clone(),
        schema: Arc::clone(&plan.schema),
    });

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, Arc::clone(&context))?;
        let reservation = MemoryConsumer::new("semijoin").register(context.memory_pool());
        let mut first = FirstOfKeys {
            keys: self.keys.clone(),
            schema: Arc::clone(&self.schema),
            seen: None,
            groups: Vec::new(),
            unseen: UNSEEN_ROWS,
            skipped: 0,
            reservation,
        };
        let rows = rows.map(move |batch| first.rows(batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.input.schema(),
            rows,
        )))
    }
}

/// What a reader of the side remembers.
struct FirstOfKeys {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    seen: Option<Box<dyn GroupValues>>,
    /// The groups of the rows of a batch.
    groups: Vec<usize>,
    /// Rows that still pass unseen.
    unseen: usize,
    /// Batches that still pass unseen.
    skipped: usize,
    reservation: MemoryReservation,
}

impl FirstOfKeys {
    /// The rows of a batch without those whose key was seen.
    fn rows(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        if batch.num_rows() <= self.unseen {
            self.unseen -= batch.num_rows();
            return Ok(batch);
        }
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(batch);
        }
        let keys = self.keys.iter().map(|key| {
            let key = key.evaluate(&batch)?;
            key.into_array(batch.num_rows())
        });
        let keys = keys.collect::<Result<Vec<ArrayRef>>>()?;
        let seen = match &mut self.seen {
            Some(seen) => seen,
            none => none.insert(new_group_values(
                Arc::clone(&self.schema),
                &GroupOrdering::None,
            )?),
        };
        let before = seen.len();
        seen.intern(&keys, &mut self.groups)?;
        let added = seen.len() - before;
        let mut is_added = BooleanBufferBuilder::new(added);
        is_added.append_n(added, false);
        let mut is_first = BooleanBufferBuilder::new(batch.num_rows());
        for group in &self.groups {
            let first = *group >= before && !is_added.get_bit(group - before);
            if first {
                is_added.set_bit(group - before, true);
            }
            is_first.append(first);
        }
        if added * 2 > batch.num_rows() {
            self.skipped = SKIPPED;
        }
        self.forget_beyond_limits();
        if added == batch.num_rows() {
            return Ok(batch);
        }
        let is_first = BooleanArray::new(is_first.finish(), None);
        Ok(filter_record_batch(&batch, &is_first)?)
    }

    /// Keys that are forgotten are only read once more.
    fn forget_beyond_limits(&mut self) {
        let Some(seen) = &self.seen else {
            return;
        };
        let bytes = seen.size();
        let is_within = seen.len() <= SEEN_KEYS
            && bytes <= SEEN_BYTES
            && without_waiting(|| self.reservation.try_resize(bytes)).is_ok();
        if !is_within {
            self.seen = None;
            self.reservation.free();
        }
    }
}
