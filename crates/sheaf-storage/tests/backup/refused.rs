//! What cannot be restored, and says why.

use std::sync::Arc;

use sheaf_storage::disk::{AlignedBuffer, Buffers, Operation};
use sheaf_storage::{BulkBuilder, Disk, Lsn, RestoreUntil, Storage, StorageError, restore_to};

use crate::writer::{
    Commit, MemoryArchive, Writer, as_disk, check_restored, empty_disk, open, options, quietly,
    reopen, restore_fails,
};

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
    let error = restore_fails(&backup, &archive, RestoreUntil::Position(Lsn(1)));
    assert!(error.contains("take an older backup"), "{error}");
    let other = MemoryArchive::default();
    let error = restore_fails(&backup, &other, RestoreUntil::End);
    assert!(error.contains("nothing of history"), "{error}");
    storage.archive_step(true).unwrap();
    let error = restore_fails(&backup, &archive, RestoreUntil::Position(Lsn(1 << 40)));
    assert!(error.contains("and not to"), "{error}");

    // The server runs without its archive, and loads a table.
    writer.change_entries(&storage).unwrap();
    let before_load = Commit {
        time_us: storage.newest_commit_time_us(),
        position: storage.newest_commit(),
        model: writer.model.clone(),
    };
    let storage = reopen(storage, &disk, None);
    let mut builder = BulkBuilder::new(&storage).unwrap();
    writer.append(&mut builder, 0..20_000).unwrap();
    builder.finish().unwrap();
    let storage = reopen(storage, &disk, Some(&archive));
    writer.commit_marker(&storage).unwrap();
    storage.archive_step(true).unwrap();
    let error = restore_fails(&backup, &archive, RestoreUntil::End);
    assert!(error.contains("ran without its archive"), "{error}");
    for until in [
        RestoreUntil::TimeUs(before_load.time_us),
        RestoreUntil::Position(before_load.position),
    ] {
        let what = "before the load";
        check_restored(&backup, &archive, until, &before_load.model, what);
    }

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

/// A backup of a quiet database has no commit in its log, and yet it cannot be brought to a moment before its end.
#[test]
fn a_moment_before_a_quiet_backup_is_refused() {
    let archive = Arc::new(MemoryArchive::default());
    let mut writer = Writer::new(61);
    let storage = open(&empty_disk(&mut writer.random), Some(&archive));
    for _ in 0..10 {
        writer.step(&storage).unwrap();
    }
    storage.checkpoint().unwrap();
    let backup = empty_disk(&mut writer.random);
    let made = storage.backup(&as_disk(&backup), &mut quietly).unwrap();
    storage.archive_step(true).unwrap();
    let early = writer.commits[1].time_us;
    let error = restore_fails(&backup, &archive, RestoreUntil::TimeUs(early));
    assert!(error.contains("take an older backup"), "{error}");
    let until = RestoreUntil::TimeUs(made.completed_at_us);
    check_restored(
        &backup,
        &archive,
        until,
        &writer.model,
        "when it was complete",
    );
}

/// The pages of a backup may have all that its log had, so it is worth nothing without the end of it.
#[test]
fn a_backup_that_has_lost_the_end_of_its_log_is_refused() {
    let archive = MemoryArchive::default();
    let mut writer = Writer::new(71);
    let storage = open(&empty_disk(&mut writer.random), None);
    for _ in 0..30 {
        writer.step(&storage).unwrap();
    }
    let backup = empty_disk(&mut writer.random);
    storage
        .backup(&as_disk(&backup), &mut |_| {
            (0..20).try_for_each(|_| writer.change_entries(&storage))
        })
        .unwrap();
    let log = backup.open("sheaf.log").unwrap();
    let operation = Operation::Read {
        file: log,
        offset: 0,
        buffers: Buffers::Owned(
            AlignedBuffer::zeroed(backup.length(log).unwrap() as usize).unwrap(),
        ),
    };
    let Ok(Some(Buffers::Owned(bytes))) = sheaf_storage::disk::run(&*backup, operation) else {
        panic!("the log cannot be read");
    };
    let last = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    backup.flip_stored_bit(log, last as u64, 3);
    let error = restore_fails(&backup, &archive, RestoreUntil::End);
    assert!(error.contains("use another backup"), "{error}");
    let opened = Storage::open_on(backup, options(None));
    assert!(matches!(opened, Err(StorageError::UnknownFormat { .. })));
}

#[test]
fn a_damaged_and_a_missing_object_are_errors_that_name_it() {
    let archive = Arc::new(MemoryArchive::default());
    let mut writer = Writer::new(81);
    let storage = open(&empty_disk(&mut writer.random), Some(&archive));
    writer.make_tree(&storage).unwrap();
    let backup = empty_disk(&mut writer.random);
    writer.backup(&storage, &backup);
    storage.archive_step(true).unwrap();
    for _ in 0..3 {
        for _ in 0..5 {
            writer.change_entries(&storage).unwrap();
        }
        storage.archive_step(true).unwrap();
    }
    let end = RestoreUntil::End;
    check_restored(&backup, &archive, end, &writer.model, "nothing is wrong");

    let (name, whole) = {
        let objects = archive.objects.lock().unwrap();
        let (name, whole) = objects.iter().rev().nth(1).unwrap();
        (*name, whole.clone())
    };
    let set = |bytes: Option<Vec<u8>>| {
        let mut objects = archive.objects.lock().unwrap();
        match bytes {
            Some(bytes) => objects.insert(name, bytes),
            None => objects.remove(&name),
        };
    };
    let object_name = name.1.object_name();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    let cut = whole[..whole.len() / 2].to_vec();
    for bytes in [damaged, cut, Vec::new()] {
        set(Some(bytes));
        let error = restore_fails(&backup, &archive, end);
        assert!(error.contains(&object_name), "{error}");
    }
    set(None);
    let error = restore_fails(&backup, &archive, end);
    let (start, end) = (name.1.start.0, name.1.end.0);
    let between = format!("between the positions {start} and {end}");
    assert!(error.contains(&between), "{error}");
    // What lies before it can be had.
    let until = RestoreUntil::Position(name.1.start);
    let before = writer.commits.iter().rev();
    let mut before = before.skip_while(|commit| commit.position > name.1.start);
    let model = &before.next().unwrap().model;
    check_restored(&backup, &archive, until, model, "before the object");
}

#[test]
fn what_was_refused_leaves_an_empty_folder() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let storage = Storage::open(&at("data"), options(None)).unwrap();
    let id = storage.create_tree().unwrap();
    storage.backup_to(&at("backup"), &[], &mut quietly).unwrap();
    storage.close().unwrap();
    for until in [RestoreUntil::TimeUs(1), RestoreUntil::End] {
        let archive = MemoryArchive::default();
        let report = &mut |_| Err(StorageError::Cancelled);
        let refused = restore_to(
            &at("backup"),
            Some(&archive),
            (&at("restored"), &[]),
            until,
            report,
        );
        assert!(refused.is_err());
        assert_eq!(std::fs::read_dir(at("restored")).unwrap().count(), 0);
    }
    let end = RestoreUntil::End;
    restore_to(
        &at("backup"),
        None,
        (&at("restored"), &[]),
        end,
        &mut quietly,
    )
    .unwrap();
    let restored = Storage::open(&at("restored"), options(None)).unwrap();
    assert!(restored.tree(id).is_ok());
}
