//! Numbers, dates and times as MySQL writes them.
//!
//! Each function appends to a buffer, which is the row that is being sent: nothing is allocated for a value.

use std::io::Write;

use sheaf_types::{
    number,
    temporal::{DAY, SECOND, civil_from_days, days_from_civil, days_in_month},
};

/// `decimals` of a column whose values have as many digits after the point as they need.
pub const NOT_FIXED_DECIMALS: u8 = 31;
/// Digits after the point of a date or time with microseconds.
const MAX_FRACTION_DIGITS: u8 = 6;
/// Days since 1970-01-01 of a date; `None` if the calendar has no such date.
pub fn days_of_date(year: u16, month: u8, day: u8) -> Option<i32> {
    let (year, month, day) = (i32::from(year), u32::from(month), u32::from(day));
    let exists = year <= 9999
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day);
    exists.then(|| days_from_civil(year, month, day))
}

/// The days and the microseconds of the day of a point in time.
pub fn split_days(micros: i64) -> (i32, i64) {
    // Any i64 of microseconds is at most 107 million days away.
    (micros.div_euclid(DAY) as i32, micros.rem_euclid(DAY))
}

/// Hours, minutes, seconds and microseconds of a length of time.
pub fn split_clock(micros: u64) -> (u64, u8, u8, u32) {
    let seconds = micros / SECOND as u64;
    let fraction = (micros % SECOND as u64) as u32;
    (
        seconds / 3_600,
        (seconds / 60 % 60) as u8,
        (seconds % 60) as u8,
        fraction,
    )
}

/// `1997-01-31`.
pub fn date(days: i32, out: &mut Vec<u8>) {
    let (year, month, day) = civil_from_days(days);
    padded(year.clamp(0, 9999) as u64, 4, out);
    out.push(b'-');
    two_digits(month as u8, out);
    out.push(b'-');
    two_digits(day as u8, out);
}

/// `1997-01-31 23:59:59.25`, with `decimals` digits after the point.
pub fn date_time(micros: i64, decimals: u8, out: &mut Vec<u8>) {
    let (days, micros_of_day) = split_days(micros);
    date(days, out);
    out.push(b' ');
    time(micros_of_day, decimals, out);
}

/// `-838:59:59.000000`: hours are not bounded by a day.
pub fn time(micros: i64, decimals: u8, out: &mut Vec<u8>) {
    let (hours, minutes, seconds, fraction) = split_clock(micros.unsigned_abs());
    if micros < 0 {
        out.push(b'-');
    }
    padded(hours, 2, out);
    out.push(b':');
    two_digits(minutes, out);
    out.push(b':');
    two_digits(seconds, out);
    let digits = match decimals {
        0..=MAX_FRACTION_DIGITS => decimals,
        _ if fraction == 0 => 0,
        _ => MAX_FRACTION_DIGITS,
    };
    if digits > 0 {
        out.push(b'.');
        let shown = fraction / 10_u32.pow(u32::from(MAX_FRACTION_DIGITS - digits));
        padded(shown.into(), digits.into(), out);
    }
}

/// A YEAR always has four digits.
pub fn year(year: u64, out: &mut Vec<u8>) {
    padded(year, 4, out);
}

pub fn signed(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

pub fn unsigned(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A decimal with all the digits of its scale, trailing zeros too.
pub fn decimal(unscaled: i128, scale: i8, out: &mut Vec<u8>) {
    if unscaled < 0 {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    // Most decimals fit 64 bits, whose division is much cheaper.
    let digits = match u64::try_from(unscaled.unsigned_abs()) {
        Ok(small) => buffer.format(small),
        Err(_) => buffer.format(unscaled.unsigned_abs()),
    };
    let digits = digits.as_bytes();
    if scale <= 0 {
        out.extend_from_slice(digits);
        if unscaled != 0 {
            zeros(usize::from(scale.unsigned_abs()), out);
        }
        return;
    }
    let scale = usize::from(scale.unsigned_abs());
    let (integer, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    out.extend_from_slice(if integer.is_empty() { b"0" } else { integer });
    out.push(b'.');
    zeros(scale - fraction.len(), out);
    out.extend_from_slice(fraction);
}

/// A DOUBLE: the shortest digits that read back as the same number, or `decimals` digits after the point.
pub fn double(value: f64, decimals: u8, out: &mut Vec<u8>) {
    if decimals < NOT_FIXED_DECIMALS {
        return fixed(value, decimals, out);
    }
    number::push_double(value, out);
}

/// A FLOAT: six significant digits, or `decimals` digits after the point.
pub fn float(value: f32, decimals: u8, out: &mut Vec<u8>) {
    if decimals < NOT_FIXED_DECIMALS {
        return fixed(value.into(), decimals, out);
    }
    number::push_float(value, out);
}

fn fixed(value: f64, decimals: u8, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = write!(
        out,
        "{value:.precision$}",
        precision = usize::from(decimals)
    );
}

fn zeros(count: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + count, b'0');
}

fn two_digits(value: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + value / 10 % 10, b'0' + value % 10]);
}

/// `value` with leading zeros to at least `width` digits.
fn padded(value: u64, width: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    zeros(width.saturating_sub(digits.len()), out);
    out.extend_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(append: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        append(&mut out);
        String::from_utf8(out).expect("formats are ASCII")
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
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (2.5e-20, "2.5e-20"),
            (f64::MAX, "1.7976931348623157e308"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(
                text(|out| double(value, NOT_FIXED_DECIMALS, out)),
                expected,
                "{value:e}"
            );
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
            assert_eq!(
                text(|out| float(value, NOT_FIXED_DECIMALS, out)),
                expected,
                "{value:e}"
            );
        }
    }

    #[test]
    fn a_fixed_number_of_decimals_is_kept() {
        assert_eq!(text(|out| double(2.0, 3, out)), "2.000");
        assert_eq!(
            text(|out| double(-1.7976931348623157e308, 30, out)).len(),
            1 + 309 + 1 + 30
        );
        assert_eq!(text(|out| float(0.125, 2, out)), "0.12");
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
            (7, -3, "7000"),
            (0, -3, "0"),
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
        ] {
            assert_eq!(text(|out| decimal(unscaled, scale, out)), expected);
        }
    }

    #[test]
    fn a_date_exists_or_not() {
        assert_eq!(days_of_date(1970, 1, 1), Some(0));
        assert_eq!(days_of_date(9999, 12, 31), Some(2_932_896));
        assert_eq!(days_of_date(2000, 2, 29), Some(11_016));
        for (year, month, day) in [
            (1900, 2, 29),
            (2001, 0, 1),
            (2001, 13, 1),
            (2001, 1, 0),
            (2001, 4, 31),
            (0, 0, 0),
        ] {
            assert_eq!(days_of_date(year, month, day), None, "{year}-{month}-{day}");
        }
        assert_eq!(days_of_date(10_000, 1, 1), None);
    }

    #[test]
    fn dates_and_times_have_their_digits() {
        assert_eq!(text(|out| date(-719_528, out)), "0000-01-01");
        assert_eq!(text(|out| date(9_861, out)), "1996-12-31");
        assert_eq!(text(|out| date_time(-1, 0, out)), "1969-12-31 23:59:59");
        assert_eq!(
            text(|out| date_time(-1, 6, out)),
            "1969-12-31 23:59:59.999999"
        );
        assert_eq!(
            text(|out| date_time(1_500_000, 3, out)),
            "1970-01-01 00:00:01.500"
        );
        assert_eq!(
            text(|out| date_time(1_500_000, NOT_FIXED_DECIMALS, out)),
            "1970-01-01 00:00:01.500000"
        );
        assert_eq!(text(|out| time(0, 0, out)), "00:00:00");
        assert_eq!(
            text(|out| time(-(838 * 3_600 + 59 * 60 + 59) * SECOND, 1, out)),
            "-838:59:59.0"
        );
        assert_eq!(text(|out| time(-500_000, 2, out)), "-00:00:00.50");
        assert_eq!(
            text(|out| time(3 * SECOND, NOT_FIXED_DECIMALS, out)),
            "00:00:03"
        );
        assert_eq!(text(|out| year(0, out)), "0000");
        assert_eq!(text(|out| year(1999, out)), "1999");
    }
}
