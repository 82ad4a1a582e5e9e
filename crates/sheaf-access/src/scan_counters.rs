//! [`ScanCounters`]: what a scan counts while it runs, in plain integers.

use std::sync::Arc;

use sheaf_storage::{Direction, TreeId};

use crate::budget::Meter;
use crate::counters::{ScanMetrics, SessionCounters};
use crate::error::Result;

/// Counts of one scan. What is not yet in the session's counters is added there by [`flush`](Self::flush), once per
/// batch and when the scan is dropped.
pub(crate) struct ScanCounters {
    pub(crate) metrics: ScanMetrics,
    pub(crate) read_key: u64,
    pub(crate) read_first: u64,
    pub(crate) read_last: u64,
    pub(crate) read_rnd_next: u64,
    pub(crate) mrr_init: u64,
    pub(crate) mrr_key_refills: u64,
    pub(crate) mrr_rowid_refills: u64,
    read_next: u64,
    read_prev: u64,
    /// Row lookups by multi-range read.
    pub(crate) read_rnd: u64,
    pub(crate) rows_read: u64,
    /// Metrics that are in the session's counters already.
    flushed: ScanMetrics,
    session: Arc<SessionCounters>,
    /// The indexes that find the rows.
    indexes: Vec<TreeId>,
    /// The whole table is read: no key is looked for.
    scans_table: bool,
    /// Of a scan with a budget.
    meter: Option<Meter>,
}

impl ScanCounters {
    /// `indexes` are those that find the rows.
    pub(crate) fn new(
        session: Arc<SessionCounters>,
        indexes: impl IntoIterator<Item = TreeId>,
    ) -> Self {
        Self {
            metrics: ScanMetrics::default(),
            read_key: 0,
            read_first: 0,
            read_last: 0,
            read_rnd_next: 0,
            mrr_init: 0,
            mrr_key_refills: 0,
            mrr_rowid_refills: 0,
            read_next: 0,
            read_prev: 0,
            read_rnd: 0,
            rows_read: 0,
            flushed: ScanMetrics::default(),
            session,
            indexes: indexes.into_iter().collect(),
            scans_table: false,
            meter: None,
        }
    }

    /// The whole table is read.
    pub(crate) fn set_scans_table(&mut self) {
        self.scans_table = true;
    }

    /// Prices what is counted from now on.
    pub(crate) fn set_meter(&mut self, meter: Meter) {
        self.meter = Some(meter);
    }

    /// The scan goes on, perhaps on another thread than before.
    pub(crate) fn resume(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.resume();
        }
    }

    /// Pays for what was done since the last time, if the scan has a budget.
    ///
    /// # Errors
    /// `BudgetSpent`.
    pub(crate) fn pay(&mut self) -> Result<()> {
        match &mut self.meter {
            Some(meter) => meter.pay(&self.metrics),
            None => Ok(()),
        }
    }

    /// Counts `entries` that a walk over an index gave out. The first of a range is no step but the end of the range
    /// is one, so a range read to its end has as many steps as entries.
    pub(crate) fn step(&mut self, direction: Direction, entries: usize) {
        match direction {
            Direction::Forward => self.read_next += entries as u64,
            Direction::Backward => self.read_prev += entries as u64,
        }
    }

    /// Takes back the step that met the end of a range, because a LIMIT stopped before it.
    pub(crate) fn stopped_before_end(&mut self, direction: Direction) {
        let steps = match direction {
            Direction::Forward => &mut self.read_next,
            Direction::Backward => &mut self.read_prev,
        };
        *steps = steps.saturating_sub(1);
    }

    /// Adds what was counted since the last time to the session's counters.
    pub(crate) fn flush(&mut self) {
        let Self {
            session,
            metrics,
            flushed,
            ..
        } = &*self;
        session
            .handler_icp_attempts
            .add(metrics.icp_attempts - flushed.icp_attempts);
        session
            .handler_icp_match
            .add(metrics.icp_match - flushed.icp_match);
        session.sheaf_index_jumps.add(metrics.jumps - flushed.jumps);
        // A lookup that finds nothing uses the index, too.
        let lookups = self.read_key + self.read_first + self.read_last;
        for index in &self.indexes {
            let uses = &session.index_uses;
            match self.scans_table {
                true => uses.add_scanned(*index, self.rows_read),
                false => uses.add_fetched(*index, self.rows_read.max(lookups)),
            }
        }
        self.flushed = self.metrics;
        let session = Arc::clone(&self.session);
        for (counter, count) in [
            (&session.handler_read_key, &mut self.read_key),
            (&session.handler_read_first, &mut self.read_first),
            (&session.handler_read_last, &mut self.read_last),
            (&session.handler_read_next, &mut self.read_next),
            (&session.handler_read_prev, &mut self.read_prev),
            (&session.handler_read_rnd, &mut self.read_rnd),
            (&session.handler_read_rnd_next, &mut self.read_rnd_next),
            (&session.handler_mrr_init, &mut self.mrr_init),
            (&session.handler_mrr_key_refills, &mut self.mrr_key_refills),
            (
                &session.handler_mrr_rowid_refills,
                &mut self.mrr_rowid_refills,
            ),
            (&session.rows_read, &mut self.rows_read),
        ] {
            counter.add(std::mem::take(count));
        }
    }
}

impl Drop for ScanCounters {
    fn drop(&mut self) {
        self.flush();
    }
}
