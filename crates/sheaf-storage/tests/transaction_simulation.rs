//! Transactions under every scheduling that a seeded scheduler comes up with: snapshots beside writers and the
//! collector, writers that wait for each other.
//!
//! `cargo test --release -p sheaf-storage --features simulation --test transaction_simulation`
#![cfg(feature = "simulation")]

mod common;

use std::sync::Arc;

use common::{disk, explore, options};
use sheaf_storage::sync::thread;
use sheaf_storage::{
    Direction, KeyRange, LockMode, LockWait, RangeLock, ReadAhead, ReadView, Settled, Storage,
    StorageError, StorageOptions, Transaction, Tree,
};

const SCHEDULES: usize = 200;
/// Four entries fill a leaf.
const VALUE_BYTES: usize = 3_900;
/// Two versions fill it.
const TINY_VERSION_BYTES: usize = 11_000;
/// The accounts; what they hold together never changes.
const ACCOUNTS: [u8; 4] = [10, 20, 30, 40];
const OPENING_BALANCE: u8 = 50;
/// Simulated time does not pass: a wait without end is a deadlock that the scheduler finds.
const LONG: LockWait = LockWait::AtMost(std::time::Duration::MAX);

struct Bank {
    storage: Arc<Storage>,
    tree: Arc<Tree>,
}

impl Bank {
    fn open() -> Arc<Bank> {
        Self::open_with(options().max_version_bytes)
    }

    fn open_with(max_version_bytes: usize) -> Arc<Bank> {
        let options = StorageOptions {
            pool_bytes: 1 << 20,
            max_version_bytes,
            ..options()
        };
        let storage = Storage::open_on(disk(1), options).unwrap();
        let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
        let mut transaction = storage.begin_transaction();
        for account in ACCOUNTS {
            let balance = [OPENING_BALANCE; VALUE_BYTES];
            tree.insert(&mut transaction, &[account], &balance).unwrap();
        }
        transaction.commit().unwrap();
        Arc::new(Bank { storage, tree })
    }

    fn balance(&self, account: u8) -> u8 {
        let mut value = Vec::new();
        assert!(self.tree.get(&[account], &mut value).unwrap());
        value[0]
    }

    fn set(&self, transaction: &mut Transaction, account: u8, balance: u8) {
        let value = [balance; VALUE_BYTES];
        assert!(self.tree.update(transaction, &[account], &value).unwrap());
    }

    /// Moves one from an account to another.
    fn transfer(&self, from: u8, to: u8) -> Result<(), StorageError> {
        let mut transaction = self.storage.begin_transaction();
        transaction.set_lock_wait(LONG);
        for account in [from, to] {
            transaction.lock_row(&self.tree, &[account], LockMode::Exclusive, LONG)?;
        }
        self.set(&mut transaction, from, self.balance(from) - 1);
        self.set(&mut transaction, to, self.balance(to) + 1);
        transaction.commit()
    }

    /// Adds to an account as UPDATE does: in one visit of the leaf, or by locking it first where that is not possible.
    fn add(&self, transaction: &mut Transaction, account: u8, change: i8) {
        let sum = |balance: u8| balance.strict_add_signed(change);
        loop {
            let view = transaction.read_view().unwrap();
            let amended = |old: &[u8]| Some(vec![sum(old[0]); VALUE_BYTES]);
            let (tree, mode) = (&self.tree, LockMode::Exclusive);
            if tree.amend(transaction, &view, &[account], amended).unwrap() {
                return;
            }
            let row = transaction.lock_row_of_view(&view, tree, &[account], mode, LONG);
            if row.unwrap().is_unchanged {
                self.set(transaction, account, sum(self.balance(account)));
                return;
            }
        }
    }

    /// Reads an account as SELECT ... FOR UPDATE does.
    fn lock(&self, transaction: &mut Transaction, account: u8) -> u8 {
        let (tree, mode) = (&self.tree, LockMode::Exclusive);
        let view = transaction.read_view().unwrap();
        let mut balance = Vec::new();
        let found = transaction.lock_and_read(&view, tree, &[account], mode, &mut balance);
        if let Some(is_there) = found.unwrap() {
            assert!(is_there);
            return balance[0];
        }
        transaction.lock_row(tree, &[account], mode, LONG).unwrap();
        self.balance(account)
    }

    /// What all accounts hold, as the view sees it.
    fn total(&self, view: &ReadView, direction: Direction) -> u32 {
        let mut total = 0;
        let mut cursor =
            self.tree
                .scan_at(view.clone(), KeyRange::all(), direction, ReadAhead::Off);
        while let Some(leaf) = cursor.next_leaf().unwrap() {
            for i in 0..leaf.len() {
                let value = leaf.value(i);
                assert!(value.iter().all(|byte| *byte == value[0]));
                total += u32::from(value[0]);
            }
        }
        total
    }

    /// Moves an account to another key, or begins to.
    fn rename(&self, from: u8, to: u8, commit: bool) {
        let mut transaction = self.storage.begin_transaction();
        transaction.set_lock_wait(LONG);
        let value = self.tree.take(&mut transaction, &[from]).unwrap().unwrap();
        self.tree.insert(&mut transaction, &[to], &value).unwrap();
        match commit {
            true => transaction.commit().unwrap(),
            false => transaction.rollback().unwrap(),
        }
    }

    /// The keys of all accounts, as the view sees them.
    fn accounts(&self, view: &ReadView, direction: Direction) -> Vec<u8> {
        let (mut accounts, mut key) = (Vec::new(), Vec::new());
        let mut cursor =
            self.tree
                .scan_at(view.clone(), KeyRange::all(), direction, ReadAhead::Off);
        while let Some(leaf) = cursor.next_leaf().unwrap() {
            for i in 0..leaf.len() {
                leaf.key_into(i, &mut key);
                accounts.extend_from_slice(&key);
            }
        }
        accounts.sort_unstable();
        accounts
    }

    fn finish(&self, threads: Vec<thread::JoinHandle<()>>) {
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let total = self.total(&ReadView::newest(), Direction::Forward);
        assert_eq!(total, opening_total());
        self.storage.collect_versions_step().unwrap();
        let counters = self.storage.transaction_counters();
        assert_eq!((counters.version_bytes, counters.row_locks), (0, 0));
        assert_eq!(counters.spilled_bytes, 0);
        self.tree.purge().unwrap();
        self.tree.check().unwrap();
        self.storage.close().unwrap();
    }
}

fn opening_total() -> u32 {
    ACCOUNTS.len() as u32 * u32::from(OPENING_BALANCE)
}

fn spawn(bank: &Arc<Bank>, work: impl FnOnce(&Bank) + Send + 'static) -> thread::JoinHandle<()> {
    let bank = bank.clone();
    thread::spawn(move || work(&bank))
}

#[test]
fn changes_in_one_visit_and_changes_under_locks_lose_nothing_of_each_other() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let begin = |bank: &Bank| bank.storage.begin_transaction();
        let add = move |bank: &Bank| {
            for _ in 0..2 {
                let mut transaction = begin(bank);
                bank.add(&mut transaction, 10, -1);
                bank.add(&mut transaction, 30, 1);
                transaction.commit().unwrap();
            }
        };
        let threads = vec![
            spawn(&bank, add),
            spawn(&bank, add),
            spawn(&bank, move |bank| {
                let mut transaction = begin(bank);
                let balances = [10, 30].map(|account| bank.lock(&mut transaction, account));
                bank.set(&mut transaction, 10, balances[0] + 5);
                bank.set(&mut transaction, 30, balances[1] - 5);
                transaction.commit().unwrap();
            }),
            spawn(&bank, move |bank| {
                let mut transaction = begin(bank);
                bank.add(&mut transaction, 10, 7);
                bank.add(&mut transaction, 40, -7);
                transaction.rollback().unwrap();
            }),
        ];
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(
            [10, 30, 40].map(|account| bank.balance(account)),
            [51, 49, 50]
        );
        bank.finish(Vec::new());
    });
}

#[test]
fn a_snapshot_sees_every_transfer_whole_or_not_at_all() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = vec![
            spawn(&bank, |bank| {
                bank.transfer(10, 30).unwrap();
                bank.transfer(40, 10).unwrap();
            }),
            spawn(&bank, |bank| {
                for direction in [Direction::Forward, Direction::Backward] {
                    let view = bank.storage.read_view().unwrap();
                    assert_eq!(bank.total(&view, direction), opening_total());
                    // And again, whatever happened since.
                    assert_eq!(bank.total(&view, Direction::Forward), opening_total());
                }
            }),
            spawn(&bank, |bank| {
                for _ in 0..3 {
                    bank.storage.collect_versions_step().unwrap();
                }
            }),
        ];
        bank.finish(threads);
    });
}

/// A view ahead of the log sees transfers whole, keeps what it sees from the collector, and no later view of its
/// transaction sees less.
#[test]
fn a_view_ahead_of_the_log_sees_every_transfer_whole_or_not_at_all() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = vec![
            spawn(&bank, |bank| {
                bank.transfer(10, 30).unwrap();
                bank.transfer(40, 10).unwrap();
            }),
            spawn(&bank, |bank| bank.transfer(20, 40).unwrap()),
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                transaction.set_lock_wait(LONG);
                let mut newest = None;
                for _ in 0..2 {
                    let ahead = transaction.view_to_lock().unwrap();
                    for direction in [Direction::Forward, Direction::Backward] {
                        assert_eq!(bank.total(&ahead, direction), opening_total());
                    }
                    let view = transaction.read_view().unwrap();
                    assert!(newest <= ahead.timestamp() && ahead.timestamp() <= view.timestamp());
                    assert_eq!(bank.total(&view, Direction::Forward), opening_total());
                    newest = view.timestamp();
                }
                transaction.commit().unwrap();
                // It has told what it saw.
                let durable = bank.storage.read_view().unwrap();
                assert!(newest <= durable.timestamp());
            }),
            spawn(&bank, |bank| {
                for _ in 0..3 {
                    bank.storage.collect_versions_step().unwrap();
                }
            }),
        ];
        bank.finish(threads);
    });
}

/// A transaction that waits for a row goes on with what its owner has committed, before that is durable.
#[test]
fn a_row_is_handed_over_before_its_commit_is_durable() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let add_twice = |bank: &Bank| {
            let mut transaction = bank.storage.begin_transaction();
            transaction.set_lock_wait(LONG);
            for (account, change) in [(10, 1), (20, -1)] {
                let view = transaction.view_to_lock().unwrap();
                let (tree, mode) = (&bank.tree, LockMode::Exclusive);
                let row = transaction.lock_row_of_view(&view, tree, &[account], mode, LONG);
                if !row.unwrap().is_unchanged {
                    // Nobody changes it now, so the next view shows it as it is.
                    let view = transaction.view_to_lock().unwrap();
                    let row = transaction.lock_row_of_view(&view, tree, &[account], mode, LONG);
                    assert!(row.unwrap().is_unchanged);
                }
                let balance = bank.balance(account).strict_add_signed(change);
                bank.set(&mut transaction, account, balance);
            }
            // What is seen with its own changes is what all that came before have left.
            let view = transaction.read_view().unwrap();
            assert_eq!(bank.total(&view, Direction::Forward), opening_total());
            drop(transaction.commit_later().unwrap());
        };
        let threads = (0..3).map(|_| spawn(&bank, add_twice)).collect::<Vec<_>>();
        for thread in threads {
            thread.join().unwrap();
        }
        bank.transfer(30, 40).unwrap();
        assert_eq!(bank.balance(10), OPENING_BALANCE + 3);
        bank.finish(Vec::new());
    });
}

#[test]
fn a_snapshot_sees_the_same_when_the_past_is_spilled_beside_it() {
    explore(SCHEDULES, || {
        let bank = Bank::open_with(TINY_VERSION_BYTES);
        let view = bank.storage.read_view().unwrap();
        let threads = vec![
            spawn(&bank, |bank| {
                bank.transfer(10, 30).unwrap();
                bank.transfer(40, 10).unwrap();
            }),
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                transaction.set_lock_wait(LONG);
                for key in [21, 22, 23] {
                    let value = [9; VALUE_BYTES];
                    bank.tree.insert(&mut transaction, &[key], &value).unwrap();
                }
                bank.set(&mut transaction, 20, 1);
                transaction.rollback().unwrap();
            }),
            spawn(&bank, move |bank| {
                assert_eq!(bank.total(&view, Direction::Forward), opening_total());
                let mut reader = bank.tree.point_reader_at(view.clone());
                for account in ACCOUNTS {
                    assert_eq!(reader.get(&[account]).unwrap().unwrap()[0], OPENING_BALANCE);
                }
                assert_eq!(bank.total(&view, Direction::Backward), opening_total());
            }),
            spawn(&bank, |bank| {
                for _ in 0..2 {
                    bank.storage.collect_versions_step().unwrap();
                }
            }),
        ];
        bank.finish(threads);
    });
}

#[test]
fn new_snapshots_see_what_is_new_while_an_old_one_keeps_the_past() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let old = bank.storage.read_view().unwrap();
        bank.transfer(10, 40).unwrap();
        bank.storage.collect_versions_step().unwrap();
        let threads = vec![
            spawn(&bank, |bank| {
                bank.transfer(40, 20).unwrap();
                let mut transaction = bank.storage.begin_transaction();
                bank.set(&mut transaction, 30, 1);
                transaction.rollback().unwrap();
            }),
            spawn(&bank, |bank| {
                for _ in 0..2 {
                    let view = bank.storage.read_view().unwrap();
                    assert_eq!(bank.total(&view, Direction::Forward), opening_total());
                    let mut reader = bank.tree.point_reader_at(view);
                    let total: u32 = ACCOUNTS
                        .map(|account| u32::from(reader.get(&[account]).unwrap().unwrap()[0]))
                        .iter()
                        .sum();
                    assert_eq!(total, opening_total());
                }
            }),
            spawn(&bank, move |bank| {
                let mut reader = bank.tree.point_reader_at(old);
                for account in ACCOUNTS {
                    let balance = reader.get(&[account]).unwrap().unwrap()[0];
                    assert_eq!(balance, OPENING_BALANCE);
                }
            }),
            spawn(&bank, |bank| {
                for _ in 0..2 {
                    bank.storage.collect_versions_step().unwrap();
                }
            }),
        ];
        bank.finish(threads);
    });
}

/// Ghosts leave their pages while an old view still sees the entries, and new entries come in their places.
fn move_entries_beside_readers(max_version_bytes: usize) {
    let bank = Bank::open_with(max_version_bytes);
    let old = bank.storage.read_view().unwrap();
    let threads = vec![
        spawn(&bank, |bank| {
            bank.rename(20, 21, true);
            bank.rename(21, 35, true);
            bank.rename(35, 20, true);
        }),
        spawn(&bank, |bank| {
            bank.rename(30, 31, false);
            bank.rename(30, 15, true);
        }),
        spawn(&bank, move |bank| {
            for direction in [Direction::Forward, Direction::Backward] {
                assert_eq!(bank.accounts(&old, direction), ACCOUNTS);
            }
            let mut reader = bank.tree.point_reader_at(old);
            assert_eq!(reader.get(&[15]).unwrap(), None);
            assert_eq!(reader.get(&[30]).unwrap().unwrap()[0], OPENING_BALANCE);
        }),
        spawn(&bank, |bank| {
            let view = bank.storage.read_view().unwrap();
            let accounts = bank.accounts(&view, Direction::Forward);
            assert_eq!(accounts.len(), ACCOUNTS.len());
            assert_eq!(bank.accounts(&view, Direction::Backward), accounts);
        }),
        spawn(&bank, |bank| {
            for _ in 0..2 {
                bank.storage.collect_versions_step().unwrap();
            }
        }),
    ];
    bank.finish(threads);
}

#[test]
fn entries_that_move_are_seen_where_they_were_and_where_they_are() {
    explore(SCHEDULES, || {
        move_entries_beside_readers(options().max_version_bytes);
    });
}

#[test]
fn entries_that_move_are_seen_the_same_when_the_past_is_spilled() {
    explore(SCHEDULES, || {
        move_entries_beside_readers(TINY_VERSION_BYTES);
    });
}

#[test]
fn a_snapshot_sees_through_splits_and_merges_of_uncommitted_rows() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = vec![
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                for key in [11, 12, 31] {
                    let value = [9; VALUE_BYTES];
                    bank.tree.insert(&mut transaction, &[key], &value).unwrap();
                }
                assert!(bank.tree.delete(&mut transaction, &[20]).unwrap());
                transaction.rollback().unwrap();
            }),
            spawn(&bank, |bank| {
                let view = bank.storage.read_view().unwrap();
                assert_eq!(bank.total(&view, Direction::Forward), opening_total());
                assert_eq!(bank.total(&view, Direction::Backward), opening_total());
                let mut reader = bank.tree.point_reader_at(view);
                assert_eq!(reader.get(&[12]).unwrap(), None);
                assert_eq!(reader.get(&[20]).unwrap().unwrap()[0], OPENING_BALANCE);
            }),
            spawn(&bank, |bank| bank.storage.collect_versions_step().unwrap()),
        ];
        bank.finish(threads);
    });
}

#[test]
fn no_update_is_lost_when_writers_wait_for_each_other() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = (0..3)
            .map(|_| spawn(&bank, |bank| bank.transfer(10, 20).unwrap()))
            .collect();
        bank.finish(threads);
        assert_eq!(bank.balance(10), OPENING_BALANCE - 3);
    });
}

#[test]
fn writers_without_explicit_locks_wait_for_each_others_versions() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = (1..=3)
            .map(|value| {
                spawn(&bank, move |bank| {
                    let mut transaction = bank.storage.begin_transaction();
                    transaction.set_lock_wait(LONG);
                    // Both rows or none: the second of two writers must wait at the first row already.
                    for account in [10, 40] {
                        bank.set(&mut transaction, account, value);
                    }
                    if value == 3 {
                        transaction.rollback().unwrap();
                    } else {
                        transaction.commit().unwrap();
                    }
                })
            })
            .collect::<Vec<_>>();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(bank.balance(10), bank.balance(40));
        assert!([1, 2].contains(&bank.balance(10)));
        bank.storage.close().unwrap();
    });
}

#[test]
fn transfers_in_opposite_directions_never_wait_for_ever() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = [(10, 20), (20, 10), (10, 20)]
            .into_iter()
            .map(|(from, to)| {
                spawn(&bank, move |bank| match bank.transfer(from, to) {
                    Ok(()) | Err(StorageError::Deadlock) => {}
                    Err(error) => panic!("{error}"),
                })
            })
            .collect();
        bank.finish(threads);
    });
}

#[test]
fn one_of_two_inserts_of_a_unique_prefix_fails() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = [1u8, 2].into_iter().map(|row| {
            let bank = bank.clone();
            thread::spawn(move || {
                let mut transaction = bank.storage.begin_transaction();
                transaction.set_lock_wait(LONG);
                match bank.tree.insert_unique(&mut transaction, &[7, row], 1, b"") {
                    Ok(()) => {
                        transaction.commit().unwrap();
                        1
                    }
                    Err(StorageError::DuplicateKey { .. }) => 0,
                    Err(error) => panic!("{error}"),
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        let inserted: i32 = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        assert_eq!(inserted, 1);
        bank.storage.close().unwrap();
    });
}

/// Adds a row if nobody has added one before, as far as the transaction reads. True if it did.
fn add_the_only_row(bank: &Bank, key: u8, reads_first: bool) -> Result<bool, StorageError> {
    let mut transaction = bank.storage.begin_transaction();
    transaction.set_lock_wait(LONG);
    let (all, kind) = (KeyRange::all(), RangeLock::NoChanges);
    let total = if reads_first {
        // Reads through a view, then locks what it has read, and reads again if something has come between.
        loop {
            let view = transaction.read_view()?;
            let total = bank.total(&view, Direction::Forward);
            if transaction.lock_range_of_view(&view, &bank.tree, &all, kind, LONG)? {
                break total;
            }
        }
    } else {
        transaction.lock_range(&bank.tree, &all, kind, LONG)?;
        bank.total(&ReadView::newest(), Direction::Forward)
    };
    if total != opening_total() {
        return Ok(false);
    }
    bank.tree.insert(&mut transaction, &[key], &[1])?;
    transaction.commit()?;
    Ok(true)
}

#[test]
fn a_transaction_that_locks_what_it_reads_reads_what_is_there_when_it_commits() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads: Vec<_> = [(5, false), (25, true), (45, true)]
            .into_iter()
            .map(|(key, reads_first)| {
                let bank = bank.clone();
                thread::spawn(move || match add_the_only_row(&bank, key, reads_first) {
                    Ok(added) => u32::from(added),
                    Err(StorageError::Deadlock) => 0,
                    Err(error) => panic!("{error}"),
                })
            })
            .collect();
        let added: u32 = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        assert_eq!(added, 1);
        let total = bank.total(&ReadView::newest(), Direction::Forward);
        assert_eq!(total, opening_total() + 1);
        assert_eq!(bank.storage.transaction_counters().row_locks, 0);
        bank.storage.close().unwrap();
    });
}

/// A writer that was in the range before its reader goes on; one that comes later waits. Nobody is a victim.
#[test]
fn a_reader_of_a_range_waits_for_writers_that_are_not_through() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = vec![
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                transaction.set_lock_wait(LONG);
                for account in [10, 40] {
                    bank.set(&mut transaction, account, OPENING_BALANCE);
                }
                transaction.commit().unwrap();
            }),
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                let (all, kind) = (KeyRange::all(), RangeLock::NoChanges);
                transaction
                    .lock_range(&bank.tree, &all, kind, LONG)
                    .unwrap();
                let newest = ReadView::newest();
                assert_eq!(bank.total(&newest, Direction::Forward), opening_total());
                transaction.commit().unwrap();
            }),
            spawn(&bank, |bank| bank.transfer(20, 30).unwrap()),
        ];
        bank.finish(threads);
    });
}

/// Whether a key with the prefix is there, once that is settled.
fn is_there(bank: &Bank, transaction: &mut Transaction, prefix: u8) -> Result<bool, StorageError> {
    loop {
        match bank.tree.settled_prefix(transaction, &[prefix])? {
            Settled::Found(_) => return Ok(true),
            Settled::Absent => return Ok(false),
            Settled::Unknown(unsettled) => transaction.wait_until_settled(&unsettled)?,
        }
    }
}

/// Account 10 is the parent, rows of account 90 are its children. Nobody is a victim, and no child stays alone.
#[test]
fn parent_and_child_see_each_other_come_and_go() {
    const CHILD: u8 = 90;
    const PARENT: u8 = 10;
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let mut threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|number| {
                spawn(&bank, move |bank| {
                    let mut transaction = bank.storage.begin_transaction();
                    transaction.set_lock_wait(LONG);
                    let (tree, mode) = (&bank.tree, LockMode::Shared);
                    transaction.lock_reference(tree, &[PARENT], mode).unwrap();
                    tree.insert(&mut transaction, &[CHILD, number], &[])
                        .unwrap();
                    let has_parent = is_there(bank, &mut transaction, PARENT).unwrap();
                    transaction.unlock_reference(tree, &[PARENT]);
                    match has_parent && number == 1 {
                        true => transaction.commit().unwrap(),
                        false => transaction.rollback().unwrap(),
                    }
                })
            })
            .collect();
        threads.push(spawn(&bank, |bank| {
            let mut transaction = bank.storage.begin_transaction();
            transaction.set_lock_wait(LONG);
            let (tree, mode) = (&bank.tree, LockMode::Exclusive);
            transaction.lock_reference(tree, &[PARENT], mode).unwrap();
            assert!(tree.delete(&mut transaction, &[PARENT]).unwrap());
            let has_child = is_there(bank, &mut transaction, CHILD).unwrap();
            transaction.unlock_reference(tree, &[PARENT]);
            match has_child {
                true => transaction.rollback().unwrap(),
                false => transaction.commit().unwrap(),
            }
        }));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let mut last = bank.storage.begin_transaction();
        let parent = is_there(&bank, &mut last, PARENT).unwrap();
        let child = is_there(&bank, &mut last, CHILD).unwrap();
        // The child came first, or the parent went.
        assert_eq!(parent, child);
        last.rollback().unwrap();
        assert_eq!(bank.storage.transaction_counters().row_locks, 0);
        bank.storage.close().unwrap();
    });
}

/// A transaction that rolls back and begins again queues behind those that wait for the rows, and they do not wait for
/// it.
#[test]
fn nobody_waits_for_changes_that_were_taken_back() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = vec![
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                transaction.set_lock_wait(LONG);
                let (tree, mode, savepoint) =
                    (&bank.tree, LockMode::Exclusive, transaction.savepoint());
                for _ in 0..2 {
                    // The version is lock enough, until it is taken back.
                    let is_new = transaction.lock_row(tree, &[10], mode, LONG).unwrap();
                    bank.set(&mut transaction, 10, 0);
                    if is_new {
                        transaction.unlock_row(tree, &[10]);
                    }
                    transaction.rollback_to(savepoint).unwrap();
                }
                transaction.commit().unwrap();
            }),
            spawn(&bank, |bank| bank.transfer(10, 20).unwrap()),
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                transaction.set_lock_wait(LONG);
                bank.set(&mut transaction, 10, 0);
                transaction.rollback().unwrap();
            }),
        ];
        bank.finish(threads);
    });
}

/// Two that replace the entry of a unique key, each by its own: nobody is a victim.
#[test]
fn entries_of_a_unique_key_replace_each_other() {
    const UNIQUE: u8 = 50;
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let mut first = bank.storage.begin_transaction();
        let taken = bank.tree.insert_unique(&mut first, &[UNIQUE, 0], 1, &[]);
        taken.unwrap();
        first.commit().unwrap();
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|number| {
                spawn(&bank, move |bank| {
                    let tree = &bank.tree;
                    let mut transaction = bank.storage.begin_transaction();
                    transaction.set_lock_wait(LONG);
                    loop {
                        let key = [UNIQUE, number];
                        match tree.insert_unique(&mut transaction, &key, 1, &[]) {
                            Ok(()) => break,
                            Err(StorageError::DuplicateKey { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                        if let Some(entry) = tree.contains_prefix(&[UNIQUE]).unwrap() {
                            tree.delete(&mut transaction, &entry).unwrap();
                        }
                    }
                    transaction.commit().unwrap();
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let left = bank.tree.contains_prefix(&[UNIQUE]).unwrap().unwrap();
        assert!(left == [UNIQUE, 1] || left == [UNIQUE, 2]);
        assert_eq!(bank.storage.transaction_counters().row_locks, 0);
        bank.storage.close().unwrap();
    });
}

/// One transaction changes a row and then locks what it searched, one wants the same row, and one has locked another
/// row that it changes later. None of them is ever the victim of a deadlock: locks that the range excludes are waited
/// for out of courtesy.
#[test]
fn a_lock_of_a_range_behind_locks_of_its_rows_is_never_in_a_deadlock() {
    explore(SCHEDULES, || {
        let bank = Bank::open();
        let threads = vec![
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                transaction.set_lock_wait(LONG);
                bank.set(&mut transaction, ACCOUNTS[0], 1);
                let (all, kind) = (KeyRange::all(), RangeLock::NoChanges);
                transaction
                    .lock_range(&bank.tree, &all, kind, LONG)
                    .unwrap();
                let seen = bank.balance(ACCOUNTS[1]);
                assert_eq!(seen, bank.balance(ACCOUNTS[1]));
                transaction.commit().unwrap();
            }),
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                transaction.set_lock_wait(LONG);
                bank.set(&mut transaction, ACCOUNTS[0], 2);
                transaction.commit().unwrap();
            }),
            spawn(&bank, |bank| {
                let mut transaction = bank.storage.begin_transaction();
                transaction.set_lock_wait(LONG);
                let mode = LockMode::Exclusive;
                transaction
                    .lock_row(&bank.tree, &[ACCOUNTS[1]], mode, LONG)
                    .unwrap();
                bank.set(&mut transaction, ACCOUNTS[1], 3);
                transaction.commit().unwrap();
            }),
        ];
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
