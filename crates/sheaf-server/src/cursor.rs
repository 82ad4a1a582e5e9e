//! Cursors: a result that waits for the client to fetch its rows.
//!
//! A client that executes a statement with a cursor gets the columns only, and then as many rows as it asks for each
//! time (COM_STMT_FETCH). Meanwhile it may run other statements, so the result is complete when the cursor is opened,
//! as in MySQL: its rows wait in the form in which they are sent.

use std::io::Read;

use arrow::record_batch::RecordBatch;
use mysql_common::constants::{CapabilityFlags, StatusFlags};
use sheaf_sql::encoding::TextEncoding;
use sheaf_sql::{
    Cell, CellRow, ColumnMeta, EndOfRows, OkInfo, RecordSpool, ResultSink, SpooledRecords,
    SqlError, cell_readers,
};

use crate::binary_row;
use crate::encoded_row::EncodedRow;
use crate::packet::{PacketStream, Transport};
use crate::response::{write_column_count, write_column_definitions, write_eof};

/// What a statement that is executed with a cursor writes its result to.
pub struct CursorSink {
    spool: RecordSpool,
    /// How the client reads texts.
    encoding: TextEncoding,
    columns: Option<Vec<ColumnMeta>>,
    warnings: u16,
    /// Of a statement that has no rows to show.
    ok: Option<OkInfo>,
}

impl CursorSink {
    pub fn new(spool: RecordSpool, encoding: TextEncoding) -> CursorSink {
        CursorSink {
            spool,
            encoding,
            columns: None,
            warnings: 0,
            ok: None,
        }
    }

    /// The result: rows to fetch, or the OK of a statement that has none.
    pub fn finish(self) -> Executed {
        match self.columns {
            Some(columns) => Executed::Rows {
                columns,
                warnings: self.warnings,
                cursor: Cursor {
                    rows: self.spool.read(),
                },
            },
            None => Executed::Ok(self.ok.unwrap_or_default()),
        }
    }
}

pub enum Executed {
    Rows {
        columns: Vec<ColumnMeta>,
        warnings: u16,
        cursor: Cursor,
    },
    Ok(OkInfo),
}

impl ResultSink for CursorSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.columns = Some(columns.to_vec());
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        let columns = self.columns.as_deref().unwrap_or_default();
        let readers = cell_readers(batch, columns)?;
        for row in 0..batch.num_rows() {
            let cells = readers.iter().map(|reader| reader.cell(row));
            push_row(&mut self.spool, cells, columns, self.encoding)?;
        }
        Ok(())
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(&mut self, columns: &[ColumnMeta], row: &dyn CellRow) -> Result<(), SqlError> {
        let cells = (0..columns.len()).map(|column| row.cell(column));
        push_row(&mut self.spool, cells, columns, self.encoding)
    }

    fn end_of_rows(&mut self, end: EndOfRows) -> Result<(), SqlError> {
        self.warnings = end.warnings;
        Ok(())
    }

    fn ok(&mut self, ok: OkInfo) -> Result<(), SqlError> {
        self.ok = Some(ok);
        Ok(())
    }

    fn local_infile(&mut self, _name: &str) -> Result<Box<dyn Read + '_>, SqlError> {
        Err(SqlError::local_infile_disabled())
    }
}

fn push_row<'c>(
    spool: &mut RecordSpool,
    cells: impl Iterator<Item = Cell<'c>>,
    columns: &[ColumnMeta],
    encoding: TextEncoding,
) -> Result<(), SqlError> {
    match encoding {
        TextEncoding::Utf8 => spool.push(|out| binary_row::encode_cells(cells, columns, out)),
        encoding => {
            let row = EncodedRow::new(cells, columns, encoding)?;
            spool.push(|out| binary_row::encode_cells(row.cells(), columns, out))
        }
    }
}

/// The rows of an open cursor that were not fetched yet.
pub struct Cursor {
    rows: SpooledRecords,
}

impl Cursor {
    /// Sends up to `count` rows, and how it goes on. False: there were fewer, and the cursor is to be closed.
    pub fn fetch<T: Transport>(
        &mut self,
        count: u32,
        packets: &mut PacketStream<T>,
        capabilities: CapabilityFlags,
        status: u16,
    ) -> Result<bool, SqlError> {
        for _ in 0..count {
            let Some(row) = self.rows.next_record()? else {
                let status = status | StatusFlags::SERVER_STATUS_LAST_ROW_SENT.bits();
                write_eof(packets, capabilities, 0, status)?;
                return Ok(false);
            };
            packets.write_packet(|out| {
                out.extend_from_slice(row);
                Ok(())
            })?;
        }
        write_eof(packets, capabilities, 0, with_cursor(status))?;
        Ok(true)
    }
}

fn with_cursor(status: u16) -> u16 {
    status | StatusFlags::SERVER_STATUS_CURSOR_EXISTS.bits()
}

/// Tells a client that it may fetch rows with these columns.
pub fn write_cursor_columns<T: Transport>(
    packets: &mut PacketStream<T>,
    (capabilities, encoding): (CapabilityFlags, TextEncoding),
    columns: &[ColumnMeta],
    warnings: u16,
    status: u16,
) -> Result<(), SqlError> {
    write_column_count(packets, columns)?;
    let client = (capabilities, encoding);
    write_column_definitions(packets, client, columns, with_cursor(status))?;
    // Otherwise what ends the definitions has told it.
    if capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
        write_eof(packets, capabilities, warnings, with_cursor(status))?;
    }
    Ok(())
}
