//! What a definition becomes by the changes of an ALTER TABLE, before anything is done about it.
//!
//! ```text
//!   drop keys -> change, drop and place columns -> keys follow their columns -> rename and add keys -> check all
//! ```
//!
//! The changes name columns and keys as they are before the statement, but for what is added: a new key, and AFTER,
//! name columns as they will be.
//!
//! Reference: MySQL manual, "ALTER TABLE Statement".

use sheaf_types::Value;

use crate::build::alteration::{Alteration, ColumnPlace, keeps_bytes, keeps_values};
use crate::build::altered_generated::{
    check_alterations, check_named_by_defaults, computed_again, filled_again,
};
use crate::build::instant_columns::{has_room, instant_shape};
use crate::catalog::definition_check::{
    NO_TREE, check_auto_increment, check_column, check_key_lengths, check_name, check_row_length,
    check_table_name, check_unique_prefixes, check_visibility, index_for, longest_string,
    needs_overflow, resolve_index, resolve_parts, resolve_prefix,
};
use crate::definition::check_constraint::{
    self, check_against_counters, check_against_foreign_keys, resolve_check,
};
use crate::definition::foreign_key::{leading_index, resolve_foreign_key};
use crate::definition::generated_column;
use crate::definition::schema::{
    Column, DefaultValue, ForeignKey, Index, IndexPart, MAX_COLUMNS, PRIMARY, ReferentialAction,
    TableDefinition, same_name,
};
use crate::error::{Result, TableError};

/// What has to be done for a new definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlterWork {
    /// The definition is entered; no row is read.
    Definition,
    /// Indexes are built, or rows compared with those of another table.
    Index,
    /// All rows are written into new trees, each value as it is.
    Rebuild,
    /// All rows are written into new trees, and values are converted.
    Copy,
}

impl AlterWork {
    /// The table gets new trees.
    pub fn copies(self) -> bool {
        self >= AlterWork::Rebuild
    }
}

/// The outcome: a definition, and how it came about.
pub(crate) struct AlteredDefinition {
    /// New indexes have no tree yet, nor have long values in a table that had none; if the work
    /// [copies](AlterWork::copies), no index has.
    pub(crate) definition: TableDefinition,
    pub(crate) work: AlterWork,
    /// For each column its position before; `None`: it is new.
    pub(crate) sources: Vec<Option<usize>>,
    /// New foreign keys that rows and parents are to be compared with.
    pub(crate) to_check: Vec<ForeignKey>,
    /// The statement sets the next value of AUTO_INCREMENT.
    pub(crate) sets_auto_increment: bool,
    /// Generated columns that get their values anew.
    pub(crate) generated: Vec<usize>,
    /// These, or all generated columns where the rows are written anew for their own sake.
    pub(crate) filled: Vec<usize>,
}

impl AlteredDefinition {
    /// Where a column of the old definition is now; `None`: it was dropped.
    pub(crate) fn position_of(&self, old: usize) -> Option<usize> {
        self.sources.iter().position(|source| *source == Some(old))
    }

    /// The positions of several columns.
    pub(crate) fn positions_of(&self, old: &[usize]) -> Option<Vec<usize>> {
        old.iter().map(|column| self.position_of(*column)).collect()
    }
}

/// Whether the changes give a column another name, which everything that names it must follow.
pub(crate) fn renames_column(changes: &[Alteration], column: &str) -> bool {
    changes.iter().any(|change| match change {
        Alteration::RenameColumn { name, new } => same_name(name, column) && new != column,
        Alteration::ChangeColumn { name, new, .. } => same_name(name, column) && new.name != column,
        _ => false,
    })
}

/// Works out a definition. The name of the table stays. `first_index_id`: the least that was never an index's.
///
/// # Errors
/// The MySQL error for whatever is wrong with the changes.
pub(crate) fn altered_definition(
    old: &TableDefinition,
    changes: &[Alteration],
    first_index_id: u32,
) -> Result<AlteredDefinition> {
    // What the shape of rows becomes is known when the columns are.
    let mut next = TableDefinition {
        shape: None,
        ..old.clone()
    };
    drop_keys(&mut next, changes)?;
    drop_checks(&mut next, changes)?;
    check_named_by_defaults(old, changes)?;
    check_alterations(old, &next, changes)?;
    let (columns, mut sources) = altered_columns(old, &next, changes)?;
    follow_columns(old, &mut next, columns, &sources)?;
    change_visibility(old, &mut next, changes)?;
    rename_indexes(&mut next, changes)?;
    add_primary_key(&mut next, changes)?;
    let in_primary: Vec<usize> = next.primary.parts.iter().map(|part| part.column).collect();
    for (position, column) in next.columns.iter_mut().enumerate() {
        if column.auto_increment || in_primary.contains(&position) {
            column.nullable = false;
            if column.default == Some(DefaultValue::Value(Value::Null)) {
                column.default = None;
            }
        }
        if sources[position].is_none_or(|source| old.columns[source] != *column) {
            check_column(column)?;
        }
    }
    for change in changes {
        if let Alteration::AddIndex(spec) = change {
            let index = resolve_index(&mut next, spec, first_index_id)?;
            next.secondary.push(index);
        }
    }
    // Hidden columns of new indexes.
    sources.resize(next.columns.len(), None);
    check_nullability(&next)?;
    let to_check = add_foreign_keys(&mut next, changes, first_index_id)?;
    add_checks(&mut next, changes)?;
    generated_column::check_primary_key(&next)?;
    generated_column::check_foreign_keys(&next)?;
    let mut sets_auto_increment = false;
    for change in changes {
        match change {
            Alteration::SetAutoIncrement(first) => {
                next.auto_increment_start = (*first).max(1);
                sets_auto_increment = true;
            }
            Alteration::SetComment(comment) => next.comment.clone_from(comment),
            Alteration::SetCollation(collation) | Alteration::ConvertTo(collation) => {
                next.collation = *collation;
            }
            Alteration::RenameTo { table, .. } => {
                check_table_name(table)?;
            }
            _ => {}
        }
    }
    check_key_lengths(&next)?;
    check_unique_prefixes(&next)?;
    check_auto_increment(&next)?;
    check_row_length(&next)?;
    next.order_indexes();
    check_visibility(&next)?;
    let mut work = work_of(old, &next, &sources, changes);
    let generated = computed_again(old, &next, &sources);
    if !generated.is_empty() {
        work = work.max(AlterWork::Rebuild);
    }
    if work == AlterWork::Rebuild
        && generated.is_empty()
        && let Some(shape) = instant_shape(old, &next, &sources, changes)
    {
        work = AlterWork::Definition;
        next.shape = Some(shape);
    } else if !work.copies() && old.shape.is_some() {
        next.shape.clone_from(&old.shape);
        if !has_room(&next) {
            work = AlterWork::Rebuild;
        }
    }
    if work.copies() {
        next.shape = None;
        next.primary.tree = NO_TREE;
        for index in &mut next.secondary {
            index.tree = NO_TREE;
        }
        next.overflow = None;
    } else if next.overflow.is_none() && needs_overflow(&next) {
        next.overflow = Some(NO_TREE);
    }
    Ok(AlteredDefinition {
        work,
        sources,
        to_check,
        sets_auto_increment,
        filled: filled_again(&next, changes, &generated),
        generated,
        definition: next,
    })
}

fn drop_keys(next: &mut TableDefinition, changes: &[Alteration]) -> Result<()> {
    let absent = |name: &str| TableError::CannotDropIndex {
        name: name.to_string(),
    };
    for change in changes {
        match change {
            Alteration::DropIndex(name) if !same_name(name, PRIMARY) => {
                let position = next.secondary_position(name);
                next.secondary.remove(position.ok_or_else(|| absent(name))?);
            }
            Alteration::DropIndex(_) | Alteration::DropPrimaryKey => {
                if next.has_hidden_row_id() {
                    return Err(absent(PRIMARY));
                }
                next.primary.parts.clear();
                next.primary.comment.clear();
            }
            Alteration::DropForeignKey(name) => {
                let known = |key: &ForeignKey| same_name(&key.name, name);
                let position = next.foreign_keys.iter().position(known);
                next.foreign_keys
                    .remove(position.ok_or_else(|| absent(name))?);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Drops CHECKs that the statement names, and those whose only column it drops.
fn drop_checks(next: &mut TableDefinition, changes: &[Alteration]) -> Result<()> {
    for change in changes {
        if let Alteration::DropCheck(name) = change {
            let mut checks = next.checks.iter();
            let position = checks.position(|check| same_name(&check.name, name));
            let unknown = || TableError::UnknownCheck { name: name.clone() };
            next.checks.remove(position.ok_or_else(unknown)?);
        }
    }
    for change in changes {
        match change {
            Alteration::DropColumn(name) => {
                check_constraint::drop_column(&mut next.checks, name)?;
            }
            Alteration::RenameColumn { name, new } if name != new => {
                check_constraint::rename_column(&next.checks, name)?;
            }
            Alteration::ChangeColumn { name, new, .. } if !same_name(name, &new.name) => {
                check_constraint::rename_column(&next.checks, name)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds CHECKs, and turns some on or off.
fn add_checks(next: &mut TableDefinition, changes: &[Alteration]) -> Result<()> {
    for change in changes {
        match change {
            Alteration::AddCheck(spec) => {
                let check = resolve_check(next, spec)?;
                next.checks.push(check);
            }
            Alteration::EnforceCheck { name, enforced } => {
                let mut checks = next.checks.iter_mut();
                let check = checks.find(|check| same_name(&check.name, name));
                let unknown = || TableError::UnknownCheck { name: name.clone() };
                check.ok_or_else(unknown)?.enforced = *enforced;
            }
            _ => {}
        }
    }
    check_against_counters(next)?;
    check_against_foreign_keys(next)
}

/// The columns in their new order, and where each was before. `kept`: the table without the indexes that are dropped,
/// whose hidden columns go with them.
fn altered_columns(
    old: &TableDefinition,
    kept: &TableDefinition,
    changes: &[Alteration],
) -> Result<(Vec<Column>, Vec<Option<usize>>)> {
    let unknown = |column: &str| TableError::UnknownColumn {
        column: column.to_string(),
        table: old.name.clone(),
    };
    let mut columns = old.columns.clone();
    let is_unused = |position: usize| {
        old.columns[position].hidden && kept.index_of_expression(position).is_none()
    };
    let mut dropped: Vec<bool> = (0..columns.len()).map(is_unused).collect();
    // A statement drops or changes a column once.
    let mut is_done = vec![false; columns.len()];
    for change in changes {
        match change {
            Alteration::DropColumn(name) => {
                let position = old.column_position(name);
                if position.is_some_and(|position| is_done[position] && !dropped[position]) {
                    return Err(unknown(name));
                }
                let position = position.filter(|position| !is_done[*position]);
                let position =
                    position.ok_or_else(|| TableError::CannotDropIndex { name: name.clone() })?;
                (dropped[position], is_done[position]) = (true, true);
            }
            Alteration::ChangeColumn { name, .. }
            | Alteration::RenameColumn { name, .. }
            | Alteration::SetDefault { column: name, .. }
            | Alteration::ColumnVisibility { column: name, .. } => {
                let position = old.column_position(name);
                let position = position.filter(|position| !is_done[*position]);
                let position = position.ok_or_else(|| unknown(name))?;
                let column = &mut columns[position];
                is_done[position] = true;
                match change {
                    Alteration::ChangeColumn { new, .. } => column.clone_from(new),
                    Alteration::RenameColumn { new, .. } => column.name.clone_from(new),
                    Alteration::SetDefault { default, .. } => column.default.clone_from(default),
                    Alteration::ColumnVisibility { invisible, .. } => column.invisible = *invisible,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    for change in changes {
        if let Alteration::ConvertTo(collation) = change {
            for column in &mut columns {
                column.ty = column.ty.clone().converted_to(*collation);
            }
        }
    }
    for change in changes {
        if let Alteration::KeyExpressionType {
            column,
            ty,
            nullable,
        } = change
        {
            columns[*column].ty.clone_from(ty);
            columns[*column].nullable = *nullable;
        }
    }
    let mut placed: Vec<(Column, Option<usize>)> = Vec::with_capacity(columns.len());
    for (position, column) in columns.into_iter().enumerate() {
        if !dropped[position] {
            placed.push((column, Some(position)));
        }
    }
    for change in changes {
        let (column, place) = match change {
            Alteration::AddColumn { column, place } => ((column.clone(), None), place),
            Alteration::ChangeColumn {
                name,
                place: Some(place),
                ..
            } => {
                let source = old.column_position(name);
                let at = placed.iter().position(|(_, other)| *other == source);
                (placed.remove(at.ok_or_else(|| unknown(name))?), place)
            }
            _ => continue,
        };
        let at = match place {
            // Hidden columns stay behind all others.
            ColumnPlace::Last => {
                let hidden = placed.iter().position(|(column, _)| column.hidden);
                hidden.unwrap_or(placed.len())
            }
            ColumnPlace::First => 0,
            ColumnPlace::After(other) => {
                let before = |(column, _): &(Column, Option<usize>)| {
                    same_name(&column.name, other) && !column.hidden
                };
                let before = placed.iter().position(before);
                before.ok_or_else(|| unknown(other))? + 1
            }
        };
        placed.insert(at, column);
    }
    if placed.iter().all(|(column, _)| column.hidden) {
        return Err(TableError::CannotDropAllColumns);
    }
    if placed.len() > MAX_COLUMNS {
        return Err(TableError::TooManyColumns);
    }
    for (position, (column, _)) in placed.iter().enumerate() {
        let earlier = &placed[..position];
        if earlier
            .iter()
            .any(|(other, _)| same_name(&other.name, &column.name))
        {
            return Err(TableError::DuplicateColumn {
                column: column.name.clone(),
            });
        }
    }
    Ok(placed.into_iter().unzip())
}

/// Puts the columns in place. Parts of keys go with their columns, unless a new column of the same name takes the place
/// of one. Keys without parts go too; foreign keys stay whole.
fn follow_columns(
    old: &TableDefinition,
    next: &mut TableDefinition,
    columns: Vec<Column>,
    sources: &[Option<usize>],
) -> Result<()> {
    let position_of = |old: usize| sources.iter().position(|source| *source == Some(old));
    for key in &mut next.foreign_keys {
        for column in &mut key.columns {
            let needed = || TableError::ColumnNeededByForeignKey {
                column: old.columns[*column].name.clone(),
                name: key.name.clone(),
            };
            *column = position_of(*column).ok_or_else(needed)?;
        }
        // The table may be its own parent.
        if !key.refers_to(&old.database, &old.name) {
            continue;
        }
        for referenced in &mut key.referenced_columns {
            let Some(position) = old.column_position(referenced) else {
                continue;
            };
            let Some(position) = position_of(position) else {
                return Err(TableError::ColumnNeededByChild {
                    column: referenced.clone(),
                    name: key.name.clone(),
                    table: old.name.clone(),
                });
            };
            referenced.clone_from(&columns[position].name);
        }
    }
    let successor_of = |before: &Column| {
        let mut added = columns.iter().zip(sources);
        let takes_its_name = |(column, source): (&Column, &Option<usize>)| {
            source.is_none() && !before.hidden && same_name(&column.name, &before.name)
        };
        added.position(takes_its_name)
    };
    let parts = |index: &mut Index| -> Result<()> {
        let mut kept = Vec::with_capacity(index.parts.len());
        for part in &index.parts {
            let before = &old.columns[part.column];
            let (column, prefix_length) = if let Some(column) = position_of(part.column) {
                let prefix = fitting_prefix(&columns[column], part.prefix_length)?;
                (column, prefix)
            } else if let Some(column) = successor_of(before) {
                let whole =
                    longest_string(&before.ty).and_then(|length| u32::try_from(length).ok());
                let length = part.prefix_length.or(whole);
                (column, resolve_prefix(&columns[column], length)?)
            } else {
                continue;
            };
            kept.push(IndexPart {
                column,
                prefix_length,
                descending: part.descending,
            });
        }
        index.parts = kept;
        Ok(())
    };
    parts(&mut next.primary)?;
    next.secondary.iter_mut().try_for_each(parts)?;
    next.secondary.retain(|index| !index.parts.is_empty());
    next.columns = columns;
    Ok(())
}

/// A prefix that the column has become too short for is the whole column.
fn fitting_prefix(column: &Column, prefix_length: Option<u32>) -> Result<Option<u32>> {
    match resolve_prefix(column, prefix_length) {
        Err(TableError::IncorrectPrefix) => resolve_prefix(column, None),
        fitting => fitting,
    }
}

fn rename_indexes(next: &mut TableDefinition, changes: &[Alteration]) -> Result<()> {
    let mut renamed = Vec::new();
    for change in changes {
        let Alteration::RenameIndex { name, new } = change else {
            continue;
        };
        for name in [name, new] {
            if same_name(name, PRIMARY) {
                return Err(TableError::IncorrectIndexName { name: name.clone() });
            }
        }
        check_name(new, |name| TableError::IncorrectIndexName { name })?;
        let position = next.secondary_position(name);
        let position = position.ok_or_else(|| TableError::KeyDoesNotExist {
            key: name.clone(),
            table: next.name.clone(),
        })?;
        renamed.push((position, new));
    }
    // All at once, so that two may change places.
    for (position, new) in &renamed {
        next.secondary[*position].name.clone_from(new);
    }
    for (position, new) in renamed {
        let taken =
            |(other, index): (usize, &Index)| other != position && same_name(&index.name, new);
        if next.secondary.iter().enumerate().any(taken) {
            return Err(TableError::DuplicateIndex { index: new.clone() });
        }
    }
    Ok(())
}

/// Makes indexes visible or invisible that were there before, and keep their names. Error `InvisiblePrimaryKey` for
/// what is a primary key, or stands for one, whichever it is to be.
fn change_visibility(
    old: &TableDefinition,
    next: &mut TableDefinition,
    changes: &[Alteration],
) -> Result<()> {
    for change in changes {
        let Alteration::IndexVisibility { name, invisible } = change else {
            continue;
        };
        let is_new_name = |change: &Alteration| match change {
            Alteration::RenameIndex { name: renamed, .. } => same_name(renamed, name),
            _ => false,
        };
        let position = next.secondary_position(name);
        let position = position.filter(|_| !changes.iter().any(is_new_name));
        let leading = old.leading_key();
        if leading.is_some_and(|key| same_name(&key.name, name)) {
            return Err(TableError::InvisiblePrimaryKey);
        }
        let position = position.ok_or_else(|| TableError::KeyDoesNotExist {
            key: name.clone(),
            table: next.name.clone(),
        })?;
        next.secondary[position].invisible = *invisible;
    }
    Ok(())
}

fn add_primary_key(next: &mut TableDefinition, changes: &[Alteration]) -> Result<()> {
    for change in changes {
        if let Alteration::AddPrimaryKey(parts) = change {
            if !next.has_hidden_row_id() {
                return Err(TableError::MultiplePrimaryKeys);
            }
            next.primary.parts = resolve_parts(next, parts)?;
        }
    }
    Ok(())
}

/// Error `ForeignKeyNotNull` if a column is to become NULL with its parent's row, and cannot any more.
fn check_nullability(next: &TableDefinition) -> Result<()> {
    for key in &next.foreign_keys {
        let sets_null = [key.on_delete, key.on_update].contains(&ReferentialAction::SetNull);
        for column in key.columns.iter().filter(|_| sets_null) {
            let column = &next.columns[*column];
            if !column.nullable {
                return Err(TableError::ForeignKeyNotNull {
                    column: column.name.clone(),
                    name: key.name.clone(),
                });
            }
        }
    }
    Ok(())
}

/// Adds foreign keys, with the indexes that they need; returns those that are to be checked.
fn add_foreign_keys(
    next: &mut TableDefinition,
    changes: &[Alteration],
    first_index_id: u32,
) -> Result<Vec<ForeignKey>> {
    let mut to_check = Vec::new();
    for change in changes {
        if let Alteration::AddForeignKey { spec, check } = change {
            let key = resolve_foreign_key(next, spec)?;
            if leading_index(next, &key.columns).is_none() {
                let own = index_for(next, spec);
                let index = resolve_index(next, &own, first_index_id)?;
                next.secondary.push(index);
            }
            if *check {
                to_check.push(key.clone());
            }
            next.foreign_keys.push(key);
        }
    }
    Ok(to_check)
}

fn work_of(
    old: &TableDefinition,
    next: &TableDefinition,
    sources: &[Option<usize>],
    changes: &[Alteration],
) -> AlterWork {
    let mut work = AlterWork::Definition;
    for change in changes {
        work = work.max(match change {
            Alteration::AddIndex(_) | Alteration::AddForeignKey { .. } => AlterWork::Index,
            Alteration::AddCheck(spec) if spec.enforced => AlterWork::Index,
            Alteration::EnforceCheck { enforced: true, .. } => AlterWork::Index,
            Alteration::Rebuild => AlterWork::Rebuild,
            _ => AlterWork::Definition,
        });
    }
    let is_in_place = |(position, source): (usize, &Option<usize>)| *source == Some(position);
    if sources.len() != old.columns.len()
        || !sources.iter().enumerate().all(is_in_place)
        || old.primary.parts != next.primary.parts
    {
        work = work.max(AlterWork::Rebuild);
    }
    if next.has_hidden_row_id() && !old.has_hidden_row_id() {
        work = AlterWork::Copy;
    }
    for (position, (column, source)) in next.columns.iter().zip(sources).enumerate() {
        let Some(source) = source else {
            continue;
        };
        let before = &old.columns[*source];
        let is_numbered = column.auto_increment && !before.auto_increment;
        let is_defined_anew = column.generated.is_some() && column.generated != before.generated;
        if is_numbered || is_defined_anew || !keeps_values(&before.ty, &column.ty) {
            work = AlterWork::Copy;
        } else if before.nullable != column.nullable
            || !keeps_bytes(old, next, position, &before.ty)
        {
            work = work.max(AlterWork::Rebuild);
        }
    }
    work
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::definition_check::resolve_table;
    use crate::definition::schema::{CreateTable, IndexPartSpec, IndexSpec};
    use sheaf_types::ColumnType;

    fn column(name: &str, ty: &str) -> Column {
        Column::new(name, ColumnType::parse(ty).unwrap(), true)
    }

    /// `t (id INT PRIMARY KEY, a VARCHAR(10), b INT, c ENUM('x'), KEY ab (a, b), KEY b (b))`
    fn table() -> TableDefinition {
        let columns = vec![
            column("id", "int"),
            column("a", "varchar(10)"),
            column("b", "int"),
            column("c", "enum('x')"),
        ];
        let mut request = CreateTable::new("d", "t", columns);
        let parts = |names: &[&str]| {
            names
                .iter()
                .map(|name| IndexPartSpec::column(*name))
                .collect()
        };
        request.primary_key = Some(parts(&["id"]));
        for (name, columns) in [("ab", &["a", "b"][..]), ("b", &["b"][..])] {
            request.indexes.push(IndexSpec {
                name: Some(name.into()),
                parts: parts(columns),
                unique: false,
                comment: String::new(),
                invisible: false,
            });
        }
        resolve_table(1, request).unwrap()
    }

    fn change(name: &str, new: Column) -> Alteration {
        Alteration::ChangeColumn {
            name: name.into(),
            new,
            place: None,
        }
    }

    fn add(name: &str, place: ColumnPlace) -> Alteration {
        Alteration::AddColumn {
            column: column(name, "int"),
            place,
        }
    }

    fn columns(altered: &AlteredDefinition) -> Vec<&str> {
        let columns = altered.definition.columns.iter();
        columns.map(|column| column.name.as_str()).collect()
    }

    #[test]
    fn columns_are_placed_among_those_that_stay() {
        let changes = [
            add("n", ColumnPlace::First),
            Alteration::DropColumn("A".into()),
            Alteration::RenameColumn {
                name: "b".into(),
                new: "c".into(),
            },
            Alteration::RenameColumn {
                name: "c".into(),
                new: "b".into(),
            },
            add("m", ColumnPlace::After("n".into())),
            Alteration::AddColumn {
                column: column("a", "varchar(12)"),
                place: ColumnPlace::After("C".into()),
            },
        ];
        let altered = altered_definition(&table(), &changes, 1).unwrap();
        assert_eq!(columns(&altered), ["n", "m", "id", "c", "a", "b"]);
        assert_eq!(
            altered.sources,
            [None, None, Some(0), Some(2), None, Some(3)]
        );
        // The new column takes the place of the one that is gone, with as many characters.
        let parts = &altered.definition.secondary[0].parts;
        let parts = parts.iter().map(|part| (part.column, part.prefix_length));
        assert_eq!(parts.collect::<Vec<_>>(), [(4, Some(10)), (3, None)]);
        assert_eq!(altered.definition.primary.parts[0].column, 2);
    }

    #[test]
    fn an_index_goes_with_its_last_column() {
        let changes = [
            Alteration::DropColumn("a".into()),
            Alteration::DropColumn("b".into()),
            Alteration::DropColumn("id".into()),
        ];
        let altered = altered_definition(&table(), &changes, 1).unwrap();
        assert!(altered.definition.secondary.is_empty());
        assert!(altered.definition.has_hidden_row_id());
    }

    #[test]
    fn only_what_changes_rows_copies_them() {
        let mut without_null = column("b", "int");
        without_null.nullable = false;
        let mut with_default = column("b", "int");
        with_default.default = Some(DefaultValue::Value(Value::Int(7)));
        for (changes, work) in [
            (vec![change("b", with_default)], AlterWork::Definition),
            (
                vec![change("c", column("d", "enum('x','y')"))],
                AlterWork::Definition,
            ),
            (
                vec![change("c", column("c", "enum('y','x')"))],
                AlterWork::Copy,
            ),
            (
                vec![
                    Alteration::DropIndex("ab".into()),
                    change("a", column("a", "varchar(20)")),
                ],
                AlterWork::Definition,
            ),
            // Indexed: the originals of longer ones have no room in the entries.
            (
                vec![change("a", column("a", "varchar(20)"))],
                AlterWork::Definition,
            ),
            (
                vec![change("a", column("a", "varchar(600)"))],
                AlterWork::Rebuild,
            ),
            // Needs an overflow tree, an empty one.
            (
                vec![
                    Alteration::DropIndex("ab".into()),
                    change("a", column("a", "varchar(9000)")),
                ],
                AlterWork::Definition,
            ),
            (
                vec![change("a", column("a", "varchar(9)"))],
                AlterWork::Copy,
            ),
            (vec![change("b", without_null)], AlterWork::Rebuild),
            (vec![change("b", column("b", "bigint"))], AlterWork::Copy),
            (vec![add("e", ColumnPlace::Last)], AlterWork::Rebuild),
            (vec![Alteration::DropPrimaryKey], AlterWork::Copy),
            (
                vec![
                    Alteration::IndexVisibility {
                        name: "ab".into(),
                        invisible: true,
                    },
                    Alteration::ColumnVisibility {
                        column: "b".into(),
                        invisible: true,
                    },
                ],
                AlterWork::Definition,
            ),
        ] {
            let altered = altered_definition(&table(), &changes, 1).unwrap();
            assert_eq!(altered.work, work, "{changes:?}");
        }
    }

    #[test]
    fn members_behind_the_others_keep_the_rows_of_a_set() {
        let table = {
            let columns = vec![
                column("id", "int"),
                column("s", "set('1','2','3','4','5','6','7')"),
            ];
            resolve_table(1, CreateTable::new("d", "t", columns)).unwrap()
        };
        for (ty, work) in [
            (
                "set('1','2','3','4','5','6','7','8')",
                AlterWork::Definition,
            ),
            // Two bytes.
            ("set('1','2','3','4','5','6','7','8','9')", AlterWork::Copy),
            ("set('0','1','2','3','4','5','6','7')", AlterWork::Copy),
            ("enum('1','2','3','4','5','6','7')", AlterWork::Copy),
        ] {
            let altered = altered_definition(&table, &[change("s", column("s", ty))], 1).unwrap();
            assert_eq!(altered.work, work, "{ty}");
        }
    }

    #[test]
    fn what_is_wrong_is_mysqls_error() {
        let rename = |name: &str, new: &str| Alteration::RenameIndex {
            name: name.into(),
            new: new.into(),
        };
        let drop = |name: &str| Alteration::DropColumn(name.into());
        let hide_index = |name: &str| Alteration::IndexVisibility {
            name: name.into(),
            invisible: true,
        };
        let hide_column = |name: &str| Alteration::ColumnVisibility {
            column: name.into(),
            invisible: true,
        };
        for (changes, code) in [
            (vec![drop("x")], 1091),
            (vec![hide_index("x")], 1176),
            (vec![hide_index("PRIMARY")], 3522),
            (vec![hide_column("x")], 1054),
            (["id", "a", "b", "c"].map(hide_column).to_vec(), 4028),
            (vec![drop("a"), drop("a")], 1091),
            (vec![change("x", column("x", "int"))], 1054),
            (vec![add("x", ColumnPlace::After("y".into()))], 1054),
            (vec![add("B", ColumnPlace::Last)], 1060),
            (vec![drop("id"), drop("a"), drop("b"), drop("c")], 1090),
            (vec![change("a", column("a", "text"))], 1170),
            (vec![drop("a"), add("a", ColumnPlace::Last)], 1089),
            (vec![rename("x", "y")], 1176),
            (vec![rename("ab", "B")], 1061),
            (vec![rename("ab", "primary")], 1280),
            (
                vec![Alteration::AddPrimaryKey(vec![IndexPartSpec::column("b")])],
                1068,
            ),
        ] {
            let wrong = altered_definition(&table(), &changes, 1).map(|_| ());
            assert_eq!(wrong.unwrap_err().mysql_code(), code, "{changes:?}");
        }
        let swapped = [rename("ab", "b"), rename("b", "ab")];
        let altered = altered_definition(&table(), &swapped, 1).unwrap();
        assert_eq!(altered.definition.secondary[0].name, "b");
    }
}
