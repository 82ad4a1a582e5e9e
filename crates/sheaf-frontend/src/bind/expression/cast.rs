//! CAST and CONVERT: to a type, and to a character set.

use datafusion_common::ScalarValue;
use sheaf_access::arrow_field;
use sheaf_algebra::Scalar;
use sheaf_table::Column;
use sheaf_types::ColumnType;
use sheaf_types::column_type::{MAX_DECIMAL_SCALE, MAX_FRACTION_DIGITS, Sign};
use sheaf_types::number::FloatDigits;
use sqlparser::ast::{CharacterLength, DataType, ExactNumberInfo};

use crate::bind::character_set::{BINARY, known as known_character_set};
use crate::bind::session::session_function;
use crate::bind::{Binder, Bound, unsupported};
use crate::column_default::type_of_label;
use crate::error::SqlError;
use crate::syntax::object_text;

impl Binder<'_> {
    /// A value, and a length: the value as a text that compares as the connection says, whatever it was before.
    pub(super) fn cast_char(&self, arguments: Vec<Scalar>) -> Bound<Scalar> {
        let text = self.call("$cast_char", arguments)?;
        let collation = self.text(self.collation().name())?;
        self.call("$collated", vec![text, collation])
    }

    /// `CONVERT(value USING name)`.
    /// `gives_way`: it is a literal, or made of numbers, and gives way to texts that are columns.
    pub(in crate::bind) fn using(
        &self,
        value: Scalar,
        name: &str,
        gives_way: bool,
    ) -> Bound<Scalar> {
        match known_character_set(name)? {
            BINARY => self.call("$cast_binary", vec![value]),
            name => {
                let mut arguments = vec![value, self.text(name)?];
                if gives_way {
                    arguments.push(self.integer(1));
                }
                self.call("$using", arguments)
            }
        }
    }

    /// The day on which a time is that is made a point in time.
    fn today(&self) -> Bound<Scalar> {
        match session_function(self.context.session, "curdate", None) {
            Some(today) => self.internal(&today),
            None => Ok(Scalar::literal(ScalarValue::Null)),
        }
    }

    /// A DOUBLE(M,D), which is a type of casts in MariaDB: the nearest number of so many digits.
    fn in_digits(&self, double: Scalar, precision: u64, scale: i64) -> Bound<Scalar> {
        let rounded = self.call("round", vec![double, self.integer(scale)])?;
        let digits = u8::try_from(precision).ok().zip(u8::try_from(scale).ok());
        let Some(digits) = digits.and_then(|(all, scale)| FloatDigits::new(all, scale)) else {
            return Ok(rounded);
        };
        let limit = |number| Scalar::literal(ScalarValue::Float64(Some(number)));
        let value = self.call("least", vec![rounded, limit(digits.greatest())])?;
        let value = self.call("greatest", vec![value, limit(-digits.greatest())])?;
        let ty = ColumnType::Double {
            digits: Some(digits),
            sign: Sign::Signed,
        };
        let field = arrow_field(&Column::new("", ty, true));
        Ok(self.typing().column_of(value, &field)?)
    }

    /// CAST(value AS type).
    pub(in crate::bind) fn cast(&self, value: Scalar, data_type: &DataType) -> Bound<Scalar> {
        if let Some(ty) = type_of_label(data_type) {
            let field = arrow_field(&Column::new("", ty, true));
            return Ok(self.typing().column_of(value, &field)?);
        }
        check_digits(data_type)?;
        let digits = |digits: &Option<u64>| self.integer(digits.unwrap_or(0) as i64);
        let length = |length: &Option<CharacterLength>| match length {
            Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
            _ => None,
        };
        let with_length = |value: Scalar, length: Option<u64>| {
            let length = length.map(|length| self.integer(length as i64));
            std::iter::once(value).chain(length).collect::<Vec<_>>()
        };
        match data_type {
            DataType::Signed
            | DataType::SignedInteger
            | DataType::BigInt(_)
            | DataType::Int(_)
            | DataType::Integer(_) => self.call("$cast_signed", vec![value]),
            DataType::Unsigned
            | DataType::UnsignedInteger
            | DataType::BigIntUnsigned(_)
            | DataType::IntUnsigned(_)
            | DataType::IntegerUnsigned(_) => self.call("$cast_unsigned", vec![value]),
            DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => {
                let (precision, scale) = match info {
                    ExactNumberInfo::None => (10, 0),
                    ExactNumberInfo::Precision(precision) => (*precision as i64, 0),
                    ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                        (*precision as i64, *scale)
                    }
                };
                let arguments = vec![value, self.integer(precision), self.integer(scale)];
                self.call("$cast_decimal", arguments)
            }
            DataType::JSON => self.call("$cast_json", vec![value]),
            DataType::Double(ExactNumberInfo::PrecisionAndScale(digits, scale)) => {
                let double = self.call("$cast_double", vec![value])?;
                self.in_digits(double, *digits, *scale)
            }
            DataType::Double(_)
            | DataType::DoublePrecision
            | DataType::Real
            | DataType::Float64 => self.call("$cast_double", vec![value]),
            DataType::Float(_) => self.call("$cast_float", vec![value]),
            DataType::Char(characters)
            | DataType::Character(characters)
            | DataType::Varchar(characters)
            | DataType::Nvarchar(characters)
            | DataType::CharVarying(characters)
            | DataType::CharacterVarying(characters) => {
                self.cast_char(with_length(value, length(characters)))
            }
            DataType::Text => self.cast_char(vec![value]),
            DataType::Binary(bytes) => self.call("$cast_binary", with_length(value, *bytes)),
            DataType::Date => {
                let today = self.today()?;
                self.call("$to_date", vec![value, today])
            }
            DataType::Datetime(fraction) | DataType::Timestamp(fraction, _) => {
                let arguments = vec![value, digits(fraction), self.today()?];
                self.call("$to_datetime", arguments)
            }
            DataType::Time(fraction, _) => self.call("$cast_time", vec![value, digits(fraction)]),
            DataType::Custom(name, _) if object_text(name).eq_ignore_ascii_case("year") => {
                self.call("$cast_year", vec![value])
            }
            other => unsupported(format!("CAST AS {other}")),
        }
    }
}

/// The most digits of a DECIMAL in MySQL.
const MAX_DECIMAL_DIGITS: u64 = 65;
/// The most bits of a FLOAT(p).
const MAX_FLOAT_BITS: u64 = 53;

/// The digits of a type are as many as it can have.
///
/// # Errors
/// 1426, 1425 for too many of them behind the point, and 1427 for more of them there than there are; 1064 for digits
/// that only columns can have.
fn check_digits(data_type: &DataType) -> Bound<()> {
    let most_scale = i64::from(MAX_DECIMAL_SCALE);
    let (digits, most) = match data_type {
        DataType::Datetime(Some(digits))
        | DataType::Timestamp(Some(digits), _)
        | DataType::Time(Some(digits), _) => (*digits, u64::from(MAX_FRACTION_DIGITS)),
        DataType::Double(ExactNumberInfo::Precision(_)) => {
            return Err(SqlError::parse_error(")", 1));
        }
        DataType::Float(ExactNumberInfo::PrecisionAndScale(..)) => {
            return Err(SqlError::parse_error(",", 1));
        }
        DataType::Decimal(info)
        | DataType::Numeric(info)
        | DataType::Dec(info)
        | DataType::Double(info) => match info {
            ExactNumberInfo::PrecisionAndScale(digits, scale)
                if u64::try_from(*scale).is_ok_and(|scale| scale > *digits) =>
            {
                return Err(SqlError::scale_bigger_than_precision(""));
            }
            ExactNumberInfo::PrecisionAndScale(digits, scale)
                if *digits <= MAX_DECIMAL_DIGITS && *scale > most_scale =>
            {
                let scale = scale.unsigned_abs();
                return Err(SqlError::too_big_scale(
                    scale,
                    "CAST",
                    most_scale.unsigned_abs(),
                ));
            }
            ExactNumberInfo::Precision(digits) | ExactNumberInfo::PrecisionAndScale(digits, _) => {
                (*digits, MAX_DECIMAL_DIGITS)
            }
            ExactNumberInfo::None => return Ok(()),
        },
        DataType::Float(ExactNumberInfo::Precision(bits)) => (*bits, MAX_FLOAT_BITS),
        _ => return Ok(()),
    };
    match digits > most {
        true => Err(SqlError::too_big_precision(digits, "CAST", most)),
        false => Ok(()),
    }
}
