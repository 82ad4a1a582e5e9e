//! The one error type of the storage floor.
//!
//! Each variant says which object failed, so that the floors above can turn it into a message that names the table
//! or file without looking anything up again. Errors are cloneable because one failed read may have many waiters.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::page::{PageDamage, PageId, TreeId};

/// Result of the storage floor.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// What can go wrong below the tables.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The device or file system failed.
    #[error("{operation} of {file} at byte {offset} failed: {source}")]
    Io {
        operation: &'static str,
        file: String,
        offset: u64,
        #[source]
        source: Arc<io::Error>,
    },

    /// No room left on the device, or a quota is used up.
    #[error("no space left on the device for {file}")]
    DiskFull { file: String },

    /// A page on disk is not what was written there. Its contents are never used.
    #[error("{file}: page {page} of tree {tree} is corrupt: {damage}")]
    Corrupt {
        file: String,
        page: PageId,
        /// As the damaged page says; 0 when it says nothing.
        tree: TreeId,
        damage: PageDamage,
    },

    /// A page is intact but its contents contradict its type.
    #[error("{file}: page {page} of tree {tree} is malformed: {reason}")]
    Malformed {
        file: String,
        page: PageId,
        tree: TreeId,
        reason: String,
    },

    /// The file is not a Sheaf file, or one of another version.
    #[error("{file}: {reason}")]
    UnknownFormat { file: String, reason: String },

    /// A page number that lies outside of the data file.
    #[error("{file}: there is no page {page}; the file has {pages} pages")]
    NoSuchPage {
        file: String,
        page: PageId,
        pages: u64,
    },

    /// The data file would need more pages than the page table has room for.
    #[error("{file}: {pages} pages are more than the limit of {limit}")]
    TooManyPages {
        file: String,
        pages: u64,
        limit: u64,
    },

    /// Every frame is latched or cannot be written back.
    #[error("no free frame: all {frames} frames of the buffer pool are in use")]
    PoolExhausted { frames: usize },

    /// An earlier fsync failed: what the operating system kept of the written pages is unknown until the next start.
    #[error("{file} cannot be made durable: an earlier sync failed")]
    SyncFailed { file: String },

    /// The key is in the tree already.
    #[error("duplicate key in tree {tree}")]
    DuplicateKey { tree: TreeId },

    /// Key and value do not fit in a page.
    #[error("an entry of {bytes} bytes is larger than the limit of {limit}")]
    EntryTooLarge { bytes: usize, limit: usize },

    /// The key alone is too long.
    #[error("a key of {bytes} bytes is larger than the limit of {limit}")]
    KeyTooLarge { bytes: usize, limit: usize },

    /// A tree whose keys are long and differ in their last bytes has grown to the most levels.
    #[error("tree {tree} has as many levels as it may have: its keys are too long and too alike")]
    TreeTooHigh { tree: TreeId },

    /// The transaction's undo is larger than its limit.
    #[error("the transaction changes more than max_transaction_log_bytes ({limit} bytes)")]
    TransactionTooLarge { limit: usize },

    /// The version store is full of versions that may still be needed, in memory and in the spill file.
    #[error(
        "old versions of rows take more than max_version_bytes ({limit} bytes) of memory and max_spill_bytes \
         ({spill_limit} bytes) of disk: end long transactions, or raise them"
    )]
    VersionStoreFull { limit: usize, spill_limit: u64 },

    /// The file that old versions of rows and the undo of long transactions are spilled to would become too long.
    #[error("the undo of transactions takes more than max_spill_bytes ({limit} bytes) of disk")]
    SpillFileFull { limit: u64 },

    /// Every slot for a snapshot is in use.
    #[error("more than {limit} statements and transactions read at a time")]
    TooManySnapshots { limit: usize },

    /// The transaction waits for one that waits for it. It must be rolled back as a whole.
    #[error("Deadlock found when trying to get lock; try restarting transaction")]
    Deadlock,

    /// A row stayed locked for longer than the transaction would wait.
    #[error("Lock wait timeout exceeded; try restarting transaction")]
    LockWaitTimeout,

    /// A row is locked, and the transaction does not wait (NOWAIT, SKIP LOCKED).
    #[error("the row is locked by another transaction, and the statement does not wait")]
    LockNotAvailable,

    /// The transaction was told to stop waiting (KILL, a client that is gone).
    #[error("Query execution was interrupted")]
    LockWaitInterrupted,

    /// There are too many explicit locks.
    #[error("more than max_row_locks ({limit}) locks are held")]
    TooManyLocks { limit: usize },

    /// No tree has this number.
    #[error("there is no tree {tree}")]
    NoSuchTree { tree: TreeId },

    /// Keys of a bulk build were not in strictly ascending order.
    #[error("keys of a bulk build must ascend")]
    UnsortedKeys,

    /// Another process has the data directory open.
    #[error("{} is in use by another process", path.display())]
    InUse { path: PathBuf },

    /// Nothing may be changed until the archive of the log has caught up.
    #[error(
        "the archive of the log is more than archive_lag_limit_bytes ({limit} bytes) behind: the server's log says why"
    )]
    ArchiveBehind { limit: u64 },

    /// What follows changes is too far behind: the log that waits for it may not grow any more.
    #[error(
        "what follows changes is more than follow_lag_limit_bytes ({limit} bytes) behind: the server's log says why"
    )]
    FollowersBehind { limit: u64 },

    /// The archive of the log failed, or does not have what it should.
    #[error("the log archive: {reason}")]
    Archive { reason: String },

    /// A backup or a restoration cannot be made.
    #[error("{reason}")]
    Backup { reason: String },

    /// A backup cannot be brought back to a moment before its end.
    #[error(
        "the backup was completed at position {end}, {completed_at_us} microseconds after 1970, which is after the moment \
         that is to be restored: take an older backup"
    )]
    BackupIsYounger { completed_at_us: u64, end: u64 },

    /// The caller that wanted the work has ended it.
    #[error("cancelled")]
    Cancelled,

    /// The storage was closed.
    #[error("the storage is closed")]
    Closed,

    /// An option has a value that cannot work.
    #[error("{option}: {reason}")]
    BadOption {
        option: &'static str,
        reason: String,
    },
}

impl StorageError {
    /// The error for a failed file operation; a full device gets its own variant.
    pub fn io(
        operation: &'static str,
        file: impl Into<String>,
        offset: u64,
        source: io::Error,
    ) -> StorageError {
        let file = file.into();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => StorageError::DiskFull { file },
            _ => StorageError::Io {
                operation,
                file,
                offset,
                source: Arc::new(source),
            },
        }
    }
}
