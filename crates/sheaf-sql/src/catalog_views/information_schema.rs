//! `information_schema`: tables whose rows are made from the catalog when a query names them.
//!
//! Column names, order and values are those of MySQL's manual, as far as tools read them. Tables that describe what
//! Sheaf does not have (triggers, routines, partitions) are there and empty.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use sheaf_table::{Index, Table};
use sheaf_types::ColumnType;
use sheaf_types::error::codes;

use crate::accounts;
use crate::catalog_views::catalog_text::{
    column_default, column_key, generation_extra, numeric_precision, octet_length,
};
use crate::definition::column_statistics::histogram_json;
use crate::definition::databases::VIRTUAL_COLLATION;
use crate::error::{Result, SqlError};
use crate::query::rows::{Cell, Cells, Rows};
use crate::resource_groups::resource_groups;
use crate::session::Session;
use crate::variables::{CHARACTER_SETS, COLLATIONS, character_set_of};
use crate::virtual_database::is_account_table;
pub use crate::virtual_database::{NAME, is_virtual_database};

const TEXT: Cells = Cells::Text(64);
const NAMES: Cells = Cells::Name;
const LONG_TEXT: Cells = Cells::Text(u32::MAX);
const NUMBER: Cells = Cells::Unsigned;

/// Tables that are always empty: their name and columns.
const EMPTY: [(&str, &[(&str, Cells)]); 7] = [
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
    (
        "VIEWS",
        &[
            ("TABLE_CATALOG", NAMES),
            ("TABLE_SCHEMA", NAMES),
            ("TABLE_NAME", NAMES),
            ("VIEW_DEFINITION", LONG_TEXT),
            ("CHECK_OPTION", TEXT),
            ("IS_UPDATABLE", TEXT),
            ("DEFINER", TEXT),
            ("SECURITY_TYPE", TEXT),
        ],
    ),
];

/// The tables that have rows.
const FILLED: [&str; 23] = [
    "CHARACTER_SETS",
    "CHECK_CONSTRAINTS",
    "COLLATIONS",
    "COLLATION_CHARACTER_SET_APPLICABILITY",
    "COLUMNS",
    "COLUMN_STATISTICS",
    "ENGINES",
    "GLOBAL_STATUS",
    "GLOBAL_VARIABLES",
    "KEY_COLUMN_USAGE",
    "OPTIMIZER_TRACE",
    "PROCESSLIST",
    "REFERENTIAL_CONSTRAINTS",
    "RESOURCE_GROUPS",
    "SCHEMATA",
    "SCHEMA_PRIVILEGES",
    "SESSION_STATUS",
    "SESSION_VARIABLES",
    "SHEAF_RESIDENCY",
    "STATISTICS",
    "TABLE_CONSTRAINTS",
    "TABLE_PRIVILEGES",
    "USER_PRIVILEGES",
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
    match is_virtual_database(database) && OF_DEFINITIONS.contains(&table.as_str()) {
        true => rows_of(&table, session, asked),
        false => Ok(None),
    }
}

/// The rows of a virtual table as of now; `None` if there is none of this name in a database that is not virtual.
///
/// # Errors
/// 1109 for an unknown table of `information_schema`.
pub(crate) fn virtual_table(
    database: &str,
    table: &str,
    session: &Session,
) -> Result<Option<(SchemaRef, RecordBatch)>> {
    if is_account_table(database, table) {
        let rows = accounts::mysql_user(session);
        return Ok(Some((rows.schema_of_table(), rows.batch_of_table()?)));
    }
    if !is_virtual_database(database) {
        return Ok(None);
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

fn rows_of(table: &str, session: &Session, asked: &AskedTables) -> Result<Option<Rows>> {
    if let Some((_, columns)) = EMPTY.iter().find(|(name, _)| *name == table) {
        return Ok(Some(Rows::new(columns.iter().copied())));
    }
    Ok(Some(match table {
        "SCHEMATA" => schemata(session),
        "TABLES" => tables(session, asked)?,
        "COLUMNS" => columns(session, asked)?,
        "COLUMN_STATISTICS" => column_statistics(session, asked)?,
        "SHEAF_RESIDENCY" => residency(session, asked)?,
        "STATISTICS" => statistics(session, asked)?,
        "KEY_COLUMN_USAGE" => key_column_usage(session, asked)?,
        "TABLE_CONSTRAINTS" => table_constraints(session, asked)?,
        "REFERENTIAL_CONSTRAINTS" => referential_constraints(session, asked)?,
        "CHECK_CONSTRAINTS" => check_constraints(session, asked)?,
        "ENGINES" => session.engine_rows(),
        "CHARACTER_SETS" => character_sets(),
        "COLLATIONS" => collations(),
        "COLLATION_CHARACTER_SET_APPLICABILITY" => applicability(),
        "OPTIMIZER_TRACE" => optimizer_trace(session),
        "PROCESSLIST" => processlist(session),
        "RESOURCE_GROUPS" => resource_groups(session),
        "USER_PRIVILEGES" => accounts::user_privileges(session),
        "SCHEMA_PRIVILEGES" => accounts::schema_privileges(session),
        "TABLE_PRIVILEGES" => accounts::table_privileges(session),
        "GLOBAL_VARIABLES" => name_values(session.engine.globals().all(true)),
        "SESSION_VARIABLES" => name_values(session.variables.all(false)),
        "GLOBAL_STATUS" => name_values(session.status_entries(true)),
        "SESSION_STATUS" => name_values(session.status_entries(false)),
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
            if asked.has_table(name) && session.client.sees_table(&database.name, name) {
                visit(table)?;
            }
        }
    }
    Ok(())
}

fn schemata(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("CATALOG_NAME", NAMES),
        ("SCHEMA_NAME", NAMES),
        ("DEFAULT_CHARACTER_SET_NAME", TEXT),
        ("DEFAULT_COLLATION_NAME", TEXT),
        ("SQL_PATH", TEXT),
        ("DEFAULT_ENCRYPTION", TEXT),
    ]);
    let databases = session
        .statement
        .definitions
        .databases(session.engine.catalog())
        .iter();
    let databases = databases.filter(|database| session.client.sees_database(&database.name));
    let databases = databases.map(|database| (database.name.as_str(), database.collation.name()));
    let mut databases: Vec<(&str, &str)> = databases.collect();
    databases.push((NAME, VIRTUAL_COLLATION));
    databases.sort_unstable();
    for (database, collation) in databases {
        rows.push(vec![
            "def".into(),
            database.into(),
            character_set_of(collation).into(),
            collation.into(),
            Cell::Null,
            "NO".into(),
        ]);
    }
    rows
}

fn tables(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("TABLE_CATALOG", NAMES),
        ("TABLE_SCHEMA", NAMES),
        ("TABLE_NAME", NAMES),
        ("TABLE_TYPE", TEXT),
        ("ENGINE", TEXT),
        ("VERSION", NUMBER),
        ("ROW_FORMAT", TEXT),
        ("TABLE_ROWS", NUMBER),
        ("AVG_ROW_LENGTH", NUMBER),
        ("DATA_LENGTH", NUMBER),
        ("MAX_DATA_LENGTH", NUMBER),
        ("INDEX_LENGTH", NUMBER),
        ("DATA_FREE", NUMBER),
        ("AUTO_INCREMENT", NUMBER),
        ("CREATE_TIME", TEXT),
        ("UPDATE_TIME", TEXT),
        ("CHECK_TIME", TEXT),
        ("TABLE_COLLATION", TEXT),
        ("CHECKSUM", NUMBER),
        ("CREATE_OPTIONS", Cells::Text(256)),
        ("TABLE_COMMENT", Cells::Text(1024)),
    ]);
    let virtual_tables = match asked.has_database(NAME) {
        true => table_names(),
        false => Vec::new(),
    };
    for name in virtual_tables {
        let mut row = vec![Cell::Null; 21];
        row[0] = "def".into();
        row[1] = NAME.into();
        row[2] = name.into();
        row[3] = "SYSTEM VIEW".into();
        row[20] = "".into();
        rows.push(row);
    }
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        let mut row = vec![
            "def".into(),
            definition.database.clone().into(),
            definition.name.clone().into(),
            "BASE TABLE".into(),
        ];
        row.extend(table_status(table)?);
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// What information_schema.TABLES and SHOW TABLE STATUS say of a table, from its engine on.
pub(crate) fn table_status(table: &Table) -> Result<Vec<Cell>> {
    let sizes = TableSizes::of(table)?;
    Ok(vec![
        "InnoDB".into(),
        10u64.into(),
        "Dynamic".into(),
        sizes.rows.into(),
        sizes.average_row_bytes().into(),
        sizes.data_bytes.into(),
        0u64.into(),
        sizes.index_bytes.into(),
        0u64.into(),
        table.shown_auto_increment()?.into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        table.definition.collation.name().into(),
        Cell::Null,
        "".into(),
        table.definition.comment.clone().into(),
    ])
}

/// Row count and bytes of a table.
struct TableSizes {
    rows: u64,
    data_bytes: u64,
    index_bytes: u64,
}

impl TableSizes {
    fn of(table: &Table) -> Result<TableSizes> {
        let index_bytes = table
            .secondary
            .iter()
            .map(|tree| tree.statistics().bytes)
            .sum();
        Ok(TableSizes {
            rows: table.row_count_estimate(),
            data_bytes: table.clustered.statistics().bytes,
            index_bytes,
        })
    }

    fn average_row_bytes(&self) -> u64 {
        self.data_bytes.checked_div(self.rows).unwrap_or(0)
    }
}

fn columns(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("TABLE_CATALOG", NAMES),
        ("TABLE_SCHEMA", NAMES),
        ("TABLE_NAME", NAMES),
        ("COLUMN_NAME", TEXT),
        ("ORDINAL_POSITION", NUMBER),
        ("COLUMN_DEFAULT", LONG_TEXT),
        ("IS_NULLABLE", TEXT),
        ("DATA_TYPE", LONG_TEXT),
        ("CHARACTER_MAXIMUM_LENGTH", NUMBER),
        ("CHARACTER_OCTET_LENGTH", NUMBER),
        ("NUMERIC_PRECISION", NUMBER),
        ("NUMERIC_SCALE", NUMBER),
        ("DATETIME_PRECISION", NUMBER),
        ("CHARACTER_SET_NAME", TEXT),
        ("COLLATION_NAME", TEXT),
        ("COLUMN_TYPE", LONG_TEXT),
        ("COLUMN_KEY", TEXT),
        ("EXTRA", Cells::Text(256)),
        ("PRIVILEGES", Cells::Text(154)),
        ("COLUMN_COMMENT", Cells::Text(1024)),
        ("GENERATION_EXPRESSION", LONG_TEXT),
        ("SRS_ID", NUMBER),
    ]);
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        for (position, column) in definition.columns.iter().enumerate() {
            let collation = column.ty.collation();
            let (precision, scale) = numeric_precision(&column.ty);
            let fraction_digits = match column.ty {
                ColumnType::Time { fsp }
                | ColumnType::DateTime { fsp }
                | ColumnType::Timestamp { fsp } => Some(u64::from(fsp)),
                _ => None,
            };
            let octets = octet_length(&column.ty);
            let characters = match (&column.ty, octets) {
                (ColumnType::Char { length, .. } | ColumnType::VarChar { length, .. }, _) => {
                    Some(u64::from(*length))
                }
                (ColumnType::Enum { labels, .. }, _) => labels
                    .iter()
                    .map(|label| label.chars().count() as u64)
                    .max(),
                (_, octets) => octets,
            };
            rows.push(vec![
                "def".into(),
                definition.database.clone().into(),
                definition.name.clone().into(),
                column.name.clone().into(),
                (position as u64 + 1).into(),
                column_default(column).into(),
                if column.nullable { "YES" } else { "NO" }.into(),
                column.ty.name().into(),
                characters.into(),
                octets.into(),
                precision.into(),
                scale.into(),
                fraction_digits.into(),
                collation.map(|collation| collation.character_set()).into(),
                collation.map(|collation| collation.name()).into(),
                column.ty.to_string().into(),
                column_key(definition, position).into(),
                generation_extra(column).into(),
                "select,insert,update,references".into(),
                column.comment.clone().into(),
                "".into(),
                Cell::Null,
            ]);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Distinct values of the first parts of an index; the row count where the table was never analyzed and the index
/// is unique.
pub(crate) fn cardinality(table: &Table, index: &Index, parts: usize) -> Option<u64> {
    let secondary = table
        .definition
        .secondary
        .iter()
        .position(|known| known.id == index.id && !index.primary);
    let known = table
        .distinct_prefixes(secondary)
        .and_then(|counts| counts.get(parts - 1).copied());
    known.or_else(|| {
        (index.unique || index.primary)
            .then(|| table.row_count_estimate())
            .filter(|_| parts == index.parts.len())
    })
}

fn statistics(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("TABLE_CATALOG", NAMES),
        ("TABLE_SCHEMA", NAMES),
        ("TABLE_NAME", NAMES),
        ("NON_UNIQUE", NUMBER),
        ("INDEX_SCHEMA", NAMES),
        ("INDEX_NAME", TEXT),
        ("SEQ_IN_INDEX", NUMBER),
        ("COLUMN_NAME", TEXT),
        ("COLLATION", TEXT),
        ("CARDINALITY", NUMBER),
        ("SUB_PART", NUMBER),
        ("PACKED", TEXT),
        ("NULLABLE", TEXT),
        ("INDEX_TYPE", TEXT),
        ("COMMENT", TEXT),
        ("INDEX_COMMENT", Cells::Text(1024)),
        ("IS_VISIBLE", TEXT),
        ("EXPRESSION", LONG_TEXT),
    ]);
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        for index in definition.indexes() {
            for (n, part) in index.parts.iter().enumerate() {
                let column = &definition.columns[part.column];
                rows.push(vec![
                    "def".into(),
                    definition.database.clone().into(),
                    definition.name.clone().into(),
                    u64::from(!(index.unique || index.primary)).into(),
                    definition.database.clone().into(),
                    index.name.clone().into(),
                    (n as u64 + 1).into(),
                    column.name.clone().into(),
                    if part.descending { "D" } else { "A" }.into(),
                    cardinality(table, index, n + 1).into(),
                    part.prefix_length.map(u64::from).into(),
                    Cell::Null,
                    if column.nullable { "YES" } else { "" }.into(),
                    "BTREE".into(),
                    "".into(),
                    index.comment.clone().into(),
                    "YES".into(),
                    Cell::Null,
                ]);
            }
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Histograms.
fn column_statistics(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("SCHEMA_NAME", NAMES),
        ("TABLE_NAME", NAMES),
        ("COLUMN_NAME", TEXT),
        ("HISTOGRAM", LONG_TEXT),
    ]);
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        for (position, column) in definition.columns.iter().enumerate() {
            if let Some(histogram) = histogram_json(table, position)? {
                rows.push(vec![
                    definition.database.clone().into(),
                    definition.name.clone().into(),
                    column.name.clone().into(),
                    histogram.into(),
                ]);
            }
        }
        Ok(())
    })?;
    Ok(rows)
}

/// What is in the buffer pool: of each tree of each table its pages, those in memory, and those of them that are dirty.
/// The tree of a table's rows has the name of the primary key, that of its long values none.
fn residency(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("TABLE_SCHEMA", NAMES),
        ("TABLE_NAME", NAMES),
        ("INDEX_NAME", TEXT),
        ("TREE", NUMBER),
        ("PAGES", NUMBER),
        ("RESIDENT", NUMBER),
        ("DIRTY", NUMBER),
    ]);
    let storage = session.engine.catalog().storage();
    let resident = storage.residency();
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        let indexes = std::iter::once(&definition.primary).chain(&definition.secondary);
        let trees = indexes
            .map(|index| (Some(index.name.clone()), index.tree))
            .chain(definition.overflow.map(|tree| (None, tree)));
        for (name, tree) in trees {
            let statistics = storage.tree(tree)?.statistics();
            let found = resident.get(&tree).copied().unwrap_or_default();
            rows.push(vec![
                definition.database.clone().into(),
                definition.name.clone().into(),
                name.into(),
                tree.0.into(),
                (statistics.leaf_pages + statistics.inner_pages).into(),
                found.resident.into(),
                found.dirty.into(),
            ]);
        }
        Ok(())
    })?;
    Ok(rows)
}

fn optimizer_trace(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("QUERY", LONG_TEXT),
        ("TRACE", LONG_TEXT),
        ("MISSING_BYTES_BEYOND_MAX_MEM_SIZE", NUMBER),
        ("INSUFFICIENT_PRIVILEGES", NUMBER),
    ]);
    for traced in session.traces.shown() {
        rows.push(vec![
            traced.query.clone().into(),
            traced.trace.clone().into(),
            traced.missing_bytes.into(),
            0u64.into(),
        ]);
    }
    rows
}

fn key_column_usage(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("CONSTRAINT_CATALOG", NAMES),
        ("CONSTRAINT_SCHEMA", NAMES),
        ("CONSTRAINT_NAME", TEXT),
        ("TABLE_CATALOG", NAMES),
        ("TABLE_SCHEMA", NAMES),
        ("TABLE_NAME", NAMES),
        ("COLUMN_NAME", TEXT),
        ("ORDINAL_POSITION", NUMBER),
        ("POSITION_IN_UNIQUE_CONSTRAINT", NUMBER),
        ("REFERENCED_TABLE_SCHEMA", NAMES),
        ("REFERENCED_TABLE_NAME", NAMES),
        ("REFERENCED_COLUMN_NAME", TEXT),
    ]);
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        for index in definition
            .indexes()
            .filter(|index| index.unique || index.primary)
        {
            for (n, part) in index.parts.iter().enumerate() {
                let database: Cell = definition.database.clone().into();
                let mut row = vec![
                    "def".into(),
                    database.clone(),
                    index.name.clone().into(),
                    "def".into(),
                    database,
                ];
                row.push(definition.name.clone().into());
                row.push(definition.columns[part.column].name.clone().into());
                row.push((n as u64 + 1).into());
                row.extend([Cell::Null, Cell::Null, Cell::Null, Cell::Null]);
                rows.push(row);
            }
        }
        for key in &definition.foreign_keys {
            for (n, column) in key.columns.iter().enumerate() {
                let position: Cell = (n as u64 + 1).into();
                rows.push(vec![
                    "def".into(),
                    definition.database.clone().into(),
                    key.name.clone().into(),
                    "def".into(),
                    definition.database.clone().into(),
                    definition.name.clone().into(),
                    definition.columns[*column].name.clone().into(),
                    position.clone(),
                    position,
                    key.referenced_database.clone().into(),
                    key.referenced_table.clone().into(),
                    key.referenced_columns[n].clone().into(),
                ]);
            }
        }
        Ok(())
    })?;
    Ok(rows)
}

fn table_constraints(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("CONSTRAINT_CATALOG", NAMES),
        ("CONSTRAINT_SCHEMA", NAMES),
        ("CONSTRAINT_NAME", TEXT),
        ("TABLE_SCHEMA", NAMES),
        ("TABLE_NAME", NAMES),
        ("CONSTRAINT_TYPE", TEXT),
        ("ENFORCED", TEXT),
    ]);
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        for index in definition
            .indexes()
            .filter(|index| index.unique || index.primary)
        {
            rows.push(vec![
                "def".into(),
                definition.database.clone().into(),
                index.name.clone().into(),
                definition.database.clone().into(),
                definition.name.clone().into(),
                if index.primary {
                    "PRIMARY KEY"
                } else {
                    "UNIQUE"
                }
                .into(),
                "YES".into(),
            ]);
        }
        for key in &definition.foreign_keys {
            rows.push(vec![
                "def".into(),
                definition.database.clone().into(),
                key.name.clone().into(),
                definition.database.clone().into(),
                definition.name.clone().into(),
                "FOREIGN KEY".into(),
                "YES".into(),
            ]);
        }
        for check in &definition.checks {
            rows.push(vec![
                "def".into(),
                definition.database.clone().into(),
                check.name.clone().into(),
                definition.database.clone().into(),
                definition.name.clone().into(),
                "CHECK".into(),
                if check.enforced { "YES" } else { "NO" }.into(),
            ]);
        }
        Ok(())
    })?;
    Ok(rows)
}

fn check_constraints(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("CONSTRAINT_CATALOG", NAMES),
        ("CONSTRAINT_SCHEMA", NAMES),
        ("CONSTRAINT_NAME", TEXT),
        ("CHECK_CLAUSE", LONG_TEXT),
    ]);
    for_each_table(session, asked, |table| {
        for check in &table.definition.checks {
            rows.push(vec![
                "def".into(),
                table.definition.database.clone().into(),
                check.name.clone().into(),
                format!("({})", check.expression).into(),
            ]);
        }
        Ok(())
    })?;
    Ok(rows)
}

fn referential_constraints(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("CONSTRAINT_CATALOG", NAMES),
        ("CONSTRAINT_SCHEMA", NAMES),
        ("CONSTRAINT_NAME", TEXT),
        ("UNIQUE_CONSTRAINT_CATALOG", NAMES),
        ("UNIQUE_CONSTRAINT_SCHEMA", NAMES),
        ("UNIQUE_CONSTRAINT_NAME", TEXT),
        ("MATCH_OPTION", TEXT),
        ("UPDATE_RULE", TEXT),
        ("DELETE_RULE", TEXT),
        ("TABLE_NAME", NAMES),
        ("REFERENCED_TABLE_NAME", NAMES),
    ]);
    let catalog = session.engine.catalog();
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        for key in &definition.foreign_keys {
            let parent = catalog.table(&key.referenced_database, &key.referenced_table);
            rows.push(vec![
                "def".into(),
                definition.database.clone().into(),
                key.name.clone().into(),
                "def".into(),
                key.referenced_database.clone().into(),
                parent
                    .ok()
                    .and_then(|parent| key.referenced_index(&parent.definition))
                    .into(),
                "NONE".into(),
                key.on_update.name().into(),
                key.on_delete.name().into(),
                definition.name.clone().into(),
                key.referenced_table.clone().into(),
            ]);
        }
        Ok(())
    })?;
    Ok(rows)
}

fn character_sets() -> Rows {
    let mut rows = Rows::new([
        ("CHARACTER_SET_NAME", TEXT),
        ("DEFAULT_COLLATE_NAME", TEXT),
        ("DESCRIPTION", Cells::Text(1024)),
        ("MAXLEN", NUMBER),
    ]);
    for (name, description, collation, bytes) in CHARACTER_SETS {
        rows.push(vec![
            name.into(),
            collation.into(),
            description.into(),
            u64::from(bytes).into(),
        ]);
    }
    rows
}

fn collations() -> Rows {
    collations_under([
        "COLLATION_NAME",
        "CHARACTER_SET_NAME",
        "ID",
        "IS_DEFAULT",
        "IS_COMPILED",
        "SORTLEN",
        "PAD_ATTRIBUTE",
    ])
}

/// Every collation, under the names that SHOW or the information schema gives its columns.
pub(crate) fn collations_under(headers: [&str; 7]) -> Rows {
    let cells = [TEXT, TEXT, NUMBER, TEXT, TEXT, NUMBER, TEXT];
    let mut rows = Rows::new(headers.into_iter().zip(cells));
    for (id, name) in COLLATIONS {
        let (character_set, is_default) = collation_owner(name);
        rows.push(vec![
            name.into(),
            character_set.into(),
            u64::from(id).into(),
            if is_default { "Yes" } else { "" }.into(),
            "Yes".into(),
            u64::from(id != 255).into(),
            if id == 255 || id == 63 {
                "NO PAD"
            } else {
                "PAD SPACE"
            }
            .into(),
        ]);
    }
    rows
}

/// A collation's character set, and whether it is that set's default.
pub(crate) fn collation_owner(collation: &str) -> (&str, bool) {
    let character_set = character_set_of(collation);
    let is_default = CHARACTER_SETS
        .iter()
        .any(|(set, _, default, _)| *set == character_set && *default == collation);
    (character_set, is_default)
}

fn applicability() -> Rows {
    let mut rows = Rows::new([("COLLATION_NAME", TEXT), ("CHARACTER_SET_NAME", TEXT)]);
    for (_, name) in COLLATIONS {
        rows.push(vec![name.into(), collation_owner(name).0.into()]);
    }
    rows
}

fn processlist(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("ID", NUMBER),
        ("USER", TEXT),
        ("HOST", TEXT),
        ("DB", TEXT),
        ("COMMAND", TEXT),
        ("TIME", NUMBER),
        ("STATE", TEXT),
        ("INFO", LONG_TEXT),
    ]);
    push_sessions(session, usize::MAX, &mut rows);
    rows
}

/// The sessions that this one may see, with so many characters of their statements.
pub(crate) fn push_sessions(session: &Session, longest: usize, rows: &mut Rows) {
    for other in session.engine.sessions() {
        let activity = other.activity();
        if !session.client.sees_sessions_of(&activity.user) {
            continue;
        }
        let statement = activity.statement;
        let statement = statement.map(|text| text.chars().take(longest).collect::<String>());
        rows.push(vec![
            other.id().into(),
            activity.user.into(),
            activity.host.into(),
            activity.database.into(),
            activity.command.into(),
            activity.since.elapsed().as_secs().into(),
            activity.state.into(),
            statement.into(),
        ]);
    }
}
