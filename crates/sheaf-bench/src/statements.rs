//! Statements that object-relational mappers send: what each takes when it is new to a server, and when it is not.
//!
//! The statements are in `statements/statements.sql`, with the tables in `schema.sql` beside it; `{n}` is another
//! number each time, `{t}` a smaller one. The servers take turns at each execution. Before the first execution of a
//! statement a table is created and dropped, so that no server has a plan of it, and the connection is new.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::error::BenchError;
use crate::machine;
use crate::peers::{self, Server, mysql_client};
use crate::reference::write_section;

const DATABASE: &str = "statements";
const SCHEMA: &str = include_str!("../statements/schema.sql");
const STATEMENTS: &str = include_str!("../statements/statements.sql");
/// What takes a server's answer and nothing else.
const NOTHING: &str = "do 1";
/// Rows of the tables are numbered so far, at least.
const NUMBERS: usize = 1_900;
const TEAMS: usize = 50;

/// Options of `sheaf-bench statements`.
#[derive(Args)]
pub struct Options {
    /// Peers to compare with; only those that speak the MySQL protocol.
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// Statements with this text only.
    #[arg(long, default_value = "")]
    only: String,
    /// How often each statement is new.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How often it is repeated each time.
    #[arg(long, default_value_t = 20)]
    repeats: usize,
    /// Buffer pool of each server; Sheaf's whole process may use twice that.
    #[arg(long, default_value = "256M", value_parser = sheaf_cli::size::parse_size)]
    memory: usize,
    /// Folder for data and servers.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results table; `-` prints it only.
    #[arg(long, default_value = "docs/benchmarks.md")]
    out: PathBuf,
}

/// What a statement takes of one server, in microseconds, ascending.
#[derive(Clone, Default)]
struct Times {
    first: Vec<f64>,
    repeated: Vec<f64>,
}

/// A statement's times by server.
struct Measured {
    sql: &'static str,
    times: Vec<Times>,
}

fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Runs the comparison and writes its table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let memory = options.memory as u64;
    let mut servers = peers::mysql_servers(&work, "statements", &options.against, memory)?;
    let mut versions = Vec::new();
    for server in &mut servers {
        server.start()?;
        versions.push(format!("{} {}", server.name(), server.version()?));
        fill(server.as_mut())?;
    }
    let lines = STATEMENTS.lines().filter(|line| !line.starts_with("--"));
    let statements = lines.map(|line| line.trim_end_matches(';'));
    let asked = statements.filter(|sql| sql.contains(&options.only));
    let mut measured = Vec::new();
    for sql in std::iter::once(NOTHING).chain(asked) {
        measured.push(measure(options, &servers, sql)?);
    }
    for server in &mut servers {
        server.stop()?;
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name()).collect();
    let text = report(options, &versions, &names, &measured);
    println!("{text}");
    if options.out.as_os_str() != "-" {
        write_section(&options.out, &text)?;
    }
    Ok(())
}

fn fill(server: &mut dyn Server) -> Result<(), BenchError> {
    let name = server.name();
    server.recreate_database(DATABASE)?;
    let mut connection = connect(server)?;
    for sql in SCHEMA.split(";\n").filter(|sql| !sql.trim().is_empty()) {
        execute(&mut connection, name, sql)?;
    }
    Ok(())
}

fn connect(server: &dyn Server) -> Result<Conn, BenchError> {
    mysql_client::connect(server.name(), server.endpoint().port, Some(DATABASE))
}

fn execute(connection: &mut Conn, server: &'static str, sql: &str) -> Result<(), BenchError> {
    let done = connection.query_drop(sql);
    done.map_err(|error| BenchError::server(server, error))
}

fn measure(
    options: &Options,
    servers: &[Box<dyn Server>],
    sql: &'static str,
) -> Result<Measured, BenchError> {
    let mut times = vec![Times::default(); servers.len()];
    let mut number = 0;
    for _ in 0..options.rounds {
        let mut connections = Vec::with_capacity(servers.len());
        for server in servers {
            let mut connection = connect(server.as_ref())?;
            for sql in ["create table again (id int)", "drop table again"] {
                execute(&mut connection, server.name(), sql)?;
            }
            connections.push(connection);
        }
        for repeat in 0..=options.repeats {
            number += 1;
            let text = sql
                .replace("{n}", &(20 + number * 7 % NUMBERS).to_string())
                .replace("{t}", &(number * 7 % TEAMS).to_string());
            for ((server, connection), times) in
                servers.iter().zip(&mut connections).zip(&mut times)
            {
                let start = Instant::now();
                execute(connection, server.name(), &text)?;
                let elapsed_us = start.elapsed().as_secs_f64() * 1e6;
                match repeat {
                    0 => times.first.push(elapsed_us),
                    _ => times.repeated.push(elapsed_us),
                }
            }
        }
    }
    for times in &mut times {
        times.first.sort_by(f64::total_cmp);
        times.repeated.sort_by(f64::total_cmp);
    }
    Ok(Measured { sql, times })
}

/// Sheaf's time by that of the best peer; NaN without peers.
fn ratio(times: &[Times], of: impl Fn(&Times) -> f64) -> f64 {
    let peers = times.iter().skip(1).map(&of);
    of(&times[0]) / peers.fold(f64::NAN, f64::min)
}

fn report(options: &Options, versions: &[String], names: &[&str], measured: &[Measured]) -> String {
    let mut text = String::from("## Statements of object-relational mappers\n\n");
    let _ = writeln!(text, "{}; {}.  ", machine::today(), versions.join("; "));
    let _ = writeln!(text, "Machine: {}.  ", machine::describe());
    let _ = writeln!(
        text,
        "Written by `sheaf-bench statements --against {} --rounds {} --repeats {}`: one connection, text, each with other \
         literals; medians in microseconds, repeated / first, from sending to the last row; then Sheaf's by the best \
         peer's. The worst come first.\n",
        options.against.join(","),
        options.rounds,
        options.repeats
    );
    let _ = writeln!(
        text,
        "| statement | {} | repeated | first |\n|---|{}---:|---:|",
        names.join(" | "),
        "---:|".repeat(names.len())
    );
    let repeated = |times: &Times| median(&times.repeated);
    let first = |times: &Times| median(&times.first);
    let mut rows: Vec<&Measured> = measured.iter().collect();
    rows.sort_by(|a, b| ratio(&b.times, repeated).total_cmp(&ratio(&a.times, repeated)));
    for Measured { sql, times } in rows {
        let cells = times.iter();
        let cells = cells.map(|times| format!("{:.0} / {:.0}", repeated(times), first(times)));
        let _ = writeln!(
            text,
            "| `{}` | {} | {:.2} | {:.2} |",
            sql.replace('|', "\\|").replace('`', "'"),
            cells.collect::<Vec<_>>().join(" | "),
            ratio(times, repeated),
            ratio(times, first)
        );
    }
    text
}
