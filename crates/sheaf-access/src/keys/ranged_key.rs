//! A range of keys as one byte string, so that a buffer of keys holds it and sorts it by where it begins.
//!
//! ```text
//!   | start | end | length of start (2 bytes) |        start <= key < end; an empty end is the end of the index
//! ```
//!
//! Strings of which one begins with the other may come in either order. That costs a step back, and nothing else.

/// Bytes of the length.
const LENGTH_BYTES: usize = 2;

/// Appends the range from `start` to before `end`, or to the end of the index.
pub(crate) fn pack(start: &[u8], end: Option<&[u8]>, into: &mut Vec<u8>) {
    debug_assert!(
        start.len() <= usize::from(u16::MAX),
        "callers bound the length of a key"
    );
    into.extend_from_slice(start);
    into.extend_from_slice(end.unwrap_or_default());
    into.extend_from_slice(&(start.len() as u16).to_be_bytes());
}

/// Where the range begins.
pub(crate) fn start_of(packed: &[u8]) -> &[u8] {
    parts(packed).0
}

/// Start and end. An end without bytes is the end of the index.
pub(crate) fn parts(packed: &[u8]) -> (&[u8], &[u8]) {
    let (bytes, length) = packed.split_at(packed.len() - LENGTH_BYTES);
    bytes.split_at(usize::from(u16::from_be_bytes([length[0], length[1]])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_comes_out_as_it_went_in() {
        for (start, end) in [
            (&b"ab"[..], &b"b"[..]),
            (b"", b"x"),
            (b"abc", b""),
            (b"", b""),
        ] {
            let mut packed = Vec::new();
            pack(start, Some(end).filter(|end| !end.is_empty()), &mut packed);
            assert_eq!(parts(&packed), (start, end));
            assert_eq!(start_of(&packed), start);
        }
    }
}
