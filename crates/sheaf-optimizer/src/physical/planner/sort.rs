//! ORDER BY and LIMIT. A plan that bets on an early end is guarded by another that does not need one.

use std::sync::Arc;

use datafusion_common::{Result, internal_err, not_impl_err};
use datafusion_expr::{FetchType, Limit, LogicalPlan, SkipType, Sort};
use datafusion_physical_expr::{LexOrdering, create_physical_sort_exprs};
use datafusion_physical_plan::ExecutionPlanProperties;
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use super::Planner;
use super::ordered_rows::{fetched_rows, kept_in_order, limited, sorted_rows};
use crate::access::wanted::Wanted;
use crate::adaptive::bounded_regret::Doubted;
use crate::cost::sort::sort_us;
use crate::estimate::risk::Expectation;
use crate::physical::sort_keys::bounded_sort_keys;
use crate::planned::{Block, Planned};

impl Planner<'_> {
    pub(super) fn plan_sort(
        &mut self,
        node: &LogicalPlan,
        sort: &Sort,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let fetch = smaller(sort.fetch, wanted.limit);
        let wanted = Wanted {
            order: sort.expr.clone(),
            limit: fetch,
        };
        let (input, budget) = self.watched(|planner| planner.plan(&sort.input, block, &wanted))?;
        let exprs = create_physical_sort_exprs(
            &sort.expr,
            sort.input.schema(),
            &self.properties,
            &block.slots,
        )?;
        let exprs = bounded_sort_keys(exprs, &self.properties);
        let Some(ordering) = LexOrdering::new(exprs.clone()) else {
            return internal_err!("a sort without expressions");
        };
        let partitions = input.plan.output_partitioning().partition_count();
        let sorted = input
            .plan
            .equivalence_properties()
            .ordering_satisfy(exprs)?;
        if sorted && partitions > 1 {
            let rows = fetched_rows(&input, sort.fetch);
            let child = Arc::clone(&input.plan);
            let merge = SortPreservingMergeExec::new(ordering, child).with_fetch(sort.fetch);
            return Ok(Planned {
                rows,
                ..input.wrap(merge)
            });
        }
        if !sorted {
            self.note_sort(input.rows, sort.fetch);
        }
        let (planned, expectation, held_rows) = match (sorted, sort.fetch) {
            (true, None) => return Ok(kept_in_order(input, ordering)),
            (true, Some(fetch)) => {
                let ordered = kept_in_order(input, ordering.clone());
                (limited(ordered, fetch), Expectation::NoEarlyStop, fetch)
            }
            (false, _) => (sorted_rows(sort, &ordering, input), Expectation::Worst, 0),
        };
        let doubted = Doubted {
            node,
            planned,
            budget,
            expectation,
            held_rows,
            order: Some(ordering.clone()),
        };
        self.guard(doubted, |planner| {
            let input = planner.plan(&sort.input, block, &Wanted::default())?;
            let rows = input.rows;
            planner.note_sort(rows, sort.fetch);
            let mut sorted = sorted_rows(sort, &ordering, input);
            let kept = sort.fetch.map_or(rows, |fetch| fetch as f64);
            sorted.cost_us += sort_us(&planner.context.settings.costs, rows, kept);
            Ok(sorted)
        })
    }

    pub(super) fn plan_limit(
        &mut self,
        node: &LogicalPlan,
        limit: &Limit,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return not_impl_err!("LIMIT with an expression");
        };
        let taken = fetch.map(|fetch| fetch.saturating_add(skip));
        // An order that is wanted above the limit would choose other rows.
        let wanted = Wanted {
            limit: smaller(taken, wanted.limit),
            ..Wanted::default()
        };
        let (mut input, budget) =
            self.watched(|planner| planner.plan(&limit.input, block, &wanted))?;
        if let Some(taken) = taken {
            let doubted = Doubted {
                node,
                planned: limited(input, taken),
                budget,
                expectation: Expectation::NoEarlyStop,
                held_rows: taken,
                order: None,
            };
            input = self.guard(doubted, |planner| {
                let all = planner.plan(&limit.input, block, &Wanted::default())?;
                Ok(limited(all, taken))
            })?;
        }
        if skip == 0 && input.plan.is::<GlobalLimitExec>() {
            return Ok(input);
        }
        let child = Arc::clone(&input.plan);
        let rows = (input.rows - skip as f64).max(1.0);
        let rows = fetch.map_or(rows, |fetch| rows.min(fetch as f64));
        Ok(Planned {
            rows,
            ..input.wrap(GlobalLimitExec::new(child, skip, fetch))
        })
    }
}

fn smaller(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
