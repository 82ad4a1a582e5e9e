//! Window functions: their arguments, and their partitions and orders by key.

use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr::WindowFunction;
use datafusion_expr::{Expr, WindowFrameUnits};

use super::aggregate::{aggregate_arguments, keys_of, sort_keys_of};
use super::range_frame::{check_order, range_key};
use super::rule::Rule;

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
    let is_range = params.window_frame.units == WindowFrameUnits::Range;
    if is_range {
        for sort in &params.order_by {
            check_order(&sort.expr, &params.window_frame, schema)?;
        }
    }
    params.order_by = sort_keys_of(std::mem::take(&mut params.order_by), schema)?;
    if is_range {
        for sort in &mut params.order_by {
            let key = std::mem::take(&mut sort.expr);
            sort.expr = range_key(key, &mut params.window_frame, schema)?;
        }
    }
    Ok(Expr::WindowFunction(Box::new(window)))
}
