//! A condition over a batch of rows, for the access methods: a DataFusion expression behind
//! [`sheaf_access::BatchCondition`].

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::prep_null_mask_filter;
use datafusion_common::cast::as_boolean_array;
use datafusion_physical_expr::PhysicalExpr;
use sheaf_access::{AccessError, BatchCondition};

use crate::operator::shared_exec::is_repeatable;

/// A boolean expression whose column numbers are positions in the batch it is given.
#[derive(Debug)]
pub struct ExprCondition {
    expr: Arc<dyn PhysicalExpr>,
}

impl ExprCondition {
    pub fn new(expr: Arc<dyn PhysicalExpr>) -> ExprCondition {
        ExprCondition { expr }
    }

    pub fn expr(&self) -> &Arc<dyn PhysicalExpr> {
        &self.expr
    }
}

impl BatchCondition for ExprCondition {
    fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray, AccessError> {
        let value = self
            .expr
            .evaluate(batch)
            .and_then(|value| value.into_array(batch.num_rows()));
        let array = value.map_err(|error| AccessError::Condition(Box::new(error)))?;
        let mask =
            as_boolean_array(&array).map_err(|error| AccessError::Condition(Box::new(error)))?;
        Ok(if mask.null_count() > 0 {
            prep_null_mask_filter(mask)
        } else {
            mask.clone()
        })
    }

    fn is_same(&self, other: &dyn BatchCondition) -> bool {
        let other: &dyn Any = other;
        other
            .downcast_ref::<ExprCondition>()
            .is_some_and(|other| self.expr.eq(&other.expr) && is_repeatable(&self.expr))
    }
}
