//! Which columns are the same in all rows of a group, so that ONLY_FULL_GROUP_BY lets a query name them.
//!
//! Those that the query groups by, those that a condition makes equal to a constant or to another such column, and what
//! a key of their table determines:
//!
//! ```text
//!   SELECT a, b, u.name, MAX(c) FROM t JOIN u ON u.id = t.a WHERE b = 5 GROUP BY a
//!   t.a: grouped by    t.b: a constant    u.id: equal to t.a    u.name: u.id is the key
//! ```
//!
//! In an outer join, the columns of the side without a row are NULL. Whether there is a row depends on all columns of
//! the other side that the condition names. So its equalities hold for a group if these are the same in it, and
//! constants of the side that may be missing are none.

use std::collections::HashSet;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Column, DFSchema, JoinType};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::logical_plan::Join;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use sheaf_exec::functions::as_function;

/// If all of the first are the same in a group, all of the second are.
struct Dependence {
    from: Vec<Column>,
    to: Vec<Column>,
}

/// The columns of `input` that are the same in all rows that agree on `groups`. For plans as they come from SqlToRel.
pub fn determined_by(groups: &[Expr], input: &LogicalPlan) -> HashSet<Column> {
    let mut dependences = Vec::new();
    collect(input, false, &mut dependences);
    let grouped = groups.iter().filter_map(|group| match group {
        Expr::Column(column) => Some(column.clone()),
        _ => None,
    });
    let mut determined: HashSet<Column> = grouped.collect();
    loop {
        let before = determined.len();
        for Dependence { from, to } in &dependences {
            if from.iter().all(|column| determined.contains(column)) {
                determined.extend(to.iter().cloned());
            }
        }
        if determined.len() == before {
            return determined;
        }
    }
}

/// `may_be_missing`: an outer join may show NULL in the place of the rows.
fn collect(plan: &LogicalPlan, may_be_missing: bool, found: &mut Vec<Dependence>) {
    match plan {
        LogicalPlan::Filter(filter) => {
            equalities(
                &filter.predicate,
                filter.input.schema(),
                may_be_missing,
                found,
            );
            collect(&filter.input, may_be_missing, found);
        }
        LogicalPlan::Join(join) => {
            let (left, right) = match join.join_type {
                JoinType::Inner => (false, false),
                JoinType::Left => (false, true),
                JoinType::Right => (true, false),
                _ => return,
            };
            collect(&join.left, may_be_missing || left, found);
            collect(&join.right, may_be_missing || right, found);
            match join.join_type {
                JoinType::Inner => inner_join(join, may_be_missing, found),
                _ => outer_join(join, found),
            }
        }
        other => keys(other, found),
    }
}

/// What the keys of a table determine.
fn keys(plan: &LogicalPlan, found: &mut Vec<Dependence>) {
    let schema = plan.schema();
    let columns = |positions: Vec<usize>| {
        let positions = positions.into_iter();
        let columns = positions.map(|at| Column::from(schema.qualified_field(at)));
        columns.collect::<Vec<_>>()
    };
    for (from, to) in key_positions(plan) {
        found.push(Dependence {
            from: columns(from),
            to: columns(to),
        });
    }
}

/// The columns of each key, and those that it determines. The schemas of derived tables do not tell: they are older
/// than the groups below them. Keys that may be NULL are those of groups and of missing rows, where NULL determines the
/// rest as well.
fn key_positions(plan: &LogicalPlan) -> Vec<(Vec<usize>, Vec<usize>)> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let dependences = scan.projected_schema.functional_dependencies().iter();
            let keys = dependences.filter(|key| !key.source_indices.is_empty());
            keys.map(|key| (key.source_indices.clone(), key.target_indices.clone()))
                .collect()
        }
        LogicalPlan::SubqueryAlias(alias) => key_positions(&alias.input),
        LogicalPlan::Filter(filter) => key_positions(&filter.input),
        LogicalPlan::Sort(sort) => key_positions(&sort.input),
        LogicalPlan::Limit(limit) => key_positions(&limit.input),
        LogicalPlan::Projection(projection) => {
            let schema = projection.input.schema();
            let items: Vec<Expr> = projection
                .expr
                .iter()
                .map(|expr| expr.clone().unalias_nested().data)
                .collect();
            let shown = |at: usize| {
                items.iter().position(|item| match item {
                    Expr::Column(column) => schema.maybe_index_of_column(column) == Some(at),
                    _ => false,
                })
            };
            let keys = key_positions(&projection.input).into_iter();
            keys.filter_map(|(from, to)| {
                let is_known = |column: &&Column| {
                    let at = schema.maybe_index_of_column(column);
                    at.is_some_and(|at| from.contains(&at) || to.contains(&at))
                };
                let is_determined = |item: &Expr| {
                    !item.is_volatile()
                        && !has_subquery(item)
                        && item.column_refs().iter().all(is_known)
                };
                let items = items.iter().enumerate();
                let to = items.filter(|(_, item)| is_determined(item));
                let to = to.map(|(at, _)| at).collect();
                let from = from.iter().map(|at| shown(*at));
                Some((from.collect::<Option<Vec<_>>>()?, to))
            })
            .collect()
        }
        LogicalPlan::Aggregate(aggregate) => {
            let groups = aggregate.group_expr.len();
            let is_set = |expr: &Expr| matches!(expr, Expr::GroupingSet(_));
            match aggregate.group_expr.iter().any(is_set) {
                true => Vec::new(),
                false => {
                    let fields = aggregate.schema.fields().len();
                    vec![((0..groups).collect(), (0..fields).collect())]
                }
            }
        }
        _ => Vec::new(),
    }
}

fn inner_join(join: &Join, may_be_missing: bool, found: &mut Vec<Dependence>) {
    for (left, right) in &join.on {
        if let (Expr::Column(left), Expr::Column(right)) = (left, right) {
            equal(left, right, found);
        }
    }
    if let Some(filter) = &join.filter {
        equalities(filter, &join.schema, may_be_missing, found);
    }
}

/// Columns of the side that may be missing are the same where all columns of the other side are that ON names.
fn outer_join(join: &Join, found: &mut Vec<Dependence>) {
    let inner = match join.join_type {
        JoinType::Left => &join.right,
        _ => &join.left,
    };
    let is_inner = |column: &Column| inner.schema().has_column(column);
    let mut needed: HashSet<Column> = HashSet::new();
    let mut pairs = Vec::new();
    let mut add = |expr: &Expr| {
        let columns = expr.column_refs().into_iter();
        needed.extend(columns.filter(|column| !is_inner(column)).cloned());
    };
    for (left, right) in &join.on {
        add(left);
        add(right);
        if let (Expr::Column(left), Expr::Column(right)) = (left, right) {
            pairs.push((left.clone(), Some(right.clone())));
        }
    }
    if let Some(filter) = &join.filter {
        if has_subquery(filter) {
            return;
        }
        add(filter);
        conjuncts(filter, &mut |condition| {
            pairs.extend(equality(condition, &join.schema));
        });
    }
    let needed: Vec<Column> = needed.into_iter().collect();
    for (one, other) in pairs {
        let to = match other {
            Some(other) if is_inner(&other) && !is_inner(&one) => other,
            Some(other) if is_inner(&one) && !is_inner(&other) => one,
            None if is_inner(&one) => one,
            _ => continue,
        };
        found.push(Dependence {
            from: needed.clone(),
            to: vec![to],
        });
    }
}

fn equal(one: &Column, other: &Column, found: &mut Vec<Dependence>) {
    for (from, to) in [(one, other), (other, one)] {
        found.push(Dependence {
            from: vec![from.clone()],
            to: vec![to.clone()],
        });
    }
}

/// What a condition that all rows meet says.
fn equalities(
    condition: &Expr,
    schema: &DFSchema,
    may_be_missing: bool,
    found: &mut Vec<Dependence>,
) {
    conjuncts(
        condition,
        &mut |condition| match equality(condition, schema) {
            Some((one, Some(other))) => equal(&one, &other, found),
            Some((one, None)) if !may_be_missing => found.push(Dependence {
                from: Vec::new(),
                to: vec![one],
            }),
            _ => {}
        },
    );
}

fn conjuncts(condition: &Expr, each: &mut dyn FnMut(&Expr)) {
    match condition {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => {
            conjuncts(left, each);
            conjuncts(right, each);
        }
        other => each(other),
    }
}

/// `column = column`, or `column = constant` (then without the second). A text is equal to many numbers, so they are no
/// equality.
fn equality(condition: &Expr, schema: &DFSchema) -> Option<(Column, Option<Column>)> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = condition else {
        return None;
    };
    let ([one, other], "$eq") = (args.as_slice(), as_function(func)?.name) else {
        return None;
    };
    let is_text = |expr: &Expr| {
        let ty = expr.get_type(schema).ok();
        ty.is_some_and(|ty| {
            matches!(
                ty,
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            )
        })
    };
    match (one, other) {
        (Expr::Column(column), Expr::Column(second)) => {
            (is_text(one) == is_text(other)).then(|| (column.clone(), Some(second.clone())))
        }
        (Expr::Column(column), constant) | (constant, Expr::Column(column)) => {
            let is_constant = constant.column_refs().is_empty()
                && !constant.is_volatile()
                && !has_subquery(constant);
            let fits = !is_text(&Expr::Column(column.clone())) || is_text(constant);
            (is_constant && fits).then(|| (column.clone(), None))
        }
        _ => None,
    }
}

fn has_subquery(expr: &Expr) -> bool {
    let is_subquery = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        ))
    };
    expr.exists(is_subquery).unwrap_or(true)
}
