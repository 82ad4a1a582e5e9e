//! The log of a copy of a database: a part of another log, written anew.
//!
//! The control block comes last. Without one the copy's log is no log, and the copy cannot be opened.

use std::sync::Arc;

use crate::disk::{Disk, FileId};
use crate::error::Result;
use crate::log::control::{Control, LogState};
use crate::log::log_file::LogFile;
use crate::log::reader::LogEnd;
use crate::log::{Log, LogOptions, MIN_BUFFER_BYTES};
use crate::page::Lsn;

/// See the [module](self).
pub(crate) struct LogCopy {
    file: LogFile,
    control: Control,
    /// Absent until the first frames come.
    log: Option<Log>,
}

impl LogCopy {
    /// A copy in an empty file of the log whose control block is `original`: recovery will begin at the same place.
    pub(crate) fn new(disk: &Arc<dyn Disk>, file: FileId, original: Control) -> LogCopy {
        LogCopy {
            file: Log::file(disk, file, original.segment_bytes),
            control: Control {
                number: 0,
                state: LogState::Copy,
                epoch: 1,
                first_segment: 1,
                // There is no doublewrite area yet.
                first_batch: 0,
                copy_end: Lsn(0),
                copied_at_us: 0,
                ..original
            },
            log: None,
        }
    }

    /// Where the copy ends so far; none if it is empty.
    pub(crate) fn end(&self) -> Option<Lsn> {
        self.log.as_ref().map(Log::end)
    }

    /// Adds whole frames that begin at `lsn`: where the copy ends, or first at or before where recovery begins.
    pub(crate) fn add(&mut self, lsn: Lsn, frames: &[u8]) -> Result<()> {
        let log = match &mut self.log {
            Some(log) => log,
            none => {
                let options = LogOptions {
                    limit_bytes: u64::MAX,
                    archive_lag_bytes: None,
                    follow_lag_bytes: None,
                    buffer_bytes: MIN_BUFFER_BYTES,
                };
                let log = Log::with_end(self.file.clone(), options, self.control, LogEnd::at(lsn))?;
                none.insert(log)
            }
        };
        if log.end() != lsn {
            let (end, lsn) = (log.end().0, lsn.0);
            return Err(self.file.damaged(format!("{lsn} does not follow {end}")));
        }
        log.append(frames);
        if log.end().0 - log.flushed().0 >= MIN_BUFFER_BYTES {
            log.flush_to(log.end())?;
        }
        Ok(())
    }

    /// Makes it a log, none of whose commits is later than `copied_at_us`. Durable on return.
    pub(crate) fn finish(self, copied_at_us: u64) -> Result<()> {
        let end = self.end().unwrap_or_default();
        if end <= self.control.redo_start {
            return Err(self.file.damaged("the copy ends before recovery begins"));
        }
        if let Some(log) = &self.log {
            log.flush_to(end)?;
        }
        let control = Control {
            copy_end: end,
            copied_at_us,
            ..self.control
        };
        control.write(&self.file)
    }
}
