//! Subqueries in expressions, before they become joins.
//!
//! DataFusion makes joins of subqueries: of EXISTS and IN in a filter, and of values in a filter or a select list.
//! Its joins have gaps, which are closed here, on typed plans:
//!
//! - They take the nullability of a value from the column inside. But a subquery that finds no row is NULL
//!   ([`OR_NULL`]).
//! - They know no ANY and ALL. These look at the least or the greatest of the values, or for a row (`AnyRow`).
//! - They group by what an aggregated subquery is correlated by, and have no group where there are no rows. So IN and
//!   EXISTS of a single group are values ([`of_single_groups`]).
//! - They call columns of a subquery by their bare names, and those of the query around it by their whole names,
//!   wherever either stands. So names that two columns share are replaced by new ones ([`with_own_names`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{
    Column, DFSchema, DataFusionError, ExprSchema, Result, ScalarValue, Spans,
    internal_datafusion_err, not_impl_err,
};
use datafusion_expr::expr::{
    Case, Exists, InSubquery, ScalarFunction, SetComparison, SetQuantifier,
};
use datafusion_expr::logical_plan::{Aggregate, Filter, JoinType, Projection, Subquery};
use datafusion_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion_expr::{Expr, ExprSchemable, FetchType, LogicalPlan, Operator, SkipType};
use datafusion_expr::{binary_expr, lit};

use super::choose::with_metadata;
use super::plan::{aggregate_call, schema_of_operands};
use crate::functions::{as_function, call};

/// `$or_null(subquery)`: the value of a subquery that may find no row, and then is NULL although its column is not.
const OR_NULL: &str = "$or_null";

/// What the column of a subquery is called that is searched or compared with, or computed for every row.
/// Decorrelation puts others beside it.
const FOUND: &str = "$found";
const VALUE: &str = "$value";

fn unknown_value() -> Expr {
    lit(ScalarValue::Boolean(None))
}

fn negate_if(negated: bool, condition: Expr) -> Expr {
    if negated { !condition } else { condition }
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// The values of subqueries that may find no row as values that may be NULL.
pub(super) fn with_nulls(expr: Expr) -> Result<Expr> {
    let nullable = expr.transform_down(|expr| match expr {
        Expr::ScalarFunction(function) if is_or_null(&function) => {
            let done = Expr::ScalarFunction(function);
            Ok(Transformed::new(done, false, TreeNodeRecursion::Jump))
        }
        Expr::ScalarSubquery(subquery) => {
            let gives_a_row = gives_a_row(&subquery.subquery)?;
            let subquery = Expr::ScalarSubquery(subquery);
            if gives_a_row {
                return Ok(Transformed::no(subquery));
            }
            // Not into the call, whose argument this would be again.
            let value = call(OR_NULL, vec![subquery]);
            Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(nullable.data)
}

fn is_or_null(function: &ScalarFunction) -> bool {
    as_function(&function.func).is_some_and(|known| known.name == OR_NULL)
}

/// The values of subqueries that have become columns, which tell themselves whether they may be NULL.
pub fn without_or_null(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::ScalarFunction(mut function)
            if is_or_null(&function)
                && !matches!(function.args.first(), Some(Expr::ScalarSubquery(_))) =>
        {
            let value = function.args.pop();
            let value = value.ok_or_else(|| internal_datafusion_err!("{OR_NULL} of nothing"))?;
            Ok(Transformed::yes(value))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// Whether a plan has a row, whatever the tables hold.
fn gives_a_row(plan: &LogicalPlan) -> Result<bool> {
    Ok(match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Values(values) => !values.values.is_empty(),
        LogicalPlan::Limit(limit) => {
            let fetch = limit.get_fetch_type()?;
            let takes_first = matches!(limit.get_skip_type()?, SkipType::Literal(0))
                && matches!(fetch, FetchType::Literal(None | Some(1..)));
            takes_first && gives_a_row(&limit.input)?
        }
        LogicalPlan::Sort(sort) => sort.fetch != Some(0) && gives_a_row(&sort.input)?,
        LogicalPlan::Projection(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Distinct(_) => match plan.inputs().first() {
            Some(input) => gives_a_row(input)?,
            None => false,
        },
        LogicalPlan::Union(union) => {
            let mut gives_any = false;
            for input in &union.inputs {
                gives_any |= gives_a_row(input)?;
            }
            gives_any
        }
        _ => false,
    })
}

/// An expression whose subqueries are all values: these become joins in a select list, too. EXISTS and IN count the
/// rows that they find, ANY and ALL look at the least or the greatest of the values.
pub fn as_values(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let valued = of_single_groups(expr)?.transform_up(|expr| match expr {
        Expr::InSubquery(in_subquery) => {
            let negated = in_subquery.negated;
            let is_in = AnyRow::from(in_subquery).into_value(schema)?;
            Ok(Transformed::yes(negate_if(negated, is_in)))
        }
        Expr::SetComparison(comparison) => {
            let negated = comparison.quantifier == SetQuantifier::All;
            let any = AnyRow::of_comparison(comparison)?.by_extremes()?;
            Ok(Transformed::yes(negate_if(negated, any)))
        }
        Expr::Exists(Exists { subquery, negated }) => {
            let rows = subquery.subquery.as_ref().clone();
            let exists = has_rows(rows, subquery.outer_ref_columns)?;
            Ok(Transformed::yes(negate_if(negated, exists)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    with_own_names(with_nulls(valued.data)?)
}

/// `x op ANY (SELECT y ...)`, which is IN if `op` is `=`. ALL is the opposite of ANY with the opposite comparison.
#[derive(Clone)]
struct AnyRow {
    x: Expr,
    op: Operator,
    subquery: Subquery,
}

impl From<InSubquery> for AnyRow {
    /// Whether it is negated is left to the caller.
    fn from(in_subquery: InSubquery) -> AnyRow {
        AnyRow {
            x: *in_subquery.expr,
            op: Operator::Eq,
            subquery: in_subquery.subquery,
        }
    }
}

impl AnyRow {
    /// Of ALL, what is to be denied.
    fn of_comparison(comparison: SetComparison) -> Result<AnyRow> {
        let op = match comparison.quantifier {
            SetQuantifier::Any => Some(comparison.op),
            SetQuantifier::All => comparison.op.negate(),
        };
        Ok(AnyRow {
            x: *comparison.expr,
            op: op.ok_or_else(|| internal_datafusion_err!("{} ALL", comparison.op))?,
            subquery: comparison.subquery,
        })
    }

    /// IN by the number of rows that are equal.
    fn into_value(self, schema: &DFSchema) -> Result<Expr> {
        let (outer_columns, x) = self.x_inside(schema)?;
        let (rows, y) = self.rows()?;
        let meeting = Filter::try_new(binary_expr(x, self.op, y), rows)?;
        let is_met = has_rows(LogicalPlan::Filter(meeting), outer_columns)?;
        Ok(match self.may_be_unknown(schema)? {
            true => is_met.or(self.is_unknown(schema)?.and(unknown_value())),
            false => is_met,
        })
    }

    /// The least or the greatest of the values, how many there are, and of how many rows, tell what is true of any.
    ///
    /// ```text
    ///   x > ANY (SELECT y ...)    COUNT(*) > 0 AND (x > MIN(y) OR COUNT(*) > COUNT(y) AND NULL)
    ///   x > ALL (SELECT y ...)    NOT (COUNT(*) > 0 AND (x <= MAX(y) OR COUNT(*) > COUNT(y) AND NULL))
    /// ```
    fn by_extremes(self) -> Result<Expr> {
        let extremes: &[&str] = match self.op {
            Operator::Gt | Operator::GtEq => &["min"],
            Operator::Lt | Operator::LtEq => &["max"],
            Operator::NotEq => &["min", "max"],
            op => return not_impl_err!("{op} ANY"),
        };
        let rows = self.subquery.subquery.as_ref();
        let y = Expr::Column(rows.schema().columns()[0].clone());
        let of_all = |aggregate: &str, argument: Expr| {
            let outer_columns = self.subquery.outer_ref_columns.clone();
            value_of_all(rows.clone(), outer_columns, aggregate, argument)
        };
        let mut is_one = lit(false);
        for (at, extreme) in extremes.iter().enumerate() {
            let comparison = binary_expr(self.x.clone(), self.op, of_all(extreme, y.clone())?);
            is_one = match at {
                0 => comparison,
                _ => is_one.or(comparison),
            };
        }
        let all_rows = of_all("count", lit(1i64))?;
        if rows.schema().field(0).is_nullable() {
            let may_be = all_rows.clone().gt(of_all("count", y)?);
            is_one = is_one.or(may_be.and(unknown_value()));
        }
        Ok(all_rows.gt(lit(0i64)).and(is_one))
    }

    /// x as it is called inside of the subquery, and what the subquery is correlated by with it.
    fn x_inside(&self, schema: &DFSchema) -> Result<(Vec<Expr>, Expr)> {
        let mut outer_columns = self.subquery.outer_ref_columns.clone();
        let x = self.x.clone().transform(|expr| {
            Ok(match expr {
                Expr::Column(column) => {
                    let field = Arc::clone(schema.field_from_column(&column)?);
                    let outer = Expr::OuterReferenceColumn(field, column);
                    outer_columns.push(outer.clone());
                    Transformed::yes(outer)
                }
                // Of a query further out.
                outer @ Expr::OuterReferenceColumn(..) => {
                    outer_columns.push(outer.clone());
                    Transformed::no(outer)
                }
                other => Transformed::no(other),
            })
        })?;
        Ok((outer_columns, x.data))
    }

    /// The rows of the subquery and their y. No column of the tables inside is among them: x may have the same name.
    fn rows(&self) -> Result<(Arc<LogicalPlan>, Expr)> {
        let rows = Arc::clone(&self.subquery.subquery);
        let (y, input) = match rows.as_ref() {
            LogicalPlan::Projection(projection) => {
                let y = projection.expr[0].clone().unalias();
                (y, Arc::clone(&projection.input))
            }
            _ => (Expr::Column(rows.schema().columns()[0].clone()), rows),
        };
        let rows = Projection::try_new(vec![y.alias(FOUND)], input)?;
        let y = Expr::Column(Column::new_unqualified(FOUND));
        Ok((Arc::new(LogicalPlan::Projection(rows)), y))
    }

    /// Whether NULL can make it unknown.
    fn may_be_unknown(&self, schema: &DFSchema) -> Result<bool> {
        let y = self.subquery.subquery.schema().field(0);
        Ok(y.is_nullable() || self.x.nullable(schema)?)
    }

    /// Whether it is unknown if it is not true: whether there is a y that is NULL, or x is NULL and there is any y.
    fn is_unknown(&self, schema: &DFSchema) -> Result<Expr> {
        let rows = self.subquery.subquery.as_ref();
        let outer_columns = &self.subquery.outer_ref_columns;
        let mut unknown = lit(false);
        if rows.schema().field(0).is_nullable() {
            let y = Expr::Column(rows.schema().columns()[0].clone());
            let without_value = Filter::try_new(y.is_null(), Arc::new(rows.clone()))?;
            unknown = has_rows(LogicalPlan::Filter(without_value), outer_columns.clone())?;
        }
        if self.x.nullable(schema)? {
            let x_is_null = self.x.clone().is_null();
            unknown = unknown.or(x_is_null.and(has_rows(rows.clone(), outer_columns.clone())?));
        }
        Ok(unknown)
    }
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
    value_of_row(column, LogicalPlan::Aggregate(aggregate), outer_ref_columns)
}

/// `(SELECT value FROM row)`.
fn value_of_row(value: Expr, row: LogicalPlan, outer_ref_columns: Vec<Expr>) -> Result<Expr> {
    let row = Projection::try_new(vec![value.alias(VALUE)], Arc::new(row))?;
    Ok(Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(LogicalPlan::Projection(row)),
        outer_ref_columns,
        spans: Spans::new(),
    }))
}

/// Correlated subqueries that aggregate without groups, as values of their one row and conditions on it. As joins, IN
/// and EXISTS would have no row where there is nothing to aggregate, and HAVING would be a condition on columns
/// without a table.
///
/// ```text
///   x IN (SELECT COUNT(*) FROM t WHERE k = o.k)    x = (SELECT COUNT(*) ...)
///   EXISTS (SELECT MAX(y) ... HAVING COUNT(*) > 1)  (SELECT COUNT(*) > 1 ...) IS TRUE
///   (SELECT MAX(y) ... HAVING COUNT(*) > 1)         CASE WHEN (SELECT COUNT(*) > 1 ...) THEN (SELECT MAX(y) ...) END
/// ```
fn of_single_groups(expr: Expr) -> Result<Expr> {
    let of_values = expr.transform_up(|expr| match expr {
        Expr::InSubquery(in_subquery) if is_correlated(&in_subquery.subquery) => {
            let Some(single) = SingleRow::of(&in_subquery.subquery)? else {
                return Ok(Transformed::no(Expr::InSubquery(in_subquery)));
            };
            let x = in_subquery.expr.as_ref().clone();
            let is_it = x.eq(single.value()?);
            let is_in = match single.is_there()? {
                Some(is_there) => is_there.and(is_it),
                None => is_it,
            };
            Ok(Transformed::yes(negate_if(in_subquery.negated, is_in)))
        }
        Expr::SetComparison(comparison) if is_correlated(&comparison.subquery) => {
            let Some(single) = SingleRow::of(&comparison.subquery)? else {
                return Ok(Transformed::no(Expr::SetComparison(comparison)));
            };
            let negated = comparison.quantifier == SetQuantifier::All;
            let any = AnyRow::of_comparison(comparison)?;
            let meets = binary_expr(any.x, any.op, single.value()?);
            let meets = match single.is_there()? {
                Some(is_there) => is_there.and(meets),
                None => meets,
            };
            Ok(Transformed::yes(negate_if(negated, meets)))
        }
        Expr::ScalarSubquery(subquery) if is_correlated(&subquery) => {
            let single = SingleRow::of(&subquery)?;
            let Some(is_there) = single
                .as_ref()
                .map(SingleRow::is_there)
                .transpose()?
                .flatten()
            else {
                return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
            };
            let value = single.map(|single| single.value()).transpose()?;
            let branches = value.map(|value| (Box::new(is_there), Box::new(value)));
            let case = Expr::Case(Case::new(None, branches.into_iter().collect(), None));
            let field = subquery.subquery.schema().field(0);
            Ok(Transformed::yes(with_metadata(case, field)))
        }
        Expr::Exists(exists) if is_correlated(&exists.subquery) => {
            let Some(single) = SingleRow::of(&exists.subquery)? else {
                return Ok(Transformed::no(Expr::Exists(exists)));
            };
            let is_there = single.is_there()?.unwrap_or_else(|| lit(true));
            Ok(Transformed::yes(negate_if(exists.negated, is_there)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(of_values.data)
}

/// The one row of a correlated subquery that aggregates without groups, and the conditions under which it is there
/// (HAVING).
struct SingleRow {
    row: LogicalPlan,
    conditions: Vec<Expr>,
    outer_ref_columns: Vec<Expr>,
}

impl SingleRow {
    fn of(subquery: &Subquery) -> Result<Option<SingleRow>> {
        let Some((row, conditions)) = single_row(&subquery.subquery)? else {
            return Ok(None);
        };
        Ok(Some(SingleRow {
            row,
            conditions,
            outer_ref_columns: subquery.outer_ref_columns.clone(),
        }))
    }

    fn value(&self) -> Result<Expr> {
        let value = Expr::Column(self.row.schema().columns()[0].clone());
        value_of_row(value, self.row.clone(), self.outer_ref_columns.clone())
    }

    /// `None`: it is there in any case.
    fn is_there(&self) -> Result<Option<Expr>> {
        let Some(condition) = conjunction(self.conditions.iter().cloned()) else {
            return Ok(None);
        };
        let outer_columns = self.outer_ref_columns.clone();
        Ok(Some(
            value_of_row(condition, self.row.clone(), outer_columns)?.is_true(),
        ))
    }
}

/// The row of an aggregate without groups, with what stands above it but for the conditions, which are columns then.
fn single_row(plan: &LogicalPlan) -> Result<Option<(LogicalPlan, Vec<Expr>)>> {
    Ok(match plan {
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            Some((plan.clone(), Vec::new()))
        }
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => single_row(&sort.input)?,
        LogicalPlan::Filter(filter) if !filter.predicate.contains_outer() => {
            single_row(&filter.input)?.map(|(row, mut conditions)| {
                conditions.push(filter.predicate.clone());
                (row, conditions)
            })
        }
        LogicalPlan::Projection(projection) => match single_row(&projection.input)? {
            Some((row, conditions)) => {
                let named = conditions.into_iter().enumerate();
                let name = |at: usize| format!("$condition{at}");
                let conditions: Vec<Expr> = named
                    .map(|(at, condition)| condition.alias(name(at)))
                    .collect();
                let columns = (0..conditions.len()).map(|at| Column::new_unqualified(name(at)));
                let columns = columns.map(Expr::Column).collect();
                let items = projection.expr.iter().cloned().chain(conditions);
                let row = Projection::try_new(items.collect(), Arc::new(row))?;
                Some((LogicalPlan::Projection(row), columns))
            }
            None => None,
        },
        _ => None,
    })
}

/// Gives the columns that correlated subqueries are compared by names of their own, where decorrelation would take
/// one for another: it calls them by their names without their tables.
///
/// ```text
///   EXISTS (SELECT 1 FROM b, c WHERE b.id = a.id AND c.id = a.k)
///   EXISTS (SELECT 1 FROM (SELECT *, b.id AS $own0, c.id AS $own1 FROM b, c) WHERE $own0 = a.id AND $own1 = a.k)
/// ```
fn with_own_names(expr: Expr) -> Result<Expr> {
    let named = expr.transform_up(|expr| {
        Ok(match expr {
            Expr::ScalarSubquery(subquery) => {
                Transformed::yes(Expr::ScalarSubquery(own_names(subquery)?))
            }
            Expr::Exists(Exists { subquery, negated }) => Transformed::yes(Expr::Exists(Exists {
                subquery: own_names(subquery)?,
                negated,
            })),
            Expr::InSubquery(in_subquery) => Transformed::yes(Expr::InSubquery(InSubquery {
                subquery: own_names(in_subquery.subquery)?,
                ..in_subquery
            })),
            other => Transformed::no(other),
        })
    })?;
    Ok(named.data)
}

fn own_names(subquery: Subquery) -> Result<Subquery> {
    if !is_correlated(&subquery) {
        return Ok(subquery);
    }
    let columns = subquery.subquery.schema().columns();
    let compared = Compared::by(&subquery.subquery)?;
    let is_taken = |column: &Column| {
        let mut others = compared
            .inner
            .iter()
            .chain(&columns)
            .chain(&compared.beside);
        compared.outer.contains(column)
            || others.any(|other| other.name == column.name && other != column)
    };
    let shared: Vec<&Column> = compared
        .inner
        .iter()
        .filter(|inner| is_taken(inner))
        .collect();
    if shared.is_empty() {
        return Ok(subquery);
    }
    let mut names = first_free_name(&subquery.subquery)?;
    let plan = renamed(subquery.subquery.as_ref().clone(), &shared, &mut names)?.data;
    let plan = match plan.schema().fields().len() == columns.len() {
        true => plan,
        // A filter at the top has let its further columns out.
        false => {
            let columns = columns.into_iter().map(Expr::Column).collect();
            LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?)
        }
    };
    Ok(subquery.with_plan(Arc::new(plan)))
}

/// What names of their own begin with; a number follows.
const OWN: &str = "$own";

/// The number of the first name of their own that the subqueries inside of a plan have not taken. Their columns come to
/// stand beside its own.
fn first_free_name(plan: &LogicalPlan) -> Result<usize> {
    let mut free = 0;
    plan.apply_with_subqueries(|node| {
        for field in node.schema().fields() {
            let number = field.name().strip_prefix(OWN).map(str::parse::<usize>);
            if let Some(Ok(number)) = number {
                free = free.max(number + 1);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(free)
}

/// What the filters of a subquery compare.
#[derive(Default)]
struct Compared {
    /// Columns of the subquery.
    inner: BTreeSet<Column>,
    /// With columns of the query around it.
    outer: BTreeSet<Column>,
    /// Columns without a table that may come to stand beside the inner ones.
    beside: BTreeSet<Column>,
}

impl Compared {
    fn by(plan: &LogicalPlan) -> Result<Compared> {
        let mut compared = Compared::default();
        plan.apply(|node| {
            if let LogicalPlan::Projection(projection) = node {
                let columns = projection.schema.columns().into_iter();
                let columns = columns.filter(|column| column.relation.is_none());
                compared.beside.extend(columns);
            }
            if let LogicalPlan::Filter(filter) = node {
                compared.add(&filter.predicate)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(compared)
    }

    fn add(&mut self, predicate: &Expr) -> Result<()> {
        for condition in split_conjunction(predicate) {
            if !condition.contains_outer() {
                continue;
            }
            self.inner
                .extend(condition.column_refs().into_iter().cloned());
            condition.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr {
                    self.outer.insert(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(())
    }
}

/// The plan whose filters compare columns outside of it with the shared ones by new names; `names` counts these.
fn renamed(
    plan: LogicalPlan,
    shared: &[&Column],
    names: &mut usize,
) -> Result<Transformed<LogicalPlan>> {
    let plan = plan.map_children(|input| renamed(input, shared, names))?;
    let plan = match plan.transformed {
        true => Transformed::yes(plan.data.recompute_schema()?),
        false => plan,
    };
    let filter = match plan.data {
        LogicalPlan::Filter(filter) if filter.predicate.contains_outer() => filter,
        data => return Ok(Transformed { data, ..plan }),
    };
    let mut new_names: Vec<(&Column, Column)> = Vec::new();
    for column in shared {
        if filter.input.schema().has_column(column) {
            new_names.push((column, Column::new_unqualified(format!("{OWN}{names}"))));
            *names += 1;
        }
    }
    let conditions = split_conjunction_owned(filter.predicate).into_iter();
    let conditions = conditions.map(|condition| match condition.contains_outer() {
        false => Ok(condition),
        true => {
            let condition = condition.transform(|expr| {
                let Expr::Column(column) = &expr else {
                    return Ok(Transformed::no(expr));
                };
                let mut known = new_names.iter();
                let new = known.find(|(shared, _)| *shared == column);
                Ok(match new {
                    Some((_, new)) => Transformed::yes(Expr::Column(new.clone())),
                    None => Transformed::no(expr),
                })
            });
            Ok(condition?.data)
        }
    });
    let conditions = conditions.collect::<Result<Vec<_>>>()?;
    let columns = filter
        .input
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column);
    let named = new_names.iter();
    let named = named.map(|(shared, new)| Expr::Column((*shared).clone()).alias(new.name.clone()));
    let input = Projection::try_new(columns.chain(named).collect(), filter.input)?;
    let predicate = conjunction(conditions).unwrap_or_else(|| lit(true));
    let filter = Filter::try_new(predicate, Arc::new(LogicalPlan::Projection(input)))?;
    Ok(Transformed::yes(LogicalPlan::Filter(filter)))
}

/// Whether the correlated conditions of a subquery may be pulled out of it, as decorrelation does without a check. They
/// may not pass a window, whose rows they select. Of an outer, semi, anti or mark join they may leave the preserved
/// side alone, of a full join neither side. They may not pass a group of all rows, except that of a value without a
/// HAVING that is correlated, too. ROLLUP has a group of all rows, also where there is none.
pub fn is_pulled_up(plan: &LogicalPlan, is_value: bool) -> Result<bool> {
    let (inputs, is_value) = match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::SubqueryAlias(_) => (plan.inputs(), is_value),
        LogicalPlan::Filter(filter) => {
            let is_value = is_value && !filter.predicate.contains_outer();
            (plan.inputs(), is_value)
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() && !is_value => {
            return Ok(!is_correlated_inside(plan)?);
        }
        LogicalPlan::Aggregate(aggregate) if has_sets(aggregate) => {
            return Ok(!is_correlated_inside(plan)?);
        }
        LogicalPlan::Window(_) => return Ok(!is_correlated_inside(plan)?),
        LogicalPlan::Join(join) => {
            let is_pulled = |input: &LogicalPlan| is_pulled_up(input, false);
            let is_plain =
                |input: &LogicalPlan| Ok::<bool, DataFusionError>(!is_correlated_inside(input)?);
            return Ok(match join.join_type {
                JoinType::Inner => is_pulled(&join.left)? && is_pulled(&join.right)?,
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                    is_pulled(&join.left)? && is_plain(&join.right)?
                }
                JoinType::Right
                | JoinType::RightSemi
                | JoinType::RightAnti
                | JoinType::RightMark => is_plain(&join.left)? && is_pulled(&join.right)?,
                JoinType::Full => is_plain(&join.left)? && is_plain(&join.right)?,
            });
        }
        _ => (plan.inputs(), false),
    };
    for input in inputs {
        if !is_pulled_up(input, is_value)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_sets(aggregate: &Aggregate) -> bool {
    matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)])
}

fn is_correlated_inside(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(node.contains_outer_reference()))
}

/// The columns that a subquery names of queries around it, those that subqueries in it name included.
pub fn outer_columns_of(subquery: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut columns: Vec<Expr> = Vec::new();
    subquery.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if matches!(expr, Expr::OuterReferenceColumn(..)) && !columns.contains(expr) {
                    columns.push(expr.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        let mut schema = None;
        node.apply_subqueries(|subquery| {
            let further = subquery.inputs().first().map(|plan| outer_columns_of(plan));
            for outer in further.transpose()?.into_iter().flatten() {
                let schema = match &mut schema {
                    Some(schema) => schema,
                    none => none.insert(schema_of_operands(node)?),
                };
                let is_of_node = matches!(&outer, Expr::OuterReferenceColumn(_, column)
                    if schema.has_column(column));
                if !is_of_node && !columns.contains(&outer) {
                    columns.push(outer);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(columns)
}

/// The plan of a subquery whose columns of the query around it have the types that this has now, `schema`.
pub(super) fn with_outer_fields(subquery: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    let with_fields = subquery.transform_down_with_subqueries(|node| {
        node.map_expressions(|expr| {
            expr.transform(|expr| {
                let Expr::OuterReferenceColumn(field, column) = expr else {
                    return Ok(Transformed::no(expr));
                };
                let at = schema.maybe_index_of_column(&column);
                let now = at
                    .map(|at| &schema.fields()[at])
                    .filter(|now| **now != field);
                let is_changed = now.is_some();
                let field = now.map_or(field, Arc::clone);
                let outer = Expr::OuterReferenceColumn(field, column);
                Ok(Transformed::new_transformed(outer, is_changed))
            })
        })
    })?;
    Ok(with_fields.data)
}
