//! UNION ALL: its parts at the same time, or one behind the other.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::{LogicalPlan, Union};
use datafusion_physical_plan::union::UnionExec;
use sheaf_exec::operator::gather_in_order_exec::{GatherInOrderExec, Running};
use sheaf_exec::operator::less_order_exec::without_constants;
use sheaf_exec::row_by_row::RowByRow;

use super::Planner;
use crate::access::wanted::Wanted;
use crate::estimate::risk::Risk;
use crate::physical::rules::one_stream;
use crate::planned::{Block, Planned};

impl Planner<'_> {
    pub(super) fn plan_union(&mut self, union: &Union, block: &Block) -> Result<Planned> {
        let mut plans = Vec::with_capacity(union.inputs.len());
        let (mut rows, mut cost_us) = (0.0, 0.0);
        let mut explain = Vec::new();
        for (position, input) in union.inputs.iter().enumerate() {
            let branch = if position == 0 {
                block.clone()
            } else {
                self.inner_block(block, "UNION")
            };
            let planned = self.plan(input, &branch, &Wanted::default())?;
            rows += planned.rows;
            cost_us += planned.cost_us;
            explain.extend(planned.explain);
            plans.push(planned.plan);
        }
        Ok(Planned {
            plan: match self.context.settings.is_thrifty() || assigns_variables(union)? {
                true => {
                    let plans = plans.into_iter().map(one_stream).collect();
                    let union = without_constants(UnionExec::try_new(plans)?)?;
                    Arc::new(GatherInOrderExec::new(union, Running::One))
                }
                false => without_constants(UnionExec::try_new(plans)?)?,
            },
            rows,
            cost_us,
            risk: Risk::none(cost_us),
            explain,
        })
    }
}

/// Whether parts of a union assign user variables: the next part may read them, so it begins when this one has ended.
fn assigns_variables(union: &Union) -> Result<bool> {
    let assigns = |node: &LogicalPlan| match node {
        LogicalPlan::Extension(extension) => extension.node.as_any().is::<RowByRow>(),
        _ => false,
    };
    for input in &union.inputs {
        if input.exists(|node| Ok(assigns(node)))? {
            return Ok(true);
        }
    }
    Ok(false)
}
