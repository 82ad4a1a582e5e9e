//! Benchmarks of Sheaf against the systems its users run today.
//!
//! A comparison runs real servers from Debian's packages on the same data in the same run, taking turns, because
//! the machines that it runs on are noisy: what counts is the ratio within one run. Nothing here asserts; the
//! tables are written for people, and `docs/benchmarks.md` is written by the command itself.

mod answers;
mod chart;
mod concurrency;
mod data;
mod driver;
mod error;
mod fuzz;
mod generated_queries;
mod machine;
mod mixed;
mod oltp;
mod online;
mod peers;
mod planning;
mod plans;
mod ranges;
mod readiness;
mod reference;
mod statements;
mod tpcc;
mod tpch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tikv_jemallocator::Jemalloc;

use crate::error::BenchError;

/// As in the `sheaf` program.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

#[derive(Parser)]
#[command(name = "sheaf-bench", about = "Benchmarks of Sheaf against its peers")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The reference queries, cold and warm, under every switch setting, against MariaDB and PostgreSQL.
    Reference(reference::Options),
    /// sysbench's tests of small statements, against MariaDB and PostgreSQL.
    Oltp(oltp::Options),
    /// The five transactions of TPC-C by many clients, against MariaDB.
    Tpcc(tpcc::Options),
    /// Nine point reads and one update in a loop, by one to a thousand connections, against MariaDB.
    Mixed(mixed::Options),
    /// Changes of a table beside writers and readers, against MariaDB and MySQL.
    Online(online::Options),
    /// One month of lineitem by many clients, through the index and by scans, against MariaDB.
    Ranges(ranges::Options),
    /// Each query under every plan that it can be forced into, and under the free choice.
    Plans(plans::Options),
    /// Statements that object-relational mappers send, new and repeated, against MariaDB.
    Statements(statements::Options),
    /// What planning costs: a point query and the 22 queries of TPC-H.
    Planning(planning::Options),
    /// The 22 queries of TPC-H, warm, against MariaDB and PostgreSQL.
    Tpch(tpch::Options),
    /// What a reader pays for open transactions, writers and a held snapshot.
    Concurrency(concurrency::Options),
    /// Runs the 22 TPC-H queries on MariaDB and writes its answers to files (the tests compare with them).
    RecordAnswers {
        /// TPC-H scale factor of the data.
        #[arg(long, default_value_t = 0.01)]
        scale: f64,
        /// Folder with the queries, one `.sql` file each.
        #[arg(long, default_value = "crates/sheaf-cli/tests/tpch/queries")]
        queries: PathBuf,
        /// Folder that receives one `.tsv` file per query.
        #[arg(long, default_value = "crates/sheaf-cli/tests/tpch/answers")]
        out: PathBuf,
    },
    /// Random work on a simulated machine that crashes at any disk operation, and a look at what is left.
    Torture(sheaf_torture::command::Options),
    /// Random queries and changes, whose answers are compared with MariaDB's.
    Fuzz(fuzz::Options),
    /// How long recovery takes after a kill.
    Recovery(sheaf_torture::recovery_time::Options),
    /// What a checkpoint costs transactions that commit meanwhile.
    Checkpoints(sheaf_torture::checkpoint_latency::Options),
    /// Serves a Sheaf database: how the benchmarks start Sheaf as a process of its own.
    #[command(hide = true)]
    Serve(Box<sheaf_cli::serve::ServeArguments>),
}

fn main() -> ExitCode {
    let outcome = match sheaf_cli::configuration::parse::<Arguments>().command {
        Command::Reference(options) => reference::run(&options),
        Command::Oltp(options) => oltp::run(&options),
        Command::Tpcc(options) => tpcc::run(&options),
        Command::Mixed(options) => mixed::run(&options),
        Command::Online(options) => online::run(&options),
        Command::Ranges(options) => ranges::run(&options),
        Command::Concurrency(options) => concurrency::run(&options),
        Command::Plans(options) => plans::run(&options),
        Command::Statements(options) => statements::run(&options),
        Command::Planning(options) => planning::run(&options),
        Command::Tpch(options) => tpch::run(&options),
        Command::RecordAnswers {
            scale,
            queries,
            out,
        } => answers::record(scale, &queries, &out),
        Command::Torture(options) => return sheaf_torture::command::run(&options),
        Command::Fuzz(options) => match fuzz::run(&options) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Recovery(options) => return sheaf_torture::recovery_time::run(&options),
        Command::Checkpoints(options) => {
            return sheaf_torture::checkpoint_latency::run(&options);
        }
        Command::Serve(options) => sheaf_cli::serve::run(*options)
            .map(|_| ())
            .map_err(BenchError::from_display),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sheaf-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
