//! Expressions: operators become calls, conditions and values are told apart.
//!
//! In comes an expression of the syntax tree. Out comes one in which every operator is a call of a function of Sheaf's,
//! so that DataFusion interprets none by itself. Each result is a `Lowered`: a condition is a truth value of
//! DataFusion's, a value is one of MySQL's, where truth is a number. The caller asks for one of the two, and the
//! conversion is a call, too:
//!
//! ```text
//!   SELECT a = b          $int($eq(a, b))          a condition as a value
//!   WHERE a               $truth(a)                a value as a condition
//! ```
//!
//! The types of operands are not known here: calls whose meaning depends on them are resolved later, by the typing
//! rule. Rows are compared value by value. An EXISTS that tests rows stays one, and becomes a join; elsewhere the rows
//! of its subquery are counted, if it is a plain SELECT.

use sheaf_access::cancel;
use sheaf_exec::functions::in_numbers::IN_NUMBERS;
use sheaf_types::error::codes;
use sheaf_types::temporal::{ZERO_DATETIME, read_datetime, read_time};
use sqlparser::ast::{
    BinaryOperator, CharacterLength, DataType, DateTimeField, ExactNumberInfo, Expr, FunctionArg,
    FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, Interval, LimitClause, ObjectName,
    Query, SelectItem, SetExpr, TrimWhereField, UnaryOperator, Value as Literal, ValueWithSpan,
};

use super::build::{binary, call, chain, literal, not, number, packed_numbers, text};
use super::character_set::{convert_using, introduced};
use super::select::Use;
use super::{Lowering, Unknown, scope};
use crate::error::{Result, SqlError};
use crate::parser::statement_bytes::latin1_text;

/// A lowered expression: a truth value of DataFusion's, or a value of MySQL's.
pub enum Lowered {
    Condition(Expr),
    Value(Expr),
}

impl Lowered {
    fn into_value(self) -> Expr {
        match self {
            Lowered::Value(value) => value,
            Lowered::Condition(condition) => call("$int", vec![condition]),
        }
    }

    fn into_condition(self) -> Expr {
        match self {
            Lowered::Condition(condition) => condition,
            Lowered::Value(value) => call("$truth", vec![value]),
        }
    }
}

/// The text of an identifier-like unit of time.
pub fn unit_name(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(ident) => ident.value.clone(),
        DateTimeField::Week(_) => "week".to_string(),
        other => other.to_string().to_ascii_lowercase(),
    }
}

pub fn unsupported(what: impl std::fmt::Display) -> SqlError {
    SqlError::not_supported_yet(what)
}

/// 1241: a row where one value is wanted.
pub fn operand_columns(columns: usize) -> SqlError {
    SqlError::new(
        codes::OPERAND_COLUMNS,
        format!("Operand should contain {columns} column(s)"),
    )
}

impl Lowering<'_> {
    /// The expression as a value; conditions are 0 and 1.
    pub fn value(&mut self, expr: Expr) -> Result<Expr> {
        Ok(self.expression(expr)?.into_value())
    }

    /// The expression as a condition; values are true unless zero.
    pub fn condition(&mut self, expr: Expr) -> Result<Expr> {
        Ok(self.expression(expr)?.into_condition())
    }

    pub fn values(&mut self, exprs: Vec<Expr>) -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| self.value(expr)).collect()
    }

    fn call_on_values(&mut self, name: &str, exprs: Vec<Expr>) -> Result<Lowered> {
        Ok(Lowered::Value(call(name, self.values(exprs)?)))
    }

    pub fn subquery(&mut self, query: Query) -> Result<Box<Query>> {
        Ok(self.counted_subquery(query)?.0)
    }

    /// A subquery and the number of aggregates in it.
    fn counted_subquery(&mut self, query: Query) -> Result<(Box<Query>, usize)> {
        let before = (
            self.aggregates_allowed,
            self.in_filter,
            self.aggregates_seen,
        );
        (
            self.aggregates_allowed,
            self.in_filter,
            self.aggregates_seen,
        ) = (true, false, 0);
        let lowered = self.query(query, Use::Subquery);
        self.subqueries_seen += 1;
        let aggregates = self.aggregates_seen;
        (
            self.aggregates_allowed,
            self.in_filter,
            self.aggregates_seen,
        ) = before;
        Ok((Box::new(lowered?.0), aggregates))
    }

    /// EXISTS. Where rows are tested by it, it becomes a join; elsewhere its rows are counted, if it is a plain SELECT.
    fn exists(&mut self, subquery: Query, negated: bool) -> Result<Expr> {
        let (mut subquery, aggregates) = self.counted_subquery(subquery)?;
        if limits_to_some(&subquery) {
            subquery.limit_clause = None;
        }
        let is_plain = |query: &Query| match query.body.as_ref() {
            SetExpr::Select(select) => {
                let grouped = match &select.group_by {
                    GroupByExpr::Expressions(exprs, _) => !exprs.is_empty(),
                    GroupByExpr::All(_) => true,
                };
                query.limit_clause.is_none()
                    && query.with.is_none()
                    && !grouped
                    && select.having.is_none()
            }
            _ => false,
        };
        if self.in_filter || aggregates > 0 || !is_plain(&subquery) {
            return Ok(Expr::Exists { subquery, negated });
        }
        subquery.order_by = None;
        if let SetExpr::Select(select) = subquery.body.as_mut() {
            select.distinct = None;
            select.projection = vec![SelectItem::UnnamedExpr(call("count", vec![number(1)]))];
        }
        Ok(call(
            if negated { "$eq" } else { "$ne" },
            vec![Expr::Subquery(subquery), number(0)],
        ))
    }

    pub fn expression(&mut self, expr: Expr) -> Result<Lowered> {
        self.nested(|this| this.expression_inner(expr))
    }

    fn expression_inner(&mut self, expr: Expr) -> Result<Lowered> {
        use Lowered::{Condition, Value};
        // Of this condition. It is handed on only where those inside of it may be taken for the same.
        let unknown = std::mem::take(&mut self.unknown);
        Ok(match with_rows(expr) {
            Expr::Nested(inner) => {
                self.unknown = unknown;
                self.expression(*inner)?
            }
            Expr::Identifier(ident) => {
                if let Some(variable) = self.variable(&[&ident.value])? {
                    return Ok(Value(variable));
                }
                if ident.quote_style.is_none()
                    && ident.value.eq_ignore_ascii_case("current_user")
                    && let Some(user) = self.session_function("current_user", None)
                {
                    return Ok(Value(user));
                }
                Value(self.column(ident)?)
            }
            Expr::CompoundIdentifier(mut parts) => {
                let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                if let Some(variable) = self.variable(&names)? {
                    return Ok(Value(variable));
                }
                // A database before the table says no more than the table's alias, if it is that of the table.
                if let [database, table, _] = names.as_slice() {
                    let mut scopes = self.scopes.iter().rev();
                    if !scopes.any(|scope| scope.has_table(database, table)) {
                        return Err(SqlError::bad_field(&names.join("."), self.clause));
                    }
                    parts.remove(0);
                }
                if let Some(column) = parts.pop() {
                    let table = parts.last().map(|table| table.value.clone());
                    parts.push(self.read_column(table.as_deref(), column)?);
                    if table.is_some_and(|table| scope::is_behind_column(&self.scopes, &table)) {
                        parts.insert(0, Ident::with_quote('`', scope::OUTER));
                    }
                }
                Value(Expr::CompoundIdentifier(parts))
            }
            Expr::Value(value) => self.literal(value)?,
            Expr::Prefixed { prefix, value } => {
                if let Some(latin1) = latin1_text(&prefix, &value) {
                    return Ok(Value(text(latin1)));
                }
                let literal = match value.as_ref() {
                    Expr::Value(value) => introduced(&prefix.value, &value.value)?,
                    _ => None,
                };
                match literal {
                    Some(literal) => Value(literal),
                    None => Value(convert_using(self.value(*value)?, &prefix.value[1..])?),
                }
            }
            Expr::TypedString(typed) => {
                check_typed_literal(&typed.value, &typed.data_type)?;
                if self.context.session.refuses_zero_dates() {
                    check_non_zero_literal(&typed.value, &typed.data_type)?;
                }
                let data_type = with_fraction_of(&typed.value, typed.data_type);
                let value = self.literal(typed.value)?.into_value();
                Value(self.cast(value, &data_type)?)
            }
            Expr::BinaryOp { left, op, right } => {
                self.binary_operator(*left, op, *right, unknown)?
            }
            Expr::UnaryOp { op, expr } => self.unary_operator(op, *expr, unknown)?,
            Expr::IsNull(inner) => Condition(Expr::IsNull(Box::new(self.value(*inner)?))),
            Expr::IsNotNull(inner) => Condition(Expr::IsNotNull(Box::new(self.value(*inner)?))),
            Expr::IsTrue(inner) => Condition(Expr::IsTrue(Box::new(self.condition(*inner)?))),
            Expr::IsNotTrue(inner) => Condition(Expr::IsNotTrue(Box::new(self.condition(*inner)?))),
            Expr::IsFalse(inner) => Condition(Expr::IsFalse(Box::new(self.condition(*inner)?))),
            Expr::IsNotFalse(inner) => {
                Condition(Expr::IsNotFalse(Box::new(self.condition(*inner)?)))
            }
            Expr::IsUnknown(inner) => Condition(Expr::IsUnknown(Box::new(self.condition(*inner)?))),
            Expr::IsNotUnknown(inner) => {
                Condition(Expr::IsNotUnknown(Box::new(self.condition(*inner)?)))
            }
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let args = self.values(vec![*expr, *low, *high])?;
                negate_if(negated, call("$between", args))
            }
            Expr::InList {
                expr,
                list,
                negated,
            } => negate_if(negated, self.in_list(*expr, list)?),
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let expr = match *expr {
                    Expr::Tuple(row) => {
                        return self.row_in_subquery(row, *subquery, negated, unknown);
                    }
                    value => Box::new(self.value(value)?),
                };
                Condition(Expr::InSubquery {
                    expr,
                    subquery: self.subquery(*subquery)?,
                    negated,
                })
            }
            Expr::Like {
                negated,
                expr,
                pattern,
                escape_char,
                any: false,
            } => {
                let escape = match escape_char.map(|escape| escape.value) {
                    Some(
                        Literal::SingleQuotedString(escape) | Literal::DoubleQuotedString(escape),
                    ) => escape,
                    _ => "\\".to_string(),
                };
                let args = vec![self.value(*expr)?, self.value(*pattern)?, text(escape)];
                negate_if(negated, call("$like", args))
            }
            Expr::RLike {
                negated,
                expr,
                pattern,
                ..
            } => {
                let args = vec![self.value(*expr)?, self.value(*pattern)?];
                negate_if(negated, call("regexp_like", args))
            }
            Expr::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => {
                let Expr::Subquery(query) = *right else {
                    return Err(unsupported("ANY of a list"));
                };
                let left = match *left {
                    Expr::Tuple(row) if compare_op == BinaryOperator::Eq => {
                        return self.row_in_subquery(row, *query, false, unknown);
                    }
                    value => Box::new(self.value(value)?),
                };
                let subquery = self.subquery(*query)?;
                Condition(if compare_op == BinaryOperator::Eq {
                    Expr::InSubquery {
                        expr: left,
                        subquery,
                        negated: false,
                    }
                } else {
                    let right = Box::new(Expr::Subquery(subquery));
                    Expr::AnyOp {
                        left,
                        compare_op,
                        right,
                        is_some: false,
                    }
                })
            }
            Expr::AllOp {
                left,
                compare_op,
                right,
            } => {
                let Expr::Subquery(query) = *right else {
                    return Err(unsupported("ALL of a list"));
                };
                let left = match *left {
                    Expr::Tuple(row) if compare_op == BinaryOperator::NotEq => {
                        return self.row_in_subquery(row, *query, true, unknown);
                    }
                    value => Box::new(self.value(value)?),
                };
                let subquery = self.subquery(*query)?;
                Condition(if compare_op == BinaryOperator::NotEq {
                    Expr::InSubquery {
                        expr: left,
                        subquery,
                        negated: true,
                    }
                } else {
                    Expr::AllOp {
                        left,
                        compare_op,
                        right: Box::new(Expr::Subquery(subquery)),
                    }
                })
            }
            Expr::Convert {
                expr,
                data_type,
                charset,
                ..
            } => {
                let value = self.value(*expr)?;
                Value(match (data_type, charset) {
                    (Some(data_type), _) => self.cast(value, &data_type)?,
                    (None, Some(charset)) => convert_using(value, &object_text(&charset))?,
                    _ => call("$cast_char", vec![value]),
                })
            }
            Expr::Cast {
                expr, data_type, ..
            } => {
                let value = self.value(*expr)?;
                Value(self.cast(value, &data_type)?)
            }
            Expr::Extract { field, expr, .. } => Value(call(
                "$extract",
                vec![text(unit_name(&field)), self.value(*expr)?],
            )),
            Expr::Ceil { expr, .. } => self.call_on_values("ceil", vec![*expr])?,
            Expr::Floor { expr, .. } => self.call_on_values("floor", vec![*expr])?,
            Expr::Position { expr, r#in } => self.call_on_values("locate", vec![*expr, *r#in])?,
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let from = substring_from.map_or_else(|| number(1), |from| *from);
                let mut args = vec![*expr, from];
                args.extend(substring_for.map(|length| *length));
                self.call_on_values("substring", args)?
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
                let removed = trim_what.map_or_else(|| text(" "), |what| *what);
                self.call_on_values("$trim", vec![*expr, removed, text(place)])?
            }
            Expr::Collate { expr, collation } => {
                let value = self.value(*expr)?;
                Value(call("$collate", vec![value, text(object_text(&collation))]))
            }
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                let operand = operand.map(|operand| self.value(*operand)).transpose()?;
                let mut args = Vec::with_capacity(2 * conditions.len() + 2);
                // What is compared with several values is there once.
                let (compared, operand) = match operand {
                    Some(operand) if conditions.len() > 1 && !is_plain(&operand) => {
                        args.push(operand);
                        (true, None)
                    }
                    operand => (false, operand),
                };
                for branch in conditions {
                    args.push(match &operand {
                        None if compared => self.value(branch.condition)?,
                        Some(operand) => call(
                            "$when",
                            vec![operand.clone(), self.value(branch.condition)?],
                        ),
                        None => self.condition(branch.condition)?,
                    });
                    args.push(self.value(branch.result)?);
                }
                if let Some(default) = else_result {
                    args.push(self.value(*default)?);
                }
                Value(call(if compared { "$simple_case" } else { "$case" }, args))
            }
            Expr::Exists { subquery, negated } => Condition(self.exists(*subquery, negated)?),
            Expr::Subquery(query) => Value(Expr::Subquery(self.subquery(*query)?)),
            Expr::Function(function) => self.function(function)?,
            Expr::Tuple(_) => return Err(operand_columns(1)),
            Expr::Interval(_) => return Err(SqlError::parse_error("INTERVAL", 1)),
            Expr::MatchAgainst { .. } => return Err(unsupported("MATCH ... AGAINST")),
            other => return Err(unsupported(other)),
        })
    }

    fn literal(&mut self, value: ValueWithSpan) -> Result<Lowered> {
        Ok(Lowered::Value(match value.value {
            Literal::Boolean(_) => return Ok(Lowered::Condition(Expr::Value(value))),
            Literal::Placeholder(_) => self.parameter(value.span.start),
            Literal::Number(digits, _) => number_literal(&digits)?,
            Literal::DoubleQuotedString(string)
            | Literal::SingleQuotedString(string)
            | Literal::NationalStringLiteral(string) => text(string),
            // Bits are bytes by now: these have other digits.
            Literal::SingleQuotedByteStringLiteral(bits)
            | Literal::DoubleQuotedByteStringLiteral(bits) => {
                return Err(SqlError::parse_error(&format!("b'{bits}'"), 1));
            }
            Literal::HexStringLiteral(_) => call("$hybrid", vec![literal(value.value)]),
            other => literal(other),
        }))
    }

    fn binary_operator(
        &mut self,
        left: Expr,
        op: BinaryOperator,
        right: Expr,
        unknown: Unknown,
    ) -> Result<Lowered> {
        if let (Expr::Tuple(left_items), Expr::Tuple(right_items)) = (&left, &right) {
            return self.row_comparison(left_items.clone(), op, right_items.clone());
        }
        match (left, right) {
            (Expr::Tuple(row), Expr::Subquery(query)) => {
                let columns = self.columns_of_subquery(*query, row.len())?;
                let row = self.values(row)?;
                compare_rows(row, op, columns)
            }
            (Expr::Subquery(query), Expr::Tuple(row)) => {
                let columns = self.columns_of_subquery(*query, row.len())?;
                let row = self.values(row)?;
                compare_rows(columns, op, row)
            }
            (left, right) => self.operator_of_values(left, op, right, unknown),
        }
    }

    fn operator_of_values(
        &mut self,
        left: Expr,
        op: BinaryOperator,
        right: Expr,
        unknown: Unknown,
    ) -> Result<Lowered> {
        use BinaryOperator as Op;
        match (&op, &left, &right) {
            (
                Op::Plus,
                Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr,
                },
                _,
            ) if matches!(expr.as_ref(), Expr::Interval(_)) => {
                let Expr::Interval(interval) = expr.as_ref().clone() else {
                    return Err(unsupported(op));
                };
                return Ok(Lowered::Value(self.add_interval(
                    "$date_subtract",
                    right,
                    interval,
                )?));
            }
            (Op::Plus, _, Expr::Interval(interval)) => {
                let interval = interval.clone();
                return Ok(Lowered::Value(self.add_interval(
                    "$date_add",
                    left,
                    interval,
                )?));
            }
            (Op::Plus, Expr::Interval(interval), _) => {
                let interval = interval.clone();
                return Ok(Lowered::Value(self.add_interval(
                    "$date_add",
                    right,
                    interval,
                )?));
            }
            (Op::Minus, _, Expr::Interval(interval)) => {
                let interval = interval.clone();
                return Ok(Lowered::Value(self.add_interval(
                    "$date_subtract",
                    left,
                    interval,
                )?));
            }
            _ => {}
        }
        let comparison = match op {
            Op::Eq => Some("$eq"),
            Op::NotEq => Some("$ne"),
            Op::Lt => Some("$lt"),
            Op::LtEq => Some("$le"),
            Op::Gt => Some("$gt"),
            Op::GtEq => Some("$ge"),
            Op::Spaceship => Some("$null_safe_eq"),
            _ => None,
        };
        if let Some(name) = comparison {
            return Ok(Lowered::Condition(call(
                name,
                vec![self.value(left)?, self.value(right)?],
            )));
        }
        let logic = match op {
            Op::And => Some((Op::And, unknown)),
            Op::Or => Some((Op::Or, unknown)),
            // True if exactly one side is.
            Op::Xor => Some((Op::NotEq, Unknown::Itself)),
            _ => None,
        };
        if let Some((op, unknown)) = logic {
            self.unknown = unknown;
            let left = self.condition(left)?;
            self.unknown = unknown;
            let right = self.condition(right)?;
            return Ok(Lowered::Condition(binary(left, op, right)));
        }
        let name = match op {
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
            other => return Err(unsupported(other)),
        };
        self.call_on_values(name, vec![left, right])
    }

    fn unary_operator(
        &mut self,
        op: UnaryOperator,
        expr: Expr,
        unknown: Unknown,
    ) -> Result<Lowered> {
        Ok(match (op, expr) {
            (
                UnaryOperator::Minus,
                Expr::Value(ValueWithSpan {
                    value: Literal::Number(digits, _),
                    ..
                }),
            ) => Lowered::Value(number_literal(&format!("-{digits}"))?),
            (UnaryOperator::Minus, expr) => self.call_on_values("$negate", vec![expr])?,
            (UnaryOperator::Plus, expr) => Lowered::Value(self.value(expr)?),
            (UnaryOperator::BitwiseNot, expr) => self.call_on_values("$bit_not", vec![expr])?,
            (UnaryOperator::Not | UnaryOperator::BangNot, expr) => {
                self.unknown = unknown.denied();
                Lowered::Condition(not(self.condition(expr)?))
            }
            (op, _) => return Err(unsupported(op)),
        })
    }

    /// `(a, b) = (c, d)` and its relatives, value by value.
    fn row_comparison(
        &mut self,
        left: Vec<Expr>,
        op: BinaryOperator,
        right: Vec<Expr>,
    ) -> Result<Lowered> {
        if left.len() != right.len() {
            return Err(operand_columns(left.len()));
        }
        let (left, right) = (self.values(left)?, self.values(right)?);
        compare_rows(left, op, right)
    }

    fn in_list(&mut self, expr: Expr, list: Vec<Expr>) -> Result<Expr> {
        if let Some(numbers) = packed_numbers(&list) {
            let numbers = numbers.clone();
            if let Expr::Tuple(items) = &expr {
                return Err(operand_columns(items.len()));
            }
            return Ok(call(IN_NUMBERS, vec![self.value(expr)?, numbers]));
        }
        if let Expr::Tuple(items) = expr {
            let mut equal = Vec::with_capacity(list.len());
            for row in list {
                cancel::check_statement()?;
                let Expr::Tuple(row) = row else {
                    return Err(operand_columns(items.len()));
                };
                if items.len() != row.len() {
                    return Err(operand_columns(items.len()));
                }
                let left = self.values(items.clone())?;
                let left = left.into_iter().map(in_row).collect();
                let row = compare_rows(left, BinaryOperator::Eq, self.values(row)?)?;
                equal.push(row.into_condition());
            }
            let any = chain(equal, &BinaryOperator::Or, binary);
            return any.ok_or_else(|| operand_columns(1));
        }
        let mut args = vec![self.value(expr)?];
        args.extend(self.values(list)?);
        Ok(call("$in", args))
    }

    /// `date + INTERVAL n unit`.
    pub fn add_interval(&mut self, name: &str, date: Expr, interval: Interval) -> Result<Expr> {
        let unit = interval
            .leading_field
            .as_ref()
            .map(unit_name)
            .unwrap_or_default();
        let args = vec![self.value(date)?, self.value(*interval.value)?, text(unit)];
        Ok(call(name, args))
    }

    /// CAST(value AS type).
    pub fn cast(&self, value: Expr, data_type: &DataType) -> Result<Expr> {
        let fsp = |digits: &Option<u64>| number(digits.unwrap_or(0));
        let exact = |info: &ExactNumberInfo| match info {
            ExactNumberInfo::None => (10, 0),
            ExactNumberInfo::Precision(precision) => (*precision as i64, 0),
            ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision as i64, *scale),
        };
        Ok(match data_type {
            DataType::Signed
            | DataType::SignedInteger
            | DataType::BigInt(_)
            | DataType::Int(_)
            | DataType::Integer(_) => call("$cast_signed", vec![value]),
            DataType::Unsigned
            | DataType::UnsignedInteger
            | DataType::BigIntUnsigned(_)
            | DataType::IntUnsigned(_)
            | DataType::IntegerUnsigned(_) => call("$cast_unsigned", vec![value]),
            DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => {
                let (precision, scale) = exact(info);
                call(
                    "$cast_decimal",
                    vec![value, number(precision), number(scale)],
                )
            }
            DataType::Double(_)
            | DataType::DoublePrecision
            | DataType::Real
            | DataType::Float64 => call("$cast_double", vec![value]),
            DataType::Float(_) => call("$cast_float", vec![value]),
            DataType::Char(length)
            | DataType::Character(length)
            | DataType::Varchar(length)
            | DataType::Nvarchar(length)
            | DataType::CharVarying(length)
            | DataType::CharacterVarying(length) => {
                let mut args = vec![value];
                if let Some(CharacterLength::IntegerLength { length, .. }) = length {
                    args.push(number(length));
                }
                call("$cast_char", args)
            }
            DataType::Text => call("$cast_char", vec![value]),
            DataType::Binary(length) => {
                let mut args = vec![value];
                args.extend(length.map(number));
                call("$cast_binary", args)
            }
            DataType::Date => call("$to_date", vec![value, self.today()]),
            DataType::Datetime(digits) | DataType::Timestamp(digits, _) => {
                call("$to_datetime", vec![value, fsp(digits), self.today()])
            }
            DataType::Time(digits, _) => call("$cast_time", vec![value, fsp(digits)]),
            DataType::Custom(name, _) if object_text(name).eq_ignore_ascii_case("year") => {
                call("$cast_year", vec![value])
            }
            other => return Err(unsupported(format!("CAST AS {other}"))),
        })
    }
}

/// Error 1525 for a DATE or TIMESTAMP of zero (`sql_mode` NO_ZERO_DATE).
pub fn check_non_zero_literal(literal: &ValueWithSpan, data_type: &DataType) -> Result<()> {
    let (Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)) = &literal.value
    else {
        return Ok(());
    };
    let name = match data_type {
        DataType::Date => "DATE",
        DataType::Datetime(_) | DataType::Timestamp(..) => "DATETIME",
        _ => return Ok(()),
    };
    let micros = read_datetime(text).and_then(|read| read.micros(6));
    match micros == Ok(ZERO_DATETIME) {
        true => Err(SqlError::new(
            codes::WRONG_VALUE,
            format!("Incorrect {name} value: '{text}'"),
        )),
        false => Ok(()),
    }
}

/// Error 1525 for a DATE, TIME or TIMESTAMP whose text is no such value: all of it, and no less.
pub fn check_typed_literal(literal: &ValueWithSpan, data_type: &DataType) -> Result<()> {
    let (Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)) = &literal.value
    else {
        return Ok(());
    };
    let (name, is_right) = match data_type {
        DataType::Date => (
            "DATE",
            read_datetime(text).is_ok_and(|read| !read.has_time && !read.trailing),
        ),
        DataType::Datetime(_) | DataType::Timestamp(..) => (
            "DATETIME",
            read_datetime(text).is_ok_and(|read| read.has_time && !read.trailing),
        ),
        DataType::Time(..) => (
            "TIME",
            read_time(text).is_ok_and(|read| !read.is_cut && !read.trailing && !read.has_date),
        ),
        _ => return Ok(()),
    };
    match is_right {
        true => Ok(()),
        false => Err(SqlError::new(
            codes::WRONG_VALUE,
            format!("Incorrect {name} value: '{text}'"),
        )),
    }
}

/// A part of a row in IN, and in a comparison by order. A YEAR is the number that it is there: 24 is not 2024.
fn in_row(value: Expr) -> Expr {
    call("$in_row", vec![value])
}

/// `(a, b) = (c, d)` and its relatives, of lowered values.
fn compare_rows(left: Vec<Expr>, op: BinaryOperator, right: Vec<Expr>) -> Result<Lowered> {
    let all = |name: &str, joined: BinaryOperator| {
        let pairs = left.iter().zip(&right);
        let comparisons = pairs.map(|(left, right)| call(name, vec![left.clone(), right.clone()]));
        comparisons
            .reduce(|all, next| binary(all, joined.clone(), next))
            .ok_or_else(|| operand_columns(1))
    };
    Ok(Lowered::Condition(match op {
        BinaryOperator::Eq => all("$eq", BinaryOperator::And)?,
        BinaryOperator::NotEq => all("$ne", BinaryOperator::Or)?,
        BinaryOperator::Spaceship => all("$null_safe_eq", BinaryOperator::And)?,
        BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq => {
            // a < c, or a = c and b < d: the last position decides about equality.
            let strict = if matches!(op, BinaryOperator::Lt | BinaryOperator::LtEq) {
                "$lt"
            } else {
                "$gt"
            };
            let last = match op {
                BinaryOperator::Lt => "$lt",
                BinaryOperator::LtEq => "$le",
                BinaryOperator::Gt => "$gt",
                _ => "$ge",
            };
            // All but the last are compared twice.
            let repeated = left.iter().zip(&right).rev().skip(1);
            let are_plain = repeated.flat_map(|(a, b)| [a, b]).all(is_plain);
            let left = left.into_iter().map(in_row);
            let mut pairs: Vec<(Expr, Expr)> = left.zip(right.into_iter().map(in_row)).collect();
            if !are_plain {
                let name = match op {
                    BinaryOperator::Lt => "$row_lt",
                    BinaryOperator::LtEq => "$row_le",
                    BinaryOperator::Gt => "$row_gt",
                    _ => "$row_ge",
                };
                let sides = pairs.into_iter().flat_map(|(a, b)| [a, b]);
                return Ok(Lowered::Condition(call(name, sides.collect())));
            }
            let Some((a, b)) = pairs.pop() else {
                return Err(operand_columns(1));
            };
            let mut result = call(last, vec![a, b]);
            for (a, b) in pairs.into_iter().rev() {
                let equal = call("$eq", vec![a.clone(), b.clone()]);
                let rest = binary(equal, BinaryOperator::And, result);
                result = binary(call(strict, vec![a, b]), BinaryOperator::Or, rest);
            }
            result
        }
        _ => return Err(operand_columns(1)),
    }))
}

/// Whether a lowered value is a name or a literal, which may be repeated.
fn is_plain(value: &Expr) -> bool {
    matches!(
        value,
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)
    )
}

/// The operands of a comparison, with `ROW(a, b)` as `(a, b)`.
fn with_rows(mut expr: Expr) -> Expr {
    match &mut expr {
        Expr::BinaryOp { left, right, .. } => {
            into_row(left);
            into_row(right);
        }
        Expr::InList { expr, list, .. } => {
            into_row(expr);
            list.iter_mut().for_each(into_row);
        }
        Expr::InSubquery { expr, .. }
        | Expr::AnyOp { left: expr, .. }
        | Expr::AllOp { left: expr, .. } => into_row(expr),
        _ => {}
    }
    expr
}

pub fn into_row(expr: &mut Expr) {
    let Expr::Function(function) = expr else {
        return;
    };
    let FunctionArguments::List(arguments) = &function.args else {
        return;
    };
    if !object_text(&function.name).eq_ignore_ascii_case("row") {
        return;
    }
    let values = arguments.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    });
    if let Some(values) = values.collect() {
        *expr = Expr::Tuple(values);
    }
}

/// `TIMESTAMP '2024-05-06 07:08:09.25'` and `TIME '07:08:09.25'` have as many fraction digits as are written, up to
/// six.
pub fn with_fraction_of(literal: &ValueWithSpan, data_type: DataType) -> DataType {
    let (Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)) = &literal.value
    else {
        return data_type;
    };
    let digits = match data_type {
        DataType::Time(..) => read_time(text).map(|read| read.fraction_digits),
        _ => read_datetime(text).map(|read| read.fraction_digits),
    };
    let digits = digits.unwrap_or(0).into();
    match data_type {
        DataType::Datetime(None) => DataType::Datetime(Some(digits)),
        DataType::Timestamp(None, zone) => DataType::Timestamp(Some(digits), zone),
        DataType::Time(None, zone) => DataType::Time(Some(digits), zone),
        other => other,
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

pub fn negate_if(negated: bool, condition: Expr) -> Lowered {
    Lowered::Condition(if negated { not(condition) } else { condition })
}

/// A name without quotes.
pub fn object_text(name: &ObjectName) -> String {
    let parts: Vec<&str> = name
        .0
        .iter()
        .filter_map(|part| part.as_ident())
        .map(|ident| ident.value.as_str())
        .collect();
    parts.join(".")
}

/// A number as MySQL types it: with an exponent a double, otherwise exact. Error 1367 for what no double holds.
pub fn number_literal(digits: &str) -> Result<Expr> {
    /// DECIMALs of more digits do not fit an `i128`.
    const MAX_EXACT_DIGITS: usize = 38;
    let count = digits.bytes().filter(u8::is_ascii_digit).count();
    if digits.contains(['e', 'E']) || count > MAX_EXACT_DIGITS {
        if digits.parse().is_ok_and(f64::is_infinite) {
            let size = digits.trim_start_matches('-');
            let message = format!("Illegal double '{size}' value found during parsing");
            return Err(SqlError::new(codes::ILLEGAL_VALUE_FOR_TYPE, message));
        }
        return Ok(call("$cast_double", vec![text(digits)]));
    }
    Ok(number(digits))
}
