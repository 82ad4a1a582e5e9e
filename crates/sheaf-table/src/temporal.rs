//! Dates and times on the proleptic Gregorian calendar.
use std::fmt;

/// Writes days since 1970-01-01 as `YYYY-MM-DD`.
pub fn write_date(f: &mut impl fmt::Write, days: i32) -> fmt::Result {
    let _ = (f, days);
    unimplemented!()
}
/// Writes signed microseconds as `[-]HH:MM:SS[.fraction]` with `digits` digits of fraction.
pub fn write_time(f: &mut impl fmt::Write, micros: i64, digits: u8) -> fmt::Result {
    let _ = (f, micros, digits);
    unimplemented!()
}
/// Writes microseconds since 1970 as `YYYY-MM-DD HH:MM:SS[.fraction]` with `digits` digits of fraction.
pub fn write_datetime(f: &mut impl fmt::Write, micros: i64, digits: u8) -> fmt::Result {
    let _ = (f, micros, digits);
    unimplemented!()
}
