//! Numbers as MySQL writes them. FLOAT and DOUBLE are plain where the point lies among or near the digits, otherwise
//! with an exponent.
//!
//! A DOUBLE has the shortest digits that read back as the same number, a FLOAT six significant digits.

use std::io::Write;

use super::decimal::MAX_DIGITS;
use super::wide::{Int256, MAX_WIDE_DIGITS};
use crate::output::{Line, Output};

/// Significant digits that a FLOAT is shown with (C's FLT_DIG).
const FLOAT_DIGITS: usize = 6;
/// Numbers with more digits before the point than this, or so many zeros after it, are written with an exponent
/// unless the point lies among their digits.
const MAX_POINT_POSITION: i32 = 15;
/// Room for a DOUBLE as Rust writes it with an exponent: 17 digits, a sign, a point, `e-324`.
const SCIENTIFIC_BYTES: usize = 32;
/// The most zeros between a point and the digits of a DECIMAL, or of a DOUBLE.
const ZEROS: [u8; MAX_WIDE_DIGITS as usize] = [b'0'; MAX_WIDE_DIGITS as usize];

/// Appends a DOUBLE.
pub fn push_double(value: f64, out: &mut impl Output) {
    let mut scientific = [0; SCIENTIFIC_BYTES];
    let mut rest = &mut scientific[..];
    // The buffer is long enough, so writing into it cannot fail.
    let _ = write!(rest, "{value:e}");
    let mut length = SCIENTIFIC_BYTES - rest.len();
    if may_lie_half_way(value) {
        let digits = scientific[..length].iter();
        let digits = digits.take_while(|byte| **byte != b'e');
        let digits = digits.filter(|byte| byte.is_ascii_digit()).count();
        let mut rest = &mut scientific[..];
        let _ = write!(rest, "{value:.precision$e}", precision = digits - 1);
        length = SCIENTIFIC_BYTES - rest.len();
    }
    plain_or_scientific(&scientific[..length], out);
}

/// Whether a DOUBLE may lie half way between two numbers of the fewest digits that tell it: 23716577603924.0625. The
/// standard library takes the upper one of them, and MySQL the even one, as the form of so many digits is rounded. Only
/// large numbers with a fraction of few bits do.
fn may_lie_half_way(value: f64) -> bool {
    const LEAST: f64 = 1e9;
    const BITS_OF_FRACTION: f64 = 65536.0;
    value.abs() >= LEAST && value.fract() != 0.0 && (value * BITS_OF_FRACTION).fract() == 0.0
}

/// Appends a FLOAT.
pub fn push_float(value: f32, out: &mut impl Output) {
    let mut scientific = [0; SCIENTIFIC_BYTES];
    let mut rest = &mut scientific[..];
    let _ = write!(rest, "{value:.precision$e}", precision = FLOAT_DIGITS - 1);
    let length = SCIENTIFIC_BYTES - rest.len();
    plain_or_scientific(&scientific[..length], out);
}

/// A DOUBLE in so many characters, with as many digits as fit; plain if that shows no fewer of them than an exponent
/// would. `None` if not even one fits.
pub fn fitting_double(value: f64, room: usize) -> Option<String> {
    /// No DOUBLE has more.
    const MOST_DIGITS: usize = 17;
    let sign = usize::from(value < 0.0);
    (1..=MOST_DIGITS.min(room)).rev().find_map(|digits| {
        let scientific = format!("{value:.precision$e}", precision = digits - 1);
        let (mantissa, exponent) = scientific.split_once('e')?;
        let exponent: i32 = exponent.parse().ok()?;
        // The plain form has at least the digits before its point, or the zeros behind it.
        let decimals = usize::try_from(digits as i32 - 1 - exponent).ok();
        let is_short = sign + exponent.unsigned_abs() as usize <= room;
        let plain = decimals.filter(|_| is_short).map(|decimals| {
            let plain = format!("{value:.decimals$}");
            without_zeros(&plain).to_string()
        });
        let plain = plain.filter(|plain| plain.len() <= room);
        plain.or_else(|| {
            let scientific = format!("{}e{exponent}", without_zeros(mantissa));
            (scientific.len() <= room).then_some(scientific)
        })
    })
}

/// Without zeros at the end of what stands behind the point.
fn without_zeros(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

/// Rewrites a number of the form `d.ddde-x` as MySQL does: plain if the point lies among or near the digits.
fn plain_or_scientific(written: &[u8], out: &mut impl Output) {
    let Some(e) = written.iter().position(|&byte| byte == b'e') else {
        // Infinities and NaN, which no MySQL expression gives, are shown as they are.
        return out.push_ascii(written);
    };
    let exponent_text = &written[e + 1..];
    let mut mantissa = &written[..e];
    if let [b'-', rest @ ..] = mantissa {
        out.push_ascii(b"-");
        mantissa = rest;
    }
    let mut digits = Line::<SCIENTIFIC_BYTES>::new();
    for &byte in mantissa.iter().filter(|byte| byte.is_ascii_digit()) {
        digits.push(byte);
    }
    let mut digits = digits.written();
    while let [rest @ .., b'0'] = digits
        && !rest.is_empty()
    {
        digits = rest;
    }
    let exponent: i32 = std::str::from_utf8(exponent_text)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);

    // The value is 0.DIGITS times ten to the point's position.
    let point = exponent + 1;
    let plain =
        point > -MAX_POINT_POSITION && (point <= MAX_POINT_POSITION || digits.len() as i32 > point);
    if !plain {
        out.push_ascii(&digits[..1]);
        if digits.len() > 1 {
            out.push_ascii(b".");
            out.push_ascii(&digits[1..]);
        }
        out.push_ascii(b"e");
        out.push_ascii(exponent_text);
    } else if point <= 0 {
        out.push_ascii(b"0.");
        out.push_ascii(&ZEROS[..point.unsigned_abs() as usize]);
        out.push_ascii(digits);
    } else {
        let (integer, fraction) = digits.split_at(digits.len().min(point as usize));
        out.push_ascii(integer);
        out.push_ascii(&ZEROS[..point as usize - integer.len()]);
        if !fraction.is_empty() {
            out.push_ascii(b".");
            out.push_ascii(fraction);
        }
    }
}

/// Appends a DOUBLE with `decimals` digits after the point. Those behind its shortest digits are zeros.
pub fn push_fixed_double(value: f64, decimals: u8, out: &mut impl Output) {
    let wanted = usize::from(decimals);
    let shortest = format!("{value}");
    let has = shortest.find('.').map_or(0, |at| shortest.len() - at - 1);
    if has > wanted {
        return out.push_ascii(format!("{value:.wanted$}").as_bytes());
    }
    out.push_ascii(shortest.as_bytes());
    if has == 0 && wanted > 0 {
        out.push_ascii(b".");
    }
    // A column has at most 30 decimals, a quotient a few more.
    for _ in has..wanted {
        out.push_ascii(b"0");
    }
}

/// Appends a FLOAT or DOUBLE with `decimals` digits after the point, or with as many as it takes.
pub fn push_shown_double(value: f64, decimals: Option<u8>, out: &mut impl Output) {
    match decimals {
        Some(decimals) => push_fixed_double(value, decimals, out),
        None => push_double(value, out),
    }
}

/// The same of a FLOAT.
pub fn push_shown_float(value: f32, decimals: Option<u8>, out: &mut impl Output) {
    match decimals {
        Some(decimals) => push_fixed_double(value.into(), decimals, out),
        None => push_float(value, out),
    }
}

#[inline]
pub fn push_signed(value: i64, out: &mut impl Output) {
    out.push_ascii(itoa::Buffer::new().format(value).as_bytes());
}

#[inline]
pub fn push_unsigned(value: u64, out: &mut impl Output) {
    out.push_ascii(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a DECIMAL, `unscaled` / 10^`scale`, with all the digits of its scale, trailing zeros too.
///
/// # Panics
/// If it has more than [`MAX_DIGITS`] decimals.
#[inline]
pub fn push_decimal(unscaled: i128, scale: u8, out: &mut impl Output) {
    assert!(scale <= MAX_DIGITS, "a DECIMAL of {scale} decimals");
    let mut buffer = itoa::Buffer::new();
    // Most decimals fit 64 bits, whose division is much cheaper.
    let digits = match u64::try_from(unscaled.unsigned_abs()) {
        Ok(small) => buffer.format(small),
        Err(_) => buffer.format(unscaled.unsigned_abs()),
    };
    push_digits(unscaled < 0, digits.as_bytes(), usize::from(scale), out);
}

/// Appends a DECIMAL of any width, as [`push_decimal`] does.
///
/// # Panics
/// If it has more decimals than a DECIMAL has digits.
pub fn push_wide_decimal(unscaled: Int256, scale: u8, out: &mut impl Output) {
    assert!(scale <= MAX_WIDE_DIGITS, "a DECIMAL of {scale} decimals");
    let digits = unscaled.digits();
    let (is_negative, digits) = (unscaled.is_negative(), digits.as_bytes());
    push_digits(is_negative, digits, usize::from(scale), out);
}

/// Appends digits with a sign and a point.
#[inline]
fn push_digits(is_negative: bool, digits: &[u8], scale: usize, out: &mut impl Output) {
    if is_negative {
        out.push_ascii(b"-");
    }
    if scale == 0 {
        return out.push_ascii(digits);
    }
    let (integer, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    out.push_ascii(if integer.is_empty() { b"0" } else { integer });
    out.push_ascii(b".");
    if fraction.len() < scale {
        out.push_ascii(&ZEROS[..scale - fraction.len()]);
    }
    out.push_ascii(fraction);
}

/// The double that is nearest to a DECIMAL.
#[inline]
pub fn decimal_to_double(unscaled: i128, scale: u8) -> f64 {
    // Both operands are exact, so the quotient is rounded once. Otherwise the text is.
    match EXACT_POWERS.get(usize::from(scale)) {
        Some(power) if unscaled.unsigned_abs() < 1 << f64::MANTISSA_DIGITS => {
            unscaled as f64 / power
        }
        _ => decimal_text(unscaled, scale).parse().unwrap_or(0.0),
    }
}

/// The double that is nearest to a DECIMAL of any width.
pub fn wide_decimal_to_double(unscaled: Int256, scale: u8) -> f64 {
    match unscaled.to_i128() {
        Some(narrow) if scale <= MAX_DIGITS => decimal_to_double(narrow, scale),
        _ => wide_decimal_text(unscaled, scale).parse().unwrap_or(0.0),
    }
}

/// The powers of ten that are exact as a double.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// A DECIMAL as [`push_decimal`] writes it.
pub fn decimal_text(unscaled: i128, scale: u8) -> String {
    let mut text = String::new();
    push_decimal(unscaled, scale, &mut text);
    text
}

/// A DECIMAL as [`push_wide_decimal`] writes it.
pub fn wide_decimal_text(unscaled: Int256, scale: u8) -> String {
    let mut text = String::new();
    push_wide_decimal(unscaled, scale, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(append: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        append(&mut out);
        String::from_utf8(out).expect("numbers are ASCII")
    }

    #[test]
    fn doubles_half_way_between_two_numbers_take_the_even_one() {
        for (value, expected) in [
            (23_716_577_603_924.0 + 0.0625, "23716577603924.062"),
            (-23_716_577_603_924.0 - 0.0625, "-23716577603924.062"),
            (11_858_288_801_962.0 + 0.0625, "11858288801962.062"),
            (70_368_744_177_664.0 + 0.0625, "70368744177664.06"),
            (2_147_483_648.5, "2147483648.5"),
        ] {
            assert_eq!(text(|out| push_double(value, out)), expected);
        }
    }

    #[test]
    fn doubles_are_rounded_to_the_room_there_is() {
        for (value, room, expected) in [
            (16_777_217.0, 4, Some("2e7")),
            (16_777_217.0, 5, Some("1.7e7")),
            (16_777_217.0, 6, Some("1.68e7")),
            (123_456.789, 4, Some("1e5")),
            (123_456.789, 6, Some("123457")),
            (123_456.789, 8, Some("123456.8")),
            (1.0 / 3.0, 4, Some("0.33")),
            (1e-7, 4, Some("1e-7")),
            (1.234_567_89e-7, 6, Some("1.2e-7")),
            (-0.123_456_789_012_3, 6, Some("-0.123")),
            (-0.123_456_789_012_3, 8, Some("-0.12346")),
            (f64::MAX, 6, Some("2e308")),
            (f64::MAX, 8, Some("1.8e308")),
            (f64::MAX, 4, None),
            (1e100, 4, None),
            (9.996, 4, Some("10")),
            (12_345.0, 0, None),
        ] {
            let fitting = fitting_double(value, room);
            assert_eq!(fitting.as_deref(), expected, "{value} in {room}");
        }
    }

    #[test]
    fn doubles_are_written_as_mysql_does() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-1234.5, "-1234.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1.5e15, "1.5e15"),
            (123456789012345678.0, "1.2345678901234568e17"),
            (1234567890123456.8, "1234567890123456.8"),
            (1e20, "1e20"),
            (1.5e300, "1.5e300"),
            (1e-5, "0.00001"),
            (1.25e-14, "0.0000000000000125"),
            (-1.2345678901234567e-14, "-0.000000000000012345678901234567"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (2.5e-20, "2.5e-20"),
            (f64::MAX, "1.7976931348623157e308"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(text(|out| push_double(value, out)), expected, "{value:e}");
        }
    }

    #[test]
    fn floats_have_six_digits() {
        for (value, expected) in [
            (std::f32::consts::PI, "3.14159"),
            (16_777_216.0, "16777200"),
            (0.1, "0.1"),
            (1e10, "10000000000"),
            (3.4e38, "3.4e38"),
            (-2.5, "-2.5"),
            (999_999.9, "1000000"),
        ] {
            assert_eq!(text(|out| push_float(value, out)), expected, "{value:e}");
        }
    }

    #[test]
    fn a_fixed_number_of_decimals_is_kept() {
        assert_eq!(text(|out| push_fixed_double(2.0, 3, out)), "2.000");
        assert_eq!(
            text(|out| push_fixed_double(f64::MIN, 30, out)).len(),
            1 + 309 + 1 + 30
        );
        assert_eq!(text(|out| push_fixed_double(0.125, 2, out)), "0.12");
        let fixed = |value: f64, decimals| text(|out| push_fixed_double(value, decimals, out));
        assert_eq!(fixed(0.1, 20), "0.10000000000000000000");
        assert_eq!(fixed(f64::from(1.1f32), 10), "1.1000000238");
        assert_eq!(fixed(1e22, 0), "10000000000000000000000");
        assert_eq!(fixed(-3.5, 1), "-3.5");
    }

    #[test]
    fn decimals_become_the_nearest_double() {
        assert_eq!(
            decimal_to_double(99_999_999_127_255_005, 3),
            99_999_999_127_255.005
        );
        assert_eq!(decimal_to_double(-5, 2), -0.05);
        assert_eq!(decimal_to_double(1, 38), 1e-38);
    }

    #[test]
    fn decimals_show_their_scale() {
        for (unscaled, scale, expected) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (12_345, 2, "123.45"),
            (12_300, 2, "123.00"),
            (
                10_i128.pow(37),
                37,
                "1.0000000000000000000000000000000000000",
            ),
            (
                -(10_i128.pow(38) - 1),
                0,
                "-99999999999999999999999999999999999999",
            ),
            (
                10_i128.pow(38) - 1,
                38,
                "0.99999999999999999999999999999999999999",
            ),
            (i128::MIN, 38, "-1.70141183460469231731687303715884105728"),
        ] {
            assert_eq!(text(|out| push_decimal(unscaled, scale, out)), expected);
            assert_eq!(decimal_text(unscaled, scale), expected);
        }
    }
}
