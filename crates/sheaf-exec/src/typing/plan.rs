//! The typing rule on whole nodes: grouping and DISTINCT of strings, by sort key.
//!
//! DataFusion's operators know nothing of collations, so strings are compared by their sort keys alone:
//!
//! ```text
//!   GROUP BY name                Aggregate by ck(name), with any_value(name); a projection above gives the old names
//!   DISTINCT                     a grouping by all columns
//! ```
//!
//! Whoever rewrites the expressions of a plan does so from its leaves up ([`rewrite_changed`]). A recursive table has
//! the names and types of its first part, so its second part is rewritten when these are known.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, Case, GroupingSet};
use datafusion_expr::logical_plan::{
    Aggregate, Distinct, Projection, RecursiveQuery, TableScan, TableScanBuilder,
};
use datafusion_expr::utils::{
    conjunction, grouping_set_to_exprlist, merge_schema, split_conjunction_owned,
};
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, TableSource, lit};

use sheaf_access::cancel;

use super::choose::{as_column_of, as_shown, with_metadata};
use super::subquery::{outer_columns_of, with_outer_fields};
use super::{Texts, literal, type_of, typed_literal};
use crate::aggregates::aggregate_function;
use crate::functions::collation::{collation_key, key_collation};
use crate::functions::truncated::NumberKind;
use crate::functions::types::SqlType;
use crate::functions::{as_function, call};
use crate::group_keys::has_doubtful_keys;
use crate::operator::scan_exec::access_error;
use crate::table_source::WorkTableSource;

/// What becomes of one node of a plan. It also gets whether the schema of an input has changed, and says whether the
/// node's has.
pub type RewriteNode = dyn Fn(LogicalPlan, bool) -> Result<Transformed<LogicalPlan>>;

/// Rewrites the expressions of a plan from its leaves up, subqueries included.
///
/// `rewrite` gets each node that has expressions, or an input whose schema has changed. It is to leave the node with the
/// schema that follows from these. The rest is as it was: the tables at the bottom of a plan, and the joins that have
/// no condition yet. These are most nodes of a join of many tables, and their schemas are the widest.
pub fn rewrite_changed(plan: LogicalPlan, rewrite: &RewriteNode) -> Result<LogicalPlan> {
    Ok(rewrite_from_below(plan, rewrite)?.data)
}

/// `transformed` says that the schema has changed.
fn rewrite_from_below(
    plan: LogicalPlan,
    rewrite: &RewriteNode,
) -> Result<Transformed<LogicalPlan>> {
    cancel::check_statement().map_err(access_error)?;
    if let LogicalPlan::RecursiveQuery(query) = plan {
        return rewrite_recursive(query, rewrite);
    }
    let plan = plan.map_children(|input| rewrite_from_below(input, rewrite))?;
    let inputs_changed = plan.transformed;
    if !inputs_changed && is_without_expressions(&plan.data) {
        return Ok(plan);
    }
    if !has_subqueries(&plan.data) {
        return rewrite(plan.data, inputs_changed);
    }
    let inputs = plan.data.inputs().into_iter();
    let inputs: Vec<DFSchemaRef> = inputs.map(|input| Arc::clone(input.schema())).collect();
    let plan = plan.data.map_subqueries(|mut subquery| {
        // What a subquery says of columns outside of it follows from what these are now.
        for schema in &inputs {
            subquery = with_outer_fields(subquery, schema)?;
        }
        let mut subquery = rewrite_from_below(subquery, rewrite)?;
        if let LogicalPlan::Subquery(subquery) = &mut subquery.data {
            subquery.outer_ref_columns = outer_columns_of(&subquery.subquery)?;
        }
        Ok(subquery)
    })?;
    // What its expressions are may have changed with them.
    rewrite(plan.data, true)
}

/// Whether the expressions of a node have subqueries.
fn has_subqueries(plan: &LogicalPlan) -> bool {
    let is_subquery = |expr: &Expr| {
        let is_one = matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        );
        Ok(is_one)
    };
    let mut found = false;
    // The closures do not fail.
    let _ = plan.apply_expressions(|expr| {
        found |= expr.exists(is_subquery).unwrap_or(true);
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    });
    found
}

/// What a recursive table holds is what its first part gives, in names and types. So the second part is rewritten when
/// these are known, and gives its rows in these types.
fn rewrite_recursive(
    query: RecursiveQuery,
    rewrite: &RewriteNode,
) -> Result<Transformed<LogicalPlan>> {
    let first = rewrite_from_below(Arc::unwrap_or_clone(query.static_term), rewrite)?;
    let round = Arc::unwrap_or_clone(query.recursive_term);
    let round = over_rows_of(round, &query.name, first.data.schema())?;
    let round = rewrite_from_below(round, rewrite)?;
    let transformed = first.transformed || round.transformed;
    let round = in_types_of(round.data, first.data.schema())?;
    let (first, round) = (Arc::new(first.data), Arc::new(round));
    let query = RecursiveQuery::try_new(query.name, first, round, query.is_distinct)?;
    let plan = LogicalPlan::RecursiveQuery(query);
    Ok(match transformed {
        true => Transformed::yes(plan),
        false => Transformed::no(plan),
    })
}

/// The second part of a recursive table, where the table has these columns.
fn over_rows_of(round: LogicalPlan, name: &str, columns: &DFSchema) -> Result<LogicalPlan> {
    let nullable = columns
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true));
    let schema: SchemaRef = Arc::new(Schema::new(nullable.collect::<Vec<_>>()));
    let is_other = |scan: &TableScan| {
        let source = scan.source.downcast_ref::<WorkTableSource>();
        source.is_some_and(|source| source.name == name && source.schema() != schema)
    };
    let mut has_other = false;
    round.apply_with_subqueries(|plan| {
        has_other |= matches!(plan, LogicalPlan::TableScan(scan) if is_other(scan));
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !has_other {
        return Ok(round);
    }
    let round = round.transform_up_with_subqueries(|plan| {
        let plan = match plan {
            LogicalPlan::TableScan(scan) if is_other(&scan) => {
                let source = WorkTableSource::new(name.to_string(), Arc::clone(&schema));
                let other = TableScanBuilder::new(scan.table_name, Arc::new(source))
                    .with_projection(scan.projection)
                    .with_filters(scan.filters)
                    .with_fetch(scan.fetch);
                LogicalPlan::TableScan(other.build()?)
            }
            other => other,
        };
        Ok(Transformed::yes(plan.recompute_schema()?))
    })?;
    Ok(round.data)
}

/// The rows of `plan` in the types of `columns`.
fn in_types_of(plan: LogicalPlan, columns: &DFSchema) -> Result<LogicalPlan> {
    // Casts that DataFusion has put there cut what MySQL rounds.
    let plan = match plan {
        LogicalPlan::Projection(projection) => {
            let own = projection.expr.into_iter().map(|expr| {
                let (relation, name) = expr.qualified_name();
                let uncast = match expr.clone().unalias() {
                    Expr::Cast(cast) => *cast.expr,
                    _ => return Ok(expr),
                };
                Ok(renamed(uncast, relation, &name))
            });
            let own = own.collect::<Result<Vec<_>>>()?;
            LogicalPlan::Projection(Projection::try_new(own, projection.input)?)
        }
        other => other,
    };
    let schema = Arc::clone(plan.schema());
    let is_same = |(field, to): (&FieldRef, &FieldRef)| {
        field.data_type() == to.data_type() && field.metadata() == to.metadata()
    };
    if schema.fields().iter().zip(columns.fields()).all(is_same) {
        return Ok(plan);
    }
    let exprs = schema.iter().zip(columns.fields()).map(|(from, to)| {
        let column = Expr::Column(Column::from(from));
        let (relation, field) = from;
        let is_exact =
            matches!(to.data_type(), DataType::Decimal128(..)) || to.data_type().is_integer();
        let value = match field.data_type() {
            from if !is_exact || from == to.data_type() || from.is_null() => column,
            _ => {
                let null = typed_literal(ScalarValue::try_from(to.data_type())?, to);
                call("$fitted", vec![column, null, lit(to.name().as_str())])
            }
        };
        Ok(renamed(
            as_column_of(value, to, &schema, None)?,
            relation.cloned(),
            field.name(),
        ))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    let projection = Projection::try_new(exprs, Arc::new(plan))?;
    Ok(LogicalPlan::Projection(projection))
}

fn is_without_expressions(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.filters.is_empty(),
        LogicalPlan::Join(join) => join.on.is_empty() && join.filter.is_none(),
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    }
}

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

/// DISTINCT is a grouping by all columns.
pub fn distinct_by_key(input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let schema = Arc::clone(input.schema());
    let columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let mut has_key = false;
    for column in &columns {
        has_key |= group_key(column, &schema)?.is_some();
    }
    if !has_key {
        return Ok(LogicalPlan::Distinct(Distinct::All(input)));
    }
    group_by_key(Aggregate::try_new(input, columns, vec![])?)
}
