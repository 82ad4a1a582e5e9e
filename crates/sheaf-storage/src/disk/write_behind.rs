//! Writes that the system has taken and may not have put on the disk yet.
//!
//! Temporary files are written through the system's cache. Where the process's control group has [little
//! memory](sheaf_memory::most_unwritten), what waits there for a slow disk takes it, and the system ends the process:
//! thirty sorts at once had 24 MB of 80 in it. So writes are noted in the order in which they came, and what writes
//! more than there may be waits for the oldest of them:
//!
//! ```text
//!   on the disk <- | write | write | write | write | <- the next one
//!                  '-- no more than so many bytes -'
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// See the module's comment.
#[derive(Debug, Default)]
pub(crate) struct WriteBehind {
    most_bytes: OnceLock<Option<u64>>,
    writes: Mutex<Writes>,
}

#[derive(Debug, Default)]
struct Writes {
    bytes: u64,
    oldest_first: VecDeque<Write>,
}

/// A range of a file, which may be gone.
#[derive(Debug)]
struct Write {
    file: Weak<File>,
    offset: u64,
    length: u64,
}

impl WriteBehind {
    /// Something was written. Waits until no more than there may be is on its way to the disk. A disk that fails is
    /// seen by those that read.
    pub(crate) fn wrote(&self, file: &Arc<File>, offset: u64, length: u64) {
        let Some(most) = *self.most_bytes.get_or_init(sheaf_memory::most_unwritten) else {
            return;
        };
        start_writing(file, offset, length);
        let write = Write {
            file: Arc::downgrade(file),
            offset,
            length,
        };
        for write in self.note(write, most) {
            if let Some(file) = write.file.upgrade() {
                await_written(&file, write.offset, write.length);
            }
        }
    }

    /// Notes a write, and returns those that have to be on the disk now.
    fn note(&self, write: Write, most: u64) -> Vec<Write> {
        // Each change leaves the sum right.
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.bytes += write.length;
        writes.oldest_first.push_back(write);
        let mut oldest = Vec::new();
        while writes.bytes > most
            && let Some(write) = writes.oldest_first.pop_front()
        {
            writes.bytes -= write.length;
            oldest.push(write);
        }
        oldest
    }
}

/// The system begins to write the range to the disk.
fn start_writing(file: &File, offset: u64, length: u64) {
    sync_range(file, offset, length, libc::SYNC_FILE_RANGE_WRITE);
}

/// Waits until the range is on the disk.
fn await_written(file: &File, offset: u64, length: u64) {
    let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_range(file, offset, length, wait);
}

fn sync_range(file: &File, offset: u64, length: u64, how: libc::c_uint) {
    // SAFETY: the call has no memory of ours, and the file is open as long as it is borrowed.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), offset as i64, length as i64, how) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_writes_are_waited_for() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let behind = WriteBehind::default();
        let note = |offset: u64| {
            let write = Write {
                file: Arc::downgrade(&file),
                offset,
                length: 10,
            };
            let oldest = behind.note(write, 25);
            oldest.iter().map(|write| write.offset).collect::<Vec<_>>()
        };
        assert_eq!((note(0), note(10)), (vec![], vec![]));
        assert_eq!(note(20), [0]);
        assert_eq!(note(30), [10]);
        assert_eq!(behind.writes.lock().unwrap().bytes, 20);
    }

    #[test]
    fn what_is_waited_for_can_be_read() {
        let mut file = Arc::new(tempfile::tempfile().unwrap());
        let behind = WriteBehind {
            most_bytes: OnceLock::from(Some(0)),
            writes: Mutex::default(),
        };
        std::io::Write::write_all(&mut file, b"abc").unwrap();
        behind.wrote(&file, 0, 3);
        assert_eq!(file.metadata().unwrap().len(), 3);
    }
}
