//! [`ByteStrings`]: many byte strings in one allocation, reused from batch to batch.

/// Byte strings one after another in a single buffer. Holds keys and rows on their way between access methods
/// without an allocation each.
#[derive(Debug, Default)]
pub(crate) struct ByteStrings {
    bytes: Vec<u8>,
    /// End of each string in `bytes`; it starts where the one before ends.
    ends: Vec<u32>,
}

impl ByteStrings {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all strings together.
    pub(crate) fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    #[inline]
    pub(crate) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.end_string();
    }

    /// Adds one string that `pieces` make up together.
    #[inline]
    pub(crate) fn push_pieces<'a>(&mut self, pieces: impl IntoIterator<Item = &'a [u8]>) {
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.end_string();
    }

    #[inline]
    fn end_string(&mut self) {
        debug_assert!(
            self.bytes.len() <= u32::MAX as usize,
            "callers bound a buffer by leaves or by its limit"
        );
        self.ends.push(self.bytes.len() as u32);
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 {
            0
        } else {
            self.ends[index - 1] as usize
        };
        &self.bytes[start..self.ends[index] as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let string = &self.bytes[start..end as usize];
            start = end as usize;
            string
        })
    }
}
