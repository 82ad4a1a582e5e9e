//! `sheaf config`: what the options of a server are, without a server.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use sheaf_cli::configuration::{
    environment, file_of_environment, overview, said_in_environment, said_in_file,
};
use sheaf_cli::serve;

#[derive(Debug, Args)]
pub struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Read a configuration file and the environment as `sheaf serve` does, and print each option with its value and
    /// where it is said. Says each fault, and fails if there is one. What depends on the machine, such as whether a
    /// directory can be written, is tested at the start.
    Check {
        /// The file; without it, that of SHEAF_CONFIG, or the environment alone.
        file: Option<PathBuf>,
    },
}

pub fn run(arguments: &ConfigArguments) -> Result<ExitCode, Box<dyn Error>> {
    let ConfigCommand::Check { file } = &arguments.command;
    let serve = serve::options();
    let environment = environment();
    let file = file.clone().or_else(|| file_of_environment(&environment));
    let mut said = Vec::new();
    let mut is_right = true;
    let sources = [
        file.as_ref().map(|file| said_in_file(&serve, file)),
        Some(said_in_environment(&serve, &environment)),
    ];
    for source in sources.into_iter().flatten() {
        match source {
            Ok(more) => said.extend(more),
            Err(faults) => {
                is_right = false;
                eprintln!("{faults}");
            }
        }
    }
    if is_right {
        for fault in serve::faults(&said) {
            is_right = false;
            eprintln!("{fault}");
        }
    }
    if !is_right {
        return Ok(ExitCode::FAILURE);
    }
    let lines = overview(&serve, &said);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let (names, values) = (width(0).unwrap_or_default(), width(1).unwrap_or_default());
    for [name, value, source] in &lines {
        println!("{name:names$}  {value:values$}  {source}");
    }
    Ok(ExitCode::SUCCESS)
}
