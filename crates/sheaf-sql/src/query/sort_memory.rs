//! Memory for the sorts of bulk loads and index builds.
//!
//! It is taken from the pool that running plans share, so that both together stay within the engine's query memory.
//! A load asks for half of the pool and makes do with less: its sort then spills more often. Beside a query that keeps
//! rows itself, it asks for a sixteenth. CREATE TABLE ... SELECT ... GROUP BY of 300,000 groups failed at 64M, because
//! the load had half of the memory before the first row came.

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

/// Parts of the query memory: alone, and beside a query that keeps rows.
const SHARE_ALONE: usize = 2;
const SHARE_BESIDE_QUERY: usize = 16;

impl Session {
    /// Reserves memory for one sort. Error 1041 if running statements hold all of it.
    pub(crate) fn sort_memory(&mut self, beside_query: bool) -> Result<SortMemory> {
        let task = self.task_context();
        let pool = &task.runtime_env().memory_pool;
        let reservation = MemoryConsumer::new("sort of a load or index build").register(pool);
        let share = match beside_query {
            true => SHARE_BESIDE_QUERY,
            false => SHARE_ALONE,
        };
        let mut bytes = (self.engine.memory().query_bytes / share).max(MIN_SORT_BYTES);
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
