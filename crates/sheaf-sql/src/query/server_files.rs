//! LOAD_FILE: which files of the server a session may read.
//!
//! Those that LOAD DATA INFILE may: of a client with the privilege FILE, in the directory of `secure_file_priv`. All
//! else is no file to it, and nobody learns whether it is there.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use sheaf_frontend::load_file::{FileReader, LoadedFile};
use sheaf_table::Privileges;

use crate::session::Session;

impl Session {
    /// What reads files for LOAD_FILE.
    pub(crate) fn reader_of_server_files(&self) -> FileReader {
        let allowed = self.engine.options().secure_file_priv.clone();
        let allowed = allowed.filter(|_| self.client.check_one_of(Privileges::FILE).is_ok());
        let Some(allowed) = allowed else {
            return Arc::new(|_| LoadedFile::Unreadable);
        };
        let most = self.variables.max_allowed_packet();
        Arc::new(move |name| read(name, &allowed, most).unwrap_or(LoadedFile::Unreadable))
    }
}

/// A file of less than `most` bytes in a directory; in any if that has no name. `None`: it cannot be read.
fn read(name: &str, allowed: &Path, most: usize) -> Option<LoadedFile> {
    let path = match allowed.as_os_str().is_empty() {
        true => name.into(),
        false => allowed.join(name),
    };
    // Links and dots are resolved before the check, so that they do not lead out.
    let path = path.canonicalize().ok()?;
    if !allowed.as_os_str().is_empty() && !is_inside(&path, allowed) {
        return None;
    }
    // A pipe may have no end.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(&path).ok()?;
    let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
    if length >= most {
        return Some(LoadedFile::TooLong(most));
    }
    if !sheaf_memory::has_room_for_value(length) {
        return None;
    }
    let mut bytes = Vec::with_capacity(length);
    // It may grow meanwhile.
    file.take(most as u64).read_to_end(&mut bytes).ok()?;
    Some(match bytes.len() < most {
        true => LoadedFile::Bytes(bytes),
        false => LoadedFile::TooLong(most),
    })
}

/// Whether a path without links and dots leads into a directory.
pub(crate) fn is_inside(path: &Path, directory: &Path) -> bool {
    directory
        .canonicalize()
        .is_ok_and(|directory| path.starts_with(directory))
}
