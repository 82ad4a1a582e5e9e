//! The equalities of a join's condition become its keys.
//!
//! DataFusion's ExtractEquijoinPredicate does the same, but if a join has no other key it takes `a <=> b` for one. Then
//! NULL equals NULL in all keys of the join. A condition that is pushed into the join later brings further keys, and
//! these are plain equalities:
//!
//! ```text
//!   x JOIN y ON x.a <=> y.a  WHERE x.b = y.b        keys (a, b), NULL equals NULL      wrong: it joins NULLs of b
//!                                                   key b, condition a <=> a           right
//! ```
//!
//! So only `=` becomes a key here. Whether NULL equals NULL is a matter of each pair of keys, which
//! [`crate::logical::join_graph`] finds in the condition.

use datafusion_common::tree_node::Transformed;
use datafusion_common::{NullEquality, Result};
use datafusion_expr::utils::{
    can_hash, conjunction, find_valid_equijoin_key_pair, split_conjunction_owned,
};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator};
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

/// See the module's comment.
#[derive(Debug)]
pub(crate) struct ExtractJoinKeys;

impl OptimizerRule for ExtractJoinKeys {
    fn name(&self) -> &str {
        "extract_join_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) => Ok(with_keys(join)?.update_data(LogicalPlan::Join)),
            other => Ok(Transformed::no(other)),
        }
    }
}

fn with_keys(mut join: Join) -> Result<Transformed<Join>> {
    // The keys of EXCEPT and INTERSECT are equal where both are NULL; no others come to them.
    if join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty() {
        return Ok(Transformed::no(join));
    }
    let Some(filter) = join.filter.take() else {
        return Ok(Transformed::no(join));
    };
    let mut rest = Vec::new();
    let mut is_changed = false;
    for part in split_conjunction_owned(filter) {
        match key(&part, &join)? {
            Some(pair) => {
                join.on.push(pair);
                join.null_equality = NullEquality::NullEqualsNothing;
                is_changed = true;
            }
            None => rest.push(part),
        }
    }
    join.filter = conjunction(rest);
    Ok(Transformed::new_transformed(join, is_changed))
}

/// What an equality of both sides equates, the left side's expression first.
fn key(part: &Expr, join: &Join) -> Result<Option<(Expr, Expr)>> {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Eq,
        right,
    }) = part
    else {
        return Ok(None);
    };
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    let pair = find_valid_equijoin_key_pair(left, right, left_schema, right_schema)?;
    Ok(match pair {
        Some((left, right))
            if can_hash(&left.get_type(left_schema)?)
                && can_hash(&right.get_type(right_schema)?) =>
        {
            Some((left, right))
        }
        _ => None,
    })
}
