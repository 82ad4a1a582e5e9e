//! WHERE of a statement that changes rows in a strict mode. What is no number where one is wanted ends the statement,
//! and so does a division by zero, for the rows that MySQL comes to (`sheaf_exec::typing`). In each WHERE, `IS NULL`
//! may mean a zero date.

use std::ops::ControlFlow;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion_common::ScalarValue;
use sheaf_algebra::relation::Operator;
use sheaf_algebra::scalar::{Comparison, ScalarKind, Truth};
use sheaf_algebra::{ColumnSet, Relation, Scalar};
use sheaf_exec::SheafTableSource;
use sheaf_exec::functions::types::declared_type;
use sheaf_exec::typing::{MAX_WATCHED_PARTS, Purpose, indexed_columns_of};
use sheaf_types::temporal::{ZERO_DATE, ZERO_DATETIME};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query,
};

use super::{Binder, Bound, has_word};
use crate::syntax::{comparison_of, object_text};
use crate::walk::{ExpressionReader, read_expression, read_query};

impl Binder<'_> {
    /// The condition of a WHERE over these rows.
    pub(super) fn condition_of_rows(&mut self, expr: &Expr, rows: &Relation) -> Bound<Scalar> {
        let condition = self.typed_condition_of_rows(expr, rows)?;
        Ok(self.with_zero_dates(condition, expr))
    }

    /// `date IS NULL` for a column that is NOT NULL finds zero dates. ODBC has no other way to ask for these.
    ///
    /// ```text
    ///   WHERE d IS NULL AND ...                            WHERE d = '0000-00-00' AND ...
    ///   FROM a LEFT JOIN b ON .. WHERE b.d IS NULL         ... WHERE b.d IS NULL OR b.d = '0000-00-00'
    /// ```
    ///
    /// Only a column in a part of WHERE by itself means that, not one below OR, NOT or another operator. ON of an inner
    /// join is a part of WHERE. `expr` is what `condition` is bound to.
    pub(super) fn with_zero_dates(&self, condition: Scalar, expr: &Expr) -> Scalar {
        let mut tested = Vec::new();
        add_tests_for_null(expr, &mut tested);
        let tested: Vec<_> = tested
            .into_iter()
            .filter_map(|named| {
                let mut blocks = self.blocks.iter().rev();
                blocks.find_map(|block| block.scope.column_named(named))
            })
            .collect();
        if tested.is_empty() {
            return condition;
        }
        let zero_of = |part: &Scalar| {
            let operand = tested_for_null(part)?;
            let id = operand.as_column()?;
            let column = tested.iter().find(|column| column.id == id)?;
            let zero = Scalar::literal(zero_date_of(&column.field)?);
            let is_zero = Scalar::comparison(Comparison::Equal, operand.clone(), zero);
            Some(match column.may_be_missing {
                true => Scalar::or([part.clone(), is_zero]),
                false => is_zero,
            })
        };
        match condition.kind() {
            ScalarKind::And(parts) if parts.iter().any(|part| zero_of(part).is_some()) => {
                let parts = parts.iter();
                Scalar::and(parts.map(|part| zero_of(part).unwrap_or_else(|| part.clone())))
            }
            _ => zero_of(&condition).unwrap_or(condition),
        }
    }

    fn typed_condition_of_rows(&mut self, expr: &Expr, rows: &Relation) -> Bound<Scalar> {
        let is_watched = self.watches_conditions && self.open_subqueries == 0;
        let Operator::Scan(scan) = rows.operator() else {
            let condition = match rows.operator() {
                Operator::Join(_) if is_watched => self.watched_condition_of_join(expr, rows)?,
                _ => self.condition(expr)?,
            };
            return Ok(condition.with_long_lists()?);
        };
        let condition = match scan.source.downcast_ref::<SheafTableSource>() {
            Some(source) if is_watched => {
                let indexed = indexed_columns_of(source);
                self.watched_condition(expr, &indexed, Purpose::ChangeCondition)?
            }
            Some(source) => self.condition_of_query(expr, source)?,
            None => self.condition(expr)?.decided(),
        };
        let condition = match self.texts.are_refused() {
            true => self.typing().refused_texts(condition)?,
            false => condition,
        };
        Ok(condition.with_long_lists()?)
    }

    /// The condition of a query over a table. Divisions by a constant that is zero are noted for each row that comes to
    /// them. With a LIMIT they are noted once, as one that a constant text is: a plan may come to more rows than MySQL.
    fn condition_of_query(&mut self, expr: &Expr, source: &SheafTableSource) -> Bound<Scalar> {
        let noted = self.texts.noted_so_far();
        let condition = self.condition(expr)?.decided();
        let is_divided = self.texts.has_divided_since(noted)
            && self.open_subqueries == 0
            && !has_word(self.context.sql, "limit")
            && !Found::has_subquery(expr);
        if !is_divided {
            return Ok(condition);
        }
        self.texts.forget_since(noted);
        let indexed = indexed_columns_of(source);
        self.watched_condition(expr, &indexed, Purpose::DividedCondition)
    }

    fn watched_condition(
        &mut self,
        expr: &Expr,
        indexed: &[String],
        watched: Purpose,
    ) -> Bound<Scalar> {
        let mut parts = Vec::new();
        add_conjuncts(expr, &mut parts);
        let is_watched = parts.len() <= MAX_WATCHED_PARTS;
        let mut bound = Vec::with_capacity(parts.len());
        for part in parts {
            let has_subquery = Found::has_subquery(part);
            let purpose = match is_watched && !has_subquery {
                true if seeks_a_constant(part, indexed) => Purpose::Sought,
                true => watched,
                false => Purpose::Other,
            };
            let condition = self.with_purpose(purpose, |this| this.condition(part))?;
            bound.push((condition.decided(), has_subquery));
        }
        let condition = self.typing().watched_condition(bound, indexed)?;
        Ok(condition.decided())
    }

    /// The same over a join, where the parts about one table are watched.
    fn watched_condition_of_join(&mut self, expr: &Expr, rows: &Relation) -> Bound<Scalar> {
        let mut parts = Vec::new();
        add_conjuncts(expr, &mut parts);
        if parts.len() > MAX_WATCHED_PARTS || Found::has_subquery(expr) {
            return self.condition(expr);
        }
        let mut bound = Vec::with_capacity(parts.len());
        for part in parts {
            let noted = self.texts.noted_so_far();
            let watched =
                self.with_purpose(Purpose::ChangeCondition, |this| this.condition(part))?;
            let named = watched.columns();
            let condition = match named.is_empty() || !is_of_one_side(rows, &named) {
                false => watched,
                true => {
                    self.texts.forget_since(noted);
                    self.condition(part)?
                }
            };
            bound.push(condition.decided());
        }
        let mut of_join = Vec::new();
        add_join_conditions(rows, &mut of_join);
        let typing = self.typing();
        let condition = typing.watched_condition_of_join(&bound, &of_join)?;
        Ok(condition.decided())
    }

    /// The condition of rows that are looked at one by one, as far as keys have not found them.
    pub(super) fn condition_of_found_rows(&mut self, expr: &Expr) -> Bound<Scalar> {
        let condition = self.typed_condition_of_found_rows(expr)?;
        Ok(self.with_zero_dates(condition, expr))
    }

    fn typed_condition_of_found_rows(&mut self, expr: &Expr) -> Bound<Scalar> {
        let mut watched = Purpose::ChangeCondition;
        if !self.texts.are_refused() {
            let noted = self.texts.noted_so_far();
            let condition = self.condition(expr)?.decided();
            if !self.texts.has_divided_since(noted) || Found::has_subquery(expr) {
                return Ok(condition);
            }
            self.texts.forget_since(noted);
            watched = Purpose::DividedCondition;
        }
        let mut parts = Vec::new();
        add_conjuncts(expr, &mut parts);
        // A row comes to a part where those in front of it are true.
        let bound = parts.into_iter().map(|part| {
            let condition = self.with_purpose(watched, |this| this.condition(part))?;
            Ok(condition.decided())
        });
        Ok(Scalar::and(bound.collect::<Bound<Vec<_>>>()?).decided())
    }
}

/// What parts of a condition test whether it is NULL.
fn add_tests_for_null<'e>(expr: &'e Expr, tested: &mut Vec<&'e Expr>) {
    fn of_part(part: &Expr) -> Option<&Expr> {
        match part {
            Expr::Nested(inner) => of_part(inner),
            Expr::IsNull(operand) => Some(operand),
            Expr::Function(call) => argument_of_isnull(call),
            _ => None,
        }
    }
    let mut parts = Vec::new();
    add_conjuncts(expr, &mut parts);
    tested.extend(parts.into_iter().filter_map(of_part));
}

/// `x` of ISNULL(x).
fn argument_of_isnull(call: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &call.args else {
        return None;
    };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(operand))]
            if object_text(&call.name).eq_ignore_ascii_case("isnull") =>
        {
            Some(operand)
        }
        _ => None,
    }
}

/// The operand of a test that is true for NULL.
fn tested_for_null(part: &Scalar) -> Option<&Scalar> {
    match part.kind() {
        ScalarKind::Test {
            operand,
            is: Truth::Null,
            negated: false,
        } => Some(operand),
        _ => None,
    }
}

/// The zero date of a column of dates that is NOT NULL. A TIMESTAMP is not asked for it in that way.
fn zero_date_of(field: &Field) -> Option<ScalarValue> {
    if field.is_nullable() || declared_type(field).is_some_and(|ty| ty.follows_time_zone()) {
        return None;
    }
    match field.data_type() {
        DataType::Date32 => Some(ScalarValue::Date32(Some(ZERO_DATE))),
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            Some(ScalarValue::TimestampMicrosecond(Some(ZERO_DATETIME), None))
        }
        _ => None,
    }
}

/// The conditions of all joins.
fn add_join_conditions(rows: &Relation, conditions: &mut Vec<Scalar>) {
    if let Operator::Join(join) = rows.operator() {
        conditions.extend(join.condition.clone());
        add_join_conditions(&join.left, conditions);
        add_join_conditions(&join.right, conditions);
    }
}

/// Whether all columns are of the same of the tables that are joined.
fn is_of_one_side(rows: &Relation, columns: &ColumnSet) -> bool {
    match rows.operator() {
        Operator::Join(join) => [&join.left, &join.right]
            .into_iter()
            .any(|side| columns.is_subset(&side.column_set()) && is_of_one_side(side, columns)),
        _ => true,
    }
}

/// Whether the statement, but for subqueries in expressions, has a limit.
pub(super) fn has_limit(query: &Query) -> bool {
    let mut limits = Limits::default();
    read_query(query, &mut limits);
    limits.found
}

fn add_conjuncts<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Nested(inner) => add_conjuncts(inner, parts),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            add_conjuncts(left, parts);
            add_conjuncts(right, parts);
        }
        other => parts.push(other),
    }
}

/// Whether a part compares an indexed column with constants. MySQL computes these before it looks at rows.
fn seeks_a_constant(part: &Expr, indexed: &[String]) -> bool {
    let operands: Vec<&Expr> = match part {
        Expr::BinaryOp { left, op, right }
            if comparison_of(op).is_some() && *op != BinaryOperator::Spaceship =>
        {
            vec![left, right]
        }
        Expr::Between {
            expr,
            negated: false,
            low,
            high,
        } => vec![expr, low, high],
        Expr::InList {
            expr,
            list,
            negated: false,
        } => std::iter::once(expr.as_ref()).chain(list).collect(),
        _ => return false,
    };
    let columns = operands.into_iter();
    let columns: Vec<&Expr> = columns
        .filter(|operand| Found::has_column(operand))
        .collect();
    let name = match columns[..] {
        [Expr::Identifier(column)] => column,
        [Expr::CompoundIdentifier(parts)] => match parts.last() {
            Some(column) => column,
            None => return false,
        },
        _ => return false,
    };
    let mut indexed = indexed.iter();
    indexed.any(|column| column.eq_ignore_ascii_case(&name.value))
}

/// What is in an expression.
#[derive(Default)]
struct Found {
    subquery: bool,
    column: bool,
}

impl Found {
    fn of(expr: &Expr) -> Found {
        let mut found = Found::default();
        read_expression(expr, &mut found);
        found
    }

    fn has_subquery(expr: &Expr) -> bool {
        Found::of(expr).subquery
    }

    fn has_column(expr: &Expr) -> bool {
        Found::of(expr).column
    }
}

impl ExpressionReader for Found {
    fn enter_query(&mut self, _query: &Query) {
        self.subquery = true;
    }

    fn leave_expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        self.column |= match expression {
            Expr::Identifier(name) => !name.value.starts_with('@'),
            Expr::CompoundIdentifier(parts) => !parts[0].value.starts_with('@'),
            _ => false,
        };
        ControlFlow::Continue(())
    }
}

/// Looks for limits outside of expressions.
#[derive(Default)]
struct Limits {
    open_expressions: usize,
    found: bool,
}

impl ExpressionReader for Limits {
    fn enter_query(&mut self, query: &Query) {
        self.found |= self.open_expressions == 0 && query.limit_clause.is_some();
    }

    fn enter_expression(&mut self, _expression: &Expr) {
        self.open_expressions += 1;
    }

    fn leave_expression(&mut self, _expression: &Expr) -> ControlFlow<()> {
        self.open_expressions -= 1;
        ControlFlow::Continue(())
    }
}
