//! Bytes as hexadecimal digits: those of `X'0A'`, of `0x0A`, and of what shows bytes that are no text.

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// The two digits of a byte.
#[inline]
pub fn digits_of_byte(byte: u8) -> [char; 2] {
    [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]))
}

/// The digits of bytes, two of each.
pub fn digits_of(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        digits.extend(digits_of_byte(*byte));
    }
    digits
}

/// The same in small letters, as hashes are written.
pub fn push_small_digits(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        out.extend(digits_of_byte(*byte).map(|digit| digit.to_ascii_lowercase()));
    }
}

/// The literal of bytes.
pub fn literal_of(bytes: &[u8]) -> String {
    format!("0x{}", digits_of(bytes))
}

/// The bytes that digits spell: the first of an odd number of digits is a byte by itself. `None` for what is no digits.
pub fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (first, pairs) = digits.as_bytes().split_at(digits.len() % 2);
    let first = first.iter().map(|byte| digit(*byte));
    let pairs = pairs.chunks_exact(2);
    let pairs = pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
    first.chain(pairs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_as_they_are_written() {
        assert_eq!(digits_of(&[0, 0x0A, 0xFF]), "000AFF");
        let mut small = String::new();
        push_small_digits(&mut small, &[0, 0x0A, 0xFF]);
        assert_eq!(small, "000aff");
        assert_eq!(literal_of(b""), "0x");
        assert_eq!(bytes_of("D0b1"), Some(vec![0xD0, 0xB1]));
        assert_eq!(bytes_of("ABC"), Some(vec![0x0A, 0xBC]));
        assert_eq!(bytes_of(""), Some(Vec::new()));
        assert_eq!(bytes_of("0x"), None);
        assert_eq!(bytes_of("é"), None);
    }
}
