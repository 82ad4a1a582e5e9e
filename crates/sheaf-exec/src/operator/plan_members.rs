//! What many operators say of themselves in the same words: members of an
//! [`ExecutionPlan`](datafusion_physical_plan::ExecutionPlan).
//!
//! | macro | for operators |
//! |---|---|
//! | [`no_expressions`] | that have no expressions |
//! | [`leaf`] | that read nothing of other operators, with the field `properties` |
//! | [`makes_rows`] | that make rows of those of their `input`, with `properties` of their own |
//! | [`row_for_row`] | of these, that make one row of each |
//! | [`with_input`] | that are made anew with another `input` |
//! | [`input_handed_on`] | that hand on the batches of their `input`, as they are and in their order |
//!
//! Each operator of the last kind is there for something that happens on the way: it can be stopped, measured, counted.
//! To the planner they are all the same.

macro_rules! no_expressions {
    () => {
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

macro_rules! leaf {
    () => {
        fn properties(&self) -> &::std::sync::Arc<::datafusion_physical_plan::PlanProperties> {
            &self.properties
        }

        fn children(
            &self,
        ) -> Vec<&::std::sync::Arc<dyn ::datafusion_physical_plan::ExecutionPlan>> {
            Vec::new()
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            _: Vec<::std::sync::Arc<dyn ::datafusion_physical_plan::ExecutionPlan>>,
        ) -> ::datafusion_common::Result<
            ::std::sync::Arc<dyn ::datafusion_physical_plan::ExecutionPlan>,
        > {
            Ok(self)
        }

        $crate::operator::plan_members::no_expressions!();
    };
}

/// `one_input!(Equal)`: how many rows there are next to those of the input.
macro_rules! one_input {
    ($effect:ident) => {
        fn children(
            &self,
        ) -> Vec<&::std::sync::Arc<dyn ::datafusion_physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn cardinality_effect(
            &self,
        ) -> ::datafusion_physical_plan::execution_plan::CardinalityEffect {
            ::datafusion_physical_plan::execution_plan::CardinalityEffect::$effect
        }
    };
}

/// `with_input!(|plan, input| ...)` makes the operator that takes the place of `plan` above another input.
macro_rules! with_input {
    (|$plan:pat_param, $input:ident| $made:expr) => {
        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            mut children: Vec<::std::sync::Arc<dyn ::datafusion_physical_plan::ExecutionPlan>>,
        ) -> ::datafusion_common::Result<
            ::std::sync::Arc<dyn ::datafusion_physical_plan::ExecutionPlan>,
        > {
            let Some($input) = children.pop() else {
                return ::datafusion_common::internal_err!("{} without its input", self.name());
            };
            let $plan = self.as_ref();
            Ok(::std::sync::Arc::new($made))
        }
    };
}

/// `makes_rows!(GreaterEqual)`: how many rows are made next to those of the input.
macro_rules! makes_rows {
    ($effect:ident) => {
        fn properties(&self) -> &::std::sync::Arc<::datafusion_physical_plan::PlanProperties> {
            &self.properties
        }

        $crate::operator::plan_members::one_input!($effect);
    };
}

macro_rules! row_for_row {
    () => {
        $crate::operator::plan_members::makes_rows!(Equal);
    };
}

macro_rules! input_handed_on {
    () => {
        /// Those of the input itself, not equal ones, so that the operators above keep theirs when they get this one
        /// for an input.
        fn properties(&self) -> &::std::sync::Arc<::datafusion_physical_plan::PlanProperties> {
            self.input.properties()
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        $crate::operator::plan_members::one_input!(Equal);
        $crate::operator::plan_members::no_expressions!();
    };
}

pub(crate) use {
    input_handed_on, leaf, makes_rows, no_expressions, one_input, row_for_row, with_input,
};
