//! Where a join can be stopped between two batches.
//!
//! A join that tests pairs of rows makes no batch as long as no pair is true, and nobody above it looks at the flag
//! meanwhile. 300,000 by 300,000 rows are 90 billion tests. So the condition itself looks, once for each batch of
//! pairs.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion_common::{Result, internal_err};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use sheaf_access::CancelFlag;

use crate::operator::scan_exec::access_error;
use crate::operator::wrapped_expr::{as_inner, same_as_inner};

/// Evaluates an expression until the flag is raised.
#[derive(Debug)]
pub struct InterruptibleExpr {
    inner: Arc<dyn PhysicalExpr>,
    cancel: CancelFlag,
}

impl InterruptibleExpr {
    pub fn new(inner: Arc<dyn PhysicalExpr>, cancel: CancelFlag) -> InterruptibleExpr {
        InterruptibleExpr { inner, cancel }
    }
}

same_as_inner!(InterruptibleExpr);

impl PhysicalExpr for InterruptibleExpr {
    as_inner!();

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.cancel.check().map_err(access_error)?;
        self.inner.evaluate(batch)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(inner) => Ok(Arc::new(InterruptibleExpr::new(inner, self.cancel.clone()))),
            None => internal_err!("an interruptible expression without its expression"),
        }
    }
}
