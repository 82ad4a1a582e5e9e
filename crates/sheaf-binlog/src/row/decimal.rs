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

/// Digits of a whole group, and its bytes.
const GROUP_DIGITS: u32 = 9;
const GROUP_BYTES: usize = 4;
/// Bytes of a group of so many digits.
const BYTES: [usize; GROUP_DIGITS as usize + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Appends `unscaled` / 10^`scale` as a DECIMAL of `precision` digits. `false`: it has more of them, and nothing was
/// appended.
pub(super) fn put(out: &mut Vec<u8>, unscaled: i128, precision: u8, scale: u8) -> bool {
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
pub(super) fn whole_digits(unscaled: i128, scale: u8) -> u8 {
    let whole = unscaled.unsigned_abs() / 10u128.checked_pow(scale.into()).unwrap_or(u128::MAX);
    whole.checked_ilog10().map_or(1, |log| log as u8 + 1)
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
        assert_eq!(bytes(0, 5, 5), [0x80, 0, 0]);
        assert_eq!(bytes(-1, 1, 0), [0x7E]);
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
