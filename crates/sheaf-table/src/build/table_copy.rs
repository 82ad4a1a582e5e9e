//! Copies the rows of a table that is altered into new trees, in the shape of its new definition.
//!
//! ```text
//!   clustered tree, in its order --> row --> conversion of each value --> load of new trees (build/tree_load.rs)
//! ```
//!
//! Rows that get numbers come in [InnoDB's order](crate::definition::schema::RowOrder), so that followers and sources
//! give them the same.
//!
//! A value goes into a column of another type as INSERT would put it there, with a few exceptions
//! ([`assign_altered`]). What the column cannot hold is an error in strict mode, and a warning otherwise. New columns
//! get their default, or what their type has for nothing. The caller holds the writer's lock; others read the old trees
//! until the new definition is entered.
//!
//! The copy has a [`TableState`] of its own: row ids and AUTO_INCREMENT begin anew, and no other session sees how far
//! they are. Memory is that of the load, and one row.
//!
//! Or others [go on writing](crate::build::table_copy_beside): then it is the rows of a snapshot that are copied.

use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, ReadAhead, ReadView, TreeId};
use sheaf_types::{
    ColumnType, Value,
    assignment::{Mode, assign_altered, current_timestamp, zero_value},
    error::{ColumnIssue, ColumnProblem},
    temporal::TimeZone,
};

use crate::build::alter_options::{AlterOptions, Altered};
use crate::build::altered_definition::AlteredDefinition;
use crate::build::tree_load::{BulkLoadOptions, TreeLoad};
use crate::catalog::Catalog;
use crate::definition::check_constraint::RowTest;
use crate::definition::convert::{RowFill, default_of};
use crate::definition::schema::{Column, RowOrder};
use crate::error::{Result, TableError};
use crate::progress::Progress;
use crate::table::auto_increment::AutoIncrementSeries;
use crate::table::{Table, TableState};

/// Leaves that the scan of the rows reads ahead.
const READ_AHEAD_PAGES: usize = 64;
/// Problems that are kept to be told; MySQL's limit of `max_error_count`.
const MAX_ISSUES: usize = 65_535;

impl Catalog {
    /// Writes all rows of a table into trees of the altered definition, and names them in it. `made`: trees that were
    /// made, also if it fails.
    ///
    /// # Errors
    /// `DuplicateKey`, `Column`, `InvalidUseOfNull`, `Interrupted`, and whatever the storage reports.
    pub(crate) fn copy_rows(
        &self,
        table: &Table,
        altered: &mut AlteredDefinition,
        options: &AlterOptions,
        progress: &dyn Progress,
        made: &mut Vec<TreeId>,
        done: &mut Altered,
    ) -> Result<Arc<TableState>> {
        let newest = ReadView::newest();
        let mut conversion = Conversion::new(table, altered, options);
        let conversion_of_all = (&mut conversion, &newest);
        let state =
            self.copy_rows_at(table, altered, conversion_of_all, options, progress, made)?;
        conversion.report(done);
        Ok(state)
    }

    /// As [`copy_rows`](Self::copy_rows), of the rows that a view sees.
    pub(crate) fn copy_rows_at(
        &self,
        table: &Table,
        altered: &mut AlteredDefinition,
        (conversion, view): (&mut Conversion, &ReadView),
        options: &AlterOptions,
        progress: &dyn Progress,
        made: &mut Vec<TreeId>,
    ) -> Result<Arc<TableState>> {
        let state = TableState::with_lock_of(table);
        let column = table.definition.auto_increment_column();
        let goes_on = column.and_then(|column| altered.position_of(column));
        if goes_on.is_some() && !altered.sets_auto_increment {
            let next = table.next_auto_increment()?.unwrap_or(0);
            state.auto_increment.restore(next);
        }
        let numbered = altered.definition.auto_increment_column();
        if options.numbers_in_place
            && options.series != AutoIncrementSeries::default()
            && numbered.is_some_and(|column| altered.sources[column].is_none())
        {
            let start = match altered.sets_auto_increment {
                true => altered.definition.auto_increment_start,
                false => 0,
            };
            state
                .auto_increment
                .restore(options.series.first_in_place(start));
        }
        let state = Arc::new(state);
        // A value is converted as the session sees it.
        let zone = options.mode.time_zone;
        let table = &table.seen_in(zone);
        let mut definition = altered.definition.clone().in_time_zone(zone);
        self.create_trees(&mut definition, made)?;
        let empty = Table::open(
            self.storage(),
            self.memory(),
            definition,
            Arc::clone(&state),
        )?;
        let load = BulkLoadOptions {
            memory_bytes: options.memory_bytes,
            threads: options.threads,
        };
        let mut load = TreeLoad::new(self.storage(), Arc::new(empty), Vec::new(), load)?;
        load.series = options.series;
        progress.begin(
            &format!("copying {}", table.definition.name),
            Some(table.row_count_estimate()),
        );
        let is_numbered = |column: usize| match altered.sources[column] {
            Some(source) => !table.definition.columns[source].auto_increment,
            None => true,
        };
        let order = match numbered.is_some_and(is_numbered) {
            true => table.definition.row_order(),
            false => RowOrder::default(),
        };
        let direction = match order.descending {
            true => Direction::Backward,
            false => Direction::Forward,
        };
        let tree = match order.secondary {
            Some(position) => &table.secondary[position],
            None => &table.clustered,
        };
        let read_ahead = ReadAhead::Pages(READ_AHEAD_PAGES);
        let mut rows = tree.scan_at(view.clone(), KeyRange::all(), direction, read_ahead);
        let (mut entry_key, mut row_key) = (Vec::new(), Vec::new());
        while let Some(leaf) = rows.next_leaf()? {
            if progress.is_cancelled() {
                return Err(TableError::Interrupted);
            }
            for step in 0..leaf.len() {
                let entry = match direction {
                    Direction::Forward => step,
                    Direction::Backward => leaf.len() - 1 - step,
                };
                let row = match order.secondary {
                    Some(position) => {
                        leaf.key_into(entry, &mut entry_key);
                        row_key.clear();
                        table.secondary_layouts[position]
                            .primary_key_into(&entry_key, &mut row_key)?;
                        let row = table.read_row_at(view, &row_key)?;
                        let name = &table.definition.name;
                        row.ok_or_else(|| TableError::corrupt(name, "an index entry has no row"))?
                    }
                    None => table.decode_row_at(view, &table.view(leaf.value(entry))?)?,
                };
                load.append(&conversion.convert(row)?, progress)?;
            }
        }
        let loaded = load.finish(progress)?;
        made.extend(loaded.trees);
        altered.definition = loaded.definition.in_time_zone(TimeZone::UTC);
        Ok(state)
    }
}

/// Where a column of the copy gets its value from.
enum Source {
    /// A column of the old rows.
    Column(usize),
    /// The same for all rows.
    Constant(Value),
    /// There is no value for it: error 1292 for the first row.
    Nothing(ColumnProblem),
}

/// Brings rows into their new shape.
pub(crate) struct Conversion {
    old: Vec<Column>,
    new: Vec<Column>,
    sources: Vec<Source>,
    /// Positions of new columns whose defaults are computed, and behind them those of generated columns that are
    /// computed again.
    computed: Vec<usize>,
    fill: Option<RowFill>,
    /// What each row must pass as it is converted.
    pub(crate) test: Option<RowTest>,
    mode: Mode,
    /// The time of the statement, in the session's time zone.
    now_micros: i64,
    keeps_zero: bool,
    /// Rows so far.
    rows: u64,
    issues: Vec<ColumnIssue>,
    more_issues: u64,
}

impl Conversion {
    /// `old`: in any time zone.
    pub(crate) fn new(
        old: &Table,
        altered: &AlteredDefinition,
        options: &AlterOptions,
    ) -> Conversion {
        let definition = altered.definition.clone();
        let new = definition.in_time_zone(options.mode.time_zone).columns;
        let filled = match options.row_fill {
            Some(_) => &altered.filled,
            None => &altered.generated,
        };
        let sources = new.iter().zip(&altered.sources).enumerate();
        let sources = sources.map(|(position, (column, source))| match source {
            _ if filled.contains(&position) => Source::Constant(Value::Null),
            Some(source) => Source::Column(*source),
            None => new_value(column, options),
        });
        let is_computed =
            |at: &usize| altered.sources[*at].is_none() && new[*at].default_expression().is_some();
        Conversion {
            old: old.definition.columns.clone(),
            test: None,
            sources: sources.collect(),
            computed: (0..new.len())
                .filter(is_computed)
                .chain(filled.iter().copied())
                .collect(),
            fill: options.row_fill.clone(),
            new,
            mode: options.mode,
            now_micros: options.now_micros,
            keeps_zero: options.keeps_zero,
            rows: 0,
            issues: Vec::new(),
            more_issues: 0,
        }
    }

    /// What came of it so far.
    pub(crate) fn report(self, done: &mut Altered) {
        (done.rows, done.more_issues) = (self.rows, self.more_issues);
        done.issues = self.issues;
    }

    /// [`convert`](Self::convert) of a row that was converted before, without a note of it.
    pub(crate) fn convert_again(&mut self, row: Vec<Value>) -> Result<Vec<Value>> {
        let (rows, issues, more) = (self.rows, self.issues.len(), self.more_issues);
        let test = self.test.take();
        let converted = self.convert(row);
        self.test = test;
        (self.rows, self.more_issues) = (rows, more);
        self.issues.truncate(issues);
        converted
    }

    /// Whether a column of the copy is computed of others.
    pub(crate) fn computes(&self, column: usize) -> bool {
        self.computed.contains(&column)
    }

    /// As [`convert_again`](Self::convert_again), of columns that are not [computed](Self::computes); all others are
    /// NULL.
    pub(crate) fn convert_some(
        &mut self,
        mut row: Vec<Value>,
        columns: &[usize],
    ) -> Result<Vec<Value>> {
        let (issues, more) = (self.issues.len(), self.more_issues);
        let mut converted = vec![Value::Null; self.new.len()];
        let result = columns.iter().try_for_each(|column| {
            converted[*column] = self.convert_column(*column, &mut row)?;
            Ok(())
        });
        self.more_issues = more;
        self.issues.truncate(issues);
        result.map(|()| converted)
    }

    fn convert_column(&mut self, position: usize, row: &mut [Value]) -> Result<Value> {
        match &self.sources[position] {
            Source::Column(source) => {
                let source = *source;
                // Each is the source of one column.
                let value = std::mem::take(&mut row[source]);
                self.convert_value(source, position, value)
            }
            Source::Constant(value) => Ok(value.clone()),
            Source::Nothing(problem) => Err(self.issue(position, problem.clone()).into()),
        }
    }

    pub(crate) fn convert(&mut self, mut row: Vec<Value>) -> Result<Vec<Value>> {
        self.rows += 1;
        let mut converted = Vec::with_capacity(self.new.len());
        for position in 0..self.new.len() {
            converted.push(self.convert_column(position, &mut row)?);
        }
        if let Some(RowFill(fill)) = &self.fill
            && !self.computed.is_empty()
        {
            fill(&mut converted, &self.computed)?;
        }
        if let Some(RowTest(test)) = &self.test {
            test(&converted)?;
        }
        Ok(converted)
    }

    fn convert_value(&mut self, source: usize, position: usize, value: Value) -> Result<Value> {
        let (old, new) = (&self.old[source], &self.new[position]);
        if value.is_null() && !new.nullable && !new.auto_increment {
            if self.mode.strict && old.ty == new.ty {
                return Err(TableError::InvalidUseOfNull);
            }
            // A TIMESTAMP that takes no NULL has always had the time of the statement for it.
            if new.ty.follows_time_zone() {
                return Ok(current_timestamp(&new.ty, self.now_micros));
            }
            let zero = zero_value(&new.ty);
            self.note(position, ColumnProblem::Truncated)?;
            return Ok(zero);
        }
        let asks_for_next = new.auto_increment && !old.auto_increment && !self.keeps_zero;
        if value.is_null() || old.ty == new.ty {
            return Ok(match asks_for_next && value.is_zero() {
                true => Value::Null,
                false => value,
            });
        }
        let (value, problem) = match assign_altered(&old.ty, &new.ty, value, self.mode) {
            Ok(converted) => converted,
            Err(problem) => {
                // MySQL says so where it cuts strings and does not convert them.
                let problem = match problem {
                    ColumnProblem::TooLong if is_shorter(&old.ty, &new.ty) => {
                        ColumnProblem::Truncated
                    }
                    problem => problem,
                };
                return Err(self.issue(position, problem).into());
            }
        };
        let asks_for_next = asks_for_next && value.is_zero();
        if let Some(problem) = problem {
            self.warn(position, problem.as_warning());
        }
        Ok(match asks_for_next {
            true => Value::Null,
            false => value,
        })
    }

    fn issue(&self, position: usize, problem: ColumnProblem) -> ColumnIssue {
        ColumnIssue {
            problem,
            column: self.new[position].name.clone(),
            row: self.rows,
        }
    }

    /// An error in strict mode, else a warning.
    fn note(&mut self, position: usize, problem: ColumnProblem) -> Result<()> {
        if self.mode.strict {
            return Err(self.issue(position, problem).into());
        }
        self.warn(position, problem);
        Ok(())
    }

    fn warn(&mut self, position: usize, problem: ColumnProblem) {
        if self.issues.len() < MAX_ISSUES {
            let issue = self.issue(position, problem);
            self.issues.push(issue);
        } else {
            self.more_issues += 1;
        }
    }
}

/// True if both are the same type of short strings, but for their lengths.
fn is_shorter(old: &ColumnType, new: &ColumnType) -> bool {
    old.is_same_kind(new)
        && old.max_bytes().is_some()
        && !old.is_long()
        && old.collation() == new.collation()
}

/// What a new column holds: error 1292 in strict mode with NO_ZERO_DATE for what would be a zero date.
fn new_value(column: &Column, options: &AlterOptions) -> Source {
    if let Some(value) = default_of(column, options.now_micros) {
        return Source::Constant(value);
    }
    let Some(kind) = column.ty.temporal_kind().filter(|_| column.ty.has_date()) else {
        return Source::Constant(zero_value(&column.ty));
    };
    let zero = match column.ty.clock_digits() {
        None => "0000-00-00",
        Some(_) => "0000-00-00 00:00:00",
    };
    if options.mode.strict && !options.mode.zero_date {
        return Source::Nothing(ColumnProblem::IncorrectTemporal {
            kind,
            value: zero.to_string(),
        });
    }
    Source::Constant(zero_value(&column.ty))
}
