//! Values of BIT: a number where numbers are wanted, and bytes where strings are.

use super::bytes_to_unsigned;
use crate::output::Output;

/// Bytes of a number of 64 bits.
const MAX_BYTES: usize = 8;

/// The number in bytes, the most significant first, as `length` bits. `None`: it has more.
pub fn bits_of_bytes(bytes: &[u8], length: u8) -> Option<u64> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let significant = &bytes[zeros..];
    if significant.len() > MAX_BYTES {
        return None;
    }
    let number = bytes_to_unsigned(significant);
    (number <= greatest_bits(length)).then_some(number)
}

/// A number whose `length` bits are all set.
pub fn greatest_bits(length: u8) -> u64 {
    u64::MAX
        .checked_shr(64 - u32::from(length.min(64)))
        .unwrap_or(0)
}

/// How many bytes a value of so many bits is.
pub fn bit_bytes_length(length: u8) -> usize {
    usize::from(length).div_ceil(8).min(MAX_BYTES)
}

/// Appends the bytes of a value of `length` bits, the most significant first.
pub fn push_bit_bytes(value: u64, length: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes()[MAX_BYTES - bit_bytes_length(length)..]);
}

/// The bytes of a value of `length` bits.
pub fn bit_bytes(value: u64, length: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MAX_BYTES);
    push_bit_bytes(value, length, &mut bytes);
    bytes
}

/// Appends the literal of a value: `b'101'`.
pub fn push_bit_literal(value: u64, out: &mut impl Output) {
    out.push_ascii(format!("b'{value:b}'").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_numbers_of_so_many_bits() {
        assert_eq!(bits_of_bytes(b"A", 8), Some(65));
        assert_eq!(bits_of_bytes(b"A", 7), Some(65));
        assert_eq!(bits_of_bytes(b"A", 6), None);
        assert_eq!(bits_of_bytes(b"", 1), Some(0));
        assert_eq!(bits_of_bytes(&[0; 100], 1), Some(0));
        assert_eq!(bits_of_bytes(&[0xFF; 8], 64), Some(u64::MAX));
        assert_eq!(bits_of_bytes(&[1; 9], 64), None);
    }

    #[test]
    fn numbers_are_as_many_bytes_as_their_bits_take() {
        assert_eq!(bit_bytes(5, 1), [5]);
        assert_eq!(bit_bytes(5, 8), [5]);
        assert_eq!(bit_bytes(5, 9), [0, 5]);
        assert_eq!(bit_bytes(u64::MAX, 64), [0xFF; 8]);
        assert_eq!([1, 10, 64].map(greatest_bits), [1, 1023, u64::MAX]);
    }

    #[test]
    fn literals_have_no_zeros_in_front() {
        let literal = |value| {
            let mut out = String::new();
            push_bit_literal(value, &mut out);
            out
        };
        assert_eq!(literal(0), "b'0'");
        assert_eq!(literal(5), "b'101'");
    }
}
