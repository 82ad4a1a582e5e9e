//! The memory that disk operations read into and write from.

use std::alloc::{self, Layout};
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::disk::DISK_BLOCK_BYTES;
use crate::disk::frame_arena::{FrameArena, FrameId};
use crate::error::{Result, StorageError};
use crate::page::PAGE_SIZE;

/// Bytes at an address that direct I/O accepts.
pub struct AlignedBuffer {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the buffer owns its memory, like a Box<[u8]>.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A buffer of zeros. The length is rounded up to whole disk blocks.
    pub fn zeroed(length: usize) -> Result<AlignedBuffer> {
        let length = length.max(1).next_multiple_of(DISK_BLOCK_BYTES);
        let failed = || {
            let error = io::Error::from(io::ErrorKind::OutOfMemory);
            StorageError::io("allocation", "a disk buffer", 0, error)
        };
        let layout = Self::layout(length).ok_or_else(failed)?;
        // SAFETY: the layout has a nonzero size.
        let base = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or_else(failed)?;
        Ok(AlignedBuffer { base, length })
    }

    fn layout(length: usize) -> Option<Layout> {
        Layout::from_size_align(length, DISK_BLOCK_BYTES).ok()
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the buffer owns `length` initialised bytes.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.length) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and the buffer is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.length) {
            // SAFETY: allocated by `zeroed` with the same layout.
            unsafe { alloc::dealloc(self.base.as_ptr(), layout) };
        }
    }
}

/// What one transfer moves, in file order. Owned by the operation while it is in flight.
pub enum Buffers {
    /// Frames of a pool, one page each. For reads; the pages' words say READING meanwhile.
    Frames {
        arena: Arc<FrameArena>,
        frames: Vec<FrameId>,
    },
    /// A buffer that the operation has for itself. For reads and writes.
    Owned(AlignedBuffer),
    /// A part of a buffer that does not change as long as the operation shares it. For writes only.
    Shared {
        buffer: Arc<AlignedBuffer>,
        range: Range<usize>,
    },
}

impl Buffers {
    /// Bytes in all.
    pub fn bytes(&self) -> usize {
        match self {
            Buffers::Frames { frames, .. } => frames.len() * PAGE_SIZE,
            Buffers::Owned(buffer) => buffer.len(),
            Buffers::Shared { range, .. } => range.len(),
        }
    }

    /// Whether a read may fill them.
    pub(super) fn writable(&self) -> bool {
        !matches!(self, Buffers::Shared { .. })
    }

    /// The pieces of memory as the system calls take them. Adjacent frames become one piece. The pointers are valid as
    /// long as `self` is neither dropped nor taken apart.
    pub(super) fn iovecs(&mut self) -> Vec<libc::iovec> {
        match self {
            Buffers::Frames { arena, frames } => {
                let mut pieces: Vec<libc::iovec> = Vec::with_capacity(frames.len());
                for &frame in frames.iter() {
                    let start = arena.pointer(frame);
                    match pieces.last_mut() {
                        Some(last)
                            if last.iov_base.cast::<u8>().wrapping_add(last.iov_len) == start =>
                        {
                            last.iov_len += PAGE_SIZE;
                        }
                        _ => pieces.push(libc::iovec {
                            iov_base: start.cast(),
                            iov_len: PAGE_SIZE,
                        }),
                    }
                }
                pieces
            }
            Buffers::Owned(buffer) => {
                vec![libc::iovec {
                    iov_base: buffer.as_mut_ptr().cast(),
                    iov_len: buffer.len(),
                }]
            }
            Buffers::Shared { buffer, range } => {
                let part = &buffer[range.clone()];
                vec![libc::iovec {
                    iov_base: part.as_ptr().cast_mut().cast(),
                    iov_len: part.len(),
                }]
            }
        }
    }

    /// Copies bytes into the buffers, from their beginning; for disks that are memory themselves.
    pub(super) fn fill(&mut self, mut bytes: &[u8]) {
        debug_assert!(self.writable() && bytes.len() <= self.bytes());
        for piece in self.iovecs() {
            let (now, later) = bytes.split_at(piece.iov_len.min(bytes.len()));
            // SAFETY: the piece is memory of `self`, at least as long as `now`, and no reference to it exists. An owned
            // buffer is borrowed mutably here, and frames belong to the operation while their pages are READING.
            unsafe {
                std::ptr::copy_nonoverlapping(now.as_ptr(), piece.iov_base.cast(), now.len());
            }
            bytes = later;
        }
    }

    /// The bytes of buffers to be written.
    pub(super) fn collect_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes());
        for piece in self.iovecs() {
            // SAFETY: the piece is memory of `self`, initialised, and does not change during the operation.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(piece.iov_base.cast::<u8>(), piece.iov_len)
            });
        }
        bytes
    }
}
