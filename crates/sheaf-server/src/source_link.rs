//! A connection to the source of a replica: this server is the client.
//!
//! ```text
//!   greeting <-- source          login, proof of the password --> OK
//!   SELECT ..., SET @...    -->   COM_REGISTER_SLAVE -->   COM_BINLOG_DUMP or COM_BINLOG_DUMP_GTID -->
//!   | 0 | event |  | 0 | event |  ...  <-- source
//! ```
//!
//! With SOURCE_SSL all but the greeting [is encrypted](crate::source_tls). mysql_native_password sends a proof alone.
//! caching_sha2_password does so where the source still knows the password; otherwise it wants the password. That goes
//! over TLS and over a Unix socket as it is. Else it is encrypted with the source's public key, where
//! GET_SOURCE_PUBLIC_KEY says that the key may come over the network.
//!
//! All waits are short and repeated, so that a link that is told to stop does. Looking up a name and connecting cannot
//! be interrupted, so a thread of its own does it, which the link may leave behind.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use mysql_common::constants::CapabilityFlags;
use mysql_common::scramble::{scramble_native, scramble_sha256};
use sheaf_sql::Engine;
use sheaf_sql::replica::link::{
    LinkError, LinkRequest, LinkStart, LinkTls, SourceIdentity, SourceLink, Stops,
};

use crate::packet::MAX_FRAME_BYTES;
use crate::source_tls;

/// A read ends after this time, to look whether the link shall stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Attempts to connect that have not ended, at most: those that were left behind end by themselves.
const MAX_ATTEMPTS: usize = 16;
/// Packets before events come: greetings, names, errors.
const MAX_TALK_BYTES: usize = 1 << 20;
const CHALLENGE_BYTES: usize = 20;

const NATIVE: &[u8] = b"mysql_native_password";
const CACHING: &[u8] = b"caching_sha2_password";

const OK: u8 = 0x00;
const MORE_DATA: u8 = 0x01;
const SWITCH: u8 = 0xFE;
const EOF: u8 = 0xFE;
const ERROR: u8 = 0xFF;
const ASK_FOR_KEY: u8 = 0x02;
const PROOF_IS_RIGHT: u8 = 0x03;
const WANTS_PASSWORD: u8 = 0x04;
/// An EOF is shorter; a row that begins with its byte is longer.
const MAX_EOF_BYTES: usize = 9;

const COM_QUERY: u8 = 0x03;
const COM_BINLOG_DUMP: u8 = 0x12;
const COM_REGISTER_SLAVE: u8 = 0x15;
const COM_BINLOG_DUMP_GTID: u8 = 0x1E;

/// Error 2026: both sides do not agree on TLS.
const SSL_CONNECTION_ERROR: u16 = 2026;
/// Error 2061: the method needs what the connection has not.
const AUTHENTICATION_ERROR: u16 = 2061;
/// What the source says when it does not send its log.
const FATAL_READING_BINLOG: u16 = 1236;

/// Gives an engine the way to its source.
pub fn let_replicate(engine: &Engine) {
    engine.reach_sources_by(Box::new(open));
}

fn open(request: &LinkRequest) -> Result<Option<Box<dyn SourceLink>>, LinkError> {
    let link = Link::connect(request).and_then(|mut link| {
        link.log_in(request)?;
        link.ask_who_it_is(request)?;
        link.begin_dump(request)?;
        Ok(link)
    });
    match link {
        Ok(link) => Ok(Some(Box::new(link))),
        Err(Trouble::Stopped) => Ok(None),
        Err(Trouble::Is(error)) => Err(error),
    }
}

/// Why a link does not go on.
enum Trouble {
    Stopped,
    Is(LinkError),
}

impl From<LinkError> for Trouble {
    fn from(error: LinkError) -> Trouble {
        Trouble::Is(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Is(LinkError::lost(format!(
            "Lost connection to source: {error}"
        )))
    }
}

type Done<T> = Result<T, Trouble>;

fn malformed() -> Trouble {
    Trouble::Is(LinkError::lost("Malformed packet from the source"))
}

trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

struct Link {
    stream: Box<dyn Stream>,
    /// A password may be sent as it is.
    is_secure: bool,
    sequence: u8,
    stops: Stops,
    timeout: Duration,
    max_event_bytes: usize,
    identity: SourceIdentity,
}

impl SourceLink for Link {
    fn identity(&self) -> &SourceIdentity {
        &self.identity
    }

    fn next_event(&mut self, event: &mut Vec<u8>) -> Result<bool, LinkError> {
        match self.read_event(event) {
            Ok(()) => Ok(true),
            Err(Trouble::Stopped) => Ok(false),
            Err(Trouble::Is(error)) => Err(error),
        }
    }
}

impl Link {
    fn connect(request: &LinkRequest) -> Done<Link> {
        let is_unix_socket = request.host.starts_with('/');
        let (host, port) = (request.host.clone(), request.port);
        let stream: Box<dyn Stream> = match is_unix_socket {
            true => {
                let stream = connect_apart(request, move || UnixStream::connect(host))?;
                stream.set_read_timeout(Some(LOOK_INTERVAL))?;
                stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
                Box::new(stream)
            }
            false => {
                let stream = connect_apart(request, move || connect_tcp(&host, port))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(LOOK_INTERVAL))?;
                stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
                Box::new(stream)
            }
        };
        Ok(Link {
            stream,
            is_secure: is_unix_socket,
            sequence: 0,
            stops: Arc::clone(&request.stops),
            timeout: request.timeout,
            max_event_bytes: request.max_event_bytes,
            identity: SourceIdentity::default(),
        })
    }

    /// Fills bytes, in as many reads as that takes.
    fn fill(&mut self, mut bytes: &mut [u8]) -> Done<()> {
        let mut last = Instant::now();
        while !bytes.is_empty() {
            if (self.stops)() {
                return Err(Trouble::Stopped);
            }
            match self.stream.read(bytes) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    last = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if crate::packet::is_timeout(&error) => {
                    if last.elapsed() >= self.timeout {
                        return Err(Trouble::Is(LinkError::lost(
                            "The source has said nothing for replica_net_timeout seconds",
                        )));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads a packet of all its frames.
    fn read(&mut self, packet: &mut Vec<u8>, limit: usize) -> Done<()> {
        packet.clear();
        loop {
            let mut header = [0; 4];
            self.fill(&mut header)?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            self.sequence = header[3].wrapping_add(1);
            let start = packet.len();
            if start + length > limit {
                return Err(Trouble::Is(LinkError {
                    code: 1153,
                    message: format!(
                        "Got a packet bigger than 'replica_max_allowed_packet' bytes, which is {limit} here"
                    ),
                    is_final: true,
                }));
            }
            packet.resize(start + length, 0);
            self.fill(&mut packet[start..])?;
            if length < MAX_FRAME_BYTES {
                return Ok(());
            }
        }
    }

    fn read_talk(&mut self) -> Done<Vec<u8>> {
        let mut packet = Vec::new();
        self.read(&mut packet, MAX_TALK_BYTES)?;
        Ok(packet)
    }

    /// Sends a packet that one frame holds.
    fn write(&mut self, payload: &[u8]) -> Done<()> {
        if payload.len() >= MAX_FRAME_BYTES {
            return Err(Trouble::Is(LinkError::fatal("a set of GTIDs is too long")));
        }
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        let packet = [packet.as_slice(), payload].concat();
        self.stream.write_all(&packet)?;
        self.stream.flush()?;
        Ok(())
    }

    fn command(&mut self, code: u8, body: &[u8]) -> Done<()> {
        self.sequence = 0;
        self.write(&[&[code], body].concat())
    }

    fn log_in(&mut self, request: &LinkRequest) -> Done<()> {
        let greeting = self.read_talk()?;
        if greeting.first() == Some(&ERROR) {
            return Err(said_no(&greeting, false));
        }
        let greeting = Greeting::read(&greeting).ok_or_else(malformed)?;
        self.identity.is_mariadb = greeting.is_mariadb;
        let mut challenge = greeting.challenge;
        let mut method = match greeting.method.as_slice() {
            CACHING => CACHING.to_vec(),
            _ => NATIVE.to_vec(),
        };
        let mut capabilities = CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_LONG_PASSWORD
            | CapabilityFlags::CLIENT_LONG_FLAG
            | CapabilityFlags::CLIENT_TRANSACTIONS
            | CapabilityFlags::CLIENT_SECURE_CONNECTION
            | CapabilityFlags::CLIENT_PLUGIN_AUTH;
        if let Some(tls) = &request.tls {
            if !greeting.offers_tls {
                return Err(no_tls("the source does not support it"));
            }
            capabilities |= CapabilityFlags::CLIENT_SSL;
            self.encrypt(request, tls, capabilities)?;
        }
        let proof = proof_of(&request.password, &challenge, &method);
        let mut login = head_of_login(capabilities);
        login.extend_from_slice(request.user.as_bytes());
        login.push(0);
        login.push(proof.len() as u8);
        login.extend_from_slice(&proof);
        login.extend_from_slice(&method);
        login.push(0);
        self.write(&login)?;
        loop {
            let answer = self.read_talk()?;
            match answer.split_first() {
                Some((&OK, _)) => return Ok(()),
                Some((&ERROR, _)) => return Err(said_no(&answer, false)),
                Some((&SWITCH, rest)) => {
                    let mut parts = rest.splitn(2, |byte| *byte == 0);
                    method = parts.next().unwrap_or_default().to_vec();
                    let sent = parts.next().unwrap_or_default();
                    challenge = sent.iter().copied().take(CHALLENGE_BYTES).collect();
                    if method != NATIVE && method != CACHING {
                        let name = String::from_utf8_lossy(&method).into_owned();
                        return Err(Trouble::Is(LinkError {
                            code: AUTHENTICATION_ERROR,
                            message: format!("Authentication plugin '{name}' is not supported yet"),
                            is_final: true,
                        }));
                    }
                    let proof = proof_of(&request.password, &challenge, &method);
                    self.write(&proof)?;
                }
                Some((&MORE_DATA, [PROOF_IS_RIGHT])) => {}
                Some((&MORE_DATA, [WANTS_PASSWORD])) => self.send_password(request, &challenge)?,
                _ => return Err(malformed()),
            }
        }
    }

    /// Asks for TLS, and agrees with the source on keys.
    fn encrypt(
        &mut self,
        request: &LinkRequest,
        tls: &LinkTls,
        capabilities: CapabilityFlags,
    ) -> Done<()> {
        self.write(&head_of_login(capabilities))?;
        let socket = std::mem::replace(&mut self.stream, Box::new(io::empty()));
        let mut stream = source_tls::over(socket, &request.host, tls).map_err(no_tls)?;
        let began = Instant::now();
        while stream.conn.is_handshaking() {
            if (self.stops)() {
                return Err(Trouble::Stopped);
            }
            match stream.conn.complete_io(&mut stream.sock) {
                Ok(_) => {}
                Err(error) if crate::packet::is_timeout(&error) => {
                    if began.elapsed() >= CONNECT_TIMEOUT {
                        return Err(no_tls("the source does not answer"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(no_tls(error)),
            }
        }
        self.stream = Box::new(stream);
        self.is_secure = true;
        Ok(())
    }

    /// The source wants the password itself.
    fn send_password(&mut self, request: &LinkRequest, challenge: &[u8]) -> Done<()> {
        let mut password = request.password.clone().into_bytes();
        password.push(0);
        if self.is_secure {
            return self.write(&password);
        }
        if !request.get_public_key {
            return Err(Trouble::Is(LinkError {
                code: AUTHENTICATION_ERROR,
                message: "Authentication plugin 'caching_sha2_password' reported error: Authentication requires secure \
                          connection."
                    .into(),
                is_final: false,
            }));
        }
        self.write(&[ASK_FOR_KEY])?;
        let answer = self.read_talk()?;
        let Some((&MORE_DATA, key)) = answer.split_first() else {
            return Err(said_no(&answer, false));
        };
        for (byte, mask) in password.iter_mut().zip(challenge.iter().cycle()) {
            *byte ^= mask;
        }
        // The library panics on what is no key.
        let encrypted = catch_unwind(|| mysql_common::crypto::encrypt(&password, key));
        self.write(&encrypted.map_err(|_| malformed())?)
    }

    /// Runs a statement that returns one row at most: the texts of its columns, empty for NULL.
    fn query(&mut self, sql: &str) -> Done<Vec<String>> {
        self.command(COM_QUERY, sql.as_bytes())?;
        let head = self.read_talk()?;
        match head.first() {
            Some(&OK) => return Ok(Vec::new()),
            Some(&ERROR) => return Err(said_no(&head, false)),
            Some(_) => {}
            None => return Err(malformed()),
        }
        // The columns, and the EOF behind them.
        let columns = usize::from(head[0]);
        for _ in 0..=columns {
            self.read_talk()?;
        }
        let mut found = Vec::new();
        loop {
            let row = self.read_talk()?;
            match row.first() {
                Some(&EOF) if row.len() < MAX_EOF_BYTES => return Ok(found),
                Some(&ERROR) => return Err(said_no(&row, false)),
                _ => found = read_row(&row).ok_or_else(malformed)?,
            }
        }
    }

    fn ask_who_it_is(&mut self, request: &LinkRequest) -> Done<()> {
        let told = self.query("SELECT UNIX_TIMESTAMP(), @@server_id")?;
        let number = |at: usize| told.get(at).and_then(|text| text.parse::<i64>().ok());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        self.identity.clock_ahead = number(0).map_or(0, |theirs| theirs - now);
        self.identity.server_id = number(1).and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
        if !self.identity.is_mariadb {
            let uuid = self.query("SELECT @@server_uuid")?;
            self.identity.server_uuid = uuid.into_iter().next().unwrap_or_default();
        }
        let period = request.heartbeat.as_nanos();
        self.query(&format!(
            "SET @source_binlog_checksum = 'CRC32', @master_binlog_checksum = 'CRC32', @source_heartbeat_period = \
             {period}, @master_heartbeat_period = {period}, @replica_uuid = '{uuid}', @slave_uuid = '{uuid}'",
            uuid = request.server_uuid
        ))?;
        if self.identity.is_mariadb {
            // It sends its own GTIDs, and events without data that keep positions.
            self.query("SET @mariadb_slave_capability = 4")?;
        }
        Ok(())
    }

    fn begin_dump(&mut self, request: &LinkRequest) -> Done<()> {
        let id = request.server_id.to_le_bytes();
        // Names and a port that nobody asks for, a rank and a source that are 0.
        let register = [id.as_slice(), &[0; 3], &[0; 2], &[0; 8]].concat();
        self.command(COM_REGISTER_SLAVE, &register)?;
        let answer = self.read_talk()?;
        if answer.first() == Some(&ERROR) {
            return Err(said_no(&answer, true));
        }
        match &request.start {
            LinkStart::Place { file, position } => {
                let position = u32::try_from(*position).map_err(|_| {
                    Trouble::Is(LinkError::fatal(
                        "a source is not asked for positions beyond 4 GiB of a file",
                    ))
                })?;
                let body = [&position.to_le_bytes()[..], &[0; 2], &id, file.as_bytes()].concat();
                self.command(COM_BINLOG_DUMP, &body)
            }
            LinkStart::Gtids(set) => {
                let set = set.to_bytes();
                let length = (set.len() as u32).to_le_bytes();
                let first: u64 = 4;
                let body = [
                    &[0; 2][..],
                    &id,
                    &[0; 4],
                    &first.to_le_bytes(),
                    &length,
                    &set,
                ]
                .concat();
                self.command(COM_BINLOG_DUMP_GTID, &body)
            }
        }
    }

    fn read_event(&mut self, event: &mut Vec<u8>) -> Done<()> {
        self.read(event, self.max_event_bytes)?;
        match event.first() {
            Some(&OK) => {
                event.remove(0);
                Ok(())
            }
            Some(&ERROR) => Err(said_no(event, true)),
            Some(&EOF) if event.len() < MAX_EOF_BYTES => Err(Trouble::Is(LinkError::lost(
                "The source has ended the connection",
            ))),
            _ => Err(malformed()),
        }
    }
}

/// Attempts to connect that have not ended.
static ATTEMPTS: AtomicUsize = AtomicUsize::new(0);

/// One of them.
struct Attempt;

impl Attempt {
    /// `None`: there are too many.
    fn begin() -> Option<Attempt> {
        let before = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
        let attempt = Attempt;
        (before < MAX_ATTEMPTS).then_some(attempt)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        ATTEMPTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Connects on another thread, and leaves it behind if the link is told to stop.
fn connect_apart<S: Send + 'static>(
    request: &LinkRequest,
    connect: impl FnOnce() -> io::Result<S> + Send + 'static,
) -> Done<S> {
    let failed = |reason: &str| cannot_connect(request, &io::Error::other(reason));
    let attempt = Attempt::begin();
    let attempt = attempt.ok_or_else(|| failed("earlier attempts have not ended"))?;
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new()
        .name("replica_connect".into())
        .spawn(move || {
            let _attempt = attempt;
            // Nobody may wait for it any more.
            let _ = sender.send(connect());
        })
        .map_err(|error| cannot_connect(request, &error))?;
    let began = Instant::now();
    loop {
        if (request.stops)() {
            return Err(Trouble::Stopped);
        }
        match receiver.recv_timeout(LOOK_INTERVAL) {
            Ok(connected) => return connected.map_err(|error| cannot_connect(request, &error)),
            Err(RecvTimeoutError::Disconnected) => return Err(failed("the attempt has panicked")),
            Err(RecvTimeoutError::Timeout) if began.elapsed() >= request.timeout => {
                return Err(cannot_connect(request, &io::ErrorKind::TimedOut.into()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn cannot_connect(request: &LinkRequest, error: &io::Error) -> Trouble {
    Trouble::Is(LinkError {
        code: 2003,
        message: format!(
            "Can't connect to MySQL server on '{}:{}' ({error})",
            request.host, request.port
        ),
        is_final: false,
    })
}

fn no_tls(why: impl std::fmt::Display) -> Trouble {
    Trouble::Is(LinkError {
        code: SSL_CONNECTION_ERROR,
        message: format!("SSL connection error: {why}"),
        is_final: false,
    })
}

/// The begin of a login, which alone asks for TLS.
fn head_of_login(capabilities: CapabilityFlags) -> Vec<u8> {
    let mut head = capabilities.bits().to_le_bytes().to_vec();
    head.extend_from_slice(&(MAX_FRAME_BYTES as u32).to_le_bytes());
    // utf8mb4_general_ci, which every source knows.
    head.push(45);
    head.extend_from_slice(&[0; 23]);
    head
}

/// What an error packet says. `reads_log`: of the request for the log.
fn said_no(packet: &[u8], reads_log: bool) -> Trouble {
    let code = packet
        .get(1..3)
        .map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    let text = packet.get(3..).unwrap_or_default();
    // A mark and the SQLSTATE.
    let text = match text.first() {
        Some(b'#') => text.get(6..).unwrap_or_default(),
        _ => text,
    };
    let message = String::from_utf8_lossy(text).into_owned();
    Trouble::Is(match reads_log && code == FATAL_READING_BINLOG {
        true => LinkError::refused_by_source(code, &message),
        false => LinkError {
            code,
            message,
            is_final: false,
        },
    })
}

/// What the source says first.
struct Greeting {
    challenge: Vec<u8>,
    method: Vec<u8>,
    is_mariadb: bool,
    offers_tls: bool,
}

impl Greeting {
    fn read(greeting: &[u8]) -> Option<Greeting> {
        let (version, rest) = greeting
            .split_first()
            .filter(|(first, _)| **first == 10)
            .map(|(_, rest)| {
                let end = rest.iter().position(|byte| *byte == 0)?;
                Some((&rest[..end], &rest[end + 1..]))
            })??;
        let mut challenge = rest.get(4..12)?.to_vec();
        // A zero.
        let abilities = rest.get(13..15)?;
        let abilities = u32::from(u16::from_le_bytes([abilities[0], abilities[1]]));
        // The collation, the status, more abilities, the length of the challenge, ten of nothing.
        let behind = rest.get(15 + 1 + 2 + 2 + 1 + 10..)?;
        challenge.extend_from_slice(behind.get(..12)?);
        let method = behind.get(13..).unwrap_or_default();
        let method = method.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(Greeting {
            challenge,
            method: method.to_vec(),
            is_mariadb: String::from_utf8_lossy(version).contains("MariaDB"),
            offers_tls: abilities & CapabilityFlags::CLIENT_SSL.bits() != 0,
        })
    }
}

/// Texts of a row; NULL is none.
fn read_row(mut row: &[u8]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    while let Some((first, rest)) = row.split_first() {
        let (length, behind) = match first {
            0xFB => (0, rest),
            0xFC => {
                let (length, behind) = rest.split_first_chunk::<2>()?;
                (usize::from(u16::from_le_bytes(*length)), behind)
            }
            0xFD..=0xFF => return None,
            short => (usize::from(*short), rest),
        };
        let (text, behind) = behind.split_at_checked(length)?;
        texts.push(String::from_utf8_lossy(text).into_owned());
        row = behind;
    }
    Some(texts)
}

fn proof_of(password: &str, challenge: &[u8], method: &[u8]) -> Vec<u8> {
    let password = password.as_bytes();
    match method == CACHING {
        true => scramble_sha256(challenge, password).map_or(Vec::new(), |proof| proof.to_vec()),
        false => scramble_native(challenge, password).map_or(Vec::new(), |proof| proof.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use sheaf_sql::binlog::GtidSet;

    use super::*;

    #[test]
    fn a_link_that_is_told_to_stop_does_not_wait_for_its_connection() {
        let request = LinkRequest {
            host: "nowhere.invalid".into(),
            port: 1,
            user: String::new(),
            password: String::new(),
            get_public_key: false,
            tls: None,
            start: LinkStart::Gtids(GtidSet::new()),
            server_id: 1,
            server_uuid: String::new(),
            heartbeat: Duration::ZERO,
            timeout: Duration::MAX,
            max_event_bytes: 1,
            stops: Arc::new(|| true),
        };
        let (end, ended) = mpsc::channel::<()>();
        let never = move || {
            let _ = ended.recv();
            Ok(())
        };
        assert!(matches!(
            connect_apart(&request, never),
            Err(Trouble::Stopped)
        ));
        drop(end);
    }

    #[test]
    fn a_greeting_has_a_challenge_and_a_method() {
        let mut greeting = vec![10];
        greeting.extend_from_slice(b"11.8.2-MariaDB-log\0");
        greeting.extend_from_slice(&[7, 0, 0, 0]);
        greeting.extend_from_slice(b"abcdefgh\0");
        greeting.extend_from_slice(&[0, 8, 0, 0, 0, 0, 0, 0]);
        greeting.extend_from_slice(&[0; 10]);
        greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        let read = Greeting::read(&greeting).unwrap();
        assert_eq!(read.challenge, b"abcdefghijklmnopqrst");
        assert_eq!(read.method, NATIVE);
        assert!(read.is_mariadb && read.offers_tls);
        for end in 0..40 {
            let _ = Greeting::read(&greeting[..end]);
        }
    }

    #[test]
    fn a_row_is_texts_behind_their_lengths() {
        assert_eq!(read_row(b"\x01a\xFB\x02bc").unwrap(), ["a", "", "bc"]);
        assert_eq!(read_row(b"\x05a"), None);
    }
}
