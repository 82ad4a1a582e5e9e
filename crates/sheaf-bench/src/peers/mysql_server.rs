//! A server process that speaks the MySQL protocol: what Sheaf and MariaDB have in common as peers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use super::{
    Budget, Endpoint, Server, Timed, end_process, free_port, mysql_client, wait_until_listening,
};
use crate::error::BenchError;
use crate::machine;

/// Builds the command that serves the data under a folder, within a budget, on a port.
pub type ServeCommand = fn(folder: &Path, budget: Budget, port: u16) -> Result<Command, BenchError>;

/// One MySQL-protocol server of this run.
pub struct MySqlServer {
    name: &'static str,
    folder: PathBuf,
    budget: Budget,
    command: ServeCommand,
    /// The variable that limits a query's time, and its unit.
    limit: (&'static str, Duration),
    port: u16,
    process: Option<Child>,
    counters: Vec<(String, u64)>,
}

impl MySqlServer {
    /// Prepares a server whose data and log live in `folder`. `limit` is the variable that limits a query's time, and
    /// its unit.
    pub fn new(
        name: &'static str,
        folder: PathBuf,
        budget: Budget,
        command: ServeCommand,
        limit: (&'static str, Duration),
    ) -> Result<Self, BenchError> {
        fs::create_dir_all(&folder).map_err(|error| BenchError::file(&folder, error))?;
        Ok(Self {
            name,
            folder,
            budget,
            command,
            limit,
            port: 0,
            process: None,
            counters: Vec::new(),
        })
    }
}

impl Server for MySqlServer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&mut self) -> Result<String, BenchError> {
        let mut session = mysql_client::connect(self.name, self.port, None)?;
        let version: Option<String> =
            mysql::prelude::Queryable::query_first(&mut session, "select version()")
                .map_err(|error| BenchError::server(self.name, error))?;
        Ok(version.unwrap_or_default())
    }

    fn start(&mut self) -> Result<(), BenchError> {
        self.port = free_port()?;
        let log = self.folder.join("server.log");
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(|error| BenchError::file(&log, error))?;
        let mut child = (self.command)(&self.folder, self.budget, self.port)?
            .stdout(out.try_clone().map_err(BenchError::from_display)?)
            .stderr(out)
            .spawn()
            .map_err(|error| BenchError::server(self.name, error))?;
        let listening = wait_until_listening(self.name, &mut child, self.port);
        self.process = Some(child);
        listening
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        match self.process.take() {
            Some(mut child) => end_process(self.name, &mut child, libc::SIGTERM),
            None => Ok(()),
        }
    }

    fn load(&mut self, folder: &Path) -> Result<(), BenchError> {
        mysql_client::load(self.name, self.port, folder)
    }

    fn run(&mut self, sql: &str, settings: &[&str]) -> Result<Timed, BenchError> {
        let (timed, counters) = mysql_client::run(self.name, self.port, sql, settings)?;
        self.counters = counters;
        Ok(timed)
    }

    fn counters(&self) -> &[(String, u64)] {
        &self.counters
    }

    fn peak_memory_bytes(&self) -> u64 {
        self.process
            .as_ref()
            .and_then(|child| machine::peak_resident_bytes(child.id()))
            .unwrap_or(0)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            sysbench_driver: "mysql",
            port: self.port,
            process: self.process.as_ref().map_or(0, Child::id),
        }
    }

    fn log_position(&mut self) -> Result<u64, BenchError> {
        let mut session = mysql_client::connect(self.name, self.port, None)?;
        let status: Option<(String, u64)> = mysql::prelude::Queryable::query_first(
            &mut session,
            "show global status like 'Innodb_lsn_current'",
        )
        .map_err(|error| BenchError::server(self.name, error))?;
        Ok(status.map_or(0, |(_, position)| position))
    }

    fn recreate_database(&mut self, name: &str) -> Result<(), BenchError> {
        let mut session = mysql_client::connect(self.name, self.port, None)?;
        for sql in [
            format!("drop database if exists {name}"),
            format!("create database {name}"),
        ] {
            mysql::prelude::Queryable::query_drop(&mut session, sql)
                .map_err(|error| BenchError::server(self.name, error))?;
        }
        Ok(())
    }

    fn has_switches(&self) -> bool {
        true
    }

    fn limit_statements(&self, limit: Duration) -> String {
        let (variable, unit) = self.limit;
        format!(
            "set {variable} = {}",
            limit.as_nanos().div_ceil(unit.as_nanos())
        )
    }
}

impl Drop for MySqlServer {
    fn drop(&mut self) {
        // Nothing is left to report to; a server that does not end is visible in the process list.
        let _ = self.stop();
    }
}
