//! What the syntax tree of a statement says, before anything is decided.
//!
//! | file | what it holds |
//! |---|---|
//! | [`attempt`] | what a statement is compiled with, and what attempts before have left |
//! | [`names`] | the table and its columns |
//! | [`selection`] | the WHERE of a statement |
//! | [`select_shape`] | what a SELECT says about its rows |
//! | [`headers`] | what columns are called |
//! | [`plain_call`] | a call of a function taken apart |
//! | [`given`] | what a run takes from its session: the clock, user variables |
//! | [`locking_clause`] | FOR UPDATE and FOR SHARE |
//! | [`needs`] | what a session has to be allowed to |
//! | [`limits`] | how large a statement is, at most |

pub(super) mod attempt;
pub(super) mod given;
pub(super) mod headers;
pub(super) mod limits;
pub(super) mod locking_clause;
pub(super) mod names;
pub(super) mod needs;
pub(super) mod plain_call;
pub(super) mod select_shape;
pub(super) mod selection;
