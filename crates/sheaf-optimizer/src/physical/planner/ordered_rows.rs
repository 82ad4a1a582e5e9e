//! Operators that sort rows, rely on their order, or keep the first of them.

use std::sync::Arc;

use datafusion_expr::Sort;
use datafusion_physical_expr::{Distribution, LexOrdering, OrderingRequirements};
use datafusion_physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::explain::ExtraNote;
use crate::planned::Planned;

/// Estimated rows of an input of which so many are fetched.
pub(super) fn fetched_rows(input: &Planned, fetch: Option<usize>) -> f64 {
    fetch.map_or(input.rows, |fetch| input.rows.min(fetch as f64))
}

/// The rows of an input, sorted.
pub(super) fn sorted_rows(sort: &Sort, ordering: &LexOrdering, input: Planned) -> Planned {
    let rows = fetched_rows(&input, sort.fetch);
    let child = Arc::clone(&input.plan);
    let sort = SortExec::new(ordering.clone(), child).with_fetch(sort.fetch);
    Planned {
        rows,
        ..input.wrap(sort).note(ExtraNote::UsingFilesort)
    }
}

/// Rows that come in the wanted order by themselves. The rules that exchange rows between workers learn from it that
/// the order is relied on; then it is removed.
pub(super) fn kept_in_order(input: Planned, ordering: LexOrdering) -> Planned {
    let plan = relied_on(Arc::clone(&input.plan), ordering);
    Planned { plan, ..input }
}

/// See [`kept_in_order`].
pub(crate) fn relied_on(
    rows: Arc<dyn ExecutionPlan>,
    ordering: LexOrdering,
) -> Arc<dyn ExecutionPlan> {
    Arc::new(OutputRequirementExec::new(
        rows,
        Some(OrderingRequirements::from(ordering)),
        Distribution::SinglePartition,
        None,
    ))
}

/// The first rows of each partition.
pub(super) fn limited(input: Planned, taken: usize) -> Planned {
    let rows = fetched_rows(&input, Some(taken));
    let child = Arc::clone(&input.plan);
    let limited = match child.output_partitioning().partition_count() {
        1 => input.wrap(GlobalLimitExec::new(child, 0, Some(taken))),
        _ => input.wrap(LocalLimitExec::new(child, taken)),
    };
    Planned { rows, ..limited }
}
