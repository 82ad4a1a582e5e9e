//! The thread of maintenance (`start/maintenance.rs`), and how it is told to end.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The thread, and how it is told to end.
pub(crate) struct Maintenance {
    pub(crate) stop: Arc<Stop>,
    pub(crate) thread: JoinHandle<()>,
}

/// Tells the thread to end.
#[derive(Default)]
pub(crate) struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits for so long; true if it is time to end.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(stopped, time, |stopped| !*stopped);
        let (stopped, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *stopped
    }
}

impl Maintenance {
    /// Ends the thread, after the step that it is in.
    pub(crate) fn end(self) {
        *self
            .stop
            .stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.changed.notify_all();
        // The last one to let an engine go may be the thread itself.
        if self.thread.thread().id() != thread::current().id() {
            // It has logged what went wrong.
            let _ = self.thread.join();
        }
    }
}
