//! What must agree inside of one node.

use super::{
    DEAD_BYTES, HEAP_START, HIGH_FENCE_LENGTH, LOW_FENCE_LENGTH, MAX_HEIGHT, MAX_SLOTS,
    NODE_CAPACITY, Node, PREFIX_LENGTH, PageBytes, RECORD_HEADER_BYTES, SLOT_BYTES,
    SLOT_SUFFIX_LENGTH, SLOTS, common_prefix, head_of,
};
use crate::page::PAGE_SIZE;

impl Node<'_> {
    /// What is wrong with the node's own structure, if anything. Reads any bytes without panicking.
    pub fn check(&self) -> Result<(), String> {
        let count = self.count();
        let fences = self.u16(LOW_FENCE_LENGTH) + self.u16(HIGH_FENCE_LENGTH);
        let slots_end = SLOTS + count * SLOT_BYTES;
        let heap_start = self.u16(HEAP_START);
        if count > MAX_SLOTS || fences > NODE_CAPACITY || self.level() as usize >= MAX_HEIGHT {
            return Err("header out of range".into());
        }
        let heap_end = PAGE_SIZE - fences;
        if heap_start < slots_end || heap_start > heap_end {
            return Err(format!(
                "heap starts at {heap_start}, slots end at {slots_end}, heap ends at {heap_end}"
            ));
        }
        let prefix_length = self.u16(PREFIX_LENGTH);
        let expected_prefix = self
            .high_fence()
            .map_or(0, |high| common_prefix(self.low_fence(), high));
        if prefix_length != expected_prefix {
            return Err(format!(
                "prefix of {prefix_length} bytes, fences share {expected_prefix}"
            ));
        }
        if self
            .high_fence()
            .is_some_and(|high| high <= self.low_fence())
        {
            return Err("fences out of order".into());
        }
        let (mut live, mut ghosts) = (0, 0);
        for slot in 0..count {
            let (record, suffix) = (
                self.record(slot),
                self.u16(SLOTS + slot * SLOT_BYTES + SLOT_SUFFIX_LENGTH),
            );
            let bytes = RECORD_HEADER_BYTES + suffix + self.u16(record);
            if record < heap_start || record + bytes > heap_end {
                return Err(format!("record of slot {slot} lies outside the heap"));
            }
            if self.0.u32_at(SLOTS + slot * SLOT_BYTES) != head_of(self.suffix(slot)) {
                return Err(format!("head of slot {slot} is not that of its suffix"));
            }
            if slot > 0 && self.suffix(slot - 1) >= self.suffix(slot) {
                return Err(format!("slots {} and {slot} are out of order", slot - 1));
            }
            live += bytes;
            ghosts += usize::from(self.is_ghost(slot));
        }
        if live + self.u16(DEAD_BYTES) != heap_end - heap_start {
            return Err(format!(
                "{live} live and {} dead bytes in a heap of {}",
                self.u16(DEAD_BYTES),
                heap_end - heap_start
            ));
        }
        if ghosts != self.ghost_count() {
            return Err(format!(
                "{ghosts} ghosts, header says {}",
                self.ghost_count()
            ));
        }
        if !self.is_leaf() && (count == 0 || !self.suffix(0).is_empty()) {
            return Err("inner node without a first child".into());
        }
        // A key equal to the low fence is allowed, one below it or at the high fence is not.
        if count > 0 && self.is_leaf() {
            let (first, last) = (self.key(0), self.key(count - 1));
            if first.as_slice() < self.low_fence()
                || self
                    .high_fence()
                    .is_some_and(|high| last.as_slice() >= high)
            {
                return Err("a key lies outside the fences".into());
            }
        }
        Ok(())
    }
}
