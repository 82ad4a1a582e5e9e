//! Queries: set operations, and what orders and limits their rows.
//!
//! ```text
//!   WITH ...                     names for the query and those inside of it (`common_table.rs`)
//!   a UNION b UNION ALL c        one operation of all parts, from the left
//!   ORDER BY 1, x + 1            keys of the columns that are shown, or computed of them
//!   LIMIT 10 OFFSET 5            of the sorted rows
//! ```
//!
//! The ORDER BY of a single SELECT is bound with it, as it may name columns that the SELECT does not show
//! (`select.rs`). That of a set operation names only what the operation shows.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion_expr::{WindowFrame, WindowFunctionDefinition};
use sheaf_algebra::relation::{Item, JoinKind, Operator, Project, SetKind, SortKey, Values};
use sheaf_algebra::scalar::Comparison;
use sheaf_algebra::scalar::typing::WindowCall;
use sheaf_algebra::{Relation, Scalar};
use sheaf_exec::typing::Purpose;
use sheaf_types::Value as SqlValue;
use sheaf_types::error::codes;
use sqlparser::ast::{
    Expr, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, SetExpr, SetOperator,
    SetQuantifier, Value as Literal,
};

use super::block::{Block, Clause, with_subqueries};
use super::from::plain_name;
use super::ordered_query::{OrderedQuery, order_of_parts, select_in_parentheses};
use super::scope::{Scope, ScopeColumn, TableName};
use super::set_column::{SetColumn, column_of_parts};
use super::window::window_function;
use super::{Binder, Bound, BoundPart, MAX_NESTING, Output, unsupported};
use crate::error::SqlError;
use crate::locking::{check_names, locks_tables, skips_locked};
use crate::query::Header;
use crate::syntax::{is_position, is_same, number_digits};

impl Binder<'_> {
    /// A query, and the columns that it gives.
    pub(super) fn query(&mut self, query: &Query) -> Bound<(Relation, Vec<Output>)> {
        self.nested(|this| {
            let common_tables = this.common_tables.len();
            let bound = this.query_inner(query);
            this.common_tables.truncate(common_tables);
            bound
        })
    }

    fn query_inner(&mut self, query: &Query) -> Bound<(Relation, Vec<Output>)> {
        let drops_order = std::mem::take(&mut self.drops_order);
        let keeps_digits = std::mem::take(&mut self.keeps_digits);
        let lists_nothing = std::mem::take(&mut self.lists_nothing);
        self.common_tables_of(query)?;
        self.locking |= locks_tables(query);
        check_names(query)?;
        if self.depth > 1 && skips_locked(query) {
            return Err(SqlError::not_supported_yet(
                "SKIP LOCKED in a query of this form",
            ));
        }
        if query.fetch.is_some() || query.for_clause.is_some() {
            return unsupported("FETCH and FOR");
        }
        let order_by = order_items(query.order_by.as_ref())?;
        let (relation, outputs) = match query.body.as_ref() {
            SetExpr::Select(select) => {
                self.drops_order = drops_order && query.limit_clause.is_none();
                self.keeps_digits = keeps_digits;
                self.lists_nothing = lists_nothing;
                self.select(select, order_by)?
            }
            body => match select_in_parentheses(body) {
                // Its ORDER BY may stand behind the parentheses.
                Some(select) if !order_by.is_empty() => {
                    self.keeps_digits = keeps_digits;
                    self.select(select, order_by)?
                }
                _ => {
                    let (relation, outputs) = self.set_expression(body)?;
                    let ordered = match body {
                        SetExpr::SetOperation { .. } => OrderedQuery::SetOperation,
                        SetExpr::Values(_) => OrderedQuery::Values,
                        _ => OrderedQuery::InParentheses,
                    };
                    (
                        self.ordered(relation, &outputs, (order_by, ordered))?,
                        outputs,
                    )
                }
            },
        };
        let relation = match &query.limit_clause {
            Some(limit) => self.limit(relation, limit)?,
            None => relation,
        };
        Ok((relation, outputs))
    }

    pub(super) fn set_expression(&mut self, body: &SetExpr) -> Bound<(Relation, Vec<Output>)> {
        match body {
            SetExpr::Select(select) => self.select(select, &[]),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { .. } => self.set_operations(body),
            SetExpr::Values(values) => self.values_rows(values),
            other => unsupported(other.to_string()),
        }
    }

    /// A query of a set operation.
    fn member(&mut self, body: &SetExpr) -> Bound<(Relation, Vec<Output>)> {
        self.drops_order = matches!(body, SetExpr::Query(_));
        self.set_expression(body)
    }

    /// A chain of set operations, from the left. The parts of a union become one operation, however many they are.
    fn set_operations(&mut self, body: &SetExpr) -> Bound<BoundPart> {
        let mut first = body;
        let mut operations = Vec::new();
        while let SetExpr::SetOperation {
            left,
            op,
            set_quantifier,
            right,
        } = first
        {
            let all = match set_quantifier {
                SetQuantifier::All => true,
                SetQuantifier::None | SetQuantifier::Distinct => false,
                other => return unsupported(other.to_string()),
            };
            operations.push((op, all, right));
            first = left;
        }
        let mut union = UnionParts::of(self.nested(|this| this.member(first))?);
        let mut depth = 0;
        for (op, all, right) in operations.into_iter().rev() {
            let right = self.nested(|this| this.member(right))?;
            let kind = match op {
                SetOperator::Union => {
                    union.add(right, all);
                    continue;
                }
                SetOperator::Except | SetOperator::Minus => SetKind::Except,
                SetOperator::Intersect => SetKind::Intersect,
            };
            depth += 1;
            if depth > MAX_NESTING {
                return Err(SqlError::stack_overrun(MAX_NESTING));
            }
            let left = self.union(union)?;
            union = UnionParts::of(self.set_operation(kind, all, left, right)?);
        }
        self.union(union)
    }

    /// The rows of all parts. Each part gets the types of the whole at once.
    fn union(&mut self, union: UnionParts) -> Bound<BoundPart> {
        let UnionParts {
            mut parts,
            distinct,
        } = union;
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let width = parts[0].1.len();
        if parts.iter().any(|(_, outputs)| outputs.len() != width) {
            return Err(other_columns());
        }
        let texts = self.typing().texts;
        let fields = (0..width).map(|at| {
            let of_parts = parts.iter();
            SetColumn::of(
                of_parts.map(|(relation, outputs)| (relation, &outputs[at])),
                texts,
            )
        });
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let headers = parts[0].1.iter().map(|output| output.header.clone());
        let headers: Vec<Header> = headers.collect();
        let mut inputs = Vec::with_capacity(parts.len());
        let mut columns: Vec<Scalar> = Vec::new();
        let mut nullable = vec![false; width];
        for (relation, outputs) in parts {
            let (relation, of_part) = self.of_types(relation, &outputs, &fields)?;
            for (nullable, column) in nullable.iter_mut().zip(&of_part) {
                *nullable |= column.is_nullable();
            }
            if columns.is_empty() {
                columns = of_part;
            }
            inputs.push(relation);
        }
        let new_outputs = |this: &mut Self| -> Vec<Output> {
            let columns = columns.iter().zip(&nullable).zip(&headers);
            let outputs = columns.map(|((column, nullable), header)| {
                let field = column.field().as_ref().clone().with_nullable(*nullable);
                let field = Arc::new(field);
                Output {
                    id: this
                        .columns
                        .add_computed(header.name.clone(), Arc::clone(&field)),
                    field,
                    header: bare_header(header.clone()),
                }
            });
            outputs.collect()
        };
        let ids = |outputs: &[Output]| outputs.iter().map(|output| output.id).collect::<Vec<_>>();
        if distinct > 0 {
            let others = inputs.split_off(distinct);
            let outputs = new_outputs(self);
            let ids_of_all = ids(&outputs);
            let all = Relation::set_operation(SetKind::Union, inputs, ids_of_all.clone());
            let distinct = all.distinct(ids_of_all);
            if others.is_empty() {
                return Ok((distinct, outputs));
            }
            inputs = std::iter::once(distinct).chain(others).collect();
        }
        let outputs = new_outputs(self);
        let ids = ids(&outputs);
        Ok((
            Relation::set_operation(SetKind::Union, inputs, ids),
            outputs,
        ))
    }

    /// EXCEPT and INTERSECT.
    fn set_operation(
        &mut self,
        kind: SetKind,
        all: bool,
        (left, left_outputs): BoundPart,
        (right, right_outputs): BoundPart,
    ) -> Bound<BoundPart> {
        if left_outputs.len() != right_outputs.len() {
            return Err(other_columns());
        }
        let pairs = left_outputs.iter().zip(&right_outputs);
        let texts = self.typing().texts;
        let fields = pairs
            .map(|(one, other)| SetColumn::of([(&left, one), (&right, other)].into_iter(), texts));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let (left, left_columns) = self.of_types(left, &left_outputs, &fields)?;
        let (right, right_columns) = self.of_types(right, &right_outputs, &fields)?;
        if all {
            let (left, right) = ((left, left_columns), (right, right_columns));
            return self.multiset_operation(kind, left, right, left_outputs);
        }
        // Rows are equal as they are to DISTINCT.
        let pairs = left_columns.iter().zip(&right_columns);
        let typing = self.typing();
        let equal = pairs.map(|(left, right)| {
            typing.comparison(Comparison::NullSafeEqual, left.clone(), right.clone())
        });
        let condition = Scalar::and(equal.collect::<Result<Vec<_>, _>>()?);
        let join = match kind {
            SetKind::Except => JoinKind::Anti,
            _ => JoinKind::Semi,
        };
        let ids = left.columns().to_vec();
        let outputs = left_outputs.into_iter().zip(left_columns).zip(&ids);
        let outputs = outputs.map(|((output, column), id)| Output {
            id: *id,
            field: Arc::clone(column.field()),
            header: bare_header(output.header),
        });
        let outputs = outputs.collect();
        let relation = left.join(join, right, Some(condition)).distinct(ids);
        Ok((relation, outputs))
    }

    /// EXCEPT ALL and INTERSECT ALL. Equal rows are numbered on both sides, and compared with their numbers:
    ///
    /// ```text
    ///   (1, 1, 2) EXCEPT ALL (1)    -->    (1 #1, 1 #2, 2 #1) without (1 #1)    =    1, 2
    /// ```
    fn multiset_operation(
        &mut self,
        kind: SetKind,
        (left, left_columns): (Relation, Vec<Scalar>),
        (right, right_columns): (Relation, Vec<Scalar>),
        outputs: Vec<Output>,
    ) -> Bound<(Relation, Vec<Output>)> {
        let (left, left_number) = self.numbered(left, &left_columns)?;
        let (right, right_number) = self.numbered(right, &right_columns)?;
        let pairs = left_columns.iter().cloned().zip(right_columns);
        let pairs = pairs.chain([(left_number, right_number)]);
        let typing = self.typing();
        let equal = pairs
            .map(|(left, right)| typing.comparison(Comparison::NullSafeEqual, left, right))
            .collect::<Result<Vec<_>, _>>()?;
        let join = match kind {
            SetKind::Except => JoinKind::Anti,
            _ => JoinKind::Semi,
        };
        let relation = left.join(join, right, Some(Scalar::and(equal)));
        let items = left_columns.iter().filter_map(|column| {
            Some(Item {
                column: column.as_column()?,
                value: column.clone(),
            })
        });
        let relation = relation.project(items.collect());
        let outputs = outputs.into_iter().zip(left_columns);
        let outputs = outputs.filter_map(|(output, column)| {
            Some(Output {
                id: column.as_column()?,
                field: Arc::clone(column.field()),
                header: bare_header(output.header),
            })
        });
        Ok((relation, outputs.collect()))
    }

    /// The rows with one more column: 1, 2, 3 and so on for those whose columns are equal.
    fn numbered(&mut self, relation: Relation, columns: &[Scalar]) -> Bound<(Relation, Scalar)> {
        let Some(row_number) = window_function("row_number") else {
            return unsupported("row_number");
        };
        let number = self.typing().window(WindowCall {
            function: WindowFunctionDefinition::WindowUDF(row_number),
            arguments: Vec::new(),
            partition_by: columns.to_vec(),
            order_by: Vec::new(),
            frame: WindowFrame::new(None),
            null_treatment: None,
            distinct: false,
        })?;
        let field = Arc::clone(number.field());
        let id = self.columns.add_computed("number", Arc::clone(&field));
        Ok((
            relation.window(vec![(id, number)]),
            Scalar::column(id, field),
        ))
    }

    /// The rows of a query in these types.
    fn of_types(
        &mut self,
        relation: Relation,
        outputs: &[Output],
        columns_of_all: &[SetColumn],
    ) -> Bound<(Relation, Vec<Scalar>)> {
        let mut items = Vec::with_capacity(outputs.len());
        let mut columns = Vec::with_capacity(outputs.len());
        for (output, to) in outputs.iter().zip(columns_of_all) {
            let column = Scalar::column(output.id, Arc::clone(&output.field));
            let value = to.value(column, self)?;
            let id = match value.as_column() {
                Some(id) => id,
                None => self.new_column(&output.header.name, &value),
            };
            columns.push(Scalar::column(id, Arc::clone(value.field())));
            items.push(Item { column: id, value });
        }
        let relation = match items.iter().all(Item::is_passed_on) {
            true if relation.columns().len() == items.len() => relation,
            _ => relation.project(items),
        };
        Ok((relation, columns))
    }

    /// The rows of a set operation or of a query in parentheses in an order. Names are those of its columns.
    pub(super) fn ordered(
        &mut self,
        relation: Relation,
        outputs: &[Output],
        (order_by, ordered): (&[OrderByExpr], OrderedQuery),
    ) -> Bound<Relation> {
        if order_by.is_empty() {
            return Ok(relation);
        }
        let table = Arc::new(TableName::default());
        // In an expression a name is that of the first column that has it.
        let mut names = HashSet::with_capacity(outputs.len());
        let first = |output: &&Output| names.insert(output.header.name.to_lowercase());
        let columns = outputs.iter().filter(first).map(|output| ScopeColumn {
            id: output.id,
            name: output.header.name.clone(),
            field: Arc::clone(&output.field),
            may_be_missing: false,
            invisible: false,
            table: Arc::clone(&table),
        });
        let mut block = Block::new(Scope::of_table(table.clone(), columns.collect()));
        block.clause = Clause::OrderBy;
        self.blocks.push(block);
        let keys = self.with_purpose(Purpose::Order, |this| {
            let mut keys = Vec::with_capacity(order_by.len());
            for (before, item) in order_by.iter().enumerate() {
                let key = this.key_of_output(item, outputs);
                keys.extend(key.map_err(|error| order_of_parts(error, &item.expr))?);
                let block = this.block()?;
                if !block.aggregates.is_empty() || !block.functions.is_empty() {
                    return Err(ordered.refused_aggregate(before + 1));
                }
            }
            Ok(keys)
        });
        let block = self.blocks.pop();
        let mut keys = keys?;
        let Some(block) = block else {
            return unsupported("no block");
        };
        keys.retain(|key| key.value.as_literal().is_none());
        if keys.iter().all(|key| key.value.as_column().is_some()) && block.pending.is_empty() {
            return Ok(relation.sort(keys));
        }
        let shown = |output: &Output| Item {
            column: output.id,
            value: Scalar::column(output.id, Arc::clone(&output.field)),
        };
        let mut items: Vec<Item> = outputs.iter().map(shown).collect();
        let relation = with_subqueries(relation, block.pending)?;
        for key in &mut keys {
            let is_shown = |item: &Item| key.value.as_column() == Some(item.column);
            if items.iter().any(is_shown) {
                continue;
            }
            let field = Arc::clone(key.value.field());
            let column = self.columns.add_computed("order", Arc::clone(&field));
            let value = std::mem::replace(&mut key.value, Scalar::column(column, field));
            items.push(Item { column, value });
        }
        let sorted = relation.project(items).sort(keys);
        Ok(sorted.project(outputs.iter().map(shown).collect()))
    }

    /// The rows of VALUES. A column has the type that all its values fit in.
    fn values_rows(&mut self, values: &sqlparser::ast::Values) -> Bound<(Relation, Vec<Output>)> {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        let mut block = Block::new(Scope::default());
        block.clause = Clause::FieldList;
        block.lists_values = true;
        self.blocks.push(block);
        let bound = self.with_purpose(Purpose::Shown, |this| {
            let mut rows = Vec::with_capacity(values.rows.len());
            for (at, row) in values.rows.iter().enumerate() {
                if row.content.len() != width {
                    return Err(SqlError::wrong_value_count_on_row(at as u64 + 1));
                }
                let mut shown = Vec::with_capacity(width);
                for expr in &row.content {
                    let value = this.value(expr)?;
                    shown.push(this.call("$result", vec![value])?);
                }
                rows.push((shown, std::mem::take(&mut this.block()?.pending)));
            }
            Ok::<_, SqlError>(rows)
        });
        self.blocks.pop();
        let rows = bound?;
        let mut outputs = Vec::with_capacity(width);
        let mut fields = Vec::with_capacity(width);
        for at in 0..width {
            let of_rows: Vec<_> = rows
                .iter()
                .map(|(row, _)| Arc::clone(row[at].field()))
                .collect();
            let nullable = rows.iter().any(|(row, _)| row[at].is_nullable());
            let field = column_of_parts(&of_rows, self.typing().texts)?;
            let field = Arc::new(field.with_nullable(nullable));
            let name = format!("column_{at}");
            outputs.push(Output {
                id: self.columns.add_computed(&name, Arc::clone(&field)),
                field: Arc::clone(&field),
                header: Header {
                    name,
                    ..Header::default()
                },
            });
            fields.push(field);
        }
        let typing = self.typing();
        let is_plain = rows.iter().all(|(_, pending)| pending.is_empty());
        let mut typed = Vec::with_capacity(rows.len());
        for (row, pending) in rows {
            let values = row.into_iter().zip(&fields);
            let values = values.map(|(value, to)| {
                let is_same = value.field().data_type() == to.data_type()
                    && value.field().metadata() == to.metadata();
                match is_same {
                    true => Ok(value),
                    false => typing.column_of(value, to),
                }
            });
            typed.push((values.collect::<Result<Vec<_>, _>>()?, pending));
        }
        let columns: Vec<_> = outputs.iter().map(|output| output.id).collect();
        if is_plain {
            let rows = typed.into_iter().map(|(row, _)| row).collect();
            let values = Values { columns, rows };
            return Ok((Operator::Values(values).into(), outputs));
        }
        let mut inputs = Vec::with_capacity(typed.len());
        for (row, pending) in typed {
            let items = row.into_iter().map(|value| Item {
                column: self.new_column("value", &value),
                value,
            });
            let items: Vec<Item> = items.collect();
            inputs.push(with_subqueries(Relation::unit(), pending)?.project(items));
        }
        if inputs.len() == 1 {
            let ids = inputs[0].columns().to_vec();
            for (output, id) in outputs.iter_mut().zip(ids) {
                output.id = id;
            }
            return Ok((inputs.remove(0), outputs));
        }
        let union = Relation::set_operation(SetKind::Union, inputs, columns);
        Ok((union, outputs))
    }

    fn key_of_output(&mut self, item: &OrderByExpr, outputs: &[Output]) -> Bound<Option<SortKey>> {
        let descends = item.options.asc == Some(false);
        let column = |output: &Output| SortKey {
            value: Scalar::column(output.id, Arc::clone(&output.field)),
            descends,
        };
        if let Some(position) = self.position(&item.expr, outputs.len(), "order clause")? {
            return Ok(Some(column(&outputs[position])));
        }
        if number_digits(&item.expr).is_some() {
            return Ok(None);
        }
        if let Some(name) = plain_name(&item.expr) {
            let is_named = |output: &&Output| is_same(&output.header.name, name);
            let mut named = outputs.iter().filter(is_named);
            match (named.next(), named.next()) {
                (None, _) => {}
                (Some(output), None) => return Ok(Some(column(output))),
                _ => return Err(SqlError::non_unique_column(name, "order clause")),
            }
        }
        let value = self.value(&item.expr)?;
        Ok(Some(SortKey { value, descends }))
    }

    /// The position of a column that a whole number says, from 0. Error 1054 if there is none.
    pub(super) fn position(
        &self,
        expr: &Expr,
        columns: usize,
        clause: &str,
    ) -> Bound<Option<usize>> {
        if !is_position(expr) {
            return Ok(None);
        }
        let digits = number_digits(expr).unwrap_or_default();
        let position = digits
            .parse::<usize>()
            .ok()
            .and_then(|position| position.checked_sub(1));
        match position.filter(|position| *position < columns) {
            Some(position) => Ok(Some(position)),
            None => Err(SqlError::bad_field(digits, clause)),
        }
    }

    pub(super) fn limit(&mut self, relation: Relation, clause: &LimitClause) -> Bound<Relation> {
        let (limit, offset) = match clause {
            LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            } => {
                if !limit_by.is_empty() {
                    return unsupported("LIMIT BY");
                }
                let offset = offset.as_ref().map(|offset| &offset.value);
                (limit.as_ref(), offset)
            }
            LimitClause::OffsetCommaLimit { offset, limit } => (Some(limit), Some(offset)),
        };
        let skip = match offset {
            Some(offset) => self.rows(offset)?.unwrap_or(0),
            None => 0,
        };
        let fetch = match limit {
            Some(limit) if is_beyond_all_rows(limit) => None,
            Some(limit) => self.rows(limit)?,
            None => None,
        };
        Ok(match relation.into_operator() {
            // What a row does not get to is not assigned.
            Operator::Project(project) if project.has_variables() => {
                let input = Box::new(project.input.limit(skip, fetch));
                Operator::Project(Project { input, ..project }).into()
            }
            operator => Relation::from(operator).limit(skip, fetch),
        })
    }

    /// A number of rows. `None` for a parameter that has no value yet.
    fn rows(&mut self, expr: &Expr) -> Bound<Option<u64>> {
        check_row_count(expr)?;
        let Expr::Value(value) = expr else {
            return Err(SqlError::parse_error(&expr.to_string(), 1));
        };
        // What is no whole number comes from a parameter, as itself or as the literal of its value.
        let rows = match &value.value {
            Literal::Placeholder(_) => match self.parameter(value) {
                None => return Ok(None),
                // MariaDB takes NULL for no rows.
                Some(SqlValue::Null) => Some(0),
                Some(SqlValue::Int(rows)) => u64::try_from(*rows).ok(),
                Some(SqlValue::UInt(rows)) => Some(*rows),
                Some(SqlValue::Decimal { unscaled, scale: 0 }) => u64::try_from(*unscaled).ok(),
                Some(SqlValue::Text(digits)) => digits.parse().ok(),
                Some(_) => None,
            },
            Literal::Null => Some(0),
            Literal::Number(digits, _) | Literal::SingleQuotedString(digits) => digits.parse().ok(),
            _ => None,
        };
        match rows {
            Some(rows) => Ok(Some(rows.min(MAX_ROW_COUNT))),
            None => Err(SqlError::wrong_arguments("EXECUTE")),
        }
    }
}

/// The parts of a union so far.
struct UnionParts {
    parts: Vec<BoundPart>,
    /// Rows of so many parts do not come again: those before the last UNION without ALL.
    distinct: usize,
}

impl UnionParts {
    fn of(first: BoundPart) -> UnionParts {
        UnionParts {
            parts: vec![first],
            distinct: 0,
        }
    }

    fn add(&mut self, part: BoundPart, all: bool) {
        self.parts.push(part);
        if !all {
            self.distinct = self.parts.len();
        }
    }
}

/// 1222: parts of a set operation that differ in their number of columns.
pub(super) fn other_columns() -> SqlError {
    SqlError::new(
        codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
        "The used SELECT statements have a different number of columns",
    )
}

/// The column of a set operation is not that of a table.
pub(super) fn bare_header(header: Header) -> Header {
    Header {
        name: header.name,
        is_stored: true,
        ..Header::default()
    }
}

pub(super) fn order_items(order_by: Option<&OrderBy>) -> Bound<&[OrderByExpr]> {
    match order_by.map(|order_by| &order_by.kind) {
        None => Ok(&[]),
        Some(OrderByKind::Expressions(items)) => Ok(items),
        Some(_) => unsupported("ORDER BY ALL"),
    }
}

/// No query has more rows. DataFusion adds LIMIT and OFFSET up in an `i64`.
const MAX_ROW_COUNT: u64 = i64::MAX as u64 / 2;

/// Error 1064 for a LIMIT or OFFSET that is computed.
fn check_row_count(expr: &Expr) -> Bound<()> {
    match expr {
        Expr::BinaryOp { .. } | Expr::UnaryOp { .. } | Expr::Function(_) => {
            Err(SqlError::parse_error(&expr.to_string(), 1))
        }
        _ => Ok(()),
    }
}

fn is_beyond_all_rows(expr: &Expr) -> bool {
    let rows = number_digits(expr).and_then(|digits| digits.parse::<u64>().ok());
    rows.is_some_and(|rows| rows > MAX_ROW_COUNT)
}
