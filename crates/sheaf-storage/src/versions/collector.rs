//! The collector: drops versions that nobody needs any more, and ghosts that were left behind.
//!
//! A commit does not clean up behind itself; it would have to visit every leaf again. The collector goes through all
//! version tables at intervals. It gathers the snapshots in use once, purges every table by them, and takes away tables
//! that became empty, with their bits in the page table. It needs no page for that, also not the evicted ones. Only
//! where entries were deleted by somebody who left the ghosts there does it visit the leaf, to take them off it.
//!
//! The work is a step, [`Storage::collect_versions_step`]; the thread here only drives it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Result, StorageError};
use crate::storage::Storage;
use crate::sync::{self, Condvar, Mutex, thread};

/// Least time from one sweep to the next. At a hundred thousand changes a second, some thousand versions wait for a
/// sweep.
const INTERVAL: Duration = Duration::from_millis(50);

/// The collector rests this many times as long as a sweep took: while an old snapshot keeps many versions, sweeps are
/// long and find little, and take a twentieth of a core at most.
const REST_PER_WORK: u32 = 19;

/// The thread that drives the steps. Stops when dropped.
pub(crate) struct VersionCollector {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<thread::JoinHandle<()>>,
}

impl VersionCollector {
    pub(crate) fn start(storage: &Arc<Storage>) -> Result<VersionCollector> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (stopped, storage) = (stop.clone(), Arc::downgrade(storage));
        let thread = thread::Builder::new()
            .name("sheaf-collector".into())
            .spawn(move || drive(&stopped, &storage))
            .map_err(|error| StorageError::io("start", "the collector's thread", 0, error))?;
        Ok(VersionCollector {
            stop,
            thread: Some(thread),
        })
    }
}

fn drive(stop: &(Mutex<bool>, Condvar), storage: &Weak<Storage>) {
    let mut rest = INTERVAL;
    loop {
        let stopped = stop.0.lock();
        if *stopped || *stop.1.wait_timeout(stopped, rest) {
            return;
        }
        let Some(storage) = storage.upgrade() else {
            return;
        };
        let started_ns = sync::monotonic_ns();
        if let Err(error) = storage.collect_versions_step() {
            // Garbage stays for a later sweep or visitor; whoever uses the pages gets to know what is wrong with them.
            tracing::debug!("garbage could not be collected: {error}");
        }
        let work = Duration::from_nanos(sync::monotonic_ns() - started_ns);
        rest = INTERVAL.max(work * REST_PER_WORK);
    }
}

impl Drop for VersionCollector {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // The step may hold the last reference to the storage: then this is that very thread.
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("the collector's thread panicked");
            }
        }
    }
}
