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
//! **Ghosts.** A deleted entry stays on its page as a ghost as long as its key has versions, because the readers of
//! old versions find their way through it; afterwards it is garbage.
//!
//! **Limits.** All tables together may take [`VersionStore::budget_bytes`]; a change that finds the budget used up,
//! even after a purge, fails with [`StorageError::VersionStoreFull`].
//!
//! Locks: one per shard of the map. A shard is locked after page latches, and nothing is locked after it.

mod collector;
mod table;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::page::{PageId, TreeId};
use crate::snapshot::{LiveSnapshots, StatusCell};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{RwLock, RwLockWriteGuard};

pub(crate) use collector::VersionCollector;
pub(crate) use table::{Before, Seen, VersionTable};

/// Parts of the map, each with its own lock.
#[cfg(not(feature = "simulation"))]
const SHARDS: usize = 256;
#[cfg(feature = "simulation")]
const SHARDS: usize = 2;

/// Tables that a sweep purges before it lets others have the shard.
const TABLES_PER_LOCK: usize = 16;

/// What a change adds to a table besides the key and the before-image, at most, in bytes; a growing table doubles.
const VERSION_OVERHEAD_BYTES: usize = 64;

/// A leaf's past.
struct LeafVersions {
    tree: TreeId,
    table: VersionTable,
    /// An entry of this leaf was deleted.
    has_ghosts: bool,
    /// A key of this leaf that has no versions any more, while there may be ghosts: for the next sweep.
    forgotten: Option<Vec<u8>>,
}

type Shard = BTreeMap<PageId, LeafVersions>;

/// Who made the newest change of an entry.
#[derive(Debug)]
pub(crate) enum NewestWriter {
    /// Somebody who has ended.
    Ended,
    /// The transaction that asks.
    Own,
    /// Another transaction, which is active.
    Other(Arc<StatusCell>),
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
    budget_bytes: usize,
}

impl VersionStore {
    pub(crate) fn new(budget_bytes: usize) -> VersionStore {
        VersionStore {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            bytes: AtomicUsize::new(0),
            leaves: AtomicUsize::new(0),
            budget_bytes,
        }
    }

    /// Memory of all tables, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Leaves that have a table.
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

    /// Whether a change of this size fits the budget.
    pub(crate) fn check_room(&self, key: &[u8], before: Before<'_>) -> Result<()> {
        let before = match before {
            Before::Absent => 0,
            Before::Value(value) => value.len(),
        };
        let needed = key.len() + before + VERSION_OVERHEAD_BYTES;
        if self.memory_bytes() + needed > self.budget_bytes {
            return Err(StorageError::VersionStoreFull {
                limit: self.budget_bytes,
            });
        }
        Ok(())
    }

    /// What `read` finds in the page's table; none if there is no table.
    pub(crate) fn read<T>(&self, page: PageId, read: impl FnOnce(&VersionTable) -> T) -> Option<T> {
        let shard = self.shard(page).read();
        shard.get(&page).map(|leaf| read(&leaf.table))
    }

    /// Who made the newest change of an entry, from the point of view of `own`.
    pub(crate) fn newest_writer(
        &self,
        page: PageId,
        key: &[u8],
        own: &Arc<StatusCell>,
    ) -> NewestWriter {
        let newest = self.read(page, |table| match table.newest_writer(key) {
            Some(writer) if Arc::ptr_eq(writer, own) => NewestWriter::Own,
            Some(writer) if writer.is_active() => NewestWriter::Other(writer.clone()),
            _ => NewestWriter::Ended,
        });
        newest.unwrap_or(NewestWriter::Ended)
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
        let mut shard = self.shard(page).write();
        let leaf = self.leaf_of(&mut shard, page, tree);
        let bytes = leaf.table.memory_bytes();
        leaf.table.push(key, writer, before);
        leaf.has_ghosts |= is_delete;
        self.resized(bytes, leaf.table.memory_bytes());
    }

    /// Forgets the newest version of an entry, which is being changed back.
    pub(crate) fn pop(&self, page: PageId, key: &[u8], writer: &Arc<StatusCell>) {
        let mut shard = self.shard(page).write();
        if let Some(leaf) = shard.get_mut(&page) {
            leaf.table.pop(key, writer);
            // The table stays, even when it is empty: the collector takes it and the bit together.
        }
    }

    fn leaf_of<'s>(
        &self,
        shard: &'s mut RwLockWriteGuard<'_, Shard>,
        page: PageId,
        tree: TreeId,
    ) -> &'s mut LeafVersions {
        shard.entry(page).or_insert_with(|| {
            self.leaves.fetch_add(1, Ordering::Relaxed);
            let table = VersionTable::default();
            self.resized(0, table.memory_bytes());
            LeafVersions {
                tree,
                table,
                has_ghosts: false,
                forgotten: None,
            }
        })
    }

    fn resized(&self, before: usize, after: usize) {
        if after >= before {
            self.bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    /// Takes a page's table out.
    fn take(&self, page: PageId) -> Option<LeafVersions> {
        let leaf = self.shard(page).write().remove(&page)?;
        self.leaves.fetch_sub(1, Ordering::Relaxed);
        self.resized(leaf.table.memory_bytes(), 0);
        Some(leaf)
    }

    /// Gives a page the versions of another leaf's entries that move to it.
    fn give(&self, page: PageId, given: LeafVersions) {
        let mut shard = self.shard(page).write();
        let leaf = self.leaf_of(&mut shard, page, given.tree);
        let bytes = leaf.table.memory_bytes();
        leaf.table.join(&given.table);
        leaf.has_ghosts |= given.has_ghosts;
        self.resized(bytes, leaf.table.memory_bytes());
    }

    /// The entries from `separator` on move from one leaf to another. Both are latched exclusively.
    pub(crate) fn split(&self, from: PageId, to: PageId, separator: &[u8]) {
        let upper = {
            let mut shard = self.shard(from).write();
            let Some(leaf) = shard.get_mut(&from) else {
                return;
            };
            let bytes = leaf.table.memory_bytes();
            let table = leaf.table.split_off(separator);
            self.resized(bytes, leaf.table.memory_bytes());
            LeafVersions {
                tree: leaf.tree,
                table,
                has_ghosts: leaf.has_ghosts,
                forgotten: None,
            }
        };
        if !upper.table.is_empty() {
            self.give(to, upper);
        }
    }

    /// All entries of a leaf move to another, behind the entries that are there. Both are latched exclusively.
    pub(crate) fn move_all(&self, from: PageId, to: PageId) {
        if let Some(leaf) = self.take(from) {
            self.give(to, leaf);
        }
    }

    /// The tree is dropped, and nobody reads it any more: its pages may come to belong to others.
    pub(crate) fn forget_tree(&self, tree: TreeId) {
        for shard in &self.shards {
            shard.write().retain(|_, leaf| {
                let is_kept = leaf.tree != tree;
                if !is_kept {
                    self.leaves.fetch_sub(1, Ordering::Relaxed);
                    self.resized(leaf.table.memory_bytes(), 0);
                }
                is_kept
            });
        }
    }

    /// Drops the versions of one leaf that nobody needs. Returns whether any are left.
    pub(crate) fn purge_leaf(&self, page: PageId, live: &LiveSnapshots) -> bool {
        let mut shard = self.shard(page).write();
        let Some(leaf) = shard.get_mut(&page) else {
            return false;
        };
        self.purge_table(leaf, live);
        !leaf.table.is_empty()
    }

    /// As [`purge_leaf`](Self::purge_leaf), if the table has grown since the last time.
    pub(crate) fn purge_grown(&self, page: PageId, live: impl FnOnce() -> Arc<LiveSnapshots>) {
        let has_grown = self.read(page, VersionTable::has_grown).unwrap_or(false);
        if has_grown {
            self.purge_leaf(page, &live());
        }
    }

    fn purge_table(&self, leaf: &mut LeafVersions, live: &LiveSnapshots) {
        let bytes = leaf.table.memory_bytes();
        let (has_ghosts, forgotten) = (leaf.has_ghosts, &mut leaf.forgotten);
        leaf.table.purge(live, |key| {
            if has_ghosts && forgotten.is_none() {
                *forgotten = Some(key.to_vec());
            }
        });
        self.resized(bytes, leaf.table.memory_bytes());
    }

    /// Goes through all tables: drops what nobody needs, and tables without versions. `emptied` is called, with the
    /// shard locked, for each page that has no table any more. Returns where garbage may lie.
    pub(crate) fn sweep(
        &self,
        live: &LiveSnapshots,
        mut emptied: impl FnMut(PageId),
    ) -> Vec<GarbageHint> {
        let mut hints = Vec::new();
        for shard in &self.shards {
            let mut after = Bound::Unbounded;
            loop {
                let mut shard = shard.write();
                let pages: Vec<_> = shard
                    .range((after, Bound::Unbounded))
                    .map(|(&page, _)| page)
                    .take(TABLES_PER_LOCK)
                    .collect();
                let Some(&last) = pages.last() else { break };
                after = Bound::Excluded(last);
                for page in pages {
                    self.sweep_leaf(&mut shard, page, live, &mut emptied, &mut hints);
                }
            }
        }
        hints
    }

    fn sweep_leaf(
        &self,
        shard: &mut Shard,
        page: PageId,
        live: &LiveSnapshots,
        emptied: &mut impl FnMut(PageId),
        hints: &mut Vec<GarbageHint>,
    ) {
        let Some(leaf) = shard.get_mut(&page) else {
            return;
        };
        self.purge_table(leaf, live);
        if let Some(key) = leaf.forgotten.take() {
            hints.push(GarbageHint {
                tree: leaf.tree,
                key,
            });
        }
        if leaf.table.is_empty() {
            self.resized(leaf.table.memory_bytes(), 0);
            self.leaves.fetch_sub(1, Ordering::Relaxed);
            shard.remove(&page);
            emptied(page);
        }
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;
    use crate::page::Lsn;
    use crate::snapshot::{ReadView, SnapshotRegistry};
    use crate::transaction::TransactionId;

    const TREE: TreeId = TreeId(7);
    const LEAF: PageId = PageId(40);
    const OTHER: PageId = PageId(41);

    fn store() -> VersionStore {
        VersionStore::new(1 << 20)
    }

    fn seen(store: &VersionStore, page: PageId, key: &[u8], view: &ReadView) -> String {
        let seen = store.read(page, |table| format!("{:?}", table.resolve(key, view)));
        seen.unwrap_or_else(|| "no table".into())
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
        store.split(LEAF, OTHER, b"m");
        assert_eq!(seen(&store, LEAF, b"a", &view), "Value([97])");
        assert_eq!(seen(&store, LEAF, b"m", &view), "Page");
        assert_eq!(seen(&store, OTHER, b"m", &view), "Value([109])");
        assert_eq!(store.leaves(), 2);
        store.move_all(OTHER, LEAF);
        assert_eq!(seen(&store, OTHER, b"m", &view), "no table");
        assert_eq!(seen(&store, LEAF, b"z", &view), "Value([122])");
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
    fn the_budget_is_a_limit() {
        let store = VersionStore::new(4_000);
        let writer = StatusCell::new(TransactionId(1));
        let before = Before::Value(&[0; 1_000]);
        let mut pushed = 0;
        while store.check_room(b"key", before).is_ok() {
            store.push(LEAF, TREE, b"key", &writer, before, false);
            pushed += 1;
        }
        assert!((1..=4).contains(&pushed));
        assert!(matches!(
            store.check_room(b"key", before),
            Err(StorageError::VersionStoreFull { limit: 4_000 })
        ));
    }
}
