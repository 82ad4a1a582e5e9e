//! What others notice of a change of a table: writers and point readers beside each ALTER TABLE, how much of their
//! quiet throughput they keep, and the longest that a statement of theirs takes.
//!
//! ```text
//!   writers   begin, update by key (of an index, and not), delete and insert, commit      ]
//!   readers   select by key                                                               ]  all the time
//!   changes   quiet for a while | ALTER ... | quiet | ALTER ... |
//! ```
//!
//! The writers do what sysbench's `oltp_write_only` does. Each has rows of its own, so none waits for another's.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_storage::Random;

use crate::error::BenchError;
use crate::machine;
use crate::peers::{self, mysql_client};
use crate::reference::write_section;

const DATABASE: &str = "online";
/// Between two changes.
const PAUSE: Duration = Duration::from_secs(1);

/// What takes less is too short to say how much others did meanwhile.
const SHORT: Duration = Duration::from_millis(500);

/// The changes, in their order.
const CHANGES: [&str; 10] = [
    "alter table t add key by_c (c)",
    "alter table t add unique by_pad (pad, id)",
    "alter table t drop key by_c, drop key by_pad",
    "alter table t add added int not null default 7",
    "alter table t add note text",
    "alter table t drop added",
    "alter table t alter k set default 5",
    "alter table t modify k bigint not null",
    "alter table t convert to character set utf8mb4 collate utf8mb4_bin",
    "alter table t force",
];

/// Options of `sheaf-bench online`.
#[derive(Args)]
pub struct Options {
    /// Peers to compare with; only those that speak the MySQL protocol.
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// Port of a MySQL server that runs already, to compare with as well: root has no password.
    #[arg(long)]
    mysql_port: Option<u16>,
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Connections that write.
    #[arg(long, default_value_t = 16)]
    writers: u64,
    /// Connections that read.
    #[arg(long, default_value_t = 4)]
    readers: u64,
    /// Seconds without a change at first.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Buffer pool of each server; Sheaf's whole process may use twice that.
    #[arg(long, default_value = "2G", value_parser = sheaf_cli::size::parse_size)]
    memory: usize,
    /// Folder for data and servers.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results table; `-` prints it only.
    #[arg(long, default_value = "docs/benchmarks.md")]
    out: PathBuf,
}

/// A unit of work: a transaction of a writer, or a statement of a reader.
struct Unit {
    ended: Instant,
    took: Duration,
    writes: bool,
}

/// What was seen of the units that ran in a stretch of time.
struct Seen {
    elapsed: Duration,
    writes_per_second: f64,
    reads_per_second: f64,
    longest: Duration,
    /// Why the change was refused.
    refused: Option<String>,
}

/// One server's name, version, quiet time, and changes.
struct Outcome {
    name: &'static str,
    version: String,
    quiet: Seen,
    changes: Vec<Seen>,
}

/// Runs the comparison and writes its table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let mut servers =
        peers::mysql_servers(&work, "online", &options.against, options.memory as u64)?;
    let mut outcomes = Vec::new();
    // One after the other: a change takes all that a machine has.
    for server in &mut servers {
        server.start()?;
        let version = server.version()?;
        outcomes.push(measure(
            options,
            server.name(),
            server.endpoint().port,
            version,
        )?);
        server.stop()?;
    }
    if let Some(port) = options.mysql_port {
        let name = "MySQL";
        let failed = |error: mysql::Error| BenchError::server(name, error);
        let mut session = mysql_client::connect(name, port, None)?;
        let version: Option<String> = session.query_first("select version()").map_err(failed)?;
        outcomes.push(measure(options, name, port, version.unwrap_or_default())?);
        let dropped = session.query_drop(format!("drop database {DATABASE}"));
        dropped.map_err(failed)?;
    }
    let text = report(options, &outcomes);
    println!("{text}");
    match options.out.as_os_str() == "-" {
        true => Ok(()),
        false => write_section(&options.out, &text),
    }
}

fn fill(session: &mut Conn, options: &Options, name: &'static str) -> Result<(), BenchError> {
    let mut execute = |sql: &str| {
        let done = session.query_drop(sql);
        done.map_err(|error| BenchError::server(name, error))
    };
    execute(&format!("drop database if exists {DATABASE}"))?;
    execute(&format!("create database {DATABASE}"))?;
    execute(&format!("use {DATABASE}"))?;
    execute(
        "create table t (id int not null primary key, k int not null, c char(120) not null, pad char(60) not null, \
         key by_k (k))",
    )?;
    mysql_client::fill(session, name, options.rows, |id| {
        let k = id.wrapping_mul(2_654_435_761) % options.rows;
        format!("({id},{k},'{k:0110}','{id:050}')")
    })
}

fn measure(
    options: &Options,
    name: &'static str,
    port: u16,
    version: String,
) -> Result<Outcome, BenchError> {
    let failed = |error: mysql::Error| BenchError::server(name, error);
    let mut session = mysql_client::connect(name, port, None)?;
    fill(&mut session, options, name)?;
    let (done, units) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let (done, units) = (&done, &units);
        let clients = (0..options.writers + options.readers).map(|number| {
            scope.spawn(move || {
                let mut connection = mysql_client::connect(name, port, Some(DATABASE))?;
                let mut random = Random::new(number + 1);
                while !done.load(Ordering::Relaxed) {
                    let writes = number < options.writers;
                    let began = Instant::now();
                    let outcome = match writes {
                        true => write(&mut connection, &mut random, number, options),
                        false => read(&mut connection, &mut random, options),
                    };
                    outcome.map_err(|error| BenchError::server(name, error))?;
                    let ended = Instant::now();
                    let unit = Unit {
                        ended,
                        took: ended - began,
                        writes,
                    };
                    units
                        .lock()
                        .unwrap_or_else(|broken| broken.into_inner())
                        .push(unit);
                }
                Ok::<(), BenchError>(())
            })
        });
        let clients: Vec<_> = clients.collect();
        thread::sleep(PAUSE);
        let quiet = {
            let began = Instant::now();
            thread::sleep(Duration::from_secs(options.seconds));
            seen(units, began, None)
        };
        let mut changes = Vec::new();
        for change in CHANGES {
            let began = Instant::now();
            let refused = match session.query_drop(change) {
                Ok(()) => None,
                Err(mysql::Error::MySqlError(error)) => Some(error.message),
                Err(error) => {
                    done.store(true, Ordering::Relaxed);
                    return Err(failed(error));
                }
            };
            let found = seen(units, began, refused);
            eprintln!(
                "{name:10} {:7.2} s  {:7.0} writes/s {:7.0} reads/s  longest {:6.0} ms  {change}",
                found.elapsed.as_secs_f64(),
                found.writes_per_second,
                found.reads_per_second,
                found.longest.as_secs_f64() * 1e3
            );
            changes.push(found);
            thread::sleep(PAUSE);
        }
        done.store(true, Ordering::Relaxed);
        for client in clients {
            client
                .join()
                .map_err(|_| BenchError::server(name, "a client ended early"))??;
        }
        Ok(Outcome {
            name,
            version,
            quiet,
            changes,
        })
    })
}

/// What ran since `began`, also if it ends a little later: a statement that a change keeps waiting ends behind it.
fn seen(units: &Mutex<Vec<Unit>>, began: Instant, refused: Option<String>) -> Seen {
    let ended = Instant::now();
    let elapsed = ended - began;
    thread::sleep(PAUSE / 2);
    let units = units.lock().unwrap_or_else(|broken| broken.into_inner());
    let inside = |unit: &&Unit| unit.ended >= began && unit.ended <= ended;
    let meets = |unit: &&Unit| unit.ended >= began && unit.ended - unit.took <= ended;
    let count = |writes: bool| {
        let inside = units.iter().filter(inside);
        inside.filter(|unit| unit.writes == writes).count() as f64
    };
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let took = units.iter().filter(meets).map(|unit| unit.took);
    Seen {
        elapsed,
        writes_per_second: count(true) / seconds,
        reads_per_second: count(false) / seconds,
        longest: took.max().unwrap_or_default(),
        refused,
    }
}

/// A transaction on rows that no other writer has. What a server refuses because of locks is rolled back.
fn write(
    connection: &mut Conn,
    random: &mut Random,
    writer: u64,
    options: &Options,
) -> mysql::Result<()> {
    let per_writer = (options.rows / options.writers.max(1)).max(1);
    let mut id = || random.below(per_writer) * options.writers + writer;
    let (first, second, third) = (id(), id(), id());
    let statements = [
        "begin".to_string(),
        format!("update t set k = k + 1 where id = {first}"),
        format!("update t set c = '{second:0110}' where id = {second}"),
        format!("delete from t where id = {third}"),
        format!(
            "insert into t (id, k, c, pad) values ({third}, {third}, '{first:0110}', '{third:050}')"
        ),
        "commit".to_string(),
    ];
    for statement in statements {
        match connection.query_drop(statement) {
            Ok(()) => {}
            Err(mysql::Error::MySqlError(_)) => return connection.query_drop("rollback"),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read(connection: &mut Conn, random: &mut Random, options: &Options) -> mysql::Result<()> {
    let id = random.below(options.rows);
    let found: Option<String> =
        connection.query_first(format!("select c from t where id = {id}"))?;
    drop(found);
    Ok(())
}

fn report(options: &Options, outcomes: &[Outcome]) -> String {
    let mut text = String::from("## Changes of a table beside writers and readers\n\n");
    let versions = outcomes
        .iter()
        .map(|of| format!("{} {}", of.name, of.version));
    let versions: Vec<String> = versions.collect();
    let _ = writeln!(text, "{}; {}.  ", machine::today(), versions.join("; "));
    let _ = writeln!(text, "Machine: {}.  ", machine::describe());
    let _ = writeln!(
        text,
        "Written by `sheaf-bench online --against {} --rows {} --writers {} --readers {} --seconds {}`: transactions of \
         sysbench's write_only, and selects by key, all the time. Kept: the share of what each server does without a \
         change. Longest: of any transaction or select that meets the change.\n",
        options.against.join(","),
        options.rows,
        options.writers,
        options.readers,
        options.seconds
    );
    text.push_str(
        "| change | server | seconds | writes kept | reads kept | longest ms |\n|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        let quiet = &outcome.quiet;
        let _ = writeln!(
            text,
            "| none | {} | {:.0} | {:.0} a second | {:.0} a second | {:.0} |",
            outcome.name,
            quiet.elapsed.as_secs_f64(),
            quiet.writes_per_second,
            quiet.reads_per_second,
            quiet.longest.as_secs_f64() * 1e3
        );
    }
    for (number, change) in CHANGES.iter().enumerate() {
        for outcome in outcomes {
            let (quiet, found) = (&outcome.quiet, &outcome.changes[number]);
            let kept = |now: f64, before: f64| match found.elapsed < SHORT {
                true => "-".to_string(),
                false => format!("{:.2}", now / before.max(1e-9)),
            };
            let cells = match &found.refused {
                Some(message) => format!("{message} | | |"),
                None => format!(
                    "{:.3} | {} | {} | {:.0}",
                    found.elapsed.as_secs_f64(),
                    kept(found.writes_per_second, quiet.writes_per_second),
                    kept(found.reads_per_second, quiet.reads_per_second),
                    found.longest.as_secs_f64() * 1e3
                ),
            };
            let _ = writeln!(text, "| `{change}` | {} | {cells} |", outcome.name);
        }
    }
    text
}
