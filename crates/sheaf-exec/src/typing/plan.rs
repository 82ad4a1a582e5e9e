//! The typing rule on whole plans: sorting, grouping, DISTINCT, joins and set operations of strings, by sort key.
//!
//! In comes the plan of SqlToRel, with markers in its expressions. Out comes a plan in which strings are compared by
//! their sort keys alone, so that DataFusion's operators know nothing of collations. The plan is rewritten from its
//! leaves up, because each node is typed by the schemas of its inputs:
//!
//! ```text
//!   ORDER BY name                Sort by ck(name)
//!   GROUP BY name                Aggregate by ck(name), with any_value(name); a projection above gives the old names
//!   DISTINCT                     a grouping by all columns
//!   UNION, EXCEPT, INTERSECT     the columns of all inputs get the types of the whole
//! ```
//!
//! A recursive table has the names and types of its first part, so its second part is rewritten when these are known.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{
    Column, DFSchema, DFSchemaRef, NullEquality, Result, ScalarValue, internal_datafusion_err,
};
use datafusion_expr::expr::{AggregateFunction, Case, GroupingSet};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{
    Aggregate, Distinct, Filter, Join, JoinType, Projection, RecursiveQuery, Sort, SubqueryAlias,
    TableScan, TableScanBuilder, Union,
};
use datafusion_expr::utils::{
    conjunction, grouping_set_to_exprlist, merge_schema, split_conjunction_owned,
};
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator, SortExpr, TableSource, lit};

use sheaf_access::cancel;

use super::change_condition;
use super::choose::{as_column_of, as_shown, with_metadata};
use super::compare::join_key;
use super::single_row::with_single_rows;
use super::subquery::{
    above_inner_join, has_subquery, in_filter, outer_columns_of, with_nulls, with_outer_fields,
    with_values_of_subqueries,
};
use super::{Purpose, ROW_SUBQUERY, Texts, key_of, literal, resolve, type_of, typed_literal};
use crate::aggregates::aggregate_function;
use crate::functions::EvaluationError;
use crate::functions::collation::{collation_key, key_collation};
use crate::functions::control::common_field;
use crate::functions::truncated::NumberKind;
use crate::functions::types::SqlType;
use crate::functions::{as_function, call};
use crate::group_keys::has_doubtful_keys;
use crate::operator::scan_exec::access_error;
use crate::table_source::WorkTableSource;

/// Types a plan, subqueries included. To be run once, before DataFusion's TypeCoercion.
pub fn resolve_plan(plan: LogicalPlan, texts: &Texts) -> Result<LogicalPlan> {
    let plan = change_condition::marked(plan, texts)?;
    rewrite_changed(plan, &|plan| resolve_node(plan, texts))
}

/// Rewrites the expressions of a plan from its leaves up, subqueries included.
///
/// `rewrite` gets each node that has expressions, or whose inputs `rewrite` has had, and is to leave it with the schema
/// that follows from these. The rest is as it was: the tables at the bottom of a plan, and the joins that have no
/// condition yet. These are most nodes of a join of many tables, and their schemas are the widest.
pub fn rewrite_changed(
    plan: LogicalPlan,
    rewrite: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    Ok(rewrite_from_below(plan, rewrite)?.data)
}

/// `transformed` says that `rewrite` has had the node.
fn rewrite_from_below(
    plan: LogicalPlan,
    rewrite: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<Transformed<LogicalPlan>> {
    cancel::check_statement().map_err(access_error)?;
    if let LogicalPlan::RecursiveQuery(query) = plan {
        return rewrite_recursive(query, rewrite);
    }
    let plan = plan.map_children(|input| rewrite_from_below(input, rewrite))?;
    if !plan.transformed && is_without_expressions(&plan.data) {
        return Ok(plan);
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
    Ok(Transformed::yes(rewrite(plan.data)?))
}

/// What a recursive table holds is what its first part gives, in names and types. So the second part is rewritten when
/// these are known, and gives its rows in these types.
fn rewrite_recursive(
    query: RecursiveQuery,
    rewrite: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
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

/// What an aggregate is given is computed for each row, as what is shown.
fn is_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::AggregateFunction(_) => true,
        Expr::Alias(alias) => is_aggregate(&alias.expr),
        _ => false,
    }
}

fn resolve_node(plan: LogicalPlan, texts: &Texts) -> Result<LogicalPlan> {
    let schema = schema_of_operands(&plan)?;
    let names = NamePreserver::new(&plan);
    let is_sort = matches!(plan, LogicalPlan::Sort(_));
    let purpose = match plan {
        LogicalPlan::Projection(_) => Purpose::Shown,
        LogicalPlan::Sort(_) => Purpose::Order,
        _ => Purpose::Other,
    };
    let mut has_subqueries = false;
    let mut resolved_for = |expr: Expr, purpose: Purpose| {
        let expr = match has_subquery(&expr)? {
            true => {
                has_subqueries = true;
                with_nulls(with_single_rows(expr)?)?
            }
            false => expr,
        };
        let purpose = match is_aggregate(&expr) {
            true => Purpose::Shown,
            false => purpose,
        };
        resolve(expr, &schema, texts, purpose)
    };
    let indexed = match &plan {
        LogicalPlan::Filter(filter) if change_condition::watched(&filter.predicate).is_some() => {
            change_condition::indexed_columns(&filter.input)
        }
        _ => Vec::new(),
    };
    let mut resolved = |expr: Expr| match change_condition::watched(&expr) {
        Some(condition) => {
            change_condition::by_parts(condition.clone(), &indexed, &mut resolved_for)
        }
        None => resolved_for(expr, purpose),
    };
    if let LogicalPlan::Aggregate(aggregate) = &plan {
        // Before expressions are folded: COALESCE(1, o.x) names a column of the query o is in.
        refuse_outer_aggregates(aggregate)?;
    }
    let plan = plan
        .map_expressions(|expr| {
            Ok(Transformed::yes(match is_sort {
                // The names of a sort's expressions are not shown.
                true => resolved(expr)?,
                false => map_named(expr, &names, &mut resolved)?,
            }))
        })?
        .data;
    let (plan, shown) = match has_subqueries {
        true => with_values_of_subqueries(plan)?,
        false => (plan, None),
    };
    let plan = match plan {
        LogicalPlan::Sort(sort) => {
            let schema = Arc::clone(sort.input.schema());
            LogicalPlan::Sort(sort_by_key(sort, &schema)?)
        }
        LogicalPlan::Filter(filter) => {
            let filter = with_correlated_keys(filter)?;
            let filter = match has_subqueries {
                true => in_filter(filter)?,
                false => filter,
            };
            LogicalPlan::Filter(match texts.truncated.is_refused() {
                true => with_refused_texts(filter, &schema, texts)?,
                false => filter,
            })
        }
        LogicalPlan::Aggregate(aggregate) => group_by_key(aggregate)?,
        LogicalPlan::SubqueryAlias(alias) if alias.alias.table() == ROW_SUBQUERY => {
            columns_of_row(alias)?
        }
        LogicalPlan::Distinct(Distinct::All(input)) => distinct_by_key(input)?,
        LogicalPlan::Union(union) => union_of_one_type(union, texts)?,
        LogicalPlan::Join(mut join) => {
            if is_set_operation(&join) {
                join = set_join_of_one_type(join, texts)?;
            }
            let (left, right) = (Arc::clone(&join.left), Arc::clone(&join.right));
            join.on = join
                .on
                .into_iter()
                .map(|(a, b)| join_key(a, b, (left.schema(), right.schema()), texts))
                .collect::<Result<_>>()?;
            match has_subqueries && join.join_type == JoinType::Inner {
                true => above_inner_join(join)?,
                false => LogicalPlan::Join(join),
            }
        }
        other => other,
    };
    let plan = plan.recompute_schema()?;
    Ok(match shown {
        Some(columns) => LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?),
        None => plan,
    })
}

/// Whether this is an EXCEPT or INTERSECT, in a plan as it comes from SqlToRel.
pub fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
}

fn sort_by_key(sort: Sort, schema: &DFSchema) -> Result<Sort> {
    let expr = sort
        .expr
        .into_iter()
        .map(|sort| {
            Ok(SortExpr {
                expr: key_of(sort.expr.unalias(), schema)?,
                ..sort
            })
        })
        .collect::<Result<_>>()?;
    Ok(Sort { expr, ..sort })
}

/// In a correlated subquery, `ck(inner) = ck(outer)` becomes `key = ck(outer)` with the key computed below: DataFusion
/// pulls an equality out of an aggregated subquery only if its inner side is a column, because that is what it groups
/// by.
fn with_correlated_keys(filter: Filter) -> Result<Filter> {
    if !filter.predicate.contains_outer() {
        return Ok(filter);
    }
    let mut keys = Vec::new();
    let mut key_column = |inner: Expr| {
        let name = format!("$key{}", keys.len());
        keys.push(inner.alias(name.clone()));
        Expr::Column(Column::new_unqualified(name))
    };
    let is_key = |expr: &Expr| {
        matches!(expr, Expr::ScalarFunction(_)) && !expr.contains_outer() && expr.any_column_refs()
    };
    let is_outer = |expr: &Expr| expr.contains_outer() && !expr.any_column_refs();
    let conditions: Vec<Expr> = split_conjunction_owned(filter.predicate)
        .into_iter()
        .map(|condition| match condition {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Eq,
                right,
            }) if is_key(&left) && is_outer(&right) => key_column(*left).eq(*right),
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Eq,
                right,
            }) if is_key(&right) && is_outer(&left) => key_column(*right).eq(*left),
            other => other,
        })
        .collect();
    let predicate = conjunction(conditions).unwrap_or_else(|| lit(true));
    if keys.is_empty() {
        return Filter::try_new(predicate, filter.input);
    }
    let columns = filter
        .input
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column);
    let with_keys = Projection::try_new(columns.chain(keys).collect(), filter.input)?;
    Filter::try_new(predicate, Arc::new(LogicalPlan::Projection(with_keys)))
}

/// Where a strict mode changes rows, a text of a row that is compared with a number and is none is an error too. Only
/// in a condition of its own, because what stands in a choice may not be asked for. And only of one table, because such
/// a condition is not pushed below a join.
fn with_refused_texts(filter: Filter, schema: &DFSchema, texts: &Texts) -> Result<Filter> {
    if !is_table(&filter.input) {
        return Ok(filter);
    }
    let predicate = refused_texts(filter.predicate, schema, texts)?;
    Filter::try_new(predicate, filter.input)
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

fn is_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_table(&alias.input),
        _ => false,
    }
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

/// The columns that a row is compared with, under the alias but without a node for it: DataFusion does not pull what a
/// subquery is correlated by through an alias.
fn columns_of_row(alias: SubqueryAlias) -> Result<LogicalPlan> {
    let columns = alias.input.schema().columns().into_iter().map(|column| {
        let name = column.name.clone();
        Expr::Column(column).alias_qualified(Some(alias.alias.clone()), name)
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(
        columns,
        alias.input,
    )?))
}

/// An expression of a node under the name that it has. What is grouped by keeps its name, also within grouping sets.
pub(super) fn map_named(
    expr: Expr,
    names: &NamePreserver,
    map: &mut dyn FnMut(Expr) -> Result<Expr>,
) -> Result<Expr> {
    let mut named = |expr: Expr| {
        let name = names.save(&expr);
        Ok(name.restore(map(expr)?))
    };
    match expr {
        Expr::GroupingSet(sets) => Ok(Expr::GroupingSet(map_grouping_sets(sets, named)?)),
        other => named(other),
    }
}

fn map_grouping_sets(
    sets: GroupingSet,
    mut map: impl FnMut(Expr) -> Result<Expr>,
) -> Result<GroupingSet> {
    let mut all = |exprs: Vec<Expr>| exprs.into_iter().map(&mut map).collect::<Result<Vec<_>>>();
    Ok(match sets {
        GroupingSet::Rollup(exprs) => GroupingSet::Rollup(all(exprs)?),
        GroupingSet::Cube(exprs) => GroupingSet::Cube(all(exprs)?),
        GroupingSet::GroupingSets(sets) => {
            GroupingSet::GroupingSets(sets.into_iter().map(all).collect::<Result<_>>()?)
        }
    })
}

/// What is grouped by instead of a string, its sort key, and instead of a DECIMAL with guard digits, what it shows.
/// `None` for what is grouped as it is.
fn group_key(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
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

/// An aggregate whose arguments name columns of an outer query alone belongs to that query by the standard, and in
/// MySQL.
fn refuse_outer_aggregates(aggregate: &Aggregate) -> Result<()> {
    for expr in &aggregate.aggr_expr {
        let is_outer = expr.contains_outer() && expr.column_refs().is_empty();
        if is_outer {
            let what = "aggregates of an outer query in a subquery";
            return Err(EvaluationError::not_supported_yet(what).into());
        }
    }
    Ok(())
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

/// Every input of a UNION gives the types of the whole.
fn union_of_one_type(union: Union, texts: &Texts) -> Result<LogicalPlan> {
    let inputs = of_one_type(union.inputs, texts)?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// Both sides of EXCEPT and INTERSECT give the types of the whole, as those of a UNION do.
fn set_join_of_one_type(mut join: Join, texts: &Texts) -> Result<Join> {
    let sides = of_one_type(vec![join.left, join.right], texts)?;
    [join.left, join.right] = sides
        .try_into()
        .map_err(|_| internal_datafusion_err!("a set operation of one side"))?;
    Ok(join)
}

/// The inputs, each with the same types: for every column the one that all its values fit in.
fn of_one_type(inputs: Vec<Arc<LogicalPlan>>, texts: &Texts) -> Result<Vec<Arc<LogicalPlan>>> {
    let width = inputs
        .first()
        .map_or(0, |input| input.schema().fields().len());
    let is_as_wide = |input: &Arc<LogicalPlan>| input.schema().fields().len() == width;
    if !inputs.iter().all(is_as_wide) {
        return Ok(inputs);
    }
    let fields = (0..width)
        .map(|at| {
            let fields: Vec<_> = inputs
                .iter()
                .map(|input| Arc::clone(&input.schema().fields()[at]))
                .collect();
            common_field(&fields)
        })
        .collect::<Result<Vec<_>>>()?;
    inputs
        .into_iter()
        .map(|input| {
            let schema = Arc::clone(input.schema());
            let same = schema.fields().iter().zip(&fields).all(|(field, to)| {
                field.data_type() == to.data_type() && field.metadata() == to.metadata()
            });
            if same {
                return Ok(input);
            }
            let exprs = schema
                .iter()
                .zip(&fields)
                .map(|((relation, field), to)| {
                    let column = Expr::Column(Column::from((relation, field)));
                    Ok(renamed(
                        as_column_of(column, to, &schema, Some(texts))?,
                        relation.cloned(),
                        field.name(),
                    ))
                })
                .collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(
                exprs, input,
            )?)))
        })
        .collect()
}
