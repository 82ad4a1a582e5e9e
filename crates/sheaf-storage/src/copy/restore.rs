//! Restoring: a backup, brought forward to a chosen moment by the archived log.
//!
//! ```text
//!   backup     data file,  log [R ......... E)
//!   archive                    ...[..)[..........)[.......!..)
//!   restored   data file,  log [R ......... E ............!      then recovery: redo, and undo of what was open
//!                                                          ^ the first commit that is too late
//! ```
//!
//! Nothing is replayed here: the log of the backup and of the archive becomes one log that ends where it should, and
//! opening the restored directory is an ordinary recovery. It begins a history of its own there. Positions go on, and
//! the two histories never meet in an archive, because objects carry their history's name.
//!
//! **The moment.** Commits carry the time at which they were made, and times ascend in the log as long as a server
//! runs. The log ends before the first commit that is later than the moment. So if the machine's clock was set back
//! between two runs of a server, a commit that claims to be early but follows a later one is not in.
//!
//! **What is refused.** A moment before the backup was complete: its pages are of different moments until then. A
//! backup that has lost the end of its log, or whose pages are damaged. An archive with a gap, or with a damaged
//! object. Log that lacks the leaves of a bulk build, because the server ran without an archive meanwhile. Whatever is
//! refused, the folder is empty again.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::copy::archive::{LogArchive, LogRange};
use crate::copy::backup::{
    CopyProgress, ReportProgress, copy_beside, empty_directory, make_empty_directory, read,
    sync_directory, write,
};
use crate::disk::data_directory::{DATA_FILE, LOG_FILE, lock_directory};
use crate::disk::{self, Disk, DiskKind, FileId, Operation, STRETCH_BYTES};
use crate::error::{Result, StorageError};
use crate::log::bytes::Damaged;
use crate::log::frame::{self, Frame, Note};
use crate::log::{Control, HistoryId, Log, LogCopy, LogReader, LogState, packed};
use crate::page::Lsn;

/// The moment to restore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestoreUntil {
    /// As far as the archive goes.
    End,
    /// All commits up to this time, in microseconds since 1970.
    TimeUs(u64),
    /// All commits up to this position of the log.
    Position(Lsn),
}

/// What was restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restored {
    /// The history that was followed.
    pub history: HistoryId,
    /// Where the log ends.
    pub end: Lsn,
    /// Time of the newest commit that is in, in microseconds since 1970, if the log had any.
    pub newest_commit_us: Option<u64>,
    /// Time of the first commit that is not in; none if the log ended before the moment.
    pub next_commit_us: Option<u64>,
}

/// Restores the backup in the folder `from` into the folder `to`, which must be absent or empty. To be opened next.
/// Of the files `beside` the database, those that the backup has are copied.
///
/// # Errors
/// `Backup` if `from` holds no backup, or one that was opened since it was made, or if the moment cannot be restored;
/// `Archive` if the archive lacks something.
pub fn restore_to(
    from: &Path,
    archive: Option<&dyn LogArchive>,
    (to, beside): (&Path, &[&str]),
    until: RestoreUntil,
    report: ReportProgress<'_>,
) -> Result<Restored> {
    let _lock = lock_backup(from)?;
    make_empty_directory(to)?;
    let source = disk::open_directory(from, DiskKind::Auto)?;
    let target = disk::open_directory(to, DiskKind::Auto)?;
    let restored = restore(&source, archive, &target, until, report);
    let beside: Vec<_> = beside.iter().map(|name| from.join(name)).collect();
    let beside: Vec<&Path> = beside.iter().map(|file| file.as_path()).collect();
    let restored = restored.and_then(|restored| copy_beside(&beside, to).map(|()| restored));
    let restored = restored.and_then(|restored| sync_directory(to).map(|()| restored));
    if restored.is_err() {
        empty_directory(to, &beside);
    }
    restored
}

/// What a backup says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupInfo {
    /// Of the database that was copied.
    pub history: HistoryId,
    /// It has what was committed up to this position, and needs the archive from here on.
    pub end: Lsn,
    /// When it was complete, in microseconds since 1970.
    pub completed_at_us: u64,
}

/// What the backup in a folder says of itself. Nothing of its pages is read.
///
/// # Errors
/// `Backup` if there is none, or one that was opened since it was made.
pub fn backup_info(from: &Path) -> Result<BackupInfo> {
    let _lock = lock_backup(from)?;
    let (_, control) = read_control(&disk::open_directory(from, DiskKind::Auto)?)?;
    Ok(BackupInfo {
        history: control.history,
        end: control.copy_end,
        completed_at_us: control.copied_at_us,
    })
}

/// Keeps others from opening a backup until the file is closed.
fn lock_backup(from: &Path) -> Result<File> {
    if !from.join(DATA_FILE).is_file() || !from.join(LOG_FILE).is_file() {
        let reason = format!("there is no backup in {}", from.display());
        return Err(StorageError::Backup { reason });
    }
    lock_directory(from)
}

/// The log of a backup, and its control block.
fn read_control(from: &Arc<dyn Disk>) -> Result<(FileId, Control)> {
    let log_file = from.open(LOG_FILE)?;
    match Control::read(&Log::file(from, log_file, 0))? {
        Some(control) if control.state == LogState::Copy => Ok((log_file, control)),
        Some(_) => Err(not_possible(
            "the backup was opened as a database since it was made",
        )),
        None => Err(not_possible("the backup is not complete")),
    }
}

/// As [`restore_to`], from one disk to another, empty one.
pub fn restore(
    from: &Arc<dyn Disk>,
    archive: Option<&dyn LogArchive>,
    to: &Arc<dyn Disk>,
    until: RestoreUntil,
    report: ReportProgress<'_>,
) -> Result<Restored> {
    let (log_file, control) = read_control(from)?;
    let is_before_backup = match until {
        RestoreUntil::End => false,
        RestoreUntil::TimeUs(time_us) => time_us < control.copied_at_us,
        RestoreUntil::Position(position) => position < control.copy_end,
    };
    if is_before_backup {
        return Err(StorageError::BackupIsYounger {
            completed_at_us: control.copied_at_us,
            end: control.copy_end.0,
        });
    }
    let mut progress = CopyProgress::default();
    copy_data_file(from, to, &mut progress, report)?;

    let mut joined = JoinedLog {
        copy: LogCopy::new(to, to.open(LOG_FILE)?, control),
        until,
        newest_commit_us: None,
        next_commit_us: None,
        cannot_pass: None,
        read_to: Lsn(0),
    };
    let file = Log::file(from, log_file, control.segment_bytes);
    let mut reader = LogReader::open(&file, &control)?;
    while let Some((lsn, frames)) = reader.next_chunk()? {
        joined.add_from_backup(lsn, &frames)?;
    }
    joined.read_to = reader.end()?.lsn;
    control.check_copy(&file, joined.read_to)?;
    if let Some(archive) = archive {
        let ranges = archive.ranges(control.history)?;
        if ranges.is_empty() {
            let reason = format!(
                "it has nothing of history {}, to which the backup belongs: name the archive of the server that was backed \
                 up, or none to have the backup as it is",
                control.history
            );
            return Err(StorageError::Archive { reason });
        }
        while let Some(range) = joined.next_range(&ranges)? {
            let bytes = archive.get(control.history, range)?;
            joined.add_from_archive(range, &bytes).map_err(|error| {
                let name = format!("{}/{}", control.history, range.object_name());
                name_object(error, &name)
            })?;
            progress.log_bytes += range.end.0 - range.start.0;
            report(progress)?;
        }
    }
    joined.check_end()?;
    let end = joined.end();
    let newest_us = joined.newest_commit_us.unwrap_or(0);
    joined.copy.finish(newest_us.max(control.copied_at_us))?;
    Ok(Restored {
        history: control.history,
        end,
        newest_commit_us: joined.newest_commit_us,
        next_commit_us: joined.next_commit_us,
    })
}

fn copy_data_file(
    from: &Arc<dyn Disk>,
    to: &Arc<dyn Disk>,
    progress: &mut CopyProgress,
    report: ReportProgress<'_>,
) -> Result<()> {
    let (source, target) = (from.open(DATA_FILE)?, to.open(DATA_FILE)?);
    let length = from.length(source)?;
    progress.bytes_total = length;
    while progress.bytes < length {
        let piece = (length - progress.bytes).min(STRETCH_BYTES) as usize;
        let bytes = read(&**from, source, progress.bytes, piece)?;
        // What is free in the backup stays a hole.
        if bytes.iter().any(|&byte| byte != 0) {
            write(&**to, target, progress.bytes, bytes)?;
        }
        progress.bytes += piece as u64;
        report(*progress)?;
    }
    if to.length(target)? < length {
        let file = target;
        disk::run(&**to, Operation::SetLength { file, length })?;
    }
    disk::run(&**to, Operation::Sync { file: target })?;
    Ok(())
}

/// The log of the backup, and behind it what the archive has.
struct JoinedLog {
    copy: LogCopy,
    until: RestoreUntil,
    newest_commit_us: Option<u64>,
    next_commit_us: Option<u64>,
    /// Why nothing behind the end can be had, whatever commits there may be.
    cannot_pass: Option<StorageError>,
    /// What was looked at ends here; the log itself may end before.
    read_to: Lsn,
}

impl JoinedLog {
    fn end(&self) -> Lsn {
        self.copy.end().unwrap_or_default()
    }

    /// Adds log of the backup, all of which is needed.
    fn add_from_backup(&mut self, lsn: Lsn, frames: &[u8]) -> Result<()> {
        packed::for_each_frame(lsn, frames, |_, _, frame| {
            if let Some(time_us) = commit_time(frame)? {
                self.newest_commit_us = Some(time_us);
            }
            Ok(())
        })?;
        self.copy.add(lsn, frames)
    }

    /// The object that goes on where the log ends; none if the moment is reached, or the archive's end.
    fn next_range(&self, ranges: &[LogRange]) -> Result<Option<LogRange>> {
        if self.next_commit_us.is_some() || self.until == RestoreUntil::Position(self.end()) {
            return Ok(None);
        }
        let end = self.read_to;
        let goes_on = |range: &&LogRange| range.start <= end && range.end > end;
        let next = ranges.iter().filter(goes_on).max_by_key(|range| range.end);
        if next.is_none()
            && let Some(later) = ranges.iter().filter(|range| range.start > end).min()
        {
            let reason = format!(
                "it has nothing between the positions {} and {}: this backup can be restored with --until-position {}, \
                 and not any later; take a younger backup",
                end.0, later.start.0, end.0
            );
            return Err(StorageError::Archive { reason });
        }
        Ok(next.copied())
    }

    /// Adds what follows out of an object, up to the moment.
    fn add_from_archive(&mut self, range: LogRange, bytes: &[u8]) -> Result<()> {
        let read_to = std::mem::replace(&mut self.read_to, range.end);
        packed::unpack(bytes, range.start, range.end, |lsn, frames| {
            let mut wanted: Option<(Lsn, usize)> = None;
            packed::for_each_frame(lsn, frames, |start, end, frame| {
                // The object may begin with what the backup has, and end with what is too late.
                if end > read_to && self.next_commit_us.is_none() && self.takes(end, frame)? {
                    let first = wanted.map_or(start, |(first, _)| first);
                    wanted = Some((first, (end.0 - lsn.0) as usize));
                }
                Ok(())
            })?;
            match wanted {
                Some((first, end)) => self
                    .copy
                    .add(first, &frames[(first.0 - lsn.0) as usize..end]),
                None => Ok(()),
            }
        })
    }

    /// Whether a frame, which ends at `end`, lies before the moment.
    fn takes(&mut self, end: Lsn, frame: &[u8]) -> Result<bool> {
        let frame = frame::decode(frame).map_err(|Damaged| damaged(end))?;
        // Nothing behind the position is wanted, commit or not.
        let is_beyond = matches!(self.until, RestoreUntil::Position(position) if end > position);
        match frame {
            Frame::Commit { time_us, .. } => {
                if is_beyond || matches!(self.until, RestoreUntil::TimeUs(until) if time_us > until)
                {
                    self.next_commit_us = Some(time_us);
                    return Ok(false);
                }
                if let Some(error) = &self.cannot_pass {
                    return Err(error.clone());
                }
                self.newest_commit_us = Some(time_us);
            }
            _ if is_beyond => return Ok(false),
            Frame::MiniTransaction {
                note: Note::PagesPastLog,
                ..
            } if self.cannot_pass.is_none() => {
                let reason = format!(
                    "the server ran without its archive at position {}, and what it loaded then is not in the archive: \
                     this backup cannot be brought any further, take a younger one",
                    end.0
                );
                self.cannot_pass = Some(StorageError::Archive { reason });
            }
            Frame::MiniTransaction { .. } | Frame::EndOfRollback(_) | Frame::Annotation { .. } => {}
        }
        Ok(self.cannot_pass.is_none())
    }

    /// A position that was asked for must have been reached. A time may lie in the quiet after the last commit.
    fn check_end(&self) -> Result<()> {
        match self.until {
            RestoreUntil::Position(position) if self.end() != position => {
                Err(self.cannot_pass.clone().unwrap_or_else(|| {
                    not_possible(&format!(
                        "the log can be restored to {}, and not to {}",
                        self.end().0,
                        position.0
                    ))
                }))
            }
            _ => Ok(()),
        }
    }
}

/// The time of a commit; none of another frame.
fn commit_time(frame: &[u8]) -> Result<Option<u64>> {
    match frame::decode(frame).map_err(|Damaged| damaged(Lsn(0)))? {
        Frame::Commit { time_us, .. } => Ok(Some(time_us)),
        Frame::MiniTransaction { .. } | Frame::EndOfRollback(_) | Frame::Annotation { .. } => {
            Ok(None)
        }
    }
}

/// An error of the archive that names one of its objects.
fn name_object(error: StorageError, name: &str) -> StorageError {
    match error {
        StorageError::Archive { reason } => StorageError::Archive {
            reason: format!("{name}: {reason}"),
        },
        error => error,
    }
}

fn damaged(end: Lsn) -> StorageError {
    not_possible(&format!("the record that ends at {} is damaged", end.0))
}

fn not_possible(reason: &str) -> StorageError {
    StorageError::Backup {
        reason: reason.to_owned(),
    }
}
