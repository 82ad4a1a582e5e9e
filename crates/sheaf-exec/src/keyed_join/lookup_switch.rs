//! Bounded regret of a keyed join: from lookups to a table in memory, in the middle of the join.
//!
//! A keyed join was chosen because few outer rows were expected. When many times as many come, reading the table once
//! and hashing it would have cost less than looking all of them up. So a join that could be regretted has a
//! [`LookupSwitch`]:
//!
//! ```text
//!   outer rows  1 .. n             looked up, a round at a time, until that has cost what the other way would have
//!   (the table is read once, with the same conditions, into a [`HashedTable`])
//!   outer rows  n+1 ..             found there
//! ```
//!
//! **Why the rows are right.** A keyed join treats each outer row by itself. Those that were looked up are finished,
//! and the others have not been begun. Both find the rows of one view that have their key and pass the conditions.
//! Unlike [`RegretExec`](crate::operator::regret_exec) nothing is held back and nothing runs again.
//!
//! **What it costs.** The limit and the other way, about twice the other way, however many outer rows come. (Ski
//! rental.)
//!
//! A join of several partitions has one table. Each partition counts what it has spent itself; the first one that is
//! beyond the limit has the table made. The others go on with lookups until they are beyond it too, or until the table
//! is there.
//!
//! If the table does not fit the memory that it may take, or if the conditions fail on a row that lookups would not
//! have read, the join stays with lookups.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use arrow::datatypes::{Fields, Schema, SchemaRef};
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt};
use sheaf_access::{
    AccessError, Budget, CancelFlag, KeyedLookupSpec, Prices, ScanMetrics, ScanSpec,
    SessionCounters, split_ranges,
};
use sheaf_storage::ThreadPageWork;
use sheaf_table::Table;

use crate::keyed_join::hashed_table::{HashedTable, HashedTableBuilder, Kept};
use crate::keyed_join::key_encoder::{KeyColumn, KeyEncoder};
use crate::operator::scan_exec::{ScanExec, ScanOrder, access_error};

/// The metrics of the join that are about the switch.
pub const SWITCH_METRICS: [&str; 4] = ["switches", "refused", "spent_us", "switched_after_us"];

/// When a keyed join stops its lookups, and how it goes on. Plain data.
#[derive(Debug, Clone)]
pub struct LookupSwitch {
    /// Reads the table with all conditions on it: the columns that are looked up, and behind them those of the key.
    pub scan: Arc<ScanSpec>,
    /// Workers that share it.
    pub workers: usize,
    /// Makes keys of the rows that are read.
    pub keys: Vec<KeyColumn>,
    /// What the lookups of one partition may cost, in microseconds.
    pub limit_us: f64,
    /// By what they are priced.
    pub prices: Prices,
    /// Outer rows that are looked up before what they have cost is looked at.
    pub round_rows: usize,
    /// Bytes that the table in memory may take.
    pub max_bytes: usize,
    /// What the scan may spend together with others, and what its work costs.
    pub budget: Option<(Budget, Prices)>,
    /// For EXPLAIN: estimated rows of the table, and what reading and hashing them costs in microseconds.
    pub rows: f64,
    pub cost_us: f64,
}

/// What a switch needs of its join.
#[derive(Debug)]
pub(crate) struct SwitchingJoin {
    pub spec: Arc<KeyedLookupSpec>,
    /// Of the columns that are looked up, only whether there is a match counts.
    pub existence: bool,
    pub alias: String,
    pub counters: Arc<SessionCounters>,
    pub cancel: CancelFlag,
}

/// None: the join stays with lookups.
type Made = Option<Arc<HashedTable>>;
/// A table that is being made, for which several may wait.
pub(crate) type Making = Shared<BoxFuture<'static, Result<Made, Arc<DataFusionError>>>>;

/// A switch and its state, for all partitions of a join.
pub(crate) struct SharedSwitch {
    reading: Arc<TableReading>,
    /// Once a partition has asked for it.
    making: Mutex<Option<Making>>,
}

/// What it takes to make the table. It is a part of what [is being made](Making), so it does not know the owner of
/// that.
struct TableReading {
    switch: Arc<LookupSwitch>,
    join: Arc<SwitchingJoin>,
    /// What reads the table, for EXPLAIN.
    scan: OnceLock<Arc<dyn ExecutionPlan>>,
}

impl fmt::Debug for SharedSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.switch().fmt(f)
    }
}

impl SharedSwitch {
    pub(crate) fn new(switch: LookupSwitch, join: SwitchingJoin) -> SharedSwitch {
        SharedSwitch::of(Arc::new(switch), Arc::new(join))
    }

    fn of(switch: Arc<LookupSwitch>, join: Arc<SwitchingJoin>) -> SharedSwitch {
        let reading = TableReading {
            switch,
            join,
            scan: OnceLock::new(),
        };
        SharedSwitch {
            reading: Arc::new(reading),
            making: Mutex::new(None),
        }
    }

    /// The same switch, in its first state.
    pub(crate) fn afresh(&self) -> SharedSwitch {
        let TableReading { switch, join, .. } = self.reading.as_ref();
        SharedSwitch::of(Arc::clone(switch), Arc::clone(join))
    }

    pub(crate) fn switch(&self) -> &LookupSwitch {
        &self.reading.switch
    }

    /// What reads the table, if the join has switched.
    pub(crate) fn scan(&self) -> Option<&Arc<dyn ExecutionPlan>> {
        self.reading.scan.get()
    }

    /// The table, which is begun now unless it has been; and whether it was begun now.
    fn make(&self, context: &Arc<TaskContext>) -> (Making, bool) {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = making.is_none();
        let begin = || {
            let making = Arc::clone(&self.reading).read_table(Arc::clone(context));
            making.map(|made| made.map_err(Arc::new)).boxed().shared()
        };
        (making.get_or_insert_with(begin).clone(), is_first)
    }

    /// The table, if another partition has had it made.
    fn made(&self) -> Option<Arc<HashedTable>> {
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        match making.as_ref()?.peek()? {
            Ok(made) => made.clone(),
            // The partition that waits for it reports that.
            Err(_) => None,
        }
    }
}

impl TableReading {
    async fn read_table(self: Arc<Self>, context: Arc<TaskContext>) -> Result<Made> {
        let scan = self.scan_operator()?;
        let join = &self.join;
        let consumer = MemoryConsumer::new("KeyedJoinExec");
        let kept = Kept {
            columns: join.spec.projection.len(),
            existence: join.existence,
            max_bytes: self.switch.max_bytes,
        };
        let mut table = HashedTableBuilder::new(
            kept,
            fields_of(&join.spec.table, &join.spec.projection),
            KeyEncoder::new(&join.spec, self.switch.keys.clone()),
            consumer.register(context.memory_pool()),
        );
        let mut rows = scan.execute(0, context)?;
        while let Some(batch) = rows.next().await {
            let is_kept = match batch {
                Ok(batch) => table.add(&batch)?,
                Err(error) if is_of_access(&error) => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "a keyed join stays with lookups");
                    false
                }
            };
            if !is_kept {
                return Ok(None);
            }
            join.cancel.check().map_err(access_error)?;
        }
        Ok(table.finish()?.map(Arc::new))
    }

    /// Reads all rows in one partition.
    fn scan_operator(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let (spec, join) = (&self.switch.scan, &self.join);
        let shares = match self.switch.workers {
            0 | 1 => vec![spec.ranges.clone()],
            parts => {
                split_ranges(&spec.table, spec.index, &spec.ranges, parts).map_err(access_error)?
            }
        };
        let workers = shares.len();
        let mut scan = ScanExec::new(
            Arc::clone(spec),
            shares,
            fields_of(&spec.table, &spec.projection),
            ScanOrder::default(),
            join.alias.clone(),
            // It is not what the statement means by the table.
            u32::MAX,
            Arc::clone(&join.counters),
            join.cancel.clone(),
        );
        if let Some((budget, prices)) = &self.switch.budget {
            scan = scan.with_budget(budget.clone(), *prices);
        }
        let scan: Arc<dyn ExecutionPlan> = Arc::new(scan);
        let known = Arc::clone(self.scan.get_or_init(|| Arc::clone(&scan)));
        Ok(match workers {
            0 | 1 => known,
            _ => Arc::new(CoalescePartitionsExec::new(known)),
        })
    }
}

/// The fields of some columns of a table.
fn fields_of(table: &Table, columns: &[usize]) -> SchemaRef {
    let fields = columns
        .iter()
        .map(|column| sheaf_access::field_at(&table.definition, *column));
    Arc::new(Schema::new(Fields::from_iter(fields)))
}

/// Whether an error is about reading, and not about what was read.
fn is_of_access(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(inner) => inner.is::<AccessError>(),
        _ => false,
    }
}

/// One partition's account of its lookups.
pub(crate) struct SwitchWatch {
    shared: Arc<SharedSwitch>,
    context: Arc<TaskContext>,
    started: Instant,
    /// What the lookups have asked of the buffer pool.
    pages: ThreadPageWork,
    recorded_us: usize,
    /// When this partition has had the table made, in microseconds after its start.
    began_us: Option<usize>,
    switches: Count,
    refused: Count,
    spent_us: Count,
    switched_after_us: Count,
}

impl SwitchWatch {
    pub(crate) fn new(
        shared: &Arc<SharedSwitch>,
        context: &Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> SwitchWatch {
        let [switches, refused, spent_us, switched_after_us] =
            SWITCH_METRICS.map(|name| MetricBuilder::new(metrics).counter(name, partition));
        SwitchWatch {
            shared: Arc::clone(shared),
            context: Arc::clone(context),
            started: Instant::now(),
            pages: ThreadPageWork::default(),
            recorded_us: 0,
            began_us: None,
            switches,
            refused,
            spent_us,
            switched_after_us,
        }
    }

    pub(crate) fn round_rows(&self) -> usize {
        self.shared.switch().round_rows
    }

    /// The lookups have asked for pages.
    pub(crate) fn add_pages(&mut self, work: ThreadPageWork) {
        self.pages.reads += work.reads;
        self.pages.read_ahead += work.read_ahead;
    }

    /// Whether lookups that have done this are to be stopped, if there are more outer rows.
    pub(crate) fn is_due(&mut self, done: &ScanMetrics) -> bool {
        let switch = self.shared.switch();
        let spent = switch.prices.total_us(done, self.pages);
        let spent_us = whole(spent);
        self.spent_us.add(spent_us.saturating_sub(self.recorded_us));
        self.recorded_us = self.recorded_us.max(spent_us);
        spent > switch.limit_us || self.shared.made().is_some()
    }

    /// The table that takes the place of the lookups.
    pub(crate) fn make(&mut self) -> Making {
        let (making, is_first) = self.shared.make(&self.context);
        if is_first {
            self.began_us = Some(whole(self.started.elapsed().as_secs_f64() * 1e6));
        }
        making
    }

    /// The lookups are replaced by a table that was made, or there is none and they go on. It counts once, for the
    /// partition that began it.
    pub(crate) fn has_ended(&self, is_made: bool) {
        match self.began_us {
            Some(began_us) if is_made => {
                self.switches.add(1);
                self.switched_after_us.add(began_us);
                let join = &self.shared.reading.join;
                join.counters.sheaf_plan_switches.add(1);
            }
            Some(_) => self.refused.add(1),
            None => {}
        }
    }
}

/// Microseconds of one statement, for a metric.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates"
)]
fn whole(us: f64) -> usize {
    us.max(1.0) as usize
}
