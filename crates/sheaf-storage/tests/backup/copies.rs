//! Backups, opened as they are.

use std::sync::atomic::{AtomicBool, Ordering};

use sheaf_storage::{
    BulkBuilder, Disk, KeyRange, ReadAhead, Storage, StorageError, StorageOptions,
};

use crate::common::{Random, contents};
use crate::writer::{Entries, Writer, as_disk, check, empty_disk, open, options, quietly, reopen};

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
        let made = storage.backup_to(&folder, &[], &mut quietly);
        is_over.store(true, Ordering::Relaxed);
        made.unwrap();
    });
    assert!(storage.backup_to(&folder, &[], &mut quietly).is_err());
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
