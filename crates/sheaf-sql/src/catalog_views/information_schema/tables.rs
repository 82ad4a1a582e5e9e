//! Databases and tables: SCHEMATA and TABLES.

use sheaf_table::Table;

use super::{
    AskedTables, NAME, NAMES, NUMBER, TEXT, for_each_table, for_each_view, virtual_tables,
};
use crate::catalog_views::{performance_schema, sys};
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;
use crate::session::database::VIRTUAL_COLLATION;
use crate::variables::character_set_of;

pub(super) fn schemata(session: &Session) -> Rows {
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
    for name in [performance_schema::NAME, sys::NAME] {
        if session.client.sees_database(name) {
            databases.push((name, VIRTUAL_COLLATION));
        }
    }
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

pub(super) fn tables(session: &Session, asked: &AskedTables) -> Result<Rows> {
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
    for (database, name) in virtual_tables(&session.client, asked) {
        let mut row = vec![Cell::Null; 21];
        let (kind, engine, comment) = match database {
            NAME => ("SYSTEM VIEW", None, ""),
            sys::NAME => ("VIEW", None, "VIEW"),
            _ => ("BASE TABLE", Some("PERFORMANCE_SCHEMA"), ""),
        };
        row[0] = "def".into();
        row[1] = database.into();
        row[2] = name.into();
        row[3] = kind.into();
        row[4] = engine.into();
        row[20] = comment.into();
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
    for_each_view(session, asked, |view| {
        let mut row = vec![
            "def".into(),
            view.database.clone().into(),
            view.name.clone().into(),
            "VIEW".into(),
        ];
        row.extend(view_status());
        rows.push(row);
    })?;
    Ok(rows)
}

/// The same of a view: it has nothing of its own.
pub(crate) fn view_status() -> Vec<Cell> {
    let mut row = vec![Cell::Null; 17];
    row[16] = "VIEW".into();
    row
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
