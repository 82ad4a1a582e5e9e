//! The texts that sort keys say back: plain ones, as far as the collation leaves letters in its keys.

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
    if collation == Collation::Utf8mb4_0900_bin {
        return collation::decode_code_points(sort_key, out);
    }
    let letters = unicode_primary::ascii_of_codes();
    out.extend(sort_key.iter().map(|code| letters[usize::from(*code)]));
}

/// A text with this sort key, in small letters if case does not count; `None` if the key does not say one.
pub fn text_of_sort_key(sort_key: &[u8], collation: Collation) -> Option<String> {
    let mut text = Vec::new();
    match collation {
        Collation::Utf8mb4_0900_ai_ci
        | Collation::Utf8mb4_0900_as_ci
        | Collation::Utf8mb4_0900_as_cs
        | Collation::Utf8mb4_general_ci
        | Collation::Utf8mb4_bin
        | Collation::Utf8mb4_0900_bin => {
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
