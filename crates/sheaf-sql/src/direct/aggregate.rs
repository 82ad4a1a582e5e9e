//! COUNT and SUM over the rows that a plan finds: one row of the result.
//!
//! Sums of whole numbers and DECIMALs are exact, so the order of the rows does not matter. Doubles, MIN, MAX and groups are
//! left to the vectorised path.

use arrow::datatypes::{DataType, Field};
use sheaf_table::types::MAX_DECIMAL_PRECISION;
use sheaf_table::{ColumnType, RowView, TableDefinition};
use sqlparser::ast;

use super::names::Names;
use crate::result::{Cell, CellRow};

/// Digits that a sum may have more than its argument, as in `sheaf_exec`'s SUM.
const EXTRA_DIGITS: u8 = 22;

/// An item of the select list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    /// COUNT(*).
    CountRows,
    /// COUNT(column).
    Count(usize),
    /// SUM(column), at the column's scale.
    Sum { column: usize, scale: u8 },
}

impl Aggregate {
    /// The aggregate that an expression is; `None` if it is another expression, or one that is not computed here.
    pub(super) fn of(expr: &ast::Expr, names: &Names<'_>) -> Option<Aggregate> {
        let ast::Expr::Function(ast::Function {
            name,
            uses_odbc_syntax: false,
            parameters: ast::FunctionArguments::None,
            args: ast::FunctionArguments::List(list),
            filter: None,
            null_treatment: None,
            over: None,
            within_group,
        }) = expr
        else {
            return None;
        };
        let ast::FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses,
        } = list
        else {
            return None;
        };
        let ([part], [ast::FunctionArg::Unnamed(argument)]) = (name.0.as_slice(), args.as_slice())
        else {
            return None;
        };
        if !clauses.is_empty() || !within_group.is_empty() {
            return None;
        }
        let function = part.as_ident().filter(|name| name.quote_style.is_none())?;
        let is_count = function.value.eq_ignore_ascii_case("count");
        let column = match argument {
            ast::FunctionArgExpr::Wildcard if is_count => return Some(Aggregate::CountRows),
            ast::FunctionArgExpr::Expr(expr) => names.column(expr)?,
            _ => return None,
        };
        if is_count {
            return Some(Aggregate::Count(column));
        }
        if !function.value.eq_ignore_ascii_case("sum") {
            return None;
        }
        match &names.definition().columns[column].ty {
            ColumnType::Decimal { scale, .. } => Some(Aggregate::Sum {
                column,
                scale: *scale,
            }),
            ty if ty.is_integer() => Some(Aggregate::Sum { column, scale: 0 }),
            _ => None,
        }
    }

    /// What the result's column is.
    pub(super) fn field(self, definition: &TableDefinition) -> Field {
        match self {
            Aggregate::CountRows | Aggregate::Count(_) => Field::new("", DataType::Int64, false),
            Aggregate::Sum { column, scale } => {
                let precision = match &definition.columns[column].ty {
                    ColumnType::Decimal { precision, .. } => precision
                        .saturating_add(EXTRA_DIGITS)
                        .min(MAX_DECIMAL_PRECISION),
                    _ => MAX_DECIMAL_PRECISION,
                };
                Field::new("", DataType::Decimal128(precision, scale as i8), true)
            }
        }
    }

    /// Whether counting index entries is enough: it counts rows, or a column that is never NULL there.
    pub(super) fn counts_entries(self, is_never_null: impl Fn(usize) -> bool) -> bool {
        match self {
            Aggregate::CountRows => true,
            Aggregate::Count(column) => is_never_null(column),
            Aggregate::Sum { .. } => false,
        }
    }
}

/// The values of some aggregates.
pub(super) struct Totals<'a> {
    aggregates: &'a [Aggregate],
    /// What each has come to: a count, or a sum and whether anything was added.
    totals: Vec<(i128, bool)>,
}

impl<'a> Totals<'a> {
    pub(super) fn new(aggregates: &'a [Aggregate]) -> Totals<'a> {
        Totals {
            aggregates,
            totals: vec![(0, false); aggregates.len()],
        }
    }

    /// Counts rows that were not looked at.
    pub(super) fn add_count(&mut self, rows: u64) {
        for (total, _) in &mut self.totals {
            *total += i128::from(rows);
        }
    }

    /// Adds a row.
    pub(super) fn add(&mut self, row: &RowView<'_>) {
        for (aggregate, (total, is_any)) in self.aggregates.iter().zip(&mut self.totals) {
            match *aggregate {
                Aggregate::CountRows => *total += 1,
                Aggregate::Count(column) => *total += i128::from(!row.is_null(column)),
                Aggregate::Sum { column, .. } if row.is_null(column) => {}
                Aggregate::Sum { column, .. } => {
                    *is_any = true;
                    let value = match row.value_ref(column) {
                        sheaf_table::ValueRef::Int(value) => i128::from(value),
                        sheaf_table::ValueRef::UInt(value) => i128::from(value),
                        sheaf_table::ValueRef::Decimal(value) => value,
                        _ => 0,
                    };
                    *total = total.saturating_add(value);
                }
            }
        }
    }
}

impl CellRow for Totals<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        let (total, is_any) = self.totals[column];
        match self.aggregates[column] {
            Aggregate::CountRows | Aggregate::Count(_) => {
                Cell::Signed(i64::try_from(total).unwrap_or(i64::MAX))
            }
            Aggregate::Sum { .. } if !is_any => Cell::Null,
            Aggregate::Sum { scale, .. } => Cell::Decimal {
                unscaled: total,
                scale: scale as i8,
            },
        }
    }
}
