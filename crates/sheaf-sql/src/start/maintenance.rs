//! What an engine does by itself, on a thread of its own beside all statements. It measures the optimizer's cost
//! constants when a database is new, or others were at work when they were measured. And it analyzes tables that have
//! changed.
//!
//! Every piece of work is a step ([`Engine::analyze_step`]), which tests take one by one without the thread.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sheaf_optimizer::cost::measure::measure;
use sheaf_table::{AnalyzeOptions, AutoAnalyze};

use crate::engine::Engine;
use crate::engine::maintenance_thread::{Maintenance, Stop};
use crate::error::{Result, SqlError};

/// How often tables are looked at. InnoDB analyzes a table again after ten seconds at the earliest.
const INTERVAL: Duration = Duration::from_secs(10);

impl Engine {
    /// Starts maintenance. It ends when the engine is closed.
    ///
    /// # Errors
    /// What making the tables of cost constants reports, or that there can be no thread.
    pub fn start_maintenance(self: &Arc<Self>) -> Result<()> {
        self.create_cost_tables()?;
        let stop = Arc::new(Stop::default());
        let (engine, stopped) = (Arc::downgrade(self), Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name("maintenance".into())
            .spawn(move || run(&engine, &stopped))
            .map_err(|error| SqlError::unknown(format!("no thread for maintenance: {error}")))?;
        self.set_maintenance(Maintenance { stop, thread });
        Ok(())
    }

    /// Analyzes a table of which enough has changed since the last time (`innodb_stats_auto_recalc`); false: there is
    /// none, or that is switched off.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn analyze_step(&self) -> Result<bool> {
        if self.is_shutting_down() || !self.globals().stats_auto_recalc() {
            return Ok(false);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let options = AnalyzeOptions {
            now: now.map_or(0, |since| since.as_micros() as i64),
            ..AnalyzeOptions::default()
        };
        Ok(self
            .catalog()
            .analyze_step(&AutoAnalyze::default(), &options)?)
    }
}

fn run(engine: &Weak<Engine>, stop: &Stop) {
    if let Some(engine) = engine.upgrade()
        && let Err(error) =
            engine.measure_costs(|directory| measure(directory, |pause| !stop.wait(pause)))
        && !engine.is_shutting_down()
    {
        tracing::warn!(%error, "the cost constants could not be measured");
    }
    while !stop.wait(INTERVAL) {
        let Some(engine) = engine.upgrade() else {
            return;
        };
        loop {
            match engine.analyze_step() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(%error, "a table could not be analyzed");
                    break;
                }
            }
        }
    }
}
