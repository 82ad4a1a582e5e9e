//! Backup: a copy of the data file that is made while it changes, and the log that makes it whole.
//!
//! ```text
//!   time         ----+------------------------------------------------------+------->
//!                    | checkpoint                                           | end
//!   data file        |  extent 0, 1, 2 ... each as it is when it is read    |
//!   log         R ===|======================================================|
//!               from the redo start of the checkpoint to the end, copied as it grows
//! ```
//!
//! The copied pages are of different moments. That is what a data file after a crash looks like as well, so the backup
//! is a data directory after a crash, and opening it is recovering it:
//!
//! - every page has the changes from before the checkpoint, because that wrote them all;
//! - no page has changes from behind the end of the copied log, because a page is written after its log, and the end is
//!   taken last;
//! - every change in between is in the copied log, also the leaves of bulk builds ([`crate::log::unlogged`]).
//!
//! **Torn pages.** A page can be read while it is being written. Its checksum says so. The backup then gets the page
//! from the buffer pool, which has it or reads it while it is not being written. Pages that no extent map calls used
//! may hold anything.
//!
//! Files of the floors above that belong to the database are copied as they are when all else is complete.
//!
//! No thread waits for a backup. The backup waits for writes past the log that bulk builds have begun. The log behind
//! what was copied is kept, so a backup that ends with an error leaves nothing but an unfinished folder.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::disk::data_directory::{DATA_FILE, LOG_FILE};
use crate::disk::{self, AlignedBuffer, Buffers, Disk, FileId, Operation};
use crate::error::{Result, StorageError};
use crate::log::{HistoryId, LogCopy, LogFollower, frame};
use crate::page::{Lsn, PAGE_SIZE, Page, PageId};
use crate::page_store::PageStore;
use crate::space::extent::{self, PAGES_PER_EXTENT};
use crate::storage::Storage;

/// Bytes of an extent: what is read and written at a time.
const EXTENT_BYTES: usize = PAGES_PER_EXTENT as usize * PAGE_SIZE;

/// How far a backup or a restoration is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyProgress {
    /// Bytes of the data file copied.
    pub bytes: u64,
    /// Bytes of the data file to copy.
    pub bytes_total: u64,
    /// Bytes of log copied.
    pub log_bytes: u64,
}

/// Is told how far the work is; its error ends it.
pub type ReportProgress<'a> = &'a mut dyn FnMut(CopyProgress) -> Result<()>;

/// A backup that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupSummary {
    /// Bytes of the data file copied.
    pub bytes: u64,
    /// Bytes of log copied.
    pub log_bytes: u64,
    /// What was durable up to this position of the log is in the backup.
    pub end: Lsn,
    /// Of the database that was copied.
    pub history: HistoryId,
    /// When it was complete, in microseconds since 1970: it cannot be brought to an earlier moment.
    pub completed_at_us: u64,
}

impl Storage {
    /// Copies the database into the folder `to`, which must be absent or empty, while it is in use. The folder is then
    /// a data directory. `beside` are further files that belong to the database: those that are there are copied.
    ///
    /// # Errors
    /// `Backup` if there is something in the folder; a page that is damaged; what `report` says. The folder is
    /// empty then.
    pub fn backup_to(
        &self,
        to: &Path,
        beside: &[&Path],
        report: ReportProgress<'_>,
    ) -> Result<BackupSummary> {
        make_empty_directory(to)?;
        let disk = disk::open_directory(to, self.options().disk)?;
        let made = self.backup(&disk, report);
        let made = made.and_then(|summary| copy_beside(beside, to).map(|()| summary));
        let made = made.and_then(|summary| sync_directory(to).map(|()| summary));
        if made.is_err() {
            empty_directory(to, beside);
        }
        made
    }

    /// As [`backup_to`](Self::backup_to), onto an empty disk.
    pub fn backup(&self, to: &Arc<dyn Disk>, report: ReportProgress<'_>) -> Result<BackupSummary> {
        let store = self.store();
        let _log_everything = store.unlogged.forbid(&*store.disk);
        // Until the place is known where the copied log begins, all of it is kept.
        let everything = LogFollower::new(&store.log, Lsn(0));
        self.checkpoint()?;
        let control = store.log.control();
        let mut log = CopiedLog {
            follower: LogFollower::new(&store.log, control.redo_start),
            copy: LogCopy::new(to, to.open(LOG_FILE)?, control),
            bytes: 0,
        };
        drop(everything);

        let mut copy = DataFileCopy {
            store,
            to: to.clone(),
            file: to.open(DATA_FILE)?,
        };
        let extents = store.space.extent_count();
        let used = |extent: &usize| store.space.extent(*extent).0 != 0;
        let bytes_total = ((0..extents).filter(used).count() * EXTENT_BYTES) as u64;
        let mut progress = CopyProgress {
            bytes_total,
            ..CopyProgress::default()
        };
        for extent in 0..extents {
            if copy.copy_extent(extent)? {
                progress.bytes += EXTENT_BYTES as u64;
                progress.bytes_total = progress.bytes_total.max(progress.bytes);
            }
            log.follow(store.log.flushed())?;
            progress.log_bytes = log.bytes;
            report(progress)?;
        }
        copy.finish(extents)?;

        // The copy's log must have something that recovery reads, also if nothing has changed.
        let end = {
            let _permit = store.begin_changes()?;
            store.log.append(&frame::encode_nothing())
        };
        store.log.flush_to(end)?;
        log.follow(end)?;
        // The clock may have been set back; commits never go back.
        let completed_at_us = store.disk.wall_clock_us();
        let completed_at_us = completed_at_us.max(store.log.newest_commit_us());
        log.copy.finish(completed_at_us)?;
        Ok(BackupSummary {
            bytes: progress.bytes,
            log_bytes: log.bytes,
            end,
            history: control.history,
            completed_at_us,
        })
    }
}

/// The log as far as it was copied.
struct CopiedLog {
    follower: LogFollower,
    copy: LogCopy,
    bytes: u64,
}

impl CopiedLog {
    /// Copies what is durable up to `end`, and no more than the chunk there: others may be faster than the copy.
    fn follow(&mut self, end: Lsn) -> Result<()> {
        while self.follower.position() < end
            && let Some((lsn, frames)) = self.follower.next()?
        {
            self.copy.add(lsn, &frames)?;
            self.bytes += frames.len() as u64;
            self.follower.release(self.follower.position());
        }
        Ok(())
    }
}

/// The copy of the data file.
struct DataFileCopy<'s> {
    store: &'s PageStore,
    to: Arc<dyn Disk>,
    file: FileId,
}

impl DataFileCopy<'_> {
    /// Copies an extent, unless it is free. Returns whether it was copied.
    fn copy_extent(&mut self, extent: usize) -> Result<bool> {
        let (used, _) = self.store.space.extent(extent);
        if used == 0 {
            return Ok(false);
        }
        let offset = extent::page_in(extent, 0).offset();
        let mut buffer = read(&*self.store.disk, self.store.file, offset, EXTENT_BYTES)?;
        let mut scratch = Page::zeroed();
        for place in (0..PAGES_PER_EXTENT as u32).filter(|place| used >> place & 1 == 1) {
            let bytes = &mut buffer[place as usize * PAGE_SIZE..][..PAGE_SIZE];
            let id = extent::page_in(extent, place);
            scratch.copy_from_slice(bytes);
            if scratch.verify(id).is_err() && self.read_from_pool(id, &mut scratch)? {
                bytes.copy_from_slice(scratch.bytes());
            }
        }
        write(&*self.to, self.file, offset, buffer)?;
        Ok(true)
    }

    /// Reads a page that was not valid when it was read from the file. False if it need not be.
    fn read_from_pool(&self, id: PageId, into: &mut Page) -> Result<bool> {
        // A bulk build writes pages past the pool while no extent map calls them used, and enters them in the map when
        // they are written. So a read that was too early for such a page, and then finds it in use, is not too early
        // any more.
        for is_again in [false, true] {
            match self.store.pool.shared(id) {
                Ok(page) => {
                    into.copy_from_slice(&page[..]);
                    into.seal();
                    return Ok(true);
                }
                Err(StorageError::Corrupt { .. }) if !self.is_in_use(id)? => return Ok(false),
                Err(StorageError::Corrupt { .. }) if !is_again => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Whether the extent map says that the page is in use.
    fn is_in_use(&self, id: PageId) -> Result<bool> {
        let (extent, place) = extent::locate(id);
        let (map, place_in_map) = extent::map_of(extent);
        let map = self.store.pool.shared(map)?;
        let (used, _) = extent::map_page::extent(&map, place_in_map);
        Ok(used >> place & 1 == 1)
    }

    /// Makes the copy as long as the file was, and durable.
    fn finish(&mut self, extents: usize) -> Result<()> {
        let (file, length) = (self.file, (extents * EXTENT_BYTES) as u64);
        if self.to.length(file)? < length {
            disk::run(&*self.to, Operation::SetLength { file, length })?;
        }
        disk::run(&*self.to, Operation::Sync { file })?;
        Ok(())
    }
}

/// Reads a part of a stretch of a file.
pub(crate) fn read(
    disk: &dyn Disk,
    file: FileId,
    offset: u64,
    length: usize,
) -> Result<AlignedBuffer> {
    let buffers = Buffers::Owned(AlignedBuffer::zeroed(length)?);
    let operation = Operation::Read {
        file,
        offset,
        buffers,
    };
    match disk::run(disk, operation)? {
        Some(Buffers::Owned(buffer)) => Ok(buffer),
        _ => Err(StorageError::Closed),
    }
}

/// Writes a part of a stretch of a file.
pub(crate) fn write(
    disk: &dyn Disk,
    file: FileId,
    offset: u64,
    buffer: AlignedBuffer,
) -> Result<()> {
    let buffers = Buffers::Owned(buffer);
    let operation = Operation::Write {
        file,
        offset,
        buffers,
    };
    disk::run(disk, operation).map(|_| ())
}

/// Makes a folder for a copy.
///
/// # Errors
/// `Backup` if it is there and has something in it.
pub(crate) fn make_empty_directory(path: &Path) -> Result<()> {
    let failed = |error| StorageError::io("creation", path.display().to_string(), 0, error);
    fs::create_dir_all(path).map_err(failed)?;
    if fs::read_dir(path).map_err(failed)?.next().is_some() {
        let reason = format!(
            "{} is not empty: name a folder that is empty, or absent",
            path.display()
        );
        return Err(StorageError::Backup { reason });
    }
    Ok(())
}

/// Copies files into a folder, under their names. A file that is not there is none.
pub(crate) fn copy_beside(files: &[&Path], to: &Path) -> Result<()> {
    for file in files {
        let Some(name) = file.file_name() else {
            continue;
        };
        let copy = to.join(name);
        let copied = fs::copy(file, &copy).and_then(|_| File::open(&copy)?.sync_all());
        match copied {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StorageError::io(
                    "copy",
                    file.display().to_string(),
                    0,
                    error,
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Takes away what an attempt has left in a folder that was empty, so that the next one may take the same. The error of
/// the attempt is the one to know.
pub(crate) fn empty_directory(path: &Path, beside: &[&Path]) {
    let beside = beside.iter().filter_map(|file| file.file_name());
    let files = [DATA_FILE.as_ref(), LOG_FILE.as_ref()];
    for file in files.into_iter().chain(beside) {
        let _ = fs::remove_file(path.join(file));
    }
}

/// Makes the names of new files durable.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| StorageError::io("sync", path.display().to_string(), 0, error))
}
