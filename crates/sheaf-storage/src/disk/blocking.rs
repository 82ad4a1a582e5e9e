//! Files, and operations on them by plain system calls.
//!
//! The thread pool does all its work here. io_uring comes here for what it cannot do itself: the rest of a short
//! transfer, and file systems that lack an allocation call.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{AlignedBuffer, DISK_BLOCK_BYTES, FileId, Operation};
use crate::error::{Result, StorageError};
use crate::sync::RwLock;

/// Most files a disk can have open.
const MAX_FILES: usize = 1024;

/// Zeros are written in pieces of this size where the file system cannot zero a range.
const ZERO_PIECE_BYTES: usize = 1 << 20;

/// The open files of a directory.
pub(super) struct Files {
    directory: PathBuf,
    direct: bool,
    open: RwLock<Vec<(String, Arc<File>)>>,
}

impl Files {
    pub(super) fn new(directory: &Path, direct: bool) -> Files {
        Files {
            directory: directory.to_owned(),
            direct,
            open: RwLock::new(Vec::new()),
        }
    }

    /// Whether files of this directory can be read and written past the page cache. Finds out by doing it.
    pub(super) fn takes_direct_io(directory: &Path) -> Result<bool> {
        let path = directory.join(format!(".direct-io-probe-{}", std::process::id()));
        let name = path.display().to_string();
        let mut block = AlignedBuffer::zeroed(DISK_BLOCK_BYTES)?;
        let mut probe = || -> io::Result<()> {
            let file = open_file(&path, true)?;
            let pieces = [libc::iovec {
                iov_base: block.as_mut_ptr().cast(),
                iov_len: block.len(),
            }];
            // SAFETY: the pieces are the block, which is this function's own.
            unsafe {
                transfer(file.as_raw_fd(), Direction::Write, &pieces, 0)?;
                transfer(file.as_raw_fd(), Direction::Read, &pieces, 0)
            }
        };
        let result = probe();
        // A file that could not be created cannot be removed either; the first error is the one that counts.
        let _ = fs::remove_file(&path);
        match result {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
            // The file could be opened for direct I/O; that nothing can be added to it must not prevent a start.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(true),
            Err(error) => Err(StorageError::io("probe of direct I/O", name, 0, error)),
        }
    }

    pub(super) fn open(&self, name: &str) -> Result<FileId> {
        let mut open = self.open.write();
        if let Some(position) = open.iter().position(|(known, _)| known == name) {
            return Ok(FileId(position as u32));
        }
        if open.len() == MAX_FILES {
            let error = io::Error::from_raw_os_error(libc::EMFILE);
            return Err(StorageError::io("open", name, 0, error));
        }
        let file = open_file(&self.directory.join(name), self.direct)
            .map_err(|error| StorageError::io("open", name, 0, error))?;
        open.push((name.to_owned(), Arc::new(file)));
        Ok(FileId(open.len() as u32 - 1))
    }

    pub(super) fn name(&self, file: FileId) -> String {
        let open = self.open.read();
        open.get(file.0 as usize)
            .map_or_else(|| format!("file {}", file.0), |(name, _)| name.clone())
    }

    /// The open file; an error if there is no such number.
    pub(super) fn file(&self, file: FileId) -> io::Result<Arc<File>> {
        let open = self.open.read();
        let found = open.get(file.0 as usize).map(|(_, file)| file.clone());
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    pub(super) fn length(&self, file: FileId) -> Result<u64> {
        let length = self
            .file(file)
            .and_then(|file| file.metadata())
            .map(|data| data.len());
        length.map_err(|error| StorageError::io("status", self.name(file), 0, error))
    }

    /// Does all of an operation in this thread.
    pub(super) fn execute(&self, operation: &mut Operation) -> io::Result<()> {
        let file = self.file(operation.file())?;
        continue_operation(&file, operation, 0)
    }
}

fn open_file(path: &Path, direct: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o640);
    options.custom_flags(libc::O_CLOEXEC | if direct { libc::O_DIRECT } else { 0 });
    options.open(path)
}

/// Does what is left of an operation of which `done` bytes have been transferred.
pub(super) fn continue_operation(
    file: &File,
    operation: &mut Operation,
    done: usize,
) -> io::Result<()> {
    let fd = file.as_raw_fd();
    match operation {
        Operation::Read {
            offset, buffers, ..
        } => {
            let pieces = skip(buffers.iovecs(), done);
            // SAFETY: the pieces are the operation's buffers, which are borrowed mutably here.
            unsafe { transfer(fd, Direction::Read, &pieces, *offset + done as u64) }
        }
        Operation::Write {
            offset, buffers, ..
        } => {
            let pieces = skip(buffers.iovecs(), done);
            // SAFETY: as above; what is written only has to be there.
            unsafe { transfer(fd, Direction::Write, &pieces, *offset + done as u64) }
        }
        Operation::Sync { .. } => file.sync_data(),
        Operation::Allocate { length, .. } => match fallocate(fd, 0, 0, *length) {
            Err(error) if is_unsupported(&error) => {
                if file.metadata()?.len() < *length {
                    file.set_len(*length)
                } else {
                    Ok(())
                }
            }
            result => result,
        },
        Operation::SetLength { length, .. } => file.set_len(*length),
        Operation::Zero { offset, length, .. } => {
            match fallocate(fd, libc::FALLOC_FL_ZERO_RANGE, *offset, *length) {
                Err(error) if is_unsupported(&error) => write_zeros(fd, *offset, *length),
                result => result,
            }
        }
        Operation::Punch { offset, length, .. } => {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            match fallocate(fd, mode, *offset, *length) {
                Err(error) if is_unsupported(&error) => write_zeros(fd, *offset, *length),
                result => result,
            }
        }
    }
}

/// Whether the file system lacks a call for which there is a substitute.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// The pieces without their first `done` bytes.
fn skip(pieces: Vec<libc::iovec>, mut done: usize) -> Vec<libc::iovec> {
    let mut rest = Vec::with_capacity(pieces.len());
    for mut piece in pieces {
        let skipped = done.min(piece.iov_len);
        done -= skipped;
        piece.iov_len -= skipped;
        if piece.iov_len > 0 {
            piece.iov_base = piece.iov_base.cast::<u8>().wrapping_add(skipped).cast();
            rest.push(piece);
        }
    }
    rest
}

/// Moves all bytes of the pieces, in as many calls as it takes.
///
/// # Safety
/// The pieces are memory that stays where it is during the call. Nothing else uses memory that is read into.
unsafe fn transfer(
    fd: RawFd,
    direction: Direction,
    pieces: &[libc::iovec],
    mut offset: u64,
) -> io::Result<()> {
    /// Pieces that one call takes, by POSIX's lower bound for IOV_MAX on Linux.
    const MAX_PIECES: usize = 1024;
    let mut rest = pieces.to_vec();
    while !rest.is_empty() {
        let count = rest.len().min(MAX_PIECES) as i32;
        // SAFETY: the caller's promise about the pieces, of which these are a part.
        let moved = unsafe {
            match direction {
                Direction::Read => libc::preadv(fd, rest.as_ptr(), count, offset as i64),
                Direction::Write => libc::pwritev(fd, rest.as_ptr(), count, offset as i64),
            }
        };
        match (moved, direction) {
            (0, Direction::Read) => return Err(io::ErrorKind::UnexpectedEof.into()),
            (0, Direction::Write) => return Err(io::ErrorKind::WriteZero.into()),
            (moved, _) if moved > 0 => {
                offset += moved as u64;
                rest = skip(rest, moved as usize);
            }
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

fn fallocate(fd: RawFd, mode: i32, offset: u64, length: u64) -> io::Result<()> {
    loop {
        // SAFETY: no memory is passed.
        if unsafe { libc::fallocate(fd, mode, offset as i64, length as i64) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn write_zeros(fd: RawFd, offset: u64, length: u64) -> io::Result<()> {
    let mut zeros = AlignedBuffer::zeroed(ZERO_PIECE_BYTES.min(length as usize))
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut done = 0;
    while done < length {
        let piece = libc::iovec {
            iov_base: zeros.as_mut_ptr().cast(),
            iov_len: zeros.len().min((length - done) as usize),
        };
        // SAFETY: the piece is a part of the zeros, which are this function's own.
        unsafe { transfer(fd, Direction::Write, &[piece], offset + done)? };
        done += piece.iov_len as u64;
    }
    Ok(())
}
