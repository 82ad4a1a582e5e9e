//! The typing rule on whole nodes: grouping and DISTINCT of strings, by sort key.
//!
//! DataFusion's operators know nothing of collations, so strings are compared by their sort keys alone:
//!
//! ```text
//!   GROUP BY name                Aggregate by ck(name), with any_value(name); a projection above gives the old names
//!   DISTINCT                     a grouping by all columns
//! ```

use std::sync::Arc;

use datafusion_common::{Column, DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, Case, GroupingSet};
use datafusion_expr::logical_plan::{Aggregate, Projection};
use datafusion_expr::utils::{
    conjunction, grouping_set_to_exprlist, merge_schema, split_conjunction_owned,
};
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, lit};

use super::choose::{as_shown, with_metadata};
use super::{Texts, literal, type_of};
use crate::aggregates::aggregate_function;
use crate::functions::collation::{collation_key, key_collation};
use crate::functions::truncated::NumberKind;
use crate::functions::types::SqlType;
use crate::functions::{as_function, call};
use crate::group_keys::has_doubtful_keys;

/// The columns that a node's expressions may name: those of its inputs, or of its table.
pub fn schema_of_operands(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        schema.merge(&DFSchema::try_from_qualified_schema(
            scan.table_name.clone(),
            &scan.source.schema(),
        )?);
    }
    Ok(schema)
}

/// A condition over a table, in which a text of a row that is compared with a number and is none is noted.
pub fn refused_texts(predicate: Expr, schema: &DFSchema, texts: &Texts) -> Result<Expr> {
    let noted = |operand: Box<Expr>| -> Result<Box<Expr>> {
        Ok(match number_of_text(&operand, schema)? {
            Some((kind, text)) => Box::new(texts.truncated.number_of(kind, text)),
            None => operand,
        })
    };
    let conditions = split_conjunction_owned(predicate);
    let conditions = conditions.into_iter().map(|condition| match condition {
        Expr::BinaryExpr(comparison) if !comparison.op.is_logic_operator() => {
            Ok(Expr::BinaryExpr(BinaryExpr {
                left: noted(comparison.left)?,
                op: comparison.op,
                right: noted(comparison.right)?,
            }))
        }
        other => Ok(other),
    });
    let conditions = conditions.collect::<Result<Vec<_>>>()?;
    Ok(conjunction(conditions).unwrap_or_else(|| lit(true)))
}

/// The text that a comparison with a number has converted, and to what.
fn number_of_text(operand: &Expr, schema: &DFSchema) -> Result<Option<(NumberKind, Expr)>> {
    let Expr::ScalarFunction(call) = operand else {
        return Ok(None);
    };
    let name = as_function(&call.func).map(|called| called.name);
    let (kind, text) = match (name, call.args.as_slice()) {
        (Some("$cast_double"), [text]) => (NumberKind::Double, text),
        (Some("$text_place"), [text, decimals]) => match literal(decimals) {
            Some(ScalarValue::Int64(Some(decimals))) => (NumberKind::Place(*decimals as u8), text),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let is_text = matches!(type_of(text, schema)?, SqlType::Text { .. });
    Ok((is_text && !text.contains_outer()).then(|| (kind, text.clone())))
}

/// What is grouped by instead of a string, its sort key, and instead of a DECIMAL with guard digits, what it shows.
/// `None` for what is grouped as it is.
pub fn group_key(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    if matches!(expr, Expr::Literal(..)) {
        return Ok(None);
    }
    let ty = type_of(expr, schema)?;
    if let SqlType::Decimal { .. } = ty {
        let shown = as_shown(expr.clone(), schema)?;
        return Ok((shown != *expr).then_some(shown));
    }
    if ty == SqlType::Json {
        return Ok(Some(call("$json_key", vec![expr.clone()])));
    }
    Ok(key_collation(&ty).map(|collation| collation_key(expr.clone(), collation)))
}

fn any_value(expr: Expr) -> Result<Expr> {
    aggregate_call("any_value", expr)
}

pub(super) fn aggregate_call(name: &str, expr: Expr) -> Result<Expr> {
    let Some(function) = aggregate_function(name) else {
        return datafusion_common::internal_err!("{name} is not registered");
    };
    Ok(Expr::AggregateFunction(AggregateFunction::new_udf(
        function,
        vec![expr],
        false,
        None,
        vec![],
        None,
    )))
}

/// What a column of the original aggregate is computed from.
enum Output {
    /// Column of this position in the new aggregate.
    Same(usize),
    /// The value at the second position, unless its sort key at the first is NULL because the row is a super-aggregate.
    UnlessNull(usize, usize),
}

/// Strings are grouped by their sort keys; what is shown is some string of the group. Columns that the other group
/// columns determine (a customer's name, given his key) are not grouped by at all.
pub fn group_by_key(mut aggregate: Aggregate) -> Result<LogicalPlan> {
    // What is named twice is one column of the schema, so it has to be one group expression too.
    let mut named = Vec::with_capacity(aggregate.group_expr.len());
    for expr in aggregate.group_expr {
        if !named.contains(&expr) {
            named.push(expr);
        }
    }
    aggregate.group_expr = named;
    let schema = Arc::clone(aggregate.input.schema());
    let old_schema = Arc::clone(&aggregate.schema);
    if let [Expr::GroupingSet(set)] = aggregate.group_expr.as_slice() {
        let set = set.clone();
        return grouping_sets_by_key(aggregate, &set);
    }
    let determined = match has_doubtful_keys(&aggregate.input) {
        true => vec![false; aggregate.group_expr.len()],
        false => determined_columns(&aggregate.group_expr, &schema),
    };
    let mut group_expr = Vec::new();
    let mut added = Vec::new();
    let mut outputs = Vec::new();
    let mut changed = false;
    for (at, expr) in aggregate.group_expr.iter().enumerate() {
        let plain = expr.clone().unalias();
        if determined[at] {
            changed = true;
            outputs.push(None);
            added.push(plain);
        } else if let Some(key) = group_key(&plain, &schema)? {
            changed = true;
            group_expr.push(key);
            outputs.push(None);
            added.push(plain);
        } else {
            outputs.push(Some(group_expr.len()));
            group_expr.push(expr.clone());
        }
    }
    if !changed {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let groups = group_expr.len();
    let aggregates = aggregate.aggr_expr.len();
    let mut aggr_expr = aggregate.aggr_expr;
    for expr in added {
        aggr_expr.push(any_value(expr)?);
    }
    // Two columns may be the same expression under two names.
    let mut unique: Vec<Expr> = Vec::new();
    let mut position_of = Vec::new();
    for expr in aggr_expr {
        position_of.push(
            groups
                + unique
                    .iter()
                    .position(|known| *known == expr)
                    .unwrap_or(unique.len()),
        );
        if !unique.contains(&expr) {
            unique.push(expr);
        }
    }
    let mut unique_groups: Vec<Expr> = Vec::new();
    let mut group_position = Vec::new();
    for expr in group_expr {
        group_position.push(
            unique_groups
                .iter()
                .position(|known| *known == expr)
                .unwrap_or(unique_groups.len()),
        );
        if !unique_groups.contains(&expr) {
            unique_groups.push(expr);
        }
    }
    let dropped = groups - unique_groups.len();
    let mut next_added = aggregates;
    let mut columns = Vec::new();
    for output in outputs {
        columns.push(Output::Same(match output {
            Some(group) => group_position[group],
            None => {
                next_added += 1;
                position_of[next_added - 1] - dropped
            }
        }));
    }
    columns.extend(
        position_of[..aggregates]
            .iter()
            .map(|position| Output::Same(position - dropped)),
    );
    let new = Aggregate::try_new(aggregate.input, unique_groups, unique)?;
    restore(LogicalPlan::Aggregate(new), &columns, &old_schema)
}

/// For each group expression: whether other group columns determine it.
fn determined_columns(group_expr: &[Expr], schema: &DFSchema) -> Vec<bool> {
    let index_of = |expr: &Expr| match expr {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        _ => None,
    };
    let indexes: Vec<Option<usize>> = group_expr.iter().map(index_of).collect();
    let mut determined = vec![false; group_expr.len()];
    for dependence in schema.functional_dependencies().iter() {
        let keys = &dependence.source_indices;
        let kept = |index: &usize| {
            indexes
                .iter()
                .zip(&determined)
                .any(|(known, determined)| *known == Some(*index) && !determined)
        };
        if keys.is_empty() || !keys.iter().all(kept) {
            continue;
        }
        for (at, index) in indexes.iter().enumerate() {
            let Some(index) = index else { continue };
            if dependence.target_indices.contains(index) && !keys.contains(index) {
                determined[at] = true;
            }
        }
    }
    determined
}

fn grouping_sets_by_key(aggregate: Aggregate, set: &GroupingSet) -> Result<LogicalPlan> {
    let schema = Arc::clone(aggregate.input.schema());
    let old_schema = Arc::clone(&aggregate.schema);
    let distinct: Vec<Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?
        .into_iter()
        .cloned()
        .collect();
    let mut keys: Vec<Option<Expr>> = Vec::new();
    for expr in &distinct {
        let key = group_key(&expr.clone().unalias(), &schema)?;
        // What is grouped by once more has one more name.
        let again = key.is_some() && keys.contains(&key);
        keys.push(match again {
            true => key.map(|key| key.alias(format!("$key{}", keys.len()))),
            false => key,
        });
    }
    let replace = |exprs: &Vec<Expr>| -> Vec<Expr> {
        exprs
            .iter()
            .map(|expr| {
                let at = distinct.iter().position(|known| known == expr);
                at.and_then(|at| keys[at].clone())
                    .unwrap_or_else(|| expr.clone())
            })
            .collect()
    };
    let set = match set {
        GroupingSet::Rollup(exprs) => GroupingSet::Rollup(replace(exprs)),
        GroupingSet::Cube(exprs) => GroupingSet::Cube(replace(exprs)),
        GroupingSet::GroupingSets(sets) => {
            GroupingSet::GroupingSets(sets.iter().map(replace).collect())
        }
    };
    // After the groups comes the column that tells the sets apart.
    let first_aggregate = distinct.len() + 1;
    let aggregates = aggregate.aggr_expr.len();
    let mut aggr_expr = aggregate.aggr_expr;
    let mut columns = Vec::new();
    for (at, (expr, key)) in distinct.iter().zip(&keys).enumerate() {
        if key.is_some() {
            let value = any_value(expr.clone().unalias())?;
            let known = aggr_expr.iter().position(|known| *known == value);
            let position = known.unwrap_or_else(|| {
                aggr_expr.push(value);
                aggr_expr.len() - 1
            });
            columns.push(Output::UnlessNull(at, first_aggregate + position));
        } else {
            columns.push(Output::Same(at));
        }
    }
    columns.push(Output::Same(distinct.len()));
    columns.extend((0..aggregates).map(|at| Output::Same(first_aggregate + at)));
    let new = Aggregate::try_new(aggregate.input, vec![Expr::GroupingSet(set)], aggr_expr)?;
    restore(LogicalPlan::Aggregate(new), &columns, &old_schema)
}

/// A projection above `groups` with the names that the nodes above know.
fn restore(groups: LogicalPlan, columns: &[Output], old_schema: &DFSchema) -> Result<LogicalPlan> {
    let new_schema = Arc::clone(groups.schema());
    let column = |position: usize| Expr::Column(Column::from(new_schema.qualified_field(position)));
    let exprs = columns
        .iter()
        .zip(old_schema.iter())
        .map(|(output, (relation, field))| {
            let value = match output {
                Output::Same(position) => column(*position),
                Output::UnlessNull(key, position) => {
                    let present = (
                        Box::new(column(*key).is_not_null()),
                        Box::new(column(*position)),
                    );
                    with_metadata(Expr::Case(Case::new(None, vec![present], None)), field)
                }
            };
            renamed(value, relation.cloned(), field.name())
        })
        .collect();
    Ok(LogicalPlan::Projection(Projection::try_new(
        exprs,
        Arc::new(groups),
    )?))
}

fn renamed(expr: Expr, relation: Option<datafusion_common::TableReference>, name: &str) -> Expr {
    let (old_relation, old_name) = expr.qualified_name();
    if old_relation == relation && old_name == name {
        expr
    } else {
        expr.alias_qualified(relation, name)
    }
}
