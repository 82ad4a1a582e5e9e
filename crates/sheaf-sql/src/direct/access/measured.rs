//! What the accesses of a direct plan do while it runs, for EXPLAIN ANALYZE.
//!
//! Each access of a plan has a number of its own. While a run is measured, each search along an access adds to what its
//! number has done:
//!
//! ```text
//!   search begins   row      row      search ends
//!      |------------|~~~~~~~~|~~~~~~~~|---------|      --- its own time and pages, ~~~ those of what takes the row
//! ```
//!
//! So a table that is read first is not charged for the tables that are read for each of its rows. A plan runs on its
//! session's thread, and what is measured stands there: a run that is not measured asks one flag for each search.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sheaf_exec::operator::measuring_exec::Measured;
use sheaf_storage::{ThreadPageWork, Tree};

/// The number of an access, and of its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccessId(u64);

impl AccessId {
    /// A number that no other access of the process has.
    pub(in crate::direct) fn fresh() -> AccessId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        AccessId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What the searches along an access have done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) measured: Measured,
    pages: u64,
    pages_read: u64,
    rows_examined: u64,
}

impl Work {
    /// Of two accesses that take turns.
    pub(crate) fn and(self, other: Work) -> Work {
        let (own, others) = (self.measured, other.measured);
        Work {
            measured: Measured {
                first_row: own.first_row.into_iter().chain(others.first_row).min(),
                total: own.total + others.total,
                rows: own.rows + others.rows,
                loops: own.loops + others.loops,
            },
            pages: self.pages + other.pages,
            pages_read: self.pages_read + other.pages_read,
            rows_examined: self.rows_examined + other.rows_examined,
        }
    }

    /// What was counted, by the names that operators have for it; only what is not 0.
    pub(crate) fn counters(self) -> Vec<(String, u64)> {
        let counters = [
            ("pages", self.pages),
            ("pages_read", self.pages_read),
            ("rows_examined", self.rows_examined),
        ];
        let counted = counters.into_iter().filter(|(_, count)| *count > 0);
        counted
            .map(|(name, count)| (name.to_string(), count))
            .collect()
    }
}

/// What each access has done.
pub(crate) type WorkOfAccesses = BTreeMap<AccessId, Work>;

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static WORK: RefCell<WorkOfAccesses> = const { RefCell::new(WorkOfAccesses::new()) };
}

/// Measures what the thread does until it is dropped.
pub(in crate::direct) struct Measuring(());

impl Measuring {
    pub(in crate::direct) fn begin() -> Measuring {
        WORK.with_borrow_mut(WorkOfAccesses::clear);
        IS_ON.set(true);
        Measuring(())
    }

    pub(in crate::direct) fn end(self) -> WorkOfAccesses {
        WORK.take()
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        IS_ON.set(false);
    }
}

/// Whether the thread's run is measured.
pub(in crate::direct) fn is_on() -> bool {
    IS_ON.get()
}

/// Adds to the rows, or entries that stand for them, which an access has tested.
pub(in crate::direct) fn note_examined(access: AccessId, rows: u64) {
    if is_on() {
        WORK.with_borrow_mut(|work| work.entry(access).or_default().rows_examined += rows);
    }
}

/// One search along an access.
pub(in crate::direct) struct Search<'t> {
    access: AccessId,
    tree: &'t Tree,
    since: Instant,
    pages: ThreadPageWork,
    done: Work,
}

impl<'t> Search<'t> {
    /// `tree`: one of the trees that are read.
    pub(in crate::direct) fn begin(access: AccessId, tree: &'t Tree) -> Search<'t> {
        Search {
            access,
            tree,
            since: Instant::now(),
            pages: tree.thread_page_work(),
            done: Work::default(),
        }
    }

    /// A row is found. What follows is not the search's own work until it [goes on](Self::resume).
    pub(in crate::direct) fn row(&mut self) {
        self.pause();
        let measured = &mut self.done.measured;
        measured.rows += 1;
        measured.first_row.get_or_insert(measured.total);
    }

    pub(in crate::direct) fn resume(&mut self) {
        self.since = Instant::now();
        self.pages = self.tree.thread_page_work();
    }

    /// So many rows were found together.
    pub(in crate::direct) fn rows(&mut self, rows: u64) {
        self.done.measured.rows += rows;
    }

    pub(in crate::direct) fn end(mut self) {
        self.pause();
        self.done.measured.loops = 1;
        WORK.with_borrow_mut(|work| {
            let before = work.entry(self.access).or_default();
            // Of all searches the first one says when the first row came.
            let first_row = before.measured.first_row.or(self.done.measured.first_row);
            *before = before.and(self.done);
            before.measured.first_row = first_row;
        });
    }

    fn pause(&mut self) {
        self.done.measured.total += self.since.elapsed();
        let pages = self.tree.thread_page_work().since(self.pages);
        self.done.pages += pages.accesses;
        self.done.pages_read += pages.reads;
    }
}

/// Rows of a run, with the time until the first and the last one.
pub(in crate::direct) struct Clock {
    begin: Instant,
    measured: Measured,
}

impl Clock {
    pub(in crate::direct) fn begin() -> Clock {
        Clock {
            begin: Instant::now(),
            measured: Measured::default(),
        }
    }

    pub(in crate::direct) fn rows(&mut self, rows: u64) {
        let elapsed = self.begin.elapsed();
        if rows > 0 {
            self.measured.first_row.get_or_insert(elapsed);
        }
        self.measured.rows += rows;
    }

    pub(in crate::direct) fn end(self) -> Measured {
        let total: Duration = self.begin.elapsed();
        Measured {
            total,
            loops: 1,
            ..self.measured
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(rows: u64, loops: u64) -> Work {
        Work {
            measured: Measured {
                rows,
                loops,
                ..Measured::default()
            },
            pages: 2,
            ..Work::default()
        }
    }

    #[test]
    fn accesses_that_take_turns_add_up() {
        let both = work(3, 1).and(work(4, 2));
        assert_eq!((both.measured.rows, both.measured.loops), (7, 3));
        assert_eq!(both.counters(), [("pages".to_string(), 4)]);
    }

    #[test]
    fn only_measured_runs_are_noted() {
        let access = AccessId::fresh();
        note_examined(access, 5);
        let measuring = Measuring::begin();
        note_examined(access, 7);
        let work = measuring.end();
        assert_eq!(work[&access].rows_examined, 7);
        assert!(!is_on());
    }
}
