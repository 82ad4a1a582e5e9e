//! Background work: a thread that takes a step of something at intervals.
//!
//! The work itself is a step that anybody may take, so that tests and simulations take it when they choose; the thread
//! here only drives it. It holds the storage only during a step, so the storage's last owner may drop it at any time.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Result, StorageError};
use crate::storage::Storage;
use crate::sync::{Condvar, Mutex, thread};

/// The thread that drives the steps. Stops when dropped, after the step at work.
pub(crate) struct BackgroundWork {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<thread::JoinHandle<()>>,
}

impl BackgroundWork {
    /// Takes a step every `interval`.
    pub(crate) fn start(
        name: &'static str,
        storage: &Arc<Storage>,
        interval: Duration,
        step: impl FnMut(&Storage) + Send + 'static,
    ) -> Result<BackgroundWork> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (stopped, storage) = (stop.clone(), Arc::downgrade(storage));
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(move || drive(&stopped, &storage, interval, step))
            .map_err(|error| StorageError::io("start of a thread", name, 0, error))?;
        Ok(BackgroundWork {
            stop,
            thread: Some(thread),
        })
    }
}

fn drive(
    stop: &(Mutex<bool>, Condvar),
    storage: &Weak<Storage>,
    interval: Duration,
    mut step: impl FnMut(&Storage),
) {
    loop {
        let stopped = stop.0.lock();
        if *stopped || *stop.1.wait_timeout(stopped, interval) {
            return;
        }
        let Some(storage) = storage.upgrade() else {
            return;
        };
        step(&storage);
    }
}

impl Drop for BackgroundWork {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // The step may hold the last reference to the storage: then this is that very thread.
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("a background thread panicked");
            }
        }
    }
}
