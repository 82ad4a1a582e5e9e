//! Exact numbers: `unscaled` / 10^`scale`, on `i128`. Those of more digits are [`wide`](super::Wide).
//!
//! Results that do not fit are `None`. Digits that are lost are rounded, halves away from zero.

/// Digits that fit an `i128` whatever they are. DECIMALs of more are [wide](super::is_wide).
pub const MAX_DIGITS: u8 = 38;

/// The powers of ten that fit 128 bits.
const POWERS_OF_TEN: [i128; MAX_DIGITS as usize + 1] = {
    let mut powers = [1; MAX_DIGITS as usize + 1];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = 10 * powers[exponent - 1];
        exponent += 1;
    }
    powers
};

/// 10^`exponent`.
///
/// # Panics
/// If it has more than [`MAX_DIGITS`] zeros.
#[inline]
pub const fn power_of_ten(exponent: u8) -> i128 {
    POWERS_OF_TEN[exponent as usize]
}

/// 10^`exponent`; `None`: it does not fit 128 bits.
#[inline]
pub fn checked_power_of_ten(exponent: u8) -> Option<i128> {
    POWERS_OF_TEN.get(usize::from(exponent)).copied()
}

/// Quotient rounded half away from zero; `divisor` is positive.
#[inline]
pub fn divide_rounding(dividend: i128, divisor: i128) -> i128 {
    divide_noting_rest(dividend, divisor).0
}

/// The same, and whether it is not exact.
#[inline]
fn divide_noting_rest(dividend: i128, divisor: i128) -> (i128, bool) {
    let (quotient, remainder) = (dividend / divisor, dividend % divisor);
    let is_half = remainder.unsigned_abs() >= divisor.unsigned_abs() - remainder.unsigned_abs();
    let rounded = if is_half {
        quotient + dividend.signum()
    } else {
        quotient
    };
    (rounded, remainder != 0)
}

/// `unscaled` / 10^`from` as a number of `to` decimals, rounded. `None`: it does not fit 128 bits.
#[inline]
pub fn rescale(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    rescale_noting_loss(unscaled, from, to).map(|(rescaled, _)| rescaled)
}

/// The same, and whether digits were lost.
#[inline]
pub fn rescale_noting_loss(unscaled: i128, from: u8, to: u8) -> Option<(i128, bool)> {
    if to >= from {
        if unscaled == 0 {
            return Some((0, false));
        }
        let factor = checked_power_of_ten(to - from)?;
        return Some((unscaled.checked_mul(factor)?, false));
    }
    Some(match checked_power_of_ten(from - to) {
        Some(divisor) => divide_noting_rest(unscaled, divisor),
        None => (0, unscaled != 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rescaling_rounds_half_away_from_zero() {
        assert_eq!(rescale(125, 2, 1), Some(13));
        assert_eq!(rescale(-125, 2, 1), Some(-13));
        assert_eq!(rescale(124, 2, 1), Some(12));
        assert_eq!(rescale(1, 0, 3), Some(1000));
        assert_eq!(rescale(i128::MAX, 0, 1), None);
    }

    #[test]
    fn lost_digits_are_noticed() {
        assert_eq!(rescale_noting_loss(-25, 1, 0), Some((-3, true)));
        assert_eq!(rescale_noting_loss(24, 1, 0), Some((2, true)));
        assert_eq!(rescale_noting_loss(20, 1, 0), Some((2, false)));
        assert_eq!(rescale_noting_loss(1, 200, 0), Some((0, true)));
        assert_eq!(rescale_noting_loss(0, 0, 200), Some((0, false)));
    }
}
