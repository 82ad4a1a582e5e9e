//! Long texts in arrays.

use arrow::array::StringViewBuilder;
use arrow::buffer::Buffer;
use datafusion_common::Result;

/// Appends a long text without a copy of it.
pub(super) fn append_long(texts: &mut StringViewBuilder, text: String) -> Result<()> {
    let Ok(bytes) = u32::try_from(text.len()) else {
        texts.try_append_value(text)?;
        return Ok(());
    };
    let block = texts.append_block(Buffer::from_vec(text.into_bytes()));
    texts.try_append_view(block, 0, bytes)?;
    Ok(())
}
