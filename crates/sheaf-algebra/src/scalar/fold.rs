//! Constants are computed while a statement is planned.
//!
//! They are computed by the functions that would compute them for each row, under the
//! [limits of folding](sheaf_exec::functions::limits). What fails to compute stays: it may be that no row ever comes to
//! it. What [notes](Scalar::notes) stays as well, because what it has to tell is told when the statement runs.

use std::sync::{Arc, LazyLock};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::{ColumnarValue, Volatility};
use sheaf_exec::runtime::planning_options;

use super::physical::Batches;
use super::{Scalar, ScalarKind};

/// One row without columns.
static ROW: LazyLock<Option<RecordBatch>> = LazyLock::new(|| {
    let schema: SchemaRef = Arc::new(Schema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    RecordBatch::try_new_with_options(schema, Vec::new(), &options).ok()
});

impl Scalar {
    /// The same, with the values of what is computed from constants alone.
    pub fn folded(self) -> Scalar {
        self.replace(&|part| match part.kind() {
            ScalarKind::Literal(_) | ScalarKind::Column(_) => None,
            _ if part.is_constant() => part.computed(),
            _ => None,
        })
    }

    /// Whether it is the same for all rows, and whenever it is computed.
    fn is_constant(&self) -> bool {
        let varies = |part: &Scalar| match part.kind() {
            ScalarKind::Column(_) => true,
            ScalarKind::Call { function, .. } => {
                function.signature().volatility != Volatility::Immutable
            }
            _ => false,
        };
        !self.notes() && !self.is_of_variables() && !self.contains(&varies)
    }

    /// Its value, of the same type.
    fn computed(&self) -> Option<Scalar> {
        let row = ROW.as_ref()?;
        let batches = Batches {
            schema: row.schema_ref(),
            position: &|_| None,
            options: planning_options(),
        };
        let expression = batches.expression(self).ok()?;
        let value = match expression.evaluate(row).ok()? {
            ColumnarValue::Scalar(value) => value,
            ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0).ok()?,
        };
        if value.data_type() != *self.field().data_type() {
            return None;
        }
        let metadata = self.field().metadata().clone();
        Some(Scalar::typed_literal(value, metadata))
    }
}
