//! The snapshots in use, and the clock that they are read from.
//!
//! A statement publishes its snapshot in a slot, which is a cache line of its own, and never touches another reader's.
//! Only the collector of versions goes through all slots; it must not miss a snapshot that is about to be used:
//!
//! ```text
//!   reader                                 collector
//!   1  read the clock: s                   A  read the clock: n
//!   2  publish s in a slot                 B  gather the slots
//!   3  read the clock again:
//!      not s any more? from 1 again
//! ```
//!
//! If B misses the slot, then 2 came after B, so 3 came after A, and s, which 3 confirmed, is not older than n. So the
//! collector keeps what the gathered snapshots need and what any snapshot from n on may need, and has missed none.
//! (Both sides store before they load, so these operations are sequentially consistent.)
//!
//! The clock stands at what is durable. A snapshot may be *ahead* of it (see the folder's comment): it publishes s, and
//! 3 asks whether the clock has passed s. If not, then n is not newer than s in the argument above, and the rest is the
//! same.

use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::thread_hint;

/// Most snapshots that can be in use at a time: one for every statement or transaction that reads.
#[cfg(not(feature = "simulation"))]
pub const MAX_SNAPSHOTS: usize = 8192;
#[cfg(feature = "simulation")]
pub const MAX_SNAPSHOTS: usize = 8;

/// A slot that is not in use.
const FREE: u64 = u64::MAX;

/// Counted by itself, so that a snapshot keeps it without counting in a line that others count in.
#[repr(align(64))]
struct Slot(AtomicU64);

/// The newest timestamp, and all snapshots in use.
pub(crate) struct SnapshotRegistry {
    /// Every transaction that committed at or before this has its status set.
    newest: AtomicU64,
    slots: Box<[Arc<Slot>]>,
    /// Slots from here on were never used.
    used: AtomicUsize,
}

impl SnapshotRegistry {
    /// A registry whose first snapshots see everything up to `newest`.
    pub(crate) fn new(newest: Lsn) -> SnapshotRegistry {
        SnapshotRegistry {
            newest: AtomicU64::new(newest.0),
            slots: (0..MAX_SNAPSHOTS)
                .map(|_| Arc::new(Slot(AtomicU64::new(FREE))))
                .collect(),
            used: AtomicUsize::new(0),
        }
    }

    /// What a snapshot taken now would see.
    pub(crate) fn newest(&self) -> Lsn {
        Lsn(self.newest.load(Ordering::SeqCst))
    }

    /// Snapshots taken from now on see what committed up to `lsn`: all of it has its status set.
    pub(crate) fn advance_to(&self, lsn: Lsn) {
        self.newest.fetch_max(lsn.0, Ordering::SeqCst);
    }

    /// Takes a snapshot of now.
    ///
    /// # Errors
    /// [`StorageError::TooManySnapshots`] if all [`MAX_SNAPSHOTS`] are in use.
    pub(crate) fn take(&self) -> Result<Snapshot> {
        let (slot, mut lsn) = self.claim_slot()?;
        loop {
            let now = self.newest();
            if now == lsn {
                return Ok(Snapshot {
                    slot: Arc::clone(&self.slots[slot]),
                    lsn,
                });
            }
            lsn = now;
            self.slots[slot].0.store(lsn.0, Ordering::SeqCst);
        }
    }

    /// Takes a snapshot of what had committed at `lsn`, durable or not: all of it has its status set. `None`: the clock
    /// has passed `lsn`, so the collector may have missed the snapshot, and a newer one is to be taken.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn take_ahead(&self, lsn: Lsn) -> Result<Option<Snapshot>> {
        let (slot, _) = self.claim_slot()?;
        let snapshot = Snapshot {
            slot: Arc::clone(&self.slots[slot]),
            lsn,
        };
        snapshot.slot.0.store(lsn.0, Ordering::SeqCst);
        Ok((self.newest() <= lsn).then_some(snapshot))
    }

    /// A slot that is this snapshot's from now on, and the timestamp published in it.
    fn claim_slot(&self) -> Result<(usize, Lsn)> {
        // Where no other thread looks first, so that slots do not travel between cores.
        let first = thread_hint() * SLOTS_PER_THREAD;
        for step in 0..MAX_SNAPSHOTS {
            // By a constant power of two: nothing is divided.
            let index = (first + step) % MAX_SNAPSHOTS;
            let slot = &self.slots[index].0;
            if slot.load(Ordering::Relaxed) != FREE {
                continue;
            }
            // Before the slot is published, or the collector would not look at it.
            if self.used.load(Ordering::SeqCst) <= index {
                self.used.fetch_max(index + 1, Ordering::SeqCst);
            }
            let lsn = self.newest();
            let claimed = slot.compare_exchange(FREE, lsn.0, Ordering::SeqCst, Ordering::Relaxed);
            if claimed.is_ok() {
                return Ok((index, lsn));
            }
        }
        Err(StorageError::TooManySnapshots {
            limit: MAX_SNAPSHOTS,
        })
    }

    /// Every snapshot in use, and all that may still be taken.
    pub(crate) fn live(&self) -> LiveSnapshots {
        let newest = self.newest();
        let used = self.used.load(Ordering::SeqCst);
        let slots = self.slots[..used].iter();
        let mut live: Vec<_> = slots
            .map(|slot| slot.0.load(Ordering::SeqCst))
            .filter(|&lsn| lsn != FREE)
            .map(Lsn)
            .collect();
        live.sort_unstable();
        live.dedup();
        LiveSnapshots { newest, live }
    }
}

/// Slots between those that two threads try first: room for a thread that holds more than one snapshot.
const SLOTS_PER_THREAD: usize = 2;

/// A snapshot in use: nothing that it sees is collected until it is dropped.
pub(crate) struct Snapshot {
    slot: Arc<Slot>,
    lsn: Lsn,
}

impl Snapshot {
    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.slot.0.store(FREE, Ordering::Release);
    }
}

/// The snapshots that were in use at some moment, and all later ones: what versions are kept for. Going by an old one
/// is safe, and keeps more than is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveSnapshots {
    newest: Lsn,
    /// Ascending.
    live: Vec<Lsn>,
}

impl LiveSnapshots {
    /// Whether any snapshot may see a version that was current from `created` until `ended`.
    pub(crate) fn need(&self, created: Lsn, ended: Lsn) -> bool {
        if ended > self.newest {
            return true;
        }
        let first = self.live.partition_point(|&lsn| lsn < created);
        self.live.get(first).is_some_and(|&lsn| lsn < ended)
    }

    /// The snapshot that keeps most: the oldest one in use, or the next to be taken.
    pub(crate) fn oldest(&self) -> Lsn {
        let first = self.live.first().copied().unwrap_or(self.newest);
        // Those in use may all be ahead of the clock.
        first.min(self.newest)
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_the_newest_timestamp_and_stays_what_it_is() {
        let registry = Arc::new(SnapshotRegistry::new(Lsn(5)));
        let old = registry.take().unwrap();
        registry.advance_to(Lsn(9));
        registry.advance_to(Lsn(7));
        let new = registry.take().unwrap();
        assert_eq!((old.lsn(), new.lsn()), (Lsn(5), Lsn(9)));
        assert_eq!(registry.live().live, [Lsn(5), Lsn(9)]);
        drop(old);
        assert_eq!(registry.live().live, [Lsn(9)]);
        assert_eq!(registry.live().oldest(), Lsn(9));
    }

    #[test]
    fn versions_between_two_snapshots_are_needed_by_nobody() {
        let live = LiveSnapshots {
            newest: Lsn(100),
            live: vec![Lsn(10), Lsn(50)],
        };
        assert!(live.need(Lsn(0), Lsn(11)));
        assert!(live.need(Lsn(10), Lsn(20)));
        assert!(!live.need(Lsn(0), Lsn(10)));
        assert!(!live.need(Lsn(11), Lsn(50)));
        assert!(live.need(Lsn(40), Lsn(60)));
        assert!(!live.need(Lsn(51), Lsn(100)));
        assert!(live.need(Lsn(51), Lsn(101)));
    }

    #[test]
    fn a_snapshot_ahead_of_the_clock_is_not_older_than_it() {
        let registry = Arc::new(SnapshotRegistry::new(Lsn(5)));
        let ahead = registry.take_ahead(Lsn(8)).unwrap().unwrap();
        assert_eq!((ahead.lsn(), registry.newest()), (Lsn(8), Lsn(5)));
        let live = registry.live();
        assert_eq!(live.oldest(), Lsn(5));
        assert!(live.need(Lsn(5), Lsn(6)) && live.need(Lsn(7), Lsn(9)));
        registry.advance_to(Lsn(9));
        let live = registry.live();
        assert!(live.need(Lsn(7), Lsn(9)) && !live.need(Lsn(5), Lsn(6)));
        assert!(registry.take_ahead(Lsn(8)).unwrap().is_none());
        assert_eq!(registry.live().live, [Lsn(8)]);
    }

    #[test]
    fn there_is_a_limit_to_snapshots() {
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let all: Vec<_> = (0..MAX_SNAPSHOTS)
            .map(|_| registry.take().unwrap())
            .collect();
        assert!(matches!(
            registry.take(),
            Err(StorageError::TooManySnapshots { .. })
        ));
        drop(all);
        registry.take().unwrap();
    }
}
