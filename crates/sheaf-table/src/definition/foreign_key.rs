//! Foreign keys: what one may ask for. [`ForeignKey`] is part of the [schema](crate::definition::schema).
//!
//! A foreign key says that the values of some columns of a table (the *child*) are there in some columns of another, or
//! of the same (the *parent*). Both sides have an index that begins with these columns, so that either side of a row is
//! found by one descent. What happens when rows change is in `change/change_set.rs`.
//!
//! The parent is known by name: it may be dropped and made again while the variable `foreign_key_checks` is off, as
//! dumps do.
//!
//! Reference: MySQL manual, "FOREIGN KEY Constraints".

use std::fmt::Write;

use sheaf_types::ColumnType;
use sheaf_types::number::signed_bytes_of_digits;
use sheaf_types::text::quoting::quoted_name;

use crate::definition::generated_column;
use crate::definition::schema::{
    ForeignKey, ForeignKeySpec, Index, ReferentialAction, TableDefinition, same_name,
};
use crate::error::{Result, TableError};

impl ForeignKey {
    /// True if the key refers to this table.
    pub fn refers_to(&self, database: &str, table: &str) -> bool {
        self.referenced_database == database && self.referenced_table == table
    }

    /// The parent has another name.
    pub(crate) fn refer_to(&mut self, database: &str, table: &str) {
        self.referenced_database = database.to_string();
        self.referenced_table = table.to_string();
    }

    /// The name of the parent's unique index that the key refers to; `None` if it is not unique, or not there.
    pub fn referenced_index(&self, parent: &TableDefinition) -> Option<String> {
        let columns = referenced_positions(self, parent)?;
        let index = match leading_index(parent, &columns)? {
            None => &parent.primary,
            Some(position) => &parent.secondary[position],
        };
        (index.unique || index.primary).then(|| index.name.clone())
    }

    /// The constraint as SHOW CREATE TABLE prints it.
    pub fn clause(&self, child: &TableDefinition) -> String {
        let list = |names: &mut dyn Iterator<Item = &str>| {
            names.map(quoted_name).collect::<Vec<_>>().join(", ")
        };
        let mut columns = self
            .columns
            .iter()
            .map(|column| child.columns[*column].name.as_str());
        let mut referenced = self.referenced_columns.iter().map(String::as_str);
        let mut table = quoted_name(&self.referenced_table);
        if self.referenced_database != child.database {
            table = format!("{}.{table}", quoted_name(&self.referenced_database));
        }
        let mut clause = format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {table} ({})",
            quoted_name(&self.name),
            list(&mut columns),
            list(&mut referenced),
        );
        for (event, action) in [("DELETE", self.on_delete), ("UPDATE", self.on_update)] {
            if action != ReferentialAction::NoAction {
                // Writing to a String cannot fail.
                let _ = write!(clause, " ON {event} {}", action.name());
            }
        }
        clause
    }

    /// What errors say about the constraint that failed.
    pub fn described(&self, child: &TableDefinition) -> String {
        format!(
            "{}.{}, {}",
            quoted_name(&child.database),
            quoted_name(&child.name),
            self.clause(child)
        )
    }
}

/// The index of a table that begins with these whole columns in this order: `None` inside is the primary key.
pub fn leading_index(definition: &TableDefinition, columns: &[usize]) -> Option<Option<usize>> {
    let leads = |index: &Index| {
        index.parts.len() >= columns.len()
            && index
                .parts
                .iter()
                .zip(columns)
                .all(|(part, column)| part.column == *column && part.prefix_length.is_none())
    };
    if leads(&definition.primary) {
        return Some(None);
    }
    definition.secondary.iter().position(leads).map(Some)
}

/// Positions of the referenced columns in the parent; `None` if one is missing.
pub(crate) fn referenced_positions(
    foreign_key: &ForeignKey,
    parent: &TableDefinition,
) -> Option<Vec<usize>> {
    let names = foreign_key.referenced_columns.iter();
    names.map(|name| parent.column_position(name)).collect()
}

/// Whether values of the two types are equal exactly if their encoded keys are. Keys of BIT are as long as its values,
/// and [`Lookup::new`](crate::table::reference_lookup::Lookup::new) finds none for a value that is longer.
pub(crate) fn is_comparable(child: &ColumnType, parent: &ColumnType) -> bool {
    let is_short = |ty: &ColumnType| ty.declared_length().is_some();
    if is_short(child) && is_short(parent) {
        return child.collation() == parent.collation();
    }
    if child.is_integer() && parent.is_integer() {
        return child.integer_bits() == parent.integer_bits()
            && child.is_unsigned() == parent.is_unsigned();
    }
    // With as many decimals a number has the same bytes, if both keys are of as many.
    if let (Some(digits), Some(of_parent)) = (child.decimal_digits(), parent.decimal_digits()) {
        let width = signed_bytes_of_digits;
        return digits.1 == of_parent.1 && width(digits.0) == width(of_parent.0);
    }
    if child.is_floating() || child.bit_length().is_some() {
        return child.is_same_kind(parent);
    }
    child == parent
}

/// A foreign key of a table that is being defined, checked against the table itself.
///
/// # Errors
/// The MySQL error for whatever is wrong with it.
pub(crate) fn resolve_foreign_key(
    definition: &TableDefinition,
    spec: &ForeignKeySpec,
) -> Result<ForeignKey> {
    let name = match &spec.name {
        Some(name) => name.clone(),
        None => free_name(definition),
    };
    let taken = |other: &ForeignKey| same_name(&other.name, &name);
    if definition.foreign_keys.iter().any(taken) {
        return Err(TableError::DuplicateForeignKey { name });
    }
    if spec.columns.len() != spec.referenced_columns.len() {
        return Err(TableError::ForeignKeyColumnCount { name });
    }
    let mut columns = Vec::with_capacity(spec.columns.len());
    for column in &spec.columns {
        let position = definition.column_position(column);
        let position = position.ok_or_else(|| TableError::UnknownKeyColumn {
            column: column.clone(),
        })?;
        let sets_null = [spec.on_delete, spec.on_update].contains(&ReferentialAction::SetNull);
        if sets_null && !definition.columns[position].nullable {
            return Err(TableError::ForeignKeyNotNull {
                column: column.clone(),
                name,
            });
        }
        columns.push(position);
    }
    Ok(ForeignKey {
        name,
        columns,
        referenced_database: spec.referenced_database.clone(),
        referenced_table: spec.referenced_table.clone(),
        referenced_columns: spec.referenced_columns.clone(),
        on_delete: spec.on_delete,
        on_update: spec.on_update,
    })
}

/// `table_ibfk_1`, or the next number that is free.
fn free_name(definition: &TableDefinition) -> String {
    let prefix = format!("{}_ibfk_", definition.name);
    let largest = definition
        .foreign_keys
        .iter()
        .filter_map(|other| other.name.strip_prefix(&prefix)?.parse::<u64>().ok())
        .max();
    format!("{prefix}{}", largest.unwrap_or(0) + 1)
}

/// Gives a key that was named after its table the name that goes with another name of the table.
pub(crate) fn rename_with_table(key: &mut ForeignKey, old: &str, new: &str) {
    let number = key.name.strip_prefix(&format!("{old}_ibfk_"));
    if let Some(number) = number.and_then(|number| number.parse::<u64>().ok()) {
        key.name = format!("{new}_ibfk_{number}");
    }
}

/// Checks a foreign key against its parent.
///
/// # Errors
/// `ForeignKeyMissingColumn`, `ForeignKeyOfVirtualColumn`, `ForeignKeyIncompatible`, `ForeignKeyMissingIndex`.
pub(crate) fn check_parent(
    foreign_key: &ForeignKey,
    child: &TableDefinition,
    parent: &TableDefinition,
) -> Result<()> {
    for (column, referenced) in foreign_key
        .columns
        .iter()
        .zip(&foreign_key.referenced_columns)
    {
        let Some(position) = parent.column_position(referenced) else {
            return Err(TableError::ForeignKeyMissingColumn {
                column: referenced.clone(),
                name: foreign_key.name.clone(),
                table: parent.name.clone(),
            });
        };
        generated_column::check_not_virtual(foreign_key, &parent.columns[position])?;
        let column = &child.columns[*column];
        if !is_comparable(&column.ty, &parent.columns[position].ty) {
            return Err(TableError::ForeignKeyIncompatible {
                column: column.name.clone(),
                referenced: referenced.clone(),
                name: foreign_key.name.clone(),
            });
        }
    }
    let positions = referenced_positions(foreign_key, parent);
    match positions.and_then(|positions| leading_index(parent, &positions)) {
        Some(_) => Ok(()),
        None => Err(TableError::ForeignKeyMissingIndex {
            name: foreign_key.name.clone(),
            table: parent.name.clone(),
        }),
    }
}
