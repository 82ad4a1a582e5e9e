//! The typing rule: from markers to typed, plain expressions.
//!
//! The binder hands over every operator whose MySQL meaning depends on types as a marker (`$eq(a, b)`, `$case(...)`).
//! This rule knows the types, and is a pure function of (expression, schema). It replaces each marker by the expression
//! that means the same to DataFusion, with conversions spelled out. So the passes after it (coercion, simplification,
//! join and range recognition) may take the plan literally.
//!
//! Its aim is `column op literal` with the literal in the column's own type, because key ranges are made of that. So `d
//! >= '1997-01-01'` becomes a comparison of dates, `l_discount BETWEEN 0.05 - 0.01 AND ...` one of DECIMAL(15,2), and
//! `name = 'x'` one of sort keys ([`compare`]).
//!
//! [`plan`] does the same for whole nodes: they group strings and make them distinct by sort key.

mod change_condition;
mod choose;
mod compare;
mod lists;
mod once;
mod plan;
mod reached;
mod subquery;

use std::ops::{Deref, Range};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, ExprSchema, Result, ScalarValue, internal_datafusion_err};
use datafusion_expr::expr::{AggregateFunction, Cast, ScalarFunction, WindowFunction};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, SortExpr, TypeSignature, WindowFrame, WindowFrameBound, WindowFrameUnits,
    binary_expr, lit,
};
use sheaf_types::Collation;
use sheaf_types::error::codes::{self, ErrorCode};
use sheaf_types::number::{bytes_to_unsigned, text_to_double};

use crate::functions::closed::closed_operator;
use crate::functions::collation::{collation_key, key_collation};
use crate::functions::control::common_field;
use crate::functions::date_format::{Reading, reading};
use crate::functions::in_values::IN_NUMBERS;
use crate::functions::stand_in::stand_in_number;
use crate::functions::truncated::{MomentKind, NumberKind, TruncatedTexts};
use crate::functions::types::{
    Coercibility, HYBRID_KEY, LITERALS_OF_BYTES, MAX_PRECISION, MOMENT_KEY, SqlType, field,
};
use crate::functions::{EvaluationError, as_function, call, mathematics};

pub use change_condition::{
    MAX_PARTS as MAX_WATCHED_PARTS, WatchedRows, indexed_columns_of,
    of_typed_parts as watched_condition,
};
pub use choose::as_column_of;
pub use compare::number_of_column;
pub use once::{nodes_of_call, stand_ins_in_bodies};
pub use plan::{distinct_by_key, group_by_key, group_key, refused_texts, schema_of_operands};
pub use subquery::{outer_columns_of, without_or_null};

/// Expressions nest deeply: where less of the stack is left, more is added.
const RED_ZONE_BYTES: usize = 256 << 10;
const STACK_BYTES: usize = 2 << 20;

/// Runs what walks down an expression, on more stack if there is little left.
pub(crate) fn deep<T>(walk: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE_BYTES, STACK_BYTES, walk)
}

/// The field of an expression: its type and metadata. Its name may be any, and it may say NULL where there is none.
///
/// DataFusion names each expression on the way and looks for branches that are never taken, which takes time that
/// grows with the square of an expression's size.
pub(crate) fn field_of(expr: &Expr, schema: &DFSchema) -> Result<FieldRef> {
    match expr {
        Expr::Column(column) => schema.field_from_column(column).map(Arc::clone),
        Expr::Literal(value, metadata) => {
            let field = Field::new("", value.data_type(), value.is_null());
            Ok(Arc::new(match metadata {
                Some(metadata) => metadata.add_to_field(field),
                None => field,
            }))
        }
        // Whatever its arguments are.
        Expr::ScalarFunction(call)
            if closed_operator(&call.func).is_some() || stand_in_number(expr).is_some() =>
        {
            call.func.return_field_from_args(ReturnFieldArgs {
                arg_fields: &[],
                scalar_arguments: &[],
            })
        }
        Expr::ScalarFunction(call) if takes_any(&call.func) => {
            let fields = || call.args.iter().map(|arg| field_of(arg, schema)).collect();
            let arg_fields: Vec<FieldRef> = deep(|| -> Result<_> { fields() })?;
            let literals = call.args.iter().map(|arg| match arg {
                Expr::Literal(value, _) => Some(value),
                _ => None,
            });
            call.func.return_field_from_args(ReturnFieldArgs {
                arg_fields: &arg_fields,
                scalar_arguments: &literals.collect::<Vec<_>>(),
            })
        }
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter().map(|(_, then)| then);
            for value in branches.chain(&case.else_expr) {
                let field = deep(|| field_of(value, schema))?;
                if !field.data_type().is_null() {
                    let data_type = field.data_type().clone();
                    return Ok(Arc::new(Field::new("", data_type, true)));
                }
            }
            Ok(Arc::new(Field::new("", DataType::Null, true)))
        }
        Expr::Alias(alias) if alias.metadata.is_none() => deep(|| field_of(&alias.expr, schema)),
        Expr::Cast(cast) if !cast.field.name().is_empty() => {
            let (to, metadata) = (cast.field.data_type(), cast.field.metadata());
            let field = Field::new("", to.clone(), true).with_metadata(metadata.clone());
            Ok(Arc::new(field))
        }
        expr if is_condition(expr) => Ok(Arc::new(Field::new("", DataType::Boolean, true))),
        expr => Ok(expr.to_field(schema)?.1),
    }
}

/// The field of an aggregate, as [`field_of`] tells that of a value.
pub fn field_of_aggregate(expr: &Expr, schema: &DFSchema) -> Result<FieldRef> {
    if let Expr::AggregateFunction(AggregateFunction { func, params }) = expr {
        let fields = params.args.iter().map(|arg| field_of(arg, schema));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        if let Ok(fields) = fields_with_udf(&fields, func.as_ref()) {
            return func.return_field(&fields);
        }
    }
    // What is wrong with its arguments is told there.
    Ok(expr.to_field(schema)?.1)
}

/// Whether a function takes arguments as they are.
fn takes_any(function: &ScalarUDF) -> bool {
    let takes_any = || matches!(function.signature().type_signature, TypeSignature::Any(_));
    as_function(function).is_some() || takes_any()
}

/// Whether a glance at an expression says that it is a truth value.
pub fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => is_condition_operator(binary.op),
        Expr::Literal(value, None) => matches!(value, ScalarValue::Boolean(_)),
        expr => matches!(
            expr,
            Expr::Not(_)
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
                | Expr::IsTrue(_)
                | Expr::IsFalse(_)
                | Expr::IsUnknown(_)
                | Expr::IsNotTrue(_)
                | Expr::IsNotFalse(_)
                | Expr::IsNotUnknown(_)
                | Expr::Between(_)
                | Expr::InList(_)
                | Expr::Like(_)
        ),
    }
}

/// Whether the operator gives a truth value, whatever its operands are.
fn is_condition_operator(op: Operator) -> bool {
    op.is_logic_operator() || op.supports_propagation()
}

/// The MySQL type of an expression.
pub fn type_of(expr: &Expr, schema: &DFSchema) -> Result<SqlType> {
    let field = field_of(expr, schema)?;
    Ok(SqlType::of(&field))
}

/// What is to be known of a statement's texts, and of its day.
pub struct Texts {
    /// Of literals. Tells the connection's collation, unless it is the default.
    literal_metadata: Option<FieldMetadata>,
    /// Takes down those that are cut to a number.
    truncated: TruncatedTexts,
    /// The day on which a TIME is a point in time, counted from 1970-01-01.
    today: i32,
    /// Some are values of parameters.
    are_parameters: bool,
    /// What is made of texts and numbers is no zero date (`sql_mode` NO_ZERO_DATE).
    refuses_zero_dates: bool,
}

impl Texts {
    /// Literals compare by `collation` (`collation_connection`) where no column is compared with.
    pub fn of(collation: Collation, truncated: TruncatedTexts) -> Texts {
        let field = field::collated_text(collation, Coercibility::Coercible);
        let is_told = !field.metadata().is_empty();
        Texts {
            literal_metadata: is_told.then(|| FieldMetadata::from(field.metadata())),
            truncated,
            today: 0,
            are_parameters: false,
            refuses_zero_dates: false,
        }
    }

    /// The zero date is NULL where a text or a number is to be a date.
    pub fn refusing_zero_dates(self, refuses_zero_dates: bool) -> Texts {
        Texts {
            refuses_zero_dates,
            ..self
        }
    }

    /// Constants of the statement may come from parameters.
    pub fn of_parameters(self, are_parameters: bool) -> Texts {
        Texts {
            are_parameters,
            ..self
        }
    }

    /// Divisions by zero in conditions are errors, as in a statement that changes rows.
    pub fn watch_conditions(&self) -> bool {
        self.truncated.watches_conditions()
    }

    /// How much has been noted while expressions were typed ([`TruncatedTexts::noted_so_far`]).
    pub fn noted_so_far(&self) -> (usize, u64) {
        self.truncated.noted_so_far()
    }

    /// An expression is typed again: what it has noted since is forgotten.
    pub fn forget_since(&self, noted: (usize, u64)) {
        self.truncated.forget_since(noted);
    }

    /// What is no number where one is wanted is an error.
    pub fn are_refused(&self) -> bool {
        self.truncated.is_refused()
    }

    /// The statement runs on this day, counted from 1970-01-01.
    pub fn on_day(self, today: i32) -> Texts {
        Texts { today, ..self }
    }

    /// A TIME as a point in time with so many fraction digits.
    fn of_today(&self, time: Expr, fsp: u8) -> Expr {
        let today = lit(ScalarValue::Date32(Some(self.today)));
        call("$on_day", vec![time, lit(i64::from(fsp)), today])
    }
}

/// What an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// An item of a select list.
    Shown,
    /// What rows are sorted by. Constants do not sort, so nobody computes them.
    Order,
    /// A part of a condition by which rows to be changed are found.
    ChangeCondition,
    /// Such a part that compares an indexed column with constants.
    Sought,
    Other,
    /// It is computed elsewhere, too, and what there is to note is noted there.
    Copy,
}

/// What nodes are given their meaning by: what is known of texts, and what the expression is for.
#[derive(Clone, Copy)]
pub(crate) struct Rule<'a> {
    texts: &'a Texts,
    purpose: Purpose,
}

impl Deref for Rule<'_> {
    type Target = Texts;

    fn deref(&self) -> &Texts {
        self.texts
    }
}

impl Rule<'_> {
    /// The rule for the same texts and another purpose.
    fn for_purpose(self, purpose: Purpose) -> Self {
        Rule { purpose, ..self }
    }

    /// Whether what is wrong with an operand is noted where a row comes to it: in what is shown or stored, and in a
    /// condition where it is an error. Which warnings a condition gives does not depend on the plan.
    fn watches(self) -> bool {
        match self.purpose {
            Purpose::Shown => true,
            Purpose::ChangeCondition => self.truncated.is_refused(),
            Purpose::Order | Purpose::Sought | Purpose::Other | Purpose::Copy => false,
        }
    }

    /// Whether anything is noted where a row comes to it.
    fn has_conditions(self) -> bool {
        self.purpose == Purpose::Shown || self.purpose == Purpose::ChangeCondition
    }

    /// Whether a division by zero is noted where a row comes to it.
    fn watches_divisors(self) -> bool {
        match self.purpose {
            Purpose::Shown => self.truncated.watches_divisions(),
            Purpose::ChangeCondition => self.truncated.watches_conditions(),
            Purpose::Order | Purpose::Sought | Purpose::Other | Purpose::Copy => false,
        }
    }

    /// Whether what is wrong with a constant is an error.
    fn refuses(self) -> bool {
        self.truncated.is_refused()
    }

    /// What is wrong with a constant: added to `found`, for [`Self::with_found`], where rows may not come to it, and
    /// otherwise noted here.
    fn note_constant(self, error: EvaluationError, found: &mut Vec<EvaluationError>) -> Result<()> {
        match self.purpose {
            _ if self.watches() => found.push(error),
            Purpose::Copy => {}
            _ => self.truncated.note_constant(error)?,
        }
        Ok(())
    }

    /// As [`Self::note_constant`], of a text that may be no such number.
    fn note_constant_text(
        self,
        kind: NumberKind,
        text: &str,
        found: &mut Vec<EvaluationError>,
    ) -> Result<()> {
        match kind.is_whole(text) {
            true => Ok(()),
            false => self.note_constant(kind.error(text), found),
        }
    }

    /// The value, which notes what was found of its constants where all of the conditions are true.
    fn with_found(self, value: Expr, found: Vec<EvaluationError>, conditions: &[Expr]) -> Expr {
        let with = |value, error| self.truncated.of_constant(value, error, conditions);
        found.into_iter().fold(value, with)
    }

    /// AND or OR, where both conditions are computed. Rules that simplify see no constant behind the first one.
    fn all_computed(self, left: Expr, op: Operator, right: Expr) -> Result<Expr> {
        Ok(match (is_of_rows(&right)?, op) {
            (true, op) => binary_expr(left, op, right),
            (false, Operator::And) => call("$both", vec![left, right]),
            (false, _) => call("$either", vec![left, right]),
        })
    }

    /// AND or OR of two conditions, of which rows may not come to the second one.
    fn connected(self, left: Expr, op: Operator, right: Expr) -> Result<Expr> {
        let connective = BinaryExpr::new(Box::new(left), op, Box::new(right));
        match self.has_conditions() {
            true => reached::in_connective(connective, self),
            false => Ok(Expr::BinaryExpr(connective)),
        }
    }
}

/// Whether an expression may differ from row to row; false if rules that simplify make a constant of it.
fn is_of_rows(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| Ok(matches!(expr, Expr::Column(_) | Expr::ScalarFunction(_))))
}

/// Gives one node its meaning, whose operands have theirs already. `sheaf-algebra` makes its expressions by it.
pub fn resolve_node(
    expr: Expr,
    schema: &DFSchema,
    texts: &Texts,
    purpose: Purpose,
) -> Result<Expr> {
    let rule = Rule { texts, purpose };
    match expr {
        // One string type everywhere.
        Expr::Literal(ScalarValue::Utf8(text), metadata) => Ok(Expr::Literal(
            ScalarValue::Utf8View(text),
            metadata.or_else(|| texts.literal_metadata.clone()),
        )),
        Expr::ScalarFunction(ScalarFunction { func, args }) => match as_function(&func) {
            Some(function) => {
                let args = match rule.has_conditions() {
                    true => reached::in_operands(function.name, args, schema, rule)?,
                    false => args,
                };
                resolve_call((func, function.name), args, schema, rule)
            }
            None => Ok(Expr::ScalarFunction(ScalarFunction { func, args })),
        },
        Expr::BinaryExpr(connective) if rule.has_conditions() => {
            reached::in_connective(connective, rule)
        }
        Expr::AggregateFunction(aggregate) => resolve_aggregate(aggregate, schema),
        Expr::WindowFunction(window) => resolve_window(*window, schema),
        other => Ok(other),
    }
}

fn resolve_call(
    (func, name): (Arc<ScalarUDF>, &'static str),
    args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    match name {
        "$eq" => binary(Operator::Eq, args, schema, rule),
        "$ne" => binary(Operator::NotEq, args, schema, rule),
        "$lt" => binary(Operator::Lt, args, schema, rule),
        "$le" => binary(Operator::LtEq, args, schema, rule),
        "$gt" => binary(Operator::Gt, args, schema, rule),
        "$ge" => binary(Operator::GtEq, args, schema, rule),
        "$null_safe_eq" => binary(Operator::IsNotDistinctFrom, args, schema, rule),
        "$when" => compare::case_value(args, schema, rule),
        "$may_be_equal" => compare::may_be_equal(args, schema, rule),
        "$between" => compare::between(args, schema, rule),
        "$in" => lists::in_list(args, schema, rule),
        IN_NUMBERS => lists::in_numbers(args, schema, rule),
        "$truth" => compare::truth(number_of_hybrid(first(args)), schema, rule),
        "$hybrid" => Ok(match first(args) {
            Expr::Literal(value, _) => typed_literal(value, &field::hybrid()),
            other => other,
        }),
        "$literal_bytes" => Ok(match first(args) {
            Expr::Literal(value, _) => typed_literal(value, &field::literal_bytes()),
            other => other,
        }),
        "$int" => Ok(fold(cast(first(args), DataType::Int64), schema)),
        "$to_date" => to_date(args, schema, rule),
        "$to_datetime" => to_datetime(args, schema, rule),
        "$case" => choose::case(args, schema, rule),
        "$simple_case" => choose::simple_case(args, (schema, rule)),
        "$row_lt" => compare::rows(Operator::Lt, args, schema, rule),
        "$row_le" => compare::rows(Operator::LtEq, args, schema, rule),
        "$row_gt" => compare::rows(Operator::Gt, args, schema, rule),
        "$row_ge" => compare::rows(Operator::GtEq, args, schema, rule),
        "$row_in" => lists::row_in(args, (schema, rule)),
        "coalesce" => choose::coalesce(args, schema, rule),
        "nullif" => choose::nullif(args, schema, rule),
        "greatest" | "least" => choose::extreme(name, args, schema, rule),
        "$in_row" => compare::number_of_year(first(args), schema),
        // Bytes that are no text are NULL.
        "$cast_char" if type_of(&args[0], schema)? == SqlType::Bytes => {
            let mut args = args;
            let bytes = std::mem::take(&mut args[0]);
            args[0] = fold(
                call("$using", vec![bytes, lit("utf8mb4"), lit(1i64)]),
                schema,
            );
            Ok(fold(call("$cast_char", args), schema))
        }
        "$result" => choose::as_shown(first(args), schema),
        "$first_part" => choose::first_part(first(args), schema),
        "$like" => {
            let args = compare::texts_beside(args, schema, rule)?;
            let like = Expr::ScalarFunction(ScalarFunction { func, args });
            Ok(fold(like, schema))
        }
        name => {
            let wanted = wanted_number(name);
            let takes_numbers = wanted.is_some()
                || CASTS_TO_NUMBERS.contains(&name)
                || mathematics::takes_numbers(name);
            let args: Vec<Expr> = match takes_numbers {
                true => args.into_iter().map(number_of_hybrid).collect(),
                false => args,
            };
            let args = match takes_numbers && !CASTS_TO_INTEGERS.contains(&name) {
                true => numbers_of_moments(args, schema)?,
                false => args,
            };
            let args = match wanted {
                // Conditions that stand in front of operands hold for what is watched in them now, too.
                Some(kind) if rule.watches() => {
                    let args = numbers_of(args, kind, schema, rule)?;
                    reached::in_operands(name, args, schema, rule)?
                }
                _ if rule.watches() => watched_numbers(name, args, schema, rule)?,
                _ => {
                    note_constants(name, &args, schema, rule)?;
                    args
                }
            };
            let args = times_of_today(name, args, schema, rule)?;
            let makes_dates = matches!(name, "date" | "timestamp")
                && refuses_zero_of(args.first(), schema, rule)?;
            let args = match name {
                _ if rule.watches() && makes_dates => {
                    let mut args = args;
                    // TIMESTAMP() adds a time to it.
                    let date = std::mem::take(&mut args[0]);
                    args[0] = moment_of(date, MomentKind::NonZeroDateTime, schema, rule)?;
                    args
                }
                _ if rule.watches() => moments_of(name, args, schema, rule)?,
                _ => args,
            };
            let args = match is_division(name) {
                true if rule.watches_divisors() => watched_divisor(args, rule)?,
                true if rule.purpose == Purpose::Shown || rule.purpose == Purpose::Copy => args,
                true if rule.purpose == Purpose::Order && args.iter().all(is_constant) => args,
                true => {
                    note_constant_divisor(&args, rule)?;
                    args
                }
                false => args,
            };
            let args = match mathematics::is_logarithm(name) && rule.watches_divisors() {
                true => watched_logarithm(args, rule)?,
                false => args,
            };
            let cast_number = match name {
                "$cast_decimal" if rule.watches() => reached::copy(&args[0])?,
                _ => None,
            };
            let watched = match name {
                "str_to_date" if rule.has_conditions() => {
                    // Nothing is noted twice, and what is noted about a nest does not multiply.
                    reached::copy(&args[0])?.zip(reached::copy(&args[1])?)
                }
                _ => None,
            };
            let moved = match (name, args.as_slice()) {
                // A query would not know the sum again where it stands in ORDER BY, say.
                ("$date_add" | "$date_subtract", [date, interval, _])
                    if rule.watches() && rule.truncated.is_refused() =>
                {
                    reached::copy(date)?.zip(reached::copy(interval)?)
                }
                _ => None,
            };
            let value = fold(Expr::ScalarFunction(ScalarFunction { func, args }), schema);
            let value = match moved {
                // What is computed once more must have no effects.
                Some((date, interval))
                    if may_overflow([&value, &date, &interval])
                        && !compare::has_calls(&date)
                        && !compare::has_calls(&interval) =>
                {
                    rule.truncated.moved_date(value, date, interval)
                }
                _ => value,
            };
            let value = match makes_dates {
                true => fold(call("$no_zero_date", vec![value]), schema),
                false => value,
            };
            let value = match cast_number {
                Some(number) => rule.truncated.fitted(value, number),
                None => value,
            };
            Ok(match watched {
                Some((text, format)) if !is_read_whole(&text, &format) => {
                    rule.truncated.parsed_date(value, text, format)
                }
                _ => value,
            })
        }
    }
}

/// Whether a date and an interval may have no sum, as far as that is known of constants.
fn may_overflow([sum, date, interval]: [&Expr; 3]) -> bool {
    let is_null = |operand| literal(operand).is_some_and(ScalarValue::is_null);
    literal(sum).is_none_or(ScalarValue::is_null) && !is_null(date) && !is_null(interval)
}

/// Whether STR_TO_DATE has nothing to say of its operands.
fn is_read_whole(text: &Expr, format: &Expr) -> bool {
    let of = |operand| literal(operand).map(|value| value.try_as_str().flatten());
    match (of(text), of(format)) {
        (Some(None), _) | (_, Some(None)) => literal(text).is_some_and(ScalarValue::is_null),
        (Some(Some(text)), Some(Some(format))) => reading(text, format) == Reading::Whole,
        _ => false,
    }
}

/// Casts that make a number of a hexadecimal literal, as operators do.
const CASTS_TO_NUMBERS: [&str; 4] = [
    "$cast_signed",
    "$cast_unsigned",
    "$cast_decimal",
    "$cast_double",
];

/// Casts that take a date's text for a text, whatever has made it.
const CASTS_TO_INTEGERS: [&str; 2] = ["$cast_signed", "$cast_unsigned"];

/// The number of its digits, where a text is the date or time that arithmetic has made; all else as it is.
///
/// ```text
///   ('2024-01-02' - INTERVAL 1 DAY) + 0    20240101
/// ```
fn number_of_moment(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let may_be = matches!(expr, Expr::Literal(_, Some(_)) | Expr::ScalarFunction(_));
    Ok(
        match may_be && field_of(&expr, schema)?.metadata().contains_key(MOMENT_KEY) {
            true => fold(call("$moment_number", vec![expr]), schema),
            false => expr,
        },
    )
}

fn numbers_of_moments(exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let number = |expr| number_of_moment(expr, schema);
    exprs.into_iter().map(number).collect()
}

/// Whether this is a hexadecimal literal.
fn is_hybrid(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Binary(Some(_)), Some(metadata)) => {
            metadata.inner().contains_key(HYBRID_KEY)
        }
        _ => false,
    }
}

/// Whether this is a literal of bytes, hexadecimal or with the introducer `_binary`.
fn is_literal_of_bytes(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Binary(Some(_)), Some(metadata)) => {
            let metadata = metadata.inner();
            LITERALS_OF_BYTES
                .iter()
                .any(|key| metadata.contains_key(*key))
        }
        _ => false,
    }
}

/// The number that a hexadecimal literal is where numbers are wanted, a BIGINT UNSIGNED; everything else as it is.
fn number_of_hybrid(expr: Expr) -> Expr {
    if is_hybrid(&expr)
        && let Some(ScalarValue::Binary(Some(bytes))) = literal(&expr)
    {
        return lit(bytes_to_unsigned(bytes));
    }
    expr
}

/// What an operator computes with.
fn wanted_number(operator: &str) -> Option<NumberKind> {
    match operator {
        "$add" | "$subtract" | "$multiply" | "$divide" | "mod" | "$negate" | "$cast_double" => {
            Some(NumberKind::Double)
        }
        "$integer_divide" => Some(NumberKind::Decimal),
        "$bit_and" | "$bit_or" | "$bit_xor" | "$shift_left" | "$shift_right" | "$bit_not"
        | "bit_count" | "$cast_signed" | "$cast_unsigned" => Some(NumberKind::Integer),
        _ => None,
    }
}

fn is_constant(expr: &Expr) -> bool {
    literal(expr).is_some()
}

fn is_division(operator: &str) -> bool {
    matches!(operator, "$divide" | "$integer_divide" | "mod")
}

/// Operands that are to be numbers, of functions that take texts and others beside them: from which one on, and how
/// many.
const NUMBERS: [(&str, NumberKind, Range<usize>); 34] = [
    ("$cast_decimal", NumberKind::Decimal, 0..1),
    ("char", NumberKind::Integer, 0..usize::MAX),
    ("conv", NumberKind::Integer, 1..3),
    ("elt", NumberKind::Integer, 0..1),
    ("export_set", NumberKind::Integer, 0..1),
    ("export_set", NumberKind::Integer, 4..5),
    ("format", NumberKind::Double, 0..1),
    ("format", NumberKind::Integer, 1..2),
    ("from_days", NumberKind::Integer, 0..1),
    ("from_unixtime", NumberKind::Decimal, 0..1),
    ("$from_unixtime", NumberKind::Decimal, 0..1),
    ("insert", NumberKind::Integer, 1..3),
    ("interval", NumberKind::Double, 0..usize::MAX),
    ("left", NumberKind::Integer, 1..2),
    ("locate", NumberKind::Integer, 2..3),
    ("lpad", NumberKind::Integer, 1..2),
    ("make_set", NumberKind::Integer, 0..1),
    ("makedate", NumberKind::Integer, 0..2),
    ("maketime", NumberKind::Integer, 0..2),
    ("maketime", NumberKind::Decimal, 2..3),
    ("period_add", NumberKind::Integer, 0..2),
    ("period_diff", NumberKind::Integer, 0..2),
    ("repeat", NumberKind::Integer, 1..2),
    ("right", NumberKind::Integer, 1..2),
    ("rpad", NumberKind::Integer, 1..2),
    ("sec_to_time", NumberKind::Decimal, 0..1),
    ("space", NumberKind::Integer, 0..1),
    ("substring", NumberKind::Integer, 1..3),
    ("substring_index", NumberKind::Integer, 2..3),
    ("timestampadd", NumberKind::Integer, 1..2),
    ("week", NumberKind::Integer, 1..2),
    ("yearweek", NumberKind::Integer, 1..2),
    ("$date_add", NumberKind::Integer, 1..2),
    ("$date_subtract", NumberKind::Integer, 1..2),
];

/// Units of an interval that are counted by a whole number.
const WHOLE_UNITS: [&str; 7] = ["year", "quarter", "month", "week", "day", "hour", "minute"];

/// What numbers a function makes of texts, and of which of its operands.
fn numbers_among(
    function: &str,
    operands: &[Expr],
    schema: &DFSchema,
) -> Result<Vec<(NumberKind, Range<usize>)>> {
    let is_interval = matches!(function, "$date_add" | "$date_subtract");
    if is_interval && !is_unit(operands, 2, &WHOLE_UNITS) {
        return Ok(Vec::new());
    }
    // FIELD compares as numbers unless all are texts.
    if function == "field" {
        for operand in operands {
            if !type_of(operand, schema)?.is_string() {
                return Ok(vec![(NumberKind::Double, 0..operands.len())]);
            }
        }
        return Ok(Vec::new());
    }
    // The text beside the number of `$finite` is what was computed.
    if mathematics::takes_numbers(function) && !function.starts_with('$') {
        return Ok(vec![(NumberKind::Double, 0..operands.len())]);
    }
    let known = NUMBERS.iter().filter(|(name, ..)| *name == function);
    Ok(known
        .map(|(_, kind, range)| (*kind, range.clone()))
        .collect())
}

/// The operands of a function, where a text that is to be a number and may be none is watched.
fn watched_numbers(
    function: &str,
    mut operands: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    for (kind, range) in numbers_among(function, &operands, schema)? {
        let operands = operands.iter_mut().take(range.end).skip(range.start);
        for operand in operands {
            if may_be_no_number(operand, kind, schema)? {
                let text = std::mem::take(operand);
                *operand = rule.truncated.number_text(kind, text);
            }
        }
    }
    Ok(operands)
}

/// Notes constant texts that are no numbers, where numbers are wanted. Conditions note no texts of rows: which rows a
/// part of one is asked for depends on the plan.
fn note_constants(
    function: &str,
    operands: &[Expr],
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<()> {
    let (kind, operands) = match function {
        "$cast_decimal" => (NumberKind::Decimal, &operands[..1]),
        name => match wanted_number(name) {
            Some(kind) => (kind, operands),
            None if mathematics::takes_numbers(name) && !name.starts_with('$') => {
                (NumberKind::Double, operands)
            }
            None => return Ok(()),
        },
    };
    for operand in operands {
        if let Some(text) = literal(operand).and_then(|value| value.try_as_str().flatten())
            && matches!(type_of(operand, schema)?, SqlType::Text { .. })
        {
            rule.note_constant_text(kind, text, &mut Vec::new())?;
        }
    }
    Ok(())
}

/// Notes a constant divisor that is zero, where the session wants to hear of it.
fn note_constant_divisor(operands: &[Expr], rule: Rule<'_>) -> Result<()> {
    match operands {
        [dividend, divisor]
            if rule.truncated.watches_constant_divisors()
                && literal(divisor).is_some_and(is_zero)
                && !literal(dividend).is_some_and(ScalarValue::is_null) =>
        {
            let is_sought = rule.purpose == Purpose::Sought;
            rule.truncated.note_constant_division(is_sought)
        }
        _ => Ok(()),
    }
}

/// Texts are the number that they begin with.
fn is_zero(value: &ScalarValue) -> bool {
    if let Some(text) = value.try_as_str() {
        return text.is_some_and(|text| text_to_double(text) == 0.0);
    }
    let number = value.cast_to(&DataType::Float64);
    matches!(number, Ok(ScalarValue::Float64(Some(0.0))))
}

/// The operands of a division. Where the session wants to hear of zeros, the divisor is looked at, unless it is a
/// number other than zero.
fn watched_divisor(mut operands: Vec<Expr>, rule: Rule<'_>) -> Result<Vec<Expr>> {
    if let [dividend, divisor] = operands.as_mut_slice()
        && literal(divisor).is_none_or(is_zero)
    {
        let operand = std::mem::replace(divisor, lit(ScalarValue::Null));
        *divisor = reached::divisor(&rule.truncated, operand, dividend)?;
    }
    Ok(operands)
}

/// The operands of a logarithm, the base in front. They are looked at, unless they are positive numbers.
fn watched_logarithm(mut operands: Vec<Expr>, rule: Rule<'_>) -> Result<Vec<Expr>> {
    let has_logarithm = |operand: &Expr| {
        let number = literal(operand).map(|value| value.cast_to(&DataType::Float64));
        matches!(number, Some(Ok(ScalarValue::Float64(Some(number)))) if number > 0.0 && number != 1.0)
    };
    let base = match operands.as_slice() {
        [base, _] if !has_logarithm(base) => reached::copy(base)?,
        _ => None,
    };
    let last = operands.len() - 1;
    for (at, operand) in operands.iter_mut().enumerate() {
        let base = base.clone().filter(|_| at == last && last > 0);
        if base.is_some() || !has_logarithm(operand) {
            let taken = std::mem::replace(operand, lit(ScalarValue::Null));
            *operand = rule.truncated.logarithm(taken, base);
        }
    }
    Ok(operands)
}

/// Operands as numbers: a text that may not be one is converted by a function that reports it.
fn numbers_of(
    operands: Vec<Expr>,
    kind: NumberKind,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    let number_of = |operand: Expr| -> Result<Expr> {
        Ok(match may_be_no_number(&operand, kind, schema)? {
            true => rule.truncated.number_of(kind, operand),
            false => operand,
        })
    };
    operands.into_iter().map(number_of).collect()
}

/// Whether an operand is a text, or bytes, and not known to be such a number. A hexadecimal literal is a number.
fn may_be_no_number(operand: &Expr, kind: NumberKind, schema: &DFSchema) -> Result<bool> {
    let ty = type_of(operand, schema)?;
    if is_hybrid(operand) || !matches!(ty, SqlType::Text { .. } | SqlType::Bytes) {
        return Ok(false);
    }
    Ok(match literal(operand) {
        Some(value) => compare::text_of(value, &ty).is_some_and(|text| !kind.is_whole(&text)),
        None => true,
    })
}

/// Functions of a date, their first argument. A TIME is one of today.
const OF_A_DATE: [&str; 21] = [
    "convert_tz",
    "date",
    "date_format",
    "datediff",
    "day",
    "dayname",
    "dayofweek",
    "dayofyear",
    "last_day",
    "month",
    "monthname",
    "quarter",
    "timestamp",
    "to_days",
    "to_seconds",
    "week",
    "weekday",
    "weekofyear",
    "year",
    "yearweek",
    "$unix_timestamp",
];

/// Units of EXTRACT that are no part of a TIME itself.
const UNITS_OF_A_DATE: [&str; 6] = ["year", "quarter", "month", "week", "day", "year_month"];

/// Units of time that no TIME is moved by.
const UNITS_OF_THE_CALENDAR: [&str; 5] = ["year", "quarter", "month", "week", "year_month"];

/// Functions of a time, their first argument.
const OF_A_TIME: [&str; 8] = [
    "hour",
    "microsecond",
    "minute",
    "second",
    "time",
    "time_format",
    "time_to_sec",
    "$cast_time",
];

/// Units of EXTRACT that are parts of a TIME.
const UNITS_OF_A_TIME: [&str; 4] = ["hour", "minute", "second", "microsecond"];

fn is_unit(args: &[Expr], argument: usize, units: &[&str]) -> bool {
    let unit = args.get(argument).and_then(literal);
    let unit = unit.and_then(|unit| unit.try_as_str().flatten());
    unit.is_some_and(|unit| units.iter().any(|of| unit.eq_ignore_ascii_case(of)))
}

/// The arguments of a function that are dates to it.
fn dates_among(function: &str, args: &[Expr]) -> Option<Range<usize>> {
    match function {
        "datediff" => Some(0..2),
        "timestampdiff" => Some(1..3),
        "$extract" if is_unit(args, 0, &UNITS_OF_A_DATE) => Some(1..2),
        function if OF_A_DATE.contains(&function) => Some(0..1),
        _ => None,
    }
}

/// Whether a function takes a date apart, of which the month and the day may be zero.
fn takes_a_part(function: &str, args: &[Expr]) -> bool {
    const UNITS: [&str; 5] = ["year", "quarter", "month", "day", "year_month"];
    match function {
        "year" | "quarter" | "month" | "day" | "date_format" => true,
        "$extract" => is_unit(args, 0, &UNITS),
        _ => false,
    }
}

/// Arguments of a function, where texts are watched that are to be dates or times.
fn moments_of(
    function: &str,
    mut args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    let (moments, kind) = match (function, dates_among(function, &args)) {
        (_, Some(dates)) if takes_a_part(function, &args) => (dates, MomentKind::PartialDateTime),
        (_, Some(dates)) => (dates, MomentKind::DateTime),
        ("$date_add" | "$date_subtract", None) => (0..1, MomentKind::DateTime),
        ("$extract", None) if is_unit(&args, 0, &UNITS_OF_A_TIME) => (1..2, MomentKind::TimeOrDate),
        (function, None) if OF_A_TIME.contains(&function) => (0..1, MomentKind::Time),
        _ => return Ok(args),
    };
    for argument in args.get_mut(moments).into_iter().flatten() {
        *argument = moment_of_any(std::mem::take(argument), kind, schema, rule)?;
    }
    Ok(args)
}

/// A text is watched, unless it is a constant that is a date or a time.
fn moment_of(operand: Expr, kind: MomentKind, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    if !matches!(type_of(&operand, schema)?, SqlType::Text { .. }) {
        return Ok(operand);
    }
    let is_one = literal(&operand).is_some_and(|value| {
        let text = value.try_as_str().flatten();
        text.is_none_or(|text| kind.is_one(text))
    });
    Ok(match is_one {
        true => operand,
        false => rule.truncated.moment(kind, operand),
    })
}

/// As [`moment_of`], also of bytes, labels, and the digits of numbers.
fn moment_of_any(
    operand: Expr,
    kind: MomentKind,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    Ok(match type_of(&operand, schema)? {
        SqlType::Text { .. } => moment_of(operand, kind, schema, rule)?,
        SqlType::Bytes
        | SqlType::Enum { .. }
        | SqlType::Integer { .. }
        | SqlType::Decimal { .. }
        | SqlType::Float
        | SqlType::Double
            if !literal(&operand).is_some_and(ScalarValue::is_null) =>
        {
            rule.truncated.moment(kind, operand)
        }
        _ => operand,
    })
}

/// Arguments of a function, where times that it wants dates of are points in time.
fn times_of_today(
    function: &str,
    mut args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    let dates = match (function, dates_among(function, &args)) {
        (_, Some(dates)) => dates,
        ("$cast_year", None) => 0..1,
        ("$date_add" | "$date_subtract", None) if is_unit(&args, 2, &UNITS_OF_THE_CALENDAR) => 0..1,
        _ => return Ok(args),
    };
    for argument in args.get_mut(dates).into_iter().flatten() {
        if let SqlType::Time { fsp } = type_of(argument, schema)? {
            let time = std::mem::take(argument);
            *argument = fold(rule.of_today(time, fsp), schema);
        }
    }
    Ok(args)
}

fn first(args: Vec<Expr>) -> Expr {
    args.into_iter()
        .next()
        .unwrap_or_else(|| lit(ScalarValue::Null))
}

fn binary(op: Operator, args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let mut args = args.into_iter();
    match (args.next(), args.next()) {
        (Some(left), Some(right)) => compare::comparison(op, left, right, schema, rule),
        _ => datafusion_common::internal_err!("a comparison has two operands"),
    }
}

/// Whether a zero date that is made of this value is NULL. One that a column of dates holds stays what it is.
fn refuses_zero_of(value: Option<&Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<bool> {
    Ok(match value {
        Some(value) if rule.refuses_zero_dates => !type_of(value, schema)?.is_temporal(),
        _ => false,
    })
}

/// A value that is to be a date, watched where it is shown, and whether the zero date is NULL then.
fn made_date(value: Expr, schema: &DFSchema, rule: Rule<'_>) -> Result<(Expr, bool)> {
    let refuses_zero = refuses_zero_of(Some(&value), schema, rule)?;
    let kind = match refuses_zero {
        true => MomentKind::NonZeroDateTime,
        false => MomentKind::DateTime,
    };
    let value = match rule.watches() {
        true => moment_of_any(value, kind, schema, rule)?,
        false => value,
    };
    Ok((value, refuses_zero))
}

fn without_zero(date: Expr, refuses_zero: bool, schema: &DFSchema) -> Expr {
    let date = fold(date, schema);
    match refuses_zero {
        true => fold(call("$no_zero_date", vec![date]), schema),
        false => date,
    }
}

/// CAST AS DATETIME: a time is one of today.
fn to_datetime(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let [value, fsp, today] = operands(args)?;
    let (value, refuses_zero) = made_date(value, schema, rule)?;
    let moment = match type_of(&value, schema)? {
        SqlType::Time { .. } => call("$on_day", vec![value, fsp, today]),
        _ => call("$cast_datetime", vec![value, fsp]),
    };
    Ok(without_zero(moment, refuses_zero, schema))
}

/// CAST AS DATE.
fn to_date(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let [value, today] = operands(args)?;
    let (value, refuses_zero) = match type_of(&value, schema)? {
        SqlType::Time { .. } => (
            to_datetime(vec![value, lit(6i64), today], schema, rule)?,
            false,
        ),
        _ => made_date(value, schema, rule)?,
    };
    Ok(without_zero(
        call("$cast_date", vec![value]),
        refuses_zero,
        schema,
    ))
}

fn operands<const N: usize>(args: Vec<Expr>) -> Result<[Expr; N]> {
    <[Expr; N]>::try_from(args)
        .map_err(|args| internal_datafusion_err!("{} operands instead of {N}", args.len()))
}

/// A plain cast between Arrow types for which arrow's conversion is MySQL's: a widening.
///
/// Of more than a few nodes it is a function: DataFusion asks what is cast whether it may be NULL once for itself and
/// once for its field, so in a nest of casts it asks the innermost 2^n times.
///
/// The field has a name, so that it is taken as it is. Of a cast to a mere type DataFusion hands on the metadata of
/// what is cast, so a BIGINT would be announced as the SMALLINT that it once was.
pub(crate) fn cast(expr: Expr, to: DataType) -> Expr {
    if !once::is_small(&expr)
        && let Ok(null) = ScalarValue::try_from(&to)
    {
        return call("$widen", vec![expr, lit(null)]);
    }
    let field = Arc::new(Field::new("cast", to, true));
    Expr::Cast(Cast::new_from_field(Box::new(expr), field))
}

/// The sort key of a string; other values as they are, DECIMALs as they are shown.
pub fn key_of(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let ty = type_of(&expr, schema)?;
    Ok(match (key_collation(&ty), ty) {
        (Some(collation), _) => collation_key(expr, collation),
        (None, SqlType::Decimal { .. }) => choose::as_shown(expr, schema)?,
        // An ENUM is ordered by the number of its label.
        (None, SqlType::Enum { .. }) => call("$enum_number", vec![expr]),
        _ => expr,
    })
}

fn keys_of(exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    exprs.into_iter().map(|expr| key_of(expr, schema)).collect()
}

fn sort_keys_of(exprs: Vec<SortExpr>, schema: &DFSchema) -> Result<Vec<SortExpr>> {
    exprs
        .into_iter()
        .map(|sort| {
            Ok(SortExpr {
                expr: key_of(sort.expr, schema)?,
                ..sort
            })
        })
        .collect()
}

/// Arguments of an aggregate as it wants them: strings by key where they are counted apart, numbers where they add up.
fn aggregate_arguments(
    name: &str,
    distinct: bool,
    args: Vec<Expr>,
    schema: &DFSchema,
) -> Result<Vec<Expr>> {
    // Points in time add up as the numbers that their digits are.
    let summand = |expr: Expr| -> Result<Expr> {
        let expr = number_of_moment(number_of_hybrid(expr), schema)?;
        Ok(match type_of(&expr, schema)? {
            ty if ty.is_exact_number() || ty == SqlType::Double => expr,
            SqlType::Date | SqlType::Time { .. } | SqlType::DateTime { .. } => {
                fold(call("$add", vec![expr, lit(0i64)]), schema)
            }
            _ => fold(call("$cast_double", vec![expr]), schema),
        })
    };
    match name {
        "count" if distinct => keys_of(args, schema),
        "$sum" => args.into_iter().map(summand).collect(),
        // The value of another row, or the default: of the type that both are.
        "lag" | "lead" if args.len() == 3 => {
            let mut args = args;
            let fields = [field_of(&args[0], schema)?, field_of(&args[2], schema)?];
            let to = common_field(&fields)?;
            for at in [0, 2] {
                let value = std::mem::take(&mut args[at]);
                args[at] = choose::convert_to_field(value, &to, schema, None)?;
            }
            Ok(args)
        }
        // Byte strings stay what they are.
        "$group_concat" => {
            let mut args = args;
            let joined = args.remove(0);
            let joined = match type_of(&joined, schema)? {
                SqlType::Bytes | SqlType::Text { .. } => joined,
                _ => fold(call("$cast_char", vec![joined]), schema),
            };
            args.insert(0, joined);
            Ok(args)
        }
        _ => Ok(args),
    }
}

fn resolve_aggregate(mut aggregate: AggregateFunction, schema: &DFSchema) -> Result<Expr> {
    let params = &mut aggregate.params;
    params.args = aggregate_arguments(
        aggregate.func.name(),
        params.distinct,
        std::mem::take(&mut params.args),
        schema,
    )?;
    params.order_by = sort_keys_of(std::mem::take(&mut params.order_by), schema)?;
    Ok(Expr::AggregateFunction(aggregate))
}

/// An order that a RANGE frame can run over: DataFusion knows no ranges of bytes, nor of spans of time. Offsets become
/// values of the order's type, and so do sums of both, so it is as wide as they need.
fn range_key(expr: Expr, frame: &WindowFrame, schema: &DFSchema) -> Result<Expr> {
    let offsets = [&frame.start_bound, &frame.end_bound].map(|bound| match bound {
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => {
            offset.try_as_str().flatten()
        }
        WindowFrameBound::CurrentRow => None,
    });
    let offsets: Vec<&str> = offsets.into_iter().flatten().collect();
    check_range_offsets(field_of(&expr, schema)?.data_type(), &offsets)?;
    let digits_of = |offset: &&str| offset.split_once('.').map_or(0, |(_, digits)| digits.len());
    let digits = offsets.iter().map(digits_of).max().unwrap_or(0);
    let digits = i8::try_from(digits).unwrap_or(i8::MAX);
    let fits = |ty: &DataType| {
        let is_of = |offset: &&str| ScalarValue::from(*offset).cast_to(ty).is_ok();
        offsets.iter().all(is_of)
    };
    Ok(match field_of(&expr, schema)?.data_type() {
        // The hexadecimal digits order as the bytes do.
        DataType::Binary => call("hex", vec![expr]),
        DataType::Duration(_) => cast(expr, DataType::Int64),
        DataType::Decimal128(_, scale) if !offsets.is_empty() => {
            let scale = digits.max(*scale);
            cast(expr, DataType::Decimal128(MAX_PRECISION, scale))
        }
        ty if ty.is_integer() && !fits(ty) && digits == 0 => cast(expr, DataType::Int64),
        ty if ty.is_integer() && !fits(ty) => {
            cast(expr, DataType::Decimal128(MAX_PRECISION, digits))
        }
        _ => expr,
    })
}

/// Offsets of times are intervals, offsets of numbers are numbers, and texts have none. Errors 3587, 3588 and 3589.
fn check_range_offsets(ty: &DataType, offsets: &[&str]) -> Result<()> {
    if offsets.is_empty() {
        return Ok(());
    }
    // `1 MONTH`
    let is_interval = |offset: &&str| offset.contains(' ');
    let (has_intervals, has_numbers) = (
        offsets.iter().any(is_interval),
        !offsets.iter().all(is_interval),
    );
    let is_time = matches!(
        ty,
        DataType::Date32 | DataType::Timestamp(..) | DataType::Duration(_)
    );
    let wrong = |code: ErrorCode, what: &str| {
        let text = format!("Window '<unnamed window>' with RANGE {what}");
        Err(EvaluationError::new(code, text).into())
    };
    match ty {
        _ if is_time && has_numbers => wrong(
            codes::WINDOW_RANGE_FRAME_TEMPORAL_TYPE,
            "frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.",
        ),
        DataType::Duration(_) => Err(EvaluationError::new(
            codes::NOT_SUPPORTED_YET,
            "This version of Sheaf doesn't yet support 'a frame of RANGE INTERVAL over TIME'",
        )
        .into()),
        _ if is_time => Ok(()),
        ty if !ty.is_numeric() => wrong(
            codes::WINDOW_RANGE_FRAME_ORDER_TYPE,
            "N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type",
        ),
        _ if has_intervals => wrong(
            codes::WINDOW_RANGE_FRAME_NUMERIC_TYPE,
            "frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.",
        ),
        _ => Ok(()),
    }
}

fn resolve_window(mut window: WindowFunction, schema: &DFSchema) -> Result<Expr> {
    let name = window.fun.name().to_string();
    let params = &mut window.params;
    params.args = aggregate_arguments(
        &name,
        params.distinct,
        std::mem::take(&mut params.args),
        schema,
    )?;
    params.partition_by = keys_of(std::mem::take(&mut params.partition_by), schema)?;
    params.order_by = sort_keys_of(std::mem::take(&mut params.order_by), schema)?;
    if params.window_frame.units == WindowFrameUnits::Range {
        for sort in &mut params.order_by {
            let key = std::mem::take(&mut sort.expr);
            sort.expr = range_key(key, &params.window_frame, schema)?;
        }
    }
    Ok(Expr::WindowFunction(Box::new(window)))
}

/// The value of a literal.
pub(crate) fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

/// A literal that keeps the metadata of the field that it is a value of.
pub(crate) fn typed_literal(value: ScalarValue, field: &Field) -> Expr {
    let metadata = (!field.metadata().is_empty()).then(|| FieldMetadata::from(field.metadata()));
    Expr::Literal(value, metadata)
}

/// The value of an expression without columns, as far as calls and casts of literals tell it.
pub fn constant_value(expr: Expr) -> Result<Option<ScalarValue>> {
    let schema = DFSchema::empty();
    let folded = expr.transform_up(|expr| Ok(Transformed::yes(fold(expr, &schema))))?;
    Ok(literal(&folded.data).cloned())
}

/// Computes a call or a cast of literals. What fails to compute stays: it may never be evaluated.
pub(crate) fn fold(expr: Expr, schema: &DFSchema) -> Expr {
    match try_fold(&expr, schema) {
        Ok(Some(folded)) => folded,
        Ok(None) | Err(_) => expr,
    }
}

fn try_fold(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    match expr {
        Expr::Cast(cast) => match literal(&cast.expr) {
            Some(value) => {
                let value = value.cast_to(cast.field.data_type())?;
                let field = field_of(expr, schema)?;
                Ok(Some(typed_literal(value, &field)))
            }
            None => Ok(None),
        },
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let Some(function) = as_function(func)
                .filter(|function| !function.volatile && function.kernel.is_some())
            else {
                return Ok(None);
            };
            let Some(values) = args.iter().map(literal).collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            debug_assert!(args.len() >= function.least_arguments);
            let arg_fields = args
                .iter()
                .map(|arg| field_of(arg, schema))
                .collect::<Result<Vec<_>>>()?;
            let scalars: Vec<_> = values.iter().copied().map(Some).collect();
            let return_field = func.return_field_from_args(ReturnFieldArgs {
                arg_fields: &arg_fields,
                scalar_arguments: &scalars,
            })?;
            static CONFIG: LazyLock<Arc<ConfigOptions>> = LazyLock::new(Arc::default);
            let result = func.invoke_with_args(ScalarFunctionArgs {
                args: values
                    .into_iter()
                    .map(|value| ColumnarValue::Scalar(value.clone()))
                    .collect(),
                arg_fields,
                number_rows: 1,
                return_field: Arc::clone(&return_field),
                config_options: Arc::clone(&CONFIG),
            })?;
            match result {
                ColumnarValue::Scalar(value) => Ok(Some(typed_literal(value, &return_field))),
                ColumnarValue::Array(array) => Ok(Some(typed_literal(
                    ScalarValue::try_from_array(&array, 0)?,
                    &return_field,
                ))),
            }
        }
        _ => Ok(None),
    }
}
