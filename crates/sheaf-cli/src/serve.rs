//! `sheaf serve`: the server process, from start to a clean end.

use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use sheaf_memory::keep_within;
use sheaf_server::{Server, ServerOptions, TlsOptions};
use sheaf_sql::{Engine, EngineOptions};
use sheaf_storage::{StorageOptions, SyncLog};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::size::{format_size, parse_size};
use sheaf_archive::open_archive;

#[derive(Debug, Args)]
pub struct ServeArguments {
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
    /// What the whole process may use, such as 512M or 8G.
    #[arg(long, value_parser = parse_size, default_value = "512M")]
    memory: usize,
    /// The buffer pool's share of the memory; by default the engine decides.
    #[arg(long, value_parser = parse_size)]
    pool: Option<usize>,
    /// Clients that may be connected at the same time.
    #[arg(long, default_value_t = 151)]
    max_connections: usize,
    /// The only directory of the server from which LOAD DATA INFILE (without LOCAL) may read; '' allows every file that
    /// the server can read. Without this option there is none.
    #[arg(long, value_name = "DIR", value_parser = parse_secure_file_priv)]
    secure_file_priv: Option<PathBuf>,
    #[command(flatten)]
    storage: StorageArguments,
    /// Seconds that running statements may take to finish after SIGTERM or SIGINT.
    #[arg(long, default_value_t = 10)]
    drain_seconds: u64,
}

/// What `--tls` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Tls {
    Auto,
    Off,
}

impl ServeArguments {
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
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    recovery_time_goal: f64,
    /// The log is kept about this short by checkpoints.
    #[arg(long, value_parser = parse_size, default_value = "1G")]
    log_limit: usize,
    /// Where to keep the whole log, for restoring any moment: a folder, or a bucket such as s3://bucket/prefix.
    #[arg(long, value_name = "DIR-or-URL")]
    archive_to: Option<String>,
    /// Seconds that log waits for the archive at most.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    archive_interval: f64,
    /// Log that may wait for the archive; beyond it nothing can be changed until the archive has caught up.
    #[arg(long, value_parser = parse_size, default_value = "8G")]
    archive_lag_limit: usize,
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
    #[arg(long, default_value_t = StorageOptions::default().fill_factor)]
    fill_factor: f32,
}

impl StorageArguments {
    fn options(&self) -> Result<StorageOptions, Box<dyn Error>> {
        let archive = self.archive_to.as_deref().map(open_archive).transpose()?;
        if let Some(place) = &self.archive_to {
            tracing::info!("the log is archived to {place}");
        }
        Ok(StorageOptions {
            sync_log: self.sync_log,
            recovery_time_goal: Duration::try_from_secs_f64(self.recovery_time_goal)?,
            log_limit_bytes: self.log_limit as u64,
            archive,
            archive_interval: Duration::try_from_secs_f64(self.archive_interval)?,
            archive_lag_limit_bytes: self.archive_lag_limit as u64,
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
    let engine = Engine::open(
        &arguments.data_dir,
        EngineOptions {
            memory_bytes: arguments.memory,
            pool_bytes: arguments.pool,
            max_connections: arguments.max_connections,
            require_secure_transport: arguments.require_secure_transport,
            secure_file_priv: arguments.secure_file_priv.clone(),
            port: arguments.listen.port(),
            storage,
            ..EngineOptions::default()
        },
    )?;
    engine.start_maintenance()?;
    tracing::info!(data_dir = %arguments.data_dir.display(), memory = format_size(arguments.memory), "opened");
    let tls = arguments.tls_options().inspect_err(|_| {
        // A fault of the certificate is reported; the database is left as it was.
        let _ = engine.close();
    })?;
    let options = ServerOptions {
        listen: Some(arguments.listen),
        socket: arguments.socket,
        tls,
        ..ServerOptions::default()
    };
    serve_until_signal(
        &engine,
        options,
        Duration::from_secs(arguments.drain_seconds),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Serves an engine until SIGTERM, SIGINT or SHUTDOWN, then closes it, so that a reopened one finds everything.
pub fn serve_until_signal(
    engine: &Arc<Engine>,
    options: ServerOptions,
    drain_time: Duration,
) -> Result<(), Box<dyn Error>> {
    // Before listening, so that a signal to a server that is ready never ends it the hard way.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
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
    let address = server.local_address().map(|address| address.to_string());
    let path = socket.map(|path| path.display().to_string());
    let places: Vec<String> = address.into_iter().chain(path).collect();
    println!(
        "Sheaf {} is ready for connections on {}",
        env!("CARGO_PKG_VERSION"),
        places.join(" and ")
    );

    // Later signals change nothing: everything below is bounded in time.
    signals.forever().next();
    tracing::info!(connections = server.connections(), "shutting down");
    engine.begin_shutdown();
    if !server.shut_down(drain_time) {
        tracing::warn!("some connections did not end in time");
    }
    engine.close()?;
    tracing::info!("closed");
    Ok(())
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
