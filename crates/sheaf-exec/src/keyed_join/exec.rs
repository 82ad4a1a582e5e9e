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
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions,
    UInt32Array, new_null_array,
};
use arrow::compute::{
    concat_batches, filter_record_batch, prep_null_mask_filter, take, take_record_batch,
};
use arrow::datatypes::SchemaRef;
use datafusion_common::cast::as_boolean_array;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, JoinSide, Result, internal_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::execution_plan::{CardinalityEffect, EmissionType};
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::{FutureExt, Stream, StreamExt};
use sheaf_access::{
    AccessError, Budget, CancelFlag, KeyedLookup, KeyedLookupSpec, Prices, SessionCounters,
};
use sheaf_storage::Tree;

use crate::keyed_join::hashed_table::KeptRows;
use crate::keyed_join::key_encoder::KeyEncoder;
pub use crate::keyed_join::key_encoder::{BoundSide, KeyBound, KeyColumn};
use crate::keyed_join::lookup_record::LookupRecord;
use crate::keyed_join::lookup_switch::{
    LookupSwitch, Making, SharedSwitch, SwitchWatch, SwitchingJoin,
};
use crate::operator::scan_exec::{ScanCounts, access_error};
use crate::operator::shared_exec::{is_repeatable, is_same};

/// Outer rows of a round may take this many times the memory of its keys (`buffer_bytes`).
pub const OUTER_BYTES_PER_KEY_BYTE: usize = 16;

/// Outer rows of the first round of a join that starts small, and of the largest one.
pub const FIRST_SMALL_ROUND_ROWS: usize = 32;
pub const MAX_SMALL_ROUND_ROWS: usize = 1024;

/// What a keyed join delivers for an outer row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyedJoinType {
    /// The outer row with each match.
    Inner,
    /// The same, and the outer row with NULLs if there is no match.
    LeftOuter,
    /// The outer row if there is a match.
    Semi,
    /// The outer row if there is none.
    Anti,
    /// The outer row and whether there is a match.
    Mark,
}

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

/// Whether matches only decide what becomes of their outer row, which is then delivered in its own order.
fn marks_only(join_type: KeyedJoinType) -> bool {
    matches!(
        join_type,
        KeyedJoinType::Semi | KeyedJoinType::Anti | KeyedJoinType::Mark
    )
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

/// The outer rows of the round that is being collected.
#[derive(Default)]
struct Round {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

/// The outer rows of the round whose matches are being delivered.
struct Matching {
    outer: RecordBatch,
    /// Outer rows that had a match; not kept for inner joins.
    matched: BooleanBufferBuilder,
}

/// The joined rows of a round that are held back to be put into the order of the outer rows.
struct Held {
    /// With the outer row, by its number in the round, of each joined row.
    matches: Vec<(UInt32Array, RecordBatch)>,
    reservation: MemoryReservation,
}

impl Held {
    fn push(&mut self, outer: UInt32Array, batch: RecordBatch) -> Result<()> {
        self.reservation.try_grow(batch.get_array_memory_size())?;
        self.matches.push((outer, batch));
        Ok(())
    }

    /// All of them in the order of their outer rows.
    fn take(&mut self, schema: &SchemaRef) -> Result<RecordBatch> {
        let matches = std::mem::take(&mut self.matches);
        let (outer, batches): (Vec<_>, Vec<_>) = matches.into_iter().unzip();
        let batch = concat_batches(schema, &batches)?;
        let numbers: Vec<u32> = outer
            .iter()
            .flat_map(|rows| rows.values())
            .copied()
            .collect();
        // What comes next is the statement's, and accounted for where it is kept.
        self.reservation.free();
        // Rows without columns are in any order, and Arrow's take refuses them.
        if numbers.is_sorted() || schema.fields().is_empty() {
            return Ok(batch);
        }
        let mut order: Vec<u32> = (0..).take(numbers.len()).collect();
        order.sort_by_key(|row| numbers[*row as usize]);
        Ok(take_record_batch(&batch, &UInt32Array::from(order))?)
    }
}

enum State {
    Collecting(Round),
    Matching(Matching),
    /// The table that takes the place of the lookups is being made; no round has begun.
    Switching(Making),
    Finished,
}

/// Where matches are found.
enum Inner {
    Lookup(Box<KeyedLookup>),
    Kept(KeptRows),
}

impl Inner {
    fn full(&self) -> bool {
        match self {
            Inner::Lookup(lookup) => lookup.full(),
            Inner::Kept(kept) => kept.full(),
        }
    }

    fn push(&mut self, key: &[u8], outer_row: u32) {
        match self {
            Inner::Lookup(lookup) => lookup.push(key, outer_row),
            Inner::Kept(kept) => kept.push(key, outer_row),
        }
    }
}

struct KeyedJoinStream {
    outer_schema: SchemaRef,
    /// `None` when it has ended.
    outer: Option<SendableRecordBatchStream>,
    inner: Inner,
    /// While lookups may still be stopped.
    watch: Option<SwitchWatch>,
    cancel: CancelFlag,
    batch_rows: usize,
    /// Knows what its pool is asked for.
    tree: Arc<Tree>,
    encoder: KeyEncoder,
    /// Ranges of keys are looked up.
    ranged: bool,
    /// Where each key is recorded.
    record: Option<Arc<LookupRecord>>,
    join_type: KeyedJoinType,
    filter: Option<JoinFilter>,
    projection: Vec<usize>,
    schema: SchemaRef,
    /// Bytes of outer rows at which a round is full, whatever the key buffer says.
    outer_budget: usize,
    /// Of a join that goes on in order.
    held: Option<Held>,
    /// Outer rows of the round to come, of a join that starts small.
    next_round_rows: Option<usize>,
    /// What is left of an outer batch that did not fit the round, or one that came before it began.
    rest: Option<RecordBatch>,
    state: State,
    totals: ScanCounts,
    baseline: BaselineMetrics,
}

impl KeyedJoinStream {
    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let busy = self.baseline.elapsed_compute().clone();
        loop {
            match std::mem::replace(&mut self.state, State::Finished) {
                State::Collecting(round) => match ready!(self.poll_collect(round, context)) {
                    Ok(state) => self.state = state,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
                State::Switching(mut making) => match making.poll_unpin(context) {
                    Poll::Pending => {
                        self.state = State::Switching(making);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(table)) => {
                        if let Some(watch) = self.watch.take() {
                            watch.has_ended(table.is_some());
                        }
                        if let Some(table) = table {
                            self.inner = Inner::Kept(KeptRows::new(table, self.batch_rows));
                        }
                        self.state = State::Collecting(Round::default());
                    }
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Some(Err(DataFusionError::Shared(error))));
                    }
                },
                State::Matching(mut matching) => {
                    let timer = busy.timer();
                    let step = self.next_matches(&mut matching);
                    drop(timer);
                    match step {
                        Err(error) => return Poll::Ready(Some(Err(error))),
                        Ok(Some(batch)) => {
                            self.state = State::Matching(matching);
                            if batch.num_rows() > 0 {
                                return Poll::Ready(Some(Ok(batch)));
                            }
                        }
                        Ok(None) => {
                            self.state = State::Collecting(Round::default());
                            match self.end_of_round(&matching) {
                                Err(error) => return Poll::Ready(Some(Err(error))),
                                Ok(Some(batch)) if batch.num_rows() > 0 => {
                                    return Poll::Ready(Some(Ok(batch)));
                                }
                                Ok(_) => {}
                            }
                        }
                    }
                }
                State::Finished => return Poll::Ready(None),
            }
        }
    }

    /// Takes outer batches until the round is full or they end, then starts the lookup.
    fn poll_collect(&mut self, mut round: Round, context: &mut Context<'_>) -> Poll<Result<State>> {
        let busy = self.baseline.elapsed_compute().clone();
        let most_rows = self.most_rows();
        let is_due = round.rows == 0 && self.is_switch_due();
        while !self.inner.full() && round.bytes < self.outer_budget && round.rows < most_rows {
            let batch = match (self.rest.take(), &mut self.outer) {
                (Some(rest), _) => rest,
                (None, None) => break,
                (None, Some(outer)) => match outer.poll_next_unpin(context) {
                    Poll::Pending => {
                        self.state = State::Collecting(round);
                        return Poll::Pending;
                    }
                    Poll::Ready(None) => {
                        self.outer = None;
                        break;
                    }
                    Poll::Ready(Some(batch)) => batch?,
                },
            };
            if is_due
                && batch.num_rows() > 0
                && let Some(watch) = &mut self.watch
            {
                // Only now it is known that the lookups would go on.
                self.rest = Some(batch);
                return Poll::Ready(Ok(State::Switching(watch.make())));
            }
            let batch = self.cut(batch, most_rows - round.rows);
            let timer = busy.timer();
            self.push_keys(&batch, round.rows)?;
            drop(timer);
            round.rows += batch.num_rows();
            round.bytes += batch.get_array_memory_size();
            round.batches.push(batch);
        }
        if round.rows == 0 {
            return Poll::Ready(Ok(State::Finished));
        }
        let timer = busy.timer();
        let outer = concat_batches(&self.outer_schema, &round.batches)?;
        drop(round);
        if matches!(self.inner, Inner::Lookup(_)) {
            self.look_up(KeyedLookup::run)?;
        }
        drop(timer);
        let mut matched = BooleanBufferBuilder::new(0);
        if self.join_type != KeyedJoinType::Inner {
            matched.append_n(outer.num_rows(), false);
        }
        Poll::Ready(Ok(State::Matching(Matching { outer, matched })))
    }

    /// Outer rows at which a round is full.
    fn most_rows(&self) -> usize {
        let watched = self.watch.as_ref().map(SwitchWatch::round_rows);
        let limits = self.next_round_rows.into_iter().chain(watched);
        limits.min().unwrap_or(usize::MAX)
    }

    /// Whether the lookups are to be stopped, if there are more outer rows.
    fn is_switch_due(&mut self) -> bool {
        match (&mut self.watch, &self.inner) {
            (Some(watch), Inner::Lookup(lookup)) => watch.is_due(&lookup.metrics()),
            _ => false,
        }
    }

    /// Pushes the keys of `batch`, whose first row is row `first` of the round.
    fn push_keys(&mut self, batch: &RecordBatch, first: usize) -> Result<()> {
        if u32::try_from(first + batch.num_rows()).is_err() {
            return internal_err!("more than 2^32 outer rows in one round");
        }
        let mut noted = self.record.as_ref().map(|record| record.noted());
        let inner = &mut self.inner;
        if self.ranged {
            return self.encoder.encode_ranges(batch, |row, range| {
                if let Some(noted) = &mut noted {
                    noted.note_range(range.start, range.end);
                }
                let outer_row = (first + row) as u32;
                match inner {
                    Inner::Lookup(lookup) => lookup.push_range(range.start, range.end, outer_row),
                    // What has the keys is found there, and the filter says what is within the bounds.
                    Inner::Kept(kept) => kept.push(range.key, outer_row),
                }
            });
        }
        self.encoder.encode(batch, |row, key| {
            if let Some(noted) = &mut noted {
                noted.note(key);
            }
            inner.push(key, (first + row) as u32);
        })
    }

    /// The first rows of an outer batch; the others are for the next round.
    fn cut(&mut self, batch: RecordBatch, rows: usize) -> RecordBatch {
        if batch.num_rows() <= rows {
            return batch;
        }
        self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        batch.slice(0, rows)
    }

    /// The next batch of joined rows; empty if these matches deliver nothing by themselves; `None` at the end of the
    /// round.
    fn next_matches(&mut self, matching: &mut Matching) -> Result<Option<RecordBatch>> {
        let found = match &mut self.inner {
            Inner::Lookup(_) => self.look_up(KeyedLookup::next_batch)?,
            Inner::Kept(kept) => {
                self.cancel.check().map_err(access_error)?;
                kept.next_batch()?
            }
        };
        let Some((rows, inner)) = found else {
            return Ok(None);
        };
        let (rows, inner) = match &self.filter {
            Some(filter) => keep_matches(filter, &matching.outer, rows, inner)?,
            None => (rows, inner),
        };
        if self.join_type != KeyedJoinType::Inner {
            for row in rows.values() {
                matching.matched.set_bit(*row as usize, true);
            }
        }
        let nothing_yet = RecordBatch::new_empty(Arc::clone(&self.schema));
        if marks_only(self.join_type) {
            return Ok(Some(nothing_yet));
        }
        let outer_columns = matching.outer.num_columns();
        let columns = self.projection.iter().map(|column| {
            if *column < outer_columns {
                Ok(take(matching.outer.column(*column), &rows, None)?)
            } else {
                Ok(Arc::clone(inner.column(*column - outer_columns)))
            }
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let joined = self.batch(columns, rows.len())?;
        match &mut self.held {
            Some(held) => held.push(rows, joined).map(|()| Some(nothing_yet)),
            None => Ok(Some(joined)),
        }
    }

    /// Lets the access method work, and books what it did.
    fn look_up<T>(
        &mut self,
        work: impl FnOnce(&mut KeyedLookup) -> std::result::Result<T, AccessError>,
    ) -> Result<T> {
        let Inner::Lookup(lookup) = &mut self.inner else {
            return internal_err!("a keyed join has given its lookups up");
        };
        let before = self.tree.thread_page_work();
        let outcome = work(lookup).map_err(access_error);
        let pages = self.tree.thread_page_work().since(before);
        self.totals.record_pages(pages);
        self.totals.record(&lookup.metrics());
        if let Some(watch) = &mut self.watch {
            watch.add_pages(pages);
        }
        outcome
    }

    /// What is delivered at the end of a round. The next one is to be twice as long, if this one was small.
    fn end_of_round(&mut self, matching: &Matching) -> Result<Option<RecordBatch>> {
        if let Some(rows) = &mut self.next_round_rows {
            *rows = (*rows * 2).min(MAX_SMALL_ROUND_ROWS);
        }
        let marked = self.marked_rows(matching)?;
        let Some(held) = &mut self.held else {
            return Ok(marked);
        };
        if let Some(unmatched) = marked {
            let matched = matching.matched.finish_cloned();
            let numbers = (0..).zip(matched.iter());
            let numbers = numbers.filter(|(_, matched)| !matched).map(|(row, _)| row);
            held.push(numbers.collect::<Vec<u32>>().into(), unmatched)?;
        }
        held.take(&self.schema).map(Some)
    }

    /// The outer rows that are delivered for having, or not having, matched.
    fn marked_rows(&self, matching: &Matching) -> Result<Option<RecordBatch>> {
        let matched = || BooleanArray::new(matching.matched.finish_cloned(), None);
        let keep = match self.join_type {
            KeyedJoinType::Inner => return Ok(None),
            KeyedJoinType::Mark => None,
            KeyedJoinType::Semi => Some(matched()),
            KeyedJoinType::Anti | KeyedJoinType::LeftOuter => {
                Some(arrow::compute::not(&matched())?)
            }
        };
        let outer = match &keep {
            Some(keep) => filter_record_batch(&matching.outer, keep)?,
            None => matching.outer.clone(),
        };
        let rows = outer.num_rows();
        let outer_columns = outer.num_columns();
        let columns =
            self.projection
                .iter()
                .zip(self.schema.fields())
                .map(|(column, field)| -> ArrayRef {
                    if *column < outer_columns {
                        Arc::clone(outer.column(*column))
                    } else if self.join_type == KeyedJoinType::Mark {
                        Arc::new(matched())
                    } else {
                        new_null_array(field.data_type(), rows)
                    }
                });
        let columns = columns.collect();
        Ok(Some(self.batch(columns, rows)?))
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let rows = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &rows,
        )?)
    }
}

/// The matches that satisfy the join's own filter.
fn keep_matches(
    filter: &JoinFilter,
    outer: &RecordBatch,
    rows: UInt32Array,
    inner: RecordBatch,
) -> Result<(UInt32Array, RecordBatch)> {
    let column = |ColumnIndex { index, side }: &ColumnIndex| -> Result<ArrayRef> {
        match side {
            JoinSide::Left => Ok(take(outer.column(*index), &rows, None)?),
            JoinSide::Right => Ok(Arc::clone(inner.column(*index))),
            JoinSide::None => internal_err!("a filter over a mark"),
        }
    };
    let columns = filter
        .column_indices()
        .iter()
        .map(column)
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(filter.schema()), columns, &options)?;
    let value = filter
        .expression()
        .evaluate(&batch)?
        .into_array(rows.len())?;
    let mask = as_boolean_array(&value)?;
    let mask = if mask.null_count() > 0 {
        prep_null_mask_filter(mask)
    } else {
        mask.clone()
    };
    let rows = arrow::compute::filter(&rows, &mask)?;
    let rows = rows.as_any().downcast_ref::<UInt32Array>().cloned();
    let Some(rows) = rows else {
        return internal_err!("filtering row numbers gives row numbers");
    };
    Ok((rows, filter_record_batch(&inner, &mask)?))
}

impl Stream for KeyedJoinStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.poll_batch(context);
        self.baseline.record_poll(poll)
    }
}

impl RecordBatchStream for KeyedJoinStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
