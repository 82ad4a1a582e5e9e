//! One client's session: its variables, its warnings, its prepared statements, and the dispatch of statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::result::{ColumnMeta, ResultSink};

/// The version that clients see. Drivers read the leading number as MySQL's to decide what they may send.
pub const SERVER_VERSION: &str = concat!("8.0.99-Sheaf-", env!("CARGO_PKG_VERSION"));

/// Bits of the status word that goes with every OK and EOF, as the protocol numbers them.
pub mod status_flags {
    pub const IN_TRANSACTION: u16 = 1;
    pub const AUTOCOMMIT: u16 = 2;
    pub const MORE_RESULTS: u16 = 8;
    pub const NO_BACKSLASH_ESCAPES: u16 = 512;
}

/// Who connects, and what the client said that it can do.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    pub user: String,
    /// The client's address without its port, or `localhost`.
    pub host: String,
    /// The database to start in; error 1049 if there is no such database comes from [`Session::set_database`].
    pub database: Option<String>,
    /// Several statements in one request, separated by semicolons (CLIENT_MULTI_STATEMENTS).
    pub multi_statements: bool,
    /// The client can send files (CLIENT_LOCAL_FILES).
    pub local_infile: bool,
    /// Affected rows of UPDATE are the rows found (CLIENT_FOUND_ROWS).
    pub found_rows: bool,
    /// The connection's character set and collation, a MySQL collation id (255 is utf8mb4_0900_ai_ci).
    pub collation_id: u16,
}

impl Default for SessionInfo {
    fn default() -> Self {
        SessionInfo {
            user: "root".into(),
            host: "localhost".into(),
            database: None,
            multi_statements: false,
            local_infile: true,
            found_rows: false,
            collation_id: 255,
        }
    }
}

/// What other threads may know of a session and do to it.
pub struct SessionHandle {
    pub id: u64,
    killed: AtomicBool,
}

impl SessionHandle {
    /// The session shall end: its connection is to be closed.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// What ends the connection's wait for the next request when the session is killed: the protocol floor
    /// shuts the socket down here. Called at most once, from another thread.
    pub fn on_kill(&self, _disconnect: Box<dyn FnOnce() + Send>) {}

    /// Ends the running statement with error 1317; the session goes on.
    pub fn cancel(&self) {}
}

/// What a client is told when it prepares a statement.
#[derive(Clone, Debug)]
pub struct PreparedInfo {
    pub id: u32,
    pub parameters: Vec<ColumnMeta>,
    pub columns: Vec<ColumnMeta>,
    pub warnings: u16,
}

/// A session. One thread uses it at a time; [`SessionHandle`] is for the others.
pub struct Session {
    engine: Arc<Engine>,
    handle: Arc<SessionHandle>,
    info: SessionInfo,
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, info: SessionInfo) -> Session {
        Session {
            engine,
            handle: Arc::new(SessionHandle {
                id: 1,
                killed: AtomicBool::new(false),
            }),
            info,
        }
    }

    pub fn id(&self) -> u64 {
        self.handle.id
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn handle(&self) -> Arc<SessionHandle> {
        Arc::clone(&self.handle)
    }

    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// Whether a request may hold several statements (COM_SET_OPTION).
    pub fn set_multi_statements(&mut self, allowed: bool) {
        self.info.multi_statements = allowed;
    }

    /// Runs a request: one statement, or several when the client asked for that. On an error nothing of the
    /// failed statement remains, and the statements after it did not run.
    pub fn execute(&mut self, _sql: &str, _sink: &mut dyn ResultSink) -> Result<()> {
        Err(SqlError::not_supported_yet("statements"))
    }

    pub fn prepare(&mut self, _sql: &str) -> Result<PreparedInfo> {
        Err(SqlError::not_supported_yet("PREPARE"))
    }

    pub fn execute_prepared(
        &mut self,
        id: u32,
        _parameters: &[sheaf_table::Value],
        _sink: &mut dyn ResultSink,
    ) -> Result<()> {
        Err(SqlError::unknown_statement_handler(
            &id.to_string(),
            "mysqld_stmt_execute",
        ))
    }

    /// Unknown ids are ignored, as COM_STMT_CLOSE has no answer.
    pub fn close_prepared(&mut self, _id: u32) {}

    /// The state of a new session, on the same connection (COM_RESET_CONNECTION).
    pub fn reset(&mut self) {}

    /// A new user on the same connection (COM_CHANGE_USER); the rest as `reset`.
    pub fn change_user(&mut self, info: SessionInfo) -> Result<()> {
        self.info = info;
        Ok(())
    }

    pub fn database(&self) -> Option<&str> {
        self.info.database.as_deref()
    }

    /// Error 1049 if there is no such database.
    pub fn set_database(&mut self, name: &str) -> Result<()> {
        self.info.database = Some(name.to_string());
        Ok(())
    }

    /// The columns of a table of the current database (COM_FIELD_LIST, which the command-line clients use to
    /// complete names).
    pub fn field_list(&self, table: &str) -> Result<Vec<ColumnMeta>> {
        Err(SqlError::no_such_table(
            self.database().unwrap_or_default(),
            table,
        ))
    }

    /// Warnings of the last statement that could have any.
    pub fn warning_count(&self) -> u16 {
        0
    }

    /// A set of [`status_flags`]; MORE_RESULTS is the sink's to add.
    pub fn status_flags(&self) -> u16 {
        status_flags::AUTOCOMMIT
    }

    /// The longest request, in bytes.
    pub fn max_allowed_packet(&self) -> usize {
        64 << 20
    }

    /// Seconds that the connection may idle.
    pub fn wait_timeout(&self) -> u64 {
        28_800
    }

    /// Seconds that a write to the client may take.
    pub fn net_write_timeout(&self) -> u64 {
        60
    }

    /// Seconds that the rest of a packet may take to arrive.
    pub fn net_read_timeout(&self) -> u64 {
        30
    }

    /// The collation that result text is sent in (`character_set_results`).
    pub fn result_collation_id(&self) -> u16 {
        self.info.collation_id
    }
}
