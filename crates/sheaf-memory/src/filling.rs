//! Blocks that are being filled.
//!
//! The system counts memory when it is written to. A block that is allocated and empty is no part of what the process
//! takes, but is going to be. On a busy machine that may last: the thread that fills it gets no processor.

use crate::process;
use crate::statement::take_ahead;

/// A block that a thread was given room for, while it is filled. What is not filled yet is nobody else's, whatever safe
/// points there are in between.
#[must_use]
pub struct Filling {
    left_bytes: usize,
}

impl Filling {
    /// The block that the thread has [asked](crate::has_room_for) for is allocated, and empty.
    pub fn begin() -> Filling {
        Filling {
            left_bytes: take_ahead(),
        }
    }

    /// So many bytes more of it are filled.
    pub fn filled(&mut self, bytes: usize) {
        let bytes = bytes.min(self.left_bytes);
        process::has_taken(bytes);
        self.left_bytes -= bytes;
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        process::has_taken(self.left_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::count;
    use crate::{StatementMemory, has_room_for, safe_point};

    #[test]
    fn what_is_not_filled_yet_is_nobody_else_s() {
        count();
        let account = StatementMemory::new(Default::default());
        account.during(|| {
            assert!(has_room_for(3 << 20));
            let mut filling = Filling::begin();
            assert_eq!((take_ahead(), filling.left_bytes), (0, 3 << 20));
            let value = vec![1u8; 1 << 20];
            safe_point();
            filling.filled(value.len());
            assert_eq!(filling.left_bytes, 2 << 20);
            filling.filled(usize::MAX);
            assert_eq!(filling.left_bytes, 0);
        });
        assert_eq!(take_ahead(), 0);
    }
}
