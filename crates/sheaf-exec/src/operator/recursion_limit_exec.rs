//! Where an endless recursion ends.
//!
//! DataFusion repeats the second half of a recursive query until a round finds no row, however long that takes. This
//! operator goes above both halves: the first one begins to count, and each execution of the second one is a round.
//! MySQL counts the same: rounds whose input has rows, up to `cte_max_recursion_depth`.
//!
//! ```text
//!   RecursiveQueryExec
//!     |- RecursionLimitExec (count = 0)     the rows to begin with
//!     '- RecursionLimitExec (count += 1)    the rows that follow from those of the round before
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion_common::{Result, internal_err};
use datafusion_execution::TaskContext;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
};

use crate::functions::EvaluationError;
use crate::operator::plan_members::input_handed_on;

/// Which half of a recursive query it is above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    First,
    Repeated,
}

/// See the [module](self).
#[derive(Debug)]
pub struct RecursionLimitExec {
    input: Arc<dyn ExecutionPlan>,
    half: Half,
    rounds: Arc<AtomicU64>,
    limit: u64,
}

impl RecursionLimitExec {
    /// Puts the operator above the halves of a recursive query, which then takes at most `limit` rounds (error 3636).
    pub fn above(
        first: Arc<dyn ExecutionPlan>,
        repeated: Arc<dyn ExecutionPlan>,
        limit: u64,
    ) -> (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>) {
        let rounds = Arc::new(AtomicU64::new(0));
        let above = |input, half| -> Arc<dyn ExecutionPlan> {
            Arc::new(RecursionLimitExec {
                input,
                half,
                rounds: Arc::clone(&rounds),
                limit,
            })
        };
        (above(first, Half::First), above(repeated, Half::Repeated))
    }
}

impl DisplayAs for RecursionLimitExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "RecursionLimitExec: rounds={}", self.limit)
    }
}

impl ExecutionPlan for RecursionLimitExec {
    fn name(&self) -> &'static str {
        "RecursionLimitExec"
    }

    input_handed_on!();

    /// The count goes on: the plan of each round is one that was made anew from the one before.
    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(RecursionLimitExec {
                input,
                half: self.half,
                rounds: Arc::clone(&self.rounds),
                limit: self.limit,
            })),
            None => internal_err!("a recursion without its input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // Each partition is executed once a round.
        if partition == 0 {
            match self.half {
                Half::First => self.rounds.store(0, Ordering::Relaxed),
                Half::Repeated => {
                    if self.rounds.fetch_add(1, Ordering::Relaxed) >= self.limit {
                        return Err(EvaluationError::recursion_too_deep(self.limit).into());
                    }
                }
            }
        }
        self.input.execute(partition, context)
    }
}
