//! How long what functions make can be: what their rows say ([`Length`]), or a rule of their own.

use arrow::datatypes::DataType;
use datafusion_expr::ScalarUDF;
use sheaf_algebra::Scalar;
use sheaf_algebra::scalar::ScalarKind;
use sheaf_exec::functions::arithmetic::DIV_PRECISION_INCREMENT;
use sheaf_exec::functions::{Length, as_function};

use super::{DIGITS_OF_SUM, Extent, Extents, constant, is_bytes, is_string, of_length};
use crate::encoding::TextEncoding;
use crate::query::format_length::{
    length_of_format, length_of_number_format, length_of_unknown_format,
};

/// Characters of the longest hash (SHA-512), in hexadecimal digits.
const LONGEST_HASH: u32 = 128;
/// The longest point in time, as a text.
const LONGEST_MOMENT: u32 = 29;
/// Seconds of the last moment that UNIX_TIMESTAMP knows.
const DIGITS_OF_UNIX_TIME: u32 = 11;
/// Bytes of a block of AES.
const AES_BLOCK: u32 = 16;
/// Characters between two line ends of base 64.
const BASE64_LINE: u32 = 76;
/// Characters of a DOUBLE that FORMAT is asked for.
const LONGEST_FORMATTED: u32 = 22;
/// Bytes that CHAR makes of a number.
const BYTES_OF_CODE: u32 = 4;
/// Bits that EXPORT_SET shows.
const BITS_OF_SET: u32 = 64;

impl Extents<'_> {
    /// A function whose result is a text, or a byte string.
    pub(super) fn of_text_function(
        &self,
        (function, args): (&ScalarUDF, &[Scalar]),
        ty: &DataType,
    ) -> Option<Extent> {
        let as_bytes = is_bytes(ty);
        let argument = |position: usize| self.part(args.get(position)?, as_bytes);
        let number = |position: usize| constant(args.get(position)?);
        let told = match as_function(function).map_or(Length::Own, |row| row.length) {
            Length::Own | Length::Int => None,
            Length::Fixed(length) => Some(length),
            Length::OfOperand(operand) => Some(argument(operand)?),
            Length::OfLongest(first) => Some(self.longest(args.get(first..)?.iter(), as_bytes)?),
            Length::OfAll => Some(self.sum(args, as_bytes)?),
            Length::CutTo(operand) => Some(least(argument(0), number(operand))?),
            Length::FilledTo(operand) => Some(number(operand)?),
            Length::Repeated(operand) => Some(argument(0)?.checked_mul(number(operand)?)?),
            Length::Part => {
                let skipped = number(1).unwrap_or(0).saturating_sub(1);
                let rest = argument(0).map(|length| length.saturating_sub(skipped));
                Some(least(rest, number(2))?)
            }
        };
        let length = match told {
            Some(length) => length,
            None => self.own_length((function.name(), args), as_bytes)?,
        };
        Some(of_length(length, ty))
    }

    /// The length of texts and byte strings that a function makes by a rule of its own.
    fn own_length(&self, (name, args): (&str, &[Scalar]), as_bytes: bool) -> Option<u32> {
        let argument = |position: usize| self.part(args.get(position)?, as_bytes);
        let number = |position: usize| constant(args.get(position)?);
        Some(match name {
            "concat_ws" => {
                let (_, values) = args.split_first()?;
                let separators = u32::try_from(values.len().saturating_sub(1)).ok()?;
                let between = argument(0)?.checked_mul(separators)?;
                self.sum(values, as_bytes)?.checked_add(between)?
            }
            "coalesce" | "$coalesce" | "greatest" | "least" | "$greatest" | "$least" => {
                self.longest(args.iter(), as_bytes)?
            }
            "nullif" | "$collate" | "$collated" | "$typed" | "$result" | "$only_row"
            | "$counted_rows" | "$one_row" | "$using" | "$moved_date" => argument(0)?,
            "$encoded" => {
                let name = literal_text(args.get(1)?)?;
                let encoding = TextEncoding::of_character_set(name);
                let characters = self.part(args.first()?, false)?;
                characters.checked_mul(encoding.character_bytes())?
            }
            "replace" => {
                // Each character may be one that is replaced.
                let (from, to) = (literal_length(args.get(1)?)?, argument(2)?);
                argument(0)?.checked_mul(to.div_ceil(from.max(1)).max(1))?
            }
            "insert" => argument(0)?.checked_add(argument(3)?)?,
            "quote" => argument(0)?.checked_mul(2)?.checked_add(2)?,
            "$cast_char" | "$cast_binary" if args.len() > 1 => number(1)?,
            "$cast_char" | "$text_of_bytes" | "$cast_binary" | "$short_double" => argument(0)?,
            "hex" => match is_string(args.first()?.field().data_type()) {
                true => self.part(args.first()?, true)?.checked_mul(2)?,
                // A BIGINT.
                false => 16,
            },
            // Padded to whole blocks.
            "$aes_encrypt" => {
                (self.part(args.get(1)?, true)? / AES_BLOCK + 1).checked_mul(AES_BLOCK)?
            }
            "$aes_decrypt" => self.of(args.get(1)?)?.shown(),
            "unhex" => self.part(args.first()?, true)?.div_ceil(2),
            "soundex" => argument(0)?.max(4),
            "format" => {
                let number = args.first()?;
                length_of_number_format(match number.field().data_type() {
                    DataType::Float64 => LONGEST_FORMATTED,
                    _ => self.of(number)?.shown(),
                })
            }
            "date_format" | "time_format" => match literal_text(args.get(1)?) {
                Some(format) => length_of_format(format)?,
                None => length_of_unknown_format(argument(1)?)?,
            },
            "$json_value_text" => returned_length(args.first()?)?,
            "char" => u32::try_from(args.len()).ok()?.checked_mul(BYTES_OF_CODE)?,
            "make_set" => {
                let texts = args.get(1..)?;
                let separators = u32::try_from(texts.len().saturating_sub(1)).ok()?;
                self.sum(texts, as_bytes)?.checked_add(separators)?
            }
            "export_set" => {
                let each = self.longest(args.get(1..3)?.iter(), as_bytes)?;
                let separator = if args.len() > 3 { argument(3)? } else { 1 };
                let separators = separator.checked_mul(BITS_OF_SET - 1)?;
                each.checked_mul(BITS_OF_SET)?.checked_add(separators)?
            }
            "$date_add" | "$date_subtract" => LONGEST_MOMENT,
            "to_base64" => {
                let digits = self.part(args.first()?, true)?.div_ceil(3).checked_mul(4)?;
                digits + digits.saturating_sub(1) / BASE64_LINE
            }
            "json_quote" => argument(0)?.checked_mul(6)?.checked_add(2)?,
            "sha2" => number(1).map_or(LONGEST_HASH, |bits| match bits {
                0 => 64,
                bits => (bits / 4).min(LONGEST_HASH),
            }),
            _ => return None,
        })
    }

    /// A function whose result is no text.
    pub(super) fn of_number_function(
        &self,
        (function, args): (&ScalarUDF, &[Scalar]),
        ty: &DataType,
    ) -> Option<Extent> {
        let argument = |position: usize| self.of(args.get(position)?);
        match as_function(function).map_or(Length::Own, |row| row.length) {
            Length::Int => return Some(Extent::int()),
            Length::OfOperand(operand) => return argument(operand),
            _ => {}
        }
        let digits = |position: usize| argument(position)?.digits();
        let whole = |position: usize| digits(position).map(|(precision, scale)| precision - scale);
        // Digits behind the point that a division adds.
        let increment = || {
            args.get(2)
                .and_then(constant)
                .unwrap_or(u32::from(DIV_PRECISION_INCREMENT))
        };
        Some(match function.name() {
            "$extract" => extent_of_unit(literal_text(args.first()?)?),
            "coalesce" | "$coalesce" | "$greatest" | "$least" => self.one_of(args.iter(), ty)?,
            "$result" | "$typed" | "$only_row" | "$counted_rows" | "$one_row" | "$divisor"
            | "$moved_date" | "$logarithm_of" | "$rounded_double" => argument(0)?,
            "$negate" => {
                let (precision, scale) = digits(0)?;
                Extent::exact(precision - scale, scale)
            }
            "$add" | "$subtract" | "$signed_subtract" => {
                let ((one, scale), (other, other_scale)) = (digits(0)?, digits(1)?);
                let whole = (one - scale).max(other - other_scale);
                Extent::exact(whole.saturating_add(1), scale.max(other_scale))
            }
            "$multiply" => {
                let ((one, scale), (other, other_scale)) = (digits(0)?, digits(1)?);
                let scale = scale.saturating_add(other_scale);
                Extent::exact(one.saturating_add(other).saturating_sub(scale), scale)
            }
            "$divide" => argument(0)?.divided_by(argument(1)?, increment())?,
            "$average" => {
                let (sum, scale) = digits(0)?;
                Extent::Decimal {
                    precision: sum.checked_sub(DIGITS_OF_SUM)? + increment(),
                    scale: scale.saturating_add(increment()),
                }
            }
            "$integer_divide" => Extent::of_digits(whole(0)?),
            "$unix_timestamp" => {
                let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = ty else {
                    return None;
                };
                let scale = u32::try_from(*scale).ok()?;
                Extent::Decimal {
                    precision: DIGITS_OF_UNIX_TIME.saturating_add(scale),
                    scale,
                }
            }
            // It is less than the divisor, and no longer than the dividend.
            "mod" => {
                let ((one, scale), (other, other_scale)) = (digits(0)?, digits(1)?);
                let scale = scale.max(other_scale);
                Extent::exact(one.max(other).checked_sub(scale)?, scale)
            }
            // Rounding may carry.
            "round" if is_decimal(ty) && args.len() == 2 => {
                let (scale, wanted) = (digits(0)?.1, constant(&args[1])?);
                let carried = u32::from(wanted < scale);
                Extent::exact(whole(0)?.saturating_add(carried), wanted.min(scale))
            }
            "truncate" if is_decimal(ty) => {
                Extent::exact(whole(0)?, constant(args.get(1)?)?.min(digits(0)?.1))
            }
            _ => return None,
        })
    }
}

/// The characters that JSON_VALUE returns.
fn returned_length(returned: &Scalar) -> Option<u32> {
    /// The argument of `$json_returned` that says it.
    const LENGTH: usize = 3;
    match returned.kind() {
        ScalarKind::Call {
            function,
            arguments,
        } if function.name() == "$json_returned" => constant(arguments.get(LENGTH)?),
        _ => None,
    }
}

fn literal_text(value: &Scalar) -> Option<&str> {
    value.as_literal()?.try_as_str()?
}

/// What EXTRACT takes of a date or time: from minutes to microseconds it is more than an INT.
fn extent_of_unit(unit: &str) -> Extent {
    match unit.to_ascii_lowercase().as_str() {
        "day_microsecond" => Extent::of_digits(14),
        "hour_microsecond" => Extent::of_digits(13),
        "minute_microsecond" => Extent::of_digits(10),
        _ => Extent::int(),
    }
}

fn literal_length(value: &Scalar) -> Option<u32> {
    u32::try_from(literal_text(value)?.chars().count()).ok()
}

fn least(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (known, None) | (None, known) => known,
    }
}

fn is_decimal(ty: &DataType) -> bool {
    matches!(ty, DataType::Decimal128(..) | DataType::Decimal256(..))
}
