//! Literals that may be megabytes long, in plans.
//!
//! DataFusion names an expression by its text, and makes the texts of all expressions inside of it at each step of
//! planning. It shows bytes by their numbers, about four characters a byte. It copies expressions, too, and computes
//! constants itself. So a long literal is the call of a function without arguments, whose value others may have as
//! well:
//!
//! ```text
//!   s IN ('<2 MB>', 'x')     -->     s IN ($literal_5d41402abc4b2a76(), 'x')
//! ```
//!
//! Whoever looks for literals in a plan asks [`literal_of`]. Equal literals have equal names.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion_physical_expr::expressions::Literal;
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::shared_constant::{SharedConstant, array_of_one};

/// Literals of more bytes are long. With 4 KB the names of a hundred of them in one expression took more than a
/// megabyte, each time that they were made.
const LONG_LITERAL_BYTES: usize = 1 << 10;

/// A literal of a plan. `metadata`: what its type is besides that of the value.
pub fn plan_literal(value: &Arc<ScalarValue>, metadata: Option<FieldMetadata>) -> Expr {
    if !is_long(value) {
        return Expr::Literal(ScalarValue::clone(value), metadata);
    }
    let mut hasher = DefaultHasher::new();
    let data_type = value.data_type();
    (value, &data_type, &metadata).hash(&mut hasher);
    let name = format!("$literal_{:016x}", hasher.finish());
    let mut field = Field::new(&name, data_type, false);
    if let Some(metadata) = &metadata {
        field = field.with_metadata(metadata.to_hashmap());
    }
    let literal = LongLiteral {
        name,
        array: array_of_one(value).ok().flatten(),
        value: Arc::clone(value),
        field: Arc::new(field),
        signature: Signature::nullary(Volatility::Immutable),
    };
    ScalarUDF::from(literal).call(Vec::new())
}

/// Whether a value is long for a literal.
pub fn is_long(value: &ScalarValue) -> bool {
    bytes_of(value) > LONG_LITERAL_BYTES
}

/// The value of a literal, however long it is.
pub fn literal_of(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::ScalarFunction(call) => Some(&as_long(&call.func)?.value),
        _ => None,
    }
}

/// Whether a call is a long literal.
pub fn is_long_literal(call: &ScalarFunction) -> bool {
    as_long(&call.func).is_some()
}

/// Whether a long literal is in an expression.
pub fn has_long_literal(expr: &Expr) -> bool {
    let is_long = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if is_long_literal(call));
    // The closure does not fail.
    expr.exists(|expr| Ok(is_long(expr))).unwrap_or(true)
}

/// Bytes of a long constant over batches; 0 for all other expressions.
pub(crate) fn long_constant_bytes(expr: &Arc<dyn PhysicalExpr>) -> usize {
    let value = if let Some(literal) = expr.downcast_ref::<Literal>() {
        literal.value()
    } else if let Some(constant) = expr.downcast_ref::<SharedConstant>() {
        constant.value()
    } else {
        let call = expr.downcast_ref::<ScalarFunctionExpr>();
        match call.and_then(|call| as_long(call.fun())) {
            Some(literal) => &literal.value,
            None => return 0,
        }
    };
    match is_long(value) {
        true => bytes_of(value),
        false => 0,
    }
}

fn as_long(function: &ScalarUDF) -> Option<&LongLiteral> {
    function.inner().downcast_ref::<LongLiteral>()
}

/// Bytes of a text or of a byte string; those of other values are few.
pub(crate) fn bytes_of(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => text.len(),
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes)) => bytes.len(),
        _ => 0,
    }
}

/// A function without arguments.
#[derive(Debug)]
struct LongLiteral {
    /// It follows from the value and its type.
    name: String,
    value: Arc<ScalarValue>,
    /// The value for one row.
    array: Option<ArrayRef>,
    field: FieldRef,
    signature: Signature,
}

impl PartialEq for LongLiteral {
    fn eq(&self, other: &Self) -> bool {
        self.field == other.field
            && (Arc::ptr_eq(&self.value, &other.value) || self.value == other.value)
    }
}

impl Eq for LongLiteral {}

impl Hash for LongLiteral {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for LongLiteral {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    /// As of our other functions.
    fn evaluate_bounds(&self, _inputs: &[&Interval]) -> Result<Interval> {
        Interval::make_unbounded(self.field.data_type())
    }

    fn output_ordering(&self, _inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(SortProperties::Singleton)
    }

    /// Of several rows it is a constant to functions, which compute one row for all where nothing else differs.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &self.array {
            Some(array) if args.number_rows == 1 => ColumnarValue::Array(Arc::clone(array)),
            _ => ColumnarValue::Scalar(ScalarValue::clone(&self.value)),
        })
    }
}

#[cfg(test)]
mod tests {
    use datafusion_common::DFSchema;
    use datafusion_expr::ExprSchemable;

    use super::*;

    fn text(character: &str, length: usize) -> Arc<ScalarValue> {
        Arc::new(ScalarValue::Utf8View(Some(character.repeat(length))))
    }

    #[test]
    fn a_long_literal_has_a_short_name_of_its_own() {
        let long = text("x", LONG_LITERAL_BYTES + 1);
        let literal = plan_literal(&long, None);
        assert!(has_long_literal(&literal) && literal.as_literal().is_none());
        assert_eq!(literal_of(&literal), Some(long.as_ref()));
        assert!(literal.schema_name().to_string().len() < 64);
        assert!(format!("{literal}").len() < 64);
        let again = plan_literal(&Arc::new(ScalarValue::clone(&long)), None);
        assert_eq!(literal, again);
        let other = plan_literal(&text("y", LONG_LITERAL_BYTES + 1), None);
        assert_ne!(
            literal.schema_name().to_string(),
            other.schema_name().to_string()
        );
        let ScalarValue::Utf8View(Some(written)) = long.as_ref() else {
            panic!("{long:?}");
        };
        let bytes = Arc::new(ScalarValue::BinaryView(Some(written.clone().into_bytes())));
        assert_ne!(
            literal.schema_name().to_string(),
            plan_literal(&bytes, None).schema_name().to_string()
        );
        let (_, field) = literal.to_field(&DFSchema::empty()).unwrap();
        assert_eq!(
            (field.data_type(), field.is_nullable()),
            (&DataType::Utf8View, false)
        );
    }

    #[test]
    fn a_short_literal_is_a_literal() {
        let short = text("x", LONG_LITERAL_BYTES);
        let literal = plan_literal(&short, None);
        assert_eq!(literal.as_literal(), Some(short.as_ref()));
        assert!(!has_long_literal(&literal));
    }
}
