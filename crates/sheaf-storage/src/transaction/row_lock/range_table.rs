//! The locked ranges of all transactions, by tree.
//!
//! A transaction has few ranges of a tree. One that is covered by another is not entered again, and beyond
//! [`MAX_RANGES_OF_TREE`] they become one range of the whole tree. So a tree's ranges are a plain list.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::key_range::KeyRange;
use crate::page::TreeId;
use crate::transaction::TransactionId;
use crate::transaction::row_lock::{LockMode, LockedKeys, RangeLock};
use crate::transaction::snapshot::StatusCell;

/// A transaction that has locked so many ranges of a tree locks all of it.
pub(super) const MAX_RANGES_OF_TREE: usize = 512;

pub(super) struct LockedRange {
    pub(super) owner: Arc<StatusCell>,
    pub(super) range: KeyRange,
    pub(super) kind: RangeLock,
    /// The owner still waits for a transaction that was there first, and has read nothing of the range yet.
    pub(super) is_pending: bool,
}

impl LockedRange {
    fn is_of(&self, transaction: TransactionId) -> bool {
        self.owner.id() == transaction
    }
}

/// A change that a transaction wants to make.
#[derive(Clone, Copy)]
pub(crate) struct WantedChange<'k> {
    pub(crate) tree: TreeId,
    pub(crate) key: &'k [u8],
    pub(crate) is_insert: bool,
    /// The transaction has changed the tree before. A transaction that waits to lock a range may be waiting for this
    /// one, and lets it pass.
    pub(crate) has_changed_tree: bool,
}

/// What became of a request for a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entered {
    /// The transaction had it already.
    Known,
    New,
    /// All its ranges of the tree are one now; so many they were, with this one.
    Widened(usize),
}

/// See the module's comment.
#[derive(Default)]
pub(super) struct RangeTable(BTreeMap<TreeId, Vec<LockedRange>>);

impl RangeTable {
    /// All of them.
    pub(super) fn shown(&self) -> impl Iterator<Item = (TreeId, &LockedRange)> {
        let of_tree = |(tree, ranges)| {
            let (tree, ranges): (&TreeId, &Vec<LockedRange>) = (tree, ranges);
            let tree = *tree;
            ranges.iter().map(move |range| (tree, range))
        };
        self.0.iter().flat_map(of_tree)
    }

    fn of_tree(&self, tree: TreeId) -> &[LockedRange] {
        self.0.get(&tree).map_or(&[], Vec::as_slice)
    }

    pub(super) fn enter(
        &mut self,
        owner: &Arc<StatusCell>,
        tree: TreeId,
        range: KeyRange,
        kind: RangeLock,
    ) -> Entered {
        let id = owner.id();
        let own = || self.of_tree(tree).iter().filter(|locked| locked.is_of(id));
        if own().any(|locked| locked.kind >= kind && locked.range.covers(&range)) {
            return Entered::Known;
        }
        let (held, strongest) = own().fold((0, kind), |(held, strongest), locked| {
            (held + 1, strongest.max(locked.kind))
        });
        let ranges = self.0.entry(tree).or_default();
        let new = |range, kind| LockedRange {
            owner: owner.clone(),
            range,
            kind,
            is_pending: false,
        };
        if held < MAX_RANGES_OF_TREE {
            ranges.push(new(range, kind));
            return Entered::New;
        }
        ranges.retain(|locked| !locked.is_of(id));
        ranges.push(new(KeyRange::all(), strongest));
        Entered::Widened(held + 1)
    }

    /// Takes one range of the transaction out again; false if it has no such range.
    pub(super) fn leave(
        &mut self,
        transaction: TransactionId,
        tree: TreeId,
        range: &KeyRange,
        kind: RangeLock,
    ) -> bool {
        let Some(ranges) = self.0.get_mut(&tree) else {
            return false;
        };
        let is_it = |locked: &LockedRange| {
            locked.is_of(transaction) && locked.kind == kind && locked.range == *range
        };
        let position = ranges.iter().position(is_it);
        if let Some(position) = position {
            ranges.swap_remove(position);
        }
        if ranges.is_empty() {
            self.0.remove(&tree);
        }
        position.is_some()
    }

    /// Takes all ranges of the transaction in the tree out. Returns how many they were.
    pub(super) fn leave_tree(&mut self, transaction: TransactionId, tree: TreeId) -> usize {
        let Some(ranges) = self.0.get_mut(&tree) else {
            return 0;
        };
        let before = ranges.len();
        ranges.retain(|locked| !locked.is_of(transaction));
        let left = before - ranges.len();
        if ranges.is_empty() {
            self.0.remove(&tree);
        }
        left
    }

    /// Says whether the owner of a range still waits before it reads it; false if it has no such range.
    pub(super) fn set_pending(
        &mut self,
        transaction: TransactionId,
        LockedKeys { tree, range, kind }: LockedKeys<'_>,
        is_pending: bool,
    ) -> bool {
        let ranges = self.0.get_mut(&tree).map_or(&mut [][..], Vec::as_mut_slice);
        let found = ranges.iter_mut().find(|locked| {
            locked.is_of(transaction) && locked.kind == kind && locked.range == *range
        });
        match found {
            Some(locked) => {
                locked.is_pending = is_pending;
                true
            }
            None => false,
        }
    }

    /// The owners of ranges that keep the transaction from a change. `lets_pass`: whether an owner that waits before it
    /// reads its range lets the transaction pass.
    pub(super) fn owners_against_change<'t>(
        &'t self,
        transaction: TransactionId,
        wanted: WantedChange<'t>,
        lets_pass: impl Fn(TransactionId) -> bool + 't,
    ) -> impl Iterator<Item = &'t Arc<StatusCell>> {
        let against = self.of_tree(wanted.tree).iter().filter(move |locked| {
            !locked.is_of(transaction)
                && (wanted.is_insert || locked.kind >= RangeLock::NoChanges)
                && locked.range.contains(wanted.key)
                && !(locked.is_pending && lets_pass(locked.owner.id()))
        });
        against.map(|locked| &locked.owner)
    }

    /// Whose ranges keep the transaction from locking a row. `lets_pass` as for a change.
    pub(super) fn owners_against_lock<'t>(
        &'t self,
        transaction: TransactionId,
        tree: TreeId,
        key: &'t [u8],
        mode: LockMode,
        lets_pass: impl Fn(TransactionId) -> bool + 't,
    ) -> impl Iterator<Item = &'t Arc<StatusCell>> {
        let weakest = match mode {
            LockMode::Shared => RangeLock::NoLocks,
            LockMode::Exclusive => RangeLock::NoChanges,
        };
        let against = self.of_tree(tree).iter().filter(move |locked| {
            !locked.is_of(transaction)
                && locked.kind >= weakest
                && locked.range.contains(key)
                && !(locked.is_pending && lets_pass(locked.owner.id()))
        });
        against.map(|locked| &locked.owner)
    }

    /// Whose ranges exclude what the owner of a range of this kind may do in it, or the other way round.
    pub(super) fn owners_against_range(
        &self,
        tree: TreeId,
        range: &KeyRange,
        kind: RangeLock,
    ) -> impl Iterator<Item = TransactionId> {
        let weakest = match kind {
            RangeLock::NoLocks => RangeLock::NoChanges,
            RangeLock::NoInserts | RangeLock::NoChanges => RangeLock::NoLocks,
        };
        let against = self.of_tree(tree).iter().filter(move |locked| {
            locked.kind >= weakest && !locked.is_pending && locked.range.meets(range)
        });
        against.map(|locked| locked.owner.id())
    }

    /// Whether a range of the transaction makes a lock of the row needless.
    pub(super) fn covers_row(
        &self,
        transaction: TransactionId,
        tree: TreeId,
        key: &[u8],
        mode: LockMode,
    ) -> bool {
        let enough = match mode {
            LockMode::Shared => RangeLock::NoChanges,
            LockMode::Exclusive => RangeLock::NoLocks,
        };
        let mut ranges = self.of_tree(tree).iter();
        ranges.any(|locked| {
            locked.is_of(transaction) && locked.kind >= enough && locked.range.contains(key)
        })
    }

    /// Whether the transaction has locked a range with the key.
    pub(super) fn is_in_range_of(
        &self,
        transaction: TransactionId,
        tree: TreeId,
        key: &[u8],
    ) -> bool {
        let mut ranges = self.of_tree(tree).iter();
        ranges.any(|locked| locked.is_of(transaction) && locked.range.contains(key))
    }

    /// Whether others have ranges of the tree.
    pub(super) fn has_others(&self, transaction: TransactionId, tree: TreeId) -> bool {
        let mut ranges = self.of_tree(tree).iter();
        ranges.any(|locked| !locked.is_of(transaction))
    }
}
