//! Disk operations through io_uring, past the page cache.
//!
//! A few rings are shared by all threads. A file's stretches are dealt out to the rings, so a byte range always goes
//! through the same ring and a thread that waits for it knows which one to watch.
//!
//! **One operation that its thread waits for** does not go through a ring: submitting and reaping it would be two system
//! calls instead of one, and the kernel hands every sync that comes through a ring to a thread of its own, which costs a
//! commit two switches more.
//!
//! **Submitting** takes the ring's lock, fills submission entries and tells the kernel, in one call for a whole batch.
//! At most [`RING_DEPTH`] operations of a ring are in flight; the rest stand in a backlog and follow as others complete.
//! An operation submitted alone goes to the head of the backlog, because its submitter is about to wait for it, while
//! batches are read-ahead or write-back.
//!
//! **Reaping.** One of the threads that wait, the leader, sleeps in the kernel until something completes, and delivers
//! it. The others, the followers, are parked; the completion of what a follower waits for unparks it directly. Whoever
//! stops waiting while there is no leader unparks one follower, which becomes the leader or passes the call on. A thread
//! leads only while something is in flight, so the kernel is sure to wake it.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};

use crate::disk::blocking::{self, Files};
use crate::disk::{Buffers, Disk, FileId, Operation, STRETCH_BYTES, Token};
use crate::error::{Result, StorageError};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{self, Mutex, thread};

/// Rings of a disk.
const RINGS: usize = 4;

/// Most operations of one ring that the kernel works on at a time.
const RING_DEPTH: usize = 32;

/// See the [module](self).
pub struct IoUringDisk {
    files: Files,
    rings: Vec<Ring>,
}

impl IoUringDisk {
    /// A disk for the files of `directory`, which must take direct I/O.
    ///
    /// # Errors
    /// `Io` if the kernel has no io_uring, forbids it, or has one that is too old.
    pub fn open(directory: &Path) -> Result<IoUringDisk> {
        let rings: io::Result<Vec<Ring>> = (0..RINGS).map(|_| Ring::new()).collect();
        let rings =
            rings.map_err(|error| StorageError::io("io_uring setup", "the disk", 0, error))?;
        Ok(IoUringDisk {
            files: Files::new(directory, true),
            rings,
        })
    }

    fn ring_of(&self, offset: u64) -> &Ring {
        &self.rings[(offset / STRETCH_BYTES) as usize % RINGS]
    }
}

impl Disk for IoUringDisk {
    fn open(&self, name: &str) -> Result<FileId> {
        self.files.open(name)
    }

    fn file_name(&self, file: FileId) -> String {
        self.files.name(file)
    }

    fn length(&self, file: FileId) -> Result<u64> {
        self.files.length(file)
    }

    fn submit(&self, operations: Vec<(Operation, Token)>) {
        let mut batches: [Vec<Waiting>; RINGS] = Default::default();
        let mut refused = Vec::new();
        let urgent = operations.len() == 1;
        for (operation, token) in operations {
            let ring = (operation.offset() / STRETCH_BYTES) as usize % RINGS;
            match self.files.file(operation.file()) {
                Ok(file) => batches[ring].push(Waiting {
                    operation,
                    token,
                    file,
                }),
                Err(error) => refused.push((operation, token, error)),
            }
        }
        for (ring, batch) in self.rings.iter().zip(batches) {
            if !batch.is_empty() {
                ring.submit(batch, urgent);
            }
        }
        for (operation, token, error) in refused {
            token.complete(Err(error), operation.into_buffers());
        }
    }

    fn reap(&self) -> usize {
        self.rings.iter().map(Ring::reap).sum()
    }

    fn wait(&self, _file: FileId, offset: u64, done: &dyn Fn() -> bool) {
        if !done() {
            sync::waiting(|| self.ring_of(offset).wait(done));
        }
    }

    fn execute(&self, mut operation: Operation) -> (io::Result<()>, Option<Buffers>) {
        let result = sync::waiting(|| self.files.execute(&mut operation));
        (result, operation.into_buffers())
    }
}

/// An operation that the kernel does not know of yet.
struct Waiting {
    operation: Operation,
    token: Token,
    file: Arc<File>,
}

/// An operation that the kernel works on, with everything that its submission entry points to.
struct InFlight {
    operation: Operation,
    token: Token,
    file: Arc<File>,
    /// Kept where it is: the submission entry points to it, and it points to the operation's buffers.
    pieces: Vec<libc::iovec>,
}

// SAFETY: the pieces point into the buffers of the operation beside them, which are Send themselves.
unsafe impl Send for InFlight {}

impl InFlight {
    fn new(waiting: Waiting) -> InFlight {
        let Waiting {
            mut operation,
            token,
            file,
        } = waiting;
        let pieces = match &mut operation {
            Operation::Read { buffers, .. } | Operation::Write { buffers, .. } => buffers.iovecs(),
            _ => Vec::new(),
        };
        InFlight {
            operation,
            token,
            file,
            pieces,
        }
    }

    /// The submission entry. Valid as long as `self` is neither dropped nor taken apart.
    fn entry(&self) -> squeue::Entry {
        let fd = types::Fd(self.file.as_raw_fd());
        let (pieces, count) = (self.pieces.as_ptr(), self.pieces.len() as u32);
        match &self.operation {
            Operation::Read { offset, .. } => opcode::Readv::new(fd, pieces, count)
                .offset(*offset)
                .build(),
            Operation::Write { offset, .. } => opcode::Writev::new(fd, pieces, count)
                .offset(*offset)
                .build(),
            Operation::Sync { .. } => opcode::Fsync::new(fd)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
            Operation::Allocate { length, .. } => opcode::Fallocate::new(fd, *length).build(),
            Operation::Zero { offset, length, .. } => opcode::Fallocate::new(fd, *length)
                .offset(*offset)
                .mode(libc::FALLOC_FL_ZERO_RANGE)
                .build(),
            Operation::Punch { offset, length, .. } => opcode::Fallocate::new(fd, *length)
                .offset(*offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
            // There is no such entry on most kernels: the thread that reaps this one makes the call.
            Operation::SetLength { .. } => opcode::Nop::new().build(),
        }
    }

    /// Tells the submitter. `result` is the kernel's: a count of bytes, or an error number below zero.
    fn complete(self, result: i32) {
        let InFlight {
            mut operation,
            token,
            file,
            pieces,
        } = self;
        let expected: usize = pieces.iter().map(|piece| piece.iov_len).sum();
        let result = match usize::try_from(result) {
            Ok(_) if matches!(operation, Operation::SetLength { .. }) => {
                blocking::continue_operation(&file, &mut operation, 0)
            }
            Ok(moved) if moved >= expected => Ok(()),
            Ok(moved) => blocking::continue_operation(&file, &mut operation, moved),
            Err(_) => {
                let error = io::Error::from_raw_os_error(-result);
                let again = matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN));
                if again || blocking::is_unsupported(&error) {
                    blocking::continue_operation(&file, &mut operation, 0)
                } else {
                    Err(error)
                }
            }
        };
        token.complete(result, operation.into_buffers());
    }
}

struct Ring {
    uring: IoUring,
    submission: Mutex<Submission>,
    reaping: Mutex<Reaping>,
    /// Operations that the kernel works on; changed under the submission lock.
    in_flight: AtomicUsize,
}

#[derive(Default)]
struct Submission {
    backlog: VecDeque<Waiting>,
    /// By the number that the kernel hands back.
    slots: Vec<Option<InFlight>>,
    free_slots: Vec<usize>,
}

#[derive(Default)]
struct Reaping {
    leader: bool,
    followers: Vec<thread::Thread>,
}

impl Ring {
    fn new() -> io::Result<Ring> {
        let uring = IoUring::new(RING_DEPTH as u32)?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Readv::CODE,
            opcode::Writev::CODE,
            opcode::Fsync::CODE,
            opcode::Fallocate::CODE,
        ];
        if needed.iter().any(|&code| !probe.is_supported(code)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let submission = Submission {
            backlog: VecDeque::new(),
            slots: (0..RING_DEPTH).map(|_| None).collect(),
            free_slots: (0..RING_DEPTH).collect(),
        };
        Ok(Ring {
            uring,
            submission: Mutex::new(submission),
            reaping: Mutex::default(),
            in_flight: AtomicUsize::new(0),
        })
    }

    fn submit(&self, batch: Vec<Waiting>, urgent: bool) {
        {
            let mut submission = self.submission.lock();
            for waiting in batch {
                if urgent {
                    submission.backlog.push_front(waiting);
                } else {
                    submission.backlog.push_back(waiting);
                }
            }
            self.start_backlog(&mut submission);
        }
        // A follower may have found nothing in flight, and waits to be told that there is.
        self.call_a_leader();
    }

    /// Hands operations to the kernel as long as slots are free.
    fn start_backlog(&self, submission: &mut Submission) {
        let mut started = 0;
        while let Some(slot) = submission.free_slots.last().copied() {
            let Some(waiting) = submission.backlog.pop_front() else {
                break;
            };
            let operation = submission.slots[slot].insert(InFlight::new(waiting));
            let entry = operation.entry().user_data(slot as u64);
            // SAFETY: the submission lock is held, so nobody else uses the submission queue. What the entry points to
            // lives in the slot until the kernel has completed it; moving the slot's value does not move the pieces or
            // the buffers, which are on the heap.
            let pushed = unsafe { self.uring.submission_shared().push(&entry) };
            if pushed.is_err() {
                // The queue has as many entries as there are slots, but the kernel may not have consumed them yet.
                let back = submission.slots[slot].take();
                submission.backlog.extend(back.map(
                    |InFlight {
                         operation,
                         token,
                         file,
                         ..
                     }| {
                        Waiting {
                            operation,
                            token,
                            file,
                        }
                    },
                ));
                break;
            }
            submission.free_slots.pop();
            started += 1;
        }
        if started > 0 {
            self.in_flight.fetch_add(started, Ordering::AcqRel);
            // Entries that the kernel does not take now (it may be out of memory) are taken when a leader waits.
            let _ = self.uring.submit();
        }
    }

    /// Delivers what has completed. Only the leader calls this.
    fn harvest(&self) -> usize {
        // SAFETY: there is one leader at a time, so nobody else uses the completion queue.
        let arrived: Vec<cqueue::Entry> = unsafe { self.uring.completion_shared() }.collect();
        if arrived.is_empty() {
            return 0;
        }
        let completed: Vec<(InFlight, i32)> = {
            let mut submission = self.submission.lock();
            let completed: Vec<(InFlight, i32)> = arrived
                .iter()
                .filter_map(|entry| {
                    let slot = entry.user_data() as usize;
                    let operation = submission.slots.get_mut(slot)?.take()?;
                    submission.free_slots.push(slot);
                    Some((operation, entry.result()))
                })
                .collect();
            self.in_flight.fetch_sub(completed.len(), Ordering::AcqRel);
            self.start_backlog(&mut submission);
            completed
        };
        let count = completed.len();
        for (operation, result) in completed {
            operation.complete(result);
        }
        count
    }

    /// Sleeps until something completes, or a little while.
    fn sleep(&self) {
        if let Err(error) = self.uring.submit_and_wait(1) {
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => thread::yield_now(),
                _ => panic!("io_uring_enter failed: {error}"),
            }
        }
    }

    fn wait(&self, done: &dyn Fn() -> bool) {
        while !done() {
            if self.try_lead() {
                let _leading = Leading(self);
                // Something may have completed without anybody watching.
                self.harvest();
                while !done() && self.in_flight.load(Ordering::Acquire) > 0 {
                    self.sleep();
                    self.harvest();
                }
            } else {
                // Enqueued by `try_lead`: unparked by the completion, or to lead.
                if !done() {
                    thread::park();
                }
                let me = thread::current().id();
                self.reaping
                    .lock()
                    .followers
                    .retain(|follower| follower.id() != me);
            }
        }
        self.call_a_leader();
    }

    /// Makes this thread the leader if there is none and something is in flight; else makes it a follower.
    fn try_lead(&self) -> bool {
        let mut reaping = self.reaping.lock();
        if reaping.leader || self.in_flight.load(Ordering::Acquire) == 0 {
            reaping.followers.push(thread::current());
            return false;
        }
        reaping.leader = true;
        true
    }

    /// Unparks a follower if somebody should lead and nobody does.
    fn call_a_leader(&self) {
        let mut reaping = self.reaping.lock();
        if !reaping.leader
            && self.in_flight.load(Ordering::Acquire) > 0
            && let Some(follower) = reaping.followers.pop()
        {
            follower.unpark();
        }
    }

    fn reap(&self) -> usize {
        if self.in_flight.load(Ordering::Acquire) == 0 {
            return 0;
        }
        {
            let mut reaping = self.reaping.lock();
            if reaping.leader {
                return 0;
            }
            reaping.leader = true;
        }
        let _leading = Leading(self);
        self.harvest()
    }
}

/// Steps down when it is dropped, also by a panic.
struct Leading<'a>(&'a Ring);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.reaping.lock().leader = false;
        self.0.call_a_leader();
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still be writing into buffers that the slots own.
        while self.in_flight.load(Ordering::Acquire) > 0 {
            self.sleep();
            self.harvest();
        }
    }
}
