//! The collector: drops versions that no snapshot needs any more, and ghosts that were left behind.
//!
//! A commit does not clean up behind itself; it would have to visit every leaf again. The collector goes through all
//! version tables at intervals. It gathers the snapshots in use once, purges every table by them, and removes tables
//! that became empty, with their bits in the page table. It needs no page for that, also not the evicted ones. It
//! visits a leaf only where a transaction deleted entries and left the ghosts there, to take them off it.
//!
//! The work is a step, [`Storage::collect_versions_step`]; the thread here only drives it.

use std::sync::Arc;
use std::time::Duration;

use crate::background::BackgroundWork;
use crate::error::Result;
use crate::storage::Storage;
use crate::sync;

/// Least time from one sweep to the next. At a hundred thousand changes a second, some thousand versions wait for a
/// sweep.
const INTERVAL: Duration = Duration::from_millis(50);

/// The collector rests this many times as long as a sweep took: while an old snapshot keeps many versions, sweeps are
/// long and find little, and take a twentieth of a core at most.
const REST_PER_WORK: u32 = 19;

/// Starts the thread that collects.
pub(crate) fn start_collector(storage: &Arc<Storage>) -> Result<BackgroundWork> {
    BackgroundWork::start("sheaf-collector", storage, INTERVAL, |step| {
        let started_ns = sync::monotonic_ns();
        if let Err(error) = step.storage.collect_versions_step() {
            // Garbage stays for a later sweep or visitor; a user of the pages learns what is wrong with them.
            tracing::debug!("garbage could not be collected: {error}");
        }
        let work = Duration::from_nanos(sync::monotonic_ns() - started_ns);
        INTERVAL.max(work * REST_PER_WORK)
    })
}
