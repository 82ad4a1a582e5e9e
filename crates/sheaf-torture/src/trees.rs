//! The workload on the storage alone: trees, and transactions that change their entries.
//!
//! Trees are made, built and dropped outside of transactions; they are durable with the next commit. One that a crash
//! interrupts in between is an orphan, as it is for the catalog, which drops trees that it does not know.
//!
//! Commits may wait, several at a time, while later transactions go on with what they have left. A crash keeps the
//! first so many of them, in the order of the log, and all that a reader was told of.
//!
//! In some runs a [follower](crate::followed) reads the log as well.

use std::sync::Arc;

use sheaf_storage::Random;
use sheaf_storage::{
    BulkBuilder, Direction, KeyRange, PendingCommit, ReadAhead, Storage, StorageError,
    StorageOptions, Transaction, Tree, TreeId,
};
use sheaf_table::TableError;

use crate::followed::{Entries, Follower, Model};
use crate::machine::{Machine, Stop, Workload};

/// Most trees at a time.
const MAX_TREES: usize = 4;

/// Keys are numbers below this.
const KEYS: u64 = 12_000;

/// Most commits that wait at a time.
const MAX_PENDING: usize = 4;

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
#[derive(Default)]
pub(crate) struct Trees {
    storage: Option<Arc<Storage>>,
    /// What was acknowledged, with the changes of live transactions.
    model: Model,
    /// Live transactions.
    journals: [Journal; 2],
    /// Transactions that have committed and may be there after a crash or not, in the order of the log.
    committing: Vec<Journal>,
    /// Commits that are not finished. What of them is durable need not be among those above.
    pending: Vec<PendingCommit>,
    /// There may be trees that the model does not know, or it is unknown whether one is gone.
    uncertain_trees: bool,
    /// Follows what is changed, if anybody does.
    follower: Option<Follower>,
}

impl Workload for Trees {
    fn choose_options(&mut self, _: &mut Random, options: &mut StorageOptions) {
        options.follow_changes = self.follower.is_some();
    }

    fn start(&mut self, storage: Arc<Storage>) -> Result<(), TableError> {
        if let Some(follower) = &mut self.follower {
            follower.start(&storage)?;
        }
        self.storage = Some(storage);
        Ok(())
    }

    fn step(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        if let Some(follower) = &mut self.follower
            && machine.random.below(4) == 0
        {
            let followed = follower.follow(&mut machine.random);
            followed.map_err(|error| machine.stop(error))?;
        }
        if self.model.is_empty() {
            return self.create_tree(machine);
        }
        match machine.random.below(44) {
            definition @ 0..=2 => {
                // A transaction that has changed a tree keeps others from dropping it.
                self.finish_commits(machine)?;
                match definition {
                    0 => self.create_tree(machine),
                    1 => self.drop_tree(machine),
                    _ => self.build_tree(machine),
                }
            }
            3 => self.checkpoint(machine, Storage::checkpoint),
            4 => self.checkpoint(machine, Storage::drop_cached_pages),
            5 => self.interleaved_transactions(machine),
            6 | 7 => self.finish_commits(machine),
            8 | 9 => self.read_under_locks(machine),
            _ => self.transaction(machine),
        }
    }

    fn stop(&mut self) {
        self.pending.clear();
        self.follower.iter_mut().for_each(Follower::stop);
        self.storage = None;
    }

    fn close(&mut self) {
        self.pending.clear();
        self.follower.iter_mut().for_each(Follower::stop);
        let closed = self.storage.take().map(|storage| storage.close());
        assert!(matches!(closed, Some(Ok(()))), "{closed:?}");
    }

    fn verify(&mut self) {
        for journal in &mut self.journals {
            journal.undo(&mut self.model, 0);
        }
        let storage = self.storage().clone();
        let mut found = found_trees(&storage);
        if self.uncertain_trees {
            // The one that was being made or dropped may be there or not.
            found.retain(|id, _| self.model.contains_key(id));
            let known = self.model.len();
            self.model.retain(|id, _| found.contains_key(id));
            assert!(
                known - self.model.len() <= 1,
                "of {known} trees only {:?} are left",
                found.keys()
            );
            self.drop_unknown_trees(&storage);
            self.uncertain_trees = false;
        }
        while found != self.model
            && let Some(mut journal) = self.committing.pop()
        {
            journal.undo(&mut self.model, 0);
        }
        self.committing.clear();
        assert!(found == self.model, "{}", difference(&self.model, &found));
        if let Some(follower) = &mut self.follower {
            let followed = follower.follow(&mut Random::new(0));
            followed.expect("the log can be read");
            follower.verify(&self.model);
        }
        let checked = storage.check(|_| ()).map(|checked| checked.orphaned_pages);
        assert!(matches!(checked, Ok(Some(0))), "lost pages: {checked:?}");
    }
}

impl Trees {
    /// The workload beside a follower.
    pub(crate) fn followed() -> Trees {
        Trees {
            follower: Some(Follower::default()),
            ..Trees::default()
        }
    }

    /// A new tree is followed, if anybody follows. It was built with these entries.
    fn note_new(&mut self, id: TreeId, entries: &Entries) -> Result<(), StorageError> {
        if let Some(follower) = &mut self.follower {
            follower.note_built(id, entries);
            self.storage().tree(id)?.follow();
        }
        Ok(())
    }

    fn storage(&self) -> &Arc<Storage> {
        self.storage.as_ref().expect("it was started")
    }

    /// A checkpoint, or another way to have all pages written. One that fails is made again later.
    fn checkpoint(
        &mut self,
        machine: &mut Machine,
        write: impl FnOnce(&Storage) -> Result<(), StorageError>,
    ) -> Result<(), Stop> {
        match write(self.storage()).map_err(|error| machine.stop(error)) {
            Err(Stop::Dead) if machine.goes_on() => Ok(()),
            written => written,
        }
    }

    fn create_tree(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        if self.model.len() < MAX_TREES {
            self.uncertain_trees = true;
            let made = self.storage().create_tree();
            let id = made.map_err(|error| machine.stop(error))?;
            let followed = self.note_new(id, &Entries::new());
            followed.map_err(|error| machine.stop(error))?;
            // A tree is durable with the first commit that follows.
            self.empty_commit(machine)?;
            self.model.insert(id, Entries::new());
            machine.summary.definitions += 1;
            self.forget_unknown_trees(machine)?;
        }
        Ok(())
    }

    fn drop_tree(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        if self.model.len() > 1
            && let Some(id) = self.any_tree(&mut machine.random)
        {
            self.uncertain_trees = true;
            let dropped = self.storage().drop_tree(id);
            if let Err(error) = dropped {
                let stop = machine.stop(error);
                assert!(stop == Stop::Dead || self.storage().tree(id).is_ok());
                return Err(stop);
            }
            let entries = self.model.remove(&id);
            let committed = self.empty_commit(machine);
            if committed == Err(Stop::Dead) {
                // It may still be there.
                self.model.extend(entries.map(|entries| (id, entries)));
            }
            committed?;
            machine.summary.definitions += 1;
            self.forget_unknown_trees(machine)?;
        }
        Ok(())
    }

    fn build_tree(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        if self.model.len() >= MAX_TREES {
            return Ok(());
        }
        self.uncertain_trees = true;
        let built = self.build(&mut machine.random);
        if let Some((id, entries)) = built.map_err(|error| machine.stop(error))? {
            let followed = self.note_new(id, &entries);
            followed.map_err(|error| machine.stop(error))?;
            self.empty_commit(machine)?;
            self.model.insert(id, entries);
            machine.summary.definitions += 1;
        }
        self.forget_unknown_trees(machine)
    }

    /// A tree that was built, unless the build was abandoned.
    fn build(&mut self, random: &mut Random) -> Result<Option<(TreeId, Entries)>, StorageError> {
        let mut builder = BulkBuilder::new(self.storage())?;
        let mut entries = Entries::new();
        // Some builds fit shared extents, others take extents of their own.
        let count = random.below(2) * 3_000 + random.below(500);
        for i in 0..count {
            let key = (i as u32 * 3).to_be_bytes().to_vec();
            let value = vec![i as u8; 150 + random.below(200) as usize];
            builder.append(&key, &value)?;
            entries.insert(key, value);
        }
        if random.below(5) == 0 {
            return Ok(None);
        }
        builder.finish().map(|id| Some((id, entries)))
    }

    /// Trees that a full disk has left half made are dropped, as the catalog drops those of a statement that failed.
    fn forget_unknown_trees(&mut self, machine: &Machine) -> Result<(), Stop> {
        let known = self.storage().tree_ids();
        let known = known.map_err(|error| machine.stop(error))?;
        if known.len() == self.model.len() + 1 {
            self.uncertain_trees = false;
        }
        Ok(())
    }

    fn drop_unknown_trees(&self, storage: &Storage) {
        for id in storage.tree_ids().expect("the directory was read") {
            if id != storage.catalog_tree().id() && !self.model.contains_key(&id) {
                storage.drop_tree(id).expect("nothing keeps it");
            }
        }
    }

    /// A commit of something that the model does not look at: what was logged before is durable then.
    fn empty_commit(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let catalog = self.storage().catalog_tree();
        let mut transaction = self.storage().begin_transaction();
        let value = machine.random.next().to_le_bytes();
        let changed = match catalog.update(&mut transaction, b"counter", &value) {
            Ok(false) => catalog.insert(&mut transaction, b"counter", &value),
            other => other.map(drop),
        };
        changed.map_err(|error| machine.stop(error))?;
        transaction
            .commit()
            .map_err(|error| machine.must_be_dead(error))
    }

    fn any_tree(&self, random: &mut Random) -> Option<TreeId> {
        let number = random.below(self.model.len().max(1) as u64) as usize;
        self.model.keys().nth(number).copied()
    }

    fn transaction(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let mut transaction = self.storage().begin_transaction();
        let limit = if machine.random.below(8) == 0 {
            300
        } else {
            12
        };
        let changes = 1 + machine.random.below(limit);
        let mut savepoint = None;
        for _ in 0..changes {
            if machine.random.below(10) == 0 {
                savepoint = Some((transaction.savepoint(), self.journals[0].0.len()));
            }
            self.change(machine, &mut transaction, 0, &|_| true)?;
        }
        if let Some((mark, journal_mark)) = savepoint
            && machine.random.below(2) == 0
        {
            let rolled_back = transaction.rollback_to(mark);
            rolled_back.map_err(|error| machine.must_be_dead(error))?;
            self.journals[0].undo(&mut self.model, journal_mark);
        }
        if machine.random.below(4) == 0 {
            self.roll_back(machine, transaction, 0)
        } else {
            self.commit(machine, transaction, 0)
        }
    }

    /// Two transactions at a time, on keys of their own.
    fn interleaved_transactions(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let mut transactions = [
            self.storage().begin_transaction(),
            self.storage().begin_transaction(),
        ];
        for _ in 0..machine.random.below(60) {
            let one = machine.random.below(2) as usize;
            let own = move |key: &[u8]| key[3] as usize % 2 == one;
            self.change(machine, &mut transactions[one], one, &own)?;
        }
        let [first, second] = transactions;
        if machine.random.below(2) == 0 {
            self.roll_back(machine, first, 0)?;
            self.commit(machine, second, 1)
        } else {
            self.commit(machine, second, 1)?;
            self.roll_back(machine, first, 0)
        }
    }

    fn commit(
        &mut self,
        machine: &mut Machine,
        transaction: Transaction,
        journal: usize,
    ) -> Result<(), Stop> {
        let journal = std::mem::take(&mut self.journals[journal]);
        self.committing.push(journal);
        let pending = transaction.commit_later();
        match pending.map_err(|error| machine.must_be_dead(error))? {
            // It has changed nothing, and what it has seen is durable.
            None => drop(self.committing.pop()),
            Some(pending) if self.pending.len() < MAX_PENDING && machine.random.below(3) == 0 => {
                self.pending.push(pending);
            }
            Some(pending) => {
                let finished = pending.finish();
                finished.map_err(|error| machine.must_be_dead(error))?;
                self.committing.clear();
            }
        }
        machine.summary.commits += 1;
        Ok(())
    }

    /// Finishes the commits that wait, in any order.
    fn finish_commits(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        while !self.pending.is_empty() {
            let number = machine.random.below(self.pending.len() as u64) as usize;
            let finished = self.pending.swap_remove(number).finish();
            finished.map_err(|error| machine.must_be_dead(error))?;
        }
        self.committing.clear();
        Ok(())
    }

    /// A transaction that changes nothing and sees what the next one would change, however its commit stands. What it
    /// was told is true, crash or not, when it has ended.
    fn read_under_locks(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let Some(id) = self.any_tree(&mut machine.random) else {
            return Ok(());
        };
        let mut transaction = self.storage().begin_transaction();
        let read = self.storage().tree(id).and_then(|tree| {
            let view = transaction.view_to_lock()?;
            let mut value = Vec::new();
            for (key, expected) in &self.model[&id] {
                let found = tree.get_at(&view, key, &mut value)?;
                assert!(found && value == *expected, "tree {id}, key {key:?}");
            }
            Ok(())
        });
        read.map_err(|error| machine.stop(error))?;
        let ended = match machine.random.below(2) {
            0 => transaction.commit(),
            _ => transaction.rollback(),
        };
        ended.map_err(|error| machine.must_be_dead(error))?;
        self.committing.clear();
        Ok(())
    }

    fn roll_back(
        &mut self,
        machine: &mut Machine,
        transaction: Transaction,
        journal: usize,
    ) -> Result<(), Stop> {
        let rolled_back = transaction.rollback();
        rolled_back.map_err(|error| machine.must_be_dead(error))?;
        self.journals[journal].undo(&mut self.model, 0);
        machine.summary.rollbacks += 1;
        Ok(())
    }

    /// Changes one entry, whose key `is_own`, in storage and model. A full disk keeps it as it is.
    fn change(
        &mut self,
        machine: &mut Machine,
        transaction: &mut Transaction,
        journal: usize,
        is_own: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), Stop> {
        let random = &mut machine.random;
        let Some(id) = self.any_tree(random) else {
            return Ok(());
        };
        let tree = self.storage().tree(id);
        let entries = self.model.entry(id).or_default();
        let mut key = (random.below(KEYS) as u32).to_be_bytes().to_vec();
        if random.below(2) == 0
            && let Some((next, _)) = entries.range(key.clone()..).next()
        {
            key = next.clone();
        }
        if !is_own(&key) {
            return Ok(());
        }
        let limit = if random.below(10) == 0 { 3_000 } else { 200 };
        let length = random.below(limit);
        let value = vec![random.next() as u8; length as usize];
        let before = entries.get(&key).cloned();
        let kind = random.below(3);
        let changed = tree.and_then(|tree| match kind {
            0 => match tree.insert(transaction, &key, &value) {
                Ok(()) => Ok(true),
                Err(StorageError::DuplicateKey { .. }) => Ok(false),
                Err(error) => Err(error),
            },
            1 => tree.update(transaction, &key, &value),
            _ => tree.delete(transaction, &key),
        });
        let changed = match changed.map_err(|error| machine.stop(error)) {
            Ok(changed) => changed,
            Err(Stop::Full) => {
                machine.summary.refused += 1;
                return Ok(());
            }
            Err(Stop::Dead) => return Err(Stop::Dead),
        };
        let is_insert = kind == 0;
        assert_eq!(changed, before.is_some() != is_insert);
        if changed {
            match kind {
                0 | 1 => entries.insert(key.clone(), value),
                _ => entries.remove(&key),
            };
            self.journals[journal].0.push((id, key, before));
        }
        Ok(())
    }
}

/// All trees but the catalog, each of which is sound.
fn found_trees(storage: &Arc<Storage>) -> Model {
    let mut found = Model::new();
    for id in storage.tree_ids().expect("the directory can be read") {
        let tree = storage.tree(id).expect("the directory names it");
        match tree.check() {
            Ok(checked) => assert_eq!(checked.entries, tree.statistics().entries, "tree {id}"),
            Err(error) => panic!("tree {id}: {error}"),
        }
        if id != storage.catalog_tree().id() {
            found.insert(id, entries_of(&tree));
        }
    }
    found
}

fn entries_of(tree: &Arc<Tree>) -> Entries {
    let mut entries = Entries::new();
    let mut cursor = tree.scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
    while let Some(leaf) = cursor.next_leaf().expect("a sound tree can be read") {
        for i in 0..leaf.len() {
            let key = [leaf.prefix(), leaf.suffix(i)].concat();
            entries.insert(key, leaf.value(i).to_vec());
        }
    }
    entries
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
