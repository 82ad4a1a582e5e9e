//! Row locks: which transaction waits for which.
//!
//! Most rows that are changed are never entered here. The uncommitted version of a row is its writer's lock: the next
//! writer of the row finds it on the leaf, under the leaf's latch. Explicit locks are for waiters, so that they are
//! served in the order in which they came. They are also for locking reads, which lock without changing anything.
//!
//! ```text
//!   T1 changes k          version (k, T1, before ..) on the leaf                              nothing here
//!   T2 wants k            finds T1's version: locks (k) exclusively, waits for T1's end       (k): T2
//!   T3 wants k            finds the same: queues behind T2                                    (k): T2 | T3
//!   T1 commits            T2 wakes, changes k, commits                                        (k): T3
//! ```
//!
//! | lock | excludes | waits |
//! |---|---|---|
//! | *row* (tree, key), shared or exclusive | other locks of the row, and changes of it | in a fair queue |
//! | *prefix* (tree, prefix), exclusive | another check whether the prefix is unique | in a fair queue |
//! | *reference* (tree, prefix), shared by children, exclusive for the parent | a foreign key's check from the other side | in a fair queue |
//! | *range* (tree, range of keys) | inserts, all changes, or also locks, of others in the range | never; the others wait |
//!
//! A **range** takes the place of gap locks and next-key locks. It is named by its bounds and not by the entry that
//! follows the gap, so it does not depend on which entries exist. Purges, splits and merges have nothing to pass on,
//! and the range covers what was searched and no more. An insert that meets a range of another transaction waits for
//! the end of the range's owner.
//!
//! To lock a range, a transaction enters it and looks at the leaves. It waits for transactions with uncommitted changes
//! there, and for holders of locks there that the range excludes. Meanwhile the range is *pending*: newcomers queue
//! behind it with conflicting changes and locks, so that its owner is not starved. Exempt are transactions that the
//! owner itself waits for, and further changes by transactions that have changed this tree before.
//!
//! **No conflict is missed.** A writer, holding the leaf's exclusive latch, looks for locks and then makes its version.
//! A transaction that locks a row enters the lock first and then looks at the leaf. Whichever of the two comes second
//! sees the other. (The counter that lets writers pass by trees without locks is read after a full fence, and raised
//! before one.) The same holds for a transaction that rolls changes back and goes on. Before a waiter looks at the leaf
//! for a writer, it reads a counter of such rollbacks. A transaction that rolls changes back increments it and then
//! wakes those that wait for it. So a waiter sleeps only while the version that it has found is there.
//!
//! **Deadlocks** are looked for when a wait starts, because only then can a cycle close. The search starts from the
//! transaction that begins to wait and follows the waits of each transaction that it meets. If it comes back to the
//! start, this transaction is the victim, unless another one in the cycle has done less. Then that one is woken
//! instead, and this one sleeps. The victim gets [`StorageError::Deadlock`] and must be rolled back as a whole. So the
//! transaction that has done most gets through, however many want the same rows. If the victim were always the one that
//! closes the cycle, it would mostly be one that has come far. No page latch is held while waiting.
//!
//! A transaction that locks a range waits for others' locks, and for waiters that came before it, only out of courtesy:
//! nothing that it reads depends on them. Where such a wait is a part of a cycle, the wait ends, and the cycle with it.
//! There is no deadlock either if a transaction in the cycle was told to stop and has not noticed (the statement was
//! killed, the client is gone). Therefore those in the cycle are asked first.
//!
//! All explicit locks are in one table behind one mutex, held for some map operations at a time. If it were contended,
//! the queues could be divided by key; the graph of waits stays one.

mod lock_table;
mod range_table;
mod wait_counters;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::counters::LockWaits;
use crate::error::{Result, StorageError};
use crate::key_range::KeyRange;
use crate::page::TreeId;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{self, Mutex, MutexGuard};
use crate::transaction::lock_wait::count_lock_wait;
pub(crate) use crate::transaction::row_lock::lock_table::ESCALATION_ROWS;
pub use crate::transaction::row_lock::lock_table::LOCK_BYTES;
pub use crate::transaction::row_lock::lock_table::shown::{ShownLock, ShownLocks, ShownTarget};
use crate::transaction::row_lock::lock_table::{LockTable, Purpose, Request, Wait, WantedKey};
use crate::transaction::row_lock::range_table::Entered;
pub(crate) use crate::transaction::row_lock::range_table::WantedChange;
use crate::transaction::row_lock::wait_counters::WaitCounters;
use crate::transaction::snapshot::StatusCell;

/// Whether others may hold the lock too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockMode {
    /// Beside other shared locks.
    Shared,
    /// Alone.
    Exclusive,
}

/// What to do when a lock is not free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    /// Fail at once with [`StorageError::LockNotAvailable`] (NOWAIT; SKIP LOCKED goes on with the next row).
    No,
    /// Wait, and fail after this time with [`StorageError::LockWaitTimeout`].
    AtMost(Duration),
}

/// What others may not do in a locked range. Each also excludes what those before it do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RangeLock {
    /// Insert: the gaps of next-key locks.
    NoInserts,
    /// Insert, update, delete, lock rows exclusively: a serializable read.
    NoChanges,
    /// Lock rows in any way: what exclusive locks of many rows become.
    NoLocks,
}

/// Whether a wait shall end without the lock. Asked some times a second while a transaction waits, by the thread that
/// waits; by other threads, too, when the transaction is a part of a deadlock.
pub type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

/// How a transaction waits.
#[derive(Clone)]
pub(crate) struct Patience {
    pub(crate) wait: LockWait,
    pub(crate) interrupt: Option<Interrupt>,
    /// What it has changed and locked. Of a cycle, the one with the least is the victim.
    pub(crate) work: usize,
}

impl From<LockWait> for Patience {
    fn from(wait: LockWait) -> Patience {
        Patience {
            wait,
            interrupt: None,
            work: 0,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum LockKind {
    Row,
    Prefix,
    Reference,
}

/// What a lock is on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LockName {
    tree: TreeId,
    /// The kind, then the key. The table of locks has them twice for each lock. Most are as short as this, and then a
    /// lock allocates nothing for them.
    kind_and_key: SmallVec<[u8; 16]>,
}

impl LockName {
    fn new(tree: TreeId, kind: LockKind, key: &[u8]) -> LockName {
        let mut kind_and_key = SmallVec::with_capacity(1 + key.len());
        kind_and_key.push(kind as u8);
        kind_and_key.extend_from_slice(key);
        LockName { tree, kind_and_key }
    }

    pub(crate) fn row(tree: TreeId, key: &[u8]) -> LockName {
        LockName::new(tree, LockKind::Row, key)
    }

    /// All keys with this prefix, against other transactions that lock the prefix.
    pub(crate) fn prefix(tree: TreeId, prefix: &[u8]) -> LockName {
        LockName::new(tree, LockKind::Prefix, prefix)
    }

    /// What refers to the keys with this prefix, as far as foreign keys are concerned.
    pub(crate) fn reference(tree: TreeId, prefix: &[u8]) -> LockName {
        LockName::new(tree, LockKind::Reference, prefix)
    }

    /// Not after any row of the tree.
    fn first_row(tree: TreeId) -> LockName {
        LockName::row(tree, &[])
    }

    fn is_row(&self) -> bool {
        self.kind_and_key[0] == LockKind::Row as u8
    }

    fn is_row_of(&self, tree: TreeId) -> bool {
        self.tree == tree && self.is_row()
    }

    fn key(&self) -> &[u8] {
        &self.kind_and_key[1..]
    }
}

/// What keeps a writer from changing a row.
#[derive(Debug)]
pub(crate) enum Blocker {
    /// A lock of the row, or a waiter for one: queue.
    Lock,
    /// A range of this transaction: wait for its end.
    Range(Arc<StatusCell>),
}

/// Keys that are locked.
#[derive(Clone, Copy)]
pub(crate) struct LockedKeys<'r> {
    pub(crate) tree: TreeId,
    pub(crate) range: &'r KeyRange,
    pub(crate) kind: RangeLock,
}

/// What the leaves say about a range.
pub(crate) enum RangeState<T> {
    /// There is no change there that is not settled.
    Settled(T),
    ChangedBy(Arc<StatusCell>),
}

/// When the leaves were looked at: before or after others have rolled changes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Look(u64);

/// How long a transaction waits for a lock unless it is told otherwise.
pub(crate) const DEFAULT_LOCK_WAIT: LockWait = LockWait::AtMost(Duration::from_secs(50));

/// While a transaction waits, it is asked this often whether it shall stop waiting, even if nothing has roused it: its
/// client may be gone.
const INTERRUPT_POLL: Duration = Duration::from_millis(50);

/// Counters that tell writers whether a tree has locks; trees share them by number.
const TREE_COUNTERS: usize = 64;

/// How many row and range locks there are in each tree, as nearly as [`TREE_COUNTERS`] allow.
struct TreeCounters([AtomicUsize; TREE_COUNTERS]);

impl TreeCounters {
    fn counter(&self, tree: TreeId) -> &AtomicUsize {
        &self.0[tree.0 as usize % TREE_COUNTERS]
    }

    fn add(&self, tree: TreeId) {
        self.counter(tree).fetch_add(1, Ordering::Relaxed);
    }

    fn subtract(&self, tree: TreeId, locks: usize) {
        self.counter(tree).fetch_sub(locks, Ordering::Relaxed);
    }

    fn is_zero(&self, tree: TreeId) -> bool {
        self.counter(tree).load(Ordering::Relaxed) == 0
    }
}

/// All explicit locks.
pub(crate) struct RowLocks {
    table: Mutex<LockTable>,
    counters: Arc<TreeCounters>,
    /// Transactions that wait, or are about to wait, for the end of another.
    awaiting_end: AtomicUsize,
    /// How often transactions have rolled changes back and gone on.
    taken_back: AtomicU64,
    waits: WaitCounters,
    interrupt_poll: Duration,
}

/// A lock that a transaction has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Locked {
    /// It did not have the lock in any mode before.
    pub(crate) is_new: bool,
    /// Others had it first, or had changed the row, and what they did may be committed now. Not if a range was in the
    /// way whose owner has let pass: a statement that began again for that would have the owner look again, too, and
    /// find its range in the way again.
    pub(crate) has_waited: bool,
}

/// One wait for something, in as many parts as it takes: they have one end together, which is set when the first of
/// them begins.
struct Waiting<'p> {
    patience: &'p Patience,
    until_ns: Cell<Option<u64>>,
    /// See [`Locked::has_waited`].
    for_others: Cell<bool>,
}

impl<'p> From<&'p Patience> for Waiting<'p> {
    fn from(patience: &'p Patience) -> Waiting<'p> {
        Waiting {
            patience,
            until_ns: Cell::new(None),
            for_others: Cell::new(false),
        }
    }
}

impl Waiting<'_> {
    /// Time that is left of a wait that may take so long.
    fn left(&self, limit: Duration) -> Duration {
        let now_ns = sync::monotonic_ns();
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = self
            .until_ns
            .get()
            .unwrap_or(now_ns.saturating_add(limit_ns));
        self.until_ns.set(Some(until_ns));
        Duration::from_nanos(until_ns.saturating_sub(now_ns))
    }

    fn has_begun(&self) -> bool {
        self.until_ns.get().is_some()
    }

    /// A part of the wait is over, in which others have come to an end.
    fn note_others(&self) {
        self.for_others
            .set(self.for_others.get() || self.has_begun());
    }
}

impl RowLocks {
    /// No locks yet, and never more than `limit`.
    pub(crate) fn new(limit: usize) -> RowLocks {
        let counters = Arc::new(TreeCounters(std::array::from_fn(|_| AtomicUsize::new(0))));
        RowLocks {
            table: Mutex::new(LockTable::new(limit, counters.clone())),
            counters,
            awaiting_end: AtomicUsize::new(0),
            taken_back: AtomicU64::new(0),
            waits: WaitCounters::default(),
            interrupt_poll: INTERRUPT_POLL,
        }
    }

    /// A caller has been told to stop: all waiters ask now whether they are meant.
    pub(crate) fn wake_all(&self) {
        self.table.lock().wake_all();
    }

    /// How transactions have waited for locks.
    pub(crate) fn waits(&self) -> LockWaits {
        self.waits.get()
    }

    /// Explicit locks held or waited for.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().count()
    }

    /// At most so many locks, and which keeps whom waiting.
    pub(crate) fn shown(&self, limit: usize) -> ShownLocks {
        self.table.lock().shown(limit)
    }

    /// Locks for `own`, which holds no page latch. True if it did not have the lock in any mode before.
    ///
    /// # Errors
    /// `Deadlock`, `LockWaitTimeout`, `LockNotAvailable`, `LockWaitInterrupted`; `TooManyLocks`.
    pub(crate) fn lock(
        &self,
        own: &Arc<StatusCell>,
        name: &LockName,
        mode: LockMode,
        patience: &Patience,
    ) -> Result<bool> {
        self.lock_within(own, name, mode, &patience.into())
    }

    fn lock_within(
        &self,
        own: &Arc<StatusCell>,
        name: &LockName,
        mode: LockMode,
        waiting: &Waiting<'_>,
    ) -> Result<bool> {
        let mut table = self.table.lock();
        while let Some(owner) = table.range_against_lock(own.id(), name, mode) {
            let wanted = WantedKey {
                by: own.clone(),
                tree: name.tree,
                key: name.key().to_vec(),
                purpose: Purpose::Lock(mode),
            };
            table = self.wait_for_range(table, wanted, &owner, waiting)?;
        }
        let result = match table.request(own.id(), name, mode) {
            Ok((Request::Granted, is_new)) => Ok(is_new),
            Ok((Request::Queued, is_new)) => {
                let granted = |table: &LockTable| table.holds(own.id(), name, mode);
                let (returned, result) = self.wait(table, own, waiting, granted);
                waiting.note_others();
                table = returned;
                if result.is_err() {
                    table.withdraw(own.id(), name);
                }
                result.map(|()| is_new)
            }
            Err(error) => Err(error),
        };
        drop(table);
        // Before the leaf is looked at: see the module's comment.
        fence(Ordering::SeqCst);
        result
    }

    /// Puts a lock of the whole tree in the place of the rows that `own` has locked there. There are three conditions:
    /// the rows are many, no other transaction has locked any of what the lock excludes, and `has_writers` says that
    /// none has changed any of it. True if it has. (A writer that is missed, because it comes at the same time, makes a
    /// deadlock more likely and nothing worse: a transaction that has locked the tree looks at each row for writers as
    /// well.)
    pub(crate) fn escalate(
        &self,
        own: &Arc<StatusCell>,
        tree: TreeId,
        has_writers: impl FnOnce() -> bool,
    ) -> bool {
        let is_free = self.table.lock().may_escalate(own.id(), tree).is_some();
        is_free && !has_writers() && self.table.lock().escalate(own, tree)
    }

    /// As [`lock`](Self::lock), exclusively or not, after the end of the transactions that have changed the row. Once
    /// the lock is held, `changed_by` is asked for them until there is none. The lock is a place in the queue
    /// meanwhile. If waiting fails, nothing is locked that was not before.
    ///
    /// # Errors
    /// As [`lock`](Self::lock), and those of `changed_by`.
    pub(crate) fn lock_newest(
        &self,
        own: &Arc<StatusCell>,
        name: &LockName,
        mode: LockMode,
        patience: &Patience,
        mut changed_by: impl FnMut() -> Result<Option<Arc<StatusCell>>>,
    ) -> Result<Locked> {
        let waiting = &Waiting::from(patience);
        let is_new = self.lock_within(own, name, mode, waiting)?;
        let mut wait_for_writers = || {
            loop {
                let look = self.before_look();
                match changed_by()? {
                    Some(writer) => {
                        let place = is_new.then(|| name.clone());
                        self.wait_for_writer(own, &writer, look, place, waiting)?;
                        waiting.note_others();
                    }
                    None => {
                        let has_waited = waiting.for_others.get();
                        return Ok(Locked { is_new, has_waited });
                    }
                }
            }
        };
        let result = wait_for_writers();
        if result.is_err() && is_new {
            self.unlock(own, name);
        }
        result
    }

    /// Releases one lock before the transaction ends.
    pub(crate) fn unlock(&self, own: &StatusCell, name: &LockName) {
        let mut table = self.table.lock();
        if !table.is_new(own.id(), name) {
            table.release(own.id(), name);
            table.let_readers_look_again(own.id());
        }
    }

    /// Keeps others from doing in a range what `kind` says, until `own` ends. `changed_by` is asked which transaction
    /// has changed something there already, until there is none. These are waited for, and so are transactions that
    /// have locked something there that `kind` excludes. If that fails, nothing is locked that was not before.
    ///
    /// # Errors
    /// As [`lock`](Self::lock), and those of `changed_by`.
    pub(crate) fn lock_range<T>(
        &self,
        own: &Arc<StatusCell>,
        locked: LockedKeys<'_>,
        patience: &Patience,
        mut changed_by: impl FnMut() -> Result<RangeState<T>>,
    ) -> Result<T> {
        let LockedKeys { tree, range, kind } = locked;
        let waiting = &patience.into();
        let entered = self.wait_behind_others(own, locked, waiting)?.enter_range(
            own,
            tree,
            range.clone(),
            kind,
        )?;
        // A range that became a part of another keeps what was read of that.
        let pending = (entered == Entered::New).then_some(locked);
        let mut wait_for_others = || {
            loop {
                let look = self.before_look();
                let writer = match changed_by()? {
                    RangeState::ChangedBy(writer) => writer,
                    RangeState::Settled(state) => {
                        let has_waited = entered != Entered::Known
                            && self.wait_for_locks(own, locked, pending, waiting)?;
                        match has_waited {
                            true => continue,
                            false => return Ok(state),
                        }
                    }
                };
                self.wait_for_end_within(own, &writer, look, pending, waiting)?;
            }
        };
        let result = wait_for_others();
        if result.is_err() && entered == Entered::New {
            let mut table = self.table.lock();
            table.leave_range(own.id(), tree, range, kind);
        }
        result
    }

    /// Lets transactions go first that already wait for a key of the range: else one reader after the other could keep
    /// a writer waiting for ever. Not if they wait for `own` (transitively), nor if `own` does not wait. A transaction
    /// that stops waiting has had its turn.
    fn wait_behind_others(
        &self,
        own: &Arc<StatusCell>,
        LockedKeys { tree, range, .. }: LockedKeys<'_>,
        waiting: &Waiting<'_>,
    ) -> Result<MutexGuard<'_, LockTable>> {
        let _awaiting = AwaitingEnd::announce(self);
        let mut table = self.table.lock();
        while waiting.patience.wait != LockWait::No
            && let Some(first) = table.waits_for_key_in(own.id(), tree, range)
        {
            table.set_wait(own.id(), Wait::Turn(first.id()));
            if table.closes_cycle(own.id()) {
                table.clear_wait(own.id());
                break;
            }
            let done = |table: &LockTable| !first.is_active() || !table.waits(own.id());
            let (returned, result) = self.wait(table, own, waiting, done);
            table = returned;
            table.clear_wait(own.id());
            result?;
        }
        Ok(table)
    }

    /// Waits for a transaction whose locks the range of `own` excludes, if there is one that does not wait for `own`
    /// (transitively): one that does only holds a place in a queue. True if it has waited; the caller looks again.
    fn wait_for_locks(
        &self,
        own: &Arc<StatusCell>,
        locked: LockedKeys<'_>,
        pending: Option<LockedKeys<'_>>,
        waiting: &Waiting<'_>,
    ) -> Result<bool> {
        let mut table = self.table.lock();
        let Some(holder) = table.excluded(own.id(), locked) else {
            return Ok(false);
        };
        table.set_pending(own.id(), pending, true);
        table.set_wait_for_locks(own.id(), holder);
        let done = |table: &LockTable| !table.waits(own.id()) || !table.is_known(holder);
        let (mut table, result) = self.wait(table, own, waiting, done);
        table.end_wait_for_locks(own.id());
        table.set_pending(own.id(), pending, false);
        result.map(|()| true)
    }

    /// What keeps `own` from a change. The caller holds the leaf's exclusive latch.
    #[inline]
    pub(crate) fn blocker(&self, own: &StatusCell, wanted: WantedChange<'_>) -> Option<Blocker> {
        fence(Ordering::SeqCst);
        if self.counters.is_zero(wanted.tree) {
            return None;
        }
        self.table.lock().blocker(own.id(), wanted)
    }

    /// Waits as long as the range of `owner` keeps `own` from a change.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub(crate) fn wait_to_change(
        &self,
        own: &Arc<StatusCell>,
        wanted: WantedChange<'_>,
        owner: &StatusCell,
        patience: &Patience,
    ) -> Result<()> {
        let table = self.table.lock();
        match table.blocker(own.id(), wanted) {
            Some(Blocker::Range(now)) if now.id() == owner.id() => {
                let wanted = WantedKey {
                    by: own.clone(),
                    tree: wanted.tree,
                    key: wanted.key.to_vec(),
                    purpose: Purpose::Change {
                        is_insert: wanted.is_insert,
                    },
                };
                self.wait_for_range(table, wanted, owner, &patience.into())
                    .map(drop)
            }
            // It has let pass meanwhile.
            _ => Ok(()),
        }
    }

    /// Waits until `owner` has ended, or has let those look again that wait for its ranges.
    fn wait_for_range<'t>(
        &'t self,
        mut table: MutexGuard<'t, LockTable>,
        wanted: WantedKey,
        owner: &StatusCell,
        waiting: &Waiting<'_>,
    ) -> Result<MutexGuard<'t, LockTable>> {
        // An owner that has ended is about to take its ranges out, which needs the table.
        if !owner.is_active() {
            drop(table);
            sync::thread::yield_now();
            return Ok(self.table.lock());
        }
        let own = &wanted.by.clone();
        table.set_wait_for_key(wanted, owner.id());
        let done = |table: &LockTable| !owner.is_active() || !table.waits(own.id());
        let (mut table, result) = self.wait(table, own, waiting, done);
        table.clear_wait(own.id());
        if !owner.is_active() {
            waiting.note_others();
        }
        if result.is_err() {
            table.let_look_again(&[Wait::Turn(own.id())]);
        }
        result.map(|()| table)
    }

    /// To be called before the leaves are searched for changes of others: see the module's comment.
    pub(crate) fn before_look(&self) -> Look {
        let look = Look(self.taken_back.load(Ordering::SeqCst));
        fence(Ordering::SeqCst);
        look
    }

    /// Waits until `other`, whose change a look at the leaves has found, has ended, or has rolled changes back. The
    /// caller looks again.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub(crate) fn wait_for_end(
        &self,
        own: &StatusCell,
        other: &StatusCell,
        look: Look,
        patience: &Patience,
    ) -> Result<()> {
        self.wait_for_end_within(own, other, look, None, &patience.into())
    }

    /// `pending`: a range of `own`, which has not been read.
    fn wait_for_end_within(
        &self,
        own: &StatusCell,
        other: &StatusCell,
        look: Look,
        pending: Option<LockedKeys<'_>>,
        waiting: &Waiting<'_>,
    ) -> Result<()> {
        let _awaiting = AwaitingEnd::announce(self);
        let mut table = self.table.lock();
        if !other.is_active() || self.before_look() != look {
            return Ok(());
        }
        table.set_pending(own.id(), pending, true);
        table.set_wait(own.id(), Wait::End(other.id()));
        let done = |table: &LockTable| !other.is_active() || !table.waits(own.id());
        let (mut table, result) = self.wait(table, own, waiting, done);
        table.clear_wait(own.id());
        table.set_pending(own.id(), pending, false);
        result
    }

    /// As [`wait_for_end_within`](Self::wait_for_end_within), with a lock that is a place in the queue until then.
    fn wait_for_writer(
        &self,
        own: &StatusCell,
        writer: &StatusCell,
        look: Look,
        place: Option<LockName>,
        waiting: &Waiting<'_>,
    ) -> Result<()> {
        let _awaiting = AwaitingEnd::announce(self);
        let mut table = self.table.lock();
        if !writer.is_active() || self.before_look() != look {
            return Ok(());
        }
        table.set_wait_in_place(own.id(), writer.id(), place);
        let done = |table: &LockTable| !writer.is_active() || !table.waits(own.id());
        let (mut table, result) = self.wait(table, own, waiting, done);
        table.clear_wait(own.id());
        result
    }

    /// The transaction has rolled changes back and goes on: those that wait for its end look again. They would
    /// otherwise hold places in queues in which the transaction stands behind them when it comes again.
    pub(crate) fn changes_taken_back(&self, own: &StatusCell) {
        self.taken_back.fetch_add(1, Ordering::SeqCst);
        if self.awaiting_end.load(Ordering::SeqCst) > 0 {
            let mut table = self.table.lock();
            table.let_look_again(&[Wait::End(own.id()), Wait::Turn(own.id())]);
        }
    }

    /// The transaction has ended, and its status says so: its locks go, and those that wait for it wake up.
    /// `has_locks`: whether it ever asked for anything here.
    #[inline]
    pub(crate) fn release_all(&self, own: &StatusCell, has_locks: bool) {
        debug_assert!(!own.is_active());
        if has_locks || self.awaiting_end.load(Ordering::SeqCst) > 0 {
            let mut table = self.table.lock();
            table.release_all(own.id());
            table.wake_awaiting(own.id());
        }
    }

    /// The transaction can neither go on nor end: its locks go nevertheless.
    pub(crate) fn give_all_back(&self, own: &StatusCell) {
        let mut table = self.table.lock();
        table.release_all(own.id());
        table.let_look_again(&[
            Wait::Range(own.id()),
            Wait::Turn(own.id()),
            Wait::Locks(own.id()),
        ]);
    }

    /// Waits until `done`, after the table says what `own` waits for.
    fn wait<'t>(
        &'t self,
        mut table: MutexGuard<'t, LockTable>,
        own: &StatusCell,
        waiting: &Waiting<'_>,
        done: impl Fn(&LockTable) -> bool,
    ) -> (MutexGuard<'t, LockTable>, Result<()>) {
        let limit = match waiting.patience.wait {
            LockWait::No => return (table, Err(StorageError::LockNotAvailable)),
            LockWait::AtMost(limit) => limit,
        };
        let Patience {
            interrupt, work, ..
        } = waiting.patience;
        table.begin_sleep(own.id(), interrupt, *work);
        let (mut table, result) = match self.find_deadlock(table, own, interrupt) {
            (table, Some(error)) => {
                self.count_if_deadlock(&error);
                (table, Err(error))
            }
            (table, None) => {
                // Others that wait for memory may go on now. They are told without the table.
                drop(table);
                sheaf_memory::waits_for_lock();
                self.waits.begin(waiting.has_begun());
                let began_ns = sync::monotonic_ns();
                let slept = self.sleep(self.table.lock(), own, waiting, limit, done);
                let slept_ns = sync::monotonic_ns().saturating_sub(began_ns);
                self.waits.end(slept_ns);
                count_lock_wait(slept_ns);
                if let Err(error) = &slept.1 {
                    self.count_if_deadlock(error);
                }
                slept
            }
        };
        table.end_sleep(own.id());
        (table, result)
    }

    fn count_if_deadlock(&self, error: &StorageError) {
        if matches!(error, StorageError::Deadlock) {
            self.waits.count_deadlock();
        }
    }

    /// Why `own` shall not wait. Its wait is a part of a cycle in which no other is about to stop waiting, and `own` is
    /// to be its victim. Or `own` is about to stop waiting itself, in such a cycle, which is no reason for another one
    /// to be the victim.
    fn find_deadlock<'t>(
        &'t self,
        mut table: MutexGuard<'t, LockTable>,
        own: &StatusCell,
        interrupt: &Option<Interrupt>,
    ) -> (MutexGuard<'t, LockTable>, Option<StorageError>) {
        let mut asked = BTreeSet::new();
        loop {
            // A transaction that waits only out of courtesy blocks no other.
            let is_cycle = table.closes_cycle(own.id())
                && (!table.end_courtesies(own.id()) || table.closes_cycle(own.id()));
            if !is_cycle {
                return (table, None);
            }
            let mut others = table.interrupts_in_cycle(own.id());
            // While the table was not held, others may have come into a cycle.
            others.retain(|(other, _)| asked.insert(*other));
            let is_first = asked.insert(own.id());
            if !is_first && others.is_empty() {
                let is_victim = !table.choose_other_victim(own.id());
                return (table, is_victim.then_some(StorageError::Deadlock));
            }
            // Asked without the table: it may take a while.
            drop(table);
            let gives_up = is_first && interrupt.as_ref().is_some_and(|interrupt| interrupt());
            others.retain(|(_, interrupt)| interrupt());
            table = self.table.lock();
            if gives_up {
                return (table, Some(StorageError::LockWaitInterrupted));
            }
            for (other, _) in others {
                table.give_up(other);
            }
        }
    }

    /// Sleeps until `done`, the limit, or an interrupt.
    fn sleep<'t>(
        &'t self,
        mut table: MutexGuard<'t, LockTable>,
        own: &StatusCell,
        waiting: &Waiting<'_>,
        limit: Duration,
        done: impl Fn(&LockTable) -> bool,
    ) -> (MutexGuard<'t, LockTable>, Result<()>) {
        let wakeup = table.wakeup(own.id());
        while !done(&table) {
            if table.gives_up(own.id()) {
                return (table, Err(StorageError::LockWaitInterrupted));
            }
            if table.is_victim(own.id()) {
                return (table, Err(StorageError::Deadlock));
            }
            let left = waiting.left(limit);
            if left.is_zero() {
                return (table, Err(StorageError::LockWaitTimeout));
            }
            let Some(interrupt) = &waiting.patience.interrupt else {
                table = wakeup.wait_timeout(table, left);
                continue;
            };
            if !table.take_rousing(own.id()) {
                table = wakeup.wait_timeout(table, left.min(self.interrupt_poll));
            }
            if !done(&table) {
                // Asked without the table: it may take a while.
                drop(table);
                let is_interrupted = interrupt();
                table = self.table.lock();
                if is_interrupted && !done(&table) {
                    return (table, Err(StorageError::LockWaitInterrupted));
                }
            }
        }
        (table, Ok(()))
    }
}

/// Announces that a transaction waits for another's end, before it looks whether the other has ended.
struct AwaitingEnd<'l>(&'l RowLocks);

impl AwaitingEnd<'_> {
    fn announce(locks: &RowLocks) -> AwaitingEnd<'_> {
        locks.awaiting_end.fetch_add(1, Ordering::SeqCst);
        AwaitingEnd(locks)
    }
}

impl Drop for AwaitingEnd<'_> {
    fn drop(&mut self) {
        self.0.awaiting_end.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests;
