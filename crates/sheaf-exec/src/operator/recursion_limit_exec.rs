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

use datafusion_common::Result;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
};

use crate::functions::EvaluationError;
use crate::operator::plan_members::{input_handed_on, with_input};

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

    // The count goes on: the plan of each round is one that was made anew from the one before.
    with_input!(|plan, input| RecursionLimitExec {
        input,
        half: plan.half,
        rounds: Arc::clone(&plan.rounds),
        limit: plan.limit,
    });

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
