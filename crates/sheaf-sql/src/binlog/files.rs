//! The files of the binary log: their names, the list of them, and what is written to them.
//!
//! ```text
//!   binlog.000001  binlog.000002  ...      events
//!   binlog.index                           the names, in order, one a line
//!   binlog.state                           where to go on in the log: see [`super::state`]
//! ```
//!
//! The list says which files there are. It is replaced as a whole, before a file is used and before one is removed, so
//! a crash leaves at most files that nobody names.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sheaf_binlog::file::CLOSED_FLAGS;
use sheaf_binlog::gtid::GtidSet;
use sheaf_binlog::recovery::{Recovered, previous_gtids, recover};
use sheaf_types::error::codes;

use crate::error::SqlError;

/// What names begin with.
pub(super) const BASE: &str = "binlog";
/// The list of the files.
pub(super) const INDEX: &str = "binlog.index";

/// A file of the log, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileNumber(pub(super) u32);

impl std::fmt::Display for FileNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{BASE}.{:06}", self.0)
    }
}

impl FileNumber {
    /// The file of this name, which may be a path.
    pub(super) fn of_name(name: &str) -> Option<FileNumber> {
        let name = name.rsplit('/').next()?;
        let digits = name.strip_prefix(BASE)?.strip_prefix('.')?;
        let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok().map(FileNumber))?
    }

    pub(super) fn next(self) -> FileNumber {
        FileNumber(self.0 + 1)
    }
}

/// The files in the directory of the database, oldest first.
pub(super) struct Files {
    directory: PathBuf,
    numbers: Vec<FileNumber>,
}

impl Files {
    /// Reads the list. Files that are not there are no part of it.
    pub(super) fn open(directory: &Path) -> io::Result<Files> {
        let list = match std::fs::read_to_string(directory.join(INDEX)) {
            Ok(list) => list,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let numbers = list.lines().filter_map(FileNumber::of_name);
        let is_there = |number: &FileNumber| {
            let is_there = directory.join(number.to_string()).is_file();
            if !is_there {
                tracing::error!("the binary log file {number} is missing");
            }
            is_there
        };
        Ok(Files {
            numbers: numbers.filter(is_there).collect(),
            directory: directory.to_path_buf(),
        })
    }

    pub(super) fn numbers(&self) -> &[FileNumber] {
        &self.numbers
    }

    pub(super) fn newest(&self) -> Option<FileNumber> {
        self.numbers.last().copied()
    }

    pub(super) fn path(&self, number: FileNumber) -> PathBuf {
        self.directory.join(number.to_string())
    }

    /// What is good of a file. `None`: not even its first events are.
    pub(super) fn recover(&self, number: FileNumber) -> io::Result<Option<Recovered>> {
        recover(BufReader::new(File::open(self.path(number))?))
    }

    /// What the files before this one have.
    pub(super) fn previous(&self, number: FileNumber) -> io::Result<GtidSet> {
        let file = BufReader::new(File::open(self.path(number))?);
        Ok(previous_gtids(file)?.unwrap_or_default())
    }

    /// Opens a file to go on at its end, and cuts off what follows that.
    pub(super) fn reopen(&self, number: FileNumber, end: u64) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).open(self.path(number))?;
        file.set_len(end)?;
        io::Seek::seek(&mut &file, io::SeekFrom::End(0))?;
        Ok(file)
    }

    /// Makes the file behind the newest one, and enters it in the list.
    pub(super) fn create(&mut self, number: FileNumber) -> io::Result<File> {
        let file = create_file(&self.path(number))?;
        self.numbers.push(number);
        self.write_index().inspect_err(|_| {
            self.numbers.pop();
        })?;
        Ok(file)
    }

    /// Removes the oldest files, so many.
    pub(super) fn remove_oldest(&mut self, count: usize) -> io::Result<()> {
        self.remove(0..count)
    }

    /// Removes the newest file, which is of no use.
    pub(super) fn remove_newest(&mut self) -> io::Result<()> {
        let count = self.numbers.len();
        self.remove(count.saturating_sub(1)..count)
    }

    fn remove(&mut self, range: std::ops::Range<usize>) -> io::Result<()> {
        let removed: Vec<FileNumber> = self.numbers.drain(range).collect();
        if removed.is_empty() {
            return Ok(());
        }
        self.write_index()?;
        for number in removed {
            match std::fs::remove_file(self.path(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!("the binary log file {number} could not be removed: {error}");
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn write_index(&self) -> io::Result<()> {
        let lines = self.numbers.iter().map(|number| format!("./{number}\n"));
        let list: String = lines.collect();
        replace_file(&self.directory, INDEX, list.as_bytes())
    }

    /// Bytes of a file.
    pub(super) fn length(&self, number: FileNumber) -> io::Result<u64> {
        Ok(std::fs::metadata(self.path(number))?.len())
    }

    /// When a file was written last.
    pub(super) fn modified(&self, number: FileNumber) -> io::Result<SystemTime> {
        std::fs::metadata(self.path(number))?.modified()
    }
}

/// Says in a file's first event that it is complete, and makes it durable.
pub(super) fn close_file(file: &File) -> io::Result<()> {
    let (place, flags) = CLOSED_FLAGS;
    file.write_all_at(&flags, place)?;
    file.sync_all()
}

/// An empty file, which others than the owner and the group do not read: it has rows and passwords.
fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(true);
    options.mode(0o640).open(path)
}

/// Puts a file in the place of another one, whole or not at all. Durable on return.
pub(super) fn replace_file(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = directory.join(format!("{name}.new"));
    let mut file = create_file(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&new, directory.join(name))?;
    File::open(directory)?.sync_all()
}

pub(super) fn failed(what: impl std::fmt::Display, error: &std::io::Error) -> SqlError {
    SqlError::new(
        codes::ERROR_ON_WRITE,
        format!("Error writing file '{what}' of the binary log ({error})"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        assert_eq!(FileNumber(7).to_string(), "binlog.000007");
        assert_eq!(FileNumber(1_234_567).to_string(), "binlog.1234567");
        for (name, number) in [
            ("binlog.000007", Some(7)),
            ("./binlog.1234567", Some(1_234_567)),
            ("binlog.00007", None),
            ("binlog.index", None),
            ("other.000007", None),
            ("binlog.00000x", None),
        ] {
            assert_eq!(FileNumber::of_name(name), number.map(FileNumber), "{name}");
        }
    }

    #[test]
    fn the_list_has_the_files_that_are_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut files = Files::open(directory.path()).expect("no list");
        for number in 1..=3 {
            files.create(FileNumber(number)).expect("a file");
        }
        files.remove_oldest(1).expect("a list");
        let numbers = |files: &Files| files.numbers().iter().map(|it| it.0).collect::<Vec<_>>();
        let again = Files::open(directory.path()).expect("a list");
        assert_eq!((numbers(&files), numbers(&again)), (vec![2, 3], vec![2, 3]));
        std::fs::remove_file(again.path(FileNumber(2))).expect("it was there");
        let again = Files::open(directory.path()).expect("a list");
        assert_eq!(numbers(&again), [3]);
    }
}
