//! What statements ask of the binary log: which files there are, what is in them, that they go or begin anew.

use std::fs::File;
use std::io::BufReader;
use std::time::SystemTime;

use sheaf_binlog::gtid::GtidSet;
use sheaf_binlog::reader::EventReader;
use sheaf_binlog::shown::{info_of, name_of};
use sheaf_types::error::codes;

use super::files::{FileNumber, Files, failed};
use super::{Binlogger, lock};
use crate::error::{Result, SqlError};

/// An event as SHOW BINLOG EVENTS prints it.
pub(crate) struct ShownEvent {
    pub(crate) start: u64,
    pub(crate) name: &'static str,
    pub(crate) server_id: u32,
    pub(crate) end: u64,
    pub(crate) info: String,
}

impl Binlogger {
    /// The files with their lengths, oldest first.
    ///
    /// # Errors
    /// Those of files.
    pub(crate) fn list(&self) -> Result<Vec<(String, u64)>> {
        self.with(|running| {
            let (newest, position) = running.place();
            let files = running.files.numbers().iter();
            let listed = files.map(|file| {
                let length = match *file == newest {
                    true => Ok(position),
                    false => running.files.length(*file),
                };
                let length = length.map_err(|error| failed(file, &error))?;
                Ok((file.to_string(), length))
            });
            listed.collect()
        })
    }

    /// The newest file, where its next event begins, and what all files have had.
    ///
    /// # Errors
    /// Those of files.
    pub(crate) fn status(&self) -> Result<(String, u64, String)> {
        self.with(|running| {
            let (newest, position) = running.place();
            Ok((newest.to_string(), position, running.executed().to_string()))
        })
    }

    /// Events of a file, or of the oldest one: those from a position on, without the first `skipped`, `count` at most.
    ///
    /// # Errors
    /// 1220: there is no such file, or no event begins at the position.
    pub(crate) fn events(
        &self,
        file: Option<&str>,
        from: Option<u64>,
        (skipped, count): (u64, u64),
    ) -> Result<(String, Vec<ShownEvent>)> {
        let wrong = |reason: &str| {
            SqlError::new(
                codes::ERROR_WHEN_EXECUTING_COMMAND,
                format!("Error when executing command SHOW BINLOG EVENTS: {reason}"),
            )
        };
        // Files are only added to while they are read, and what is there now is whole.
        let (number, path, end) = self.with(|running| {
            let known = running.files.numbers();
            let number = match file {
                None => known.first().copied(),
                Some(name) => find(&running.files, name),
            };
            let number = number.ok_or_else(|| wrong("Could not find target log"))?;
            let (newest, position) = running.place();
            let end = match number == newest {
                true => position,
                false => u64::MAX,
            };
            Ok((number, running.files.path(number), end))
        })?;
        let io_failed = |error| failed(number, &error);
        let opened = File::open(path).map_err(io_failed)?;
        let mut reader = EventReader::new(BufReader::new(opened));
        let mut shown = Vec::new();
        let mut place = 0;
        if !reader.begin().map_err(io_failed)? {
            return Err(wrong("Wrong offset or I/O error"));
        }
        let first = from.unwrap_or(0).max(reader.position());
        while (shown.len() as u64) < count && reader.position() < end {
            let at = reader.position();
            let Some(event) = reader.read_event().map_err(io_failed)? else {
                break;
            };
            if at < first {
                // No event begins where the statement says.
                if reader.position() > first {
                    return Err(wrong("Wrong offset or I/O error"));
                }
                continue;
            }
            place += 1;
            if place > skipped {
                shown.push(ShownEvent {
                    start: reader.start(),
                    name: name_of(event),
                    server_id: reader.server_id(),
                    end: reader.position(),
                    info: info_of(event, &reader),
                });
            }
        }
        Ok((number.to_string(), shown))
    }

    /// FLUSH BINARY LOGS.
    ///
    /// # Errors
    /// Those of files.
    pub(crate) fn flush(&self) -> Result<()> {
        let settings = self.settings();
        self.with(|running| running.rotate(settings))
    }

    /// Removes the files before the one of this name.
    ///
    /// # Errors
    /// 1373: there is none; those of files.
    pub(crate) fn purge_to(&self, name: &str) -> Result<()> {
        self.with(|running| {
            let found = find(&running.files, name).ok_or_else(|| {
                SqlError::new(
                    codes::UNKNOWN_TARGET_BINLOG,
                    "Target log not found in binlog index",
                )
            })?;
            running.purge_before(found)
        })
    }

    /// Removes files that were written last before this moment.
    ///
    /// # Errors
    /// Those of files.
    pub(crate) fn purge_older(&self, moment: SystemTime) -> Result<()> {
        self.with(|running| running.purge_older(moment))
    }

    /// Removes all files, and begins anew with transaction 1.
    ///
    /// # Errors
    /// Those of files.
    pub(crate) fn reset(&self) -> Result<()> {
        let settings = self.settings();
        self.with(|running| running.reset(settings))?;
        *lock(&self.unlogged) = GtidSet::new();
        Ok(())
    }
}

/// The file of this name, if it is in the list.
fn find(files: &Files, name: &str) -> Option<FileNumber> {
    let number = FileNumber::of_name(name)?;
    files.numbers().contains(&number).then_some(number)
}
