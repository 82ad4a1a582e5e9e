//! What operators of DataFusion may rightly say of the order of their rows.
//!
//! A join whose one side streams by has the order of that side. DataFusion says that rows with the same place in it
//! come in the order of the other side. That is true for one row of the streamed side, but not for two of them:
//!
//! ```text
//!   streamed, by k      other side, by id      joined                    not (k, id)
//!     k = 1               id = 1                 k = 1, id = 1
//!     k = 1               id = 2                 k = 1, id = 2
//!                                                k = 1, id = 1
//!                                                k = 1, id = 2
//! ```
//!
//! A sort by (k, id) above would be left out. So the order of the kept side of a hash join is hidden
//! ([`without_order`]). A sort-merge join, which needs both sides in order, declares that of the streamed side only
//! ([`in_streamed_order`]). An outer sort-merge join does not have even that one. The groups of ROLLUP have nothing of
//! the rows, because the sums of several groups are among them ([`without_facts`]).

use std::fmt;
use std::sync::Arc;

use datafusion_common::{JoinType, Result};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_plan::joins::SortMergeJoinExec;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};

use crate::operator::plan_members::{no_expressions, row_for_row, with_input};

/// The rows of `plan`, of whose order nothing is said.
pub fn without_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match plan.equivalence_properties().oeq_class().is_empty() {
        true => Ok(plan),
        false => Ok(Arc::new(LessOrderExec::new(plan, Said::Nothing)?)),
    }
}

/// The rows of `plan`, of which nothing is said: neither their order, nor which columns are constant or equal. Among
/// the groups of ROLLUP are those of NULL in place of such a column.
pub fn without_facts(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let known = plan.equivalence_properties();
    match known.oeq_class().is_empty() && known.eq_group().is_empty() {
        true => Ok(plan),
        false => Ok(Arc::new(LessOrderExec::new(plan, Said::NoFacts)?)),
    }
}

/// The rows of `plan` in their order, without columns that are said to be constant. Of a union, DataFusion takes a
/// column for one constant where every input computes it without reading anything, whatever comes out of it. Of an
/// outer join, it does so where the side has no row, and the column is NULL.
pub fn without_constants(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match plan.equivalence_properties().constants().is_empty() {
        true => Ok(plan),
        false => Ok(Arc::new(LessOrderExec::new(plan, Said::NoConstants)?)),
    }
}

/// The rows of a sort-merge join, in the order of the side that streams by, if they have it.
pub fn in_streamed_order(join: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(Arc::new(LessOrderExec::new(join, Said::StreamedSide)?))
}

/// What is said of the order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    NoFacts,
    Nothing,
    NoConstants,
    StreamedSide,
}

/// Hands on the batches of its input, and says less of their order, or of what is constant in them.
#[derive(Debug)]
pub struct LessOrderExec {
    input: Arc<dyn ExecutionPlan>,
    said: Said,
    properties: Arc<PlanProperties>,
}

impl LessOrderExec {
    fn new(input: Arc<dyn ExecutionPlan>, said: Said) -> Result<LessOrderExec> {
        let mut equivalences = input.equivalence_properties().clone();
        match said {
            Said::NoFacts => equivalences = EquivalenceProperties::new(input.schema()),
            Said::NoConstants => {
                let orders = equivalences.oeq_class().iter().cloned();
                equivalences = EquivalenceProperties::new_with_orderings(input.schema(), orders);
            }
            Said::Nothing | Said::StreamedSide => equivalences.clear_orderings(),
        }
        if said == Said::StreamedSide
            && let Some(join) = merge_join(&input)
        {
            add_streamed_order(&mut equivalences, join);
        }
        let properties = PlanProperties::new(
            equivalences,
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Ok(LessOrderExec {
            input,
            said,
            properties: Arc::new(properties),
        })
    }
}

/// The join below operators that hand its rows on.
fn merge_join(plan: &Arc<dyn ExecutionPlan>) -> Option<&SortMergeJoinExec> {
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        return Some(join);
    }
    match plan.children().as_slice() {
        [input] if input.schema() == plan.schema() => merge_join(input),
        _ => None,
    }
}

fn add_streamed_order(equivalences: &mut EquivalenceProperties, join: &SortMergeJoinExec) {
    let streamed = match join.join_type() {
        JoinType::Inner | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            join.left()
        }
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => join.right(),
        // Rows without a match overtake others of the same batch.
        JoinType::Left | JoinType::Right | JoinType::Full => return,
    };
    let order = streamed.equivalence_properties().oeq_class().clone();
    equivalences.add_orderings(order);
}

impl DisplayAs for LessOrderExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "LessOrderExec: {:?}", self.said)
    }
}

impl ExecutionPlan for LessOrderExec {
    fn name(&self) -> &'static str {
        "LessOrderExec"
    }

    row_for_row!();
    no_expressions!();

    /// It keeps it, but the input of a join or of groups says too much of it.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.said == Said::NoConstants]
    }

    with_input!(|plan, input| LessOrderExec::new(input, plan.said)?);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
