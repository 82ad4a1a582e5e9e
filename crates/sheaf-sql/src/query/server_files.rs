//! Which files of the server a session may read, and make.
//!
//! Those in the directory of `secure_file_priv`, for a client with the privilege FILE. To LOAD_FILE all else is no
//! file, and nobody learns whether it is there. LOAD DATA and INTO OUTFILE say what is wrong.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sheaf_frontend::load_file::{FileReader, LoadedFile};
use sheaf_table::Privileges;
use sheaf_types::error::codes;

use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::rights::Client;

/// Files that statements make are written by the account of the server, and read by its group.
const MODE_OF_NEW_FILES: u32 = 0o640;

/// What reads files for LOAD_FILE.
pub(crate) fn reader_of_server_files(client: &Client, engine: &Engine, most: usize) -> FileReader {
    let allowed = engine.options().secure_file_priv.clone();
    let allowed = allowed.filter(|_| client.check_one_of(Privileges::FILE).is_ok());
    let Some(allowed) = allowed else {
        return Arc::new(|_| LoadedFile::Unreadable);
    };
    Arc::new(move |name| read(name, &allowed, most).unwrap_or(LoadedFile::Unreadable))
}

/// The directory of `secure_file_priv`; one without a name is any. Error 1290: there is none.
pub(crate) fn directory_of_files(engine: &Engine) -> Result<&Path> {
    let allowed = engine.options().secure_file_priv.as_deref();
    allowed.ok_or_else(outside)
}

/// Makes a file that is not there.
///
/// # Errors
/// 1290 for one outside of the directory of `secure_file_priv`, 1086 for one that is there, 1 for one that cannot
/// be made.
pub(crate) fn new_server_file(engine: &Engine, name: &str) -> Result<(PathBuf, File)> {
    let allowed = directory_of_files(engine)?;
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => SqlError::new(
            codes::FILE_EXISTS_ERROR,
            format!("File '{name}' already exists"),
        ),
        kind => SqlError::new(
            codes::EE_CANTCREATEFILE,
            format!(
                "Can't create/write to file '{name}' (OS errno {} - {kind})",
                error.raw_os_error().unwrap_or(0),
            ),
        ),
    };
    let path = path_of(name, allowed);
    let (Some(directory), Some(file)) = (path.parent(), path.file_name()) else {
        return Err(failed(ErrorKind::InvalidInput.into()));
    };
    let directory = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    // Links and dots are resolved before the check, so that they do not lead out.
    let directory = directory.canonicalize().map_err(failed)?;
    if !allowed.as_os_str().is_empty() && !is_inside(&directory, allowed) {
        return Err(outside());
    }
    let path = directory.join(file);
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true);
    let made = options.mode(MODE_OF_NEW_FILES).open(&path);
    Ok((path, made.map_err(failed)?))
}

/// 1290.
pub(crate) fn outside() -> SqlError {
    SqlError::option_prevents_statement("--secure-file-priv")
}

/// Where a file of this name is, relative to a directory if that has a name.
pub(crate) fn path_of(name: &str, directory: &Path) -> PathBuf {
    match directory.as_os_str().is_empty() {
        true => name.into(),
        false => directory.join(name),
    }
}

/// A file of less than `most` bytes in a directory; in any if that has no name. `None`: it cannot be read.
fn read(name: &str, allowed: &Path, most: usize) -> Option<LoadedFile> {
    let path = path_of(name, allowed);
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
