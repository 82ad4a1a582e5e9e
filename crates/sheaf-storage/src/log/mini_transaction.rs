//! Mini-transactions: the only way in which pages of the data file change.
//!
//! A mini-transaction is a change of a few pages that must be seen, and later recovered, whole or not at all. Examples
//! are an insert into a leaf, and a split with its new page and its entry in the parent.
//!
//! ```text
//!   begin -> latch pages, take new ones, give pages back -> compute -> commit( records )
//!            everything that can fail fails here                      |
//!            (no frame, no disk space, a page that cannot be read)    |  latch extent maps (the last step that can
//!            fail)
//!                                                                     |  encode the frame for the log
//!                                                                     |  announce, apply the records   cannot fail
//!                                                                     |  append the frame              cannot fail
//!                                                                     |  stamp the pages, release the latches
//! ```
//!
//! Before `commit` no byte has changed, so an error needs no repair: dropping the mini-transaction releases its latches
//! and its reserved pages. Inside of `commit` nothing can fail. A panic there can only be a bug, and aborts the
//! process: a half-applied change must never reach the disk or another thread.
//!
//! The latches are held until the records have their log positions, so records of one page are in the log in the order
//! in which they were applied. All records are one frame of the log, which recovery applies whole or not at all.
//! Appending it is a copy into memory; the room for it was ensured before the first latch was taken
//! ([`crate::log::Log::ensure_room`]). Pages are announced as dirty *before* the frame has its position: a checkpoint
//! that begins behind the frame then sees them.
//!
//! Latch order: nodes from the root down, in one level from left to right, new pages, extent maps in page order.

use std::cell::Cell;

use sheaf_memory::process;
use smallvec::SmallVec;

use crate::error::Result;
use crate::log::frame::{self, Note};
use crate::log::redo::{self, RedoRecord};
use crate::page::{Lsn, Page, PageId, TreeId, header};
use crate::page_store::PageStore;
use crate::pool::guard::ExclusiveGuard;
use crate::space::extent::{self, PageRequest};

/// A frame's memory of up to this size is kept for the thread's next one.
const KEPT_FRAME_BYTES: usize = 64 << 10;

thread_local! {
    /// Memory for encoding a frame. It is taken out while it is used, so threads that share it, as simulated ones do,
    /// only allocate once more.
    static FRAME: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Gives back what the calling thread keeps for its next frame.
pub(crate) fn release_thread_frame() {
    FRAME.take();
}

/// A page that the mini-transaction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHandle(usize);

struct HeldPage<'s> {
    guard: ExclusiveGuard<'s>,
    /// A new page: the owner of its extent, for the extent map.
    allocated: Option<TreeId>,
}

/// A change under way.
pub(crate) struct MiniTransaction<'s> {
    store: &'s PageStore,
    /// Most change one page.
    pages: SmallVec<[HeldPage<'s>; 1]>,
    /// Pages that go back to free space at commit.
    freed: Vec<PageId>,
}

impl<'s> MiniTransaction<'s> {
    pub(crate) fn begin(store: &'s PageStore) -> MiniTransaction<'s> {
        MiniTransaction {
            store,
            pages: SmallVec::new(),
            freed: Vec::new(),
        }
    }

    /// Takes over a page that is latched already.
    pub(crate) fn add(&mut self, guard: ExclusiveGuard<'s>) -> PageHandle {
        self.pages.push(HeldPage {
            guard,
            allocated: None,
        });
        PageHandle(self.pages.len() - 1)
    }

    /// Latches a page.
    pub(crate) fn latch(&mut self, page: PageId) -> Result<PageHandle> {
        let guard = self.store.pool.exclusive(page)?;
        Ok(self.add(guard))
    }

    /// Takes a new page for a tree: space on disk and a frame.
    pub(crate) fn allocate(&mut self, request: PageRequest) -> Result<PageHandle> {
        let page = self.store.reserve_page(request)?;
        match self.store.pool.create(page) {
            Ok(mut guard) => {
                // If the change is abandoned, a copy of the empty page may be on its way to disk already. It must not
                // arrive before the record that freed the page in its earlier life is durable.
                guard.set_u64_at(header::LSN, self.store.log.end().0);
                let owner = if request.own_extent {
                    request.tree
                } else {
                    TreeId(0)
                };
                self.pages.push(HeldPage {
                    guard,
                    allocated: Some(owner),
                });
                Ok(PageHandle(self.pages.len() - 1))
            }
            Err(error) => {
                self.store.space.release_page(page);
                Err(error)
            }
        }
    }

    /// Frees a page. It is held here, or no thread can reach it any more.
    pub(crate) fn free(&mut self, page: PageId) {
        self.freed.push(page);
    }

    pub(crate) fn page(&self, page: PageHandle) -> &Page {
        &self.pages[page.0].guard
    }

    pub(crate) fn page_id(&self, page: PageHandle) -> PageId {
        self.pages[page.0].guard.page_id()
    }

    /// Whether the version store may have a table for the page.
    pub(crate) fn has_versions(&self, page: PageHandle) -> bool {
        self.pages[page.0].guard.has_versions()
    }

    /// Says whether the version store has a table for the page from now on.
    pub(crate) fn note_versions(&mut self, page: PageHandle, has_versions: bool) {
        self.pages[page.0].guard.note_versions(has_versions);
    }

    /// Applies the records, in order. An error leaves every page as it was.
    pub(crate) fn commit(self, records: &[(PageHandle, RedoRecord<'_>)]) -> Result<Lsn> {
        self.commit_noted(Note::None, records, || ())
    }

    /// As [`commit`](Self::commit). `together` changes what must change together with the pages, as seen by all threads
    /// that latch or validate them; it cannot fail.
    pub(crate) fn commit_with(
        self,
        records: &[(PageHandle, RedoRecord<'_>)],
        together: impl FnOnce(),
    ) -> Result<Lsn> {
        self.commit_noted(Note::None, records, together)
    }

    /// As [`commit_with`](Self::commit_with); the log is told what this is to a transaction.
    pub(crate) fn commit_noted(
        mut self,
        note: Note<'_>,
        records: &[(PageHandle, RedoRecord<'_>)],
        together: impl FnOnce(),
    ) -> Result<Lsn> {
        let space_changes = self.latch_extent_maps()?;
        let mut frame = FRAME.take();
        let changes = records.iter().chain(&space_changes);
        frame::encode_mini_transaction(
            &mut frame,
            note,
            changes.map(|(page, record)| (self.page_id(*page), record)),
        );

        let unfinished = AbortUnlessFinished;
        for (page, _) in records.iter().chain(&space_changes) {
            self.pages[page.0].guard.announce_change();
        }
        for (page, record) in records {
            redo::apply(&mut self.pages[page.0].guard, record);
        }
        for (page, record) in &space_changes {
            redo::apply(&mut self.pages[page.0].guard, record);
        }
        let lsn = self.store.log.append(&frame);
        for (page, _) in records.iter().chain(&space_changes) {
            self.pages[page.0].guard.set_lsn(lsn);
        }
        if frame.capacity() <= KEPT_FRAME_BYTES && !process::was_pressed() {
            FRAME.set(frame);
        }
        together();
        let store = self.store;
        for held in &mut self.pages {
            held.allocated = None;
        }
        self.pages.clear();
        for page in self.freed.drain(..) {
            // Out of the pool before it is free for other threads, which would bring it in again.
            store.pool.discard(page);
            store.space.release_page(page);
        }
        std::mem::forget(unfinished);
        Ok(lsn)
    }

    /// Latches the maps of the pages that were taken and freed, and returns what is to change in them.
    fn latch_extent_maps(&mut self) -> Result<Vec<(PageHandle, RedoRecord<'static>)>> {
        let is_allocated = |held: &HeldPage<'_>| held.allocated.is_some();
        if self.freed.is_empty() && !self.pages.iter().any(is_allocated) {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        for held in &self.pages {
            if let Some(owner) = held.allocated {
                let (extent, page) = extent::locate(held.guard.page_id());
                let (map, place) = extent::map_of(extent);
                changes.push((
                    map,
                    RedoRecord::AllocatePage {
                        extent: place,
                        page,
                        owner,
                    },
                ));
            }
        }
        for &page in &self.freed {
            let (extent, page) = extent::locate(page);
            let (map, place) = extent::map_of(extent);
            changes.push((
                map,
                RedoRecord::FreePage {
                    extent: place,
                    page,
                },
            ));
        }
        changes.sort_by_key(|(map, _)| *map);
        let mut latched: Option<(PageId, PageHandle)> = None;
        let mut placed = Vec::with_capacity(changes.len());
        for (map, record) in changes {
            let handle = match latched {
                Some((page, handle)) if page == map => handle,
                _ => self.latch(map)?,
            };
            latched = Some((map, handle));
            placed.push((handle, record));
        }
        Ok(placed)
    }
}

impl Drop for MiniTransaction<'_> {
    fn drop(&mut self) {
        for HeldPage { guard, allocated } in self.pages.drain(..) {
            if allocated.is_some() {
                let page = guard.page_id();
                drop(guard);
                self.store.pool.discard(page);
                self.store.space.release_page(page);
            }
        }
    }
}

/// Ends the process when dropped: pages are in a state between two valid ones.
struct AbortUnlessFinished;

impl Drop for AbortUnlessFinished {
    fn drop(&mut self) {
        tracing::error!(
            "a mini-transaction failed while it was applied; the process ends to protect the data"
        );
        std::process::abort();
    }
}
