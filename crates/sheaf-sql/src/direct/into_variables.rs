//! SELECT … INTO @a, @b of what a direct plan of the query finds.
//!
//! The row waits in memory until it is known that it is the only one. A second row is an error, which the vectorised
//! form tells of (`query/select_into.rs`).

use sheaf_types::Value;

use super::DirectPlan;
use super::select_list::Spelled;
use super::subquery::Values;
use crate::error::Result;
use crate::parser::statement::{IntoTarget, Statement};
use crate::query::select_into::values_of_variables;
use crate::session::Session;
use crate::session::result::ResultSink;

/// See the module's comment.
pub(super) struct IntoVariables {
    pub(super) query: DirectPlan,
    names: Vec<String>,
}

impl IntoVariables {
    /// The plan of a statement; `None` if its rows go elsewhere, or its query has no direct plan. Of what was parsed it
    /// is given the text, and how many parameters that has.
    pub(super) fn compile(
        session: &Session,
        statement: &Statement,
        given: (&str, usize),
    ) -> Option<IntoVariables> {
        let Statement::SelectInto { query, target } = statement else {
            return None;
        };
        let IntoTarget::Variables(names) = target.as_ref() else {
            return None;
        };
        let query = session.direct_plan(&Statement::Query(query.clone()), given)?;
        // Another number of columns is an error.
        let fits = query.window.is_none() && query.result_columns() == names.len();
        fits.then(|| IntoVariables {
            query,
            names: names.clone(),
        })
    }
}

impl Session {
    /// False: the vectorised path has to do it.
    pub(super) fn run_direct_into_variables(
        &mut self,
        into: &IntoVariables,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let mut found = Values::default();
        let before = (self.outcome.found_rows, self.outcome.row_count);
        let given = (parameters, Spelled::AsWritten);
        let is_done = self.run_inner(&into.query, given, &mut found);
        let is_done = found.outcome(is_done)?;
        let rows = found.batches.iter().map(|batch| batch.num_rows());
        if !is_done || rows.sum::<usize>() > 1 {
            (self.outcome.found_rows, self.outcome.row_count) = before;
            return Ok(false);
        }
        let mut batches = found.batches.iter();
        let row = match batches.find(|batch| batch.num_rows() > 0) {
            Some(batch) => Some(values_of_variables((batch, 0), &found.origins)?),
            None => None,
        };
        self.end_select_into(&into.names, row, sink)?;
        Ok(true)
    }
}
