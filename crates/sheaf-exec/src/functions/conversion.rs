//! Arrays of any type as arrays of the type that is wanted, by MySQL's rules.
//!
//! Each `to_...` takes an array with the field that says its [`SqlType`], and there is one for each type that kernels
//! compute with. A cast and an argument of a call go by the same ones, so they agree.

use std::ops::Add;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, BooleanArray, Date32Array,
    Decimal128Array, Decimal256Array, DurationMicrosecondArray, Float64Array, Int64Array,
    StringViewArray, StringViewBuilder, TimestampMicrosecondArray, UInt64Array, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, Field, Float32Type, Float64Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, UInt16Type, UInt64Type, i256,
};
use datafusion_common::{DataFusionError, Result, exec_datafusion_err};
use sheaf_access::{i256_of, int256_of};
use sheaf_types::json::functions::coerce::{
    to_datetime as datetime_of_json, to_decimal as decimal_of_json, to_double as double_of_json,
    to_integer as integer_of_json, to_time as time_of_json,
    to_wide_decimal as wide_decimal_of_json,
};
use sheaf_types::json::text as json_text;
use sheaf_types::labels::number_of_text;
use sheaf_types::number::Int256;
use sheaf_types::temporal::NumberParts;
use sheaf_types::text::encoding::TextEncoding;
use sheaf_types::{number, temporal, zero_filled};

use super::document::{is_zero, of_documents, texts_of_documents};
use super::error::EvaluationError;
use super::limits::Turns;
use super::types::{HYBRID_KEY, SqlType, bit_length, declared_type, float_decimals, zerofill};

/// Whatever DataFusion made of a string, as a view array.
fn string_view(array: &ArrayRef) -> Result<StringViewArray> {
    Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
}

fn build_text(rows: usize, mut write: impl FnMut(usize, &mut String) -> bool) -> StringViewArray {
    let mut builder = StringViewBuilder::with_capacity(rows);
    let mut text = String::new();
    for row in 0..rows {
        text.clear();
        if write(row, &mut text) {
            builder.append_value(&text);
        } else {
            builder.append_null();
        }
    }
    builder.finish()
}

/// Any value as the text that MySQL shows for it.
pub fn to_text(array: &ArrayRef, field: &Field) -> Result<StringViewArray> {
    let texts = plain_text(array, field)?;
    Ok(match zerofill(field) {
        None => texts,
        Some(width) => {
            let filled = |text| zero_filled(text, width.into());
            texts.iter().map(|text| text.map(filled)).collect()
        }
    })
}

/// The same without the zeros of ZEROFILL.
fn plain_text(array: &ArrayRef, field: &Field) -> Result<StringViewArray> {
    if let Some(length) = bit_length(field) {
        let bytes = bytes_of_bits(array, length)?;
        let text = |bytes| String::from_utf8_lossy(bytes);
        return Ok(bytes.iter().map(|bytes| bytes.map(text)).collect());
    }
    let ty = SqlType::of(field);
    if ty == SqlType::Json {
        return texts_of_documents(array);
    }
    let rows = array.len();
    let valid = |row: usize| array.is_valid(row);
    Ok(match (array.data_type(), ty) {
        (DataType::Utf8View, _) => array.as_string_view().clone(),
        (DataType::Utf8 | DataType::LargeUtf8, _) => string_view(array)?,
        (DataType::Boolean, _) => {
            let values = array.as_boolean();
            build_text(rows, |row, out| {
                out.push(if valid(row) && values.value(row) {
                    '1'
                } else {
                    '0'
                });
                valid(row)
            })
        }
        (DataType::Decimal128(_, scale), SqlType::Decimal { decimals, .. }) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            let values = array.as_primitive::<Decimal128Type>();
            build_text(rows, |row, out| {
                // Rounding to fewer digits always fits.
                let shown = number::rescale(values.value(row), scale, decimals).unwrap_or_default();
                number::push_decimal(shown, decimals, out);
                valid(row)
            })
        }
        (DataType::Decimal256(_, scale), SqlType::Decimal { decimals, .. }) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            let values = array.as_primitive::<Decimal256Type>();
            build_text(rows, |row, out| {
                let shown = int256_of(values.value(row)).rescaled(scale, decimals);
                number::push_wide_decimal(shown.unwrap_or_default(), decimals, out);
                valid(row)
            })
        }
        (DataType::Float64, _) => {
            let values = array.as_primitive::<Float64Type>();
            let decimals = float_decimals(field);
            build_text(rows, |row, out| {
                number::push_shown_double(values.value(row), decimals, out);
                valid(row)
            })
        }
        (DataType::Float32, _) => {
            let values = array.as_primitive::<Float32Type>();
            let decimals = float_decimals(field);
            build_text(rows, |row, out| {
                number::push_shown_float(values.value(row), decimals, out);
                valid(row)
            })
        }
        (DataType::Date32, _) => {
            let values = array.as_primitive::<Date32Type>();
            build_text(rows, |row, out| {
                temporal::push_date(values.value(row), out);
                valid(row)
            })
        }
        (DataType::Timestamp(..), ty) => {
            let values = timestamps(array)?;
            build_text(rows, |row, out| {
                temporal::push_datetime(values.value(row), ty.fsp(), out);
                valid(row)
            })
        }
        (DataType::Duration(_), ty) => {
            let values = durations(array)?;
            build_text(rows, |row, out| {
                temporal::push_time(values.value(row), ty.fsp(), out);
                valid(row)
            })
        }
        (DataType::UInt16, SqlType::Year) => {
            let values = array.as_primitive::<UInt16Type>();
            build_text(rows, |row, out| {
                temporal::push_year(values.value(row), out);
                valid(row)
            })
        }
        (DataType::Binary | DataType::BinaryView, _) => {
            let values = to_bytes(array, field)?;
            build_text(rows, |row, out| {
                out.push_str(&String::from_utf8_lossy(values.value(row)));
                valid(row)
            })
        }
        _ => string_view(array)?,
    })
}

/// The bytes of values of BIT.
fn bytes_of_bits(array: &ArrayRef, length: u8) -> Result<BinaryArray> {
    let numbers = cast(array, &DataType::UInt64)?;
    let numbers = numbers.as_primitive::<UInt64Type>().iter();
    let bytes = |number| number::bit_bytes(number, length);
    Ok(numbers.map(|number| number.map(bytes)).collect())
}

/// Any value as bytes: byte strings as they are, those of a BIT, and everything else by its text.
pub fn to_bytes(array: &ArrayRef, field: &Field) -> Result<BinaryArray> {
    if SqlType::of(field) == SqlType::Json {
        let bytes = |value| Some(json_text::to_text(value).into_bytes());
        return Ok(of_documents(array, bytes).collect());
    }
    if let Some(length) = bit_length(field) {
        return bytes_of_bits(array, length);
    }
    Ok(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().clone(),
        DataType::BinaryView => cast(array, &DataType::Binary)?.as_binary::<i32>().clone(),
        _ => {
            let text = to_text(array, field)?;
            text.iter().map(|value| value.map(str::as_bytes)).collect()
        }
    })
}

/// As [`to_bytes`], without a copy of strings.
pub(super) fn to_byte_views(array: &ArrayRef, field: &Field) -> Result<BinaryViewArray> {
    if let Some(length) = bit_length(field) {
        return Ok((&bytes_of_bits(array, length)?).into());
    }
    if SqlType::of(field) == SqlType::Json {
        return Ok((&to_bytes(array, field)?).into());
    }
    Ok(match array.data_type() {
        DataType::BinaryView => array.as_binary_view().clone(),
        DataType::Binary => array.as_binary::<i32>().into(),
        _ => to_text(array, field)?.to_binary_view(),
    })
}

/// As [`to_bytes`], but a text has the bytes of its character set.
pub(super) fn to_bytes_of_set(array: &ArrayRef, field: &Field) -> Result<BinaryArray> {
    let collation = SqlType::of(field).collation().unwrap_or_default();
    Ok(match collation.encoding() {
        TextEncoding::Utf8 => to_bytes(array, field)?,
        encoding => {
            let texts = to_text(array, field)?;
            let encoded = |text: Option<&str>| Some(encoding.encode(text?.as_bytes()).into_owned());
            texts.iter().map(encoded).collect()
        }
    })
}

/// The bytes of any value, each as the character of its number. A text has those of its character set.
pub(super) fn characters_of_bytes(
    array: &ArrayRef,
    field: &Field,
    turns: &Turns<'_>,
) -> Result<StringViewArray> {
    let values = to_bytes_of_set(array, field)?;
    Ok(build_text(values.len(), |row, out| {
        if values.is_null(row) {
            return false;
        }
        for bytes in turns.byte_stretches(values.value(row)) {
            match str::from_utf8(bytes) {
                Ok(text) if text.is_ascii() => out.push_str(text),
                _ => out.extend(bytes.iter().copied().map(char::from)),
            }
        }
        true
    }))
}

/// What [`characters_of_bytes`] has been made of.
pub(super) fn bytes_of_characters(texts: &StringViewArray, turns: &Turns<'_>) -> BinaryArray {
    let bytes_of = |text: &str| {
        let mut bytes = Vec::with_capacity(text.len());
        for text in turns.stretches(text) {
            match text.is_ascii() {
                true => bytes.extend_from_slice(text.as_bytes()),
                false => bytes.extend(text.chars().map(|byte| byte as u8)),
            }
        }
        bytes
    };
    texts.iter().map(|text| text.map(bytes_of)).collect()
}

fn timestamps(array: &ArrayRef) -> Result<TimestampMicrosecondArray> {
    let array = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    Ok(array.as_primitive::<TimestampMicrosecondType>().clone())
}

fn durations(array: &ArrayRef) -> Result<DurationMicrosecondArray> {
    let array = cast(array, &DataType::Duration(TimeUnit::Microsecond))?;
    Ok(array.as_primitive::<DurationMicrosecondType>().clone())
}

fn null<T: Clone + 'static>(data_type: &DataType, rows: usize) -> Result<T> {
    new_null_array(data_type, rows)
        .as_any()
        .downcast_ref::<T>()
        .cloned()
        .ok_or_else(|| exec_datafusion_err!("no null array of {data_type}"))
}

/// The number of an ENUM value's label, 0 if it has none; the bits of a SET's.
fn enum_numbers(array: &ArrayRef, field: &Field) -> Result<Int64Array> {
    let texts = string_view(array)?;
    let declared = declared_type(field);
    let number = |text: &str| {
        let number = declared.as_ref().map(|ty| number_of_text(ty, text));
        number.unwrap_or(0) as i64
    };
    Ok(texts.iter().map(|text| text.map(number)).collect())
}

/// Whether these are values of a hexadecimal literal.
fn is_hybrid(field: &Field) -> bool {
    field.metadata().contains_key(HYBRID_KEY)
}

/// The numbers that hexadecimal literals are where integers are wanted.
fn hybrid_numbers(array: &ArrayRef) -> UInt64Array {
    let values = array.as_binary::<i32>().iter();
    values
        .map(|bytes| bytes.map(number::bytes_to_unsigned))
        .collect()
}

/// Any value as a signed integer. Fractions are rounded, texts give their leading integer.
pub fn to_int(array: &ArrayRef, field: &Field) -> Result<Int64Array> {
    Ok(match (array.data_type(), SqlType::of(field)) {
        (DataType::Int64, _) => array.as_primitive::<Int64Type>().clone(),
        (DataType::Null, _) => null(&DataType::Int64, array.len())?,
        (DataType::UInt64, _) => array
            .as_primitive::<UInt64Type>()
            .unary(|value| i64::try_from(value).unwrap_or(i64::MAX)),
        (DataType::Decimal128(_, scale), _) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            array.as_primitive::<Decimal128Type>().unary(|value| {
                let whole = number::rescale(value, scale, 0)
                    .unwrap_or(value.signum() * i128::from(i64::MAX));
                whole.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
            })
        }
        (DataType::Decimal256(_, scale), _) => {
            let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
            wide_to_whole(array, *scale).unary(|whole| whole.clamp(least, most) as i64)
        }
        (DataType::Float32 | DataType::Float64, _) => {
            to_double(array, field)?.unary(number::double_to_int)
        }
        (DataType::Date32, _) => array
            .as_primitive::<Date32Type>()
            .unary(temporal::date_as_number),
        (DataType::Timestamp(..), _) => timestamps(array)?.unary(temporal::datetime_as_integer),
        (DataType::Duration(_), _) => durations(array)?.unary(temporal::time_as_integer),
        // The lower 64 bits.
        (_, SqlType::Json) => {
            of_documents(array, |value| Some(integer_of_json(value).value as i64)).collect()
        }
        (_, SqlType::Enum { .. }) => enum_numbers(array, field)?,
        (DataType::Binary, _) if is_hybrid(field) => {
            hybrid_numbers(array).unary(|number| i64::try_from(number).unwrap_or(i64::MAX))
        }
        (_, SqlType::Text { .. } | SqlType::Bytes) => to_text(array, field)?
            .iter()
            .map(|text| text.map(number::text_to_int))
            .collect(),
        _ => cast(array, &DataType::Int64)?
            .as_primitive::<Int64Type>()
            .clone(),
    })
}

/// Wide DECIMALs rounded to whole numbers, cut to the range of 128 bits.
fn wide_to_whole(array: &ArrayRef, scale: i8) -> Decimal128Array {
    let scale = u8::try_from(scale).unwrap_or(0);
    array.as_primitive::<Decimal256Type>().unary(|value| {
        let value = int256_of(value);
        let whole = value.rescaled(scale, 0).and_then(Int256::to_i128);
        whole.unwrap_or(if value.is_negative() {
            i128::MIN
        } else {
            i128::MAX
        })
    })
}

/// Any value as an unsigned integer, negative numbers modulo 2^64.
pub fn to_unsigned(array: &ArrayRef, field: &Field) -> Result<UInt64Array> {
    if array.data_type() == &DataType::UInt64 {
        return Ok(array.as_primitive::<UInt64Type>().clone());
    }
    if let DataType::Decimal128(_, scale) = array.data_type() {
        let scale = u8::try_from(*scale).unwrap_or(0);
        return Ok(array.as_primitive::<Decimal128Type>().unary(|value| {
            let whole = number::rescale(value, scale, 0).unwrap_or(value);
            if whole < 0 {
                whole.max(i128::from(i64::MIN)) as i64 as u64
            } else {
                whole.min(i128::from(u64::MAX)) as u64
            }
        }));
    }
    if let DataType::Decimal256(_, scale) = array.data_type() {
        let number = |whole: i128| match whole < 0 {
            true => whole.max(i128::from(i64::MIN)) as i64 as u64,
            false => whole.min(i128::from(u64::MAX)) as u64,
        };
        return Ok(wide_to_whole(array, *scale).unary(number));
    }
    if is_hybrid(field) && array.data_type() == &DataType::Binary {
        return Ok(hybrid_numbers(array));
    }
    if SqlType::of(field) == SqlType::Json {
        let number = |value| Some(integer_of_json(value).value as u64);
        return Ok(of_documents(array, number).collect());
    }
    if let SqlType::Text { .. } | SqlType::Bytes = SqlType::of(field) {
        let texts = to_text(array, field)?;
        let numbers = texts.iter().map(|text| text.map(number::text_to_unsigned));
        return Ok(numbers.collect());
    }
    if let DataType::Float32 | DataType::Float64 = array.data_type() {
        return Ok(to_double(array, field)?.unary(number::double_to_unsigned));
    }
    Ok(to_int(array, field)?.unary(|value| value as u64))
}

/// The same numbers with 0.0 for -0.0.
pub(super) fn unsigned_zeros<T>(array: ArrayRef) -> ArrayRef
where
    T: ArrowPrimitiveType<Native: Add<Output = T::Native> + Default>,
{
    let numbers = array.as_primitive::<T>().clone();
    drop(array);
    // Adding zero makes 0.0 of -0.0.
    let plus_zero = |number| number + T::Native::default();
    Arc::new(match numbers.unary_mut(plus_zero) {
        Ok(numbers) => numbers,
        Err(shared) => shared.unary::<_, T>(plus_zero),
    })
}

/// Any value as a double.
pub fn to_double(array: &ArrayRef, field: &Field) -> Result<Float64Array> {
    Ok(match (array.data_type(), SqlType::of(field)) {
        (DataType::Float64, _) => array.as_primitive::<Float64Type>().clone(),
        (DataType::Null, _) => null(&DataType::Float64, array.len())?,
        (DataType::Decimal128(_, scale), _) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            array
                .as_primitive::<Decimal128Type>()
                .unary(|value| number::decimal_to_double(value, scale))
        }
        (DataType::Decimal256(_, scale), _) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            let number = |value| number::wide_decimal_to_double(int256_of(value), scale);
            array.as_primitive::<Decimal256Type>().unary(number)
        }
        (DataType::Date32 | DataType::Duration(_) | DataType::Timestamp(..), ty) => {
            let scale = ty.fsp();
            let digits = to_decimal(array, field, scale)?;
            digits.unary(|value| number::decimal_to_double(value, scale))
        }
        (_, SqlType::Json) => {
            of_documents(array, |value| Some(double_of_json(value).value)).collect()
        }
        (_, SqlType::Enum { .. }) => enum_numbers(array, field)?.unary(|value| value as f64),
        (DataType::Binary, _) if is_hybrid(field) => {
            hybrid_numbers(array).unary(|number| number as f64)
        }
        (_, SqlType::Text { .. } | SqlType::Bytes) => to_text(array, field)?
            .iter()
            .map(|text| text.map(number::text_to_double))
            .collect(),
        _ => cast(array, &DataType::Float64)?
            .as_primitive::<Float64Type>()
            .clone(),
    })
}

/// Any value as a DECIMAL(38, `scale`), rounded half away from zero; what does not fit is cut to the largest that does.
///
/// # Errors
/// 1235 for a wide DECIMAL of more digits: what takes such numbers reads them by [`to_wide_decimal`].
pub fn to_decimal(array: &ArrayRef, field: &Field, scale: u8) -> Result<Decimal128Array> {
    let target = DataType::Decimal128(super::types::MAX_PRECISION, scale as i8);
    let fit = |value: i128, from: u8| {
        number::rescale(value, from, scale)
            .unwrap_or(value.signum() * (number::power_of_ten(38) - 1))
    };
    let fsp = SqlType::of(field).fsp();
    // A temporal value as the number that its digits spell, fraction included.
    let temporal = |whole: i64, micros: i64| {
        fit(
            i128::from(whole) * 1_000_000 + i128::from(micros % temporal::SECOND),
            6,
        )
    };
    let array: Decimal128Array = match (array.data_type(), SqlType::of(field)) {
        (DataType::Decimal128(_, from), _) if *from == scale as i8 => {
            array.as_primitive::<Decimal128Type>().clone()
        }
        (DataType::Null, _) => null(&target, array.len())?,
        (DataType::Decimal128(_, from), _) => {
            let from = u8::try_from(*from).unwrap_or(0);
            array
                .as_primitive::<Decimal128Type>()
                .unary(|value| fit(value, from))
        }
        (DataType::Decimal256(_, from), _) => {
            let from = u8::try_from(*from).unwrap_or(0);
            let limit = number::power_of_ten(super::types::MAX_PRECISION);
            array.as_primitive::<Decimal256Type>().try_unary(|value| {
                let narrow = int256_of(value)
                    .rescaled(from, scale)
                    .and_then(Int256::to_i128);
                let narrow = narrow.filter(|narrow| narrow.unsigned_abs() < limit.unsigned_abs());
                narrow.ok_or_else(|| DataFusionError::from(EvaluationError::wide_decimal()))
            })?
        }
        (DataType::UInt64, _) => array
            .as_primitive::<UInt64Type>()
            .unary(|value| fit(i128::from(value), 0)),
        (DataType::Float32 | DataType::Float64, _) => to_double(array, field)?.unary(|value| {
            let limit = (number::power_of_ten(38) - 1) * value.signum() as i128;
            number::double_to_decimal(value).map_or(limit, |(value, from)| fit(value, from))
        }),
        (DataType::Timestamp(..), _) => timestamps(array)?.unary(|micros| {
            let micros = temporal::round_datetime(micros, fsp).unwrap_or(micros);
            temporal(
                temporal::datetime_as_number(micros),
                micros.rem_euclid(temporal::SECOND),
            )
        }),
        (DataType::Duration(_), _) => {
            durations(array)?.unary(|micros| temporal(temporal::time_as_number(micros), micros))
        }
        (_, SqlType::Json) => of_documents(array, |value| {
            let (unscaled, from) = decimal_of_json(value).value;
            Some(fit(unscaled, from))
        })
        .collect(),
        (DataType::Binary, _) if is_hybrid(field) => {
            hybrid_numbers(array).unary(|number| fit(i128::from(number), 0))
        }
        (_, SqlType::Text { .. } | SqlType::Bytes) => to_text(array, field)?
            .iter()
            .map(|text| {
                text.map(|text| {
                    let limit = number::power_of_ten(38) - 1;
                    number::text_to_decimal(text).map_or(limit, |(value, from)| fit(value, from))
                })
            })
            .collect(),
        _ => to_int(array, field)?.unary(|value| fit(i128::from(value), 0)),
    };
    Ok(array.with_data_type(target))
}

/// Any value as a DECIMAL of `scale` decimals and up to 76 digits, rounded half away from zero; what does not fit is
/// cut to the largest that does.
pub fn to_wide_decimal(array: &ArrayRef, field: &Field, scale: u8) -> Result<Decimal256Array> {
    let target = DataType::Decimal256(WIDEST, scale as i8);
    let fit = |value: Int256, from: u8| {
        i256_of(
            value
                .rescaled(from, scale)
                .unwrap_or_else(|| beyond(value.is_negative())),
        )
    };
    let array: Decimal256Array = match (array.data_type(), SqlType::of(field)) {
        (DataType::Decimal256(_, from), _) => {
            let from = u8::try_from(*from).unwrap_or(0);
            let values = array.as_primitive::<Decimal256Type>();
            match from == scale {
                true => values.clone(),
                false => values.unary(|value| fit(int256_of(value), from)),
            }
        }
        (DataType::Decimal128(_, from), _) => {
            let from = u8::try_from(*from).unwrap_or(0);
            let values = array.as_primitive::<Decimal128Type>();
            values.unary(|value| fit(value.into(), from))
        }
        (DataType::Float32 | DataType::Float64, _) => to_double(array, field)?
            .unary(|value| i256_of(wide_of_text(&format!("{value:e}"), scale))),
        (DataType::Binary, _) if is_hybrid(field) => {
            hybrid_numbers(array).unary(|number| fit(i128::from(number).into(), 0))
        }
        (_, SqlType::Text { .. } | SqlType::Bytes) => to_text(array, field)?
            .iter()
            .map(|text| Some(i256_of(wide_of_text(text?, scale))))
            .collect(),
        (_, SqlType::Json) => of_documents(array, |value| {
            let (unscaled, from) = wide_decimal_of_json(value).value;
            Some(fit(unscaled, from))
        })
        .collect(),
        // Of all others 38 digits are enough.
        (_, ty) => {
            let own = ty.decimal_digits().1;
            to_decimal(array, field, own)?.unary(|value| fit(value.into(), own))
        }
    };
    Ok(array.with_data_type(target))
}

/// The most digits of arrays of wide DECIMALs.
pub(crate) const WIDEST: u8 = 76;

/// The greatest number, or the least.
fn beyond(is_negative: bool) -> Int256 {
    let greatest = Int256::of_parts(u128::MAX, i128::MAX);
    match is_negative {
        true => greatest.negated(),
        false => greatest,
    }
}

/// The number that a text begins with, or 0.
fn wide_of_text(text: &str, scale: u8) -> Int256 {
    let Some(number) = number::NumberText::parse(text) else {
        return Int256::ZERO;
    };
    let scaled = number.scaled_wide(scale);
    scaled.map_or_else(|_| beyond(number.negative), |(number, _)| number)
}

/// Any value as a date; what is none is NULL.
pub fn to_date(array: &ArrayRef, field: &Field) -> Result<Date32Array> {
    Ok(match (array.data_type(), SqlType::of(field)) {
        (DataType::Date32, _) => array.as_primitive::<Date32Type>().clone(),
        (
            DataType::Decimal128(..)
            | DataType::Decimal256(..)
            | DataType::Float32
            | DataType::Float64,
            _,
        ) => {
            let numbers = number_parts(array, field)?.into_iter();
            numbers
                .map(|number| temporal::date_of_parts(number?))
                .collect()
        }
        _ => to_datetime(array, field)?.unary(|micros| temporal::split_datetime(micros).0),
    })
}

/// Any value as a point in time; what is none is NULL. A TIME is on 1970-01-01 here, because kernels do not know the
/// day: to functions of a date the typing rule gives a point in time of today instead.
pub fn to_datetime(array: &ArrayRef, field: &Field) -> Result<TimestampMicrosecondArray> {
    let target = DataType::Timestamp(TimeUnit::Microsecond, None);
    Ok(match (array.data_type(), SqlType::of(field)) {
        (DataType::Timestamp(..), _) => timestamps(array)?,
        (DataType::Null, _) => null(&target, array.len())?,
        (DataType::Date32, _) => array
            .as_primitive::<Date32Type>()
            .unary(|days| i64::from(days) * temporal::DAY),
        (DataType::Duration(_), _) => durations(array)?.unary(|micros| micros),
        (_, SqlType::Json) => of_documents(array, |value| datetime_of_json(value).value).collect(),
        (_, ty) if is_read_as_text(&ty, field) => to_text(array, field)?
            .iter()
            .map(|text| temporal::datetime_of_text(text?))
            .collect(),
        _ => number_parts(array, field)?
            .into_iter()
            .map(|number| temporal::datetime_of_parts(number?))
            .collect(),
    })
}

/// Any value as a time; what is none is NULL. Of a point in time it is the time of day.
pub fn to_time(array: &ArrayRef, field: &Field) -> Result<DurationMicrosecondArray> {
    let target = DataType::Duration(TimeUnit::Microsecond);
    Ok(match (array.data_type(), SqlType::of(field)) {
        (DataType::Duration(_), _) => durations(array)?,
        (DataType::Null, _) => null(&target, array.len())?,
        (DataType::Date32 | DataType::Timestamp(..), _) => {
            to_datetime(array, field)?.unary(|micros| temporal::split_datetime(micros).1)
        }
        (_, SqlType::Json) => of_documents(array, |value| time_of_json(value).value).collect(),
        (_, ty) if is_read_as_text(&ty, field) => to_text(array, field)?
            .iter()
            .map(|text| temporal::time_of_text(text?))
            .collect(),
        _ => number_parts(array, field)?
            .into_iter()
            .map(|number| temporal::time_of_parts(number?))
            .collect(),
    })
}

/// Whether a date or a time is read from the text of a value. A BIT is its bytes here, not its number.
fn is_read_as_text(ty: &SqlType, field: &Field) -> bool {
    let is_text = matches!(
        ty,
        SqlType::Text { .. } | SqlType::Bytes | SqlType::Enum { .. }
    );
    is_text || bit_length(field).is_some()
}

/// Any number in the parts that dates and times are read from.
pub(super) fn number_parts(array: &ArrayRef, field: &Field) -> Result<Vec<Option<NumberParts>>> {
    Ok(match array.data_type() {
        DataType::Decimal128(_, scale) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            let of = |value| NumberParts::of_decimal(value, scale);
            let values = array.as_primitive::<Decimal128Type>().iter();
            values.map(|value| value.map(of)).collect()
        }
        DataType::Decimal256(_, scale) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            let of = |value| NumberParts::of_wide_decimal(int256_of(value), scale);
            let values = array.as_primitive::<Decimal256Type>().iter();
            values.map(|value| value.map(of)).collect()
        }
        DataType::Float32 | DataType::Float64 => {
            let values = to_double(array, field)?;
            let values = values.iter();
            values
                .map(|value| value.map(NumberParts::of_double))
                .collect()
        }
        _ => {
            let of = |value| NumberParts::of_integer(i128::from(value));
            let values = to_int(array, field)?;
            let values = values.iter();
            values.map(|value: Option<i64>| value.map(of)).collect()
        }
    })
}

/// Any value as a condition: true if it is not zero.
pub fn to_boolean(array: &ArrayRef, field: &Field) -> Result<BooleanArray> {
    Ok(match array.data_type() {
        // Whatever is not the number 0.
        DataType::BinaryView => of_documents(array, |value| Some(!is_zero(value))).collect(),
        DataType::Boolean => array.as_boolean().clone(),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            to_int(array, field)?
                .iter()
                .map(|value| value.map(|value| value != 0))
                .collect()
        }
        DataType::Decimal128(..) => array
            .as_primitive::<Decimal128Type>()
            .iter()
            .map(|value| value.map(|value| value != 0))
            .collect(),
        DataType::Decimal256(..) => array
            .as_primitive::<Decimal256Type>()
            .iter()
            .map(|value| value.map(|value| value != i256::ZERO))
            .collect(),
        _ => to_double(array, field)?
            .iter()
            .map(|value| value.map(|value| value != 0.0))
            .collect(),
    })
}
