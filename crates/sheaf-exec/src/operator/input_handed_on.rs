//! What all operators say of themselves that hand on the batches of their one `input`, as they are and in their order.
//!
//! Each of them is there for something that happens on the way: it can be stopped, measured, counted. To the planner
//! they are all the same.

/// Members of an [`ExecutionPlan`](datafusion_physical_plan::ExecutionPlan) with the field `input`.
macro_rules! input_handed_on {
    () => {
        /// Those of the input itself, not equal ones, so that the operators above keep theirs when they get this one
        /// for an input.
        fn properties(&self) -> &::std::sync::Arc<::datafusion_physical_plan::PlanProperties> {
            self.input.properties()
        }

        fn children(
            &self,
        ) -> Vec<&::std::sync::Arc<dyn ::datafusion_physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn cardinality_effect(
            &self,
        ) -> ::datafusion_physical_plan::execution_plan::CardinalityEffect {
            ::datafusion_physical_plan::execution_plan::CardinalityEffect::Equal
        }

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion_physical_expr::PhysicalExpr>,
            ) -> ::datafusion_common::Result<
                ::datafusion_common::tree_node::TreeNodeRecursion,
            >,
        ) -> ::datafusion_common::Result<::datafusion_common::tree_node::TreeNodeRecursion> {
            Ok(::datafusion_common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

pub(crate) use input_handed_on;
