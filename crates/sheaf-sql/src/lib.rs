//! Sessions and statements of Sheaf, and MySQL's semantics.
//!
//! [`Engine`] is one open database; [`Session`] is one client of it. A session parses a request
//! (the `parser` module), dispatches each statement, and writes what comes out to a [`ResultSink`]: DDL goes to the
//! catalog, INSERT and LOAD DATA to the tables, SELECT through lowering, DataFusion's logical planner and
//! Sheaf's optimizer to a physical plan.

mod context;
pub mod dialect;
pub mod engine;
pub mod error;
mod lower;
pub mod query;
#[cfg(test)]
mod query_tests;
pub mod result;
pub mod session;

pub use engine::{Engine, EngineOptions};
pub use error::SqlError;
pub use result::{ColumnMeta, EndOfRows, MysqlColumnType, OkInfo, ResultSink, column_flags};
pub use session::{
    PreparedInfo, SERVER_VERSION, Session, SessionHandle, SessionInfo, status_flags,
};
