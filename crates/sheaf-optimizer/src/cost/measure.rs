//! Measuring the constants on this machine.
//!
//! **The device**: a file of its own is written, and read at random one page at a time, at random with many pages on the
//! way, and from end to end. As with the read-ahead of scans, whoever waits for a read has asked for the next ones by then,
//! and pages arrive in buffers that have been used before. **The processor**: a loop of binary searches, as descents of trees are, against the time that
//! it took on the machine of the default constants; all constants of the processor are taken to differ by that factor.
//!
//! Each part ends after a fixed number of reads or a fixed time, so that all of it takes about a second on a slow disk.

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

/// Pages read in each way, at most.
const MOST_PAGES: usize = 16 << 10;

/// Time for the reads of each kind.
const TIME_LIMIT: Duration = Duration::from_millis(250);

/// Binary searches of a round.
const SEARCHES: u64 = 1 << 16;

/// Keys that are searched: 1 MiB, which lies in a processor's cache as the inner nodes of trees do.
const SEARCHED_KEYS: u64 = 1 << 17;

/// Rounds, of which the fastest counts: others may be at work on the machine.
const ROUNDS: usize = 8;

/// What a round took on the machine of the default constants.
const REFERENCE_ROUND_US: f64 = 4_500.0;

/// A processor is taken to be no more than so many times as fast, or as slow, as that one.
const MOST_FACTOR: f64 = 4.0;

/// Measures all constants. `directory` is made, and removed again; it should be where the data is.
///
/// # Errors
/// The directory cannot be written to.
pub fn measure(directory: &Path) -> Result<CostConstants> {
    let mut constants = CostConstants::default();
    let factor = processor_factor();
    let defaults = CostConstants::default();
    for constant in CostConstants::ALL {
        (constant.set)(&mut constants, (constant.get)(&defaults) * factor);
    }
    let device = measure_device(directory);
    // It may never have been made.
    let _ = std::fs::remove_dir_all(directory);
    let device = device?;
    constants.random_read_us = device.random_us;
    // More requests at once, and in order, are never worse; what is measured so was disturbed.
    constants.prefetched_read_us = device.deep_us.min(device.random_us);
    constants.sequential_read_us = device.sequential_us.min(constants.prefetched_read_us);
    Ok(constants)
}

/// Microseconds for a page.
struct Device {
    random_us: f64,
    deep_us: f64,
    sequential_us: f64,
}

fn measure_device(directory: &Path) -> Result<Device> {
    let failed = |error| StorageError::io("creation", directory.display().to_string(), 0, error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    let disk = open_directory(directory, DiskKind::Auto)?;
    let file = write_file(disk.as_ref())?;
    let mut random = Random::new(1);
    let pages = FILE_BYTES / PAGE_SIZE as u64;
    let mut random_page = || random.below(pages) * PAGE_SIZE as u64;
    let mut reads = Reads::new(disk.as_ref(), file, 1, PAGE_SIZE);
    let random_us = reads.page_us(&mut random_page)?;
    let mut reads = Reads::new(disk.as_ref(), file, DEPTH, PAGE_SIZE);
    let deep_us = reads.page_us(&mut random_page)?;
    let mut next = 0;
    let mut reads = Reads::new(disk.as_ref(), file, SEQUENTIAL_DEPTH, SEQUENTIAL_BYTES);
    let sequential_us = reads.page_us(&mut || {
        let offset = next;
        next = (next + SEQUENTIAL_BYTES as u64) % FILE_BYTES;
        offset
    })?;
    Ok(Device {
        random_us,
        deep_us,
        sequential_us,
    })
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

/// A read that somebody waits for.
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
    for _ in 0..ROUNDS {
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
        let constants = measure(&scratch).unwrap();
        assert!(!scratch.exists());
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
}
