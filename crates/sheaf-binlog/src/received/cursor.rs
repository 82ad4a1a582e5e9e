//! Numbers and lengths from bytes that another server sent: each is there, or the answer is `None`.

use crate::bytes::{packed_bytes, read_packed};

/// Bytes that are read from the left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'b>(pub(super) &'b [u8]);

impl<'b> Cursor<'b> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let (taken, behind) = self.0.split_at_checked(bytes)?;
        self.0 = behind;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, behind) = self.0.split_first_chunk::<N>()?;
        self.0 = behind;
        Some(*taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A little-endian number of at most eight bytes.
    pub(super) fn little(&mut self, bytes: usize) -> Option<u64> {
        let taken = self.take(bytes)?;
        let mut number = 0;
        for byte in taken.iter().rev() {
            number = number << 8 | u64::from(*byte);
        }
        Some(number)
    }

    /// A big-endian number of at most eight bytes.
    pub(super) fn big(&mut self, bytes: usize) -> Option<u64> {
        let taken = self.take(bytes)?;
        let number = taken
            .iter()
            .fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        Some(number)
    }

    /// A number in one to nine bytes.
    pub(super) fn packed(&mut self) -> Option<u64> {
        let number = read_packed(self.0)?;
        self.take(packed_bytes(number))?;
        Some(number)
    }

    /// A length as such a number, and so many bytes.
    pub(super) fn string(&mut self) -> Option<&'b [u8]> {
        let length = self.packed()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// A length in one byte, and so many bytes.
    pub(super) fn short_string(&mut self) -> Option<&'b [u8]> {
        let length = self.byte()?;
        self.take(length.into())
    }

    /// So many bits, the lowest of each byte first.
    pub(super) fn bits(&mut self, count: usize) -> Option<Vec<bool>> {
        let bytes = self.take(count.div_ceil(8))?;
        Some(
            (0..count)
                .map(|at| bytes[at / 8] >> (at % 8) & 1 != 0)
                .collect(),
        )
    }
}
