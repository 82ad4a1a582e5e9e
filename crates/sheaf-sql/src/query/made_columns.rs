//! The columns that CREATE TABLE … SELECT makes of those of a query.
//!
//! A column of a table keeps its type, its default and its comment. Of an expression the plan knows the kind of its
//! values, and [`value_extent`](crate::query::value_extent) how long they can be:
//!
//! ```text
//!   'abc'  varchar(3)     1  int     concat(v, 'x')  varchar(4)     d * 2  decimal(11,2)     upper(t)  mediumtext
//! ```
//!
//! What is not known keeps the widest type of its kind. Three things are told by how an item is written, since what is
//! computed of constants is a constant by then: the [digits of numbers](super::constant_numbers), the length that CAST
//! declares, and whether values may be NULL. As in MySQL that is what the item is made by: most functions that make
//! texts may give NULL, whatever they are given.

use arrow::datatypes::{DataType, Field};
use sheaf_access::{TYPE_KEY, type_of_arrow};
use sheaf_exec::functions::types::shown_type;
use sheaf_exec::functions::{SqlType as MysqlType, called};
use sheaf_table::Column;
use sheaf_table::convert::to_column;
use sheaf_table::schema::{DefaultValue, same_name};
use sheaf_types::assignment::{Mode, zero_value};
use sheaf_types::column_type::{MAX_CHARACTER_BYTES, MAX_DECIMAL_PRECISION, MAX_DECIMAL_SCALE};
use sheaf_types::number::FloatDigits;
use sheaf_types::{ColumnType, Value};
use sqlparser::ast::{
    BinaryOperator, CharacterLength, DataType as SqlType, Expr, GroupByExpr, GroupByWithModifier,
    Query, SelectItem, SetExpr,
};

use crate::query::constant_numbers::{arguments, constant_number, function_name, is_null};
use crate::query::value_extent::Extent;
use crate::session::Session;
use crate::session::result::{ColumnMeta, is_of_any_length};
use crate::variables::Variables;

/// Longer texts and byte strings become TEXT and BLOB.
const MAX_LENGTH: u32 = 512;
/// What TINYTEXT holds.
const TINY_BYTES: u64 = 255;
/// What TEXT and BLOB, and their kinds of other lengths, hold.
const LONG_BYTES: [u64; 3] = [65_535, 16_777_215, 4_294_967_295];

impl Session {
    /// The column that holds what a column of a query shows.
    pub(crate) fn made_column(
        &self,
        field: &Field,
        meta: &ColumnMeta,
        (extent, written): (Option<Extent>, Option<&Expr>),
    ) -> Column {
        let nullable = field.is_nullable();
        let origin = match meta.org_table.is_empty() {
            true => None,
            false => self
                .table_names_in_utc()
                .columns(&meta.database, &meta.org_table),
        };
        let origin = origin.and_then(|columns| {
            let mut columns = columns.into_iter();
            columns.find(|column| same_name(&column.name, &meta.org_name))
        });
        match origin {
            Some(column) => Column {
                name: meta.name.clone(),
                nullable,
                auto_increment: false,
                generated: None,
                invisible: false,
                hidden: false,
                default: match column.auto_increment && !nullable {
                    true => Some(DefaultValue::Value(zero_of(&column.ty))),
                    // Its columns are not there.
                    false => match column.default_expression() {
                        Some(default) if !default.columns.is_empty() => None,
                        _ => column.default.clone(),
                    },
                },
                ..column
            },
            None => {
                let increment = u32::from(self.variables.quotient_decimals());
                let number = written.and_then(|written| constant_number(written, increment));
                let declared = written.and_then(declared_length);
                let extent = match (extent, declared) {
                    (Some(Extent::Null), Some(declared)) => Some(Extent::Text(declared)),
                    (Some(Extent::Text(known)), Some(declared)) if known < declared => {
                        Some(Extent::Text(declared))
                    }
                    (extent, _) => extent,
                };
                let ty = number.and_then(|number| type_of_constant(field, number.extent));
                let ty = ty.or_else(|| written.and_then(|written| named_tiny_text(field, written)));
                let ty = within_limits(ty.unwrap_or_else(|| made_type(field, extent)));
                let may_be_null = |written| makes_null(written, &ty);
                let nullable = match number {
                    Some(number) => number.may_be_null,
                    None if written.is_some_and(is_of_bits) => false,
                    None => nullable || written.is_some_and(may_be_null),
                };
                let column = Column::new(meta.name.clone(), ty, nullable);
                Column {
                    default: self.variables.made_default(&column),
                    ..column
                }
            }
        }
    }

    /// The same of a query WITH ROLLUP: what is grouped by is no column of a table, but computed.
    pub(crate) fn rolled_up_column(
        &self,
        field: &Field,
        meta: &ColumnMeta,
        known: (Option<Extent>, Option<&Expr>),
    ) -> Column {
        let meta = ColumnMeta {
            org_table: String::new(),
            ..meta.clone()
        };
        let column = self.made_column(field, &meta, known);
        let is_key = known.1.is_some_and(is_name);
        let ty = match column.ty {
            ty if is_key => ty.without_zerofill().into_varying(),
            ty => ty,
        };
        Column { ty, ..column }
    }
}

impl Variables {
    /// A computed column that is never NULL has the zero of its type as its default: 0, the empty text. Dates have one
    /// where `sql_mode` is not strict, as in MySQL.
    fn made_default(&self, column: &Column) -> Option<DefaultValue> {
        let has_zero = match &column.ty {
            ty if ty.has_date() => !self.sql_mode().is_strict(),
            ty => !is_of_any_length(ty) && !ty.is_long(),
        };
        let zero = || to_column(column, &Value::Null, Mode::LENIENT).ok();
        let (zero, _) = (!column.nullable && has_zero).then(zero).flatten()?;
        Some(DefaultValue::Value(zero))
    }
}

/// Whether a query groups WITH ROLLUP.
pub(crate) fn rolls_up(query: &Query) -> bool {
    let mut body = query.body.as_ref();
    while let SetExpr::Query(inner) = body {
        body = inner.body.as_ref();
    }
    match body {
        SetExpr::Select(select) => match &select.group_by {
            GroupByExpr::Expressions(_, modifiers) => {
                modifiers.contains(&GroupByWithModifier::Rollup)
            }
            GroupByExpr::All(_) => false,
        },
        _ => false,
    }
}

/// How the items of a query's list are written, for each of its columns. `None` where that is not told by the list: in
/// unions, and where a `*` stands before and behind them.
pub(crate) fn written_items(query: &Query, columns: usize) -> Vec<Option<&Expr>> {
    let mut written = vec![None; columns];
    let mut body = query.body.as_ref();
    while let SetExpr::Query(inner) = body {
        body = inner.body.as_ref();
    }
    let SetExpr::Select(select) = body else {
        return written;
    };
    let items = &select.projection;
    let first = items.iter().map_while(expression_of);
    for (place, expr) in written.iter_mut().zip(first) {
        *place = Some(expr);
    }
    let last = items.iter().rev().map_while(expression_of);
    for (place, expr) in written.iter_mut().rev().zip(last) {
        *place = Some(expr);
    }
    written
}

fn expression_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// The characters that a CAST to CHAR(n) declares.
fn declared_length(written: &Expr) -> Option<u32> {
    let data_type = match written {
        Expr::Nested(inner) => return declared_length(inner),
        Expr::Cast { data_type, .. } => data_type,
        Expr::Convert {
            data_type: Some(data_type),
            ..
        } => data_type,
        _ => return None,
    };
    match data_type {
        SqlType::Char(Some(CharacterLength::IntegerLength { length, .. }))
        | SqlType::Character(Some(CharacterLength::IntegerLength { length, .. })) => {
            u32::try_from(*length).ok()
        }
        _ => None,
    }
}

/// Whether an item may be NULL by how it is written, although the values that it is given are not.
fn makes_null(written: &Expr, ty: &ColumnType) -> bool {
    let is_string = ty.is_character() || ty.is_binary() || ty.is_json();
    match written {
        Expr::Nested(inner) => makes_null(inner, ty),
        Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Prefixed { .. }
        | Expr::Identifier(_)
        | Expr::CompoundIdentifier(_) => false,
        Expr::Case {
            conditions,
            else_result,
            ..
        } => {
            let mut results = conditions.iter().map(|when| &when.result);
            else_result.as_deref().is_none_or(is_null) || results.any(is_null)
        }
        Expr::Cast { .. } | Expr::Convert { .. } => is_string || ty.is_temporal(),
        Expr::Extract { .. } => true,
        Expr::BinaryOp { left, right, .. }
            if [left, right].iter().any(|side| is_interval(side)) =>
        {
            true
        }
        // By zero it is NULL.
        Expr::BinaryOp {
            op: BinaryOperator::Divide | BinaryOperator::MyIntegerDivide | BinaryOperator::Modulo,
            ..
        } => true,
        Expr::Function(function) => {
            let name = function_name(function);
            match name.as_str() {
                // The binder makes them of other functions.
                "name_const" | "timestampadd" => true,
                name if called(name).is_some_and(|row| row.null_in_doubt) => true,
                "if" => arguments(function).skip(1).any(is_null),
                "ifnull" | "coalesce" | "greatest" | "least" => false,
                _ => is_string,
            }
        }
        _ => is_string,
    }
}

/// Whether it is an aggregate of bits, which are there without rows, too.
fn is_of_bits(written: &Expr) -> bool {
    match written {
        Expr::Function(function) => {
            let name = function_name(function);
            matches!(name.as_str(), "bit_and" | "bit_or" | "bit_xor")
        }
        _ => false,
    }
}

fn is_interval(operand: &Expr) -> bool {
    matches!(operand, Expr::Interval(_))
}

/// The type of a hidden column with the values of a key expression, and whether they may be NULL. Of numbers it is as
/// wide as the expression's.
pub(crate) fn key_expression_type(
    field: &Field,
    extent: Option<Extent>,
    written: &Expr,
) -> (ColumnType, bool) {
    let general = column_type_of(field);
    let shown = MysqlType::of(field);
    let declared = match written {
        Expr::Collate { expr, .. } => declared_length(expr),
        other => declared_length(other),
    };
    let extent = extent.or(declared.map(Extent::Text));
    let ty = match (&general, shown) {
        (ColumnType::Float { sign, .. }, _) => ColumnType::Float {
            digits: None,
            sign: *sign,
        },
        (ColumnType::Double { sign, .. }, _) => ColumnType::Double {
            digits: None,
            sign: *sign,
        },
        (
            ColumnType::Decimal {
                precision, sign, ..
            },
            MysqlType::Decimal {
                scale, decimals, ..
            },
        ) => ColumnType::Decimal {
            // Digits that only serve to compute with are not kept.
            precision: precision.saturating_sub(scale.saturating_sub(decimals)),
            scale: decimals.min(scale),
            sign: *sign,
        },
        (ty, _) if ty.has_labels() => ColumnType::VarChar {
            length: extent.map_or(MAX_LENGTH, Extent::shown),
            collation: ty.collation().unwrap_or_default(),
        },
        (ty, _) if ty.is_character() || ty.is_binary() => made_type(field, extent),
        _ if field.data_type() == &DataType::Null => made_type(field, extent),
        _ => general,
    };
    let ty = within_limits(ty);
    let nullable = field.is_nullable() || makes_null(written, &ty);
    (ty, nullable)
}

/// A DECIMAL without the decimals that no column has. A literal may have more.
fn within_limits(ty: ColumnType) -> ColumnType {
    match ty {
        ColumnType::Decimal {
            precision,
            scale,
            sign,
        } if scale > MAX_DECIMAL_SCALE => ColumnType::Decimal {
            precision: precision - (scale - MAX_DECIMAL_SCALE),
            scale: MAX_DECIMAL_SCALE,
            sign,
        },
        ty => ty,
    }
}

fn zero_of(ty: &ColumnType) -> Value {
    match ty.is_floating() || ty.is_integer() {
        true => zero_value(ty),
        false => Value::Null,
    }
}

/// The column type that holds what a query's column holds.
pub(crate) fn column_type_of(field: &Field) -> ColumnType {
    if let Some(ty) = shown_type(field) {
        return ty;
    }
    type_of_arrow(field.data_type())
}

/// The type of a column with a number of so many digits; `None` where the number is of another kind.
fn type_of_constant(field: &Field, known: Extent) -> Option<ColumnType> {
    match (column_type_of(field), known) {
        (
            ColumnType::Decimal { scale, sign, .. },
            Extent::Decimal {
                precision,
                scale: known,
            },
        ) if known == u32::from(scale) => {
            let precision = u8::try_from(precision).ok()?;
            Some(ColumnType::Decimal {
                precision,
                scale,
                sign,
            })
        }
        (ColumnType::Decimal { scale: 0, sign, .. }, Extent::Integer { .. }) => {
            Some(ColumnType::BigInt { sign })
        }
        (
            ColumnType::BigInt { sign } | ColumnType::Int { sign },
            Extent::Integer { is_narrow, .. },
        ) => Some(match is_narrow {
            true => ColumnType::Int { sign },
            false => ColumnType::BigInt { sign },
        }),
        _ => None,
    }
}

fn is_name(written: &Expr) -> bool {
    matches!(written, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// A TINYTEXT of a derived table or JSON_TABLE is one. Computed texts as short as that are VARCHAR.
fn named_tiny_text(field: &Field, written: &Expr) -> Option<ColumnType> {
    let ty = is_name(written).then(|| column_type_of(field))?;
    let is_tiny = ty.long_bytes().is_some_and(|most| most <= TINY_BYTES);
    (ty.is_character() && is_tiny).then_some(ty)
}

/// The type of a column with these values.
fn made_type(field: &Field, extent: Option<Extent>) -> ColumnType {
    let general = column_type_of(field);
    match (&general, extent) {
        _ if field.data_type() == &DataType::Null => ColumnType::VarBinary { length: 0 },
        (ColumnType::VarChar { .. } | ColumnType::Text { .. }, extent) => {
            let collation = general.collation().unwrap_or_default();
            match extent {
                Some(Extent::Text(length) | Extent::Shown(length)) if length <= MAX_LENGTH => {
                    ColumnType::VarChar { length, collation }
                }
                Some(Extent::Null) => ColumnType::VarChar {
                    length: 0,
                    collation,
                },
                extent
                    if is_of_any_length(&general) || !field.metadata().contains_key(TYPE_KEY) =>
                {
                    let characters = extent.map(Extent::shown);
                    let bytes = characters
                        .map(|length| u64::from(length).saturating_mul(MAX_CHARACTER_BYTES.into()));
                    ColumnType::Text {
                        max_bytes: long_bytes(bytes),
                        collation,
                    }
                }
                _ => general,
            }
        }
        (ColumnType::Blob { .. }, Some(Extent::Bytes(length))) => match length <= MAX_LENGTH {
            true => ColumnType::VarBinary { length },
            false => ColumnType::Blob {
                max_bytes: long_bytes(Some(length.into())),
            },
        },
        (
            ColumnType::BigInt { sign },
            Some(Extent::Integer {
                is_narrow: true, ..
            }),
        ) => ColumnType::Int { sign: *sign },
        (
            ColumnType::Decimal {
                precision,
                scale,
                sign,
            },
            Some(Extent::Decimal {
                precision: known,
                scale: known_scale,
            }),
        ) if known_scale == u32::from(*scale) && known < u32::from(*precision) => {
            ColumnType::Decimal {
                precision: u8::try_from(known).unwrap_or(*precision),
                scale: *scale,
                sign: *sign,
            }
        }
        (
            ColumnType::Float {
                digits: Some(digits),
                sign,
            },
            Some(extent),
        ) => {
            let precision = extent.float_digits().and_then(|all| u8::try_from(all).ok());
            let known = precision.and_then(|all| FloatDigits::new(all, digits.scale));
            ColumnType::Float {
                digits: known.or(Some(*digits)),
                sign: *sign,
            }
        }
        // A digit stands before the point.
        (
            ColumnType::Decimal {
                precision,
                scale,
                sign,
            },
            _,
        ) if precision == scale => ColumnType::Decimal {
            precision: (precision + 1).min(MAX_DECIMAL_PRECISION),
            scale: *scale,
            sign: *sign,
        },
        (
            ColumnType::Decimal {
                precision,
                scale: 0,
                sign,
            },
            Some(Extent::Integer { digits, .. }),
        ) if digits < u32::from(*precision) => ColumnType::Decimal {
            precision: u8::try_from(digits.max(1)).unwrap_or(*precision),
            scale: 0,
            sign: *sign,
        },
        _ => general,
    }
}

/// The smallest of the long types with room for so many bytes, or for any number.
fn long_bytes(bytes: Option<u64>) -> u64 {
    let [.., longest] = LONG_BYTES;
    let bytes = bytes.unwrap_or(longest);
    let mut kinds = LONG_BYTES.into_iter();
    kinds.find(|most| bytes <= *most).unwrap_or(longest)
}
