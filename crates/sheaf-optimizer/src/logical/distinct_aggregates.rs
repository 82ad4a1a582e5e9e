//! Aggregates of distinct values as groups of groups.
//!
//! An aggregate of distinct values remembers them, for each group in memory that cannot spill. Groups can:
//!
//! ```text
//!   SELECT g, COUNT(DISTINCT d), COUNT(*), MAX(x) FROM t GROUP BY g
//!
//!   inner:  g, d, COUNT(*) AS n, MAX(x) AS m   GROUP BY g, d
//!   outer:  g, COUNT(d), SUM(n), MAX(m)        GROUP BY g
//! ```
//!
//! With several columns of distinct values there is a grouping set for each of them, in which the others are NULL:
//!
//! ```text
//!   SELECT g, COUNT(DISTINCT d), COUNT(DISTINCT e), COUNT(*) FROM t GROUP BY g
//!
//!   inner:  g, d, e, COUNT(*) AS n             GROUP BY GROUPING SETS ((g, d), (g, e))
//!   outer:  g, COUNT(d), COUNT(e), SUM(n)      GROUP BY g     the sum over the first set alone
//! ```
//!
//! Many columns are divided, because each set groups every row by all of its columns. The groups of the parts are
//! joined by their keys, and each part reads the input:
//!
//! ```text
//!   SELECT g, COUNT(DISTINCT d1), .., COUNT(DISTINCT d40) FROM t GROUP BY g
//!
//!   (SELECT g, COUNT(DISTINCT d1), .., COUNT(DISTINCT d8) FROM t GROUP BY g)
//!     JOIN (SELECT g, COUNT(DISTINCT d9), .. FROM t GROUP BY g) ON g <=> g ..
//! ```

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_common::{
    Column, DFSchema, JoinConstraint, JoinType, NullEquality, Result, ScalarValue,
};
use datafusion_expr::expr::{AggregateFunction, GroupingSet};
use datafusion_expr::{
    Aggregate, Expr, ExprSchemable, Join, LogicalPlan, Projection, cast, lit, when,
};
use datafusion_functions::core::coalesce;
use datafusion_functions_aggregate::sum::sum_udaf;
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

/// Names of the inner groups' columns.
const GROUP: &str = "$group";
const DISTINCT: &str = "$distinct";
const PART: &str = "$part";
const WHOLE: &str = "$whole";

const GROUP_OF_PART: &str = "$key";

/// Columns of distinct values that become grouping sets of one part, at most. Each set groups every row by all of these
/// columns, so that the work grows with their square.
const MAX_SETS: usize = 8;
/// Parts, at most: they are relations of a join. With more columns, each group of rows has a set of values for each.
const MAX_PARTS: usize = 32;
/// DataFusion numbers grouping sets by bits of their keys.
const MAX_KEYS: usize = 64;

/// See the module's comment.
#[derive(Debug)]
pub(crate) struct DistinctAggregates;

impl OptimizerRule for DistinctAggregates {
    fn name(&self) -> &str {
        "distinct_aggregates"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else {
            return Ok(Transformed::no(plan));
        };
        match in_two_steps(aggregate)? {
            Some(rewritten) => Ok(Transformed::yes(rewritten)),
            None => Ok(Transformed::no(plan)),
        }
    }
}

/// The function of an output, below its alias.
fn function_of(output: &Expr) -> Option<&AggregateFunction> {
    match output {
        Expr::Alias(alias) => function_of(&alias.expr),
        Expr::AggregateFunction(function) => Some(function),
        _ => None,
    }
}

/// Whether the rewrite knows how to go on with a function's results for parts of a group, and these cost little for
/// each of many groups. MIN and MAX of strings do not: each group has an object of its own, and 1,000,000 of them took
/// 36 seconds.
fn is_mergeable(function: &AggregateFunction, input: &DFSchema) -> Result<bool> {
    if !is_plain(function) {
        return Ok(false);
    }
    Ok(match function.func.name() {
        "count" | "$sum" | "bit_and" | "bit_or" | "bit_xor" | "any_value" => true,
        "min" | "max" => {
            let data_type = function.params.args[0].get_type(input)?;
            data_type.is_primitive()
        }
        _ => false,
    })
}

/// Whether it is a function of one value of all rows.
fn is_plain(function: &AggregateFunction) -> bool {
    let params = &function.params;
    params.filter.is_none()
        && params.order_by.is_empty()
        && params.null_treatment.is_none()
        && params.args.len() == 1
}

fn is_distinct_count_or_sum(function: &AggregateFunction) -> bool {
    function.params.distinct
        && is_plain(function)
        && matches!(function.func.name(), "count" | "$sum" | "min" | "max")
}

fn in_two_steps(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let functions: Option<Vec<&AggregateFunction>> =
        aggregate.aggr_expr.iter().map(function_of).collect();
    let has_sets = matches!(aggregate.group_expr.first(), Some(Expr::GroupingSet(_)));
    let Some(functions) = functions.filter(|_| !has_sets) else {
        return Ok(None);
    };
    let mut values: Vec<&Expr> = Vec::new();
    for function in &functions {
        if !function.params.distinct {
            if !is_mergeable(function, aggregate.input.schema())? {
                return Ok(None);
            }
            continue;
        }
        if !is_distinct_count_or_sum(function) {
            return Ok(None);
        }
        if !values.contains(&&function.params.args[0]) {
            values.push(&function.params.args[0]);
        }
    }
    // What is computed for each set, or again by another part, must not vary.
    let varies = || {
        let mut args = functions.iter().flat_map(|function| &function.params.args);
        args.any(Expr::is_volatile)
    };
    if values.len() > 1 && varies() {
        return Ok(None);
    }
    let keys = aggregate.group_expr.len() + values.len().min(MAX_SETS);
    if values.is_empty() || keys > MAX_KEYS {
        return Ok(None);
    }
    if values.len() > MAX_SETS {
        return in_parts(aggregate, &values, &functions);
    }
    let groups = aggregate.group_expr.len();
    let input = inner_groups(aggregate, &values, &functions)?;
    let in_first_set = in_first_set(&input, groups, values.len())?;
    let mut outer = Vec::with_capacity(functions.len());
    for (position, function) in functions.iter().enumerate() {
        let part = || match &in_first_set {
            Some(condition) => when(condition.clone(), named(PART, position)).end(),
            None => Ok(named(PART, position)),
        };
        let func = || Arc::clone(&function.func);
        let (func, arg) = match function.func.name() {
            _ if function.params.distinct => {
                let value = &function.params.args[0];
                let at = values.iter().position(|known| *known == value);
                (func(), named(DISTINCT, at.unwrap_or(0)))
            }
            "count" => (sum_udaf(), part()?),
            "$sum" | "bit_xor" => (func(), part()?),
            // The same over all sets.
            _ => (func(), named(PART, position)),
        };
        let merged = AggregateFunction::new_udf(func, vec![arg], false, None, vec![], None);
        outer.push(Expr::AggregateFunction(merged).alias(name(WHOLE, position)));
    }
    let outer_groups = (0..groups).map(|position| named(GROUP, position));
    let outer = Aggregate::try_new(Arc::new(input), outer_groups.collect(), outer)?;
    let outer = LogicalPlan::Aggregate(outer);

    // Under the names, and of the types, that it had before.
    let mut output = Vec::with_capacity(aggregate.schema.fields().len());
    for (position, (qualifier, field)) in aggregate.schema.iter().enumerate() {
        let mut expr = match position.checked_sub(groups) {
            None => named(GROUP, position),
            Some(position) => named(WHOLE, position),
        };
        if let Some(function) = position.checked_sub(groups).map(|at| functions[at])
            && function.func.name() == "count"
            && !function.params.distinct
        {
            expr = coalesce().call(vec![expr, lit(0_i64)]);
        }
        let found = expr.get_type(outer.schema())?;
        if &found != field.data_type() {
            expr = cast(expr, field.data_type().clone());
        }
        output.push(expr.alias_qualified(qualifier.cloned(), field.name()));
    }
    Ok(Some(LogicalPlan::Projection(Projection::try_new(
        output,
        Arc::new(outer),
    )?)))
}

/// A join of groups that have no more than [`MAX_SETS`] columns of distinct values each. `None`: there are too many, or
/// the input might be another one when it is read again.
fn in_parts(
    aggregate: &Aggregate,
    values: &[&Expr],
    functions: &[&AggregateFunction],
) -> Result<Option<LogicalPlan>> {
    if values.len() > MAX_SETS * MAX_PARTS || contains_volatile(&aggregate.input)? {
        return Ok(None);
    }
    let groups = aggregate.group_expr.len();
    let key = |part: usize, at: usize| format!("{GROUP_OF_PART}{part}.{at}");
    let mut joined: Option<LogicalPlan> = None;
    for (part, values) in values.chunks(MAX_SETS).enumerate() {
        // Those of all values come with the first.
        let is_of_part = |function: &&AggregateFunction| match function.params.distinct {
            true => values.contains(&&function.params.args[0]),
            false => part == 0,
        };
        let positions: Vec<usize> = (0..functions.len())
            .filter(|position| is_of_part(&functions[*position]))
            .collect();
        let of_part = positions.iter();
        let of_part = of_part.map(|position| aggregate.aggr_expr[*position].clone());
        let input = Arc::clone(&aggregate.input);
        let grouped = Aggregate::try_new(input, aggregate.group_expr.clone(), of_part.collect())?;
        let Some(plan) = in_two_steps(&grouped)? else {
            return Ok(None);
        };
        let names = (0..groups).map(|at| key(part, at));
        let names = names.chain(positions.iter().map(|position| name(WHOLE, *position)));
        let columns = plan.schema().iter().zip(names);
        let columns = columns.map(|(column, name)| Expr::Column(Column::from(column)).alias(name));
        let plan = Projection::try_new(columns.collect(), Arc::new(plan))?;
        let plan = LogicalPlan::Projection(plan);
        joined = Some(match joined {
            None => plan,
            Some(before) => {
                let of = |part: usize, at: usize| Expr::Column(Column::from_name(key(part, at)));
                let on = (0..groups).map(|at| (of(0, at), of(part, at)));
                LogicalPlan::Join(Join::try_new(
                    Arc::new(before),
                    Arc::new(plan),
                    on.collect(),
                    None,
                    JoinType::Inner,
                    JoinConstraint::On,
                    NullEquality::NullEqualsNull,
                    false,
                )?)
            }
        });
    }
    let Some(joined) = joined else {
        return Ok(None);
    };
    let columns = aggregate.schema.iter().enumerate();
    let columns = columns.map(|(at, (qualifier, field))| {
        let column = match at.checked_sub(groups) {
            None => Expr::Column(Column::from_name(key(0, at))),
            Some(position) => named(WHOLE, position),
        };
        column.alias_qualified(qualifier.cloned(), field.name())
    });
    let projection = Projection::try_new(columns.collect(), Arc::new(joined))?;
    Ok(Some(LogicalPlan::Projection(projection)))
}

fn contains_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.is_volatile();
            Ok(match found {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })
    })?;
    Ok(found)
}

fn name(what: &str, position: usize) -> String {
    format!("{what}{position}")
}

fn named(what: &str, position: usize) -> Expr {
    Expr::Column(Column::from_name(name(what, position)))
}

/// The groups with one distinct value each, and what is computed for each of them.
fn inner_groups(
    aggregate: &Aggregate,
    values: &[&Expr],
    functions: &[&AggregateFunction],
) -> Result<LogicalPlan> {
    let groups = aggregate.group_expr.iter().enumerate();
    let groups = groups.map(|(at, group)| group.clone().unalias().alias(name(GROUP, at)));
    let values = values.iter().enumerate();
    let sets = values.map(|(at, value)| {
        let value = (*value).clone().alias(name(DISTINCT, at));
        groups.clone().chain([value]).collect()
    });
    let mut sets: Vec<Vec<Expr>> = sets.collect();
    let group_expr = match sets.len() {
        1 => sets.remove(0),
        _ => vec![Expr::GroupingSet(GroupingSet::GroupingSets(sets))],
    };
    let parts = functions.iter().enumerate();
    let parts = parts.filter(|(_, function)| !function.params.distinct);
    let parts = parts.map(|(position, function)| {
        Expr::AggregateFunction((*function).clone()).alias(name(PART, position))
    });
    let input = Arc::clone(&aggregate.input);
    let inner = Aggregate::try_new(input, group_expr, parts.collect())?;
    Ok(LogicalPlan::Aggregate(inner))
}

/// Whether an inner group is of the first of several grouping sets. `None`: there is one set.
fn in_first_set(inner: &LogicalPlan, groups: usize, values: usize) -> Result<Option<Expr>> {
    if values == 1 {
        return Ok(None);
    }
    // Each expression has a bit, the last one the lowest, which says that it is NULL in the set.
    let first = ScalarValue::UInt64(Some((1 << (values - 1)) - 1));
    let id_type = Aggregate::grouping_id_type(groups + values, 0);
    let id = Expr::Column(Column::from_name(Aggregate::INTERNAL_GROUPING_ID));
    debug_assert_eq!(id.get_type(inner.schema())?, id_type);
    Ok(Some(id.eq(lit(first.cast_to(&id_type)?))))
}
