//! The column of a set operation: what values of its parts become in it.
//!
//! MySQL keeps the rows of a set operation in a table, and assigns the values of each part to its columns. So a FLOAT
//! or DOUBLE is not what a choice (CASE, COALESCE) makes of it:
//!
//! ```text
//!   f float(8,2) of 123.45, beside            in the column
//!   n decimal(8,1)   double(22,2)             123.45, while f + 0e0 is 123.44999694824219
//!   s varchar(10)    varchar(10)              '123.449997', while CONCAT(f) is '123.45'
//!   t text           text                     '123.45'
//! ```
//!
//! Among decimals it is rounded to those of the column. Beside texts it has as many digits as the longest value of all
//! parts has characters.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::ScalarValue;
use sheaf_algebra::relation::Operator;
use sheaf_algebra::{Relation, Scalar};
use sheaf_exec::functions::control::field_of_parts;
use sheaf_exec::functions::types::{
    Coercibility, SqlType, bit_length, declared_type, field, float_decimals,
};
use sheaf_exec::typing::Texts;
use sheaf_types::ColumnType;
use sheaf_types::error::codes;

use super::{Binder, Bound, Output};
use crate::error::SqlError;

/// The length of a value that tells of none, in characters. No number has as many.
const ANY_LENGTH: u32 = 255;
/// Those of a FLOAT and a DOUBLE of a column without digits.
const FLOAT_LENGTH: u32 = 12;
const DOUBLE_LENGTH: u32 = 22;
/// A sign and a point.
const SIGN_AND_POINT: u32 = 2;

/// A column of a set operation.
pub(super) struct SetColumn {
    pub field: Field,
    /// The same without what fills its values up: those of a BINARY are all as long as the longest.
    unfilled: Field,
    /// Characters of its longest value.
    length: u32,
    /// It is a TEXT or a BLOB, as one of the parts is.
    is_long: bool,
}

impl SetColumn {
    /// The column of one column of each part.
    ///
    /// # Errors
    /// As [`column_of_parts`].
    pub fn of<'p>(
        parts: impl Iterator<Item = (&'p Relation, &'p Output)>,
        texts: &Texts,
    ) -> Bound<SetColumn> {
        let mut fields = Vec::new();
        let mut length = 0;
        for (relation, output) in parts {
            length = literal_length(relation, output)
                .unwrap_or_else(|| length_of(&output.field))
                .max(length);
            fields.push(FieldRef::clone(&output.field));
        }
        let unfilled = column_of_parts(&fields, texts)?;
        let field = match is_filled(&fields) {
            true => field::declared(DataType::Binary, &ColumnType::Binary { length }),
            false => unfilled.clone(),
        };
        let is_long = |field: &FieldRef| declared_type(field).is_some_and(|ty| ty.is_long());
        Ok(SetColumn {
            field,
            unfilled,
            length,
            is_long: fields.iter().any(is_long),
        })
    }

    /// A value of a part as one of the column.
    pub fn value(&self, value: Scalar, binder: &Binder<'_>) -> Bound<Scalar> {
        let value = self.unfilled_value(value, binder)?;
        if self.field == self.unfilled {
            return Ok(value);
        }
        let length = binder.integer(self.length.into());
        let value = binder.call("$cast_binary", vec![value, length])?;
        Ok(binder.typing().column_of(value, &self.field)?)
    }

    fn unfilled_value(&self, value: Scalar, binder: &Binder<'_>) -> Bound<Scalar> {
        let from = FieldRef::clone(value.field());
        let to = &self.unfilled;
        let is_float = from.data_type().is_floating();
        let value = match to.data_type() {
            DataType::Utf8View | DataType::Binary if is_float && !self.is_long => {
                let length = binder.integer(self.length.into());
                binder.call("$short_double", vec![value, length])?
            }
            DataType::Float64 if is_float && !is_rounded(&from) => match float_decimals(to) {
                Some(decimals) => {
                    let decimals = binder.integer(decimals.into());
                    binder.call("$rounded_double", vec![value, decimals])?
                }
                None => value,
            },
            _ => value,
        };
        let is_same = value.field().data_type() == to.data_type()
            && value.field().metadata() == to.metadata();
        match is_same {
            true => Ok(value),
            false => Ok(binder.typing().column_of(value, to)?),
        }
    }
}

/// The field of a column whose values come from several queries, or rows.
///
/// # Errors
/// 1271 for texts of columns with different collations.
pub(super) fn column_of_parts(parts: &[FieldRef], texts: &Texts) -> Bound<Field> {
    let field = texts.column_made_of(field_of_parts(parts)?, parts);
    match SqlType::of(&field) {
        SqlType::Text {
            coercibility: Coercibility::Mixed,
            ..
        } => Err(SqlError::new(
            codes::CANT_AGGREGATE_NCOLLATIONS,
            "Illegal mix of collations for operation 'UNION'",
        )),
        _ => Ok(field),
    }
}

/// Whether the column is a BINARY: one part is, and the others are, or are numbers and moments. The text of an ENUM has
/// a length of its own.
fn is_filled(parts: &[FieldRef]) -> bool {
    let is_binary = |field: &FieldRef| {
        let declared = declared_type(field);
        matches!(declared, Some(ColumnType::Binary { .. }))
    };
    let says_nothing = |field: &FieldRef| {
        let ty = SqlType::of(field);
        let is_number = ty.is_exact_number() || ty.is_float();
        bit_length(field).is_none() && (is_number || ty.is_temporal() || ty == SqlType::Null)
    };
    let mut all = parts.iter();
    parts.iter().any(is_binary) && all.all(|field| is_binary(field) || says_nothing(field))
}

/// Whether a column of DOUBLE(M,D) has rounded the value. No other type of parts has more decimals than the whole.
fn is_rounded(field: &Field) -> bool {
    declared_type(field).is_some_and(|ty| !ty.is_single() && ty.float_digits().is_some())
}

/// The length of a text that is written as an item of a part's list.
fn literal_length(relation: &Relation, output: &Output) -> Option<u32> {
    let Operator::Project(project) = relation.operator() else {
        return None;
    };
    let mut items = project.items.iter();
    let item = items.find(|item| item.column == output.id)?;
    let text = item.value.as_literal().map(ScalarValue::try_as_str)??;
    let length = text.map_or(0, |text| text.chars().count());
    u32::try_from(length).ok()
}

/// The length of the longest text of a value, in characters.
fn length_of(field: &Field) -> u32 {
    let declared = declared_type(field);
    if let Some(ty) = &declared {
        let digits = || Some(ty.float_digits()?.precision.into());
        if let Some(length) = ty.declared_length().or_else(digits) {
            return length;
        }
    }
    match field.data_type() {
        DataType::Null => 0,
        DataType::Boolean => 1,
        DataType::Int8 => 4,
        DataType::UInt8 => 3,
        DataType::Int16 => 6,
        DataType::UInt16 => 5,
        DataType::Int32 => 11,
        DataType::UInt32 => 10,
        DataType::Int64 | DataType::UInt64 => 20,
        DataType::Decimal128(precision, _) | DataType::Decimal256(precision, _) => {
            u32::from(*precision) + SIGN_AND_POINT
        }
        DataType::Float32 if declared.is_some() => FLOAT_LENGTH,
        DataType::Float64 if declared.is_some() => DOUBLE_LENGTH,
        DataType::Date32 => 10,
        DataType::Timestamp(..) => 19,
        DataType::Duration(_) => 10,
        _ => ANY_LENGTH,
    }
}
