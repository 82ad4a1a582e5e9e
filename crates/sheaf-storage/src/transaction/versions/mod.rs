//! The version store: what pages held before, for readers that may not see what they hold now.
//!
//! Pages hold the newest state of every entry and nothing else: no transaction number in an entry, no pointer to an
//! older state. The past hangs off the page in memory: a leaf whose entries were changed lately has a
//! [`VersionTable`], found by the page's number. (Freitag, Kemper, Neumann, "Memory-Optimized Multi-Version
//! Concurrency Control for Disk-Based Database Systems", VLDB 2022.) After a restart there are no snapshots, and no
//! past is needed.
//!
//! ```text
//!   page table word  [ .. | has versions | .. ]     0: every entry is visible to all. One bit test.
//!                               | 1
//!                               v
//!   version store     page 4711 -> VersionTable     usually small, and gone when no snapshot needs it
//! ```
//!
//! **The bit** lives in the page's word, so that it is read together with the page's version and outlives the page's
//! stay in the buffer pool. It is set under the page's exclusive latch, before the latch is released. It may be set
//! without a table (then there is nothing to find), never the other way round.
//!
//! **What changes a table.** What belongs to a change of the page happens under the page's exclusive latch, in the
//! moment in which the page changes. A version is added, undone, or moved to another leaf by a split or a merge. So a
//! reader copies from the page, asks the table, and validates the page's version last: the page and the table were then
//! of the same moment. A *purge* needs no latch: what it drops, no snapshot would have used.
//!
//! **Settled pasts.** A snapshot that is held for long keeps versions of everything that changes meanwhile, although
//! newer readers see nothing but the pages. They learn that from the page's word, too. Its second bit says that all
//! transactions that have written in the page's table have ended, at or before the *settled horizon*, one number for
//! the whole store. A reader whose snapshot is not older than that reads the page raw.
//!
//! ```text
//!   log   --------C1-----C2--|------C3---->         the past of page 4711: versions of T1 and T2, which ended
//!              ^             ^         ^            by the horizon; its word says "has versions, settled"
//!           held snapshot    horizon   new readers
//!           asks the table             read it raw
//! ```
//!
//! The first such reader of a page whose bit is clear goes through its writers. If it sees them all, it moves the
//! horizon up to the last of their commits, and then sets the bit. So a reader that sees the bit sees a horizon that
//! holds for it. (A horizon that moves on makes readers ask tables that they need not ask, never the other way round.)
//! It does so under the shard's lock, and a thread that adds a writer clears the bit. A version is added under the
//! page's exclusive latch, whose release writes a word without the bit. So a bit that was set meanwhile is gone as
//! well, and the writer ends later. A reader took the word before it copied from the page, and validates the page's
//! version last. If no latch was taken between, all that it copied is the work of transactions that had ended by the
//! horizon, which it sees. Otherwise it begins again. What a purge has dropped, no snapshot in use would have used;
//! what is rolled back is off the page before its writer counts as ended. A leaf that gets versions in a split or a
//! merge loses the bit until its next reader.
//!
//! Where the bit does not help (a writer has not ended, or the reader's snapshot is older than the horizon), a reader
//! asks the table. The table knows of its first writers when the last of them committed.
//!
//! **Ghosts.** A deleted entry stays on its page as a ghost until its transaction has ended, so that a rollback needs
//! no room. Then it is garbage, and its versions are all that is left of it:
//!
//! ```text
//!   page    a  c  d             what there is: readers of now read no more than that, however old other snapshots are
//!   table   (b, T9, "row")      a reader that does not see T9 finds b here, between a and c
//! ```
//!
//! A leaf's past remembers a key near its ghosts and whether some of them may be garbage, also through splits and
//! merges, until the collector has been there.
//!
//! In the end deleted entries are in the table only, so a leaf that hardly holds entries may have a long past. Beyond
//! [`LARGE_PAST_BYTES`] ghosts stay as long as their keys have versions, and the leaf is not merged: it fills up and is
//! split, and its past with it. So a change never moves much in a table, and a reader of the past never has to go
//! through much for one leaf.
//!
//! **Limits.** All tables together may take [`VersionStore::budget_bytes`] of memory. Beyond, tables that were not used
//! lately are spilled to a file ([`spiller`]), which has a limit of its own. A reader or writer that needs one reads it
//! back. A change that finds both used up, even after a purge, fails with
//! [`StorageError::VersionStoreFull`](crate::StorageError::VersionStoreFull). What is left in memory of a spilled table
//! is about 250 bytes, and a filter of its keys as long as these filters are together less than a part of the budget.
//!
//! Locks: one per shard of the map, and the spiller's hand before them. A shard is locked after page latches, and only
//! the space of the spill file after it.

mod bloom_filter;
mod collector;
mod key_heads;
mod leaf;
mod purge;
mod spiller;
mod table;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::error::Result;
use crate::page::{Lsn, PAGE_SIZE, PageId, TreeId};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, RwLock};
use crate::transaction::snapshot::{LiveSnapshots, ReadView, StatusCell};
use crate::transaction::spill_file::SpillFile;

pub(crate) use collector::start_collector;
use leaf::LeafVersions;
use spiller::Hand;
pub(crate) use table::{Before, Seen, VersionTable};

/// Parts of the map, each with its own lock.
#[cfg(not(feature = "simulation"))]
const SHARDS: usize = 256;
#[cfg(feature = "simulation")]
const SHARDS: usize = 2;

/// Tables that a sweep purges before it lets others have the shard.
const TABLES_PER_LOCK: usize = 16;

/// Versions of a leaf that take more are a large past: sixteen pages of entries that are not there any more.
const LARGE_PAST_BYTES: usize = 16 * PAGE_SIZE;

/// Most garbage hints that one sweep gives out; the others wait for the next.
const MAX_HINTS: usize = 4096;

/// A part of the map.
#[derive(Default)]
struct Shard {
    leaves: BTreeMap<PageId, LeafVersions>,
    /// Stamps given to leaves so far.
    stamps: u64,
}

impl Shard {
    fn next_stamp(&mut self) -> u64 {
        self.stamps += 1;
        self.stamps
    }
}

/// The writer of the newest change of an entry.
#[derive(Debug)]
pub(crate) enum NewestWriter {
    /// A transaction that has ended.
    Ended,
    /// The transaction that asks.
    Own,
    /// Another transaction, which is active.
    Other,
    /// The transaction that asks, or one that has ended: what was spilled would tell.
    OwnOrEnded,
    /// Perhaps another transaction, which is active: what was spilled would tell.
    Unknown,
}

/// What a reader needs of a leaf's past.
#[derive(Clone, Copy)]
enum Needed {
    Nothing,
    InMemory,
    Everything,
}

/// A leaf that may hold ghosts which are not needed any more, named by a key that it covered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GarbageHint {
    pub(crate) tree: TreeId,
    pub(crate) key: Vec<u8>,
}

/// All versions of all leaves.
pub(crate) struct VersionStore {
    shards: Box<[RwLock<Shard>]>,
    /// Memory of the tables, and of what stays when they are spilled.
    table_bytes: AtomicUsize,
    other_bytes: AtomicUsize,
    leaves: AtomicUsize,
    /// Pages whose word says so have no version of a transaction that ended later.
    settled_horizon: AtomicU64,
    budget_bytes: usize,
    spill_file: Arc<SpillFile>,
    /// Held by the thread that spills.
    hand: Mutex<Hand>,
    /// Hints that could not be followed yet.
    hints: Mutex<Vec<GarbageHint>>,
}

impl VersionStore {
    pub(crate) fn new(budget_bytes: usize, spill_file: Arc<SpillFile>) -> VersionStore {
        VersionStore {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            table_bytes: AtomicUsize::new(0),
            other_bytes: AtomicUsize::new(0),
            leaves: AtomicUsize::new(0),
            settled_horizon: AtomicU64::new(0),
            budget_bytes,
            spill_file,
            hand: Mutex::new(Hand::default()),
            hints: Mutex::new(Vec::new()),
        }
    }

    /// Memory of the whole past, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table_bytes.load(Ordering::Relaxed) + self.other_bytes()
    }

    /// Memory of what stays when tables are spilled, in bytes.
    fn other_bytes(&self) -> usize {
        self.other_bytes.load(Ordering::Relaxed)
    }

    /// Leaves that have a past.
    pub(crate) fn leaves(&self) -> usize {
        self.leaves.load(Ordering::Relaxed)
    }

    /// Most memory that the tables may take, in bytes.
    pub(crate) fn budget_bytes(&self) -> usize {
        self.budget_bytes
    }

    fn shard(&self, page: PageId) -> &RwLock<Shard> {
        &self.shards[page.0 as usize % SHARDS]
    }

    /// Snapshots from here on see everything that was written by transactions that have left versions of a settled
    /// page. To be asked after the page's word was read.
    #[inline]
    pub(crate) fn settled_horizon(&self) -> Lsn {
        Lsn(self.settled_horizon.load(Ordering::Acquire))
    }

    /// Whether the snapshot sees everything that was written by transactions that have left versions of the page. If
    /// so, the horizon is moved there, and `mark` called to set the page's bit while no thread adds a version.
    #[cold]
    pub(crate) fn settle(&self, page: PageId, snapshot: Lsn, mark: impl FnOnce()) -> bool {
        let shard = self.shard(page);
        let is_settled = |leaf: &LeafVersions| leaf.is_settled_at(snapshot);
        // Asked beside other readers first: most pages of which the answer is no have been changed just now.
        if !shard.read().leaves.get(&page).is_some_and(is_settled) {
            return false;
        }
        let mut shard = shard.write();
        let settled_at = shard.leaves.get_mut(&page).and_then(LeafVersions::settle);
        match settled_at.filter(|&settled_at| settled_at <= snapshot) {
            Some(settled_at) => {
                self.settled_horizon
                    .fetch_max(settled_at.0, Ordering::AcqRel);
                mark();
                true
            }
            None => false,
        }
    }

    /// What `read` finds in the page's table; none if the leaf has no past. What was spilled is in the table that
    /// `read` gets if a transaction that `matters` picks has perhaps written there (under `key`, if there is one).
    ///
    /// # Errors
    /// What was spilled could not be read.
    pub(crate) fn read<T>(
        &self,
        page: PageId,
        key: Option<&[u8]>,
        matters: impl Fn(&Arc<StatusCell>) -> bool,
        read: impl FnOnce(&VersionTable) -> T,
    ) -> Result<Option<T>> {
        let needed = |leaf: &LeafVersions| {
            if spiller::may_matter(leaf, key, matters) {
                Needed::Everything
            } else {
                Needed::InMemory
            }
        };
        self.read_what_is(page, needed, read)
    }

    /// As [`read`](Self::read), for a reader that sees what `view` sees: a table without versions if that is what the
    /// page holds.
    pub(crate) fn read_at<T>(
        &self,
        page: PageId,
        key: Option<&[u8]>,
        view: &ReadView,
        read: impl FnOnce(&VersionTable) -> T,
    ) -> Result<Option<T>> {
        let needed = |leaf: &LeafVersions| {
            if leaf.is_seen_whole(view) {
                Needed::Nothing
            } else if leaf.parts.iter().any(|part| part.may_matter_to(view, key)) {
                Needed::Everything
            } else {
                Needed::InMemory
            }
        };
        self.read_what_is(page, needed, read)
    }

    fn read_what_is<T>(
        &self,
        page: PageId,
        needed: impl FnOnce(&LeafVersions) -> Needed,
        read: impl FnOnce(&VersionTable) -> T,
    ) -> Result<Option<T>> {
        let copy = {
            let shard = self.shard(page).read();
            let Some(leaf) = shard.leaves.get(&page) else {
                return Ok(None);
            };
            match needed(leaf) {
                // Not a use that would keep the table in memory.
                Needed::Nothing => return Ok(Some(read(&VersionTable::new()))),
                Needed::InMemory => {
                    leaf.touch();
                    return Ok(Some(read(leaf.table())));
                }
                Needed::Everything => {
                    leaf.touch();
                    leaf.copy()
                }
            }
        };
        self.load(page, copy).map(|table| Some(read(&table)))
    }

    /// The writer of the newest change of an entry, from the point of view of `own`. Reads nothing from disk.
    pub(crate) fn newest_writer(
        &self,
        page: PageId,
        key: &[u8],
        own: &Arc<StatusCell>,
    ) -> NewestWriter {
        let is_own = |writer: &Arc<StatusCell>| Arc::ptr_eq(writer, own);
        let shard = self.shard(page).read();
        let Some(leaf) = shard.leaves.get(&page) else {
            return NewestWriter::Ended;
        };
        leaf.touch();
        let may_be = |matters: &dyn Fn(&Arc<StatusCell>) -> bool| {
            spiller::may_matter(leaf, Some(key), matters)
        };
        match leaf.table().newest_writer(key) {
            Some(writer) if is_own(writer) => NewestWriter::Own,
            Some(writer) if writer.is_active() => NewestWriter::Other,
            // No other transaction could have changed the entry before an active one has ended.
            Some(_) => NewestWriter::Ended,
            None if may_be(&|writer| writer.is_active() && !is_own(writer)) => {
                NewestWriter::Unknown
            }
            None if may_be(&is_own) => NewestWriter::OwnOrEnded,
            None => NewestWriter::Ended,
        }
    }

    /// Whether the view shows what the newest change made of an entry; false also where only what was spilled would
    /// tell. Reads nothing from disk.
    pub(crate) fn shows_newest(&self, page: PageId, key: &[u8], view: &ReadView) -> bool {
        let shard = self.shard(page).read();
        let Some(leaf) = shard.leaves.get(&page) else {
            return true;
        };
        leaf.touch();
        match leaf.table().newest_writer(key) {
            Some(writer) => view.sees(writer),
            None => !spiller::may_matter(leaf, Some(key), |writer| !view.sees(writer)),
        }
    }

    /// Whether an active transaction other than `own` has changed something in a tree.
    pub(crate) fn has_active_writer(&self, tree: TreeId, own: &Arc<StatusCell>) -> bool {
        let is_other = |writer: &Arc<StatusCell>| writer.is_active() && !Arc::ptr_eq(writer, own);
        self.shards.iter().any(|shard| {
            let shard = shard.read();
            let mut of_tree = shard.leaves.values().filter(|leaf| leaf.tree == tree);
            of_tree.any(|leaf| leaf.has_writer(is_other))
        })
    }

    /// Whether a page's table has grown much since it was purged last.
    fn has_grown(&self, page: PageId) -> bool {
        let shard = self.shard(page).read();
        let leaf = shard.leaves.get(&page);
        leaf.is_some_and(|leaf| leaf.table().has_grown())
    }

    /// Whether the key may have versions.
    pub(crate) fn may_have_chain(&self, page: PageId, key: &[u8]) -> bool {
        let shard = self.shard(page).read();
        let leaf = shard.leaves.get(&page);
        leaf.is_some_and(|leaf| {
            leaf.table().has_chain(key) || spiller::may_matter(leaf, Some(key), |_| true)
        })
    }

    /// Keeps of these ghosts' slots those whose keys no active transaction has changed.
    pub(crate) fn retain_ended(
        &self,
        page: PageId,
        slots: &mut Vec<usize>,
        key: impl Fn(usize) -> Vec<u8>,
    ) {
        let shard = self.shard(page).read();
        if let Some(leaf) = shard.leaves.get(&page) {
            slots.retain(|&slot| leaf.has_ended(&key(slot)));
        }
    }

    /// Whether the versions of these leaves are together more than one leaf should have. Versions that were not needed
    /// any more since the last purge count as well: a purge would take long, and this is asked while pages are latched.
    pub(crate) fn have_large_past(&self, pages: &[PageId]) -> bool {
        let past_bytes = |&page: &PageId| {
            let shard = self.shard(page).read();
            shard.leaves.get(&page).map_or(0, LeafVersions::past_bytes)
        };
        pages.iter().map(past_bytes).sum::<usize>() > LARGE_PAST_BYTES
    }

    /// The leaf of `key` is to be visited when some of its past has gone.
    pub(crate) fn note_visit(&self, page: PageId, key: &[u8]) {
        self.change_known_leaf(page, |leaf| leaf.note_ghost(key));
    }

    /// The leaf of `key` has to stay apart from this one, its neighbour, and is to be visited when some of this one's
    /// past has gone.
    pub(crate) fn note_unmerged(&self, page: PageId, key: &[u8]) {
        self.change_known_leaf(page, |leaf| leaf.note_unmerged(key));
    }

    /// There is no ghost on the page, which is latched.
    pub(crate) fn forget_ghosts(&self, page: PageId) {
        self.change_known_leaf(page, LeafVersions::forget_ghosts);
    }

    /// Changes a leaf's past; it is made if there is none.
    fn change_leaf(&self, page: PageId, tree: TreeId, change: impl FnOnce(&mut LeafVersions)) {
        let mut shard = self.shard(page).write();
        let stamp = shard.next_stamp();
        let leaf = shard.leaves.entry(page).or_insert_with(|| {
            self.leaves.fetch_add(1, Ordering::Relaxed);
            let leaf = LeafVersions::new(tree);
            self.resized((0, 0), leaf.memory_bytes());
            leaf
        });
        leaf.stamp = stamp;
        self.change(leaf, change);
    }

    /// Changes a leaf's past, if it has one.
    fn change_known_leaf(&self, page: PageId, change: impl FnOnce(&mut LeafVersions)) {
        let mut shard = self.shard(page).write();
        let stamp = shard.next_stamp();
        if let Some(leaf) = shard.leaves.get_mut(&page) {
            leaf.stamp = stamp;
            self.change(leaf, change);
        }
    }

    /// Changes a leaf's past, if it is still the one of this stamp. Returns whether it was.
    fn change_leaf_if(
        &self,
        page: PageId,
        seen: u64,
        change: impl FnOnce(&mut LeafVersions),
    ) -> bool {
        let mut shard = self.shard(page).write();
        let stamp = shard.next_stamp();
        match shard.leaves.get_mut(&page) {
            Some(leaf) if leaf.stamp == seen => {
                leaf.stamp = stamp;
                self.change(leaf, change);
                true
            }
            _ => false,
        }
    }

    fn change(&self, leaf: &mut LeafVersions, change: impl FnOnce(&mut LeafVersions)) {
        let bytes = leaf.memory_bytes();
        change(leaf);
        self.resized(bytes, leaf.memory_bytes());
    }

    /// Books what the table of a leaf, and what is beside it, take now.
    fn resized(&self, before: (usize, usize), after: (usize, usize)) {
        let book = |total: &AtomicUsize, before: usize, after: usize| {
            if after > before {
                total.fetch_add(after - before, Ordering::Relaxed);
            } else if after < before {
                total.fetch_sub(before - after, Ordering::Relaxed);
            }
        };
        book(&self.table_bytes, before.0, after.0);
        book(&self.other_bytes, before.1, after.1);
    }

    /// Notes a change of an entry that is being made.
    pub(crate) fn push(
        &self,
        page: PageId,
        tree: TreeId,
        key: &[u8],
        writer: &Arc<StatusCell>,
        before: Before<'_>,
        is_delete: bool,
    ) {
        self.change_leaf(page, tree, |leaf| {
            leaf.touch();
            if is_delete {
                leaf.table_mut().push_delete(key, writer, before);
                leaf.note_new_ghost(key);
            } else {
                leaf.table_mut().push(key, writer, before);
            }
        });
    }

    /// Forgets the newest version of an entry, which is being changed back; `to_ghost`: to a ghost.
    pub(crate) fn pop(&self, page: PageId, key: &[u8], writer: &Arc<StatusCell>, to_ghost: bool) {
        // The leaf's past stays, even when it is empty: the collector takes it and the bit together.
        self.change_known_leaf(page, |leaf| {
            leaf.pop(key, writer);
            if to_ghost {
                leaf.note_garbage(key);
            }
        });
    }

    /// Takes a page's past out.
    fn take(&self, page: PageId) -> Option<LeafVersions> {
        let leaf = self.shard(page).write().leaves.remove(&page)?;
        self.leaves.fetch_sub(1, Ordering::Relaxed);
        self.resized(leaf.memory_bytes(), (0, 0));
        Some(leaf)
    }

    /// The entries from `separator` on move from one leaf to another. Both are latched exclusively. `low_fence`: of the
    /// first leaf.
    pub(crate) fn split(&self, from: PageId, to: PageId, separator: &[u8], low_fence: &[u8]) {
        let mut upper = None;
        self.change_known_leaf(from, |leaf| {
            upper = Some(leaf.split_off(separator, low_fence));
        });
        if let Some(upper) = upper
            && (!upper.is_empty() || upper.awaits_collector())
        {
            self.change_leaf(to, upper.tree, |leaf| leaf.join(upper));
        }
    }

    /// All entries of a leaf move to another, behind the entries that are there. Both are latched exclusively.
    pub(crate) fn move_all(&self, from: PageId, to: PageId) {
        if let Some(moved) = self.take(from) {
            self.change_leaf(to, moved.tree, |leaf| leaf.join(moved));
        }
    }

    /// The tree is dropped, and no thread reads it any more: its pages may come to belong to other trees.
    pub(crate) fn forget_tree(&self, tree: TreeId) {
        for shard in &self.shards {
            shard.write().leaves.retain(|_, leaf| {
                let is_kept = leaf.tree != tree;
                if !is_kept {
                    self.leaves.fetch_sub(1, Ordering::Relaxed);
                    self.resized(leaf.memory_bytes(), (0, 0));
                }
                is_kept
            });
        }
    }

    /// Drops the versions of one leaf that are not needed. Returns whether any are left.
    pub(crate) fn purge_leaf(&self, page: PageId, live: &LiveSnapshots) -> bool {
        let mut shard = self.shard(page).write();
        let Some(leaf) = shard.leaves.get_mut(&page) else {
            return false;
        };
        self.change(leaf, |leaf| leaf.purge(live));
        !leaf.is_empty()
    }

    /// As [`purge_leaf`](Self::purge_leaf), if the table has grown since the last time.
    pub(crate) fn purge_grown(&self, page: PageId, live: impl FnOnce() -> Arc<LiveSnapshots>) {
        if self.has_grown(page) {
            self.purge_leaf(page, &live());
        }
    }

    /// Goes through all tables: drops what is not needed, and leaves without a past. `emptied` is called, with the
    /// shard locked, for each page that has none any more. Returns where garbage may lie.
    pub(crate) fn sweep(
        &self,
        live: &LiveSnapshots,
        mut emptied: impl FnMut(PageId),
    ) -> Vec<GarbageHint> {
        let mut hints = std::mem::take(&mut *self.hints.lock());
        self.visit_all(|shard, page| {
            let is_told = hints.len() < MAX_HINTS;
            let hints = is_told.then_some(&mut hints);
            if self.sweep_leaf(shard, page, live, hints) {
                emptied(page);
            }
        });
        hints
    }

    /// Whether a sweep may find something to do.
    pub(crate) fn has_work(&self) -> bool {
        self.leaves() > 0 || !self.hints.lock().is_empty()
    }

    /// Returns hints that could not be followed.
    pub(crate) fn put_back(&self, mut hints: Vec<GarbageHint>) {
        self.hints.lock().append(&mut hints);
    }

    /// As [`sweep`](Self::sweep), but leaves all hints where they are.
    fn purge_all(&self, live: &LiveSnapshots) {
        self.visit_all(|shard, page| {
            self.sweep_leaf(shard, page, live, None);
        });
    }

    /// Calls `visit` for each leaf with a past, its shard locked.
    fn visit_all(&self, mut visit: impl FnMut(&mut Shard, PageId)) {
        for shard in &self.shards {
            let mut after = Bound::Unbounded;
            loop {
                let mut shard = shard.write();
                let pages: Vec<_> = shard
                    .leaves
                    .range((after, Bound::Unbounded))
                    .map(|(&page, _)| page)
                    .take(TABLES_PER_LOCK)
                    .collect();
                let Some(&last) = pages.last() else { break };
                after = Bound::Excluded(last);
                for page in pages {
                    visit(&mut shard, page);
                }
            }
        }
    }

    /// Drops what is not needed of a leaf's past. Returns whether nothing was left of it, so that it is gone.
    fn sweep_leaf(
        &self,
        shard: &mut Shard,
        page: PageId,
        live: &LiveSnapshots,
        hints: Option<&mut Vec<GarbageHint>>,
    ) -> bool {
        let Some(leaf) = shard.leaves.get_mut(&page) else {
            return false;
        };
        self.change(leaf, |leaf| leaf.purge(live));
        if let Some(hints) = hints {
            let tree = leaf.tree;
            let garbage = leaf.take_garbage();
            hints.extend(garbage.map(|key| GarbageHint { tree, key }));
            self.change(leaf, |leaf| {
                let keys = leaf.take_unmerged().into_iter().map(Vec::from);
                hints.extend(keys.map(|key| GarbageHint { tree, key }));
            });
        }
        if !leaf.is_empty() || leaf.awaits_collector() {
            return false;
        }
        self.resized(leaf.memory_bytes(), (0, 0));
        self.leaves.fetch_sub(1, Ordering::Relaxed);
        shard.leaves.remove(&page);
        true
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests;
