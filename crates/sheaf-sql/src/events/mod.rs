//! Statement events: what is measured of each statement when it has ended, and what becomes of that.
//!
//! ```text
//!   statement ends --> its digest's sums, in the session     --> performance_schema, where they are merged
//!                  '-> a line for the slow query log, if slow --> the log's thread --> file
//! ```
//!
//! No statement writes what other sessions write. A session sums up by itself and hands its sums over when it ends,
//! rests, or has too many digests. Readers take the sums of all sessions together.
//!
//! | file | what it holds |
//! |---|---|
//! | [`latency_histogram`] | how often a statement took how long |
//! | [`digest_name`] | a digest in a schema |
//! | [`digest_sums`] | its sums |
//! | [`local_sums`] | those of a session |
//! | [`digest_table`] | the digests that are known, and the sums that sessions have handed over |
//! | [`session_digests`] | how a session finds the sums of a statement that comes again |
//! | [`thread_work`] | what the running statement had to sort and to keep |
//! | [`slow_log`] | the entries of the slow query log, and the thread that writes them |
//! | [`log_file`] | where its file may lie, and how it is opened |
//! | [`lost_entries`] | entries that were not written, and when that is said |

pub(crate) mod digest_name;
pub(crate) mod digest_sums;
pub(crate) mod digest_table;
pub(crate) mod latency_histogram;
pub(crate) mod local_sums;
pub(crate) mod log_file;
mod lost_entries;
pub(crate) mod session_digests;
pub(crate) mod slow_log;
pub(crate) mod thread_work;

use std::time::Duration;

use sheaf_optimizer::Reads;
use thread_work::Work;

/// What is measured of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatementEvent {
    /// Its start, microseconds since 1970 UTC.
    pub(crate) began_micros: i64,
    pub(crate) elapsed: Duration,
    /// What it has waited for locks of rows and tables.
    pub(crate) lock_wait: Duration,
    /// The number of the error that it failed with; 0: it did not.
    pub(crate) error: u16,
    /// It was killed.
    pub(crate) is_killed: bool,
    pub(crate) warnings: u64,
    pub(crate) rows_affected: u64,
    pub(crate) rows_sent: u64,
    /// As far as the protocol has written them when the statement ends; 0 where nobody counts them.
    pub(crate) bytes_sent: u64,
    pub(crate) rows_examined: u64,
    /// It has read a whole table or index.
    pub(crate) has_scanned: bool,
    /// Tables that it has read without a key.
    pub(crate) reads: Reads,
    pub(crate) work: Work,
}
