//! What is aggregated is computed below, where it may be long, or where it is many texts.
//!
//! `sum(length(repeat(s, 100000)))` makes long texts of each row, of which only few have room at a time. A projection
//! can hand on its rows in small batches (`sheaf_exec::operator::bounded_projection`), an aggregate takes batches as
//! they come:
//!
//! ```text
//!   Aggregate sum(length(repeat(s, 100000)))     -->     Aggregate sum($long_0)
//!                                                          Projection ..., length(repeat(s, 100000)) AS $long_0
//! ```
//!
//! Sixty arguments such as `concat(a, b)` are long together: an aggregate with groups has the values of all of them for
//! a batch at the same time. They stay where they are while there is memory for them: eight of a short column took
//! three times as long below.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{Aggregate, Projection};
use datafusion_expr::{Expr, LogicalPlan};
use sheaf_exec::aggregates::GROUP_CONCAT;
use sheaf_exec::functions::closed::calls;
use sheaf_exec::long_literal::{has_long_literal, literal_of};
use sheaf_exec::operator::bounded_projection::{KEPT_TEXT, MOST_COPIES, is_counted, is_string};
use sheaf_exec::typing::field_of;

use crate::row_width::copies_with_room;
use crate::settings::PlannerSettings;

/// Puts projections below aggregates that need one.
pub(crate) fn compute_long_arguments_below(
    plan: LogicalPlan,
    settings: &PlannerSettings,
) -> Result<LogicalPlan> {
    let has_long = |aggregate: &Aggregate| {
        aggregate.aggr_expr.iter().any(lengthens) || makes_many_texts(aggregate, settings)
    };
    let mut has_any = false;
    plan.apply_with_subqueries(|node| {
        has_any |= matches!(node, LogicalPlan::Aggregate(aggregate) if has_long(aggregate));
        Ok(match has_any {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !has_any {
        return Ok(plan);
    }
    let rewritten = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) if has_long(&aggregate) => Ok(Transformed::yes(
            LogicalPlan::Aggregate(rewrite(aggregate, settings)?),
        )),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(rewritten.data)
}

/// Whether an expression has functions whose results may be many times as long as their arguments, or as the columns
/// among these. What is a literal as a whole is the same for all rows.
fn lengthens(expr: &Expr) -> bool {
    calls(expr, |function| function.growing) || has_long_literal(expr) && literal_of(expr).is_none()
}

/// Whether the arguments are many texts that are made of the same columns or literals, and there is not memory enough
/// for those of whole batches.
fn makes_many_texts(aggregate: &Aggregate, settings: &PlannerSettings) -> bool {
    let rows = aggregate.input.schema();
    // The type of an expression takes longer.
    if copies_in(aggregate, &|arg| !is_there(arg)) <= MOST_COPIES {
        return false;
    }
    let copies = copies_in(aggregate, &|arg| makes_text(arg, rows));
    copies > MOST_COPIES && copies > copies_with_room(&aggregate.input, settings)
}

/// How often such arguments have the string of the same column or literal in them, at most.
fn copies_in(aggregate: &Aggregate, counts: &dyn Fn(&Expr) -> bool) -> usize {
    let rows = aggregate.input.schema();
    let (mut of_columns, mut of_literals) = (vec![0; rows.fields().len()], 0);
    let mut count = |part: &Expr| match part {
        Expr::Column(column) => {
            if let Some(at) = rows.maybe_index_of_column(column)
                && is_string(rows.field(at).data_type())
            {
                of_columns[at] += 1;
            }
        }
        Expr::Literal(value, _) => of_literals += usize::from(is_counted(value)),
        _ => {}
    };
    for expr in &aggregate.aggr_expr {
        // The closures do not fail.
        let _ = expr.apply(|expr| {
            if let Expr::AggregateFunction(function) = expr {
                for arg in function.params.args.iter().filter(|arg| counts(arg)) {
                    let _ = arg.apply(|part| {
                        count(part);
                        Ok(TreeNodeRecursion::Continue)
                    });
                }
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    of_columns.into_iter().fold(of_literals, usize::max)
}

/// Whether a value is there without being computed.
fn is_there(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(_)) || literal_of(expr).is_some()
}

fn makes_text(expr: &Expr, rows: &DFSchema) -> bool {
    let is_text = || field_of(expr, rows).is_ok_and(|field| is_string(field.data_type()));
    !is_there(expr) && is_text()
}

/// Whether a function keeps its first argument for each group, and nothing is sorted by it.
fn keeps_text(function: &str) -> bool {
    matches!(function, "min" | "max" | "any_value" | GROUP_CONCAT)
}

fn rewrite(aggregate: Aggregate, settings: &PlannerSettings) -> Result<Aggregate> {
    let has_many = makes_many_texts(&aggregate, settings);
    let Aggregate {
        input,
        group_expr,
        aggr_expr,
        ..
    } = aggregate;
    let rows = Arc::clone(input.schema());
    let columns = rows.columns();
    let mut items: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
    // Puts a column in the place of an expression.
    let mut compute_below = |expr: Expr, is_kept: bool| -> Result<Expr> {
        if !(lengthens(&expr) || has_many && makes_text(&expr, &rows)) {
            return Ok(expr);
        }
        let prefix = if is_kept { KEPT_TEXT } else { "$long_" };
        let name = format!("{prefix}{}", items.len());
        items.push(expr.alias(name.as_str()));
        Ok(Expr::Column(Column::new_unqualified(name)))
    };
    // Those above know the results by these names.
    let names = NamePreserver::new_for_projection();
    let mut aggregates = Vec::with_capacity(aggr_expr.len());
    for expr in aggr_expr {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| {
            let Expr::AggregateFunction(mut aggregate) = expr else {
                return Ok(Transformed::no(expr));
            };
            let args = std::mem::take(&mut aggregate.params.args);
            let keeps = !aggregate.params.distinct && keeps_text(aggregate.func.name());
            let args = args.into_iter().enumerate();
            let args = args.map(|(at, arg)| compute_below(arg, keeps && at == 0));
            aggregate.params.args = args.collect::<Result<_>>()?;
            Ok(Transformed::yes(Expr::AggregateFunction(aggregate)))
        })?;
        aggregates.push(name.restore(rewritten.data));
    }
    let input = Projection::try_new(items, input)?;
    Aggregate::try_new(
        Arc::new(LogicalPlan::Projection(input)),
        group_expr,
        aggregates,
    )
}
