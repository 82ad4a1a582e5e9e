//! SHOW REPLICA STATUS.

use sheaf_table::{Privileges, QualifiedName};

use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::replica::state::{Connection, Known, ThreadError, Until, now_us};
use crate::session::Session;

const TEXT: Cells = Cells::Text(1024);
const NUMBER: Cells = Cells::Unsigned;

impl Session {
    /// A row, if the server is a replica. `old_names`: columns are named as before MySQL 8.0.22.
    pub(super) fn replica_status_rows(&self, old_names: bool) -> Result<Rows> {
        let to_see = Privileges::SUPER | Privileges::REPLICATION_CLIENT;
        self.client.check_one_of(to_see)?;
        let fields = self.replica_status()?;
        let named = fields.iter().map(|(name, cells, _)| {
            let name = match old_names {
                true => name
                    .replace("Source", "Master")
                    .replace("Replica_", "Slave_"),
                false => (*name).to_string(),
            };
            (name, *cells)
        });
        let mut rows = Rows::new(named.collect::<Vec<_>>());
        if self
            .engine
            .replica()
            .state
            .get()
            .kept
            .is_some_and(|kept| !kept.options.host.is_empty())
        {
            rows.push(fields.into_iter().map(|(_, _, cell)| cell).collect());
        }
        Ok(rows)
    }

    fn replica_status(&self) -> Result<Vec<(&'static str, Cells, Cell)>> {
        let replica = self.engine.replica();
        let known = replica.state.get();
        let (runs_io, runs_sql) = replica.threads_running();
        let kept = known.kept.clone().unwrap_or_default();
        let (options, position) = (kept.options, kept.position);
        let executed = self.engine.executed_gtids().to_string();
        let text = |name, text: String| (name, TEXT, Cell::from(text));
        let number = |name, number: u64| (name, NUMBER, Cell::from(number));
        let nothing = |name| (name, TEXT, Cell::from(""));
        let yes = |is_so: bool| if is_so { "Yes" } else { "No" }.to_string();
        let io = match known.connection {
            _ if !runs_io => "No",
            Connection::Connected => "Yes",
            _ => "Connecting",
        };
        let io_state = match known.connection {
            _ if !runs_io => "",
            Connection::Connected => "Waiting for source to send event",
            Connection::Connecting => "Connecting to source",
            Connection::None => "Reconnecting after a failed source event read",
        };
        let read_file = match known.read_file.is_empty() {
            true => position.file.clone(),
            false => known.read_file.clone(),
        };
        let read_position = known.read_position.max(match known.read_file.is_empty() {
            true => position.position,
            false => 0,
        });
        let filter = options.filter.clone();
        let list = |tables: &[QualifiedName]| {
            let names = tables.iter();
            let names = names.map(|(database, table)| format!("{database}.{table}"));
            names.collect::<Vec<_>>().join(",")
        };
        let (until_condition, until_file, until_position) = match known.until.clone() {
            None => ("None", String::new(), 0),
            Some(Until::BeforeGtids(_)) => ("SQL_BEFORE_GTIDS", String::new(), 0),
            Some(Until::AfterGtids(_)) => ("SQL_AFTER_GTIDS", String::new(), 0),
            Some(Until::Place { file, position }) => ("Source", file, position),
        };
        Ok(vec![
            text("Replica_IO_State", io_state.to_string()),
            text("Source_Host", options.host),
            text("Source_User", options.user),
            number("Source_Port", options.port.into()),
            number("Connect_Retry", options.connect_retry),
            text("Source_Log_File", read_file),
            number("Read_Source_Log_Pos", read_position),
            // What has been received is in memory.
            nothing("Relay_Log_File"),
            number("Relay_Log_Pos", 0),
            text("Relay_Source_Log_File", position.file),
            text("Replica_IO_Running", io.to_string()),
            text("Replica_SQL_Running", yes(runs_sql)),
            text("Replicate_Do_DB", filter.do_databases.join(",")),
            text("Replicate_Ignore_DB", filter.ignore_databases.join(",")),
            text("Replicate_Do_Table", list(&filter.do_tables)),
            text("Replicate_Ignore_Table", list(&filter.ignore_tables)),
            text("Replicate_Wild_Do_Table", filter.do_patterns.join(",")),
            text(
                "Replicate_Wild_Ignore_Table",
                filter.ignore_patterns.join(","),
            ),
            number("Last_Errno", known.sql_error.code.into()),
            text("Last_Error", known.sql_error.message.clone()),
            number("Skip_Counter", known.skip),
            number("Exec_Source_Log_Pos", position.position),
            number("Relay_Log_Space", replica.waiting_bytes()),
            text("Until_Condition", until_condition.to_string()),
            text("Until_Log_File", until_file),
            number("Until_Log_Pos", until_position),
            text("Source_SSL_Allowed", yes(options.encrypts)),
            text("Source_SSL_CA_File", options.tls.authorities),
            nothing("Source_SSL_CA_Path"),
            text("Source_SSL_Cert", options.tls.certificate),
            nothing("Source_SSL_Cipher"),
            text("Source_SSL_Key", options.tls.key),
            (
                "Seconds_Behind_Source",
                NUMBER,
                seconds_behind(&known, runs_io, runs_sql).into(),
            ),
            text(
                "Source_SSL_Verify_Server_Cert",
                yes(options.tls.verifies_name),
            ),
            number("Last_IO_Errno", known.io_error.code.into()),
            text("Last_IO_Error", known.io_error.message.clone()),
            number("Last_SQL_Errno", known.sql_error.code.into()),
            text("Last_SQL_Error", known.sql_error.message.clone()),
            nothing("Replicate_Ignore_Server_Ids"),
            number("Source_Server_Id", known.source_server_id.into()),
            text("Source_UUID", known.source_uuid.clone()),
            nothing("Source_Info_File"),
            number("SQL_Delay", 0),
            ("SQL_Remaining_Delay", NUMBER, Cell::Null),
            text("Replica_SQL_Running_State", known.sql_state.to_string()),
            number("Source_Retry_Count", options.retry_count),
            nothing("Source_Bind"),
            text("Last_IO_Error_Timestamp", self.stamp_of(&known.io_error)),
            text("Last_SQL_Error_Timestamp", self.stamp_of(&known.sql_error)),
            nothing("Source_SSL_Crl"),
            nothing("Source_SSL_Crlpath"),
            text("Retrieved_Gtid_Set", known.retrieved.to_string()),
            text("Executed_Gtid_Set", executed),
            number("Auto_Position", options.auto_position.into()),
            nothing("Replicate_Rewrite_DB"),
            nothing("Channel_Name"),
            nothing("Source_TLS_Version"),
            nothing("Source_public_key_path"),
            number("Get_Source_public_key", options.get_public_key.into()),
            nothing("Network_Namespace"),
        ])
    }

    /// When an error came, as MySQL writes it here: `260731 12:59:59`.
    fn stamp_of(&self, error: &ThreadError) -> String {
        if error.code == 0 {
            return String::new();
        }
        let utc = i64::try_from(error.time_us).unwrap_or(i64::MAX);
        let mut text = String::new();
        sheaf_types::temporal::push_datetime(self.variables.time_zone().local(utc), 0, &mut text);
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        digits.get(2..).unwrap_or_default().to_string()
    }
}

/// How far what is applied lies behind what the source does now; `None`: that is not known.
fn seconds_behind(known: &Known, runs_io: bool, runs_sql: bool) -> Option<u64> {
    if !runs_sql {
        return None;
    }
    let now = i64::try_from(now_us() / 1_000_000).unwrap_or(i64::MAX) + known.clock_ahead;
    match known.applying_time {
        0 if runs_io && known.connection == Connection::Connected => Some(0),
        0 => None,
        time => u64::try_from(now - i64::from(time)).ok().or(Some(0)),
    }
}
