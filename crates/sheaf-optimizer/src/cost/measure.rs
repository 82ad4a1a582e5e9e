//! Measuring the constants on this machine.
//!
//! **The device**: a file of its own is written, and read at random one page at a time, at random with many pages on the
//! way, and from end to end. **The processor**: a loop of binary searches, as descents of trees are, against the time that
//! it took on the machine of the default constants; all constants of the processor are taken to differ by that factor.
//!
//! Each part ends after a fixed number of reads or a fixed time, so that all of it takes about a second on a slow disk.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Reads on their way at the same time.
const DEPTH: usize = 32;

/// Reads of each kind, at most.
const MOST_READS: usize = 512;

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
    let random_page = |random: &mut Random| random.below(pages) * PAGE_SIZE as u64;
    let random_us = timed(1, || {
        read(disk.as_ref(), file, &[random_page(&mut random)], PAGE_SIZE)
    })?;
    let deep_us = timed(DEPTH, || {
        let mut offsets: Vec<u64> = (0..DEPTH).map(|_| random_page(&mut random)).collect();
        offsets.sort_unstable();
        read(disk.as_ref(), file, &offsets, PAGE_SIZE)
    })?;
    let mut next = 0;
    let in_a_read = SEQUENTIAL_BYTES / PAGE_SIZE;
    let sequential_us = timed(4 * in_a_read, || {
        let offsets: Vec<u64> = (0..4)
            .map(|n| (next + n * SEQUENTIAL_BYTES as u64) % FILE_BYTES)
            .collect();
        next = (next + 4 * SEQUENTIAL_BYTES as u64) % FILE_BYTES;
        read(disk.as_ref(), file, &offsets, SEQUENTIAL_BYTES)
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
}

impl Completion for Landing {
    fn complete(&self, result: io::Result<()>, _buffers: Option<Buffers>) {
        self.failed.store(result.is_err(), Ordering::Relaxed);
        self.landed.store(true, Ordering::Release);
        self.waiter.unpark();
    }
}

/// Reads so many bytes at each of the offsets, all at the same time.
fn read(disk: &dyn Disk, file: FileId, offsets: &[u64], bytes: usize) -> Result<()> {
    let mut operations = Vec::with_capacity(offsets.len());
    let mut landings = Vec::with_capacity(offsets.len());
    for &offset in offsets {
        let landing = Arc::new(Landing {
            waiter: thread::current(),
            landed: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        });
        let buffers = Buffers::Owned(AlignedBuffer::zeroed(bytes)?);
        let read = Operation::Read {
            file,
            offset,
            buffers,
        };
        landings.push((offset, Arc::clone(&landing)));
        operations.push((read, landing as Arc<dyn Completion>));
    }
    disk.submit(operations);
    let mut failed = false;
    for (offset, landing) in landings {
        disk.wait(file, offset, &|| landing.landed.load(Ordering::Acquire));
        failed |= landing.failed.load(Ordering::Relaxed);
    }
    match failed {
        true => {
            let error = io::Error::other("a read to measure the device failed");
            Err(StorageError::io("read", disk.file_name(file), 0, error))
        }
        false => Ok(()),
    }
}

/// Microseconds for a page of reads that are repeated until the time or their number is up; each is of so many pages.
fn timed(pages: usize, mut read: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    let mut reads = 0;
    while reads < MOST_READS && start.elapsed() < TIME_LIMIT {
        read()?;
        reads += 1;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / (reads * pages) as f64)
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
