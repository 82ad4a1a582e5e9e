//! `sheaf demo`: TPC-H, with each optimization on and off.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::size::parse_size;

#[derive(Debug, Args)]
pub struct DemoArguments {
    /// TPC-H scale factor; 1 is 1 GB of data.
    #[arg(long, default_value_t = 0.1)]
    pub scale: f64,
    /// What the process may use, such as 64M.
    #[arg(long, value_parser = parse_size, default_value = "64M")]
    pub memory: usize,
    /// Where to keep the data; a temporary directory if absent.
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// Serve the data over the MySQL protocol afterwards.
    #[arg(long)]
    pub serve: bool,
}

pub fn run(_arguments: &DemoArguments) -> Result<ExitCode, Box<dyn Error>> {
    Err(
        "the demonstration is not part of this version yet; `sheaf serve` and `sheaf sql` are"
            .into(),
    )
}
