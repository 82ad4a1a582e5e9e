//! Status variables as metrics: numbers with what they mean.

use std::collections::BTreeSet;

use super::Engine;
use crate::session_parts::status;
use crate::session_parts::status_meanings::MEANINGS;

/// A status variable of the server that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// As SHOW STATUS has it.
    pub name: &'static str,
    /// Empty of `Com_*`.
    pub meaning: &'static str,
    pub value: u64,
    /// It only grows while the server runs.
    pub is_counter: bool,
}

/// Counters of the server, besides those that sessions count.
const COUNTERS: [&str; 27] = [
    "Aborted_clients",
    "Aborted_connects",
    "Connections",
    "Innodb_buffer_pool_pages_flushed",
    "Innodb_buffer_pool_read_ahead",
    "Innodb_buffer_pool_read_ahead_evicted",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_reads",
    "Innodb_data_fsyncs",
    "Innodb_data_read",
    "Innodb_data_reads",
    "Innodb_data_writes",
    "Innodb_data_written",
    "Innodb_deadlocks",
    "Innodb_lsn_current",
    "Innodb_os_log_fsyncs",
    "Innodb_os_log_written",
    "Innodb_pages_read",
    "Innodb_pages_written",
    "Innodb_row_lock_time",
    "Innodb_row_lock_waits",
    "Performance_schema_digest_lost",
    "Queries",
    "Slow_log_entries_lost",
    "Statement_cache_evictions",
    "Version_spill_bytes_read",
    "Version_spill_bytes_written",
];

impl Engine {
    /// Of all sessions that are and were, as SHOW GLOBAL STATUS tells them.
    pub fn metrics(&self) -> Vec<Metric> {
        let (handler, commands) = self.global_counters();
        let pool = self.storage().pool_counters();
        let all = status::entries(&handler, &commands, &pool, &self.gauges(), 0.0);
        let counted = handler.entries().into_iter().chain(commands.entries());
        let counted: BTreeSet<&str> = counted.map(|(name, _)| name).collect();
        let metric = |(name, value): (&'static str, String)| {
            let meaning = MEANINGS.iter().find(|(known, _)| *known == name);
            Some(Metric {
                name,
                meaning: meaning.map_or("", |(_, meaning)| meaning),
                value: value.parse().ok()?,
                is_counter: counted.contains(name) || COUNTERS.contains(&name),
            })
        };
        all.into_iter().filter_map(metric).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::COUNTERS;
    use crate::session_parts::status_meanings::MEANINGS;

    #[test]
    fn counters_are_variables() {
        for name in COUNTERS {
            assert!(MEANINGS.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
