//! Packets: how the MySQL protocol cuts a byte stream into messages.
//!
//! A packet is one or more frames. A frame is a header of 3 bytes length (little-endian) and 1 byte sequence number,
//! then the payload. A frame of exactly 2^24 - 1 bytes says that the packet goes on in the next one. So a packet whose
//! length is a multiple of that ends with an empty frame:
//!
//! ```text
//!   +--------+-----+----------------+      +--------+-----+---------------------+  +--------+-----+------+
//!   | 5      | seq | 5 bytes        |      | ffffff | seq | 16,777,215 bytes    |  | 3      | seq+1| ...  |
//!   +--------+-----+----------------+      +--------+-----+---------------------+  +--------+-----+------+
//!     a packet of one frame                  a packet of 16,777,218 bytes
//! ```
//!
//! The sequence number starts at 0 with each command and counts frames in both directions, modulo 256. A number
//! that is not the next one means that the two sides disagree about what was said: the connection cannot go on.
//!
//! Sending is buffered: packets are built in place in one buffer, which goes to the operating system when it is
//! full or when the answer is complete. So a short answer is one system call, and a row is encoded where it
//! leaves from. Receiving reads what is there, which for a short request is one system call too.
//!
//! A statement's rows wait where the client does not read, and hear what its session wants of it ([`sending`]).
//!
//! A long packet takes its share of what all long requests may have before its buffer grows ([`RequestMemory`]), and
//! waits where there is none.
//!
//! A connection that waits longer than [`IDLE_AFTER`] for a command releases its buffers. The wait for the first byte
//! is a read that ends after that time, so a busy connection has no other system call for it. An idle one then waits
//! without a buffer ([`PacketStream::wait_without_buffers`]).

mod receiving;
mod sending;
mod unread;

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_sql::{Encryption, RequestMemory, SlowClient};

use crate::packet::unread::Unread;

/// The most bytes in one frame; a frame of this length is continued by the next one.
pub const MAX_FRAME_BYTES: usize = 0xFF_FFFF;
const HEADER_BYTES: usize = 4;
/// The send buffer goes out when it holds this much, so that the client reads the beginning of a long answer while the
/// rest is made. One packet may make it longer.
const SEND_BUFFER_BYTES: usize = 16 << 10;
/// A connection that has waited so long for a command is idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// The byte stream below: a socket, or two buffers in a test.
pub trait Transport: Read + Write {
    /// How long a read may wait; `None` is for ever.
    fn set_read_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// How long a write may wait; `None` is for ever.
    fn set_write_timeout(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    /// As `read`, but an error (`WouldBlock`) where it would wait for the peer.
    fn read_at_once(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.read(out)
    }

    /// As `write`, but an error (`WouldBlock`) where it would wait for the peer.
    fn write_at_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    /// Waits until the peer takes something, or for so long (`None`: for ever). False: it may take nothing yet.
    fn await_room(&mut self, _timeout: Option<Duration>) -> io::Result<bool> {
        Ok(true)
    }

    /// The next byte begins a command.
    fn begin_command(&mut self) {}

    /// Waits until there is something to read, or the end; false: not in this time (`None`: for ever). The timeout of
    /// reads may change.
    fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<bool> {
        Ok(true)
    }

    /// Whether [`Transport::start_tls`] is possible.
    fn offers_tls(&self) -> bool {
        false
    }

    /// Encrypts what follows; `ahead` is what of it was read before.
    fn start_tls(&mut self, _ahead: Vec<u8>) -> io::Result<Option<Encryption>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Compresses what follows.
    fn start_compression(&mut self) {}

    /// Whether bytes are handed on as they come.
    fn is_plain(&self) -> bool {
        true
    }
}

/// Why no packet came.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The peer closed the connection between two packets.
    #[error("the connection was closed")]
    Closed,
    #[error("frame number {got} came where {expected} was due")]
    OutOfOrder { expected: u8, got: u8 },
    /// The packet was read to its end and thrown away, so the connection can go on.
    #[error("the packet is longer than {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
    /// Other connections have the memory that the packet needs. It was thrown away, too, but for its command.
    #[error("other packets have the memory")]
    NoMemory { command: Option<u8> },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ReadError {
    /// Nothing came in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, ReadError::Io(error) if is_timeout(error))
    }
}

/// Linux reports an elapsed SO_RCVTIMEO as WouldBlock, others as TimedOut.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Buffers that connections borrow while they run commands.
#[derive(Default)]
pub(crate) struct Buffers {
    received: Box<[u8]>,
    send: Vec<u8>,
    /// For the next request.
    pub(crate) request: Vec<u8>,
}

/// The packet by which a client says that it leaves, without the number of its frame, which is the fourth byte.
const GOODBYE: ([u8; 3], u8) = ([1, 0, 0], 1);

/// Whether this is nothing, or only what a client says when it leaves.
pub(crate) fn is_goodbye(bytes: &[u8]) -> bool {
    match bytes {
        [] => true,
        [length @ .., _, command] => (length, *command) == (&GOODBYE.0[..], GOODBYE.1),
        _ => false,
    }
}

/// One side of a connection.
pub struct PacketStream<T> {
    transport: T,
    /// The number of the next frame, in either direction.
    sequence: u8,
    max_packet_bytes: usize,
    /// Where long packets take their memory; `None`: they may have any.
    memory: Option<RequestMemory>,
    idle_timeout: Option<Duration>,
    read_timeout: Option<Duration>,
    /// The transport waits for `read_timeout` instead of for the next command.
    hurried: bool,
    /// Packets are commands, for which a client may let us wait long.
    expects_commands: bool,
    /// Empty while the connection is idle.
    received: Box<[u8]>,
    /// What of `received` is not consumed yet.
    received_start: usize,
    received_end: usize,
    /// The last read has filled its buffer: there may be more below.
    may_have_more: bool,
    /// The end has come: below there is at least that, until it is read.
    has_end: bool,
    send: Vec<u8>,
    /// What comes before that and is in a file, because the peer did not read it.
    unread: Option<Unread>,
    /// What a statement asks when its client does not read; `None`: it just waits.
    slow_client: Option<Arc<SlowClient>>,
    /// What is buffered of the running command's answer could not be put into the file.
    stays_in_memory: bool,
    write_timeout: Option<Duration>,
    /// Since when the peer has taken nothing, if it was found so.
    stalled_since: Option<Instant>,
    broken: bool,
    out_of_step: bool,
    /// The frames' numbers mean nothing: those of compressed frames do, below.
    compressed: bool,
    /// Bytes since they were [taken](Self::take_traffic).
    received_bytes: u64,
    sent_bytes: u64,
}

impl<T: Transport> PacketStream<T> {
    /// `max_packet_bytes` bounds what is received, not what is sent.
    pub fn new(transport: T, max_packet_bytes: usize) -> Self {
        PacketStream {
            transport,
            sequence: 0,
            max_packet_bytes,
            memory: None,
            idle_timeout: None,
            read_timeout: None,
            hurried: false,
            expects_commands: false,
            received: Box::default(),
            received_start: 0,
            received_end: 0,
            may_have_more: false,
            has_end: false,
            send: Vec::new(),
            unread: None,
            slow_client: None,
            stays_in_memory: false,
            write_timeout: None,
            stalled_since: None,
            broken: false,
            out_of_step: false,
            compressed: false,
            received_bytes: 0,
            sent_bytes: 0,
        }
    }

    /// How many bytes have been sent, or wait to be sent from memory, since traffic was [taken](Self::take_traffic).
    pub(crate) fn written_bytes(&self) -> u64 {
        self.sent_bytes + self.send.len() as u64
    }

    /// How many bytes have come and gone since it was asked the last time.
    pub(crate) fn take_traffic(&mut self) -> (u64, u64) {
        let traffic = (self.received_bytes, self.sent_bytes);
        (self.received_bytes, self.sent_bytes) = (0, 0);
        traffic
    }

    pub fn set_max_packet_bytes(&mut self, max_packet_bytes: usize) {
        self.max_packet_bytes = max_packet_bytes;
    }

    /// From now on long packets take their memory here before they are read.
    pub fn set_memory(&mut self, memory: RequestMemory) {
        self.memory = Some(memory);
    }

    /// Whether the session has locks that others may wait for: then it does not wait for memory itself.
    pub(crate) fn set_holds_locks(&mut self, holds_locks: bool) {
        if let Some(memory) = &mut self.memory {
            memory.set_holds_locks(holds_locks);
        }
    }

    /// The packet that was read last, and what was made of it, are gone.
    pub(crate) fn give_memory_back(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.give_back();
        }
    }

    /// `idle` bounds the wait for the first byte of a packet, `read` each further wait inside it.
    pub fn set_timeouts(
        &mut self,
        idle: Option<Duration>,
        read: Option<Duration>,
    ) -> io::Result<()> {
        self.read_timeout = read;
        if self.idle_timeout != idle {
            self.idle_timeout = idle;
            self.transport.set_read_timeout(self.first_wait())?;
        }
        Ok(())
    }

    /// How long the peer may take nothing of what is sent.
    pub fn set_write_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if self.write_timeout != timeout {
            self.write_timeout = timeout;
            self.transport.set_write_timeout(timeout)?;
        }
        Ok(())
    }

    /// From now on statements ask here when their client does not read.
    pub fn set_slow_client(&mut self, slow_client: SlowClient) {
        self.slow_client = Some(Arc::new(slow_client));
    }

    /// From now on packets are commands.
    pub fn expect_commands(&mut self) -> io::Result<()> {
        self.expects_commands = true;
        self.transport.set_read_timeout(self.first_wait())
    }

    /// How long a read may wait that begins a packet.
    fn first_wait(&self) -> Option<Duration> {
        match self.idle_timeout {
            idle if !self.expects_commands => idle,
            None => Some(IDLE_AFTER),
            Some(idle) => Some(idle.min(IDLE_AFTER)),
        }
    }

    /// The peer has said that it sends nothing more. What it has sent before, and the end, may have to be read.
    pub(crate) fn note_end(&mut self) {
        self.has_end = true;
    }

    /// Whether something that has come may lie below, unread: the last read has not come to its end. Where that read
    /// found less than it had room for, it has taken all that there was.
    pub(crate) fn may_have_more(&self) -> bool {
        self.may_have_more || self.has_end
    }

    /// Whether there is something of the next packet that a read would not wait for.
    pub(crate) fn has_unread(&self) -> bool {
        self.received_start < self.received_end
    }

    /// Whether a command that has come waits above the socket: a look there does not find it. Where there may
    /// be one that cannot be seen, there is.
    pub(crate) fn has_unread_command(&self) -> bool {
        let unread = &self.received[self.received_start..self.received_end];
        let is_hidden = self.may_have_more && !self.transport.is_plain();
        is_hidden || !is_goodbye(unread)
    }

    /// Whether what is not read lies in the socket and nowhere above it.
    pub(crate) fn is_plain(&self) -> bool {
        self.transport.is_plain()
    }

    /// Borrows buffers for those that it has not.
    pub(crate) fn lend(&mut self, buffers: &mut Buffers) {
        if self.received.is_empty() {
            std::mem::swap(&mut self.received, &mut buffers.received);
        }
        if self.send.capacity() == 0 {
            std::mem::swap(&mut self.send, &mut buffers.send);
        }
    }

    /// Releases the buffers that hold nothing.
    pub(crate) fn take_back(&mut self, buffers: &mut Buffers) {
        if !self.has_unread() {
            (self.received_start, self.received_end) = (0, 0);
            buffers.received = std::mem::take(&mut self.received);
        }
        if self.send.is_empty() {
            buffers.send = std::mem::take(&mut self.send);
        }
    }

    /// Releases the buffers and waits for the next packet, for the rest of the idle time.
    ///
    /// # Errors
    /// `TimedOut` when that is over.
    pub fn wait_without_buffers(&mut self) -> io::Result<()> {
        if self.received_start == self.received_end {
            self.received = Box::default();
            (self.received_start, self.received_end) = (0, 0);
        }
        if self.send.is_empty() {
            self.send = Vec::new();
        }
        let rest = self
            .idle_timeout
            .map(|idle| idle.saturating_sub(IDLE_AFTER));
        let is_over = rest.is_some_and(|rest| rest.is_zero());
        if is_over || !self.transport.wait(rest)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.transport.set_read_timeout(self.first_wait())
    }

    /// A write failed: whatever is sent from now on would not arrive.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Where the next packet begins is not known any more. An answer can still be sent.
    pub fn is_out_of_step(&self) -> bool {
        self.out_of_step
    }

    pub(crate) fn set_out_of_step(&mut self) {
        self.out_of_step = true;
    }

    /// The next frame begins a command, so it carries the number 0.
    pub fn begin_command(&mut self) {
        self.sequence = 0;
        self.stays_in_memory = false;
        self.transport.begin_command();
    }

    pub fn offers_tls(&self) -> bool {
        self.transport.offers_tls()
    }

    /// Encrypts what follows. What has come already is the beginning of it, so nothing can be slipped in.
    pub fn start_tls(&mut self) -> io::Result<Option<Encryption>> {
        let ahead = self.received[self.received_start..self.received_end].to_vec();
        self.received_start = self.received_end;
        self.transport.start_tls(ahead)
    }

    /// Compresses what follows. False: the client has not waited for the answer to its handshake.
    pub fn start_compression(&mut self) -> bool {
        self.compressed = true;
        self.transport.start_compression();
        self.received_start == self.received_end
    }
}

#[cfg(test)]
pub(crate) mod tests;
