//! A correlated subquery, which is planned with the values of its outer rows.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::FieldRef;
use datafusion_common::{Column, Result, ScalarValue};
use datafusion_expr::{ExprSchemable, LogicalPlan};
use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::{SheafTableSource, for_each_node};
use sheaf_table::Table;

use crate::logical::apply::{Apply, Given, varies, with_given};
use crate::{PlannerContext, Trace, optimize_logical, plan_physical};

/// The subquery of an [`Apply`], to be planned with values.
#[derive(Clone)]
pub(crate) struct AppliedSubquery {
    pub(crate) plan: Arc<LogicalPlan>,
    pub(crate) outer: Vec<Column>,
    /// What it is correlated by has these types.
    pub(crate) fields: Arc<[FieldRef]>,
    pub(crate) tables: Vec<Arc<Table>>,
    /// It may give something else for each row, whatever it is correlated by.
    pub(crate) varies: bool,
    pub(crate) context: PlannerContext,
    /// The plan with places for what it is correlated by, optimised; `None` if there cannot be one plan for all runs.
    pub(crate) with_places: Arc<OnceLock<Option<LogicalPlan>>>,
}

impl AppliedSubquery {
    pub(crate) fn new(apply: &Apply, context: &PlannerContext) -> Result<AppliedSubquery> {
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for_each_node(&apply.subquery, &mut |node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(source) = scan.source.downcast_ref::<SheafTableSource>()
            {
                tables.push(Arc::clone(&source.table));
            }
            Ok(())
        })?;
        let schema = apply.input.schema();
        let fields = apply.parameters.iter();
        let fields = fields.map(|parameter| Ok(parameter.to_field(schema)?.1));
        let mut context = context.clone();
        // It is planned for every row.
        context.trace = Trace::default();
        context.settings.target_partitions = 1;
        context.places = None;
        Ok(AppliedSubquery {
            plan: Arc::clone(&apply.subquery),
            outer: apply.outer.clone(),
            fields: fields.collect::<Result<_>>()?,
            tables,
            varies: varies(&apply.subquery)?,
            context,
            with_places: Arc::default(),
        })
    }

    /// The subquery with values for what it is correlated by, optimised.
    pub(crate) fn with_values(&self, values: &[ScalarValue]) -> Result<LogicalPlan> {
        let values: Vec<_> = values.iter().cloned().map(Given::Value).collect();
        let given: Vec<_> = self.outer.iter().zip(values.iter()).collect();
        let plan = with_given(self.plan.as_ref().clone(), &given)?;
        optimize_logical(plan, &self.context)
    }

    /// A plan of it for these values alone.
    pub(crate) fn plan(&self, values: &[ScalarValue]) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.with_values(values)?;
        Ok(plan_physical(&plan, &self.context)?.plan)
    }
}

impl fmt::Debug for AppliedSubquery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppliedSubquery").finish_non_exhaustive()
    }
}
