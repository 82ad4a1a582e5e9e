//! What the statement's hints leave of the planner's choices.
//!
//! Hints ride on the sources of the plan's tables ([`sheaf_exec::hints`]) and are read here. So the code that makes a
//! choice asks one question: Which switches hold for this index? May this subquery be a semijoin? A hint overrides
//! `optimizer_switch`. `join/hints.rs` has what hints say about joins.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_expr::{LogicalPlan, SubqueryAlias};
use sheaf_exec::SheafTableSource;
use sheaf_exec::hints::{BlockHints, TableHints};

use crate::settings::OptimizerSwitch;

/// The switches that hold for one index of a table reference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexSwitches {
    pub index_condition: bool,
    pub mrr: bool,
    pub mrr_cost_based: bool,
    /// When the table is the inner one of a keyed join.
    pub batched_key_access: bool,
    pub mrr_sort_keys: bool,
}

impl IndexSwitches {
    pub(crate) fn of(hints: &TableHints, index: &str, switch: &OptimizerSwitch) -> IndexSwitches {
        let mrr = hints.mrr.of(index);
        let batched_key_access = hints
            .batched_key_access
            .unwrap_or(switch.batched_key_access);
        IndexSwitches {
            index_condition: hints
                .index_condition
                .of(index)
                .unwrap_or(switch.index_condition_pushdown),
            mrr: mrr.unwrap_or(switch.mrr),
            mrr_cost_based: switch.mrr_cost_based && mrr != Some(true),
            batched_key_access,
            mrr_sort_keys: switch.mrr_sort_keys && batched_key_access,
        }
    }
}

/// The references to stored tables below a node, by number, each with its query block.
pub(crate) fn references_of(plan: &LogicalPlan) -> Result<Vec<(u32, Arc<BlockHints>)>> {
    let mut references = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = scan.source.downcast_ref::<SheafTableSource>()
        {
            references.push((source.reference, Arc::clone(&source.hints.block)));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(references)
}

/// The outermost query block of those below a node.
pub(crate) fn block_of(references: &[(u32, Arc<BlockHints>)]) -> Option<&Arc<BlockHints>> {
    let blocks = references.iter().map(|(_, block)| block);
    blocks.min_by_key(|block| block.number)
}

/// Whether the subquery that `plan` is may be joined in any order: NO_SEMIJOIN and SUBQUERY keep it from that.
pub(crate) fn may_be_semijoin(plan: &LogicalPlan, switch: &OptimizerSwitch) -> Result<bool> {
    let references = references_of(plan)?;
    Ok(is_semijoin(&references, switch))
}

pub(crate) fn is_semijoin(references: &[(u32, Arc<BlockHints>)], switch: &OptimizerSwitch) -> bool {
    let hint = block_of(references).and_then(|block| block.subquery.semijoin);
    hint.unwrap_or(switch.semijoin)
}

/// Whether NO_MERGE keeps a derived table from being merged into the query around it.
pub(crate) fn stays_derived(alias: &SubqueryAlias) -> bool {
    if matches!(alias.input.as_ref(), LogicalPlan::TableScan(_)) {
        return false;
    }
    let is_told = |block: &BlockHints| {
        let derived = block.derived.as_ref();
        derived.is_some_and(|(name, merge)| !merge && name == alias.alias.table())
    };
    let references = references_of(&alias.input).unwrap_or_default();
    references.iter().any(|(_, block)| is_told(block))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_goes_before_the_switch() {
        let mut hints = TableHints::default();
        hints.mrr.indexes.push(("i".to_string(), true));
        hints.index_condition.table = Some(false);
        let switch = OptimizerSwitch {
            mrr: false,
            ..OptimizerSwitch::default()
        };
        let switches = IndexSwitches::of(&hints, "I", &switch);
        assert!(switches.mrr && !switches.mrr_cost_based && !switches.index_condition);
        let switches = IndexSwitches::of(&hints, "j", &switch);
        assert!(!switches.mrr && switches.mrr_cost_based && !switches.index_condition);
    }
}
