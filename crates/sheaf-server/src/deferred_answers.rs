//! Answers that are held back until the log is on the disk.
//!
//! A commit waits for the log: a hundred microseconds in which its thread does nothing. If it were held meanwhile,
//! another one would have to take its place. With many connections that commit, the statements would run on dozens of
//! threads by turns, none of which finds its stack in the processor's caches. So a connection of the pool
//! (`shared_threads.rs`) whose statement has committed goes to one thread, with its answer still in its send buffer:
//!
//! ```text
//!   workers   --push-->  | c1 c2 c3 | --take all-->  c1: write the log, which serves c2 and c3, too; send all answers
//!                        | c4 c5    |                 meanwhile these gather, and are served by the next write
//! ```
//!
//! What is answered goes back to waiting for its client. The thread never waits for a client: an answer that does not
//! fit into what the client is ready to take is left to a worker. Nor does it purge much for others: a connection that
//! has deleted many rows waits for the log on its own thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::connection::Connection;

/// A connection whose statement has committed, and whose answer waits.
pub(crate) struct Held {
    /// The connection's number in the pool.
    pub(crate) number: usize,
    pub(crate) connection: Box<Connection>,
}

/// See the module's comment.
#[derive(Default)]
pub(crate) struct DeferredAnswers {
    state: Mutex<State>,
    come: Condvar,
}

#[derive(Default)]
struct State {
    /// No more than there are connections in the pool.
    waiting: Vec<Held>,
    /// Their thread sleeps. A wake-up is a system call even if no thread waits.
    sleeps: bool,
    is_over: bool,
}

impl DeferredAnswers {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What is behind the lock is valid after every statement, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives it to the thread; back if there is none any more.
    pub(crate) fn push(&self, held: Held) -> Option<Held> {
        let mut state = self.lock();
        if state.is_over {
            return Some(held);
        }
        state.waiting.push(held);
        if std::mem::take(&mut state.sleeps) {
            self.come.notify_one();
        }
        None
    }

    /// Waits for connections and moves all of them into `batch`, which is empty. False: there will be none any more.
    pub(crate) fn take(&self, batch: &mut Vec<Held>) -> bool {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.is_over {
            state.sleeps = true;
            state = self
                .come
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.waiting, batch);
        !batch.is_empty()
    }

    /// What is there is still taken.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.come.notify_all();
    }
}
