//! CAST and CONVERT: to a type, and to a character set.

use datafusion_common::ScalarValue;
use sheaf_access::arrow_field;
use sheaf_algebra::Scalar;
use sheaf_exec::functions::SqlType;
use sheaf_exec::functions::collation::FILLS_BYTES;
use sheaf_exec::functions::types::{Coercibility, collation_of, declared_type};
use sheaf_table::Column;
use sheaf_types::Collation;
use sheaf_types::ColumnType;
use sheaf_types::column_type::{MAX_DECIMAL_SCALE, MAX_FRACTION_DIGITS};
use sheaf_types::error::codes;
use sheaf_types::number::FloatDigits;
use sqlparser::ast::{CharacterLength, DataType, ExactNumberInfo, Expr, Value as Literal};

use crate::bind::character_set::{
    BINARY, is_of_connection, known as known_character_set, other_character_set, said_character_set,
};
use crate::bind::session::session_function;
use crate::bind::told::is_system_constant;
use crate::bind::{Binder, Bound, unsupported};
use crate::character_sets::{character_set_of, collation, has_other_bytes};
use crate::column_default::type_of_label;
use crate::dialect::OF_ITS_SET;
use crate::encoding::TextEncoding;
use crate::error::SqlError;
use crate::syntax::{bare, null, number_digits, object_text};

impl Binder<'_> {
    /// A value, and a length: the value as a text that compares as the connection says, whatever it was before. Bytes
    /// are of the connection's character set.
    pub(super) fn cast_char(&self, mut arguments: Vec<Scalar>) -> Bound<Scalar> {
        if let Some(value) = arguments.first_mut()
            && value.sql_type() == SqlType::Bytes
            && let Some(set) = self.connection_text("character_set_connection")
            && has_other_bytes(&set)
        {
            let bytes = std::mem::replace(value, Scalar::literal(ScalarValue::Null));
            *value = self.call("$using", vec![bytes, self.text(&set)?])?;
        }
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

    /// The value of an operand whose bytes are asked for: if that is converted to another character set, or written in
    /// one, its bytes in that.
    pub(in crate::bind) fn in_its_character_set(
        &self,
        value: Scalar,
        operand: &Expr,
    ) -> Bound<Scalar> {
        match self.other_character_set(&value, operand) {
            Some(name) => self.call("$encoded", vec![value, self.text(name)?]),
            None => Ok(value),
        }
    }

    /// ORD of a text in a character set of several bytes a character: those of its first character as a number.
    pub(in crate::bind) fn code_in_its_character_set(
        &self,
        value: &Scalar,
        operand: &Expr,
    ) -> Bound<Option<Scalar>> {
        let set = self.other_character_set(value, operand);
        let is_wide = |set: &str| TextEncoding::of_character_set(set).character_bytes() > 1;
        let Some(set) = set.filter(|set| is_wide(set)) else {
            return Ok(None);
        };
        let first = self.call("left", vec![value.clone(), self.integer(1)])?;
        let bytes = self.call("$encoded", vec![first, self.text(set)?])?;
        self.call("$number_of_bytes", vec![bytes]).map(Some)
    }

    /// The character set that an operand is converted to or is written in, if that has other bytes than UTF-8. A string
    /// without an introducer, and a parameter that is one, are of the connection's.
    fn other_character_set(&self, value: &Scalar, operand: &Expr) -> Option<&'static str> {
        // A type knows the set, but for few.
        if let Some(collation @ Collation::OfSet(_)) = value.sql_type().collation() {
            return Some(collation.character_set()).filter(|set| has_other_bytes(set));
        }
        // A text of a function that is not made of texts, such as HEX, is of the connection's character set.
        let is_unsaid = is_unsaid(&value.sql_type()) && !is_system_constant(bare(operand));
        let is_parameter = match bare(operand) {
            Expr::Value(literal) if matches!(literal.value, Literal::Placeholder(_)) => {
                matches!(value.sql_type(), SqlType::Text { .. })
            }
            _ => false,
        };
        let is_unsaid = is_unsaid && said_character_set(operand).is_none();
        match is_parameter || is_of_connection(bare(operand)) || is_unsaid {
            true => {
                let name = known_character_set(&self.connection_text("character_set_connection")?);
                name.ok().filter(|name| has_other_bytes(name))
            }
            false => other_character_set(operand),
        }
    }

    /// A variable of the session about its texts.
    pub(in crate::bind) fn connection_text(&self, variable: &str) -> Option<String> {
        let value = self.context.session.system_variable(false, variable)?;
        Some(value.to_string())
    }

    /// The collation that COLLATE names for this value.
    ///
    /// # Errors
    /// 1253 for what is known to be of another character set, or bytes; 1273.
    pub(super) fn named_in_collate(
        &self,
        (operand, value): (&Expr, &Scalar),
        name: &str,
    ) -> Bound<String> {
        let mismatch = |own: &str| Err(SqlError::collation_of_other_character_set(name, own));
        if name == OF_ITS_SET {
            let own = value
                .sql_type()
                .collation()
                .unwrap_or_else(|| self.collation());
            return Ok(own.by_code_points().name().to_string());
        }
        let Ok((_, known)) = collation(name) else {
            return Ok(name.to_string());
        };
        let set = character_set_of(known);
        if let Some(said) = said_character_set(operand).filter(|said| *said != set) {
            return mismatch(said);
        }
        // A parameter that comes as bytes is written as such digits.
        let is_digits = matches!(
            bare(operand),
            Expr::Value(value) if matches!(value.value, Literal::HexStringLiteral(_))
        );
        if value.sql_type() == SqlType::Bytes && set != BINARY && !is_digits {
            return mismatch(BINARY);
        }
        if let (SqlType::Text { collation, .. }, BINARY) = (value.sql_type(), set) {
            return mismatch(collation.character_set());
        }
        match value.sql_type() {
            // Texts of few character sets are those of utf8mb4.
            _ if Collation::default_of_set(set).is_none() => {}
            // It is of the connection's character set, or of the server's own.
            ty if is_unsaid(&ty) => {
                let is_own = matches!(set, "utf8mb4" | "utf8mb3");
                let own = self.connection_text("character_set_connection");
                if let Some(own) = own.filter(|own| own != set)
                    && !is_own
                    && said_character_set(operand).is_none()
                {
                    return mismatch(&own);
                }
            }
            // Texts of the server's own are of utf8mb3 in MySQL, names among them.
            SqlType::Text {
                coercibility: Coercibility::OfServer,
                ..
            }
            | SqlType::Text {
                collation: Collation::Utf8mb4_bin,
                coercibility: Coercibility::Implicit,
            } if set == "utf8mb3" => {}
            SqlType::Text { collation, .. } if collation.character_set() != set => {
                return mismatch(collation.character_set());
            }
            SqlType::Enum { collation } if collation.character_set() != set => {
                return mismatch(collation.character_set());
            }
            _ => {}
        }
        if !has_other_bytes(set) {
            return Ok(known.to_string());
        }
        let own = match (other_character_set(operand), bare(operand)) {
            (Some(own), _) => Some(own.to_string()),
            (None, Expr::Value(_)) => self.connection_text("character_set_connection"),
            (None, _) => None,
        };
        match own.filter(|own| own != set) {
            Some(own) => mismatch(&own),
            None => Ok(Collation::nearest(known).name().to_string()),
        }
    }

    /// `CAST(x AT TIME ZONE '+00:00' AS DATETIME)`: a column of type TIMESTAMP, or a literal of it, in UTC. MySQL has
    /// no other zone here.
    ///
    /// # Errors
    /// 1064 for other types; 1298 for other zones; 3998 for other values.
    pub(super) fn cast_at_time_zone(
        &mut self,
        moment: &Expr,
        data_type: &DataType,
    ) -> Bound<Scalar> {
        const UTC: &str = "+00:00";
        let Expr::AtTimeZone {
            timestamp,
            time_zone,
        } = moment
        else {
            return unsupported(moment.to_string());
        };
        if !matches!(data_type, DataType::Datetime(_)) {
            return Err(SqlError::parse_error(&data_type.to_string(), 1));
        }
        let zone = match bare(time_zone) {
            Expr::Value(literal) => match &literal.value {
                Literal::SingleQuotedString(zone) | Literal::DoubleQuotedString(zone) => zone,
                _ => return Err(SqlError::parse_error(&time_zone.to_string(), 1)),
            },
            _ => return Err(SqlError::parse_error(&time_zone.to_string(), 1)),
        };
        if zone != UTC && !zone.eq_ignore_ascii_case("UTC") {
            return Err(SqlError::new(
                codes::UNKNOWN_TIME_ZONE,
                format!("Unknown or incorrect time zone: '{zone}'"),
            ));
        }
        let value = self.value(timestamp)?;
        let is_literal = matches!(
            bare(timestamp),
            Expr::TypedString(typed) if matches!(typed.data_type, DataType::Timestamp(..))
        );
        let is_column = value.as_column().is_some()
            && declared_type(value.field()).is_some_and(|ty| ty.follows_time_zone());
        if value.sql_type() == SqlType::Null {
            return Ok(value);
        }
        if !is_literal && !is_column {
            return Err(SqlError::new(
                codes::INVALID_CAST,
                "Cannot cast value to TIMESTAMP WITH TIME ZONE.".to_string(),
            ));
        }
        let own = self.connection_text("time_zone").unwrap_or_default();
        let arguments = vec![value, self.text(&own)?, self.text(UTC)?];
        let moved = self.call("convert_tz", arguments)?;
        self.cast(moved, data_type)
    }

    /// WEIGHT_STRING: of a text by its collation, of bytes as they are; NULL of numbers, as in MariaDB. `length` is a
    /// cast of NULL to so many characters or bytes.
    pub(in crate::bind) fn weight_string(
        &mut self,
        operand: &Expr,
        length: Option<&Expr>,
    ) -> Bound<Scalar> {
        let length = match length {
            Some(Expr::Cast { data_type, .. }) => match data_type {
                DataType::Binary(_) => {
                    let value = self.value(operand)?;
                    return self.cast(value, data_type);
                }
                DataType::Char(Some(CharacterLength::IntegerLength { length, .. })) => {
                    i64::try_from(*length).unwrap_or(i64::MAX)
                }
                _ => -1,
            },
            _ => -1,
        };
        self.weights(operand, [length, 0, 0])
    }

    /// The form of WEIGHT_STRING that MySQL's tests have: of so many `characters`, in so many `bytes`, with `flags`.
    pub(in crate::bind) fn weight_string_within(
        &mut self,
        operand: &Expr,
        numbers: [&Expr; 3],
    ) -> Bound<Scalar> {
        let [bytes, characters, flags] = numbers.map(|number| {
            let digits = number_digits(number).and_then(|digits| digits.parse().ok());
            digits.unwrap_or(i64::MAX)
        });
        let characters = match characters {
            0 => -1,
            characters => characters,
        };
        self.weights(operand, [characters, bytes, flags])
    }

    /// The weights of a text: of so many characters, -1 for all, in so many bytes, 0 for all, with flags.
    fn weights(&mut self, operand: &Expr, [length, bytes, flags]: [i64; 3]) -> Bound<Scalar> {
        let value = self.value(operand)?;
        let ty = value.sql_type();
        let is_number = ty.is_exact_number() || ty.is_float();
        match collation_of(&ty) {
            _ if is_number => self.internal(&null()),
            None | Some((Collation::Binary, _)) => {
                let value = self.call("$cast_binary", vec![value])?;
                let value = match bytes > 0 && length >= 0 {
                    true => self.call("left", vec![value, self.integer(length)])?,
                    false => value,
                };
                match u64::try_from(bytes) {
                    // Zeros behind it.
                    Ok(bytes) if bytes > 0 && flags & FILLS_BYTES != 0 => {
                        self.cast(value, &DataType::Binary(Some(bytes)))
                    }
                    _ if bytes > 0 => self.call("left", vec![value, self.integer(bytes)]),
                    _ => Ok(value),
                }
            }
            Some(_)
                if self
                    .other_character_set(&value, operand)
                    .is_some_and(|set| Collation::default_of_set(set).is_none()) =>
            {
                unsupported("WEIGHT_STRING of texts of this character set")
            }
            Some((collation, _)) if collation.has_levels() => {
                unsupported(format!("WEIGHT_STRING by {}", collation.name()))
            }
            Some((collation, _)) => {
                let mut arguments = vec![value, self.text(collation.name())?];
                arguments.extend([length, bytes, flags].map(|number| self.integer(number)));
                self.call("$weight_string", arguments)
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
        let ty = ColumnType::double(Some(digits));
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

/// Whether a text has no collation of its own, and compares as the connection says.
fn is_unsaid(ty: &SqlType) -> bool {
    matches!(
        ty,
        SqlType::Text {
            collation,
            coercibility: Coercibility::Coercible,
        } if *collation == Collation::default()
    )
}
