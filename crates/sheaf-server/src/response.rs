//! Answers: OK, EOF, ERR and result sets.
//!
//! ```text
//!   a statement without rows     OK | ERR
//!   a statement with rows        column count, definition x n, [EOF], row x m, EOF or OK with header 0xFE | ERR
//! ```
//!
//! The EOF after the definitions, and an EOF instead of the last OK, are for clients without
//! CLIENT_DEPRECATE_EOF. An error may also come between rows. Several statements in one request give several
//! answers; all but the last say SERVER_MORE_RESULTS_EXISTS.
//!
//! [`Response`] is the sink that a statement writes to. Its last OK or EOF waits until the statement has ended,
//! because only then the status word is known, and so is whether it ended well.

use std::io::Read;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use mysql_common::constants::{CapabilityFlags, StatusFlags};
use mysql_common::io::BufMutExt;
use mysql_common::packets::{ErrPacket, LocalInfilePacket, ServerError, SqlState};
use mysql_common::proto::MySerialize;
use sheaf_sql::encoding::TextEncoding;
use sheaf_sql::variables::encoding_of_collation_id;
use sheaf_sql::{Cell, CellRow, ColumnMeta, EndOfRows, OkInfo, ResultSink, SqlError, cell_readers};

use crate::encoded_row::EncodedRow;
use crate::local_infile::LocalInfile;
use crate::packet::{PacketStream, Transport};
use crate::{binary_row, text_row};

const OK_HEADER: u8 = 0x00;
const EOF_HEADER: u8 = 0xFE;
/// The default of a column in the answer to COM_FIELD_LIST.
const NULL_DEFAULT: u8 = 0xFB;
/// Clients keep 512 bytes of a message; a longer one costs only the connection.
const MAX_ERROR_MESSAGE_BYTES: usize = 2048;

/// How rows are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    Text,
    Binary,
}

/// Where the statements of one command write their results.
pub struct Response<'a, T: Transport> {
    packets: &'a mut PacketStream<T>,
    capabilities: CapabilityFlags,
    format: RowFormat,
    /// How the client reads texts.
    encoding: TextEncoding,
    /// The session's status word when the command began.
    status: u16,
    /// Of a result that comes in batches.
    columns: Vec<ColumnMeta>,
    ending: Option<Ending>,
}

enum Ending {
    Ok(OkInfo),
    Rows(EndOfRows),
}

impl<'a, T: Transport> Response<'a, T> {
    pub fn new(
        packets: &'a mut PacketStream<T>,
        capabilities: CapabilityFlags,
        (format, encoding): (RowFormat, TextEncoding),
        status: u16,
    ) -> Self {
        Response {
            packets,
            capabilities,
            format,
            encoding,
            status,
            columns: Vec::new(),
            ending: None,
        }
    }

    /// Sends how the command ended. `status` is the session's status word after it.
    pub fn finish(mut self, result: Result<(), SqlError>, status: u16) -> Result<(), SqlError> {
        self.status = status;
        match result {
            Err(error) => write_error(self.packets, &error),
            Ok(()) => match self.ending.take() {
                Some(ending) => self.write_ending(ending),
                None => write_ok(self.packets, OK_HEADER, &OkInfo::default(), status),
            },
        }
    }

    fn announce(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        // An earlier statement of the request may have changed it.
        if let Some(text) = columns.iter().find(|column| !column.is_binary()) {
            self.encoding = encoding_of_collation_id(text.collation_id);
        }
        write_column_count(self.packets, columns)?;
        let client = (self.capabilities, self.encoding);
        write_column_definitions(self.packets, client, columns, self.status)
    }

    fn end(&mut self, ending: Ending, more_results: bool) -> Result<(), SqlError> {
        if more_results {
            return self.write_ending(ending);
        }
        self.ending = Some(ending);
        Ok(())
    }

    fn write_ending(&mut self, ending: Ending) -> Result<(), SqlError> {
        let more = StatusFlags::SERVER_MORE_RESULTS_EXISTS.bits();
        let status = |more_results| self.status & !more | if more_results { more } else { 0 };
        match ending {
            Ending::Ok(ok) => write_ok(self.packets, OK_HEADER, &ok, status(ok.more_results)),
            Ending::Rows(end) => write_eof(
                self.packets,
                self.capabilities,
                end.warnings,
                status(end.more_results),
            ),
        }
    }
}

impl<T: Transport> ResultSink for Response<'_, T> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.columns = columns.into();
        self.announce(columns)
    }

    fn row_columns(&mut self, columns: &[ColumnMeta], _schema: &SchemaRef) -> Result<(), SqlError> {
        self.announce(columns)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        let readers = cell_readers(batch, &self.columns)?;
        if self.encoding != TextEncoding::Utf8 {
            for row in 0..batch.num_rows() {
                let cells = readers.iter().map(|reader| reader.cell(row));
                let row = EncodedRow::new(cells, &self.columns, self.encoding)?;
                write_cells(self.packets, self.format, row.cells(), &self.columns)?;
            }
            return Ok(());
        }
        for row in 0..batch.num_rows() {
            self.packets.write_packet(|out| match self.format {
                RowFormat::Text => text_row::encode(&readers, &self.columns, row, out),
                RowFormat::Binary => binary_row::encode(&readers, &self.columns, row, out),
            })?;
        }
        Ok(())
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(&mut self, columns: &[ColumnMeta], row: &dyn CellRow) -> Result<(), SqlError> {
        let cells = (0..columns.len()).map(|column| row.cell(column));
        if self.encoding != TextEncoding::Utf8 {
            let row = EncodedRow::new(cells, columns, self.encoding)?;
            return write_cells(self.packets, self.format, row.cells(), columns);
        }
        write_cells(self.packets, self.format, cells, columns)
    }

    fn end_of_rows(&mut self, end: EndOfRows) -> Result<(), SqlError> {
        self.end(Ending::Rows(end), end.more_results)
    }

    fn ok(&mut self, ok: OkInfo) -> Result<(), SqlError> {
        let more_results = ok.more_results;
        self.end(Ending::Ok(ok), more_results)
    }

    fn written_bytes(&self) -> u64 {
        self.packets.written_bytes()
    }

    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>, SqlError> {
        if !self
            .capabilities
            .contains(CapabilityFlags::CLIENT_LOCAL_FILES)
        {
            return Err(SqlError::local_infile_disabled());
        }
        self.packets.write_packet(|out| {
            LocalInfilePacket::new(name.as_bytes()).serialize(out);
            Ok(())
        })?;
        self.packets.flush()?;
        Ok(Box::new(LocalInfile::new(self.packets)))
    }
}

fn write_cells<'c, T: Transport>(
    packets: &mut PacketStream<T>,
    format: RowFormat,
    cells: impl Iterator<Item = Cell<'c>>,
    columns: &[ColumnMeta],
) -> Result<(), SqlError> {
    packets.write_packet(|out| match format {
        RowFormat::Text => text_row::encode_cells(cells, columns, out),
        RowFormat::Binary => binary_row::encode_cells(cells, columns, out),
    })
}

/// The plain OK of a command that only succeeds.
pub fn write_plain_ok<T: Transport>(
    packets: &mut PacketStream<T>,
    status: u16,
) -> Result<(), SqlError> {
    write_ok(packets, OK_HEADER, &OkInfo::default(), status)
}

/// The OK of a statement.
pub fn write_done<T: Transport>(
    packets: &mut PacketStream<T>,
    ok: &OkInfo,
    status: u16,
) -> Result<(), SqlError> {
    write_ok(packets, OK_HEADER, ok, status)
}

fn write_ok<T: Transport>(
    packets: &mut PacketStream<T>,
    header: u8,
    ok: &OkInfo,
    status: u16,
) -> Result<(), SqlError> {
    packets.write_packet(|out| {
        out.push(header);
        out.put_lenenc_int(ok.affected_rows);
        out.put_lenenc_int(ok.last_insert_id);
        out.extend_from_slice(&status.to_le_bytes());
        out.extend_from_slice(&ok.warnings.to_le_bytes());
        if !ok.info.is_empty() {
            out.put_lenenc_str(ok.info.as_bytes());
        }
        Ok(())
    })
}

/// What ends the rows of a result set.
pub fn write_eof<T: Transport>(
    packets: &mut PacketStream<T>,
    capabilities: CapabilityFlags,
    warnings: u16,
    status: u16,
) -> Result<(), SqlError> {
    if capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
        return write_ok(
            packets,
            EOF_HEADER,
            &OkInfo {
                warnings,
                ..OkInfo::default()
            },
            status,
        );
    }
    packets.write_packet(|out| {
        out.push(EOF_HEADER);
        out.extend_from_slice(&warnings.to_le_bytes());
        out.extend_from_slice(&status.to_le_bytes());
        Ok(())
    })
}

/// An error, for a client whose capabilities are known.
pub fn write_error<T: Transport>(
    packets: &mut PacketStream<T>,
    error: &SqlError,
) -> Result<(), SqlError> {
    let state = error.sqlstate.as_bytes().try_into().map(SqlState::new).ok();
    write_error_packet(packets, error, state)
}

/// An error instead of the greeting, which has no SQLSTATE: the client has not said yet that it expects one.
pub fn write_error_before_greeting<T: Transport>(
    packets: &mut PacketStream<T>,
    error: &SqlError,
) -> Result<(), SqlError> {
    write_error_packet(packets, error, None)
}

fn write_error_packet<T: Transport>(
    packets: &mut PacketStream<T>,
    error: &SqlError,
    state: Option<SqlState>,
) -> Result<(), SqlError> {
    let message = &error.message[..error.message.floor_char_boundary(MAX_ERROR_MESSAGE_BYTES)];
    packets.write_packet(|out| {
        ErrPacket::Error(ServerError::new(error.code, state, message.as_bytes())).serialize(out);
        Ok(())
    })
}

/// What a result set begins with.
pub fn write_column_count<T: Transport>(
    packets: &mut PacketStream<T>,
    columns: &[ColumnMeta],
) -> Result<(), SqlError> {
    packets.write_packet(|out| {
        out.put_lenenc_int(columns.len() as u64);
        Ok(())
    })
}

/// Column definitions, and the EOF after them for clients that expect it.
pub fn write_column_definitions<T: Transport>(
    packets: &mut PacketStream<T>,
    (capabilities, encoding): (CapabilityFlags, TextEncoding),
    columns: &[ColumnMeta],
    status: u16,
) -> Result<(), SqlError> {
    for column in columns {
        packets.write_packet(|out| {
            put_column_definition(column, encoding, out);
            Ok(())
        })?;
    }
    if capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
        return Ok(());
    }
    write_eof(packets, capabilities, 0, status)
}

/// The answer to COM_FIELD_LIST: definitions that also carry a default, and an end.
pub fn write_field_list<T: Transport>(
    packets: &mut PacketStream<T>,
    (capabilities, encoding): (CapabilityFlags, TextEncoding),
    columns: &[ColumnMeta],
    status: u16,
) -> Result<(), SqlError> {
    for column in columns {
        packets.write_packet(|out| {
            put_column_definition(column, encoding, out);
            out.push(NULL_DEFAULT);
            Ok(())
        })?;
    }
    write_eof(packets, capabilities, 0, status)
}

fn put_column_definition(column: &ColumnMeta, encoding: TextEncoding, out: &mut Vec<u8>) {
    /// Bytes of the fields from the collation to the end.
    const FIXED_FIELDS_BYTES: u8 = 12;
    out.put_lenenc_str(b"def");
    for name in [
        &column.database,
        &column.table,
        &column.org_table,
        &column.name,
        &column.org_name,
    ] {
        out.put_lenenc_str(&encoding.encode(name.as_bytes()));
    }
    out.push(FIXED_FIELDS_BYTES);
    out.extend_from_slice(&column.collation_id.to_le_bytes());
    out.extend_from_slice(&column.length.to_le_bytes());
    out.push(column.type_ as u8);
    out.extend_from_slice(&column.flags.to_le_bytes());
    out.push(column.decimals);
    out.extend_from_slice(&[0, 0]);
}
