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
use sheaf_types::Collation;

use super::types::{
    SqlType, bytes_field, check_literal, common_collation, field, takes_bytes, text_field,
};
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
        let (collation, _) = common_collation(&operands.types(), operation)?;
        check_literals_in(operands, collation)?;
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
    let field = text_field(operands.fields, "string function")?;
    check_literals(operands, &field)?;
    Ok(field)
}

/// Looks at the literals that a text is made of.
///
/// # Errors
/// 3854 for one with characters that the text's character set does not have.
fn check_literals(operands: &Operands<'_>, made: &Field) -> Result<()> {
    let collation = SqlType::of(made).collation();
    check_literals_in(operands, collation.unwrap_or_default())
}

/// The same for literals that are compared by a collation.
fn check_literals_in(operands: &Operands<'_>, collation: Collation) -> Result<()> {
    if !matches!(collation, Collation::OfSet(_)) {
        return Ok(());
    }
    for (operand, field) in operands.fields.iter().enumerate() {
        if let Some(text) = operands.text(operand) {
            check_literal(&text, &SqlType::of(field), collation)?;
        }
    }
    Ok(())
}

fn bytes_of_all(operands: &Operands<'_>) -> Result<Field> {
    Ok(bytes_field(operands.fields))
}

fn text_arguments(call: &Call<'_>) -> Result<Vec<Argument<StringViewArray>>> {
    (0..call.len())
        .map(|argument| call.text(argument))
        .collect()
}
