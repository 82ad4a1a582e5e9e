//! Texts: which are equal, in which order they come, and which fit a pattern.
//!
//! | file | what it holds |
//! |---|---|
//! | [`collation`] | sort keys of texts |
//! | [`like`] | patterns of LIKE |
//! | `unicode_weights` | sort keys of the older Unicode collations |

pub mod collation;
pub mod like;
pub(crate) mod unicode_weights;

/// Ends the key of a PAD SPACE collation.
pub const PAD_END: u8 = 0x01;
/// Precedes spaces and a control character in the key of a PAD SPACE collation.
pub const PAD_BELOW: u8 = 0x00;

/// White space: C's `isspace`, which MySQL skips around numbers and dates.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}
