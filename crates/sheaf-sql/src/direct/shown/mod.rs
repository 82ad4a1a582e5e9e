//! What a query shows of the rows that keys have found.
//!
//! | file | what it holds |
//! |---|---|
//! | [`row`] | rows under keys, and their values for the client |
//! | [`select_list`] | the items of a select list |
//! | [`joined_list`] | what a join shows |
//! | [`aggregate`] | COUNT, SUM, MIN and MAX |

pub(super) mod aggregate;
pub(super) mod joined_list;
pub(super) mod row;
pub(super) mod select_list;
