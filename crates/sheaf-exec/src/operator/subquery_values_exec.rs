//! Subqueries that are values and take nothing from outside run first, once, and a few at a time.
//!
//! ```text
//!   SELECT (q1), (q2), ..
//!
//!   SubqueryValuesExec
//!     |- the plan that reads the values from their slots
//!     |- operators of q1 --> slot 1
//!     '- operators of q2 --> slot 2
//! ```
//!
//! DataFusion's operator for this starts all subqueries at the same time. A thousand of them took 28 MiB for batches
//! before the first one had read a row.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion_common::{DataFusionError, Result, ScalarValue, exec_err, internal_err};
use datafusion_execution::TaskContext;
use datafusion_expr::physical_planning_context::ScalarSubqueryResults;
use datafusion_physical_plan::scalar_subquery::ScalarSubqueryLink;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
    execute_stream,
};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt, TryStreamExt, future};

use crate::functions::limits::ask_for;
use crate::operator::plan_members::no_expressions;

/// Subqueries that run at the same time.
const MAX_AT_ONCE: usize = 4;

/// A run that all partitions wait for.
type Run = Shared<BoxFuture<'static, Result<(), Arc<DataFusionError>>>>;

/// See the module's comment. Its children are the input and the operators of the subqueries.
#[derive(Debug)]
pub struct SubqueryValuesExec {
    input: Arc<dyn ExecutionPlan>,
    subqueries: Vec<ScalarSubqueryLink>,
    /// Where expressions of the input find the values.
    results: ScalarSubqueryResults,
    run: Mutex<Option<Run>>,
}

impl SubqueryValuesExec {
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        subqueries: Vec<ScalarSubqueryLink>,
        results: ScalarSubqueryResults,
    ) -> SubqueryValuesExec {
        SubqueryValuesExec {
            input,
            subqueries,
            results,
            run: Mutex::new(None),
        }
    }

    /// The plan that reads the values.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    pub fn subqueries(&self) -> &[ScalarSubqueryLink] {
        &self.subqueries
    }

    fn of_each_child<T>(&self, of_input: T, of_subqueries: impl Fn() -> T) -> Vec<T> {
        let of_subqueries = self.subqueries.iter().map(|_| of_subqueries());
        std::iter::once(of_input).chain(of_subqueries).collect()
    }

    /// The run, which begins now unless it has begun.
    fn run(&self, context: &Arc<TaskContext>) -> Run {
        // A value that is right after each change.
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = run.get_or_insert_with(|| {
            let values = values(
                self.subqueries.clone(),
                self.results.clone(),
                Arc::clone(context),
            );
            values.map(|done| done.map_err(Arc::new)).boxed().shared()
        });
        begun.clone()
    }
}

async fn values(
    subqueries: Vec<ScalarSubqueryLink>,
    results: ScalarSubqueryResults,
    context: Arc<TaskContext>,
) -> Result<()> {
    let runs = subqueries.into_iter().map(|subquery| {
        let (results, context) = (results.clone(), Arc::clone(&context));
        async move {
            let value = value(subquery.plan, context).await?;
            let bytes = value.size();
            results.set(subquery.index, value)?;
            Ok::<usize, DataFusionError>(bytes)
        }
    });
    let runs = futures::stream::iter(runs).buffer_unordered(MAX_AT_ONCE);
    let sum = |sum: usize, bytes| future::ready(Ok(sum.saturating_add(bytes)));
    // The expressions that read the values make copies of them all at once.
    ask_for(runs.try_fold(0, sum).await?)
}

/// The value of the only row; NULL without one.
async fn value(plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<ScalarValue> {
    let schema = plan.schema();
    let [field] = schema.fields().as_ref() else {
        return internal_err!("a value of {} columns", schema.fields().len());
    };
    let mut rows = execute_stream(plan, context)?;
    let mut found = None;
    while let Some(batch) = rows.try_next().await? {
        match batch.num_rows() {
            0 => {}
            1 if found.is_none() => {
                found = Some(ScalarValue::try_from_array(batch.column(0), 0)?);
            }
            // SqlError knows it by this text, which is DataFusion's.
            _ => return exec_err!("Scalar subquery returned more than one row"),
        }
    }
    found.map_or_else(|| ScalarValue::try_from(field.data_type()), Ok)
}

impl DisplayAs for SubqueryValuesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SubqueryValuesExec: {}", self.subqueries.len())
    }
}

impl ExecutionPlan for SubqueryValuesExec {
    fn name(&self) -> &'static str {
        "SubqueryValuesExec"
    }

    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        let subqueries = self.subqueries.iter().map(|subquery| &subquery.plan);
        std::iter::once(&self.input).chain(subqueries).collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.of_each_child(true, || false)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.of_each_child(false, || false)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut children = children.into_iter();
        let Some(input) = children.next() else {
            return internal_err!("values of subqueries without the plan that reads them");
        };
        let indexes = self.subqueries.iter().map(|subquery| subquery.index);
        let subqueries = indexes
            .zip(children)
            .map(|(index, plan)| ScalarSubqueryLink { plan, index });
        Ok(Arc::new(SubqueryValuesExec::new(
            input,
            subqueries.collect(),
            self.results.clone(),
        )))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        self.results.clear();
        Ok(Arc::new(SubqueryValuesExec::new(
            Arc::clone(&self.input),
            self.subqueries.clone(),
            self.results.clone(),
        )))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (run, input) = (self.run(&context), Arc::clone(&self.input));
        let rows = futures::stream::once(async move {
            run.await.map_err(DataFusionError::Shared)?;
            // Its expressions read the values when they are made for a run.
            input.execute(partition, context)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            rows.try_flatten(),
        )))
    }
}
