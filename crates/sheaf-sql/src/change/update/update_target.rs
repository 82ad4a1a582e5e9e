//! A table that an UPDATE changes: what its rows become.
//!
//! Values are assigned from left to right. Where no index has the columns that change, a row is looked at, locked and
//! changed in one visit of its leaf ([`Target::amend`]), as the direct plans do it; else in three.

use std::borrow::Cow;
use std::sync::Arc;

use sheaf_storage::{MAX_ENTRY_BYTES, ReadView};
use sheaf_table::convert::default_in_row;
use sheaf_table::{ChangeSet, RowView, Table};
use sheaf_types::Value;
use sheaf_types::assignment::{Mode, current_timestamp};

use crate::change::row_values::later_values::{LaterEvaluator, without_evaluator};
use crate::change::rules::row_rules::RowRules;
use crate::change::values::assigned::assign;
use crate::error::{Result, SqlError};
use crate::isolation::transaction::StatementTransaction;
use crate::query::values::shown_in;
use crate::session::result::Origin;
use crate::session::warnings::Warnings;

/// Where a column's new value comes from when rows are written.
#[derive(Clone, Copy)]
pub(in crate::change) enum Source {
    Default,
    /// The column itself. What it holds stays, even if `sql_mode` would refuse it now.
    Itself,
    /// A column of the query.
    Query(usize),
    /// By its number among the later values.
    Later(usize),
}

/// One table that is changed.
pub(crate) struct Target {
    pub(crate) table: Arc<Table>,
    /// The query's column with the clustered key.
    pub(crate) key: usize,
    /// In the order of the assignments.
    pub(in crate::change) columns: Vec<(usize, Source)>,
    /// Columns with ON UPDATE CURRENT_TIMESTAMP that the statement does not assign.
    pub(in crate::change) stamped: Vec<usize>,
    pub(in crate::change) row_rules: RowRules,
    pub(in crate::change) reference: usize,
}

/// How values that do not fit and conflicting rows are treated.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(in crate::change) mode: Mode,
    pub(in crate::change) ignore: bool,
    pub(in crate::change) now_micros: i64,
}

impl Target {
    pub(in crate::change) fn changes(&self, column: usize) -> bool {
        let mut assigned = self.columns.iter().map(|(column, _)| column);
        assigned.any(|assigned| *assigned == column) || self.stamped.contains(&column)
    }

    /// Whether rows can be changed by [`Self::amend`]: no index has the columns that change, each gets one value, and
    /// nothing is computed from the row, which takes longer than a latch is to be held.
    pub(in crate::change) fn is_in_row_only(&self) -> bool {
        let is_later = |(_, source): &(usize, Source)| matches!(source, Source::Later(_));
        let is_again = |(at, (column, _)): (usize, &(usize, Source))| {
            let mut before = self.columns[..at].iter();
            before.any(|(before, _)| before == column)
        };
        self.row_rules.is_empty()
            && !self.columns.iter().any(is_later)
            && !self.columns.iter().enumerate().any(is_again)
            && self
                .changed()
                .all(|column| self.table.is_in_row_only(column))
    }

    fn changed(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let assigned = self.columns.iter().map(|(column, _)| *column);
        assigned.chain(self.stamped.iter().copied())
    }

    /// Changes a row that is not locked yet, if it is what the view shows and [only the row](Self::is_in_row_only)
    /// changes. False: nothing has happened, and the row is to be locked, read and changed one after the other.
    pub(in crate::change) fn amend(
        &self,
        (transaction, locked): (&mut StatementTransaction, &ChangeSet),
        view: &ReadView,
        (table, key, number): (usize, &[u8], u64),
        (found, origins): (&[Value], &[Origin]),
        rules: Rules,
        warnings: &mut Warnings,
    ) -> Result<bool> {
        let is_long = |(_, source): &(usize, Source)| match source {
            Source::Query(value) => found[*value].string_bytes() > MAX_ENTRY_BYTES,
            Source::Default | Source::Itself | Source::Later(_) => false,
        };
        if !transaction.may_change_without_locks() || self.columns.iter().any(is_long) {
            return Ok(false);
        }
        let before = warnings.mark();
        let columns = &self.table.definition.columns;
        let changes = |row: &RowView<'_>| {
            let mut values = Vec::with_capacity(self.columns.len() + self.stamped.len());
            let columns_to_set = self.columns.iter();
            let columns_to_set =
                columns_to_set.filter(|(_, source)| !matches!(source, Source::Itself));
            for (column, source) in columns_to_set {
                let given = (found, origins, None);
                let value = self.value((*column, *source), &[], given, number, rules, warnings);
                // Another transaction that has locked the row may be about to change it: an error is one if it is still
                // found under the lock.
                values.push((*column, value.ok()?));
            }
            let is_other = |(column, value): &(usize, Value)| {
                row.is_overflow(*column) || row.value(*column, &columns[*column].ty) != *value
            };
            if !self.stamped.is_empty() && values.iter().any(is_other) {
                values.extend(self.stamps(rules));
            }
            Some(values)
        };
        let row = (view, key);
        let changed = transaction.changes();
        let is_done = locked.amend(changed, table, row, self.changed(), changes)?;
        if !is_done {
            // What there was to warn of is found once more.
            warnings.back_to(before);
        }
        Ok(is_done)
    }

    /// The row as the statement wants it: `old` with the new values out of `found`, the query's row, whose columns show
    /// so many `decimals`, and from left to right.
    pub(in crate::change) fn new_row(
        &self,
        old: &[Value],
        given: (&[Value], &[Origin], Option<&LaterEvaluator>),
        number: u64,
        rules: Rules,
        warnings: &mut Warnings,
    ) -> Result<Vec<Value>> {
        let mut row = old.to_vec();
        for (column, source) in &self.columns {
            row[*column] = self.value((*column, *source), &row, given, number, rules, warnings)?;
        }
        if row != old {
            for (column, now) in self.stamps(rules) {
                row[column] = now;
            }
        }
        Ok(row)
    }

    /// What a column gets, in a row whose columns in front of it have got theirs.
    fn value(
        &self,
        (column, source): (usize, Source),
        row: &[Value],
        (found, origins, later): (&[Value], &[Origin], Option<&LaterEvaluator>),
        number: u64,
        rules: Rules,
        warnings: &mut Warnings,
    ) -> Result<Value> {
        let definition = &self.table.definition.columns[column];
        let (value, origin) = match source {
            Source::Default => {
                let default = default_in_row(definition, rules.now_micros);
                return default.ok_or_else(|| SqlError::no_default_for_field(&definition.name));
            }
            Source::Itself => return Ok(row[column].clone()),
            Source::Query(value) => (Cow::Borrowed(&found[value]), Cow::Borrowed(&origins[value])),
            Source::Later(value) => {
                let later = later.ok_or_else(without_evaluator)?;
                let (value, origin) = later.value(value, row, found)?;
                (Cow::Owned(value), Cow::Owned(origin))
            }
        };
        let value = shown_in(&value, &origin, &definition.ty);
        assign(definition, &value, rules.mode, number, warnings)
    }

    /// The columns with ON UPDATE CURRENT_TIMESTAMP, with what they get.
    fn stamps(&self, rules: Rules) -> impl Iterator<Item = (usize, Value)> + '_ {
        self.stamped.iter().map(move |column| {
            let ty = &self.table.definition.columns[*column].ty;
            (*column, current_timestamp(ty, rules.now_micros))
        })
    }
}
