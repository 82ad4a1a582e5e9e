//! Checks a plan that is about to run.
//!
//! Operators rely on each other: a merge join on the order of its inputs, a projection on the places of columns, a
//! reader of a column on whether it can be NULL. Rules move and replace operators, each on the strength of what the
//! others promise. If one of them is wrong, nothing fails: rows come in the wrong order, are lost, or have the wrong
//! values. So the finished plan is walked once. A statement whose plan contradicts itself fails with an error that
//! names the operator:
//!
//! | what | where |
//! |---|---|
//! | each input is divided between workers, and ordered, as the operator requires | [`requirements`] |
//! | the last operator delivers the order that ORDER BY asks for, in one stream | [`promise`] |
//! | columns that expressions read are there, and sides of a join's keys have one type | [`structure`] |
//! | a column may be NULL where its input may, and on the other side of an outer join | [`structure`] |
//!
//! A defect of an operator itself may still break what it promises: values are NULL, or in the wrong order. In tests
//! [`sheaf_exec::operator::checked_rows`] looks for that.

mod constants;
mod promise;
mod requirements;
mod structure;

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::LogicalPlan;
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::functions::error::EvaluationError;
use sheaf_types::error::codes;

/// See the module's comment. `logical` is what `plan` is the plan of, and `properties` are those it was planned with.
pub(crate) fn check(
    plan: &Arc<dyn ExecutionPlan>,
    logical: &LogicalPlan,
    properties: &ExecutionProps,
    options: &ConfigOptions,
) -> Result<()> {
    check_operators(plan, options)?;
    promise::check(plan, logical, properties)
}

/// An operator after what is below it.
fn check_operators(plan: &Arc<dyn ExecutionPlan>, options: &ConfigOptions) -> Result<()> {
    for child in plan.children() {
        check_operators(child, options)?;
    }
    structure::check(plan)?;
    requirements::check(plan, options)
}

/// The error of a plan that contradicts itself.
fn contradiction(plan: &Arc<dyn ExecutionPlan>, what: impl std::fmt::Display) -> DataFusionError {
    let operator = plan.name();
    let message = format!("the plan of this statement contradicts itself at {operator}: {what}");
    DataFusionError::External(Box::new(EvaluationError::new(
        codes::UNKNOWN_ERROR,
        message,
    )))
}
