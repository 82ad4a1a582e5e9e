//! What the running statement had to sort and to keep, as the parts that do so note it.
//!
//! A statement is run by one thread, and so is each direct plan. So a note is a sum of the thread's own, which no
//! signature has to pass on. Plans of operators, which run on other threads, count for themselves: their counts are
//! noted here when they have run.

use std::cell::Cell;

thread_local! {
    static NOTED: Cell<Work> = const { Cell::new(Work::NONE) };
}

/// See the module's comment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) sorts: u64,
    pub(crate) sorted_rows: u64,
    /// Parts of sorted rows that were written to disk.
    pub(crate) merge_passes: u64,
    /// Groups, different rows and queries in FROM whose rows wait in memory or in a file.
    pub(crate) temporary_tables: u64,
    /// Those in a file.
    pub(crate) temporary_files: u64,
}

impl Work {
    const NONE: Work = Work {
        sorts: 0,
        sorted_rows: 0,
        merge_passes: 0,
        temporary_tables: 0,
        temporary_files: 0,
    };

    /// One sort.
    pub(crate) fn sort_of(rows: usize) -> Work {
        Work {
            sorts: 1,
            sorted_rows: rows as u64,
            ..Work::NONE
        }
    }

    /// The same of a sort whose first rows alone are wanted, which count alone.
    pub(crate) fn of_first(self, rows: u64) -> Work {
        Work {
            sorted_rows: self.sorted_rows.min(rows),
            ..self
        }
    }

    /// One temporary table, in memory.
    pub(crate) fn temporary_table() -> Work {
        Work {
            temporary_tables: 1,
            ..Work::NONE
        }
    }

    pub(crate) fn add(&mut self, more: Work) {
        self.sorts += more.sorts;
        self.sorted_rows += more.sorted_rows;
        self.merge_passes += more.merge_passes;
        self.temporary_tables += more.temporary_tables;
        self.temporary_files += more.temporary_files;
    }
}

/// Notes what the running statement has done.
pub(crate) fn note(more: Work) {
    let mut noted = NOTED.get();
    noted.add(more);
    NOTED.set(noted);
}

/// What was noted since the last time.
pub(crate) fn take() -> Work {
    NOTED.replace(Work::NONE)
}
