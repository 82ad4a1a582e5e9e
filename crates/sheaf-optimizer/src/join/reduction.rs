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
//! Database System", SIGMOD 1994, for the case in which the set is a restricted table.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, NullEquality, Result, internal_err};
use datafusion_expr::{
    Aggregate, BinaryExpr, Expr, Join, JoinConstraint, JoinType, LogicalPlan, LogicalPlanBuilder,
};
use sheaf_exec::SheafTableSource;

use crate::access::table_reference::TableReference;
use crate::access::table_reference::table_column;
use crate::join::order::Input;
use crate::logical::join_graph::{JoinGraph, Predicate, RelationKind, plain_column};

/// A table restricts the join if its conditions leave no more than this share of its rows.
const MOST_SHARE: f64 = 0.1;

/// The plan of a derived table with a semijoin below its grouping; `None` if no table restricts it. Of the `inputs`,
/// the tables are known already.
pub(crate) fn reduced(
    graph: &JoinGraph<'_>,
    number: usize,
    inputs: &[Option<Input<'_>>],
) -> Result<Option<LogicalPlan>> {
    let relation = &graph.relations[number];
    if matches!(relation.kind, RelationKind::Anti { null_aware: true }) {
        return Ok(None);
    }
    let mut best: Option<(f64, usize, Column)> = None;
    for (output, column) in relation.columns.iter().enumerate() {
        let Some((aggregate, _)) = grouped_column(relation.plan, output) else {
            continue;
        };
        let grouped_rows = stored_rows(&aggregate.input)?;
        for equal in equal_columns(graph, number, column) {
            let other = graph.relation_of(&equal)?;
            let Some(Some(Input::Table(table))) = inputs.get(other) else {
                continue;
            };
            let is_fewer = best.as_ref().is_none_or(|(rows, ..)| table.rows < *rows);
            if is_fewer
                && table.table_rows <= grouped_rows
                && restricts(graph, other, table, &equal)
                && same_type(graph, number, column, &equal)?
            {
                best = Some((table.rows, output, equal));
            }
        }
    }
    let Some((_, output, wanted)) = best else {
        return Ok(None);
    };
    let other = &graph.relations[graph.relation_of(&wanted)?];
    let Some(position) = other.columns.iter().position(|own| *own == wanted) else {
        return internal_err!("column {wanted} got lost");
    };
    let column = Expr::Column(Column::from(other.plan.schema().qualified_field(position)));
    let keys = LogicalPlanBuilder::from(other.plan.clone())
        .project([column])?
        .build()?;
    with_semijoin(relation.plan, output, &Arc::new(keys)).map(Some)
}

/// The grouping whose groups an output column of a plan tells apart, and the column that it groups by.
fn grouped_column(plan: &LogicalPlan, output: usize) -> Option<(&Aggregate, &Column)> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => {
            Some((aggregate, plain_column(aggregate.group_expr.get(output)?)?))
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

/// `plan` with `keys`, a plan of one column, joined below its grouping.
fn with_semijoin(
    plan: &LogicalPlan,
    output: usize,
    keys: &Arc<LogicalPlan>,
) -> Result<LogicalPlan> {
    if let LogicalPlan::Aggregate(aggregate) = plan {
        let Some((_, column)) = grouped_column(plan, output) else {
            return internal_err!("a group that is no column");
        };
        let key = Column::from(keys.schema().qualified_field(0));
        let join = Join::try_new(
            Arc::clone(&aggregate.input),
            Arc::clone(keys),
            vec![(Expr::Column(column.clone()), Expr::Column(key))],
            None,
            JoinType::LeftSemi,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?;
        return Ok(LogicalPlan::Aggregate(Aggregate::try_new_with_schema(
            Arc::new(LogicalPlan::Join(join)),
            aggregate.group_expr.clone(),
            aggregate.aggr_expr.clone(),
            Arc::clone(&aggregate.schema),
        )?));
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

/// Columns that have the same value as `column`, of relation `number`, in every row that the joins put out.
fn equal_columns(graph: &JoinGraph<'_>, number: usize, column: &Column) -> BTreeSet<Column> {
    // What a row must satisfy to be put out: the predicates, and that its semijoins find something.
    let is_semi = |kind: &RelationKind| *kind == RelationKind::Semi;
    let semijoins = graph.relations.iter().filter(|one| is_semi(&one.kind));
    let always = graph
        .predicates
        .iter()
        .chain(semijoins.flat_map(|relation| &relation.on));
    let pairs: Vec<(&Column, &Column)> = always.filter_map(equal_pair).collect();
    // Which rows of the relation itself matter is said by its own condition, whichever way it is joined.
    let own = graph.relations[number].on.iter().filter_map(equal_pair);
    let mut found = BTreeSet::new();
    let mut open: Vec<&Column> = vec![column];
    let first: Vec<(&Column, &Column)> = own.chain(pairs.iter().copied()).collect();
    let mut known = first.as_slice();
    while let Some(column) = open.pop() {
        for (a, b) in known {
            for (one, other) in [(*a, *b), (*b, *a)] {
                if one == column && found.insert(other.clone()) {
                    open.push(other);
                }
            }
        }
        known = &pairs;
    }
    found
}

/// The columns that a condition says to be equal, and not NULL.
fn equal_pair(predicate: &Predicate) -> Option<(&Column, &Column)> {
    predicate.sides.filter(|_| !predicate.null_equals_null)?;
    let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = &predicate.expr else {
        return None;
    };
    Some((left.try_as_col()?, right.try_as_col()?))
}

/// Whether a table's conditions leave few of its rows, in which a column, a key of the table, has the same value only
/// once.
fn restricts(
    graph: &JoinGraph<'_>,
    relation: usize,
    table: &TableReference<'_>,
    column: &Column,
) -> bool {
    let relation = &graph.relations[relation];
    let Some(column) = table_column(relation, table, column) else {
        return false;
    };
    let definition = &table.table.definition;
    let mut keys = std::iter::once(&definition.primary).chain(&definition.secondary);
    let is_key = keys.any(|key| {
        let is_column =
            |part: &sheaf_table::IndexPart| part.column == column && part.prefix_length.is_none();
        (key.unique || key.primary) && key.parts.len() == 1 && key.parts.iter().all(is_column)
    });
    let always_the_same = table
        .filters
        .iter()
        .all(|filter| !filter.expr.is_volatile());
    matches!(relation.kind, RelationKind::Inner | RelationKind::Semi)
        && table.rows <= MOST_SHARE * table.table_rows
        && is_key
        && always_the_same
}

/// Whether two columns of the graph have one type, so that being equal is being the same.
fn same_type(graph: &JoinGraph<'_>, number: usize, one: &Column, other: &Column) -> Result<bool> {
    let type_of = |relation: usize, column: &Column| {
        let relation = &graph.relations[relation];
        let position = relation.columns.iter().position(|own| own == column)?;
        Some(relation.plan.schema().field(position).data_type().clone())
    };
    let one = type_of(number, one);
    Ok(one.is_some() && one == type_of(graph.relation_of(other)?, other))
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
