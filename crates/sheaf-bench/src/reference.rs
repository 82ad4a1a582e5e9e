//! The reference comparison: every case of [`sheaf_cli::tpch::REFERENCE_CASES`], cold and warm, on each server in
//! turn.
//!
//! For a cold figure the server is restarted, so that its cache is empty. Peers that read through the operating
//! system's cache have it emptied as well. For a warm one the statement runs again in the same server. Servers take
//! turns case by case and variant by variant, so that a slow minute of the machine hits all of them. Each server's best
//! over its variants is what the ratios compare; the tables show every variant.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use sheaf_cli::tpch::{REFERENCE_CASES, ReferenceCase, Variant};

use crate::data;
use crate::error::BenchError;
use crate::machine;
use crate::peers::{self, Server, TextRows};

/// Options of `sheaf-bench reference`.
#[derive(Args)]
pub struct Options {
    /// TPC-H scale factor.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Buffer pool of each server; Sheaf's whole process may use twice that.
    #[arg(long, default_value = "256M", value_parser = sheaf_cli::size::parse_size)]
    memory: usize,
    /// Peers to compare with, of `mariadb` and `postgres`.
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// Only these cases.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Warm runs per variant; the fastest counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Cold runs per variant; the fastest counts.
    #[arg(long, default_value_t = 1)]
    cold_runs: usize,
    /// Folder for data and servers; kept, so that a second run loads nothing.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results table; `-` prints it only.
    #[arg(long, default_value = "docs/benchmarks.md")]
    out: String,
}

/// The measured times of one variant on one server.
struct Measured {
    variant: Variant,
    cold: Duration,
    warm: Duration,
    counters: Vec<(String, u64)>,
}

/// Load time and memory of one server.
struct Loaded {
    elapsed: Option<Duration>,
    peak_bytes: u64,
}

/// Runs the comparison and writes its table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    // Generated before the time of the first load is taken.
    data::tbl_folder(&work, options.scale)?;
    let mut servers = peers::servers(
        &work,
        &options.scale.to_string(),
        &options.against,
        options.memory as u64,
    )?;
    let mut loads = BTreeMap::new();
    let mut versions = Vec::new();
    for server in &mut servers {
        server.start()?;
        versions.push(format!("{} {}", server.name(), server.version()?));
        let start = Instant::now();
        let elapsed =
            peers::load_tpch_once(&work, options.scale, server.as_mut())?.then(|| start.elapsed());
        loads.insert(
            server.name(),
            Loaded {
                elapsed,
                peak_bytes: server.peak_memory_bytes(),
            },
        );
    }

    let mut results: Vec<(&ReferenceCase, BTreeMap<&'static str, Vec<Measured>>)> = Vec::new();
    for case in &REFERENCE_CASES {
        if !options.only.is_empty() && !options.only.iter().any(|name| name == case.name) {
            continue;
        }
        let mut by_server: BTreeMap<&'static str, Vec<Measured>> = BTreeMap::new();
        let mut answer: Option<(&'static str, TextRows)> = None;
        for &variant in case.variants {
            for server in &mut servers {
                if variant != Variant::Default && !server.has_switches() {
                    continue;
                }
                let (measured, rows) = measure(server.as_mut(), case, variant, options)?;
                eprintln!(
                    "{:8} {:12} {:10} cold {:8.3} s  warm {:8.4} s",
                    case.name,
                    variant.name(),
                    server.name(),
                    measured.cold.as_secs_f64(),
                    measured.warm.as_secs_f64()
                );
                match &answer {
                    Some((first, expected)) if !same_answer(expected, &rows) => eprintln!(
                        "{}: {} and {} answer differently: {:?} against {:?}",
                        case.name,
                        first,
                        server.name(),
                        expected.first(),
                        rows.first()
                    ),
                    Some(_) => (),
                    None => answer = Some((server.name(), rows)),
                }
                by_server.entry(server.name()).or_default().push(measured);
            }
        }
        results.push((case, by_server));
    }
    for server in &mut servers {
        let peak = server.peak_memory_bytes();
        if let Some(loaded) = loads.get_mut(server.name()) {
            loaded.peak_bytes = loaded.peak_bytes.max(peak);
        }
        server.stop()?;
    }

    let names: Vec<&'static str> = servers.iter().map(|server| server.name()).collect();
    let report = report(options, &versions, &names, &loads, &results);
    println!("{report}");
    if options.out != "-" {
        write_section(Path::new(&options.out), &report)?;
    }
    Ok(())
}

/// Restarts the server for each cold run, then repeats warm.
fn measure(
    server: &mut dyn Server,
    case: &ReferenceCase,
    variant: Variant,
    options: &Options,
) -> Result<(Measured, TextRows), BenchError> {
    let mut cold = Duration::MAX;
    for _ in 0..options.cold_runs.max(1) {
        server.stop()?;
        server.start()?;
        cold = cold.min(server.run(case.sql, variant.settings())?.elapsed);
    }
    let mut warm = Duration::MAX;
    let mut rows = TextRows::new();
    for _ in 0..options.runs.max(1) {
        let timed = server.run(case.sql, variant.settings())?;
        warm = warm.min(timed.elapsed);
        rows = timed.rows;
    }
    Ok((
        Measured {
            variant,
            cold,
            warm,
            counters: server.counters().to_vec(),
        },
        rows,
    ))
}

/// Rows are the same answer when each field is the same text, or the same number written with another scale
/// (PostgreSQL does not pad CHAR columns away and keeps other scales in quotients).
pub fn same_answer(one: &TextRows, other: &TextRows) -> bool {
    let same_field = |a: &Option<String>, b: &Option<String>| match (a, b) {
        (Some(a), Some(b)) if a.trim_end() != b.trim_end() => {
            matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if (a - b).abs() <= 1e-9 * a.abs())
        }
        (Some(_), Some(_)) | (None, None) => true,
        _ => false,
    };
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_field(a, b)))
}

fn best(measured: &[Measured], time: impl Fn(&Measured) -> Duration) -> Option<f64> {
    measured
        .iter()
        .map(time)
        .min()
        .map(|best| best.as_secs_f64())
}

fn report(
    options: &Options,
    versions: &[String],
    names: &[&'static str],
    loads: &BTreeMap<&'static str, Loaded>,
    results: &[(&ReferenceCase, BTreeMap<&'static str, Vec<Measured>>)],
) -> String {
    let mut text = String::new();
    let pool_mib = options.memory >> 20;
    let _ = writeln!(
        text,
        "## Reference queries, scale {}, {pool_mib} MiB pools\n",
        options.scale
    );
    let _ = writeln!(text, "{}; {}.  ", machine::today(), versions.join("; "));
    let _ = writeln!(text, "Machine: {}.  ", machine::describe());
    let _ = writeln!(
        text,
        "Written by `sheaf-bench reference --scale {} --memory {pool_mib}M --against {} --runs {}`. Times are seconds, cold / \
         warm, the best of each server's variants; ratios are Sheaf's time over the peer's.\n",
        options.scale,
        options.against.join(","),
        options.runs
    );
    let peers = &names[1..];
    let mut header = String::from("| case |");
    for name in names {
        let _ = write!(header, " {name} |");
    }
    for peer in peers {
        let _ = write!(header, " ratio to {peer} cold | warm |");
    }
    let _ = writeln!(
        text,
        "{header}\n|---|{}",
        "---|".repeat(names.len() + 2 * peers.len())
    );
    for (case, by_server) in results {
        let mut line = format!("| {} |", case.name);
        for name in names {
            match by_server.get(name) {
                Some(measured) => {
                    let cold = best(measured, |m| m.cold).unwrap_or(0.0);
                    let warm = best(measured, |m| m.warm).unwrap_or(0.0);
                    let _ = write!(line, " {cold:.3} / {warm:.4} |");
                }
                None => line.push_str(" |"),
            }
        }
        let ours = by_server.get(names[0]);
        for peer in peers {
            for time in [|m: &Measured| m.cold, |m: &Measured| m.warm] {
                let ratio = ours
                    .and_then(|measured| best(measured, time))
                    .zip(
                        by_server
                            .get(peer)
                            .and_then(|measured| best(measured, time)),
                    )
                    .map(|(ours, theirs)| ours / theirs);
                let _ = match ratio {
                    Some(ratio) => write!(line, " {ratio:.2} |"),
                    None => write!(line, " |"),
                };
            }
        }
        let _ = writeln!(text, "{line}");
    }

    let _ = writeln!(text, "\n| | load, s | peak memory, MiB |\n|---|---|---|");
    for name in names {
        if let Some(loaded) = loads.get(name) {
            let elapsed = loaded.elapsed.map_or("kept".to_owned(), |time| {
                format!("{:.1}", time.as_secs_f64())
            });
            let _ = writeln!(text, "| {name} | {elapsed} | {} |", loaded.peak_bytes >> 20);
        }
    }

    let _ = writeln!(
        text,
        "\n| case | variant | server | cold | warm | counters |\n|---|---|---|---|---|---|"
    );
    for (case, by_server) in results {
        for (name, measured) in by_server {
            for one in measured {
                let counters: Vec<String> = one
                    .counters
                    .iter()
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect();
                let _ = writeln!(
                    text,
                    "| {} | {} | {name} | {:.3} | {:.4} | {} |",
                    case.name,
                    one.variant.name(),
                    one.cold.as_secs_f64(),
                    one.warm.as_secs_f64(),
                    counters.join(", ")
                );
            }
        }
    }
    text
}

/// Replaces the section of the same heading in `path`, or appends it.
pub fn write_section(path: &Path, section: &str) -> Result<(), BenchError> {
    let heading = section.lines().next().unwrap_or_default();
    let existing = fs::read_to_string(path).unwrap_or_else(|_| "# Benchmarks\n".to_owned());
    let mut kept = String::new();
    let mut skipping = false;
    for line in existing.lines() {
        if line.starts_with("## ") {
            skipping = line == heading;
        }
        if !skipping {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| BenchError::file(folder, error))?;
    }
    let text = format!("{}\n\n{section}", kept.trim_end());
    fs::write(path, text).map_err(|error| BenchError::file(path, error))
}
