//! `information_schema`: tables whose rows are made from the catalog when a query names them.
//!
//! Column names, order and values are those of MySQL's manual, as far as tools read them. Tables that describe what
//! Sheaf does not have (triggers, routines, partitions) are there and empty.
//!
//! | file | tables |
//! |---|---|
//! | [`tables`] | databases and tables |
//! | [`views`] | views |
//! | [`columns`] | columns, indexes, their statistics |
//! | [`constraints`] | keys, foreign keys, CHECKs |
//! | [`character_sets`] | character sets and collations |
//! | [`storage`] | transactions, metrics and space, as InnoDB has them |
//! | [`sessions`] | sessions, and traces of their statements |
//!
//! Accounts, variables, status and resource groups have theirs beside what they are about.

mod character_sets;
mod columns;
mod constraints;
mod sessions;
mod storage;
mod tables;
mod views;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use sheaf_table::{Table, ViewDefinition};
use sheaf_types::error::codes;

use crate::accounts;
use crate::catalog_views::server_rows::{engine_rows, status_entries};
use crate::catalog_views::system_tables::system_table;
use crate::catalog_views::virtual_table::VirtualTable;
use crate::catalog_views::{performance_schema, sys};
use crate::error::{Result, SqlError};
use crate::query::rows::{Cells, Rows};
use crate::resource_groups::resource_groups;
use crate::rights::Client;
use crate::session::Session;
use crate::virtual_database::{is_information_schema, is_system_table};

pub(crate) use crate::catalog_views::information_schema::character_sets::{
    collation_owner, collations_under,
};
pub(crate) use crate::catalog_views::information_schema::columns::index_part_cells;
pub(crate) use crate::catalog_views::information_schema::sessions::push_sessions;
pub(crate) use crate::catalog_views::information_schema::tables::{table_status, view_status};
pub use crate::virtual_database::{NAME, is_virtual_database};

const TEXT: Cells = Cells::Text(64);
const NAMES: Cells = Cells::Name;
const LONG_TEXT: Cells = Cells::Text(u32::MAX);
const NUMBER: Cells = Cells::Unsigned;

/// Tables that are always empty: their name and columns.
const EMPTY: [(&str, &[(&str, Cells)]); 6] = [
    (
        "EVENTS",
        &[
            ("EVENT_CATALOG", NAMES),
            ("EVENT_SCHEMA", NAMES),
            ("EVENT_NAME", TEXT),
        ],
    ),
    (
        "FILES",
        &[
            ("FILE_ID", NUMBER),
            ("FILE_NAME", LONG_TEXT),
            ("FILE_TYPE", TEXT),
            ("TABLESPACE_NAME", TEXT),
            ("LOGFILE_GROUP_NAME", TEXT),
            ("ENGINE", TEXT),
            ("EXTENT_SIZE", NUMBER),
            ("INITIAL_SIZE", NUMBER),
            ("TOTAL_EXTENTS", NUMBER),
            ("EXTRA", TEXT),
        ],
    ),
    (
        "PARTITIONS",
        &[
            ("TABLE_CATALOG", NAMES),
            ("TABLE_SCHEMA", NAMES),
            ("TABLE_NAME", NAMES),
            ("PARTITION_NAME", TEXT),
            ("TABLESPACE_NAME", TEXT),
        ],
    ),
    (
        "ROUTINES",
        &[
            ("SPECIFIC_NAME", TEXT),
            ("ROUTINE_CATALOG", NAMES),
            ("ROUTINE_SCHEMA", NAMES),
            ("ROUTINE_NAME", TEXT),
            ("ROUTINE_TYPE", TEXT),
            ("ROUTINE_DEFINITION", LONG_TEXT),
        ],
    ),
    (
        "PARAMETERS",
        &[
            ("SPECIFIC_CATALOG", NAMES),
            ("SPECIFIC_SCHEMA", NAMES),
            ("SPECIFIC_NAME", TEXT),
            ("ORDINAL_POSITION", NUMBER),
            ("PARAMETER_NAME", TEXT),
            ("DATA_TYPE", TEXT),
        ],
    ),
    (
        "TRIGGERS",
        &[
            ("TRIGGER_CATALOG", NAMES),
            ("TRIGGER_SCHEMA", NAMES),
            ("TRIGGER_NAME", TEXT),
            ("EVENT_MANIPULATION", TEXT),
            ("EVENT_OBJECT_SCHEMA", NAMES),
            ("EVENT_OBJECT_TABLE", NAMES),
            ("ACTION_STATEMENT", LONG_TEXT),
            ("ACTION_TIMING", TEXT),
        ],
    ),
];

/// The tables that have rows.
const FILLED: [&str; 35] = [
    "ADMINISTRABLE_ROLE_AUTHORIZATIONS",
    "APPLICABLE_ROLES",
    "CHARACTER_SETS",
    "CHECK_CONSTRAINTS",
    "COLLATIONS",
    "COLLATION_CHARACTER_SET_APPLICABILITY",
    "COLUMNS",
    "COLUMN_PRIVILEGES",
    "COLUMN_STATISTICS",
    "ENABLED_ROLES",
    "ENGINES",
    "GLOBAL_STATUS",
    "GLOBAL_VARIABLES",
    "INNODB_CMP",
    "INNODB_CMPMEM",
    "INNODB_METRICS",
    "INNODB_TABLESPACES",
    "INNODB_TRX",
    "KEY_COLUMN_USAGE",
    "OPTIMIZER_TRACE",
    "PROCESSLIST",
    "REFERENTIAL_CONSTRAINTS",
    "RESOURCE_GROUPS",
    "ROLE_COLUMN_GRANTS",
    "ROLE_TABLE_GRANTS",
    "SCHEMATA",
    "SCHEMA_PRIVILEGES",
    "SESSION_STATUS",
    "SESSION_VARIABLES",
    "SHEAF_RESIDENCY",
    "STATISTICS",
    "TABLE_CONSTRAINTS",
    "TABLE_PRIVILEGES",
    "USER_PRIVILEGES",
    "VIEWS",
];

/// The names of all tables, sorted.
pub fn table_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = EMPTY
        .iter()
        .map(|(name, _)| *name)
        .chain(FILLED)
        .chain(["TABLES"])
        .collect();
    names.sort_unstable();
    names
}

/// Tables whose rows are told by the catalog alone: a plan that reads them may be kept.
const OF_DEFINITIONS: [&str; 15] = [
    "CHECK_CONSTRAINTS",
    "COLUMNS",
    "COLUMN_STATISTICS",
    "EVENTS",
    "KEY_COLUMN_USAGE",
    "PARAMETERS",
    "PARTITIONS",
    "REFERENTIAL_CONSTRAINTS",
    "ROUTINES",
    "SCHEMATA",
    "STATISTICS",
    "TABLES",
    "TABLE_CONSTRAINTS",
    "TRIGGERS",
    "VIEWS",
];

/// The tables that a query asks for, as far as that is known: those of other names need no rows.
#[derive(Clone, Default)]
pub(crate) struct AskedTables {
    database: Option<String>,
    table: Option<String>,
}

impl AskedTables {
    /// Those of no database.
    fn none() -> AskedTables {
        AskedTables {
            database: Some(String::new()),
            ..AskedTables::default()
        }
    }

    /// Takes into account that a column of the virtual table is equal to a text.
    pub(crate) fn add(&mut self, column: &str, text: &str) {
        match column {
            "TABLE_SCHEMA" | "CONSTRAINT_SCHEMA" | "INDEX_SCHEMA" => {
                self.database = Some(text.to_string());
            }
            "TABLE_NAME" => self.table = Some(text.to_string()),
            _ => {}
        }
    }

    fn has_database(&self, name: &str) -> bool {
        may_equal(self.database.as_deref(), name)
    }

    fn has_table(&self, name: &str) -> bool {
        may_equal(self.table.as_deref(), name)
    }
}

/// Whether a name may be equal to the one that is asked for, in any collation.
fn may_equal(asked: Option<&str>, name: &str) -> bool {
    let Some(asked) = asked else {
        return true;
    };
    let is_plain = |name: &str| name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_same = || asked.trim_end().eq_ignore_ascii_case(name.trim_end());
    !is_plain(asked) || !is_plain(name) || is_same()
}

/// The columns of a virtual table that a kept plan may read; `None` of any other table.
pub(crate) fn shape_of_definitions(
    database: &str,
    table: &str,
    session: &Session,
) -> Result<Option<SchemaRef>> {
    let rows = rows_of_definitions(database, table, session, &AskedTables::none())?;
    Ok(rows.map(|rows| rows.schema_of_table()))
}

/// The rows of such a table, as far as they are asked for.
pub(crate) fn rows_of_definitions(
    database: &str,
    table: &str,
    session: &Session,
    asked: &AskedTables,
) -> Result<Option<Rows>> {
    let table = table.to_ascii_uppercase();
    match is_information_schema(database) && OF_DEFINITIONS.contains(&table.as_str()) {
        true => rows_of(&table, session, asked),
        false => Ok(None),
    }
}

/// The rows of a virtual table as of now; `None` if there is none of this name in a database that is not virtual.
///
/// # Errors
/// 1109 for an unknown table of `information_schema`, 1146 for one of `performance_schema`.
pub(crate) fn virtual_table(
    database: &str,
    table: &str,
    session: &Session,
) -> Result<Option<(SchemaRef, RecordBatch)>> {
    if is_system_table(database, table) {
        let rows = system_table(table, session);
        let made = rows.map(|rows| Ok((rows.schema_of_table(), rows.batch_of_table()?)));
        return made.transpose();
    }
    if !is_virtual_database(database) {
        return Ok(None);
    }
    if !is_information_schema(database) {
        let rows = match database.eq_ignore_ascii_case(sys::NAME) {
            true => sys_view(table)?.rows(session)?,
            false => performance_schema::rows_of(table, session)?,
        };
        return Ok(Some((rows.schema_of_table(), rows.batch_of_table()?)));
    }
    let all = AskedTables::default();
    let rows = rows_of(&table.to_ascii_uppercase(), session, &all)?.ok_or_else(|| {
        SqlError::new(
            codes::UNKNOWN_TABLE,
            format!("Unknown table '{table}' in {NAME}"),
        )
    })?;
    Ok(Some((rows.schema_of_table(), rows.batch_of_table()?)))
}

/// A view of `sys`.
///
/// # Errors
/// 1146 for an unknown one.
fn sys_view(name: &str) -> Result<&'static VirtualTable> {
    let found = VirtualTable::named(&sys::TABLES, name);
    found.ok_or_else(|| SqlError::no_such_table(sys::NAME, name))
}

/// The columns of a table whose rows are made, without its rows; `None` if there is none of this name.
pub(super) fn shape_of_virtual(
    database: &str,
    table: &str,
    session: &Session,
) -> Result<Option<Rows>> {
    if is_information_schema(database) {
        return rows_of(&table.to_ascii_uppercase(), session, &AskedTables::none());
    }
    Ok(match database.eq_ignore_ascii_case(sys::NAME) {
        true => Some(sys_view(table)?.shape()),
        false => Some(performance_schema::shape_of(table)?),
    })
}

/// The tables whose rows are made, of the databases that are asked for and that the session may know of. Those of
/// `mysql` are not among them.
fn virtual_tables(client: &Client, asked: &AskedTables) -> Vec<(&'static str, &'static str)> {
    let all = [
        (NAME, table_names()),
        (performance_schema::NAME, performance_schema::table_names()),
        (
            sys::NAME,
            sys::TABLES.iter().map(|table| table.name).collect(),
        ),
    ];
    let mut found = Vec::new();
    for (database, tables) in all {
        if asked.has_database(database) && client.sees_database(database) {
            let tables = tables.into_iter();
            let tables = tables.filter(|table| asked.has_table(table));
            found.extend(tables.map(|table| (database, table)));
        }
    }
    found
}

fn rows_of(table: &str, session: &Session, asked: &AskedTables) -> Result<Option<Rows>> {
    if let Some((_, columns)) = EMPTY.iter().find(|(name, _)| *name == table) {
        return Ok(Some(Rows::new(columns.iter().copied())));
    }
    let (client, engine) = (&session.client, &*session.engine);
    Ok(Some(match table {
        "SCHEMATA" => tables::schemata(session),
        "TABLES" => tables::tables(session, asked)?,
        "VIEWS" => views::views(session, asked)?,
        "COLUMNS" => columns::columns(session, asked)?,
        "COLUMN_STATISTICS" => columns::column_statistics(session, asked)?,
        "SHEAF_RESIDENCY" => columns::residency(session, asked)?,
        "STATISTICS" => columns::statistics(session, asked)?,
        "KEY_COLUMN_USAGE" => constraints::key_column_usage(session, asked)?,
        "TABLE_CONSTRAINTS" => constraints::table_constraints(session, asked)?,
        "REFERENTIAL_CONSTRAINTS" => constraints::referential_constraints(session, asked)?,
        "CHECK_CONSTRAINTS" => constraints::check_constraints(session, asked)?,
        "INNODB_CMP" => storage::compressed_pages(),
        "INNODB_CMPMEM" => storage::compressed_pages_in_memory(),
        "INNODB_METRICS" => storage::metrics(engine),
        "INNODB_TABLESPACES" => storage::spaces(session, asked)?,
        "INNODB_TRX" => storage::transactions(session),
        "ENGINES" => engine_rows(),
        "CHARACTER_SETS" => character_sets::character_sets(),
        "COLLATIONS" => character_sets::collations(),
        "COLLATION_CHARACTER_SET_APPLICABILITY" => character_sets::applicability(),
        "OPTIMIZER_TRACE" => sessions::optimizer_trace(&session.traces),
        "PROCESSLIST" => sessions::processlist(client, engine),
        "RESOURCE_GROUPS" => resource_groups(client, engine),
        "USER_PRIVILEGES" => accounts::user_privileges(client, engine),
        "SCHEMA_PRIVILEGES" => accounts::schema_privileges(client, engine),
        "TABLE_PRIVILEGES" => accounts::table_privileges(client, engine),
        "COLUMN_PRIVILEGES" => accounts::column_privileges(client, engine),
        "APPLICABLE_ROLES" => accounts::applicable_roles(client, engine),
        "ADMINISTRABLE_ROLE_AUTHORIZATIONS" => {
            accounts::administrable_role_authorizations(client, engine)
        }
        "ENABLED_ROLES" => accounts::enabled_roles(client, engine),
        "ROLE_TABLE_GRANTS" => accounts::role_table_grants(client),
        "ROLE_COLUMN_GRANTS" => accounts::role_column_grants(client),
        "GLOBAL_VARIABLES" => name_values(engine.globals().all(true)),
        "SESSION_VARIABLES" => name_values(session.shown_variables()),
        "GLOBAL_STATUS" => name_values(status_entries(session, true)),
        "SESSION_STATUS" => name_values(status_entries(session, false)),
        _ => return Ok(None),
    }))
}

fn name_values(entries: Vec<(&'static str, String)>) -> Rows {
    let mut rows = Rows::new([
        ("VARIABLE_NAME", TEXT),
        ("VARIABLE_VALUE", Cells::Text(1024)),
    ]);
    for (name, value) in entries {
        rows.push(vec![name.to_ascii_uppercase().into(), value.into()]);
    }
    rows
}

/// The same for views.
fn for_each_view(
    session: &Session,
    asked: &AskedTables,
    mut visit: impl FnMut(&ViewDefinition),
) -> Result<()> {
    let databases = session
        .statement
        .definitions
        .databases(session.engine.catalog());
    for database in databases {
        if !asked.has_database(&database.name) {
            continue;
        }
        for view in &database.views {
            let name = &view.definition.name;
            session.handle.cancel_flag().check()?;
            if asked.has_table(name) && session.client.sees_table(&database.name, name) {
                visit(&view.definition);
            }
        }
    }
    Ok(())
}

/// Calls for every table of every database that is asked for and that the session may know of, in order of their names.
fn for_each_table(
    session: &Session,
    asked: &AskedTables,
    mut visit: impl FnMut(&Table) -> Result<()>,
) -> Result<()> {
    for database in session
        .statement
        .definitions
        .databases(session.engine.catalog())
    {
        if !asked.has_database(&database.name) {
            continue;
        }
        for table in &database.tables {
            let name = &table.definition.name;
            session.handle.cancel_flag().check()?;
            if asked.has_table(name) && session.client.sees_table(&database.name, name) {
                visit(table)?;
            }
        }
    }
    Ok(())
}
