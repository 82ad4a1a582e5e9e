//! Rows and keys as bytes.
//!
//! | file | what it holds |
//! |---|---|
//! | [`key_codec`] | index keys as bytes in memcmp order |
//! | `key_part` | the parts of keys: how the values of each type are encoded in them |
//! | [`key_range`] | ranges of encoded keys: what a condition on the leading parts of an index selects |
//! | `sort_key_text` | the texts that sort keys say back, and where sort keys end |
//! | [`row_codec`] | rows as bytes, made so that a column is read without the others |
//! | [`fixed_width_loads`] | fixed-width fields of both as words |
//! | [`overflow`] | long values outside of their rows |

pub mod fixed_width_loads;
pub mod key_codec;
pub(crate) mod key_part;
pub mod key_range;
pub(crate) mod overflow;
pub mod row_codec;
pub(crate) mod sort_key_text;
