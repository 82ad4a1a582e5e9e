//! The shared holders of a table's lock, counted in parts, so that [readers do not contend](super).

use sheaf_storage::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::NO_SESSION;

/// Parts of the count of shared holders.
pub(super) const SHARDS: usize = 16;
/// Holders of a shard whose sessions are known: as many as have room in the cache line of the count.
const NAMED_OF_SHARD: usize = 7;

/// Some of the shared holders.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Shard {
    pub(super) holders: AtomicUsize,
    /// The sessions of some of them, [`NO_SESSION`] where there is room. They are only shown.
    pub(super) sessions: [AtomicU64; NAMED_OF_SHARD],
}

impl Shard {
    /// Notes the session of a holder. Returns its place from 1 on; 0: it is not noted.
    pub(super) fn note(&self, session: u64) -> usize {
        let take = |place: &AtomicU64| {
            let (free, relaxed) = (NO_SESSION, Ordering::Relaxed);
            place.load(relaxed) == free
                && place
                    .compare_exchange(free, session, relaxed, relaxed)
                    .is_ok()
        };
        match session {
            NO_SESSION => 0,
            _ => self.sessions.iter().position(take).map_or(0, |at| at + 1),
        }
    }
}

/// A shared holder's shard, and its [place](Shard::note) there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered {
    pub(super) shard: usize,
    pub(super) place: usize,
}
