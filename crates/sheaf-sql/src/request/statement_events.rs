//! What is measured of a statement, and where that goes (`events/`).
//!
//! Rows are counted on their way to the client, and those that were examined by the counters of the session's scans:
//! what they were before the statement is subtracted. A statement whose commit others wait for ends when its commit
//! does.

use std::io::Read;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use sheaf_frontend::digest::{Digest, Reading, with_parameters};
use sheaf_optimizer::Reads;
use sheaf_storage::thread_lock_wait_ns;
use sheaf_table::take_reference_lookups;
use sheaf_types::Value;
use sheaf_types::error::codes;

use crate::direct::StatementCache;
use crate::error::Result;
use crate::events::StatementEvent;
use crate::events::slow_log::Entry;
use crate::events::thread_work::{self, Work};
use crate::parser::text_size::{at_first_word, begins_with, first_word};
use crate::session::measured::{DigestCircumstances, KnownBy, Sent, Unfinished};
use crate::session::result::{CellRow, ColumnMeta, EndOfRows, OkInfo, ResultSink};
use crate::session::{Session, SessionHandle};

/// The start of a statement that a sample keeps, in bytes (`performance_schema_max_sql_text_length`).
const MAX_SAMPLE_BYTES: usize = 1024;

/// What was known when a statement began.
struct Before {
    rows_examined: u64,
    scans: u64,
    reads: Reads,
    lock_wait_ns: u64,
}

/// Counts what goes to a sink.
struct Counted<'s> {
    sink: &'s mut dyn ResultSink,
    rows: u64,
    affected: u64,
}

impl ResultSink for Counted<'_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.sink.columns(columns)
    }

    fn row_columns(&mut self, columns: &[ColumnMeta], schema: &SchemaRef) -> Result<()> {
        self.sink.row_columns(columns, schema)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        self.sink.rows(batch)
    }

    fn takes_rows(&self) -> bool {
        self.sink.takes_rows()
    }

    fn row(&mut self, columns: &[ColumnMeta], row: &dyn CellRow) -> Result<()> {
        self.rows += 1;
        self.sink.row(columns, row)
    }

    fn end_of_rows(&mut self, end: EndOfRows) -> Result<()> {
        self.sink.end_of_rows(end)
    }

    fn wants_info(&self) -> bool {
        self.sink.wants_info()
    }

    fn ok(&mut self, ok: OkInfo) -> Result<()> {
        self.affected = ok.affected_rows;
        self.sink.ok(ok)
    }

    fn written_bytes(&self) -> u64 {
        self.sink.written_bytes()
    }

    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>> {
        self.sink.local_infile(name)
    }
}

impl Session {
    /// [Runs](Self::run) a statement of the client, and measures it.
    pub(crate) fn run_measured(
        &mut self,
        sent: Sent<'_>,
        sink: &mut dyn ResultSink,
        body: impl FnOnce(&mut Session, &mut dyn ResultSink) -> Result<()>,
    ) -> Result<()> {
        // One of the engine's own, within another.
        if self.statement.is_measured {
            return self.run(sent.text, |session| body(session, sink));
        }
        self.statement.is_measured = true;
        self.statement.named = None;
        let slot = self.digest_slot(sent);
        let before = self.handle.before();
        // What was noted for none that is measured.
        thread_work::take();
        take_reference_lookups(|_, _| {});
        let bytes_before = sink.written_bytes();
        let mut counted = Counted {
            sink,
            rows: 0,
            affected: 0,
        };
        let outcome = self.run(sent.text, |session| body(session, &mut counted));
        let (rows_sent, rows_affected) = (counted.rows, counted.affected);
        let bytes_sent = counted.written_bytes().saturating_sub(bytes_before);
        self.statement.is_measured = false;
        let now = self.handle.before();
        let error = outcome.as_ref().map_or_else(|error| error.code, |()| 0);
        let event = StatementEvent {
            began_micros: self.statement.start_micros,
            elapsed: self.statement.elapsed.unwrap_or_default(),
            error,
            is_killed: error == codes::QUERY_INTERRUPTED.number(),
            warnings: u64::from(self.warnings.wire_count()),
            rows_affected,
            rows_sent,
            bytes_sent,
            rows_examined: now.rows_examined.saturating_sub(before.rows_examined),
            has_scanned: now.scans > before.scans,
            reads: now.reads.since(before.reads),
            lock_wait: Duration::from_nanos(now.lock_wait_ns.saturating_sub(before.lock_wait_ns)),
            work: thread_work::take(),
        };
        self.handle.count_work(&event);
        let named = self.statement.named.take();
        let (slot, text, parameters) = match &named {
            None => (slot, sent.text, sent.parameters),
            Some(named) => {
                let known_by = format!("{} {}", named.verb, named.text);
                let known_by = KnownBy::Named(named.verb, &known_by);
                let slot = self.digest_slot(Sent::text(&named.text, known_by));
                (slot, &*named.text, &*named.parameters)
            }
        };
        if self.transactions.has_unfinished_commit() {
            self.statement.unfinished = Some(Unfinished { slot, event });
        } else if self.statement.elapsed.is_some() {
            self.note_event(slot, &event, (text, parameters));
        }
        outcome
    }

    /// The commit of a statement has come to its end.
    pub(super) fn note_unfinished(&mut self, error: u16) {
        let Some(Unfinished { slot, mut event }) = self.statement.unfinished.take() else {
            return;
        };
        event.elapsed = self.statement.elapsed.unwrap_or_default();
        event.error = error;
        let text = self.handle.last_statement();
        self.note_event(slot, &event, (&text, &[]));
    }

    /// Where the sums of a statement are; `None`: nothing is counted.
    fn digest_slot(&mut self, sent: Sent<'_>) -> Option<usize> {
        let table = &self.engine.digest_table;
        if !table.is_on() || sent.text.is_empty() {
            return None;
        }
        let database = self.database.as_deref();
        let sql_mode = self.variables.sql_mode();
        self.digests.keep_current(
            |known| known.sql_mode == sql_mode && known.database.as_deref() == database,
            || DigestCircumstances {
                database: database.map(str::to_string),
                sql_mode,
            },
        );
        let cache: Box<StatementCache> = self.statement_cache.take();
        let known_by = match sent.known_by {
            KnownBy::TakenOut => Some(cache.taken_text()),
            KnownBy::Text(text) | KnownBy::Named(_, text) => Some(text),
            KnownBy::Nothing => None,
        };
        let statement = match sent.known_by {
            KnownBy::Text(text) => text,
            KnownBy::TakenOut | KnownBy::Named(..) | KnownBy::Nothing => sent.text,
        };
        let digest = || {
            let reading = Reading {
                ansi_quotes: sql_mode.contains("ANSI_QUOTES"),
                ignore_space: sql_mode.contains("IGNORE_SPACE"),
            };
            let digest = Digest::of(statement, reading, table.max_digest_bytes());
            match sent.known_by {
                KnownBy::Named(verb, _) => digest.behind(verb),
                _ => digest,
            }
        };
        let slot = self.digests.slot(table, database, known_by, digest);
        self.statement_cache.put(cache);
        Some(slot)
    }

    fn note_event(
        &mut self,
        slot: Option<usize>,
        event: &StatementEvent,
        (text, parameters): (&str, &[Value]),
    ) {
        if let Some(slot) = slot {
            self.digests.local().add(slot, event, |sample| {
                sample.push_str(&shown(text, parameters, MAX_SAMPLE_BYTES));
            });
        }
        let log = &self.engine.slow_log;
        if log.is_on() && self.is_logged(event, text) {
            let statement = shown(text, parameters, usize::MAX);
            let entry = Entry {
                event,
                user: &self.client.info.user,
                host: &self.client.info.host,
                session: self.handle.id(),
                schema: self.database.as_deref(),
                statement: &statement,
            };
            log.add(entry.text());
        }
    }

    /// Whether the slow query log has an entry for the statement.
    fn is_logged(&self, event: &StatementEvent, text: &str) -> bool {
        let log = &self.engine.slow_log;
        let is_slow = event.elapsed >= self.variables.long_query_time()
            || event.has_scanned && log.logs_scans();
        is_slow
            && event.rows_examined >= self.variables.min_examined_rows()
            && (log.logs_administration() || !is_administration(text))
    }
}

impl SessionHandle {
    /// Adds what a statement had to sort, to keep, and to look up for foreign keys to the session's counters.
    fn count_work(&self, event: &StatementEvent) {
        let (work, counters) = (event.work, &self.counters);
        take_reference_lookups(|index, lookups| counters.index_uses.add_fetched(index, lookups));
        if work == Work::default() {
            return;
        }
        match event.has_scanned {
            true => counters.sort_scan.add(work.sorts),
            false => counters.sort_range.add(work.sorts),
        }
        counters.sort_rows.add(work.sorted_rows);
        counters.sort_merge_passes.add(work.merge_passes);
        counters.created_tmp_tables.add(work.temporary_tables);
        counters.created_tmp_disk_tables.add(work.temporary_files);
    }

    fn before(&self) -> Before {
        let counters = &self.counters;
        let scans = [
            &counters.handler_read_rnd_next,
            &counters.handler_read_first,
            &counters.handler_read_last,
        ];
        Before {
            rows_examined: counters.rows_read.get(),
            scans: scans.iter().map(|counter| counter.get()).sum(),
            reads: self.reads(),
            lock_wait_ns: thread_lock_wait_ns(),
        }
    }
}

/// A statement as others may see it: with its parameters, but not with passwords.
fn shown(text: &str, parameters: &[Value], most_bytes: usize) -> String {
    if may_have_password(text) {
        return format!(
            "{} /* not shown: it may have a password */",
            first_word(text)
        );
    }
    let mut shown = match parameters.is_empty() {
        true => text[..boundary(text, most_bytes)].to_string(),
        false => with_parameters(text, parameters, most_bytes),
    };
    shown.truncate(boundary(&shown, most_bytes));
    shown
}

/// Whether a password may stand in a statement. Words decide, wherever they stand: a statement with an error, or one in
/// a string that is to be prepared, has its password as well. Statements about rows say what applications keep in
/// tables.
fn may_have_password(text: &str) -> bool {
    const ABOUT_ROWS: [&str; 9] = [
        "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "TABLE", "VALUES", "LOAD",
    ];
    const WORDS: [&[u8]; 2] = [b"identified", b"password"];
    let has = |word: &&[u8]| {
        let mut parts = text.as_bytes().windows(word.len());
        parts.any(|part| part.eq_ignore_ascii_case(word))
    };
    !begins_with(text, &ABOUT_ROWS) && WORDS.iter().any(has)
}

/// The greatest place that is no greater and between characters.
fn boundary(text: &str, most_bytes: usize) -> usize {
    let mut end = text.len().min(most_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// Whether a statement is one of those that `log_slow_admin_statements` is about.
fn is_administration(text: &str) -> bool {
    const STATEMENTS: [[&str; 2]; 9] = [
        ["ALTER", "TABLE"],
        ["ANALYZE", "TABLE"],
        ["CHECK", "TABLE"],
        ["CREATE", "INDEX"],
        ["CREATE", "UNIQUE"],
        ["CREATE", "FULLTEXT"],
        ["DROP", "INDEX"],
        ["OPTIMIZE", "TABLE"],
        ["REPAIR", "TABLE"],
    ];
    let mut words = at_first_word(text).split_ascii_whitespace();
    let (first, second) = (words.next(), words.next());
    let is =
        |word: Option<&str>, known: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(known));
    STATEMENTS
        .iter()
        .any(|[one, other]| is(first, one) && is(second, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_end_between_characters() {
        assert_eq!(shown("select 'é'", &[], 9), "select '");
        assert_eq!(shown("select ?", &[Value::Int(7)], 100), "select 7");
    }

    #[test]
    fn passwords_are_not_shown() {
        let names = "a,".repeat(600);
        for text in [
            "create user u identified by 'geheim'",
            "create user u@identified by 'geheim'",
            "CHANGE MASTER TO MASTER_PASSWORD = 'geheim'",
            r#"prepare p from "alter user u identified by 'geheim'""#,
            r#"set @s = "alter user u IDENTIFIED by 'geheim'""#,
            "/* new */ create user u identified by geheim",
            &format!("create user {names} b identified by 'geheim'"),
        ] {
            assert!(!shown(text, &[], usize::MAX).contains("geheim"), "{text}");
        }
        let text = " (select password from users where id = 1)";
        assert_eq!(shown(text, &[], 100), text);
    }

    #[test]
    fn administration_is_known_by_two_words() {
        assert!(is_administration("alter  table t add b int"));
        assert!(!is_administration("alter"));
        assert!(!is_administration("select 1"));
    }
}
