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
//! Conjuncts that are neither keys nor tests of a row are the plan's own filter. LIMIT is applied to its result, before
//! the select list is computed where no operators are needed ([`super::expression::row_query`]). Where the rows of the
//! result are those that were found, in an order of their own columns, LIMIT leaves as many of them to the plan as are
//! wanted, and to its subqueries.

mod extremes;
mod rows_in_plan;
mod run;
mod steps;

use sheaf_exec::value_array::array_of;
use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{Field, SchemaRef};
use sheaf_frontend::bind::over_rows::VALUE_OF_SUBQUERY;
use sheaf_frontend::walk::{read_expression, walk_query};
use sheaf_storage::ReadView;
use sheaf_types::{ColumnType, Value};
use sqlparser::ast;

use super::derived::{is_in_from, is_link, without_conditions};
use super::expression::{Collector, Inputs, PlanInputs};
use super::join::joined_result::Rows;
use super::join::{Join, Source, ordered_columns};
use super::operands::operand::Operand;
use super::read::{PlainQuery, limit_and_offset, plain_query, plain_select_of_groups};
use super::rows::order::MAX_SORTED_BYTES;
use super::rows::stored_value::value_of;
use super::shown::joined_list::JoinedKey;
use super::shown::select_list::{Headers, shown_whole};
use super::subquery::{Restored, Subqueries, Subquery};
use super::syntax::attempt::Attempt;
use super::syntax::names::{Names, column_of};
use super::syntax::select_shape::{
    PartsOfRow, aliases_of, computes_list, has_aggregate, has_queries, is_one_group, is_text,
    qualify_wildcard, shows_columns_of_queries, shows_each_row,
};
use crate::accounts::TableNeed;
use crate::error::Result;
use crate::query::value_extent::is_string;
use crate::query::values::ONE_ITEM;
use crate::session::Session;

use extremes::of_extremes;
pub(super) use run::run_direct_over_rows;

/// Subqueries of a statement are run so often, at most. A run takes 3 to 6 us; to read each table once instead takes 2
/// to 5 ms for 500 rows, most of which is planning.
const MAX_SUBQUERY_RUNS: usize = 400;

/// The rows that they may read together, which take 3 ms: what is given up then is lost. A table that is read once for
/// all has them no more often.
const MAX_SUBQUERY_ROWS: u64 = 4_000;

/// Rows beside a longer value have no such plan: what is made of it is computed in one batch, and operators compute it
/// for few rows at a time. To find that out took memory that they need.
const MAX_VALUE_BYTES: usize = 1 << 20;

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
    /// What operators make of the rows is not all that is shown of them.
    computes_list: bool,
    /// What is left of the WHERE may compare a text with a number.
    pub(super) filters_texts: bool,
    /// As that of a join.
    otherwise: Option<Box<OverRows>>,
}

/// Where a plan begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// With rows that keys find.
    Keys,
    /// With a walk along an index, whether or not keys find its rows.
    Walk,
    /// With all rows of a small table, if no keys find any.
    Small,
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

/// Values of subqueries that take nothing but whole numbers that are grouped by are the same in each row of a group.
/// They are grouped by as well, so that they may be shown.
fn group_by_subqueries(
    group_by: &mut ast::GroupByExpr,
    subqueries: &[Subquery],
    names: &[Names<'_>],
) {
    let ast::GroupByExpr::Expressions(keys, modifiers) = group_by else {
        return;
    };
    if keys.is_empty() || !modifiers.is_empty() {
        return;
    }
    let columns: Vec<_> = keys
        .iter()
        .filter_map(|key| column_of(names, key))
        .collect();
    let is_key = |outer: &(usize, usize)| {
        let (table, column) = *outer;
        let ty = &names[table].definition().columns[column].ty;
        ty.is_integer() && columns.contains(outer)
    };
    for (number, subquery) in subqueries.iter().enumerate() {
        if subquery.outer.iter().all(is_key) {
            let name = format!("{VALUE_OF_SUBQUERY}{number}");
            let name = ast::Ident::with_quote('`', name);
            keys.push(ast::Expr::Identifier(name));
        }
    }
}

impl OverRows {
    /// The plan of a query; `None` if its rows are not found by keys.
    pub(super) fn compile(
        session: &Session,
        query: &ast::Query,
        attempt: Attempt<'_>,
    ) -> Option<OverRows> {
        let mut plan = OverRows::compile_one(session, (query, attempt), Begin::Keys)?;
        if plan.is_cut && !plan.rows.is_walk() {
            match OverRows::compile_one(session, (query, attempt), Begin::Walk) {
                // As of a join: it can end before the last of the same rows.
                Some(mut walk) if walk.rows.reads_rows_of(&plan.rows) => {
                    walk.otherwise = Some(Box::new(plan));
                    plan = walk;
                }
                walk => plan.otherwise = walk.map(Box::new),
            }
        }
        Some(plan)
    }

    /// The same of a query that no index serves: it reads its only table from end to end, if that is small.
    pub(super) fn compile_whole(
        session: &Session,
        query: &ast::Query,
        attempt: Attempt<'_>,
    ) -> Option<OverRows> {
        let plan = OverRows::compile_one(session, (query, attempt), Begin::Small)?;
        (plan.rows.tables.len() == 1 && plan.rows.reads_small()).then_some(plan)
    }

    fn compile_one(
        session: &Session,
        (query, attempt): (&ast::Query, Attempt<'_>),
        begin: Begin,
    ) -> Option<OverRows> {
        let text = attempt.text;
        // It may have such a value.
        if text.len() > MAX_VALUE_BYTES {
            return None;
        }
        let walks = begin == Begin::Walk;
        let PlainQuery {
            select,
            order_by,
            limit_clause,
            locks,
        } = plain_query(query)?;
        if !locks.is_empty() {
            return None;
        }
        plain_select_of_groups(select, true)?;
        let written = select;
        let of_extremes = match order_by {
            None => of_extremes(select),
            Some(_) => None,
        };
        let select = of_extremes.as_ref().unwrap_or(select);
        let selection = select.selection.as_ref();
        let mut source = match select.from.as_slice() {
            [] => Source::of_nothing(selection),
            from => Source::of(session, from, selection, attempt)?,
        };
        if source.rest().iter().any(|conjunct| is_link(conjunct)) {
            return None;
        }
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
        let is_alone = source.names.len() == 1
            && !is_in_from()
            && !has_queries(select)
            && begin != Begin::Small;
        if !source.is_read() && !walks && !is_alone {
            source.take_few(session);
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
            read_expression(conjunct, &mut parts);
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
        let of_subqueries = match of_extremes {
            Some(_) => attempt.with_text(ONE_ITEM),
            None => attempt,
        };
        let mut subqueries = Subqueries::new(session, names, of_subqueries);
        let mut take = |expr: &mut ast::Expr, collector: &mut Collector<'_>| {
            subqueries.take_from(expr)?;
            collector.take_part(expr)
        };
        for item in &mut taken.projection {
            match item {
                ast::SelectItem::UnnamedExpr(expr)
                | ast::SelectItem::ExprWithAlias { expr, .. } => {
                    take(expr, &mut collector)?;
                    collector.free_parameter(expr);
                }
                item => {
                    has_wildcard = true;
                    for table in shown_whole(item, names)? {
                        let definition = names[table].definition();
                        // A plan over the rows shows all that are read.
                        if definition.columns.iter().any(|column| column.invisible) {
                            return None;
                        }
                        let columns = 0..definition.columns.len();
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
        let rolls_up = matches!(&select.group_by, ast::GroupByExpr::Expressions(_, modifiers) if !modifiers.is_empty());
        // Whether their values are those of a group is decided with names.
        if rolls_up && !subqueries.is_empty() {
            return None;
        }
        group_by_subqueries(&mut taken.group_by, &subqueries, names);
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
        let computes_list = select.distinct.is_none() && computes_list(&taken);
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
            rows: Join::of_rows(
                session.variables.pushes_index_conditions(),
                source,
                &places,
                cut_key,
            )?,
            is_cut: cut_order.is_some(),
            computes_list,
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

    /// The values of the columns that are read, row by row. `None` for more of several rows than are sorted in memory.
    fn values(&self, rows: &Rows, view: &ReadView) -> Result<Option<Vec<Vec<Value>>>> {
        let mut values: Vec<Vec<Value>> = Vec::new();
        let mut bytes = 0;
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
            let row: Vec<Value> = self.read.iter().map(of_column).collect::<Result<_>>()?;
            bytes += row.iter().map(Value::string_bytes).sum::<usize>();
            if bytes > MAX_SORTED_BYTES && !values.is_empty() {
                return Ok(None);
            }
            values.push(row);
        }
        Ok(Some(values))
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
