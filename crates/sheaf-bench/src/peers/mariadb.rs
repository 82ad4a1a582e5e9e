//! MariaDB from Debian's `mariadb-server` package, on a private data folder, with O_DIRECT.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Budget;
use super::mysql_server::MySqlServer;
use crate::error::BenchError;

const NAME: &str = "MariaDB";

/// A MariaDB server in `folder`, whose data folder is created when it is not there yet.
pub fn server(folder: PathBuf, budget: Budget) -> Result<MySqlServer, BenchError> {
    if Command::new("mariadbd")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        return Err(BenchError::server(
            NAME,
            "not installed: apt-get install mariadb-server",
        ));
    }
    fs::create_dir_all(&folder).map_err(|error| BenchError::file(&folder, error))?;
    if !folder.join("data").exists() {
        install(&folder)?;
    }
    let limit = ("max_statement_time", Duration::from_secs(1));
    MySqlServer::new(NAME, folder, budget, serve_command, limit)
}

fn install(folder: &Path) -> Result<(), BenchError> {
    let log = folder.join("install.log");
    let out = File::create(&log).map_err(|error| BenchError::file(&log, error))?;
    let status = Command::new("mariadb-install-db")
        .arg("--no-defaults")
        .arg(format!("--datadir={}", folder.join("data").display()))
        .args([
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--user=root",
        ])
        .stdout(out.try_clone().map_err(BenchError::from_display)?)
        .stderr(out)
        .status()
        .map_err(|error| BenchError::server(NAME, error))?;
    if !status.success() {
        let message = format!("mariadb-install-db failed, see {}", log.display());
        return Err(BenchError::server(NAME, message));
    }
    Ok(())
}

fn serve_command(folder: &Path, budget: Budget, port: u16) -> Result<Command, BenchError> {
    let mut command = Command::new("mariadbd");
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", folder.join("data").display()))
        .arg(format!("--socket={}", folder.join("socket").display()))
        .arg(format!("--pid-file={}", folder.join("pid").display()))
        .arg(format!("--port={port}"))
        .args([
            "--bind-address=127.0.0.1",
            "--user=root",
            "--local-infile=1",
            "--skip-name-resolve",
        ])
        .arg(format!("--innodb-buffer-pool-size={}", budget.pool_bytes))
        .args([
            "--innodb-flush-method=O_DIRECT",
            "--innodb-log-file-size=1G",
        ])
        .args([
            "--innodb-buffer-pool-dump-at-shutdown=0",
            "--innodb-buffer-pool-load-at-startup=0",
        ]);
    Ok(command)
}
