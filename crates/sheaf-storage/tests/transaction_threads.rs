//! Transactions in real threads: money moves between accounts while snapshots count it.
//!
//! Each account is a row and an entry of an index by balance, changed in one transaction. Accounts are opened and
//! closed, so that leaves split and merge. The pool holds a part of the rows only. Every snapshot must see all of the
//! money, in the rows and in the index alike.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::{Random, disk, options};
use sheaf_storage::{
    Direction, KeyRange, LeafEntries, LockMode, LockWait, ReadAhead, ReadView, Result, Storage,
    StorageError, StorageOptions, Transaction, Tree,
};

const ACCOUNTS: u64 = 3_000;
const OPENING_BALANCE: u64 = 1_000;
const WRITERS: u64 = 4;
const TRANSACTIONS_PER_WRITER: usize = 400;
const TRANSFERS_PER_TRANSACTION: u64 = 6;
const LONG: LockWait = LockWait::AtMost(Duration::from_secs(3600));

struct Bank {
    storage: Arc<Storage>,
    /// Account (2 bytes) -> balance (8 bytes) and some text.
    rows: Arc<Tree>,
    /// Balance (8 bytes), account (2 bytes).
    index: Arc<Tree>,
}

impl Bank {
    fn open(options: StorageOptions) -> Bank {
        let storage = Storage::open_on(disk(5), options).unwrap();
        let tree = || storage.tree(storage.create_tree().unwrap()).unwrap();
        let (rows, index) = (tree(), tree());
        let bank = Bank {
            storage,
            rows,
            index,
        };
        let (mut transaction, mut random) = (bank.storage.begin_transaction(), Random(5));
        for account in 0..ACCOUNTS {
            let account = (account as u16).to_be_bytes();
            bank.open_account(&mut transaction, account, OPENING_BALANCE, &mut random)
                .unwrap();
        }
        transaction.commit().unwrap();
        bank
    }

    fn open_account(
        &self,
        transaction: &mut Transaction,
        account: [u8; 2],
        balance: u64,
        random: &mut Random,
    ) -> Result<()> {
        self.rows
            .insert(transaction, &account, &row(balance, random))?;
        self.index
            .insert(transaction, &index_key(balance, account), b"")
    }

    fn close_account(
        &self,
        transaction: &mut Transaction,
        account: [u8; 2],
        balance: u64,
    ) -> Result<()> {
        assert!(self.rows.delete(transaction, &account)?);
        let index_key = index_key(balance, account);
        assert!(self.index.delete(transaction, &index_key)?);
        Ok(())
    }

    fn set_balance(
        &self,
        transaction: &mut Transaction,
        account: [u8; 2],
        (old, new): (u64, u64),
        random: &mut Random,
    ) -> Result<()> {
        assert!(self.rows.update(transaction, &account, &row(new, random))?);
        if old != new {
            let (old, new) = (index_key(old, account), index_key(new, account));
            assert!(self.index.delete(transaction, &old)?);
            self.index.insert(transaction, &new, b"")?;
        }
        Ok(())
    }

    /// The newest balance of an account, which nobody else changes any more.
    fn locked_balance(
        &self,
        transaction: &mut Transaction,
        account: [u8; 2],
    ) -> Result<Option<u64>> {
        transaction.lock_row(&self.rows, &account, LockMode::Exclusive, LONG)?;
        let mut value = Vec::new();
        let found = self.rows.get(&account, &mut value)?;
        Ok(found.then(|| balance_of(&value)))
    }

    fn transfer(&self, transaction: &mut Transaction, random: &mut Random) -> Result<()> {
        let account = |random: &mut Random| (random.below(ACCOUNTS) as u16).to_be_bytes();
        let (from, to) = (account(random), account(random));
        if from == to {
            return Ok(());
        }
        let from_balance = self.locked_balance(transaction, from)?;
        let to_balance = self.locked_balance(transaction, to)?;
        match (from_balance, to_balance) {
            (Some(has), Some(had)) if random.below(3) == 0 => {
                self.close_account(transaction, from, has)?;
                self.set_balance(transaction, to, (had, had + has), random)
            }
            (Some(has), Some(had)) => {
                let moved = random.below(has + 1);
                self.set_balance(transaction, from, (has, has - moved), random)?;
                self.set_balance(transaction, to, (had, had + moved), random)
            }
            (Some(has), None) => {
                let moved = has / 2;
                self.set_balance(transaction, from, (has, has - moved), random)?;
                self.open_account(transaction, to, moved, random)
            }
            (None, _) => Ok(()),
        }
    }

    fn write(&self, seed: u64) {
        let mut random = Random(seed);
        for _ in 0..TRANSACTIONS_PER_WRITER {
            let mut transaction = self.storage.begin_transaction();
            transaction.set_lock_wait(LONG);
            let transfers = 1 + random.below(TRANSFERS_PER_TRANSACTION);
            let result =
                (0..transfers).try_for_each(|_| self.transfer(&mut transaction, &mut random));
            match result {
                Ok(()) if random.below(8) > 0 => transaction.commit().unwrap(),
                Ok(()) | Err(StorageError::Deadlock) => transaction.rollback().unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Balance and account of every entry that the view sees.
    fn entries(
        &self,
        tree: &Arc<Tree>,
        view: &ReadView,
        direction: Direction,
        entry: impl Fn(&LeafEntries, usize) -> (u64, [u8; 2]),
    ) -> BTreeSet<(u64, [u8; 2])> {
        let mut entries = BTreeSet::new();
        let read_ahead = ReadAhead::Pages(8);
        let mut cursor = tree.scan_at(view.clone(), KeyRange::all(), direction, read_ahead);
        while let Some(leaf) = cursor.next_leaf().unwrap() {
            for i in 0..leaf.len() {
                assert!(entries.insert(entry(leaf, i)), "an entry came twice");
            }
        }
        entries
    }

    fn count_money(&self, view: &ReadView, random: &mut Random) {
        let direction = match random.below(2) {
            0 => Direction::Forward,
            _ => Direction::Backward,
        };
        let by_account = self.entries(&self.rows, view, direction, |leaf, i| {
            let mut key = Vec::new();
            leaf.key_into(i, &mut key);
            (balance_of(leaf.value(i)), key.try_into().unwrap())
        });
        let money: u64 = by_account.iter().map(|(balance, _)| balance).sum();
        assert_eq!(money, ACCOUNTS * OPENING_BALANCE);
        let by_balance = self.entries(&self.index, view, direction, |leaf, i| {
            let mut key = Vec::new();
            leaf.key_into(i, &mut key);
            let (balance, account) = key.split_at(8);
            (
                u64::from_be_bytes(balance.try_into().unwrap()),
                account.try_into().unwrap(),
            )
        });
        assert!(by_account == by_balance, "the index differs from the rows");
        let mut reader = self.rows.point_reader_at(view.clone());
        for (balance, account) in by_account.into_iter().step_by(97) {
            let found = reader.get(&account).unwrap().map(balance_of);
            assert_eq!(found, Some(balance));
        }
    }
}

fn row(balance: u64, random: &mut Random) -> Vec<u8> {
    let mut row = balance.to_le_bytes().to_vec();
    row.resize(8 + random.below(900) as usize, b'.');
    row
}

fn balance_of(row: &[u8]) -> u64 {
    u64::from_le_bytes(row[..8].try_into().unwrap())
}

fn index_key(balance: u64, account: [u8; 2]) -> Vec<u8> {
    [&balance.to_be_bytes()[..], &account].concat()
}

#[test]
fn every_snapshot_sees_all_of_the_money() {
    let bank = Bank::open(options());
    count_money_while_it_moves(&bank);
    assert_eq!(bank.storage.transaction_counters().spill_written_bytes, 0);
}

#[test]
fn every_snapshot_sees_all_of_the_money_when_the_past_is_spilled() {
    let bank = Bank::open(StorageOptions {
        max_version_bytes: 400 << 10,
        ..options()
    });
    count_money_while_it_moves(&bank);
    let counters = bank.storage.transaction_counters();
    assert!(counters.spill_written_bytes > 0 && counters.spill_read_bytes > 0);
}

/// Says that it is over when the writers are through, also if one of them has failed.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn count_money_while_it_moves(bank: &Bank) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let over = Over(&is_over);
        let writers: Vec<_> = (1..=WRITERS)
            .map(|seed| scope.spawn(move || bank.write(seed)))
            .collect();
        for seed in 10..12 {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut random = Random(seed);
                let mut old = bank.storage.read_view().unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let view = bank.storage.read_view().unwrap();
                    bank.count_money(&view, &mut random);
                    bank.count_money(&old, &mut random);
                    if random.below(4) == 0 {
                        old = view;
                    }
                }
            });
        }
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                bank.storage.collect_versions_step().unwrap();
                thread::yield_now();
            }
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        drop(over);
    });
    bank.count_money(&ReadView::newest(), &mut Random(1));
    bank.storage.collect_versions_step().unwrap();
    let counters = bank.storage.transaction_counters();
    assert_eq!((counters.version_bytes, counters.row_locks), (0, 0));
    assert_eq!(counters.spilled_bytes, 0);
    for tree in [&bank.rows, &bank.index] {
        tree.purge().unwrap();
        assert_eq!(tree.check().unwrap().ghosts, 0);
    }
}
