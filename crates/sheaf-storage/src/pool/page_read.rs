//! A read of pages into frames, from the claim of their words to the wake-up of the threads that wait for them.
//!
//! A [`Claim`] is the right to bring a page in. It becomes part of a read, or releases the word when it is dropped. So
//! an error or a panic anywhere before the submission leaves no page stuck in READING. From the submission on the
//! [`PageRead`], which the disk holds, settles every page when the read completes.

use std::io;
use std::sync::Arc;

use crate::counters;
use crate::disk::frame_arena::FrameId;
use crate::disk::{Buffers, Completion, FileId, Operation, Token};
use crate::error::{Result, StorageError};
use crate::page::{PAGE_SIZE, PageId};
use crate::pool::latch;
use crate::pool::page_table::{PageWord, Usage, state};
use crate::pool::passing_pages::ReadReason;
use crate::pool::pool_core::PoolCore;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The right to bring an evicted page into memory.
pub(crate) struct Claim<'p> {
    core: &'p Arc<PoolCore>,
    page: PageId,
    claimed: PageWord,
}

impl<'p> Claim<'p> {
    /// Moves the word from EVICTED, as `seen`, to READING or EXCLUSIVE. `None` if another thread was faster.
    pub(crate) fn take(
        core: &'p Arc<PoolCore>,
        page: PageId,
        seen: PageWord,
        claimed_state: u8,
    ) -> Option<Claim<'p>> {
        let word = core.word(page)?;
        let claimed = seen.with_state(claimed_state);
        if seen.state() == state::EVICTED && latch::exchange(word, seen, claimed).is_ok() {
            Some(Claim {
                core,
                page,
                claimed,
            })
        } else {
            None
        }
    }

    pub(crate) fn page(&self) -> PageId {
        self.page
    }

    /// From here on the caller settles the word. Returns it as it was claimed.
    pub(crate) fn keep(self) -> PageWord {
        let claimed = self.claimed;
        std::mem::forget(self);
        claimed
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(word) = self.core.word(self.page) {
            self.core
                .parking()
                .replace(self.page, word, self.claimed.with_state(state::EVICTED));
        }
    }
}

/// Where one page of a read goes.
enum Target {
    /// A claimed page, into its frame.
    Page {
        page: PageId,
        claimed: PageWord,
        frame: FrameId,
    },
    /// A page in a gap, which is thrown away.
    Scratch,
}

/// Pages that are read in one request; they follow each other in the file.
pub(crate) struct PageRead {
    core: Arc<PoolCore>,
    first: PageId,
    targets: Vec<Target>,
    reason: ReadReason,
    submitted: AtomicBool,
    done: AtomicBool,
    error: Mutex<Option<StorageError>>,
}

impl PageRead {
    /// A read of one page that the calling thread needs.
    pub(crate) fn of_one(core: &Arc<PoolCore>, claim: Claim<'_>, frame: FrameId) -> Arc<PageRead> {
        let mut read = PageRead::new(core, claim.page(), ReadReason::Use);
        read.push_page(claim, frame);
        Arc::new(read)
    }

    /// A read of nothing yet, that starts at page `first`.
    pub(crate) fn new(core: &Arc<PoolCore>, first: PageId, reason: ReadReason) -> PageRead {
        PageRead {
            core: core.clone(),
            first,
            targets: Vec::with_capacity(1),
            reason,
            submitted: AtomicBool::new(false),
            done: AtomicBool::new(false),
            error: Mutex::new(None),
        }
    }

    /// Number of the page after the last one.
    pub(crate) fn end(&self) -> PageId {
        PageId(self.first.0 + self.targets.len() as u64)
    }

    pub(crate) fn first(&self) -> PageId {
        self.first
    }

    /// Appends the page that follows, for which the caller has a claim and a frame.
    pub(crate) fn push_page(&mut self, claim: Claim<'_>, frame: FrameId) {
        debug_assert_eq!(claim.page(), self.end());
        let page = claim.page();
        self.targets.push(Target::Page {
            page,
            claimed: claim.keep(),
            frame,
        });
    }

    /// Appends the page that follows, which is not wanted.
    pub(crate) fn push_gap(&mut self) {
        self.targets.push(Target::Scratch);
    }

    /// The operation for the disk.
    pub(crate) fn operation(self: Arc<Self>, file: FileId) -> (Operation, Token) {
        let arena = self.core.arena();
        let frames: Vec<FrameId> = self
            .targets
            .iter()
            .map(|target| match target {
                Target::Page { frame, .. } => *frame,
                Target::Scratch => arena.scratch(),
            })
            .collect();
        self.submitted.store(true, Ordering::Relaxed);
        self.core.reads_in_flight.fetch_add(1, Ordering::AcqRel);
        counters::add(&self.core.traffic.data_reads, 1);
        counters::add(
            &self.core.traffic.data_read,
            (frames.len() * PAGE_SIZE) as u64,
        );
        let buffers = Buffers::Frames {
            arena: arena.clone(),
            frames,
        };
        (
            Operation::Read {
                file,
                offset: self.first.offset(),
                buffers,
            },
            self,
        )
    }

    /// What became of a read that is over.
    pub(crate) fn outcome(&self) -> Result<()> {
        self.error.lock().take().map_or(Ok(()), Err)
    }

    fn check(&self, result: &io::Result<()>, page: PageId, frame: FrameId) -> Result<()> {
        if let Err(error) = result {
            // The cause may have many readers: rebuild it from its number where it has one.
            let source = match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(error.kind(), error.to_string()),
            };
            return Err(StorageError::io(
                "read",
                &self.core.file_name,
                page.offset(),
                source,
            ));
        }
        // SAFETY: the frame is mapped and aligned, the read into it is over, and the page's word is READING. So no
        // thread writes to the frame, and late optimistic readers of its former page use atomic loads.
        let contents = unsafe { &*self.core.arena().page(frame) };
        contents
            .verify(page)
            .map_err(|damage| StorageError::Corrupt {
                file: self.core.file_name.clone(),
                page,
                tree: contents.tree_id(),
                damage,
            })
    }
}

impl Completion for PageRead {
    fn complete(&self, result: io::Result<()>, _buffers: Option<Buffers>) {
        let mut pages_read = 0;
        for target in &self.targets {
            let Target::Page {
                page,
                claimed,
                frame,
            } = *target
            else {
                continue;
            };
            let Some(word) = self.core.word(page) else {
                continue;
            };
            let settled = match self.check(&result, page, frame) {
                Ok(()) => {
                    pages_read += 1;
                    self.core.assign(frame, page, self.reason);
                    claimed
                        .with_state(state::UNLOCKED)
                        .with_usage(Usage::New)
                        .with_frame(frame)
                }
                Err(error) => {
                    if self.reason != ReadReason::Use {
                        self.core.return_quota();
                    }
                    self.core.give_free_frame(frame);
                    self.error.lock().get_or_insert(error);
                    claimed.with_state(state::EVICTED)
                }
            };
            self.core.parking().replace(page, word, settled);
        }
        counters::add(&self.core.traffic.pages_read, pages_read);
        if self.submitted.load(Ordering::Relaxed) {
            self.core.reads_in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        self.done.store(true, Ordering::Release);
    }
}

impl Drop for PageRead {
    /// A read that was never submitted gives its pages back.
    fn drop(&mut self) {
        if !self.done.load(Ordering::Acquire) {
            self.complete(Err(io::ErrorKind::Interrupted.into()), None);
        }
    }
}
