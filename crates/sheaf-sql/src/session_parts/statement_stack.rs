//! The stack that a statement gets: a thread's own, or one as deep as its text may nest.

/// Parsing and planning recurse as deep as a statement nests. The parser bounds the nesting (see
/// [`crate::parser::scan`]). A statement whose thread has less stack than the red zone left runs on a stack of its own,
/// which is address space until it is used.
pub(crate) const STACK_RED_ZONE_BYTES: usize = 1 << 20;
pub(crate) const STATEMENT_STACK_BYTES: usize = 16 << 20;
/// The same for statements that may nest deeper: by more bytes of text than this, or more parentheses inside of each
/// other.
const DEEP_STATEMENT_BYTES: usize = 1 << 10;
const DEEP_PARENTHESES: usize = 8;
pub(crate) const DEEP_RED_ZONE_BYTES: usize = 48 << 20;
pub(crate) const DEEP_STACK_BYTES: usize = 64 << 20;

/// Whether parsing and planning the text may take more stack than a thread has.
pub(crate) fn may_nest_deeply(text: &str) -> bool {
    if text.len() > DEEP_STATEMENT_BYTES {
        return true;
    }
    let is_open = |byte: &u8| *byte == b'(';
    if text.as_bytes().iter().filter(|byte| is_open(byte)).count() <= DEEP_PARENTHESES {
        return false;
    }
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest > DEEP_PARENTHESES
}
