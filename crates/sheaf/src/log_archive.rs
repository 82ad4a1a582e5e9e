//! Where a log can be archived to, by name.

use std::path::Path;
use std::sync::Arc;

use sheaf_storage::{FolderArchive, LogArchive, Result, StorageError};

/// The archive at a place: the path of a folder. A folder that is absent is made.
///
/// # Errors
/// `Archive` if there can be none.
pub fn open_archive(place: &str) -> Result<Arc<dyn LogArchive>> {
    let folder = match place.split_once("://") {
        None => place,
        Some(("file", path)) => path,
        Some((scheme, _)) => {
            return Err(StorageError::Archive {
                reason: format!("'{place}': there is no support for {scheme}; name a folder"),
            });
        }
    };
    Ok(Arc::new(FolderArchive::open(Path::new(folder))?))
}
