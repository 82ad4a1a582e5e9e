//! The machine that a workload runs on: its disk, its crashes, and the troubles of its disk.

use std::ops::AddAssign;
use std::sync::Arc;

use sheaf_storage::Random;
use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::{Storage, StorageError, StorageOptions};
use sheaf_table::TableError;

/// The files of a data directory.
const FILES: [&str; 3] = ["sheaf.data", "sheaf.log", "sheaf.doublewrite"];

/// A crash comes at one of so many disk operations of a life, at most.
const LONGEST_LIFE: u64 = 4_000;

/// A crash during recovery comes at one of its first so many disk operations.
const LONGEST_RECOVERY: u64 = 300;

/// What runs on the machine, with a model of what it has done.
pub(crate) trait Workload {
    /// The storage will be opened with these options.
    fn choose_options(&mut self, _random: &mut Random, _options: &mut StorageOptions) {}

    /// The storage was opened. Returns an error if the machine, or its disk, fails meanwhile.
    fn start(&mut self, storage: Arc<Storage>) -> Result<(), TableError>;

    /// Does something.
    fn step(&mut self, machine: &mut Machine) -> Result<(), Stop>;

    /// The process ends, whatever it was doing.
    fn stop(&mut self);

    /// The process ends as it should.
    fn close(&mut self);

    /// Compares all that is there with what may be there, and learns which it is.
    fn verify(&mut self);
}

/// Why a step ended before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The disk is full, or keeps pages from being written. What was to be done was not done at all.
    Full,
    /// The machine has crashed, or its disk has failed so that the process must be started again.
    Dead,
}

/// What is wrong with the disk in a life, besides that it ends by a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    None,
    /// Now and then there is no space left.
    FullDisk,
    /// Operations fail with EIO; a failed write has written some sectors.
    FailingDisk,
}

impl Trouble {
    fn any(random: &mut Random) -> Trouble {
        match random.below(4) {
            0 => Trouble::FullDisk,
            1 => Trouble::FailingDisk,
            _ => Trouble::None,
        }
    }
}

/// What was done in a run, or in several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Crashes, those during recovery included.
    pub crashes: u64,
    /// Restarts of the process because its disk had failed.
    pub restarts: u64,
    /// Steps that a full disk has refused.
    pub refused: u64,
    /// Transactions that were committed.
    pub commits: u64,
    /// Transactions that were rolled back.
    pub rollbacks: u64,
    /// Trees, tables and indexes that were made, loaded or dropped.
    pub definitions: u64,
    /// Moments that were restored.
    pub restored: u64,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Summary) {
        self.crashes += other.crashes;
        self.restarts += other.restarts;
        self.refused += other.refused;
        self.commits += other.commits;
        self.rollbacks += other.rollbacks;
        self.definitions += other.definitions;
        self.restored += other.restored;
    }
}

/// See the [module](self).
pub(crate) struct Machine {
    pub(crate) random: Random,
    disk: Arc<SimulatedDisk>,
    trouble: Trouble,
    pub(crate) summary: Summary,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Machine {
        let mut random = Random::new(seed);
        Machine {
            disk: SimulatedDisk::new(SimulationOptions::new(random.next())),
            random,
            trouble: Trouble::None,
            summary: Summary::default(),
        }
    }

    /// Starts the workload, crashing on the way as often as the seed says.
    pub(crate) fn start(&mut self, workload: &mut dyn Workload) {
        loop {
            if self.random.below(2) == 0 {
                let ahead = self.random.below(LONGEST_RECOVERY);
                self.disk.crash_after(Some(ahead));
            }
            if self.trouble == Trouble::FullDisk {
                self.fill_disk();
            }
            match self.open(workload) {
                Ok(()) if !self.disk.is_crashed() && self.trouble == Trouble::None => {
                    self.disk.crash_after(None);
                    return;
                }
                Ok(()) => {}
                Err(error) => drop(self.stop(error)),
            }
            self.end(workload);
        }
    }

    /// Starts the workload on a healthy disk.
    pub(crate) fn start_cleanly(&mut self, workload: &mut dyn Workload) {
        if let Err(error) = self.open(workload) {
            panic!("{error}");
        }
    }

    fn open(&mut self, workload: &mut dyn Workload) -> Result<(), TableError> {
        let mut options = self.storage_options();
        workload.choose_options(&mut self.random, &mut options);
        let storage = Storage::open_on(self.disk.clone(), options)?;
        workload.start(storage)
    }

    fn storage_options(&mut self) -> StorageOptions {
        let small = self.random.below(2) == 0;
        StorageOptions {
            pool_bytes: if small { 1 << 20 } else { 3 << 20 },
            background_writer: false,
            log_segment_bytes: 512 << 10,
            // Short enough that changes make checkpoints now and then.
            log_limit_bytes: 1 << 20,
            ..StorageOptions::default()
        }
    }

    /// Lets the workload work until the machine crashes or its disk fails.
    pub(crate) fn live(&mut self, workload: &mut dyn Workload) {
        self.trouble = Trouble::any(&mut self.random);
        let longest = 100 + self.random.below(LONGEST_LIFE);
        let ahead = self.random.below(longest);
        self.disk.crash_after(Some(ahead));
        while !self.disk.is_crashed() {
            self.make_trouble();
            match workload.step(self) {
                Ok(()) => {}
                Err(Stop::Full) => self.summary.refused += 1,
                Err(Stop::Dead) => break,
            }
        }
        self.end(workload);
    }

    /// Ends the process, and perhaps the power supply, and decides about the trouble until it runs again.
    fn end(&mut self, workload: &mut dyn Workload) {
        let crashed = self.disk.is_crashed();
        workload.stop();
        if crashed || self.random.below(2) == 0 {
            self.summary.crashes += 1;
            self.trouble = Trouble::any(&mut self.random);
            let mut options = SimulationOptions::new(self.random.next());
            if self.trouble == Trouble::FailingDisk {
                options.read_errors_per_million = 10_000;
                options.write_errors_per_million = 10_000;
            }
            self.disk = self.disk.power_loss(options);
        } else {
            self.summary.restarts += 1;
            self.trouble = Trouble::None;
            self.disk.crash_after(None);
            self.disk.heal();
        }
    }

    fn make_trouble(&mut self) {
        match self.trouble {
            Trouble::None => {}
            Trouble::FullDisk => match self.random.below(40) {
                0 => self.fill_disk(),
                1..=4 => self.disk.set_capacity(u64::MAX),
                _ => {}
            },
            Trouble::FailingDisk => {
                if self.random.below(60) == 0 {
                    let operation = match self.random.below(3) {
                        0 => FaultyOperation::Read,
                        1 => FaultyOperation::Write,
                        _ => FaultyOperation::Sync,
                    };
                    let file = FILES[self.random.below(FILES.len() as u64) as usize];
                    self.disk.inject(Fault {
                        operation,
                        kind: FaultKind::IoError,
                        file: file.into(),
                        bytes: 0..u64::MAX,
                        times: 1,
                    });
                }
            }
        }
    }

    /// Leaves a little space, or none.
    fn fill_disk(&mut self) {
        let left = self.random.below(3) * self.random.below(1 << 20);
        self.disk.set_capacity(self.disk.used_bytes() + left);
    }

    /// What an error means for the step that met it.
    ///
    /// # Panics
    /// The error has no cause in what the machine went through.
    pub(crate) fn stop(&self, error: impl Into<TableError>) -> Stop {
        let error = error.into();
        let crashed = self.disk.is_crashed();
        match &error {
            TableError::Storage(StorageError::DiskFull { .. })
                if self.trouble == Trouble::FullDisk =>
            {
                Stop::Full
            }
            TableError::Storage(
                StorageError::Io { .. } | StorageError::SyncFailed { .. } | StorageError::Closed,
            ) if crashed || self.trouble == Trouble::FailingDisk => Stop::Dead,
            // Pages that could not be written keep their frames.
            TableError::Storage(StorageError::PoolExhausted { .. }) if crashed => Stop::Dead,
            TableError::Storage(StorageError::PoolExhausted { .. })
                if self.trouble == Trouble::FailingDisk =>
            {
                Stop::Full
            }
            _ => panic!("{error} (crashed: {crashed}, trouble: {:?})", self.trouble),
        }
    }

    /// Whether the process goes on although the disk has failed: where the background threads of a server would.
    pub(crate) fn goes_on(&mut self) -> bool {
        !self.disk.is_crashed() && self.random.below(2) == 0
    }

    /// What an error of something means that must not fail for want of space: a commit, a rollback.
    pub(crate) fn must_be_dead(&self, error: impl Into<TableError>) -> Stop {
        let error = error.into();
        let text = error.to_string();
        match self.stop(error) {
            // A disk that fails may well keep a page from being read or a frame from becoming free.
            Stop::Full if self.trouble == Trouble::FullDisk => {
                panic!("{text} where space was reserved")
            }
            Stop::Full | Stop::Dead => Stop::Dead,
        }
    }
}
