//! The logical half: DataFusion's rewrites that we keep, in the order they need.
//!
//! What they do for us: types of function arguments, decorrelation of subqueries into joins, constants folded,
//! filters pushed into the TableScans (our source takes all of them), limits and projections pushed down.
//!
//! What is left out, and why:
//! - FilterNullJoinKeys would add `IS NOT NULL` to scans; a keyed join skips NULL keys anyway.
//! - ExtractLeafExpressions and PushDownLeafProjections are for nested types, and put projections between joins.
//! - CommonSubexprEliminate puts projections between operators, which would hide the join graph from
//!   [`crate::join_graph`]; it runs last, when all filters have been pushed down.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion_optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion_optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion_optimizer::decorrelate_lateral_join::DecorrelateLateralJoin;
use datafusion_optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion_optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion_optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion_optimizer::eliminate_filter::EliminateFilter;
use datafusion_optimizer::eliminate_group_by_constant::EliminateGroupByConstant;
use datafusion_optimizer::eliminate_join::EliminateJoin;
use datafusion_optimizer::eliminate_limit::EliminateLimit;
use datafusion_optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion_optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion_optimizer::optimize_projections::OptimizeProjections;
use datafusion_optimizer::optimize_unions::OptimizeUnions;
use datafusion_optimizer::propagate_empty_relation::PropagateEmptyRelation;
use datafusion_optimizer::push_down_filter::PushDownFilter;
use datafusion_optimizer::push_down_limit::PushDownLimit;
use datafusion_optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion_optimizer::rewrite_set_comparison::RewriteSetComparison;
use datafusion_optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion_optimizer::simplify_expressions::SimplifyExpressions;
use datafusion_optimizer::single_distinct_to_groupby::SingleDistinctToGroupBy;
use datafusion_optimizer::{Analyzer, Optimizer, OptimizerContext};

use crate::PlannerContext;

/// How often the list of rules is applied, at most; it stops when a pass changes nothing.
const MAX_PASSES: u8 = 4;

/// Rewrites a typed logical plan; see the module's comment.
pub fn optimize_logical(plan: LogicalPlan, context: &PlannerContext) -> Result<LogicalPlan> {
    let options = context.task.session_config().options();
    let analyzer = Analyzer::with_rules(vec![
        Arc::new(ResolveGroupingFunction::new()),
        Arc::new(TypeCoercion::new()),
    ]);
    let plan = analyzer.execute_and_check(plan, options, |_, _| {})?;

    let config =
        OptimizerContext::new_with_config_options(Arc::clone(options)).with_max_passes(MAX_PASSES);
    let plan = main_rules().optimize(plan, &config, |plan, rule| {
        tracing::trace!(rule = rule.name(), plan = %plan.display_indent(), "rewritten");
    })?;
    let config = config.with_max_passes(1);
    last_rules().optimize(plan, &config, |_, _| {})
}

/// DataFusion's order; a filter cannot be pushed past a limit, so limits go first.
fn main_rules() -> Optimizer {
    Optimizer::with_rules(vec![
        Arc::new(RewriteSetComparison::new()),
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(EliminateJoin::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(EliminateLimit::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownLimit::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(SingleDistinctToGroupBy::new()),
        Arc::new(EliminateGroupByConstant::new()),
        Arc::new(OptimizeProjections::new()),
    ])
}

fn last_rules() -> Optimizer {
    Optimizer::with_rules(vec![
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(OptimizeProjections::new()),
    ])
}
