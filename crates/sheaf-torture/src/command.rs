//! The long form: seed after seed until so many crashes have been survived.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{Summary, torture, torture_restores};

/// What to do, and for how long.
#[derive(Args, Debug)]
pub struct Options {
    /// Crashes to survive. One seed makes about eight.
    #[arg(long, default_value_t = 1_000)]
    pub crashes: u64,
    /// The first seed; the next ones follow it. With `--crashes 1`, the run of this seed alone. By default a new one.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Seeds that run at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub jobs: u64,
    /// With backups and an archive of the log: moments of the past are restored as well.
    #[arg(long)]
    pub restores: bool,
}

/// Runs the torture. Fails at the first seed that finds something.
pub fn run(options: &Options) -> ExitCode {
    let first = options.seed.unwrap_or_else(new_seed);
    println!("torture: {} crashes from seed {first} on", options.crashes);
    let bar = ProgressBar::new(options.crashes).with_style(style());
    let next = AtomicU64::new(first);
    let failed = AtomicBool::new(false);
    let torture = if options.restores {
        torture_restores
    } else {
        torture
    };
    let total = Mutex::new(Summary::default());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) && crashes(&total) < options.crashes {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    match catch_unwind(AssertUnwindSafe(|| torture(seed))) {
                        Ok(summary) => {
                            *lock(&total) += summary;
                            bar.set_position(crashes(&total).min(options.crashes));
                            bar.set_message(format!("seed {seed}"));
                        }
                        Err(panic) => {
                            failed.store(true, Ordering::Relaxed);
                            bar.suspend(|| report_failure(options, seed, &*panic));
                        }
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    let total = *lock(&total);
    println!(
        "torture: {} seeds; {} crashes, {} restarts after errors of the disk, {} steps refused by a full disk; {} commits, \
         {} rollbacks, {} trees, tables and indexes made or dropped; {} moments restored",
        next.load(Ordering::Relaxed) - first,
        total.crashes,
        total.restarts,
        total.refused,
        total.commits,
        total.rollbacks,
        total.definitions,
        total.restored
    );
    if failed.load(Ordering::Relaxed) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn lock(total: &Mutex<Summary>) -> std::sync::MutexGuard<'_, Summary> {
    total
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn crashes(total: &Mutex<Summary>) -> u64 {
    lock(total).crashes
}

fn report_failure(options: &Options, seed: u64, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    eprintln!(
        "torture: seed {seed} has found something: {}\n\
         torture: to see it again: --seed {seed} --crashes 1{}",
        text.unwrap_or("a panic without a message"),
        if options.restores { " --restores" } else { "" }
    );
}

/// Another one each time; what follows from it is then fixed.
fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| now.as_millis() as u64)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:40} {pos}/{len} crashes, {elapsed} gone, {eta} to go; {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
