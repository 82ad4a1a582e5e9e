//! Runs a plan for a caller that is an ordinary blocking thread.
//!
//! DataFusion's operators are asynchronous streams; our connections are threads. One [`QueryRuntime`] owns a small
//! pool of worker threads. [`QueryRuntime::run`] starts the plan there and hands back an iterator:
//!
//! ```text
//!   connection thread              bounded channel              worker threads
//!   QueryStream::next()  <------  CHANNEL_BATCHES batches  <------  plan's root stream  <-- operators <-- scans
//! ```
//!
//! A plan of few rows runs on the calling thread instead ([`QueryRuntime::run_here`]). To start it on a worker, and to
//! wait for that one, would take longer than the plan.
//!
//! The channel is the back-pressure. When it is full the root stream is not polled any more. So every scan below is
//! parked as a plain value (a cursor with its last key, no page guard), and the worker threads are free for other
//! statements. Dropping the iterator aborts the plan. So does a [kill](mod@until_stopped), whatever its tasks wait for.
//!
//! Each resource group has a runtime of its own, whose workers run where the group says ([`QueryRuntime::placed`]).
//!
//! Memory: all statements of all runtimes share `query_memory_bytes`, [as they need it](crate::memory_pool). Operators
//! that can spill do so to the storage's [temporary files](crate::runtime::spill_files). What statements really take is
//! [counted](metered) beside it.
//!
//! | file | what it holds |
//! |---|---|
//! | `metered` | tasks that count for the memory of their statement |
//! | `query_stream` | the rows of a running plan, for a blocking reader |
//! | [`spill_files`] | the files that operators spill to |
//! | [`thread_placement`] | the CPUs and the priority of threads |
//! | `until_stopped` | the end of a plan whose statement shall stop |

mod metered;
mod query_stream;
pub(crate) mod spill_files;
pub mod thread_placement;
mod until_stopped;

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arrow::array::RecordBatch;
use datafusion_common::config::{ConfigNonZeroUsize, ConfigOptions};
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::disk_manager::DiskManagerBuilder;
use datafusion_execution::memory_pool::TrackConsumersPool;
use datafusion_execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion_physical_plan::{ExecutionPlan, execute_stream};
use futures::{FutureExt, StreamExt};
use sheaf_access::CancelFlag;
use sheaf_memory::StatementMemory;
use sheaf_storage::TempSpace;
use tokio::sync::mpsc;

use crate::error::ExecError;
use crate::memory_pool::{Admission, OfStatement, QueryMemory, StatementPool};
use crate::operator::checked_rows::{self, CheckedRows};
use crate::runtime::metered::{Metered, meter_tasks};
pub use crate::runtime::query_stream::QueryStream;
use crate::runtime::query_stream::{panic_message, unwrap_panic};
use crate::runtime::spill_files::SpillFiles;
use crate::runtime::thread_placement::ThreadPlacement;
use crate::runtime::until_stopped::until_stopped;

/// Batches that wait between the plan and its reader. With one that the plan has made next, and one that the reader
/// has, they stay in memory while the reader waits for its client.
const CHANNEL_BATCHES: usize = 1;

/// How many consumers of memory the "resources exhausted" error lists.
const REPORTED_CONSUMERS: NonZeroUsize = NonZeroUsize::new(5).expect("5 is not 0");

/// Spilled runs that a sort merges at a time. Without a bound, the first merge takes all memory that is left, and the
/// other operators of its plan fail for want of it. With it, a sort of many runs merges in several passes.
const MAX_MERGED_RUNS: usize = 8;

/// How long a row of a sort is taken to be, to put about one batch of rows together.
const SORTED_ROW_BYTES: usize = 128;

/// Stack of a worker thread. Plans and expressions are trees that operators walk recursively; address space only.
const WORKER_STACK_BYTES: usize = 8 << 20;

/// Threads that may do something blocking. Of those that wait for memory there are
/// [fewer](crate::memory_pool), so that those with memory can read what they have spilled.
const MAX_BLOCKING_THREADS: usize = 4096;

/// How long a thread that has done something blocking waits for more of it. Its stack is memory of the process.
const IDLE_THREAD: Duration = Duration::from_secs(1);

/// What a [`QueryRuntime`] may use.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// Worker threads; at least 1.
    pub threads: usize,
    /// Memory of all running plans together, in bytes.
    pub query_memory_bytes: usize,
    /// Where operators spill to.
    pub temp_space: Arc<TempSpace>,
}

/// Worker threads, memory pool and spill files of the vectorised plans.
pub struct QueryRuntime {
    /// `Some` until dropped: shutting down needs the value.
    workers: Option<tokio::runtime::Runtime>,
    /// What all statements share; each has a pool of its own over it.
    environment: Arc<RuntimeEnv>,
    memory: Arc<QueryMemory>,
    options: RuntimeOptions,
}

impl QueryRuntime {
    /// Starts the worker threads.
    pub fn new(options: RuntimeOptions) -> Result<Arc<QueryRuntime>, ExecError> {
        meter_tasks();
        let memory = Arc::new(QueryMemory::new(options.query_memory_bytes));
        let spill = DiskManagerBuilder::default()
            .with_temp_file_factory(Arc::new(SpillFiles(Arc::clone(&options.temp_space))))
            .with_max_spill_merge_fan_in(MAX_MERGED_RUNS);
        let environment = RuntimeEnvBuilder::new()
            .with_disk_manager_builder(spill)
            .build_arc()?;
        let mut workers = tokio::runtime::Builder::new_multi_thread();
        Self::start(
            workers.thread_name("sheaf-query"),
            (environment, memory),
            options,
        )
    }

    /// A runtime whose worker threads run at another place, one for each of its CPUs but not more than this one has;
    /// `name` is part of the threads' names. It shares memory and spill files with this one.
    pub fn placed(
        &self,
        name: &str,
        placement: Arc<ThreadPlacement>,
    ) -> Result<Arc<QueryRuntime>, ExecError> {
        let options = RuntimeOptions {
            threads: self.options.threads.min(placement.cpus().len()),
            ..self.options.clone()
        };
        let mut workers = tokio::runtime::Builder::new_multi_thread();
        workers
            .thread_name(format!("query {name}"))
            .on_thread_start(move || {
                if let Err(error) = placement.enter() {
                    tracing::warn!(%error, "a worker thread cannot run where its resource group says");
                }
            });
        let shared = (Arc::clone(&self.environment), Arc::clone(&self.memory));
        Self::start(&mut workers, shared, options)
    }

    fn start(
        workers: &mut tokio::runtime::Builder,
        (environment, memory): (Arc<RuntimeEnv>, Arc<QueryMemory>),
        options: RuntimeOptions,
    ) -> Result<Arc<QueryRuntime>, ExecError> {
        let workers = workers
            .worker_threads(options.threads.max(1))
            .thread_stack_size(WORKER_STACK_BYTES)
            .thread_keep_alive(IDLE_THREAD)
            .max_blocking_threads(MAX_BLOCKING_THREADS)
            .build()
            .map_err(ExecError::Start)?;
        Ok(Arc::new(QueryRuntime {
            workers: Some(workers),
            environment,
            memory,
            options,
        }))
    }

    pub fn options(&self) -> &RuntimeOptions {
        &self.options
    }

    /// Bytes that running plans hold now.
    pub fn reserved_bytes(&self) -> usize {
        self.memory.reserved_bytes()
    }

    /// The memory that running plans share.
    pub fn memory(&self) -> &QueryMemory {
        &self.memory
    }

    /// The configuration that our plans run under: partitions are made by our scans, not by DataFusion.
    pub fn session_config(&self, batch_rows: usize, target_partitions: usize) -> SessionConfig {
        let mut config = SessionConfig::new()
            .with_batch_size(batch_rows.max(1))
            .with_target_partitions(target_partitions.max(1))
            .with_round_robin_repartition(false)
            .with_collect_statistics(false);
        // A sort sets this much aside for merging its spilled runs; it must leave room for the runs themselves.
        let merge_reserve = (self.options.query_memory_bytes / 32).min(10 << 20);
        config = config.with_sort_spill_reservation_bytes(merge_reserve);
        // A sort puts small batches together before it sorts them, and cuts the outcome into batches again. Each of
        // these keeps the strings of all of them, and is charged with them. So there are few of them.
        let together = config.options_mut().execution.sort_in_place_threshold_bytes;
        let together = together.min(batch_rows.max(1) * SORTED_ROW_BYTES);
        config = config.with_sort_in_place_threshold_bytes(together);
        // An exchange whose spilled batches lie in two unfinished files may wait for ever for a batch of the first,
        // while the one that it needs is in the second (DataFusion's issue 24883). So each file is finished with one
        // batch.
        if let Ok(one_batch) = ConfigNonZeroUsize::try_new(1) {
            config.options_mut().execution.max_spill_file_size_bytes = one_batch;
        }
        set_planning_options(config.options_mut());
        config
    }

    /// What the statements of a session have of the query memory, one after the other; they count for this account.
    pub fn statement_pool(&self, account: Arc<StatementMemory>) -> Arc<StatementPool> {
        Arc::new(StatementPool::new(Arc::clone(&self.memory), account))
    }

    /// What operators see of their session. One per session is enough; one per statement is cheap too.
    pub fn task_context(
        &self,
        session_id: String,
        config: SessionConfig,
        pool: Arc<StatementPool>,
    ) -> Arc<TaskContext> {
        let config = config
            .with_extension(Arc::clone(&pool))
            .with_extension(Arc::clone(&self.options.temp_space));
        let pool = TrackConsumersPool::new(OfStatement(pool), REPORTED_CONSUMERS);
        let environment = RuntimeEnv {
            memory_pool: Arc::new(pool),
            ..RuntimeEnv::clone(&self.environment)
        };
        Arc::new(TaskContext::new(
            None,
            session_id,
            config,
            Default::default(),
            Default::default(),
            Default::default(),
            Default::default(),
            Arc::new(environment),
        ))
    }

    /// Waits until the session's statement may take much memory.
    ///
    /// # Errors
    /// Other statements have had it for too long, or the statement shall stop.
    pub fn admit(&self, task: &TaskContext) -> Result<Admission, ExecError> {
        let pool = task.session_config().get_extension::<StatementPool>();
        let pool = pool.expect("each of our contexts has it");
        Ok(pool.admit()?)
    }

    /// What a row took on average in the batch in which rows took most, of those with long values that plans of this
    /// context have met since the last call.
    pub fn row_bytes_seen(&self, task: &TaskContext) -> usize {
        let pool = task.session_config().get_extension::<StatementPool>();
        pool.map_or(0, |pool| pool.take_row_bytes())
    }

    /// As [`Self::run`], on the calling thread: the plan goes on whenever the next batch is asked for. It is for a plan
    /// of few rows, whose start on another thread would take longer than the plan.
    pub fn run_here(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
        cancel: CancelFlag,
    ) -> QueryStream {
        QueryStream::here(self.workers().handle().clone(), (plan, task), cancel)
    }

    /// Starts `plan` and returns its rows as they come. A plan runs once: build a new one for a second run.
    pub fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
        cancel: CancelFlag,
    ) -> QueryStream {
        let schema = plan.schema();
        let (sender, receiver) = mpsc::channel(CHANNEL_BATCHES);
        let driver = async move {
            let rows = drive(plan, task, &cancel, &sender);
            let outcome = AssertUnwindSafe(until_stopped(rows, &cancel))
                .catch_unwind()
                .await;
            let failure = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(error)) if cancel.is_cancelled() => {
                    tracing::debug!(%error, "plan stopped by a kill");
                    ExecError::Cancelled
                }
                Ok(Err(error)) => {
                    if error.is_out_of_memory() {
                        tracing::debug!(%error, "a plan has run out of memory");
                    }
                    error
                }
                Err(panic) => ExecError::Panic {
                    message: panic_message(&*panic),
                },
            };
            // The reader may be gone; then the failure is dropped.
            let _ = sender.send(Err(failure)).await;
        };
        let task = self.workers().spawn(Metered::new(driver.boxed()));
        QueryStream::of_workers(schema, receiver, task)
    }

    fn workers(&self) -> &tokio::runtime::Runtime {
        let workers = self.workers.as_ref();
        workers.expect("the runtime is shut down only by drop")
    }
}

impl Drop for QueryRuntime {
    /// Does not wait for plans that still run: their readers are gone.
    fn drop(&mut self) {
        if let Some(workers) = self.workers.take() {
            workers.shutdown_background();
        }
    }
}

fn set_planning_options(options: &mut ConfigOptions) {
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.default_null_ordering = "nulls_min".to_string();
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
}

/// The options that logical plans are rewritten under, the same for all sessions: so constants that are folded obey the
/// [limits of folding](crate::functions::limits), and not those of what runs.
pub fn planning_options() -> &'static Arc<ConfigOptions> {
    static OPTIONS: LazyLock<Arc<ConfigOptions>> = LazyLock::new(|| {
        let mut options = ConfigOptions::default();
        set_planning_options(&mut options);
        Arc::new(options)
    });
    &OPTIONS
}

/// Polls the plan's root and sends its batches until the end, an error, a kill, or a reader that went away.
async fn drive(
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    cancel: &CancelFlag,
    sender: &mpsc::Sender<Result<RecordBatch, ExecError>>,
) -> Result<(), ExecError> {
    let mut checked = checked_rows::is_asked_for().then(|| CheckedRows::of(&plan));
    let mut stream = execute_stream(plan, task)?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(unwrap_panic)?;
        if let Some(checked) = &mut checked {
            checked.check(&batch)?;
        }
        if cancel.is_cancelled() {
            return Err(ExecError::Cancelled);
        }
        if batch.num_rows() > 0 && sender.send(Ok(batch)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
