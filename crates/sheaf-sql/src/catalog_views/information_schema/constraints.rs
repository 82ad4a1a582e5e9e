//! Keys, foreign keys and CHECKs: KEY_COLUMN_USAGE, TABLE_CONSTRAINTS, CHECK_CONSTRAINTS, REFERENTIAL_CONSTRAINTS.

use sheaf_table::TableDefinition;

use super::{AskedTables, LONG_TEXT, NAMES, NUMBER, TEXT, for_each_table};
use crate::error::Result;
use crate::query::rows::{Cell, Rows};
use crate::rights::Client;
use crate::session::Session;

/// Whether the session has a privilege on a column. As in MySQL, of a table that is used in part, the constraints are
/// shown, and the columns of keys only where they may be used.
fn sees_column(client: &Client, table: &TableDefinition, position: usize) -> bool {
    let column = &table.columns[position].name;
    client.sees_column(&table.database, &table.name, column)
}

pub(super) fn key_column_usage(session: &Session, asked: &AskedTables) -> Result<Rows> {
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
                if definition.key_expression(part).is_some()
                    || !sees_column(&session.client, definition, part.column)
                {
                    continue;
                }
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
                if !sees_column(&session.client, definition, *column) {
                    continue;
                }
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

pub(super) fn table_constraints(session: &Session, asked: &AskedTables) -> Result<Rows> {
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

pub(super) fn check_constraints(session: &Session, asked: &AskedTables) -> Result<Rows> {
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

pub(super) fn referential_constraints(session: &Session, asked: &AskedTables) -> Result<Rows> {
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
