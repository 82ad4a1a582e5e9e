//! The page table: one atomic 64-bit word for every page on disk.
//!
//! The table is flat. It is indexed by the page number, so finding a page is one load and needs no hash table and no
//! lock. The residency of any range of pages can be read off without touching the pages. Address space for the largest
//! possible file is reserved at the start; memory is committed in chunks of [`PAGES_PER_CHUNK`] words, each the size of
//! one frame, as the file grows. (Leis et al., "Virtual-Memory Assisted Buffer Management", SIGMOD 2023, keeps the same
//! word per page; here it also names the frame, since frames are not mapped at the page's address.)
//!
//! ```text
//!  bits 0..8   state    EVICTED, READING, EXCLUSIVE, UNLOCKED, or UNLOCKED + n for n shared latches
//!  bits 8..10  usage     NEW (no access yet), COLD (second chance spent), HOT
//!  bit  10     waiters  a thread is parked until this page is released
//!  bit  11     versions the version store may have a table for this page
//!  bit  12     settled  all writers of that table have ended, and the settled horizon knows it
//!  bits 13..40 version  goes up with every release of an exclusive latch and with every eviction
//!  bits 40..64 frame    where the page is; meaningless while it is evicted or being read
//! ```
//!
//! ```text
//!            claim                    completed
//!  EVICTED ---------> READING ---------------------> UNLOCKED <------> EXCLUSIVE
//!     ^  ^               |  failed                    |    ^  \             |
//!     |  +---------------+                            v    |   +-> SHARED n |
//!     |                                        SHARED 1 ---+                |
//!     +---------------------------------------------------------------------+  evicted: version + 1
//! ```
//!
//! The version outlives the page's stay in memory, so a reader that kept a version can tell later whether the page may
//! have changed. With 27 bits it wraps after a hundred million changes of one page, far more than can happen between an
//! optimistic read and its validation.

use crate::disk::frame_arena::FrameId;
use crate::error::{Result, StorageError};
use crate::page::{PAGE_SIZE, PageId};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Pages whose words are committed together: as many as fit in the memory of one frame.
pub const PAGES_PER_CHUNK: u64 = (PAGE_SIZE / size_of::<u64>()) as u64;

/// State of a page, the low byte of its word. Values from `UNLOCKED` on may be read optimistically.
pub mod state {
    /// Not in memory.
    pub const EVICTED: u8 = 0;
    /// Claimed by a read that is on its way.
    pub const READING: u8 = 1;
    /// Latched by one thread, which may change it.
    pub const EXCLUSIVE: u8 = 2;
    /// In memory, not latched.
    pub const UNLOCKED: u8 = 3;
    /// Most threads that can hold a shared latch at a time.
    pub const MAX_SHARED: u8 = u8::MAX - UNLOCKED;
}

/// How recently a page was used; eviction chooses by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Usage {
    /// Brought in, not accessed yet.
    New = 0,
    /// Accessed once, or not since the clock hand passed: the next victim.
    Cold = 1,
    /// Accessed again.
    Hot = 2,
}

const USAGE_SHIFT: u32 = 8;
const WAITERS_SHIFT: u32 = 10;
const HAS_VERSIONS_SHIFT: u32 = 11;
const SETTLED_SHIFT: u32 = 12;
const VERSION_SHIFT: u32 = 13;
const VERSION_BITS: u32 = 27;
const FRAME_SHIFT: u32 = 40;
const FRAME_BITS: u32 = 24;

const STATE_MASK: u64 = 0xff;
const USAGE_MASK: u64 = 0b11 << USAGE_SHIFT;
const WAITERS_MASK: u64 = 1 << WAITERS_SHIFT;
const HAS_VERSIONS_MASK: u64 = 1 << HAS_VERSIONS_SHIFT;
const SETTLED_MASK: u64 = 1 << SETTLED_SHIFT;
const VERSION_MASK: u64 = ((1 << VERSION_BITS) - 1) << VERSION_SHIFT;
const FRAME_MASK: u64 = ((1 << FRAME_BITS) - 1) << FRAME_SHIFT;

/// Most frames that a word can name: a pool of 256 GiB.
pub const MAX_FRAMES: usize = 1 << FRAME_BITS;

/// The value of a page's word. All zeros is an evicted page of version 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageWord(pub u64);

impl PageWord {
    #[inline]
    pub fn state(self) -> u8 {
        (self.0 & STATE_MASK) as u8
    }

    #[inline]
    pub fn usage(self) -> Usage {
        match (self.0 & USAGE_MASK) >> USAGE_SHIFT {
            0 => Usage::New,
            1 => Usage::Cold,
            _ => Usage::Hot,
        }
    }

    #[inline]
    pub fn has_waiters(self) -> bool {
        self.0 & WAITERS_MASK != 0
    }

    /// Whether the version store may have a table for the page. Stays with the page when it is evicted.
    #[inline]
    pub fn has_versions(self) -> bool {
        self.0 & HAS_VERSIONS_MASK != 0
    }

    /// Whether all transactions that have left versions of the page have ended, before the settled horizon
    /// ([`crate::transaction::versions`]). Goes with [`has_versions`](Self::has_versions).
    #[inline]
    pub fn is_settled(self) -> bool {
        self.0 & SETTLED_MASK != 0
    }

    #[inline]
    pub fn frame(self) -> FrameId {
        FrameId(((self.0 & FRAME_MASK) >> FRAME_SHIFT) as u32)
    }

    /// Version and frame together: equal for two readings of a page between which it was not changed.
    #[inline]
    pub fn identity(self) -> u64 {
        self.0 & (VERSION_MASK | FRAME_MASK)
    }

    /// The version alone.
    #[cfg(all(test, not(feature = "simulation")))]
    fn version(self) -> u64 {
        (self.0 & VERSION_MASK) >> VERSION_SHIFT
    }

    /// In memory and not being changed.
    #[inline]
    pub fn is_readable(self) -> bool {
        self.state() >= state::UNLOCKED
    }

    /// Readable, and no need to note the access.
    #[inline]
    pub fn is_hot_and_readable(self) -> bool {
        self.state() >= state::UNLOCKED && self.0 & USAGE_MASK == (Usage::Hot as u64) << USAGE_SHIFT
    }

    /// In memory, latched or not.
    #[inline]
    pub fn is_resident(self) -> bool {
        self.state() >= state::EXCLUSIVE
    }

    /// Threads that hold a shared latch.
    #[inline]
    pub fn shared_count(self) -> u8 {
        self.state().saturating_sub(state::UNLOCKED)
    }

    #[inline]
    pub fn with_state(self, state: u8) -> PageWord {
        PageWord(self.0 & !STATE_MASK | u64::from(state))
    }

    #[inline]
    pub fn with_usage(self, usage: Usage) -> PageWord {
        PageWord(self.0 & !USAGE_MASK | (usage as u64) << USAGE_SHIFT)
    }

    /// The word after one more access: a new page becomes cold, a cold one hot.
    #[inline]
    pub fn accessed(self) -> PageWord {
        match self.usage() {
            Usage::New => self.with_usage(Usage::Cold),
            Usage::Cold | Usage::Hot => self.with_usage(Usage::Hot),
        }
    }

    #[inline]
    pub fn with_waiters(self) -> PageWord {
        PageWord(self.0 | WAITERS_MASK)
    }

    #[inline]
    pub fn without_waiters(self) -> PageWord {
        PageWord(self.0 & !WAITERS_MASK)
    }

    /// Whether there may be a table; if there is, it is not settled.
    #[inline]
    pub fn with_versions(self, has_versions: bool) -> PageWord {
        let without = self.0 & !(HAS_VERSIONS_MASK | SETTLED_MASK);
        PageWord(without | u64::from(has_versions) << HAS_VERSIONS_SHIFT)
    }

    #[inline]
    pub fn settled(self) -> PageWord {
        PageWord(self.0 | SETTLED_MASK)
    }

    #[inline]
    pub fn with_frame(self, frame: FrameId) -> PageWord {
        PageWord(self.0 & !FRAME_MASK | u64::from(frame.0) << FRAME_SHIFT)
    }

    #[inline]
    pub fn with_next_version(self) -> PageWord {
        let next = self.0.wrapping_add(1 << VERSION_SHIFT) & VERSION_MASK;
        PageWord(self.0 & !VERSION_MASK | next)
    }
}

/// The words of all pages of one file.
pub struct PageTable {
    words: region::Words,
    /// Pages that exist: words beyond are never touched.
    pages: AtomicU64,
    limit: u64,
}

impl PageTable {
    /// Reserves address space for `limit` pages. No page exists yet.
    pub fn reserve(limit: u64) -> Result<PageTable> {
        Ok(PageTable {
            words: region::Words::reserve(limit)?,
            pages: AtomicU64::new(0),
            limit,
        })
    }

    /// Pages that exist.
    #[inline]
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Acquire)
    }

    /// Most pages that can exist.
    pub fn limit(&self) -> u64 {
        self.limit.min(self.words.limit())
    }

    /// The word of a page, if the page exists.
    #[inline]
    pub fn word(&self, page: PageId) -> Option<&AtomicU64> {
        (page.0 < self.pages()).then(|| self.words.get(page.0))
    }

    /// Chunks needed for `pages` pages.
    pub fn chunks_for(pages: u64) -> u64 {
        pages.div_ceil(PAGES_PER_CHUNK)
    }

    /// Memory committed for `pages` pages, in bytes.
    pub fn bytes_for(pages: u64) -> usize {
        Self::chunks_for(pages) as usize * PAGE_SIZE
    }

    /// Makes pages below `pages` exist, all evicted. Calls must not overlap; the caller accounts for the memory.
    pub fn grow(&self, pages: u64) -> Result<()> {
        if pages > self.limit() {
            return Err(StorageError::BadOption {
                option: "max_pages",
                reason: format!("{pages} pages are more than {}", self.limit()),
            });
        }
        if pages > self.pages() {
            self.words
                .commit(Self::chunks_for(pages) * PAGES_PER_CHUNK)?;
            self.pages.store(pages, Ordering::Release);
        }
        Ok(())
    }
}

/// Words in reserved address space.
#[cfg(not(feature = "simulation"))]
mod region {
    use std::io;
    use std::ptr::NonNull;
    use std::sync::atomic::AtomicU64;

    use crate::error::{Result, StorageError};

    pub(crate) struct Words {
        base: NonNull<AtomicU64>,
        limit: u64,
        bytes: usize,
    }

    // SAFETY: the region is owned by this value, never remapped, and holds nothing but atomics.
    unsafe impl Send for Words {}
    // SAFETY: as above.
    unsafe impl Sync for Words {}

    impl Words {
        pub(crate) fn reserve(limit: u64) -> Result<Words> {
            let bytes = super::PageTable::bytes_for(limit.max(1));
            // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no existing memory.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            let base = NonNull::new(base.cast::<AtomicU64>())
                .filter(|base| base.as_ptr().cast() != libc::MAP_FAILED)
                .ok_or_else(|| memory_error("reserving address space"))?;
            Ok(Words { base, limit, bytes })
        }

        pub(crate) fn limit(&self) -> u64 {
            self.limit
        }

        /// Makes the first `words` words usable; they are zero at first.
        pub(crate) fn commit(&self, words: u64) -> Result<()> {
            let bytes = (words as usize * size_of::<AtomicU64>()).min(self.bytes);
            // SAFETY: the range lies in this value's own mapping; giving more access to it invalidates nothing.
            let result = unsafe {
                libc::mprotect(
                    self.base.as_ptr().cast(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                )
            };
            if result == 0 {
                Ok(())
            } else {
                Err(memory_error("committing memory"))
            }
        }

        #[inline]
        pub(crate) fn get(&self, index: u64) -> &AtomicU64 {
            // SAFETY: the table hands out words below `pages` only, which were committed before `pages` was raised;
            // zero-filled memory is a valid AtomicU64.
            unsafe { &*self.base.as_ptr().add(index as usize) }
        }
    }

    impl Drop for Words {
        fn drop(&mut self) {
            // SAFETY: the mapping is this value's own and no reference into it outlives the value.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
        }
    }

    fn memory_error(operation: &'static str) -> StorageError {
        StorageError::io(operation, "the page table", 0, io::Error::last_os_error())
    }
}

/// Words on the heap: a simulated atomic is more than eight bytes and cannot be made from zeroed memory.
#[cfg(feature = "simulation")]
mod region {
    use crate::error::Result;
    use crate::sync::atomic::AtomicU64;

    /// Simulated files are small.
    const MAX_SIMULATED_PAGES: u64 = 4096;

    pub(crate) struct Words(Vec<AtomicU64>);

    impl Words {
        pub(crate) fn reserve(limit: u64) -> Result<Words> {
            Ok(Words(
                (0..limit.min(MAX_SIMULATED_PAGES))
                    .map(|_| AtomicU64::new(0))
                    .collect(),
            ))
        }

        pub(crate) fn limit(&self) -> u64 {
            self.0.len() as u64
        }

        pub(crate) fn commit(&self, _words: u64) -> Result<()> {
            Ok(())
        }

        pub(crate) fn get(&self, index: u64) -> &AtomicU64 {
            &self.0[index as usize]
        }
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_word_do_not_touch_each_other() {
        let word = PageWord(0)
            .with_state(state::UNLOCKED + 7)
            .with_usage(Usage::Hot)
            .with_frame(FrameId(MAX_FRAMES as u32 - 1))
            .with_waiters()
            .with_versions(true)
            .settled()
            .with_next_version();
        assert_eq!(word.shared_count(), 7);
        assert_eq!(word.usage(), Usage::Hot);
        assert_eq!(word.frame(), FrameId(MAX_FRAMES as u32 - 1));
        assert_eq!(word.version(), 1);
        assert!(word.has_waiters() && !word.without_waiters().has_waiters());
        assert!(word.has_versions() && !word.with_versions(false).has_versions());
        // A thread that makes a version of a settled page unsettles it.
        assert!(word.is_settled() && !word.with_versions(true).is_settled());
        assert_eq!(word.without_waiters().identity(), word.identity());
        assert_eq!(word.with_versions(false).identity(), word.identity());
        assert_ne!(word.with_next_version().identity(), word.identity());
    }

    #[test]
    fn a_version_wraps_without_touching_the_frame() {
        let word = PageWord(VERSION_MASK)
            .with_frame(FrameId(5))
            .with_next_version();
        assert_eq!((word.version(), word.frame()), (0, FrameId(5)));
    }

    #[test]
    fn pages_exist_once_the_table_has_grown_over_them() {
        let table = PageTable::reserve(1 << 30).unwrap();
        assert!(table.word(PageId(0)).is_none());
        table.grow(3000).unwrap();
        assert_eq!(table.word(PageId(2999)).unwrap().load(Ordering::Relaxed), 0);
        assert!(table.word(PageId(3000)).is_none());
        assert!(table.word(PageId(u64::MAX)).is_none());
        assert!(table.grow((1 << 30) + 1).is_err());
    }
}
