//! Temporary files: what statements have no memory for, such as sorted runs, partitions of hash tables, rows that are
//! to be changed, and rows that a cursor keeps.
//!
//! A file is deleted when it is made, and lives on without a name until it is dropped; however a process ends, it
//! leaves none behind. It is written from its beginning to its end, and may be read anywhere at any time. Nothing of it
//! is ever synced, but where [memory is short](crate::disk::write_behind) what writes waits for the disk.
//!
//! All of them together have one limit. (What transactions spill, [`crate::transaction::spill_file`], has another,
//! because a statement that sorts too much must not keep others from changing rows.)

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::write_behind::WriteBehind;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are written at a time.
const PIECE_BYTES: usize = 1 << 20;
/// What a file has written is noted when it is so much: heads and paddings are some bytes.
const NOTED_BYTES: u64 = 16 << 10;

/// The room for temporary files, and how much of it is used.
#[derive(Debug)]
pub struct TempSpace {
    directory: PathBuf,
    limit_bytes: u64,
    used_bytes: AtomicU64,
    /// Files that were ever made: their numbers are parts of their names.
    files: AtomicU64,
    write_behind: WriteBehind,
}

impl TempSpace {
    /// Files in `directory`, which is made with the first of them, of at most `limit_bytes` together.
    pub fn new(directory: &Path, limit_bytes: u64) -> Arc<TempSpace> {
        Arc::new(TempSpace {
            directory: directory.to_path_buf(),
            limit_bytes,
            used_bytes: AtomicU64::new(0),
            files: AtomicU64::new(0),
            write_behind: WriteBehind::default(),
        })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Bytes of all files that there are.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// A new and empty file; `purpose` is part of the name that errors call it by.
    pub fn create(self: &Arc<Self>, purpose: &str) -> Result<TempFile, TempFileError> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let name = format!("{purpose}-{}-{number}", std::process::id());
        let path = self.directory.join(name);
        let open = || {
            std::fs::create_dir_all(&self.directory)?;
            let mut options = File::options();
            options.read(true).write(true).create_new(true);
            let file = options.open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(TempFile {
                file: Arc::new(file),
                path,
                length: AtomicU64::new(0),
                noted: AtomicU64::new(0),
                space: Arc::clone(self),
            }),
            Err(source) => Err(TempFileError { path, source }),
        }
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let more = |used: u64| {
            let used = used.checked_add(bytes)?;
            (used <= self.limit_bytes).then_some(used)
        };
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.used_bytes.fetch_update(success, failure, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!(
                    "temporary files would take more than max_temp_bytes ({} bytes)",
                    self.limit_bytes
                ),
            )),
        }
    }

    fn give_back(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A temporary file; its room is free again when it is dropped.
#[derive(Debug)]
pub struct TempFile {
    file: Arc<File>,
    /// The name that it had.
    path: PathBuf,
    length: AtomicU64,
    /// Up to here it was noted what is on its way to the disk.
    noted: AtomicU64,
    space: Arc<TempSpace>,
}

/// A temporary file that could not be made, written or read.
#[derive(Debug, thiserror::Error)]
#[error("the temporary file '{}': {source}", path.display())]
pub struct TempFileError {
    /// The name of the file.
    pub path: PathBuf,
    /// `QuotaExceeded` if there would be more than `max_temp_bytes`.
    pub source: io::Error,
}

impl TempFile {
    /// Bytes that were appended.
    pub fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// Writes `bytes` behind what was written before. After an error, what the file holds of them is not known.
    pub fn append(&self, bytes: &[u8]) -> Result<(), TempFileError> {
        let length = bytes.len() as u64;
        let write = || {
            self.space.take(length)?;
            let mut end = self.length.fetch_add(length, Ordering::Relaxed);
            for piece in bytes.chunks(PIECE_BYTES) {
                self.file.write_all_at(piece, end)?;
                end += piece.len() as u64;
                self.note_written(end);
            }
            Ok(())
        };
        write().map_err(|source| self.failed(source))
    }

    /// Something was written that ends here.
    fn note_written(&self, end: u64) {
        if end < self.noted.load(Ordering::Relaxed) + NOTED_BYTES {
            return;
        }
        let noted = self.noted.fetch_max(end, Ordering::Relaxed);
        if let Some(length) = end.checked_sub(noted) {
            self.space.write_behind.wrote(&self.file, noted, length);
        }
    }

    /// Reads `bytes.len()` bytes from `offset` on.
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), TempFileError> {
        let read = self.file.read_exact_at(bytes, offset);
        read.map_err(|source| self.failed(source))
    }

    /// Reads the file from its beginning.
    pub fn into_reader(self) -> TempFileReader {
        TempFileReader { file: self, at: 0 }
    }

    fn failed(&self, source: io::Error) -> TempFileError {
        TempFileError {
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        self.space.give_back(self.length());
    }
}

/// Reads a temporary file from its beginning to its end.
#[derive(Debug)]
pub struct TempFileReader {
    file: TempFile,
    at: u64,
}

impl TempFileReader {
    /// An error of reading, with the name of the file.
    pub fn failed(&self, source: io::Error) -> TempFileError {
        self.file.failed(source)
    }
}

impl io::Read for TempFileReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_what_was_appended_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let space = TempSpace::new(&directory.path().join("temp"), 10);
        let file = space.create("test").unwrap();
        file.append(b"abc").unwrap();
        file.append(b"defg").unwrap();
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 2).unwrap();
        assert_eq!(&bytes, b"cdef");
        assert_eq!((file.length(), space.used_bytes()), (7, 7));
        let folder = std::fs::read_dir(directory.path().join("temp")).unwrap();
        assert_eq!(folder.count(), 0);
        let behind = file.read_exact_at(&mut bytes, 4).unwrap_err();
        assert_eq!(behind.source.kind(), io::ErrorKind::UnexpectedEof);
        let mut all = Vec::new();
        let mut reader = file.into_reader();
        io::Read::read_to_end(&mut reader, &mut all).unwrap();
        assert_eq!(all, b"abcdefg");
        drop(reader);
        assert_eq!(space.used_bytes(), 0);
    }

    #[test]
    fn all_files_together_have_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let space = TempSpace::new(directory.path(), 10);
        let (one, other) = (space.create("one").unwrap(), space.create("other").unwrap());
        one.append(&[1; 6]).unwrap();
        let full = other.append(&[2; 5]).unwrap_err();
        assert_eq!(full.source.kind(), io::ErrorKind::QuotaExceeded);
        assert!(
            full.to_string().contains("max_temp_bytes (10 bytes)"),
            "{full}"
        );
        assert_eq!(space.used_bytes(), 6);
        // The file that was refused goes on when another one has gone.
        drop(one);
        other.append(&[3; 10]).unwrap();
        assert_eq!((other.length(), space.used_bytes()), (10, 10));
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_an_error_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, b"").unwrap();
        let error = TempSpace::new(&path, 10).create("rows").unwrap_err();
        assert!(error.path.starts_with(&path), "{error}");
    }
}
