//! SELECT that computes with its rows what the other direct plans do not: groups and orders of expressions, HAVING,
//! aggregates of any kind, items that are computed from several tables.
//!
//! The rows are found by keys, as those of a join. What is done with them is the vectorised path's own plan, with these
//! rows in the place of the tables. It is made once and run where the connection is, so nothing is planned or handed to
//! other threads:
//!
//! ```text
//!   SELECT t.name, AVG(p.score)          FROM p JOIN t ON t.id = p.team  WHERE p.user = ?
//!   ---------------------------------    ----------------------------------------------
//!   operators, over the rows in memory   keys -> rows                     (a join's walk)
//!   GROUP BY t.id HAVING .. ORDER BY ..
//! ```
//!
//! Conjuncts that are neither keys nor tests of a row are the plan's own filter. LIMIT is applied to its result.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, DataFusionError, ScalarValue, TableReference};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::MemoryTableSource;
use sheaf_exec::values_exec::ValuesExec;
use sheaf_optimizer::{Trace, optimize_logical, plan_physical};
use sheaf_storage::ReadView;
use sheaf_table::{ColumnType, Value};
use smallvec::SmallVec;
use sqlparser::ast;

use super::expression::{Collector, INPUTS, Inputs, PlanInputs};
use super::join::{Join, Source};
use super::joined_result::{Found, Rows};
use super::operand::Operand;
use super::read::{limit_and_offset, plain_select, row_count};
use super::row::value_of;
use super::select_list::{Headers, Spelled, shown_whole};
use crate::error::Result;
use crate::result::{ColumnMeta, ResultSink};
use crate::row_evaluator::{array_of, table_of};
use crate::session::Session;

/// The table that the rows are in the plan. No identifier is written like this.
const ROWS: &str = "\0rows";

/// See the module's comment.
#[derive(Debug)]
pub(super) struct OverRows {
    pub(super) rows: Join,
    /// With names in the places of its inputs, without what finds the rows.
    query: ast::Query,
    /// The statement's own text.
    text: String,
    inputs: Inputs,
    read: Vec<ReadColumn>,
    headers: Headers,
    limit: Option<Operand>,
    offset: Option<Operand>,
}

/// A column of the rows.
#[derive(Debug)]
struct ReadColumn {
    /// Where its table is read.
    place: usize,
    column: usize,
    ty: ColumnType,
    alias: String,
    name: String,
}

/// The plan for some values of the inputs.
pub(super) struct QueryInstance {
    plan: Arc<dyn ExecutionPlan>,
    /// The columns of the rows, and the inputs that are columns.
    schema: SchemaRef,
    pub(super) free: SmallVec<[usize; 4]>,
    metas: Vec<ColumnMeta>,
}

impl OverRows {
    /// The plan of a query; `None` if its rows are not found by keys. `text` is what was parsed.
    pub(super) fn compile(session: &Session, query: &ast::Query, text: &str) -> Option<OverRows> {
        let ast::Query {
            with: None,
            body,
            order_by,
            limit_clause,
            fetch: None,
            locks,
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators,
        } = query
        else {
            return None;
        };
        let ast::SetExpr::Select(select) = body.as_ref() else {
            return None;
        };
        if !locks.is_empty() || !pipe_operators.is_empty() {
            return None;
        }
        let without_having = ast::Select {
            having: None,
            ..select.as_ref().clone()
        };
        plain_select(&without_having)?;
        let source = Source::of(session, &select.from, select.selection.as_ref())?;
        let names = &source.names;
        let headers = Headers::of((select, text), names)?;
        let (limit, offset) = match limit_clause {
            Some(clause) => limit_and_offset(clause)?,
            None => (None, None),
        };

        let mut collector = Collector::of_query(names, aliases_of(select));
        let mut taken = select.as_ref().clone();
        let mut has_wildcard = false;
        for item in &mut taken.projection {
            match item {
                ast::SelectItem::UnnamedExpr(expr)
                | ast::SelectItem::ExprWithAlias { expr, .. } => collector.take_part(expr)?,
                item => {
                    has_wildcard = true;
                    for table in shown_whole(item, names)? {
                        let columns = 0..names[table].definition().columns.len();
                        columns.for_each(|column| collector.read(table, column));
                    }
                }
            }
        }
        taken.selection = None;
        for conjunct in source.rest() {
            let mut conjunct = ast::Expr::Nested(Box::new((*conjunct).clone()));
            collector.take_part(&mut conjunct)?;
            taken.selection = Some(match taken.selection.take() {
                None => conjunct,
                Some(before) => ast::Expr::BinaryOp {
                    left: Box::new(before),
                    op: ast::BinaryOperator::And,
                    right: Box::new(conjunct),
                },
            });
        }
        if let ast::GroupByExpr::Expressions(by, _) = &mut taken.group_by {
            for expr in by {
                collector.take_part(expr)?;
            }
        }
        if let Some(having) = &mut taken.having {
            collector.take_part(having)?;
        }
        let mut order_by = order_by.clone();
        if let Some(order_by) = &mut order_by {
            let ast::OrderByKind::Expressions(items) = &mut order_by.kind else {
                return None;
            };
            for item in items {
                collector.take_part(&mut item.expr)?;
            }
        }
        without_conditions(&mut taken.from)?;
        // What is no constant any more would have to be grouped by, or to be shown.
        let is_plain = select.projection.iter().all(|item| !has_aggregate(item))
            && matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
            && select.having.is_none()
            && select.distinct.is_none()
            && !has_wildcard;
        let (columns, inputs) = collector.finish_query(!is_plain);
        let read = columns.iter().map(|(table, column)| {
            let names = &names[*table];
            let own = &names.definition().columns[*column];
            Some(ReadColumn {
                place: source.place(*table)?,
                column: *column,
                ty: own.ty.clone(),
                alias: names.alias.to_string(),
                name: own.name.clone(),
            })
        });
        let read = read.collect::<Option<Vec<ReadColumn>>>()?;
        let places: Vec<(usize, usize)> = read
            .iter()
            .map(|column| (column.place, column.column))
            .collect();
        Some(OverRows {
            query: ast::Query {
                body: Box::new(ast::SetExpr::Select(Box::new(taken))),
                order_by,
                limit_clause: None,
                ..query.clone()
            },
            rows: Join::of_rows(session, source, &places),
            text: text.to_string(),
            inputs,
            read,
            headers,
            limit,
            offset,
        })
    }

    pub(super) fn result_columns(&self) -> usize {
        self.headers.columns
    }

    /// The batch of the rows that were found, with the inputs as columns.
    fn batch(
        &self,
        rows: &Rows,
        view: &ReadView,
        (schema, inputs): (&SchemaRef, &[ArrayRef]),
    ) -> Result<RecordBatch> {
        let mut values: Vec<Vec<Value>> = self.read.iter().map(|_| Vec::new()).collect();
        let mut count = 0;
        for row in rows.each(&self.rows) {
            let row = row?;
            count += 1;
            for (read, values) in self.read.iter().zip(&mut values) {
                let from = (self.rows.tables[read.place].table.as_ref(), view);
                values.push(match &row[read.place] {
                    Some(row) => value_of(from, row, read.column)?,
                    None => Value::Null,
                });
            }
        }
        let mut arrays = Vec::with_capacity(schema.fields().len());
        for (read, values) in self.read.iter().zip(&values) {
            arrays.push(array_of(&read.ty, &values.iter().collect::<Vec<_>>())?);
        }
        if !inputs.is_empty() {
            let first = UInt64Array::from(vec![0; count]);
            for input in inputs {
                arrays.push(take(input.as_ref(), &first, None)?);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let schema = Arc::clone(schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// What the items of a select list are called by ORDER BY and its like.
fn aliases_of(select: &ast::Select) -> BTreeSet<String> {
    let aliases = select.projection.iter().filter_map(|item| match item {
        ast::SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        _ => None,
    });
    aliases.collect()
}

/// Whether a function is called that may be an aggregate.
fn has_aggregate(item: &ast::SelectItem) -> bool {
    let text = item.to_string().to_ascii_lowercase();
    let names = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    names.into_iter().any(super::select_list::is_aggregate_name)
}

/// Leaves out of a FROM what the rows have been found by. `None` for joins that there are not among such rows.
fn without_conditions(from: &mut [ast::TableWithJoins]) -> Option<()> {
    let always = ast::Expr::value(ast::Value::Boolean(true));
    for join in from.iter_mut().flat_map(|part| &mut part.joins) {
        match &mut join.join_operator {
            ast::JoinOperator::CrossJoin(ast::JoinConstraint::None) => {}
            ast::JoinOperator::Join(_) | ast::JoinOperator::Inner(_) => {
                join.join_operator = ast::JoinOperator::CrossJoin(ast::JoinConstraint::None);
            }
            ast::JoinOperator::Left(ast::JoinConstraint::On(condition))
            | ast::JoinOperator::LeftOuter(ast::JoinConstraint::On(condition)) => {
                *condition = always.clone();
            }
            _ => return None,
        }
    }
    Some(())
}

/// A plan with `rows` in the place of what is below its FROM; `rows` gets the schema that it had.
fn with_rows(
    plan: LogicalPlan,
    rows: &mut dyn FnMut(&DFSchema) -> datafusion_common::Result<LogicalPlan>,
) -> datafusion_common::Result<LogicalPlan> {
    match plan {
        LogicalPlan::Join(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::TableScan(_) => {
            rows(plan.schema())
        }
        plan if plan.inputs().len() == 1 => {
            let changed = plan.map_children(|input| with_rows(input, rows).map(Transformed::yes));
            Ok(changed?.data)
        }
        _ => Err(DataFusionError::Plan("a query without a FROM".into())),
    }
}

impl Session {
    /// False: the vectorised path has to do it.
    pub(super) fn run_direct_over_rows(
        &mut self,
        query: &OverRows,
        (parameters, spelled): (&[Value], Spelled<'_>),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let (Some(limit), Some(offset), Some(names)) = (
            row_count(
                query.limit.as_ref(),
                parameters,
                self.variables.sql_select_limit(),
            ),
            row_count(query.offset.as_ref(), parameters, 0),
            query.headers.names(parameters, spelled),
        ) else {
            return Ok(false);
        };
        let Some(open) = self.open_to_join(&query.rows)? else {
            return Ok(false);
        };
        let make = |session: &mut Session, inputs: PlanInputs| {
            session.query_over_rows(query, inputs, open.view.clone())
        };
        let Some((instance, inputs)) = self.query_instance(&query.inputs, parameters, make) else {
            return Ok(false);
        };
        let shown = |names| query.headers.shown(&instance.metas, names);
        let Some(shown) = self.shown_of_query(&query.inputs, names, shown) else {
            return Ok(false);
        };
        let found = self.walk_join(&query.rows, &open.view, parameters, u64::MAX)?;
        let Some(Found::Rows(rows)) = found else {
            return Ok(false);
        };
        let batch = query.batch(&rows, &open.view, (&instance.schema, &inputs))?;
        let plan = instance.over(batch)?;
        let (task, cancel) = (self.task_context(), self.handle.cancel_flag().clone());
        let batches = self.runtime()?.run_here(plan, task, &cancel)?;
        sink.columns(&shown.columns)?;
        let (mut skip, mut sent) = (offset, 0);
        for batch in &batches {
            let rows = batch.num_rows() as u64;
            let start = skip.min(rows);
            skip -= start;
            let length = (rows - start).min(limit - sent);
            if length > 0 {
                sink.rows(&batch.slice(start as usize, length as usize))?;
            }
            sent += length;
        }
        self.end_direct_read(sent, sink)
    }

    /// The plan over rows, for what it is given; `None` if it cannot be made.
    fn query_over_rows(
        &mut self,
        query: &OverRows,
        inputs: PlanInputs,
        view: ReadView,
    ) -> Option<QueryInstance> {
        self.watch_divisions();
        let mut written = inputs.put_into(&query.query);
        if !inputs.fields.is_empty()
            && let ast::SetExpr::Select(select) = written.body.as_mut()
        {
            select.from.push(table_of(INPUTS));
        }
        let given = Arc::new(Schema::new(inputs.fields.clone()));
        let given = MemoryTableSource::new(INPUTS.to_string(), given, Vec::new());
        let lowered = self
            .lower(&written, &query.text, Some(&Arc::new(given)), false)
            .ok()?;
        let metas = match inputs.fields.is_empty() {
            true => self.columns_of(&lowered.plan, &lowered.headers),
            false => {
                let constant = inputs.put_constants_into(&query.query);
                let lowered = self.lower(&constant, &query.text, None, false).ok()?;
                self.columns_of(&lowered.plan, &lowered.headers)
            }
        };
        let mut schema = None;
        let plan = with_rows(lowered.plan, &mut |from| {
            let (made, plan) = rows_as(from, query, &inputs)?;
            schema = Some(made);
            Ok(plan)
        });
        let mut context = self.planner_context(view);
        context.settings.target_partitions = 1;
        context.trace = Trace::default();
        let optimized = optimize_logical(plan.ok()?, &context).ok()?;
        let physical = plan_physical(&optimized, &context).ok()?;
        (metas.len() == query.headers.columns).then_some(QueryInstance {
            plan: physical.plan,
            schema: schema?,
            free: inputs.free,
            metas,
        })
    }
}

/// The rows in the place of a FROM, and their columns.
fn rows_as(
    from: &DFSchema,
    query: &OverRows,
    inputs: &PlanInputs,
) -> datafusion_common::Result<(SchemaRef, LogicalPlan)> {
    let read = query.read.iter();
    let read = read.map(|read| (read.alias.as_str(), read.name.as_str()));
    let given = inputs.fields.iter();
    let given = given.map(|field| (INPUTS, field.name().as_str()));
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (number, (table, name)) in read.chain(given).enumerate() {
        let is_it = |(qualifier, field): &(Option<&TableReference>, &Arc<Field>)| {
            qualifier.is_some_and(|qualifier| qualifier.table() == table) && field.name() == name
        };
        let found = from.iter().find(is_it);
        let missing = || DataFusionError::Plan(format!("no column {table}.{name}"));
        let (qualifier, field) = found.ok_or_else(missing)?;
        let own = format!("c{number}");
        fields.push(field.as_ref().clone().with_name(&own));
        let column = Expr::Column(Column::new(Some(ROWS), own));
        columns.push(column.alias_qualified(qualifier.cloned(), name));
    }
    // A key is grouped by together with the columns that depend on it, whether or not they are read.
    for (qualifier, field) in from.iter() {
        let is_read =
            |column: &Expr| column.qualified_name() == (qualifier.cloned(), field.name().clone());
        if !columns.iter().any(is_read) {
            let nothing = Expr::Literal(ScalarValue::try_from(field.data_type())?, None);
            columns.push(nothing.alias_qualified(qualifier.cloned(), field.name()));
        }
    }
    let schema = Arc::new(Schema::new(fields));
    let source = MemoryTableSource::new(ROWS.to_string(), Arc::clone(&schema), Vec::new());
    let scan = LogicalPlanBuilder::scan(TableReference::bare(ROWS), Arc::new(source), None)?;
    Ok((schema, scan.project(columns)?.build()?))
}

impl QueryInstance {
    /// The plan over these rows, for one run.
    fn over(&self, batch: RecordBatch) -> Result<Arc<dyn ExecutionPlan>> {
        let over = Arc::clone(&self.plan).transform_up(|plan| {
            let is_rows = plan.downcast_ref::<ValuesExec>().is_some()
                && plan.schema().fields() == self.schema.fields();
            Ok(match is_rows {
                true => {
                    let rows = ValuesExec::new(Arc::clone(&self.schema), vec![batch.clone()]);
                    Transformed::yes(Arc::new(rows) as Arc<dyn ExecutionPlan>)
                }
                false => Transformed::no(plan),
            })
        })?;
        Ok(over.data)
    }
}
