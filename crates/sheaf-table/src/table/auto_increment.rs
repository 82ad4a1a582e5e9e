//! What AUTO_INCREMENT gives out: the counter of a table, and the series that a session takes values of.
//!
//! A table has two numbers, and the greater one is next: the one behind what was given out, and the one behind the
//! largest value that a row brought with it. Neither ever leads back. So the value that is given to a row that does not
//! go in is a gap, as in MySQL, where a statement reserves a value for each of its rows. Within the statement the next
//! row gets the value that a duplicate has left ([`Reserved`]):
//!
//! ```text
//!   INSERT IGNORE of three rows       the first is given 5, the second 6 and is a duplicate, the third gets 6
//!   the next statement                is given 8
//! ```
//!
//! **After a crash** no value is given out again, as in MySQL, although its row was deleted. The catalog has a *mark*
//! some values ahead ([`MARK_AHEAD`]). A row whose value is not below the mark goes in when a further mark is in the
//! log. That is not waited for: the row's commit comes behind it in the log. A clean shutdown makes the mark what is
//! next, so values are left out after a crash only.

use std::collections::VecDeque;

use sheaf_storage::sync::atomic::{AtomicU64, Ordering};
use sheaf_storage::sync::{Mutex, MutexGuard};

/// Not known yet: to be found from the largest key.
const UNKNOWN: u64 = 0;

/// How many values the mark is ahead, in a column that has many left: each [`MARK_SHARE`]th of those that are left, at
/// most. Crashes leave out little of a small column then.
const MARK_AHEAD: u64 = 1_000;
const MARK_SHARE: u64 = 1_000;

/// First byte of the keys of marks in the catalog tree.
pub(crate) const MARK_KIND: u8 = 4;

/// Where the catalog tree has the mark of a table (docs/catalog-format.md).
pub(crate) fn mark_key(table: u64) -> [u8; 9] {
    let mut key = [MARK_KIND; 9];
    key[1..].copy_from_slice(&table.to_be_bytes());
    key
}

/// The values that a session is given: `offset`, `offset + increment`, and so on (the variables `auto_increment_offset`
/// and `auto_increment_increment`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoIncrementSeries {
    increment: u64,
    offset: u64,
}

impl Default for AutoIncrementSeries {
    /// All of them.
    fn default() -> AutoIncrementSeries {
        AutoIncrementSeries::new(1, 1)
    }
}

impl AutoIncrementSeries {
    /// Both are 1 or more. As MySQL's manual has it, an offset that is greater than the increment is ignored.
    pub fn new(increment: u64, offset: u64) -> AutoIncrementSeries {
        let increment = increment.max(1);
        let offset = match offset > increment {
            true => 1,
            false => offset.max(1),
        };
        AutoIncrementSeries { increment, offset }
    }

    /// As [`Self::new`], for a column that InnoDB adds without a copy: an offset that is greater than the increment
    /// is 0 there.
    pub fn in_place(increment: u64, offset: u64) -> AutoIncrementSeries {
        match offset > increment {
            true => AutoIncrementSeries {
                increment,
                offset: 0,
            },
            false => AutoIncrementSeries::new(increment, offset),
        }
    }

    /// The increment and the offset that count.
    pub fn numbers(self) -> [u64; 2] {
        [self.increment, self.offset]
    }

    /// Whether it leaves no value out.
    pub(crate) fn has_all(self) -> bool {
        self.increment == 1
    }

    /// The smallest value from `least` on; `u64::MAX`: there is none.
    fn at_or_after(self, least: u64) -> u64 {
        let steps = least.saturating_sub(self.offset).div_ceil(self.increment);
        steps
            .checked_mul(self.increment)
            .and_then(|ahead| ahead.checked_add(self.offset))
            .unwrap_or(u64::MAX)
    }

    /// What InnoDB gives the first row when it adds a column in place (`innobase_next_autoinc`). `start`: the value of
    /// AUTO_INCREMENT, 0 if the statement says none.
    pub(crate) fn first_in_place(self, start: u64) -> u64 {
        let steps = start.abs_diff(self.offset) / self.increment + 1;
        steps
            .checked_mul(self.increment)
            .and_then(|ahead| ahead.checked_add(self.offset))
            .unwrap_or(u64::MAX)
    }

    /// The smallest value behind `last`; `u64::MAX`: there is none.
    fn after(self, last: u64) -> u64 {
        self.at_or_after(last.saturating_add(1))
    }
}

/// Values of a series, one behind another.
#[derive(Debug, Default)]
pub(crate) struct Run {
    next: u64,
    left: u64,
    increment: u64,
}

impl Run {
    fn take(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let value = self.next;
        self.next = value.saturating_add(self.increment);
        Some(value)
    }

    fn skip_to_behind(&mut self, value: u64) {
        if value >= self.next && self.left > 0 {
            let skipped = (value - self.next) / self.increment + 1;
            self.left = self.left.saturating_sub(skipped);
            self.next = self
                .next
                .saturating_add(skipped.saturating_mul(self.increment));
        }
    }
}

/// What a statement has been given for its rows and has not used. It is left out when the statement ends.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    /// Of rows that did not go in, and what was reserved for rows that got such a value.
    left: VecDeque<u64>,
    run: Run,
    /// How many rows the statement has; 0 if that is not known. So many values are reserved, one behind another, when
    /// the first one is asked for: clients count on from `LAST_INSERT_ID()`.
    pub(crate) rows: u64,
    /// What the next row gets, whatever is next (`insert_id`). A duplicate leaves it to the next row.
    pub(crate) chosen: Option<u64>,
    /// The next row is the one that did not go in.
    pub(crate) is_same_row: bool,
    /// The statement has its rows in VALUES. Those of a query or a file bring their values also if they do not go in,
    /// as in MySQL.
    pub(crate) are_values: bool,
}

impl Reserved {
    /// What a statement of so many rows begins with.
    pub(crate) fn of_rows(rows: u64) -> Reserved {
        Reserved {
            rows,
            are_values: true,
            ..Reserved::default()
        }
    }

    /// The value of the next row. One more is reserved for it, unless it is the same row again: `take` reserves so
    /// many.
    pub(crate) fn next(&mut self, take: impl FnOnce(u64) -> Option<Run>) -> Option<u64> {
        let first = self.left.pop_front();
        if std::mem::take(&mut self.is_same_row) && first.is_some() {
            return first;
        }
        let another = match self.run.take() {
            Some(value) => value,
            None => {
                self.run = take(std::mem::take(&mut self.rows).max(1))?;
                self.run.take()?
            }
        };
        Some(match first {
            None => another,
            Some(first) => {
                self.left.push_back(another);
                first
            }
        })
    }

    /// The row of this value, the last one that was given, did not go in.
    pub(crate) fn leave(&mut self, value: u64) {
        self.left.push_front(value);
    }

    /// The row that this value was chosen for did not go in.
    pub(crate) fn leave_chosen(&mut self, value: u64) {
        self.chosen = Some(value);
    }

    /// A row of the statement has brought this value: those up to it are left out.
    pub(crate) fn skip_to_behind(&mut self, value: u64) {
        self.left.retain(|left| *left > value);
        self.run.skip_to_behind(value);
    }
}

/// The counter of a table: see the module's comment. All numbers are the next ones.
#[derive(Debug, Default)]
pub(crate) struct AutoIncrement {
    /// Behind what was given out; [`UNKNOWN`] at first.
    given_out: AtomicU64,
    /// Behind the largest value that a row brought; 0 if none did. It only grows, until it is forgotten.
    brought: AtomicU64,
    /// As the catalog had it when it was opened; 0 if it had none.
    saved: AtomicU64,
    /// What the catalog has at least.
    mark: AtomicU64,
    /// Held while the mark in the catalog changes.
    marking: Mutex<()>,
}

impl AutoIncrement {
    /// Takes over what the catalog wrote down.
    pub(crate) fn restore(&self, next: u64) {
        self.saved.store(next, Ordering::Relaxed);
        self.mark.store(next, Ordering::Relaxed);
    }

    /// The next value as far as it is known without the rows.
    pub(crate) fn known(&self) -> Option<u64> {
        let next = self.ahead().max(self.saved.load(Ordering::Relaxed));
        Some(next).filter(|next| *next != UNKNOWN)
    }

    /// The next value, if it is known and not what the catalog has.
    pub(crate) fn unsaved(&self) -> Option<u64> {
        let next = self.known().filter(|_| self.ahead() > 0)?;
        (next != self.mark.load(Ordering::Relaxed)).then_some(next)
    }

    /// Whether a value was given out, or brought, that is not below the mark.
    pub(crate) fn is_beyond_mark(&self) -> bool {
        self.ahead() > self.mark.load(Ordering::Acquire)
    }

    /// For a change of the mark in the catalog.
    pub(crate) fn begin_marking(&self) -> MutexGuard<'_, ()> {
        self.marking.lock()
    }

    /// The mark that the catalog is to have. `greatest`: the column's greatest value.
    pub(crate) fn mark_ahead(&self, greatest: u64) -> u64 {
        let next = self.ahead();
        next + (greatest.saturating_sub(next) / MARK_SHARE).min(MARK_AHEAD)
    }

    /// The catalog has this mark. Called while [marking](Self::begin_marking).
    pub(crate) fn note_mark(&self, mark: u64) {
        self.mark.store(mark, Ordering::Release);
    }

    /// The next value is to be found from the rows, and from the definition. No other session uses the table.
    pub(crate) fn forget(&self) {
        for number in [&self.given_out, &self.brought, &self.saved, &self.mark] {
            number.store(0, Ordering::Relaxed);
        }
    }

    fn ahead(&self) -> u64 {
        // What was given back must not be seen before what was brought until then.
        let given_out = self.given_out.load(Ordering::Acquire);
        given_out.max(self.brought.load(Ordering::Relaxed))
    }

    /// The next value; `None`: to be [found](Self::begin_at) from the rows.
    pub(crate) fn next(&self) -> Option<u64> {
        match self.given_out.load(Ordering::Relaxed) {
            UNKNOWN => None,
            _ => Some(self.ahead()),
        }
    }

    /// The rows and the definition say that this is next, unless more is known here.
    pub(crate) fn begin_at(&self, next: u64) -> u64 {
        let next = next.max(self.saved.load(Ordering::Relaxed)).max(1);
        // If another thread found it out, some may have been given out since.
        let relaxed = Ordering::Relaxed;
        let _ = self
            .given_out
            .compare_exchange(UNKNOWN, next, relaxed, relaxed);
        self.ahead()
    }

    /// Gives out so many values, 1 or more, or as many as there are that are not above `greatest`. `None`: there is
    /// none. [`Self::next`] is known.
    pub(crate) fn take(
        &self,
        series: AutoIncrementSeries,
        greatest: u64,
        count: u64,
    ) -> Option<Run> {
        let increment = series.increment;
        // The last value of BIGINT UNSIGNED marks the end, so that the counter never wraps.
        let greatest = greatest.min(u64::MAX - 1);
        loop {
            let given_out = self.given_out.load(Ordering::Acquire);
            let brought = self.brought.load(Ordering::Relaxed);
            let next = series.at_or_after(given_out.max(brought));
            let left = count.min(greatest.checked_sub(next)? / increment + 1);
            let behind = series.after(next + (left - 1) * increment);
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            let counter = &self.given_out;
            let is_taken = counter.compare_exchange(given_out, behind, acquire, relaxed);
            // Meanwhile another row may have brought this value.
            if is_taken.is_ok() && next >= self.brought.load(Ordering::Relaxed) {
                return Some(Run {
                    next,
                    left,
                    increment,
                });
            }
        }
    }

    /// A row is about to bring this value, or has it now: it is not given out any more.
    pub(crate) fn bring(&self, series: AutoIncrementSeries, value: u64) {
        // Nearly always another row has brought a larger one, and then nothing is written.
        if value >= self.brought.load(Ordering::Relaxed) {
            self.brought
                .fetch_max(series.after(value), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::AtomicBool;

    use super::*;

    const ALL: u64 = u64::MAX;

    fn counter() -> AutoIncrement {
        let counter = AutoIncrement::default();
        counter.begin_at(1);
        counter
    }

    fn take_of(counter: &AutoIncrement, series: AutoIncrementSeries, greatest: u64) -> Option<u64> {
        counter.take(series, greatest, 1)?.take()
    }

    fn take(counter: &AutoIncrement) -> u64 {
        take_of(counter, AutoIncrementSeries::default(), ALL).unwrap()
    }

    #[test]
    fn a_series_goes_on_behind_what_there_is() {
        let series = AutoIncrementSeries::new(10, 5);
        let values = [0, 1, 5, 6, 15, 16, 99].map(|least| series.at_or_after(least));
        assert_eq!(values, [5, 5, 5, 15, 15, 25, 105]);
        assert_eq!(series.after(15), 25);
        assert_eq!(AutoIncrementSeries::default().at_or_after(7), 7);
        // The offset is ignored.
        assert_eq!(AutoIncrementSeries::new(1, 5).at_or_after(1), 1);
        assert_eq!(AutoIncrementSeries::new(5, 7).at_or_after(2), 6);
        assert_eq!(series.at_or_after(ALL - 1), ALL);
    }

    #[test]
    fn values_are_of_the_series_and_the_next_one_is_known() {
        let (counter, series) = (counter(), AutoIncrementSeries::new(10, 5));
        let values = [5, 15, 25].map(|value| {
            assert_eq!(take_of(&counter, series, ALL), Some(value));
            counter.next().unwrap()
        });
        assert_eq!(values, [15, 25, 35]);
        counter.bring(series, 47);
        assert_eq!(counter.next(), Some(55));
        assert_eq!(take(&counter), 55);
        assert_eq!(take_of(&counter, series, 60), None);
        assert_eq!(take_of(&counter, series, 65), Some(65));
    }

    #[test]
    fn a_duplicate_leaves_its_value_to_the_next_row() {
        let (counter, mut reserved) = (counter(), Reserved::default());
        let series = AutoIncrementSeries::default();
        let mut next = || {
            reserved
                .next(|rows| counter.take(series, ALL, rows))
                .expect("a value")
        };
        assert_eq!([next(), next()], [1, 2]);
        reserved.leave(2);
        let mut next = || {
            reserved
                .next(|rows| counter.take(series, ALL, rows))
                .expect("a value")
        };
        assert_eq!([next(), next()], [2, 3]);
        assert_eq!(counter.next(), Some(5));
        reserved.leave(3);
        reserved.is_same_row = true;
        let mut next = || {
            reserved
                .next(|rows| counter.take(series, ALL, rows))
                .expect("a value")
        };
        assert_eq!([next(), next()], [3, 4]);
        assert_eq!(counter.next(), Some(6));
    }

    #[test]
    fn rows_of_a_statement_get_values_one_behind_another() {
        let (counter, mut reserved) = (counter(), Reserved::of_rows(4));
        let series = AutoIncrementSeries::new(10, 3);
        let next = |reserved: &mut Reserved| {
            let value = reserved.next(|rows| counter.take(series, ALL, rows));
            // Another statement.
            counter.take(series, ALL, 1).and_then(|mut run| run.take());
            value
        };
        assert_eq!(next(&mut reserved), Some(3));
        assert_eq!(next(&mut reserved), Some(13));
        reserved.skip_to_behind(20);
        assert_eq!(next(&mut reserved), Some(23));
        reserved.skip_to_behind(99);
        assert_eq!(next(&mut reserved), Some(73));
        // As many as there are.
        let mut run = counter.take(series, 110, 5).unwrap();
        assert_eq!(
            (run.take(), run.take(), run.take()),
            (Some(93), Some(103), None)
        );
        assert!(counter.take(series, 110, 5).is_none());
    }

    /// One thread takes values and brings the ones behind them; none of these is given to the other thread.
    #[test]
    fn a_value_that_was_brought_is_not_given_out_later() {
        let (counter, done) = (counter(), AtomicBool::new(false));
        let (series, mut kept) = (AutoIncrementSeries::default(), Vec::new());
        let brought = std::thread::scope(|scope| {
            let bringing = scope.spawn(|| {
                let mut brought = HashSet::new();
                for _ in 0..150_000 {
                    let value = take(&counter);
                    counter.bring(series, value);
                    brought.insert(value);
                }
                done.store(true, Ordering::SeqCst);
                brought
            });
            while !done.load(Ordering::SeqCst) {
                kept.push(take(&counter));
            }
            bringing.join().expect("it ends")
        });
        assert!(kept.iter().all(|value| !brought.contains(value)));
    }

    #[test]
    fn what_is_saved_never_leads_back() {
        let counter = AutoIncrement::default();
        counter.restore(10);
        assert_eq!((counter.known(), counter.unsaved()), (Some(10), None));
        counter.bring(AutoIncrementSeries::default(), 4);
        assert_eq!((counter.known(), counter.unsaved()), (Some(10), None));
        assert_eq!((counter.next(), counter.begin_at(3)), (None, 10));
        take(&counter);
        assert_eq!(counter.unsaved(), Some(11));
        counter.forget();
        assert_eq!((counter.known(), counter.begin_at(3)), (None, 3));
    }

    #[test]
    fn a_column_that_is_added_in_place_begins_as_in_mysql() {
        for (increment, offset, start, first) in [
            (7, 3, 0, 10),
            (7, 1, 0, 8),
            (10, 3, 0, 13),
            (5, 5, 0, 15),
            (10, 10, 0, 30),
            (7, 3, 2, 10),
            (7, 3, 100, 101),
            (7, 3, 50, 52),
            (3, 5, 0, 3),
            (7, 10, 0, 7),
            (7, 10, 50, 56),
        ] {
            let series = AutoIncrementSeries::in_place(increment, offset);
            assert_eq!(series.first_in_place(start), first);
        }
        let ignored = AutoIncrementSeries::in_place(7, 10);
        assert_eq!((ignored.after(7), ignored.after(8)), (14, 14));
        assert_eq!(AutoIncrementSeries::new(7, 10).numbers(), [7, 1]);
        // An offset of more than 1 counts without gaps, too.
        let without_gaps = AutoIncrementSeries::in_place(1, 7);
        let firsts = [0, 50].map(|start| without_gaps.first_in_place(start));
        assert_eq!((firsts, without_gaps.after(51)), ([1, 51], 52));
        assert_eq!(
            AutoIncrementSeries::in_place(1, 1),
            AutoIncrementSeries::default()
        );
    }

    #[test]
    fn marks_are_ahead_by_what_the_column_can_spare() {
        let counter = AutoIncrement::default();
        assert!(!counter.is_beyond_mark());
        counter.begin_at(1);
        assert!(counter.is_beyond_mark());
        let marks = [127, 65_535, ALL].map(|greatest| counter.mark_ahead(greatest));
        assert_eq!(marks, [1, 66, 1_001]);
        counter.note_mark(3);
        take(&counter);
        assert!(!counter.is_beyond_mark());
        assert_eq!(counter.unsaved(), Some(2));
        counter.bring(AutoIncrementSeries::default(), 3);
        assert!(counter.is_beyond_mark());
        counter.note_mark(4);
        assert!(!counter.is_beyond_mark() && counter.unsaved().is_none());
        counter.bring(AutoIncrementSeries::default(), ALL);
        assert_eq!(counter.mark_ahead(ALL), ALL);
    }
}
