//! How far long work of a statement has come, for SHOW PROCESSLIST.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sheaf_access::CancelFlag;
use sheaf_table::Progress;

use crate::session_parts::handle::SessionHandle;

/// Shows the progress of long work in SHOW PROCESSLIST, and stops it when the statement is killed.
pub(crate) struct SessionProgress {
    handle: Arc<SessionHandle>,
    cancel: CancelFlag,
    phase: Mutex<(String, u64)>,
    done: AtomicU64,
    shown_percent: AtomicU64,
}

impl SessionProgress {
    pub(crate) fn new(handle: Arc<SessionHandle>) -> SessionProgress {
        SessionProgress {
            cancel: handle.cancel_flag().clone(),
            handle,
            phase: Mutex::new((String::new(), 0)),
            done: AtomicU64::new(0),
            shown_percent: AtomicU64::new(0),
        }
    }
}

impl Progress for SessionProgress {
    fn begin(&self, name: &str, total: Option<u64>) {
        if let Ok(mut phase) = self.phase.lock() {
            *phase = (name.to_string(), total.unwrap_or(0));
        }
        self.done.store(0, Ordering::Relaxed);
        self.shown_percent.store(0, Ordering::Relaxed);
        self.handle.set_state(name);
    }

    fn advance(&self, units: u64) {
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        let Ok(phase) = self.phase.try_lock() else {
            return;
        };
        let (name, total) = &*phase;
        if *total > 0 {
            let percent = (done.saturating_mul(100) / total).min(100);
            if self.shown_percent.swap(percent, Ordering::Relaxed) != percent {
                self.handle.set_state(&format!("{name} ({percent}%)"));
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}
