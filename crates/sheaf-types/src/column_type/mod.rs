//! Column types: what a column may hold, and how MySQL spells it.
//!
//! A [`ColumnType`] is the declared type of a column. Its [`Display`](std::fmt::Display) is the text that `SHOW CREATE
//! TABLE` and `information_schema.columns.column_type` print (`int unsigned`, `decimal(15,2)`, `enum('a','b')`), and
//! [`ColumnType::parse`] reads that text back. The collation of a string column is part of the type but not of that
//! text, because MySQL prints it only where it differs from the table's. [`ColumnType::descriptor`] is the text with
//! the collation, and `parse` reads that too.

mod text;

use std::sync::Arc;

use crate::number::FloatDigits;
use crate::text::collation::Collation;
use crate::text::encoding::TextEncoding;

/// The most digits a DECIMAL may have.
pub const MAX_DECIMAL_PRECISION: u8 = crate::number::MAX_WIDE_DIGITS;
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
/// The last year of a YEAR.
const MAX_YEAR: i128 = 2155;
/// A YEAR is shown in full.
const YEAR_CHARACTERS: u8 = 4;
/// The most bits of a BIT.
pub const MAX_BITS: u8 = 64;
/// The most labels of an ENUM.
pub const MAX_ENUM_LABELS: usize = 65_535;
/// The most members of a SET.
pub const MAX_SET_LABELS: usize = 64;
/// The widest character in bytes (utf8mb4).
pub const MAX_CHARACTER_BYTES: u32 = 4;

/// TINYTEXT, TEXT, MEDIUMTEXT and LONGTEXT (and the BLOBs) by the most bytes each holds.
const LONG_SIZES: [(u64, &str); 4] = [
    (255, "tiny"),
    (65_535, ""),
    (16_777_215, "medium"),
    (4_294_967_295, "long"),
];

/// Whether a number may be below zero, and whether its column shows it with zeros in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    Signed,
    Unsigned,
    /// ZEROFILL: unsigned, and shown with at least so many characters.
    ZeroFilled(u8),
}

impl Sign {
    pub fn is_unsigned(self) -> bool {
        self != Sign::Signed
    }
}

/// What values of a type are stored as, whatever they mean. Files that only move values ask for this and not for the
/// type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// A number of 8, 16, 24, 32 or 64 bits: signed integers, days of a DATE, microseconds of all other moments.
    Signed(u32),
    /// Unsigned integers, BIT and SET.
    Unsigned(u32),
    /// 16 bits without a sign that travel as a signed number: a YEAR, the number of an ENUM's label.
    Small,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Float,
    Double,
    /// Of any length: characters, bytes, JSON.
    String,
}

/// The declared type of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// BOOL: MySQL's `tinyint(1)`. Stored, compared and encoded like a signed TINYINT.
    Bool,
    TinyInt {
        sign: Sign,
    },
    SmallInt {
        sign: Sign,
    },
    MediumInt {
        sign: Sign,
    },
    Int {
        sign: Sign,
    },
    BigInt {
        sign: Sign,
    },
    /// BIT: a number of `length` bits. As a string it is [its bytes](crate::number::bit_bytes).
    Bit {
        length: u8,
    },
    /// `precision` digits in all, `scale` of them after the point.
    Decimal {
        precision: u8,
        scale: u8,
        sign: Sign,
    },
    /// With `digits`: rounded to them and shown with them, as [`FloatDigits`] says.
    Float {
        digits: Option<FloatDigits>,
        sign: Sign,
    },
    Double {
        digits: Option<FloatDigits>,
        sign: Sign,
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
    /// A JSON value, in its binary form ([`crate::json`]).
    Json,
    /// Any of `labels`, stored as a number with a bit for each, the first one the lowest, and ordered by it.
    Set {
        labels: Arc<[String]>,
        collation: Collation,
    },
}

/// Types that statements and expressions make.
impl ColumnType {
    pub const fn bigint(sign: Sign) -> ColumnType {
        ColumnType::BigInt { sign }
    }

    pub const fn bit(length: u8) -> ColumnType {
        ColumnType::Bit { length }
    }

    /// A signed FLOAT.
    pub const fn float(digits: Option<FloatDigits>) -> ColumnType {
        let sign = Sign::Signed;
        ColumnType::Float { digits, sign }
    }

    /// A signed DOUBLE.
    pub const fn double(digits: Option<FloatDigits>) -> ColumnType {
        let sign = Sign::Signed;
        ColumnType::Double { digits, sign }
    }

    pub const fn varchar(length: u32, collation: Collation) -> ColumnType {
        ColumnType::VarChar { length, collation }
    }

    pub const fn longtext(collation: Collation) -> ColumnType {
        ColumnType::Text {
            max_bytes: u32::MAX as u64,
            collation,
        }
    }

    pub const fn time(fsp: u8) -> ColumnType {
        ColumnType::Time { fsp }
    }

    pub const fn datetime(fsp: u8) -> ColumnType {
        ColumnType::DateTime { fsp }
    }

    /// A DOUBLE as the FLOAT of the same digits; others as they are.
    pub fn into_single(self) -> ColumnType {
        match self {
            ColumnType::Double { digits, sign } => ColumnType::Float { digits, sign },
            other => other,
        }
    }

    /// CHAR and BINARY as VARCHAR and VARBINARY; others as they are.
    pub fn into_varying(self) -> ColumnType {
        match self {
            ColumnType::Char { length, collation } => ColumnType::VarChar { length, collation },
            ColumnType::Binary { length } => ColumnType::VarBinary { length },
            other => other,
        }
    }
}

/// What a type is among others. Callers ask for what they want to know, so that a new type is described here.
impl ColumnType {
    /// The same type, but for lengths, digits, signs, labels and collations.
    pub fn is_same_kind(&self, other: &ColumnType) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// What values are stored as.
    #[inline]
    pub fn stored(&self) -> Stored {
        let number = |bits, sign: Sign| match sign.is_unsigned() {
            true => Stored::Unsigned(bits),
            false => Stored::Signed(bits),
        };
        match self {
            ColumnType::Bool => Stored::Signed(8),
            ColumnType::TinyInt { sign } => number(8, *sign),
            ColumnType::SmallInt { sign } => number(16, *sign),
            ColumnType::MediumInt { sign } => number(24, *sign),
            ColumnType::Int { sign } => number(32, *sign),
            ColumnType::BigInt { sign } => number(64, *sign),
            ColumnType::Bit { .. } | ColumnType::Set { .. } => {
                Stored::Unsigned(self.stored_bits().unwrap_or(64))
            }
            ColumnType::Decimal {
                precision, scale, ..
            } => Stored::Decimal {
                precision: *precision,
                scale: *scale,
            },
            ColumnType::Float { .. } => Stored::Float,
            ColumnType::Double { .. } => Stored::Double,
            ColumnType::Date => Stored::Signed(32),
            ColumnType::Time { .. }
            | ColumnType::DateTime { .. }
            | ColumnType::Timestamp { .. } => Stored::Signed(64),
            ColumnType::Year | ColumnType::Enum { .. } => Stored::Small,
            ColumnType::Char { .. }
            | ColumnType::VarChar { .. }
            | ColumnType::Text { .. }
            | ColumnType::Binary { .. }
            | ColumnType::VarBinary { .. }
            | ColumnType::Blob { .. }
            | ColumnType::Json => Stored::String,
        }
    }

    /// Bytes of a value in MySQL's own rows and keys, which EXPLAIN and the binary log show; `None` of strings.
    pub fn mysql_bytes(&self) -> Option<u32> {
        let with_fraction = |bytes: u32, fsp: u8| bytes + u32::from(fsp.div_ceil(2));
        // Nine digits take four bytes, and the rest of each side as many as it needs.
        let side = |digits: u8| {
            u32::from(digits / 9) * 4 + [0, 1, 1, 2, 2, 3, 3, 4, 4][usize::from(digits % 9)]
        };
        Some(match self {
            ColumnType::Decimal {
                precision, scale, ..
            } => side(precision - scale) + side(*scale),
            ColumnType::Float { .. } => 4,
            ColumnType::Double { .. } => 8,
            ColumnType::Date => 3,
            ColumnType::Time { fsp } => with_fraction(3, *fsp),
            ColumnType::DateTime { fsp } => with_fraction(5, *fsp),
            ColumnType::Timestamp { fsp } => with_fraction(4, *fsp),
            ColumnType::Year => 1,
            ColumnType::Bit { length } => u32::from(*length).div_ceil(8),
            // One to four bytes, or eight.
            ColumnType::Set { labels, .. } => match (labels.len() as u32).div_ceil(8) {
                bytes @ 0..=4 => bytes,
                _ => 8,
            },
            ColumnType::Enum { labels, .. } => match labels.len() < 256 {
                true => 1,
                false => 2,
            },
            other => other.integer_bits()? / 8,
        })
    }

    /// The bits that a BIT is declared with.
    pub fn bit_length(&self) -> Option<u8> {
        match self {
            ColumnType::Bit { length } => Some(*length),
            _ => None,
        }
    }

    pub fn is_year(&self) -> bool {
        matches!(self, ColumnType::Year)
    }

    pub fn is_json(&self) -> bool {
        matches!(self, ColumnType::Json)
    }

    /// Digits of a DECIMAL: in all, and after the point.
    #[inline]
    pub fn decimal_digits(&self) -> Option<(u8, u8)> {
        match self {
            ColumnType::Decimal {
                precision, scale, ..
            } => Some((*precision, *scale)),
            _ => None,
        }
    }

    /// FLOAT, of 32 bits.
    pub fn is_single(&self) -> bool {
        matches!(self, ColumnType::Float { .. })
    }

    /// FLOAT and DOUBLE.
    pub fn is_floating(&self) -> bool {
        self.is_single() || matches!(self, ColumnType::Double { .. })
    }

    /// The characters of a CHAR or VARCHAR, the bytes of a BINARY or VARBINARY.
    pub fn declared_length(&self) -> Option<u32> {
        match self {
            ColumnType::Char { length, .. }
            | ColumnType::VarChar { length, .. }
            | ColumnType::Binary { length }
            | ColumnType::VarBinary { length } => Some(*length),
            _ => None,
        }
    }

    /// The most bytes of a TEXT or BLOB.
    pub fn long_bytes(&self) -> Option<u64> {
        match self {
            ColumnType::Text { max_bytes, .. } | ColumnType::Blob { max_bytes } => Some(*max_bytes),
            _ => None,
        }
    }

    /// CHAR and VARCHAR.
    pub fn is_short_text(&self) -> bool {
        matches!(self, ColumnType::Char { .. } | ColumnType::VarChar { .. })
    }

    /// CHAR and BINARY, which are filled up to their lengths.
    pub fn is_padded(&self) -> bool {
        matches!(self, ColumnType::Char { .. } | ColumnType::Binary { .. })
    }

    /// VARCHAR, TEXT, VARBINARY and BLOB, which say how long each value is.
    pub fn is_varying(&self) -> bool {
        matches!(
            self,
            ColumnType::VarChar { .. }
                | ColumnType::Text { .. }
                | ColumnType::VarBinary { .. }
                | ColumnType::Blob { .. }
        )
    }

    /// DATE, DATETIME and TIMESTAMP.
    pub fn has_date(&self) -> bool {
        matches!(
            self,
            ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. }
        )
    }

    /// Digits of the fraction of a second, of TIME, DATETIME and TIMESTAMP.
    pub fn clock_digits(&self) -> Option<u8> {
        match self {
            ColumnType::Time { fsp }
            | ColumnType::DateTime { fsp }
            | ColumnType::Timestamp { fsp } => Some(*fsp),
            _ => None,
        }
    }

    /// DATE: a day without the time of the day.
    pub fn is_day(&self) -> bool {
        matches!(self, ColumnType::Date)
    }

    /// DATETIME and TIMESTAMP: a day and the time of the day.
    pub fn is_moment(&self) -> bool {
        matches!(
            self,
            ColumnType::DateTime { .. } | ColumnType::Timestamp { .. }
        )
    }

    /// Whether sessions of different time zones see different values: those of TIMESTAMP, which are stored as UTC.
    pub fn follows_time_zone(&self) -> bool {
        matches!(self, ColumnType::Timestamp { .. })
    }

    /// MySQL's word for dates, times and moments in messages and statistics.
    pub fn temporal_kind(&self) -> Option<&'static str> {
        match (self.has_date(), self.clock_digits()) {
            (true, None) => Some("date"),
            (false, Some(_)) => Some("time"),
            (true, Some(_)) => Some("datetime"),
            (false, None) => None,
        }
    }

    /// The labels of an ENUM.
    pub fn enum_labels(&self) -> Option<&Arc<[String]>> {
        match self {
            ColumnType::Enum { labels, .. } => Some(labels),
            _ => None,
        }
    }

    /// The members of a SET.
    pub fn set_labels(&self) -> Option<&Arc<[String]>> {
        match self {
            ColumnType::Set { labels, .. } => Some(labels),
            _ => None,
        }
    }

    /// The labels of an ENUM or SET.
    pub fn labels(&self) -> Option<&Arc<[String]>> {
        self.enum_labels().or_else(|| self.set_labels())
    }
}

impl ColumnType {
    /// The same number with another sign; `None` for other types.
    fn with_sign(self, sign: Sign) -> Option<ColumnType> {
        Some(match self {
            ColumnType::Bool | ColumnType::TinyInt { .. } => ColumnType::TinyInt { sign },
            ColumnType::SmallInt { .. } => ColumnType::SmallInt { sign },
            ColumnType::MediumInt { .. } => ColumnType::MediumInt { sign },
            ColumnType::Int { .. } => ColumnType::Int { sign },
            ColumnType::BigInt { .. } => ColumnType::BigInt { sign },
            ColumnType::Decimal {
                precision, scale, ..
            } => ColumnType::Decimal {
                precision,
                scale,
                sign,
            },
            ColumnType::Float { digits, .. } => ColumnType::Float { digits, sign },
            ColumnType::Double { digits, .. } => ColumnType::Double { digits, sign },
            _ => return None,
        })
    }

    /// The sign of a number; `None` for other types, for BOOL and for YEAR.
    fn sign(&self) -> Option<Sign> {
        match self {
            ColumnType::TinyInt { sign }
            | ColumnType::SmallInt { sign }
            | ColumnType::MediumInt { sign }
            | ColumnType::Int { sign }
            | ColumnType::BigInt { sign }
            | ColumnType::Decimal { sign, .. }
            | ColumnType::Float { sign, .. }
            | ColumnType::Double { sign, .. } => Some(*sign),
            _ => None,
        }
    }

    /// The unsigned variant of a numeric type; `None` for other types. One with ZEROFILL is unsigned already.
    pub fn into_unsigned(self) -> Option<ColumnType> {
        match self.zerofill() {
            Some(_) => Some(self),
            None => self.with_sign(Sign::Unsigned),
        }
    }

    /// The variant of a numeric type with ZEROFILL, which for YEAR says nothing; `None` for other types. An integer has
    /// the width that is declared for it, and all others have the width of their digits.
    pub fn into_zerofill(self, declared: Option<u8>) -> Option<ColumnType> {
        let of_integer = |digits| declared.filter(|width| *width > 0).unwrap_or(digits);
        let width = match &self {
            ColumnType::Year => return Some(self),
            ColumnType::Bool | ColumnType::TinyInt { .. } => of_integer(3),
            ColumnType::SmallInt { .. } => of_integer(5),
            ColumnType::MediumInt { .. } => of_integer(8),
            ColumnType::Int { .. } => of_integer(10),
            ColumnType::BigInt { .. } => of_integer(20),
            ColumnType::Decimal {
                precision, scale, ..
            } => precision + u8::from(*scale > 0),
            ColumnType::Float { digits, .. } => digits.map_or(12, |digits| digits.precision),
            ColumnType::Double { digits, .. } => digits.map_or(22, |digits| digits.precision),
            _ => return None,
        };
        self.with_sign(Sign::ZeroFilled(width))
    }

    /// The width to which a number with ZEROFILL is filled up.
    pub fn zerofill(&self) -> Option<u8> {
        match self.sign() {
            Some(Sign::ZeroFilled(width)) => Some(width),
            _ => None,
        }
    }

    /// The type of the same values that shows them without ZEROFILL.
    pub fn without_zerofill(&self) -> ColumnType {
        let plain = self
            .zerofill()
            .and_then(|_| self.clone().with_sign(Sign::Unsigned));
        plain.unwrap_or_else(|| self.clone())
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
            ColumnType::Set { labels, .. } => ColumnType::Set { labels, collation },
            other => other,
        }
    }

    /// The type after CONVERT TO CHARACTER SET: a TEXT holds as many characters as before, if they may take more bytes.
    pub fn converted_to(self, collation: Collation) -> ColumnType {
        let ColumnType::Text {
            max_bytes,
            collation: before,
        } = self
        else {
            return self.with_collation(collation);
        };
        let (from, to) = (before.character_bytes(), collation.character_bytes());
        let wanted = max_bytes.saturating_mul(to.into()) / u64::from(from.max(1));
        let mut sizes = LONG_SIZES.iter().map(|(size, _)| *size);
        let larger = sizes.find(|size| *size >= wanted).unwrap_or(max_bytes);
        ColumnType::Text {
            max_bytes: larger.max(max_bytes),
            collation,
        }
    }

    /// The collation of a character type; `None` for numbers, dates and byte strings.
    pub fn collation(&self) -> Option<Collation> {
        match self {
            ColumnType::Char { collation, .. }
            | ColumnType::VarChar { collation, .. }
            | ColumnType::Text { collation, .. }
            | ColumnType::Enum { collation, .. }
            | ColumnType::Set { collation, .. } => Some(*collation),
            _ => None,
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
            ColumnType::Bit { .. } => "bit",
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
            ColumnType::Json => "json",
            ColumnType::Set { .. } => "set",
        }
    }

    /// Whether this is a DECIMAL of more digits than 128 bits hold.
    pub fn is_wide_decimal(&self) -> bool {
        matches!(self, ColumnType::Decimal { precision, .. } if crate::number::is_wide(*precision))
    }

    /// BOOL and the INTs (YEAR and BIT are none).
    pub fn is_integer(&self) -> bool {
        self.integer_bits().is_some() && !matches!(self, ColumnType::Bit { .. })
    }

    /// Width in bits of an integer type: 8, 16, 24, 32 or 64. That of BIT is what its values are stored in.
    pub fn integer_bits(&self) -> Option<u32> {
        match self {
            ColumnType::Bool | ColumnType::TinyInt { .. } => Some(8),
            ColumnType::SmallInt { .. } => Some(16),
            ColumnType::MediumInt { .. } => Some(24),
            ColumnType::Int { .. } => Some(32),
            ColumnType::BigInt { .. } => Some(64),
            ColumnType::Bit { .. } => self.stored_bits(),
            _ => None,
        }
    }

    /// What the bits of a BIT or SET are stored in: 8, 16, 32 or 64.
    pub fn stored_bits(&self) -> Option<u32> {
        let bits = match self {
            ColumnType::Bit { length } => usize::from(*length),
            ColumnType::Set { labels, .. } => labels.len(),
            _ => return None,
        };
        Some(match bits {
            0..=8 => 8,
            9..=16 => 16,
            17..=32 => 32,
            _ => 64,
        })
    }

    /// Smallest and largest value of an integer type and of BIT.
    pub fn integer_range(&self) -> Option<(i128, i128)> {
        let bits = match self {
            ColumnType::Bit { length } => u32::from(*length),
            _ => self.integer_bits()?,
        };
        Some(if self.is_unsigned() {
            (0, (1i128 << bits) - 1)
        } else {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        })
    }

    /// Smallest and largest value of a type of whole numbers: integers, BIT and YEAR.
    pub fn whole_range(&self) -> Option<(i128, i128)> {
        match self {
            ColumnType::Year => Some((0, MAX_YEAR)),
            other => other.integer_range(),
        }
    }

    /// Digits of the greatest value of a type of whole numbers.
    pub fn whole_digits(&self) -> Option<u32> {
        let (_, greatest) = self.whole_range()?;
        Some(greatest.checked_ilog10()? + 1)
    }

    /// The least characters that a number has as a string: with ZEROFILL, and as a YEAR.
    pub fn filled_width(&self) -> Option<u8> {
        match self {
            ColumnType::Year => Some(YEAR_CHARACTERS),
            other => other.zerofill(),
        }
    }

    pub fn is_unsigned(&self) -> bool {
        matches!(self, ColumnType::Year | ColumnType::Bit { .. })
            || self.sign().is_some_and(Sign::is_unsigned)
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

    /// BINARY, VARBINARY, BLOB and BIT: of a text they take the bytes that it has in its character set.
    pub fn takes_bytes(&self) -> bool {
        self.is_binary() || self.bit_length().is_some()
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

    /// TEXT, BLOB and JSON: values of any length, of which an index has at most the beginning.
    pub fn is_long(&self) -> bool {
        matches!(
            self,
            ColumnType::Text { .. } | ColumnType::Blob { .. } | ColumnType::Json
        )
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
            ColumnType::Json => Some(u64::from(u32::MAX)),
            _ => None,
        }
    }

    /// The most bytes that a value takes where it is stored, as UTF-8: more than the column counts in its own set.
    pub fn max_stored_bytes(&self) -> Option<u64> {
        match self {
            ColumnType::Text {
                max_bytes,
                collation,
            } if collation.encoding() != TextEncoding::Utf8 => {
                Some(max_bytes.saturating_mul(MAX_CHARACTER_BYTES.into()))
            }
            other => other.max_bytes(),
        }
    }

    /// The type as a statement writes it: labels are string literals, in which a backslash stands twice.
    pub fn definition_text(&self) -> String {
        self.to_string().replace('\\', "\\\\")
    }

    /// Whether values are texts that are stored as numbers and ordered by them: ENUM and SET.
    pub fn has_labels(&self) -> bool {
        self.labels().is_some()
    }

    /// Digits that values of a FLOAT or DOUBLE are rounded to and shown with; `None` for as many as they take.
    pub fn float_digits(&self) -> Option<FloatDigits> {
        match self {
            ColumnType::Float { digits, .. } | ColumnType::Double { digits, .. } => *digits,
            _ => None,
        }
    }

    /// Digits of the fraction of a second, 0 for other types.
    pub fn fraction_digits(&self) -> u8 {
        self.clock_digits().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_the_digits_of_the_greatest() {
        for (text, digits) in [
            ("tinyint(1)", Some(3)),
            ("smallint", Some(5)),
            ("mediumint", Some(7)),
            ("mediumint unsigned", Some(8)),
            ("int", Some(10)),
            ("bigint", Some(19)),
            ("bigint unsigned", Some(20)),
            ("bit(1)", Some(1)),
            ("bit(64)", Some(20)),
            ("year", Some(4)),
            ("decimal(10,0)", None),
            ("date", None),
        ] {
            let ty = ColumnType::parse(text).expect(text);
            assert_eq!(ty.whole_digits(), digits, "{text}");
        }
    }

    #[test]
    fn a_text_keeps_its_characters_in_another_set() {
        let text = |max_bytes, set| ColumnType::Text {
            max_bytes,
            collation: Collation::default_of_set(set).expect(set),
        };
        for (size, from, to, larger) in [
            (65_535, "latin1", "utf8mb4", 16_777_215),
            (255, "latin1", "utf8mb4", 65_535),
            (65_535, "utf8mb3", "utf8mb4", 16_777_215),
            (65_535, "utf16", "utf8mb4", 65_535),
            (65_535, "utf8mb4", "latin1", 65_535),
            (4_294_967_295, "latin1", "utf8mb4", 4_294_967_295),
        ] {
            let collation = Collation::default_of_set(to).expect(to);
            let converted = text(size, from).converted_to(collation);
            assert_eq!(converted, text(larger, to), "{from} to {to}");
        }
    }
}
