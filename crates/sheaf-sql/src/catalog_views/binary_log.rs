//! SHOW BINARY LOGS, SHOW BINARY LOG STATUS and SHOW BINLOG EVENTS; PURGE, RESET and FLUSH of the binary log.
//!
//! Without a binary log the lists are empty, and there is nothing to remove.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sheaf_table::Privileges;
use sheaf_types::Value;
use sheaf_types::error::codes;
use sheaf_types::temporal::datetime_of_text;

use crate::binlog::{BinlogDump, DumpStart, Replica, WrongReplica};
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::statement::BinaryLogChange;
use crate::query::rows::{Cells, Rows};
use crate::rights::Client;
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session_parts::user_variables::UserVariables;
use crate::variables::Variables;

const NAME: Cells = Cells::Text(255);
const NUMBER: Cells = Cells::Unsigned;
const LONG_TEXT: Cells = Cells::Text(u32::MAX);
const MICROS_PER_DAY: i64 = 86_400_000_000;

impl Session {
    /// Begins to send the binary log to the session's client (COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID).
    ///
    /// # Errors
    /// 1227 without the privilege; 1236 if there is no binary log, the client did not say which checksums it expects,
    /// or what it needs is not there.
    pub fn follow_binary_log(&self, start: DumpStart) -> Result<BinlogDump> {
        check_follows(&self.client)?;
        let fatal = |reason: &str| SqlError::new(codes::SOURCE_FATAL_ERROR_READING_BINLOG, reason);
        let Some(binlog) = self.engine.binlog() else {
            return Err(fatal("Binary log is not open"));
        };
        let checksum = said_by_follower(
            &self.user_variables,
            ["source_binlog_checksum", "master_binlog_checksum"],
        );
        let says = |name: &str| matches!(&checksum, Some(Value::Text(said)) if said.eq_ignore_ascii_case(name));
        let expects_none = says("NONE");
        if !expects_none && !says("CRC32") {
            return Err(fatal(
                "Replica can not handle replication events with the checksum that source is configured to log",
            ));
        }
        let period = said_by_follower(
            &self.user_variables,
            ["source_heartbeat_period", "master_heartbeat_period"],
        );
        let period_ns = period.and_then(|period| period.as_i128()).unwrap_or(0);
        let heartbeat = u64::try_from(period_ns).ok().filter(|period| *period > 0);
        let command = match start {
            DumpStart::Place { .. } => "Binlog Dump",
            DumpStart::Gtids(_) => "Binlog Dump GTID",
        };
        let mut dump = binlog.dump(start, heartbeat.map(Duration::from_nanos))?;
        if expects_none {
            dump.begin_without_checksum();
        }
        let state = "Source has sent all binlog to replica; waiting for more updates";
        self.handle.begin_command(command, state);
        Ok(dump)
    }

    /// Lists the session's client among the followers (COM_REGISTER_SLAVE), as it describes itself.
    ///
    /// # Errors
    /// 1045 without the privilege; 1835 and 1105 for what is no description.
    pub fn register_replica(&mut self, body: &[u8]) -> Result<()> {
        check_follows(&self.client).map_err(|_| {
            let info = &self.client.info;
            SqlError::access_denied(&info.user, &info.host, true)
        })?;
        let mut replica = Replica::read(body).map_err(|wrong| match wrong {
            WrongReplica::Malformed => {
                SqlError::new(codes::MALFORMED_PACKET, "Malformed communication packet.")
            }
            WrongReplica::TooLong(name) => {
                SqlError::unknown(format!("Failed to register replica: too long '{name}'"))
            }
            WrongReplica::Wrong => SqlError::unknown("Wrong parameters when registering replica"),
        })?;
        if let Some(Value::Text(uuid)) =
            said_by_follower(&self.user_variables, ["replica_uuid", "slave_uuid"])
        {
            replica.uuid = uuid.to_ascii_lowercase();
        }
        let id = self.id();
        self.registration = Some(self.engine.replicas.register(id, replica));
        Ok(())
    }
}

fn check_follows(client: &Client) -> Result<()> {
    client.check_one_of(Privileges::SUPER | Privileges::REPLICATION_SLAVE)
}

/// A user variable by which a follower says something. It has two names.
fn said_by_follower(user_variables: &UserVariables, names: [&str; 2]) -> Option<Value> {
    let values = names.map(|name| user_variables.get(name));
    values.into_iter().find(|value| !value.is_null())
}

/// SHOW REPLICAS.
pub(super) fn replica_rows(client: &Client, engine: &Engine) -> Result<Rows> {
    check_follows(client)?;
    let mut rows = Rows::new([
        ("Server_Id", NUMBER),
        ("Host", NAME),
        ("Port", NUMBER),
        ("Source_Id", NUMBER),
        ("Replica_UUID", Cells::Text(36)),
    ]);
    let own_id = engine.globals().binlog_settings().server_id;
    for replica in engine.replicas.list() {
        rows.push(vec![
            u64::from(replica.server_id).into(),
            replica.host.into(),
            u64::from(replica.port).into(),
            u64::from(own_id).into(),
            replica.uuid.into(),
        ]);
    }
    Ok(rows)
}

pub(super) fn binary_log_rows(client: &Client, engine: &Engine) -> Result<Rows> {
    check_sees_binary_log(client)?;
    let mut rows = Rows::new([
        ("Log_name", NAME),
        ("File_size", NUMBER),
        ("Encrypted", Cells::Text(3)),
    ]);
    if let Some(binlog) = engine.binlog() {
        for (name, length) in binlog.list()? {
            rows.push(vec![name.into(), length.into(), "No".into()]);
        }
    }
    Ok(rows)
}

pub(super) fn binary_log_status_rows(client: &Client, engine: &Engine) -> Result<Rows> {
    check_sees_binary_log(client)?;
    let mut rows = Rows::new([
        ("File", NAME),
        ("Position", NUMBER),
        ("Binlog_Do_DB", NAME),
        ("Binlog_Ignore_DB", NAME),
        ("Executed_Gtid_Set", LONG_TEXT),
    ]);
    if let Some(binlog) = engine.binlog() {
        let (name, position, executed) = binlog.status()?;
        rows.push(vec![
            name.into(),
            position.into(),
            "".into(),
            "".into(),
            executed.into(),
        ]);
    }
    Ok(rows)
}

pub(super) fn binlog_event_rows(
    client: &Client,
    engine: &Engine,
    file: Option<&str>,
    from: Option<u64>,
    limit: Option<(u64, u64)>,
) -> Result<Rows> {
    check_follows(client)?;
    let mut rows = Rows::new([
        ("Log_name", NAME),
        ("Pos", NUMBER),
        ("Event_type", Cells::Text(20)),
        ("Server_id", NUMBER),
        ("End_log_pos", NUMBER),
        ("Info", LONG_TEXT),
    ]);
    if let Some(binlog) = engine.binlog() {
        let (name, events) = binlog.events(file, from, limit.unwrap_or((0, u64::MAX)))?;
        for event in events {
            rows.push(vec![
                name.as_str().into(),
                event.start.into(),
                event.name.into(),
                u64::from(event.server_id).into(),
                event.end.into(),
                event.info.into(),
            ]);
        }
    }
    Ok(rows)
}

fn check_sees_binary_log(client: &Client) -> Result<()> {
    let to_see = Privileges::SUPER | Privileges::REPLICATION_CLIENT;
    client.check_one_of(to_see)
}

/// PURGE BINARY LOGS and RESET BINARY LOGS AND GTIDS.
pub(crate) fn change_binary_log(
    session: &mut Session,
    change: Parsed<'_, &BinaryLogChange>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let Parsed { ast: change, text } = change;
    // What is wrong with the statement is so without a binary log, too.
    let before = match change {
        BinaryLogChange::PurgeBefore(moment) => {
            let moment = session.evaluate(Parsed::new(moment, text))?;
            Some(moment_of(&session.variables, &moment)?)
        }
        BinaryLogChange::PurgeTo(_) | BinaryLogChange::Reset => None,
    };
    if matches!(change, BinaryLogChange::Reset) {
        session.engine.reset_executed()?;
    } else if let Some(binlog) = session.engine.binlog() {
        match (change, before) {
            (BinaryLogChange::PurgeTo(name), _) => binlog.purge_to(name)?,
            (BinaryLogChange::PurgeBefore(_), Some(before)) => binlog.purge_older(before)?,
            (BinaryLogChange::PurgeBefore(_), None) | (BinaryLogChange::Reset, _) => {}
        }
    }
    session.ok(sink, 0, String::new())
}

/// The moment that a value means in the session's time zone.
fn moment_of(variables: &Variables, value: &Value) -> Result<SystemTime> {
    let local = match value {
        Value::DateTime(micros) | Value::Timestamp(micros) => Some(*micros),
        Value::Date(days) => i64::from(*days).checked_mul(MICROS_PER_DAY),
        Value::Text(text) => datetime_of_text(text),
        _ => None,
    };
    let local = local.ok_or_else(|| {
        SqlError::new(
            codes::WRONG_ARGUMENTS,
            "Incorrect arguments to PURGE LOGS BEFORE",
        )
    })?;
    let micros = variables.time_zone().utc(local);
    let since = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    Ok(UNIX_EPOCH + since)
}
