//! Two nodes of a logical plan around a list or a condition that is computed row by row
//! (`operator/row_by_row_exec.rs`).
//!
//! ```text
//!   RowByRow: all columns      what is assigned is computed, whether anyone wants the column or not
//!     Projection
//!       RowByRow: one row
//! ```

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion_common::{DFSchemaRef, Result, internal_err};
use datafusion_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowByRow {
    pub input: Arc<LogicalPlan>,
    pub step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The rows come one at a time.
    OneRow,
    /// All columns of the input are wanted.
    AllColumns,
}

impl RowByRow {
    pub fn plan(input: LogicalPlan, step: Step) -> LogicalPlan {
        let input = Arc::new(input);
        let node = Arc::new(RowByRow { input, step });
        LogicalPlan::Extension(Extension { node })
    }
}

impl PartialOrd for RowByRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for RowByRow {
    fn name(&self) -> &str {
        "RowByRow"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.step {
            Step::OneRow => write!(f, "RowByRow: one row"),
            Step::AllColumns => write!(f, "RowByRow: all columns"),
        }
    }

    fn with_exprs_and_inputs(
        &self,
        _expressions: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        match inputs.pop() {
            Some(input) => Ok(RowByRow {
                input: Arc::new(input),
                step: self.step,
            }),
            None => internal_err!("rows one by one without their input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![match self.step {
            Step::OneRow => output_columns.to_vec(),
            Step::AllColumns => (0..self.input.schema().fields().len()).collect(),
        }])
    }
}
