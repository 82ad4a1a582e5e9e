//! LOAD DATA LOCAL INFILE: a file that the client sends while the statement runs.
//!
//! ```text
//!   server: 0xFB, file name      client: packet, packet, ..., empty packet      server: OK or ERR
//! ```
//!
//! The file is read frame by frame, so its size does not matter. Whatever a failed statement leaves unread must
//! be taken off the connection before the error can be answered: dropping the reader does that.

use std::io::{self, Read};

use crate::packet::{MAX_FRAME_BYTES, PacketStream, ReadError, Transport};

/// The contents of the client's file.
pub struct LocalInfile<'a, T: Transport> {
    packets: &'a mut PacketStream<T>,
    /// Bytes of the current frame that are not read yet.
    frame_bytes_left: usize,
    /// The current frame is continued, so an empty frame after it does not end the file.
    continued: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Open,
    Ended,
    /// The connection failed; nothing more can be read from it.
    Failed,
}

impl<'a, T: Transport> LocalInfile<'a, T> {
    /// The request for the file must have been sent.
    pub fn new(packets: &'a mut PacketStream<T>) -> Self {
        LocalInfile {
            packets,
            frame_bytes_left: 0,
            continued: false,
            state: State::Open,
        }
    }

    fn next_frame(&mut self) -> io::Result<()> {
        let bytes = self
            .packets
            .read_header(false)
            .map_err(|error| match error {
                ReadError::Io(error) => error,
                other => io::Error::other(other),
            })?;
        if bytes == 0 && !self.continued {
            self.state = State::Ended;
        }
        self.frame_bytes_left = bytes;
        self.continued = bytes == MAX_FRAME_BYTES;
        Ok(())
    }

    fn read_some(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.frame_bytes_left == 0 {
            self.next_frame()?;
            if self.state == State::Ended {
                return Ok(0);
            }
        }
        let wanted = out.len().min(self.frame_bytes_left);
        let count = self.packets.read_payload(&mut out[..wanted])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.frame_bytes_left -= count;
        Ok(count)
    }

    fn drain(&mut self) -> io::Result<()> {
        while self.state == State::Open {
            self.packets.discard_payload(self.frame_bytes_left)?;
            self.next_frame()?;
        }
        self.packets.unhurry()
    }
}

impl<T: Transport> Read for LocalInfile<'_, T> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.state {
            State::Open if !out.is_empty() => self
                .read_some(out)
                .inspect_err(|_| self.state = State::Failed),
            State::Failed => Err(io::ErrorKind::NotConnected.into()),
            State::Open | State::Ended => Ok(0),
        }
    }
}

impl<T: Transport> Drop for LocalInfile<'_, T> {
    fn drop(&mut self) {
        if self.state == State::Failed || self.drain().is_err() {
            self.packets.set_out_of_step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::stream;

    fn frames(first_sequence: u8, payloads: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (i, payload) in payloads.iter().enumerate() {
            bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
            bytes.push(first_sequence.wrapping_add(i as u8));
            bytes.extend_from_slice(payload);
        }
        bytes
    }

    #[test]
    fn a_file_is_its_packets_up_to_the_empty_one() {
        let mut packets = stream(frames(0, &[b"1,one\n", b"2,t", b"wo\n", b""]));
        let mut text = String::new();
        LocalInfile::new(&mut packets)
            .read_to_string(&mut text)
            .expect("the file is whole");
        assert_eq!(text, "1,one\n2,two\n");
        assert!(!packets.is_out_of_step());
    }

    #[test]
    fn a_continued_packet_may_end_with_an_empty_frame_inside_the_file() {
        let full = vec![b'x'; MAX_FRAME_BYTES];
        let mut packets = stream(frames(0, &[&full, b"", b"tail", b""]));
        let mut bytes = Vec::new();
        LocalInfile::new(&mut packets)
            .read_to_end(&mut bytes)
            .expect("the file is whole");
        assert_eq!(bytes.len(), MAX_FRAME_BYTES + 4);
    }

    #[test]
    fn what_a_failed_statement_did_not_read_is_skipped() {
        let mut incoming = frames(0, &[b"abcdefgh", b"ijkl", b""]);
        incoming.extend(frames(0, &[b"next command"]));
        let mut packets = stream(incoming);
        let mut some = [0; 3];
        LocalInfile::new(&mut packets)
            .read_exact(&mut some)
            .expect("three bytes are there");
        packets.begin_command();
        let mut payload = Vec::new();
        packets
            .read_packet(&mut payload)
            .expect("the stream is in step");
        assert_eq!(payload, b"next command");
    }

    #[test]
    fn a_client_that_disappears_is_an_error_and_not_a_short_file() {
        let mut packets = stream(frames(0, &[b"abc"]));
        let mut bytes = Vec::new();
        LocalInfile::new(&mut packets)
            .read_to_end(&mut bytes)
            .expect_err("the end is missing");
        assert!(packets.is_out_of_step());
    }
}
