//! Recursive common table expressions, and what their rounds read.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::{Expr, RecursiveQuery};
use datafusion_physical_expr::PhysicalExpr;
use sheaf_exec::operator::recursive_exec::{RecursionRules, RecursiveExec, RoundRows};
use sheaf_exec::typing::group_key;

use super::Planner;
use crate::access::wanted::Wanted;
use crate::estimate::risk::Risk;
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
        let rows = Arc::new(RoundRows::default());
        self.rounds.push((query.name.clone(), Arc::clone(&rows)));
        let round = self.plan(&query.recursive_term, &inner, &Wanted::default());
        self.rounds.pop();
        self.repeats = outer;
        let round = round?;
        let distinct_by = match query.is_distinct {
            true => Some(self.keys_of_rows(query, block)?),
            false => None,
        };
        let rules = RecursionRules {
            distinct_by: distinct_by.map(Into::into),
            max_rounds: self.context.settings.max_recursion_rounds,
            cancel: self.context.cancel.clone(),
        };
        let plan = Arc::new(RecursiveExec::new(
            query.name.clone(),
            Arc::clone(query.schema.inner()),
            (first.plan, round.plan),
            rows,
            rules,
        ));
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
