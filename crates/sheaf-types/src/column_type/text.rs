//! How MySQL spells a type: read, and printed.
//!
//! The two are inverses: what [`Display`](fmt::Display) and [`ColumnType::descriptor`] print, [`ColumnType::parse`]
//! reads back. It also reads the synonyms of CREATE TABLE (`INTEGER(11)`, `NUMERIC`, `BOOL`).

use std::fmt;
use std::sync::Arc;

use super::{
    ColumnType, LONG_SIZES, MAX_BITS, MAX_DECIMAL_PRECISION, MAX_DECIMAL_SCALE,
    MAX_FRACTION_DIGITS, MAX_SET_LABELS, Sign,
};
use crate::error::UnknownType;
use crate::number::FloatDigits;
use crate::text::collation::Collation;

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

    /// `(precision,scale)`, or nothing.
    fn float_digits(&mut self) -> Result<Option<FloatDigits>, UnknownType> {
        if !self.eat('(') {
            return Ok(None);
        }
        let precision = self.number()?;
        if !self.eat(',') {
            return Err(self.fail());
        }
        let digits = FloatDigits::new(precision, self.number()?);
        if !self.eat(')') {
            return Err(self.fail());
        }
        digits.map(Some).ok_or_else(|| self.fail())
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
        // Of an integer.
        let mut width: Option<u8> = None;
        let parsed = match name.as_str() {
            "bool" | "boolean" => ColumnType::Bool,
            "tinyint" => {
                width = input.optional_length()?;
                match width {
                    Some(1) => ColumnType::Bool,
                    _ => ColumnType::TinyInt { sign: Sign::Signed },
                }
            }
            "smallint" | "mediumint" | "int" | "integer" | "bigint" => {
                width = input.optional_length()?;
                match name.as_str() {
                    "smallint" => ColumnType::SmallInt { sign: Sign::Signed },
                    "mediumint" => ColumnType::MediumInt { sign: Sign::Signed },
                    "bigint" => ColumnType::BigInt { sign: Sign::Signed },
                    _ => ColumnType::Int { sign: Sign::Signed },
                }
            }
            "bit" => {
                let length = input.optional_length()?.unwrap_or(1);
                if !(1..=MAX_BITS).contains(&length) {
                    return Err(input.fail());
                }
                ColumnType::Bit { length }
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
                    sign: Sign::Signed,
                }
            }
            "float" => ColumnType::Float {
                digits: input.float_digits()?,
                sign: Sign::Signed,
            },
            "double" | "real" => ColumnType::Double {
                digits: input.float_digits()?,
                sign: Sign::Signed,
            },
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
            "json" => ColumnType::Json,
            "set" => {
                let labels = input.labels()?;
                if labels.len() > MAX_SET_LABELS {
                    return Err(input.fail());
                }
                ColumnType::Set {
                    labels,
                    collation: default,
                }
            }
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
        Self::parse_attributes((parsed, width), &mut input)
    }

    /// `UNSIGNED`, `ZEROFILL`, `COLLATE name` after the type's name and an integer's width.
    fn parse_attributes(
        (mut parsed, width): (ColumnType, Option<u8>),
        input: &mut TypeText,
    ) -> Result<ColumnType, UnknownType> {
        loop {
            let word = input.word().to_ascii_lowercase();
            match word.as_str() {
                "" if input.rest.trim().is_empty() => return Ok(parsed),
                "unsigned" => parsed = parsed.into_unsigned().ok_or_else(|| input.fail())?,
                "zerofill" => {
                    parsed = parsed.into_zerofill(width).ok_or_else(|| input.fail())?;
                }
                "collate" => {
                    let collation = Collation::parse(input.word()).ok_or_else(|| input.fail())?;
                    parsed = parsed.with_collation(collation);
                }
                _ => return Err(input.fail()),
            }
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
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            ColumnType::Bool => f.write_str("(1)")?,
            ColumnType::Bit { length } => write!(f, "({length})")?,
            ColumnType::Decimal {
                precision, scale, ..
            } => write!(f, "({precision},{scale})")?,
            ColumnType::Float {
                digits: Some(digits),
                ..
            }
            | ColumnType::Double {
                digits: Some(digits),
                ..
            } => write!(f, "({},{})", digits.precision, digits.scale)?,
            ColumnType::Char { length, .. }
            | ColumnType::VarChar { length, .. }
            | ColumnType::Binary { length }
            | ColumnType::VarBinary { length } => write!(f, "({length})")?,
            ColumnType::Enum { labels, .. } | ColumnType::Set { labels, .. } => {
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
            integer if integer.is_integer() => {
                if let Some(width) = integer.zerofill() {
                    write!(f, "({width})")?;
                }
            }
            _ => {}
        }
        match self.sign() {
            Some(Sign::Signed) | None => Ok(()),
            Some(Sign::Unsigned) => f.write_str(" unsigned"),
            Some(Sign::ZeroFilled(_)) => f.write_str(" unsigned zerofill"),
        }
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
            "bit(1)",
            "bit(64)",
            "float(7,2)",
            "tinyint(1) unsigned zerofill",
            "int(255) unsigned zerofill",
            "decimal(10,2) unsigned zerofill",
            "float unsigned zerofill",
            "double(8,2) unsigned zerofill",
            "double(255,30) unsigned",
            "json",
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
            "set('a','it''s')",
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
        for (text, read) in [
            ("int zerofill", "int(10) unsigned zerofill"),
            (
                "bigint(0) zerofill unsigned",
                "bigint(20) unsigned zerofill",
            ),
            ("year zerofill", "year"),
            ("BIT", "bit(1)"),
        ] {
            assert_eq!(ColumnType::parse(text).unwrap().to_string(), read);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "intt",
            "decimal(66,0)",
            "decimal(5,6)",
            "bit(0)",
            "bit(65)",
            "float(7)",
            "int(256) zerofill",
            "char(3) zerofill",
            "float(3,5)",
            "double(256,2)",
            "double(40,31)",
            "float(0,0)",
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
