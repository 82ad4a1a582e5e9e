//! Copies the rows of a table that is altered [while others change rows](crate::build::build_beside).
//!
//! ```text
//!   rows of snapshot S0 --> conversion --> load of new trees
//!   a row that differs at S1:  its old state --> conversion --> its key in the copy: delete
//!                              its new state --> conversion --> insert, when all old states of the round have gone
//! ```
//!
//! So rows may change places in unique keys, and a duplicate that an insert meets is one of the rows of one snapshot.
//!
//! The copy is a table of its own, which nobody else knows: its deletes and inserts keep its indexes and long values as
//! those of any table. A row is found in it by its primary key, which is converted like all values. So both tables have
//! a primary key, and what new columns hold must follow from the row: no AUTO_INCREMENT that begins, no expression that
//! may give something else the next time. [`is_possible_beside`] says what is copied so.
//!
//! Of an old state only the key is converted, if the key is made of values alone: long values are not read for it.
//!
//! Rows that come meanwhile are converted, tested for CHECKs, and refused, like those that were there.

use std::sync::Arc;
use std::time::Instant;

use sheaf_storage::{ReadView, Transaction, TreeId};
use sheaf_types::Value;

use crate::build::alter_options::AlterOptions;
use crate::build::alteration::Alteration;
use crate::build::altered_definition::AlteredDefinition;
use crate::build::build_beside::{
    BesideTarget, RoundEnd, RowChange, SeenRow, Step, WORK_BETWEEN_CHECKS,
};
use crate::build::external_sort::ExternalSort;
use crate::build::table_copy::Conversion;
use crate::catalog::Catalog;
use crate::definition::schema::{Column, TableDefinition};
use crate::error::{Result, TableError};
use crate::progress::Progress;
use crate::table::{Table, TableState};

/// Whether the rows of a table can be copied while others change them.
pub(crate) fn is_possible_beside(
    old: &TableDefinition,
    altered: &AlteredDefinition,
    changes: &[Alteration],
) -> bool {
    let next = &altered.definition;
    let is_alone = |change: &Alteration| match change {
        // Other tables would have to follow, or to be looked at.
        Alteration::RenameTo { .. }
        | Alteration::RenameColumn { .. }
        | Alteration::AddForeignKey { .. }
        | Alteration::SetAutoIncrement(_) => false,
        Alteration::ChangeColumn { name, new, .. } => *name == new.name,
        _ => true,
    };
    let follows = |(column, source): (&Column, &Option<usize>)| match source {
        Some(source) => old.columns[*source].auto_increment || !column.auto_increment,
        None => !column.auto_increment && column.default_expression().is_none(),
    };
    altered.work.copies()
        && !old.is_temporary()
        && !old.has_hidden_row_id()
        && !next.has_hidden_row_id()
        && altered.to_check.is_empty()
        && changes.iter().all(is_alone)
        && next.columns.iter().zip(&altered.sources).all(follows)
}

/// How the primary key of a row's copy follows from the row.
struct KeyConversion {
    /// Columns of the copy.
    columns: Vec<usize>,
    /// Columns of the table that they are made of.
    sources: Vec<usize>,
}

impl KeyConversion {
    /// `None`: it takes more than a conversion of values.
    fn new(
        new: &Table,
        altered: &AlteredDefinition,
        conversion: &Conversion,
    ) -> Option<KeyConversion> {
        let parts = &new.definition.primary.parts;
        let columns: Vec<usize> = parts.iter().map(|part| part.column).collect();
        if columns.iter().any(|column| conversion.computes(*column)) {
            return None;
        }
        let sources = columns.iter().filter_map(|column| altered.sources[*column]);
        Some(KeyConversion {
            sources: sources.collect(),
            columns,
        })
    }
}

/// See the [module](self).
pub(crate) struct TableCopy {
    /// The table as the session sees it.
    old: Table,
    /// The copy, as the session sees it.
    new: Table,
    pub(crate) state: Arc<TableState>,
    pub(crate) conversion: Conversion,
    /// `None`: the primary key of a row's copy is computed.
    key: Option<KeyConversion>,
    /// Keys of rows of the round that are there.
    arrivals: Option<ExternalSort>,
}

impl TableCopy {
    /// Copies the rows that a view sees, and names the trees in the altered definition. `made`: trees that were made,
    /// also if it fails.
    ///
    /// # Errors
    /// As [`Catalog::copy_rows`], and those of the test of the options.
    pub(crate) fn load(
        catalog: &Catalog,
        table: &Table,
        altered: &mut AlteredDefinition,
        options: &AlterOptions,
        view: &ReadView,
        progress: &dyn Progress,
        made: &mut Vec<TreeId>,
    ) -> Result<TableCopy> {
        let mut conversion = Conversion::new(table, altered, options);
        conversion.test.clone_from(&options.row_test);
        let of_view = (&mut conversion, view);
        let state = catalog.copy_rows_at(table, altered, of_view, options, progress, made)?;
        let zone = options.mode.time_zone;
        let definition = altered.definition.clone().in_time_zone(zone);
        let new = Table::open(
            catalog.storage(),
            catalog.memory(),
            definition,
            Arc::clone(&state),
        )?;
        Ok(TableCopy {
            old: table.seen_in(zone),
            key: KeyConversion::new(&new, altered, &conversion),
            new,
            state,
            conversion,
            arrivals: None,
        })
    }

    /// AUTO_INCREMENT goes on where it is. Others are locked out.
    pub(crate) fn take_over_numbers(
        &self,
        table: &Table,
        altered: &AlteredDefinition,
    ) -> Result<()> {
        let column = table.definition.auto_increment_column();
        let goes_on = column.and_then(|column| altered.position_of(column));
        if let (Some(_), Some(next)) = (goes_on, table.next_auto_increment()?) {
            self.state.auto_increment.restore(next);
        }
        Ok(())
    }
}

impl BesideTarget for TableCopy {
    fn catching_up(&self) -> &'static str {
        "bringing changes to the copy"
    }

    fn begin_round(&mut self, later: ExternalSort) {
        self.arrivals = Some(later);
    }

    fn bring(&mut self, change: &RowChange<'_>, transaction: &mut Transaction) -> Result<()> {
        if let Some(SeenRow { view, bytes }) = change.before {
            let row = self.old.view(bytes)?;
            let copied = match &self.key {
                Some(key) => {
                    let of_row = 0..self.old.definition.columns.len();
                    let is_left_out =
                        |column: &usize| row.is_overflow(*column) && !key.sources.contains(column);
                    let left_out: Vec<usize> = of_row.filter(is_left_out).collect();
                    let row = self.old.decode_row_without(view, &row, &left_out)?;
                    self.conversion.convert_some(row, &key.columns)?
                }
                None => {
                    let row = self.old.decode_row_at(view, &row)?;
                    self.conversion.convert_again(row)?
                }
            };
            let key = self.new.encode_primary_key(&copied);
            if !self.new.delete(transaction, &key)? {
                let detail = "the copy that is being made lacks a row";
                return Err(TableError::corrupt(&self.old.definition.name, detail));
            }
        }
        match &mut self.arrivals {
            Some(arrivals) if change.after.is_some() => arrivals.push(change.primary_key, &[]),
            _ => Ok(()),
        }
    }

    fn end_round(&mut self, round: &RoundEnd<'_>) -> Result<()> {
        let Some(arrivals) = self.arrivals.take() else {
            return Ok(());
        };
        let mut arrivals = arrivals.finish(round.sort_bytes)?;
        let mut bytes = Vec::new();
        let mut is_left = arrivals.advance()?;
        let mut checked = Instant::now();
        while is_left {
            let mut step = Step::begin(round.storage);
            while is_left && !step.is_long() {
                let (key, _) = arrivals.entry();
                if !self.old.clustered.get_at(round.view, key, &mut bytes)? {
                    let detail = "a row is gone from a snapshot";
                    return Err(TableError::corrupt(&self.old.definition.name, detail));
                }
                let row = self.old.view(&bytes)?;
                let row = self.old.decode_row_at(round.view, &row)?;
                let copied = self.conversion.convert(row)?;
                self.new.insert_copied(&mut step.transaction, &copied)?;
                let strings = copied.iter().map(Value::string_bytes);
                step.brought(bytes.len() + strings.sum::<usize>());
                if checked.elapsed() >= WORK_BETWEEN_CHECKS {
                    if round.progress.is_cancelled() {
                        return Err(TableError::Interrupted);
                    }
                    checked = Instant::now();
                }
                is_left = arrivals.advance()?;
            }
            step.end()?;
            if round.progress.is_cancelled() {
                return Err(TableError::Interrupted);
            }
        }
        Ok(())
    }
}
