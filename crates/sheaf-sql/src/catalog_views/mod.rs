//! What the server tells of its definitions.
//!
//! | file | what it holds |
//! |---|---|
//! | [`show`] | SHOW |
//! | [`server_rows`] | status variables and engines |
//! | [`binary_log`] | SHOW BINARY LOGS and the like, PURGE and RESET |
//! | [`replica`] | SHOW REPLICA STATUS |
//! | [`engine_status`] | SHOW ENGINE INNODB STATUS |
//! | [`information_schema`] | tables whose rows are made when a query names them |
//! | [`performance_schema`], [`sys`] | tables of what statements did and wait for |
//! | [`system_tables`] | those of the database `mysql` |
//! | [`virtual_table`] | a table whose rows are made when a query names it |
//! | [`catalog_text`] | properties of columns as both print them |

pub(crate) mod binary_log;
pub(crate) mod catalog_text;
mod engine_status;
pub mod information_schema;
pub(crate) mod performance_schema;
mod replica;
mod server_rows;
pub(crate) mod show;
pub(crate) mod sys;
mod system_tables;
pub(crate) mod virtual_table;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use crate::error::Result;
use crate::session::{Session, VirtualTables};

/// The tables whose rows are made here, for the queries that name them.
pub(crate) struct CatalogViews;

impl VirtualTables for CatalogViews {
    fn table(
        &self,
        database: &str,
        table: &str,
        session: &Session,
    ) -> Result<Option<(SchemaRef, RecordBatch)>> {
        information_schema::virtual_table(database, table, session)
    }

    fn has_table(&self, database: &str, table: &str, session: &Session) -> Result<bool> {
        Ok(information_schema::shape_of_virtual(database, table, session)?.is_some())
    }

    fn shape_of_definitions(
        &self,
        database: &str,
        table: &str,
        session: &Session,
    ) -> Result<Option<SchemaRef>> {
        information_schema::shape_of_definitions(database, table, session)
    }
}
