//! How a running statement is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{AccessError, Result};

/// A flag that one thread raises (KILL, a closed socket, a time limit) and the access methods of one
/// session look at once per leaf. Cloning shares the flag.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// A flag that nobody has raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everything that checks this flag to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lowers the flag: the next statement of the session starts afresh.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the flag is raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// [`AccessError::Cancelled`] if the flag is raised.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(AccessError::Cancelled)
        } else {
            Ok(())
        }
    }
}
