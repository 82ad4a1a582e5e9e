//! What the tests of trees share.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{Direction, KeyRange, ReadAhead, Storage, StorageOptions, Tree};

/// A pool that holds only a small part of the trees in these tests.
pub const TINY_POOL_BYTES: usize = 2 << 20;

/// A seeded sequence of numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

pub fn disk(seed: u64) -> Arc<SimulatedDisk> {
    SimulatedDisk::new(SimulationOptions::new(seed))
}

pub fn options() -> StorageOptions {
    StorageOptions {
        pool_bytes: TINY_POOL_BYTES,
        log_segment_bytes: 512 << 10,
        background_writer: false,
        ..StorageOptions::default()
    }
}

pub fn open(disk: &Arc<SimulatedDisk>) -> Arc<Storage> {
    Storage::open_on(disk.clone(), options()).unwrap()
}

/// All entries of a range, ascending.
pub fn contents(
    tree: &Arc<Tree>,
    range: KeyRange,
    read_ahead: ReadAhead,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut cursor = tree.scan(range, Direction::Forward, read_ahead);
    while let Some(leaf) = cursor.next_leaf().unwrap() {
        for i in 0..leaf.len() {
            found.push((
                [leaf.prefix(), leaf.suffix(i)].concat(),
                leaf.value(i).to_vec(),
            ));
        }
    }
    found
}

/// All entries of a range, ascending, but read from the end.
pub fn contents_backward(
    tree: &Arc<Tree>,
    range: KeyRange,
    read_ahead: ReadAhead,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut cursor = tree.scan(range, Direction::Backward, read_ahead);
    while let Some(leaf) = cursor.next_leaf().unwrap() {
        for i in (0..leaf.len()).rev() {
            let mut key = Vec::new();
            leaf.key_into(i, &mut key);
            found.push((key, leaf.value(i).to_vec()));
        }
    }
    found.reverse();
    found
}

/// The tree is sound and has as many entries as the model.
pub fn check(tree: &Tree, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    assert_eq!(tree.statistics().entries, model.len() as u64);
    let checked = tree.check().unwrap();
    assert_eq!(checked.entries, model.len() as u64);
}

/// Of the schedulers, unless `SHUTTLE_RANDOM_SEED` says another.
#[cfg(feature = "simulation")]
const SCHEDULER_SEED: u64 = 1;

/// Stack of a simulated thread: some page images fit.
#[cfg(feature = "simulation")]
const STACK_BYTES: usize = 512 << 10;

/// Runs the body under so many schedules chosen at random, and under so many with a few preemptions where they hurt
/// most (probabilistic concurrency testing).
#[cfg(feature = "simulation")]
pub fn explore(schedules: usize, body: fn()) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    const PREEMPTIONS: usize = 3;
    let mut config = shuttle::Config::new();
    config.stack_size = STACK_BYTES;
    let random = RandomScheduler::new_from_seed(SCHEDULER_SEED, schedules);
    shuttle::Runner::new(random, config.clone()).run(body);
    let preempting = PctScheduler::new_from_seed(SCHEDULER_SEED, PREEMPTIONS, schedules);
    shuttle::Runner::new(preempting, config).run(body);
}
