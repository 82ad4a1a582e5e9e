//! Backup, archive and restore on the simulated disk, against models of all committed states.
//!
//! One thread does everything, so a run is a function of its seed: what others do during a backup is done when the
//! backup reports its progress.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Random, contents};
use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{
    BulkBuilder, CopyProgress, Disk, HistoryId, KeyRange, LogArchive, LogRange, Lsn, ReadAhead,
    RestoreUntil, Restored, Result, Storage, StorageError, StorageOptions, TreeId, restore,
};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
type Model = BTreeMap<TreeId, Entries>;

/// Keys are numbers below this.
const KEYS: u64 = 3_000;

/// An archive in memory, which fails when it is told to.
#[derive(Debug, Default)]
struct MemoryArchive {
    objects: Mutex<BTreeMap<(HistoryId, LogRange), Vec<u8>>>,
    is_failing: AtomicBool,
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
}

fn options(archive: Option<&Arc<MemoryArchive>>) -> StorageOptions {
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

fn open(disk: &Arc<SimulatedDisk>, archive: Option<&Arc<MemoryArchive>>) -> Arc<Storage> {
    Storage::open_on(disk.clone(), options(archive)).unwrap()
}

/// Closes a database and opens it again.
fn reopen(
    storage: Arc<Storage>,
    disk: &Arc<SimulatedDisk>,
    archive: Option<&Arc<MemoryArchive>>,
) -> Arc<Storage> {
    storage.close().unwrap();
    // Nobody else may have the files open: on a real disk the lock sees to it.
    drop(storage);
    open(disk, archive)
}

fn empty_disk(random: &mut Random) -> Arc<SimulatedDisk> {
    SimulatedDisk::new(SimulationOptions::new(random.next()))
}

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    disk.clone()
}

fn quietly(_: CopyProgress) -> Result<()> {
    Ok(())
}

/// A state that was committed.
struct Commit {
    time_us: u64,
    position: Lsn,
    model: Model,
}

/// Somebody who changes a database, and knows what must be in it.
struct Writer {
    random: Random,
    model: Model,
    commits: Vec<Commit>,
}

impl Writer {
    fn new(seed: u64) -> Writer {
        Writer {
            random: Random(seed),
            model: Model::new(),
            commits: Vec::new(),
        }
    }

    /// Changes something and commits it.
    fn step(&mut self, storage: &Arc<Storage>) -> Result<()> {
        match self.random.below(30) {
            0 | 1 => self.make_tree(storage),
            2 => self.drop_tree(storage),
            3 => storage.checkpoint(),
            4 => storage.drop_cached_pages(),
            _ => self.change_entries(storage),
        }
    }

    /// Makes a tree, often by a bulk build; sometimes it is given up.
    fn make_tree(&mut self, storage: &Arc<Storage>) -> Result<()> {
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

    fn append(&mut self, builder: &mut BulkBuilder, keys: std::ops::Range<u64>) -> Result<Entries> {
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
    fn drop_tree(&mut self, storage: &Arc<Storage>) -> Result<()> {
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
    fn commit_marker(&mut self, storage: &Arc<Storage>) -> Result<()> {
        let catalog = storage.catalog_tree();
        let mut transaction = storage.begin_transaction();
        let value = self.random.next().to_le_bytes();
        if !catalog.update(&mut transaction, b"marker", &value)? {
            catalog.insert(&mut transaction, b"marker", &value)?;
        }
        transaction.commit()
    }

    /// A transaction; some roll back.
    fn change_entries(&mut self, storage: &Arc<Storage>) -> Result<()> {
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

    fn note_commit(&mut self, storage: &Arc<Storage>) {
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
    fn backup(&mut self, storage: &Arc<Storage>, to: &Arc<SimulatedDisk>) {
        let summary = storage
            .backup(&as_disk(to), &mut |_| {
                (0..self.random.below(3)).try_for_each(|_| self.step(storage))
            })
            .unwrap();
        assert!(summary.completed_at_us > 0);
    }
}

/// All that is there is sound, and the trees of the model are there and equal.
fn check(storage: &Arc<Storage>, model: &Model, what: &str) {
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
fn check_restored(
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

fn restore_fails(
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

#[test]
fn a_backup_under_changes_is_what_was_committed_when_it_ended() {
    for seed in 0..30 {
        let mut writer = Writer::new(seed);
        let storage = open(&empty_disk(&mut writer.random), None);
        for _ in 0..40 {
            writer.step(&storage).unwrap();
        }
        // What is open when the backup ends is not in it.
        let mut open_transaction = storage.begin_transaction();
        let tree = storage.create_tree().unwrap();
        writer.commit_marker(&storage).unwrap();
        writer.model.insert(tree, Entries::new());
        let id = tree;
        let tree = storage.tree(id).unwrap();
        for key in 0..200_u32 {
            let value = [key as u8; 700];
            tree.insert(&mut open_transaction, &key.to_be_bytes(), &value)
                .unwrap();
        }
        let frozen = writer.model.remove(&id).unwrap();

        let target = empty_disk(&mut writer.random);
        writer.backup(&storage, &target);
        let mut model = writer.model.clone();
        model.insert(id, frozen);
        // The database goes on, which is nothing to the backup.
        for _ in 0..10 {
            writer.step(&storage).unwrap();
        }
        open_transaction.commit().unwrap();

        let copy = open(&target, None);
        check(&copy, &model, &format!("seed {seed}"));
        let mut other = Writer::new(seed + 1000);
        other.model = model;
        for _ in 0..10 {
            other.step(&copy).unwrap();
        }
        check(
            &reopen(copy, &target, None),
            &other.model,
            &format!("seed {seed}, reopened"),
        );
    }
}

#[test]
fn a_bulk_build_may_begin_before_a_backup_and_end_in_or_after_it() {
    for ends_in_it in [true, false] {
        let mut writer = Writer::new(5);
        let storage = open(&empty_disk(&mut writer.random), None);
        writer.make_tree(&storage).unwrap();
        let mut builder = BulkBuilder::new(&storage).unwrap();
        let mut entries = writer.append(&mut builder, 0..20_000).unwrap();
        let mut unfinished = Some(builder);
        let mut tree = None;
        let target = empty_disk(&mut writer.random);
        storage
            .backup(&as_disk(&target), &mut |progress| {
                if let Some(mut builder) = unfinished.take() {
                    let begin = entries.len() as u64;
                    entries.extend(writer.append(&mut builder, begin..begin + 4_000)?);
                    if ends_in_it && progress.bytes > 4 << 20 {
                        tree = Some(builder.finish()?);
                    } else {
                        unfinished = Some(builder);
                    }
                }
                Ok(())
            })
            .unwrap();
        let mut model = writer.model.clone();
        if ends_in_it {
            model.insert(tree.unwrap(), entries);
        } else {
            unfinished.unwrap().finish().unwrap();
        }
        check(&open(&target, None), &model, "the copy");
    }
}

#[test]
fn an_idle_or_empty_database_can_be_backed_up() {
    let mut writer = Writer::new(11);
    let storage = open(&empty_disk(&mut writer.random), None);
    for round in 0..3 {
        for _ in 0..round * 10 {
            writer.step(&storage).unwrap();
        }
        storage.checkpoint().unwrap();
        let target = empty_disk(&mut writer.random);
        storage.backup(&as_disk(&target), &mut quietly).unwrap();
        check(&open(&target, None), &writer.model, "the copy");
    }
}

/// Several threads move money between accounts all the time; a backup has all of it.
#[test]
fn a_backup_beside_threads_that_write_is_consistent() {
    const ACCOUNTS: u64 = 2_000;
    const THREADS: u64 = 3;
    let directory = tempfile::tempdir().unwrap();
    let options = || StorageOptions {
        background_writer: true,
        ..options(None)
    };
    let storage = Storage::open(&directory.path().join("data"), options()).unwrap();
    let id = storage.create_tree().unwrap();
    let tree = storage.tree(id).unwrap();
    let account = |number: u64| number.to_be_bytes();
    let padded = |amount: u64| [&amount.to_le_bytes()[..], &[7; 500]].concat();
    let mut opening = storage.begin_transaction();
    for number in 0..ACCOUNTS {
        tree.insert(&mut opening, &account(number), &padded(100))
            .unwrap();
    }
    opening.commit().unwrap();

    let is_over = AtomicBool::new(false);
    let folder = directory.path().join("backup");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (storage, tree, is_over) = (&storage, &tree, &is_over);
            scope.spawn(move || {
                let mut random = Random(thread);
                while !is_over.load(Ordering::Relaxed) {
                    // Each thread has accounts of its own, so that nobody waits for anybody.
                    let mut any = || random.below(ACCOUNTS / THREADS) * THREADS + thread;
                    let (from, to) = (any(), any());
                    if from == to || from >= ACCOUNTS || to >= ACCOUNTS {
                        continue;
                    }
                    let mut transaction = storage.begin_transaction();
                    for (number, sign) in [(from, -1), (to, 1)] {
                        let mut value = Vec::new();
                        assert!(tree.get(&account(number), &mut value).unwrap());
                        let amount = u64::from_le_bytes(value[..8].try_into().unwrap());
                        let changed = padded(amount.wrapping_add_signed(sign));
                        tree.update(&mut transaction, &account(number), &changed)
                            .unwrap();
                    }
                    transaction.commit().unwrap();
                }
            });
        }
        let made = storage.backup_to(&folder, &mut quietly);
        is_over.store(true, Ordering::Relaxed);
        made.unwrap();
    });
    assert!(storage.backup_to(&folder, &mut quietly).is_err());
    let copy = Storage::open(&folder, options()).unwrap();
    let tree = copy.tree(id).unwrap();
    tree.check().unwrap();
    let money = contents(&tree, KeyRange::all(), ReadAhead::Off)
        .iter()
        .map(|(_, value)| u64::from_le_bytes(value[..8].try_into().unwrap()))
        .fold(0_u64, u64::wrapping_add);
    assert_eq!(money, ACCOUNTS * 100);
}

#[test]
fn a_backup_that_is_given_up_leaves_no_database() {
    let mut writer = Writer::new(3);
    let storage = open(&empty_disk(&mut writer.random), None);
    for _ in 0..20 {
        writer.step(&storage).unwrap();
    }
    let target = empty_disk(&mut writer.random);
    let given_up = storage.backup(&as_disk(&target), &mut |_| Err(StorageError::Closed));
    assert!(matches!(given_up, Err(StorageError::Closed)));
    let opened = Storage::open_on(target, options(None));
    assert!(matches!(opened, Err(StorageError::UnknownFormat { .. })));
    // The log is not kept any more.
    for _ in 0..20 {
        writer.step(&storage).unwrap();
    }
}

#[test]
fn a_damaged_page_ends_a_backup_with_its_name() {
    let mut writer = Writer::new(9);
    let disk = empty_disk(&mut writer.random);
    let storage = open(&disk, None);
    let tree = storage.create_tree().unwrap();
    storage.drop_cached_pages().unwrap();
    // The root of the catalog.
    let data = disk.open("sheaf.data").unwrap();
    disk.flip_stored_bit(data, 3 * sheaf_storage::PAGE_SIZE as u64 + 100, 1);
    let target = empty_disk(&mut writer.random);
    let error = storage.backup(&as_disk(&target), &mut quietly).unwrap_err();
    assert!(
        error.to_string().contains("page 3 of tree 2 is corrupt"),
        "{error}"
    );
    assert!(storage.tree(tree).is_ok());
}

/// A history with crashes, a failing archive, and a backup in the middle: every commit since can be had again.
fn archive_and_restore(seed: u64) {
    let archive = Arc::new(MemoryArchive::default());
    let mut writer = Writer::new(seed);
    let mut disk = empty_disk(&mut writer.random);
    let mut storage = open(&disk, Some(&archive));
    let backup = empty_disk(&mut writer.random);
    let mut first_commit = 0;
    let backup_at = writer.random.below(60);
    for step in 0..100 {
        writer.step(&storage).unwrap();
        if step == backup_at {
            writer.backup(&storage, &backup);
            first_commit = writer.commits.len().max(1) - 1;
        }
        match writer.random.below(12) {
            0 | 1 => storage.archive_step(true).unwrap(),
            2 => {
                archive.is_failing.store(true, Ordering::Relaxed);
                // It says so if there was something to send.
                let _ = storage.archive_step(true);
                archive.is_failing.store(false, Ordering::Relaxed);
            }
            3 => {
                // The machine stops; what was acknowledged is durable.
                disk.crash();
                drop(storage);
                disk = disk.power_loss(SimulationOptions::new(writer.random.next()));
                storage = open(&disk, Some(&archive));
                check(
                    &storage,
                    &writer.model,
                    &format!("seed {seed}, after a crash"),
                );
            }
            4 => {
                storage = reopen(storage, &disk, Some(&archive));
            }
            _ => {}
        }
    }
    storage.archive_step(true).unwrap();
    let commits = &writer.commits[first_commit..];
    for (i, commit) in commits.iter().enumerate() {
        let what = format!("seed {seed}, commit {i} of {}", commits.len());
        let until = if i % 2 == 0 {
            RestoreUntil::TimeUs(commit.time_us)
        } else {
            RestoreUntil::Position(commit.position)
        };
        // The first one may be older than the backup's end.
        if i > 0 {
            check_restored(&backup, &archive, until, &commit.model, &what);
        }
    }
    check_restored(
        &backup,
        &archive,
        RestoreUntil::End,
        &writer.model,
        &format!("seed {seed}, all"),
    );
}

#[test]
fn every_commit_since_a_backup_can_be_restored() {
    let seeds = std::env::var("SHEAF_BACKUP_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| {
        let (first, end) = seeds.split_once("..")?;
        Some(first.parse().ok()?..end.parse().ok()?)
    });
    for seed in seeds.unwrap_or(0..8) {
        archive_and_restore(seed);
    }
}

#[test]
fn a_restored_database_has_a_history_of_its_own() {
    let archive = Arc::new(MemoryArchive::default());
    let mut writer = Writer::new(21);
    let storage = open(&empty_disk(&mut writer.random), Some(&archive));
    writer.make_tree(&storage).unwrap();
    let backup = empty_disk(&mut writer.random);
    writer.backup(&storage, &backup);
    for _ in 0..20 {
        writer.step(&storage).unwrap();
    }
    storage.archive_step(true).unwrap();
    let middle = writer.commits.len() - 5;

    let target = empty_disk(&mut writer.random);
    let commit = &writer.commits[middle];
    let restored = restore(
        &as_disk(&backup),
        Some(&*archive),
        &as_disk(&target),
        RestoreUntil::TimeUs(commit.time_us),
        &mut quietly,
    )
    .unwrap();
    assert_eq!(restored.newest_commit_us, Some(commit.time_us));
    let next = &writer.commits[middle + 1];
    assert!(restored.next_commit_us <= Some(next.time_us));

    // Both go on, in the same archive.
    let other = open(&target, Some(&archive));
    let mut other_writer = Writer::new(22);
    other_writer.model = commit.model.clone();
    let second_backup = empty_disk(&mut writer.random);
    other_writer.backup(&other, &second_backup);
    for _ in 0..20 {
        other_writer.step(&other).unwrap();
        writer.step(&storage).unwrap();
    }
    other.archive_step(true).unwrap();
    storage.archive_step(true).unwrap();
    let end = RestoreUntil::End;
    check_restored(&backup, &archive, end, &writer.model, "the first one");
    check_restored(
        &second_backup,
        &archive,
        end,
        &other_writer.model,
        "the other one",
    );
}

#[test]
fn an_archive_that_fails_for_long_stops_changes_until_it_is_back() {
    let archive = Arc::new(MemoryArchive::default());
    let mut writer = Writer::new(31);
    let disk = empty_disk(&mut writer.random);
    let limited = StorageOptions {
        archive_lag_limit_bytes: 8 << 20,
        ..options(Some(&archive))
    };
    let storage = Storage::open_on(disk.clone(), limited).unwrap();
    writer.make_tree(&storage).unwrap();
    let backup = empty_disk(&mut writer.random);
    writer.backup(&storage, &backup);
    storage.archive_step(true).unwrap();

    archive.is_failing.store(true, Ordering::Relaxed);
    let refused = loop {
        let _ = storage.archive_step(true);
        if let Err(error) = writer.step(&storage) {
            break error;
        }
    };
    assert!(
        matches!(refused, StorageError::ArchiveBehind { limit: 0x80_0000 }),
        "{refused}"
    );
    check(&storage, &writer.model, "reading goes on");
    archive.is_failing.store(false, Ordering::Relaxed);
    storage.archive_step(true).unwrap();
    for _ in 0..30 {
        match writer.step(&storage) {
            // A bulk build alone may be more than the archive may be behind.
            Ok(()) | Err(StorageError::ArchiveBehind { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        storage.archive_step(true).unwrap();
    }
    let end = RestoreUntil::End;
    check_restored(&backup, &archive, end, &writer.model, "no gap");
}

#[test]
fn what_cannot_be_restored_says_why() {
    let archive = Arc::new(MemoryArchive::default());
    let mut writer = Writer::new(41);
    let disk = empty_disk(&mut writer.random);
    let storage = open(&disk, Some(&archive));
    for _ in 0..10 {
        writer.step(&storage).unwrap();
    }
    let early = writer.commits[0].time_us;
    let backup = empty_disk(&mut writer.random);
    storage.checkpoint().unwrap();
    let mut is_first = true;
    storage
        .backup(&as_disk(&backup), &mut |_| {
            // A commit while the pages are copied.
            if std::mem::take(&mut is_first) {
                writer.commit_marker(&storage)
            } else {
                Ok(())
            }
        })
        .unwrap();
    let error = restore_fails(&backup, &archive, RestoreUntil::TimeUs(early));
    assert!(error.contains("take an older backup"), "{error}");
    let error = restore_fails(&backup, &archive, RestoreUntil::Position(Lsn(1 << 40)));
    assert!(error.contains("and not to"), "{error}");

    // The server runs without its archive, and loads a table.
    let storage = reopen(storage, &disk, None);
    let mut builder = BulkBuilder::new(&storage).unwrap();
    writer.append(&mut builder, 0..20_000).unwrap();
    builder.finish().unwrap();
    let storage = reopen(storage, &disk, Some(&archive));
    writer.commit_marker(&storage).unwrap();
    storage.archive_step(true).unwrap();
    let error = restore_fails(&backup, &archive, RestoreUntil::End);
    assert!(error.contains("ran without it"), "{error}");

    // It runs without for so long that the log is recycled.
    let storage = reopen(storage, &disk, None);
    for _ in 0..300 {
        writer.change_entries(&storage).unwrap();
    }
    let new_backup = empty_disk(&mut writer.random);
    let storage = reopen(storage, &disk, Some(&archive));
    storage.archive_step(true).unwrap();
    writer.backup(&storage, &new_backup);
    writer.change_entries(&storage).unwrap();
    storage.archive_step(true).unwrap();
    let error = restore_fails(&new_backup, &archive, RestoreUntil::TimeUs(early));
    assert!(error.contains("take an older backup"), "{error}");
    let end = RestoreUntil::End;
    check_restored(&new_backup, &archive, end, &writer.model, "the new backup");

    // A backup that was opened is a database, and goes its own way.
    open(&new_backup, None).close().unwrap();
    let error = restore_fails(&new_backup, &archive, end);
    assert!(error.contains("was opened"), "{error}");
}

#[test]
fn an_older_copy_of_the_directory_does_not_write_into_the_archive() {
    let archive = Arc::new(MemoryArchive::default());
    let mut writer = Writer::new(51);
    let disk = empty_disk(&mut writer.random);
    let storage = open(&disk, Some(&archive));
    for _ in 0..10 {
        writer.step(&storage).unwrap();
    }
    storage.close().unwrap();
    drop(storage);
    let older = disk.power_loss(SimulationOptions::new(1));
    let newer = disk.power_loss(SimulationOptions::new(2));
    let storage = open(&newer, Some(&archive));
    for _ in 0..10 {
        writer.step(&storage).unwrap();
    }
    storage.close().unwrap();
    drop(storage);
    let storage = open(&older, Some(&archive));
    let error = storage.archive_step(true).unwrap_err().to_string();
    assert!(error.contains("an older copy of the directory"), "{error}");
}
