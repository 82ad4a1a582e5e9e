//! The binary log of the engine, if it has one.

use std::sync::Arc;

use super::Engine;
use crate::binlog::Binlogger;
use crate::error::Result;
use crate::variables::{self, Variables};

impl Engine {
    /// Begins the binary log, if the storage was opened for followers of changes.
    ///
    /// # Errors
    /// Its files cannot be read or written.
    pub(crate) fn start_binlog(&self) -> Result<()> {
        if !self.storage.options().follow_changes {
            return Ok(());
        }
        let directory = self.directory();
        self.change_globals(|globals| {
            variables::show_binary_log(globals, &directory.display().to_string());
        });
        let settings = self.globals().binlog_settings();
        let binlog = Binlogger::start(&self.storage, directory, settings)?;
        // Nobody else sets it.
        let _ = self.binlog.set(binlog);
        Ok(())
    }

    pub(crate) fn binlog(&self) -> Option<&Arc<Binlogger>> {
        self.binlog.get()
    }

    pub(super) fn configure_binlog(&self, globals: &Variables) {
        if let Some(binlog) = self.binlog() {
            binlog.configure(globals.binlog_settings());
        }
    }

    /// Brings `gtid_executed` and `gtid_purged` up to date.
    pub(crate) fn show_gtids(&self) {
        let (executed, purged) = self.executed_and_purged_gtids();
        self.change_globals(|globals| {
            variables::show_gtids(globals, executed.to_string(), purged.to_string());
        });
    }

    /// All statements have ended: what they have changed is written.
    pub(super) fn close_binlog(&self) {
        if let Some(binlog) = self.binlog() {
            binlog.close();
        }
    }
}
