//! Redo of a window of the log, page after page.
//!
//! ```text
//!   log        a:7  b:3 c:7 | d:9  e:3        frames, each with changes of pages
//!   gathered   7:a  3:b  7:c  9:d  3:e        until the window is full
//!   applied    3: b e    7: a c    9: d       by page; within a page in the order of the log
//! ```
//!
//! A log names pages in the order in which statements came to them: at random. In this order, redo would wait for one
//! small read after the other, and read the same page again each time the pool has evicted it. A sorted window reads
//! each of its pages once, in the order of the file. Neighbours are merged into one request, and as many requests are
//! under way as the device works on. Pages that the log makes whole are not read at all.
//!
//! **Why it is allowed.** A change depends on its own page alone, and the changes of a page stay in order. The LSN of a
//! page says whether this page has a change, so pages may run ahead of others; a crash in between leaves what redo
//! expects to find. All that a window has for a page is applied under one latch, and a window ends where a frame ends.
//! So no page is written that has half of a frame.

use crate::durability::recovery::{Analysis, begins_life};
use crate::error::Result;
use crate::log::LogFile;
use crate::log::bytes::{Damaged, Reader};
use crate::log::redo;
use crate::log::redo_codec;
use crate::node::PageImage;
use crate::page::{Lsn, PAGE_SIZE, PageId};
use crate::page_store::PageStore;
use crate::pool::buffer_pool::LentFrames;

/// The part of the pool's frames, in percent, whose memory windows take while redo lasts. Redo touches a page once in a
/// window, so the window is the better place for it.
const LENT_PERCENT: usize = 75;

/// The smallest window holds several of the largest frames of the log. It is had in addition to the pool's memory.
const LEAST_BYTES: usize = 512 << 10;

/// Places in a window have 32 bits.
const MOST_BYTES: usize = 2 << 30;

/// Pages that are prefetched at a time. While one lot is worked on, the next one is being read.
const PREFETCH_PAGES: usize = 128;

/// A change of a page, gathered.
struct PageChange {
    page: PageId,
    /// Of its frame.
    lsn: Lsn,
    /// Where it begins in the window's bytes.
    start: u32,
}

/// See the [module](self).
pub(super) struct RedoWindow<'r> {
    store: &'r PageStore,
    file: &'r LogFile,
    analysis: &'r Analysis,
    /// What the window's memory is taken from.
    lent: LentFrames<'r>,
    /// Encoded changes, back to back, in the order of the log.
    bytes: Vec<u8>,
    changes: Vec<PageChange>,
    scratch: Box<PageImage>,
}

impl<'r> RedoWindow<'r> {
    pub(super) fn new(
        store: &'r PageStore,
        file: &'r LogFile,
        analysis: &'r Analysis,
    ) -> RedoWindow<'r> {
        let frames = store.frames as usize * LENT_PERCENT / 100;
        let lent = store.pool.lend_frames(frames.min(MOST_BYTES / PAGE_SIZE));
        RedoWindow {
            store,
            file,
            analysis,
            lent,
            bytes: Vec::new(),
            changes: Vec::new(),
            scratch: Box::new([0; PAGE_SIZE]),
        }
    }

    /// Takes the changes of a mini-transaction.
    pub(super) fn gather(&mut self, lsn: Lsn, mut changes: Reader<'_>) -> Result<(), Damaged> {
        while !changes.is_empty() {
            let record = changes.0;
            let (page, _) = redo_codec::decode(&mut changes, &mut self.scratch)?;
            let length = record.len() - changes.0.len();
            self.changes.push(PageChange {
                page,
                lsn,
                start: self.bytes.len() as u32,
            });
            self.bytes.extend_from_slice(&record[..length]);
        }
        Ok(())
    }

    /// Whether it is time to [`apply`](Self::apply).
    pub(super) fn is_full(&self) -> bool {
        let used = self.bytes.len() + self.changes.len() * size_of::<PageChange>();
        used >= self.lent.bytes().max(LEAST_BYTES)
    }

    /// Brings all pages of the window up to date, and empties it.
    pub(super) fn apply(&mut self) -> Result<()> {
        let mut changes = std::mem::take(&mut self.changes);
        // Places in the window are in the order of the log.
        changes.sort_unstable_by_key(|change| (change.page, change.start));
        let pages: Vec<&[PageChange]> = changes.chunk_by(|a, b| a.page == b.page).collect();
        let mut prefetched = 0;
        for (number, page) in pages.iter().enumerate() {
            while prefetched < pages.len() && prefetched < number + 2 * PREFETCH_PAGES {
                let next = &pages[prefetched..pages.len().min(prefetched + PREFETCH_PAGES)];
                self.prefetch(next)?;
                prefetched += next.len();
            }
            self.redo_page(page)?;
        }
        drop(pages);
        changes.clear();
        self.changes = changes;
        self.bytes.clear();
        Ok(())
    }

    /// Starts reading the pages that will be read.
    fn prefetch(&mut self, pages: &[&[PageChange]]) -> Result<()> {
        let mut wanted = Vec::with_capacity(pages.len());
        for changes in pages {
            let changes = self.of_last_life(changes);
            if let Some(first) = changes.first()
                && !self.makes_page_whole(first)?
            {
                wanted.push(first.page);
            }
        }
        self.store.pool.prefetch(&wanted);
        Ok(())
    }

    /// Without what was done to the page before the last record that began or ended a life of it.
    fn of_last_life<'c>(&self, changes: &'c [PageChange]) -> &'c [PageChange] {
        let Some(first) = changes.first() else {
            return changes;
        };
        let life = self.analysis.life_of(first.page);
        &changes[changes.partition_point(|change| change.lsn < life)..]
    }

    /// Whether a page's last life begins with this change of it: then what the disk has of it does not count.
    fn makes_page_whole(&mut self, first: &PageChange) -> Result<bool> {
        if first.lsn != self.analysis.life_of(first.page) {
            return Ok(false);
        }
        let mut bytes = Reader(&self.bytes[first.start as usize..]);
        let decoded = redo_codec::decode(&mut bytes, &mut self.scratch);
        let (_, record) = decoded.map_err(|Damaged| damaged(self.file, first))?;
        Ok(begins_life(&record))
    }

    /// Applies the changes of one page that it does not have yet.
    fn redo_page(&mut self, changes: &[PageChange]) -> Result<()> {
        let changes = self.of_last_life(changes);
        let Some(first) = changes.first() else {
            return Ok(());
        };
        let store = self.store;
        let (mut page, has) = if self.makes_page_whole(first)? {
            (store.pool.create(first.page)?, Lsn(0))
        } else {
            let page = store.pool.exclusive(first.page)?;
            let has = page.lsn();
            (page, has)
        };
        let missing = &changes[changes.partition_point(|change| change.lsn <= has)..];
        for change in missing {
            let mut bytes = Reader(&self.bytes[change.start as usize..]);
            let decoded = redo_codec::decode(&mut bytes, &mut self.scratch);
            let (_, record) = decoded.map_err(|Damaged| damaged(self.file, change))?;
            redo::apply(&mut page, &record);
        }
        if let Some(newest) = missing.last() {
            page.mark_dirty(newest.lsn);
        }
        Ok(())
    }
}

fn damaged(file: &LogFile, change: &PageChange) -> crate::error::StorageError {
    file.damaged(format!("the record at {} is damaged", change.lsn.0))
}
