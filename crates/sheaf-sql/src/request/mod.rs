//! Running requests: what a client sends, or a program calls.
//!
//! A request is text. It is cut into statements, each is parsed, dispatched (see `dispatch/run.rs`) and writes
//! its result to the sink. Whatever a statement does, the session survives it: errors undo the statement and are listed
//! as warnings, and a panic becomes error 1105.
//!
//! | file | what it holds |
//! |---|---|
//! | [`prepared`] | prepared statements of the protocol |
//! | [`statement_events`] | what is measured of a statement |

mod prepared;
mod statement_events;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use sheaf_access::cancel;
use sheaf_exec::memory_consumers::out_of_memory_in;

use crate::direct::{
    Cached, ExpressionCache, MAX_KEPT_BYTES, MAX_RESTING_BYTES, Spelled, StatementCache,
    ValueLists, run_cached, run_value_lists, take_literals,
};
use crate::dispatch::hints::forget_statement_hints;
use crate::error::{Result, SqlError};
use crate::parser::{self, ParsedStatement, Statement, scan};
use crate::resource_groups::enter_group;
use crate::session::measured::{KnownBy, Sent};
use crate::session::result::ResultSink;
use crate::session::running::{Definitions, RunningRequest};
use crate::session::status::Command;
use crate::session::warnings::Level;
use crate::session::{IgnoredResult, Session};
use crate::session_parts::statement_stack::{
    DEEP_RED_ZONE_BYTES, DEEP_STACK_BYTES, STACK_RED_ZONE_BYTES, STATEMENT_STACK_BYTES,
    may_nest_deeply,
};

impl Session {
    /// Runs a request: one statement, or several when the client asked for that. On an error nothing of the failed
    /// statement remains, and the statements after it did not run.
    pub fn execute(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<()> {
        if sql.len() > self.variables.max_allowed_packet() {
            return Err(SqlError::net_packet_too_large());
        }
        self.execute_text(&self.text_by_mode(sql), sink)
    }

    /// Runs a request as it came from a client: bytes in `character_set_client`.
    pub fn execute_bytes(&mut self, request: &[u8], sink: &mut dyn ResultSink) -> Result<()> {
        if request.len() > self.variables.max_allowed_packet() {
            return Err(SqlError::net_packet_too_large());
        }
        let text = self.statement_text(request)?;
        self.execute_text(&text, sink)
    }

    fn execute_text(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<()> {
        let may_be_rewritten = self.may_be_rewritten(sql);
        if !may_be_rewritten && let Some(lists) = ValueLists::of_request(&self.variables, sql) {
            self.request = RunningRequest::OF_ONE;
            let shape = lists.shape();
            let sent = Sent::text(sql, KnownBy::Text(&shape));
            return self.run_measured(sent, sink, |session, sink| {
                if run_value_lists(session, &lists, sink)? == Cached::Done {
                    return Ok(());
                }
                let statement = scan::first_statement(sql).map_or(sql, |(range, _)| &sql[range]);
                session.parse_and_dispatch(statement, (true, false), sink)
            });
        }
        if !may_be_rewritten && take_literals(self, sql) {
            self.request = RunningRequest::OF_ONE;
            let sent = Sent::text(sql, KnownBy::TakenOut);
            return self.run_measured(sent, sink, |session, sink| {
                let cached = run_cached(session, sql, sink)?;
                if cached == Cached::Done {
                    return Ok(());
                }
                let statement = scan::first_statement(sql).map_or(sql, |(range, _)| &sql[range]);
                // What a plan has declined once it would decline again, after as much work.
                let may_be_direct = cached == Cached::NotDirect;
                session.parse_and_dispatch(statement, (may_be_direct, true), sink)
            });
        }
        let text = scan::resolve_executable_comments(sql);
        let mut rest: &str = &text;
        let mut any = false;
        let has_escapes = |session: &Session| {
            !session
                .variables
                .sql_mode()
                .contains("NO_BACKSLASH_ESCAPES")
        };
        let had_escapes = has_escapes(self);
        while let Some((range, next)) = scan::first_statement(rest) {
            let (statement, following) = (&rest[range], &rest[next..]);
            self.request.has_more = scan::first_statement(following).is_some();
            if self.request.has_more && !self.client.info.multi_statements {
                let line = 1 + text[..text.len() - following.len()].matches('\n').count() as u64;
                return Err(SqlError::parse_error(following.trim_start(), line));
            }
            self.request.is_alone = !any && !self.request.has_more;
            if any && has_escapes(self) != had_escapes && statement.contains('\\') {
                return Err(SqlError::not_supported_yet(
                    "a backslash behind a change of NO_BACKSLASH_ESCAPES in one request",
                ));
            }
            any = true;
            let rewritten = self.rewrite(statement);
            let statement = rewritten.as_deref().unwrap_or(statement);
            let sent = Sent::text(statement, KnownBy::Nothing);
            self.run_measured(sent, sink, |session, sink| {
                session.parse_and_dispatch(statement, (true, false), sink)
            })?;
            rest = following;
        }
        if any {
            Ok(())
        } else {
            self.run("", |_| Err(SqlError::empty_query()))
        }
    }

    /// Runs a statement of the engine's own, whatever it returns. It is not among those that are measured.
    pub(crate) fn run_own(&mut self, sql: &str) -> Result<()> {
        let is_within = std::mem::replace(&mut self.statement.is_measured, true);
        let logs = self.variables.logs_changes();
        self.variables.log_changes(false);
        let outcome = self.execute_text(sql, &mut IgnoredResult);
        self.variables.log_changes(logs);
        self.statement.is_measured = is_within;
        outcome
    }

    /// Runs one statement with everything around it: counters, warnings, stack, panics.
    pub(crate) fn run<T>(
        &mut self,
        text: &str,
        body: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        if self.engine.is_shutting_down() || self.handle.is_killed() || self.is_released {
            return Err(SqlError::server_shutdown());
        }
        self.client
            .refresh_rights(self.engine.catalog(), &self.handle);
        enter_group(self);
        self.handle.begin_statement(text);
        self.handle.commands.count(Command::Questions);
        self.statement.start_micros = now_utc_micros();
        self.statement.elapsed = None;
        // A direct plan is not dispatched.
        self.statement.is_explained = false;
        let (red_zone, stack) = if may_nest_deeply(text) {
            (DEEP_RED_ZONE_BYTES, DEEP_STACK_BYTES)
        } else {
            (STACK_RED_ZONE_BYTES, STATEMENT_STACK_BYTES)
        };
        // The session's state is whole between statements: each field is assigned, never edited in steps.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let cancel = self.handle.cancel_flag().clone();
            let memory = Arc::clone(self.handle.memory());
            memory.during(|| cancel.during(|| stacker::maybe_grow(red_zone, stack, || body(self))))
        }));
        self.workers.planning().end();
        self.workers.place().take();
        self.table_locks.end_change(self.engine.catalog());
        self.transactions.end_change();
        let freed = catch_unwind(AssertUnwindSafe(|| self.temporary.free_unused()));
        let outcome = outcome.and_then(|done| freed.map(|()| done));
        match self.transactions.has_unfinished_commit() {
            true => self.handle.set_state("waiting for handler commit"),
            false => self.statement_ended(),
        }
        if let Some(own) = self.statement.own_database.take() {
            self.database = own;
        }
        self.statement.reading = None;
        forget_statement_hints(self);
        self.statement.rewrite_note = None;
        self.statement.definitions = Definitions::default();
        self.outcome.take_insert_id();
        self.take_assigned_variables();
        self.expressions
            .with(|cache: &mut ExpressionCache| cache.let_go(MAX_KEPT_BYTES));
        let result = outcome.unwrap_or_else(|panic| {
            let message = panic_text(panic.as_ref());
            let statement = crate::error::excerpt(text);
            tracing::error!(message, statement, "a statement panicked");
            self.transactions.drop_open();
            Err(SqlError::unknown(format!(
                "Internal error, the statement was aborted: {message}"
            )))
        });
        result.map_err(|error| self.failed(error))
    }

    fn statement_ended(&mut self) {
        let elapsed = self.handle.end_statement();
        self.statement.elapsed = Some(elapsed);
        if elapsed >= self.variables.long_query_time() {
            self.handle.commands.count(Command::SlowQueries);
        }
    }

    /// A commit that was [left unfinished](Self::leave_commits) has come to its end, and its statement with it.
    ///
    /// # Errors
    /// It has failed: what its client is to be told.
    pub fn commit_ended(&mut self, outcome: Result<()>) -> Result<()> {
        self.temporary.free_unused();
        self.statement_ended();
        let outcome = outcome.map_err(|error| self.failed(error));
        self.note_unfinished(outcome.as_ref().map_or_else(|error| error.code, |()| 0));
        outcome?;
        self.handle.counters.handler_commit.add(1);
        Ok(())
    }

    /// Books a failed statement.
    fn failed(&mut self, error: SqlError) -> SqlError {
        let interrupted = SqlError::query_interrupted();
        let error = if error.code == interrupted.code && self.handle.is_timed_out() {
            SqlError::query_timeout()
        } else if error.code == interrupted.code && self.handle.memory().is_stopped() {
            let largest = self.handle.memory().largest_consumer();
            let operator = largest.as_deref().and_then(out_of_memory_in);
            SqlError::query_out_of_memory(operator)
        } else {
            error
        };
        self.handle.commands.count(Command::Errors);
        if error.ends_transaction()
            && let Err(error) = self.transactions.roll_back(&self.handle.counters)
        {
            tracing::error!(%error, "a transaction that cannot go on could not be rolled back");
        }
        self.warnings
            .add(Level::Error, error.code, error.message.clone());
        self.outcome.row_count = -1;
        error
    }

    /// `is_taken`: the statement cache has its text without literals, and is told where that has no direct plan.
    fn parse_and_dispatch(
        &mut self,
        text: &str,
        (may_be_direct, is_taken): (bool, bool),
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let planning = Arc::clone(self.workers.planning());
        let parsed = self
            .enter_crowd(text)
            .and_then(|()| self.admit(text))
            .and_then(|()| planning.during(|| parser::parse_statement(text, &self.dialect())));
        match parsed {
            Ok(statement) => {
                let plan = match statement {
                    // Nothing is saved: its values are at hand.
                    Statement::Insert(_) => None,
                    _ if !may_be_direct => None,
                    _ => {
                        // It is looked for in copies of the statement that are written in other forms.
                        cancel::check_room_for_tree().inspect_err(|_| self.clear_warnings())?;
                        planning.during(|| self.direct_plan(&statement, (text, 0)))
                    }
                };
                if plan.is_none() && may_be_direct && is_taken {
                    self.statement_cache.with(StatementCache::refuse_taken);
                }
                // A long literal is copied into its array, and into what is computed from it.
                cancel::check_room_for_value(2 * text.len())
                    .inspect_err(|_| self.clear_warnings())?;
                match plan {
                    Some(plan) if self.run_direct(&plan, (&[], Spelled::AsWritten), sink)? => {
                        Ok(())
                    }
                    _ => self.dispatch(ParsedStatement::new(statement, text), sink),
                }
            }
            Err(error) => {
                self.clear_warnings();
                Err(error)
            }
        }
    }

    /// Releases what the next statement can make again: the client has had nothing to say for a while.
    pub fn rest(&mut self) {
        self.workers.forget_task();
        self.hand_over_digests();
        self.expressions
            .with(|cache: &mut ExpressionCache| cache.let_go(MAX_RESTING_BYTES));
        self.table_expressions.let_go();
    }
}

fn now_utc_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_string()
    }
}
