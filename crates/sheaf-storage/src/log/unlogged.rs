//! Pages that are written past the log, and when this is forbidden.
//!
//! A bulk build writes its leaves to the data file and nothing about their contents to the log. They are durable before
//! the tree can be seen, so recovery has nothing to make. But a database that is made again from an older copy of the
//! data file and the log, as a restored backup is, would miss them. So while an archive of the log is kept, and while a
//! backup copies the data file, bulk builds log images of their leaves.
//!
//! ```text
//!   bulk build:   begin -> write -> completion                        one extent at a time
//!   backup:              forbid: no more of these begin, and those that did are over
//! ```
//!
//! A build may begin before a backup and end after it. What it wrote before is in the data file when the copy begins,
//! and what it writes later is in the log.

use std::sync::Arc;

use crate::disk::Disk;
use crate::sync::{Mutex, thread};

/// See the [module](self).
#[derive(Default)]
pub(crate) struct UnloggedWrites {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Archives and backups that need everything in the log.
    forbidden_by: usize,
    /// Writes past the log that have begun and not ended.
    in_flight: usize,
}

impl UnloggedWrites {
    /// The right to write pages that are not in the log; `None` while they are needed there. To be dropped when the
    /// write has completed.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<UnloggedWrite> {
        let mut state = self.state.lock();
        if state.forbidden_by > 0 {
            return None;
        }
        state.in_flight += 1;
        Some(UnloggedWrite(self.clone()))
    }

    /// Forbids such writes until the answer is dropped. Waits for those on `disk` that have begun.
    pub(crate) fn forbid(self: &Arc<Self>, disk: &dyn Disk) -> LogEverything {
        self.state.lock().forbidden_by += 1;
        let forbidden = LogEverything(self.clone());
        // The thread that began a write may be busy elsewhere, and not reap its completion for long.
        while self.state.lock().in_flight > 0 {
            disk.reap();
            thread::yield_now();
        }
        forbidden
    }
}

/// A write of pages that are not in the log.
pub(crate) struct UnloggedWrite(Arc<UnloggedWrites>);

impl Drop for UnloggedWrite {
    fn drop(&mut self) {
        self.0.state.lock().in_flight -= 1;
    }
}

/// While this lives, the log has the contents of all pages.
pub(crate) struct LogEverything(Arc<UnloggedWrites>);

impl Drop for LogEverything {
    fn drop(&mut self) {
        self.0.state.lock().forbidden_by -= 1;
    }
}
