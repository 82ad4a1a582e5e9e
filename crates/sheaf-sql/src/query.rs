//! The front half of a query: from its syntax tree to a logical plan with MySQL's meaning.
//!
//! ```text
//!   sqlparser AST -> lower (markers, table references, headers) -> SqlToRel -> typing rule -> DataFusion's TypeCoercion
//! ```
//!
//! What comes out is an ordinary logical plan: every operator has MySQL's semantics spelled out in plain expressions
//! or in Sheaf's scalar functions, every string is compared by collation key, and each table reference is a
//! [`sheaf_exec::SheafTableSource`] of its own.

use std::sync::Arc;

use datafusion_expr::{LogicalPlan, TableSource};
use sheaf_table::{Catalog, Value};
use sqlparser::ast::Query;

use crate::error::{Result, SqlError};

/// What a statement may ask of its session: `@@variables`, `@user_variables`, NOW(), DATABASE() and their like.
/// The values are those at the start of the statement.
pub trait SessionValues {
    /// DATABASE().
    fn current_database(&self) -> Option<&str>;
    /// USER(), as `name@host`.
    fn user(&self) -> String;
    fn connection_id(&self) -> u64;
    fn last_insert_id(&self) -> u64;
    /// ROW_COUNT(): rows changed by the previous statement, -1 after a query.
    fn row_count(&self) -> i64;
    /// FOUND_ROWS(): rows of the previous result set.
    fn found_rows(&self) -> u64;
    /// Start of the statement, microseconds since 1970-01-01 00:00:00 UTC.
    fn now_utc_micros(&self) -> i64;
    /// The session's time zone: seconds to add to UTC at the start of the statement.
    fn time_zone_offset_seconds(&self) -> i32;
    /// VERSION().
    fn version(&self) -> String;
    /// `@@name`, `@@session.name`, `@@global.name`; `None` if there is no such variable (error 1193).
    fn system_variable(&self, global: bool, name: &str) -> Option<Value>;
    /// `@name`, NULL if never set. Names are case-insensitive.
    fn user_variable(&self, name: &str) -> Value;
}

/// Tables that are not in the catalog (INFORMATION_SCHEMA); `Ok(None)` if there is none of this name.
pub type VirtualTables<'a> = dyn Fn(&str, &str) -> Result<Option<Arc<dyn TableSource>>> + 'a;

/// What a query is planned against.
pub struct QueryContext<'a> {
    /// The text that the tokens' positions refer to: what the parser was given. Result headers are cut from it.
    pub sql: &'a str,
    pub catalog: &'a Catalog,
    pub session: &'a dyn SessionValues,
    /// Values of `?`, in order. Missing ones (a statement that is only being prepared) are NULL.
    pub parameters: &'a [Value],
    pub virtual_tables: &'a VirtualTables<'a>,
}

/// A column of the result as the client is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The alias, or the text of the expression as the client wrote it.
    pub name: String,
    /// The column's own name where the item is a plain column; empty otherwise.
    pub org_name: String,
    /// The alias of the table that the column comes from; empty for an expression.
    pub table: String,
    /// The table's own name.
    pub org_table: String,
    pub database: String,
}

/// A query ready for the optimizer.
pub struct LoweredQuery {
    pub plan: LogicalPlan,
    /// One for each column of `plan`. The field's metadata carries the SQL type (`sheaf.type`).
    pub headers: Vec<Header>,
    /// Number of `?` in the query.
    pub parameter_count: usize,
    /// FOR UPDATE or FOR SHARE was given.
    pub locking: bool,
}

/// Lowers and plans `query`.
///
/// # Errors
/// MySQL's for names (1046, 1054, 1052, 1146, 1305), arguments (1582), aggregates (1111, 1055) and constants.
pub fn logical_plan(_query: &Query, _context: &QueryContext<'_>) -> Result<LoweredQuery> {
    Err(SqlError::not_supported_yet("SELECT"))
}
