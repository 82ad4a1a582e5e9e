//! Where numbers stand among those of a type with fewer digits.
//!
//! A text or a double that is compared with an integer or a DECIMAL is not rounded to it: two neighbours would become
//! equal to it. [`Floor`] and [`text_place`] say instead where the number lies among the values of the other type.

use super::decimal::{MAX_DIGITS, power_of_ten, rescale};
use super::read::NumberText;
use super::wide::{Int256, MAX_WIDE_DIGITS};

/// A number among the multiples of some power of ten: the greatest that is not above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor<N = i128> {
    /// So many of them, exactly.
    At(N),
    /// Between so many and one more.
    Above(N),
    /// Out of reach of the most digits.
    BelowAll,
    AboveAll,
}

/// `unscaled` / 10^`from` among the multiples of 10^-`to`.
pub fn floor_of(unscaled: i128, from: u8, to: u8) -> Floor {
    if from <= to {
        return match rescale(unscaled, from, to) {
            Some(exact) => Floor::At(exact),
            None if unscaled < 0 => Floor::BelowAll,
            None => Floor::AboveAll,
        };
    }
    let unit = power_of_ten((from - to).min(MAX_DIGITS));
    match unscaled.rem_euclid(unit) {
        0 => Floor::At(unscaled.div_euclid(unit)),
        _ => Floor::Above(unscaled.div_euclid(unit)),
    }
}

impl From<Floor> for Floor<Int256> {
    fn from(floor: Floor) -> Floor<Int256> {
        match floor {
            Floor::At(number) => Floor::At(number.into()),
            Floor::Above(number) => Floor::Above(number.into()),
            Floor::BelowAll => Floor::BelowAll,
            Floor::AboveAll => Floor::AboveAll,
        }
    }
}

impl Floor<Int256> {
    /// The same among the numbers of 128 bits.
    pub fn narrow(self) -> Floor {
        let beyond = |number: Int256| match number.is_negative() {
            true => Floor::BelowAll,
            false => Floor::AboveAll,
        };
        match self {
            Floor::At(number) => number.to_i128().map_or(beyond(number), Floor::At),
            Floor::Above(number) => number.to_i128().map_or(beyond(number), Floor::Above),
            Floor::BelowAll => Floor::BelowAll,
            Floor::AboveAll => Floor::AboveAll,
        }
    }
}

/// `unscaled` / 10^`from` among the multiples of 10^-`to`, out of reach of [`MAX_WIDE_DIGITS`] digits.
pub fn wide_floor_of(unscaled: Int256, from: u8, to: u8) -> Floor<Int256> {
    let Some(cut) = unscaled.truncated(from, to) else {
        return match unscaled.is_negative() {
            true => Floor::BelowAll,
            false => Floor::AboveAll,
        };
    };
    let is_exact = from <= to || cut.rescaled(to, from) == Some(unscaled);
    let floor = match unscaled.is_negative() && !is_exact {
        true => cut.checked_sub(1.into()).unwrap_or(cut),
        false => cut,
    };
    within_reach(floor, is_exact)
}

/// A floor of at most [`MAX_WIDE_DIGITS`] digits.
fn within_reach(floor: Int256, is_exact: bool) -> Floor<Int256> {
    let limit = Int256::nines(MAX_WIDE_DIGITS);
    match is_exact {
        _ if floor > limit => Floor::AboveAll,
        _ if floor < limit.negated() => Floor::BelowAll,
        true => Floor::At(floor),
        false => Floor::Above(floor),
    }
}

/// As [`text_floor`], out of reach of [`MAX_WIDE_DIGITS`] digits.
pub fn wide_text_floor(text: &str, to: u8) -> Floor<Int256> {
    let narrow = text_floor(text, to);
    if !matches!(narrow, Floor::BelowAll | Floor::AboveAll) {
        return narrow.into();
    }
    let number = NumberText::parse(text);
    let scaled = number.and_then(|number| Some((number, number.scaled_wide(to).ok()?)));
    match (scaled, narrow) {
        (Some((_, (number, false))), _) => within_reach(number, true),
        (Some((text, (rounded, true))), _) => {
            // It has been rounded in size: up, if it is the digit that decides.
            let cut = match text.scaled_up(to) {
                true => rounded
                    .checked_sub(rounded.signum().into())
                    .unwrap_or(rounded),
                false => rounded,
            };
            let floor = match text.negative {
                true => cut.checked_sub(1.into()).unwrap_or(cut),
                false => cut,
            };
            within_reach(floor, false)
        }
        (None, Floor::BelowAll) => Floor::BelowAll,
        (None, _) => Floor::AboveAll,
    }
}

/// The number that a text begins with, among the multiples of 10^-`to`. However many digits it has, it is not rounded.
pub fn text_floor(text: &str, to: u8) -> Floor {
    let Some(number) = NumberText::parse(text) else {
        return Floor::At(0);
    };
    let all = || number.whole.iter().chain(number.fraction);
    let zeros = all().take_while(|digit| **digit == b'0').count();
    let digits = || all().skip(zeros);
    if digits().next().is_none() {
        return Floor::At(0);
    }
    // How many of the digits, and zeros behind them, stand before the point once it has moved `to` places.
    let kept = number.whole.len() as i64 - zeros as i64 + number.exponent + i64::from(to);
    if kept > i64::from(MAX_DIGITS) {
        return match number.negative {
            true => Floor::BelowAll,
            false => Floor::AboveAll,
        };
    }
    let kept = kept.max(0) as usize;
    let padded = digits().chain(std::iter::repeat(&b'0')).take(kept);
    let size = padded.fold(0, |size: i128, digit| size * 10 + i128::from(digit - b'0'));
    let is_exact = digits().skip(kept).all(|digit| *digit == b'0');
    match (number.negative, is_exact) {
        (false, true) => Floor::At(size),
        (false, false) => Floor::Above(size),
        (true, true) => Floor::At(-size),
        (true, false) => Floor::Above(-size - 1),
    }
}

/// Where the number that a text begins with stands among the multiples of 10^-`to`, in tenths of these: a multiple
/// itself, or half way to the next one. What is out of reach is the largest DECIMAL, or the smallest.
pub fn text_place(text: &str, to: u8) -> i128 {
    let limit = power_of_ten(MAX_DIGITS) - 1;
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

/// Whether doubles near this one are closer to each other than multiples of 10^-`to`: then at most one multiple is the
/// same double. Elsewhere several are equal to it, and it has no place among them.
pub fn tells_multiples_apart(value: f64, to: u8) -> bool {
    let spacing = value.abs().next_up() - value.abs();
    !value.is_finite() || spacing < 10_f64.powi(-i32::from(to))
}

/// A double among the integers, exactly; among multiples of smaller units by its shortest decimal form, as a DECIMAL
/// would store it. `None` for NaN. Where [several](tells_multiples_apart) multiples are equal to it, this is one of
/// them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_tell_multiples_apart_that_lie_further_from_each_other() {
        assert!(tells_multiples_apart(1e6, 4));
        assert!(tells_multiples_apart(-0.1, 15));
        // 97716021308405775.0001 and 97716021308405784 are the same double.
        assert!(!tells_multiples_apart(97_716_021_308_405_775.0, 0));
        assert!(!tells_multiples_apart(0.1, 20));
        assert!(tells_multiples_apart(f64::INFINITY, 0));
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
}
