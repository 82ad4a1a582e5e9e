//! The idle checkpointer: calls the file clean when nothing has changed for a while.
//!
//! Without a log, only a checkpoint makes the file on disk usable ([`crate::page_store`]). So that a process that is
//! killed while it merely waits or reads leaves a usable file behind, a checkpoint is made once the storage has been
//! idle from one look to the next.
//!
//! The work is a step, [`Storage::idle_checkpoint_step`]; the thread here only drives it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Result, StorageError};
use crate::storage::Storage;
use crate::sync::{Condvar, Mutex, thread};

/// Time from one look to the next.
const INTERVAL: Duration = Duration::from_millis(500);

/// The thread that drives the steps. Stops when dropped.
pub(crate) struct IdleCheckpointer {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<thread::JoinHandle<()>>,
}

impl IdleCheckpointer {
    pub(crate) fn start(storage: &Arc<Storage>) -> Result<IdleCheckpointer> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (stopped, storage) = (stop.clone(), Arc::downgrade(storage));
        let thread = thread::Builder::new()
            .name("sheaf-checkpoint".into())
            .spawn(move || drive(&stopped, &storage))
            .map_err(|error| StorageError::io("start", "the checkpointer's thread", 0, error))?;
        Ok(IdleCheckpointer {
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
        match storage.idle_checkpoint_step(seen) {
            Ok(changes) => seen = Some(changes),
            // Whoever changes or closes the storage gets to know as well.
            Err(error) => tracing::debug!("no idle checkpoint: {error}"),
        }
    }
}

impl Drop for IdleCheckpointer {
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
