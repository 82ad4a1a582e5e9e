//! Crash torture: random work, a machine that crashes at any disk operation, and a model that knows what must be there
//! afterwards.
//!
//! ```text
//!   seed --> random numbers --> workload: transactions of several connections, DDL, loads, checkpoints
//!                     |              |  same changes
//!                     |              +----------> model: what was acknowledged, what live transactions changed
//!                     v
//!            simulated disk: crashes, loses, reorders, tears; fails with EIO and ENOSPC
//!                     |
//!                  recovery, which crashes as well
//!                     |
//!                  what is there == model, every tree and index sound
//! ```
//!
//! A run is a function of its seed ([`torture`]): a seed that fails fails again. It has several *lives*, each of which
//! ends with a crash or, on a failing disk, with a restart of the process. After each, all that was acknowledged must
//! be there and nothing else, except that the one commit or DDL that was under way may be there as a whole.
//!
//! [`recovery_time`] and [`checkpoint_latency`] are another matter: how long recovery takes on a real disk, and what a
//! checkpoint costs transactions that commit meanwhile.
//!
//! There are two workloads. [`trees`] works on the storage alone, in some runs beside a [follower](followed),
//! [`tables`] on the floor above it, where a change of a row changes several trees. [`point_in_time`] adds backups and
//! an archive to the second, and restores moments of the past. The connections take turns on one thread, so that the
//! order of everything follows from the seed; threads that really meet are the business of the simulations of
//! sheaf-storage.

pub mod checkpoint_latency;
pub mod command;
mod followed;
mod machine;
mod measurement;
mod point_in_time;
pub mod recovery_time;
mod table_rows;
mod tables;
mod trees;

use machine::{Machine, Workload};

pub use machine::Summary;

/// Lives of a run.
const LIVES: u64 = 5;

/// One run. Even seeds work on trees, every other of them beside a follower of the log. Odd ones work on tables.
///
/// # Panics
/// Something is there that must not be, or is not there that must; the seed is printed.
pub fn torture(seed: u64) -> Summary {
    if seed.is_multiple_of(4) {
        run(seed, &mut trees::Trees::followed())
    } else if seed.is_multiple_of(2) {
        run(seed, &mut trees::Trees::default())
    } else {
        run(seed, &mut tables::Tables::default())
    }
}

/// One run with backups and an archive of the log: moments are restored, and are as they were.
///
/// # Panics
/// As [`torture`].
pub fn torture_restores(seed: u64) -> Summary {
    let mut moments = point_in_time::Moments::new(seed);
    let summary = run(seed, &mut moments);
    Summary {
        restored: moments.restored,
        ..summary
    }
}

fn run(seed: u64, workload: &mut dyn Workload) -> Summary {
    let _named = NamedSeed(seed);
    let mut machine = Machine::new(seed);
    machine.start(workload);
    for _ in 0..LIVES {
        machine.live(workload);
        machine.start(workload);
        workload.verify();
    }
    // A clean shutdown is a way to stop, too.
    workload.close();
    machine.start_cleanly(workload);
    workload.verify();
    machine.summary
}

/// Names the seed of a run that panics, wherever the panic came from.
struct NamedSeed(u64);

impl Drop for NamedSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("torture: seed {}", self.0);
        }
    }
}
