//! A client without manners: it sends what the test wants, in frames or not.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::harness::PATIENCE;

const CLIENT_PROTOCOL_41: u32 = 0x0200;
const CLIENT_LONG_PASSWORD: u32 = 1;
const CLIENT_SECURE_CONNECTION: u32 = 0x8000;
pub const CLIENT_LOCAL_FILES: u32 = 0x80;
pub const CLIENT_DEPRECATE_EOF: u32 = 0x0100_0000;
pub const CLIENT_CONNECT_WITH_DB: u32 = 8;

/// A client with this begins with a method that no account has.
pub const CLIENT_PLUGIN_AUTH: u32 = 1 << 19;

pub const COM_QUERY: u8 = 3;
const MAX_FRAME_BYTES: usize = 0xFF_FFFF;

pub struct RawClient {
    stream: TcpStream,
    one_by_one: bool,
}

/// An answer that begins with 0xFF.
#[derive(Debug, PartialEq, Eq)]
pub struct RawError {
    pub code: u16,
    /// Empty in an error before the greeting.
    pub state: String,
    pub message: String,
}

impl RawClient {
    /// A connection on which nothing was said yet.
    pub fn dial(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a socket has timeouts");
        stream
            .set_write_timeout(Some(PATIENCE))
            .expect("a socket has timeouts");
        RawClient {
            stream,
            one_by_one: false,
        }
    }

    /// A client that was let in as root.
    pub fn connect(address: SocketAddr, capabilities: u32) -> Self {
        let mut client = Self::dial(address);
        let (_, greeting) = client.receive().expect("the server greets");
        assert_eq!(greeting[0], 10, "the protocol's version");
        client.send_response("root", capabilities);
        let (sequence, answer) = client.receive().expect("the server answers");
        assert_eq!((sequence, answer[0]), (2, 0), "root is let in");
        client
    }

    pub fn send_response(&mut self, user: &str, capabilities: u32) {
        let capabilities =
            capabilities | CLIENT_PROTOCOL_41 | CLIENT_LONG_PASSWORD | CLIENT_SECURE_CONNECTION;
        let mut payload = capabilities.to_le_bytes().to_vec();
        payload.extend_from_slice(&(1_u32 << 30).to_le_bytes());
        payload.push(45);
        payload.extend_from_slice(&[0; 23]);
        payload.extend_from_slice(user.as_bytes());
        payload.extend_from_slice(&[0, 0]);
        if capabilities & CLIENT_PLUGIN_AUTH != 0 {
            payload.extend_from_slice(b"dialog\0");
        }
        self.send_frame(1, &payload).expect("the server reads");
    }

    /// From now on each byte goes out alone.
    pub fn send_bytes_one_by_one(&mut self) {
        self.stream.set_nodelay(true).expect("a socket has options");
        self.one_by_one = true;
    }

    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        let piece = if self.one_by_one {
            1
        } else {
            bytes.len().max(1)
        };
        bytes
            .chunks(piece)
            .try_for_each(|piece| self.stream.write_all(piece))
    }

    pub fn send_frame(&mut self, sequence: u8, payload: &[u8]) -> io::Result<()> {
        let mut frame = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        frame.push(sequence);
        frame.extend_from_slice(payload);
        self.send_raw(&frame)
    }

    /// A command, in as many frames as it needs.
    pub fn send_command(&mut self, command: u8, body: &[u8]) -> io::Result<()> {
        let payload = [&[command], body].concat();
        let mut sequence = 0_u8;
        let mut rest = &payload[..];
        loop {
            let (frame, others) = rest.split_at(rest.len().min(MAX_FRAME_BYTES));
            self.send_frame(sequence, frame)?;
            sequence = sequence.wrapping_add(1);
            rest = others;
            if frame.len() < MAX_FRAME_BYTES {
                return Ok(());
            }
        }
    }

    /// The next frame's number and payload.
    pub fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header)?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        Ok((header[3], payload))
    }

    pub fn receive_payload(&mut self) -> Vec<u8> {
        self.receive().expect("the server answers").1
    }

    pub fn receive_error(&mut self) -> RawError {
        let payload = self.receive_payload();
        assert_eq!(payload[0], 0xFF, "an error, not {payload:02X?}");
        let code = u16::from_le_bytes([payload[1], payload[2]]);
        let text = String::from_utf8_lossy(&payload[3..]).into_owned();
        let (state, message) = match text.strip_prefix('#') {
            Some(rest) => rest.split_at(5),
            None => ("", &text[..]),
        };
        RawError {
            code,
            state: state.into(),
            message: message.into(),
        }
    }

    /// Sends a command and expects an OK.
    pub fn succeed(&mut self, command: u8, body: &[u8]) {
        self.send_command(command, body).expect("the server reads");
        let answer = self.receive_payload();
        assert_eq!(answer[0], 0, "OK, not {answer:02X?}");
    }

    /// Sends a command and expects an error.
    pub fn fail(&mut self, command: u8, body: &[u8]) -> RawError {
        self.send_command(command, body).expect("the server reads");
        self.receive_error()
    }

    /// Nothing more is said; what was said is still read.
    pub fn hang_up(&mut self) {
        // The server may have ended the connection before.
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// The server ended the connection.
    pub fn assert_closed(&mut self) {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            other => panic!("the connection is still open: {other:?}"),
        }
    }
}
