//! Rows of a query in a FROM, in memory, and how a join finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sheaf_table::{RowView, ValueRef};
use sheaf_types::Value;

use super::order::{MAX_SORTED_BYTES, SortKey};
use super::row_source::Derived;
use super::values::Values;
use crate::direct::operands::operand::{Compared, Place};
use crate::error::Result;
use crate::events::thread_work::{self, Work};
use crate::query::rows::value_at;

/// Rows of one query, at most. Beyond that, workers and batches pay for themselves.
const MAX_DERIVED_ROWS: usize = 2_000;

/// The rows of a query, in memory.
#[derive(Default)]
pub(in crate::direct) struct DerivedRows {
    pub(in crate::direct) bytes: Vec<u8>,
    /// Where each is among the bytes.
    pub(in crate::direct) spans: Vec<(usize, usize)>,
    /// Positions of the rows by the key that another table's rows find them by, once one has asked.
    pub(in crate::direct) by_key: Option<BTreeMap<Vec<u8>, Vec<usize>>>,
}

impl DerivedRows {
    pub(in crate::direct) fn row(&self, position: usize) -> &[u8] {
        let (start, end) = self.spans[position];
        &self.bytes[start..end]
    }

    pub(in crate::direct) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.spans
            .iter()
            .map(|(start, end)| &self.bytes[*start..*end])
    }

    /// Takes the rows that a part has found; false if there is no room for them.
    pub(in crate::direct) fn take(&mut self, derived: &Derived, found: &Values) -> Result<bool> {
        let types = derived.schema.fields();
        for batch in &found.batches {
            let columns = batch.columns();
            let mut types = columns.iter().zip(types);
            let is_same = columns.len() == derived.columns.len()
                && types.all(|(column, field)| {
                    let (own, shown) = (column.data_type(), field.data_type());
                    // A BIGINT holds what an INT does.
                    own == shown || own.is_signed_integer() && shown.is_signed_integer()
                });
            if !is_same || self.spans.len() + batch.num_rows() > MAX_DERIVED_ROWS {
                return Ok(false);
            }
            for row in 0..batch.num_rows() {
                let value = |column: &arrow::array::ArrayRef| value_at(column.as_ref(), row);
                let values = columns.iter().map(value).collect::<Result<Vec<_>>>()?;
                if !self.push(derived, |column| ValueRef::from(&values[column])) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Takes a row; false if there is no room for it.
    pub(in crate::direct) fn push<'v>(
        &mut self,
        derived: &Derived,
        value: impl Fn(usize) -> ValueRef<'v>,
    ) -> bool {
        let start = self.bytes.len();
        let layout = &derived.layout;
        let encoded = layout.encode(value, &[], MAX_ROW_BYTES, &mut self.bytes);
        self.spans.push((start, self.bytes.len()));
        encoded.is_ok()
            && self.bytes.len() <= MAX_SORTED_BYTES
            && self.spans.len() <= MAX_DERIVED_ROWS
    }

    /// Of rows that are equal the first stays.
    pub(in crate::direct) fn keep_different(
        &mut self,
        derived: &Derived,
        key: &SortKey,
    ) -> Result<()> {
        let mut known = BTreeSet::new();
        let mut kept = Vec::with_capacity(self.spans.len());
        for position in 0..self.spans.len() {
            if known.insert(derived.key_of_row(key, self.row(position))?) {
                kept.push(self.spans[position]);
            }
        }
        self.spans = kept;
        Ok(())
    }

    pub(in crate::direct) fn sort(&mut self, derived: &Derived, key: &SortKey) -> Result<()> {
        let mut keyed = Vec::with_capacity(self.spans.len());
        for position in 0..self.spans.len() {
            let key = derived.key_of_row(key, self.row(position))?;
            keyed.push((key, self.spans[position]));
        }
        thread_work::note(Work::sort_of(keyed.len()));
        keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.spans = keyed.into_iter().map(|(_, span)| span).collect();
        Ok(())
    }
}

/// The longest row of a query: its layout counts bytes in 15 bits.
const MAX_ROW_BYTES: usize = (1 << 15) - 1;

/// How a join finds rows of a query.
#[derive(Debug)]
pub(in crate::direct) struct Lookup {
    pub(in crate::direct) derived: Arc<Derived>,
    /// Columns that are equal to operands; none: all rows are gone through.
    pub(in crate::direct) equal: Vec<(usize, Compared)>,
    key: Option<SortKey>,
}

impl Lookup {
    /// `None` if the columns have no order.
    pub(in crate::direct) fn new(
        derived: &Arc<Derived>,
        equal: Vec<(usize, Compared)>,
    ) -> Option<Lookup> {
        let columns: Vec<usize> = equal.iter().map(|(column, _)| *column).collect();
        let key = match columns.is_empty() {
            true => None,
            false => Some(derived.key(&columns)?),
        };
        Some(Lookup {
            derived: Arc::clone(derived),
            equal,
            key,
        })
    }

    /// What the query's [list](Derived::asked) is of.
    pub(in crate::direct) fn asked(&self) -> Option<&Compared> {
        let asked = self.derived.asked()?;
        let mut equal = self.equal.iter();
        equal
            .find(|(column, _)| *column == asked.column)
            .map(|(_, operand)| operand)
    }

    /// The positions of the rows that are found. `None`: the vectorised path has to do it.
    pub(in crate::direct) fn find(
        &self,
        rows: &mut DerivedRows,
        parameters: &[Value],
    ) -> Result<Option<Vec<usize>>> {
        let Some(key) = &self.key else {
            return Ok(Some((0..rows.spans.len()).collect()));
        };
        let mut values = Vec::with_capacity(self.equal.len());
        for (column, operand) in &self.equal {
            let definition = &self.derived.definition.columns[*column];
            match operand.place(definition, parameters) {
                Some(Place::At(value)) => values.push(value),
                Some(Place::Null | Place::BelowAll | Place::AboveAll) => {
                    return Ok(Some(Vec::new()));
                }
                None => return Ok(None),
            }
        }
        let mut wanted = Vec::new();
        key.append_values(&values, &mut wanted);
        if rows.by_key.is_none() {
            let mut by_key: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
            for position in 0..rows.spans.len() {
                let row = self.derived.layout.view(rows.row(position))?;
                // NULL is equal to nothing, not even NULL.
                if key.columns().any(|column| row.is_null(column)) {
                    continue;
                }
                let of_row = self.derived.key_of_row(key, rows.row(position))?;
                by_key.entry(of_row).or_default().push(position);
            }
            rows.by_key = Some(by_key);
        }
        let found = rows.by_key.as_ref().and_then(|known| known.get(&wanted));
        Ok(Some(found.cloned().unwrap_or_default()))
    }

    /// A row by its position.
    pub(in crate::direct) fn row<'r>(
        &'r self,
        rows: &'r DerivedRows,
        position: usize,
    ) -> Result<RowView<'r>> {
        Ok(self.derived.layout.view(rows.row(position))?)
    }
}
