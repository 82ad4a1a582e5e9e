//! Window functions: their arguments, partitions and orders by key, and the offsets of RANGE frames.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::WindowFunction;
use datafusion_expr::{Expr, WindowFrame, WindowFrameBound, WindowFrameUnits};
use sheaf_types::error::codes::{self, ErrorCode};

use super::aggregate::{aggregate_arguments, keys_of, sort_keys_of};
use super::cast;
use super::expression_type::field_of;
use super::rule::Rule;
use crate::functions::types::{HEX_OF_KEY, MAX_PRECISION};
use crate::functions::{EvaluationError, call};

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
        DataType::Binary => call(HEX_OF_KEY, vec![expr]),
        DataType::Duration(_) => cast(expr, DataType::Int64),
        DataType::Decimal128(_, scale) if !offsets.is_empty() => {
            let scale = digits.max(*scale);
            cast(expr, DataType::Decimal128(MAX_PRECISION, scale))
        }
        ty if ty.is_integer() && !fits(ty) && digits == 0 && fits(&DataType::Int64) => {
            cast(expr, DataType::Int64)
        }
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

pub(super) fn resolve_window(
    mut window: WindowFunction,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    let name = window.fun.name().to_string();
    let params = &mut window.params;
    params.args = aggregate_arguments(
        &name,
        params.distinct,
        std::mem::take(&mut params.args),
        schema,
        rule,
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
