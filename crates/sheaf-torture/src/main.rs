//! Torture and the measurement of recovery as a program of their own: without the rest of Sheaf it is built in a
//! minute.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sheaf_torture::{command, recovery_time};

#[derive(Parser)]
#[command(
    name = "sheaf-torture",
    about = "Crashes Sheaf's storage, and looks at what is left"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Random work on a simulated machine that crashes at any disk operation.
    Torture(command::Options),
    /// How long recovery takes after a kill.
    Recovery(recovery_time::Options),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Torture(options) => command::run(&options),
        Command::Recovery(options) => recovery_time::run(&options),
    }
}
