//! What a checkpoint costs transactions that commit meanwhile.
//!
//! ```text
//!   writers   one random row, commit, one random row, commit, ...        every commit waits for the disk
//!   sampler   is a checkpoint under way?  .....no.....|.....yes.....|.....no.....
//! ```
//!
//! A commit belongs to the checkpoints if one was under way when it began or when it ended. Checkpoints come by
//! themselves, at their own pace, because the log is kept short; none is asked for.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use sheaf_storage::{BulkBuilder, Random, Storage, StorageError, StorageOptions, Tree};

use crate::measurement::{DataDirectory, row_of};

/// How often the sampler looks.
const SAMPLE: Duration = Duration::from_millis(1);

/// What to measure.
#[derive(Args, Debug, Clone)]
pub struct Options {
    /// Threads that commit.
    #[arg(long, default_value_t = 16)]
    pub writers: u64,
    /// Seconds of commits.
    #[arg(long, default_value_t = 120)]
    pub seconds: u64,
    /// Rows of the table.
    #[arg(long, default_value_t = 4_000_000)]
    pub rows: u64,
    /// Bytes of a row.
    #[arg(long, default_value_t = 200)]
    pub row_bytes: usize,
    /// Buffer pool, in MiB; the table fits into the default.
    #[arg(long, default_value_t = 2048)]
    pub pool_mib: usize,
    /// The log is kept about this short by checkpoints, in MiB.
    #[arg(long, default_value_t = 512)]
    pub log_mib: u64,
    /// Folder for the data directory, which is removed afterwards.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// Measures, and prints what it found.
pub fn run(options: &Options) -> ExitCode {
    match measure(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("checkpoints: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Latencies of commits, in nanoseconds.
#[derive(Default)]
struct Latencies {
    quiet: Vec<u64>,
    during: Vec<u64>,
}

fn measure(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let parent = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let data = DataDirectory::create(&parent, "sheaf-checkpoints")?;
    let storage = Storage::open(
        data.path(),
        StorageOptions {
            pool_bytes: options.pool_mib << 20,
            log_limit_bytes: options.log_mib << 20,
            ..StorageOptions::default()
        },
    )?;
    let mut builder = BulkBuilder::new(&storage)?;
    for row in 0..options.rows {
        let value = row_of(row, 0, options.row_bytes);
        builder.append(&row.to_be_bytes(), &value)?;
    }
    let tree = storage.tree(builder.finish()?)?;
    storage.checkpoint()?;
    println!(
        "{} writers, {} rows of {} bytes, a pool of {} MiB, a log of {} MiB",
        options.writers, options.rows, options.row_bytes, options.pool_mib, options.log_mib
    );
    let (mut latencies, checkpoints) = commit_for_a_while(options, &storage, &tree)?;
    print("quiet", &mut latencies.quiet);
    print(
        &format!("beside {checkpoints} checkpoints"),
        &mut latencies.during,
    );
    let (quiet, during) = (
        quantile(&latencies.quiet, 0.99),
        quantile(&latencies.during, 0.99),
    );
    println!("p99 beside checkpoints / quiet: {:.2}", during / quiet);
    storage.close()?;
    Ok(())
}

/// Latencies, and how many checkpoints began.
fn commit_for_a_while(
    options: &Options,
    storage: &Arc<Storage>,
    tree: &Arc<Tree>,
) -> Result<(Latencies, u64), StorageError> {
    let (stop, under_way) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let writers: Vec<_> = (0..options.writers)
            .map(|writer| {
                let (stop, under_way) = (&stop, &under_way);
                scope.spawn(move || commit_until(options, storage, tree, writer, stop, under_way))
            })
            .collect();
        let (started, mut checkpoints) = (Instant::now(), 0);
        while started.elapsed() < Duration::from_secs(options.seconds) {
            let running = storage.checkpoint_is_under_way();
            if running && !under_way.swap(running, Ordering::Relaxed) {
                checkpoints += 1;
            }
            under_way.store(running, Ordering::Relaxed);
            thread::sleep(SAMPLE);
        }
        stop.store(true, Ordering::Relaxed);
        let mut all = Latencies::default();
        for writer in writers {
            let found = match writer.join() {
                Ok(found) => found?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            all.quiet.extend(found.quiet);
            all.during.extend(found.during);
        }
        Ok((all, checkpoints))
    })
}

fn commit_until(
    options: &Options,
    storage: &Arc<Storage>,
    tree: &Arc<Tree>,
    writer: u64,
    stop: &AtomicBool,
    under_way: &AtomicBool,
) -> Result<Latencies, StorageError> {
    let mut random = Random::new(writer + 1);
    let mut found = Latencies::default();
    while !stop.load(Ordering::Relaxed) {
        let row = random.below(options.rows);
        let value = row_of(row, random.next(), options.row_bytes);
        let (began, before) = (Instant::now(), under_way.load(Ordering::Relaxed));
        let mut transaction = storage.begin_transaction();
        tree.update(&mut transaction, &row.to_be_bytes(), &value)?;
        transaction.commit()?;
        let nanoseconds = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if before || under_way.load(Ordering::Relaxed) {
            found.during.push(nanoseconds);
        } else {
            found.quiet.push(nanoseconds);
        }
    }
    Ok(found)
}

/// The quantile of sorted latencies, in milliseconds.
fn quantile(sorted: &[u64], share: f64) -> f64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length"
    )]
    let position = (sorted.len() as f64 * share) as usize;
    sorted
        .get(position.min(sorted.len().saturating_sub(1)))
        .map_or(f64::NAN, |&nanoseconds| nanoseconds as f64 / 1e6)
}

fn print(what: &str, latencies: &mut [u64]) {
    latencies.sort_unstable();
    println!(
        "{what}: {} commits, p50 {:.3} ms, p95 {:.3} ms, p99 {:.3} ms, longest {:.1} ms",
        latencies.len(),
        quantile(latencies, 0.5),
        quantile(latencies, 0.95),
        quantile(latencies, 0.99),
        quantile(latencies, 1.0),
    );
}
