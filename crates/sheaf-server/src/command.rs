//! Commands: what a client can ask for once it is let in.
//!
//! Each command is one packet, whose first byte says which. Most are answered by OK or ERR; COM_QUERY and
//! COM_STMT_EXECUTE also by result sets; COM_STMT_CLOSE and COM_STMT_SEND_LONG_DATA by nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mysql_common::constants::Command;
use mysql_common::io::ParseBuf;
use sheaf_sql::parser::statement_bytes::invalid_string;
use sheaf_sql::{RecordSpool, SqlError};
use sheaf_types::Value;
use sheaf_types::error::codes;

use crate::authentication::HandshakeError;
use crate::connection::Connection;
use crate::cursor::{CursorSink, Executed, write_cursor_columns};
use crate::handshake::UserChange;
use crate::parameters::{BoundStatement, malformed_packet};
use crate::response::{
    Response, RowFormat, write_column_definitions, write_done, write_eof, write_error,
    write_field_list, write_plain_ok,
};

/// What the client bound to its prepared statements, by statement id.
pub type BoundStatements = HashMap<u32, BoundStatement>;

const COM_QUIT: u8 = Command::COM_QUIT as u8;
const COM_INIT_DB: u8 = Command::COM_INIT_DB as u8;
pub(crate) const COM_QUERY: u8 = Command::COM_QUERY as u8;
const COM_FIELD_LIST: u8 = Command::COM_FIELD_LIST as u8;
const COM_REFRESH: u8 = Command::COM_REFRESH as u8;
/// `COM_SHUTDOWN` once; its clients still send it.
const COM_SHUTDOWN: u8 = Command::COM_DEPRECATED_1 as u8;
const COM_STATISTICS: u8 = Command::COM_STATISTICS as u8;
const COM_PROCESS_INFO: u8 = Command::COM_PROCESS_INFO as u8;
const COM_PROCESS_KILL: u8 = Command::COM_PROCESS_KILL as u8;
const COM_PING: u8 = Command::COM_PING as u8;
const COM_CHANGE_USER: u8 = Command::COM_CHANGE_USER as u8;
pub(crate) const COM_STMT_PREPARE: u8 = Command::COM_STMT_PREPARE as u8;
const COM_STMT_EXECUTE: u8 = Command::COM_STMT_EXECUTE as u8;
const COM_STMT_SEND_LONG_DATA: u8 = Command::COM_STMT_SEND_LONG_DATA as u8;
const COM_STMT_CLOSE: u8 = Command::COM_STMT_CLOSE as u8;
const COM_STMT_RESET: u8 = Command::COM_STMT_RESET as u8;
const COM_SET_OPTION: u8 = Command::COM_SET_OPTION as u8;
const COM_STMT_FETCH: u8 = Command::COM_STMT_FETCH as u8;
const COM_REGISTER_SLAVE: u8 = Command::COM_REGISTER_SLAVE as u8;
const COM_BINLOG_DUMP: u8 = Command::COM_BINLOG_DUMP as u8;
const COM_BINLOG_DUMP_GTID: u8 = Command::COM_BINLOG_DUMP_GTID as u8;
const COM_RESET_CONNECTION: u8 = Command::COM_RESET_CONNECTION as u8;

/// What the bits of COM_REFRESH stand for, in FLUSH.
const REFRESHES: [(u8, &str); 5] = [
    (0x01, "PRIVILEGES"),
    (0x02, "LOGS"),
    (0x04, "TABLES"),
    (0x08, "HOSTS"),
    (0x10, "STATUS"),
];
const OPTION_MULTI_STATEMENTS_ON: u16 = 0;
const OPTION_MULTI_STATEMENTS_OFF: u16 = 1;
/// The bytes of COM_STMT_EXECUTE between the statement's id and its parameters: cursor type, iteration count.
const EXECUTE_FLAGS_BYTES: usize = 1 + 4;
const CURSOR_READ_ONLY: u8 = 1;

/// Does the connection go on after a command?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Close,
}

impl Connection {
    /// Runs a command and buffers its answer. `request` is its whole packet.
    pub(crate) fn run_command(&mut self, request: &[u8]) -> Flow {
        if request.first() == Some(&COM_QUIT) {
            self.has_ended_well = true;
            return Flow::Close;
        }
        // A panic is a bug of one statement. Its client is told and leaves; all others go on.
        match catch_unwind(AssertUnwindSafe(|| self.dispatch(request))) {
            Ok(Ok(flow)) => flow,
            Ok(Err(error)) => {
                // A failed write shows in the stream's state.
                let _ = write_error(&mut self.packets, &error);
                Flow::Continue
            }
            Err(_) => {
                tracing::error!(
                    id = self.session.id(),
                    "a statement panicked; its connection is closed"
                );
                let error = SqlError::unknown(
                    "internal error: the statement panicked, see the server's log",
                );
                let _ = write_error(&mut self.packets, &error);
                Flow::Close
            }
        }
    }

    /// An error is still to be answered.
    fn dispatch(&mut self, request: &[u8]) -> Result<Flow, SqlError> {
        let (&command, body) = request.split_first().ok_or_else(unknown_command)?;
        match command {
            COM_QUERY => self.query(body)?,
            COM_PROCESS_INFO => self.query(b"SHOW PROCESSLIST")?,
            COM_REFRESH => self.refresh(body)?,
            COM_SHUTDOWN => self.query(b"SHUTDOWN")?,
            COM_STMT_PREPARE => self.prepare(body)?,
            COM_STMT_EXECUTE => self.execute_prepared(body)?,
            COM_STMT_SEND_LONG_DATA => self.send_long_data(body),
            COM_STMT_CLOSE => self.close_prepared(body),
            COM_STMT_RESET => {
                let id = statement_id(body)?;
                self.bound_statement(id, "mysqld_stmt_reset")?.reset();
                self.cursors.remove(&id);
                self.ok()?;
            }
            COM_STMT_FETCH => self.fetch(body)?,
            COM_INIT_DB => {
                let name = self.name(body)?;
                self.session.set_database(&name)?;
                self.ok()?;
            }
            COM_FIELD_LIST => {
                let table = self.name(ParseBuf(body).eat_null_str())?;
                let columns = self.session.field_list(&table)?;
                let client = (self.client.capabilities, self.session.result_encoding());
                let status = self.session.status_flags();
                write_field_list(&mut self.packets, client, &columns, status)?;
            }
            COM_PING => self.ok()?,
            COM_STATISTICS => {
                let line = self.session.engine().statistics_line();
                self.packets.write_packet(|out| {
                    out.extend_from_slice(line.as_bytes());
                    Ok(())
                })?;
            }
            COM_PROCESS_KILL => {
                let id = ParseBuf(body)
                    .checked_eat_u32_le()
                    .ok_or_else(malformed_packet)?;
                self.session.kill_session(id.into())?;
                self.ok()?;
            }
            COM_SET_OPTION => self.set_option(body)?,
            COM_RESET_CONNECTION => {
                self.session.reset();
                self.statements.clear();
                self.cursors.clear();
                self.ok()?;
            }
            COM_REGISTER_SLAVE => {
                self.session.register_replica(body)?;
                self.ok()?;
            }
            COM_BINLOG_DUMP => {
                self.dump_binlog_from_place(body)?;
                return Ok(Flow::Close);
            }
            COM_BINLOG_DUMP_GTID => {
                self.dump_binlog_behind_gtids(body)?;
                return Ok(Flow::Close);
            }
            COM_CHANGE_USER => return self.change_user(body),
            _ => return Err(unknown_command()),
        }
        Ok(Flow::Continue)
    }

    /// A name in the client's character set.
    fn name<'b>(&self, bytes: &'b [u8]) -> Result<Cow<'b, str>, SqlError> {
        if let Some(set) = self.session.client_encoding().table_set() {
            return Ok(set.decode(bytes).into());
        }
        let text = std::str::from_utf8(bytes).map_err(|_| invalid_string(bytes))?;
        Ok(text.into())
    }

    fn ok(&mut self) -> Result<(), SqlError> {
        write_plain_ok(&mut self.packets, self.session.status_flags())
    }

    fn query(&mut self, request: &[u8]) -> Result<(), SqlError> {
        let status = self.session.status_flags();
        let encoding = self.session.result_encoding();
        let mut response = Response::new(
            &mut self.packets,
            self.client.capabilities,
            (RowFormat::Text, encoding),
            status,
        );
        let result = self.session.execute_bytes(request, &mut response);
        response.finish(result, self.session.status_flags())
    }

    /// One FLUSH of all that the bits name; other bits have nothing to do here.
    fn refresh(&mut self, body: &[u8]) -> Result<(), SqlError> {
        let bits = *body.first().ok_or_else(malformed_packet)?;
        let named = REFRESHES.iter().filter(|(bit, _)| bits & bit != 0);
        let named: Vec<&str> = named.map(|(_, what)| *what).collect();
        match named.is_empty() {
            true => self.ok(),
            false => self.query(format!("FLUSH {}", named.join(", ")).as_bytes()),
        }
    }

    fn prepare(&mut self, request: &[u8]) -> Result<(), SqlError> {
        let sql = self.session.statement_text(request)?;
        let prepared = self.session.prepare(&sql)?;
        let (Ok(columns), Ok(parameters)) = (
            u16::try_from(prepared.columns.len()),
            u16::try_from(prepared.parameters.len()),
        ) else {
            self.session.close_prepared(prepared.id);
            return Err(SqlError::new(
                codes::PS_MANY_PARAM,
                "Prepared statement contains too many placeholders",
            ));
        };
        self.statements
            .insert(prepared.id, BoundStatement::new(parameters.into()));
        self.packets.write_packet(|out| {
            out.push(0);
            out.extend_from_slice(&prepared.id.to_le_bytes());
            out.extend_from_slice(&columns.to_le_bytes());
            out.extend_from_slice(&parameters.to_le_bytes());
            out.push(0);
            out.extend_from_slice(&prepared.warnings.to_le_bytes());
            Ok(())
        })?;
        let client = (self.client.capabilities, self.session.result_encoding());
        let status = self.session.status_flags();
        for definitions in [&prepared.parameters, &prepared.columns] {
            if !definitions.is_empty() {
                write_column_definitions(&mut self.packets, client, definitions, status)?;
            }
        }
        Ok(())
    }

    fn execute_prepared(&mut self, body: &[u8]) -> Result<(), SqlError> {
        let id = statement_id(body)?;
        let (flags, values) = body[4..]
            .split_at_checked(EXECUTE_FLAGS_BYTES)
            .ok_or_else(malformed_packet)?;
        let with_cursor = flags
            .first()
            .is_some_and(|flags| flags & CURSOR_READ_ONLY != 0);
        self.cursors.remove(&id);
        let encoding = self.session.client_encoding();
        let statement = self.bound_statement(id, "mysqld_stmt_execute")?;
        // Until the statement is answered.
        let _memory = statement.take_memory();
        let parameters = statement.decode(values, encoding)?;
        if with_cursor {
            return self.open_cursor(id, &parameters);
        }
        let status = self.session.status_flags();
        let encoding = self.session.result_encoding();
        let mut response = Response::new(
            &mut self.packets,
            self.client.capabilities,
            (RowFormat::Binary, encoding),
            status,
        );
        let result = self
            .session
            .execute_prepared(id, &parameters, &mut response);
        response.finish(result, self.session.status_flags())
    }

    /// Executes a statement and keeps its rows until they are fetched. One without rows is answered as without a
    /// cursor.
    fn open_cursor(&mut self, id: u32, parameters: &[Value]) -> Result<(), SqlError> {
        let mut sink = CursorSink::new(
            RecordSpool::new(&mut self.session, "rows of a cursor"),
            self.session.result_encoding(),
        );
        self.session.execute_prepared(id, parameters, &mut sink)?;
        let executed = sink.finish();
        let client = (self.client.capabilities, self.session.result_encoding());
        let status = self.session.status_flags();
        match executed {
            Executed::Rows {
                columns,
                warnings,
                cursor,
            } => {
                self.cursors.insert(id, cursor);
                write_cursor_columns(&mut self.packets, client, &columns, warnings, status)
            }
            Executed::Ok(ok) => write_done(&mut self.packets, &ok, status),
        }
    }

    fn fetch(&mut self, body: &[u8]) -> Result<(), SqlError> {
        let mut body = ParseBuf(body);
        let (Some(id), Some(rows)) = (body.checked_eat_u32_le(), body.checked_eat_u32_le()) else {
            return Err(malformed_packet());
        };
        self.bound_statement(id, "mysqld_stmt_fetch")?;
        let Some(cursor) = self.cursors.get_mut(&id) else {
            return Err(SqlError::new(
                codes::STMT_HAS_NO_OPEN_CURSOR,
                format!("The statement ({id}) has no open cursor."),
            ));
        };
        let status = self.session.status_flags();
        if !cursor.fetch(rows, &mut self.packets, self.client.capabilities, status)? {
            self.cursors.remove(&id);
        }
        Ok(())
    }

    /// No answer: what goes wrong is told by the next execution.
    fn send_long_data(&mut self, body: &[u8]) {
        let mut body = ParseBuf(body);
        let (Some(id), Some(parameter)) = (body.checked_eat_u32_le(), body.checked_eat_u16_le())
        else {
            return;
        };
        let max_bytes = self.session.max_allowed_packet();
        if let Some(statement) = self.statements.get_mut(&id) {
            let piece = (parameter.into(), body.eat_all());
            statement.append_long_data(piece, max_bytes, |bytes| self.session.keep(bytes));
        }
    }

    /// No answer, not even to an unknown statement.
    fn close_prepared(&mut self, body: &[u8]) {
        if let Ok(id) = statement_id(body)
            && self.statements.remove(&id).is_some()
        {
            self.cursors.remove(&id);
            self.session.close_prepared(id);
        }
    }

    fn bound_statement(&mut self, id: u32, caller: &str) -> Result<&mut BoundStatement, SqlError> {
        self.statements
            .get_mut(&id)
            .ok_or_else(|| SqlError::unknown_statement_handler(&id.to_string(), caller))
    }

    fn set_option(&mut self, body: &[u8]) -> Result<(), SqlError> {
        let multi_statements = match ParseBuf(body).checked_eat_u16_le() {
            Some(OPTION_MULTI_STATEMENTS_ON) => true,
            Some(OPTION_MULTI_STATEMENTS_OFF) => false,
            _ => return Err(unknown_command()),
        };
        self.session.set_multi_statements(multi_statements);
        write_eof(
            &mut self.packets,
            self.client.capabilities,
            0,
            self.session.status_flags(),
        )
    }

    /// A client that is refused does not get its former rights back: the connection ends.
    fn change_user(&mut self, body: &[u8]) -> Result<Flow, SqlError> {
        self.statements.clear();
        self.cursors.clear();
        let previous = self.session.info().clone();
        let result = UserChange::parse(body)
            .map_err(HandshakeError::from)
            .and_then(|change| {
                let engine = Arc::clone(self.session.engine());
                let who = (&mut self.client, &self.origin);
                change.authenticate(&mut self.packets, &engine, who, &previous)
            })
            .and_then(|info| Ok(self.session.change_user(info)?));
        match result {
            Ok(()) => self.ok().map(|()| Flow::Continue),
            Err(HandshakeError::Refused(error)) => {
                write_error(&mut self.packets, &error).map(|()| Flow::Close)
            }
            Err(HandshakeError::Read(_)) => Ok(Flow::Close),
        }
    }
}

fn statement_id(body: &[u8]) -> Result<u32, SqlError> {
    ParseBuf(body)
        .checked_eat_u32_le()
        .ok_or_else(malformed_packet)
}

fn unknown_command() -> SqlError {
    SqlError::new(codes::UNKNOWN_COM_ERROR, "Unknown command")
}
