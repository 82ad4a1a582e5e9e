//! The program's allocator, and what it tells of the memory that statements hold.
//!
//! It counts what each thread allocates and frees. Reading the counts of the own thread costs two loads, so nothing is
//! lost by looking often.
//!
//! Libraries allocate buffers of megabytes, which they double as they grow, without a word to anybody. So the allocator
//! itself says so before it hands out a long block ([`sheaf_memory::will_allocate`]): what is free is given back, and
//! caches make room, before the block is written to and not when it is too late.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;

use sheaf_memory::{Allocator, set_allocator, will_allocate};
use tikv_jemalloc_ctl::thread::{ThreadLocal, allocatedp, deallocatedp};
use tikv_jemallocator::Jemalloc;

/// Statements are prepared on one thread and end on another, and allocate a little on each: glibc's allocator takes a
/// lock for that. A program that has the library inside chooses its own.
#[global_allocator]
static ALLOCATOR: Announced = Announced;

/// jemalloc, which makes room for long blocks.
struct Announced;

// SAFETY: jemalloc does all of it. What is called before allocates only short blocks, for which it is not called again,
// and does not unwind.
unsafe impl GlobalAlloc for Announced {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        will_allocate(layout.size());
        // SAFETY: the caller's promise.
        unsafe { Jemalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        will_allocate(layout.size());
        // SAFETY: the caller's promise.
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { Jemalloc.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        if new_bytes > layout.size() {
            // The block and its longer copy are there at the same time.
            will_allocate(new_bytes);
        }
        // SAFETY: the caller's promise.
        unsafe { Jemalloc.realloc(block, layout, new_bytes) }
    }
}

/// Memory that was freed goes back to the system half a second later, by a thread that does nothing else, or at once
/// when the process has too much. So the process takes about what it has allocated, but memory that one statement has
/// freed may not be there for the next. What is free between allocations is lost in each arena and each thread's cache:
/// there is one arena for each processor, and threads cache nothing of more than 8 KiB. A thread looks through
/// its cache each time it has allocated 256 KiB. With the default of 64 KiB that took a thirtieth of a new statement.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static ALLOCATOR_OPTIONS: &[u8; 145] =
    b"background_thread:true,max_background_threads:1,narenas_ratio:1,lg_tcache_max:13,\
      tcache_gc_incr_bytes:262144,dirty_decay_ms:500,muzzy_decay_ms:0\0";

/// What the calling thread has allocated and freed.
type Counts = (ThreadLocal<u64>, ThreadLocal<u64>);

thread_local! {
    /// Where the thread's counts are; they stay there as long as the thread lives.
    static COUNTS: Cell<Option<Counts>> = const { Cell::new(None) };
}

/// Lets the engine measure what its statements hold.
pub fn measure_statements() {
    set_allocator(Allocator {
        held_by_thread,
        give_back,
        empty_thread_cache,
    });
}

fn held_by_thread() -> i64 {
    let Some((allocated, freed)) = COUNTS.get().or_else(find_counts) else {
        return 0;
    };
    allocated.get().wrapping_sub(freed.get()) as i64
}

#[cold]
fn find_counts() -> Option<Counts> {
    // Both fail only where the allocator was built without these counts.
    let counts = (allocatedp::read().ok()?, deallocatedp::read().ok()?);
    COUNTS.set(Some(counts));
    Some(counts)
}

/// Gives all pages back that no allocation uses.
fn give_back() {
    /// Stands for all arenas at once; jemalloc's `MALLCTL_ARENAS_ALL`.
    const PURGE: &CStr = c"arena.4096.purge";
    control(PURGE);
}

/// Gives the blocks back that the calling thread keeps for its next allocations: some ten kilobytes, or a hundred.
fn empty_thread_cache() {
    const FLUSH: &CStr = c"thread.tcache.flush";
    control(FLUSH);
}

/// Has the allocator do what this name says.
fn control(name: &CStr) {
    // SAFETY: the name ends with a zero byte, and these controls neither read nor write a value.
    let outcome = unsafe {
        tikv_jemalloc_sys::mallctl(
            name.as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
        )
    };
    debug_assert_eq!(outcome, 0, "the control exists in all versions");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_holds_what_it_has_allocated_and_not_freed() {
        let before = held_by_thread();
        let block = vec![1u8; 1 << 20];
        let held = held_by_thread() - before;
        assert!((1 << 20..2 << 20).contains(&held), "{held}");
        drop(block);
        assert!((held_by_thread() - before).abs() < 4096);
        empty_thread_cache();
        give_back();
    }
}
