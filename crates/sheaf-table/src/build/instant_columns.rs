//! Columns that are added and dropped without writing a row (ALGORITHM=INSTANT): what the [shape](RowShape) of rows
//! becomes, or that the rows must be written anew.
//!
//! They must be written anew for
//!
//! - what changes columns that stay, indexes or the primary key,
//! - new columns that are generated, numbered or without a constant that rows have instead of them,
//! - dropped strings that may be long: nothing would find their overflow pages any more,
//! - generated columns and key expressions in the table,
//! - a row that could become too long without an overflow tree.

use sheaf_types::{ColumnType, Value};

use crate::build::alteration::Alteration;
use crate::catalog::definition_check::{check_row_length, needs_overflow};
use crate::definition::row_shape::{MAX_INITIAL_BYTES, RowField, RowShape};
use crate::definition::schema::{Column, DefaultValue, Index, TableDefinition};

/// The shape of rows after the changes; `None`: rows must be written anew. `sources`: for each new column its position
/// before.
pub(crate) fn instant_shape(
    old: &TableDefinition,
    next: &TableDefinition,
    sources: &[Option<usize>],
    changes: &[Alteration],
) -> Option<RowShape> {
    let is_plain = |column: &Column| column.generated.is_none() && !column.hidden;
    let is_possible = changes.iter().all(leaves_rows)
        && old.columns.iter().chain(&next.columns).all(is_plain)
        && keeps_columns(old, next, sources)
        && keeps_indexes(old, next, sources);
    if !is_possible {
        return None;
    }
    let plain = || RowShape::plain(old.columns.len());
    let mut shape = old.shape.clone().unwrap_or_else(plain);
    let fields = shape.segments.iter_mut().flatten();
    for field in fields {
        let RowField::Column { position, .. } = field else {
            continue;
        };
        match sources.iter().position(|source| *source == Some(*position)) {
            Some(now) => *position = now,
            None => {
                let Column { ty, nullable, .. } = &old.columns[*position];
                if ty.max_bytes().is_some() && old.overflow.is_some() {
                    return None;
                }
                *field = RowField::Dropped {
                    ty: ty.clone(),
                    nullable: *nullable,
                };
            }
        }
    }
    let added = (0..next.columns.len()).filter(|position| sources[*position].is_none());
    let added = added.map(|position| {
        let initial = initial_value(&next.columns[position])?;
        Some(RowField::Column { position, initial })
    });
    let added: Vec<RowField> = added.collect::<Option<_>>()?;
    if !added.is_empty() {
        shape.segments.push(added);
    }
    let shaped = TableDefinition {
        shape: Some(shape),
        ..next.clone()
    };
    let fits = has_room(&shaped);
    let columns = next.columns.len();
    shaped.shape.filter(|shape| fits && shape.is_of(columns))
}

/// Whether rows have room in their trees, with the fields of columns that were dropped.
pub(crate) fn has_room(definition: &TableDefinition) -> bool {
    let fits = definition.overflow.is_some() || !needs_overflow(definition);
    fits && check_row_length(definition).is_ok()
}

/// Whether a change is about columns that come or go, or about what no row and no index knows of.
fn leaves_rows(change: &Alteration) -> bool {
    matches!(
        change,
        Alteration::Instantly
            | Alteration::AddColumn { .. }
            | Alteration::DropColumn(_)
            | Alteration::ChangeColumn { .. }
            | Alteration::RenameColumn { .. }
            | Alteration::SetDefault { .. }
            | Alteration::ColumnVisibility { .. }
            | Alteration::RenameIndex { .. }
            | Alteration::IndexVisibility { .. }
            | Alteration::SetComment(_)
    )
}

/// Whether the columns that stay hold what they held.
fn keeps_columns(old: &TableDefinition, next: &TableDefinition, sources: &[Option<usize>]) -> bool {
    next.columns.iter().zip(sources).all(|(column, source)| {
        let before = source.map(|source| &old.columns[source]);
        before.is_none_or(|before| {
            before.ty == column.ty
                && before.nullable == column.nullable
                && before.auto_increment == column.auto_increment
        })
    })
}

/// Whether the same columns are in all indexes that stay.
fn keeps_indexes(old: &TableDefinition, next: &TableDefinition, sources: &[Option<usize>]) -> bool {
    let is_kept = |before: &Index, index: &Index| {
        let mut parts = before.parts.iter().zip(&index.parts);
        before.tree == index.tree
            && before.unique == index.unique
            && before.parts.len() == index.parts.len()
            && parts.all(|(before, part)| {
                sources[part.column] == Some(before.column)
                    && before.prefix_length == part.prefix_length
                    && before.descending == part.descending
            })
    };
    let of_old = |index: &Index| {
        let mut earlier = old.secondary.iter();
        earlier.any(|before| before.id == index.id && is_kept(before, index))
    };
    is_kept(&old.primary, &next.primary) && next.secondary.iter().all(of_old)
}

/// What rows have that were there before the column; `None`: it is no constant, or not a short one.
fn initial_value(column: &Column) -> Option<Value> {
    if column.auto_increment {
        return None;
    }
    match &column.default {
        Some(DefaultValue::Value(Value::Null)) | None if column.nullable => Some(Value::Null),
        // Its zone is the session's.
        Some(_) if matches!(column.ty, ColumnType::Timestamp { .. }) => None,
        Some(DefaultValue::Value(Value::Null)) => None,
        Some(DefaultValue::Value(value)) => {
            let bytes = match value {
                Value::Text(text) => text.len(),
                Value::Bytes(bytes) | Value::Json(bytes) => bytes.len(),
                _ => 0,
            };
            (bytes <= MAX_INITIAL_BYTES).then(|| value.clone())
        }
        Some(DefaultValue::CurrentTimestamp | DefaultValue::Expression(_)) | None => None,
    }
}
