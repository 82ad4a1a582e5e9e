//! Memory for private copies of pages.
//!
//! A scan copies leaf after leaf into one page's worth of memory. Short ranges copy one, and getting 16 KiB, cleared,
//! would cost as much as all the rest; so a thread keeps a few buffers for its next scans, unless the process has too
//! much memory.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use sheaf_memory::process;

use crate::node::PageImage;
use crate::tree::search::new_page_image;

/// Buffers that a thread keeps: as many as a statement that joins some tables has scans at a time.
const KEPT_BUFFERS: usize = 4;

thread_local! {
    /// Threads that share it, as simulated ones do, only allocate once more.
    static KEPT: RefCell<Vec<Box<PageImage>>> = const { RefCell::new(Vec::new()) };
}

/// Gives back what the calling thread keeps for its next scans; for threads that will not have any for a while.
pub(crate) fn release_thread_buffers() {
    let _ = KEPT.try_with(|kept| kept.take());
}

/// A page's worth of bytes, of whatever was there before.
pub(super) struct PageBuffer(Option<Box<PageImage>>);

impl PageBuffer {
    pub(super) fn new() -> PageBuffer {
        // A thread that is about to end has no buffers any more.
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop());
        PageBuffer(Some(kept.ok().flatten().unwrap_or_else(new_page_image)))
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        let Some(image) = self.0.take() else {
            return;
        };
        // Without the thread's memory it is simply freed.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < KEPT_BUFFERS && !process::was_pressed() {
                kept.push(image);
            }
        });
    }
}

impl Deref for PageBuffer {
    type Target = PageImage;

    fn deref(&self) -> &PageImage {
        self.0
            .as_ref()
            .expect("a buffer is there until it is dropped")
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut PageImage {
        self.0
            .as_mut()
            .expect("a buffer is there until it is dropped")
    }
}
