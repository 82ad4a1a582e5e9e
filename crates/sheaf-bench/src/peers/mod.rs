//! The servers that a benchmark compares: Sheaf, and its peers from Debian's packages.
//!
//! Each is a real process with a data folder of its own, started with the same budget. A peer that is not
//! installed is left out with a message that says what to install.

pub mod mariadb;
pub mod mysql_client;
pub mod mysql_server;
pub mod postgres;
pub mod sheaf;
pub mod wire_client;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::data;
use crate::error::BenchError;

/// What a server may use.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Memory of the whole process, where the server can bound it, in bytes.
    pub memory_bytes: u64,
    /// Buffer pool, in bytes.
    pub pool_bytes: u64,
}

/// The rows of a result as text, for comparing answers between servers.
pub type TextRows = Vec<Vec<Option<String>>>;

/// One statement's outcome: how long the client waited, and what came back.
pub struct Timed {
    /// From sending the statement to having its last row.
    pub elapsed: Duration,
    /// The rows as text; NULL is `None`.
    pub rows: TextRows,
}

/// How another program reaches a running server.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// sysbench's name of the protocol.
    pub sysbench_driver: &'static str,
    pub port: u16,
    /// The server's process; 0 if it does not run.
    pub process: u32,
}

/// A server under comparison.
pub trait Server {
    /// The name that tables print.
    fn name(&self) -> &'static str;
    /// The version that the running server reports.
    fn version(&mut self) -> Result<String, BenchError>;
    /// Starts the server on its data folder and returns when it answers. Its cache is empty.
    fn start(&mut self) -> Result<(), BenchError>;
    /// Stops the server cleanly and returns when its process has ended.
    fn stop(&mut self) -> Result<(), BenchError>;
    /// Creates the TPC-H schema with all its indexes and loads the `.tbl` files of `folder`.
    fn load(&mut self, folder: &Path) -> Result<(), BenchError>;
    /// Runs `sql` in a fresh session after `settings`; only `sql` is timed.
    fn run(&mut self, sql: &str, settings: &[&str]) -> Result<Timed, BenchError>;
    /// Counters of the last statement that say what it read, by name; empty where the server has none.
    fn counters(&self) -> &[(String, u64)];
    /// Peak resident memory since the start, in bytes.
    fn peak_memory_bytes(&self) -> u64;
    /// Where a running server is found.
    fn endpoint(&self) -> Endpoint;
    /// Where the server's log ends, in bytes: what a transaction moves it by is what the transaction logged, before
    /// compression and without padding.
    fn log_position(&mut self) -> Result<u64, BenchError>;
    /// Makes an empty database, in place of one of that name.
    fn recreate_database(&mut self, name: &str) -> Result<(), BenchError>;
    /// True when the server understands MySQL's switches, so that a case's variants differ.
    fn has_switches(&self) -> bool;
    /// The setting that lets no query of a session take longer; then [`Server::run`] fails with
    /// [`BenchError::TimedOut`].
    fn limit_statements(&self, limit: Duration) -> String;
}

/// Sheaf and the peers that are called `against`, in that order, with data in folders of `work` named after the server
/// and `data`. Each has a buffer pool of `pool_bytes`, and Sheaf's whole process twice that.
pub fn servers(
    work: &Path,
    data: &str,
    against: &[String],
    pool_bytes: u64,
) -> Result<Vec<Box<dyn Server>>, BenchError> {
    let budget = Budget {
        memory_bytes: pool_bytes * 2,
        pool_bytes,
    };
    let folder = |name: &str| work.join(format!("{name}-{data}"));
    let mut servers: Vec<Box<dyn Server>> = vec![Box::new(sheaf::server(folder("sheaf"), budget)?)];
    for peer in against {
        servers.push(match peer.as_str() {
            "mariadb" => Box::new(mariadb::server(folder(peer), budget)?),
            "postgres" => Box::new(postgres::Postgres::new(folder(peer), budget)?),
            other => {
                return Err(BenchError::Other(format!(
                    "no peer is called {other}: mariadb, postgres"
                )));
            }
        });
    }
    Ok(servers)
}

/// Loads TPC-H at `scale` into a running server of [`servers`] whose data is named after the scale, unless that was
/// done before. Returns whether it was done now.
pub fn load_tpch_once(
    work: &Path,
    scale: f64,
    server: &mut dyn Server,
) -> Result<bool, BenchError> {
    let mark = work.join(format!("loaded-{}-{scale}", server.name()));
    let is_new = !mark.exists();
    if is_new {
        let tbl = data::tbl_folder(work, scale)?;
        eprintln!("loading {}", server.name());
        server.load(&tbl)?;
        fs::write(&mark, "").map_err(|error| BenchError::file(&mark, error))?;
    }
    Ok(is_new)
}

/// As [`servers`], for a benchmark whose clients speak the MySQL protocol only.
pub fn mysql_servers(
    work: &Path,
    data: &str,
    against: &[String],
    pool_bytes: u64,
) -> Result<Vec<Box<dyn Server>>, BenchError> {
    match against.iter().find(|peer| *peer != "mariadb") {
        Some(other) => Err(BenchError::Other(format!(
            "{data} speaks the MySQL protocol; {other} does not: mariadb"
        ))),
        None => servers(work, data, against, pool_bytes),
    }
}

/// A port on the loopback interface that is free right now.
pub fn free_port() -> Result<u16, BenchError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(BenchError::from_display)
}

/// Seconds that a server gets to answer after its start, and to end after it was told to.
const START_STOP_LIMIT: Duration = Duration::from_secs(120);

/// Waits until something listens on `port`, or the process has ended.
pub fn wait_until_listening(
    server: &'static str,
    child: &mut Child,
    port: u16,
) -> Result<(), BenchError> {
    let deadline = Instant::now() + START_STOP_LIMIT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if let Some(status) = child.try_wait().map_err(BenchError::from_display)? {
            return Err(BenchError::server(
                server,
                format!("ended while starting: {status}"),
            ));
        }
        if Instant::now() > deadline {
            return Err(BenchError::server(
                server,
                format!("does not listen on port {port}"),
            ));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Asks the process to end with `signal` and waits for it.
pub fn end_process(server: &'static str, child: &mut Child, signal: i32) -> Result<(), BenchError> {
    let process = i32::try_from(child.id()).map_err(BenchError::from_display)?;
    // SAFETY: kill has no memory effects here; the process is our child and has not been waited for, so its
    // number cannot belong to another process.
    unsafe { libc::kill(process, signal) };
    let deadline = Instant::now() + START_STOP_LIMIT;
    loop {
        if child
            .try_wait()
            .map_err(BenchError::from_display)?
            .is_some()
        {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(BenchError::server(
                server,
                "does not end after it was told to",
            ));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Empties the operating system's page cache where this process may, for servers that read through it.
pub fn drop_operating_system_cache() {
    // SAFETY: sync takes no arguments and touches no memory of this process.
    unsafe { libc::sync() };
    // Without the right to write here the cache stays warm; the results name the server as buffered.
    let _ = std::fs::write("/proc/sys/vm/drop_caches", "3");
}
