//! What a thread that waits gives back: the free blocks that the allocator keeps for it, and the unused part of its
//! stack. That is some hundred kilobytes, and a server may have a thread for each of its clients.
//!
//! A stack only grows: pages that a deep statement has touched stay in memory for as long as the thread lives. While a
//! connection waits for its client, next to nothing of its stack is in use:
//!
//! ```text
//!   low end                                                          here                 high end
//!   | guard | ............ touched once, not in use ............ | kept | frames in use |
//!           '------------- given back: reads as zeros -----------'
//! ```

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use crate::{ALLOCATOR, process};

/// What is kept below the caller's frame: the frames of the system calls that release the rest and wait, and more than
/// the red zone of the x86-64 ABI (128 bytes).
const KEPT_BYTES: usize = 4 << 10;

/// A thread that waits again and again makes all of it anew no more often than this.
const RELEASED_FOR: Duration = Duration::from_millis(100);

thread_local! {
    /// When the thread has last released its memory because the process had too much.
    static RELEASED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Releases what the calling thread keeps for its next work, as far as that is known here.
pub fn release_thread_memory() {
    if let Some(allocator) = ALLOCATOR.get() {
        (allocator.empty_thread_cache)();
    }
    release_stack();
}

/// The calling thread is about to wait. It releases its memory if the process has too much.
#[inline]
pub fn release_if_pressed() {
    if process::was_pressed() {
        release_now_and_then();
    }
}

#[cold]
fn release_now_and_then() {
    let is_recent = |released: Instant| released.elapsed() < RELEASED_FOR;
    if RELEASED.get().is_some_and(is_recent) {
        return;
    }
    RELEASED.set(Some(Instant::now()));
    release_thread_memory();
}

/// Releases what the calling thread's stack has below its current frame. Does nothing on a stack that is not the
/// thread's own, and when the system cannot tell where it is.
#[inline(never)]
fn release_stack() {
    let marker = 0u8;
    let here = std::hint::black_box(&raw const marker).addr();
    let Some((low, high)) = stack_of_thread() else {
        return;
    };
    // SAFETY: sysconf takes and returns integers only.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Ok(page_bytes) = usize::try_from(page_bytes) else {
        return;
    };
    if !(low..high).contains(&here) || !page_bytes.is_power_of_two() {
        return;
    }
    let first = low.next_multiple_of(page_bytes);
    let end = here.saturating_sub(KEPT_BYTES) & !(page_bytes - 1);
    if end <= first {
        return;
    }
    // SAFETY: [first, end) consists of whole pages of this thread's own stack, below every frame that is in use. Stacks
    // grow downwards, `here` is in the innermost Rust frame, and what the call below itself needs is less than
    // KEPT_BYTES. Nothing refers to memory below the innermost frame, and other threads do not use this stack. The
    // mapping stays; pages that are touched again read as zeros, which no code relies on. An error leaves everything as
    // it is.
    unsafe {
        libc::madvise(
            std::ptr::with_exposed_provenance_mut(first),
            end - first,
            libc::MADV_DONTNEED,
        );
    }
}

/// The addresses of the calling thread's stack, from the lowest to behind the highest.
fn stack_of_thread() -> Option<(usize, usize)> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut low = std::ptr::null_mut();
    let mut bytes = 0;
    // SAFETY: pthread_getattr_np initialises the attributes of the calling thread, and only if it returns 0 they are
    // read and then destroyed; the two results are valid for writes.
    let found = unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        found
    };
    let low = low.addr();
    (found == 0).then(|| (low, low.saturating_add(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Touches a good part of the stack, and reports what it has made of it.
    #[inline(never)]
    fn deep(levels: usize) -> usize {
        let mut frame = [levels as u8; 4 << 10];
        std::hint::black_box(&mut frame);
        match levels {
            0 => usize::from(frame[17]),
            _ => deep(levels - 1) + usize::from(frame[levels]),
        }
    }

    /// Pages of the calling thread's stack that are in memory.
    fn resident_pages() -> usize {
        let (low, high) = stack_of_thread().expect("Linux tells");
        let first = low.next_multiple_of(4096);
        let mut resident = vec![0u8; (high - first) / 4096];
        // SAFETY: the range is this thread's stack, which is mapped, and there is a byte for each page of it.
        let result = unsafe {
            libc::mincore(
                std::ptr::with_exposed_provenance_mut(first),
                resident.len() * 4096,
                resident.as_mut_ptr(),
            )
        };
        assert_eq!(result, 0);
        resident.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn what_was_touched_and_is_not_in_use_is_given_back() {
        let thread = std::thread::Builder::new().stack_size(4 << 20);
        let counts = thread.spawn(|| {
            let result = deep(200);
            let touched = resident_pages();
            release_stack();
            let kept = resident_pages();
            // The stack works as before.
            assert_eq!(deep(200), result);
            (touched, kept)
        });
        let (touched, kept) = counts.expect("a thread").join().expect("no panic");
        assert!(touched >= 200, "{touched}");
        assert!(kept <= 8, "{kept}");
    }
}
