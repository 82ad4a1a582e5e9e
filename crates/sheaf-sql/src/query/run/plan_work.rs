//! What a plan of operators had to sort and to keep, by the counts of its operators.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::operator::first_rows_exec::sort_of;
use sheaf_optimizer::PhysicalQuery;

use crate::events::thread_work::{self, Work};

/// A plan that runs. When this is dropped, what it has done since is noted for the statement.
pub(super) struct PlanWork {
    physical: Arc<PhysicalQuery>,
    /// A plan may have run before.
    before: Counted,
}

/// The counts of all operators.
#[derive(Clone, Copy, Default)]
struct Counted {
    sorts: u64,
    sorted_rows: usize,
    spilled_sorts: usize,
    spilled_groups: usize,
}

impl PlanWork {
    pub(super) fn begin(physical: &Arc<PhysicalQuery>) -> PlanWork {
        PlanWork {
            physical: Arc::clone(physical),
            before: count(&physical.plan),
        }
    }
}

impl Drop for PlanWork {
    fn drop(&mut self) {
        let (now, before) = (count(&self.physical.plan), self.before);
        let is_kept = |extra: &Option<String>| {
            let extra = extra.as_deref();
            extra.is_some_and(|extra| extra.contains("Using temporary"))
        };
        let kept = self.physical.explain.iter();
        let kept = kept.filter(|row| is_kept(&row.extra)).count() as u64;
        let spilled_groups = now.spilled_groups.saturating_sub(before.spilled_groups);
        thread_work::note(Work {
            sorts: now.sorts,
            sorted_rows: now.sorted_rows.saturating_sub(before.sorted_rows) as u64,
            merge_passes: now.spilled_sorts.saturating_sub(before.spilled_sorts) as u64,
            temporary_tables: kept,
            temporary_files: u64::from(spilled_groups > 0),
        });
    }
}

fn count(plan: &Arc<dyn ExecutionPlan>) -> Counted {
    let mut counted = Counted::default();
    let mut open = vec![plan];
    while let Some(plan) = open.pop() {
        let is_sort = sort_of(plan).is_some();
        let is_grouping = plan.name() == "AggregateExec";
        counted.sorts += u64::from(is_sort);
        if (is_sort || is_grouping)
            && let Some(metrics) = plan.metrics()
        {
            let spilled = metrics.spill_count().unwrap_or_default();
            if is_sort {
                counted.sorted_rows += metrics.output_rows().unwrap_or_default();
                counted.spilled_sorts += spilled;
            } else {
                counted.spilled_groups += spilled;
            }
        }
        open.extend(plan.children());
    }
    counted
}
