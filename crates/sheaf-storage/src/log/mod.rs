//! The log: everything that happens to pages and transactions, in order, durable before it is acknowledged.
//!
//! The log is a stream of bytes. A position in it is an LSN; **the LSN of a record is the position after its last
//! byte**, so that "the log is durable up to L" includes the record at L. The stream consists of frames ([`frame`]): a
//! mini-transaction, a commit, the end of a rollback.
//!
//! ```text
//!   append ---> buffer (memory) --- flush_to: one leader writes for all ---> chunks in segments ---> control block
//!   a copy      grows at its end    compress, checksum, write, sync          a ring of slots         redo start
//! ```
//!
//! **Appending** copies an encoded frame into the buffer, under a short mutex: a memcpy of some hundred bytes. That is
//! fine for tens of cores. Beyond, positions would be reserved with one atomic addition and the copying would leave the
//! mutex (Johnson et al., "Aether", VLDB 2010), which changes nothing outside of [`Buffer`].
//!
//! **Group commit.** A thread that needs the log up to a position calls [`flush_to`](Log::flush_to). The first becomes
//! the leader, takes the whole buffer, and writes and syncs it; the others wait until theirs is durable
//! ([`group_commit`]).
//!
//! **Segments** are slots of equal size in one file ([`log_file`]), filled with zeros once and recycled. A checkpoint
//! moves the redo start forward and so frees the segments before it, unless an archive or a backup has not read them
//! yet ([`follower`]). New slots are made whenever the free ones do not suffice, also beyond the log's limit: the limit
//! paces checkpoints and is not a wall.
//!
//! **Room.** What was appended must reach the disk in the end, whichever thread runs out of space meanwhile. So room is
//! ensured *before* a change is made, by [`ensure_room`](Log::ensure_room), while its thread holds nothing: a full disk
//! is then an error of the statement. Rollbacks have their room reserved.
//!
//! **Archives.** The log that an archive does not have is kept, up to a limit of its own. Beyond it changes are
//! refused, so that the archive never has a gap; reads and rollbacks go on, and changes as soon as the archive has
//! caught up.
//!
//! **Errors.** After a failed write or sync it is unknown what is on the device, so the log accepts nothing any more;
//! the next start finds out. A full disk is different: what could not be written stays in the buffer for the next
//! attempt.
//!
//! | file | what it holds |
//! |---|---|
//! | [`mini_transaction`] | the only way in which pages change |
//! | [`change`] | which transaction did what to a key |
//! | [`redo`] | every change of a page, by name, and the function that applies it |
//! | [`unlogged`] | pages that a bulk build writes past the log |
//! | [`change_feed`] | what transactions have changed, for followers |

pub(crate) mod bytes;
pub(crate) mod change;
pub(crate) mod change_feed;
mod chunk;
mod control;
mod copy;
mod follower;
pub(crate) mod frame;
mod group_commit;
mod log_file;
pub(crate) mod mini_transaction;
pub(crate) mod packed;
mod reader;
pub(crate) mod redo;
pub(crate) mod redo_codec;
pub(crate) mod unlogged;

use std::collections::VecDeque;
use std::sync::Arc;

use sheaf_memory::making_room;

use crate::disk::{AlignedBuffer, Disk, FileId};
use crate::error::{Result, StorageError};
use crate::log::change::TransactionId;
use crate::page::Lsn;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

pub use control::HistoryId;
pub(crate) use control::{Control, LogState};
pub(crate) use copy::LogCopy;
use follower::Holds;
pub(crate) use follower::LogFollower;
use group_commit::GroupCommit;
pub(crate) use log_file::LogFile;
use reader::Segment;
pub(crate) use reader::{LogEnd, LogReader};

/// The log begins here: no page has this LSN before it was changed once.
pub(crate) const LOG_START: Lsn = Lsn(1);

/// Smallest segment: a few of the largest frames.
pub(crate) const MIN_SEGMENT_BYTES: u64 = 512 << 10;

/// Fewest slots: one that is being written, one that a transaction under way began in, and one to go on in.
const MIN_SLOTS: u32 = 3;

/// Most bytes of log in a chunk.
const MAX_CHUNK_BYTES: usize = 1 << 20;

/// What a buffer keeps of its memory when all is written. Else both would keep what the largest transaction took.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// From this many bytes in memory on, a thread that is about to change something has to write first: a part of the
/// pool's memory, between these two. While it is written as much again may be appended.
const BUFFER_SHARE: u64 = 16;
const MIN_BUFFER_BYTES: u64 = 1 << 20;
const MAX_BUFFER_BYTES: u64 = 8 << 20;

/// Room that no change may use up: what all threads may be appending at a moment.
const HEADROOM_BYTES: u64 = 2 << 20;

/// When a commit waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SyncLog {
    /// A commit is durable when it returns.
    #[default]
    On,
    /// A commit does not wait. The log is written and synced twice a second, whatever else is going on. A crash of the
    /// machine or the process may lose the commits of the last half second, and of the time that the device takes to
    /// write them.
    Interval,
    /// The log is written when its buffer is full, and synced before pages are: a crash may lose what came after. Where
    /// changes are followed it is as [`Interval`](Self::Interval).
    Off,
}

impl SyncLog {
    /// The choice of this number; the default if there is none.
    pub(crate) fn of_number(number: u8) -> SyncLog {
        [SyncLog::On, SyncLog::Interval, SyncLog::Off]
            .into_iter()
            .find(|&choice| choice as u8 == number)
            .unwrap_or_default()
    }

    /// Says in the server's log what a crash may lose.
    pub(crate) fn warn(self) {
        match self {
            SyncLog::On => {}
            SyncLog::Interval => tracing::warn!(
                "sync_log is interval: a crash may lose the commits of the last half second, and of the time that the \
                 device takes to write them"
            ),
            SyncLog::Off => {
                tracing::warn!(
                    "sync_log is off: a crash may lose commits since the last checkpoint"
                );
            }
        }
    }
}

/// Sizes of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogOptions {
    /// Beyond this, checkpoints are due.
    pub limit_bytes: u64,
    /// The log is archived, and the archive may be behind by so many bytes.
    pub archive_lag_bytes: Option<u64>,
    /// What transactions change is followed ([`change_feed`]), and the followers may be behind by so many bytes.
    pub follow_lag_bytes: Option<u64>,
    /// Log in memory, beyond which it is written before anything is changed.
    pub buffer_bytes: u64,
}

/// How much log may be in memory beside a pool of so many bytes.
pub(crate) fn buffer_bytes(pool_bytes: usize) -> u64 {
    (pool_bytes as u64 / BUFFER_SHARE).clamp(MIN_BUFFER_BYTES, MAX_BUFFER_BYTES)
}

/// Most bytes of log in a chunk of a log with segments of this size.
fn max_chunk_bytes(segment_bytes: u64) -> usize {
    MAX_CHUNK_BYTES.min(segment_bytes as usize / 2)
}

/// See the [module](self).
pub(crate) struct Log {
    file: LogFile,
    options: LogOptions,
    buffer: Mutex<Buffer>,
    /// The end of the buffer, for threads that do not append.
    end: AtomicU64,
    flushed: AtomicU64,
    writer: Mutex<Writer>,
    commits: GroupCommit,
    /// Bytes that can be written without making a slot.
    free_bytes: AtomicU64,
    /// Bytes that rollbacks may need.
    reserved_bytes: AtomicU64,
    /// The archive has everything before; the largest number if there is none.
    archived: AtomicU64,
    /// Followers of changes have read everything before; the largest number if there are none.
    followed: AtomicU64,
    flushes: AtomicU64,
    written_bytes: AtomicU64,
    opened_at: Lsn,
    /// Recovery has read the log from here on.
    read_from: Lsn,
}

/// What the log has done since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogCounters {
    /// Syncs, each of which served all commits that waited for it.
    pub flushes: u64,
    /// Bytes written to the device, padding included.
    pub written_bytes: u64,
    /// Bytes of log before compression.
    pub appended_bytes: u64,
    /// The position at which the log ends.
    pub end: u64,
}

/// What was appended and not taken by a leader.
struct Buffer {
    bytes: Vec<u8>,
    end: u64,
    newest_commit_us: u64,
    /// The number of the next commit that gets one.
    next_number: u64,
}

impl Buffer {
    /// Makes room for so many bytes more. A buffer of megabytes does not double: with little memory, what it would take
    /// so is much, and nobody is asked for it.
    fn reserve(&mut self, bytes: usize) {
        let capacity = self.bytes.capacity();
        if bytes > capacity - self.bytes.len() {
            let step = match capacity < KEPT_BUFFER_BYTES {
                true => capacity,
                false => capacity / 4,
            };
            self.bytes.reserve_exact(bytes.max(step));
        }
    }
}

/// The file as the leader, and a checkpoint, see it.
struct Writer {
    /// Taken from the buffer and not written yet; it ends where the buffer begins.
    pending: Vec<u8>,
    pending_start: u64,
    segments: VecDeque<Segment>,
    free_slots: Vec<u32>,
    holds: Holds,
    slots: u32,
    /// Bytes used of the last segment.
    used: u64,
    staging: Arc<AlignedBuffer>,
    control: Control,
}

impl Log {
    /// The file of a log. Nothing is read or written.
    pub(crate) fn file(disk: &Arc<dyn Disk>, file: FileId, segment_bytes: u64) -> LogFile {
        LogFile {
            disk: disk.clone(),
            file,
            segment_bytes,
        }
    }

    /// Begins an empty log, whose control block says that the data file is being made. `earlier` is what an attempt to
    /// do so has left.
    pub(crate) fn create(
        file: LogFile,
        options: LogOptions,
        first_tree: u64,
        earlier: Option<Control>,
    ) -> Result<Log> {
        let control = Control {
            number: 0,
            segment_bytes: file.segment_bytes,
            state: LogState::Creating,
            epoch: earlier.map_or(1, |earlier| earlier.epoch + 1),
            first_segment: 1,
            redo_start: LOG_START,
            checkpoint_begin: LOG_START,
            next_tree: first_tree,
            next_transaction: 1,
            first_batch: 0,
            history: HistoryId::unique(),
            history_start: LOG_START,
            copy_end: Lsn(0),
            copied_at_us: 0,
            next_number: 1,
        };
        let number = earlier.map_or(0, |earlier| earlier.number + 1);
        let control = Control { number, ..control };
        control.write(&file)?;
        Self::with_end(file, options, control, LogEnd::at(LOG_START))
    }

    /// Goes on with a log that was read to its end. What the log of a copy goes on with is a history of its own.
    pub(crate) fn resume(
        file: LogFile,
        options: LogOptions,
        control: Control,
        mut end: LogEnd,
    ) -> Result<Log> {
        control.check_copy(&file, end.lsn)?;
        let read_from = end
            .segments
            .first()
            .map_or(end.lsn, |first| first.first_lsn);
        if options.archive_lag_bytes.is_some() || options.follow_lag_bytes.is_some() {
            end.segments.splice(0..0, end.earlier.drain(..));
        }
        let control = Control {
            number: control.number + 1,
            epoch: control.epoch + 1,
            ..match control.state {
                LogState::Copy => control.with_new_history(end.lsn),
                LogState::InUse | LogState::Creating => control,
            }
        };
        control.write(&file)?;
        let log = Self::with_end(file, options, control, end)?;
        Ok(Log { read_from, ..log })
    }

    fn with_end(file: LogFile, options: LogOptions, control: Control, end: LogEnd) -> Result<Log> {
        let slots = file.slots()?;
        let is_free = |slot: &u32| end.segments.iter().all(|segment| segment.slot != *slot);
        let staging =
            AlignedBuffer::zeroed(chunk::buffer_bytes(max_chunk_bytes(file.segment_bytes)))?;
        let writer = Writer {
            pending: Vec::new(),
            pending_start: end.lsn.0,
            free_slots: (0..slots).filter(is_free).rev().collect(),
            segments: end.segments.into(),
            holds: Holds::default(),
            slots,
            used: end.used,
            staging: Arc::new(staging),
            control,
        };
        let log = Log {
            file,
            options,
            buffer: Mutex::new(Buffer {
                bytes: Vec::new(),
                end: end.lsn.0,
                newest_commit_us: 0,
                next_number: control.next_number,
            }),
            end: AtomicU64::new(end.lsn.0),
            flushed: AtomicU64::new(end.lsn.0),
            free_bytes: AtomicU64::new(0),
            writer: Mutex::new(writer),
            commits: GroupCommit::new(),
            reserved_bytes: AtomicU64::new(0),
            archived: AtomicU64::new(u64::MAX),
            followed: AtomicU64::new(u64::MAX),
            flushes: AtomicU64::new(0),
            opened_at: end.lsn,
            read_from: end.lsn,
            written_bytes: AtomicU64::new(0),
        };
        if options.archive_lag_bytes.is_some() {
            log.note_archived(log.oldest());
        }
        if options.follow_lag_bytes.is_some() {
            log.note_followed(end.lsn);
        }
        match log.make_first_slots().and_then(|()| log.ensure_room()) {
            // A database on a full disk can be read.
            Err(StorageError::DiskFull { file }) => {
                tracing::warn!("no space left on the device for {file}");
            }
            result => result?,
        }
        Ok(log)
    }

    fn make_first_slots(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        self.note_free_bytes(&writer);
        while writer.slots < MIN_SLOTS {
            self.make_slot(&mut writer)?;
            self.note_free_bytes(&writer);
        }
        Ok(())
    }

    /// The end of the log: the position that the next frame begins at.
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.end.load(Ordering::Acquire))
    }

    /// Everything up to here is durable.
    pub(crate) fn flushed(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::Acquire))
    }

    /// Counters since the log was opened.
    pub(crate) fn counters(&self) -> LogCounters {
        LogCounters {
            flushes: self.flushes.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            appended_bytes: self.end().0 - self.opened_at.0,
            end: self.end().0,
        }
    }

    /// Adds a frame, and returns its LSN. Cannot fail.
    pub(crate) fn append(&self, frame: &[u8]) -> Lsn {
        let mut buffer = self.buffer.lock();
        // Every commit waits for the buffer: nobody makes room for it meanwhile.
        making_room(|| {
            buffer.reserve(frame.len());
            buffer.bytes.extend_from_slice(frame);
        });
        buffer.end += frame.len() as u64;
        self.end.store(buffer.end, Ordering::Release);
        Lsn(buffer.end)
    }

    /// Adds the commit of a transaction and, before any flush can cover it, calls `assigned` with its LSN. A thread
    /// that sees this LSN as flushed sees what `assigned` stores, in the order of LSNs. A thread that learns of the
    /// commit by what `assigned` stores can flush up to it. `assigned` must be short: every append waits for it.
    ///
    /// The times of commits ascend with their LSNs as long as the log is open, whatever the machine's clock does. A
    /// commit that is numbered gets the next number.
    pub(crate) fn append_commit(
        &self,
        transaction: TransactionId,
        is_numbered: bool,
        assigned: impl FnOnce(Lsn),
    ) -> Lsn {
        let clock_us = self.file.disk.wall_clock_us();
        let mut buffer = self.buffer.lock();
        let time_us = clock_us.max(buffer.newest_commit_us + 1);
        buffer.newest_commit_us = time_us;
        let number = is_numbered.then_some(buffer.next_number);
        buffer.next_number += u64::from(is_numbered);
        let before = buffer.bytes.len();
        making_room(|| frame::put_commit(&mut buffer.bytes, transaction, time_us, number));
        buffer.end += (buffer.bytes.len() - before) as u64;
        let lsn = Lsn(buffer.end);
        // A flush goes no further than the end.
        self.end.store(lsn.0, Ordering::Release);
        assigned(lsn);
        lsn
    }

    /// Numbers before this one were given to commits that the log has.
    pub(crate) fn reserve_numbers(&self, next: u64) {
        let mut buffer = self.buffer.lock();
        buffer.next_number = buffer.next_number.max(next);
    }

    /// The number that the next commit gets which gets one.
    pub(crate) fn next_number(&self) -> u64 {
        self.buffer.lock().next_number
    }

    /// When the newest commit was, in microseconds since 1970; 0 if there was none since the log was opened.
    pub(crate) fn newest_commit_us(&self) -> u64 {
        self.buffer.lock().newest_commit_us
    }

    /// Makes the log durable up to `lsn`.
    ///
    /// # Errors
    /// `DiskFull` if there is no room; it may be tried again. `Io` and `SyncFailed` are final.
    #[inline]
    pub(crate) fn flush_to(&self, lsn: Lsn) -> Result<()> {
        if self.flushed() >= lsn {
            return Ok(());
        }
        self.flush_slowly(lsn)
    }

    #[cold]
    fn flush_slowly(&self, lsn: Lsn) -> Result<()> {
        // A page of an abandoned bulk build may carry a position that the log did not keep.
        let lsn = lsn.min(self.end());
        while self.commits.lead(lsn, || self.flushed())? {
            let result = self.write();
            self.commits.end(&result);
            result?;
        }
        Ok(())
    }

    /// Nothing is made durable any more.
    pub(crate) fn stop(&self, reason: &StorageError) {
        self.commits.fail(reason);
    }

    /// Writes and syncs all that was appended so far. Called by the leader.
    fn write(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        {
            let mut buffer = self.buffer.lock();
            if writer.pending.is_empty() {
                let writer = &mut *writer;
                std::mem::swap(&mut writer.pending, &mut buffer.bytes);
            } else {
                making_room(|| writer.pending.append(&mut buffer.bytes));
            }
        }
        let end = writer.pending_start + writer.pending.len() as u64;
        self.commits.taken(Lsn(end));
        let mut written = 0;
        while written < writer.pending.len() {
            match self.write_chunk(&mut writer, written) {
                Ok(bytes) => written += bytes,
                Err(error) => {
                    // What was written without a sync is written again with the rest: at other places, after it.
                    writer.forget_written(written);
                    return Err(error);
                }
            }
        }
        self.file.sync()?;
        writer.pending.clear();
        writer.pending.shrink_to(KEPT_BUFFER_BYTES);
        writer.pending_start = end;
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.note_free_bytes(&writer);
        self.flushed.store(end, Ordering::Release);
        Ok(())
    }

    /// Writes the frames from `from` on that fit in a chunk. Returns how many bytes of log these are.
    fn write_chunk(&self, writer: &mut Writer, from: usize) -> Result<usize> {
        let segment_bytes = self.file.segment_bytes;
        let limit = max_chunk_bytes(segment_bytes);
        let lsn = Lsn(writer.pending_start + from as u64);
        let frames = &writer.pending[from..];
        // What is left of the segment is used up to the last frame that surely fits.
        let left = if writer.segments.is_empty() {
            0
        } else {
            chunk::surely_fits((segment_bytes - writer.used) as usize)
        };
        let mut bytes = self.whole_frames(frames, limit.min(left))?;
        if bytes == 0 {
            bytes = self.whole_frames(frames, limit)?;
            self.next_segment(writer, lsn)?;
        }
        let Some(&segment) = writer.segments.back() else {
            return Err(StorageError::Closed);
        };
        let epoch = writer.control.epoch;
        let (staging, pending) = (&mut writer.staging, &writer.pending);
        let Some(buffer) = Arc::get_mut(staging) else {
            return Err(StorageError::Closed);
        };
        let raw = &pending[from..from + bytes];
        let length = chunk::encode(buffer, raw, lsn, epoch, segment.sequence);
        let offset = self.file.slot_offset(segment.slot) + writer.used;
        self.file.write(&writer.staging, 0..length, offset)?;
        writer.used += length as u64;
        self.written_bytes
            .fetch_add(length as u64, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Bytes of the first frames that together have at most `limit`.
    fn whole_frames(&self, frames: &[u8], limit: usize) -> Result<usize> {
        let mut bytes = 0;
        while bytes < frames.len() {
            let frame = frame::length(&frames[bytes..])
                .map_err(|_| self.file.damaged("its buffer holds no frames"))?;
            if bytes + frame > limit {
                break;
            }
            bytes += frame;
        }
        Ok(bytes)
    }

    /// Begins the next segment, in a free slot or in a new one.
    fn next_segment(&self, writer: &mut Writer, first_lsn: Lsn) -> Result<()> {
        let slot = match writer.free_slots.pop() {
            Some(slot) => slot,
            None => {
                self.make_slot(writer)?;
                writer.free_slots.pop().ok_or(StorageError::Closed)?
            }
        };
        let sequence = match writer.segments.back() {
            Some(last) => last.sequence + 1,
            None => writer.control.first_segment,
        };
        writer.segments.push_back(Segment {
            sequence,
            slot,
            first_lsn,
        });
        writer.used = 0;
        Ok(())
    }

    fn make_slot(&self, writer: &mut Writer) -> Result<()> {
        self.file.make_slot(writer.slots)?;
        writer.free_slots.push(writer.slots);
        writer.slots += 1;
        Ok(())
    }

    fn note_free_bytes(&self, writer: &Writer) {
        let segment_bytes = self.file.segment_bytes;
        let in_last = if writer.segments.is_empty() {
            0
        } else {
            segment_bytes - writer.used
        };
        let free = writer.free_slots.len() as u64 * segment_bytes + in_last;
        self.free_bytes.store(free, Ordering::Relaxed);
    }

    /// To be called before a change, by a thread that holds no latch: makes sure that the change, and the rollbacks of
    /// all that was changed, find room in the log.
    ///
    /// # Errors
    /// `DiskFull`; what [`flush_to`](Self::flush_to) says.
    #[inline]
    pub(crate) fn ensure_room(&self) -> Result<()> {
        let buffered = self.end().0.saturating_sub(self.flushed().0);
        let needed = self.headroom() + buffered + self.reserved_bytes.load(Ordering::Relaxed);
        if buffered < self.options.buffer_bytes && needed <= self.free_bytes.load(Ordering::Relaxed)
        {
            return Ok(());
        }
        self.make_room()
    }

    /// Writes the log if much of it is in memory: for rollbacks, which have their room and do not ask for any. The
    /// caller holds no latch.
    #[inline]
    pub(crate) fn limit_buffer(&self) {
        let buffered = self.end().0.saturating_sub(self.flushed().0);
        if buffered >= self.options.buffer_bytes
            && let Err(error) = self.flush_to(self.end())
        {
            // The rollback goes on; threads that depend on the log being durable get the error.
            tracing::debug!("a rollback could not write the log: {error}");
        }
    }

    #[cold]
    fn make_room(&self) -> Result<()> {
        if self.end().0.saturating_sub(self.flushed().0) >= self.options.buffer_bytes {
            self.flush_to(self.end())?;
        }
        let mut writer = self.writer.lock();
        loop {
            let buffered = self.end().0.saturating_sub(self.flushed().0);
            let needed = self.headroom() + buffered + self.reserved_bytes.load(Ordering::Relaxed);
            if needed <= self.free_bytes.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.make_slot(&mut writer)
                .inspect_err(|error| self.commits.note(error))?;
            self.note_free_bytes(&writer);
        }
    }

    /// Room that is kept for what is under way in all threads, and for the padding of chunks.
    fn headroom(&self) -> u64 {
        HEADROOM_BYTES.min(self.file.segment_bytes / 2)
    }

    /// The archive has everything before `position`.
    pub(crate) fn note_archived(&self, position: Lsn) {
        self.archived.store(position.0, Ordering::Relaxed);
    }

    /// The archive has everything before this; the largest position if there is none.
    #[inline]
    pub(crate) fn archived(&self) -> Lsn {
        Lsn(self.archived.load(Ordering::Relaxed))
    }

    /// Bytes of log that the archive does not have, durable or not; 0 if there is none.
    #[inline]
    pub(crate) fn unarchived_bytes(&self) -> u64 {
        self.end().0.saturating_sub(self.archived().0)
    }

    /// Followers of changes have read everything before `position`.
    pub(crate) fn note_followed(&self, position: Lsn) {
        self.followed.store(position.0, Ordering::Relaxed);
    }

    /// To be called before a change.
    ///
    /// # Errors
    /// `ArchiveBehind` and `FollowersBehind`: what is not archived, or not followed, is too much already.
    #[inline]
    pub(crate) fn check_readers(&self) -> Result<()> {
        if let Some(limit) = self.options.follow_lag_bytes
            && self
                .end()
                .0
                .saturating_sub(self.followed.load(Ordering::Relaxed))
                > limit
        {
            return Err(StorageError::FollowersBehind { limit });
        }
        match self.options.archive_lag_bytes {
            Some(limit) if self.unarchived_bytes() > limit => {
                Err(StorageError::ArchiveBehind { limit })
            }
            _ => Ok(()),
        }
    }

    /// Reserves room for a rollback, or releases it.
    pub(crate) fn reserve(&self, bytes: u64) {
        self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Releases what was reserved.
    pub(crate) fn unreserve(&self, bytes: u64) {
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes written to the device, and waiting to be written.
    #[inline]
    pub(crate) fn volume(&self) -> u64 {
        let buffered = self.end().0.saturating_sub(self.flushed().0);
        self.written_bytes.load(Ordering::Relaxed) + buffered
    }

    /// Bytes of log from which on a checkpoint is due.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.options.limit_bytes
    }

    /// What the last control block says.
    pub(crate) fn control(&self) -> Control {
        self.writer.lock().control
    }

    /// A checkpoint is complete: recovery needs the log only from `redo_start` on. Frees the segments before it.
    /// `change` fills in what else the checkpoint knows.
    pub(crate) fn advance(&self, redo_start: Lsn, change: impl FnOnce(&mut Control)) -> Result<()> {
        // The commits that have the numbers before are durable when the block says so.
        let next_number = self.next_number();
        // Recovery must find the log at least up to its start, and the ends of transactions that are not live any more.
        self.flush_to(self.end())?;
        let mut writer = self.writer.lock();
        let mut control = writer.control;
        change(&mut control);
        control.next_number = next_number;
        control.number += 1;
        control.redo_start = redo_start;
        if let Some(first) = writer.segments.get(writer.place_of(redo_start)) {
            control.first_segment = first.sequence;
        }
        control
            .write(&self.file)
            .inspect_err(|error| self.commits.fail(error))?;
        writer.control = control;
        let keep = writer.place_of(redo_start.min(writer.holds.oldest()));
        let recycled: Vec<u32> = writer
            .segments
            .drain(..keep)
            .map(|segment| segment.slot)
            .collect();
        writer.free_slots.extend(recycled);
        self.note_free_bytes(&writer);
        Ok(())
    }
}

impl Writer {
    /// Where among the segments the one is that has this position; the first one if none has it.
    fn place_of(&self, lsn: Lsn) -> usize {
        let holds_it = |segment: &Segment| segment.first_lsn <= lsn;
        self.segments.iter().rposition(holds_it).unwrap_or(0)
    }

    /// Chunks were written that a failure has made worthless, or that will be followed by the others later.
    fn forget_written(&mut self, bytes: usize) {
        // The chunks stay where they are; they are valid, and what follows continues them.
        self.pending.drain(..bytes);
        self.pending_start += bytes as u64;
    }
}
