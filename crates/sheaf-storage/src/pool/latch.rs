//! Latching a page: transitions of its word, and waiting for them.
//!
//! A latch is a state in the page's word, so taking a free one is a single compare-and-swap and there is nothing else
//! to allocate or to find. Only a thread that must wait leaves the word: it spins briefly, then parks in a small lot of
//! queues shared by all pages.
//!
//! **No lost wake-ups.** A waiter holds its queue's lock while it sees the page blocked, sets the word's waiters bit
//! and enqueues itself. A release replaces the word in one atomic step that clears the bit; if the bit was set, it then
//! takes the queue's lock and unparks the page's waiters. Either the release comes first, and the waiter sees a page
//! that is not blocked any more. Or the bit is set first: then the release finds it, and finds the waiter enqueued,
//! because the lock was held until then. An unpark before the park makes the park return at once.
//!
//! **Ordering.** Taking a latch is an acquire, releasing it a release. After taking an exclusive latch comes a release
//! fence, so that no change of the page can become visible before the word says EXCLUSIVE. Before an optimistic reader
//! checks the word again comes an acquire fence (see [`guard`](crate::pool::guard)).

use crate::page::PageId;
use crate::pool::page_table::{PageWord, state};
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{Mutex, spin_loop, thread};

/// Looks at a blocked page this often before parking. A latch is held for some hundred nanoseconds.
#[cfg(not(feature = "simulation"))]
const SPINS_BEFORE_PARKING: usize = 64;
#[cfg(feature = "simulation")]
const SPINS_BEFORE_PARKING: usize = 1;

/// Queues of the lot; pages share them by number.
const PARKING_QUEUES: usize = 128;

/// Why a page could not be latched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// It is not in memory.
    Evicted,
    /// It is being read from disk.
    Reading,
    /// Others hold latches that exclude this one.
    Latched,
}

/// Takes a shared latch if that is possible now, and notes the access if `access` says so.
#[inline]
pub(crate) fn try_shared(word: &AtomicU64, access: Access) -> Result<PageWord, Refusal> {
    let mut seen = PageWord(word.load(Ordering::Acquire));
    loop {
        match seen.state() {
            state::EVICTED => return Err(Refusal::Evicted),
            state::READING => return Err(Refusal::Reading),
            state::EXCLUSIVE => return Err(Refusal::Latched),
            shared if shared - state::UNLOCKED == state::MAX_SHARED => {
                return Err(Refusal::Latched);
            }
            shared => {
                let latched = access.note(seen).with_state(shared + 1);
                match exchange(word, seen, latched) {
                    Ok(()) => return Ok(latched),
                    Err(now) => seen = now,
                }
            }
        }
    }
}

/// Takes an exclusive latch if that is possible now.
#[inline]
pub(crate) fn try_exclusive(word: &AtomicU64, access: Access) -> Result<PageWord, Refusal> {
    let mut seen = PageWord(word.load(Ordering::Acquire));
    loop {
        match seen.state() {
            state::EVICTED => return Err(Refusal::Evicted),
            state::READING => return Err(Refusal::Reading),
            state::UNLOCKED => {
                let latched = access.note(seen).with_state(state::EXCLUSIVE);
                match exchange(word, seen, latched) {
                    Ok(()) => {
                        fence(Ordering::Release);
                        return Ok(latched);
                    }
                    Err(now) => seen = now,
                }
            }
            _ => return Err(Refusal::Latched),
        }
    }
}

/// Turns an optimistic reading into a latch, if the page has not changed since `read` was its word.
#[inline]
pub(crate) fn try_latch_unchanged(
    word: &AtomicU64,
    read: PageWord,
    exclusive: bool,
) -> Result<PageWord, Refusal> {
    let mut seen = PageWord(word.load(Ordering::Acquire));
    loop {
        let possible = if exclusive {
            seen.state() == state::UNLOCKED
        } else {
            seen.is_readable() && seen.shared_count() < state::MAX_SHARED
        };
        if !possible || seen.identity() != read.identity() {
            return Err(Refusal::Latched);
        }
        let next = if exclusive {
            state::EXCLUSIVE
        } else {
            seen.state() + 1
        };
        let latched = seen.with_state(next);
        match exchange(word, seen, latched) {
            Ok(()) => {
                fence(Ordering::Release);
                return Ok(latched);
            }
            Err(now) => seen = now,
        }
    }
}

/// Whether taking a latch counts as a use of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// By a query: the page gets warmer.
    Use,
    /// By write-back or eviction: no sign that the page is wanted.
    Maintenance,
}

impl Access {
    #[inline]
    fn note(self, word: PageWord) -> PageWord {
        match self {
            Access::Use => word.accessed(),
            Access::Maintenance => word,
        }
    }
}

#[inline]
pub(crate) fn exchange(word: &AtomicU64, seen: PageWord, new: PageWord) -> Result<(), PageWord> {
    word.compare_exchange(seen.0, new.0, Ordering::AcqRel, Ordering::Acquire)
        .map(|_| ())
        .map_err(PageWord)
}

/// Where threads wait for pages.
pub(crate) struct ParkingLot {
    queues: Box<[Queue]>,
}

#[derive(Default)]
#[repr(align(64))]
struct Queue(Mutex<Vec<(PageId, thread::Thread)>>);

impl ParkingLot {
    pub(crate) fn new() -> ParkingLot {
        ParkingLot {
            queues: (0..PARKING_QUEUES).map(|_| Queue::default()).collect(),
        }
    }

    /// Bytes a lot takes while no thread waits.
    pub(crate) const fn bytes() -> usize {
        PARKING_QUEUES * size_of::<Queue>()
    }

    fn queue(&self, page: PageId) -> &Mutex<Vec<(PageId, thread::Thread)>> {
        &self.queues[page.0 as usize % PARKING_QUEUES].0
    }

    /// Releases a shared latch.
    #[inline]
    pub(crate) fn release_shared(&self, page: PageId, word: &AtomicU64) {
        let mut seen = PageWord(word.load(Ordering::Relaxed));
        loop {
            debug_assert!(seen.shared_count() > 0);
            let mut released = seen.with_state(seen.state() - 1);
            // Others still hold it: the waiters go on waiting for them.
            let wake = released.state() == state::UNLOCKED && seen.has_waiters();
            if wake {
                released = released.without_waiters();
            }
            match exchange(word, seen, released) {
                Ok(()) => {
                    if wake {
                        self.wake(page);
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Releases an exclusive latch, or ends a read: the caller owns the word, except for its waiters bit, and replaces
    /// it by `next`.
    #[inline]
    pub(crate) fn replace(&self, page: PageId, word: &AtomicU64, next: PageWord) {
        let old = PageWord(word.swap(next.without_waiters().0, Ordering::AcqRel));
        debug_assert!(matches!(old.state(), state::READING | state::EXCLUSIVE));
        if old.has_waiters() {
            self.wake(page);
        }
    }

    #[cold]
    fn wake(&self, page: PageId) {
        let mut woken = Vec::new();
        self.queue(page).lock().retain(|(waiting, thread)| {
            if *waiting == page {
                woken.push(thread.clone());
            }
            *waiting != page
        });
        for thread in woken {
            thread.unpark();
        }
    }

    /// Waits until the page may be not `blocked` any more. `park` is how the thread waits once it is enqueued: it
    /// returns when the thread is unparked, and may return earlier.
    #[cold]
    pub(crate) fn wait_while(
        &self,
        page: PageId,
        word: &AtomicU64,
        blocked: &dyn Fn(PageWord) -> bool,
        park: &dyn Fn(),
    ) {
        for _ in 0..SPINS_BEFORE_PARKING {
            if !blocked(PageWord(word.load(Ordering::Acquire))) {
                return;
            }
            spin_loop();
        }
        let me = thread::current();
        {
            let mut queue = self.queue(page).lock();
            let mut seen = PageWord(word.load(Ordering::Acquire));
            loop {
                if !blocked(seen) {
                    return;
                }
                if seen.has_waiters() {
                    break;
                }
                match exchange(word, seen, seen.with_waiters()) {
                    Ok(()) => break,
                    Err(now) => seen = now,
                }
            }
            queue.push((page, me.clone()));
        }
        let _leave = LeaveQueue {
            lot: self,
            page,
            me: me.id(),
        };
        loop {
            let seen = PageWord(word.load(Ordering::Acquire));
            // Woken and blocked again: the waiters bit may be another thread's by now, and then nothing would wake this
            // thread.
            if !blocked(seen) || !seen.has_waiters() || !self.is_queued(page, me.id()) {
                return;
            }
            park();
        }
    }

    /// Whether the thread waits for the page and has not been woken.
    pub(crate) fn is_queued(&self, page: PageId, thread: thread::ThreadId) -> bool {
        self.queue(page)
            .lock()
            .iter()
            .any(|(waiting, queued)| *waiting == page && queued.id() == thread)
    }
}

/// Takes a waiter out of its queue, also when it unwinds.
struct LeaveQueue<'a> {
    lot: &'a ParkingLot,
    page: PageId,
    me: thread::ThreadId,
}

impl Drop for LeaveQueue<'_> {
    fn drop(&mut self) {
        let mut queue = self.lot.queue(self.page).lock();
        if let Some(position) = queue.iter().position(|(_, thread)| thread.id() == self.me) {
            queue.swap_remove(position);
        }
    }
}
