//! The logical half: DataFusion's rewrites that we keep, in the order they need.
//!
//! They simplify expressions, and push down projections. All types are those that functions and operators take: the
//! algebra has written the conversions out. It has decided what has no rows, which joins and sort keys are needed, and
//! where conditions and limits go (`sheaf_algebra::rules`). What comes up while the rules are applied, or has the value
//! of a subquery in it, is pushed down here. Subqueries are joins already, but for those that are computed once, or for
//! each row.
//!
//! What is left out, and why:
//! - FilterNullJoinKeys would add `IS NOT NULL` to scans; a keyed join skips NULL keys anyway.
//! - ExtractLeafExpressions and PushDownLeafProjections are for nested types, and put projections between joins.
//! - CommonSubexprEliminate puts projections between operators, which would hide the join graph from
//!   [`crate::logical::join_graph`]; it runs last, when all filters have been pushed down.
//! - SimplifyExpressions and CommonSubexprEliminate leave out what has a long literal in it. The one would put its
//!   bytes into the plan, and the other into a column for each row. So do they leave out a CASE of many branches, of
//!   which they would make conditions of conditions.
//!
//! | file | what it holds |
//! |---|---|
//! | [`rule_passes`] | applies the rules until they leave the plan as it is |
//! | [`connect_joins`] | conditions of WHERE become keys of joins |
//! | [`join_keys`] | equalities of a join's condition become its keys |
//! | [`apply`] | subqueries that are computed for each row |
//! | [`places`] | places in a plan for values that each of its runs has of its own |
//! | [`distinct_aggregates`] | aggregates of distinct values as groups of groups |
//! | [`grouping_sets`] | what GROUPING SETS, ROLLUP and CUBE group by |
//! | [`forgotten_keys`] | keys of tables that would mislead other rules are forgotten |
//! | [`late_values`] | what is only shown is computed of the rows that a LIMIT leaves |
//! | [`long_arguments`] | arguments of aggregates that may be long are computed below |
//! | [`long_conditions`] | long conditions are laid aside while rules are applied |
//! | [`equality`] | an equality between relations |
//! | [`inequality`] | a range of one relation for each row of others |
//! | [`join_graph`] | which relations a query joins, and by which conditions |
//! | [`literal`] | a constant, brought into a column's own type |
//! | [`mod@replace_columns`] | other expressions in the place of columns |
//! | [`semantics`] | how MySQL's semantics look in a typed plan |

pub(crate) mod apply;
pub(crate) mod connect_joins;
pub(crate) mod distinct_aggregates;
pub(crate) mod equality;
pub(crate) mod forgotten_keys;
pub(crate) mod grouping_sets;
pub(crate) mod inequality;
pub(crate) mod join_graph;
pub(crate) mod join_keys;
pub(crate) mod late_values;
pub(crate) mod literal;
pub(crate) mod long_arguments;
pub(crate) mod long_conditions;
pub(crate) mod places;
mod replace_columns;
pub(crate) mod rule_passes;
pub(crate) mod semantics;

use std::sync::{Arc, LazyLock};

use datafusion_common::Result;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::logical_plan::InvariantLevel;
use datafusion_expr::{Expr, JoinType, LogicalPlan, Operator, UserDefinedLogicalNode};
use datafusion_optimizer::OptimizerContext;
use datafusion_optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion_optimizer::optimize_projections::OptimizeProjections;
use datafusion_optimizer::push_down_filter::PushDownFilter;
use datafusion_optimizer::simplify_expressions::SimplifyExpressions;
use sheaf_exec::json_table::Expand;
use sheaf_exec::long_literal::is_long_literal;
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_exec::plan_size::check_plan_size;
use sheaf_exec::row_by_row::RowByRow;
use sheaf_exec::runtime::planning_options;
use sheaf_exec::typing::has_many_branches;

use crate::PlannerContext;
use crate::logical::apply::with_applies;
use crate::logical::connect_joins::{ConnectJoins, is_above_joins};
use crate::logical::distinct_aggregates::DistinctAggregates;
use crate::logical::forgotten_keys::{keys_mislead, without_keys};
use crate::logical::join_keys::ExtractJoinKeys;
use crate::logical::late_values::compute_values_late;
use crate::logical::long_arguments::compute_long_arguments_below;
use crate::logical::long_conditions::{LaidAside, lay_aside, put_back};
use crate::logical::rule_passes::{Rule, apply_rules, contains_subqueries};

pub(crate) use replace_columns::replace_columns;

/// How often the list of rules is applied, at most; it stops when a pass changes nothing.
const MAX_PASSES: usize = 4;

/// Rewrites a typed logical plan; see the module's comment.
pub fn optimize_logical(plan: LogicalPlan, context: &PlannerContext) -> Result<LogicalPlan> {
    let options = planning_options();
    context.cancel.check().map_err(access_error)?;
    check_plan_size(&plan)?;
    plan.check_invariants(InvariantLevel::Always)?;
    let plan = match keys_mislead(&plan)? {
        true => without_keys(plan)?,
        false => plan,
    };
    let plan = match contains_subqueries(&plan) {
        true => with_applies(plan)?,
        false => plan,
    };

    let config = OptimizerContext::new_with_config_options(Arc::clone(options));
    let LaidAside { plan, any } = lay_aside(plan)?;
    let main = apply_rules(&MAIN_RULES, plan, &config, MAX_PASSES)?;
    let plan = compute_values_late(main.plan)?;
    let mut last = apply_rules(&LAST_RULES, plan, &config, 1)?;
    if !(main.is_settled && last.is_settled) {
        last = apply_rules(&PROJECTION_RULES, last.plan, &config, 1)?;
    }
    let plan = compute_long_arguments_below(last.plan, &context.settings)?;
    put_back(plan, any)
}

/// The order of relations in inner joins, which ConnectJoins chooses, is only where [`crate::join::order`] begins:
/// later passes leave it as it is, unless a join still lacks its condition.
static MAIN_RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    vec![
        Rule::on(computes, SimplifyExpressions::new()),
        Rule::on(is_filtered_join, ExtractJoinKeys),
        Rule::below(is_above_joins, ConnectJoins).again_on(lacks_condition),
        Rule::on(
            |node| {
                let is_fixed = is_above_whole_aggregate(node)
                    || is_above::<RowByRow>(node)
                    || is_above::<Expand>(node);
                is_join(node) || is_filter(node) && !is_fixed
            },
            PushDownFilter::new(),
        ),
        Rule::on(is_aggregate, DistinctAggregates),
        Rule::on(|_| true, OptimizeProjections::new()).at_once(),
    ]
});

static LAST_RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| vec![Rule::on(computes, CommonSubexprEliminate::new())]);

static PROJECTION_RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| vec![Rule::on(|_| true, OptimizeProjections::new())]);

/// Operands of a chain that are simplified one beside the other.
const MAX_DEEP_CHAIN: usize = 500;

/// Whether it has expressions that are more than columns, or groups, whose functions rules look at as a whole.
/// Those with long literals, a long CASE or a deep chain are left alone.
fn computes(node: &LogicalPlan) -> bool {
    let mut computes = matches!(node, LogicalPlan::Aggregate(_));
    let mut has_long = false;
    // The closure does not fail.
    let _ = node.apply_expressions(|expr| {
        if !matches!(expr, Expr::Column(_)) {
            computes = true;
            has_long = is_deep_chain(expr) || has_long_part(expr);
        }
        Ok(match has_long {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    });
    computes && !has_long
}

/// Whether a long literal or a long CASE is in an expression: one walk looks for both.
fn has_long_part(expr: &Expr) -> bool {
    let is_long = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => is_long_literal(call),
        Expr::Case(case) => has_many_branches(case),
        _ => false,
    };
    // The closure does not fail.
    expr.exists(|expr| Ok(is_long(expr))).unwrap_or(true)
}

/// A chain of AND or OR in which each operand stands beside all before it: the rule that simplifies looks for each of
/// them among these. So rules write the parts of a filter that they have taken apart. A long chain that is written as a
/// tree has been simplified before.
fn is_deep_chain(mut expr: &Expr) -> bool {
    for _ in 0..MAX_DEEP_CHAIN {
        match expr {
            Expr::BinaryExpr(chain) if matches!(chain.op, Operator::And | Operator::Or) => {
                expr = &chain.left;
            }
            _ => return false,
        }
    }
    true
}

fn is_filter(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Filter(_))
}

/// A filter of aggregates of all rows, or of ROLLUP, among whose rows these are. A condition that names none of them,
/// such as NULL, would be pushed below them, and without a row they are a row all the same.
fn is_above_whole_aggregate(filter: &LogicalPlan) -> bool {
    match filter {
        LogicalPlan::Filter(filter) => is_above_whole_aggregate(&filter.input),
        LogicalPlan::Aggregate(aggregate) => {
            matches!(aggregate.group_expr.as_slice(), [] | [Expr::GroupingSet(_)])
        }
        _ => false,
    }
}

/// A filter of such rows. A condition that assigns user variables has its rows one by one, and stays where it gets
/// them. The algebra has put conditions below the rows of documents that may stand there: RAND() has a value for each
/// of them.
fn is_above<N: UserDefinedLogicalNode + 'static>(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Filter(filter) => match filter.input.as_ref() {
            LogicalPlan::Extension(extension) => extension.node.as_any().is::<N>(),
            _ => false,
        },
        _ => false,
    }
}

fn is_aggregate(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Aggregate(_))
}

fn is_join(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(_))
}

fn is_inner_join(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner)
}

fn is_filtered_join(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if join.filter.is_some())
}

/// An inner join without equalities, or with a condition above it.
fn lacks_condition(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Filter(filter) => is_inner_join(&filter.input),
        LogicalPlan::Join(join) => join.join_type == JoinType::Inner && join.on.is_empty(),
        _ => false,
    }
}
