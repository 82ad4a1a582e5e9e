//! Texts: which are equal, and in which order they come.
//!
//! | file | what it holds |
//! |---|---|
//! | [`collation`] | sort keys of texts |
//! | `unicode_weights` | sort keys of the older Unicode collations |

pub mod collation;
pub(crate) mod unicode_weights;

/// Ends the key of a PAD SPACE collation.
pub const PAD_END: u8 = 0x01;
/// Precedes spaces and a control character in the key of a PAD SPACE collation.
pub const PAD_BELOW: u8 = 0x00;
