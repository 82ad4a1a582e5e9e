//! The page store: the data file's pages, its free space, and whether the file on disk is whole.
//!
//! Until there is a log, the file on disk is consistent only right after a *checkpoint*: everything is written, and
//! the file header says *clean*. Before the first change that follows, the mark is taken away, durably. A file that
//! is opened without the mark was in use when its process ended; it may hold half of a change, so it is refused.
//!
//! Whoever changes pages holds a [`ChangePermit`] for as long as the change must not be cut in two: a statement until
//! it ends, a bulk build while it enters its tree. A checkpoint waits for none of them: it happens when there are none.

use std::sync::Arc;

use crate::buffer_pool::BufferPool;
use crate::disk::{self, Disk, FileId, Operation};
use crate::error::{Result, StorageError};
use crate::extent::{
    self, EXTENTS_PER_GROUP, FILE_HEADER_PAGE, PAGES_PER_EXTENT, PageRequest, Space,
};
use crate::file_header::FileHeader;
use crate::mini_transaction::{LogPosition, MiniTransaction};
use crate::page::{Lsn, PageId, TreeId};
use crate::redo::RedoRecord;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};
use crate::transaction::TransactionId;
use crate::transaction_system::TransactionSystem;

/// Pages, space and log of one data file.
pub(crate) struct PageStore {
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) space: Space,
    pub(crate) log: LogPosition,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) file: FileId,
    /// Frames of the pool when it was opened.
    pub(crate) frames: u64,
    /// What transactions share.
    pub(crate) transactions: TransactionSystem,
    next_tree: AtomicU64,
    next_transaction: AtomicU64,
    changes: Mutex<Changes>,
    changes_ended: Condvar,
    /// Held while the file grows.
    growth: Mutex<()>,
}

struct Changes {
    permits: usize,
    /// Permits given so far.
    begun: u64,
    clean: bool,
    /// Why no more changes are accepted, if they are not.
    refused: Option<StorageError>,
}

/// The right to change pages. The file on disk is not called clean while one exists.
pub(crate) struct ChangePermit {
    store: Arc<PageStore>,
}

impl Drop for ChangePermit {
    fn drop(&mut self) {
        self.store.changes.lock().permits -= 1;
        self.store.changes_ended.notify_all();
    }
}

impl PageStore {
    /// Makes the first extent of an empty file. The header is written by the first checkpoint.
    pub(crate) fn create(
        pool: Arc<BufferPool>,
        disk: Arc<dyn Disk>,
        file: FileId,
        transactions: TransactionSystem,
        first_tree: TreeId,
    ) -> Result<PageStore> {
        pool.extend_to(PAGES_PER_EXTENT)?;
        let header = FileHeader::new(first_tree);
        let store = PageStore::with_header(pool, disk, file, transactions, &header, false);
        store.space.add_extent(extent::FIXED_PAGES, TreeId(0));
        let mut change = MiniTransaction::begin(&store);
        let map = change.add(store.pool.create(extent::map_of_group(0))?);
        let header_page = change.add(store.pool.create(FILE_HEADER_PAGE)?);
        change.commit(&[
            (map, RedoRecord::FormatExtentMap { group: 0 }),
            (
                map,
                RedoRecord::SetExtent {
                    extent: 0,
                    used: extent::FIXED_PAGES,
                    owner: TreeId(0),
                },
            ),
            (
                header_page,
                RedoRecord::WriteFileHeader { contents: &header },
            ),
        ])?;
        Ok(store)
    }

    /// Reads the header and the extent maps of a file.
    pub(crate) fn open(
        pool: Arc<BufferPool>,
        disk: Arc<dyn Disk>,
        file: FileId,
        transactions: TransactionSystem,
    ) -> Result<PageStore> {
        let file_name = disk.file_name(file);
        let header = FileHeader::read(&*pool.shared(FILE_HEADER_PAGE)?).map_err(|reason| {
            StorageError::UnknownFormat {
                file: file_name.clone(),
                reason,
            }
        })?;
        if !header.clean {
            return Err(StorageError::UnknownFormat {
                file: file_name,
                reason: "the file was in use when its process ended, and there is no log to repair it from".into(),
            });
        }
        let extents = header.extents as usize;
        if pool.page_count() < header.extents * PAGES_PER_EXTENT {
            return Err(StorageError::UnknownFormat {
                file: file_name,
                reason: format!(
                    "the file has {} pages, its header says {extents} extents",
                    pool.page_count()
                ),
            });
        }
        let store = PageStore::with_header(pool, disk, file, transactions, &header, true);
        for group in 0..extents.div_ceil(EXTENTS_PER_GROUP) {
            let map = store.pool.shared(extent::map_of_group(group))?;
            for place in 0..EXTENTS_PER_GROUP.min(extents - group * EXTENTS_PER_GROUP) {
                let (used, owner) = extent::map_page::extent(&map, place);
                store.space.add_extent(used, owner);
            }
        }
        Ok(store)
    }

    fn with_header(
        pool: Arc<BufferPool>,
        disk: Arc<dyn Disk>,
        file: FileId,
        transactions: TransactionSystem,
        header: &FileHeader,
        clean: bool,
    ) -> PageStore {
        // Snapshots see everything that the log has so far.
        let last_lsn = Lsn(header.next_lsn.0.saturating_sub(1));
        transactions.snapshots.advance_to(last_lsn);
        PageStore {
            frames: pool.counters().pages_total,
            pool,
            space: Space::new(),
            transactions,
            log: LogPosition::new(header.next_lsn),
            disk,
            file,
            next_tree: AtomicU64::new(header.next_tree.0),
            next_transaction: AtomicU64::new(1),
            changes: Mutex::new(Changes {
                permits: 0,
                begun: 0,
                clean,
                refused: None,
            }),
            changes_ended: Condvar::new(),
            growth: Mutex::new(()),
        }
    }

    pub(crate) fn file_name(&self) -> String {
        self.disk.file_name(self.file)
    }

    /// Makes durable what was written past the buffer pool.
    pub(crate) fn sync_file(&self) -> Result<()> {
        disk::run(&*self.disk, Operation::Sync { file: self.file })?;
        Ok(())
    }

    /// The error for a page that is intact but cannot be what it claims.
    pub(crate) fn malformed(
        &self,
        tree: TreeId,
        page: PageId,
        reason: impl Into<String>,
    ) -> StorageError {
        StorageError::Malformed {
            file: self.file_name(),
            page,
            tree,
            reason: reason.into(),
        }
    }

    /// A number that no tree had before.
    pub(crate) fn new_tree_id(&self) -> TreeId {
        TreeId(self.next_tree.fetch_add(1, Ordering::Relaxed))
    }

    /// A number that no transaction had before.
    pub(crate) fn new_transaction_id(&self) -> TransactionId {
        TransactionId(self.next_transaction.fetch_add(1, Ordering::Relaxed))
    }

    /// Reserves a page; the file grows when it has none left.
    pub(crate) fn reserve_page(&self, request: PageRequest) -> Result<PageId> {
        loop {
            match self.space.allocate_page(request) {
                Ok(page) => return Ok(page),
                Err(extent::NoFreeExtent) => self.grow()?,
            }
        }
    }

    /// Reserves an extent; the file grows when it has none left.
    pub(crate) fn reserve_extent(&self, tree: TreeId, previous: Option<usize>) -> Result<usize> {
        loop {
            match self.space.allocate_extent(tree, previous) {
                Ok(extent) => return Ok(extent),
                Err(extent::NoFreeExtent) => self.grow()?,
            }
        }
    }

    /// Makes the file longer. A full disk is an error and changes nothing.
    fn grow(&self) -> Result<()> {
        let before = self.space.extent_count();
        let _growth = self.growth.lock();
        if self.space.extent_count() != before {
            return Ok(());
        }
        let wanted = self.space.growth();
        let fewest = wanted.min(2);
        let grown = match self
            .pool
            .extend_to((before + wanted) as u64 * PAGES_PER_EXTENT)
        {
            Ok(()) => wanted,
            // Perhaps a little is left.
            Err(_) if fewest < wanted => {
                self.pool
                    .extend_to((before + fewest) as u64 * PAGES_PER_EXTENT)?;
                fewest
            }
            Err(error) => return Err(error),
        };
        for extent in before..before + grown {
            if extent.is_multiple_of(EXTENTS_PER_GROUP) {
                self.create_extent_map(extent / EXTENTS_PER_GROUP)?;
            }
            self.space.add_free_extent();
        }
        Ok(())
    }

    fn create_extent_map(&self, group: usize) -> Result<()> {
        let mut change = MiniTransaction::begin(self);
        let map = change.add(self.pool.create(extent::map_of_group(group))?);
        let used = extent::GROUP_PAGES;
        change.commit(&[
            (
                map,
                RedoRecord::FormatExtentMap {
                    group: group as u64,
                },
            ),
            (
                map,
                RedoRecord::SetExtent {
                    extent: 0,
                    used,
                    owner: TreeId(0),
                },
            ),
        ])?;
        Ok(())
    }

    /// Enters in the extent maps which pages of these extents (ascending) a tree uses, and after that in memory.
    /// Pages that become free must have been discarded from the pool.
    pub(crate) fn set_extents(&self, extents: &[(usize, u64)], owner: TreeId) -> Result<()> {
        for group in
            extents.chunk_by(|(a, _), (b, _)| a / EXTENTS_PER_GROUP == b / EXTENTS_PER_GROUP)
        {
            let mut change = MiniTransaction::begin(self);
            let map = change.latch(extent::map_of(group[0].0).0)?;
            let records: Vec<_> = group
                .iter()
                .map(|&(extent, used)| {
                    let place = extent::map_of(extent).1;
                    (
                        map,
                        RedoRecord::SetExtent {
                            extent: place,
                            used,
                            owner,
                        },
                    )
                })
                .collect();
            change.commit(&records)?;
            for &(extent, used) in group {
                self.space.set_used(extent, used);
            }
        }
        Ok(())
    }

    /// Frees single pages (ascending) that nobody can reach any more.
    pub(crate) fn free_pages(&self, pages: &[PageId]) -> Result<()> {
        let group = |page: &PageId| extent::locate(*page).0 / EXTENTS_PER_GROUP;
        for pages in pages.chunk_by(|a, b| group(a) == group(b)) {
            let mut change = MiniTransaction::begin(self);
            pages.iter().for_each(|&page| change.free(page));
            change.commit(&[])?;
        }
        Ok(())
    }

    /// Allows changes until the permit is dropped. The first one after a checkpoint takes the clean mark away.
    pub(crate) fn begin_changes(self: &Arc<Self>) -> Result<ChangePermit> {
        let mut changes = self.changes.lock();
        if let Some(reason) = &changes.refused {
            return Err(reason.clone());
        }
        if changes.clean {
            // Nothing else is dirty now, so this writes one page.
            self.write_header(false)?;
            self.pool.flush_all()?;
            changes.clean = false;
        }
        changes.permits += 1;
        changes.begun += 1;
        Ok(ChangePermit {
            store: self.clone(),
        })
    }

    /// A change was left half done: accepts no more of them, and never calls the file clean.
    pub(crate) fn refuse_changes(&self, reason: StorageError) {
        self.changes.lock().refused.get_or_insert(reason);
    }

    /// Writes everything and calls the file clean, if no change is under way; false if one is. `prepare` may make
    /// last changes of its own.
    pub(crate) fn checkpoint(&self, prepare: impl FnOnce() -> Result<()>) -> Result<bool> {
        let is_clean = self.changes.lock().clean;
        if !is_clean {
            // Most of the writing is done while statements may still begin.
            self.pool.flush_all()?;
        }
        let mut changes = self.changes.lock();
        if changes.permits > 0 {
            return Ok(false);
        }
        if let Some(reason) = &changes.refused {
            return Err(reason.clone());
        }
        self.checkpoint_locked(&mut changes, prepare)?;
        Ok(true)
    }

    /// Changes begun so far.
    pub(crate) fn changes_begun(&self) -> u64 {
        self.changes.lock().begun
    }

    /// Waits until no change is under way, accepts no more of them, and makes a last checkpoint.
    pub(crate) fn close(&self, prepare: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut changes = self.changes.lock();
        match changes.refused.replace(StorageError::Closed) {
            None => {}
            Some(StorageError::Closed) => return Ok(()),
            Some(reason) => return Err(reason),
        }
        while changes.permits > 0 {
            changes = self.changes_ended.wait(changes);
        }
        self.checkpoint_locked(&mut changes, prepare)
    }

    fn checkpoint_locked(
        &self,
        changes: &mut Changes,
        prepare: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if changes.clean {
            return Ok(());
        }
        prepare()?;
        self.pool.flush_all()?;
        self.write_header(true)?;
        self.pool.flush_all()?;
        changes.clean = true;
        Ok(())
    }

    fn write_header(&self, clean: bool) -> Result<()> {
        let mut change = MiniTransaction::begin(self);
        let page = change.latch(FILE_HEADER_PAGE)?;
        let header = FileHeader {
            clean,
            extents: self.space.extent_count() as u64,
            next_tree: TreeId(self.next_tree.load(Ordering::Relaxed)),
            next_lsn: self.log.next(),
            ..FileHeader::new(TreeId(0))
        };
        change.commit(&[(page, RedoRecord::WriteFileHeader { contents: &header })])?;
        Ok(())
    }
}
