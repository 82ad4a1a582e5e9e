//! Reads numbers from text as MySQL does: the longest beginning that is a number counts, and what follows is noticed.
//! Without such a beginning a text is 0 in an expression, and assigned it is a problem.

use super::decimal::{MAX_DIGITS, checked_power_of_ten};
use super::wide::Int256;
use crate::text::is_space;

/// The decimal number that a text begins with: `digits` x 10^-`scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberText<'a> {
    pub negative: bool,
    /// Digits before and behind the point.
    pub(super) whole: &'a [u8],
    pub(super) fraction: &'a [u8],
    pub(super) exponent: i64,
    /// The number as it is written.
    written: &'a str,
    /// Something other than spaces follows the number.
    pub trailing: bool,
}

/// The value is larger than any number of the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// An exponent beyond this is this: more than the digits of any text could bring back to a number that fits.
const MAX_EXPONENT: i64 = 1 << 40;

impl<'a> NumberText<'a> {
    /// `None`: the text does not begin with a number. Leading spaces are skipped.
    pub fn parse(text: &'a str) -> Option<NumberText<'a>> {
        let all = trim_start(text);
        let text = all.as_bytes();
        let (negative, unsigned) = match text.split_first() {
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) => (false, rest),
            _ => (false, text),
        };
        let (whole, mut rest) = split_digits(unsigned);
        let mut fraction: &[u8] = &[];
        if let Some(after) = rest.strip_prefix(b".") {
            (fraction, rest) = split_digits(after);
        }
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut exponent = 0;
        if let Some((b'e' | b'E', after)) = rest.split_first() {
            let (sign, after) = match after.split_first() {
                Some((b'-', after)) => (-1, after),
                Some((b'+', after)) => (1, after),
                _ => (1, after),
            };
            let (digits, after) = split_digits(after);
            if !digits.is_empty() {
                let size = digits.iter().fold(0, |value: i64, digit| {
                    (value * 10 + i64::from(digit - b'0')).min(MAX_EXPONENT)
                });
                exponent = sign * size;
                rest = after;
            }
        }
        let trailing = rest.iter().any(|byte| !is_space(*byte));
        Some(NumberText {
            negative,
            whole,
            fraction,
            exponent,
            written: &all[..all.len() - rest.len()],
            trailing,
        })
    }

    /// The number times 10^`scale`, rounded to an integer, halves away from zero; and whether digits were lost.
    pub fn scaled(&self, scale: u8) -> Result<(i128, bool), TooLarge> {
        let count = self.whole.len() + self.fraction.len();
        let keep = self.whole.len() as i64 + self.exponent + i64::from(scale);
        let digit = |at: usize| {
            let byte = match at.checked_sub(self.whole.len()) {
                None => self.whole[at],
                Some(at) => self.fraction[at],
            };
            i128::from(byte - b'0')
        };
        let kept = usize::try_from(keep.max(0)).unwrap_or(0).min(count);
        let mut value: i128 = 0;
        for at in 0..kept {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(digit(at)))
                .ok_or(TooLarge)?;
        }
        if value != 0 {
            for _ in count as i64..keep {
                value = value.checked_mul(10).ok_or(TooLarge)?;
            }
        }
        let inexact = (kept..count).any(|at| digit(at) != 0);
        if (0..count as i64).contains(&keep) && digit(kept) >= 5 {
            value = value.checked_add(1).ok_or(TooLarge)?;
        }
        Ok((if self.negative { -value } else { value }, inexact))
    }

    /// As [`scaled`](Self::scaled), of up to 76 digits.
    pub fn scaled_wide(&self, scale: u8) -> Result<(Int256, bool), TooLarge> {
        if let Ok((value, inexact)) = self.scaled(scale) {
            return Ok((value.into(), inexact));
        }
        let count = self.whole.len() + self.fraction.len();
        let keep = self.whole.len() as i64 + self.exponent + i64::from(scale);
        let kept = usize::try_from(keep.max(0)).unwrap_or(0).min(count);
        let mut digits = self
            .whole
            .iter()
            .chain(self.fraction)
            .map(|digit| digit - b'0');
        let mut value = Int256::ZERO;
        for digit in digits.by_ref().take(kept) {
            value = value.with_digit(digit).ok_or(TooLarge)?;
        }
        if !value.is_zero() {
            for _ in count as i64..keep {
                value = value.with_digit(0).ok_or(TooLarge)?;
            }
        }
        let is_within = (0..count as i64).contains(&keep);
        let next = digits.next();
        let inexact = next.is_some_and(|digit| digit != 0) || digits.any(|digit| digit != 0);
        if is_within && next.is_some_and(|digit| digit >= 5) {
            value = value.checked_add(1.into()).ok_or(TooLarge)?;
        }
        let value = if self.negative {
            value.negated()
        } else {
            value
        };
        Ok((value, inexact))
    }

    /// Whether [`scaled`](Self::scaled) rounds the size of the number up.
    pub(super) fn scaled_up(&self, scale: u8) -> bool {
        let keep = self.whole.len() as i64 + self.exponent + i64::from(scale);
        let mut digits = self.whole.iter().chain(self.fraction);
        usize::try_from(keep).is_ok_and(|keep| digits.nth(keep).is_some_and(|digit| *digit >= b'5'))
    }

    /// The number as the nearest double; infinite if it is too large.
    pub fn to_f64(&self) -> f64 {
        self.written.parse().unwrap_or(0.0)
    }

    /// The number as `unscaled` / 10^`scale`. `None`: it has more digits than fit. Digits after the 38th decimal are
    /// cut.
    pub fn exact(&self) -> Option<(i128, u8)> {
        let count = self.whole.len() + self.fraction.len();
        let scale = self.fraction.len() as i64 - self.exponent;
        let cut = usize::try_from(scale - i64::from(MAX_DIGITS)).unwrap_or(0);
        let digits = self.whole.iter().chain(self.fraction);
        let mut value: i128 = 0;
        for digit in digits.take(count.saturating_sub(cut)) {
            value = value.checked_mul(10)?.checked_add((digit - b'0').into())?;
        }
        if scale < 0 && value != 0 {
            let zeros = u8::try_from(scale.unsigned_abs()).ok()?;
            value = value.checked_mul(checked_power_of_ten(zeros)?)?;
        }
        let scale = scale.clamp(0, MAX_DIGITS.into()) as u8;
        Some((if self.negative { -value } else { value }, scale))
    }

    /// True for zero, however it is written.
    pub fn is_zero(&self) -> bool {
        let mut digits = self.whole.iter().chain(self.fraction);
        digits.all(|digit| *digit == b'0')
    }
}

fn trim_start(text: &str) -> &str {
    text.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(is_space))
}

fn split_digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    bytes.split_at(end)
}

/// A text as a double: the number that it begins with, or 0. Beyond the largest double it is that.
pub fn text_to_double(text: &str) -> f64 {
    let number = NumberText::parse(text).map_or(0.0, |number| number.to_f64());
    number.clamp(f64::MIN, f64::MAX)
}

/// A text as an integer: the integer that it starts with, cut to the range, or 0. (So `1e3` is 1.)
pub fn text_to_int(text: &str) -> i64 {
    let text = trim_start(text);
    let sign = usize::from(text.starts_with(['+', '-']));
    let end = sign + split_digits(&text.as_bytes()[sign..]).0.len();
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
    let number = trim_start(text);
    if number.starts_with('-') {
        return text_to_int(number) as u64;
    }
    let number = number.strip_prefix('+').unwrap_or(number);
    match split_digits(number.as_bytes()).0.len() {
        0 => 0,
        end => number[..end].parse().unwrap_or(u64::MAX),
    }
}

/// A text as an exact number, `unscaled` / 10^`scale`: the number that it begins with, or 0. Digits beyond the 38 that
/// fit are an error (`None`), digits after the 38th decimal are cut.
pub fn text_to_decimal(text: &str) -> Option<(i128, u8)> {
    NumberText::parse(text).map_or(Some((0, 0)), |number| number.exact())
}

/// Whether a text is a number, or nothing, but for white space around it.
pub fn is_double_text(text: &str) -> bool {
    match NumberText::parse(text) {
        Some(number) => !number.trailing,
        None => trim_start(text).is_empty(),
    }
}

/// Whether a text is an integer of 64 bits, with or without a sign, but for white space around it.
pub fn is_integer_text(text: &str) -> bool {
    let text = trim_start(text).trim_end_matches(|c: char| u8::try_from(c).is_ok_and(is_space));
    match text.starts_with('-') {
        true => text.parse::<i64>().is_ok(),
        false => text.parse::<u64>().is_ok(),
    }
}

/// Bytes as the digits of a number to the base of 256; of more than eight, the last eight.
pub fn bytes_to_unsigned(bytes: &[u8]) -> u64 {
    let append = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
    bytes.iter().fold(0, append)
}

/// A double as an integer, rounded half to even as the processor does, cut to the range.
pub fn double_to_int(value: f64) -> i64 {
    value.round_ties_even() as i64
}

/// The same for an integer without a sign; one below zero as its two's complement.
pub fn double_to_unsigned(value: f64) -> u64 {
    match value < 0.0 {
        true => double_to_int(value) as u64,
        false => value.round_ties_even() as u64,
    }
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

    fn scaled(text: &str, scale: u8) -> Option<(i128, bool)> {
        NumberText::parse(text)?.scaled(scale).ok()
    }

    #[test]
    fn halves_round_away_from_zero() {
        assert_eq!(scaled("0.5", 0), Some((1, true)));
        assert_eq!(scaled("-2.5", 0), Some((-3, true)));
        assert_eq!(scaled("1.005", 2), Some((101, true)));
        assert_eq!(scaled("1.00499", 2), Some((100, true)));
    }

    #[test]
    fn numbers_have_many_forms() {
        for (text, expected) in [
            ("12", 1200),
            (" +12.3 ", 1230),
            (".5", 50),
            ("5.", 500),
            ("1e2", 10_000),
            ("1.234E+1", 1234),
            ("123e-2", 123),
            ("0e9999999999", 0),
        ] {
            assert_eq!(scaled(text, 2), Some((expected, false)), "{text}");
        }
        assert_eq!(scaled("4e-3", 2), Some((0, true)));
        assert_eq!(scaled("5e-3", 2), Some((1, true)));
    }

    #[test]
    fn what_follows_is_noticed() {
        assert!(NumberText::parse("12abc").unwrap().trailing);
        assert!(NumberText::parse("1e").unwrap().trailing);
        assert!(!NumberText::parse("12  ").unwrap().trailing);
        for text in ["", "abc", "-", ".", "e5"] {
            assert_eq!(NumberText::parse(text), None, "{text}");
        }
    }

    #[test]
    fn too_large_numbers_are_refused() {
        assert_eq!(NumberText::parse("1e39").unwrap().scaled(0), Err(TooLarge));
        assert_eq!(NumberText::parse("1e400").unwrap().to_f64(), f64::INFINITY);
    }

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
}
