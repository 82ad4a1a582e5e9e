//! Rows for clients that read texts in another encoding than UTF-8 (`character_set_results`).

use sheaf_sql::encoding::TextEncoding;
use sheaf_sql::{Cell, ColumnMeta, SqlError};
use sheaf_types::Value;

/// The values of a row, and what its texts are for the client.
pub struct EncodedRow<'a> {
    cells: Vec<Cell<'a>>,
    /// By column; `None`: the value is as it was.
    texts: Vec<Option<Vec<u8>>>,
}

impl<'a> EncodedRow<'a> {
    /// # Errors
    /// A text is long, and the process has no room for it: the statement has been told to stop.
    pub fn new(
        cells: impl Iterator<Item = Cell<'a>>,
        columns: &[ColumnMeta],
        encoding: TextEncoding,
    ) -> Result<EncodedRow<'a>, SqlError> {
        let cells: Vec<Cell<'a>> = cells.collect();
        let texts = cells.iter().zip(columns).map(|(cell, column)| match cell {
            Cell::Bytes(text) if !column.is_binary() => {
                match sheaf_memory::has_room_for_value(text.len()) {
                    true => Ok(Some(encoding.encode(text).into_owned())),
                    false => Err(SqlError::query_interrupted()),
                }
            }
            Cell::Json(bytes) => {
                let text = Value::Json(bytes.to_vec()).to_string();
                Ok(Some(encoding.encode(text.as_bytes()).into_owned()))
            }
            _ => Ok(None),
        });
        let texts = texts.collect::<Result<_, _>>()?;
        Ok(EncodedRow { cells, texts })
    }

    /// The values as they are sent.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let pairs = self.cells.iter().zip(&self.texts);
        pairs.map(|(cell, text)| text.as_deref().map_or(*cell, Cell::Bytes))
    }
}
