//! Disk: the only place that touches files.
//!
//! Work is handed over with [`Disk::submit`] and comes back through the operation's [`Completion`]. The buffers of an
//! operation are never slices of the caller. They are frames of a pool or aligned memory, owned by the operation from
//! submission to completion, so bytes can go on moving while the caller's stack unwinds.
//!
//! No thread exists only to wait for completions. **A thread that waits reaps for all**: [`Disk::wait`] delivers every
//! completion that arrives, its own or not, until its own condition holds. A completion runs on the reaping thread,
//! holds no lock of the disk, must not block, and must unpark the threads that wait for what it changes.
//!
//! | implementation | for |
//! |---|---|
//! | [`io_uring`] | files that take direct I/O, on a kernel that permits io_uring |
//! | [`thread_pool`] | everything else; buffered where the file system refuses direct I/O |
//! | [`simulated`] | tests: a disk in memory whose order, faults and crashes follow from a seed |
//!
//! | file | what it holds |
//! |---|---|
//! | [`data_directory`] | names of the files of a data directory, and its lock |
//! | [`frame_arena`] | the memory that pages are read into |
//! | [`write_behind`] | writes of temporary files that are on their way |

mod blocking;
mod buffers;
pub(crate) mod data_directory;
pub(crate) mod frame_arena;
pub mod io_uring;
pub mod simulated;
pub mod thread_pool;
pub(crate) mod write_behind;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use buffers::{AlignedBuffer, Buffers};

use crate::error::{Result, StorageError};
use crate::sync::{self, Mutex, thread};

/// Offsets, lengths and buffers of all transfers are multiples of this: the block size of direct I/O.
pub const DISK_BLOCK_BYTES: usize = 4096;

/// Operations whose offsets lie in the same stretch of a file complete through the same queue, so a thread that waits
/// for a byte range knows where to wait. A transfer never crosses into the next stretch.
pub const STRETCH_BYTES: u64 = 1 << 20;

/// A file opened on a [`Disk`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u32);

/// Which implementation moves the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DiskKind {
    /// io_uring where kernel and file system allow it, else the thread pool.
    #[default]
    Auto,
    IoUring,
    ThreadPool,
}

/// Something to be done to a file. Operations in flight are not ordered among each other.
pub enum Operation {
    /// Fills the buffers with the bytes from `offset` on. Bytes past the end of the file are an error.
    Read {
        file: FileId,
        offset: u64,
        buffers: Buffers,
    },
    /// Writes the buffers from `offset` on, beyond the end of the file if need be.
    Write {
        file: FileId,
        offset: u64,
        buffers: Buffers,
    },
    /// Makes everything durable that was written by operations completed before this one was submitted.
    Sync { file: FileId },
    /// Makes the file at least `length` bytes long, with room on the device behind all of them. New bytes are zero.
    Allocate { file: FileId, length: u64 },
    /// Cuts the file, or extends it without reserving room.
    SetLength { file: FileId, length: u64 },
    /// Makes a range read as zeros, keeping its room.
    Zero {
        file: FileId,
        offset: u64,
        length: u64,
    },
    /// Makes a range read as zeros and gives its room back, where the file system can.
    Punch {
        file: FileId,
        offset: u64,
        length: u64,
    },
}

impl Operation {
    pub fn file(&self) -> FileId {
        match self {
            Operation::Read { file, .. }
            | Operation::Write { file, .. }
            | Operation::Sync { file }
            | Operation::Allocate { file, .. }
            | Operation::SetLength { file, .. }
            | Operation::Zero { file, .. }
            | Operation::Punch { file, .. } => *file,
        }
    }

    /// Where in the file the operation works; 0 if it is about the whole file.
    pub fn offset(&self) -> u64 {
        match self {
            Operation::Read { offset, .. }
            | Operation::Write { offset, .. }
            | Operation::Zero { offset, .. }
            | Operation::Punch { offset, .. } => *offset,
            Operation::Sync { .. } | Operation::Allocate { .. } | Operation::SetLength { .. } => 0,
        }
    }

    /// The verb for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Read { .. } => "read",
            Operation::Write { .. } => "write",
            Operation::Sync { .. } => "sync",
            Operation::Allocate { .. } => "allocation",
            Operation::SetLength { .. } => "truncation",
            Operation::Zero { .. } => "zero-fill",
            Operation::Punch { .. } => "hole punch",
        }
    }

    /// Takes the buffers out of a finished operation.
    fn into_buffers(self) -> Option<Buffers> {
        match self {
            Operation::Read { buffers, .. } | Operation::Write { buffers, .. } => Some(buffers),
            _ => None,
        }
    }
}

/// Is told that an operation is over. Exactly one call per submitted operation, also when the disk is dropped.
pub trait Completion: Send + Sync {
    /// `result` is about the whole operation: a transfer has moved all bytes, or it failed. The buffers come back.
    fn complete(&self, result: io::Result<()>, buffers: Option<Buffers>);
}

/// Identifies an operation to its submitter: the completion to call.
pub type Token = Arc<dyn Completion>;

/// Files, and moving bytes between them and memory.
pub trait Disk: Send + Sync {
    /// Opens the file of this name, creating it when absent. Opening it again gives the same number.
    fn open(&self, name: &str) -> Result<FileId>;

    /// The name it was opened by.
    fn file_name(&self, file: FileId) -> String;

    /// Length of the file in bytes.
    fn length(&self, file: FileId) -> Result<u64>;

    /// Starts operations without waiting for anything. Failure is a completion, too.
    fn submit(&self, operations: Vec<(Operation, Token)>);

    /// Delivers what has completed, without waiting. Returns how many completions that were.
    fn reap(&self) -> usize;

    /// Delivers completions until `done`, which an operation at this place of the file, or its completion, will make
    /// true; or another thread, behind an [`execute`](Self::execute). `done` must be cheap; its becoming true must
    /// unpark this thread.
    fn wait(&self, file: FileId, offset: u64, done: &dyn Fn() -> bool);

    /// Does one operation and returns when it is over. Such an operation needs no queue: an implementation on files
    /// makes the system call in the calling thread.
    fn execute(&self, operation: Operation) -> (io::Result<()>, Option<Buffers>) {
        let (file, offset) = (operation.file(), operation.offset());
        let ticket = Arc::new(Ticket {
            waiter: thread::current(),
            outcome: Mutex::new(None),
        });
        self.submit(vec![(operation, ticket.clone())]);
        self.wait(file, offset, &|| ticket.outcome.lock().is_some());
        let outcome = ticket.outcome.lock().take();
        outcome.unwrap_or_else(|| (Err(io::ErrorKind::Interrupted.into()), None))
    }

    /// Microseconds since 1970 by the clock of the machine that has this disk, which may be set back at any time. A
    /// simulated machine has a clock of its own: times are in the log, and so in what a run is a function of.
    fn wall_clock_us(&self) -> u64 {
        sync::wall_clock_us()
    }
}

/// One operation from submission to completion. Gives the buffers back, if there were any.
///
/// # Errors
/// What the device says, with the file's name.
pub fn run(disk: &dyn Disk, operation: Operation) -> Result<Option<Buffers>> {
    let (file, offset, name) = (operation.file(), operation.offset(), operation.name());
    let (result, buffers) = disk.execute(operation);
    match result {
        Ok(()) => Ok(buffers),
        Err(error) => Err(StorageError::io(name, disk.file_name(file), offset, error)),
    }
}

/// The completion of an operation that one thread waits for.
struct Ticket {
    waiter: thread::Thread,
    outcome: Mutex<Option<(io::Result<()>, Option<Buffers>)>>,
}

impl Completion for Ticket {
    fn complete(&self, result: io::Result<()>, buffers: Option<Buffers>) {
        *self.outcome.lock() = Some((result, buffers));
        self.waiter.unpark();
    }
}

/// The disk for the files of a directory, chosen by `kind` and by what the machine can do; one log line says which.
///
/// # Errors
/// The directory cannot be written to, or `kind` asks for an implementation that does not work here.
pub fn open_directory(directory: &Path, kind: DiskKind) -> Result<Arc<dyn Disk>> {
    let direct = blocking::Files::takes_direct_io(directory)?;
    let how = if direct { "direct I/O" } else { "buffered I/O" };
    if kind != DiskKind::ThreadPool {
        let refused = if direct {
            match io_uring::IoUringDisk::open(directory) {
                Ok(disk) => {
                    tracing::info!(directory = %directory.display(), "disk: io_uring, {how}");
                    return Ok(Arc::new(disk));
                }
                Err(error) => error,
            }
        } else {
            StorageError::BadOption {
                option: "disk",
                reason: "io_uring needs a file system that takes direct I/O".into(),
            }
        };
        if kind == DiskKind::IoUring {
            return Err(refused);
        }
        tracing::debug!("disk: io_uring is not used: {refused}");
    }
    tracing::info!(directory = %directory.display(), "disk: thread pool, {how}");
    Ok(Arc::new(thread_pool::ThreadPoolDisk::open(
        directory, direct,
    )?))
}
