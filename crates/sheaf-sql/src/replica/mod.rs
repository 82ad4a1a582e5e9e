//! The server as a replica: it receives another server's binary log and applies it.
//!
//! ```text
//!   source ====> link ====> receiver ----> queue ----> applier ----> rows, DDL  +  position
//!           (of the server)  I/O thread    in memory   SQL thread    one transaction
//! ```
//!
//! **The position** is in the catalog, written by the transaction that makes the changes in front of it: the rows of a
//! transaction, or the change of the catalog that a DDL statement makes. So a crash at any moment loses nothing and
//! doubles nothing, and there is one sync for each transaction. There is no relay log: what has been received and not
//! applied is received again.
//!
//! **The queue** has a limit in bytes. When it is full, the receiver does not read, and the source waits. After a
//! connection has ended the applier takes the whole transactions that are left. Then the receiver begins at the applied
//! position with an empty queue. So it does when the applier begins.
//!
//! **Rows** are changed below SQL ([`apply_rows`]). Statements run as text in the applier's session, with what the
//! event says of the session that ran them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`source`] | how to reach the source, how far its changes have come, and where that is kept |
//! | [`link`] | what the server brings: a connection to the source |
//! | [`queue`] | events between the two threads |
//! | [`receiver`] | the I/O thread |
//! | [`applier`] | the SQL thread: transactions and statements |
//! | [`apply_rows`] | rows are found and changed |
//! | [`state`] | what the threads do, as others see it |
//! | [`control`] | CHANGE REPLICATION SOURCE TO, START, STOP and RESET REPLICA |

mod applier;
mod apply_rows;
mod control;
pub mod link;
mod queue;
mod receiver;
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
    open_link: OnceLock<Box<OpenLink>>,
    pub(crate) state: ReplicaState,
    queue: EventQueue,
    /// Statements about the replica come one after the other.
    control: Mutex<()>,
    receiver: ReplicaThread,
    applier: ReplicaThread,
    /// Interrupts what the applier waits for.
    interrupt_applier: Mutex<Option<Interrupt>>,
}

type Interrupt = Box<dyn Fn() + Send>;

/// A thread that can be asked to stop.
#[derive(Default)]
pub(crate) struct ReplicaThread {
    stops: Arc<AtomicBool>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl ReplicaThread {
    /// It has been started and has not ended by itself.
    pub(crate) fn is_running(&self) -> bool {
        let handle = lock(&self.handle);
        handle.as_ref().is_some_and(|handle| !handle.is_finished())
    }

    /// Asks the thread to stop; [`Self::join`] waits.
    fn ask_to_stop(&self) {
        self.stops.store(true, Ordering::Release);
    }

    fn join(&self) {
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

    fn on_stop_applying(&self, interrupt: Interrupt) {
        *lock(&self.interrupt_applier) = Some(interrupt);
    }

    /// The applier was asked to stop: it does not wait for locks of rows any longer.
    fn stop_applying(&self) {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
