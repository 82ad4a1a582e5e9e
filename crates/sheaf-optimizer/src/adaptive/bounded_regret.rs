//! Bounded regret: which plans get a second one that takes their place if they turn out badly, and when.
//!
//! A plan is chosen by estimates, and some of them may be wrong by any factor:
//!
//! ```text
//!   what is counted on                      if it is wrong            the plan that does not count on it
//!   a LIMIT stops a walk in order           all of the walk           the best one for all rows, and a top-N sort
//!   a LIMIT stops a scan in no order        all of the scan           the best one that reads all rows
//!   an index condition keeps few entries    a lookup for each entry   the best one if each condition keeps everything
//! ```
//!
//! Each access path says what it costs then ([`Risk`]). If that is more than [`WORTHWHILE`] times the cost of the other
//! plan, both are planned. A [`RegretExec`] abandons the first one once it has spent what the other one is estimated to
//! cost. If it is less, the first plan is never regretted more than that, and stays alone. A plan that may have to be
//! abandoned is not even begun if it is hardly expected to be cheaper ([`WORTH_THE_RISK`]).
//!
//! The first two kinds are guarded for accesses to one table and for [joins that stream](crate::join::first_rows),
//! whose scans and lookups pay from one budget. The third kind is guarded only below an operator that reads all of its
//! input before it delivers anything, a sort or an aggregate, because rows that have been delivered cannot be recalled.
//! It is not guarded for joins. Counts of entries are not doubted: those of ranges come from index dives.
//!
//! What a recursive query repeats is not guarded. The rows of the round before are read in one place alone, and a plan
//! that was abandoned in one round and not in another would not know what it has searched.
//!
//! Nor is a subquery guarded that is bound to the values of each row
//! ([`bound_subquery`](crate::physical::bound_subquery)), where it delivers every row that it reads. Any other that is
//! in doubt is planned for each row.
//!
//! How many rows come into a keyed join is doubted in [`crate::adaptive::lookup_regret`]: it goes on differently
//! instead of anew.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::LogicalPlan;
use datafusion_physical_expr::LexOrdering;
use datafusion_physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_access::{Budget, IndexRef, Prices};
use sheaf_exec::operator::regret_exec::{Allowance, RegretExec};
use sheaf_exec::operator::scan_exec::ScanExec;

use crate::PlannerContext;
use crate::access::path::AccessPath;
use crate::access::table_reference::TableReference;
use crate::cost::index_condition::conditions_us;
use crate::cost::jumps::jump_us;
use crate::cost::lookup::lookup_us;
use crate::estimate::risk::{Expectation, Risk};
use crate::explain::ExplainRow;
use crate::explain::notes::Notes;
use crate::json::{Json, Object};
use crate::physical::planner::Planner;
use crate::planned::Planned;

/// Rows of a LIMIT up to which a walk is guarded: they are held back until it has them all.
pub(crate) const MAX_HELD_ROWS: usize = 10_000;

/// How many times the cost of the other plan a plan may cost without being guarded. A switch costs up to twice the
/// other plan, so guarding less than that would gain nothing.
pub(crate) const WORTHWHILE: f64 = 2.0;

/// The greatest share of the other plan's cost that a plan which may have to be abandoned may cost. Its time is known
/// less well than that of the other one, and if it is abandoned both have been paid for.
const WORTH_THE_RISK: f64 = 0.8;

/// What a plan must be able to cost for the planning of another one to be worth the time, in microseconds.
pub(crate) const LEAST_US: f64 = 500.0;

/// A plan that may be abandoned, and how.
pub(crate) struct Doubted<'n> {
    /// What it is the plan of.
    pub node: &'n LogicalPlan,
    pub planned: Planned,
    /// See [`Planner::watched`].
    pub budget: Budget,
    /// What is not counted on by the plan that takes its place.
    pub expectation: Expectation,
    /// See [`Allowance::held_rows`].
    pub held_rows: usize,
    /// The order that both plans are to deliver; `None`: the one that they have in common, if any.
    pub order: Option<LexOrdering>,
}

impl Planner<'_> {
    /// Plans something so that it can be abandoned: its scans pay from the budget, which has no limit yet.
    pub(crate) fn watched(
        &mut self,
        plan: impl FnOnce(&mut Self) -> Result<Planned>,
    ) -> Result<(Planned, Budget)> {
        let budget = Budget::default();
        let outer = self.budget.replace(budget.clone());
        let planned = plan(self);
        self.budget = outer;
        Ok((planned?, budget))
    }

    /// Adds the plan that takes the place of a doubted one, if that is worth it. `replan` plans the same again.
    pub(crate) fn guard(
        &mut self,
        mut doubted: Doubted<'_>,
        replan: impl FnOnce(&mut Planner<'_>) -> Result<Planned>,
    ) -> Result<Planned> {
        let context = self.context;
        let settings = &context.settings;
        let at_risk_us = doubted.planned.risk.under(doubted.expectation);
        let is_forced = settings.regret_budget_us.is_some();
        // Decided here; the operators above are not to doubt it again.
        doubted.planned.risk = Risk::none(doubted.planned.cost_us);
        if context.places.is_some() && delivers_what_it_reads(&doubted.planned.plan) {
            return Ok(doubted.planned);
        }
        let may_pay = at_risk_us > LEAST_US && at_risk_us > WORTHWHILE * doubted.planned.cost_us;
        if !settings.switch.bounded_regret
            || self.repeats
            || doubted.held_rows > MAX_HELD_ROWS
            || context.expectation != Expectation::Estimates
            || !(may_pay || is_forced)
        {
            return Ok(doubted.planned);
        }
        let _traced = context.trace.begin("bounded_regret", || {
            Object::new()
                .with("cost", Json::fixed(doubted.planned.cost_us, 2))
                .with("cost_at_worst", Json::fixed(at_risk_us, 2))
        });
        let cautious = PlannerContext {
            expectation: doubted.expectation,
            ..context.clone()
        };
        let mut other = Planner {
            context: &cautious,
            properties: self.properties.clone(),
            notes: Notes::default(),
            blocks: self.blocks,
            conflicting_hints: Vec::new(),
            budget: None,
            repeats: self.repeats,
            rounds: self.rounds.clone(),
            most_kept: self.most_kept,
            sorts_long_texts: self.sorts_long_texts,
        };
        let alternative = replan(&mut other)?;
        self.most_kept = other.most_kept;
        self.sorts_long_texts = other.sorts_long_texts;
        let notes = other.notes;
        let is_guarded = is_forced || at_risk_us > WORTHWHILE * alternative.cost_us;
        let switches_to = plan_name(&alternative.explain);
        let is_better = is_guarded
            && !is_forced
            && doubted.planned.cost_us > WORTH_THE_RISK * alternative.cost_us;
        context.trace.step("alternative_plan", || {
            Object::new()
                .with("plan", switches_to.as_str())
                .with("cost", Json::fixed(alternative.cost_us, 2))
                .with("guards", is_guarded && !is_better)
                .with("taken_at_once", is_better)
                .into()
        });
        if is_better {
            self.notes.absorb(notes);
            let risk = Risk::none(alternative.cost_us);
            return Ok(Planned {
                risk,
                ..alternative
            });
        }
        if !is_guarded {
            return Ok(doubted.planned);
        }
        doubted.planned = doubted.planned.noted(&self.notes, doubted.node)?;
        let alternative = alternative.noted(&notes, doubted.node)?;
        self.notes.absorb(notes);
        self.with_alternative(doubted, alternative, &switches_to)
    }

    fn with_alternative(
        &self,
        doubted: Doubted<'_>,
        alternative: Planned,
        switches_to: &str,
    ) -> Result<Planned> {
        let settings = &self.context.settings;
        let allowance = Allowance {
            budget: doubted.budget,
            limit_us: settings.regret_budget_us.unwrap_or(alternative.cost_us),
            held_rows: doubted.held_rows,
        };
        let mut planned = doubted.planned;
        let order = match doubted.order {
            Some(order) => Some(order),
            None => common_order(&planned.plan, &alternative.plan)?,
        };
        let plan = RegretExec::new(
            Arc::clone(&planned.plan),
            alternative.plan,
            allowance,
            order,
            Arc::clone(&self.context.counters),
        );
        if let Some(row) = planned.explain.first_mut() {
            row.may_switch_to(switches_to);
        }
        planned.plan = Arc::new(plan);
        Ok(planned)
    }
}

/// Whether a plan delivers each row that it reads, so that a limit stops it for certain.
fn delivers_what_it_reads(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        let spec = scan.spec();
        return !spec.is_filtered() && spec.key_filter.is_none();
    }
    let hands_rows_on = plan.is::<ProjectionExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<OutputRequirementExec>();
    hands_rows_on && plan.children().into_iter().all(delivers_what_it_reads)
}

/// The order of one plan's rows, if the other one's have it, too: a sort further down must not be taken for useless.
fn common_order(
    one: &Arc<dyn ExecutionPlan>,
    other: &Arc<dyn ExecutionPlan>,
) -> Result<Option<LexOrdering>> {
    let Some(order) = one.output_ordering() else {
        return Ok(None);
    };
    let is_common = other
        .equivalence_properties()
        .ordering_satisfy(order.clone())?;
    Ok(is_common.then(|| order.clone()))
}

/// What EXPLAIN calls a plan: the index that it reads, if it reads one table.
fn plan_name(rows: &[ExplainRow]) -> String {
    match rows {
        [row] => row
            .key
            .clone()
            .unwrap_or_else(|| "a table scan".to_string()),
        _ => "another plan".to_string(),
    }
}

impl TableReference<'_> {
    fn clustered_leaves(&self) -> f64 {
        self.table.clustered.statistics().leaf_pages as f64
    }

    /// What the work of a path costs, piece by piece: [`crate::access::path_cost`] read backwards.
    pub(crate) fn prices(&self, context: &PlannerContext, path: &AccessPath) -> Prices {
        let constants = &context.settings.costs;
        let is_clustered = path.index == IndexRef::Clustered && path.merge.is_none();
        let row_us = conditions_us(constants, 1.0, self.tests(&path.row_filters));
        Prices {
            key_us: 0.0,
            entry_us: constants.entry_us,
            row_us: match is_clustered {
                // Its rows are its entries.
                true => row_us + constants.entry_us,
                false => row_us,
            },
            index_condition_us: conditions_us(constants, 1.0, self.tests(&path.index_filters)),
            jump_us: jump_us(constants),
            lookup_us: lookup_us(constants, self.clustered_leaves()),
            random_read_us: constants.random_read_us,
            sequential_read_us: constants.sequential_read_us,
        }
    }
}
