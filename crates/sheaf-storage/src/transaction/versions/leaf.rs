//! The past of one leaf: a table in memory, and older tables that were spilled.
//!
//! ```text
//!   page   newest state
//!   table  (k, T9, before ..)  ...                     in memory, may be absent
//!   parts  part 2, from new to old                     spilled, never changed, in memory only: their writers,
//!          part 1   [.......)                          and a filter of the keys
//! ```
//!
//! A change always goes to the table, so nothing needs to be read back to make one. A part is shared by the leaves
//! among which its keys have come to be divided. Each leaf says which range of the keys is its own, so a split or a
//! merge reads and writes nothing either. Parts of one leaf that hold the same keys are ordered from new to old.

use std::io;
use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::page::{Lsn, TreeId};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::transaction::snapshot::{LiveSnapshots, ReadView, StatusCell, TransactionStatus};
use crate::transaction::spill_file::Spilled;
use crate::transaction::versions::bloom_filter::BloomFilter;
use crate::transaction::versions::table::VersionTable;

/// What a map entry costs beside what it holds.
const MAP_ENTRY_BYTES: usize = 24;

/// Stands for an absent table.
static NO_VERSIONS: VersionTable = VersionTable::new();

/// A table that was spilled.
pub(super) struct SpilledTable {
    pub(super) bytes: Spilled,
    writers: Box<[Arc<StatusCell>]>,
    keys: BloomFilter,
    /// When the last writer committed, once all have ended; [`UNSETTLED`] before.
    settled_at: AtomicU64,
}

/// A writer of a spilled table has not ended, as far as was looked.
const UNSETTLED: u64 = u64::MAX;

impl SpilledTable {
    pub(super) fn new(
        bytes: Spilled,
        writers: Box<[Arc<StatusCell>]>,
        keys: BloomFilter,
    ) -> SpilledTable {
        SpilledTable {
            bytes,
            writers,
            keys,
            settled_at: AtomicU64::new(UNSETTLED),
        }
    }

    /// When the last of the writers committed, [`Lsn`] 0 if none did; none while one of them is active.
    fn settled_at(&self) -> Option<Lsn> {
        let known = self.settled_at.load(Ordering::Relaxed);
        if known != UNSETTLED {
            return Some(Lsn(known));
        }
        let mut last = Lsn(0);
        for writer in &self.writers {
            match writer.status() {
                TransactionStatus::Active => return None,
                TransactionStatus::Committed(ended) => last = last.max(ended),
                TransactionStatus::RolledBack => {}
            }
        }
        // The writers stay the same, and ended is ended: every thread that gets here stores the same.
        self.settled_at.store(last.0, Ordering::Relaxed);
        Some(last)
    }

    fn load(&self) -> Result<VersionTable> {
        let bytes = self.bytes.read()?;
        VersionTable::decode(&bytes[..self.bytes.length()], &self.writers).ok_or_else(|| {
            let damaged = io::Error::new(io::ErrorKind::InvalidData, "not a table of versions");
            StorageError::io("read", "the spill file", 0, damaged)
        })
    }

    fn memory_bytes(&self) -> usize {
        // With the counters of the shared pointer.
        2 * size_of::<usize>()
            + size_of::<SpilledTable>()
            + size_of_val(&*self.writers)
            + self.keys.memory_bytes()
    }
}

/// A range of keys: `low <= key < high`, either of them absent.
#[derive(Clone, Default, PartialEq, Eq)]
struct Bounds {
    low: Option<Box<[u8]>>,
    high: Option<Box<[u8]>>,
}

impl Bounds {
    fn contain(&self, key: &[u8]) -> bool {
        self.low.as_ref().is_none_or(|low| **low <= *key)
            && self.high.as_ref().is_none_or(|high| *key < **high)
    }

    fn is_empty(&self) -> bool {
        matches!((&self.low, &self.high), (Some(low), Some(high)) if low >= high)
    }

    fn memory_bytes(&self) -> usize {
        let bound = |bound: &Option<Box<[u8]>>| bound.as_ref().map_or(0, |bytes| bytes.len());
        size_of::<Bounds>() + bound(&self.low) + bound(&self.high)
    }
}

/// A leaf's share in a spilled table.
#[derive(Clone)]
pub(super) struct Part {
    table: Arc<SpilledTable>,
    /// Bytes of the table that the share counts for, about: each split halves them.
    share_bytes: u32,
    /// None: all keys of the table are keys of the leaf.
    bounds: Option<Box<Bounds>>,
}

impl Part {
    pub(super) fn new(table: SpilledTable) -> Part {
        Part {
            share_bytes: table.bytes.length() as u32,
            table: Arc::new(table),
            bounds: None,
        }
    }

    /// Whether a writer that `matters` picks has perhaps written here (under `key`, if there is one).
    pub(super) fn may_matter(
        &self,
        key: Option<&[u8]>,
        matters: impl Fn(&Arc<StatusCell>) -> bool,
    ) -> bool {
        key.is_none_or(|key| self.may_hold(key)) && self.table.writers.iter().any(matters)
    }

    /// Whether the view has perhaps to look for a version here (of `key`, if there is one).
    pub(super) fn may_matter_to(&self, view: &ReadView, key: Option<&[u8]>) -> bool {
        !self.is_seen_whole(view) && self.may_matter(key, |writer| view.hides(writer))
    }

    /// Whether the view sees everything that was written here. May be false although it does.
    fn is_seen_whole(&self, view: &ReadView) -> bool {
        let snapshot = view.timestamp();
        snapshot.is_none_or(|snapshot| self.is_settled_at(snapshot))
    }

    /// Whether all writers have ended, and none of them committed after the snapshot.
    fn is_settled_at(&self, snapshot: Lsn) -> bool {
        let settled_at = self.table.settled_at();
        settled_at.is_some_and(|settled_at| settled_at <= snapshot)
    }

    fn may_hold(&self, key: &[u8]) -> bool {
        let bounds = self.bounds.as_ref();
        bounds.is_none_or(|bounds| bounds.contain(key)) && self.table.keys.may_hold(key)
    }

    /// Whether both are the same share in the same table.
    fn is_same(&self, other: &Part) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.bounds == other.bounds
    }

    /// Bytes of the spilled table, of which other leaves may have shares.
    pub(super) fn spilled_bytes(&self) -> usize {
        self.table.bytes.length()
    }

    /// The versions of the part.
    fn add_to(&self, newer: &mut VersionTable) -> Result<()> {
        let older = self.table.load()?;
        let bounds = self.bounds.as_deref();
        let low = bounds.and_then(|bounds| bounds.low.as_deref());
        let high = bounds.and_then(|bounds| bounds.high.as_deref());
        newer.add_older(&older, low, high);
        Ok(())
    }

    /// Whether a snapshot may look for a version of the part.
    fn is_needed(&self, live: &LiveSnapshots) -> bool {
        let settled_at = self.table.settled_at();
        settled_at.is_none_or(|settled_at| live.need(Lsn(0), settled_at))
    }

    /// The part's keys below `separator`, and those from there on; none where there can be no keys.
    fn split(self, separator: &[u8]) -> [Option<Part>; 2] {
        let (mut lower, mut upper) = (self.clone(), self);
        lower.narrow(|bounds| match &bounds.high {
            Some(high) if **high <= *separator => {}
            _ => bounds.high = Some(separator.into()),
        });
        upper.narrow(|bounds| match &bounds.low {
            Some(low) if **low >= *separator => {}
            _ => bounds.low = Some(separator.into()),
        });
        let may_hold_keys = |part: &Part| part.bounds.as_ref().is_none_or(|b| !b.is_empty());
        if may_hold_keys(&lower) && may_hold_keys(&upper) {
            lower.share_bytes = lower.share_bytes.div_ceil(2);
            upper.share_bytes = upper.share_bytes.div_ceil(2);
        }
        [lower, upper].map(|part| may_hold_keys(&part).then_some(part))
    }

    fn narrow(&mut self, narrow: impl FnOnce(&mut Bounds)) {
        narrow(self.bounds.get_or_insert_default());
    }

    /// What the part takes, as if the leaf had it for itself.
    fn memory_bytes(&self) -> usize {
        let bounds = self.bounds.as_ref();
        size_of::<Part>()
            + self.table.memory_bytes()
            + bounds.map_or(0, |bounds| bounds.memory_bytes())
    }
}

/// Most leaves beside a leaf that wait to be merged with it. More would have to come from splits.
const MAX_UNMERGED: usize = 4;

/// A leaf's past.
pub(super) struct LeafVersions {
    pub(super) tree: TreeId,
    /// Never the same for two states of a leaf, nor for two leaves that had the page one after the other.
    pub(super) stamp: u64,
    /// The newest versions.
    table: Option<Box<VersionTable>>,
    /// Older versions: for each key from new to old.
    pub(super) parts: Vec<Part>,
    /// A key of the leaf, if there may be ghosts on it, or if its past has kept it from being merged.
    ghost: Option<Box<[u8]>>,
    /// A key has no versions any more, while there may be ghosts: for the next sweep.
    has_garbage: bool,
    /// Keys of leaves beside this one that its past has kept from being merged.
    unmerged: Vec<Box<[u8]>>,
    /// Some of the past has gone since: for the next sweep.
    has_shrunk: bool,
    /// Ghosts were made since the collector was sent here: they are garbage when the transactions that made them have
    /// ended.
    has_new_ghosts: bool,
    /// Used since the spiller came by last.
    is_hot: AtomicBool,
}

impl LeafVersions {
    pub(super) fn new(tree: TreeId) -> LeafVersions {
        LeafVersions {
            tree,
            stamp: 0,
            table: None,
            parts: Vec::new(),
            ghost: None,
            has_garbage: false,
            unmerged: Vec::new(),
            has_shrunk: false,
            has_new_ghosts: false,
            is_hot: AtomicBool::new(true),
        }
    }

    /// The versions in memory.
    pub(super) fn table(&self) -> &VersionTable {
        self.table.as_deref().unwrap_or(&NO_VERSIONS)
    }

    /// The newest change of `key`, which is `writer`'s, has been undone.
    pub(super) fn pop(&mut self, key: &[u8], writer: &Arc<StatusCell>) {
        let mut table = self.table.as_mut();
        if table.as_mut().is_some_and(|table| table.pop(key, writer)) {
            return;
        }
        let is_own = |other: &Arc<StatusCell>| Arc::ptr_eq(other, writer);
        if self
            .parts
            .iter()
            .any(|part| part.may_matter(Some(key), is_own))
        {
            self.table_mut().pop_spilled(key, writer);
        }
    }

    pub(super) fn table_mut(&mut self) -> &mut VersionTable {
        self.table.get_or_insert_default()
    }

    pub(super) fn set_table(&mut self, table: VersionTable) {
        self.table = (!table.is_empty()).then(|| Box::new(table));
    }

    /// Whether a writer that `is_meant` picks has written here, or may have.
    pub(super) fn has_writer(&self, is_meant: impl Fn(&Arc<StatusCell>) -> bool) -> bool {
        let mut parts = self.parts.iter();
        self.table().writers().iter().any(&is_meant)
            || parts.any(|part| part.may_matter(None, &is_meant))
    }

    /// Whether all writers have ended, and none of them committed after the snapshot.
    pub(super) fn is_settled_at(&self, snapshot: Lsn) -> bool {
        let mut parts = self.parts.iter();
        self.table().is_settled_at(snapshot) && parts.all(|part| part.is_settled_at(snapshot))
    }

    /// When the last of the committed writers committed, [`Lsn`] 0 if none did; none while one of them is active.
    pub(super) fn settle(&mut self) -> Option<Lsn> {
        let in_memory = self
            .table
            .as_mut()
            .map_or(Some(Lsn(0)), |table| table.settle());
        let parts = self.parts.iter().map(|part| part.table.settled_at());
        parts
            .chain([in_memory])
            .try_fold(Lsn(0), |last, settled_at| Some(last.max(settled_at?)))
    }

    /// Whether the view sees everything that was written here: then the page is what it sees. May be false although it
    /// does.
    pub(super) fn is_seen_whole(&self, view: &ReadView) -> bool {
        self.table().is_seen_whole(view) && self.parts.iter().all(|part| part.is_seen_whole(view))
    }

    /// Nothing is left of the past.
    pub(super) fn is_empty(&self) -> bool {
        self.table().is_empty() && self.parts.is_empty()
    }

    pub(super) fn touch(&self) {
        // Written only when it changes something: readers of other leaves may be looking at the same cache line.
        if !self.is_hot.load(Ordering::Relaxed) {
            self.is_hot.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the leaf was used since this was asked last.
    pub(super) fn cool_down(&self) -> bool {
        self.is_hot.swap(false, Ordering::Relaxed)
    }

    /// Memory of the table and of the rest, which stays when the table is spilled.
    pub(super) fn memory_bytes(&self) -> (usize, usize) {
        let table = self.table.as_ref();
        (
            table.map_or(0, |table| table.memory_bytes()),
            self.bytes_beside_table(),
        )
    }

    fn bytes_beside_table(&self) -> usize {
        MAP_ENTRY_BYTES
            + size_of::<LeafVersions>()
            + self.parts.iter().map(Part::memory_bytes).sum::<usize>()
            + self.ghost.as_ref().map_or(0, |key| key.len())
            + self.unmerged.capacity() * size_of::<Box<[u8]>>()
            + self.unmerged.iter().map(|key| key.len()).sum::<usize>()
    }

    /// The past is too large for the leaf of this key, beside this one, to be merged with it.
    pub(super) fn note_unmerged(&mut self, key: &[u8]) {
        let is_known = self.unmerged.iter().any(|known| **known == *key);
        if !is_known && self.unmerged.len() < MAX_UNMERGED {
            self.unmerged.push(key.into());
        }
    }

    /// Keys of leaves that may be merged now.
    pub(super) fn take_unmerged(&mut self) -> Vec<Box<[u8]>> {
        match std::mem::take(&mut self.has_shrunk) {
            true => std::mem::take(&mut self.unmerged),
            false => Vec::new(),
        }
    }

    fn shrinks(&mut self, has_forgotten: bool) {
        self.has_garbage |= has_forgotten && self.ghost.is_some();
        self.has_shrunk |= has_forgotten && !self.unmerged.is_empty();
    }

    /// There may be a ghost of this key, or of another.
    pub(super) fn note_ghost(&mut self, key: &[u8]) {
        if self.ghost.is_none() {
            self.ghost = Some(key.into());
        }
    }

    /// The entry of this key has become a ghost.
    pub(super) fn note_new_ghost(&mut self, key: &[u8]) {
        self.note_ghost(key);
        self.has_new_ghosts = true;
    }

    /// A ghost has lost the versions for which it was kept.
    pub(super) fn note_garbage(&mut self, key: &[u8]) {
        self.note_ghost(key);
        self.has_garbage = true;
    }

    /// Whether the collector has to come for ghosts, now or when a transaction has ended, or for a merge.
    pub(super) fn awaits_collector(&self) -> bool {
        self.has_garbage || self.has_new_ghosts || self.has_shrunk
    }

    /// There is no ghost on the page.
    pub(super) fn forget_ghosts(&mut self) {
        self.ghost = None;
        self.has_garbage = false;
        self.has_new_ghosts = false;
    }

    /// A key where ghosts may be found that are garbage. It is not told again before there is more.
    pub(super) fn take_garbage(&mut self) -> Option<Vec<u8>> {
        let have_ended = self.has_new_ghosts && self.settle().is_some();
        if !self.has_garbage && !have_ended {
            return None;
        }
        self.has_garbage = false;
        // The collector leaves the ghosts of active transactions where they are, and comes again.
        self.has_new_ghosts &= !have_ended;
        self.ghost.as_deref().map(<[u8]>::to_vec)
    }

    /// Whether no active transaction has changed `key`. May be false although that is so, if versions were spilled.
    pub(super) fn has_ended(&self, key: &[u8]) -> bool {
        match self.table().newest_writer(key) {
            Some(writer) => !writer.is_active(),
            None => {
                let mut parts = self.parts.iter();
                !parts.any(|part| part.may_matter(Some(key), |writer| writer.is_active()))
            }
        }
    }

    /// Bytes of all versions, as far as they can be told: of spilled tables only how often they were divided is known.
    pub(super) fn past_bytes(&self) -> usize {
        let shares = self.parts.iter().map(|part| part.share_bytes as usize);
        self.table().encoded_bytes() + shares.sum::<usize>()
    }

    /// Drops what no snapshot needs. What is dropped may be put back by a thread that has copied it before: the past
    /// keeps its stamp.
    pub(super) fn purge(&mut self, live: &LiveSnapshots) {
        let mut has_forgotten = self.table.as_mut().is_some_and(|table| table.purge(live));
        let parts = self.parts.len();
        self.parts.retain(|part| part.is_needed(live));
        has_forgotten |= self.parts.len() < parts;
        self.shrinks(has_forgotten);
        if self.table().is_empty() {
            self.table = None;
        }
    }

    /// The table was spilled as these parts, from new to old, together with those of the leaf's parts that it was
    /// `joined` with; a purge may have dropped some of them meanwhile. `has_forgotten`: what is not needed was left
    /// out, and with it all that there was of a key.
    pub(super) fn set_spilled(&mut self, parts: Vec<Part>, joined: &[Part], has_forgotten: bool) {
        self.table = None;
        let is_joined = |part: &Part| joined.iter().any(|joined| joined.is_same(part));
        self.parts.retain(|part| !is_joined(part));
        drop(self.parts.splice(..0, parts));
        self.parts.shrink_to_fit();
        self.shrinks(has_forgotten);
    }

    /// Takes the past of the keys from `separator` on out. Both sides may have ghosts if there were any. `low_fence` is
    /// the leaf's.
    pub(super) fn split_off(&mut self, separator: &[u8], low_fence: &[u8]) -> LeafVersions {
        let mut upper = LeafVersions::new(self.tree);
        if let Some(table) = &mut self.table {
            upper.set_table(table.split_off(separator));
        }
        for part in std::mem::take(&mut self.parts) {
            let [lower_part, upper_part] = part.split(separator);
            self.parts.extend(lower_part);
            upper.parts.extend(upper_part);
        }
        if let Some(ghost) = &mut self.ghost {
            if **ghost >= *separator {
                *ghost = low_fence.into();
            }
            upper.ghost = Some(separator.into());
            upper.has_garbage = self.has_garbage;
            upper.has_new_ghosts = self.has_new_ghosts;
        }
        let unmerged = std::mem::take(&mut self.unmerged).into_iter();
        (upper.unmerged, self.unmerged) = unmerged.partition(|key| **key >= *separator);
        // Each side has less than both had.
        upper.has_shrunk = !upper.unmerged.is_empty();
        self.has_shrunk = !self.unmerged.is_empty();
        upper
    }

    /// Adds the past of the right neighbour, whose keys are all greater.
    pub(super) fn join(&mut self, right: LeafVersions) {
        match (&mut self.table, right.table) {
            (Some(table), Some(right)) => table.join(&right),
            (table @ None, right) => *table = right,
            (Some(_), None) => {}
        }
        self.parts.extend(right.parts);
        self.ghost = self.ghost.take().or(right.ghost);
        self.has_garbage |= right.has_garbage;
        self.has_new_ghosts |= right.has_new_ghosts;
        right
            .unmerged
            .iter()
            .for_each(|key| self.note_unmerged(key));
        self.has_shrunk |= right.has_shrunk;
    }

    /// What there is at this moment.
    pub(super) fn copy(&self) -> LeafCopy {
        LeafCopy {
            stamp: self.stamp,
            table: self.table().clone(),
            parts: self.parts.clone(),
        }
    }
}

/// A leaf's past as it was at some moment.
pub(super) struct LeafCopy {
    pub(super) stamp: u64,
    pub(super) table: VersionTable,
    pub(super) parts: Vec<Part>,
}

impl LeafCopy {
    /// Reads the parts: the table has everything then.
    pub(super) fn load_parts(&mut self) -> Result<()> {
        for part in std::mem::take(&mut self.parts) {
            part.add_to(&mut self.table)?;
        }
        Ok(())
    }

    /// The table with so many of the newest parts.
    pub(super) fn with_newest_parts(&self, parts: usize) -> Result<VersionTable> {
        let mut table = self.table.clone();
        for part in &self.parts[..parts] {
            part.add_to(&mut table)?;
        }
        Ok(table)
    }
}
