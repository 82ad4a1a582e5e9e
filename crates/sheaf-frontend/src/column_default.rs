//! `DEFAULT(column)`: the constant that the column's definition has.
//!
//! It is no expression over rows, so it is written out before it is bound. In VALUES, where no table is in
//! scope, the same is done with the table that the rows go to.
//!
//! The default of an ENUM or SET is a label to texts, and the label's number to numbers, as its column is. So it is
//! written as a cast to the type of the column, which no statement can have.

use std::ops::ControlFlow;

use sheaf_table::{Column, DefaultExpression, DefaultValue};
use sheaf_types::text::hexadecimal::digits_of;
use sheaf_types::{ColumnType, Value, column_text};
use sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, TimezoneInfo, TypedString, Value as Literal, ValueWithSpan,
};
use sqlparser::tokenizer::Span;

use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::parser::parse_expression;
use crate::syntax::{call, literal, null, number, object_text, text};
use crate::walk::ExpressionVisitor;

/// What the type of a column with labels is called in a cast. No identifier is written like this.
const LABELS: &str = "\0labels";

/// The default of a column as it would be written.
///
/// # Errors
/// 1364 for a column without one.
pub fn default_expression(column: &Column) -> Result<Expr> {
    let value = match &column.default {
        _ if column.generated.is_some() => {
            return Err(SqlError::no_default_for_field(&column.name));
        }
        Some(DefaultValue::Value(value)) => value,
        Some(DefaultValue::CurrentTimestamp) => {
            let digits = column.ty.fraction_digits();
            return Ok(call("current_timestamp", vec![number(digits)]));
        }
        Some(DefaultValue::Expression(default)) => return computed_default(default),
        None if column.auto_increment => return Ok(number(0)),
        None if column.nullable => return Ok(null()),
        None => return Err(SqlError::no_default_for_field(&column.name)),
    };
    let shown = column_text(&column.ty, value);
    Ok(match value {
        Value::Null => null(),
        Value::Float(_) | Value::Double(_) => match shown.contains('e') {
            true => number(shown),
            false => number(format!("{shown}e0")),
        },
        exact if exact.is_number() => number(shown),
        Value::Date(_) => typed(shown, DataType::Date),
        Value::Time(_) => typed(shown, DataType::Time(None, TimezoneInfo::None)),
        Value::DateTime(_) | Value::Timestamp(_) => {
            typed(shown, DataType::Timestamp(None, TimezoneInfo::None))
        }
        Value::Bytes(bytes) => literal(Literal::HexStringLiteral(digits_of(bytes))),
        _ if column.ty.has_labels() => label(shown, &column.ty),
        _ => text(shown),
    })
}

/// The expression that computes a default, in parentheses.
///
/// # Errors
/// If it cannot be read, which it could when the column was defined.
pub fn computed_default(default: &DefaultExpression) -> Result<Expr> {
    // As it was read: `sql_mode` says nothing about what is kept.
    let dialect = SheafDialect::default();
    let expression = parse_expression(&default.text, &dialect)?;
    Ok(Expr::Nested(Box::new(expression)))
}

fn typed(shown: String, data_type: DataType) -> Expr {
    Expr::TypedString(TypedString {
        data_type,
        value: ValueWithSpan {
            value: Literal::SingleQuotedString(shown),
            span: Span::empty(),
        },
        uses_odbc_syntax: false,
    })
}

/// A label of a type that has labels.
fn label(shown: String, ty: &ColumnType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(text(shown)),
        data_type: DataType::Custom(
            ObjectName::from(vec![Ident::with_quote('`', LABELS)]),
            vec![ty.to_string()],
        ),
        array: false,
        format: None,
    }
}

/// The type with labels that the default of a column is cast to; `None` for types that a statement can have.
pub fn type_of_label(data_type: &DataType) -> Option<ColumnType> {
    match data_type {
        DataType::Custom(name, modifiers) if object_text(name) == LABELS => {
            ColumnType::parse(modifiers.first()?).ok()
        }
        _ => None,
    }
}

/// The column that DEFAULT() names: its table, if that is written, and its name. `None` for any other call.
///
/// # Errors
/// 1064 for other arguments than the name of a column.
pub fn column_of_default(function: &Function) -> Result<Option<(Option<&Ident>, &Ident)>> {
    if function.over.is_some() || !object_text(&function.name).eq_ignore_ascii_case("default") {
        return Ok(None);
    }
    let wrong = || SqlError::parse_error(&function.args.to_string(), 1);
    let FunctionArguments::List(list) = &function.args else {
        return Err(wrong());
    };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name)))] => {
            Ok(Some((None, name)))
        }
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::CompoundIdentifier(parts)))] => {
            match parts.as_slice() {
                [.., table, name] => Ok(Some((Some(table), name))),
                _ => Err(wrong()),
            }
        }
        _ => Err(wrong()),
    }
}

/// Puts the defaults of a table's columns in the places of DEFAULT().
pub struct DefaultsOf<'a> {
    pub columns: &'a [Column],
    pub failure: Option<SqlError>,
}

impl ExpressionVisitor for DefaultsOf<'_> {
    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expression else {
            return ControlFlow::Continue(());
        };
        let default = column_of_default(function).and_then(|named| {
            let Some((_, name)) = named else {
                return Ok(None);
            };
            let mut columns = self.columns.iter();
            let column = columns.find(|column| column.name.eq_ignore_ascii_case(&name.value));
            let unknown = || SqlError::bad_field(&name.value, "field list");
            default_expression(column.ok_or_else(unknown)?).map(Some)
        });
        match default {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(default)) => {
                *expression = default;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}
