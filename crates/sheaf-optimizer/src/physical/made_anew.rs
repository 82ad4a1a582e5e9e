//! Nodes of operators that rules of DataFusion's make anew.
//!
//! Most operators of a plan that a rule has changed are [made of those before](sheaf_exec::operator::node_id), and
//! belong to their nodes. Three rules take some operators apart and make others of the parts. What they may change is
//! known: projections come, go and move, and so do limits. All others stay where they are, one for one. So both plans
//! are walked over together, and each operator that belongs to no node gets the one that it had:
//!
//! | rule | makes anew |
//! |---|---|
//! | ProjectionPushdown | joins of pairs by a condition |
//! | TopKAggregation | sorts of first rows, and the groups below them |
//! | LimitPushdown | limits: each is taken out, and put in again where it comes to something that it cannot pass |

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::{ExecutionPlan, replace_children_if_necessary};
use sheaf_exec::operator::node_id::{NodeId, of_node};

/// The plan `after` one of these rules, whose operators belong to the nodes that they had before. See the module's
/// comment.
pub(super) fn with_nodes_of(
    before: &Arc<dyn ExecutionPlan>,
    after: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    walk(before, after, None)
}

/// A limit that a rule has taken out, and not put in again so far.
#[derive(Clone, Copy)]
struct Limit {
    node: NodeId,
    is_global: bool,
}

impl Limit {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Limit> {
        Some(Limit {
            node: NodeId::of(plan)?,
            is_global: plan.is::<GlobalLimitExec>(),
        })
    }

    /// Whether an operator does what the limit did. What gathers the rows of workers may end by itself.
    fn is_in(self, plan: &Arc<dyn ExecutionPlan>) -> bool {
        match self.is_global {
            true => {
                plan.is::<GlobalLimitExec>()
                    || plan.is::<CoalescePartitionsExec>() && plan.fetch().is_some()
            }
            false => plan.is::<LocalLimitExec>(),
        }
    }
}

fn is_limit(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>()
}

fn walk(
    before: &Arc<dyn ExecutionPlan>,
    after: Arc<dyn ExecutionPlan>,
    mut limit: Option<Limit>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if Arc::ptr_eq(before, &after) {
        return Ok(after);
    }
    let mut before = before;
    while (before.is::<ProjectionExec>() || is_limit(before))
        && let [input] = before.children().as_slice()
    {
        limit = match is_limit(before) {
            true => Limit::of(before),
            false => limit,
        };
        before = input;
    }
    let own = limit.filter(|limit| limit.is_in(&after));
    if own.is_some() {
        limit = None;
    }
    let children = after.children();
    let moves = after.is::<ProjectionExec>() || is_limit(&after);
    let made = if let ([input], true) = (children.as_slice(), moves) {
        vec![walk(before, Arc::clone(input), limit)?]
    } else {
        let children_before = before.children();
        let is_known = children_before.len() == children.len();
        debug_assert!(is_known, "{} for {}", after.name(), before.name());
        if !is_known {
            return Ok(after);
        }
        // Each of several inputs has a limit of its own.
        let limit = limit.filter(|_| children.len() == 1);
        let pairs = children_before.into_iter().zip(children);
        let made = pairs.map(|(before, after)| walk(before, Arc::clone(after), limit));
        made.collect::<Result<Vec<_>>>()?
    };
    let node = match moves {
        true => None,
        false => NodeId::of(before),
    };
    let plan = replace_children_if_necessary(after, made)?;
    Ok(match own.map(|limit| limit.node).or(node) {
        Some(node) => of_node(node, plan),
        None => plan,
    })
}
