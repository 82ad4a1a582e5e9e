//! What rows get from their table: values of AUTO_INCREMENT, hidden row ids, and the numbers of long values.
//!
//! The [counters](super::auto_increment) are shared by all versions of a table. Each is found from the largest key in
//! use when the first value is asked for.

use std::time::Duration;

use sheaf_storage::Transaction;
use sheaf_storage::sync::atomic::{AtomicU64, Ordering};
use sheaf_types::column_type::Stored;
use sheaf_types::{ColumnType, Value};

use crate::codec::key_part::PartKind;
use crate::codec::overflow;
use crate::codec::row_codec::ValueRef;
use crate::definition::schema::Index;
use crate::error::{Result, TableError};
use crate::table::Table;
use crate::table::auto_increment::{AutoIncrementSeries, Reserved, mark_key};

/// Not known yet: to be found from the largest key.
const UNKNOWN: u64 = 0;

/// How long a look at a table waits for the moment in which its definition changes.
const LOOK_WAIT: Duration = Duration::from_secs(1);

impl Table {
    /// The next value AUTO_INCREMENT gives out; `None`: the table has no such column.
    pub fn next_auto_increment(&self) -> Result<Option<u64>> {
        let Some(column) = self.definition.auto_increment_column() else {
            return Ok(None);
        };
        if let Some(next) = self.state.auto_increment.next() {
            return Ok(Some(next));
        }
        let behind_largest = self.largest_of_column(column)?.saturating_add(1);
        let next = behind_largest.max(self.definition.auto_increment_start);
        Ok(Some(self.state.auto_increment.begin_at(next)))
    }

    /// [`next_auto_increment`](Self::next_auto_increment) for a caller that has no lock of the table. `None` also if
    /// its definition has changed, or is about to.
    ///
    /// # Errors
    /// Whatever the storage reports.
    pub fn shown_auto_increment(&self) -> Result<Option<u64>> {
        let known = self.state.auto_increment.next();
        if known.is_some() || self.definition.auto_increment_column().is_none() {
            return Ok(known);
        }
        match self.state.lock.look(LOOK_WAIT) {
            Ok(_looking) if self.is_current() => self.next_auto_increment(),
            Ok(_) | Err(TableError::LockWaitTimeout) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The largest value of a column that is the first of some index; 0 if there is none above.
    fn largest_of_column(&self, column: usize) -> Result<u64> {
        let leads = |index: &Index| {
            index
                .parts
                .first()
                .is_some_and(|part| part.column == column)
        };
        let (tree, layout) = if leads(&self.definition.primary) {
            (&self.clustered, &self.clustered_layout)
        } else {
            match self.definition.secondary.iter().position(leads) {
                Some(position) => (&self.secondary[position], &self.secondary_layouts[position]),
                None => return Ok(0),
            }
        };
        let key = tree.last_key()?;
        let largest = key.and_then(|key| match layout.parts[0].kind {
            PartKind::Float | PartKind::Double => {
                layout.decode_f64(0, &key).map(|value| value as i128)
            }
            _ => layout.decode_i128(0, &key),
        });
        Ok(largest.unwrap_or(0).clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// The AUTO_INCREMENT value for a row that has none.
    pub(crate) fn take_auto_increment(
        &self,
        row: &[Value],
        series: AutoIncrementSeries,
        reserved: &mut Reserved,
    ) -> Result<Generated> {
        let Some(column) = self.definition.auto_increment_column() else {
            return Ok(Generated::default());
        };
        if !row[column].is_null() {
            return Ok(Generated::default());
        }
        let ty = &self.definition.columns[column].ty;
        let (_, greatest) = ty.integer_range().unwrap_or((0, 1 << 53));
        let greatest = u64::try_from(greatest).unwrap_or(u64::MAX);
        // Finds it from the rows, the first time.
        self.next_auto_increment()?;
        if let Some(chosen) = reserved.chosen.take().filter(|chosen| *chosen <= greatest) {
            reserved.rows = reserved.rows.saturating_sub(1);
            reserved.is_same_row = false;
            return Ok(Generated {
                column,
                value: generated_value(ty, chosen),
                number: Some(chosen),
                is_chosen: true,
                taken: None,
            });
        }
        let counter = &self.state.auto_increment;
        let taken = reserved.next(|rows| counter.take(series, greatest, rows));
        let taken = taken.ok_or(TableError::AutoIncrementExhausted)?;
        Ok(Generated {
            column,
            value: generated_value(ty, taken),
            number: Some(taken),
            is_chosen: false,
            taken: Some(taken),
        })
    }

    /// The AUTO_INCREMENT value that a row brings is not given out again, nor are those before it to later rows of its
    /// statement.
    pub(crate) fn bring_auto_increment(
        &self,
        row: &[Value],
        series: AutoIncrementSeries,
        reserved: &mut Reserved,
    ) {
        if let Some(brought) = self.note_auto_increment(row, series) {
            reserved.skip_to_behind(brought);
        }
    }

    /// The row with the value that was chosen for it, if it is a duplicate by that value alone. It is not given to the
    /// next row then.
    pub(crate) fn with_chosen_auto_increment(
        &self,
        row: &[Value],
        reserved: &mut Reserved,
    ) -> Result<Option<Vec<Value>>> {
        let (Some(column), Some(chosen)) =
            (self.definition.auto_increment_column(), reserved.chosen)
        else {
            return Ok(None);
        };
        if !row[column].is_null() || self.conflicting_row(row)?.is_some() {
            return Ok(None);
        }
        reserved.chosen = None;
        let mut row = row.to_vec();
        row[column] = generated_value(&self.definition.columns[column].ty, chosen);
        Ok(Some(row))
    }

    /// What a row gets when all values are given out: the last one again, as in MySQL. So it is a duplicate, which
    /// IGNORE skips and ON DUPLICATE KEY UPDATE changes, unless that row has gone.
    ///
    /// # Errors
    /// 1467 in a series with gaps, for BIGINT UNSIGNED, whose last value is never given out, and where the counter was
    /// set to a value that the column does not hold.
    pub(super) fn last_auto_increment(&self, series: AutoIncrementSeries) -> Result<Generated> {
        match self.repeated_auto_increment()? {
            Some((column, greatest)) if series.has_all() => Ok(Generated {
                column,
                value: generated_value(&self.definition.columns[column].ty, greatest),
                number: Some(greatest),
                is_chosen: false,
                taken: None,
            }),
            _ => Err(TableError::AutoIncrementExhausted),
        }
    }

    /// The AUTO_INCREMENT column and its greatest value, if that is given out again and again because it was given out,
    /// or a row brought it.
    fn repeated_auto_increment(&self) -> Result<Option<(usize, u64)>> {
        let Some(column) = self.definition.auto_increment_column() else {
            return Ok(None);
        };
        let range = self.definition.columns[column].ty.integer_range();
        let greatest = range.and_then(|(_, greatest)| u64::try_from(greatest).ok());
        let Some((greatest, behind)) = greatest.and_then(|last| Some((last, last.checked_add(1)?)))
        else {
            return Ok(None);
        };
        let is_reached = self.next_auto_increment()? == Some(behind)
            && self.definition.auto_increment_start < behind;
        Ok(is_reached.then_some((column, greatest)))
    }

    /// The row with the value that it gets from AUTO_INCREMENT, if that is one that was given out before.
    pub fn with_last_auto_increment(&self, row: &[Value]) -> Result<Option<Vec<Value>>> {
        let Some((column, greatest)) = self.repeated_auto_increment()? else {
            return Ok(None);
        };
        if !row[column].is_null() {
            return Ok(None);
        }
        let mut row = row.to_vec();
        row[column] = generated_value(&self.definition.columns[column].ty, greatest);
        Ok(Some(row))
    }

    /// Sees to it that the AUTO_INCREMENT value of a row is not given out again. Returns it.
    pub(super) fn note_auto_increment(
        &self,
        row: &[Value],
        series: AutoIncrementSeries,
    ) -> Option<u64> {
        let column = self.definition.auto_increment_column()?;
        let given = given_number(&row[column]);
        let given = (given > 0).then(|| u64::try_from(given).unwrap_or(u64::MAX))?;
        self.state.auto_increment.bring(series, given);
        Some(given)
    }

    /// Sees to it that a value that was given out, or brought, is not given out again after a crash. To be called
    /// before the transaction commits.
    pub(super) fn mark_auto_increment(&self, transaction: &Transaction) -> Result<()> {
        match self.state.auto_increment.is_beyond_mark() {
            // A temporary table does not outlive a crash.
            true if self.definition.is_temporary() => Ok(()),
            true => self.write_auto_increment_mark(transaction),
            false => Ok(()),
        }
    }

    /// The caller holds the table's lock, so no other thread changes what the catalog has of the table.
    #[cold]
    fn write_auto_increment_mark(&self, transaction: &Transaction) -> Result<()> {
        let counter = &self.state.auto_increment;
        let _marking = counter.begin_marking();
        let Some(column) = self.definition.auto_increment_column() else {
            return Ok(());
        };
        if !counter.is_beyond_mark() {
            return Ok(());
        }
        let range = self.definition.columns[column].ty.integer_range();
        let greatest = range.and_then(|(_, greatest)| u64::try_from(greatest).ok());
        let mark = counter.mark_ahead(greatest.unwrap_or(u64::MAX));
        let (key, value) = (mark_key(self.definition.id), mark.to_le_bytes());
        let mut own = transaction.begin_another();
        if !self.catalog.update(&mut own, &key, &value)? {
            self.catalog.insert(&mut own, &key, &value)?;
        }
        // What commits later is not durable before it, so it need not be waited for.
        drop(own.commit_later()?);
        counter.note_mark(mark);
        Ok(())
    }

    /// The next hidden row id; 0 for tables with a primary key.
    pub(crate) fn take_row_id(&self) -> Result<u64> {
        if !self.definition.has_hidden_row_id() {
            return Ok(0);
        }
        take_number(&self.state.row_id, || {
            Ok(self
                .clustered
                .last_key()?
                .map_or(0, |key| self.row_id_of(&key)))
        })
    }

    /// The row id in a clustered key; 0 for tables with a primary key.
    pub(crate) fn row_id_of(&self, primary_key: &[u8]) -> u64 {
        match self.definition.has_hidden_row_id() {
            true => primary_key
                .first_chunk::<8>()
                .map_or(0, |id| u64::from_be_bytes(*id)),
            false => 0,
        }
    }

    pub(super) fn take_long_value_number(&self) -> Result<u64> {
        take_number(&self.state.long_value, || match &self.overflow {
            Some(tree) => Ok(tree
                .last_key()?
                .and_then(|key| overflow::number_of_key(&key))
                .unwrap_or(0)),
            None => Ok(0),
        })
    }
}

/// The value that AUTO_INCREMENT puts in place of a row's own.
#[derive(Debug, Default)]
pub(crate) struct Generated {
    column: usize,
    value: Value,
    number: Option<u64>,
    /// It was not given out, but chosen.
    is_chosen: bool,
    /// What may be given back.
    pub(super) taken: Option<u64>,
}

impl Generated {
    /// The value that was given out.
    pub(crate) fn number(&self) -> Option<u64> {
        self.number
    }

    /// The value that was chosen for the row.
    pub(super) fn chosen(&self) -> Option<u64> {
        self.number.filter(|_| self.is_chosen)
    }

    /// A column of the row with the generated value in its place.
    #[inline]
    pub(crate) fn value<'v>(&'v self, row: &'v [Value], column: usize) -> ValueRef<'v> {
        match self.number {
            Some(_) if column == self.column => (&self.value).into(),
            _ => (&row[column]).into(),
        }
    }
}

/// A number that is given out, as a value of the column's type.
pub fn generated_value(ty: &ColumnType, number: u64) -> Value {
    match ty.stored() {
        Stored::Float => Value::Float(number as f32),
        Stored::Double => Value::Double(number as f64),
        _ if ty.is_unsigned() => Value::UInt(number),
        _ => Value::Int(number as i64),
    }
}

/// The whole number in an AUTO_INCREMENT column; 0, which asks for the next one, also for NULL.
fn given_number(value: &Value) -> i128 {
    match value {
        Value::Float(v) => *v as i128,
        Value::Double(v) => *v as i128,
        value => value.as_i128().unwrap_or(0),
    }
}

/// Takes the next number of a counter that starts after the largest one in use.
fn take_number(counter: &AtomicU64, largest: impl Fn() -> Result<u64>) -> Result<u64> {
    if counter.load(Ordering::Relaxed) == UNKNOWN {
        let (first, relaxed) = (largest()?.saturating_add(1), Ordering::Relaxed);
        // If another thread found it out meanwhile, that counts: some numbers may be taken since.
        let _ = counter.compare_exchange(UNKNOWN, first, relaxed, relaxed);
    }
    Ok(counter.fetch_add(1, Ordering::Relaxed))
}
