//! Numbers as texts: digits to a base (BIN, OCT, CONV), and with separators between the thousands (FORMAT).

use arrow::array::ArrayRef;
use datafusion_common::Result;
use sheaf_types::number::{decimal_text, push_fixed_double, rescale, wide_decimal_text};

use super::text;
use crate::functions::locale::number_style;
use crate::functions::mathematics::round_double;
use crate::functions::result_array::texts;
use crate::functions::types::{SqlType, bit_length};
use crate::functions::{Call, Function, Length};

pub(super) static FUNCTIONS: &[Function] = &[
    // NULL of an empty text, as CONV is.
    Function::new("bin", (1, 1), text, |call| radix(call, 2)).length(Length::Fixed(65)),
    Function::new("oct", (1, 1), text, |call| radix(call, 8)).length(Length::Fixed(65)),
    Function::new("conv", (3, 3), text, conv)
        .whole_numbers(1, 3)
        .length(Length::Fixed(65)),
    // Number, digits, and optionally a locale, of which NULL is the English one.
    Function::new("format", (2, 3), text, format_number)
        .doubles(0, 1)
        .whole_numbers(1, 2),
];

fn radix(call: &Call<'_>, base: u32) -> Result<ArrayRef> {
    if call.sql_type(0).is_integer() {
        let values = call.unsigned(0)?;
        return texts(call, |row, out| {
            values.get(row).map(|value| push_radix(out, value, base))
        });
    }
    // As CONV(x, 10, base) reads them: 5.99 is 5.
    let values = call.text(0)?;
    texts(call, |row, out| {
        let text = values.get(row).filter(|text| !text.is_empty())?;
        push_radix(out, spelled(text, 10), base);
        Some(())
    })
}

fn conv(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, from, to) = (call.text(0)?, call.int(1)?, call.int(2)?);
    // A BIT is its number in every base.
    let bits = match bit_length(&call.args.arg_fields[0]) {
        Some(_) => Some(call.unsigned(0)?),
        None => None,
    };
    texts(call, |row, out| {
        let (text, from, to) = (values.get(row)?, from.get(row)?, to.get(row)?);
        let base = |base: i64| {
            u32::try_from(base.unsigned_abs())
                .ok()
                .filter(|base| (2..=36).contains(base))
        };
        let (from_base, to_base) = (base(from)?, base(to)?);
        if text.is_empty() {
            return None;
        }
        let value = match &bits {
            Some(bits) => bits.get(row)?,
            None => spelled(text, from_base),
        };
        if to < 0 && (value as i64) < 0 {
            out.push('-');
            let start = out.len();
            let mut digits = String::new();
            push_radix(&mut digits, (value as i64).unsigned_abs(), to_base);
            out.insert_str(start, &digits);
        } else {
            push_radix(out, value, to_base);
        }
        Some(())
    })
}

/// The whole number that a text begins with, modulo 2^64.
fn spelled(text: &str, base: u32) -> u64 {
    let text = text.trim();
    let digits = text.trim_start_matches(['-', '+']);
    let mut value: u64 = 0;
    for digit in digits.chars().map_while(|digit| digit.to_digit(base)) {
        value = value
            .saturating_mul(u64::from(base))
            .saturating_add(u64::from(digit));
        if value == u64::MAX {
            break;
        }
    }
    if text.starts_with('-') {
        value.wrapping_neg()
    } else {
        value
    }
}

fn push_radix(out: &mut String, mut value: u64, base: u32) {
    let start = out.len();
    loop {
        let digit = char::from_digit((value % u64::from(base)) as u32, base).unwrap_or('0');
        out.insert(start, digit.to_ascii_uppercase());
        value /= u64::from(base);
        if value == 0 {
            return;
        }
    }
}

/// `12,345.68`: in groups of digits, rounded to the digits asked for.
fn format_number(call: &Call<'_>) -> Result<ArrayRef> {
    let digits = call.int(1)?;
    let locales = match call.len() {
        3 => Some(call.text(2)?),
        _ => None,
    };
    let ty = call.sql_type(0);
    let exact = !ty.is_float() && !ty.is_string() && ty != SqlType::Json;
    let scale = ty.decimal_digits().1;
    let wide = match ty.is_wide() {
        true => Some(call.wide_decimal(0, scale)?),
        false => None,
    };
    let decimals = match wide {
        Some(_) => None,
        None => Some(call.decimal(0, scale)?),
    };
    let doubles = call.double(0)?;
    texts(call, |row, out| {
        let places = digits.get(row)?.clamp(0, 30) as u8;
        let plain = if exact {
            let kept = places.min(scale);
            let mut plain = match (&wide, &decimals) {
                (Some(wide), _) => {
                    let rounded = wide.get(row)?.rescaled(scale, kept)?;
                    wide_decimal_text(rounded, kept)
                }
                (None, Some(decimals)) => {
                    let rounded = rescale(decimals.get(row)?, scale, kept)?;
                    decimal_text(rounded, kept)
                }
                (None, None) => return None,
            };
            if places > kept {
                if kept == 0 {
                    plain.push('.');
                }
                plain.extend(std::iter::repeat_n('0', usize::from(places - kept)));
            }
            plain
        } else {
            let rounded = round_double(doubles.get(row)?, i64::from(places), true);
            let mut plain = String::new();
            push_fixed_double(rounded, places, &mut plain);
            plain
        };
        let (sign, unsigned) = match plain.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", plain.as_str()),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        out.push_str(sign);
        let style = number_style(locales.as_ref().and_then(|locales| locales.get(row)));
        style.push_whole(whole, out);
        if !fraction.is_empty() {
            out.push(style.point);
            out.push_str(fraction);
        }
        Some(())
    })
}
