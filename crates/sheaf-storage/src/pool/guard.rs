//! Page guards: the type of a guard says what may be done with a page.
//!
//! | guard | others may | reads | writes shared memory |
//! |---|---|---|---|
//! | [`OptimisticGuard`] | do anything, also evict the page | word by word, then [`validate`](OptimisticGuard::validate) | no |
//! | [`SharedGuard`] | read | as a [`Page`] | the page's word, twice |
//! | [`ExclusiveGuard`] | nothing | and changes, as a [`Page`] | the page's word, twice |
//!
//! An optimistic guard is a remembered version. Everything read through it is a guess until `validate` succeeds. It
//! succeeds if the page was readable all the time and its version is still the same. So no page id, offset or key from
//! a page may be acted on before. Readers that only guess and check leave no trace in the caches of the other cores,
//! which is why a descent through a hot root scales.
//!
//! **Why validation is sound.** A writer makes the word EXCLUSIVE, then passes a release fence, then changes the page,
//! then releases the word with a higher version. The reader loads the word, loads from the page, passes an acquire
//! fence, and loads the word again. If any of its loads saw a changed byte, the two fences make its second look at the
//! word see EXCLUSIVE or something later. If it saw none, what it read is the page of that version. A frame gets
//! another page only by way of the free list. Its page's word says EVICTED before it is put there. The thread that
//! takes it from there passes a release fence before anything is put into it: the same argument.
//!
//! **Descending.** Read the child's number from the parent, take the child's guard, then validate the parent *again*:
//! the child's version was then read while the parent still pointed to it.
//!
//! Guards release what they hold when they are dropped, also by a panic. They are tied to their thread.

use std::cmp::Ordering as Comparison;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use crate::page::{Lsn, Page, PageId, header};
use crate::pool::latch;
use crate::pool::optimistic_read::OptimisticPage;
use crate::pool::page_table::PageWord;
use crate::pool::pool_core::PoolCore;
use crate::sync::atomic::{AtomicU64, Ordering, fence};

/// The page changed while it was read without a latch: start again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restart;

/// A page's version: as long as it is the same, the page has not changed and has not left memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageVersion(pub(crate) u64);

/// Permission to look at a page while others may change it.
#[derive(Clone, Copy)]
pub struct OptimisticGuard<'p> {
    core: &'p PoolCore,
    word: &'p AtomicU64,
    page: PageId,
    read: PageWord,
    contents: OptimisticPage,
}

impl<'p> OptimisticGuard<'p> {
    /// A guard for the version of the page that `read`, a readable word, names.
    #[inline]
    pub(crate) fn new(
        core: &'p PoolCore,
        word: &'p AtomicU64,
        page: PageId,
        read: PageWord,
    ) -> OptimisticGuard<'p> {
        debug_assert!(read.is_readable());
        let frame = core.arena().pointer(read.frame());
        // SAFETY: frames are aligned to pages and stay mapped as long as the core that `'p` borrows.
        let contents = unsafe { OptimisticPage::new(frame) };
        OptimisticGuard {
            core,
            word,
            page,
            read,
            contents,
        }
    }

    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// The version that was current when the guard was made.
    pub fn version(&self) -> PageVersion {
        PageVersion(self.read.identity())
    }

    /// Whether the version store may have a table for the page.
    #[inline]
    pub(crate) fn has_versions(&self) -> bool {
        self.read.has_versions()
    }

    /// Whether the version store may have a table for the page with a writer that has perhaps not ended.
    #[inline]
    pub(crate) fn has_unsettled_versions(&self) -> bool {
        self.read.has_versions() && !self.read.is_settled()
    }

    /// All transactions that have left versions of the page have ended, at or before the settled horizon, which was
    /// moved there. The caller keeps others from adding versions meanwhile.
    pub(crate) fn settle_versions(&self) {
        // Released, so that a thread that sees the mark sees the horizon.
        self.word
            .fetch_or(PageWord(0).settled().0, Ordering::Release);
    }

    /// There turned out to be no table: clears the mark, so that others need not look. Only if the page is still as it
    /// was read, because only a thread that changes the page makes a table.
    #[cold]
    pub(crate) fn forget_versions(&self) {
        let seen = PageWord(self.word.load(Ordering::Relaxed));
        if seen.is_readable() && seen.identity() == self.read.identity() {
            // Losing a race is fine: the next reader tries again.
            let _ = latch::exchange(self.word, seen, seen.with_versions(false));
        }
    }

    /// The byte at `offset`. This and the other reads give 0 for what does not lie in the page.
    #[inline]
    pub fn read_u8(&self, offset: usize) -> u8 {
        self.contents.read::<1>(offset) as u8
    }

    /// The little-endian `u16` at `offset`.
    #[inline]
    pub fn read_u16(&self, offset: usize) -> u16 {
        self.contents.read::<2>(offset) as u16
    }

    /// The little-endian `u32` at `offset`.
    #[inline]
    pub fn read_u32(&self, offset: usize) -> u32 {
        self.contents.read::<4>(offset) as u32
    }

    /// The little-endian `u64` at `offset`.
    #[inline]
    pub fn read_u64(&self, offset: usize) -> u64 {
        self.contents.read::<8>(offset)
    }

    /// As [`read_u64`](Self::read_u64), at a multiple of eight: one load.
    #[inline]
    pub(crate) fn read_word(&self, offset: usize) -> u64 {
        self.contents.read_word(offset)
    }

    /// Asks memory for bytes of the page and does not wait.
    #[inline]
    pub(crate) fn ask_for(&self, offset: usize, length: usize) {
        self.contents.ask_for(offset, length);
    }

    /// Copies bytes out of the page; what would lie past its end is zero.
    #[inline]
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) {
        self.contents.copy_out(offset, into);
    }

    /// Orders the `length` bytes at `offset` against `other`, as memcmp does; a proper prefix comes first.
    #[inline]
    pub fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Comparison {
        self.contents.compare(offset, length, other)
    }

    /// Whether everything read so far is what the page held at one point in time.
    #[inline]
    pub fn validate(&self) -> Result<(), Restart> {
        fence(Ordering::Acquire);
        let now = PageWord(self.word.load(Ordering::Relaxed));
        if now.is_readable() && now.identity() == self.read.identity() {
            Ok(())
        } else {
            Err(Restart)
        }
    }

    /// An exclusive guard for the very version that was read. Never waits: if the page is latched, this fails too.
    pub fn upgrade(self) -> Result<ExclusiveGuard<'p>, Restart> {
        match latch::try_latch_unchanged(self.word, self.read, true) {
            Ok(latched) => Ok(ExclusiveGuard::new(
                self.core, self.word, self.page, latched,
            )),
            Err(_) => Err(Restart),
        }
    }

    /// A shared guard for the very version that was read. Never waits.
    pub fn to_shared(self) -> Result<SharedGuard<'p>, Restart> {
        match latch::try_latch_unchanged(self.word, self.read, false) {
            Ok(latched) => Ok(SharedGuard::new(self.core, self.word, self.page, latched)),
            Err(_) => Err(Restart),
        }
    }
}

/// Permission to read a page that does not change meanwhile.
pub struct SharedGuard<'p> {
    core: &'p PoolCore,
    word: &'p AtomicU64,
    page: PageId,
    latched: PageWord,
    contents: *const Page,
}

impl<'p> SharedGuard<'p> {
    /// Takes over a shared latch.
    #[inline]
    pub(crate) fn new(
        core: &'p PoolCore,
        word: &'p AtomicU64,
        page: PageId,
        latched: PageWord,
    ) -> SharedGuard<'p> {
        debug_assert!(latched.shared_count() > 0);
        let contents = core.arena().page(latched.frame());
        SharedGuard {
            core,
            word,
            page,
            latched,
            contents,
        }
    }

    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// The page's present version.
    pub fn version(&self) -> PageVersion {
        PageVersion(self.latched.identity())
    }
}

impl Deref for SharedGuard<'_> {
    type Target = Page;

    #[inline]
    fn deref(&self) -> &Page {
        // SAFETY: the frame is mapped, aligned and initialised; the shared latch keeps the page in it and excludes
        // every writer until the guard is dropped.
        unsafe { &*self.contents }
    }
}

impl Drop for SharedGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.core.parking().release_shared(self.page, self.word);
    }
}

/// Permission to change a page.
///
/// A change must be announced by [`mark_dirty`](ExclusiveGuard::mark_dirty), or it may be lost when the page is
/// evicted. Dropping the guard publishes a new version, changed or not.
pub struct ExclusiveGuard<'p> {
    core: &'p PoolCore,
    word: &'p AtomicU64,
    page: PageId,
    latched: PageWord,
    contents: *mut Page,
}

impl<'p> ExclusiveGuard<'p> {
    /// Takes over an exclusive latch.
    #[inline]
    pub(crate) fn new(
        core: &'p PoolCore,
        word: &'p AtomicU64,
        page: PageId,
        latched: PageWord,
    ) -> ExclusiveGuard<'p> {
        let contents = core.arena().page(latched.frame());
        ExclusiveGuard {
            core,
            word,
            page,
            latched,
            contents,
        }
    }

    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// The version that a guard of this page will have once this one is dropped.
    pub fn next_version(&self) -> PageVersion {
        PageVersion(self.latched.with_next_version().identity())
    }

    /// Whether the version store may have a table for the page.
    #[inline]
    pub(crate) fn has_versions(&self) -> bool {
        self.latched.has_versions()
    }

    /// Whether the version store may have a table for the page with a writer that has perhaps not ended.
    #[inline]
    pub(crate) fn has_unsettled_versions(&self) -> bool {
        self.latched.has_versions() && !self.latched.is_settled()
    }

    /// Says whether the version store has a table for the page; others learn it when the latch is released. A table is
    /// not settled then.
    #[inline]
    pub(crate) fn note_versions(&mut self, has_versions: bool) {
        self.latched = self.latched.with_versions(has_versions);
    }

    /// The page was changed by the log record at `lsn`: stamps the page, and schedules it for write-back.
    pub fn mark_dirty(&mut self, lsn: Lsn) {
        self.set_u64_at(header::LSN, lsn.0);
        self.announce_change();
    }

    /// The page is about to be changed: schedules it for write-back. A checkpoint that takes its place in the log
    /// later sees the page as dirty.
    pub(crate) fn announce_change(&mut self) {
        self.core.mark_dirty(self.latched.frame());
    }

    /// Keeps a shared guard, of the version that was just made.
    pub fn downgrade(self) -> SharedGuard<'p> {
        let guard = ManuallyDrop::new(self);
        let shared = guard
            .latched
            .with_next_version()
            .with_state(crate::pool::page_table::state::UNLOCKED + 1);
        guard.core.parking().replace(guard.page, guard.word, shared);
        SharedGuard::new(guard.core, guard.word, guard.page, shared)
    }
}

impl Deref for ExclusiveGuard<'_> {
    type Target = Page;

    #[inline]
    fn deref(&self) -> &Page {
        // SAFETY: the frame is mapped, aligned and initialised; the exclusive latch keeps the page in it and excludes
        // every other latch. Optimistic readers look at it through atomic loads only and discard what they saw.
        unsafe { &*self.contents }
    }
}

impl DerefMut for ExclusiveGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Page {
        // SAFETY: as for `deref`; the guard is borrowed mutably, so this is the only reference.
        unsafe { &mut *self.contents }
    }
}

impl Drop for ExclusiveGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let released = self
            .latched
            .with_next_version()
            .with_state(crate::pool::page_table::state::UNLOCKED);
        self.core.parking().replace(self.page, self.word, released);
    }
}
