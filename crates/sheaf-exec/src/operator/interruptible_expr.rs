//! Where a join can be stopped between two batches.
//!
//! A join that tests pairs of rows makes no batch as long as no pair is true, and nobody above it looks at the flag
//! meanwhile. 300,000 by 300,000 rows are 90 billion tests. So the condition itself looks, once for each batch of
//! pairs.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion_common::{Result, internal_err};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use sheaf_access::CancelFlag;

use crate::operator::scan_exec::access_error;

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

impl PartialEq for InterruptibleExpr {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for InterruptibleExpr {}

impl Hash for InterruptibleExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for InterruptibleExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for InterruptibleExpr {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.inner.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.cancel.check().map_err(access_error)?;
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
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

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
