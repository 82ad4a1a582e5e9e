//! A semijoin with few values is a join with the distinct ones.
//!
//! A semijoin keeps rows of the tables before it, so those are read first, and whole if nothing else restricts them:
//!
//! ```text
//!   n WHERE id IN (SELECT MAX(id) FROM n GROUP BY x)       1,000 values, 1,000,000 rows of n
//!
//!   n, each row looked for among the values                reads 1,000,000 rows
//!   the distinct values, each looked up in n               reads 1,000 rows
//! ```
//!
//! With its duplicates removed, the inner side matches a row once, and then an inner join leaves the same rows. That
//! one may begin with either side. What is paid for is a hash table of the values, which a semijoin makes anyway.
//! (MySQL calls this materialization with a scan.)

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::{BinaryExpr, Expr};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column as PhysicalColumn;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::cost::grouping::grouping_us;
use crate::explain::notes::{About, Note};
use crate::hints::may_be_semijoin;
use crate::join::order::Input;
use crate::logical::join_graph::{JoinGraph, Relation, RelationKind, RelationSet};
use crate::physical::planner::Planner;
use crate::planned::Planned;

/// How many rows a table must have for each value of the semijoin.
const ROWS_PER_VALUE: f64 = 4.0;

/// Turns semijoins into inner joins with the distinct rows of their inner side, where these are few.
pub(crate) fn join_distinct_rows(
    planner: &mut Planner<'_>,
    graph: &mut JoinGraph<'_>,
    inputs: &mut [Input<'_>],
) -> Result<()> {
    for number in 0..graph.relations.len() {
        let relation = &graph.relations[number];
        let Input::Derived(planned) = &inputs[number] else {
            continue;
        };
        let outer_rows = relation.needs.iter().map(|needed| match &inputs[needed] {
            Input::Table(table) => table.rows,
            Input::Derived(planned) => planned.rows,
        });
        let is_few = planned.rows * ROWS_PER_VALUE <= outer_rows.fold(0.0, f64::max);
        if relation.kind != RelationKind::Semi
            || !is_few
            || !is_equal_as_a_whole(relation, number)
            || !may_be_semijoin(relation.plan, &planner.context.settings.switch)?
        {
            continue;
        }
        let distinct = distinct(planner, relation, planned)?;
        inputs[number] = Input::Derived(distinct);
        let relation = &mut graph.relations[number];
        relation.kind = RelationKind::Inner;
        relation.needs = RelationSet::default();
        let condition = std::mem::take(&mut relation.on);
        graph.predicates.extend(condition);
    }
    Ok(())
}

/// Whether the condition is that each column of the relation equals something else: rows of it that match the same
/// are the same.
fn is_equal_as_a_whole(relation: &Relation<'_>, number: usize) -> bool {
    let own = RelationSet::one(number);
    let mut equal = vec![false; relation.columns.len()];
    for predicate in &relation.on {
        let (
            Some((left_relations, right_relations)),
            Expr::BinaryExpr(BinaryExpr { left, right, .. }),
        ) = (predicate.sides, &predicate.expr)
        else {
            return false;
        };
        let inner = match (left_relations == own, right_relations == own) {
            (true, false) => left,
            (false, true) => right,
            _ => return false,
        };
        let column = inner.try_as_col();
        let position =
            column.and_then(|column| relation.columns.iter().position(|own| own == column));
        match position {
            Some(position) if !predicate.null_equals_null => equal[position] = true,
            _ => return false,
        }
    }
    // Of strings and floating point numbers, different ones may be equal.
    let is_same_if_equal = |data_type: &DataType| {
        data_type.is_integer()
            || matches!(
                data_type,
                DataType::Boolean
                    | DataType::Decimal128(..)
                    | DataType::Decimal256(..)
                    | DataType::Date32
                    | DataType::Timestamp(..)
            )
    };
    let fields = relation.plan.schema().fields();
    let mut columns = equal.iter().zip(fields.iter());
    !equal.is_empty()
        && columns.all(|(is_equal, field)| *is_equal && is_same_if_equal(field.data_type()))
}

/// The rows of `planned` without duplicates.
fn distinct(
    planner: &mut Planner<'_>,
    relation: &Relation<'_>,
    planned: &Planned,
) -> Result<Planned> {
    let schema = planned.plan.schema();
    let columns = schema.fields().iter().enumerate().map(|(position, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(PhysicalColumn::new(field.name(), position));
        (column, field.name().clone())
    });
    let groups = PhysicalGroupBy::new_single(columns.collect());
    let aggregate =
        |mode, groups, input: Arc<dyn ExecutionPlan>| -> Result<Arc<dyn ExecutionPlan>> {
            let (no_functions, no_filters) = (Vec::new(), Vec::new());
            let schema = Arc::clone(&schema);
            let aggregate =
                AggregateExec::try_new(mode, groups, no_functions, no_filters, input, schema)?;
            Ok(Arc::new(aggregate))
        };
    let partitions = planned.plan.output_partitioning().partition_count();
    let input = Arc::clone(&planned.plan);
    let plan = if partitions == 1 {
        aggregate(AggregateMode::Single, groups, input)?
    } else {
        let last_groups = groups.as_final();
        let first = aggregate(AggregateMode::Partial, groups, input)?;
        aggregate(AggregateMode::FinalPartitioned, last_groups, first)?
    };
    let constants = &planner.context.settings.costs;
    let cost_us = planned.cost_us + grouping_us(constants, planned.rows, true, 0, partitions);
    planner.note_kept(planned.rows);
    let keys = relation.columns.iter().cloned().map(Expr::Column);
    let note = Note {
        rows: planned.rows,
        cost_us,
        about: About::Groups {
            keys: keys.collect(),
            functions: Vec::new(),
        },
    };
    let (_, plan) = planner.notes.add(&plan, note)?;
    Ok(Planned {
        plan,
        cost_us,
        rows: planned.rows,
        risk: planned.risk,
        explain: planned.explain.clone(),
    })
}
