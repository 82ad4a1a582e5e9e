//! The sums of a session, which others may read. Its own thread is the only one that adds to them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::StatementEvent;
use super::digest_name::DigestName;
use super::digest_sums::DigestSums;
use super::latency_histogram::LatencyHistogram;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct LocalSums {
    slots: Mutex<Vec<Slot>>,
}

pub(super) struct Slot {
    /// `None`: all digests that have no place.
    pub(super) name: Option<Arc<DigestName>>,
    pub(super) sums: DigestSums,
}

impl LocalSums {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn for_each(&self, mut visit: impl FnMut(Option<&Arc<DigestName>>, &DigestSums)) {
        for slot in self.lock().iter() {
            visit(slot.name.as_ref(), &slot.sums);
        }
    }

    pub(super) fn clear(&self) {
        for slot in self.lock().iter_mut() {
            slot.sums = DigestSums::default();
        }
    }

    pub(super) fn clear_times(&self) {
        for slot in self.lock().iter_mut() {
            slot.sums.times = LatencyHistogram::default();
        }
    }

    /// `sample` writes the statement to a text.
    pub(crate) fn add(
        &self,
        slot: usize,
        event: &StatementEvent,
        sample: impl FnOnce(&mut String),
    ) {
        if let Some(Slot { sums, .. }) = self.lock().get_mut(slot) {
            sums.add(event, sample);
        }
    }
}
