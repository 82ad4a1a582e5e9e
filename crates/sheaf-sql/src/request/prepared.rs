//! Prepared statements of the protocol (COM_STMT_*), as requests. `dispatch/prepared.rs` has the rest.

use std::sync::Arc;

use sheaf_types::Value;

use crate::error::{Result, SqlError};
use crate::session::measured::{KnownBy, Sent};
use crate::session::result::{
    BINARY_COLLATION_ID, ColumnMeta, MysqlColumnType, ResultSink, column_flags,
};
use crate::session::running::RunningRequest;
use crate::session::status::Command;
use crate::session::{PreparedInfo, Session};

impl Session {
    /// Prepares a statement for the protocol.
    pub fn prepare(&mut self, sql: &str) -> Result<PreparedInfo> {
        let (id, columns) = self.run(sql, |session| {
            session.clear_warnings();
            session.handle.commands.count(Command::StmtPrepare);
            session.add_prepared(sql)
        })?;
        let parameters = self
            .prepared
            .by_id
            .get(&id)
            .map_or(0, |prepared| prepared.parameters);
        Ok(PreparedInfo {
            id,
            parameters: vec![parameter_meta(); parameters],
            columns,
            warnings: self.warnings.wire_count(),
        })
    }

    /// Runs a prepared statement with values for its parameters.
    pub fn execute_prepared(
        &mut self,
        id: u32,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Some(prepared) = self.prepared.by_id.get(&id) else {
            return Err(SqlError::unknown_statement_handler(
                &id.to_string(),
                "mysqld_stmt_execute",
            ));
        };
        if parameters.len() != prepared.parameters {
            return Err(SqlError::wrong_arguments("mysqld_stmt_execute"));
        }
        let text = Arc::clone(&prepared.text);
        self.handle.commands.count(Command::StmtExecute);
        self.request = RunningRequest::OF_ONE;
        let sent = Sent {
            text: &text,
            parameters,
            known_by: KnownBy::Text(&text),
        };
        self.run_measured(sent, sink, |session, sink| {
            session.run_prepared((id, &text), parameters, sink)
        })
    }
}

/// MySQL describes a parameter whose type it does not know as a text.
fn parameter_meta() -> ColumnMeta {
    ColumnMeta {
        name: "?".into(),
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        database: String::new(),
        type_: MysqlColumnType::VarString,
        collation_id: BINARY_COLLATION_ID,
        length: 0,
        decimals: 31,
        flags: column_flags::BINARY,
        declared: None,
    }
}
