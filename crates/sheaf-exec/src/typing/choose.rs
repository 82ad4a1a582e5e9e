//! CASE and its relatives: the type of a choice, and the conversion of every branch to it.
//!
//! CASE, IF, COALESCE, NULLIF, GREATEST and LEAST show one of several values. The values have one type, which
//! `functions/control.rs` finds for all of them:
//!
//! ```text
//!   CASE WHEN c THEN 1 ELSE 'x' END        a text: 1 becomes '1'
//!   COALESCE(i, 2.5)                       DECIMAL: i becomes one
//! ```
//!
//! Where literals decide a choice, it is a literal itself. What is compared with more than one value is computed once
//! (`once.rs`).

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::{DFSchema, Result, ScalarValue, not_impl_err};
use datafusion_expr::expr::Case;
use datafusion_expr::{Expr, Operator, lit};
use sheaf_access::cancel;
use sheaf_types::temporal::read_datetime;
use sheaf_types::text::encoding::TextEncoding;

use super::compare::{case_value, comparison, of_one_collation, texts_beside_each_other};
use super::once::{are_deep, are_many, computed_once, hidden, is_small};
use super::{
    Rule, Texts, cast, field_of, fold, is_literal_of_bytes, literal, moment_of, operands, reached,
    type_of, typed_literal,
};
use crate::functions::call;
use crate::functions::control::{case_values, common_field, common_field_in, microseconds};
use crate::functions::truncated::MomentKind;
use crate::functions::types::{
    BYTES_LITERAL_KEY, CHOSEN_KEY, COERCIBILITY_KEY, DECIMALS_KEY, MOMENT_KEY, SqlType, TYPE_KEY,
    bit_length, collation_of, field, float_decimals, zerofill,
};
use crate::operator::scan_exec::access_error;

/// Converts a value to the field of a choice that it is a branch of.
pub(super) fn convert_to_field(
    expr: Expr,
    to: &Field,
    schema: &DFSchema,
    texts: Option<&Texts>,
) -> Result<Expr> {
    let from = field_of(&expr, schema)?;
    let is_enum = |field: &Field| matches!(SqlType::of(field), SqlType::Enum { .. });
    if from.data_type() == to.data_type() {
        let loses_shape = bit_length(&from).is_some() && bit_length(to).is_none()
            || zerofill(&from).is_some() && zerofill(to).is_none();
        return Ok(match is_enum(&from) && !is_enum(to) {
            true => call("$cast_char", vec![expr]),
            // A choice that is decided at once is not the value itself.
            false if loses_shape => typed(expr, &plain_number(&from)),
            false => expr,
        });
    }
    if from.data_type() == &DataType::Null || literal(&expr).is_some_and(ScalarValue::is_null) {
        return Ok(typed_literal(ScalarValue::try_from(to.data_type())?, to));
    }
    let from_type = SqlType::of(&from);
    let converted = match to.data_type() {
        DataType::Float64 if !from.data_type().is_integer() => call("$cast_double", vec![expr]),
        DataType::Utf8View if from_type == SqlType::Bytes => call("$text_of_bytes", vec![expr]),
        DataType::Utf8View => call("$cast_char", vec![expr]),
        DataType::Binary => call("$cast_binary", vec![expr]),
        DataType::Timestamp(..) if from_type == SqlType::Date => cast(expr, microseconds()),
        DataType::Timestamp(..) if matches!(from_type, SqlType::Time { .. }) => {
            let Some(texts) = texts else {
                return not_impl_err!(
                    "a TIME in a part of a recursive table whose first part has a DATETIME"
                );
            };
            texts.of_today(expr, SqlType::of(to).fsp())
        }
        DataType::Timestamp(..) => call(
            "$cast_datetime",
            vec![expr, lit(i64::from(SqlType::of(to).fsp()))],
        ),
        DataType::Date32 => call("$cast_date", vec![expr]),
        DataType::Duration(_) => call(
            "$cast_time",
            vec![expr, lit(i64::from(SqlType::of(to).fsp()))],
        ),
        other => cast(expr, other.clone()),
    };
    Ok(match fold(converted, schema) {
        Expr::Literal(value, _) => typed_literal(value, to),
        converted => converted,
    })
}

/// Restores what the plain CASE lost of its field: fraction digits, a collation, shown decimals, and that its bytes are
/// literals.
pub(super) fn with_metadata(expr: Expr, field: &Field) -> Expr {
    let keys = [DECIMALS_KEY, BYTES_LITERAL_KEY];
    let is_told = keys.iter().any(|key| field.metadata().contains_key(*key));
    let declared = field
        .metadata()
        .get(TYPE_KEY)
        .is_some_and(|_| SqlType::of(field).is_declared());
    match is_told || declared {
        true => typed(expr, field),
        false => expr,
    }
}

/// The value of a subquery, whose field is this one. A plan that computes it once forgets how many of its digits are
/// shown, those of a fraction of a second included, that it is bits, and which character set its bytes are of.
pub fn with_shown_digits(expr: Expr, field: &Field) -> Expr {
    let of_type = SqlType::of(field);
    let has_digits = field.metadata().contains_key(DECIMALS_KEY) || of_type.fsp() > 0;
    let is_of_set = of_type
        .collation()
        .is_some_and(|collation| collation.encoding() != TextEncoding::Utf8);
    let is_shown_so = has_digits || float_decimals(field).is_some() || bit_length(field).is_some();
    match is_shown_so || is_of_set {
        true => typed(expr, field),
        false => expr,
    }
}

/// The value with the metadata of `field`, whatever its own says.
pub fn typed(expr: Expr, field: &Field) -> Expr {
    call("$typed", typed_operands(expr, field))
}

/// A value of this type and metadata as a column, which keeps nothing else of the value's field.
fn typed_column(expr: Expr, field: &Field) -> Expr {
    let mut operands = typed_operands(expr, field);
    operands.push(lit("column"));
    call("$typed", operands)
}

fn typed_operands(expr: Expr, field: &Field) -> Vec<Expr> {
    let text = |key: &str| lit(field.metadata().get(key).cloned().unwrap_or_default());
    let keys = [TYPE_KEY, DECIMALS_KEY, COERCIBILITY_KEY];
    let mark = match field.metadata().contains_key(BYTES_LITERAL_KEY) {
        true => BYTES_LITERAL_KEY,
        false => "",
    };
    let told = keys.into_iter().map(text).chain([lit(mark)]);
    std::iter::once(expr).chain(told).collect()
}

/// A text that a function has made of no text: it is compared as literals are, by the connection's collation.
pub(super) fn as_literal(
    value: Expr,
    of_literals: &FieldMetadata,
    schema: &DFSchema,
) -> Result<Expr> {
    let field = field_of(&value, schema)?;
    if *field.data_type() != DataType::Utf8View || field.metadata().contains_key(TYPE_KEY) {
        return Ok(value);
    }
    let mut metadata = of_literals.to_hashmap();
    metadata.extend(field.metadata().clone());
    let field = Field::clone(&field).with_metadata(metadata);
    Ok(match value {
        Expr::Literal(value, _) => typed_literal(value, &field),
        value => typed(value, &field),
    })
}

/// What a choice is among these operands, if texts of columns of the default collation decide it: the Arrow type alone
/// says nothing then, and a value without a type of its own counts as a literal.
pub(super) fn text_of_columns(
    choice: &str,
    args: &[Expr],
    schema: &DFSchema,
) -> Result<Option<Field>> {
    // What is compared says nothing.
    let shown = match choice {
        "nullif" => vec![0],
        "$case" => case_values(args.len()).collect(),
        "$simple_case" => case_values(args.len() - 1).map(|at| at + 1).collect(),
        _ => Vec::from_iter(0..args.len()),
    };
    let mut texts = fields_of(shown.iter().map(|at| &args[*at]), schema)?;
    texts.retain(|field| *field.data_type() == DataType::Utf8View);
    if !texts
        .iter()
        .any(|field| field.metadata().contains_key(TYPE_KEY))
    {
        return Ok(None);
    }
    let operation = if choice.starts_with('$') {
        "case"
    } else {
        choice
    };
    let field = common_field_in(operation, &texts)?;
    let ty = SqlType::of(&field);
    let is_told = field.metadata().contains_key(TYPE_KEY) && !ty.is_declared();
    // How long these texts are says nothing of numbers beside them.
    let told = collation_of(&ty).filter(|_| is_told);
    Ok(told.map(|(collation, coercibility)| field::collated_text(collation, coercibility)))
}

/// A choice that has not said its type, as one of this type.
pub(super) fn as_text_of_columns(value: Expr, to: &Field, schema: &DFSchema) -> Result<Expr> {
    let field = field_of(&value, schema)?;
    Ok(match value {
        value if *field.data_type() != DataType::Utf8View => value,
        value if field.metadata().contains_key(TYPE_KEY) => value,
        Expr::Literal(value, _) => typed_literal(value, to),
        value => typed(value, to),
    })
}

/// A column of an input as the column of the union, which is of `to`, metadata and all. Of `texts` it needs the day.
pub fn as_column_of(
    expr: Expr,
    to: &Field,
    schema: &DFSchema,
    texts: Option<&Texts>,
) -> Result<Expr> {
    let from = field_of(&expr, schema)?;
    // Among texts and bytes, a BIT is the text of its number, and a number has no zeros in front.
    let is_text = matches!(to.data_type(), DataType::Utf8View | DataType::Binary);
    let expr = match is_text && (bit_length(&from).is_some() || zerofill(&from).is_some()) {
        true => typed(expr, &plain_number(&from)),
        false => expr,
    };
    let converted = match digits_that_cut(&from, to) {
        Some(digits) => {
            let operands = std::iter::once(expr).chain(digits).collect();
            match fold(call("$cast_decimal", operands), schema) {
                Expr::Literal(value, _) => typed_literal(value, to),
                converted => converted,
            }
        }
        None => convert_to_field(expr, to, schema, texts)?,
    };
    let field = field_of(&converted, schema)?;
    Ok(match converted {
        converted if field.metadata() == to.metadata() => converted,
        Expr::Literal(value, _) => typed_literal(value, to),
        converted if field.metadata().contains_key(MOMENT_KEY) => typed_column(converted, to),
        converted => typed(converted, to),
    })
}

/// Precision and scale of a column of a union, of `to`, whose values are cut to the greatest and the least that it has:
/// of a wide DECIMAL, as its digits may be too few for those of an input. It is not where digits are kept that are not
/// shown.
fn digits_that_cut(from: &Field, to: &Field) -> Option<[Expr; 2]> {
    let DataType::Decimal256(precision, scale) = *to.data_type() else {
        return None;
    };
    let is_same = from.data_type() == to.data_type() || from.data_type() == &DataType::Null;
    let is_shown = i16::from(SqlType::of(to).shown_decimals()) == i16::from(scale);
    let digits = [lit(i64::from(precision)), lit(i64::from(scale))];
    (!is_same && is_shown).then_some(digits)
}

/// A number of no column: without ZEROFILL, and not BIT.
fn plain_number(field: &Field) -> Field {
    let plain = Field::new("", field.data_type().clone(), true);
    field::with_decimals(plain, float_decimals(field))
}

fn fields_of<'a>(
    exprs: impl Iterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> Result<Vec<FieldRef>> {
    exprs.map(|expr| field_of(expr, schema)).collect()
}

pub(super) fn case(mut args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let values: Vec<usize> = case_values(args.len()).collect();
    let to = common_field(&fields_of(values.iter().map(|at| &args[*at]), schema)?)?;
    for at in values {
        cancel::check_statement().map_err(access_error)?;
        let value = std::mem::take(&mut args[at]);
        args[at] = convert_to_field(value, &to, schema, Some(rule.texts))?;
    }
    let default = if args.len() % 2 == 1 {
        args.pop().map(Box::new)
    } else {
        None
    };
    let mut branches = Vec::with_capacity(args.len() / 2);
    let mut args = args.into_iter();
    while let (Some(condition), Some(value)) = (args.next(), args.next()) {
        branches.push((Box::new(condition), Box::new(value)));
    }
    with_few_open("case", Case::new(None, branches, default), &to, schema)
}

/// A CASE with the metadata of `field`, behind a function's name if it is one that DataFusion takes long for.
fn with_few_open(
    operator: &'static str,
    case: Case,
    field: &Field,
    schema: &DFSchema,
) -> Result<Expr> {
    let branches = &case.when_then_expr;
    let conditions = branches.iter().map(|(condition, _)| condition.as_ref());
    let values = branches.iter().map(|(_, value)| value.as_ref());
    if let Some(value) = chosen_literal(&case) {
        let mut parts = conditions.chain(values).chain(case.else_expr.as_deref());
        let among_literals = parts.all(|part| literal(part).is_some());
        return Ok(chosen(value.clone(), field, among_literals));
    }
    let is_hidden = are_many(&conditions.clone().collect::<Vec<_>>())
        || are_deep(conditions.chain(values).chain(case.else_expr.as_deref()));
    let case = with_metadata(Expr::Case(case), field);
    match is_hidden {
        true => hidden(operator, case, schema),
        false => Ok(case),
    }
}

/// The literal that a CASE is, if literals decide it. As other calls of literals it is a constant then, which beside a
/// YEAR or a date means what a written one means.
fn chosen_literal(case: &Case) -> Option<&ScalarValue> {
    for (condition, value) in &case.when_then_expr {
        match literal(condition)? {
            ScalarValue::Boolean(Some(true)) => return literal(value),
            ScalarValue::Boolean(_) => {}
            _ => return None,
        }
    }
    literal(case.else_expr.as_deref()?)
}

/// A literal that a choice is, among operands that are literals, too, or not.
fn chosen(value: ScalarValue, field: &Field, among_literals: bool) -> Expr {
    if among_literals || field.data_type() != &DataType::Utf8View {
        return typed_literal(value, field);
    }
    let mut metadata = field.metadata().clone();
    metadata.insert(CHOSEN_KEY.to_string(), String::new());
    typed_literal(value, &field.clone().with_metadata(metadata))
}

/// CASE of a value, which is compared with others.
pub(super) fn simple_case(
    mut args: Vec<Expr>,
    (schema, rule): (&DFSchema, Rule<'_>),
) -> Result<Expr> {
    let mut value = args.remove(0);
    make_texts_of_bytes(&mut value, &mut args, schema, rule)?;
    let compared: Vec<&Expr> = args.chunks_exact(2).map(|branch| &branch[0]).collect();
    let value = of_one_collation(value, compared.into_iter(), schema, "case")?;
    let make = |values: Vec<Expr>, mut args: Vec<Expr>, schema: &DFSchema| {
        let [value] = operands(values)?;
        for at in 0..args.len() / 2 {
            let when = std::mem::take(&mut args[2 * at]);
            let pair = vec![value.clone(), when];
            let pair = match rule.has_conditions() {
                true => reached::in_operands("$when", pair, schema, rule)?,
                false => pair,
            };
            args[2 * at] = case_value(pair, schema, rule)?;
        }
        case(args, schema, rule)
    };
    computed_once("case", (vec![value], args), schema, make)
}

/// Literals of bytes in a CASE of a value. They are texts where the value, or one that it is compared with, is a
/// stronger text.
fn make_texts_of_bytes(
    value: &mut Expr,
    branches: &mut [Expr],
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<()> {
    let compared = branches.chunks_exact_mut(2).map(|branch| &mut branch[0]);
    let mut compared: Vec<&mut Expr> = std::iter::once(value).chain(compared).collect();
    if !compared.iter().any(|operand| is_literal_of_bytes(operand)) {
        return Ok(());
    }
    for operand in &compared {
        // Beside a number, a literal of bytes is one.
        if !type_of(operand, schema)?.is_string() {
            return Ok(());
        }
    }
    let operands = compared.iter_mut().map(|operand| std::mem::take(*operand));
    let texts = texts_beside_each_other(operands.collect(), schema, rule)?;
    for (operand, text) in compared.into_iter().zip(texts) {
        *operand = text;
    }
    Ok(())
}

pub(super) fn coalesce(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let to = common_field_in("coalesce", &fields_of(args.iter(), schema)?)?;
    let among_literals = args.iter().all(|arg| literal(arg).is_some());
    let mut converted = Vec::with_capacity(args.len());
    for arg in args {
        let is_null = literal(&arg).is_some_and(ScalarValue::is_null);
        let is_constant = literal(&arg).is_some();
        let arg = convert_to_field(arg, &to, schema, Some(rule.texts))?;
        if is_null {
            continue;
        }
        converted.push(arg);
        // Nothing after a constant is ever reached. A column that is never NULL is NULL where it is rolled up.
        if is_constant {
            break;
        }
    }
    let Some(last) = converted.pop() else {
        return Ok(typed_literal(ScalarValue::try_from(to.data_type())?, &to));
    };
    if converted.is_empty() {
        return Ok(match last {
            Expr::Literal(value, _) => chosen(value, &to, among_literals),
            last => with_metadata(last, &to),
        });
    }
    // Where those behind cost nothing and fail never, they can be computed for all rows as well.
    let is_harmless = |expr: &Expr| matches!(expr, Expr::Column(_) | Expr::Literal(..));
    if converted[1..].iter().chain([&last]).all(is_harmless) && !is_small(&converted[0]) {
        converted.push(last);
        return Ok(with_metadata(call("$coalesce", converted), &to));
    }
    converted.push(last);
    Ok(with_metadata(first_there_is(converted, schema)?, &to))
}

/// A field that says nothing.
fn plain() -> Field {
    Field::new("", DataType::Null, true)
}

/// The first of values of one type that is not NULL. Those behind it are not computed.
fn first_there_is(mut values: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let Some(last) = values.pop() else {
        return Ok(lit(ScalarValue::Null));
    };
    if values.is_empty() {
        return Ok(last);
    }
    if values.iter().all(is_small) {
        let there_is = |value: Expr| (Box::new(value.clone().is_not_null()), Box::new(value));
        let branches = values.into_iter().map(there_is).collect();
        let case = Case::new(None, branches, Some(Box::new(last)));
        return with_few_open("coalesce", case, &plain(), schema);
    }
    values.push(last);
    // In halves, so that functions of many values are no deep nest.
    let behind = values.split_off(values.len().div_ceil(2));
    let before = first_there_is(values, schema)?;
    let make = |before: Vec<Expr>, behind: Vec<Expr>, schema: &DFSchema| {
        let [before] = operands(before)?;
        let there_is = Box::new(before.clone().is_not_null());
        let behind = Box::new(first_there_is(behind, schema)?);
        let branches = vec![(there_is, Box::new(before))];
        with_few_open(
            "coalesce",
            Case::new(None, branches, Some(behind)),
            &plain(),
            schema,
        )
    };
    computed_once("coalesce", (vec![before], behind), schema, make)
}

pub(super) fn nullif(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let [value, other] = operands(args)?;
    let make = |values: Vec<Expr>, others: Vec<Expr>, schema: &DFSchema| {
        let ([value], [other]) = (operands(values)?, operands(others)?);
        let field = common_field(&[field_of(&value, schema)?])?;
        let equal = comparison(Operator::Eq, value.clone(), other, schema, rule)?;
        let value = convert_to_field(value, &field, schema, Some(rule.texts))?;
        let null = typed_literal(ScalarValue::try_from(field.data_type())?, &field);
        let case = Case::new(
            None,
            vec![(Box::new(equal), Box::new(null))],
            Some(Box::new(value)),
        );
        with_few_open("nullif", case, &field, schema)
    };
    computed_once("nullif", (vec![value], vec![other]), schema, make)
}

/// What arguments of GREATEST and LEAST are compared as. Beside a date, texts and numbers are dates, too.
fn extreme_field(name: &str, fields: &[FieldRef]) -> Result<Field> {
    let common = common_field_in(name, fields)?;
    // No choice, but an operation on numbers: a FLOAT and an integer are compared as doubles.
    let mut types = fields.iter().map(|field| SqlType::of(field));
    let are_floats = types.all(|ty| matches!(ty, SqlType::Float | SqlType::Null));
    if common.data_type() == &DataType::Float32 && !are_floats {
        return Ok(field::double_of(float_decimals(&common)));
    }
    let is_date = |ty: &SqlType| matches!(ty, SqlType::Date | SqlType::DateTime { .. });
    let types = fields.iter().map(|field| SqlType::of(field));
    let mut others = types.filter(|ty| !ty.is_temporal());
    let are_readable = others.all(|ty| match ty {
        SqlType::Text { .. } | SqlType::Null | SqlType::Integer { .. } => true,
        ty => matches!(ty, SqlType::Decimal { .. }) || ty.is_float(),
    });
    if !are_readable || SqlType::of(&common).is_temporal() {
        return Ok(common);
    }
    let of_field = |field: &&FieldRef| SqlType::of(field).is_temporal();
    let moments: Vec<FieldRef> = fields.iter().filter(of_field).cloned().collect();
    if !moments.iter().any(|field| is_date(&SqlType::of(field))) {
        return Ok(common);
    }
    common_field(&moments)
}

/// How many digits of a second a text that is given, or a number, tells beside a date.
fn fraction_digits(arg: &Expr, schema: &DFSchema) -> Result<u8> {
    const MOST: u8 = 6;
    Ok(match type_of(arg, schema)? {
        SqlType::Decimal { decimals, .. } => decimals.min(MOST),
        ty if ty.is_float() => MOST,
        SqlType::Text { .. } => match literal(arg) {
            Some(ScalarValue::Utf8View(Some(text))) => {
                read_datetime(text).map_or(0, |read| read.fraction_digits.min(MOST))
            }
            _ => 0,
        },
        _ => 0,
    })
}

/// GREATEST and LEAST: arguments of one type go to the kernel.
pub(super) fn extreme(
    name: &str,
    args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    let to = extreme_field(name, &fields_of(args.iter(), schema)?)?;
    let to = match SqlType::of(&to) {
        SqlType::DateTime { fsp } => {
            let digits = args.iter().map(|arg| fraction_digits(arg, schema));
            let digits = digits.collect::<Result<Vec<u8>>>()?;
            match digits.into_iter().max() {
                Some(most) if most > fsp => field::datetime(most),
                _ => to,
            }
        }
        _ => to,
    };
    if to.data_type() == &DataType::Null {
        return Ok(lit(ScalarValue::Null));
    }
    let is_watched = rule.watches() && SqlType::of(&to).is_temporal();
    let argument = |arg: Expr| {
        let arg = match is_watched {
            true => moment_of(arg, MomentKind::DateTime, schema, rule)?,
            false => arg,
        };
        let ty = type_of(&arg, schema)?;
        // What is no date is less than all of them.
        let arg = match SqlType::of(&to).is_temporal() && !ty.is_temporal() && ty != SqlType::Null {
            true => {
                let moment = fold(call("$moment", vec![arg]), schema);
                match SqlType::of(&to) {
                    SqlType::DateTime { fsp } => fold(
                        call("$cast_datetime", vec![moment, lit(i64::from(fsp))]),
                        schema,
                    ),
                    _ => moment,
                }
            }
            false => arg,
        };
        convert_to_field(arg, &to, schema, Some(rule.texts))
    };
    let args = args.into_iter().map(argument).collect::<Result<Vec<_>>>()?;
    let kernel = if name == "greatest" {
        "$greatest"
    } else {
        "$least"
    };
    let found = call(kernel, args);
    let found = match to.metadata().contains_key(DECIMALS_KEY) {
        true => typed(found, &to),
        false => found,
    };
    Ok(fold(found, schema))
}

/// A value as it is shown, and as it is compared: a DECIMAL with guard digits is rounded.
pub(super) fn as_shown(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match type_of(&expr, schema)? {
        SqlType::Decimal {
            scale, decimals, ..
        } if decimals < scale => fold(call("$result", vec![expr]), schema),
        _ => expr,
    })
}

/// A column of the first part of a recursive table.
pub(super) fn first_part(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match type_of(&expr, schema)? {
        SqlType::Null => typed_literal(ScalarValue::Utf8View(None), &field::text()),
        _ => {
            let field = field_of(&expr, schema)?;
            match zerofill(&field) {
                Some(_) => typed(expr, &plain_number(&field)),
                None => expr,
            }
        }
    })
}
