//! Literals, parameters, and the values of the session, which come as literals.

use datafusion_common::ScalarValue;
use sheaf_access::cancel;
use sheaf_algebra::Scalar;
use sheaf_types::text::hexadecimal::bytes_of;
use sheaf_types::{Value as SqlValue, number_literal};
use sqlparser::ast::{DataType, Expr, TypedString, UnaryOperator, Value as Literal, ValueWithSpan};

use super::constant::exact_number;
use crate::bind::{Binder, Bound, unsupported};
use crate::error::SqlError;
use crate::syntax::{call, object_text, text};
use crate::value_literal::value_literal;

impl Binder<'_> {
    /// The value of a `?`, if it has one yet.
    pub(in crate::bind) fn parameter(&mut self, written: &ValueWithSpan) -> Option<&SqlValue> {
        let position = self.text.parameter_at(written.span.start);
        let position = position.unwrap_or(self.parameters_seen);
        self.parameters_seen += 1;
        self.context.parameters.get(position)
    }

    pub(in crate::bind) fn literal(&mut self, value: &ValueWithSpan) -> Bound<Scalar> {
        match &value.value {
            Literal::Boolean(value) => Ok(Scalar::constant(*value)),
            Literal::Null => Ok(Scalar::literal(ScalarValue::Null)),
            Literal::Placeholder(_) => {
                let parameter = self.parameter(value);
                let is_bytes = matches!(parameter, Some(SqlValue::Bytes(_)));
                match parameter.map(value_literal) {
                    // They give way to texts, as those of `_binary'…'` do.
                    Some(bytes) if is_bytes => {
                        let bytes = self.internal(&bytes)?;
                        self.call("$literal_bytes", vec![bytes])
                    }
                    Some(value) => self.internal(&value),
                    None => Ok(Scalar::literal(ScalarValue::Null)),
                }
            }
            Literal::Number(digits, _) => self.number(digits),
            Literal::DoubleQuotedString(text)
            | Literal::SingleQuotedString(text)
            | Literal::NationalStringLiteral(text) => self.copied_text(text),
            Literal::SingleQuotedByteStringLiteral(bits)
            | Literal::DoubleQuotedByteStringLiteral(bits) => {
                Err(SqlError::parse_error(&format!("b'{bits}'"), 1))
            }
            Literal::HexStringLiteral(digits) => {
                let bytes = self.bytes(digits)?;
                self.call("$hybrid", vec![bytes])
            }
            other => unsupported(other.to_string()),
        }
    }

    fn bytes(&self, digits: &str) -> Bound<Scalar> {
        match bytes_of(digits) {
            Some(bytes) => Ok(Scalar::literal(ScalarValue::Binary(Some(bytes)))),
            None => unsupported("hexadecimal digits"),
        }
    }

    /// A number as MySQL types it: with an exponent a double, otherwise exact.
    pub(super) fn number(&self, digits: &str) -> Bound<Scalar> {
        if let Some(number) = exact_number(digits) {
            return Ok(Scalar::literal(number));
        }
        match number_literal(digits) {
            Some(_) => self.internal(&call("$cast_double", vec![text(digits)])),
            None => Err(SqlError::illegal_double(digits.trim_start_matches('-'))),
        }
    }

    /// A text of the tree, which may be megabytes.
    fn copied_text(&self, text: &str) -> Bound<Scalar> {
        cancel::check_room_for_value(text.len())?;
        self.text(text)
    }

    /// Calls of internal functions on literals, as values of the session come, and [literals of values](value_literal).
    pub(in crate::bind) fn internal(&self, expr: &Expr) -> Bound<Scalar> {
        match expr {
            Expr::Nested(inner) => self.internal(inner),
            Expr::Value(value) => match &value.value {
                Literal::Null => Ok(Scalar::literal(ScalarValue::Null)),
                Literal::Number(digits, _) => self.number(digits),
                Literal::SingleQuotedString(text) => self.copied_text(text),
                Literal::HexStringLiteral(digits) => self.bytes(digits),
                other => unsupported(other.to_string()),
            },
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match expr.as_ref() {
                Expr::Value(ValueWithSpan {
                    value: Literal::Number(digits, _),
                    ..
                }) => self.number(&format!("-{digits}")),
                other => unsupported(other.to_string()),
            },
            // `_binary`, which keeps the digits from being a number. They are bytes here.
            Expr::Prefixed { value, .. } => self.internal(value),
            Expr::TypedString(moment) => self.moment(moment),
            Expr::Function(call) => {
                let arguments = match &call.args {
                    sqlparser::ast::FunctionArguments::List(list) => list.args.iter(),
                    _ => [].iter(),
                };
                let arguments = arguments.map(|argument| match argument {
                    sqlparser::ast::FunctionArg::Unnamed(
                        sqlparser::ast::FunctionArgExpr::Expr(expr),
                    ) => self.internal(expr),
                    other => unsupported(other.to_string()),
                });
                let arguments = arguments.collect::<Bound<Vec<_>>>()?;
                self.call(&object_text(&call.name), arguments)
            }
            other => unsupported(other.to_string()),
        }
    }

    /// The literal of a moment. All digits of its second count, whatever is written.
    fn moment(&self, moment: &TypedString) -> Bound<Scalar> {
        let Literal::SingleQuotedString(text) = &moment.value.value else {
            return unsupported(moment.to_string());
        };
        let text = self.text(text.clone())?;
        let digits = Scalar::literal(ScalarValue::Int64(Some(6)));
        match moment.data_type {
            DataType::Date => self.call("$cast_date", vec![text]),
            DataType::Time(..) => self.call("$cast_time", vec![text, digits]),
            DataType::Timestamp(..) => self.call("$cast_datetime", vec![text, digits]),
            _ => unsupported(moment.to_string()),
        }
    }
}
