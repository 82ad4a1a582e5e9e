//! One open database: its storage, its catalog, its sessions, its worker threads. `start/` opens it.
//!
//! | file | what it holds |
//! |---|---|
//! | [`options`] | how an engine is opened, and how its memory is divided |
//! | [`maintenance_thread`] | the thread of what it does by itself (`start/maintenance.rs`) |
//! | [`kept_variables`] | what SET PERSIST has kept |
//! | [`optimizer_costs`] | the tables `mysql.server_cost` and `mysql.engine_cost` |
//! | [`rewrite_rules`] | the query rewrite rules that are in force |
//! | [`shared_plans`] | plans that all sessions share |
//! | [`binary_log`] | the binary log of the engine |
//! | [`replication`] | the engine as a replica |
//! | [`transports`] | how clients reach the server |
//! | [`digest_cache`] | of passwords, for clients that have connected before |
//! | [`counted`] | what performance_schema shows of all sessions |
//! | [`metrics`] | status variables with what they mean, for monitoring |

mod binary_log;
mod counted;
mod digest_cache;
mod kept_variables;
pub(crate) mod maintenance_thread;
pub(crate) mod metrics;
pub(crate) mod optimizer_costs;
mod options;
mod replication;
pub(crate) mod rewrite_rules;
pub(crate) mod shared_plans;
mod transports;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use sheaf_access::SessionCounters;
use sheaf_exec::runtime::thread_placement;
use sheaf_exec::{QueryRuntime, RuntimeOptions};
use sheaf_frontend::user_lock::SessionLocks;
use sheaf_memory::crowd::Crowd;
use sheaf_memory::planning::PlanningMemory;
use sheaf_memory::{Budget, process};
use sheaf_optimizer::CostConstants;
use sheaf_storage::Storage;
use sheaf_table::{AccountName, Catalog, Privileges, UserLocks};

use crate::binlog::{Binlogger, Replicas, server_uuid};
use crate::engine::digest_cache::DigestCache;
use crate::engine::maintenance_thread::Maintenance;
use crate::engine::options::{
    DIGEST_BYTES, DIGEST_SHARE, MAX_PACKET_BYTES, MIN_PACKET_BYTES, PACKET_SHARE, catalog_limits,
    long_statement_bytes, most_connections, planning_bytes, session_bytes,
};
pub use crate::engine::options::{EngineOptions, MIN_MEMORY_BYTES, MemorySplit};
use crate::engine::rewrite_rules::RewriteRegistry;
use crate::engine::shared_plans::SharedPlans;
use crate::error::{Result, SqlError};
use crate::events::digest_table::DigestTable;
use crate::events::slow_log::SlowLog;
use crate::replica_parts::Replica;
use crate::rights::global_at_start;
use crate::session_parts::handle::SessionHandle;
use crate::session_parts::info::SessionInfo;
use crate::session_parts::statement_timer::StatementTimer;
use crate::session_parts::status::{Command, CommandCounters, ServerGauges};
use crate::session_parts::workers::ActiveGroups;
use crate::variables::persisted::{self, PersistedVariables};
use crate::variables::{self, ServerReadOnly, VariableValue, Variables};

/// Clients that may identify themselves while all places of `max_connections` are taken: one of them may be let in yet.
const LOGINS: usize = 16;

/// One open database. Shared by all its sessions.
pub struct Engine {
    options: EngineOptions,
    memory: MemorySplit,
    /// Where the database is.
    directory: PathBuf,
    storage: Arc<Storage>,
    catalog: Arc<Catalog>,
    runtime: Arc<QueryRuntime>,
    started: Instant,
    globals: RwLock<Variables>,
    persisted: Mutex<PersistedVariables>,
    /// A server listens, and no client can keep from others what it sends.
    lacks_secure_transport: AtomicBool,
    /// A [`ServerReadOnly`], as the global variables say.
    read_only: AtomicU8,
    sessions: Mutex<BTreeMap<u64, Arc<SessionHandle>>>,
    /// Sessions that have a place of `max_connections`. Changed under the lock of `sessions`.
    places_taken: AtomicUsize,
    next_session_id: AtomicU64,
    max_used_connections: AtomicU64,
    aborted_connects: AtomicU64,
    aborted_clients: AtomicU64,
    pub(crate) prepared_statements: AtomicU64,
    /// Memory of requests that are not short, from their first byte to their answer.
    long_statements: Arc<Budget>,
    /// What statements take before they run.
    planning: Arc<PlanningMemory>,
    /// The statements that are planned or run.
    crowd: Arc<Crowd>,
    /// What sessions keep: user variables, texts of prepared statements, parameters that were sent ahead.
    kept_by_sessions: Arc<Budget>,
    pub(crate) timer: StatementTimer,
    pub(crate) plans: SharedPlans,
    /// What ended and flushed sessions counted.
    handler_total: SessionCounters,
    command_total: CommandCounters,
    /// Locks by name.
    user_locks: Arc<UserLocks>,
    pub(crate) rewrite_rules: RewriteRegistry,
    pub(crate) resource_groups: ActiveGroups,
    /// What was counted of statements.
    pub(crate) digest_table: DigestTable,
    pub(crate) slow_log: SlowLog,
    /// Empty if there is none.
    binlog: OnceLock<Arc<Binlogger>>,
    replica: Replica,
    pub(crate) replicas: Arc<Replicas>,
    /// Of users that have connected.
    pub(crate) digests: DigestCache,
    /// What statements are planned with, from the tables of cost constants.
    pub(crate) costs: Mutex<CostConstants>,
    maintenance: Mutex<Option<Maintenance>>,
    shutting_down: AtomicBool,
    /// Tells the program that runs the engine that SHUTDOWN was said.
    shutdown_request: OnceLock<Box<dyn Fn() + Send + Sync>>,
    closed: AtomicBool,
}

impl Engine {
    /// The engine of an open storage, before it has read anything.
    pub(crate) fn new(
        storage: Arc<Storage>,
        path: &Path,
        options: EngineOptions,
    ) -> Result<Arc<Engine>> {
        options.check()?;
        let memory = options.memory_split()?;
        // Before any thread is moved.
        tracing::debug!(cpus = %thread_placement::cpus_of_process(), "opening");
        let limits = catalog_limits(options.memory_bytes);
        let catalog = Catalog::open_within(Arc::clone(&storage), limits)?;
        let runtime = QueryRuntime::new(RuntimeOptions {
            threads: options.worker_threads(),
            query_memory_bytes: memory.query_bytes,
            temp_space: Arc::clone(storage.temp_space()),
        })?;
        let globals = Self::global_variables(path, &options, memory, &storage);
        let rewrite_rules = RewriteRegistry::new(&catalog);
        let memory_bytes = options.memory_bytes;
        let kept_by_sessions = Budget::new(session_bytes(memory_bytes));
        // Operators have less where sessions keep much.
        runtime.memory().set_aside(Arc::clone(&kept_by_sessions));
        Ok(Arc::new(Engine {
            options,
            memory,
            directory: path.to_path_buf(),
            storage,
            catalog,
            runtime,
            started: Instant::now(),
            digest_table: DigestTable::new(globals.digests_size(), globals.max_digest_length()),
            slow_log: SlowLog::default(),
            binlog: OnceLock::new(),
            replica: Replica::default(),
            replicas: Arc::default(),
            globals: RwLock::new(globals),
            persisted: Mutex::new(persisted::read_file(path)?),
            lacks_secure_transport: AtomicBool::new(false),
            read_only: AtomicU8::new(ServerReadOnly::Nobody as u8),
            sessions: Mutex::new(BTreeMap::new()),
            places_taken: AtomicUsize::new(0),
            next_session_id: AtomicU64::new(1),
            max_used_connections: AtomicU64::new(0),
            aborted_connects: AtomicU64::new(0),
            aborted_clients: AtomicU64::new(0),
            prepared_statements: AtomicU64::new(0),
            long_statements: Budget::new(long_statement_bytes(memory_bytes)),
            planning: PlanningMemory::new(planning_bytes(memory_bytes)),
            crowd: Arc::default(),
            kept_by_sessions,
            timer: StatementTimer::default(),
            plans: SharedPlans::default(),
            handler_total: SessionCounters::default(),
            command_total: CommandCounters::default(),
            user_locks: Arc::default(),
            rewrite_rules,
            resource_groups: ActiveGroups::default(),
            digests: DigestCache::default(),
            costs: Mutex::default(),
            maintenance: Mutex::default(),
            shutting_down: AtomicBool::new(false),
            shutdown_request: OnceLock::new(),
            closed: AtomicBool::new(false),
        }))
    }

    fn global_variables(
        path: &Path,
        options: &EngineOptions,
        memory: MemorySplit,
        storage: &Storage,
    ) -> Variables {
        let mut globals = Variables::default();
        let integer = |number: usize| VariableValue::Integer(number as i128);
        let text = |text: String| VariableValue::Text(text);
        let packet_bytes =
            (options.memory_bytes / PACKET_SHARE).clamp(MIN_PACKET_BYTES, MAX_PACKET_BYTES);
        globals.set_internally("max_allowed_packet", integer(packet_bytes));
        let long_statements = long_statement_bytes(options.memory_bytes);
        globals.set_internally("long_statement_memory", integer(long_statements));
        let kept_by_sessions = session_bytes(options.memory_bytes);
        globals.set_internally("session_memory", integer(kept_by_sessions));
        let limits = catalog_limits(options.memory_bytes);
        globals.set_internally("definition_memory", integer(limits.definition_bytes));
        globals.set_internally("statistics_memory", integer(limits.statistics_bytes));
        globals.set_internally("innodb_buffer_pool_size", integer(memory.pool_bytes));
        globals.set_internally(
            "innodb_log_buffer_size",
            integer(storage.log_buffer_bytes() as usize),
        );
        variables::show_storage_options(&mut globals, storage.options());
        let connections = options
            .max_connections
            .min(most_connections(options.memory_bytes));
        if connections < options.max_connections {
            tracing::warn!(
                wanted = options.max_connections,
                "max_connections is {connections}: the memory holds no more connections"
            );
        }
        globals.set_internally("max_connections", integer(connections));
        let digests = (options.memory_bytes / DIGEST_SHARE / DIGEST_BYTES).min(options.digests);
        globals.set_internally("performance_schema_digests_size", integer(digests));
        globals.set_internally(
            "require_secure_transport",
            VariableValue::Bool(options.require_secure_transport),
        );
        globals.set_internally("port", integer(usize::from(options.port)));
        globals.set_internally("datadir", text(path.display().to_string()));
        let secure_file_priv = options
            .secure_file_priv
            .as_ref()
            .map_or("NULL".to_string(), |path| path.display().to_string());
        globals.set_internally("secure_file_priv", text(secure_file_priv));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
        let host = host.map_or("localhost".to_string(), |name| name.trim().to_string());
        let log = path.join(format!("{host}-slow.log"));
        globals.set_internally("slow_query_log_file", text(log.display().to_string()));
        globals.set_internally("hostname", text(host));
        let server = server_uuid(storage.history()).to_string();
        globals.set_internally("server_uuid", text(server));
        globals
    }

    pub(crate) fn long_statements(&self) -> &Arc<Budget> {
        &self.long_statements
    }

    pub(crate) fn crowd(&self) -> &Arc<Crowd> {
        &self.crowd
    }

    pub(crate) fn planning(&self) -> &Arc<PlanningMemory> {
        &self.planning
    }

    pub(crate) fn kept_by_sessions(&self) -> &Arc<Budget> {
        &self.kept_by_sessions
    }

    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    pub fn memory(&self) -> MemorySplit {
        self.memory
    }

    /// Where the database is.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub fn runtime(&self) -> &Arc<QueryRuntime> {
        &self.runtime
    }

    /// Threads that vectorised plans and bulk loads run on.
    pub fn worker_threads(&self) -> usize {
        self.runtime.options().threads
    }

    fn lock_sessions(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<SessionHandle>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle of a session that begins. Dropping the session takes it out of the list again.
    ///
    /// # Errors
    /// 1053 when the engine is closing, 1040 when there are too many sessions.
    pub(crate) fn begin_session(&self, info: &SessionInfo) -> Result<Arc<SessionHandle>> {
        if self.is_shutting_down() {
            return Err(SqlError::server_shutdown());
        }
        let limit = self.max_clients();
        let id = self.next_session_id.fetch_add(1, Ordering::Relaxed);
        let handle = Arc::new(SessionHandle::new(id, &info.user, &info.host));
        // A handle may outlive the engine.
        let storage = Arc::downgrade(&self.storage);
        handle.on_cancel(Box::new(move || {
            if let Some(storage) = storage.upgrade() {
                storage.rouse_lock_waiters();
            }
        }));
        let mut sessions = self.lock_sessions();
        if sessions.len() >= limit {
            return Err(SqlError::too_many_connections());
        }
        sessions.insert(id, Arc::clone(&handle));
        self.max_used_connections
            .fetch_max(sessions.len() as u64, Ordering::Relaxed);
        drop(sessions);
        Ok(handle)
    }

    /// The locks by name, for this session.
    pub(crate) fn user_locks(&self, handle: &Arc<SessionHandle>) -> SessionLocks {
        let shown = Arc::clone(handle);
        let show_state = Arc::new(move |state: &str| shown.set_state(state));
        SessionLocks::new(Arc::clone(&self.user_locks), handle.id(), show_state)
    }

    /// Gives a session a place of `max_connections`, as a connection of its account; it may have had one of another.
    ///
    /// # Errors
    /// 1040 if there is none left; an account that may end connections gets one more. 1203 and 1226 if the account has
    /// its share.
    pub(crate) fn give_place(
        &self,
        handle: &SessionHandle,
        account: Option<&AccountName>,
    ) -> Result<()> {
        let accounts = self.catalog.accounts();
        let account = account.map(|name| (name, accounts.get(name)));
        let globals = self.globals();
        let is_administrator = account.is_none_or(|(name, _)| {
            let to_mend = Privileges::CONNECTION_ADMIN | Privileges::SUPER;
            let with_all_roles = globals.activates_all_roles();
            global_at_start(&self.catalog, name, with_all_roles).intersects(to_mend)
        });
        let places = self.max_connections() + usize::from(is_administrator);
        let sessions = self.lock_sessions();
        let taken = self.places_taken.load(Ordering::Relaxed) - usize::from(handle.has_place());
        if taken >= places {
            return Err(SqlError::too_many_connections());
        }
        if let Some((name, found)) = account {
            let own_limit = found.map_or(0, |found| found.max_user_connections as usize);
            let limit = match own_limit {
                // It is there to leave room for administrators.
                0 if is_administrator => 0,
                0 => globals.max_user_connections(),
                own => own,
            };
            let others = || {
                let all = sessions.values().filter(|other| other.is_of(name));
                all.filter(|other| other.id() != handle.id()).count()
            };
            if limit > 0 && others() >= limit {
                return Err(match own_limit {
                    0 => SqlError::too_many_user_connections(&name.user),
                    _ => SqlError::user_limit_reached(&name.user, "max_user_connections", limit),
                });
            }
        }
        if handle.take_place(account.map(|(name, _)| name)) {
            self.places_taken.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The connections of an account stay its own when it gets another name.
    pub(crate) fn rename_connections(&self, old: &AccountName, new: &AccountName) {
        for handle in self.lock_sessions().values() {
            handle.rename_account(old, new);
        }
    }

    /// Clients that may be connected at the same time, with those that have not identified themselves yet.
    pub fn max_clients(&self) -> usize {
        self.max_connections().saturating_add(LOGINS)
    }

    /// How long a client may take to identify itself (`connect_timeout`).
    pub fn connect_timeout(&self) -> Duration {
        self.globals().connect_timeout()
    }

    /// The greatest value of `max_connections`.
    pub(crate) fn most_connections(&self) -> usize {
        most_connections(self.options.memory_bytes)
    }

    /// Clients that may be connected at the same time, as `max_connections` says now.
    pub fn max_connections(&self) -> usize {
        let limit = match self.globals().get("max_connections") {
            Ok(VariableValue::Integer(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
            _ => self.options.max_connections,
        };
        limit.min(self.most_connections())
    }

    pub(crate) fn end_session(&self, handle: &SessionHandle) {
        handle.counters.fold_into(&self.handler_total);
        handle.commands.fold_into(&self.command_total);
        let mut sessions = self.lock_sessions();
        sessions.remove(&handle.id());
        if handle.has_place() {
            self.places_taken.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The open sessions, by ascending id.
    pub fn sessions(&self) -> Vec<Arc<SessionHandle>> {
        self.lock_sessions().values().cloned().collect()
    }

    /// Ends the statement that a session runs, and with `connection` the session too. Error 1094 for an unknown id.
    pub fn kill(&self, id: u64, connection: bool) -> Result<()> {
        let handle = self.session_handle(id)?;
        if connection {
            handle.kill();
        } else {
            handle.cancel();
        }
        Ok(())
    }

    /// What others may know of a session. Error 1094 for an unknown id.
    pub(crate) fn session_handle(&self, id: u64) -> Result<Arc<SessionHandle>> {
        let sessions = self.lock_sessions();
        let handle = sessions.get(&id).cloned();
        handle.ok_or_else(|| SqlError::no_such_thread(id))
    }

    /// Counts a client that was not let in (`Aborted_connects`).
    pub fn count_aborted_connect(&self) {
        self.aborted_connects.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a client that was let in and ended without saying so (`Aborted_clients`).
    pub fn count_aborted_client(&self) {
        self.aborted_clients.fetch_add(1, Ordering::Relaxed);
    }

    /// `server_id`, as it is now.
    pub(crate) fn server_id(&self) -> u32 {
        let globals = self.globals.read();
        globals.unwrap_or_else(PoisonError::into_inner).server_id()
    }

    /// A copy of the global variables.
    pub fn globals(&self) -> Variables {
        self.globals
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes the global variables under their lock.
    pub(crate) fn change_globals<T>(&self, change: impl FnOnce(&mut Variables) -> T) -> T {
        let mut globals = self.globals.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut globals);
        // Under the lock, so that the last change is the last word.
        let read_only = globals.server_read_only() as u8;
        self.read_only.store(read_only, Ordering::Relaxed);
        let wait = globals.query_memory_wait_timeout();
        self.runtime.memory().set_wait_timeout(wait);
        self.slow_log.configure(globals.slow_log_options());
        self.configure_binlog(&globals);
        changed
    }

    /// Which users may not change anything. Every statement that does asks.
    pub(crate) fn read_only(&self) -> ServerReadOnly {
        let read_only = self.read_only.load(Ordering::Relaxed);
        let all = [ServerReadOnly::WithoutPrivilege, ServerReadOnly::All];
        let found = all.into_iter().find(|kind| *kind as u8 == read_only);
        found.unwrap_or_default()
    }

    /// FLUSH STATUS: the session's counts go to the global ones.
    pub(crate) fn flush_status(&self, handle: &SessionHandle) {
        handle.counters.fold_into(&self.handler_total);
        handle.commands.fold_into(&self.command_total);
    }

    /// Sums over all sessions that are and were.
    pub(crate) fn global_counters(&self) -> (SessionCounters, CommandCounters) {
        let (handler, commands) = (SessionCounters::default(), CommandCounters::default());
        self.handler_total.add_to(&handler);
        self.command_total.add_to(&commands);
        for session in self.sessions() {
            session.counters.add_to(&handler);
            session.commands.add_to(&commands);
        }
        (handler, commands)
    }

    pub(crate) fn gauges(&self) -> ServerGauges {
        let sessions = self.sessions();
        let running = sessions
            .iter()
            .filter(|session| session.activity().command != "Sleep")
            .count();
        let open_tables = self
            .catalog
            .databases()
            .iter()
            .map(|name| self.catalog.tables(name).map_or(0, |tables| tables.len()))
            .sum::<usize>();
        let transactions = self.storage().transaction_counters();
        ServerGauges {
            version_bytes: transactions.version_bytes,
            version_bytes_limit: transactions.version_bytes_limit,
            leaves_with_versions: transactions.leaves_with_versions,
            spilled_bytes: transactions.spilled_bytes,
            spill_written_bytes: transactions.spill_written_bytes,
            spill_read_bytes: transactions.spill_read_bytes,
            temp_file_bytes: self.storage().temp_space().used_bytes(),
            row_locks: transactions.row_locks,
            lock_waits: transactions.lock_waits,
            archive_waiting_bytes: self
                .storage()
                .archive_progress()
                .map_or(0, |progress| progress.waiting_bytes),
            statement_cache: self.plans.gauges(),
            log: self.storage().log_counters(),
            uptime_seconds: self.started.elapsed().as_secs(),
            connections: self.next_session_id.load(Ordering::Relaxed) - 1,
            threads_connected: sessions.len() as u64,
            threads_running: running as u64,
            max_used_connections: self.max_used_connections.load(Ordering::Relaxed),
            aborted_connects: self.aborted_connects.load(Ordering::Relaxed),
            aborted_clients: self.aborted_clients.load(Ordering::Relaxed),
            prepared_statements: self.prepared_statements.load(Ordering::Relaxed),
            open_tables: open_tables as u64,
            digests_lost: self.digest_table.lost(),
            slow_log_lost: self.slow_log.dropped(),
            query_memory_bytes: self.runtime.reserved_bytes() as u64,
            query_memory_waits: (self.runtime.memory().waiting() + self.crowd.waiting()) as u64,
            process_memory_bytes: process::resident_bytes().unwrap_or(0) as u64,
            process_memory_limit: process::limit().unwrap_or(0) as u64,
        }
    }

    pub(crate) fn set_maintenance(&self, maintenance: Maintenance) {
        let earlier = self.lock_maintenance().replace(maintenance);
        if let Some(earlier) = earlier {
            earlier.end();
        }
    }

    fn lock_maintenance(&self) -> MutexGuard<'_, Option<Maintenance>> {
        self.maintenance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What SHUTDOWN calls: it is to make the program close the engine, and must not wait for that. The first one
    /// stays.
    pub fn on_shutdown_request(&self, request: impl Fn() + Send + Sync + 'static) {
        let _ = self.shutdown_request.set(Box::new(request));
    }

    /// Error 1235 if the program around the engine takes no such requests.
    pub(crate) fn request_shutdown(&self) -> Result<()> {
        let request = self.shutdown_request.get().ok_or_else(|| {
            SqlError::not_supported_yet(
                "SHUTDOWN inside a program, which closes the database itself",
            )
        })?;
        request();
        Ok(())
    }

    /// No new sessions and no new statements from now on (error 1053); running statements go on.
    pub fn begin_shutdown(&self) {
        self.shutting_down.store(true, Ordering::Release);
    }

    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }

    /// The line that COM_STATISTICS answers.
    pub fn statistics_line(&self) -> String {
        let gauges = self.gauges();
        let (_, commands) = self.global_counters();
        let questions = commands.get(Command::Questions);
        let slow = commands.get(Command::SlowQueries);
        let per_second = questions as f64 / gauges.uptime_seconds.max(1) as f64;
        format!(
            "Uptime: {}  Threads: {}  Questions: {questions}  Slow queries: {slow}  Opens: {}  Flush tables: 0  \
             Open tables: {}  Queries per second avg: {per_second:.3}",
            gauges.uptime_seconds, gauges.threads_connected, gauges.open_tables, gauges.open_tables
        )
    }

    /// Ends all sessions and closes the storage; reopening finds everything that statements acknowledged. Closing
    /// twice is closing once.
    pub fn close(&self) -> Result<()> {
        self.begin_shutdown();
        self.replica.close();
        for session in self.sessions() {
            session.kill();
        }
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let maintenance = self.lock_maintenance().take();
        if let Some(maintenance) = maintenance {
            maintenance.end();
        }
        self.slow_log.close();
        // The storage is closed whatever becomes of the counters.
        let saved = self.catalog.save_auto_increments();
        self.close_binlog();
        self.storage.close()?;
        Ok(saved?)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the storage did not close cleanly");
        }
    }
}
