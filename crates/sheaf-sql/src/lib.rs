//! Sessions and statements of Sheaf, and MySQL's semantics.
//!
//! [`Engine`] is one open database; [`Session`] is one client of it. A session parses a request
//! ([`sheaf_frontend`]), dispatches each statement, and writes what comes out to a [`ResultSink`]: DDL goes to the
//! catalog, INSERT and LOAD DATA to the tables, SELECT through the binder, the algebra and Sheaf's optimizer to a
//! physical plan.

pub mod accounts;
mod advisor;
pub mod binlog;
mod catalog_views;
mod change;
mod definition;
mod direct;
mod dispatch;
pub mod engine;
mod events;
mod isolation;
mod locking;
mod query;
pub mod replica;
mod replica_parts;
mod request;
mod resource_groups;
mod rights;
mod select;
pub mod session;
mod session_parts;
mod start;
mod statement;
#[cfg(test)]
mod tests;
pub mod variables;
mod virtual_database;

pub use catalog_views::information_schema;
pub use engine::metrics::Metric;
pub use engine::{Engine, EngineOptions, MIN_MEMORY_BYTES};
pub use error::SqlError;
pub use query::batch_builder::BatchBuilder;
pub use query::cell_reader::{CellReader, cell_readers};
pub use query::record_spool::{RecordSpool, SpooledRecords};
pub use session::request_memory::RequestMemory;
pub use session::result;
pub use session::result::{
    Cell, CellRow, ColumnMeta, EndOfRows, MysqlColumnType, OkInfo, ResultSink, column_flags,
};
pub use session::slow_client::SlowClient;
pub use session::{
    Encryption, PreparedInfo, Session, SessionHandle, SessionInfo, UnfinishedCommit, status_flags,
};
pub use sheaf_exec::runtime::thread_placement::go_where_the_process_began;
pub use sheaf_frontend::{dialect, encoding, error, last_insert_id, parser};
pub use sheaf_memory::{Budget, Share};
pub use start::start_variables::faults_of_globals;
pub use variables::SERVER_VERSION;
pub use variables::persisted::FILE as PERSISTED_FILE;
