//! The table of explicit locks: queues, ranges, and who waits for whom. It decides and never waits.
//!
//! A queue has holders and, behind them, those who wait, in the order in which they came. Who asks for a lock gets it
//! if no holder is in the way and nobody waits; so a stream of shared locks cannot starve an exclusive one. Only a
//! holder that asks for more goes to the front of those who wait: it would otherwise wait for somebody who waits for
//! it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::page::TreeId;
use crate::row_lock::{Blocker, LockMode, LockName, RangeLock};
use crate::snapshot::StatusCell;
use crate::sync::Condvar;
use crate::transaction::TransactionId;
use crate::tree::KeyRange;

/// Outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Request {
    Granted,
    Queued,
}

/// What a transaction waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    Lock(LockName),
    /// The end of another transaction.
    End(TransactionId),
}

/// A transaction and what it holds, or wants, of a lock.
#[derive(Clone, Copy, Debug)]
struct Party {
    transaction: TransactionId,
    mode: LockMode,
}

#[derive(Default)]
struct Queue {
    holders: Vec<Party>,
    waiting: VecDeque<Party>,
}

fn are_compatible(a: LockMode, b: LockMode) -> bool {
    a == LockMode::Shared && b == LockMode::Shared
}

impl Queue {
    fn held_mode(&self, transaction: TransactionId) -> Option<LockMode> {
        let mut holders = self.holders.iter();
        holders
            .find(|holder| holder.transaction == transaction)
            .map(|holder| holder.mode)
    }

    fn is_held_against(&self, party: Party) -> bool {
        self.holders.iter().any(|holder| {
            holder.transaction != party.transaction && !are_compatible(holder.mode, party.mode)
        })
    }

    fn grant(&mut self, party: Party) {
        let known = self
            .holders
            .iter_mut()
            .find(|holder| holder.transaction == party.transaction);
        match known {
            Some(holder) => holder.mode = holder.mode.max(party.mode),
            None => self.holders.push(party),
        }
    }

    fn request(&mut self, party: Party) -> Request {
        let held = self.held_mode(party.transaction);
        if held >= Some(party.mode) {
            return Request::Granted;
        }
        let may_pass = held.is_some() || self.waiting.is_empty();
        if may_pass && !self.is_held_against(party) {
            self.grant(party);
            return Request::Granted;
        }
        if held.is_some() {
            self.waiting.push_front(party);
        } else {
            self.waiting.push_back(party);
        }
        Request::Queued
    }

    /// Serves those who can be served, and returns them.
    fn serve(&mut self) -> Vec<TransactionId> {
        let mut served = Vec::new();
        while let Some(&first) = self.waiting.front() {
            if self.is_held_against(first) {
                break;
            }
            self.waiting.pop_front();
            self.grant(first);
            served.push(first.transaction);
        }
        served
    }

    /// Whom a waiting transaction waits for: holders, and those before it in the queue.
    fn in_the_way_of(&self, transaction: TransactionId) -> Vec<TransactionId> {
        let Some(place) = self
            .waiting
            .iter()
            .position(|party| party.transaction == transaction)
        else {
            return Vec::new();
        };
        let party = self.waiting[place];
        let before = self.waiting.iter().take(place);
        self.holders
            .iter()
            .chain(before)
            .filter(|other| {
                other.transaction != transaction && !are_compatible(other.mode, party.mode)
            })
            .map(|other| other.transaction)
            .collect()
    }
}

struct LockedRange {
    owner: Arc<StatusCell>,
    range: KeyRange,
    kind: RangeLock,
}

/// A transaction as the table knows it.
#[derive(Default)]
struct Owner {
    /// Held or waited for.
    locks: BTreeSet<LockName>,
    /// Trees in which it has ranges.
    ranges: BTreeSet<TreeId>,
    wait: Option<Wait>,
    wakeup: Arc<Condvar>,
}

/// Row, prefix and range locks of all transactions.
pub(super) struct LockTable {
    queues: BTreeMap<LockName, Queue>,
    ranges: BTreeMap<TreeId, Vec<LockedRange>>,
    owners: BTreeMap<TransactionId, Owner>,
    /// Places in queues, and ranges.
    count: usize,
    limit: usize,
}

impl LockTable {
    pub(super) fn new(limit: usize) -> LockTable {
        LockTable {
            queues: BTreeMap::new(),
            ranges: BTreeMap::new(),
            owners: BTreeMap::new(),
            count: 0,
            limit,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether the transaction neither holds the lock nor waits for it.
    pub(super) fn is_new(&self, transaction: TransactionId, name: &LockName) -> bool {
        let owner = self.owners.get(&transaction);
        owner.is_none_or(|owner| !owner.locks.contains(name))
    }

    fn take_place(&mut self) -> Result<()> {
        if self.count == self.limit {
            return Err(StorageError::TooManyLocks { limit: self.limit });
        }
        self.count += 1;
        Ok(())
    }

    /// Asks for a lock. If it is queued, the transaction waits for it from now on.
    pub(super) fn request(
        &mut self,
        transaction: TransactionId,
        name: &LockName,
        mode: LockMode,
    ) -> Result<Request> {
        if self.is_new(transaction, name) {
            self.take_place()?;
        }
        let owner = self.owners.entry(transaction).or_default();
        owner.locks.insert(name.clone());
        let queue = self.queues.entry(name.clone()).or_default();
        let request = queue.request(Party { transaction, mode });
        if request == Request::Queued {
            owner.wait = Some(Wait::Lock(name.clone()));
        }
        Ok(request)
    }

    pub(super) fn holds(
        &self,
        transaction: TransactionId,
        name: &LockName,
        mode: LockMode,
    ) -> bool {
        let queue = self.queues.get(name);
        queue.and_then(|queue| queue.held_mode(transaction)) >= Some(mode)
    }

    /// Stops waiting for a lock. One that was held before the request stays held.
    pub(super) fn withdraw(&mut self, transaction: TransactionId, name: &LockName) {
        self.clear_wait(transaction);
        let Some(queue) = self.queues.get_mut(name) else {
            return;
        };
        queue
            .waiting
            .retain(|party| party.transaction != transaction);
        if queue.held_mode(transaction).is_none() {
            self.release(transaction, name);
        } else {
            self.serve(name);
        }
    }

    /// Gives a lock back.
    pub(super) fn release(&mut self, transaction: TransactionId, name: &LockName) {
        if let Some(owner) = self.owners.get_mut(&transaction)
            && owner.locks.remove(name)
        {
            self.count -= 1;
        }
        if let Some(queue) = self.queues.get_mut(name) {
            queue
                .holders
                .retain(|party| party.transaction != transaction);
            queue
                .waiting
                .retain(|party| party.transaction != transaction);
        }
        self.serve(name);
    }

    /// Serves a queue after somebody left it, and wakes who was served.
    fn serve(&mut self, name: &LockName) {
        let Some(queue) = self.queues.get_mut(name) else {
            return;
        };
        let served = queue.serve();
        if queue.holders.is_empty() {
            debug_assert!(queue.waiting.is_empty());
            self.queues.remove(name);
        }
        for transaction in served {
            self.clear_wait(transaction);
            self.wake(transaction);
        }
    }

    fn wake(&self, transaction: TransactionId) {
        if let Some(owner) = self.owners.get(&transaction) {
            owner.wakeup.notify_all();
        }
    }

    /// What wakes the transaction.
    pub(super) fn wakeup(&mut self, transaction: TransactionId) -> Arc<Condvar> {
        self.owners.entry(transaction).or_default().wakeup.clone()
    }

    pub(super) fn set_wait(&mut self, transaction: TransactionId, wait: Wait) {
        self.owners.entry(transaction).or_default().wait = Some(wait);
    }

    pub(super) fn clear_wait(&mut self, transaction: TransactionId) {
        if let Some(owner) = self.owners.get_mut(&transaction) {
            owner.wait = None;
        }
    }

    /// Enters a range; false if the transaction has it already.
    pub(super) fn lock_range(
        &mut self,
        owner: &Arc<StatusCell>,
        tree: TreeId,
        range: KeyRange,
        kind: RangeLock,
    ) -> Result<bool> {
        let is_known = self.ranges.get(&tree).is_some_and(|ranges| {
            ranges.iter().any(|known| {
                Arc::ptr_eq(&known.owner, owner) && known.kind == kind && known.range == range
            })
        });
        if is_known {
            return Ok(false);
        }
        self.take_place()?;
        let entry = self.owners.entry(owner.id()).or_default();
        entry.ranges.insert(tree);
        self.ranges.entry(tree).or_default().push(LockedRange {
            owner: owner.clone(),
            range,
            kind,
        });
        Ok(true)
    }

    /// What keeps a transaction from changing, or inserting, a row.
    pub(super) fn blocker(
        &self,
        transaction: TransactionId,
        tree: TreeId,
        key: &[u8],
        is_insert: bool,
    ) -> Option<Blocker> {
        let ranges = self.ranges.get(&tree).map_or(&[][..], Vec::as_slice);
        let range = ranges.iter().find(|locked| {
            locked.owner.id() != transaction
                && (is_insert || locked.kind == RangeLock::NoChanges)
                && locked.range.contains(key)
        });
        if let Some(range) = range {
            return Some(Blocker::Range(range.owner.clone()));
        }
        let queue = self.queues.get(&LockName::row(tree, key))?;
        let holds_it = queue.held_mode(transaction).is_some();
        let is_blocked = queue.is_held_against(Party {
            transaction,
            mode: LockMode::Exclusive,
        }) || (!holds_it && !queue.waiting.is_empty());
        is_blocked.then_some(Blocker::Lock)
    }

    #[cfg(test)]
    pub(super) fn is_waiting(&self, transaction: TransactionId) -> bool {
        let owner = self.owners.get(&transaction);
        owner.is_some_and(|owner| owner.wait.is_some())
    }

    /// Whether what the transaction waits for waits, in the end, for the transaction.
    pub(super) fn closes_cycle(&self, transaction: TransactionId) -> bool {
        let mut seen = BTreeSet::new();
        let mut ahead = self.waits_for(transaction);
        while let Some(next) = ahead.pop() {
            if next == transaction {
                return true;
            }
            if seen.insert(next) {
                ahead.extend(self.waits_for(next));
            }
        }
        false
    }

    fn waits_for(&self, transaction: TransactionId) -> Vec<TransactionId> {
        match self
            .owners
            .get(&transaction)
            .and_then(|owner| owner.wait.as_ref())
        {
            None => Vec::new(),
            Some(Wait::End(other)) => vec![*other],
            Some(Wait::Lock(name)) => self
                .queues
                .get(name)
                .map_or_else(Vec::new, |queue| queue.in_the_way_of(transaction)),
        }
    }

    /// The transaction has ended. `uncounted` is called with the tree of each of its row and range locks.
    pub(super) fn release_all(
        &mut self,
        transaction: TransactionId,
        mut uncounted: impl FnMut(TreeId),
    ) {
        let Some(mut owner) = self.owners.remove(&transaction) else {
            return;
        };
        for name in std::mem::take(&mut owner.locks) {
            self.count -= 1;
            if !name.is_prefix {
                uncounted(name.tree);
            }
            self.release(transaction, &name);
        }
        for tree in owner.ranges {
            let Some(ranges) = self.ranges.get_mut(&tree) else {
                continue;
            };
            let before = ranges.len();
            ranges.retain(|locked| locked.owner.id() != transaction);
            let released = before - ranges.len();
            self.count -= released;
            (0..released).for_each(|_| uncounted(tree));
            if ranges.is_empty() {
                self.ranges.remove(&tree);
            }
        }
    }

    /// Wakes all who wait for the end of the transaction.
    pub(super) fn wake_awaiting(&self, transaction: TransactionId) {
        for owner in self.owners.values() {
            if owner.wait == Some(Wait::End(transaction)) {
                owner.wakeup.notify_all();
            }
        }
    }
}
