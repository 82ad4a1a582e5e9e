//! Expressions: from the syntax tree to typed ones.
//!
//! A condition has the type BOOLEAN, a value any other. What wants the one and gets the other converts it: a condition
//! as a value is 0 or 1, a value as a condition is true unless it is zero.

use std::borrow::Cow;
use std::cmp::Ordering;

use arrow::datatypes::DataType as ArrowType;
use datafusion_common::ScalarValue;
use sheaf_algebra::Scalar;
use sheaf_algebra::scalar::{Comparison, Truth};
use sheaf_exec::functions::in_values::IN_NUMBERS;
use sheaf_exec::functions::types::SqlType;
use sheaf_types::Value as SqlValue;
use sheaf_types::error::codes;
use sqlparser::ast::{
    BinaryOperator, CharacterLength, DataType, ExactNumberInfo, Expr, Interval, SelectItem,
    SetExpr, TrimWhereField, UnaryOperator, Value as Literal, ValueWithSpan,
};

use super::arguments::unit_name;
use super::block::{Block, Clause};
use super::character_set::{BINARY, introduced, known as known_character_set};
use super::literal::{
    check_non_zero_literal, check_typed_literal, is_exact, number_literal, with_fraction_of,
};
use super::scope::{Found, ScopeColumn};
use super::session::{session_function, value_literal, variable};
use super::subquery::operand_columns;
use super::{Binder, Bound, unsupported};
use crate::error::SqlError;
use crate::packed_list::{Member, Members, PackedList, unpacked};
use crate::parser::statement_bytes::latin1_text;
use crate::syntax::{as_row, is_same, object_text};

/// The largest DECIMAL has as many digits.
const MAX_DIGITS: u8 = 38;

impl Binder<'_> {
    /// The expression as a value; conditions are 0 and 1.
    pub(super) fn value(&mut self, expr: &Expr) -> Bound<Scalar> {
        let scalar = self.expression(expr)?;
        Ok(self.typing().value(scalar)?)
    }

    /// The expression as a condition; values are true unless zero.
    pub(super) fn condition(&mut self, expr: &Expr) -> Bound<Scalar> {
        let scalar = self.expression(expr)?;
        Ok(self.typing().condition(scalar)?)
    }

    pub(super) fn values<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Bound<Vec<Scalar>> {
        exprs.into_iter().map(|expr| self.value(expr)).collect()
    }

    pub(super) fn call(&self, name: &str, arguments: Vec<Scalar>) -> Bound<Scalar> {
        Ok(self.typing().call(name, arguments)?)
    }

    pub(super) fn call_on_values<'e>(
        &mut self,
        name: &str,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Bound<Scalar> {
        let arguments = self.values(exprs)?;
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
                    && let Some(user) = session_function(session, "current_user", None)
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
                if let Some(latin1) = latin1_text(prefix, value) {
                    return self.text(latin1);
                }
                let literal = match value.as_ref() {
                    Expr::Value(value) => introduced(&prefix.value, &value.value)?,
                    _ => None,
                };
                match literal {
                    Some(literal) if prefix.value.eq_ignore_ascii_case("_binary") => {
                        let bytes = self.internal(&literal)?;
                        self.call("$literal_bytes", vec![bytes])
                    }
                    Some(literal) => self.internal(&literal),
                    None => {
                        let value = self.value(value)?;
                        self.using(value, &prefix.value[1..], true)
                    }
                }
            }
            Expr::TypedString(typed) => {
                check_typed_literal(&typed.value, &typed.data_type)?;
                if self.context.session.refuses_zero_dates() {
                    check_non_zero_literal(&typed.value, &typed.data_type)?;
                }
                let data_type = with_fraction_of(&typed.value, typed.data_type.clone());
                let value = self.literal(&typed.value)?;
                self.cast(value, &data_type)
            }
            Expr::BinaryOp { left, op, right } => self.binary_operator(left, op, right),
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
                let between = self.typing().between(operands)?;
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
                let escape = match escape_char.as_ref().map(|escape| &escape.value) {
                    Some(
                        Literal::SingleQuotedString(escape) | Literal::DoubleQuotedString(escape),
                    ) => escape.clone(),
                    _ => "\\".to_string(),
                };
                let mut arguments = self.values([&**expr, &**pattern])?;
                arguments.push(self.text(escape)?);
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
                let value = self.value(expr)?;
                match (data_type, charset) {
                    (Some(data_type), Some(charset)) => {
                        let text = self.cast(value, data_type)?;
                        self.using(text, &object_text(charset), false)
                    }
                    (Some(data_type), None) => self.cast(value, data_type),
                    (None, Some(charset)) => {
                        self.using(value, &object_text(charset), is_char(expr))
                    }
                    _ => self.cast_char(vec![value]),
                }
            }
            Expr::Cast {
                expr, data_type, ..
            } => {
                let value = self.value(expr)?;
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
                let arguments = vec![self.value(expr)?, self.text(object_text(collation))?];
                self.call("$collate", arguments)
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
                        arguments.push(this.value(&branch.result)?);
                    }
                    if let Some(default) = else_result {
                        arguments.push(this.value(default)?);
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

    /// What `column`, `table.column` or `database.table.column` means.
    fn named(
        &mut self,
        database: Option<&str>,
        table: Option<&str>,
        column: &str,
    ) -> Bound<Scalar> {
        let Some(innermost) = self.blocks.last() else {
            return Err(SqlError::bad_field(column, "field list"));
        };
        let clause = innermost.clause;
        let last = self.blocks.len() - 1;
        for at in (0..self.blocks.len()).rev() {
            let block = &self.blocks[at];
            if table.is_none()
                && block.clause == Clause::Having
                && !block.in_aggregate
                && let Some(item) = self.item_named(at, column)?
            {
                return Ok(item);
            }
            let block = &self.blocks[at];
            let is_above_groups = at == last
                && block.clause == Clause::Having
                && !block.in_aggregate
                && !block.in_item
                && !block.in_grouping;
            let found = match table {
                _ if is_above_groups => block.column_above_groups(database, table, column),
                Some(table) => block.scope.column_of(database, table, column),
                None => block.scope.column(column),
            };
            match found {
                Found::Column(found) => {
                    let (id, column) = (found.id, ScopeColumn::scalar(found));
                    self.note_named(at);
                    if at == last && self.open_aggregates.is_empty() {
                        self.blocks[at].note_written(id);
                    }
                    return Ok(column);
                }
                Found::Several => {
                    let name = qualified(table, column);
                    return Err(SqlError::non_unique_column(&name, clause.name()));
                }
                Found::Nothing => {}
            }
            let is_around = at + 1 < self.blocks.len();
            let knows_items = matches!(block.clause, Clause::GroupBy | Clause::OrderBy)
                || block.clause == Clause::Having && block.in_aggregate
                || block.clause == Clause::FieldList && is_around;
            if table.is_none()
                && knows_items
                && let Some(item) = self.item_named(at, column)?
            {
                return Ok(item);
            }
        }
        Err(SqlError::bad_field(
            &qualified(table, column),
            clause.name(),
        ))
    }

    /// Tells the innermost aggregate that is open that a column of this block is named. What a subquery in an argument
    /// reads by itself says nothing about the aggregate's place, nor does what an aggregate in it is given.
    fn note_named(&mut self, block: usize) {
        let Some(open) = self.open_aggregates.last_mut() else {
            return;
        };
        match block.cmp(&open.block) {
            Ordering::Less => open.names_outer = open.names_outer.max(Some(block)),
            Ordering::Equal => open.names_own = true,
            Ordering::Greater => {}
        }
    }

    /// The item of the select list that has this alias, bound where its name stands, in the scopes of the block. In
    /// HAVING, what the block groups by hides it. Error 1247 for an item of the same list that comes later.
    fn item_named(&mut self, at: usize, name: &str) -> Bound<Option<Scalar>> {
        let block = &self.blocks[at];
        if block.in_item
            || block
                .grouped_names
                .iter()
                .any(|grouped| is_same(grouped, name))
        {
            return Ok(None);
        }
        let mut items = block.items.iter();
        // In HAVING a column that is shown is an item, too.
        let in_having = block.clause == Clause::Having;
        let item = items.find(|item| (item.is_alias || in_having) && is_same(&item.name, name));
        let Some(item) = item else {
            return Ok(None);
        };
        if item.is_ambiguous {
            return Err(SqlError::non_unique_column(name, block.clause.name()));
        }
        let (expr, position, is_alias) = (item.expr.clone(), item.position, item.is_alias);
        if block.clause == Clause::FieldList && position >= block.items_so_far {
            return Err(SqlError::new(
                codes::ILLEGAL_REFERENCE,
                format!("Reference '{name}' not supported (forward reference in item list)"),
            ));
        }
        let inner = self.blocks.split_off(at + 1);
        // An aggregate of a subquery does not become one of this block by an alias.
        let open_aggregates = match is_alias && !inner.is_empty() {
            true => Some(std::mem::take(&mut self.open_aggregates)),
            false => None,
        };
        self.blocks[at].in_item = true;
        let item = self.value(&expr);
        self.blocks[at].in_item = false;
        self.blocks.extend(inner);
        if let Some(open_aggregates) = open_aggregates {
            self.open_aggregates = open_aggregates;
        }
        let item = item?;
        let block = &mut self.blocks[at];
        if block.clause == Clause::OrderBy {
            block.ordered_items.push((position, item.clone()));
        }
        Ok(Some(item))
    }

    /// The value of a `?`, if it has one yet.
    pub(super) fn parameter(&mut self, written: &ValueWithSpan) -> Option<&SqlValue> {
        let position = self.text.parameter_at(written.span.start);
        let position = position.unwrap_or(self.parameters_seen);
        self.parameters_seen += 1;
        self.context.parameters.get(position)
    }

    pub(super) fn literal(&mut self, value: &ValueWithSpan) -> Bound<Scalar> {
        match &value.value {
            Literal::Boolean(value) => Ok(Scalar::constant(*value)),
            Literal::Null => Ok(Scalar::literal(ScalarValue::Null)),
            Literal::Placeholder(_) => match self.parameter(value).map(value_literal) {
                Some(value) => self.internal(&value),
                None => Ok(Scalar::literal(ScalarValue::Null)),
            },
            Literal::Number(digits, _) => self.number(digits),
            Literal::DoubleQuotedString(text)
            | Literal::SingleQuotedString(text)
            | Literal::NationalStringLiteral(text) => self.text(text.clone()),
            Literal::SingleQuotedByteStringLiteral(bits)
            | Literal::DoubleQuotedByteStringLiteral(bits) => {
                Err(SqlError::parse_error(&format!("b'{bits}'"), 1))
            }
            Literal::HexStringLiteral(digits) => {
                let bytes = self.bytes(digits)?;
                self.call("$hybrid", vec![bytes])
            }
            other => unsupported(other.to_string()),
        }
    }

    fn bytes(&self, digits: &str) -> Bound<Scalar> {
        match bytes_of(digits) {
            Some(bytes) => Ok(Scalar::literal(ScalarValue::Binary(Some(bytes)))),
            None => unsupported("hexadecimal digits"),
        }
    }

    /// A number as MySQL types it: with an exponent a double, otherwise exact.
    fn number(&self, digits: &str) -> Bound<Scalar> {
        if let Some(number) = exact_number(digits) {
            return Ok(Scalar::literal(number));
        }
        // Error 1367 for what no double holds. What is a call is a double.
        match number_literal(digits)? {
            call @ Expr::Function(_) => self.internal(&call),
            _ => unsupported(format!("the number {digits}")),
        }
    }

    /// Calls of internal functions on literals, as values of the session and of literals come.
    pub(super) fn internal(&self, expr: &Expr) -> Bound<Scalar> {
        match expr {
            Expr::Nested(inner) => self.internal(inner),
            Expr::Value(value) => match &value.value {
                Literal::Null => Ok(Scalar::literal(ScalarValue::Null)),
                Literal::Number(digits, _) => self.number(digits),
                Literal::SingleQuotedString(text) => self.text(text.clone()),
                Literal::HexStringLiteral(digits) => self.bytes(digits),
                other => unsupported(other.to_string()),
            },
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match expr.as_ref() {
                Expr::Value(ValueWithSpan {
                    value: Literal::Number(digits, _),
                    ..
                }) => self.number(&format!("-{digits}")),
                other => unsupported(other.to_string()),
            },
            Expr::Function(call) => {
                let arguments = match &call.args {
                    sqlparser::ast::FunctionArguments::List(list) => list.args.iter(),
                    _ => [].iter(),
                };
                let arguments = arguments.map(|argument| match argument {
                    sqlparser::ast::FunctionArg::Unnamed(
                        sqlparser::ast::FunctionArgExpr::Expr(expr),
                    ) => self.internal(expr),
                    other => unsupported(other.to_string()),
                });
                let arguments = arguments.collect::<Bound<Vec<_>>>()?;
                self.call(&object_text(&call.name), arguments)
            }
            other => unsupported(other.to_string()),
        }
    }

    fn binary_operator(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Bound<Scalar> {
        use BinaryOperator as Op;
        if let Some(operator) = comparison_of(op) {
            let (left, right) = (with_row(left), with_row(right));
            return match (left.as_ref(), right.as_ref()) {
                (Expr::Tuple(left), Expr::Tuple(right)) => {
                    self.row_comparison(left, operator, right)
                }
                (Expr::Tuple(row), Expr::Subquery(query)) => {
                    let row = self.values(row)?;
                    let columns = self.row_of_subquery(query, row.len())?;
                    self.compare_rows(row, operator, columns)
                }
                (Expr::Subquery(query), Expr::Tuple(row)) => {
                    let columns = self.row_of_subquery(query, row.len())?;
                    let row = self.values(row)?;
                    self.compare_rows(columns, operator, row)
                }
                (Expr::Tuple(row), _) | (_, Expr::Tuple(row)) => Err(operand_columns(row.len())),
                (Expr::Subquery(one), Expr::Subquery(other)) if width(&left) > 1 => {
                    let one = self.row_of_subquery(one, width(&left))?;
                    let other = self.row_of_subquery(other, one.len())?;
                    self.compare_rows(one, operator, other)
                }
                (left, right) => {
                    let (left, right) = (self.value(left)?, self.value(right)?);
                    Ok(self.typing().comparison(operator, left, right)?)
                }
            };
        }
        match (op, left, right) {
            (
                Op::Plus,
                Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr,
                },
                date,
            ) if matches!(expr.as_ref(), Expr::Interval(_)) => {
                let Expr::Interval(interval) = expr.as_ref() else {
                    return unsupported(op.to_string());
                };
                return self.add_interval("$date_subtract", date, interval);
            }
            (Op::Plus, date, Expr::Interval(interval))
            | (Op::Plus, Expr::Interval(interval), date) => {
                return self.add_interval("$date_add", date, interval);
            }
            (Op::Minus, date, Expr::Interval(interval)) => {
                return self.add_interval("$date_subtract", date, interval);
            }
            _ => {}
        }
        let name = match op {
            Op::Assignment => return self.assignment(left, right),
            Op::And => {
                let (left, right) = (self.condition(left)?, self.condition(right)?);
                return Ok(self.typing().and(left, right)?);
            }
            Op::Or => {
                let operands = |this: &mut Self| (this.condition(left), this.condition(right));
                let (left, right) = self.choosing(operands);
                let (left, right) = (left?, right?);
                return Ok(self.typing().or(left, right)?);
            }
            // True if exactly one side is.
            Op::Xor => {
                let (left, right) = (self.condition(left)?, self.condition(right)?);
                return Ok(Scalar::comparison(Comparison::NotEqual, left, right));
            }
            Op::Plus => "$add",
            Op::Minus => "$subtract",
            Op::Multiply => "$multiply",
            Op::Divide => "$divide",
            Op::MyIntegerDivide => "$integer_divide",
            Op::Modulo => "mod",
            Op::StringConcat => "concat",
            Op::BitwiseAnd => "$bit_and",
            Op::BitwiseOr => "$bit_or",
            Op::BitwiseXor => "$bit_xor",
            Op::PGBitwiseShiftLeft => "$shift_left",
            Op::PGBitwiseShiftRight => "$shift_right",
            other => return unsupported(other.to_string()),
        };
        self.call_on_values(name, [left, right])
    }

    fn unary_operator(&mut self, op: UnaryOperator, expr: &Expr) -> Bound<Scalar> {
        match (op, expr) {
            (
                UnaryOperator::Minus,
                Expr::Value(ValueWithSpan {
                    value: Literal::Number(digits, _),
                    ..
                }),
            ) => self.number(&format!("-{digits}")),
            (UnaryOperator::Minus, expr) => {
                let value = self.value(expr)?;
                let value = match value.as_literal() {
                    // Of a constant it is known that its opposite is no BIGINT.
                    Some(ScalarValue::Int64(Some(i64::MIN))) => self.as_whole_decimal(value)?,
                    Some(ScalarValue::UInt64(Some(number)))
                        if *number > i64::MIN.unsigned_abs() =>
                    {
                        self.as_whole_decimal(value)?
                    }
                    _ => value,
                };
                self.call("$negate", vec![value])
            }
            (UnaryOperator::Plus, expr) => self.value(expr),
            (UnaryOperator::BitwiseNot, expr) => self.call_on_values("$bit_not", [expr]),
            (UnaryOperator::Not | UnaryOperator::BangNot, expr) => Ok(self.condition(expr)?.not()),
            (op, _) => unsupported(op.to_string()),
        }
    }

    /// A BIGINT of either kind as a DECIMAL.
    fn as_whole_decimal(&self, value: Scalar) -> Bound<Scalar> {
        const DIGITS: i64 = 20;
        let arguments = vec![value, self.integer(DIGITS), self.integer(0)];
        self.call("$cast_decimal", arguments)
    }

    /// `(a, b) = (c, d)` and its relatives, value by value.
    fn row_comparison(
        &mut self,
        left: &[Expr],
        operator: Comparison,
        right: &[Expr],
    ) -> Bound<Scalar> {
        if left.len() != right.len() || left.is_empty() {
            return Err(operand_columns(left.len()));
        }
        let (left, right) = (self.values(left)?, self.values(right)?);
        self.compare_rows(left, operator, right)
    }

    /// As [`Self::row_comparison`], of as many values.
    pub(super) fn compare_rows(
        &mut self,
        left: Vec<Scalar>,
        operator: Comparison,
        right: Vec<Scalar>,
    ) -> Bound<Scalar> {
        let mut pairs = left.into_iter().zip(right);
        let typing = self.typing();
        let compare = |operator, (left, right)| typing.comparison(operator, left, right);
        match operator {
            // A row of one value is that value.
            _ if pairs.len() == 1 => match pairs.next() {
                Some(pair) => Ok(compare(operator, pair)?),
                None => Err(operand_columns(1)),
            },
            Comparison::Equal | Comparison::NullSafeEqual => {
                let mut all = pairs.map(|pair| compare(operator, pair));
                let first = all.next().unwrap_or(Ok(Scalar::constant(true)))?;
                Ok(all.try_fold(first, |before, one| typing.and(before, one?))?)
            }
            Comparison::NotEqual => {
                let mut any = pairs.map(|pair| compare(operator, pair));
                let first = any.next().unwrap_or(Ok(Scalar::constant(false)))?;
                Ok(any.try_fold(first, |before, one| typing.or(before, one?))?)
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

    /// A part of a row in IN, and in a comparison by order. A YEAR is the number that it is there: 24 is not 2024.
    fn in_row(&self, value: Scalar) -> Bound<Scalar> {
        match SqlType::of(value.field()) {
            SqlType::Year => self.call("$in_row", vec![value]),
            _ => Ok(value),
        }
    }

    fn in_list(&mut self, expr: &Expr, list: &[Expr]) -> Bound<Scalar> {
        let expr = with_row(expr);
        let width = width(&expr);
        match PackedList::of(list) {
            Some(PackedList::Numbers(numbers)) => {
                if width > 1 || matches!(expr.as_ref(), Expr::Tuple(_)) {
                    return Err(operand_columns(width));
                }
                let arguments = vec![self.value(&expr)?, self.internal(numbers)?];
                return self.call(IN_NUMBERS, arguments);
            }
            Some(PackedList::Members { width: own, packed }) => {
                return self.in_packed(&expr, width, (own, packed));
            }
            None => {}
        }
        if width > 1 || matches!(expr.as_ref(), Expr::Tuple(_)) {
            let mut arguments = self.left_of_rows(&expr, width)?;
            let constants = self.constants(list.iter().flat_map(|row| match row {
                Expr::Tuple(items) if items.len() == width => items.as_slice(),
                _ => &[],
            }));
            if let Some(constants) = constants.filter(|all| all.len() == width * list.len()) {
                let typing = self.typing();
                return Ok(typing.call_on_constants("$row_in", arguments, constants)?);
            }
            for row in list {
                arguments.extend(self.row(&with_row(row), width)?);
            }
            return self.call("$row_in", arguments);
        }
        let mut arguments = vec![self.value(&expr)?];
        if let Some(constants) = self.constants(list) {
            let typing = self.typing();
            return Ok(typing.call_on_constants("$in", arguments, constants)?);
        }
        arguments.extend(self.values(list)?);
        self.call("$in", arguments)
    }

    /// An IN of `width` columns whose list the parser has packed as rows of `own` members.
    fn in_packed(
        &mut self,
        expr: &Expr,
        width: usize,
        (own, packed): (usize, &str),
    ) -> Bound<Scalar> {
        if width != own {
            return Err(operand_columns(width));
        }
        let values = || {
            Members::of(packed)
                .map(value_of_member)
                .collect::<Option<Vec<_>>>()
        };
        let Some(constants) = self.may_have_constants().then(values).flatten() else {
            return self.in_list(expr, &unpacked(own, packed));
        };
        let is_row = width > 1 || matches!(expr, Expr::Tuple(_));
        let (name, arguments) = match is_row {
            true => ("$row_in", self.left_of_rows(expr, width)?),
            false => ("$in", vec![self.value(expr)?]),
        };
        let typing = self.typing();
        Ok(typing.call_on_constants(name, arguments, constants)?)
    }

    /// The first arguments of IN with rows: how many columns these have, and the row on the left.
    fn left_of_rows(&mut self, expr: &Expr, width: usize) -> Bound<Vec<Scalar>> {
        let left = self.row(expr, width)?.into_iter();
        let left = left.map(|value| self.in_row(value));
        let left = left.collect::<Bound<Vec<_>>>()?;
        Ok(std::iter::once(self.integer(width as i64))
            .chain(left)
            .collect())
    }

    /// Whether nothing else is to be found in the place of a constant.
    fn may_have_constants(&self) -> bool {
        let is_grouped = |block: &Block| !block.grouped.is_empty() && !block.in_aggregate;
        self.open_common_tables == 0 && !self.blocks.last().is_some_and(is_grouped)
    }

    /// The members of a list, if all are plain constants, and nothing else is to be found in their places.
    fn constants<'e>(&self, list: impl IntoIterator<Item = &'e Expr>) -> Option<Vec<ScalarValue>> {
        if !self.may_have_constants() {
            return None;
        }
        list.into_iter().map(plain_constant).collect()
    }

    /// The values of a row: a list of them, or a query that has one.
    pub(super) fn row(&mut self, expr: &Expr, width: usize) -> Bound<Vec<Scalar>> {
        match expr {
            Expr::Tuple(items) if items.len() == width && width > 0 => self.values(items),
            Expr::Subquery(query) => self.row_of_subquery(query, width),
            _ => Err(operand_columns(width)),
        }
    }

    /// `date + INTERVAL n unit`.
    pub(super) fn add_interval(
        &mut self,
        name: &str,
        date: &Expr,
        interval: &Interval,
    ) -> Bound<Scalar> {
        let unit = interval
            .leading_field
            .as_ref()
            .map(unit_name)
            .unwrap_or_default();
        let mut arguments = self.values([date, &*interval.value])?;
        arguments.push(self.text(unit)?);
        self.call(name, arguments)
    }

    /// A value, and a length: the value as a text that compares as the connection says, whatever it was before.
    fn cast_char(&self, arguments: Vec<Scalar>) -> Bound<Scalar> {
        let text = self.call("$cast_char", arguments)?;
        let collation = self.text(self.context.session.collation().name())?;
        self.call("$collated", vec![text, collation])
    }

    /// `CONVERT(value USING name)`.
    /// `gives_way`: it is a literal, or made of numbers, and gives way to texts that are columns.
    fn using(&self, value: Scalar, name: &str, gives_way: bool) -> Bound<Scalar> {
        match known_character_set(name)? {
            BINARY => self.call("$cast_binary", vec![value]),
            name => {
                let mut arguments = vec![value, self.text(name)?];
                if gives_way {
                    arguments.push(self.integer(1));
                }
                self.call("$using", arguments)
            }
        }
    }

    /// The day on which a time is that is made a point in time.
    fn today(&self) -> Bound<Scalar> {
        match session_function(self.context.session, "curdate", None) {
            Some(today) => self.internal(&today),
            None => Ok(Scalar::literal(ScalarValue::Null)),
        }
    }

    /// CAST(value AS type).
    fn cast(&self, value: Scalar, data_type: &DataType) -> Bound<Scalar> {
        let digits = |digits: &Option<u64>| self.integer(digits.unwrap_or(0) as i64);
        let length = |length: &Option<CharacterLength>| match length {
            Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
            _ => None,
        };
        let with_length = |value: Scalar, length: Option<u64>| {
            let length = length.map(|length| self.integer(length as i64));
            std::iter::once(value).chain(length).collect::<Vec<_>>()
        };
        match data_type {
            DataType::Signed
            | DataType::SignedInteger
            | DataType::BigInt(_)
            | DataType::Int(_)
            | DataType::Integer(_) => self.call("$cast_signed", vec![value]),
            DataType::Unsigned
            | DataType::UnsignedInteger
            | DataType::BigIntUnsigned(_)
            | DataType::IntUnsigned(_)
            | DataType::IntegerUnsigned(_) => self.call("$cast_unsigned", vec![value]),
            DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => {
                let (precision, scale) = match info {
                    ExactNumberInfo::None => (10, 0),
                    ExactNumberInfo::Precision(precision) => (*precision as i64, 0),
                    ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                        (*precision as i64, *scale)
                    }
                };
                let arguments = vec![value, self.integer(precision), self.integer(scale)];
                self.call("$cast_decimal", arguments)
            }
            DataType::Double(_)
            | DataType::DoublePrecision
            | DataType::Real
            | DataType::Float64 => self.call("$cast_double", vec![value]),
            DataType::Float(_) => self.call("$cast_float", vec![value]),
            DataType::Char(characters)
            | DataType::Character(characters)
            | DataType::Varchar(characters)
            | DataType::Nvarchar(characters)
            | DataType::CharVarying(characters)
            | DataType::CharacterVarying(characters) => {
                self.cast_char(with_length(value, length(characters)))
            }
            DataType::Text => self.cast_char(vec![value]),
            DataType::Binary(bytes) => self.call("$cast_binary", with_length(value, *bytes)),
            DataType::Date => {
                let today = self.today()?;
                self.call("$to_date", vec![value, today])
            }
            DataType::Datetime(fraction) | DataType::Timestamp(fraction, _) => {
                let arguments = vec![value, digits(fraction), self.today()?];
                self.call("$to_datetime", arguments)
            }
            DataType::Time(fraction, _) => self.call("$cast_time", vec![value, digits(fraction)]),
            DataType::Custom(name, _) if object_text(name).eq_ignore_ascii_case("year") => {
                self.call("$cast_year", vec![value])
            }
            other => unsupported(format!("CAST AS {other}")),
        }
    }
}

/// `CHAR(65 USING name)` is read as CONVERT(CHAR(65) USING name).
fn is_char(expr: &Expr) -> bool {
    match expr {
        Expr::Function(call) => object_text(&call.name).eq_ignore_ascii_case("char"),
        _ => false,
    }
}

fn qualified(table: Option<&str>, column: &str) -> String {
    match table {
        Some(table) => format!("{table}.{column}"),
        None => column.to_string(),
    }
}

/// `ROW(a, b)` as `(a, b)`, and all else as it is.
pub(super) fn with_row(expr: &Expr) -> Cow<'_, Expr> {
    as_row(expr).map_or(Cow::Borrowed(expr), Cow::Owned)
}

/// How many values a row has, as it is written: 1 for what is none, and for a query with a `*`.
pub(super) fn width(expr: &Expr) -> usize {
    match expr {
        Expr::Tuple(items) => items.len(),
        Expr::Subquery(query) => listed_columns(&query.body).unwrap_or(1),
        _ => 1,
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

pub(super) fn comparison_of(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        BinaryOperator::Spaceship => Comparison::NullSafeEqual,
        _ => return None,
    })
}

/// The number that the digits spell, if it has no exponent and is no longer than an exact number may be.
fn exact_number(digits: &str) -> Option<ScalarValue> {
    if let Ok(number) = digits.parse::<i64>() {
        return is_exact(digits).then_some(ScalarValue::Int64(Some(number)));
    }
    if !is_exact(digits) {
        return None;
    }
    match digits.parse::<u64>() {
        Ok(number) => Some(ScalarValue::UInt64(Some(number))),
        Err(_) => decimal(digits),
    }
}

/// The value of a member of a packed list; `None` of a number that is not exact.
fn value_of_member(member: Member<'_>) -> Option<ScalarValue> {
    match member {
        Member::Number(digits) => exact_number(digits),
        Member::Text(text) => Some(ScalarValue::Utf8(Some(text.to_string()))),
        Member::Null => Some(ScalarValue::Null),
    }
}

/// The value of a constant that stands for itself: a number or a text.
fn plain_constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => exact_number(digits),
            Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => {
                Some(ScalarValue::Utf8(Some(text.clone())))
            }
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match expr.as_ref() {
            Expr::Value(ValueWithSpan {
                value: Literal::Number(digits, _),
                ..
            }) => exact_number(&format!("-{digits}")),
            _ => None,
        },
        _ => None,
    }
}

/// The DECIMAL that the digits spell, with as many digits as it needs.
fn decimal(digits: &str) -> Option<ScalarValue> {
    let (sign, unsigned) = match digits.strip_prefix('-') {
        Some(unsigned) => (-1, unsigned),
        None => (1, digits),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let value = whole.bytes().chain(fraction.bytes());
    let value = value.map(|digit| digit.is_ascii_digit().then(|| i128::from(digit - b'0')));
    let add = |value: i128, digit: Option<i128>| value.checked_mul(10)?.checked_add(digit?);
    let value = value.into_iter().try_fold(0, add)?;
    let scale = u8::try_from(fraction.len()).ok()?;
    let count = value.checked_ilog10().map_or(1, |log| log as u8 + 1);
    let precision = count.max(scale);
    let fits = precision <= MAX_DIGITS;
    fits.then(|| ScalarValue::Decimal128(Some(sign * value), precision, scale as i8))
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let (first, others) = digits.split_at(digits.len() % 2);
    let first = (!first.is_empty()).then_some(first);
    let pairs = first.into_iter().chain(others.chunks(2));
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    pairs.map(byte).collect()
}

/// Whether two expressions of the same text mean the same. A parameter that has no value yet has the type of NULL.
pub(super) fn is_repeatable(scalar: &Scalar) -> bool {
    let may_be_parameter = scalar.field().data_type() == &ArrowType::Null;
    scalar.as_column().is_some() || (!scalar.varies() && !may_be_parameter)
}
