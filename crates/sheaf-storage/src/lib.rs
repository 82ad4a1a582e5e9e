//! The storage floor of Sheaf: disk, buffer pool, pages and the B+trees in them.

pub mod buffer_pool;
pub mod counters;
pub mod disk;
pub mod error;
pub mod guard;
pub mod page;
pub mod prefetch;
pub mod sync;

pub use buffer_pool::{BufferPool, PoolOptions};
pub use counters::PoolCounters;
pub use disk::{Disk, DiskKind, FileId};
pub use error::{Result, StorageError};
pub use guard::{ExclusiveGuard, OptimisticGuard, PageVersion, Restart, SharedGuard};
pub use page::{Lsn, PAGE_SIZE, Page, PageId, PageType, TreeId};
pub use prefetch::PrefetchSummary;
