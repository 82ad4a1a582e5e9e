//! `sheaf serve`: the server process, from start to a clean end.
//!
//! ```text
//!   start    open the database, set variables, begin replication, serve metrics, listen, start the console
//!   SIGHUP   set the variables of the configuration file again; without a file it is an end
//!   end      SIGTERM, SIGINT or SHUTDOWN: running statements may finish for a while, then the database is closed
//! ```
//!
//! A server does not start if other machines could log in to an administrator without a password, or if no client could
//! log in.

use std::error::Error;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, FromArgMatches};
use sheaf_memory::keep_within;
use sheaf_server::{
    ConsoleServer, MetricsServer, Server, ServerOptions, TlsOptions, let_replicate,
};
use sheaf_sql::{Engine, EngineOptions, MIN_MEMORY_BYTES, faults_of_globals};
use sheaf_storage::{DATA_FILE, FILL_FACTORS, StorageOptions, SyncLog};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::configuration::{self, Assignment, Said};
use crate::size::{format_size, parse_size};
use sheaf_archive::open_archive;

/// Options of a server. Each may also stand in a file and in the environment; see [`configuration`].
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct ServeArguments {
    /// A file (TOML) of options, by the names of these flags, and of system variables; SIGHUP reads it again.
    /// SHEAF_CONFIG names it, too. An option may stand in the environment: SHEAF_MEMORY for --memory. Flags count
    /// before the environment, and that before the file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A system variable, set as SET GLOBAL does. May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<Assignment>,
    /// The directory that holds the database; created if absent.
    #[arg(long)]
    data_dir: PathBuf,
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3306", value_parser = parse_address)]
    listen: SocketAddr,
    /// A Unix socket to listen on as well.
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Whether clients may use TLS: auto, with a certificate that the server makes for itself if none is given, or off.
    #[arg(long, value_enum, default_value_t = Tls::Auto)]
    tls: Tls,
    /// The server's certificate in PEM, for clients that use TLS.
    #[arg(long, requires = "tls_key", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, requires = "tls_cert", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Refuse connections over the network that do not use TLS.
    #[arg(long)]
    require_secure_transport: bool,
    /// Listen beyond this machine although an account that administers the server has no password.
    #[arg(long)]
    allow_open_accounts: bool,
    /// What the whole process may use, such as 512M or 8G.
    #[arg(long, value_parser = parse_memory, default_value = "512M")]
    memory: usize,
    /// The buffer pool's share of the memory; by default the engine decides.
    #[arg(long, value_parser = parse_size)]
    pool: Option<usize>,
    /// Clients that may be connected at the same time.
    #[arg(long, default_value_t = 151, value_parser = parse_count)]
    max_connections: usize,
    /// Digests of statements that performance_schema counts; 0 turns that off.
    #[arg(long, default_value_t = EngineOptions::default().digests, value_name = "DIGESTS")]
    performance_schema_digests_size: usize,
    /// An address for monitoring: GET /metrics (OpenMetrics), /health and /ready. There are no accounts and no TLS.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    metrics: Option<SocketAddr>,
    /// An address of this machine for the console: a page for people who log in with an account, beside /metrics,
    /// /health and /ready. Without this option there is none.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_console_address)]
    http: Option<SocketAddr>,
    /// The only directory of the server from which LOAD DATA INFILE (without LOCAL) may read; '' allows every file that
    /// the server can read. Without this option there is none.
    #[arg(long, value_name = "DIR", value_parser = parse_secure_file_priv)]
    secure_file_priv: Option<PathBuf>,
    #[command(flatten)]
    storage: StorageArguments,
    /// Seconds that running statements may take to finish after SIGTERM or SIGINT.
    #[arg(long, default_value_t = 10)]
    drain_seconds: u64,
    /// Do not start the replica that ran when the server ended: START REPLICA does.
    #[arg(long)]
    skip_replica_start: bool,
}

/// What `--tls` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Tls {
    Auto,
    Off,
}

impl ServeArguments {
    fn engine_options(&self, storage: StorageOptions) -> EngineOptions {
        EngineOptions {
            memory_bytes: self.memory,
            pool_bytes: self.pool,
            max_connections: self.max_connections,
            digests: self.performance_schema_digests_size,
            require_secure_transport: self.require_secure_transport,
            secure_file_priv: self.secure_file_priv.clone(),
            port: self.listen.port(),
            storage,
            ..EngineOptions::default()
        }
    }

    /// The certificate for clients, and one line about it. The database's directory is there.
    fn tls_options(&self) -> std::io::Result<Option<TlsOptions>> {
        let given = self.tls_cert.clone().zip(self.tls_key.clone());
        if self.tls == Tls::Off {
            tracing::info!("TLS is off, as --tls says: clients cannot encrypt what they send");
            return Ok(None);
        }
        let options = match given {
            Some((certificate, key)) => TlsOptions { certificate, key },
            None => TlsOptions::self_signed(&self.data_dir)?,
        };
        let certificate = options.certificate.display();
        tracing::info!(%certificate, "clients may use TLS");
        Ok(Some(options))
    }
}

/// Durability, log, archive, and limits of the storage.
#[derive(Debug, Args)]
struct StorageArguments {
    /// When commits wait for the disk: a crash may lose nothing (on), the last half second and the time
    /// of a write (interval), or all since the last checkpoint (off).
    #[arg(long, value_parser = parse_sync_log, default_value = "on", value_name = "on|interval|off")]
    sync_log: SyncLog,
    /// Seconds that recovery after a crash should take at most; shorter means more writing.
    #[arg(long, default_value_t = 10.0, value_parser = parse_seconds, value_name = "SECONDS")]
    recovery_time_goal: f64,
    /// The log is kept about this short by checkpoints.
    #[arg(long, value_parser = parse_size, default_value = "1G")]
    log_limit: usize,
    /// Where to keep the whole log, for restoring any moment: a folder, or a bucket such as s3://bucket/prefix.
    #[arg(long, value_name = "DIR-or-URL")]
    archive_to: Option<String>,
    /// Seconds that log waits for the archive at most.
    #[arg(long, default_value_t = 10.0, value_parser = parse_seconds, value_name = "SECONDS")]
    archive_interval: f64,
    /// Log that may wait for the archive; beyond it nothing can be changed until the archive has caught up.
    #[arg(long, value_parser = parse_size, default_value = "8G")]
    archive_lag_limit: usize,
    /// Write a binary log in MySQL's format, for mysqlbinlog and others that read it: binlog.000001 and so on, in the
    /// data directory.
    #[arg(long)]
    log_bin: bool,
    /// Log that may wait for the binary log; beyond it nothing can be changed until the files have caught up.
    #[arg(long, value_parser = parse_size, default_value = "8G")]
    binlog_lag_limit: usize,
    /// What a transaction may change, by the size of the rows before.
    #[arg(long, value_parser = parse_size, default_value = "16G")]
    max_transaction_log: usize,
    /// Log that may be kept because of one transaction; beyond it the transaction's session is ended.
    #[arg(long, value_parser = parse_size, default_value = "64G")]
    max_pinned_log: usize,
    /// What old row versions and the undo of long transactions may take on disk, beside their memory.
    #[arg(long, value_parser = parse_size, default_value = "64G")]
    max_spill: usize,
    /// What temporary files of all statements together may take on disk: sorts, hash tables, cursors, rows to change,
    /// index builds.
    #[arg(long, value_parser = parse_size, default_value = "1T")]
    max_temp: usize,
    /// Explicit row locks of all transactions together; fewer where they would take more than a quarter of --memory.
    #[arg(long, default_value_t = StorageOptions::default().max_row_locks)]
    max_row_locks: usize,
    /// How full bulk loads and index builds fill pages, 0.5 to 1.
    #[arg(long, default_value_t = StorageOptions::default().fill_factor, value_parser = parse_fill_factor)]
    fill_factor: f32,
}

impl StorageArguments {
    fn options(&self) -> Result<StorageOptions, Box<dyn Error>> {
        let archive = self.archive_to.as_deref().map(open_archive).transpose()?;
        if let Some(place) = &self.archive_to {
            tracing::info!("the log is archived to {place}");
        }
        Ok(StorageOptions {
            archive,
            ..self.options_without_archive()?
        })
    }

    /// Nothing is opened.
    fn options_without_archive(&self) -> Result<StorageOptions, Box<dyn Error>> {
        Ok(StorageOptions {
            sync_log: self.sync_log,
            recovery_time_goal: Duration::try_from_secs_f64(self.recovery_time_goal)?,
            log_limit_bytes: self.log_limit as u64,
            archive_interval: Duration::try_from_secs_f64(self.archive_interval)?,
            archive_lag_limit_bytes: self.archive_lag_limit as u64,
            follow_changes: self.log_bin,
            follow_lag_limit_bytes: self.binlog_lag_limit as u64,
            max_transaction_log_bytes: self.max_transaction_log,
            max_pinned_log_bytes: self.max_pinned_log as u64,
            max_spill_bytes: self.max_spill as u64,
            max_temp_bytes: self.max_temp as u64,
            max_row_locks: self.max_row_locks,
            fill_factor: self.fill_factor,
            ..StorageOptions::default()
        })
    }
}

fn parse_sync_log(text: &str) -> Result<SyncLog, String> {
    match text {
        "on" => Ok(SyncLog::On),
        "interval" => Ok(SyncLog::Interval),
        "off" => Ok(SyncLog::Off),
        _ => Err(format!("'{text}' is none of on, interval and off")),
    }
}

pub fn run(arguments: ServeArguments) -> Result<ExitCode, Box<dyn Error>> {
    keep_within(arguments.memory);
    let storage = arguments.storage.options()?;
    let is_new = !is_database(&arguments.data_dir);
    let engine = Engine::open(&arguments.data_dir, arguments.engine_options(storage))?;
    let outcome = serve(&engine, &arguments, is_new);
    if outcome.is_err() {
        // The fault is reported; the database is left as it was.
        let _ = engine.close();
    }
    outcome
}

fn serve(
    engine: &Arc<Engine>,
    arguments: &ServeArguments,
    is_new: bool,
) -> Result<ExitCode, Box<dyn Error>> {
    set_variables(engine, &arguments.set)?;
    refuse_open_accounts(engine, arguments)?;
    engine.start_maintenance()?;
    let_replicate(engine);
    engine.begin_replication(arguments.skip_replica_start)?;
    tracing::info!(data_dir = %arguments.data_dir.display(), memory = format_size(arguments.memory), "opened");
    let metrics = arguments
        .metrics
        .map(|address| MetricsServer::start(engine, address))
        .transpose()?;
    if let Some(metrics) = &metrics {
        tracing::info!(address = %metrics.address(), "metrics are at /metrics");
    }
    let options = ServerOptions {
        listen: Some(arguments.listen),
        socket: arguments.socket.clone(),
        tls: arguments.tls_options()?,
        ..ServerOptions::default()
    };
    refuse_to_let_nobody_in(engine, &options)?;
    let run = Run {
        drain_time: Duration::from_secs(arguments.drain_seconds),
        config: arguments.config.clone(),
        console: arguments.http,
        set_elsewhere: set_elsewhere(arguments)?,
        is_new,
    };
    run.until_signal(engine, options)?;
    Ok(ExitCode::SUCCESS)
}

/// Sets system variables, all or none, and says in the log what SET warns of.
fn set_variables(engine: &Arc<Engine>, variables: &[Assignment]) -> Result<(), Box<dyn Error>> {
    let warnings = engine
        .set_globals(&pairs(variables))
        .map_err(|faults| faults.join("\n"))?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Ok(())
}

fn pairs(variables: &[Assignment]) -> Vec<(&str, &str)> {
    variables
        .iter()
        .map(|one| (one.name.as_str(), one.value.as_str()))
        .collect()
}

/// What is wrong with options that are right one by one, and with the system variables, as the engine would say when it
/// is opened.
pub fn faults(said: &[Said]) -> Vec<String> {
    // The directory may be said on the command line.
    let directory = std::iter::once("--data-dir=.".into());
    let flags = directory.chain(said.iter().map(Said::flag));
    let options = options().no_binary_name(true);
    let parsed = options
        .try_get_matches_from(flags)
        .and_then(|matches| ServeArguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return vec![error.to_string()],
    };
    let mut faults = Vec::new();
    let options = arguments.storage.options_without_archive();
    let checked = options.and_then(|options| Ok(arguments.engine_options(options).check()?));
    if let Err(error) = checked {
        faults.push(error.to_string());
    }
    let sources: Vec<&Said> = said.iter().filter(|one| one.is_variable()).collect();
    for (place, fault) in faults_of_globals(&pairs(&arguments.set)) {
        let source = sources.get(place).map(|one| one.source.to_string());
        faults.push(format!("{}: {fault}", source.unwrap_or_default()));
    }
    faults
}

/// An administrator without a password must not be reachable from other machines by mistake.
fn refuse_open_accounts(engine: &Engine, arguments: &ServeArguments) -> Result<(), Box<dyn Error>> {
    if arguments.listen.ip().is_loopback() || arguments.allow_open_accounts {
        return Ok(());
    }
    let Some(account) = engine.open_accounts().into_iter().next() else {
        return Ok(());
    };
    Err(format!(
        "{account} administers the server and has no password, and --listen {} lets other machines in; give it one \
         with `sheaf init --secure --data-dir {}`, or say --allow-open-accounts",
        arguments.listen,
        arguments.data_dir.display()
    )
    .into())
}

/// `require_secure_transport` may have been persisted while there was TLS.
fn refuse_to_let_nobody_in(engine: &Engine, options: &ServerOptions) -> Result<(), Box<dyn Error>> {
    let is_secure = options.tls.is_some() || options.socket.is_some();
    match engine.requires_secure_transport() && !is_secure {
        true => Err("require_secure_transport is on, and --tls off without --socket leaves no secure transport: nobody \
                     could connect; start with --tls auto or --socket, and set it off there if clients shall come \
                     without"
            .into()),
        false => Ok(()),
    }
}

/// Whether there is a database in the directory.
pub fn is_database(directory: &Path) -> bool {
    directory.join(DATA_FILE).exists()
}

/// How a server runs until it is told to end.
#[derive(Debug, Default)]
pub struct Run {
    /// How long running statements may take to finish.
    pub drain_time: Duration,
    /// The file whose system variables are set again at SIGHUP. Without one, SIGHUP ends the server, as SIGTERM does.
    pub config: Option<PathBuf>,
    /// System variables that the environment or a flag sets: what the file says of them does not count.
    pub set_elsewhere: Vec<String>,
    /// Where the console listens, if it does.
    pub console: Option<SocketAddr>,
    /// Whether the database has just been made.
    pub is_new: bool,
}

impl Run {
    /// Serves an engine until a signal or SHUTDOWN, then closes it, so that a reopened one finds everything.
    ///
    /// # Errors
    /// Those of listening, after which the engine is closed, and of closing.
    pub fn until_signal(
        &self,
        engine: &Arc<Engine>,
        options: ServerOptions,
    ) -> Result<(), Box<dyn Error>> {
        // Before listening, so that a signal to a server that is ready never ends it the hard way.
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let handle = signals.handle();
        engine.on_shutdown_request(move || handle.close());
        let (listen, socket) = (options.listen, options.socket.clone());
        let server = match Server::start(Arc::clone(engine), options) {
            Ok(server) => server,
            Err(error) => {
                engine.close()?;
                let address = listen
                    .map(|address| address.to_string())
                    .unwrap_or_default();
                return Err(format!("cannot listen on {address}: {error}").into());
            }
        };
        let console = match start_console(engine, self.console) {
            Ok(console) => console,
            Err(error) => {
                server.shut_down(Duration::ZERO);
                engine.close()?;
                return Err(error);
            }
        };
        let address = server.local_address();
        let path = socket.map(|path| path.display().to_string());
        let shown = address.map(|address| address.to_string());
        let places: Vec<String> = shown.into_iter().chain(path).collect();
        println!(
            "Sheaf {} is ready for connections on {}",
            env!("CARGO_PKG_VERSION"),
            places.join(" and ")
        );
        if self.is_new {
            say_what_is_next(address);
        }

        // Later signals change nothing: everything below is bounded in time.
        for signal in signals.forever() {
            match &self.config {
                Some(file) if signal == SIGHUP => {
                    set_variables_again(engine, file, &self.set_elsewhere);
                }
                _ => break,
            }
        }
        tracing::info!(connections = server.connections(), "shutting down");
        let began = Instant::now();
        engine.begin_shutdown();
        if !server.shut_down(self.drain_time) {
            tracing::warn!("some connections did not end in time");
        }
        if let Some(console) = console {
            console.shut_down(self.drain_time.saturating_sub(began.elapsed()));
        }
        engine.close()?;
        tracing::info!("closed");
        Ok(())
    }
}

fn start_console(
    engine: &Arc<Engine>,
    address: Option<SocketAddr>,
) -> Result<Option<ConsoleServer>, Box<dyn Error>> {
    let Some(address) = address else {
        return Ok(None);
    };
    let console = ConsoleServer::start(engine, address)
        .map_err(|error| format!("cannot listen on {address}, as --http says: {error}"))?;
    tracing::info!("the console is at http://{}", console.address());
    Ok(Some(console))
}

/// Three things that the owner of a new database wants to do.
fn say_what_is_next(address: Option<SocketAddr>) {
    let client = match address {
        Some(address) => format!("mariadb -h 127.0.0.1 -P {} -u root", address.port()),
        None => "mariadb -u root --socket SOCKET".into(),
    };
    // A parent that has read the first line may have closed the pipe.
    let _ = writeln!(
        std::io::stdout(),
        "The database is new. Next:\n  \
         give root a password:    {client} -e \"ALTER USER root@localhost IDENTIFIED BY '...'\"\n  \
         make a database:         {client} -p -e \"CREATE DATABASE shop\"\n  \
         keep copies of it:       sheaf backup --help"
    );
}

/// The names of system variables that stand behind those of the file: the environment and flags come later.
fn set_elsewhere(arguments: &ServeArguments) -> Result<Vec<String>, Box<dyn Error>> {
    let of_file = match &arguments.config {
        Some(file) => configuration::variables_of_file(&options(), file)?.len(),
        None => 0,
    };
    let others = arguments.set.iter().skip(of_file);
    Ok(others.map(|variable| variable.name.clone()).collect())
}

/// Sets the system variables of the file again. Where there is a fault it is said, none is set, and the server goes on
/// with what it has.
fn set_variables_again(engine: &Arc<Engine>, file: &Path, set_elsewhere: &[String]) {
    let outcome = configuration::variables_of_file(&options(), file)
        .map_err(Into::into)
        .and_then(|mut variables| {
            variables.retain(|variable| !set_elsewhere.contains(&variable.name));
            set_variables(engine, &variables)
        });
    match outcome {
        Ok(()) => tracing::info!(
            file = %file.display(),
            "set the system variables of the configuration again; options need a new start"
        ),
        Err(error) => tracing::error!("nothing of the configuration was taken: {error}"),
    }
}

/// The options of `sheaf serve`, as a command.
pub fn options() -> clap::Command {
    ServeArguments::augment_args(clap::Command::new("serve"))
}

fn parse_memory(text: &str) -> Result<usize, String> {
    match parse_size(text)? {
        bytes if bytes >= MIN_MEMORY_BYTES => Ok(bytes),
        _ => Err(format!(
            "'{text}' is less than {}, which the server needs at least",
            format_size(MIN_MEMORY_BYTES)
        )),
    }
}

/// A number from 1.
fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("'{text}' is not a number from 1")),
        Ok(count) => Ok(count),
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok();
    seconds
        .filter(|seconds| Duration::try_from_secs_f64(*seconds).is_ok())
        .ok_or_else(|| format!("'{text}' is not a number of seconds"))
}

fn parse_fill_factor(text: &str) -> Result<f32, String> {
    let factor: Option<f32> = text.parse().ok();
    factor
        .filter(|factor| FILL_FACTORS.contains(factor))
        .ok_or_else(|| {
            let bounds = FILL_FACTORS;
            format!(
                "'{text}' does not lie between {} and {}",
                bounds.start(),
                bounds.end()
            )
        })
}

/// A folder that is there, or nothing.
fn parse_secure_file_priv(text: &str) -> Result<PathBuf, String> {
    match text {
        "" => Ok(PathBuf::new()),
        folder => PathBuf::from(folder)
            .canonicalize()
            .map_err(|error| format!("'{folder}' cannot be used: {error}")),
    }
}

/// `host:port`, where the host may be a name.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.to_socket_addrs()
        .map_err(|error| format!("'{text}' is not an address such as 127.0.0.1:3306: {error}"))?
        .next()
        .ok_or_else(|| format!("'{text}' has no address"))
}

/// The same, of this machine.
/// An address of this machine, for the console.
pub fn parse_console_address(text: &str) -> Result<SocketAddr, String> {
    let address = parse_address(text)?;
    ConsoleServer::check_address(address).map_err(|error| error.to_string())?;
    Ok(address)
}

#[cfg(test)]
impl ServeArguments {
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    pub(crate) fn max_connections(&self) -> usize {
        self.max_connections
    }

    pub(crate) fn requires_secure_transport(&self) -> bool {
        self.require_secure_transport
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        serve: ServeArguments,
    }

    /// What `--help` says is written as sizes are; the storage has the last word.
    #[test]
    fn the_defaults_are_those_of_the_storage() {
        let command =
            Command::try_parse_from(["serve", "--data-dir", "data"]).expect("all that is needed");
        let chosen = command
            .serve
            .storage
            .options()
            .expect("the defaults are valid");
        let default = StorageOptions::default();
        assert_eq!(chosen.sync_log, default.sync_log);
        assert_eq!(chosen.recovery_time_goal, default.recovery_time_goal);
        assert_eq!(chosen.log_limit_bytes, default.log_limit_bytes);
        assert_eq!(chosen.archive_interval, default.archive_interval);
        assert_eq!(
            chosen.archive_lag_limit_bytes,
            default.archive_lag_limit_bytes
        );
        assert_eq!(
            chosen.max_transaction_log_bytes,
            default.max_transaction_log_bytes
        );
        assert_eq!(chosen.max_pinned_log_bytes, default.max_pinned_log_bytes);
        assert_eq!(chosen.max_spill_bytes, default.max_spill_bytes);
        assert_eq!(chosen.max_temp_bytes, default.max_temp_bytes);
        assert_eq!(chosen.max_row_locks, default.max_row_locks);
        assert!((chosen.fill_factor - default.fill_factor).abs() < f32::EPSILON);
    }
}
