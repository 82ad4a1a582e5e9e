//! One client, from greeting to goodbye, on a thread of its own or, with many others, on a few
//! (`shared_threads.rs`).
//!
//! ```text
//!   greet -> session -> [ read command -> run -> answer ]* -> the session is dropped, which releases everything
//! ```
//!
//! The loop ends when the client says goodbye or disappears, breaks the protocol, or idles for `wait_timeout`. It ends
//! when the client takes longer than `net_write_timeout` to take an answer, and when the connection is killed. It also
//! ends after a statement that panicked, because what the panic left in the session is not known.
//!
//! A connection that waits for its client for longer than a moment keeps its thread and its session. It releases what
//! it can do without: its buffers, and the stack that statements have used.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql_common::constants::CapabilityFlags;
use rustls::ServerConfig;
use sheaf_sql::{Engine, Session, SessionHandle, SqlError, UnfinishedCommit, status_flags};
use sheaf_types::error::codes;
use socket2::Socket;

use crate::authentication::{HandshakeError, Origin};
use crate::command::{BoundStatements, COM_QUERY, COM_STMT_PREPARE, Flow};
use crate::cursor::Cursor;
use crate::handshake::{self, Client};
use crate::packet::{Buffers, PacketStream, ReadError};
use crate::response::{write_error, write_error_before_greeting, write_plain_ok};
use crate::transport::SocketTransport;

/// What a connection keeps of its request buffer between two commands.
const KEPT_REQUEST_BYTES: usize = 4 << 10;
/// A connection without a thread has rested for so long when it releases what it can make again.
const RESTS_AFTER_SECONDS: u64 = 2;

/// A client that was let in.
pub struct Connection {
    pub(crate) packets: PacketStream<SocketTransport>,
    pub(crate) client: Client,
    pub(crate) origin: Origin,
    pub(crate) session: Session,
    pub(crate) statements: BoundStatements,
    /// Those that are open, by the ids of their statements.
    pub(crate) cursors: HashMap<u32, Cursor>,
    handle: Arc<SessionHandle>,
    socket: Arc<Socket>,
    request: Vec<u8>,
    /// What the answer in the send buffer waits for.
    unfinished: Option<UnfinishedCommit>,
    /// While it waits without a thread: since when, by the pool's clock.
    waits_since: u64,
    /// Bytes of the answer that its client had not taken then.
    unsent_at_wait: usize,
    /// The client has been silent for longer than `wait_timeout`.
    is_timed_out: bool,
    /// The client has said goodbye.
    pub(crate) has_ended_well: bool,
    guard: Option<Box<dyn Send>>,
    /// It has read commands that come after the one that it runs. Others look here.
    has_more_commands: Arc<AtomicBool>,
}

/// How the turn of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// It waits for its client.
    Waits,
    /// Its answer waits for the log: it is to be [settled](Connection::settle).
    Owes,
    /// Its answer waits for the client, which has not taken all of it.
    WaitsForRoom,
    /// There is nothing more to do than to drop it.
    Over,
}

/// Greets a client. `started` hears of its session as soon as there is one; `None`: it was not let in.
pub(crate) fn admit(
    engine: &Arc<Engine>,
    (socket, tls): (Arc<Socket>, Option<Arc<ServerConfig>>),
    origin: Origin,
    started: impl FnOnce(u64),
) -> Option<Box<Connection>> {
    match open(engine, (socket, tls), origin, started) {
        Ok(connection) => {
            let id = connection.session.id();
            tracing::debug!(id, user = connection.session.info().user, "connected");
            Some(connection)
        }
        // Port scans and health checks end up here; they are not worth more than this.
        Err(error) => {
            engine.count_aborted_connect();
            tracing::debug!(%error, "a client was not let in");
            None
        }
    }
}

/// Whether the other side has not closed the connection. What it has sent meanwhile stays to be read.
fn is_open(socket: &Socket) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    match socket.recv_with_flags(&mut byte, flags) {
        Ok(bytes) => bytes > 0,
        Err(error) => matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
        ),
    }
}

/// Greets a client and gives it a session. A client that is not let in has been told why, if it still listens.
fn open(
    engine: &Arc<Engine>,
    (socket, tls): (Arc<Socket>, Option<Arc<ServerConfig>>),
    origin: Origin,
    started: impl FnOnce(u64),
) -> Result<Box<Connection>, SqlError> {
    // Of each step. The thread that accepts clients ends those that take longer for all.
    let connect_timeout = engine.connect_timeout();
    let io_error = |error: io::Error| SqlError::unknown(error.to_string());
    let mut packets = PacketStream::new(
        SocketTransport::new(Arc::clone(&socket), tls),
        handshake::MAX_HANDSHAKE_BYTES,
    );
    packets
        .set_timeouts(Some(connect_timeout), Some(connect_timeout))
        .and_then(|()| packets.set_write_timeout(Some(connect_timeout)))
        .map_err(io_error)?;

    let admitted = match engine.admits_host(&origin.names()) {
        true => engine.session_of_stranger(&origin.host),
        false => Err(handshake::host_not_allowed(&origin)),
    };
    let mut session = match admitted {
        Ok(session) => session,
        Err(error) => {
            write_error_before_greeting(&mut packets, &error)?;
            packets.flush()?;
            return Err(error);
        }
    };
    started(session.id());
    let handle = session.handle();
    let killed_socket = Arc::clone(&socket);
    handle.on_kill(Box::new(move || {
        // An error means that the socket is closed already.
        let _ = killed_socket.shutdown(std::net::Shutdown::Both);
    }));

    let waiting_socket = Arc::clone(&socket);
    handle.on_waiting(Box::new(move || is_open(&waiting_socket)));

    let id = session.id() as u32;
    let let_in = handshake::greet(&mut packets, engine, id, &origin).and_then(|(client, info)| {
        session.change_user(info)?;
        Ok(client)
    });
    let client = match let_in {
        Ok(client) => client,
        Err(HandshakeError::Refused(error)) => {
            write_error(&mut packets, &error)?;
            packets.flush()?;
            return Err(error);
        }
        Err(HandshakeError::Read(error)) => return Err(SqlError::unknown(error.to_string())),
    };
    write_plain_ok(&mut packets, session.status_flags())?;
    packets.flush()?;
    let compresses = client
        .capabilities
        .contains(CapabilityFlags::CLIENT_COMPRESS);
    if compresses && !packets.start_compression() {
        return Err(SqlError::new(codes::HANDSHAKE_ERROR, "Bad handshake"));
    }
    packets.set_memory(session.request_memory());
    packets.set_slow_client(session.slow_client());
    Ok(Box::new(Connection {
        packets,
        client,
        origin,
        session,
        statements: BoundStatements::default(),
        cursors: HashMap::new(),
        handle,
        socket,
        request: Vec::new(),
        unfinished: None,
        waits_since: 0,
        unsent_at_wait: 0,
        is_timed_out: false,
        has_ended_well: false,
        guard: None,
        has_more_commands: Arc::default(),
    }))
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.has_ended_well {
            self.session.engine().count_aborted_client();
        }
    }
}

impl Connection {
    /// What is dropped with the connection, after everything else.
    pub(crate) fn keep(&mut self, guard: Box<dyn Send>) {
        self.guard = Some(guard);
    }

    /// From now on it says here, when it runs a command, whether it has read more commands.
    pub(crate) fn tell_of_commands(&mut self, has_more: Arc<AtomicBool>) {
        self.has_more_commands = has_more;
    }

    /// Serves the client on a thread of its own, until it is gone. `Waits`: until `shall_share`, which is asked between
    /// two commands.
    pub(crate) fn serve_alone(&mut self, shall_share: &dyn Fn() -> bool) -> Served {
        if self.packets.expect_commands().is_err() {
            return Served::Over;
        }
        self.session.leave_commits(false);
        loop {
            if self.packets.is_plain() && !self.packets.has_unread() && shall_share() {
                return Served::Waits;
            }
            if self.begin().is_err() || self.serve_next(Self::await_request) == Served::Over {
                return Served::Over;
            }
        }
    }

    /// Runs the commands that one read finds. Whether there may be more is told by
    /// [`may_have_more`](Self::may_have_more).
    pub(crate) fn serve_ready(&mut self) -> Served {
        match self.packets.flush_and_rest() {
            Ok(true) => {}
            Ok(false) => return Served::WaitsForRoom,
            Err(_) => return Served::Over,
        }
        self.session.leave_commits(true);
        loop {
            if self.begin().is_err() {
                return Served::Over;
            }
            if !self.is_timed_out {
                match self.packets.has_come() {
                    Ok(true) => {}
                    // It was reported for what has been read meanwhile.
                    Ok(false) => return Served::Waits,
                    Err(_) => return Served::Over,
                }
            }
            match self.serve_next(Self::read_request) {
                Served::Waits => {}
                other => return other,
            }
            if !self.packets.has_unread() {
                return Served::Waits;
            }
        }
    }

    /// A command is about to come. Fails when it is not to be run.
    fn begin(&mut self) -> io::Result<()> {
        if self.handle.is_killed() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.apply_limits()?;
        self.packets.begin_command();
        Ok(())
    }

    fn serve_next(&mut self, read: fn(&mut Self, &mut Vec<u8>) -> Result<(), ReadError>) -> Served {
        let mut request = std::mem::take(&mut self.request);
        let flow = match read(self, &mut request) {
            Ok(()) => {
                let has_more = self.packets.has_unread_command();
                self.has_more_commands.store(has_more, Ordering::Relaxed);
                self.run_command(&request)
            }
            Err(error) => self.answer_read_error(&error),
        };
        self.unfinished = self.session.take_unfinished_commit();
        let is_released = self.session.is_released();
        self.has_ended_well |= is_released;
        let goes_on = flow != Flow::Close && !is_released && !self.packets.is_out_of_step();
        // Commands that have been read already are not reported: they are run now, after the answer.
        let may_owe = goes_on && !self.packets.has_unread() && !self.packets.is_broken();
        let owes = self.unfinished.is_some() && may_owe;
        if !owes {
            self.finish_commit();
            // The answer leaves even if it is the last one. A failed write shows in the stream's state.
            let _ = self.packets.flush();
        }
        let (received, sent) = self.packets.take_traffic();
        self.session.count_traffic(received, sent);
        if !goes_on || self.packets.is_broken() {
            return Served::Over;
        }
        request.clear();
        request.shrink_to(KEPT_REQUEST_BYTES);
        self.request = request;
        self.packets.give_memory_back();
        match owes {
            true => Served::Owes,
            false => Served::Waits,
        }
    }

    /// Waits for the commit that the answer tells of. If it fails, the answer is the error.
    fn finish_commit(&mut self) {
        let Some(unfinished) = self.unfinished.take() else {
            return;
        };
        let Err(error) = self.session.commit_ended(unfinished.finish()) else {
            return;
        };
        self.packets.take_back_answer();
        // A failed write shows in the stream's state.
        let _ = write_error(&mut self.packets, &error);
    }

    /// Waits for the log, for a connection that [owes](Served::Owes) its answer, and sends it without a wait for the
    /// client.
    pub(crate) fn settle(&mut self) -> Served {
        self.finish_commit();
        match self.packets.flush_and_rest() {
            Ok(true) => Served::Waits,
            Ok(false) => Served::WaitsForRoom,
            Err(_) => Served::Over,
        }
    }

    /// Waits for a request, with as little memory as possible if it takes long.
    fn await_request(&mut self, request: &mut Vec<u8>) -> Result<(), ReadError> {
        if !self.packets.has_begun()? {
            *request = Vec::new();
            self.session.rest();
            sheaf_storage::release_thread_memory();
            self.packets.wait_without_buffers()?;
        }
        self.packets.read_packet(request)
    }

    fn read_request(&mut self, request: &mut Vec<u8>) -> Result<(), ReadError> {
        match self.is_timed_out {
            true => Err(ReadError::Io(io::ErrorKind::TimedOut.into())),
            false => self.packets.read_packet(request),
        }
    }

    /// The client will send nothing more.
    pub(crate) fn note_end(&mut self) {
        self.packets.note_end();
    }

    /// Whether something may have come that was not read, so that it is to be served without being reported.
    pub(crate) fn may_have_more(&self) -> bool {
        self.packets.may_have_more()
    }

    /// Whether it was not killed, and its client has not gone.
    pub(crate) fn is_still_there(&self) -> bool {
        !self.handle.is_killed() && is_open(&self.socket)
    }

    /// What its socket is known by to the system.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Takes a worker's buffers for its turn.
    pub(crate) fn lend(&mut self, buffers: &mut Buffers) {
        self.packets.lend(buffers);
        std::mem::swap(&mut self.request, &mut buffers.request);
    }

    pub(crate) fn take_back(&mut self, buffers: &mut Buffers) {
        self.packets.take_back(buffers);
        buffers.request = std::mem::take(&mut self.request);
    }

    /// It begins to wait for its client, without a thread, when the clock shows this. A client that takes nothing of an
    /// answer is still waited for, whatever it has sent meanwhile.
    pub(crate) fn note_wait(&mut self, clock_seconds: u64) {
        let unsent = self.packets.unsent_bytes();
        if unsent == 0 || unsent != self.unsent_at_wait {
            self.waits_since = clock_seconds;
        }
        self.unsent_at_wait = unsent;
    }

    /// It still waits. Ends that if it has waited for too long: then its socket has something to read, its end.
    pub(crate) fn note_time(&mut self, clock_seconds: u64) {
        let waited = clock_seconds.saturating_sub(self.waits_since);
        if self.packets.has_unsent() {
            let limit = self.session.net_write_timeout();
            if limit > 0 && waited > limit {
                // An error means that the client is gone, which ends the wait, too.
                let _ = self.socket.shutdown(std::net::Shutdown::Both);
            }
            return;
        }
        if waited == RESTS_AFTER_SECONDS {
            self.session.rest();
        }
        let limit = self.session.wait_timeout();
        if limit > 0 && waited > limit && !self.is_timed_out {
            self.is_timed_out = true;
            // An error means that the client is gone, which ends the wait, too.
            let _ = self.socket.shutdown(std::net::Shutdown::Read);
        }
    }

    /// The session's variables bound what the stream does.
    fn apply_limits(&mut self) -> io::Result<()> {
        let seconds = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
        self.packets
            .set_max_packet_bytes(self.session.max_allowed_packet());
        self.packets.set_timeouts(
            seconds(self.session.wait_timeout()),
            seconds(self.session.net_read_timeout()),
        )?;
        let in_transaction = self.session.status_flags() & status_flags::IN_TRANSACTION != 0;
        self.packets.set_holds_locks(in_transaction);
        self.packets
            .set_write_timeout(seconds(self.session.net_write_timeout()))
    }

    fn answer_read_error(&mut self, error: &ReadError) -> Flow {
        let (answer, flow) = match error {
            ReadError::Closed => return Flow::Close,
            ReadError::TooLarge { .. } => (SqlError::net_packet_too_large(), Flow::Continue),
            ReadError::NoMemory { command } => (
                SqlError::out_of_memory(
                    "other long statements have all memory for statements (long_statement_memory), or this one is too \
                     long for it; try again, raise --memory or query_memory_wait_timeout",
                ),
                // Other commands may be about something that the server keeps, and would not be as the client thinks.
                match command {
                    Some(COM_QUERY | COM_STMT_PREPARE) => Flow::Continue,
                    _ => Flow::Close,
                },
            ),
            ReadError::OutOfOrder { .. } => (
                SqlError::new(codes::NET_PACKETS_OUT_OF_ORDER, "Got packets out of order"),
                Flow::Close,
            ),
            error if error.is_timeout() => (
                SqlError::new(
                    codes::CLIENT_INTERACTION_TIMEOUT,
                    "The client was disconnected by the server because of inactivity. See wait_timeout and \
                     interactive_timeout for configuring this behavior.",
                ),
                Flow::Close,
            ),
            ReadError::Io(_) => return Flow::Close,
        };
        // A failed write shows in the stream's state.
        let _ = write_error(&mut self.packets, &answer);
        flow
    }
}
