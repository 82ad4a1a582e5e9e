//! What a changed row gets and has to keep: generated columns, CHECKs, and the conditions of views.

use std::sync::Arc;

use sheaf_table::{Table, TableDefinition};
use sheaf_types::Value;
use sheaf_types::assignment::Mode;

use super::generated_columns::GeneratedColumns;
use super::table_checks::{TableChecks, are_kept, refusal_of};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::warnings::Warnings;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct RowRules {
    generated: Option<GeneratedColumns>,
    checks: Vec<TableChecks>,
}

impl RowRules {
    /// Whether the rows of a table have some.
    pub(crate) fn are_there(definition: &TableDefinition) -> bool {
        definition.has_generated_columns() || definition.has_enforced_checks()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.generated.is_none() && self.checks.is_empty()
    }

    /// Whether they look at a column, or compute it. Others need not be read: one may be long.
    pub(crate) fn need(&self, column: usize) -> bool {
        let mut generated = self.generated.iter();
        generated.any(|generated| generated.need(column))
            || self.checks.iter().any(|checks| checks.need(column))
    }

    /// Rows have to keep these, too, behind all others.
    pub(crate) fn add_checks(&mut self, checks: Option<TableChecks>) {
        self.checks.extend(checks);
    }

    /// Computes the generated columns of a row whose columns had other values before; why it may not be written, if it
    /// may not.
    pub(crate) fn complete(
        &self,
        old: &[Value],
        row: &mut [Value],
        row_number: u64,
        warnings: &mut Warnings,
    ) -> Result<Option<SqlError>> {
        if let Some(generated) = &self.generated {
            generated.fill_changed(old, row, row_number, warnings)?;
        }
        refusal_of(&self.checks, row)
    }

    /// As [`Self::complete`], of many rows at once, each with what it was before and its number. False: one of them
    /// cannot be computed, or may not be written. They are to be completed one by one.
    pub(crate) fn complete_all(
        &self,
        rows: &mut [Vec<Value>],
        before: &[(&[Value], u64)],
        warnings: &mut Warnings,
    ) -> bool {
        let mark = warnings.mark();
        let mut generated = self.generated.iter();
        let are_complete = generated
            .all(|generated| generated.fill_all_changed(rows, before, warnings).is_ok())
            && are_kept(&self.checks, rows);
        if !are_complete {
            warnings.back_to(mark);
        }
        are_complete
    }
}

/// The rules of a table's rows, for a statement that changes some. What they find wrong with values is an error or
/// a warning as it is for the values that the statement gives.
pub(crate) fn row_rules(session: &Session, table: &Arc<Table>, mode: Mode) -> Result<RowRules> {
    if !RowRules::are_there(&table.definition) {
        return Ok(RowRules::default());
    }
    if mode.strict {
        session.findings.refuse();
    }
    session
        .findings
        .watch_divisions(session.variables.sql_mode());
    Ok(RowRules {
        generated: session.generated_columns(table, mode)?,
        checks: session.table_checks(table)?.into_iter().collect(),
    })
}
