//! Receiving: frames become a packet again, and one that is too long, or for which there is no memory, is read away.

use std::io;

use mysql_common::constants::Command;

use crate::packet::{
    HEADER_BYTES, MAX_FRAME_BYTES, PacketStream, ReadError, Transport, is_timeout,
};

const COM_STMT_SEND_LONG_DATA: u8 = Command::COM_STMT_SEND_LONG_DATA as u8;
pub(super) const RECEIVE_BUFFER_BYTES: usize = 16 << 10;
/// A request's buffer grows in steps of this, so a header that promises 16 MiB costs nothing before they come.
const RECEIVE_STEP_BYTES: usize = 256 << 10;
/// The most that is read and thrown away to answer a request that is too large. Beyond it the connection ends.
const MAX_DISCARDED_BYTES: usize = 1 << 30;

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

impl<T: Transport> PacketStream<T> {
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
