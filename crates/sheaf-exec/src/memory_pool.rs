//! The memory that all running plans share.
//!
//! Operators that can spill divide fairly what the others leave, whether all of them want their share or not:
//!
//! ```text
//!   128 MiB, 26 of them for hash tables, 12 sorts and aggregates   ->   8.5 MiB for each
//! ```
//!
//! That may be less than one batch of wide rows takes, and an operator that has nothing to spill yet can only fail. So one
//! that has little may have more than its share, as long as there is any: up to an [eighth](LEAST_SHARE) of all.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use datafusion_common::Result;
use datafusion_execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// Part of the pool that an operator gets while there is room, however many share it.
const LEAST_SHARE: usize = 8;

/// See the module's comment.
#[derive(Debug)]
pub(crate) struct QueryMemoryPool {
    fair: FairSpillPool,
    pool_bytes: usize,
    /// Held while something is given beyond a fair share, so that all of it together stays within the pool.
    beyond_share: Mutex<()>,
}

impl QueryMemoryPool {
    pub(crate) fn new(pool_bytes: usize) -> QueryMemoryPool {
        QueryMemoryPool {
            fair: FairSpillPool::new(pool_bytes),
            pool_bytes,
            beyond_share: Mutex::new(()),
        }
    }
}

impl MemoryPool for QueryMemoryPool {
    fn name(&self) -> &str {
        "query memory"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.fair.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.fair.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.fair.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.fair.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let Err(error) = self.fair.try_grow(reservation, additional) else {
            return Ok(());
        };
        let size = reservation.size().saturating_add(additional);
        if !reservation.consumer().can_spill() || size > self.pool_bytes / LEAST_SHARE {
            return Err(error);
        }
        let _beyond_share = self
            .beyond_share
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match self.fair.reserved().saturating_add(additional) <= self.pool_bytes {
            true => {
                self.fair.grow(reservation, additional);
                Ok(())
            }
            false => Err(error),
        }
    }

    fn reserved(&self) -> usize {
        self.fair.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.pool_bytes)
    }
}

impl fmt::Display for QueryMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(pool_size: {} bytes)", self.name(), self.pool_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn spilling(pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
        MemoryConsumer::new("spilling")
            .with_can_spill(true)
            .register(pool)
    }

    #[test]
    fn who_has_little_gets_more_than_a_fair_share_while_there_is_room() {
        let pool: Arc<dyn MemoryPool> = Arc::new(QueryMemoryPool::new(1600));
        let idle: Vec<MemoryReservation> = (0..15).map(|_| spilling(&pool)).collect();
        let first = spilling(&pool);
        // A sixteenth would be its share.
        first.try_grow(200).expect("there is room");
        assert!(first.try_grow(1).is_err());
        let held = MemoryConsumer::new("held").register(&pool);
        held.try_grow(1300).expect("there is room");
        assert!(idle[0].try_grow(101).is_err());
        assert_eq!(pool.reserved(), 1500);
        drop(held);
        idle[0].try_grow(101).expect("there is room again");
    }
}
