//! `BACKUP TO 'folder'`: a copy of the whole database, made by the server while it serves.
//!
//! The folder is one of the server's machine. SHOW PROCESSLIST says how far the copy is, KILL ends it.

use std::path::Path;

use sheaf_storage::StorageError;
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::query::rows::{Cells, Rows};
use crate::session::Session;
use crate::session_parts::result::ResultSink;
use crate::variables::persisted;

pub(crate) fn backup(session: &mut Session, folder: &str, sink: &mut dyn ResultSink) -> Result<()> {
    let path = Path::new(folder);
    if !path.is_absolute() {
        return Err(SqlError::new(
            codes::WRONG_ARGUMENTS,
            "Incorrect arguments to BACKUP: the folder is one of the server, and its path must be absolute",
        ));
    }
    let handle = &session.handle;
    let mut shown_percent = u64::MAX;
    let persisted = session.engine.directory().join(persisted::FILE);
    let storage = session.engine.storage();
    let made = storage.backup_to(path, &[&persisted], &mut |progress| {
        let percent = progress.bytes * 100 / progress.bytes_total.max(1);
        if percent != shown_percent {
            shown_percent = percent;
            handle.set_state(&format!("copying pages: {percent}%"));
        }
        if handle.cancel_flag().is_cancelled() {
            return Err(StorageError::Cancelled);
        }
        Ok(())
    });
    let summary = match made {
        Err(StorageError::Cancelled) => return Err(SqlError::query_interrupted()),
        made => made?,
    };
    let mut rows = Rows::new([
        ("Folder", Cells::Text(4096)),
        ("Data_bytes", Cells::Unsigned),
        ("Log_bytes", Cells::Unsigned),
        ("History", Cells::Text(16)),
        ("Position", Cells::Unsigned),
    ]);
    rows.push(vec![
        folder.into(),
        summary.bytes.into(),
        summary.log_bytes.into(),
        summary.history.to_string().into(),
        summary.end.0.into(),
    ]);
    rows.send(sink, session.result_collation_id(), session.end_of_rows())
}
