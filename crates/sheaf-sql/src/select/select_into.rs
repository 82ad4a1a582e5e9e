//! SELECT ... INTO @a, @b: the values of a query's only row go to user variables.
//!
//! The query runs as one for a client, with its locks. In the place of the client stands [`OnlyRow`], which ends it at
//! the second row.

use std::io::Read;

use arrow::array::RecordBatch;
use sheaf_types::column_type::MAX_VARCHAR_LENGTH;
use sheaf_types::error::codes;
use sheaf_types::{Collation, ColumnType, Value};

use crate::error::{Result, SqlError};
use crate::parser::ParsedQuery;
use crate::parser::statement::IntoTarget;
use crate::query::rows::value_at;
use crate::query::values::shown_in;
use crate::session::Session;
use crate::session::result::{ColumnMeta, EndOfRows, OkInfo, Origin, ResultSink};
use crate::session_parts::user_variables::UserVariables;

/// Takes the row of a query.
struct OnlyRow {
    /// How many variables there are.
    columns: usize,
    origins: Vec<Origin>,
    row: Option<Vec<Value>>,
}

impl ResultSink for OnlyRow {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.origins = columns.iter().map(Origin::from).collect();
        match columns.len() == self.columns {
            true => Ok(()),
            false => Err(SqlError::new(
                codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
                "The used SELECT statements have a different number of columns",
            )),
        }
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        for position in 0..batch.num_rows() {
            if self.row.is_some() {
                return Err(more_than_one_row());
            }
            self.row = Some(values_of_variables((batch, position), &self.origins)?);
        }
        Ok(())
    }

    fn end_of_rows(&mut self, _end: EndOfRows) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _ok: OkInfo) -> Result<()> {
        Ok(())
    }

    fn local_infile(&mut self, _name: &str) -> Result<Box<dyn Read + '_>> {
        Err(SqlError::unknown("a query reads no file of the client"))
    }
}

/// What variables get of a row. They have texts for dates and times, with the digits that these show.
pub(crate) fn values_of_variables(
    (batch, position): (&RecordBatch, usize),
    origins: &[Origin],
) -> Result<Vec<Value>> {
    let text = ColumnType::varchar(MAX_VARCHAR_LENGTH, Collation::default());
    let columns = batch.columns().iter().zip(origins);
    let values = columns.map(|(column, origin)| {
        let value = value_at(column.as_ref(), position)?;
        Ok(shown_in(&value, origin, &text).into_owned())
    });
    values.collect()
}

fn set_variables(
    variables: &mut UserVariables,
    targets: &[String],
    row: Option<Vec<Value>>,
) -> Result<()> {
    for (name, value) in targets.iter().zip(row.into_iter().flatten()) {
        variables.set(name, value)?;
    }
    Ok(())
}

/// 1172.
pub(super) fn more_than_one_row() -> SqlError {
    SqlError::new(
        codes::TOO_MANY_ROWS,
        "Result consisted of more than one row",
    )
}

/// Runs a query whose rows go to variables or a file.
pub(crate) fn select_into(
    session: &mut Session,
    query: ParsedQuery<'_>,
    target: IntoTarget,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    match target {
        IntoTarget::Variables(names) => select_into_variables(session, query, &names, sink),
        IntoTarget::OutFile(file) => session.select_into_outfile(query, file, sink),
        IntoTarget::DumpFile(name) => session.select_into_dumpfile(query, name, sink),
    }
}

/// Without a row the variables stay what they are, and there is a warning (1329).
///
/// # Errors
/// 1222 for another number of columns than of variables, 1172 for a second row.
fn select_into_variables(
    session: &mut Session,
    query: ParsedQuery<'_>,
    targets: &[String],
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let mut only_row = OnlyRow {
        columns: targets.len(),
        origins: Vec::new(),
        row: None,
    };
    let selected = session.query(query, &mut only_row);
    let has_several = |error: &SqlError| error.is(codes::TOO_MANY_ROWS);
    // The first of several rows is assigned before the second is met.
    if selected.as_ref().is_err_and(has_several) {
        set_variables(&mut session.user_variables, targets, only_row.row.take())?;
    }
    selected?;
    end_select_into(session, targets, only_row.row, sink)
}

/// Ends a query whose row, if it has found one, goes to variables.
pub(crate) fn end_select_into(
    session: &mut Session,
    targets: &[String],
    row: Option<Vec<Value>>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let found = row.is_some();
    set_variables(&mut session.user_variables, targets, row)?;
    if !found {
        session.warnings.warn(
            codes::SP_FETCH_NO_DATA,
            "No data - zero rows fetched, selected, or processed",
        );
    }
    session.ok(sink, u64::from(found), String::new())
}
