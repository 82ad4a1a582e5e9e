//! A program that changes a database and knows what must be in it, an archive in memory, and how both are compared with
//! what was restored.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{
    BulkBuilder, CopyProgress, Disk, HistoryId, KeyRange, LogArchive, LogRange, Lsn, ReadAhead,
    RestoreUntil, Restored, Result, Storage, StorageError, StorageOptions, TreeId, restore,
};

use crate::common::{Random, contents};

pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
pub type Model = BTreeMap<TreeId, Entries>;

/// Keys are numbers below this.
pub const KEYS: u64 = 3_000;

/// An archive in memory, which fails when it is told to.
#[derive(Debug, Default)]
pub struct MemoryArchive {
    pub objects: Mutex<BTreeMap<(HistoryId, LogRange), Vec<u8>>>,
    pub is_failing: AtomicBool,
}

impl MemoryArchive {
    fn check(&self) -> Result<()> {
        if self.is_failing.load(Ordering::Relaxed) {
            let reason = "the test says so".to_string();
            return Err(StorageError::Archive { reason });
        }
        Ok(())
    }
}

impl LogArchive for MemoryArchive {
    fn ranges(&self, history: HistoryId) -> Result<Vec<LogRange>> {
        self.check()?;
        let objects = self.objects.lock().unwrap();
        let of_history = objects.keys().filter(|(of, _)| *of == history);
        Ok(of_history.map(|(_, range)| *range).collect())
    }

    fn put(&self, history: HistoryId, range: LogRange, bytes: &[u8]) -> Result<()> {
        self.check()?;
        let mut objects = self.objects.lock().unwrap();
        let known = objects.insert((history, range), bytes.to_vec());
        assert!(
            known.is_none_or(|known| known == bytes),
            "an object changed"
        );
        Ok(())
    }

    fn get(&self, history: HistoryId, range: LogRange) -> Result<Vec<u8>> {
        self.check()?;
        Ok(self.objects.lock().unwrap()[&(history, range)].clone())
    }

    fn remove(&self, history: HistoryId, range: LogRange) -> Result<()> {
        self.check()?;
        self.objects.lock().unwrap().remove(&(history, range));
        Ok(())
    }
}

pub fn options(archive: Option<&Arc<MemoryArchive>>) -> StorageOptions {
    StorageOptions {
        pool_bytes: 2 << 20,
        background_writer: false,
        log_segment_bytes: 512 << 10,
        // Short enough that its segments are recycled all the time.
        log_limit_bytes: 1 << 20,
        archive: archive.map(|archive| archive.clone() as Arc<dyn LogArchive>),
        ..StorageOptions::default()
    }
}

pub fn open(disk: &Arc<SimulatedDisk>, archive: Option<&Arc<MemoryArchive>>) -> Arc<Storage> {
    Storage::open_on(disk.clone(), options(archive)).unwrap()
}

/// Closes a database and opens it again.
pub fn reopen(
    storage: Arc<Storage>,
    disk: &Arc<SimulatedDisk>,
    archive: Option<&Arc<MemoryArchive>>,
) -> Arc<Storage> {
    storage.close().unwrap();
    // Nobody else may have the files open: on a real disk the lock sees to it.
    drop(storage);
    open(disk, archive)
}

pub fn empty_disk(random: &mut Random) -> Arc<SimulatedDisk> {
    SimulatedDisk::new(SimulationOptions::new(random.next()))
}

pub fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    disk.clone()
}

pub fn quietly(_: CopyProgress) -> Result<()> {
    Ok(())
}

/// A state that was committed.
pub struct Commit {
    pub time_us: u64,
    pub position: Lsn,
    pub model: Model,
}

/// A program that changes a database, and knows what must be in it.
pub struct Writer {
    pub random: Random,
    pub model: Model,
    pub commits: Vec<Commit>,
}

impl Writer {
    pub fn new(seed: u64) -> Writer {
        Writer {
            random: Random(seed),
            model: Model::new(),
            commits: Vec::new(),
        }
    }

    /// Changes something and commits it.
    pub fn step(&mut self, storage: &Arc<Storage>) -> Result<()> {
        match self.random.below(30) {
            0 | 1 => self.make_tree(storage),
            2 => self.drop_tree(storage),
            3 => storage.checkpoint(),
            4 => storage.drop_cached_pages(),
            _ => self.change_entries(storage),
        }
    }

    /// Makes a tree, often by a bulk build; sometimes it is given up.
    pub fn make_tree(&mut self, storage: &Arc<Storage>) -> Result<()> {
        if self.model.len() == 4 {
            return Ok(());
        }
        let (tree, entries) = if self.random.below(3) == 0 {
            (storage.create_tree()?, Entries::new())
        } else {
            let mut builder = BulkBuilder::new(storage)?;
            let count = self.random.below(2) * KEYS + self.random.below(300);
            let entries = self.append(&mut builder, 0..count)?;
            if self.random.below(4) == 0 {
                return Ok(());
            }
            (builder.finish()?, entries)
        };
        self.commit_marker(storage)?;
        self.model.insert(tree, entries);
        self.note_commit(storage);
        Ok(())
    }

    pub fn append(
        &mut self,
        builder: &mut BulkBuilder,
        keys: std::ops::Range<u64>,
    ) -> Result<Entries> {
        let mut entries = Entries::new();
        for key in keys {
            let key = (key as u32 * 2).to_be_bytes().to_vec();
            let value = vec![self.random.next() as u8; 100 + self.random.below(500) as usize];
            builder.append(&key, &value)?;
            entries.insert(key, value);
        }
        Ok(entries)
    }

    /// As a table is dropped: nobody knows of it any more, and then its tree goes.
    pub fn drop_tree(&mut self, storage: &Arc<Storage>) -> Result<()> {
        if self.model.len() < 2 {
            return Ok(());
        }
        let place = self.random.below(self.model.len() as u64) as usize;
        let Some(tree) = self.model.keys().nth(place).copied() else {
            return Ok(());
        };
        self.commit_marker(storage)?;
        self.model.remove(&tree);
        self.note_commit(storage);
        storage.drop_tree(tree)
    }

    /// A commit that the model does not look at.
    pub fn commit_marker(&mut self, storage: &Arc<Storage>) -> Result<()> {
        let catalog = storage.catalog_tree();
        let mut transaction = storage.begin_transaction();
        let value = self.random.next().to_le_bytes();
        if !catalog.update(&mut transaction, b"marker", &value)? {
            catalog.insert(&mut transaction, b"marker", &value)?;
        }
        transaction.commit()
    }

    /// A transaction; some roll back.
    pub fn change_entries(&mut self, storage: &Arc<Storage>) -> Result<()> {
        if self.model.is_empty() {
            return self.make_tree(storage);
        }
        let mut changed = self.model.clone();
        let mut transaction = storage.begin_transaction();
        for _ in 0..1 + self.random.below(60) {
            let place = self.random.below(changed.len() as u64) as usize;
            let Some((&id, entries)) = changed.iter_mut().nth(place) else {
                break;
            };
            let tree = storage.tree(id)?;
            let key = (self.random.below(2 * KEYS) as u32).to_be_bytes().to_vec();
            let value = vec![self.random.next() as u8; self.random.below(900) as usize];
            if self.random.below(3) == 0 {
                let deleted = tree.delete(&mut transaction, &key)?;
                assert_eq!(deleted, entries.remove(&key).is_some());
            } else if tree.update(&mut transaction, &key, &value)? {
                assert!(entries.insert(key, value).is_some());
            } else {
                tree.insert(&mut transaction, &key, &value)?;
                assert!(entries.insert(key, value).is_none());
            }
        }
        if self.random.below(6) == 0 {
            return transaction.rollback();
        }
        transaction.commit()?;
        self.model = changed;
        self.note_commit(storage);
        Ok(())
    }

    pub fn note_commit(&mut self, storage: &Arc<Storage>) {
        let time_us = storage.newest_commit_time_us();
        let newest = self.commits.last().map_or(0, |commit| commit.time_us);
        if time_us <= newest {
            // The transaction had changed nothing, so there was no commit.
            return;
        }
        self.commits.push(Commit {
            time_us,
            position: storage.newest_commit(),
            model: self.model.clone(),
        });
    }

    /// Backs the storage up, changing it all the time.
    pub fn backup(&mut self, storage: &Arc<Storage>, to: &Arc<SimulatedDisk>) {
        let summary = storage
            .backup(&as_disk(to), &mut |_| {
                (0..self.random.below(3)).try_for_each(|_| self.step(storage))
            })
            .unwrap();
        assert!(summary.completed_at_us > 0);
    }
}

/// All that is there is sound, and the trees of the model are there and equal.
pub fn check(storage: &Arc<Storage>, model: &Model, what: &str) {
    for id in storage.tree_ids().unwrap() {
        if let Err(error) = storage.tree(id).unwrap().check() {
            panic!("{what}: tree {id}: {error}");
        }
    }
    for (&id, entries) in model {
        let tree = storage
            .tree(id)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let found: Entries = contents(&tree, KeyRange::all(), ReadAhead::Off)
            .into_iter()
            .collect();
        let differing = || {
            let keys = entries.keys().chain(found.keys());
            let differs = |key: &&Vec<u8>| entries.get(*key) != found.get(*key);
            keys.filter(differs)
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert!(
            found == *entries,
            "{what}: tree {id} has {} entries instead of {}, and differs in {:?}",
            found.len(),
            entries.len(),
            differing()
        );
    }
}

/// Restores a copy of the backup, opens it and checks it.
pub fn check_restored(
    backup: &Arc<SimulatedDisk>,
    archive: &MemoryArchive,
    until: RestoreUntil,
    model: &Model,
    what: &str,
) -> Restored {
    let target = SimulatedDisk::new(SimulationOptions::new(7));
    let restored = restore(
        &as_disk(backup),
        Some(archive),
        &as_disk(&target),
        until,
        &mut quietly,
    )
    .unwrap_or_else(|error| panic!("{what}: {error}"));
    let storage = open(&target, None);
    check(&storage, model, what);
    storage.close().unwrap();
    restored
}

pub fn restore_fails(
    backup: &Arc<SimulatedDisk>,
    archive: &MemoryArchive,
    until: RestoreUntil,
) -> String {
    let target = SimulatedDisk::new(SimulationOptions::new(8));
    let result = restore(
        &as_disk(backup),
        Some(archive),
        &as_disk(&target),
        until,
        &mut quietly,
    );
    result.unwrap_err().to_string()
}
