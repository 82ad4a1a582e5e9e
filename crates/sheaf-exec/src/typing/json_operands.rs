//! JSON values that are to be something else: they are watched, so that it is noted where they do not fit.

use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::Expr;

use super::expression_type::{field_of, type_of};
use super::fold::literal;
use super::rule::Rule;
use crate::functions::document::json_of;
use crate::functions::types::SqlType;
use crate::functions::watched_json::JsonTarget;

/// A JSON value is watched, unless it is a constant that fits what it is converted to; all else is as it is.
pub(super) fn json_of_any(
    operand: Expr,
    target: JsonTarget,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    if type_of(&operand, schema)? != SqlType::Json {
        return Ok(operand);
    }
    let fits = match literal(&operand) {
        Some(ScalarValue::BinaryView(Some(bytes))) => target.problem(json_of(bytes)).is_none(),
        Some(constant) => constant.is_null(),
        None => false,
    };
    Ok(match fits {
        true => operand,
        false => {
            let field = field_of(&operand, schema)?;
            rule.truncated.json(target, operand, field.name())
        }
    })
}
