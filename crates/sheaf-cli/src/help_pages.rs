//! `sheaf help-pages`: manual pages and completions of shells, made from the flags themselves, for packages.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::{Shell, generate_to};

#[derive(Debug, Args)]
pub struct HelpPagesArguments {
    /// The directory for the files; created if absent.
    directory: PathBuf,
}

/// Writes `sheaf.1`, a page for each command such as `sheaf-serve.1`, and completions of bash, zsh and fish.
pub fn run(
    arguments: &HelpPagesArguments,
    mut command: Command,
) -> Result<ExitCode, Box<dyn Error>> {
    fs::create_dir_all(&arguments.directory)?;
    clap_mangen::generate_to(command.clone(), &arguments.directory)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "sheaf", &arguments.directory)?;
    }
    Ok(ExitCode::SUCCESS)
}
