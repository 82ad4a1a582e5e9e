//! Several values as one byte string: `$sort_key` orders as the values do, one after the other, `$tuple_key` is equal
//! where they are. Strings enter by their sort key.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray};
use arrow::buffer::NullBuffer;
use arrow::compute::SortOptions;
use arrow::row::{RowConverter, SortField};
use datafusion_common::Result;

use super::types::{SqlType, field};
use super::{Call, Function, VARIADIC};

pub(super) static FUNCTIONS: &[Function] = &[
    // A text of one letter for each value, 'a'scending or 'd'escending, then the values. NULL comes first, or last.
    Function::new(
        "$sort_key",
        (2, VARIADIC),
        |_| Ok(field::bytes()),
        |call| {
            let directions = call.text(0)?.get(0).unwrap_or_default().to_string();
            let options = directions.bytes().map(|direction| {
                let descending = direction == b'd';
                SortOptions {
                    descending,
                    nulls_first: !descending,
                }
            });
            Ok(Arc::new(rows_as_bytes(call, 1, options.collect())?))
        },
    )
    .never_null(),
    // NULL if a value is NULL.
    Function::strict(
        "$tuple_key",
        (1, VARIADIC),
        |_| Ok(field::bytes()),
        |call| {
            let keys = rows_as_bytes(call, 0, vec![SortOptions::default(); call.len()])?;
            let mut nulls: Option<NullBuffer> = None;
            for argument in &call.args.args {
                nulls = NullBuffer::union(
                    nulls.as_ref(),
                    argument.to_array(call.rows())?.logical_nulls().as_ref(),
                );
            }
            let (offsets, values, _) = keys.into_parts();
            Ok(Arc::new(BinaryArray::new(offsets, values, nulls)))
        },
    ),
];

fn rows_as_bytes(call: &Call<'_>, first: usize, options: Vec<SortOptions>) -> Result<BinaryArray> {
    let mut columns: Vec<ArrayRef> = Vec::new();
    for argument in first..call.len() {
        columns.push(match call.sql_type(argument) {
            SqlType::Text { collation, .. } => {
                let texts = call.text(argument)?;
                let key = |row| {
                    texts
                        .get(row)
                        .map(|text| crate::functions::collation::sort_key(text, collation))
                };
                Arc::new((0..call.rows()).map(key).collect::<BinaryArray>())
            }
            SqlType::Enum { .. } => {
                let numbers = call.int(argument)?;
                Arc::new(
                    (0..call.rows())
                        .map(|row| numbers.get(row))
                        .collect::<arrow::array::Int64Array>(),
                )
            }
            _ => call.args.args[argument].to_array(call.rows())?,
        });
    }
    let fields = columns
        .iter()
        .zip(options)
        .map(|(column, options)| SortField::new_with_options(column.data_type().clone(), options))
        .collect();
    let rows = RowConverter::new(fields)?.convert_columns(&columns)?;
    Ok(rows.iter().map(|row| Some(row.data().to_vec())).collect())
}
