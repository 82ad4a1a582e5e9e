//! SELECT without a table: `SELECT 1`, `SELECT LAST_INSERT_ID()`, `SELECT @@version`. Programs ask so at every turn.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Schema, SchemaRef};
use sheaf_types::Value;
use sqlparser::ast;

use crate::direct::expression::{cell_of, evaluator_of_list};
use crate::direct::read::{PlainQuery, PlainSelect, end_direct_read, plain_query, plain_select};
use crate::direct::shown::select_list::{self, Computed, SelectList};
use crate::direct::syntax::headers::Spelled;
use crate::error::Result;
use crate::session::Session;
use crate::session::result::{Cell, CellRow, ColumnMeta, ResultSink};

/// See the module's comment.
#[derive(Debug)]
pub(in crate::direct) struct Constants {
    columns: Vec<ColumnMeta>,
    schema: SchemaRef,
    computed: Computed,
}

/// The only row.
struct Row(Vec<ArrayRef>);

impl CellRow for Row {
    fn cell(&self, column: usize) -> Cell<'_> {
        cell_of(&self.0[column])
    }
}

impl Constants {
    /// The plan of a query; `None` if there is more to it than a select list. `text` is what was parsed.
    pub(in crate::direct) fn compile(
        session: &Session,
        query: &ast::Query,
        text: &str,
    ) -> Option<Constants> {
        let PlainQuery {
            select,
            order_by: None,
            limit_clause: None,
            locks,
        } = plain_query(query)?
        else {
            return None;
        };
        let PlainSelect {
            distinct: false,
            selection: None,
            group_by: [],
        } = plain_select(select)?
        else {
            return None;
        };
        if !select.from.is_empty() || !locks.is_empty() {
            return None;
        }
        let (list, computed) = select_list::constants(session, (select, text))?;
        let SelectList {
            columns, fields, ..
        } = list;
        Some(Constants {
            columns,
            schema: Arc::new(Schema::new(fields)),
            computed,
        })
    }

    pub(in crate::direct) fn result_columns(&self) -> usize {
        self.columns.len()
    }
}

impl Session {
    /// Whether constants would be computed with these parameters. Those that only a run knows do not decide it.
    pub(in crate::direct) fn would_run_constants(
        &mut self,
        constants: &Constants,
        parameters: &[Value],
    ) -> bool {
        let Constants {
            columns,
            schema,
            computed,
        } = constants;
        if !computed.expressions.are_given(parameters.len()) {
            return true;
        }
        let made = (&computed.expressions, &computed.headers);
        let list = (columns.as_slice(), schema);
        self.variables.sql_select_limit() > 0
            && evaluator_of_list(self, made, list, parameters, Spelled::AsWritten).is_some()
    }
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_constants(
    session: &mut Session,
    constants: &Constants,
    (parameters, spelled): (&[Value], Spelled<'_>),
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let Constants {
        columns,
        schema,
        computed,
    } = constants;
    if !sink.takes_rows() || session.variables.sql_select_limit() == 0 {
        return Ok(false);
    }
    let made = (&computed.expressions, &computed.headers);
    let list = (columns.as_slice(), schema);
    let Some((evaluator, shown)) = evaluator_of_list(session, made, list, parameters, spelled)
    else {
        return Ok(false);
    };
    let batch = evaluator.row(|_, _| Ok(Value::Null))?;
    let values = (0..evaluator.len()).map(|item| evaluator.array(item, &batch));
    let row = Row(values.collect::<Result<_>>()?);
    sink.row_columns(&shown.columns, &shown.schema)?;
    sink.row(&shown.columns, &row)?;
    end_direct_read(session, 1, sink)
}
