//! JSON values in arrays, of which a JSON value is its binary form.

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder};
use datafusion_common::Result;
use sheaf_memory::LONG_VALUE_BYTES;
use sheaf_types::json::{Json, View, text};

use super::long_text::append_long;

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
