//! Lookups of a leaf that is freed while a reader looks ahead.

use std::sync::Arc;

use crate::disk::simulated::{SimulatedDisk, SimulationOptions};
use crate::page::PageId;
use crate::pool::page_table::PageWord;
use crate::storage::{Storage, StorageOptions};
use crate::sync::atomic::Ordering;
use crate::tree::Tree;
use crate::tree::look_ahead::tests::interrupt_once;
use crate::tree::point_reader::PointReader;
use crate::tree::search::Target;

/// Rows of a byte each for the key, four to a leaf.
const ROWS: u8 = 40;

fn value_of(key: u8) -> Vec<u8> {
    vec![key; 3_900]
}

/// Two leaves beside each other in a tree; the right one has a single row.
#[derive(Clone)]
struct TwoLeaves {
    storage: Arc<Storage>,
    tree: Arc<Tree>,
    left: PageId,
    left_keys: Vec<u8>,
    right: PageId,
    kept: u8,
}

impl TwoLeaves {
    fn new() -> TwoLeaves {
        let options = StorageOptions {
            pool_bytes: 4 << 20,
            log_segment_bytes: 512 << 10,
            background_writer: false,
            ..StorageOptions::default()
        };
        let disk = SimulatedDisk::new(SimulationOptions::new(1));
        let storage = Storage::open_on(disk, options).unwrap();
        let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
        let mut transaction = storage.begin_transaction();
        for key in 0..ROWS {
            tree.insert(&mut transaction, &[key], &value_of(key))
                .unwrap();
        }
        transaction.commit().unwrap();
        let keys_on = |leaf| -> Vec<u8> {
            let mut keys = (0..ROWS).collect::<Vec<u8>>();
            keys.retain(|key| leaf_of(&tree, *key) == leaf);
            keys
        };
        let left = leaf_of(&tree, ROWS / 3);
        let left_keys = keys_on(left);
        let kept = left_keys.last().unwrap() + 1;
        let right = leaf_of(&tree, kept);
        let right_keys = keys_on(right);
        let leaves = TwoLeaves {
            left,
            left_keys,
            right,
            kept,
            storage,
            tree,
        };
        leaves.delete(&right_keys[1..]);
        assert_eq!(leaf_of(&leaves.tree, kept), right);
        leaves
    }

    fn delete(&self, keys: &[u8]) {
        let mut transaction = self.storage.begin_transaction();
        for key in keys {
            assert!(self.tree.delete(&mut transaction, &[*key]).unwrap());
        }
        transaction.commit().unwrap();
        self.tree.purge().unwrap();
    }

    /// Makes the two leaves one, and frees the page of the right one.
    fn merge(&self) {
        self.delete(&self.left_keys[1..]);
        assert_eq!(leaf_of(&self.tree, self.kept), self.left);
    }

    /// What write-back does when it copies the right page; the write does not arrive. Its frame keeps the bytes of
    /// a page that is freed meanwhile.
    fn begin_to_write_the_right_leaf(&self) {
        let core = self.tree.store().pool.core();
        let word = core.word(self.right).unwrap();
        let frame = PageWord(word.load(Ordering::Acquire)).frame();
        assert!(core.begin_writing(frame));
    }

    fn update_kept(&self) {
        let mut transaction = self.storage.begin_transaction();
        let updated = self.tree.update(&mut transaction, &[self.kept], b"new");
        assert!(updated.unwrap());
        transaction.commit().unwrap();
    }

    /// What a lookup of the kept row finds, if `meanwhile` happens while the reader looks ahead.
    fn read_kept(
        &self,
        mut reader: PointReader,
        meanwhile: impl FnOnce(&TwoLeaves) + 'static,
    ) -> Option<Vec<u8>> {
        let leaves = self.clone();
        interrupt_once(move || meanwhile(&leaves));
        let key = [self.kept];
        reader.look_ahead(std::iter::once(&key[..]));
        reader.get(&key).unwrap().map(<[u8]>::to_vec)
    }
}

fn leaf_of(tree: &Tree, key: u8) -> PageId {
    let found = tree.retry(|failures| {
        let leaf = tree.find_leaf(Target::Key(&[key]), failures)?;
        leaf.validate()?;
        Ok(leaf.guard().page_id())
    });
    found.unwrap()
}

#[test]
fn a_leaf_that_is_freed_during_a_look_ahead_is_not_read() {
    let leaves = TwoLeaves::new();
    let found = leaves.read_kept(leaves.tree.point_reader(), |leaves| {
        leaves.merge();
        leaves.update_kept();
    });
    assert_eq!(found.as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_leaf_that_is_freed_while_it_is_written_is_not_read() {
    let leaves = TwoLeaves::new();
    let found = leaves.read_kept(leaves.tree.point_reader(), |leaves| {
        leaves.begin_to_write_the_right_leaf();
        leaves.merge();
        leaves.update_kept();
    });
    assert_eq!(found.as_deref(), Some(&b"new"[..]));
}

/// A page that is freed has no older versions of its rows any more.
#[test]
fn an_uncommitted_row_of_a_freed_leaf_is_not_read() {
    let leaves = TwoLeaves::new();
    let mut writer = leaves.storage.begin_transaction();
    let updated = leaves.tree.update(&mut writer, &[leaves.kept], b"new");
    assert!(updated.unwrap());
    let view = leaves.storage.read_view().unwrap();
    let found = leaves.read_kept(leaves.tree.point_reader_at(view), |leaves| {
        leaves.begin_to_write_the_right_leaf();
        leaves.merge();
    });
    assert_eq!(found, Some(value_of(leaves.kept)));
    writer.rollback().unwrap();
}
