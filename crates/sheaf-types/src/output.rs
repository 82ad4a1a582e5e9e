//! Where the text of a value is appended: to the row that is being sent, or to a text.
//!
//! Nothing is allocated for a value: its pieces are appended as they are printed, or put together in a few bytes on the
//! stack.

/// Bytes or a text, which grow by ASCII.
pub trait Output {
    fn push_ascii(&mut self, ascii: &[u8]);
}

impl Output for Vec<u8> {
    #[inline]
    fn push_ascii(&mut self, ascii: &[u8]) {
        self.extend_from_slice(ascii);
    }
}

impl Output for String {
    #[inline]
    fn push_ascii(&mut self, ascii: &[u8]) {
        debug_assert!(ascii.is_ascii());
        self.push_str(std::str::from_utf8(ascii).unwrap_or_default());
    }
}

/// A few bytes that are written from the left.
pub(crate) struct Line<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Line<N> {
    #[inline]
    pub(crate) fn new() -> Line<N> {
        Line {
            bytes: [0; N],
            length: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    #[inline]
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// `value` modulo 10^`width`, with leading zeros.
    #[inline]
    pub(crate) fn digits(&mut self, mut value: u32, width: usize) {
        for at in (self.length..self.length + width).rev() {
            self.bytes[at] = b'0' + (value % 10) as u8;
            value /= 10;
        }
        self.length += width;
    }

    #[inline]
    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
