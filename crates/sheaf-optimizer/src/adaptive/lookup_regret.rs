//! Bounded regret of keyed joins: which of them may stop their lookups, and when.
//!
//! A keyed join is chosen because few outer rows are expected. That may be wrong by any factor: conditions of the
//! tables before are correlated, statistics are old, or one key has most of the matches. The other way, reading the
//! table once and hashing it, costs the same however many outer rows come:
//!
//! ```text
//!   cost |            / lookups
//!        |          /                          limit = cost of the other way
//!        |- - - - X - - - - - - - - - - -              (or what was expected of the lookups, and half of that again)
//!        |      / |
//!        |____/___|___________________ outer rows
//!           expected
//! ```
//!
//! What is certain of the tables before bounds the outer rows that may come. If that many could cost more than
//! [`WORTHWHILE`] times the other way, and the table fits in memory, the join is guarded: it [goes on with the
//! table](sheaf_exec::keyed_join::lookup_switch) once its lookups have spent the limit. Only the scan of the table is
//! planned for that; the search for the join order has found its path already.

use std::sync::Arc;

use datafusion_common::{Result, internal_err};
use datafusion_physical_expr::expressions::Column;
use sheaf_exec::keyed_join::exec::{FIRST_SMALL_ROUND_ROWS, KeyColumn};
use sheaf_exec::keyed_join::lookup_switch::LookupSwitch;

use crate::access::keyed_access::{KeySource, LookupPath, OuterRows};
use crate::access::table_reference::TableReference;
use crate::adaptive::bounded_regret::{LEAST_US, WORTHWHILE};
use crate::cost::hash_join::HASH_ROW_BYTES;
use crate::cost::hash_join::{hash_build_us, hash_probe_us};
use crate::estimate::statistics::layout;
use crate::json::{Json, Object};
use crate::physical::planner::Planner;
use crate::planned::Block;

/// How many times what was expected of the lookups they may cost in any case: estimates of costs are not better than
/// that.
const SLACK: f64 = 1.5;

/// Rounds of lookups until the limit is spent, if they cost what they are estimated to and more rows come than
/// expected. The budget is checked between two rounds.
const ROUNDS: f64 = 4.0;

/// Outer rows of a round, at least and at most.
const LEAST_ROUND_ROWS: f64 = FIRST_SMALL_ROUND_ROWS as f64;
const MOST_ROUND_ROWS: f64 = 1e6;

/// Steps towards the number of lookups that cost as much as the limit.
const BREAK_EVEN_STEPS: usize = 3;

/// A keyed join, and what comes into it.
pub(crate) struct DoubtedLookups<'d, 't> {
    pub table: &'d TableReference<'t>,
    pub path: &'d LookupPath,
    /// Makes keys of the outer rows.
    pub keys: &'d [KeyColumn],
    /// Columns that are looked up.
    pub projection: &'d [usize],
    /// Outer rows that are expected, and that may come.
    pub rows: f64,
    pub most_rows: f64,
    /// Workers among which they are divided.
    pub workers: usize,
    /// Bytes of a row of the table.
    pub row_bytes: f64,
    /// Bytes that the table may take in memory.
    pub max_bytes: f64,
}

impl Planner<'_> {
    /// How a keyed join goes on when its lookups have cost too much, if it may be regretted.
    pub(crate) fn lookup_switch(
        &self,
        block: &Block,
        doubted: &DoubtedLookups<'_, '_>,
    ) -> Result<Option<LookupSwitch>> {
        let context = self.context;
        let (settings, constants) = (&context.settings, &context.settings.costs);
        let DoubtedLookups { table, path, .. } = doubted;
        let workers = doubted.workers.max(1) as f64;
        let scan = table.chosen_scan(context)?;
        let cost_us = scan.path.cost_us + hash_build_us(constants, table.rows);
        let at_most_us = path
            .work(table, OuterRows::new(doubted.most_rows), constants)?
            .elapsed_us(workers);
        let probing_us = hash_probe_us(constants, doubted.most_rows) / workers;
        let fits = table.rows * (doubted.row_bytes + HASH_ROW_BYTES) <= doubted.max_bytes;
        let is_regrettable =
            at_most_us > LEAST_US && at_most_us > WORTHWHILE * (cost_us + probing_us);
        let is_guarded = settings.lookup_budget_us.is_some() || is_regrettable && fits;
        context.trace.step("bounded_regret", || {
            Object::new()
                .with("table", table.source.alias.as_str())
                .with("cost_of_lookups_at_worst", Json::fixed(at_most_us, 2))
                .with(
                    "cost_of_hash_join_at_worst",
                    Json::fixed(cost_us + probing_us, 2),
                )
                .with_flag("too_large_for_memory", !fits)
                .with("guards", is_guarded)
                .into()
        });
        if !is_guarded {
            return Ok(None);
        }
        let expected = path.work(table, OuterRows::new(doubted.rows), constants)?;
        let expected_us = expected.spent_us() / workers;
        // If no more rows come than expected, they are one round.
        let (limit_us, expected_rows) = match settings.lookup_budget_us {
            Some(budget_us) => (budget_us, 0.0),
            None => (
                cost_us.max(SLACK * expected_us),
                SLACK * doubted.rows / workers,
            ),
        };
        let round_rows = doubted.rows_for(limit_us / ROUNDS, self)?;
        let round_rows = round_rows.max(expected_rows.min(MOST_ROUND_ROWS));
        let (projection, keys) = doubted.scanned_columns()?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and saturates"
        )]
        let (whole_rows, max_bytes) = (round_rows as usize, doubted.max_bytes.max(0.0) as usize);
        let budget = self.budget.clone();
        Ok(Some(LookupSwitch {
            scan: Arc::new(table.scan_spec(self, block, &scan.path, projection)?),
            workers: scan.workers,
            keys,
            limit_us,
            prices: path.prices(table, round_rows, constants)?,
            round_rows: whole_rows,
            max_bytes,
            budget: budget.map(|budget| (budget, table.prices(context, &scan.path))),
            rows: table.rows,
            cost_us,
        }))
    }
}

impl DoubtedLookups<'_, '_> {
    /// Outer rows of one worker whose lookups cost about so much, within the limits of a round.
    fn rows_for(&self, limit_us: f64, planner: &Planner<'_>) -> Result<f64> {
        let constants = &planner.context.settings.costs;
        let mut rows = self.rows.clamp(LEAST_ROUND_ROWS, MOST_ROUND_ROWS);
        for _ in 0..BREAK_EVEN_STEPS {
            let work = self
                .path
                .work(self.table, OuterRows::new(rows), constants)?;
            let cost_us = work.spent_us();
            rows = (rows * limit_us / cost_us).clamp(LEAST_ROUND_ROWS, MOST_ROUND_ROWS);
        }
        Ok(rows)
    }

    /// What is read of the table: the columns that are looked up, and behind them those of the key that are not among
    /// them; and the keys of these rows.
    fn scanned_columns(&self) -> Result<(Vec<usize>, Vec<KeyColumn>)> {
        let definition = &self.table.table.definition;
        let parts = &layout(self.table.table, self.path.index).parts;
        let mut projection = self.projection.to_vec();
        let mut keys = Vec::with_capacity(self.keys.len());
        for ((outer, source), part) in self.keys.iter().zip(&self.path.key).zip(parts) {
            let Some(column) = part.column else {
                return internal_err!("a row id in a join key");
            };
            let mut key = outer.clone();
            if matches!(source, KeySource::Join(_)) {
                let known = projection.iter().position(|known| *known == column);
                let position = known.unwrap_or(projection.len());
                if known.is_none() {
                    projection.push(column);
                }
                key.expr = Arc::new(Column::new(&definition.columns[column].name, position));
            }
            keys.push(key);
        }
        Ok((projection, keys))
    }
}
