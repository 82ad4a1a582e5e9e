//! What is known of the running request and of its statement, and forgotten with them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sheaf_storage::ReadView;
use sheaf_table::{Catalog, DatabaseSnapshot};

use crate::session_parts::hypothesis::Hypothesis;
use crate::session_parts::measured::{NamedStatement, Unfinished};
use crate::session_parts::prepared::Reading;
use crate::session_parts::searched::Searched;
use crate::variables::{VariableValue, Variables};

/// A request: one statement, or several.
#[derive(Default)]
pub(crate) struct RunningRequest {
    /// It has statements after the running one.
    pub(crate) has_more: bool,
    /// It has no others, so that its answer is all that its client is told.
    pub(crate) is_alone: bool,
}

impl RunningRequest {
    pub(crate) const OF_ONE: RunningRequest = RunningRequest {
        has_more: false,
        is_alone: true,
    };
}

/// The definitions that a statement tells of: all its virtual tables show them as they were when the first of them was
/// made.
#[derive(Clone, Default)]
pub(crate) struct Definitions(Arc<OnceLock<Vec<DatabaseSnapshot>>>);

impl Definitions {
    pub(crate) fn databases(&self, catalog: &Catalog) -> &[DatabaseSnapshot] {
        self.0.get_or_init(|| catalog.snapshot())
    }
}

/// What a locking read sees of tables that it does not lock, where that is not what it sees of those that it locks.
pub(crate) struct BesideLocks {
    /// The view of plain reads.
    pub(crate) view: ReadView,
    /// The names of what is locked in the FROM; `None`: all of it.
    pub(crate) locked: Vec<Option<String>>,
}

/// A statement of it.
#[derive(Default)]
pub(crate) struct RunningStatement {
    /// Its start, microseconds since 1970 UTC.
    pub(crate) start_micros: i64,
    /// What its tables of `information_schema` show.
    pub(crate) definitions: Definitions,
    /// It is EXPLAIN, which shows what views are made of.
    pub(crate) is_explained: bool,
    /// It says itself how long it waits for locks: WAIT or NOWAIT.
    pub(crate) says_wait: bool,
    /// What it plans with, and notes of its plans, if it is ADVISE INDEXES.
    pub(crate) hypothesis: Hypothesis,
    /// What its subqueries see, where they run on their own.
    pub(crate) view: Option<ReadView>,
    /// What its direct plan of a query has searched, if that is to be locked.
    pub(crate) searched: Option<Vec<Searched>>,
    /// How a locking read that is planned sees tables that it does not lock.
    pub(crate) beside_locks: Option<BesideLocks>,
    /// While a prepared statement runs in the database of its PREPARE: the session's own.
    pub(crate) own_database: Option<Option<String>>,
    /// How the text of a prepared statement is read, where the session reads others in another way by now.
    pub(crate) reading: Option<Reading>,
    /// The session's own variables, if hints of the statement set some.
    pub(crate) own_variables: Option<Variables>,
    /// What the session's variables were that SET STATEMENT has assigned, in this order.
    pub(crate) before_set_statement: Vec<(String, VariableValue)>,
    /// It is being measured: what it runs itself is a part of it.
    pub(crate) is_measured: bool,
    /// How long it took, when it has ended.
    pub(crate) elapsed: Option<Duration>,
    /// The statement that it prepares or executes by name.
    pub(crate) named: Option<NamedStatement>,
    /// What was measured of it, while its commit goes on.
    pub(crate) unfinished: Option<Unfinished>,
    /// What its client is told, if it was rewritten.
    pub(crate) rewrite_note: Option<String>,
}

impl RunningStatement {
    /// The search that was noted last has stopped at the row with this clustered key. None or an empty one: it has not.
    pub(crate) fn searched_to(&mut self, last: Option<Vec<u8>>) {
        let searched = self.searched.as_mut();
        if let Some(searched) = searched.and_then(|searched| searched.last_mut()) {
            searched.last = last.filter(|last| !last.is_empty());
        }
    }
}
