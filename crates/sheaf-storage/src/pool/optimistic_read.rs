//! Reading a page that another thread may be changing at this moment.
//!
//! An optimistic reader holds no latch, so it must not form a reference to the page: the bytes may change under it. It
//! reads through the functions here, which load aligned 64-bit words atomically and cut the wanted bytes out of them. A
//! load is never torn within a word, always lies within the page, and never traps; whether what was read makes sense is
//! for the caller's validation to say.
//!
//! What lies past the end of the page reads as zero. An offset can only point there if the page changed during the
//! reading, or if it is malformed; the caller finds out which after validating.

use std::cmp::Ordering as Comparison;
use std::sync::atomic::AtomicU64;

use crate::page::PAGE_SIZE;
use crate::sync::interleave;

const WORD: usize = size_of::<u64>();

/// Bytes that come from memory together, on most processors.
const CACHE_LINE_BYTES: usize = 64;

/// Asks memory for the line of an address and does not wait; a wrong address does no harm. Only where the instruction
/// is known.
#[inline(always)]
pub(crate) fn ask_for_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction changes nothing and never traps.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A relaxed load.
///
/// # Safety
/// `word` must be aligned and readable.
#[inline(always)]
unsafe fn load(word: *const AtomicU64) -> u64 {
    #[cfg(not(feature = "thread_sanitizer"))]
    {
        // SAFETY: the caller's promise.
        unsafe { (*word).load(std::sync::atomic::Ordering::Relaxed) }
    }
    // The same in a form that the sanitizer does not see: it would report every writer that an optimistic reader meets.
    #[cfg(feature = "thread_sanitizer")]
    {
        let loaded;
        // SAFETY: the caller's promise. This instruction of x86-64 loads an aligned word as a whole.
        unsafe {
            std::arch::asm!(
                "mov {}, qword ptr [{}]", out(reg) loaded, in(reg) word,
                options(nostack, preserves_flags, readonly),
            );
        }
        loaded
    }
}

/// A frame that may be changing.
#[derive(Clone, Copy)]
pub(crate) struct OptimisticPage(*const u8);

impl OptimisticPage {
    /// # Safety
    /// `frame` must be aligned to 8 bytes and stay mapped and readable for [`PAGE_SIZE`] bytes as long as the value is
    /// used.
    pub(crate) unsafe fn new(frame: *const u8) -> OptimisticPage {
        OptimisticPage(frame)
    }

    /// The aligned word that holds byte `offset`, which must lie in the page.
    #[inline(always)]
    fn word(self, offset: usize) -> u64 {
        debug_assert!(offset < PAGE_SIZE);
        let aligned = offset & (PAGE_SIZE - WORD);
        // SAFETY: `aligned` is a multiple of 8 below PAGE_SIZE, and `new`'s contract makes the frame readable there.
        // The load is atomic, so it may race with the page's writer and with a read from disk.
        let word = unsafe { load(self.0.add(aligned).cast()) };
        u64::from_le(word)
    }

    /// Eight bytes from `offset` on, without looking at bounds: bytes past the end of the page are arbitrary.
    #[inline(always)]
    fn window(self, offset: usize) -> u64 {
        let shift = (offset % WORD * 8) as u32;
        let low = self.word(offset);
        let high = self.word((offset + WORD).min(PAGE_SIZE - WORD));
        // Two shifts, because a shift by 64 is not allowed and gives not zero where it is.
        low >> shift | (high << 1) << (63 - shift)
    }

    /// The eight bytes at `offset`, a multiple of eight, as a little-endian integer; past the end of the page any.
    #[inline(always)]
    pub(crate) fn read_word(self, offset: usize) -> u64 {
        interleave();
        debug_assert!(offset.is_multiple_of(WORD));
        self.word(offset.min(PAGE_SIZE - WORD))
    }

    /// An unsigned little-endian integer of `N` bytes, 0 if it does not lie in the page.
    #[inline(always)]
    pub(crate) fn read<const N: usize>(self, offset: usize) -> u64 {
        interleave();
        if offset > PAGE_SIZE - N {
            return 0;
        }
        let window = self.window(offset);
        if N == WORD {
            window
        } else {
            window & ((1 << (N * 8)) - 1)
        }
    }

    /// Copies bytes from `offset` on; what lies past the end of the page becomes zero.
    #[inline]
    pub(crate) fn copy_out(self, offset: usize, into: &mut [u8]) {
        interleave();
        let available = PAGE_SIZE.saturating_sub(offset).min(into.len());
        let (inside, outside) = into.split_at_mut(available);
        outside.fill(0);
        let shift = (offset % WORD * 8) as u32;
        let mut position = offset;
        let mut words = inside.chunks_exact_mut(WORD);
        if shift == 0 {
            for chunk in &mut words {
                chunk.copy_from_slice(&self.word(position).to_le_bytes());
                position += WORD;
            }
        } else if words.len() > 0 {
            // Each aligned word is loaded once: its upper part ends one chunk, its lower part began the one before.
            let mut low = self.word(position);
            for chunk in &mut words {
                position += WORD;
                let high = self.word(position);
                chunk.copy_from_slice(&(low >> shift | high << (64 - shift)).to_le_bytes());
                low = high;
            }
        }
        let rest = words.into_remainder();
        if !rest.is_empty() {
            let bytes = self.window(position).to_le_bytes();
            let length = rest.len();
            rest.copy_from_slice(&bytes[..length]);
        }
    }

    /// Asks memory for the cache lines of the `length` bytes at `offset`, as far as they lie in the page, and does not
    /// wait.
    #[inline]
    pub(crate) fn ask_for(self, offset: usize, length: usize) {
        let end = (offset + length).min(PAGE_SIZE);
        for line in (offset..end).step_by(CACHE_LINE_BYTES) {
            // SAFETY: `line` lies in the page.
            ask_for_line(unsafe { self.0.add(line) });
        }
    }

    /// Orders the `length` bytes at `offset` against `other`, as memcmp does; a proper prefix comes first.
    #[inline]
    pub(crate) fn compare(self, offset: usize, length: usize, other: &[u8]) -> Comparison {
        interleave();
        let length = length.min(PAGE_SIZE.saturating_sub(offset));
        let common = length.min(other.len());
        let mut position = offset;
        // Both sides as big-endian integers, so that the first differing byte decides.
        let (words, rest) = other[..common].as_chunks::<WORD>();
        for word in words {
            let mine = self.window(position).swap_bytes();
            match mine.cmp(&u64::from_be_bytes(*word)) {
                Comparison::Equal => position += WORD,
                decided => return decided,
            }
        }
        if !rest.is_empty() {
            let mask = u64::MAX << ((WORD - rest.len()) * 8);
            let mine = self.window(position).swap_bytes() & mask;
            match mine.cmp(&upper_bytes(rest)) {
                Comparison::Equal => {}
                decided => return decided,
            }
        }
        length.cmp(&other.len())
    }
}

/// Up to eight bytes as the upper ones of a number that orders as they do; the others are zero. Without the call that a
/// copy of any length is.
#[inline]
pub(crate) fn upper_bytes(bytes: &[u8]) -> u64 {
    debug_assert!(bytes.len() <= WORD);
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // They overlap in bytes that both have.
        let first = u64::from(u32::from_be_bytes(*first)) << 32;
        let last = u64::from(u32::from_be_bytes(*last)) << (8 * (WORD - bytes.len()));
        return first | last;
    }
    let shifts = (0..WORD as u32).rev().map(|byte| 8 * byte);
    let placed = bytes.iter().zip(shifts);
    placed.fold(0, |number, (byte, shift)| {
        number | u64::from(*byte) << shift
    })
}

/// Orders strings as `cmp` does. Keys are short, and often differ in their first bytes: that is decided without a call.
#[inline]
pub(crate) fn compare_bytes(left: &[u8], right: &[u8]) -> Comparison {
    let common = left.len().min(right.len());
    let (left_words, left_rest) = left[..common].as_chunks::<WORD>();
    let (right_words, right_rest) = right[..common].as_chunks::<WORD>();
    for (one, other) in left_words.iter().zip(right_words) {
        match u64::from_be_bytes(*one).cmp(&u64::from_be_bytes(*other)) {
            Comparison::Equal => {}
            decided => return decided,
        }
    }
    upper_bytes(left_rest)
        .cmp(&upper_bytes(right_rest))
        .then(left.len().cmp(&right.len()))
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;
    use crate::page::Page;
    use proptest::prelude::*;

    fn filled() -> Box<Page> {
        let mut page = Page::zeroed();
        for (i, byte) in page.iter_mut().enumerate() {
            *byte = (i * 7 + i / 251) as u8;
        }
        page
    }

    fn unlatched(page: &Page) -> OptimisticPage {
        // SAFETY: the page outlives the tests' use of the value, and Page is aligned to 4096 bytes.
        unsafe { OptimisticPage::new(page.bytes().as_ptr()) }
    }

    #[test]
    fn integers_read_like_slices_at_every_offset() {
        let page = filled();
        let reader = unlatched(&page);
        for offset in (0..PAGE_SIZE).step_by(WORD) {
            assert_eq!(reader.read_word(offset), page.u64_at(offset));
        }
        for offset in (0..64).chain(PAGE_SIZE - 64..PAGE_SIZE - 7) {
            assert_eq!(reader.read::<1>(offset), u64::from(page[offset]));
            assert_eq!(reader.read::<2>(offset), u64::from(page.u16_at(offset)));
            assert_eq!(reader.read::<4>(offset), u64::from(page.u32_at(offset)));
            assert_eq!(reader.read::<8>(offset), page.u64_at(offset));
        }
    }

    #[test]
    fn what_does_not_lie_in_the_page_reads_as_zero() {
        let page = filled();
        let reader = unlatched(&page);
        assert_eq!(reader.read::<8>(PAGE_SIZE - 7), 0);
        assert_eq!(reader.read::<1>(PAGE_SIZE), 0);
        assert_eq!(reader.read::<2>(usize::MAX), 0);
        let mut bytes = [9; 10];
        reader.copy_out(PAGE_SIZE - 4, &mut bytes);
        assert_eq!(bytes[..4], page[PAGE_SIZE - 4..]);
        assert_eq!(bytes[4..], [0; 6]);
        reader.copy_out(usize::MAX, &mut bytes);
        assert_eq!(bytes, [0; 10]);
        assert_eq!(reader.compare(PAGE_SIZE, 5, b"a"), Comparison::Less);
    }

    proptest! {
        #[test]
        fn copies_and_comparisons_agree_with_slices(
            offset in 0..PAGE_SIZE - 64,
            length in 0..40usize,
            other in 0..40usize,
            changed in 0..40usize,
            by in any::<u8>(),
        ) {
            let page = filled();
            let reader = unlatched(&page);
            let mut copy = vec![0; length];
            reader.copy_out(offset, &mut copy);
            prop_assert_eq!(&copy[..], &page[offset..offset + length]);
            let mut key = page[offset..offset + other].to_vec();
            if let Some(byte) = key.get_mut(changed) {
                *byte ^= by;
            }
            prop_assert_eq!(
                reader.compare(offset, length, &key),
                page[offset..offset + length].cmp(&key[..])
            );
            prop_assert_eq!(
                compare_bytes(&page[offset..offset + length], &key),
                page[offset..offset + length].cmp(&key[..])
            );
        }
    }
}
