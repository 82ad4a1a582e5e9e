//! [`Budget`]: what a part of a plan may spend before another plan is tried in its place.
//!
//! A plan that may turn out badly, such as a walk in order that hopes to meet its LIMIT soon, is allowed to spend what
//! another plan is estimated to cost. While its scans run they price what they have done by the constants by which
//! plans are compared:
//!
//! ```text
//!   spent = keys x key + entries x entry + rows x row + tested entries x condition + jumps x jump + lookups x lookup
//!         + pages waited for x random read + pages requested ahead x sequential read
//! ```
//!
//! All scans and keyed lookups of the part add to one sum, once for each leaf or batch. The scan that finds the sum
//! beyond the limit fails with [`AccessError::BudgetSpent`], and the caller that set the limit takes it from there. No
//! clock is read: how far a plan gets does not depend on how busy the machine is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use sheaf_storage::{ThreadPageWork, Tree};

use crate::counters::ScanMetrics;
use crate::error::{AccessError, Result};

/// A budget without a limit, or whose limit was taken away.
const UNLIMITED: u8 = 0;
/// A budget with a limit.
const LIMITED: u8 = 1;
/// A budget of which a scan was told that it is used up. So it stays until it begins anew.
const USED_UP: u8 = 2;

/// What the scans of a part of a plan may spend together, and have spent. Cloning shares it. A new one has no limit.
#[derive(Clone, Debug, Default)]
pub struct Budget(Arc<Amounts>);

#[derive(Debug, Default)]
struct Amounts {
    limit_ns: AtomicU64,
    spent_ns: AtomicU64,
    /// [`UNLIMITED`], [`LIMITED`] or [`USED_UP`].
    state: AtomicU8,
}

impl Budget {
    /// Begins anew: nothing is spent, and no more than `limit_us` microseconds may be.
    pub fn start(&self, limit_us: f64) {
        let Amounts {
            limit_ns,
            spent_ns,
            state,
        } = self.0.as_ref();
        spent_ns.store(0, Ordering::Relaxed);
        limit_ns.store(nanoseconds(limit_us), Ordering::Relaxed);
        state.store(LIMITED, Ordering::Release);
    }

    /// Takes the limit away: what runs may go on to its end. False: a scan has failed already, whether that is known or
    /// not, and the others will.
    pub fn lift(&self) -> bool {
        self.leave_limited(UNLIMITED) != USED_UP
    }

    /// Goes to a state from that with a limit, or stays in another one. Returns the state from then on.
    fn leave_limited(&self, to: u8) -> u8 {
        let state = &self.0.state;
        match state.compare_exchange(LIMITED, to, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => to,
            Err(other) => other,
        }
    }

    /// What was spent while there was a limit, in microseconds.
    pub fn spent_us(&self) -> f64 {
        self.0.spent_ns.load(Ordering::Relaxed) as f64 / 1e3
    }

    fn is_limited(&self) -> bool {
        self.0.state.load(Ordering::Acquire) != UNLIMITED
    }

    fn spend(&self, ns: u64) -> Result<()> {
        let spent = self.0.spent_ns.fetch_add(ns, Ordering::Relaxed) + ns;
        let is_beyond = spent > self.0.limit_ns.load(Ordering::Relaxed);
        match is_beyond && self.leave_limited(USED_UP) == USED_UP {
            true => Err(AccessError::BudgetSpent),
            false => Ok(()),
        }
    }
}

/// What the work of a scan or of a keyed lookup costs, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Looking a key of a keyed lookup up in its index, in memory.
    pub key_us: f64,
    /// Walking over an entry of a secondary index.
    pub entry_us: f64,
    /// A row, or an entry of a covering index, that is tested and delivered.
    pub row_us: f64,
    /// Testing the index condition on an entry.
    pub index_condition_us: f64,
    /// Jumping on from an entry.
    pub jump_us: f64,
    /// Fetching a row by its primary key, from memory.
    pub lookup_us: f64,
    /// A page that is not in memory.
    pub random_read_us: f64,
    /// A page that is prefetched.
    pub sequential_read_us: f64,
}

impl Prices {
    /// What a scan or lookup has cost that did this and asked for these pages, in microseconds.
    pub fn total_us(&self, metrics: &ScanMetrics, pages: ThreadPageWork) -> f64 {
        metrics.keys as f64 * self.key_us
            + metrics.index_entries as f64 * self.entry_us
            + metrics.rows_examined as f64 * self.row_us
            + metrics.icp_attempts as f64 * self.index_condition_us
            + metrics.jumps as f64 * self.jump_us
            + metrics.row_lookups as f64 * self.lookup_us
            + pages.reads as f64 * self.random_read_us
            + pages.read_ahead as f64 * self.sequential_read_us
    }
}

/// Prices the work of one scan.
pub(crate) struct Meter {
    budget: Budget,
    prices: Prices,
    /// Knows what its pool is asked for.
    tree: Arc<Tree>,
    /// What the thread had asked for when it was last looked at.
    seen: ThreadPageWork,
    /// What the scan has asked for, on all threads that ran it.
    pages: ThreadPageWork,
    paid_ns: u64,
}

impl Meter {
    pub(crate) fn new(budget: Budget, prices: Prices, tree: Arc<Tree>) -> Self {
        Self {
            budget,
            prices,
            tree,
            seen: ThreadPageWork::default(),
            pages: ThreadPageWork::default(),
            paid_ns: 0,
        }
    }

    /// The scan goes on, perhaps on another thread than before.
    pub(crate) fn resume(&mut self) {
        self.seen = self.tree.thread_page_work();
    }

    /// Pays for what was done since the last time.
    ///
    /// # Errors
    /// `BudgetSpent` if that is more than there is.
    pub(crate) fn pay(&mut self, metrics: &ScanMetrics) -> Result<()> {
        if !self.budget.is_limited() {
            return Ok(());
        }
        let now = self.tree.thread_page_work();
        let work = now.since(self.seen);
        self.seen = now;
        self.pages.reads += work.reads;
        self.pages.read_ahead += work.read_ahead;
        let total_ns = nanoseconds(self.prices.total_us(metrics, self.pages));
        let due = total_ns.saturating_sub(self.paid_ns);
        self.paid_ns += due;
        self.budget.spend(due)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, as a limit beyond 500 years may"
)]
fn nanoseconds(us: f64) -> u64 {
    (us * 1e3) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_together_counts() {
        let budget = Budget::default();
        let other = budget.clone();
        assert!(!budget.is_limited());
        budget.start(10.0);
        assert!(budget.spend(6_000).is_ok() && other.spend(4_000).is_ok());
        assert!(matches!(other.spend(1), Err(AccessError::BudgetSpent)));
        assert_eq!(budget.spent_us(), 10.001);
        // Once a scan has failed the others do, too.
        assert!(!budget.lift() && budget.is_limited() && budget.spend(1).is_err());
        budget.start(10.0);
        assert!(budget.lift() && !other.is_limited());
        assert!(budget.spend(1 << 40).is_ok() && budget.lift());
        budget.start(0.0);
        assert!(budget.spend(0).is_ok() && budget.spend(1).is_err());
    }
}
