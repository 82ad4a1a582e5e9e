//! Pages that are marked as used, but belong to no tree.
//!
//! A tree is made and dropped in several mini-transactions: its pages are taken before the directory has it, and freed
//! after the directory has lost it. A thread that does so holds [`PagesWithoutTree`]. If the process ends in between,
//! or a page cannot be freed, the pages are orphaned until recovery looks through the extent maps for pages without a
//! tree. A start does that only if the log has something after the last checkpoint. So a checkpoint that may have one
//! half of such a change, and not the other, leaves a frame behind itself that changes nothing: its mark.

use std::sync::Arc;

use crate::page::Lsn;
use crate::page_store::PageStore;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of lost pages.
pub(crate) struct OrphanedPages {
    /// Pages could not be freed.
    are_lost: AtomicBool,
    /// Changes of several mini-transactions that have begun.
    begun: AtomicU64,
    /// Those of them that have ended.
    ended: AtomicU64,
    /// The frame after the last checkpoint that makes the next start look for lost pages; 0: none.
    mark: AtomicU64,
}

impl OrphanedPages {
    pub(crate) fn none() -> OrphanedPages {
        OrphanedPages {
            are_lost: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            mark: AtomicU64::new(0),
        }
    }

    /// Pages could not be freed.
    pub(crate) fn note(&self) {
        self.are_lost.store(true, Ordering::Relaxed);
    }

    /// Changes that have ended by now: to be asked before a checkpoint begins.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// Whether there may be lost pages if the log ends where a checkpoint has begun. `ended_before`: from
    /// [`ended`](Self::ended) before it began.
    pub(crate) fn may_be_in_checkpoint(&self, ended_before: u64) -> bool {
        self.are_lost.load(Ordering::Relaxed) || self.begun.load(Ordering::SeqCst) > ended_before
    }

    /// The mark of the last checkpoint, if it has one.
    pub(crate) fn mark(&self) -> Option<Lsn> {
        let mark = self.mark.load(Ordering::Relaxed);
        (mark > 0).then_some(Lsn(mark))
    }

    /// A checkpoint was made, with this mark.
    pub(crate) fn set_mark(&self, mark: Option<Lsn>) {
        self.mark
            .store(mark.map_or(0, |mark| mark.0), Ordering::Relaxed);
    }
}

/// Held by a thread that takes or frees pages of a tree that the directory does not have.
pub(crate) struct PagesWithoutTree(Arc<PageStore>);

impl PagesWithoutTree {
    pub(crate) fn of(store: &Arc<PageStore>) -> PagesWithoutTree {
        store.orphaned_pages.begun.fetch_add(1, Ordering::SeqCst);
        PagesWithoutTree(store.clone())
    }
}

impl Drop for PagesWithoutTree {
    fn drop(&mut self) {
        self.0.orphaned_pages.ended.fetch_add(1, Ordering::SeqCst);
    }
}
