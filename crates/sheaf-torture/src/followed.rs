//! A follower of what transactions change: it applies what the log says to entries of its own, whatever the machine
//! goes through, and has in the end what the trees have.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_storage::{
    ChangeFeed, FeedPoint, Followed, FollowedChange, Random, Storage, StorageError, TreeId,
};

/// What is in a tree.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
/// What is in all trees.
pub(crate) type Model = BTreeMap<TreeId, Entries>;

/// What the follower has is kept where no crash reaches it, with the number of the last transaction. It may lag behind
/// in writing down where to go on.
#[derive(Default)]
pub(crate) struct Follower {
    feed: Option<ChangeFeed>,
    kept: Option<FeedPoint>,
    number: u64,
    entries: Model,
}

impl Follower {
    /// Goes on in a storage that was opened.
    pub(crate) fn start(&mut self, storage: &Arc<Storage>) -> Result<(), StorageError> {
        for id in storage.tree_ids()? {
            if id != storage.catalog_tree().id() {
                storage.tree(id)?.follow();
            }
        }
        let feed = storage.follow_changes(self.kept)?;
        assert!(!feed.has_gap(), "the log was not kept");
        self.kept = self.kept.or(Some(feed.restart_point()));
        self.feed = Some(feed);
        Ok(())
    }

    pub(crate) fn stop(&mut self) {
        self.feed = None;
    }

    /// A tree was built with these entries, past all transactions.
    pub(crate) fn note_built(&mut self, id: TreeId, entries: &Entries) {
        self.entries.insert(id, entries.clone());
    }

    /// Applies what is durable by now.
    pub(crate) fn follow(&mut self, random: &mut Random) -> Result<(), StorageError> {
        let Some(feed) = &mut self.feed else {
            return Ok(());
        };
        while let Some(followed) = feed.deliver()? {
            let Followed::Transaction(transaction) = followed else {
                continue;
            };
            // It was met before.
            if transaction.number <= self.number {
                continue;
            }
            assert_eq!(transaction.number, self.number + 1, "numbers have no gaps");
            assert!(transaction.depends_on < transaction.number);
            self.number = transaction.number;
            let entries = &mut self.entries;
            transaction.for_each(|change| {
                apply(entries, change);
                Ok::<_, StorageError>(())
            })?;
        }
        if random.below(3) == 0 {
            let point = feed.restart_point();
            feed.release(point);
            self.kept = Some(point);
        }
        Ok(())
    }

    /// What was followed is what the model has.
    pub(crate) fn verify(&mut self, model: &Model) {
        self.entries.retain(|id, _| model.contains_key(id));
        for (id, entries) in model {
            let followed = self.entries.entry(*id).or_default();
            assert!(followed == entries, "tree {id} was followed in another way");
        }
    }
}

/// Applies a change to what it says that it was made to.
fn apply(trees: &mut Model, change: FollowedChange<'_>) {
    match change {
        FollowedChange::Insert { tree, key, value } => {
            let earlier = trees
                .entry(tree)
                .or_default()
                .insert(key.to_vec(), value.to_vec());
            assert_eq!(earlier, None, "tree {tree}, key {key:?}");
        }
        FollowedChange::Update {
            tree,
            key,
            before,
            after,
        } => {
            let earlier = trees
                .entry(tree)
                .or_default()
                .insert(key.to_vec(), after.to_vec());
            assert_eq!(earlier.as_deref(), Some(before), "tree {tree}, key {key:?}");
        }
        FollowedChange::Delete { tree, key, before } => {
            let earlier = trees.entry(tree).or_default().remove(key);
            assert_eq!(earlier.as_deref(), Some(before), "tree {tree}, key {key:?}");
        }
        FollowedChange::Annotation(_) => {}
    }
}
