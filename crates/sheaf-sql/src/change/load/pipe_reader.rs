//! Reads a named pipe so that KILL is noticed, both while it waits for a writer and while it waits for what is written.
//!
//! Opening a pipe waits for its writer. A thread does that. If the statement is killed meanwhile, the thread is woken
//! by being a writer for a moment. Otherwise the pipe is opened once more by its descriptor, this time without waiting.
//! As there is a writer now, a read that finds nothing says either that there is nothing yet, or that this is the end.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use sheaf_storage::sync::waiting;

use crate::session::handle::SessionHandle;

/// How often a wait looks whether the statement was killed.
const KILL_CHECK: Duration = Duration::from_millis(50);
/// How long an empty pipe is left alone.
const EMPTY_PAUSE: Duration = Duration::from_millis(2);
/// How often the thread that opens a pipe is woken: once is enough, unless it is not there yet.
const MAX_WAKES: usize = 100;

/// Whether a file is a named pipe.
pub(crate) fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// See the module's comment.
pub(crate) struct PipeReader {
    pipe: File,
    handle: Arc<SessionHandle>,
}

impl PipeReader {
    /// Waits for a writer of the pipe.
    ///
    /// # Errors
    /// `Other` if the statement was killed, and whatever the system reports.
    pub(crate) fn open(path: &Path, handle: Arc<SessionHandle>) -> io::Result<PipeReader> {
        let (sender, receiver) = sync_channel(1);
        let own_path = path.to_path_buf();
        std::thread::Builder::new()
            .name("open-pipe".into())
            .spawn(move || {
                // The receiver may be gone.
                let _ = sender.send(File::open(own_path));
            })?;
        let opened = loop {
            match waiting(|| receiver.recv_timeout(KILL_CHECK)) {
                Ok(opened) => break opened?,
                Err(RecvTimeoutError::Timeout) if handle.should_stop_waiting() => {
                    wake(path, &receiver);
                    return Err(stopped());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(stopped()),
            }
        };
        let by_descriptor = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let pipe = without_waiting().read(true).open(by_descriptor)?;
        Ok(PipeReader { pipe, handle })
    }
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.pipe.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.handle.should_stop_waiting() {
                        return Err(stopped());
                    }
                    waiting(|| std::thread::sleep(EMPTY_PAUSE));
                }
                outcome => return outcome,
            }
        }
    }
}

/// Ends the wait of the thread that opens the pipe to read it.
fn wake(path: &Path, opener: &Receiver<io::Result<File>>) {
    for _ in 0..MAX_WAKES {
        // Fails as long as no thread waits, because it has not come so far, or is through.
        let _ = without_waiting().write(true).open(path);
        match opener.recv_timeout(EMPTY_PAUSE) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

fn without_waiting() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(libc::O_NONBLOCK);
    options
}

/// The statement tells its client what has stopped it.
fn stopped() -> io::Error {
    io::Error::other("the statement was stopped")
}
