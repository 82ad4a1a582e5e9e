//! UPPER and LOWER. The case changes character by character.

use arrow::array::ArrayRef;
use datafusion_common::Result;
use sheaf_types::text::letter_case::{lowercase, uppercase};

use super::like_first;
use super::part::slices;
use crate::functions::result_array::texts;
use crate::functions::{Call, Function, Length};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("upper", (1, 1), like_first, upper)
        .bytewise()
        .text_of(0, 1)
        .length(Length::OfOperand(0))
        .key_operand(),
    Function::strict("lower", (1, 1), like_first, lower)
        .bytewise()
        .text_of(0, 1)
        .length(Length::OfOperand(0))
        .key_operand(),
];

fn upper(call: &Call<'_>) -> Result<ArrayRef> {
    in_case(call, |text, out| {
        let start = out.len();
        match text.is_ascii() {
            true => {
                out.push_str(text);
                out[start..].make_ascii_uppercase();
            }
            false => out.extend(text.chars().map(uppercase)),
        }
    })
}

fn lower(call: &Call<'_>) -> Result<ArrayRef> {
    in_case(call, push_lowercase)
}

/// Each text in another case, which is known piece by piece. Bytes have no case.
fn in_case(call: &Call<'_>, push: fn(&str, &mut String)) -> Result<ArrayRef> {
    if call.is_bytes(0) {
        return slices(call, |text, _| text);
    }
    let (values, turns) = (call.text(0)?, call.turns());
    let collation = call.sql_type(0).collation().unwrap_or_default();
    texts(call, |row, out| {
        let text = values.get(row)?;
        let start = out.len();
        out.reserve(text.len());
        turns.stretches(text).for_each(|text| push(text, out));
        // A letter stays as it is where its character set does not have the other case.
        if collation.first_foreign(&out[start..]).is_some() {
            let kept: String = text
                .chars()
                .zip(out[start..].chars())
                .map(|(own, other)| if collation.has(other) { other } else { own })
                .collect();
            out.truncate(start);
            out.push_str(&kept);
        }
        Some(())
    })
}

pub(super) fn push_lowercase(text: &str, out: &mut String) {
    let start = out.len();
    match text.is_ascii() {
        true => {
            out.push_str(text);
            out[start..].make_ascii_lowercase();
        }
        false => out.extend(text.chars().map(lowercase)),
    }
}
