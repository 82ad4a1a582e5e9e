//! What one statement changes, and what it has searched.
//!
//! | file | what it holds |
//! |---|---|
//! | [`change_set`] | the tables that one statement changes, and what foreign keys make of the changes |
//! | [`search_lock`] | what a statement has searched, and how a transaction keeps it as it is |

pub mod change_set;
pub mod search_lock;
