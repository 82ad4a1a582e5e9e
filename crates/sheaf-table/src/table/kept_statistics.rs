//! The statistics of a table, in memory for as long as there is room.
//!
//! ```text
//!   never analyzed ---ANALYZE---> read <---a plan asks--- written
//!                                   \-----room is needed----^
//! ```

use std::sync::Arc;

use sheaf_memory::Share;
use sheaf_storage::sync::Mutex;
use sheaf_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Result;
use crate::statistics::TableStatistics;
use crate::table::catalog_memory::{CatalogMemory, Leaves};

/// See the module's comment.
#[derive(Default)]
pub(crate) struct KeptStatistics {
    state: Mutex<State>,
    /// Somebody has asked for them since it was last looked at.
    is_used: AtomicBool,
    /// An analysis is about to replace those in the catalog tree.
    is_replaced: AtomicBool,
    /// The rows of the analysis.
    rows: AtomicU64,
}

#[derive(Default)]
enum State {
    #[default]
    NeverAnalyzed,
    /// Only in the catalog tree.
    Written,
    Read {
        statistics: Arc<TableStatistics>,
        _share: Share,
    },
}

impl KeptStatistics {
    /// The catalog tree has statistics of so many rows.
    pub(crate) fn note_written(&self, rows: u64) {
        self.rows.store(rows, Ordering::Relaxed);
        *self.state.lock() = State::Written;
    }

    /// How many rows there were when the table was analyzed; 0: never.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The statistics; `read` reads those of the catalog tree. Without them plans may be bad, but right: what cannot be
    /// read is no error. `None`: never analyzed.
    pub(crate) fn get(
        self: &Arc<Self>,
        memory: &CatalogMemory,
        read: impl FnOnce() -> Result<Option<TableStatistics>>,
    ) -> Option<Arc<TableStatistics>> {
        let mut state = self.state.lock();
        match &*state {
            State::NeverAnalyzed => return None,
            State::Read { statistics, .. } => {
                self.is_used.store(true, Ordering::Relaxed);
                return Some(Arc::clone(statistics));
            }
            State::Written => {}
        }
        let statistics = match read() {
            Ok(statistics) => Arc::new(statistics?),
            Err(error) => {
                tracing::warn!(%error, "statistics cannot be read: the table must be analyzed again");
                return None;
            }
        };
        *state = Self::read_state(memory, &statistics);
        memory.note_read(self);
        Some(statistics)
    }

    /// From now on they do not leave memory, and are there if they can be.
    fn pin(self: &Arc<Self>, memory: &CatalogMemory, earlier: Option<Arc<TableStatistics>>) {
        let mut state = self.state.lock();
        self.is_replaced.store(true, Ordering::Release);
        if let (State::Written, Some(earlier)) = (&*state, earlier) {
            *state = Self::read_state(memory, &earlier);
            memory.note_read(self);
        }
    }

    fn read_state(memory: &CatalogMemory, statistics: &Arc<TableStatistics>) -> State {
        State::Read {
            _share: memory.room_for_statistics(statistics.memory_bytes()),
            statistics: Arc::clone(statistics),
        }
    }

    /// `write` puts other statistics into the catalog tree. Nobody reads them from there meanwhile: the `earlier` ones
    /// stay in memory.
    pub(crate) fn replace(
        self: &Arc<Self>,
        memory: &CatalogMemory,
        (earlier, statistics): (Option<Arc<TableStatistics>>, TableStatistics),
        write: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.pin(memory, earlier);
        let written = write();
        self.is_replaced.store(false, Ordering::Release);
        written?;
        self.rows.store(statistics.rows, Ordering::Relaxed);
        let mut state = self.state.lock();
        let is_known = matches!(*state, State::Read { .. });
        // The old ones give their place first.
        *state = State::Written;
        *state = Self::read_state(memory, &Arc::new(statistics));
        if !is_known {
            memory.note_read(self);
        }
        Ok(())
    }
}

impl Leaves for KeptStatistics {
    fn leave(&self) -> bool {
        if self.is_used.swap(false, Ordering::Relaxed) {
            return false;
        }
        match self.state.try_lock() {
            // It is pinned under the same lock.
            Some(mut state) if !self.is_replaced.load(Ordering::Acquire) => {
                *state = State::Written;
                true
            }
            _ => false,
        }
    }
}
