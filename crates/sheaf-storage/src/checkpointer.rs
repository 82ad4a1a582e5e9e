//! The checkpointer: writes dirty pages now and then, so that recovery has little to do and the log stays short.
//!
//! A checkpoint is due when the log has grown by a share of its limit since the last one, and when nothing has changed
//! for a while, so that the next start after a kill finds nothing to recover. The same thread flushes the log when
//! commits do not wait for it.
//!
//! The work is a step, [`Storage::checkpoint_step`]; the thread here only drives it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Result, StorageError};
use crate::storage::Storage;
use crate::sync::{Condvar, Mutex, thread};

/// Time from one look to the next.
const INTERVAL: Duration = Duration::from_millis(500);

/// The thread that drives the steps. Stops when dropped.
pub(crate) struct Checkpointer {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Checkpointer {
    pub(crate) fn start(storage: &Arc<Storage>) -> Result<Checkpointer> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (stopped, storage) = (stop.clone(), Arc::downgrade(storage));
        let thread = thread::Builder::new()
            .name("sheaf-checkpoint".into())
            .spawn(move || drive(&stopped, &storage))
            .map_err(|error| StorageError::io("start", "the checkpointer's thread", 0, error))?;
        Ok(Checkpointer {
            stop,
            thread: Some(thread),
        })
    }
}

fn drive(stop: &(Mutex<bool>, Condvar), storage: &Weak<Storage>) {
    let mut seen = None;
    loop {
        let stopped = stop.0.lock();
        if *stopped {
            return;
        }
        if *stop.1.wait_timeout(stopped, INTERVAL) {
            return;
        }
        let Some(storage) = storage.upgrade() else {
            return;
        };
        match storage.checkpoint_step(seen) {
            Ok(changes) => seen = Some(changes),
            // Whoever changes or closes the storage gets to know as well.
            Err(error) => tracing::debug!("no checkpoint: {error}"),
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // The step may hold the last reference to the storage: then this is that very thread.
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("the checkpointer's thread panicked");
            }
        }
    }
}
