//! Random statements on a new Sheaf and a new MariaDB: [`sheaf_fuzz`] with servers of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sheaf_fuzz::command::FailOn;

use crate::error::BenchError;
use crate::peers::mysql_server::MySqlServer;
use crate::peers::{self, Budget, Server};

/// Buffer pool of each server, and half of Sheaf's memory: enough for the tables, and small enough to start soon.
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

/// Starts both servers and compares them. Where differences from MariaDB do not fail the run, a MariaDB that cannot be
/// started does not fail it either: Sheaf is compared with itself.
pub fn run(options: &Options) -> Result<ExitCode, BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let budget = Budget {
        memory_bytes: 2 * POOL_BYTES,
        pool_bytes: POOL_BYTES,
    };
    let sheaf = started(peers::sheaf::server(work.join("sheaf-fuzz"), budget))?;
    let mariadb = started(peers::mariadb::server(work.join("mariadb-fuzz"), budget));
    let judge = match (mariadb, options.statements.fail_on) {
        (Ok(judge), _) => Some(judge),
        (Err(error), FailOn::Differences) => return Err(error),
        (Err(error), FailOn::Faults) => {
            eprintln!("fuzz: comparison with MariaDB: SKIPPED ({error})");
            None
        }
    };
    let judge = judge.as_ref().map(address);
    let statements = &options.statements;
    Ok(sheaf_fuzz::command::run(
        statements,
        &address(&sheaf),
        judge.as_deref(),
    ))
}

fn started(server: Result<MySqlServer, BenchError>) -> Result<MySqlServer, BenchError> {
    let mut server = server?;
    server.start()?;
    Ok(server)
}

fn address(server: &MySqlServer) -> String {
    format!("127.0.0.1:{}", server.endpoint().port)
}
