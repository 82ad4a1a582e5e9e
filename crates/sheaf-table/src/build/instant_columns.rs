//! Columns that are added and dropped without writing a row (ALGORITHM=INSTANT): what the [shape](RowShape) of rows
//! becomes, or that the rows must be written anew.
//!
//! They must be written anew for
//!
//! - what changes values of columns that stay, indexes that stay, or the primary key,
//! - new columns that are generated or numbered, whose default is an expression, or a long text,
//! - new dates without a default, where the zero date is none: whether that is an error depends on whether there are
//!   rows,
//! - a row that would have [too many parts](crate::definition::row_shape).
//!
//! A column without a default that takes no NULL is what its type has for nothing in rows that are there, and
//! CURRENT_TIMESTAMP is the time of the statement. A long value of a column that was dropped goes with its row, or with
//! the next change of it.

use sheaf_types::Value;
use sheaf_types::assignment::zero_value;

use crate::build::alteration::{Alteration, InitialValues, keeps_bytes, keeps_values};
use crate::catalog::definition_check::check_row_length;
use crate::definition::convert::default_of;
use crate::definition::row_shape::{MAX_INITIAL_BYTES, RowField, RowShape};
use crate::definition::schema::{Column, DefaultValue, Index, TableDefinition};

/// The shape of rows after the changes; `None`: rows must be written anew, or nothing is said of
/// [`Alteration::Instantly`]. `sources`: for each new column its position before. No generated column has got other
/// values.
pub(crate) fn instant_shape(
    old: &TableDefinition,
    next: &TableDefinition,
    sources: &[Option<usize>],
    changes: &[Alteration],
) -> Option<RowShape> {
    let rows = changes.iter().find_map(|change| match change {
        Alteration::Instantly(rows) => Some(rows),
        _ => None,
    })?;
    let is_possible = changes.iter().all(leaves_rows)
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
                *field = RowField::Dropped {
                    ty: ty.clone(),
                    nullable: *nullable,
                };
            }
        }
    }
    let added = (0..next.columns.len()).filter(|position| sources[*position].is_none());
    let added = added.map(|position| {
        let initial = initial_value(&next.columns[position], rows)?;
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

/// Whether a row has room in a page, with the fields of columns that were dropped, if its long values are elsewhere.
pub(crate) fn has_room(definition: &TableDefinition) -> bool {
    check_row_length(definition).is_ok()
}

/// Whether a change is about columns that come or go, or about what no row and no index knows of.
fn leaves_rows(change: &Alteration) -> bool {
    matches!(
        change,
        Alteration::Instantly(_)
            | Alteration::AddColumn { .. }
            | Alteration::DropColumn(_)
            | Alteration::ChangeColumn { .. }
            | Alteration::RenameColumn { .. }
            | Alteration::SetDefault { .. }
            | Alteration::ColumnVisibility { .. }
            | Alteration::RenameIndex { .. }
            | Alteration::IndexVisibility { .. }
            | Alteration::DropIndex(_)
            | Alteration::DropForeignKey(_)
            | Alteration::DropCheck(_)
            | Alteration::EnforceCheck {
                enforced: false,
                ..
            }
            | Alteration::SetAutoIncrement(_)
            | Alteration::SetComment(_)
            | Alteration::SetCollation(_)
            | Alteration::RenameTo { .. }
    )
}

/// Whether the columns that stay hold what they held.
fn keeps_columns(old: &TableDefinition, next: &TableDefinition, sources: &[Option<usize>]) -> bool {
    let mut columns = next.columns.iter().zip(sources).enumerate();
    columns.all(|(position, (column, source))| {
        let before = source.map(|source| &old.columns[source]);
        before.is_none_or(|before| {
            keeps_values(&before.ty, &column.ty)
                && keeps_bytes(old, next, position, &before.ty)
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
fn initial_value(column: &Column, rows: &InitialValues) -> Option<Value> {
    if column.auto_increment || column.generated.is_some() || column.default_expression().is_some()
    {
        return None;
    }
    let value = match default_of(column, rows.now_micros) {
        // The default itself is in UTC.
        Some(Value::Timestamp(local)) if column.default == Some(DefaultValue::CurrentTimestamp) => {
            Value::Timestamp(rows.time_zone.utc(local))
        }
        Some(value) => value,
        None if column.ty.has_date() && !rows.zero_date => return None,
        None => zero_value(&column.ty),
    };
    let bytes = match &value {
        Value::Null if !column.nullable => return None,
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) | Value::Json(bytes) => bytes.len(),
        _ => 0,
    };
    (bytes <= MAX_INITIAL_BYTES).then_some(value)
}
