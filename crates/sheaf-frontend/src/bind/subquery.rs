//! Subqueries in expressions. Each becomes a dependent join, and the expression has a column in its place.
//!
//! ```text
//!   EXISTS (q)         the mark of q
//!   x IN (q)           the mark of q by x = y, where y is q's column; of a row, by all of its columns
//!   x > ANY (q)        the mark of q by x > y
//!   x > ALL (q)        NOT the mark of q by x <= y
//!   (q)                the value of q's only row
//! ```

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::ScalarValue;
use sheaf_algebra::relation::{DependentKind, Item, Operator};
use sheaf_algebra::scalar::Comparison;
use sheaf_algebra::scalar::typing::AggregateCall;
use sheaf_algebra::{ColumnId, Relation, Scalar};
use sheaf_exec::aggregates::aggregate_function;
use sheaf_exec::functions::SqlType;
use sheaf_exec::functions::one_row::{OneRow, SEVERAL_ROWS};
use sheaf_exec::typing::Purpose;
use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, LimitClause, Query, SelectItem, SetExpr, UnaryOperator,
    Value as Literal, ValueWithSpan,
};

use super::block::{Block, Clause, Pending};
use super::expression::{width, with_row};
use super::{Binder, Bound, Output, unsupported};
use crate::error::SqlError;
use crate::syntax::{comparison_of, inside};
use sheaf_types::error::codes;

/// The rows of a query without what it lists of them, which EXISTS does not ask for: it may be an error. Nor are groups
/// computed that nothing is counted of: there is one if there is a row.
fn without_list(mut query: Relation) -> Relation {
    loop {
        match query.into_operator() {
            Operator::Project(project) => query = *project.input,
            Operator::Group(group)
                if group.aggregates.is_empty()
                    && !group.keys.is_empty()
                    && group.rollup.is_none() =>
            {
                query = *group.input;
            }
            other => return other.into(),
        }
    }
}

impl Binder<'_> {
    /// A query in the scopes that are open.
    fn subquery(&mut self, query: &Query) -> Bound<(Relation, Vec<Output>)> {
        let is_in = |block: &Block| matches!(block.clause, Clause::FieldList);
        let is_listed = self.blocks.last().is_some_and(is_in);
        self.open_subqueries += 1;
        self.open_listed_subqueries += usize::from(is_listed);
        self.drops_order = true;
        let is_chosen = std::mem::take(&mut self.is_chosen);
        let bound = self.with_purpose(Purpose::Other, |this| this.query(query));
        self.is_chosen = is_chosen;
        self.open_subqueries -= 1;
        self.open_listed_subqueries -= usize::from(is_listed);
        bound
    }

    /// A mark join of `right` by `condition`, as the column that it gives.
    fn mark(&mut self, right: Relation, condition: Option<Scalar>) -> Bound<Scalar> {
        let nullable = condition.as_ref().is_some_and(Scalar::is_nullable);
        let field = Arc::new(Field::new("mark", DataType::Boolean, nullable));
        let mark = self.columns.add_computed("mark", Arc::clone(&field));
        self.block()?.add_pending(Pending {
            kind: DependentKind::Mark(mark),
            right,
            condition,
        });
        Ok(Scalar::column(mark, field))
    }

    pub(super) fn exists(&mut self, query: &Query) -> Bound<Scalar> {
        let mut query = query.clone();
        // Some rows are as good as all of them, in any order.
        if limits_to_some(&query) {
            query.limit_clause = None;
        }
        // So are those that are equal to others. DISTINCT means nothing here, as in MySQL not even to an OFFSET.
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.distinct = None;
        }
        self.lists_nothing = true;
        let (right, _) = self.subquery(&query)?;
        self.mark(without_list(right), None)
    }

    pub(super) fn in_subquery(&mut self, operand: &Expr, query: &Query) -> Bound<Scalar> {
        self.compared_with(operand, Comparison::Equal, query)
    }

    pub(super) fn any(
        &mut self,
        operand: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Bound<Scalar> {
        let (Expr::Subquery(query), Some(operator)) = (inside(right), comparison_of(op)) else {
            return unsupported("ANY of a list");
        };
        self.compared_with(operand, operator, query)
    }

    pub(super) fn all(
        &mut self,
        operand: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Bound<Scalar> {
        let (Expr::Subquery(query), Some(operator)) = (inside(right), comparison_of(op)) else {
            return unsupported("ALL of a list");
        };
        match operator.negated() {
            Some(negated) => Ok(self.compared_with(operand, negated, query)?.not()),
            None => unsupported("<=> ALL"),
        }
    }

    /// The mark of a query by `operand operator column`.
    fn compared_with(
        &mut self,
        operand: &Expr,
        operator: Comparison,
        query: &Query,
    ) -> Bound<Scalar> {
        let operand = with_row(operand);
        let width = width(&operand);
        let operands = match operand.as_ref() {
            Expr::Tuple(row) => self.values(row)?,
            Expr::Subquery(row) if width != Some(1) => self.row_of_subquery(row, width)?,
            operand => vec![self.value(operand)?],
        };
        // MySQL does not know it either.
        if operands.len() > 1 && query.limit_clause.is_some() {
            let what = "LIMIT & IN/ALL/ANY/SOME subquery";
            return Err(SqlError::not_supported_yet(what));
        }
        if let Some(literal) = only_literal(query)
            && let [operand] = operands.as_slice()
        {
            let literal = self.value(literal)?;
            return self.comparison(operator, operand.clone(), literal);
        }
        let (right, outputs) = self.subquery(query)?;
        if outputs.len() != operands.len() {
            return Err(operand_columns(operands.len()));
        }
        // Of rows there are = ANY and <> ALL.
        if operands.len() > 1 && operator != Comparison::Equal {
            return Err(operand_columns(1));
        }
        let columns = outputs.into_iter().zip(&operands);
        let columns = columns.map(|(output, operand)| {
            let constant = constant_beside(&operand.sql_type(), (&right, output.id));
            match constant {
                Some(constant) => constant.clone(),
                None => Scalar::column(output.id, output.field),
            }
        });
        let columns = columns.collect();
        let condition = self.with_purpose(Purpose::Other, |this| {
            this.compare_rows(operands, operator, columns)
        })?;
        self.mark(right, Some(condition))
    }

    /// The only row of a query as values. Each is a subquery of its own. `columns`: so many there have to be, if that
    /// is known.
    pub(super) fn row_of_subquery(
        &mut self,
        query: &Query,
        mut columns: Option<usize>,
    ) -> Bound<Vec<Scalar>> {
        let mut row = Vec::new();
        while columns.is_none_or(|columns| row.len() < columns) {
            let (right, outputs) = self.subquery(query)?;
            let wanted = *columns.get_or_insert(outputs.len());
            let Some(output) = outputs.get(row.len()).filter(|_| outputs.len() == wanted) else {
                return Err(operand_columns(wanted));
            };
            let column = Scalar::column(output.id, Arc::clone(&output.field));
            let right = right.project(vec![Item {
                column: output.id,
                value: column,
            }]);
            row.push(self.single(right, output)?);
        }
        Ok(row)
    }

    pub(super) fn value_of_subquery(&mut self, query: &Query) -> Bound<Scalar> {
        if let Some(literal) = only_literal(query) {
            return self.value(literal);
        }
        let (right, outputs) = self.subquery(query)?;
        let [output] = outputs.as_slice() else {
            return Err(operand_columns(1));
        };
        self.single(right, output)
    }

    fn single(&mut self, right: Relation, output: &Output) -> Bound<Scalar> {
        // Where there is no row it is NULL.
        let field = Arc::new(output.field.as_ref().clone().with_nullable(true));
        let value = Scalar::column(output.id, field);
        self.values_of_subqueries.insert(output.id);
        let (right, value) = match self.is_lazy(&right) {
            true => self.with_counted_rows(right, output, value)?,
            false => (right, value),
        };
        self.block()?.add_pending(Pending {
            kind: DependentKind::Single(output.id),
            right,
            condition: None,
        });
        self.label(value)
    }

    /// Whether a subquery is computed before the rows around it, and is wrong only if one of them comes to its value.
    /// In conditions a value finds rows by an index, unless it is a part of an OR or a choice.
    fn is_lazy(&self, right: &Relation) -> bool {
        (self.is_chosen || matches!(self.purpose, Purpose::Shown | Purpose::Order))
            && right.free_columns().is_empty()
            && !right.properties().has_at_most_one_row()
            && !right.varies()
    }

    /// A subquery that may find several rows, and its value, which is an error then.
    fn with_counted_rows(
        &mut self,
        right: Relation,
        output: &Output,
        value: Scalar,
    ) -> Bound<(Relation, Scalar)> {
        let found = Scalar::column(output.id, Arc::clone(&output.field));
        let row = Scalar::literal(ScalarValue::Int64(Some(1)));
        let mut aggregates = Vec::with_capacity(2);
        for (name, argument) in [("any_value", found), ("count", row)] {
            let Some(function) = aggregate_function(name) else {
                return unsupported(name);
            };
            let aggregate = self.typing().aggregate(AggregateCall {
                function,
                arguments: vec![argument],
                distinct: false,
            })?;
            let field = Arc::clone(aggregate.field());
            let id = self.columns.add_computed(name, field);
            aggregates.push((id, aggregate));
        }
        let arguments = aggregates.iter();
        let arguments =
            arguments.map(|(id, aggregate)| Scalar::column(*id, Arc::clone(aggregate.field())));
        let OneRow {
            counted_rows,
            one_row,
        } = OneRow::new();
        let counted = self
            .typing()
            .call_function(counted_rows, arguments.collect())?;
        let right = right
            .limit(0, Some(SEVERAL_ROWS))
            .group(Vec::new(), Vec::new(), aggregates)
            .project(vec![Item {
                column: output.id,
                value: counted,
            }]);
        Ok((right, self.typing().call_function(one_row, vec![value])?))
    }
}

/// The constant that all rows of a query have in a column, where it is read as it is where it stands alone: a number
/// beside a date, and any constant beside a YEAR.
///
/// ```text
///   d IN (SELECT 20240229 FROM t)    d = DATE '2024-02-29'
///   d IN (SELECT n FROM t)           20240229 = n
///   y IN (SELECT '24' FROM t)        y = 2024
///   y IN (SELECT s FROM t)           2024 = s
/// ```
fn constant_beside<'q>(
    compared: &SqlType,
    (query, column): (&'q Relation, ColumnId),
) -> Option<&'q Scalar> {
    let Operator::Project(project) = query.operator() else {
        return None;
    };
    let item = project.items.iter().find(|item| item.column == column)?;
    let ty = item.value.sql_type();
    let is_number = ty.is_exact_number() || ty.is_float();
    let is_read = match compared {
        SqlType::Year => is_number || ty.is_text() || ty.is_temporal(),
        compared => is_number && compared.is_temporal(),
    };
    (is_read && item.value.as_literal().is_some()).then_some(&item.value)
}

/// The constant that a query is: `SELECT 24`, without tables. To MySQL it is the literal, which is the year 2024 to a
/// YEAR, and a date beside dates. What a table's rows have is none: it is compared as a number, as MySQL's manual says.
fn only_literal(query: &Query) -> Option<&Expr> {
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        // In parentheses of its own.
        SetExpr::Query(inner) if has_nothing_but_its_body(query) => return only_literal(inner),
        _ => return None,
    };
    let [SelectItem::UnnamedExpr(literal) | SelectItem::ExprWithAlias { expr: literal, .. }] =
        select.projection.as_slice()
    else {
        return None;
    };
    let is_all = has_nothing_but_its_body(query)
        && select.optimizer_hints.is_empty()
        && select.from.is_empty()
        && select.selection.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.into.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    (is_all && is_made_of_literals(literal)).then_some(literal)
}

fn has_nothing_but_its_body(query: &Query) -> bool {
    query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.locks.is_empty()
}

/// Whether an expression is a literal, or is computed of literals.
fn is_made_of_literals(expression: &Expr) -> bool {
    match expression {
        Expr::Subquery(query) => only_literal(query).is_some(),
        Expr::Value(ValueWithSpan { value, .. }) => {
            matches!(value, Literal::Number(..) | Literal::SingleQuotedString(_))
        }
        Expr::Nested(expr)
        | Expr::Cast { expr, .. }
        | Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => is_made_of_literals(expr),
        Expr::BinaryOp { left, op, right } => {
            let is_arithmetic = matches!(
                op,
                BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply
            );
            is_arithmetic && is_made_of_literals(left) && is_made_of_literals(right)
        }
        _ => false,
    }
}

/// `LIMIT n` with n above 0 and no offset: nothing to EXISTS.
pub fn limits_to_some(query: &Query) -> bool {
    match &query.limit_clause {
        Some(LimitClause::LimitOffset {
            limit: Some(Expr::Value(limit)),
            offset: None,
            ..
        }) => {
            matches!(&limit.value, Literal::Number(digits, _) if digits.parse::<u64>().is_ok_and(|limit| limit > 0))
        }
        _ => false,
    }
}

/// 1241: a row where one value is wanted.
pub fn operand_columns(columns: usize) -> SqlError {
    SqlError::new(
        codes::OPERAND_COLUMNS,
        format!("Operand should contain {columns} column(s)"),
    )
}
