//! [`VerdictMemo`]: remembers how a string condition judged the last few different strings.
//!
//! Comparing a string under a collation means making its sort key. Columns that are compared with constants mostly have
//! few different values (flags, modes, segments), so the verdict on a string that was judged a moment ago is looked up
//! instead: a direct-mapped table that fits the first-level cache.

/// Strings up to this length are remembered.
const MAX_BYTES: usize = 30;

/// Strings remembered at most.
const SLOTS: usize = 64;

#[derive(Clone, Copy)]
struct Slot {
    bytes: [u8; MAX_BYTES],
    /// [`EMPTY`] in a slot that holds nothing.
    length: u8,
    verdict: bool,
}

const EMPTY: u8 = u8::MAX;

/// See the module's comment.
pub(crate) struct VerdictMemo {
    slots: Box<[Slot; SLOTS]>,
}

impl VerdictMemo {
    pub(crate) fn new() -> Self {
        Self {
            slots: Box::new(
                [Slot {
                    bytes: [0; MAX_BYTES],
                    length: EMPTY,
                    verdict: false,
                }; SLOTS],
            ),
        }
    }

    /// The verdict on `string`: remembered, or else from `judge`.
    #[inline]
    pub(crate) fn verdict(&mut self, string: &[u8], judge: impl FnOnce(&[u8]) -> bool) -> bool {
        if string.len() > MAX_BYTES {
            return judge(string);
        }
        let slot = &mut self.slots[slot_of(string)];
        if usize::from(slot.length) == string.len() && slot.bytes[..string.len()] == *string {
            return slot.verdict;
        }
        let verdict = judge(string);
        slot.bytes[..string.len()].copy_from_slice(string);
        slot.length = string.len() as u8;
        slot.verdict = verdict;
        verdict
    }
}

fn slot_of(string: &[u8]) -> usize {
    let mut hash = string.len() as u64;
    for chunk in string.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    (hash >> 32) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_judged_once_while_they_are_remembered() {
        let mut memo = VerdictMemo::new();
        let mut judged = 0;
        for _ in 0..3 {
            for string in [
                "",
                "AIR",
                "AIR REG",
                "a string that is too long to be remembered",
            ] {
                let verdict = memo.verdict(string.as_bytes(), |bytes| {
                    judged += 1;
                    bytes.len() == 3
                });
                assert_eq!(verdict, string == "AIR");
            }
        }
        assert_eq!(
            judged,
            3 + 3,
            "three short strings once, the long one each time"
        );
    }

    #[test]
    fn strings_that_share_a_slot_do_not_share_a_verdict() {
        let mut memo = VerdictMemo::new();
        for round in 0..2 {
            for number in 0..1000u32 {
                let string = number.to_string();
                let verdict = memo.verdict(string.as_bytes(), |_| number % 3 == 0);
                assert_eq!(verdict, number % 3 == 0, "round {round}, {number}");
            }
        }
    }
}
