//! UPDATE and DELETE of rows by a unique key, or of a short range of an index.
//!
//! They run as their vectorised forms do (`change/update/mod.rs`, `change/delete.rs`): rows are found through a view
//! and locked one by one. If one of them has changed since, the statement rolls back what it did and begins again with
//! a newer view. Only the finding is short, and new values are computed here instead of by a query.
//!
//! An UPDATE of columns that no index has looks, locks and changes in one visit of the row's leaf, if the row is what
//! the view shows and no other transaction conflicts ([`sheaf_table::Table::amend`]). A row whose key is known is not
//! even found before.
//!
//! | file | what it holds |
//! |---|---|
//! | [`change_found`] | UPDATE and DELETE of what a query finds |

pub(super) mod change_found;
mod delete;
mod new_value;
mod rows;
mod run;
mod update;

pub(super) use delete::Delete;
pub(super) use rows::Rows;
pub(super) use run::{run_direct_delete, run_direct_update};
pub(super) use update::Update;
