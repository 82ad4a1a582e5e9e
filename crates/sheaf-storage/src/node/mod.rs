//! The node: how one page holds a sorted run of entries.
//!
//! ```text
//! page header | node header | slots, ascending ->        free        <- heap of records | high fence | low fence |
//! ```
//!
//! *Slots* are 8 bytes each and sorted by key. *Records* (value length, key suffix, value) lie in the heap in any
//! order. The *fences* bound the keys that may ever come to this node: `low <= key < high`. All keys between two
//! fences share the fences' common prefix, so no record stores it: a key is `prefix ++ suffix`, and the prefix is
//! read from the low fence. Fences are also what makes sibling pointers unnecessary: the next node is found by
//! descending again with the high fence.
//!
//! A slot carries the first four bytes of its suffix as a number, the *head*. So most steps of a binary search compare
//! two integers in the slot array and do not touch the heap (Graefe, "Modern B-Tree Techniques", 2011).
//!
//! In a leaf an entry is a key and its value. In an inner node it is a separator and a child: the child covers the
//! keys from its separator up to the next one. The first separator of an inner node is its low fence and is stored
//! as an empty suffix.
//!
//! A deleted entry stays as a *ghost*: a bit in its slot, counted in the page header.
//!
//! Two readers share the search: [`Node`] over bytes that cannot change, and [`NodeView`] over an optimistic guard,
//! whose bytes may be torn at any moment. The latter reads bounded words, clamps every count and offset, and leaves
//! it to the caller to validate before it believes anything.

mod check;

use std::cmp::Ordering;
use std::ops::Range;

use crate::page::{
    PAGE_HEADER_BYTES, PAGE_SIZE, PAGE_TYPE_HEADER_OFFSET, PageId, PageType, header,
};
use crate::pool::guard::OptimisticGuard;
use crate::pool::optimistic_read::{compare_bytes, upper_bytes};

/// Longest key of an entry, in bytes. An inner node has room for two children, whatever their separators and its
/// fences are.
pub const MAX_KEY_BYTES: usize = 4880;

/// Longest entry (key and value together), in bytes, unless its key is so long that [`value_limit`] allows more. Four
/// fill a page.
pub const MAX_ENTRY_BYTES: usize = 4000;

/// Bytes that a value may have beside a key of any length.
pub const MIN_VALUE_LIMIT: usize = 1640;

/// Longest value beside a key of `key_bytes`, in bytes. The largest entry and the longest fences fit in a page, so a
/// split always makes room.
pub const fn value_limit(key_bytes: usize) -> usize {
    let beside = MAX_ENTRY_BYTES.saturating_sub(key_bytes);
    if beside > MIN_VALUE_LIMIT {
        beside
    } else {
        MIN_VALUE_LIMIT
    }
}

const _: () = assert!(2 * MAX_KEY_BYTES + largest_entry_bytes() <= NODE_CAPACITY);
const _: () = assert!(3 * MAX_KEY_BYTES + 2 * entry_bytes(0, size_of::<u64>()) <= NODE_CAPACITY);

/// Bytes of a page, as nodes see them.
pub(crate) type PageImage = [u8; PAGE_SIZE];

/// Offset of each field of the node header; docs/file-format.md tells the same.
const COUNT: usize = PAGE_TYPE_HEADER_OFFSET;
const GHOST_COUNT: usize = PAGE_TYPE_HEADER_OFFSET + 2;
const PREFIX_LENGTH: usize = PAGE_TYPE_HEADER_OFFSET + 4;
const HEAP_START: usize = PAGE_TYPE_HEADER_OFFSET + 6;
const DEAD_BYTES: usize = PAGE_TYPE_HEADER_OFFSET + 8;
const LOW_FENCE_LENGTH: usize = PAGE_TYPE_HEADER_OFFSET + 10;
const HIGH_FENCE_LENGTH: usize = PAGE_TYPE_HEADER_OFFSET + 12;
const SLOTS: usize = PAGE_HEADER_BYTES;

/// Page flag: the node has a high fence; without it the node is the rightmost of its level.
const HAS_HIGH_FENCE: u16 = 1;

/// A slot: head (4), record offset with the ghost bit (2), suffix length (2).
pub(crate) const SLOT_BYTES: usize = 8;
const SLOT_OFFSET: usize = 4;
const SLOT_SUFFIX_LENGTH: usize = 6;
const GHOST_BIT: u16 = 1 << 15;

/// Slots that are all asked for ahead, as they lie in few cache lines.
const SLOTS_ASKED_FOR: usize = 128;

/// A record's own header: the value's length.
pub(crate) const RECORD_HEADER_BYTES: usize = 2;

/// More slots than this fit in no node.
pub(crate) const MAX_SLOTS: usize = (PAGE_SIZE - SLOTS) / (SLOT_BYTES + RECORD_HEADER_BYTES);

/// Bytes that fences and entries share.
pub(crate) const NODE_CAPACITY: usize = PAGE_SIZE - SLOTS;

/// Highest tree, in levels: far beyond what 2^64 pages need, so a longer descent is a sign of corruption. Only keys
/// that were chosen for it, which are long and differ in their last bytes, would lead to more.
pub(crate) const MAX_HEIGHT: usize = 24;

/// Bytes that an entry takes from a node.
pub(crate) const fn entry_bytes(suffix_length: usize, value_length: usize) -> usize {
    SLOT_BYTES + RECORD_HEADER_BYTES + suffix_length + value_length
}

const fn largest_entry_bytes() -> usize {
    entry_bytes(MAX_KEY_BYTES, value_limit(MAX_KEY_BYTES))
}

/// The first four bytes as a number that orders as they do; shorter strings are padded with zeros.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => (upper_bytes(suffix) >> 32) as u32,
    }
}

/// Length of what `a` and `b` have in common at their beginning.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let length = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= length {
        let x = u64::from_le_bytes(a[at..at + 8].try_into().expect("eight bytes"));
        let y = u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"));
        if x != y {
            return at + ((x ^ y).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < length && a[at] == b[at] {
        at += 1;
    }
    at
}

/// Length of what `a` and `b`, which are of the same length, have in common at their end.
pub(crate) fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    debug_assert_eq!(a.len(), b.len());
    let length = a.len().min(b.len());
    let mut at = length;
    while at >= 8 {
        let x = u64::from_le_bytes(a[at - 8..at].try_into().expect("eight bytes"));
        let y = u64::from_le_bytes(b[at - 8..at].try_into().expect("eight bytes"));
        if x != y {
            return length - at + ((x ^ y).leading_zeros() / 8) as usize;
        }
        at -= 8;
    }
    while at > 0 && a[at - 1] == b[at - 1] {
        at -= 1;
    }
    length - at
}

/// The shortest key that separates `left` from `right`: greater than `left`, at most `right`.
pub(crate) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    debug_assert!(left < right);
    &right[..common_prefix(left, right) + 1]
}

/// Word access to a page whose bytes may be changing. Reads out of bounds give any value, never a panic.
pub(crate) trait PageBytes {
    fn u8_at(&self, offset: usize) -> u8;
    fn u16_at(&self, offset: usize) -> u16;
    fn u32_at(&self, offset: usize) -> u32;
    fn u64_at(&self, offset: usize) -> u64;
    /// As `u64_at`, for a multiple of eight.
    fn word_at(&self, offset: usize) -> u64;
    /// Compares `length` bytes at `offset` with `other`.
    fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Ordering;
    /// Fills `into` with the bytes from `offset` on.
    fn copy(&self, offset: usize, into: &mut [u8]);
}

impl PageBytes for OptimisticGuard<'_> {
    #[inline]
    fn u8_at(&self, offset: usize) -> u8 {
        self.read_u8(offset)
    }

    #[inline]
    fn u16_at(&self, offset: usize) -> u16 {
        self.read_u16(offset)
    }

    #[inline]
    fn u32_at(&self, offset: usize) -> u32 {
        self.read_u32(offset)
    }

    #[inline]
    fn u64_at(&self, offset: usize) -> u64 {
        self.read_u64(offset)
    }

    #[inline]
    fn word_at(&self, offset: usize) -> u64 {
        self.read_word(offset)
    }

    #[inline]
    fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Ordering {
        OptimisticGuard::compare(self, offset, length, other)
    }

    fn copy(&self, offset: usize, into: &mut [u8]) {
        self.copy_out(offset, into);
    }
}

impl PageBytes for PageImage {
    #[inline]
    fn u8_at(&self, offset: usize) -> u8 {
        self.get(offset).copied().unwrap_or(0)
    }

    #[inline]
    fn u16_at(&self, offset: usize) -> u16 {
        self.get(offset..offset + 2).map_or(0, |bytes| {
            u16::from_le_bytes(bytes.try_into().expect("two bytes"))
        })
    }

    #[inline]
    fn u32_at(&self, offset: usize) -> u32 {
        self.get(offset..offset + 4).map_or(0, |bytes| {
            u32::from_le_bytes(bytes.try_into().expect("four bytes"))
        })
    }

    #[inline]
    fn u64_at(&self, offset: usize) -> u64 {
        self.get(offset..offset + 8).map_or(0, |bytes| {
            u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
        })
    }

    #[inline]
    fn word_at(&self, offset: usize) -> u64 {
        self.u64_at(offset)
    }

    #[inline]
    fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Ordering {
        compare_bytes(self.get(offset..offset + length).unwrap_or(&[]), other)
    }

    fn copy(&self, offset: usize, into: &mut [u8]) {
        if let Some(bytes) = self.get(offset..offset + into.len()) {
            into.copy_from_slice(bytes);
        }
    }
}

/// Where a key is, or where it would be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub slot: usize,
    pub found: bool,
}

/// A node read by words, perhaps while it changes. Nothing it says counts until the guard has been validated.
pub(crate) struct NodeView<'a, P>(pub &'a P);

impl<P: PageBytes> NodeView<'_, P> {
    #[inline]
    pub fn level(&self) -> u8 {
        self.0.u8_at(header::LEVEL)
    }

    #[inline]
    pub fn count(&self) -> usize {
        (self.0.u16_at(COUNT) as usize).min(MAX_SLOTS)
    }

    #[inline]
    fn prefix_length(&self) -> usize {
        self.0.u16_at(PREFIX_LENGTH) as usize
    }

    /// Offset and length of the low fence, within the page.
    fn low_fence_extent(&self) -> (usize, usize) {
        let length = (self.0.u16_at(LOW_FENCE_LENGTH) as usize).min(PAGE_SIZE);
        (PAGE_SIZE - length, length)
    }

    /// Offset and length of the high fence, within the page; none on the rightmost node of a level.
    fn high_fence_extent(&self) -> Option<(usize, usize)> {
        if self.0.u16_at(header::FLAGS) & HAS_HIGH_FENCE == 0 {
            return None;
        }
        let (low, _) = self.low_fence_extent();
        let length = (self.0.u16_at(HIGH_FENCE_LENGTH) as usize).min(low);
        Some((low - length, length))
    }

    /// Whether `low fence <= key < high fence`.
    pub fn covers(&self, key: &[u8]) -> bool {
        self.compare_low_fence(key) != Ordering::Greater && self.is_below_high_fence(key)
    }

    /// How the low fence compares with `key`.
    pub fn compare_low_fence(&self, key: &[u8]) -> Ordering {
        let (offset, length) = self.low_fence_extent();
        self.0.compare(offset, length, key)
    }

    /// Whether `key` lies below the high fence.
    pub fn is_below_high_fence(&self, key: &[u8]) -> bool {
        self.high_fence_extent()
            .is_none_or(|(offset, length)| self.0.compare(offset, length, key) == Ordering::Greater)
    }

    /// Replaces `fence` by the high fence; false if there is none.
    pub fn high_fence_into(&self, fence: &mut Vec<u8>) -> bool {
        fence.clear();
        let Some((offset, length)) = self.high_fence_extent() else {
            return false;
        };
        fence.resize(length, 0);
        self.0.copy(offset, fence);
        true
    }

    /// Replaces `fence` by the low fence.
    pub fn low_fence_into(&self, fence: &mut Vec<u8>) {
        let (offset, length) = self.low_fence_extent();
        fence.clear();
        fence.resize(length, 0);
        self.0.copy(offset, fence);
    }

    /// Replaces `key` by the key of `slot`; not for the first slot of an inner node.
    pub fn key_into(&self, slot: usize, key: &mut Vec<u8>) {
        let (low, low_length) = self.low_fence_extent();
        let prefix = self.prefix_length().min(low_length);
        let suffix = self.suffix_length(slot).min(PAGE_SIZE);
        key.clear();
        key.resize(prefix + suffix, 0);
        let (front, back) = key.split_at_mut(prefix);
        self.0.copy(low, front);
        self.0.copy(self.record(slot) + RECORD_HEADER_BYTES, back);
    }

    #[inline]
    fn slot(slot: usize) -> usize {
        SLOTS + slot * SLOT_BYTES
    }

    #[inline]
    fn suffix_length(&self, slot: usize) -> usize {
        self.0.u16_at(Self::slot(slot) + SLOT_SUFFIX_LENGTH) as usize
    }

    #[inline]
    fn record(&self, slot: usize) -> usize {
        (self.0.u16_at(Self::slot(slot) + SLOT_OFFSET) & !GHOST_BIT) as usize
    }

    pub fn is_ghost(&self, slot: usize) -> bool {
        self.0.u16_at(Self::slot(slot) + SLOT_OFFSET) & GHOST_BIT != 0
    }

    /// Offset and length of the value in the page, clamped to the page.
    pub fn value_extent(&self, slot: usize) -> (usize, usize) {
        let record = self.record(slot);
        let offset = (record + RECORD_HEADER_BYTES + self.suffix_length(slot)).min(PAGE_SIZE);
        (
            offset,
            (self.0.u16_at(record) as usize).min(PAGE_SIZE - offset),
        )
    }

    /// Copies header, fences, and these slots with their records to where they are in the page. The rest of `page`
    /// stays as it is.
    pub fn copy_entries(&self, slots: Range<usize>, page: &mut PageImage) {
        let mut copy = |from: usize, to: usize| {
            let to = to.min(PAGE_SIZE);
            if let Some(bytes) = page.get_mut(from..to) {
                self.0.copy(from, bytes);
            }
        };
        copy(0, SLOTS);
        let (low_fence, _) = self.low_fence_extent();
        let fences = self.high_fence_extent().map_or(low_fence, |(high, _)| high);
        copy(fences, PAGE_SIZE);
        copy(Self::slot(slots.start), Self::slot(slots.end));
        for slot in slots {
            let (value, length) = self.value_extent(slot);
            copy(self.record(slot), value + length);
        }
    }

    /// Compares the suffix in `slot` with `suffix`, of which `head` is the head.
    #[inline]
    fn compare_suffix(&self, slot: usize, suffix: &[u8], head: u32) -> Ordering {
        // The slot in one load: its head, where its record is, and the suffix's length.
        let slot = self.0.word_at(Self::slot(slot));
        let own = slot as u32;
        if own != head {
            return own.cmp(&head);
        }
        let length = (slot >> (8 * SLOT_SUFFIX_LENGTH)) as usize;
        let record = (slot >> (8 * SLOT_OFFSET)) as u16 & !GHOST_BIT;
        if length <= 4 || suffix.len() <= 4 {
            // Equal heads mean equal bytes up to the shorter of both, and zeros after it: the shorter comes first.
            return length.cmp(&suffix.len());
        }
        self.0.compare(
            record as usize + RECORD_HEADER_BYTES + 4,
            length - 4,
            &suffix[4..],
        )
    }

    /// The first slot, from `from` on, whose key is not less than `key`.
    #[inline]
    pub fn lower_bound_from(&self, from: usize, key: &[u8]) -> Position {
        // A key outside the fences has no business here; on a torn page the answer does not matter.
        let suffix = key.get(self.prefix_length()..).unwrap_or(&[]);
        let head = head_of(suffix);
        let (mut low, mut high) = (from, self.count());
        while low < high {
            let middle = (low + high) / 2;
            match self.compare_suffix(middle, suffix, head) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    return Position {
                        slot: middle,
                        found: true,
                    };
                }
            }
        }
        Position {
            slot: low,
            found: false,
        }
    }

    /// The first slot whose key is not less than `key`.
    pub fn lower_bound(&self, key: &[u8]) -> Position {
        self.lower_bound_from(0, key)
    }

    /// In an inner node: the slot of the child that covers `key`.
    #[inline]
    pub fn child_slot(&self, key: &[u8]) -> usize {
        let position = self.lower_bound_from(1, key);
        if position.found {
            position.slot
        } else {
            position.slot - 1
        }
    }

    /// In an inner node: the slot of the last child that covers keys below `key`.
    pub fn child_slot_before(&self, key: &[u8]) -> usize {
        self.lower_bound_from(1, key).slot - 1
    }

    /// In an inner node: the child in `slot`.
    #[inline]
    pub fn child(&self, slot: usize) -> PageId {
        PageId(
            self.0
                .u64_at(self.record(slot) + RECORD_HEADER_BYTES + self.suffix_length(slot)),
        )
    }
}

impl NodeView<'_, OptimisticGuard<'_>> {
    /// Asks memory for the slots that a search looks at first, and does not wait.
    #[inline]
    pub fn ask_for_slots(&self) {
        let count = self.count();
        if count <= SLOTS_ASKED_FOR {
            self.0.ask_for(SLOTS, count * SLOT_BYTES);
        } else {
            // Those of the first three steps.
            for eighth in 1..8 {
                self.0.ask_for(Self::slot(count * eighth / 8), 1);
            }
        }
    }

    /// Asks memory for the first bytes of the record of a slot, and does not wait.
    #[inline]
    pub fn ask_for_record(&self, slot: usize, length: usize) {
        self.0.ask_for(self.record(slot), length);
    }

    /// Asks memory for the header and the fences, and does not wait.
    #[inline]
    pub fn ask_for_header(&self) {
        self.0.ask_for(0, SLOTS);
        self.0.ask_for(PAGE_SIZE - 1, 1);
    }
}

/// A node whose bytes cannot change while it is borrowed: a latched page or a private copy.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a>(pub &'a PageImage);

impl<'a> Node<'a> {
    fn u16(&self, offset: usize) -> usize {
        self.0.u16_at(offset) as usize
    }

    pub fn view(&self) -> NodeView<'a, PageImage> {
        NodeView(self.0)
    }

    /// 0 is a leaf.
    pub fn level(&self) -> u8 {
        self.0[header::LEVEL]
    }

    pub fn is_leaf(&self) -> bool {
        self.level() == 0
    }

    pub fn count(&self) -> usize {
        self.u16(COUNT)
    }

    pub fn ghost_count(&self) -> usize {
        self.u16(GHOST_COUNT)
    }

    pub fn low_fence(&self) -> &'a [u8] {
        &self.0[PAGE_SIZE - self.u16(LOW_FENCE_LENGTH)..]
    }

    /// None: the node is the rightmost of its level.
    pub fn high_fence(&self) -> Option<&'a [u8]> {
        if self.0.u16_at(header::FLAGS) & HAS_HIGH_FENCE == 0 {
            return None;
        }
        let end = PAGE_SIZE - self.u16(LOW_FENCE_LENGTH);
        Some(&self.0[end - self.u16(HIGH_FENCE_LENGTH)..end])
    }

    pub fn prefix(&self) -> &'a [u8] {
        &self.low_fence()[..self.u16(PREFIX_LENGTH)]
    }

    fn record(&self, slot: usize) -> usize {
        self.u16(SLOTS + slot * SLOT_BYTES + SLOT_OFFSET) & !GHOST_BIT as usize
    }

    #[inline]
    pub fn suffix(&self, slot: usize) -> &'a [u8] {
        let start = self.record(slot) + RECORD_HEADER_BYTES;
        &self.0[start..start + self.u16(SLOTS + slot * SLOT_BYTES + SLOT_SUFFIX_LENGTH)]
    }

    #[inline]
    pub fn value(&self, slot: usize) -> &'a [u8] {
        let record = self.record(slot);
        let start =
            record + RECORD_HEADER_BYTES + self.u16(SLOTS + slot * SLOT_BYTES + SLOT_SUFFIX_LENGTH);
        &self.0[start..start + self.u16(record)]
    }

    #[inline]
    pub fn is_ghost(&self, slot: usize) -> bool {
        self.u16(SLOTS + slot * SLOT_BYTES + SLOT_OFFSET) & GHOST_BIT as usize != 0
    }

    /// In an inner node: the child in `slot`.
    pub fn child(&self, slot: usize) -> PageId {
        self.view().child(slot)
    }

    /// Clears `key` and writes the key of `slot` to it: of a leaf's entry, or the separator of an inner node.
    pub fn key_into(&self, slot: usize, key: &mut Vec<u8>) {
        key.clear();
        if slot == 0 && !self.is_leaf() {
            key.extend_from_slice(self.low_fence());
        } else {
            key.extend_from_slice(self.prefix());
            key.extend_from_slice(self.suffix(slot));
        }
    }

    /// The key of `slot`, as [`key_into`](Self::key_into).
    pub fn key(&self, slot: usize) -> Vec<u8> {
        let mut key = Vec::new();
        self.key_into(slot, &mut key);
        key
    }

    /// Bytes between the slots and the heap.
    fn gap(&self) -> usize {
        let (slots_end, heap_start) = self.gap_extent();
        heap_start - slots_end
    }

    /// Where the slots end, and where the heap begins. What lies between means nothing.
    pub fn gap_extent(&self) -> (usize, usize) {
        (SLOTS + self.count() * SLOT_BYTES, self.u16(HEAP_START))
    }

    /// Bytes that new entries can take, compaction included.
    pub fn free_bytes(&self) -> usize {
        self.gap() + self.u16(DEAD_BYTES)
    }

    /// Bytes that fences and entries take.
    pub fn used_bytes(&self) -> usize {
        NODE_CAPACITY - self.free_bytes()
    }

    /// Bytes of the entry in `slot`.
    pub fn entry_bytes(&self, slot: usize) -> usize {
        entry_bytes(self.suffix(slot).len(), self.value(slot).len())
    }
}

/// A node that is being changed. Callers have checked that what they ask for fits.
pub(crate) struct NodeMut<'a>(pub &'a mut PageImage);

impl NodeMut<'_> {
    pub fn node(&self) -> Node<'_> {
        Node(self.0)
    }

    fn set_u16(&mut self, offset: usize, value: usize) {
        let value = u16::try_from(value).expect("node fields are smaller than a page");
        self.0[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Makes an empty node. The page's number, tree and LSN are not touched.
    pub fn format(&mut self, level: u8, low_fence: &[u8], high_fence: Option<&[u8]>) {
        self.0[PAGE_TYPE_HEADER_OFFSET..].fill(0);
        let high = high_fence.unwrap_or(&[]);
        let low_start = PAGE_SIZE - low_fence.len();
        let high_start = low_start - high.len();
        let page_type = if level == 0 {
            PageType::LEAF
        } else {
            PageType::INNER
        };
        let flags = if high_fence.is_some() {
            HAS_HIGH_FENCE
        } else {
            0
        };
        self.0[header::PAGE_TYPE] = page_type.0;
        self.0[header::LEVEL] = level;
        self.0[header::FLAGS..header::FLAGS + 2].copy_from_slice(&flags.to_le_bytes());
        self.0[low_start..].copy_from_slice(low_fence);
        self.0[high_start..low_start].copy_from_slice(high);
        self.set_u16(
            PREFIX_LENGTH,
            high_fence.map_or(0, |high| common_prefix(low_fence, high)),
        );
        self.set_u16(HEAP_START, high_start);
        self.set_u16(LOW_FENCE_LENGTH, low_fence.len());
        self.set_u16(HIGH_FENCE_LENGTH, high.len());
    }

    /// Puts an entry into `slot`, whose suffix comes in two parts; later slots move up.
    pub fn insert_parts(
        &mut self,
        slot: usize,
        front: &[u8],
        back: &[u8],
        value: &[u8],
        ghost: bool,
    ) {
        let suffix_length = front.len() + back.len();
        let record_bytes = RECORD_HEADER_BYTES + suffix_length + value.len();
        if self.node().gap() < SLOT_BYTES + record_bytes {
            self.compact();
        }
        let count = self.node().count();
        let start = self.node().u16(HEAP_START) - record_bytes;
        let slot_at = SLOTS + slot * SLOT_BYTES;
        let slots_end = SLOTS + count * SLOT_BYTES;
        assert!(
            slot <= count && start >= slots_end + SLOT_BYTES,
            "entry does not fit the node"
        );

        self.write_record(start, front, back, value);
        let head = head_of(
            &self.0[start + RECORD_HEADER_BYTES..start + RECORD_HEADER_BYTES + suffix_length],
        );
        self.0.copy_within(slot_at..slots_end, slot_at + SLOT_BYTES);
        self.0[slot_at..slot_at + 4].copy_from_slice(&head.to_le_bytes());
        self.set_u16(
            slot_at + SLOT_OFFSET,
            start | if ghost { GHOST_BIT as usize } else { 0 },
        );
        self.set_u16(slot_at + SLOT_SUFFIX_LENGTH, suffix_length);
        self.set_u16(HEAP_START, start);
        self.set_u16(COUNT, count + 1);
        if ghost {
            self.set_u16(GHOST_COUNT, self.node().ghost_count() + 1);
        }
    }

    pub fn insert(&mut self, slot: usize, suffix: &[u8], value: &[u8], ghost: bool) {
        self.insert_parts(slot, suffix, &[], value, ghost);
    }

    /// Adds an entry after all others.
    pub fn push(&mut self, suffix: &[u8], value: &[u8]) {
        self.insert_parts(self.node().count(), suffix, &[], value, false);
    }

    fn write_record(&mut self, start: usize, front: &[u8], back: &[u8], value: &[u8]) {
        self.set_u16(start, value.len());
        let mut at = start + RECORD_HEADER_BYTES;
        for part in [front, back, value] {
            self.0[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    }

    /// Adds copies of entries of another node, whose keys are greater than all here. Prefixes may differ.
    pub fn push_from(&mut self, source: Node<'_>, slots: std::ops::Range<usize>) {
        let own_prefix = self.node().prefix().len();
        let source_prefix = source.prefix();
        for slot in slots {
            let mut key = [source_prefix, source.suffix(slot)];
            if slot == 0 && !source.is_leaf() {
                // The first separator is the low fence, stored as nothing.
                key = [source.low_fence(), &[]];
            }
            if !source.is_leaf() && self.node().count() == 0 {
                key = [&[], &[]];
            } else {
                let mut skip = own_prefix;
                for part in &mut key {
                    let skipped = skip.min(part.len());
                    *part = &part[skipped..];
                    skip -= skipped;
                }
            }
            self.insert_parts(
                self.node().count(),
                key[0],
                key[1],
                source.value(slot),
                source.is_ghost(slot),
            );
        }
    }

    /// Takes the entry out of `slot`; later slots move down.
    pub fn remove(&mut self, slot: usize) {
        let node = self.node();
        let count = node.count();
        assert!(slot < count, "no such slot");
        let record_bytes = node.entry_bytes(slot) - SLOT_BYTES;
        let ghosts = node.ghost_count() - usize::from(node.is_ghost(slot));
        let record = node.record(slot);
        let slot_at = SLOTS + slot * SLOT_BYTES;
        self.0
            .copy_within(slot_at + SLOT_BYTES..SLOTS + count * SLOT_BYTES, slot_at);
        self.set_u16(COUNT, count - 1);
        self.set_u16(GHOST_COUNT, ghosts);
        self.release_record(record, record_bytes);
    }

    /// Gives a record's bytes back: to the gap if it is the lowest of the heap, else as dead bytes.
    fn release_record(&mut self, record: usize, bytes: usize) {
        let heap_start = self.node().u16(HEAP_START);
        if record == heap_start {
            self.set_u16(HEAP_START, heap_start + bytes);
        } else {
            self.set_u16(DEAD_BYTES, self.node().u16(DEAD_BYTES) + bytes);
        }
    }

    pub fn set_ghost(&mut self, slot: usize, ghost: bool) {
        let node = self.node();
        let (record, ghosts) = (
            node.record(slot),
            node.ghost_count() - usize::from(node.is_ghost(slot)),
        );
        self.set_u16(
            SLOTS + slot * SLOT_BYTES + SLOT_OFFSET,
            record | if ghost { GHOST_BIT as usize } else { 0 },
        );
        self.set_u16(GHOST_COUNT, ghosts + usize::from(ghost));
    }

    /// Replaces the value in `slot`.
    pub fn set_value(&mut self, slot: usize, value: &[u8]) {
        let node = self.node();
        let (record, old_length) = (node.record(slot), node.value(slot).len());
        let suffix_length = node.suffix(slot).len();
        let value_at = record + RECORD_HEADER_BYTES + suffix_length;
        if value.len() <= old_length {
            self.set_u16(record, value.len());
            self.0[value_at..value_at + value.len()].copy_from_slice(value);
            self.set_u16(
                DEAD_BYTES,
                self.node().u16(DEAD_BYTES) + old_length - value.len(),
            );
            return;
        }
        let mut suffix = [0; MAX_KEY_BYTES];
        suffix[..suffix_length].copy_from_slice(node.suffix(slot));
        let ghost = node.is_ghost(slot);
        self.remove(slot);
        self.insert(slot, &suffix[..suffix_length], value, ghost);
    }

    /// Overwrites a part of a value, which keeps its length.
    pub fn change_value(&mut self, slot: usize, start: usize, bytes: &[u8]) {
        let node = self.node();
        assert!(
            start + bytes.len() <= node.value(slot).len(),
            "the value is not so long"
        );
        let value_at = node.record(slot) + RECORD_HEADER_BYTES + node.suffix(slot).len();
        self.0[value_at + start..value_at + start + bytes.len()].copy_from_slice(bytes);
    }

    /// Keeps the first `count` entries and takes `high_fence` as the new upper bound.
    pub fn truncate(&mut self, count: usize, high_fence: &[u8]) {
        let old = *self.0;
        let source = Node(&old);
        self.format(source.level(), source.low_fence(), Some(high_fence));
        self.push_from(source, 0..count);
    }

    /// Takes all ghosts out.
    pub fn purge_ghosts(&mut self) {
        let old = *self.0;
        let source = Node(&old);
        self.format(source.level(), source.low_fence(), source.high_fence());
        for slot in (0..source.count()).filter(|&slot| !source.is_ghost(slot)) {
            self.push_from(source, slot..slot + 1);
        }
    }

    /// Rewrites the heap without dead bytes.
    fn compact(&mut self) {
        let old = *self.0;
        let source = Node(&old);
        self.format(source.level(), source.low_fence(), source.high_fence());
        self.push_from(source, 0..source.count());
    }
}

/// The slot from which on entries move to a new right sibling when a node splits, and the key that separates both.
///
/// Cuts near the middle by bytes; within a tenth of the node around it, the shortest separator wins, because
/// separators fill the inner nodes.
pub(crate) fn split_position(node: Node<'_>) -> (usize, Vec<u8>) {
    let count = node.count();
    assert!(count >= 2, "a node with one entry has room for another");
    let total: usize = (0..count).map(|slot| node.entry_bytes(slot)).sum();
    let tolerance = NODE_CAPACITY / 20;
    let mut left = 0;
    let mut best: Option<(bool, usize, usize, usize)> = None;
    for slot in 1..count {
        left += node.entry_bytes(slot - 1);
        let distance = left.abs_diff(total / 2);
        let length = if node.is_leaf() {
            common_prefix(node.suffix(slot - 1), node.suffix(slot)) + 1
        } else {
            node.suffix(slot).len()
        };
        let near = distance <= tolerance;
        let rank = if near {
            (false, length, distance, slot)
        } else {
            (true, distance, length, slot)
        };
        if best.is_none_or(|best| rank < best) {
            best = Some(rank);
        }
    }
    let (_, _, _, slot) = best.expect("at least one cut");
    let key = node.key(slot);
    let separator = if node.is_leaf() {
        separator(&node.key(slot - 1), &key).to_vec()
    } else {
        key
    };
    (slot, separator)
}

#[cfg(test)]
mod tests;
