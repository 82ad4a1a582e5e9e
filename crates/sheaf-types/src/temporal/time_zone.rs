//! The time zone of a session, and TIMESTAMP values in it.
//!
//! A TIMESTAMP is a moment. The bytes of rows, keys and statistics hold it as UTC. A session sees, and gives, the wall
//! clock of its own time zone. The conversion is done where values become bytes and back, and nowhere else:
//!
//! ```text
//!   expressions, ranges, Arrow batches, `Value::Timestamp`      wall clock of the session
//!   ------------- RowLayout, KeyLayout, conditions on bytes, columns of batches: `TimeZone` -------------
//!   rows, keys of indexes, statistics, definitions              UTC
//! ```
//!
//! So a session opens a table *in its time zone* (`Table::in_time_zone`): the same trees, with layouts that convert.
//! Everything above compares and computes wall clocks, as for DATETIME. A time zone is a fixed distance from UTC: both
//! sides have one order, and ranges of wall clocks are ranges of an index. A zone with daylight saving time would not
//! keep the order. Such zones have names, and `SET time_zone` refuses names (error 1298), as MySQL does where its
//! tables of time zones are empty.

use super::{DAY, SECOND, ZERO_DATETIME, civil_from_days, push_datetime, read_datetime};

/// See the module's comment. The default is UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeZone {
    offset_seconds: i32,
}

impl TimeZone {
    pub const UTC: TimeZone = TimeZone { offset_seconds: 0 };

    /// The zone whose clocks are so far ahead of UTC.
    pub const fn of_offset(offset_seconds: i32) -> TimeZone {
        TimeZone { offset_seconds }
    }

    pub fn offset_seconds(self) -> i32 {
        self.offset_seconds
    }

    pub fn is_utc(self) -> bool {
        self.offset_seconds == 0
    }

    /// The wall clock at a moment, both in microseconds since 1970. The zero date stays as it is.
    #[inline]
    pub fn local(self, utc_micros: i64) -> i64 {
        match utc_micros {
            ZERO_DATETIME => ZERO_DATETIME,
            micros => micros + self.offset_micros(),
        }
    }

    /// The moment at which the wall clock shows this, both in microseconds since 1970. The zero date stays as it is,
    /// and is below all others.
    #[inline]
    pub fn utc(self, local_micros: i64) -> i64 {
        match local_micros <= ZERO_DATETIME {
            true => local_micros,
            false => (local_micros - self.offset_micros()).max(ZERO_DATETIME + 1),
        }
    }

    #[inline]
    fn offset_micros(self) -> i64 {
        i64::from(self.offset_seconds) * SECOND
    }
}

/// The wall clock of a zone, as text, at a moment that a text gives [with an offset](split_offset); `None` for others,
/// and outside of the years 1 to 9999.
pub fn wall_clock_text(text: &str, zone: TimeZone) -> Option<String> {
    let (moment, own) = split_offset(text)?;
    let read = read_datetime(moment).ok().filter(|read| !read.trailing)?;
    let micros = zone.local(own.utc(read.micros(6).ok()?));
    let day = i32::try_from(micros.div_euclid(DAY)).ok()?;
    let (year, ..) = civil_from_days(day);
    if !(1..=9999).contains(&year) {
        return None;
    }
    let mut wall_clock = String::new();
    push_datetime(micros, read.fraction_digits, &mut wall_clock);
    Some(wall_clock)
}

/// The offsets that a time zone, or a text, may have: -13:59 to +14:00.
const OFFSET_SECONDS: std::ops::RangeInclusive<i32> = -(13 * 3600 + 59 * 60)..=14 * 3600;

/// `+02:00` and `-05:30` as a time zone; `None` for other texts, and outside of -13:59 to +14:00.
fn read_offset(text: &[u8]) -> Option<TimeZone> {
    let [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = text else {
        return None;
    };
    if ![h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |tens: &u8, ones: &u8| i32::from(tens - b'0') * 10 + i32::from(ones - b'0');
    let (hours, minutes) = (number(h1, h2), number(m1, m2));
    let seconds = hours * 3600 + minutes * 60;
    // There is no -00:00.
    let signed = match sign {
        b'-' if seconds > 0 => -seconds,
        b'+' => seconds,
        _ => return None,
    };
    (minutes < 60 && OFFSET_SECONDS.contains(&signed)).then_some(TimeZone::of_offset(signed))
}

/// A date and time with an offset from UTC, as in `2024-01-01 10:00:00+02:00`: what comes before the offset, and the
/// zone. `None`: it has none, or has no time of day, behind which a sign separates numbers.
pub fn split_offset(text: &str) -> Option<(&str, TimeZone)> {
    let text = text.trim_ascii_end();
    let at = text.len().checked_sub("+00:00".len())?;
    let (moment, offset) = (text.get(..at)?, text.get(at..)?);
    // `2020-01-01+02:00` is two o'clock.
    let has_time = moment.contains(':') && moment.ends_with(|last: char| last.is_ascii_digit());
    Some((moment, read_offset(offset.as_bytes())?)).filter(|_| has_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_split_from_moments() {
        let zone = |hours: i32, minutes: i32| TimeZone::of_offset(hours * 3600 + minutes * 60);
        let moment = "2020-01-01 00:00:00";
        let split = |offset: &str| split_offset(&format!("{moment}{offset}")).map(|(_, zone)| zone);
        assert_eq!(split("+05:30"), Some(zone(5, 30)));
        assert_eq!(split("-13:59"), Some(zone(-13, -59)));
        assert_eq!(split("+14:00"), Some(zone(14, 0)));
        assert_eq!(split("+00:00"), Some(TimeZone::UTC));
        for none in ["-00:00", "+14:01", "-14:00", "+5:30", "+05:60", "", "Z"] {
            assert_eq!(split(none), None, "{none}");
        }
        assert_eq!(split_offset("2020-01-01+02:00"), None);
        let wall_clock = wall_clock_text("2020-01-01 00:00:00.50+05:30", zone(2, 0));
        assert_eq!(wall_clock.as_deref(), Some("2019-12-31 20:30:00.50"));
        for beyond in ["9999-12-31 23:59:59-13:00", "0001-01-01 00:00:00+14:00"] {
            assert_eq!(wall_clock_text(beyond, TimeZone::UTC), None);
        }
    }

    #[test]
    fn wall_clocks_are_moments_and_back() {
        let zone = TimeZone::of_offset(2 * 3600);
        assert_eq!(zone.local(SECOND), 7201 * SECOND);
        assert_eq!(zone.utc(7201 * SECOND), SECOND);
        assert_eq!(TimeZone::UTC.utc(SECOND), SECOND);
    }

    #[test]
    fn the_zero_date_is_the_least_in_every_zone() {
        for zone in [
            TimeZone::of_offset(14 * 3600),
            TimeZone::of_offset(-13 * 3600),
        ] {
            assert_eq!(zone.local(ZERO_DATETIME), ZERO_DATETIME);
            assert_eq!(zone.utc(ZERO_DATETIME), ZERO_DATETIME);
            assert!(zone.utc(ZERO_DATETIME + 1) > ZERO_DATETIME);
        }
    }
}
