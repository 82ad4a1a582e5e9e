//! Statements that change rows.
//!
//! | folder or file | what it holds |
//! |---|---|
//! | [`insert`] | INSERT and REPLACE, also ON DUPLICATE KEY UPDATE: where rows go and how they are written |
//! | [`update`] | UPDATE, of one table and of several |
//! | [`delete`] | DELETE, from one table and from several |
//! | [`load`] | LOAD DATA |
//! | [`find`] | how the rows are found that a statement changes |
//! | [`values`] | values that are assigned to columns |
//! | [`row_values`] | values that depend on the row that they are for |
//! | [`rules`] | what a row gets and has to keep before it is written |

pub(crate) mod delete;
pub(crate) mod find;
pub(crate) mod insert;
pub(crate) mod load;
pub(crate) mod row_values;
pub(crate) mod rules;
pub(crate) mod update;
pub(crate) mod values;
