//! What a query is planned with, and what comes of it.
//!
//! ```text
//!   syntax tree -> bind (names, types, the algebra and its rules) -> logical plan -> (the optimizer)
//! ```
//!
//! The result is an ordinary logical plan. Every operator has MySQL's semantics spelled out in plain expressions or in
//! Sheaf's scalar functions. Every string is compared by collation key, and each table reference is a
//! [`sheaf_exec::SheafTableSource`] of its own.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_expr::{LogicalPlan, TableSource};
use sheaf_access::CancelFlag;
use sheaf_algebra::{ColumnId, Columns, Relation};
use sheaf_exec::functions::arithmetic::DIV_PRECISION_INCREMENT;
use sheaf_exec::functions::truncated::TruncatedTexts;
use sheaf_exec::functions::user_variables::AssignedVariables;
use sheaf_table::{AccountName, TableNames};
use sheaf_types::{Collation, Value};

use crate::error::{Result, SqlError};
use crate::gtid_wait::ExecutedGtids;
use crate::last_insert_id::InsertIdCell;
use crate::load_file::{FileReader, LoadedFile};
use crate::parser::hint::HintWarning;
use crate::statement_text::edit::Edit;
use crate::syntax::is_same;
use crate::user_lock::SessionLocks;

/// What a statement may ask of its session: `@@variables`, `@user_variables`, NOW(), DATABASE() and their like.
/// The values are those at the start of the statement.
pub trait SessionValues {
    /// DATABASE().
    fn current_database(&self) -> Option<&str>;
    /// USER(), as `name@host`.
    fn user(&self) -> String;
    /// CURRENT_USER(): the account that the client is.
    fn current_user(&self) -> String {
        self.user()
    }
    /// CURRENT_ROLE(): the roles that it uses.
    fn current_role(&self) -> String {
        "NONE".to_string()
    }
    fn connection_id(&self) -> u64;
    fn last_insert_id(&self) -> u64;
    /// Where LAST_INSERT_ID(value) leaves its value.
    fn insert_id_cell(&self) -> InsertIdCell {
        InsertIdCell::default()
    }
    /// Where assignments of user variables (`@name := value`) leave their values.
    fn assigned_variables(&self) -> AssignedVariables {
        AssignedVariables::default()
    }
    /// Where texts are noted that the running statement cuts to numbers.
    fn truncated_texts(&self) -> TruncatedTexts {
        TruncatedTexts::default()
    }
    /// What is raised when the running statement shall end.
    fn cancel_flag(&self) -> CancelFlag {
        CancelFlag::new()
    }
    /// The locks by name, as the session uses them.
    fn user_locks(&self) -> SessionLocks {
        SessionLocks::default()
    }
    /// What was executed, as the session sees it.
    fn executed_gtids(&self) -> ExecutedGtids {
        Arc::new(|_| Ok(false))
    }
    /// What reads files of the server for the session.
    fn file_reader(&self) -> FileReader {
        Arc::new(|_| LoadedFile::Unreadable)
    }
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
    /// Whether `@@session.name` may stand for a variable that there is (error 1238).
    fn has_session_value(&self, _name: &str) -> bool {
        true
    }
    /// Whether derived tables become part of the query around them (`optimizer_switch`).
    fn merges_derived_tables(&self) -> bool {
        true
    }
    /// Whether a query with groups names nothing but these, what they determine, and aggregates (`sql_mode`). Otherwise
    /// all else is that of any row of the group.
    fn only_full_group_by(&self) -> bool {
        true
    }
    /// Whether the difference of unsigned numbers is signed (`sql_mode`).
    fn has_signed_differences(&self) -> bool {
        false
    }
    /// Whether columns of CHAR(n) are read with all of their n characters (`sql_mode`).
    fn pads_characters(&self) -> bool {
        false
    }
    /// Decimals that `/` and AVG add to those of the dividend (`div_precision_increment`).
    fn quotient_decimals(&self) -> u8 {
        DIV_PRECISION_INCREMENT
    }
    /// Whether plans use indexes that are invisible (`optimizer_switch`).
    fn uses_invisible_indexes(&self) -> bool {
        false
    }
    /// Whether texts and numbers make no zero date (`sql_mode`).
    fn refuses_zero_dates(&self) -> bool {
        false
    }
    /// Whether a text such as 2024-00-10 is no date to compare with (`sql_mode`).
    fn refuses_zero_in_dates(&self) -> bool {
        false
    }
    /// Whether constants of the statement come from parameters. A text that is no date is no error then.
    fn has_parameters(&self) -> bool {
        false
    }
    /// What texts compare by that come from no column (`collation_connection`).
    fn collation(&self) -> Collation {
        Collation::default()
    }
    /// `@name`, NULL if never set. Names are case-insensitive.
    fn user_variable(&self, name: &str) -> Value;
}

/// With whose privileges a table is read.
#[derive(Clone, Copy)]
pub enum Reader<'a> {
    Session,
    /// The account that has made the view which the table stands in.
    Definer(&'a AccountName),
    /// It is a temporary table, with which its session may do everything.
    Owner,
}

/// Tables that are not in the catalog (INFORMATION_SCHEMA), by database and name; `Ok(None)` if there is none of this
/// name. Errors 1142 for a table that the reader may not read, and 1449 for an account that is not there.
pub type VirtualTables<'a> =
    dyn Fn(&str, &str, Reader<'_>) -> Result<Option<Arc<dyn TableSource>>> + 'a;

/// What a reader may read of a table or a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readable {
    All,
    /// The columns of these names.
    Only(Vec<String>),
}

impl Readable {
    /// Those of these columns that it leaves out.
    pub fn left_out<'c>(&self, columns: impl Iterator<Item = &'c str>) -> Vec<String> {
        let Readable::Only(names) = self else {
            return Vec::new();
        };
        let is_left_out = |column: &&str| !names.iter().any(|name| is_same(name, column));
        columns.filter(is_left_out).map(str::to_string).collect()
    }
}

/// Which columns a query may name. Whether it may name a table at all is asked of [`VirtualTables`].
pub trait ReadRights {
    /// Error 1449 for an account that is not there.
    fn readable(&self, database: &str, table: &str, reader: Reader<'_>) -> Result<Readable>;
    /// Error 1143.
    fn denied_column(&self, table: &str, column: &str) -> SqlError;
    /// Error 1142.
    fn denied_table(&self, table: &str) -> SqlError;
}

/// What the list of the outermost SELECT holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Items of a query.
    Items,
    /// Values of another statement, which has no groups: an aggregate is error 1111, a window function 3593.
    Values,
    /// As [`Self::Values`], of user variables: they keep the digits of quotients that are not shown.
    Variables,
    /// Values of a statement that changes rows. The tables in the outermost FROM have one more column, the clustered
    /// key.
    Changes,
}

/// What is kept of the query of a view that is made.
#[derive(Default)]
pub struct ViewNotes {
    /// The view's database and name.
    pub database: String,
    pub name: String,
    pub edits: RefCell<Vec<Edit>>,
}

/// What a query is planned against.
pub struct QueryContext<'a> {
    /// The text that the tokens' positions refer to: what the parser was given. Result headers are cut from it.
    pub sql: &'a str,
    /// What names of tables mean. In views they mean tables of all sessions.
    pub tables: TableNames<'a>,
    pub session: &'a dyn SessionValues,
    /// Values of `?`, in order. Missing ones (a statement that is only being prepared) are NULL.
    pub parameters: &'a [Value],
    pub virtual_tables: &'a VirtualTables<'a>,
    /// `None`: every column may be named, since rights are checked elsewhere, or there are no accounts.
    pub rights: Option<&'a dyn ReadRights>,
    pub listed: Listed,
    /// What is noted of the query of a view that is made.
    pub notes: Option<&'a ViewNotes>,
    /// The plan is to be a list over a condition over the tables, as they are written, if it is nothing else.
    pub is_over_rows: bool,
    /// What a locking read locks in its FROM, by the names there; `None` in it: all tables. All others are
    /// [beside its locks](sheaf_exec::SheafTableSource::is_beside_locks).
    pub locked: Option<&'a [Option<String>]>,
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
    /// A column of a set operation, whose rows MySQL stores: a column, though one of no table.
    pub is_stored: bool,
}

/// What the columns of a query are as it is written. Rules may leave a plan that tells less of them: one without rows,
/// or without a join.
pub struct Shown {
    /// The columns of the result. Their fields say whether they may be NULL.
    pub outputs: Vec<(ColumnId, FieldRef)>,
    /// Those of the statement.
    pub columns: Columns,
    /// The query, and by their numbers the common table expressions that are computed once. Nothing, where all columns
    /// of the result are columns of tables.
    pub made_by: Vec<(Option<u32>, Relation)>,
}

/// A query ready for the optimizer.
pub struct BoundQuery {
    pub plan: LogicalPlan,
    pub shown: Shown,
    /// One for each column of `plan`. The field's metadata carries the SQL type (`sheaf.type`).
    pub headers: Vec<Header>,
    /// Number of `?` in the query.
    pub parameter_count: usize,
    /// FOR UPDATE or FOR SHARE was given.
    pub locking: bool,
    /// What is wrong with its optimizer hints.
    pub hint_warnings: Vec<HintWarning>,
}
