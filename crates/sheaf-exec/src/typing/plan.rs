//! The typing rule on whole plans: sorting, grouping, DISTINCT, joins and set operations of strings, by sort key.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{
    Column, DFSchema, ExprSchema, NullEquality, Result, ScalarValue, Spans, internal_datafusion_err,
};
use datafusion_expr::expr::{
    AggregateFunction, Case, Exists, GroupingSet, InSubquery, SetComparison, SetQuantifier,
};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{
    Aggregate, Distinct, Filter, Join, JoinType, Projection, RecursiveQuery, Sort, Subquery,
    SubqueryAlias, TableScan, TableScanBuilder, Union,
};
use datafusion_expr::utils::{
    conjunction, grouping_set_to_exprlist, merge_schema, split_conjunction_owned,
};
use datafusion_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, SortExpr, TableSource, lit,
};

use super::choose::as_column_of;
use super::compare::join_key;
use super::single_row::with_single_rows;
use super::{Purpose, ROW_SUBQUERY, Texts, key_of, resolve, type_of, typed_literal};
use crate::aggregates::aggregate_function;
use crate::collation::{collation_key, key_collation};
use crate::functions::call;
use crate::functions::control::common_field;
use crate::table_source::WorkTableSource;

/// Types a plan, subqueries included. To be run once, before DataFusion's TypeCoercion.
pub fn resolve_plan(plan: LogicalPlan, texts: &Texts) -> Result<LogicalPlan> {
    rewrite_changed(plan, &|plan| resolve_node(plan, texts))
}

/// Rewrites the expressions of a plan from its leaves up, subqueries included.
///
/// `rewrite` gets each node that has expressions, or whose inputs `rewrite` has had, and is to leave it with the schema that
/// follows from these. The rest is as it was: the tables at the bottom of a plan and the joins that have no condition yet,
/// which are most nodes of a join of many tables, and whose schemas are the widest.
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
    if let LogicalPlan::RecursiveQuery(query) = plan {
        return rewrite_recursive(query, rewrite);
    }
    let plan = plan.map_subqueries(|subquery| rewrite_from_below(subquery, rewrite))?;
    let plan = plan
        .data
        .map_children(|input| rewrite_from_below(input, rewrite))?;
    if !plan.transformed && is_without_expressions(&plan.data) {
        return Ok(plan);
    }
    Ok(Transformed::yes(rewrite(plan.data)?))
}

/// What a recursive table holds is what its first part gives, in names and types. So the second part is rewritten when these
/// are known, and gives its rows in these types.
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
            as_column_of(value, to, &schema)?,
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

fn resolve_node(plan: LogicalPlan, texts: &Texts) -> Result<LogicalPlan> {
    let schema = schema_of_operands(&plan)?;
    let names = NamePreserver::new(&plan);
    let is_sort = matches!(plan, LogicalPlan::Sort(_));
    let purpose = match plan {
        LogicalPlan::Projection(_) => Purpose::Shown,
        _ => Purpose::Other,
    };
    let plan = plan
        .map_expressions(|expr| {
            // What is grouped by keeps its name, also within grouping sets.
            if let Expr::GroupingSet(sets) = expr {
                let sets = map_grouping_sets(sets, |expr| {
                    let name = names.save(&expr);
                    Ok(name.restore(resolve(expr, &schema, texts, purpose)?))
                })?;
                return Ok(Transformed::yes(Expr::GroupingSet(sets)));
            }
            let name = names.save(&expr);
            let expr = with_single_rows(expr)?;
            let mut resolved = resolve(expr, &schema, texts, purpose)?;
            if purpose == Purpose::Shown {
                resolved = with_values_for_subqueries(resolved, &schema)?;
            }
            // The expressions of a sort have no names that anybody sees.
            Ok(Transformed::yes(if is_sort {
                resolved
            } else {
                name.restore(resolved)
            }))
        })?
        .data;
    let plan = match plan {
        LogicalPlan::Sort(sort) => LogicalPlan::Sort(sort_by_key(sort, &schema)?),
        LogicalPlan::Filter(filter) => {
            let filter = with_correlated_keys(filter)?;
            LogicalPlan::Filter(with_exact_in(filter, &schema)?)
        }
        LogicalPlan::Aggregate(aggregate) => group_by_key(aggregate)?,
        LogicalPlan::SubqueryAlias(alias) if alias.alias.table() == ROW_SUBQUERY => {
            columns_of_row(alias)?
        }
        LogicalPlan::Distinct(Distinct::All(input)) => distinct_by_key(input)?,
        LogicalPlan::Union(union) => union_of_one_type(union)?,
        LogicalPlan::Join(mut join) => {
            if is_set_operation(&join) {
                join = set_join_of_one_type(join)?;
            }
            let (left, right) = (Arc::clone(&join.left), Arc::clone(&join.right));
            join.on = join
                .on
                .into_iter()
                .map(|(a, b)| join_key(a, b, left.schema(), right.schema()))
                .collect::<Result<_>>()?;
            LogicalPlan::Join(join)
        }
        other => other,
    };
    plan.recompute_schema()
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
/// pulls an equality out of an aggregated subquery only if its inner side is a column, because that is what it groups by.
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

/// What the truth value of a condition may be taken for if it is unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Itself,
    False,
    True,
}

impl Unknown {
    /// Of what NOT denies.
    fn denied(self) -> Unknown {
        match self {
            Unknown::Itself => Unknown::Itself,
            Unknown::False => Unknown::True,
            Unknown::True => Unknown::False,
        }
    }
}

fn has_in_subquery(expr: &Expr) -> Result<bool> {
    expr.exists(|inner| Ok(matches!(inner, Expr::InSubquery(_))))
}

/// DataFusion makes joins of the subqueries in a filter. They know `x IN (SELECT y ...)` only as true or not, and `NOT IN`
/// with its NULLs only where it is a condition of its own that is not correlated. The rest is written out here:
///
/// ```text
///   x NOT IN (SELECT y ... WHERE k = outer.k)     NOT EXISTS (... WHERE k = outer.k AND (y = x OR y IS NULL OR x IS NULL))
///   x NOT IN (SELECT y ...) OR c                  NOT (x IN (SELECT y ...) OR it is unknown) OR c
/// ```
fn with_exact_in(filter: Filter, schema: &DFSchema) -> Result<Filter> {
    if !has_in_subquery(&filter.predicate)? {
        return Ok(filter);
    }
    let conditions = split_conjunction_owned(filter.predicate);
    let conditions = conditions
        .into_iter()
        .map(|condition| match condition {
            Expr::InSubquery(in_subquery) => whole_condition(in_subquery, schema),
            Expr::Not(inner) => match *inner {
                Expr::InSubquery(mut in_subquery) => {
                    in_subquery.negated = !in_subquery.negated;
                    whole_condition(in_subquery, schema)
                }
                inner => exact_in(Expr::Not(Box::new(inner)), Unknown::False, schema),
            },
            other => exact_in(other, Unknown::False, schema),
        })
        .collect::<Result<Vec<_>>>()?;
    let predicate = conjunction(conditions).unwrap_or_else(|| lit(true));
    Filter::try_new(predicate, filter.input)
}

/// IN or NOT IN as one of the conditions that all must hold.
fn whole_condition(in_subquery: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let is_correlated = !in_subquery.subquery.outer_ref_columns.is_empty();
    if !in_subquery.negated || !is_correlated || in_subquery.expr.contains_outer() {
        return Ok(Expr::InSubquery(in_subquery));
    }
    row_for(in_subquery, schema)
}

/// A part of a condition, where unknown may be taken for what `unknown` says.
fn exact_in(expr: Expr, unknown: Unknown, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::And | Operator::Or),
            right,
        }) => Ok(Expr::BinaryExpr(BinaryExpr {
            left: Box::new(exact_in(*left, unknown, schema)?),
            op,
            right: Box::new(exact_in(*right, unknown, schema)?),
        })),
        Expr::Not(inner) => {
            let inner = exact_in(*inner, unknown.denied(), schema)?;
            Ok(Expr::Not(Box::new(inner)))
        }
        Expr::InSubquery(mut in_subquery) => {
            let negated = std::mem::take(&mut in_subquery.negated);
            let unknown = match negated {
                true => unknown.denied(),
                false => unknown,
            };
            let is_in = if unknown == Unknown::False || !may_be_unknown(&in_subquery, schema)? {
                Expr::InSubquery(in_subquery)
            } else {
                let may_be_in = match in_subquery.subquery.outer_ref_columns.is_empty() {
                    true => is_unknown(&in_subquery, schema)?,
                    false => row_for(in_subquery.clone(), schema)?,
                };
                let may_be_in = match unknown {
                    Unknown::Itself => may_be_in.and(lit(ScalarValue::Boolean(None))),
                    _ => may_be_in,
                };
                Expr::InSubquery(in_subquery).or(may_be_in)
            };
            Ok(if negated { !is_in } else { is_in })
        }
        other => {
            let inner = other.map_children(|inner| {
                Ok(Transformed::yes(exact_in(inner, Unknown::Itself, schema)?))
            })?;
            Ok(inner.data)
        }
    }
}

/// In a select list only subqueries that are values become joins, so IN counts the rows that it finds, and ANY and ALL look at
/// the least or the greatest of the values.
fn with_values_for_subqueries(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let valued = expr.transform_up(|expr| match expr {
        Expr::InSubquery(in_subquery) if !in_subquery.expr.contains_outer() => {
            let (outer_columns, x) = as_outer(&in_subquery, schema)?;
            let rows = Arc::clone(&in_subquery.subquery.subquery);
            let y = Expr::Column(rows.schema().columns()[0].clone());
            let meeting = LogicalPlan::Filter(Filter::try_new(y.eq(x), rows)?);
            let mut is_in = has_rows(meeting, outer_columns)?;
            if may_be_unknown(&in_subquery, schema)? {
                let unknown = lit(ScalarValue::Boolean(None));
                is_in = is_in.or(is_unknown(&in_subquery, schema)?.and(unknown));
            }
            let is_in = if in_subquery.negated { !is_in } else { is_in };
            Ok(Transformed::yes(is_in))
        }
        Expr::SetComparison(comparison) => compared_with_extremes(comparison),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(valued.data)
}

/// A comparison with ANY or ALL values of a subquery, by the least of them, the greatest, and whether one is NULL.
///
/// ```text
///   x > ANY (SELECT y ...)    COUNT(*) > 0 AND (x > MIN(y) OR COUNT(*) > COUNT(y) AND NULL)
///   x > ALL (SELECT y ...)    COUNT(*) = 0 OR x > MAX(y) AND (COUNT(*) = COUNT(y) OR NULL)
/// ```
fn compared_with_extremes(comparison: SetComparison) -> Result<Transformed<Expr>> {
    let is_any = comparison.quantifier == SetQuantifier::Any;
    let extremes = match (comparison.op, is_any) {
        (Operator::Gt | Operator::GtEq, true) | (Operator::Lt | Operator::LtEq, false) => {
            vec!["min"]
        }
        (Operator::Gt | Operator::GtEq, false) | (Operator::Lt | Operator::LtEq, true) => {
            vec!["max"]
        }
        (Operator::Eq, false) | (Operator::NotEq, true) => vec!["min", "max"],
        _ => return Ok(Transformed::no(Expr::SetComparison(comparison))),
    };
    let SetComparison {
        expr: x,
        subquery,
        op,
        ..
    } = comparison;
    let rows = subquery.subquery.as_ref();
    let y = Expr::Column(rows.schema().columns()[0].clone());
    let of_all = |aggregate: &str, argument: Expr| {
        let outer_columns = subquery.outer_ref_columns.clone();
        value_of_all(rows.clone(), outer_columns, aggregate, argument)
    };
    let (all_rows, values) = (of_all("count", lit(1i64))?, of_all("count", y.clone())?);
    let comparisons = extremes.into_iter().map(|extreme| {
        let (left, right) = (x.clone(), Box::new(of_all(extreme, y.clone())?));
        Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
    });
    let comparisons = comparisons.collect::<Result<Vec<_>>>()?.into_iter();
    let unknown = lit(ScalarValue::Boolean(None));
    let outcome = match is_any {
        true => {
            let is_one = comparisons.reduce(Expr::or).unwrap_or_else(|| lit(false));
            let may_be = all_rows.clone().gt(values).and(unknown);
            all_rows.gt(lit(0i64)).and(is_one.or(may_be))
        }
        false => {
            let are_all = comparisons.reduce(Expr::and).unwrap_or_else(|| lit(true));
            let is_known = all_rows.clone().eq(values).or(unknown);
            all_rows.eq(lit(0i64)).or(are_all.and(is_known))
        }
    };
    Ok(Transformed::yes(outcome))
}

/// Whether NULL can make it unknown if `x IN (SELECT y ...)`. What x has of queries further out stays as it is.
fn may_be_unknown(in_subquery: &InSubquery, schema: &DFSchema) -> Result<bool> {
    let y = in_subquery.subquery.subquery.schema().field(0);
    let may_be_null = y.is_nullable() || in_subquery.expr.nullable(schema)?;
    Ok(may_be_null && !in_subquery.expr.contains_outer())
}

/// Whether `x IN (SELECT y ...)` is unknown if it is not true: whether there is a y that is NULL, or x is NULL and there is
/// any y.
fn is_unknown(in_subquery: &InSubquery, schema: &DFSchema) -> Result<Expr> {
    let rows = in_subquery.subquery.subquery.as_ref();
    let outer_columns = &in_subquery.subquery.outer_ref_columns;
    let mut unknown = lit(false);
    if rows.schema().field(0).is_nullable() {
        let y = Expr::Column(rows.schema().columns()[0].clone());
        let without_value = Filter::try_new(y.is_null(), Arc::new(rows.clone()))?;
        unknown = has_rows(LogicalPlan::Filter(without_value), outer_columns.clone())?;
    }
    if in_subquery.expr.nullable(schema)? {
        let x_is_null = in_subquery.expr.as_ref().clone().is_null();
        unknown = unknown.or(x_is_null.and(has_rows(rows.clone(), outer_columns.clone())?));
    }
    Ok(unknown)
}

/// `(SELECT COUNT(*) FROM rows) > 0`.
fn has_rows(rows: LogicalPlan, outer_ref_columns: Vec<Expr>) -> Result<Expr> {
    let count = value_of_all(rows, outer_ref_columns, "count", lit(1i64))?;
    Ok(count.gt(lit(0i64)))
}

/// `(SELECT aggregate(argument) FROM rows)`.
fn value_of_all(
    rows: LogicalPlan,
    outer_ref_columns: Vec<Expr>,
    aggregate: &str,
    argument: Expr,
) -> Result<Expr> {
    let call = aggregate_call(aggregate, argument)?;
    let aggregate = Aggregate::try_new(Arc::new(rows), Vec::new(), vec![call])?;
    let column = Expr::Column(Column::from(aggregate.schema.qualified_field(0)));
    let aggregate = Arc::new(LogicalPlan::Aggregate(aggregate));
    // Decorrelation may put other columns beside it.
    let row = Projection::try_new(vec![column.alias("$value")], aggregate)?;
    Ok(Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(LogicalPlan::Projection(row)),
        outer_ref_columns,
        spans: Spans::new(),
    }))
}

/// The x of `x IN (SELECT y ...)` as it is called inside of the subquery, and what the subquery is correlated by with it.
fn as_outer(in_subquery: &InSubquery, schema: &DFSchema) -> Result<(Vec<Expr>, Expr)> {
    let mut outer_columns = in_subquery.subquery.outer_ref_columns.clone();
    let x = in_subquery.expr.as_ref().clone().transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let field = Arc::clone(schema.field_from_column(&column)?);
                let outer = Expr::OuterReferenceColumn(field, column);
                outer_columns.push(outer.clone());
                Transformed::yes(outer)
            }
            other => Transformed::no(other),
        })
    })?;
    Ok((outer_columns, x.data))
}

/// Whether a row of the subquery is equal to x, or may be: `EXISTS (... y = x OR y IS NULL OR x IS NULL)`, or its opposite.
fn row_for(in_subquery: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let (outer_columns, x) = as_outer(&in_subquery, schema)?;
    let inner = Arc::clone(&in_subquery.subquery.subquery);
    let y = Expr::Column(inner.schema().columns()[0].clone());
    let mut meets = y.clone().eq(x.clone());
    if inner.schema().field(0).is_nullable() {
        meets = meets.or(y.is_null());
    }
    if in_subquery.expr.nullable(schema)? {
        meets = meets.or(x.is_null());
    }
    let meeting = LogicalPlan::Filter(Filter::try_new(meets, inner)?);
    Ok(Expr::Exists(Exists {
        subquery: Subquery {
            subquery: Arc::new(meeting),
            outer_ref_columns: outer_columns,
            spans: in_subquery.subquery.spans,
        },
        negated: in_subquery.negated,
    }))
}

/// The sort key of a string that is grouped by; `None` for what is grouped as it is.
fn group_key(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    if matches!(expr, Expr::Literal(..)) {
        return Ok(None);
    }
    Ok(key_collation(&type_of(expr, schema)?)
        .map(|collation| collation_key(expr.clone(), collation)))
}

fn any_value(expr: Expr) -> Result<Expr> {
    aggregate_call("any_value", expr)
}

fn aggregate_call(name: &str, expr: Expr) -> Result<Expr> {
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
fn group_by_key(mut aggregate: Aggregate) -> Result<LogicalPlan> {
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
    let determined = determined_columns(&aggregate.group_expr, &schema);
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
    aggr_expr.push(aggregate_call("count", lit(1i64))?.alias("$rows"));
    let new = Aggregate::try_new(aggregate.input, vec![Expr::GroupingSet(set)], aggr_expr)?;
    // Of no rows at all, standard SQL still has the group of all rows. MySQL has no groups then.
    let rows = Column::from(
        new.schema
            .qualified_field(new.schema.fields().len().saturating_sub(1)),
    );
    let has_rows = Expr::Column(rows).gt(lit(0i64));
    let groups = Filter::try_new(has_rows, Arc::new(LogicalPlan::Aggregate(new)))?;
    restore(LogicalPlan::Filter(groups), &columns, &old_schema)
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
                    Expr::Case(Case::new(None, vec![present], None))
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
fn distinct_by_key(input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
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
fn union_of_one_type(union: Union) -> Result<LogicalPlan> {
    let inputs = of_one_type(union.inputs)?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// Both sides of EXCEPT and INTERSECT give the types of the whole, as those of a UNION do.
fn set_join_of_one_type(mut join: Join) -> Result<Join> {
    let sides = of_one_type(vec![join.left, join.right])?;
    [join.left, join.right] = sides
        .try_into()
        .map_err(|_| internal_datafusion_err!("a set operation of one side"))?;
    Ok(join)
}

/// The inputs, each with the same types: for every column the one that all its values fit in.
fn of_one_type(inputs: Vec<Arc<LogicalPlan>>) -> Result<Vec<Arc<LogicalPlan>>> {
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
                        as_column_of(column, to, &schema)?,
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
