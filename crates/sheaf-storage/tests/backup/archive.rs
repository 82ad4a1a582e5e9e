//! Archives, and what is restored with their help.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sheaf_storage::archive::{Pruned, prune};
use sheaf_storage::disk::simulated::SimulationOptions;
use sheaf_storage::{
    LogArchive, RestoreUntil, Storage, StorageError, StorageOptions, backup_info, restore,
    restore_to,
};

use crate::writer::{
    MemoryArchive, Writer, as_disk, check, check_restored, empty_disk, open, options, quietly,
    reopen,
};

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

#[test]
fn a_pruned_archive_serves_the_oldest_backup_that_is_kept() {
    let archive = Arc::new(MemoryArchive::default());
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let storage = Storage::open(&at("data"), options(Some(&archive))).unwrap();
    let mut writer = Writer::new(91);
    let mut work = |backup: Option<&str>| {
        for _ in 0..5 {
            writer.step(&storage).unwrap();
            storage.archive_step(true).unwrap();
        }
        let made = backup.map(|name| storage.backup_to(&at(name), &[], &mut quietly).unwrap());
        storage.archive_step(true).unwrap();
        (made, writer.model.clone())
    };
    let (older, _) = work(Some("older"));
    let (kept, _) = work(Some("kept"));
    let (_, model) = work(None);

    let info = backup_info(&at("kept")).unwrap();
    let (older, kept) = (older.unwrap(), kept.unwrap());
    assert_eq!((info.history, older.history), (kept.history, kept.history));
    assert_eq!(info.completed_at_us, kept.completed_at_us);
    assert!(info.end >= kept.end);
    let before = archive.ranges(info.history).unwrap();
    let pruned = prune(&*archive, &info).unwrap();
    let after = archive.ranges(info.history).unwrap();
    assert_eq!(before.len() - after.len(), pruned.objects as usize);
    assert!(pruned.objects > 0 && !after.is_empty());
    assert!(after.iter().all(|range| range.end > info.end));
    assert_eq!(prune(&*archive, &info).unwrap(), Pruned::default());

    let end = RestoreUntil::End;
    let restored = at("restored");
    restore_to(
        &at("kept"),
        Some(&*archive),
        (&restored, &[]),
        end,
        &mut quietly,
    )
    .unwrap();
    let copy = Storage::open(&restored, options(None)).unwrap();
    check(&copy, &model, "from the backup that is kept");
    let error = restore_to(
        &at("older"),
        Some(&*archive),
        (&at("no"), &[]),
        end,
        &mut quietly,
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("has nothing between"), "{error}");
    // The archive goes on where it was.
    storage.close().unwrap();
    drop(storage);
    let storage = Storage::open(&at("data"), options(Some(&archive))).unwrap();
    writer.step(&storage).unwrap();
    storage.archive_step(true).unwrap();
    restore_to(
        &at("kept"),
        Some(&*archive),
        (&at("again"), &[]),
        end,
        &mut quietly,
    )
    .unwrap();
    let copy = Storage::open(&at("again"), options(None)).unwrap();
    check(&copy, &writer.model, "after a restart");
    // A backup that was opened has no place in this history.
    drop(Storage::open(&at("kept"), options(None)).unwrap());
    assert!(backup_info(&at("kept")).is_err());
}
