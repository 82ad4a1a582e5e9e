//! Nine point reads and one update by key in each loop, by one to a thousand connections: what many transactions cost
//! each reader (the benchmark that made read views cheaper in MySQL 5.6 and 5.7).

use std::fmt::{Display, Write as _};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mysql::prelude::Queryable;
use mysql_common::value::Value;
use sheaf_storage::Random;

use crate::chart::{Series, line_chart};
use crate::driver::{Driven, Measurement, Requester, drive_many};
use crate::error::BenchError;
use crate::machine;
use crate::peers::wire_client::{PreparedStatement, WireClient};
use crate::peers::{self, Server, mysql_client};
use crate::reference::write_section;

const DATABASE: &str = "mixed";
/// Point reads for each update.
const READS: usize = 9;
/// Kinds of work, as the driver numbers them.
const READ: usize = 0;
const UPDATE: usize = 1;

/// Options of `sheaf-bench mixed`.
#[derive(Args)]
pub struct Options {
    /// Peers to compare with; only those that speak the MySQL protocol.
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// Rows of the table.
    #[arg(long, default_value_t = 400_000)]
    rows: u64,
    /// Numbers of connections.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2,4,8,16,32,64,128,256,512,1024"
    )]
    connections: Vec<usize>,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
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

struct Client {
    server: &'static str,
    connection: WireClient,
    read: PreparedStatement,
    update: PreparedStatement,
    random: Random,
    rows: u64,
    /// Reads since the last update.
    reads: usize,
}

impl Client {
    fn connect(
        server: &'static str,
        port: u16,
        number: usize,
        rows: u64,
    ) -> Result<Client, BenchError> {
        let mut connection = WireClient::connect(server, port, DATABASE)?;
        let mut prepare = |sql| {
            let prepared = connection.prepare(sql);
            prepared.map_err(|error| BenchError::server(server, error))
        };
        Ok(Client {
            server,
            read: prepare("select c from t where id = ?")?,
            update: prepare("update t set k = k + 1 where id = ?")?,
            connection,
            random: Random::new(number as u64 + 1),
            rows,
            reads: number % READS,
        })
    }

    fn failed(&self, error: impl Display) -> BenchError {
        BenchError::server(self.server, error)
    }
}

impl AsRawFd for Client {
    fn as_raw_fd(&self) -> RawFd {
        self.connection.as_raw_fd()
    }
}

impl Requester for Client {
    fn send(&mut self) -> Result<usize, BenchError> {
        let id = Value::from(self.random.below(self.rows));
        let (statement, kind) = match self.reads == READS {
            true => (self.update, UPDATE),
            false => (self.read, READ),
        };
        self.reads = if kind == UPDATE { 0 } else { self.reads + 1 };
        let sent = self.connection.send(statement, &[id]);
        sent.map_err(|error| self.failed(error))?;
        Ok(kind)
    }

    fn receive(&mut self) -> Result<(), BenchError> {
        let received = self.connection.receive_and_forget();
        received.map_err(|error| self.failed(error))
    }
}

/// Runs the comparison and writes its table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let mut servers =
        peers::mysql_servers(&work, "mixed", &options.against, options.memory as u64)?;
    let mut versions = Vec::new();
    for server in &mut servers {
        server.start()?;
        versions.push(format!("{} {}", server.name(), server.version()?));
        fill(server.as_mut(), options)?;
    }
    let mut results: Vec<Vec<Driven>> = servers.iter().map(|_| Vec::new()).collect();
    for &connections in &options.connections {
        for (server, results) in servers.iter().zip(&mut results) {
            results.push(measure(options, server.as_ref(), connections)?);
        }
    }
    for server in &mut servers {
        server.stop()?;
    }
    let names: Vec<_> = servers.iter().map(|server| server.name()).collect();
    let text = report(options, &versions, &names, &results);
    println!("{text}");
    if options.out.as_os_str() != "-" {
        write_section(&options.out, &text)?;
        let series: Vec<Series> = names
            .iter()
            .zip(&results)
            .map(|(name, results)| Series {
                name: (*name).to_owned(),
                points: options
                    .connections
                    .iter()
                    .zip(results)
                    .map(|(connections, driven)| (*connections as f64, driven.per_second()))
                    .collect(),
            })
            .collect();
        let chart = options.out.with_file_name("mixed.svg");
        let svg = line_chart(
            "9 point reads and 1 update",
            "connections",
            "statements a second",
            &series,
        );
        std::fs::write(&chart, svg).map_err(|error| BenchError::file(&chart, error))?;
    }
    Ok(())
}

fn fill(server: &mut dyn Server, options: &Options) -> Result<(), BenchError> {
    let name = server.name();
    server.recreate_database(DATABASE)?;
    let mut session = mysql_client::connect(name, server.endpoint().port, Some(DATABASE))?;
    let most = options.connections.iter().max().copied().unwrap_or(1) + 16;
    let mut execute = |sql: &str| {
        session
            .query_drop(sql)
            .map_err(|error| BenchError::server(name, error))
    };
    execute(&format!("set global max_connections = {most}"))?;
    execute("create table t (id int not null primary key, k int not null, c char(120) not null)")?;
    mysql_client::fill(&mut session, name, options.rows, |id| {
        format!("({id},{id},'{id:0110}')")
    })
}

fn measure(
    options: &Options,
    server: &dyn Server,
    connections: usize,
) -> Result<Driven, BenchError> {
    let (name, endpoint) = (server.name(), server.endpoint());
    let clients = (0..connections)
        .map(|number| Client::connect(name, endpoint.port, number, options.rows))
        .collect::<Result<Vec<_>, BenchError>>()?;
    let driven = drive_many(
        clients,
        &Measurement {
            kinds: 2,
            warm_up: Duration::from_secs(2),
            time: Duration::from_secs(options.seconds),
            server_time: &|| machine::processor_time_of_family(endpoint.process),
        },
    )?;
    eprintln!(
        "{connections:5} connections {:10} {:8.0} statements/s  read p95 {:7.2} ms  {:6.1} us of the server's processors",
        name,
        driven.per_second(),
        driven.quantile_ms(READ, 0.95),
        driven.server_us()
    );
    Ok(driven)
}

fn report(
    options: &Options,
    versions: &[String],
    names: &[&'static str],
    results: &[Vec<Driven>],
) -> String {
    let mut text = String::from("## Nine point reads and one update\n\n");
    let _ = writeln!(text, "{}; {}.  ", machine::today(), versions.join("; "));
    let _ = writeln!(text, "Machine: {}.  ", machine::describe());
    let connections: Vec<String> = options.connections.iter().map(usize::to_string).collect();
    let _ = writeln!(
        text,
        "Written by `sheaf-bench mixed --against {} --rows {} --connections {} --seconds {}`: prepared statements, a \
         transaction each; a client thread for each core drives the connections; every commit is on the disk before it is acknowledged.\n",
        options.against.join(","),
        options.rows,
        connections.join(","),
        options.seconds
    );
    let _ = writeln!(
        text,
        "| connections | server | statements a second | of its peak | read p50 / p95 / p99 ms | update p50 / p95 / p99 ms | \
         server us a statement |\n|---|---|---|---|---|---|---|"
    );
    for (row, connections) in options.connections.iter().enumerate() {
        for (name, all) in names.iter().zip(results) {
            let driven = &all[row];
            let peak = all.iter().map(Driven::per_second).fold(0.0, f64::max);
            let quantiles = |kind| {
                format!(
                    "{:.2} / {:.2} / {:.2}",
                    driven.quantile_ms(kind, 0.5),
                    driven.quantile_ms(kind, 0.95),
                    driven.quantile_ms(kind, 0.99)
                )
            };
            let _ = writeln!(
                text,
                "| {connections} | {name} | {:.0} | {:.2} | {} | {} | {:.1} |",
                driven.per_second(),
                driven.per_second() / peak.max(1e-9),
                quantiles(READ),
                quantiles(UPDATE),
                driven.server_us()
            );
        }
    }
    text.push_str("\n![Nine point reads and one update](mixed.svg)\n");
    text
}
