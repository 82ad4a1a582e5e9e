//! `& | ^ << >> ~`: operations on unsigned 64-bit integers.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, UInt64Array};
use datafusion_common::Result;

use super::types::field;
use super::{Call, Function};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict(
        "$bit_and",
        (2, 2),
        |_| Ok(field::unsigned_bigint()),
        |call| binary(call, |a, b| a & b),
    )
    .stops_at_null(),
    Function::strict(
        "$bit_or",
        (2, 2),
        |_| Ok(field::unsigned_bigint()),
        |call| binary(call, |a, b| a | b),
    )
    .stops_at_null(),
    Function::strict(
        "$bit_xor",
        (2, 2),
        |_| Ok(field::unsigned_bigint()),
        |call| binary(call, |a, b| a ^ b),
    )
    .stops_at_null(),
    Function::strict(
        "$shift_left",
        (2, 2),
        |_| Ok(field::unsigned_bigint()),
        |call| binary(call, |a, b| if b < 64 { a << b } else { 0 }),
    )
    .stops_at_null(),
    Function::strict(
        "$shift_right",
        (2, 2),
        |_| Ok(field::unsigned_bigint()),
        |call| binary(call, |a, b| if b < 64 { a >> b } else { 0 }),
    )
    .stops_at_null(),
    Function::strict(
        "$bit_not",
        (1, 1),
        |_| Ok(field::unsigned_bigint()),
        |call| {
            Ok(Arc::new(
                call.unsigned(0)?
                    .array
                    .unary::<_, arrow::datatypes::UInt64Type>(|value| !value),
            ))
        },
    ),
    Function::strict(
        "bit_count",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            let values = call.unsigned(0)?;
            let counts: Int64Array = values
                .array
                .iter()
                .map(|value| value.map(|value| i64::from(value.count_ones())))
                .collect();
            Ok(Arc::new(counts))
        },
    ),
];

fn binary(call: &Call<'_>, operation: fn(u64, u64) -> u64) -> Result<ArrayRef> {
    let (left, right) = (call.unsigned(0)?, call.unsigned(1)?);
    let result: UInt64Array = (0..call.rows())
        .map(|row| Some(operation(left.get(row)?, right.get(row)?)))
        .collect();
    Ok(Arc::new(result))
}
