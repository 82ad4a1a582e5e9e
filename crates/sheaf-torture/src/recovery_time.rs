//! How long recovery takes: a process changes rows at random until the log is so long, is killed, and its data
//! directory is opened again.
//!
//! ```text
//!   parent   starts a child ................... kills it (SIGKILL)   opens the directory: this is timed
//!   child    builds a tree, makes a checkpoint, updates random rows, says "ready" and waits
//! ```

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use sheaf_storage::{BulkBuilder, Random, Storage, StorageError, StorageOptions, Tree};

use crate::measurement::{DataDirectory, row_of};

/// The log may become so long before a checkpoint is due that none is made while it grows.
const NO_CHECKPOINT: u64 = 1 << 40;

/// Rows that a transaction updates.
const ROWS_OF_TRANSACTION: usize = 20;

/// What the child says when the log is long enough.
const READY: &str = "ready";

/// What to measure.
#[derive(Args, Debug, Clone)]
pub struct Options {
    /// Log since the last checkpoint, in MiB on the device.
    #[arg(long, default_value_t = 1024)]
    pub log_mib: u64,
    /// Rows of the table.
    #[arg(long, default_value_t = 8_000_000)]
    pub rows: u64,
    /// Bytes of a row.
    #[arg(long, default_value_t = 200)]
    pub row_bytes: usize,
    /// Buffer pool, in MiB.
    #[arg(long, default_value_t = 1024)]
    pub pool_mib: usize,
    /// Folder for the data directory, which is removed afterwards.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Work as the child on this data directory.
    #[arg(long, hide = true)]
    pub child: Option<PathBuf>,
}

/// Measures, and prints what it found.
pub fn run(options: &Options) -> ExitCode {
    let outcome = match &options.child {
        Some(data) => grow_log(options, data),
        None => measure(options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("recovery: {error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn storage_options(options: &Options) -> StorageOptions {
    StorageOptions {
        pool_bytes: options.pool_mib << 20,
        log_limit_bytes: NO_CHECKPOINT,
        recovery_time_goal: Duration::from_secs(1 << 30),
        ..StorageOptions::default()
    }
}

/// A process that does not outlive its parent's interest in it.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // An error means that it is gone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(options: &Options) -> Outcome<()> {
    let parent = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let data = DataDirectory::create(&parent, "sheaf-recovery")?;
    println!(
        "{} rows of {} bytes, a pool of {} MiB, {} MiB of log",
        options.rows, options.row_bytes, options.pool_mib, options.log_mib
    );
    let child = start_child(options, data.path())?;
    drop(child);
    let started = Instant::now();
    let storage = Storage::open(data.path(), storage_options(options))?;
    let seconds = started.elapsed().as_secs_f64();
    let pool = storage.pool_counters();
    println!(
        "recovered in {seconds:.2} s; {} pages read in {} requests, {} written",
        pool.pages_read, pool.data_reads, pool.pages_written
    );
    let checked = the_tree(&storage)?.check()?;
    println!("{} rows are there, and the tree is sound", checked.entries);
    storage.close()?;
    Ok(())
}

/// Starts the child and waits until it is ready.
fn start_child(options: &Options, data: &Path) -> Outcome<Killed> {
    let child = Command::new(std::env::current_exe()?)
        .arg("recovery")
        .args(["--log-mib", &options.log_mib.to_string()])
        .args(["--rows", &options.rows.to_string()])
        .args(["--row-bytes", &options.row_bytes.to_string()])
        .args(["--pool-mib", &options.pool_mib.to_string()])
        .arg("--child")
        .arg(data)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut child = Killed(child);
    let output = child.0.stdout.take().ok_or("the child has no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        if line == READY {
            return Ok(child);
        }
        println!("{line}");
    }
    Err("the child has ended before it was ready".into())
}

fn grow_log(options: &Options, data: &Path) -> Outcome<()> {
    let storage = Storage::open(data, storage_options(options))?;
    let started = Instant::now();
    let mut builder = BulkBuilder::new(&storage)?;
    for row in 0..options.rows {
        builder.append(&row.to_be_bytes(), &row_of(row, 0, options.row_bytes))?;
    }
    let id = builder.finish()?;
    storage.checkpoint()?;
    println!(
        "built {} MiB in {:.1} s",
        (storage.used_pages() * sheaf_storage::PAGE_SIZE as u64) >> 20,
        started.elapsed().as_secs_f64()
    );
    let tree = storage.tree(id)?;
    let before = storage.log_counters();
    let started = Instant::now();
    let mut random = Random::new(1);
    let mut updates = 0;
    while storage.log_counters().written_bytes - before.written_bytes < options.log_mib << 20 {
        updates += update_some(&storage, &tree, &mut random, options)?;
    }
    let after = storage.log_counters();
    println!(
        "{updates} updates in {:.1} s: {} MiB of log, {} MiB on the device",
        started.elapsed().as_secs_f64(),
        (after.appended_bytes - before.appended_bytes) >> 20,
        (after.written_bytes - before.written_bytes) >> 20
    );
    println!("{READY}");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// One transaction.
fn update_some(
    storage: &Arc<Storage>,
    tree: &Arc<Tree>,
    random: &mut Random,
    options: &Options,
) -> Result<u64, StorageError> {
    let mut transaction = storage.begin_transaction();
    for _ in 0..ROWS_OF_TRANSACTION {
        let row = random.below(options.rows);
        let value = row_of(row, random.next(), options.row_bytes);
        tree.update(&mut transaction, &row.to_be_bytes(), &value)?;
    }
    transaction.commit()?;
    Ok(ROWS_OF_TRANSACTION as u64)
}

fn the_tree(storage: &Arc<Storage>) -> Result<Arc<Tree>, StorageError> {
    let catalog = storage.catalog_tree().id();
    let ids = storage.tree_ids()?;
    match ids.into_iter().find(|&id| id != catalog) {
        Some(id) => storage.tree(id),
        None => Err(StorageError::NoSuchTree { tree: catalog }),
    }
}
