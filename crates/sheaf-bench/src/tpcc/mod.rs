//! TPC-C: five kinds of transactions of a wholesaler, by clients over the MySQL protocol (TPC Benchmark C, revision
//! 5.11; terminals without keying and thinking times, so the figures are no tpmC).
//!
//! Each server works on its own copy of the same first contents. With each number of clients the servers take turns.
//! Afterwards the specification's consistency conditions 1 to 4 (clause 3.3.2) must hold on every server: a figure of a
//! server that has lost something is worth nothing.

mod client;
mod library;
mod random;
mod schema;
mod transactions;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};

use crate::chart::{Series, line_chart};
use crate::driver::{Driven, Measurement, drive};
use crate::error::BenchError;
use crate::machine;
use crate::peers::{self, Server, mysql_client};
use crate::reference::write_section;

use client::{Client, Failure, ProtocolClient};
use transactions::{KINDS, Terminal};

/// The database that clients work in.
const DATABASE: &str = "tpcc";

/// Options of `sheaf-bench tpcc`.
#[derive(Args)]
pub struct Options {
    /// Peers to compare with; only those that speak the MySQL protocol.
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    #[arg(long, default_value_t = 4)]
    warehouses: u64,
    /// Measures the library: the clients are threads of the process that has the database.
    #[arg(long, conflicts_with = "against")]
    in_process: bool,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_value = "1,8,32")]
    clients: Vec<u64>,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Seconds before each measurement.
    #[arg(long, default_value_t = 5)]
    warm_up: u64,
    /// Buffer pool of each server; Sheaf's whole process may use twice that.
    #[arg(long, default_value = "2G", value_parser = sheaf_cli::size::parse_size)]
    memory: usize,
    /// Folder for data and servers.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results table; `-` prints it only. The chart lies beside it.
    #[arg(long, default_value = "docs/benchmarks.md")]
    out: PathBuf,
}

/// One measurement of one server.
struct Measured {
    clients: u64,
    driven: Driven,
    /// Transactions that were done again.
    conflicts: u64,
}

/// Runs the comparison and writes its table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    if options.in_process {
        return library::run(options, &work);
    }
    let mut servers = peers::mysql_servers(&work, "tpcc", &options.against, options.memory as u64)?;
    let mut versions = Vec::new();
    for server in &mut servers {
        server.start()?;
        versions.push(format!("{} {}", server.name(), server.version()?));
        load(server.as_mut(), options.warehouses)?;
    }
    let mut results: Vec<Vec<Measured>> = servers.iter().map(|_| Vec::new()).collect();
    for &clients in &options.clients {
        for (server, results) in servers.iter().zip(&mut results) {
            results.push(measure(options, server.as_ref(), clients)?);
        }
    }
    for server in &mut servers {
        check(server.name(), server.endpoint().port)?;
        server.stop()?;
    }
    let names: Vec<_> = servers.iter().map(|server| server.name()).collect();
    let text = report(options, &versions, &names, &results);
    println!("{text}");
    if options.out.as_os_str() != "-" {
        write_section(&options.out, &text)?;
        let chart = options.out.with_file_name("tpcc.svg");
        std::fs::write(&chart, draw(&names, &results))
            .map_err(|error| BenchError::file(&chart, error))?;
    }
    Ok(())
}

/// Creates the tables and fills them.
fn load(server: &mut dyn Server, warehouses: u64) -> Result<(), BenchError> {
    let name = server.name();
    let failed = |error: mysql::Error| BenchError::server(name, error);
    server.recreate_database(DATABASE)?;
    let mut session = mysql_client::connect(name, server.endpoint().port, Some(DATABASE))?;
    for statement in schema::SCHEMA {
        session.query_drop(statement).map_err(failed)?;
    }
    session.set_local_infile_handler(Some(LocalInfileHandler::new(move |table, out| {
        let table = schema::TABLES
            .into_iter()
            .find(|known| known.as_bytes() == table)
            .ok_or_else(|| std::io::Error::other("no such table"))?;
        std::io::copy(&mut schema::Rows::new(table, warehouses), out)?;
        Ok(())
    })));
    for table in schema::TABLES {
        eprintln!("{name}: filling {table}");
        session
            .query_drop(format!(
                "load data local infile '{table}' into table {table}"
            ))
            .map_err(failed)?;
    }
    session
        .query_drop(format!("analyze table {}", schema::TABLES.join(", ")))
        .map_err(failed)?;
    check(name, server.endpoint().port)
}

fn measure(options: &Options, server: &dyn Server, clients: u64) -> Result<Measured, BenchError> {
    let (name, endpoint) = (server.name(), server.endpoint());
    let terminals = (0..clients)
        .map(|number| {
            let client = Client::Protocol(ProtocolClient::connect(name, endpoint.port)?);
            Ok(Terminal::new(client, number, clients, options.warehouses))
        })
        .collect::<Result<Vec<_>, BenchError>>()?;
    let used = || machine::processor_time_of_family(endpoint.process);
    work(options, name, terminals, &used)
}

/// Lets the terminals work, and says what they did.
fn work(
    options: &Options,
    name: &'static str,
    terminals: Vec<Terminal>,
    processor_time: &dyn Fn() -> Duration,
) -> Result<Measured, BenchError> {
    let clients = terminals.len() as u64;
    let conflicts = AtomicU64::new(0);
    let driven = drive(
        terminals,
        &Measurement {
            kinds: KINDS.len(),
            warm_up: Duration::from_secs(options.warm_up),
            time: Duration::from_secs(options.seconds),
            server_time: processor_time,
        },
        |terminal: &mut Terminal| {
            let outcome = terminal.work();
            conflicts.fetch_add(std::mem::take(&mut terminal.conflicts), Ordering::Relaxed);
            outcome.map_err(|failure| match failure {
                Failure::Other(error) => error,
                Failure::Conflict => BenchError::server(name, "a rollback met a conflict"),
            })
        },
    )?;
    let measured = Measured {
        clients,
        driven,
        conflicts: conflicts.into_inner(),
    };
    eprintln!(
        "{clients:4} clients {:10} {:8.0} transactions/s  new order p95 {:7.2} ms  {:6.0} us of the server's processors  {} done again",
        name,
        measured.driven.per_second(),
        measured.driven.quantile_ms(0, 0.95),
        measured.driven.server_us(),
        measured.conflicts
    );
    Ok(measured)
}

/// The consistency conditions 1 to 4 of clause 3.3.2: queries of what contradicts them.
const CONTRADICTIONS: [&str; 4] = [
    "select w_id, w_ytd, total from warehouse, (select d_w_id, sum(d_ytd) total from district group by d_w_id) d \
     where d_w_id = w_id and w_ytd <> total",
    "select d_w_id, d_id, d_next_o_id, newest_order, newest_new_order from district, \
     (select o_w_id, o_d_id, max(o_id) newest_order from orders group by o_w_id, o_d_id) o, \
     (select no_w_id, no_d_id, max(no_o_id) newest_new_order from new_orders group by no_w_id, no_d_id) n \
     where o_w_id = d_w_id and o_d_id = d_id and no_w_id = d_w_id and no_d_id = d_id \
     and (d_next_o_id - 1 <> newest_order or newest_order <> newest_new_order)",
    "select no_w_id, no_d_id, count(*) from new_orders group by no_w_id, no_d_id \
     having max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    "select o_w_id, o_d_id, wanted, there from (select o_w_id, o_d_id, sum(o_ol_cnt) wanted from orders group by o_w_id, o_d_id) o, \
     (select ol_w_id, ol_d_id, count(*) there from order_line group by ol_w_id, ol_d_id) l \
     where ol_w_id = o_w_id and ol_d_id = o_d_id and wanted <> there",
];

fn check(server: &'static str, port: u16) -> Result<(), BenchError> {
    let mut session: Conn = mysql_client::connect(server, port, Some(DATABASE))?;
    for (number, query) in (1..).zip(CONTRADICTIONS) {
        let found: Option<mysql::Row> = session
            .query_first(query)
            .map_err(|error| BenchError::server(server, error))?;
        if let Some(row) = found {
            return Err(BenchError::server(
                server,
                format!("consistency condition {number} does not hold: {row:?}"),
            ));
        }
    }
    Ok(())
}

fn report(
    options: &Options,
    versions: &[String],
    names: &[&'static str],
    results: &[Vec<Measured>],
) -> String {
    let mut text = format!("## TPC-C, {} warehouses\n\n", options.warehouses);
    let _ = writeln!(text, "{}; {}.  ", machine::today(), versions.join("; "));
    let _ = writeln!(text, "Machine: {}.  ", machine::describe());
    let clients: Vec<String> = options.clients.iter().map(u64::to_string).collect();
    let _ = writeln!(
        text,
        "Written by `sheaf-bench tpcc --against {} --warehouses {} --clients {} --seconds {}`: the five transactions without \
         keying and thinking times, READ COMMITTED, prepared statements; every commit is on the disk before it is \
         acknowledged. The consistency conditions 1 to 4 held on every server afterwards.\n",
        options.against.join(","),
        options.warehouses,
        clients.join(","),
        options.seconds
    );
    let _ = writeln!(
        text,
        "| clients | server | transactions a second | ratio to the first peer | new order p50 / p95 / p99 ms | payment p95 ms | \
         delivery p95 ms | server us a transaction | done again |\n|---|---|---|---|---|---|---|---|---|"
    );
    for row in 0..options.clients.len() {
        let peer = results.get(1).map(|peer| peer[row].driven.per_second());
        for (name, measured) in names
            .iter()
            .zip(results)
            .map(|(name, all)| (name, &all[row]))
        {
            let driven = &measured.driven;
            let ratio = peer.map_or("-".into(), |peer| {
                format!("{:.2}", driven.per_second() / peer)
            });
            let _ = writeln!(
                text,
                "| {} | {name} | {:.0} | {ratio} | {:.2} / {:.2} / {:.2} | {:.2} | {:.2} | {:.0} | {} |",
                measured.clients,
                driven.per_second(),
                driven.quantile_ms(0, 0.5),
                driven.quantile_ms(0, 0.95),
                driven.quantile_ms(0, 0.99),
                driven.quantile_ms(1, 0.95),
                driven.quantile_ms(3, 0.95),
                driven.server_us(),
                measured.conflicts
            );
        }
    }
    text.push_str("\n![TPC-C](tpcc.svg)\n");
    text
}

fn draw(names: &[&'static str], results: &[Vec<Measured>]) -> String {
    let series: Vec<Series> = names
        .iter()
        .zip(results)
        .map(|(name, measured)| Series {
            name: (*name).to_owned(),
            points: measured
                .iter()
                .map(|measured| (measured.clients as f64, measured.driven.per_second()))
                .collect(),
        })
        .collect();
    line_chart("TPC-C", "clients", "transactions a second", &series)
}
