//! Databases that this process has open. Connections to one directory share one engine: a directory can be opened once.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sheaf::{Database, Error, Options, Result};
use sheaf_types::error::codes;

static OPEN: Mutex<Option<OpenDatabases>> = Mutex::new(None);

/// By the path of the directory, with the process that has opened it.
type OpenDatabases = HashMap<PathBuf, (u32, Weak<Database>)>;

/// A use of an open database. The last one closes it.
pub(crate) struct SharedDatabase {
    /// `None` only while it is dropped.
    database: Option<Arc<Database>>,
    process: u32,
}

/// How a directory was found.
pub(crate) struct Opened {
    pub(crate) database: SharedDatabase,
    /// There was no database before.
    pub(crate) is_new: bool,
}

impl SharedDatabase {
    pub(crate) fn get(&self) -> Option<&Database> {
        self.database.as_deref()
    }

    /// Whether this process is the one that has opened it.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Drop for SharedDatabase {
    fn drop(&mut self) {
        let database = self.database.take();
        if !self.is_ours() {
            // Closing it would write to the files of the parent.
            mem::forget(database);
            return;
        }
        // Another thread that opens the directory now waits until it is closed.
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        drop(database);
        drop(open);
    }
}

fn io_error(path: &Path, error: &io::Error) -> Error {
    Error::new(
        codes::EE_CANTCREATEFILE,
        format!(
            "Can't open the directory '{}' (errno: {} - {error})",
            path.display(),
            error.raw_os_error().unwrap_or_default()
        ),
    )
}

/// Opens the database in a directory, or gives the one that is open.
///
/// # Errors
/// Those of the engine; 29 if there is no database and `create` is false, 1 if the directory cannot be made; 1210 if
/// the directory is open and `options` asks for something.
pub(crate) fn open(path: &Path, create: bool, options: Option<Options>) -> Result<Opened> {
    let process = std::process::id();
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = open.get_or_insert_default();
    // Entries of the parent of this process name databases that this process cannot use.
    open.retain(|_, (opener, database)| *opener == process && database.strong_count() > 0);
    let is_new = match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(io_error(path, &error)),
    };
    if is_new && !create {
        let message = format!(
            "There is no database in '{}', and create is False",
            path.display()
        );
        return Err(Error::new(codes::EE_FILENOTFOUND, message));
    }
    fs::create_dir_all(path).map_err(|error| io_error(path, &error))?;
    let path = path
        .canonicalize()
        .map_err(|error| io_error(path, &error))?;
    let found = open.get(&path).and_then(|(_, database)| database.upgrade());
    let database = match (found, options) {
        (Some(_), Some(_)) => {
            let message = format!(
                "'{}' is open in this process; memory and threads are those of its first connection",
                path.display()
            );
            return Err(Error::new(codes::WRONG_ARGUMENTS, message));
        }
        (Some(database), None) => database,
        (None, options) => {
            let database = Database::open(&path, options.unwrap_or_default())?;
            let database = Arc::new(database);
            open.insert(path, (process, Arc::downgrade(&database)));
            database
        }
    };
    Ok(Opened {
        database: SharedDatabase {
            database: Some(database),
            process,
        },
        is_new,
    })
}
