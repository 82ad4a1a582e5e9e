//! Texts: which are equal, in which order they come, and which fit a pattern.
//!
//! | file | what it holds |
//! |---|---|
//! | `character_set` | which characters and bytes texts of a collation have |
//! | [`collation`] | sort keys of texts |
//! | `eight_bit` | character sets of one byte a character |
//! | [`encoding`] | texts in other character sets |
//! | [`hexadecimal`] | bytes as digits |
//! | [`letter_case`] | the other case of a letter |
//! | [`like`] | patterns of LIKE |
//! | `padded` | sort keys of `utf8mb4_bin` and `utf8mb4_general_ci` |
//! | [`quoting`] | names and strings in a statement |
//! | `set_collation` | collations of other character sets than utf8mb4 |
//! | `several_bytes` | character sets of several bytes a character |
//! | `tailoring` | collations of languages |
//! | [`unicode_primary`] | sort keys of `utf8mb4_0900_ai_ci` |
//! | `unicode_weights` | sort keys of the older Unicode collations, and weights of accents and cases |
//! | `weight_string` | weights as WEIGHT_STRING shows them |

use std::borrow::Cow;

mod character_set;
pub mod collation;
mod eight_bit;
pub mod encoding;
pub mod hexadecimal;
pub mod letter_case;
pub mod like;
mod padded;
pub mod quoting;
mod sequences;
mod set_collation;
mod several_bytes;
mod tailoring;
pub mod unicode_primary;
pub(crate) mod unicode_weights;
mod weight_string;

/// Ends the key of a PAD SPACE collation.
pub const PAD_END: u8 = 0x01;
/// Precedes spaces and a control character in the key of a PAD SPACE collation.
pub const PAD_BELOW: u8 = 0x00;

/// Stored bytes as a text. They are one but for a fault, and bytes that are one are looked at many at a time.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// White space: C's `isspace`, which MySQL skips around numbers and dates.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}
