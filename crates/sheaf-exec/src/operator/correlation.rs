//! What a query that runs for each row is correlated by, and what its runs have given.
//!
//! ```text
//!   Correlation   an operator's: expressions over rows of its input, and what gives plans for their values
//!     Runs        one stream's: the values of each row, a run for those that are new, and what is remembered of them
//! ```
//!
//! What gives the plans ([`Subplans`]) gives one for each combination of values. As a rule that is one plan, which is
//! bound to the values ([`bound_values`](crate::operator::bound_values)). What a run has given is remembered, as much
//! as [`MAX_KNOWN_BYTES`] hold, unless the query may give something else each time.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, ScalarValue};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
    execute_stream,
};
use sheaf_access::CancelFlag;
use sheaf_table::Table;

use crate::memory_pool::without_waiting;
use crate::operator::scan_exec::access_error;

/// Bytes of results and of what they follow from that are remembered. If there are more, all are forgotten.
const MAX_KNOWN_BYTES: usize = 4 << 20;

/// Plans a query.
pub trait Subplans: fmt::Debug + Send + Sync {
    /// Plans for the rows of one stream.
    fn begin(&self) -> Box<dyn SubplanRuns>;

    /// The tables that it reads.
    fn tables(&self) -> &[Arc<Table>];

    /// Whether it may give something else for the same parameters.
    fn varies(&self) -> bool;
}

/// The plans of a query for runs that follow each other.
pub trait SubplanRuns: Send {
    /// A plan of it where what it is correlated by has these values. It runs once, and not beyond the next call.
    fn plan(&mut self, parameters: &[ScalarValue]) -> Result<Arc<dyn ExecutionPlan>>;
}

/// A query, and what it is correlated by.
#[derive(Clone, Debug)]
pub(super) struct Correlation {
    /// Over rows of the operator's input.
    pub(super) parameters: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) subplans: Arc<dyn Subplans>,
    pub(super) cancel: CancelFlag,
}

impl Correlation {
    /// As the operator's member of that name.
    pub(super) fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for parameter in &self.parameters {
            if f(parameter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    /// The runs of one stream. `consumer` is what the memory pool calls that which is remembered.
    pub(super) fn runs<T: Clone>(&self, consumer: &str, context: Arc<TaskContext>) -> Runs<T> {
        Runs {
            parameters: self.parameters.clone(),
            subplans: self.subplans.begin(),
            varies: self.subplans.varies(),
            cancel: self.cancel.clone(),
            known: HashMap::new(),
            for_known: MemoryConsumer::new(consumer).register(context.memory_pool()),
            context,
        }
    }
}

/// The properties of an operator that gives the rows of its input, in their order, further columns.
pub(super) fn properties_beside(
    input: &Arc<dyn ExecutionPlan>,
    schema: &SchemaRef,
) -> Arc<PlanProperties> {
    let orders = input.equivalence_properties().oeq_class().iter().cloned();
    let equivalences = EquivalenceProperties::new_with_orderings(Arc::clone(schema), orders);
    Arc::new(PlanProperties::new(
        equivalences,
        input.output_partitioning().clone(),
        input.pipeline_behavior(),
        input.boundedness(),
    ))
}

/// The runs of a query for the rows of one stream, each of which gives a `T`.
pub(super) struct Runs<T> {
    parameters: Vec<Arc<dyn PhysicalExpr>>,
    subplans: Box<dyn SubplanRuns>,
    varies: bool,
    cancel: CancelFlag,
    /// What runs have given, by the values that they ran for.
    known: HashMap<Vec<ScalarValue>, T>,
    for_known: MemoryReservation,
    context: Arc<TaskContext>,
}

impl<T: Clone> Runs<T> {
    /// What the query is correlated by, in the rows of a batch.
    pub(super) fn parameters_of(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let parameters = self.parameters.iter();
        let of_batch =
            |of: &Arc<dyn PhysicalExpr>| of.evaluate(batch)?.into_array(batch.num_rows());
        parameters.map(of_batch).collect()
    }

    /// The values of one row.
    ///
    /// # Errors
    /// The statement was stopped.
    pub(super) fn values_at(
        &self,
        parameters: &[ArrayRef],
        row: usize,
    ) -> Result<Vec<ScalarValue>> {
        self.cancel.check().map_err(access_error)?;
        let values = parameters.iter();
        let value = |column: &ArrayRef| ScalarValue::try_from_array(column, row);
        values.map(value).collect()
    }

    /// What a run for these values has given.
    pub(super) fn known(&self, values: &[ScalarValue]) -> Option<T> {
        self.known.get(values).cloned()
    }

    /// Begins a run.
    pub(super) fn run(&mut self, values: &[ScalarValue]) -> Result<SendableRecordBatchStream> {
        let plan = self.subplans.plan(values)?;
        execute_stream(plan, Arc::clone(&self.context))
    }

    /// Remembers what a run for these values has given, where that is the same each time and there is memory for it.
    /// `bytes`: of what it has given.
    pub(super) fn remember(&mut self, values: Vec<ScalarValue>, found: &T, bytes: usize) {
        if self.varies {
            return;
        }
        let bytes = bytes + values.iter().map(ScalarValue::size).sum::<usize>();
        if self.for_known.size() + bytes > MAX_KNOWN_BYTES {
            self.known.clear();
            self.for_known.free();
        }
        let fits = bytes <= MAX_KNOWN_BYTES;
        if fits && without_waiting(|| self.for_known.try_grow(bytes)).is_ok() {
            self.known.insert(values, found.clone());
        }
    }
}
