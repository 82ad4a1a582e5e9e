//! Recovery: from the pages on disk and the log to the state in which all that was acknowledged is there, and nothing
//! else.
//!
//! ```text
//!   repair    torn pages from the doublewrite area
//!   analysis  log from the redo start to its end: live transactions, where pages begin a new life
//!   redo      log again: every change that its page does not have yet, page by page within a window of the log
//!   space     pages and extents of trees that do not exist are freed; counts are brought up to date
//!   undo      transactions that were live are rolled back, as at run time
//! ```
//!
//! (Mohan et al., ARIES, 1992.) There is no record of dirty pages: a checkpoint has written all that were dirty when it
//! began. All steps change pages and log as at run time, or not at all, so a crash in any of them is recovered in the
//! same way.
//!
//! **Lives of pages.** A page that is freed is dropped from memory without being written. So what the disk has of it
//! may be older than the redo start, and records of that life do not fit it. Their result is not needed either. So
//! analysis notes for each page the last record that begins or ends a life (an image, a format, a free). The
//! [redo](redo_window) skips what comes before that record, and at an image starts with an empty page, whatever the
//! disk holds. A bulk build writes pages past the log: entering their extent in its map counts as an end as well, and
//! the pages are on disk by then.
//!
//! **Space.** A page is taken for a tree in one mini-transaction, and the tree enters the directory in another. Between
//! both a crash leaves pages of a tree that does not exist. Every page names the tree it belongs to. So recovery looks
//! at the pages in shared extents (about one in a hundred) and at the owners of the other extents, and frees what
//! belongs to no tree. On the way it counts the pages of each tree. Counts of entries follow from the log, and are
//! estimates after a crash.

mod redo_window;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Result, StorageError};
use crate::log::bytes::Damaged;
use crate::log::frame::{self, Frame, Note};
use crate::log::redo::RedoRecord;
use crate::log::{Control, LogEnd, LogFile, LogReader, LogState, redo_codec};
use crate::node::PageImage;
use crate::page::{Lsn, PAGE_SIZE, PageId, TreeId};
use crate::page_store::PageStore;
use crate::space::extent::{self, EXTENTS_PER_GROUP, PAGES_PER_EXTENT};
use crate::sync;
use crate::transaction::spill_file::SpillFile;
use crate::transaction::undo_stack::{UndoRecord, UndoStack, part_before};
use crate::transaction::{Change, TransactionId};

use redo_window::RedoWindow;

/// Progress is reported this often.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// What the log says before anything is done.
pub(crate) struct Analysis {
    pub(crate) end: LogEnd,
    /// There is something to recover.
    pub(crate) is_needed: bool,
    /// For each page the last record that began or ended a life of it.
    lives: BTreeMap<PageId, Lsn>,
    /// The same for all pages of an extent but the group's own.
    lives_of_extents: BTreeMap<usize, Lsn>,
    /// Live transactions: what is to be rolled back.
    pub(crate) losers: BTreeMap<TransactionId, Loser>,
    /// Entries that trees won or lost since their counts were written.
    pub(crate) entries: BTreeMap<TreeId, i64>,
    /// Numbers from here on were not used.
    pub(crate) next_tree: u64,
    pub(crate) next_transaction: u64,
    /// Numbers of commits before this one were given out.
    pub(crate) next_number: u64,
    /// Numbers of commits count from here on: before, they are those of the database of which this is a copy.
    numbers_start: Lsn,
    /// The data file must have at least so many pages.
    pages: u64,
    /// The spill file has taken what it was given so far.
    spills: bool,
}

/// A transaction without an end.
pub(crate) struct Loser {
    pub(crate) first: Lsn,
    pub(crate) undo: UndoStack,
}

/// Reads the log from the redo start to its end.
///
/// Undo that memory has no room for is spilled.
pub(crate) fn analyse(
    file: &LogFile,
    control: &Control,
    spill: &Arc<SpillFile>,
) -> Result<Analysis> {
    let mut reader = LogReader::open(file, control)?;
    let mut analysis = Analysis {
        end: LogEnd::empty(),
        is_needed: false,
        lives: BTreeMap::new(),
        lives_of_extents: BTreeMap::new(),
        losers: BTreeMap::new(),
        entries: BTreeMap::new(),
        next_tree: control.next_tree,
        next_transaction: control.next_transaction,
        next_number: match control.state {
            LogState::Copy => 1,
            LogState::InUse | LogState::Creating => control.next_number,
        },
        numbers_start: match control.state {
            LogState::Copy => Lsn(u64::MAX),
            LogState::InUse | LogState::Creating => control.history_start,
        },
        pages: 0,
        spills: true,
    };
    let mut progress = Progress::new("reading the log");
    let mut scratch = Box::new([0; PAGE_SIZE]);
    for_each_frame(file, &mut reader, control.redo_start, |lsn, frame| {
        progress.report(lsn);
        analysis.is_needed = true;
        analysis.note_frame(lsn, frame, &mut scratch, spill)
    })?;
    analysis.end = reader.end()?;
    Ok(analysis)
}

/// Calls `visit` with each frame after the redo start and its LSN.
fn for_each_frame(
    file: &LogFile,
    reader: &mut LogReader,
    redo_start: Lsn,
    mut visit: impl FnMut(Lsn, Frame<'_>) -> Result<(), Unreadable>,
) -> Result<()> {
    while let Some((first, bytes)) = reader.next_chunk()? {
        let mut at = 0;
        while at < bytes.len() {
            let position = first.0 + at as u64;
            let damaged = |Damaged| file.damaged(format!("the record at {position} is damaged"));
            let length = frame::length(&bytes[at..]).map_err(damaged)?;
            let frame = frame::decode(&bytes[at..at + length]).map_err(damaged)?;
            at += length;
            let lsn = Lsn(first.0 + at as u64);
            if lsn > redo_start {
                visit(lsn, frame).map_err(|unreadable| match unreadable {
                    Unreadable::Log => damaged(Damaged),
                    Unreadable::Other(error) => error,
                })?;
            }
        }
    }
    Ok(())
}

/// Why a frame could not be used.
enum Unreadable {
    Log,
    Other(StorageError),
}

impl From<Damaged> for Unreadable {
    fn from(_: Damaged) -> Unreadable {
        Unreadable::Log
    }
}

impl From<StorageError> for Unreadable {
    fn from(error: StorageError) -> Unreadable {
        Unreadable::Other(error)
    }
}

impl Analysis {
    fn note_frame(
        &mut self,
        lsn: Lsn,
        frame: Frame<'_>,
        scratch: &mut PageImage,
        spill: &Arc<SpillFile>,
    ) -> Result<(), Unreadable> {
        match frame {
            Frame::Commit {
                transaction,
                number,
                ..
            } => {
                if let Some(number) = number.filter(|_| lsn > self.numbers_start) {
                    self.next_number = self.next_number.max(number + 1);
                }
                self.note_end(transaction);
            }
            Frame::EndOfRollback(id) => self.note_end(id),
            // So that followers learn of its end.
            Frame::Annotation { transaction, .. } => drop(self.loser(lsn, transaction)),
            Frame::MiniTransaction { note, mut changes } => {
                self.note_transaction(lsn, note, spill)?;
                while !changes.is_empty() {
                    let (page, record) = redo_codec::decode(&mut changes, scratch)?;
                    self.note_record(lsn, page, &record);
                }
            }
        }
        Ok(())
    }

    fn note_end(&mut self, id: TransactionId) {
        self.next_transaction = self.next_transaction.max(id.0 + 1);
        self.losers.remove(&id);
    }

    /// A transaction that has not ended yet.
    fn loser(&mut self, lsn: Lsn, id: TransactionId) -> &mut Loser {
        self.next_transaction = self.next_transaction.max(id.0 + 1);
        self.losers.entry(id).or_insert_with(|| Loser {
            first: Lsn(lsn.0 - 1),
            undo: UndoStack::default(),
        })
    }

    fn note_transaction(&mut self, lsn: Lsn, note: Note<'_>, spill: &Arc<SpillFile>) -> Result<()> {
        // The value after is of no use here: the redo has it.
        let note = match note {
            Note::Row {
                transaction,
                tree,
                change,
                key,
                before,
                ..
            } => Note::Change {
                transaction,
                tree,
                change,
                key,
                before,
                start: 0,
            },
            note => note,
        };
        let (tree, change, sign) = match note {
            Note::None | Note::PagesPastLog | Note::Row { .. } => return Ok(()),
            Note::Counts { tree } => {
                self.entries.insert(tree, 0);
                return Ok(());
            }
            Note::Change {
                transaction,
                tree,
                change,
                key,
                before,
                start,
            } => {
                let spills = self.spills;
                let loser = self.loser(lsn, transaction);
                let part = match change {
                    Change::UpdatePart => Some(part_before(start, before)),
                    _ => None,
                };
                loser.undo.push(UndoRecord {
                    tree,
                    change,
                    key,
                    before: part.as_deref().unwrap_or(before),
                });
                if loser.undo.is_large() && spills {
                    // Recovery must not fail for want of room.
                    if let Err(error) = loser.undo.spill(spill) {
                        tracing::warn!(
                            "the undo of an unfinished transaction stays in memory: {error}"
                        );
                        self.spills = false;
                    }
                }
                (tree, change, 1)
            }
            Note::Compensation { transaction } => {
                // The change itself lies before the redo start if the transaction ended: then its undo is not needed.
                let Some(loser) = self.losers.get_mut(&transaction) else {
                    return Ok(());
                };
                loser.undo.bring_back()?;
                let Some(record) = loser.undo.last() else {
                    return Ok(());
                };
                let undone = (record.tree, record.change, -1);
                loser.undo.pop();
                undone
            }
        };
        let entries = match change {
            Change::Insert | Change::Revive => 1,
            Change::Update | Change::UpdatePart => 0,
            Change::Delete => -1,
        };
        if entries != 0 {
            *self.entries.entry(tree).or_default() += sign * entries;
        }
        Ok(())
    }

    fn note_record(&mut self, lsn: Lsn, page: PageId, record: &RedoRecord<'_>) {
        self.pages = self.pages.max(page.0 + 1);
        match *record {
            RedoRecord::FormatNode { tree, .. } | RedoRecord::WriteNode { tree, .. } => {
                self.next_tree = self.next_tree.max(tree.0 + 1);
                self.lives.insert(page, lsn);
            }
            RedoRecord::FormatExtentMap { .. } | RedoRecord::WriteFileHeader { .. } => {
                self.lives.insert(page, lsn);
            }
            RedoRecord::FreePage {
                extent,
                page: place,
            } => {
                let extent = extent_of_map(page, extent);
                self.lives.insert(extent::page_in(extent, place), lsn);
            }
            RedoRecord::SetExtent { extent, owner, .. } => {
                self.next_tree = self.next_tree.max(owner.0 + 1);
                let extent = extent_of_map(page, extent);
                self.lives_of_extents.insert(extent, lsn);
            }
            RedoRecord::InsertEntry { .. }
            | RedoRecord::SetValue { .. }
            | RedoRecord::ChangeValue { .. }
            | RedoRecord::SetGhost { .. }
            | RedoRecord::RemoveEntry { .. }
            | RedoRecord::PurgeGhosts
            | RedoRecord::TruncateNode { .. }
            | RedoRecord::AllocatePage { .. } => {}
        }
    }
}

impl Analysis {
    /// Where the last life of a page begins, or the life before it ends.
    fn life_of(&self, page: PageId) -> Lsn {
        let own = self.lives.get(&page).copied().unwrap_or_default();
        let (extent, place) = extent::locate(page);
        // The group's own pages begin their lives in the mini-transaction that sets their extent, or keep them.
        if extent.is_multiple_of(EXTENTS_PER_GROUP) && place < extent::GROUP_PAGES.count_ones() {
            return own;
        }
        let extent = self.lives_of_extents.get(&extent).copied();
        own.max(extent.unwrap_or_default())
    }
}

/// The extent at a place of a map page.
fn extent_of_map(map: PageId, place: usize) -> usize {
    extent::locate(map).0 / EXTENTS_PER_GROUP * EXTENTS_PER_GROUP + place
}

/// Whether a record leaves nothing of what was on the page.
fn begins_life(record: &RedoRecord<'_>) -> bool {
    matches!(
        record,
        RedoRecord::FormatNode { .. }
            | RedoRecord::WriteNode { .. }
            | RedoRecord::FormatExtentMap { .. }
            | RedoRecord::WriteFileHeader { .. }
    )
}

/// Repeats history: brings every page to its state at the end of the log.
pub(crate) fn redo(
    store: &PageStore,
    file: &LogFile,
    control: &Control,
    analysis: &Analysis,
) -> Result<()> {
    let extents = analysis.pages.div_ceil(PAGES_PER_EXTENT);
    store.pool.extend_to(extents * PAGES_PER_EXTENT)?;
    let mut reader = LogReader::open(file, control)?;
    let mut progress = Progress::new("redoing changes");
    let mut window = RedoWindow::new(store, file, analysis);
    for_each_frame(file, &mut reader, control.redo_start, |lsn, frame| {
        progress.report(lsn);
        match frame {
            Frame::MiniTransaction { changes, .. } => window.gather(lsn, changes)?,
            Frame::Commit { .. } | Frame::EndOfRollback(_) | Frame::Annotation { .. } => {}
        }
        if window.is_full() {
            window.apply()?;
        }
        Ok(())
    })?;
    // What analysis has read must have been read again.
    if reader.end()?.lsn != analysis.end.lsn {
        return Err(file.damaged("it was read twice, and ended at two places"));
    }
    window.apply()
}

/// Pages of a tree, as the extent maps and the pages themselves say.
#[derive(Clone, Copy, Default)]
pub(crate) struct PagesOfTree {
    pub(crate) leaf_pages: u64,
    pub(crate) inner_pages: u64,
    /// Level of its highest page.
    pub(crate) level: u8,
}

/// Frees what belongs to none of `trees`, and fills in the pages of those that exist.
pub(crate) fn reclaim_space(
    store: &PageStore,
    trees: &mut BTreeMap<TreeId, PagesOfTree>,
) -> Result<()> {
    let mut progress = Progress::new("looking for pages without a tree");
    for extent in 0..store.space.extent_count() {
        progress.report(Lsn(extent as u64));
        let (used, owner) = store.space.extent(extent);
        if owner == TreeId(0) {
            reclaim_pages(store, trees, extent, used)?;
        } else if let Some(pages) = trees.get_mut(&owner) {
            pages.leaf_pages += u64::from(used.count_ones());
        } else {
            store.set_extents(&[(extent, 0)], owner, Note::None)?;
        }
    }
    Ok(())
}

/// As [`reclaim_space`], for the pages of a shared extent.
fn reclaim_pages(
    store: &PageStore,
    trees: &mut BTreeMap<TreeId, PagesOfTree>,
    extent: usize,
    used: u64,
) -> Result<()> {
    // The file header and the maps belong to no tree.
    let own = if extent.is_multiple_of(EXTENTS_PER_GROUP) {
        extent::GROUP_PAGES
    } else {
        0
    };
    let pages: Vec<PageId> = (0..PAGES_PER_EXTENT as u32)
        .filter(|place| (used & !own) >> place & 1 == 1)
        .map(|place| extent::page_in(extent, place))
        .collect();
    store.pool.prefetch(&pages);
    let mut free = Vec::new();
    for page in pages {
        let found = match store.pool.shared(page) {
            Ok(found) => found,
            Err(error @ StorageError::Corrupt { .. }) => {
                tracing::warn!("a page in use cannot be read, and stays in use: {error}");
                continue;
            }
            // Without it the pages of a tree would be counted wrong for good.
            Err(error) => return Err(error),
        };
        let (tree, level) = (found.tree_id(), found.level());
        match trees.get_mut(&tree) {
            Some(pages) if level == 0 => pages.leaf_pages += 1,
            Some(pages) => {
                pages.inner_pages += 1;
                pages.level = pages.level.max(level);
            }
            None => free.push(page),
        }
    }
    store.free_pages(&free)
}

/// Says how far a step of recovery is.
struct Progress {
    step: &'static str,
    next_report_ns: u64,
}

impl Progress {
    fn new(step: &'static str) -> Progress {
        Progress {
            step,
            next_report_ns: sync::monotonic_ns() + REPORT_INTERVAL.as_nanos() as u64,
        }
    }

    fn report(&mut self, at: Lsn) {
        let now = sync::monotonic_ns();
        if now >= self.next_report_ns {
            tracing::info!("recovery: {}, at {}", self.step, at.0);
            self.next_report_ns = now + REPORT_INTERVAL.as_nanos() as u64;
        }
    }
}
