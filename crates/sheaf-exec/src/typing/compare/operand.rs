//! An operand of a comparison with its type, and the texts and numbers that literals are.

use std::borrow::Cow;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::Expr;

use crate::functions::EvaluationError;
use crate::functions::truncated::NumberKind;
use crate::functions::types::SqlType;
use crate::typing::choose::as_shown;
use crate::typing::{Rule, field_of, literal};

/// What is compared, as it is shown, and its type.
pub(in crate::typing) struct Operand {
    pub(in crate::typing) expr: Expr,
    pub(in crate::typing) field: FieldRef,
    pub(in crate::typing) ty: SqlType,
}

impl Operand {
    pub(in crate::typing) fn new(expr: Expr, schema: &DFSchema) -> Result<Operand> {
        let field = field_of(&expr, schema)?;
        let ty = SqlType::of(&field);
        match ty {
            SqlType::Decimal {
                scale, decimals, ..
            } if decimals < scale => {
                let expr = as_shown(expr, schema)?;
                let field = field_of(&expr, schema)?;
                let ty = SqlType::of(&field);
                Ok(Operand { expr, field, ty })
            }
            ty => Ok(Operand { expr, field, ty }),
        }
    }

    /// Notes a constant text that is compared with numbers and is none.
    pub(super) fn note_text(
        &self,
        compared_with: &SqlType,
        rule: Rule<'_>,
        found: &mut Vec<EvaluationError>,
    ) -> Result<()> {
        let kind = match compared_with {
            SqlType::Decimal { .. } => NumberKind::Decimal,
            other if other.is_exact_number() || other.is_float() => NumberKind::Double,
            _ => return Ok(()),
        };
        match literal(&self.expr).and_then(|value| text_of(value, &self.ty)) {
            Some(text) => rule.note_constant_text(kind, &text, found),
            None => Ok(()),
        }
    }
}

/// The text of a literal string. One of bytes is ASCII as far as it is a number.
pub(in crate::typing) fn text_of<'a>(value: &'a ScalarValue, ty: &SqlType) -> Option<Cow<'a, str>> {
    match value {
        ScalarValue::Binary(Some(bytes)) => Some(String::from_utf8_lossy(bytes)),
        _ if ty.is_text() => value.try_as_str().flatten().map(Cow::Borrowed),
        _ => None,
    }
}

pub(super) fn integer_value(value: &ScalarValue) -> Option<i64> {
    if let ScalarValue::Int64(number) = value {
        return *number;
    }
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(number))) if value.data_type().is_integer() => Some(number),
        _ => None,
    }
}

/// What MySQL converts constants to the type of; they are compared with other expressions as doubles.
pub(super) fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => true,
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}
