//! Disk operations through io_uring, past the page cache.
//!
//! A few rings are shared by all threads. A file's stretches are dealt out to the rings, so a byte range always goes
//! through the same ring and a thread that waits for it knows which one to watch.
//!
//! **One operation that its thread waits for** does not go through a ring. Submitting and reaping it would be two
//! system calls instead of one. The kernel also hands every sync that comes through a ring to a thread of its own,
//! which costs a commit two more context switches.
//!
//! **Submitting** takes the ring's lock, fills submission entries and tells the kernel, in one call for a whole batch.
//! At most [`RING_DEPTH`] operations of a ring are in flight; the rest stand in a backlog and follow as others
//! complete. An operation submitted alone goes to the head of the backlog, because its submitter is about to wait for
//! it, while batches are read-ahead or write-back.
//!
//! **Reaping.** One of the threads that wait, the leader, sleeps in the kernel until something completes, and delivers
//! it. The others, the followers, are parked; the completion of what a follower waits for unparks it directly. A thread
//! that stops waiting while there is no leader unparks one follower, which becomes the leader or passes the call on. A
//! thread leads only while something is in flight, so the kernel is sure to wake it. It sleeps for a short time only: a
//! page that it waits for may also come by another thread's system call, of which the kernel does not tell it.
//!
//! **A ring that the kernel refuses to be called about** is abandoned. What the kernel has taken from it before stays
//! the kernel's until it reports completion, whatever becomes of the ring: these buffers are neither returned nor
//! freed. Threads that wait look for completions now and then, in the memory that kernel and ring share. What the
//! kernel has not taken it never will, as no thread calls it any more. These operations, and all later ones, are done
//! by plain system calls.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};

use crate::disk::blocking::{self, Files};
use crate::disk::{Buffers, Disk, FileId, Operation, STRETCH_BYTES, Token};
use crate::error::{Result, StorageError};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{self, Mutex, thread};

/// Rings of a disk.
const RINGS: usize = 4;

/// Most operations of one ring that the kernel works on at a time.
const RING_DEPTH: usize = 32;

/// Time from one look for completions of an abandoned ring to the next, and the longest sleep of a leader.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

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

impl Waiting {
    /// Does it without the kernel's help, in this thread.
    fn perform(self) {
        let Waiting {
            mut operation,
            token,
            file,
        } = self;
        let result = blocking::continue_operation(&file, &mut operation, 0);
        token.complete(result, operation.into_buffers());
    }
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

    /// The operation again, for one that the kernel has not taken.
    fn into_waiting(self) -> Waiting {
        Waiting {
            operation: self.operation,
            token: self.token,
            file: self.file,
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
    /// The kernel has not taken all that was pushed.
    has_refused: AtomicBool,
    /// Nothing is pushed any more, and the kernel is not called. Set by the leader, under the submission lock.
    is_given_up: AtomicBool,
}

#[derive(Default)]
struct Submission {
    backlog: VecDeque<Waiting>,
    /// By the number that the kernel hands back.
    slots: Vec<Option<InFlight>>,
    free_slots: Vec<usize>,
    /// The slots whose entries were pushed last, in this order. The kernel may not have taken the newest yet.
    pushed: VecDeque<usize>,
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
            pushed: VecDeque::with_capacity(RING_DEPTH + 1),
        };
        Ok(Ring {
            uring,
            submission: Mutex::new(submission),
            reaping: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            has_refused: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
        })
    }

    fn submit(&self, batch: Vec<Waiting>, urgent: bool) {
        let mut submission = self.submission.lock();
        if self.is_given_up.load(Ordering::Acquire) {
            drop(submission);
            return batch.into_iter().for_each(Waiting::perform);
        }
        for waiting in batch {
            if urgent {
                submission.backlog.push_front(waiting);
            } else {
                submission.backlog.push_back(waiting);
            }
        }
        self.start_backlog(&mut submission);
        drop(submission);
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
            // SAFETY: the submission lock is held, so no other thread uses the submission queue. What the entry points
            // to lives in the slot until the kernel has completed it; moving the slot's value does not move the pieces
            // or the buffers, which are on the heap.
            let pushed = unsafe { self.uring.submission_shared().push(&entry) };
            if pushed.is_err() {
                // The queue has as many entries as there are slots, but the kernel may not have consumed them yet.
                let back = submission.slots[slot].take();
                submission.backlog.extend(back.map(InFlight::into_waiting));
                break;
            }
            submission.free_slots.pop();
            submission.pushed.push_back(slot);
            if submission.pushed.len() > RING_DEPTH {
                submission.pushed.pop_front();
            }
            started += 1;
        }
        if started > 0 {
            self.in_flight.fetch_add(started, Ordering::AcqRel);
            // Entries that the kernel does not take now (it may be out of memory) are taken when a leader waits or
            // reaps.
            let taken = self.uring.submit();
            if !taken.is_ok_and(|taken| taken >= started) {
                self.has_refused.store(true, Ordering::Release);
            }
        }
    }

    /// Delivers what has completed. Only the leader calls this.
    fn harvest(&self) -> usize {
        // SAFETY: there is one leader at a time, so no other thread uses the completion queue.
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
        let mut first_panic = None;
        for (operation, result) in completed {
            // Others wait for what comes after one that panics.
            let complete = AssertUnwindSafe(|| operation.complete(result));
            if let Err(panic) = panic::catch_unwind(complete) {
                first_panic.get_or_insert(panic);
            }
        }
        if let Some(panic) = first_panic {
            panic::resume_unwind(panic);
        }
        count
    }

    /// Sleeps until something completes, or a little while. Only the leader calls this.
    fn sleep(&self) {
        if self.is_given_up.load(Ordering::Acquire) {
            return thread::sleep(LOOK_INTERVAL);
        }
        self.note_call(match self.uring.params().is_feature_ext_arg() {
            true => {
                let longest = types::Timespec::from(LOOK_INTERVAL);
                let longest = types::SubmitArgs::new().timespec(&longest);
                self.uring.submitter().submit_with_args(1, &longest)
            }
            false => self.uring.submit_and_wait(1),
        });
    }

    /// Hands over what the kernel has refused before, unless the ring is abandoned. Only the leader calls this.
    fn submit_refused(&self) {
        let is_called = !self.is_given_up.load(Ordering::Acquire);
        if !is_called || !self.has_refused.swap(false, Ordering::AcqRel) {
            return;
        }
        let outcome = self.uring.submit();
        if !matches!(outcome, Ok(0)) {
            // There may be more.
            self.has_refused.store(true, Ordering::Release);
        }
        self.note_call(outcome);
    }

    /// What becomes of the ring when the kernel was called about it. Only the leader calls this.
    fn note_call(&self, outcome: io::Result<usize>) {
        if let Err(error) = outcome {
            match error.raw_os_error() {
                Some(libc::EINTR | libc::ETIME) => {}
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => thread::yield_now(),
                _ => self.give_up(&error),
            }
        }
    }

    /// Goes on without calling the kernel about this ring. What it has taken stays in flight until it completes that;
    /// the rest is done here. Only the leader calls this.
    fn give_up(&self, error: &io::Error) {
        tracing::error!("io_uring_enter failed: {error}; plain system calls take the ring's place");
        let mut submission = self.submission.lock();
        self.is_given_up.store(true, Ordering::Release);
        // SAFETY: the submission lock is held, so no other thread uses the submission queue. No thread is calling the
        // kernel about it either: that is done under this lock, or by the leader. So what it has not taken, it never
        // will.
        let not_taken = unsafe { self.uring.submission_shared() }.len();
        let taken = submission.pushed.len().saturating_sub(not_taken);
        let slots = submission.pushed.split_off(taken);
        let mut left = Vec::with_capacity(slots.len() + submission.backlog.len());
        for slot in slots {
            let operation = submission.slots[slot].take();
            left.extend(operation.map(InFlight::into_waiting));
            submission.free_slots.push(slot);
        }
        self.in_flight.fetch_sub(left.len(), Ordering::AcqRel);
        left.extend(submission.backlog.drain(..));
        drop(submission);
        left.into_iter().for_each(Waiting::perform);
    }

    fn wait(&self, done: &dyn Fn() -> bool) {
        while !done() {
            if self.try_lead() {
                let _leading = Leading(self);
                // An operation may have completed while no thread was watching.
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

    /// Unparks a follower if a thread should lead and none does.
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
        let arrived = self.harvest();
        if arrived == 0 {
            // Perhaps no thread waits for what is left.
            self.submit_refused();
        }
        arrived
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
        // The kernel may still be writing into buffers that the slots own. It ends some day, also if it cannot be
        // called.
        while self.in_flight.load(Ordering::Acquire) > 0 {
            self.sleep();
            self.harvest();
        }
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use std::io::{PipeWriter, Write};
    use std::os::fd::OwnedFd;
    use std::thread as threads;
    use std::time::Instant;

    use super::*;
    use crate::disk::{AlignedBuffer, Completion, DISK_BLOCK_BYTES, Ticket};

    /// A ring, if this machine permits any.
    fn ring() -> Option<Ring> {
        Ring::new()
            .inspect_err(|error| eprintln!("io_uring is not tested: {error}"))
            .ok()
    }

    /// From now on the kernel refuses to be called about the ring. The ring itself lives on in its mapped memory.
    fn break_ring(ring: &Ring) {
        let null = File::open("/dev/null").unwrap();
        // SAFETY: no memory is passed, and both are open files of this test.
        let result = unsafe { libc::dup2(null.as_raw_fd(), ring.uring.as_raw_fd()) };
        assert!(result >= 0);
    }

    fn block(value: u8) -> Buffers {
        let mut buffer = AlignedBuffer::zeroed(DISK_BLOCK_BYTES).unwrap();
        buffer.fill(value);
        Buffers::Owned(buffer)
    }

    fn submit(ring: &Ring, file: &Arc<File>, operation: Operation) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket {
            waiter: thread::current(),
            outcome: Mutex::new(None),
        });
        let waiting = Waiting {
            operation,
            token: ticket.clone(),
            file: file.clone(),
        };
        ring.submit(vec![waiting], false);
        ticket
    }

    fn is_over(ticket: &Ticket) -> bool {
        ticket.outcome.lock().is_some()
    }

    /// The value of all bytes that the operation has read or written; its error if it failed.
    fn value(ticket: &Ticket) -> io::Result<u8> {
        let (result, buffers) = ticket.outcome.lock().take().unwrap();
        result?;
        let Some(Buffers::Owned(buffer)) = buffers else {
            panic!("the buffer comes back");
        };
        assert!(buffer.iter().all(|&byte| byte == buffer[0]));
        Ok(buffer[0])
    }

    /// A read that the kernel works on until a block is written to the pipe.
    fn slow_read(ring: &Ring) -> (Arc<Ticket>, PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        let file = Arc::new(File::from(OwnedFd::from(reader)));
        let read = Operation::Read {
            file: FileId(0),
            offset: 0,
            buffers: block(0),
        };
        (submit(ring, &file, read), writer)
    }

    fn write_blocks(ring: &Ring, file: &Arc<File>, count: usize) -> Vec<Arc<Ticket>> {
        let write = |number: usize| {
            let operation = Operation::Write {
                file: FileId(0),
                offset: (number * DISK_BLOCK_BYTES) as u64,
                buffers: block(number as u8),
            };
            submit(ring, file, operation)
        };
        (0..count).map(write).collect()
    }

    #[test]
    fn what_the_kernel_has_not_taken_is_done_without_it() {
        let Some(ring) = ring() else { return };
        // More than fit in the ring.
        const BLOCKS: usize = 2 * RING_DEPTH;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let file = Arc::new(File::create(&path).unwrap());
        break_ring(&ring);
        let mut tickets = write_blocks(&ring, &file, BLOCKS);
        ring.wait(&|| tickets.iter().all(|ticket| is_over(ticket)));
        assert_eq!(ring.in_flight.load(Ordering::Acquire), 0);
        // And so is what comes later.
        tickets.extend(write_blocks(&ring, &file, 1));
        for (number, ticket) in tickets.iter().enumerate() {
            assert_eq!(value(ticket).unwrap() as usize, number % BLOCKS);
        }
        let written = std::fs::read(&path).unwrap();
        assert_eq!(written.len(), BLOCKS * DISK_BLOCK_BYTES);
        let numbers = written.iter().step_by(DISK_BLOCK_BYTES);
        assert!(numbers.copied().eq(0..BLOCKS as u8));
    }

    #[test]
    fn what_the_kernel_has_not_taken_is_done_although_nobody_waits() {
        let Some(ring) = ring() else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = Arc::new(File::create(folder.path().join("blocks")).unwrap());
        break_ring(&ring);
        let tickets = write_blocks(&ring, &file, 3);
        assert_eq!(ring.in_flight.load(Ordering::Acquire), 3);
        ring.reap();
        assert_eq!(ring.in_flight.load(Ordering::Acquire), 0);
        for ticket in &tickets {
            value(ticket).unwrap();
        }
    }

    struct Panics;

    impl Completion for Panics {
        fn complete(&self, _result: io::Result<()>, _buffers: Option<Buffers>) {
            panic!("a completion that panics");
        }
    }

    #[test]
    fn what_completes_beside_a_panic_is_delivered() {
        let Some(ring) = ring() else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = Arc::new(File::create(folder.path().join("blocks")).unwrap());
        let sync = Waiting {
            operation: Operation::Sync { file: FileId(0) },
            token: Arc::new(Panics),
            file: Arc::clone(&file),
        };
        ring.submit(vec![sync], false);
        let writes = write_blocks(&ring, &file, 3);
        // They are delivered together then.
        threads::sleep(Duration::from_millis(100));
        let deadline = Instant::now() + Duration::from_secs(20);
        let are_over = || writes.iter().all(|write| is_over(write)) || Instant::now() > deadline;
        while !are_over() || ring.in_flight.load(Ordering::Acquire) > 0 {
            let _ = panic::catch_unwind(AssertUnwindSafe(|| ring.reap()));
        }
        for write in &writes {
            assert!(is_over(write));
            value(write).unwrap();
        }
    }

    #[test]
    fn a_leader_sees_what_another_thread_has_done() {
        let Some(ring) = ring() else { return };
        if !ring.uring.params().is_feature_ext_arg() {
            return;
        }
        let (read, mut pipe) = slow_read(&ring);
        let is_done = AtomicBool::new(false);
        threads::scope(|scope| {
            scope.spawn(|| {
                threads::sleep(Duration::from_millis(50));
                is_done.store(true, Ordering::Release);
            });
            ring.wait(&|| is_done.load(Ordering::Acquire) || is_over(&read));
        });
        assert!(!is_over(&read));
        pipe.write_all(&[5; DISK_BLOCK_BYTES]).unwrap();
        ring.wait(&|| is_over(&read));
    }

    #[test]
    fn what_the_kernel_has_taken_is_not_over_before_it_says_so() {
        let Some(ring) = ring() else { return };
        let (read, mut pipe) = slow_read(&ring);
        break_ring(&ring);
        let folder = tempfile::tempdir().unwrap();
        let file = Arc::new(File::create(folder.path().join("blocks")).unwrap());
        let writes = write_blocks(&ring, &file, 3);
        ring.wait(&|| writes.iter().all(|write| is_over(write)));
        assert!(!is_over(&read));
        assert_eq!(ring.in_flight.load(Ordering::Acquire), 1);
        pipe.write_all(&[9; DISK_BLOCK_BYTES]).unwrap();
        ring.wait(&|| is_over(&read));
        assert_eq!(value(&read).unwrap(), 9);
    }

    #[test]
    fn a_broken_ring_that_is_dropped_waits_for_the_kernel() {
        let Some(ring) = ring() else { return };
        let (read, mut pipe) = slow_read(&ring);
        break_ring(&ring);
        let writer = threads::spawn({
            let read = read.clone();
            move || {
                threads::sleep(Duration::from_millis(100));
                let was_over = is_over(&read);
                pipe.write_all(&[5; DISK_BLOCK_BYTES]).unwrap();
                was_over
            }
        });
        drop(ring);
        assert_eq!(value(&read).unwrap(), 5);
        assert!(
            !writer.join().unwrap(),
            "a buffer that the kernel still has"
        );
    }
}
