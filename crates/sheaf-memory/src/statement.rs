//! What each statement holds, by its threads' allocators, and which one is stopped when the process has too much.
//!
//! A thread's count is added to the account of the statement that it works for. What one statement has allocated and
//! another frees is missing in the one account and left over in the other; both begin at 0 with each statement.
//!
//! When the process has nearly used up its tolerance, the next thread that passes a safe point stops the
//! statement that holds most, and as many more as it takes to make room. To stop means the same as KILL QUERY, but for
//! the error. Then they have a while to let go, before others are stopped; when they have let go, the next one may be
//! stopped at once.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use crate::folded::FoldedBytes;
use crate::making_room::{makes_room, making_room};
use crate::process::Fullness;
use crate::shared_value::SharedValue;
use crate::{StopFlag, held_by_thread, process};

/// A thread adds its count to the account when it has changed by so much; before, it does not matter.
const STEP_BYTES: i64 = 256 << 10;
/// A statement that holds less, or less than this part of the limit, is not stopped while others hold more.
const MIN_STOPPED_BYTES: usize = 1 << 20;
const MIN_STOPPED_SHARE: usize = 64;
/// One that holds less is not stopped at all. Hundreds that hold more may be too much together: they are stopped when
/// the process has had too much for so long.
const SMALL_BYTES: usize = STEP_BYTES as usize;
const LASTING: Duration = Duration::from_millis(50);
/// The same of a statement whose client does not read: there may be many, and none of them comes to an end.
const MIN_STALLED_BYTES: usize = 64 << 10;
/// Code that makes a longer value [asks](has_room_for_value) first, and makes no room ahead for others like it.
pub const LONG_VALUE_BYTES: usize = 1 << 20;
/// Many values and blocks of so many bytes are much together: before each of them it is looked at what the thread has
/// taken since its last safe point.
const MIDDLING_BYTES: usize = 128 << 10;
/// Where there is no room for a long value, a statement that has so much with it is stopped. One that has less goes on,
/// and those that hold most are stopped.
const MUCH_BYTES: usize = 4 << 20;
/// How often an allocation of a small statement looks whether there is room before statements are stopped for it. Some
/// of them end meanwhile. One that holds much is likely to wait for itself.
const BLOCK_LOOKS: usize = 25;
const BLOCK_LOOKS_OF_LARGE: usize = 5;
/// The same when a statement has been told to stop.
const BLOCK_LOOKS_FOR_STOPPED: usize = 25;
/// The time between two of these looks.
const BLOCK_LOOK: Duration = Duration::from_millis(2);
/// So long a stopped statement may take to let go before others are stopped in its place.
const LETTING_GO: Duration = Duration::from_millis(100);
/// The same where that does no harm: what waits for it takes nothing meanwhile, or the process has little too much. On
/// a busy machine it takes a while until a stopped statement gets a processor at all.
const MOST_LETTING_GO: Duration = Duration::from_secs(1);
/// So long a statement waits for the room that caches give when a busy disk has what they write. It takes nothing
/// meanwhile.
const MOST_WRITING: Duration = Duration::from_secs(2);
/// Little too much is this part of the tolerance.
const LITTLE_SHARE: usize = 8;

/// Gives back what a statement does not need while it waits for a lock.
type GiveWay = Box<dyn Fn() + Send + Sync>;

/// The memory of one session's running statement.
pub struct StatementMemory {
    held_bytes: AtomicI64,
    /// The same flag that KILL QUERY raises.
    stop: Arc<StopFlag>,
    /// Counts the session's statements.
    statement: AtomicU64,
    /// What its constants take that were computed for its plan.
    folded: FoldedBytes,
    /// What its syntax tree took when it was made.
    tree_bytes: AtomicUsize,
    /// What its calls share.
    pub shared: SharedValue,
    is_running: AtomicBool,
    /// The statement that was stopped last because the process had too much.
    stopped: AtomicU64,
    /// It waits for others to give memory back.
    is_waiting: AtomicBool,
    wait: Mutex<Wait>,
    has_waited: AtomicBool,
    /// Its client does not read.
    is_stalled: AtomicBool,
    /// A panic leaves nothing behind in it.
    give_way: OnceLock<AssertUnwindSafe<GiveWay>>,
    /// What of the statement takes most, as far as operators have said.
    largest_consumer: Mutex<Option<String>>,
    has_consumer: AtomicBool,
}

/// How long a statement has waited for others to give memory back.
#[derive(Default)]
struct Wait {
    since: Option<Instant>,
    before: Duration,
}

thread_local! {
    /// The statement that this thread works for.
    static CURRENT: RefCell<Option<Arc<StatementMemory>>> = const { RefCell::new(None) };
    /// The thread's count when it was added to an account last.
    static COUNTED: Cell<i64> = const { Cell::new(0) };
    /// Bytes that the thread was given room for, and that are not counted yet.
    static AHEAD: Cell<usize> = const { Cell::new(0) };
}

/// All statements' accounts, and those of them that were stopped lately.
struct Accounts {
    all: Vec<Weak<StatementMemory>>,
    stopped: Vec<Stopped>,
    /// Since when the process has had too much, and no statement that holds much.
    full_since: Option<Instant>,
}

impl Accounts {
    /// Nobody waits any more for stopped statements that have ended, or take too long.
    fn forget_ended(&mut self) {
        self.stopped
            .retain(|stopped| stopped.is_letting_go(MOST_LETTING_GO));
    }
}

static ACCOUNTS: Mutex<Accounts> = Mutex::new(Accounts {
    all: Vec::new(),
    stopped: Vec::new(),
    full_since: None,
});
/// Held by the thread that decides whether its statement is stopped for want of room.
static NEXT: Mutex<()> = Mutex::new(());
/// There is something in `full_since`.
static IS_FULL: AtomicBool = AtomicBool::new(false);

/// A statement that was stopped, and what it held when that happened.
struct Stopped {
    account: Weak<StatementMemory>,
    statement: u64,
    held_bytes: usize,
    when: Instant,
}

impl Stopped {
    /// Whether it may still be about to let go what it holds, if that takes no longer.
    fn is_letting_go(&self, most: Duration) -> bool {
        let is_running = |account: Arc<StatementMemory>| {
            account.is_running.load(Ordering::Relaxed)
                && account.statement.load(Ordering::Relaxed) == self.statement
                && account.stopped.load(Ordering::Relaxed) == self.statement
        };
        self.when.elapsed() < most && self.account.upgrade().is_some_and(is_running)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is a single assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts back the account that the thread worked for before.
struct Restore(Option<Arc<StatementMemory>>);

impl Drop for Restore {
    fn drop(&mut self) {
        settle();
        CURRENT.replace(self.0.take());
    }
}

impl StatementMemory {
    /// The account of a session's statements, which are stopped by raising this flag.
    pub fn new(stop: Arc<StopFlag>) -> Arc<StatementMemory> {
        let memory = Arc::new(StatementMemory {
            held_bytes: AtomicI64::new(0),
            stop,
            statement: AtomicU64::new(1),
            folded: FoldedBytes::default(),
            tree_bytes: AtomicUsize::new(0),
            shared: SharedValue::default(),
            is_running: AtomicBool::new(false),
            stopped: AtomicU64::new(0),
            is_waiting: AtomicBool::new(false),
            wait: Mutex::default(),
            has_waited: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            give_way: OnceLock::new(),
            largest_consumer: Mutex::new(None),
            has_consumer: AtomicBool::new(false),
        });
        // Who asks for room looks at the accounts.
        making_room(|| {
            let mut accounts = lock(&ACCOUNTS);
            if accounts.all.len() == accounts.all.capacity() {
                accounts.all.retain(|account| account.strong_count() > 0);
            }
            accounts.all.push(Arc::downgrade(&memory));
        });
        memory
    }

    /// The session's next statement starts.
    pub fn begin(&self) {
        self.held_bytes.store(0, Ordering::Relaxed);
        self.folded.begin();
        self.tree_bytes.store(0, Ordering::Relaxed);
        self.is_stalled.store(false, Ordering::Relaxed);
        self.statement.fetch_add(1, Ordering::Relaxed);
        self.is_running.store(true, Ordering::Relaxed);
        if self.has_waited.swap(false, Ordering::Relaxed) {
            *lock(&self.wait) = Wait::default();
        }
        if self.has_consumer.swap(false, Ordering::Relaxed) {
            lock(&self.largest_consumer).take();
        }
    }

    /// The syntax tree is made. What is measured first counts: a plan is made of it later.
    pub(crate) fn tree_is_made(&self, bytes: usize) {
        if self.tree_bytes.load(Ordering::Relaxed) == 0 {
            self.tree_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// The constants of another plan are folded from now on. One that is made twice has the same both times.
    pub fn fold_anew(&self) {
        self.folded.begin();
    }

    /// The session's statement has ended. What it has left behind is not given back by stopping it.
    pub fn end(&self) {
        self.shared.end();
        if self.is_running.swap(false, Ordering::Relaxed) && self.is_stopped() {
            process::expect_free_memory();
        }
    }

    /// Bytes that the statement was last seen to hold.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed).max(0) as usize
    }

    /// Whether a statement of the session runs.
    pub fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }

    /// Says that the statement's client does not read, or does again. The statement's thread says it.
    pub fn set_stalled(&self, is_stalled: bool) {
        if is_stalled {
            // It holds less than a step, maybe, but for as long as its client likes.
            process::note_taken(settle());
        }
        self.is_stalled.store(is_stalled, Ordering::Relaxed);
    }

    /// Whether it holds so much that to stop it, or to have it make room, helps others.
    pub fn holds_much(&self) -> bool {
        let least = match self.is_stalled.load(Ordering::Relaxed) {
            true => MIN_STALLED_BYTES,
            false => least_stopped(),
        };
        self.held_bytes() >= least
    }

    /// Whether the statement was stopped because the process had too much memory.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) == self.statement.load(Ordering::Relaxed)
    }

    /// A statement that was stopped because the process had too much goes on in another way, which takes less. False:
    /// it was not, or it shall stop for another reason as well.
    pub fn go_on(&self) -> bool {
        if !self.is_stopped() {
            return false;
        }
        process::expect_free_memory();
        self.stopped.store(0, Ordering::Relaxed);
        self.stop.lower_for_memory();
        !self.shall_stop()
    }

    /// The running statement shall stop because the process has too much memory.
    pub(crate) fn stop_for_memory(&self) {
        let statement = self.statement.load(Ordering::Relaxed);
        self.stopped.store(statement, Ordering::Relaxed);
        self.stop.raise_for_memory();
    }

    /// Whether the statement shall stop, for whatever reason.
    pub fn shall_stop(&self) -> bool {
        self.stop.is_raised()
    }

    /// What is called, by the statement's thread, when it begins to wait for a lock. The first call counts.
    pub(crate) fn on_lock_wait(&self, give_way: GiveWay) {
        // A second one could only give back the same.
        let _ = self.give_way.set(AssertUnwindSafe(give_way));
    }

    /// Whether the statement waits until others give memory back.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// Says that the statement waits for memory, or does not any more.
    pub fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
        let mut wait = lock(&self.wait);
        match is_waiting {
            true => {
                self.has_waited.store(true, Ordering::Relaxed);
                wait.since.get_or_insert_with(Instant::now);
            }
            false => {
                let waited = wait.since.take().map(|since| since.elapsed());
                wait.before += waited.unwrap_or_default();
            }
        }
    }

    /// How long it has waited for memory, but for a wait that goes on: a statement that waits here and there waits no
    /// longer than one that waits once.
    pub fn waited(&self) -> Duration {
        lock(&self.wait).before
    }

    /// Says which of the statement's operators holds most.
    pub fn set_largest_consumer(&self, name: &str) {
        self.has_consumer.store(true, Ordering::Relaxed);
        let mut largest = lock(&self.largest_consumer);
        if largest.as_deref() != Some(name) {
            *largest = Some(name.to_string());
        }
    }

    /// Which of the statement's operators held most, if one has said so.
    pub fn largest_consumer(&self) -> Option<String> {
        lock(&self.largest_consumer).clone()
    }

    /// Does `work` for this statement: what the thread allocates and frees meanwhile is the statement's.
    pub fn during<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        // A panic inside of `work` must not leave the account to what the thread does next.
        let _restore = enter(Arc::clone(self));
        work()
    }
}

impl fmt::Debug for StatementMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatementMemory({} bytes)", self.held_bytes())
    }
}

/// The account of the statement that this thread works for.
pub fn current() -> Option<Arc<StatementMemory>> {
    CURRENT.with_borrow(Clone::clone)
}

fn enter(account: Arc<StatementMemory>) -> Restore {
    settle();
    Restore(CURRENT.replace(Some(account)))
}

/// The statement that the calling thread works for begins to wait for a lock.
pub fn waits_for_lock() {
    // What was asked for has been taken long before. Others may have what is counted twice so.
    process::note_taken(settle());
    CURRENT.with_borrow(|account| {
        let give_way = account.as_ref().and_then(|account| account.give_way.get());
        if let Some(give_way) = give_way {
            (give_way.0)();
        }
    });
}

/// Work for another thread, for the statement that the calling thread works for.
pub fn of_this_statement<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let memory = current();
    move || match memory {
        Some(memory) => memory.during(work),
        None => work(),
    }
}

/// Adds what the thread's count has changed by to its statement's account.
fn settle() -> i64 {
    let ahead = AHEAD.take();
    if ahead > 0 {
        process::has_taken(ahead);
    }
    let now = held_by_thread();
    let change = now - COUNTED.replace(now);
    if change != 0 {
        CURRENT.with_borrow(|account| {
            if let Some(account) = account {
                account.held_bytes.fetch_add(change, Ordering::Relaxed);
            }
        });
    }
    change
}

/// A moment at which the statement can be stopped. It costs some nanoseconds where little was allocated since the last.
#[inline]
pub fn safe_point() {
    if (held_by_thread() - COUNTED.get()).abs() >= STEP_BYTES {
        settle_and_check();
    }
}

/// A safe point inside of work that takes memory and may take much of it. False: the statement shall stop.
#[inline]
pub fn may_go_on() -> bool {
    if (held_by_thread() - COUNTED.get()).abs() < STEP_BYTES {
        return true;
    }
    settle_and_check();
    CURRENT.with_borrow(|account| account.as_ref().is_none_or(|account| !account.shall_stop()))
}

/// Whether the statement that the thread works for shall stop, for whatever reason. It costs some nanoseconds, and
/// makes no measurement.
#[inline]
pub fn shall_stop() -> bool {
    CURRENT.with_borrow(|account| account.as_ref().is_some_and(|account| account.shall_stop()))
}

/// Whether a constant of so many bytes may stay in the plan of the statement that the thread works for. False: it is to
/// be computed when the statement runs.
pub fn may_fold(bytes: usize) -> bool {
    CURRENT.with_borrow(|account| {
        account
            .as_ref()
            .is_none_or(|account| account.folded.add(bytes))
    })
}

/// The statement that the thread works for is about to take so many bytes at once, without a safe point. Caches make
/// room for them. False: there is none, and the statement shall stop.
pub fn has_room_for(bytes: usize) -> bool {
    settle_and_check();
    CURRENT.with_borrow(|account| {
        let Some(account) = account else {
            return true;
        };
        if bytes < LONG_VALUE_BYTES {
            return !account.shall_stop();
        }
        // One that holds little does not come before others that wait: what is let go for them would be gone, and each
        // of those that hold a part of what they need would be stopped.
        let may_ask = account.held_bytes() >= MUCH_BYTES || !others_wait();
        if may_ask && process::will_take(bytes) {
            AHEAD.set(bytes);
            return !account.shall_stop();
        }
        // Where several have no room, one after the other is stopped: the next one gets what those before let go.
        let Some(_next) = await_turn(account) else {
            return false;
        };
        let began = Instant::now();
        loop {
            // What has let go before this look is part of the room that is asked for behind it.
            let others_let_go = are_letting_go();
            if process::will_take(bytes) {
                AHEAD.set(bytes);
                return !account.shall_stop();
            }
            let is_coming = || began.elapsed() < MOST_WRITING && process::will_have_room(bytes);
            if account.shall_stop() || !(others_let_go || is_coming()) {
                break;
            }
            std::thread::sleep(BLOCK_LOOK);
        }
        if account.held_bytes().saturating_add(bytes) >= MUCH_BYTES {
            making_room(|| stop_itself(account));
        } else {
            // It is one of the small, and others are not.
            stop_for(bytes);
        }
        !account.shall_stop()
    })
}

/// Whether the process has room for another syntax tree like that of the statement that the thread works for, which is
/// about to be copied without a safe point. False: the statement shall stop.
pub fn has_room_for_tree() -> bool {
    let bytes = CURRENT.with_borrow(|account| {
        let account = account.as_ref();
        account.map_or(0, |account| account.tree_bytes.load(Ordering::Relaxed))
    });
    has_room_for_value(bytes)
}

/// Whether another thread decides whether its statement is stopped.
fn others_wait() -> bool {
    matches!(NEXT.try_lock(), Err(TryLockError::WouldBlock))
}

/// What the thread was given room for is the caller's. The caller says when it [is taken](process::has_taken).
pub(crate) fn take_ahead() -> usize {
    AHEAD.take()
}

/// Waits until no other thread decides whether its statement is stopped. `None`: this statement shall stop, for
/// whatever reason. To decide may take as long as [`MOST_LETTING_GO`], and many may be before this one.
fn await_turn(account: &StatementMemory) -> Option<MutexGuard<'static, ()>> {
    loop {
        match NEXT.try_lock() {
            Ok(turn) => return Some(turn),
            Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) if account.shall_stop() => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(BLOCK_LOOK),
        }
    }
}

/// Whether statements that were stopped may still be about to let go what they hold.
fn are_letting_go() -> bool {
    let accounts = lock(&ACCOUNTS);
    let mut stopped = accounts.stopped.iter();
    stopped.any(|stopped| stopped.is_letting_go(MOST_LETTING_GO))
}

/// So long it is waited for stopped statements before others are stopped for so many bytes.
fn most_letting_go(bytes: usize) -> Duration {
    let is_little = |limit: usize| bytes <= process::tolerance(limit) / LITTLE_SHARE;
    match process::limit().is_some_and(is_little) {
        true => MOST_LETTING_GO,
        false => LETTING_GO,
    }
}

fn stop_itself(account: &Arc<StatementMemory>) {
    if account.shall_stop() {
        return;
    }
    account.stop_for_memory();
    let stopped = Stopped {
        account: Arc::downgrade(account),
        statement: account.statement.load(Ordering::Relaxed),
        held_bytes: account.held_bytes(),
        when: Instant::now(),
    };
    let mut accounts = lock(&ACCOUNTS);
    accounts.forget_ended();
    accounts.stopped.push(stopped);
}

/// As [`has_room_for`], for a value that may be long. It costs nothing where it is not. A middling one is a safe point.
#[inline]
pub fn has_room_for_value(bytes: usize) -> bool {
    match bytes {
        LONG_VALUE_BYTES.. => has_room_for(bytes),
        MIDDLING_BYTES.. => may_go_on(),
        _ => true,
    }
}

/// The program's allocator is about to hand out a block of so many bytes. Where the process has no room for a long one,
/// the statement is told to stop. It gets the block all the same: an allocation cannot be refused.
#[inline]
pub fn will_allocate(bytes: usize) {
    if bytes >= MIDDLING_BYTES && is_much_together(bytes) {
        make_room_for_block(bytes);
    }
}

/// Whether a block is long, or makes a long one together with what the thread has taken since its last safe point.
fn is_much_together(bytes: usize) -> bool {
    let since_safe_point = (held_by_thread() - COUNTED.get()).max(0) as usize;
    since_safe_point.saturating_add(bytes) >= LONG_VALUE_BYTES
}

/// A middling block asks for a long one, and does not wait for it.
#[cold]
fn make_room_for_block(bytes: usize) {
    let is_long = bytes >= LONG_VALUE_BYTES;
    let bytes = bytes.max(LONG_VALUE_BYTES);
    // A thread that comes to its end has no account any more.
    let is_of_statement =
        || CURRENT.try_with(|account| account.try_borrow().is_ok_and(|account| account.is_some()));
    if process::limit().is_none() || makes_room() || is_of_statement() != Ok(true) {
        return;
    }
    making_room(|| {
        let holds_much = CURRENT.with_borrow(|account| {
            let held = account.as_ref().map_or(0, |account| account.held_bytes());
            held.saturating_add(bytes) >= MUCH_BYTES
        });
        let looks = match (is_long, holds_much) {
            (false, _) => 1,
            (true, true) => BLOCK_LOOKS_OF_LARGE,
            (true, false) => BLOCK_LOOKS,
        };
        if await_room_for(bytes, looks, shall_stop) || shall_stop() {
            return;
        }
        has_room_for(bytes);
        if AHEAD.get() == 0 && is_long {
            // Somebody has been told to stop, and needs a moment for it.
            await_room_for(bytes, BLOCK_LOOKS_FOR_STOPPED, || false);
        }
    });
}

/// Waits for room for a block, for so many looks or until `is_over`. Another thread has a block and its longer copy,
/// maybe, or is about to let go what it has. False: there is no room.
fn await_room_for(bytes: usize, looks: usize, is_over: impl Fn() -> bool) -> bool {
    for look in 0..looks {
        if look > 0 {
            std::thread::sleep(BLOCK_LOOK);
        }
        process::note_taken(settle());
        if process::will_take(bytes) {
            AHEAD.set(bytes);
            return true;
        }
        if is_over() {
            break;
        }
    }
    false
}

#[cold]
fn settle_and_check() {
    process::note_taken(settle());
    loop {
        match process::fullness() {
            Fullness::Bearable => return stop_for(0),
            Fullness::TooFull(bytes) => return stop_for(bytes),
            // What a slow disk has not taken yet is no reason to stop anybody.
            Fullness::Writing if makes_room() || shall_stop() => return,
            Fullness::Writing => std::thread::sleep(BLOCK_LOOK),
        }
    }
}

/// Stops those statements that hold most, until they hold so many bytes together with those that are about to let go.
pub(crate) fn stop_for(bytes: usize) {
    if bytes == 0 {
        if IS_FULL.swap(false, Ordering::Relaxed) {
            lock(&ACCOUNTS).full_since = None;
        }
        return;
    }
    // Nothing is asked for while the accounts are locked.
    for account in making_room(|| largest_to_stop(bytes)) {
        account.stop_for_memory();
    }
}

/// The statements that hold most, as many as hold so many bytes together with those that are about to let go. They are
/// noted as stopped.
fn largest_to_stop(bytes: usize) -> Vec<Arc<StatementMemory>> {
    let mut chosen = Vec::new();
    let mut accounts = lock(&ACCOUNTS);
    accounts.forget_ended();
    let most = most_letting_go(bytes);
    let stopped = accounts.stopped.iter();
    let coming = stopped.filter(|stopped| stopped.is_letting_go(most));
    let coming = coming.map(|stopped| stopped.held_bytes);
    let mut missing = bytes.saturating_sub(coming.sum());
    if missing == 0 {
        return chosen;
    }
    let running = accounts.all.iter().filter_map(Weak::upgrade);
    let may_stop = |account: &Arc<StatementMemory>| {
        account.is_running()
            && !account.is_stopped()
            && (account.holds_much() || account.held_bytes() >= SMALL_BYTES)
    };
    let held = |account: Arc<StatementMemory>| (account.held_bytes(), account);
    let mut largest: Vec<_> = running.filter(may_stop).map(held).collect();
    largest.sort_by_key(|(held_bytes, _)| Reverse(*held_bytes));
    let is_lasting = accounts
        .full_since
        .is_some_and(|since| since.elapsed() >= LASTING);
    for (held_bytes, account) in largest {
        if missing == 0 {
            break;
        }
        if !is_lasting && !account.holds_much() {
            continue;
        }
        missing = missing.saturating_sub(held_bytes);
        accounts.stopped.push(Stopped {
            account: Arc::downgrade(&account),
            statement: account.statement.load(Ordering::Relaxed),
            held_bytes,
            when: Instant::now(),
        });
        chosen.push(account);
    }
    if missing > 0 {
        accounts.full_since.get_or_insert_with(Instant::now);
        IS_FULL.store(true, Ordering::Relaxed);
    }
    chosen
}

/// A statement that holds less is not stopped while others hold more.
fn least_stopped() -> usize {
    let share = process::limit().map_or(0, |limit| limit / MIN_STOPPED_SHARE);
    share.max(MIN_STOPPED_BYTES)
}

#[cfg(test)]
mod tests;
