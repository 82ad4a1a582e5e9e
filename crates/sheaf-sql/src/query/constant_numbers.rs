//! The digits of numbers that are computed of constants.
//!
//! MySQL tells them by how an expression is written, and not by its value: `1.5 + 2.25` may carry. What is computed of
//! constants is a constant when its query is bound, so the syntax tree is asked.
//!
//! ```text
//!   1.5 + 2.25   decimal(4,2)       2 * 1.5   decimal(3,1)       1 / 3   decimal(5,4), may be NULL
//! ```

use sheaf_types::column_type::MAX_DECIMAL_PRECISION;
use sqlparser::ast::{
    BinaryOperator, CeilFloorKind, DataType as SqlType, DateTimeField, ExactNumberInfo, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, SelectItem, SetExpr,
    UnaryOperator, Value as Literal,
};

use crate::query::value_extent::Extent;

/// Digits behind the point, at most.
const MAX_SCALE: u32 = 30;
/// Digits of whole numbers that fit a BIGINT for sure.
const DIGITS_OF_BIGINT: u32 = 18;
/// Literals of more digits become BIGINT.
const DIGITS_OF_NARROW_LITERAL: u32 = 8;

/// What is known of an exact number by how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConstantNumber {
    pub extent: Extent,
    pub may_be_null: bool,
}

impl ConstantNumber {
    fn certain(extent: Extent) -> Option<ConstantNumber> {
        let may_be_null = false;
        Some(ConstantNumber {
            extent,
            may_be_null,
        })
    }

    fn is_decimal(self) -> bool {
        matches!(self.extent, Extent::Decimal { .. })
    }

    /// Digits before the point, and behind it.
    fn digits(self) -> Option<(u32, u32)> {
        let (precision, scale) = self.extent.digits()?;
        Some((precision.checked_sub(scale)?, scale))
    }

    /// As the operands of an operator, of so many digits before the point, and behind it.
    fn computed(self, whole: u32, scale: u32, is_decimal: bool) -> Option<ConstantNumber> {
        let extent = match is_decimal {
            true => decimal(whole, scale)?,
            false => Extent::of_digits(whole),
        };
        Some(ConstantNumber { extent, ..self })
    }

    fn or_null(self) -> ConstantNumber {
        ConstantNumber {
            may_be_null: true,
            ..self
        }
    }
}

/// `None` of anything but an exact number that is computed of constants. Divisions add `increment` decimals.
pub(crate) fn constant_number(written: &Expr, increment: u32) -> Option<ConstantNumber> {
    match written {
        Expr::Nested(inner) => constant_number(inner, increment),
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => ConstantNumber::certain(of_literal(digits)?),
            Literal::Boolean(_) => ConstantNumber::certain(Extent::of_digits(1)),
            _ => None,
        },
        Expr::UnaryOp { op, expr } => {
            let number = constant_number(expr, increment)?;
            let (whole, scale) = number.digits()?;
            match op {
                UnaryOperator::Plus => Some(number),
                UnaryOperator::Minus => number.computed(whole, scale, number.is_decimal()),
                UnaryOperator::BitwiseNot => Some(ConstantNumber {
                    extent: bigint(),
                    ..number
                }),
                _ => None,
            }
        }
        Expr::BinaryOp { left, op, right } => of_operator(
            op,
            constant_number(left, increment)?,
            constant_number(right, increment)?,
            increment,
        ),
        Expr::Ceil { expr, field } | Expr::Floor { expr, field } => match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => {
                whole_number(constant_number(expr, increment)?)
            }
            _ => None,
        },
        Expr::Cast {
            expr, data_type, ..
        }
        | Expr::Convert {
            expr,
            data_type: Some(data_type),
            ..
        } => of_cast(expr, data_type, increment),
        Expr::Case {
            conditions,
            else_result,
            ..
        } => {
            let results = conditions.iter().map(|when| &when.result);
            let number = one_of(results.chain(else_result.as_deref()), increment)?;
            Some(match else_result {
                Some(_) => number,
                None => number.or_null(),
            })
        }
        Expr::Function(function) => {
            let operands: Vec<&Expr> = arguments(function).collect();
            of_function(&function_name(function), &operands, increment)
        }
        Expr::Subquery(query) => {
            let SetExpr::Select(select) = query.body.as_ref() else {
                return None;
            };
            let is_one_row = query.with.is_none()
                && query.limit_clause.is_none()
                && select.from.is_empty()
                && select.selection.is_none()
                && select.having.is_none()
                && matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
            match select.projection.as_slice() {
                [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }]
                    if is_one_row =>
                {
                    constant_number(item, increment)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn bigint() -> Extent {
    Extent::of_digits(DIGITS_OF_BIGINT).widened()
}

/// `None` of more digits than a DECIMAL has.
fn decimal(whole: u32, scale: u32) -> Option<Extent> {
    let precision = whole.checked_add(scale)?.max(1);
    let fits = scale <= MAX_SCALE && precision <= MAX_DECIMAL_PRECISION.into();
    fits.then_some(Extent::Decimal { precision, scale })
}

/// Zeros in front do not count, unless they stand alone.
fn of_literal(digits: &str) -> Option<Extent> {
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !fraction.is_none_or(are_digits) {
        return None;
    }
    let count = |part: &str| u32::try_from(part.len()).ok();
    let significant = count(whole.trim_start_matches('0'))?.max(u32::from(!whole.is_empty()));
    match fraction {
        Some(fraction) => decimal(significant, count(fraction)?),
        None if significant > DIGITS_OF_BIGINT => None,
        None if significant > DIGITS_OF_NARROW_LITERAL => {
            Some(Extent::of_digits(significant).widened())
        }
        None => Some(Extent::of_digits(significant)),
    }
}

fn of_operator(
    op: &BinaryOperator,
    left: ConstantNumber,
    right: ConstantNumber,
    increment: u32,
) -> Option<ConstantNumber> {
    let ((one, scale), (other, other_scale)) = (left.digits()?, right.digits()?);
    let is_decimal = left.is_decimal() || right.is_decimal();
    let operands = ConstantNumber {
        may_be_null: left.may_be_null || right.may_be_null,
        ..left
    };
    match op {
        BinaryOperator::Plus | BinaryOperator::Minus => {
            operands.computed(one.max(other) + 1, scale.max(other_scale), is_decimal)
        }
        BinaryOperator::Multiply => operands.computed(one + other, scale + other_scale, is_decimal),
        BinaryOperator::Divide => {
            let extent = left.extent.divided_by(right.extent, increment)?;
            let (precision, scale) = extent.digits()?;
            let quotient = operands.computed(precision.checked_sub(scale)?, scale, true)?;
            Some(quotient.or_null())
        }
        BinaryOperator::MyIntegerDivide => {
            let quotient = operands.computed(one + other_scale, 0, false)?;
            Some(quotient.or_null())
        }
        BinaryOperator::Modulo => {
            let scale = scale.max(other_scale);
            let (precision, other) = (left.extent.digits()?.0, right.extent.digits()?.0);
            let whole = precision.max(other).checked_sub(scale)?;
            Some(operands.computed(whole, scale, is_decimal)?.or_null())
        }
        BinaryOperator::BitwiseAnd
        | BinaryOperator::BitwiseOr
        | BinaryOperator::BitwiseXor
        | BinaryOperator::PGBitwiseXor
        | BinaryOperator::PGBitwiseShiftLeft
        | BinaryOperator::PGBitwiseShiftRight => Some(ConstantNumber {
            extent: bigint(),
            ..operands
        }),
        _ => None,
    }
}

fn of_cast(operand: &Expr, to: &SqlType, increment: u32) -> Option<ConstantNumber> {
    let is_text = matches!(operand, Expr::Value(value) if matches!(value.value, Literal::SingleQuotedString(_)));
    let may_be_null = match is_text {
        true => false,
        false => constant_number(operand, increment)?.may_be_null,
    };
    let extent = match to {
        SqlType::Decimal(digits) | SqlType::Dec(digits) | SqlType::Numeric(digits) => {
            let (precision, scale) = match digits {
                ExactNumberInfo::None => (10, 0),
                ExactNumberInfo::Precision(precision) => (*precision, 0),
                ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
            };
            let (precision, scale) = (u32::try_from(precision).ok()?, u32::try_from(scale).ok()?);
            decimal(precision.checked_sub(scale)?, scale)?
        }
        SqlType::Signed | SqlType::Unsigned | SqlType::SignedInteger | SqlType::UnsignedInteger => {
            bigint()
        }
        _ => return None,
    };
    Some(ConstantNumber {
        extent,
        may_be_null,
    })
}

fn of_function(name: &str, operands: &[&Expr], increment: u32) -> Option<ConstantNumber> {
    let first = || constant_number(operands.first()?, increment);
    match (name, operands) {
        ("round", [_]) => rounded(first()?, 0, true),
        ("round", [_, places]) => rounded(first()?, places_of(places)?, true),
        ("truncate", [_, places]) => rounded(first()?, places_of(places)?, false),
        ("ceil" | "ceiling" | "floor", [_]) => whole_number(first()?),
        ("abs", [_]) => {
            let (whole, scale) = first()?.digits()?;
            first()?.computed(whole, scale, first()?.is_decimal())
        }
        ("sign" | "bit_count", [_]) => Some(ConstantNumber {
            extent: bigint(),
            ..first()?
        }),
        ("mod", [_, divisor]) => of_operator(
            &BinaryOperator::Modulo,
            first()?,
            constant_number(divisor, increment)?,
            increment,
        ),
        ("if", [_, then, otherwise]) => one_of([*then, *otherwise].into_iter(), increment),
        ("greatest" | "least", [_, _, ..]) => one_of(operands.iter().copied(), increment),
        ("ifnull", [_, _]) | ("coalesce", [_, ..]) => {
            let number = one_of(operands.iter().copied(), increment)?;
            let may_be_null = |operand: &&Expr| {
                is_null(operand)
                    || constant_number(operand, increment).is_none_or(|known| known.may_be_null)
            };
            Some(ConstantNumber {
                may_be_null: operands.iter().all(may_be_null),
                ..number
            })
        }
        ("nullif", [_, _]) => Some(first()?.or_null()),
        _ => None,
    }
}

/// What is one of several numbers, and may be NULL where one of them may.
fn one_of<'e>(written: impl Iterator<Item = &'e Expr>, increment: u32) -> Option<ConstantNumber> {
    let mut common: Option<ConstantNumber> = None;
    let mut has_null = false;
    for expr in written {
        if is_null(expr) {
            has_null = true;
            continue;
        }
        let number = constant_number(expr, increment)?;
        common = Some(match common {
            None => number,
            Some(known) => ConstantNumber {
                extent: known.extent.or(number.extent)?,
                may_be_null: known.may_be_null || number.may_be_null,
            },
        });
    }
    let common = common?;
    Some(match has_null {
        true => common.or_null(),
        false => common,
    })
}

/// The digits that ROUND and TRUNCATE are told.
fn places_of(written: &Expr) -> Option<i64> {
    match written {
        Expr::Nested(inner) => places_of(inner),
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => places_of(expr)?.checked_neg(),
        _ => None,
    }
}

/// Rounding may carry.
fn rounded(number: ConstantNumber, places: i64, carries: bool) -> Option<ConstantNumber> {
    if !number.is_decimal() {
        let extent = bigint();
        return Some(ConstantNumber { extent, ..number });
    }
    let (whole, scale) = number.digits()?;
    let places = u32::try_from(places.max(0)).ok()?;
    let carried = u32::from(carries && places < scale);
    number.computed(whole + carried, places, true)
}

/// CEIL and FLOOR.
fn whole_number(number: ConstantNumber) -> Option<ConstantNumber> {
    let (whole, _) = number.digits()?;
    let extent = match whole < DIGITS_OF_BIGINT {
        true => bigint(),
        false => decimal(whole + 1, 0)?,
    };
    Some(ConstantNumber { extent, ..number })
}

pub(crate) fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Literal::Null)
}

/// In lower case.
pub(crate) fn function_name(function: &Function) -> String {
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.map_or(String::new(), |name| name.value.to_ascii_lowercase())
}

pub(crate) fn arguments(function: &Function) -> impl Iterator<Item = &Expr> {
    let list = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    list.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_the_digits_that_are_written() {
        let decimal = |precision, scale| Some(Extent::Decimal { precision, scale });
        assert_eq!(of_literal("1.50"), decimal(3, 2));
        assert_eq!(of_literal(".5"), decimal(1, 1));
        assert_eq!(of_literal("00.5"), decimal(2, 1));
        assert_eq!(of_literal("1."), decimal(1, 0));
        assert_eq!(of_literal("0007"), Some(Extent::of_digits(1)));
        assert_eq!(of_literal("1e3"), None);
    }
}
