//! VERIFY: the index that saves most is made, and the statements that it helps run without it and with it.
//!
//! ```text
//!   CREATE INDEX ... INVISIBLE   ->   each sample: without, with, without, with, ...   ->   DROP INDEX
//! ```
//!
//! It is made online, as any index, and plans of other sessions do not see it. It is dropped whatever comes of it, also
//! if the statement is killed. If the server stops meanwhile the index stays, invisible, with a comment that says where
//! it comes from.
//!
//! Samples run as plans of operators, whose costs were compared. What does not only read is not run.

use std::time::{Duration, Instant};

use sheaf_types::error::codes;

use super::check_advice;
use super::proposal::{Help, Measured, Proposal};
use super::study::{check_to_advise, enter_database};
use crate::error::{Result, SqlError};
use crate::parser::statement::{Scope, Statement};
use crate::parser::{Parsed, parse_statement};
use crate::session::Session;
use crate::session::ignored_result::IgnoredResult;
use crate::variables::{self, NewValue};

/// Runs of a statement with the index, and as many without. The fastest counts.
const RUNS: usize = 3;
/// No run begins after so long.
const MAX_TIME: Duration = Duration::from_secs(20);
/// What says where the index comes from.
const COMMENT: &str = "made by ADVISE INDEXES VERIFY";
/// What a statement does that has one of these in its text may be more than to read.
const MAY_CHANGE: [&str; 13] = [
    ":=",
    "for update",
    "for share",
    "lock in share mode",
    "get_lock",
    "release_lock",
    "release_all_locks",
    "last_insert_id",
    "nextval",
    "next value",
    "setval",
    "sleep",
    "wait_for_executed",
];

/// Verifies the first of the indexes to make of which there is something to run.
pub(super) fn verify(session: &mut Session, proposals: &mut [Proposal]) -> Result<()> {
    for proposal in proposals {
        let Some(statements) = proposal.statements_of_index() else {
            continue;
        };
        let mut runnable = Vec::new();
        for help in proposal.helps() {
            if let Some(statement) = statement_to_run(session, help)? {
                runnable.push((help.clone(), statement));
            }
        }
        if !runnable.is_empty() {
            let measured = with_index(session, statements, |session| measure(session, runnable))?;
            proposal.set_measured(measured);
            return Ok(());
        }
    }
    session.warnings.note(
        codes::UNKNOWN_ERROR,
        "No index was verified: none of them helps a statement that only reads",
    );
    Ok(())
}

/// The statement, if it only reads.
fn statement_to_run(session: &mut Session, help: &Help) -> Result<Option<Statement>> {
    let text = help.text.to_lowercase();
    if MAY_CHANGE.iter().any(|word| text.contains(word)) {
        return Ok(None);
    }
    let statement = parse_statement(&help.text, &session.dialect())?;
    Ok(match statement {
        Statement::Query(query) if query.locks.is_empty() => Some(Statement::Query(query)),
        _ => None,
    })
}

/// Does `work` while there is an index.
fn with_index<T>(
    session: &mut Session,
    (create, drop): (String, String),
    work: impl FnOnce(&mut Session) -> Result<T>,
) -> Result<T> {
    run_inside(session, &format!("{create} COMMENT '{COMMENT}' INVISIBLE"))?;
    let own = session.variables.clone();
    let outcome = see_invisible_indexes(session, false).and_then(|()| work(session));
    session.variables = own;
    session.workers.forget_task();
    // A statement that is killed takes its index with it.
    let cancel = session.handle.cancel_flag().clone();
    let is_cancelled = cancel.is_cancelled();
    cancel.reset();
    let dropped = run_inside(session, &drop);
    if is_cancelled {
        cancel.cancel();
    }
    let outcome = outcome?;
    dropped?;
    Ok(outcome)
}

/// Runs a statement whose result nobody asked for.
fn run_inside(session: &mut Session, text: &str) -> Result<()> {
    let statement = parse_statement(text, &session.dialect())?;
    session.run_statement(Parsed::new(statement, text), &mut IgnoredResult)
}

fn see_invisible_indexes(session: &mut Session, sees: bool) -> Result<()> {
    let switch = match sees {
        true => "use_invisible_indexes=on",
        false => "use_invisible_indexes=off",
    };
    let new = NewValue::Text(switch.to_string());
    // The globals are looked at only.
    let mut globals = session.engine.globals();
    let (variables, scope) = (&mut session.variables, Scope::Session);
    variables::assign(variables, &mut globals, scope, "optimizer_switch", &new)?;
    session.workers.forget_task();
    Ok(())
}

fn measure(session: &mut Session, statements: Vec<(Help, Statement)>) -> Result<Measured> {
    let began = Instant::now();
    let mut measured = Measured::default();
    for (help, statement) in &statements {
        let mut fastest: [Option<Duration>; 2] = [None; 2];
        for run in 0..RUNS {
            if run > 0 && began.elapsed() > MAX_TIME {
                break;
            }
            for (fastest, sees) in fastest.iter_mut().zip([false, true]) {
                see_invisible_indexes(session, sees)?;
                let elapsed = elapsed_of(session, help, statement)?;
                *fastest = Some(fastest.map_or(elapsed, |known| known.min(elapsed)));
            }
        }
        let [Some(before), Some(after)] = fastest else {
            continue;
        };
        let us = |time: Duration| time.as_secs_f64() * 1e6 * help.executions;
        measured.statements += 1;
        measured.before_us += us(before);
        measured.after_us += us(after);
        measured.predicted_before_us += help.before_us * help.executions;
        measured.predicted_after_us += help.after_us * help.executions;
        if began.elapsed() > MAX_TIME {
            break;
        }
    }
    Ok(measured)
}

fn elapsed_of(session: &mut Session, help: &Help, statement: &Statement) -> Result<Duration> {
    check_advice(&session.handle)?;
    enter_database(session, help.database.as_deref());
    let Statement::Query(query) = statement else {
        return Err(SqlError::unknown("a sample that is no query"));
    };
    check_to_advise(session, statement)?;
    let mark = session.warnings.mark();
    let planned = session.plan_query(Parsed::new(query, &help.text), None)?;
    // Costs are of what runs.
    let began = Instant::now();
    session.run_planned(planned, |_| Ok(()))?;
    let elapsed = began.elapsed();
    session.warnings.back_to(mark);
    Ok(elapsed)
}
