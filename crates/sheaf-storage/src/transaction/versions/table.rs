//! The versions of one leaf: what its entries were before.
//!
//! A version names the writer of what comes after it, and holds what was there before. The versions of a key form a
//! chain from the newest to the oldest, whose newest state is the entry on the page:
//!
//! ```text
//!   page:  k = "c"                          entries of the table, by key and from new to old
//!          ^ written by T9                  (k, T9, before "b")  (k, T5, before "a")  (k, T2, before absent)
//!
//!   a view that sees T9 sees "c"; else one that sees T5, "b"; else one that sees T2, "a"; all others, no entry
//! ```
//!
//! So a reader walks a chain until it finds a writer that it sees. What a version holds was current from the commit of
//! the next older version's writer (since ever, if there is none) until the commit of its own writer. When no snapshot
//! lies in between, the version goes, also from the middle of a chain ([`super::purge`]).
//!
//! A transaction that changes a key again adds nothing: no other may see what it was in between, and the transaction
//! itself sees the page. Its one version counts its changes, so that undoing them one by one ends with it.
//!
//! **A version may outlive its change.** When a change is undone, its version goes with it if it is in memory. If it
//! was spilled, an anti-version is noted here, with a count below zero. The two become one when the spilled table comes
//! back: what is left of a key is what the writer has changed and not undone. So the writer itself finds again what
//! others had done to the key before it came, which its snapshot may not see. When a transaction has been rolled back
//! as a whole, readers pass its versions by, whichever of them are left, and a purge drops them.
//!
//! The table is flat: keys and before-images lie in one block of bytes, and a version is 16 bytes that point into it.
//! Beside it are 4 bytes of the key, for searches ([`super::key_heads`]). A version costs these 20 bytes, the key and
//! the before-image, and no allocation of its own; a table is moved, split with its leaf, spilled, and counted as one
//! thing.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::key_range::KeyRange;
use crate::page::Lsn;
use crate::pool::optimistic_read::compare_bytes;
use crate::transaction::snapshot::{ReadView, StatusCell, TransactionStatus};
use crate::transaction::versions::key_heads::KeyHeads;

/// What an entry was before a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before<'a> {
    /// There was no entry, or a ghost.
    Absent,
    Value(&'a [u8]),
}

/// What a reader finds in a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen<'a> {
    /// What the page holds: an entry, a ghost, or nothing.
    Page,
    Absent,
    Value(&'a [u8]),
}

/// Stands for the length of a before-image that is absent; entries are much shorter than this.
const ABSENT: u16 = u16::MAX;

/// Beside the length of a key: its writer's last change has left no entry. Keys are much shorter than this.
const LEAVES_NOTHING: u16 = 1 << 15;

#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    /// Where in the bytes the key begins; the before-image follows it.
    start: u32,
    /// Index into the writers.
    pub(super) writer: u32,
    /// The key's length, and perhaps [`LEAVES_NOTHING`].
    key_length: u16,
    before_length: u16,
    /// Changes that the writer made to the key and has not undone; below zero: it has undone so many of those that were
    /// spilled. Never zero.
    pub(super) changes: i32,
}

/// Bytes of a version in a spilled table.
const ENCODED_VERSION_BYTES: usize = 16;

impl Version {
    fn length(self) -> usize {
        let before = match self.before_length {
            ABSENT => 0,
            length => usize::from(length),
        };
        self.key_length() + before
    }

    /// The key, in the table's bytes.
    fn key(self, bytes: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &bytes[start..start + self.key_length()]
    }

    fn key_length(self) -> usize {
        usize::from(self.key_length & !LEAVES_NOTHING)
    }

    /// Whether there was no entry.
    pub(super) fn held_nothing(self) -> bool {
        self.before_length == ABSENT
    }

    /// Whether there is no entry after the writer's last change, and after those of newer versions that a purge has
    /// dropped. May be false although that is so.
    pub(super) fn leaves_nothing(self) -> bool {
        self.key_length & LEAVES_NOTHING != 0
    }

    pub(super) fn set_leaves_nothing(&mut self, leaves_nothing: bool) {
        self.key_length &= !LEAVES_NOTHING;
        if leaves_nothing {
            self.key_length |= LEAVES_NOTHING;
        }
    }
}

/// What is known of the first writers of a table: they need not be asked again one by one.
#[derive(Clone, Copy, Default, Debug)]
struct Settled {
    /// Writers that have ended.
    writers: usize,
    /// When the last of them committed.
    at: Lsn,
}

/// All versions of one leaf.
#[derive(Clone, Default, Debug)]
pub(crate) struct VersionTable {
    /// By key ascending, and for one key from new to old.
    pub(super) versions: Vec<Version>,
    /// Of the versions, in their order.
    heads: KeyHeads,
    pub(super) bytes: Vec<u8>,
    /// Bytes that belong to no version any more.
    pub(super) dead_bytes: usize,
    /// Each writer once. Some may have no version any more, until the next purge.
    writers: Vec<Arc<StatusCell>>,
    /// So many writers, from the first on, are known to have ended, the last of them then.
    settled: Settled,
    /// Versions after the last purge.
    pub(super) purged_to: usize,
}

impl VersionTable {
    pub(crate) const fn new() -> VersionTable {
        VersionTable {
            versions: Vec::new(),
            heads: KeyHeads::new(),
            bytes: Vec::new(),
            dead_bytes: 0,
            writers: Vec::new(),
            settled: Settled {
                writers: 0,
                at: Lsn(0),
            },
            purged_to: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// Memory that the table takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<VersionTable>()
            + self.versions.capacity() * size_of::<Version>()
            + self.heads.memory_bytes()
            + self.bytes.capacity()
            + self.writers.capacity() * size_of::<Arc<StatusCell>>()
    }

    /// Versions that were added since the last purge outnumber those that it left.
    pub(crate) fn has_grown(&self) -> bool {
        /// Fewer versions are not worth a purge.
        const FEW: usize = 16;
        self.versions.len() >= FEW.max(self.purged_to * 2)
    }

    pub(super) fn key(&self, version: Version) -> &[u8] {
        version.key(&self.bytes)
    }

    fn before(&self, version: Version) -> Before<'_> {
        if version.held_nothing() {
            return Before::Absent;
        }
        let start = version.start as usize + version.key_length();
        Before::Value(&self.bytes[start..start + usize::from(version.before_length)])
    }

    pub(super) fn writer(&self, version: Version) -> &Arc<StatusCell> {
        &self.writers[version.writer as usize]
    }

    /// The first version whose key is not less than `key`.
    pub(super) fn lower_bound(&self, key: &[u8]) -> usize {
        let candidates = self.heads.candidates(&self.bytes, key);
        let is_less = |&version: &Version| compare_bytes(self.key(version), key) == Ordering::Less;
        candidates.start + self.versions[candidates].partition_point(is_less)
    }

    /// The versions of `key`, from new to old.
    pub(super) fn chain(&self, key: &[u8]) -> Range<usize> {
        let first = self.lower_bound(key);
        first..self.chain_end(first, key)
    }

    pub(super) fn chain_end(&self, first: usize, key: &[u8]) -> usize {
        let versions = self.versions[first..].iter();
        first
            + versions
                .take_while(|&&version| self.key(version) == key)
                .count()
    }

    /// Whether the key has versions.
    pub(crate) fn has_chain(&self, key: &[u8]) -> bool {
        !self.chain(key).is_empty()
    }

    /// The writer of the newest change of `key` that was not undone, as far as is known here.
    pub(crate) fn newest_writer(&self, key: &[u8]) -> Option<&Arc<StatusCell>> {
        let versions = self.versions[self.lower_bound(key)..].iter();
        versions
            .take_while(|&&version| self.key(version) == key && version.changes > 0)
            .map(|&version| self.writer(version))
            .find(|writer| !writer.is_rolled_back())
    }

    /// Whether the entry of `key` was there before the transaction that has changed it last came.
    pub(crate) fn was_there_before_its_writer(&self, key: &[u8]) -> bool {
        let chain = &self.versions[self.chain(key)];
        let writer = chain.first().map(|version| version.writer);
        let own = chain
            .iter()
            .take_while(|version| Some(version.writer) == writer);
        own.last()
            .is_some_and(|&oldest| matches!(self.before(oldest), Before::Value(_)))
    }

    /// Notes that `writer` is changing `key`, which was `before`, and leaves an entry there.
    pub(crate) fn push(&mut self, key: &[u8], writer: &Arc<StatusCell>, before: Before<'_>) {
        self.push_change(key, writer, before, false);
    }

    /// Notes that `writer` is deleting `key`, which was `before`.
    pub(crate) fn push_delete(&mut self, key: &[u8], writer: &Arc<StatusCell>, before: Before<'_>) {
        self.push_change(key, writer, before, true);
    }

    fn push_change(
        &mut self,
        key: &[u8],
        writer: &Arc<StatusCell>,
        before: Before<'_>,
        leaves_nothing: bool,
    ) {
        let at = self.lower_bound(key);
        if self.is_newest(at, key, writer) {
            self.add_changes(at, 1, leaves_nothing);
        } else {
            self.insert(at, key, writer, before, 1);
            self.versions[at].set_leaves_nothing(leaves_nothing);
        }
    }

    /// Whether the version there is the newest of `key`, and the writer's.
    fn is_newest(&self, at: usize, key: &[u8], writer: &Arc<StatusCell>) -> bool {
        let version = self.versions.get(at).copied();
        version.is_some_and(|version| {
            self.key(version) == key && Arc::ptr_eq(self.writer(version), writer)
        })
    }

    fn add_changes(&mut self, at: usize, changes: i32, leaves_nothing: bool) {
        let version = &mut self.versions[at];
        version.changes = version.changes.saturating_add(changes);
        version.set_leaves_nothing(leaves_nothing);
        if version.changes == 0 {
            self.dead_bytes += version.length();
            self.versions.remove(at);
            self.heads.remove(at);
        }
    }

    fn insert(
        &mut self,
        at: usize,
        key: &[u8],
        writer: &Arc<StatusCell>,
        before: Before<'_>,
        changes: i32,
    ) {
        let (value, before_length) = match before {
            Before::Absent => (&[][..], ABSENT),
            Before::Value(value) => (value, value.len() as u16),
        };
        let version = Version {
            start: self.bytes.len() as u32,
            writer: self.writer_index(writer),
            key_length: key.len() as u16,
            before_length,
            changes,
        };
        self.bytes.reserve(key.len() + value.len());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.add(at, version);
    }

    /// Adds a version, whose key is in the bytes already, at its place.
    fn add(&mut self, at: usize, version: Version) {
        let bytes = &self.bytes;
        let others = self.versions.iter().map(|other| other.key(bytes));
        self.heads.insert(at, version.key(bytes), bytes, others);
        self.versions.insert(at, version);
    }

    /// The newest change of `key`, which is `writer`'s, has been undone. Its version goes unless the writer has changed
    /// the key before. Returns false if it is not here.
    pub(crate) fn pop(&mut self, key: &[u8], writer: &Arc<StatusCell>) -> bool {
        let at = self.lower_bound(key);
        let is_here = self.is_newest(at, key, writer);
        if is_here {
            self.add_changes(at, -1, false);
        }
        is_here
    }

    /// The newest change of `key`, which is `writer`'s and was spilled, has been undone.
    pub(super) fn pop_spilled(&mut self, key: &[u8], writer: &Arc<StatusCell>) {
        self.insert(self.lower_bound(key), key, writer, Before::Absent, -1);
    }

    fn writer_index(&mut self, writer: &Arc<StatusCell>) -> u32 {
        // The newest writer is the likeliest.
        let known = self
            .writers
            .iter()
            .rposition(|known| Arc::ptr_eq(known, writer));
        known.unwrap_or_else(|| {
            self.writers.push(writer.clone());
            self.writers.len() - 1
        }) as u32
    }

    /// Whether the view sees everything that was written here: then the page is what it sees. May be false although it
    /// does.
    pub(crate) fn is_seen_whole(&self, view: &ReadView) -> bool {
        view.timestamp()
            .is_none_or(|snapshot| self.settled.at <= snapshot)
            && self.writers[self.settled.writers..]
                .iter()
                .all(|writer| view.sees(writer))
    }

    /// Whether all writers have ended, and none of them committed after the snapshot.
    pub(super) fn is_settled_at(&self, snapshot: Lsn) -> bool {
        let mut others = self.writers[self.settled.writers..].iter();
        self.settled.at <= snapshot
            && others.all(|writer| writer.is_visible_at(snapshot) || writer.is_rolled_back())
    }

    /// Notes which writers have ended, and returns when the last of them committed, [`Lsn`] 0 if none did; none while
    /// one of them is active.
    pub(super) fn settle(&mut self) -> Option<Lsn> {
        for writer in &self.writers[self.settled.writers..] {
            match writer.status() {
                TransactionStatus::Active => return None,
                TransactionStatus::Committed(ended) => {
                    self.settled.at = self.settled.at.max(ended);
                }
                TransactionStatus::RolledBack => {}
            }
            self.settled.writers += 1;
        }
        Some(self.settled.at)
    }

    /// What the view sees under `key`.
    pub(crate) fn resolve(&self, key: &[u8], view: &ReadView) -> Seen<'_> {
        self.resolve_chain(self.chain(key), view)
    }

    fn resolve_chain(&self, chain: Range<usize>, view: &ReadView) -> Seen<'_> {
        let mut seen = Seen::Page;
        for &version in &self.versions[chain] {
            let writer = self.writer(version);
            if writer.is_rolled_back() || version.changes < 0 {
                continue;
            }
            if view.sees(writer) {
                break;
            }
            seen = match self.before(version) {
                Before::Absent => Seen::Absent,
                Before::Value(value) => Seen::Value(value),
            };
        }
        seen
    }

    /// Calls `differs` for every key from `from` on, ascending, under which the view sees something else than the page
    /// holds, until it returns false.
    pub(crate) fn for_each_difference(
        &self,
        from: &[u8],
        view: &ReadView,
        mut differs: impl FnMut(&[u8], Seen<'_>) -> bool,
    ) {
        let mut at = self.lower_bound(from);
        while at < self.versions.len() {
            let key = self.key(self.versions[at]);
            let end = self.chain_end(at, key);
            let seen = self.resolve_chain(at..end, view);
            if seen != Seen::Page && !differs(key, seen) {
                return;
            }
            at = end;
        }
    }

    /// An active transaction, not `own`, that has changed a key of the range, from `from` on.
    pub(crate) fn active_writer_in(
        &self,
        from: &[u8],
        range: &KeyRange,
        own: &Arc<StatusCell>,
    ) -> Option<Arc<StatusCell>> {
        let versions = self.versions[self.lower_bound(from)..].iter();
        versions
            .take_while(|&&version| !range.is_above(self.key(version)))
            .filter(|&&version| version.changes > 0 && range.contains(self.key(version)))
            .map(|&version| self.writer(version))
            .find(|writer| writer.is_active() && !Arc::ptr_eq(own, writer))
            .cloned()
    }

    /// Adds a version of another table after all others.
    pub(super) fn append(&mut self, source: &VersionTable, at: usize) {
        let version = source.versions[at];
        let start = version.start as usize;
        let writer = self.writer_index(source.writer(version));
        let version = Version {
            start: self.bytes.len() as u32,
            writer,
            ..version
        };
        self.bytes
            .extend_from_slice(&source.bytes[start..start + version.length()]);
        self.add(self.versions.len(), version);
    }

    /// Takes the versions of all keys from `separator` on out, as a table of their own.
    pub(crate) fn split_off(&mut self, separator: &[u8]) -> VersionTable {
        let at = self.lower_bound(separator);
        let (mut lower, mut upper) = (VersionTable::default(), VersionTable::default());
        (0..at).for_each(|i| lower.append(self, i));
        (at..self.versions.len()).for_each(|i| upper.append(self, i));
        *self = lower;
        upper
    }

    /// The table in tables that take at most `bytes` when they are encoded. They are in the order of the keys, and
    /// where the versions of one key are divided, the newer ones come first.
    pub(super) fn divided(&self, bytes: usize) -> Vec<VersionTable> {
        let mut tables: Vec<VersionTable> = Vec::new();
        for (at, version) in self.versions.iter().enumerate() {
            let more = ENCODED_VERSION_BYTES + version.length();
            match tables.last_mut() {
                Some(table) if table.encoded_bytes() + more <= bytes => table.append(self, at),
                _ => {
                    let mut table = VersionTable::default();
                    table.append(self, at);
                    tables.push(table);
                }
            }
        }
        tables
    }

    /// Adds the versions of the right neighbour, whose keys are all greater.
    pub(crate) fn join(&mut self, right: &VersionTable) {
        (0..right.versions.len()).for_each(|i| self.append(right, i));
    }

    /// Adds the older versions of keys between `low` and `high` (none: no bound) that had been spilled.
    pub(super) fn add_older(
        &mut self,
        older: &VersionTable,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) {
        let first = low.map_or(0, |low| older.lower_bound(low));
        let end = high.map_or(older.versions.len(), |high| older.lower_bound(high));
        let mut merged = VersionTable::default();
        let (mut new, mut old) = (0, first);
        while new < self.versions.len() || old < end {
            let key_order = match (self.versions.get(new), (old < end).then_some(old)) {
                (Some(&version), Some(old)) => {
                    self.key(version).cmp(older.key(older.versions[old]))
                }
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            if key_order == Ordering::Greater {
                merged.append_older(older, old);
                old += 1;
            } else {
                // All newer versions of a key come before the older ones.
                merged.append(self, new);
                new += 1;
            }
        }
        merged.purged_to = merged.versions.len();
        *self = merged;
    }

    /// As [`append`](Self::append). If the version before this one is the same writer's, of the same key, they become
    /// one, or none if the writer has undone all of its changes.
    fn append_older(&mut self, source: &VersionTable, at: usize) {
        let older = source.versions[at];
        let newer = self.versions.last().copied().filter(|&newer| {
            self.key(newer) == source.key(older)
                && Arc::ptr_eq(self.writer(newer), source.writer(older))
        });
        if let Some(newer) = newer {
            self.dead_bytes += newer.length();
            self.versions.pop();
            self.heads.remove(self.versions.len());
        }
        self.append(source, at);
        if let Some(newer) = newer {
            self.add_changes(
                self.versions.len() - 1,
                newer.changes,
                newer.leaves_nothing(),
            );
        }
    }

    /// The transactions that made the versions.
    pub(super) fn writers(&self) -> &[Arc<StatusCell>] {
        &self.writers
    }

    /// The keys of all versions; a key with several versions comes several times.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.versions.iter().map(|&version| self.key(version))
    }

    pub(super) fn len(&self) -> usize {
        self.versions.len()
    }

    /// Bytes that [`encode`](Self::encode) makes.
    pub(super) fn encoded_bytes(&self) -> usize {
        size_of::<u32>() + self.versions.len() * ENCODED_VERSION_BYTES + self.bytes.len()
    }

    /// The table without its writers: the number of versions, the versions, keys and before-images.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut encoded = Vec::with_capacity(self.encoded_bytes());
        encoded.extend_from_slice(&(self.versions.len() as u32).to_le_bytes());
        for version in &self.versions {
            encoded.extend_from_slice(&version.start.to_le_bytes());
            encoded.extend_from_slice(&version.writer.to_le_bytes());
            let mut kept = *version;
            // An active writer may undo the change, and finds only how many there were.
            kept.set_leaves_nothing(kept.leaves_nothing() && !self.writer(kept).is_active());
            encoded.extend_from_slice(&kept.key_length.to_le_bytes());
            encoded.extend_from_slice(&version.before_length.to_le_bytes());
            encoded.extend_from_slice(&version.changes.to_le_bytes());
        }
        encoded.extend_from_slice(&self.bytes);
        encoded
    }

    /// The table that was encoded, with its writers; none if these are not the bytes of a table.
    pub(super) fn decode(encoded: &[u8], writers: &[Arc<StatusCell>]) -> Option<VersionTable> {
        let (count, rest) = encoded.split_first_chunk::<4>()?;
        let versions_bytes =
            (u32::from_le_bytes(*count) as usize).checked_mul(ENCODED_VERSION_BYTES)?;
        let (versions, bytes) = rest.split_at_checked(versions_bytes)?;
        let (versions, _) = versions.as_chunks::<ENCODED_VERSION_BYTES>();
        let versions: Option<Vec<_>> = versions
            .iter()
            .map(|encoded| {
                let word = |at: usize| {
                    u32::from_le_bytes([
                        encoded[at],
                        encoded[at + 1],
                        encoded[at + 2],
                        encoded[at + 3],
                    ])
                };
                let half = |at: usize| u16::from_le_bytes([encoded[at], encoded[at + 1]]);
                let version = Version {
                    start: word(0),
                    writer: word(4),
                    key_length: half(8),
                    before_length: half(10),
                    changes: word(12).cast_signed(),
                };
                let is_sound = version.changes != 0
                    && (version.writer as usize) < writers.len()
                    && version.start as usize + version.length() <= bytes.len();
                is_sound.then_some(version)
            })
            .collect();
        let versions = versions?;
        let live_bytes: usize = versions.iter().map(|version| version.length()).sum();
        let keys = versions.iter().map(|version| version.key(bytes));
        Some(VersionTable {
            purged_to: versions.len(),
            heads: KeyHeads::of(bytes, keys),
            versions,
            bytes: bytes.to_vec(),
            dead_bytes: bytes.len().saturating_sub(live_bytes),
            writers: writers.to_vec(),
            settled: Settled::default(),
        })
    }

    /// Bytes that a purge or a split would free.
    #[cfg(all(test, not(feature = "simulation")))]
    fn dead_bytes(&self) -> usize {
        self.dead_bytes
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;
    use crate::transaction::TransactionId;
    use crate::transaction::snapshot::SnapshotRegistry;

    fn transaction(id: u64) -> Arc<StatusCell> {
        StatusCell::new(TransactionId(id))
    }

    fn committed(id: u64, lsn: u64) -> Arc<StatusCell> {
        let cell = transaction(id);
        cell.commit(Lsn(lsn));
        cell
    }

    /// A view at each of these timestamps, oldest first, and the registry that keeps them.
    fn views(timestamps: &[u64]) -> (Arc<SnapshotRegistry>, Vec<ReadView>) {
        let registry = Arc::new(SnapshotRegistry::new(Lsn(0)));
        let views = timestamps
            .iter()
            .map(|&lsn| {
                registry.advance_to(Lsn(lsn));
                ReadView::take(&registry, None).unwrap()
            })
            .collect();
        (registry, views)
    }

    /// k was inserted by a transaction that committed at 2, made "b" at 5 and "c" at 9; the page says "c".
    fn three_versions() -> VersionTable {
        let mut table = VersionTable::default();
        table.push(b"k", &committed(2, 2), Before::Absent);
        table.push(b"k", &committed(5, 5), Before::Value(b"a"));
        table.push(b"k", &committed(9, 9), Before::Value(b"b"));
        table
    }

    #[test]
    fn each_snapshot_sees_its_own_state() {
        let table = three_versions();
        let (_registry, views) = views(&[1, 2, 4, 5, 8, 9, 100]);
        let seen: Vec<_> = views.iter().map(|view| table.resolve(b"k", view)).collect();
        assert_eq!(
            seen,
            [
                Seen::Absent,
                Seen::Value(b"a"),
                Seen::Value(b"a"),
                Seen::Value(b"b"),
                Seen::Value(b"b"),
                Seen::Page,
                Seen::Page
            ]
        );
        assert_eq!(table.resolve(b"j", &views[0]), Seen::Page);
        assert!(!table.is_seen_whole(&views[4]) && table.is_seen_whole(&views[5]));
    }

    #[test]
    fn only_its_own_transaction_sees_what_is_uncommitted() {
        let mut table = VersionTable::default();
        let writer = transaction(1);
        table.push(b"k", &writer, Before::Value(b"old"));
        let registry = Arc::new(SnapshotRegistry::new(Lsn(7)));
        let own = ReadView::take(&registry, Some(writer.clone())).unwrap();
        let other = ReadView::take(&registry, Some(transaction(2))).unwrap();
        assert_eq!(table.resolve(b"k", &own), Seen::Page);
        assert_eq!(table.resolve(b"k", &other), Seen::Value(b"old"));
        assert!(Arc::ptr_eq(table.newest_writer(b"k").unwrap(), &writer));
        table.pop(b"k", &writer);
        assert!(table.is_empty() && table.dead_bytes() == 4);
    }

    #[test]
    fn a_purge_drops_what_lies_between_snapshots() {
        let mut table = three_versions();
        let (registry, mut views) = views(&[3, 20]);
        // "b" was current from 5 to 9, and no snapshot looks there. "absent" ended at 2, before the oldest snapshot.
        assert!(!table.purge(&registry.live()));
        assert_eq!(table.len(), 1);
        assert_eq!(table.resolve(b"k", &views[0]), Seen::Value(b"a"));
        assert_eq!(table.resolve(b"k", &views[1]), Seen::Page);
        views.remove(0);
        assert!(table.purge(&registry.live()));
        assert!(table.is_empty());
    }

    #[test]
    fn a_purge_keeps_what_is_not_committed() {
        let mut table = three_versions();
        table.push(b"k", &transaction(10), Before::Value(b"c"));
        let registry = Arc::new(SnapshotRegistry::new(Lsn(100)));
        table.purge(&registry.live());
        assert_eq!(table.len(), 1);
        let view = ReadView::take(&registry, None).unwrap();
        assert_eq!(table.resolve(b"k", &view), Seen::Value(b"c"));
    }

    #[test]
    fn a_transaction_leaves_one_version_of_a_key_however_often_it_changes_it() {
        let (_registry, views) = views(&[1]);
        let mut table = VersionTable::default();
        let writer = transaction(1);
        for before in [b"a", b"b", b"c"] {
            table.push(b"k", &writer, Before::Value(before));
        }
        assert_eq!(table.len(), 1);
        assert_eq!(table.resolve(b"k", &views[0]), Seen::Value(b"a"));
        for _ in 0..2 {
            table.pop(b"k", &writer);
            assert_eq!(table.resolve(b"k", &views[0]), Seen::Value(b"a"));
        }
        table.pop(b"k", &writer);
        assert!(table.is_empty());
    }

    #[test]
    fn what_a_rolled_back_transaction_has_left_behind_changes_nothing() {
        let (registry, views) = views(&[1, 7]);
        let (writer, later) = (transaction(1), committed(2, 7));
        let mut table = VersionTable::default();
        // Its second change; the version of the first, which was spilled, is not needed for anything else and gone.
        table.push(b"k", &writer, Before::Value(b"b"));
        writer.roll_back();
        assert!(table.newest_writer(b"k").is_none());
        assert_eq!(table.resolve(b"k", &views[1]), Seen::Page);
        table.push(b"k", &later, Before::Value(b"a"));
        assert!(Arc::ptr_eq(table.newest_writer(b"k").unwrap(), &later));
        assert_eq!(table.resolve(b"k", &views[0]), Seen::Value(b"a"));
        assert_eq!(table.resolve(b"k", &views[1]), Seen::Page);
        assert!(!table.purge(&registry.live()));
        assert_eq!(table.len(), 1);
        assert_eq!(table.resolve(b"k", &views[0]), Seen::Value(b"a"));
    }

    #[test]
    fn a_spilled_table_comes_back_below_what_was_written_since() {
        let (_registry, views) = views(&[1, 3, 6]);
        let (first, second, third) = (committed(1, 2), committed(2, 5), transaction(3));
        let mut older = VersionTable::default();
        older.push(b"a", &first, Before::Absent);
        older.push(b"k", &first, Before::Value(b"1"));
        older.push(b"k", &third, Before::Value(b"3"));
        older.push(b"z", &first, Before::Absent);
        let older = VersionTable::decode(&older.encode(), older.writers()).unwrap();
        let mut table = VersionTable::default();
        table.push(b"b", &second, Before::Value(b"b"));
        table.push(b"k", &third, Before::Value(b"4"));
        table.add_older(&older, Some(b"b"), Some(b"z"));
        let keys: Vec<_> = table.keys().collect();
        assert_eq!(keys, [b"b", b"k", b"k"], "one version of each writer");
        assert_eq!(table.resolve(b"k", &views[0]), Seen::Value(b"1"));
        assert_eq!(table.resolve(b"k", &views[2]), Seen::Value(b"3"));
        assert_eq!(table.resolve(b"b", &views[1]), Seen::Value(b"b"));
        // Two changes of the third transaction, undone.
        assert!(table.pop(b"k", &third));
        assert_eq!(table.len(), 3);
        assert!(table.pop(b"k", &third));
        assert_eq!(table.resolve(b"k", &views[2]), Seen::Page);
        assert!(!table.pop(b"k", &third));
    }

    /// The writer of the snapshot 3 changes twice what another has committed at 5, and undoes it after it was spilled:
    /// its snapshot does not see the other's change.
    #[test]
    fn what_is_taken_back_after_it_was_spilled_is_gone_when_it_comes_back() {
        let (registry, mut views) = views(&[3]);
        let (other, own, later) = (committed(1, 5), transaction(2), committed(3, 9));
        let own_view = ReadView::take(&registry, Some(own.clone())).unwrap();
        registry.advance_to(Lsn(6));
        views.push(ReadView::take(&registry, None).unwrap());
        let mut oldest = VersionTable::default();
        oldest.push(b"k", &other, Before::Value(b"1"));
        oldest.push(b"k", &own, Before::Value(b"2"));
        let mut old = VersionTable::default();
        old.push(b"k", &own, Before::Value(b"3"));
        let all = |newest: &VersionTable| {
            let mut table = newest.clone();
            for older in [&old, &oldest] {
                let older = VersionTable::decode(&older.encode(), older.writers()).unwrap();
                table.add_older(&older, None, None);
            }
            table
        };
        let mut table = VersionTable::default();
        table.pop_spilled(b"k", &own);
        // One of two is left.
        assert_eq!(all(&table).resolve(b"k", &own_view), Seen::Page);
        assert_eq!(all(&table).resolve(b"k", &views[1]), Seen::Value(b"2"));
        assert!(table.pop(b"k", &own));
        assert_eq!(table.newest_writer(b"k").map(|_| ()), None);
        let taken_back = all(&table);
        assert_eq!(taken_back.len(), 1);
        assert_eq!(taken_back.resolve(b"k", &own_view), Seen::Value(b"1"));
        assert_eq!(taken_back.resolve(b"k", &views[1]), Seen::Page);
        // It changes the key again, twice: once more than it has undone.
        for before in [b"2", b"4"] {
            table.push(b"k", &own, Before::Value(before));
        }
        assert!(table.is_empty());
        assert_eq!(all(&table).resolve(b"k", &views[1]), Seen::Value(b"2"));

        // A purge does not take what the writer has undone for the beginning of what came later.
        let mut table = VersionTable::default();
        table.pop_spilled(b"k", &own);
        table.pop(b"k", &own);
        own.commit(Lsn(8));
        table.push(b"k", &later, Before::Value(b"2"));
        registry.advance_to(Lsn(9));
        table.purge(&registry.live());
        assert_eq!(all(&table).resolve(b"k", &views[1]), Seen::Value(b"2"));
        assert_eq!(all(&table).resolve(b"k", &views[0]), Seen::Value(b"1"));
    }

    #[test]
    fn bytes_that_are_no_table_are_refused() {
        let mut table = VersionTable::default();
        table.push(b"key", &transaction(1), Before::Value(b"value"));
        let encoded = table.encode();
        for length in 0..encoded.len() {
            assert!(VersionTable::decode(&encoded[..length], table.writers()).is_none());
        }
        assert!(VersionTable::decode(&encoded, &[]).is_none());
    }

    #[test]
    fn a_table_splits_and_joins_with_its_leaf() {
        let (_registry, views) = views(&[1]);
        let mut table = VersionTable::default();
        let writer = transaction(1);
        for key in [&b"a"[..], b"c", b"b", b"d", b"c"] {
            table.push(key, &writer, Before::Value(key));
        }
        let upper = table.split_off(b"c");
        assert_eq!((table.len(), upper.len()), (2, 2));
        assert_eq!(table.resolve(b"b", &views[0]), Seen::Value(b"b"));
        assert_eq!(table.resolve(b"c", &views[0]), Seen::Page);
        assert_eq!(upper.resolve(b"c", &views[0]), Seen::Value(b"c"));
        table.join(&upper);
        let mut differences = Vec::new();
        table.for_each_difference(b"b", &views[0], |key, _| {
            differences.push(key.to_vec());
            true
        });
        assert_eq!(differences, [b"b".to_vec(), b"c".to_vec(), b"d".to_vec()]);
        let (all, other) = (KeyRange::all(), transaction(2));
        assert!(table.active_writer_in(b"b", &all, &other).is_some());
        assert!(table.active_writer_in(b"b", &all, &writer).is_none());
        assert!(table.active_writer_in(b"e", &all, &other).is_none());
    }
}
