//! How the rows are found that a statement changes.
//!
//! | file | what it holds |
//! |---|---|
//! | [`change_query`] | the query that finds the rows of an UPDATE or a DELETE |
//! | [`first_finds`] | which rows a join has found before |
//! | [`through_view`] | views whose rows are those of one table |

pub(crate) mod change_query;
pub(crate) mod first_finds;
pub(crate) mod through_view;
