//! Snapshots: which changes a view sees.
//!
//! A *commit timestamp* is the position of the commit's record in the log. A *snapshot* is one such number: it sees the
//! changes of every transaction that committed at or before it. So taking one costs the same whatever number of
//! transactions is active; no list of them is copied.
//!
//! ```text
//!   log      ----C1-------C2-----C3-------C4---->      commit records
//!                          ^            ^
//!                          |            newest          what a statement that starts now sees: C1, C2, C3
//!                          an older snapshot            sees C1 and C2, whatever commits later
//! ```
//!
//! Every transaction has one [`StatusCell`]; all versions that it makes point to it. A commit stores the timestamp
//! there, in the moment in which the log assigns it, and thereby makes all of its versions visible at once, without
//! looking for them.
//!
//! **Ahead of the disk.** A commit frees its rows before its record is durable. Plain reads do not see it until then:
//! `newest` stands at what is durable, and what a client is told stays true after a crash. But a transaction that locks
//! or changes such a row needs what is there now. It takes a snapshot *ahead*: of all that has committed, durable or
//! not. If it waited for the log instead, every hand-over of a popular row would take a write of the log. Its own
//! commit record comes later in the log, so it is durable only if all that it has seen is durable. A transaction that
//! has changed nothing waits for that at its end. From then on all its snapshots are at least as new, so it never sees
//! less than before.
//!
//! ```text
//!   log      ----C1-------C2-----C3-------C4---->
//!                          ^               ^
//!                          durable         ahead        C3 and C4 have freed their rows and wait for the log
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | [`status`] | the cell of a transaction: active, committed at, rolled back |
//! | [`registry`] | the clock, and the snapshots in use, each in a cache line of its own |
//! | [`read_view`] | what a reader may see: a snapshot and its own changes, or whatever is there now |

mod read_view;
mod registry;
mod status;

pub use read_view::ReadView;
pub use registry::MAX_SNAPSHOTS;
pub(crate) use registry::{LiveSnapshots, SnapshotRegistry};
pub(crate) use status::{StatusCell, TransactionStatus};
