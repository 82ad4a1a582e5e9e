//! What other threads may know of a session, and do to it: SHOW PROCESSLIST, KILL, shutdown.
//!
//! A session belongs to one thread. Others have its handle, and everything in a handle may be used from any thread.
//!
//! | asked for | what happens |
//! |---|---|
//! | KILL QUERY, a limit of time | the flag of the running statement is set, and waits for locks are roused |
//! | KILL | the same, and the protocol floor closes the connection |
//! | the client has gone | a statement that waits looks at the socket, and stops waiting |
//!
//! Statements look at the flag between batches, before each row that they change, and every [`ROWS_PER_CANCEL_CHECK`]
//! rows that they lock.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sheaf_access::{CancelFlag, SessionCounters};
use sheaf_memory::StatementMemory;
use sheaf_optimizer::{PhysicalQuery, Reads};
use sheaf_storage::{ChangedRows, TransactionId};
use sheaf_table::AccountName;

use crate::error::Result;
use crate::events::local_sums::LocalSums;
use crate::session_parts::status::CommandCounters;
use crate::session_parts::workers::ActiveGroup;
use crate::variables::Variables;

/// The start of a statement's text that SHOW FULL PROCESSLIST keeps, in bytes.
const MAX_SHOWN_STATEMENT_BYTES: usize = 4 << 10;

/// How many rows a statement locks between two looks at the kill flag.
pub(crate) const ROWS_PER_CANCEL_CHECK: u64 = 1024;

/// The command of a session that waits for its client.
const IDLE: &str = "Sleep";

/// Ends the connection's wait for its next request.
type Disconnect = Box<dyn FnOnce() + Send>;

/// Tells whether the connection's client is still there. Called only by the thread that serves the connection.
type ClientProbe = Box<dyn Fn() -> bool + Send + Sync>;

/// Lets those that wait for locks ask whether they shall stop waiting.
type RouseWaiters = Box<dyn Fn() + Send + Sync>;

/// What a session is doing.
#[derive(Clone, Debug)]
pub struct Activity {
    pub user: String,
    pub host: String,
    pub database: Option<String>,
    /// `Sleep` or `Query`, as SHOW PROCESSLIST says.
    pub command: &'static str,
    /// A phase such as `executing` or `sorting index i_l_shipdate`.
    pub state: String,
    /// When the command began.
    pub since: Instant,
    /// The statement, or its start.
    pub statement: Option<String>,
}

/// Other threads' view of a session.
pub struct SessionHandle {
    id: u64,
    killed: AtomicBool,
    cancel: CancelFlag,
    /// What its running statement holds.
    memory: Arc<StatementMemory>,
    timed_out: AtomicBool,
    disconnect: Mutex<Option<Disconnect>>,
    client: OnceLock<ClientProbe>,
    rouse_waiters: OnceLock<RouseWaiters>,
    activity: Mutex<Activity>,
    /// What its statements are read and planned with.
    variables: Mutex<Option<Variables>>,
    /// It has one of the places of `max_connections`: its client has been authenticated.
    has_place: AtomicBool,
    /// The account that it counts as a connection of.
    account: Mutex<Option<AccountName>>,
    /// The plan that the session is running.
    plan: Mutex<Option<Arc<PhysicalQuery>>>,
    /// The number of its open transaction; 0: it has none.
    transaction: AtomicU64,
    /// When that began, microseconds since 1970 UTC.
    transaction_began: AtomicI64,
    /// What it changes.
    changed_rows: Mutex<Option<ChangedRows>>,
    /// The resource group that the session is in; `None`: the default one.
    group: Mutex<Option<Arc<ActiveGroup>>>,
    /// Grows when the group is assigned.
    group_version: AtomicU64,
    pub(crate) counters: Arc<SessionCounters>,
    pub(crate) commands: CommandCounters,
    /// What is counted of its statements.
    pub(crate) digests: Arc<LocalSums>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is valid after every statement, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionHandle {
    /// Counts how a statement reads its tables.
    pub(crate) fn count_reads(&self, reads: Reads) {
        let counters = &self.counters;
        counters.select_scan.add(reads.scans);
        counters.select_range.add(reads.ranges);
        counters.select_full_join.add(reads.full_joins);
        counters.select_full_range_join.add(reads.full_range_joins);
    }

    /// How the session's statements have read their tables.
    pub(crate) fn reads(&self) -> Reads {
        let counters = &self.counters;
        Reads {
            scans: counters.select_scan.get(),
            ranges: counters.select_range.get(),
            full_joins: counters.select_full_join.get(),
            full_range_joins: counters.select_full_range_join.get(),
        }
    }

    pub(crate) fn new(id: u64, user: &str, host: &str) -> SessionHandle {
        let cancel = CancelFlag::new();
        SessionHandle {
            id,
            killed: AtomicBool::new(false),
            memory: cancel.statement_memory(),
            cancel,
            timed_out: AtomicBool::new(false),
            disconnect: Mutex::new(None),
            client: OnceLock::new(),
            rouse_waiters: OnceLock::new(),
            activity: Mutex::new(Activity {
                user: user.to_string(),
                host: host.to_string(),
                database: None,
                command: IDLE,
                state: String::new(),
                since: Instant::now(),
                statement: None,
            }),
            variables: Mutex::new(None),
            has_place: AtomicBool::new(false),
            account: Mutex::new(None),
            plan: Mutex::new(None),
            transaction: AtomicU64::new(0),
            transaction_began: AtomicI64::new(0),
            changed_rows: Mutex::new(None),
            group: Mutex::new(None),
            group_version: AtomicU64::new(0),
            counters: Arc::new(SessionCounters::default()),
            commands: CommandCounters::default(),
            digests: Arc::default(),
        }
    }

    /// The connection id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The session shall end: its connection is to be closed.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// What ends the connection's wait for the next request when the session is killed: the protocol floor shuts
    /// the socket down here. Called at most once, from another thread, and at once if the session is dead already.
    pub fn on_kill(&self, disconnect: Disconnect) {
        *lock(&self.disconnect) = Some(disconnect);
        if self.is_killed() {
            self.disconnect();
        }
    }

    /// How a statement that waits learns that its client does not wait for the answer any more: the protocol floor
    /// looks at the socket here. Set once.
    pub fn on_waiting(&self, is_client_there: ClientProbe) {
        // A second probe could only look at the same socket.
        let _ = self.client.set(is_client_there);
    }

    /// How a statement that waits for a lock learns at once that it shall end: `rouse` is called each time that it is
    /// told to, from any thread. Set once.
    pub(crate) fn on_cancel(&self, rouse: RouseWaiters) {
        // A second one could only rouse the same waiters.
        let _ = self.rouse_waiters.set(rouse);
    }

    /// Whether a statement that waits for a lock shall stop waiting: it was killed, or its client is gone.
    pub(crate) fn should_stop_waiting(&self) -> bool {
        let is_client_gone = || self.client.get().is_some_and(|is_there| !is_there());
        self.cancel.is_cancelled() || is_client_gone()
    }

    fn disconnect(&self) {
        let disconnect = lock(&self.disconnect).take();
        if let Some(disconnect) = disconnect {
            disconnect();
        }
    }

    /// Ends the running statement with error 1317; the session goes on.
    pub fn cancel(&self) {
        self.cancel.cancel();
        if let Some(rouse) = self.rouse_waiters.get() {
            rouse();
        }
    }

    /// Ends the session: its statement and its connection.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        self.cancel();
        self.disconnect();
    }

    /// Ends the running statement because its time is over.
    pub(crate) fn time_out(&self) {
        self.timed_out.store(true, Ordering::Release);
        self.cancel();
    }

    pub(crate) fn is_timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Acquire)
    }

    pub fn cancel_flag(&self) -> &CancelFlag {
        &self.cancel
    }

    /// Looks now and then whether the statement is to end, while it locks one row after the other and waits for none.
    pub(crate) fn check_cancel_at(&self, row: usize) -> Result<()> {
        match (row as u64).is_multiple_of(ROWS_PER_CANCEL_CHECK) {
            true => Ok(self.cancel_flag().check()?),
            false => Ok(()),
        }
    }

    /// What the running statement holds by measurement.
    pub(crate) fn memory(&self) -> &Arc<StatementMemory> {
        &self.memory
    }

    pub fn activity(&self) -> Activity {
        let mut activity = lock(&self.activity).clone();
        if activity.command == IDLE {
            activity.statement = None;
        }
        if self.memory.is_waiting() {
            activity.state = "Waiting for query memory".to_string();
        }
        activity
    }

    /// Shows a plan to other sessions until the guard is dropped.
    pub(crate) fn show_plan(self: &Arc<Self>, plan: &Arc<PhysicalQuery>) -> ShownPlan {
        *lock(&self.plan) = Some(Arc::clone(plan));
        ShownPlan(Arc::clone(self))
    }

    /// The plan that the session is running, if it runs one.
    pub(crate) fn running_plan(&self) -> Option<Arc<PhysicalQuery>> {
        lock(&self.plan).clone()
    }

    /// Shows a transaction to other sessions until the guard is dropped.
    pub(crate) fn show_transaction(
        self: &Arc<Self>,
        transaction: TransactionId,
        changed_rows: ChangedRows,
        began_micros: i64,
    ) -> ShownTransaction {
        *lock(&self.changed_rows) = Some(changed_rows);
        self.transaction_began
            .store(began_micros, Ordering::Relaxed);
        self.transaction.store(transaction.0, Ordering::Release);
        ShownTransaction(Arc::clone(self))
    }

    /// The open transaction, and when it began.
    pub(crate) fn open_transaction(&self) -> Option<(TransactionId, i64)> {
        match self.transaction.load(Ordering::Acquire) {
            0 => None,
            number => {
                let began = self.transaction_began.load(Ordering::Relaxed);
                Some((TransactionId(number), began))
            }
        }
    }

    /// How many rows the open transaction has changed.
    pub(crate) fn changed_rows(&self) -> u64 {
        lock(&self.changed_rows)
            .as_ref()
            .map_or(0, ChangedRows::count)
    }

    /// Puts the session into a resource group, from its next statement on.
    pub(crate) fn assign_group(&self, group: Option<Arc<ActiveGroup>>) {
        let mut own = lock(&self.group);
        if own.is_none() && group.is_none() {
            return;
        }
        *own = group;
        self.group_version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn group(&self) -> Option<Arc<ActiveGroup>> {
        lock(&self.group).clone()
    }

    pub(crate) fn group_version(&self) -> u64 {
        self.group_version.load(Ordering::Acquire)
    }

    /// The group with its version.
    pub(crate) fn take_group(&self) -> (Option<Arc<ActiveGroup>>, u64) {
        let group = lock(&self.group);
        (group.clone(), self.group_version())
    }

    pub(crate) fn has_place(&self) -> bool {
        self.has_place.load(Ordering::Acquire)
    }

    /// Whether it counts as a connection of an account.
    pub(crate) fn is_of(&self, account: &AccountName) -> bool {
        lock(&self.account).as_ref() == Some(account)
    }

    /// The account that it counts as a connection of.
    pub(crate) fn account(&self) -> Option<AccountName> {
        lock(&self.account).clone()
    }

    pub(crate) fn rename_account(&self, old: &AccountName, new: &AccountName) {
        let mut account = lock(&self.account);
        if account.as_ref() == Some(old) {
            *account = Some(new.clone());
        }
    }

    /// It has a place now, as a connection of this account. False: it had one before.
    pub(crate) fn take_place(&self, account: Option<&AccountName>) -> bool {
        *lock(&self.account) = account.cloned();
        !self.has_place.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn set_user(&self, user: &str, host: &str) {
        let mut activity = lock(&self.activity);
        activity.user = user.to_string();
        activity.host = host.to_string();
    }

    pub(crate) fn set_database(&self, database: Option<&str>) {
        lock(&self.activity).database = database.map(str::to_string);
    }

    pub(crate) fn set_state(&self, state: &str) {
        let mut activity = lock(&self.activity);
        activity.state.clear();
        activity.state.push_str(state);
    }

    /// A statement starts: an earlier KILL QUERY that found none running does not end this one.
    pub(crate) fn begin_statement(&self, text: &str) {
        self.timed_out.store(false, Ordering::Release);
        self.memory.begin();
        if !self.is_killed() {
            self.cancel.reset();
        }
        let mut end = text.len().min(MAX_SHOWN_STATEMENT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut activity = lock(&self.activity);
        activity.command = "Query";
        activity.state.clear();
        activity.state.push_str("executing");
        activity.since = Instant::now();
        // The text of the statement before is not shown any more; its memory serves again.
        let statement = activity.statement.get_or_insert_default();
        statement.clear();
        statement.push_str(&text[..end]);
    }

    /// The connection does something else than statements from now on, until it ends.
    pub(crate) fn begin_command(&self, command: &'static str, state: &str) {
        let mut activity = lock(&self.activity);
        activity.command = command;
        activity.state.clear();
        activity.state.push_str(state);
        activity.since = Instant::now();
        activity.statement = None;
    }

    /// The text of the running statement, if others know all of it.
    pub(crate) fn whole_statement(&self) -> Option<String> {
        let activity = lock(&self.activity);
        let text = activity.statement.as_ref();
        // A character is not cut in two.
        let is_whole =
            |text: &&String| text.len() + char::MAX.len_utf8() <= MAX_SHOWN_STATEMENT_BYTES;
        text.filter(|_| activity.command != IDLE)
            .filter(is_whole)
            .cloned()
    }

    /// Tells others what the session's statements are read and planned with. They share its memory.
    pub(crate) fn tell_variables(&self, variables: &Variables) {
        *lock(&self.variables) = Some(variables.clone());
    }

    /// The session's variables, as it has told them last.
    pub(crate) fn told_variables(&self) -> Option<Variables> {
        lock(&self.variables).clone()
    }

    /// The start of the statement that runs, or ran last.
    pub(crate) fn last_statement(&self) -> String {
        lock(&self.activity).statement.clone().unwrap_or_default()
    }

    /// When the running statement began.
    pub(crate) fn statement_began(&self) -> Instant {
        lock(&self.activity).since
    }

    /// Returns how long the statement took.
    pub(crate) fn end_statement(&self) -> Duration {
        self.memory.end();
        let mut activity = lock(&self.activity);
        activity.command = IDLE;
        activity.state.clear();
        let now = Instant::now();
        now.duration_since(std::mem::replace(&mut activity.since, now))
    }
}

/// A plan is being run; see [`SessionHandle::show_plan`].
#[must_use]
pub(crate) struct ShownPlan(Arc<SessionHandle>);

impl Drop for ShownPlan {
    fn drop(&mut self) {
        lock(&self.0.plan).take();
    }
}

/// A transaction is open; see [`SessionHandle::show_transaction`].
#[must_use]
pub(crate) struct ShownTransaction(Arc<SessionHandle>);

impl Drop for ShownTransaction {
    fn drop(&mut self) {
        self.0.transaction.store(0, Ordering::Release);
        lock(&self.0.changed_rows).take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_disconnects_once_even_if_it_came_first() {
        let handle = SessionHandle::new(7, "root", "localhost");
        handle.kill();
        let (sender, receiver) = std::sync::mpsc::channel();
        handle.on_kill(Box::new(move || {
            sender.send(()).expect("the receiver waits")
        }));
        assert_eq!(receiver.recv(), Ok(()));
        handle.kill();
        assert!(receiver.recv().is_err(), "the callback is gone");
    }

    #[test]
    fn ending_a_statement_rouses_it() {
        let handle = Arc::new(SessionHandle::new(7, "root", "localhost"));
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiter = Arc::downgrade(&handle);
        handle.on_cancel(Box::new(move || {
            let is_told = waiter.upgrade().map(|h| h.should_stop_waiting());
            sender.send(is_told).expect("the receiver waits");
        }));
        let ends = [
            SessionHandle::cancel,
            SessionHandle::time_out,
            SessionHandle::kill,
        ];
        for end in ends {
            handle.begin_statement("UPDATE t SET a = 1");
            assert!(!handle.should_stop_waiting());
            end(&handle);
            assert_eq!(receiver.try_recv(), Ok(Some(true)));
        }
    }

    #[test]
    fn a_statement_lowers_the_flag_of_an_earlier_kill_query() {
        let handle = SessionHandle::new(7, "root", "localhost");
        handle.cancel();
        handle.begin_statement("SELECT 1");
        assert!(!handle.cancel_flag().is_cancelled());
        assert_eq!(handle.activity().statement.as_deref(), Some("SELECT 1"));
        handle.end_statement();
        assert_eq!(handle.activity().command, "Sleep");
    }
}
