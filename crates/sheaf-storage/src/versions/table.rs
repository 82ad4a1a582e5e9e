//! The versions of one leaf: what its entries were before.
//!
//! A version says who wrote what comes after it, and what was there before. The versions of a key form a chain from
//! the newest to the oldest, whose newest state is the entry on the page:
//!
//! ```text
//!   page:  k = "c"                          entries of the table, by key and from new to old
//!          ^ written by T9                  (k, T9, before "b")  (k, T5, before "a")  (k, T2, before absent)
//!
//!   who sees T9 sees "c"; else who sees T5 sees "b"; else who sees T2 sees "a"; all others see no entry
//! ```
//!
//! So a reader walks a chain until it finds a writer that it sees. What a version holds was current from the commit of
//! the next older version's writer (since ever, if there is none) until the commit of its own writer; when no snapshot
//! lies in between, the version goes, also from the middle of a chain.
//!
//! The table is flat: keys and before-images lie in one block of bytes, and a version is 12 bytes that point into it.
//! A version costs 12 bytes, the key and the before-image, and no allocation of its own; a table is moved, split with
//! its leaf, and counted as one thing.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::page::Lsn;
use crate::snapshot::{LiveSnapshots, ReadView, StatusCell, TransactionStatus};
use crate::tree::KeyRange;

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

#[derive(Clone, Copy, Debug)]
struct Version {
    /// Where in the bytes the key begins; the before-image follows it.
    start: u32,
    /// Index into the writers.
    writer: u32,
    key_length: u16,
    before_length: u16,
}

impl Version {
    fn length(self) -> usize {
        let before = match self.before_length {
            ABSENT => 0,
            length => usize::from(length),
        };
        usize::from(self.key_length) + before
    }
}

/// All versions of one leaf.
#[derive(Default, Debug)]
pub(crate) struct VersionTable {
    /// By key ascending, and for one key from new to old.
    versions: Vec<Version>,
    bytes: Vec<u8>,
    /// Bytes that belong to no version any more.
    dead_bytes: usize,
    /// Each writer once. Some may have no version any more, until the next purge.
    writers: Vec<Arc<StatusCell>>,
    /// Versions after the last purge.
    purged_to: usize,
}

impl VersionTable {
    pub(crate) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// Memory that the table takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<VersionTable>()
            + self.versions.capacity() * size_of::<Version>()
            + self.bytes.capacity()
            + self.writers.capacity() * size_of::<Arc<StatusCell>>()
    }

    /// Versions that were added since the last purge outnumber those that it left.
    pub(crate) fn has_grown(&self) -> bool {
        /// Fewer versions are not worth a purge.
        const FEW: usize = 16;
        self.versions.len() >= FEW.max(self.purged_to * 2)
    }

    fn key(&self, version: Version) -> &[u8] {
        let start = version.start as usize;
        &self.bytes[start..start + usize::from(version.key_length)]
    }

    fn before(&self, version: Version) -> Before<'_> {
        if version.before_length == ABSENT {
            return Before::Absent;
        }
        let start = version.start as usize + usize::from(version.key_length);
        Before::Value(&self.bytes[start..start + usize::from(version.before_length)])
    }

    fn writer(&self, version: Version) -> &Arc<StatusCell> {
        &self.writers[version.writer as usize]
    }

    /// The first version whose key is not less than `key`.
    fn lower_bound(&self, key: &[u8]) -> usize {
        self.versions
            .partition_point(|&version| self.key(version).cmp(key) == Ordering::Less)
    }

    /// The versions of `key`, from new to old.
    fn chain(&self, key: &[u8]) -> Range<usize> {
        let first = self.lower_bound(key);
        first..self.chain_end(first, key)
    }

    fn chain_end(&self, first: usize, key: &[u8]) -> usize {
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

    /// Who made the newest change of `key`, as far as anybody remembers.
    pub(crate) fn newest_writer(&self, key: &[u8]) -> Option<&Arc<StatusCell>> {
        let first = self.lower_bound(key);
        let version = *self.versions.get(first)?;
        (self.key(version) == key).then(|| self.writer(version))
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

    /// Notes that `writer` is changing `key`, which was `before`.
    pub(crate) fn push(&mut self, key: &[u8], writer: &Arc<StatusCell>, before: Before<'_>) {
        let at = self.lower_bound(key);
        let (value, before_length) = match before {
            Before::Absent => (&[][..], ABSENT),
            Before::Value(value) => (value, value.len() as u16),
        };
        let version = Version {
            start: self.bytes.len() as u32,
            writer: self.writer_index(writer),
            key_length: key.len() as u16,
            before_length,
        };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.versions.insert(at, version);
    }

    /// Forgets the newest version of `key`, whose change has been taken back. It is `writer`'s.
    pub(crate) fn pop(&mut self, key: &[u8], writer: &Arc<StatusCell>) {
        let at = self.lower_bound(key);
        let Some(&version) = self.versions.get(at) else {
            return;
        };
        if self.key(version) == key && Arc::ptr_eq(self.writer(version), writer) {
            self.dead_bytes += version.length();
            self.versions.remove(at);
        }
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

    /// Whether the view sees everything that anybody wrote here: then the page is what it sees.
    pub(crate) fn is_seen_whole(&self, view: &ReadView) -> bool {
        self.writers.iter().all(|writer| view.sees(writer))
    }

    /// What the view sees under `key`.
    pub(crate) fn resolve(&self, key: &[u8], view: &ReadView) -> Seen<'_> {
        self.resolve_chain(self.chain(key), view)
    }

    fn resolve_chain(&self, chain: Range<usize>, view: &ReadView) -> Seen<'_> {
        let mut seen = Seen::Page;
        for &version in &self.versions[chain] {
            if view.sees(self.writer(version)) {
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
            .filter(|&&version| range.contains(self.key(version)))
            .map(|&version| self.writer(version))
            .find(|writer| writer.is_active() && !Arc::ptr_eq(own, writer))
            .cloned()
    }

    /// Drops every version that no snapshot needs. Calls `forgotten` for each key that has no version any more.
    pub(crate) fn purge(&mut self, live: &LiveSnapshots, mut forgotten: impl FnMut(&[u8])) {
        let commits: Vec<_> = self.writers.iter().map(|writer| writer.status()).collect();
        let committed = |version: Version| match commits[version.writer as usize] {
            TransactionStatus::Committed(lsn) => Some(lsn),
            // A rolled back transaction has taken its versions with it.
            TransactionStatus::Active | TransactionStatus::RolledBack => None,
        };
        let is_needed = |i: usize| {
            let version = self.versions[i];
            let Some(ended) = committed(version) else {
                return true;
            };
            let older = self.versions.get(i + 1).copied();
            let created = older
                .filter(|&older| self.key(older) == self.key(version))
                .and_then(committed)
                .unwrap_or(Lsn(0));
            live.need(created, ended)
        };
        // While somebody looks back for long, most tables stay what they are at most purges: they are not rebuilt.
        if self.dead_bytes * 2 <= self.bytes.len() && (0..self.versions.len()).all(is_needed) {
            self.purged_to = self.versions.len();
            return;
        }
        let mut kept = VersionTable::default();
        let mut at = 0;
        while at < self.versions.len() {
            let key = self.key(self.versions[at]);
            let end = self.chain_end(at, key);
            let kept_before = kept.versions.len();
            for i in (at..end).filter(|&i| is_needed(i)) {
                kept.append(self, i);
            }
            if kept.versions.len() == kept_before {
                forgotten(key);
            }
            at = end;
        }
        kept.purged_to = kept.versions.len();
        *self = kept;
    }

    /// Adds a version of another table after all others.
    fn append(&mut self, source: &VersionTable, at: usize) {
        let version = source.versions[at];
        let start = version.start as usize;
        let writer = self.writer_index(source.writer(version));
        self.versions.push(Version {
            start: self.bytes.len() as u32,
            writer,
            ..version
        });
        self.bytes
            .extend_from_slice(&source.bytes[start..start + version.length()]);
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

    /// Adds the versions of the right neighbour, whose keys are all greater.
    pub(crate) fn join(&mut self, right: &VersionTable) {
        (0..right.versions.len()).for_each(|i| self.append(right, i));
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.versions.len()
    }

    /// Bytes that a purge or a split would give back.
    #[cfg(test)]
    fn dead_bytes(&self) -> usize {
        self.dead_bytes
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;
    use crate::snapshot::SnapshotRegistry;
    use crate::transaction::TransactionId;

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
        let mut forgotten = Vec::new();
        // "b" was current from 5 to 9, and nobody looks there. "absent" ended at 2, before the oldest snapshot.
        table.purge(&registry.live(), |key| forgotten.push(key.to_vec()));
        assert_eq!(table.len(), 1);
        assert_eq!(table.resolve(b"k", &views[0]), Seen::Value(b"a"));
        assert_eq!(table.resolve(b"k", &views[1]), Seen::Page);
        assert!(forgotten.is_empty());
        views.remove(0);
        table.purge(&registry.live(), |key| forgotten.push(key.to_vec()));
        assert!(table.is_empty());
        assert_eq!(forgotten, [b"k".to_vec()]);
    }

    #[test]
    fn a_purge_keeps_what_is_not_committed() {
        let mut table = three_versions();
        table.push(b"k", &transaction(10), Before::Value(b"c"));
        let registry = Arc::new(SnapshotRegistry::new(Lsn(100)));
        table.purge(&registry.live(), |_| {});
        assert_eq!(table.len(), 1);
        let view = ReadView::take(&registry, None).unwrap();
        assert_eq!(table.resolve(b"k", &view), Seen::Value(b"c"));
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
        assert_eq!((table.len(), upper.len()), (2, 3));
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
