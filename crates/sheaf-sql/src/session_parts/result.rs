//! What a statement returns: column descriptions, Arrow batches, or an OK with counts.
//!
//! A statement writes to a [`ResultSink`] while it runs, so a result of any size needs the memory of one batch.
//! The sink decides where rows go: the protocol floor encodes them onto the socket, the embedded library and
//! the shell collect them.

use std::io::Read;

use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::record_batch::RecordBatch;
use sheaf_exec::functions::types::shown_type;
use sheaf_table::TableDefinition;
use sheaf_types::labels::longest_text;
use sheaf_types::number::{FloatDigits, Wide};
use sheaf_types::text::encoding::TextEncoding;
use sheaf_types::{Collation, ColumnType, column_type::MAX_CHARACTER_BYTES};

use crate::error::{Result, SqlError};
pub use crate::variables::{BINARY_COLLATION_ID, OWN_COLLATION_ID};
use crate::variables::{collation, encoding_of_collation_id};
use sheaf_frontend::query::Header;

/// A column type as the MySQL protocol numbers it (`enum_field_types`).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MysqlColumnType {
    Decimal = 0,
    Tiny = 1,
    Short = 2,
    Long = 3,
    Float = 4,
    Double = 5,
    Null = 6,
    Timestamp = 7,
    LongLong = 8,
    Int24 = 9,
    Date = 10,
    Time = 11,
    DateTime = 12,
    Year = 13,
    VarChar = 15,
    Bit = 16,
    Json = 245,
    NewDecimal = 246,
    Enum = 247,
    Set = 248,
    TinyBlob = 249,
    MediumBlob = 250,
    LongBlob = 251,
    Blob = 252,
    VarString = 253,
    String = 254,
}

impl MysqlColumnType {
    /// Whether values are numbers, which clients show to the right.
    pub fn is_number(self) -> bool {
        use MysqlColumnType::*;
        matches!(
            self,
            Decimal
                | Tiny
                | Short
                | Long
                | Float
                | Double
                | Null
                | LongLong
                | Int24
                | Year
                | NewDecimal
        )
    }
}

/// Flags of a column definition packet, as the protocol numbers them.
pub mod column_flags {
    pub const NOT_NULL: u16 = 1;
    pub const PRIMARY_KEY: u16 = 2;
    pub const UNIQUE_KEY: u16 = 4;
    pub const MULTIPLE_KEY: u16 = 8;
    pub const BLOB: u16 = 16;
    pub const UNSIGNED: u16 = 32;
    pub const ZEROFILL: u16 = 64;
    pub const BINARY: u16 = 128;
    pub const ENUM: u16 = 256;
    pub const AUTO_INCREMENT: u16 = 512;
    pub const TIMESTAMP: u16 = 1024;
    pub const SET: u16 = 2048;
    pub const NO_DEFAULT_VALUE: u16 = 4096;
    /// Part of some key.
    pub const PART_KEY: u16 = 16384;
}

/// What the protocol says about one column of a result. Rows themselves come as Arrow; the protocol floor
/// encodes a value by its Arrow type together with `type_` and `decimals`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    pub name: String,
    pub org_name: String,
    pub table: String,
    pub org_table: String,
    pub database: String,
    pub type_: MysqlColumnType,
    /// 63 for numbers, dates and bytes; otherwise the collation the text is sent in.
    pub collation_id: u16,
    /// The longest a value can be as text, in bytes.
    pub length: u32,
    /// Digits after the point; 31 where the type does not say (FLOAT and DOUBLE without a scale).
    pub decimals: u8,
    /// A set of [`column_flags`].
    pub flags: u16,
    /// Of a column of a table, and of a value whose type says more than its Arrow type.
    pub declared: Option<ColumnType>,
}

/// What is known of an expression whose values are stored in columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// Digits of a second that it shows.
    pub(crate) decimals: u8,
    /// Its type, where that says how values are shown.
    pub(crate) declared: Option<ColumnType>,
    /// It is nothing but a column.
    pub(crate) is_column: bool,
}

impl Origin {
    /// A point in time with so many digits of its second, or any other value.
    pub(crate) fn of_decimals(decimals: u8) -> Origin {
        Origin {
            decimals,
            ..Origin::default()
        }
    }
}

impl From<&ColumnMeta> for Origin {
    fn from(column: &ColumnMeta) -> Origin {
        Origin {
            decimals: column.decimals,
            declared: column.declared.clone(),
            is_column: !column.org_name.is_empty(),
        }
    }
}

/// How a statement without rows ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OkInfo {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub warnings: u16,
    /// Such as `Records: 3  Duplicates: 0  Warnings: 0`.
    pub info: String,
    /// The same request has more statements, whose results follow.
    pub more_results: bool,
}

/// How a result set ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndOfRows {
    pub warnings: u16,
    /// The same request has more statements, whose results follow.
    pub more_results: bool,
}

/// One value of a row, as far as the protocol tells values apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Signed(i64),
    Unsigned(u64),
    Decimal {
        unscaled: i128,
        scale: i8,
    },
    WideDecimal {
        unscaled: Wide,
        scale: i8,
    },
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
    /// A JSON value in its binary form.
    Json(&'a [u8]),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01, without a zone.
    DateTime(i64),
    /// Microseconds, of either sign.
    Time(i64),
}

/// A row that gives its values one at a time: what a direct plan sends.
pub trait CellRow {
    /// The value in a column of the result.
    fn cell(&self, column: usize) -> Cell<'_>;
}

/// Where a statement's results go. For each statement the calls are either `ok` alone or `columns`, any number
/// of `rows`, `end_of_rows`. An error that a sink returns ends the statement with that error.
pub trait ResultSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()>;
    /// [`columns`](Self::columns) of a direct plan, whose rows come one by one; only if the sink
    /// [takes rows](Self::takes_rows). `schema` is that of the batches that the rows would make.
    fn row_columns(&mut self, columns: &[ColumnMeta], _schema: &SchemaRef) -> Result<()> {
        self.columns(columns)
    }
    /// The batch has the columns that were announced, in their order.
    fn rows(&mut self, batch: &RecordBatch) -> Result<()>;
    /// Whether single rows may come as well as batches.
    fn takes_rows(&self) -> bool {
        false
    }
    /// A row of the columns that were announced; only if the sink [takes rows](Self::takes_rows).
    fn row(&mut self, _columns: &[ColumnMeta], _row: &dyn CellRow) -> Result<()> {
        Err(SqlError::unknown("a sink of batches was given a row"))
    }
    fn end_of_rows(&mut self, end: EndOfRows) -> Result<()>;
    /// Whether [`OkInfo::info`] is of use; if not it may be empty.
    fn wants_info(&self) -> bool {
        true
    }
    fn ok(&mut self, ok: OkInfo) -> Result<()>;
    /// How many bytes the running command has written for its client; 0 if nobody counts them.
    fn written_bytes(&self) -> u64 {
        0
    }
    /// The contents of a file on the client's side, for LOAD DATA LOCAL INFILE. The sink must be able to
    /// discard what the statement leaves unread when the reader is dropped.
    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>>;
}

/// The length told for a text whose longest value is not known, in characters.
const UNKNOWN_TEXT_CHARACTERS: u32 = 16_383;
/// `decimals` of FLOAT and DOUBLE: as many as it takes.
const NOT_FIXED_DECIMALS: u8 = 31;

impl ColumnMeta {
    /// It is no column of a table, and no number that is filled up.
    pub(crate) fn forget_column(&mut self) {
        self.flags &= !column_flags::ZEROFILL;
        for name in [
            &mut self.org_name,
            &mut self.table,
            &mut self.org_table,
            &mut self.database,
        ] {
            name.clear();
        }
    }

    /// Describes a column of a result. The SQL type is in the field's metadata where the column is one of a table
    /// or of a declared type; other columns are described by their Arrow type. `text_collation_id` is what the
    /// session gets texts in, or [`OWN_COLLATION_ID`].
    pub fn new(field: &Field, header: &Header, text_collation_id: u16) -> ColumnMeta {
        ColumnMeta::with_text_length(field, header, text_collation_id, None)
    }

    /// The same of a column whose texts are known to have at most so many characters, or bytes if they are no texts.
    pub(crate) fn with_text_length(
        field: &Field,
        header: &Header,
        text_collation_id: u16,
        known_length: Option<u32>,
    ) -> ColumnMeta {
        let declared = shown_type(field);
        let shape = declared
            .as_ref()
            .map_or_else(|| Shape::of_arrow(field.data_type()), Shape::of_declared);
        let mut flags = shape.flags;
        // MySQL fills up only the numbers of columns, and those of years in unions.
        let filled = declared.as_ref().and_then(ColumnType::zerofill);
        let is_computed = match declared {
            Some(ColumnType::Year) => !header.is_stored,
            _ => filled.is_some(),
        };
        if is_computed && header.org_name.is_empty() {
            flags &= !column_flags::ZEROFILL;
        }
        if !field.is_nullable() {
            flags |= column_flags::NOT_NULL;
        }
        let length = match (&declared, known_length) {
            (None, Some(known)) => shape.length.at_most(known),
            (Some(ty), Some(known)) if is_of_any_length(ty) => shape.length.at_most(known),
            _ => shape.length,
        };
        let (collation_id, length) = match length {
            Length::Bytes(bytes) => (BINARY_COLLATION_ID, bytes),
            Length::Characters(characters) => {
                let collation_id = match text_collation_id {
                    OWN_COLLATION_ID => own_collation_id(declared.as_ref()),
                    id => id,
                };
                let bytes = characters.saturating_mul(character_bytes(collation_id));
                (collation_id, bytes)
            }
        };
        if collation_id == BINARY_COLLATION_ID {
            flags |= column_flags::BINARY;
        }
        ColumnMeta {
            name: header.name.clone(),
            org_name: header.org_name.clone(),
            table: header.table.clone(),
            org_table: header.org_table.clone(),
            database: header.database.clone(),
            type_: shape.type_,
            collation_id,
            length,
            decimals: shape.decimals,
            flags,
            declared,
        }
    }

    /// Bits of a BIT, whose values are bytes where they are shown.
    #[inline]
    pub fn bit_length(&self) -> Option<u8> {
        (self.type_ == MysqlColumnType::Bit).then_some(self.length.min(64) as u8)
    }

    /// Whether values are years of a column, which are shown with four digits.
    #[inline]
    pub fn has_filled_years(&self) -> bool {
        self.type_ == MysqlColumnType::Year && self.flags & column_flags::ZEROFILL != 0
    }

    /// Whether numbers are shown with zeros in front, as many as [`length`](Self::length) says.
    #[inline]
    pub fn has_zeros_in_front(&self) -> bool {
        self.flags & column_flags::ZEROFILL != 0 && self.type_ != MysqlColumnType::Year
    }

    /// Whether values are no texts, so that they are sent as they are.
    pub fn is_binary(&self) -> bool {
        self.collation_id == BINARY_COLLATION_ID
    }
}

/// The most bytes of a character in the encoding of texts with this collation.
fn character_bytes(collation_id: u16) -> u32 {
    encoding_of_collation_id(collation_id).character_bytes()
}

/// Whether the type is that of a computed text, which only says its collation.
pub(crate) fn is_of_any_length(ty: &ColumnType) -> bool {
    matches!(ty, ColumnType::VarChar { length, .. } if *length == UNKNOWN_TEXT_CHARACTERS)
}

/// The longest text of a value, in characters: of a column of a table by its declared type.
pub(crate) fn shown_length(declared: Option<&ColumnType>, ty: &DataType) -> Option<u32> {
    let shape = declared.map_or_else(|| Shape::of_arrow(ty), Shape::of_declared);
    let length = match shape.length {
        Length::Bytes(length) | Length::Characters(length) => length,
    };
    // A DOUBLE has as many digits as it takes.
    let is_known = !matches!(
        shape.type_,
        MysqlColumnType::Float | MysqlColumnType::Double
    );
    is_known.then_some(length)
}

/// The id of a column's collation; the default's for texts that are computed, and for those of character sets with
/// other bytes, as texts are sent in UTF-8.
fn own_collation_id(declared: Option<&ColumnType>) -> u16 {
    let own = declared
        .and_then(ColumnType::collation)
        .filter(|own| own.encoding() == TextEncoding::Utf8);
    let own: Collation = own.unwrap_or_default();
    collation(own.name()).map_or(BINARY_COLLATION_ID, |(id, _)| id)
}

/// What a table's definition adds to the [`column_flags`] of one of its columns.
pub(crate) fn table_flags(table: &TableDefinition, column: usize) -> u16 {
    let mut flags = 0;
    let mut keys = Vec::from_iter(&table.secondary);
    if !table.has_hidden_row_id() {
        keys.push(&table.primary);
    }
    for key in keys {
        let Some(position) = key.parts.iter().position(|part| part.column == column) else {
            continue;
        };
        flags |= column_flags::PART_KEY;
        if key.primary {
            flags |= column_flags::PRIMARY_KEY;
        } else if position == 0 && key.unique && key.parts.len() == 1 {
            flags |= column_flags::UNIQUE_KEY;
        } else if position == 0 {
            flags |= column_flags::MULTIPLE_KEY;
        }
    }
    let column = &table.columns[column];
    if column.auto_increment {
        flags |= column_flags::AUTO_INCREMENT;
    } else if !column.nullable && column.default.is_none() {
        flags |= column_flags::NO_DEFAULT_VALUE;
    }
    flags
}

/// The longest text of a column.
enum Length {
    /// Numbers, dates and byte strings.
    Bytes(u32),
    Characters(u32),
}

impl Length {
    /// What is known of an expression tells more than its type.
    fn at_most(self, known: u32) -> Length {
        match self {
            Length::Bytes(_) => Length::Bytes(known),
            Length::Characters(_) => Length::Characters(known),
        }
    }
}

/// What a type alone says about a column.
struct Shape {
    type_: MysqlColumnType,
    length: Length,
    decimals: u8,
    flags: u16,
}

impl Shape {
    fn number(type_: MysqlColumnType, length: u32, decimals: u8, unsigned: bool) -> Shape {
        let flags = if unsigned { column_flags::UNSIGNED } else { 0 };
        Shape {
            type_,
            length: Length::Bytes(length),
            decimals,
            flags,
        }
    }

    fn integer(type_: MysqlColumnType, signed_length: u32, unsigned: bool) -> Shape {
        // The sign takes a place, except that BIGINT UNSIGNED has a digit more.
        let length = if unsigned && type_ != MysqlColumnType::LongLong {
            signed_length - 1
        } else {
            signed_length
        };
        Shape::number(type_, length, 0, unsigned)
    }

    fn decimal(precision: u8, scale: u8, unsigned: bool) -> Shape {
        let length = u32::from(precision) + u32::from(scale > 0) + u32::from(!unsigned);
        Shape::number(MysqlColumnType::NewDecimal, length, scale, unsigned)
    }

    /// A FLOAT or DOUBLE of this length, unless its digits are declared.
    fn float(
        type_: MysqlColumnType,
        length: u32,
        digits: Option<FloatDigits>,
        unsigned: bool,
    ) -> Shape {
        match digits {
            None => Shape::number(type_, length, NOT_FIXED_DECIMALS, unsigned),
            Some(digits) => Shape::number(type_, digits.precision.into(), digits.scale, unsigned),
        }
    }

    fn temporal(type_: MysqlColumnType, length: u32, fsp: u8) -> Shape {
        let fraction = if fsp == 0 { 0 } else { u32::from(fsp) + 1 };
        Shape {
            type_,
            length: Length::Bytes(length + fraction),
            decimals: fsp,
            flags: 0,
        }
    }

    fn text(type_: MysqlColumnType, characters: u32, flags: u16) -> Shape {
        Shape {
            type_,
            length: Length::Characters(characters),
            decimals: 0,
            flags,
        }
    }

    fn bytes(type_: MysqlColumnType, length: u32, flags: u16) -> Shape {
        Shape {
            type_,
            length: Length::Bytes(length),
            decimals: 0,
            flags,
        }
    }

    fn of_declared(ty: &ColumnType) -> Shape {
        let shape = Shape::of_plain(ty);
        match ty.zerofill() {
            Some(width) => Shape {
                length: Length::Bytes(width.into()),
                flags: shape.flags | column_flags::ZEROFILL,
                ..shape
            },
            None => shape,
        }
    }

    /// The same without ZEROFILL.
    fn of_plain(ty: &ColumnType) -> Shape {
        use MysqlColumnType as M;
        let long_bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        match ty {
            ColumnType::Bool => Shape::number(M::Tiny, 1, 0, false),
            ColumnType::TinyInt { sign } => Shape::integer(M::Tiny, 4, sign.is_unsigned()),
            ColumnType::SmallInt { sign } => Shape::integer(M::Short, 6, sign.is_unsigned()),
            ColumnType::MediumInt { sign } => Shape::integer(M::Int24, 9, sign.is_unsigned()),
            ColumnType::Int { sign } => Shape::integer(M::Long, 11, sign.is_unsigned()),
            ColumnType::BigInt { sign } => Shape::integer(M::LongLong, 20, sign.is_unsigned()),
            ColumnType::Decimal {
                precision,
                scale,
                sign,
            } => Shape::decimal(*precision, *scale, sign.is_unsigned()),
            ColumnType::Float { digits, sign } => {
                Shape::float(M::Float, 12, *digits, sign.is_unsigned())
            }
            ColumnType::Double { digits, sign } => {
                Shape::float(M::Double, 22, *digits, sign.is_unsigned())
            }
            ColumnType::Bit { length } => Shape::number(M::Bit, u32::from(*length), 0, true),
            ColumnType::Char { length, .. } => Shape::text(M::String, *length, 0),
            ColumnType::VarChar { length, .. } => Shape::text(M::VarString, *length, 0),
            ColumnType::Text { max_bytes, .. } => Shape::text(
                M::Blob,
                long_bytes(*max_bytes) / MAX_CHARACTER_BYTES,
                column_flags::BLOB,
            ),
            ColumnType::Binary { length } => Shape::bytes(M::String, *length, 0),
            ColumnType::VarBinary { length } => Shape::bytes(M::VarString, *length, 0),
            ColumnType::Blob { max_bytes } => {
                Shape::bytes(M::Blob, long_bytes(*max_bytes), column_flags::BLOB)
            }
            ColumnType::Json => {
                Shape::text(M::Json, u32::MAX, column_flags::BLOB | column_flags::BINARY)
            }
            ColumnType::Date => Shape::temporal(M::Date, 10, 0),
            ColumnType::Time { fsp } => Shape::temporal(M::Time, 10, *fsp),
            ColumnType::DateTime { fsp } => Shape::temporal(M::DateTime, 19, *fsp),
            ColumnType::Timestamp { fsp } => Shape::temporal(M::Timestamp, 19, *fsp),
            ColumnType::Year => Shape {
                flags: column_flags::UNSIGNED | column_flags::ZEROFILL,
                ..Shape::number(M::Year, 4, 0, true)
            },
            ColumnType::Enum { .. } | ColumnType::Set { .. } => {
                let longest = longest_text(ty).unwrap_or(0);
                let flag = match ty {
                    ColumnType::Set { .. } => column_flags::SET,
                    _ => column_flags::ENUM,
                };
                Shape::text(M::String, u32::try_from(longest).unwrap_or(u32::MAX), flag)
            }
        }
    }

    fn of_arrow(ty: &DataType) -> Shape {
        use MysqlColumnType as M;
        match ty {
            DataType::Null => Shape::bytes(M::Null, 0, 0),
            DataType::Boolean => Shape::number(M::LongLong, 1, 0, false),
            DataType::Int8 => Shape::integer(M::Tiny, 4, false),
            DataType::Int16 => Shape::integer(M::Short, 6, false),
            DataType::Int32 => Shape::integer(M::Long, 11, false),
            DataType::Int64 => Shape::integer(M::LongLong, 20, false),
            DataType::UInt8 => Shape::integer(M::Tiny, 4, true),
            DataType::UInt16 => Shape::integer(M::Short, 6, true),
            DataType::UInt32 => Shape::integer(M::Long, 11, true),
            DataType::UInt64 => Shape::integer(M::LongLong, 20, true),
            DataType::Float16 | DataType::Float32 => {
                Shape::number(M::Float, 12, NOT_FIXED_DECIMALS, false)
            }
            DataType::Float64 => Shape::number(M::Double, 23, NOT_FIXED_DECIMALS, false),
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                Shape::decimal(*precision, u8::try_from(*scale).unwrap_or(0), false)
            }
            DataType::Date32 | DataType::Date64 => Shape::temporal(M::Date, 10, 0),
            DataType::Timestamp(..) => Shape::temporal(M::DateTime, 19, 6),
            DataType::Duration(_) | DataType::Time32(_) | DataType::Time64(_) => {
                Shape::temporal(M::Time, 10, 6)
            }
            DataType::Binary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                Shape::bytes(M::VarString, UNKNOWN_TEXT_CHARACTERS, 0)
            }
            _ => Shape::text(M::VarString, UNKNOWN_TEXT_CHARACTERS, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use sheaf_access::TYPE_KEY;

    use super::*;

    fn meta(sql_type: &str) -> ColumnMeta {
        let metadata = HashMap::from([(TYPE_KEY.to_string(), sql_type.to_string())]);
        let field = Field::new("c", DataType::Utf8View, true).with_metadata(metadata);
        ColumnMeta::new(&field, &Header::default(), 255)
    }

    #[test]
    fn columns_are_described_as_mysql_describes_them() {
        let shape = |sql_type| {
            let meta = meta(sql_type);
            (meta.type_, meta.length, meta.decimals, meta.collation_id)
        };
        assert_eq!(
            shape("bigint unsigned"),
            (MysqlColumnType::LongLong, 20, 0, 63)
        );
        assert_eq!(shape("int unsigned"), (MysqlColumnType::Long, 10, 0, 63));
        assert_eq!(
            shape("int(6) unsigned zerofill"),
            (MysqlColumnType::Long, 6, 0, 63)
        );
        assert_eq!(shape("bit(10)"), (MysqlColumnType::Bit, 10, 0, 63));
        assert_eq!(shape("float(7,2)"), (MysqlColumnType::Float, 7, 2, 63));
        assert_eq!(
            shape("decimal(15,2)"),
            (MysqlColumnType::NewDecimal, 17, 2, 63)
        );
        assert_eq!(
            shape("varchar(25)"),
            (MysqlColumnType::VarString, 100, 0, 255)
        );
        assert_eq!(shape("datetime(3)"), (MysqlColumnType::DateTime, 23, 3, 63));
        assert_eq!(
            shape("enum('a','long')"),
            (MysqlColumnType::String, 16, 0, 255)
        );
        assert_eq!(
            shape("set('a','long')"),
            (MysqlColumnType::String, 24, 0, 255)
        );
        assert_eq!(
            shape("varbinary(9)"),
            (MysqlColumnType::VarString, 9, 0, 63)
        );
    }

    #[test]
    fn without_conversion_columns_have_their_own_collation() {
        let collation_id = |sql_type: &str| {
            let metadata = HashMap::from([(TYPE_KEY.to_string(), sql_type.to_string())]);
            let field = Field::new("c", DataType::Utf8View, true).with_metadata(metadata);
            ColumnMeta::new(&field, &Header::default(), OWN_COLLATION_ID).collation_id
        };
        assert_eq!(collation_id("varchar(25)"), 255);
        assert_eq!(collation_id("varchar(25) collate utf8mb4_bin"), 46);
        assert_eq!(collation_id("varbinary(25)"), 63);
        let computed = Field::new("c", DataType::Utf8View, true);
        let meta = ColumnMeta::new(&computed, &Header::default(), OWN_COLLATION_ID);
        assert_eq!(meta.collation_id, 255);
    }
}
