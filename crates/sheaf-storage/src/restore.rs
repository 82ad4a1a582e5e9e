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
//! **What is refused.** A moment before the backup was complete: its pages are of different moments until then. An
//! archive with a gap. Log that lacks the leaves of a bulk build, because the server ran without an archive meanwhile.

use std::path::Path;
use std::sync::Arc;

use crate::archive::{LogArchive, LogRange};
use crate::backup::{
    CopyProgress, ReportProgress, make_empty_directory, read, sync_directory, write,
};
use crate::disk::{self, Disk, DiskKind, Operation, STRETCH_BYTES};
use crate::error::{Result, StorageError};
use crate::log::bytes::Damaged;
use crate::log::frame::{self, Frame, Note};
use crate::log::{Control, HistoryId, Log, LogCopy, LogReader, LogState, packed};
use crate::page::Lsn;
use crate::storage::{DATA_FILE, LOG_FILE, lock_directory};

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
///
/// # Errors
/// `Backup` if `from` holds no backup, or one that was opened since it was made, or if the moment cannot be restored;
/// `Archive` if the archive lacks something.
pub fn restore_to(
    from: &Path,
    archive: Option<&dyn LogArchive>,
    to: &Path,
    until: RestoreUntil,
    report: ReportProgress<'_>,
) -> Result<Restored> {
    if !from.join(DATA_FILE).is_file() || !from.join(LOG_FILE).is_file() {
        let reason = format!("there is no backup in {}", from.display());
        return Err(StorageError::Backup { reason });
    }
    let _lock = lock_directory(from)?;
    make_empty_directory(to)?;
    let source = disk::open_directory(from, DiskKind::Auto)?;
    let target = disk::open_directory(to, DiskKind::Auto)?;
    let restored = restore(&source, archive, &target, until, report)?;
    sync_directory(to)?;
    Ok(restored)
}

/// As [`restore_to`], from one disk to another, empty one.
pub fn restore(
    from: &Arc<dyn Disk>,
    archive: Option<&dyn LogArchive>,
    to: &Arc<dyn Disk>,
    until: RestoreUntil,
    report: ReportProgress<'_>,
) -> Result<Restored> {
    let log_file = from.open(LOG_FILE)?;
    let file = Log::file(from, log_file, 0);
    let control = match Control::read(&file)? {
        Some(control) if control.state == LogState::Copy => control,
        Some(_) => {
            return Err(not_possible(
                "the backup was opened as a database since it was made",
            ));
        }
        None => return Err(not_possible("the backup is not complete")),
    };
    let mut progress = CopyProgress::default();
    copy_data_file(from, to, &mut progress, report)?;

    let mut joined = JoinedLog {
        copy: LogCopy::new(to, to.open(LOG_FILE)?, control),
        until,
        newest_commit_us: None,
        next_commit_us: None,
    };
    let mut reader = LogReader::open(&Log::file(from, log_file, control.segment_bytes), &control)?;
    while let Some((lsn, frames)) = reader.next_chunk()? {
        joined.add_from_backup(lsn, &frames)?;
    }
    reader.end()?;
    if let Some(archive) = archive {
        let ranges = archive.ranges(control.history)?;
        while let Some(range) = joined.next_range(&ranges)? {
            joined.add_from_archive(range, &archive.get(control.history, range)?)?;
            progress.log_bytes += range.end.0 - range.start.0;
            report(progress)?;
        }
    }
    joined.check_end()?;
    let end = joined.end();
    joined.copy.finish()?;
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
}

impl JoinedLog {
    fn end(&self) -> Lsn {
        self.copy.end().unwrap_or_default()
    }

    /// Adds log of the backup, all of which is needed.
    fn add_from_backup(&mut self, lsn: Lsn, frames: &[u8]) -> Result<()> {
        packed::for_each_frame(lsn, frames, |_, end, frame| {
            if let Some(time_us) = commit_time(frame)? {
                if self.is_too_late(end, time_us) {
                    return Err(not_possible(
                        "the backup was completed after the moment that is to be restored: take an older backup",
                    ));
                }
                self.newest_commit_us = Some(time_us);
            }
            Ok(())
        })?;
        self.copy.add(lsn, frames)
    }

    /// The object that goes on where the log ends; none if the moment is reached, or the archive's end.
    fn next_range(&self, ranges: &[LogRange]) -> Result<Option<LogRange>> {
        let end = self.end();
        if self.next_commit_us.is_some() || self.until == RestoreUntil::Position(end) {
            return Ok(None);
        }
        let goes_on = |range: &&LogRange| range.start <= end && range.end > end;
        let next = ranges.iter().filter(goes_on).max_by_key(|range| range.end);
        if next.is_none()
            && let Some(later) = ranges.iter().filter(|range| range.start > end).min()
        {
            let reason = format!(
                "it has nothing from {} to {}: this backup cannot be brought any further",
                end.0, later.start.0
            );
            return Err(StorageError::Archive { reason });
        }
        Ok(next.copied())
    }

    /// Adds what follows out of an object, up to the moment.
    fn add_from_archive(&mut self, range: LogRange, bytes: &[u8]) -> Result<()> {
        packed::unpack(bytes, range.start, range.end, |lsn, frames| {
            let mut wanted: Option<(Lsn, usize)> = None;
            packed::for_each_frame(lsn, frames, |start, end, frame| {
                // The object may begin with what the backup has, and end with what is too late.
                if end > self.end() && self.next_commit_us.is_none() && self.takes(end, frame)? {
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
        match frame::decode(frame).map_err(|Damaged| damaged(end))? {
            Frame::Commit { time_us, .. } => {
                if self.is_too_late(end, time_us) {
                    self.next_commit_us = Some(time_us);
                    return Ok(false);
                }
                self.newest_commit_us = Some(time_us);
            }
            Frame::MiniTransaction {
                note: Note::PagesPastLog,
                ..
            } => {
                let reason = format!(
                    "the server ran without it at {}, and loaded data that it does not have: \
                     this backup cannot be brought any further",
                    end.0
                );
                return Err(StorageError::Archive { reason });
            }
            Frame::MiniTransaction { .. } | Frame::EndOfRollback(_) => {}
        }
        // Nothing behind the position is wanted, commit or not.
        let is_beyond = matches!(self.until, RestoreUntil::Position(position) if end > position);
        Ok(!is_beyond)
    }

    fn is_too_late(&self, end: Lsn, time_us: u64) -> bool {
        match self.until {
            RestoreUntil::End => false,
            RestoreUntil::TimeUs(until_us) => time_us > until_us,
            RestoreUntil::Position(position) => end > position,
        }
    }

    /// A position that was asked for must have been reached. A time may lie in the quiet after the last commit.
    fn check_end(&self) -> Result<()> {
        match self.until {
            RestoreUntil::Position(position) if self.end() != position => {
                Err(not_possible(&format!(
                    "the log can be restored to {}, and not to {}",
                    self.end().0,
                    position.0
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The time of a commit; none of another frame.
fn commit_time(frame: &[u8]) -> Result<Option<u64>> {
    match frame::decode(frame).map_err(|Damaged| damaged(Lsn(0)))? {
        Frame::Commit { time_us, .. } => Ok(Some(time_us)),
        Frame::MiniTransaction { .. } | Frame::EndOfRollback(_) => Ok(None),
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
