//! One plan for all runs of a subquery that is computed for each row.
//!
//! The columns of the query around are *places* in it. It is optimised once, whatever values they have. Operators are
//! built for the values of the first run, and bound to those of each other run ([`crate::access::bound_scan`]):
//!
//! ```text
//!   (SELECT v FROM t WHERE lo <= o.x ORDER BY lo DESC LIMIT 1)
//!
//!   optimised once     ... WHERE lo <= ?0 ...                        Limit 1, Sort lo DESC, t by lo <= ?0
//!   built for 10       the index lo backwards, from 10, one row      run, bind 20, run, bind 15, run ...
//! ```
//!
//! That is for subqueries over one table. A plan for each run, with the values as literals, is made instead
//!
//! - of all others: their operators keep what one run has found, or may run beside the next one;
//! - where a value is NULL, which decides conditions that then need not be planned;
//! - where an expression notes in a warning what it meets: it does so once for a literal;
//! - where the values need another plan.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::execution_plan::reset_plan_states;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_exec::SheafTableSource;
use sheaf_exec::functions::truncated::TruncatedTexts;
use sheaf_exec::operator::bounded_projection::BoundedProjectionExec;
use sheaf_exec::operator::compacted_exec::CompactedExec;
use sheaf_exec::operator::correlation::{SubplanRuns, Subplans};
use sheaf_exec::operator::interruptible_exec::InterruptibleExec;
use sheaf_exec::operator::key_width_exec::KeyWidthExec;
use sheaf_exec::operator::scan_exec::ScanExec;
use sheaf_exec::operator::sort_batches_exec::{CutBatchesExec, SortBatchesExec};
use sheaf_table::Table;

use crate::access::bound_scan::Places;
use crate::logical::apply::{Given, with_given};
use crate::logical::places::{has_places, place};
use crate::logical::rule_passes::contains_subqueries;
use crate::physical::applied_subquery::AppliedSubquery;
use crate::{PlannerContext, optimize_logical, plan_physical};

/// Runs of one plan. Its operators remember something of each in their metrics.
const MOST_RUNS: usize = 1_000;

/// Values for which no plan could be built that others may be bound to, until that is not tried any more.
const MOST_REFUSALS: usize = 3;

/// What each place is of, as the subquery's plan says it.
type Fields = Arc<[FieldRef]>;

/// The plan with places, and what these are of; `None` if there cannot be one plan for all runs.
fn one_plan(subquery: &AppliedSubquery) -> Option<&LogicalPlan> {
    let plan = || {
        // Whatever a rule cannot do with places, it can do with literals, or it fails again there.
        let plan = with_places(subquery, &subquery.fields).ok()?;
        plan.filter(is_of_one_table)
    };
    subquery.with_places.get_or_init(plan).as_ref()
}

fn with_places(subquery: &AppliedSubquery, fields: &Fields) -> Result<Option<LogicalPlan>> {
    if contains_subqueries(&subquery.plan) {
        return Ok(None);
    }
    let places: Vec<_> = fields
        .iter()
        .enumerate()
        .map(|(number, field)| Given::Place(place(number, field)))
        .collect();
    let given = subquery.outer.iter().zip(places.iter()).collect::<Vec<_>>();
    let plan = with_given(subquery.plan.as_ref().clone(), &given)?;
    let plan = optimize_logical(plan, &subquery.context)?;
    Ok((!notes_values(&plan)?).then_some(plan))
}

/// Whether something notes what it meets in places.
fn notes_values(plan: &LogicalPlan) -> Result<bool> {
    let mut notes = false;
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            if has_places(expr) {
                notes |= expr.exists(|expr| {
                    let notes = |name| TruncatedTexts::notes(name);
                    Ok(matches!(expr, Expr::ScalarFunction(call) if notes(call.func.name())))
                })?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(notes)
}

fn is_of_one_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.source.downcast_ref::<SheafTableSource>().is_some(),
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::SubqueryAlias(_) => plan.inputs().into_iter().all(is_of_one_table),
        _ => false,
    }
}

/// The runs of a subquery, one after the other.
pub(crate) struct Runs {
    subquery: AppliedSubquery,
    kept: Option<Kept>,
    refusals: usize,
}

/// A plan, bound to the values of its next run.
struct Kept {
    places: Places,
    plan: Arc<dyn ExecutionPlan>,
    /// Whether operators keep something of a run.
    has_state: bool,
    runs: usize,
}

impl Runs {
    pub(crate) fn new(subquery: AppliedSubquery) -> Runs {
        Runs {
            subquery,
            kept: None,
            refusals: 0,
        }
    }

    /// A plan that can be bound to the values of other runs, bound to these.
    fn keep(&self, values: &[ScalarValue]) -> Result<Option<Kept>> {
        let subquery = &self.subquery;
        let Some(plan) = one_plan(subquery) else {
            return Ok(None);
        };
        let places = Places::new(values, Arc::clone(&subquery.fields));
        let plan = with_reads(plan.clone(), &places)?;
        let context = PlannerContext {
            places: Some(places.clone()),
            ..subquery.context.clone()
        };
        let plan = plan_physical(&plan, &context)?.plan;
        let Some(has_state) = has_state(&plan) else {
            return Ok(None);
        };
        let is_bound = places.bind(values)?;
        Ok(is_bound.then_some(Kept {
            places,
            plan,
            has_state,
            runs: 0,
        }))
    }
}

impl Subplans for AppliedSubquery {
    fn begin(&self) -> Box<dyn SubplanRuns> {
        Box::new(Runs::new(self.clone()))
    }

    fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    fn varies(&self) -> bool {
        self.varies
    }
}

impl SubplanRuns for Runs {
    fn plan(&mut self, values: &[ScalarValue]) -> Result<Arc<dyn ExecutionPlan>> {
        let has_null = values.iter().any(ScalarValue::is_null);
        if has_null || self.refusals >= MOST_REFUSALS {
            return self.subquery.plan(values);
        }
        if let Some(kept) = &mut self.kept
            && kept.runs < MOST_RUNS
            && kept.places.bind(values)?
        {
            return kept.run();
        }
        // What cannot be planned with places is planned without.
        self.kept = self.keep(values).unwrap_or_default();
        match &mut self.kept {
            Some(kept) => kept.run(),
            None => {
                self.refusals += 1;
                self.subquery.plan(values)
            }
        }
    }
}

impl Kept {
    fn run(&mut self) -> Result<Arc<dyn ExecutionPlan>> {
        self.runs += 1;
        match self.has_state {
            true => reset_plan_states(Arc::clone(&self.plan)),
            false => Ok(Arc::clone(&self.plan)),
        }
    }
}

/// Expressions above the scans read the values. Conditions of a scan are the planner's business.
fn with_reads(plan: LogicalPlan, places: &Places) -> Result<LogicalPlan> {
    let plan = plan.transform_up(|node| {
        if matches!(node, LogicalPlan::TableScan(_)) {
            return Ok(Transformed::no(node));
        }
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let read = places.read_in(expr)?;
            Ok(match read.transformed {
                true => Transformed::yes(name.restore(read.data)),
                false => read,
            })
        })?;
        match node.transformed {
            true => Ok(Transformed::yes(node.data.recompute_schema()?)),
            false => Ok(node),
        }
    })?;
    Ok(plan.data)
}

/// Whether operators of a plan keep something of a run, so that the next one has to reset them. `None`: it has
/// operators of which that is not known, or several streams.
fn has_state(plan: &Arc<dyn ExecutionPlan>) -> Option<bool> {
    if plan.output_partitioning().partition_count() != 1 {
        return None;
    }
    let keeps_nothing = plan.is::<ScanExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<InterruptibleExec>()
        || plan.is::<SortBatchesExec>()
        || plan.is::<CutBatchesExec>()
        || plan.is::<BoundedProjectionExec>();
    let is_reset = plan.is::<SortExec>()
        || plan.is::<AggregateExec>()
        || plan.is::<CompactedExec>()
        || plan.is::<KeyWidthExec>();
    if !(keeps_nothing || is_reset) {
        return None;
    }
    let mut any = is_reset;
    for child in plan.children() {
        any |= has_state(child)?;
    }
    Some(any)
}
