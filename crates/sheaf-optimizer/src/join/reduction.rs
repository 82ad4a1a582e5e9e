//! Groups that a join will not ask for are not made.
//!
//! A correlated subquery that aggregates becomes a derived table with a group for every value that it is correlated by.
//! Of these the join often wants few:
//!
//! ```text
//!   part, one brand and container: 20 rows
//!     |-- p_partkey = l_partkey -- lineitem
//!     '-- p_partkey = l_partkey -- SELECT l_partkey, AVG(l_quantity) FROM lineitem GROUP BY l_partkey    20,000 groups
//! ```
//!
//! So a semijoin with the table that restricts the join most is put below the grouping, `... WHERE l_partkey IN (SELECT
//! p_partkey FROM part WHERE ...)`, and then an index may find the rows of the 20 groups. Rows of the derived table
//! that no other row of the join can match are irrelevant whichever way it is joined: they are not delivered, and they
//! hide no other row. This is the "magic set" of Mumick and Pirahesh, "Implementation of Magic-sets in a Relational
//! Database System", SIGMOD 1994, for the case in which the set is what one table has.
//!
//! The same holds of a window function that has a window for each such value, as the first rows for each row of a query
//! are found by:
//!
//! ```text
//!   o, LATERAL (SELECT v FROM t WHERE t.g = o.g ORDER BY v DESC LIMIT 2)
//!     =  o.g = g -- SELECT g, v, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v DESC) n FROM t      where n <= 2
//! ```
//!
//! A table is such a set if its conditions leave little of it, or if it has far fewer rows than there are groups. What
//! is compared with the groups may be an expression over its columns:
//!
//! ```text
//!   (SELECT MAX(x) FROM t WHERE t.id = o.a + 1)      the groups of  t.id IN (SELECT DISTINCT a + 1 FROM o)
//! ```

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, NullEquality, Result, internal_err};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, Join, JoinConstraint, JoinType, LogicalPlan,
    LogicalPlanBuilder, Window,
};
use sheaf_exec::SheafTableSource;
use sheaf_exec::aggregates::aggregate_function;
use sheaf_exec::functions::collation::collation_key;
use sheaf_types::Collation;

use crate::PlannerContext;
use crate::access::table_reference::TableReference;
use crate::access::table_reference::table_column;
use crate::join::order::Input;
use crate::logical::join_graph::{JoinGraph, Predicate, RelationKind, plain_column};
use crate::logical::semantics;

/// A table restricts the join if its conditions leave no more than this share of its rows.
const MOST_SHARE: f64 = 0.1;

/// A table is small beside a grouping if there are so many groups for each of its rows.
const GROUPS_PER_ROW: f64 = 10.0;

/// The groups or windows of a derived table, and what some column of it tells them apart by.
struct Grouped<'p> {
    /// The rows that are grouped.
    input: &'p LogicalPlan,
    /// Over these: a column, or one under a cast or a collation key.
    key: &'p Expr,
    /// Something is computed of the rows of each.
    computes: bool,
}

/// A semijoin that may be put below the grouping.
struct Candidate {
    rows: f64,
    /// The derived table's column.
    output: usize,
    other: usize,
    /// The value over the other relation's own columns.
    value: Expr,
    /// It has no duplicates there.
    is_unique: bool,
}

/// The plan of a derived table with a semijoin below its grouping; `None` if no table restricts it. Of the `inputs`,
/// the tables are known already.
pub(crate) fn reduced(
    graph: &JoinGraph<'_>,
    number: usize,
    inputs: &[Option<Input<'_>>],
    context: &PlannerContext,
) -> Result<Option<LogicalPlan>> {
    let relation = &graph.relations[number];
    if matches!(relation.kind, RelationKind::Anti { null_aware: true }) {
        return Ok(None);
    }
    let mut best: Option<Candidate> = None;
    for (output, column) in relation.columns.iter().enumerate() {
        let Some(grouped) = grouped_column(relation.plan, output) else {
            continue;
        };
        let grouped_rows = stored_rows(grouped.input)?;
        for equal in equal_values(graph, number, column) {
            let Some((other, value)) = own_value(graph, number, output, &equal)? else {
                continue;
            };
            let Some(Some(Input::Table(table))) = inputs.get(other) else {
                continue;
            };
            let is_fewer = best.as_ref().is_none_or(|best| table.rows < best.rows);
            if !is_fewer || table.table_rows > grouped_rows || !is_repeatable(graph, other, table) {
                continue;
            }
            let is_unique = is_key(graph, other, table, &equal);
            let restricts = is_unique && table.rows <= MOST_SHARE * table.table_rows;
            if restricts || is_small(table, &grouped, context)? {
                best = Some(Candidate {
                    rows: table.rows,
                    output,
                    other,
                    value,
                    is_unique,
                });
            }
        }
    }
    let Some(best) = best else {
        return Ok(None);
    };
    let other = graph.relations[best.other].plan;
    let keys = match semantics::collation_key(&best.value) {
        Some((text, collation)) => Keys::of_texts(other, &best.value, text, collation)?,
        None => Keys::of_values(other, best.value, best.is_unique)?,
    };
    with_semijoin(relation.plan, best.output, &keys).map(Some)
}

/// What the semijoin's other side calls a value that it computes.
const KEY: &str = "key";

/// What it calls one of the texts that are equal. No column is called like this.
const TEXT: &str = "$text";

/// The semijoin's other side.
struct Keys {
    plan: Arc<LogicalPlan>,
    /// What is compared, over the plan.
    value: Expr,
    /// No two rows have the same.
    are_distinct: bool,
}

impl Keys {
    fn of_values(plan: &LogicalPlan, value: Expr, is_unique: bool) -> Result<Keys> {
        let plan = LogicalPlanBuilder::from(plan.clone());
        let value = match value {
            column @ Expr::Column(_) => [column],
            computed => [computed.alias(KEY)],
        };
        let plan = match is_unique {
            true => plan.project(value)?,
            false => plan.aggregate(value, Vec::<Expr>::new())?,
        };
        let plan = plan.build()?;
        Ok(Keys {
            value: Expr::Column(Column::from(plan.schema().qualified_field(0))),
            plan: Arc::new(plan),
            are_distinct: false,
        })
    }

    /// Of texts that are equal by a collation one is kept, because an index is looked up by texts.
    fn of_texts(plan: &LogicalPlan, key: &Expr, text: &Expr, collation: Collation) -> Result<Keys> {
        let Some(any_value) = aggregate_function("any_value") else {
            return internal_err!("any_value is not registered");
        };
        let text = AggregateFunction::new_udf(
            any_value,
            vec![text.clone()],
            false,
            None,
            Vec::new(),
            None,
        );
        let text = Expr::AggregateFunction(text).alias(TEXT);
        let plan = LogicalPlanBuilder::from(plan.clone())
            .aggregate([key.clone().alias(KEY)], [text])?
            .project([Expr::Column(Column::new_unqualified(TEXT))])?
            .build()?;
        let text = Expr::Column(Column::new_unqualified(TEXT));
        Ok(Keys {
            value: collation_key(text, collation),
            plan: Arc::new(plan),
            are_distinct: true,
        })
    }
}

/// The grouping whose groups an output column of a plan tells apart, and by what.
fn grouped_column(plan: &LogicalPlan, output: usize) -> Option<Grouped<'_>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => {
            let key = without_alias(aggregate.group_expr.get(output)?);
            let computed = computed_by(&aggregate.input, key)?;
            is_column(computed).then_some(Grouped {
                input: &aggregate.input,
                key,
                computes: !aggregate.aggr_expr.is_empty(),
            })
        }
        LogicalPlan::Window(window) => {
            let key = window_key(window, output)?;
            let computed = computed_by(&window.input, key)?;
            is_column(computed).then_some(Grouped {
                input: &window.input,
                key,
                computes: true,
            })
        }
        LogicalPlan::SubqueryAlias(alias) => grouped_column(&alias.input, output),
        // HAVING, which looks at one group at a time.
        LogicalPlan::Filter(filter) => grouped_column(&filter.input, output),
        LogicalPlan::Projection(projection) => {
            let column = plain_column(projection.expr.get(output)?)?;
            let position = projection.input.schema().index_of_column(column).ok()?;
            grouped_column(&projection.input, position)
        }
        _ => None,
    }
}

/// The column of a window's input that an output column hands on, if no window has rows with different values of it.
fn window_key(window: &Window, output: usize) -> Option<&Expr> {
    let (qualifier, field) = window.schema.iter().nth(output)?;
    let is_handed_on = output < window.input.schema().fields().len();
    let is_key = |expr: &&Expr| {
        expr.try_as_col().is_some_and(|column| {
            column.relation.as_ref() == qualifier && column.name == *field.name()
        })
    };
    let mut keys = window.window_expr.iter().map(|function| {
        let Expr::WindowFunction(function) = without_alias(function) else {
            return None;
        };
        function.params.partition_by.iter().find(is_key)
    });
    let first = keys.next()??;
    (is_handed_on && keys.all(|key| key.is_some())).then_some(first)
}

fn without_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => without_alias(&alias.expr),
        other => other,
    }
}

/// A column, or one under a cast or a collation key.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => matches!(*cast.expr, Expr::Column(_)),
        other => matches!(semantics::key_argument(other), Some(Expr::Column(_))),
    }
}

/// What a projection right below computes `expr` by, if that is a column of it.
fn computed_by<'p>(input: &'p LogicalPlan, expr: &'p Expr) -> Option<&'p Expr> {
    match (input, expr) {
        (LogicalPlan::Projection(projection), Expr::Column(column)) => {
            let position = projection.schema.index_of_column(column).ok()?;
            Some(without_alias(projection.expr.get(position)?))
        }
        _ => Some(expr),
    }
}

/// `plan` with `keys` joined below its grouping.
fn with_semijoin(plan: &LogicalPlan, output: usize, keys: &Keys) -> Result<LogicalPlan> {
    if let LogicalPlan::Aggregate(aggregate) = plan {
        let Some(grouped) = grouped_column(plan, output) else {
            return internal_err!("a group that is no column");
        };
        let input = semijoined(&aggregate.input, grouped.key, keys)?;
        return Ok(LogicalPlan::Aggregate(Aggregate::try_new_with_schema(
            Arc::new(input),
            aggregate.group_expr.clone(),
            aggregate.aggr_expr.clone(),
            Arc::clone(&aggregate.schema),
        )?));
    }
    if let LogicalPlan::Window(window) = plan {
        let Some(key) = window_key(window, output) else {
            return internal_err!("a window that is no column's");
        };
        let input = semijoined(&window.input, key, keys)?;
        return plan.with_new_exprs(plan.expressions(), vec![input]);
    }
    let (input, output) = match plan {
        LogicalPlan::Projection(projection) => {
            let column = projection.expr.get(output).and_then(plain_column);
            let position = column.map(|column| projection.input.schema().index_of_column(column));
            let Some(position) = position.transpose()? else {
                return internal_err!("a group that is no column");
            };
            (&projection.input, position)
        }
        LogicalPlan::SubqueryAlias(alias) => (&alias.input, output),
        LogicalPlan::Filter(filter) => (&filter.input, output),
        _ => return internal_err!("a plan without a grouping"),
    };
    let input = with_semijoin(input, output, keys)?;
    plan.with_new_exprs(plan.expressions(), vec![input])
}

/// The rows of `input` whose `value` is among `keys`. Below a projection that computes the value, where an index can
/// find them.
fn semijoined(input: &LogicalPlan, value: &Expr, keys: &Keys) -> Result<LogicalPlan> {
    if let (LogicalPlan::Projection(projection), Expr::Column(_)) = (input, value)
        && let Some(computed) = computed_by(input, value)
        && is_column(computed)
    {
        let below = semijoined(&projection.input, computed, keys)?;
        return input.with_new_exprs(input.expressions(), vec![below]);
    }
    // With distinct keys an inner join keeps the same rows, and may begin with the keys.
    let join_type = match keys.are_distinct {
        true => JoinType::Inner,
        false => JoinType::LeftSemi,
    };
    let join = LogicalPlan::Join(Join::try_new(
        Arc::new(input.clone()),
        Arc::clone(&keys.plan),
        vec![(value.clone(), keys.value.clone())],
        None,
        join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNothing,
        false,
    )?);
    if !keys.are_distinct {
        return Ok(join);
    }
    let columns = input.schema().columns().into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(join).project(columns)?.build()
}

/// What has the same value as `column`, of relation `number`, in every row that the joins put out.
fn equal_values(graph: &JoinGraph<'_>, number: usize, column: &Column) -> Vec<Expr> {
    // What a row must satisfy to be put out: the predicates, and that its semijoins find something.
    let is_semi = |kind: &RelationKind| *kind == RelationKind::Semi;
    let semijoins = graph.relations.iter().filter(|one| is_semi(&one.kind));
    let always = graph
        .predicates
        .iter()
        .chain(semijoins.flat_map(|relation| &relation.on));
    let pairs: Vec<(&Expr, &Expr)> = always.filter_map(equal_pair).collect();
    // Which rows of the relation itself matter is said by its own condition, whichever way it is joined.
    let own = graph.relations[number].on.iter().filter_map(equal_pair);
    let mut found: Vec<Expr> = Vec::new();
    let mut open = vec![Expr::Column(column.clone())];
    let first: Vec<(&Expr, &Expr)> = own.chain(pairs.iter().copied()).collect();
    let mut known = first.as_slice();
    while let Some(value) = open.pop() {
        for (a, b) in known {
            for (one, other) in [(*a, *b), (*b, *a)] {
                if *one == value && !found.contains(other) {
                    found.push(other.clone());
                    open.push(other.clone());
                }
            }
        }
        known = &pairs;
    }
    found
}

/// What a condition says to be equal, and not NULL.
fn equal_pair(predicate: &Predicate) -> Option<(&Expr, &Expr)> {
    predicate.sides.filter(|_| !predicate.null_equals_null)?;
    match &predicate.expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) if !predicate.expr.is_volatile() => {
            Some((left, right))
        }
        _ => None,
    }
}

/// The one relation that a value equal to column `output` of relation `number` is computed from, and the value over the
/// columns of its plan; `None` if there is not one, or if being equal may not be being the same.
fn own_value(
    graph: &JoinGraph<'_>,
    number: usize,
    output: usize,
    value: &Expr,
) -> Result<Option<(usize, Expr)>> {
    let relations: Vec<usize> = graph.relations_of(value)?.iter().collect();
    let [other] = relations.as_slice() else {
        return Ok(None);
    };
    let relation = &graph.relations[*other];
    let schema = relation.plan.schema();
    let mut is_lost = *other == number;
    let own = value.clone().transform(|expr| {
        let Expr::Column(column) = &expr else {
            return Ok(Transformed::no(expr));
        };
        let position = relation.columns.iter().position(|own| own == column);
        let Some(position) = position else {
            is_lost = true;
            return Ok(Transformed::no(expr));
        };
        let column = Column::from(schema.qualified_field(position));
        Ok(Transformed::yes(Expr::Column(column)))
    })?;
    if is_lost {
        return Ok(None);
    }
    let grouped = graph.relations[number].plan.schema().field(output);
    let is_same = own.data.get_type(schema)? == *grouped.data_type();
    Ok(is_same.then_some((*other, own.data)))
}

/// Whether a table has every row that the join wants a group for, each time that it is read.
fn is_repeatable(graph: &JoinGraph<'_>, relation: usize, table: &TableReference<'_>) -> bool {
    let kind = &graph.relations[relation].kind;
    let mut filters = table.filters.iter();
    matches!(kind, RelationKind::Inner | RelationKind::Semi)
        && filters.all(|filter| !filter.expr.is_volatile())
}

/// Whether a value is a column that is a key of a table.
fn is_key(
    graph: &JoinGraph<'_>,
    relation: usize,
    table: &TableReference<'_>,
    value: &Expr,
) -> bool {
    let relation = &graph.relations[relation];
    let column = value.try_as_col();
    let Some(column) = column.and_then(|column| table_column(relation, table, column)) else {
        return false;
    };
    let definition = &table.table.definition;
    let mut keys = std::iter::once(&definition.primary).chain(&definition.secondary);
    keys.any(|key| {
        let is_column =
            |part: &sheaf_table::IndexPart| part.column == column && part.prefix_length.is_none();
        (key.unique || key.primary) && key.parts.len() == 1 && key.parts.iter().all(is_column)
    })
}

/// Whether a table has far fewer rows than there are groups.
fn is_small(
    table: &TableReference<'_>,
    grouped: &Grouped<'_>,
    context: &PlannerContext,
) -> Result<bool> {
    // Distinct values alone may be the other side of such a semijoin already, which has no end.
    if !grouped.computes {
        return Ok(false);
    }
    let key = computed_by(grouped.input, grouped.key).unwrap_or(grouped.key);
    let groups = match semantics::compared_column(key) {
        Some(column) => distinct_values(grouped.input, column, context)?,
        None => None,
    };
    Ok(groups.is_some_and(|groups| table.rows * GROUPS_PER_ROW <= groups))
}

/// Distinct values of the table's column that is `column` in, or right below, a plan.
fn distinct_values(
    plan: &LogicalPlan,
    column: &Column,
    context: &PlannerContext,
) -> Result<Option<f64>> {
    let mut found = None;
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = scan.source.downcast_ref::<SheafTableSource>()
            && scan
                .projected_schema
                .maybe_index_of_column(column)
                .is_some()
            && let Some(position) = source.table.definition.position_in_plan(&column.name)
        {
            let table = TableReference::new(scan, source, context)?;
            found = Some(table.distinct(position)?);
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Rows of the tables that a plan reads, all together.
fn stored_rows(plan: &LogicalPlan) -> Result<f64> {
    let mut rows = 0.0;
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = scan.source.downcast_ref::<SheafTableSource>()
        {
            rows += source.table.clustered.statistics().entries as f64;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(rows)
}
