//! Numbers as MySQL reads them from text, and exact decimal arithmetic on `i128`.

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

/// A text as an integer of 64 bits: as [`text_to_int`], but without a sign up to the greatest there is. Negative ones wrap.
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
    fn rescaling_rounds_half_away_from_zero() {
        assert_eq!(rescale(125, 2, 1), Some(13));
        assert_eq!(rescale(-125, 2, 1), Some(-13));
        assert_eq!(rescale(124, 2, 1), Some(12));
        assert_eq!(rescale(1, 0, 3), Some(1000));
        assert_eq!(rescale(i128::MAX, 0, 1), None);
    }
}
