//! Operands: constants and parameters, and where they stand among the values of a column.
//!
//! A comparison goes the direct way only where MySQL's typing rule (`sheaf_exec::typing`) compares in the column's own
//! order. The operand's place in that order must also be known from the operand alone:
//!
//! | column | operand | compared as |
//! |---|---|---|
//! | integers | whole numbers, and texts that are | numbers |
//! | DECIMAL | whole numbers, DECIMALs with no more decimals than the column, and texts that are | numbers |
//! | characters, not of the binary collation | texts | sort keys of the column's collation, which beats a literal's |
//! | byte strings | byte strings, texts | bytes |
//! | DATE | texts of the form YYYY-MM-DD | dates |
//! | DATETIME | the same, with or without a time behind, dates, and moments | moments |
//!
//! An operand may be computed of whole numbers ([`arithmetic`](super::arithmetic)). Everything else has no place here,
//! and is left to the vectorised path.

use std::borrow::Cow;
use std::cmp::Ordering;

use sheaf_table::{Column, ValueRef};
use sheaf_types::assignment::{Mode, assign_text};
use sheaf_types::number::{
    Floor, Int256, checked_power_of_ten, is_double_text, text_floor, wide_floor_of,
};
use sheaf_types::temporal::{DAY, split_datetime};
use sheaf_types::text::text_of;
use sheaf_types::{Collation, ColumnType, Value, number_literal};
use sqlparser::ast;

use super::arithmetic::Arithmetic;
use crate::parser::parameter_number;
use crate::query::values::literal;

/// A constant of the statement, or the value of one of its parameters.
#[derive(Clone, Debug)]
pub(in crate::direct) enum Operand {
    Constant(Value),
    /// By its place in the statement, from 0.
    Parameter(usize),
    /// The value of another table's row, by its place behind the statement's parameters: 0 is the last.
    Outer(usize),
}

impl Operand {
    /// A literal with its sign, or a parameter; `None` for any other expression.
    pub(in crate::direct) fn of(expr: &ast::Expr) -> Option<Operand> {
        match expr {
            ast::Expr::Nested(inner) => Operand::of(inner),
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Placeholder(text) => parameter_number(text).map(Operand::Parameter),
                // These are conditions, and byte strings that may be numbers.
                ast::Value::Boolean(_) | ast::Value::HexStringLiteral(_) => None,
                _ => literal(expr).map(Operand::Constant),
            },
            ast::Expr::UnaryOp {
                op: ast::UnaryOperator::Minus,
                expr: inner,
            } if is_number(inner) => literal(expr).map(Operand::Constant),
            _ => None,
        }
    }

    pub(in crate::direct) fn value<'a>(&'a self, parameters: &'a [Value]) -> &'a Value {
        match self {
            Operand::Constant(value) => value,
            Operand::Parameter(number) => &parameters[*number],
            Operand::Outer(place) => &parameters[parameters.len() - 1 - place],
        }
    }
}

/// What a column is compared with.
#[derive(Clone, Debug)]
pub(in crate::direct) enum Compared {
    Plain(Operand),
    /// What whole numbers come to.
    Whole(Arithmetic<Operand>),
}

impl Compared {
    /// An operand, or [arithmetic](super::arithmetic) of operands; `None` for any other expression.
    pub(in crate::direct) fn of(expr: &ast::Expr) -> Option<Compared> {
        if let Some(plain) = Operand::of(expr) {
            return Some(Compared::Plain(plain));
        }
        Arithmetic::of(expr, &mut Operand::of).map(Compared::Whole)
    }

    /// The operand alone; `None` if it is computed.
    pub(in crate::direct) fn plain(&self) -> Option<&Operand> {
        match self {
            Compared::Plain(operand) => Some(operand),
            Compared::Whole(_) => None,
        }
    }

    /// Whether something holds for all operands.
    pub(in crate::direct) fn all(&self, holds: &mut dyn FnMut(&Operand) -> bool) -> bool {
        match self {
            Compared::Plain(operand) => holds(operand),
            Compared::Whole(arithmetic) => arithmetic.all(holds),
        }
    }

    /// `None`: only the vectorised path knows it.
    pub(in crate::direct) fn value<'a>(
        &'a self,
        parameters: &'a [Value],
    ) -> Option<Cow<'a, Value>> {
        match self {
            Compared::Plain(operand) => Some(Cow::Borrowed(operand.value(parameters))),
            Compared::Whole(arithmetic) => {
                let value = arithmetic.value(&|operand: &'a Operand| operand.value(parameters));
                value.map(Cow::Owned)
            }
        }
    }

    /// Its place among the values of a column; `None` where that cannot be told here.
    pub(in crate::direct) fn place(&self, column: &Column, parameters: &[Value]) -> Option<Place> {
        place(column, &*self.value(parameters)?)
    }
}

fn is_number(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Value(value) if matches!(value.value, ast::Value::Number(..)))
}

/// The parameters as the literals that the vectorised path would read in their places.
pub(in crate::direct) fn as_literals(parameters: &[Value]) -> Cow<'_, [Value]> {
    let is_literal = |value: &Value| {
        matches!(
            value,
            Value::Null
                | Value::Int(_)
                | Value::UInt(_)
                | Value::Text(_)
                | Value::Bytes(_)
                | Value::Date(_)
                | Value::Time(_)
                | Value::DateTime(_)
                | Value::Decimal { .. }
                | Value::WideDecimal { .. }
        ) || matches!(value, Value::Double(double) if double.is_finite())
    };
    match parameters.iter().all(is_literal) {
        true => Cow::Borrowed(parameters),
        false => Cow::Owned(parameters.iter().map(as_literal).collect()),
    }
}

fn as_literal(value: &Value) -> Value {
    match value {
        Value::Int(_) | Value::UInt(_) => value.clone(),
        whole if whole.as_i128().is_some() => {
            number_literal(&whole.to_string()).unwrap_or_else(|| whole.clone())
        }
        Value::Float(float) => Value::Double(f64::from(*float)),
        Value::Timestamp(_) => Value::Text(value.to_string()),
        value => value.clone(),
    }
}

/// Where an operand stands among the values of a column.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::direct) enum Place {
    /// NULL: no comparison with it is true.
    Null,
    At(Value),
    BelowAll,
    AboveAll,
}

/// Whether a column of this type can be compared directly with some operands.
pub(in crate::direct) fn is_comparable(ty: &ColumnType) -> bool {
    match ty.is_character() {
        true => ty.collation() != Some(Collation::Binary),
        false => {
            ty.integer_range().is_some()
                || ty.is_binary()
                || ty.decimal_digits().is_some()
                || ty.has_date() && !ty.follows_time_zone()
        }
    }
}

/// Whether MySQL compares two columns as either of them is ordered.
pub(in crate::direct) fn are_comparable(one: &Column, other: &Column) -> bool {
    let (one, other) = (&one.ty, &other.ty);
    if one.is_moment() {
        return one == other;
    }
    let is_same = one == other || one.is_character() && one.collation() == other.collation();
    is_comparable(one)
        && is_comparable(other)
        && (one.is_integer() && other.is_integer()
            || is_same && one.is_character() == other.is_character())
}

/// The place of an operand's value; `None` where it cannot be told here.
pub(in crate::direct) fn place(column: &Column, value: &Value) -> Option<Place> {
    if value.is_null() {
        return Some(Place::Null);
    }
    let ty = &column.ty;
    if let Some((least, most)) = ty.integer_range() {
        let number = match (value, exact_text(value, 0)) {
            (Value::Int(_) | Value::UInt(_), _) => value.as_i128()?,
            (Value::Decimal { unscaled, scale: 0 }, _) => *unscaled,
            (_, Some(Ok(number))) => number,
            (_, Some(Err(beyond))) => return Some(beyond),
            _ => return None,
        };
        return Some(match number {
            _ if number < least => Place::BelowAll,
            _ if number > most => Place::AboveAll,
            _ if ty.is_unsigned() => Place::At(Value::UInt(number as u64)),
            _ => Place::At(Value::Int(number as i64)),
        });
    }
    if let Some((precision, scale)) = ty.decimal_digits() {
        return match ty.is_wide_decimal() {
            true => wide_place(precision, scale, value),
            false => decimal_place(precision, scale, value),
        };
    }
    let is_datetime = ty.is_moment() && !ty.follows_time_zone();
    match (ty, value) {
        (ty, Value::Date(_)) if ty.is_day() => Some(Place::At(value.clone())),
        (ty, Value::DateTime(micros)) if ty.is_day() => match split_datetime(*micros) {
            (days, 0) => Some(Place::At(Value::Date(days))),
            _ => None,
        },
        // Those of a TIMESTAMP are of another table's column.
        (ty, Value::Timestamp(_)) if ty.follows_time_zone() => Some(Place::At(value.clone())),
        (_, Value::DateTime(_)) if is_datetime => Some(Place::At(value.clone())),
        (_, Value::Date(days)) if is_datetime => {
            let micros = i64::from(*days).checked_mul(DAY)?;
            Some(Place::At(Value::DateTime(micros)))
        }
        (ty, Value::Text(text)) if ty.is_day() && text.len() == PLAIN_DATE.len() => {
            moment(ty, text).map(Place::At)
        }
        // With all its digits, whatever the column keeps.
        (_, Value::Text(text)) if is_datetime => {
            moment(&ColumnType::datetime(6), text).map(Place::At)
        }
        // What the column's character set does not have is an error of the typing rule.
        (ty, Value::Text(text)) if ty.is_character() && is_comparable(ty) => {
            let collation = ty.collation().unwrap_or_default();
            let is_foreign = collation.first_foreign(text).is_some();
            (!is_foreign).then(|| Place::At(value.clone()))
        }
        (ty, Value::Bytes(bytes)) if ty.is_character() && is_comparable(ty) => {
            let collation = ty.collation().unwrap_or_default();
            let text = collation.encoding().decode(bytes)?;
            let is_foreign = collation.first_foreign(&text).is_some();
            (!is_foreign).then_some(Place::At(Value::Text(text)))
        }
        // Other texts have the bytes of the connection's character set.
        (ty, Value::Text(text)) if ty.is_binary() && text.is_ascii() => {
            Some(Place::At(Value::Bytes(text.clone().into_bytes())))
        }
        (ty, Value::Bytes(_)) if ty.is_binary() => Some(Place::At(value.clone())),
        _ => None,
    }
}

/// How a text begins that is read as a date, or a moment.
const PLAIN_DATE: &str = "YYYY-MM-DD";

/// A text as a date or a moment. `None` if it is spelled in another way, or there is something to be said of it.
fn moment(ty: &ColumnType, text: &str) -> Option<Value> {
    let (date, time) = text.split_at_checked(PLAIN_DATE.len())?;
    // Neither the date 0 nor a month or day 0.
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    if !has_form(date, PLAIN_DATE) || date.split('-').any(is_zero) || !is_time_behind(time) {
        return None;
    }
    let mut moment = Value::Null;
    let converted = assign_text(ty, text, Mode::STRICT, &mut moment);
    matches!(converted, Ok(None)).then_some(moment)
}

/// Nothing, or the time behind a date, without a time zone and without what would be cut off.
fn is_time_behind(text: &str) -> bool {
    let Some(time) = text.strip_prefix([' ', 'T']) else {
        return text.is_empty();
    };
    match time.split_once('.') {
        None => has_form(time, "HH:MM") || has_form(time, "HH:MM:SS"),
        Some((time, fraction)) => {
            has_form(time, "HH:MM:SS")
                && (1..=6).contains(&fraction.len())
                && fraction.bytes().all(|byte| byte.is_ascii_digit())
        }
    }
}

/// Whether a text has a digit for each letter of the form, and else what the form has.
fn has_form(text: &str, form: &str) -> bool {
    let mut bytes = text.bytes().zip(form.bytes());
    text.len() == form.len()
        && bytes.all(|(byte, form)| match form.is_ascii_alphabetic() {
            true => byte.is_ascii_digit(),
            false => byte == form,
        })
}

/// The multiple of 10^-`scale` that a text is, or that it is beyond all of them. `None` if it is none, or no text: the
/// vectorised path knows what lies between two of them, and warns of what is no number.
fn exact_text(value: &Value, scale: u8) -> Option<Result<i128, Place>> {
    let text = match value {
        Value::Text(text) => text.as_str(),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok()?,
        _ => return None,
    };
    if !is_double_text(text) {
        return None;
    }
    match text_floor(text, scale) {
        Floor::At(multiple) => Some(Ok(multiple)),
        Floor::Above(_) => None,
        Floor::BelowAll => Some(Err(Place::BelowAll)),
        Floor::AboveAll => Some(Err(Place::AboveAll)),
    }
}

fn decimal_place(precision: u8, scale: u8, value: &Value) -> Option<Place> {
    let (unscaled, own_scale) = match (value, exact_text(value, scale)) {
        (Value::Int(_) | Value::UInt(_), _) => (value.as_i128()?, 0),
        (Value::Decimal { unscaled, scale }, _) => (*unscaled, *scale),
        (_, Some(Ok(unscaled))) => (unscaled, scale),
        (_, Some(Err(beyond))) => return Some(beyond),
        _ => return None,
    };
    let factor = checked_power_of_ten(scale.checked_sub(own_scale)?)?;
    let unscaled = unscaled.checked_mul(factor)?;
    let limit = checked_power_of_ten(precision)?;
    Some(if unscaled <= -limit {
        Place::BelowAll
    } else if unscaled >= limit {
        Place::AboveAll
    } else {
        Place::At(Value::Decimal { unscaled, scale })
    })
}

/// As [`decimal_place`], of a wide column. Texts are left to queries.
fn wide_place(precision: u8, scale: u8, value: &Value) -> Option<Place> {
    let (unscaled, from) = match value {
        Value::Int(_) | Value::UInt(_) => (value.as_i128()?.into(), 0),
        value => value.as_decimal()?,
    };
    match wide_floor_of(unscaled, from, scale) {
        Floor::At(number) if number > Int256::nines(precision) => Some(Place::AboveAll),
        Floor::At(number) if number < Int256::nines(precision).negated() => Some(Place::BelowAll),
        Floor::At(number) => Value::of_decimal(number, precision, scale).map(Place::At),
        Floor::Above(_) => None,
        Floor::BelowAll => Some(Place::BelowAll),
        Floor::AboveAll => Some(Place::AboveAll),
    }
}

/// The order of a stored value, which is not NULL, and a [placed](place) one of the same column. `None` if they are of
/// different kinds, which no column has.
pub(in crate::direct) fn compare(
    ty: &ColumnType,
    stored: ValueRef<'_>,
    placed: &Value,
) -> Option<Ordering> {
    Some(match (stored, placed) {
        (ValueRef::Int(stored), Value::Int(placed)) => stored.cmp(placed),
        (ValueRef::Int(stored), Value::Date(placed)) => stored.cmp(&i64::from(*placed)),
        (ValueRef::Int(stored), Value::DateTime(placed) | Value::Timestamp(placed)) => {
            stored.cmp(placed)
        }
        (ValueRef::UInt(stored), Value::UInt(placed)) => stored.cmp(placed),
        (ValueRef::Decimal(stored), Value::Decimal { unscaled, .. }) => stored.cmp(unscaled),
        (ValueRef::WideDecimal(stored), Value::WideDecimal { unscaled, .. }) => {
            stored.cmp(unscaled)
        }
        (ValueRef::Bytes(stored), Value::Text(placed)) => {
            let collation = ty.collation()?;
            collation.compare(&text_of(stored), placed)
        }
        (ValueRef::Bytes(stored), Value::Bytes(placed)) => stored.cmp(placed.as_slice()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(ty: &str) -> Column {
        let ty = ColumnType::parse(ty).expect("a type");
        Column::new("c", ty, true)
    }

    fn decimal(unscaled: i128, scale: u8) -> Value {
        Value::Decimal { unscaled, scale }
    }

    #[test]
    fn numbers_have_places_beyond_a_type() {
        let tiny = column("tinyint");
        assert_eq!(
            place(&tiny, &Value::UInt(7)),
            Some(Place::At(Value::Int(7)))
        );
        assert_eq!(place(&tiny, &Value::Int(128)), Some(Place::AboveAll));
        assert_eq!(place(&tiny, &Value::Int(-129)), Some(Place::BelowAll));
        assert_eq!(place(&tiny, &Value::Null), Some(Place::Null));
        let text = |text: &str| place(&tiny, &Value::Text(text.into()));
        assert_eq!(text(" 70e-1 "), Some(Place::At(Value::Int(7))));
        assert_eq!(text("128"), Some(Place::AboveAll));
        assert_eq!(text("-1e99"), Some(Place::BelowAll));
        for left_to_others in ["7.5", "7 apples", "apples"] {
            assert_eq!(text(left_to_others), None, "{left_to_others}");
        }
        let bytes = Value::Bytes(b"7".to_vec());
        assert_eq!(place(&tiny, &bytes), Some(Place::At(Value::Int(7))));
        assert_eq!(place(&tiny, &decimal(70, 1)), None);
        assert_eq!(place(&tiny, &decimal(7, 0)), Some(Place::At(Value::Int(7))));
        let unsigned = column("bigint unsigned");
        assert_eq!(place(&unsigned, &Value::Int(-1)), Some(Place::BelowAll));
        assert_eq!(
            place(&unsigned, &Value::Text(u64::MAX.to_string())),
            Some(Place::At(Value::UInt(u64::MAX)))
        );
    }

    #[test]
    fn decimals_take_the_scale_of_the_column() {
        let price = column("decimal(5,2)");
        assert_eq!(
            place(&price, &Value::Int(-3)),
            Some(Place::At(decimal(-300, 2)))
        );
        assert_eq!(
            place(&price, &decimal(15, 1)),
            Some(Place::At(decimal(150, 2)))
        );
        assert_eq!(place(&price, &decimal(1555, 3)), None);
        assert_eq!(place(&price, &Value::Int(1000)), Some(Place::AboveAll));
        assert_eq!(place(&price, &Value::Double(1.5)), None);
        let text = |text: &str| place(&price, &Value::Text(text.into()));
        assert_eq!(text("15.50"), Some(Place::At(decimal(1550, 2))));
        assert_eq!(text("1000"), Some(Place::AboveAll));
        assert_eq!(text("15.555"), None);
    }

    #[test]
    fn only_plain_dates_are_dates() {
        let date = column("date");
        let text = |text: &str| place(&date, &Value::Text(text.into()));
        assert_eq!(text("1970-01-02"), Some(Place::At(Value::Date(1))));
        for other in [
            "1970-1-2",
            "1970-01-32",
            "19700102",
            "1970-01-02 10:00:00",
            "",
        ] {
            assert_eq!(text(other), None, "{other}");
        }
    }

    #[test]
    fn plain_moments_are_moments() {
        let moment = column("datetime");
        let text = |text: &str| place(&moment, &Value::Text(text.into()));
        let at = |micros: i64| Some(Place::At(Value::DateTime(micros)));
        assert_eq!(text("1970-01-02"), at(DAY));
        assert_eq!(text("1970-01-01 00:00:01"), at(1_000_000));
        assert_eq!(text("1970-01-01T00:00:01.25"), at(1_250_000));
        assert_eq!(text("1970-01-01 00:01"), at(60_000_000));
        assert_eq!(place(&moment, &Value::Date(1)), at(DAY));
        for other in [
            "1970-1-2",
            "1970-01-32",
            "1970-01-02 25:00:00",
            "1970-01-02 10:00:00+01:00",
            "1970-00-02 10:00:00",
            "1970-01-02 10:00:00.",
            "1970-01-02 10:00:00.1234567",
            "1970-01-02 1000",
            "1970-01-02 ",
            "0000-00-00 00:00:00",
            "19700102",
            "",
        ] {
            assert_eq!(text(other), None, "{other}");
        }
    }

    #[test]
    fn parameters_become_the_literals_of_their_texts() {
        let literals = as_literals(&[
            decimal(-12, 0),
            decimal(-12, 1),
            Value::Float(0.5),
            Value::Date(1),
            Value::Year(1999),
        ])
        .into_owned();
        assert_eq!(
            literals,
            [
                decimal(-12, 0),
                decimal(-12, 1),
                Value::Double(0.5),
                Value::Date(1),
                Value::Int(1999),
            ]
        );
    }
}
