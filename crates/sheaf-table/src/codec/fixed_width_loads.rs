//! Fixed-width fields of rows and keys as 64-bit words.
//!
//! Rows hold fixed columns little-endian, keys hold fixed parts big-endian with the sign flipped, both at their own
//! widths of 1 to 16 bytes. Loading eight bytes at once and shifting is faster than copying just as many as there are,
//! and serves all widths up to 8 with one loop.

/// The little-endian field of `width` (1 to 8) bytes at `offset`, in the *upper* bytes of the word: the caller shifts
/// it down, with or without sign. Zero if the field is not within `bytes`, which callers rule out beforehand.
#[inline(always)]
pub fn load_little(bytes: &[u8], offset: usize, width: usize) -> u64 {
    let shift = 64 - 8 * width as u32;
    match bytes.get(offset..offset + 8) {
        Some(word) => u64::from_le_bytes(word.try_into().unwrap_or_default()) << shift,
        None => match bytes.get(offset..offset + width) {
            Some(field) => {
                let mut word = [0; 8];
                word[8 - width..].copy_from_slice(field);
                u64::from_le_bytes(word)
            }
            None => 0,
        },
    }
}

/// [`load_little`] for widths of 9 to 16, in the upper bytes of 128 bits.
#[inline(always)]
pub fn load_little_wide(bytes: &[u8], offset: usize, width: usize) -> u128 {
    match bytes.get(offset..offset + width) {
        Some(field) => {
            let mut word = [0; 16];
            word[16 - width..].copy_from_slice(field);
            u128::from_le_bytes(word)
        }
        None => 0,
    }
}

/// The big-endian field of `width` (1 to 8) bytes at `offset` as an unsigned number. Zero if it is not within `bytes`.
#[inline(always)]
pub fn load_big(bytes: &[u8], offset: usize, width: usize) -> u64 {
    let shift = 64 - 8 * width as u32;
    match bytes.get(offset..offset + 8) {
        Some(word) => u64::from_be_bytes(word.try_into().unwrap_or_default()) >> shift,
        None => match bytes.get(offset..offset + width) {
            Some(field) => {
                let mut word = [0; 8];
                word[8 - width..].copy_from_slice(field);
                u64::from_be_bytes(word)
            }
            None => 0,
        },
    }
}

/// [`load_big`] for widths of 9 to 16.
#[inline(always)]
pub fn load_big_wide(bytes: &[u8], offset: usize, width: usize) -> u128 {
    match bytes.get(offset..offset + width) {
        Some(field) => {
            let mut word = [0; 16];
            word[16 - width..].copy_from_slice(field);
            u128::from_be_bytes(word)
        }
        None => 0,
    }
}

/// A signed number of `width` (1 to 8) bytes whose sign bit was flipped to make it order as unsigned.
#[inline(always)]
pub fn unflip(word: u64, width: usize) -> i64 {
    let shift = 64 - 8 * width as u32;
    ((word << shift) ^ (1 << 63)) as i64 >> shift
}

/// [`unflip`] for widths of 9 to 16.
#[inline(always)]
pub fn unflip_wide(word: u128, width: usize) -> i128 {
    let shift = 128 - 8 * width as u32;
    ((word << shift) ^ (1 << 127)) as i128 >> shift
}

/// A number of a word that orders as the float does. Both zeros map to the same.
#[inline(always)]
pub fn ordered_float(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// The bits of a float from its order-preserving form: sign bit set for positive ones, all bits inverted for negative.
#[inline(always)]
pub fn unorder_float64(word: u64) -> u64 {
    if word >> 63 == 1 {
        word ^ 1 << 63
    } else {
        !word
    }
}

/// [`unorder_float64`] of a float of four bytes.
#[inline(always)]
pub fn unorder_float32(word: u32) -> u32 {
    if word >> 31 == 1 {
        word ^ 1 << 31
    } else {
        !word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_at_the_end_of_the_bytes_read_like_fields_in_the_middle() {
        for width in 1..=8 {
            let field: Vec<u8> = (1..=width as u8).map(|byte| byte | 0x80).collect();
            let longer: Vec<u8> = field.iter().copied().chain([0xEE; 8]).collect();
            let mut little = [0; 8];
            little[..width].copy_from_slice(&field);
            let shift = 64 - 8 * width as u32;
            for bytes in [&field, &longer] {
                assert_eq!(
                    load_little(bytes, 0, width) >> shift,
                    u64::from_le_bytes(little)
                );
                let big = field
                    .iter()
                    .fold(0, |word: u64, &byte| word << 8 | u64::from(byte));
                assert_eq!(load_big(bytes, 0, width), big);
            }
            assert_eq!(load_little(&field, 1, width), 0, "outside reads as zero");
        }
    }

    #[test]
    fn flipped_signs_come_back() {
        for (width, value) in [
            (1, -128i64),
            (3, -5),
            (4, i64::from(i32::MIN)),
            (8, i64::MIN),
            (7, 1234),
            (2, 0),
        ] {
            let mask = if width == 8 {
                u64::MAX
            } else {
                (1 << (8 * width)) - 1
            };
            let flipped = (value as u64 ^ 1 << (8 * width - 1)) & mask;
            assert_eq!(unflip(flipped, width), value);
        }
        assert_eq!(unflip_wide(-77i128 as u128 ^ 1 << 127, 16), -77);
    }

    #[test]
    fn floats_order_as_words() {
        let values = [
            f64::NEG_INFINITY,
            -1.5,
            -0.0,
            0.0,
            1e-300,
            2.0,
            f64::INFINITY,
        ];
        for pair in values.windows(2) {
            assert_eq!(
                ordered_float(pair[0]).cmp(&ordered_float(pair[1])),
                pair[0].partial_cmp(&pair[1]).unwrap()
            );
        }
    }
}
