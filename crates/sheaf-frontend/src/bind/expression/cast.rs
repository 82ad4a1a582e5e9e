//! CAST and CONVERT: to a type, and to a character set.

use datafusion_common::ScalarValue;
use sheaf_access::arrow_field;
use sheaf_algebra::Scalar;
use sheaf_table::Column;
use sheaf_types::column_type::MAX_FRACTION_DIGITS;
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
/// 1426, and 1427 for a DECIMAL that has more of them behind its point than it has.
fn check_digits(data_type: &DataType) -> Bound<()> {
    let (digits, most) = match data_type {
        DataType::Datetime(Some(digits))
        | DataType::Timestamp(Some(digits), _)
        | DataType::Time(Some(digits), _) => (*digits, u64::from(MAX_FRACTION_DIGITS)),
        DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => match info {
            ExactNumberInfo::PrecisionAndScale(digits, scale)
                if u64::try_from(*scale).is_ok_and(|scale| scale > *digits) =>
            {
                return Err(SqlError::scale_bigger_than_precision(""));
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
