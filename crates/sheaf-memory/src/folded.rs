//! Constants that are computed while a statement is planned, and stay in its plan.
//!
//! ```text
//!   s = REPEAT('x', 8000) OR s = REPEAT('x', 16000) OR ...     a line of text: 8 KB of a constant, 16 KB, ...
//! ```
//!
//! Ten thousand of these are hundreds of megabytes, and planning copies them: each is a text, a sort key, and an
//! operand in several forms of the plan. So all constants of a statement together have a limit. What is beyond it stays
//! a call, which is computed when the statement runs, once for each batch.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::process;

/// Constants of a statement take no more than this part of what the process may take: planning has several copies.
const SHARE: usize = 32;
/// Nor more than that, whatever the process may take.
const MOST_BYTES: usize = 32 << 20;
/// Shorter ones are not counted: they take less than the nodes of the plan around them.
const LEAST_BYTES: usize = 64;

/// Bytes of one statement's constants.
#[derive(Debug, Default)]
pub(crate) struct FoldedBytes(AtomicUsize);

impl FoldedBytes {
    /// The next statement starts.
    pub(crate) fn begin(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Adds a constant of so many bytes. False: there are too many, and this one is not to be kept.
    pub(crate) fn add(&self, bytes: usize) -> bool {
        if bytes < LEAST_BYTES {
            return true;
        }
        let most = process::limit().map_or(MOST_BYTES, |limit| (limit / SHARE).min(MOST_BYTES));
        let with_it = self.0.load(Ordering::Relaxed).saturating_add(bytes);
        let fits = with_it <= most;
        if fits {
            // The thread that plans the statement is the only one that adds much.
            self.0.store(with_it, Ordering::Relaxed);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_folded_up_to_a_limit() {
        let folded = FoldedBytes::default();
        assert!(folded.add(MOST_BYTES / 2) && folded.add(MOST_BYTES / 2));
        assert!(!folded.add(LEAST_BYTES) && folded.add(LEAST_BYTES - 1));
        folded.begin();
        assert!(!folded.add(MOST_BYTES + 1) && folded.add(MOST_BYTES));
    }
}
