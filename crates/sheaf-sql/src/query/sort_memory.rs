//! Memory for the sorts of bulk loads and index builds.
//!
//! It is taken from the pool that running plans share, so that both together stay within the engine's query memory.
//! A load asks for half of the pool and makes do with less: its sort then spills more often.

use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use sheaf_exec::memory_pool::without_waiting;

use crate::error::{Result, SqlError};
use crate::session::Session;

/// The least that a sort works in.
const MIN_SORT_BYTES: usize = 1 << 20;

/// Reserved memory; dropping it releases it.
pub(crate) struct SortMemory {
    reservation: MemoryReservation,
}

impl SortMemory {
    pub(crate) fn bytes(&self) -> usize {
        self.reservation.size()
    }
}

impl Session {
    /// Reserves memory for one sort. Error 1041 if running statements hold all of it.
    pub(crate) fn sort_memory(&mut self) -> Result<SortMemory> {
        let task = self.task_context();
        let pool = &task.runtime_env().memory_pool;
        let reservation = MemoryConsumer::new("sort of a load or index build").register(pool);
        let mut bytes = self.engine.memory().query_bytes / 2;
        while bytes >= MIN_SORT_BYTES {
            if without_waiting(|| reservation.try_grow(bytes)).is_ok() {
                return Ok(SortMemory { reservation });
            }
            bytes /= 2;
        }
        Err(SqlError::out_of_memory(
            "running statements hold all query memory; try again or raise --memory",
        ))
    }
}
