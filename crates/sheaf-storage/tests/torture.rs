//! Crash torture: random transactions, a crash at any disk operation, and another one during recovery.
//!
//! A run is a function of its seed. A model beside the storage knows what was acknowledged. After each crash the disk
//! keeps what was synced and, sector by sector at random, some of what was not. Then all that was acknowledged must be
//! there and nothing else, except that the one transaction whose commit was under way may be there as a whole; and
//! every tree must be sound.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Random, contents};
use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{
    BulkBuilder, KeyRange, ReadAhead, Storage, StorageError, StorageOptions, Transaction, Tree,
    TreeId,
};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
type Model = BTreeMap<TreeId, Entries>;

/// Lives of the storage in a run; all but the last end by a crash.
const LIVES: u64 = 5;

/// Most trees at a time.
const MAX_TREES: usize = 4;

fn options(random: &mut Random) -> StorageOptions {
    StorageOptions {
        pool_bytes: if random.below(2) == 0 {
            1 << 20
        } else {
            3 << 20
        },
        background_writer: false,
        log_segment_bytes: 512 << 10,
        // Short enough that changes make checkpoints now and then.
        log_limit_bytes: 1 << 20,
        ..StorageOptions::default()
    }
}

/// What a transaction has changed in the model: each entry's tree, key and value before.
#[derive(Default)]
struct Journal(Vec<(TreeId, Vec<u8>, Option<Vec<u8>>)>);

impl Journal {
    /// Takes back what was changed after the first `mark` changes.
    fn undo(&mut self, model: &mut Model, mark: usize) {
        for (tree, key, before) in self.0.drain(mark..).rev() {
            let Some(entries) = model.get_mut(&tree) else {
                continue;
            };
            match before {
                Some(value) => entries.insert(key, value),
                None => entries.remove(&key),
            };
        }
    }
}

/// The storage, what is in it, and what may be in it.
struct Run {
    random: Random,
    storage: Arc<Storage>,
    /// What was acknowledged, with the changes of live transactions.
    model: Model,
    /// Live transactions.
    journals: [Journal; 2],
    /// The one of them whose commit is under way.
    committing: Option<usize>,
    /// A crash may have left trees that nobody knows of, or one may be gone or not.
    uncertain_trees: bool,
}

/// The machine has crashed; anything else is a failure of the test.
struct Crashed;

impl Run {
    /// Does something. An error is taken for the crash, which the caller verifies.
    fn step(&mut self) -> Result<(), Crashed> {
        match self.random.below(40) {
            0 => self.create_tree(),
            1 => self.drop_tree(),
            2 => self.build_tree(),
            3 => self.storage.checkpoint().map_err(crashed),
            4 => self.storage.drop_cached_pages().map_err(crashed),
            5 => self.interleaved_transactions(),
            _ => self.transaction(),
        }
    }

    fn create_tree(&mut self) -> Result<(), Crashed> {
        if self.model.len() < MAX_TREES {
            self.uncertain_trees = true;
            let id = self.storage.create_tree().map_err(crashed)?;
            // A tree is durable with the first commit that follows.
            self.empty_commit()?;
            self.model.insert(id, Entries::new());
            self.uncertain_trees = false;
        }
        Ok(())
    }

    fn drop_tree(&mut self) -> Result<(), Crashed> {
        if self.model.len() > 1
            && let Some(id) = self.any_tree()
        {
            self.uncertain_trees = true;
            self.storage.drop_tree(id).map_err(crashed)?;
            let entries = self.model.remove(&id);
            let committed = self.empty_commit();
            if committed.is_err() {
                // It may still be there.
                self.model.extend(entries.map(|entries| (id, entries)));
            }
            committed?;
            self.uncertain_trees = false;
        }
        Ok(())
    }

    fn build_tree(&mut self) -> Result<(), Crashed> {
        if self.model.len() >= MAX_TREES {
            return Ok(());
        }
        self.uncertain_trees = true;
        let mut builder = BulkBuilder::new(&self.storage).map_err(crashed)?;
        let mut entries = Entries::new();
        // Some builds fit shared extents, others take extents of their own.
        let count = self.random.below(2) * 3_000 + self.random.below(500);
        for i in 0..count {
            let key = (i as u32 * 3).to_be_bytes().to_vec();
            let value = vec![i as u8; 150 + self.random.below(200) as usize];
            builder.append(&key, &value).map_err(crashed)?;
            entries.insert(key, value);
        }
        if self.random.below(5) == 0 {
            drop(builder);
        } else {
            let id = builder.finish().map_err(crashed)?;
            self.empty_commit()?;
            self.model.insert(id, entries);
        }
        self.uncertain_trees = false;
        Ok(())
    }

    /// A commit of something that the model does not look at: what was logged before is durable then.
    fn empty_commit(&mut self) -> Result<(), Crashed> {
        let catalog = self.storage.catalog_tree();
        let mut transaction = self.storage.begin_transaction();
        let value = self.random.next().to_le_bytes();
        let updated = catalog
            .update(&mut transaction, b"counter", &value)
            .map_err(crashed)?;
        if !updated {
            catalog
                .insert(&mut transaction, b"counter", &value)
                .map_err(crashed)?;
        }
        transaction.commit().map_err(crashed)
    }

    fn any_tree(&mut self) -> Option<TreeId> {
        let trees = self.model.len() as u64;
        let number = self.random.below(trees.max(1)) as usize;
        self.model.keys().nth(number).copied()
    }

    fn transaction(&mut self) -> Result<(), Crashed> {
        let mut transaction = self.storage.begin_transaction();
        let limit = if self.random.below(8) == 0 { 300 } else { 12 };
        let changes = 1 + self.random.below(limit);
        let mut savepoint = None;
        for _ in 0..changes {
            if self.random.below(10) == 0 {
                savepoint = Some((transaction.savepoint(), self.journals[0].0.len()));
            }
            self.change(&mut transaction, 0, &|_| true)?;
        }
        if let Some((mark, journal_mark)) = savepoint
            && self.random.below(2) == 0
        {
            transaction.rollback_to(mark).map_err(crashed)?;
            self.journals[0].undo(&mut self.model, journal_mark);
        }
        if self.random.below(4) == 0 {
            self.roll_back(transaction, 0)
        } else {
            self.commit(transaction, 0)
        }
    }

    /// Two transactions at a time, on keys of their own.
    fn interleaved_transactions(&mut self) -> Result<(), Crashed> {
        let mut transactions = [
            self.storage.begin_transaction(),
            self.storage.begin_transaction(),
        ];
        for _ in 0..self.random.below(60) {
            let one = self.random.below(2) as usize;
            let own = move |key: &[u8]| key[3] as usize % 2 == one;
            self.change(&mut transactions[one], one, &own)?;
        }
        let [first, second] = transactions;
        if self.random.below(2) == 0 {
            self.roll_back(first, 0)?;
            self.commit(second, 1)
        } else {
            self.commit(second, 1)?;
            self.roll_back(first, 0)
        }
    }

    fn commit(&mut self, transaction: Transaction, journal: usize) -> Result<(), Crashed> {
        self.committing = Some(journal);
        transaction.commit().map_err(crashed)?;
        self.committing = None;
        self.journals[journal].0.clear();
        Ok(())
    }

    fn roll_back(&mut self, transaction: Transaction, journal: usize) -> Result<(), Crashed> {
        transaction.rollback().map_err(crashed)?;
        self.journals[journal].undo(&mut self.model, 0);
        Ok(())
    }

    /// Changes one entry, whose key `is_own`, in storage and model.
    fn change(
        &mut self,
        transaction: &mut Transaction,
        journal: usize,
        is_own: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), Crashed> {
        let Some(id) = self.any_tree() else {
            return Ok(());
        };
        let tree = self.storage.tree(id).map_err(crashed)?;
        let entries = self.model.entry(id).or_default();
        let mut key = (self.random.below(12_000) as u32).to_be_bytes().to_vec();
        if self.random.below(2) == 0
            && let Some((next, _)) = entries.range(key.clone()..).next()
        {
            key = next.clone();
        }
        if !is_own(&key) {
            return Ok(());
        }
        let limit = if self.random.below(10) == 0 {
            3_000
        } else {
            200
        };
        let length = self.random.below(limit);
        let value = vec![self.random.next() as u8; length as usize];
        let before = entries.get(&key).cloned();
        let changed = match self.random.below(3) {
            0 => match tree.insert(transaction, &key, &value) {
                Ok(()) => {
                    assert!(before.is_none());
                    entries.insert(key.clone(), value);
                    true
                }
                Err(StorageError::DuplicateKey { .. }) => {
                    assert!(before.is_some());
                    false
                }
                Err(error) => return Err(crashed(error)),
            },
            1 => {
                let updated = tree.update(transaction, &key, &value).map_err(crashed)?;
                assert_eq!(updated, before.is_some());
                if updated {
                    entries.insert(key.clone(), value);
                }
                updated
            }
            _ => {
                let deleted = tree.delete(transaction, &key).map_err(crashed)?;
                assert_eq!(deleted, entries.remove(&key).is_some());
                deleted
            }
        };
        if changed {
            self.journals[journal].0.push((id, key, before));
        }
        Ok(())
    }

    /// Compares all that is there with what may be there, and learns which it is.
    fn verify(&mut self, seed: u64) {
        for journal in 0..self.journals.len() {
            if self.committing != Some(journal) {
                self.journals[journal].undo(&mut self.model, 0);
            }
        }
        let mut found = Model::new();
        for id in self.storage.tree_ids().unwrap() {
            let tree = self.storage.tree(id).unwrap();
            check(&tree, seed);
            if id == self.storage.catalog_tree().id() {
                continue;
            }
            found.insert(id, entries(&tree));
        }
        if self.uncertain_trees {
            // The one that was being made or dropped may be there or not.
            let acknowledged = &mut self.model;
            found.retain(|id, _| acknowledged.contains_key(id));
            let gone: Vec<_> = acknowledged
                .keys()
                .filter(|id| !found.contains_key(id))
                .copied()
                .collect();
            assert!(gone.len() <= 1, "seed {seed}: trees {gone:?} are gone");
            gone.iter().for_each(|id| drop(acknowledged.remove(id)));
            for id in self.storage.tree_ids().unwrap() {
                if id != self.storage.catalog_tree().id() && !self.model.contains_key(&id) {
                    self.storage.drop_tree(id).unwrap();
                }
            }
            self.uncertain_trees = false;
        }
        if let Some(journal) = self.committing.take() {
            if found == self.model {
                self.journals[journal].0.clear();
            } else {
                self.journals[journal].undo(&mut self.model, 0);
            }
        }
        assert!(
            found == self.model,
            "seed {seed}: {}",
            difference(&self.model, &found)
        );
    }
}

fn crashed(error: StorageError) -> Crashed {
    match error {
        StorageError::Io { .. } | StorageError::SyncFailed { .. } | StorageError::Closed => Crashed,
        other => panic!("not what a crash looks like: {other}"),
    }
}

fn check(tree: &Arc<Tree>, seed: u64) {
    let counted = tree.statistics().entries;
    match tree.check() {
        Ok(found) => assert_eq!(found.entries, counted, "seed {seed}: tree {}", tree.id()),
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

fn entries(tree: &Arc<Tree>) -> Entries {
    contents(tree, KeyRange::all(), ReadAhead::Off)
        .into_iter()
        .collect()
}

/// The first entry in which the models differ.
fn difference(expected: &Model, found: &Model) -> String {
    for (id, entries) in expected {
        let Some(other) = found.get(id) else {
            return format!("tree {id} is gone");
        };
        for (key, value) in entries {
            if other.get(key) != Some(value) {
                return format!(
                    "tree {id}, key {key:?}: {} bytes expected, found {:?}",
                    value.len(),
                    other.get(key).map(Vec::len)
                );
            }
        }
        if let Some((key, _)) = other.iter().find(|(key, _)| !entries.contains_key(*key)) {
            return format!("tree {id}, key {key:?} should not be there");
        }
    }
    format!("trees {:?} should not be there", found.keys())
}

/// Opens the storage, crashing on the way as often as the seed says.
fn recover(
    mut disk: Arc<SimulatedDisk>,
    random: &mut Random,
    crashes: &mut u64,
) -> (Arc<SimulatedDisk>, Arc<Storage>) {
    loop {
        if random.below(2) == 0 {
            disk.crash_after(Some(random.below(300)));
        }
        let opened = Storage::open_on(disk.clone(), options(random));
        match opened {
            Ok(storage) if !disk.is_crashed() => {
                disk.crash_after(None);
                return (disk, storage);
            }
            Ok(storage) => drop(storage),
            Err(error) => assert!(disk.is_crashed(), "recovery failed: {error}"),
        }
        *crashes += 1;
        disk = disk.power_loss(SimulationOptions::new(random.next()));
    }
}

/// One run. Returns the number of crashes.
fn torture(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut crashes = 0;
    let first = SimulatedDisk::new(SimulationOptions::new(random.next()));
    let (mut disk, storage) = recover(first, &mut random, &mut crashes);
    let mut run = Run {
        random,
        storage,
        model: Model::new(),
        journals: Default::default(),
        committing: None,
        uncertain_trees: false,
    };
    for _ in 0..LIVES {
        let life = 100 + run.random.below(4_000);
        disk.crash_after(Some(run.random.below(life)));
        while !disk.is_crashed() {
            let result = if run.model.is_empty() {
                run.create_tree()
            } else {
                run.step()
            };
            assert!(
                result.is_ok() || disk.is_crashed(),
                "seed {seed}: an error without a crash"
            );
        }
        crashes += 1;
        let found = disk.power_loss(SimulationOptions::new(run.random.next()));
        (disk, run.storage) = recover(found, &mut run.random, &mut crashes);
        run.verify(seed);
    }
    run.storage.close().unwrap();
    run.storage = Storage::open_on(disk, options(&mut run.random)).unwrap();
    run.verify(seed);
    crashes
}

/// `SHEAF_TORTURE_SEEDS=1000..2000` runs others than these.
#[test]
fn what_was_acknowledged_survives_every_crash_and_nothing_else_does() {
    let range = std::env::var("SHEAF_TORTURE_SEEDS").ok().and_then(|range| {
        let (start, end) = range.split_once("..")?;
        Some(start.parse().ok()?..end.parse().ok()?)
    });
    let crashes: u64 = range.unwrap_or(0..60u64).map(torture).sum();
    eprintln!("{crashes} crashes");
    assert!(crashes > 0);
}
