//! The table of explicit locks: queues, ranges, and which transaction waits for which. It decides and never waits.
//!
//! A queue has holders and, behind them, waiters in the order in which they came. A request is granted if no holder
//! conflicts with it and there are no waiters, so a stream of shared locks cannot starve an exclusive one. Only a
//! holder that asks for more goes to the front of the waiters: it would otherwise wait for a waiter that waits for it.
//!
//! **Escalation.** A transaction that has locked [`ESCALATION_ROWS`] rows of a tree locks the whole tree instead, if no
//! other transaction has a conflicting lock or an uncommitted change in it. If one has, it goes on row by row and tries
//! again later.

pub(super) mod shown;
mod wait_search;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Result, StorageError};
use crate::key_range::KeyRange;
use crate::page::TreeId;
use crate::sync::{self, Condvar};
use crate::transaction::TransactionId;
use crate::transaction::row_lock::range_table::{Entered, RangeTable, WantedChange};
use crate::transaction::row_lock::{
    Blocker, Interrupt, LockMode, LockName, LockedKeys, RangeLock, TreeCounters,
};
use crate::transaction::snapshot::StatusCell;

/// Rows of a tree that a transaction locks one by one, before it locks the tree.
pub(crate) const ESCALATION_ROWS: usize = 1 << 13;

/// Locks that a transaction may have where all others have as many as there may be: those of a small statement. They
/// are few beside the limit, however many transactions there are, and none where it has less than the second for each.
const FEW_LOCKS: usize = 32;
const LIMIT_OF_A_FEW_LOCK: usize = 1 << 10;

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
    /// The end of another transaction, or that it rolls changes back.
    End(TransactionId),
    /// The end of another transaction that waits for a key, or that it stops waiting.
    Turn(TransactionId),
    /// The end of another transaction, or that its range goes or lets pass. There may be more with conflicting ranges.
    Range(TransactionId),
    /// The end of another transaction whose locks conflict with a range, or that it releases locks.
    Locks(TransactionId),
}

impl Wait {
    /// The transaction whose end ends the wait.
    fn transaction(&self) -> Option<TransactionId> {
        match self {
            Wait::End(other) | Wait::Turn(other) | Wait::Range(other) | Wait::Locks(other) => {
                Some(*other)
            }
            Wait::Lock(_) => None,
        }
    }
}

/// A transaction and what it holds, or wants, of a lock.
#[derive(Clone, Copy, Debug)]
struct Party {
    transaction: TransactionId,
    mode: LockMode,
}

#[derive(Default)]
#[expect(
    clippy::box_collection,
    reason = "a quarter of the size where nobody waits"
)]
struct Queue {
    holders: SmallVec<[Party; 1]>,
    /// There are many locks for which nobody waits.
    waiters: Option<Box<VecDeque<Party>>>,
}

/// What the table takes for a lock whose key is short, at most: its queue, and its name twice, in nodes that are half
/// full.
pub const LOCK_BYTES: usize = 256;

const _: () = {
    let entries = size_of::<(LockName, Queue)>() + size_of::<LockName>();
    assert!(2 * entries <= LOCK_BYTES);
};

/// How many places a lock takes: more than one if its name, which the table has twice, is long.
fn places_of(name: &LockName) -> usize {
    let name = &name.kind_and_key;
    let allocated = match name.len() > name.inline_size() {
        true => 2 * name.len(),
        false => 0,
    };
    1 + allocated / LOCK_BYTES
}

fn are_compatible(a: LockMode, b: LockMode) -> bool {
    a == LockMode::Shared && b == LockMode::Shared
}

impl Queue {
    fn waiting(&self) -> &VecDeque<Party> {
        static NOBODY: VecDeque<Party> = VecDeque::new();
        self.waiters.as_deref().unwrap_or(&NOBODY)
    }

    fn waiting_mut(&mut self) -> &mut VecDeque<Party> {
        self.waiters.get_or_insert_with(Box::default)
    }

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
        let may_pass = held.is_some() || self.waiting().is_empty();
        if may_pass && !self.is_held_against(party) {
            self.grant(party);
            return Request::Granted;
        }
        if held.is_some() {
            self.waiting_mut().push_front(party);
        } else {
            self.waiting_mut().push_back(party);
        }
        Request::Queued
    }

    /// Serves the waiters that can be served, and returns them.
    fn serve(&mut self) -> Vec<TransactionId> {
        let mut served = Vec::new();
        while let Some(&first) = self.waiting().front() {
            if self.is_held_against(first) {
                break;
            }
            self.waiting_mut().pop_front();
            self.grant(first);
            served.push(first.transaction);
        }
        if self.waiting().is_empty() {
            self.waiters = None;
        }
        served
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
    /// A lock that it has as a place in the queue, until the writer that it waits for has ended.
    place: Option<LockName>,
    /// The key that it waits for, where a range conflicts.
    wanted: Option<WantedKey>,
    wakeup: Arc<Condvar>,
    /// While it waits: what tells whether it shall stop waiting.
    interrupt: Option<Interrupt>,
    /// What it had changed and locked when it began to wait, and when that was.
    work: usize,
    sleeps_since_ns: u64,
    /// It shall stop waiting, and has perhaps not noticed.
    gives_up: bool,
    /// The same because it is the victim of a deadlock.
    is_victim: bool,
    /// It sleeps, and shall ask now whether it shall stop waiting.
    is_roused: bool,
}

/// A key that a transaction waits for.
#[derive(Clone)]
pub(super) struct WantedKey {
    pub(super) by: Arc<StatusCell>,
    pub(super) tree: TreeId,
    pub(super) key: Vec<u8>,
    pub(super) purpose: Purpose,
}

/// What a key is wanted for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Lock(LockMode),
    Change { is_insert: bool },
}

/// Row, prefix and range locks of all transactions.
pub(super) struct LockTable {
    queues: BTreeMap<LockName, Queue>,
    ranges: RangeTable,
    owners: BTreeMap<TransactionId, Owner>,
    /// Places in queues, and ranges. A lock of a long key takes several.
    count: usize,
    limit: usize,
    /// How many wait for others' locks before they read a range.
    awaiting_locks: usize,
    /// Tells writers, which do not come here first, which trees have row and range locks.
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
            awaiting_locks: 0,
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

    /// Whether the transaction may have a lock beyond the limit.
    fn has_few(&self, transaction: TransactionId) -> bool {
        let owner = self.owners.get(&transaction);
        let few = FEW_LOCKS.min(self.limit / LIMIT_OF_A_FEW_LOCK);
        owner.map_or(0, |owner| owner.locks.len() + owner.ranges.len()) < few
    }

    /// Takes a place for a range. Beyond the limit there is one in each tree.
    fn take_place(&mut self, tree: TreeId, transaction: TransactionId) -> Result<()> {
        let owner = self.owners.get(&transaction);
        let is_first = owner.is_none_or(|owner| !owner.ranges.contains(&tree));
        if self.count >= self.limit && !(is_first && self.has_few(transaction)) {
            return Err(StorageError::TooManyLocks { limit: self.limit });
        }
        self.count += 1;
        self.counters.add(tree);
        Ok(())
    }

    /// Gives back the places of so many ranges.
    fn give_places(&mut self, tree: TreeId, ranges: usize) {
        self.count -= ranges;
        self.counters.subtract(tree, ranges);
    }

    /// Gives back the places of a lock.
    fn give_places_of(&mut self, name: &LockName) {
        self.count -= places_of(name);
        // Writers look for locks of rows in this tree, and for no others.
        if name.is_row() {
            self.counters.subtract(name.tree, 1);
        }
    }

    /// Asks for a lock. If it is queued, the transaction waits for it from now on. A row in a range that the
    /// transaction has locked as strongly is not entered. True: the lock is entered, and was not before.
    pub(super) fn request(
        &mut self,
        transaction: TransactionId,
        name: &LockName,
        mode: LockMode,
    ) -> Result<(Request, bool)> {
        let is_row = name.is_row();
        let ranges = &self.ranges;
        if is_row && ranges.covers_row(transaction, name.tree, name.key(), mode) {
            return Ok((Request::Granted, false));
        }
        let places = places_of(name);
        let is_full = self.count + places > self.limit;
        if is_full && self.is_new(transaction, name) && !self.has_few(transaction) {
            return Err(StorageError::TooManyLocks { limit: self.limit });
        }
        let owner = self.owners.entry(transaction).or_default();
        let is_new = owner.locks.insert(name.clone());
        if is_new {
            self.count += places;
            if is_row {
                self.counters.add(name.tree);
                *owner.rows.entry(name.tree).or_default() += 1;
            }
        }
        let queue = self.queues.entry(name.clone()).or_default();
        let request = queue.request(Party { transaction, mode });
        if request == Request::Queued {
            owner.wait = Some(Wait::Lock(name.clone()));
        }
        Ok((request, is_new))
    }

    /// Whose range keeps the transaction from locking a row.
    pub(super) fn range_against_lock(
        &self,
        transaction: TransactionId,
        name: &LockName,
        mode: LockMode,
    ) -> Option<Arc<StatusCell>> {
        if !name.is_row() {
            return None;
        }
        let ranges = &self.ranges;
        let lets_pass = |owner| self.reaches(owner, transaction);
        let mut owners =
            ranges.owners_against_lock(transaction, name.tree, name.key(), mode, lets_pass);
        owners.next().cloned()
    }

    /// What a range of the whole tree would exclude, in the place of the rows that the transaction has locked. `None`
    /// if these are few, or if another transaction has locked any of that.
    pub(super) fn may_escalate(
        &self,
        transaction: TransactionId,
        tree: TreeId,
    ) -> Option<RangeLock> {
        let owner = self.owners.get(&transaction)?;
        if *owner.rows.get(&tree)? < ESCALATION_ROWS {
            return None;
        }
        let (mut own_mode, mut other_mode) = (LockMode::Shared, None);
        let of_tree = self.queues.range(LockName::first_row(tree)..);
        for (_, queue) in of_tree.take_while(|(name, _)| name.is_row_of(tree)) {
            for party in queue.holders.iter().chain(queue.waiting()) {
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
        is_free.then_some(kind)
    }

    /// Puts a range of the whole tree in the place of many rows, if it [may](Self::may_escalate).
    pub(super) fn escalate(&mut self, own: &Arc<StatusCell>, tree: TreeId) -> bool {
        let Some(kind) = self.may_escalate(own.id(), tree) else {
            return false;
        };
        if self.enter_range(own, tree, KeyRange::all(), kind).is_err() {
            return false;
        }
        let Some(owner) = self.owners.get(&own.id()) else {
            return false;
        };
        let of_tree = owner.locks.range(LockName::first_row(tree)..);
        let rows = of_tree.take_while(|name| name.is_row_of(tree));
        for name in rows.cloned().collect::<Vec<_>>() {
            self.release(own.id(), &name);
        }
        true
    }

    /// A transaction whose locks the range of `transaction` excludes. Not one that waits for `transaction`
    /// (transitively).
    pub(super) fn excluded(
        &self,
        transaction: TransactionId,
        LockedKeys { tree, range, kind }: LockedKeys<'_>,
    ) -> Option<TransactionId> {
        let excluded_mode = match kind {
            RangeLock::NoInserts => return None,
            RangeLock::NoChanges => LockMode::Exclusive,
            RangeLock::NoLocks => LockMode::Shared,
        };
        let lower = match &range.lower {
            Bound::Included(key) | Bound::Excluded(key) => key.as_slice(),
            Bound::Unbounded => &[],
        };
        let rows = self
            .queues
            .range(LockName::row(tree, lower)..)
            .take_while(|(name, _)| name.is_row_of(tree) && !range.is_above(name.key()))
            .filter(|(name, _)| range.contains(name.key()))
            .flat_map(|(_, queue)| &queue.holders)
            .filter(|holder| holder.mode >= excluded_mode)
            .map(|holder| holder.transaction);
        let mut others = rows
            .chain(self.ranges.owners_against_range(tree, range, kind))
            .filter(|&other| other != transaction);
        others.find(|&other| !self.reaches(other, transaction))
    }

    /// Whether the transaction has, or had and has not ended, anything here.
    pub(super) fn is_known(&self, transaction: TransactionId) -> bool {
        self.owners.contains_key(&transaction)
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
            .waiting_mut()
            .retain(|party| party.transaction != transaction);
        if queue.held_mode(transaction).is_none() {
            self.release(transaction, name);
        } else {
            self.serve(name);
        }
    }

    /// Releases a lock.
    pub(super) fn release(&mut self, transaction: TransactionId, name: &LockName) {
        if let Some(owner) = self.owners.get_mut(&transaction)
            && owner.locks.remove(name)
        {
            if name.is_row()
                && let Some(rows) = owner.rows.get_mut(&name.tree)
            {
                *rows -= 1;
            }
            self.give_places_of(name);
        }
        self.leave_queue(transaction, name.clone());
    }

    /// Takes the transaction out of a queue and serves those that stay, or ends the queue if it is empty.
    fn leave_queue(&mut self, transaction: TransactionId, name: LockName) {
        let Entry::Occupied(mut entry) = self.queues.entry(name) else {
            return;
        };
        let queue = entry.get_mut();
        queue
            .holders
            .retain(|party| party.transaction != transaction);
        if let Some(waiters) = &mut queue.waiters {
            waiters.retain(|party| party.transaction != transaction);
        }
        let served = queue.serve();
        if queue.holders.is_empty() {
            debug_assert!(queue.waiting().is_empty());
            entry.remove();
        }
        self.wake_served(&served);
    }

    /// Serves a queue in which a transaction has stopped waiting, and wakes those that were served.
    fn serve(&mut self, name: &LockName) {
        let Some(queue) = self.queues.get_mut(name) else {
            return;
        };
        let served = queue.serve();
        self.wake_served(&served);
    }

    fn wake_served(&mut self, served: &[TransactionId]) {
        for &transaction in served {
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

    /// The transaction waits for the end of another one, whose row it has locked to be the next.
    pub(super) fn set_wait_in_place(
        &mut self,
        transaction: TransactionId,
        writer: TransactionId,
        place: Option<LockName>,
    ) {
        let owner = self.owners.entry(transaction).or_default();
        owner.wait = Some(Wait::End(writer));
        owner.place = place;
    }

    pub(super) fn clear_wait(&mut self, transaction: TransactionId) {
        if let Some(owner) = self.owners.get_mut(&transaction) {
            owner.wait = None;
            owner.place = None;
            owner.wanted = None;
        }
    }

    /// The transaction begins to sleep; `interrupt` tells whether it shall stop waiting. It asks once before it sleeps:
    /// if it was told to stop a moment ago, only those that slept then were roused.
    pub(super) fn begin_sleep(
        &mut self,
        transaction: TransactionId,
        interrupt: &Option<Interrupt>,
        work: usize,
    ) {
        let owner = self.owners.entry(transaction).or_default();
        owner.work = work;
        owner.sleeps_since_ns = sync::monotonic_ns();
        owner.interrupt = interrupt.clone();
        owner.is_roused = interrupt.is_some();
    }

    pub(super) fn end_sleep(&mut self, transaction: TransactionId) {
        if let Some(owner) = self.owners.get_mut(&transaction) {
            owner.interrupt = None;
            owner.gives_up = false;
            owner.is_victim = false;
            owner.is_roused = false;
        }
    }

    /// All that sleep ask now whether they shall stop waiting.
    pub(super) fn wake_all(&mut self) {
        for owner in self.owners.values_mut() {
            if owner.interrupt.is_some() {
                owner.is_roused = true;
                owner.wakeup.notify_all();
            }
        }
    }

    /// Whether the transaction was told to ask whether it shall stop waiting. It is not told again.
    pub(super) fn take_rousing(&mut self, transaction: TransactionId) -> bool {
        let owner = self.owners.get_mut(&transaction);
        owner.is_some_and(|owner| std::mem::take(&mut owner.is_roused))
    }

    /// The other waiters in a cycle that the transaction's wait closes, which may have been told to stop.
    pub(super) fn interrupts_in_cycle(
        &self,
        transaction: TransactionId,
    ) -> Vec<(TransactionId, Interrupt)> {
        let others = self.others_in_cycles(transaction).into_iter();
        others
            .filter_map(|other| Some((other, self.owners.get(&other)?.interrupt.clone()?)))
            .collect()
    }

    /// The transaction shall stop waiting: it counts as one that waits for no other, and wakes up.
    pub(super) fn give_up(&mut self, transaction: TransactionId) {
        if let Some(owner) = self.owners.get_mut(&transaction)
            && owner.interrupt.is_some()
        {
            owner.gives_up = true;
            owner.wakeup.notify_all();
        }
    }

    /// Whether the transaction, which sleeps, shall stop waiting.
    pub(super) fn gives_up(&self, transaction: TransactionId) -> bool {
        let owner = self.owners.get(&transaction);
        owner.is_some_and(|owner| owner.gives_up)
    }

    /// The transaction has released a lock: those that wait for this look again.
    pub(super) fn let_readers_look_again(&mut self, transaction: TransactionId) {
        if self.awaiting_locks > 0 {
            self.let_look_again(&[Wait::Locks(transaction)]);
        }
    }

    /// The transaction waits for locks of `holder` before it reads a range.
    pub(super) fn set_wait_for_locks(&mut self, transaction: TransactionId, holder: TransactionId) {
        self.awaiting_locks += 1;
        self.set_wait(transaction, Wait::Locks(holder));
    }

    pub(super) fn end_wait_for_locks(&mut self, transaction: TransactionId) {
        self.awaiting_locks -= 1;
        self.clear_wait(transaction);
    }

    /// Ends the courtesy waits of the transactions for which this one waits (transitively), until they say again that
    /// they wait. True if there are any.
    pub(super) fn end_courtesies(&mut self, transaction: TransactionId) -> bool {
        let mut ended = false;
        for waiter in self.waited_for(transaction) {
            if let Some(owner) = self.owners.get_mut(&waiter)
                && matches!(owner.wait, Some(Wait::Locks(_) | Wait::Turn(_)))
            {
                owner.wait = None;
                owner.wakeup.notify_all();
                ended = true;
            }
        }
        ended
    }

    /// The transaction waits for a key in a range of `owner`.
    pub(super) fn set_wait_for_key(&mut self, wanted: WantedKey, owner: TransactionId) {
        let waiter = self.owners.entry(wanted.by.id()).or_default();
        waiter.wait = Some(Wait::Range(owner));
        waiter.wanted = Some(wanted);
    }

    /// A transaction that waits for a key of this range because of another's range, and should have it first. Not one
    /// whose key lies in a range that the transaction has already.
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

    /// Enters a range. Conflicts are not looked for.
    pub(super) fn enter_range(
        &mut self,
        own: &Arc<StatusCell>,
        tree: TreeId,
        range: KeyRange,
        kind: RangeLock,
    ) -> Result<Entered> {
        // A place is taken first, because entering cannot be undone once ranges were widened.
        self.take_place(tree, own.id())?;
        let entered = self.ranges.enter(own, tree, range, kind);
        match entered {
            Entered::Known => self.give_places(tree, 1),
            Entered::New => {}
            Entered::Widened(ranges) => self.give_places(tree, ranges - 1),
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
            self.give_places(tree, 1);
            self.let_pass(transaction);
        }
    }

    /// Says whether the transaction still waits before it reads a range, if there is one.
    pub(super) fn set_pending(
        &mut self,
        transaction: TransactionId,
        range: Option<LockedKeys<'_>>,
        is_pending: bool,
    ) {
        if let Some(locked) = range
            && self.ranges.set_pending(transaction, locked, is_pending)
            && is_pending
        {
            self.let_pass(transaction);
        }
    }

    /// Lets transactions look again that wait for a range, or for locks, of this one.
    fn let_pass(&mut self, transaction: TransactionId) {
        self.let_look_again(&[Wait::Range(transaction), Wait::Locks(transaction)]);
    }

    /// Those that wait for one of these wait no longer, until they say so again.
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
        // An owner that waits before it reads its range may wait for this transaction.
        let lets_pass = |owner| wanted.has_changed_tree || self.reaches(owner, transaction);
        let mut owners = self
            .ranges
            .owners_against_change(transaction, wanted, lets_pass);
        if let Some(owner) = owners.next() {
            return Some(Blocker::Range(owner.clone()));
        }
        let queue = self.queues.get(&LockName::row(wanted.tree, wanted.key))?;
        let holds_it = queue.held_mode(transaction).is_some();
        let is_blocked = queue.is_held_against(Party {
            transaction,
            mode: LockMode::Exclusive,
        }) || (!holds_it && !queue.waiting().is_empty());
        is_blocked.then_some(Blocker::Lock)
    }

    /// Whether the transaction, which sleeps, is the victim of a deadlock.
    pub(super) fn is_victim(&self, transaction: TransactionId) -> bool {
        let owner = self.owners.get(&transaction);
        owner.is_some_and(|owner| owner.is_victim)
    }

    /// The transaction's wait closes a cycle. Makes another one in it the victim: one that has done less, and without
    /// which there is no cycle. False if there is none.
    pub(super) fn choose_other_victim(&mut self, transaction: TransactionId) -> bool {
        let work_of = |id: TransactionId| self.owners.get(&id).map_or(0, |owner| owner.work);
        let own_work = work_of(transaction);
        let cycle = self.shortest_cycle(transaction);
        // For each of them, the one before it in the cycle.
        let before = cycle.iter().skip(1).copied().chain([transaction]);
        let pairs = cycle.iter().copied().zip(before);
        let mut lighter: Vec<(usize, TransactionId)> = pairs
            .filter(|&(other, before)| !self.waits_for_place_of(before, other))
            .map(|(other, _)| (work_of(other), other))
            .filter(|(work, _)| *work < own_work)
            .collect();
        lighter.sort_unstable();
        for (_, other) in lighter {
            self.set_victim(other, true);
            if !self.closes_cycle(transaction) {
                self.wake(other);
                return true;
            }
            self.set_victim(other, false);
        }
        false
    }

    /// Whether a transaction stands behind another that is only the next in a queue: it would be the next without it.
    fn waits_for_place_of(&self, transaction: TransactionId, other: TransactionId) -> bool {
        let wait = self
            .owners
            .get(&transaction)
            .and_then(|owner| owner.wait.as_ref());
        let place = self
            .owners
            .get(&other)
            .and_then(|owner| owner.place.as_ref());
        matches!((wait, place), (Some(Wait::Lock(name)), Some(place)) if name == place)
    }

    fn set_victim(&mut self, transaction: TransactionId, is_victim: bool) {
        if let Some(owner) = self.owners.get_mut(&transaction) {
            owner.is_victim = is_victim;
        }
    }

    /// Whether a transaction wakes up to stop waiting.
    fn is_leaving(&self, transaction: TransactionId) -> bool {
        let owner = self.owners.get(&transaction);
        owner.is_some_and(|owner| owner.gives_up || owner.is_victim)
    }

    /// Whether the transaction has said that it waits, and was not told to look again.
    pub(super) fn waits(&self, transaction: TransactionId) -> bool {
        let owner = self.owners.get(&transaction);
        owner.is_some_and(|owner| owner.wait.is_some())
    }

    /// Whether what the transaction waits for waits, in the end, for the transaction.
    pub(super) fn closes_cycle(&self, transaction: TransactionId) -> bool {
        self.reaches(transaction, transaction)
    }

    /// The owners of ranges that conflict with what a transaction wants. Not owners of pending ranges: these let
    /// transactions pass that their owners wait for, so they are in no cycle.
    fn owners_against(&self, transaction: TransactionId, wanted: &WantedKey) -> Vec<TransactionId> {
        let WantedKey { tree, key, .. } = wanted;
        let ids = |owner: &Arc<StatusCell>| owner.id();
        match wanted.purpose {
            Purpose::Lock(mode) => {
                let ranges = &self.ranges;
                let owners = ranges.owners_against_lock(transaction, *tree, key, mode, |_| true);
                owners.map(ids).collect()
            }
            Purpose::Change { is_insert } => {
                let change = WantedChange {
                    tree: *tree,
                    key,
                    is_insert,
                    has_changed_tree: false,
                };
                let ranges = &self.ranges;
                let owners = ranges.owners_against_change(transaction, change, |_| true);
                owners.map(ids).collect()
            }
        }
    }

    /// The transaction has ended: its locks go.
    pub(super) fn release_all(&mut self, transaction: TransactionId) {
        let Some(mut owner) = self.owners.remove(&transaction) else {
            return;
        };
        for name in std::mem::take(&mut owner.locks) {
            self.give_places_of(&name);
            self.leave_queue(transaction, name);
        }
        for tree in owner.ranges {
            let left = self.ranges.leave_tree(transaction, tree);
            self.give_places(tree, left);
        }
    }

    /// Wakes all that wait for the end of the transaction.
    pub(super) fn wake_awaiting(&self, transaction: TransactionId) {
        for owner in self.owners.values() {
            let awaited = owner.wait.as_ref().and_then(Wait::transaction);
            if awaited == Some(transaction) {
                owner.wakeup.notify_all();
            }
        }
    }
}
