//! An archive in a folder of this machine's file systems, such as a mounted network share.
//!
//! ```text
//!   DIR/4f0c1d...a2/0000000000000001-000000000040a1f3.log
//!       history     start            end
//! ```
//!
//! A file is written under another name, synced, and then renamed, so that a name stands for a whole object.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{LogArchive, LogRange};
use crate::error::{Result, StorageError};
use crate::log::HistoryId;
use crate::page::Lsn;

/// What follows the range in the name of an object.
const SUFFIX: &str = ".log";

/// What follows the name of an object that is being written.
const UNFINISHED_SUFFIX: &str = ".unfinished";

/// See the [module](self).
#[derive(Debug)]
pub struct FolderArchive {
    folder: PathBuf,
}

impl FolderArchive {
    /// The archive in `folder`, which is made when it is absent.
    pub fn open(folder: &Path) -> Result<FolderArchive> {
        fs::create_dir_all(folder).map_err(|error| failed("creation", folder, &error))?;
        Ok(FolderArchive {
            folder: folder.to_owned(),
        })
    }

    /// The archive in a folder that is there.
    pub fn existing(folder: &Path) -> Result<FolderArchive> {
        fs::read_dir(folder).map_err(|error| failed("reading", folder, &error))?;
        Ok(FolderArchive {
            folder: folder.to_owned(),
        })
    }

    fn folder_of(&self, history: HistoryId) -> PathBuf {
        self.folder.join(history.to_string())
    }

    fn write(&self, folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let unfinished = folder.join(format!("{name}{UNFINISHED_SUFFIX}"));
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, folder.join(name))?;
        self.sync(folder)
    }

    /// The name of an object is durable with its folder, and the folder's with the one above.
    fn sync(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()?;
        File::open(&self.folder)?.sync_all()
    }
}

impl LogRange {
    /// The name of the object with this range, in every kind of archive.
    pub fn object_name(&self) -> String {
        format!("{:016x}-{:016x}{SUFFIX}", self.start.0, self.end.0)
    }

    /// The range of an object of this name; `None` if it is something else.
    pub fn of_object_name(name: &str) -> Option<LogRange> {
        let (start, end) = name.strip_suffix(SUFFIX)?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok().map(Lsn);
        let range = LogRange {
            start: number(start)?,
            end: number(end)?,
        };
        (range.object_name() == name && range.start < range.end).then_some(range)
    }
}

impl LogArchive for FolderArchive {
    fn ranges(&self, history: HistoryId) -> Result<Vec<LogRange>> {
        let folder = self.folder_of(history);
        let list = || -> io::Result<Vec<LogRange>> {
            let mut ranges = Vec::new();
            for entry in fs::read_dir(&folder)? {
                let name = entry?.file_name();
                ranges.extend(name.to_str().and_then(LogRange::of_object_name));
            }
            Ok(ranges)
        };
        match list() {
            // Nothing of this history is there yet; but the archive itself must be.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::metadata(&self.folder)
                    .map_err(|error| failed("search", &self.folder, &error))?;
                Ok(Vec::new())
            }
            result => result.map_err(|error| failed("listing", &folder, &error)),
        }
    }

    fn put(&self, history: HistoryId, range: LogRange, bytes: &[u8]) -> Result<()> {
        // A folder that has gone, such as a share that is not mounted, is not made again elsewhere.
        fs::metadata(&self.folder).map_err(|error| failed("search", &self.folder, &error))?;
        let (folder, name) = (self.folder_of(history), range.object_name());
        let path = folder.join(&name);
        let kept = match fs::read(&path) {
            Ok(known) => {
                super::check_same(&path.display(), bytes, &known)?;
                // The attempt that wrote it may have failed before this sync.
                self.sync(&folder)
            }
            Err(_) => self.write(&folder, &name, bytes),
        };
        kept.map_err(|error| failed("writing", &path, &error))
    }

    fn get(&self, history: HistoryId, range: LogRange) -> Result<Vec<u8>> {
        let path = self.folder_of(history).join(range.object_name());
        fs::read(&path).map_err(|error| failed("reading", &path, &error))
    }

    fn remove(&self, history: HistoryId, range: LogRange) -> Result<()> {
        let path = self.folder_of(history).join(range.object_name());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("removal", &path, &error))
            }
            _ => Ok(()),
        }
    }
}

fn failed(operation: &str, path: &Path, error: &io::Error) -> StorageError {
    StorageError::Archive {
        reason: format!("{operation} of {} failed: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY: HistoryId = HistoryId(0xabc);
    const RANGE: LogRange = LogRange {
        start: Lsn(1),
        end: Lsn(0x40_a1f3),
    };

    #[test]
    fn the_name_of_an_object_says_its_range() {
        let name = RANGE.object_name();
        assert_eq!(name, "0000000000000001-000000000040a1f3.log");
        assert_eq!(LogRange::of_object_name(&name), Some(RANGE));
        for other in [
            "",
            "1-2.log",
            "0000000000000002-0000000000000001.log",
            "0000000000000001-000000000040a1f3.log.unfinished",
        ] {
            assert_eq!(LogRange::of_object_name(other), None, "{other}");
        }
    }

    #[test]
    fn what_was_put_is_found_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("archive");
        let archive = FolderArchive::open(&folder).unwrap();
        assert_eq!(archive.ranges(HISTORY).unwrap(), []);
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        fs::write(folder.join(HISTORY.to_string()).join("notes.txt"), "mine").unwrap();
        assert_eq!(archive.ranges(HISTORY).unwrap(), [RANGE]);
        assert_eq!(archive.get(HISTORY, RANGE).unwrap(), b"bytes");
        assert_eq!(archive.ranges(HistoryId(1)).unwrap(), []);
    }

    #[test]
    fn what_was_removed_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let archive = FolderArchive::open(directory.path()).unwrap();
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        archive.remove(HISTORY, RANGE).unwrap();
        archive.remove(HISTORY, RANGE).unwrap();
        assert_eq!(archive.ranges(HISTORY).unwrap(), []);
    }

    #[test]
    fn an_object_is_never_changed() {
        let directory = tempfile::tempdir().unwrap();
        let archive = FolderArchive::open(directory.path()).unwrap();
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        let error = archive.put(HISTORY, RANGE, b"other").unwrap_err();
        assert!(error.to_string().contains(&RANGE.object_name()), "{error}");
        assert_eq!(archive.get(HISTORY, RANGE).unwrap(), b"bytes");
    }

    #[test]
    fn a_folder_that_has_gone_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("archive");
        assert!(FolderArchive::existing(&folder).is_err());
        let archive = FolderArchive::open(&folder).unwrap();
        fs::remove_dir(&folder).unwrap();
        assert!(archive.ranges(HISTORY).is_err());
        assert!(archive.put(HISTORY, RANGE, b"bytes").is_err());
    }
}
