//! One client's session: its variables, its warnings, its prepared statements. `request/` runs requests in it.
//!
//! A session is made of parts. Each owns its state, and answers what can be asked of that state alone. Functions take
//! the parts that they use; the whole session is for what runs statements, and for values that may come from anywhere.
//! They take it as their first parameter, so that an import says where they stand. Methods of a session are what other
//! crates call, and what many folders share.
//!
//! | part | what it holds | where |
//! |---|---|---|
//! | `handle` | what other threads may know of a session, and do to it | `session_parts/handle.rs` |
//! | `client` | the account of the client, and what it may do | `rights/client.rs` |
//! | `variables`, `user_variables` | `@@name`, `@name` | `variables/`, `session_parts/user_variables.rs` |
//! | `warnings` | what SHOW WARNINGS lists | `session_parts/warnings.rs` |
//! | `findings` | what is found wrong with values while expressions are evaluated | `session_parts/findings.rs` |
//! | `outcome` | what a statement leaves to those after it: ROW_COUNT() and the like | `session_parts/outcome.rs` |
//! | `prepared` | prepared statements, of the protocol and of SQL | `session_parts/prepared.rs` |
//! | `statement_cache`, `expressions` | direct plans by text, and instances of their expressions | `direct/` |
//! | `digests` | what is counted of statements by their digests | `request/statement_events.rs`, `events/` |
//! | `table_expressions` | what is planned of generated columns and CHECKs | `session_parts/table_expressions.rs` |
//! | `unrelated_tables` | tables that were found to have no foreign keys | `session_parts/unrelated_tables.rs` |
//! | `traces` | what is kept of the optimizer's traces | `session_parts/traces.rs` |
//! | `workers` | threads of a resource group, query memory, a share for [planning] | `session_parts/workers.rs` |
//! | `temporary` | temporary tables | `session_parts/temporary_tables.rs` |
//! | `transactions` | the open one, the next, what is left of the last | `session_parts/transactions.rs` |
//! | `table_locks` | LOCK TABLES, FLUSH TABLES WITH READ LOCK, tickets of changes | `session_parts/table_locks.rs` |
//! | `registration` | the client's place among the followers of the binary log | `binlog/replicas.rs` |
//! | `user_locks` | locks by name: GET_LOCK | `user_lock.rs` of `sheaf-frontend` |
//! | `virtual_tables` | what makes the rows of information_schema and its like | [`VirtualTables`] |
//! | `request` | what is forgotten when the running request ends | `session_parts/running.rs` |
//! | `statement` | the same of a statement | `session_parts/running.rs`, `session_parts/searched.rs` |
//!
//! Beside them: [`request_text`] is how the bytes of a request become text,
//! [`result`](crate::session_parts::result) what a statement returns, `set` SET, `diagnostics` GET DIAGNOSTICS,
//! [`status`](crate::session_parts::status) what SHOW STATUS lists (docs/status.md is written from
//! [`status_meanings`](crate::session_parts::status_meanings)),
//! [`statement_timer`](crate::session_parts::statement_timer) the clock of `max_execution_time`, `admission` the places
//! and the memory that statements wait for.

mod admission;
pub(crate) mod database;
pub(crate) mod present_circumstances;
mod reading;
mod request_text;
mod table_names;

// Whatever knows a session names its parts by it; the floors below name `session_parts`.
pub use crate::session_parts::result;
pub(crate) use crate::session_parts::{
    circumstances, handle, hypothesis, ignored_result, measured, planning, prepared, progress,
    request_memory, running, searched, slow_client, statement_timer, status, warnings, workers,
};

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use sheaf_exec::runtime::thread_placement;
use sheaf_frontend::user_lock::SessionLocks;
use sheaf_memory::Share;
use sheaf_types::error::codes;

use crate::binlog::Registration;
use crate::dialect::{SheafDialect, SpacesOfFunctions};
use crate::encoding::TextEncoding;
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::events::session_digests::SessionDigests;
use crate::rights::Client;
use crate::session_parts::findings::Findings;
pub use crate::session_parts::handle::SessionHandle;
pub(crate) use crate::session_parts::ignored_result::IgnoredResult;
pub use crate::session_parts::info::{Encryption, SessionInfo};
use crate::session_parts::kept::Kept;
use crate::session_parts::measured::DigestCircumstances;
use crate::session_parts::next_gtid::NextGtid;
use crate::session_parts::outcome::Outcome;
use crate::session_parts::prepared::{PreparedStatements, Reading};
use crate::session_parts::request_memory::RequestMemory;
use crate::session_parts::result::{ColumnMeta, EndOfRows, OkInfo, ResultSink};
use crate::session_parts::running::{RunningRequest, RunningStatement};
use crate::session_parts::slow_client::SlowClient;
use crate::session_parts::status::Command;
use crate::session_parts::table_expressions::TableExpressions;
use crate::session_parts::table_locks::TableLocks;
use crate::session_parts::temporary_tables::TemporaryTables;
use crate::session_parts::traces::OptimizerTraces;
use crate::session_parts::transactions::Transactions;
pub use crate::session_parts::transactions::UnfinishedCommit;
use crate::session_parts::unrelated_tables::UnrelatedTables;
use crate::session_parts::user_variables::{UserVariables, sessions_keep_too_much};
use crate::session_parts::warnings::Warnings;
use crate::session_parts::workers::Workers;
use crate::variables::{self, NextTransaction, VariableValue, Variables};

/// Bits of the status word that goes with every OK and EOF, as the protocol numbers them.
pub mod status_flags {
    pub const IN_TRANSACTION: u16 = 1;
    pub const AUTOCOMMIT: u16 = 2;
    pub const MORE_RESULTS: u16 = 8;
    pub const NO_BACKSLASH_ESCAPES: u16 = 512;
}

/// What a client is told when it prepares a statement.
#[derive(Clone, Debug)]
pub struct PreparedInfo {
    pub id: u32,
    pub parameters: Vec<ColumnMeta>,
    pub columns: Vec<ColumnMeta>,
    pub warnings: u16,
}

/// What makes the rows of tables when a query asks for them. Queries read such tables, and what they show is found by
/// queries in part. So the floor of queries knows only that there are such tables; `catalog_views/` makes them.
pub(crate) trait VirtualTables: Send + Sync {
    /// The columns of a table and its rows; `None` if there is no such table.
    fn table(
        &self,
        database: &str,
        table: &str,
        session: &Session,
    ) -> Result<Option<(SchemaRef, RecordBatch)>>;

    fn has_table(&self, database: &str, table: &str, session: &Session) -> Result<bool>;

    /// The columns of a table that direct plans read; `None` if there is no such table.
    fn shape_of_definitions(
        &self,
        database: &str,
        table: &str,
        session: &Session,
    ) -> Result<Option<SchemaRef>>;
}

/// A session. One thread uses it at a time; [`SessionHandle`] is for the others. The module's comment lists its parts.
pub struct Session {
    pub(crate) engine: Arc<Engine>,
    pub(crate) handle: Arc<SessionHandle>,
    pub(crate) client: Client,
    pub(crate) database: Option<String>,
    pub(crate) variables: Variables,
    pub(crate) user_variables: UserVariables,
    pub(crate) warnings: Warnings,
    pub(crate) findings: Findings,
    pub(crate) prepared: PreparedStatements,
    pub(crate) statement_cache: Kept,
    pub(crate) expressions: Kept,
    pub(crate) digests: SessionDigests<DigestCircumstances>,
    pub(crate) table_expressions: TableExpressions,
    pub(crate) unrelated_tables: UnrelatedTables,
    pub(crate) traces: OptimizerTraces,
    pub(crate) outcome: Outcome,
    pub(crate) workers: Workers,
    pub(crate) temporary: TemporaryTables,
    pub(crate) transactions: Transactions,
    pub(crate) table_locks: TableLocks,
    pub(crate) user_locks: SessionLocks,
    pub(crate) virtual_tables: &'static dyn VirtualTables,
    /// Empty unless the client is a follower of the binary log that has said so.
    pub(crate) registration: Option<Registration>,
    /// See [`Session::is_released`].
    pub(crate) is_released: bool,
    pub(crate) statement: RunningStatement,
    pub(crate) request: RunningRequest,
}

impl Session {
    pub(crate) fn new(
        engine: Arc<Engine>,
        handle: Arc<SessionHandle>,
        info: SessionInfo,
        virtual_tables: &'static dyn VirtualTables,
    ) -> Result<Session> {
        let mut session = Session {
            variables: engine.globals(),
            workers: Workers::new(
                engine.runtime(),
                handle.memory(),
                planning::share_of(engine.planning(), engine.runtime(), &handle),
            ),
            user_variables: UserVariables::new(engine.kept_by_sessions()),
            user_locks: engine.user_locks(&handle),
            digests: SessionDigests::new(Arc::clone(&handle.digests)),
            engine,
            handle,
            client: Client::new(info),
            virtual_tables,
            database: None,
            warnings: Warnings::default(),
            findings: Findings::default(),
            prepared: PreparedStatements::default(),
            statement_cache: Kept::default(),
            expressions: Kept::default(),
            table_expressions: TableExpressions::default(),
            unrelated_tables: UnrelatedTables::default(),
            traces: OptimizerTraces::default(),
            outcome: Outcome::default(),
            temporary: TemporaryTables::default(),
            transactions: Transactions::default(),
            table_locks: TableLocks::default(),
            registration: None,
            is_released: false,
            statement: RunningStatement::default(),
            request: RunningRequest::default(),
        };
        session.start_over()?;
        Ok(session)
    }

    /// The state of a new session of the same client.
    fn start_over(&mut self) -> Result<()> {
        self.transactions.next = NextTransaction::default();
        self.transactions.next_gtid = NextGtid::default();
        let rolled_back = self.transactions.roll_back(&self.handle.counters);
        self.table_locks.unlock_everything(self.engine.catalog());
        self.user_locks.release_all();
        self.temporary.drop_all();
        rolled_back?;
        self.variables = self.engine.globals();
        self.user_variables.clear();
        let takes_notes = self.variables.takes_notes();
        let limit = self.variables.max_error_count();
        self.warnings.clear(limit, takes_notes);
        self.close_all_prepared();
        self.statement_cache.forget();
        self.expressions.forget();
        self.table_expressions = TableExpressions::default();
        self.traces = OptimizerTraces::default();
        self.outcome.forget();
        self.workers.forget_task();
        self.handle.assign_group(None);
        let with_all_roles = self.variables.activates_all_roles();
        self.client
            .take_rights_at_start(self.engine.catalog(), &self.handle, with_all_roles);
        if let Some(name) =
            variables::unsupported_character_set_of_id(self.client.info.collation_id)
        {
            return Err(SqlError::unknown_character_set(name));
        }
        let collation = variables::collation_of_id(self.client.info.collation_id);
        let character_set = variables::character_set_of(collation).to_string();
        for name in [
            "character_set_client",
            "character_set_connection",
            "character_set_results",
        ] {
            self.variables
                .set_internally(name, VariableValue::Text(character_set.clone()));
        }
        self.variables.set_internally(
            "collation_connection",
            VariableValue::Text(collation.to_string()),
        );
        self.variables.set_internally(
            "pseudo_thread_id",
            VariableValue::Integer(self.handle.id().into()),
        );
        if self.client.info.ignore_space {
            let mode = self.variables.sql_mode().with_flag("IGNORE_SPACE");
            self.variables
                .set_internally("sql_mode", VariableValue::Text(mode.to_string()));
        }
        match self.client.info.database.clone() {
            Some(database) => self.set_database(&database),
            None => {
                self.tell_database_collation();
                Ok(())
            }
        }
    }

    pub fn id(&self) -> u64 {
        self.handle.id()
    }

    /// COMMIT RELEASE or ROLLBACK RELEASE has ended the session: its connection is to be closed once the client has the
    /// answer.
    pub fn is_released(&self) -> bool {
        self.is_released
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn handle(&self) -> Arc<SessionHandle> {
        Arc::clone(&self.handle)
    }

    pub fn info(&self) -> &SessionInfo {
        &self.client.info
    }

    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// Whether a request may hold several statements (COM_SET_OPTION).
    pub fn set_multi_statements(&mut self, allowed: bool) {
        self.client.info.multi_statements = allowed;
    }

    /// How the client writes texts (`character_set_client`).
    pub fn client_encoding(&self) -> TextEncoding {
        self.variables.client_encoding()
    }

    /// How the client reads texts (`character_set_results`).
    pub fn result_encoding(&self) -> TextEncoding {
        self.variables.result_encoding()
    }

    /// How the text of the running statement is read.
    pub(crate) fn reading(&self) -> Reading {
        self.statement.reading.unwrap_or_else(|| Reading {
            dialect: self.variables.own_dialect(),
            collation: self.variables.literal_collation(),
        })
    }

    /// The dialect of the running statement.
    pub(crate) fn dialect(&self) -> SheafDialect {
        let reading = self.statement.reading.as_ref();
        reading.map_or_else(|| self.variables.own_dialect(), |reading| reading.dialect)
    }

    pub(crate) fn clear_warnings(&mut self) {
        let takes_notes = self.variables.takes_notes();
        let limit = self.variables.max_error_count();
        self.warnings.clear(limit, takes_notes);
        self.findings.begin();
        if let Some(note) = &self.statement.rewrite_note {
            self.warnings.note(codes::UNKNOWN_ERROR, note.clone());
        }
    }

    /// Ends a statement without rows.
    pub(crate) fn ok(
        &mut self,
        sink: &mut dyn ResultSink,
        affected_rows: u64,
        info: String,
    ) -> Result<()> {
        self.ok_with_id(sink, affected_rows, 0, info)
    }

    pub(crate) fn ok_with_id(
        &mut self,
        sink: &mut dyn ResultSink,
        affected_rows: u64,
        last_insert_id: u64,
        info: String,
    ) -> Result<()> {
        self.outcome.row_count = i64::try_from(affected_rows).unwrap_or(i64::MAX);
        self.findings.warn(&mut self.warnings);
        sink.ok(OkInfo {
            affected_rows,
            last_insert_id: self.outcome.insert_id_cell.get().unwrap_or(last_insert_id),
            warnings: self.warnings.wire_count(),
            info,
            more_results: self.request.has_more,
        })
    }

    /// How a result set of the running statement ends.
    pub(crate) fn end_of_rows(&self) -> EndOfRows {
        EndOfRows {
            warnings: self.warnings.wire_count(),
            more_results: self.request.has_more,
        }
    }

    /// Ends the result set of a query.
    pub(crate) fn end_query(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        self.outcome.row_count = -1;
        self.findings.warn(&mut self.warnings);
        sink.end_of_rows(self.end_of_rows())
    }

    /// What the requests of this session's client take their memory of.
    pub fn request_memory(&self) -> RequestMemory {
        RequestMemory::new(
            self.engine.long_statements(),
            self.engine.runtime(),
            Arc::clone(&self.handle),
        )
    }

    /// What the connection asks when its client does not read.
    pub fn slow_client(&self) -> SlowClient {
        let handle = Arc::clone(&self.handle);
        SlowClient::new(handle, self.engine.runtime(), self.engine.crowd())
    }

    /// A share of what all sessions may keep for their next statements.
    ///
    /// # Errors
    /// 1041 if others have it.
    pub fn keep(&self, bytes: usize) -> Result<Share> {
        let budget = self.engine.kept_by_sessions();
        let share = budget.try_take(bytes);
        share.ok_or_else(|| sessions_keep_too_much(budget))
    }

    /// The state of a new session, on the same connection (COM_RESET_CONNECTION).
    pub fn reset(&mut self) {
        let database = self.database.take();
        self.client.info.database = database.or_else(|| self.client.info.database.take());
        // The database may be gone by now; then none is selected.
        if self.start_over().is_err() {
            self.database = None;
            self.tell_database_collation();
        }
    }

    /// A new user on the same connection (COM_CHANGE_USER); the rest as `reset`.
    ///
    /// # Errors
    /// 1040, 1203 and 1226 if there is no place for it, and those of a new session.
    pub fn change_user(&mut self, info: SessionInfo) -> Result<()> {
        self.engine
            .give_place(&self.handle, info.account.as_ref())?;
        self.handle.set_user(&info.user, &info.host);
        self.client.info = info;
        self.database = None;
        self.handle.set_database(None);
        self.start_over()
    }

    pub(crate) fn close_all_prepared(&mut self) {
        let count = self.prepared.by_id.len() as u64;
        self.engine
            .prepared_statements
            .fetch_sub(count, Ordering::Relaxed);
        self.prepared = PreparedStatements::default();
    }

    /// Hands over what is counted of the session's statements.
    pub(crate) fn hand_over_digests(&mut self) {
        self.digests.hand_over(&self.engine.digest_table);
    }

    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// Error 1049 if there is no such database.
    pub fn set_database(&mut self, name: &str) -> Result<()> {
        self.client
            .refresh_rights(self.engine.catalog(), &self.handle);
        let is_virtual = crate::virtual_database::is_virtual_database(name);
        let lower = name.to_ascii_lowercase();
        let written = if is_virtual { &lower } else { name };
        let name = if !self.client.sees_database(written) {
            return Err(self.client.denied_database(name));
        } else if is_virtual {
            written.to_string()
        } else if self.engine.catalog().database_exists(name) {
            name.to_string()
        } else {
            return Err(SqlError::unknown_database(name));
        };
        self.handle.set_database(Some(&name));
        self.database = Some(name);
        // A prepared USE is meant for the session.
        self.statement.own_database = None;
        self.tell_database_collation();
        Ok(())
    }

    /// Warnings of the last statement that could have any.
    pub fn warning_count(&self) -> u16 {
        self.warnings.wire_count()
    }

    /// A set of [`status_flags`]; MORE_RESULTS is the sink's to add.
    pub fn status_flags(&self) -> u16 {
        let mut flags = 0;
        if self.variables.autocommit() {
            flags |= status_flags::AUTOCOMMIT;
        }
        if self.transactions.is_open() {
            flags |= status_flags::IN_TRANSACTION;
        }
        if self.variables.sql_mode().contains("NO_BACKSLASH_ESCAPES") {
            flags |= status_flags::NO_BACKSLASH_ESCAPES;
        }
        flags
    }

    /// The longest request, in bytes.
    pub fn max_allowed_packet(&self) -> usize {
        self.variables.max_allowed_packet()
    }

    /// Counts what was received from the client and sent to it.
    pub fn count_traffic(&self, received_bytes: u64, sent_bytes: u64) {
        let counts = &self.handle.commands;
        counts.add(Command::BytesReceived, received_bytes);
        counts.add(Command::BytesSent, sent_bytes);
    }

    /// Seconds that the connection may idle.
    pub fn wait_timeout(&self) -> u64 {
        self.variables.wait_timeout_seconds()
    }

    /// Seconds that a write to the client may take.
    pub fn net_write_timeout(&self) -> u64 {
        self.variables.net_write_timeout_seconds()
    }

    /// Seconds that the rest of a packet may take to arrive.
    pub fn net_read_timeout(&self) -> u64 {
        self.variables.net_read_timeout_seconds()
    }

    /// The collation that result text is sent in (`character_set_results`).
    pub fn result_collation_id(&self) -> u16 {
        self.variables.result_collation_id()
    }
}

impl Variables {
    /// The dialect that `sql_mode` asks for.
    fn own_dialect(&self) -> SheafDialect {
        let mode = self.sql_mode();
        SheafDialect {
            pipes_as_concat: mode.contains("PIPES_AS_CONCAT"),
            ansi_quotes: mode.contains("ANSI_QUOTES"),
            high_not_precedence: mode.contains("HIGH_NOT_PRECEDENCE"),
            no_backslash_escapes: mode.contains("NO_BACKSLASH_ESCAPES"),
            spaces_of_functions: match mode.contains("IGNORE_SPACE") {
                true => SpacesOfFunctions::Ignored,
                false => SpacesOfFunctions::Separate,
            },
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close_all_prepared();
        self.hand_over_digests();
        if self.temporary.is_used() {
            self.transactions.forget();
            self.temporary.drop_all();
        }
        self.table_locks.unlock_everything(self.engine.catalog());
        self.user_locks.release_all();
        if let Err(error) = thread_placement::leave() {
            tracing::debug!(%error, "a thread stays where its session's resource group was");
        }
        self.engine.end_session(&self.handle);
    }
}
