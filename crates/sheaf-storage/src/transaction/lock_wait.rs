//! How long the calling thread has waited for locks since it began: the difference of two of these is what a piece of
//! its work has waited.

use std::cell::Cell;

thread_local! {
    static WAITED_NS: Cell<u64> = const { Cell::new(0) };
}

/// Nanoseconds that this thread has waited, of rows and of tables.
pub fn thread_lock_wait_ns() -> u64 {
    WAITED_NS.get()
}

/// A wait of this thread is over.
pub fn count_lock_wait(waited_ns: u64) {
    WAITED_NS.set(WAITED_NS.get().saturating_add(waited_ns));
}
