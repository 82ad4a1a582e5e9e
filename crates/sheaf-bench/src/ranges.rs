//! One month of lineitem, a random month for each execution, by many clients at once (a variant of TPC-H Q6). Do
//! concurrent range scans scale with the cores, through the index on the ship date and by scanning the table?

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_storage::Random;

use crate::chart::{Series, line_chart};
use crate::data::tbl_folder;
use crate::driver::{Driven, Measurement, drive};
use crate::error::BenchError;
use crate::machine;
use crate::peers::{self, Server, mysql_client};
use crate::reference::write_section;

/// Months that have shipments throughout: January 1993 to December 1997.
const FIRST_YEAR: u64 = 1993;
const MONTHS: u64 = 60;

/// How lineitem is read, and the hint that sees to it.
const WAYS: [(&str, &str); 2] = [
    ("index", "force index (i_l_shipdate)"),
    ("scan", "ignore index (i_l_shipdate)"),
];

/// Options of `sheaf-bench ranges`.
#[derive(Args)]
pub struct Options {
    /// Peers to compare with; only those that speak the MySQL protocol.
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// TPC-H scale factor.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16,32,64")]
    clients: Vec<usize>,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Buffer pool of each server, for everything to be in memory; Sheaf's whole process may use twice that.
    #[arg(long, default_value = "4G", value_parser = sheaf_cli::size::parse_size)]
    memory: usize,
    /// Folder for data and servers; kept, so that a second run loads nothing.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results table; `-` prints it only. The chart lies beside it.
    #[arg(long, default_value = "docs/benchmarks.md")]
    out: PathBuf,
}

struct Client {
    connection: Conn,
    random: Random,
}

/// Measurements of one server, reading one way.
struct Line {
    name: String,
    results: Vec<Driven>,
}

/// Runs the comparison and writes its table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let data = format!("ranges-{}", options.scale);
    let mut servers = peers::mysql_servers(&work, &data, &options.against, options.memory as u64)?;
    let mut versions = Vec::new();
    let tables = tbl_folder(&work, options.scale)?;
    for server in &mut servers {
        server.start()?;
        versions.push(format!("{} {}", server.name(), server.version()?));
        let loaded = mysql_client::connect(
            server.name(),
            server.endpoint().port,
            Some(mysql_client::DATABASE),
        );
        if loaded.is_err() {
            eprintln!("loading {}", server.name());
            server.load(&tables)?;
        }
    }
    let mut lines = Vec::new();
    for (way, hint) in WAYS {
        let first = lines.len();
        lines.extend(servers.iter().map(|server| Line {
            name: format!("{}, {way}", server.name()),
            results: Vec::new(),
        }));
        for &clients in &options.clients {
            for (server, line) in servers.iter().zip(&mut lines[first..]) {
                line.results
                    .push(measure(options, server.as_ref(), way, hint, clients)?);
            }
        }
    }
    for server in &mut servers {
        server.stop()?;
    }
    let text = report(options, &versions, &lines);
    println!("{text}");
    if options.out.as_os_str() != "-" {
        write_section(&options.out, &text)?;
        let series: Vec<Series> = lines
            .iter()
            .map(|line| Series {
                name: line.name.clone(),
                points: options
                    .clients
                    .iter()
                    .zip(&line.results)
                    .map(|(clients, driven)| (*clients as f64, driven.per_second()))
                    .collect(),
            })
            .collect();
        let chart = options.out.with_file_name("ranges.svg");
        let svg = line_chart(
            "One month of lineitem",
            "clients",
            "queries a second",
            &series,
        );
        std::fs::write(&chart, svg).map_err(|error| BenchError::file(&chart, error))?;
    }
    Ok(())
}

/// The query for a month, numbered from 0.
fn month_query(hint: &str, month: u64) -> String {
    let (year, month) = (FIRST_YEAR + month / 12, month % 12 + 1);
    format!(
        "select sum(l_extendedprice * l_discount) from lineitem {hint} where l_shipdate >= '{year}-{month:02}-01' \
         and l_shipdate < date_add('{year}-{month:02}-01', interval '1' month) \
         and l_discount between 0.05 - 0.01 and 0.05 + 0.01 and l_quantity < 25"
    )
}

fn measure(
    options: &Options,
    server: &dyn Server,
    way: &str,
    hint: &str,
    clients: usize,
) -> Result<Driven, BenchError> {
    let (name, endpoint) = (server.name(), server.endpoint());
    let connections = (0..clients)
        .map(|number| {
            Ok(Client {
                connection: mysql_client::connect(
                    name,
                    endpoint.port,
                    Some(mysql_client::DATABASE),
                )?,
                random: Random::new(number as u64 + 1),
            })
        })
        .collect::<Result<Vec<_>, BenchError>>()?;
    let driven = drive(
        connections,
        &Measurement {
            kinds: 1,
            warm_up: Duration::from_secs(2),
            time: Duration::from_secs(options.seconds),
            server_time: &|| machine::processor_time_of_family(endpoint.process),
        },
        |client: &mut Client| {
            let query = month_query(hint, client.random.below(MONTHS));
            let found: Option<mysql::Row> = client
                .connection
                .query_first(query)
                .map_err(|error| BenchError::server(name, error))?;
            match found {
                Some(_) => Ok(0),
                None => Err(BenchError::server(name, "a sum without a row")),
            }
        },
    )?;
    eprintln!(
        "{way:6} {clients:3} clients {:10} {:8.2} queries/s  p50 {:8.1} ms  {:8.0} us of the server's processors",
        name,
        driven.per_second(),
        driven.quantile_ms(0, 0.5),
        driven.server_us()
    );
    Ok(driven)
}

fn report(options: &Options, versions: &[String], lines: &[Line]) -> String {
    let mut text = format!(
        "## One month of lineitem by many clients, scale {}\n\n",
        options.scale
    );
    let _ = writeln!(text, "{}; {}.  ", machine::today(), versions.join("; "));
    let _ = writeln!(text, "Machine: {}.  ", machine::describe());
    let clients: Vec<String> = options.clients.iter().map(usize::to_string).collect();
    let _ = writeln!(
        text,
        "Written by `sheaf-bench ranges --against {} --scale {} --clients {} --seconds {}`: everything is in memory, a random \
         month for each query.\n",
        options.against.join(","),
        options.scale,
        clients.join(","),
        options.seconds
    );
    let _ = writeln!(
        text,
        "| server, way | clients | queries a second | times one client | p50 / p95 / p99 ms | server ms a query |\n\
         |---|---|---|---|---|---|"
    );
    for line in lines {
        let alone = line.results.first().map_or(f64::NAN, Driven::per_second);
        for (clients, driven) in options.clients.iter().zip(&line.results) {
            let _ = writeln!(
                text,
                "| {} | {clients} | {:.2} | {:.2} | {:.1} / {:.1} / {:.1} | {:.1} |",
                line.name,
                driven.per_second(),
                driven.per_second() / alone,
                driven.quantile_ms(0, 0.5),
                driven.quantile_ms(0, 0.95),
                driven.quantile_ms(0, 0.99),
                driven.server_us() / 1e3
            );
        }
    }
    text.push_str("\n![One month of lineitem](ranges.svg)\n");
    text
}
