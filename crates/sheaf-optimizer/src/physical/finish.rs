//! What is done to a plan whose operators have what they require, before it runs.
//!
//! Each step is about few kinds of operators, and walks over the plan only if it has them. The check of the plan comes
//! behind everything that moves operators. What follows it only wraps them; tests check what comes of that, too.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::LogicalPlan;
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::operator::bounded_projection::bound_projections;
use sheaf_exec::operator::checked_rows;
use sheaf_exec::operator::compacted_exec::detach_below_sorts;
use sheaf_exec::operator::first_rows_exec::keep_copies_of_first_rows;
use sheaf_exec::operator::gather_in_order_exec::gather_unions_in_order;
use sheaf_exec::operator::grace_join::spill_hash_joins;
use sheaf_exec::operator::interruptible_exec::make_interruptible;
use sheaf_exec::operator::key_width_exec::watch_sort_keys;
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_exec::operator::sort_batches_exec::sort_in_small_batches;
use sheaf_exec::operator::spare_memory_exec::spare_memory;
use sheaf_exec::operator::window::bound_windows;

use crate::PlannerContext;
use crate::adaptive::shared_subplans;
use crate::explain::notes::NodeNotes;
use crate::physical::rules::{Found, one_stream, result_limits};
use crate::physical::{late_columns, plan_check, rules};
use crate::row_width::row_bytes;

/// What is done to a plan whose operators have what they require. Each step is about few kinds of operators, and walks
/// over the plan only if it has them.
/// `saves_memory`: sorts get all of it, one after the other.
pub(super) fn finished(
    (mut plan, saves_memory): (Arc<dyn ExecutionPlan>, bool),
    logical: &LogicalPlan,
    (notes, properties): (&NodeNotes, &ExecutionProps),
    context: &PlannerContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    if is_sorted(logical) {
        // By constants alone nothing is sorted, and nothing else brings the streams together.
        plan = one_stream(plan);
    }
    let found = Found::of(&plan);
    if found.has_sorts {
        if saves_memory {
            plan = rules::sort_in_one_stream(plan)?;
        }
        let most = match context.settings.is_thrifty() {
            true => rules::FEW_ROWS.min(context.settings.most_first_rows),
            false => context.settings.most_first_rows,
        };
        plan = late_columns::read_late(plan, &context.cancel)?;
        plan = rules::sort_all_rows(plan, most)?;
    }
    context.cancel.check().map_err(access_error)?;
    plan = shared_subplans::share(plan, notes, context)?;
    if found.has_sorts {
        plan = detach_below_sorts(plan, context.settings.has_little_memory())?;
    }
    if let Some(limits) = result_limits(context) {
        let settings = &context.settings;
        let (bytes, little) = (settings.batch_string_bytes, settings.has_little_memory());
        plan = bound_projections(plan, limits, bytes, little)?;
    }
    if found.has_unions {
        plan = gather_unions_in_order(plan)?;
    }
    plan = make_interruptible(plan, &context.cancel)?;
    context.cancel.check().map_err(access_error)?;
    let unchecked = Arc::clone(&plan);
    plan = checked(plan, logical, properties, context)?;
    let has_sorts = found.has_sorts || !Arc::ptr_eq(&plan, &unchecked);
    plan = spill_hash_joins(plan, is_sorted(logical))?;
    if found.has_windows {
        plan = bound_windows(plan)?;
    }
    if has_sorts {
        plan = watch_sort_keys(plan)?;
        if saves_memory {
            plan = spare_memory(plan)?;
        }
        plan = keep_copies_of_first_rows(plan)?;
        if context.settings.has_little_memory() {
            let batch_rows = context.settings.batch_rows;
            plan = sort_in_small_batches(plan, row_bytes(logical)?, batch_rows)?;
        }
    }
    if checked_rows::is_asked_for() {
        let options = context.task.session_config().options();
        plan_check::check(&plan, logical, properties, options)?;
    }
    Ok(plan)
}

/// The plan if it does not contradict itself, with orders restored that have got lost.
fn checked(
    plan: Arc<dyn ExecutionPlan>,
    logical: &LogicalPlan,
    properties: &ExecutionProps,
    context: &PlannerContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = context.task.session_config().options();
    let Err(problem) = plan_check::check(&plan, logical, properties, options) else {
        return Ok(plan);
    };
    let restored = rules::restore_orders(plan)?;
    if !restored.transformed {
        return Err(problem);
    }
    plan_check::check(&restored.data, logical, properties, options)?;
    Ok(restored.data)
}

/// Whether the rows of a statement come in an order that it asks for.
fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Limit(_) | LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().into_iter().any(is_sorted)
        }
        _ => false,
    }
}
