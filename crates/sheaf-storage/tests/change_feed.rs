//! Following what transactions change: what is delivered, in which order, and where a reader goes on after a crash. (A
//! long random run beside crashes is `sheaf-torture`'s.)
#![cfg(not(feature = "simulation"))]

mod common;

use std::sync::Arc;

use common::{disk, options};
use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{
    ChangeFeed, FeedPoint, Followed, FollowedChange, Storage, StorageError, StorageOptions, Tree,
};

fn followed() -> StorageOptions {
    StorageOptions {
        follow_changes: true,
        ..options()
    }
}

/// A storage with a followed tree and one that is not.
fn open(disk: &Arc<SimulatedDisk>) -> (Arc<Storage>, Arc<Tree>, Arc<Tree>) {
    let storage = Storage::open_on(disk.clone(), followed()).unwrap();
    let known: Vec<_> = storage.tree_ids().unwrap();
    let tree = |place: usize| match known.get(place) {
        Some(id) => storage.tree(*id).unwrap(),
        None => storage.tree(storage.create_tree().unwrap()).unwrap(),
    };
    // The first one is the catalog.
    let (one, other) = (tree(1), tree(2));
    one.follow();
    (storage, one, other)
}

/// What a feed delivers by now, in words.
fn delivered(feed: &mut ChangeFeed) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).into_owned();
    let mut all = Vec::new();
    while let Some(followed) = feed.deliver().unwrap() {
        match followed {
            Followed::Remark(bytes) => all.push(format!("remark {}", text(&bytes))),
            Followed::Transaction(transaction) => {
                let mut words = format!("{} after {}:", transaction.number, transaction.depends_on);
                let read = transaction.for_each(|change| {
                    words += &match change {
                        FollowedChange::Insert { key, value, .. } => {
                            format!(" +{}={}", text(key), text(value))
                        }
                        FollowedChange::Update {
                            key, before, after, ..
                        } => format!(" {}:{}>{}", text(key), text(before), text(after)),
                        FollowedChange::Delete { key, before, .. } => {
                            format!(" -{}={}", text(key), text(before))
                        }
                        FollowedChange::Annotation(bytes) => format!(" ({})", text(bytes)),
                    };
                    Ok::<_, StorageError>(())
                });
                read.unwrap();
                all.push(words);
            }
        }
    }
    all
}

#[test]
fn a_feed_has_what_committed_in_the_order_of_commits() {
    let (storage, tree, other) = open(&disk(1));
    let mut feed = storage.follow_changes(None).unwrap();
    let mut first = storage.begin_transaction();
    let mut second = storage.begin_transaction();
    tree.insert(&mut first, b"a", b"one two").unwrap();
    tree.insert(&mut second, b"b", b"2").unwrap();
    let savepoint = first.savepoint();
    tree.insert(&mut first, b"c", b"gone").unwrap();
    other.insert(&mut first, b"c", b"").unwrap();
    first.rollback_to(savepoint).unwrap();
    second.annotate(b"said", true).unwrap();
    second.annotate(b"it is so", false).unwrap();
    // A part of a value changes: both values are whole all the same.
    tree.update(&mut first, b"a", b"one six").unwrap();
    second.commit().unwrap();
    tree.delete(&mut first, b"a").unwrap();
    tree.insert(&mut first, b"a", b"again").unwrap();
    first.commit().unwrap();
    let mut unnumbered = storage.begin_transaction();
    other.insert(&mut unnumbered, b"d", b"").unwrap();
    unnumbered.annotate(b"is true", false).unwrap();
    unnumbered.commit().unwrap();
    let mut abandoned = storage.begin_transaction();
    tree.insert(&mut abandoned, b"e", b"").unwrap();
    abandoned.rollback().unwrap();
    let mut last = storage.begin_transaction();
    assert!(tree.update(&mut last, b"b", b"3").unwrap());
    last.commit().unwrap();
    assert_eq!(
        delivered(&mut feed),
        [
            "remark it is so",
            "1 after 0: +b=2 (said)",
            "2 after 1: +a=one two a:one two>one six -a=one six +a=again",
            "remark is true",
            "3 after 2: b:2>3",
        ]
    );
    assert_eq!(storage.newest_commit_number(), 3);
    storage.close().unwrap();
}

#[test]
fn what_is_not_durable_is_not_delivered_and_what_a_crash_takes_gives_its_number_back() {
    let disk = disk(2);
    let (storage, tree, _) = open(&disk);
    let mut feed = storage.follow_changes(None).unwrap();
    let mut transaction = storage.begin_transaction();
    tree.insert(&mut transaction, b"a", b"1").unwrap();
    transaction.commit().unwrap();
    assert_eq!(delivered(&mut feed), ["1 after 0: +a=1"]);
    // A transaction that does not end before the crash begins here.
    let mut open_one = storage.begin_transaction();
    tree.insert(&mut open_one, b"b", b"lost").unwrap();
    open_one.annotate(&vec![b'x'; 200_000], true).unwrap();
    let mut transaction = storage.begin_transaction();
    tree.insert(&mut transaction, b"c", b"3").unwrap();
    transaction.commit().unwrap();
    assert_eq!(delivered(&mut feed), ["2 after 1: +c=3"]);
    let point = feed.restart_point();
    assert_eq!(point.number, 1);
    feed.release(point);
    let mut transaction = storage.begin_transaction();
    tree.insert(&mut transaction, b"d", b"4").unwrap();
    let pending = transaction.commit_later().unwrap();
    assert_eq!(storage.newest_commit_number(), 3);
    assert!(delivered(&mut feed).is_empty());
    drop(feed);
    let lost = disk.power_loss(SimulationOptions::new(3));
    drop((pending, open_one, storage));

    let (storage, tree, _) = open(&lost);
    assert_eq!(storage.newest_commit_number(), 2);
    let mut feed = storage.follow_changes(Some(point)).unwrap();
    assert!(!feed.has_gap());
    let mut transaction = storage.begin_transaction();
    let long = vec![b'y'; 100_000];
    transaction.annotate(&long, true).unwrap();
    tree.insert(&mut transaction, b"d", b"5").unwrap();
    transaction.commit().unwrap();
    assert_eq!(
        delivered(&mut feed),
        ["2 after 1: +c=3", "3 after 2: (yyyyyyyyyyyyyyyyyyyy) +d=5",]
    );
    // What was open has ended: nothing is needed any more.
    assert_eq!(feed.restart_point().position, feed.position());
    storage.close().unwrap();
}

#[test]
fn the_log_is_kept_for_a_feed_across_checkpoints_and_restarts() {
    let disk = disk(4);
    let fill = |storage: &Arc<Storage>, tree: &Tree, number: u32| {
        let mut transaction = storage.begin_transaction();
        for row in 0..1_000 {
            let key = (number * 1_000 + row).to_be_bytes();
            tree.insert(&mut transaction, &key, &[row as u8; 900])
                .unwrap();
        }
        transaction.commit().unwrap();
        storage.checkpoint().unwrap();
    };
    let (storage, tree, _) = open(&disk);
    let point = {
        let feed = storage.follow_changes(None).unwrap();
        let point = feed.restart_point();
        fill(&storage, &tree, 0);
        point
    };
    // Between the two nobody follows, but the log was opened with followers.
    drop(tree);
    storage.close().unwrap();
    drop(storage);
    let (storage, tree, _) = open(&disk);
    fill(&storage, &tree, 1);
    let mut feed = storage.follow_changes(Some(point)).unwrap();
    assert!(!feed.has_gap());
    let mut numbers = Vec::new();
    while let Some(Followed::Transaction(transaction)) = feed.deliver().unwrap() {
        let mut rows = 0;
        let counted = transaction.for_each(|_| {
            rows += 1;
            Ok::<_, StorageError>(())
        });
        counted.unwrap();
        numbers.push((transaction.number, rows));
    }
    assert_eq!(numbers, [(1, 1_000), (2, 1_000)]);
    drop(feed);
    // Nobody keeps it now.
    for number in 2..8 {
        fill(&storage, &tree, number);
    }
    let feed = storage.follow_changes(Some(point)).unwrap();
    assert!(feed.has_gap());
    storage.close().unwrap();
}

#[test]
fn without_followers_the_log_has_nothing_more() {
    let appended = |follow: bool| {
        let storage = Storage::open_on(disk(5), options()).unwrap();
        let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
        if follow {
            tree.follow();
        }
        let mut transaction = storage.begin_transaction();
        transaction.annotate(b"nobody hears this", true).unwrap();
        tree.insert(&mut transaction, b"a", &[1; 500]).unwrap();
        tree.update(&mut transaction, b"a", &[2; 400]).unwrap();
        transaction.commit().unwrap();
        assert_eq!(storage.newest_commit_number(), 0);
        let refused = storage.follow_changes(None::<FeedPoint>);
        assert!(matches!(refused, Err(StorageError::BadOption { .. })));
        storage.log_counters().appended_bytes
    };
    assert_eq!(appended(false), appended(true));
}

#[test]
fn changes_are_refused_while_those_who_follow_are_too_far_behind() {
    let options = StorageOptions {
        follow_lag_limit_bytes: 100_000,
        ..followed()
    };
    let storage = Storage::open_on(disk(6), options).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    tree.follow();
    let mut feed = storage.follow_changes(None).unwrap();
    let put = |row: u32| {
        let mut transaction = storage.begin_transaction();
        tree.insert(&mut transaction, &row.to_be_bytes(), &[7; 1_000])?;
        transaction.commit()
    };
    let refused = (0..1_000).find(|row| put(*row).is_err()).unwrap();
    let error = put(refused).unwrap_err();
    assert!(
        matches!(error, StorageError::FollowersBehind { .. }),
        "{error}"
    );
    let mut value = Vec::new();
    assert!(tree.get(&0_u32.to_be_bytes(), &mut value).unwrap());
    assert_eq!(delivered(&mut feed).len(), refused as usize);
    put(refused).unwrap();
    storage.close().unwrap();
}
