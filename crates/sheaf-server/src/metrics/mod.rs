//! The endpoint for monitoring: `GET /metrics` in OpenMetrics text, `/health` and `/ready`.
//!
//! ```text
//!   accept (one thread) --> a thread for each client, of few: one request, one answer, closed
//! ```
//!
//! Everything is bounded: clients, bytes of a request, and the time that one takes. A client that comes when all places
//! are taken gets the place of the one that has been there for longest. So clients that connect and say nothing do not
//! keep out one that asks: it sends its request at once, and has its answer before others push it out. It reads
//! counters alone and takes no lock that a statement holds while it runs. It knows no accounts and no TLS, so it is off
//! unless an address is given, which should be one that only the monitoring reaches.
//!
//! Reference: <https://prometheus.io/docs/specs/om/open_metrics_spec/>; RFC 9112.

mod clients;
mod open_metrics;
mod request;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sheaf_sql::Engine;

use self::clients::{Clients, Place};
use self::request::{Answer, MAX_REQUEST_BYTES, Progress};

/// The time that a client has for its request.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// The time that it has for reading the answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// A client that goes on to send when it has its answer is heard so long, and so much.
const LINGER: Duration = Duration::from_secs(1);
const MAX_LEFT_BYTES: u64 = 64 << 10;
/// When accepting fails for want of file descriptors or memory, it is tried again after this.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A server of metrics. It ends when it is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens on an address; port 0 lets the system choose.
    pub fn start(engine: &Arc<Engine>, address: SocketAddr) -> io::Result<MetricsServer> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stopping = Arc::new(AtomicBool::new(false));
        let (engine, is_over) = (Arc::clone(engine), Arc::clone(&stopping));
        let acceptor = thread::Builder::new()
            .name("metrics".into())
            .spawn(move || accept_until_stopped(&listener, &engine, &is_over))?;
        Ok(MetricsServer {
            address,
            stopping,
            acceptor: Some(acceptor),
        })
    }

    /// The address, with the port that the system chose if it was asked to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        // The acceptor waits for a client: this is one.
        let _ = TcpStream::connect_timeout(&self.address, ANSWER_TIME);
        if let Some(acceptor) = self.acceptor.take()
            && acceptor.join().is_err()
        {
            tracing::error!("the thread of the metrics has panicked");
        }
    }
}

fn accept_until_stopped(listener: &TcpListener, engine: &Arc<Engine>, stopping: &AtomicBool) {
    let clients = Arc::new(Clients::default());
    loop {
        let accepted = listener.accept();
        if stopping.load(Ordering::Acquire) {
            return;
        }
        let Ok((mut client, _)) = accepted else {
            thread::sleep(ACCEPT_RETRY);
            continue;
        };
        let Some(place) = Place::take(&clients, &client) else {
            // It may not even read that.
            let _ = client.set_write_timeout(Some(ACCEPT_RETRY));
            let _ = client.write_all(&Answer::busy().bytes());
            continue;
        };
        let engine = Arc::clone(engine);
        let serving = thread::Builder::new()
            .name("metrics client".into())
            .spawn(move || {
                if let Err(error) = serve(&mut client, &engine) {
                    tracing::debug!(%error, "a client of the metrics");
                }
                drop(place);
            });
        if let Err(error) = serving {
            tracing::warn!(%error, "no thread for a client of the metrics");
        }
    }
}

/// Reads a request and answers it.
fn serve(client: &mut TcpStream, engine: &Engine) -> io::Result<()> {
    let until = Instant::now() + REQUEST_TIME;
    client.set_write_timeout(Some(ANSWER_TIME))?;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    let answer = loop {
        match request::read(&request) {
            Progress::Complete(request) => break request.answer(engine),
            Progress::Wrong(answer) => break answer,
            Progress::Incomplete if request.len() > MAX_REQUEST_BYTES => break Answer::too_long(),
            Progress::Incomplete => {}
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut buffer)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&buffer[..count]),
        }
    };
    client.write_all(&answer.bytes())?;
    client.shutdown(Shutdown::Write)?;
    // What is left unread when a connection is closed would take the answer away from the client.
    client.set_read_timeout(Some(LINGER))?;
    let left = client.take(MAX_LEFT_BYTES);
    io::copy(&mut { left }, &mut io::sink()).map(drop)
}
