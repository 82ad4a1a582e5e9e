//! The texts that sort keys say back: plain ones, as far as the collation leaves letters in its keys. And where a sort
//! key ends.

use sheaf_types::text::{
    self,
    collation::{self, Collation},
    unicode_primary,
};

/// The text of a sort key, in letters of any case.
pub(super) fn decode_sort_key(sort_key: &[u8], collation: Collation, out: &mut Vec<u8>) {
    if collation.pads_spaces() {
        return decode_padded(sort_key, out);
    }
    if collation.order() == Collation::Utf8mb4_0900_bin {
        return collation::decode_code_points(sort_key, out);
    }
    let letters = unicode_primary::ascii_of_codes();
    out.extend(sort_key.iter().map(|code| letters[usize::from(*code)]));
}

/// A text with this sort key, in small letters if case does not count; `None` if the key does not say one.
pub fn text_of_sort_key(sort_key: &[u8], collation: Collation) -> Option<String> {
    let mut text = Vec::new();
    match collation.order() {
        Collation::Utf8mb4_0900_ai_ci
        | Collation::Utf8mb4_0900_as_ci
        | Collation::Utf8mb4_0900_as_cs
        | Collation::Utf8mb4_general_ci
        | Collation::Utf8mb4_bin
        | Collation::Utf8mb4_0900_bin
        // Those of ASCII do, mostly: that is looked at below.
        | Collation::OfSet(_) => {
            decode_sort_key(sort_key, collation, &mut text);
        }
        // Weights are not said back.
        Collation::Utf8mb4_unicode_ci
        | Collation::Utf8mb4_unicode_520_ci
        | Collation::Tailored(_) => return None,
        Collation::Binary => return None,
    }
    if collation.ignores_case() {
        text.make_ascii_lowercase();
    }
    let text = String::from_utf8(text).ok()?;
    let mut again = Vec::with_capacity(sort_key.len());
    collation.sort_key_into(&text, &mut again);
    (again == sort_key).then_some(text)
}

/// The text of a sort key of a PAD SPACE collation, end included.
fn decode_padded(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some((first, after)) = rest.split_first() {
        match *first {
            text::PAD_END => return,
            text::PAD_BELOW => {
                let spaces = after.iter().take_while(|byte| **byte == b' ').count();
                let end = (spaces + 1).min(after.len());
                out.extend_from_slice(&after[..end]);
                rest = &after[end..];
            }
            byte => {
                out.push(byte);
                rest = after;
            }
        }
    }
}

/// Where the sort key ends that begins at or before `start`: the first zero byte from there on. Eight bytes at a time.
#[inline]
pub fn sort_key_end(bytes: &[u8], start: usize) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let mut position = start;
    while let Some(chunk) = bytes.get(position..position + 8) {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        // The lowest set high bit marks the first zero byte; those above it may be false.
        let zeros = word.wrapping_sub(LOW) & !word & HIGH;
        if zeros != 0 {
            return Some(position + zeros.trailing_zeros() as usize / 8);
        }
        position += 8;
    }
    let rest = bytes.get(position..)?;
    rest.iter()
        .position(|&byte| byte == 0)
        .map(|zero| position + zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_zero_is_found_wherever_it_is() {
        for length in 0..30 {
            for start in 0..=length {
                for zero in start..length {
                    let mut bytes: Vec<u8> = (0..length).map(|byte| 1 + byte as u8 * 9).collect();
                    bytes[zero] = 0;
                    assert_eq!(sort_key_end(&bytes, start), Some(zero));
                }
                assert_eq!(sort_key_end(&vec![1; length], start), None);
            }
        }
    }
}
