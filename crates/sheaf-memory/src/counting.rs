//! An allocator that counts for each thread, for tests: what statements take is measured where the program has one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::{Allocator, set_allocator};

/// The system's allocator, with a count of what each thread has allocated and not freed.
pub struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does all of it; counting touches a thread-local number without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
#[global_allocator]
static COUNTING: Counting = Counting;

/// Lets the engine measure what its statements hold. [`Counting`] is the program's allocator.
pub fn count() {
    set_allocator(Allocator {
        held_by_thread: || HELD.get(),
        give_back: || (),
        empty_thread_cache: || (),
    });
}
