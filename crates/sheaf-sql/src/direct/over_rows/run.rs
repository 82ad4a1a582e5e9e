//! How such a plan runs: its rows are found, its subqueries computed, and its operators run where the connection is.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use sheaf_exec::MemoryTableSource;
use sheaf_optimizer::{Trace, optimize_logical, plan_physical};
use sheaf_storage::ReadView;
use sheaf_types::Value;
use sheaf_types::error::codes;
use sqlparser::ast;

use super::rows_in_plan::{Written, columns_of_rows, over, rows_as, types_of, with_rows};
use super::{MAX_SUBQUERY_ROWS, MAX_SUBQUERY_RUNS, MAX_VALUE_BYTES, OverRows};
use crate::direct::expression::query_instance::{QueryInstance, Work};
use crate::direct::expression::row_query::{ComputedRows, Described, describe_row_query};
use crate::direct::expression::{ExpressionCache, INPUTS, PlanInputs, evaluator, query_instance};
use crate::direct::join::join_walk::{OpenTables, derived_rows, open_to_join, walk_join};
use crate::direct::join::joined_result::{Found, Window};
use crate::direct::read::{MAX_LIMITED_ROWS, end_direct_read, row_count};
use crate::direct::subquery::joined;
use crate::direct::syntax::headers::Spelled;
use crate::error::Result;
use crate::events::thread_work::{self, Work as Noted};
use crate::parser::Parsed;
use crate::query::row_evaluator::table_of;
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::variables::Variables;

/// What is computed over rows.
struct ComputedResult {
    batches: Vec<RecordBatch>,
    /// Rows of the result without LIMIT.
    rows: usize,
    /// The first rows of the batches that OFFSET leaves out.
    skipped: u64,
}

/// Whether the row at a place has the values of the row before it, as far as a subquery takes them.
fn is_known(own: &[usize], rows: &[Vec<Value>], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| rows.get(before));
    let Some((before, row)) = before.zip(rows.get(at)) else {
        return false;
    };
    // 0 and -0 are equal, and are shown otherwise.
    let is_float = |value: &Value| matches!(value, Value::Float(_) | Value::Double(_));
    let mut columns = own.iter();
    columns.all(|column| before[*column] == row[*column] && !is_float(&row[*column]))
}

impl OverRows {
    /// How often its subqueries run for these rows: once for rows behind each other that give them the same.
    fn runs_of_subqueries(&self, rows: &[Vec<Value>]) -> usize {
        let mut outer = self.outer.as_slice();
        let mut runs = 0;
        for subquery in &self.subqueries {
            let (own, others) = outer.split_at(subquery.outer.len());
            outer = others;
            let places = 0..rows.len();
            runs += places.filter(|at| !is_known(own, rows, *at)).count();
        }
        runs
    }

    /// What is sent of the result, and how many rows are wanted for it. `None`: the operands do not suit.
    fn window(&self, variables: &Variables, parameters: &[Value]) -> Option<(Window, u64)> {
        let most = variables.sql_select_limit();
        let limit = row_count(self.limit.as_ref(), parameters, most)?;
        let offset = row_count(self.offset.as_ref(), parameters, 0)?;
        let wanted = match self.is_cut {
            true => limit.saturating_add(offset),
            false => u64::MAX,
        };
        let is_too_long = self.rows.is_walk() && wanted > MAX_LIMITED_ROWS;
        (!is_too_long).then_some((Window { limit, offset }, wanted))
    }

    /// As [`Join::that_would_run`](crate::direct::join::Join::that_would_run).
    pub(in crate::direct) fn that_would_run(
        &self,
        session: &Session,
        parameters: &[Value],
    ) -> Result<Option<&OverRows>> {
        let ways = std::iter::once(self).chain(self.otherwise.as_deref());
        for query in ways {
            let Some((_, wanted)) = query.window(&session.variables, parameters) else {
                continue;
            };
            let most = match query.rows.order {
                Some(_) => u64::MAX,
                None => wanted,
            };
            if query.rows.would_run(session, parameters, most)? {
                return Ok(Some(query));
            }
        }
        Ok(None)
    }
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_over_rows(
    session: &mut Session,
    query: &OverRows,
    given: (&[Value], Spelled<'_>),
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let (parameters, _) = given;
    if parameters
        .iter()
        .any(|value| value.string_bytes() > MAX_VALUE_BYTES)
    {
        return Ok(false);
    }
    let is_done = run_one_over_rows(session, query, given, sink)?;
    match &query.otherwise {
        Some(otherwise) if !is_done => run_one_over_rows(session, otherwise, given, sink),
        _ => Ok(is_done),
    }
}

fn run_one_over_rows(
    session: &mut Session,
    query: &OverRows,
    (parameters, spelled): (&[Value], Spelled<'_>),
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let (Some((Window { limit, offset }, wanted)), Some(names)) = (
        query.window(&session.variables, parameters),
        query.headers.names(parameters, spelled),
    ) else {
        return Ok(false);
    };
    let most = match query.rows.order {
        Some(_) => u64::MAX,
        None => wanted,
    };
    let Some(derived) = derived_rows(session, &query.rows, parameters, most)? else {
        return Ok(false);
    };
    let Some(open) = open_to_join(session, &query.rows)? else {
        return Ok(false);
    };
    let make = |session: &mut Session, inputs: PlanInputs| {
        query_over_rows(session, query, inputs, open.view.clone())
    };
    let is_bound_twice =
        |inputs: &PlanInputs| query.subqueries.is_empty() && query.is_told_apart(inputs);
    let make = (is_bound_twice, make);
    let Some((instance, inputs)) = query_instance(session, &query.inputs, parameters, make) else {
        return Ok(false);
    };
    let shown = |names| query.headers.shown(&instance.metas, names);
    let shown = session
        .expressions
        .with(|cache: &mut ExpressionCache| cache.shown_of_query(&query.inputs, names, shown));
    let Some(shown) = shown else {
        return Ok(false);
    };
    let found = walk_join(
        session,
        (&query.rows, derived),
        &open.view,
        parameters,
        most,
    )?;
    let Some(Found::Rows(mut rows)) = found else {
        return Ok(false);
    };
    if query.rows.order.is_some() {
        rows.keep_first(usize::try_from(wanted).unwrap_or(usize::MAX));
    }
    let Some(rows) = query.values(&rows, &open.view)? else {
        return Ok(false);
    };
    // Operators compute the list of all rows.
    if matches!(instance.work, Work::Operators(_))
        && query.computes_list
        && (offset > 0 || rows.len() as u64 > limit)
    {
        return Ok(false);
    }
    let Some(values) = values_of_subqueries(session, query, &instance, (&rows, parameters), &open)?
    else {
        return Ok(false);
    };
    // Queries in the FROM were run before the types of what they show were known.
    if !query.is_current() {
        return Ok(false);
    }
    let batch = query.batch(&rows, &instance.schema, &inputs, values)?;
    let has_several = batch.num_rows() > 1;
    let window = offset..offset.saturating_add(limit);
    let computed = match computed_over_rows(session, &instance.work, batch, window.clone()) {
        // What is too much for all rows at once may do for some after others.
        Err(error) if has_several && error.is(codes::OUT_OF_RESOURCES) => return Ok(false),
        computed => computed?,
    };
    if query.keeps_groups() {
        thread_work::note(Noted::temporary_table());
    }
    if query.query.order_by.is_some() && !query.rows.is_walk() {
        thread_work::note(Noted::sort_of(computed.rows).of_first(window.end));
    }
    sink.columns(&shown.columns)?;
    let (mut skip, mut sent) = (computed.skipped, 0);
    for batch in &computed.batches {
        let rows = batch.num_rows() as u64;
        let start = skip.min(rows);
        skip -= start;
        let length = (rows - start).min(limit - sent);
        if length > 0 {
            sink.rows(&batch.slice(start as usize, length as usize))?;
        }
        sent += length;
    }
    end_direct_read(session, sent, sink)
}

/// The rows of the result, at least those of a window.
fn computed_over_rows(
    session: &mut Session,
    work: &Work,
    rows: RecordBatch,
    window: Range<u64>,
) -> Result<ComputedResult> {
    match work {
        Work::Computed(computed) => {
            let (batch, rows) = computed.run(rows, window)?;
            Ok(ComputedResult {
                batches: vec![batch],
                rows,
                skipped: 0,
            })
        }
        Work::Operators(plan) => {
            let plan = over(plan, rows)?;
            let (task, cancel) = (session.task_context(), session.handle.cancel_flag().clone());
            let batches = session.workers.runtime()?.run_here(plan, task, cancel);
            let batches = batches.collect::<std::result::Result<Vec<RecordBatch>, _>>()?;
            Ok(ComputedResult {
                rows: batches.iter().map(RecordBatch::num_rows).sum(),
                batches,
                skipped: window.start,
            })
        }
    }
}

/// The values of the subqueries for each row. `None`: the vectorised path has to do it.
fn values_of_subqueries(
    session: &mut Session,
    query: &OverRows,
    instance: &QueryInstance,
    (rows, parameters): (&[Vec<Value>], &[Value]),
    open: &OpenTables<'_>,
) -> Result<Option<Vec<ArrayRef>>> {
    if query.runs_of_subqueries(rows) > MAX_SUBQUERY_RUNS {
        return Ok(None);
    }
    let fields = instance.schema.fields();
    let fields = &fields[fields.len() - query.subqueries.len()..];
    let read_before = session.handle.counters.rows_read.get();
    let before = session.statement.view.replace(open.view.clone());
    let mut of_each = || {
        let mut arrays = Vec::with_capacity(fields.len());
        let mut outer = query.outer.as_slice();
        for (subquery, field) in query.subqueries.iter().zip(fields) {
            let (own, others) = outer.split_at(subquery.outer.len());
            outer = others;
            let ty = field.data_type();
            let computed = match &subquery.computed {
                None => None,
                Some(expressions) => match evaluator(session, expressions, parameters) {
                    None => return Ok(None),
                    computed => computed,
                },
            };
            let mut values = Vec::with_capacity(rows.len());
            for (at, row) in rows.iter().enumerate() {
                if is_known(own, rows, at)
                    && let Some(before) = values.last()
                {
                    values.push(Arc::clone(before));
                    continue;
                }
                let mut given = parameters.to_vec();
                given.extend(own.iter().map(|column| row[*column].clone()));
                if let Some(computed) = &computed
                    && !subquery.compute(computed, (own, row), &mut given)?
                {
                    return Ok(None);
                }
                match subquery.array(session, &given, ty)? {
                    Some(value) => values.push(value),
                    None => return Ok(None),
                }
                let read = session.handle.counters.rows_read.get();
                if read.saturating_sub(read_before) > MAX_SUBQUERY_ROWS {
                    return Ok(None);
                }
            }
            arrays.push(joined(&values, ty)?);
        }
        Ok(Some(arrays))
    };
    let outcome = of_each();
    session.statement.view = before;
    outcome
}

/// The plan over rows, for what it is given; `None` if it cannot be made.
fn query_over_rows(
    session: &mut Session,
    query: &OverRows,
    mut inputs: PlanInputs,
    view: ReadView,
) -> Option<QueryInstance> {
    session
        .findings
        .watch_divisions(session.variables.sql_mode());
    for (number, subquery) in query.subqueries.iter().enumerate() {
        let field = subquery.field(number, session, &query.text)?;
        inputs.fields.push(field);
    }
    let mut written = inputs.put_into(&query.query);
    if !inputs.fields.is_empty()
        && let ast::SetExpr::Select(select) = written.to_mut().body.as_mut()
    {
        select.from.push(table_of(INPUTS));
    }
    let given = Arc::new(Schema::new(inputs.fields.clone()));
    let given = Arc::new(MemoryTableSource::new(
        INPUTS.to_string(),
        given,
        Vec::new(),
    ));
    let written = Parsed::new(written.as_ref(), query.text.as_str());
    let is_described = !query.is_told_apart(&inputs);
    session.task_context();
    let computed = computed_rows(session, query, &inputs, (written, &given, is_described));
    let (work, schema, described) = match computed {
        Some((computed, described)) => {
            let schema = Arc::clone(&computed.schema);
            (Work::Computed(Box::new(computed)), schema, described)
        }
        None => operators(
            session,
            query,
            &inputs,
            (written, &given, is_described),
            view,
        )?,
    };
    // What was wrong with constants is to be told by each run.
    let (texts, _) = session.findings.truncated_texts.take();
    let (oversized, _) = session.findings.oversized_results.take();
    if !texts.is_empty() || !oversized.is_empty() {
        return None;
    }
    // A client is told of the columns of the query as it is written.
    let Described { mut metas, types } = described;
    // What stands in the place of a subquery's column is an expression.
    for meta in metas.iter_mut().filter(|meta| meta.table == INPUTS) {
        meta.forget_column();
    }
    let is_as_told = match &work {
        Work::Computed(computed) => computed.types().eq(types.iter()),
        Work::Operators(plan) => {
            let made = plan.schema();
            let made = made.fields().iter().map(|field| field.data_type());
            made.eq(types.iter())
        }
    };
    let is_as_told = is_as_told && metas.len() == query.headers.columns;
    is_as_told.then_some(QueryInstance {
        work,
        schema,
        free: inputs.free,
        metas,
    })
}

/// As [`query_over_rows`], without operators; `None` if it needs some.
fn computed_rows(
    session: &Session,
    query: &OverRows,
    inputs: &PlanInputs,
    (written, given, is_described): Written<'_>,
) -> Option<(ComputedRows, Described)> {
    let is_distinct = |select: &ast::Select| select.distinct.is_some();
    if matches!(written.ast.body.as_ref(), ast::SetExpr::Select(select) if is_distinct(select)) {
        return None;
    }
    let bound = session.bind_row_query(written, given).ok()??;
    let columns = columns_of_rows(query, inputs);
    let computed = ComputedRows::new(session, &bound, &columns)?;
    let described = match is_described {
        true => describe_row_query(session, &bound, &computed),
        false if query.subqueries.is_empty() => {
            let constant = inputs.put_constants_into(query.described());
            let constant = Parsed::new(&constant, query.text.as_str());
            let bound = session.bind_row_query(constant, given).ok()??;
            let own = ComputedRows::new(session, &bound, &columns[..query.read.len()])?;
            describe_row_query(session, &bound, &own)
        }
        false => None,
    };
    let described = match described {
        Some(described) => described,
        None => described_with_constants(session, query, inputs)?,
    };
    Some((computed, described))
}

/// How a client is told of a query with constants in the places of its inputs.
fn described_with_constants(
    session: &Session,
    query: &OverRows,
    inputs: &PlanInputs,
) -> Option<Described> {
    let constant = inputs.put_constants_into(query.described());
    let lowered = session.lower_shape(&constant, &query.text).ok()?;
    Some(Described {
        metas: session.columns_of(&lowered),
        types: types_of(&lowered.plan),
    })
}

/// As [`query_over_rows`], as operators.
fn operators(
    session: &mut Session,
    query: &OverRows,
    inputs: &PlanInputs,
    (written, given, is_described): Written<'_>,
    view: ReadView,
) -> Option<(Work, SchemaRef, Described)> {
    let lowered = session.lower_over_rows(written, given).ok()?;
    let described = match is_described {
        true => Described {
            metas: session.columns_of(&lowered),
            types: types_of(&lowered.plan),
        },
        false => described_with_constants(session, query, inputs)?,
    };
    let mut schema = None;
    let plan = with_rows(lowered.plan, &mut |from| {
        let (made, plan) = rows_as(from, query, inputs)?;
        schema = Some(made);
        Ok(plan)
    });
    let mut context = session.planner_context(view);
    context.settings.target_partitions = 1;
    context.trace = Trace::default();
    let optimized = optimize_logical(plan.ok()?, &context).ok()?;
    let physical = plan_physical(&optimized, &context).ok()?;
    Some((Work::Operators(physical.plan), schema?, described))
}
