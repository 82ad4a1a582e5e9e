//! The order of values: first by type, then within the type.
//!
//! ```text
//!   null < numbers < strings < objects < arrays < booleans < dates < times < datetimes < bytes of other types
//! ```
//!
//! Numbers of all types compare by value. Strings compare by bytes. An array is less than a longer one that begins
//! with it. Objects are equal if they have the same members. For others MySQL's manual leaves the order open; here it
//! is what its server does: fewer members come first, then keys, by bytes, and values decide one by one.
//!
//! A double stands for its shortest decimal form, as MySQL has it where it meets a DECIMAL: 0.1 is 0.1 in both. A
//! double that is a whole number of at most 64 bits stands for exactly that. So one order holds for all numbers.
//!
//! Reference: MySQL manual, "Comparison and Ordering of JSON Values".

use std::cmp::Ordering;

use crate::json::document::field_type::{BIT, STRING, TINY_BLOB, VARCHAR};
use crate::json::document::{Json, MAX_NESTING, View};
use crate::number::Int256;

/// Compares two values as MySQL does.
pub fn compare(a: Json<'_>, b: Json<'_>) -> Ordering {
    compare_within(a, b, MAX_NESTING)
}

/// Whether two values are equal.
pub fn is_equal(a: Json<'_>, b: Json<'_>) -> bool {
    compare(a, b).is_eq()
}

/// `room`: containers in each other that are looked at. Deeper ones are damaged.
fn compare_within(a: Json<'_>, b: Json<'_>, room: usize) -> Ordering {
    if a.is_same_bytes(&b) {
        return Ordering::Equal;
    }
    let (a, b) = (a.view(), b.view());
    let classes = class(&a).cmp(&class(&b));
    if classes.is_ne() {
        return classes;
    }
    match (a, b) {
        (View::Bool(a), View::Bool(b)) => a.cmp(&b),
        (View::String(a), View::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (View::Date(a), View::Date(b)) => a.cmp(&b),
        (View::Time(a), View::Time(b)) => a.cmp(&b),
        (View::DateTime(a) | View::Timestamp(a), View::DateTime(b) | View::Timestamp(b)) => {
            a.cmp(&b)
        }
        (View::Opaque { bytes: a, .. }, View::Opaque { bytes: b, .. }) => a.cmp(b),
        (View::Array(a), View::Array(b)) => {
            let Some(room) = room.checked_sub(1) else {
                return Ordering::Equal;
            };
            let pairs = a.iter().zip(b.iter());
            let unequal = pairs
                .map(|(a, b)| compare_within(a, b, room))
                .find(|order| order.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (View::Object(a), View::Object(b)) => {
            let Some(room) = room.checked_sub(1) else {
                return Ordering::Equal;
            };
            let pairs = a.iter().zip(b.iter());
            let members = pairs.map(|((a_key, a), (b_key, b))| {
                let keys = a_key.as_bytes().cmp(b_key.as_bytes());
                keys.then_with(|| compare_within(a, b, room))
            });
            let by_length = a.len().cmp(&b.len());
            let mut unequal = members.filter(|order| order.is_ne());
            by_length.then_with(|| unequal.next().unwrap_or(Ordering::Equal))
        }
        (a, b) => compare_numbers(&a, &b),
    }
}

/// Where the type stands among the others. Numbers share a class.
pub(crate) fn class(view: &View<'_>) -> u8 {
    match view {
        View::Null => 1,
        View::Int(_)
        | View::UInt(_)
        | View::Double(_)
        | View::Decimal { .. }
        | View::WideDecimal { .. } => 2,
        View::String(_) => 3,
        View::Object(_) => 4,
        View::Array(_) => 5,
        View::Bool(_) => 6,
        View::Date(_) => 7,
        View::Time(_) => 8,
        View::DateTime(_) | View::Timestamp(_) => 9,
        View::Opaque { field_type, .. } => match *field_type {
            BIT => 11,
            TINY_BLOB..=STRING => 12,
            VARCHAR => 12,
            _ => 10,
        },
    }
}

fn compare_numbers(a: &View<'_>, b: &View<'_>) -> Ordering {
    match (a, b) {
        (View::Double(a), View::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (a, b) => match (as_integer(a), as_integer(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => Number::of(a).cmp(&Number::of(b)),
        },
    }
}

/// 2^64.
const INTEGERS_END: f64 = 18_446_744_073_709_551_616.0;

/// The number as an integer, if it is one of about 64 bits.
fn as_integer(number: &View<'_>) -> Option<i128> {
    match *number {
        View::Int(value) => Some(value.into()),
        View::UInt(value) => Some(value.into()),
        View::Decimal { unscaled, scale: 0 } => Some(unscaled),
        View::Double(value) => {
            let is_exact = value.trunc() == value && value.abs() < INTEGERS_END;
            is_exact.then_some(value as i128)
        }
        _ => None,
    }
}

/// A number as 0.DIGITS times a power of ten.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) sign: Ordering,
    /// Where the point is, counted from the first digit.
    pub(crate) point: i32,
    /// 0 to 9, without zeros at either end. Empty for zero.
    pub(crate) digits: Vec<u8>,
}

impl Number {
    /// The number of a view; zero of all that are none.
    pub(crate) fn of(view: &View<'_>) -> Number {
        match (as_integer(view), view) {
            (Some(integer), _) => Number::of_decimal(integer, 0),
            (None, View::Decimal { unscaled, scale }) => Number::of_decimal(*unscaled, *scale),
            (None, View::WideDecimal { unscaled, scale }) => {
                Number::of_wide_decimal((*unscaled).into(), *scale)
            }
            (None, View::Double(value)) => Number::of_double(*value),
            _ => Number::of_decimal(0, 0),
        }
    }

    fn of_decimal(unscaled: i128, scale: u8) -> Number {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(unscaled.unsigned_abs()).as_bytes();
        let point = digits.len() as i32 - i32::from(scale);
        Number::new(unscaled.cmp(&0), point, digits)
    }

    fn of_wide_decimal(unscaled: Int256, scale: u8) -> Number {
        let digits = unscaled.digits();
        let point = digits.len() as i32 - i32::from(scale);
        let sign = unscaled.cmp(&Int256::ZERO);
        Number::new(sign, point, digits.as_bytes())
    }

    /// By the shortest digits that read back as the same double.
    fn of_double(value: f64) -> Number {
        let text = format!("{:e}", value.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        let point = exponent.parse::<i32>().unwrap_or(0) + 1;
        Number::new(
            value.partial_cmp(&0.0).unwrap_or(Ordering::Equal),
            point,
            &digits,
        )
    }

    fn new(sign: Ordering, point: i32, ascii: &[u8]) -> Number {
        let leading = ascii.iter().take_while(|&&digit| digit == b'0').count();
        let mut digits: Vec<u8> = ascii[leading..].iter().map(|digit| digit - b'0').collect();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let point = if digits.is_empty() {
            0
        } else {
            point - leading as i32
        };
        Number {
            sign,
            point,
            digits,
        }
    }

    fn cmp(&self, other: &Number) -> Ordering {
        self.sign.cmp(&other.sign).then_with(|| {
            let sizes = self.point.cmp(&other.point);
            let sizes = sizes.then_with(|| self.digits.cmp(&other.digits));
            if self.sign.is_lt() {
                sizes.reverse()
            } else {
                sizes
            }
        })
    }
}
