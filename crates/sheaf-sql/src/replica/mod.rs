//! The server as a replica: it receives another server's binary log and applies it.
//!
//! ```text
//!   source ====> link ====> receiver ----> queue ----> applier ----> rows, DDL  +  position
//!           (of the server)  I/O thread    in memory   SQL thread    one transaction
//! ```
//!
//! **The position** is in the catalog, written by the transaction that makes the changes in front of it: the rows of a
//! transaction, or the change of the catalog that a DDL statement makes. So a crash at any moment loses nothing and
//! doubles nothing, and there is one sync for each transaction. There is no relay log: what has been received and not
//! applied is received again.
//!
//! **The queue** has a limit in bytes. When it is full, the receiver does not read, and the source waits. After a
//! connection has ended the applier takes the whole transactions that are left. Then the receiver begins at the applied
//! position with an empty queue. So it does when the applier begins.
//!
//! **Rows** are changed below SQL ([`apply_rows`]). Statements run as text in the applier's session, with what the
//! event says of the session that ran them.
//!
//! What a replica is, without its threads, stands in [`replica_parts`](crate::replica_parts): the engine has it.
//!
//! | file | what it holds |
//! |---|---|
//! | [`receiver`] | the I/O thread |
//! | [`applier`] | the SQL thread: transactions and statements |
//! | [`apply_rows`] | rows are found and changed |
//! | [`gtids`] | transactions that count as executed: SET gtid_next and gtid_purged |
//! | [`control`] | CHANGE REPLICATION SOURCE TO and FILTER, START, STOP and RESET REPLICA |

mod applier;
mod apply_rows;
mod control;
mod gtids;
mod receiver;

pub(crate) use gtids::check_outside_transaction;
// Whatever receives and applies names the parts of the replica by it; the engine names `replica_parts`.
pub use crate::replica_parts::link;
pub(crate) use crate::replica_parts::{
    ReplicaThread, filter, lock, queue, read_kept, source, state,
};
