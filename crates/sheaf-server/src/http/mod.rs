//! A small server of HTTP/1.1: one request, one answer, closed.
//!
//! ```text
//!   accept (one thread) --> a thread for each client, of few --> a handler
//! ```
//!
//! Everything is bounded: clients, bytes of a request, and the time that one takes. A client that comes when all places
//! are taken gets the place of the one that has been there for longest. So clients that connect and say nothing do not
//! keep out one that asks: it sends its request at once. A client whose request may take long keeps its place until it
//! has its answer. These do not have all places, so the others are answered meanwhile.
//!
//! Reference: RFC 9112.

pub(crate) mod answer;
mod clients;
pub(crate) mod request;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use self::answer::Answer;
use self::clients::{Clients, Place};
use self::request::{Incoming, Method, Progress, Request};

/// A client that goes on to send when it has its answer is heard so long, and so much.
const LINGER: Duration = Duration::from_secs(1);
const MAX_LEFT_BYTES: u64 = 64 << 10;
/// When accepting fails for want of file descriptors or memory, it is tried again after this.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Wakes a thread that accepts, within this.
const WAKE_TIME: Duration = Duration::from_secs(5);
/// What one read takes from a client.
const READ_BYTES: usize = 4 << 10;

/// Answers requests.
pub(crate) trait Handler: Send + Sync + 'static {
    /// `client` is for what it wants to know of the connection; the answer is written by the server.
    fn answer(&self, request: &Request, client: &TcpStream) -> Answer;

    /// Whether the client keeps its place while its request is answered.
    fn may_take_long(&self, _request: &Request) -> bool {
        false
    }
}

/// How much a server takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of its threads.
    pub(crate) name: &'static str,
    /// Clients at the same time.
    pub(crate) clients: usize,
    /// Of them those whose requests may take long.
    pub(crate) long_clients: usize,
    /// By the path. 0: it takes no POST.
    pub(crate) body_bytes: fn(&str) -> usize,
    /// The time that a client has for its request.
    pub(crate) request_time: Duration,
    /// The time that it has for reading the answer.
    pub(crate) answer_time: Duration,
    /// Address space of a client's thread.
    pub(crate) stack_bytes: usize,
}

/// A server. It ends when it is dropped, without waiting for its clients.
pub(crate) struct HttpServer {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    clients: Arc<Clients>,
    acceptor: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Port 0 lets the system choose.
    pub(crate) fn start(
        address: SocketAddr,
        limits: Limits,
        handler: Arc<dyn Handler>,
    ) -> io::Result<HttpServer> {
        let listener = TcpListener::bind(address)?;
        HttpServer::on(listener, limits, handler)
    }

    pub(crate) fn on(
        listener: TcpListener,
        limits: Limits,
        handler: Arc<dyn Handler>,
    ) -> io::Result<HttpServer> {
        let address = listener.local_addr()?;
        let stopping = Arc::new(AtomicBool::new(false));
        let clients = Arc::new(Clients::new(limits.clients, limits.long_clients));
        let (is_over, known) = (Arc::clone(&stopping), Arc::clone(&clients));
        let acceptor = thread::Builder::new()
            .name(limits.name.into())
            .spawn(move || accept_until_stopped(&listener, limits, &handler, (&known, &is_over)))?;
        Ok(HttpServer {
            address,
            stopping,
            clients,
            acceptor: Some(acceptor),
        })
    }

    /// The address, with the port that the system chose if it was asked to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more clients.
    pub(crate) fn stop(&mut self) {
        let Some(acceptor) = self.acceptor.take() else {
            return;
        };
        self.stopping.store(true, Ordering::Release);
        // The acceptor waits for a client: this is one.
        let _ = TcpStream::connect_timeout(&self.address, WAKE_TIME);
        if acceptor.join().is_err() {
            tracing::error!(address = %self.address, "the thread of an HTTP server has panicked");
        }
    }

    /// Accepts no more clients, and waits for those whose requests are being answered. Whether they have gone in time.
    pub(crate) fn drain(&mut self, limit: Duration) -> bool {
        self.stop();
        self.clients.disconnect(|is_held| !is_held);
        self.clients.wait_until_gone(limit)
    }

    /// Ends all connections, and waits for their threads. Whether these have ended in time.
    pub(crate) fn end_clients(&self, limit: Duration) -> bool {
        self.clients.disconnect(|_| true);
        self.clients.wait_until_gone(limit)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn accept_until_stopped(
    listener: &TcpListener,
    limits: Limits,
    handler: &Arc<dyn Handler>,
    (clients, stopping): (&Arc<Clients>, &AtomicBool),
) {
    loop {
        let accepted = listener.accept();
        if stopping.load(Ordering::Acquire) {
            return;
        }
        let Ok((mut client, _)) = accepted else {
            thread::sleep(ACCEPT_RETRY);
            continue;
        };
        let Some(place) = Place::take(clients, &client) else {
            // It may not even read that.
            let _ = client.set_write_timeout(Some(ACCEPT_RETRY));
            let _ = client.write_all(&Answer::busy().bytes());
            continue;
        };
        let handler = Arc::clone(handler);
        let serving = thread::Builder::new()
            .name(format!("{} client", limits.name))
            .stack_size(limits.stack_bytes)
            .spawn(move || {
                if let Err(error) = serve(&mut client, limits, &*handler, &place) {
                    tracing::debug!(%error, name = limits.name, "a client over HTTP");
                }
                drop(place);
            });
        if let Err(error) = serving {
            tracing::warn!(%error, name = limits.name, "no thread for a client over HTTP");
        }
    }
}

/// Reads a request and answers it.
fn serve(
    client: &mut TcpStream,
    limits: Limits,
    handler: &dyn Handler,
    place: &Place,
) -> io::Result<()> {
    client.set_write_timeout(Some(limits.answer_time))?;
    let answer = match read_request(client, limits)? {
        None => return Ok(()),
        Some(Err(answer)) => answer,
        Some(Ok(request)) => {
            let mut answer = match handler.may_take_long(&request) {
                true => place
                    .hold(|| handler.answer(&request, client))
                    .unwrap_or_else(Answer::busy),
                false => handler.answer(&request, client),
            };
            answer.has_body = request.method != Method::Head;
            answer
        }
    };
    write_within(client, &answer.bytes(), limits.answer_time)?;
    client.shutdown(Shutdown::Write)?;
    // What is left unread when a connection is closed would take the answer away from the client.
    client.set_read_timeout(Some(LINGER))?;
    let left = client.take(MAX_LEFT_BYTES);
    io::copy(&mut { left }, &mut io::sink()).map(drop)
}

/// A request, or what is wrong with it. `None`: the client has gone. Whatever it sends in its time does not prolong it.
fn read_request(
    client: &mut TcpStream,
    limits: Limits,
) -> io::Result<Option<Result<Request, Answer>>> {
    let until = Instant::now() + limits.request_time;
    let mut incoming = Incoming::new(limits.body_bytes);
    let mut buffer = [0; READ_BYTES];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(None);
        }
        match incoming.push(&buffer[..count]) {
            Progress::Complete(request) => return Ok(Some(Ok(request))),
            Progress::Wrong(answer) => return Ok(Some(Err(answer))),
            Progress::Incomplete => {}
        }
    }
}

/// Writes all of it. A client that takes a byte now and then does not get more time.
fn write_within(client: &mut TcpStream, bytes: &[u8], limit: Duration) -> io::Result<()> {
    let until = Instant::now() + limit;
    let mut rest = bytes;
    while !rest.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_write_timeout(Some(left))?;
        match client.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
