//! `sheaf serve`: the server process, from start to a clean end.

use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use sheaf_server::{Server, ServerOptions};
use sheaf_sql::{Engine, EngineOptions};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::size::{format_size, parse_size};

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
    /// What the whole process may use, such as 512M or 8G.
    #[arg(long, value_parser = parse_size, default_value = "512M")]
    memory: usize,
    /// The buffer pool's share of the memory; by default the engine decides.
    #[arg(long, value_parser = parse_size)]
    pool: Option<usize>,
    /// Clients that may be connected at the same time.
    #[arg(long, default_value_t = 151)]
    max_connections: usize,
    /// Seconds that running statements may take to finish after SIGTERM or SIGINT.
    #[arg(long, default_value_t = 10)]
    drain_seconds: u64,
}

pub fn run(arguments: ServeArguments) -> Result<ExitCode, Box<dyn Error>> {
    let engine = Engine::open(
        &arguments.data_dir,
        EngineOptions {
            memory_bytes: arguments.memory,
            pool_bytes: arguments.pool,
            max_connections: arguments.max_connections,
            ..EngineOptions::default()
        },
    )?;
    tracing::info!(data_dir = %arguments.data_dir.display(), memory = format_size(arguments.memory), "opened");
    let options = ServerOptions {
        listen: Some(arguments.listen),
        socket: arguments.socket,
        max_connections: arguments.max_connections,
    };
    serve_until_signal(
        &engine,
        options,
        Duration::from_secs(arguments.drain_seconds),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Serves an engine until SIGTERM or SIGINT, then closes it, so that a reopened one finds everything.
pub fn serve_until_signal(
    engine: &Arc<Engine>,
    options: ServerOptions,
    drain_time: Duration,
) -> Result<(), Box<dyn Error>> {
    // Before listening, so that a signal to a server that is ready never ends it the hard way.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
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

/// `host:port`, where the host may be a name.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.to_socket_addrs()
        .map_err(|error| format!("'{text}' is not an address such as 127.0.0.1:3306: {error}"))?
        .next()
        .ok_or_else(|| format!("'{text}' has no address"))
}
