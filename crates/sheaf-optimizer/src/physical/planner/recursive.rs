//! Recursive common table expressions, and what their rounds read.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::{Expr, LogicalPlan, RecursiveQuery, TableSource};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::recursive_query::RecursiveQueryExec;
use datafusion_physical_plan::work_table::WorkTableExec;
use sheaf_exec::WorkTableSource;
use sheaf_exec::operator::new_rows_exec::NewRows;
use sheaf_exec::operator::recursion_limit_exec::RecursionLimitExec;
use sheaf_exec::operator::round_exec::{RoundExec, RoundRows};
use sheaf_exec::typing::group_key;

use super::Planner;
use crate::access::wanted::Wanted;
use crate::estimate::risk::Risk;
use crate::physical::rules::one_stream;
use crate::planned::{Block, Planned};

/// Rows that a round of a recursive query is guessed to find, and rounds.
pub(super) const GUESSED_ROUND_ROWS: f64 = 100.0;
const GUESSED_ROUNDS: f64 = 10.0;

impl Planner<'_> {
    pub(super) fn plan_recursive(
        &mut self,
        query: &RecursiveQuery,
        block: &Block,
    ) -> Result<Planned> {
        let first = self.plan(&query.static_term, block, &Wanted::default())?;
        let inner = self.inner_block(block, "UNION");
        let outer = std::mem::replace(&mut self.repeats, true);
        let shared_so_far = self.shared_rounds.len();
        let shared = read_by_several(&query.recursive_term);
        let shared = shared.map(|source| (source, Arc::new(RoundRows::default())));
        self.shared_rounds.extend(shared.clone());
        let round = self.plan(&query.recursive_term, &inner, &Wanted::default());
        self.shared_rounds.truncate(shared_so_far);
        self.repeats = outer;
        let mut round = round?;
        if let Some((source, rows)) = shared {
            let before = WorkTableExec::new(query.name.clone(), source.schema(), None)?;
            let members = one_stream(round.plan);
            round.plan = Arc::new(RoundExec::new(Arc::new(before), members, rows));
        }
        let limit = self.context.settings.max_recursion_rounds;
        let (first_plan, round_plan) = RecursionLimitExec::above(first.plan, round.plan, limit);
        let new_rows = match query.is_distinct {
            true => Some(NewRows::new(self.keys_of_rows(query, block)?)),
            false => None,
        };
        let half = |plan| match &new_rows {
            Some(new_rows) => new_rows.above_half(one_stream(plan)),
            None => plan,
        };
        let plan: Arc<dyn ExecutionPlan> = Arc::new(RecursiveQueryExec::try_new(
            query.name.clone(),
            Arc::clone(query.schema.inner()),
            half(first_plan),
            half(round_plan),
            false,
        )?);
        let plan = match &new_rows {
            Some(new_rows) => new_rows.above_whole(plan),
            None => plan,
        };
        let mut explain = first.explain;
        explain.extend(round.explain);
        let cost_us = first.cost_us + round.cost_us * GUESSED_ROUNDS;
        Ok(Planned {
            plan,
            rows: first.rows + round.rows * GUESSED_ROUNDS,
            cost_us,
            risk: Risk::none(cost_us),
            explain,
        })
    }
}

impl Planner<'_> {
    /// What rows of a recursive query are told apart by: of texts the keys of their collations.
    fn keys_of_rows(
        &self,
        query: &RecursiveQuery,
        block: &Block,
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let keys = query.schema.iter().map(|column| {
            let column = Expr::from(column);
            let key = group_key(&column, &query.schema)?;
            self.expr(&key.unwrap_or(column), &query.schema, block)
        });
        keys.collect()
    }
}

/// The rows of the round before, if this plan of a round reads them more than once.
fn read_by_several(round: &LogicalPlan) -> Option<Arc<dyn TableSource>> {
    let mut sources: Vec<Arc<dyn TableSource>> = Vec::new();
    let mut plans = vec![round];
    while let Some(plan) = plans.pop() {
        if let LogicalPlan::TableScan(scan) = plan
            && scan.source.is::<WorkTableSource>()
        {
            if sources.iter().any(|known| Arc::ptr_eq(known, &scan.source)) {
                return Some(Arc::clone(&scan.source));
            }
            sources.push(Arc::clone(&scan.source));
        }
        plans.extend(plan.inputs());
    }
    None
}
