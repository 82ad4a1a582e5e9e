//! DECIMAL in MySQL's bytes: groups of nine digits in four bytes each, ordered as the numbers are.
//!
//! ```text
//!   1234567.89 as DECIMAL(14,4)    digits   0001234567 . 8900
//!                                  groups   0 | 001234567 . 8900
//!                                  bytes    80 | 00 12 d6 87 | 22 c4
//! ```
//!
//! Before the point the short group is the first, behind it the last. The first bit of all is inverted, and all bits of
//! a number below zero are.

use sheaf_types::number::Int256;

/// Digits of a whole group, and its bytes.
const GROUP_DIGITS: u32 = 9;
const GROUP_BYTES: usize = 4;
/// Bytes of a group of so many digits.
const BYTES: [usize; GROUP_DIGITS as usize + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Appends `unscaled` / 10^`scale` as a DECIMAL of `precision` digits. `false`: it has more of them, and nothing was
/// appended.
pub(crate) fn put(out: &mut Vec<u8>, unscaled: i128, precision: u8, scale: u8) -> bool {
    let (precision, scale) = (u32::from(precision), u32::from(scale));
    let magnitude = unscaled.unsigned_abs();
    let Some(whole_digits) = precision.checked_sub(scale) else {
        return false;
    };
    let (Some(unit), Some(limit)) = (10u128.checked_pow(scale), 10u128.checked_pow(precision))
    else {
        return false;
    };
    if magnitude >= limit {
        return false;
    }
    let start = out.len();
    put_whole(out, magnitude / unit, whole_digits);
    put_fraction(out, magnitude % unit, scale);
    if unscaled < 0 {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
    if let Some(first) = out.get_mut(start) {
        *first ^= 0x80;
    }
    true
}

/// As [`put`], of a wide DECIMAL.
pub(super) fn put_wide(out: &mut Vec<u8>, unscaled: Int256, precision: u8, scale: u8) -> bool {
    let digits = format!(
        "{:0>width$}",
        unscaled.digits(),
        width = usize::from(precision)
    );
    if digits.len() > usize::from(precision) || scale > precision {
        return false;
    }
    let start = out.len();
    let mut put_group = |group: &str| {
        // At most nine digits.
        let value = group.parse().unwrap_or(0);
        crate::bytes::put_big(out, value, BYTES[group.len()]);
    };
    let (whole, fraction) = digits.split_at(usize::from(precision - scale));
    let group_digits = GROUP_DIGITS as usize;
    let (first, mut groups) = whole.split_at(whole.len() % group_digits);
    put_group(first);
    while !groups.is_empty() {
        let (group, rest) = groups.split_at(group_digits);
        put_group(group);
        groups = rest;
    }
    groups = fraction;
    while !groups.is_empty() {
        let (group, rest) = groups.split_at(groups.len().min(group_digits));
        put_group(group);
        groups = rest;
    }
    if unscaled.is_negative() {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
    if let Some(first) = out.get_mut(start) {
        *first ^= 0x80;
    }
    true
}

fn put_whole(out: &mut Vec<u8>, number: u128, digits: u32) {
    let groups = digits / GROUP_DIGITS;
    for group in (0..=groups).rev() {
        let bytes = match group == groups {
            true => BYTES[(digits % GROUP_DIGITS) as usize],
            false => GROUP_BYTES,
        };
        // The number has no more digits, so the first group has no more than it may.
        let value = number / 10u128.pow(group * GROUP_DIGITS) % 10u128.pow(GROUP_DIGITS);
        crate::bytes::put_big(out, value as u64, bytes);
    }
}

fn put_fraction(out: &mut Vec<u8>, number: u128, digits: u32) {
    let mut left = digits;
    while left > 0 {
        let group = left.min(GROUP_DIGITS);
        left -= group;
        let value = number / 10u128.pow(left) % 10u128.pow(group);
        crate::bytes::put_big(out, value as u64, BYTES[group as usize]);
    }
}

/// Digits before the point that a number has, at least the 0 of 0.5.
pub(crate) fn whole_digits(unscaled: i128, scale: u8) -> u8 {
    let whole = unscaled.unsigned_abs() / 10u128.checked_pow(scale.into()).unwrap_or(u128::MAX);
    whole.checked_ilog10().map_or(1, |log| log as u8 + 1)
}

/// Bytes of a DECIMAL of so many digits. `None`: there is no such type.
pub(crate) fn bytes(precision: u8, scale: u8) -> Option<usize> {
    let length = |digits: u8| {
        let digits = u32::from(digits);
        (digits / GROUP_DIGITS) as usize * GROUP_BYTES + BYTES[(digits % GROUP_DIGITS) as usize]
    };
    let whole = precision.checked_sub(scale)?;
    (1..=65)
        .contains(&precision)
        .then(|| length(whole) + length(scale))
}

/// The unscaled number that [`put`] has written. `None`: it is longer than the type, or than the number.
pub(crate) fn read(bytes: &[u8], precision: u8, scale: u8) -> Option<i128> {
    let mut magnitude: i128 = 0;
    let is_negative = each_group(bytes, precision, scale, |digits, number| {
        let shifted = magnitude.checked_mul(10i128.pow(digits.into()))?;
        magnitude = shifted.checked_add(number.into())?;
        Some(())
    })?;
    Some(if is_negative { -magnitude } else { magnitude })
}

/// As [`read`], of a wide DECIMAL.
pub(crate) fn read_wide(bytes: &[u8], precision: u8, scale: u8) -> Option<Int256> {
    let mut magnitude = Int256::from(0);
    let is_negative = each_group(bytes, precision, scale, |digits, number| {
        let shifted = magnitude.checked_mul(Int256::power_of_ten(digits)?)?;
        magnitude = shifted.checked_add(Int256::from(i128::from(number)))?;
        Some(())
    })?;
    Some(match is_negative {
        true => magnitude.negated(),
        false => magnitude,
    })
}

/// Goes through the groups of digits from the left, each with how many it has. True: the number is below zero.
fn each_group(
    bytes: &[u8],
    precision: u8,
    scale: u8,
    mut take: impl FnMut(u8, u32) -> Option<()>,
) -> Option<bool> {
    let (first, rest) = bytes.split_first()?;
    let is_negative = first & 0x80 == 0;
    let mask = if is_negative { 0xFF } else { 0 };
    let mut left = std::iter::once(first ^ 0x80).chain(rest.iter().copied());
    let mut group = |digits: u8| {
        let mut number: u32 = 0;
        for _ in 0..BYTES[usize::from(digits)] {
            number = number << 8 | u32::from(left.next()? ^ mask);
        }
        (number < 10u32.pow(digits.into())).then_some(number)
    };
    let full = GROUP_DIGITS as u8;
    let whole = precision.checked_sub(scale)?;
    let before =
        std::iter::once(whole % full).chain(std::iter::repeat_n(full, (whole / full).into()));
    let behind = std::iter::repeat_n(full, (scale / full).into()).chain([scale % full]);
    for digits in before.chain(behind).filter(|digits| *digits > 0) {
        take(digits, group(digits)?)?;
    }
    Some(is_negative)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(unscaled: i128, precision: u8, scale: u8) -> Vec<u8> {
        let mut out = Vec::new();
        assert!(put(&mut out, unscaled, precision, scale));
        out
    }

    #[test]
    fn groups_stand_around_the_point() {
        let plus = [0x81, 0x0D, 0xFB, 0x38, 0xD2, 0x04, 0xD2];
        assert_eq!(
            bytes(12_345_678_901_234, 14, 4),
            plus,
            "1234567890.1234, MySQL's manual"
        );
        assert_eq!(bytes(-12_345_678_901_234, 14, 4), plus.map(|byte| !byte));
        for (unscaled, precision, scale) in [(12_345_678_901_234, 14, 4), (-50, 5, 5), (0, 38, 30)]
        {
            let mut out = Vec::new();
            assert!(put_wide(&mut out, unscaled.into(), precision, scale));
            assert_eq!(out, bytes(unscaled, precision, scale));
        }
        assert_eq!(bytes(0, 5, 5), [0x80, 0, 0]);
        assert_eq!(bytes(-1, 1, 0), [0x7E]);
    }

    #[test]
    fn numbers_read_as_they_were_written() {
        for (precision, scale) in [(1, 0), (5, 2), (9, 9), (14, 4), (20, 10), (38, 0), (38, 38)] {
            let limit = 10i128.pow(u32::from(precision));
            for number in [0, 1, -1, 7, limit - 1, 1 - limit, limit / 7, -limit / 3] {
                let written = bytes(number, precision, scale);
                assert_eq!(Some(written.len()), super::bytes(precision, scale));
                assert_eq!(read(&written, precision, scale), Some(number));
                assert_eq!(read(&written[1..], precision, scale), None);
            }
        }
    }

    #[test]
    fn wide_numbers_read_as_they_were_written() {
        let nines = Int256::nines(65);
        for number in [Int256::from(0), Int256::from(-7), nines, nines.negated()] {
            let mut written = Vec::new();
            assert!(put_wide(&mut written, number, 65, 30));
            let read = read_wide(&written, 65, 30).unwrap();
            assert_eq!(
                (read.digits(), read.is_negative()),
                (number.digits(), number.is_negative())
            );
        }
    }

    #[test]
    fn numbers_with_more_digits_are_refused() {
        let mut out = Vec::new();
        assert!(!put(&mut out, 1000, 3, 1));
        assert!(!put(&mut out, 1, 3, 4));
        assert!(!put(&mut out, i128::MAX, 39, 0));
        assert!(out.is_empty());
    }

    #[test]
    fn order_of_bytes_is_the_order_of_numbers() {
        let numbers = [-99_999i128, -10_000, -9_999, -1, 0, 1, 9, 10, 99_999];
        let all = numbers.map(|number| bytes(number, 5, 2));
        assert!(all.is_sorted());
    }
}
