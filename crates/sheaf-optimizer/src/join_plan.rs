//! The operators of a tree of joins.

use datafusion_common::{Result, not_impl_err};
use datafusion_expr::LogicalPlan;

use crate::physical_planner::{Block, Planned, Planner, Wanted};

pub(crate) fn plan_joins(
    _: &mut Planner<'_>,
    _: &LogicalPlan,
    _: &Block,
    _: &Wanted,
) -> Result<Planned> {
    not_impl_err!("joins")
}
