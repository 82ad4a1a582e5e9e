//! Writes docs/status.md from the status variables, and checks that the document is up to date.
//!
//! A variable without a meaning here fails the test, and so does a meaning without a variable.

use std::collections::BTreeSet;

use sheaf_access::SessionCounters;
use sheaf_storage::PoolCounters;

use crate::session::status::{CommandCounters, ServerGauges, entries};
use crate::tests::check_document;

const OPENING: &str = "\
# Status variables

What `SHOW STATUS` lists. Names and meanings are MySQL's where MySQL has the variable. Counters marked *session* belong
to each session: `SHOW SESSION STATUS` shows a session's own, `SHOW GLOBAL STATUS` those of all, and `FLUSH STATUS`
moves the session's to the global ones. The others are about the server. This page is written by a test;
`SHEAF_WRITE_DOCS=1 cargo test --release -p sheaf-sql --lib documents` writes it anew.

| variable | of | meaning |
|---|---|---|
";

/// What each variable means, besides `Com_*`.
#[rustfmt::skip] // One variable a line reads as the table that it is.
const MEANINGS: &[(&str, &str)] = &[
    ("Aborted_clients", "Connections that ended without COM_QUIT."),
    ("Aborted_connects", "Connections that failed before they were authenticated."),
    ("Archive_waiting_bytes", "Bytes of log that are not archived yet."),
    ("Bytes_received", "Bytes that clients have sent."),
    ("Bytes_sent", "Bytes that were sent to clients."),
    ("Compression", "Whether the connection is compressed."),
    ("Connections", "Connections since the start."),
    ("Handler_commit", "Statements committed."),
    ("Handler_delete", "Rows deleted."),
    ("Handler_icp_attempts", "Index entries tested by an index condition."),
    ("Handler_icp_match", "Index entries that an index condition let through."),
    ("Handler_mrr_init", "Multi-range reads started: one for each scan, and one for each join buffer."),
    ("Handler_mrr_key_refills", "Join buffers of a batched keyed join after its first."),
    ("Handler_mrr_rowid_refills", "Buffers of primary keys after the first of each multi-range read."),
    ("Handler_read_first", "Scans that started at the first entry of an index."),
    ("Handler_read_key", "Ranges and points that were positioned by key."),
    ("Handler_read_last", "Scans that started at the last entry of an index."),
    ("Handler_read_next", "Forward steps over index entries."),
    ("Handler_read_prev", "Backward steps over index entries."),
    ("Handler_read_rnd", "Rows read by position: the row reads of multi-range reads."),
    ("Handler_read_rnd_next", "Steps of full table scans: one for each row and one that meets the end."),
    ("Handler_rollback", "Statements rolled back."),
    ("Handler_update", "Rows updated."),
    ("Handler_write", "Rows inserted."),
    ("Innodb_buffer_pool_bytes_data", "Bytes of the buffer pool's pages with data."),
    ("Innodb_buffer_pool_bytes_dirty", "Bytes of the buffer pool's pages that were changed and not written yet."),
    ("Innodb_buffer_pool_pages_data", "Pages of the buffer pool with data."),
    ("Innodb_buffer_pool_pages_dirty", "Pages that were changed and not written yet."),
    ("Innodb_buffer_pool_pages_flushed", "Pages written from the buffer pool."),
    ("Innodb_buffer_pool_pages_free", "Pages of the buffer pool that are free."),
    ("Innodb_buffer_pool_pages_total", "Pages of the buffer pool."),
    ("Innodb_buffer_pool_read_ahead", "Pages that were read before they were asked for."),
    ("Innodb_buffer_pool_read_requests", "Reads of pages, from memory or from disk."),
    ("Innodb_buffer_pool_reads", "Reads of pages that had to wait for the disk."),
    ("Innodb_data_fsyncs", "Calls of fsync for the data file."),
    ("Innodb_data_read", "Bytes read from the data file."),
    ("Innodb_data_reads", "Read requests to the data file."),
    ("Innodb_data_writes", "Write requests to the data file."),
    ("Innodb_data_written", "Bytes written to the data file."),
    ("Innodb_lsn_current", "The position at which the log ends."),
    ("Innodb_os_log_fsyncs", "Flushes of the log."),
    ("Innodb_os_log_written", "Bytes written to the log."),
    ("Innodb_page_size", "Bytes of a page."),
    ("Innodb_pages_read", "Pages read from the data file."),
    ("Innodb_pages_written", "Pages written to the data file."),
    ("Innodb_rows_read", "Rows read from clustered indexes, and entries of covering indexes."),
    ("Last_query_cost", "The estimated cost of the session's last planned query, in microseconds."),
    ("Max_used_connections", "The most connections at one time since the start."),
    ("Open_tables", "Tables that are open."),
    ("Prepared_stmt_count", "Prepared statements of all sessions."),
    ("Process_memory_bytes", "Memory of the process by the system's count, without pages of files."),
    ("Process_memory_limit", "What the process may take, as --memory says; 0 inside of another program."),
    ("Queries", "Statements, those inside prepared statements too."),
    ("Query_memory_bytes", "Query memory that is in use."),
    ("Query_memory_waits", "Statements that wait for query memory."),
    ("Questions", "Statements that clients have sent."),
    ("Row_locks", "Row locks that are held or waited for."),
    ("Sheaf_index_jumps", "Jumps inside index ranges, over entries that cannot match."),
    ("Sheaf_plan_switches", "Plans that spent more than estimated and were replaced by another one."),
    ("Slow_queries", "Statements that took longer than `long_query_time`."),
    ("Ssl_cipher", "The cipher of the connection; empty without TLS."),
    ("Ssl_version", "The TLS version of the connection; empty without TLS."),
    ("Statement_cache_bytes", "Bytes of the cache of direct plans that sessions share."),
    ("Statement_cache_evictions", "Plans that left this cache to make room."),
    ("Statement_cache_hits", "Statements whose direct plan was found in a cache."),
    ("Statement_cache_misses", "Statements whose direct plan was looked for and not found."),
    ("Statement_cache_statements", "Plans in the cache that sessions share."),
    ("Statement_errors", "Statements that failed."),
    ("Statements_direct", "Statements that ran by a direct plan."),
    ("Temp_file_bytes", "Bytes of temporary files in use."),
    ("Threads_connected", "Connections that are open."),
    ("Threads_running", "Connections that run a statement."),
    ("Uptime", "Seconds since the start."),
    ("Version_bytes", "Memory of old row versions."),
    ("Version_bytes_limit", "The most memory that old row versions take before they spill."),
    ("Version_leaves", "Leaf pages with old row versions."),
    ("Version_spill_bytes_read", "Bytes of old row versions read back from the spill file."),
    ("Version_spill_bytes_written", "Bytes of old row versions written to the spill file."),
    ("Version_spilled_bytes", "Bytes of old row versions in the spill file."),
];

/// Variables that each session has for itself, besides counters.
const OF_SESSIONS: [&str; 4] = [
    "Compression",
    "Last_query_cost",
    "Ssl_cipher",
    "Ssl_version",
];

#[test]
fn documents_of_status_variables_are_up_to_date() {
    let (handler, commands) = (SessionCounters::default(), CommandCounters::default());
    let counted: BTreeSet<&str> = handler
        .entries()
        .into_iter()
        .chain(commands.entries())
        .map(|(name, _)| name)
        .chain(OF_SESSIONS)
        .collect();
    let gauges = ServerGauges::default();
    let all = entries(&handler, &commands, &PoolCounters::default(), &gauges, 0.0);
    let mut page = OPENING.to_string();
    let mut described = 0;
    for (name, _) in &all {
        let meaning = match name.strip_prefix("Com_") {
            Some(statement) => format!("Statements: `{}`.", statement.replace('_', " ")),
            None => {
                described += 1;
                let known = MEANINGS.iter().find(|(known, _)| known == name);
                known
                    .unwrap_or_else(|| panic!("{name} has no meaning"))
                    .1
                    .to_string()
            }
        };
        let of = match counted.contains(name) {
            true => "session",
            false => "server",
        };
        page.push_str(&format!("| `{name}` | {of} | {meaning} |\n"));
    }
    assert_eq!(described, MEANINGS.len(), "a meaning of no variable");
    check_document("status.md", &page);
}
