//! Which transaction waits for which, along a chain of waits. One walk over the table takes time that hardly grows
//! faster than what it meets.
//!
//! A queue of a popular row has thousands of waiting transactions, and each of them waits for all before it. So a walk
//! that comes to a queue writes down once where each of them stands, and follows a chain from there:
//!
//! ```text
//!   holders H1 H2 | waiting  X1  S2  S3  X4  S5            X exclusive, S shared
//!
//!   X1 -> H1, H2      S2 -> X1      S3 -> X1      X4 -> S3, S2, X1      S5 -> X4
//! ```
//!
//! A transaction that wants the lock alone waits for all before it. So what stands behind it leads to it and not to
//! what comes before it, and each place is told of once or twice. Transactions that are leaving (see
//! [`LockTable::is_leaving`]) wait for no other and will soon block no other, so no chain leads to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{LockTable, Party, Queue, Wait};
use crate::transaction::TransactionId;
use crate::transaction::row_lock::{LockMode, LockName};

/// Where the waiting transactions of a queue stand.
struct Places {
    /// By transaction, in the queue of waiting ones.
    place_of: BTreeMap<TransactionId, usize>,
    /// By place: the nearest one before it that wants the lock alone and is not leaving.
    alone_before: Vec<Option<usize>>,
    /// The holders were told of to one that wants the lock alone: all of them conflict with it.
    are_holders_told: bool,
}

/// Which holders a search leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holders {
    /// Those that no transaction before leads to: every edge that is left out has a chain in its place.
    Last,
    /// Each at the first chance: ways are as short as they can be.
    First,
}

/// A walk over a table that does not change meanwhile.
struct WaitSearch<'t> {
    table: &'t LockTable,
    holders: Holders,
    queues: BTreeMap<&'t LockName, Places>,
}

impl Places {
    fn new(queue: &Queue, table: &LockTable) -> Places {
        let mut places = Places {
            place_of: BTreeMap::new(),
            alone_before: Vec::with_capacity(queue.waiting().len()),
            are_holders_told: false,
        };
        let mut alone = None;
        for (place, party) in queue.waiting().iter().enumerate() {
            places.place_of.insert(party.transaction, place);
            places.alone_before.push(alone);
            if party.mode == LockMode::Exclusive && !table.is_leaving(party.transaction) {
                alone = Some(place);
            }
        }
        places
    }
}

impl<'t> WaitSearch<'t> {
    fn new(table: &'t LockTable, holders: Holders) -> WaitSearch<'t> {
        WaitSearch {
            table,
            holders,
            queues: BTreeMap::new(),
        }
    }

    /// Gives `tell` the transactions for which a transaction waits, without those that others of them lead to.
    fn next(&mut self, transaction: TransactionId, tell: &mut Vec<TransactionId>) {
        let table = self.table;
        let Some(owner) = table.owners.get(&transaction) else {
            return;
        };
        if table.is_leaving(transaction) {
            return;
        }
        match (&owner.wait, &owner.wanted) {
            (None, _) => {}
            // Where one range conflicts, others may, too.
            (Some(Wait::Range(first)), Some(wanted)) => {
                tell.extend(table.owners_against(transaction, wanted));
                tell.push(*first);
            }
            (Some(Wait::Lock(name)), _) => self.next_in_queue(transaction, name, tell),
            (Some(wait), _) => tell.extend(wait.transaction()),
        }
    }

    fn next_in_queue(
        &mut self,
        transaction: TransactionId,
        name: &'t LockName,
        tell: &mut Vec<TransactionId>,
    ) {
        let table = self.table;
        let Some(queue) = table.queues.get(name) else {
            return;
        };
        let places = self.queues.entry(name);
        let places = places.or_insert_with(|| Places::new(queue, table));
        let Some(&place) = places.place_of.get(&transaction) else {
            return;
        };
        let is_alone = queue.waiting()[place].mode == LockMode::Exclusive;
        let alone_before = places.alone_before[place];
        let tells_holders = match self.holders {
            Holders::Last => alone_before.is_none(),
            Holders::First => !places.are_holders_told,
        };
        if tells_holders {
            let holders = queue.holders.iter();
            let is_in_the_way = |other: &&Party| {
                other.transaction != transaction && (is_alone || other.mode == LockMode::Exclusive)
            };
            tell.extend(holders.filter(is_in_the_way).map(|other| other.transaction));
            // One that holds it, too, was not told of itself.
            places.are_holders_told |= is_alone && queue.held_mode(transaction).is_none();
        }
        if is_alone {
            let between = queue.waiting().range(alone_before.unwrap_or(0)..place);
            let between = between.map(|other| other.transaction);
            tell.extend(between.filter(|&other| !table.is_leaving(other)));
        } else {
            tell.extend(alone_before.map(|before| queue.waiting()[before].transaction));
        }
    }
}

impl LockTable {
    /// Whether a transaction waits for another in the end.
    pub(super) fn reaches(&self, from: TransactionId, to: TransactionId) -> bool {
        let mut search = WaitSearch::new(self, Holders::Last);
        let (mut found, mut ahead) = (BTreeSet::new(), Vec::new());
        search.next(from, &mut ahead);
        while let Some(next) = ahead.pop() {
            if next == to {
                return true;
            }
            if found.insert(next) {
                search.next(next, &mut ahead);
            }
        }
        false
    }

    /// All transactions for which a transaction waits (transitively), and the waits that the search has found: a
    /// waiter, and what it waits for.
    fn waits_from(
        &self,
        transaction: TransactionId,
    ) -> (BTreeSet<TransactionId>, Vec<(TransactionId, TransactionId)>) {
        let mut search = WaitSearch::new(self, Holders::Last);
        let (mut found, mut waits) = (BTreeSet::new(), Vec::new());
        let (mut ahead, mut told) = (vec![transaction], Vec::new());
        while let Some(at) = ahead.pop() {
            search.next(at, &mut told);
            for next in told.drain(..) {
                waits.push((at, next));
                if found.insert(next) && next != transaction {
                    ahead.push(next);
                }
            }
        }
        (found, waits)
    }

    /// All transactions for which a transaction waits (transitively).
    pub(in crate::transaction::row_lock) fn waited_for(
        &self,
        transaction: TransactionId,
    ) -> BTreeSet<TransactionId> {
        self.waits_from(transaction).0
    }

    /// The others in all cycles through a transaction: it waits for them in the end, and they for it.
    pub(in crate::transaction::row_lock) fn others_in_cycles(
        &self,
        transaction: TransactionId,
    ) -> BTreeSet<TransactionId> {
        let (_, waits) = self.waits_from(transaction);
        let mut waiters: BTreeMap<TransactionId, Vec<TransactionId>> = BTreeMap::new();
        for (waiter, other) in waits {
            waiters.entry(other).or_default().push(waiter);
        }
        let (mut found, mut ahead) = (BTreeSet::new(), vec![transaction]);
        while let Some(at) = ahead.pop() {
            for waiter in waiters.remove(&at).unwrap_or_default() {
                if found.insert(waiter) {
                    ahead.push(waiter);
                }
            }
        }
        found.remove(&transaction);
        found
    }

    /// The others in the shortest cycle through the transaction. Some may wait before it in a queue for a lock that one
    /// of them holds: the cycle that matters has only the holder.
    pub(in crate::transaction::row_lock) fn shortest_cycle(
        &self,
        transaction: TransactionId,
    ) -> Vec<TransactionId> {
        let mut search = WaitSearch::new(self, Holders::First);
        let mut found_from = BTreeMap::new();
        let (mut ahead, mut told) = (VecDeque::from([transaction]), Vec::new());
        while let Some(at) = ahead.pop_front() {
            search.next(at, &mut told);
            for next in told.drain(..) {
                if next == transaction {
                    let back = |other: &TransactionId| found_from.get(other).copied();
                    let path = std::iter::successors(Some(at), back);
                    return path.filter(|&other| other != transaction).collect();
                }
                found_from.entry(next).or_insert_with(|| {
                    ahead.push_back(next);
                    at
                });
            }
        }
        Vec::new()
    }

    /// Every wait for a lock, one by one: what the searches are tested against.
    #[cfg(all(test, not(feature = "simulation")))]
    pub(in crate::transaction::row_lock) fn all_waits(
        &self,
    ) -> Vec<(TransactionId, TransactionId)> {
        let mut waits = Vec::new();
        for queue in self.queues.values() {
            for (place, waiter) in queue.waiting().iter().enumerate() {
                let before = queue.holders.iter().chain(queue.waiting().range(..place));
                let in_the_way = before.filter(|other| {
                    other.transaction != waiter.transaction
                        && !super::are_compatible(other.mode, waiter.mode)
                });
                waits.extend(in_the_way.map(|other| (waiter.transaction, other.transaction)));
            }
        }
        waits
    }
}
