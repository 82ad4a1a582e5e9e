//! Snapshots: who sees whose changes.
//!
//! A *commit timestamp* is the position of the commit's record in the log. A *snapshot* is one such number: it sees
//! the changes of every transaction that committed at or before it. So taking one costs the same whatever number of
//! transactions is active; nobody copies a list of them.
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
