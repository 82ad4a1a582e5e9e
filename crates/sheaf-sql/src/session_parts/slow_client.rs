//! What a statement does whose client does not read its rows.
//!
//! It waits, and holds what its plan has: batches of rows, tables of joins, its part of the query memory. Nobody minds
//! until others want that memory. Then its rows go to a temporary file, so that it comes to its end and lets go:
//!
//! ```text
//!   client reads          rows -> socket
//!   it does not           rows wait, and the statement hears KILL, limits of time, and an end of the memory
//!   others want memory    rows -> file, at most so many bytes; the client gets them from there
//!   the file is full      the statement ends with error 1041
//!   one row is long       what is left of it goes to the file, when the client has taken nothing for a moment
//! ```
//!
//! A statement that holds little waits in any case: others would gain nothing.

use std::sync::Arc;
use std::time::Duration;

use sheaf_exec::QueryRuntime;
use sheaf_memory::crowd::Crowd;
use sheaf_memory::process;
use sheaf_storage::{TempFile, TempSpace};

use crate::error::SqlError;
use crate::session_parts::handle::SessionHandle;

/// A client that has taken nothing for so long does not read.
const PATIENCE: Duration = Duration::from_secs(1);
/// What is left of a long row is in memory for so long while its client takes nothing.
const LONG_ROW_PATIENCE: Duration = Duration::from_millis(100);
/// Rows of one statement that lie in a temporary file, at most; fewer where `max_temp_bytes` is used up.
const MOST_KEPT_BYTES: u64 = 256 << 20;

/// What one connection asks when its client does not read.
pub struct SlowClient {
    handle: Arc<SessionHandle>,
    runtime: Arc<QueryRuntime>,
    crowd: Arc<Crowd>,
    temp_space: Arc<TempSpace>,
}

impl SlowClient {
    pub(crate) fn new(
        handle: Arc<SessionHandle>,
        runtime: &Arc<QueryRuntime>,
        crowd: &Arc<Crowd>,
    ) -> SlowClient {
        SlowClient {
            handle,
            runtime: Arc::clone(runtime),
            crowd: Arc::clone(crowd),
            temp_space: Arc::clone(&runtime.options().temp_space),
        }
    }

    /// The statement's client takes nothing now.
    ///
    /// # Errors
    /// The statement shall stop: it is killed, its time is over, or the process has too much memory.
    pub fn check(&self) -> Result<(), SqlError> {
        match self.handle.memory().is_running() && self.handle.cancel_flag().is_cancelled() {
            true => Err(SqlError::query_interrupted()),
            false => Ok(()),
        }
    }

    /// The statement has waited so long for its client. True: it is to make room for others.
    pub fn waits(&self, waited: Duration) -> bool {
        let memory = self.handle.memory();
        if !memory.is_running() {
            return false;
        }
        memory.set_stalled(true);
        waited >= PATIENCE
            && memory.holds_much()
            && self.runtime.memory().waiting() + self.crowd.waiting() > 0
    }

    /// Whether what is left of a long row is to leave the memory after its client has taken nothing for so long.
    pub fn shall_put_aside(&self, waited: Duration) -> bool {
        waited >= LONG_ROW_PATIENCE || process::was_pressed()
    }

    /// Its client reads again.
    pub fn goes_on(&self) {
        self.handle.memory().set_stalled(false);
    }

    /// A file for rows that the client does not read.
    ///
    /// # Errors
    /// What [`Self::no_room`] says: it cannot be made.
    pub fn file(&self) -> Result<TempFile, SqlError> {
        self.temp_space.create("rows").map_err(|error| {
            tracing::warn!(%error, "rows that a client does not read cannot be kept");
            Self::no_room()
        })
    }

    /// Whether so many bytes more may be in the file.
    pub fn may_keep(&self, file: &TempFile, bytes: usize) -> bool {
        file.length() + bytes as u64 <= MOST_KEPT_BYTES
    }

    /// The statement ends because others wait for its memory.
    pub fn no_room() -> SqlError {
        SqlError::out_of_memory(
            "other statements wait for memory, and the client of this one does not read its rows; read them, or raise \
             --memory",
        )
    }
}
