//! What all transactions of a storage share: snapshots, versions, row locks, and the moment of a commit.
//!
//! ```text
//!   begin    a status cell                                      nothing is logged
//!   read     a snapshot: the newest timestamp, published        snapshot/
//!   change   look for locks and versions of others, wait;       row_lock/
//!            leave a version, change the page                   versions/
//!   commit   status := timestamp, where the log assigns it;     all its versions become visible at once
//!            the clock advances; locks go
//! ```

use std::sync::Arc;

use crate::error::Result;
use crate::page::{Lsn, PageId};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, thread};
use crate::transaction::row_lock::RowLocks;
use crate::transaction::snapshot::{LiveSnapshots, ReadView, SnapshotRegistry, StatusCell};
use crate::transaction::spill_file::SpillFile;
use crate::transaction::versions::VersionStore;

/// Snapshots, versions and locks of one storage.
pub(crate) struct TransactionSystem {
    pub(crate) snapshots: Arc<SnapshotRegistry>,
    pub(crate) versions: VersionStore,
    pub(crate) row_locks: RowLocks,
    /// Where versions and undo go that memory has no room for.
    pub(crate) spill_file: Arc<SpillFile>,
    /// The snapshots in use, when they were gathered last.
    gathered: Mutex<Arc<LiveSnapshots>>,
    /// Where the newest commit is in the log, durable or not.
    newest_commit: AtomicU64,
    /// The same, behind it by the moment in which a commit sets its status: all up to here have theirs.
    settled_commit: AtomicU64,
}

impl TransactionSystem {
    /// `version_bytes`: the budget of the version store; `row_locks`: most explicit locks.
    pub(crate) fn new(
        version_bytes: usize,
        row_locks: usize,
        spill_file: Arc<SpillFile>,
    ) -> TransactionSystem {
        let snapshots = Arc::new(SnapshotRegistry::new(Lsn(0)));
        let gathered = Mutex::new(Arc::new(snapshots.live()));
        TransactionSystem {
            snapshots,
            versions: VersionStore::new(version_bytes, spill_file.clone()),
            row_locks: RowLocks::new(row_locks),
            spill_file,
            gathered,
            newest_commit: AtomicU64::new(0),
            settled_commit: AtomicU64::new(0),
        }
    }

    /// The log has assigned `lsn` to the commit of a transaction, which is visible from now on. Called in the order of
    /// the log.
    pub(crate) fn commit_at(&self, status: &StatusCell, lsn: Lsn) {
        // First: a thread that sees that the transaction has committed finds its place here.
        self.newest_commit.store(lsn.0, Ordering::SeqCst);
        status.commit(lsn);
        self.settled_commit.store(lsn.0, Ordering::SeqCst);
    }

    /// A view of all that has committed by now, durable or not, at least up to `least`, which was seen.
    ///
    /// # Errors
    /// `TooManySnapshots`.
    pub(crate) fn view_ahead(&self, own: &Arc<StatusCell>, least: Lsn) -> Result<ReadView> {
        loop {
            let settled = self.settled_at_least(least);
            if settled <= self.snapshots.newest() {
                return ReadView::take(&self.snapshots, Some(own.clone()));
            }
            let view = ReadView::take_ahead(&self.snapshots, own.clone(), settled)?;
            if let Some(view) = view {
                return Ok(view);
            }
        }
    }

    /// Commits up to here have their status set; at least up to `least`, which is waited for if it was seen in the
    /// moment before.
    pub(crate) fn settled_at_least(&self, least: Lsn) -> Lsn {
        loop {
            let settled = Lsn(self.settled_commit.load(Ordering::SeqCst));
            // After a start the clock stands at the end of the log, and nothing has been committed yet.
            if settled.max(self.snapshots.newest()) >= least {
                return settled;
            }
            thread::yield_now();
        }
    }

    /// Where the newest commit is that any thread can have seen.
    pub(crate) fn newest_commit(&self) -> Lsn {
        Lsn(self.newest_commit.load(Ordering::SeqCst))
    }

    /// The snapshots in use now.
    pub(crate) fn live_snapshots(&self) -> Arc<LiveSnapshots> {
        let live = Arc::new(self.snapshots.live());
        *self.gathered.lock() = live.clone();
        live
    }

    /// The snapshots that were in use when they were gathered last: going by them keeps enough, and costs nothing.
    pub(crate) fn recent_snapshots(&self) -> Arc<LiveSnapshots> {
        self.gathered.lock().clone()
    }

    /// Reads back what was spilled of a page's past, and keeps it in memory. The caller holds no latch.
    ///
    /// # Errors
    /// As [`VersionStore::make_room`]; what was spilled could not be read.
    pub(crate) fn bring_back(&self, page: PageId) -> Result<()> {
        self.make_room()?;
        self.versions.bring_back(page)
    }

    /// To be called before a change, by a thread that holds no latch: there is room for a version on return.
    ///
    /// # Errors
    /// As [`VersionStore::make_room`].
    #[inline]
    pub(crate) fn make_room(&self) -> Result<()> {
        self.versions.make_room(|| self.live_snapshots())
    }
}
