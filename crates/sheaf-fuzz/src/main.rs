//! Compares a Sheaf server and another one that run already; `sheaf-bench fuzz` starts both itself.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(
    name = "sheaf-fuzz",
    about = "Compares random statements of two servers"
)]
struct Arguments {
    /// Sheaf's address, HOST:PORT.
    #[arg(long)]
    sheaf: String,
    /// The judge's address, HOST:PORT. Without a judge, Sheaf is compared with itself.
    #[arg(long)]
    judge: Option<String>,
    #[command(flatten)]
    options: sheaf_fuzz::command::Options,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    sheaf_fuzz::command::run(
        &arguments.options,
        &arguments.sheaf,
        arguments.judge.as_deref(),
    )
}
