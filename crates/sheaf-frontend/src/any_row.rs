//! What is neither grouped by nor aggregated is that of any row of the group.
//!
//! Without ONLY_FULL_GROUP_BY in sql_mode that may be any column, with it one that is the same in all rows of the group
//! ([`determined_by`]).
//!
//! Above its groups a query may name only what it groups by. So where more is allowed, the pass over the syntax tree
//! adds `[]` to the GROUP BY. SqlToRel asks what that means, and is told: a mark, and all columns of the FROM. In the
//! plan that it makes, those that are named above become aggregates, and the mark goes with the others:
//!
//! ```text
//!   SELECT b, COUNT(*) FROM t GROUP BY a, []
//!   Projection b, COUNT(*) | Aggregate by a, mark, t.a, t.b, t.c: COUNT(*)
//!   Projection b, COUNT(*) | Projection a, COUNT(*), ANY_VALUE(t.b) AS t.b | Aggregate by a: COUNT(*), ANY_VALUE(t.b)
//! ```
//!
//! What names no such column has the plan that it has with ONLY_FULL_GROUP_BY.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result, ScalarValue, internal_datafusion_err, plan_err};
use datafusion_expr::expr::{AggregateFunction, GroupingSet};
use datafusion_expr::planner::{ExprPlanner, PlannerResult};
use datafusion_expr::{Aggregate, Expr, LogicalPlan, Projection};
use sheaf_exec::aggregates::aggregate_function;

use crate::determined::determined_by;

/// What a query with groups may name besides what it groups by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AnyRows {
    Refused,
    /// What is the same in all rows of a group.
    Determined,
    Shown,
}

/// Stands before the columns that the query does not group by. No literal of a statement has this type.
fn mark() -> Expr {
    Expr::Literal(ScalarValue::LargeUtf8(Some("$any_row".to_string())), None)
}

/// Plans `[]`.
#[derive(Debug)]
pub struct AnyRowPlanner;

impl ExprPlanner for AnyRowPlanner {
    fn plan_array_literal(
        &self,
        _exprs: Vec<Expr>,
        schema: &DFSchema,
    ) -> Result<PlannerResult<Vec<Expr>>> {
        // Names without a table are those of the select list.
        let columns = schema.iter().filter(|(table, _)| table.is_some());
        let columns = columns.map(|column| Expr::Column(Column::from(column)));
        let set = std::iter::once(mark()).chain(columns).collect();
        let sets = GroupingSet::GroupingSets(vec![set]);
        Ok(PlannerResult::Planned(Expr::GroupingSet(sets)))
    }
}

/// Resolves the marks. For plans as they come from SqlToRel.
pub fn with_any_rows(plan: LogicalPlan, any_rows: AnyRows) -> Result<LogicalPlan> {
    let resolved = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Projection(_) => from_list_to_groups(plan, &mut HashSet::new(), any_rows),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(resolved.data)
}

/// Goes from a select list down to its groups, and collects the columns that are named on the way.
fn from_list_to_groups(
    plan: LogicalPlan,
    named: &mut HashSet<Column>,
    any_rows: AnyRows,
) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Window(_) | LogicalPlan::Filter(_) => {
            add_named(&plan, named)?;
            plan.map_children(|input| from_list_to_groups(input, named, any_rows))
        }
        LogicalPlan::Aggregate(aggregate) => with_any_row(aggregate, named, any_rows),
        other => Ok(Transformed::no(other)),
    }
}

/// Subqueries above groups may name only what is grouped by, as the query itself. SqlToRel does not ask that.
pub fn check_outer_columns(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Projection(_) | LogicalPlan::Window(_) | LogicalPlan::Filter(_) = node {
            let mut named = HashSet::new();
            add_outer(node, &mut named)?;
            if let Some(aggregate) = aggregate_below(node).filter(|_| !named.is_empty()) {
                let (all, shown) = (aggregate.input.schema(), &aggregate.schema);
                let is_lost =
                    |column: &&Column| all.has_column(column) && !shown.has_column(column);
                if let Some(column) = named.iter().find(is_lost) {
                    return plan_err!("{column} must be in GROUP BY or an aggregate function");
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The groups that a select list is about.
fn aggregate_below(node: &LogicalPlan) -> Option<&Aggregate> {
    match node {
        LogicalPlan::Projection(projection) => aggregate_below(&projection.input),
        LogicalPlan::Window(window) => aggregate_below(&window.input),
        LogicalPlan::Filter(filter) => aggregate_below(&filter.input),
        LogicalPlan::Aggregate(aggregate) => Some(aggregate),
        _ => None,
    }
}

/// The columns that a node's expressions name, and those that its subqueries are correlated by.
fn add_named(node: &LogicalPlan, named: &mut HashSet<Column>) -> Result<()> {
    node.apply_expressions(|expr| {
        named.extend(expr.column_refs().into_iter().cloned());
        Ok(TreeNodeRecursion::Continue)
    })?;
    add_outer(node, named)
}

/// The columns that a node's subqueries are correlated by.
fn add_outer(node: &LogicalPlan, named: &mut HashSet<Column>) -> Result<()> {
    node.apply_subqueries(|subquery| {
        subquery.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    if let Expr::OuterReferenceColumn(_, column) = expr {
                        named.insert(column.clone());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })
    })?;
    Ok(())
}

fn with_any_row(
    aggregate: Aggregate,
    named: &HashSet<Column>,
    any_rows: AnyRows,
) -> Result<Transformed<LogicalPlan>> {
    let mut sets = match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.clone(),
        _ => return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate))),
    };
    // The same in each set; WITH ROLLUP makes several.
    let mut others = Vec::new();
    for set in &mut sets {
        let Some(end) = set.iter().position(|expr| *expr == mark()) else {
            return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
        };
        others = set.split_off(end);
    }
    let determined = match (any_rows, sets.as_slice()) {
        (AnyRows::Determined, [groups]) => Some(determined_by(groups, &aggregate.input)),
        // Rows of WITH ROLLUP have lost what would determine others.
        (AnyRows::Determined, _) => Some(HashSet::new()),
        _ => None,
    };
    let mut aggregates = aggregate.aggr_expr;
    let mut shown = Vec::new();
    for other in others {
        let is_grouped = sets.iter().flatten().any(|group| *group == other);
        let Expr::Column(column) = &other else {
            continue;
        };
        if is_grouped || !named.contains(column) {
            continue;
        }
        if determined
            .as_ref()
            .is_some_and(|known| !known.contains(column))
        {
            return plan_err!("{column} must be in GROUP BY or an aggregate function");
        }
        let (table, column) = (column.relation.clone(), column.name.clone());
        let value = any_value(other)?;
        let name = value.schema_name().to_string();
        let value_column = Expr::Column(Column::new_unqualified(name.clone()));
        let value_column = value_column.alias_qualified(table, column);
        if shown.contains(&value_column) {
            continue;
        }
        shown.push(value_column);
        // The query may have it as well.
        let mut known = aggregates.iter();
        if !known.any(|known| known.schema_name().to_string() == name) {
            aggregates.push(value);
        }
    }
    let group_expr = match sets.len() {
        1 => sets.remove(0),
        _ => vec![Expr::GroupingSet(GroupingSet::GroupingSets(sets))],
    };
    let aggregate = Aggregate::try_new(aggregate.input, group_expr, aggregates)?;
    let columns = aggregate.schema.columns();
    let aggregate = LogicalPlan::Aggregate(aggregate);
    if shown.is_empty() {
        return Ok(Transformed::yes(aggregate));
    }
    let columns = columns
        .into_iter()
        .filter(|column| column.name != Aggregate::INTERNAL_GROUPING_ID)
        .map(Expr::Column);
    let projection = Projection::try_new(columns.chain(shown).collect(), Arc::new(aggregate))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

fn any_value(column: Expr) -> Result<Expr> {
    let function = aggregate_function("any_value")
        .ok_or_else(|| internal_datafusion_err!("there is no any_value"))?;
    let call = AggregateFunction::new_udf(function, vec![column], false, None, Vec::new(), None);
    Ok(Expr::AggregateFunction(call))
}
