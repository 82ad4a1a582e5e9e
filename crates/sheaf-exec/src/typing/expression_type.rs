//! The type of an expression, and its field.
//!
//! MySQL's type ([`SqlType`]) is read from Arrow's type and the metadata beside it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarUDF, TypeSignature};

use crate::functions::as_function;
use crate::functions::closed::closed_operator;
use crate::functions::stand_in::stand_in_number;
use crate::functions::types::SqlType;

/// Expressions nest deeply: where less of the stack is left, more is added.
const RED_ZONE_BYTES: usize = 256 << 10;
const STACK_BYTES: usize = 2 << 20;

/// Runs what walks down an expression, on more stack if there is little left.
pub(crate) fn deep<T>(walk: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE_BYTES, STACK_BYTES, walk)
}

/// The field of an expression: its type and metadata. Its name may be any, and it may say NULL where there is none.
///
/// DataFusion names each expression on the way and looks for branches that are never taken, which takes time that
/// grows with the square of an expression's size.
pub fn field_of(expr: &Expr, schema: &DFSchema) -> Result<FieldRef> {
    match expr {
        Expr::Column(column) => schema.field_from_column(column).map(Arc::clone),
        Expr::Literal(value, metadata) => {
            let field = Field::new("", value.data_type(), value.is_null());
            Ok(Arc::new(match metadata {
                Some(metadata) => metadata.add_to_field(field),
                None => field,
            }))
        }
        // Whatever its arguments are.
        Expr::ScalarFunction(call)
            if closed_operator(&call.func).is_some() || stand_in_number(expr).is_some() =>
        {
            call.func.return_field_from_args(ReturnFieldArgs {
                arg_fields: &[],
                scalar_arguments: &[],
            })
        }
        Expr::ScalarFunction(call) if takes_any(&call.func) => {
            let fields = || call.args.iter().map(|arg| field_of(arg, schema)).collect();
            let arg_fields: Vec<FieldRef> = deep(|| -> Result<_> { fields() })?;
            let literals = call.args.iter().map(|arg| match arg {
                Expr::Literal(value, _) => Some(value),
                _ => None,
            });
            call.func.return_field_from_args(ReturnFieldArgs {
                arg_fields: &arg_fields,
                scalar_arguments: &literals.collect::<Vec<_>>(),
            })
        }
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter().map(|(_, then)| then);
            for value in branches.chain(&case.else_expr) {
                let field = deep(|| field_of(value, schema))?;
                if !field.data_type().is_null() {
                    let data_type = field.data_type().clone();
                    return Ok(Arc::new(Field::new("", data_type, true)));
                }
            }
            Ok(Arc::new(Field::new("", DataType::Null, true)))
        }
        Expr::Alias(alias) if alias.metadata.is_none() => deep(|| field_of(&alias.expr, schema)),
        Expr::Cast(cast) if !cast.field.name().is_empty() => {
            let (to, metadata) = (cast.field.data_type(), cast.field.metadata());
            let field = Field::new("", to.clone(), true).with_metadata(metadata.clone());
            Ok(Arc::new(field))
        }
        expr if is_condition(expr) => Ok(Arc::new(Field::new("", DataType::Boolean, true))),
        expr => Ok(expr.to_field(schema)?.1),
    }
}

/// The field of an aggregate, as [`field_of`] tells that of a value.
pub fn field_of_aggregate(expr: &Expr, schema: &DFSchema) -> Result<FieldRef> {
    if let Expr::AggregateFunction(AggregateFunction { func, params }) = expr {
        let fields = params.args.iter().map(|arg| field_of(arg, schema));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        if let Ok(fields) = fields_with_udf(&fields, func.as_ref()) {
            return func.return_field(&fields);
        }
    }
    // What is wrong with its arguments is told there.
    Ok(expr.to_field(schema)?.1)
}

/// Whether a function takes arguments as they are.
fn takes_any(function: &ScalarUDF) -> bool {
    let takes_any = || matches!(function.signature().type_signature, TypeSignature::Any(_));
    as_function(function).is_some() || takes_any()
}

/// Whether a glance at an expression says that it is a truth value.
pub fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => is_condition_operator(binary.op),
        Expr::Literal(value, None) => matches!(value, ScalarValue::Boolean(_)),
        expr => matches!(
            expr,
            Expr::Not(_)
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
                | Expr::IsTrue(_)
                | Expr::IsFalse(_)
                | Expr::IsUnknown(_)
                | Expr::IsNotTrue(_)
                | Expr::IsNotFalse(_)
                | Expr::IsNotUnknown(_)
                | Expr::Between(_)
                | Expr::InList(_)
                | Expr::Like(_)
        ),
    }
}

/// Whether the operator gives a truth value, whatever its operands are.
fn is_condition_operator(op: Operator) -> bool {
    op.is_logic_operator() || op.supports_propagation()
}

/// The MySQL type of an expression.
pub fn type_of(expr: &Expr, schema: &DFSchema) -> Result<SqlType> {
    let field = field_of(expr, schema)?;
    Ok(SqlType::of(&field))
}
