//! A client of the MySQL protocol that does as little as it can: while servers are measured, it has half of the
//! machine.
//!
//! ```text
//!   prepare      COM_STMT_PREPARE         once for each text
//!   send         COM_STMT_EXECUTE         one write
//!   receive      answer, or rows          mostly one read
//! ```
//!
//! Sending and receiving are apart, so that one thread can drive many connections. (The client of the crate `mysql` is
//! for everything else. It replaces what it knows of a statement's columns with each answer that describes them, and
//! that takes longer the more threads there are: with 128 of them, a third of the client's time.)
//!
//! Nothing is configurable: the user is root, without a password, on the loopback interface, and packets have one
//! frame.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};

use mysql_common::constants::{
    CapabilityFlags, ColumnFlags, ColumnType, Command, MariadbCapabilities,
};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, Column, ComStmtExecuteRequestBuilder, HandshakePacket, HandshakeResponse,
};
use mysql_common::proto::MySerialize;
use mysql_common::value::{BinValue, Value, ValueDeserializer};

use crate::error::BenchError;

const HEADER_BYTES: usize = 4;
/// A packet of this length would be continued by another frame.
const MAX_PACKET_BYTES: usize = 0xFF_FFFF;
const RECEIVE_BUFFER_BYTES: usize = 4 << 10;
/// Of an error's packet, what lies before its text: 0xFF, the code, `#` and the SQLSTATE.
const ERROR_TEXT_AT: usize = 9;
/// An answer with this first byte, and shorter than nine bytes, ends a list of columns or rows.
const END_OF_LIST: u8 = 0xFE;
const MAX_END_OF_LIST_BYTES: usize = 8;
const OK: u8 = 0x00;
const ERROR: u8 = 0xFF;

/// Why a statement has no answer.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The server has refused it.
    #[error("error {code}: {message}")]
    Refused { code: u16, message: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// One row; NULL and all types as they travel in binary rows.
pub type Row = Vec<Value>;

/// A statement of one connection.
#[derive(Clone, Copy)]
pub struct PreparedStatement {
    id: u32,
}

/// One connection.
pub struct WireClient {
    socket: TcpStream,
    received: Vec<u8>,
    /// What of `received` is not consumed yet.
    unread: Range<usize>,
    request: Vec<u8>,
    /// The server leaves out descriptions of columns that it has sent before (a capability of MariaDB's).
    may_skip_columns: bool,
    /// Of each statement by its number, as they were described last.
    columns: HashMap<u32, Vec<(ColumnType, ColumnFlags)>>,
    /// The statement that was sent last.
    sent: u32,
}

impl WireClient {
    /// Opens a session as root on the loopback interface.
    pub fn connect(
        server: &'static str,
        port: u16,
        database: &str,
    ) -> Result<WireClient, BenchError> {
        Self::open(port, database).map_err(|error| BenchError::server(server, error))
    }

    fn open(port: u16, database: &str) -> Result<WireClient, WireError> {
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_nodelay(true)?;
        let mut client = WireClient {
            socket,
            received: vec![0; RECEIVE_BUFFER_BYTES],
            unread: 0..0,
            request: Vec::new(),
            may_skip_columns: false,
            columns: HashMap::new(),
            sent: 0,
        };
        let greeting = client.answer()?;
        let greeting = ParseBuf(&client.received[greeting]).parse::<HandshakePacket<'_>>(())?;
        let capabilities = CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_SECURE_CONNECTION
            | CapabilityFlags::CLIENT_PLUGIN_AUTH
            | CapabilityFlags::CLIENT_TRANSACTIONS;
        let is_mariadb = greeting.maria_db_server_version_parsed().is_some();
        let mariadb_capabilities = match is_mariadb {
            true => greeting.mariadb_ext_capabilities(),
            false => MariadbCapabilities::empty(),
        } & MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA;
        // No password is an empty answer to every challenge.
        let response = HandshakeResponse::new(
            None::<&[u8]>,
            (8, 0, 0),
            Some(&b"root"[..]),
            Some(database.as_bytes()),
            Some(AuthPlugin::MysqlNativePassword),
            capabilities,
            None,
            MAX_PACKET_BYTES as u32,
        )
        .with_mariadb_ext_capabilities(mariadb_capabilities);
        client.may_skip_columns = !mariadb_capabilities.is_empty();
        client.send_packet(1, |out| response.serialize(out))?;
        let answer = client.answer()?;
        if client.received[answer.start] == END_OF_LIST {
            // The server prefers another way to see that there is no password.
            let sequence = client.received[answer.start - 1].wrapping_add(1);
            client.send_packet(sequence, |_| ())?;
            client.answer()?;
        }
        Ok(client)
    }

    /// Runs a statement that has no rows.
    pub fn run(&mut self, sql: &str) -> Result<(), WireError> {
        self.send_packet(0, |out| {
            out.push(Command::COM_QUERY as u8);
            out.extend_from_slice(sql.as_bytes());
        })?;
        let answer = self.answer()?;
        match self.received[answer.start] {
            OK => Ok(()),
            _ => Err(unexpected("rows where there should be none")),
        }
    }

    pub fn prepare(&mut self, sql: &str) -> Result<PreparedStatement, WireError> {
        self.send_packet(0, |out| {
            out.push(Command::COM_STMT_PREPARE as u8);
            out.extend_from_slice(sql.as_bytes());
        })?;
        let answer = self.answer()?;
        let mut answer = ParseBuf(&self.received[answer]);
        let _ok = answer.checked_eat_u8().ok_or_else(cut)?;
        let id = answer.checked_eat_u32_le().ok_or_else(cut)?;
        let columns = answer.checked_eat_u16_le().ok_or_else(cut)?;
        let parameters = answer.checked_eat_u16_le().ok_or_else(cut)?;
        self.sent = id;
        for descriptions in [parameters, columns] {
            if descriptions > 0 {
                self.read_columns(descriptions.into())?;
            }
        }
        Ok(PreparedStatement { id })
    }

    /// Sends a statement off. Its answer must be [received](Self::receive) before the next one is sent.
    pub fn send(
        &mut self,
        statement: PreparedStatement,
        parameters: &[Value],
    ) -> Result<(), WireError> {
        let (request, _) = ComStmtExecuteRequestBuilder::new(statement.id).build(parameters);
        self.sent = statement.id;
        self.send_packet(0, |out| request.serialize(out))
    }

    /// Waits for the answer to the statement that was sent last, and calls `on_row` with each of its rows.
    pub fn receive(&mut self, mut on_row: impl FnMut(Row)) -> Result<(), WireError> {
        let answer = self.answer()?;
        let mut answer = ParseBuf(&self.received[answer]);
        let columns = answer.checked_eat_lenenc_int().ok_or_else(cut)? as usize;
        if columns == 0 {
            return Ok(());
        }
        let are_described = !self.may_skip_columns || answer.checked_eat_u8() != Some(0);
        if are_described {
            self.read_columns(columns)?;
        } else {
            // Only the end of the list comes.
            self.answer()?;
        }
        loop {
            let row = self.answer()?;
            if self.is_end_of_list(&row) {
                return Ok(());
            }
            on_row(self.decode(&self.received[row])?);
        }
    }

    /// As [`receive`](Self::receive), of rows that nobody looks at.
    pub fn receive_and_forget(&mut self) -> Result<(), WireError> {
        let answer = self.answer()?;
        if self.received[answer.start] == OK {
            return Ok(());
        }
        // The end of the columns, described or not, and that of the rows.
        for _ in 0..2 {
            loop {
                let packet = self.answer()?;
                if self.is_end_of_list(&packet) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn send_packet(
        &mut self,
        sequence: u8,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), WireError> {
        self.request.clear();
        self.request.extend_from_slice(&[0; HEADER_BYTES]);
        fill(&mut self.request);
        let bytes = self.request.len() - HEADER_BYTES;
        if bytes >= MAX_PACKET_BYTES {
            return Err(unexpected("a statement that is too long"));
        }
        self.request[..3].copy_from_slice(&(bytes as u32).to_le_bytes()[..3]);
        self.request[3] = sequence;
        Ok(self.socket.write_all(&self.request)?)
    }

    /// The next packet's payload, as a range of `received`, which holds until the next one is asked for. It is not
    /// empty, and no error of the server.
    fn answer(&mut self) -> Result<Range<usize>, WireError> {
        let payload = self.packet()?;
        match self.received[payload.clone()] {
            [] => Err(unexpected("an empty packet")),
            [ERROR, low, high, ..] => {
                let text = &self.received[payload];
                Err(WireError::Refused {
                    code: u16::from_le_bytes([low, high]),
                    message: String::from_utf8_lossy(text.get(ERROR_TEXT_AT..).unwrap_or_default())
                        .into_owned(),
                })
            }
            _ => Ok(payload),
        }
    }

    fn packet(&mut self) -> Result<Range<usize>, WireError> {
        loop {
            let unread = &self.received[self.unread.clone()];
            if let [b0, b1, b2, _, payload @ ..] = unread {
                let bytes = u32::from_le_bytes([*b0, *b1, *b2, 0]) as usize;
                if bytes == MAX_PACKET_BYTES {
                    return Err(unexpected("a packet that is too long"));
                }
                if payload.len() >= bytes {
                    let start = self.unread.start + HEADER_BYTES;
                    self.unread.start = start + bytes;
                    return Ok(start..start + bytes);
                }
            }
            self.fill()?;
        }
    }

    /// Reads what is there, behind what is unread.
    fn fill(&mut self) -> Result<(), WireError> {
        self.received.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if self.unread.end == self.received.len() {
            self.received.resize(2 * self.received.len(), 0);
        }
        match self.socket.read(&mut self.received[self.unread.end..])? {
            0 => Err(cut()),
            bytes => {
                self.unread.end += bytes;
                Ok(())
            }
        }
    }

    fn is_end_of_list(&self, payload: &Range<usize>) -> bool {
        self.received[payload.start] == END_OF_LIST && payload.len() <= MAX_END_OF_LIST_BYTES
    }

    /// Reads descriptions of columns, and the end of their list.
    fn read_columns(&mut self, count: usize) -> Result<(), WireError> {
        let mut columns = Vec::with_capacity(count);
        for _ in 0..count {
            let description = self.answer()?;
            let column = ParseBuf(&self.received[description]).parse::<Column>(())?;
            columns.push((column.column_type(), column.flags()));
        }
        self.columns.insert(self.sent, columns);
        self.answer().map(drop)
    }

    /// The values of a binary row: 0, a bitmap of NULLs that begins with two unused bits, the other values.
    fn decode(&self, row: &[u8]) -> Result<Row, WireError> {
        let columns = self.columns.get(&self.sent).ok_or_else(cut)?;
        let mut row = ParseBuf(row.get(1..).ok_or_else(cut)?);
        let nulls = row
            .checked_eat((columns.len() + 2).div_ceil(8))
            .ok_or_else(cut)?;
        let values = columns.iter().enumerate().map(|(place, &column)| {
            let bit = place + 2;
            if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
                return Ok(Value::NULL);
            }
            let value: ValueDeserializer<BinValue> = row.parse(column)?;
            Ok(value.0)
        });
        values.collect()
    }
}

impl AsRawFd for WireClient {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn unexpected(what: &str) -> WireError {
    WireError::Io(io::Error::new(io::ErrorKind::InvalidData, what))
}

fn cut() -> WireError {
    WireError::Io(io::ErrorKind::UnexpectedEof.into())
}
