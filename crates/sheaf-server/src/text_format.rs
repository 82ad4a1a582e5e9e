//! Numbers, dates and times as MySQL writes them.
//!
//! A value is formatted into a small buffer on the stack, because the protocol wants its length in front of it.

use std::io::Write;

use sheaf_table::temporal::{DAY, SECOND, civil_from_days, days_from_civil, days_in_month};

/// `decimals` of a column whose values have as many digits after the point as they need.
pub const NOT_FIXED_DECIMALS: u8 = 31;
/// Digits after the point of a date or time with microseconds.
const MAX_FRACTION_DIGITS: u8 = 6;
/// Significant digits that a FLOAT is shown with (C's FLT_DIG).
const FLOAT_DIGITS: usize = 6;
/// Numbers with more digits before the point than this, or so many zeros after it, are written with an exponent
/// (C's DBL_DIG).
const MAX_POINT_POSITION: i32 = 15;
/// -1.8e308 written out has 310 characters, and 30 digits after the point may follow.
const TEXT_BYTES: usize = 352;

/// A short text on the stack.
pub struct Text {
    bytes: [u8; TEXT_BYTES],
    len: usize,
}

impl Text {
    fn new() -> Self {
        Text {
            bytes: [0; TEXT_BYTES],
            len: 0,
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn push_all(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn push_zeros(&mut self, count: usize) {
        self.bytes[self.len..self.len + count].fill(b'0');
        self.len += count;
    }

    /// `value` with leading zeros to at least `width` digits.
    fn push_padded(&mut self, value: u64, width: usize) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(value).as_bytes();
        self.push_zeros(width.saturating_sub(digits.len()));
        self.push_all(digits);
    }

    /// `.` and the first `decimals` digits of the microseconds; nothing for 0 decimals.
    fn push_fraction(&mut self, micros: u64, decimals: u8) {
        let digits = match decimals {
            0..=MAX_FRACTION_DIGITS => decimals,
            _ if micros == 0 => 0,
            _ => MAX_FRACTION_DIGITS,
        };
        if digits > 0 {
            self.push(b'.');
            self.push_padded(
                micros / 10_u64.pow(u32::from(MAX_FRACTION_DIGITS - digits)),
                usize::from(digits),
            );
        }
    }

    fn push_date(&mut self, days: i32) {
        let (year, month, day) = civil_from_days(days);
        self.push_padded(year.clamp(0, 9999) as u64, 4);
        self.push(b'-');
        self.push_padded(u64::from(month), 2);
        self.push(b'-');
        self.push_padded(u64::from(day), 2);
    }

    fn push_clock(&mut self, hours: u64, minutes: u64, seconds: u64) {
        self.push_padded(hours, 2);
        self.push(b':');
        self.push_padded(minutes, 2);
        self.push(b':');
        self.push_padded(seconds, 2);
    }
}

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
pub fn split_clock(micros: u64) -> (u64, u64, u64, u64) {
    let seconds = micros / SECOND as u64;
    (
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        micros % SECOND as u64,
    )
}

/// `1997-01-31`.
pub fn date(days: i32) -> Text {
    let mut text = Text::new();
    text.push_date(days);
    text
}

/// `1997-01-31 23:59:59.25`, with `decimals` digits after the point.
pub fn date_time(micros: i64, decimals: u8) -> Text {
    let (days, micros_of_day) = split_days(micros);
    let (hours, minutes, seconds, fraction) = split_clock(micros_of_day as u64);
    let mut text = Text::new();
    text.push_date(days);
    text.push(b' ');
    text.push_clock(hours, minutes, seconds);
    text.push_fraction(fraction, decimals);
    text
}

/// `-838:59:59.000000`: hours are not bounded by a day.
pub fn time(micros: i64, decimals: u8) -> Text {
    let (hours, minutes, seconds, fraction) = split_clock(micros.unsigned_abs());
    let mut text = Text::new();
    if micros < 0 {
        text.push(b'-');
    }
    text.push_clock(hours, minutes, seconds);
    text.push_fraction(fraction, decimals);
    text
}

/// A YEAR always has four digits.
pub fn year(year: u64) -> Text {
    let mut text = Text::new();
    text.push_padded(year, 4);
    text
}

/// A decimal with all the digits of its scale, trailing zeros too.
pub fn decimal(unscaled: i128, scale: i8) -> Text {
    let mut text = Text::new();
    if unscaled < 0 {
        text.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(unscaled.unsigned_abs()).as_bytes();
    if scale <= 0 {
        text.push_all(digits);
        if unscaled != 0 {
            text.push_zeros(usize::from(scale.unsigned_abs()));
        }
        return text;
    }
    let scale = usize::from(scale.unsigned_abs());
    let integer_digits = digits.len().saturating_sub(scale);
    if integer_digits == 0 {
        text.push(b'0');
    }
    text.push_all(&digits[..integer_digits]);
    text.push(b'.');
    text.push_zeros(scale.saturating_sub(digits.len()));
    text.push_all(&digits[integer_digits..]);
    text
}

/// A DOUBLE: the shortest digits that read back as the same number, or `decimals` digits after the point.
pub fn double(value: f64, decimals: u8) -> Text {
    if decimals < NOT_FIXED_DECIMALS {
        return fixed(value, decimals);
    }
    let mut scientific = Scientific::new();
    // Writing a number into a buffer that is long enough cannot fail.
    let _ = write!(scientific, "{value:e}");
    scientific.layout()
}

/// A FLOAT: six significant digits, or `decimals` digits after the point.
pub fn float(value: f32, decimals: u8) -> Text {
    if decimals < NOT_FIXED_DECIMALS {
        return fixed(f64::from(value), decimals);
    }
    let mut scientific = Scientific::new();
    let _ = write!(
        scientific,
        "{value:.precision$e}",
        precision = FLOAT_DIGITS - 1
    );
    scientific.layout()
}

fn fixed(value: f64, decimals: u8) -> Text {
    let mut text = Text::new();
    let mut rest = &mut text.bytes[..];
    let _ = write!(
        rest,
        "{value:.precision$}",
        precision = usize::from(decimals)
    );
    text.len = TEXT_BYTES - rest.len();
    text
}

/// A number as `d.ddde-x`, which has its digits and its exponent apart.
struct Scientific {
    text: Text,
}

impl Scientific {
    fn new() -> Self {
        Scientific { text: Text::new() }
    }

    /// The number in MySQL's form: plain if the point lies among or near the digits, else with an exponent.
    fn layout(&self) -> Text {
        let written = self.text.as_bytes();
        let Some(e) = written.iter().position(|&byte| byte == b'e') else {
            // Infinities and NaN, which no MySQL expression gives, are written as they are.
            let mut text = Text::new();
            text.push_all(written);
            return text;
        };
        let mut text = Text::new();
        let mut mantissa = &written[..e];
        if let [b'-', rest @ ..] = mantissa {
            text.push(b'-');
            mantissa = rest;
        }
        let mut digits = [0; 24];
        let mut count = 0;
        for &byte in mantissa.iter().filter(|byte| byte.is_ascii_digit()) {
            digits[count] = byte;
            count += 1;
        }
        while count > 1 && digits[count - 1] == b'0' {
            count -= 1;
        }
        let digits = &digits[..count];
        let exponent: i32 = std::str::from_utf8(&written[e + 1..])
            .ok()
            .and_then(|e| e.parse().ok())
            .unwrap_or(0);

        // The value is 0.DIGITS times ten to the point's position.
        let point = exponent + 1;
        let plain =
            point > -MAX_POINT_POSITION && (point <= MAX_POINT_POSITION || count as i32 > point);
        if !plain {
            text.push(digits[0]);
            if count > 1 {
                text.push(b'.');
                text.push_all(&digits[1..]);
            }
            text.push(b'e');
            text.push_all(&written[e + 1..]);
        } else if point <= 0 {
            text.push_all(b"0.");
            text.push_zeros(point.unsigned_abs() as usize);
            text.push_all(digits);
        } else {
            let point = point as usize;
            text.push_all(&digits[..count.min(point)]);
            text.push_zeros(point.saturating_sub(count));
            if count > point {
                text.push(b'.');
                text.push_all(&digits[point..]);
            }
        }
        text
    }
}

impl Write for Scientific {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.text.push_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: Text) -> String {
        String::from_utf8(text.as_bytes().to_vec()).expect("formats are ASCII")
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
                text(double(value, NOT_FIXED_DECIMALS)),
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
                text(float(value, NOT_FIXED_DECIMALS)),
                expected,
                "{value:e}"
            );
        }
    }

    #[test]
    fn a_fixed_number_of_decimals_is_kept() {
        assert_eq!(text(double(2.0, 3)), "2.000");
        assert_eq!(
            text(double(-1.7976931348623157e308, 30)).len(),
            1 + 309 + 1 + 30
        );
        assert_eq!(text(float(0.125, 2)), "0.12");
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
            assert_eq!(text(decimal(unscaled, scale)), expected);
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
        assert_eq!(text(date(-719_528)), "0000-01-01");
        assert_eq!(text(date(9_861)), "1996-12-31");
        assert_eq!(text(date_time(-1, 0)), "1969-12-31 23:59:59");
        assert_eq!(text(date_time(-1, 6)), "1969-12-31 23:59:59.999999");
        assert_eq!(text(date_time(1_500_000, 3)), "1970-01-01 00:00:01.500");
        assert_eq!(
            text(date_time(1_500_000, NOT_FIXED_DECIMALS)),
            "1970-01-01 00:00:01.500000"
        );
        assert_eq!(text(time(0, 0)), "00:00:00");
        assert_eq!(
            text(time(-(838 * 3_600 + 59 * 60 + 59) * SECOND, 1)),
            "-838:59:59.0"
        );
        assert_eq!(text(time(-500_000, 2)), "-00:00:00.50");
        assert_eq!(text(time(3 * SECOND, NOT_FIXED_DECIMALS)), "00:00:03");
        assert_eq!(text(year(0)), "0000");
        assert_eq!(text(year(1999)), "1999");
    }
}
