//! A data directory: its one data file, its buffer pool, its trees.
//!
//! Opening is recovering: whatever the last process was doing when it ended, what [`Storage::open`] returns is the
//! state after the last commit that was acknowledged ([`crate::durability::recovery`]).

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::background::BackgroundWork;
use crate::copy::archive::{ArchiveProgress, Archiver, LogArchive};
use crate::copy::backup;
use crate::counters::{PoolCounters, TransactionCounters};
use crate::disk::data_directory::{DATA_FILE, DOUBLEWRITE_FILE, LOG_FILE, lock_directory};
use crate::disk::{self, Disk, DiskKind, FileId};
use crate::durability::checkpointer::{self, Pace};
use crate::durability::recovery::{self, Analysis};
use crate::error::{Result, StorageError};
use crate::log::change_feed::{ChangeFeed, FeedPoint};
use crate::log::frame::Note;
use crate::log::mini_transaction::MiniTransaction;
use crate::log::redo::RedoRecord;
use crate::log::{
    Control, HistoryId, LOG_START, Log, LogCounters, LogFollower, LogOptions, LogState,
    MIN_SEGMENT_BYTES, SyncLog, buffer_bytes,
};
use crate::page::{Lsn, PAGE_SIZE, Page, PageId, TreeId};
use crate::page_store::{PageStore, Parts};
use crate::pool::buffer_pool::{BufferPool, PoolOptions};
use crate::pool::doublewrite::Doublewrite;
use crate::space::extent::PageRequest;
use crate::space::file_header::FileHeader;
use crate::space::orphaned_pages::PagesWithoutTree;
use crate::sync::{self, Mutex};
use crate::temp_file::TempSpace;
use crate::transaction::Transaction;
use crate::transaction::row_lock::ShownLocks;
use crate::transaction::snapshot::ReadView;
use crate::transaction::spill_file::SpillFile;
use crate::transaction::system::TransactionSystem;
use crate::transaction::versions::start_collector;
use crate::tree::directory::{EMPTY, FIRST_FREE_TREE, TreeDirectory};
use crate::tree::{Counts, Tree};

/// Time from one flush of a log that commits do not wait for to the next.
const LOG_FLUSH_INTERVAL: Duration = Duration::from_millis(500);

/// Time from one look at what waits for the archive to the next.
const ARCHIVE_STEP_INTERVAL: Duration = Duration::from_millis(500);

/// Folder for spilled data in the data directory.
const TEMP_FOLDER: &str = "temp";

/// Bounds of [`StorageOptions::fill_factor`].
pub const FILL_FACTORS: std::ops::RangeInclusive<f32> = 0.5..=1.0;

/// What can be chosen when a data directory is opened.
#[derive(Clone, Debug)]
pub struct StorageOptions {
    /// Memory of the buffer pool, in bytes.
    pub pool_bytes: usize,
    pub disk: DiskKind,
    /// How full bulk builds fill leaves, 0.5 to 1.
    pub fill_factor: f32,
    /// Limit of one transaction's before-images, in bytes; beyond it [`StorageError::TransactionTooLarge`]. They lie in
    /// the log, which keeps room for undoing them, and beyond two megabytes in the spill file, not in memory.
    pub max_transaction_log_bytes: usize,
    /// Memory for the before-images that readers of older snapshots need, in bytes. What does not fit is spilled.
    pub max_version_bytes: usize,
    /// Limit of the file that before-images are spilled to, in bytes; beyond it [`StorageError::VersionStoreFull`], or
    /// [`StorageError::SpillFileFull`] if it is the transaction's own that do not fit.
    pub max_spill_bytes: u64,
    /// Limit of all temporary files of statements together, in bytes; see [`TempSpace`].
    pub max_temp_bytes: u64,
    /// Most explicit row locks of all transactions together; beyond it [`StorageError::TooManyLocks`]. A lock takes
    /// [`LOCK_BYTES`](crate::LOCK_BYTES), and one of a long key counts as several.
    pub max_row_locks: usize,
    /// When a commit waits for the disk.
    pub sync_log: SyncLog,
    /// Bytes of a segment of the log, for a new database.
    pub log_segment_bytes: u64,
    /// The log is kept about this short by checkpoints. It may become longer while a long transaction is live.
    pub log_limit_bytes: u64,
    /// So much of the log may be kept because of one transaction, whose undo is in it. Beyond, the user of the
    /// transaction is [ended](crate::Transaction::on_pinned_log): otherwise a forgotten transaction would fill the
    /// disk.
    pub max_pinned_log_bytes: u64,
    /// How long recovery may take: checkpoints are made often enough for it.
    pub recovery_time_goal: Duration,
    /// Where the log is archived.
    pub archive: Option<Arc<dyn LogArchive>>,
    /// Log waits at most about this long for the archive, so that losing the machine loses no more.
    pub archive_interval: Duration,
    /// Changes are [followed](Storage::follow_changes): the log has whole values of them, numbers of commits, and what
    /// the floors above say about them. It is kept until it was followed, so somebody has to.
    pub follow_changes: bool,
    /// Bytes of log that may wait for followers; beyond it changes get [`StorageError::FollowersBehind`].
    pub follow_lag_limit_bytes: u64,
    /// Bytes of log that may wait for the archive; beyond it changes get [`StorageError::ArchiveBehind`].
    pub archive_lag_limit_bytes: u64,
    /// Whether background threads write dirty pages back, collect versions, make checkpoints, archive, and write the
    /// log that commits do not wait for.
    pub background_writer: bool,
}

impl Default for StorageOptions {
    fn default() -> Self {
        StorageOptions {
            pool_bytes: 64 << 20,
            disk: DiskKind::Auto,
            fill_factor: 0.95,
            max_transaction_log_bytes: 16 << 30,
            max_version_bytes: 256 << 20,
            max_spill_bytes: 64 << 30,
            max_temp_bytes: 1 << 40,
            max_row_locks: 1 << 20,
            sync_log: SyncLog::On,
            log_segment_bytes: 8 << 20,
            log_limit_bytes: 1 << 30,
            max_pinned_log_bytes: 64 << 30,
            recovery_time_goal: Duration::from_secs(10),
            archive: None,
            archive_interval: Duration::from_secs(10),
            follow_changes: false,
            follow_lag_limit_bytes: 8 << 30,
            archive_lag_limit_bytes: 8 << 30,
            background_writer: true,
        }
    }
}

impl StorageOptions {
    /// Whether a storage can be opened with these.
    ///
    /// # Errors
    /// `BadOption`
    pub fn check(&self) -> Result<()> {
        if !FILL_FACTORS.contains(&self.fill_factor) {
            let reason = format!("{} does not lie in {FILL_FACTORS:?}", self.fill_factor);
            return Err(StorageError::BadOption {
                option: "fill_factor",
                reason,
            });
        }
        if self.log_segment_bytes < MIN_SEGMENT_BYTES
            || !self.log_segment_bytes.is_multiple_of(MIN_SEGMENT_BYTES)
        {
            let reason = format!(
                "{} is not a multiple of {MIN_SEGMENT_BYTES}",
                self.log_segment_bytes
            );
            return Err(StorageError::BadOption {
                option: "log_segment_bytes",
                reason,
            });
        }
        Ok(())
    }
}

/// The files of a data directory.
struct Files {
    disk: Arc<dyn Disk>,
    data: FileId,
    log: FileId,
    doublewrite: FileId,
    /// Not opened before it is needed.
    spill: Arc<SpillFile>,
}

impl Files {
    fn open(disk: Arc<dyn Disk>, options: &StorageOptions) -> Result<Files> {
        Ok(Files {
            spill: SpillFile::new(disk.clone(), options.max_spill_bytes),
            data: disk.open(DATA_FILE)?,
            log: disk.open(LOG_FILE)?,
            doublewrite: disk.open(DOUBLEWRITE_FILE)?,
            disk,
        })
    }

    /// Why a data file is refused that has no log.
    fn unusable_without_log(&self) -> Result<StorageError> {
        let mut page = Page::zeroed();
        if self.disk.length(self.data)? >= PAGE_SIZE as u64 {
            page.copy_from_slice(&backup::read(&*self.disk, self.data, 0, PAGE_SIZE)?);
        }
        // Without its log it is unknown what the pages of the file have and what they lack.
        let reason = match FileHeader::read(&page) {
            Err(reason) => reason,
            Ok(_) => format!(
                "the log ({LOG_FILE}) that belongs to it is missing, or begins with something else: put it back, or restore \
                 a backup"
            ),
        };
        Ok(StorageError::UnknownFormat {
            file: self.disk.file_name(self.data),
            reason,
        })
    }

    /// The pages of the data file.
    fn page_store(
        &self,
        options: &StorageOptions,
        log: Log,
        doublewrite: Doublewrite,
    ) -> Result<Arc<PageStore>> {
        let pool_options = PoolOptions {
            background_writer: options.background_writer,
            ..PoolOptions::new(options.pool_bytes)
        };
        let pool = BufferPool::open(self.disk.clone(), self.data, pool_options)?;
        Ok(Arc::new(PageStore::new(Parts {
            pool,
            disk: self.disk.clone(),
            file: self.data,
            log,
            doublewrite,
            transactions: TransactionSystem::new(
                options.max_version_bytes,
                options.max_row_locks,
                self.spill.clone(),
            ),
            sync_log: options.sync_log,
            follows_changes: options.follow_changes,
        })))
    }
}

fn log_options(options: &StorageOptions) -> LogOptions {
    let is_archived = options.archive.is_some();
    LogOptions {
        limit_bytes: options.log_limit_bytes,
        archive_lag_bytes: is_archived.then_some(options.archive_lag_limit_bytes),
        follow_lag_bytes: options
            .follow_changes
            .then_some(options.follow_lag_limit_bytes),
        buffer_bytes: buffer_bytes(options.pool_bytes),
    }
}

/// What archives the log, if the options ask for it. To be made before anything of the log can be recycled.
fn archiver(store: &PageStore, options: &StorageOptions) -> Option<Archiver> {
    let archive = options.archive.clone()?;
    let log_everything = store.unlogged.forbid(&*store.disk);
    let interval = options.archive_interval;
    Some(Archiver::new(archive, &store.log, interval, log_everything))
}

/// Keeps the log that followers of changes have not read, if there are any. To be made when an [`archiver`] is.
fn kept_for_feed(store: &PageStore, options: &StorageOptions) -> Mutex<Option<LogFollower>> {
    let keeps = options.follow_changes;
    Mutex::new(keeps.then(|| LogFollower::new(&store.log, LOG_START)))
}

/// One open data directory. Used as `Arc<Storage>`, by any number of threads. Dropped without
/// [`close`](Storage::close), it closes.
pub struct Storage {
    store: Arc<PageStore>,
    options: StorageOptions,
    trees: Arc<TreeDirectory>,
    temp_space: Arc<TempSpace>,
    archiver: Option<Archiver>,
    /// Keeps the log until changes are followed.
    kept_for_feed: Mutex<Option<LogFollower>>,
    /// Held while the garbage of a leaf is purged in the background, and while a tree is dropped.
    purging: Mutex<()>,
    /// What goes on by itself, in the order in which it is stopped.
    background: Mutex<Vec<BackgroundWork>>,
    /// Held until the storage is dropped.
    _lock: Option<File>,
}

impl Storage {
    /// Opens the data directory `dir`, and makes it when it is absent. What a crash has left is recovered.
    ///
    /// # Errors
    /// `InUse` if another process has it open; `UnknownFormat` if the data file is not one of this version, or if its
    /// log is missing or damaged.
    pub fn open(dir: &Path, options: StorageOptions) -> Result<Arc<Storage>> {
        let failed = |operation, path: &Path| {
            let path = path.display().to_string();
            move |error| StorageError::io(operation, path, 0, error)
        };
        std::fs::create_dir_all(dir).map_err(failed("creation", dir))?;
        let lock = lock_directory(dir)?;
        let temp_dir = dir.join(TEMP_FOLDER);
        if temp_dir.exists() {
            std::fs::remove_dir_all(&temp_dir).map_err(failed("removal", &temp_dir))?;
        }
        std::fs::create_dir_all(&temp_dir).map_err(failed("creation", &temp_dir))?;
        let disk = disk::open_directory(dir, options.disk)?;
        let storage = Self::open_with(disk, options, temp_dir, Some(lock))?;
        // Files that were made just now must be found again.
        File::open(dir)
            .and_then(|directory| directory.sync_all())
            .map_err(failed("sync", dir))?;
        Ok(storage)
    }

    /// Opens storage on a given disk, such as the simulated one. Spilled data goes to the system's folder for
    /// temporary files.
    pub fn open_on(disk: Arc<dyn Disk>, options: StorageOptions) -> Result<Arc<Storage>> {
        Self::open_with(disk, options, std::env::temp_dir(), None)
    }

    fn open_with(
        disk: Arc<dyn Disk>,
        options: StorageOptions,
        temp_dir: PathBuf,
        lock: Option<File>,
    ) -> Result<Arc<Storage>> {
        options.check()?;
        options.sync_log.warn();
        let files = Files::open(disk, &options)?;
        let log_file = Log::file(&files.disk, files.log, options.log_segment_bytes);
        let storage = match Control::read(&log_file)? {
            Some(control) if control.state != LogState::Creating => {
                Self::recover(files, options, control, temp_dir, lock)?
            }
            None if files.disk.length(files.data)? > 0 => {
                return Err(files.unusable_without_log()?);
            }
            earlier => Self::create(files, options, earlier, temp_dir, lock)?,
        };
        if storage.options.background_writer {
            storage.start_background()?;
        }
        Ok(storage)
    }

    /// A new database. Until its first checkpoint the log says so, and a crash makes the next start begin anew.
    fn create(
        files: Files,
        options: StorageOptions,
        earlier: Option<Control>,
        temp_dir: PathBuf,
        lock: Option<File>,
    ) -> Result<Arc<Storage>> {
        let file = Log::file(&files.disk, files.log, options.log_segment_bytes);
        let log = Log::create(file, log_options(&options), FIRST_FREE_TREE.0, earlier)?;
        let doublewrite = Doublewrite::open(files.disk.clone(), files.doublewrite)?;
        let store = files.page_store(&options, log, doublewrite)?;
        let archiver = archiver(&store, &options);
        let kept_for_feed = kept_for_feed(&store, &options);
        store.format()?;
        let trees = TreeDirectory::create(&store)?;
        let followers = (archiver, kept_for_feed);
        let storage = Self::assemble(store, trees, followers, options, temp_dir, lock);
        storage.checkpoint()?;
        Ok(storage)
    }

    /// A database as its last process has left it.
    fn recover(
        files: Files,
        options: StorageOptions,
        control: Control,
        temp_dir: PathBuf,
        lock: Option<File>,
    ) -> Result<Arc<Storage>> {
        let began_ns = sync::monotonic_ns();
        let file = Log::file(&files.disk, files.log, control.segment_bytes);
        // What is read now must not be gone after another power loss: the device may still have it in its cache.
        for file in [files.data, files.log, files.doublewrite] {
            disk::run(&*files.disk, disk::Operation::Sync { file })?;
        }
        let analysis = recovery::analyse(&file, &control, &files.spill)?;
        if analysis.is_needed {
            tracing::info!(
                "recovery: {} bytes of log, {} unfinished transactions",
                analysis.end.lsn.0 - control.redo_start.0,
                analysis.losers.len()
            );
        }
        let doublewrite = Doublewrite::open(files.disk.clone(), files.doublewrite)?;
        if analysis.is_needed {
            let torn = doublewrite.repair(files.data, control.first_batch)?;
            if torn > 0 {
                tracing::info!("recovery: {torn} torn pages repaired");
            }
        }
        let log_options = log_options(&options);
        let log = Log::resume(file.clone(), log_options, control, analysis.end.clone())?;
        let store = files.page_store(&options, log, doublewrite)?;
        let followers = (archiver(&store, &options), kept_for_feed(&store, &options));
        store.reserve_numbers(analysis.next_tree, analysis.next_transaction);
        store.log.reserve_numbers(analysis.next_number);
        for (&id, loser) in &analysis.losers {
            store.add_live(id, loser.first);
        }
        recovery::redo(&store, &file, &control, &analysis)?;
        store.check_header()?;
        store.read_extent_maps()?;
        if analysis.is_needed {
            TreeDirectory::recover(&store, &analysis)?;
        }
        let trees = TreeDirectory::open(&store)?;
        let storage = Self::assemble(store, trees, followers, options, temp_dir, lock);
        if analysis.is_needed {
            let bytes = analysis.end.bytes_read(&file);
            storage.roll_back_losers(analysis)?;
            if storage.options.background_writer {
                // Soon, and while others work already.
                let elapsed_ns = sync::monotonic_ns().saturating_sub(began_ns);
                storage.store.note_recovered(bytes, elapsed_ns);
            } else {
                storage.checkpoint()?;
            }
            tracing::info!("recovery: complete");
        }
        Ok(storage)
    }

    /// Rolls back the transactions that the crash has ended.
    fn roll_back_losers(&self, analysis: Analysis) -> Result<()> {
        let mut transactions = Vec::new();
        for (id, loser) in analysis.losers {
            let mut ids = BTreeSet::new();
            loser.undo.for_each(|record| {
                ids.insert(record.tree);
                Ok(())
            })?;
            let trees: Result<Vec<_>> = ids.into_iter().map(|id| self.tree(id)).collect();
            transactions.push(Transaction::recovered(
                self.store.clone(),
                id,
                loser.undo,
                trees?,
            ));
        }
        self.store.keep_ghosts(true);
        let result = transactions.into_iter().try_for_each(Transaction::rollback);
        self.store.keep_ghosts(false);
        result
    }

    fn assemble(
        store: Arc<PageStore>,
        trees: Arc<TreeDirectory>,
        (archiver, kept_for_feed): (Option<Archiver>, Mutex<Option<LogFollower>>),
        options: StorageOptions,
        temp_dir: PathBuf,
        lock: Option<File>,
    ) -> Arc<Storage> {
        Arc::new(Storage {
            store,
            temp_space: TempSpace::new(&temp_dir, options.max_temp_bytes),
            options,
            trees,
            archiver,
            kept_for_feed,
            purging: Mutex::new(()),
            background: Mutex::new(Vec::new()),
            _lock: lock,
        })
    }

    pub(crate) fn store(&self) -> &Arc<PageStore> {
        &self.store
    }

    /// The tree of all trees.
    pub(crate) fn directory(&self) -> &Arc<Tree> {
        self.trees.directory()
    }

    pub(crate) fn fill_factor(&self) -> f32 {
        self.options.fill_factor
    }

    /// Makes an empty tree.
    pub fn create_tree(&self) -> Result<TreeId> {
        let _permit = self.store.begin_changes()?;
        let _without_tree = PagesWithoutTree::of(&self.store);
        let tree = self.store.new_tree_id();
        let mut change = MiniTransaction::begin(&self.store);
        let page = change.allocate(PageRequest {
            tree,
            own_extent: false,
            near: None,
            for_rollback: false,
        })?;
        let root = change.page_id(page);
        let format = RedoRecord::FormatNode {
            tree,
            level: 0,
            low_fence: &[],
            high_fence: None,
        };
        change.commit(&[(page, format)])?;
        if let Err(error) = self.enter_tree(tree, root, EMPTY) {
            self.store.free_pages(&[root])?;
            return Err(error);
        }
        Ok(tree)
    }

    /// Enters a tree in the directory. The caller has a permit for changes.
    pub(crate) fn enter_tree(&self, tree: TreeId, root: PageId, counts: Counts) -> Result<()> {
        self.trees.enter(tree, root, counts)
    }

    /// Removes a tree and frees its pages. It must not be in use.
    pub fn drop_tree(&self, id: TreeId) -> Result<()> {
        if id < FIRST_FREE_TREE {
            return Err(StorageError::NoSuchTree { tree: id });
        }
        let _permit = self.store.begin_changes()?;
        // Versions of the tree may be collected until now, and not any more.
        let _purging = self.purging.lock();
        let tree = self.tree(id)?;
        // All that has to be read is read first. Leaves in the tree's own extents are not looked at.
        let pages = tree.pages_in_shared_extents()?;
        let extents = self.store.space.extents_of(id);
        let _without_tree = PagesWithoutTree::of(&self.store);
        self.trees.remove(id)?;
        self.store.transactions.versions.forget_tree(id);
        let freed: Vec<_> = extents.into_iter().map(|extent| (extent, 0)).collect();
        self.store.set_extents(&freed, id, Note::None)?;
        self.store.free_pages(&pages)
    }

    pub fn tree(&self, id: TreeId) -> Result<Arc<Tree>> {
        self.trees.tree(id)
    }

    /// The one tree with a fixed id, in which the floor above keeps its catalog.
    pub fn catalog_tree(&self) -> Arc<Tree> {
        self.trees.catalog()
    }

    /// Numbers of all trees in the directory, ascending, the directory itself left out.
    pub fn tree_ids(&self) -> Result<Vec<TreeId>> {
        self.trees.ids()
    }

    /// Starts a transaction: changes of trees that stay or go together.
    pub fn begin_transaction(&self) -> Transaction {
        Transaction::new(self.store.clone(), self.options.max_transaction_log_bytes)
    }

    /// A view of what has committed by now.
    ///
    /// # Errors
    /// `TooManySnapshots`.
    pub fn read_view(&self) -> Result<ReadView> {
        ReadView::take(&self.store.transactions.snapshots, None)
    }

    /// At most so many explicit locks of all transactions, and which keeps whom waiting.
    pub fn shown_locks(&self, limit: usize) -> ShownLocks {
        self.store.transactions.row_locks.shown(limit)
    }

    /// A caller has been told to stop its work: if it waits for a lock, it notices at once.
    pub fn rouse_lock_waiters(&self) {
        self.store.transactions.row_locks.wake_all();
    }

    /// The timestamp that a snapshot would have now.
    pub fn newest_commit(&self) -> Lsn {
        self.store.transactions.snapshots.newest()
    }

    /// Drops versions that no snapshot needs, and ghosts that no rollback can make entries again. A background thread
    /// does this, if there are background threads.
    pub fn collect_versions_step(&self) -> Result<()> {
        let transactions = &self.store.transactions;
        let versions = &transactions.versions;
        if let Err(error) = transactions.spill_file.empty_if_unused() {
            tracing::warn!("the spill file stays as long as it is for now: {error}");
        }
        if !versions.has_work() {
            return Ok(());
        }
        let live = transactions.live_snapshots();
        let hints = versions.sweep(&live, |page| self.store.pool.forget_versions(page));
        if hints.is_empty() {
            return Ok(());
        }
        let mut left = Vec::new();
        let mut hints = hints.into_iter();
        let mut begun = Ok(());
        while let Some(hint) = hints.next() {
            // For each leaf: the log is written when much of it is in memory.
            let _permit = match self.store.begin_changes() {
                Ok(permit) => permit,
                Err(error) => {
                    left.push(hint);
                    left.extend(hints);
                    begun = Err(error);
                    break;
                }
            };
            let _purging = self.purging.lock();
            let purged = self
                .tree(hint.tree)
                .and_then(|tree| tree.purge_leaf(&hint.key));
            match purged {
                // Dropped since, garbage and all.
                Ok(_) | Err(StorageError::NoSuchTree { .. }) => {}
                // Space and frames come back.
                Err(StorageError::DiskFull { .. } | StorageError::PoolExhausted { .. }) => {
                    left.push(hint);
                }
                Err(error) => tracing::warn!("ghosts of tree {} stay for now: {error}", hint.tree),
            }
        }
        versions.put_back(left);
        begun
    }

    /// What versions and locks take.
    pub fn transaction_counters(&self) -> TransactionCounters {
        let transactions = &self.store.transactions;
        let newest = transactions.snapshots.newest();
        TransactionCounters {
            version_bytes: transactions.versions.memory_bytes() as u64,
            version_bytes_limit: transactions.versions.budget_bytes() as u64,
            leaves_with_versions: transactions.versions.leaves() as u64,
            spilled_bytes: transactions.spill_file.used_bytes(),
            spilled_bytes_limit: transactions.spill_file.limit_bytes(),
            spill_written_bytes: transactions.spill_file.written_bytes(),
            spill_read_bytes: transactions.spill_file.read_bytes(),
            row_locks: transactions.row_locks.count() as u64,
            lock_waits: transactions.row_locks.waits(),
            newest_commit: newest,
            oldest_snapshot: transactions.snapshots.live().oldest(),
        }
    }

    pub fn pool_counters(&self) -> PoolCounters {
        self.store.pool.counters()
    }

    pub fn log_counters(&self) -> LogCounters {
        self.store.log.counters()
    }

    /// Memory that the buffer pool may use, in bytes.
    pub fn pool_bytes(&self) -> usize {
        self.options.pool_bytes
    }

    /// Log that may be in memory before it is written.
    pub fn log_buffer_bytes(&self) -> u64 {
        buffer_bytes(self.options.pool_bytes)
    }

    /// Pages of the data file that hold something.
    pub fn used_pages(&self) -> u64 {
        self.store.space.used_pages()
    }

    /// Where statements put what they have no memory for. Its directory is emptied when the data directory is opened.
    pub fn temp_space(&self) -> &Arc<TempSpace> {
        &self.temp_space
    }

    /// Writes everything back and drops it from the buffer pool: what follows reads from the disk.
    pub fn drop_cached_pages(&self) -> Result<()> {
        self.store.pool.evict_all_clean()
    }

    /// Makes a checkpoint: a process that ends after this and before the next change leaves nothing to recover.
    pub fn checkpoint(&self) -> Result<()> {
        self.checkpoint_at(Pace::Fast)
    }

    /// Whether a checkpoint is being made right now, by whomever.
    pub fn checkpoint_is_under_way(&self) -> bool {
        self.store.checkpoint_is_under_way()
    }

    fn checkpoint_at(&self, pace: Pace<'_>) -> Result<()> {
        self.store.checkpoint(|| self.trees.write_counts(), pace)
    }

    /// What is due by now: a checkpoint if the log has grown much, or if it has not grown at all since `seen`, which an
    /// earlier step returned. Ends transactions that keep too much of the log. Returns what to pass to the next step. A
    /// background thread does this, if there are background threads.
    pub fn checkpoint_step(&self, seen: Option<u64>) -> Result<u64> {
        self.checkpoint_step_at(seen, Pace::Fast)
    }

    /// As [`checkpoint_step`](Self::checkpoint_step), with the pace of a checkpoint that disturbs others.
    pub(crate) fn checkpoint_step_at(&self, seen: Option<u64>, pace: Pace<'_>) -> Result<u64> {
        self.store
            .end_transactions_that_keep(self.options.max_pinned_log_bytes);
        let end = self.store.log.end().0;
        let log_due = self
            .store
            .checkpoint_due_bytes(self.options.recovery_time_goal);
        if seen == Some(end) {
            self.checkpoint()?;
        } else if self.store.log_since_checkpoint() > log_due {
            self.checkpoint_at(pace)?;
        }
        Ok(end)
    }

    /// Makes the commits so far durable if [`SyncLog::Interval`] is chosen, or where followers of changes wait for
    /// them; nothing otherwise. A background thread does this twice a second, if there are background threads: one of
    /// its own, because a checkpoint takes its time, and may fail.
    ///
    /// # Errors
    /// `DiskFull`, until there is room again. Anything else is final: changes are refused from then on.
    pub fn flush_log_step(&self) -> Result<()> {
        match self.store.sync_log() {
            SyncLog::Interval => self.store.flush_log(self.store.log.end()),
            // Nothing is delivered before it is durable.
            SyncLog::Off if self.options.follow_changes => {
                self.store.flush_log(self.store.log.end())
            }
            SyncLog::On | SyncLog::Off => Ok(()),
        }
    }

    /// Sends what is due to the archive of the log, or with `now` all that is durable by now; nothing if there is no
    /// archive. A background thread does this, if there are background threads.
    ///
    /// # Errors
    /// `Archive`: the archive failed. What waits for it is kept, and a later step tries again.
    pub fn archive_step(&self, now: bool) -> Result<()> {
        if let Some(archiver) = &self.archiver {
            while archiver.step(now)? {}
        }
        Ok(())
    }

    /// How far the archive of the log is, if there is one.
    pub fn archive_progress(&self) -> Option<ArchiveProgress> {
        self.archiver.as_ref().map(Archiver::progress)
    }

    /// Follows what transactions change, from a point on where an earlier feed was, or from now on. A feed that began
    /// later than it was told has a [gap](ChangeFeed::position). An earlier feed of this storage ends. No transaction
    /// may be about.
    ///
    /// # Errors
    /// `BadOption` if the storage was opened without followers of changes. The log cannot be read.
    pub fn follow_changes(&self, from: Option<FeedPoint>) -> Result<ChangeFeed> {
        if !self.options.follow_changes {
            return Err(StorageError::BadOption {
                option: "follow_changes",
                reason: "the storage was opened without it".into(),
            });
        }
        let log = &self.store.log;
        let control = log.control();
        if from.is_none() {
            // No crash makes another log of it.
            log.flush_to(log.end())?;
        }
        let point = from.unwrap_or_else(|| FeedPoint {
            position: log.end(),
            number: log.next_number() - 1,
        });
        // Nothing of the history before was followed here.
        let position = point.position.max(control.history_start);
        log.check_from(position)?;
        let follower = LogFollower::new(log, position);
        let feed = ChangeFeed::new(follower, point, self.temp_space.clone());
        // The feed keeps the log from here on.
        *self.kept_for_feed.lock() = None;
        Ok(feed)
    }

    /// The number of the newest commit that has one; 0 if there is none. It need not be durable yet.
    pub fn newest_commit_number(&self) -> u64 {
        self.store.log.next_number() - 1
    }

    /// Names what has happened to this database: a copy that is changed on its own has another one.
    pub fn history(&self) -> HistoryId {
        self.store.log.control().history
    }

    /// When commits wait for the disk.
    pub fn sync_log(&self) -> SyncLog {
        self.store.sync_log()
    }

    /// Chooses when commits wait for the disk from now on. What was committed before a change to [`SyncLog::On`] is
    /// durable when this returns.
    ///
    /// # Errors
    /// The log could not be made durable.
    pub fn set_sync_log(&self, sync_log: SyncLog) -> Result<()> {
        sync_log.warn();
        self.store.set_sync_log(sync_log);
        match sync_log {
            SyncLog::On => self.store.make_commit_durable(self.store.log.end()),
            SyncLog::Interval | SyncLog::Off => Ok(()),
        }
    }

    /// When the newest commit since the storage was opened was made, in microseconds since 1970; 0 if there was none.
    /// Commits carry their times into the log; a restore uses these.
    pub fn newest_commit_time_us(&self) -> u64 {
        self.store.log.newest_commit_us()
    }

    /// How the storage was opened.
    pub fn options(&self) -> &StorageOptions {
        &self.options
    }

    /// Everything that was committed up to here is as durable as `sync_log` asks for: what a snapshot may show.
    pub fn newest_durable(&self) -> Lsn {
        self.store.newest_durable()
    }

    /// Clean shutdown: everything is on disk when this returns, and no change is accepted afterwards. Waits for
    /// statements that are changing something.
    pub fn close(&self) -> Result<()> {
        self.stop_background();
        self.store.close(|| self.trees.write_counts())?;
        if self.archive_step(true).is_err() {
            tracing::warn!("what the archive does not have stays in the log until the next start");
        }
        self.empty_spill_file();
        self.store.pool.close()
    }

    /// A reader that still holds an old view of what was spilled gets an error from it.
    fn empty_spill_file(&self) {
        if let Err(error) = self.store.transactions.spill_file.empty_at_close() {
            tracing::warn!("the spill file stays until the next start: {error}");
        }
    }

    fn start_background(self: &Arc<Self>) -> Result<()> {
        let start =
            |work: Result<BackgroundWork>| work.map(|work| self.background.lock().push(work));
        start(start_collector(self))?;
        start(checkpointer::start(self))?;
        start(self.start_flushing_log())?;
        if self.archiver.is_some() {
            start(self.start_archiving())?;
        }
        Ok(())
    }

    fn start_flushing_log(self: &Arc<Self>) -> Result<BackgroundWork> {
        let mut has_failed = false;
        BackgroundWork::start("sheaf-log", self, LOG_FLUSH_INTERVAL, move |step| {
            match step.storage.flush_log_step() {
                Ok(()) => has_failed = false,
                Err(error) => {
                    // Once, and not twice a second.
                    if !has_failed {
                        tracing::error!("commits are in memory alone for now: {error}");
                    }
                    has_failed = true;
                }
            }
            LOG_FLUSH_INTERVAL
        })
    }

    fn start_archiving(self: &Arc<Self>) -> Result<BackgroundWork> {
        BackgroundWork::start("sheaf-archive", self, ARCHIVE_STEP_INTERVAL, |step| {
            // The archiver complains itself, and not each time.
            let _ = step.storage.archive_step(false);
            ARCHIVE_STEP_INTERVAL
        })
    }

    fn stop_background(&self) {
        // Not under the lock: the thread that is stopped may be the last owner of the storage, and comes here as well.
        let background = std::mem::take(&mut *self.background.lock());
        drop(background);
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.stop_background();
        // Does not wait for transactions, which may belong to this very thread. If there are any, the next start rolls
        // back what they do not roll back themselves.
        match self.checkpoint() {
            Ok(()) => {}
            Err(error) => tracing::error!("the storage was not closed cleanly: {error}"),
        }
        self.empty_spill_file();
        if let Err(error) = self.store.pool.close() {
            tracing::error!("the buffer pool was not closed cleanly: {error}");
        }
    }
}
