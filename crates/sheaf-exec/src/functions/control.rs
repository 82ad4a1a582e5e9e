//! Comparisons, conditions and the functions that choose between values.
//!
//! Most are markers: which comparison is meant, and which type CASE and its relatives have, depends on the operands
//! and is decided by the typing rule. [`common_field`] is MySQL's rule for the type of a choice.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringViewArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::{cmp, zip::zip};
use arrow::compute::{
    CastOptions, and_kleene, cast, cast_with_options, is_not_null, is_null, nullif, or_kleene,
};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion_common::Result;
use sheaf_access::arrow_type;
use sheaf_types::ColumnType;
use sheaf_types::error::codes;

use super::in_values::IN_NUMBERS;
use super::types::{
    BYTES_LITERAL_KEY, COERCIBILITY_KEY, DECIMALS_KEY, MOMENT_KEY, SqlType, TYPE_KEY, bit_length,
    bytes_field, common_float_decimals, declared_type, field, is_cut_short, result_collation,
    takes_bytes, zerofill,
};
use super::{Call, EvaluationError, Function, Length, Operands, VARIADIC};

/// A value of some row, and how many rows there are; error 1242 if there are several.
pub const ONLY_ROW: &str = "$only_row";

/// Bits of the widest integers that a FLOAT has room for.
const FLOAT_BITS: u32 = 24;

fn condition(_: &Operands<'_>) -> Result<Field> {
    Ok(field::boolean())
}

pub(super) static FUNCTIONS: &[Function] = &[
    Function::marker("$eq", (2, 2), condition).stops_at_null(),
    Function::marker("$ne", (2, 2), condition).stops_at_null(),
    Function::marker("$lt", (2, 2), condition).stops_at_null(),
    Function::marker("$le", (2, 2), condition).stops_at_null(),
    Function::marker("$gt", (2, 2), condition).stops_at_null(),
    Function::marker("$ge", (2, 2), condition).stops_at_null(),
    Function::marker("$null_safe_eq", (2, 2), condition),
    // The value of CASE is equal to one of its WHENs.
    Function::marker("$when", (2, 2), condition).stops_at_null(),
    // Equal, or it is unknown whether they are.
    Function::marker("$may_be_equal", (2, 2), condition),
    // Value, the least and the greatest.
    Function::marker("$between", (3, 3), condition).stops_at_null(),
    // Value, then the list.
    Function::marker("$in", (2, VARIADIC), condition),
    // Value, a long list of whole numbers.
    Function::marker(IN_NUMBERS, (2, 2), condition),
    // A value as a condition.
    Function::marker("$truth", (1, 1), condition),
    // The kernel behind $truth, for types that have no plain comparison with zero.
    Function::strict("$is_not_zero", (1, 1), condition, |call| {
        Ok(Arc::new(call.boolean(0)?.array))
    }),
    // What no value fulfils, and what each does. The value is computed.
    Function::strict("$never", (1, 1), condition, |call| known(call, false)),
    Function::strict("$always", (1, 1), condition, |call| known(call, true)),
    // AND and OR of two conditions that are both computed, whatever the first one is.
    Function::new("$both", (2, 2), condition, |call| {
        let [left, right] = conditions(call)?;
        Ok(Arc::new(and_kleene(&left, &right)?))
    }),
    Function::new("$either", (2, 2), condition, |call| {
        let [left, right] = conditions(call)?;
        Ok(Arc::new(or_kleene(&left, &right)?))
    }),
    // A value, and an operand that is computed beside it, since it notes something.
    Function::new(
        "$beside",
        (2, 2),
        |operands| Ok(operands.fields[0].as_ref().clone()),
        |call| call.args.args[0].to_array(call.rows()),
    ),
    // A hexadecimal literal: bytes, and a number among numbers.
    Function::marker("$hybrid", (1, 1), |_| Ok(field::hybrid())),
    // A literal of bytes with the introducer _binary.
    Function::marker("$literal_bytes", (1, 1), |_| Ok(field::literal_bytes())),
    // A condition as a value.
    Function::marker("$int", (1, 1), |_| Ok(field::bigint())),
    // What two rows are compared by: the first of one, the first of the other, the second of one, and so on.
    // How many values the rows have, the values that are looked for, then those of each row of the list.
    Function::marker("$row_in", (2, VARIADIC), condition),
    Function::marker("$row_lt", (2, VARIADIC), condition),
    Function::marker("$row_le", (2, VARIADIC), condition),
    Function::marker("$row_gt", (2, VARIADIC), condition),
    Function::marker("$row_ge", (2, VARIADIC), condition),
    // The value that is compared, then as for `$case`, with values in place of the conditions.
    Function::marker("$simple_case", (3, VARIADIC), |operands| {
        let values = case_values(operands.fields.len() - 1);
        let values = values.map(|at| Arc::clone(&operands.fields[at + 1]));
        common_field(&values.collect::<Vec<_>>())
    }),
    // Condition, value, condition, value, ..., default.
    Function::marker("$case", (2, VARIADIC), |operands| {
        common_field(
            &case_values(operands.fields.len())
                .map(|at| Arc::clone(&operands.fields[at]))
                .collect::<Vec<_>>(),
        )
    }),
    Function::marker("coalesce", (1, VARIADIC), |operands| {
        common_field_in("coalesce", operands.fields)
    })
    .text_of(0, VARIADIC)
    .key_operand(),
    // The first value unless the two are equal.
    Function::marker("nullif", (2, 2), |operands| {
        common_field(&operands.fields[..1])
    })
    .stops_at_null()
    .key_operand(),
    Function::marker("greatest", (2, VARIADIC), |operands| {
        common_field_in("greatest", operands.fields)
    })
    .stops_at_null()
    .text_of(0, VARIADIC)
    .key_operand(),
    Function::marker("least", (2, VARIADIC), |operands| {
        common_field_in("least", operands.fields)
    })
    .stops_at_null()
    .text_of(0, VARIADIC)
    .key_operand(),
    // The first that is not NULL, of arguments of one type.
    Function::new(
        "$coalesce",
        (2, VARIADIC),
        |operands| field_of_one_type(operands.fields),
        coalesce,
    )
    .null_of_nulls(),
    // The same with all arguments of one type.
    Function::strict(
        "$greatest",
        (2, VARIADIC),
        |operands| field_of_one_type(operands.fields),
        |call| extreme(call, true),
    ),
    Function::strict(
        "$least",
        (2, VARIADIC),
        |operands| field_of_one_type(operands.fields),
        |call| extreme(call, false),
    ),
    // A value, and a NULL of a wider type.
    Function::new(
        "$widen",
        (2, 2),
        |operands| Ok(Field::new("", operands.fields[1].data_type().clone(), true)),
        |call| {
            let value = call.args.args[0].to_array(call.rows())?;
            let options = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            let to = call.args.return_field.data_type();
            Ok(cast_with_options(&value, to, &options)?)
        },
    ),
    // A value, its SQL type text, its shown decimals, its coercibility, and for bytes a text if they are made of
    // literals: the same value, whose field says so. Behind these a text if it becomes a column: then it is no date or
    // time that arithmetic has made any more.
    Function::strict("$typed", (5, 6), typed_field, |call| {
        call.args.args[0].to_array(call.rows())
    }),
    // A part of a row in IN and in a comparison by order: a YEAR as a number.
    Function::marker("$in_row", (1, 1), |operands| {
        Ok(operands.fields[0].as_ref().clone())
    }),
    // A column of the first part of a recursive table: what has no type is a text.
    Function::marker("$first_part", (1, 1), |operands| {
        Ok(match operands.sql_type(0) {
            SqlType::Null => field::text(),
            _ => operands.fields[0].as_ref().clone(),
        })
    }),
    Function::new(
        ONLY_ROW,
        (2, 2),
        |operands| Ok(operands.fields[0].as_ref().clone()),
        only_row,
    ),
    // The value of a subquery that may find no row.
    Function::new(
        "$or_null",
        (1, 1),
        |operands| Ok(operands.fields[0].as_ref().clone()),
        |call| call.args.args[0].to_array(call.rows()),
    ),
    Function::new("interval", (2, VARIADIC), |_| Ok(field::bigint()), interval)
        .never_null()
        .doubles(0, VARIADIC)
        .length(Length::Int),
];

/// The two conditions that a call is given.
fn conditions(call: &Call<'_>) -> Result<[BooleanArray; 2]> {
    let condition = |at: usize| -> Result<BooleanArray> {
        let array = call.args.args[at].to_array(call.rows())?;
        Ok(cast(&array, &DataType::Boolean)?.as_boolean().clone())
    };
    Ok([condition(0)?, condition(1)?])
}

/// Positions of the values among the arguments of `$case`.
pub fn case_values(arguments: usize) -> impl Iterator<Item = usize> {
    let pairs = arguments / 2;
    (0..pairs)
        .map(|pair| 2 * pair + 1)
        .chain((arguments % 2 == 1).then(|| arguments - 1))
}

/// The field of a choice between values of these fields (CASE, IF, COALESCE, UNION).
///
/// Numbers widen: integer, DECIMAL, double. Dates and points in time become a point in time. Anything else that differs
/// is text, or bytes if a byte string is among them. A literal of bytes is none beside a text that is no literal. ENUMs
/// are their labels, which are ordered as texts are.
///
/// # Errors
/// 1267, 1270 and 1271 for texts of different collations.
pub fn common_field(fields: &[FieldRef]) -> Result<Field> {
    common_field_in("case", fields)
}

/// The same, for errors that name another operation.
pub fn common_field_in(operation: &str, fields: &[FieldRef]) -> Result<Field> {
    let known: Vec<&FieldRef> = fields
        .iter()
        .filter(|field| SqlType::of(field) != SqlType::Null)
        .collect();
    let Some(first) = known.first() else {
        return Ok(Field::new("", DataType::Null, true));
    };
    let types: Vec<SqlType> = known.iter().map(|field| SqlType::of(field)).collect();
    let same_type = known.iter().all(|field| {
        field.data_type() == first.data_type()
            && field.metadata().get(TYPE_KEY) == first.metadata().get(TYPE_KEY)
    });
    let wider = |digits: fn(&SqlType) -> u8| types.iter().map(digits).max().unwrap_or(0);
    if types.iter().all(SqlType::is_integer) {
        // A choice of columns with ZEROFILL or of BIT is none.
        if same_type && (zerofill(first).is_some() || bit_length(first).is_some()) {
            return Ok(Field::new("", first.data_type().clone(), true));
        }
        if same_type {
            return Ok(first.as_ref().clone());
        }
        let narrow = |field: &&FieldRef| field.data_type() != &DataType::UInt64;
        return Ok(if types.iter().all(SqlType::is_unsigned) {
            field::unsigned_bigint()
        } else if known.iter().all(narrow) {
            field::bigint()
        } else {
            field::decimal(20, 0, 0)
        });
    }
    if types.iter().all(SqlType::is_exact_number) {
        let scale = wider(|ty| ty.decimal_digits().1);
        let (digits, shown) = (
            wider(|ty| ty.decimal_digits().0),
            wider(SqlType::shown_decimals),
        );
        return Ok(match is_cut_short(digits, scale) {
            true => field::wide_decimal(digits, scale, shown),
            false => field::decimal_of(&types, digits, scale, shown),
        });
    }
    if types.iter().all(|ty| ty.is_exact_number() || ty.is_float()) {
        let is_float =
            |field: &&&FieldRef| SqlType::of(field) == SqlType::Float || is_within_float(field);
        let wide = if known.iter().filter(is_float).count() == known.len() {
            Field::new("", DataType::Float32, true)
        } else {
            field::double()
        };
        return Ok(field::with_decimals(wide, common_float_decimals(known)));
    }
    if types.iter().all(|ty| *ty == SqlType::Date) {
        return Ok(field::date());
    }
    if types.iter().all(|ty| matches!(ty, SqlType::Time { .. })) {
        return Ok(field::time(wider(SqlType::fsp)));
    }
    if types.iter().all(SqlType::is_temporal) {
        return Ok(field::datetime(wider(SqlType::fsp)));
    }
    if types.iter().all(|ty| *ty == SqlType::Json) {
        return Ok(field::json());
    }
    if takes_bytes(fields) {
        return Ok(bytes_field(fields));
    }
    // Literals of bytes are texts there.
    let types: Vec<SqlType> = types
        .into_iter()
        .filter(|ty| *ty != SqlType::Bytes)
        .collect();
    let is_plain = |ty: &SqlType| matches!(ty, SqlType::Text { .. });
    // Beside a text that a cast makes, a literal of the same collation says less.
    let told = |field: &FieldRef| field.metadata().get(COERCIBILITY_KEY).cloned();
    let same_coercibility = known.iter().all(|field| told(field) == told(first));
    if same_type && same_coercibility && types.iter().all(is_plain) {
        return Ok(first.as_ref().clone());
    }
    let (collation, coercibility) = result_collation(&types, operation)?;
    Ok(field::collated_text(collation, coercibility))
}

/// Whether a choice between this integer and a FLOAT is a FLOAT: the integer has 24 bits at most, as a FLOAT's digits.
fn is_within_float(field: &Field) -> bool {
    match declared_type(field) {
        Some(ty) if ty.is_year() => true,
        Some(ty) if ty.bit_length().is_some() => false,
        Some(ty) => ty.integer_bits().is_some_and(|bits| bits <= FLOAT_BITS),
        None => matches!(
            field.data_type(),
            DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16
        ),
    }
}

/// The field of a column whose values come from several queries or rows: BITs make a BIT there, as long as the longest.
pub fn field_of_parts(fields: &[FieldRef]) -> Result<Field> {
    let mut length = None;
    for field in fields {
        match bit_length(field) {
            Some(bits) => length = length.max(Some(bits)),
            None if field.data_type().is_null() => {}
            None => return common_field_in("UNION", fields),
        }
    }
    match length {
        Some(length) => {
            let ty = ColumnType::bit(length);
            Ok(field::declared(arrow_type(&ty), &ty))
        }
        None => common_field_in("UNION", fields),
    }
}

/// The Arrow type of points in time.
pub fn microseconds() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

fn typed_field(operands: &Operands<'_>) -> Result<Field> {
    let value = &operands.fields[0];
    let mut field = Field::new("", value.data_type().clone(), true);
    let is_column = operands.text(5).is_some();
    if let Some(moment) = value.metadata().get(MOMENT_KEY).filter(|_| !is_column) {
        let moment = moment.clone();
        field.metadata_mut().insert(MOMENT_KEY.to_string(), moment);
    }
    let told = [TYPE_KEY, DECIMALS_KEY, COERCIBILITY_KEY, BYTES_LITERAL_KEY];
    for (operand, key) in (1..).zip(told) {
        if let Some(text) = operands.text(operand).filter(|text| !text.is_empty()) {
            let text = match key {
                BYTES_LITERAL_KEY => String::new(),
                _ => text,
            };
            field.metadata_mut().insert(key.to_string(), text);
        }
    }
    Ok(field)
}

/// The same outcome for each value.
fn known(call: &Call<'_>, outcome: bool) -> Result<ArrayRef> {
    let values = call.args.args[0].to_array(call.rows())?;
    let outcomes = match outcome {
        true => BooleanBuffer::new_set(values.len()),
        false => BooleanBuffer::new_unset(values.len()),
    };
    let nulls = values.logical_nulls();
    Ok(Arc::new(BooleanArray::new(outcomes, nulls)))
}

fn coalesce(call: &Call<'_>) -> Result<ArrayRef> {
    let rows = call.rows();
    let mut values = call.args.args[0].to_array(rows)?;
    for other in &call.args.args[1..] {
        if values.null_count() == 0 {
            break;
        }
        let other = other.to_array(rows)?;
        values = zip(&is_not_null(&values)?, &values, &other)?;
    }
    Ok(values)
}

/// The common field of arguments that have one type. It has that type: integers that are computed would have a wider
/// one.
fn field_of_one_type(fields: &[FieldRef]) -> Result<Field> {
    let common = common_field(fields)?;
    let ty = fields[0].data_type();
    Ok(match fields.iter().all(|field| field.data_type() == ty) {
        true => common.with_data_type(ty.clone()),
        false => common,
    })
}

/// GREATEST and LEAST of arguments of one type, texts by their collation.
fn extreme(call: &Call<'_>, greatest: bool) -> Result<ArrayRef> {
    let types: Vec<SqlType> = (0..call.len())
        .map(|argument| call.sql_type(argument))
        .collect();
    if types.iter().all(SqlType::is_text) {
        return extreme_text(call, &types, greatest);
    }
    let mut best = call.args.args[0].to_array(call.rows())?;
    for argument in &call.args.args[1..] {
        let candidate = argument.to_array(call.rows())?;
        let better = if greatest {
            cmp::gt(&candidate, &best)?
        } else {
            cmp::lt(&candidate, &best)?
        };
        // NULL if either is.
        let chosen = zip(&better, &candidate, &best)?;
        best = nullif(&chosen, &is_null(&better)?)?;
    }
    Ok(best)
}

fn extreme_text(call: &Call<'_>, types: &[SqlType], greatest: bool) -> Result<ArrayRef> {
    let (collation, _) = result_collation(types, if greatest { "greatest" } else { "least" })?;
    let arguments = (0..call.len())
        .map(|argument| call.text(argument))
        .collect::<Result<Vec<_>>>()?;
    let turns = call.turns();
    let result: StringViewArray = (0..call.rows())
        .map(|row| {
            let mut best = arguments[0].get(row)?;
            for argument in &arguments[1..] {
                // Thousands of long arguments take seconds.
                if turns.is_over() {
                    break;
                }
                let candidate = argument.get(row)?;
                let order = turns.compare(collation, candidate, best);
                if (greatest && order.is_gt()) || (!greatest && order.is_lt()) {
                    best = candidate;
                }
            }
            Some(best)
        })
        .collect();
    Ok(Arc::new(result))
}

/// Error 1242 if there is more than one row.
fn only_row(call: &Call<'_>) -> Result<ArrayRef> {
    if call.int(1)?.array.iter().flatten().any(|rows| rows > 1) {
        let message = "Subquery returns more than 1 row";
        return Err(EvaluationError::new(codes::SUBQUERY_NO_1_ROW, message).into());
    }
    call.args.args[0].to_array(call.rows())
}

/// INTERVAL(n, a, b, ...): how many of the ascending numbers are not above n; -1 if n is NULL.
fn interval(call: &Call<'_>) -> Result<ArrayRef> {
    let numbers = (0..call.len())
        .map(|argument| call.double(argument))
        .collect::<Result<Vec<_>>>()?;
    let result: Int64Array = (0..call.rows())
        .map(|row| {
            let Some(value) = numbers[0].get(row) else {
                return -1;
            };
            numbers[1..]
                .iter()
                .take_while(|bound| bound.get(row).is_none_or(|bound| bound <= value))
                .count() as i64
        })
        .map(Some)
        .collect();
    debug_assert_eq!(result.null_count(), 0);
    Ok(Arc::new(result))
}
