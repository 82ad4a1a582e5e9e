//! The slow query log: a file with an entry for each statement that took long, as pt-query-digest and PMM read it.
//!
//! ```text
//!   session --entry--> [ bounded queue ] --> the log's thread --> file
//! ```
//!
//! A statement never waits for the disk, and an error of the disk fails none. An entry that finds the queue full is
//! dropped and counted. The file is opened by the thread, and again on FLUSH SLOW LOGS, so that it may be moved away.
//! Where that fails, the log stays on: the thread tries again now and then, and counts what is lost meanwhile.
//!
//! Reference: MySQL manual, "The Slow Query Log"; Percona Server, "Slow Query Log"; the entries have Percona's keys.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sheaf_types::temporal::push_datetime;

use super::StatementEvent;
use super::log_file::LogFile;
use super::lost_entries::LostEntries;

/// Entries that wait to be written, at most.
const MAX_WAITING: usize = 1024;
/// And their bytes.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Of a longer statement the start is written.
const MAX_STATEMENT_BYTES: usize = 256 << 10;
/// A file that could not be opened is tried again after this.
const OPEN_AGAIN: Duration = Duration::from_secs(10);
/// FLUSH SLOW LOGS does not wait longer for what is written.
const FLUSH_WAIT: Duration = Duration::from_secs(10);

/// An entry of the log.
pub(crate) struct Entry<'e> {
    pub(crate) event: &'e StatementEvent,
    pub(crate) user: &'e str,
    pub(crate) host: &'e str,
    pub(crate) session: u64,
    pub(crate) schema: Option<&'e str>,
    pub(crate) statement: &'e str,
}

impl Entry<'_> {
    /// As it stands in the file.
    pub(crate) fn text(&self) -> String {
        let event = self.event;
        let work = event.work;
        let ended = event.began_micros + event.elapsed.as_micros() as i64;
        let schema = self.schema.unwrap_or_default();
        let is = |flag| if flag { "Yes" } else { "No" };
        let mut text = String::with_capacity(512 + self.statement.len().min(MAX_STATEMENT_BYTES));
        // A text takes whatever is written to it.
        let _ = write!(
            text,
            "# Time: {time}\n\
             # User@Host: {user}[{user}] @ {host} [{address}]  Id: {session:5}\n\
             # Schema: {schema}  Last_errno: {error}  Killed: {killed}\n\
             # Query_time: {elapsed:.6}  Lock_time: {locked:.6}  Rows_sent: {sent}  Rows_examined: {examined}  \
             Rows_affected: {affected}  Bytes_sent: {bytes}  Thread_id: {session}\n\
             # Tmp_tables: {tables}  Tmp_disk_tables: {files}\n\
             # Full_scan: {scan}  Full_join: {full_join}  Tmp_table: {has_tables}  Tmp_table_on_disk: {has_files}\n\
             # Filesort: {has_sorted}  Filesort_on_disk: {has_merged}  Merge_passes: {merges}  Sort_rows: {sorted}\n",
            time = utc_text(ended),
            user = one_line(self.user),
            host = one_line(host_name(self.host)),
            address = one_line(address(self.host)),
            session = self.session,
            error = event.error,
            killed = u8::from(event.is_killed),
            elapsed = event.elapsed.as_secs_f64(),
            locked = event.lock_wait.as_secs_f64(),
            sent = event.rows_sent,
            examined = event.rows_examined,
            affected = event.rows_affected,
            bytes = event.bytes_sent,
            tables = work.temporary_tables,
            files = work.temporary_files,
            scan = is(event.has_scanned),
            full_join = is(event.reads.full_joins > 0),
            has_tables = is(work.temporary_tables > 0),
            has_files = is(work.temporary_files > 0),
            has_sorted = is(work.sorts > 0),
            has_merged = is(work.merge_passes > 0),
            merges = work.merge_passes,
            sorted = work.sorted_rows,
            schema = one_line(schema),
        );
        if !schema.is_empty() {
            let _ = writeln!(text, "use {};", one_line(schema));
        }
        let seconds = event.began_micros / 1_000_000;
        let _ = writeln!(text, "SET timestamp={seconds};");
        let mut end = self.statement.len().min(MAX_STATEMENT_BYTES);
        while !self.statement.is_char_boundary(end) {
            end -= 1;
        }
        text.push_str(self.statement[..end].trim_end_matches([';', ' ', '\n']));
        text.push_str(";\n");
        text
    }
}

/// A time in the form of RFC 3339.
fn utc_text(micros: i64) -> String {
    let mut text = String::new();
    push_datetime(micros, 6, &mut text);
    text.replace(' ', "T") + "Z"
}

/// `localhost`, or what stands in front of a port.
fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// The address, where it is known.
fn address(host: &str) -> &str {
    let name = host_name(host);
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    if is_address { name } else { "" }
}

/// A name in a line of its own: a client has chosen it.
fn one_line(name: &str) -> String {
    name.replace(['\n', '\r'], " ")
}

enum Message {
    Entry(String),
    Reopen(SyncSender<()>),
}

struct Writer {
    sender: SyncSender<Message>,
    file: LogFile,
}

/// See the module's comment.
#[derive(Default)]
pub(crate) struct SlowLog {
    is_on: AtomicBool,
    /// `log_queries_not_using_indexes`
    logs_scans: AtomicBool,
    /// `log_slow_admin_statements`
    logs_administration: AtomicBool,
    writer: Mutex<Option<Writer>>,
    waiting_bytes: Arc<AtomicUsize>,
    dropped: Arc<AtomicU64>,
}

/// What the global variables say of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlowLogOptions {
    /// `None`: it is off.
    pub(crate) file: Option<LogFile>,
    pub(crate) logs_scans: bool,
    pub(crate) logs_administration: bool,
}

impl SlowLog {
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub(crate) fn logs_scans(&self) -> bool {
        self.logs_scans.load(Ordering::Relaxed)
    }

    pub(crate) fn logs_administration(&self) -> bool {
        self.logs_administration.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what the variables say by now.
    pub(crate) fn configure(&self, options: SlowLogOptions) {
        let SlowLogOptions {
            file,
            logs_scans,
            logs_administration,
        } = options;
        self.logs_scans.store(logs_scans, Ordering::Relaxed);
        self.logs_administration
            .store(logs_administration, Ordering::Relaxed);
        let mut writer = self.lock();
        if writer.as_ref().map(|writer| &writer.file) == file.as_ref() {
            return;
        }
        self.is_on.store(file.is_some(), Ordering::Relaxed);
        // Its thread ends when it has written what waits. A disk that does not answer must not hold up SET GLOBAL.
        *writer = None;
        let Some(file) = file else { return };
        match self.begin(file) {
            Ok(begun) => *writer = Some(begun),
            Err(error) => {
                self.is_on.store(false, Ordering::Relaxed);
                tracing::error!(%error, "the slow query log has no thread");
            }
        }
    }

    fn begin(&self, file: LogFile) -> io::Result<Writer> {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let waiting_bytes = Arc::clone(&self.waiting_bytes);
        let mut output = Output {
            log_file: file.clone(),
            file: None,
            tried: None,
            lost: LostEntries::new(&self.dropped),
        };
        std::thread::Builder::new()
            .name("slow-log".to_string())
            .spawn(move || write_all(&mut output, &receiver, &waiting_bytes))?;
        Ok(Writer { sender, file })
    }

    /// Puts an entry into the queue. It waits for nothing.
    pub(crate) fn add(&self, entry: String) {
        let bytes = entry.len();
        let writer = self.lock();
        let Some(writer) = writer.as_ref() else {
            return;
        };
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_sent = before + bytes <= MAX_WAITING_BYTES
            && writer.sender.try_send(Message::Entry(entry)).is_ok();
        if !is_sent {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Entries that were not written: the queue was full, or the disk was.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes what waits, and opens the file again.
    pub(crate) fn reopen(&self) {
        let sender = match self.lock().as_ref() {
            Some(writer) => writer.sender.clone(),
            None => return,
        };
        let (done, is_done) = sync_channel(1);
        // A full queue is one that a disk does not take.
        if sender.try_send(Message::Reopen(done)).is_ok() {
            let _ = is_done.recv_timeout(FLUSH_WAIT);
        }
    }

    /// Writes what waits, unless the disk takes too long, and ends the thread.
    pub(crate) fn close(&self) {
        self.reopen();
        self.configure(SlowLogOptions::default());
    }
}

fn write_all(output: &mut Output, receiver: &Receiver<Message>, waiting_bytes: &AtomicUsize) {
    output.reopen(Instant::now());
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Entry(entry) => {
                waiting_bytes.fetch_sub(entry.len(), Ordering::Relaxed);
                output.write(&entry, Instant::now());
            }
            Message::Reopen(done) => {
                output.reopen(Instant::now());
                // It may have stopped waiting.
                let _ = done.try_send(());
            }
        }
    }
    output.lost.report_rest(&output.log_file);
}

/// What entries go to.
struct Output {
    log_file: LogFile,
    file: Option<File>,
    /// When it was opened last, or could not be.
    tried: Option<Instant>,
    lost: LostEntries,
}

impl Output {
    fn reopen(&mut self, now: Instant) {
        self.tried = Some(now);
        self.file = match self.log_file.open() {
            Ok(file) => Some(file),
            Err(error) => {
                self.lost.note_error(&error);
                None
            }
        };
    }

    fn write(&mut self, entry: &str, now: Instant) {
        let may_open = |tried: Instant| now.saturating_duration_since(tried) >= OPEN_AGAIN;
        if self.file.is_none() && self.tried.is_none_or(may_open) {
            self.reopen(now);
        }
        match self.file.as_mut().map(|file| append(file, entry)) {
            Some(Ok(())) => self.lost.report_due(&self.log_file, now),
            Some(Err(error)) => {
                self.lost.note_error(&error);
                self.lost.lose(&self.log_file, now);
            }
            None => self.lost.lose(&self.log_file, now),
        }
    }
}

/// Writes an entry behind those before it: all of it, or nothing.
fn append(file: &mut File, entry: &str) -> io::Result<()> {
    let end = file.metadata()?.len();
    file.write_all(entry.as_bytes()).inspect_err(|_| {
        // What is left of half an entry would be read as a part of the next one.
        let _ = file.set_len(end);
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::events::thread_work::Work;

    fn entry(event: &StatementEvent) -> Entry<'_> {
        Entry {
            event,
            user: "app",
            host: "10.0.0.7:5123",
            session: 12,
            schema: Some("shop"),
            statement: "select 1;",
        }
    }

    #[test]
    fn entries_have_the_keys_of_percona() {
        let event = StatementEvent {
            began_micros: 1_000_000,
            elapsed: Duration::from_millis(1500),
            error: 1317,
            is_killed: true,
            rows_sent: 1,
            rows_examined: 7,
            bytes_sent: 99,
            has_scanned: true,
            lock_wait: Duration::from_micros(2500),
            work: Work {
                merge_passes: 3,
                temporary_tables: 1,
                ..Work::sort_of(9)
            },
            ..StatementEvent::default()
        };
        assert_eq!(
            entry(&event).text(),
            "# Time: 1970-01-01T00:00:02.500000Z\n\
             # User@Host: app[app] @ 10.0.0.7 [10.0.0.7]  Id:    12\n\
             # Schema: shop  Last_errno: 1317  Killed: 1\n\
             # Query_time: 1.500000  Lock_time: 0.002500  Rows_sent: 1  Rows_examined: 7  Rows_affected: 0  \
             Bytes_sent: 99  Thread_id: 12\n\
             # Tmp_tables: 1  Tmp_disk_tables: 0\n\
             # Full_scan: Yes  Full_join: No  Tmp_table: Yes  Tmp_table_on_disk: No\n\
             # Filesort: Yes  Filesort_on_disk: Yes  Merge_passes: 3  Sort_rows: 9\n\
             use shop;\n\
             SET timestamp=1;\n\
             select 1;\n"
        );
    }

    fn options(directory: &Path, name: &str) -> SlowLogOptions {
        SlowLogOptions {
            file: Some(LogFile::new(name, directory)),
            ..SlowLogOptions::default()
        }
    }

    #[test]
    fn entries_are_written_and_the_file_may_be_moved() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a-slow.log");
        let log = SlowLog::default();
        log.configure(options(directory.path(), "a-slow.log"));
        log.add("first\n".into());
        log.reopen();
        let moved = directory.path().join("moved-slow.log");
        std::fs::rename(&path, &moved).expect("a move");
        log.reopen();
        log.add("second\n".into());
        log.close();
        assert!(!log.is_on());
        assert_eq!(std::fs::read_to_string(moved).expect("a file"), "first\n");
        assert_eq!(std::fs::read_to_string(path).expect("a file"), "second\n");
        assert_eq!(log.dropped(), 0);
    }

    #[test]
    fn a_log_that_cannot_be_opened_stays_on() {
        let directory = tempfile::tempdir().expect("a directory");
        let inner = directory.path().join("inner");
        let log = SlowLog::default();
        log.configure(options(directory.path(), "inner/a-slow.log"));
        log.add("lost\n".into());
        log.reopen();
        assert_eq!(log.dropped(), 1);
        // Another variable is set meanwhile.
        log.configure(SlowLogOptions {
            logs_scans: true,
            ..options(directory.path(), "inner/a-slow.log")
        });
        assert!(log.is_on() && log.logs_scans());
        std::fs::create_dir(&inner).expect("a directory");
        log.reopen();
        log.add("kept\n".into());
        log.close();
        let text = std::fs::read_to_string(inner.join("a-slow.log")).expect("a file");
        assert_eq!(text, "kept\n");
        assert_eq!(log.dropped(), 1);
    }

    #[test]
    fn a_file_that_could_not_be_opened_is_tried_again_later() {
        let directory = tempfile::tempdir().expect("a directory");
        let inner = directory.path().join("inner");
        let lost = Arc::default();
        let mut output = Output {
            log_file: LogFile::new("inner/a-slow.log", directory.path()),
            file: None,
            tried: None,
            lost: LostEntries::new(&lost),
        };
        let start = Instant::now();
        output.write("first\n", start);
        std::fs::create_dir(&inner).expect("a directory");
        output.write("second\n", start + OPEN_AGAIN / 2);
        output.write("third\n", start + OPEN_AGAIN);
        let text = std::fs::read_to_string(inner.join("a-slow.log")).expect("a file");
        assert_eq!(
            (text.as_str(), lost.load(Ordering::Relaxed)),
            ("third\n", 2)
        );
    }

    #[test]
    fn half_an_entry_is_taken_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a-slow.log");
        std::fs::write(&path, "whole\n").expect("a file");
        // It is open for reading alone, so nothing can be written.
        let mut file = File::open(&path).expect("a file");
        assert!(append(&mut file, "other\n").is_err());
        assert_eq!(std::fs::read_to_string(path).expect("a file"), "whole\n");
    }
}
