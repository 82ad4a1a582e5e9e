//! The binlogger while it works: the newest file is written, closed, and followed by another one; old ones go.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sheaf_binlog::event::{EventHeader, GtidLog, Rotate, Stop};
use sheaf_binlog::file::{BinlogFile, FileStart};
use sheaf_binlog::gtid::{Gtid, GtidSet, Tag, Uuid};
use sheaf_storage::{ChangeFeed, Followed, FollowedTransaction, Storage};

use super::files::{FileNumber, Files, close_file, failed};
use super::origin::Origin;
use super::projection::{Projection, ProjectionOptions, seconds};
use super::settings::{BinlogSettings, SettingsOverTime};
use super::state::State;
use crate::error::{Result, SqlError};

/// Bytes of files after which the state is written, so that the log before goes.
const STATE_INTERVAL_BYTES: u64 = 64 << 20;
/// The version of the server as GTID_LOG says it: 8.0.99.
pub(crate) const VERSION_NUMBER: u32 = 80_099;

/// Which transactions there were.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownGtids {
    /// In files, those that were removed as well.
    pub(super) executed: GtidSet,
    /// In files that were removed.
    pub(super) purged: GtidSet,
    /// What is to be taken off the log's numbers.
    pub(super) offset: u64,
}

/// See the [module](self).
pub(super) struct Running {
    storage: Arc<Storage>,
    directory: PathBuf,
    server: Uuid,
    feed: ChangeFeed,
    projection: Projection,
    pub(super) files: Files,
    /// What the files before have, for each file.
    previous: BTreeMap<FileNumber, GtidSet>,
    newest: FileNumber,
    file: BinlogFile<File>,
    /// The number of the first transaction of the newest file.
    first_in_file: u64,
    /// What all files have had.
    executed: GtidSet,
    /// The number of the newest transaction in the files, as the log counts them.
    number: u64,
    /// The log's number of the last transaction before RESET.
    base: u64,
    /// What is to be taken off the log's number of the next transaction, if it is of this server: those before RESET,
    /// and those of other servers.
    offset: u64,
    /// Bytes written since the state was.
    unstated_bytes: u64,
    /// Files are being changed for others. If that fails, what is left is to be found out anew.
    is_between_files: bool,
}

impl Running {
    /// Finds out what there is, and begins a new file.
    ///
    /// # Errors
    /// Those of files and of the log.
    pub(super) fn open(
        storage: &Arc<Storage>,
        directory: &Path,
        server: Uuid,
        settings: BinlogSettings,
    ) -> Result<Running> {
        let mut files = Files::open(directory).map_err(|error| failed("list", &error))?;
        let state = State::read(directory).map_err(|error| failed("state", &error))?;
        let history = storage.history();
        let state = state.filter(|state| state.history == history);
        if state.as_ref().is_some_and(|state| state.is_reset) {
            // A crash has ended it.
            let count = files.numbers().len();
            let removed = files.remove_oldest(count);
            removed.map_err(|error| failed("list", &error))?;
        }
        let executed = close_newest(&mut files, settings)?;
        let own = own_last(&executed, server);
        let logged = storage.newest_commit_number();
        let base = match &state {
            Some(state) => state.base,
            None => logged.saturating_sub(own),
        };
        let mut number = match &state {
            Some(state) if state.is_reset => base,
            Some(State {
                file: Some((file, before)),
                ..
            }) => before + transactions_since(&files, *file)?,
            _ => base + own,
        };
        if state.is_none() && own > 0 {
            tracing::error!("binlog.state is gone: the binary log may lack transactions");
        }
        let point = state.as_ref().map(|state| state.point);
        let feed = storage.follow_changes(point)?;
        if feed.has_gap() {
            tracing::error!(
                "the binary log has a gap: the log did not reach back to where it ends"
            );
        }
        if point.is_none() {
            number = number.max(logged);
        }
        let mut projection = Projection::default();
        for remark in state.into_iter().flat_map(|state| state.remarks) {
            projection.learn(remark)?;
        }
        let mut previous = BTreeMap::new();
        for file in files.numbers() {
            let before = files
                .previous(*file)
                .map_err(|error| failed(file, &error))?;
            previous.insert(*file, before);
        }
        let next = files.newest().map_or(FileNumber(1), FileNumber::next);
        let start = FileStart::new(
            settings.version,
            settings.server_id,
            now(),
            executed.clone(),
        )
        .of_started_server();
        let file = begin_file(&mut files, next, &start)?;
        previous.insert(next, executed.clone());
        let mut running = Running {
            storage: Arc::clone(storage),
            directory: directory.to_path_buf(),
            server,
            feed,
            projection,
            files,
            previous,
            newest: next,
            file,
            first_in_file: number + 1,
            executed,
            number,
            base,
            offset: number.saturating_sub(own),
            unstated_bytes: 0,
            is_between_files: false,
        };
        running.write_state()?;
        running.expire(settings)?;
        Ok(running)
    }

    /// Writes what is durable by now.
    ///
    /// # Errors
    /// Those of files and of the log. The files may end in the middle of a transaction then.
    pub(super) fn catch_up(&mut self, settings: &Mutex<SettingsOverTime>) -> Result<()> {
        while let Some(followed) = self.feed.deliver()? {
            match followed {
                Followed::Remark(remark) => self.projection.learn(remark)?,
                // It was met before.
                Followed::Transaction(transaction) if transaction.number <= self.number => {}
                Followed::Transaction(transaction) => {
                    let settings = settings
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .of(transaction.number);
                    self.write(&transaction, settings)?;
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, transaction: &FollowedTransaction, settings: BinlogSettings) -> Result<()> {
        let origin = Origin::of(transaction)?;
        let options = ProjectionOptions {
            server_id: origin.map_or(settings.server_id, |origin| origin.server_id),
            time: origin.map(|origin| origin.time),
            image: settings.image,
        };
        let number = transaction.number;
        // A start counts the transactions of a file. Behind some that are missing another one begins.
        let is_behind_gap = number > self.number + 1;
        let gtid = self.gtid_of(number, origin)?;
        let in_file = |number: u64| (number + 1).saturating_sub(self.first_in_file);
        let mut event = GtidLog::new(gtid)
            .in_order(in_file(transaction.depends_on), in_file(number))
            .committed(transaction.time_us, VERSION_NUMBER);
        if let Some(origin) = origin {
            event = event.originally_committed(origin.committed_us, origin.version);
        }
        let before = self.file.position();
        let file = &mut self.file;
        self.projection.write(transaction, options, event, file)?;
        self.executed.add(gtid);
        self.number = number;
        if gtid.server() != self.server {
            self.offset += 1;
        }
        self.unstated_bytes += self.file.position() - before;
        if is_behind_gap || self.file.position() >= settings.max_file_bytes {
            self.rotate(settings)?;
        } else if self.unstated_bytes >= STATE_INTERVAL_BYTES {
            self.write_state()?;
        }
        Ok(())
    }

    /// What a transaction is called: as at its own server, or by the next number of this one.
    fn gtid_of(&self, number: u64, origin: Option<Origin>) -> Result<Gtid> {
        let is_new = |gtid: &Gtid| gtid.server() != self.server && !self.executed.contains(*gtid);
        let of_other = origin.and_then(|origin| origin.gtid).filter(is_new);
        let own = || Gtid::new(self.server, number - self.offset);
        of_other
            .or_else(own)
            .ok_or_else(|| SqlError::unknown("the server has no more GTIDs"))
    }

    /// Closes the newest file, and begins another one.
    ///
    /// # Errors
    /// Those of files.
    pub(super) fn rotate(&mut self, settings: BinlogSettings) -> Result<()> {
        self.is_between_files = true;
        let next = self.newest.next();
        let header = EventHeader::new(now(), settings.server_id);
        let rotate = Rotate::to(next.to_string());
        self.end_file(&header, &rotate)?;
        self.begin(next, settings)?;
        self.is_between_files = false;
        self.write_state()?;
        self.expire(settings)
    }

    fn end_file(
        &mut self,
        header: &EventHeader,
        last: &dyn sheaf_binlog::event::Event,
    ) -> Result<()> {
        let ended = self.file.write(header, last);
        ended
            .and_then(|()| close_file(self.file.get_ref()))
            .map_err(|error| failed(self.newest, &error))
    }

    fn begin(&mut self, next: FileNumber, settings: BinlogSettings) -> Result<()> {
        let executed = self.executed.clone();
        let (version, server_id) = (settings.version, settings.server_id);
        let start = FileStart::new(version, server_id, now(), executed.clone());
        self.file = begin_file(&mut self.files, next, &start)?;
        self.previous.insert(next, executed);
        self.newest = next;
        self.first_in_file = self.number + 1;
        Ok(())
    }

    /// Makes what was written durable, and lets the log before it go.
    fn write_state(&mut self) -> Result<()> {
        self.write_state_for(self.base, false)
    }

    /// As [`write_state`](Self::write_state). `is_reset`: from now on the files are void, and numbers begin behind
    /// `base`.
    fn write_state_for(&mut self, base: u64, is_reset: bool) -> Result<()> {
        let synced = self.file.get_ref().sync_data();
        synced.map_err(|error| failed(self.newest, &error))?;
        let point = self.feed.restart_point();
        let known = self.storage.tree_ids()?;
        let newest = self.storage.newest_commit();
        self.projection.forget(point.position, newest, |tree| {
            known.binary_search(&tree).is_ok()
        });
        let state = State {
            history: self.storage.history(),
            point,
            base,
            is_reset,
            file: Some((self.newest.0.into(), self.first_in_file - 1)),
            remarks: self.projection.remarks().map(<[u8]>::to_vec).collect(),
        };
        state
            .write(&self.directory)
            .map_err(|error| failed("state", &error))?;
        self.feed.release(point);
        self.unstated_bytes = 0;
        Ok(())
    }

    /// Ends the newest file as a server does that is shut down.
    ///
    /// # Errors
    /// Those of files.
    pub(super) fn close(mut self, settings: BinlogSettings) -> Result<()> {
        let header = EventHeader::new(now(), settings.server_id);
        self.end_file(&header, &Stop)?;
        self.write_state()
    }

    /// Whether a change of files was begun and not ended, so that nothing more can be written.
    pub(super) fn is_between_files(&self) -> bool {
        self.is_between_files
    }

    /// What all files have had, those that were removed as well, and what is to be taken off the log's numbers.
    pub(super) fn known(&self) -> KnownGtids {
        KnownGtids {
            executed: self.executed.clone(),
            purged: self.purged(),
            offset: self.offset,
        }
    }

    /// Nothing is written any more; the feed keeps the log.
    pub(super) fn into_feed(self) -> ChangeFeed {
        self.feed
    }

    /// What all files have had.
    pub(super) fn executed(&self) -> &GtidSet {
        &self.executed
    }

    /// What files had that are gone.
    fn purged(&self) -> GtidSet {
        let oldest = self.files.numbers().first();
        let purged = oldest.and_then(|oldest| self.previous.get(oldest));
        purged.cloned().unwrap_or_default()
    }

    /// The newest file that begins with no more than a follower has.
    pub(super) fn file_for(&self, has: &GtidSet) -> Option<FileNumber> {
        let files = self.files.numbers().iter().rev();
        let begins_early = |file: &&FileNumber| {
            let previous = self.previous.get(file);
            previous.is_some_and(|previous| previous.is_subset(has))
        };
        files.copied().find(|file| begins_early(&file))
    }

    /// Whether what a follower has of this server's transactions is there.
    pub(super) fn has_all_own_of(&self, has: &GtidSet) -> bool {
        let no_tag = Tag::default();
        match (
            has.intervals(self.server, &no_tag),
            self.executed.intervals(self.server, &no_tag),
        ) {
            (None, _) => true,
            (Some(own), Some(executed)) => own.is_subset(executed),
            (Some(own), None) => own.is_empty(),
        }
    }

    /// The newest file, and where the next event of it begins.
    pub(super) fn place(&self) -> (FileNumber, u64) {
        (self.newest, self.file.position())
    }

    /// Removes the files before this one.
    ///
    /// # Errors
    /// Those of files.
    pub(super) fn purge_before(&mut self, first: FileNumber) -> Result<()> {
        let first = first.min(self.newest);
        let count = self.files.numbers().partition_point(|file| *file < first);
        let removed = self.files.remove_oldest(count);
        self.previous.retain(|file, _| *file >= first);
        removed.map_err(|error| failed("list", &error))
    }

    /// Removes files that were written last before this moment, up to the first that was not.
    ///
    /// # Errors
    /// Those of files.
    pub(super) fn purge_older(&mut self, moment: SystemTime) -> Result<()> {
        for file in self.files.numbers().to_vec() {
            let modified = self.files.modified(file);
            let modified = modified.map_err(|error| failed(file, &error))?;
            if file == self.newest || modified >= moment {
                return self.purge_before(file);
            }
        }
        Ok(())
    }

    fn expire(&mut self, settings: BinlogSettings) -> Result<()> {
        match settings
            .expire
            .and_then(|age| SystemTime::now().checked_sub(age))
        {
            Some(moment) => self.purge_older(moment),
            None => Ok(()),
        }
    }

    /// Removes all files and begins anew, with transaction 1. The state says so first: a crash leaves all or nothing of
    /// it undone.
    ///
    /// # Errors
    /// Those of files. Nothing has happened, or what is left is done when the files are written again.
    pub(super) fn reset(&mut self, settings: BinlogSettings) -> Result<()> {
        self.write_state_for(self.number, true)?;
        self.is_between_files = true;
        let count = self.files.numbers().len();
        let removed = self.files.remove_oldest(count);
        removed.map_err(|error| failed("list", &error))?;
        self.previous.clear();
        self.executed = GtidSet::new();
        (self.base, self.offset) = (self.number, self.number);
        self.begin(FileNumber(1), settings)?;
        self.write_state()?;
        self.is_between_files = false;
        Ok(())
    }
}

/// How many transactions are in a file and those behind it.
fn transactions_since(files: &Files, first: u64) -> Result<u64> {
    let known = files.numbers().iter();
    let behind = known.filter(|file| u64::from(file.0) >= first);
    let counts = behind.map(|file| {
        let found = files.recover(*file).map_err(|error| failed(file, &error))?;
        Ok(found.map_or(0, |found| found.transactions))
    });
    counts.sum()
}

/// Cuts what a crash left of the newest file behind its last whole transaction, and closes it. Files that have not even
/// begun are removed. Returns what all files have.
fn close_newest(files: &mut Files, settings: BinlogSettings) -> Result<GtidSet> {
    while let Some(newest) = files.newest() {
        let io_failed = |error| failed(newest, &error);
        let Some(found) = files.recover(newest).map_err(io_failed)? else {
            let removed = files.remove_newest();
            removed.map_err(|error| failed("list", &error))?;
            continue;
        };
        let file = files.reopen(newest, found.end).map_err(io_failed)?;
        if !found.is_closed {
            let mut file = BinlogFile::resume(&file, found.end);
            let header = EventHeader::new(now(), settings.server_id);
            let rotate = Rotate::to(newest.next().to_string());
            file.write(&header, &rotate).map_err(io_failed)?;
        }
        close_file(&file).map_err(io_failed)?;
        return Ok(found.gtids);
    }
    Ok(GtidSet::new())
}

fn begin_file(
    files: &mut Files,
    number: FileNumber,
    start: &FileStart,
) -> Result<BinlogFile<File>> {
    let file = files.create(number);
    file.and_then(|file| BinlogFile::create(file, start))
        .map_err(|error| failed(number, &error))
}

/// The newest of the server's own transactions.
pub(super) fn own_last(executed: &GtidSet, server: Uuid) -> u64 {
    let own = executed.intervals(server, &Tag::default());
    let last = own.and_then(|own| own.iter().last());
    last.map_or(0, |interval| interval.last)
}

/// Seconds since 1970.
fn now() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    seconds(now.unwrap_or(Duration::ZERO).as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use sheaf_binlog::row::columns::RowImage;
    use sheaf_storage::StorageOptions;

    use super::*;
    use crate::binlog::server_uuid;

    const SETTINGS: BinlogSettings = BinlogSettings {
        version: "8.0.99-Sheaf",
        server_id: 1,
        max_file_bytes: 1 << 30,
        image: RowImage::Full,
        expire: None,
    };

    #[test]
    fn a_reset_that_a_crash_has_ended_is_done_at_the_next_start() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        let options = StorageOptions {
            follow_changes: true,
            ..StorageOptions::default()
        };
        let storage = Storage::open(&path.join("data"), options).expect("a new database");
        let uuid = server_uuid(storage.history());
        let open = || Running::open(&storage, path, uuid, SETTINGS).expect("a binary log");
        let mut running = open();
        running.rotate(SETTINGS).expect("another file");
        running.close(SETTINGS).expect("it is closed");
        assert_eq!(open().place().0, FileNumber(3));
        // The state is all that the reset has come to.
        let mut state = State::read(path).expect("a file").expect("a state");
        assert!(!state.is_reset);
        state.is_reset = true;
        state.write(path).expect("a file");
        let mut running = open();
        assert_eq!(running.place().0, FileNumber(1));
        assert!(running.executed().is_empty() && !path.join("binlog.000002").exists());
        running.reset(SETTINGS).expect("another one");
        assert_eq!(running.place().0, FileNumber(1));
        let state = State::read(path).expect("a file").expect("a state");
        assert!(!state.is_reset);
    }
}
