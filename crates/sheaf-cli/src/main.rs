//! The `sheaf` command: a server, a shell, a demonstration.

mod advise;
mod allocator;
mod backup;
mod check;
mod collected;
mod config;
mod demo;
mod help_pages;
mod init;
mod lessons;
mod prune;
mod restore;
mod result_printer;
mod server_connection;
mod slow_log;
mod sql_shell;
mod statement_reader;

use std::error::Error;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use sheaf_cli::{configuration, serve};
use tracing_subscriber::EnvFilter;

/// A relational database for tables that outgrow memory.
#[derive(Debug, Parser)]
#[command(name = "sheaf", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a database over the MySQL protocol.
    Serve(Box<serve::ServeArguments>),
    /// Make a database, or give the root of one a password.
    Init(init::InitArguments),
    /// Look at the options of a server.
    Config(config::ConfigArguments),
    /// Run SQL on a database of this machine, without a server.
    Sql(sql_shell::SqlArguments),
    /// Read a whole database and say what is wrong with it.
    Check(check::CheckArguments),
    /// Copy a database while it is served.
    Backup(backup::BackupArguments),
    /// Make a database of a backup and the archived log, as it was at a chosen moment.
    Restore(restore::RestoreArguments),
    /// Take out of the archived log what no backup needs any more.
    Prune(prune::PruneArguments),
    /// Ask a server which indexes the statements of a slow query log want.
    Advise(advise::AdviseArguments),
    /// Write manual pages and completions of shells.
    #[command(hide = true)]
    HelpPages(help_pages::HelpPagesArguments),
    /// Load TPC-H and show what each optimization does.
    Demo(demo::DemoArguments),
}

fn main() -> ExitCode {
    allocator::measure_statements();
    let arguments: Arguments = configuration::parse();
    // The log tells a server's operator what happens; in a shell it must not come between the answers.
    let default_level = match arguments.command {
        Command::Serve(_) | Command::Restore(_) => "info",
        Command::Sql(_)
        | Command::Demo(_)
        | Command::Init(_)
        | Command::Config(_)
        | Command::HelpPages(_)
        | Command::Check(_)
        | Command::Backup(_)
        | Command::Advise(_)
        | Command::Prune(_) => "warn",
    };
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_level)),
        )
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let result: Result<ExitCode, Box<dyn Error>> = match arguments.command {
        Command::Serve(arguments) => serve::run(*arguments),
        Command::Init(arguments) => init::run(&arguments),
        Command::Config(arguments) => config::run(&arguments),
        Command::HelpPages(arguments) => help_pages::run(&arguments, Arguments::command()),
        Command::Sql(arguments) => sql_shell::run(arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Restore(arguments) => restore::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Prune(arguments) => prune::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("sheaf: {error}");
        ExitCode::FAILURE
    })
}
