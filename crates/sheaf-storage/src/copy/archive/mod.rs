//! The archive: the whole history of a database, kept elsewhere.
//!
//! The log's segments are recycled. An archive gets every byte of the log before that happens, so that an older copy of
//! the data file can be brought forward to any moment since ([`crate::copy::restore`]).
//!
//! ```text
//!   log        ...---|-------------------|---------|                    durable up to here
//!   archive    history 4f0c...:  [1, 90)  [90, 175)      <- archiver: one object at a time, in order, without a gap
//! ```
//!
//! **Objects.** An object holds a range of one history's log: chunks ([`crate::log`]'s), packed anew so that many short
//! commits share one. It goes out when [`OBJECT_BYTES`] have come together, or some time after the first byte that
//! waits for it, so that the archive is never much behind. Its name says the range; where to go on after a restart is
//! the end of the newest one.
//!
//! **No gaps.** The log is kept until it is archived. If the archive fails, or is slower than the log grows, the log
//! that waits for it grows up to a limit. Then changes are refused until the archive has caught up. There are still two
//! ways to a gap, and both are reported loudly. Either the server ran without the archive and recycled log that the
//! archive should have had, or the log that waited for the archive was removed. The archive then begins anew behind the
//! gap. A restore across the gap ends with an error, and a new backup is due.

mod folder;
mod prune;

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

pub use folder::FolderArchive;
pub use prune::{Pruned, prune};

use crate::error::{Result, StorageError};
use crate::log::unlogged::LogEverything;
use crate::log::{HistoryId, Log, LogFollower, packed};
use crate::page::Lsn;
use crate::sync::{self, Mutex};

/// Bytes of log in an object, about; a chunk more at most.
const OBJECT_BYTES: usize = 4 << 20;

/// A failing archive is complained about this often.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// A range of the log of one history: positions from `start` to before `end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LogRange {
    pub start: Lsn,
    pub end: Lsn,
}

/// Where the log goes to be kept: a folder, a bucket. Objects are named by their history and their range, are written
/// once, and never change.
pub trait LogArchive: Send + Sync + Debug {
    /// The ranges that the archive has of a history, in any order.
    fn ranges(&self, history: HistoryId) -> Result<Vec<LogRange>>;

    /// Keeps an object, whole or not at all; durable on return. Keeping the same object once more does nothing.
    ///
    /// # Errors
    /// `Archive`, also if there is another object of this name: see [`check_same`].
    fn put(&self, history: HistoryId, range: LogRange, bytes: &[u8]) -> Result<()>;

    /// An object's bytes.
    fn get(&self, history: HistoryId, range: LogRange) -> Result<Vec<u8>>;

    /// Removes an object. One that is not there is removed already.
    fn remove(&self, history: HistoryId, range: LogRange) -> Result<()>;
}

/// To be asked when there is an object already of the name that is to be kept.
///
/// # Errors
/// `Archive`: it has other bytes, so two servers write one history. A data directory that was not a backup was copied,
/// and both are in use.
pub fn check_same(name: &dyn Display, bytes: &[u8], known: &[u8]) -> Result<()> {
    if bytes == known {
        return Ok(());
    }
    let reason = format!(
        "{name} is there already, and has something else in it: another server archives a copy of this data directory to \
         the same place; give one of them another place"
    );
    Err(StorageError::Archive { reason })
}

/// How far the archive is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArchiveProgress {
    /// It has everything before this.
    pub position: Lsn,
    /// Bytes of log that are durable and wait for it.
    pub waiting_bytes: u64,
}

/// Moves the log to its archive.
pub(crate) struct Archiver {
    archive: Arc<dyn LogArchive>,
    log: Arc<Log>,
    history: HistoryId,
    /// The oldest position that belongs to the history.
    history_start: Lsn,
    interval: Duration,
    state: Mutex<State>,
    _log_everything: LogEverything,
}

struct State {
    follower: LogFollower,
    /// The follower is where the archive ends.
    is_placed: bool,
    /// What did not go out when it was tried last.
    unsent: Option<(LogRange, Vec<u8>)>,
    /// When log began to wait for an object.
    waiting_since_ns: Option<u64>,
    last_complaint_ns: Option<u64>,
}

impl Archiver {
    /// An archiver of the log that has just been opened: all that is left of it is kept from here on.
    pub(crate) fn new(
        archive: Arc<dyn LogArchive>,
        log: &Arc<Log>,
        interval: Duration,
        log_everything: LogEverything,
    ) -> Archiver {
        let control = log.control();
        let follower = LogFollower::new(log, control.history_start);
        log.note_archived(follower.position());
        Archiver {
            archive,
            log: log.clone(),
            history: control.history,
            history_start: control.history_start,
            interval,
            state: Mutex::new(State {
                follower,
                is_placed: false,
                unsent: None,
                waiting_since_ns: None,
                last_complaint_ns: None,
            }),
            _log_everything: log_everything,
        }
    }

    /// Sends the next object if one is due, or with `now` if there is anything to send. Returns whether there may be
    /// more to send.
    ///
    /// # Errors
    /// The archive failed; the next step tries again.
    pub(crate) fn step(&self, now: bool) -> Result<bool> {
        let mut state = self.state.lock();
        let result = self.send_next(&mut state, now);
        match &result {
            Err(error) => self.complain(&mut state, error),
            Ok(_) => state.last_complaint_ns = None,
        }
        result
    }

    /// How far the archive is.
    pub(crate) fn progress(&self) -> ArchiveProgress {
        let position = self.log.archived();
        ArchiveProgress {
            position,
            waiting_bytes: self.log.flushed().0.saturating_sub(position.0),
        }
    }

    fn complain(&self, state: &mut State, error: &StorageError) {
        let now = sync::monotonic_ns();
        let is_due = state
            .last_complaint_ns
            .is_none_or(|last| now - last >= COMPLAINT_INTERVAL.as_nanos() as u64);
        if is_due {
            state.last_complaint_ns = Some(now);
            tracing::warn!(
                "the log is not archived, {} bytes wait: {error}",
                self.log.unarchived_bytes()
            );
        }
    }

    fn send_next(&self, state: &mut State, now: bool) -> Result<bool> {
        if !state.is_placed {
            state.follower = self.find_place()?;
            state.is_placed = true;
        }
        if state.unsent.is_none() {
            let position = state.follower.position();
            let waiting = self.log.flushed().0.saturating_sub(position.0);
            if waiting == 0 {
                state.waiting_since_ns = None;
                return Ok(false);
            }
            let clock = sync::monotonic_ns();
            let since = *state.waiting_since_ns.get_or_insert(clock);
            let is_due =
                waiting >= OBJECT_BYTES as u64 || clock - since >= self.interval.as_nanos() as u64;
            if !now && !is_due {
                return Ok(false);
            }
            // What was read and is not sent is to be read again.
            state.is_placed = false;
            state.unsent = gather(&mut state.follower)?;
            state.is_placed = true;
            state.waiting_since_ns = None;
        }
        if let Some((range, bytes)) = &state.unsent {
            self.archive.put(self.history, *range, bytes)?;
            self.log.note_archived(range.end);
            state.follower.release(range.end);
            state.unsent = None;
        }
        Ok(true)
    }

    /// A follower of the log from where the archive ends. Until it is there the one before it keeps the log.
    fn find_place(&self) -> Result<LogFollower> {
        let ranges = self.archive.ranges(self.history)?;
        let newest = ranges.iter().map(|range| range.end).max();
        let wanted = newest.unwrap_or(self.history_start);
        if wanted > self.log.flushed() {
            return Err(StorageError::Archive {
                reason: format!(
                    "it has history {} up to {}, but the log of this data directory ends at {}: an older copy of the \
                     directory was put in its place; archive it to another place",
                    self.history,
                    wanted.0,
                    self.log.flushed().0
                ),
            });
        }
        self.log.check_from(wanted)?;
        let follower = LogFollower::new(&self.log, wanted);
        let found = follower.position();
        match newest {
            Some(end) if found > end => tracing::error!(
                "the log archive has a gap: it ends at {}, and what is left of the log begins at {}; \
                 a backup that is older than this cannot be brought forward, take a new one now",
                end.0,
                found.0
            ),
            None if found > self.history_start => tracing::warn!(
                "archiving of the log begins at {}: take a backup now, older ones cannot be brought forward",
                found.0
            ),
            _ => {}
        }
        self.log.note_archived(found);
        Ok(follower)
    }
}

/// The next object.
fn gather(follower: &mut LogFollower) -> Result<Option<(LogRange, Vec<u8>)>> {
    let start = follower.position();
    let mut packer = packed::Packer::new();
    while packer.log_bytes() < OBJECT_BYTES
        && let Some((lsn, bytes)) = follower.next()?
    {
        // The first one may begin with what is archived already.
        let skip = start.0.saturating_sub(lsn.0) as usize;
        packer.add(Lsn(lsn.0 + skip as u64), &bytes[skip..])?;
    }
    let end = follower.position();
    Ok(packer
        .finish()?
        .map(|bytes| (LogRange { start, end }, bytes)))
}
