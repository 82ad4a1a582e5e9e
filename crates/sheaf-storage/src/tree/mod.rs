//! B+trees: ordered maps from byte keys to byte values.
//!
//! Keys compare by memcmp; the floor above encodes rows so that this is their order. Entries live in the leaves;
//! inner nodes hold separators, which are as short as they can be. There are no sibling pointers: every node knows
//! its fences, and the next leaf is found by descending with the high fence.
//!
//! | file | what it holds |
//! |---|---|
//! | [`node`](crate::node) | one page: slots, heads, heap, fences |
//! | [`search`] | descents: optimistic, latched, exclusive |
//! | [`insert`], [`delete`] | changes of one leaf, with or without conflicts; ghosts and their purge |
//! | [`amend`] | a change of what a view shows, in one visit of the leaf |
//! | [`split`], [`merge`] | changes of the shape |
//! | [`cursor`], [`point_reader`] | scans by private copies of leaves; lookups in a row |
//! | [`page_buffer`] | memory for such copies |
//! | [`versioned_read`] | what a view sees of a leaf; which transaction has changed a key and not committed |
//! | [`bulk_build`] | a tree from sorted entries, bottom up |
//! | [`leaves_of_keys`], [`estimate`] | questions answered from inner nodes: prefetch, counts, cuts |
//! | [`last_key`] | the largest key, ghosts included |
//! | [`large_scan`] | how much stays in the pool of scans that are larger than it |
//! | [`look_ahead`] | lookups of many keys that wait for memory together |
//! | [`residency`] | how much of a range, and of each tree, is in memory |
//! | [`leaf_sample`] | leaves chosen at random |
//! | [`check`] | whether a tree is what it should be |
//!
//! **Readers and writers.** Any number of both may use a tree together. A reader sees every leaf as it was at one
//! moment, but a scan's leaves at different moments. What it sees of others' work is decided by its view: with a
//! snapshot it sees the same state on all leaves, with [`ReadView::newest`] whatever is there.
//!
//! **Latches** are taken from the root downwards, in one level from left to right, and held only within one call.
//!
//! | file | what it holds |
//! |---|---|
//! | [`directory`] | which trees there are, their roots and their sizes |

mod amend;
mod bulk_build;
mod check;
mod cursor;
pub(crate) mod delete;
pub(crate) mod directory;
mod estimate;
mod insert;
mod large_scan;
mod last_key;
pub(crate) mod leaf_hints;
mod leaf_sample;
mod leaves_of_keys;
mod look_ahead;
mod merge;
mod page_buffer;
mod point_reader;
mod residency;
mod search;
mod split;
#[cfg(all(test, not(feature = "simulation")))]
mod tests;
mod versioned_read;

use std::sync::{Arc, Weak};

use crate::counters::ThreadPageWork;
use crate::error::{Result, StorageError};
use crate::page::{PAGE_SIZE, PageId, TreeId};
use crate::page_store::PageStore;
use crate::pool::passing_pages::LastLargeScan;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::transaction::snapshot::ReadView;
use crate::tree::search::Target;

pub use crate::key_range::{KeyRange, prefix_successor};
pub use crate::node::{MAX_ENTRY_BYTES, MAX_KEY_BYTES, MIN_VALUE_LIMIT, value_limit};
pub use bulk_build::BulkBuilder;
pub use check::TreeCheck;
pub use cursor::{LeafCursor, LeafEntries};
pub use leaf_sample::LeafSample;
pub use look_ahead::LOOK_AHEAD_KEYS;
pub(crate) use page_buffer::release_thread_buffers;
pub use point_reader::PointReader;
pub use residency::Residency;
pub use versioned_read::Settled;

/// Order in which a cursor visits leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// How far ahead of a cursor leaves are requested from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    Off,
    /// At most this many leaves beyond the current one, and at most an eighth of the pool.
    Pages(usize),
    /// The same, from the first page on for which the scan had to wait: nothing where all is in memory.
    AfterMiss(usize),
}

/// Size and shape of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStatistics {
    /// Live entries. Under concurrent changes, those of a moment ago.
    pub entries: u64,
    pub leaf_pages: u64,
    pub inner_pages: u64,
    /// Levels: 1 is a tree that is a single leaf.
    pub height: u32,
    /// Bytes of the tree's pages.
    pub bytes: u64,
}

/// What the directory keeps of a tree besides its root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub entries: u64,
    pub leaf_pages: u64,
    pub inner_pages: u64,
    pub height: u32,
}

/// The counts of an open tree.
pub(crate) struct LiveCounts {
    entries: AtomicU64,
    leaf_pages: AtomicU64,
    inner_pages: AtomicU64,
    height: AtomicU32,
    /// They differ from what the directory says.
    changed: AtomicBool,
}

impl LiveCounts {
    fn new(counts: Counts) -> LiveCounts {
        LiveCounts {
            entries: AtomicU64::new(counts.entries),
            leaf_pages: AtomicU64::new(counts.leaf_pages),
            inner_pages: AtomicU64::new(counts.inner_pages),
            height: AtomicU32::new(counts.height),
            changed: AtomicBool::new(false),
        }
    }

    /// They differ from what the directory says.
    pub(crate) fn note_change(&self) {
        if !self.changed.load(Ordering::Relaxed) {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    fn add_entries(&self, entries: i64) {
        self.entries.fetch_add(entries as u64, Ordering::Relaxed);
        self.note_change();
    }

    fn set_entries(&self, entries: u64) {
        if self.entries.swap(entries, Ordering::Relaxed) != entries {
            self.note_change();
        }
    }

    fn add_pages(&self, level: u8, pages: i64) {
        let counter = if level == 0 {
            &self.leaf_pages
        } else {
            &self.inner_pages
        };
        counter.fetch_add(pages as u64, Ordering::Relaxed);
        self.note_change();
    }

    fn set_height(&self, levels: u8) {
        self.height.store(u32::from(levels), Ordering::Relaxed);
        self.note_change();
    }

    fn leaf_pages(&self) -> u64 {
        self.leaf_pages.load(Ordering::Relaxed)
    }

    /// The present counts.
    pub(crate) fn read(&self) -> Counts {
        Counts {
            // Below zero, an estimate that a crash has left was too low.
            entries: (self.entries.load(Ordering::Relaxed) as i64).max(0) as u64,
            leaf_pages: self.leaf_pages(),
            inner_pages: self.inner_pages.load(Ordering::Relaxed),
            height: self.height.load(Ordering::Relaxed),
        }
    }

    /// Whether the counts changed since this was asked last.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }
}

/// One B+tree. Used as `Arc<Tree>`, by any number of threads.
pub struct Tree {
    id: TreeId,
    /// Never moves.
    root: PageId,
    store: Arc<PageStore>,
    counts: LiveCounts,
    last_large_scan: LastLargeScan,
    /// The log has whole values of its changes.
    is_followed: AtomicBool,
    /// Its entries are the rows of a table.
    holds_rows: AtomicBool,
    this: Weak<Tree>,
}

impl Tree {
    pub(crate) fn new(
        store: Arc<PageStore>,
        id: TreeId,
        root: PageId,
        counts: Counts,
    ) -> Arc<Tree> {
        Arc::new_cyclic(|this| Tree {
            id,
            root,
            store,
            counts: LiveCounts::new(counts),
            last_large_scan: LastLargeScan::default(),
            is_followed: AtomicBool::new(false),
            holds_rows: AtomicBool::new(false),
            this: this.clone(),
        })
    }

    pub fn id(&self) -> TreeId {
        self.id
    }

    pub(crate) fn root(&self) -> PageId {
        self.root
    }

    pub(crate) fn store(&self) -> &Arc<PageStore> {
        &self.store
    }

    pub(crate) fn counts(&self) -> &LiveCounts {
        &self.counts
    }

    /// The log has whole values of all changes from now on, for [followers](crate::ChangeFeed). Nothing
    /// where the storage was opened without followers. To be said when no transaction changes the tree.
    pub fn follow(&self) {
        let is_followed = self.store.follows_changes();
        self.is_followed.store(is_followed, Ordering::Relaxed);
    }

    /// Whether the log has whole values of its changes.
    #[inline]
    pub fn is_followed(&self) -> bool {
        self.is_followed.load(Ordering::Relaxed)
    }

    /// Its entries are rows: transactions [count](crate::ChangedRows) those that they change. To be said when no
    /// transaction changes the tree.
    pub fn count_rows(&self) {
        self.holds_rows.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn holds_rows(&self) -> bool {
        self.holds_rows.load(Ordering::Relaxed)
    }

    /// This tree, for a caller that keeps it.
    pub(crate) fn shared(&self) -> Result<Arc<Tree>> {
        self.this
            .upgrade()
            .ok_or(StorageError::NoSuchTree { tree: self.id })
    }

    /// Looks up `key` as it is now. `value` is cleared, and filled if the key is there.
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.get_at(&ReadView::newest(), key, value)
    }

    /// Looks up `key` as the view sees it. `value` is cleared, and filled if the key is there.
    pub fn get_at(&self, view: &ReadView, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.retry(|failures| {
            let leaf = self.find_leaf(Target::Key(key), failures)?;
            let is_there = self.read_entry(&leaf, view, key, value)?;
            leaf.validate()?;
            Ok(is_there)
        })
    }

    /// Pages that the pool in which the tree is cached can hold.
    pub fn pool_pages(&self) -> u64 {
        self.store.frames
    }

    /// What the calling thread has asked of the pool in which the tree is cached.
    pub fn thread_page_work(&self) -> ThreadPageWork {
        self.store.pool.thread_page_work()
    }

    /// Size and shape of the tree, from counters.
    pub fn statistics(&self) -> TreeStatistics {
        let Counts {
            entries,
            leaf_pages,
            inner_pages,
            height,
        } = self.counts.read();
        TreeStatistics {
            entries,
            leaf_pages,
            inner_pages,
            height,
            bytes: (leaf_pages + inner_pages) * PAGE_SIZE as u64,
        }
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("id", &self.id)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
