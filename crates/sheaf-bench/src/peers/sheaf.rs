//! Sheaf as a server process of its own: this very program, started with `serve`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Budget;
use super::mysql_server::MySqlServer;
use crate::error::BenchError;

/// A Sheaf server in `folder`.
pub fn server(folder: PathBuf, budget: Budget) -> Result<MySqlServer, BenchError> {
    let limit = ("max_execution_time", Duration::from_millis(1));
    MySqlServer::new("Sheaf", folder, budget, serve_command, limit)
}

fn serve_command(folder: &Path, budget: Budget, port: u16) -> Result<Command, BenchError> {
    let mut command = Command::new(std::env::current_exe().map_err(BenchError::from_display)?);
    command
        .arg("serve")
        .arg("--data-dir")
        .arg(folder.join("data"))
        .arg("--listen")
        .arg(format!("127.0.0.1:{port}"))
        .arg("--memory")
        .arg(budget.memory_bytes.to_string())
        .arg("--pool")
        .arg(budget.pool_bytes.to_string())
        // Some clients encrypt whenever the server can, and the peers cannot.
        .args(["--tls", "off"]);
    Ok(command)
}
