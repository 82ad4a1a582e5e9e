//! Numbers and lengths as the format has them.

/// Appends a number in 1, 3, 4 or 9 bytes, as the protocol's length-encoded integers.
pub(crate) fn put_packed(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_le_bytes();
    match packed_bytes(number) {
        1 => out.push(bytes[0]),
        3 => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        4 => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// The number at the beginning of `bytes` that [`put_packed`] has appended.
pub(crate) fn read_packed(bytes: &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    let length = match first {
        0..=250 => return Some((*first).into()),
        0xFC => 2,
        0xFD => 3,
        0xFE => 8,
        _ => return None,
    };
    let mut number = [0; 8];
    number[..length].copy_from_slice(rest.get(..length)?);
    Some(u64::from_le_bytes(number))
}

/// Bytes of a number that [`put_packed`] appends.
pub(crate) fn packed_bytes(number: u64) -> usize {
    match number {
        0..=250 => 1,
        251..=0xFFFF => 3,
        0x1_0000..=0xFF_FFFF => 4,
        _ => 9,
    }
}

/// Appends the lowest bytes of a number, the lowest first.
pub(crate) fn put_little(out: &mut Vec<u8>, number: u64, bytes: usize) {
    out.extend_from_slice(&number.to_le_bytes()[..bytes.min(8)]);
}

/// Appends the lowest bytes of a number, the highest first.
pub(crate) fn put_big(out: &mut Vec<u8>, number: u64, bytes: usize) {
    out.extend_from_slice(&number.to_be_bytes()[8 - bytes.min(8)..]);
}

/// Appends a length and the bytes.
pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_packed(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends bits, the first one the lowest of the first byte.
pub(crate) fn put_bits_low_first(out: &mut Vec<u8>, bits: impl Iterator<Item = bool>) {
    put_bits(out, bits, |at| 1 << at);
}

/// Appends bits, the first one the highest of the first byte.
pub(crate) fn put_bits_high_first(out: &mut Vec<u8>, bits: impl Iterator<Item = bool>) {
    put_bits(out, bits, |at| 0x80 >> at);
}

fn put_bits(out: &mut Vec<u8>, bits: impl Iterator<Item = bool>, mask: fn(usize) -> u8) {
    let start = out.len();
    for (at, bit) in bits.enumerate() {
        if at % 8 == 0 {
            out.push(0);
        }
        if bit {
            out[start + at / 8] |= mask(at % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_bytes_of_their_size() {
        for (number, length) in [(250, 1), (251, 3), (0xFFFF, 3), (0x1_0000, 4), (1 << 24, 9)] {
            let mut out = Vec::new();
            put_packed(&mut out, number);
            assert_eq!((out.len(), packed_bytes(number)), (length, length));
            assert_eq!(read_packed(&out), Some(number));
            assert_eq!(read_packed(&out[..out.len() - 1]), None);
        }
    }

    #[test]
    fn bits_stand_in_the_order_that_is_asked_for() {
        let bits = [true, false, false, false, false, false, false, false, true];
        let mut out = Vec::new();
        put_bits_low_first(&mut out, bits.into_iter());
        put_bits_high_first(&mut out, bits.into_iter());
        assert_eq!(out, [0x01, 0x01, 0x80, 0x80]);
    }
}
