//! Status counters of the access methods, under the names and with the meaning of MySQL's `Handler_*` variables.
//!
//! One [`SessionCounters`] belongs to a session (`SHOW SESSION STATUS`) and one to the server (`SHOW GLOBAL STATUS`,
//! into which sessions fold theirs). An access method counts in plain integers while it runs over a leaf or a batch,
//! and adds the sums here once. So a shared cache line is never written per row.
//!
//! What one range of R entries counts, as in MySQL: `Handler_read_key` 1 for positioning, and
//! `Handler_read_next` R when it is read to its end (R - 1 steps and the one that meets the end), R - 1 when a
//! LIMIT stops it. A lookup of one complete unique key counts `Handler_read_key` 1 and no step. Entries that an
//! index condition rejects are no steps: they count only as `Handler_icp_attempts`.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::index_uses::IndexUses;

/// One counter. Additions are relaxed: counters order nothing.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`; touches no memory when `n` is 0.
    pub fn add(&self, n: u64) {
        if n != 0 {
            self.0.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the counter to 0 and returns what it was.
    pub fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// What a scan or a keyed lookup did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanMetrics {
    /// Different keys of each buffer of a keyed lookup that were looked up.
    pub keys: u64,
    /// Rows (or entries of a covering index) on which the row condition was tested.
    pub rows_examined: u64,
    /// Entries of a secondary index that were walked over, before any condition.
    pub index_entries: u64,
    /// Entries that a key filter rejected: from each the walk jumped on.
    pub jumps: u64,
    /// Rows fetched from the clustered index by primary key.
    pub row_lookups: u64,
    /// Entries tested by the index condition.
    pub icp_attempts: u64,
    /// Entries that it let through.
    pub icp_match: u64,
    /// Rows delivered.
    pub rows: u64,
    /// Batches delivered.
    pub batches: u64,
    /// Buffers of primary keys read, and how many of them were sorted.
    pub mrr_buffers: u64,
    /// Buffers that were sorted before they were read.
    pub mrr_sorted_buffers: u64,
    /// Pages prefetched by multi-range reads.
    pub prefetched_pages: u64,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident => $name:literal,)*) => {
        /// The counters of one session, or of the server.
        #[derive(Debug, Default)]
        pub struct SessionCounters {
            $($(#[$doc])* pub $field: Counter,)*
            /// How often each index was used.
            pub index_uses: IndexUses,
        }

        impl SessionCounters {
            /// All counters as (MySQL status variable, value), in name order.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$(($name, self.$field.get()),)*]
            }

            /// Moves all counts into `total` and leaves zeros, as FLUSH STATUS does.
            pub fn fold_into(&self, total: &SessionCounters) {
                $(total.$field.add(self.$field.take());)*
                self.index_uses.fold_into(&total.index_uses);
            }

            /// Adds the counts to `total` and keeps them.
            pub fn add_to(&self, total: &SessionCounters) {
                $(total.$field.add(self.$field.get());)*
                self.index_uses.add_to(&total.index_uses);
            }

            /// Sets all counters to 0.
            pub fn reset(&self) {
                $(self.$field.take();)*
                self.index_uses.clear();
            }
        }
    };
}

counters! {
    /// Temporary tables of statements that memory had no room for.
    created_tmp_disk_tables => "Created_tmp_disk_tables",
    /// Temporary tables of statements: of groups, of different rows, of queries in FROM.
    created_tmp_tables => "Created_tmp_tables",
    /// Statements committed.
    handler_commit => "Handler_commit",
    /// Rows deleted.
    handler_delete => "Handler_delete",
    /// Index entries tested by an index condition.
    handler_icp_attempts => "Handler_icp_attempts",
    /// Index entries that an index condition let through.
    handler_icp_match => "Handler_icp_match",
    /// Multi-range reads started: one per scan, and one per join buffer of a batched keyed join.
    handler_mrr_init => "Handler_mrr_init",
    /// Join buffers of a batched keyed join after its first.
    handler_mrr_key_refills => "Handler_mrr_key_refills",
    /// Buffers of primary keys after the first of each multi-range read: ceil(S / N) - 1 for S bytes of keys
    /// and a buffer of N bytes.
    handler_mrr_rowid_refills => "Handler_mrr_rowid_refills",
    /// Scans that started at the first entry of an index.
    handler_read_first => "Handler_read_first",
    /// Ranges and points that were positioned by key.
    handler_read_key => "Handler_read_key",
    /// Scans that started at the last entry of an index.
    handler_read_last => "Handler_read_last",
    /// Forward steps over index entries.
    handler_read_next => "Handler_read_next",
    /// Backward steps over index entries.
    handler_read_prev => "Handler_read_prev",
    /// Rows read by position: the row reads of multi-range reads.
    handler_read_rnd => "Handler_read_rnd",
    /// Steps of full table scans: one per row and one that meets the end.
    handler_read_rnd_next => "Handler_read_rnd_next",
    /// Statements rolled back.
    handler_rollback => "Handler_rollback",
    /// Rows updated.
    handler_update => "Handler_update",
    /// Rows inserted.
    handler_write => "Handler_write",
    /// Rows read from clustered indexes, and entries from covering indexes, before row conditions.
    rows_read => "Innodb_rows_read",
    /// Tables behind the first of a SELECT that were read as a whole.
    select_full_join => "Select_full_join",
    /// Tables behind the first of a SELECT of which a range was read.
    select_full_range_join => "Select_full_range_join",
    /// SELECTs whose first table was read by a range.
    select_range => "Select_range",
    /// Tables of which the index is chosen for each row of those before: there are none.
    select_range_check => "Select_range_check",
    /// SELECTs whose first table was read as a whole.
    select_scan => "Select_scan",
    /// Entries at which a walk along an index found that none up to a later key can match, and went on there.
    sheaf_index_jumps => "Sheaf_index_jumps",
    /// Plans that spent what another one was estimated to cost, and were replaced by it.
    sheaf_plan_switches => "Sheaf_plan_switches",
    /// Parts of sorted rows that were written to disk and merged.
    sort_merge_passes => "Sort_merge_passes",
    /// Sorts of rows that keys have found.
    sort_range => "Sort_range",
    /// Rows that were sorted.
    sort_rows => "Sort_rows",
    /// Sorts of statements that have read a whole table or index.
    sort_scan => "Sort_scan",
}
