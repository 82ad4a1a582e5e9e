//! The buffer pool. (Skeleton.)

use std::ops::Range;
use std::sync::Arc;

use crate::counters::PoolCounters;
use crate::disk::{Disk, FileId};
use crate::error::Result;
use crate::guard::{ExclusiveGuard, OptimisticGuard, SharedGuard};
use crate::page::PageId;
use crate::prefetch::PrefetchSummary;

/// Sizes and limits of a buffer pool.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Bytes of everything the pool allocates: frames, their descriptors, staging and the page table.
    pub pool_bytes: usize,
    /// Most pages the data file may ever have; bounds the address space of the page table.
    pub max_pages: u64,
    /// Two wanted pages are read in one request when at most this many unwanted pages lie between them.
    pub merge_gap_pages: u64,
    /// Share of the frames that prefetched and not yet used pages may hold, in percent.
    pub prefetch_quota_percent: usize,
    /// Whether a background thread writes dirty pages back.
    pub background_writer: bool,
}

impl PoolOptions {
    pub fn new(pool_bytes: usize) -> PoolOptions {
        PoolOptions {
            pool_bytes,
            max_pages: 1 << 32,
            merge_gap_pages: 1,
            prefetch_quota_percent: 25,
            background_writer: true,
        }
    }
}

pub struct BufferPool {}

impl BufferPool {
    /// A pool over `file`, whose present length decides how many pages there are.
    pub fn open(
        _disk: Arc<dyn Disk>,
        _file: FileId,
        _options: PoolOptions,
    ) -> Result<Arc<BufferPool>> {
        unimplemented!()
    }
    /// Pages of the data file.
    pub fn page_count(&self) -> u64 {
        unimplemented!()
    }
    /// Makes the data file at least `pages` long, so that writing those pages back cannot run out of disk.
    pub fn extend_to(&self, _pages: u64) -> Result<()> {
        unimplemented!()
    }
    pub fn optimistic(&self, _page: PageId) -> Result<OptimisticGuard<'_>> {
        unimplemented!()
    }
    pub fn shared(&self, _page: PageId) -> Result<SharedGuard<'_>> {
        unimplemented!()
    }
    pub fn exclusive(&self, _page: PageId) -> Result<ExclusiveGuard<'_>> {
        unimplemented!()
    }
    /// A zeroed page (its page id is set) that is not read from disk. The page must lie below `page_count`.
    pub fn create(&self, _page: PageId) -> Result<ExclusiveGuard<'_>> {
        unimplemented!()
    }
    pub fn prefetch(&self, _pages: &[PageId]) -> PrefetchSummary {
        unimplemented!()
    }
    pub fn is_resident(&self, _page: PageId) -> bool {
        unimplemented!()
    }
    pub fn resident_in(&self, _pages: Range<PageId>) -> u64 {
        unimplemented!()
    }
    /// Writes all dirty pages and makes them durable.
    pub fn flush_all(&self) -> Result<()> {
        unimplemented!()
    }
    /// A freed page: its contents are dropped without being written. The caller holds no guard of it.
    pub fn discard(&self, _page: PageId) {
        unimplemented!()
    }
    /// Flushes, then drops every page from memory.
    pub fn evict_all_clean(&self) -> Result<()> {
        unimplemented!()
    }
    pub fn counters(&self) -> PoolCounters {
        unimplemented!()
    }
    /// Stops the background writer and flushes. Later calls fail with `Closed` or find the pool clean.
    pub fn close(&self) -> Result<()> {
        unimplemented!()
    }
    /// Bytes allocated at present; never above `PoolOptions::pool_bytes`.
    pub fn memory_bytes(&self) -> usize {
        unimplemented!()
    }
}
