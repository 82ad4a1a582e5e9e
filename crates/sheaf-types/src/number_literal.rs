//! Numbers as statements write them: what a number literal is, wherever it is read.
//!
//! ```text
//!   5  -9223372036854775808    BIGINT              what fits it
//!   18446744073709551615       BIGINT UNSIGNED     what fits it
//!   5.  .25  20 digits         DECIMAL             up to 65 digits, without the zeros in front
//!   1e3                        DOUBLE              an exponent
//! ```
//!
//! Of more digits those behind the point are cut, as far as no column could keep them. A number of more than 65 digits
//! before it is a DOUBLE, and one of more than 81 is the greatest DECIMAL.
//!
//! Binder, direct plans, lists of rows, defaults and parameters read numbers by this function, so that no two of them
//! store different values of one literal.

use crate::Value;
use crate::number::{Int256, MAX_DIGITS, MAX_WIDE_DIGITS};

/// The value of a number literal, perhaps behind a sign. `None`: this is no number, or one that no DOUBLE holds.
pub fn number_literal(written: &str) -> Option<Value> {
    if let Ok(number) = written.parse() {
        return Some(Value::Int(number));
    }
    let (is_negative, unsigned) = match written.strip_prefix(['-', '+']) {
        Some(unsigned) => (written.starts_with('-'), unsigned),
        None => (false, written),
    };
    // Rust reads `inf` and `nan` as well.
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let Some(unscaled) = exact(whole, fraction.unwrap_or_default()) else {
        if let Some(wide) = wide(is_negative, whole, fraction.unwrap_or_default()) {
            return Some(wide);
        }
        let number: Option<f64> = written.parse().ok();
        return number
            .filter(|number| number.is_finite())
            .map(Value::Double);
    };
    Some(match u64::try_from(unscaled) {
        Ok(number) if fraction.is_none() && !is_negative => Value::UInt(number),
        _ => Value::Decimal {
            unscaled: if is_negative { -unscaled } else { unscaled },
            scale: fraction.map_or(0, str::len) as u8,
        },
    })
}

/// The most digits before the point that MySQL counts.
const MAX_COUNTED_DIGITS: usize = 81;

/// As [`exact`], of a wide DECIMAL.
fn wide(is_negative: bool, whole: &str, fraction: &str) -> Option<Value> {
    let whole = whole.trim_start_matches('0');
    let mut digits = whole.bytes().chain(fraction.bytes());
    let is_long = whole.len() + fraction.len() > usize::from(MAX_DIGITS);
    if !is_long || !digits.clone().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let most = usize::from(MAX_WIDE_DIGITS);
    let (unscaled, scale) = match whole.len() {
        length if length > MAX_COUNTED_DIGITS => (Int256::nines(MAX_WIDE_DIGITS), 0),
        length if length > most => return None,
        // With a digit more than a column keeps, so that the number is rounded once.
        length => {
            let scale = fraction.len().min(most + usize::from(length > 0) - length);
            let mut digits = digits.by_ref().take(length + scale);
            let add = |number: Int256, digit| number.with_digit(digit - b'0');
            (digits.try_fold(Int256::ZERO, add)?, scale as u8)
        }
    };
    let unscaled = match is_negative {
        true => unscaled.negated(),
        false => unscaled,
    };
    Some(Value::WideDecimal {
        unscaled: unscaled.to_wide()?,
        scale,
    })
}

/// The number that the digits are together; `None` of other characters, of no digits, or of more than a DECIMAL has.
fn exact(whole: &str, fraction: &str) -> Option<i128> {
    let significant = whole.trim_start_matches('0');
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    if !has_digits || significant.len() + fraction.len() > usize::from(MAX_DIGITS) {
        return None;
    }
    let mut digits = significant.bytes().chain(fraction.bytes());
    if significant.len() + fraction.len() <= DIGITS_OF_64_BITS {
        let number = digits.try_fold(0, |number: i64, digit| match digit {
            b'0'..=b'9' => Some(number * 10 + i64::from(digit - b'0')),
            _ => None,
        });
        return number.map(i128::from);
    }
    digits.try_fold(0, |number: i128, digit| match digit {
        b'0'..=b'9' => Some(number * 10 + i128::from(digit - b'0')),
        _ => None,
    })
}

/// So many digits fit 64 bits, whatever they are.
const DIGITS_OF_64_BITS: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(unscaled: i128, scale: u8) -> Option<Value> {
        Some(Value::Decimal { unscaled, scale })
    }

    #[test]
    fn whole_numbers_are_bigints_as_far_as_they_fit() {
        let zeros = "0".repeat(60);
        assert_eq!(number_literal("5"), Some(Value::Int(5)));
        assert_eq!(number_literal(&format!("{zeros}5")), Some(Value::Int(5)));
        assert_eq!(
            number_literal("-9223372036854775808"),
            Some(Value::Int(i64::MIN))
        );
        assert_eq!(
            number_literal("18446744073709551615"),
            Some(Value::UInt(u64::MAX))
        );
        assert_eq!(
            number_literal(&format!("{zeros}18446744073709551615")),
            Some(Value::UInt(u64::MAX))
        );
        assert_eq!(
            number_literal("18446744073709551616"),
            decimal(i128::from(u64::MAX) + 1, 0)
        );
        assert_eq!(
            number_literal("-9223372036854775809"),
            decimal(i128::from(i64::MIN) - 1, 0)
        );
    }

    #[test]
    fn points_make_decimals() {
        assert_eq!(number_literal("5."), decimal(5, 0));
        assert_eq!(number_literal(".25"), decimal(25, 2));
        assert_eq!(number_literal("-1.50"), decimal(-150, 2));
        assert_eq!(number_literal("0.0"), decimal(0, 1));
        assert_eq!(
            number_literal(&format!("{}.5", "0".repeat(60))),
            decimal(5, 1)
        );
        assert_eq!(
            number_literal(&format!("0.{}1", "0".repeat(37))),
            decimal(1, MAX_DIGITS)
        );
    }

    #[test]
    fn more_digits_than_128_bits_hold_are_wide() {
        let nines = "9".repeat(38);
        assert_eq!(number_literal(&nines), decimal(10i128.pow(38) - 1, 0));
        assert_eq!(
            number_literal(&format!("-{nines}")),
            decimal(1 - 10i128.pow(38), 0)
        );
        let shown = |written: &str| match number_literal(written).unwrap() {
            wide @ Value::WideDecimal { .. } => wide.to_string(),
            other => panic!("{written} is {other:?}"),
        };
        // This would fit 128 bits.
        let longer = format!("1{}1", "0".repeat(37));
        let small = format!("0.{}1", "0".repeat(38));
        let long = format!("{}.{}", "7".repeat(40), "3".repeat(25));
        for written in [
            &longer,
            &format!("-{longer}"),
            &small,
            &long,
            &"9".repeat(65),
        ] {
            assert_eq!(shown(written), *written);
        }
        // 65 digits and one, and the point.
        assert_eq!(shown(&format!("{long}{}", "1".repeat(90))).len(), 67);
        assert_eq!(number_literal(&"9".repeat(66)), Some(Value::Double(1e66)));
        assert_eq!(shown(&"8".repeat(82)), "9".repeat(65));
        assert_eq!(
            shown(&format!("-{}", "8".repeat(400))),
            format!("-{}", "9".repeat(65))
        );
    }

    #[test]
    fn exponents_make_doubles() {
        assert_eq!(number_literal("1e3"), Some(Value::Double(1e3)));
        assert_eq!(number_literal("-1.5E-2"), Some(Value::Double(-0.015)));
        assert_eq!(number_literal("1e309"), None);
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in [
            "", "-", ".", "e5", "inf", "nan", "1x", "1.2.3", "0x10", " 1", "--1", "-+1",
        ] {
            assert_eq!(number_literal(text), None, "{text}");
        }
    }
}
