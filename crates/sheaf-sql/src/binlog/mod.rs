//! The binary log: what the log says of committed transactions, in files of MySQL's format.
//!
//! A commit is one append to the log, whether or not anybody follows. A thread, the *binlogger*, reads the log behind
//! it ([`ChangeFeed`]) and writes each transaction to the newest file:
//!
//! ```text
//!   commit --> log ====> feed ----> projection ----> binlog.000001, binlog.000002 ... ----> mysqlbinlog, followers
//!                                        |
//!                                   descriptions of tables, as the log has them
//! ```
//!
//! **The files are derived.** They are not made durable with each transaction. After a crash the newest one is read up
//! to its last whole transaction, and cut there. The log from the place in the [state](state) on still has what
//! follows; transactions that the files have are known by their numbers. So nothing is missing, and nothing is there
//! twice. Each start begins a new file, as MySQL's does.
//!
//! **Waits.** No commit waits. A reader of files, positions or `gtid_executed` first brings the files up to what is
//! durable, on its own thread ([`Binlogger::catch_up`]).
//!
//! **Errors.** If a file cannot be written, the binlogger keeps the log, says so in the error log, and begins again
//! from files and state until it works.
//!
//! | file | what it holds |
//! |---|---|
//! | [`projection`] | from a transaction to events |
//! | [`statement`] | a DDL statement in the log |
//! | [`origin`] | where a transaction comes from that a replica applies |
//! | [`own_character_sets`] | the text of a definition in the character sets of its columns |
//! | [`text_words`] | words of a text that is changed a little |
//! | [`files`] | the files and their list |
//! | [`dump`] | what a follower is sent |
//! | [`replicas`] | the followers that are registered |
//! | [`state`] | what a start has to know beside the files |
//! | [`settings`] | what variables say |
//! | [`running`] | the binlogger while it works: files are written, begun and removed |
//! | [`administration`] | what statements ask of the files: their list, their events, PURGE, RESET, FLUSH |

mod administration;
mod dump;
mod files;
pub(crate) mod origin;
mod own_character_sets;
mod projection;
mod replicas;
mod running;
mod settings;
mod state;
pub(crate) mod statement;
mod text_words;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sheaf_binlog::gtid::{Interval, Tag, Uuid};
use sheaf_storage::{ChangeFeed, HistoryId, Storage};

use crate::binlog::files::FileNumber;
pub(crate) use crate::binlog::running::VERSION_NUMBER;
use crate::binlog::running::{KnownGtids, Running, own_last};
use crate::error::{Result, SqlError};

pub use dump::{BinlogDump, DumpStart};
pub(crate) use replicas::{Registration, Replicas};
pub use replicas::{Replica, WrongReplica};
pub(crate) use settings::BinlogSettings;
use settings::SettingsOverTime;
pub use sheaf_binlog::gtid::GtidSet;
pub(crate) use text_words::words_of;

/// Time from one look at the log to the next.
const INTERVAL: Duration = Duration::from_millis(10);
/// Time from a failure to the next attempt.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(crate) struct Binlogger {
    storage: Arc<Storage>,
    directory: PathBuf,
    server: Uuid,
    settings: Mutex<SettingsOverTime>,
    work: Mutex<Work>,
    /// The newest file, and where its last whole transaction ends. Followers wait for it to change.
    written: Mutex<(FileNumber, u64)>,
    has_written: Condvar,
    stops: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// See [`Binlogger::note_unlogged`].
    unlogged: Mutex<GtidSet>,
}

enum Work {
    Running(Box<Running>),
    Failed(Box<Failure>),
    Closed,
}

/// What a binlogger that has failed remembers.
struct Failure {
    since: Instant,
    reason: SqlError,
    gtids: KnownGtids,
    /// Keeps the log until there is another feed.
    kept: Option<ChangeFeed>,
}

impl Binlogger {
    /// Brings the files into order, begins a new one, and starts the thread.
    ///
    /// # Errors
    /// Files cannot be read or written, or the log cannot be followed.
    pub(crate) fn start(
        storage: &Arc<Storage>,
        directory: &Path,
        settings: BinlogSettings,
    ) -> Result<Arc<Binlogger>> {
        let server = server_uuid(storage.history());
        let running = Running::open(storage, directory, server, settings)?;
        let place = running.place();
        let binlogger = Arc::new(Binlogger {
            storage: Arc::clone(storage),
            directory: directory.to_path_buf(),
            server,
            settings: Mutex::new(SettingsOverTime::new(settings)),
            work: Mutex::new(Work::Running(Box::new(running))),
            written: Mutex::new(place),
            has_written: Condvar::new(),
            stops: AtomicBool::new(false),
            thread: Mutex::new(None),
            unlogged: Mutex::default(),
        });
        let weak = Arc::downgrade(&binlogger);
        let thread = thread::Builder::new()
            .name("binlog".into())
            .spawn(move || {
                while let Some(binlogger) = weak.upgrade() {
                    if binlogger.stops.load(Ordering::Acquire) {
                        return;
                    }
                    // What failed is in the error log.
                    let _ = binlogger.catch_up();
                    drop(binlogger);
                    thread::park_timeout(INTERVAL);
                }
            })
            .map_err(|error| SqlError::unknown(format!("no thread for the binary log: {error}")))?;
        *lock(&binlogger.thread) = Some(thread);
        Ok(binlogger)
    }

    pub(crate) fn configure(&self, settings: BinlogSettings) {
        let last = self.storage.newest_commit_number();
        lock(&self.settings).assign(settings, last);
    }

    fn settings(&self) -> BinlogSettings {
        lock(&self.settings).newest()
    }

    /// Writes all that is durable by now to the files.
    ///
    /// # Errors
    /// Why the files are not up to date.
    pub(crate) fn catch_up(&self) -> Result<()> {
        self.with(|_| Ok(()))
    }

    /// Does something with files that have all that is durable by now.
    fn with<T>(&self, work: impl FnOnce(&mut Running) -> Result<T>) -> Result<T> {
        let mut state = lock(&self.work);
        if let Work::Failed(failure) = &*state {
            if failure.since.elapsed() < RETRY_INTERVAL {
                return Err(failure.reason.clone());
            }
            let settings = self.settings();
            match Running::open(&self.storage, &self.directory, self.server, settings) {
                Ok(running) => {
                    tracing::info!("the binary log is written again");
                    *state = Work::Running(Box::new(running));
                }
                Err(error) => return Err(fail(&mut state, error)),
            }
        }
        let Work::Running(running) = &mut *state else {
            return Err(SqlError::server_shutdown());
        };
        match running.catch_up(&self.settings) {
            // What is asked for may be refused, which is no failure of the files.
            Ok(()) => {
                let done = work(running);
                match done {
                    Err(error) if running.is_between_files() => Err(fail(&mut state, error)),
                    done => {
                        self.note_written(running.place());
                        done
                    }
                }
            }
            Err(error) => Err(fail(&mut state, error)),
        }
    }

    fn note_written(&self, place: (FileNumber, u64)) {
        let mut written = lock(&self.written);
        if *written != place {
            *written = place;
            self.has_written.notify_all();
        }
    }

    /// The newest file, and where its last whole transaction ends.
    fn written(&self) -> (FileNumber, u64) {
        *lock(&self.written)
    }

    /// Waits until that is another place, for so long at most.
    fn await_written(&self, place: (FileNumber, u64), wait: Duration) {
        let written = lock(&self.written);
        let waited = self
            .has_written
            .wait_timeout_while(written, wait, |written| *written == place);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// What was executed, and what of it was in files that were removed. While files cannot be written, the newest
    /// transactions are in the log alone.
    pub(crate) fn gtids(&self) -> (GtidSet, GtidSet) {
        let (executed, mut purged) = self.gtids_of_files();
        purged.union(&lock(&self.unlogged));
        (executed, purged)
    }

    /// Transactions of a source that were applied while there was no binary log: no file ever had them.
    pub(crate) fn note_unlogged(&self, mut applied: GtidSet) {
        applied.subtract(&self.gtids_of_files().0);
        *lock(&self.unlogged) = applied;
    }

    fn gtids_of_files(&self) -> (GtidSet, GtidSet) {
        if let Ok(known) = self.with(|running| Ok(running.known())) {
            return (known.executed, known.purged);
        }
        let known = match &*lock(&self.work) {
            Work::Running(running) => running.known(),
            Work::Failed(failure) => failure.gtids.clone(),
            Work::Closed => KnownGtids::default(),
        };
        let mut executed = known.executed;
        let newest = self.storage.newest_commit_number();
        let first = own_last(&executed, self.server) + 1;
        let last = newest.saturating_sub(known.offset);
        if first <= last {
            executed.add_interval(self.server, Tag::default(), Interval { first, last });
        }
        (executed, known.purged)
    }

    /// Writes what is durable, and closes the newest file. Nothing more is written.
    pub(crate) fn close(&self) {
        self.stops.store(true, Ordering::Release);
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            // The last one to let it go may be the thread itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
        if let Err(error) = self.catch_up() {
            tracing::error!(%error, "the binary log lacks what the log has, until the next start");
        }
        let work = std::mem::replace(&mut *lock(&self.work), Work::Closed);
        if let Work::Running(running) = work
            && let Err(error) = running.close(self.settings())
        {
            tracing::error!(%error, "the binary log was not closed");
        }
    }
}

/// The files are not written any more. Says so, and keeps the log.
fn fail(work: &mut Work, error: SqlError) -> SqlError {
    tracing::error!(%error, "the binary log cannot be written; the log is kept until it can");
    let (gtids, kept) = match std::mem::replace(work, Work::Closed) {
        Work::Running(running) => (running.known(), Some(running.into_feed())),
        Work::Failed(failure) => (failure.gtids, failure.kept),
        Work::Closed => (KnownGtids::default(), None),
    };
    *work = Work::Failed(Box::new(Failure {
        since: Instant::now(),
        reason: error.clone(),
        gtids,
        kept,
    }));
    error
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The identity of a server follows from that of its database (RFC 9562, version 8): a restored copy has another one.
pub(crate) fn server_uuid(history: HistoryId) -> Uuid {
    let [a, b, c, d, e, f, g, h] = history.0.to_be_bytes();
    let mut bytes = *b"\0\0\0\0\0\0\x80\0\x80\0sheaf\0";
    [
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[7], bytes[9],
    ] = [a, b, c, d, e, f, g, h];
    Uuid(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_identities_of_their_own() {
        let uuid = server_uuid(HistoryId(0x0123_4567_89ab_cdef)).to_string();
        assert_eq!(uuid, "01234567-89ab-80cd-80ef-736865616600");
        assert_ne!(server_uuid(HistoryId(1)), server_uuid(HistoryId(2)));
    }
}
