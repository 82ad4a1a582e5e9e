//! The digits of FLOAT(M,D) and DOUBLE(M,D).

/// The most digits in all that FLOAT(M,D) may be declared with.
pub const MAX_FLOAT_PRECISION: u8 = 255;
/// The most of them after the point.
pub const MAX_FLOAT_SCALE: u8 = 30;
/// The greatest power of ten that a DOUBLE holds exactly.
const EXACT_POWERS: u8 = 22;

/// `precision` digits in all, `scale` of them after the point. Values are rounded to them when they are assigned, and
/// are shown with all digits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatDigits {
    pub precision: u8,
    pub scale: u8,
}

impl FloatDigits {
    /// `None` for digits that no column may have.
    pub fn new(precision: u8, scale: u8) -> Option<FloatDigits> {
        let is_valid = precision > 0 && scale <= precision.min(MAX_FLOAT_SCALE);
        is_valid.then_some(FloatDigits { precision, scale })
    }

    /// The greatest value: 99999.99 of (7,2).
    pub fn greatest(self) -> f64 {
        power_of_ten(self.precision - self.scale) - power_of_ten(self.scale).recip()
    }

    /// The nearest value with so many digits after the point, of two the even one. Only the fraction is rounded: the
    /// whole number may have all the digits of a DOUBLE.
    pub fn round(self, value: f64) -> f64 {
        let whole = value.floor();
        let unit = power_of_ten(self.scale);
        match value.is_finite() {
            true => whole + ((value - whole) * unit).round_ties_even() / unit,
            false => value,
        }
    }
}

/// The nearest DOUBLE. Beyond [`EXACT_POWERS`] `powi` is not, and not the same in all builds.
fn power_of_ten(exponent: u8) -> f64 {
    match exponent {
        0..=EXACT_POWERS => 10f64.powi(i32::from(exponent)),
        _ => format!("1e{exponent}").parse().unwrap_or(f64::INFINITY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(precision: u8, scale: u8) -> FloatDigits {
        FloatDigits::new(precision, scale).expect("valid digits")
    }

    #[test]
    fn values_are_rounded_to_their_digits() {
        for (value, rounded) in [
            (1.005, 1.0),
            (1.245, 1.25),
            (-1.235, -1.24),
            (0.125, 0.12),
            (1e-5, 0.0),
            (1e300, 1e300),
        ] {
            assert_eq!(digits(7, 2).round(value), rounded, "{value}");
        }
        assert_eq!(digits(5, 0).round(2.5), 2.0);
        assert_eq!(digits(5, 0).round(f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn the_greatest_value_has_all_digits() {
        assert_eq!(digits(7, 2).greatest(), 99_999.99);
        assert_eq!(digits(3, 3).greatest(), 0.999);
        assert_eq!(digits(255, 0).greatest(), 1e255);
    }

    #[test]
    fn digits_that_no_column_has_are_refused() {
        for (precision, scale) in [(0, 0), (3, 5), (40, 31)] {
            assert_eq!(FloatDigits::new(precision, scale), None);
        }
    }
}
