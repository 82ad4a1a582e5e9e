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

    /// A zone as SET time_zone and CONVERT_TZ take it: `+2:00`, `-05:30`, or one of the names of UTC, which is the zone
    /// of the system, too. `None` for other texts, and outside of -13:59 to +14:00.
    pub fn read(text: &str) -> Option<TimeZone> {
        let is_utc = |name: &&str| text.eq_ignore_ascii_case(name);
        if ["SYSTEM", "UTC", "GMT"].iter().any(is_utc) {
            return Some(TimeZone::UTC);
        }
        let sign = match text.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let (hours, minutes) = text[1..].split_once(':')?;
        let number = |digits: &str| {
            let only_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<i32>().ok().filter(|_| only_digits)
        };
        TimeZone::of_clock(sign, number(hours)?, number(minutes)?)
    }

    /// The zone that is so many hours and minutes ahead of UTC, or behind it; `None`: there is none.
    fn of_clock(sign: i32, hours: i32, minutes: i32) -> Option<TimeZone> {
        if hours > 14 || minutes > 59 {
            return None;
        }
        let seconds = sign * (hours * 3600 + minutes * 60);
        let exists = OFFSET_SECONDS.contains(&seconds);
        exists.then_some(TimeZone::of_offset(seconds))
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

/// `+02:00` and `-05:30` behind a date and time as a time zone. Here digits are not left out, as [`TimeZone::read`]
/// allows, and there are no names. `None` for other texts, and outside of -13:59 to +14:00.
fn read_offset(text: &[u8]) -> Option<TimeZone> {
    let [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = text else {
        return None;
    };
    if ![h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |tens: &u8, ones: &u8| i32::from(tens - b'0') * 10 + i32::from(ones - b'0');
    let (hours, minutes) = (number(h1, h2), number(m1, m2));
    match sign {
        // There is no -00:00.
        b'-' if (hours, minutes) == (0, 0) => None,
        b'-' => TimeZone::of_clock(-1, hours, minutes),
        _ => TimeZone::of_clock(1, hours, minutes),
    }
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
    fn zones_are_names_of_utc_and_offsets() {
        let offset = |text: &str| TimeZone::read(text).map(TimeZone::offset_seconds);
        for utc in [
            "SYSTEM", "system", "UTC", "gmt", "+00:00", "-00:00", "-0:00",
        ] {
            assert_eq!(offset(utc), Some(0), "{utc}");
        }
        assert_eq!(offset("+2:00"), Some(7_200));
        assert_eq!(offset("+002:00"), Some(7_200));
        assert_eq!(offset("+5:3"), Some(18_180));
        assert_eq!(offset("-05:30"), Some(-19_800));
        assert_eq!(offset("-13:59"), Some(-50_340));
        assert_eq!(offset("+14:00"), Some(50_400));
        for none in [
            "",
            "+",
            "+2",
            "02:00",
            "+02:60",
            "+2:+30",
            "+ 2:00",
            " +02:00",
            "+02:00 ",
            "+:30",
            "+2:",
            "+02:0a",
            "-14:00",
            "+14:01",
            "+99999999999:00",
            "Europe/Berlin",
        ] {
            assert_eq!(offset(none), None, "{none}");
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
