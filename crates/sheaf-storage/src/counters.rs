//! Counters of the buffer pool. (Skeleton.)

/// A snapshot of the pool's counters and gauges. Everything since the pool was opened, unless it is a gauge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolCounters {
    /// Page accesses.
    pub read_requests: u64,
    /// Accesses that had to wait for a read of their own.
    pub reads: u64,
    /// Pages requested by prefetch.
    pub read_ahead: u64,
    /// Accesses that found a prefetched page still on its way, and waited.
    pub read_ahead_waits: u64,
    /// Prefetched pages that were evicted without having been used.
    pub read_ahead_evicted: u64,
    /// Read requests issued to the disk.
    pub data_reads: u64,
    /// Bytes read.
    pub data_read: u64,
    /// Pages read, one by one or merged.
    pub pages_read: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Write requests issued to the disk.
    pub write_requests: u64,
    /// Bytes written.
    pub data_written: u64,
    /// Syncs issued to the disk.
    pub syncs: u64,
    /// Gauge: frames of the pool.
    pub pages_total: u64,
    /// Gauge: frames that hold no page.
    pub pages_free: u64,
    /// Gauge: frames whose page differs from its copy on disk.
    pub pages_dirty: u64,
}
