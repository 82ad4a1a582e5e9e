//! Sessions and statements of Sheaf, and MySQL's semantics.
//!
//! [`Engine`] is one open database; [`Session`] is one client of it. A session parses a request
//! ([`sheaf_frontend`]), dispatches each statement, and writes what comes out to a [`ResultSink`]: DDL goes to the
//! catalog, INSERT and LOAD DATA to the tables, SELECT through lowering, DataFusion's logical planner and
//! Sheaf's optimizer to a physical plan.

pub mod accounts;
mod backup;
mod batch_builder;
mod catalog_text;
mod cell_reader;
mod change_query;
mod column_statistics;
mod databases;
mod ddl;
mod delete;
mod direct;
mod dispatch;
pub mod engine;
mod explain_statement;
mod field_reader;
pub mod information_schema;
mod insert;
mod kept_read;
mod load_data;
mod locked_tables;
mod locking_read;
mod made_columns;
mod maintenance;
mod on_duplicate;
mod optimizer_costs;
mod optimizer_traces;
mod pipe_reader;
mod prepared;
mod read_plan;
mod record_spool;
mod resource_groups;
pub mod result;
mod rewrite_rules;
mod row_evaluator;
mod row_spool;
mod rows;
mod run_query;
pub mod session;
mod session_handle;
mod set;
mod show;
mod sort_memory;
mod statement_hints;
mod statement_locks;
mod statement_properties;
mod statement_timer;
mod status;
#[cfg(test)]
mod status_reference;
mod table_checks;
mod table_writer;
#[cfg(test)]
mod tests;
mod text_length;
mod transaction;
mod update;
mod values;
mod values_before;
pub mod variables;
mod warnings;

pub use batch_builder::BatchBuilder;
pub use cell_reader::{CellReader, cell_readers};
pub use engine::{Engine, EngineOptions};
pub use error::SqlError;
pub use record_spool::{RecordSpool, SpooledRecords};
pub use result::{
    Cell, CellRow, ColumnMeta, EndOfRows, MysqlColumnType, OkInfo, ResultSink, column_flags,
};
pub use session::{
    Encryption, PreparedInfo, SERVER_VERSION, Session, SessionHandle, SessionInfo,
    UnfinishedCommit, status_flags,
};
pub use sheaf_exec::runtime::thread_placement::go_where_the_process_began;
pub use sheaf_frontend::{dialect, encoding, error, last_insert_id, parser, query};
