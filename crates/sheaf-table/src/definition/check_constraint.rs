//! CHECK constraints: what one may ask for. [`CheckConstraint`] is part of the [schema](crate::definition::schema).
//!
//! A CHECK says that an expression over the columns of a row is not false. The table floor knows its text and the
//! columns in it; the SQL floor evaluates it before a row is written. `foreign_key_checks` does not turn it off; NOT
//! ENFORCED does.
//!
//! The text names columns in backticks and without a table, so that it stays true when the table is renamed. Columns
//! that a CHECK names are neither renamed nor, if it names others besides, dropped.
//!
//! Reference: MySQL manual, "CHECK Constraints".

use std::sync::Arc;

use sheaf_types::Value;
use sheaf_types::text::quoting::quoted_name;

use crate::definition::schema::{
    CheckConstraint, CheckSpec, MAX_NAME_CHARACTERS, ReferentialAction, TableDefinition, same_name,
};
use crate::error::{Result, TableError};

impl CheckConstraint {
    /// The constraint as SHOW CREATE TABLE prints it.
    pub fn clause(&self) -> String {
        let suffix = match self.enforced {
            true => "",
            false => " /*!80016 NOT ENFORCED */",
        };
        format!(
            "CONSTRAINT {} CHECK (({})){suffix}",
            quoted_name(&self.name),
            self.expression
        )
    }

    fn names(&self, column: &str) -> bool {
        self.columns.iter().any(|name| same_name(name, column))
    }
}

/// Tests rows of a table that is being altered. The name inside of an error is that of the CHECK that a row breaks.
#[derive(Clone)]
pub struct RowTest(pub Arc<Test>);

type Test = dyn Fn(&[Value]) -> Result<()> + Send + Sync;

impl std::fmt::Debug for RowTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RowTest")
    }
}

/// A CHECK of a table that is being defined.
///
/// # Errors
/// The MySQL error for whatever is wrong with it.
pub(crate) fn resolve_check(
    definition: &TableDefinition,
    spec: &CheckSpec,
) -> Result<CheckConstraint> {
    let name = match &spec.name {
        Some(name) => name.clone(),
        None => free_name(definition),
    };
    if name.chars().count() > MAX_NAME_CHARACTERS {
        return Err(TableError::NameTooLong { name });
    }
    let taken = |other: &CheckConstraint| same_name(&other.name, &name);
    if definition.checks.iter().any(taken) {
        return Err(TableError::DuplicateCheck { name });
    }
    for column in &spec.columns {
        let Some(position) = definition.column_position(column) else {
            return Err(TableError::CheckOfUnknownColumn {
                name,
                column: column.clone(),
            });
        };
        if definition.columns[position].auto_increment {
            return Err(TableError::CheckOfAutoIncrement { name });
        }
        let is_other = |own: &String| !same_name(own, column);
        if spec.of_column.as_ref().is_some_and(is_other) {
            return Err(TableError::CheckOfOtherColumn { name });
        }
    }
    Ok(CheckConstraint {
        name,
        expression: spec.expression.clone(),
        columns: spec.columns.clone(),
        enforced: spec.enforced,
    })
}

/// `table_chk_1`, or the next number that is free.
fn free_name(definition: &TableDefinition) -> String {
    let prefix = format!("{}_chk_", definition.name);
    let largest = definition
        .checks
        .iter()
        .filter_map(|other| other.name.strip_prefix(&prefix)?.parse::<u64>().ok())
        .max();
    format!("{prefix}{}", largest.unwrap_or(0) + 1)
}

/// Refuses a CHECK of a column whose values the server gives out: they are given out after the row was tested. Error
/// 3818.
pub(crate) fn check_against_counters(definition: &TableDefinition) -> Result<()> {
    for check in &definition.checks {
        for column in &check.columns {
            let position = definition.column_position(column);
            if position.is_some_and(|position| definition.columns[position].auto_increment) {
                let name = check.name.clone();
                return Err(TableError::CheckOfAutoIncrement { name });
            }
        }
    }
    Ok(())
}

/// Error `ColumnOfCheckChangesWithParent` if a foreign key changes a column that a CHECK names: such changes are made
/// below the floor that evaluates it.
pub(crate) fn check_against_foreign_keys(definition: &TableDefinition) -> Result<()> {
    let changes = |action: ReferentialAction| {
        matches!(
            action,
            ReferentialAction::Cascade | ReferentialAction::SetNull
        )
    };
    for key in &definition.foreign_keys {
        if !changes(key.on_update) && key.on_delete != ReferentialAction::SetNull {
            continue;
        }
        for column in &key.columns {
            let column = &definition.columns[*column].name;
            let mut checks = definition.checks.iter();
            if let Some(check) = checks.find(|check| check.names(column)) {
                return Err(TableError::ColumnOfCheckChangesWithParent {
                    column: column.clone(),
                    check: check.name.clone(),
                    foreign_key: key.name.clone(),
                });
            }
        }
    }
    Ok(())
}

/// The CHECKs of a table without a column: those that name it alone go with it. Error `ColumnNeededByCheck` for others.
pub(crate) fn drop_column(checks: &mut Vec<CheckConstraint>, column: &str) -> Result<()> {
    let needs = |check: &&CheckConstraint| check.names(column) && check.columns.len() > 1;
    if let Some(check) = checks.iter().find(needs) {
        return Err(TableError::ColumnNeededByCheck {
            name: check.name.clone(),
            column: column.to_string(),
        });
    }
    checks.retain(|check| !check.names(column));
    Ok(())
}

/// Error `ColumnNeededByCheck` if a CHECK names the column, which gets another name.
pub(crate) fn rename_column(checks: &[CheckConstraint], column: &str) -> Result<()> {
    match checks.iter().find(|check| check.names(column)) {
        Some(check) => Err(TableError::ColumnNeededByCheck {
            name: check.name.clone(),
            column: column.to_string(),
        }),
        None => Ok(()),
    }
}

/// Renames the CHECKs that were named after their table when the table gets another name. If the new name is that of
/// another CHECK already, it gets another number.
pub(crate) fn rename_checks_with_table(checks: &mut [CheckConstraint], old: &str, new: &str) {
    let prefix = format!("{old}_chk_");
    let number_in = |check: &CheckConstraint, prefix: &str| {
        let number = check.name.strip_prefix(prefix)?;
        number.parse::<u64>().ok()
    };
    let (renamed, kept): (Vec<_>, Vec<_>) = checks
        .iter_mut()
        .partition(|check| number_in(check, &prefix).is_some());
    let new_prefix = format!("{new}_chk_");
    let mut names: Vec<String> = kept.iter().map(|check| check.name.clone()).collect();
    let numbers = renamed.iter().filter_map(|check| number_in(check, &prefix));
    let kept_numbers = kept
        .iter()
        .filter_map(|check| number_in(check, &new_prefix));
    let mut largest = numbers.chain(kept_numbers).max().unwrap_or(0);
    for check in renamed {
        let number = number_in(check, &prefix).unwrap_or(0);
        let mut name = format!("{new_prefix}{number}");
        if names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            largest += 1;
            name = format!("{new_prefix}{largest}");
        }
        names.push(name.clone());
        check.name = name;
    }
}
