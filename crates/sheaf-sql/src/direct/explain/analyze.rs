//! Runs a direct plan for EXPLAIN ANALYZE: its rows are counted, and no client gets them. No row is locked.

use std::io::Read;

use arrow::record_batch::RecordBatch;
use sheaf_exec::operator::measuring_exec::Measured;

use crate::direct::access::measured::{Clock, Measuring, WorkOfAccesses};
use crate::direct::read::run_direct_read;
use crate::direct::syntax::headers::Spelled;
use crate::direct::{Action, DirectPlan};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::result::{CellRow, ColumnMeta, EndOfRows, OkInfo, ResultSink};

/// A measured run.
pub(crate) struct MeasuredRun {
    /// The plan from its beginning to its last row.
    pub(crate) whole: Measured,
    pub(crate) accesses: WorkOfAccesses,
}

impl DirectPlan {
    /// Whether the rows that it reads are locked for the statement.
    pub(crate) fn locks_rows(&self) -> bool {
        match &self.action {
            Action::Read(read, _) => read.locking.is_some(),
            Action::LockFound(_) => true,
            _ => false,
        }
    }
}

impl Session {
    /// Runs a plan that locks rows, without its locks: what it reads is the same. False: nothing has happened.
    fn run_without_locks(&mut self, plan: &DirectPlan, sink: &mut dyn ResultSink) -> Result<bool> {
        if plan.window.is_some() {
            return Ok(false);
        }
        let spelled = Spelled::AsWritten;
        self.around_direct(plan, &[], |session, parameters| {
            session.with_found(plan, parameters, |session, all| match &plan.action {
                Action::Read(read, table) => {
                    run_direct_read(session, read, table, (all, spelled), sink)
                }
                // Where a LIMIT ends depends on what could be locked.
                Action::LockFound(lock) if !lock.is_limited_by_locks() => {
                    session.run_inner(lock.described(), (all, spelled), sink)
                }
                _ => Ok(false),
            })
        })
    }
}

/// Runs a plan without parameters, and locks nothing. `None`: nothing has happened, and the vectorised path runs the
/// statement.
pub(crate) fn measure_direct(
    session: &mut Session,
    plan: &DirectPlan,
) -> Result<Option<MeasuredRun>> {
    let mut rows = CountedRows(Clock::begin());
    let measuring = Measuring::begin();
    let is_done = match plan.locks_rows() {
        true => session.run_without_locks(plan, &mut rows)?,
        false => session.run_direct(plan, (&[], Spelled::AsWritten), &mut rows)?,
    };
    let whole = rows.0.end();
    let accesses = measuring.end();
    Ok(is_done.then_some(MeasuredRun { whole, accesses }))
}

/// Counts the rows of a result.
struct CountedRows(Clock);

impl ResultSink for CountedRows {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.rows(batch.num_rows() as u64);
        Ok(())
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(&mut self, _columns: &[ColumnMeta], _row: &dyn CellRow) -> Result<()> {
        self.0.rows(1);
        Ok(())
    }

    fn end_of_rows(&mut self, _end: EndOfRows) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _ok: OkInfo) -> Result<()> {
        Ok(())
    }

    fn local_infile(&mut self, _name: &str) -> Result<Box<dyn Read + '_>> {
        Err(SqlError::unknown("a query reads a file of its client"))
    }
}
