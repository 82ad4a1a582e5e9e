//! The version store: what pages held before, for those who may not see what they hold now.
//!
//! Pages hold the newest state of every entry and nothing else: no transaction number in an entry, no pointer to an
//! older state. The past hangs off the page in memory: a leaf whose entries were changed lately has a
//! [`VersionTable`], found by the page's number. (Freitag, Kemper, Neumann, "Memory-Optimized Multi-Version
//! Concurrency Control for Disk-Based Database Systems", VLDB 2022.) After a restart there are no snapshots, and no
//! past is needed.
//!
//! ```text
//!   page table word  [ .. | has versions | .. ]     0: every entry is visible to everybody. One bit test.
//!                               | 1
//!                               v
//!   version store     page 4711 -> VersionTable     usually small, and gone when nobody may look back any more
//! ```
//!
//! **The bit** lives in the page's word, so that it is read together with the page's version and outlives the page's
//! stay in the buffer pool. It is set under the page's exclusive latch, before the latch is released. It may be set
//! without a table (then there is nothing to find), never the other way round.
//!
//! **Who changes a table.** What belongs to a change of the page (a version added, taken back, moved to another leaf
//! by a split or a merge) happens under the page's exclusive latch, in the moment in which the page changes. So a
//! reader copies from the page, asks the table, and validates the page's version last: the page and the table were
//! then of the same moment. A *purge* needs no latch: what it drops, no snapshot would have used.
//!
//! **Settled pasts.** A snapshot that is held for long keeps versions of everything that changes meanwhile, and newer
//! readers see nothing but the pages all the same. They learn that from the page's word, too: its second bit says that
//! whoever has written in the page's table has ended, at or before the *settled horizon*, one number for the whole
//! store. A reader whose snapshot is not older than that reads the page raw.
//!
//! ```text
//!   log   --------C1-----C2--|------C3---->         the past of page 4711: versions of T1 and T2, which ended
//!              ^             ^         ^            by the horizon; its word says "has versions, settled"
//!           held snapshot    horizon   new readers
//!           asks the table             read it raw
//! ```
//!
//! The first such reader of a page whose bit is clear goes through its writers. If it sees them all, it moves the horizon
//! up to the last of their commits, and then sets the bit: who sees the bit sees a horizon that holds for it. (A horizon
//! that moves on makes readers ask tables that they need not ask, never the other way round.) It does so under the
//! shard's lock, and who adds a writer clears the bit: a version is added under the page's exclusive latch, whose release
//! writes a word without the bit, so a bit that was set meanwhile is gone as well, and the writer ends later. A reader
//! took the word before it copied from the page, and validates the page's version last: either no latch was taken
//! between, and all that it copied is the work of those who had ended by the horizon, which it sees; or it begins again.
//! What a purge has dropped, no snapshot in use would have used; what is rolled back is off the page before its writer
//! counts as ended. A leaf that gets versions in a split or a merge loses the bit until its next reader.
//!
//! Where the bit does not help (somebody has not ended, or the reader's snapshot is older than the horizon), a reader
//! asks the table, and the table knows of its first writers when the last of them committed.
//!
//! **Ghosts.** A deleted entry stays on its page as a ghost as long as its key has versions, because the readers of
//! old versions find their way through it; afterwards it is garbage. A leaf's past remembers a key near its ghosts and
//! whether some of them may be garbage, also through splits and merges, until the collector has been there.
//!
//! **Limits.** All tables together may take [`VersionStore::budget_bytes`] of memory. Beyond, tables that nobody has
//! used lately are spilled to a file ([`spiller`]), which has a limit of its own; a reader or writer that needs one
//! reads it back. A change that finds both used up, even after a purge, fails with [`StorageError::VersionStoreFull`](crate::StorageError::VersionStoreFull).
//! What is left in memory of a spilled table is about 250 bytes.
//!
//! Locks: one per shard of the map, and the spiller's hand before them. A shard is locked after page latches, and only
//! the space of the spill file after it.

mod collector;
mod key_filter;
mod leaf;
mod spiller;
mod table;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::error::Result;
use crate::page::{Lsn, PageId, TreeId};
use crate::snapshot::{LiveSnapshots, ReadView, StatusCell};
use crate::spill_file::SpillFile;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, RwLock};

pub(crate) use collector::VersionCollector;
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

/// Who made the newest change of an entry.
#[derive(Debug)]
pub(crate) enum NewestWriter {
    /// Somebody who has ended.
    Ended,
    /// The transaction that asks.
    Own,
    /// Another transaction, which is active.
    Other,
    /// The transaction that asks, or somebody who has ended: what was spilled would tell.
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

/// A leaf that may hold ghosts which nobody needs any more, named by a key that it covered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GarbageHint {
    pub(crate) tree: TreeId,
    pub(crate) key: Vec<u8>,
}

/// All versions of all leaves.
pub(crate) struct VersionStore {
    shards: Box<[RwLock<Shard>]>,
    bytes: AtomicUsize,
    leaves: AtomicUsize,
    /// Pages whose word says so have no version of anybody who ended later.
    settled_horizon: AtomicU64,
    budget_bytes: usize,
    spill_file: Arc<SpillFile>,
    /// Held by who spills.
    hand: Mutex<Hand>,
    /// Hints that nobody could follow yet.
    hints: Mutex<Vec<GarbageHint>>,
}

impl VersionStore {
    pub(crate) fn new(budget_bytes: usize, spill_file: Arc<SpillFile>) -> VersionStore {
        VersionStore {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            bytes: AtomicUsize::new(0),
            leaves: AtomicUsize::new(0),
            settled_horizon: AtomicU64::new(0),
            budget_bytes,
            spill_file,
            hand: Mutex::new(Hand::default()),
            hints: Mutex::new(Vec::new()),
        }
    }

    /// Memory of all tables, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
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

    /// Snapshots from here on see all of what anybody wrote who has left versions of a settled page. To be asked after
    /// the page's word was read.
    #[inline]
    pub(crate) fn settled_horizon(&self) -> Lsn {
        Lsn(self.settled_horizon.load(Ordering::Acquire))
    }

    /// Whether the snapshot sees all of what anybody wrote who has left versions of the page. If so, the horizon is moved
    /// there, and `mark` called to set the page's bit while nobody adds a version.
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

    /// What `read` finds in the page's table; none if the leaf has no past. What was spilled is in the table that `read`
    /// gets if a transaction that `matters` picks has perhaps written there (under `key`, if there is one).
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

    /// As [`read`](Self::read), for one who sees what `view` sees: a table without versions if that is what the page
    /// holds.
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

    /// Who made the newest change of an entry, from the point of view of `own`. Reads nothing from disk.
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
            // Nobody else could have changed the entry before an active transaction has ended.
            Some(_) => NewestWriter::Ended,
            None if may_be(&|writer| writer.is_active() && !is_own(writer)) => {
                NewestWriter::Unknown
            }
            None if may_be(&is_own) => NewestWriter::OwnOrEnded,
            None => NewestWriter::Ended,
        }
    }

    /// Whether somebody else than `own`, who is active, has changed something in a tree.
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

    /// Changes a leaf's past; it is made if there is none.
    fn change_leaf(&self, page: PageId, tree: TreeId, change: impl FnOnce(&mut LeafVersions)) {
        let mut shard = self.shard(page).write();
        let stamp = shard.next_stamp();
        let leaf = shard.leaves.entry(page).or_insert_with(|| {
            self.leaves.fetch_add(1, Ordering::Relaxed);
            let leaf = LeafVersions::new(tree);
            self.resized(0, leaf.memory_bytes());
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

    fn resized(&self, before: usize, after: usize) {
        if after >= before {
            self.bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(before - after, Ordering::Relaxed);
        }
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
            leaf.table_mut().push(key, writer, before);
            leaf.touch();
            if is_delete {
                leaf.note_ghost(key);
            }
        });
    }

    /// Forgets the newest version of an entry, which is being changed back; `to_ghost`: to a ghost.
    pub(crate) fn pop(&self, page: PageId, key: &[u8], writer: &Arc<StatusCell>, to_ghost: bool) {
        // The leaf's past stays, even when it is empty: the collector takes it and the bit together.
        self.change_known_leaf(page, |leaf| {
            leaf.pop(key, writer);
            if to_ghost {
                leaf.note_ghost(key);
                leaf.has_garbage = true;
            }
        });
    }

    /// Takes a page's past out.
    fn take(&self, page: PageId) -> Option<LeafVersions> {
        let leaf = self.shard(page).write().leaves.remove(&page)?;
        self.leaves.fetch_sub(1, Ordering::Relaxed);
        self.resized(leaf.memory_bytes(), 0);
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
            && (!upper.is_empty() || upper.has_garbage)
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

    /// The tree is dropped, and nobody reads it any more: its pages may come to belong to others.
    pub(crate) fn forget_tree(&self, tree: TreeId) {
        for shard in &self.shards {
            shard.write().leaves.retain(|_, leaf| {
                let is_kept = leaf.tree != tree;
                if !is_kept {
                    self.leaves.fetch_sub(1, Ordering::Relaxed);
                    self.resized(leaf.memory_bytes(), 0);
                }
                is_kept
            });
        }
    }

    /// Drops the versions of one leaf that nobody needs. Returns whether any are left.
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

    /// Goes through all tables: drops what nobody needs, and leaves without a past. `emptied` is called, with the shard
    /// locked, for each page that has none any more. Returns where garbage may lie.
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

    /// Gives hints back that could not be followed.
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

    /// Drops what nobody needs of a leaf's past. Returns whether nothing was left of it, so that it is gone.
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
        if let Some(hints) = hints
            && let Some(key) = leaf.take_garbage()
        {
            let tree = leaf.tree;
            hints.push(GarbageHint { tree, key });
        }
        if !leaf.is_empty() || leaf.has_garbage {
            return false;
        }
        self.resized(leaf.memory_bytes(), 0);
        self.leaves.fetch_sub(1, Ordering::Relaxed);
        shard.leaves.remove(&page);
        true
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use std::ops::Range;

    use super::spiller::Spared;
    use super::*;
    use crate::disk::simulated::{
        Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
    };
    use crate::error::StorageError;
    use crate::page::Lsn;
    use crate::snapshot::{ReadView, SnapshotRegistry};
    use crate::transaction::TransactionId;

    const TREE: TreeId = TreeId(7);
    const LEAF: PageId = PageId(40);
    const OTHER: PageId = PageId(41);

    fn store_of(budget_bytes: usize, spill_bytes: u64) -> VersionStore {
        store_on(&disk(), budget_bytes, spill_bytes)
    }

    fn disk() -> Arc<SimulatedDisk> {
        SimulatedDisk::new(SimulationOptions::new(1))
    }

    fn store_on(disk: &Arc<SimulatedDisk>, budget_bytes: usize, spill_bytes: u64) -> VersionStore {
        VersionStore::new(budget_bytes, SpillFile::new(disk.clone(), spill_bytes))
    }

    fn store() -> VersionStore {
        store_of(1 << 20, 1 << 20)
    }

    fn seen(store: &VersionStore, page: PageId, key: &[u8], view: &ReadView) -> String {
        let resolve = |table: &VersionTable| format!("{:?}", table.resolve(key, view));
        let seen = store.read_at(page, Some(key), view, resolve);
        seen.unwrap().unwrap_or_else(|| "no table".into())
    }

    /// Everything that can be spilled is, however often it was used.
    fn spill_all(store: &VersionStore) {
        spill_all_for(store, &SnapshotRegistry::new(Lsn(1)).live());
    }

    /// As [`spill_all`], with these snapshots in use.
    fn spill_all_for(store: &VersionStore, live: &LiveSnapshots) {
        let mut hand = store.hand.lock();
        loop {
            let candidates = store.gather(&mut hand, usize::MAX, Spared::Hot);
            if candidates.is_empty() || store.spill(candidates, live).unwrap() == 0 {
                return;
            }
        }
    }

    fn key(i: u32) -> [u8; 4] {
        i.to_be_bytes()
    }

    /// So many versions of keys on a leaf, by one writer: each key was the number's bytes, repeated.
    fn push_many(store: &VersionStore, page: PageId, keys: Range<u32>, writer: &Arc<StatusCell>) {
        for i in keys {
            let value = value_of(i);
            store.push(page, TREE, &key(i), writer, Before::Value(&value), false);
        }
    }

    fn value_of(i: u32) -> Vec<u8> {
        key(i).repeat(10)
    }

    fn value(i: u32) -> String {
        format!("{:?}", Seen::Value(&value_of(i)))
    }

    #[test]
    fn versions_follow_their_entries_through_splits_and_merges() {
        let store = store();
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let view = ReadView::take(&registry, None).unwrap();
        let writer = StatusCell::new(TransactionId(1));
        for key in [b"a", b"m", b"z"] {
            store.push(LEAF, TREE, key, &writer, Before::Value(key), false);
        }
        store.split(LEAF, OTHER, b"m", b"");
        assert_eq!(seen(&store, LEAF, b"a", &view), "Value([97])");
        assert_eq!(seen(&store, LEAF, b"m", &view), "Page");
        assert_eq!(seen(&store, OTHER, b"m", &view), "Value([109])");
        assert_eq!(store.leaves(), 2);
        store.move_all(OTHER, LEAF);
        assert_eq!(seen(&store, OTHER, b"m", &view), "no table");
        assert_eq!(seen(&store, LEAF, b"z", &view), "Value([122])");
    }

    #[test]
    fn spilled_versions_follow_their_entries_too() {
        let store = store();
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let view = ReadView::take(&registry, None).unwrap();
        let writer = StatusCell::new(TransactionId(1));
        push_many(&store, LEAF, 0..100, &writer);
        let in_memory = store.memory_bytes();
        spill_all(&store);
        assert!(store.memory_bytes() * 4 < in_memory);
        assert!(store.spill_file.used_bytes() > 0);
        push_many(&store, LEAF, 50..150, &writer);
        store.split(LEAF, OTHER, &key(70), b"");
        spill_all(&store);
        store.split(LEAF, PageId(42), &key(30), b"");
        for (page, keys) in [(LEAF, 0..30), (PageId(42), 30..70), (OTHER, 70..150)] {
            for i in keys {
                assert_eq!(seen(&store, page, &key(i), &view), value(i));
            }
        }
        assert_eq!(seen(&store, LEAF, &key(30), &view), "Page");
        store.move_all(OTHER, PageId(42));
        store.move_all(PageId(42), LEAF);
        for i in 0..150 {
            assert_eq!(seen(&store, LEAF, &key(i), &view), value(i));
        }
        // All of it can be read back, and counts changes of before and after the spilling.
        spill_all(&store);
        store.bring_back(LEAF).unwrap();
        for _ in 0..2 {
            (50..100).for_each(|i| store.pop(LEAF, &key(i), &writer, false));
        }
        assert_eq!(seen(&store, LEAF, &key(60), &view), "Page");
        assert_eq!(seen(&store, LEAF, &key(40), &view), value(40));
        store.forget_tree(TREE);
        let all = (
            store.memory_bytes(),
            store.leaves(),
            store.spill_file.used_bytes(),
        );
        assert_eq!(all, (0, 0, 0));
    }

    #[test]
    fn what_nobody_needs_is_dropped_from_the_spill_file_unread() {
        let store = store();
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let old = ReadView::take(&registry, None).unwrap();
        let [committed, rolled_back] = [1, 2].map(|id| StatusCell::new(TransactionId(id)));
        push_many(&store, LEAF, 0..100, &committed);
        push_many(&store, OTHER, 0..100, &rolled_back);
        spill_all(&store);
        committed.commit(Lsn(5));
        rolled_back.roll_back();
        registry.advance_to(Lsn(5));
        store.sweep(&registry.live(), |_| {});
        assert_eq!(store.leaves(), 1, "what was rolled back is gone");
        assert_eq!(seen(&store, LEAF, &key(7), &old), value(7));
        spill_all(&store);
        let read = store.spill_file.read_bytes();
        drop(old);
        store.sweep(&registry.live(), |_| {});
        let left = (store.leaves(), store.spill_file.used_bytes());
        assert_eq!(left, (0, 0));
        assert_eq!(store.spill_file.read_bytes(), read);
    }

    #[test]
    fn who_has_changed_a_key_is_known_or_can_be_found_out() {
        let store = store();
        let [own, other, ended] = [1, 2, 3].map(|id| StatusCell::new(TransactionId(id)));
        push_many(&store, LEAF, 0..50, &own);
        push_many(&store, LEAF, 50..100, &ended);
        ended.commit(Lsn(3));
        spill_all(&store);
        let newest = |i: u32, asks| store.newest_writer(LEAF, &key(i), asks);
        assert!(matches!(newest(1, &own), NewestWriter::OwnOrEnded));
        assert!(matches!(newest(1, &other), NewestWriter::Unknown));
        // The filter knows nothing of most other keys.
        let unknown = (1_000..2_000).filter(|&i| !matches!(newest(i, &other), NewestWriter::Ended));
        assert!(unknown.count() < 100);
        store.bring_back(LEAF).unwrap();
        assert!(matches!(newest(1, &own), NewestWriter::Own));
        assert!(matches!(newest(1, &other), NewestWriter::Other));
        assert!(matches!(newest(51, &other), NewestWriter::Ended));
    }

    #[test]
    fn a_sweep_gives_all_memory_back_and_names_leaves_with_garbage() {
        let store = store();
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let writer = StatusCell::new(TransactionId(1));
        store.push(LEAF, TREE, b"a", &writer, Before::Value(b"row"), true);
        store.push(OTHER, TREE, b"b", &writer, Before::Absent, false);
        let mut emptied = Vec::new();
        assert!(
            store
                .sweep(&registry.live(), |page| emptied.push(page))
                .is_empty()
        );
        assert!(emptied.is_empty() && store.memory_bytes() > 0);

        writer.commit(Lsn(5));
        registry.advance_to(Lsn(5));
        let hints = store.sweep(&registry.live(), |page| emptied.push(page));
        emptied.sort();
        assert_eq!(emptied, [LEAF, OTHER]);
        assert_eq!((store.memory_bytes(), store.leaves()), (0, 0));
        let key = b"a".to_vec();
        assert_eq!(hints, [GarbageHint { tree: TREE, key }]);
    }

    #[test]
    fn a_past_is_settled_for_who_sees_all_of_its_writers() {
        let store = store();
        let settles = |page, snapshot| {
            let mut is_marked = false;
            let sees_all = store.settle(page, Lsn(snapshot), || is_marked = true);
            assert_eq!(sees_all, is_marked);
            sees_all
        };
        let horizon = || store.settled_horizon().0;
        let [first, second, third] = [1, 2, 3].map(|id| StatusCell::new(TransactionId(id)));
        push_many(&store, LEAF, 0..10, &first);
        push_many(&store, OTHER, 0..10, &second);
        assert!(!settles(LEAF, 9) && !settles(OTHER, 9) && !settles(PageId(42), 9));
        first.commit(Lsn(5));
        assert!(!settles(LEAF, 4) && !settles(OTHER, 9));
        assert!(settles(LEAF, 7) && horizon() == 5);
        second.commit(Lsn(8));
        assert!(!settles(OTHER, 7) && settles(OTHER, 20) && horizon() == 8);
        // Also what is spilled, and who takes changes back.
        spill_all(&store);
        push_many(&store, LEAF, 5..6, &third);
        assert!(!settles(LEAF, 20) && settles(OTHER, 20));
        store.pop(LEAF, &key(5), &third, false);
        third.roll_back();
        assert!(!settles(LEAF, 4) && settles(LEAF, 5) && horizon() == 8);
        assert_eq!(store.spill_file.read_bytes(), 0);
    }

    #[test]
    fn garbage_is_remembered_when_leaves_split_and_merge_and_changes_are_taken_back() {
        let store = store();
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let writer = StatusCell::new(TransactionId(1));
        store.push(LEAF, TREE, b"m", &writer, Before::Value(b"row"), true);
        writer.commit(Lsn(5));
        registry.advance_to(Lsn(5));
        // A change purges the leaf, and the leaf is split before the collector comes.
        assert!(!store.purge_leaf(LEAF, &registry.live()));
        store.split(LEAF, OTHER, b"k", b"a");
        let keys = |hints: Vec<GarbageHint>| hints.into_iter().map(|hint| hint.key).collect();
        let mut found: Vec<Vec<u8>> = keys(store.sweep(&registry.live(), |_| {}));
        found.sort();
        assert_eq!(found, [b"a", b"k"]);

        // A ghost is made an entry and a ghost again, and then its leaf is merged into another.
        let writer = StatusCell::new(TransactionId(2));
        store.push(OTHER, TREE, b"z", &writer, Before::Absent, false);
        store.pop(OTHER, b"z", &writer, true);
        store.move_all(OTHER, LEAF);
        let found: Vec<Vec<u8>> = keys(store.sweep(&registry.live(), |_| {}));
        assert_eq!(found, [b"z"]);
        assert_eq!((store.memory_bytes(), store.leaves()), (0, 0));
    }

    /// A leaf whose past is larger than a piece of the file is spilled in several, and does not keep others from it.
    #[test]
    fn a_leaf_may_have_more_versions_than_a_piece_holds() {
        let (budget, keys) = (2_000_000, 6_000);
        let store = store_of(budget, 100 << 20);
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let writers: Vec<_> = (1..8)
            .map(|id| StatusCell::new(TransactionId(id)))
            .collect();
        // The versions of one key, and of many, are divided.
        for writer in &writers {
            push_many(&store, LEAF, 0..keys, writer);
        }
        let long_value = |i: u32| value_of(i).repeat(8);
        for i in 100..5_000 {
            let writer = StatusCell::new(TransactionId(i.into()));
            let before = long_value(i);
            store.push(OTHER, TREE, b"k", &writer, Before::Value(&before), false);
        }
        spill_all(&store);
        assert!(store.memory_bytes() < budget);
        let view = ReadView::take(&registry, None).unwrap();
        for page in 100..300 {
            store.make_room(|| Arc::new(registry.live())).unwrap();
            push_many(&store, PageId(page), 0..200, &writers[0]);
            assert!(store.memory_bytes() <= budget);
        }
        for page in 100..300 {
            assert_eq!(seen(&store, PageId(page), &key(7), &view), value(7));
        }
        for i in (0..keys).step_by(500) {
            assert_eq!(seen(&store, LEAF, &key(i), &view), value(i));
        }
        let oldest = format!("{:?}", Seen::Value(&long_value(100)));
        assert_eq!(seen(&store, OTHER, b"k", &view), oldest);
    }

    #[test]
    fn spilled_tables_are_joined_without_what_nobody_needs() {
        const WRITERS: u64 = 40;
        let store = store_of(1 << 20, 10 << 20);
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let old = ReadView::take(&registry, None).unwrap();
        for id in 1..=WRITERS {
            let writer = StatusCell::new(TransactionId(id));
            let keys = 100 * u32::try_from(id).unwrap();
            push_many(&store, LEAF, 0..100, &writer);
            push_many(&store, OTHER, keys..keys + 100, &writer);
            writer.commit(Lsn(10 * id));
            registry.advance_to(Lsn(10 * id));
            spill_all_for(&store, &registry.live());
        }
        // Of the one leaf the old snapshot needs the first version of each key alone; of the other it needs all.
        let parts = |page: PageId| store.shard(page).read().leaves[&page].parts.len();
        assert!(parts(LEAF) <= 8 && parts(OTHER) <= 8);
        assert!(store.spill_file.used_bytes() < 2 * WRITERS * 100 * 60);
        for i in 0..100 {
            assert_eq!(seen(&store, LEAF, &key(i), &old), value(i));
        }
        for i in 100..4_100 {
            assert_eq!(seen(&store, OTHER, &key(i), &old), value(i));
        }
    }

    /// A purge comes between, which nobody is told of.
    #[test]
    fn tables_are_joined_although_a_purge_drops_some_of_them_meanwhile() {
        let store = store();
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let writers: Vec<_> = (1..6)
            .map(|id| StatusCell::new(TransactionId(id)))
            .collect();
        for (writer, first) in writers.iter().zip((0..).step_by(100)) {
            let spilled = store
                .shard(LEAF)
                .read()
                .leaves
                .get(&LEAF)
                .map_or(0, |l| l.parts.len());
            push_many(&store, LEAF, first..first + 100, writer);
            if spilled < 4 {
                spill_all(&store);
            }
        }
        for (writer, lsn) in writers[1..4].iter().zip(5..) {
            writer.commit(Lsn(lsn));
        }
        registry.advance_to(Lsn(9));
        let candidates = store.gather(&mut store.hand.lock(), usize::MAX, Spared::Hot);
        assert!(store.purge_leaf(LEAF, &registry.live()));
        assert_eq!(store.shard(LEAF).read().leaves[&LEAF].parts.len(), 1);
        assert_eq!(store.spill(candidates, &registry.live()).unwrap(), 1);
        let view = ReadView::take(&registry, None).unwrap();
        for i in [7, 407] {
            assert_eq!(seen(&store, LEAF, &key(i), &view), value(i));
        }
    }

    #[test]
    fn a_spilled_table_that_cannot_be_read_disturbs_its_readers_alone() {
        let disk = disk();
        let store = store_on(&disk, 200_000, 10 << 20);
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let writers: Vec<_> = (1..10)
            .map(|id| StatusCell::new(TransactionId(id)))
            .collect();
        for writer in &writers[1..5] {
            push_many(&store, LEAF, 0..100, writer);
            spill_all(&store);
        }
        disk.inject(Fault {
            operation: FaultyOperation::Read,
            kind: FaultKind::IoError,
            file: "temp/sheaf.spill".into(),
            bytes: 0..u64::MAX,
            times: u32::MAX,
        });
        push_many(&store, LEAF, 0..100, &writers[5]);
        for page in 100..200 {
            store.make_room(|| Arc::new(registry.live())).unwrap();
            push_many(&store, PageId(page), 0..60, &writers[0]);
        }
        assert!(store.shard(LEAF).read().leaves[&LEAF].table().is_empty());
        let view = ReadView::take(&registry, None).unwrap();
        let read = |page| store.read(page, None, |_| true, |_| ());
        assert!(read(LEAF).is_err());
        disk.heal();
        assert!(read(LEAF).is_ok());
        assert_eq!(seen(&store, LEAF, &key(7), &view), value(7));
    }

    /// What does not fit in the file does not keep from it what does.
    #[test]
    fn the_last_room_of_the_file_is_used() {
        let store = store_of(1_000_000, 100_000);
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let writer = StatusCell::new(TransactionId(1));
        push_many(&store, LEAF, 0..10_000, &writer);
        push_many(&store, OTHER, 0..1_000, &writer);
        let candidates = store.gather(&mut store.hand.lock(), usize::MAX, Spared::Hot);
        assert_eq!(store.spill(candidates, &registry.live()).unwrap(), 1);
        assert!(store.shard(OTHER).read().leaves[&OTHER].table().is_empty());
        assert!(!store.shard(LEAF).read().leaves[&LEAF].table().is_empty());
        let view = ReadView::take(&registry, None).unwrap();
        assert_eq!(seen(&store, OTHER, &key(7), &view), value(7));
    }

    #[test]
    fn the_budget_is_kept_by_spilling_and_then_it_is_a_limit() {
        let (budget, spill) = (200_000, 1_000_000);
        let store = store_of(budget, spill);
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let writer = StatusCell::new(TransactionId(1));
        let mut pages = 0;
        let error = loop {
            if let Err(error) = store.make_room(|| Arc::new(registry.live())) {
                break error;
            }
            push_many(&store, PageId(pages), 0..60, &writer);
            pages += 1;
            assert!(store.memory_bytes() <= budget);
        };
        assert!(matches!(error, StorageError::VersionStoreFull { .. }));
        assert!(pages as usize * 60 * 44 > 2 * budget, "{pages} leaves");
        assert!(store.spill_file.used_bytes() > spill / 2);
        let view = ReadView::take(&registry, None).unwrap();
        for page in 0..pages {
            assert_eq!(seen(&store, PageId(page), &key(7), &view), value(7));
        }
        assert!(store.memory_bytes() <= budget);
        writer.roll_back();
        store.make_room(|| Arc::new(registry.live())).unwrap();
        assert_eq!(
            (store.memory_bytes(), store.spill_file.used_bytes()),
            (0, 0)
        );
    }
}
