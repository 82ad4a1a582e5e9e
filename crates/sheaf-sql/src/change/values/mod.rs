//! Values that statements assign to columns.
//!
//! | file | what it holds |
//! |---|---|
//! | [`assigned`] | expressions that are assigned to columns |
//! | [`sum`] | a column's value plus or minus a number |
//! | [`value_names`] | the names in values that are assigned |
//! | [`computed_defaults`] | defaults that are computed |

pub(crate) mod assigned;
pub(crate) mod computed_defaults;
pub(crate) mod sum;
pub(crate) mod value_names;
