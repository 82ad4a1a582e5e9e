//! Expressions: from the syntax tree to typed ones.
//!
//! A condition has the type BOOLEAN, a value any other. What wants the one and gets the other converts it: a condition
//! as a value is 0 or 1, a value as a condition is true unless it is zero.

mod cast;
mod constant;
mod in_list;
mod literal;
mod name;
mod operator;
mod row;

use std::sync::Arc;

use arrow::datatypes::DataType as ArrowType;
use datafusion_common::ScalarValue;
use sheaf_algebra::Scalar;
use sheaf_algebra::scalar::Truth;
use sheaf_exec::functions::control::common_field;
use sheaf_exec::functions::types::{SqlType, zerofill};
use sheaf_types::Collation;
use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Query, SelectItem, SetExpr, TrimWhereField, UnaryOperator,
    Value as Literal,
};

use super::arguments::unit_name;
use super::character_set::{BINARY, introduced};
use super::literal::{check_non_zero_literal, check_typed_literal, with_fraction_of};
use super::mixed_literals::refuse_mixed_literals;
use super::session::variable;
use super::subquery::operand_columns;
use super::told::is_call_of;
use super::{Binder, Bound, unsupported};
use crate::error::SqlError;
use crate::syntax::{comparison_of, inside, is_same, object_text};

pub(super) use row::{width, with_row};

impl Binder<'_> {
    /// The expression as a value; conditions are 0 and 1.
    pub(super) fn value(&mut self, expr: &Expr) -> Bound<Scalar> {
        let value = self.whole_value(expr)?;
        match is_extreme(expr, false) || is_extreme(expr, true) {
            true => self.label(value),
            false => Ok(value),
        }
    }

    /// A value that is no operand: an item of the select list, a key of an order. MIN and MAX of an ENUM are one there,
    /// and the text of their label elsewhere, and over a window.
    pub(super) fn whole_value(&mut self, expr: &Expr) -> Bound<Scalar> {
        let scalar = self.expression(expr)?;
        let value = self.typing().value(scalar)?;
        match is_extreme(expr, true) {
            true => self.label(value),
            false => Ok(value),
        }
    }

    /// The text of an ENUM, and a number without its ZEROFILL; any other value as it is.
    pub(super) fn label(&self, value: Scalar) -> Bound<Scalar> {
        let field = value.field();
        let is_enum = matches!(SqlType::of(field), SqlType::Enum { .. });
        match is_enum || zerofill(field).is_some() {
            true => {
                let plain = common_field(&[Arc::clone(field)])?;
                Ok(self.typing().column_of(value, &plain)?)
            }
            false => Ok(value),
        }
    }

    /// An ENUM or SET that WITH ROLLUP groups by, as it is shown and ordered: its text, unlike in expressions.
    pub(super) fn rolled_up_label(&mut self, value: Scalar) -> Bound<Scalar> {
        let is_enum = matches!(SqlType::of(value.field()), SqlType::Enum { .. });
        let Some(column) = value.as_column().filter(|_| is_enum) else {
            return Ok(value);
        };
        let grouping = self.block()?.grouping.as_ref();
        let is_key = grouping.is_some_and(|grouping| {
            let mut keys = grouping.keys.iter().flatten();
            grouping.level.is_some() && keys.any(|key| key.as_column() == Some(column))
        });
        match is_key {
            true => self.label(value),
            false => Ok(value),
        }
    }

    /// The expression as a condition; values are true unless zero.
    pub(super) fn condition(&mut self, expr: &Expr) -> Bound<Scalar> {
        let mut scalar = self.expression(expr)?;
        if is_extreme(expr, false) {
            scalar = self.label(scalar)?;
        }
        Ok(self.typing().condition(scalar)?)
    }

    pub(super) fn values<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Bound<Vec<Scalar>> {
        exprs.into_iter().map(|expr| self.value(expr)).collect()
    }

    /// An operand that is computed with, unlike one that is compared or shown: the value of a subquery keeps the digits
    /// of quotients that are not shown.
    pub(super) fn operand(&mut self, expr: &Expr) -> Bound<Scalar> {
        self.keeps_digits = matches!(inside(expr), Expr::Subquery(_));
        let value = self.value(expr);
        self.keeps_digits = false;
        value
    }

    pub(super) fn operands<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Bound<Vec<Scalar>> {
        exprs.into_iter().map(|expr| self.operand(expr)).collect()
    }

    /// A value that becomes a JSON value or stands beside one, as `expr` is written: what is true or false is that
    /// there, and no number.
    pub(super) fn value_in_json(&self, value: Scalar, expr: &Expr) -> Bound<Scalar> {
        match says_whether(expr) {
            true => Ok(self.typing().condition(value)?),
            // As in MySQL, QUOTE makes a text of bytes there. Elsewhere it is bytes, as in MariaDB.
            false if value.sql_type() == SqlType::Bytes && is_call_of(expr, &["quote"]) => {
                self.cast_char(vec![value])
            }
            false => Ok(value),
        }
    }

    pub(super) fn json_operands<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e Expr> + Clone,
    ) -> Bound<Vec<Scalar>> {
        let values = self.operands(exprs.clone())?.into_iter().zip(exprs);
        values
            .map(|(value, expr)| self.value_in_json(value, expr))
            .collect()
    }

    pub(super) fn call(&self, name: &str, arguments: Vec<Scalar>) -> Bound<Scalar> {
        Ok(self.typing().call(name, arguments)?)
    }

    pub(super) fn call_on_values<'e>(
        &mut self,
        name: &str,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Bound<Scalar> {
        let arguments = self.operands(exprs)?;
        self.call(name, arguments)
    }

    pub(super) fn text(&self, text: impl Into<String>) -> Bound<Scalar> {
        Ok(self
            .typing()
            .literal(ScalarValue::Utf8(Some(text.into())))?)
    }

    pub(super) fn integer(&self, number: i64) -> Scalar {
        Scalar::literal(ScalarValue::Int64(Some(number)))
    }

    fn negate_if(negated: bool, condition: Scalar) -> Scalar {
        match negated {
            true => condition.not(),
            false => condition,
        }
    }

    pub(super) fn expression(&mut self, expr: &Expr) -> Bound<Scalar> {
        if let Some(block) = self.blocks.last()
            && !block.grouped.is_empty()
            && !block.in_aggregate
            && let Some((_, column)) = block.grouped.iter().find(|(grouped, _)| grouped == expr)
        {
            return Ok(column.clone());
        }
        self.nested(|this| this.expression_inner(expr))
    }

    fn expression_inner(&mut self, expr: &Expr) -> Bound<Scalar> {
        refuse_mixed_literals(expr)?;
        match expr {
            Expr::Nested(inner) => self.expression(inner),
            Expr::Identifier(ident) => {
                let session = self.context.session;
                if let Some(name) = ident.value.strip_prefix('@')
                    && let Some(value) = self.assigned_variable(name)?
                {
                    return Ok(value);
                }
                if let Some(value) = variable(session, &[&ident.value])? {
                    return self.internal(&value);
                }
                if ident.quote_style.is_none()
                    && ident.value.eq_ignore_ascii_case("current_user")
                    && let Some(user) = self.session_function("current_user", None)
                {
                    return self.internal(&user);
                }
                self.named(None, None, &ident.value)
            }
            Expr::CompoundIdentifier(parts) => {
                let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                if let Some(value) = variable(self.context.session, &names)? {
                    return self.internal(&value);
                }
                match names.as_slice() {
                    [table, column] => self.named(None, Some(table), column),
                    [database, table, column] => self.named(Some(database), Some(table), column),
                    _ => unsupported(expr.to_string()),
                }
            }
            Expr::Value(value) => self.literal(value),
            Expr::Prefixed { prefix, value } => {
                let literal = match value.as_ref() {
                    Expr::Value(value) => introduced(&prefix.value, &value.value)?,
                    _ => None,
                };
                match literal {
                    Some(literal) if prefix.value.eq_ignore_ascii_case("_binary") => {
                        let bytes = self.internal(&literal)?;
                        self.call("$literal_bytes", vec![bytes])
                    }
                    // It compares by the collation that its set has by default.
                    Some(literal)
                        if is_of_other_set(&prefix.value[1..])
                            || matches!(self.collation(), Collation::OfSet(_)) =>
                    {
                        let text = self.internal(&literal)?;
                        self.using(text, &prefix.value[1..], true)
                    }
                    Some(literal) => self.internal(&literal),
                    None => {
                        let value = self.value(value)?;
                        self.using(value, &prefix.value[1..], true)
                    }
                }
            }
            Expr::TypedString(typed) => {
                let is_text = matches!(
                    typed.value.value,
                    Literal::SingleQuotedString(_) | Literal::DoubleQuotedString(_)
                );
                let checked = check_typed_literal(&typed.value, &typed.data_type);
                // `{d 'text'}` is the text if that is no date.
                if typed.uses_odbc_syntax && (!is_text || checked.is_err()) {
                    return self.literal(&typed.value);
                }
                checked?;
                if self.context.session.refuses_zero_dates() {
                    check_non_zero_literal(&typed.value, &typed.data_type)?;
                }
                let data_type = with_fraction_of(&typed.value, typed.data_type.clone());
                let value = self.literal(&typed.value)?;
                self.cast(value, &data_type)
            }
            Expr::BinaryOp { left, op, right } => self.binary_operator(left, op, right),
            Expr::MemberOf(member) => {
                let value = self.operand(&member.value)?;
                let value = self.value_in_json(value, &member.value)?;
                let array = self.operand(&member.array)?;
                self.call("$member_of", vec![value, array])
            }
            Expr::UnaryOp { op, expr } => self.unary_operator(*op, expr),
            Expr::IsNull(inner) => self.null_test(inner, false),
            Expr::IsNotNull(inner) => self.null_test(inner, true),
            Expr::IsTrue(inner) => Ok(self.condition(inner)?.test(Truth::True, false)),
            Expr::IsNotTrue(inner) => Ok(self.condition(inner)?.test(Truth::True, true)),
            Expr::IsFalse(inner) => Ok(self.condition(inner)?.test(Truth::False, false)),
            Expr::IsNotFalse(inner) => Ok(self.condition(inner)?.test(Truth::False, true)),
            Expr::IsUnknown(inner) => Ok(self.condition(inner)?.test(Truth::Unknown, false)),
            Expr::IsNotUnknown(inner) => Ok(self.condition(inner)?.test(Truth::Unknown, true)),
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let operands = [self.value(expr)?, self.value(low)?, self.value(high)?];
                let between = self.typing().between(self.between(operands)?)?;
                Ok(Self::negate_if(*negated, between))
            }
            Expr::InList {
                expr,
                list,
                negated,
            } => Ok(Self::negate_if(*negated, self.in_list(expr, list)?)),
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let found = self.in_subquery(expr, subquery)?;
                Ok(Self::negate_if(*negated, found))
            }
            Expr::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.any(left, compare_op, right),
            Expr::AllOp {
                left,
                compare_op,
                right,
            } => self.all(left, compare_op, right),
            Expr::Exists { subquery, negated } => {
                let exists = self.exists(subquery)?;
                Ok(Self::negate_if(*negated, exists))
            }
            Expr::Subquery(query) => self.value_of_subquery(query),
            Expr::Like {
                negated,
                expr,
                pattern,
                escape_char,
                any: false,
            } => {
                let arguments = self.operands_of_like(expr, pattern, escape_char.as_ref())?;
                Ok(Self::negate_if(*negated, self.call("$like", arguments)?))
            }
            Expr::RLike {
                negated,
                expr,
                pattern,
                ..
            } => {
                let found = self.call_on_values("regexp_like", [&**expr, &**pattern])?;
                let found = self.typing().condition(found)?;
                Ok(Self::negate_if(*negated, found))
            }
            Expr::Convert {
                expr,
                data_type,
                charset,
                ..
            } => {
                let is_for_bytes = match (data_type, charset) {
                    (Some(data_type), None) => matches!(data_type, DataType::Binary(_)),
                    (_, Some(charset)) => object_text(charset).eq_ignore_ascii_case(BINARY),
                    _ => false,
                };
                let value = self.value(expr)?;
                let value = match is_for_bytes {
                    true => self.in_its_character_set(value, expr)?,
                    false => value,
                };
                match (data_type, charset) {
                    (Some(data_type), Some(charset)) => {
                        let set = object_text(charset);
                        let value = match value.sql_type() {
                            SqlType::Bytes => self.using(value, &set, false)?,
                            _ => value,
                        };
                        let text = self.cast(value, data_type)?;
                        self.using(text, &set, false)
                    }
                    (Some(data_type), None) => {
                        let value = match data_type {
                            DataType::JSON => self.value_in_json(value, expr)?,
                            _ => value,
                        };
                        self.cast(value, data_type)
                    }
                    (None, Some(charset)) => {
                        self.using(value, &object_text(charset), is_char(expr))
                    }
                    _ => self.cast_char(vec![value]),
                }
            }
            Expr::Cast {
                expr, data_type, ..
            } if matches!(&**expr, Expr::AtTimeZone { .. }) => {
                self.cast_at_time_zone(expr, data_type)
            }
            Expr::Cast {
                expr, data_type, ..
            } => {
                let mut value = self.value(expr)?;
                if matches!(data_type, DataType::Binary(_)) {
                    value = self.in_its_character_set(value, expr)?;
                }
                if *data_type == DataType::JSON {
                    value = self.value_in_json(value, expr)?;
                }
                self.cast(value, data_type)
            }
            Expr::Extract { field, expr, .. } => {
                let arguments = vec![self.text(unit_name(field))?, self.value(expr)?];
                self.call("$extract", arguments)
            }
            Expr::Ceil { expr, .. } => self.call_on_values("ceil", [&**expr]),
            Expr::Floor { expr, .. } => self.call_on_values("floor", [&**expr]),
            Expr::Position { expr, r#in } => self.call_on_values("locate", [&**expr, &**r#in]),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let mut arguments = vec![self.value(expr)?];
                arguments.push(match substring_from {
                    Some(from) => self.value(from)?,
                    None => self.integer(1),
                });
                if let Some(length) = substring_for {
                    arguments.push(self.value(length)?);
                }
                self.call("substring", arguments)
            }
            Expr::Trim {
                trim_where,
                trim_what,
                expr,
                ..
            } => {
                let place = match trim_where {
                    Some(TrimWhereField::Leading) => "l",
                    Some(TrimWhereField::Trailing) => "t",
                    _ => "b",
                };
                let value = self.value(expr)?;
                let removed = match trim_what {
                    Some(what) => self.value(what)?,
                    None => self.text(" ")?,
                };
                let place = self.text(place)?;
                self.call("$trim", vec![value, removed, place])
            }
            Expr::Collate { expr, collation } => {
                let value = self.value(expr)?;
                let collation = object_text(collation);
                let collation = self.named_in_collate((expr, &value), &collation)?;
                let name = self.text(collation)?;
                self.call("$collate", vec![value, name])
            }
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                let is_simple = operand.is_some();
                let arguments = self.choosing(|this| -> Bound<Vec<Scalar>> {
                    let mut arguments = Vec::with_capacity(2 * conditions.len() + 2);
                    if let Some(operand) = operand {
                        arguments.push(this.value(operand)?);
                    }
                    for branch in conditions {
                        arguments.push(match is_simple {
                            true => this.value(&branch.condition)?,
                            false => this.condition(&branch.condition)?,
                        });
                        arguments.push(this.operand(&branch.result)?);
                    }
                    if let Some(default) = else_result {
                        arguments.push(this.operand(default)?);
                    }
                    Ok(arguments)
                })?;
                let name = if is_simple { "$simple_case" } else { "$case" };
                self.call(name, arguments)
            }
            Expr::Function(function) => self.function(function),
            Expr::Tuple(_) => Err(operand_columns(1)),
            Expr::Interval(_) => Err(SqlError::parse_error("INTERVAL", 1)),
            other => unsupported(other.to_string()),
        }
    }

    fn null_test(&mut self, operand: &Expr, negated: bool) -> Bound<Scalar> {
        Ok(self.value(operand)?.test(Truth::Null, negated))
    }
}

/// Whether a character set is one whose texts have collations of their own.
fn is_of_other_set(name: &str) -> bool {
    matches!(Collation::default_of_set(name), Some(Collation::OfSet(_)))
}

/// `CHAR(65 USING name)` is read as CONVERT(CHAR(65) USING name).
fn is_char(expr: &Expr) -> bool {
    match expr {
        Expr::Function(call) => object_text(&call.name).eq_ignore_ascii_case("char"),
        _ => false,
    }
}

/// Whether two expressions of the same text mean the same. A parameter that has no value yet has the type of NULL.
pub(super) fn is_repeatable(scalar: &Scalar) -> bool {
    let may_be_parameter = scalar.field().data_type() == &ArrowType::Null;
    scalar.as_column().is_some() || (!scalar.varies() && !may_be_parameter)
}

/// What a query shows, if it is one expression.
fn only_item(query: &Query) -> Option<&Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] => {
            Some(item)
        }
        _ => None,
    }
}

/// Whether an expression says whether something is so, and is a number only where a number is wanted.
fn says_whether(expr: &Expr) -> bool {
    const FUNCTIONS: [&str; 12] = [
        "gtid_subset",
        "is_ipv4",
        "is_ipv4_compat",
        "is_ipv4_mapped",
        "is_ipv6",
        "is_uuid",
        "isnull",
        "json_contains",
        "json_contains_path",
        "json_overlaps",
        "json_valid",
        "regexp_like",
    ];
    match inside(expr) {
        Expr::Value(literal) => matches!(literal.value, Literal::Boolean(_)),
        Expr::BinaryOp { op, .. } => {
            comparison_of(op).is_some()
                || matches!(
                    op,
                    BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor
                )
        }
        Expr::UnaryOp {
            op: UnaryOperator::Plus,
            expr,
        } => says_whether(expr),
        Expr::UnaryOp { op, .. } => matches!(op, UnaryOperator::Not | UnaryOperator::BangNot),
        Expr::Subquery(query) => only_item(query).is_some_and(says_whether),
        Expr::Function(call) => {
            let name = object_text(&call.name);
            FUNCTIONS.iter().any(|known| is_same(&name, known))
        }
        Expr::MemberOf(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Exists { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::RLike { .. } => true,
        _ => false,
    }
}

/// Whether this is MIN or MAX, over a window or not.
fn is_extreme(expr: &Expr, over_window: bool) -> bool {
    match expr {
        Expr::Function(call) if call.over.is_some() == over_window => {
            let name = object_text(&call.name);
            is_same(&name, "min") || is_same(&name, "max")
        }
        _ => false,
    }
}
