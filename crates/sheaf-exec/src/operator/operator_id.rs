//! Numbers that operators carry, so that what was known of one when it was planned is found again when it is shown.
//!
//! Rules make new operators of old ones: with other inputs, fewer columns or a limit. Those have the number of the one
//! that they were made of. DataFusion's own operators have no place for a number.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of an operator, and of all that rules make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperatorId(u64);

impl OperatorId {
    /// A number that no other operator of the process has.
    pub(crate) fn fresh() -> OperatorId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        OperatorId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
