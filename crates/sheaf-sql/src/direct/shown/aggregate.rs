//! COUNT, SUM, MIN and MAX over the rows that a plan finds: one row of the result.
//!
//! Whole numbers, DECIMALs and dates are exact, so the order of the rows does not matter. A sum is a DECIMAL of at most
//! 38 digits, also one of integers; beyond is error 1690. Sums of doubles, extremes of strings and groups are left to
//! the vectorised path.

use std::cmp::Ordering;

use arrow::datatypes::{DataType, Field};
use sheaf_table::{RowView, TableDefinition, ValueRef};
use sheaf_types::number::MAX_DIGITS;
use sqlparser::ast;

use crate::direct::syntax::names::ColumnNames;
use crate::error::{Result, SqlError};
use crate::session::result::{Cell, CellRow};

/// Digits that a sum may have more than its argument, as in `sheaf_exec`'s SUM.
const EXTRA_DIGITS: u8 = 22;

/// An item of the select list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::direct) enum Aggregate {
    /// COUNT(*).
    CountRows,
    /// COUNT(column).
    Count(usize),
    /// SUM(column), at the column's scale.
    Sum { column: usize, scale: u8 },
    /// MIN(column) and MAX(column), by which the result compares to the others.
    Extreme {
        column: usize,
        wanted: Ordering,
        meaning: Meaning,
    },
}

impl Aggregate {
    /// As EXPLAIN names it, with the names of columns.
    pub(in crate::direct) fn text(&self, column: impl Fn(usize) -> String) -> String {
        match self {
            Aggregate::CountRows => "count(*)".to_string(),
            Aggregate::Count(of) => format!("count({})", column(*of)),
            Aggregate::Sum { column: of, .. } => format!("sum({})", column(*of)),
            Aggregate::Extreme {
                column: of, wanted, ..
            } => match wanted {
                Ordering::Less | Ordering::Equal => format!("min({})", column(*of)),
                Ordering::Greater => format!("max({})", column(*of)),
            },
        }
    }
}

/// What the number of an extreme is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::direct) enum Meaning {
    Signed,
    Unsigned,
    Decimal(u8),
    Date,
    DateTime,
}

/// A call of a function with one argument.
pub(in crate::direct) struct Call<'a> {
    pub(in crate::direct) function: &'a str,
    pub(in crate::direct) is_distinct: bool,
    pub(in crate::direct) argument: &'a ast::FunctionArgExpr,
}

/// The call that an expression is; `None` if it is something else, or has more to it.
pub(in crate::direct) fn call_of(expr: &ast::Expr) -> Option<Call<'_>> {
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
        duplicate_treatment,
        args,
        clauses,
    } = list;
    let ([part], [ast::FunctionArg::Unnamed(argument)]) = (name.0.as_slice(), args.as_slice())
    else {
        return None;
    };
    let function = part.as_ident().filter(|name| name.quote_style.is_none())?;
    let is_distinct = match duplicate_treatment {
        None => false,
        Some(ast::DuplicateTreatment::Distinct) => true,
        Some(ast::DuplicateTreatment::All) => return None,
    };
    (clauses.is_empty() && within_group.is_empty()).then_some(Call {
        function: &function.value,
        is_distinct,
        argument,
    })
}

impl Aggregate {
    /// The aggregate that an expression is; `None` if it is another expression, or one that is not computed here.
    pub(in crate::direct) fn of(expr: &ast::Expr, names: &dyn ColumnNames) -> Option<Aggregate> {
        let Call {
            function,
            is_distinct: false,
            argument,
        } = call_of(expr)?
        else {
            return None;
        };
        let is_count = function.eq_ignore_ascii_case("count");
        let column = match argument {
            ast::FunctionArgExpr::Wildcard if is_count => return Some(Aggregate::CountRows),
            ast::FunctionArgExpr::Expr(expr) => names.column(expr)?,
            _ => return None,
        };
        if is_count {
            return Some(Aggregate::Count(column));
        }
        let ty = &names.definition().columns[column].ty;
        if ty.is_wide_decimal() {
            return None;
        }
        let decimals = ty.decimal_digits().map(|(_, scale)| scale);
        let scale = decimals.or(ty.is_integer().then_some(0));
        let wanted = match function.to_ascii_lowercase().as_str() {
            "sum" => return scale.map(|scale| Aggregate::Sum { column, scale }),
            "min" => Ordering::Less,
            "max" => Ordering::Greater,
            _ => return None,
        };
        let meaning = match decimals {
            Some(scale) => Meaning::Decimal(scale),
            None if ty.is_moment() => Meaning::DateTime,
            None if ty.is_day() => Meaning::Date,
            None if ty.is_integer() && ty.is_unsigned() => Meaning::Unsigned,
            None if ty.is_integer() => Meaning::Signed,
            None => return None,
        };
        Some(Aggregate::Extreme {
            column,
            wanted,
            meaning,
        })
    }

    /// The column that it looks at.
    pub(in crate::direct) fn column(&self) -> Option<usize> {
        match self {
            Aggregate::CountRows => None,
            Aggregate::Count(column)
            | Aggregate::Sum { column, .. }
            | Aggregate::Extreme { column, .. } => Some(*column),
        }
    }

    /// What the result's column is.
    pub(in crate::direct) fn field(self, definition: &TableDefinition) -> Field {
        match self {
            Aggregate::CountRows | Aggregate::Count(_) => Field::new("", DataType::Int64, false),
            Aggregate::Sum { column, scale } => {
                let precision = match definition.columns[column].ty.decimal_digits() {
                    Some((precision, _)) => precision.saturating_add(EXTRA_DIGITS).min(MAX_DIGITS),
                    None => MAX_DIGITS,
                };
                Field::new("", DataType::Decimal128(precision, scale as i8), true)
            }
            Aggregate::Extreme { column, .. } => {
                sheaf_access::arrow_field(&definition.columns[column]).with_nullable(true)
            }
        }
    }

    /// Whether counting index entries is enough: it counts rows, or a column that is never NULL there.
    pub(in crate::direct) fn counts_entries(self, is_never_null: impl Fn(usize) -> bool) -> bool {
        match self {
            Aggregate::CountRows => true,
            Aggregate::Count(column) => is_never_null(column),
            Aggregate::Sum { .. } | Aggregate::Extreme { .. } => false,
        }
    }
}

/// The values of some aggregates.
pub(in crate::direct) struct Totals<'a> {
    aggregates: &'a [Aggregate],
    /// What each has come to, and whether there was any value that is not NULL.
    totals: Vec<(i128, bool)>,
}

impl<'a> Totals<'a> {
    pub(in crate::direct) fn new(aggregates: &'a [Aggregate]) -> Totals<'a> {
        Totals {
            aggregates,
            totals: vec![(0, false); aggregates.len()],
        }
    }

    /// Counts rows that were not looked at.
    pub(in crate::direct) fn add_count(&mut self, rows: u64) {
        for (total, _) in &mut self.totals {
            *total += i128::from(rows);
        }
    }

    /// Whether the first of them has met a value.
    pub(in crate::direct) fn has_value(&self) -> bool {
        self.totals.first().is_some_and(|(_, is_any)| *is_any)
    }

    /// Adds a row. Error 1690 if a sum leaves what can be added up.
    pub(in crate::direct) fn add(&mut self, row: &RowView<'_>) -> Result<()> {
        for (aggregate, (total, is_any)) in self.aggregates.iter().zip(&mut self.totals) {
            match *aggregate {
                Aggregate::CountRows => *total += 1,
                Aggregate::Count(column) => *total += i128::from(!row.is_null(column)),
                Aggregate::Sum { column, .. } => {
                    if let Some(value) = number(row, column) {
                        let sum = total.checked_add(value);
                        *total = sum.ok_or_else(sum_out_of_range)?;
                        *is_any = true;
                    }
                }
                Aggregate::Extreme { column, wanted, .. } => {
                    if let Some(value) = number(row, column) {
                        if !*is_any || value.cmp(total) == wanted {
                            *total = value;
                        }
                        *is_any = true;
                    }
                }
            }
        }
        Ok(())
    }

    /// Error 1690 if a sum has more digits than a DECIMAL.
    pub(in crate::direct) fn check(&self) -> Result<()> {
        for (aggregate, (total, _)) in self.aggregates.iter().zip(&self.totals) {
            let is_sum = matches!(aggregate, Aggregate::Sum { .. });
            if is_sum && total.unsigned_abs() >= 10u128.pow(MAX_DIGITS.into()) {
                return Err(sum_out_of_range());
            }
        }
        Ok(())
    }
}

fn sum_out_of_range() -> SqlError {
    SqlError::data_out_of_range("DECIMAL", "sum")
}

/// The number in a column: unscaled, of a date the days. `None`: NULL.
fn number(row: &RowView<'_>, column: usize) -> Option<i128> {
    match row.value_ref(column) {
        ValueRef::Null => None,
        ValueRef::Int(value) => Some(i128::from(value)),
        ValueRef::UInt(value) => Some(i128::from(value)),
        ValueRef::Decimal(value) => Some(value),
        _ => Some(0),
    }
}

impl CellRow for Totals<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        let (total, is_any) = self.totals[column];
        match self.aggregates[column] {
            Aggregate::CountRows | Aggregate::Count(_) => {
                Cell::Signed(i64::try_from(total).unwrap_or(i64::MAX))
            }
            Aggregate::Sum { .. } | Aggregate::Extreme { .. } if !is_any => Cell::Null,
            Aggregate::Sum { scale, .. } => Cell::Decimal {
                unscaled: total,
                scale: scale as i8,
            },
            Aggregate::Extreme { meaning, .. } => match meaning {
                Meaning::Signed => Cell::Signed(total as i64),
                Meaning::Unsigned => Cell::Unsigned(total as u64),
                Meaning::Date => Cell::Date(total as i32),
                Meaning::DateTime => Cell::DateTime(total as i64),
                Meaning::Decimal(scale) => Cell::Decimal {
                    unscaled: total,
                    scale: scale as i8,
                },
            },
        }
    }
}
