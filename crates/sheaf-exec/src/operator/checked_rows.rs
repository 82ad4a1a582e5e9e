//! Checks rows of a plan against what its last operator promises of them, where that is [asked for](is_asked_for).
//!
//! A reader of the rows relies on declared facts: a column declared never NULL has no NULL, and sorted rows are sorted.
//! The optimizer leaves conditions and sorts out because of them. An operator that breaks its promise shows here, in
//! every test that runs a statement through it, and not as a missing row somewhere else.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, RecordBatch, make_comparator};
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_types::error::codes;

use crate::functions::error::EvaluationError;
use crate::operator::grace_join::GraceJoinExec;
use crate::operator::shared_exec::is_repeatable;

/// The environment variable that asks for checks of plans and of their rows, in tests.
pub const CHECK_PLANS: &str = "SHEAF_CHECK_PLANS";

/// In builds with debug assertions, and where [`CHECK_PLANS`] is set.
pub fn is_asked_for() -> bool {
    static IS_SET: LazyLock<bool> = LazyLock::new(|| std::env::var_os(CHECK_PLANS).is_some());
    cfg!(debug_assertions) || *IS_SET
}

/// What a plan promises of its rows, and the last of them so far.
pub struct CheckedRows {
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    order: Vec<PhysicalSortExpr>,
    last: Vec<ArrayRef>,
}

impl CheckedRows {
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> CheckedRows {
        // Several streams are merged in any order.
        let is_one_stream = plan.output_partitioning().partition_count() == 1;
        let order = plan
            .output_ordering()
            .filter(|_| is_one_stream && !has_union(plan));
        CheckedRows {
            plan: Arc::clone(plan),
            schema: plan.schema(),
            order: order.map_or_else(Vec::new, known_again),
            last: Vec::new(),
        }
    }

    /// The next rows.
    pub fn check(&mut self, batch: &RecordBatch) -> Result<()> {
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            if !field.is_nullable() && column.logical_null_count() > 0 {
                return Err(self.broken(format_args!(
                    "it delivers NULL in the column {}, which is never NULL",
                    field.name()
                )));
            }
        }
        if self.order.is_empty() || batch.num_rows() == 0 {
            return Ok(());
        }
        let keys = self.order.iter().map(|sort| {
            let values = sort.expr.evaluate(batch)?;
            values.into_array(batch.num_rows())
        });
        let keys = keys.collect::<Result<Vec<ArrayRef>>>()?;
        let first = std::mem::take(&mut self.last);
        let is_sorted = (first.is_empty() || self.are_in_order(&first, &keys, [(0, 0)])?)
            && self.are_in_order(
                &keys,
                &keys,
                (1..batch.num_rows()).map(|row| (row - 1, row)),
            )?;
        if !is_sorted && !has_lost_order(&self.plan) {
            let order: Vec<String> = self.order.iter().map(ToString::to_string).collect();
            let order = order.join(", ");
            return Err(self.broken(format_args!("its rows do not come in the order of {order}")));
        }
        let end = batch.num_rows() - 1;
        self.last = keys.iter().map(|key| key.slice(end, 1)).collect();
        Ok(())
    }

    fn broken(&self, what: std::fmt::Arguments<'_>) -> DataFusionError {
        let message = format!("{} breaks its promise: {what}", self.plan.name());
        DataFusionError::External(Box::new(EvaluationError::new(
            codes::UNKNOWN_ERROR,
            message,
        )))
    }

    fn are_in_order(
        &self,
        before: &[ArrayRef],
        after: &[ArrayRef],
        rows: impl IntoIterator<Item = (usize, usize)>,
    ) -> Result<bool> {
        let mut comparators = Vec::with_capacity(self.order.len());
        for ((before, after), sort) in before.iter().zip(after).zip(&self.order) {
            comparators.push(make_comparator(before, after, sort.options)?);
        }
        Ok(rows.into_iter().all(|(before, after)| {
            let mut orderings = comparators.iter().map(|compare| compare(before, after));
            let first = orderings.find(|ordering| *ordering != Ordering::Equal);
            first != Some(Ordering::Greater)
        }))
    }
}

/// The order as far as its expressions have the same values again, which RAND() has not.
fn known_again(order: &LexOrdering) -> Vec<PhysicalSortExpr> {
    let order = order.iter().cloned();
    order.take_while(|sort| is_repeatable(&sort.expr)).collect()
}

/// Whether a hash join below has gone to files without keeping the order, which it does where no operator relies on it.
fn has_lost_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let join = plan.downcast_ref::<GraceJoinExec>();
    join.is_some_and(GraceJoinExec::has_lost_order)
        || plan.children().into_iter().any(has_lost_order)
}

/// DataFusion says of merged rows what it says of the streams that are merged: that a column comes first which is
/// constant in each of them. Streams in which different columns are constant are those of a union.
fn has_union(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<UnionExec>() || plan.children().into_iter().any(has_union)
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::compute::SortOptions;
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion_physical_expr::expressions::Column;
    use datafusion_physical_plan::empty::EmptyExec;

    use super::*;

    fn promises(nullable: bool, is_sorted: bool) -> CheckedRows {
        let field = Field::new("n", DataType::Int64, nullable);
        let sort = PhysicalSortExpr::new(Arc::new(Column::new("n", 0)), SortOptions::default());
        let schema = Arc::new(Schema::new(vec![field]));
        CheckedRows {
            plan: Arc::new(EmptyExec::new(Arc::clone(&schema))),
            schema,
            order: if is_sorted { vec![sort] } else { Vec::new() },
            last: Vec::new(),
        }
    }

    fn rows(values: Vec<Option<i64>>) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from(values))]).unwrap()
    }

    #[test]
    fn a_null_against_the_promise_is_found() {
        let mut checked = promises(false, false);
        assert!(checked.check(&rows(vec![Some(2), Some(1)])).is_ok());
        let error = checked.check(&rows(vec![Some(1), None])).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("it delivers NULL in the column n")
        );
        assert!(promises(true, false).check(&rows(vec![None])).is_ok());
    }

    #[test]
    fn rows_out_of_order_are_found_within_a_batch_and_between_two() {
        let mut checked = promises(true, true);
        assert!(checked.check(&rows(vec![None, Some(1), Some(1)])).is_ok());
        assert!(checked.check(&rows(vec![])).is_ok());
        assert!(checked.check(&rows(vec![Some(1), Some(5)])).is_ok());
        assert!(checked.check(&rows(vec![Some(4)])).is_err());
        assert!(
            promises(true, true)
                .check(&rows(vec![Some(2), Some(1)]))
                .is_err()
        );
    }
}
