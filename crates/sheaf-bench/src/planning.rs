//! What planning costs: processor time from a statement's text to its plan, of the 22 queries of TPC-H and of a point
//! query.
//!
//! The statements run in this process, on one thread, whose own processor time is read around each; so the numbers mean
//! something on a machine that others use, too. A query of TPC-H is planned by EXPLAIN, which keeps no plan. The point
//! query runs, by a direct plan, and has another column alias each time, so that no session knows it: the time has its
//! one row in it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use sheaf::{Connection, Database};

use crate::data::{query_files, tbl_folder};
use crate::error::BenchError;
use crate::machine;
use crate::reference::write_section;

const NAME: &str = "sheaf";
const DATABASE: &str = "tpch";
/// A measurement of the point query is of so many statements: one is too short for the clock.
const POINT_QUERIES: u32 = 200;

/// Options of `sheaf-bench planning`.
#[derive(Args)]
pub struct Options {
    /// TPC-H scale factor.
    #[arg(long, default_value_t = 0.1)]
    scale: f64,
    /// Queries of TPC-H, by the names of their files; all if none is named. `point` is the point query.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// How often each query is planned.
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// A value of `optimizer_switch` to plan with, such as `hash_join=off`.
    #[arg(long)]
    switch: Option<String>,
    /// Folder with the queries, one `.sql` file each.
    #[arg(long, default_value = "crates/sheaf-cli/tests/tpch/queries")]
    queries: PathBuf,
    /// Folder for data and database; kept, so that a second run loads nothing.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results table; `-` prints it only.
    #[arg(long, default_value = "docs/benchmarks.md")]
    out: PathBuf,
}

/// Times of one statement, in order.
struct Times {
    name: String,
    times: Vec<Duration>,
}

impl Times {
    fn quantile(&self, share: f64) -> f64 {
        let at = (self.times.len() as f64 * share) as usize;
        let time = self.times.get(at.min(self.times.len().saturating_sub(1)));
        time.map_or(0.0, |time| time.as_secs_f64() * 1e6)
    }
}

/// Runs the measurement and writes its table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let directory = work.join(format!("planning-{}", options.scale));
    let is_loaded = directory.join("loaded").exists();
    let database = Database::open(
        directory.join("data"),
        sheaf::Options::default()
            .with_memory_bytes(1 << 30)
            .with_pool_bytes(512 << 20),
    )
    .map_err(failed)?;
    let mut session = database.connect().map_err(failed)?;
    if !is_loaded {
        load(&mut session, options, &work)?;
        std::fs::write(directory.join("loaded"), "")
            .map_err(|error| BenchError::file(&directory, error))?;
    }
    session
        .execute(&format!("use {DATABASE}"))
        .map_err(failed)?;
    if let Some(switch) = &options.switch {
        let set = format!("set optimizer_switch = '{switch}'");
        session.execute(&set).map_err(failed)?;
    }

    let is_asked =
        |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let mut measured = Vec::new();
    if is_asked("point") {
        measured.push(measure_point_query(&mut session, options.rounds)?);
    }
    for (name, sql) in query_files(&options.queries)? {
        if is_asked(&name) {
            let times = measure(options.rounds, || explain(&mut session, &sql))?;
            measured.push(Times { name, times });
        }
    }
    drop(session);
    database.close().map_err(failed)?;
    let text = report(options, &measured);
    println!("{text}");
    if options.out.as_os_str() != "-" {
        write_section(&options.out, &text)?;
    }
    Ok(())
}

fn failed(error: sheaf::Error) -> BenchError {
    BenchError::server(NAME, error)
}

/// Creates the tables, fills and analyzes them.
fn load(
    session: &mut Connection,
    options: &Options,
    work: &std::path::Path,
) -> Result<(), BenchError> {
    let folder = tbl_folder(work, options.scale)?;
    let mut run = |statement: &str| session.execute(statement).map(drop).map_err(failed);
    run(&format!("drop database if exists {DATABASE}"))?;
    run(&format!("create database {DATABASE}"))?;
    run(&format!("use {DATABASE}"))?;
    for statement in sheaf_cli::tpch::schema_statements() {
        run(statement)?;
    }
    for table in sheaf_cli::tpch::TABLES {
        eprintln!("{NAME}: filling {table}");
        let file = folder.join(format!("{table}.tbl"));
        run(&format!(
            "load data local infile '{}' into table {table} fields terminated by '|'",
            file.display()
        ))?;
    }
    run(&format!(
        "analyze table {}",
        sheaf_cli::tpch::TABLES.join(", ")
    ))
}

fn explain(session: &mut Connection, sql: &str) -> Result<(), BenchError> {
    session
        .execute(&format!("explain {sql}"))
        .map(drop)
        .map_err(failed)
}

/// Processor times of `statement`, in order; those of the first rounds, which fill caches, are left out.
fn measure(
    rounds: usize,
    mut statement: impl FnMut() -> Result<(), BenchError>,
) -> Result<Vec<Duration>, BenchError> {
    for _ in 0..rounds / 10 {
        statement()?;
    }
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let before = machine::processor_time_of_this_thread();
        statement()?;
        times.push(machine::processor_time_of_this_thread() - before);
    }
    times.sort();
    Ok(times)
}

fn measure_point_query(session: &mut Connection, rounds: usize) -> Result<Times, BenchError> {
    let mut number = 0;
    let times = measure(rounds, || {
        for _ in 0..POINT_QUERIES {
            number += 1;
            session
                .execute(&format!(
                    "select c_name, c_acctbal as a{number} from customer where c_custkey = {}",
                    1 + number % 1000
                ))
                .map_err(failed)?;
        }
        Ok(())
    })?;
    let times = times.iter().map(|time| *time / POINT_QUERIES).collect();
    let name = "point query, run".to_string();
    Ok(Times { name, times })
}

fn report(options: &Options, measured: &[Times]) -> String {
    let mut text = format!(
        "## Planning\n\n{}, {}. Processor time from the text to the plan, in microseconds, of {} times each; TPC-H at scale \
         {}, analyzed, in memory.\n\n| statement | best | median |\n|---|---:|---:|\n",
        machine::today(),
        machine::describe(),
        options.rounds,
        options.scale,
    );
    for times in measured {
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.1} |",
            times.name,
            times.quantile(0.0),
            times.quantile(0.5)
        );
    }
    text
}
