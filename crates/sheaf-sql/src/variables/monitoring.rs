//! The variables of digests and of the slow query log.

use std::path::Path;

use super::Variables;
use crate::error::{Result, SqlError};
use crate::events::log_file::LogFile;
use crate::events::slow_log::SlowLogOptions;

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

    fn slow_log_file(&self) -> LogFile {
        LogFile::new(self.text(LOG_FILE), Path::new(self.text("datadir")))
    }

    /// What the slow query log does.
    pub(crate) fn slow_log_options(&self) -> SlowLogOptions {
        SlowLogOptions {
            file: self.boolean(LOG).then(|| self.slow_log_file()),
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
        let file = self.slow_log_file();
        file.path().ok_or_else(refused)?;
        match self.boolean(LOG) {
            true => file.open().map(drop).map_err(|error| {
                tracing::error!(%error, file = file.name(), "the slow query log cannot be opened");
                refused()
            }),
            false => Ok(()),
        }
    }
}
