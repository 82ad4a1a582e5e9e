//! What the measurements on a real disk share: where their data lies, and rows to fill it with.

use std::io;
use std::path::{Path, PathBuf};

use sheaf_storage::Random;

/// A data directory; removed when dropped.
pub(crate) struct DataDirectory(PathBuf);

impl DataDirectory {
    /// An empty folder in `parent`, whose name says what it is for and which process made it.
    pub(crate) fn create(parent: &Path, purpose: &str) -> io::Result<DataDirectory> {
        let path = parent.join(format!("{purpose}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(DataDirectory(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} is still there: {error}", self.0.display());
        }
    }
}

/// A row that compresses as rows do: half of it is random.
pub(crate) fn row_of(row: u64, version: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(row ^ version);
    let mut value = Vec::with_capacity(bytes + 16);
    while value.len() < bytes {
        value.extend_from_slice(&random.next().to_le_bytes());
        value.extend_from_slice(b"the same");
    }
    value.truncate(bytes);
    value
}
