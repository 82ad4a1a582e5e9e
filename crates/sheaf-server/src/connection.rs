//! One client, from greeting to goodbye, on a thread of its own.
//!
//! ```text
//!   greet -> session -> [ read command -> run -> answer ]* -> the session is dropped, which releases everything
//! ```
//!
//! The loop ends when the client says goodbye or disappears, when it breaks the protocol, when it idles for
//! `wait_timeout`, when it takes longer than `net_write_timeout` to take an answer, when it is killed, and after a
//! statement that panicked, because what the panic left in the session is not known.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use mysql_common::constants::CapabilityFlags;
use rustls::ServerConfig;
use sheaf_sql::{Engine, Session, SessionHandle, SessionInfo, SqlError};
use sheaf_table::AccountName;
use socket2::Socket;

use crate::authentication::Origin;
use crate::command::{BoundStatements, Flow};
use crate::cursor::Cursor;
use crate::handshake::{self, Client, HandshakeError};
use crate::packet::{PacketStream, ReadError};
use crate::response::{write_error, write_error_before_greeting, write_plain_ok};
use crate::transport::SocketTransport;

/// Time for each step of the handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// What an idle connection keeps of its request buffer.
const IDLE_REQUEST_BYTES: usize = 4 << 10;

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
    write_timeout: Option<Duration>,
}

/// Serves a client until it is gone. `started` hears of its session as soon as there is one.
pub fn serve(
    engine: &Arc<Engine>,
    (socket, tls): (Arc<Socket>, Option<Arc<ServerConfig>>),
    origin: Origin,
    started: impl FnOnce(u64),
) {
    match open(engine, (socket, tls), origin, started) {
        Ok(mut connection) => {
            let id = connection.session.id();
            tracing::debug!(id, user = connection.session.info().user, "connected");
            connection.run();
            tracing::debug!(id, "disconnected");
        }
        // Port scans and health checks end up here; they are not worth more than this.
        Err(error) => {
            engine.count_aborted_connect();
            tracing::debug!(%error, "a client was not let in");
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

/// Greets a client and gives it a session. Whoever is not let in has been told why, if they still listen.
fn open(
    engine: &Arc<Engine>,
    (socket, tls): (Arc<Socket>, Option<Arc<ServerConfig>>),
    origin: Origin,
    started: impl FnOnce(u64),
) -> Result<Connection, SqlError> {
    let io_error = |error: io::Error| SqlError::unknown(error.to_string());
    socket
        .set_write_timeout(Some(CONNECT_TIMEOUT))
        .map_err(io_error)?;
    let mut packets = PacketStream::new(
        SocketTransport::new(Arc::clone(&socket), tls),
        handshake::MAX_HANDSHAKE_BYTES,
    );
    packets
        .set_timeouts(Some(CONNECT_TIMEOUT), Some(CONNECT_TIMEOUT))
        .map_err(io_error)?;

    let admitted = match engine.admits_host(&origin.names()) {
        true => engine.session(SessionInfo {
            user: "unauthenticated user".into(),
            host: origin.host.clone(),
            account: Some(AccountName::new("", "")),
            ..SessionInfo::default()
        }),
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
        return Err(SqlError::new(1043, "08S01", "Bad handshake"));
    }
    Ok(Connection {
        packets,
        client,
        origin,
        session,
        statements: BoundStatements::default(),
        cursors: HashMap::new(),
        handle,
        socket,
        write_timeout: Some(CONNECT_TIMEOUT),
    })
}

impl Connection {
    fn run(&mut self) {
        let mut request = Vec::new();
        while !self.handle.is_killed() {
            if self.apply_limits().is_err() {
                return;
            }
            self.packets.begin_command();
            let flow = match self.packets.read_packet(&mut request) {
                Ok(()) => self.run_command(&request),
                Err(error) => self.answer_read_error(&error),
            };
            // The answer leaves even if it is the last one. A failed write shows in the stream's state.
            let _ = self.packets.flush();
            if flow == Flow::Close || self.packets.is_broken() || self.packets.is_out_of_step() {
                return;
            }
            self.packets.shrink();
            request.clear();
            request.shrink_to(IDLE_REQUEST_BYTES);
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
        let write_timeout = seconds(self.session.net_write_timeout());
        if self.write_timeout != write_timeout {
            self.socket.set_write_timeout(write_timeout)?;
            self.write_timeout = write_timeout;
        }
        Ok(())
    }

    fn answer_read_error(&mut self, error: &ReadError) -> Flow {
        let (answer, flow) = match error {
            ReadError::Closed => return Flow::Close,
            ReadError::TooLarge { .. } => (SqlError::net_packet_too_large(), Flow::Continue),
            ReadError::OutOfOrder { .. } => (
                SqlError::new(1156, "08S01", "Got packets out of order"),
                Flow::Close,
            ),
            error if error.is_timeout() => (
                SqlError::new(
                    4031,
                    "HY000",
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
