//! The file of a log: where it may lie, and how it is opened.
//!
//! A log is written wherever a variable says, by the server's user. So its name is bounded, and what is in its place
//! must be a log: a name is no way to the files of the database or of other programs. Both are tested each time that
//! the file is opened, since directories and links change.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What each log begins with.
const FIRST_BYTES: &[u8; 8] = b"# Time: ";

/// See the module's comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFile {
    /// As the variable has it.
    name: String,
    data_directory: PathBuf,
}

impl LogFile {
    /// Names are relative to the directory of the database, where they end in `-slow.log`. Elsewhere they end in
    /// `.log`.
    pub(crate) fn new(name: &str, data_directory: &Path) -> LogFile {
        LogFile {
            name: name.to_string(),
            data_directory: data_directory.to_path_buf(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Opens the file, and makes it.
    pub(crate) fn open(&self) -> io::Result<File> {
        let path = self.path().ok_or_else(|| {
            let reason = "no log may lie there, or its directory is not there";
            io::Error::new(io::ErrorKind::InvalidInput, reason)
        })?;
        open(&path)
    }

    /// Where it lies now. `None`: it may not have its name, which could be that of a file of the database or of another
    /// program.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        // The default is the path of a file in the directory, which may be a relative one.
        let path = match Path::new(&self.name).starts_with(&self.data_directory) {
            true => PathBuf::from(&self.name),
            false => self.data_directory.join(&self.name),
        };
        let file = path.file_name()?.to_str()?;
        let directory = path.parent()?.canonicalize().ok()?;
        let data = self.data_directory.canonicalize();
        let is_inside = data.is_ok_and(|data| directory.starts_with(data));
        let ending = if is_inside { "-slow.log" } else { ".log" };
        let path = directory.join(file);
        // A link could lead anywhere.
        let is_free = match path.symlink_metadata() {
            Ok(found) => found.is_file(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        (file.ends_with(ending) && is_free).then_some(path)
    }
}

/// What may have come to the place of a log meanwhile, as a link, a pipe or a file of another kind, is refused: it
/// could lead anywhere, or never be opened.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    let mut first = [0; FIRST_BYTES.len()];
    let is_log =
        metadata.len() == 0 || file.read_exact_at(&mut first, 0).is_ok() && first == *FIRST_BYTES;
    if metadata.is_file() && is_log {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is something else than a slow query log",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_database_are_no_logs() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path();
        let path_of = |name: &str, data: &Path| LogFile::new(name, data).path();
        assert!(path_of("a-slow.log", data).is_some());
        for name in [
            "sheaf.log",
            "a.log",
            "sheaf.data",
            "",
            "..",
            "absent/a-slow.log",
        ] {
            assert_eq!(path_of(name, data), None, "{name}");
            assert!(LogFile::new(name, data).open().is_err(), "{name}");
        }
        let inside = data.join("data");
        std::fs::create_dir(&inside).expect("a directory");
        assert!(path_of("../a.log", &inside).is_some());
        assert_eq!(path_of("../a.cnf", &inside), None);
    }
}
