//! Generated columns of a table that is altered: what may be changed, and when their values are computed again. And
//! what may be changed beside defaults that name columns.
//!
//! ```text
//!   a int, b int AS (a + 1)      DROP a, RENAME a: error 3108      MODIFY a BIGINT, FORCE: b is computed again
//! ```

use crate::build::alteration::{Alteration, keeps_values};
use crate::definition::schema::{Column, GeneratedColumn, TableDefinition, same_name};
use crate::error::{Result, TableError};

/// Whether columns may be changed as a statement says.
///
/// # Errors
/// 3108 for a column that is dropped or gets another name while a generated column that stays names it, 3837 while a
/// key expression does; 3106 for changes between VIRTUAL and anything else. `kept`: the table without the indexes that
/// are dropped.
pub(crate) fn check_alterations(
    old: &TableDefinition,
    kept: &TableDefinition,
    changes: &[Alteration],
) -> Result<()> {
    let goes = |column: &Column| {
        changes.iter().any(|change| match change {
            Alteration::DropColumn(name) | Alteration::ChangeColumn { name, .. } => {
                same_name(name, &column.name)
            }
            _ => false,
        })
    };
    let stays = |(position, column): &(usize, &Column)| match column.hidden {
        true => kept.index_of_expression(*position).is_some(),
        false => !goes(column),
    };
    let stay = old.columns.iter().enumerate().filter(stays);
    let stay: Vec<(&GeneratedColumn, bool)> = stay
        .filter_map(|(_, column)| Some((column.generated.as_ref()?, column.hidden)))
        .collect();
    for change in changes {
        let gone = match change {
            Alteration::DropColumn(name) => name,
            Alteration::RenameColumn { name, new } if name != new => name,
            Alteration::ChangeColumn { name, new, .. } => {
                let position = old.column_position(name);
                if position.is_some_and(|position| changes_kind(&old.columns[position], new)) {
                    return Err(TableError::UnsupportedOnGenerated {
                        what: "Changing the STORED status",
                    });
                }
                if same_name(name, &new.name) {
                    continue;
                }
                name
            }
            _ => continue,
        };
        let mut naming = stay.iter().filter(|(generated, _)| generated.names(gone));
        if let Some((_, is_key_expression)) = naming.next() {
            let column = gone.clone();
            return Err(match is_key_expression {
                true => TableError::ColumnNeededByKeyExpression { column },
                false => TableError::ColumnNeededByGenerated { column },
            });
        }
    }
    Ok(())
}

/// Whether a column becomes VIRTUAL, or is not VIRTUAL any more.
fn changes_kind(old: &Column, new: &Column) -> bool {
    old.is_virtual() != new.is_virtual()
}

/// All generated columns if the rows are written anew because the statement says so: functions may have come to give
/// other values since the rows were written. Otherwise those whose values [change](computed_again).
pub(crate) fn filled_again(
    next: &TableDefinition,
    changes: &[Alteration],
    generated: &[usize],
) -> Vec<usize> {
    let mut changes = changes.iter();
    if !changes.any(|change| matches!(change, Alteration::Rebuild)) {
        return generated.to_vec();
    }
    let is_generated = |at: &usize| next.columns[*at].generated.is_some();
    (0..next.columns.len()).filter(is_generated).collect()
}

/// The generated columns whose values are to be computed again for the rows that are there, in their order. These are
/// the new ones, those that are defined anew, and those that name a column that may have got other values.
pub(crate) fn computed_again(
    old: &TableDefinition,
    next: &TableDefinition,
    sources: &[Option<usize>],
) -> Vec<usize> {
    if !next.has_generated_columns() {
        return Vec::new();
    }
    let is_changed = |position: usize| {
        let column = &next.columns[position];
        match sources[position] {
            None => true,
            Some(source) => {
                let before = &old.columns[source];
                !keeps_values(&before.ty, &column.ty)
                    || column.generated.is_some() && before.ty != column.ty
                    || before.nullable && !column.nullable
                    || before.generated != column.generated
            }
        }
    };
    let columns = &next.columns;
    let mut changed: Vec<bool> = (0..columns.len()).map(is_changed).collect();
    // From left to right: it may name generated columns in front of it.
    for (position, column) in columns.iter().enumerate() {
        if let Some(generated) = &column.generated {
            let mut others = columns.iter().zip(&changed);
            let names_changed =
                others.any(|(other, changed)| *changed && generated.names(&other.name));
            changed[position] |= names_changed;
        }
    }
    let is_computed = |at: &usize| changed[*at] && columns[*at].generated.is_some();
    (0..columns.len()).filter(is_computed).collect()
}

/// Error `ColumnNeededByDefault` if a default that stays names a column that is dropped or gets another name.
pub(crate) fn check_named_by_defaults(old: &TableDefinition, changes: &[Alteration]) -> Result<()> {
    let goes = |column: &Column| {
        changes.iter().any(|change| match change {
            Alteration::DropColumn(name)
            | Alteration::ChangeColumn { name, .. }
            | Alteration::SetDefault { column: name, .. } => same_name(name, &column.name),
            _ => false,
        })
    };
    let defaults = old.columns.iter().filter(|column| !goes(column));
    let defaults = defaults.filter_map(Column::default_expression);
    let named: Vec<&String> = defaults.flat_map(|default| &default.columns).collect();
    for change in changes {
        let gone = match change {
            Alteration::DropColumn(name) => name,
            Alteration::RenameColumn { name, new } if name != new => name,
            Alteration::ChangeColumn { name, new, .. } if !same_name(name, &new.name) => name,
            _ => continue,
        };
        if named.iter().any(|name| same_name(name, gone)) {
            return Err(TableError::ColumnNeededByDefault {
                column: gone.clone(),
                table: old.name.clone(),
            });
        }
    }
    Ok(())
}
