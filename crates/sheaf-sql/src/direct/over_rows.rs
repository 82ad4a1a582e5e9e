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
//! Conjuncts that are neither keys nor tests of a row are the plan's own filter. LIMIT is applied to its result. Where
//! the rows of the result are those that were found, in an order of their own columns, LIMIT leaves as many of them to
//! the plan as are wanted, and to its subqueries.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, DataFusionError, ScalarValue, TableReference};
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::MemoryTableSource;
use sheaf_exec::operator::values_exec::ValuesExec;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression, walk_query};
use sheaf_optimizer::{Trace, optimize_logical, plan_physical};
use sheaf_storage::ReadView;
use sheaf_types::{ColumnType, Value};
use smallvec::SmallVec;
use sqlparser::ast;

use super::derived::{is_in_from, without_conditions};
use super::expression::{Collector, INPUTS, Inputs, PlanInputs};
use super::join::{Join, Source, ordered_columns};
use super::join_walk::OpenTables;
use super::joined_result::{Found, JoinedKey, Rows};
use super::names::{Names, column_of};
use super::operand::Operand;
use super::read::{
    MAX_LIMITED_ROWS, PlainQuery, limit_and_offset, plain_query, plain_select_of_groups, row_count,
};
use super::row::value_of;
use super::row_query::{ComputedRows, Described};
use super::select_list::{Headers, Spelled, is_aggregate_name, shown_whole};
use super::subquery::{Restored, Subqueries, Subquery, joined};
use crate::accounts::TableNeed;
use crate::error::Result;
use crate::parser::{Parsed, ParsedQuery};
use crate::query::row_evaluator::{array_of, table_of};
use crate::query::value_extent::is_string;
use crate::query::values::{ONE_ITEM, select_of};
use crate::session::Session;
use crate::session::result::{ColumnMeta, ResultSink};

/// Subqueries of a statement are run so often, at most.
const MAX_SUBQUERY_RUNS: usize = 200;

/// The table that the rows are in the plan. No identifier is written like this.
const ROWS: &str = "\0rows";

/// See the module's comment.
#[derive(Debug)]
pub(super) struct OverRows {
    pub(super) rows: Join,
    /// With names in the places of its inputs, without what finds the rows.
    pub(super) query: ast::Query,
    /// In whose places columns stand in it.
    pub(super) subqueries: Vec<Subquery>,
    /// The columns that these take from a row, by their places in what is read.
    outer: Vec<usize>,
    /// The statement's own text.
    text: String,
    inputs: Inputs,
    /// The select list has inputs.
    shows_inputs: bool,
    read: Vec<ReadColumn>,
    headers: Headers,
    pub(super) limit: Option<Operand>,
    pub(super) offset: Option<Operand>,
    /// Of the rows that were found so many are used as LIMIT and OFFSET say.
    is_cut: bool,
    /// What is left of the WHERE may compare a text with a number.
    pub(super) filters_texts: bool,
    /// As that of a join.
    otherwise: Option<Box<OverRows>>,
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

/// What is done with the rows.
enum Work {
    Operators(Arc<dyn ExecutionPlan>),
    /// What is computed of each, or of groups of them.
    Computed(Box<ComputedRows>),
}

/// The plan for some values of the inputs.
pub(super) struct QueryInstance {
    work: Work,
    /// The columns of the rows, and the inputs that are columns.
    schema: SchemaRef,
    pub(super) free: SmallVec<[usize; 4]>,
    metas: Vec<ColumnMeta>,
}

impl OverRows {
    /// What the operators do with the rows, in their order.
    pub(super) fn steps(&self) -> Vec<&'static str> {
        let ast::SetExpr::Select(select) = self.query.body.as_ref() else {
            return Vec::new();
        };
        let has_keys = match &select.group_by {
            ast::GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
            ast::GroupByExpr::All(_) => true,
        };
        let steps = [
            (select.selection.is_some(), "filter"),
            (has_keys || has_many_row_function(select), "aggregate"),
            (select.having.is_some(), "filter groups"),
            (select.distinct.is_some(), "remove duplicates"),
            (self.query.order_by.is_some(), "sort"),
        ];
        let done = steps.into_iter().filter(|(is_done, _)| *is_done);
        done.map(|(_, step)| step).collect()
    }

    /// The plan of a query; `None` if its rows are not found by keys. `text` is what was parsed.
    /// `parameters`: how many the statement has, with what its session gives besides.
    pub(super) fn compile(
        session: &Session,
        (query, text): (&ast::Query, &str),
        parameters: usize,
    ) -> Option<OverRows> {
        let given = ((query, text), parameters);
        let mut plan = OverRows::compile_one(session, given, false)?;
        if plan.is_cut && !plan.rows.is_walk() {
            let otherwise = OverRows::compile_one(session, given, true);
            plan.otherwise = otherwise.map(Box::new);
        }
        Some(plan)
    }

    /// `walks`: it is to go along an index, whether or not keys find its rows.
    fn compile_one(
        session: &Session,
        ((query, text), parameters): ((&ast::Query, &str), usize),
        walks: bool,
    ) -> Option<OverRows> {
        let PlainQuery {
            select,
            order_by,
            limit_clause,
            locks,
        } = plain_query(query)?;
        if !locks.is_empty() {
            return None;
        }
        plain_select_of_groups(select)?;
        let written = select;
        let of_extremes = match order_by {
            None => of_extremes(select),
            Some(_) => None,
        };
        let select = of_extremes.as_ref().unwrap_or(select);
        let selection = select.selection.as_ref();
        let mut source = match select.from.as_slice() {
            [] => Source::of_nothing(selection),
            from => Source::of(session, from, selection, (text, parameters))?,
        };
        // Those of ORDER BY, if the rows that are found are those of the result, and there is a LIMIT.
        let cut_order = match (limit_clause, order_by) {
            (Some(_), order_by) if shows_each_row(select) && source.rest().is_empty() => {
                let ordered = match order_by {
                    Some(order_by) => ordered_columns(order_by, select, &source.names),
                    None => Some(Vec::new()),
                };
                // The keys of rows have no place for a row that is missing.
                let is_missing = |table: usize| !source.names.is_empty() && source.is_outer(table);
                ordered.filter(|columns| columns.iter().all(|(table, ..)| !is_missing(*table)))
            }
            _ => None,
        };
        let is_alone = source.names.len() == 1 && !is_in_from() && !has_queries(select);
        if !source.is_read() && !walks && !is_alone {
            source.take_small(session);
        }
        if !source.is_read() || walks && !source.names.is_empty() {
            source.walk(cut_order.as_ref()?)?;
        }
        let is_walk = source.is_walk();
        let names = &source.names;
        let cut_key = match &cut_order {
            Some(columns) if !is_walk && !columns.is_empty() => {
                let place = |table: usize| source.place(table);
                Some(JoinedKey::new(columns, names, place)?)
            }
            _ => None,
        };
        if is_one_group(select) && shows_columns_of_queries(select, names) {
            return None;
        }
        let filters_texts = source.rest().iter().any(|conjunct| {
            let mut parts = PartsOfRow::default();
            walk_expression(&mut (*conjunct).clone(), &mut parts);
            parts.computes || parts.columns.iter().any(|column| is_text(column, names))
        });
        let headers = Headers::of((written, text), names)?;
        let (limit, offset) = match limit_clause {
            Some(clause) => limit_and_offset(clause)?,
            None => (None, None),
        };

        let mut collector = Collector::of_query(names, aliases_of(select));
        let mut taken = select.clone();
        let mut has_wildcard = false;
        let text_of_subqueries = match of_extremes {
            Some(_) => ONE_ITEM,
            None => text,
        };
        let mut subqueries = Subqueries::new(session, (names, text_of_subqueries), parameters);
        let mut take = |expr: &mut ast::Expr, collector: &mut Collector<'_>| {
            subqueries.take_from(expr)?;
            collector.take_part(expr)
        };
        for item in &mut taken.projection {
            match item {
                ast::SelectItem::UnnamedExpr(expr)
                | ast::SelectItem::ExprWithAlias { expr, .. } => take(expr, &mut collector)?,
                item => {
                    has_wildcard = true;
                    for table in shown_whole(item, names)? {
                        let columns = 0..names[table].definition().columns.len();
                        columns.for_each(|column| collector.read(table, column));
                    }
                }
            }
        }
        let shows_inputs = collector.has_inputs();
        taken.selection = None;
        for conjunct in source.rest() {
            let mut conjunct = ast::Expr::Nested(Box::new((*conjunct).clone()));
            take(&mut conjunct, &mut collector)?;
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
                take(expr, &mut collector)?;
            }
        }
        if let Some(having) = &mut taken.having {
            take(having, &mut collector)?;
        }
        let mut order_by = order_by.cloned();
        if let Some(order_by) = &mut order_by {
            let ast::OrderByKind::Expressions(items) = &mut order_by.kind else {
                return None;
            };
            for item in items {
                take(&mut item.expr, &mut collector)?;
            }
        }
        without_conditions(&mut taken.from)?;
        let subqueries = subqueries.found;
        if names.is_empty() && subqueries.is_empty() {
            return None;
        }
        for (table, column) in subqueries.iter().flat_map(|subquery| &subquery.outer) {
            collector.read(*table, *column);
        }
        if has_wildcard && !subqueries.is_empty() {
            qualify_wildcard(&mut taken.projection, names)?;
        }
        // What is no constant any more would have to be grouped by, or to be shown.
        let is_plain = matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
            && select.having.is_none()
            && select.distinct.is_none()
            && !has_wildcard
            && !select.projection.iter().any(has_aggregate);
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
        let mut places: Vec<(usize, usize)> = read
            .iter()
            .map(|column| (column.place, column.column))
            .collect();
        places.extend(cut_key.iter().flat_map(JoinedKey::columns));
        let query = ast::Query {
            with: query.with.clone(),
            body: Box::new(ast::SetExpr::Select(Box::new(taken))),
            order_by,
            limit_clause: None,
            fetch: query.fetch.clone(),
            locks: query.locks.clone(),
            for_clause: query.for_clause.clone(),
            settings: query.settings.clone(),
            format_clause: query.format_clause.clone(),
            pipe_operators: query.pipe_operators.clone(),
        };
        let outer = subqueries.iter().flat_map(|subquery| &subquery.outer);
        let is_read = |(table, column): &(usize, usize)| {
            let place = source.place(*table)?;
            read.iter()
                .position(|read| (read.place, read.column) == (place, *column))
        };
        let outer = outer.map(is_read).collect::<Option<Vec<usize>>>()?;
        Some(OverRows {
            query,
            subqueries,
            outer,
            rows: Join::of_rows(session, source, &places, cut_key)?,
            is_cut: cut_order.is_some(),
            filters_texts,
            otherwise: None,
            text: text.to_string(),
            inputs,
            shows_inputs,
            read,
            headers,
            limit,
            offset,
        })
    }

    pub(super) fn result_columns(&self) -> usize {
        self.headers.columns
    }

    /// The query as a client has written it, but with names in the places of its inputs.
    fn described(&self) -> Cow<'_, ast::Query> {
        if self.subqueries.is_empty() {
            return Cow::Borrowed(&self.query);
        }
        let mut query = self.query.clone();
        walk_query(&mut query, &mut Restored(&self.subqueries));
        Cow::Owned(query)
    }

    /// Whether a client is told of other columns than those of the query with these inputs: as constants they may have
    /// other types, and only a plan tells how long the texts of subqueries are. What is wrong with a text is told once.
    fn is_told_apart(&self, inputs: &PlanInputs) -> bool {
        let has_text = |field: &Field| is_string(field.data_type());
        inputs.fields.iter().any(has_text) || self.shows_inputs && !inputs.free.is_empty()
    }

    /// Whether all tables are what the plan was made for.
    pub(super) fn is_current(&self) -> bool {
        let mut subqueries = self.subqueries.iter();
        self.rows.is_current() && subqueries.all(Subquery::is_current)
    }

    /// What subqueries need of their tables.
    pub(super) fn needs_of_subqueries(&self) -> impl Iterator<Item = TableNeed> {
        let subqueries = self.subqueries.iter();
        subqueries.flat_map(|subquery| subquery.needs().iter().cloned())
    }

    /// The values of the columns that are read, row by row.
    fn values(&self, rows: &Rows, view: &ReadView) -> Result<Vec<Vec<Value>>> {
        let mut values = Vec::new();
        for row in rows.each(&self.rows) {
            let row = row?;
            let of_column = |read: &ReadColumn| {
                let source = &self.rows.tables[read.place].source;
                match (&row[read.place], source.table()) {
                    (Some(row), Some(table)) => value_of((table, view), row, read.column),
                    (Some(row), None) => Ok(row.value(read.column, &read.ty)),
                    (None, _) => Ok(Value::Null),
                }
            };
            values.push(self.read.iter().map(of_column).collect::<Result<_>>()?);
        }
        Ok(values)
    }

    /// The batch of these rows, with the inputs and the values of subqueries as columns.
    fn batch(
        &self,
        rows: &[Vec<Value>],
        schema: &SchemaRef,
        inputs: &[ArrayRef],
        subqueries: Vec<ArrayRef>,
    ) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(schema.fields().len());
        for (column, read) in self.read.iter().enumerate() {
            let values: Vec<&Value> = rows.iter().map(|row| &row[column]).collect();
            arrays.push(array_of(&read.ty, &values)?);
        }
        let first = UInt64Array::from(vec![0; rows.len()]);
        for input in inputs {
            arrays.push(take(input.as_ref(), &first, None)?);
        }
        arrays.extend(subqueries);
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let schema = Arc::clone(schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// Names the only table of a wildcard, which would show the columns of inputs and subqueries, too.
fn qualify_wildcard(projection: &mut [ast::SelectItem], names: &[Names<'_>]) -> Option<()> {
    for item in projection {
        if let ast::SelectItem::Wildcard(options) = item {
            let [names] = names else {
                return None;
            };
            let alias = ast::Ident::with_quote('`', names.alias);
            let name = ast::ObjectName::from(vec![alias]);
            let kind = ast::SelectItemQualifiedWildcardKind::ObjectName(name);
            *item = ast::SelectItem::QualifiedWildcard(kind, options.clone());
        }
    }
    Some(())
}

/// A query that computes with the least and greatest values of a whole table's columns, as one without a table that
/// computes with subqueries: `MAX(id) + 1` of t is `(SELECT MAX(id) FROM t) + 1`, and an index tells that.
fn of_extremes(select: &ast::Select) -> Option<ast::Select> {
    let is_whole = select.selection.is_none()
        && select.having.is_none()
        && matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty());
    let [ast::TableWithJoins { joins, .. }] = select.from.as_slice() else {
        return None;
    };
    if !is_whole || !joins.is_empty() {
        return None;
    }
    // The only one that there is would be asked for again and again.
    if let [ast::SelectItem::UnnamedExpr(only) | ast::SelectItem::ExprWithAlias { expr: only, .. }] =
        select.projection.as_slice()
        && is_extreme(only)
    {
        return None;
    }
    let mut extremes = Extremes {
        from: &select.from,
        found: 0,
        has_others: false,
    };
    let mut changed = select.clone();
    for item in &mut changed.projection {
        match item {
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                walk_expression(expr, &mut extremes);
            }
            _ => return None,
        }
    }
    changed.from = Vec::new();
    (extremes.found > 0 && !extremes.has_others).then_some(changed)
}

/// See [`of_extremes`].
struct Extremes<'a> {
    from: &'a [ast::TableWithJoins],
    found: usize,
    /// The statement has subqueries of its own, or other aggregates.
    has_others: bool,
}

fn is_extreme(expr: &ast::Expr) -> bool {
    let is_name = |name: String| ["min", "max"].contains(&name.to_ascii_lowercase().as_str());
    matches!(expr, ast::Expr::Function(function) if is_name(function.name.to_string()))
}

impl ExpressionVisitor for Extremes<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.has_others = true;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if is_extreme(expression)
            && let Ok(mut query) = select_of(vec![expression.clone()])
            && let ast::SetExpr::Select(select) = query.body.as_mut()
        {
            select.from = self.from.to_vec();
            *expression = ast::Expr::Subquery(query);
            self.found += 1;
        }
        if let ast::Expr::Function(function) = expression {
            let name = function.name.to_string().to_ascii_lowercase();
            self.has_others |= function.over.is_some() || is_aggregate_name(&name);
        }
        ControlFlow::Continue(())
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
    names.into_iter().any(is_aggregate_name)
}

/// Whether a result has a row for each that is found.
fn shows_each_row(select: &ast::Select) -> bool {
    matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
        && select.having.is_none()
        && select.distinct.is_none()
        && !has_many_row_function(select)
}

/// Whether the items of a SELECT, without their subqueries, have aggregates or window functions.
pub(super) fn has_many_row_function(select: &ast::Select) -> bool {
    let is_of_many = |item: &ast::SelectItem| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            let mut functions = OfMany::default();
            walk_expression(&mut expr.clone(), &mut functions);
            functions.is_found
        }
        _ => false,
    };
    select.projection.iter().any(is_of_many)
}

/// Whether the items, the WHERE or the HAVING of a SELECT have subqueries.
fn has_queries(select: &ast::Select) -> bool {
    let items = select.projection.iter().filter_map(|item| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            Some(expr)
        }
        _ => None,
    });
    let mut parts = items.chain(&select.selection).chain(&select.having);
    parts.any(|expr| {
        let mut queries = OfMany::default();
        walk_expression(&mut expr.clone(), &mut queries);
        queries.has_queries
    })
}

/// Whether the rows of a SELECT are one group, also if there are none.
fn is_one_group(select: &ast::Select) -> bool {
    matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
        && (select.having.is_some() || has_many_row_function(select))
}

/// Whether columns of queries in the FROM are shown that no aggregate is of. A constant among them has its value also
/// where there is no row, and only the vectorised path knows which ones are constants.
fn shows_columns_of_queries(select: &ast::Select, names: &[Names<'_>]) -> bool {
    if names.iter().all(|names| names.table().is_some()) {
        return false;
    }
    let mut parts = PartsOfRow::default();
    for item in &select.projection {
        match item {
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                walk_expression(&mut expr.clone(), &mut parts);
            }
            _ => return true,
        }
    }
    if let Some(having) = &select.having {
        walk_expression(&mut having.clone(), &mut parts);
    }
    let is_of_query = |column: &ast::Expr| match column_of(names, column) {
        Some((table, _)) => names[table].table().is_none(),
        None => false,
    };
    parts.columns.iter().any(is_of_query)
}

fn is_text(column: &ast::Expr, names: &[Names<'_>]) -> bool {
    column_of(names, column).is_some_and(|(table, column)| {
        let ty = &names[table].definition().columns[column].ty;
        ty.is_character() || ty.is_binary()
    })
}

/// What expressions take from a row: the names in them that are neither in aggregates nor in subqueries.
#[derive(Default)]
struct PartsOfRow {
    columns: Vec<ast::Expr>,
    /// There are functions, or their like.
    computes: bool,
    /// Aggregates and subqueries around what is walked.
    depth: usize,
}

impl PartsOfRow {
    fn is_aggregate(expr: &ast::Expr) -> bool {
        matches!(expr, ast::Expr::Function(function)
            if is_aggregate_name(&function.name.to_string().to_ascii_lowercase()))
    }
}

impl ExpressionVisitor for PartsOfRow {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.depth += 1;
    }

    fn leave_query(&mut self) {
        self.depth -= 1;
    }

    fn enter_expression(&mut self, expression: &ast::Expr) {
        self.depth += usize::from(PartsOfRow::is_aggregate(expression));
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if PartsOfRow::is_aggregate(expression) {
            self.depth -= 1;
        } else if self.depth == 0 {
            match expression {
                ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => {
                    self.columns.push(expression.clone());
                }
                ast::Expr::Value(_)
                | ast::Expr::Nested(_)
                | ast::Expr::UnaryOp { .. }
                | ast::Expr::BinaryOp { .. }
                | ast::Expr::Between { .. }
                | ast::Expr::InList { .. }
                | ast::Expr::IsNull(_)
                | ast::Expr::IsNotNull(_)
                | ast::Expr::Exists { .. } => {}
                _ => self.computes = true,
            }
        }
        ControlFlow::Continue(())
    }
}

/// Looks for functions of many rows, but not in subqueries, and for these.
#[derive(Default)]
struct OfMany {
    depth: usize,
    is_found: bool,
    has_queries: bool,
}

impl ExpressionVisitor for OfMany {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.depth += 1;
        self.has_queries = true;
    }

    fn leave_query(&mut self) {
        self.depth -= 1;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Function(function) = expression
            && self.depth == 0
        {
            let name = function.name.to_string().to_ascii_lowercase();
            self.is_found |= function.over.is_some() || is_aggregate_name(&name);
        }
        ControlFlow::Continue(())
    }
}

/// A plan with `rows` in the place of what is below its FROM; `rows` gets the schema that it had. What a scan would
/// leave out, is left out of the rows.
fn with_rows(
    plan: LogicalPlan,
    rows: &mut dyn FnMut(&DFSchema) -> datafusion_common::Result<LogicalPlan>,
) -> datafusion_common::Result<LogicalPlan> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let mut builder = LogicalPlanBuilder::from(rows(&scan.projected_schema)?);
            if let Some(condition) = conjunction(scan.filters) {
                builder = builder.filter(condition)?;
            }
            if let Some(fetch) = scan.fetch {
                builder = builder.limit(0, Some(fetch))?;
            }
            builder.build()
        }
        LogicalPlan::Join(_) | LogicalPlan::SubqueryAlias(_) if !has_filtered_scan(&plan) => {
            rows(plan.schema())
        }
        LogicalPlan::EmptyRelation(nothing) if nothing.produce_one_row => rows(&nothing.schema),
        plan if plan.inputs().len() == 1 => {
            let changed = plan.map_children(|input| with_rows(input, rows).map(Transformed::yes));
            // The rows have no keys, and no sort key or group column is superfluous because of one.
            changed?.data.recompute_schema()
        }
        _ => Err(DataFusionError::Plan("a query without a FROM".into())),
    }
}

/// Whether a table of a FROM is not read whole. The queries of a FROM were run as they are written.
fn has_filtered_scan(from: &LogicalPlan) -> bool {
    match from {
        LogicalPlan::TableScan(scan) => !scan.filters.is_empty() || scan.fetch.is_some(),
        LogicalPlan::Join(join) => has_filtered_scan(&join.left) || has_filtered_scan(&join.right),
        _ => false,
    }
}

impl Session {
    /// False: the vectorised path has to do it.
    pub(super) fn run_direct_over_rows(
        &mut self,
        query: &OverRows,
        given: (&[Value], Spelled<'_>),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let is_done = self.run_one_over_rows(query, given, sink)?;
        match &query.otherwise {
            Some(otherwise) if !is_done => self.run_one_over_rows(otherwise, given, sink),
            _ => Ok(is_done),
        }
    }

    fn run_one_over_rows(
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
        let wanted = match query.is_cut {
            true => limit.saturating_add(offset),
            false => u64::MAX,
        };
        if query.rows.is_walk() && wanted > MAX_LIMITED_ROWS {
            return Ok(false);
        }
        let most = match query.rows.order {
            Some(_) => u64::MAX,
            None => wanted,
        };
        let Some(derived) = self.derived_rows(&query.rows, parameters, most)? else {
            return Ok(false);
        };
        let Some(open) = self.open_to_join(&query.rows)? else {
            return Ok(false);
        };
        let make = |session: &mut Session, inputs: PlanInputs| {
            session.query_over_rows(query, inputs, open.view.clone())
        };
        let is_bound_twice =
            |inputs: &PlanInputs| query.subqueries.is_empty() && query.is_told_apart(inputs);
        let make = (is_bound_twice, make);
        let Some((instance, inputs)) = self.query_instance(&query.inputs, parameters, make) else {
            return Ok(false);
        };
        let shown = |names| query.headers.shown(&instance.metas, names);
        let Some(shown) = self.shown_of_query(&query.inputs, names, shown) else {
            return Ok(false);
        };
        let found = self.walk_join((&query.rows, derived), &open.view, parameters, most)?;
        let Some(Found::Rows(mut rows)) = found else {
            return Ok(false);
        };
        if query.rows.order.is_some() {
            rows.keep_first(usize::try_from(wanted).unwrap_or(usize::MAX));
        }
        let rows = query.values(&rows, &open.view)?;
        let Some(values) =
            self.values_of_subqueries(query, &instance, (&rows, parameters), &open)?
        else {
            return Ok(false);
        };
        // Queries in the FROM were run before the types of what they show were known.
        if !query.is_current() {
            return Ok(false);
        }
        let batch = query.batch(&rows, &instance.schema, &inputs, values)?;
        let batches = match &instance.work {
            Work::Computed(computed) => vec![computed.run(batch)?],
            Work::Operators(plan) => {
                let plan = over(plan, batch)?;
                let (task, cancel) = (self.task_context(), self.handle.cancel_flag().clone());
                self.workers.runtime()?.run_here(plan, task, &cancel)?
            }
        };
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

    /// The values of the subqueries for each row. `None`: the vectorised path has to do it.
    fn values_of_subqueries(
        &mut self,
        query: &OverRows,
        instance: &QueryInstance,
        (rows, parameters): (&[Vec<Value>], &[Value]),
        open: &OpenTables<'_>,
    ) -> Result<Option<Vec<ArrayRef>>> {
        if rows.len() * query.subqueries.len() > MAX_SUBQUERY_RUNS {
            return Ok(None);
        }
        let fields = instance.schema.fields();
        let fields = &fields[fields.len() - query.subqueries.len()..];
        let before = self.statement.view.replace(open.view.clone());
        let mut of_each = || {
            let mut arrays = Vec::with_capacity(fields.len());
            let mut outer = query.outer.as_slice();
            for (subquery, field) in query.subqueries.iter().zip(fields) {
                let (own, others) = outer.split_at(subquery.outer.len());
                outer = others;
                let ty = field.data_type();
                let mut values = Vec::with_capacity(rows.len());
                for row in rows {
                    let mut given = parameters.to_vec();
                    given.extend(own.iter().map(|column| row[*column].clone()));
                    match subquery.array(self, &given, ty)? {
                        Some(value) => values.push(value),
                        None => return Ok(None),
                    }
                }
                arrays.push(joined(&values, ty)?);
            }
            Ok(Some(arrays))
        };
        let outcome = of_each();
        self.statement.view = before;
        outcome
    }

    /// The plan over rows, for what it is given; `None` if it cannot be made.
    fn query_over_rows(
        &mut self,
        query: &OverRows,
        mut inputs: PlanInputs,
        view: ReadView,
    ) -> Option<QueryInstance> {
        self.findings.watch_divisions(self.variables.sql_mode());
        for (number, subquery) in query.subqueries.iter().enumerate() {
            let field = subquery.field(number, self, &query.text)?;
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
        self.task_context();
        let computed = self.computed_rows(query, &inputs, (written, &given, is_described));
        let (work, schema, described) = match computed {
            Some((computed, described)) => {
                let schema = Arc::clone(&computed.schema);
                (Work::Computed(Box::new(computed)), schema, described)
            }
            None => self.operators(query, &inputs, (written, &given, is_described), view)?,
        };
        // What was wrong with constants is to be told by each run.
        let (texts, _) = self.findings.truncated_texts.take();
        let (oversized, _) = self.findings.oversized_results.take();
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

    /// As [`Self::query_over_rows`], without operators; `None` if it needs some.
    fn computed_rows(
        &self,
        query: &OverRows,
        inputs: &PlanInputs,
        (written, given, is_described): Written<'_>,
    ) -> Option<(ComputedRows, Described)> {
        let is_distinct = |select: &ast::Select| select.distinct.is_some();
        if matches!(written.ast.body.as_ref(), ast::SetExpr::Select(select) if is_distinct(select))
        {
            return None;
        }
        let bound = self.bind_row_query(written, given).ok()??;
        let columns = columns_of_rows(query, inputs);
        let computed = ComputedRows::new(self, &bound, &columns)?;
        let described = match is_described {
            true => self.describe_row_query(&bound, &computed),
            false if query.subqueries.is_empty() => {
                let constant = inputs.put_constants_into(query.described());
                let constant = Parsed::new(&constant, query.text.as_str());
                let bound = self.bind_row_query(constant, given).ok()??;
                let own = ComputedRows::new(self, &bound, &columns[..query.read.len()])?;
                self.describe_row_query(&bound, &own)
            }
            false => None,
        };
        let described = match described {
            Some(described) => described,
            None => self.described_with_constants(query, inputs)?,
        };
        Some((computed, described))
    }

    /// How a client is told of a query with constants in the places of its inputs.
    fn described_with_constants(&self, query: &OverRows, inputs: &PlanInputs) -> Option<Described> {
        let constant = inputs.put_constants_into(query.described());
        let lowered = self.lower_shape(&constant, &query.text).ok()?;
        Some(Described {
            metas: self.columns_of(&lowered),
            types: types_of(&lowered.plan),
        })
    }

    /// As [`Self::query_over_rows`], as operators.
    fn operators(
        &mut self,
        query: &OverRows,
        inputs: &PlanInputs,
        (written, given, is_described): Written<'_>,
        view: ReadView,
    ) -> Option<(Work, SchemaRef, Described)> {
        let lowered = self.lower_over_rows(written, given).ok()?;
        let described = match is_described {
            true => Described {
                metas: self.columns_of(&lowered),
                types: types_of(&lowered.plan),
            },
            false => self.described_with_constants(query, inputs)?,
        };
        let mut schema = None;
        let plan = with_rows(lowered.plan, &mut |from| {
            let (made, plan) = rows_as(from, query, inputs)?;
            schema = Some(made);
            Ok(plan)
        });
        let mut context = self.planner_context(view);
        context.settings.target_partitions = 1;
        context.trace = Trace::default();
        let optimized = optimize_logical(plan.ok()?, &context).ok()?;
        let physical = plan_physical(&optimized, &context).ok()?;
        Some((Work::Operators(physical.plan), schema?, described))
    }
}

/// A query with what it is given as a table, and whether its columns are described as it is.
type Written<'a> = (ParsedQuery<'a>, &'a Arc<MemoryTableSource>, bool);

/// The columns of the rows: those that are read, and what is given.
fn columns_of_rows<'a>(query: &'a OverRows, inputs: &'a PlanInputs) -> Vec<(&'a str, &'a str)> {
    let read = query.read.iter();
    let read = read.map(|read| (read.alias.as_str(), read.name.as_str()));
    let given = inputs.fields.iter();
    let given = given.map(|field| (INPUTS, field.name().as_str()));
    read.chain(given).collect()
}

fn types_of(plan: &LogicalPlan) -> Vec<DataType> {
    let fields = plan.schema().fields().iter();
    fields.map(|field| field.data_type().clone()).collect()
}

/// The rows in the place of a FROM, and their columns.
fn rows_as(
    from: &DFSchema,
    query: &OverRows,
    inputs: &PlanInputs,
) -> datafusion_common::Result<(SchemaRef, LogicalPlan)> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (number, (table, name)) in columns_of_rows(query, inputs).into_iter().enumerate() {
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

/// A plan over these rows, for one run.
fn over(plan: &Arc<dyn ExecutionPlan>, batch: RecordBatch) -> Result<Arc<dyn ExecutionPlan>> {
    let over = Arc::clone(plan).transform_up(|plan| {
        let is_rows = plan.downcast_ref::<ValuesExec>().is_some()
            && plan.schema().fields() == batch.schema_ref().fields();
        Ok(match is_rows {
            true => {
                let rows = ValuesExec::new(batch.schema(), vec![batch.clone()]);
                Transformed::yes(Arc::new(rows) as Arc<dyn ExecutionPlan>)
            }
            false => Transformed::no(plan),
        })
    })?;
    Ok(over.data)
}

#[cfg(test)]
mod tests {
    use datafusion_expr::logical_plan::TableScanBuilder;
    use datafusion_expr::{LogicalTableSource, col, lit};

    use super::*;

    fn scan(filters: Vec<Expr>, fetch: Option<usize>) -> LogicalPlan {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let source = Arc::new(LogicalTableSource::new(schema));
        let scan = TableScanBuilder::new(TableReference::bare("t"), source);
        let scan = scan.with_filters(filters).with_fetch(fetch).build();
        LogicalPlan::TableScan(scan.unwrap())
    }

    fn one_row(from: &DFSchema) -> datafusion_common::Result<LogicalPlan> {
        let columns = from.iter().map(|(table, field)| {
            let nothing = Expr::Literal(ScalarValue::Int32(None), None);
            nothing.alias_qualified(table.cloned(), field.name())
        });
        LogicalPlanBuilder::empty(true).project(columns)?.build()
    }

    #[test]
    fn rows_keep_what_a_scan_leaves_out() {
        let above = |below: LogicalPlan| {
            let builder = LogicalPlanBuilder::from(below);
            builder.project([col("t.a")]).unwrap().build().unwrap()
        };
        let filtered = above(scan(vec![col("t.a").gt(lit(3))], Some(5)));
        let plan = with_rows(filtered, &mut one_row).unwrap().to_string();
        let lines: Vec<&str> = plan.lines().map(str::trim).collect();
        let expected = [
            "Projection: t.a",
            "Limit: skip=0, fetch=5",
            "Filter: t.a > Int32(3)",
        ];
        assert_eq!(lines[..3], expected, "{plan}");
        let whole = with_rows(above(scan(Vec::new(), None)), &mut one_row).unwrap();
        assert!(!whole.to_string().contains("Filter"), "{whole}");
    }

    #[test]
    fn joined_rows_take_the_place_of_whole_tables_only() {
        let joined = |filters: Vec<Expr>| {
            let one = LogicalPlanBuilder::from(one_row(scan(Vec::new(), None).schema()).unwrap());
            let other = scan(filters, None);
            let joined = one.alias("one").unwrap().cross_join(other);
            joined.unwrap().build().unwrap()
        };
        assert!(with_rows(joined(Vec::new()), &mut one_row).is_ok());
        assert!(with_rows(joined(vec![col("t.a").gt(lit(3))]), &mut one_row).is_err());
    }

    #[test]
    fn nothing_is_not_replaced_by_rows() {
        let nothing = LogicalPlanBuilder::empty(false).build().unwrap();
        assert!(with_rows(nothing, &mut one_row).is_err());
    }
}
