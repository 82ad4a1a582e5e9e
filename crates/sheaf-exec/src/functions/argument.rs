//! Arguments of a function call, converted to the type that the kernel wants.
//!
//! MySQL's functions take any type and convert. [`Call`] is a call as a kernel sees it: `call.text(0)` is the first
//! argument as text, `call.int(1)` the second as an integer, whatever they were, by MySQL's rules. A literal stays a
//! single value; [`Argument::get`] hides the difference.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, BooleanArray, Date32Array,
    Decimal128Array, Decimal256Array, DurationMicrosecondArray, Float64Array, Int64Array,
    StringViewArray, StringViewBuilder, TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs};
use sheaf_access::int256_of;
use sheaf_types::number::Int256;
use sheaf_types::temporal::NumberParts;
use sheaf_types::{Collation, temporal};

use super::call_name::name_in_sql;
use super::conversion::{
    bytes_of_characters, characters_of_bytes, number_parts, to_boolean, to_byte_views, to_bytes,
    to_bytes_of_set, to_date, to_datetime, to_decimal, to_double, to_int, to_text, to_time,
    to_unsigned, to_wide_decimal, unsigned_zeros,
};
use super::limits::{self, Account, ResultLimits, Turns};
use super::random_numbers::SeededNumbers;
use super::types::{
    HEX_OF_KEY, SqlType, are_text_beside, collation_of, common_collation, is_bytes,
    refuse_what_is_no_text, texts_of_set,
};
use super::{EvaluationError, as_function, scalar_function};

/// An argument as an array of one type, or one value for all rows.
#[derive(Debug)]
pub struct Argument<A> {
    pub array: A,
    pub constant: bool,
}

impl<A> Argument<A> {
    /// Position in `array` of a row's value.
    pub fn index(&self, row: usize) -> usize {
        if self.constant { 0 } else { row }
    }
}

macro_rules! getters {
    ($($array:ty => $value:ty),* $(,)?) => {
        $(impl Argument<$array> {
            /// The value for a row; `None` is NULL.
            pub fn get(&self, row: usize) -> Option<$value> {
                let index = self.index(row);
                self.array.is_valid(index).then(|| self.array.value(index))
            }
        })*
    };
}

getters!(
    Int64Array => i64,
    UInt64Array => u64,
    Float64Array => f64,
    Decimal128Array => i128,
    Date32Array => i32,
    TimestampMicrosecondArray => i64,
    DurationMicrosecondArray => i64,
    BooleanArray => bool,
);

impl Argument<Decimal256Array> {
    /// The value for a row; `None` is NULL.
    pub fn get(&self, row: usize) -> Option<Int256> {
        let index = self.index(row);
        let is_valid = self.array.is_valid(index);
        is_valid.then(|| int256_of(self.array.value(index)))
    }
}

impl Argument<StringViewArray> {
    /// The value for a row; `None` is NULL.
    pub fn get(&self, row: usize) -> Option<&str> {
        let index = self.index(row);
        self.array.is_valid(index).then(|| self.array.value(index))
    }
}

impl Argument<BinaryViewArray> {
    /// The value for a row; `None` is NULL.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let index = self.index(row);
        self.array.is_valid(index).then(|| self.array.value(index))
    }
}

impl Argument<Vec<Option<NumberParts>>> {
    /// The value for a row; `None` is NULL.
    pub fn get(&self, row: usize) -> Option<NumberParts> {
        self.array[self.index(row)]
    }
}

impl Argument<Date32Array> {
    /// The value for a row; `None` is NULL or the zero date.
    pub fn existing(&self, row: usize) -> Option<i32> {
        self.get(row).filter(|days| *days != temporal::ZERO_DATE)
    }
}

impl Argument<TimestampMicrosecondArray> {
    /// The value for a row; `None` is NULL or the zero date.
    pub fn existing(&self, row: usize) -> Option<i64> {
        self.get(row)
            .filter(|micros| *micros != temporal::ZERO_DATETIME)
    }
}

/// A value as an array of one. A builder of texts makes blocks of 16 KB, and a call may have thousands of constants:
/// they take what they are long.
fn array_of_one(value: &ScalarValue) -> Result<ArrayRef> {
    let ScalarValue::Utf8View(Some(text)) = value else {
        return value.to_array_of_size(1);
    };
    let block_bytes = u32::try_from(text.len().max(1)).unwrap_or(u32::MAX);
    let mut texts = StringViewBuilder::with_capacity(1).with_fixed_block_size(block_bytes);
    texts.try_append_value(text)?;
    Ok(Arc::new(texts.finish()))
}

/// Bytes of the first value of a kernel's array, if it is a text or a byte string; those of other values are few.
fn bytes_of_first(array: &ArrayRef) -> usize {
    match array.data_type() {
        _ if array.is_empty() => 0,
        DataType::Utf8View => array.as_string_view().value(0).len(),
        DataType::BinaryView => array.as_binary_view().value(0).len(),
        DataType::Binary => array.as_binary::<i32>().value(0).len(),
        _ => 0,
    }
}

/// A function call on a batch.
pub struct Call<'a> {
    pub args: &'a ScalarFunctionArgs,
    name: &'static str,
    /// The function makes long texts of short ones.
    growing: bool,
    limits: &'a ResultLimits,
    /// Every argument is constant: one row is computed for all.
    constant: bool,
    /// To the kernel, strings are texts in which each byte is the character of its number. So what counts characters
    /// counts bytes.
    bytewise: bool,
}

impl<'a> Call<'a> {
    /// `name`: of the function, and whether its results may be much longer than its arguments. `constant` and
    /// `bytewise`: see the fields.
    pub(super) fn new(
        args: &'a ScalarFunctionArgs,
        (name, growing): (&'static str, bool),
        constant: bool,
        bytewise: bool,
    ) -> Call<'a> {
        let limits = args.config_options.extensions.get::<ResultLimits>();
        Call {
            args,
            name,
            growing,
            limits: limits.unwrap_or(&limits::FOLDED),
            constant,
            bytewise,
        }
    }

    /// The name of the function.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// For what the kernel is going to make, and for a look at whether it shall stop.
    pub(super) fn account(&self) -> Account<'a> {
        let name = name_in_sql(self.name);
        let is_nullable = self.args.return_field.is_nullable();
        let account = Account::new(self.limits, name, self.bytewise, is_nullable);
        match self.name {
            HEX_OF_KEY => account.of_keys().of_lengthened(),
            // What is made of documents to compare or collect them.
            "$json_ordered" | "$json_key" | "$json_element" | "$json_member" => {
                account.of_documents()
            }
            _ if self.growing => account.of_lengthened(),
            _ => account,
        }
    }

    /// For a look at whether the kernel shall stop within a value.
    pub(super) fn turns(&self) -> Turns<'a> {
        Turns::new(&self.limits.cancel)
    }

    /// What the session's RAND() draws from.
    pub(super) fn seeded_numbers(&self) -> &'a SeededNumbers {
        &self.limits.numbers
    }

    /// Whether no statement runs that the call is of: it is folded into a plan.
    fn is_folded(&self) -> bool {
        self.limits.oversized.is_none()
    }

    /// Gives a warning, in strict modes too.
    ///
    /// # Errors
    /// The warning, where constants are folded: it is given when the statement runs.
    pub(super) fn warn(&self, error: EvaluationError) -> Result<()> {
        if self.is_folded() {
            return Err(error.into());
        }
        self.limits.warn(error);
        Ok(())
    }

    /// Rows that the kernel computes.
    pub fn rows(&self) -> usize {
        if self.constant {
            1
        } else {
            self.args.number_rows
        }
    }

    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.args.args.len()
    }

    pub fn is_empty(&self) -> bool {
        self.args.args.is_empty()
    }

    pub fn sql_type(&self, argument: usize) -> SqlType {
        SqlType::of(&self.args.arg_fields[argument])
    }

    /// Whether an argument is a byte string or a BIT.
    pub(super) fn is_bytes(&self, argument: usize) -> bool {
        is_bytes(&self.args.arg_fields[argument])
    }

    /// The type of the result as it was computed when the call was planned.
    pub fn result_type(&self) -> &DataType {
        self.args.return_field.data_type()
    }

    /// The collation that a function of two strings compares them by.
    pub fn matching_collation(&self, operation: &str) -> Result<Collation> {
        if self.bytewise {
            return Ok(Collation::Binary);
        }
        Ok(common_collation(&[self.sql_type(0), self.sql_type(1)], operation)?.0)
    }

    /// The collation of the first text among these arguments; of bytes that of bytes.
    pub(super) fn collation_of_first(&self, arguments: &[usize]) -> Collation {
        if self.bytewise {
            return Collation::Binary;
        }
        let types = arguments.iter().map(|argument| self.sql_type(*argument));
        let mut known = types.filter_map(|ty| collation_of(&ty));
        known.next().unwrap_or_default().0
    }

    /// The kernel's array as the call's value. Zero has no sign in it, as in columns: operators that sort or tell
    /// values apart take -0.0 for another value than 0.0.
    ///
    /// # Errors
    /// 1041 for a constant that is folded, where a plan has no room for it.
    pub fn finish(&self, mut array: ArrayRef) -> Result<ColumnarValue> {
        array = match array.data_type() {
            DataType::Float64 => unsigned_zeros::<Float64Type>(array),
            DataType::Float32 => unsigned_zeros::<Float32Type>(array),
            _ => array,
        };
        if self.bytewise && array.data_type() == &DataType::Utf8View {
            array = Arc::new(bytes_of_characters(array.as_string_view(), &self.turns()));
        }
        if self.is_folded() && self.rows() == 1 && !sheaf_memory::may_fold(bytes_of_first(&array)) {
            return Err(EvaluationError::too_many_constants(name_in_sql(self.name)).into());
        }
        if self.constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &array, 0,
            )?));
        }
        Ok(ColumnarValue::Array(array))
    }

    /// The value of a constant argument.
    pub fn scalar(&self, argument: usize) -> Option<&ScalarValue> {
        match &self.args.args[argument] {
            ColumnarValue::Scalar(value) => Some(value),
            ColumnarValue::Array(_) => None,
        }
    }

    fn array(&self, argument: usize) -> Result<(ArrayRef, bool)> {
        Ok(match &self.args.args[argument] {
            ColumnarValue::Array(array) => (Arc::clone(array), false),
            ColumnarValue::Scalar(value) => {
                limits::ask_for(value.size())?;
                (array_of_one(value)?, true)
            }
        })
    }

    pub(super) fn converted<A>(
        &self,
        argument: usize,
        convert: impl FnOnce(&ArrayRef, &Field) -> Result<A>,
    ) -> Result<Argument<A>> {
        let (array, constant) = self.array(argument)?;
        Ok(Argument {
            array: convert(&array, &self.args.arg_fields[argument])?,
            constant,
        })
    }

    pub fn text(&self, argument: usize) -> Result<Argument<StringViewArray>> {
        if self.bytewise {
            let turns = self.turns();
            let convert = |array: &_, field: &_| characters_of_bytes(array, field, &turns);
            return self.converted(argument, convert);
        }
        self.characters(argument)
    }

    fn characters(&self, argument: usize) -> Result<Argument<StringViewArray>> {
        let fields = &self.args.arg_fields;
        let field = &fields[argument];
        let stand_for_text = is_bytes(field) && are_text_beside(field, fields);
        let texts = self.converted(argument, |array, field| {
            if stand_for_text {
                if let Some(texts) = texts_of_set(array, fields)? {
                    return Ok(texts);
                }
                refuse_what_is_no_text(array)?;
            }
            to_text(array, field)
        })?;
        within_packet(texts, &self.args.arg_fields[argument], self.limits)
    }

    pub fn bytes(&self, argument: usize) -> Result<Argument<BinaryViewArray>> {
        if self.sql_type(argument) == SqlType::Json {
            let Argument { array, constant } = self.characters(argument)?;
            let array = array.to_binary_view();
            return Ok(Argument { array, constant });
        }
        self.converted(argument, to_byte_views)
    }

    /// As [`bytes`](Self::bytes), but a text has those of its character set.
    pub fn bytes_of_set(&self, argument: usize) -> Result<Argument<BinaryViewArray>> {
        self.converted(argument, |array, field| {
            Ok((&to_bytes_of_set(array, field)?).into())
        })
    }

    /// As [`bytes`](Self::bytes), each behind the other: a result of type `Binary`.
    pub fn byte_array(&self, argument: usize) -> Result<Argument<BinaryArray>> {
        self.converted(argument, to_bytes)
    }

    pub fn int(&self, argument: usize) -> Result<Argument<Int64Array>> {
        self.converted(argument, to_int)
    }

    /// As an unsigned integer; negative numbers wrap, as in MySQL's bit operations.
    pub fn unsigned(&self, argument: usize) -> Result<Argument<UInt64Array>> {
        self.converted(argument, to_unsigned)
    }

    pub fn double(&self, argument: usize) -> Result<Argument<Float64Array>> {
        self.converted(argument, to_double)
    }

    /// As a DECIMAL of the given scale, rounded half away from zero.
    pub fn decimal(&self, argument: usize, scale: u8) -> Result<Argument<Decimal128Array>> {
        let (array, constant) = self.array(argument)?;
        let array = to_decimal(&array, &self.args.arg_fields[argument], scale)?;
        Ok(Argument { array, constant })
    }

    /// As a DECIMAL of the given scale and of as many digits as it takes, rounded half away from zero.
    pub fn wide_decimal(&self, argument: usize, scale: u8) -> Result<Argument<Decimal256Array>> {
        self.converted(argument, |array, field| {
            to_wide_decimal(array, field, scale)
        })
    }

    /// As a date; what is none is NULL.
    pub fn date(&self, argument: usize) -> Result<Argument<Date32Array>> {
        self.converted(argument, to_date)
    }

    /// As a point in time; what is none is NULL.
    pub fn datetime(&self, argument: usize) -> Result<Argument<TimestampMicrosecondArray>> {
        self.converted(argument, to_datetime)
    }

    /// As a time of day or span of time; what is none is NULL.
    pub fn time(&self, argument: usize) -> Result<Argument<DurationMicrosecondArray>> {
        self.converted(argument, to_time)
    }

    /// A number in the parts that dates and times are read from.
    pub fn number_parts(&self, argument: usize) -> Result<Argument<Vec<Option<NumberParts>>>> {
        self.converted(argument, number_parts)
    }

    /// As a condition: not zero.
    pub fn boolean(&self, argument: usize) -> Result<Argument<BooleanArray>> {
        self.converted(argument, to_boolean)
    }
}

/// The text of a document that a function has made is as long as max_allowed_packet at most, and NULL beyond that. The
/// field of a call has the function's name. A column has another one: its documents were short enough when they were
/// stored.
fn within_packet(
    texts: Argument<StringViewArray>,
    field: &Field,
    limits: &ResultLimits,
) -> Result<Argument<StringViewArray>> {
    let most = limits.value_bytes;
    let is_long = |text: Option<&str>| text.is_some_and(|text| text.len() > most);
    if SqlType::of(field) != SqlType::Json || !texts.array.iter().any(is_long) {
        return Ok(texts);
    }
    let maker = scalar_function(field.name());
    let maker = maker.as_deref().and_then(as_function);
    let (Some(oversized), Some(maker)) = (&limits.oversized, maker) else {
        return Ok(texts);
    };
    let mut bounded = StringViewBuilder::with_capacity(texts.array.len());
    for text in &texts.array {
        if is_long(text) {
            let function = name_in_sql(maker.name);
            oversized.note(EvaluationError::result_too_large(function, most))?;
            bounded.append_null();
        } else {
            bounded.append_option(text);
        }
    }
    Ok(Argument {
        array: bounded.finish(),
        constant: texts.constant,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_takes_what_it_is_long() {
        for length in [0, 5, 40, 1000] {
            let text = "x".repeat(length);
            let array = array_of_one(&ScalarValue::Utf8View(Some(text.clone()))).unwrap();
            assert_eq!(array.as_string_view().value(0), text);
            assert!(array.get_array_memory_size() < length + 500, "{length}");
        }
        assert!(
            array_of_one(&ScalarValue::Utf8View(None))
                .unwrap()
                .is_null(0)
        );
    }
}
