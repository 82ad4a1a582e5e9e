//! Rows: `(a, b)`, and queries of several columns, compared value by value.

use std::borrow::Cow;

use sheaf_algebra::Scalar;
use sheaf_algebra::scalar::Comparison;
use sheaf_exec::functions::types::SqlType;
use sqlparser::ast::{Expr, SelectItem, SetExpr};

use crate::bind::over_rows::VALUE_OF_SUBQUERY;
use crate::bind::scope::ScopeTable;
use crate::bind::subquery::operand_columns;
use crate::bind::{Binder, Bound};
use crate::syntax::as_row;

impl Binder<'_> {
    /// `(a, b) = (c, d)` and its relatives, value by value.
    pub(super) fn row_comparison(
        &mut self,
        left: &[Expr],
        operator: Comparison,
        right: &[Expr],
    ) -> Bound<Scalar> {
        if left.len() != right.len() || left.is_empty() {
            return Err(operand_columns(left.len()));
        }
        let (left, right) = match left.iter().chain(right).any(is_row) {
            true => {
                let (left, right) = taken_apart(left, right)?;
                (self.values(&left)?, self.values(&right)?)
            }
            false => (self.values(left)?, self.values(right)?),
        };
        self.compare_rows(left, operator, right)
    }

    /// As [`Self::row_comparison`], of as many values.
    pub(in crate::bind) fn compare_rows(
        &mut self,
        left: Vec<Scalar>,
        operator: Comparison,
        right: Vec<Scalar>,
    ) -> Bound<Scalar> {
        let mut pairs = left.into_iter().zip(right);
        let typing = self.typing();
        let compare = |operator, (left, right)| self.comparison(operator, left, right);
        match operator {
            // A row of one value is that value.
            _ if pairs.len() == 1 => match pairs.next() {
                Some(pair) => compare(operator, pair),
                None => Err(operand_columns(1)),
            },
            Comparison::Equal | Comparison::NullSafeEqual => {
                let mut all = pairs.map(|pair| compare(operator, pair));
                let first = all.next().unwrap_or(Ok(Scalar::constant(true)))?;
                all.try_fold(first, |before, one| Ok(typing.and(before, one?, 0)?))
            }
            Comparison::NotEqual => {
                let mut any = pairs.map(|pair| compare(operator, pair));
                let first = any.next().unwrap_or(Ok(Scalar::constant(false)))?;
                any.try_fold(first, |before, one| Ok(typing.or(before, one?, 0)?))
            }
            _ => {
                let name = match operator {
                    Comparison::Less => "$row_lt",
                    Comparison::LessOrEqual => "$row_le",
                    Comparison::Greater => "$row_gt",
                    _ => "$row_ge",
                };
                let mut values = Vec::new();
                for (left, right) in pairs {
                    let has_date = [&left, &right]
                        .iter()
                        .any(|value| value.sql_type().is_temporal());
                    for value in [left, right] {
                        values.push(match has_date {
                            true => value,
                            false => self.in_row(value)?,
                        });
                    }
                }
                match values.is_empty() {
                    true => Err(operand_columns(1)),
                    false => self.call(name, values),
                }
            }
        }
    }

    /// Two values compared. A year that is no column's is a number: 24 is not 2024 to it.
    pub(in crate::bind) fn comparison(
        &self,
        operator: Comparison,
        left: Scalar,
        right: Scalar,
    ) -> Bound<Scalar> {
        let is_year = |value: &Scalar| value.sql_type().is_year();
        let (left, right) = match is_year(&left) == is_year(&right) {
            true => (left, right),
            false => (self.compared(left)?, self.compared(right)?),
        };
        Ok(self.typing().comparison(operator, left, right)?)
    }

    /// A value that is compared with others, as in [`Self::comparison`].
    pub(super) fn compared(&self, value: Scalar) -> Bound<Scalar> {
        match self.is_named(&value) {
            true => Ok(value),
            false => self.in_row(value),
        }
    }

    /// The operands of BETWEEN, as in [`Self::comparison`]. Years among its bounds are numbers, too, unless what stands
    /// before it is a YEAR column, or a date.
    pub(super) fn between(&self, operands: [Scalar; 3]) -> Bound<[Scalar; 3]> {
        let [value, low, high] = operands;
        let ty = value.sql_type();
        if ty.is_temporal() || ty.is_year() && self.is_named(&value) {
            return Ok([value, self.compared(low)?, self.compared(high)?]);
        }
        Ok([self.in_row(value)?, self.in_row(low)?, self.in_row(high)?])
    }

    /// Whether a value is a column of a table: a stored one, or one of a FROM that is open.
    fn is_named(&self, value: &Scalar) -> bool {
        let Some(id) = value.as_column() else {
            return false;
        };
        let column = self.columns.get(id);
        let is_of = |table: &ScopeTable| table.columns.iter().any(|column| column.id == id);
        let mut blocks = self.blocks.iter();
        !column.name.starts_with(VALUE_OF_SUBQUERY)
            && !self.values_of_subqueries.contains(id)
            && (column.origin.is_some() || blocks.any(|block| block.scope.tables.iter().any(is_of)))
    }

    /// A part of a row in IN, and in a comparison by order. A YEAR is the number that it is there: 24 is not 2024.
    pub(super) fn in_row(&self, value: Scalar) -> Bound<Scalar> {
        match SqlType::of(value.field()).is_year() {
            true => self.call("$in_row", vec![value]),
            false => Ok(value),
        }
    }

    /// The values of a row: a list of them, or a query that has one.
    pub(in crate::bind) fn row(&mut self, expr: &Expr, width: usize) -> Bound<Vec<Scalar>> {
        match expr {
            Expr::Tuple(items) if items.len() == width && width > 0 => self.values(items),
            Expr::Subquery(query) => self.row_of_subquery(query, Some(width)),
            _ => Err(operand_columns(width)),
        }
    }
}

/// `ROW(a, b)` as `(a, b)`, and all else as it is.
pub(in crate::bind) fn with_row(expr: &Expr) -> Cow<'_, Expr> {
    as_row(expr).map_or(Cow::Borrowed(expr), Cow::Owned)
}

/// Whether this is a list of values in parentheses.
pub(super) fn is_row(expr: &Expr) -> bool {
    matches!(with_row(expr).as_ref(), Expr::Tuple(_))
}

/// The values of two rows that may have rows in them, in the same places: `(a, (b, c))` as `(a, b, c)`. Any comparison
/// of the one is that of the other.
///
/// # Errors
/// 1241 for rows of different shapes.
pub(super) fn taken_apart(left: &[Expr], right: &[Expr]) -> Bound<(Vec<Expr>, Vec<Expr>)> {
    if left.len() != right.len() {
        return Err(operand_columns(left.len()));
    }
    let mut apart = (Vec::new(), Vec::new());
    for (left, right) in left.iter().zip(right) {
        match (with_row(left).as_ref(), with_row(right).as_ref()) {
            (Expr::Tuple(left), Expr::Tuple(right)) => {
                let inner = taken_apart(left, right)?;
                apart.0.extend(inner.0);
                apart.1.extend(inner.1);
            }
            (Expr::Tuple(row), _) => return Err(operand_columns(row.len())),
            (_, Expr::Tuple(_)) => return Err(operand_columns(1)),
            (left, right) => {
                apart.0.push(left.clone());
                apart.1.push(right.clone());
            }
        }
    }
    Ok(apart)
}

/// How many values a row has, as it is written: 1 for what is none. `None` for a query with a `*`.
pub(in crate::bind) fn width(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Tuple(items) => Some(items.len()),
        Expr::Subquery(query) => listed_columns(&query.body),
        _ => Some(1),
    }
}

fn listed_columns(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let items = &select.projection;
            let is_one = |item: &SelectItem| {
                matches!(
                    item,
                    SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
                )
            };
            items.iter().all(is_one).then_some(items.len())
        }
        SetExpr::Query(query) => listed_columns(&query.body),
        SetExpr::SetOperation { left, .. } => listed_columns(left),
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        _ => None,
    }
}
