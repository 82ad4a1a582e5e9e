//! FOR UPDATE and FOR SHARE.
//!
//! | file | what it holds |
//! |---|---|
//! | [`locking`] | of one table |
//! | [`lock_found`] | of what a query finds |

pub(super) mod lock_found;
pub(super) mod locking;
