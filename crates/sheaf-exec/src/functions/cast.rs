//! CAST and CONVERT, and the conversions that the typing rule inserts.
//!
//! Each conversion is a function with `$` in its name, which the pass over the syntax tree and the typing rule write.
//! So a plan shows its conversions. (A widening for which arrow does what MySQL does is a plain cast.) Precision,
//! scale, fraction digits, lengths and names of character sets are further arguments.
//!
//! [`super::conversion`] reads the values, so that a cast and an argument of the same type agree. This module adds what
//! a cast has beyond that: rounding to digits, lengths, and ranges.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, Decimal128Array, Decimal256Array, DurationMicrosecondArray,
    Float32Array, Float64Array, Int64Array, StringViewArray, TimestampMicrosecondArray,
    UInt16Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use sheaf_types::Collation;
use sheaf_types::error::codes;
use sheaf_types::number::{
    FloatDigits, Int256, MAX_FLOAT_PRECISION, MAX_FLOAT_SCALE, MAX_WIDE_DIGITS, fitting_double,
    is_wide, power_of_ten, push_double, text_place, text_to_decimal, text_to_unsigned,
};
use sheaf_types::temporal::{
    self, DAY, ZERO_DATETIME, civil_from_days, round_datetime, round_time, year_of_number,
};
use sheaf_types::text::encoding::TextEncoding;

use super::conversion::{WIDEST, to_text};
use super::result_array::{byte_strings, texts};
use super::types::{Coercibility, MAX_PRECISION, SqlType, field, refuse_what_is_no_text};
use super::{Call, EvaluationError, Function, Operands, wide_decimal};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("$cast_signed", (1, 1), |_| Ok(field::bigint()), cast_signed),
    Function::strict(
        "$cast_unsigned",
        (1, 1),
        |_| Ok(field::unsigned_bigint()),
        cast_unsigned,
    ),
    // Value, precision, scale.
    Function::strict("$cast_decimal", (3, 3), decimal_type, cast_decimal).decimals(0, 1),
    // The same of what is not cut: error 1690 where there is no room for the decimals.
    Function::strict("$widen_decimal", (3, 3), decimal_type, |call| {
        wide_decimal::widen(call)
    }),
    Function::strict(
        "$cast_double",
        (1, 1),
        |_| Ok(field::double()),
        |call| Ok(Arc::new(call.double(0)?.array)),
    ),
    Function::strict(
        "$cast_float",
        (1, 1),
        |_| Ok(Field::new("", DataType::Float32, true)),
        |call| {
            let values: Float32Array = call
                .double(0)?
                .array
                .unary::<_, arrow::datatypes::Float32Type>(|value| {
                    (value as f32).clamp(f32::MIN, f32::MAX)
                });
            Ok(Arc::new(values))
        },
    ),
    // A text, and the decimals of the numbers that it is compared with.
    Function::strict("$text_place", (2, 2), place_type, place_of_text),
    // Value, and optionally a length in characters.
    Function::strict("$cast_char", (1, 2), text_type, cast_char),
    // Bytes that stand for a text: error 3854 where they are none.
    Function::strict("$text_of_bytes", (1, 1), text_type, |call| {
        let texts = call.converted(0, |array, field| {
            refuse_what_is_no_text(array)?;
            to_text(array, field)
        });
        Ok(Arc::new(texts?.array))
    }),
    Function::strict("$cast_binary", (1, 2), |_| Ok(field::bytes()), cast_binary).growing(),
    // Value, name of a character set, and a number if it gives way to columns: bytes as a text of it.
    Function::new("$using", (2, 3), using_type, text_of_set),
    // Value, name of a character set: the bytes of the text in it.
    Function::strict("$encoded", (2, 2), |_| Ok(field::bytes()), bytes_in_set).growing(),
    Function::new(
        "$cast_date",
        (1, 1),
        |_| Ok(field::date()),
        |call| Ok(Arc::new(call.date(0)?.array)),
    ),
    // What is no year is NULL.
    Function::new("$cast_year", (1, 1), |_| Ok(field::year()), cast_year),
    // Value, fraction digits.
    Function::new(
        "$cast_datetime",
        (2, 2),
        |operands| Ok(field::datetime(fraction_digits(operands))),
        |call| {
            let fsp = result_fsp(call);
            if call.sql_type(0).is_text() {
                return datetime_of_text(call, fsp);
            }
            let values = call.datetime(0)?.array;
            let rounded = values.iter().map(|micros| round_datetime(micros?, fsp));
            Ok(Arc::new(rounded.collect::<TimestampMicrosecondArray>()))
        },
    ),
    // A text beside a point in time. What is no date is less than all of them.
    Function::strict(
        "$moment",
        (1, 1),
        |_| Ok(field::datetime(6)),
        |call| {
            let (texts, moments) = (call.text(0)?, call.datetime(0)?);
            let moment = |row: usize| {
                texts.get(row)?;
                Some(moments.get(row).unwrap_or(ZERO_DATETIME))
            };
            let values: TimestampMicrosecondArray = (0..call.rows()).map(moment).collect();
            Ok(Arc::new(values))
        },
    ),
    // A text beside a time. What is no time is 00:00:00.
    Function::strict(
        "$clock",
        (1, 1),
        |_| Ok(field::time(6)),
        |call| {
            let (texts, times) = (call.text(0)?, call.time(0)?);
            let time = |row: usize| {
                texts.get(row)?;
                Some(times.get(row).unwrap_or(0))
            };
            let values: DurationMicrosecondArray = (0..call.rows()).map(time).collect();
            Ok(Arc::new(values))
        },
    ),
    // CAST AS DATE: value, today. And AS DATETIME: value, fraction digits, today.
    Function::marker("$to_date", (2, 2), |_| Ok(field::date())),
    Function::marker("$to_datetime", (3, 3), |operands| {
        Ok(field::datetime(fraction_digits(operands)))
    }),
    // Time, fraction digits, day: the point in time.
    // What is on no day, or beyond the calendar, is NULL.
    Function::new(
        "$on_day",
        (3, 3),
        |operands| Ok(field::datetime(fraction_digits(operands))),
        on_day,
    ),
    Function::new(
        "$cast_time",
        (2, 2),
        |operands| Ok(field::time(fraction_digits(operands))),
        |call| {
            let fsp = result_fsp(call);
            if call.sql_type(0).is_text() {
                return time_of_text(call, fsp);
            }
            let values = call.time(0)?.array;
            Ok(Arc::new(
                values.unary::<_, arrow::datatypes::DurationMicrosecondType>(|micros| {
                    round_time(micros, fsp)
                }),
            ))
        },
    )
    .time(),
    // Value, NULL of an exact type, name of a column of that type: the number as the column holds it.
    Function::new(
        "$fitted",
        (3, 3),
        |operands| Ok(operands.fields[1].as_ref().clone()),
        fitted,
    ),
    // Value, name of a collation: the same value, compared in that way.
    Function::strict(
        "$collate",
        (2, 2),
        |operands| collated(operands, Coercibility::Explicit),
        |call| Ok(Arc::new(call.text(0)?.array)),
    ),
    // Value, name of a collation: the same value, which compares in that way as a column of it does.
    Function::strict(
        "$collated",
        (2, 2),
        |operands| collated(operands, Coercibility::Implicit),
        |call| Ok(Arc::new(call.text(0)?.array)),
    ),
    // A FLOAT or DOUBLE, and a number of characters: the text with as many digits as fit.
    Function::strict("$short_double", (2, 2), |_| Ok(field::text()), short_double),
    // A FLOAT or DOUBLE, and a number of decimals: the value that a column with so many has.
    Function::strict(
        "$rounded_double",
        (2, 2),
        rounded_double_type,
        rounded_double,
    ),
    // Digits of an ENUM's value: its number.
    Function::strict(
        "$enum_number",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| Ok(Arc::new(call.int(0)?.array)),
    ),
];

pub(super) fn fraction_digits(operands: &Operands<'_>) -> u8 {
    operands.int(1).map_or(0, |fsp| fsp.clamp(0, 6) as u8)
}

pub(super) fn result_fsp(call: &Call<'_>) -> u8 {
    SqlType::of(&call.args.return_field).fsp()
}

/// What does not fit at all has all of its digits.
fn short_double(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, lengths) = (call.double(0)?, call.int(1)?);
    texts(call, |row, out| {
        let (value, length) = (values.get(row)?, lengths.get(row)?);
        let mut text = String::new();
        push_double(value, &mut text);
        let room = usize::try_from(length).unwrap_or(0);
        if text.len() > room
            && let Some(short) = fitting_double(value, room)
        {
            text = short;
        }
        out.push_str(&text);
        Some(())
    })
}

fn decimals_of_double(decimals: Option<i64>) -> u8 {
    let most = i64::from(MAX_FLOAT_SCALE);
    decimals.map_or(0, |decimals| decimals.clamp(0, most) as u8)
}

fn rounded_double_type(operands: &Operands<'_>) -> Result<Field> {
    let decimals = decimals_of_double(operands.int(1));
    Ok(field::double_of(Some(decimals)))
}

fn rounded_double(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, decimals) = (call.double(0)?, call.int(1)?);
    let rounded = |row: usize| {
        let scale = decimals_of_double(decimals.get(row));
        let digits = FloatDigits {
            precision: MAX_FLOAT_PRECISION,
            scale,
        };
        Some(digits.round(values.get(row)?))
    };
    let values: Float64Array = (0..call.rows()).map(rounded).collect();
    Ok(Arc::new(values))
}

/// Texts have more digits than microseconds, and are rounded once.
fn datetime_of_text(call: &Call<'_>, fsp: u8) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    let values: TimestampMicrosecondArray = (0..call.rows())
        .map(|row| {
            let read = temporal::read_datetime(texts.get(row)?).ok()?;
            read.micros(fsp).ok()
        })
        .collect();
    Ok(Arc::new(values))
}

/// As [`datetime_of_text`].
fn time_of_text(call: &Call<'_>, fsp: u8) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    let values: DurationMicrosecondArray = (0..call.rows())
        .map(|row| Some(temporal::read_time(texts.get(row)?).ok()?.micros(fsp)))
        .collect();
    Ok(Arc::new(values))
}

fn decimal_type(operands: &Operands<'_>) -> Result<Field> {
    let precision = operands.int(1).unwrap_or(10).clamp(1, WIDEST.into()) as u8;
    if is_wide(precision) {
        let scale = operands
            .int(2)
            .unwrap_or(0)
            .clamp(0, MAX_WIDE_DIGITS.into()) as i8;
        return Ok(Field::new("", DataType::Decimal256(precision, scale), true));
    }
    let scale = operands.int(2).unwrap_or(0).clamp(0, 30) as u8;
    Ok(field::decimal(
        precision.saturating_sub(scale),
        scale,
        scale,
    ))
}

/// A digit more than the numbers have.
fn place_type(operands: &Operands<'_>) -> Result<Field> {
    let decimals = operands.int(1).unwrap_or(0).clamp(0, 37) as i8;
    let data_type = DataType::Decimal128(MAX_PRECISION, decimals + 1);
    Ok(Field::new("", data_type, true))
}

fn place_of_text(call: &Call<'_>) -> Result<ArrayRef> {
    let DataType::Decimal128(_, scale) = *call.result_type() else {
        return datafusion_common::internal_err!("a place is {}", call.result_type());
    };
    let decimals = scale.max(1) as u8 - 1;
    let texts = call.text(0)?.array;
    let places = texts.iter().map(|text| Some(text_place(text?, decimals)));
    let places: Decimal128Array = places.collect();
    Ok(Arc::new(places.with_data_type(call.result_type().clone())))
}

/// A text that is computed from no column, unless the value is text already.
fn text_type(operands: &Operands<'_>) -> Result<Field> {
    Ok(match operands.sql_type(0) {
        SqlType::Text {
            collation,
            coercibility,
        } => field::collated_text(collation, coercibility),
        SqlType::Enum { collation } => field::collated_text(collation, Coercibility::Implicit),
        _ => field::text(),
    })
}

/// A text of a character set compares by the collation that this has by default. Texts of the few sets without
/// collations give way to others.
fn using_type(operands: &Operands<'_>) -> Result<Field> {
    let name = operands.text(1).unwrap_or_default();
    let gives_way = operands.fields.len() > 2;
    let default = Collation::default_of_set(&name);
    let coercibility = match default.is_some() && !gives_way {
        true => Coercibility::Implicit,
        false => Coercibility::Coercible,
    };
    Ok(field::collated_text(
        default.unwrap_or_default(),
        coercibility,
    ))
}

fn collated(operands: &Operands<'_>, coercibility: Coercibility) -> Result<Field> {
    let name = operands.text(1).unwrap_or_default();
    let collation = Collation::parse_with_aliases(&name).ok_or_else(|| {
        EvaluationError::new(
            codes::UNKNOWN_COLLATION,
            format!("Unknown collation: '{name}'"),
        )
    })?;
    Ok(field::collated_text(collation, coercibility))
}

fn on_day(call: &Call<'_>) -> Result<ArrayRef> {
    let fsp = result_fsp(call);
    let (times, days) = (call.time(0)?, call.date(2)?);
    let moments: TimestampMicrosecondArray = (0..call.rows())
        .map(|row| {
            let midnight = i64::from(days.existing(row)?) * DAY;
            round_datetime(midnight + times.get(row)?, fsp)
        })
        .collect();
    Ok(Arc::new(moments))
}

/// An ENUM is a number already.
fn spells_number(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Text { .. } | SqlType::Bytes)
}

fn cast_signed(call: &Call<'_>) -> Result<ArrayRef> {
    if call.args.arg_fields[0].data_type() == &DataType::UInt64 {
        let values = call.unsigned(0)?.array;
        return Ok(Arc::new(
            values.unary::<_, arrow::datatypes::Int64Type>(|value| value as i64),
        ));
    }
    if spells_number(&call.sql_type(0)) {
        // Above the signed range it wraps.
        let texts = call.text(0)?;
        let number = |row: usize| Some(text_to_unsigned(texts.get(row)?) as i64);
        let values: Int64Array = (0..call.rows()).map(number).collect();
        return Ok(Arc::new(values));
    }
    Ok(Arc::new(call.int(0)?.array))
}

/// Of a date its year. A text is a year by the digits that it begins with; as a text zero is 2000, as a number 0.
fn cast_year(call: &Call<'_>) -> Result<ArrayRef> {
    let ty = call.sql_type(0);
    if matches!(ty, SqlType::Date | SqlType::DateTime { .. }) {
        let days = call.date(0)?;
        let year = |row: usize| year_of_number(civil_from_days(days.get(row)?).0.into());
        return Ok(Arc::new(
            (0..call.rows()).map(year).collect::<UInt16Array>(),
        ));
    }
    let numbers = call.int(0)?;
    let texts = match ty.is_string() {
        true => Some(call.text(0)?),
        false => None,
    };
    let year = |row: usize| {
        let number = numbers.get(row)?;
        match &texts {
            None => year_of_number(number),
            Some(texts) => {
                let text = texts.get(row)?.trim_start_matches([' ', '\t']);
                let digits = text.strip_prefix('+').unwrap_or(text);
                let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
                let year = year_of_number(number).filter(|_| is_number)?;
                Some(if year == 0 { 2000 } else { year })
            }
        }
    };
    Ok(Arc::new(
        (0..call.rows()).map(year).collect::<UInt16Array>(),
    ))
}

fn cast_unsigned(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.unsigned(0)?;
    if spells_number(&call.sql_type(0)) {
        // A text may spell a number above the signed range.
        let texts = call.text(0)?;
        let values: UInt64Array = (0..call.rows())
            .map(|row| Some(text_to_unsigned(texts.get(row)?)))
            .collect();
        return Ok(Arc::new(values));
    }
    if call.sql_type(0).is_wide() {
        let decimals = call.wide_decimal(0, 0)?;
        let values: UInt64Array = (0..call.rows())
            .map(|row| match decimals.get(row)?.is_negative() {
                true => Some(0),
                false => values.get(row),
            })
            .collect();
        return Ok(Arc::new(values));
    }
    if let DataType::Decimal128(..) = call.args.arg_fields[0].data_type() {
        // Below zero there is no number without a sign, of exact fractions; integers wrap.
        let decimals = call.decimal(0, 0)?;
        let values: UInt64Array = (0..call.rows())
            .map(|row| match decimals.get(row)? < 0 {
                true => Some(0),
                false => values.get(row),
            })
            .collect();
        return Ok(Arc::new(values));
    }
    Ok(Arc::new(values.array))
}

fn cast_decimal(call: &Call<'_>) -> Result<ArrayRef> {
    if let DataType::Decimal256(precision, scale) = *call.result_type() {
        return wide_decimal::cast(call, precision, scale.max(0) as u8);
    }
    if wide_decimal::takes_wide(call) {
        return narrowed(call);
    }
    let DataType::Decimal128(precision, scale) = *call.result_type() else {
        return datafusion_common::internal_err!("CAST AS DECIMAL gives {}", call.result_type());
    };
    let limit = power_of_ten(precision) - 1;
    let mut values = call.decimal(0, scale.max(0) as u8)?.array;
    if call.sql_type(0).is_string() {
        // Texts too long for an i128 were cut already; the sign decides to which side.
        let texts = call.text(0)?.array;
        values = texts
            .iter()
            .zip(values.iter())
            .map(|(text, value)| match text_to_decimal(text?) {
                Some(_) => value,
                None => Some(if text?.trim_start().starts_with('-') {
                    -limit
                } else {
                    limit
                }),
            })
            .collect();
    }
    let cut =
        values.unary::<_, arrow::datatypes::Decimal128Type>(|value| value.clamp(-limit, limit));
    Ok(Arc::new(cut.with_data_type(call.result_type().clone())))
}

/// A wide DECIMAL as one that is not: what does not fit is cut to the largest that does.
fn narrowed(call: &Call<'_>) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = *call.result_type() else {
        return datafusion_common::internal_err!("CAST AS DECIMAL gives {}", call.result_type());
    };
    let limit = power_of_ten(precision) - 1;
    let values = call.wide_decimal(0, scale.max(0) as u8)?;
    let cut = |number: Int256| number.clamp((-limit).into(), limit.into()).to_i128();
    let values = (0..call.rows()).map(|row| values.get(row).and_then(cut));
    let values: Decimal128Array = values.collect();
    Ok(Arc::new(values.with_data_type(call.result_type().clone())))
}

/// Rounded to the column's scale; error 1264 for what is out of its range.
fn fitted(call: &Call<'_>) -> Result<ArrayRef> {
    let target = call.result_type();
    let (lowest, highest, scale): (i128, i128, u8) = match target {
        DataType::Decimal256(precision, scale) => {
            let highest = Int256::nines(*precision);
            let scale = (*scale).max(0) as u8;
            let values = fitted_wide(call, scale, (highest.negated(), highest))?;
            return Ok(Arc::new(values.with_data_type(target.clone())));
        }
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into(), 0),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into(), 0),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into(), 0),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into(), 0),
        DataType::UInt8 => (0, u8::MAX.into(), 0),
        DataType::UInt16 => (0, u16::MAX.into(), 0),
        DataType::UInt32 => (0, u32::MAX.into(), 0),
        DataType::UInt64 => (0, u64::MAX.into(), 0),
        DataType::Decimal128(precision, scale) => {
            let limit = power_of_ten(*precision) - 1;
            (-limit, limit, (*scale).max(0) as u8)
        }
        other => return datafusion_common::internal_err!("{other} is no exact type"),
    };
    if call.sql_type(0).is_wide() {
        let values = fitted_wide(call, scale, (lowest.into(), highest.into()))?;
        return Ok(arrow::compute::cast(&values, target)?);
    }
    let values = call.decimal(0, scale)?.array;
    if let Some(row) = values
        .iter()
        .position(|value| value.is_some_and(|value| value < lowest || value > highest))
    {
        let column = call
            .scalar(2)
            .and_then(|name| name.try_as_str().flatten())
            .unwrap_or_default();
        return Err(EvaluationError::out_of_range_column(column, row as u64 + 1).into());
    }
    Ok(match target {
        DataType::Decimal128(..) => Arc::new(values.with_data_type(target.clone())),
        _ => arrow::compute::cast(&values, target)?,
    })
}

/// As [`fitted`], of and to wide DECIMALs.
fn fitted_wide(call: &Call<'_>, scale: u8, range: (Int256, Int256)) -> Result<Decimal256Array> {
    let column = call.scalar(2).and_then(|name| name.try_as_str().flatten());
    wide_decimal::fitted(call, scale, range, column.unwrap_or_default())
}

fn cast_char(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.text(0)?;
    if call.len() == 1 {
        return Ok(Arc::new(values.array));
    }
    let lengths = call.int(1)?;
    let result: StringViewArray = (0..call.rows())
        .map(|row| {
            let (text, length) = (values.get(row)?, lengths.get(row)?);
            Some(
                match text
                    .char_indices()
                    .nth(usize::try_from(length).unwrap_or(0))
                {
                    Some((end, _)) => &text[..end],
                    None => text,
                },
            )
        })
        .collect();
    Ok(Arc::new(result))
}

/// The encoding that the second argument names.
fn named_encoding(call: &Call<'_>) -> Result<TextEncoding> {
    let names = call.text(1)?;
    Ok(TextEncoding::of_character_set(
        names.get(0).unwrap_or_default(),
    ))
}

/// Bytes that are no text of the character set are NULL. Of a text, what the character set does not have is lost.
///
/// # Errors
/// 3854 for bytes that are a text, but one that the set writes with others.
fn text_of_set(call: &Call<'_>) -> Result<ArrayRef> {
    let encoding = named_encoding(call)?;
    if !call.is_bytes(0) {
        let values = call.text(0)?;
        // What is stored as UTF-8, utf8mb3 among it.
        let narrow = SqlType::of(&call.args.return_field);
        let narrow = narrow.collation().unwrap_or_default();
        if encoding == TextEncoding::Utf8 && !matches!(narrow, Collation::OfSet(_)) {
            return Ok(Arc::new(values.array));
        }
        return texts(call, |row, out| {
            let text = values.get(row)?;
            match encoding {
                TextEncoding::Utf8 => out.push_str(&narrow.narrowed(text)),
                _ => out.push_str(&encoding.narrowed(text)),
            }
            Some(())
        });
    }
    let values = call.bytes(0)?;
    if let Some(set) = encoding.table_set() {
        let is_other_code =
            |bytes: &&[u8]| encoding.decode(bytes).is_none() && set.decode_exact(bytes).is_some();
        let mut given = (0..call.rows()).filter_map(|row| values.get(row));
        if let Some(bytes) = given.find(is_other_code) {
            return Err(EvaluationError::not_convertible(bytes, "binary", set.name()).into());
        }
    }
    texts(call, |row, out| {
        let bytes = values.get(row)?;
        match std::str::from_utf8(bytes) {
            Ok(text) if encoding == TextEncoding::Utf8 => out.push_str(text),
            _ => out.push_str(&encoding.decode(bytes)?),
        }
        Some(())
    })
}

/// The bytes of a text in a character set. Bytes are what they are.
fn bytes_in_set(call: &Call<'_>) -> Result<ArrayRef> {
    let encoding = named_encoding(call)?;
    let (values, is_text) = (call.bytes(0)?, !call.is_bytes(0));
    byte_strings(call, |row, out| {
        let bytes = values.get(row)?;
        match is_text {
            true => out.extend_from_slice(&encoding.encode(bytes)),
            false => out.extend_from_slice(bytes),
        }
        Some(())
    })
}

/// A text is the bytes that it has in its character set.
fn cast_binary(call: &Call<'_>) -> Result<ArrayRef> {
    let collation = call.sql_type(0).collation().unwrap_or_default();
    let encoding = collation.encoding();
    if call.len() == 1 && encoding == TextEncoding::Utf8 {
        return Ok(Arc::new(call.byte_array(0)?.array));
    }
    let values = call.bytes(0)?;
    if call.len() == 1 {
        return byte_strings(call, |row, out| {
            out.extend_from_slice(&encoding.encode(values.get(row)?));
            Some(())
        });
    }
    let lengths = call.int(1)?;
    let mut account = call.account();
    let mut builder = BinaryBuilder::with_capacity(call.rows(), 0);
    for row in 0..call.rows() {
        let (Some(bytes), Some(length)) = (values.get(row), lengths.get(row)) else {
            builder.append_null();
            continue;
        };
        let length = usize::try_from(length).unwrap_or(0);
        if !account.book(length)? {
            builder.append_null();
            continue;
        }
        let bytes = encoding.encode(bytes);
        let mut padded = bytes[..bytes.len().min(length)].to_vec();
        padded.resize(length, 0);
        builder.append_value(padded);
    }
    Ok(Arc::new(builder.finish()))
}
