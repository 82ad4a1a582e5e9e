//! Measuring the constants on this machine.
//!
//! **The device**: a file of its own is written, and read at random one page at a time, at random with many pages on
//! the way, and from end to end. As with the read-ahead of scans, a thread that waits for a read has requested the next
//! ones by then, and pages arrive in buffers that have been used before.
//!
//! **The processor**: a loop of binary searches, as descents of trees are, is timed against the machine of the default
//! constants. All constants of the processor are taken to differ by that factor.
//!
//! Other programs may be at work meanwhile, and they can make things look slower, never faster. So there are several
//! short rounds with growing pauses between them, about four seconds in all. Of each constant the lowest value counts:
//!
//! ```text
//!   round  0.2 s  round  0.4 s  round    0.8 s    round        1.6 s        round
//! ```
//!
//! If no second round comes near the lowest value, or more was running in all rounds than there are processors, the
//! measurement is [disturbed](Measurement::is_disturbed). The caller then measures again at a better time.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sheaf_storage::disk::{
    AlignedBuffer, Buffers, Completion, Operation, STRETCH_BYTES, open_directory, run,
};
use sheaf_storage::sync::thread::{self, Thread};
use sheaf_storage::{Disk, DiskKind, FileId, PAGE_SIZE, Random, Result, StorageError};

use super::CostConstants;

/// Bytes of the file that is read: beyond the device's own cache would be better, and would take longer.
const FILE_BYTES: u64 = 64 << 20;

/// Bytes of a sequential read.
const SEQUENTIAL_BYTES: usize = 256 << 10;

/// Reads of so many bytes on their way at the same time.
const SEQUENTIAL_DEPTH: usize = 8;

/// Reads of one page each on their way at the same time.
const DEPTH: usize = 64;

/// Pages read in each way in a round, at most.
const MOST_PAGES: usize = 4 << 10;

/// Time for the reads of each kind in a round.
const TIME_LIMIT: Duration = Duration::from_millis(60);

/// Binary searches of a round.
const SEARCHES: u64 = 1 << 16;

/// Keys that are searched: 1 MiB, which lies in a processor's cache as the inner nodes of trees do.
const SEARCHED_KEYS: u64 = 1 << 17;

/// Searches in a row, of which the fastest counts.
const SEARCH_ROUNDS: usize = 3;

/// How often everything is measured.
const ROUNDS: usize = 5;

/// The pause behind the first round; each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The lowest value is believed when that of another round is at most so many times as high.
pub const AGREEMENT: f64 = 1.25;

/// What the searches of a round took on the machine of the default constants.
const REFERENCE_ROUND_US: f64 = 4_500.0;

/// A processor is taken to be no more than so many times as fast, or as slow, as that one.
const MOST_FACTOR: f64 = 4.0;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    pub costs: CostConstants,
    /// Others were at work, so that the constants may be too high.
    pub is_disturbed: bool,
}

/// What one round has found: the processor's factor, and microseconds for a page.
#[derive(Debug, Clone, Copy)]
struct Round {
    processor_factor: f64,
    random_us: f64,
    deep_us: f64,
    sequential_us: f64,
    /// More was running than there are processors.
    is_crowded: bool,
}

/// Measures all constants. `directory` is made, and removed again; it should be where the data is. `pause` waits for so
/// long; false: there is no time for more, and nothing comes out.
///
/// # Errors
/// The directory cannot be written to.
pub fn measure(
    directory: &Path,
    mut pause: impl FnMut(Duration) -> bool,
) -> Result<Option<Measurement>> {
    let rounds = measure_rounds(directory, &mut pause);
    // It may never have been made.
    let _ = std::fs::remove_dir_all(directory);
    Ok(rounds?.as_deref().map(best_of))
}

/// `None`: there was no time for all of them.
fn measure_rounds(
    directory: &Path,
    pause: &mut impl FnMut(Duration) -> bool,
) -> Result<Option<Vec<Round>>> {
    let failed = |error| StorageError::io("creation", directory.display().to_string(), 0, error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    let disk = open_directory(directory, DiskKind::Auto)?;
    let file = write_file(disk.as_ref())?;
    let mut random = Random::new(1);
    let mut rounds = Vec::with_capacity(ROUNDS);
    let mut next_pause = FIRST_PAUSE;
    loop {
        rounds.push(measure_round(disk.as_ref(), file, &mut random)?);
        if rounds.len() == ROUNDS {
            return Ok(Some(rounds));
        }
        if !pause(next_pause) {
            return Ok(None);
        }
        next_pause *= 2;
    }
}

fn measure_round(disk: &dyn Disk, file: FileId, random: &mut Random) -> Result<Round> {
    let is_crowded_before = is_crowded();
    let processor_factor = processor_factor();
    let pages = FILE_BYTES / PAGE_SIZE as u64;
    let start = random.below(pages) / 2;
    let mut random_page = || random.below(pages) * PAGE_SIZE as u64;
    let mut reads = Reads::new(disk, file, 1, PAGE_SIZE);
    let random_us = reads.page_us(&mut random_page)?;
    let mut reads = Reads::new(disk, file, DEPTH, PAGE_SIZE);
    let deep_us = reads.page_us(&mut random_page)?;
    // Not the same part of the file in each round.
    let mut next = start * PAGE_SIZE as u64 / SEQUENTIAL_BYTES as u64 * SEQUENTIAL_BYTES as u64;
    let mut reads = Reads::new(disk, file, SEQUENTIAL_DEPTH, SEQUENTIAL_BYTES);
    let sequential_us = reads.page_us(&mut || {
        let offset = next;
        next = (next + SEQUENTIAL_BYTES as u64) % FILE_BYTES;
        offset
    })?;
    Ok(Round {
        processor_factor,
        random_us,
        deep_us,
        sequential_us,
        is_crowded: is_crowded_before && is_crowded(),
    })
}

fn best_of(rounds: &[Round]) -> Measurement {
    let mut is_disturbed = rounds.iter().all(|round| round.is_crowded);
    let mut best = |value: fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        is_disturbed |= values
            .get(1)
            .is_some_and(|second| *second > values[0] * AGREEMENT);
        values[0]
    };
    let factor = best(|round| round.processor_factor);
    let random_us = best(|round| round.random_us);
    let deep_us = best(|round| round.deep_us);
    let sequential_us = best(|round| round.sequential_us);
    let (mut costs, defaults) = (CostConstants::default(), CostConstants::default());
    for constant in CostConstants::ALL {
        (constant.set)(&mut costs, (constant.get)(&defaults) * factor);
    }
    costs.random_read_us = random_us;
    // More requests at once, and in order, are never worse; what is measured so was disturbed.
    costs.prefetched_read_us = deep_us.min(random_us);
    costs.sequential_read_us = sequential_us.min(costs.prefetched_read_us);
    Measurement {
        costs,
        is_disturbed,
    }
}

/// Whether more threads can run now than there are processors, as far as the system tells.
fn is_crowded() -> bool {
    let running = std::fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|line| {
            let entities = line.split(' ').nth(3)?;
            entities.split('/').next()?.parse::<usize>().ok()
        });
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    running.is_some_and(|running| running > processors)
}

/// A file of bytes that no device can compress.
fn write_file(disk: &dyn Disk) -> Result<FileId> {
    let file = disk.open("measured")?;
    run(
        disk,
        Operation::Allocate {
            file,
            length: FILE_BYTES,
        },
    )?;
    let mut random = Random::new(2);
    for stretch in 0..FILE_BYTES / STRETCH_BYTES {
        let mut buffer = AlignedBuffer::zeroed(STRETCH_BYTES as usize)?;
        for word in buffer.chunks_exact_mut(8) {
            word.copy_from_slice(&random.next().to_le_bytes());
        }
        run(
            disk,
            Operation::Write {
                file,
                offset: stretch * STRETCH_BYTES,
                buffers: Buffers::Owned(buffer),
            },
        )?;
    }
    run(disk, Operation::Sync { file })?;
    Ok(file)
}

/// A read that a thread waits for.
struct Landing {
    waiter: Thread,
    landed: AtomicBool,
    failed: AtomicBool,
    /// Given back when it has landed.
    buffers: Mutex<Option<Buffers>>,
}

impl Completion for Landing {
    fn complete(&self, result: io::Result<()>, buffers: Option<Buffers>) {
        *self.buffers.lock().unwrap_or_else(PoisonError::into_inner) = buffers;
        self.failed.store(result.is_err(), Ordering::Relaxed);
        self.landed.store(true, Ordering::Release);
        self.waiter.unpark();
    }
}

/// Reads of a file, several on their way at the same time.
struct Reads<'d> {
    disk: &'d dyn Disk,
    file: FileId,
    depth: usize,
    bytes: usize,
    on_their_way: VecDeque<(u64, Arc<Landing>)>,
    free: Vec<Buffers>,
}

impl<'d> Reads<'d> {
    /// At most `depth` reads at the same time, of so many bytes each.
    fn new(disk: &'d dyn Disk, file: FileId, depth: usize, bytes: usize) -> Self {
        Reads {
            disk,
            file,
            depth,
            bytes,
            on_their_way: VecDeque::new(),
            free: Vec::new(),
        }
    }

    /// Microseconds for a page, reading at the offsets that come until time or pages are up.
    fn page_us(&mut self, next_offset: &mut impl FnMut() -> u64) -> Result<f64> {
        let pages_of_a_read = self.bytes / PAGE_SIZE;
        // Half of them at a time, so that the other half is on its way meanwhile.
        let together = self.depth.div_ceil(2);
        let start = Instant::now();
        let mut pages = 0;
        loop {
            let goes_on = pages < MOST_PAGES && start.elapsed() < TIME_LIMIT;
            if goes_on && self.on_their_way.len() + together <= self.depth {
                self.ask(together, next_offset)?;
                pages += together * pages_of_a_read;
            }
            if !self.wait_for_one()? {
                return Ok(start.elapsed().as_secs_f64() * 1e6 / pages as f64);
            }
        }
    }

    fn ask(&mut self, reads: usize, next_offset: &mut impl FnMut() -> u64) -> Result<()> {
        let mut offsets: Vec<u64> = (0..reads).map(|_| next_offset()).collect();
        offsets.sort_unstable();
        let mut operations = Vec::with_capacity(reads);
        for offset in offsets {
            let landing = Arc::new(Landing {
                waiter: thread::current(),
                landed: AtomicBool::new(false),
                failed: AtomicBool::new(false),
                buffers: Mutex::new(None),
            });
            let buffers = match self.free.pop() {
                Some(buffers) => buffers,
                None => Buffers::Owned(AlignedBuffer::zeroed(self.bytes)?),
            };
            let read = Operation::Read {
                file: self.file,
                offset,
                buffers,
            };
            self.on_their_way.push_back((offset, Arc::clone(&landing)));
            operations.push((read, landing as Arc<dyn Completion>));
        }
        self.disk.submit(operations);
        Ok(())
    }

    /// Waits for the oldest read. False if there is none.
    fn wait_for_one(&mut self) -> Result<bool> {
        let Some((offset, landing)) = self.on_their_way.pop_front() else {
            return Ok(false);
        };
        let landed = || landing.landed.load(Ordering::Acquire);
        self.disk.wait(self.file, offset, &landed);
        if landing.failed.load(Ordering::Relaxed) {
            let error = io::Error::other("a read to measure the device failed");
            let file = self.disk.file_name(self.file);
            return Err(StorageError::io("read", file, offset, error));
        }
        let mut buffers = landing
            .buffers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.free.extend(buffers.take());
        Ok(true)
    }
}

/// How many times as long as on the machine of the default constants this one takes.
fn processor_factor() -> f64 {
    let keys: Vec<u64> = (0..SEARCHED_KEYS).map(|key| key << 47).collect();
    let mut fastest = f64::MAX;
    let mut found = 0;
    for _ in 0..SEARCH_ROUNDS {
        let mut random = Random::new(3);
        let start = Instant::now();
        for _ in 0..SEARCHES {
            let wanted = random.next();
            found += keys.partition_point(|key| *key < wanted);
        }
        fastest = fastest.min(start.elapsed().as_secs_f64() * 1e6);
    }
    // Otherwise the searches would be left out.
    std::hint::black_box(found);
    (fastest / REFERENCE_ROUND_US).clamp(1.0 / MOST_FACTOR, MOST_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the machine, the constants make sense; how fast it is, no test can know.
    #[test]
    fn what_is_measured_is_plausible_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = directory.path().join("scratch");
        let mut pauses = Vec::new();
        let measured = measure(&scratch, |pause| {
            pauses.push(pause);
            true
        });
        let constants = measured.unwrap().expect("there was time").costs;
        assert!(!scratch.exists());
        assert_eq!(pauses.len(), ROUNDS - 1);
        assert!(constants.sequential_read_us <= constants.prefetched_read_us);
        assert!(constants.prefetched_read_us <= constants.random_read_us);
        for constant in CostConstants::ALL {
            let value = (constant.get)(&constants);
            assert!(
                super::super::constants::COST_BOUNDS.contains(&value),
                "{}",
                constant.name
            );
        }
    }

    #[test]
    fn a_measurement_that_is_stopped_gives_nothing_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = directory.path().join("scratch");
        assert_eq!(measure(&scratch, |_| false).unwrap(), None);
        assert!(!scratch.exists());
    }

    #[test]
    fn the_best_round_counts_and_another_one_has_to_confirm_it() {
        let round = |random_us: f64, is_crowded| Round {
            processor_factor: 1.0,
            random_us,
            deep_us: 10.0,
            sequential_us: 5.0,
            is_crowded,
        };
        let quiet = best_of(&[round(335.0, true), round(34.0, false), round(33.0, false)]);
        assert_eq!(quiet.costs.random_read_us, 33.0);
        assert!(!quiet.is_disturbed);
        let alone = best_of(&[round(335.0, false), round(33.0, false), round(90.0, false)]);
        assert_eq!(alone.costs.random_read_us, 33.0);
        assert!(alone.is_disturbed, "nothing confirms it");
        let crowded = best_of(&[round(335.0, true), round(333.0, true)]);
        assert!(crowded.is_disturbed);
    }
}
