//! Column types: what a column may hold, and how MySQL spells it.
//!
//! A [`ColumnType`] is the declared type of a column. Its [`Display`](std::fmt::Display) is the text that `SHOW CREATE
//! TABLE` and `information_schema.columns.column_type` print (`int unsigned`, `decimal(15,2)`, `enum('a','b')`), and
//! [`ColumnType::parse`] reads that text back. The collation of a string column is part of the type but not of that
//! text, because MySQL prints it only where it differs from the table's. [`ColumnType::descriptor`] is the text with
//! the collation, and `parse` reads that too.

use std::fmt;
use std::sync::Arc;

use crate::error::UnknownType;
use crate::text::collation::Collation;

/// The most digits a DECIMAL may have: all that fit an `i128`. (MySQL allows 65.)
pub const MAX_DECIMAL_PRECISION: u8 = 38;
/// The most digits of a DECIMAL after the point (MySQL's limit).
pub const MAX_DECIMAL_SCALE: u8 = 30;
/// The most digits of a second's fraction.
pub const MAX_FRACTION_DIGITS: u8 = 6;
/// The longest CHAR and BINARY, in characters and bytes.
pub const MAX_CHAR_LENGTH: u32 = 255;
/// The longest VARCHAR in characters: MySQL's 65,535 byte row divided by the 4 bytes of a character, less its length.
pub const MAX_VARCHAR_LENGTH: u32 = 16_383;
/// The longest VARBINARY in bytes.
pub const MAX_VARBINARY_LENGTH: u32 = 65_535;
/// The most labels of an ENUM.
pub const MAX_ENUM_LABELS: usize = 65_535;
/// The widest character in bytes (utf8mb4).
pub const MAX_CHARACTER_BYTES: u32 = 4;

/// TINYTEXT, TEXT, MEDIUMTEXT and LONGTEXT (and the BLOBs) by the most bytes each holds.
const LONG_SIZES: [(u64, &str); 4] = [
    (255, "tiny"),
    (65_535, ""),
    (16_777_215, "medium"),
    (4_294_967_295, "long"),
];

/// The declared type of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// BOOL: MySQL's `tinyint(1)`. Stored, compared and encoded like a signed TINYINT.
    Bool,
    TinyInt {
        unsigned: bool,
    },
    SmallInt {
        unsigned: bool,
    },
    MediumInt {
        unsigned: bool,
    },
    Int {
        unsigned: bool,
    },
    BigInt {
        unsigned: bool,
    },
    /// `precision` digits in all, `scale` of them after the point.
    Decimal {
        precision: u8,
        scale: u8,
        unsigned: bool,
    },
    Float {
        unsigned: bool,
    },
    Double {
        unsigned: bool,
    },
    /// Up to `length` characters; trailing spaces are not kept.
    Char {
        length: u32,
        collation: Collation,
    },
    /// Up to `length` characters.
    VarChar {
        length: u32,
        collation: Collation,
    },
    /// TINYTEXT to LONGTEXT: up to `max_bytes` bytes of UTF-8.
    Text {
        max_bytes: u64,
        collation: Collation,
    },
    /// Exactly `length` bytes, filled up with 0x00.
    Binary {
        length: u32,
    },
    VarBinary {
        length: u32,
    },
    /// TINYBLOB to LONGBLOB.
    Blob {
        max_bytes: u64,
    },
    Date,
    /// `fsp` digits of a second's fraction.
    Time {
        fsp: u8,
    },
    DateTime {
        fsp: u8,
    },
    Timestamp {
        fsp: u8,
    },
    Year,
    /// One of `labels`, stored as its number (1-based; 0 is the empty error value) and ordered by it.
    Enum {
        labels: Arc<[String]>,
        collation: Collation,
    },
}

/// Reads the text of a type from the left.
struct TypeText<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> TypeText<'a> {
    fn fail(&self) -> UnknownType {
        UnknownType {
            text: self.text.to_string(),
        }
    }

    fn word(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn eat(&mut self, expected: char) -> bool {
        let trimmed = self.rest.trim_start();
        match trimmed.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, UnknownType> {
        self.word().parse().map_err(|_| self.fail())
    }

    /// `(n)`, or nothing.
    fn optional_length<T: std::str::FromStr>(&mut self) -> Result<Option<T>, UnknownType> {
        if !self.eat('(') {
            return Ok(None);
        }
        let length = self.number()?;
        if self.eat(')') {
            Ok(Some(length))
        } else {
            Err(self.fail())
        }
    }

    fn fraction_digits(&mut self) -> Result<u8, UnknownType> {
        let digits = self.optional_length()?.unwrap_or(0);
        if digits <= MAX_FRACTION_DIGITS {
            Ok(digits)
        } else {
            Err(self.fail())
        }
    }

    /// `'a','it''s'` up to the closing parenthesis.
    fn labels(&mut self) -> Result<Arc<[String]>, UnknownType> {
        let mut labels = Vec::new();
        if !self.eat('(') {
            return Err(self.fail());
        }
        loop {
            if !self.eat('\'') {
                return Err(self.fail());
            }
            let mut label = String::new();
            loop {
                let quote = self.rest.find('\'').ok_or_else(|| self.fail())?;
                label.push_str(&self.rest[..quote]);
                self.rest = &self.rest[quote + 1..];
                match self.rest.strip_prefix('\'') {
                    Some(rest) => {
                        label.push('\'');
                        self.rest = rest;
                    }
                    None => break,
                }
            }
            labels.push(label);
            if self.eat(')') {
                return Ok(labels.into());
            }
            if !self.eat(',') {
                return Err(self.fail());
            }
        }
    }
}

impl ColumnType {
    /// Reads a type as [`Display`](std::fmt::Display) or [`descriptor`](Self::descriptor) print it.
    /// Strings without a `COLLATE` clause get the default collation.
    ///
    /// # Errors
    /// [`UnknownType`] with the whole text.
    pub fn parse(text: &str) -> Result<ColumnType, UnknownType> {
        let mut input = TypeText { text, rest: text };
        let name = input.word().to_ascii_lowercase();
        let default = Collation::default();
        let parsed = match name.as_str() {
            "bool" | "boolean" => ColumnType::Bool,
            "tinyint" => match input.optional_length::<u32>()? {
                Some(1) => ColumnType::Bool,
                _ => ColumnType::TinyInt { unsigned: false },
            },
            "smallint" | "mediumint" | "int" | "integer" | "bigint" => {
                input.optional_length::<u32>()?;
                match name.as_str() {
                    "smallint" => ColumnType::SmallInt { unsigned: false },
                    "mediumint" => ColumnType::MediumInt { unsigned: false },
                    "bigint" => ColumnType::BigInt { unsigned: false },
                    _ => ColumnType::Int { unsigned: false },
                }
            }
            "decimal" | "numeric" => {
                let (mut precision, mut scale) = (10, 0);
                if input.eat('(') {
                    precision = input.number()?;
                    if input.eat(',') {
                        scale = input.number()?;
                    }
                    if !input.eat(')') {
                        return Err(input.fail());
                    }
                }
                if precision == 0
                    || precision > MAX_DECIMAL_PRECISION
                    || scale > precision.min(MAX_DECIMAL_SCALE)
                {
                    return Err(input.fail());
                }
                ColumnType::Decimal {
                    precision,
                    scale,
                    unsigned: false,
                }
            }
            "float" => ColumnType::Float { unsigned: false },
            "double" | "real" => ColumnType::Double { unsigned: false },
            "char" => ColumnType::Char {
                length: input.optional_length()?.unwrap_or(1),
                collation: default,
            },
            "varchar" => ColumnType::VarChar {
                length: input.optional_length()?.ok_or_else(|| input.fail())?,
                collation: default,
            },
            "binary" => ColumnType::Binary {
                length: input.optional_length()?.unwrap_or(1),
            },
            "varbinary" => ColumnType::VarBinary {
                length: input.optional_length()?.ok_or_else(|| input.fail())?,
            },
            "date" => ColumnType::Date,
            "time" => ColumnType::Time {
                fsp: input.fraction_digits()?,
            },
            "datetime" => ColumnType::DateTime {
                fsp: input.fraction_digits()?,
            },
            "timestamp" => ColumnType::Timestamp {
                fsp: input.fraction_digits()?,
            },
            "year" => {
                input.optional_length::<u32>()?;
                ColumnType::Year
            }
            "enum" => ColumnType::Enum {
                labels: input.labels()?,
                collation: default,
            },
            _ => {
                let long = |suffix: &str| {
                    let size = name.strip_suffix(suffix)?;
                    LONG_SIZES
                        .iter()
                        .find(|(_, prefix)| *prefix == size)
                        .map(|(max_bytes, _)| *max_bytes)
                };
                if let Some(max_bytes) = long("text") {
                    ColumnType::Text {
                        max_bytes,
                        collation: default,
                    }
                } else if let Some(max_bytes) = long("blob") {
                    ColumnType::Blob { max_bytes }
                } else {
                    return Err(input.fail());
                }
            }
        };
        Self::parse_attributes(parsed, &mut input)
    }

    /// `UNSIGNED`, `COLLATE name` after the type's name.
    fn parse_attributes(
        mut parsed: ColumnType,
        input: &mut TypeText,
    ) -> Result<ColumnType, UnknownType> {
        loop {
            let word = input.word().to_ascii_lowercase();
            match word.as_str() {
                "" if input.rest.trim().is_empty() => return Ok(parsed),
                "unsigned" => parsed = parsed.into_unsigned().ok_or_else(|| input.fail())?,
                "collate" => {
                    let collation = Collation::parse(input.word()).ok_or_else(|| input.fail())?;
                    parsed = parsed.with_collation(collation);
                }
                _ => return Err(input.fail()),
            }
        }
    }

    /// The unsigned variant of a numeric type; `None` for other types.
    pub fn into_unsigned(self) -> Option<ColumnType> {
        Some(match self {
            ColumnType::Bool | ColumnType::TinyInt { .. } => ColumnType::TinyInt { unsigned: true },
            ColumnType::SmallInt { .. } => ColumnType::SmallInt { unsigned: true },
            ColumnType::MediumInt { .. } => ColumnType::MediumInt { unsigned: true },
            ColumnType::Int { .. } => ColumnType::Int { unsigned: true },
            ColumnType::BigInt { .. } => ColumnType::BigInt { unsigned: true },
            ColumnType::Decimal {
                precision, scale, ..
            } => ColumnType::Decimal {
                precision,
                scale,
                unsigned: true,
            },
            ColumnType::Float { .. } => ColumnType::Float { unsigned: true },
            ColumnType::Double { .. } => ColumnType::Double { unsigned: true },
            _ => return None,
        })
    }

    /// The same type with another collation; types without one are returned as they are.
    pub fn with_collation(self, collation: Collation) -> ColumnType {
        match self {
            ColumnType::Char { length, .. } => ColumnType::Char { length, collation },
            ColumnType::VarChar { length, .. } => ColumnType::VarChar { length, collation },
            ColumnType::Text { max_bytes, .. } => ColumnType::Text {
                max_bytes,
                collation,
            },
            ColumnType::Enum { labels, .. } => ColumnType::Enum { labels, collation },
            other => other,
        }
    }

    /// The collation of a character type; `None` for numbers, dates and byte strings.
    pub fn collation(&self) -> Option<Collation> {
        match self {
            ColumnType::Char { collation, .. }
            | ColumnType::VarChar { collation, .. }
            | ColumnType::Text { collation, .. }
            | ColumnType::Enum { collation, .. } => Some(*collation),
            _ => None,
        }
    }

    /// The type's text with its collation where that is not the default: `varchar(25) COLLATE utf8mb4_bin`.
    /// [`ColumnType::parse`] gives the same type back.
    pub fn descriptor(&self) -> String {
        match self.collation() {
            Some(collation) if collation != Collation::default() => {
                format!("{self} COLLATE {}", collation.name())
            }
            _ => self.to_string(),
        }
    }

    /// The type's bare name, as `information_schema.columns.data_type` prints it: `varchar`, `int`, `longtext`.
    pub fn name(&self) -> &'static str {
        match self {
            ColumnType::Bool | ColumnType::TinyInt { .. } => "tinyint",
            ColumnType::SmallInt { .. } => "smallint",
            ColumnType::MediumInt { .. } => "mediumint",
            ColumnType::Int { .. } => "int",
            ColumnType::BigInt { .. } => "bigint",
            ColumnType::Decimal { .. } => "decimal",
            ColumnType::Float { .. } => "float",
            ColumnType::Double { .. } => "double",
            ColumnType::Char { .. } => "char",
            ColumnType::VarChar { .. } => "varchar",
            ColumnType::Text { max_bytes, .. } => match *max_bytes {
                0..=255 => "tinytext",
                256..=65_535 => "text",
                65_536..=16_777_215 => "mediumtext",
                _ => "longtext",
            },
            ColumnType::Binary { .. } => "binary",
            ColumnType::VarBinary { .. } => "varbinary",
            ColumnType::Blob { max_bytes } => match *max_bytes {
                0..=255 => "tinyblob",
                256..=65_535 => "blob",
                65_536..=16_777_215 => "mediumblob",
                _ => "longblob",
            },
            ColumnType::Date => "date",
            ColumnType::Time { .. } => "time",
            ColumnType::DateTime { .. } => "datetime",
            ColumnType::Timestamp { .. } => "timestamp",
            ColumnType::Year => "year",
            ColumnType::Enum { .. } => "enum",
        }
    }

    /// BOOL and the INTs (YEAR is not one).
    pub fn is_integer(&self) -> bool {
        self.integer_bits().is_some()
    }

    /// Width in bits of an integer type: 8, 16, 24, 32 or 64.
    pub fn integer_bits(&self) -> Option<u32> {
        match self {
            ColumnType::Bool | ColumnType::TinyInt { .. } => Some(8),
            ColumnType::SmallInt { .. } => Some(16),
            ColumnType::MediumInt { .. } => Some(24),
            ColumnType::Int { .. } => Some(32),
            ColumnType::BigInt { .. } => Some(64),
            _ => None,
        }
    }

    /// Smallest and largest value of an integer type.
    pub fn integer_range(&self) -> Option<(i128, i128)> {
        let bits = self.integer_bits()?;
        Some(if self.is_unsigned() {
            (0, (1i128 << bits) - 1)
        } else {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        })
    }

    pub fn is_unsigned(&self) -> bool {
        matches!(
            self,
            ColumnType::TinyInt { unsigned: true }
                | ColumnType::SmallInt { unsigned: true }
                | ColumnType::MediumInt { unsigned: true }
                | ColumnType::Int { unsigned: true }
                | ColumnType::BigInt { unsigned: true }
                | ColumnType::Decimal { unsigned: true, .. }
                | ColumnType::Float { unsigned: true }
                | ColumnType::Double { unsigned: true }
                | ColumnType::Year
        )
    }

    /// Integers, DECIMAL, FLOAT, DOUBLE and YEAR.
    pub fn is_number(&self) -> bool {
        self.is_integer()
            || matches!(
                self,
                ColumnType::Decimal { .. }
                    | ColumnType::Float { .. }
                    | ColumnType::Double { .. }
                    | ColumnType::Year
            )
    }

    /// CHAR, VARCHAR and TEXT.
    pub fn is_character(&self) -> bool {
        matches!(
            self,
            ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text { .. }
        )
    }

    /// BINARY, VARBINARY and BLOB.
    pub fn is_binary(&self) -> bool {
        matches!(
            self,
            ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. }
        )
    }

    /// DATE, TIME, DATETIME and TIMESTAMP.
    pub fn is_temporal(&self) -> bool {
        matches!(
            self,
            ColumnType::Date
                | ColumnType::Time { .. }
                | ColumnType::DateTime { .. }
                | ColumnType::Timestamp { .. }
        )
    }

    /// TEXT and BLOB: an index on them needs a prefix length.
    pub fn is_long(&self) -> bool {
        matches!(self, ColumnType::Text { .. } | ColumnType::Blob { .. })
    }

    /// The most bytes a value may take, for types of variable length.
    pub fn max_bytes(&self) -> Option<u64> {
        match self {
            ColumnType::Char { length, .. } | ColumnType::VarChar { length, .. } => {
                Some(u64::from(*length) * u64::from(MAX_CHARACTER_BYTES))
            }
            ColumnType::Binary { length } | ColumnType::VarBinary { length } => {
                Some(u64::from(*length))
            }
            ColumnType::Text { max_bytes, .. } | ColumnType::Blob { max_bytes } => Some(*max_bytes),
            _ => None,
        }
    }

    /// Digits of the fraction of a second, 0 for other types.
    pub fn fraction_digits(&self) -> u8 {
        match self {
            ColumnType::Time { fsp }
            | ColumnType::DateTime { fsp }
            | ColumnType::Timestamp { fsp } => *fsp,
            _ => 0,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            ColumnType::Bool => f.write_str("(1)")?,
            ColumnType::Decimal {
                precision, scale, ..
            } => write!(f, "({precision},{scale})")?,
            ColumnType::Char { length, .. }
            | ColumnType::VarChar { length, .. }
            | ColumnType::Binary { length }
            | ColumnType::VarBinary { length } => write!(f, "({length})")?,
            ColumnType::Enum { labels, .. } => {
                for (i, label) in labels.iter().enumerate() {
                    write!(
                        f,
                        "{}'{}'",
                        if i == 0 { "(" } else { "," },
                        label.replace('\'', "''")
                    )?;
                }
                f.write_str(")")?;
            }
            ColumnType::Time { fsp }
            | ColumnType::DateTime { fsp }
            | ColumnType::Timestamp { fsp }
                if *fsp > 0 =>
            {
                write!(f, "({fsp})")?;
            }
            _ => {}
        }
        if self.is_unsigned() && *self != ColumnType::Year {
            f.write_str(" unsigned")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_as_mysql_prints_them_and_read_back() {
        for text in [
            "tinyint(1)",
            "tinyint",
            "tinyint unsigned",
            "smallint",
            "mediumint unsigned",
            "int",
            "int unsigned",
            "bigint",
            "decimal(15,2)",
            "decimal(38,30) unsigned",
            "float",
            "double unsigned",
            "char(25)",
            "varchar(25)",
            "tinytext",
            "text",
            "mediumtext",
            "longtext",
            "binary(16)",
            "varbinary(255)",
            "blob",
            "longblob",
            "date",
            "time",
            "time(3)",
            "datetime(6)",
            "timestamp",
            "year",
            "enum('a','it''s','')",
        ] {
            assert_eq!(ColumnType::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_descriptor_keeps_the_collation() {
        let bin = ColumnType::VarChar {
            length: 25,
            collation: Collation::Utf8mb4_bin,
        };
        assert_eq!(bin.to_string(), "varchar(25)");
        assert_eq!(bin.descriptor(), "varchar(25) COLLATE utf8mb4_bin");
        assert_eq!(ColumnType::parse(&bin.descriptor()).unwrap(), bin);
    }

    #[test]
    fn synonyms_are_read() {
        assert_eq!(ColumnType::parse("INTEGER(11)").unwrap().to_string(), "int");
        assert_eq!(
            ColumnType::parse("numeric(5)").unwrap().to_string(),
            "decimal(5,0)"
        );
        assert_eq!(ColumnType::parse("BOOL").unwrap(), ColumnType::Bool);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "intt",
            "decimal(39,0)",
            "decimal(5,6)",
            "time(7)",
            "enum()",
            "enum('a'",
            "int unsignd",
            "varchar",
        ] {
            assert!(ColumnType::parse(text).is_err(), "{text}");
        }
    }
}
