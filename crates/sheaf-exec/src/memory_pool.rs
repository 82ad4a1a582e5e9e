//! The memory that all running plans share.
//!
//! Operators that can spill divide fairly what the others leave, whether all of them want their share or not:
//!
//! ```text
//!   128 MiB, 26 of them for hash tables, 12 sorts and aggregates   ->   8.5 MiB for each
//! ```
//!
//! That may be less than one batch of wide rows takes, and an operator that has nothing to spill yet can only fail. So
//! one that has little may have more than its share, as long as there is any: up to an [eighth](LEAST_SHARE) of all.
//!
//! A sort spills by merging what it has in memory, and a merge holds each batch and a copy of the keys. For that a sort
//! has set aside twice the bytes of its batches. This is nearly enough, but not where keys are wide: sorts that took
//! all memory could not even spill. Therefore sorts leave [a part](MERGE_SHARE) of it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion_common::{Result, resources_err};
use datafusion_execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// Part of the pool that an operator gets while there is room, however many share it.
const LEAST_SHARE: usize = 8;

/// How DataFusion calls the consumers that keep what is to be sorted.
const SORTS: &str = "ExternalSorter[";

/// Part of the memory that sorts leave. Keys encoded for comparison take up to half as much again as their
/// columns.
const MERGE_SHARE: usize = 3;

/// See the module's comment.
#[derive(Debug)]
pub(crate) struct QueryMemoryPool {
    fair: FairSpillPool,
    pool_bytes: usize,
    /// Bytes that wait to be sorted; locked while something is given whose limit is not that of the fair pool.
    sorts: Mutex<usize>,
}

impl QueryMemoryPool {
    pub(crate) fn new(pool_bytes: usize) -> QueryMemoryPool {
        QueryMemoryPool {
            fair: FairSpillPool::new(pool_bytes),
            pool_bytes,
            sorts: Mutex::new(0),
        }
    }

    fn sorts(&self) -> MutexGuard<'_, usize> {
        self.sorts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What sorts may have together that have so much.
    fn limit_of_sorts(&self, sorts: usize) -> usize {
        let others = self.fair.reserved().saturating_sub(sorts);
        let rest = self.pool_bytes.saturating_sub(others);
        rest - rest / MERGE_SHARE
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
        if is_sort(reservation) {
            *self.sorts() += additional;
        }
        self.fair.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.fair.shrink(reservation, shrink);
        if is_sort(reservation) {
            let mut sorts = self.sorts();
            *sorts = sorts.saturating_sub(shrink);
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if !reservation.consumer().can_spill() {
            return self.fair.try_grow(reservation, additional);
        }
        let mut sorts = self.sorts();
        let is_sort = is_sort(reservation);
        let is_within = (!is_sort
            || sorts.saturating_add(additional) <= self.limit_of_sorts(*sorts))
            && self.fair.try_grow(reservation, additional).is_ok();
        if !is_within {
            let size = reservation.size().saturating_add(additional);
            let all = self.fair.reserved().saturating_add(additional);
            if size > self.pool_bytes / LEAST_SHARE || all > self.pool_bytes {
                return resources_err!(
                    "{} has {} bytes of query memory, and {additional} more are not left",
                    reservation.consumer().name(),
                    reservation.size()
                );
            }
            self.fair.grow(reservation, additional);
        }
        if is_sort {
            *sorts += additional;
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.fair.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.pool_bytes)
    }
}

fn is_sort(reservation: &MemoryReservation) -> bool {
    reservation.consumer().name().starts_with(SORTS)
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
        named(pool, "spilling")
    }

    fn named(pool: &Arc<dyn MemoryPool>, name: &str) -> MemoryReservation {
        MemoryConsumer::new(name)
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

    #[test]
    fn sorts_leave_room_for_merging_what_they_spill() {
        let pool: Arc<dyn MemoryPool> = Arc::new(QueryMemoryPool::new(1600));
        let sort = named(&pool, "ExternalSorter[0]");
        sort.try_grow(1067).expect("two thirds");
        assert!(sort.try_grow(1).is_err());
        let merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
        merge.try_grow(533).expect("what is left");
        // It takes over what the sort had.
        sort.shrink(1067);
        merge.try_grow(1067).expect("all");
        drop(merge);
        sort.try_grow(1067).expect("two thirds again");
    }
}
