//! Background work: a thread that takes a step of something at intervals.
//!
//! The work itself is a step, and any thread may take it: tests and simulations take it when they choose. The thread
//! here only drives it. It holds the storage only during a step, so the storage's last owner may drop it at any time.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Result, StorageError};
use crate::storage::Storage;
use crate::sync::{Condvar, Mutex, thread};

/// The thread that drives the steps. Stops when dropped, after the step at work.
pub(crate) struct BackgroundWork {
    name: &'static str,
    stop: Arc<Stop>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    is_wanted: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Sleeps for so long; false if the work is to end.
    fn pause(&self, pause: Duration) -> bool {
        let is_wanted = self.is_wanted.lock();
        !*is_wanted && !*self.changed.wait_timeout(is_wanted, pause)
    }
}

/// One step of the work, as the step sees it.
pub(crate) struct Step<'w> {
    pub(crate) storage: &'w Arc<Storage>,
    stop: &'w Stop,
}

impl Step<'_> {
    /// Sleeps for so long in the middle of a step; false if the step is to come to its end.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        // All others may have dropped the storage; they expect it to be closed soon.
        self.stop.pause(pause) && Arc::strong_count(self.storage) > 1
    }
}

impl BackgroundWork {
    /// Takes the first step after `pause`, and each other one after the pause that the step before has returned.
    ///
    /// # Errors
    /// There can be no thread.
    pub(crate) fn start(
        name: &'static str,
        storage: &Arc<Storage>,
        pause: Duration,
        step: impl FnMut(&Step<'_>) -> Duration + Send + 'static,
    ) -> Result<BackgroundWork> {
        let stop = Arc::new(Stop::default());
        let (stopped, storage) = (stop.clone(), Arc::downgrade(storage));
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(move || drive(&stopped, &storage, pause, step))
            .map_err(|error| StorageError::io("start of a thread", name, 0, error))?;
        Ok(BackgroundWork {
            name,
            stop,
            thread: Some(thread),
        })
    }
}

fn drive(
    stop: &Stop,
    storage: &Weak<Storage>,
    mut pause: Duration,
    mut step: impl FnMut(&Step<'_>) -> Duration,
) {
    while stop.pause(pause) {
        let Some(storage) = storage.upgrade() else {
            return;
        };
        pause = step(&Step {
            storage: &storage,
            stop,
        });
    }
}

impl Drop for BackgroundWork {
    fn drop(&mut self) {
        *self.stop.is_wanted.lock() = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The step may hold the last reference to the storage: then this is that very thread.
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("the background thread {} panicked", self.name);
            }
        }
    }
}
