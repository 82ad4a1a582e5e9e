//! The locks as others see them: which there are, and which keeps whom waiting.
//!
//! The table has no entry for a row that its writer has changed and nobody waits for, nor for a change that waits for a
//! range. Where somebody waits for or with one of these, it is shown nevertheless, so that each wait has two locks.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use super::{LockTable, Purpose, Wait, are_compatible};
use crate::page::TreeId;
use crate::sync;
use crate::transaction::TransactionId;
use crate::transaction::row_lock::{LockKind, LockMode, LockName, RangeLock};

/// What a lock is on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ShownTarget {
    /// A row, or the entry of an index.
    Key(Vec<u8>),
    /// A key that is to be inserted.
    NewKey(Vec<u8>),
    /// What begins so, against another check whether it is unique.
    Prefix(Vec<u8>),
    /// What refers to keys that begin so.
    Reference(Vec<u8>),
    /// The keys between two bounds; `None`: to the end.
    Range {
        lower: Option<Vec<u8>>,
        upper: Option<Vec<u8>>,
        kind: RangeLock,
    },
}

/// A lock that a transaction has or waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ShownLock {
    pub transaction: TransactionId,
    pub tree: TreeId,
    pub target: ShownTarget,
    pub mode: LockMode,
    pub is_granted: bool,
}

/// See the module's comment.
#[derive(Clone, Debug, Default)]
pub struct ShownLocks {
    pub locks: Vec<ShownLock>,
    /// Which lock is waited for by which, as places in the list: first the one that waits.
    pub waits: Vec<(usize, usize)>,
    /// How long transactions that wait have done so.
    pub waiting: BTreeMap<TransactionId, Duration>,
    /// How many locks each transaction has or waits for.
    pub counts: BTreeMap<TransactionId, usize>,
    /// There are more.
    pub is_cut: bool,
}

impl ShownLocks {
    fn push(&mut self, lock: ShownLock) -> usize {
        self.locks.push(lock);
        self.locks.len() - 1
    }
}

fn target_of(name: &LockName) -> ShownTarget {
    let key = name.key().to_vec();
    match name.kind_and_key[0] {
        kind if kind == LockKind::Prefix as u8 => ShownTarget::Prefix(key),
        kind if kind == LockKind::Reference as u8 => ShownTarget::Reference(key),
        _ => ShownTarget::Key(key),
    }
}

/// Where locks of rows stand in a list, and for each transaction those of ranges.
type LockPlaces<'a> = BTreeMap<(TransactionId, &'a LockName), usize>;
type RangePlaces = BTreeMap<TransactionId, Vec<usize>>;

impl LockTable {
    /// At most so many locks, and the waits between them.
    pub(in crate::transaction::row_lock) fn shown(&self, limit: usize) -> ShownLocks {
        let mut shown = ShownLocks::default();
        // By transaction, where its lock of a name is in the list.
        let mut places: BTreeMap<(TransactionId, &LockName), usize> = BTreeMap::new();
        for (name, queue) in &self.queues {
            if shown.locks.len() >= limit {
                shown.is_cut = true;
                break;
            }
            let holders = queue.holders.iter().map(|party| (party, true));
            let waiters = queue.waiting().iter().map(|party| (party, false));
            for (party, is_held) in holders.chain(waiters) {
                let owner = self.owners.get(&party.transaction);
                let is_place = owner.is_some_and(|owner| owner.place.as_ref() == Some(name));
                let place = shown.push(ShownLock {
                    transaction: party.transaction,
                    tree: name.tree,
                    target: target_of(name),
                    mode: party.mode,
                    is_granted: is_held && !is_place,
                });
                // A holder that asks for more stands there twice: it waits as the second.
                places.insert((party.transaction, name), place);
            }
        }
        let mut ranges: BTreeMap<TransactionId, Vec<usize>> = BTreeMap::new();
        for (tree, range) in self.ranges.shown() {
            if shown.locks.len() >= limit {
                shown.is_cut = true;
                break;
            }
            let bound = |bound: &Bound<Vec<u8>>| match bound {
                Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
                Bound::Unbounded => None,
            };
            let transaction = range.owner.id();
            let place = shown.push(ShownLock {
                transaction,
                tree,
                target: ShownTarget::Range {
                    lower: bound(&range.range.lower),
                    upper: bound(&range.range.upper),
                    kind: range.kind,
                },
                mode: match range.kind {
                    RangeLock::NoChanges => LockMode::Shared,
                    RangeLock::NoInserts | RangeLock::NoLocks => LockMode::Exclusive,
                },
                is_granted: !range.is_pending,
            });
            ranges.entry(transaction).or_default().push(place);
        }
        let now_ns = sync::monotonic_ns();
        for (waiter, owner) in &self.owners {
            let count = owner.locks.len() + owner.ranges.len();
            shown.counts.insert(*waiter, count);
            if let Some(wait) = &owner.wait {
                let waited_ns = now_ns.saturating_sub(owner.sleeps_since_ns);
                let waited = Duration::from_nanos(waited_ns);
                shown.waiting.insert(*waiter, waited);
                self.show_wait(*waiter, wait, (&places, &ranges), &mut shown);
            }
        }
        shown
    }

    fn show_wait(
        &self,
        waiter: TransactionId,
        wait: &Wait,
        (places, ranges): (&LockPlaces<'_>, &RangePlaces),
        shown: &mut ShownLocks,
    ) {
        let owner = self.owners.get(&waiter);
        let pending = || {
            let own = ranges.get(&waiter)?.iter().copied();
            own.rev().find(|place| !shown.locks[*place].is_granted)
        };
        match wait {
            Wait::Lock(name) => {
                let (Some(&requested), Some(queue)) =
                    (places.get(&(waiter, name)), self.queues.get(name))
                else {
                    return;
                };
                let mode = shown.locks[requested].mode;
                let before = queue.waiting().iter();
                let before = before.take_while(|party| party.transaction != waiter);
                for party in queue.holders.iter().chain(before) {
                    let is_in_the_way =
                        party.transaction != waiter && !are_compatible(party.mode, mode);
                    if is_in_the_way && let Some(&blocking) = places.get(&(party.transaction, name))
                    {
                        shown.waits.push((requested, blocking));
                    }
                }
            }
            Wait::End(writer) => {
                let place = owner.and_then(|owner| owner.place.as_ref());
                let requested = match place {
                    Some(name) => places.get(&(waiter, name)).copied(),
                    None => pending(),
                };
                let Some(requested) = requested else { return };
                // What the other has written is a lock.
                let written = ShownLock {
                    transaction: *writer,
                    mode: LockMode::Exclusive,
                    is_granted: true,
                    ..shown.locks[requested].clone()
                };
                let blocking = shown.push(written);
                shown.waits.push((requested, blocking));
            }
            Wait::Range(other) => {
                let Some(wanted) = owner.and_then(|owner| owner.wanted.as_ref()) else {
                    return;
                };
                let key = wanted.key.clone();
                let (target, mode) = match wanted.purpose {
                    Purpose::Lock(mode) => (ShownTarget::Key(key), mode),
                    Purpose::Change { is_insert: true } => {
                        (ShownTarget::NewKey(key), LockMode::Exclusive)
                    }
                    Purpose::Change { is_insert: false } => {
                        (ShownTarget::Key(key), LockMode::Exclusive)
                    }
                };
                let others = ranges.get(other).into_iter().flatten().copied();
                let others = others.filter(|place| shown.locks[*place].tree == wanted.tree);
                let others: Vec<usize> = others.collect();
                let requested = shown.push(ShownLock {
                    transaction: waiter,
                    tree: wanted.tree,
                    target,
                    mode,
                    is_granted: false,
                });
                let waits = others.into_iter().map(|blocking| (requested, blocking));
                shown.waits.extend(waits);
            }
            Wait::Locks(other) | Wait::Turn(other) => {
                let Some(requested) = pending() else { return };
                let tree = shown.locks[requested].tree;
                let of_other = |lock: &ShownLock| lock.transaction == *other && lock.tree == tree;
                if let Some(blocking) = shown.locks.iter().position(of_other) {
                    shown.waits.push((requested, blocking));
                }
            }
        }
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sync::atomic::AtomicUsize;
    use crate::transaction::row_lock::TreeCounters;

    fn table() -> LockTable {
        let counters = TreeCounters(std::array::from_fn(|_| AtomicUsize::new(0)));
        LockTable::new(100, Arc::new(counters))
    }

    #[test]
    fn a_waiter_is_shown_with_those_in_its_way() {
        let mut table = table();
        let name = LockName::row(TreeId(7), b"key");
        let ids = [1, 2, 3].map(TransactionId);
        for id in ids {
            let asked = table.request(id, &name, LockMode::Exclusive);
            assert!(asked.is_ok());
        }
        let shown = table.shown(10);
        let granted: Vec<bool> = shown.locks.iter().map(|lock| lock.is_granted).collect();
        assert_eq!(granted, [true, false, false]);
        assert_eq!(shown.waits, [(1, 0), (2, 0), (2, 1)]);
        assert_eq!(shown.locks[0].target, ShownTarget::Key(b"key".to_vec()));
        assert!(!shown.is_cut && table.shown(0).is_cut);
    }

    #[test]
    fn what_a_writer_has_changed_is_shown_where_somebody_waits_for_it() {
        let mut table = table();
        let name = LockName::row(TreeId(7), b"key");
        let (writer, waiter) = (TransactionId(1), TransactionId(2));
        table
            .request(waiter, &name, LockMode::Exclusive)
            .expect("a place");
        table.set_wait_in_place(waiter, writer, Some(name));
        let shown = table.shown(10);
        let [requested, blocking] = &shown.locks[..] else {
            panic!("{shown:?}");
        };
        assert_eq!(shown.waits, [(0, 1)]);
        assert_eq!(
            (requested.transaction, requested.is_granted),
            (waiter, false)
        );
        assert_eq!((blocking.transaction, blocking.is_granted), (writer, true));
        assert_eq!(blocking.target, requested.target);
    }
}
