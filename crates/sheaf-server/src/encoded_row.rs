//! Rows for clients that read texts in another encoding than UTF-8 (`character_set_results`).

use sheaf_sql::encoding::TextEncoding;
use sheaf_sql::{Cell, ColumnMeta};

/// The values of a row, and what its texts are for the client.
pub struct EncodedRow<'a> {
    cells: Vec<Cell<'a>>,
    /// By column; `None`: the value is as it was.
    texts: Vec<Option<Vec<u8>>>,
}

impl<'a> EncodedRow<'a> {
    pub fn new(
        cells: impl Iterator<Item = Cell<'a>>,
        columns: &[ColumnMeta],
        encoding: TextEncoding,
    ) -> EncodedRow<'a> {
        let cells: Vec<Cell<'a>> = cells.collect();
        let texts = cells.iter().zip(columns).map(|(cell, column)| match cell {
            Cell::Bytes(text) if !column.is_binary() => Some(encoding.encode(text).into_owned()),
            _ => None,
        });
        let texts = texts.collect();
        EncodedRow { cells, texts }
    }

    /// The values as they are sent.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let pairs = self.cells.iter().zip(&self.texts);
        pairs.map(|(cell, text)| text.as_deref().map_or(*cell, Cell::Bytes))
    }
}
