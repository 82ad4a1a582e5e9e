//! `(a, b) IN (SELECT x, y ...)`: a search for an equal row.
//!
//! DataFusion's IN takes one value, so it is said by EXISTS over the subquery as a derived table. The table's columns
//! have names that no statement uses, so that names in the row mean what they meant:
//!
//! ```text
//!   (a, b) IN (SELECT x, y FROM t)
//!   EXISTS (SELECT 1 FROM (SELECT x, y FROM t) $row ($0, $1) WHERE $0 = a AND $1 = b)
//! ```
//!
//! That tells whether IN is true. It is unknown if no row is equal, but one may be: if NULL is all that is between. A
//! second EXISTS looks for such a row, where anything depends on it ([`Unknown`]):
//!
//! ```text
//!   WHERE row IN subquery        EXISTS (an equal row)
//!   WHERE row NOT IN subquery    NOT EXISTS (a row that may be equal)
//!   row IN subquery              EXISTS (an equal row) OR EXISTS (a row that may be equal) AND NULL
//! ```
//!
//! Outside of conditions that rows are tested by, rows are counted instead.
//!
//! `(a, b) = (SELECT x, y ...)` and its relatives compare value by value. Each column of the subquery is a subquery
//! then.

use sheaf_exec::typing::ROW_SUBQUERY;
use sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, SelectItem, SetExpr, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins,
};

use super::build::{binary, call, null, number};
use super::expression::{Lowered, negate_if, operand_columns, unsupported};
use super::{Lowering, Unknown};
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::parser::{Statement, parse_statement};

impl Lowering<'_> {
    /// `row IN (subquery)` or `row NOT IN (subquery)`, where unknown may be taken for what `unknown` says.
    pub(super) fn row_in_subquery(
        &mut self,
        row: Vec<Expr>,
        subquery: Query,
        negated: bool,
        unknown: Unknown,
    ) -> Result<Lowered> {
        // MySQL does not know it either, and the limit would have to come before the search.
        if subquery.limit_clause.is_some() {
            return Err(unsupported("LIMIT & IN/ALL/ANY/SOME subquery"));
        }
        let columns = row.len();
        let aggregates = self.aggregates_seen;
        let row = self.values(row)?;
        if self.aggregates_seen > aggregates {
            return Err(unsupported("a row with aggregates IN a subquery"));
        }
        let subquery = self.row_subquery(subquery, columns)?;
        let has_row = |comparison: &str| -> Result<Expr> {
            let comparisons = row
                .iter()
                .enumerate()
                .map(|(at, value)| call(comparison, vec![column(at), value.clone()]));
            let condition = comparisons
                .reduce(|all, next| binary(all, BinaryOperator::And, next))
                .ok_or_else(|| operand_columns(1))?;
            let rows = |item| select_rows(item, &subquery, columns, Some(condition));
            Ok(match self.in_filter {
                true => Expr::Exists {
                    subquery: rows(number(1))?,
                    negated: false,
                },
                false => {
                    let count = Expr::Subquery(rows(call("count", vec![number(1)]))?);
                    call("$ne", vec![count, number(0)])
                }
            })
        };
        let (equal, may_be_equal) = ("$eq", "$may_be_equal");
        let unknown = match negated {
            true => unknown.denied(),
            false => unknown,
        };
        let is_in = match unknown {
            Unknown::False => has_row(equal)?,
            Unknown::True => has_row(may_be_equal)?,
            Unknown::Itself => {
                let unknown = call("$truth", vec![null()]);
                let may_be = binary(has_row(may_be_equal)?, BinaryOperator::And, unknown);
                binary(has_row(equal)?, BinaryOperator::Or, may_be)
            }
        };
        Ok(negate_if(negated, is_in))
    }

    fn row_subquery(&mut self, subquery: Query, columns: usize) -> Result<Box<Query>> {
        let subquery = self.subquery(subquery)?;
        match selected_columns(&subquery.body) {
            Some(selected) if selected != columns => Err(operand_columns(columns)),
            _ => Ok(subquery),
        }
    }

    /// The columns of a subquery that is compared with a row, each as a value.
    pub(super) fn columns_of_subquery(
        &mut self,
        subquery: Query,
        columns: usize,
    ) -> Result<Vec<Expr>> {
        let subquery = self.row_subquery(subquery, columns)?;
        let value = |at| {
            Ok(Expr::Subquery(select_rows(
                column(at),
                &subquery,
                columns,
                None,
            )?))
        };
        (0..columns).map(value).collect()
    }
}

fn column_name(at: usize) -> Ident {
    Ident::with_quote('`', format!("${at}"))
}

/// A column of the derived table.
fn column(at: usize) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::with_quote('`', ROW_SUBQUERY), column_name(at)])
}

/// How many columns a query has, as far as its text tells.
fn selected_columns(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| {
                matches!(
                    item,
                    SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
                )
            };
            let items = &select.projection;
            items.iter().all(is_one).then_some(items.len())
        }
        SetExpr::Query(query) => selected_columns(&query.body),
        SetExpr::SetOperation { left, .. } => selected_columns(left),
        _ => None,
    }
}

/// `SELECT item FROM (subquery) $row ($0, $1, ...) [WHERE condition]`.
fn select_rows(
    item: Expr,
    subquery: &Query,
    columns: usize,
    condition: Option<Expr>,
) -> Result<Box<Query>> {
    let Statement::Query(mut query) = parse_statement("SELECT 1", &SheafDialect::default())? else {
        return Err(SqlError::unknown("SELECT 1 is no query"));
    };
    if let SetExpr::Select(select) = query.body.as_mut() {
        let columns = (0..columns).map(|at| TableAliasColumnDef {
            name: column_name(at),
            data_type: None,
        });
        select.projection = vec![SelectItem::UnnamedExpr(item)];
        select.from = vec![TableWithJoins {
            relation: TableFactor::Derived {
                lateral: false,
                subquery: Box::new(subquery.clone()),
                alias: Some(TableAlias {
                    explicit: true,
                    name: Ident::with_quote('`', ROW_SUBQUERY),
                    columns: columns.collect(),
                    at: None,
                }),
                sample: None,
            },
            joins: Vec::new(),
        }];
        select.selection = condition;
    }
    Ok(query)
}
