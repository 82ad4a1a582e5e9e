//! `sheaf check`: reads a whole data directory and says what is wrong with it.
//!
//! The table floor compares trees, rows and indexes ([`sheaf_table::check`]). It evaluates nothing. So an engine opens
//! the directory after that, and computes generated columns again.

use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use sheaf_cli::size::{format_size, parse_size};
use sheaf_sql::{Engine, EngineOptions, SessionInfo};
use sheaf_storage::{Storage, StorageOptions};
use sheaf_table::check::{CheckReport, Finding, check};
use sheaf_table::{Catalog, Progress};

/// Parts of the memory that go to the buffer pool; the rest is for sorting.
const POOL_SHARE: usize = 2;

#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The directory that holds the database. No server may be using it.
    #[arg(long)]
    data_dir: PathBuf,
    /// What the check may use, such as 512M or 8G.
    #[arg(long, value_parser = parse_size, default_value = "256M")]
    memory: usize,
}

/// A bar for the phase at work.
struct Bar(Mutex<ProgressBar>);

impl Progress for Bar {
    fn begin(&self, name: &str, total: Option<u64>) {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::new(total.unwrap_or(0))
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{msg:40!} {bar:30} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        bar.set_message(name.to_string());
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.finish_and_clear();
        *shown = bar;
    }

    fn advance(&self, units: u64) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .inc(units);
    }
}

/// Exit status 0: nothing is wrong; 1: something is, or the check could not be made.
pub fn run(arguments: &CheckArguments) -> Result<ExitCode, Box<dyn Error>> {
    if !arguments.data_dir.is_dir() {
        let message = format!("{}: no such directory", arguments.data_dir.display());
        return Err(message.into());
    }
    let pool_bytes = arguments.memory / POOL_SHARE;
    let options = StorageOptions {
        pool_bytes,
        ..StorageOptions::default()
    };
    let storage = Storage::open(&arguments.data_dir, options)?;
    let catalog = Catalog::open(storage.clone())?;
    let bar = Bar(Mutex::new(ProgressBar::hidden()));
    let mut report = check(&catalog, arguments.memory - pool_bytes, &bar)?;
    bar.0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .finish_and_clear();
    let generated = tables_with_generated_columns(&catalog)?;
    drop(catalog);
    storage.close()?;
    // It holds the directory.
    drop(storage);
    // What cannot be read has no values to compare.
    if report.found == 0 && !generated.is_empty() {
        check_generated_columns(arguments, &generated, &mut report)?;
    }
    for finding in &report.findings {
        println!("{}: {}", finding.object, finding.detail);
    }
    if report.found > report.findings.len() as u64 {
        println!(
            "... and {} more",
            report.found - report.findings.len() as u64
        );
    }
    println!(
        "{} tables, {} rows, {} index entries in {} trees of {} pages ({}): {}",
        report.tables,
        report.rows,
        report.index_entries,
        report.trees,
        report.pages,
        format_size(report.pages as usize * sheaf_storage::PAGE_SIZE),
        match report.found {
            0 => "no problem found".to_string(),
            1 => "1 problem".to_string(),
            found => format!("{found} problems"),
        }
    );
    Ok(if report.found == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Databases and names of tables.
type TableNames = Vec<(String, String)>;

fn tables_with_generated_columns(catalog: &Catalog) -> Result<TableNames, Box<dyn Error>> {
    let mut names = TableNames::new();
    for database in catalog.databases() {
        for table in catalog.tables(&database)? {
            if table.definition.has_generated_columns() {
                names.push((database.clone(), table.definition.name.clone()));
            }
        }
    }
    Ok(names)
}

fn check_generated_columns(
    arguments: &CheckArguments,
    tables: &TableNames,
    report: &mut CheckReport,
) -> Result<(), Box<dyn Error>> {
    let options = EngineOptions {
        memory_bytes: arguments.memory,
        ..EngineOptions::default()
    };
    let engine = Engine::open(&arguments.data_dir, options)?;
    let session = engine.session(SessionInfo::default())?;
    for (database, table) in tables {
        if let Some(detail) = session.stale_generated_column(database, table)? {
            report.found += 1;
            report.findings.push(Finding {
                object: format!("{database}.{table}"),
                detail,
            });
        }
    }
    drop(session);
    engine.close()?;
    Ok(())
}
