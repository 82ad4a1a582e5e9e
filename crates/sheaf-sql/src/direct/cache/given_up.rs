//! Runs of a direct plan that have given up.
//!
//! A direct plan gives up when it has met more rows than it is good for, and the operators begin anew. A statement for
//! which that is the rule would read its rows twice each time. So the runs behind a second one that gave up do not try:
//! one, then two, then four, until a run comes to its end.

use std::sync::atomic::{AtomicU32, Ordering};

/// A run that gave up before it read so many rows has cost next to nothing.
pub(in crate::direct) const COSTLY_ROWS: u64 = 100;
/// Runs that do not try, at most, before one does.
const MOST_SKIPPED: u32 = 256;

/// What is known of the runs of a plan. Sessions that share the plan share this, and nobody counts to the last run.
#[derive(Debug, Default)]
pub(in crate::direct) struct GivenUp {
    /// Runs that have given up, one behind the other.
    in_a_row: AtomicU32,
    to_skip: AtomicU32,
}

impl GivenUp {
    /// Whether a run is not to try.
    pub(in crate::direct) fn skips_run(&self) -> bool {
        let left = self.to_skip.load(Ordering::Relaxed);
        if left > 0 {
            self.to_skip.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }

    /// A run has ended: has it done its work, or given up behind many rows?
    pub(in crate::direct) fn note(&self, is_done: bool) {
        let in_a_row = self.in_a_row.load(Ordering::Relaxed);
        if is_done {
            if in_a_row > 0 {
                self.in_a_row.store(0, Ordering::Relaxed);
            }
            return;
        }
        self.in_a_row
            .store(in_a_row.saturating_add(1), Ordering::Relaxed);
        if in_a_row > 0 {
            let skipped = 1_u32.checked_shl(in_a_row - 1).unwrap_or(MOST_SKIPPED);
            self.to_skip
                .store(skipped.clamp(1, MOST_SKIPPED), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of so many runs try, if all that try give up.
    fn tries(given_up: &GivenUp, runs: u32) -> Vec<u32> {
        let tries = (0..runs).filter(|_| {
            let tries = !given_up.skips_run();
            if tries {
                given_up.note(false);
            }
            tries
        });
        tries.collect()
    }

    #[test]
    fn fewer_and_fewer_runs_try_until_one_is_done() {
        let given_up = GivenUp::default();
        assert_eq!(tries(&given_up, 20), [0, 1, 3, 6, 11]);
        let given_up = GivenUp::default();
        assert_eq!(tries(&given_up, 100_000).len(), 398);
        while given_up.skips_run() {}
        given_up.note(true);
        assert_eq!(tries(&given_up, 3), [0, 1]);
    }
}
