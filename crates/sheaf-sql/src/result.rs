//! What a statement gives back: column descriptions, Arrow batches, or an OK with counts.
//!
//! A statement writes to a [`ResultSink`] while it runs, so a result of any size needs the memory of one batch.
//! The sink decides where rows go: the protocol floor encodes them onto the socket, the embedded library and
//! the shell collect them.

use std::io::Read;

use arrow::record_batch::RecordBatch;

use crate::error::Result;

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
    pub const NUM: u16 = 32768;
}

/// The collation id that marks bytes without a character set.
pub const BINARY_COLLATION_ID: u16 = 63;

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

/// Where a statement's results go. For each statement the calls are either `ok` alone or `columns`, any number
/// of `rows`, `end_of_rows`. An error that a sink returns ends the statement with that error.
pub trait ResultSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()>;
    /// The batch has the columns that were announced, in their order.
    fn rows(&mut self, batch: &RecordBatch) -> Result<()>;
    fn end_of_rows(&mut self, end: EndOfRows) -> Result<()>;
    fn ok(&mut self, ok: OkInfo) -> Result<()>;
    /// The contents of a file on the client's side, for LOAD DATA LOCAL INFILE. The sink must be able to
    /// discard what the statement leaves unread when the reader is dropped.
    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>>;
}
