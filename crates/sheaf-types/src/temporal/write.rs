//! Dates and times as MySQL writes them.

use super::calendar::{DAY, civil_from_days, split_time};
use crate::output::{Line, Output};

/// Digits after the point of a date or time with microseconds.
const MAX_FRACTION_DIGITS: u8 = 6;
/// Room for a time with the most hours that fit microseconds.
const TIME_BYTES: usize = 32;

/// Appends `1997-01-31`.
#[inline]
pub fn push_date(days: i32, out: &mut impl Output) {
    let mut line = Line::<10>::new();
    let (year, month, day) = civil_from_days(days);
    line.digits(year.clamp(0, 9999) as u32, 4);
    line.push(b'-');
    line.digits(month, 2);
    line.push(b'-');
    line.digits(day, 2);
    out.push_ascii(line.written());
}

/// Appends `1997-01-31 23:59:59.25`, with the digits of a second's fraction that [`push_time`] writes.
#[inline]
pub fn push_datetime(micros: i64, digits: u8, out: &mut impl Output) {
    // Any i64 of microseconds is at most 107 million days away.
    push_date(micros.div_euclid(DAY) as i32, out);
    out.push_ascii(b" ");
    push_time(micros.rem_euclid(DAY), digits, out);
}

/// Appends `-838:59:59.000000`: hours are not bounded by a day. It has `digits` digits of a second's fraction, up to
/// six; if more are asked for, six, or none of a whole second.
#[inline]
pub fn push_time(micros: i64, digits: u8, out: &mut impl Output) {
    let (hours, minutes, seconds, fraction) = split_time(micros);
    let mut line = Line::<TIME_BYTES>::new();
    if micros < 0 {
        line.push(b'-');
    }
    match hours {
        0..=99 => line.digits(hours as u32, 2),
        100..=999 => line.digits(hours as u32, 3),
        _ => line.extend(itoa::Buffer::new().format(hours).as_bytes()),
    }
    line.push(b':');
    line.digits(minutes as u32, 2);
    line.push(b':');
    line.digits(seconds as u32, 2);
    let digits = match digits {
        0..=MAX_FRACTION_DIGITS => digits,
        _ if fraction == 0 => 0,
        _ => MAX_FRACTION_DIGITS,
    };
    if digits > 0 {
        line.push(b'.');
        let shown = fraction as u32 / 10_u32.pow(u32::from(MAX_FRACTION_DIGITS - digits));
        line.digits(shown, digits.into());
    }
    out.push_ascii(line.written());
}

/// Appends a YEAR, which has four digits.
#[inline]
pub fn push_year(year: u16, out: &mut impl Output) {
    let mut line = Line::<4>::new();
    line.digits(year.into(), 4);
    out.push_ascii(line.written());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::{SECOND, ZERO_DATETIME};

    fn text(append: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        append(&mut out);
        out
    }

    #[test]
    fn dates_and_times_have_their_digits() {
        const AS_NEEDED: u8 = 31;
        assert_eq!(text(|out| push_date(-719_528, out)), "0000-01-01");
        assert_eq!(text(|out| push_date(9_861, out)), "1996-12-31");
        assert_eq!(text(|out| push_datetime(-1, 0, out)), "1969-12-31 23:59:59");
        assert_eq!(
            text(|out| push_datetime(-1, 6, out)),
            "1969-12-31 23:59:59.999999"
        );
        assert_eq!(
            text(|out| push_datetime(1_500_000, 3, out)),
            "1970-01-01 00:00:01.500"
        );
        assert_eq!(
            text(|out| push_datetime(1_500_000, AS_NEEDED, out)),
            "1970-01-01 00:00:01.500000"
        );
        assert_eq!(
            text(|out| push_datetime(ZERO_DATETIME, 0, out)),
            "0000-00-00 00:00:00"
        );
        assert_eq!(
            text(|out| push_datetime(1_234_567, 3, out)),
            "1970-01-01 00:00:01.234"
        );
        assert_eq!(text(|out| push_time(0, 0, out)), "00:00:00");
        assert_eq!(
            text(|out| push_time(-(838 * 3_600 + 59 * 60 + 59) * SECOND, 1, out)),
            "-838:59:59.0"
        );
        assert_eq!(text(|out| push_time(-500_000, 2, out)), "-00:00:00.50");
        assert_eq!(
            text(|out| push_time(3 * SECOND, AS_NEEDED, out)),
            "00:00:03"
        );
        assert_eq!(
            text(|out| push_time(i64::MIN, 6, out)),
            "-2562047788:00:54.775808"
        );
        assert_eq!(text(|out| push_year(0, out)), "0000");
        assert_eq!(text(|out| push_year(1999, out)), "1999");
    }
}
