//! The same transactions by threads of the process that has the database: what the engine does without a network, a
//! protocol, or a commit that waits for the disk (`sync_log = interval`).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process;

use sheaf::{Database, StorageOptions, SyncLog};

use super::client::{Client, LIBRARY, LibraryClient};
use super::transactions::Terminal;
use super::{CONTRADICTIONS, DATABASE, Measured, Options, schema, work};
use crate::error::BenchError;
use crate::machine;
use crate::reference::write_section;

/// Runs the measurement and writes its table.
pub(super) fn run(options: &Options, directory: &Path) -> Result<(), BenchError> {
    let directory = directory.join("tpcc-library");
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(BenchError::file(&directory, error));
        }
        _ => {}
    }
    fs::create_dir_all(&directory).map_err(|error| BenchError::file(&directory, error))?;
    let database = Database::open(
        directory.join("data"),
        sheaf::Options::default()
            .with_memory_bytes(2 * options.memory)
            .with_pool_bytes(options.memory)
            .with_storage(StorageOptions {
                sync_log: SyncLog::Interval,
                ..StorageOptions::default()
            }),
    )
    .map_err(failed)?;
    load(&database, options.warehouses, &directory)?;
    let mut results = Vec::new();
    for &clients in &options.clients {
        let terminals = (0..clients)
            .map(|number| {
                let client = Client::Library(Box::new(LibraryClient::new(&database)?));
                Ok(Terminal::new(client, number, clients, options.warehouses))
            })
            .collect::<Result<Vec<_>, BenchError>>()?;
        let used = || machine::processor_time_of_family(process::id());
        results.push(work(options, LIBRARY, terminals, &used)?);
    }
    check(&database)?;
    database.close().map_err(failed)?;
    let text = report(options, &results);
    println!("{text}");
    if options.out.as_os_str() != "-" {
        write_section(&options.out, &text)?;
    }
    Ok(())
}

fn failed(error: sheaf::Error) -> BenchError {
    BenchError::server(LIBRARY, error)
}

/// Creates the tables and fills them.
fn load(database: &Database, warehouses: u64, directory: &Path) -> Result<(), BenchError> {
    let mut session = database.connect().map_err(failed)?;
    let mut run = |statement: &str| session.execute(statement).map(drop).map_err(failed);
    run(&format!("create database {DATABASE}"))?;
    run(&format!("use {DATABASE}"))?;
    for statement in schema::SCHEMA {
        run(statement)?;
    }
    let rows = directory.join("rows");
    for table in schema::TABLES {
        eprintln!("{LIBRARY}: filling {table}");
        let file = fs::File::create(&rows);
        file.and_then(|mut file| {
            std::io::copy(&mut schema::Rows::new(table, warehouses), &mut file)
        })
        .map_err(|error| BenchError::file(&rows, error))?;
        run(&format!(
            "load data local infile '{}' into table {table}",
            rows.display()
        ))?;
    }
    fs::remove_file(&rows).map_err(|error| BenchError::file(&rows, error))?;
    run(&format!("analyze table {}", schema::TABLES.join(", ")))
}

fn check(database: &Database) -> Result<(), BenchError> {
    let mut session = database.connect().map_err(failed)?;
    session
        .execute(&format!("use {DATABASE}"))
        .map_err(failed)?;
    for (number, query) in (1..).zip(CONTRADICTIONS) {
        let found = session.query(query).map_err(failed)?;
        if found.iter().any(|batch| batch.num_rows() > 0) {
            return Err(BenchError::server(
                LIBRARY,
                format!("consistency condition {number} does not hold"),
            ));
        }
    }
    Ok(())
}

fn report(options: &Options, results: &[Measured]) -> String {
    let mut text = format!(
        "## TPC-C in the library, {} warehouses\n\n",
        options.warehouses
    );
    let _ = writeln!(text, "{}.  ", machine::today());
    let _ = writeln!(text, "Machine: {}.  ", machine::describe());
    let clients: Vec<String> = options.clients.iter().map(u64::to_string).collect();
    let _ = writeln!(
        text,
        "Written by `sheaf-bench tpcc --in-process --warehouses {} --clients {} --seconds {}`: the five transactions by threads \
         of the process that has the database, READ COMMITTED, prepared statements, sync_log = interval. The processor time is \
         that of the whole process: clients, database and background threads. The consistency conditions 1 to 4 held \
         afterwards.\n",
        options.warehouses,
        clients.join(","),
        options.seconds
    );
    let _ = writeln!(
        text,
        "| threads | transactions a second | transactions a second and core used | new order p50 / p95 / p99 ms | us of processor \
         a transaction | done again |\n|---|---|---|---|---|---|"
    );
    for Measured {
        clients,
        driven,
        conflicts,
    } in results
    {
        let _ = writeln!(
            text,
            "| {clients} | {:.0} | {:.0} | {:.3} / {:.3} / {:.3} | {:.0} | {conflicts} |",
            driven.per_second(),
            1e6 / driven.server_us(),
            driven.quantile_ms(0, 0.5),
            driven.quantile_ms(0, 0.95),
            driven.quantile_ms(0, 0.99),
            driven.server_us(),
        );
    }
    text
}
