//! Threads, locks, atomics, channels and time: everything in storage whose outcome depends on scheduling.
//!
//! Storage code takes these from here and nowhere else. With the feature `simulation` they are shuttle's: one thread
//! runs at a time, and every operation in this module is a point where another may be chosen. A seeded generator makes
//! the choice. A simulated run, threads, faults and all, is then a function of its seed and can be replayed. Without
//! the feature they are the standard library's and cost nothing more.
//!
//! Two rules keep a run repeatable. Background work is written as a task with a `step()` that a thread drives in
//! production and the test drives in simulation. And no hash map in storage is randomly seeded.
//!
//! Locks here ignore poisoning. State behind a lock is kept valid at every point that can panic, and a panic in one
//! statement must not make a lock unusable for the others.

use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError};

#[cfg(not(feature = "simulation"))]
use std::sync as backend;

#[cfg(feature = "simulation")]
use shuttle::sync as backend;

pub use backend::{atomic, mpsc};

/// Threads: `spawn`, `current`, `park`, `yield_now`.
#[cfg(not(feature = "simulation"))]
pub use std::thread;

/// Threads: `spawn`, `current`, `park`, `yield_now`.
#[cfg(feature = "simulation")]
pub use shuttle::thread;

/// Pauses inside of a short spin loop.
#[inline]
pub fn spin_loop() {
    #[cfg(not(feature = "simulation"))]
    std::hint::spin_loop();
    #[cfg(feature = "simulation")]
    shuttle::thread::yield_now();
}

/// A point where a simulation may switch threads although nothing shared is written: between the word loads of an
/// optimistic read. Nothing in production.
#[inline(always)]
pub fn interleave() {
    #[cfg(feature = "simulation")]
    shuttle::thread::yield_now();
}

/// Nanoseconds of a clock that never goes back. In simulation, the number of scheduling steps so far.
pub fn monotonic_ns() -> u64 {
    #[cfg(not(feature = "simulation"))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
    #[cfg(feature = "simulation")]
    {
        shuttle::current::context_switches() as u64
    }
}

/// Microseconds since 1970 by the machine's clock, which may be set back at any time. In simulation, the number of
/// scheduling steps so far after a fixed moment.
pub fn wall_clock_us() -> u64 {
    #[cfg(not(feature = "simulation"))]
    {
        use std::time::{SystemTime, UNIX_EPOCH};
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        since_1970.map_or(0, |time| time.as_micros() as u64)
    }
    #[cfg(feature = "simulation")]
    {
        const SIMULATED_START_US: u64 = 1_700_000_000_000_000;
        SIMULATED_START_US + shuttle::current::context_switches() as u64
    }
}

/// A number that no other machine or process comes up with, as far as can be hoped for with 64 bits. It may name
/// things; nothing that happens may depend on it. In simulation, the clock.
pub fn unique_number() -> u64 {
    #[cfg(not(feature = "simulation"))]
    {
        use std::hash::{BuildHasher, Hasher, RandomState};
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(wall_clock_us());
        hasher.finish()
    }
    #[cfg(feature = "simulation")]
    wall_clock_us()
}

/// A small number of the calling thread, for what is split so that threads do not meet: it decides nothing but speed. 0
/// in simulation, whose threads share their thread locals.
pub fn thread_hint() -> usize {
    #[cfg(not(feature = "simulation"))]
    {
        use std::cell::Cell;
        use std::sync::atomic::{AtomicUsize, Ordering};
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static HINT: Cell<Option<usize>> = const { Cell::new(None) };
        }
        HINT.get().unwrap_or_else(|| {
            let hint = THREADS.fetch_add(1, Ordering::Relaxed);
            HINT.set(Some(hint));
            hint
        })
    }
    #[cfg(feature = "simulation")]
    {
        0
    }
}

/// Hears when a thread begins to wait for something that may take a while (a lock, the disk), and when it goes on.
pub trait WaitObserver {
    fn begin(&self);
    fn end(&self);
}

#[cfg(not(feature = "simulation"))]
thread_local! {
    static OBSERVER: std::cell::RefCell<Option<std::sync::Arc<dyn WaitObserver>>> =
        const { std::cell::RefCell::new(None) };
}

/// From now on `observer` hears of the waits of the calling thread. In simulation it does not.
pub fn observe_waits(observer: Option<std::sync::Arc<dyn WaitObserver>>) {
    #[cfg(not(feature = "simulation"))]
    OBSERVER.set(observer);
    #[cfg(feature = "simulation")]
    drop(observer);
}

/// Does `wait`, which waits for something; the observer of the calling thread hears of it. Where the process has too
/// much memory, the thread gives back what it keeps for its next work.
pub fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    #[cfg(not(feature = "simulation"))]
    {
        /// Also when `wait` panics.
        struct End<'a>(&'a dyn WaitObserver);

        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.end();
            }
        }

        sheaf_memory::release_if_pressed();
        OBSERVER.with_borrow(|observer| {
            let _end = observer.as_deref().map(|observer| {
                observer.begin();
                End(observer)
            });
            wait()
        })
    }
    #[cfg(feature = "simulation")]
    wait()
}

fn ignore_poison<G>(result: LockResult<G>) -> G {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Mutual exclusion.
#[derive(Debug, Default)]
pub struct Mutex<T>(backend::Mutex<T>);

/// Access to what a [`Mutex`] protects.
#[derive(Debug)]
pub struct MutexGuard<'a, T>(backend::MutexGuard<'a, T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(backend::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(ignore_poison(self.0.lock()))
    }

    /// The guard, if no thread holds it now.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(MutexGuard(guard)),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                Some(MutexGuard(poisoned.into_inner()))
            }
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    pub fn get_mut(&mut self) -> &mut T {
        ignore_poison(self.0.get_mut())
    }

    pub fn into_inner(self) -> T {
        ignore_poison(self.0.into_inner())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// Many readers or one writer.
#[derive(Debug, Default)]
pub struct RwLock<T>(backend::RwLock<T>);

/// Shared access to what a [`RwLock`] protects.
#[derive(Debug)]
pub struct RwLockReadGuard<'a, T>(backend::RwLockReadGuard<'a, T>);

/// Exclusive access to what a [`RwLock`] protects.
#[derive(Debug)]
pub struct RwLockWriteGuard<'a, T>(backend::RwLockWriteGuard<'a, T>);

impl<T> RwLock<T> {
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(backend::RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard(ignore_poison(self.0.read()))
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard(ignore_poison(self.0.write()))
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// Waiting for a change of what a [`Mutex`] protects.
#[derive(Debug, Default)]
pub struct Condvar(backend::Condvar);

impl Condvar {
    pub const fn new() -> Condvar {
        Condvar(backend::Condvar::new())
    }

    /// May wake without reason: the caller loops over its condition.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard(ignore_poison(waiting(|| self.0.wait(guard.0))))
    }

    /// As [`wait`](Condvar::wait), for at most `timeout`. Simulated time does not pass: there it waits for ever.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: std::time::Duration,
    ) -> MutexGuard<'a, T> {
        MutexGuard(ignore_poison(waiting(|| self.0.wait_timeout(guard.0, timeout))).0)
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
