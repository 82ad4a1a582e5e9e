//! The places that statements take before they are parsed and planned, and the memory that long ones take with them.
//!
//! The crowd of running statements has room for so many, and the planning of long texts has a share of the memory.
//! Where others have either, a statement waits.

use std::time::Duration;

use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::planning::{
    SMALL_TEXT_BYTES, Waits, expected_bytes, hinted_limit, is_query, takes_a_place,
};
use crate::session::statement_timer::ArmedTimer;

impl Session {
    /// Takes the memory that a statement of this text is likely to take until it runs. It waits where others have it.
    ///
    /// # Errors
    /// 1041: they still have it; and what ends the statement.
    pub(crate) fn admit(&self, text: &str) -> Result<()> {
        match text.len() <= SMALL_TEXT_BYTES {
            true => Ok(()),
            // A statement that waits for its place holds nothing yet.
            false => self.enter_crowd(text).and_then(|()| self.admit_long(text)),
        }
    }

    /// Whether others may wait for the session.
    fn holds_locks(&self) -> bool {
        self.transactions.keep_others_waiting()
            || self.table_locks.keep_others_waiting()
            || self.user_locks.are_held()
    }

    /// A statement that is going to be planned takes its place among those that are, and that run. It waits where there
    /// is no room for it.
    ///
    /// # Errors
    /// 1041: there was none for too long; and what ends the statement.
    pub(crate) fn enter_crowd(&self, text: &str) -> Result<()> {
        let mut place = self.workers.place();
        if place.is_some() || !takes_a_place(text) {
            return Ok(());
        }
        let waits = Waits::new(self.engine.runtime(), &self.handle);
        let crowd = self.engine.crowd();
        let limit_time = || self.limit_time_of_wait(text);
        *place = crowd.enter(self.handle.memory(), self.holds_locks(), &waits, limit_time);
        if place.is_some() {
            return Ok(());
        }
        if self.handle.should_stop_waiting() {
            return Err(SqlError::query_interrupted());
        }
        Err(SqlError::out_of_memory(
            "other statements that run have what there is; try again, or raise --memory",
        ))
    }

    fn admit_long(&self, text: &str) -> Result<()> {
        let bytes = expected_bytes(text);
        let holds_locks = self.holds_locks();
        let limit_time = || self.limit_time_of_wait(text);
        let planning = self.workers.planning();
        if planning.admit(bytes, holds_locks, limit_time) {
            return Ok(());
        }
        if self.handle.should_stop_waiting() {
            return Err(SqlError::query_interrupted());
        }
        Err(SqlError::out_of_memory(
            "other statements that are planned have what there is for them; try again, or raise --memory",
        ))
    }

    /// The time that a statement may take passes while it waits to be parsed, too.
    fn limit_time_of_wait(&self, text: &str) -> Option<ArmedTimer> {
        match hinted_limit(text) {
            Some(Duration::ZERO) => None,
            Some(limit) => self.engine.timer.arm(self.handle(), limit),
            None => self.limit_time(is_query(text)),
        }
    }

    /// Measures the time of the running statement, if that is limited, until what is returned is dropped.
    pub(crate) fn limit_time(&self, is_query: bool) -> Option<ArmedTimer> {
        let limit = match is_query {
            true => self.variables.query_time_limit(),
            false => self.variables.statement_time_limit(),
        };
        let limit = limit?;
        self.engine.timer.arm(self.handle(), limit)
    }
}
