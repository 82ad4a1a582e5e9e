//! Bulk build: a tree from sorted entries, bottom up.
//!
//! Leaves are filled one after the other to the fill factor. They are written an extent (1 MiB) at a time, in order,
//! past the buffer pool. So a build neither evicts what others use nor waits for single pages, and a later scan in key
//! order reads the disk in order. Two extents are under way at a time: one is being filled while the other is being
//! written.
//!
//! The levels above grow on the way. When a leaf is finished, its low fence and its page number become an entry of the
//! open node of the level above, and so on up. There is one open node a level, so memory is two extents and a few
//! pages, whatever the size of the tree. Inner nodes go through the buffer pool.
//!
//! **The log** has the inner nodes, and which extents the tree gets, but not the leaves: they are durable before the
//! tree can be seen. While they are needed in the log ([`crate::log::unlogged`]), each extent that was written is
//! entered in its map at once, and images of its leaves follow in the log.
//!
//! **Fences.** A leaf ends with the separator between its last key and the next leaf's first key. So it can be laid out
//! only when that key is known, and the prefix that its keys shed depends on the separator. The builder collects
//! entries until they surely overflow the leaf, remembers the last place where a cut would have given a leaf that fits,
//! and cuts there.
//!
//! A tree of few leaves is kept in memory to the end and goes to shared extents like any small tree. Until `finish` has
//! entered the tree in the directory, no other thread can see it; a builder that is dropped before frees its pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::disk::{AlignedBuffer, Buffers, Completion, Operation};
use crate::error::{Result, StorageError};
use crate::log::frame::{self, Note};
use crate::log::mini_transaction::MiniTransaction;
use crate::log::redo::RedoRecord;
use crate::log::unlogged::UnloggedWrite;
use crate::node::{NODE_CAPACITY, Node, NodeMut, common_prefix, entry_bytes};
use crate::page::{Lsn, PAGE_SIZE, Page, PageId, TreeId};
use crate::page_store::PageStore;
use crate::space::extent::{self, PAGES_PER_EXTENT, PageRequest, SMALL_TREE_LEAVES};
use crate::space::orphaned_pages::PagesWithoutTree;
use crate::storage::Storage;
use crate::sync::{Mutex, thread};
use crate::tree::search::new_page_image;
use crate::tree::{Counts, insert};

/// Inner nodes are filled to this share of a page; they take single separators later.
const INNER_FILL_PERCENT: usize = 95;

/// An entry that waits for its leaf to be laid out: where its bytes are.
#[derive(Clone, Copy)]
struct PendingEntry {
    start: usize,
    key_length: usize,
    value_length: usize,
    /// What its key has in common with the key before it.
    common_with_previous: usize,
}

/// Entries of the leaf that is being collected.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    entries: Vec<PendingEntry>,
    /// Bytes of the entries as if no prefix were shed.
    full_bytes: usize,
    low_fence: Vec<u8>,
    /// What the last key has in common with the low fence, and so an upper limit for the prefix of the leaf.
    common_with_low: usize,
    /// Entries before the last place where a cut gives a leaf that fits.
    best_cut: usize,
}

impl Pending {
    fn key(&self, entry: &PendingEntry) -> &[u8] {
        &self.bytes[entry.start..entry.start + entry.key_length]
    }

    fn value(&self, entry: &PendingEntry) -> &[u8] {
        let start = entry.start + entry.key_length;
        &self.bytes[start..start + entry.value_length]
    }

    fn last_key(&self) -> Option<&[u8]> {
        self.entries.last().map(|entry| self.key(entry))
    }

    /// The low fence of a leaf that begins with entry `first`.
    fn separator_before(&self, first: usize) -> &[u8] {
        let entry = &self.entries[first];
        &self.key(entry)[..entry.common_with_previous + 1]
    }

    fn push(&mut self, key: &[u8], value: &[u8], common_with_previous: usize) {
        self.common_with_low = if self.entries.is_empty() {
            common_prefix(&self.low_fence, key)
        } else {
            self.common_with_low.min(common_with_previous)
        };
        self.entries.push(PendingEntry {
            start: self.bytes.len(),
            key_length: key.len(),
            value_length: value.len(),
            common_with_previous,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.full_bytes += entry_bytes(key.len(), value.len());
    }

    fn with_low_fence(low_fence: Vec<u8>) -> Pending {
        Pending {
            low_fence,
            ..Pending::default()
        }
    }

    /// Bytes that a leaf of all entries uses.
    fn leaf_bytes(&self, prefix: usize, high_fence: usize) -> usize {
        self.low_fence.len() + high_fence + self.full_bytes - self.entries.len() * prefix
    }

    /// The next key shares `common` bytes with the last one. Notes whether a leaf that ended between them would fit.
    fn consider_cut(&mut self, common: usize, target_bytes: usize) {
        let prefix = self.common_with_low.min(common);
        if self.leaf_bytes(prefix, common + 1) <= target_bytes || self.best_cut == 0 {
            self.best_cut = self.entries.len();
        }
    }

    /// Whether the entries are too many for a leaf, whatever comes. The prefix can only become shorter: what is too
    /// much now stays so.
    fn overflows(&self, target_bytes: usize) -> bool {
        self.leaf_bytes(self.common_with_low, 0) > target_bytes
    }
}

/// The open node of a level above the leaves.
struct OpenNode {
    low_fence: Vec<u8>,
    /// Separators and children. The first separator is the low fence.
    children: Vec<(Vec<u8>, PageId)>,
    bytes: usize,
}

/// Where finished leaves go.
enum Leaves {
    /// The tree is small so far: leaves in memory, without page numbers.
    InMemory(Vec<(Vec<u8>, Box<Page>)>),
    InExtents(ExtentWriter),
}

/// Takes entries in strictly ascending key order and makes a tree of them.
pub struct BulkBuilder {
    storage: Arc<Storage>,
    tree: TreeId,
    target_bytes: usize,
    pending: Pending,
    leaves: Option<Leaves>,
    /// Open nodes of levels 1, 2, …
    levels: Vec<OpenNode>,
    /// Finished inner nodes.
    inner_pages: Vec<PageId>,
    /// Leaves that were put into shared extents.
    shared_leaves: Vec<PageId>,
    counts: Counts,
    finished: bool,
    /// Until the tree is in the directory, and while pages are freed.
    _without_tree: PagesWithoutTree,
}

impl BulkBuilder {
    /// A builder of a new tree. It holds up to two extents (2 MiB) of memory.
    pub fn new(storage: &Arc<Storage>) -> Result<BulkBuilder> {
        let store = storage.store();
        Ok(BulkBuilder {
            tree: store.new_tree_id(),
            target_bytes: (NODE_CAPACITY as f64 * f64::from(storage.fill_factor())) as usize,
            storage: storage.clone(),
            pending: Pending::default(),
            leaves: Some(Leaves::InMemory(Vec::new())),
            levels: Vec::new(),
            inner_pages: Vec::new(),
            shared_leaves: Vec::new(),
            counts: Counts::default(),
            finished: false,
            _without_tree: PagesWithoutTree::of(store),
        })
    }

    /// Entries appended so far.
    pub fn entries(&self) -> u64 {
        self.counts.entries
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// `DuplicateKey` for a key equal to its predecessor, `UnsortedKeys` for a smaller one; both leave the builder as
    /// it was. After any other error the builder can only be dropped.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        insert::check_entry(key, value)?;
        let common = match self.pending.last_key() {
            Some(last) => {
                let common = common_prefix(last, key);
                if common == key.len() {
                    let is_equal = last.len() == key.len();
                    return Err(if is_equal {
                        StorageError::DuplicateKey { tree: self.tree }
                    } else {
                        StorageError::UnsortedKeys
                    });
                }
                if common < last.len() && last[common] > key[common] {
                    return Err(StorageError::UnsortedKeys);
                }
                common
            }
            None => 0,
        };
        self.counts.entries += 1;
        if !self.pending.entries.is_empty() {
            self.pending.consider_cut(common, self.target_bytes);
        }
        self.pending.push(key, value, common);
        while self.pending.overflows(self.target_bytes) && self.pending.best_cut > 0 {
            self.cut()?;
        }
        Ok(())
    }

    /// Makes a leaf of the entries before the best cut, and collects on from there.
    fn cut(&mut self) -> Result<()> {
        let cut = self.pending.best_cut;
        let fence = self.pending.separator_before(cut).to_vec();
        self.finish_leaf(cut, Some(&fence))?;
        let old = std::mem::replace(&mut self.pending, Pending::with_low_fence(fence));
        for (i, entry) in old.entries[cut..].iter().enumerate() {
            if i > 0 {
                self.pending
                    .consider_cut(entry.common_with_previous, self.target_bytes);
            }
            self.pending
                .push(old.key(entry), old.value(entry), entry.common_with_previous);
        }
        Ok(())
    }

    /// Lays out a leaf of the first `count` pending entries.
    fn finish_leaf(&mut self, count: usize, high_fence: Option<&[u8]>) -> Result<()> {
        self.counts.leaf_pages += 1;
        let low_fence = self.pending.low_fence.clone();
        let leaves = self.leaves.as_mut().ok_or(StorageError::Closed)?;
        if let Leaves::InMemory(pages) = leaves {
            if (pages.len() as u64) < SMALL_TREE_LEAVES {
                let mut page = Page::zeroed();
                lay_out(&mut page, &self.pending, count, high_fence);
                pages.push((low_fence, page));
                return Ok(());
            }
            // Too many for a small tree: from now on by extents.
            let kept = std::mem::take(pages);
            let mut writer = ExtentWriter::new(self.storage.store().clone(), self.tree)?;
            let mut children = Vec::with_capacity(kept.len());
            for (fence, image) in kept {
                let id = writer.append(|page| page.copy_from_slice(&image[..]))?;
                children.push((fence, id));
            }
            *leaves = Leaves::InExtents(writer);
            for (fence, id) in children {
                self.add_child(1, fence, id)?;
            }
        }
        if let Some(Leaves::InExtents(writer)) = &mut self.leaves {
            let pending = &self.pending;
            let id = writer.append(|page| lay_out(page, pending, count, high_fence))?;
            self.add_child(1, low_fence, id)?;
        }
        Ok(())
    }

    /// Adds a finished node to the open node of the level above it.
    fn add_child(&mut self, level: u8, low_fence: Vec<u8>, child: PageId) -> Result<()> {
        let index = usize::from(level) - 1;
        if self.levels.len() == index {
            self.levels.push(OpenNode {
                low_fence: Vec::new(),
                children: Vec::new(),
                bytes: 0,
            });
        }
        let open = &mut self.levels[index];
        // A node must have room for the fence that closes it. Prefixes do not count here: a safe estimate.
        let bytes = entry_bytes(low_fence.len(), size_of::<u64>());
        let with_child = open.low_fence.len() + open.bytes + bytes + low_fence.len();
        if !open.children.is_empty() && with_child > NODE_CAPACITY * INNER_FILL_PERCENT / 100 {
            let mut carried = None;
            if open.low_fence.len() + open.bytes + low_fence.len() > NODE_CAPACITY {
                // The new separator is too long to close this node; the last one was not.
                carried = open.children.pop();
            }
            let fence = carried
                .as_ref()
                .map_or(&low_fence, |(fence, _)| fence)
                .clone();
            let next = OpenNode {
                low_fence: fence.clone(),
                children: Vec::new(),
                bytes: 0,
            };
            let closed = std::mem::replace(open, next);
            let closed_fence = closed.low_fence.clone();
            let page = self.write_inner(level, &closed, Some(&fence))?;
            self.add_child(level + 1, closed_fence, page)?;
            if let Some((fence, child)) = carried {
                self.add_child(level, fence, child)?;
            }
        }
        let open = &mut self.levels[index];
        // The first separator is the low fence, and stored as nothing.
        open.bytes += match open.children.is_empty() {
            true => entry_bytes(0, size_of::<u64>()),
            false => bytes,
        };
        open.children.push((low_fence, child));
        Ok(())
    }

    /// Writes a finished inner node.
    fn write_inner(
        &mut self,
        level: u8,
        node: &OpenNode,
        high_fence: Option<&[u8]>,
    ) -> Result<PageId> {
        let mut image = new_page_image();
        let mut inner = NodeMut(&mut image);
        inner.format(level, &node.low_fence, high_fence);
        let prefix = Node(inner.0).prefix().len();
        for (i, (separator, child)) in node.children.iter().enumerate() {
            let suffix = if i == 0 {
                &[][..]
            } else {
                &separator[prefix..]
            };
            inner.push(suffix, &child.0.to_le_bytes());
        }
        let page = self.write_page(&image, None)?;
        self.inner_pages.push(page);
        self.counts.inner_pages += 1;
        Ok(page)
    }

    /// Writes a node into a shared extent, through the buffer pool.
    fn write_page(&self, image: &[u8; PAGE_SIZE], near: Option<PageId>) -> Result<PageId> {
        let store = self.storage.store();
        let _permit = store.begin_changes()?;
        let mut change = MiniTransaction::begin(store);
        let request = PageRequest {
            tree: self.tree,
            own_extent: false,
            near,
            for_rollback: false,
        };
        let page = change.allocate(request)?;
        let id = change.page_id(page);
        change.commit(&[(
            page,
            RedoRecord::WriteNode {
                tree: self.tree,
                image,
            },
        )])?;
        Ok(id)
    }

    /// Writes what is left and enters the tree in the directory.
    pub fn finish(mut self) -> Result<TreeId> {
        // The last leaf has no high fence, and so sheds no prefix.
        while self.pending.leaf_bytes(0, 0) > NODE_CAPACITY {
            self.cut()?;
        }
        self.finish_leaf(self.pending.entries.len(), None)?;
        let mut extents = Vec::new();
        match self.leaves.take() {
            Some(Leaves::InMemory(pages)) => {
                let mut near = None;
                for (fence, page) in pages {
                    let id = self.write_page(&page, near)?;
                    self.shared_leaves.push(id);
                    near = Some(id);
                    self.add_child(1, fence, id)?;
                }
            }
            Some(Leaves::InExtents(mut writer)) => {
                let flushed = writer.flush();
                extents = writer.extents_past_log();
                self.leaves = Some(Leaves::InExtents(writer));
                flushed?;
            }
            None => {}
        }
        // Close the open nodes from below; the topmost single node is the root.
        let mut level = 0;
        while level < self.levels.len() {
            let top = level + 1 == self.levels.len();
            if level == 0 && top && self.levels[0].children.len() == 1 {
                break;
            }
            let open = OpenNode {
                low_fence: std::mem::take(&mut self.levels[level].low_fence),
                children: std::mem::take(&mut self.levels[level].children),
                bytes: 0,
            };
            let fence = open.low_fence.clone();
            let page = self.write_inner(level as u8 + 1, &open, None)?;
            if top {
                break;
            }
            self.add_child(level as u8 + 2, fence, page)?;
            level += 1;
        }
        let root = self
            .inner_pages
            .last()
            .or(self.shared_leaves.first())
            .copied();
        let root = root.ok_or(StorageError::NoSuchTree { tree: self.tree })?;
        self.counts.height = if self.counts.inner_pages == 0 {
            1
        } else {
            self.levels.len() as u32 + 1
        };

        let store = self.storage.store();
        let _permit = store.begin_changes()?;
        // From here on the extents belong to the tree on disk, even if entering it fails: lost rather than used twice.
        self.leaves = None;
        store.set_extents(&extents, self.tree, Note::PagesPastLog)?;
        self.storage
            .enter_tree(self.tree, root, self.counts)
            .inspect_err(|_| store.note_lost_pages())?;
        self.finished = true;
        Ok(self.tree)
    }
}

impl Drop for BulkBuilder {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Some(Leaves::InExtents(mut writer)) = self.leaves.take() {
            writer.abandon();
        }
        let mut pages = std::mem::take(&mut self.inner_pages);
        pages.append(&mut self.shared_leaves);
        pages.sort_unstable();
        if !pages.is_empty() {
            let store = self.storage.store();
            let freed = store
                .begin_changes()
                .and_then(|_permit| store.free_pages(&pages));
            if let Err(error) = freed {
                store.note_lost_pages();
                tracing::warn!("pages of an unfinished bulk build stay in use: {error}");
            }
        }
    }
}

/// Makes `page` a leaf of the first `count` pending entries.
fn lay_out(page: &mut Page, pending: &Pending, count: usize, high_fence: Option<&[u8]>) {
    let mut leaf = NodeMut(page);
    leaf.format(0, &pending.low_fence, high_fence);
    let prefix = Node(leaf.0).prefix().len();
    for entry in &pending.entries[..count] {
        leaf.push(&pending.key(entry)[prefix..], pending.value(entry));
    }
}

/// The set of the first pages of an extent.
fn first_pages(count: usize) -> u64 {
    if count < PAGES_PER_EXTENT as usize {
        (1 << count) - 1
    } else {
        u64::MAX
    }
}

/// Writes leaves into extents of a tree, an extent at a time.
struct ExtentWriter {
    store: Arc<PageStore>,
    tree: TreeId,
    lsn: Lsn,
    extents: Vec<usize>,
    /// Those that are in the log with images of their pages.
    logged: BTreeSet<usize>,
    /// The extent that is being filled.
    buffer: Option<AlignedBuffer>,
    filled: usize,
    /// The page that is being laid out.
    page: Box<Page>,
    /// The buffer of a write that is over, for the next extent.
    spare: Option<AlignedBuffer>,
    in_flight: Option<(usize, Arc<ExtentWrite>)>,
}

/// The write of one extent, and the thread that waits for it.
struct ExtentWrite {
    /// Absent if the pages are to be logged when they are written.
    past_log: Mutex<Option<UnloggedWrite>>,
    is_past_log: bool,
    waiter: Mutex<thread::Thread>,
    outcome: Mutex<Option<(std::io::Result<()>, Option<Buffers>)>>,
}

impl Completion for ExtentWrite {
    fn complete(&self, result: std::io::Result<()>, buffers: Option<Buffers>) {
        *self.past_log.lock() = None;
        *self.outcome.lock() = Some((result, buffers));
        self.waiter.lock().unpark();
    }
}

impl ExtentWriter {
    fn new(store: Arc<PageStore>, tree: TreeId) -> Result<ExtentWriter> {
        let lsn = store.log.end();
        Ok(ExtentWriter {
            store,
            tree,
            lsn,
            extents: Vec::new(),
            logged: BTreeSet::new(),
            buffer: None,
            filled: 0,
            page: Page::zeroed(),
            spare: None,
            in_flight: None,
        })
    }

    /// Adds a page, which `fill` lays out.
    fn append(&mut self, fill: impl FnOnce(&mut Page)) -> Result<PageId> {
        if self.buffer.is_none() {
            let buffer = match self.spare.take() {
                Some(buffer) => buffer,
                None => AlignedBuffer::zeroed(PAGES_PER_EXTENT as usize * PAGE_SIZE)?,
            };
            let extent = self
                .store
                .reserve_extent(self.tree, self.extents.last().copied())?;
            self.extents.push(extent);
            self.buffer = Some(buffer);
            self.filled = 0;
        }
        let (Some(buffer), Some(&extent)) = (&mut self.buffer, self.extents.last()) else {
            return Err(StorageError::Closed);
        };
        let id = extent::page_in(extent, self.filled as u32);
        let page = &mut *self.page;
        fill(page);
        page.set_page_id(id);
        page.set_tree_id(self.tree);
        page.set_lsn(self.lsn);
        page.seal();
        buffer[self.filled * PAGE_SIZE..][..PAGE_SIZE].copy_from_slice(page.bytes());
        self.filled += 1;
        if self.filled == PAGES_PER_EXTENT as usize {
            self.write()?;
        }
        Ok(id)
    }

    /// Starts writing the extent that was filled, after the one before it is on disk.
    fn write(&mut self) -> Result<()> {
        self.wait()?;
        let (Some(buffer), Some(&extent)) = (self.buffer.take(), self.extents.last()) else {
            return Ok(());
        };
        let buffers = if self.filled == PAGES_PER_EXTENT as usize {
            Buffers::Owned(buffer)
        } else {
            Buffers::Shared {
                buffer: Arc::new(buffer),
                range: 0..self.filled * PAGE_SIZE,
            }
        };
        // What freed the extent must be durable before its old pages are gone.
        self.store.log.flush_to(self.store.log.end())?;
        self.drop_from_pool(extent);
        let past_log = self.store.unlogged.begin();
        let write = Arc::new(ExtentWrite {
            is_past_log: past_log.is_some(),
            past_log: Mutex::new(past_log),
            waiter: Mutex::new(thread::current()),
            outcome: Mutex::new(None),
        });
        let operation = Operation::Write {
            file: self.store.file,
            offset: extent::page_in(extent, 0).offset(),
            buffers,
        };
        self.in_flight = Some((extent, write.clone()));
        self.store.disk.submit(vec![(operation, write)]);
        Ok(())
    }

    /// Waits for the write that is under way, and logs its pages if they are needed there.
    fn wait(&mut self) -> Result<()> {
        let Some((extent, write)) = self.in_flight.take() else {
            return Ok(());
        };
        let offset = extent::page_in(extent, 0).offset();
        *write.waiter.lock() = thread::current();
        self.store
            .disk
            .wait(self.store.file, offset, &|| write.outcome.lock().is_some());
        let outcome = write.outcome.lock().take();
        self.drop_from_pool(extent);
        match outcome {
            Some((Ok(()), buffers)) => {
                if !write.is_past_log {
                    match &buffers {
                        Some(Buffers::Owned(buffer)) => self.log_pages(extent, buffer)?,
                        Some(Buffers::Shared { buffer, range }) => {
                            self.log_pages(extent, &buffer[range.clone()])?;
                        }
                        _ => return Err(StorageError::Closed),
                    }
                }
                if let Some(Buffers::Owned(buffer)) = buffers {
                    self.spare = Some(buffer);
                }
                Ok(())
            }
            Some((Err(error), _)) => Err(StorageError::io(
                "write",
                self.store.file_name(),
                offset,
                error,
            )),
            None => Err(StorageError::Closed),
        }
    }

    /// Enters an extent that was written, and the images of its pages, in the log. The extent comes first: entering it
    /// ends the lives of its pages, and the images begin new ones.
    fn log_pages(&mut self, extent: usize, pages: &[u8]) -> Result<()> {
        let _permit = self.store.begin_changes()?;
        let used = first_pages(pages.len() / PAGE_SIZE);
        self.store
            .set_extents(&[(extent, used)], self.tree, Note::None)?;
        self.logged.insert(extent);
        let mut frame = Vec::new();
        for (place, page) in pages.chunks_exact(PAGE_SIZE).enumerate() {
            let Some(image) = page.first_chunk::<PAGE_SIZE>() else {
                continue;
            };
            let id = extent::page_in(extent, place as u32);
            let record = RedoRecord::WriteNode {
                tree: self.tree,
                image,
            };
            frame::encode_mini_transaction(&mut frame, Note::None, [(id, &record)].into_iter());
            self.store.make_log_room()?;
            self.store.log.append(&frame);
        }
        Ok(())
    }

    /// Takes the extent's pages out of the pool. Before the write, because an old copy of a page that was freed may
    /// still be on its way to disk. After it, because a reader that went astray may have brought one in.
    fn drop_from_pool(&self, extent: usize) {
        for page in (0..PAGES_PER_EXTENT as u32).map(|place| extent::page_in(extent, place)) {
            self.store.pool.discard(page);
            while self.store.pool.is_resident(page) {
                self.store.disk.reap();
                thread::yield_now();
                self.store.pool.discard(page);
            }
        }
    }

    /// Writes everything, durably.
    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_some() {
            self.write()?;
        }
        self.wait()?;
        self.store.sync_file()
    }

    /// The extents that the log does not know of, ascending, each with the set of its used pages.
    fn extents_past_log(&self) -> Vec<(usize, u64)> {
        let last = self.extents.last();
        let mut extents: Vec<_> = self
            .extents
            .iter()
            .filter(|extent| !self.logged.contains(extent))
            .map(|extent| {
                let pages = if Some(extent) == last {
                    self.filled
                } else {
                    PAGES_PER_EXTENT as usize
                };
                (*extent, first_pages(pages))
            })
            .collect();
        extents.sort_unstable();
        extents
    }

    /// Frees the extents.
    fn abandon(&mut self) {
        if let Err(error) = self.wait() {
            tracing::debug!("the last write of an unfinished bulk build: {error}");
        }
        let logged: Vec<_> = self.logged.iter().map(|&extent| (extent, 0)).collect();
        if !logged.is_empty() {
            let store = &self.store;
            let freed = store
                .begin_changes()
                .and_then(|_permit| store.set_extents(&logged, self.tree, Note::None));
            if let Err(error) = freed {
                store.note_lost_pages();
                tracing::warn!("extents of an unfinished bulk build stay in use: {error}");
            }
        }
        // Of the others nothing on disk says that they were taken.
        for extent in self.extents.drain(..) {
            if !self.logged.contains(&extent) {
                self.store.space.set_used(extent, 0);
            }
        }
    }
}
