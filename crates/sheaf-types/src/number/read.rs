//! Reads numbers from text as MySQL does when it assigns text to a number: the longest beginning that is a number
//! counts, and what follows is noticed.

/// The decimal number that a text begins with: `digits` x 10^-`scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberText<'a> {
    pub negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i32,
    /// Something other than spaces follows the number.
    pub trailing: bool,
}

/// The value is larger than any number of the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// An exponent beyond this is this: far more than the digits of any number that fits.
const MAX_EXPONENT: i32 = 10_000;

impl<'a> NumberText<'a> {
    /// `None`: the text does not begin with a number. Leading spaces are skipped.
    pub fn parse(text: &'a str) -> Option<NumberText<'a>> {
        let text = text.trim_start_matches([' ', '\t', '\n', '\r']).as_bytes();
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
                let size = digits.iter().fold(0, |value: i32, digit| {
                    (value * 10 + i32::from(digit - b'0')).min(MAX_EXPONENT)
                });
                exponent = sign * size;
                rest = after;
            }
        }
        let trailing = rest.iter().any(|byte| !byte.is_ascii_whitespace());
        Some(NumberText {
            negative,
            whole,
            fraction,
            exponent,
            trailing,
        })
    }

    /// The number times 10^`scale`, rounded to an integer, halves away from zero; and whether digits were lost.
    pub fn scaled(&self, scale: u8) -> Result<(i128, bool), TooLarge> {
        let count = self.whole.len() + self.fraction.len();
        let keep = self.whole.len() as i64 + i64::from(self.exponent) + i64::from(scale);
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

    /// The number as the nearest double; infinite if it is too large.
    pub fn to_f64(self) -> f64 {
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or("0");
        let digits = format!(
            "{}{}.{}e{}",
            if self.negative { "-" } else { "" },
            if self.whole.is_empty() {
                "0"
            } else {
                text(self.whole)
            },
            if self.fraction.is_empty() {
                "0"
            } else {
                text(self.fraction)
            },
            self.exponent
        );
        digits.parse().unwrap_or(0.0)
    }
}

fn split_digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    bytes.split_at(end)
}

/// The powers of ten that fit 128 bits.
const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1; 39];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = 10 * powers[exponent - 1];
        exponent += 1;
    }
    powers
};

/// 10^`exponent`; `None`: it does not fit 128 bits.
pub fn power_of_ten(exponent: u8) -> Option<i128> {
    POWERS_OF_TEN.get(usize::from(exponent)).copied()
}

/// `unscaled` / 10^`from` as a number of `to` decimals, rounded, halves away from zero; and whether digits were lost.
/// `None`: it does not fit 128 bits.
pub fn rescale(unscaled: i128, from: u8, to: u8) -> Option<(i128, bool)> {
    if to >= from {
        let factor = power_of_ten(to - from)?;
        return Some((unscaled.checked_mul(factor)?, false));
    }
    let Some(divisor) = power_of_ten(from - to) else {
        return Some((0, unscaled != 0));
    };
    let (quotient, remainder) = (unscaled / divisor, unscaled % divisor);
    let round = remainder.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2);
    Some((
        quotient + if round { unscaled.signum() } else { 0 },
        remainder != 0,
    ))
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
        assert_eq!(rescale(-25, 1, 0), Some((-3, true)));
        assert_eq!(rescale(24, 1, 0), Some((2, true)));
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
}
