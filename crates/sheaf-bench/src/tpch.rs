//! The 22 queries of TPC-H on each server, warm.
//!
//! Servers take turns query by query, so that a slow minute of the machine hits all of them. A query that a server does
//! not finish within the limit counts with the limit, and is run once. The report is written after every query.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use crate::data;
use crate::error::BenchError;
use crate::machine;
use crate::peers::{self, Server, TextRows};
use crate::plans::replace_section;
use crate::reference::same_answer;

/// Options of `sheaf-bench tpch`.
#[derive(Args)]
pub struct Options {
    /// TPC-H scale factor.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Buffer pool of each server; Sheaf's whole process may use twice that.
    #[arg(long, default_value = "4G", value_parser = sheaf_cli::size::parse_size)]
    memory: usize,
    /// Peers to compare with, of `mariadb` and `postgres`.
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// Only these queries.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Runs of each query after one that warms up; the fastest counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Seconds that a server gets for a query.
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Folder with the queries, one `.sql` file each.
    #[arg(long, default_value = "crates/sheaf-cli/tests/tpch/queries")]
    queries: PathBuf,
    /// Folder for data and servers; kept, so that a second run loads nothing.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results table; `-` prints it only.
    #[arg(long, default_value = "docs/plans.md")]
    out: String,
}

/// What a server did with a query.
#[derive(Clone, Copy)]
enum Ran {
    Within(Duration),
    /// Not done at the limit.
    Not,
}

/// A query's name, and what each server did with it.
type Line = (String, Vec<Ran>);

/// Runs the comparison and writes its table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options.work.clone();
    let work = work.unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let data = options.scale.to_string();
    let mut servers = peers::servers(&work, &data, &options.against, options.memory as u64)?;
    let mut versions = Vec::new();
    for server in &mut servers {
        server.start()?;
        versions.push(format!("{} {}", server.name(), server.version()?));
        peers::load_tpch_once(&work, options.scale, server.as_mut())?;
    }
    let names: Vec<&'static str> = servers.iter().map(|server| server.name()).collect();
    let mut lines: Vec<Line> = Vec::new();
    let mut text = String::new();
    for (name, sql) in data::query_files(&options.queries)? {
        if !options.only.is_empty() && !options.only.contains(&name) {
            continue;
        }
        let ran = measure(&mut servers, &name, &sql, options)?;
        lines.push((name, ran));
        text = report(options, &versions, &names, &lines);
        if options.out != "-" {
            replace_section(Path::new(&options.out), &text)?;
        }
    }
    for server in &mut servers {
        server.stop()?;
    }
    println!("{text}");
    Ok(())
}

/// Runs a query on all servers by turns.
fn measure(
    servers: &mut [Box<dyn Server>],
    name: &str,
    sql: &str,
    options: &Options,
) -> Result<Vec<Ran>, BenchError> {
    let limit = Duration::from_secs(options.limit);
    let mut ran: Vec<Ran> = servers.iter().map(|_| Ran::Not).collect();
    let mut answer: Option<TextRows> = None;
    for turn in 0..=options.runs.max(1) {
        for (server, ran) in servers.iter_mut().zip(&mut ran) {
            if turn > 0 && matches!(ran, Ran::Not) {
                continue;
            }
            let setting = server.limit_statements(limit);
            let start = Instant::now();
            let timed = match server.run(sql, &[&setting]) {
                Ok(timed) => timed,
                Err(BenchError::TimedOut { server }) => {
                    eprintln!("{name} {server}: more than {:?}", start.elapsed());
                    continue;
                }
                Err(error) => return Err(error),
            };
            *ran = match *ran {
                Ran::Within(known) if turn > 1 => Ran::Within(known.min(timed.elapsed)),
                _ => Ran::Within(timed.elapsed),
            };
            eprintln!(
                "{name} {}: {:.4} s",
                server.name(),
                timed.elapsed.as_secs_f64()
            );
            match &answer {
                Some(known) if turn == 0 && !same_answer(known, &timed.rows) => {
                    eprintln!("{name}: {} answers differently", server.name());
                }
                Some(_) => {}
                None => answer = Some(timed.rows),
            }
        }
    }
    Ok(ran)
}

/// Seconds of a query; the limit where it was not done.
fn seconds(ran: Ran, options: &Options) -> f64 {
    match ran {
        Ran::Within(time) => time.as_secs_f64(),
        Ran::Not => options.limit as f64,
    }
}

fn report(
    options: &Options,
    versions: &[String],
    names: &[&'static str],
    lines: &[Line],
) -> String {
    let mut text = String::new();
    let pool_mib = options.memory >> 20;
    let _ = writeln!(
        text,
        "## TPC-H, scale {}, {pool_mib} MiB pools, warm\n\n{}; {}.  \nMachine: {}.  ",
        options.scale,
        machine::today(),
        versions.join("; "),
        machine::describe()
    );
    let _ = writeln!(
        text,
        "Written by `sheaf-bench tpch --scale {} --memory {pool_mib}M --against {} --runs {} --limit {}`. Seconds; ratios are \
         the peer's time over Sheaf's, and a query that is not done within the limit counts with it.\n",
        options.scale,
        options.against.join(","),
        options.runs,
        options.limit
    );
    let mut header = String::from("| query |");
    for name in names {
        let _ = write!(header, " {name} |");
    }
    for peer in &names[1..] {
        let _ = write!(header, " {peer} / Sheaf |");
    }
    let columns = 2 * names.len() - 1;
    let _ = writeln!(text, "{header}\n|---|{}", "---|".repeat(columns));
    // Sums of the ratios' logarithms, for each peer.
    let mut sums = vec![0.0; names.len() - 1];
    let mut slower = Vec::new();
    for (name, ran) in lines {
        let _ = write!(text, "| {name} |");
        for one in ran {
            let _ = match one {
                Ran::Within(time) => write!(text, " {:.4} |", time.as_secs_f64()),
                Ran::Not => write!(text, " > {} |", options.limit),
            };
        }
        let times: Vec<f64> = ran.iter().map(|ran| seconds(*ran, options)).collect();
        let ratios: Vec<f64> = times[1..].iter().map(|peer| peer / times[0]).collect();
        for (ratio, sum) in ratios.iter().zip(&mut sums) {
            let _ = write!(text, " {ratio:.2} |");
            *sum += ratio.ln();
        }
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        if least < 1.0 {
            slower.push(format!("{name} ({least:.2})"));
        }
        text.push('\n');
    }
    if names.len() > 1 {
        let _ = write!(text, "| geometric mean |{}", " |".repeat(names.len()));
        for sum in &sums {
            let _ = write!(text, " {:.2} |", (sum / lines.len() as f64).exp());
        }
        let slower = match slower.is_empty() {
            true => "none".to_string(),
            false => slower.join(", "),
        };
        let _ = writeln!(text, "\n\nSlower than the better peer: {slower}.");
    }
    text
}
