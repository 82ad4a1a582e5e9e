//! [`KeyWindows`]: walks a buffer of keys and has their pages read ahead.
//!
//! The keys are taken a window at a time. While one window is read, the pages of the next are on their way:
//!
//! ```text
//!   sorted keys:  | window 1 | window 2 | window 3 | ...
//!                 |  reading | requested|          |
//! ```
//!
//! A window is a number of keys that span about [`WINDOW_LEAVES`] leaves; how many keys that are is learnt from the
//! window before. Where the buffer pool is too small to take in all pages of two windows, and drops part of a hint,
//! windows become shorter. Pages of one window that lie side by side become one request.

use sheaf_storage::{LOOK_AHEAD_KEYS, Tree};

use crate::cancel::CancelFlag;
use crate::counters::ScanMetrics;
use crate::error::Result;
use crate::keys::byte_strings::ByteStrings;
use crate::keys::key_buffer::KeyBuffer;
use crate::sort_rule::RESIDENCY_SAMPLE;

/// Leaves that one window should span: 1 MiB on its way while another is read. The device is busy from depth 8 on;
/// more lets the pool merge neighbours.
const WINDOW_LEAVES: usize = 64;

/// Leaves that one window spans at least, however small the buffer pool is.
const MIN_WINDOW_LEAVES: usize = 8;

/// Keys of the first window, before it is known how many keys share a leaf.
const FIRST_WINDOW_KEYS: usize = 64;

/// Fewest keys of a window, but for the last one of a buffer.
const MIN_WINDOW_KEYS: usize = 8;

/// Most keys of a window.
const MAX_WINDOW_KEYS: usize = 16 * 1024;

/// Most bytes of keys of a window (one key always fits).
const MAX_WINDOW_BYTES: usize = 256 * 1024;

/// Whether the leaves of all keys in a sample of the buffer are in the buffer pool.
pub(crate) fn sample_is_resident(tree: &Tree, buffer: &KeyBuffer) -> Result<bool> {
    let sample = buffer.sorted_sample(RESIDENCY_SAMPLE);
    let (resident, leaves) = tree.resident_keys(&mut sample.iter().map(Vec::as_slice))?;
    Ok(resident == leaves)
}

/// A run of the buffer's keys, as bytes.
#[derive(Default)]
struct Window {
    /// Position in the buffer of its first key.
    first: usize,
    keys: ByteStrings,
}

/// See the module's comment.
pub(crate) struct KeyWindows {
    /// Whether pages are requested. Only with sorted keys.
    prefetching: bool,
    /// Position in the buffer of the next key that no window holds.
    next: usize,
    /// Leaves that a window should span.
    window_leaves: usize,
    /// Keys that did so in the window before.
    window_keys: usize,
    current: Window,
    ahead: Window,
    /// Keys of `current` that were handed out.
    taken: usize,
    /// Keys of `current` that [`group_to_come`](Self::group_to_come) has told of.
    told: usize,
}

impl KeyWindows {
    pub(crate) fn new() -> Self {
        Self {
            prefetching: false,
            next: 0,
            window_leaves: WINDOW_LEAVES,
            window_keys: FIRST_WINDOW_KEYS,
            current: Window::default(),
            ahead: Window::default(),
            taken: 0,
            told: 0,
        }
    }

    /// Goes to before the first key of `buffer` and requests the first pages of `tree` if `prefetching`.
    pub(crate) fn start(
        &mut self,
        tree: &Tree,
        buffer: &KeyBuffer,
        prefetching: bool,
        metrics: &mut ScanMetrics,
    ) -> Result<()> {
        debug_assert!(
            !prefetching || buffer.is_sorted(),
            "only sorted keys tell the tree which pages neighbour"
        );
        self.prefetching = prefetching;
        self.next = 0;
        (self.taken, self.told) = (0, 0);
        self.stage(tree, buffer, metrics)?;
        std::mem::swap(&mut self.current, &mut self.ahead);
        self.stage(tree, buffer, metrics)
    }

    /// Fills the window ahead with the next keys of the buffer and requests their pages.
    fn stage(&mut self, tree: &Tree, buffer: &KeyBuffer, metrics: &mut ScanMetrics) -> Result<()> {
        let window = &mut self.ahead;
        window.keys.clear();
        window.first = self.next;
        while self.next < buffer.len()
            && window.keys.len() < self.window_keys
            && window.keys.total_bytes() < MAX_WINDOW_BYTES
        {
            buffer.copy_key(self.next, &mut window.keys);
            self.next += 1;
        }
        if !self.prefetching || window.keys.is_empty() {
            return Ok(());
        }
        let (resident, leaves) =
            tree.resident_keys(&mut window.keys.iter().map(|key| buffer.entry(key)))?;
        if resident < leaves {
            let summary =
                tree.prefetch_keys(&mut window.keys.iter().map(|key| buffer.entry(key)))?;
            metrics.prefetched_pages += summary.requested_pages as u64;
            self.window_leaves = if summary.resident + summary.requested_pages < leaves {
                (self.window_leaves / 2).max(MIN_WINDOW_LEAVES)
            } else {
                (self.window_leaves + 1).min(WINDOW_LEAVES)
            };
        }
        let wanted = window.keys.len() * self.window_leaves / leaves.max(1);
        let most = MAX_WINDOW_KEYS.min(self.window_keys * 8);
        self.window_keys = wanted.clamp(MIN_WINDOW_KEYS, most);
        Ok(())
    }

    /// Goes to the next key and returns its position in the buffer; `None` after the last.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        tree: &Tree,
        buffer: &KeyBuffer,
        cancel: &CancelFlag,
        metrics: &mut ScanMetrics,
    ) -> Result<Option<usize>> {
        if self.taken == self.current.keys.len() {
            cancel.check()?;
            std::mem::swap(&mut self.current, &mut self.ahead);
            (self.taken, self.told) = (0, 0);
            self.stage(tree, buffer, metrics)?;
            if self.current.keys.is_empty() {
                return Ok(None);
            }
        }
        self.taken += 1;
        Ok(Some(self.current.first + self.taken - 1))
    }

    /// The key that [`advance`](Self::advance) went to and some that follow it, unless it was among these the last
    /// time.
    #[inline]
    pub(crate) fn group_to_come(&mut self) -> Option<impl Iterator<Item = &[u8]>> {
        if self.taken <= self.told {
            return None;
        }
        let first = self.taken - 1;
        self.told = (first + LOOK_AHEAD_KEYS).min(self.current.keys.len());
        let keys = &self.current.keys;
        Some((first..self.told).map(|at| keys.get(at)))
    }

    /// The key that [`advance`](Self::advance) went to.
    pub(crate) fn key(&self) -> &[u8] {
        self.current.keys.get(self.taken - 1)
    }
}
