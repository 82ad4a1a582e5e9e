//! Accepting clients, bounding how many, and ending well.
//!
//! One thread accepts on each address. The first clients get a thread each, those beyond [`ServerOptions::own_threads`]
//! share some ([`SharedThreads`]). Shutting down goes in steps, each bounded in time, so that a statement that is about
//! to finish may do so and nothing holds the process for ever:
//!
//! ```text
//!   stop accepting -> no more commands are read, running statements end by themselves (drain time)
//!     -> they are killed -> (kill time) -> sockets are closed under those that still hang in a write
//! ```

use std::collections::{HashMap, HashSet};
use std::io;
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use sheaf_sql::{Engine, SqlError};
use sheaf_types::error::codes;
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};

use crate::authentication::Origin;
use crate::connection::{self, Connection, Served};
use crate::packet::{PacketStream, is_goodbye};
use crate::readiness::closed_by_peers;
use crate::response::write_error_before_greeting;
use crate::shared_threads::SharedThreads;
use crate::tls::TlsOptions;
use crate::transport::SocketTransport;

/// Clients that the kernel holds for us between two calls of accept.
const BACKLOG: i32 = 128;
/// Address space of a client's thread. Only what is touched becomes memory; deep expressions touch a lot.
const CONNECTION_STACK_BYTES: usize = 8 << 20;
/// An idle peer is probed after this time, so a machine that vanished does not hold a connection for ever.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(300);
/// Time for killed statements to end.
const KILL_TIME: Duration = Duration::from_secs(5);
/// When accepting fails for want of file descriptors or memory, it is tried again after this.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// A client that hangs up while its statement runs is noticed after at most this; if it is still so at the next look,
/// the statement is ended.
const HANGUP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How often connections without a thread are told the time.
const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// A client that closes its connection may leave as many bytes behind that are not read: its goodbye, in plain or
/// encrypted.
const MAX_GOODBYE_BYTES: usize = 64;
/// Lengths of encrypted records that are no command: the end of TLS 1.3, and the packet of a goodbye in TLS 1.3 and in
/// 1.2, or compressed in TLS 1.3.
const GOODBYE_RECORD_BYTES: [usize; 3] = [2 + 1 + 16, 5 + 1 + 16, 5 + 8 + 16];
/// The default of [`ServerOptions::own_threads`]. So many threads stay in the processor's caches.
const OWN_THREADS: usize = 64;
/// The longest wait for a stranger to leave whose connection was ended.
const STRANGER_LEAVES: Duration = Duration::from_secs(1);
/// The longest wait to tell a client that there is no place for it.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Where to listen, and how much to take.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Port 0 lets the system choose, see [`Server::local_address`].
    pub listen: Option<SocketAddr>,
    /// A Unix socket. A file left behind by a server that is gone is replaced.
    pub socket: Option<PathBuf>,
    /// Without it clients cannot use TLS.
    pub tls: Option<TlsOptions>,
    /// Up to so many connections, each has a thread of its own; with more, they share threads. Those with TLS or
    /// compression always have their own.
    pub own_threads: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 3306))),
            socket: None,
            tls: None,
            own_threads: OWN_THREADS,
        }
    }
}

/// A server that accepts clients. Dropping it ends it at once; [`Server::shut_down`] ends it well.
pub struct Server {
    clients: Arc<Clients>,
    acceptors: Vec<Acceptor>,
    watcher: Option<JoinHandle<()>>,
    local_address: Option<SocketAddr>,
    socket_path: Option<PathBuf>,
}

struct Acceptor {
    listener: Arc<Socket>,
    thread: Option<JoinHandle<()>>,
}

/// The clients of a server, known to its acceptors and to the thread that shuts it down.
struct Clients {
    engine: Arc<Engine>,
    tls: Option<Arc<ServerConfig>>,
    stopping: AtomicBool,
    open: Mutex<OpenClients>,
    /// How many there are in `open`.
    count: AtomicUsize,
    own_threads: usize,
    shared_threads: Arc<SharedThreads>,
    one_left: Condvar,
}

#[derive(Default)]
struct OpenClients {
    next: u64,
    by_number: HashMap<u64, OpenClient>,
}

struct OpenClient {
    socket: Arc<Socket>,
    /// The id of its session, once it has one.
    session: Option<u64>,
    /// When it came, until it has identified itself.
    stranger_since: Option<Instant>,
    /// Its connection has read commands that come after the one that it runs.
    has_more_commands: Arc<AtomicBool>,
}

/// What is looked at to learn whether a client has hung up.
struct Watched {
    session: u64,
    socket: Arc<Socket>,
    has_more_commands: Arc<AtomicBool>,
}

impl OpenClient {
    fn watched(&self) -> Option<Watched> {
        Some(Watched {
            session: self.session?,
            socket: Arc::clone(&self.socket),
            has_more_commands: Arc::clone(&self.has_more_commands),
        })
    }
}

impl OpenClients {
    /// The client that has taken the longest so far to identify itself.
    fn oldest_stranger(&self) -> Option<&Socket> {
        let strangers = self.by_number.values();
        let strangers = strangers.filter_map(|client| Some((client.stranger_since?, client)));
        let oldest = strangers.min_by_key(|(since, _)| *since);
        oldest.map(|(_, client)| &*client.socket)
    }
}

impl Server {
    /// Starts to listen. Fails if an address is taken or not ours, or the certificate cannot be used. The caller closes
    /// the engine after the server.
    pub fn start(engine: Arc<Engine>, options: ServerOptions) -> io::Result<Server> {
        let tls = options.tls.as_ref().map(TlsOptions::load).transpose()?;
        engine
            .offer_transports(tls.is_some(), options.socket.is_some())
            .map_err(io::Error::other)?;
        warn_of_open_accounts(&engine);
        let clients = Arc::new(Clients {
            engine,
            tls,
            stopping: AtomicBool::new(false),
            open: Mutex::default(),
            count: AtomicUsize::new(0),
            own_threads: options.own_threads,
            shared_threads: SharedThreads::new()?,
            one_left: Condvar::new(),
        });
        let mut server = Server {
            clients,
            acceptors: Vec::new(),
            watcher: None,
            local_address: None,
            socket_path: None,
        };
        if let Some(address) = options.listen {
            let listener = listen_on_network(address)?;
            server.local_address = listener.local_addr()?.as_socket();
            server.accept_on(listener)?;
        }
        if let Some(path) = options.socket {
            let listener = listen_on_path(&path)?;
            server.socket_path = Some(path);
            server.accept_on(listener)?;
        }
        let watched = Arc::clone(&server.clients);
        server.watcher = Some(
            thread::Builder::new()
                .name("hangups".into())
                .spawn(move || watch_for_hangups(&watched))?,
        );
        Ok(server)
    }

    /// The network address, with the port that the system chose if it was asked to.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.local_address
    }

    /// Clients that are connected, or about to be.
    pub fn connections(&self) -> usize {
        self.clients.lock().by_number.len()
    }

    fn accept_on(&mut self, listener: Socket) -> io::Result<()> {
        let listener = Arc::new(listener);
        let (accepting, clients) = (Arc::clone(&listener), Arc::clone(&self.clients));
        let thread = thread::Builder::new()
            .name("accept".into())
            .spawn(move || accept_until_stopped(&accepting, &clients))?;
        self.acceptors.push(Acceptor {
            listener,
            thread: Some(thread),
        });
        Ok(())
    }

    /// Ends the server: running statements get `drain_time` to finish, then they are killed. Returns when all
    /// connections are closed; `false` if some had to be left behind.
    pub fn shut_down(mut self, drain_time: Duration) -> bool {
        self.stop(drain_time)
    }

    fn stop(&mut self, drain_time: Duration) -> bool {
        let all_ended = self.end_clients(drain_time);
        self.clients.shared_threads.stop();
        all_ended
    }

    fn end_clients(&mut self, drain_time: Duration) -> bool {
        self.clients.set_stopping();
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        for acceptor in &mut self.acceptors {
            // Wakes the thread in accept; an error means that it is awake.
            let _ = acceptor.listener.shutdown(Shutdown::Both);
            if let Some(thread) = acceptor.thread.take() {
                let _ = thread.join();
            }
        }
        self.acceptors.clear();
        if let Some(path) = self.socket_path.take() {
            let _ = std::fs::remove_file(path);
        }
        // Nothing more is read from clients: the idle ones leave now, the others after their answer.
        self.clients.for_each(|client| {
            let _ = client.socket.shutdown(Shutdown::Read);
        });
        if self.clients.wait_until_empty(drain_time) {
            return true;
        }
        let engine = Arc::clone(&self.clients.engine);
        for session in self.clients.sessions() {
            // An error means that the session ended by itself.
            let _ = engine.kill(session, true);
        }
        if self.clients.wait_until_empty(KILL_TIME) {
            return true;
        }
        self.clients.for_each(|client| {
            let _ = client.socket.shutdown(Shutdown::Both);
        });
        self.clients.wait_until_empty(KILL_TIME)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, OpenClients> {
        // The map is consistent at every point where a panic is possible.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are more than have threads of their own.
    fn are_many(&self) -> bool {
        self.count.load(Ordering::Relaxed) > self.own_threads
    }

    /// Under the lock, so that the watcher is either asleep and woken or sees it before it sleeps.
    fn set_stopping(&self) {
        let _open = self.lock();
        self.stopping.store(true, Ordering::Release);
        self.one_left.notify_all();
    }

    fn for_each(&self, act: impl Fn(&OpenClient)) {
        self.lock().by_number.values().for_each(act);
    }

    fn sessions(&self) -> Vec<u64> {
        self.lock()
            .by_number
            .values()
            .filter_map(|client| client.session)
            .collect()
    }

    fn wait_until_empty(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut open = self.lock();
        while !open.by_number.is_empty() {
            let Some(left) = deadline
                .checked_duration_since(Instant::now())
                .filter(|left| !left.is_zero())
            else {
                return false;
            };
            open = self
                .one_left
                .wait_timeout(open, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }

    /// A number for a new client; `None` if there are enough. Those that have not identified themselves do not count as
    /// such: the oldest of them has to go, or a few silent connections would take the administrator's place.
    fn admit(&self, socket: &Arc<Socket>) -> Option<u64> {
        let deadline = Instant::now() + STRANGER_LEAVES;
        let mut open = self.lock();
        while open.by_number.len() >= self.engine.max_clients() {
            // An error means that it is gone.
            let _ = open.oldest_stranger()?.shutdown(Shutdown::Both);
            // Its thread wakes up, ends its session and takes it off the list.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            open = self
                .one_left
                .wait_timeout(open, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let number = open.next;
        open.next += 1;
        open.by_number.insert(
            number,
            OpenClient {
                socket: Arc::clone(socket),
                session: None,
                stranger_since: Some(Instant::now()),
                has_more_commands: Arc::default(),
            },
        );
        self.count.store(open.by_number.len(), Ordering::Relaxed);
        Some(number)
    }

    /// A client has identified itself. Where it says whether it has read more commands than the one that it runs.
    fn note_let_in(&self, number: u64) -> Arc<AtomicBool> {
        match self.lock().by_number.get_mut(&number) {
            Some(client) => {
                client.stranger_since = None;
                Arc::clone(&client.has_more_commands)
            }
            None => Arc::default(),
        }
    }

    fn leave(&self, number: u64) {
        let mut open = self.lock();
        open.by_number.remove(&number);
        self.count.store(open.by_number.len(), Ordering::Relaxed);
        drop(open);
        self.one_left.notify_all();
    }
}

/// Takes a client off the list when its thread ends, however that happens.
struct Admission {
    clients: Arc<Clients>,
    number: u64,
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.clients.leave(self.number);
    }
}

/// Says which accounts are open to any user from the right place, if they may do what others are to be kept from.
fn warn_of_open_accounts(engine: &Engine) {
    for account in engine.open_accounts() {
        tracing::warn!(
            %account,
            "an account that administers the server has no password; ALTER USER ... IDENTIFIED BY gives it one"
        );
    }
}

fn listen_on_network(address: SocketAddr) -> io::Result<Socket> {
    let listener = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // A restarted server need not wait for connections of its predecessor to be forgotten.
    listener.set_reuse_address(true)?;
    listener.bind(&address.into())?;
    listener.listen(BACKLOG)?;
    Ok(listener)
}

fn listen_on_path(path: &Path) -> io::Result<Socket> {
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    let address = SockAddr::unix(path)?;
    if let Err(error) = listener.bind(&address) {
        let abandoned =
            error.kind() == io::ErrorKind::AddrInUse && UnixStream::connect(path).is_err();
        if !abandoned {
            return Err(error);
        }
        std::fs::remove_file(path)?;
        listener.bind(&address)?;
    }
    listener.listen(BACKLOG)?;
    Ok(listener)
}

fn accept_until_stopped(listener: &Socket, clients: &Arc<Clients>) {
    loop {
        let accepted = listener.accept();
        if clients.stopping.load(Ordering::Acquire) {
            return;
        }
        match accepted {
            Ok((socket, address)) => start_client(socket, &address, clients),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client");
                thread::sleep(ACCEPT_RETRY);
            }
        }
    }
}

/// Kills sessions whose clients are gone. A connection that reads or writes notices that itself; one whose
/// statement computes would not for as long as it takes.
fn watch_for_hangups(clients: &Clients) {
    let mut open = clients.lock();
    let (mut looked, mut ticked) = (Instant::now(), Instant::now());
    // Those of the last look. A client that has sent a command and nothing after it is to get its answer, if it does
    // not take long.
    let mut gone_before: HashSet<u64> = HashSet::new();
    while !clients.stopping.load(Ordering::Acquire) {
        // It may have been woken before its time.
        if looked.elapsed() >= HANGUP_CHECK_INTERVAL {
            looked = Instant::now();
            let watched = open.by_number.values().filter_map(OpenClient::watched);
            let watched: Vec<Watched> = watched.collect();
            turn_away_the_slow(&open, clients.engine.connect_timeout());
            drop(open);
            let gone = those_that_hung_up(&watched);
            drop(watched);
            for &session in gone.intersection(&gone_before) {
                // An error means that the session noticed and ended by itself.
                if clients.engine.kill(session, true).is_ok() {
                    tracing::debug!(session, "the client hung up");
                }
            }
            gone_before = gone;
            if ticked.elapsed() >= TICK_INTERVAL {
                ticked = Instant::now();
                clients.shared_threads.tick();
            }
            open = clients.lock();
        }
        if !clients.stopping.load(Ordering::Acquire) {
            open = clients
                .one_left
                .wait_timeout(open, HANGUP_CHECK_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// Ends the connections of clients that have not identified themselves in time. Each of their bytes may have come in
/// time.
fn turn_away_the_slow(open: &OpenClients, connect_timeout: Duration) {
    for client in open.by_number.values() {
        let is_slow = |since: Instant| since.elapsed() > connect_timeout;
        if client.stranger_since.is_some_and(is_slow) {
            // An error means that it is gone.
            let _ = client.socket.shutdown(Shutdown::Both);
        }
    }
}

/// The sessions whose peers have closed their side, with nothing left to read but a goodbye.
fn those_that_hung_up(clients: &[Watched]) -> HashSet<u64> {
    let sockets = clients.iter().map(|client| client.socket.as_raw_fd());
    closed_by_peers(sockets)
        .into_iter()
        .map(|number| &clients[number])
        .filter(|client| !client.has_more_commands.load(Ordering::Relaxed))
        .filter(|client| leaves_no_command(&client.socket))
        .map(|client| client.session)
        .collect()
}

/// Is what was sent and not read no command but the last one?
fn leaves_no_command(socket: &Socket) -> bool {
    let mut bytes = [MaybeUninit::uninit(); MAX_GOODBYE_BYTES + 1];
    match socket.recv_with_flags(&mut bytes, libc::MSG_PEEK | libc::MSG_DONTWAIT) {
        Ok(count) => {
            // SAFETY: so many of them were received.
            let sent = bytes[..count]
                .iter()
                .map(|byte| unsafe { byte.assume_init() });
            is_goodbye_on_the_wire(&sent.collect::<Vec<u8>>())
        }
        Err(error) => !matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
        ),
    }
}

/// As [`is_goodbye`], also compressed, or encrypted: then it is known by its length.
fn is_goodbye_on_the_wire(bytes: &[u8]) -> bool {
    match bytes {
        // A frame of five bytes that are not compressed.
        [5, 0, 0, _, 0, 0, 0, packet @ ..] => packet.len() == 5 && is_goodbye(packet),
        // Records of alerts, and of data.
        [kind @ (21 | 23), 3, _, high, low, rest @ ..] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            (*kind == 21 || GOODBYE_RECORD_BYTES.contains(&length))
                && rest.get(length..).is_some_and(is_goodbye_on_the_wire)
        }
        _ => is_goodbye(bytes),
    }
}

fn start_client(socket: Socket, address: &SockAddr, clients: &Arc<Clients>) {
    let origin = match address.as_socket() {
        Some(address) => {
            // Without these a connection still works, only slower or for longer.
            let _ = socket.set_tcp_nodelay(true);
            let _ = socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_AFTER));
            Origin::network(address.ip())
        }
        None => Origin::unix_socket(),
    };
    let socket = Arc::new(socket);
    let Some(number) = clients.admit(&socket) else {
        return refuse(&socket, &SqlError::too_many_connections());
    };
    let admission = Admission {
        clients: Arc::clone(clients),
        number,
    };
    let thread_socket = Arc::clone(&socket);
    let spawned = thread::Builder::new()
        .name(format!("client {number}"))
        .stack_size(CONNECTION_STACK_BYTES)
        .spawn(move || {
            let clients = Arc::clone(&admission.clients);
            let stream = (thread_socket, clients.tls.clone());
            let let_in = connection::admit(&clients.engine, stream, origin, |session| {
                if let Some(client) = clients.lock().by_number.get_mut(&number) {
                    client.session = Some(session);
                }
            });
            if let Some(mut connection) = let_in {
                connection.tell_of_commands(clients.note_let_in(number));
                connection.keep(Box::new(admission));
                serve(connection, &clients);
            }
        });
    if let Err(error) = spawned {
        tracing::warn!(%error, "cannot start a thread for a client");
        let message = format!(
            "Can't create a new thread (errno {})",
            error.raw_os_error().unwrap_or_default()
        );
        refuse(&socket, &SqlError::new(codes::CANT_CREATE_THREAD, message));
    }
}

/// Serves a client on this thread, until it is gone or there are so many that they share threads.
fn serve(mut connection: Box<Connection>, clients: &Clients) {
    let mut may_share = true;
    while connection.serve_alone(&|| may_share && clients.are_many()) == Served::Waits {
        match clients.shared_threads.adopt(connection) {
            Ok(()) => return,
            Err(kept) => {
                connection = kept;
                may_share = false;
            }
        }
    }
}

/// Tells a client that it cannot be served. It has not said anything yet.
fn refuse(socket: &Arc<Socket>, error: &SqlError) {
    let _ = socket.set_write_timeout(Some(REFUSAL_TIMEOUT));
    let mut packets = PacketStream::new(SocketTransport::new(Arc::clone(socket), None), 0);
    // The client may be gone, which is as well.
    let _ = write_error_before_greeting(&mut packets, error).and_then(|()| packets.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goodbye_is_told_from_a_command() {
        let record = |kind: u8, length: u8| {
            let mut bytes = vec![kind, 3, 3, 0, length];
            bytes.resize(5 + usize::from(length), 0);
            bytes
        };
        let goodbyes = [
            vec![],
            vec![1, 0, 0, 0, 1],
            vec![5, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
            record(23, 22),
            [record(23, 22), record(23, 19)].concat(),
            [record(23, 29), record(21, 26)].concat(),
        ];
        for bytes in goodbyes {
            assert!(is_goodbye_on_the_wire(&bytes), "{bytes:?}");
        }
        let commands = [
            vec![1, 0, 0, 0, 14],
            vec![7, 0, 0, 0, 3, b'c', b'o', b'm', b'm', b'i', b't'],
            vec![
                7, 0, 0, 0, 3, b'c', b'o', b'm', b'm', b'i', b't', 1, 0, 0, 0, 1,
            ],
            // COMMIT.
            [record(23, 28), record(23, 22)].concat(),
        ];
        for bytes in commands {
            assert!(!is_goodbye_on_the_wire(&bytes), "{bytes:?}");
        }
    }
}
