//! Constant folding: calls and casts of literals become literals.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::Field;
use datafusion_common::config::ConfigOptions;
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs};

use super::expression_type::field_of;
use crate::functions::as_function;
use crate::long_literal::is_long;

/// The value of a literal.
pub(crate) fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

/// A literal that keeps the metadata of the field that it is a value of.
pub(crate) fn typed_literal(value: ScalarValue, field: &Field) -> Expr {
    let metadata = (!field.metadata().is_empty()).then(|| FieldMetadata::from(field.metadata()));
    Expr::Literal(value, metadata)
}

/// The value of an expression without columns, as far as calls and casts of literals tell it.
pub fn constant_value(expr: Expr) -> Result<Option<ScalarValue>> {
    let schema = DFSchema::empty();
    let folded = expr.transform_up(|expr| Ok(Transformed::yes(fold(expr, &schema))))?;
    Ok(literal(&folded.data).cloned())
}

/// Computes a call or a cast of literals. What fails to compute stays: it may never be evaluated.
pub(crate) fn fold(expr: Expr, schema: &DFSchema) -> Expr {
    match try_fold(&expr, schema) {
        Ok(Some(folded)) => folded,
        Ok(None) | Err(_) => expr,
    }
}

/// A value as an argument of a call for one row. A function makes an array of it, and this is done here where the value
/// is long: it would be copied twice.
fn value_of_one(value: &ScalarValue) -> Result<ColumnarValue> {
    Ok(match is_long(value) {
        true => ColumnarValue::Array(value.to_array()?),
        false => ColumnarValue::Scalar(value.clone()),
    })
}

fn try_fold(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    match expr {
        Expr::Cast(cast) => match literal(&cast.expr) {
            Some(value) => {
                let value = value.cast_to(cast.field.data_type())?;
                let field = field_of(expr, schema)?;
                Ok(Some(typed_literal(value, &field)))
            }
            None => Ok(None),
        },
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let Some(function) = as_function(func)
                .filter(|function| !function.volatile && function.kernel.is_some())
            else {
                return Ok(None);
            };
            let Some(values) = args.iter().map(literal).collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            // Many short values are much together. The statement ends where it is looked at next.
            if !sheaf_memory::may_go_on() {
                return Ok(None);
            }
            debug_assert!(args.len() >= function.least_arguments);
            let arg_fields = args
                .iter()
                .map(|arg| field_of(arg, schema))
                .collect::<Result<Vec<_>>>()?;
            let scalars: Vec<_> = values.iter().copied().map(Some).collect();
            let return_field = func.return_field_from_args(ReturnFieldArgs {
                arg_fields: &arg_fields,
                scalar_arguments: &scalars,
            })?;
            static CONFIG: LazyLock<Arc<ConfigOptions>> = LazyLock::new(Arc::default);
            let result = func.invoke_with_args(ScalarFunctionArgs {
                args: values
                    .into_iter()
                    .map(value_of_one)
                    .collect::<Result<_>>()?,
                arg_fields,
                number_rows: 1,
                return_field: Arc::clone(&return_field),
                config_options: Arc::clone(&CONFIG),
            })?;
            match result {
                ColumnarValue::Scalar(value) => Ok(Some(typed_literal(value, &return_field))),
                ColumnarValue::Array(array) => Ok(Some(typed_literal(
                    ScalarValue::try_from_array(&array, 0)?,
                    &return_field,
                ))),
            }
        }
        _ => Ok(None),
    }
}
