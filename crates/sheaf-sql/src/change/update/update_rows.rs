//! How an UPDATE changes the rows that its query has found.
//!
//! ```text
//!   found row -> amended in one visit of its leaf                              no index has what changes
//!             -> locked -> read -> new values -> generated columns, CHECKs -> written
//!                                                `-- for up to 256 rows at once --'
//! ```
//!
//! A row that is not what the statement's view shows ends all of it: the statement begins again.

use sheaf_access::IndexUse;
use sheaf_storage::{LockMode, ReadView};
use sheaf_table::{ChangeSet, RowToChange, Table};
use sheaf_types::Value;

use super::update_target::{Rules, Target};
use crate::change::find::change_query::{is_ignorable, key_of, position_of};
use crate::change::find::first_finds::Finds;
use crate::change::row_values::later_values::LaterEvaluator;
use crate::change::rules::waiting_rows::WaitingRows;
use crate::error::Result;
use crate::isolation::transaction::StatementTransaction;
use crate::query::row_spool::SpooledRows;
use crate::session::SessionHandle;
use crate::session::result::Origin;
use crate::session::warnings::Warnings;

#[derive(Clone, Copy, Default)]
pub(crate) struct Updated {
    pub(in crate::change) matched: u64,
    pub(in crate::change) changed: u64,
    /// Rows that the query found.
    pub(crate) found: usize,
}

impl Updated {
    pub(in crate::change) fn add(&mut self, other: Updated) {
        self.matched += other.matched;
        self.changed += other.changed;
        self.found += other.found;
    }
}

/// A row that is locked and gets new values.
struct Change {
    key: Vec<u8>,
    old: RowToChange,
    number: u64,
    /// The row's lock is new.
    is_new: bool,
}

/// Writes rows.
struct Writer<'a> {
    handle: &'a SessionHandle,
    locked: &'a ChangeSet,
    rules: Rules,
    updated: Updated,
    /// Rows whose generated columns and CHECKs are computed together, and those that they are then.
    changes: Vec<Change>,
    rows: WaitingRows,
}

/// Also returns the last row that the query found. `None`: a row is not what the view shows.
pub(crate) fn update_rows(
    (transaction, handle): (&mut StatementTransaction, &SessionHandle),
    (targets, locked): (&[Target], &ChangeSet),
    (mut rows, origins, view): (SpooledRows, &[Origin], &ReadView),
    mut finds: Finds,
    (rules, later): (Rules, Option<&LaterEvaluator>),
    warnings: &mut Warnings,
) -> Result<Option<(Updated, Option<Vec<Value>>)>> {
    let are_in_row_only: Vec<bool> = targets.iter().map(Target::is_in_row_only).collect();
    let mut writer = Writer {
        handle,
        locked,
        rules,
        updated: Updated::default(),
        changes: Vec::new(),
        rows: WaitingRows::default(),
    };
    // Of the rows of one table none depends on what another one has become.
    let may_wait = targets.len() == 1 && !rules.ignore && !locked.has_links();
    let mut found = Vec::new();
    let mut number = 0u64;
    while rows.next(&mut found)? {
        handle.cancel_flag().check()?;
        number += 1;
        for (target, is_in_row_only) in targets.iter().zip(&are_in_row_only) {
            let Some(key) = key_of(&found[target.key])? else {
                continue;
            };
            if !finds.next_is_first() {
                continue;
            }
            if *is_in_row_only {
                let row = (position_of(locked, &target.table)?, key, number);
                let given = (found.as_slice(), origins);
                let changed = (&mut *transaction, locked);
                if target.amend(changed, view, row, given, rules, warnings)? {
                    writer.updated.matched += 1;
                    writer.updated.changed += 1;
                    note_updated(handle, &target.table);
                    continue;
                }
            }
            let mode = LockMode::Exclusive;
            let lock = transaction.lock_row(view, &target.table, key, mode);
            let is_new = match lock {
                Ok(Some(is_new)) => is_new,
                Ok(None) => return Ok(None),
                Err(error) => {
                    // What is wrong with a row in front of it comes first.
                    writer.write_waiting(transaction, target, warnings)?;
                    return Err(error);
                }
            };
            let needs = |column: usize| target.row_rules.need(column) || target.changes(column);
            let Some(old) = target.table.read_row_to_change(key, needs)? else {
                continue;
            };
            writer.updated.matched += 1;
            let given = (found.as_slice(), origins, later);
            let mut row = match target.new_row(&old.values, given, number, rules, warnings) {
                Ok(row) => row,
                Err(error) => {
                    writer.write_waiting(transaction, target, warnings)?;
                    return Err(error);
                }
            };
            if row == old.values {
                continue;
            }
            let change = Change {
                key: key.to_vec(),
                old,
                number,
                is_new,
            };
            if may_wait && !target.row_rules.is_empty() {
                writer.rows.push(&row);
                writer.rows.count_bytes(&change.old.values);
                writer.changes.push(change);
                if writer.rows.are_many() {
                    writer.write_waiting(transaction, target, warnings)?;
                }
                continue;
            }
            writer.write_whole(transaction, target, (&change, &mut row), warnings)?;
        }
    }
    if let [target] = targets {
        writer.write_waiting(transaction, target, warnings)?;
    }
    let mut updated = writer.updated;
    handle.counters.handler_update.add(updated.changed);
    updated.found = usize::try_from(number).unwrap_or(usize::MAX);
    Ok(Some((updated, (number > 0).then_some(found))))
}

/// Counts an update at the clustered index of the table.
fn note_updated(handle: &SessionHandle, table: &Table) {
    let one = IndexUse {
        updated: 1,
        ..IndexUse::default()
    };
    handle.counters.index_uses.add(table.clustered.id(), one);
}

impl Writer<'_> {
    fn write_waiting(
        &mut self,
        transaction: &mut StatementTransaction,
        target: &Target,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let changes = std::mem::take(&mut self.changes);
        let mut waiting = std::mem::take(&mut self.rows);
        let rows = &mut waiting.rows[..waiting.count];
        let before = changes.iter();
        let before: Vec<_> = before
            .map(|change| (change.old.values.as_slice(), change.number))
            .collect();
        let are_complete = rows.len() > 1 && target.row_rules.complete_all(rows, &before, warnings);
        for (change, row) in changes.iter().zip(rows) {
            match are_complete {
                true => self.write(transaction, target, (change, row), warnings)?,
                false => self.write_whole(transaction, target, (change, row), warnings)?,
            }
        }
        waiting.forget();
        self.rows = waiting;
        Ok(())
    }

    /// Writes a row once its generated columns are computed, if it keeps the CHECKs.
    fn write_whole(
        &mut self,
        transaction: &mut StatementTransaction,
        target: &Target,
        (change, row): (&Change, &mut [Value]),
        warnings: &mut Warnings,
    ) -> Result<()> {
        let old = &change.old.values;
        let rules = &target.row_rules;
        if let Some(error) = rules.complete(old, row, change.number, warnings)? {
            if !self.rules.ignore {
                return Err(error);
            }
            warnings.warn(error.code, error.message);
            return Ok(());
        }
        self.write(transaction, target, (change, row), warnings)
    }

    fn write(
        &mut self,
        transaction: &mut StatementTransaction,
        target: &Target,
        (change, row): (&Change, &[Value]),
        warnings: &mut Warnings,
    ) -> Result<()> {
        let (key, old) = (change.key.as_slice(), &change.old);
        let table = position_of(self.locked, &target.table)?;
        let at = (key, old.untouched.as_slice());
        let changed = transaction.changes();
        match self
            .locked
            .replace_beside(changed, table, at, &old.values, row)
        {
            Ok(()) => {
                self.updated.changed += 1;
                note_updated(self.handle, &target.table);
                transaction.row_is_changed(&target.table, key, change.is_new);
            }
            Err(error) if self.rules.ignore && is_ignorable(&error) => {
                transaction.tells_of_others();
                warnings.warn(error.mysql_code(), error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
