//! The variables of the binary log.

use std::time::Duration;

use sheaf_binlog::row::columns::RowImage;
use sheaf_exec::functions::date_names::LOCALES;

use super::{SERVER_VERSION, VariableValue, Variables, collation};
use crate::binlog::BinlogSettings;
use crate::binlog::statement::{LoggedStatement, StatementKind};
use sheaf_types::Collation;

/// What a server with a binary log shows.
pub(crate) fn show_binary_log(globals: &mut Variables, directory: &str) {
    let text = |text: &str| VariableValue::Text(text.to_string());
    for name in ["log_bin", "log_replica_updates"] {
        globals.set_internally(name, VariableValue::Bool(true));
    }
    for name in ["gtid_mode", "enforce_gtid_consistency"] {
        globals.set_internally(name, text("ON"));
    }
    globals.set_internally("log_bin_basename", text(&format!("{directory}/binlog")));
    globals.set_internally("log_bin_index", text(&format!("{directory}/binlog.index")));
}

/// Shows which transactions the files have had, and which of them are gone.
pub(crate) fn show_gtids(globals: &mut Variables, executed: String, purged: String) {
    globals.set_internally("gtid_executed", VariableValue::Text(executed));
    globals.set_internally("gtid_purged", VariableValue::Text(purged));
}

impl Variables {
    /// How the files of the binary log are written.
    pub(crate) fn binlog_settings(&self) -> BinlogSettings {
        let expire = self.integer("binlog_expire_logs_seconds");
        BinlogSettings {
            version: SERVER_VERSION,
            server_id: u32::try_from(self.integer("server_id")).unwrap_or(u32::MAX),
            max_file_bytes: self.integer("max_binlog_size"),
            image: match self.text("binlog_row_image") {
                "MINIMAL" => RowImage::Minimal,
                "NOBLOB" => RowImage::NoBlob,
                _ => RowImage::Full,
            },
            expire: (expire > 0).then(|| Duration::from_secs(expire)),
        }
    }

    /// Whether what the session changes is in the binary log.
    pub(crate) fn logs_changes(&self) -> bool {
        self.boolean("sql_log_bin")
    }

    /// 0: none of its own, as MySQL says.
    pub(crate) fn server_id(&self) -> u32 {
        u32::try_from(self.integer("server_id")).unwrap_or(u32::MAX)
    }

    /// How long a source may say nothing.
    pub(crate) fn replica_net_timeout(&self) -> Duration {
        Duration::from_secs(self.integer("replica_net_timeout"))
    }

    /// Bytes of an event that a replica takes, at most.
    pub(crate) fn replica_max_event_bytes(&self) -> usize {
        usize::try_from(self.integer("replica_max_allowed_packet")).unwrap_or(usize::MAX)
    }

    pub(crate) fn replica_skip_counter(&self) -> u64 {
        self.integer("sql_replica_skip_counter")
    }

    pub(crate) fn check_foreign_keys(&mut self, checks: bool) {
        self.set_internally("foreign_key_checks", VariableValue::Bool(checks));
    }

    /// The connection that the session speaks for, if it is another one: that of a source's statement.
    pub(crate) fn pseudo_thread_id(&self) -> Option<u64> {
        Some(self.integer("pseudo_thread_id")).filter(|id| *id > 0)
    }

    pub(crate) fn show_gtid_next(&mut self, shown: String) {
        self.set_internally("gtid_next", VariableValue::Text(shown));
    }

    pub(crate) fn log_changes(&mut self, logs: bool) {
        self.set_internally("sql_log_bin", VariableValue::Bool(logs));
    }

    /// A statement as the binary log has it.
    pub(crate) fn logged_statement(
        &self,
        (database, text): (&str, &str),
        (thread_id, time_us): (u32, u64),
        kind: StatementKind,
    ) -> LoggedStatement {
        let own = Collation::default().id();
        let id = |name: &str| collation(self.text(name)).map_or(own, |(id, _)| id);
        LoggedStatement {
            database: database.to_string(),
            text: text.to_string(),
            time_us,
            thread_id,
            sql_mode: self.sql_mode().number(),
            foreign_key_checks: self.boolean("foreign_key_checks"),
            unique_checks: self.boolean("unique_checks"),
            autocommit: self.autocommit(),
            // An offset that is ignored here is not ignored everywhere in MySQL.
            auto_increment: self
                .auto_increment_series()
                .numbers()
                .map(|number| u16::try_from(number).unwrap_or(u16::MAX)),
            lc_time_names: LOCALES
                .iter()
                .position(|locale| *locale == self.text("lc_time_names"))
                .map_or(0, |number| number as u16),
            collations: [id("collation_connection"), id("collation_server")],
            time_zone: self.text("time_zone").to_string(),
            kind,
        }
    }
}
