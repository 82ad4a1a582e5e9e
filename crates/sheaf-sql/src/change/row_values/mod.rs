//! Values that depend on the row that they are for.
//!
//! | file | what it holds |
//! |---|---|
//! | [`later_values`] | values of an UPDATE that name columns which were given a value before |
//! | [`values_before`] | values that name columns of the row that they are for |
//! | [`values_around`] | values with subqueries that name such columns |

pub(crate) mod later_values;
pub(crate) mod values_around;
pub(crate) mod values_before;
