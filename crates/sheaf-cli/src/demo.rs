//! `sheaf demo`: TPC-H on this machine in a few minutes, with each optimization on and off.
//!
//! The demo is a client of the engine like any other. It creates the tables, and loads them from the generator through
//! LOAD DATA LOCAL INFILE. It runs the reference queries twice, first with an empty buffer pool and then with a warm
//! one. What it prints comes from the session's status counters and from EXPLAIN.

use std::error::Error;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use sheaf_server::ServerOptions;
use sheaf_sql::{Engine, EngineOptions, Session, SessionInfo, SqlError};

use sheaf_cli::serve::{Run, parse_console_address};
use sheaf_cli::size::{format_size, parse_size};
use sheaf_cli::tpch::{
    REFERENCE_CASES, ReferenceCase, TABLES, TableReader, Variant, expected_rows, schema_statements,
};

use crate::collected::{Collected, one_number, query};
use crate::lessons;

/// Arguments of `sheaf demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// TPC-H scale factor: 0.1 is 600,000 lines of orders, about 200 MB with all indexes.
    #[arg(long, default_value_t = 0.1)]
    scale: f64,
    /// Memory of the whole process, such as 64M; small, so that the tables do not fit.
    #[arg(long, default_value = "64M", value_parser = parse_size)]
    memory: usize,
    /// Where to keep the database; a temporary folder that is removed at the end unless given.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Serve the database to MySQL clients afterwards, on 127.0.0.1:3306.
    #[arg(long)]
    serve: bool,
    /// Serve it afterwards, also to the console at this address of this machine, such as 127.0.0.1:8080, with lessons:
    /// statements by a slow plan and by a fast one, side by side. The queries of the demo are not run before.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_console_address)]
    http: Option<SocketAddr>,
}

/// The database that the demo fills.
const DATABASE: &str = "tpch";

/// Where `--serve` listens: the port that MySQL clients try by default.
const SERVE_PORT: u16 = 3306;

/// What running statements get to finish when the server is told to end.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Runs the demo.
pub fn run(arguments: &DemoArguments) -> Result<ExitCode, Box<dyn Error>> {
    let (folder, temporary) = match &arguments.data_dir {
        Some(folder) => (folder.clone(), false),
        None => (
            std::env::temp_dir().join(format!("sheaf-demo-{}", std::process::id())),
            true,
        ),
    };
    let outcome = run_in(&folder, arguments);
    if temporary {
        // A folder that cannot be removed is only a leftover; the demo's outcome matters more.
        let _ = std::fs::remove_dir_all(&folder);
    }
    outcome.map(|()| ExitCode::SUCCESS)
}

fn run_in(folder: &Path, arguments: &DemoArguments) -> Result<(), Box<dyn Error>> {
    let engine = Engine::open(
        folder,
        EngineOptions {
            memory_bytes: arguments.memory,
            ..EngineOptions::default()
        },
    )?;
    let shown = demonstrate(&engine, folder, arguments);
    if shown.is_ok() && (arguments.serve || arguments.http.is_some()) {
        println!("\nConnect with:  mariadb -h 127.0.0.1 -u root {DATABASE}");
        // They end before the engine does, which `until_signal` closes.
        let transactions = match arguments.http {
            Some(address) => {
                println!("Lessons:       http://{address}/#learn (account root, no password)");
                Some(lessons::start(&engine)?)
            }
            None => None,
        };
        let options = ServerOptions {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], SERVE_PORT))),
            ..ServerOptions::default()
        };
        let run = Run {
            drain_time: DRAIN_TIME,
            console: arguments.http,
            ..Run::default()
        };
        let served = run.until_signal(&engine, options);
        drop(transactions);
        return served;
    }
    engine.close()?;
    Ok(shown?)
}

fn demonstrate(
    engine: &Arc<Engine>,
    folder: &Path,
    arguments: &DemoArguments,
) -> Result<(), SqlError> {
    println!(
        "TPC-H at scale {} in {}, {} of memory, {} of it buffer pool.\n",
        arguments.scale,
        folder.display(),
        format_size(arguments.memory),
        format_size(engine.storage().pool_bytes()),
    );
    let mut session = engine.session(SessionInfo::default())?;
    if is_loaded(&mut session)? {
        println!("The tables are here already: nothing to load.");
    } else {
        load(&mut session, arguments.scale)?;
    }
    if arguments.http.is_some() {
        return Ok(());
    }
    for case in &REFERENCE_CASES {
        show_case(engine, case)?;
    }
    println!(
        "\ncold: empty buffer pool. entries: index entries and rows stepped over. rows: rows fetched.\n\
         pages: read from disk while cold, in so many requests."
    );
    Ok(())
}

fn is_loaded(session: &mut Session) -> Result<bool, SqlError> {
    let count =
        format!("select count(*) from information_schema.tables where table_schema = '{DATABASE}'");
    Ok(one_number(session, &count)? == TABLES.len() as u64)
}

fn load(session: &mut Session, scale: f64) -> Result<(), SqlError> {
    query(
        session,
        &format!("create database if not exists {DATABASE}"),
    )?;
    session.set_database(DATABASE)?;
    let start = Instant::now();
    for statement in schema_statements() {
        query(session, statement)?;
    }
    let style =
        ProgressStyle::with_template("loading {msg:10} {bar:40} {human_pos} rows, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
    for table in TABLES {
        let bar = ProgressBar::new(expected_rows(table, scale)).with_style(style.clone());
        bar.set_message(table);
        bar.enable_steady_tick(Duration::from_millis(200));
        let progress = bar.clone();
        let reader = TableReader::new(table, scale)
            .map(|reader| reader.with_progress(move |rows| progress.set_position(rows)));
        let mut sink = Collected {
            file: reader,
            ..Collected::default()
        };
        session.execute(
            &format!(
                "load data local infile '{table}.tbl' into table {table} fields terminated by '|'"
            ),
            &mut sink,
        )?;
        bar.finish_and_clear();
    }
    query(session, &format!("analyze table {}", TABLES.join(", ")))?;
    println!(
        "Loaded with all indexes in {:.1} s.",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// What one run of a query cost.
struct Cost {
    elapsed: Duration,
    entries: u64,
    rows: u64,
    pages_read: u64,
    requests: u64,
}

fn show_case(engine: &Arc<Engine>, case: &ReferenceCase) -> Result<(), SqlError> {
    println!("\n{}: {}", case.name, case.title);
    println!(
        "  {:12} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9}",
        "", "cold", "warm", "entries", "rows", "pages", "requests"
    );
    let mut plans: Vec<(Variant, String)> = Vec::new();
    for &variant in case.variants {
        let mut session = engine.session(SessionInfo::default())?;
        session.set_database(DATABASE)?;
        for setting in variant.settings() {
            query(&mut session, setting)?;
        }
        engine.storage().drop_cached_pages()?;
        let cold = measure(engine, &mut session, case.sql)?;
        let warm = measure(engine, &mut session, case.sql)?;
        println!(
            "  {:12} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9}",
            variant.name(),
            milliseconds(cold.elapsed),
            milliseconds(warm.elapsed),
            cold.entries,
            cold.rows,
            cold.pages_read,
            cold.requests
        );
        let plan = query(&mut session, &format!("explain {}", case.sql))?;
        plans.push((variant, explain_lines(&plan)));
    }
    // Plans that several variants share are printed once.
    let mut printed: Vec<&str> = Vec::new();
    for (_, plan) in &plans {
        if printed.contains(&plan.as_str()) {
            continue;
        }
        printed.push(plan);
        let shared: Vec<&str> = plans
            .iter()
            .filter(|(_, other)| other == plan)
            .map(|(variant, _)| variant.name())
            .collect();
        println!("  explain ({}):\n{plan}", shared.join(", "));
    }
    Ok(())
}

fn milliseconds(elapsed: Duration) -> String {
    format!("{:.1} ms", elapsed.as_secs_f64() * 1000.0)
}

fn measure(engine: &Arc<Engine>, session: &mut Session, sql: &str) -> Result<Cost, SqlError> {
    query(session, "flush status")?;
    let before = engine.storage().pool_counters();
    let start = Instant::now();
    query(session, sql)?;
    let elapsed = start.elapsed();
    let after = engine.storage().pool_counters();
    let status = query(session, "show session status")?;
    let counter = |name: &str| -> u64 {
        status
            .rows
            .iter()
            .find(|row| {
                row.first()
                    .is_some_and(|first| first.eq_ignore_ascii_case(name))
            })
            .and_then(|row| row.get(1)?.parse().ok())
            .unwrap_or(0)
    };
    let steps: u64 = [
        "Handler_read_key",
        "Handler_read_next",
        "Handler_read_prev",
        "Handler_read_rnd_next",
    ]
    .iter()
    .map(|name| counter(name))
    .sum();
    let rejected = counter("Handler_icp_attempts").saturating_sub(counter("Handler_icp_match"));
    Ok(Cost {
        elapsed,
        entries: steps + rejected,
        rows: counter("Innodb_rows_read"),
        pages_read: after.pages_read - before.pages_read,
        requests: after.data_reads - before.data_reads,
    })
}

/// The columns of EXPLAIN that explain most, one line per table.
fn explain_lines(plan: &Collected) -> String {
    let position = |name: &str| {
        plan.names
            .iter()
            .position(|column| column.eq_ignore_ascii_case(name))
    };
    let shown = ["table", "type", "key", "key_len", "ref", "rows", "Extra"];
    let mut text = String::new();
    for row in &plan.rows {
        let fields: Vec<String> = shown
            .iter()
            .filter_map(|name| {
                let value = row.get(position(name)?)?;
                (!value.is_empty()).then(|| match *name {
                    "table" => format!("{value:10}"),
                    "Extra" => value.clone(),
                    _ => format!("{name}={value}"),
                })
            })
            .collect();
        let _ = writeln!(text, "    {}", fields.join("  "));
    }
    text.trim_end().to_owned()
}
