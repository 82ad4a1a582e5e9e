//! SELECT … INTO @a, @b, and SET @a = (SELECT …), of what a direct plan of the query finds.
//!
//! The row waits in memory until it is known that it is the only one. A second row is an error, which the vectorised
//! form tells of (`select/select_into.rs`).

use arrow::datatypes::DataType;
use sheaf_types::Value;
use sqlparser::ast;

use super::DirectPlan;
use super::insert::insert_select::find_and_lock;
use super::rows::values::Values;
use super::subquery::may_have_hidden_digits;
use super::syntax::attempt::Attempt;
use super::syntax::headers::Spelled;
use crate::error::Result;
use crate::parser::statement::{Assignment, IntoTarget, Statement};
use crate::query::rows::value_at;
use crate::select::select_into::{end_select_into, values_of_variables};
use crate::session::Session;
use crate::session::result::{Origin, ResultSink};

/// See the module's comment.
pub(super) struct IntoVariables {
    pub(super) query: DirectPlan,
    names: Vec<String>,
}

impl IntoVariables {
    /// The plan of a statement; `None` if its rows go elsewhere, or its query has no direct plan.
    pub(super) fn compile(
        session: &Session,
        statement: &Statement,
        attempt: Attempt<'_>,
    ) -> Option<IntoVariables> {
        let Statement::SelectInto { query, target } = statement else {
            return None;
        };
        let IntoTarget::Variables(names) = target.as_ref() else {
            return None;
        };
        let query = session.plan_attempted(&Statement::Query(query.clone()), attempt)?;
        // Another number of columns is an error.
        let fits = query.window.is_none() && query.result_columns() == names.len();
        fits.then(|| IntoVariables {
            query,
            names: names.clone(),
        })
    }
}

/// `SET @name = (SELECT …)`
pub(super) struct SetVariable {
    pub(super) query: DirectPlan,
    name: String,
}

impl SetVariable {
    /// The plan of a statement; `None` if it sets anything else, or its query has no direct plan. As
    /// [`IntoVariables::compile`].
    pub(super) fn compile(
        session: &Session,
        statement: &Statement,
        attempt: Attempt<'_>,
    ) -> Option<SetVariable> {
        let Statement::Set(assignments) = statement else {
            return None;
        };
        let [Assignment::User { name, value }] = assignments.as_slice() else {
            return None;
        };
        let mut value = value.as_ref();
        while let ast::Expr::Nested(inner) = value {
            value = inner;
        }
        let ast::Expr::Subquery(query) = value else {
            return None;
        };
        // A variable keeps the digits of quotients that are not shown.
        if may_have_hidden_digits(query) {
            return None;
        }
        let query = session.plan_attempted(&Statement::Query(query.clone()), attempt)?;
        let mut needs = query.needs.iter();
        let is_plain = query.window.is_none()
            && query.result_columns() == 1
            && needs.all(|need| need.locks.is_none());
        is_plain.then(|| SetVariable {
            query,
            name: name.clone(),
        })
    }
}

/// Whether a variable gets values of a column as they are.
fn is_kept(data_type: &DataType, origin: &Origin) -> bool {
    let declared = origin.declared.as_ref();
    match data_type {
        DataType::Utf8View => declared.is_none_or(|ty| ty.is_character() && !ty.has_labels()),
        DataType::Decimal128(..) => true,
        integer => integer.is_integer() && declared.is_none_or(|ty| ty.is_integer()),
    }
}

/// False: the vectorised path has to do it.
pub(super) fn run_direct_set_variable(
    session: &mut Session,
    set: &SetVariable,
    parameters: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let mut found = Values::default();
    let before = (session.outcome.found_rows, session.outcome.row_count);
    let run = |session: &mut Session, found: &mut Values| {
        session.run_inner(&set.query, (parameters, Spelled::AsWritten), found)
    };
    let is_done = match session.transactions.changes_lock_reads() {
        true => find_and_lock(session, &mut found, run)?,
        false => {
            let is_done = run(session, &mut found);
            found.outcome(is_done)?
        }
    };
    (session.outcome.found_rows, session.outcome.row_count) = before;
    let mut batches = found.batches.iter().filter(|batch| batch.num_rows() > 0);
    let value = match (batches.next(), found.origins.first()) {
        _ if !is_done => return Ok(false),
        (None, _) => Value::Null,
        // A second row is an error, which has a text.
        (Some(batch), Some(origin))
            if batch.num_rows() == 1
                && batches.next().is_none()
                && is_kept(batch.column(0).data_type(), origin) =>
        {
            value_at(batch.column(0).as_ref(), 0)?
        }
        _ => return Ok(false),
    };
    session.user_variables.set(&set.name, value)?;
    session.ok(sink, 0, String::new())?;
    Ok(true)
}

/// False: the vectorised path has to do it.
pub(super) fn run_direct_into_variables(
    session: &mut Session,
    into: &IntoVariables,
    parameters: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let mut found = Values::default();
    let before = (session.outcome.found_rows, session.outcome.row_count);
    let given = (parameters, Spelled::AsWritten);
    let is_done = session.run_inner(&into.query, given, &mut found);
    let is_done = found.outcome(is_done)?;
    let rows = found.batches.iter().map(|batch| batch.num_rows());
    if !is_done || rows.sum::<usize>() > 1 {
        (session.outcome.found_rows, session.outcome.row_count) = before;
        return Ok(false);
    }
    let mut batches = found.batches.iter();
    let row = match batches.find(|batch| batch.num_rows() > 0) {
        Some(batch) => Some(values_of_variables((batch, 0), &found.origins)?),
        None => None,
    };
    end_select_into(session, &into.names, row, sink)?;
    Ok(true)
}
