//! `1 + 2  =  3`: constants are computed while a statement is planned.
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

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};
    use sheaf_exec::functions::truncated::TruncatedTexts;
    use sheaf_exec::typing::{Purpose, Texts};

    use super::*;
    use crate::column::ColumnId;
    use crate::scalar::Typing;

    #[test]
    fn what_is_computed_of_nothing_is_a_literal() {
        let texts = Texts::of(Default::default(), TruncatedTexts::default());
        let typing = Typing {
            texts: &texts,
            purpose: Purpose::Shown,
        };
        let number = |value: i64| Scalar::literal(ScalarValue::Int64(Some(value)));
        let call = |name: &str, arguments: Vec<Scalar>| typing.call(name, arguments).unwrap();
        let text = |value: &str| Scalar::literal(ScalarValue::Utf8(Some(value.to_string())));
        let column = || {
            let field = Field::new("a", DataType::Int64, true);
            Scalar::column(ColumnId(0), Arc::new(field))
        };
        let three = || call("$add", vec![number(1), number(2)]);
        let folded = three().folded();
        assert_eq!(folded.field(), three().field());
        assert_eq!(folded.as_literal(), Some(&ScalarValue::Int64(Some(3))));
        let inside = call("$add", vec![column(), three()]).folded();
        let arguments = match inside.kind() {
            ScalarKind::Call { arguments, .. } => arguments.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(arguments, [column(), folded]);
        // The collation says whether texts are equal.
        let equal = call("$eq", vec![text("a"), text("A")]).folded();
        assert_eq!(equal.as_literal(), Some(&ScalarValue::Boolean(Some(true))));
        // A division by zero is noted for the rows that meet it, and every call of RAND gives another number.
        for varies in [
            call("$divide", vec![number(1), number(0)]),
            call("rand", Vec::new()),
        ] {
            assert_eq!(varies.clone().folded(), varies);
        }
    }
}
