//! The frame arena: the memory that pages are read into.
//!
//! It is one mapping, page-aligned as direct I/O wants it, and made when the pool opens. The pool, and every disk
//! operation that is still moving bytes, hold it by `Arc`; the last of them to drop it unmaps it. Frames are never
//! unmapped while the arena lives, because a reader without a latch may look at a frame that has just been given to
//! another page. It sees bytes that make no sense, and its validation fails.
//!
//! The last frame is scratch: reads that bridge a gap between wanted pages drop the unwanted ones there.

use std::io;
use std::ptr::NonNull;

use crate::error::{Result, StorageError};
use crate::page::{PAGE_SIZE, Page};

/// The number of a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId(pub(crate) u32);

/// From this size on the arena asks for huge pages; below, rounding up to them would matter.
const HUGE_PAGE_ARENA_BYTES: usize = 64 << 20;

/// Page-sized pieces of memory.
pub struct FrameArena {
    base: NonNull<u8>,
    frames: usize,
}

// SAFETY: the arena only hands out raw pointers; the page latches decide which thread may use them, and how.
unsafe impl Send for FrameArena {}
// SAFETY: as above.
unsafe impl Sync for FrameArena {}

impl FrameArena {
    /// Bytes an arena of `frames` frames takes.
    pub(crate) fn bytes_for(frames: usize) -> usize {
        (frames + 1) * PAGE_SIZE
    }

    /// Maps the memory of `frames` frames and one scratch frame, all zero.
    pub(crate) fn new(frames: usize) -> Result<FrameArena> {
        let bytes = Self::bytes_for(frames);
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let base = NonNull::new(base.cast::<u8>())
            .filter(|base| base.as_ptr().cast() != libc::MAP_FAILED)
            .ok_or_else(|| {
                StorageError::io(
                    "mapping memory",
                    "the buffer pool",
                    0,
                    io::Error::last_os_error(),
                )
            })?;
        if bytes >= HUGE_PAGE_ARENA_BYTES {
            // SAFETY: advice on this value's own mapping; it changes no contents. A kernel without huge pages refuses,
            // which does no harm.
            unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(FrameArena { base, frames })
    }

    /// Frames that can hold pages; the scratch frame is not counted.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// Where reads put bytes that are not wanted. It may be the target of many reads at once and is never looked at.
    pub(crate) fn scratch(&self) -> FrameId {
        FrameId(self.frames as u32)
    }

    /// The first byte of a frame. Valid for [`PAGE_SIZE`] bytes as long as the arena lives.
    ///
    /// # Panics
    /// The arena has no such frame.
    #[inline]
    pub(crate) fn pointer(&self, frame: FrameId) -> *mut u8 {
        assert!(frame.0 as usize <= self.frames, "no such frame");
        // SAFETY: the frame is one of this arena's, or the scratch frame behind them, so the offset lies in the
        // mapping.
        unsafe { self.base.as_ptr().add(frame.0 as usize * PAGE_SIZE) }
    }

    /// The frame as a page. Using the pointer as a reference needs the latch that permits it.
    #[inline]
    pub(crate) fn page(&self, frame: FrameId) -> *mut Page {
        self.pointer(frame).cast()
    }

    /// Gives a frame's memory back to the operating system. The frame stays mapped and reads as zeros:
    /// a late optimistic reader finds them and fails its validation.
    ///
    /// That splits a huge page. The process has less at once. The cgroup has less when it comes to its limit and the
    /// kernel frees the parts: of 256 MiB of which every second frame was released, 200 MiB found room then.
    ///
    /// # Safety
    /// The frame belongs to the caller, and there is no reference to its memory.
    pub(crate) unsafe fn release_memory(&self, frame: FrameId) {
        // SAFETY: the range is one frame of this mapping, whose bytes are the caller's to change.
        unsafe { libc::madvise(self.pointer(frame).cast(), PAGE_SIZE, libc::MADV_DONTNEED) };
    }
}

impl Drop for FrameArena {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own; any other user would hold an `Arc` of the arena.
        unsafe { libc::munmap(self.base.as_ptr().cast(), Self::bytes_for(self.frames)) };
    }
}
