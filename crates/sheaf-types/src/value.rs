//! One value of a column, or a literal on its way to one.
//!
//! A [`Value`] is the form in which single values travel: rows to insert, defaults, bounds of key ranges, parameters.
//! Scans never build values; they copy from row and key bytes. What rows, keys and files hold is a [`ValueRef`], which
//! a column's type or a tag makes a value again.

use std::cmp::Ordering;
use std::fmt;

use crate::column_type::ColumnType;
use crate::json::{self, Json};
use crate::labels::text_of_number;
use crate::number::{
    Int256, Wide, is_wide, push_decimal, push_double, push_float, push_shown_double,
    push_shown_float, push_wide_decimal,
};
use crate::temporal::{push_date, push_datetime, push_time, push_year};
use crate::text::text_of;

/// A single SQL value. Values of a column are in the column's own variant:
/// BOOL and signed integers `Int`, unsigned integers `UInt`, character types `Text`, byte strings `Bytes`.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Int(i64),
    UInt(u64),
    /// `unscaled` / 10^`scale`.
    Decimal {
        unscaled: i128,
        scale: u8,
    },
    /// The same of a [wide](crate::number::is_wide) column, and of a literal that fits no `Decimal`.
    WideDecimal {
        unscaled: Wide,
        scale: u8,
    },
    Float(f32),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// The binary form of a JSON value ([`crate::json`]).
    Json(Vec<u8>),
    /// Days since 1970-01-01. [`ZERO_DATE`](crate::temporal::ZERO_DATE) is 0000-00-00.
    Date(i32),
    /// Microseconds, signed.
    Time(i64),
    /// Microseconds since 1970-01-01 00:00:00 on the wall clock, no zone.
    DateTime(i64),
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
    /// 1901 to 2155, or 0.
    Year(u16),
    /// 1-based number of the label; 0 is the empty error value.
    Enum(u16),
    /// A bit for each member of a SET, the first one the lowest.
    Set(u64),
}

impl Value {
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// True for values that print as numbers. An ENUM does so, too, but is its label to all others.
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Value::Int(_)
                | Value::UInt(_)
                | Value::Decimal { .. }
                | Value::WideDecimal { .. }
                | Value::Float(_)
                | Value::Double(_)
                | Value::Year(_)
        )
    }

    /// True for the number zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Value::Decimal { unscaled, .. } => *unscaled == 0,
            Value::WideDecimal { unscaled, .. } => unscaled.is_zero(),
            Value::Float(number) => *number == 0.0,
            Value::Double(number) => *number == 0.0,
            value => value.as_i128() == Some(0),
        }
    }

    /// A DECIMAL that a column of so many digits has. `None`: it has more than any.
    pub fn of_decimal(unscaled: Int256, precision: u8, scale: u8) -> Option<Value> {
        Some(match is_wide(precision) {
            true => Value::WideDecimal {
                unscaled: unscaled.to_wide()?,
                scale,
            },
            false => Value::Decimal {
                unscaled: unscaled.to_i128()?,
                scale,
            },
        })
    }

    /// The unscaled value and the scale of a DECIMAL of any width.
    pub fn as_decimal(&self) -> Option<(Int256, u8)> {
        match self {
            Value::Decimal { unscaled, scale } => Some(((*unscaled).into(), *scale)),
            Value::WideDecimal { unscaled, scale } => Some(((*unscaled).into(), *scale)),
            _ => None,
        }
    }

    /// The value of an integer-like variant.
    pub fn as_i128(&self) -> Option<i128> {
        match self {
            Value::Int(v) => Some(i128::from(*v)),
            Value::UInt(v) | Value::Set(v) => Some(i128::from(*v)),
            Value::Year(v) | Value::Enum(v) => Some(i128::from(*v)),
            _ => None,
        }
    }

    /// The number of a value of ENUM or SET.
    pub fn label_number(&self) -> Option<u64> {
        match self {
            Value::Enum(number) => Some(u64::from(*number)),
            Value::Set(bits) => Some(*bits),
            _ => None,
        }
    }

    /// What a value takes beside the space of the value itself: the bytes of texts, byte strings and documents.
    pub fn string_bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) | Value::Json(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Order of two values of the same variant with NULL first; texts compare bytewise (collations are the business of
    /// [`crate::text::collation::Collation::compare`]). `None` when the variants differ.
    pub fn compare_same_type(&self, other: &Value) -> Option<Ordering> {
        Some(match (self, other) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Less,
            (_, Value::Null) => Ordering::Greater,
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
            (
                Value::Decimal {
                    unscaled: a,
                    scale: x,
                },
                Value::Decimal {
                    unscaled: b,
                    scale: y,
                },
            ) if x == y => a.cmp(b),
            (
                Value::WideDecimal {
                    unscaled: a,
                    scale: x,
                },
                Value::WideDecimal {
                    unscaled: b,
                    scale: y,
                },
            ) if x == y => a.cmp(b),
            (Value::Float(a), Value::Float(b)) => a.partial_cmp(b)?,
            (Value::Double(a), Value::Double(b)) => a.partial_cmp(b)?,
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::Json(a), Value::Json(b)) => json::compare::compare(json_of(a), json_of(b)),
            (Value::Date(a), Value::Date(b)) => a.cmp(b),
            (Value::Time(a), Value::Time(b)) => a.cmp(b),
            (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
            (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
            (Value::Year(a), Value::Year(b)) => a.cmp(b),
            (Value::Enum(a), Value::Enum(b)) => a.cmp(b),
            (Value::Set(a), Value::Set(b)) => a.cmp(b),
            _ => return None,
        })
    }
}

/// A borrowed value: what rows and keys hold, without the column's type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    Null,
    /// Signed integers, BOOL, dates and times (in [`Value`]'s units), YEAR, ENUM.
    Int(i64),
    UInt(u64),
    /// Unscaled, at the column's scale.
    Decimal(i128),
    /// The same of a wide DECIMAL.
    WideDecimal(Wide),
    Float(f32),
    Double(f64),
    /// Character and byte strings.
    Bytes(&'a [u8]),
}

impl ValueRef<'_> {
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// The value as one of a column of this type.
    #[inline]
    pub fn to_value(self, ty: &ColumnType) -> Value {
        match (self, ty) {
            (ValueRef::Null, _) => Value::Null,
            (ValueRef::Int(v), ColumnType::Date) => Value::Date(v as i32),
            (ValueRef::Int(v), ColumnType::Time { .. }) => Value::Time(v),
            (ValueRef::Int(v), ColumnType::DateTime { .. }) => Value::DateTime(v),
            (ValueRef::Int(v), ColumnType::Timestamp { .. }) => Value::Timestamp(v),
            (ValueRef::Int(v), ColumnType::Year) => Value::Year(v as u16),
            (ValueRef::Int(v), ColumnType::Enum { .. }) => Value::Enum(v as u16),
            (ValueRef::Int(v), _) => Value::Int(v),
            (ValueRef::UInt(v), ColumnType::Set { .. }) => Value::Set(v),
            (ValueRef::UInt(v), _) => Value::UInt(v),
            (ValueRef::Decimal(unscaled), ty) => {
                let scale = ty.decimal_digits().map_or(0, |(_, scale)| scale);
                Value::Decimal { unscaled, scale }
            }
            (ValueRef::WideDecimal(unscaled), ty) => {
                let scale = ty.decimal_digits().map_or(0, |(_, scale)| scale);
                Value::WideDecimal { unscaled, scale }
            }
            (ValueRef::Float(v), _) => Value::Float(v),
            (ValueRef::Double(v), _) => Value::Double(v),
            (ValueRef::Bytes(v), ty) if ty.is_character() => Value::Text(text_of(v).into_owned()),
            (ValueRef::Bytes(v), ColumnType::Json) => Value::Json(v.to_vec()),
            (ValueRef::Bytes(v), _) => Value::Bytes(v.to_vec()),
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    #[inline]
    fn from(value: &'a Value) -> ValueRef<'a> {
        match value {
            Value::Null => ValueRef::Null,
            Value::Int(v) => ValueRef::Int(*v),
            Value::UInt(v) | Value::Set(v) => ValueRef::UInt(*v),
            Value::Decimal { unscaled, .. } => ValueRef::Decimal(*unscaled),
            Value::WideDecimal { unscaled, .. } => ValueRef::WideDecimal(*unscaled),
            Value::Float(v) => ValueRef::Float(*v),
            Value::Double(v) => ValueRef::Double(*v),
            Value::Text(v) => ValueRef::Bytes(v.as_bytes()),
            Value::Bytes(v) | Value::Json(v) => ValueRef::Bytes(v),
            Value::Date(v) => ValueRef::Int(i64::from(*v)),
            Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) => ValueRef::Int(*v),
            Value::Year(v) | Value::Enum(v) => ValueRef::Int(i64::from(*v)),
        }
    }
}

/// Values in files, where no column says what they are: a tag tells the variant, and the content is a [`ValueRef`].
/// docs/catalog-format.md has the numbers.
impl Value {
    pub fn tag(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Int(_) => 1,
            Value::UInt(_) => 2,
            Value::Decimal { .. } => 3,
            Value::Float(_) => 4,
            Value::Double(_) => 5,
            Value::Text(_) => 6,
            Value::Bytes(_) => 7,
            Value::Date(_) => 8,
            Value::Time(_) => 9,
            Value::DateTime(_) => 10,
            Value::Timestamp(_) => 11,
            Value::Year(_) => 12,
            Value::Enum(_) => 13,
            Value::Set(_) => 14,
            Value::Json(_) => 15,
            Value::WideDecimal { .. } => 16,
        }
    }
}

/// What stands behind a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaggedContent {
    Nothing,
    Signed,
    Unsigned,
    /// With its scale.
    Decimal,
    WideDecimal,
    Float,
    Double,
    String,
}

impl TaggedContent {
    /// `None`: there is no such tag.
    pub fn of_tag(tag: u8) -> Option<TaggedContent> {
        Some(match tag {
            0 => TaggedContent::Nothing,
            1 | 8..=13 => TaggedContent::Signed,
            2 | 14 => TaggedContent::Unsigned,
            3 => TaggedContent::Decimal,
            4 => TaggedContent::Float,
            5 => TaggedContent::Double,
            6 | 7 | 15 => TaggedContent::String,
            16 => TaggedContent::WideDecimal,
            _ => return None,
        })
    }

    /// The value of a number with this tag. `None`: there is none.
    pub fn signed(tag: u8, number: i64) -> Option<Value> {
        Some(match tag {
            1 => Value::Int(number),
            8 => Value::Date(i32::try_from(number).ok()?),
            9 => Value::Time(number),
            10 => Value::DateTime(number),
            11 => Value::Timestamp(number),
            12 => Value::Year(u16::try_from(number).ok()?),
            13 => Value::Enum(u16::try_from(number).ok()?),
            _ => return None,
        })
    }

    pub fn unsigned(tag: u8, number: u64) -> Option<Value> {
        match tag {
            2 => Some(Value::UInt(number)),
            14 => Some(Value::Set(number)),
            _ => None,
        }
    }

    pub fn string(tag: u8, bytes: Vec<u8>) -> Option<Value> {
        match tag {
            6 => String::from_utf8(bytes).ok().map(Value::Text),
            7 => Some(Value::Bytes(bytes)),
            15 => Some(Value::Json(bytes)),
            _ => None,
        }
    }
}

/// The text that MySQL shows for the value, without quotes: `1.50`, `2024-02-29`, `-838:59:59`. Fractions of a second
/// are shown only where they are not zero. An ENUM and a SET show their numbers, because their labels are with the
/// column.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Int(v) => write!(f, "{v}"),
            Value::UInt(v) => write!(f, "{v}"),
            Value::Decimal { unscaled, scale } => {
                f.write_str(&written(|out| push_decimal(*unscaled, *scale, out)))
            }
            Value::WideDecimal { unscaled, scale } => f.write_str(&written(|out| {
                push_wide_decimal((*unscaled).into(), *scale, out)
            })),
            Value::Float(v) => f.write_str(&written(|out| push_float(*v, out))),
            Value::Double(v) => f.write_str(&written(|out| push_double(*v, out))),
            Value::Text(v) => f.write_str(v),
            Value::Bytes(v) => f.write_str(&String::from_utf8_lossy(v)),
            Value::Json(bytes) => f.write_str(&json::text::to_text(json_of(bytes))),
            Value::Date(days) => f.write_str(&written(|out| push_date(*days, out))),
            Value::Time(micros) => f.write_str(&written(|out| push_time(*micros, AS_NEEDED, out))),
            Value::DateTime(micros) | Value::Timestamp(micros) => {
                f.write_str(&written(|out| push_datetime(*micros, AS_NEEDED, out)))
            }
            Value::Year(year) => f.write_str(&written(|out| push_year(*year, out))),
            Value::Enum(number) => write!(f, "{number}"),
            Value::Set(bits) => write!(f, "{bits}"),
        }
    }
}

/// Digits of a second's fraction: six, or none of a whole second.
const AS_NEEDED: u8 = u8::MAX;

/// The text that MySQL shows for a value of a column: labels of ENUMs and SETs, fractions of a second with the column's
/// digits, numbers with the zeros of ZEROFILL.
pub fn column_text(ty: &ColumnType, value: &Value) -> String {
    let text = plain_column_text(ty, value);
    match ty.zerofill() {
        Some(width) if value.is_number() => zero_filled(&text, width.into()),
        _ => text,
    }
}

/// A number with zeros in front, so that it has at least so many characters.
pub fn zero_filled(number: &str, width: usize) -> String {
    format!("{number:0>width$}")
}

/// The same without ZEROFILL.
fn plain_column_text(ty: &ColumnType, value: &Value) -> String {
    match (value, ty) {
        (value, ty) if ty.has_labels() && value.label_number().is_some() => {
            let number = value.label_number().unwrap_or_default();
            text_of_number(ty, number).into_owned()
        }
        (Value::Time(micros), ty) => written(|out| push_time(*micros, ty.fraction_digits(), out)),
        (Value::DateTime(micros) | Value::Timestamp(micros), ty) => {
            written(|out| push_datetime(*micros, ty.fraction_digits(), out))
        }
        (Value::Float(number), ty) => {
            written(|out| push_shown_float(*number, shown_decimals(ty), out))
        }
        (Value::Double(number), ty) => {
            written(|out| push_shown_double(*number, shown_decimals(ty), out))
        }
        (value, _) => value.to_string(),
    }
}

/// Digits after the point that all values of a FLOAT or DOUBLE are shown with.
fn shown_decimals(ty: &ColumnType) -> Option<u8> {
    ty.float_digits().map(|digits| digits.scale)
}

/// The value in bytes of a row. Damaged ones, which checksums of pages do not let through, are the null literal.
fn json_of(bytes: &[u8]) -> Json<'_> {
    Json::new(bytes).unwrap_or(Json::NULL)
}

fn written(append: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    append(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_columns_print_with_their_digits_and_zeros() {
        let shown = |ty: &str, value| column_text(&ColumnType::parse(ty).unwrap(), &value);
        assert_eq!(shown("float(7,2)", Value::Float(1.5)), "1.50");
        assert_eq!(shown("double(10,3)", Value::Double(-0.5)), "-0.500");
        assert_eq!(shown("int(4) zerofill", Value::UInt(7)), "0007");
        assert_eq!(shown("int(2) zerofill", Value::UInt(777)), "777");
        assert_eq!(shown("float(6,2) zerofill", Value::Float(1.5)), "001.50");
        assert_eq!(shown("int(4) zerofill", Value::Null), "NULL");
    }

    #[test]
    fn a_tag_and_its_content_are_the_value_again() {
        for (tag, value) in [
            (1, Value::Int(-1)),
            (2, Value::UInt(u64::MAX)),
            (6, Value::Text("é".into())),
            (7, Value::Bytes(vec![0xFF])),
            (8, Value::Date(-1)),
            (9, Value::Time(-1)),
            (10, Value::DateTime(1)),
            (11, Value::Timestamp(1)),
            (12, Value::Year(2155)),
            (13, Value::Enum(u16::MAX)),
            (14, Value::Set(1 << 63)),
            (15, Value::Json(vec![0])),
        ] {
            assert_eq!(value.tag(), tag);
            let again = match (TaggedContent::of_tag(tag), ValueRef::from(&value)) {
                (Some(TaggedContent::Signed), ValueRef::Int(v)) => TaggedContent::signed(tag, v),
                (Some(TaggedContent::Unsigned), ValueRef::UInt(v)) => {
                    TaggedContent::unsigned(tag, v)
                }
                (Some(TaggedContent::String), ValueRef::Bytes(v)) => {
                    TaggedContent::string(tag, v.to_vec())
                }
                _ => None,
            };
            assert_eq!(again, Some(value));
        }
        assert_eq!(TaggedContent::of_tag(17), None);
        assert_eq!(TaggedContent::signed(12, -1), None);
        assert_eq!(TaggedContent::string(6, vec![0xFF]), None);
    }

    #[test]
    fn a_wide_decimal_makes_no_value_larger() {
        assert_eq!(size_of::<Value>(), 32);
    }

    #[test]
    fn values_print_as_mysql_prints_them() {
        assert_eq!(
            Value::Decimal {
                unscaled: -5,
                scale: 2
            }
            .to_string(),
            "-0.05"
        );
        assert_eq!(
            Value::Decimal {
                unscaled: 12345,
                scale: 2
            }
            .to_string(),
            "123.45"
        );
        assert_eq!(Value::Double(1e15).to_string(), "1e15");
        assert_eq!(Value::Double(0.1).to_string(), "0.1");
        assert_eq!(Value::Float(0.1).to_string(), "0.1");
        assert_eq!(Value::Float(1_234_567.9).to_string(), "1234570");
        assert_eq!(
            Value::Double(1_234_567_890_123_456.8).to_string(),
            "1234567890123456.8"
        );
        assert_eq!(Value::Date(0).to_string(), "1970-01-01");
        assert_eq!(
            Value::DateTime(-1).to_string(),
            "1969-12-31 23:59:59.999999"
        );
        assert_eq!(Value::Time(-3_020_399_000_000).to_string(), "-838:59:59");
    }
}
