//! Operators with one operand or two.

use datafusion_common::ScalarValue;
use sheaf_algebra::scalar::Comparison;
use sheaf_algebra::{ColumnSet, Scalar};
use sheaf_exec::functions::arithmetic::DIV_PRECISION_INCREMENT;
use sheaf_exec::functions::types::SqlType;
use sqlparser::ast::{
    BinaryOperator, Expr, Interval, UnaryOperator, Value as Literal, ValueWithSpan,
};

use super::row::{width, with_row};
use crate::bind::arguments::unit_name;
use crate::bind::subquery::operand_columns;
use crate::bind::{Binder, Bound, unsupported};
use crate::dialect::ESCAPE;
use crate::error::SqlError;
use crate::syntax::{comparison_of, inside};

impl Binder<'_> {
    /// What LIKE compares, and its escape character. Error 1210 for one that is not the same for all rows.
    pub(super) fn operands_of_like(
        &mut self,
        text: &Expr,
        pattern: &Expr,
        escape: Option<&ValueWithSpan>,
    ) -> Bound<Vec<Scalar>> {
        const DEFAULT: &str = "\\";
        if let Expr::BinaryOp {
            left: pattern,
            op: BinaryOperator::Custom(operator),
            right: escape,
        } = pattern
            && operator == ESCAPE
        {
            let mut operands = self.values([text, &**pattern])?;
            let is_query = matches!(inside(escape), Expr::Subquery(_) | Expr::InSubquery { .. });
            let escape = self.value(escape)?;
            if !is_query && (escape.columns() != ColumnSet::new() || escape.varies()) {
                return Err(SqlError::wrong_arguments(ESCAPE));
            }
            let escape = self.call("$cast_char", vec![escape])?;
            let default = self.text(DEFAULT)?;
            operands.push(self.call("coalesce", vec![escape, default])?);
            return Ok(operands);
        }
        let escape = match escape.map(|escape| &escape.value) {
            Some(Literal::SingleQuotedString(escape) | Literal::DoubleQuotedString(escape)) => {
                escape.clone()
            }
            _ => DEFAULT.to_string(),
        };
        let mut operands = self.values([text, pattern])?;
        operands.push(self.text(escape)?);
        Ok(operands)
    }

    /// `left operator other`, of values that are no rows.
    fn value_comparison(
        &mut self,
        (one, left): (&Expr, Scalar),
        operator: Comparison,
        other: &Expr,
    ) -> Bound<Scalar> {
        let right = self.value(other)?;
        let (left, right) = self.integers_compared((one, left), (other, right))?;
        let is_json = |side: &Scalar| side.sql_type() == SqlType::Json;
        let (left, right) = match (is_json(&left), is_json(&right)) {
            (true, false) => (left, self.value_in_json(right, other)?),
            (false, true) => (self.value_in_json(left, one)?, right),
            _ => (left, right),
        };
        self.comparison(operator, left, right)
    }

    /// The two sides of AND or OR, and how many operands of the same chain stand in front of both: a long chain is a
    /// tree of such sides.
    fn sides_of_chain(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Bound<(Scalar, Scalar, usize)> {
        let before = std::mem::take(&mut self.operands_before);
        let goes_on =
            |side| matches!(inside(side), Expr::BinaryOp { op: inner, .. } if inner == op);
        if goes_on(left) {
            self.operands_before = before;
        }
        let first = self.condition(left)?;
        self.operands_before = match goes_on(right) {
            true => before + first.chain_length(*op == BinaryOperator::And),
            false => 0,
        };
        let second = self.condition(right)?;
        self.operands_before = 0;
        Ok((first, second, before))
    }

    pub(super) fn binary_operator(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Bound<Scalar> {
        use BinaryOperator as Op;
        if let Some(operator) = comparison_of(op) {
            let (left, right) = (with_row(left), with_row(right));
            return match (left.as_ref(), right.as_ref()) {
                (Expr::Tuple(left), Expr::Tuple(right)) => {
                    self.row_comparison(left, operator, right)
                }
                (Expr::Tuple(row), Expr::Subquery(query)) => {
                    let row = self.values(row)?;
                    let columns = self.row_of_subquery(query, Some(row.len()))?;
                    self.compare_rows(row, operator, columns)
                }
                (Expr::Subquery(query), Expr::Tuple(row)) => {
                    let columns = self.row_of_subquery(query, Some(row.len()))?;
                    let row = self.values(row)?;
                    self.compare_rows(columns, operator, row)
                }
                (Expr::Tuple(row), _) | (_, Expr::Tuple(row)) => Err(operand_columns(row.len())),
                (Expr::Subquery(one), Expr::Subquery(other)) if width(&left) != Some(1) => {
                    let mut row = self.row_of_subquery(one, width(&left))?;
                    match row.pop() {
                        Some(value) if row.is_empty() => {
                            self.value_comparison((&left, value), operator, &right)
                        }
                        last => {
                            row.extend(last);
                            let other = self.row_of_subquery(other, Some(row.len()))?;
                            self.compare_rows(row, operator, other)
                        }
                    }
                }
                (one, other) => {
                    let left = self.value(one)?;
                    self.value_comparison((one, left), operator, other)
                }
            };
        }
        match (op, left, right) {
            (
                Op::Plus,
                Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr,
                },
                date,
            ) if matches!(expr.as_ref(), Expr::Interval(_)) => {
                let Expr::Interval(interval) = expr.as_ref() else {
                    return unsupported(op.to_string());
                };
                return self.add_interval("$date_subtract", date, interval);
            }
            (Op::Plus, date, Expr::Interval(interval))
            | (Op::Plus, Expr::Interval(interval), date) => {
                return self.add_interval("$date_add", date, interval);
            }
            (Op::Minus, date, Expr::Interval(interval)) => {
                return self.add_interval("$date_subtract", date, interval);
            }
            _ => {}
        }
        let name = match op {
            Op::Assignment => return self.assignment(left, right),
            Op::And => {
                let (left, right, before) = self.sides_of_chain(left, op, right)?;
                return Ok(self.typing().and(left, right, before)?);
            }
            Op::Or => {
                let operands = |this: &mut Self| this.sides_of_chain(left, op, right);
                let (left, right, before) = self.choosing(operands)?;
                return Ok(self.typing().or(left, right, before)?);
            }
            // True if exactly one side is.
            Op::Xor => {
                let (left, right) = (self.condition(left)?, self.condition(right)?);
                return Ok(Scalar::comparison(Comparison::NotEqual, left, right));
            }
            Op::Arrow => "json_extract",
            Op::LongArrow => {
                let found = self.call_on_values("json_extract", [left, right])?;
                return self.call("json_unquote", vec![found]);
            }
            Op::Plus => "$add",
            Op::Minus if !self.binds_kept && self.context.session.has_signed_differences() => {
                "$signed_subtract"
            }
            Op::Minus => "$subtract",
            Op::Multiply => "$multiply",
            Op::Divide => {
                let operands = self.operands([left, right])?;
                return self.quotient("$divide", operands);
            }
            Op::MyIntegerDivide => "$integer_divide",
            Op::Modulo => "mod",
            Op::StringConcat => "concat",
            Op::BitwiseAnd => "$bit_and",
            Op::BitwiseOr => "$bit_or",
            Op::BitwiseXor => "$bit_xor",
            Op::PGBitwiseShiftLeft => "$shift_left",
            Op::PGBitwiseShiftRight => "$shift_right",
            other => return unsupported(other.to_string()),
        };
        self.call_on_values(name, [left, right])
    }

    /// A function that divides, with the session's number of decimals where that is not the usual one.
    pub(in crate::bind) fn quotient(&self, name: &str, mut operands: Vec<Scalar>) -> Bound<Scalar> {
        let decimals = self.quotient_decimals();
        if decimals != DIV_PRECISION_INCREMENT {
            operands.push(self.integer(i64::from(decimals)));
        }
        self.call(name, operands)
    }

    /// Decimals that a quotient has more than its dividend.
    pub(in crate::bind) fn quotient_decimals(&self) -> u8 {
        match self.binds_kept {
            true => DIV_PRECISION_INCREMENT,
            false => self.context.session.quotient_decimals(),
        }
    }

    pub(super) fn unary_operator(&mut self, op: UnaryOperator, expr: &Expr) -> Bound<Scalar> {
        match (op, expr) {
            (
                UnaryOperator::Minus,
                Expr::Value(ValueWithSpan {
                    value: Literal::Number(digits, _),
                    ..
                }),
            ) => self.number(&format!("-{digits}")),
            (UnaryOperator::Minus, expr) => {
                let value = self.operand(expr)?;
                let value = match value.as_literal() {
                    // Of a constant it is known that its opposite is no BIGINT.
                    Some(ScalarValue::Int64(Some(i64::MIN))) => self.as_whole_decimal(value)?,
                    Some(ScalarValue::UInt64(Some(number)))
                        if *number > i64::MIN.unsigned_abs() =>
                    {
                        self.as_whole_decimal(value)?
                    }
                    _ => value,
                };
                self.call("$negate", vec![value])
            }
            (UnaryOperator::Plus, expr) => self.operand(expr),
            (UnaryOperator::BitwiseNot, expr) => self.call_on_values("$bit_not", [expr]),
            (UnaryOperator::Not | UnaryOperator::BangNot, expr) => Ok(self.condition(expr)?.not()),
            (op, _) => unsupported(op.to_string()),
        }
    }

    /// A BIGINT of either kind as a DECIMAL.
    fn as_whole_decimal(&self, value: Scalar) -> Bound<Scalar> {
        const DIGITS: i64 = 20;
        let arguments = vec![value, self.integer(DIGITS), self.integer(0)];
        self.call("$cast_decimal", arguments)
    }

    /// `date + INTERVAL n unit`.
    pub(in crate::bind) fn add_interval(
        &mut self,
        name: &str,
        date: &Expr,
        interval: &Interval,
    ) -> Bound<Scalar> {
        let unit = interval
            .leading_field
            .as_ref()
            .map(unit_name)
            .unwrap_or_default();
        let mut arguments = self.values([date, &*interval.value])?;
        if arguments[0].sql_type() == SqlType::Json {
            arguments[0] = self.call("json_unquote", vec![arguments[0].clone()])?;
        }
        arguments.push(self.text(unit)?);
        self.call(name, arguments)
    }
}
