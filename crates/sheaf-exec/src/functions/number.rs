//! Numbers as MySQL reads them from text, and exact decimal arithmetic on `i128`.
//!
//! A text is a number by its longest prefix that is one; the rest is ignored, and a text without such a prefix is 0. An
//! exact number is `unscaled` / 10^`scale`. Results that do not fit are `None` or cut to the range, as each function
//! says.
//!
//! A text or a double that is compared with an integer or a DECIMAL is not rounded to it: two neighbours would become
//! equal to it. [`Floor`] and `text_place` say instead where the number lies among the values of the other type.

/// 10^`exponent`; `exponent` at most 38.
pub fn power_of_ten(exponent: u8) -> i128 {
    10i128.pow(u32::from(exponent))
}

/// `unscaled` / 10^`from` at another scale, rounded half away from zero. `None` if it does not fit.
pub fn rescale(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        if unscaled == 0 {
            return Some(0);
        }
        if to - from > 38 {
            return None;
        }
        return unscaled.checked_mul(power_of_ten(to - from));
    }
    if from - to > 38 {
        return Some(0);
    }
    Some(divide_rounding(unscaled, power_of_ten(from - to)))
}

/// Quotient rounded half away from zero; `divisor` is positive.
pub fn divide_rounding(dividend: i128, divisor: i128) -> i128 {
    let (quotient, remainder) = (dividend / divisor, dividend % divisor);
    if remainder.unsigned_abs() >= divisor.unsigned_abs() - remainder.unsigned_abs() {
        quotient + dividend.signum()
    } else {
        quotient
    }
}

/// The longest prefix of `text` that is a number: sign, digits, point, exponent. Leading white space is skipped.
pub fn numeric_prefix(text: &str) -> &str {
    let text = text.trim_start();
    let bytes = text.as_bytes();
    let mut end = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let run = |start: usize| {
        bytes[start..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let whole = run(end);
    end += whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = run(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return "";
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = run(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    &text[..end]
}

/// A text as a double: its numeric prefix, or 0.
pub fn text_to_double(text: &str) -> f64 {
    numeric_prefix(text).parse().unwrap_or(0.0)
}

/// A text as an integer: the integer that it starts with, cut to the range, or 0.
pub fn text_to_int(text: &str) -> i64 {
    let text = text.trim_start();
    let sign = usize::from(text.starts_with(['+', '-']));
    let end = sign
        + text.as_bytes()[sign..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
    if end == sign {
        return 0;
    }
    text[..end]
        .parse::<i64>()
        .unwrap_or(if text.starts_with('-') {
            i64::MIN
        } else {
            i64::MAX
        })
}

/// A text as an integer of 64 bits: as [`text_to_int`], but without a sign up to the greatest there is. Negative ones
/// wrap.
pub fn text_to_unsigned(text: &str) -> u64 {
    let number = text.trim_start();
    if number.starts_with('-') {
        return text_to_int(number) as u64;
    }
    let number = number.strip_prefix('+').unwrap_or(number);
    let end = number.bytes().take_while(u8::is_ascii_digit).count();
    match end {
        0 => 0,
        _ => number[..end].parse().unwrap_or(u64::MAX),
    }
}

/// Bytes as the digits of a number to the base of 256; of more than eight, the last eight.
pub fn bytes_to_unsigned(bytes: &[u8]) -> u64 {
    let append = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
    bytes.iter().fold(0, append)
}

/// Whether a text is a number, or nothing, but for white space around it.
pub fn is_double_text(text: &str) -> bool {
    let text = text.trim();
    numeric_prefix(text).len() == text.len()
}

/// Whether a text is an integer of 64 bits, with or without a sign, but for white space around it.
pub fn is_integer_text(text: &str) -> bool {
    let text = text.trim();
    match text.starts_with('-') {
        true => text.parse::<i64>().is_ok(),
        false => text.parse::<u64>().is_ok(),
    }
}

/// Digits of a text as an exact number: `unscaled` / 10^`scale`. Exponents are applied; digits beyond the 38 that fit
/// are an error (`None`), digits after the 38th decimal are cut.
pub fn text_to_decimal(text: &str) -> Option<(i128, u8)> {
    let prefix = numeric_prefix(text);
    if prefix.is_empty() {
        return Some((0, 0));
    }
    let (mantissa, exponent) = match prefix.find(['e', 'E']) {
        Some(at) => (&prefix[..at], prefix[at + 1..].parse::<i32>().ok()?),
        None => (prefix, 0),
    };
    let negative = mantissa.starts_with('-');
    let mantissa = mantissa.trim_start_matches(['+', '-']);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut scale = fraction.len() as i32 - exponent;
    let mut digits: String = format!("{whole}{fraction}");
    while scale > 38 {
        digits.pop();
        scale -= 1;
    }
    let digits = digits.trim_start_matches('0');
    let mut value = if digits.is_empty() {
        0
    } else {
        digits.parse::<i128>().ok()?
    };
    if scale < 0 {
        if scale < -38 && value != 0 {
            return None;
        }
        value = value.checked_mul(power_of_ten(scale.unsigned_abs().min(38) as u8))?;
        scale = 0;
    }
    Some((if negative { -value } else { value }, scale as u8))
}

/// A number among the multiples of some power of ten: the greatest that is not above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// So many of them, exactly.
    At(i128),
    /// Between so many and one more.
    Above(i128),
    /// Out of reach of [`MAX_FLOOR_DIGITS`] digits.
    BelowAll,
    AboveAll,
}

/// Digits of a [`Floor`]. All that a DECIMAL has, and few enough for an `i128`.
const MAX_FLOOR_DIGITS: i64 = 38;

/// `unscaled` / 10^`from` among the multiples of 10^-`to`.
pub fn floor_of(unscaled: i128, from: u8, to: u8) -> Floor {
    if from <= to {
        return match rescale(unscaled, from, to) {
            Some(exact) => Floor::At(exact),
            None if unscaled < 0 => Floor::BelowAll,
            None => Floor::AboveAll,
        };
    }
    let unit = power_of_ten((from - to).min(MAX_FLOOR_DIGITS as u8));
    match unscaled.rem_euclid(unit) {
        0 => Floor::At(unscaled.div_euclid(unit)),
        _ => Floor::Above(unscaled.div_euclid(unit)),
    }
}

/// The number that a text begins with, among the multiples of 10^-`to`. However many digits it has, it is not rounded.
pub fn text_floor(text: &str, to: u8) -> Floor {
    let prefix = numeric_prefix(text);
    let (mantissa, exponent) = match prefix.find(['e', 'E']) {
        Some(at) => (&prefix[..at], clamped_exponent(&prefix[at + 1..])),
        None => (prefix, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let mantissa = mantissa.trim_start_matches(['+', '-']);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = || whole.bytes().chain(fraction.bytes());
    let zeros = all().take_while(|digit| *digit == b'0').count();
    let digits = || all().skip(zeros);
    if digits().next().is_none() {
        return Floor::At(0);
    }
    // How many of the digits, and zeros behind them, stand before the point once it has moved `to` places.
    let kept = whole.len() as i64 - zeros as i64 + exponent + i64::from(to);
    if kept > MAX_FLOOR_DIGITS {
        return match is_negative {
            true => Floor::BelowAll,
            false => Floor::AboveAll,
        };
    }
    let kept = kept.max(0) as usize;
    let padded = digits().chain(std::iter::repeat(b'0')).take(kept);
    let size = padded.fold(0, |size: i128, digit| size * 10 + i128::from(digit - b'0'));
    let is_exact = digits().skip(kept).all(|digit| digit == b'0');
    match (is_negative, is_exact) {
        (false, true) => Floor::At(size),
        (false, false) => Floor::Above(size),
        (true, true) => Floor::At(-size),
        (true, false) => Floor::Above(-size - 1),
    }
}

/// Where the number that a text begins with stands among the multiples of 10^-`to`, in tenths of these: a multiple
/// itself, or half way to the next one. What is out of reach is the largest DECIMAL, or the smallest.
pub fn text_place(text: &str, to: u8) -> i128 {
    let limit = power_of_ten(MAX_FLOOR_DIGITS as u8) - 1;
    let in_tenths = |multiples: i128, rest: i128| {
        let tenths = multiples.saturating_mul(10).saturating_add(rest);
        tenths.clamp(-limit, limit)
    };
    match text_floor(text, to) {
        Floor::At(multiples) => in_tenths(multiples, 0),
        Floor::Above(multiples) => in_tenths(multiples, 5),
        Floor::BelowAll => -limit,
        Floor::AboveAll => limit,
    }
}

/// Digits with a sign. Beyond what any text needs to be brought back to a number that fits, they are cut.
fn clamped_exponent(digits: &str) -> i64 {
    const LIMIT: i64 = 1 << 40;
    match digits.parse::<i64>() {
        Ok(exponent) => exponent.clamp(-LIMIT, LIMIT),
        Err(_) if digits.starts_with('-') => -LIMIT,
        Err(_) => LIMIT,
    }
}

/// A double among the integers, exactly; among multiples of smaller units by its shortest decimal form, as a DECIMAL
/// would store it. `None` for NaN.
pub fn double_floor(value: f64, to: u8, among_integers: bool) -> Option<Floor> {
    /// Doubles up to here are exact as an `i128`.
    const LIMIT: f64 = 1e38;
    if value.is_nan() {
        return None;
    }
    Some(match value.is_finite() {
        false if value < 0.0 => Floor::BelowAll,
        false => Floor::AboveAll,
        true if among_integers && value.abs() < LIMIT => {
            let floor = value.floor();
            match floor == value {
                true => Floor::At(floor as i128),
                false => Floor::Above(floor as i128),
            }
        }
        true => text_floor(&format!("{value:e}"), to),
    })
}

/// A double as an integer, rounded half to even as the processor does, cut to the range.
pub fn double_to_int(value: f64) -> i64 {
    value.round_ties_even() as i64
}

/// A double as an exact number, by its shortest decimal form.
pub fn double_to_decimal(value: f64) -> Option<(i128, u8)> {
    if value.is_finite() {
        text_to_decimal(&format!("{value:e}"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbers_by_their_prefix() {
        for (text, double, int) in [
            ("12", 12.0, 12),
            (" 12.7abc", 12.7, 12),
            ("1e3", 1000.0, 1),
            ("-5", -5.0, -5),
            (".5", 0.5, 0),
            ("5.", 5.0, 5),
            ("abc", 0.0, 0),
            ("", 0.0, 0),
            ("1e", 1.0, 1),
        ] {
            assert_eq!(text_to_double(text), double, "{text}");
            assert_eq!(text_to_int(text), int, "{text}");
        }
        assert_eq!(text_to_decimal("-12.50x"), Some((-1250, 2)));
        assert_eq!(text_to_decimal("1.5e2"), Some((150, 0)));
        assert_eq!(text_to_decimal("15e-1"), Some((15, 1)));
    }

    #[test]
    fn texts_stand_at_numbers_or_between_them() {
        for (text, to, tenths) in [
            ("97716021308405775", 0, 977_160_213_084_057_750),
            ("1.0", 0, 10),
            ("1.2x", 0, 15),
            ("-1.2", 0, -15),
            ("-1.25", 1, -125),
            ("1e3", 0, 10_000),
            ("abc", 2, 0),
            ("1e39", 0, power_of_ten(38) - 1),
            ("-1e37", 1, 1 - power_of_ten(38)),
        ] {
            assert_eq!(text_place(text, to), tenths, "{text}");
        }
    }

    #[test]
    fn texts_are_numbers_or_only_begin_with_one() {
        for (text, unsigned, is_integer, is_double) in [
            ("5", 5, true, true),
            (" 5 ", 5, true, true),
            ("-1", u64::MAX, true, true),
            ("18446744073709551615", u64::MAX, true, true),
            ("18446744073709551616", u64::MAX, false, true),
            ("5.5", 5, false, true),
            ("1e2", 1, false, true),
            ("5 apples", 5, false, false),
            ("abc", 0, false, false),
            ("", 0, false, true),
        ] {
            assert_eq!(text_to_unsigned(text), unsigned, "{text}");
            assert_eq!(is_integer_text(text), is_integer, "{text}");
            assert_eq!(is_double_text(text), is_double, "{text}");
        }
    }

    #[test]
    fn texts_have_places_among_numbers_of_any_size() {
        use Floor::{Above, AboveAll, At, BelowAll};
        for (text, to, floor) in [
            ("97716021308405775", 0, At(97_716_021_308_405_775)),
            (" 97716021308405775.0 ", 0, At(97_716_021_308_405_775)),
            ("9.7716021308405775e16", 0, At(97_716_021_308_405_775)),
            ("97716021308405774.5", 0, Above(97_716_021_308_405_774)),
            ("977160213084057745e-1x", 0, Above(97_716_021_308_405_774)),
            ("-0.5", 0, Above(-1)),
            ("-0.0", 0, At(0)),
            ("-1.50", 1, At(-15)),
            ("-1.51", 1, Above(-16)),
            ("0.004", 2, Above(0)),
            ("1bad", 2, At(100)),
            ("", 0, At(0)),
            ("bad", 10, At(0)),
            ("1e400", 0, AboveAll),
            ("-1e99999999999999999999", 0, BelowAll),
            ("0e99999999999999999999", 0, At(0)),
            ("1e-400", 30, Above(0)),
            ("-1e-99999999999999999999", 0, Above(-1)),
            ("123456789012345678901234567890123456789", 0, AboveAll),
            (
                "12345678901234567890.01234567885",
                10,
                Above(123_456_789_012_345_678_900_123_456_788),
            ),
        ] {
            assert_eq!(text_floor(text, to), floor, "{text}");
        }
        let long = format!("1{}e-{}", "0".repeat(5000), 5000);
        assert_eq!(text_floor(&long, 0), At(1));
    }

    #[test]
    fn numbers_have_places_among_numbers_of_fewer_decimals() {
        assert_eq!(floor_of(155, 2, 1), Floor::Above(15));
        assert_eq!(floor_of(-155, 2, 1), Floor::Above(-16));
        assert_eq!(floor_of(150, 2, 1), Floor::At(15));
        assert_eq!(floor_of(15, 1, 2), Floor::At(150));
        assert_eq!(floor_of(i128::MIN, 0, 2), Floor::BelowAll);
        assert_eq!(double_floor(0.1, 1, false), Some(Floor::At(1)));
        assert_eq!(double_floor(-0.1, 0, true), Some(Floor::Above(-1)));
        assert_eq!(
            double_floor(9_007_199_254_740_994.0, 0, true),
            Some(Floor::At(9_007_199_254_740_994))
        );
        assert_eq!(double_floor(1e300, 0, true), Some(Floor::AboveAll));
        assert_eq!(
            double_floor(f64::NEG_INFINITY, 0, true),
            Some(Floor::BelowAll)
        );
        assert_eq!(double_floor(f64::NAN, 0, true), None);
    }

    #[test]
    fn rescaling_rounds_half_away_from_zero() {
        assert_eq!(rescale(125, 2, 1), Some(13));
        assert_eq!(rescale(-125, 2, 1), Some(-13));
        assert_eq!(rescale(124, 2, 1), Some(12));
        assert_eq!(rescale(1, 0, 3), Some(1000));
        assert_eq!(rescale(i128::MAX, 0, 1), None);
    }
}
