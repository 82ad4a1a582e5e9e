//! MySQL's type of an expression, read from its Arrow field.
//!
//! Arrow knows fewer types than MySQL. What it lacks travels in the field's metadata:
//!
//! - `sheaf.type` ([`TYPE_KEY`]): the SQL type text with its collation, as [`ColumnType::descriptor`] prints it.
//!   Columns have it from the table; functions set it where the Arrow type says too little (a DATETIME's fraction
//!   digits, an ENUM, a collation).
//! - `sheaf.decimals` ([`DECIMALS_KEY`]): the digits after the point that MySQL *shows* of a DECIMAL whose Arrow scale
//!   has more. MySQL computes quotients with guard digits (`1/3*3` is 1.0000, not 0.9999) and rounds when a
//!   value leaves the expression; so do we. Also the digits that are shown of a DOUBLE that was computed from columns
//!   whose type declares them, as FLOAT(M,D) does.
//! - `sheaf.coercibility` ([`COERCIBILITY_KEY`]): `explicit` after a COLLATE clause, which wins over any column;
//!   `coercible` of literals whose connection has another collation than the default, which yield to any column;
//!   `server` of columns of the server's own tables, which yield to other columns.

use std::cmp::Ordering;
use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion_common::{DataFusionError, Result};
pub use sheaf_access::TYPE_KEY;
use sheaf_types::error::codes;
use sheaf_types::number::{FloatDigits, MAX_WIDE_DIGITS, is_wide};
use sheaf_types::text::encoding::TextEncoding;
use sheaf_types::{Collation, ColumnType};

use super::error::EvaluationError;

/// The hexadecimal digits of a key, which order as its bytes do. Unlike HEX() it makes digits of a key of any length.
pub const HEX_OF_KEY: &str = "$hex_of_key";

pub const DECIMALS_KEY: &str = "sheaf.decimals";
pub const COERCIBILITY_KEY: &str = "sheaf.coercibility";
/// Only of literals.
pub const HYBRID_KEY: &str = "sheaf.hybrid";
/// Marks a literal of bytes with the introducer `_binary`.
pub const BYTES_LITERAL_KEY: &str = "sheaf.bytes_literal";
/// What marks a literal of bytes. Beside a text that is no literal it is a text.
pub const LITERALS_OF_BYTES: [&str; 2] = [HYBRID_KEY, BYTES_LITERAL_KEY];

/// Of a literal that a choice is beside operands that are none (`IFNULL('a', column)`). Beside a date MySQL reads it
/// for each row, as it would read these.
pub const CHOSEN_KEY: &str = "sheaf.chosen";

/// Of a text that is the date or time that arithmetic has made of a text: a number where numbers are wanted.
pub const MOMENT_KEY: &str = "sheaf.moment";

const EXPLICIT: &str = "explicit";
const MIXED: &str = "mixed";
const COERCIBLE: &str = "coercible";
/// Of columns of the server's own tables.
pub const OF_SERVER: &str = "server";

/// The most digits of a DECIMAL that is an `i128`. One of more is [wide](SqlType::is_wide).
pub const MAX_PRECISION: u8 = sheaf_types::number::MAX_DIGITS;
/// The most digits after the point that are shown.
pub const MAX_DECIMALS: u8 = 30;
/// The digits of a computed DOUBLE whose decimals are known.
const COMPUTED_FLOAT_PRECISION: u8 = 22;
/// Length that is declared for strings whose length was not computed, in characters.
const ANY_LENGTH: u32 = sheaf_types::column_type::MAX_VARCHAR_LENGTH;

/// How strongly an operand insists on its collation (MySQL's coercibility, reduced to the levels that matter here).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coercibility {
    /// A COLLATE clause.
    Explicit,
    /// Made of columns of different collations. It can be shown, and cannot be compared.
    Mixed,
    /// A column, or a function of one.
    Implicit,
    /// A column of a table of the server's own. MySQL's are of utf8mb3, which yields to columns of utf8mb4.
    OfServer,
    /// A literal, a number turned into text.
    #[default]
    Coercible,
}

/// A type in MySQL's sense, as far as semantics depend on it.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlType {
    /// The type of the literal NULL.
    Null,
    /// The result of a condition; the integers 0 and 1 to a client.
    Boolean,
    Integer {
        unsigned: bool,
    },
    /// `scale` digits after the point are kept, `decimals` are shown.
    Decimal {
        precision: u8,
        scale: u8,
        decimals: u8,
    },
    Float,
    Double,
    Text {
        collation: Collation,
        coercibility: Coercibility,
    },
    /// A byte string.
    Bytes,
    /// A JSON value.
    Json,
    /// ENUM and SET.
    Enum {
        collation: Collation,
    },
    Date,
    Time {
        fsp: u8,
    },
    /// DATETIME and TIMESTAMP.
    DateTime {
        fsp: u8,
    },
    Year,
}

/// What 128 bits have to have left before the point.
const LEAST_WHOLE_DIGITS: u8 = 18;

/// Whether so many decimals leave so little of 128 bits before the point, beside what may stand there, that the DECIMAL
/// is to be wide: a product of two DECIMAL(36,18), say. Others of too many digits rarely have them.
pub fn is_cut_short(integer_digits: u8, scale: u8) -> bool {
    let left = MAX_PRECISION.saturating_sub(scale);
    left < LEAST_WHOLE_DIGITS && integer_digits > left + 1
}

/// The SQL type text in a field's metadata, parsed.
pub fn declared_type(field: &Field) -> Option<ColumnType> {
    field
        .metadata()
        .get(TYPE_KEY)
        .and_then(|text| ColumnType::parse(text).ok())
}

/// Bytes of what is not long, whatever max_allowed_packet is: those of a TEXT or BLOB.
const SHORT_BYTES: u64 = u16::MAX as u64;

/// Whether values may be about as long as a packet: those of a MEDIUMTEXT or LONGTEXT, and what functions make that may
/// be too long themselves.
pub fn may_be_long(field: &Field) -> bool {
    match declared_type(field) {
        Some(ty) => ty.long_bytes().is_some_and(|most| most > SHORT_BYTES),
        None => {
            field.is_nullable()
                && matches!(field.data_type(), DataType::Utf8View | DataType::Binary)
        }
    }
}

impl SqlType {
    /// The MySQL type of values of `field`. Arrow types that Sheaf never produces count as text.
    pub fn of(field: &Field) -> SqlType {
        match field.data_type() {
            DataType::Null => SqlType::Null,
            DataType::Boolean => SqlType::Boolean,
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                SqlType::Integer { unsigned: false }
            }
            DataType::UInt16 if declared_type(field).is_some_and(|ty| ty.is_year()) => {
                SqlType::Year
            }
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                SqlType::Integer { unsigned: true }
            }
            DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
                let scale = u8::try_from(*scale).unwrap_or(0);
                let shown = field
                    .metadata()
                    .get(DECIMALS_KEY)
                    .and_then(|text| text.parse().ok());
                SqlType::Decimal {
                    precision: *precision,
                    scale,
                    decimals: shown.unwrap_or(scale),
                }
            }
            DataType::Float32 => SqlType::Float,
            DataType::Float64 => SqlType::Double,
            DataType::BinaryView => SqlType::Json,
            DataType::Binary => SqlType::Bytes,
            DataType::Date32 => SqlType::Date,
            DataType::Timestamp(..) => SqlType::DateTime {
                fsp: fraction_digits(field),
            },
            DataType::Duration(_) => SqlType::Time {
                fsp: fraction_digits(field),
            },
            _ => match declared_type(field) {
                Some(ty) if ty.has_labels() => SqlType::Enum {
                    collation: ty.collation().unwrap_or_default(),
                },
                declared => {
                    let coercibility = field.metadata().get(COERCIBILITY_KEY);
                    let collation = declared.and_then(|ty| ty.collation());
                    SqlType::Text {
                        coercibility: match (coercibility.map(String::as_str), collation) {
                            (Some(EXPLICIT), _) => Coercibility::Explicit,
                            (Some(MIXED), _) => Coercibility::Mixed,
                            (Some(OF_SERVER), Some(_)) => Coercibility::OfServer,
                            (Some(COERCIBLE), _) | (_, None) => Coercibility::Coercible,
                            (_, Some(_)) => Coercibility::Implicit,
                        },
                        collation: collation.unwrap_or_default(),
                    }
                }
            },
        }
    }

    pub fn is_text(&self) -> bool {
        matches!(self, SqlType::Text { .. } | SqlType::Enum { .. })
    }

    /// Strings of characters or of bytes.
    pub fn is_string(&self) -> bool {
        self.is_text() || *self == SqlType::Bytes
    }

    pub fn is_temporal(&self) -> bool {
        matches!(
            self,
            SqlType::Date | SqlType::Time { .. } | SqlType::DateTime { .. }
        )
    }

    /// Numbers that are exact: integers, DECIMAL, YEAR, conditions.
    pub fn is_exact_number(&self) -> bool {
        matches!(
            self,
            SqlType::Integer { .. } | SqlType::Decimal { .. } | SqlType::Year | SqlType::Boolean
        )
    }

    pub fn is_integer(&self) -> bool {
        matches!(
            self,
            SqlType::Integer { .. } | SqlType::Year | SqlType::Boolean
        )
    }

    /// A DECIMAL of more digits than an `i128` holds.
    pub fn is_wide(&self) -> bool {
        matches!(self, SqlType::Decimal { precision, .. } if is_wide(*precision))
    }

    /// Integers that are never negative.
    pub fn is_unsigned(&self) -> bool {
        matches!(self, SqlType::Integer { unsigned: true } | SqlType::Year)
    }

    /// Whether a value's Arrow type says less than this one, so that [`TYPE_KEY`] has to.
    pub fn is_declared(&self) -> bool {
        match self {
            SqlType::Text { collation, .. } => *collation != Collation::default(),
            SqlType::DateTime { .. } | SqlType::Time { .. } => true,
            SqlType::Enum { .. } | SqlType::Year | SqlType::Json => true,
            _ => false,
        }
    }

    pub fn is_year(&self) -> bool {
        *self == SqlType::Year
    }

    /// Whether the order of values is that of their Arrow values: numbers, bytes, dates and times.
    pub fn has_order_of_values(&self) -> bool {
        let is_number = self.is_exact_number() && *self != SqlType::Boolean || self.is_float();
        is_number || self.is_temporal() || *self == SqlType::Bytes
    }

    pub fn is_float(&self) -> bool {
        matches!(self, SqlType::Float | SqlType::Double)
    }

    pub fn collation(&self) -> Option<Collation> {
        match self {
            SqlType::Text { collation, .. } | SqlType::Enum { collation } => Some(*collation),
            SqlType::Bytes => Some(Collation::Binary),
            _ => None,
        }
    }

    /// Fraction digits of a temporal type.
    pub fn fsp(&self) -> u8 {
        match self {
            SqlType::Time { fsp } | SqlType::DateTime { fsp } => *fsp,
            _ => 0,
        }
    }

    /// Digits before the point and digits kept after it, of the type as a DECIMAL. Temporal types count as the
    /// number that their digits spell.
    pub fn decimal_digits(&self) -> (u8, u8) {
        match self {
            SqlType::Decimal {
                precision, scale, ..
            } => (precision.saturating_sub(*scale), *scale),
            SqlType::Boolean => (1, 0),
            SqlType::Year => (4, 0),
            SqlType::Integer { unsigned: false } => (19, 0),
            SqlType::Integer { unsigned: true } => (20, 0),
            SqlType::Date => (8, 0),
            SqlType::DateTime { fsp } => (14, *fsp),
            SqlType::Time { fsp } => (7, *fsp),
            _ => (1, 0),
        }
    }

    /// Digits after the point that are shown, of an exact number or a temporal value as one.
    pub fn shown_decimals(&self) -> u8 {
        match self {
            SqlType::Decimal { decimals, .. } => *decimals,
            other => other.decimal_digits().1,
        }
    }
}

/// Digits after the point that a FLOAT or DOUBLE is shown with: those its column declares, or those that it was
/// computed to have. `None`: as many as it takes.
pub fn float_decimals(field: &Field) -> Option<u8> {
    if !field.data_type().is_floating() {
        return None;
    }
    match field.metadata().get(DECIMALS_KEY) {
        Some(text) => text.parse().ok(),
        None => declared_type(field)?
            .float_digits()
            .map(|digits| digits.scale),
    }
}

/// The bits of a BIT, which is bytes where strings are wanted; `None` for all others.
pub fn bit_length(field: &Field) -> Option<u8> {
    let (DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64) =
        field.data_type()
    else {
        return None;
    };
    declared_type(field)?.bit_length()
}

/// The width to which texts of a number are filled up with zeros: that of a column with ZEROFILL.
pub fn zerofill(field: &Field) -> Option<u8> {
    match field.data_type().is_numeric() {
        true => declared_type(field)?.zerofill(),
        false => None,
    }
}

/// The type that says how values of `field` are shown, where their Arrow type alone does not.
pub fn shown_type(field: &Field) -> Option<ColumnType> {
    if let Some(declared) = declared_type(field) {
        return Some(declared);
    }
    let scale = float_decimals(field)?;
    let digits = FloatDigits::new(COMPUTED_FLOAT_PRECISION.max(scale), scale);
    Some(match field.data_type() {
        DataType::Float32 => ColumnType::float(digits),
        _ => ColumnType::double(digits),
    })
}

/// Digits after the point of a DOUBLE that is computed from these; `None` if one of them has as many as it takes.
pub fn common_float_decimals<'f>(fields: impl IntoIterator<Item = &'f FieldRef>) -> Option<u8> {
    let decimals_of = |field: &FieldRef| match SqlType::of(field) {
        SqlType::Float | SqlType::Double => float_decimals(field),
        SqlType::Null => Some(0),
        ty if ty.is_exact_number() || ty.is_temporal() => Some(ty.shown_decimals()),
        _ => None,
    };
    let mut has_float = false;
    let mut most = 0;
    for field in fields {
        has_float |= field.data_type().is_floating();
        most = decimals_of(field)?.max(most);
    }
    has_float.then_some(most)
}

fn fraction_digits(field: &Field) -> u8 {
    declared_type(field).map_or(0, |ty| ty.fraction_digits())
}

/// Fields of results. Names are the caller's business: DataFusion renames them to the expression.
pub mod field {
    use super::*;

    fn plain(data_type: DataType) -> Field {
        Field::new("", data_type, true)
    }

    /// A field with an SQL type text of its own.
    pub fn declared(data_type: DataType, ty: &ColumnType) -> Field {
        plain(data_type).with_metadata(HashMap::from([(TYPE_KEY.to_string(), ty.descriptor())]))
    }

    pub fn boolean() -> Field {
        plain(DataType::Boolean)
    }

    /// BIGINT.
    pub fn bigint() -> Field {
        plain(DataType::Int64)
    }

    /// BIGINT UNSIGNED.
    pub fn unsigned_bigint() -> Field {
        plain(DataType::UInt64)
    }

    pub fn double() -> Field {
        plain(DataType::Float64)
    }

    /// A DOUBLE that is shown with so many digits after the point.
    pub fn double_of(decimals: Option<u8>) -> Field {
        with_decimals(double(), decimals)
    }

    /// A FLOAT or DOUBLE that is shown with so many digits after the point; `None`: with as many as it takes.
    pub fn with_decimals(field: Field, decimals: Option<u8>) -> Field {
        match decimals {
            Some(decimals) => field.with_metadata(HashMap::from([(
                DECIMALS_KEY.to_string(),
                decimals.to_string(),
            )])),
            None => field,
        }
    }

    pub fn bytes() -> Field {
        plain(DataType::Binary)
    }

    /// A literal of bytes that is none of hexadecimal digits: `_binary'..'`.
    pub fn literal_bytes() -> Field {
        let metadata = HashMap::from([(BYTES_LITERAL_KEY.to_string(), String::new())]);
        bytes().with_metadata(metadata)
    }

    /// A hexadecimal literal.
    pub fn hybrid() -> Field {
        let metadata = HashMap::from([(HYBRID_KEY.to_string(), String::new())]);
        bytes().with_metadata(metadata)
    }

    pub fn json() -> Field {
        declared(DataType::BinaryView, &ColumnType::Json)
    }

    pub fn date() -> Field {
        plain(DataType::Date32)
    }

    pub fn year() -> Field {
        declared(DataType::UInt16, &ColumnType::Year)
    }

    pub fn datetime(fsp: u8) -> Field {
        declared(
            DataType::Timestamp(TimeUnit::Microsecond, None),
            &ColumnType::datetime(fsp),
        )
    }

    pub fn time(fsp: u8) -> Field {
        declared(
            DataType::Duration(TimeUnit::Microsecond),
            &ColumnType::time(fsp),
        )
    }

    /// DECIMAL with `integer_digits` before the point and `scale` after it, of which `decimals` are shown.
    /// Digits beyond what an `i128` holds are cut, before the point first.
    pub fn decimal(integer_digits: u8, scale: u8, decimals: u8) -> Field {
        let scale = scale.min(MAX_PRECISION);
        let precision = (integer_digits.saturating_add(scale))
            .clamp(1, MAX_PRECISION)
            .max(scale);
        let field = plain(DataType::Decimal128(precision, scale as i8));
        if decimals == scale {
            return field;
        }
        field.with_metadata(HashMap::from([(
            DECIMALS_KEY.to_string(),
            decimals.to_string(),
        )]))
    }

    /// The DECIMAL that is made of these operands: wide, if one of them is. What is made of it in turn may have as many
    /// digits again.
    pub fn decimal_of(operands: &[SqlType], integer_digits: u8, scale: u8, decimals: u8) -> Field {
        match operands.iter().any(SqlType::is_wide) {
            true => wide_decimal(integer_digits, scale, decimals),
            false => decimal(integer_digits, scale, decimals),
        }
    }

    /// As [`decimal`], of a DECIMAL that is wide, however few digits it needs.
    pub fn wide_decimal(integer_digits: u8, scale: u8, decimals: u8) -> Field {
        let scale = scale.min(MAX_WIDE_DIGITS);
        let precision = (integer_digits.saturating_add(scale))
            .clamp(MAX_PRECISION + 1, MAX_WIDE_DIGITS)
            .max(scale);
        let field = plain(DataType::Decimal256(precision, scale as i8));
        match decimals == scale {
            true => field,
            false => with_decimals(field, Some(decimals)),
        }
    }

    /// A string that compares by the connection's collation and yields to any column's.
    pub fn text() -> Field {
        plain(DataType::Utf8View)
    }

    /// The text of a date or time that arithmetic has made.
    pub fn moment_text() -> Field {
        let metadata = HashMap::from([(MOMENT_KEY.to_string(), String::new())]);
        text().with_metadata(metadata)
    }

    /// A string of a known collation.
    pub fn collated_text(collation: Collation, coercibility: Coercibility) -> Field {
        if coercibility == Coercibility::Coercible && collation == Collation::default() {
            return text();
        }
        let mut field = declared(
            DataType::Utf8View,
            &ColumnType::varchar(ANY_LENGTH, collation),
        );
        let told = match coercibility {
            Coercibility::Explicit => Some(EXPLICIT),
            Coercibility::Mixed => Some(MIXED),
            Coercibility::Implicit => None,
            Coercibility::OfServer => Some(OF_SERVER),
            Coercibility::Coercible => Some(COERCIBLE),
        };
        if let Some(told) = told {
            field
                .metadata_mut()
                .insert(COERCIBILITY_KEY.to_string(), told.to_string());
        }
        field
    }
}

/// The collation that governs a comparison of these operands.
///
/// # Errors
/// 1267 if two operands insist on different collations; 1270 and 1271 of three and more.
pub fn common_collation(
    operands: &[SqlType],
    operation: &str,
) -> Result<(Collation, Coercibility)> {
    match result_collation(operands, operation)? {
        (_, Coercibility::Mixed) => Err(illegal_mix(operands, operation)),
        known => Ok(known),
    }
}

/// The collation of a text that is made of these operands. Of columns with different ones it is
/// [`Coercibility::Mixed`].
///
/// # Errors
/// 1267 if COLLATE clauses of two operands differ, or their binary collations; 1270 and 1271 of three and more.
pub fn result_collation(
    operands: &[SqlType],
    operation: &str,
) -> Result<(Collation, Coercibility)> {
    let mut winner: Option<(Collation, Coercibility)> = None;
    // Neither of the two binary collations wins over the other. A stronger operand settles that.
    let mut clashes = false;
    for (collation, coercibility) in operands.iter().filter_map(collation_of) {
        winner = Some(match winner {
            None => (collation, coercibility),
            Some(kept) if is_of_other_set(kept.0, collation) => {
                match of_two_sets(kept, (collation, coercibility)) {
                    Some(chosen) => {
                        clashes &= chosen.1 >= kept.1;
                        chosen
                    }
                    None => {
                        clashes = true;
                        kept
                    }
                }
            }
            Some((_, current)) if coercibility < current => {
                clashes = false;
                (collation, coercibility)
            }
            Some((kept, current)) if coercibility > current || kept == collation => (kept, current),
            Some((kept, Coercibility::Coercible | Coercibility::Implicit))
                if are_binary_of_characters(kept, collation) =>
            {
                clashes = true;
                (kept, coercibility)
            }
            // A literal, and a text that was made of a JSON value; or of a number, which does not know the connection's
            // collation.
            Some((kept, Coercibility::Coercible)) => {
                let yields = kept == Collation::default();
                let is_other = !kept.is_exact() && (yields || collation.is_exact());
                let chosen = if is_other { collation } else { kept };
                (chosen, Coercibility::Coercible)
            }
            // Among columns, MySQL lets the binary collation of the same character set win.
            Some((kept, Coercibility::Implicit | Coercibility::OfServer))
                if kept.is_exact() != collation.is_exact() =>
            {
                let exact = if kept.is_exact() { kept } else { collation };
                (exact, coercibility)
            }
            Some((kept, Coercibility::Implicit | Coercibility::OfServer | Coercibility::Mixed)) => {
                (kept.by_code_points(), Coercibility::Mixed)
            }
            Some(_) => return Err(illegal_mix(operands, operation)),
        });
    }
    match clashes {
        true => Err(illegal_mix(operands, operation)),
        false => Ok(winner.unwrap_or_default()),
    }
}

/// True for `utf8mb4_bin` and `utf8mb4_0900_bin`, which differ in what trailing spaces count.
fn are_binary_of_characters(one: Collation, other: Collation) -> bool {
    one.is_exact() && other.is_exact() && ![one, other].contains(&Collation::Binary)
}

fn is_of_other_set(one: Collation, other: Collation) -> bool {
    let is_of_set = |collation| matches!(collation, Collation::OfSet(_));
    (is_of_set(one) || is_of_set(other))
        && ![one, other].contains(&Collation::Binary)
        && one.character_set() != other.character_set()
}

/// The collation of two texts of different character sets: that of Unicode if it is not the weaker one, as it has all
/// characters of the other, and else the stronger one's, if the other is a literal. Of two of Unicode the first that
/// [takes the other](Collation::takes_unicode). `None`: there is none.
fn of_two_sets(
    one: (Collation, Coercibility),
    other: (Collation, Coercibility),
) -> Option<(Collation, Coercibility)> {
    let has_all_of = |left: (Collation, Coercibility), right: (Collation, Coercibility)| {
        let has_more = !right.0.is_of_unicode() || left.0.takes_unicode();
        let is_part = right.0.character_set() == "ascii" && left.1 <= right.1;
        is_part || left.0.is_of_unicode() && (left.1 < right.1 || left.1 == right.1 && has_more)
    };
    // A text that does not know the connection's collation, such as one of a function.
    let is_unsaid =
        |text: (Collation, Coercibility)| text == (Collation::default(), Coercibility::Coercible);
    let is_literal_of_part = |text: (Collation, Coercibility)| {
        text.1 == Coercibility::Coercible && text.0.character_set() == "utf8mb3"
    };
    if is_unsaid(one) && is_literal_of_part(other) {
        return Some(other);
    }
    if is_unsaid(other) && is_literal_of_part(one) {
        return Some(one);
    }
    let is_weak = |strength| matches!(strength, Coercibility::Coercible | Coercibility::OfServer);
    if has_all_of(one, other) {
        return Some(one);
    }
    if has_all_of(other, one) {
        return Some(other);
    }
    match one.1.cmp(&other.1) {
        Ordering::Less if is_weak(other.1) => Some(one),
        Ordering::Greater if is_weak(one.1) => Some(other),
        _ => None,
    }
}

/// Looks at a literal that is converted to the character set of a text beside it.
///
/// # Errors
/// 3854 for one with characters that this does not have.
pub fn check_literal(text: &str, ty: &SqlType, to: Collation) -> Result<()> {
    let Some(foreign) = to.first_foreign(text) else {
        return Ok(());
    };
    let from = ty.collation().unwrap_or_default();
    if !is_of_other_set(from, to) {
        return Ok(());
    }
    let bytes = from
        .encoding()
        .encode(&text.as_bytes()[foreign..])
        .into_owned();
    let (from, to) = (from.character_set(), to.character_set());
    Err(EvaluationError::not_convertible(&bytes, from, to).into())
}

/// `None` for what is no text of characters.
pub fn collation_of(operand: &SqlType) -> Option<(Collation, Coercibility)> {
    match operand {
        SqlType::Text {
            collation,
            coercibility,
        } => Some((*collation, *coercibility)),
        SqlType::Enum { collation } => Some((*collation, Coercibility::Implicit)),
        // The text of a JSON value.
        SqlType::Json => Some((Collation::Utf8mb4_bin, Coercibility::Implicit)),
        _ => None,
    }
}

/// 1267, 1270 and 1271: by how many operands there are. The last one does not list them.
fn illegal_mix(operands: &[SqlType], operation: &str) -> DataFusionError {
    let of = |operand: &SqlType| match collation_of(operand) {
        None => format!("({},NUMERIC)", Collation::default().name()),
        Some((collation, coercibility)) => {
            let level = match coercibility {
                Coercibility::Explicit => "EXPLICIT",
                Coercibility::Mixed => "NONE",
                Coercibility::Implicit | Coercibility::OfServer => "IMPLICIT",
                Coercibility::Coercible => "COERCIBLE",
            };
            format!("({},{level})", collation.name())
        }
    };
    let (code, shown) = match operands {
        [one] => (
            codes::CANT_AGGREGATE_2COLLATIONS,
            format!(" {} and {}", of(one), of(one)),
        ),
        [one, other] => (
            codes::CANT_AGGREGATE_2COLLATIONS,
            format!(" {} and {}", of(one), of(other)),
        ),
        [one, other, third] => (
            codes::CANT_AGGREGATE_3COLLATIONS,
            format!(" {}, {}, {}", of(one), of(other), of(third)),
        ),
        _ => (codes::CANT_AGGREGATE_NCOLLATIONS, String::new()),
    };
    let message = format!("Illegal mix of collations{shown} for operation '{operation}'");
    EvaluationError::new(code, message).into()
}

/// The collation by which a pattern is matched: bytes as bytes, unless there is a COLLATE clause, and everything else
/// by the operands' collation.
pub fn matching_collation(left: &Field, right: &Field, operation: &str) -> Result<Collation> {
    let types = [SqlType::of(left), SqlType::of(right)];
    if (is_bytes(left) || is_bytes(right)) && !types.iter().any(is_explicit) {
        return Ok(Collation::Binary);
    }
    Ok(common_collation(&types, operation)?.0)
}

/// Whether functions of strings take a value byte by byte: a byte string, or a BIT.
pub fn is_bytes(field: &Field) -> bool {
    SqlType::of(field) == SqlType::Bytes || bit_length(field).is_some()
}

/// Whether a string function of these arguments counts bytes. A literal of bytes is a text beside texts that are no
/// literals: their collation is stronger than the literal's, which is that of bytes. Beside a COLLATE clause all bytes
/// are texts.
pub fn takes_bytes(arguments: &[FieldRef]) -> bool {
    let Some(strength) = text_strength(arguments) else {
        return arguments.iter().any(|field| is_bytes(field));
    };
    let is_text = |field| strength == Coercibility::Explicit || is_literal_of_bytes(field);
    arguments
        .iter()
        .any(|field| is_bytes(field) && !is_text(field))
}

/// Whether bytes are a text beside these arguments, by the rule of [`takes_bytes`].
pub fn are_text_beside(bytes: &FieldRef, arguments: &[FieldRef]) -> bool {
    text_strength(arguments)
        .is_some_and(|strength| strength == Coercibility::Explicit || is_literal_of_bytes(bytes))
}

/// Looks at bytes that stand for texts.
///
/// # Errors
/// 3854 for bytes that are no UTF-8.
pub(super) fn refuse_what_is_no_text(array: &ArrayRef) -> Result<()> {
    let invalid = |bytes: &&[u8]| std::str::from_utf8(bytes).is_err();
    let found = match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().flatten().find(invalid),
        DataType::BinaryView => array.as_binary_view().iter().flatten().find(invalid),
        _ => None,
    };
    found.map_or(Ok(()), |bytes| {
        Err(EvaluationError::not_convertible(bytes, "binary", "utf8mb4").into())
    })
}

/// Bytes that stand for texts, read in the character set that the texts beside them have. `None` if that is UTF-8, and
/// for other values.
///
/// # Errors
/// 3854 for bytes that are no text there.
pub(super) fn texts_of_set(
    array: &ArrayRef,
    arguments: &[FieldRef],
) -> Result<Option<StringViewArray>> {
    let types: Vec<SqlType> = arguments
        .iter()
        .map(|argument| SqlType::of(argument))
        .collect();
    let Ok((collation, _)) = result_collation(&types, "function") else {
        return Ok(None);
    };
    let encoding = collation.encoding();
    if encoding == TextEncoding::Utf8 {
        return Ok(None);
    }
    let text = |bytes: Option<&[u8]>| {
        let decoded = bytes.map(|bytes| {
            let set = collation.character_set();
            let refused = || EvaluationError::not_convertible(bytes, "binary", set);
            encoding.decode(bytes).ok_or_else(refused)
        });
        decoded.transpose()
    };
    let texts: std::result::Result<StringViewArray, EvaluationError> = match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().map(text).collect(),
        DataType::BinaryView => array.as_binary_view().iter().map(text).collect(),
        _ => return Ok(None),
    };
    Ok(Some(texts?))
}

/// How strong the strongest text among arguments is; `None` where there are none but literals.
fn text_strength(arguments: &[FieldRef]) -> Option<Coercibility> {
    let of = |field: &FieldRef| match SqlType::of(field) {
        SqlType::Text { coercibility, .. } => {
            (coercibility < Coercibility::Coercible).then_some(coercibility)
        }
        other => other.is_text().then_some(Coercibility::Implicit),
    };
    arguments.iter().filter_map(of).min()
}

/// Whether a text has a COLLATE clause, which is stronger than all others and than bytes.
pub fn is_explicit(ty: &SqlType) -> bool {
    matches!(
        ty,
        SqlType::Text {
            coercibility: Coercibility::Explicit,
            ..
        }
    )
}

/// Whether bytes are a literal, or made of literals alone.
pub fn is_literal_of_bytes(field: &FieldRef) -> bool {
    let metadata = field.metadata();
    let mut keys = LITERALS_OF_BYTES.iter();
    keys.any(|key| metadata.contains_key(*key))
}

/// The field of a byte string computed from `arguments`. What is made of literals alone gives way as they do.
pub fn bytes_field(arguments: &[FieldRef]) -> Field {
    let is_literal = |field: &FieldRef| match SqlType::of(field) {
        SqlType::Text { coercibility, .. } => coercibility == Coercibility::Coercible,
        SqlType::Enum { .. } => false,
        SqlType::Bytes => is_literal_of_bytes(field),
        // Numbers and dates say nothing, but the bytes of a BIT do.
        _ => bit_length(field).is_none(),
    };
    match arguments.iter().all(is_literal) {
        true => field::literal_bytes(),
        false => field::bytes(),
    }
}

/// The field of a string computed from `arguments`: its collation is theirs.
pub fn text_field(arguments: &[FieldRef], operation: &str) -> Result<Field> {
    let types: Vec<SqlType> = arguments
        .iter()
        .map(|argument| SqlType::of(argument))
        .collect();
    let (collation, coercibility) = result_collation(&types, operation)?;
    Ok(field::collated_text(collation, coercibility))
}
