//! Status counters: what SHOW STATUS lists.
//!
//! Three sources meet here. Each session counts its access methods' work ([`SessionCounters`]) and its statements by
//! kind ([`CommandCounters`]). The engine keeps the sums of sessions that ended or flushed. The buffer pool has
//! counters of its own, shown under InnoDB's names. A global value is the engine's sum plus what the live sessions have
//! counted since.

use std::sync::atomic::{AtomicU64, Ordering};

use sheaf_access::SessionCounters;
use sheaf_storage::{LockWaits, LogCounters, PAGE_SIZE, PoolCounters};

const NS_PER_MS: u64 = 1_000_000;

macro_rules! commands {
    ($($command:ident => $name:literal,)*) => {
        /// What a session counts of its statements: kinds of them, as `Com_*`, and what they came to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Command {
            $($command,)*
        }

        const COMMANDS: &[&str] = &[$($name,)*];
    };
}

commands! {
    AlterDb => "Com_alter_db",
    AlterTable => "Com_alter_table",
    Analyze => "Com_analyze",
    Begin => "Com_begin",
    ChangeDb => "Com_change_db",
    Checksum => "Com_checksum",
    Commit => "Com_commit",
    CreateDb => "Com_create_db",
    CreateTable => "Com_create_table",
    CreateView => "Com_create_view",
    DeallocSql => "Com_dealloc_sql",
    Do => "Com_do",
    Delete => "Com_delete",
    DeleteMulti => "Com_delete_multi",
    DropDb => "Com_drop_db",
    DropTable => "Com_drop_table",
    DropView => "Com_drop_view",
    ExecuteSql => "Com_execute_sql",
    Explain => "Com_explain_other",
    Flush => "Com_flush",
    GetDiagnostics => "Com_get_diagnostics",
    Insert => "Com_insert",
    InsertSelect => "Com_insert_select",
    Kill => "Com_kill",
    Load => "Com_load",
    LockTables => "Com_lock_tables",
    PrepareSql => "Com_prepare_sql",
    ReleaseSavepoint => "Com_release_savepoint",
    RenameTable => "Com_rename_table",
    Rollback => "Com_rollback",
    RollbackToSavepoint => "Com_rollback_to_savepoint",
    Savepoint => "Com_savepoint",
    Select => "Com_select",
    SetOption => "Com_set_option",
    Show => "Com_show",
    Shutdown => "Com_shutdown",
    StmtClose => "Com_stmt_close",
    StmtExecute => "Com_stmt_execute",
    StmtPrepare => "Com_stmt_prepare",
    Truncate => "Com_truncate",
    UnlockTables => "Com_unlock_tables",
    Update => "Com_update",
    UpdateMulti => "Com_update_multi",
    Questions => "Questions",
    SlowQueries => "Slow_queries",
    BytesReceived => "Bytes_received",
    BytesSent => "Bytes_sent",
    Errors => "Statement_errors",
    Direct => "Statements_direct",
    StatementCacheHits => "Statement_cache_hits",
    StatementCacheMisses => "Statement_cache_misses",
}

/// Statements by kind.
#[derive(Debug)]
pub struct CommandCounters {
    counts: Vec<AtomicU64>,
}

impl Default for CommandCounters {
    fn default() -> Self {
        CommandCounters {
            counts: COMMANDS.iter().map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl CommandCounters {
    pub fn count(&self, command: Command) {
        self.add(command, 1);
    }

    /// To be called only by the thread that runs the session: others read meanwhile, but no other adds, so nothing is
    /// locked.
    pub fn add(&self, command: Command, n: u64) {
        let count = &self.counts[command as usize];
        count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    pub fn get(&self, command: Command) -> u64 {
        self.counts[command as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        COMMANDS
            .iter()
            .zip(&self.counts)
            .map(|(name, count)| (*name, count.load(Ordering::Relaxed)))
    }

    /// Moves all counts into `total` and leaves zeros.
    pub fn fold_into(&self, total: &CommandCounters) {
        for (own, sum) in self.counts.iter().zip(&total.counts) {
            sum.fetch_add(own.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Adds all counts to `total` and keeps them.
    pub fn add_to(&self, total: &CommandCounters) {
        for (own, sum) in self.counts.iter().zip(&total.counts) {
            sum.fetch_add(own.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// How full the cache of direct plans is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedPlansGauges {
    pub(crate) statements: u64,
    /// By estimate.
    pub(crate) bytes: u64,
    pub(crate) evictions: u64,
}

/// What the engine knows besides counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerGauges {
    pub uptime_seconds: u64,
    pub connections: u64,
    pub threads_connected: u64,
    pub threads_running: u64,
    pub max_used_connections: u64,
    pub aborted_connects: u64,
    pub aborted_clients: u64,
    pub prepared_statements: u64,
    pub open_tables: u64,
    /// Digests that had no place.
    pub digests_lost: u64,
    /// Entries of the slow query log that were not written.
    pub slow_log_lost: u64,
    pub query_memory_bytes: u64,
    /// Statements that wait for query memory.
    pub query_memory_waits: u64,
    /// Anonymous resident memory of the process, and what it may take; 0 where the program that the engine is in has
    /// set no limit.
    pub process_memory_bytes: u64,
    pub process_memory_limit: u64,
    pub statement_cache: SharedPlansGauges,
    /// Memory of old row versions that may still be read.
    pub version_bytes: u64,
    /// Most memory that they may take; what does not fit is spilled.
    pub version_bytes_limit: u64,
    /// Leaves of which old row versions are kept.
    pub leaves_with_versions: u64,
    /// Room in the spill file that old row versions and the undo of long transactions take.
    pub spilled_bytes: u64,
    pub spill_written_bytes: u64,
    pub spill_read_bytes: u64,
    /// Temporary files of statements.
    pub temp_file_bytes: u64,
    /// Explicit row locks held or waited for.
    pub row_locks: u64,
    pub lock_waits: LockWaits,
    /// Bytes of log that the archive does not have yet.
    pub archive_waiting_bytes: u64,
    pub log: LogCounters,
}

/// All status variables by name, with values as SHOW STATUS prints them.
pub fn entries(
    handler: &SessionCounters,
    commands: &CommandCounters,
    pool: &PoolCounters,
    gauges: &ServerGauges,
    last_query_cost: f64,
) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = Vec::new();
    let mut add = |name: &'static str, value: u64| all.push((name, value.to_string()));
    for (name, value) in handler.entries() {
        add(name, value);
    }
    for (name, value) in commands.entries() {
        add(name, value);
    }
    add("Queries", commands.get(Command::Questions));
    let page_bytes = PAGE_SIZE as u64;
    add(
        "Innodb_buffer_pool_bytes_data",
        (pool.pages_total - pool.pages_free) * page_bytes,
    );
    add(
        "Innodb_buffer_pool_bytes_dirty",
        pool.pages_dirty * page_bytes,
    );
    add(
        "Innodb_buffer_pool_pages_data",
        pool.pages_total - pool.pages_free,
    );
    add("Innodb_buffer_pool_pages_dirty", pool.pages_dirty);
    add("Innodb_buffer_pool_pages_flushed", pool.pages_written);
    add("Innodb_buffer_pool_pages_free", pool.pages_free);
    add("Innodb_buffer_pool_pages_total", pool.pages_total);
    add("Innodb_buffer_pool_read_ahead", pool.read_ahead);
    add("Innodb_buffer_pool_read_requests", pool.read_requests);
    add("Innodb_buffer_pool_reads", pool.reads);
    add("Innodb_data_fsyncs", pool.syncs);
    add("Innodb_data_read", pool.data_read);
    add("Innodb_data_reads", pool.data_reads);
    add("Innodb_data_writes", pool.write_requests);
    add("Innodb_data_written", pool.data_written);
    add("Innodb_lsn_current", gauges.log.end);
    add("Innodb_os_log_fsyncs", gauges.log.flushes);
    add("Innodb_os_log_written", gauges.log.written_bytes);
    add("Innodb_page_size", page_bytes);
    add("Innodb_pages_read", pool.pages_read);
    add("Innodb_pages_written", pool.pages_written);
    let waits = &gauges.lock_waits;
    add("Innodb_row_lock_current_waits", waits.waiting);
    add("Innodb_row_lock_time", waits.wait_ns / NS_PER_MS);
    let average_ns = waits.wait_ns / waits.waits.max(1);
    add("Innodb_row_lock_time_avg", average_ns / NS_PER_MS);
    add("Innodb_row_lock_time_max", waits.longest_ns / NS_PER_MS);
    add("Innodb_row_lock_waits", waits.waits);
    add("Innodb_deadlocks", waits.deadlocks);
    add(
        "Innodb_buffer_pool_read_ahead_evicted",
        pool.read_ahead_unused,
    );
    add("Aborted_clients", gauges.aborted_clients);
    add("Aborted_connects", gauges.aborted_connects);
    add("Archive_waiting_bytes", gauges.archive_waiting_bytes);
    add("Connections", gauges.connections);
    add("Max_used_connections", gauges.max_used_connections);
    add("Open_tables", gauges.open_tables);
    add("Performance_schema_digest_lost", gauges.digests_lost);
    add("Slow_log_entries_lost", gauges.slow_log_lost);
    add("Prepared_stmt_count", gauges.prepared_statements);
    add("Process_memory_bytes", gauges.process_memory_bytes);
    add("Process_memory_limit", gauges.process_memory_limit);
    add("Query_memory_bytes", gauges.query_memory_bytes);
    add("Query_memory_waits", gauges.query_memory_waits);
    add("Row_locks", gauges.row_locks);
    let cache = &gauges.statement_cache;
    add("Statement_cache_bytes", cache.bytes);
    add("Statement_cache_evictions", cache.evictions);
    add("Statement_cache_statements", cache.statements);
    add("Temp_file_bytes", gauges.temp_file_bytes);
    add("Threads_connected", gauges.threads_connected);
    add("Threads_running", gauges.threads_running);
    add("Uptime", gauges.uptime_seconds);
    add("Version_bytes", gauges.version_bytes);
    add("Version_bytes_limit", gauges.version_bytes_limit);
    add("Version_leaves", gauges.leaves_with_versions);
    add("Version_spilled_bytes", gauges.spilled_bytes);
    add("Version_spill_bytes_read", gauges.spill_read_bytes);
    add("Version_spill_bytes_written", gauges.spill_written_bytes);
    all.push(("Last_query_cost", format!("{last_query_cost:.6}")));
    // A session fills in its own.
    all.push(("Compression", "OFF".to_string()));
    all.push(("Ssl_cipher", String::new()));
    all.push(("Ssl_version", String::new()));
    all.sort_unstable_by_key(|(name, _)| *name);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_moves_counts() {
        let (session, engine) = (CommandCounters::default(), CommandCounters::default());
        session.count(Command::Select);
        session.count(Command::Select);
        session.fold_into(&engine);
        assert_eq!(
            (session.get(Command::Select), engine.get(Command::Select)),
            (0, 2)
        );
    }

    #[test]
    fn the_names_that_tools_read_are_there_once() {
        let all = entries(
            &SessionCounters::default(),
            &CommandCounters::default(),
            &PoolCounters::default(),
            &ServerGauges::default(),
            0.0,
        );
        for name in [
            "Handler_read_key",
            "Handler_mrr_init",
            "Handler_mrr_rowid_refills",
            "Handler_icp_attempts",
            "Handler_icp_match",
            "Innodb_buffer_pool_read_requests",
            "Innodb_rows_read",
            "Innodb_data_reads",
            "Threads_connected",
            "Questions",
            "Slow_queries",
            "Bytes_sent",
            "Aborted_clients",
            "Uptime",
            "Com_select",
            "Last_query_cost",
        ] {
            assert_eq!(
                all.iter().filter(|(known, _)| *known == name).count(),
                1,
                "{name}"
            );
        }
        assert!(
            all.windows(2).all(|pair| pair[0].0 < pair[1].0),
            "sorted, no name twice"
        );
    }
}
