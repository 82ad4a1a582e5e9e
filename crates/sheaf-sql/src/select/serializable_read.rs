//! What a SELECT of SERIALIZABLE reads stays as it is until its transaction ends, and little else does.
//!
//! Scans say before they run what they are going to search, and that is locked first. A keyed join learns its keys from
//! its outer rows. So a query that has one runs as a locking read does. It reads through a snapshot, and its rows wait
//! in memory. Then what its joins have looked into is locked, rows and gaps. If something has come in between, the
//! query begins again with a newer snapshot; the locks stay, so that it gets ahead.
//!
//! ```text
//!   view -> plan -> lock what the scans search -> run; rows wait -> lock what was looked up -> send
//!     ^                      |                                               |
//!     '----------------------+---- something there is not what the view shows'
//! ```
//!
//! A plan without keyed joins streams its rows once its scans are locked. Some queries have too many rows to wait, or
//! are kept by others from coming to an end. Such a query locks all that it could read before it runs, whole indexes
//! for its joins ([`lock_all_it_reads`](crate::isolation::transaction::Transactions::lock_all_it_reads)).

use crate::error::Result;
use crate::locking::statement_locks::{Lookups, searches_of};
use crate::parser::ParsedQuery;
use crate::query::batch_spool::WaitingResult;
use crate::query::locking_clause::lock_wait;
use crate::query::read_plan::Purpose;
use crate::query::run::PlannedQuery;
use crate::session::Session;

/// Most bytes of rows that wait.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// How often a query begins again before it locks all that it could read.
const MAX_ATTEMPTS: usize = 8;

/// A query that has locked what it reads, if it has to.
pub(crate) enum SerializableRead {
    /// Its rows.
    Result(WaitingResult),
    /// It is still to be run.
    Planned(PlannedQuery),
}

/// Plans a query that shows rows. In SERIALIZABLE it locks what it reads, and may have to run for that.
/// `rows_are_locked`: those that it asks locks for.
pub(crate) fn plan_and_keep(
    session: &mut Session,
    query: ParsedQuery<'_>,
    rows_are_locked: bool,
) -> Result<SerializableRead> {
    let wait = session.variables.row_lock_wait(lock_wait(query.ast));
    for _ in 0..MAX_ATTEMPTS {
        let purpose = Purpose::Kept { rows_are_locked };
        let planned = session.plan(query, None, purpose, None)?;
        let Some(view) = planned.to_lock.clone() else {
            return Ok(SerializableRead::Planned(planned));
        };
        let mut searches = searches_of(&planned.physical.plan, Lookups::Noted)?;
        if !session
            .transactions
            .lock_known_searches(&view, &mut searches, wait)?
        {
            continue;
        }
        if searches.is_empty() {
            return Ok(SerializableRead::Planned(planned));
        }
        session.outcome.last_query_cost = planned.physical.cost_us;
        let Some(result) = session.collect_result_within(planned, MAX_WAITING_BYTES)? else {
            break;
        };
        if session
            .transactions
            .lock_what_was_searched(&view, searches, wait)?
        {
            return Ok(SerializableRead::Result(result));
        }
    }
    let purpose = match rows_are_locked {
        true => Purpose::Locked,
        false => Purpose::Read,
    };
    let planned = session.plan(query, None, purpose, None)?;
    Ok(SerializableRead::Planned(planned))
}
