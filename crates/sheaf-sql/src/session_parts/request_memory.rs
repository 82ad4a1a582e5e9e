//! The memory of long requests, from their first byte on.
//!
//! A request is in memory before there is a statement that could be stopped: its packet, then its text, then the values
//! of its literals. With `--memory 64M`, 40 clients that sent a text of 1.9 MB each at the same time had the process
//! take 313 MiB. So a request that is not short takes a share of the engine's `long_statement_memory` before its packet
//! is read, and waits where others have it. It gives the share back when it is answered.

use std::sync::Arc;
use std::time::Duration;

use sheaf_exec::QueryRuntime;
use sheaf_memory::{Budget, Share};

use crate::session_parts::handle::SessionHandle;

/// Requests up to this long take no share: so much of each connection is nothing beside its other memory.
const SHORT_REQUEST_BYTES: usize = 16 << 10;
/// What a request takes, in times its length: the packet, the text or value of a literal in the syntax tree, in the
/// expression, and in the result. Syntax trees that are many times as large are measured when they grow.
const COPIES: usize = 4;

/// The longest request that is read, in bytes, whatever `max_allowed_packet` says: its copies are three quarters of the
/// memory of which requests may have an eighth.
fn longest(limit_bytes: usize) -> usize {
    limit_bytes.saturating_add(limit_bytes / 2)
}

/// What one connection takes its shares of.
pub struct RequestMemory {
    budget: Arc<Budget>,
    runtime: Arc<QueryRuntime>,
    handle: Arc<SessionHandle>,
    share: Option<Share>,
    holds_locks: bool,
}

impl RequestMemory {
    pub(crate) fn new(
        budget: &Arc<Budget>,
        runtime: &Arc<QueryRuntime>,
        handle: Arc<SessionHandle>,
    ) -> RequestMemory {
        RequestMemory {
            budget: Arc::clone(budget),
            runtime: Arc::clone(runtime),
            handle,
            share: None,
            holds_locks: false,
        }
    }

    /// Whether the session is in a transaction. A request that waited for memory could wait for one that waits for its
    /// locks, and nobody would see the circle.
    pub fn set_holds_locks(&mut self, holds_locks: bool) {
        self.holds_locks = holds_locks;
    }

    /// Takes what a request of so many bytes needs. It waits, up to `query_memory_wait_timeout`, where others have it.
    /// False: they still have it, it is too long for the memory, or the session is to end. A request that comes in
    /// several frames asks for each, with the bytes of all so far.
    pub fn take(&mut self, request_bytes: usize) -> bool {
        if request_bytes <= SHORT_REQUEST_BYTES {
            return true;
        }
        if request_bytes > longest(self.budget.limit_bytes()) {
            return false;
        }
        let wanted = request_bytes
            .saturating_mul(COPIES)
            .min(self.budget.limit_bytes());
        if let Some(share) = &mut self.share {
            // It does not wait for others that may wait for it.
            return share.resize(wanted);
        }
        self.share = self.budget.take(wanted, Duration::ZERO, || false);
        if self.share.is_none() && !self.holds_locks {
            self.share = self.wait_for(wanted);
        }
        self.share.is_some() || self.holds_locks
    }

    fn wait_for(&self, wanted: usize) -> Option<Share> {
        let most = self.runtime.memory().wait_timeout();
        let is_over = || self.handle.is_killed();
        self.handle.memory().set_waiting(true);
        let share = sheaf_storage::sync::waiting(|| self.budget.take(wanted, most, is_over));
        self.handle.memory().set_waiting(false);
        share
    }

    /// The request is answered, and its buffer is gone.
    pub fn give_back(&mut self) {
        self.share = None;
    }
}
