//! What a replica is: how its source is reached, events that wait, and what its threads do.
//!
//! None of it knows the engine, which holds it, or statements. What receives events and applies them stands in
//! [`replica`](crate::replica).
//!
//! | file | what it holds |
//! |---|---|
//! | [`filter`] | which changes are applied |
//! | [`kept_lines`] | texts in what is kept |
//! | [`source`] | how to reach the source, how far its changes have come, and where that is kept |
//! | [`link`] | what the server brings: a connection to the source |
//! | [`queue`] | events between the two threads |
//! | [`state`] | what the threads do, as others see it |

pub(crate) mod filter;
mod kept_lines;
pub mod link;
pub(crate) mod queue;
pub(crate) mod source;
pub(crate) mod state;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use link::OpenLink;
use queue::EventQueue;
use source::{KeptSource, Password};
use state::ReplicaState;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Replica {
    /// Empty: the program around the engine reaches no other servers.
    pub(crate) open_link: OnceLock<Box<OpenLink>>,
    pub(crate) state: ReplicaState,
    pub(crate) queue: EventQueue,
    /// Statements about the replica come one after the other.
    pub(crate) control: Mutex<()>,
    pub(crate) receiver: ReplicaThread,
    pub(crate) applier: ReplicaThread,
    /// Interrupts what the applier waits for.
    interrupt_applier: Mutex<Option<Interrupt>>,
}

pub(crate) type Interrupt = Box<dyn Fn() + Send>;

/// A thread that can be asked to stop.
#[derive(Default)]
pub(crate) struct ReplicaThread {
    pub(crate) stops: Arc<AtomicBool>,
    pub(crate) handle: Mutex<Option<JoinHandle<()>>>,
}

impl ReplicaThread {
    /// It has been started and has not ended by itself.
    pub(crate) fn is_running(&self) -> bool {
        let handle = lock(&self.handle);
        handle.as_ref().is_some_and(|handle| !handle.is_finished())
    }

    /// Asks the thread to stop; [`Self::join`] waits.
    pub(crate) fn ask_to_stop(&self) {
        self.stops.store(true, Ordering::Release);
    }

    pub(crate) fn join(&self) {
        let handle = lock(&self.handle).take();
        if let Some(handle) = handle
            && handle.thread().id() != std::thread::current().id()
            && handle.join().is_err()
        {
            tracing::error!("a thread of the replica has panicked");
        }
    }
}

impl Replica {
    /// The program around the engine says how a source is reached. The first one stays.
    pub(crate) fn reaches_sources_by(&self, open_link: Box<OpenLink>) {
        let _ = self.open_link.set(open_link);
    }

    pub(crate) fn on_stop_applying(&self, interrupt: Interrupt) {
        *lock(&self.interrupt_applier) = Some(interrupt);
    }

    /// The applier was asked to stop: it does not wait for locks of rows any longer.
    pub(crate) fn stop_applying(&self) {
        if let Some(interrupt) = &*lock(&self.interrupt_applier) {
            interrupt();
        }
    }

    /// Whether the receiver and the applier run.
    pub(crate) fn threads_running(&self) -> (bool, bool) {
        (self.receiver.is_running(), self.applier.is_running())
    }

    /// Bytes of events that wait to be applied.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.queue.bytes() as u64
    }

    /// Stops both threads for good.
    pub(crate) fn close(&self) {
        self.receiver.ask_to_stop();
        self.applier.ask_to_stop();
        self.stop_applying();
        self.queue.wake();
        self.receiver.join();
        self.applier.join();
        // It has the session.
        *lock(&self.interrupt_applier) = None;
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is kept of the source, at start.
pub(crate) fn read_kept(
    catalog: &sheaf_table::Catalog,
    directory: &Path,
) -> crate::error::Result<Option<(KeptSource, Password)>> {
    match catalog.replication()? {
        None => Ok(None),
        Some(kept) => Ok(Some((
            KeptSource::read(&kept)?,
            Password::read_file(directory)?,
        ))),
    }
}
