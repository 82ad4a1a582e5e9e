//! Arguments of JSON functions: documents, paths, and SQL values as JSON values.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanArray, Date32Array,
    Decimal128Array, Decimal256Array, DurationMicrosecondArray, Float64Array, Int64Array,
    StringViewArray, TimestampMicrosecondArray, UInt64Array, new_null_array,
};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{DataFusionError, Result};
use sheaf_types::json::document::field_type::{BIT, VARCHAR};
use sheaf_types::json::{Builder, Document, Json, JsonError, Path, text};

use super::array_of_one;
use crate::functions::call_name::name_in_sql;
use crate::functions::document::json_of;
use crate::functions::limits::ask_for;
use crate::functions::types::{MAX_PRECISION, SqlType, bit_length};
use crate::functions::{Argument, Call, EvaluationError};

impl From<JsonError> for EvaluationError {
    fn from(error: JsonError) -> EvaluationError {
        EvaluationError::new(error.code(), error.to_string())
    }
}

/// What a kernel's rows end with.
pub(super) fn failed(error: JsonError) -> DataFusionError {
    EvaluationError::from(error).into()
}

/// An argument that is a document: a JSON value, or a text that is read.
pub(super) struct Documents(Argument<BinaryViewArray>);

impl Documents {
    /// All values, with one for each row of a call.
    pub(super) fn into_array(self, rows: usize) -> Option<BinaryViewArray> {
        (self.0.array.len() == rows).then_some(self.0.array)
    }

    /// The value for a row; `None` is NULL.
    pub(super) fn get(&self, row: usize) -> Option<Json<'_>> {
        let index = self.0.index(row);
        let array = &self.0.array;
        array.is_valid(index).then(|| json_of(array.value(index)))
    }
}

/// An argument that is a path.
pub(super) struct Paths(Argument<Vec<Option<Path>>>);

impl Paths {
    /// The path for a row; `None` is NULL.
    pub(super) fn get(&self, row: usize) -> Option<&Path> {
        self.0.array[self.0.index(row)].as_ref()
    }
}

impl Call<'_> {
    /// A document.
    ///
    /// # Errors
    /// 3141 of a text that is not JSON, 3144 of bytes, and 3146 of what is neither.
    pub(super) fn document(&self, argument: usize) -> Result<Documents> {
        let function = name_in_sql(self.name());
        self.converted(argument, |array, field| {
            documents(array, field, argument + 1, function)
        })
        .map(Documents)
    }

    pub(super) fn documents(&self, from: usize) -> Result<Vec<Documents>> {
        (from..self.len()).map(|at| self.document(at)).collect()
    }

    /// A text of characters: a key, a path, or what is quoted.
    ///
    /// # Errors
    /// 3144 of bytes that are not NULL.
    pub(super) fn text_of_characters(&self, argument: usize) -> Result<Argument<StringViewArray>> {
        let is_bit = bit_length(&self.args.arg_fields[argument]).is_some();
        if is_bit || self.sql_type(argument) == SqlType::Bytes {
            let bytes = self.bytes(argument)?;
            if (0..self.rows()).any(|row| bytes.get(row).is_some()) {
                return Err(of_bytes());
            }
        }
        self.text(argument)
    }

    /// A path.
    ///
    /// # Errors
    /// 3143 of a text that is no path, 3144 of bytes.
    pub(super) fn path(&self, argument: usize) -> Result<Paths> {
        let texts = self.text_of_characters(argument)?;
        let paths = texts.array.iter();
        let paths = paths.map(|text| {
            text.map(|text| Path::parse(text).map_err(failed))
                .transpose()
        });
        Ok(Paths(Argument {
            array: paths.collect::<Result<_>>()?,
            constant: texts.constant,
        }))
    }

    /// Paths, from this argument on, each of so many.
    pub(super) fn paths(&self, from: usize, step: usize) -> Result<Vec<Paths>> {
        let places = (from..self.len()).step_by(step);
        places.map(|at| self.path(at)).collect()
    }

    /// An SQL value as the JSON value that it becomes.
    pub(super) fn json_value(&self, argument: usize) -> Result<SqlValues> {
        let bits = bit_length(&self.args.arg_fields[argument]);
        Ok(match self.sql_type(argument) {
            SqlType::Null => SqlValues::Null,
            SqlType::Json => SqlValues::Json(self.document(argument)?),
            SqlType::Boolean => SqlValues::Bool(self.boolean(argument)?),
            _ if bits.is_some() => SqlValues::Bytes(self.bytes(argument)?, BIT),
            SqlType::Integer { unsigned: true } => SqlValues::UInt(self.unsigned(argument)?),
            SqlType::Integer { unsigned: false } | SqlType::Year => {
                SqlValues::Int(self.int(argument)?)
            }
            SqlType::Decimal { decimals, .. }
                if self.sql_type(argument).is_wide() || decimals > MAX_PRECISION =>
            {
                SqlValues::WideDecimal(self.wide_decimal(argument, decimals)?, decimals)
            }
            SqlType::Decimal { decimals, .. } => {
                SqlValues::Decimal(self.decimal(argument, decimals)?, decimals)
            }
            SqlType::Float | SqlType::Double => SqlValues::Double(self.double(argument)?),
            SqlType::Text { .. } | SqlType::Enum { .. } => SqlValues::Text(self.text(argument)?),
            SqlType::Bytes => SqlValues::Bytes(self.bytes(argument)?, VARCHAR),
            SqlType::Date => SqlValues::Date(self.date(argument)?),
            SqlType::Time { .. } => SqlValues::Time(self.time(argument)?),
            SqlType::DateTime { .. } => SqlValues::DateTime(self.datetime(argument)?),
        })
    }

    /// As [`json_value`](Self::json_value), from this argument on, each of so many.
    pub(super) fn json_values(&self, from: usize, step: usize) -> Result<Vec<SqlValues>> {
        let places = (from..self.len()).step_by(step);
        places.map(|at| self.json_value(at)).collect()
    }
}

/// Bytes are no text that could be read.
fn of_bytes() -> DataFusionError {
    failed(JsonError::CharacterSet {
        character_set: "binary".to_string(),
    })
}

fn documents(
    array: &ArrayRef,
    field: &Field,
    argument: usize,
    function: &str,
) -> Result<BinaryViewArray> {
    Ok(match SqlType::of(field) {
        SqlType::Json => array.as_binary_view().clone(),
        SqlType::Null => new_null_array(&DataType::BinaryView, array.len())
            .as_binary_view()
            .clone(),
        SqlType::Text { .. } | SqlType::Enum { .. } => {
            let texts = crate::functions::conversion::to_text(array, field)?;
            let read = |text| -> Result<Vec<u8>> {
                let read = text::read(text).map(Document::into_bytes);
                read.map_err(|problem| failed(problem.in_argument(argument, function)))
            };
            if texts.len() == 1 && texts.is_valid(0) {
                return Ok(array_of_one(read(texts.value(0))?));
            }
            let mut builder = BinaryViewBuilder::with_capacity(texts.len());
            for text in &texts {
                let document = text.map(read).transpose()?;
                ask_for(document.as_ref().map_or(0, Vec::len))?;
                builder.append_option(document);
            }
            builder.finish()
        }
        SqlType::Bytes if array.null_count() == array.len() => {
            new_null_array(&DataType::BinaryView, array.len())
                .as_binary_view()
                .clone()
        }
        SqlType::Bytes => return Err(of_bytes()),
        _ => {
            return Err(failed(JsonError::Type {
                argument,
                function: function.to_string(),
            }));
        }
    })
}

/// An argument of any type that becomes a JSON value. NULL is the null literal.
pub(super) enum SqlValues {
    Null,
    Json(Documents),
    Bool(Argument<BooleanArray>),
    Int(Argument<Int64Array>),
    UInt(Argument<UInt64Array>),
    /// With its decimals.
    Decimal(Argument<Decimal128Array>, u8),
    WideDecimal(Argument<Decimal256Array>, u8),
    Double(Argument<Float64Array>),
    Text(Argument<StringViewArray>),
    /// With the number of their type.
    Bytes(Argument<BinaryViewArray>, u8),
    Date(Argument<Date32Array>),
    Time(Argument<DurationMicrosecondArray>),
    DateTime(Argument<TimestampMicrosecondArray>),
}

impl SqlValues {
    /// Writes the value for a row; `None`, of NULL, writes nothing.
    fn write(
        &self,
        row: usize,
        builder: &mut Builder,
    ) -> Option<std::result::Result<(), JsonError>> {
        Some(match self {
            SqlValues::Null => return None,
            SqlValues::Json(values) => builder.json(values.get(row)?),
            SqlValues::Bool(values) => builder.bool(values.get(row)?),
            SqlValues::Int(values) => builder.int(values.get(row)?),
            SqlValues::UInt(values) => builder.uint(values.get(row)?),
            SqlValues::Decimal(values, scale) => builder.decimal(values.get(row)?, *scale),
            SqlValues::WideDecimal(values, scale) => builder.wide_decimal(values.get(row)?, *scale),
            SqlValues::Double(values) => builder.double(values.get(row)?),
            SqlValues::Text(values) => builder.string(values.get(row)?),
            SqlValues::Bytes(values, number) => builder.opaque(*number, values.get(row)?),
            SqlValues::Date(values) => builder.date(values.get(row)?),
            SqlValues::Time(values) => builder.time(values.get(row)?),
            SqlValues::DateTime(values) => builder.datetime(values.get(row)?),
        })
    }

    /// Appends the value for a row; NULL is the null literal.
    pub(super) fn push(
        &self,
        row: usize,
        builder: &mut Builder,
    ) -> std::result::Result<(), JsonError> {
        self.write(row, builder).unwrap_or_else(|| builder.null())
    }

    /// The value for a row as a document of its own; `None` is NULL.
    pub(super) fn document(&self, row: usize) -> std::result::Result<Option<Document>, JsonError> {
        let mut builder = Builder::new();
        match self.write(row, &mut builder) {
            None => Ok(None),
            Some(written) => written.and_then(|()| builder.finish()).map(Some),
        }
    }
}
