//! How often a session has used each index, by the trees that indexes are.
//!
//! ```text
//!   tree of an index -->  one of few slots, which its place is found in at once; what finds none goes to a map
//! ```
//!
//! Threads of one session add to it, and others read it. No session writes what another one writes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sheaf_storage::TreeId;

/// Indexes that a session counts without a lock.
const SLOTS: usize = 16;
/// Slots that are looked at for one index.
const PROBES: usize = 4;

/// What was done with an index. Inserts, updates and deletes are counted at the clustered index of their table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexUse {
    /// Rows or entries that were read through it, or lookups in it if these were more: some find nothing.
    pub fetched: u64,
    /// Rows that scans of the whole table have read. The table is its clustered index, but no key was looked for.
    pub scanned: u64,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

/// Kinds of uses.
const KINDS: usize = 5;

impl IndexUse {
    fn counts(self) -> [u64; KINDS] {
        [
            self.fetched,
            self.scanned,
            self.inserted,
            self.updated,
            self.deleted,
        ]
    }

    fn of_counts([fetched, scanned, inserted, updated, deleted]: [u64; KINDS]) -> IndexUse {
        IndexUse {
            fetched,
            scanned,
            inserted,
            updated,
            deleted,
        }
    }

    fn is_none(self) -> bool {
        self == IndexUse::default()
    }

    pub fn add(&mut self, more: IndexUse) {
        self.fetched += more.fetched;
        self.scanned += more.scanned;
        self.inserted += more.inserted;
        self.updated += more.updated;
        self.deleted += more.deleted;
    }
}

#[derive(Debug, Default)]
struct Slot {
    /// The number of the tree; zero, which no tree has: the slot is free.
    tree: AtomicU64,
    counts: [AtomicU64; KINDS],
}

impl Slot {
    fn read(&self) -> IndexUse {
        let counts = self.counts.each_ref();
        IndexUse::of_counts(counts.map(|count| count.load(Ordering::Relaxed)))
    }

    fn take(&self) -> IndexUse {
        let counts = self.counts.each_ref();
        IndexUse::of_counts(counts.map(|count| count.swap(0, Ordering::Relaxed)))
    }
}

/// See the module's comment.
#[derive(Debug, Default)]
pub struct IndexUses {
    slots: [Slot; SLOTS],
    rest: Mutex<BTreeMap<TreeId, IndexUse>>,
}

impl IndexUses {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TreeId, IndexUse>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a use of an index.
    pub fn add(&self, tree: TreeId, more: IndexUse) {
        if more.is_none() {
            return;
        }
        // Trees of one table have numbers side by side.
        for probe in 0..PROBES {
            let slot = &self.slots[(tree.0 as usize).wrapping_add(probe) % SLOTS];
            let known = slot.tree.load(Ordering::Relaxed);
            let is_its_own = known == tree.0
                || known == 0
                    && match slot.tree.compare_exchange(
                        0,
                        tree.0,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    ) {
                        Ok(_) => true,
                        Err(other) => other == tree.0,
                    };
            if is_its_own {
                for (count, more) in slot.counts.iter().zip(more.counts()) {
                    if more != 0 {
                        count.fetch_add(more, Ordering::Relaxed);
                    }
                }
                return;
            }
        }
        self.lock().entry(tree).or_default().add(more);
    }

    /// Counts rows that were read through an index.
    pub fn add_fetched(&self, tree: TreeId, fetched: u64) {
        self.add(
            tree,
            IndexUse {
                fetched,
                ..IndexUse::default()
            },
        );
    }

    /// Counts rows that a scan of the whole table has read.
    pub fn add_scanned(&self, tree: TreeId, scanned: u64) {
        self.add(
            tree,
            IndexUse {
                scanned,
                ..IndexUse::default()
            },
        );
    }

    /// All counts.
    pub fn all(&self) -> BTreeMap<TreeId, IndexUse> {
        let mut all = self.lock().clone();
        for slot in &self.slots {
            let found = slot.read();
            if !found.is_none() {
                let tree = TreeId(slot.tree.load(Ordering::Relaxed));
                all.entry(tree).or_default().add(found);
            }
        }
        all
    }

    /// Moves all counts into `total`.
    pub(crate) fn fold_into(&self, total: &IndexUses) {
        let mut rest = std::mem::take(&mut *self.lock());
        for slot in &self.slots {
            let found = slot.take();
            if !found.is_none() {
                let tree = TreeId(slot.tree.load(Ordering::Relaxed));
                rest.entry(tree).or_default().add(found);
            }
        }
        total.add_all(rest);
    }

    /// Adds all counts to `total`, and keeps them.
    pub fn add_to(&self, total: &IndexUses) {
        total.add_all(self.all());
    }

    fn add_all(&self, more: BTreeMap<TreeId, IndexUse>) {
        if more.is_empty() {
            return;
        }
        let mut rest = self.lock();
        for (tree, more) in more {
            rest.entry(tree).or_default().add(more);
        }
    }

    /// Forgets what was counted.
    pub fn clear(&self) {
        self.lock().clear();
        for slot in &self.slots {
            slot.take();
        }
    }

    /// Forgets indexes that are not there any more, of those that no slot counts.
    pub fn retain(&self, is_there: impl Fn(TreeId) -> bool) {
        self.lock().retain(|tree, _| is_there(*tree));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_indexes_than_slots_are_counted() {
        let (session, total) = (IndexUses::default(), IndexUses::default());
        let trees = 1..=3 * SLOTS as u64;
        for tree in trees.clone().chain(trees.clone()) {
            session.add_fetched(TreeId(tree), tree);
        }
        let updated = IndexUse {
            updated: 7,
            ..IndexUse::default()
        };
        session.add(TreeId(3), updated);
        let all = session.all();
        assert_eq!(all.len(), 3 * SLOTS);
        let expected = IndexUse {
            fetched: 6,
            ..updated
        };
        assert_eq!(all[&TreeId(3)], expected);
        session.add_to(&total);
        session.fold_into(&total);
        assert!(session.all().is_empty());
        assert_eq!(total.all()[&TreeId(40)].fetched, 160);
        total.retain(|tree| tree.0 < 3);
        assert_eq!(total.all().len(), 2);
        total.clear();
        assert!(total.all().is_empty());
    }
}
