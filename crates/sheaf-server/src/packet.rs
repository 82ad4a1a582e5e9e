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

mod sending;
mod unread;

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_common::constants::Command;
use sheaf_sql::{Encryption, RequestMemory, SlowClient};

use crate::packet::unread::Unread;

const COM_STMT_SEND_LONG_DATA: u8 = Command::COM_STMT_SEND_LONG_DATA as u8;

/// The most bytes in one frame; a frame of this length is continued by the next one.
pub const MAX_FRAME_BYTES: usize = 0xFF_FFFF;
const HEADER_BYTES: usize = 4;
const RECEIVE_BUFFER_BYTES: usize = 16 << 10;
/// The send buffer goes out when it holds this much, so that the client reads the beginning of a long answer while the
/// rest is made. One packet may make it longer.
const SEND_BUFFER_BYTES: usize = 16 << 10;
/// A connection that has waited so long for a command is idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// A request's buffer grows in steps of this, so a header that promises 16 MiB costs nothing before they come.
const RECEIVE_STEP_BYTES: usize = 256 << 10;
/// The most that is read and thrown away to answer a request that is too large. Beyond it the connection ends.
const MAX_DISCARDED_BYTES: usize = 1 << 30;

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

    /// Waits a moment for the next packet: false if nothing of it has come. The end of the stream counts as something.
    pub fn has_begun(&mut self) -> io::Result<bool> {
        if self.has_unread() {
            return Ok(true);
        }
        match self.fill() {
            Ok(_) => Ok(true),
            Err(error) if is_timeout(&error) && self.expects_commands => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// As [`has_begun`](Self::has_begun), without any wait.
    pub(crate) fn has_come(&mut self) -> io::Result<bool> {
        if self.has_unread() {
            return Ok(true);
        }
        match self.fill_by(T::read_at_once) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                (self.may_have_more, self.has_end) = (false, false);
                Ok(false)
            }
            Err(error) => Err(error),
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

    /// Replaces `payload` with the next packet.
    pub fn read_packet(&mut self, payload: &mut Vec<u8>) -> Result<(), ReadError> {
        payload.clear();
        if !self.has_begun()? {
            self.wait_without_buffers()?;
        }
        let result = self.read_frames(payload);
        self.unhurry()?;
        result
    }

    fn read_frames(&mut self, payload: &mut Vec<u8>) -> Result<(), ReadError> {
        let mut frame_bytes = self.read_header(true)?;
        loop {
            if payload.len() + frame_bytes > self.max_packet_bytes {
                self.discard_packet(payload.len(), frame_bytes)?;
                payload.clear();
                return Err(ReadError::TooLarge {
                    limit_bytes: self.max_packet_bytes,
                });
            }
            let end = payload.len() + frame_bytes;
            if payload.is_empty() && frame_bytes > 0 {
                payload.push(0);
                self.read_exact(payload)?;
            }
            if !self.take_memory(payload, end) {
                let (left, command) = (end - payload.len(), payload.first().copied());
                *payload = Vec::new();
                self.give_memory_back();
                self.discard_payload(left)?;
                if frame_bytes == MAX_FRAME_BYTES {
                    let next = self.read_header(false)?;
                    self.discard_packet(end, next)?;
                }
                return Err(ReadError::NoMemory { command });
            }
            while payload.len() < end {
                let start = payload.len();
                payload.resize(end.min(start + RECEIVE_STEP_BYTES), 0);
                self.read_exact(&mut payload[start..])?;
            }
            if frame_bytes < MAX_FRAME_BYTES {
                return Ok(());
            }
            frame_bytes = self.read_header(false)?;
        }
    }

    /// Whether there is memory for a packet of so many bytes, of which the first is read. Pieces of parameters are
    /// counted where they are kept: what is missing of them could not be told to the client.
    fn take_memory(&mut self, payload: &[u8], bytes: usize) -> bool {
        let is_piece = payload.first() == Some(&COM_STMT_SEND_LONG_DATA);
        match &mut self.memory {
            Some(memory) if !is_piece => memory.take(bytes),
            _ => true,
        }
    }

    /// The payload length of the next frame. An end of the stream is `Closed` where a packet may begin, and an
    /// error inside one.
    pub(crate) fn read_header(&mut self, begins_packet: bool) -> Result<usize, ReadError> {
        if begins_packet && self.received_start == self.received_end && self.fill()? == 0 {
            return Err(ReadError::Closed);
        }
        let mut header = [0; HEADER_BYTES];
        self.read_exact(&mut header)?;
        let [low, middle, high, sequence] = header;
        if sequence != self.sequence && !self.compressed {
            return Err(ReadError::OutOfOrder {
                expected: self.sequence,
                got: sequence,
            });
        }
        self.sequence = sequence.wrapping_add(1);
        Ok(u32::from_le_bytes([low, middle, high, 0]) as usize)
    }

    /// Payload bytes of a frame whose header was read; 0 only if the stream ended.
    pub(crate) fn read_payload(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.received_start == self.received_end {
            if out.len() >= self.received.len() {
                self.hurry()?;
                let count = read_retrying(&mut self.transport, T::read, out)?;
                self.may_have_more = count == out.len();
                self.received_bytes += count as u64;
                return Ok(count);
            }
            self.hurry()?;
            self.fill()?;
        }
        let available = &self.received[self.received_start..self.received_end];
        let count = available.len().min(out.len());
        out[..count].copy_from_slice(&available[..count]);
        self.received_start += count;
        Ok(count)
    }

    fn read_exact(&mut self, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            let count = self.read_payload(out)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            out = &mut out[count..];
        }
        Ok(())
    }

    /// Refills the empty receive buffer with whatever one read gives.
    fn fill(&mut self) -> io::Result<usize> {
        self.fill_by(T::read)
    }

    fn fill_by(&mut self, read: ReadFrom<T>) -> io::Result<usize> {
        self.received_start = 0;
        self.received_end = 0;
        if self.received.is_empty() {
            self.received = vec![0; RECEIVE_BUFFER_BYTES].into_boxed_slice();
        }
        self.received_end = read_retrying(&mut self.transport, read, &mut self.received)?;
        self.may_have_more = self.received_end == self.received.len();
        self.received_bytes += self.received_end as u64;
        Ok(self.received_end)
    }

    /// From the first byte of a packet on, the rest is due soon.
    fn hurry(&mut self) -> io::Result<()> {
        if !self.hurried && self.read_timeout != self.first_wait() {
            self.transport.set_read_timeout(self.read_timeout)?;
            self.hurried = true;
        }
        Ok(())
    }

    pub(crate) fn unhurry(&mut self) -> io::Result<()> {
        if self.hurried {
            self.transport.set_read_timeout(self.first_wait())?;
            self.hurried = false;
        }
        Ok(())
    }

    /// Reads the rest of a packet away, from a frame whose header was read.
    fn discard_packet(
        &mut self,
        already_bytes: usize,
        mut frame_bytes: usize,
    ) -> Result<(), ReadError> {
        let mut discarded_bytes = already_bytes;
        loop {
            discarded_bytes += frame_bytes;
            if discarded_bytes > MAX_DISCARDED_BYTES {
                return Err(ReadError::Io(io::Error::other(
                    "the packet is too long to be skipped",
                )));
            }
            self.discard_payload(frame_bytes)?;
            if frame_bytes < MAX_FRAME_BYTES {
                return Ok(());
            }
            frame_bytes = self.read_header(false)?;
        }
    }

    pub(crate) fn discard_payload(&mut self, mut bytes: usize) -> io::Result<()> {
        while bytes > 0 {
            if self.received_start == self.received_end {
                self.hurry()?;
                if self.fill()? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            let count = bytes.min(self.received_end - self.received_start);
            self.received_start += count;
            bytes -= count;
        }
        Ok(())
    }
}

/// A way to read from a transport.
type ReadFrom<T> = fn(&mut T, &mut [u8]) -> io::Result<usize>;

fn read_retrying<T>(transport: &mut T, read: ReadFrom<T>, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match read(transport, out) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => return result,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Cursor;

    use sheaf_sql::SqlError;

    use super::*;

    /// A peer that has said everything it will say.
    pub(crate) struct Script {
        pub incoming: Cursor<Vec<u8>>,
        pub outgoing: Vec<u8>,
        pub writes: usize,
        pub fail_writes: bool,
        /// Bytes that are taken at once.
        pub room: usize,
    }

    impl Script {
        pub(crate) fn new(incoming: Vec<u8>) -> Self {
            Script {
                incoming: Cursor::new(incoming),
                outgoing: Vec::new(),
                writes: 0,
                fail_writes: false,
                room: 0,
            }
        }
    }

    impl Read for Script {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.incoming.read(out)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.fail_writes {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.writes += 1;
            self.outgoing.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Transport for Script {
        fn set_read_timeout(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
            Ok(())
        }

        fn write_at_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 && !self.fail_writes {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= count;
            self.write(&bytes[..count])
        }
    }

    pub(crate) fn stream(incoming: Vec<u8>) -> PacketStream<Script> {
        PacketStream::new(Script::new(incoming), 64 << 20)
    }

    impl PacketStream<Script> {
        /// What the peer received.
        pub(crate) fn sent(&mut self) -> Vec<u8> {
            self.flush().expect("a script takes everything");
            std::mem::take(&mut self.transport.outgoing)
        }
    }

    fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        frame.push(sequence);
        frame.extend_from_slice(payload);
        frame
    }

    fn write(packets: &mut PacketStream<Script>, payload: &[u8]) {
        packets
            .write_packet(|out| {
                out.extend_from_slice(payload);
                Ok(())
            })
            .expect("a script takes everything");
    }

    #[test]
    fn a_packet_has_its_length_and_its_number_in_front() {
        let mut packets = stream(Vec::new());
        write(&mut packets, b"abc");
        write(&mut packets, b"");
        assert_eq!(
            packets.sent(),
            [&[3, 0, 0, 0][..], b"abc", &[0, 0, 0, 1]].concat()
        );
    }

    #[test]
    fn small_packets_leave_together() {
        let mut packets = stream(Vec::new());
        let packet = HEADER_BYTES + b"a row of a result".len();
        for _ in 0..SEND_BUFFER_BYTES / packet {
            write(&mut packets, b"a row of a result");
        }
        packets.sent();
        assert_eq!(packets.transport.writes, 1);
    }

    #[test]
    fn a_long_packet_is_split_and_read_back() {
        for bytes in [
            MAX_FRAME_BYTES - 1,
            MAX_FRAME_BYTES,
            MAX_FRAME_BYTES + 1,
            2 * MAX_FRAME_BYTES + 5,
        ] {
            let payload: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
            let mut packets = stream(Vec::new());
            write(&mut packets, &payload);
            let sent = packets.sent();
            let frames = bytes / MAX_FRAME_BYTES + 1;
            assert_eq!(sent.len(), bytes + frames * HEADER_BYTES);

            let mut packets = stream(sent);
            let mut received = Vec::new();
            packets
                .read_packet(&mut received)
                .expect("the packet is whole");
            assert!(
                received == payload,
                "a packet of {bytes} bytes came back different"
            );
            assert_eq!(packets.sequence, frames as u8);
        }
    }

    #[test]
    fn a_frame_out_of_order_is_refused() {
        let mut packets = stream(frame(3, b"x"));
        let error = packets
            .read_packet(&mut Vec::new())
            .expect_err("number 3 comes first");
        assert!(
            matches!(
                error,
                ReadError::OutOfOrder {
                    expected: 0,
                    got: 3
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn a_packet_that_is_too_large_is_skipped_and_the_next_one_read() {
        let big = vec![7; MAX_FRAME_BYTES];
        let incoming = [frame(0, &big), frame(1, &big[..100]), frame(0, b"next")].concat();
        let mut packets = stream(incoming);
        packets.set_max_packet_bytes(1 << 20);
        let mut payload = Vec::new();
        let error = packets
            .read_packet(&mut payload)
            .expect_err("16 MiB are more than 1 MiB");
        assert!(matches!(error, ReadError::TooLarge { .. }), "{error}");
        assert!(
            payload.capacity() < 1 << 20,
            "the limit also bounds the memory"
        );
        packets.begin_command();
        packets
            .read_packet(&mut payload)
            .expect("the stream is in step again");
        assert_eq!(payload, b"next");
    }

    #[test]
    fn an_end_between_packets_is_not_an_end_inside_one() {
        let error = stream(Vec::new())
            .read_packet(&mut Vec::new())
            .expect_err("nothing came");
        assert!(matches!(error, ReadError::Closed));
        for cut in 1..7 {
            let error = stream(frame(0, b"abc")[..cut].to_vec())
                .read_packet(&mut Vec::new())
                .expect_err("the packet is cut");
            assert!(
                matches!(&error, ReadError::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof),
                "{error}"
            );
        }
    }

    #[test]
    fn a_packet_that_cannot_be_filled_leaves_no_trace() {
        let mut packets = stream(Vec::new());
        write(&mut packets, b"before");
        let error = packets.write_packet(|out| {
            out.extend_from_slice(b"half a row");
            Err(SqlError::unknown("no"))
        });
        assert!(error.is_err());
        write(&mut packets, b"after");
        assert_eq!(
            packets.sent(),
            [frame(0, b"before"), frame(1, b"after")].concat()
        );
    }

    #[test]
    fn an_answer_that_was_taken_back_is_replaced_by_another() {
        let mut packets = stream(frame(0, b"a command"));
        packets
            .read_packet(&mut Vec::new())
            .expect("the packet is whole");
        write(&mut packets, b"all is well");
        write(&mut packets, b"really");
        packets.take_back_answer();
        write(&mut packets, b"no");
        assert_eq!(packets.sent(), frame(1, b"no"));
    }

    #[test]
    fn a_peer_that_takes_nothing_is_not_waited_for() {
        let mut packets = stream(Vec::new());
        write(&mut packets, b"an answer");
        packets.transport.room = 5;
        assert!(!packets.flush_at_once().expect("the peer is there"));
        assert!(packets.has_unsent());
        packets.transport.room = 100;
        assert!(packets.flush_at_once().expect("the peer is there"));
        assert_eq!(packets.transport.outgoing, frame(0, b"an answer"));
        write(&mut packets, b"more");
        packets.transport.fail_writes = true;
        assert_eq!(packets.flush_at_once().expect_err("it is gone").code, 1160);
        assert!(packets.is_broken());
    }

    #[test]
    fn a_read_that_fills_its_buffer_may_have_left_something() {
        let commands: Vec<u8> = (0..)
            .flat_map(|_: u32| frame(0, &[7; 60]))
            .take(RECEIVE_BUFFER_BYTES + 128)
            .collect();
        let mut packets = stream(commands);
        assert!(packets.has_come().expect("the script goes on"));
        assert!(packets.may_have_more());
        let mut payload = Vec::new();
        while packets.has_unread() {
            packets.begin_command();
            packets.read_packet(&mut payload).expect("it is whole");
        }
        assert!(packets.has_come().expect("the script goes on"));
        assert!(
            !packets.may_have_more(),
            "128 bytes are less than there was room for"
        );
        packets.note_end();
        assert!(packets.may_have_more(), "the end was not read");
    }

    #[test]
    fn after_a_failed_write_nothing_is_sent() {
        let mut packets = stream(Vec::new());
        packets.transport.fail_writes = true;
        write(&mut packets, b"lost");
        assert_eq!(packets.flush().expect_err("the pipe is broken").code, 1160);
        assert!(packets.is_broken());
        packets.transport.fail_writes = false;
        write(&mut packets, b"late");
        assert!(packets.flush().is_err());
        assert!(packets.transport.outgoing.is_empty());
    }
}
