//! The physical rules of DataFusion that we keep, in its order.
//!
//! Left out: JoinSelection and statistics-based rules (our join order has decided; AggregateStatistics would answer
//! COUNT(*) from estimates), filter pushdown (done logically, and dynamic filters keep state across runs), and
//! PushdownSort (our access path choice has decided).

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
use datafusion_physical_optimizer::ensure_coop::EnsureCooperative;
use datafusion_physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion_physical_optimizer::limit_pushdown::LimitPushdown;
use datafusion_physical_optimizer::limit_pushdown_past_window::LimitPushPastWindows;
use datafusion_physical_optimizer::output_requirements::OutputRequirements;
use datafusion_physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion_physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion_physical_optimizer::topk_aggregation::TopKAggregation;
use datafusion_physical_optimizer::update_aggr_exprs::OptimizeAggregateOrder;
use datafusion_physical_optimizer::{ConfigOnlyContext, PhysicalOptimizerRule};
use datafusion_physical_plan::ExecutionPlan;

/// Applies the list once.
pub fn apply(
    mut plan: Arc<dyn ExecutionPlan>,
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rules: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 11] = [
        Arc::new(OutputRequirements::new_add_mode()),
        Arc::new(EnsureRequirements::new()),
        Arc::new(CombinePartialFinalAggregate::new()),
        Arc::new(OptimizeAggregateOrder::new()),
        Arc::new(ProjectionPushdown::new()),
        Arc::new(OutputRequirements::new_remove_mode()),
        Arc::new(TopKAggregation::new()),
        Arc::new(LimitPushPastWindows::new()),
        Arc::new(LimitPushdown::new()),
        Arc::new(EnsureCooperative::new()),
        Arc::new(SanityCheckPlan::new()),
    ];
    let context = ConfigOnlyContext::new(options);
    for rule in rules {
        plan = rule.optimize_with_context(plan, &context)?;
    }
    Ok(plan)
}
