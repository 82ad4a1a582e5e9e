//! Column types.
//!
//! They are read here rather than by sqlparser. MySQL's types have attributes that it does not know (ZEROFILL, CHAR(n)
//! BINARY), and a wrong length is one of MySQL's own errors, not a syntax error.

use sheaf_types::column_type::{MAX_SET_LABELS, Sign};
use sheaf_types::labels::SET_SEPARATOR;
use sheaf_types::number::{FloatDigits, MAX_FLOAT_PRECISION, MAX_FLOAT_SCALE};
use sheaf_types::{Collation, ColumnType};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::statement::TypeName;
use super::statement_bytes::invalid_string;
use super::tokens::tokens_of;
use super::view::ViewEnd;
use super::{Failure, ParseResult, StatementParser};
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};

/// Limits of the types' parameters that MySQL checks while it parses.
const MAX_DECIMAL_PRECISION: u64 = sheaf_types::column_type::MAX_DECIMAL_PRECISION as u64;
const MAX_DECIMAL_SCALE: u64 = sheaf_types::column_type::MAX_DECIMAL_SCALE as u64;
const MAX_FRACTION_DIGITS: u64 = sheaf_types::column_type::MAX_FRACTION_DIGITS as u64;
/// FLOAT(p) with more bits than this is a DOUBLE.
const MAX_FLOAT_BITS: u64 = 24;
const MAX_DOUBLE_BITS: u64 = 53;
const MAX_BITS: u64 = sheaf_types::column_type::MAX_BITS as u64;
/// Of integers.
const MAX_DISPLAY_WIDTH: u64 = 255;
/// Of LONGTEXT and LONGBLOB.
const MAX_LONG_BYTES: u64 = 4_294_967_295;

/// The digits of FLOAT(M,D) and DOUBLE(M,D); none unless both are written.
fn float_digits(
    column: &str,
    precision: Option<u64>,
    scale: Option<u64>,
) -> ParseResult<Option<FloatDigits>> {
    let (Some(precision), Some(scale)) = (precision, scale) else {
        return Ok(None);
    };
    let most = u64::from(MAX_FLOAT_PRECISION);
    if scale > u64::from(MAX_FLOAT_SCALE) {
        let most = u64::from(MAX_FLOAT_SCALE);
        return Err(SqlError::too_big_scale(scale, column, most).into());
    }
    if precision > most || precision == 0 && scale == 0 {
        return Err(SqlError::too_big_display_width(column, most).into());
    }
    let digits = FloatDigits::new(precision as u8, scale as u8);
    match digits {
        None => Err(SqlError::scale_bigger_than_precision(column).into()),
        digits => Ok(digits),
    }
}

/// The type of a column of JSON_TABLE, written as `text`.
///
/// # Errors
/// MySQL's for lengths and digits that no column has; 1064.
pub fn column_type(text: &str, column: &str) -> Result<TypeName> {
    let dialect = SheafDialect::default();
    let mut parser = StatementParser {
        tokens: Parser::new(&dialect).with_tokens_with_locations(tokens_of(text, &dialect, 0)?),
        view_end: ViewEnd::default(),
        escapes_in_files: true,
    };
    match parser.type_of_json_column(column) {
        Ok(type_name) if parser.at_end() => Ok(type_name),
        Err(Failure::Statement(error)) => Err(error),
        _ => Err(SqlError::parse_error(text, 1)),
    }
}

/// CHAR, VARCHAR and TEXT of the character set `binary` are the byte types.
fn with_collation(ty: ColumnType, collation: Collation) -> ColumnType {
    match (ty, collation) {
        (ColumnType::Char { length, .. }, Collation::Binary) => ColumnType::Binary { length },
        (ColumnType::VarChar { length, .. }, Collation::Binary) => ColumnType::VarBinary { length },
        (ColumnType::Text { max_bytes, .. }, Collation::Binary) => ColumnType::Blob { max_bytes },
        (ty, collation) => ty.with_collation(collation),
    }
}

/// The smallest of the four sizes of TEXT and BLOB that holds so many characters.
fn long_size(characters: Option<u64>, character_bytes: u64) -> u64 {
    let Some(characters) = characters else {
        return 65_535;
    };
    let bytes = characters.saturating_mul(character_bytes);
    [255, 65_535, 16_777_215]
        .into_iter()
        .find(|size| bytes <= *size)
        .unwrap_or(MAX_LONG_BYTES)
}

impl TypeName {
    /// The type in a collation.
    pub fn in_collation(&self, collation: Collation) -> ColumnType {
        let mut ty = self.ty.clone();
        if let ColumnType::Text { max_bytes, .. } = &mut ty
            && self.characters.is_some()
        {
            *max_bytes = long_size(self.characters, collation.character_bytes().into());
        }
        with_collation(ty, collation)
    }
}

impl StatementParser<'_> {
    /// `(n)` or nothing.
    fn length(&mut self) -> ParseResult<Option<u64>> {
        if !self.accept_token(&Token::LParen) {
            return Ok(None);
        }
        let length = self.number()?;
        self.expect_token(&Token::RParen)?;
        Ok(Some(length))
    }

    /// `(n)` with an `n` of at most `max`, or nothing.
    fn width(&mut self, column: &str, max: u64) -> ParseResult<Option<u64>> {
        match self.length()? {
            Some(width) if width > max => Err(SqlError::too_big_display_width(column, max).into()),
            width => Ok(width),
        }
    }

    /// `(n)` or `(n, m)` or nothing.
    fn precision_and_scale(&mut self) -> ParseResult<(Option<u64>, Option<u64>)> {
        if !self.accept_token(&Token::LParen) {
            return Ok((None, None));
        }
        let precision = self.number()?;
        let scale = if self.accept_token(&Token::Comma) {
            Some(self.number()?)
        } else {
            None
        };
        self.expect_token(&Token::RParen)?;
        Ok((Some(precision), scale))
    }

    fn fraction_digits(&mut self, column: &str) -> ParseResult<u8> {
        let digits = self.length()?.unwrap_or(0);
        if digits > MAX_FRACTION_DIGITS {
            return Err(SqlError::too_big_precision(digits, column, MAX_FRACTION_DIGITS).into());
        }
        Ok(digits as u8)
    }

    fn decimal(&mut self, column: &str) -> ParseResult<ColumnType> {
        let (precision, scale) = self.precision_and_scale()?;
        let scale = scale.unwrap_or(0);
        let precision = match precision {
            Some(0) if scale > 0 && scale <= MAX_DECIMAL_SCALE => {
                return Err(SqlError::scale_bigger_than_precision(column).into());
            }
            None | Some(0) => 10,
            Some(precision) => precision,
        };
        if precision > MAX_DECIMAL_PRECISION {
            return Err(
                SqlError::too_big_precision(precision, column, MAX_DECIMAL_PRECISION).into(),
            );
        }
        if scale > MAX_DECIMAL_SCALE {
            return Err(SqlError::too_big_scale(scale, column, MAX_DECIMAL_SCALE).into());
        }
        if scale > precision {
            return Err(SqlError::scale_bigger_than_precision(column).into());
        }
        Ok(ColumnType::Decimal {
            precision: precision as u8,
            scale: scale as u8,
            sign: Sign::Signed,
        })
    }

    fn characters(&mut self, column: &str, max: u32, default: Option<u32>) -> ParseResult<u32> {
        match (self.length()?, default) {
            (Some(length), _) if length <= u64::from(max) => Ok(length as u32),
            (Some(_), _) => Err(SqlError::too_big_field_length(column, u64::from(max)).into()),
            (None, Some(default)) => Ok(default),
            (None, None) => self.unexpected("("),
        }
    }

    /// TEXT(n) and BLOB(n): the smallest of the four sizes that holds n.
    fn long_bytes(&mut self, column: &str, character_bytes: u64) -> ParseResult<u64> {
        let length = self.width(column, MAX_LONG_BYTES)?;
        Ok(long_size(length, character_bytes))
    }

    /// The values of an ENUM or SET, without the spaces at their ends. Literals of bytes are their UTF-8.
    fn labels(&mut self) -> ParseResult<Vec<String>> {
        self.expect_token(&Token::LParen)?;
        let labels = self.list(|parser| {
            let label = String::from_utf8(parser.string_or_bytes()?);
            let label = label.map_err(|error| invalid_string(error.as_bytes()))?;
            Ok(label.trim_end_matches(' ').to_string())
        })?;
        self.expect_token(&Token::RParen)?;
        Ok(labels)
    }

    /// A type, and whether it was SERIAL (BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE).
    pub fn type_name(&mut self, column: &str) -> ParseResult<(TypeName, bool)> {
        let Token::Word(word) = &self.tokens.peek_token_ref().token else {
            return self.unexpected("a type");
        };
        let name = word.value.to_ascii_uppercase();
        let quoted = word.quote_style.is_some();
        if quoted {
            return self.unexpected("a type");
        }
        let collation = Collation::default();
        self.tokens.advance_token();
        let mut serial = false;
        // An integer's display width says nothing about its values. Only ZEROFILL shows it.
        let mut width = None;
        let mut national = false;
        let mut characters = None;
        let ty = match name.as_str() {
            "TINYINT" | "INT1" => {
                width = self.width(column, MAX_DISPLAY_WIDTH)?;
                match width {
                    Some(1) => ColumnType::Bool,
                    _ => ColumnType::TinyInt { sign: Sign::Signed },
                }
            }
            "BOOL" | "BOOLEAN" => ColumnType::Bool,
            "SMALLINT" | "INT2" => {
                width = self.width(column, MAX_DISPLAY_WIDTH)?;
                ColumnType::SmallInt { sign: Sign::Signed }
            }
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => {
                width = self.width(column, MAX_DISPLAY_WIDTH)?;
                ColumnType::MediumInt { sign: Sign::Signed }
            }
            "INT" | "INTEGER" | "INT4" => {
                width = self.width(column, MAX_DISPLAY_WIDTH)?;
                ColumnType::Int { sign: Sign::Signed }
            }
            "BIGINT" | "INT8" => {
                width = self.width(column, MAX_DISPLAY_WIDTH)?;
                ColumnType::BigInt { sign: Sign::Signed }
            }
            "SERIAL" => {
                serial = true;
                ColumnType::BigInt {
                    sign: Sign::Unsigned,
                }
            }
            "BIT" => {
                let length = match self.length()? {
                    None => 1,
                    Some(0) => return Err(SqlError::invalid_field_size(column).into()),
                    Some(length) if length > MAX_BITS => {
                        return Err(SqlError::too_big_display_width(column, MAX_BITS).into());
                    }
                    Some(length) => length as u8,
                };
                ColumnType::Bit { length }
            }
            "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => self.decimal(column)?,
            "FLOAT" | "FLOAT4" => match self.precision_and_scale()? {
                (Some(bits), None) if bits > MAX_DOUBLE_BITS => {
                    return Err(SqlError::wrong_field_specifier(column).into());
                }
                (Some(bits), None) if bits > MAX_FLOAT_BITS => ColumnType::Double {
                    digits: None,
                    sign: Sign::Signed,
                },
                (precision, scale) => ColumnType::Float {
                    digits: float_digits(column, precision, scale)?,
                    sign: Sign::Signed,
                },
            },
            "DOUBLE" | "REAL" | "FLOAT8" => {
                self.accept("PRECISION");
                let digits = match self.precision_and_scale()? {
                    // Bits are FLOAT's.
                    (Some(_), None) => return self.unexpected(","),
                    (precision, scale) => float_digits(column, precision, scale)?,
                };
                ColumnType::Double {
                    digits,
                    sign: Sign::Signed,
                }
            }
            "NATIONAL" | "NCHAR" | "NVARCHAR" | "CHAR" | "CHARACTER" | "VARCHAR" => {
                national = name.starts_with('N');
                let mut varying = matches!(name.as_str(), "VARCHAR" | "NVARCHAR");
                if name == "NATIONAL" {
                    match self.accept_one_of(&["CHARACTER", "CHAR", "VARCHAR"]) {
                        Some(word) => varying = word == "VARCHAR",
                        None => return self.unexpected("CHAR"),
                    }
                }
                if name != "VARCHAR" && self.accept_one_of(&["VARYING", "VARCHAR"]).is_some() {
                    varying = true;
                }
                if varying {
                    // The most characters are by the character set, which is not known yet.
                    let length = self.characters(column, u32::MAX, None)?;
                    ColumnType::VarChar { length, collation }
                } else {
                    let length = self.characters(
                        column,
                        sheaf_types::column_type::MAX_CHAR_LENGTH,
                        Some(1),
                    )?;
                    ColumnType::Char { length, collation }
                }
            }
            "BINARY" => ColumnType::Binary {
                length: self.characters(
                    column,
                    sheaf_types::column_type::MAX_CHAR_LENGTH,
                    Some(1),
                )?,
            },
            "VARBINARY" => ColumnType::VarBinary {
                length: self.characters(
                    column,
                    sheaf_types::column_type::MAX_VARBINARY_LENGTH,
                    None,
                )?,
            },
            "TINYTEXT" => ColumnType::Text {
                max_bytes: 255,
                collation,
            },
            "TEXT" => {
                characters = self.width(column, MAX_LONG_BYTES)?;
                let bytes = u64::from(sheaf_types::column_type::MAX_CHARACTER_BYTES);
                ColumnType::Text {
                    max_bytes: long_size(characters, bytes),
                    collation,
                }
            }
            "MEDIUMTEXT" => ColumnType::Text {
                max_bytes: 16_777_215,
                collation,
            },
            "LONGTEXT" => ColumnType::Text {
                max_bytes: MAX_LONG_BYTES,
                collation,
            },
            "LONG" => {
                if self.accept("VARBINARY") {
                    ColumnType::Blob {
                        max_bytes: 16_777_215,
                    }
                } else {
                    self.accept("VARCHAR");
                    ColumnType::Text {
                        max_bytes: 16_777_215,
                        collation,
                    }
                }
            }
            "TINYBLOB" => ColumnType::Blob { max_bytes: 255 },
            "BLOB" => ColumnType::Blob {
                max_bytes: self.long_bytes(column, 1)?,
            },
            "MEDIUMBLOB" => ColumnType::Blob {
                max_bytes: 16_777_215,
            },
            "LONGBLOB" => ColumnType::Blob {
                max_bytes: MAX_LONG_BYTES,
            },
            "DATE" => ColumnType::Date,
            "TIME" => ColumnType::Time {
                fsp: self.fraction_digits(column)?,
            },
            "DATETIME" => ColumnType::DateTime {
                fsp: self.fraction_digits(column)?,
            },
            "TIMESTAMP" => ColumnType::Timestamp {
                fsp: self.fraction_digits(column)?,
            },
            "YEAR" => {
                self.length()?;
                ColumnType::Year
            }
            "SET" => {
                let labels = self.labels()?;
                if labels.len() > MAX_SET_LABELS {
                    return Err(SqlError::too_many_strings(column).into());
                }
                if let Some(label) = labels.iter().find(|label| label.contains(SET_SEPARATOR)) {
                    return Err(SqlError::illegal_set_value(label).into());
                }
                ColumnType::Set {
                    labels: labels.into(),
                    collation,
                }
            }
            "ENUM" => ColumnType::Enum {
                labels: self.labels()?.into(),
                collation,
            },
            "JSON" => ColumnType::Json,
            "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" | "VECTOR" => {
                return Err(SqlError::not_supported_yet(format!("columns of type {name}")).into());
            }
            _ => {
                self.tokens.prev_token();
                return self.unexpected("a type");
            }
        };
        let mut type_name = TypeName {
            ty,
            character_set: None,
            collation: None,
            characters,
            real: name == "REAL",
            binary: false,
        };
        if national {
            type_name.character_set = Some("utf8".into());
        }
        self.type_attributes(&mut type_name, width)?;
        Ok((type_name, serial))
    }

    /// The type of a column of JSON_TABLE, with its collation. Only texts have a character set.
    pub(super) fn type_of_json_column(&mut self, column: &str) -> ParseResult<TypeName> {
        let (mut ty, _) = self.type_name(column)?;
        if ty.ty.collation().is_some() && (self.accept("CHARACTER SET") || self.accept("CHARSET")) {
            ty.character_set = Some(self.charset_name()?);
            ty.binary |= self.accept("BINARY");
        }
        if self.accept("COLLATE") {
            ty.collation = Some(self.charset_name()?);
        }
        Ok(ty)
    }

    /// `width` is that of an integer.
    fn type_attributes(&mut self, type_name: &mut TypeName, width: Option<u64>) -> ParseResult<()> {
        let width = width.and_then(|width| u8::try_from(width).ok());
        loop {
            if self.accept("ZEROFILL") {
                match type_name.ty.clone().into_zerofill(width) {
                    Some(filled) => type_name.ty = filled,
                    None => {
                        self.tokens.prev_token();
                        return self.unexpected("an attribute of the type");
                    }
                }
            } else if self.accept("UNSIGNED") {
                match type_name.ty.clone().into_unsigned() {
                    Some(unsigned) => type_name.ty = unsigned,
                    None => {
                        self.tokens.prev_token();
                        return self.unexpected("an attribute of the type");
                    }
                }
            } else if self.accept("SIGNED") {
                // The usual state.
            } else if type_name.ty.collation().is_some() && self.accept("BINARY") {
                type_name.binary = true;
            } else if type_name.ty.collation().is_some()
                && let Some(word) = self.accept_one_of(&["ASCII", "UNICODE", "BYTE"])
            {
                let set = match word {
                    "ASCII" => "latin1",
                    "UNICODE" => "ucs2",
                    _ => "binary",
                };
                type_name.character_set = Some(set.into());
            } else {
                return Ok(());
            }
        }
    }
}
