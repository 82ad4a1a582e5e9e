//! Keyed join: for each outer row, the rows of a table that match it through an index, a buffer-full at a time
//! (Batched Key Access).
//!
//! ```text
//!   outer rows --> keys --> [buffer: sorted keys] --> index --> (index condition) --> rows --> joined rows
//! ```
//!
//! One round: outer batches are collected until the key buffer is full. All their keys are looked up together, and the
//! matches are joined with the outer rows that they name. Semi, anti and mark joins and the unmatched rows of a left
//! join only mark outer rows. Those are delivered at the end of the round in their own order.
//!
//! Behind the keys there may be bounds of the next part of the index, and then a range is looked up for each outer row.
//! A range may hold more than what matches, but never less. The join's filter says what matches.
//!
//! Below a LIMIT a join may be told to [start small](KeyedJoin::starts_small). Its first round is of few rows and the
//! following ones double, so that little is looked up in vain. If the join [keeps order](KeyedJoin::in_order), the
//! matches of a round are put into the order of the outer rows. If not, they are delivered as they are found, and the
//! LIMIT may stop a round in its middle. Within a round keys are still sorted and pages prefetched.
//!
//! More outer rows may come than were expected, so many that a hash table would be cheaper than lookups. Then the join
//! [goes on with a table in memory](crate::keyed_join::lookup_switch), between two rounds.
//!
//! Memory is bounded by the key buffer and as many bytes of outer rows as [`OUTER_BYTES_PER_KEY_BYTE`] allows. A join
//! in order also holds the matches of [`MAX_SMALL_ROUND_ROWS`] outer rows, which are taken from the statement's memory.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::execution_plan::{CardinalityEffect, EmissionType};
use datafusion_physical_plan::joins::utils::JoinFilter;
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use sheaf_access::{Budget, CancelFlag, KeyedLookup, KeyedLookupSpec, Prices, SessionCounters};

use crate::keyed_join::held::Held;
use crate::keyed_join::join_type::marks_only;
use crate::keyed_join::key_encoder::KeyEncoder;
use crate::keyed_join::lookup_record::LookupRecord;
use crate::keyed_join::lookup_switch::{LookupSwitch, SharedSwitch, SwitchWatch, SwitchingJoin};
use crate::keyed_join::stream::{Inner, KeyedJoinStream, Round, State};
use crate::operator::noted_rows::NotedRows;
use crate::operator::scan_exec::{ScanCounts, access_error};
use crate::operator::shared_exec::{is_repeatable, is_same};

pub use crate::keyed_join::join_type::KeyedJoinType;
pub use crate::keyed_join::key_encoder::{BoundSide, KeyBound, KeyColumn};
pub use crate::keyed_join::stream::{FIRST_SMALL_ROUND_ROWS, MAX_SMALL_ROUND_ROWS};

/// Outer rows of a round may take this many times the memory of its keys (`buffer_bytes`).
pub const OUTER_BYTES_PER_KEY_BYTE: usize = 16;

/// A join of an outer plan with a table through one of its indexes.
#[derive(Debug)]
pub struct KeyedJoinExec {
    outer: Arc<dyn ExecutionPlan>,
    spec: Arc<KeyedLookupSpec>,
    /// One per leading part of the index.
    keys: Vec<KeyColumn>,
    /// Of the part behind them, if ranges are looked up.
    bounds: Vec<KeyBound>,
    join_type: KeyedJoinType,
    /// What a match must also satisfy; its left side is the outer row, its right side the looked-up row.
    filter: Option<JoinFilter>,
    /// Which columns of (outer ++ inner, or outer ++ mark) are delivered.
    projection: Vec<usize>,
    schema: SchemaRef,
    /// Names the table for EXPLAIN.
    alias: String,
    counters: Arc<SessionCounters>,
    cancel: CancelFlag,
    in_order: bool,
    starts_small: bool,
    budget: Option<(Budget, Prices)>,
    /// Records the keys that are looked up, if the transaction needs them. One for the join and its copies that
    /// planning has made.
    record: Arc<OnceLock<Arc<LookupRecord>>>,
    /// How it goes on when lookups have cost too much.
    switch: Option<Arc<SharedSwitch>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// The constructor's arguments.
pub struct KeyedJoin {
    pub outer: Arc<dyn ExecutionPlan>,
    pub spec: Arc<KeyedLookupSpec>,
    pub keys: Vec<KeyColumn>,
    /// Bounds of the part of the index behind the keys. What is in them may match; `filter` has to say whether it does.
    pub bounds: Vec<KeyBound>,
    pub join_type: KeyedJoinType,
    pub filter: Option<JoinFilter>,
    pub projection: Vec<usize>,
    /// The schema of the projected output.
    pub schema: SchemaRef,
    pub alias: String,
    pub counters: Arc<SessionCounters>,
    pub cancel: CancelFlag,
    /// Rows come in the order of the outer rows.
    pub in_order: bool,
    /// The first rows come soon.
    pub starts_small: bool,
    /// What the lookups may spend together with others, and what their work costs.
    pub budget: Option<(Budget, Prices)>,
    /// How it goes on when lookups have cost too much.
    pub switch: Option<LookupSwitch>,
}

impl KeyedJoinExec {
    pub fn new(join: KeyedJoin) -> Result<KeyedJoinExec> {
        if join.keys.len() != join.spec.key_parts {
            return internal_err!(
                "{} keys for {} parts of an index",
                join.keys.len(),
                join.spec.key_parts
            );
        }
        if join.bounds.is_empty() == join.spec.ranged {
            return internal_err!("a join by ranges with a lookup of keys, or the other way round");
        }
        if join.keys.is_empty() && join.switch.is_some() {
            return internal_err!("a join without keys goes on with a table of keys");
        }
        let KeyedJoin {
            outer,
            spec,
            keys,
            bounds,
            join_type,
            filter,
            projection,
            schema,
            alias,
            counters,
            cancel,
            in_order,
            starts_small,
            budget,
            switch,
        } = join;
        let in_order = in_order || marks_only(join_type);
        let switch = switch.map(|switch| {
            let join = SwitchingJoin {
                spec: Arc::clone(&spec),
                existence: marks_only(join_type) && filter.is_none() && spec.projection.is_empty(),
                alias: alias.clone(),
                counters: Arc::clone(&counters),
                cancel: cancel.clone(),
            };
            Arc::new(SharedSwitch::new(switch, join))
        });
        let properties = Arc::new(properties(&outer, in_order, &projection, &schema)?);
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(KeyedJoinExec {
            outer,
            spec,
            keys,
            bounds,
            join_type,
            filter,
            projection,
            schema,
            alias,
            counters,
            cancel,
            in_order,
            starts_small,
            budget,
            record: Arc::default(),
            switch,
            properties,
            metrics,
        })
    }

    /// How it goes on when lookups have cost too much.
    pub fn switch(&self) -> Option<&LookupSwitch> {
        self.switch.as_ref().map(|switch| switch.switch())
    }

    /// What has read the table for a join that has gone on without lookups.
    pub fn switched_scan(&self) -> Option<&Arc<dyn ExecutionPlan>> {
        self.switch.as_ref()?.scan()
    }

    /// Where the join is going to record what it looks up, if it has not begun to run.
    pub fn record_lookups(&self) -> Arc<LookupRecord> {
        Arc::clone(self.record.get_or_init(Arc::default))
    }

    pub fn spec(&self) -> &Arc<KeyedLookupSpec> {
        &self.spec
    }

    pub fn join_type(&self) -> KeyedJoinType {
        self.join_type
    }

    pub fn alias(&self) -> &str {
        &self.alias
    }

    pub fn outer(&self) -> &Arc<dyn ExecutionPlan> {
        &self.outer
    }

    /// What is looked up for an outer row.
    pub fn keys(&self) -> &[KeyColumn] {
        &self.keys
    }

    /// The bounds of the part of the index behind the keys.
    pub fn bounds(&self) -> &[KeyBound] {
        &self.bounds
    }

    /// What a match must also satisfy.
    pub fn join_filter(&self) -> Option<&JoinFilter> {
        self.filter.as_ref()
    }

    /// Which columns are delivered of the outer ones and, behind them, those looked up or the mark.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// Whether two joins are sure to deliver the same rows, in the same order where they promise one, if their outer
    /// plans do.
    pub fn joins_the_same(&self, other: &KeyedJoinExec) -> bool {
        let filters_the_same = match (&self.filter, &other.filter) {
            (None, None) => true,
            (Some(own), Some(other)) => {
                is_same(own.expression(), other.expression())
                    && own.column_indices() == other.column_indices()
                    && is_repeatable(own.expression())
            }
            _ => false,
        };
        let is_the_same = |own: &KeyColumn, other: &KeyColumn| {
            is_same(&own.expr, &other.expr)
                && own.data_type == other.data_type
                && is_repeatable(&own.expr)
        };
        let mut keys = self.keys.iter().zip(&other.keys);
        let mut bounds = self.bounds.iter().zip(&other.bounds);
        self.spec.looks_up_the_same(&other.spec)
            && self.keys.len() == other.keys.len()
            && keys.all(|(own, other)| is_the_same(own, other))
            && self.bounds.len() == other.bounds.len()
            && bounds.all(|(own, other)| {
                is_the_same(&own.column, &other.column)
                    && own.side == other.side
                    && own.included == other.included
            })
            && self.join_type == other.join_type
            && self.in_order == other.in_order
            && filters_the_same
            && self.projection == other.projection
    }
}

fn properties(
    outer: &Arc<dyn ExecutionPlan>,
    in_order: bool,
    projection: &[usize],
    schema: &SchemaRef,
) -> Result<PlanProperties> {
    let mut equivalences = EquivalenceProperties::new(Arc::clone(schema));
    if in_order {
        // What holds of the outer rows holds of the ones that are left; columns that go away take their facts along.
        let outer_columns = outer.schema().fields().len();
        let kept = projection
            .iter()
            .enumerate()
            .filter(|(_, column)| **column < outer_columns);
        let mapping = kept.map(|(position, column)| {
            use datafusion_physical_expr::expressions::Column;
            let source: Arc<dyn PhysicalExpr> =
                Arc::new(Column::new(outer.schema().field(*column).name(), *column));
            let target: Arc<dyn PhysicalExpr> =
                Arc::new(Column::new(schema.field(position).name(), position));
            (source, vec![(target, position)].into())
        });
        let mapping = datafusion_physical_expr::projection::ProjectionMapping::from_iter(mapping);
        equivalences = outer
            .equivalence_properties()
            .project(&mapping, Arc::clone(schema));
    }
    let partitions = outer.output_partitioning().partition_count();
    Ok(PlanProperties::new(
        equivalences,
        datafusion_physical_plan::Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        outer.boundedness(),
    ))
}

impl DisplayAs for KeyedJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let index = self.spec.index.definition(&self.spec.table);
        let name = if index.primary {
            "PRIMARY"
        } else {
            index.name.as_str()
        };
        let keys: Vec<_> = self.keys.iter().map(|key| key.expr.to_string()).collect();
        write!(
            f,
            "KeyedJoinExec: type={:?}, table={}, index={name}, keys=[{}]",
            self.join_type,
            self.alias,
            keys.join(", ")
        )?;
        if !self.bounds.is_empty() {
            let bounds: Vec<_> = self.bounds.iter().map(KeyBound::to_string).collect();
            write!(f, ", bounds=[{}]", bounds.join(", "))?;
        }
        if let Some(filter) = &self.filter {
            write!(f, ", filter={filter}")?;
        }
        if self.spec.batched {
            write!(f, ", batched")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for KeyedJoinExec {
    fn name(&self) -> &'static str {
        "KeyedJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.outer]
    }

    /// DataFusion moves sorts below an operator that says so, and takes the columns of its rows to be in the places
    /// that they have in its input's.
    fn maintains_input_order(&self) -> Vec<bool> {
        let outer_columns = self.outer.schema().fields().len();
        let mut places = self.projection.iter().enumerate();
        let in_place = places.all(|(place, column)| place >= outer_columns || place == *column);
        vec![self.in_order && in_place]
    }

    /// The order of the optimizer stands: a lookup is not a reason to exchange rows.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for expr in self
            .keys
            .iter()
            .map(|key| &key.expr)
            .chain(self.bounds.iter().map(|bound| &bound.column.expr))
            .chain(self.filter.iter().map(JoinFilter::expression))
        {
            recursion = recursion.visit_sibling(|| f(expr))?;
        }
        Ok(recursion)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(outer) = children.pop() else {
            return internal_err!("a keyed join without its outer plan");
        };
        // The same properties, not equal ones, if they follow from the same: then the operators above keep theirs, too.
        let properties = match Arc::ptr_eq(outer.properties(), self.outer.properties()) {
            true => Arc::clone(&self.properties),
            false => {
                let (in_order, projection) = (self.in_order, &self.projection);
                Arc::new(properties(&outer, in_order, projection, &self.schema)?)
            }
        };
        Ok(Arc::new(KeyedJoinExec {
            outer,
            spec: Arc::clone(&self.spec),
            keys: self.keys.clone(),
            bounds: self.bounds.clone(),
            join_type: self.join_type,
            filter: self.filter.clone(),
            projection: self.projection.clone(),
            schema: Arc::clone(&self.schema),
            alias: self.alias.clone(),
            counters: Arc::clone(&self.counters),
            cancel: self.cancel.clone(),
            in_order: self.in_order,
            starts_small: self.starts_small,
            budget: self.budget.clone(),
            record: Arc::clone(&self.record),
            switch: self.switch.as_ref().map(|switch| Arc::new(switch.afresh())),
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut lookup = KeyedLookup::new(
            Arc::clone(&self.spec),
            Arc::clone(&self.counters),
            self.cancel.clone(),
        )
        .map_err(access_error)?;
        if let Some((budget, prices)) = &self.budget {
            lookup = lookup.with_budget(budget.clone(), *prices);
        }
        let delivers_matches = !marks_only(self.join_type);
        let held = (self.in_order && delivers_matches).then(|| Held {
            matches: Vec::new(),
            reservation: MemoryConsumer::new(self.name()).register(context.memory_pool()),
        });
        let next_round_rows =
            (self.starts_small && delivers_matches).then_some(FIRST_SMALL_ROUND_ROWS);
        let switch = self.switch.as_ref();
        Ok(Box::pin(KeyedJoinStream {
            outer_schema: self.outer.schema(),
            watch: switch
                .map(|switch| SwitchWatch::new(switch, &context, &self.metrics, partition)),
            noted: NotedRows::new(&context),
            outer: Some(self.outer.execute(partition, context)?),
            inner: Inner::Lookup(Box::new(lookup)),
            cancel: self.cancel.clone(),
            batch_rows: self.spec.batch.rows,
            tree: Arc::clone(&self.spec.table.clustered),
            encoder: KeyEncoder::new(&self.spec, self.keys.clone())
                .with_bounds(self.bounds.clone()),
            ranged: self.spec.ranged,
            record: self.record.get().cloned(),
            join_type: self.join_type,
            filter: self.filter.clone(),
            projection: self.projection.clone(),
            schema: Arc::clone(&self.schema),
            outer_budget: self
                .spec
                .buffer_bytes
                .saturating_mul(OUTER_BYTES_PER_KEY_BYTE),
            held,
            next_round_rows,
            rest: None,
            state: State::Collecting(Round::default()),
            totals: ScanCounts::new(&self.metrics, partition),
            baseline: BaselineMetrics::new(&self.metrics, partition),
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        match self.join_type {
            KeyedJoinType::Inner | KeyedJoinType::LeftOuter => CardinalityEffect::Unknown,
            KeyedJoinType::Semi | KeyedJoinType::Anti => CardinalityEffect::LowerEqual,
            KeyedJoinType::Mark => CardinalityEffect::Equal,
        }
    }
}
