//! The variables of digests and of the slow query log.

use std::path::{Path, PathBuf};

use super::Variables;
use crate::error::{Result, SqlError};
use crate::events::slow_log::{self, SlowLogOptions};

const LOG: &str = "slow_query_log";
const LOG_FILE: &str = "slow_query_log_file";

impl Variables {
    pub(crate) fn digests_size(&self) -> usize {
        usize::try_from(self.integer("performance_schema_digests_size")).unwrap_or(usize::MAX)
    }

    pub(crate) fn max_digest_length(&self) -> usize {
        usize::try_from(self.integer("max_digest_length")).unwrap_or(usize::MAX)
    }

    /// The rows that a statement must examine at least for the slow query log.
    pub(crate) fn min_examined_rows(&self) -> u64 {
        self.integer("min_examined_row_limit")
    }

    fn slow_log_path(&self) -> Option<PathBuf> {
        slow_log::path_of(self.text(LOG_FILE), Path::new(self.text("datadir")))
    }

    /// What the slow query log does.
    pub(crate) fn slow_log_options(&self) -> SlowLogOptions {
        let path = match self.boolean(LOG) {
            true => self.slow_log_path(),
            false => None,
        };
        SlowLogOptions {
            path,
            logs_scans: self.boolean("log_queries_not_using_indexes"),
            logs_administration: self.boolean("log_slow_admin_statements"),
        }
    }

    /// Whether there can be a slow query log as these variables say, of which the one of this name was set.
    ///
    /// # Errors
    /// 1231: the file may not be a log, or cannot be opened.
    pub(crate) fn check_slow_log(&self, name: &str) -> Result<()> {
        let is_about_log = [LOG, LOG_FILE]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
        if !is_about_log {
            return Ok(());
        }
        if name.eq_ignore_ascii_case(LOG) && !self.boolean(LOG) {
            return Ok(());
        }
        let refused = || SqlError::wrong_value_for_variable(LOG_FILE, self.text(LOG_FILE));
        let path = self.slow_log_path().ok_or_else(refused)?;
        match self.boolean(LOG) {
            true => slow_log::open(&path).map(drop).map_err(|error| {
                tracing::error!(%error, path = %path.display(), "the slow query log cannot be opened");
                refused()
            }),
            false => Ok(()),
        }
    }
}
