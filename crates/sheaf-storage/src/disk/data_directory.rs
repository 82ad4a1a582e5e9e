//! The files of a data directory, and its one owner.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{Result, StorageError};

/// Name of the data file in its directory.
pub const DATA_FILE: &str = "sheaf.data";

/// Name of the log in the data directory.
pub(crate) const LOG_FILE: &str = "sheaf.log";

/// Name of the doublewrite area in the data directory.
pub(crate) const DOUBLEWRITE_FILE: &str = "sheaf.doublewrite";

/// Name of the lock file in the data directory.
const LOCK_FILE: &str = "sheaf.lock";

/// Keeps other processes out of a data directory until the file is closed.
///
/// # Errors
/// `InUse` if another process has it.
pub(crate) fn lock_directory(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK_FILE);
    let failed = |operation| {
        let path = path.display().to_string();
        move |error| StorageError::io(operation, path, 0, error)
    };
    let lock = File::create(&path).map_err(failed("creation"))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StorageError::InUse {
            path: dir.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(failed("locking")(error)),
    }
}
