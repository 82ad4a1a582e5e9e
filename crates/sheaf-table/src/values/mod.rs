//! MySQL's values: their order, their text, and how one becomes another.
//!
//! | file | what it holds |
//! |---|---|
//! | [`value`] | one value of a column, or a literal on its way to one |
//! | [`types`] | column types: what a column may hold, and how MySQL spells it |
//! | [`collation`] | which strings are equal, and in which order they come |
//! | [`unicode_weights`] | sort keys of the Unicode collations |
//! | [`number_text`] | numbers from text |
//! | [`float_text`] | FLOAT and DOUBLE as text |
//! | [`temporal`] | dates and times as counts |
//! | [`temporal_text`] | dates and times from text and from numbers |

pub mod collation;
pub mod float_text;
pub mod number_text;
pub mod temporal;
pub mod temporal_text;
pub mod types;
pub(crate) mod unicode_weights;
pub mod value;
