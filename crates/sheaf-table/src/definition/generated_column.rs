//! Generated columns: what one may ask for. [`GeneratedColumn`] is part of the [schema](crate::definition::schema).
//!
//! The values of a generated column are computed from other columns of its row whenever the row is written. They are
//! stored in it, whether the column is VIRTUAL or STORED: the expression gives the same value for the same row at any
//! time. The table floor knows the expression's text and the columns in it; the SQL floor evaluates it before a row is
//! written.
//!
//! ```text
//!   a int, b int AS (a + 1)      row (4, 5)      `(\`a\` + 1)`, of the column a
//! ```
//!
//! The text names columns in backticks and without a table, so that it stays true when the table is renamed. A column
//! that a generated column names is neither renamed nor dropped. Foreign keys do not change it: their changes are made
//! below the floor that evaluates the expression.
//!
//! Reference: MySQL manual, "CREATE TABLE and Generated Columns", "FOREIGN KEY Constraints".

use crate::definition::schema::{
    Column, ForeignKey, GeneratedColumn, GeneratedKind, ReferentialAction, TableDefinition,
    same_name,
};
use crate::error::{Result, TableError};

impl GeneratedKind {
    /// As SQL writes it.
    pub fn name(self) -> &'static str {
        match self {
            GeneratedKind::Virtual => "VIRTUAL",
            GeneratedKind::Stored => "STORED",
        }
    }
}

impl GeneratedColumn {
    /// Whether the expression names a column.
    pub fn names(&self, column: &str) -> bool {
        self.columns.iter().any(|name| same_name(name, column))
    }
}

impl TableDefinition {
    /// Whether a column has another value when this base has one: it is the base, or is generated from it.
    pub fn follows_from(&self, column: usize, base: usize) -> bool {
        // A generated column names others, and generated ones in front of it.
        let names = |generated: &GeneratedColumn| {
            let mut before = self.columns[..column].iter().enumerate();
            generated.names(&self.columns[base].name)
                || before.any(|(at, other)| {
                    other.generated.is_some()
                        && generated.names(&other.name)
                        && self.follows_from(at, base)
                })
        };
        column == base || self.columns[column].generated.as_ref().is_some_and(names)
    }
}

/// Error 3106 if a VIRTUAL column is part of the primary key.
pub(crate) fn check_primary_key(definition: &TableDefinition) -> Result<()> {
    let mut parts = definition.primary.parts.iter();
    match parts.any(|part| definition.columns[part.column].is_virtual()) {
        true => Err(TableError::UnsupportedOnGenerated {
            what: "Defining a virtual generated column as primary key",
        }),
        false => Ok(()),
    }
}

/// What a foreign key does to the columns of its child, as SQL writes it.
fn changing_clause(key: &ForeignKey) -> Option<&'static str> {
    use ReferentialAction::{Cascade, SetNull};
    match (key.on_update, key.on_delete) {
        (Cascade, _) => Some("ON UPDATE CASCADE"),
        (SetNull, _) => Some("ON UPDATE SET NULL"),
        (_, SetNull) => Some("ON DELETE SET NULL"),
        _ => None,
    }
}

/// Whether the foreign keys of a table go with its generated columns.
///
/// # Errors
/// 3733 for a VIRTUAL column; 3104 for one that the foreign key would change; 1215 for a column that a STORED column
/// names and that the foreign key changes, or deletes with its row, as in MySQL; 1235 for a column that a VIRTUAL
/// column names and that it changes.
pub(crate) fn check_foreign_keys(definition: &TableDefinition) -> Result<()> {
    for key in &definition.foreign_keys {
        let changing = changing_clause(key);
        for column in &key.columns {
            let column = &definition.columns[*column];
            check_not_virtual(key, column)?;
            if let (Some(_), Some(clause)) = (&column.generated, changing) {
                return Err(TableError::ForeignKeyChangesGenerated { clause });
            }
            let names = |kind: GeneratedKind| {
                let mut generated = definition
                    .columns
                    .iter()
                    .filter_map(|other| other.generated.as_ref());
                generated.any(|generated| generated.kind == kind && generated.names(&column.name))
            };
            let cascades = changing.is_some() || key.on_delete == ReferentialAction::Cascade;
            if cascades && names(GeneratedKind::Stored) {
                return Err(TableError::CannotAddForeignKey);
            }
            if let Some(clause) = changing.filter(|_| names(GeneratedKind::Virtual)) {
                return Err(TableError::ForeignKeyChangesBase {
                    clause,
                    column: column.name.clone(),
                });
            }
        }
    }
    Ok(())
}

/// Error 3733 if a foreign key uses a VIRTUAL column, of its child or of its parent.
pub(crate) fn check_not_virtual(key: &ForeignKey, column: &Column) -> Result<()> {
    match column.is_virtual() {
        true => Err(TableError::ForeignKeyOfVirtualColumn {
            name: key.name.clone(),
            column: column.name.clone(),
        }),
        false => Ok(()),
    }
}
