//! ADVISE INDEXES: which indexes would make statements cheaper, and which are not needed.
//!
//! ```text
//!   statement, or digests with their samples
//!        |  plan each as it is: cost, and what it could use of each table
//!   candidates: column lists, prefix lengths           sheaf-optimizer/src/advisor/
//!        |  each a sorted sample in the index's own codec    sheaf-table: HypotheticalIndex
//!   search: plan again with candidates, take the one that saves most, until none is worth it
//!        |
//!   proposals: CREATE INDEX and DROP INDEX, each with the statements that it helps
//! ```
//!
//! Nothing is made, but by VERIFY. A candidate exists for the planner of this session alone, while the statement runs:
//! names of tables mean versions of them with more indexes
//! ([`TableNames::with_hypothetical`](sheaf_table::TableNames)). So an index is judged by the optimizer's own costs,
//! with what is in memory now, and the search takes small steps as Schlosser, Kossmann and Boissier do ("Efficient
//! Scalable Multi-Attribute Index Selection Using Recursive Strategies", ICDE 2019).
//!
//! Rights: a statement is planned only if the session may run it, and the digests are read only if it may read
//! `performance_schema`. Of a workload, statements that it may not run are left out.
//!
//! | file | what it holds |
//! |---|---|
//! | [`workload`] | the statements |
//! | [`study`] | their plans, with or without candidates |
//! | [`planned_cost`] | what a plan is expected to cost |
//! | [`replanning`] | operators for a query that was planned before |
//! | [`candidates`] | the candidates of each table |
//! | [`search`] | which of them to take |
//! | [`drops`] | indexes that are not needed |
//! | [`proposal`] | what is shown |
//! | [`mod@verify`] | what statements take with an index and without it |

mod candidates;
mod drops;
mod planned_cost;
mod proposal;
mod replanning;
mod search;
mod study;
mod verify;
mod workload;

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use sheaf_exec::memory_pool::without_waiting;
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::parser::statement::{Advise, Advised};
use crate::session::Session;
use crate::session::handle::SessionHandle;
use crate::session::hypothesis::Hypothesis;
use crate::session::result::ResultSink;

use candidates::Candidates;
use drops::indexes_to_drop;
use search::Search;
use study::Study;
use verify::verify;
use workload::{given_statements, statements_of_digests};

/// Statements that are looked at: of digests, those that took most time.
const MAX_STATEMENTS: usize = 200;
/// Rows of the sample of a table, at most and at least; between them, so many rows of all tables are read.
const SAMPLE_ROWS: usize = 30_000;
const LEAST_SAMPLE_ROWS: usize = 5_000;
const SAMPLE_ROWS_OF_ALL: usize = 240_000;
/// Bytes of the sample of a table.
const SAMPLE_BYTES: usize = 16 << 20;
/// Bytes of all samples and candidates.
const MAX_MEMORY_BYTES: usize = 128 << 20;
/// Candidates of a table.
const MAX_CANDIDATES_OF_TABLE: usize = 40;
/// Indexes that are proposed.
const MAX_PROPOSED: usize = 100;
/// Plans that are made.
const MAX_PLANS: usize = 20_000;
/// How long is searched: less than clients wait for an answer. What was found by then is proposed.
const MAX_TIME: Duration = Duration::from_secs(20);
/// When no more candidates are made, so that some time is left to search among them.
const MAX_CANDIDATES_TIME: Duration = Duration::from_secs(12);

/// What is left of what the statement may spend.
struct Limits {
    began: Instant,
    /// How long after that is gone on.
    time: Duration,
    plans: usize,
    /// What samples and candidates take of the query memory.
    memory: MemoryReservation,
    /// What was not looked at because a limit was reached.
    is_cut: bool,
}

impl Limits {
    /// Whether there is time, and there are plans, for more.
    fn go_on(&mut self) -> bool {
        let goes_on = self.plans < MAX_PLANS && self.began.elapsed() < self.time;
        self.is_cut |= !goes_on;
        goes_on
    }

    /// Takes memory for a sample or a candidate, if there is some.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.memory.size() + bytes <= MAX_MEMORY_BYTES
            && without_waiting(|| self.memory.try_grow(bytes)).is_ok();
        self.is_cut |= !fits;
        fits
    }

    /// Gives back what a sample has taken.
    fn give_back(&mut self, bytes: usize) {
        self.memory.shrink(bytes.min(self.memory.size()));
    }
}

pub(crate) fn advise_indexes(
    session: &mut Session,
    advise: Advise,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    // What views are made of needs privileges to be shown.
    session.statement.is_explained = true;
    let advised = proposals(session, &advise);
    session.statement.hypothesis = Hypothesis::default();
    let mut proposals = advised?;
    session.statement.is_explained = false;
    if advise.verify {
        verify(session, &mut proposals)?;
    }
    let rows = proposal::shown(proposals, advise.verify);
    session.workers.planning().pause();
    rows.send(sink, session.result_collation_id(), session.end_of_rows())
}

fn proposals(session: &mut Session, advise: &Advise) -> Result<Vec<proposal::Proposal>> {
    let pool = Arc::clone(&session.task_context().runtime_env().memory_pool);
    let mut limits = Limits {
        began: Instant::now(),
        time: MAX_CANDIDATES_TIME,
        plans: 0,
        memory: MemoryConsumer::new("samples for index advice").register(&pool),
        is_cut: false,
    };
    let (workload, schema) = match &advise.of {
        Advised::Statement(text) => (given_statements(session, text)?, None),
        Advised::Schema(name) => {
            session.client.check_sees_database(name)?;
            if !session.engine.catalog().database_exists(name) {
                return Err(SqlError::unknown_database(name));
            }
            (
                statements_of_digests(&session.client, &session.engine, Some(name))?,
                Some(name.as_str()),
            )
        }
        Advised::Workload => (
            statements_of_digests(&session.client, &session.engine, None)?,
            None,
        ),
    };
    let is_given = matches!(advise.of, Advised::Statement(_));
    let is_alone = is_given && workload.len() == 1;
    let mut study = Study::new(session, workload, is_alone, &mut limits)?;
    let candidates = Candidates::of(&mut study, session, &mut limits)?;
    limits.time = MAX_TIME;
    let mut search = Search::new(&candidates, &mut study, advise.limit_bytes);
    let chosen = search.choose(session, &mut limits)?;
    let made = candidates.named(&chosen);
    let mut proposals = search.proposals(session, (&chosen, &made), &mut limits)?;
    if !is_given {
        proposals.extend(indexes_to_drop(session, schema, &made)?);
    }
    let unplanned = study.unplanned;
    if unplanned > 0 {
        session.warnings.note(
            codes::UNKNOWN_ERROR,
            format!(
                "{unplanned} statements were left out: they cannot be planned or may not be run"
            ),
        );
    }
    if limits.is_cut {
        session.warnings.note(
            codes::UNKNOWN_ERROR,
            "The search ended at a limit of its time, its memory or its plans",
        );
    }
    Ok(proposals)
}

/// Error 1317 or its like if the statement has to end.
fn check_advice(handle: &SessionHandle) -> Result<()> {
    Ok(handle.cancel_flag().check()?)
}

/// Error 1235.
fn not_advised() -> SqlError {
    SqlError::not_supported_yet("ADVISE INDEXES of this statement")
}
