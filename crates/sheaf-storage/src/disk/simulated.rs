//! A disk in memory that misbehaves as told by a seed.
//!
//! What a program may rely on is little: a write is there after a sync that was submitted when the write had
//! completed, and not before. [`SimulatedDisk`] uses all the freedom that leaves. Operations complete late and in any
//! order. On [`power_loss`](SimulatedDisk::power_loss) each 512-byte sector of each write since the last sync survives
//! or does not by the toss of a coin, so writes are lost, reordered and torn. Operations fail with EIO or ENOSPC, and
//! reads flip bits, at random or where a [`Fault`] says. The machine can be made to crash at the n-th operation.
//!
//! Everything that happens follows from the seed and the order of calls. Nothing happens by itself: operations are
//! performed by the threads that reap or wait.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::disk::{Disk, FileId, Operation, Token};
use crate::error::{Result, StorageError};
use crate::random::Random;
use crate::sync::{Mutex, thread};

/// What a device writes as one.
const SECTOR_BYTES: u64 = 512;
/// What the simulated file system allocates at a time.
const BLOCK_BYTES: u64 = 4096;

/// The clock of a machine that was never on.
const FIRST_START_US: u64 = 1_700_000_000_000_000;
/// What an operation takes by the machine's clock.
const OPERATION_US: u64 = 100;
/// What a power loss takes by the machine's clock.
const POWER_LOSS_US: u64 = 1_000_000;

/// How a simulated disk behaves.
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    /// What everything random follows from.
    pub seed: u64,
    /// Operations complete in random order instead of the order of submission.
    pub reorder: bool,
    /// Reads that fail with EIO, per million.
    pub read_errors_per_million: u32,
    /// Writes that fail with EIO, per million. Some of their sectors have been written.
    pub write_errors_per_million: u32,
    /// Reads that deliver one flipped bit, per million.
    pub flipped_bits_per_million: u32,
    /// Room on the device. Beyond, writes and allocations fail with ENOSPC.
    pub capacity_bytes: u64,
    /// The machine crashes during the operation of this number, counted from 0.
    pub crash_at_operation: Option<u64>,
}

impl SimulationOptions {
    /// A disk that reorders, but does nothing worse.
    pub fn new(seed: u64) -> SimulationOptions {
        SimulationOptions {
            seed,
            reorder: true,
            read_errors_per_million: 0,
            write_errors_per_million: 0,
            flipped_bits_per_million: 0,
            capacity_bytes: u64::MAX,
            crash_at_operation: None,
        }
    }
}

/// Which operations a [`Fault`] hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultyOperation {
    Read,
    Write,
    Sync,
    Allocate,
}

/// What a [`Fault`] does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The operation fails with EIO.
    IoError,
    /// The operation fails with ENOSPC.
    NoSpace,
    /// The read delivers one wrong bit.
    FlippedBit,
}

/// A failure at a chosen place.
#[derive(Clone, Debug)]
pub struct Fault {
    pub operation: FaultyOperation,
    pub kind: FaultKind,
    /// Name of the file.
    pub file: String,
    /// Transfers that touch these bytes are hit; syncs and allocations always are.
    pub bytes: Range<u64>,
    /// How many operations are hit before the fault is over.
    pub times: u32,
}

/// See the [module](self).
pub struct SimulatedDisk {
    state: Mutex<State>,
}

struct State {
    options: SimulationOptions,
    random: Random,
    files: Vec<SimulatedFile>,
    pending: Vec<(Operation, Token)>,
    faults: Vec<Fault>,
    operations: u64,
    /// When the machine was started, by its clock.
    started_us: u64,
    crashed: bool,
}

#[derive(Default)]
struct SimulatedFile {
    name: String,
    /// What reads see.
    contents: Contents,
    /// What is there after a power loss, whatever happens.
    durable: Contents,
    /// What may or may not be there as well.
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Bytes { offset: u64, bytes: Vec<u8> },
    Length(u64),
    Allocated(u64),
}

impl SimulatedDisk {
    /// An empty disk.
    pub fn new(options: SimulationOptions) -> Arc<SimulatedDisk> {
        Self::with_files(options, Vec::new(), FIRST_START_US)
    }

    fn with_files(
        options: SimulationOptions,
        files: Vec<SimulatedFile>,
        started_us: u64,
    ) -> Arc<SimulatedDisk> {
        let state = State {
            random: Random::new(options.seed),
            options,
            files,
            pending: Vec::new(),
            faults: Vec::new(),
            operations: 0,
            started_us,
            crashed: false,
        };
        Arc::new(SimulatedDisk {
            state: Mutex::new(state),
        })
    }

    /// Makes operations fail at a chosen place.
    pub fn inject(&self, fault: Fault) {
        self.state.lock().faults.push(fault);
    }

    /// Ends all faults, injected and random.
    pub fn heal(&self) {
        let mut state = self.state.lock();
        state.faults.clear();
        state.options.read_errors_per_million = 0;
        state.options.write_errors_per_million = 0;
        state.options.flipped_bits_per_million = 0;
        state.options.capacity_bytes = u64::MAX;
    }

    /// Changes the room on the device.
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().options.capacity_bytes = bytes;
    }

    /// Flips a bit of what is stored, as a failing medium does.
    pub fn flip_stored_bit(&self, file: FileId, byte: u64, bit: u8) {
        let mut state = self.state.lock();
        if let Some(file) = state.files.get_mut(file.0 as usize) {
            for contents in [&mut file.contents, &mut file.durable] {
                let mut value = [0];
                contents.read(byte, &mut value);
                contents.write(byte, &[value[0] ^ (1 << (bit % 8))]);
            }
        }
    }

    /// Room taken on the device by all files.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// Operations performed so far.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Whether the machine has crashed: every operation fails.
    pub fn is_crashed(&self) -> bool {
        self.state.lock().crashed
    }

    /// Crashes the machine now: what was not performed never will be.
    pub fn crash(&self) {
        self.state.lock().crashed = true;
    }

    /// Crashes the machine during the operation that is this far ahead; `None` cancels that.
    pub fn crash_after(&self, operations: Option<u64>) {
        let mut state = self.state.lock();
        let done = state.operations;
        state.options.crash_at_operation = operations.map(|ahead| done + ahead);
    }

    /// Crashes the machine, and gives the disk as it is found after the power is back: everything synced, and some of
    /// what was not.
    pub fn power_loss(&self, options: SimulationOptions) -> Arc<SimulatedDisk> {
        let mut state = self.state.lock();
        state.crashed = true;
        let mut random = Random::new(state.random.next());
        let survivors = state
            .files
            .iter()
            .map(|file| file.after_power_loss(&mut random))
            .collect();
        Self::with_files(options, survivors, state.clock_us() + POWER_LOSS_US)
    }
}

impl SimulatedFile {
    fn after_power_loss(&self, random: &mut Random) -> SimulatedFile {
        let mut survived = self.durable.clone();
        let mut changes: Vec<&Change> = self.unsynced.iter().collect();
        random.shuffle(&mut changes);
        for change in changes {
            match change {
                Change::Length(length) => {
                    if random.chance(500_000) {
                        survived.set_length(*length);
                    }
                }
                Change::Allocated(length) => {
                    if random.chance(500_000) {
                        survived.allocate(*length);
                    }
                }
                Change::Bytes { offset, bytes } => {
                    for (position, sector) in sectors(*offset, bytes) {
                        if random.chance(500_000) {
                            survived.write(position, sector);
                        }
                    }
                }
            }
        }
        SimulatedFile {
            name: self.name.clone(),
            contents: survived.clone(),
            durable: survived,
            unsynced: Vec::new(),
        }
    }

    fn write(&mut self, offset: u64, bytes: Vec<u8>) {
        self.contents.write(offset, &bytes);
        self.unsynced.push(Change::Bytes { offset, bytes });
    }

    fn set_length(&mut self, length: u64) {
        self.contents.set_length(length);
        self.unsynced.push(Change::Length(length));
    }

    fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            match change {
                Change::Bytes { offset, bytes } => self.durable.write(offset, &bytes),
                Change::Length(length) => self.durable.set_length(length),
                Change::Allocated(length) => self.durable.allocate(length),
            }
        }
    }
}

/// The parts of a write that a device writes as one.
fn sectors(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let first = (SECTOR_BYTES - offset % SECTOR_BYTES).min(bytes.len() as u64) as usize;
    let (head, tail) = bytes.split_at(first);
    let start = offset + first as u64;
    std::iter::once((offset, head)).chain(
        tail.chunks(SECTOR_BYTES as usize)
            .enumerate()
            .map(move |(i, sector)| (start + i as u64 * SECTOR_BYTES, sector)),
    )
}

impl State {
    /// The operation to be performed next.
    fn take_next(&mut self) -> Option<(Operation, Token)> {
        if self.pending.is_empty() {
            return None;
        }
        let position = if self.options.reorder {
            (self.random.next() % self.pending.len() as u64) as usize
        } else {
            0
        };
        Some(self.pending.remove(position))
    }

    fn perform(&mut self, operation: &mut Operation) -> io::Result<()> {
        let number = self.operations;
        self.operations += 1;
        if self.crashed {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let crashes = self.options.crash_at_operation == Some(number);
        let result = self.perform_or_fail(operation, crashes);
        if crashes {
            self.crashed = true;
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        result
    }

    fn perform_or_fail(&mut self, operation: &mut Operation, crashes: bool) -> io::Result<()> {
        let fault = self.next_fault(operation);
        match fault {
            Some(FaultKind::NoSpace) => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            Some(FaultKind::IoError) if !matches!(operation, Operation::Write { .. }) => {
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
            _ => {}
        }
        let number = operation.file().0 as usize;
        let room = self
            .options
            .capacity_bytes
            .saturating_sub(self.used_bytes());
        let Some(file) = self.files.get_mut(number) else {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        };
        match operation {
            Operation::Read {
                offset, buffers, ..
            } => {
                let mut bytes = vec![0; buffers.bytes()];
                if *offset + bytes.len() as u64 > file.contents.length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                file.contents.read(*offset, &mut bytes);
                if fault == Some(FaultKind::FlippedBit) {
                    let bit = self.random.next() % (bytes.len() as u64 * 8);
                    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                }
                buffers.fill(&bytes);
            }
            Operation::Write {
                offset, buffers, ..
            } => {
                let bytes = buffers.collect_bytes();
                if file.contents.growth(*offset, bytes.len() as u64) > room {
                    return Err(io::Error::from_raw_os_error(libc::ENOSPC));
                }
                if fault.is_some() || crashes {
                    for (position, sector) in sectors(*offset, &bytes) {
                        if self.random.chance(500_000) {
                            file.write(position, sector.to_vec());
                        }
                    }
                    return Err(io::Error::from_raw_os_error(libc::EIO));
                }
                file.write(*offset, bytes);
            }
            // A sync that the crash interrupts has made nothing durable for certain.
            Operation::Sync { .. } if crashes => {}
            Operation::Sync { .. } => file.sync(),
            Operation::Allocate { length, .. } => {
                let length = *length;
                if length > file.contents.length {
                    if file.contents.growth(0, length) > room {
                        return Err(io::Error::from_raw_os_error(libc::ENOSPC));
                    }
                    file.contents.allocate(length);
                    file.unsynced.push(Change::Allocated(length));
                }
            }
            Operation::SetLength { length, .. } => file.set_length(*length),
            Operation::Zero { offset, length, .. } | Operation::Punch { offset, length, .. } => {
                file.write(*offset, vec![0; *length as usize]);
            }
        }
        Ok(())
    }

    fn clock_us(&self) -> u64 {
        self.started_us + self.operations * OPERATION_US
    }

    fn used_bytes(&self) -> u64 {
        self.files
            .iter()
            .map(|file| file.contents.used_bytes())
            .sum()
    }

    /// Whether, and how, the operation is to fail.
    fn next_fault(&mut self, operation: &Operation) -> Option<FaultKind> {
        let file = self.files.get(operation.file().0 as usize)?;
        let (kind, bytes, errors, flips) = match operation {
            Operation::Read {
                offset, buffers, ..
            } => (
                FaultyOperation::Read,
                *offset..*offset + buffers.bytes() as u64,
                self.options.read_errors_per_million,
                self.options.flipped_bits_per_million,
            ),
            Operation::Write {
                offset, buffers, ..
            } => (
                FaultyOperation::Write,
                *offset..*offset + buffers.bytes() as u64,
                self.options.write_errors_per_million,
                0,
            ),
            Operation::Sync { .. } => (FaultyOperation::Sync, 0..u64::MAX, 0, 0),
            Operation::Allocate { .. } => (FaultyOperation::Allocate, 0..u64::MAX, 0, 0),
            _ => return None,
        };
        let hit = self.faults.iter().position(|fault| {
            fault.operation == kind
                && fault.file == file.name
                && fault.bytes.start < bytes.end
                && bytes.start < fault.bytes.end
        });
        if let Some(hit) = hit {
            let fault = &mut self.faults[hit];
            let kind = fault.kind;
            fault.times = fault.times.saturating_sub(1);
            if fault.times == 0 {
                self.faults.remove(hit);
            }
            return Some(kind);
        }
        if errors > 0 && self.random.chance(errors) {
            return Some(FaultKind::IoError);
        }
        (flips > 0 && self.random.chance(flips)).then_some(FaultKind::FlippedBit)
    }
}

impl SimulatedDisk {
    /// Performs one pending operation, if there is one.
    fn step(&self) -> bool {
        let finished = {
            let mut state = self.state.lock();
            state.take_next().map(|(mut operation, token)| {
                let result = state.perform(&mut operation);
                (result, operation, token)
            })
        };
        let Some((result, operation, token)) = finished else {
            return false;
        };
        token.complete(result, operation.into_buffers());
        true
    }
}

impl Disk for SimulatedDisk {
    fn open(&self, name: &str) -> Result<FileId> {
        let mut state = self.state.lock();
        if state.crashed {
            let error = io::Error::from_raw_os_error(libc::EIO);
            return Err(StorageError::io("open", name, 0, error));
        }
        let known = state.files.iter().position(|file| file.name == name);
        let position = known.unwrap_or_else(|| {
            state.files.push(SimulatedFile {
                name: name.to_owned(),
                ..Default::default()
            });
            state.files.len() - 1
        });
        Ok(FileId(position as u32))
    }

    fn file_name(&self, file: FileId) -> String {
        let state = self.state.lock();
        let known = state.files.get(file.0 as usize);
        known.map_or_else(|| format!("file {}", file.0), |file| file.name.clone())
    }

    fn length(&self, file: FileId) -> Result<u64> {
        let state = self.state.lock();
        state
            .files
            .get(file.0 as usize)
            .map(|file| file.contents.length)
            .ok_or_else(|| {
                let error = io::Error::from_raw_os_error(libc::EBADF);
                StorageError::io("status", format!("file {}", file.0), 0, error)
            })
    }

    fn submit(&self, operations: Vec<(Operation, Token)>) {
        self.state.lock().pending.extend(operations);
    }

    fn reap(&self) -> usize {
        let pending = self.state.lock().pending.len();
        (0..pending).take_while(|_| self.step()).count()
    }

    fn wall_clock_us(&self) -> u64 {
        self.state.lock().clock_us()
    }

    fn wait(&self, _file: FileId, _offset: u64, done: &dyn Fn() -> bool) {
        while !done() {
            if !self.step() {
                // Another thread has taken the operation, or is about to submit it.
                thread::yield_now();
            }
        }
    }
}

impl Drop for SimulatedDisk {
    fn drop(&mut self) {
        // No thread waits any more, but every operation has one completion.
        self.state.get_mut().crashed = true;
        while self.step() {}
    }
}

/// The bytes of a file, as far as they are not zero by never having been written.
#[derive(Clone, Default)]
struct Contents {
    length: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
    /// Room reserved by allocation beyond what the blocks take.
    reserved: u64,
}

impl Contents {
    fn read(&self, offset: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let position = offset + done as u64;
            let within = (position % BLOCK_BYTES) as usize;
            let count = (BLOCK_BYTES as usize - within).min(into.len() - done);
            match self.blocks.get(&(position / BLOCK_BYTES)) {
                Some(block) => {
                    into[done..done + count].copy_from_slice(&block[within..within + count]);
                }
                None => into[done..done + count].fill(0),
            }
            done += count;
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let position = offset + done as u64;
            let within = (position % BLOCK_BYTES) as usize;
            let count = (BLOCK_BYTES as usize - within).min(bytes.len() - done);
            let piece = &bytes[done..done + count];
            done += count;
            let number = position / BLOCK_BYTES;
            // Zeros where room is reserved need no memory: a log's file is full of them.
            let is_kept = self.blocks.contains_key(&number)
                || number * BLOCK_BYTES >= self.reserved
                || piece.iter().any(|&byte| byte != 0);
            if is_kept {
                let block = self
                    .blocks
                    .entry(number)
                    .or_insert_with(|| vec![0; BLOCK_BYTES as usize].into_boxed_slice());
                block[within..within + count].copy_from_slice(piece);
            }
        }
        self.length = self.length.max(offset + bytes.len() as u64);
    }

    fn set_length(&mut self, length: u64) {
        if length < self.length {
            self.reserved = self.reserved.min(length);
            self.blocks.split_off(&length.div_ceil(BLOCK_BYTES));
            if let Some(block) = self.blocks.get_mut(&(length / BLOCK_BYTES)) {
                block[(length % BLOCK_BYTES) as usize..].fill(0);
            }
        }
        self.length = length;
    }

    fn allocate(&mut self, length: u64) {
        self.reserved = self.reserved.max(length);
        self.length = self.length.max(length);
    }

    /// Room taken on the device.
    fn used_bytes(&self) -> u64 {
        let beyond = self
            .blocks
            .range(self.reserved.div_ceil(BLOCK_BYTES)..)
            .count() as u64;
        self.reserved.next_multiple_of(BLOCK_BYTES) + beyond * BLOCK_BYTES
    }

    /// Room that a write to this range would take in addition.
    fn growth(&self, offset: u64, length: u64) -> u64 {
        let first = (offset / BLOCK_BYTES).max(self.reserved.div_ceil(BLOCK_BYTES));
        let end = (offset + length).div_ceil(BLOCK_BYTES);
        if first >= end {
            return 0;
        }
        (end - first - self.blocks.range(first..end).count() as u64) * BLOCK_BYTES
    }
}
