//! Sending: packets are put together in a buffer, and leave for the peer.
//!
//! ```text
//!   rows of a statement -> buffer -> transport             while the peer reads
//!                          buffer -> file -> transport     others want what the statement holds: see `SlowClient`
//! ```
//!
//! A statement whose peer reads nothing waits in slices, so that it hears when it shall stop. Then what is buffered,
//! and what is in the file, is sent before the error that it ends with: the peer has taken the beginning of a packet.

use std::io;
use std::time::{Duration, Instant};

use sheaf_sql::{SlowClient, SqlError};
use sheaf_types::error::codes;

use crate::packet::unread::Unread;
use crate::packet::{HEADER_BYTES, MAX_FRAME_BYTES, PacketStream, SEND_BUFFER_BYTES, Transport};

/// How often a statement whose peer reads nothing looks whether it shall stop: at first, and when it has waited for
/// longer. Many that begin to wait at once take much memory together, before one of them is stopped.
const FIRST_SLICE: Duration = Duration::from_millis(4);
const WAIT_SLICE: Duration = Duration::from_millis(20);
const FIRST_WAIT: Duration = Duration::from_millis(400);
/// What is left of a packet that is longer goes to a file when the peer takes nothing of it. The statement may be over
/// by then, and nobody else counts it.
const LONG_BYTES: usize = 256 << 10;
/// Bytes that a transport takes without a long wait when it has room, whatever lies between it and the socket.
const ROOM_BYTES: usize = 16 << 10;

/// A way to write to a transport.
type WriteTo<T> = fn(&mut T, &[u8]) -> io::Result<usize>;

/// Writes what the peer takes without a wait.
fn write_at_once<T: Transport>(transport: &mut T, bytes: &[u8]) -> io::Result<usize> {
    if transport.is_plain() {
        return transport.write_at_once(bytes);
    }
    if !transport.await_room(Some(Duration::ZERO))? {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let written = transport.write(&bytes[..bytes.len().min(ROOM_BYTES)]);
    // How much of it has gone is not known, so it cannot be tried again.
    written.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    })
}

impl<T: Transport> PacketStream<T> {
    /// Appends one packet, whose payload `fill` appends to the buffer it is given. If `fill` fails nothing of
    /// the packet is sent. Only a full buffer is written to the transport: see [`PacketStream::flush`]. There the
    /// statement that it is of may hear that it shall stop; then the packet stays buffered.
    pub fn write_packet(
        &mut self,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let start = self.send.len();
        self.send.extend_from_slice(&[0; HEADER_BYTES]);
        if let Err(error) = fill(&mut self.send) {
            self.send.truncate(start);
            return Err(error);
        }
        self.finish_packet(start);
        if self.send.len() >= SEND_BUFFER_BYTES {
            self.flush_of_statement()
        } else {
            Ok(())
        }
    }

    /// Writes the headers of the packet that begins at `start` and reaches to the end of the buffer.
    fn finish_packet(&mut self, start: usize) {
        let payload_bytes = self.send.len() - start - HEADER_BYTES;
        let full_frames = payload_bytes / MAX_FRAME_BYTES;
        // Makes room for the headers of the second and later frames, moving the last frame first.
        self.send
            .resize(self.send.len() + full_frames * HEADER_BYTES, 0);
        for frame in (1..=full_frames).rev() {
            let from = start + HEADER_BYTES + frame * MAX_FRAME_BYTES;
            let to = from + frame * HEADER_BYTES;
            let bytes = MAX_FRAME_BYTES.min(payload_bytes - frame * MAX_FRAME_BYTES);
            self.send.copy_within(from..from + bytes, to);
        }
        for frame in 0..=full_frames {
            let at = start + frame * (HEADER_BYTES + MAX_FRAME_BYTES);
            let bytes = MAX_FRAME_BYTES.min(payload_bytes - frame * MAX_FRAME_BYTES);
            self.send[at..at + 3].copy_from_slice(&(bytes as u32).to_le_bytes()[..3]);
            self.send[at + 3] = self.sequence;
            self.sequence = self.sequence.wrapping_add(1);
        }
    }

    /// Sends what is buffered. After an error the connection can only be closed.
    pub fn flush(&mut self) -> Result<(), SqlError> {
        if self.broken {
            self.forget_unsent();
            return Err(net_error_on_write());
        }
        if let Some(slow_client) = self.slow_client.clone() {
            self.flush_patiently(&slow_client, false)?;
        }
        let result = self.send_by(T::write).and_then(|()| self.transport.flush());
        self.trim();
        result.map_err(|error| self.broken_by(&error))
    }

    /// Sends what is buffered as far as the peer takes it without a wait; false: there is something left. After an
    /// error the connection can only be closed.
    pub(crate) fn flush_at_once(&mut self) -> Result<bool, SqlError> {
        if self.broken {
            self.forget_unsent();
            return Err(net_error_on_write());
        }
        let result = self.send_by(write_at_once);
        self.trim();
        match result {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.broken_by(&error)),
        }
    }

    /// As [`Self::flush_at_once`], for a connection that is going to wait without a thread: it keeps little in memory.
    pub(crate) fn flush_and_rest(&mut self) -> Result<bool, SqlError> {
        let is_sent = self.flush_at_once()?;
        if let Some(slow_client) = self.slow_client.clone()
            && !is_sent
            && self.send.len() > LONG_BYTES
        {
            self.put_aside(&slow_client)?;
        }
        Ok(is_sent)
    }

    /// Sends what is buffered of a statement's answer, or keeps it for the peer.
    ///
    /// # Errors
    /// As [`Self::flush`], and what the statement is to end with: then the rest stays buffered.
    fn flush_of_statement(&mut self) -> Result<(), SqlError> {
        match self.slow_client.clone() {
            Some(slow_client) => self.flush_patiently(&slow_client, true),
            None => self.flush(),
        }
    }

    /// Sends what is buffered: all of a statement that runs, all but a little of one that is over. A statement that
    /// runs may have to keep it in the file instead, or to stop.
    fn flush_patiently(
        &mut self,
        slow_client: &SlowClient,
        is_running: bool,
    ) -> Result<(), SqlError> {
        loop {
            let was_stalled = self.stalled_since.is_some();
            let is_sent = self.flush_at_once()?;
            if was_stalled && self.stalled_since.is_none() {
                slow_client.goes_on();
            }
            if is_sent || !is_running && self.send.len() <= LONG_BYTES {
                return Ok(());
            }
            if is_running {
                slow_client.check()?;
            }
            let since = *self.stalled_since.get_or_insert_with(Instant::now);
            let waited = since.elapsed();
            if self.write_timeout.is_some_and(|most| waited >= most) {
                return Err(self.broken_by(&io::ErrorKind::TimedOut.into()));
            }
            if is_running && slow_client.waits(waited) {
                return self.keep_unread(slow_client);
            }
            if self.send.len() > LONG_BYTES && slow_client.shall_put_aside(waited) {
                self.put_aside(slow_client)?;
            }
            let slice = match waited < FIRST_WAIT {
                true => FIRST_SLICE,
                false => WAIT_SLICE,
            };
            let room = self.transport.await_room(Some(slice));
            room.map_err(|error| self.broken_by(&error))?;
        }
    }

    /// Puts what is buffered into the file if that is possible; otherwise it stays in memory until the answer is sent.
    ///
    /// # Errors
    /// The connection can only be closed.
    fn put_aside(&mut self, slow_client: &SlowClient) -> Result<(), SqlError> {
        if !self.stays_in_memory {
            self.stays_in_memory = self.keep_unread(slow_client).is_err();
        }
        match self.broken {
            true => Err(net_error_on_write()),
            false => Ok(()),
        }
    }

    /// Puts what is buffered into the file.
    fn keep_unread(&mut self, slow_client: &SlowClient) -> Result<(), SqlError> {
        let unread = match self.unread.take() {
            Some(unread) => unread,
            None => Unread::new(slow_client.file()?),
        };
        let unread = self.unread.insert(unread);
        let file = unread.file();
        let length = file.length();
        if !slow_client.may_keep(file, self.send.len()) {
            return Err(SlowClient::no_room());
        }
        if let Err(error) = file.append(&self.send) {
            tracing::warn!(%error, "rows that a client does not read cannot be kept");
            if file.length() == length {
                return Err(SlowClient::no_room());
            }
            // What the file holds is not known.
            return Err(self.broken_by(&error.source));
        }
        self.send.clear();
        self.trim();
        Ok(())
    }

    /// Sends what is in the file and in the buffer.
    ///
    /// # Errors
    /// That of a write. What has not been sent by then stays where it is.
    fn send_by(&mut self, write: WriteTo<T>) -> io::Result<()> {
        while let Some(unread) = &mut self.unread {
            let bytes = unread.next()?;
            if bytes.is_empty() {
                self.unread = None;
                break;
            }
            let count = write_some(&mut self.transport, write, bytes)?;
            unread.note_sent(count);
            self.stalled_since = None;
            self.sent_bytes += count as u64;
        }
        let mut sent = 0;
        let mut result = Ok(());
        while sent < self.send.len() && result.is_ok() {
            match write_some(&mut self.transport, write, &self.send[sent..]) {
                Ok(count) => sent += count,
                Err(error) => result = Err(error),
            }
        }
        if sent > 0 {
            self.stalled_since = None;
            self.sent_bytes += sent as u64;
            self.send.drain(..sent);
        }
        result
    }

    /// The connection ends: a write has failed.
    fn broken_by(&mut self, error: &io::Error) -> SqlError {
        self.broken = true;
        self.forget_unsent();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => net_write_interrupted(),
            _ => net_error_on_write(),
        }
    }

    fn forget_unsent(&mut self) {
        self.send.clear();
        self.unread = None;
        self.trim();
    }

    /// A long packet must not keep its buffer until the connection ends.
    fn trim(&mut self) {
        self.send.shrink_to(2 * SEND_BUFFER_BYTES);
    }

    /// Whether something is buffered that was not sent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.send.is_empty() || self.unread.is_some()
    }

    /// Bytes that are buffered and were not sent.
    pub(crate) fn unsent_bytes(&self) -> usize {
        let in_file = self.unread.as_ref().map_or(0, Unread::left);
        self.send.len().saturating_add(in_file)
    }

    /// Forgets what is buffered, which is the whole answer to a command: another one is sent in its place.
    pub(crate) fn take_back_answer(&mut self) {
        if let Some(first) = self.send.get(HEADER_BYTES - 1) {
            self.sequence = *first;
        }
        self.send.clear();
    }
}

/// Some bytes at least.
fn write_some<T: Transport>(
    transport: &mut T,
    write: WriteTo<T>,
    bytes: &[u8],
) -> io::Result<usize> {
    loop {
        match write(transport, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn net_error_on_write() -> SqlError {
    SqlError::new(
        codes::NET_ERROR_ON_WRITE,
        "Got an error writing communication packets",
    )
}

fn net_write_interrupted() -> SqlError {
    SqlError::new(
        codes::NET_WRITE_INTERRUPTED,
        "Got timeout writing communication packets",
    )
}
