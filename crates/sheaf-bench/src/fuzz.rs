//! Random statements on a new Sheaf and a new MariaDB: [`sheaf_fuzz`] with servers of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::error::BenchError;
use crate::peers;

/// Buffer pool of each server: large enough for the tables, small enough to start in a moment.
const POOL_BYTES: u64 = 128 * 1024 * 1024;

/// Options of `sheaf-bench fuzz`.
#[derive(Args)]
pub struct Options {
    /// Folder for the servers' data; by default as of the other benchmarks.
    #[arg(long)]
    work: Option<PathBuf>,
    #[command(flatten)]
    statements: sheaf_fuzz::command::Options,
}

/// Starts both servers and compares them.
pub fn run(options: &Options) -> Result<ExitCode, BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let mut servers = peers::servers(&work, "fuzz", &["mariadb".to_owned()], POOL_BYTES)?;
    let mut addresses = Vec::new();
    for server in &mut servers {
        server.start()?;
        addresses.push(format!("127.0.0.1:{}", server.endpoint().port));
    }
    match &addresses[..] {
        [sheaf, judge] => Ok(sheaf_fuzz::command::run(&options.statements, sheaf, judge)),
        _ => Err(BenchError::Other("a server is missing".to_owned())),
    }
}
