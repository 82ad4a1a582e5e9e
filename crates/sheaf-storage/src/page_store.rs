//! The page store: the data file's pages, its free space, its log, and the changes under way.
//!
//! The pages in memory are the newest; those on disk may be older, and together with the log they are enough to make
//! the newest again. A thread that changes pages holds a [`ChangePermit`], which a clean shutdown waits for, and
//! ensures room in the log first. The live transactions are known here, because the log is kept from the first change
//! of the oldest one on.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::disk::{Disk, FileId};
use crate::durability::checkpointer::{Pace, Schedule};
use crate::error::{Result, StorageError};
use crate::log::frame::{self, Note};
use crate::log::mini_transaction::MiniTransaction;
use crate::log::redo::RedoRecord;
use crate::log::unlogged::UnloggedWrites;
use crate::log::{Log, LogState, SyncLog};
use crate::page::{Lsn, PageDamage, PageId, TreeId};
use crate::pool::buffer_pool::BufferPool;
use crate::pool::doublewrite::Doublewrite;
use crate::pool::write_back::WriteProtection;
use crate::space::extent::{
    self, EXTENTS_PER_GROUP, FILE_HEADER_PAGE, PAGES_PER_EXTENT, PageRequest, Space,
};
use crate::space::file_header::FileHeader;
use crate::space::orphaned_pages::OrphanedPages;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};
use crate::transaction::TransactionId;
use crate::transaction::system::TransactionSystem;

/// The share of the log's limit after which a change waits for a checkpoint, if none was made: 1 / this.
const FOREGROUND_CHECKPOINT_SHARE: u64 = 2;

/// A checkpoint is due when the log has grown by its limit divided by this, if it is not due before.
const CHECKPOINT_SHARE: u64 = 4;

/// Bytes of log that recovery reads in a second, until it was measured.
const ASSUMED_RECOVERY_SPEED: u64 = 64 << 20;

/// A recovery of this much log, and more, is a measurement.
const MEASURED_BYTES: u64 = 64 << 20;

/// The share of the log's limit that the log may grow by during a checkpoint which no thread waits for: 1 / this.
/// Together with what makes a checkpoint due it stays below the share above.
const SWEEP_SHARE: u64 = 5;

/// Pages, space and log of one data file.
pub(crate) struct PageStore {
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) space: Space,
    pub(crate) log: Arc<Log>,
    pub(crate) doublewrite: Arc<Doublewrite>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) file: FileId,
    /// Frames of the pool when it was opened.
    pub(crate) frames: u64,
    /// What transactions share.
    pub(crate) transactions: TransactionSystem,
    /// A [`SyncLog`], by its number.
    sync_log: AtomicU8,
    /// Recovery rolls back: ghosts of transactions without an end have no versions, and must stay nevertheless.
    keeps_ghosts: AtomicBool,
    next_tree: AtomicU64,
    next_transaction: AtomicU64,
    /// Live transactions that have changed something, each with a place in the log before its first change.
    live: Mutex<BTreeMap<TransactionId, LiveTransaction>>,
    changes: Mutex<Changes>,
    changes_ended: Condvar,
    pub(crate) orphaned_pages: OrphanedPages,
    /// Checkpoints that a thread waits for.
    awaited_checkpoints: AtomicU64,
    /// Bytes of log that recovery has read, while no checkpoint was made since.
    recovered_bytes: AtomicU64,
    /// Bytes of log that recovery reads in a second.
    recovery_speed: AtomicU64,
    /// Held during a checkpoint. A process with the log's end at the last one, and nothing new since, is clean.
    checkpoint: Mutex<()>,
    /// What the log had written when the last checkpoint began.
    checkpoint_volume: AtomicU64,
    /// Writes the counts of trees to the directory, for checkpoints that a change asks for.
    counts_writer: OnceLock<CountsWriter>,
    /// Held while the file grows.
    growth: Mutex<()>,
    /// Writes of pages that are not in the log, and whether they are forbidden.
    pub(crate) unlogged: Arc<UnloggedWrites>,
    follows_changes: bool,
}

type CountsWriter = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// What ends the user of a transaction, which is rolled back then. Called by a background thread.
pub type EndTransaction = Box<dyn FnOnce() + Send + Sync>;

/// A transaction that has changed something, and has not ended.
struct LiveTransaction {
    /// Before its first change.
    first: Lsn,
    /// Gone when it was called.
    end: Option<EndTransaction>,
}

struct Changes {
    permits: usize,
    /// Why no more changes are accepted, if they are not.
    refused: Option<StorageError>,
}

/// The right to change pages. A clean shutdown waits for its end.
pub(crate) struct ChangePermit {
    store: Arc<PageStore>,
}

impl Drop for ChangePermit {
    fn drop(&mut self) {
        let mut changes = self.store.changes.lock();
        changes.permits -= 1;
        // Only a shutdown waits, and a wake-up is a system call even if no thread waits.
        if changes.permits == 0 && changes.refused.is_some() {
            self.store.changes_ended.notify_all();
        }
    }
}

/// What a page store is made of.
pub(crate) struct Parts {
    /// The log has what followers of changes need.
    pub(crate) follows_changes: bool,
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) file: FileId,
    pub(crate) log: Log,
    pub(crate) doublewrite: Doublewrite,
    pub(crate) transactions: TransactionSystem,
    pub(crate) sync_log: SyncLog,
}

impl PageStore {
    /// A store whose space is not known yet.
    pub(crate) fn new(parts: Parts) -> PageStore {
        let control = parts.log.control();
        let (log, doublewrite) = (Arc::new(parts.log), Arc::new(parts.doublewrite));
        parts.pool.protect(WriteProtection {
            log: log.clone(),
            doublewrite: doublewrite.clone(),
        });
        // Snapshots see everything that the log has so far.
        parts.transactions.snapshots.advance_to(log.end());
        PageStore {
            frames: parts.pool.counters().pages_total,
            pool: parts.pool,
            space: Space::new(),
            log,
            doublewrite,
            disk: parts.disk,
            file: parts.file,
            transactions: parts.transactions,
            sync_log: AtomicU8::new(parts.sync_log as u8),
            keeps_ghosts: AtomicBool::new(false),
            next_tree: AtomicU64::new(control.next_tree),
            next_transaction: AtomicU64::new(control.next_transaction),
            live: Mutex::new(BTreeMap::new()),
            changes: Mutex::new(Changes {
                permits: 0,
                refused: None,
            }),
            changes_ended: Condvar::new(),
            orphaned_pages: OrphanedPages::none(),
            awaited_checkpoints: AtomicU64::new(0),
            recovered_bytes: AtomicU64::new(0),
            recovery_speed: AtomicU64::new(ASSUMED_RECOVERY_SPEED),
            checkpoint: Mutex::new(()),
            checkpoint_volume: AtomicU64::new(0),
            counts_writer: OnceLock::new(),
            growth: Mutex::new(()),
            unlogged: Arc::default(),
            follows_changes: parts.follows_changes,
        }
    }

    /// Whether the log has what followers of changes need.
    pub(crate) fn follows_changes(&self) -> bool {
        self.follows_changes
    }

    /// Makes the first extent of an empty file.
    pub(crate) fn format(&self) -> Result<()> {
        self.pool.extend_to(PAGES_PER_EXTENT)?;
        self.space.add_extent(extent::FIXED_PAGES, TreeId(0));
        let mut change = MiniTransaction::begin(self);
        let map = change.add(self.pool.create(extent::map_of_group(0))?);
        let header_page = change.add(self.pool.create(FILE_HEADER_PAGE)?);
        change.commit(&[
            (map, RedoRecord::FormatExtentMap { group: 0 }),
            (
                map,
                RedoRecord::SetExtent {
                    extent: 0,
                    used: extent::FIXED_PAGES,
                    owner: TreeId(0),
                },
            ),
            (
                header_page,
                RedoRecord::WriteFileHeader {
                    contents: FileHeader::new(),
                },
            ),
        ])?;
        Ok(())
    }

    /// Checks that the file is one of ours, before anything is done to it.
    pub(crate) fn check_header(&self) -> Result<()> {
        let header = FileHeader::read(&*self.pool.shared(FILE_HEADER_PAGE)?);
        header.map_err(|reason| StorageError::UnknownFormat {
            file: self.file_name(),
            reason,
        })?;
        Ok(())
    }

    /// Reads the extent maps, which redo has brought up to date.
    pub(crate) fn read_extent_maps(&self) -> Result<()> {
        let extents = (self.pool.page_count() / PAGES_PER_EXTENT) as usize;
        for group in 0..extents.div_ceil(EXTENTS_PER_GROUP) {
            let map = match self.pool.shared(extent::map_of_group(group)) {
                Ok(map) => map,
                // The file had just grown into the group when the process ended.
                Err(StorageError::Corrupt {
                    damage: PageDamage::Checksum { stored: 0, .. },
                    ..
                }) if group > 0 && (group + 1) * EXTENTS_PER_GROUP >= extents => break,
                Err(error) => return Err(error),
            };
            for place in 0..EXTENTS_PER_GROUP.min(extents - group * EXTENTS_PER_GROUP) {
                let (used, owner) = extent::map_page::extent(&map, place);
                self.space.add_extent(used, owner);
            }
        }
        Ok(())
    }

    pub(crate) fn file_name(&self) -> String {
        self.disk.file_name(self.file)
    }

    /// Makes durable what was written past the buffer pool.
    ///
    /// # Errors
    /// The sync failed. It covered pages that were written back as well, so no more changes are accepted.
    pub(crate) fn sync_file(&self) -> Result<()> {
        self.pool
            .sync()
            .inspect_err(|error| self.refuse_changes(error.clone()))
    }

    /// The error for a page that is intact but cannot be what it claims.
    pub(crate) fn malformed(
        &self,
        tree: TreeId,
        page: PageId,
        reason: impl Into<String>,
    ) -> StorageError {
        StorageError::Malformed {
            file: self.file_name(),
            page,
            tree,
            reason: reason.into(),
        }
    }

    /// A number that no tree had before.
    pub(crate) fn new_tree_id(&self) -> TreeId {
        TreeId(self.next_tree.fetch_add(1, Ordering::Relaxed))
    }

    /// Reserves a page; the file grows when it has none left.
    pub(crate) fn reserve_page(&self, request: PageRequest) -> Result<PageId> {
        loop {
            match self.space.allocate_page(request) {
                Ok(page) => return Ok(page),
                Err(extent::NoFreeExtent) => self.grow()?,
            }
        }
    }

    /// Reserves an extent; the file grows when it has none left.
    pub(crate) fn reserve_extent(&self, tree: TreeId, previous: Option<usize>) -> Result<usize> {
        loop {
            match self.space.allocate_extent(tree, previous) {
                Ok(extent) => return Ok(extent),
                Err(extent::NoFreeExtent) => self.grow()?,
            }
        }
    }

    /// Makes the file longer. A full disk is an error and changes nothing.
    fn grow(&self) -> Result<()> {
        let before = self.space.extent_count();
        let _growth = self.growth.lock();
        if self.space.extent_count() != before {
            return Ok(());
        }
        let wanted = self.space.growth();
        let fewest = wanted.min(2);
        let grown = match self
            .pool
            .extend_to((before + wanted) as u64 * PAGES_PER_EXTENT)
        {
            Ok(()) => wanted,
            // Perhaps a little is left.
            Err(_) if fewest < wanted => {
                self.pool
                    .extend_to((before + fewest) as u64 * PAGES_PER_EXTENT)?;
                fewest
            }
            Err(error) => return Err(error),
        };
        for extent in before..before + grown {
            if extent.is_multiple_of(EXTENTS_PER_GROUP) {
                self.create_extent_map(extent / EXTENTS_PER_GROUP)?;
            }
            self.space.add_free_extent();
        }
        Ok(())
    }

    fn create_extent_map(&self, group: usize) -> Result<()> {
        let mut change = MiniTransaction::begin(self);
        let map = change.add(self.pool.create(extent::map_of_group(group))?);
        let used = extent::GROUP_PAGES;
        change.commit(&[
            (
                map,
                RedoRecord::FormatExtentMap {
                    group: group as u64,
                },
            ),
            (
                map,
                RedoRecord::SetExtent {
                    extent: 0,
                    used,
                    owner: TreeId(0),
                },
            ),
        ])?;
        Ok(())
    }

    /// Enters in the extent maps which pages of these extents (ascending) a tree uses, and after that in memory.
    /// Between the two, pages that become free are dropped from the pool. This comes after the end of their lives is in
    /// the log: a checkpoint could otherwise leave out what redo then applies to an old page. And it comes before
    /// another change takes them.
    pub(crate) fn set_extents(
        &self,
        extents: &[(usize, u64)],
        owner: TreeId,
        note: Note<'_>,
    ) -> Result<()> {
        for group in
            extents.chunk_by(|(a, _), (b, _)| a / EXTENTS_PER_GROUP == b / EXTENTS_PER_GROUP)
        {
            let mut change = MiniTransaction::begin(self);
            let map = change
                .latch(extent::map_of(group[0].0).0)
                .inspect_err(|_| self.note_lost_pages())?;
            let records: Vec<_> = group
                .iter()
                .map(|&(extent, used)| {
                    let place = extent::map_of(extent).1;
                    (
                        map,
                        RedoRecord::SetExtent {
                            extent: place,
                            used,
                            owner,
                        },
                    )
                })
                .collect();
            change
                .commit_noted(note, &records, || ())
                .inspect_err(|_| self.note_lost_pages())?;
            for &(extent, used) in group {
                for place in (0..PAGES_PER_EXTENT as u32).filter(|place| used >> place & 1 == 0) {
                    self.pool.discard(extent::page_in(extent, place));
                }
                self.space.set_used(extent, used);
            }
        }
        Ok(())
    }

    /// Frees single pages (ascending) that no thread can reach any more.
    pub(crate) fn free_pages(&self, pages: &[PageId]) -> Result<()> {
        let group = |page: &PageId| extent::locate(*page).0 / EXTENTS_PER_GROUP;
        for pages in pages.chunk_by(|a, b| group(a) == group(b)) {
            let mut change = MiniTransaction::begin(self);
            pages.iter().for_each(|&page| change.free(page));
            change.commit(&[]).inspect_err(|_| self.note_lost_pages())?;
        }
        Ok(())
    }

    /// Pages could not be freed. They are found again when recovery looks for pages without a tree, so a clean start
    /// must not skip it.
    pub(crate) fn note_lost_pages(&self) {
        self.orphaned_pages.note();
    }

    /// A number that no transaction had before.
    pub(crate) fn new_transaction_id(&self) -> TransactionId {
        TransactionId(self.next_transaction.fetch_add(1, Ordering::Relaxed))
    }

    /// The transaction is live from now on: it is about to change something.
    pub(crate) fn begin_transaction(&self, id: TransactionId, end: Option<EndTransaction>) {
        let mut live = self.live.lock();
        let first = self.log.end();
        live.insert(id, LiveTransaction { first, end });
    }

    /// Ends the users of transactions that keep more than so many bytes of the log, each of them once.
    pub(crate) fn end_transactions_that_keep(&self, limit_bytes: u64) {
        let log_end = self.log.end();
        let mut ends = Vec::new();
        for (id, live) in self.live.lock().iter_mut() {
            let kept_bytes = log_end.0.saturating_sub(live.first.0);
            if kept_bytes > limit_bytes
                && let Some(end) = live.end.take()
            {
                ends.push((*id, kept_bytes, end));
            }
        }
        // They may end at once, and come back for that.
        for (id, kept_bytes, end) in ends {
            tracing::warn!(
                "transaction {id} is ended: it keeps {kept_bytes} bytes of the log, more than max_pinned_log_bytes"
            );
            end();
        }
    }

    /// Whether ghosts without versions may belong to transactions without an end.
    #[inline]
    pub(crate) fn keeps_ghosts(&self) -> bool {
        self.keeps_ghosts.load(Ordering::Relaxed)
    }

    /// Says whether recovery is rolling back.
    pub(crate) fn keep_ghosts(&self, keep: bool) {
        self.keeps_ghosts.store(keep, Ordering::Relaxed);
    }

    /// The transaction has its last record in the log.
    pub(crate) fn end_transaction(&self, id: TransactionId) {
        self.live.lock().remove(&id);
    }

    /// A transaction found in the log is live until it is rolled back.
    pub(crate) fn add_live(&self, id: TransactionId, first: Lsn) {
        let live = LiveTransaction { first, end: None };
        self.live.lock().insert(id, live);
    }

    /// Numbers below these are taken.
    pub(crate) fn reserve_numbers(&self, tree: u64, transaction: u64) {
        self.next_tree.fetch_max(tree, Ordering::Relaxed);
        self.next_transaction
            .fetch_max(transaction, Ordering::Relaxed);
    }

    /// Waits until the commit record at `lsn` is durable, if commits wait.
    pub(crate) fn make_commit_durable(&self, lsn: Lsn) -> Result<()> {
        match self.sync_log() {
            SyncLog::On => self.flush_log(lsn),
            SyncLog::Interval | SyncLog::Off => Ok(()),
        }
    }

    /// Makes the commits up to `lsn` durable. If that has failed for good, nothing can be changed any more.
    pub(crate) fn flush_log(&self, lsn: Lsn) -> Result<()> {
        self.log.flush_to(lsn).inspect_err(|error| match error {
            // There was room before the first change; a file system may run out of it nevertheless. The record stays in
            // the log's buffer, before all that comes later, and reaches the disk when there is space again.
            StorageError::DiskFull { .. } => {}
            // The record may reach the disk or not: nothing may be done any more that assumes either.
            _ => self.refuse_changes(error.clone()),
        })
    }

    /// Because of this error it is unknown what will become of a commit: nothing is made durable any more that depends
    /// on it.
    pub(crate) fn stop(&self, error: &StorageError) {
        tracing::error!("{error}; nothing can be changed until the next start");
        let reason = match error {
            // There may be space again, and that does not help.
            StorageError::DiskFull { file } => StorageError::SyncFailed { file: file.clone() },
            error => error.clone(),
        };
        self.log.stop(&reason);
        self.refuse_changes(reason);
    }

    /// Makes all durable that has committed so far, and lets snapshots that are taken from now on see it.
    pub(crate) fn show_commits(&self) -> Result<()> {
        self.show_commits_to(self.transactions.newest_commit())
    }

    /// As [`Self::show_commits`], up to a commit that was seen.
    pub(crate) fn show_commits_to(&self, lsn: Lsn) -> Result<()> {
        if lsn > self.transactions.snapshots.newest() {
            self.make_commit_durable(lsn)?;
            // Without a flush, the newest may be about to get its status.
            self.transactions.settled_at_least(lsn);
            self.transactions.snapshots.advance_to(lsn);
        }
        Ok(())
    }

    /// Commits up to here will be found after a crash, or are as durable as the options ask for.
    pub(crate) fn newest_durable(&self) -> Lsn {
        match self.sync_log() {
            SyncLog::On => self.log.flushed(),
            SyncLog::Interval | SyncLog::Off => self.log.end(),
        }
    }

    pub(crate) fn sync_log(&self) -> SyncLog {
        SyncLog::of_number(self.sync_log.load(Ordering::Relaxed))
    }

    pub(crate) fn set_sync_log(&self, sync_log: SyncLog) {
        self.sync_log.store(sync_log as u8, Ordering::Relaxed);
    }

    /// Allows changes until the permit is dropped.
    pub(crate) fn begin_changes(self: &Arc<Self>) -> Result<ChangePermit> {
        self.make_log_room()?;
        let mut changes = self.changes.lock();
        if let Some(reason) = &changes.refused {
            return Err(reason.clone());
        }
        changes.permits += 1;
        Ok(ChangePermit {
            store: self.clone(),
        })
    }

    /// To be called before a change, by a thread that holds no latch: the log has room for it on return.
    #[inline]
    pub(crate) fn make_log_room(&self) -> Result<()> {
        self.log.check_readers()?;
        if self.log_since_checkpoint() > self.log.limit_bytes() / FOREGROUND_CHECKPOINT_SHARE {
            self.checkpoint_for_room()?;
        }
        match self.log.ensure_room() {
            // Segments that are not needed any more are room, too.
            Err(StorageError::DiskFull { .. }) => {
                self.checkpoint_for_room()?;
                self.log.ensure_room()
            }
            result => result,
        }
    }

    /// Makes a checkpoint because the log is long, unless another thread just has.
    #[cold]
    fn checkpoint_for_room(&self) -> Result<()> {
        let seen = self.checkpoint_volume.load(Ordering::Relaxed);
        self.checkpoint_unless(
            || {
                let write_counts = self.counts_writer.get();
                write_counts.map_or(Ok(()), |write_counts| write_counts())
            },
            |store| store.checkpoint_volume.load(Ordering::Relaxed) != seen,
            Pace::Fast,
        )
    }

    /// To be called once: how counts are written before a checkpoint that a change asks for.
    pub(crate) fn set_counts_writer(&self, write_counts: CountsWriter) {
        let _ = self.counts_writer.set(write_counts);
    }

    /// # Errors
    /// Why no changes are accepted, if they are not.
    pub(crate) fn check_changes(&self) -> Result<()> {
        match &self.changes.lock().refused {
            Some(reason) => Err(reason.clone()),
            None => Ok(()),
        }
    }

    /// Something is wrong that only the next start can repair: accepts no more changes.
    pub(crate) fn refuse_changes(&self, reason: StorageError) {
        self.changes.lock().refused.get_or_insert(reason);
    }

    /// Makes a fuzzy checkpoint: all pages that are dirty at its beginning are written, and recovery will read the log
    /// from there on. `prepare` may make changes that belong to it.
    ///
    /// The begin is a place in the log. A mini-transaction before it had announced its pages as dirty when the place
    /// was taken, so the sweep that follows finds them; the log after it is kept. So is the log of live transactions,
    /// from the first change of the oldest one on: their undo is in it.
    pub(crate) fn checkpoint(
        &self,
        prepare: impl FnOnce() -> Result<()>,
        pace: Pace<'_>,
    ) -> Result<()> {
        self.checkpoint_unless(prepare, |_| false, pace)
    }

    fn checkpoint_unless(
        &self,
        prepare: impl FnOnce() -> Result<()>,
        is_done: impl FnOnce(&PageStore) -> bool,
        pace: Pace<'_>,
    ) -> Result<()> {
        let is_awaited = u64::from(matches!(pace, Pace::Fast));
        self.awaited_checkpoints
            .fetch_add(is_awaited, Ordering::Relaxed);
        let _one_at_a_time = self.checkpoint.lock();
        self.awaited_checkpoints
            .fetch_sub(is_awaited, Ordering::Relaxed);
        if is_done(self) {
            return Ok(());
        }
        prepare()?;
        let volume = self.log.volume();
        let ended = self.orphaned_pages.ended();
        let begin = self.log.end();
        let last = self.log.control();
        let is_known = match self.orphaned_pages.may_be_in_checkpoint(ended) {
            // Nothing has happened since the mark.
            true => self.orphaned_pages.mark() == Some(begin),
            false => {
                begin == last.checkpoint_begin
                    && self.redo_start(begin) == last.redo_start
                    && last.state == LogState::InUse
            }
        };
        if is_known {
            return Ok(());
        }
        // Numbers are taken before they are used in the log, so those used before `begin` lie below these.
        let next_tree = self.next_tree.load(Ordering::Relaxed);
        let next_transaction = self.next_transaction.load(Ordering::Relaxed);
        let first_batch = self.doublewrite.next_batch();
        let schedule = Schedule::new(volume, self.log.limit_bytes() / SWEEP_SHARE);
        let hurries = || self.awaited_checkpoints.load(Ordering::Relaxed) > 0;
        let swept = self
            .pool
            .sweep(pace, &schedule, || self.log.volume(), hurries);
        swept.inspect_err(|error| {
            if matches!(error, StorageError::SyncFailed { .. }) || is_failed_sync(error) {
                self.refuse_changes(error.clone());
            }
        })?;
        // Before the checkpoint counts: after a crash in between, the lost pages would be unknown.
        let mark = match self.orphaned_pages.may_be_in_checkpoint(ended) {
            true => Some(self.leave_something_to_recover()?),
            false => None,
        };
        self.log.advance(self.redo_start(begin), |control| {
            control.state = LogState::InUse;
            control.checkpoint_begin = begin;
            control.next_tree = next_tree;
            control.next_transaction = next_transaction;
            control.first_batch = first_batch;
        })?;
        self.orphaned_pages.set_mark(mark);
        self.checkpoint_volume.store(volume, Ordering::Relaxed);
        self.recovered_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Logs a frame without changes: the next start recovers, and so looks for lost pages.
    fn leave_something_to_recover(&self) -> Result<Lsn> {
        let lsn = self.log.append(&frame::encode_nothing());
        self.log.flush_to(lsn)?;
        Ok(lsn)
    }

    /// Recovery has read this much log, in this time.
    pub(crate) fn note_recovered(&self, bytes: u64, elapsed_ns: u64) {
        self.recovered_bytes.store(bytes, Ordering::Relaxed);
        if bytes >= MEASURED_BYTES {
            let speed = u128::from(bytes) * 1_000_000_000 / u128::from(elapsed_ns.max(1));
            self.recovery_speed.store(speed as u64, Ordering::Relaxed);
        }
    }

    /// Bytes of log since the last checkpoint from which on another one is due, so that recovery takes no longer than
    /// `recovery_time_goal`. It is half of what recovery reads in that time, because the log grows on while the
    /// checkpoint is made.
    pub(crate) fn checkpoint_due_bytes(&self, recovery_time_goal: Duration) -> u64 {
        let speed = self.recovery_speed.load(Ordering::Relaxed);
        let bytes = speed as f64 * recovery_time_goal.as_secs_f64() / 2.0;
        (bytes as u64).min(self.log.limit_bytes() / CHECKPOINT_SHARE)
    }

    /// Whether a checkpoint is being made right now.
    pub(crate) fn checkpoint_is_under_way(&self) -> bool {
        self.checkpoint.try_lock().is_none()
    }

    /// Where recovery would begin after a checkpoint that began at `begin`, as far as live transactions allow.
    fn redo_start(&self, begin: Lsn) -> Lsn {
        let oldest = self.live.lock().values().map(|live| live.first).min();
        oldest.map_or(begin, |oldest| oldest.min(begin))
    }

    /// Bytes that the log has written since the last checkpoint began, also before the storage was opened.
    #[inline]
    pub(crate) fn log_since_checkpoint(&self) -> u64 {
        let before = self.checkpoint_volume.load(Ordering::Relaxed);
        let recovered = self.recovered_bytes.load(Ordering::Relaxed);
        self.log.volume().saturating_sub(before) + recovered
    }

    /// Waits until no change is under way, accepts no more of them, and makes a last checkpoint.
    pub(crate) fn close(&self, prepare: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut changes = self.changes.lock();
        match changes.refused.replace(StorageError::Closed) {
            None => {}
            Some(StorageError::Closed) => return Ok(()),
            Some(reason) => return Err(reason),
        }
        while changes.permits > 0 {
            changes = self.changes_ended.wait(changes);
        }
        drop(changes);
        self.checkpoint(prepare, Pace::Fast)
    }
}

/// Whether an fsync has failed: what the device has is unknown then.
fn is_failed_sync(error: &StorageError) -> bool {
    matches!(
        error,
        StorageError::Io {
            operation: "sync",
            ..
        }
    )
}
