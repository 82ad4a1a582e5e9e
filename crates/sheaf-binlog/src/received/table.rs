//! The table that TABLE_MAP describes.

use super::cursor::Cursor;
use crate::row::field::code;
use crate::table::optional;

/// Bytes of a table's number.
const TABLE_BYTES: usize = 6;
/// Columns of a table, at most.
const MAX_COLUMNS: usize = 4096;

/// A column as the source says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceColumn {
    /// The type by its number; of ENUM, SET and CHAR the real one.
    pub(super) code: u8,
    /// What the type's number does not say: lengths, digits.
    pub(super) metadata: u16,
    /// Of numbers, where the source says so.
    pub(super) is_unsigned: Option<bool>,
    /// The number of the collation of a text, where the source says so.
    pub(super) collation: Option<u16>,
}

/// A table as the source says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTable {
    /// The rows events behind it name it.
    pub id: u64,
    pub database: String,
    pub name: String,
    pub columns: Vec<SourceColumn>,
}

impl SourceTable {
    /// Reads the body of a TABLE_MAP. `None`: it does not hold.
    pub fn read(body: &[u8]) -> Option<SourceTable> {
        let mut cursor = Cursor(body);
        let id = cursor.little(TABLE_BYTES)?;
        cursor.u16()?;
        let mut name = || {
            let name = cursor.short_string()?;
            cursor.byte()?;
            String::from_utf8(name.to_vec()).ok()
        };
        let (database, name) = (name()?, name()?);
        let count = usize::try_from(cursor.packed()?).ok()?;
        if count > MAX_COLUMNS {
            return None;
        }
        let codes = cursor.take(count)?;
        let mut metadata = Cursor(cursor.string()?);
        let _nullable = cursor.bits(count)?;
        let mut columns = Vec::with_capacity(count);
        for number in codes {
            columns.push(SourceColumn::read(*number, &mut metadata)?);
        }
        let mut table = SourceTable {
            id,
            database,
            name,
            columns,
        };
        // What a source says beside is not there of old ones.
        table.read_optional(cursor)?;
        Some(table)
    }

    fn read_optional(&mut self, mut cursor: Cursor<'_>) -> Option<()> {
        while let Some(field) = cursor.byte() {
            let mut value = Cursor(cursor.string()?);
            match field {
                optional::SIGNEDNESS => {
                    let numbers = self.columns.iter_mut().filter(|column| column.is_number());
                    for (at, column) in numbers.enumerate() {
                        let byte = *value.0.get(at / 8)?;
                        column.is_unsigned = Some(byte >> (7 - at % 8) & 1 != 0);
                    }
                }
                optional::DEFAULT_CHARSET => {
                    let default = u16::try_from(value.packed()?).ok()?;
                    let texts = self.columns.iter_mut().filter(|column| column.is_string());
                    let mut texts: Vec<&mut SourceColumn> = texts.collect();
                    for column in &mut texts {
                        column.collation = Some(default);
                    }
                    while !value.is_empty() {
                        let at = usize::try_from(value.packed()?).ok()?;
                        let collation = u16::try_from(value.packed()?).ok()?;
                        texts.get_mut(at)?.collation = Some(collation);
                    }
                }
                optional::COLUMN_CHARSET => {
                    for column in self.columns.iter_mut().filter(|column| column.is_string()) {
                        column.collation = Some(u16::try_from(value.packed()?).ok()?);
                    }
                }
                _ => {}
            }
        }
        Some(())
    }
}

impl SourceColumn {
    fn read(number: u8, metadata: &mut Cursor<'_>) -> Option<SourceColumn> {
        let (code, metadata) = match number {
            code::STRING => {
                let (first, second) = (metadata.byte()?, metadata.byte()?);
                match first {
                    code::ENUM | code::SET => (first, second.into()),
                    // The two highest bits of the length, inverted, stand in the number of the type.
                    first => {
                        let high = u16::from(!first & 0x30) << 4;
                        (code::STRING, high | u16::from(second))
                    }
                }
            }
            code::NEWDECIMAL => (number, metadata.array().map(u16::from_be_bytes)?),
            code::BIT => {
                let (bits, bytes) = (metadata.byte()?, metadata.byte()?);
                (number, u16::from(bytes) * 8 + u16::from(bits))
            }
            code::VARCHAR | code::VAR_STRING => (code::VARCHAR, metadata.u16()?),
            code::FLOAT
            | code::DOUBLE
            | code::BLOB
            | code::JSON
            | code::GEOMETRY
            | code::VECTOR
            | code::TIME2
            | code::DATETIME2
            | code::TIMESTAMP2 => (number, metadata.byte()?.into()),
            _ => (number, 0),
        };
        Some(SourceColumn {
            code,
            metadata,
            is_unsigned: None,
            collation: None,
        })
    }

    /// What TABLE_MAP counts as a number.
    fn is_number(&self) -> bool {
        matches!(
            self.code,
            code::TINY
                | code::SHORT
                | code::INT24
                | code::LONG
                | code::LONGLONG
                | code::NEWDECIMAL
                | code::FLOAT
                | code::DOUBLE
                | code::YEAR
        )
    }

    /// What TABLE_MAP counts as a string. ENUM and SET are none.
    fn is_string(&self) -> bool {
        matches!(self.code, code::STRING | code::VARCHAR | code::BLOB)
    }

    /// The type as an error message says it.
    pub fn type_name(&self) -> String {
        let length = self.metadata;
        match self.code {
            code::TINY => "tinyint".into(),
            code::SHORT => "smallint".into(),
            code::INT24 => "mediumint".into(),
            code::LONG => "int".into(),
            code::LONGLONG => "bigint".into(),
            code::NEWDECIMAL => format!("decimal({},{})", length >> 8, length & 0xFF),
            code::FLOAT => "float".into(),
            code::DOUBLE => "double".into(),
            code::BIT => format!("bit({length})"),
            code::STRING => format!("char({length} bytes)"),
            code::VARCHAR => format!("varchar({length} bytes)"),
            code::BLOB => match length {
                1 => "tinyblob".into(),
                2 => "blob".into(),
                3 => "mediumblob".into(),
                _ => "longblob".into(),
            },
            code::JSON => "json".into(),
            code::GEOMETRY => "geometry".into(),
            code::VECTOR => "vector".into(),
            code::DATE => "date".into(),
            code::TIME | code::TIME2 => "time".into(),
            code::DATETIME | code::DATETIME2 => "datetime".into(),
            code::TIMESTAMP | code::TIMESTAMP2 => "timestamp".into(),
            code::YEAR => "year".into(),
            code::ENUM => "enum".into(),
            code::SET => "set".into(),
            other => format!("type {other}"),
        }
    }
}
