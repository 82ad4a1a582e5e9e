//! What a statement has searched, and how a transaction keeps it as it is.
//!
//! A search reads ranges of one index. A transaction that must find the same again locks these ranges of that index: to
//! be serializable, or for a change or a locking read of REPEATABLE READ. What is not there stays away (the gaps of
//! next-key locks), and with [`RangeLock::NoChanges`] what is there stays too. A secondary index says which rows there
//! are, but not all that is in them:
//!
//! | searched | locked |
//! |---|---|
//! | one row by its whole primary key | the row, whether it is there or not |
//! | a range of the clustered index | the range |
//! | a range of a secondary index, entries only | the range |
//! | a range of a secondary index, and the rows of its entries | the rows, then the range |
//! | a secondary index whole, and its rows | both trees |
//! | keys that a join has looked up | the rows, then the gaps around them, against inserts |
//!
//! Rows go before their range, because writers go the same way, the clustered index first. So a writer that came to a
//! row before waits for nothing here.
//!
//! A join may look up thousands of keys, each with few rows. Rows are locked one by one, so ranges need only keep
//! inserts out. A few coarse ranges are enough, each from one key to another that follows later. The extra keys that
//! such a range covers are closed to new inserts only; transactions that have inserted there before are neither waited
//! for nor looked for.

use std::ops::Bound;
use std::sync::Arc;

use sheaf_storage::{
    Direction, KeyRange, LockMode, LockWait, RangeLock, ReadAhead, ReadView, Transaction, Tree,
};

use crate::error::Result;
use crate::table::Table;

/// Most ranges that are locked for the keys of a join: half of what a transaction may lock of a tree before it locks
/// all of it.
const MAX_GAPS: usize = 256;

/// Rows that are locked before the transaction is asked whether it shall stop.
const ROWS_PER_CHECK: usize = 1024;

/// Leaves of ranges that are walked in this direction what is walked before this key, and the key.
pub fn end_ranges_at(ranges: &mut Vec<KeyRange>, key: &[u8], direction: Direction) {
    let is_forward = matches!(direction, Direction::Forward);
    ranges.retain(|range| match is_forward {
        true => !range.is_below(key),
        false => !range.is_above(key),
    });
    for range in ranges {
        if range.contains(key) && *range != KeyRange::prefix(key) {
            let end = match is_forward {
                true => &mut range.upper,
                false => &mut range.lower,
            };
            *end = Bound::Included(key.to_vec());
        }
    }
}

/// The ranges of one index that a statement reads.
#[derive(Clone)]
pub struct Search {
    pub table: Arc<Table>,
    /// Position among the secondary indexes; `None`: the clustered one.
    pub index: Option<usize>,
    pub ranges: Vec<KeyRange>,
    /// The rows of a secondary index's entries are read too.
    pub reads_rows: bool,
}

impl Search {
    fn tree(&self) -> &Arc<Tree> {
        match self.index {
            None => &self.table.clustered,
            Some(position) => &self.table.secondary[position],
        }
    }

    /// The primary key that a range of the clustered index names, if it names a whole one.
    fn single_row<'r>(&self, range: &'r KeyRange) -> Option<&'r [u8]> {
        let Bound::Included(key) = &range.lower else {
            return None;
        };
        let mut offsets = Vec::new();
        let layout = &self.table.clustered_layout;
        let is_whole = self.index.is_none()
            && *range == KeyRange::prefix(key)
            && layout.part_offsets(key, &mut offsets).is_ok()
            && offsets.last() == Some(&key.len());
        is_whole.then_some(key)
    }

    /// The search, in this direction, went no further than to a row that is in `view` what it was then.
    ///
    /// # Errors
    /// The row cannot be read.
    pub fn end_at_row(
        &mut self,
        view: &ReadView,
        primary_key: &[u8],
        direction: Direction,
    ) -> Result<()> {
        let Some(position) = self.index else {
            self.end_at(primary_key, direction);
            return Ok(());
        };
        if let Some(row) = self.table.read_row_at(view, primary_key)? {
            let (mut entry, mut payload) = (Vec::new(), Vec::new());
            let row_id = self.table.row_id_of(primary_key);
            let values = |column: usize| (&row[column]).into();
            let layout = &self.table.secondary_layouts[position];
            layout.encode_entry(values, row_id, &mut entry, &mut payload);
            self.end_at(&entry, direction);
        }
        Ok(())
    }

    /// The search went no further than to this key of its index.
    fn end_at(&mut self, key: &[u8], direction: Direction) {
        end_ranges_at(&mut self.ranges, key, direction);
    }

    /// Locks what the search is going to read with [`ReadView::newest`], until the transaction ends: shared, against
    /// all changes, or exclusively, also against others' locks.
    ///
    /// # Errors
    /// As [`Transaction::lock_range`].
    pub fn lock(
        &self,
        transaction: &mut Transaction,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<()> {
        let kind = range_lock(mode);
        // Others come to a row through other indexes, too.
        let locks_rows = self.reads_rows || (self.index.is_some() && mode == LockMode::Exclusive);
        for range in &self.ranges {
            if let Some(key) = self.single_row(range) {
                transaction.lock_row(self.tree(), key, mode, wait)?;
                continue;
            }
            if !locks_rows {
                transaction.lock_range(self.tree(), range, kind, wait)?;
                continue;
            }
            let mut is_stable = false;
            while !is_stable {
                let view = transaction.read_view()?;
                self.lock_rows(transaction, &view, range, (mode, wait))?;
                let tree = self.tree();
                is_stable = transaction.lock_range_of_view(&view, tree, range, kind, wait)?;
            }
        }
        // What was locked just now may have been committed just now.
        Ok(transaction.show_commits()?)
    }

    /// Locks what the search has read through `view`, until the transaction ends. False: it would not find the same
    /// now, and the statement begins again with a newer view. The locks stay, so that it gets ahead.
    ///
    /// # Errors
    /// As [`Transaction::lock_range`].
    pub fn lock_of_view(
        &self,
        transaction: &mut Transaction,
        view: &ReadView,
        kind: RangeLock,
        wait: LockWait,
    ) -> Result<bool> {
        let tree = self.tree();
        let mut is_unchanged = true;
        for range in &self.ranges {
            is_unchanged &= match self.single_row(range) {
                Some(key) => {
                    let mode = LockMode::Shared;
                    let row = transaction.lock_row_of_view(view, tree, key, mode, wait)?;
                    row.is_unchanged
                }
                None if self.reads_rows && kind >= RangeLock::NoChanges => {
                    self.lock_rows(transaction, view, range, (LockMode::Shared, wait))?
                        & transaction.lock_range_of_view(view, tree, range, kind, wait)?
                }
                None => transaction.lock_range_of_view(view, tree, range, kind, wait)?,
            };
        }
        Ok(is_unchanged)
    }

    /// As [`Self::lock_of_view`], against all changes of what was read, of a search whose ranges are the keys that a
    /// join has looked up, ascending. The whole index is locked if the rows are `most_rows` or more.
    ///
    /// # Errors
    /// As [`Transaction::lock_range`].
    pub fn lock_lookups_of_view(
        &self,
        transaction: &mut Transaction,
        view: &ReadView,
        most_rows: usize,
        wait: LockWait,
    ) -> Result<bool> {
        let lock_whole = |transaction: &mut Transaction| {
            let whole = Search {
                table: Arc::clone(&self.table),
                ranges: vec![KeyRange::all()],
                ..*self
            };
            whole.lock_of_view(transaction, view, RangeLock::NoChanges, wait)
        };
        if self.ranges == [KeyRange::all()] {
            return lock_whole(transaction);
        }
        let (tree, mode) = (self.tree(), LockMode::Shared);
        let mut is_unchanged = true;
        let mut with_gaps = Vec::new();
        let mut rows_left = most_rows;
        for range in &self.ranges {
            is_unchanged &= match self.single_row(range) {
                Some(key) => {
                    rows_left = rows_left.saturating_sub(1);
                    let row = transaction.lock_row_of_view(view, tree, key, mode, wait)?;
                    row.is_unchanged
                }
                None => {
                    with_gaps.push(range);
                    let limits = (&mut rows_left, wait);
                    self.lock_some_rows(transaction, view, range, mode, limits)?
                }
            };
            if rows_left == 0 {
                return Ok(lock_whole(transaction)? && is_unchanged);
            }
        }
        let keys_per_gap = with_gaps.len().div_ceil(MAX_GAPS).max(1);
        for neighbours in with_gaps.chunks(keys_per_gap) {
            let (Some(first), Some(last)) = (neighbours.first(), neighbours.last()) else {
                continue;
            };
            let gap = KeyRange {
                lower: first.lower.clone(),
                upper: last.upper.clone(),
            };
            is_unchanged &= transaction.lock_gaps_of_view(view, tree, &gap, neighbours, wait)?;
        }
        Ok(is_unchanged)
    }

    /// Locks the rows of the entries that the view sees in a range; false if one of them has changed since.
    fn lock_rows(
        &self,
        transaction: &mut Transaction,
        view: &ReadView,
        range: &KeyRange,
        (mode, wait): (LockMode, LockWait),
    ) -> Result<bool> {
        let mut rows_left = usize::MAX;
        self.lock_some_rows(transaction, view, range, mode, (&mut rows_left, wait))
    }

    /// As [`Self::lock_rows`], until `rows_left` is 0.
    fn lock_some_rows(
        &self,
        transaction: &mut Transaction,
        view: &ReadView,
        range: &KeyRange,
        mode: LockMode,
        (rows_left, wait): (&mut usize, LockWait),
    ) -> Result<bool> {
        let rows = &self.table.clustered;
        if *range == KeyRange::all() {
            let kind = range_lock(mode);
            return Ok(transaction.lock_range_of_view(view, rows, range, kind, wait)?);
        }
        let layout = self
            .index
            .map(|position| &self.table.secondary_layouts[position]);
        let mut cursor = self.tree().scan_at(
            view.clone(),
            range.clone(),
            Direction::Forward,
            ReadAhead::Off,
        );
        let (mut entry, mut key) = (Vec::new(), Vec::new());
        let mut is_unchanged = true;
        while let Some(leaf) = cursor.next_leaf()? {
            for at in 0..leaf.len() {
                if *rows_left == 0 {
                    return Ok(is_unchanged);
                }
                if rows_left.is_multiple_of(ROWS_PER_CHECK) {
                    transaction.check_interrupt()?;
                }
                *rows_left -= 1;
                leaf.key_into(at, &mut entry);
                let key = match layout {
                    None => &entry,
                    Some(layout) => {
                        key.clear();
                        layout.primary_key_into(&entry, &mut key)?;
                        &key
                    }
                };
                let row = transaction.lock_row_of_view(view, rows, key, mode, wait)?;
                is_unchanged &= row.is_unchanged;
            }
        }
        Ok(is_unchanged)
    }
}

/// What a lock of rows is for a range of them.
fn range_lock(mode: LockMode) -> RangeLock {
    match mode {
        LockMode::Shared => RangeLock::NoChanges,
        LockMode::Exclusive => RangeLock::NoLocks,
    }
}
