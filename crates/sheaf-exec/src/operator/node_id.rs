//! Which node of a plan an operator belongs to, so that what was known of it when it was planned is found again when it
//! is shown.
//!
//! The planner gives each operator that it makes the number of its node. Rules then make other operators of it: with
//! other inputs, fewer columns or a limit. Those belong to the same node. What rules add (exchanges, sorts that an
//! operator requires) belongs to none.
//!
//! ```text
//!   planned              after the rules
//!   Sort 3               Merge             added
//!     Filter 2             Sort 3          made anew, with a limit
//!       Scan 1               Filter 2
//!                              Scan 1
//! ```
//!
//! An operator has no place for a number, so a [`NodeExec`] stands in its place. It is the operator, to whatever asks
//! what it is, has or requires, and gives its number to what is made of it. It takes no part in the run. What makes an
//! operator of another one's parts says so by [`in_place_of`].

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, Statistics};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion_physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, InvariantLevel, ReplaceChildrenOptions,
};
use datafusion_physical_plan::metrics::MetricsSet;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements,
    PlanProperties, SendableRecordBatchStream, StatisticsArgs, replace_children_if_necessary,
};

/// The number of a node, and of all operators that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u64);

impl NodeId {
    /// A number that no other node of the process has.
    pub fn fresh() -> NodeId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NodeId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// That of an operator; `None` if it belongs to no node.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<NodeId> {
        Some(NodeExec::of(plan)?.id)
    }
}

/// The operator as one of a node. One that belongs to a node already stays there.
pub fn of_node(id: NodeId, plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match NodeId::of(&plan) {
        Some(_) => plan,
        None => Arc::new(NodeExec { id, operator: plan }),
    }
}

/// An operator that was made of the parts of another one, as one of the same node.
pub fn in_place_of(
    old: &Arc<dyn ExecutionPlan>,
    new: Arc<dyn ExecutionPlan>,
) -> Arc<dyn ExecutionPlan> {
    match NodeId::of(old) {
        Some(id) => of_node(id, new),
        None => new,
    }
}

/// See the module's comment.
#[derive(Debug)]
struct NodeExec {
    id: NodeId,
    operator: Arc<dyn ExecutionPlan>,
}

impl NodeExec {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<&NodeExec> {
        let plan: &dyn Any = plan.as_ref();
        plan.downcast_ref::<NodeExec>()
    }

    /// What was made of the operator.
    fn made(&self, operator: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        of_node(self.id, operator)
    }

    /// The same where it may be the operator itself: then nothing has changed.
    fn made_or_same(self: Arc<Self>, made: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        match Arc::ptr_eq(&made, &self.operator) {
            true => self,
            false => self.made(made),
        }
    }

    /// Whether another operator is of the same type.
    fn is_alike(&self, other: &Arc<dyn ExecutionPlan>) -> bool {
        let own: &dyn Any = self.operator.as_ref();
        let other: &dyn Any = other.as_ref();
        own.type_id() == other.type_id()
    }
}

impl DisplayAs for NodeExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        self.operator.fmt_as(format, f)
    }
}

/// Filters and sorts are not pushed down when a plan has operators. So what asks for that is not answered.
impl ExecutionPlan for NodeExec {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.operator.as_ref())
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.operator.properties()
    }

    fn check_invariants(&self, check: InvariantLevel) -> Result<()> {
        self.operator.check_invariants(check)
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.operator.dynamic_expressions_produced()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.operator.input_distribution_requirements()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.operator.required_input_ordering()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.operator.maintains_input_order()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.operator.benefits_from_input_partitioning()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.operator.children()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let made = Arc::clone(&self.operator).replace_children(children, options)?;
        Ok(self.made_or_same(made))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.operator.apply_expressions(visit)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let made = Arc::clone(&self.operator).reset_state()?;
        Ok(self.made_or_same(made))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.operator.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.operator.metrics()
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.operator.statistics_from_inputs(input_stats, args)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.operator.child_stats_requests(partition)
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.operator.supports_limit_pushdown()
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(self.made(self.operator.with_fetch(limit)?))
    }

    fn fetch(&self) -> Option<usize> {
        self.operator.fetch()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.operator.cardinality_effect()
    }

    /// A join that has taken in a part of the projection may have the rest of it above.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(swapped) = self.operator.try_swapping_with_projection(projection)? else {
            return Ok(None);
        };
        if self.is_alike(&swapped) {
            return Ok(Some(self.made(swapped)));
        }
        let below = match swapped.downcast_ref::<ProjectionExec>() {
            Some(rest) if self.is_alike(rest.input()) => self.made(Arc::clone(rest.input())),
            _ => return Ok(Some(swapped)),
        };
        Ok(Some(replace_children_if_necessary(swapped, vec![below])?))
    }

    fn with_new_state(&self, state: Arc<dyn Any + Send + Sync>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(self.made(self.operator.with_new_state(state)?))
    }

    fn with_preserve_order(&self, preserve_order: bool) -> Option<Arc<dyn ExecutionPlan>> {
        Some(self.made(self.operator.with_preserve_order(preserve_order)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion_physical_expr::LexOrdering;
    use datafusion_physical_expr::expressions::Column;
    use datafusion_physical_expr::{PhysicalSortExpr, expressions::lit};
    use datafusion_physical_plan::empty::EmptyExec;
    use datafusion_physical_plan::filter::FilterExec;
    use datafusion_physical_plan::projection::{ProjectionExpr, remove_unnecessary_projections};
    use datafusion_physical_plan::sorts::sort::SortExec;

    fn numbered(plan: impl ExecutionPlan + 'static) -> (NodeId, Arc<dyn ExecutionPlan>) {
        let id = NodeId::fresh();
        (id, of_node(id, Arc::new(plan)))
    }

    fn rows() -> EmptyExec {
        let field = |name| Field::new(name, DataType::Int64, false);
        EmptyExec::new(Arc::new(Schema::new(vec![field("a"), field("b")])))
    }

    fn by_a() -> LexOrdering {
        LexOrdering::new([PhysicalSortExpr::new_default(Arc::new(Column::new("a", 0)))]).unwrap()
    }

    #[test]
    fn what_is_made_of_an_operator_belongs_to_its_node() {
        let (leaf, rows) = numbered(rows());
        let (id, sort) = numbered(SortExec::new(by_a(), Arc::clone(&rows)));
        assert!(sort.is::<SortExec>());
        assert_eq!(
            (NodeId::of(&rows), NodeId::of(&sort)),
            (Some(leaf), Some(id))
        );
        let limited = sort.with_fetch(Some(3)).unwrap();
        assert_eq!((NodeId::of(&limited), limited.fetch()), (Some(id), Some(3)));
        let again = Arc::clone(&sort).reset_state().unwrap();
        assert_eq!(NodeId::of(&again), Some(id));
        let other = Arc::clone(&rows).reset_state().unwrap();
        let moved = replace_children_if_necessary(sort, vec![other]).unwrap();
        assert_eq!(NodeId::of(&moved), Some(id));
        assert_eq!(NodeId::of(moved.children()[0]), Some(leaf));
    }

    #[test]
    fn an_operator_stays_in_its_node() {
        let (id, rows) = numbered(rows());
        let same = of_node(NodeId::fresh(), Arc::clone(&rows));
        assert!(Arc::ptr_eq(&same, &rows));
        let sort: Arc<dyn ExecutionPlan> = Arc::new(SortExec::new(by_a(), Arc::clone(&rows)));
        assert_eq!(NodeId::of(&in_place_of(&rows, Arc::clone(&sort))), Some(id));
        assert_eq!(NodeId::of(&in_place_of(&sort, Arc::clone(&sort))), None);
    }

    #[test]
    fn an_operator_keeps_its_node_below_a_projection_and_above() {
        let (_, rows) = numbered(rows());
        let (id, sort) = numbered(SortExec::new(by_a(), rows));
        let (condition, filter) = numbered(FilterExec::try_new(lit(true), sort).unwrap());
        let list = vec![ProjectionExpr::new(Arc::new(Column::new("a", 0)), "a")];
        let above = ProjectionExec::try_new(list, filter).unwrap();
        let pushed = remove_unnecessary_projections(Arc::new(above)).unwrap();
        assert!(pushed.transformed);
        let mut found = Vec::new();
        let mut plan = &pushed.data;
        loop {
            found.extend(NodeId::of(plan));
            match plan.children().as_slice() {
                [child] => plan = child,
                _ => break,
            }
        }
        assert_eq!(found[..2], [condition, id]);
    }
}
