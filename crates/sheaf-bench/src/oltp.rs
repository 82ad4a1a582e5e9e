//! Many small statements: sysbench from Debian's package drives Sheaf, MariaDB and PostgreSQL in turn.
//!
//! All servers keep the same promise: a commit is on the disk before it is acknowledged. Each test runs on each server
//! with each number of threads, taking turns, several times if `--rounds` says so: then the run with the median of the
//! transactions per second counts. Besides transactions per second the table shows the server's processor
//! time per transaction: on a small machine the client takes half of it, and that figure is the honest one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use sheaf_cli::size::format_size;

use crate::error::BenchError;
use crate::machine;
use crate::peers::{self, Endpoint, Server};
use crate::reference::write_section;

/// The database that sysbench works in.
const DATABASE: &str = "sbtest";

/// Options of `sheaf-bench oltp`.
#[derive(Args)]
pub struct Options {
    /// Peers to compare with, of `mariadb` and `postgres`.
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// sysbench's tests.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "oltp_point_select,oltp_read_only,oltp_read_write,oltp_write_only,oltp_update_index,\
                         oltp_update_non_index,oltp_insert,select_random_points,select_random_ranges"
    )]
    tests: Vec<String>,
    /// Numbers of client threads.
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    threads: Vec<usize>,
    /// Seconds that each test runs on each server.
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// How often each test runs on each server; the median counts.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    #[arg(long, default_value_t = 4)]
    tables: u32,
    /// Rows of each table.
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Buffer pool of each server; Sheaf's whole process may use twice that.
    #[arg(long, default_value = "2G", value_parser = sheaf_cli::size::parse_size)]
    memory: usize,
    /// Folder for data and servers; kept.
    #[arg(long)]
    work: Option<PathBuf>,
    /// Work on the tables that an earlier run with the same folder has left.
    #[arg(long)]
    prepared: bool,
    /// File that receives the results table; `-` prints it only.
    #[arg(long, default_value = "docs/benchmarks.md")]
    out: String,
}

/// What one run of one test gave.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    transactions_per_second: f64,
    p95_ms: f64,
    /// Processor time of the server for a transaction, in microseconds.
    server_us: f64,
    /// Bytes of log of a transaction, before compression.
    log_bytes: f64,
}

/// Runs the comparison and writes its table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let mut servers = peers::servers(&work, "oltp", &options.against, options.memory as u64)?;
    let mut versions = Vec::new();
    for server in &mut servers {
        server.start()?;
        versions.push(format!("{} {}", server.name(), server.version()?));
        if !options.prepared {
            eprintln!("preparing {}", server.name());
            let endpoint = server.endpoint();
            server.recreate_database(DATABASE)?;
            sysbench(options, &endpoint, "oltp_read_write", 1, "prepare")?;
        }
    }
    let mut results: BTreeMap<(usize, usize), Vec<Measured>> = BTreeMap::new();
    for (test_number, test) in options.tests.iter().enumerate() {
        for &threads in &options.threads {
            let mut runs = vec![Vec::new(); servers.len()];
            for _ in 0..options.rounds {
                for (server, runs) in servers.iter_mut().zip(&mut runs) {
                    runs.push(measure(options, server, test, threads)?);
                }
            }
            let medians = runs.into_iter().map(median).collect();
            results.insert((test_number, threads), medians);
        }
    }
    let names: Vec<_> = servers.iter().map(|server| server.name()).collect();
    for server in &mut servers {
        server.stop()?;
    }
    let text = report(options, &versions, &names, &results);
    println!("{text}");
    if options.out != "-" {
        write_section(options.out.as_ref(), &text)?;
    }
    Ok(())
}

/// Runs one test on one server.
fn measure(
    options: &Options,
    server: &mut Box<dyn Server>,
    test: &str,
    threads: usize,
) -> Result<Measured, BenchError> {
    let endpoint = server.endpoint();
    let log_before = server.log_position()?;
    let before = machine::processor_time_of_family(endpoint.process);
    let output = sysbench(options, &endpoint, test, threads, "run")?;
    let used = machine::processor_time_of_family(endpoint.process) - before;
    let logged = server.log_position()?.saturating_sub(log_before);
    let measured = parse(&output, used, logged)
        .ok_or_else(|| BenchError::server(server.name(), format!("sysbench said: {output}")))?;
    eprintln!(
        "{test:24} {threads:3} threads {:10} {:9.0} /s  p95 {:7.2} ms  {:7.1} us of the server's processors  {:6.0} bytes of log",
        server.name(),
        measured.transactions_per_second,
        measured.p95_ms,
        measured.server_us,
        measured.log_bytes
    );
    Ok(measured)
}

/// The run with the median of the transactions per second.
fn median(mut runs: Vec<Measured>) -> Measured {
    runs.sort_by(|a, b| {
        a.transactions_per_second
            .total_cmp(&b.transactions_per_second)
    });
    runs.get(runs.len() / 2).copied().unwrap_or_default()
}

/// Runs sysbench and returns what it prints.
fn sysbench(
    options: &Options,
    endpoint: &Endpoint,
    test: &str,
    threads: usize,
    command: &str,
) -> Result<String, BenchError> {
    let driver = endpoint.sysbench_driver;
    let output = Command::new("sysbench")
        .arg(test)
        .arg(format!("--db-driver={driver}"))
        .arg(format!("--{driver}-host=127.0.0.1"))
        .arg(format!("--{driver}-port={}", endpoint.port))
        .arg(format!("--{driver}-user=root"))
        .arg(format!("--{driver}-db={DATABASE}"))
        .arg(format!("--tables={}", options.tables))
        .arg(format!("--table-size={}", options.rows))
        .arg(format!("--threads={threads}"))
        .arg(format!("--time={}", options.seconds))
        .args(["--rand-type=uniform", command])
        .output()
        .map_err(|error| {
            BenchError::Other(format!("sysbench: {error}; apt-get install sysbench"))
        })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(BenchError::Other(format!(
            "sysbench {test} {command} on port {}: {text}{errors}",
            endpoint.port
        )));
    }
    Ok(text)
}

/// Reads sysbench's report.
fn parse(output: &str, server_time: Duration, logged: u64) -> Option<Measured> {
    let value = |name: &str| {
        let line = output.lines().find(|line| line.trim().starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let first_number = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
    // "transactions:    12345  (617.25 per sec.)"
    let transactions = value("transactions:")?;
    let count = first_number(&transactions)?;
    let per_second = first_number(transactions.split_once('(')?.1)?;
    Some(Measured {
        transactions_per_second: per_second,
        p95_ms: first_number(&value("95th percentile:")?)?,
        server_us: server_time.as_secs_f64() * 1e6 / count.max(1.0),
        log_bytes: logged as f64 / count.max(1.0),
    })
}

/// The command that makes the same run again.
fn command_line(options: &Options) -> String {
    let threads: Vec<String> = options.threads.iter().map(usize::to_string).collect();
    format!(
        "sheaf-bench oltp --against {} --seconds {} --rounds {} --tables {} --rows {} --memory {} --tests {} --threads {}",
        options.against.join(","),
        options.seconds,
        options.rounds,
        options.tables,
        options.rows,
        options.memory,
        options.tests.join(","),
        threads.join(",")
    )
}

fn report(
    options: &Options,
    versions: &[String],
    names: &[&'static str],
    results: &BTreeMap<(usize, usize), Vec<Measured>>,
) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "## Small statements: sysbench, {} tables of {} rows, pools of {}\n",
        options.tables,
        options.rows,
        format_size(options.memory)
    );
    let _ = writeln!(text, "{}; {}.  ", machine::today(), versions.join("; "));
    let _ = writeln!(text, "Machine: {}.  ", machine::describe());
    let _ = writeln!(
        text,
        "Written by `{}`. Transactions per second / 95th percentile in ms / microseconds of the server's processors for a \
         transaction / bytes that it logs; the ratio is Sheaf's transactions per second over the better peer's. Every commit \
         is on the disk before it is acknowledged.\n",
        command_line(options)
    );
    let _ = writeln!(
        text,
        "| test | threads | {} | ratio |\n|---|---|{}---|",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for ((test, threads), measured) in results {
        let cells = measured.iter().map(|one| {
            format!(
                "{:.0} / {:.2} / {:.0} / {:.0}",
                one.transactions_per_second, one.p95_ms, one.server_us, one.log_bytes
            )
        });
        let best_peer = measured[1..]
            .iter()
            .map(|one| one.transactions_per_second)
            .fold(0.0, f64::max);
        let ratio = match best_peer {
            0.0 => String::new(),
            peer => format!("{:.2}", measured[0].transactions_per_second / peer),
        };
        let _ = writeln!(
            text,
            "| {} | {threads} | {} | {ratio} |",
            options.tests[*test],
            cells.collect::<Vec<_>>().join(" | ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn sysbench_reports_are_read() {
        let output = "SQL statistics:\n    queries performed:\n        total: 20\n    transactions:                        \
                      1000   (99.50 per sec.)\nLatency (ms):\n         95th percentile:                        1.25\n";
        let measured =
            super::parse(output, Duration::from_millis(50), 64_000).expect("it is complete");
        assert_eq!(measured.transactions_per_second, 99.5);
        assert_eq!(measured.p95_ms, 1.25);
        assert!((measured.server_us - 50.0).abs() < 1e-9);
        assert_eq!(measured.log_bytes, 64.0);
    }
}
