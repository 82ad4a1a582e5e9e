//! The workload on backups and archives: what is restored of a moment is what had been committed then.
//!
//! ```text
//!   tables    --*---*--*------*----*-crash-*-----*--*--->      commits; some are remembered with the model
//!   backup           [======]                                  made while the tables change
//!   archive             ...[)[..)  [...)    [.)[....)          fails now and then, and is off in some lives
//!                                    |
//!   restored: backup + archive up to a remembered commit  ==  the model of then
//! ```
//!
//! The tables are those of [`crate::tables`], and so are the crashes and the troubles of the disk. The archive has
//! troubles of its own: an object that it refuses, or that it keeps although it has said no. A life without the archive
//! may leave a gap in it. What is restored across that life is right, or it is refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{
    CopyProgress, Disk, HistoryId, LogArchive, LogRange, Lsn, Random, RestoreUntil, Result,
    Storage, StorageError, StorageOptions, restore,
};
use sheaf_table::{Catalog, TableError};

use crate::machine::{Machine, Stop, Workload};
use crate::tables::{self, Model, Tables};

/// Commits that are remembered since a backup.
const MOMENTS: usize = 6;

/// Of these, so many are restored after each crash.
const RESTORED_MOMENTS: usize = 2;

/// Operations of the archive of which one fails.
const ARCHIVE_FAILS_IN: u64 = 6;

/// Steps of which one is a backup.
const BACKUP_IN: u64 = 200;

/// An archive in memory that fails now and then.
#[derive(Debug)]
struct UnsteadyArchive {
    objects: Mutex<BTreeMap<(HistoryId, LogRange), Vec<u8>>>,
    random: Mutex<Random>,
    is_steady: AtomicBool,
}

impl UnsteadyArchive {
    /// Whether the operation is to fail.
    fn fails(&self) -> bool {
        let drawn = lock(&self.random).below(ARCHIVE_FAILS_IN);
        drawn == 0 && !self.is_steady.load(Ordering::Relaxed)
    }

    fn failure() -> StorageError {
        StorageError::Archive {
            reason: "it is unsteady".to_string(),
        }
    }
}

impl LogArchive for UnsteadyArchive {
    fn ranges(&self, history: HistoryId) -> Result<Vec<LogRange>> {
        if self.fails() {
            return Err(Self::failure());
        }
        let objects = lock(&self.objects);
        let of_history = objects.keys().filter(|(of, _)| *of == history);
        Ok(of_history.map(|(_, range)| *range).collect())
    }

    fn put(&self, history: HistoryId, range: LogRange, bytes: &[u8]) -> Result<()> {
        if self.fails() {
            return Err(Self::failure());
        }
        let known = lock(&self.objects).insert((history, range), bytes.to_vec());
        assert!(
            known.is_none_or(|known| known == bytes),
            "an object of the archive was changed"
        );
        // The answer may be lost.
        if self.fails() {
            return Err(Self::failure());
        }
        Ok(())
    }

    fn get(&self, history: HistoryId, range: LogRange) -> Result<Vec<u8>> {
        let objects = lock(&self.objects);
        let object = objects.get(&(history, range)).cloned();
        object.ok_or_else(|| StorageError::Archive {
            reason: format!("there is no {}", range.object_name()),
        })
    }

    fn remove(&self, history: HistoryId, range: LogRange) -> Result<()> {
        lock(&self.objects).remove(&(history, range));
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A commit that is remembered.
struct Moment {
    time_us: u64,
    position: Lsn,
    model: Model,
}

/// See the [module](self).
pub(crate) struct Moments {
    tables: Tables,
    archive: Arc<UnsteadyArchive>,
    /// Decides what is restored; the machine's numbers are for what happens on it.
    random: Random,
    /// The process that runs has the archive.
    is_archiving: bool,
    backup: Option<Arc<SimulatedDisk>>,
    /// Every process since the backup had the archive.
    is_without_gap: bool,
    moments: Vec<Moment>,
    /// Commits since the backup.
    commits: u64,
    newest_commit_us: u64,
    pub(crate) restored: u64,
}

impl Moments {
    pub(crate) fn new(seed: u64) -> Moments {
        let mut random = Random::new(seed);
        Moments {
            tables: Tables::default(),
            archive: Arc::new(UnsteadyArchive {
                objects: Mutex::default(),
                random: Mutex::new(Random::new(random.next())),
                is_steady: AtomicBool::new(false),
            }),
            random,
            is_archiving: false,
            backup: None,
            is_without_gap: false,
            moments: Vec::new(),
            commits: 0,
            newest_commit_us: 0,
            restored: 0,
        }
    }

    fn storage(&self) -> Arc<Storage> {
        self.tables.catalog().storage().clone()
    }

    fn archive_step(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        match self.storage().archive_step(true) {
            Ok(()) | Err(StorageError::Archive { .. }) => Ok(()),
            Err(error) => match machine.stop(error) {
                Stop::Dead if machine.goes_on() => Ok(()),
                stop => Err(stop),
            },
        }
    }

    /// Makes a backup while the tables change, and looks at it.
    fn back_up(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let storage = self.storage();
        let target = SimulatedDisk::new(SimulationOptions::new(machine.random.next()));
        let disk: Arc<dyn Disk> = target.clone();
        let mut stopped = None;
        let made = storage.backup(&disk, &mut |_| {
            for _ in 0..machine.random.below(3) {
                match self.tables.step(machine) {
                    Ok(()) => {}
                    Err(Stop::Full) => machine.summary.refused += 1,
                    Err(Stop::Dead) => {
                        stopped = Some(Stop::Dead);
                        return Err(StorageError::Cancelled);
                    }
                }
            }
            Ok(())
        });
        match made {
            Ok(_) => {}
            Err(StorageError::Cancelled) => return stopped.map_or(Ok(()), Err),
            Err(error) => return Err(machine.stop(error)),
        }
        self.backup = Some(target);
        self.is_without_gap = self.is_archiving;
        self.moments.clear();
        self.commits = 0;
        self.newest_commit_us = storage.newest_commit_time_us();
        let model = self.tables.committed();
        self.check(None, RestoreUntil::End, &model, "the backup alone");
        Ok(())
    }

    /// Remembers the newest commit, if it is new, or does not.
    fn note_commit(&mut self) {
        let storage = self.storage();
        let time_us = storage.newest_commit_time_us();
        if time_us <= self.newest_commit_us || self.backup.is_none() {
            return;
        }
        self.newest_commit_us = time_us;
        self.commits += 1;
        // Each one has the same chance to be among those that are kept (Vitter's algorithm R).
        let place = self.random.below(self.commits) as usize;
        if self.moments.len() >= MOMENTS && place >= MOMENTS {
            return;
        }
        let moment = Moment {
            time_us,
            position: storage.newest_commit(),
            model: self.tables.committed(),
        };
        if self.moments.len() < MOMENTS {
            self.moments.push(moment);
        } else {
            self.moments[place] = moment;
        }
    }

    /// Restores some of what is remembered.
    fn check_moments(&mut self) {
        if self.is_archiving {
            self.archive.is_steady.store(true, Ordering::Relaxed);
            let archived = self.storage().archive_step(true);
            self.archive.is_steady.store(false, Ordering::Relaxed);
            archived.expect("the disk is sound, and so is the archive");
            let model = self.tables.committed();
            let archive = self.archive.clone();
            self.check(Some(&archive), RestoreUntil::End, &model, "all");
        }
        if !self.is_archiving || self.moments.is_empty() {
            return;
        }
        let moments = std::mem::take(&mut self.moments);
        for _ in 0..RESTORED_MOMENTS {
            let number = self.random.below(moments.len() as u64) as usize;
            let moment = &moments[number];
            let until = match self.random.below(2) {
                0 => RestoreUntil::TimeUs(moment.time_us),
                _ => RestoreUntil::Position(moment.position),
            };
            let archive = self.archive.clone();
            self.check(Some(&archive), until, &moment.model, "a moment");
        }
        self.moments = moments;
    }

    /// Restores the backup, opens what was restored, and compares.
    fn check(
        &mut self,
        archive: Option<&Arc<UnsteadyArchive>>,
        until: RestoreUntil,
        model: &Model,
        what: &str,
    ) {
        let Some(backup) = &self.backup else {
            return;
        };
        let what = format!("{what}, until {until:?}");
        let from: Arc<dyn Disk> = backup.clone();
        let target = SimulatedDisk::new(SimulationOptions::new(self.random.next()));
        let to: Arc<dyn Disk> = target.clone();
        let archive = archive.map(|archive| {
            archive.is_steady.store(true, Ordering::Relaxed);
            archive.clone()
        });
        let kept = archive.as_deref().map(|archive| archive as &dyn LogArchive);
        let restored = restore(&from, kept, &to, until, &mut |_: CopyProgress| Ok(()));
        if let Some(archive) = archive {
            archive.is_steady.store(false, Ordering::Relaxed);
        }
        match restored {
            Ok(_) => {}
            Err(StorageError::Archive { .. }) if !self.is_without_gap => return,
            Err(error) => panic!("{what}: {error}"),
        }
        let options = StorageOptions {
            pool_bytes: 2 << 20,
            background_writer: false,
            log_segment_bytes: 512 << 10,
            ..StorageOptions::default()
        };
        let opened = Storage::open_on(target, options).map_err(TableError::from);
        let catalog = opened.and_then(Catalog::open);
        let catalog = catalog.unwrap_or_else(|error| panic!("{what}: {error}"));
        tables::check_is(&catalog, model, &what);
        self.restored += 1;
    }
}

impl Workload for Moments {
    fn choose_options(&mut self, random: &mut Random, options: &mut StorageOptions) {
        self.is_archiving = random.below(8) > 0;
        if self.is_archiving {
            options.archive = Some(self.archive.clone());
        }
        self.is_without_gap &= self.is_archiving;
    }

    fn start(&mut self, storage: Arc<Storage>) -> Result<(), TableError> {
        self.tables.start(storage)
    }

    fn step(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let done = if machine.random.below(BACKUP_IN) == 0 {
            self.back_up(machine)
        } else if machine.random.below(20) == 0 {
            self.archive_step(machine)
        } else {
            self.tables.step(machine)
        };
        match done {
            Ok(()) => self.note_commit(),
            // It is unknown what was committed meanwhile.
            Err(Stop::Full) => self.newest_commit_us = self.storage().newest_commit_time_us(),
            Err(Stop::Dead) => {}
        }
        done
    }

    fn stop(&mut self) {
        self.tables.stop();
    }

    fn close(&mut self) {
        self.tables.close();
    }

    fn verify(&mut self) {
        self.tables.verify();
        self.check_moments();
    }
}
