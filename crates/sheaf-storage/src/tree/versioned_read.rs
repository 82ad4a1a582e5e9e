//! Reading a leaf as a view sees it.
//!
//! The leaf's entries are the newest state; where a view may not see that, the leaf's version table has what it sees
//! instead ([`crate::transaction::versions`]). A reader that asked the table validates the leaf afterwards, like
//! everything else it read: the table changes together with the page.
//!
//! An entry that the view sees need not be on the page any more: what others have deleted leaves the page before its
//! versions go ([`super::delete`]).
//!
//! A leaf that was not changed lately has no table, and its word says so; then nothing here costs more than a bit test.
//! The word also says whether a table matters to old snapshots only.

use std::ops::{Bound, Range};
use std::sync::Arc;

use crate::error::Result;
use crate::key_range::KeyRange;
use crate::node::PageImage;
use crate::transaction::snapshot::{ReadView, StatusCell};
use crate::transaction::versions::{NewestWriter, Seen};
use crate::transaction::{Transaction, Unsettled};
use crate::tree::Tree;
use crate::tree::leaf_hints::LeafHints;
use crate::tree::search::{NodeRef, Target};

/// Most entries that a scan copies one by one. Beyond that, copying the whole leaf costs about as little.
const FEW_ENTRIES: usize = 32;

/// Where a view sees something else in a leaf than the leaf's newest state. Keys ascend.
#[derive(Default)]
pub(super) struct Differences {
    list: Vec<Difference>,
    bytes: Vec<u8>,
}

struct Difference {
    key: Range<usize>,
    /// The value that the view sees; none: no entry.
    value: Option<Range<usize>>,
}

impl Differences {
    fn clear(&mut self) {
        self.list.clear();
        self.bytes.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        let mut keep = |bytes: &[u8]| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            start..self.bytes.len()
        };
        let key = keep(key);
        let value = value.map(keep);
        self.list.push(Difference { key, value });
    }

    /// Each key, and whether an entry is seen under it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.list.iter().map(|difference| {
            let key = &self.bytes[difference.key.clone()];
            (key, difference.value.is_some())
        })
    }

    /// The key of this place in the order of keys.
    pub(super) fn key(&self, place: usize) -> &[u8] {
        &self.bytes[self.list[place].key.clone()]
    }

    /// What is seen under the key of this place in the order of keys, if there is an entry.
    pub(super) fn value(&self, place: usize) -> &[u8] {
        let value = self.list[place].value.clone();
        &self.bytes[value.unwrap_or_default()]
    }
}

/// Whether a key is there, as far as that is settled.
#[derive(Debug)]
pub enum Settled {
    Found(Vec<u8>),
    Absent,
    /// Its end will tell.
    Unknown(Unsettled),
}

/// What one leaf says about a range of keys.
enum LeafAnswer<T> {
    Found(T),
    /// Nothing; the range goes on behind this key.
    Next(Vec<u8>),
    End,
}

impl Tree {
    /// Reads the entry of `key` as the view sees it; false if it sees none. To be validated by the caller.
    #[inline]
    pub(super) fn read_entry(
        &self,
        leaf: &NodeRef<'_>,
        view: &ReadView,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        value.clear();
        if self.may_see_versions(leaf, view)
            && let Some(is_there) = self.read_version(leaf, view, key, value)?
        {
            return Ok(is_there);
        }
        Ok(self.read_present(leaf, key, value))
    }

    /// Reads the entry of `key` as the leaf holds it; false if there is none. To be validated by the caller.
    #[inline]
    fn read_present(&self, leaf: &NodeRef<'_>, key: &[u8], value: &mut Vec<u8>) -> bool {
        value.clear();
        let node = leaf.view();
        let position = node.lower_bound(key);
        if !position.found || node.is_ghost(position.slot) {
            return false;
        }
        let (offset, length) = node.value_extent(position.slot);
        value.resize(length, 0);
        leaf.guard().copy_out(offset, value);
        true
    }

    /// Whether the view may have to see something else than the leaf holds. To be validated by the caller.
    #[inline]
    fn may_see_versions(&self, leaf: &NodeRef<'_>, view: &ReadView) -> bool {
        let guard = leaf.guard();
        if !guard.has_versions() {
            return false;
        }
        let Some(snapshot) = view.timestamp() else {
            return false;
        };
        let versions = &self.store.transactions.versions;
        if guard.has_unsettled_versions() {
            let mark = || guard.settle_versions();
            return !versions.settle(guard.page_id(), snapshot, mark);
        }
        snapshot < versions.settled_horizon()
    }

    /// As [`read_entry`](Self::read_entry); none if the view sees what is on the page.
    #[cold]
    fn read_version(
        &self,
        leaf: &NodeRef<'_>,
        view: &ReadView,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        let versions = &self.store.transactions.versions;
        let page = leaf.guard().page_id();
        let seen = versions.read_at(page, Some(key), view, |table| {
            match table.resolve(key, view) {
                Seen::Page => None,
                Seen::Absent => Some(false),
                Seen::Value(seen) => {
                    value.extend_from_slice(seen);
                    Some(true)
                }
            }
        })?;
        if seen.is_none() {
            leaf.guard().forget_versions();
        }
        Ok(seen.flatten())
    }

    /// A private copy of the leaf for `target`, and where the view sees something else in it, from the lower bound of
    /// `range` on. If the range ends on this leaf and has few entries there, the copy has the leaf's header and fences
    /// and those entries alone, whose slots are returned. What else lies in `copy` means nothing then.
    pub(super) fn copy_leaf_at(
        &self,
        view: &ReadView,
        target: Target<'_>,
        range: &KeyRange,
        copy: &mut PageImage,
        differences: &mut Differences,
    ) -> Result<Option<Range<usize>>> {
        self.retry(|failures| {
            differences.clear();
            let leaf = self.find_leaf(target, failures)?;
            let node = leaf.view();
            let may_differ = self.may_see_versions(&leaf, view);
            let few = (!may_differ && range.ends_in(&node))
                .then(|| range.slots_in(&node))
                .filter(|slots| slots.len() <= FEW_ENTRIES);
            match &few {
                Some(slots) => node.copy_entries(slots.clone(), copy),
                None => leaf.guard().copy_out(0, copy),
            }
            if may_differ {
                self.read_differences(&leaf, view, range, differences)?;
            }
            leaf.validate()?;
            Ok(few)
        })
    }

    #[cold]
    fn read_differences(
        &self,
        leaf: &NodeRef<'_>,
        view: &ReadView,
        range: &KeyRange,
        differences: &mut Differences,
    ) -> Result<()> {
        let from = match &range.lower {
            Bound::Included(key) | Bound::Excluded(key) => key.as_slice(),
            Bound::Unbounded => &[],
        };
        let versions = &self.store.transactions.versions;
        let page = leaf.guard().page_id();
        let found = versions.read_at(page, None, view, |table| {
            table.for_each_difference(from, view, |key, seen| {
                match seen {
                    Seen::Page => {}
                    Seen::Absent => differences.push(key, None),
                    Seen::Value(value) => differences.push(key, Some(value)),
                }
                !range.is_above(key)
            });
        })?;
        if found.is_none() {
            leaf.guard().forget_versions();
        }
        Ok(())
    }

    /// Whether the view sees the newest state of the key's entry. (A view in use keeps what it needs to know that.)
    pub(crate) fn is_unchanged_since(&self, view: &ReadView, key: &[u8]) -> Result<bool> {
        self.retry(|failures| {
            let leaf = self.find_leaf(Target::Key(key), failures)?;
            let versions = &self.store.transactions.versions;
            let is_unchanged = !self.may_see_versions(&leaf, view)
                || versions
                    .read_at(leaf.guard().page_id(), Some(key), view, |table| {
                        let writer = table.newest_writer(key);
                        writer.is_none_or(|writer| view.sees(writer))
                    })?
                    .unwrap_or(true);
            leaf.validate()?;
            Ok(is_unchanged)
        })
    }

    /// Looks up `key` as it is now, if the view shows the newest change of it; none if not. `value` is cleared, and
    /// filled if the key is there.
    pub(crate) fn read_newest_seen(
        &self,
        view: &ReadView,
        key: &[u8],
        value: &mut Vec<u8>,
        hints: &mut LeafHints,
    ) -> Result<Option<bool>> {
        let versions = &self.store.transactions.versions;
        self.retry(|failures| {
            let leaf = match hints.take(self, key) {
                Some(guard) => NodeRef::optimistic(guard),
                None => self.find_leaf(Target::Key(key), failures)?,
            };
            let is_seen = !self.may_see_versions(&leaf, view)
                || versions.shows_newest(leaf.guard().page_id(), key, view);
            let found = match is_seen {
                true => Some(self.read_present(&leaf, key, value)),
                false => None,
            };
            leaf.validate()?;
            hints.note(self.id, leaf.guard().page_id(), leaf.guard().version());
            Ok(found)
        })
    }

    /// The active transaction, if it is not `own`, that has changed `key`.
    pub(crate) fn active_writer_of(
        &self,
        key: &[u8],
        own: &Arc<StatusCell>,
    ) -> Result<Option<Arc<StatusCell>>> {
        self.active_writer_in(&just(key), own)
    }

    /// Whether the newest change of `key` is one of `own`, which is active.
    pub(crate) fn is_changed_by(&self, key: &[u8], own: &Arc<StatusCell>) -> Result<bool> {
        let system = &self.store.transactions;
        loop {
            let newest = self.find_on_leaves(&just(key), |leaf, _| {
                let page = leaf.guard().page_id();
                let may_be_active = leaf.guard().has_unsettled_versions();
                let newest = || (page, system.versions.newest_writer(page, key, own));
                Ok(may_be_active.then(newest))
            })?;
            match newest {
                Some((_, NewestWriter::Own)) => return Ok(true),
                None | Some((_, NewestWriter::Other | NewestWriter::Ended)) => return Ok(false),
                Some((page, NewestWriter::OwnOrEnded | NewestWriter::Unknown)) => {
                    system.bring_back(page)?;
                }
            }
        }
    }

    /// An active transaction, not `own`, that has changed a key in the range; none if there is no such transaction.
    pub(crate) fn active_writer_in(
        &self,
        range: &KeyRange,
        own: &Arc<StatusCell>,
    ) -> Result<Option<Arc<StatusCell>>> {
        self.find_on_leaves(range, |leaf, from| {
            self.active_writer_on(leaf, from, range, own)
        })
    }

    /// The writer of a change in the range that the view does not see: with `inserts_only`, of a key that it does not
    /// see at all. None if the view sees everything that is there.
    pub(crate) fn unseen_writer_in(
        &self,
        view: &ReadView,
        range: &KeyRange,
        inserts_only: bool,
    ) -> Result<Option<Arc<StatusCell>>> {
        let versions = &self.store.transactions.versions;
        self.find_on_leaves(range, |leaf, from| {
            if !self.may_see_versions(leaf, view) {
                return Ok(None);
            }
            let mut unseen = None;
            versions.read_at(leaf.guard().page_id(), None, view, |table| {
                table.for_each_difference(from, view, |key, seen| {
                    if range.contains(key) && (!inserts_only || seen == Seen::Absent) {
                        unseen = table.newest_writer(key).cloned();
                    }
                    unseen.is_none() && !range.is_above(key)
                });
            })?;
            Ok(unseen)
        })
    }

    fn active_writer_on(
        &self,
        leaf: &NodeRef<'_>,
        from: &[u8],
        range: &KeyRange,
        own: &Arc<StatusCell>,
    ) -> Result<Option<Arc<StatusCell>>> {
        if !leaf.guard().has_unsettled_versions() {
            return Ok(None);
        }
        let versions = &self.store.transactions.versions;
        let page = leaf.guard().page_id();
        let is_other = |writer: &Arc<StatusCell>| writer.is_active() && !Arc::ptr_eq(writer, own);
        let writer = versions.read(page, range.single_key(), is_other, |table| {
            table.active_writer_in(from, range, own)
        })?;
        Ok(writer.flatten())
    }

    /// The first live key that starts with `prefix`, unless another transaction has changed such a key and not
    /// committed.
    pub(super) fn taken_prefix(&self, own: &Arc<StatusCell>, prefix: &[u8]) -> Result<Settled> {
        let range = KeyRange::prefix(prefix);
        let look = self.store.transactions.row_locks.before_look();
        let found = self.find_on_leaves(&range, |leaf, from| {
            if let Some(writer) = self.active_writer_on(leaf, from, &range, own)? {
                return Ok(Some(Settled::Unknown(Unsettled { writer, look })));
            }
            Ok(first_live_key(leaf, from, prefix).map(Settled::Found))
        })?;
        Ok(found.unwrap_or(Settled::Absent))
    }

    /// A key that starts with `prefix` and that is there whatever becomes of the active transactions: the others' and
    /// this one's own.
    pub fn settled_prefix(&self, transaction: &Transaction, prefix: &[u8]) -> Result<Settled> {
        let range = KeyRange::prefix(prefix);
        let own = transaction.status();
        let look = self.store.transactions.row_locks.before_look();
        let found = self.find_on_leaves(&range, |leaf, from| {
            if let Some(key) = self.settled_key(leaf, from, prefix, own)? {
                return Ok(Some(Settled::Found(key)));
            }
            let writer = self.active_writer_on(leaf, from, &range, own)?;
            Ok(writer.map(|writer| Settled::Unknown(Unsettled { writer, look })))
        })?;
        Ok(found.unwrap_or(Settled::Absent))
    }

    fn settled_key(
        &self,
        leaf: &NodeRef<'_>,
        from: &[u8],
        prefix: &[u8],
        own: &Arc<StatusCell>,
    ) -> Result<Option<Vec<u8>>> {
        let node = leaf.view();
        let mut key = Vec::new();
        for slot in node.lower_bound(from).slot..node.count() {
            node.key_into(slot, &mut key);
            if !key.starts_with(prefix) {
                return Ok(None);
            }
            if !node.is_ghost(slot) && self.is_settled(leaf, &key, own)? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Whether a live key stays, unless it is deleted from now on.
    fn is_settled(&self, leaf: &NodeRef<'_>, key: &[u8], own: &Arc<StatusCell>) -> Result<bool> {
        if !leaf.guard().has_unsettled_versions() {
            return Ok(true);
        }
        let versions = &self.store.transactions.versions;
        let page = leaf.guard().page_id();
        let is_other = |writer: &Arc<StatusCell>| writer.is_active() && !Arc::ptr_eq(writer, own);
        let is_settled = versions.read(page, Some(key), is_other, |table| {
            table
                .newest_writer(key)
                .is_none_or(|writer| !is_other(writer) || table.was_there_before_its_writer(key))
        })?;
        Ok(is_settled.unwrap_or(true))
    }

    /// The first live key that starts with `prefix`, as it is now.
    pub fn contains_prefix(&self, prefix: &[u8]) -> Result<Option<Vec<u8>>> {
        let range = KeyRange::prefix(prefix);
        self.find_on_leaves(&range, |leaf, from| Ok(first_live_key(leaf, from, prefix)))
    }

    /// Asks the leaves of a range, from left to right, until one has an answer. The question is told from which key on
    /// it is asked; its answer counts if the leaf is valid afterwards.
    fn find_on_leaves<T>(
        &self,
        range: &KeyRange,
        ask: impl Fn(&NodeRef<'_>, &[u8]) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut from = match &range.lower {
            Bound::Included(key) | Bound::Excluded(key) => key.clone(),
            Bound::Unbounded => Vec::new(),
        };
        loop {
            let answer = self.retry(|failures| {
                let leaf = self.find_leaf(Target::Key(&from), failures)?;
                let mut next = Vec::new();
                let answer = match ask(&leaf, &from)? {
                    Some(found) => LeafAnswer::Found(found),
                    None if leaf.view().high_fence_into(&mut next) => LeafAnswer::Next(next),
                    None => LeafAnswer::End,
                };
                leaf.validate()?;
                Ok(answer)
            })?;
            match answer {
                LeafAnswer::Found(found) => return Ok(Some(found)),
                LeafAnswer::Next(fence) if !range.is_above(&fence) => from = fence,
                LeafAnswer::Next(_) | LeafAnswer::End => return Ok(None),
            }
        }
    }
}

fn just(key: &[u8]) -> KeyRange {
    KeyRange {
        lower: Bound::Included(key.to_vec()),
        upper: Bound::Included(key.to_vec()),
    }
}

/// The first live key of a leaf, from `from` on, if it starts with `prefix`.
fn first_live_key(leaf: &NodeRef<'_>, from: &[u8], prefix: &[u8]) -> Option<Vec<u8>> {
    let node = leaf.view();
    let first = node.lower_bound(from).slot;
    let slot = (first..node.count()).find(|&slot| !node.is_ghost(slot))?;
    let mut key = Vec::new();
    node.key_into(slot, &mut key);
    key.starts_with(prefix).then_some(key)
}
