//! String functions. Positions and lengths count characters, from 1; LENGTH counts bytes.
//!
//! Each function is a row of `FUNCTIONS`. Its kernel gets a batch of arguments, takes them as texts or bytes, and
//! returns an array with a value for each row. The result has the collation of the first argument, or the common one of
//! all arguments.
//!
//! Most kernels hand a closure for one row to what builds the array and bounds it (`functions/result_array.rs`). So
//! `repeat(s, 1000000000)` is refused before it has taken the memory. The closure itself takes a long text in stretches
//! ([`Turns`](super::limits::Turns)), between which it may have to stop.

mod case;
mod concat;
mod encoding;
mod length;
mod list;
mod number;
mod part;
mod replace;
mod search;
mod soundex;

use arrow::array::StringViewArray;
use arrow::datatypes::Field;
use datafusion_common::Result;

use super::types::{bytes_field, common_collation, field, takes_bytes, text_field};
use super::{Argument, Call, Function, Operands};

/// The functions of each kind.
pub(super) static FUNCTIONS: [&[Function]; 10] = [
    case::FUNCTIONS,
    concat::FUNCTIONS,
    encoding::FUNCTIONS,
    length::FUNCTIONS,
    list::FUNCTIONS,
    number::FUNCTIONS,
    part::FUNCTIONS,
    replace::FUNCTIONS,
    search::FUNCTIONS,
    soundex::FUNCTIONS,
];

fn bigint(_: &Operands<'_>) -> Result<Field> {
    Ok(field::bigint())
}

/// A number that texts are compared for.
///
/// # Errors
/// 1267 for texts that insist on different collations.
fn compared(operands: &Operands<'_>, operation: &str) -> Result<Field> {
    if !takes_bytes(operands.fields) {
        common_collation(&operands.types(), operation)?;
    }
    Ok(field::bigint())
}

fn text(_: &Operands<'_>) -> Result<Field> {
    Ok(field::text())
}

/// The collation of the first argument.
fn like_first(operands: &Operands<'_>) -> Result<Field> {
    text_field(&operands.fields[..1], "string function")
}

fn like_all(operands: &Operands<'_>) -> Result<Field> {
    text_field(operands.fields, "string function")
}

fn bytes_of_all(operands: &Operands<'_>) -> Result<Field> {
    Ok(bytes_field(operands.fields))
}

fn text_arguments(call: &Call<'_>) -> Result<Vec<Argument<StringViewArray>>> {
    (0..call.len())
        .map(|argument| call.text(argument))
        .collect()
}
