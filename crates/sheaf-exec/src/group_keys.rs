//! Whether what schemas say of keys can be relied on.
//!
//! DataFusion keeps for each schema which columns determine others. Of groups it says too much. Where one of several
//! group columns is the key of one table of a join, DataFusion says that it determines the whole group, although the
//! columns of the other tables differ among rows with this key.
//!
//! ```text
//!   SELECT a.k, b.x FROM a JOIN b .. GROUP BY a.k, b.x
//!   said: k determines x       right: k determines a's columns
//! ```

use datafusion_expr::LogicalPlan;

/// True where a plan has groups by several columns of a join: its schema may say too much then.
pub fn has_doubtful_keys(plan: &LogicalPlan) -> bool {
    let is_doubtful = match plan {
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.len() > 1 && contains_join(&aggregate.input)
        }
        _ => false,
    };
    is_doubtful || plan.inputs().into_iter().any(has_doubtful_keys)
}

/// True where a plan joins something.
pub fn contains_join(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(_)) || plan.inputs().into_iter().any(contains_join)
}
