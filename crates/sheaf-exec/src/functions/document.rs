//! JSON values in arrays, of which a JSON value is its binary form.

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder};
use arrow::datatypes::Field;
use datafusion_common::Result;
use sheaf_memory::LONG_VALUE_BYTES;
use sheaf_types::json::{Json, View, text};

use super::call_name::name_in_sql;
use super::limits::ResultLimits;
use super::result_array::append_long;
use super::{Argument, EvaluationError, SqlType, as_function, scalar_function};

/// A JSON value of a column or an expression. Damaged bytes, which checksums of pages do not let through, are the null
/// literal.
pub(crate) fn json_of(bytes: &[u8]) -> Json<'_> {
    Json::new(bytes).unwrap_or(Json::NULL)
}

/// Whether a value is equal to the number 0.
pub(crate) fn is_zero(value: Json<'_>) -> bool {
    match value.view() {
        View::Int(number) => number == 0,
        View::UInt(number) => number == 0,
        View::Double(number) => number == 0.0,
        View::Decimal { unscaled, .. } => unscaled == 0,
        _ => false,
    }
}

/// What is computed of each document of an array.
pub(crate) fn of_documents<'a, T>(
    array: &'a ArrayRef,
    mut compute: impl FnMut(Json<'a>) -> Option<T> + 'a,
) -> impl Iterator<Item = Option<T>> + 'a {
    let documents = array.as_binary_view().iter();
    documents.map(move |bytes| compute(json_of(bytes?)))
}

/// The texts of documents. Long ones are not copied.
pub(super) fn texts_of_documents(array: &ArrayRef) -> Result<StringViewArray> {
    let mut texts = StringViewBuilder::with_capacity(array.len());
    for text in of_documents(array, |value| Some(text::to_text(value))) {
        match text {
            Some(text) if text.len() >= LONG_VALUE_BYTES => append_long(&mut texts, text)?,
            text => texts.append_option(text),
        }
    }
    Ok(texts.finish())
}

/// The text of a document that a function has made is as long as max_allowed_packet at most, and NULL beyond that. The
/// field of a call has the function's name. A column has another one: its documents were short enough when they were
/// stored.
pub(super) fn within_packet(
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
