//! What a statement has answered: counts, a description of columns, and rows as tuples or as an Arrow stream.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use sheaf::{ColumnMeta, MysqlColumnType, cell_readers, column_flags};

use crate::arrow_stream::{self, Exported};
use crate::error::raised;
use crate::value::to_python;

/// (name, type_code, display_size, internal_size, precision, scale, null_ok) of PEP 249.
type Description = (String, u8, u32, Option<u32>, Option<u32>, Option<u8>, bool);

/// An answer, and how far its rows were taken.
#[pyclass(module = "sheaf._sheaf", frozen)]
pub(crate) struct Answer {
    answer: sheaf::Answer,
    next: Mutex<Place>,
}

/// Rows before it were taken.
#[derive(Clone, Copy, Default)]
struct Place {
    batch: usize,
    row: usize,
}

impl Answer {
    pub(crate) fn new(answer: sheaf::Answer) -> Answer {
        Answer {
            answer,
            next: Mutex::default(),
        }
    }

    /// The rows that were not taken, as they lie in memory.
    fn remaining(&self) -> sheaf::Answer {
        let next = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let mut remaining = self.answer.clone();
        remaining.batches.drain(..next.batch);
        if let Some(first) = remaining.batches.first_mut()
            && next.row > 0
        {
            *first = first.slice(next.row, first.num_rows() - next.row);
        }
        remaining
    }

    /// Rows from a place, at most so many, and the place behind them.
    fn rows_from<'py>(
        &self,
        python: Python<'py>,
        mut next: Place,
        at_most: usize,
    ) -> PyResult<(Bound<'py, PyList>, Place)> {
        let rows = PyList::empty(python);
        while let Some(batch) = self.answer.batches.get(next.batch)
            && rows.len() < at_most
        {
            let readers = cell_readers(batch, &self.answer.columns).map_err(raised)?;
            let end = batch
                .num_rows()
                .min(next.row.saturating_add(at_most - rows.len()));
            for row in next.row..end {
                let values = readers.iter().zip(&self.answer.columns);
                let values =
                    values.map(|(reader, column)| to_python(python, reader.cell(row), column));
                rows.append(PyTuple::new(python, values.collect::<PyResult<Vec<_>>>()?)?)?;
            }
            next = match end == batch.num_rows() {
                true => Place {
                    batch: next.batch + 1,
                    row: 0,
                },
                false => Place { row: end, ..next },
            };
        }
        Ok((rows, next))
    }
}

/// Digits of a decimal: its length without sign and point.
fn precision(column: &ColumnMeta) -> u32 {
    let sign = u32::from(column.flags & column_flags::UNSIGNED == 0);
    let point = u32::from(column.decimals > 0);
    column.length.saturating_sub(sign + point)
}

/// The protocol's number of a type; texts and bytes get two numbers, so that they can be told apart.
fn type_code(column: &ColumnMeta) -> u8 {
    use MysqlColumnType as M;
    match column.type_ {
        M::VarChar
        | M::VarString
        | M::String
        | M::TinyBlob
        | M::MediumBlob
        | M::LongBlob
        | M::Blob => match column.is_binary() {
            true => M::Blob as u8,
            false => M::VarString as u8,
        },
        other => other as u8,
    }
}

#[pymethods]
impl Answer {
    /// Whether it has rows, or could have had some.
    #[getter]
    fn has_rows(&self) -> bool {
        !self.answer.columns.is_empty()
    }

    #[getter]
    fn affected_rows(&self) -> u64 {
        self.answer.affected_rows
    }

    #[getter]
    fn last_insert_id(&self) -> u64 {
        self.answer.last_insert_id
    }

    #[getter]
    fn warnings(&self) -> u16 {
        self.answer.warnings
    }

    fn __len__(&self) -> usize {
        self.answer.rows()
    }

    #[getter]
    fn description(&self) -> Vec<Description> {
        let columns = self.answer.columns.iter();
        let described = columns.map(|column| {
            let is_decimal = column.type_ == MysqlColumnType::NewDecimal;
            let scale = is_decimal.then_some(column.decimals);
            (
                column.name.clone(),
                type_code(column),
                column.length,
                None,
                is_decimal.then(|| precision(column)),
                scale,
                column.flags & column_flags::NOT_NULL == 0,
            )
        });
        described.collect()
    }

    /// The next rows, at most so many.
    fn take<'py>(&self, python: Python<'py>, at_most: usize) -> PyResult<Bound<'py, PyList>> {
        // Not locked while rows are made: Python may let another thread go on meanwhile, which would wait for it.
        let next = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, next) = self.rows_from(python, next, at_most)?;
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(rows)
    }

    /// The first rows, taken or not, at most so many.
    fn first<'py>(&self, python: Python<'py>, at_most: usize) -> PyResult<Bound<'py, PyList>> {
        Ok(self.rows_from(python, Place::default(), at_most)?.0)
    }

    /// The rows that were not taken, for libraries that know Arrow. They are not taken by it.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        python: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to answer with the types that there are.
        let _ = requested_schema;
        let remaining = self.remaining();
        let exported = python
            .detach(|| Exported::new(&remaining))
            .map_err(raised)?;
        PyCapsule::new_with_value(
            python,
            arrow_stream::stream(exported),
            c"arrow_array_stream",
        )
    }

    /// Names and types of the columns, for libraries that know Arrow.
    fn __arrow_c_schema__<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let exported = Exported::new(&self.remaining()).map_err(raised)?;
        let schema = arrow_stream::schema(&exported);
        PyCapsule::new_with_value(python, schema, c"arrow_schema")
    }
}
