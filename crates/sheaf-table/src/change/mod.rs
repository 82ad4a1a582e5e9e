//! Changes of rows.
//!
//! | file | what it holds |
//! |---|---|
//! | [`table`] | an open table: its rows, and the upkeep of its indexes |
//! | [`change_set`] | the tables that one statement changes, and what foreign keys make of the changes |
//! | [`search_lock`] | what a statement has searched, and how a transaction keeps it as it is |
//! | [`amend`] | changes of columns that no index has, in one visit of the row |
//! | [`auto_increment`] | what AUTO_INCREMENT gives out |

pub(crate) mod amend;
pub(crate) mod auto_increment;
pub mod change_set;
pub mod search_lock;
pub mod table;
