//! Disk: the only place that touches files. (Skeleton.)

use std::path::Path;
use std::sync::Arc;

use crate::error::Result;

/// A file opened on a [`Disk`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u32);

/// Which implementation moves the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DiskKind {
    /// io_uring where the kernel allows it, else the thread pool.
    #[default]
    Auto,
    IoUring,
    ThreadPool,
}

pub trait Disk: Send + Sync {
    /// Opens the file of this name, creating it when absent.
    fn open(&self, name: &str) -> Result<FileId>;
    /// The name it was opened by.
    fn file_name(&self, file: FileId) -> String;
    /// Length of the file in bytes.
    fn length(&self, file: FileId) -> Result<u64>;
}

/// The disk for a directory, with one log line that says which it is.
pub fn open_directory(_directory: &Path, _kind: DiskKind) -> Result<Arc<dyn Disk>> {
    unimplemented!()
}
