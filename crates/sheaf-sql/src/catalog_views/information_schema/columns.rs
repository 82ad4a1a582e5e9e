//! Columns and indexes of tables: COLUMNS, COLUMN_STATISTICS, STATISTICS, SHEAF_RESIDENCY.

use sheaf_access::TYPE_KEY;
use sheaf_table::{Column, Index, IndexPart, Table};
use sheaf_types::ColumnType;
use sheaf_types::labels::longest_text;

use super::{
    AskedTables, LONG_TEXT, NAMES, NUMBER, TEXT, for_each_table, for_each_view, shape_of_virtual,
    virtual_tables,
};
use crate::catalog_views::catalog_text::{
    column_default, column_key, generation_extra, numeric_precision, octet_length,
};
use crate::definition::column_statistics::histogram_json;
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::rights::Client;
use crate::session::Session;

pub(super) fn columns(session: &Session, asked: &AskedTables) -> Result<Rows> {
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
    for (database, table) in virtual_tables(&session.client, asked) {
        session.handle.cancel_flag().check()?;
        if let Some(shape) = shape_of_virtual(database, table, session)? {
            push_virtual_columns(&mut rows, (database, table), &shape)?;
        }
    }
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        let name = (definition.database.as_str(), definition.name.as_str());
        let key = |position| column_key(definition, position);
        push_columns(
            &session.client,
            &mut rows,
            name,
            (&definition.columns, &key),
        );
        Ok(())
    })?;
    for_each_view(session, asked, |view| {
        let name = (view.database.as_str(), view.name.as_str());
        push_columns(&session.client, &mut rows, name, (&view.columns, &|_| ""));
    })?;
    Ok(rows)
}

/// The rows of the columns of a table whose rows are made.
fn push_virtual_columns(
    rows: &mut Rows,
    (database, table): (&str, &str),
    shape: &Rows,
) -> Result<()> {
    for (position, field) in shape.schema_of_table().fields().iter().enumerate() {
        let text = field.metadata().get(TYPE_KEY);
        let ty = text.and_then(|text| ColumnType::parse(text).ok());
        let Some(ty) = ty else { continue };
        let mut row = vec![
            "def".into(),
            database.into(),
            table.into(),
            field.name().clone().into(),
            (position as u64 + 1).into(),
            Cell::Null,
            "YES".into(),
        ];
        row.extend(cells_of_type(&ty));
        row.extend(["", "", "select", "", ""].map(Cell::from));
        row.push(Cell::Null);
        rows.push(row);
    }
    Ok(())
}

/// The rows of a table's columns, or a view's; `key` says what keys a column is part of.
fn push_columns(
    client: &Client,
    rows: &mut Rows,
    (database, name): (&str, &str),
    (columns, key): (&[Column], &dyn Fn(usize) -> &'static str),
) {
    for (position, column) in columns.iter().enumerate() {
        let privileges = client.column_privileges(database, name, &column.name);
        if privileges.is_empty() || column.hidden {
            continue;
        }
        let generated = column.generated.as_ref();
        let expression = generated.map_or("", |generated| generated.expression.as_str());
        let mut row = vec![
            "def".into(),
            database.into(),
            name.into(),
            column.name.clone().into(),
            (position as u64 + 1).into(),
            column_default(column).into(),
            if column.nullable { "YES" } else { "NO" }.into(),
        ];
        row.extend(cells_of_type(&column.ty));
        row.extend([
            key(position).into(),
            generation_extra(column).into(),
            privileges.as_str().into(),
            column.comment.clone().into(),
            expression.into(),
            Cell::Null,
        ]);
        rows.push(row);
    }
}

/// The cells that a column's type says, from DATA_TYPE to COLUMN_TYPE.
fn cells_of_type(ty: &ColumnType) -> [Cell; 9] {
    let octets = octet_length(ty);
    let characters = match (ty.collation(), ty.long_bytes()) {
        _ if ty.has_labels() => longest_text(ty),
        (Some(collation), Some(most)) => Some(most / u64::from(collation.encoding().least_bytes())),
        (Some(_), None) => ty.declared_length().map(u64::from),
        (None, _) => octets,
    };
    let (precision, scale) = numeric_precision(ty);
    let fraction_digits = ty.clock_digits().map(u64::from);
    let collation = ty.collation();
    [
        ty.name().into(),
        characters.into(),
        octets.into(),
        precision.into(),
        scale.into(),
        fraction_digits.into(),
        collation.map(|collation| collation.character_set()).into(),
        collation.map(|collation| collation.name()).into(),
        ty.definition_text().into(),
    ]
}

/// Distinct values of the first parts of an index; the row count where the table was never analyzed and the index
/// is unique.
fn cardinality(table: &Table, index: &Index, parts: usize) -> Option<u64> {
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

pub(super) fn statistics(session: &Session, asked: &AskedTables) -> Result<Rows> {
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
                let mut row = vec![
                    "def".into(),
                    definition.database.clone().into(),
                    definition.name.clone().into(),
                    u64::from(!(index.unique || index.primary)).into(),
                    definition.database.clone().into(),
                ];
                row.extend(index_part_cells(table, index, (n, part)));
                rows.push(row);
            }
        }
        Ok(())
    })?;
    Ok(rows)
}

/// What STATISTICS and SHOW INDEX tell of a part of an index, from the name of the index on.
pub(crate) fn index_part_cells(
    table: &Table,
    index: &Index,
    (number, part): (usize, &IndexPart),
) -> [Cell; 13] {
    let column = &table.definition.columns[part.column];
    let expression = table.definition.key_expression(part);
    [
        index.name.clone().into(),
        (number as u64 + 1).into(),
        match expression {
            None => column.name.clone().into(),
            Some(_) => Cell::Null,
        },
        if part.descending { "D" } else { "A" }.into(),
        cardinality(table, index, number + 1).into(),
        part.prefix_length.map(u64::from).into(),
        Cell::Null,
        if column.nullable { "YES" } else { "" }.into(),
        "BTREE".into(),
        "".into(),
        index.comment.clone().into(),
        if index.invisible { "NO" } else { "YES" }.into(),
        expression.into(),
    ]
}

/// Histograms.
pub(super) fn column_statistics(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("SCHEMA_NAME", NAMES),
        ("TABLE_NAME", NAMES),
        ("COLUMN_NAME", TEXT),
        ("HISTOGRAM", LONG_TEXT),
    ]);
    for_each_table(session, asked, |table| {
        let definition = &table.definition;
        let (database, name) = (&definition.database, &definition.name);
        for (position, column) in definition.columns.iter().enumerate() {
            // It holds values of the column.
            let client = &session.client;
            if client
                .column_privileges(database, name, &column.name)
                .is_empty()
                || column.hidden
            {
                continue;
            }
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
pub(super) fn residency(session: &Session, asked: &AskedTables) -> Result<Rows> {
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
