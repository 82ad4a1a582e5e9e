//! The table of explicit locks: queues, ranges, and who waits for whom. It decides and never waits.
//!
//! A queue has holders and, behind them, those who wait, in the order in which they came. Who asks for a lock gets it
//! if no holder is in the way and nobody waits; so a stream of shared locks cannot starve an exclusive one. Only a
//! holder that asks for more goes to the front of those who wait: it would otherwise wait for somebody who waits for
//! it.
//!
//! **Escalation.** A transaction that has locked [`ESCALATION_ROWS`] rows of a tree locks the whole tree instead, if that is
//! in nobody's way; if it is, it goes on row by row and tries again after as many more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::page::TreeId;
use crate::row_lock::range_table::{Entered, RangeTable, WantedChange};
use crate::row_lock::{Blocker, LockKind, LockMode, LockName, RangeLock, TreeCounters};
use crate::snapshot::StatusCell;
use crate::sync::Condvar;
use crate::transaction::TransactionId;
use crate::tree::KeyRange;

/// Rows of a tree that a transaction locks one by one, before it locks the tree.
pub(super) const ESCALATION_ROWS: usize = 1 << 13;

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
    /// The end of another transaction, or that it takes changes back.
    End(TransactionId),
    /// The end of another transaction that waits for a key, or that it gives up.
    Turn(TransactionId),
    /// The end of another transaction, or that its range goes or lets pass.
    Range(TransactionId),
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

/// A transaction as the table knows it.
#[derive(Default)]
struct Owner {
    /// Held or waited for.
    locks: BTreeSet<LockName>,
    /// How many of these are of rows, by tree.
    rows: BTreeMap<TreeId, usize>,
    /// Trees in which it has ranges.
    ranges: BTreeSet<TreeId>,
    wait: Option<Wait>,
    /// The key that it waits for, where a range is in its way.
    wanted: Option<WantedKey>,
    wakeup: Arc<Condvar>,
}

/// A key that a transaction waits for.
#[derive(Clone)]
pub(super) struct WantedKey {
    pub(super) by: Arc<StatusCell>,
    pub(super) tree: TreeId,
    pub(super) key: Vec<u8>,
}

/// Row, prefix and range locks of all transactions.
pub(super) struct LockTable {
    queues: BTreeMap<LockName, Queue>,
    ranges: RangeTable,
    owners: BTreeMap<TransactionId, Owner>,
    /// Places in queues, and ranges.
    count: usize,
    limit: usize,
    /// Tells writers, who do not come here first, which trees have row and range locks.
    counters: Arc<TreeCounters>,
}

impl LockTable {
    pub(super) fn new(limit: usize, counters: Arc<TreeCounters>) -> LockTable {
        LockTable {
            queues: BTreeMap::new(),
            ranges: RangeTable::default(),
            owners: BTreeMap::new(),
            count: 0,
            limit,
            counters,
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

    /// `is_looked_for`: writers look for locks of this kind in this tree.
    fn take_place(&mut self, tree: TreeId, is_looked_for: bool) -> Result<()> {
        if self.count == self.limit {
            return Err(StorageError::TooManyLocks { limit: self.limit });
        }
        self.count += 1;
        if is_looked_for {
            self.counters.add(tree);
        }
        Ok(())
    }

    fn give_places(&mut self, tree: TreeId, is_looked_for: bool, places: usize) {
        self.count -= places;
        if is_looked_for {
            self.counters.subtract(tree, places);
        }
    }

    /// Asks for a lock. If it is queued, the transaction waits for it from now on. A row in a range that the transaction
    /// has locked as strongly is not entered.
    pub(super) fn request(
        &mut self,
        transaction: TransactionId,
        name: &LockName,
        mode: LockMode,
    ) -> Result<Request> {
        let is_row = name.kind == LockKind::Row;
        let ranges = &self.ranges;
        if is_row && ranges.covers_row(transaction, name.tree, &name.key, mode) {
            return Ok(Request::Granted);
        }
        if self.is_new(transaction, name) {
            self.take_place(name.tree, is_row)?;
        }
        let owner = self.owners.entry(transaction).or_default();
        if owner.locks.insert(name.clone()) && is_row {
            *owner.rows.entry(name.tree).or_default() += 1;
        }
        let queue = self.queues.entry(name.clone()).or_default();
        let request = queue.request(Party { transaction, mode });
        if request == Request::Queued {
            owner.wait = Some(Wait::Lock(name.clone()));
        }
        Ok(request)
    }

    /// Whose range keeps the transaction from locking a row.
    pub(super) fn range_against_lock(
        &self,
        transaction: TransactionId,
        name: &LockName,
        mode: LockMode,
    ) -> Option<Arc<StatusCell>> {
        if name.kind != LockKind::Row {
            return None;
        }
        let ranges = &self.ranges;
        let owner = ranges.against_lock(transaction, name.tree, &name.key, mode);
        owner.cloned()
    }

    /// Puts a range of the whole tree in the place of many rows, if nobody else has locked any of what it excludes.
    pub(super) fn escalate_if_due(&mut self, own: &Arc<StatusCell>, tree: TreeId) {
        let transaction = own.id();
        let Some(owner) = self.owners.get(&transaction) else {
            return;
        };
        let rows = owner.rows.get(&tree).copied().unwrap_or_default();
        if rows == 0 || !rows.is_multiple_of(ESCALATION_ROWS) {
            return;
        }
        let (mut own_mode, mut other_mode) = (LockMode::Shared, None);
        let of_tree = self.queues.range(LockName::first_row(tree)..);
        for (_, queue) in of_tree.take_while(|(name, _)| name.is_row_of(tree)) {
            for party in queue.holders.iter().chain(&queue.waiting) {
                match party.transaction == transaction {
                    true => own_mode = own_mode.max(party.mode),
                    false => other_mode = other_mode.max(Some(party.mode)),
                }
            }
        }
        let (kind, is_free) = match own_mode {
            LockMode::Shared => (
                RangeLock::NoChanges,
                other_mode != Some(LockMode::Exclusive),
            ),
            LockMode::Exclusive => (
                RangeLock::NoLocks,
                other_mode.is_none() && !self.ranges.has_others(transaction, tree),
            ),
        };
        if !is_free || self.enter_range(own, tree, KeyRange::all(), kind).is_err() {
            return;
        }
        let Some(owner) = self.owners.get(&transaction) else {
            return;
        };
        let of_tree = owner.locks.range(LockName::first_row(tree)..);
        let rows = of_tree.take_while(|name| name.is_row_of(tree));
        for name in rows.cloned().collect::<Vec<_>>() {
            self.release(transaction, &name);
        }
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
            let is_row = name.kind == LockKind::Row;
            if is_row && let Some(rows) = owner.rows.get_mut(&name.tree) {
                *rows -= 1;
            }
            self.give_places(name.tree, is_row, 1);
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
            owner.wanted = None;
        }
    }

    /// The transaction waits for a key in a range of `owner`.
    pub(super) fn set_wait_for_key(&mut self, wanted: WantedKey, owner: TransactionId) {
        let waiter = self.owners.entry(wanted.by.id()).or_default();
        waiter.wait = Some(Wait::Range(owner));
        waiter.wanted = Some(wanted);
    }

    /// Who waits for a key of this range because of somebody else's range, and should have it first. Not who comes across
    /// a range that the transaction has already.
    pub(super) fn waits_for_key_in(
        &self,
        transaction: TransactionId,
        tree: TreeId,
        range: &KeyRange,
    ) -> Option<Arc<StatusCell>> {
        self.owners.values().find_map(|owner| {
            let wanted = owner.wanted.as_ref()?;
            let is_before = wanted.by.id() != transaction
                && wanted.by.is_active()
                && wanted.tree == tree
                && range.contains(&wanted.key)
                && !self.ranges.is_in_range_of(transaction, tree, &wanted.key);
            is_before.then(|| wanted.by.clone())
        })
    }

    /// Enters a range. Who is in the way of it is not looked at.
    pub(super) fn enter_range(
        &mut self,
        own: &Arc<StatusCell>,
        tree: TreeId,
        range: KeyRange,
        kind: RangeLock,
    ) -> Result<Entered> {
        // A place is taken first, because entering cannot be taken back once ranges were widened.
        self.take_place(tree, true)?;
        let entered = self.ranges.enter(own, tree, range, kind);
        match entered {
            Entered::Known => self.give_places(tree, true, 1),
            Entered::New => {}
            Entered::Widened(ranges) => self.give_places(tree, true, ranges - 1),
        }
        if entered != Entered::Known {
            let owner = self.owners.entry(own.id()).or_default();
            owner.ranges.insert(tree);
        }
        Ok(entered)
    }

    /// Takes a range out again before the transaction ends.
    pub(super) fn leave_range(
        &mut self,
        transaction: TransactionId,
        tree: TreeId,
        range: &KeyRange,
        kind: RangeLock,
    ) {
        if self.ranges.leave(transaction, tree, range, kind) {
            self.give_places(tree, true, 1);
            self.let_pass(transaction);
        }
    }

    /// Says whether the transaction still waits before it reads a range.
    pub(super) fn set_pending(
        &mut self,
        transaction: TransactionId,
        tree: TreeId,
        range: &KeyRange,
        kind: RangeLock,
        is_pending: bool,
    ) {
        let ranges = &mut self.ranges;
        if ranges.set_pending(transaction, tree, range, kind, is_pending) && is_pending {
            self.let_pass(transaction);
        }
    }

    /// Lets those look again who wait for a range of the transaction.
    fn let_pass(&mut self, transaction: TransactionId) {
        self.let_look_again(&[Wait::Range(transaction)]);
    }

    /// Those who wait for one of these wait no longer, until they say so.
    pub(super) fn let_look_again(&mut self, waits: &[Wait]) {
        for owner in self.owners.values_mut() {
            if owner.wait.as_ref().is_some_and(|wait| waits.contains(wait)) {
                owner.wait = None;
                owner.wakeup.notify_all();
            }
        }
    }

    /// What keeps a transaction from changing, or inserting, a row.
    pub(super) fn blocker(
        &self,
        transaction: TransactionId,
        wanted: WantedChange<'_>,
    ) -> Option<Blocker> {
        if let Some(owner) = self.ranges.against_change(transaction, wanted) {
            return Some(Blocker::Range(owner.clone()));
        }
        let queue = self.queues.get(&LockName::row(wanted.tree, wanted.key))?;
        let holds_it = queue.held_mode(transaction).is_some();
        let is_blocked = queue.is_held_against(Party {
            transaction,
            mode: LockMode::Exclusive,
        }) || (!holds_it && !queue.waiting.is_empty());
        is_blocked.then_some(Blocker::Lock)
    }

    /// Whether the transaction has said that it waits, and nobody has told it to look again.
    pub(super) fn waits(&self, transaction: TransactionId) -> bool {
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
            Some(Wait::End(other) | Wait::Turn(other) | Wait::Range(other)) => vec![*other],
            Some(Wait::Lock(name)) => self
                .queues
                .get(name)
                .map_or_else(Vec::new, |queue| queue.in_the_way_of(transaction)),
        }
    }

    /// The transaction has ended: its locks go.
    pub(super) fn release_all(&mut self, transaction: TransactionId) {
        let Some(mut owner) = self.owners.remove(&transaction) else {
            return;
        };
        for name in std::mem::take(&mut owner.locks) {
            self.give_places(name.tree, name.kind == LockKind::Row, 1);
            self.release(transaction, &name);
        }
        for tree in owner.ranges {
            let left = self.ranges.leave_tree(transaction, tree);
            self.give_places(tree, true, left);
        }
    }

    /// Wakes all who wait for the end of the transaction.
    pub(super) fn wake_awaiting(&self, transaction: TransactionId) {
        for owner in self.owners.values() {
            let awaited = match owner.wait {
                Some(Wait::End(other) | Wait::Turn(other) | Wait::Range(other)) => Some(other),
                Some(Wait::Lock(_)) | None => None,
            };
            if awaited == Some(transaction) {
                owner.wakeup.notify_all();
            }
        }
    }
}
